defmodule Ferrox.Inspect do
  @moduledoc false
  # The data of tensors as text, in the layout of Nx.
  #
  # Floats of up to 32 bits are written as the shortest decimal that reads back as the same value of
  # their type, in the notation of Nx 0.13: `0.1` for the f32 nearest to it, and `1e10` where Elixir
  # writes `1.0e10`. Floats of 64 bits are written as Elixir writes them.

  import Bitwise
  import Ferrox.Bits, only: [bound_size: 1]
  import Inspect.Algebra

  alias Ferrox.{Native, Tensor}

  # The bits of the exponent and of the significand, without its implicit leading bit.
  @formats %{
    {:f, 8} => {5, 2},
    {:f8_e4m3fn, 8} => {4, 3},
    {:f, 16} => {5, 10},
    {:bf, 16} => {8, 7},
    {:f, 32} => {8, 23}
  }

  @doc "The first `opts.limit` elements in nested lists, with `...` for the rest."
  @spec data(Tensor.t(), Inspect.Opts.t()) :: Inspect.Algebra.t()
  def data(%Tensor{data: data, type: type, shape: shape}, opts) do
    bits = if type == :bool, do: 8, else: elem(type, 1)
    # A scalar is always written. The limit can be `:infinity`: an atom is larger than any number.
    count = if shape == {}, do: 1, else: min(opts.limit, Native.size(shape))
    used = count * bits
    <<data::bitstring-bound_size(used), _::bitstring>> = data

    [open, comma, close] = Enum.map(["[", ",", "]"], &color(&1, :list, opts))
    {doc, []} = shape |> Tuple.to_list() |> layout(elements(data, type), {open, comma, close})
    doc
  end

  # The document of the first elements in nested lists of these sizes, and the other elements.
  defp layout([], [element | rest], _punctuation), do: {element, rest}

  defp layout([dim | dims], elements, {open, comma, close} = punctuation) do
    {docs, rest} = list_items(dim, dims, elements, punctuation)

    separated = fn space -> docs |> Enum.intersperse(concat(comma, space)) |> concat() end

    if dims == [],
      do: {concat([open, separated.(" "), close]), rest},
      else: {concat([nest(concat([open, line(), separated.(line())]), 2), line(), close]), rest}
  end

  defp list_items(0, _dims, elements, _punctuation), do: {[], elements}
  defp list_items(_dim, _dims, [], _punctuation), do: {["..."], []}

  defp list_items(dim, dims, elements, punctuation) do
    {doc, elements} = layout(dims, elements, punctuation)
    {docs, rest} = list_items(dim - 1, dims, elements, punctuation)
    {[doc | docs], rest}
  end

  defp elements(data, :bool),
    do: for(<<n <- data>>, do: if(n == 0, do: "false", else: "true"))

  defp elements(data, {:s, bits}),
    do: for(<<n::signed-native-bound_size(bits) <- data>>, do: Integer.to_string(n))

  defp elements(data, {:u, bits}),
    do: for(<<n::unsigned-native-bound_size(bits) <- data>>, do: Integer.to_string(n))

  defp elements(data, {:c, bits}) do
    for [re, im] <- data |> elements({:f, div(bits, 2)}) |> Enum.chunk_every(2),
        do: re <> if(String.starts_with?(im, "-"), do: "", else: "+") <> im <> "i"
  end

  defp elements(data, {:f, 64}), do: for(<<float::binary-8 <- data>>, do: f64_text(float))

  defp elements(data, {_, bits} = type) do
    format = Map.fetch!(@formats, type)
    for <<n::unsigned-native-bound_size(bits) <- data>>, do: float_text(n, type, format)
  end

  defp f64_text(<<float::float-64-native>>), do: Float.to_string(float)
  defp f64_text(<<0x7FF0_0000_0000_0000::64-native>>), do: "Inf"
  defp f64_text(<<0xFFF0_0000_0000_0000::64-native>>), do: "-Inf"
  defp f64_text(_), do: "NaN"

  defp float_text(bits, type, {exponent_bits, significand_bits}) do
    max_exponent = (1 <<< exponent_bits) - 1
    exponent = bits >>> significand_bits &&& max_exponent
    significand = bits &&& (1 <<< significand_bits) - 1
    sign = if bits >>> (exponent_bits + significand_bits) == 1, do: "-", else: ""

    # f8_e4m3fn has no infinities, and one NaN of each sign.
    cond do
      type == {:f8_e4m3fn, 8} and exponent == max_exponent and significand == 0b111 ->
        "NaN"

      type != {:f8_e4m3fn, 8} and exponent == max_exponent ->
        if significand == 0, do: sign <> "Inf", else: "NaN"

      exponent == 0 and significand == 0 ->
        sign <> "0.0"

      true ->
        min_exponent = 2 - (1 <<< (exponent_bits - 1)) - significand_bits

        {digits, power_of_ten} =
          shortest_decimal(significand, exponent, significand_bits, min_exponent)

        sign <> notation(Integer.to_string(digits), power_of_ten)
    end
  end

  # The decimal `digits * 10^power_of_ten` with the fewest digits that reads back as this value;
  # among several, the one nearest to the value. `min_exponent` is the power of two of the last bit
  # of a subnormal number.
  #
  # The decimals that read back as the value lie between the two midpoints to the neighbouring
  # floats. The midpoints themselves belong to an even significand, because ties are rounded to even
  # (`margin` is then 0, else 1). Below a power of two, the lower neighbour is half as far away as
  # the upper one. All these bounds are integers in units of a quarter of the last bit.
  defp shortest_decimal(significand, exponent, significand_bits, min_exponent) do
    implicit_bit = if exponent == 0, do: 0, else: 1 <<< significand_bits
    value = 4 * (significand + implicit_bit)
    low = if significand == 0 and exponent > 1, do: value - 1, else: value - 2
    margin = if rem(significand, 2) == 0, do: 0, else: 1

    power_of_two = max(exponent, 1) - 1 + min_exponent - 2
    scale = if power_of_two > 0, do: 1 <<< power_of_two, else: 1
    unit = if power_of_two < 0, do: 1 <<< -power_of_two, else: 1

    # A multiple of a higher power of ten would be larger than the value.
    power_of_ten = floor(:math.log10(value * scale / unit)) + 1
    search({low * scale, value * scale, (value + 2) * scale}, margin, unit, power_of_ten)
  end

  # Searches from `power_of_ten` downwards for the first power of ten that has a multiple within the
  # bounds. The bounds are in units of `1 / unit`.
  defp search({low, value, high} = bounds, margin, unit, power_of_ten) do
    {bound_scale, step} =
      if power_of_ten < 0,
        do: {Integer.pow(10, -power_of_ten), unit},
        else: {1, unit * Integer.pow(10, power_of_ten)}

    multiple_below = div(value * bound_scale, step)

    nearest =
      case 2 * (value * bound_scale - multiple_below * step) - step do
        0 -> multiple_below + rem(multiple_below, 2)
        above_half -> if above_half > 0, do: multiple_below + 1, else: multiple_below
      end

    within? = fn multiple ->
      multiple * step >= low * bound_scale + margin and
        multiple * step <= high * bound_scale - margin
    end

    # If the lower bound is closer than the upper one, the nearest multiple can be below the lower
    # bound while the next multiple is within the bounds.
    cond do
      within?.(nearest) -> {nearest, power_of_ten}
      within?.(multiple_below + 1) -> {multiple_below + 1, power_of_ten}
      true -> search(bounds, margin, unit, power_of_ten - 1)
    end
  end

  # The decimal notation, unless the scientific notation is shorter. As in Nx, the scientific
  # notation of a large number with one digit counts as if it had a `.0`, which is not written.
  defp notation(digits, power_of_ten) do
    count = byte_size(digits)
    exponent = Integer.to_string(power_of_ten + count - 1)
    scientific_length = count + byte_size(exponent) + 2

    cond do
      power_of_ten < 0 and -power_of_ten < count ->
        {whole, fraction} = String.split_at(digits, count + power_of_ten)
        whole <> "." <> fraction

      power_of_ten < 0 and 2 - power_of_ten <= scientific_length ->
        "0." <> String.duplicate("0", -power_of_ten - count) <> digits

      power_of_ten >= 0 and
          count + power_of_ten + 2 <=
            if(count == 1, do: scientific_length + 1, else: scientific_length) ->
        digits <> String.duplicate("0", power_of_ten) <> ".0"

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

  @impl true
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
