defmodule Ferrox.Inspect do
  @moduledoc false
  # The data of tensors as text, laid out as Nx lays them out.
  #
  # Floats of up to 32 bits are the shortest decimals that read back as the same
  # value of their own type, in the notation of Nx 0.13: `0.1` for the f32 that
  # is nearest to it, and `1e10` where Elixir writes `1.0e10`. Those of 64 bits
  # are written as Elixir writes them.

  import Bitwise
  import Inspect.Algebra

  alias Ferrox.{Native, Tensor}

  # Bits of the exponent and of the significand, without the implicit one.
  @formats %{
    {:f, 8} => {5, 2},
    {:f8_e4m3fn, 8} => {4, 3},
    {:f, 16} => {5, 10},
    {:bf, 16} => {8, 7},
    {:f, 32} => {8, 23}
  }

  @doc "The elements up to `opts.limit` in nested lists, `...` standing for the rest."
  @spec data(Tensor.t(), Inspect.Opts.t()) :: Inspect.Algebra.t()
  def data(%Tensor{data: data, type: type, shape: shape}, opts) do
    bits = if type == :bool, do: 8, else: elem(type, 1)
    count = min(shown(shape, opts.limit), Native.size(shape)) * bits
    <<data::bitstring-size(count), _::bitstring>> = data

    signs = {
      color("[", :list, opts),
      color(",", :list, opts),
      color("]", :list, opts)
    }

    {doc, []} = shape |> Tuple.to_list() |> layout(elements(data, type), signs)
    doc
  end

  # A scalar is shown whatever the limit.
  defp shown({}, _limit), do: 1
  # The atom `:infinity` is larger than any number.
  defp shown(_shape, limit), do: limit

  defp layout([], [element | rest], _signs), do: {element, rest}

  defp layout([dim | dims], elements, {open, comma, close} = signs) do
    {docs, rest} = rows(dim, dims, elements, signs)

    if dims == [] do
      {concat([open, concat(Enum.intersperse(docs, concat(comma, " "))), close]), rest}
    else
      rows = concat(Enum.intersperse(docs, concat(comma, line())))
      {concat([nest(concat([open, line(), rows]), 2), line(), close]), rest}
    end
  end

  defp rows(0, _dims, elements, _signs), do: {[], elements}
  defp rows(_dim, _dims, [], _signs), do: {["..."], []}

  defp rows(dim, dims, elements, signs) do
    {doc, elements} = layout(dims, elements, signs)
    {docs, rest} = rows(dim - 1, dims, elements, signs)
    {[doc | docs], rest}
  end

  defp elements(data, :bool),
    do: for(<<n <- data>>, do: if(n == 0, do: "false", else: "true"))

  defp elements(data, {:s, bits}),
    do: for(<<n::signed-native-size(bits) <- data>>, do: Integer.to_string(n))

  defp elements(data, {:u, bits}),
    do: for(<<n::unsigned-native-size(bits) <- data>>, do: Integer.to_string(n))

  defp elements(data, {:c, bits}) do
    type = {:f, div(bits, 2)}
    complex(elements(data, type))
  end

  defp elements(data, {:f, 64}), do: for(<<float::binary-8 <- data>>, do: double(float))

  defp elements(data, {_, bits} = type) do
    format = Map.fetch!(@formats, type)
    for <<n::unsigned-native-size(bits) <- data>>, do: float(n, type, format)
  end

  defp complex([re, "-" <> _ = im | parts]), do: [re <> im <> "i" | complex(parts)]
  defp complex([re, im | parts]), do: [re <> "+" <> im <> "i" | complex(parts)]
  defp complex([]), do: []

  defp double(<<float::float-64-native>>), do: Float.to_string(float)
  defp double(<<0x7FF0_0000_0000_0000::64-native>>), do: "Inf"
  defp double(<<0xFFF0_0000_0000_0000::64-native>>), do: "-Inf"
  defp double(_), do: "NaN"

  defp float(bits, type, {exponent_bits, significand_bits}) do
    exponents = (1 <<< exponent_bits) - 1
    exponent = bits >>> significand_bits &&& exponents
    significand = bits &&& (1 <<< significand_bits) - 1
    sign = if bits >>> (exponent_bits + significand_bits) == 1, do: "-", else: ""

    case special(type, exponent == exponents, significand) do
      :nan ->
        "NaN"

      :infinity ->
        sign <> "Inf"

      nil when exponent == 0 and significand == 0 ->
        sign <> "0.0"

      nil ->
        lowest = 2 - (1 <<< (exponent_bits - 1)) - significand_bits
        {digits, place} = shortest(significand, exponent, significand_bits, lowest)
        sign <> notation(Integer.to_string(digits), place)
    end
  end

  # E4M3FN has a single NaN of each sign in place of infinities.
  defp special({:f8_e4m3fn, 8}, true, 0b111), do: :nan
  defp special({:f8_e4m3fn, 8}, true, _), do: nil
  defp special(_type, true, 0), do: :infinity
  defp special(_type, true, _), do: :nan
  defp special(_type, false, _), do: nil

  # The fewest digits and the power of ten of their last place, so that the
  # decimal reads back as this value; the nearest to it among those.
  #
  # What reads back as the value lies between the middles to its neighbours. An
  # even significand takes the middles themselves too, as ties go to even (`tie`). Below
  # a power of two the neighbours are half as far apart. In quarters of the last
  # place all of these are integers.
  defp shortest(significand, exponent, significand_bits, lowest) do
    implicit = if exponent == 0, do: 0, else: 1 <<< significand_bits
    value = 4 * (significand + implicit)
    low = if significand == 0 and exponent > 1, do: value - 1, else: value - 2
    tie = if rem(significand, 2) == 0, do: 0, else: 1

    power = max(exponent, 1) - 1 + lowest - 2
    scale = if power > 0, do: 1 <<< power, else: 1
    unit = if power < 0, do: 1 <<< -power, else: 1

    # No multiple of a higher power of ten is as small.
    place = floor(:math.log10(value * scale / unit)) + 1
    search({low * scale, value * scale, (value + 2) * scale}, tie, unit, place)
  end

  # The first place from above that has a multiple within the bounds.
  defp search({low, value, high} = bounds, tie, unit, place) do
    {up, step} =
      if place < 0,
        do: {Integer.pow(10, -place), unit},
        else: {1, unit * Integer.pow(10, place)}

    below = div(value * up, step)

    nearest =
      case 2 * (value * up - below * step) - step do
        0 -> below + rem(below, 2)
        more -> if more > 0, do: below + 1, else: below
      end

    within? = &(&1 * step >= low * up + tie and &1 * step <= high * up - tie)

    # Where the lower bound is the closer one, the nearest may lie below it and
    # the next one still within.
    cond do
      within?.(nearest) -> {nearest, place}
      within?.(below + 1) -> {below + 1, place}
      true -> search(bounds, tie, unit, place - 1)
    end
  end

  # Plain unless the other notation is shorter, counting `.0` for a single digit
  # where numbers are large: Nx reckons with it there, though it leaves it out.
  defp notation(digits, place) do
    count = byte_size(digits)
    exponent = Integer.to_string(place + count - 1)
    length = count + byte_size(exponent) + 2

    cond do
      place < 0 and -place < count ->
        {whole, fraction} = String.split_at(digits, count + place)
        whole <> "." <> fraction

      place < 0 and 2 - place <= length ->
        "0." <> String.duplicate("0", -place - count) <> digits

      place >= 0 and count + place + 2 <= if(count == 1, do: length + 1, else: length) ->
        digits <> String.duplicate("0", place) <> ".0"

      count == 1 ->
        digits <> "e" <> exponent

      true ->
        {first, others} = String.split_at(digits, 1)
        first <> "." <> others <> "e" <> exponent
    end
  end
end

defimpl Inspect, for: Ferrox.Tensor do
  import Inspect.Algebra

  def inspect(%{type: type, shape: shape} = tensor, opts) do
    open = color("[", :list, opts)
    close = color("]", :list, opts)
    dims = for dim <- Tuple.to_list(shape), do: concat([open, Integer.to_string(dim), close])
    type = color(Ferrox.Promotion.Names.short(type), :atom, opts)
    weak = if tensor.weak, do: ", weak: true", else: ""
    data = Ferrox.Inspect.data(tensor, opts)
    inner = concat([line(), type, concat(dims), weak, line(), data])

    force_unfit(
      concat([
        color("#Ferrox.Tensor<", :map, opts),
        nest(inner, 2),
        line(),
        color(">", :map, opts)
      ])
    )
  end
end
