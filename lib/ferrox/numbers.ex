defmodule Ferrox.Numbers do
  @moduledoc false
  # Elixir's numbers to the data of tensors and back.
  #
  # Elixir has integers, 64-bit floats and complex numbers, so those are the
  # three types that numbers pass through; the native library casts from there.

  import Ferrox.Complex, only: [is_complex: 1]
  alias Ferrox.{Complex, Native, Type}
  alias Ferrox.Promotion.Names

  @type number_term :: number | boolean | Complex.t() | Complex.non_finite()

  @non_finite [:infinity, :neg_infinity, :nan]

  defguard is_number_term(term)
           when is_number(term) or is_complex(term) or term in @non_finite or is_boolean(term)

  @doc "The data of numbers in a type; raises for one that the type can't hold."
  @spec encode([number_term], Type.t() | :bool, atom) :: bitstring
  def encode(numbers, :bool, op) do
    for number <- numbers, into: <<>> do
      case integer(number) do
        bit when bit in [0, 1] -> <<bit>>
        _ -> raise_misfit!(number, :bool, op)
      end
    end
  end

  def encode(numbers, {kind, bits} = type, op) when kind in [:s, :u] do
    lane = if kind == :s, do: {:s, 64}, else: {:u, 64}
    max = Bitwise.bsl(1, if(kind == :s, do: bits - 1, else: bits)) - 1
    min = if kind == :s, do: -max - 1, else: 0

    data =
      for number <- numbers, into: <<>> do
        case integer(number) do
          n when is_integer(n) and n >= min and n <= max -> <<n::64-native>>
          _ -> raise_misfit!(number, type, op)
        end
      end

    cast(data, lane, type, length(numbers))
  end

  def encode(numbers, {:c, _} = type, op) do
    data =
      for number <- numbers, into: <<>> do
        {re, im} = parts(number)
        <<float(re, number, type, op)::binary, float(im, number, type, op)::binary>>
      end

    cast(data, {:c, 128}, type, length(numbers))
  end

  def encode(numbers, type, op) do
    data = for number <- numbers, into: <<>>, do: float(real(number), number, type, op)
    cast(data, {:f, 64}, type, length(numbers))
  end

  defp cast(data, type, type, _count), do: data
  defp cast(data, lane, type, count), do: Native.as_type(type, {lane, {count}, data})

  # Integers may be larger than any float.
  defp parts(%{re: re, im: im} = number) when is_complex(number), do: {re, im}
  defp parts(number), do: {integer(number), 0.0}

  defp integer(true), do: 1
  defp integer(false), do: 0
  defp integer(other), do: other

  defp real(complex) when is_complex(complex), do: :complex
  defp real(other), do: integer(other)

  # Past half way from the largest value to the next power of two, a finite
  # number would become an infinity.
  defp float(n, number, type, op) when is_number(n) do
    if representable?(n, type), do: <<n::float-64-native>>, else: raise_misfit!(number, type, op)
  end

  defp float(:nan, _, _, _), do: Type.nan_binary({:f, 64})
  defp float(:infinity, _, _, _), do: Type.infinity_binary({:f, 64})
  defp float(:neg_infinity, _, _, _), do: Type.neg_infinity_binary({:f, 64})
  defp float(_, number, type, op), do: raise_misfit!(number, type, op)

  @limits %{
    {:f, 8} => 61_440.0,
    {:f, 16} => 65_520.0,
    {:bf, 16} => 3.3961775292304601e38,
    {:f, 32} => 3.4028235677973366e38,
    {:f8_e4m3fn, 8} => 464.0,
    {:c, 64} => 3.4028235677973366e38
  }

  defp representable?(n, type) when type in [{:f, 64}, {:c, 128}],
    do: is_float(n) or abs(n) < 1.7976931348623157e308

  defp representable?(n, type), do: abs(n) < :erlang.map_get(type, @limits)

  @spec raise_misfit!(term, Type.t(), atom) :: no_return
  defp raise_misfit!(number, type, op) do
    raise ArgumentError,
          "#{op}: #{inspect(number)} does not fit #{Names.short(type)}" <> hint(number, type)
  end

  defp hint(_number, :bool), do: "; as_type/2 makes true of what is not zero"

  defp hint(number, {kind, _}) when is_integer(number) and kind in [:s, :u],
    do: "; give a wider :type, or as_type/2 to wrap around"

  defp hint(number, {kind, _}) when is_float(number) and kind in [:s, :u],
    do: "; give a float :type, or as_type/2 to truncate"

  defp hint(_number, _type), do: "; give a :type that holds it"

  @doc """
  A number that is an operand of a result of a type: its own type and its data,
  without loss but for floats beside tensors of at most 32 bits, which are an f32
  as in Nx.
  """
  @spec operand(number_term, Type.t(), atom) :: {Type.t(), binary}
  # What most numbers are, in the type of most tensors.
  def operand(x, {:f, 32} = type, _op) when is_float(x) and abs(x) < 3.4e38,
    do: {type, <<x::float-32-native>>}

  def operand(n, {:f, 32} = type, _op) when is_integer(n) and abs(n) <= 0x100_0000,
    do: {type, <<n::float-32-native>>}

  def operand(n, {:s, 32} = type, _op) when is_integer(n) and n in -0x8000_0000..0x7FFF_FFFF,
    do: {type, <<n::32-native>>}

  def operand(n, {:f, 64} = type, _op) when is_float(n), do: {type, <<n::float-64-native>>}

  def operand(integer, _type, _op)
      when is_integer(integer) and integer in -0x8000_0000_0000_0000..0x7FFF_FFFF_FFFF_FFFF,
      do: {{:s, 64}, <<integer::64-native>>}

  def operand(integer, _type, _op)
      when is_integer(integer) and integer in 0..0xFFFF_FFFF_FFFF_FFFF,
      do: {{:u, 64}, <<integer::64-native>>}

  def operand(number, {_, bits} = type, op) when is_complex(number) do
    type = if type == {:c, 128} or bits == 128, do: {:c, 128}, else: {:c, 64}
    {type, encode([number], type, op)}
  end

  def operand(number, {kind, _} = type, op) when kind in [:s, :u],
    do: {type, encode([number], type, op)}

  def operand(float, {_, bits}, _op)
      when is_float(float) and (bits >= 64 or abs(float) >= 3.4e38),
      do: {{:f, 64}, <<float::float-64-native>>}

  def operand(number, _type, op), do: {{:f, 32}, encode([number], {:f, 32}, op)}

  @max_float 1.7976931348623157e308
  @max_single 3.4028234663852886e38

  @doc """
  The data of one number in a type, as Nx makes constants: integers wrap around,
  floats past the range become infinite.
  """
  @spec constant(number_term, Type.t()) :: bitstring
  def constant(integer, {kind, bits}) when is_integer(integer) and kind in [:s, :u],
    do: <<integer::size(bits)-native>>

  # The two that are most frequent, without a call of the library.
  def constant(number, {:f, 32}) when is_number(number) and abs(number) <= @max_single,
    do: <<number::float-32-native>>

  def constant(number, {:f, 64}) when is_number(number) and abs(number) <= @max_float,
    do: <<number::float-64-native>>

  def constant(number, type) do
    {re, im} = parts(number)
    cast(<<float_bits(re)::binary, float_bits(im)::binary>>, {:c, 128}, type, 1)
  end

  defp float_bits(n) when is_number(n) and n > @max_float, do: float_bits(:infinity)
  defp float_bits(n) when is_number(n) and n < -@max_float, do: float_bits(:neg_infinity)
  defp float_bits(n) when is_number(n), do: <<n::float-64-native>>
  defp float_bits(atom), do: float(atom, atom, {:f, 64}, :constant)

  @doc "The numbers of data, integers, floats (and atoms for what floats can't be) or complex."
  @spec decode(bitstring, Type.t() | :bool, non_neg_integer) :: [number_term]
  def decode(data, :bool, count), do: for(n <- decode(data, {:u, 8}, count), do: n != 0)

  def decode(data, {_, bits} = type, count) when bit_size(data) != bits * count do
    raise ArgumentError,
          "#{count} elements of #{Type.to_string(type)} take #{bits * count} bits, " <>
            "got #{bit_size(data)}"
  end

  def decode(data, {kind, _} = type, count) when kind in [:s, :u] do
    lane = {kind, 64}
    data = if type == lane, do: data, else: Native.as_type(lane, {type, {count}, data})

    if kind == :s,
      do: for(<<n::64-signed-native <- data>>, do: n),
      else: for(<<n::64-unsigned-native <- data>>, do: n)
  end

  def decode(data, {:c, _} = type, count) do
    data = if type == {:c, 128}, do: data, else: Native.as_type({:c, 128}, {type, {count}, data})
    module = Complex.module()

    for <<re::binary-8, im::binary-8 <- data>> do
      %{__struct__: module, re: to_float(re), im: to_float(im)}
    end
  end

  def decode(data, type, count) do
    data = if type == {:f, 64}, do: data, else: Native.as_type({:f, 64}, {type, {count}, data})
    for <<float::binary-8 <- data>>, do: to_float(float)
  end

  defp to_float(<<float::float-64-native>>), do: float
  defp to_float(<<0x7FF0_0000_0000_0000::64-native>>), do: :infinity
  defp to_float(<<0xFFF0_0000_0000_0000::64-native>>), do: :neg_infinity
  defp to_float(_), do: :nan
end
