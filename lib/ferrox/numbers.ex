defmodule Ferrox.Numbers do
  @moduledoc false
  # Converts Elixir's numbers to the data of tensors and back.
  #
  # Elixir has integers, 64-bit floats and complex numbers. So numbers are first written in the
  # widest type of their kind (s64, u64, f64 or c128), and the native library casts this to the
  # type of the tensor.

  import Ferrox.Complex, only: [is_complex: 1]
  alias Ferrox.{Complex, Native, Type}
  alias Ferrox.Promotion.Names

  @type number_term :: Ferrox.number_term()

  @non_finite [:infinity, :neg_infinity, :nan]

  @doc "Returns whether the term is a number, a boolean, or an atom for an infinity or NaN."
  defguard is_number_term(term)
           when is_number(term) or is_complex(term) or term in @non_finite or is_boolean(term)

  @doc "Returns whether the term is a float, or an integer that some type represents."
  defguard is_64_bit(number)
           when is_float(number) or
                  (is_integer(number) and number >= -0x8000_0000_0000_0000 and
                     number <= 0xFFFF_FFFF_FFFF_FFFF)

  @doc "The data of numbers in a type. Raises for a number that the type can't represent."
  @spec encode([number_term], Type.t() | :bool, atom) :: bitstring
  def encode(numbers, :bool, op) do
    for number <- numbers, into: <<>> do
      case boolean_to_integer(number) do
        bit when bit in [0, 1] -> <<bit>>
        _ -> raise_not_representable!(number, :bool, op)
      end
    end
  end

  def encode(numbers, {kind, _} = type, op) when kind in [:s, :u] do
    {min, max} = integer_range(type)

    data =
      for number <- numbers, into: <<>> do
        case boolean_to_integer(number) do
          n when is_integer(n) and n >= min and n <= max -> <<n::64-native>>
          _ -> raise_not_representable!(number, type, op)
        end
      end

    cast(data, {kind, 64}, type, length(numbers))
  end

  def encode(numbers, {:c, _} = type, op) do
    data =
      for number <- numbers, into: <<>> do
        {re, im} = parts(number)
        <<encode_float(re, number, type, op)::binary, encode_float(im, number, type, op)::binary>>
      end

    cast(data, {:c, 128}, type, length(numbers))
  end

  def encode(numbers, type, op) do
    data =
      for number <- numbers, into: <<>> do
        encode_float(boolean_to_integer(number), number, type, op)
      end

    cast(data, {:f, 64}, type, length(numbers))
  end

  @doc "The smallest and the largest integer of a type."
  @spec integer_range({:s | :u, pos_integer}) :: {integer, integer}
  def integer_range({:u, bits}), do: {0, Bitwise.bsl(1, bits) - 1}
  def integer_range({:s, bits}), do: {-Bitwise.bsl(1, bits - 1), Bitwise.bsl(1, bits - 1) - 1}

  @doc "The type of double precision: `{:c, 128}` for complex types, else `{:f, 64}`."
  @spec wide(Type.t() | :bool) :: Type.t()
  def wide({:c, _}), do: {:c, 128}
  def wide(_type), do: {:f, 64}

  defp cast(data, type, type, _count), do: data
  defp cast(data, from, type, count), do: Native.as_type(type, {from, {count}, data})

  # The real and the imaginary part. An integer stays an integer, because it may be larger than any
  # float.
  defp parts(%{re: re, im: im} = number) when is_complex(number), do: {re, im}
  defp parts(number), do: {boolean_to_integer(number), 0.0}

  defp boolean_to_integer(true), do: 1
  defp boolean_to_integer(false), do: 0
  defp boolean_to_integer(other), do: other

  # The f64 data of a real number, or of a part of a complex `number`. Raises for a finite number
  # that would become an infinity in `type`.
  defp encode_float(n, number, type, op) when is_number(n) do
    if representable?(n, type),
      do: <<n::float-64-native>>,
      else: raise_not_representable!(number, type, op)
  end

  defp encode_float(:nan, _, _, _), do: Type.nan_binary({:f, 64})
  defp encode_float(:infinity, _, _, _), do: Type.infinity_binary({:f, 64})
  defp encode_float(:neg_infinity, _, _, _), do: Type.neg_infinity_binary({:f, 64})
  defp encode_float(_, number, type, op), do: raise_not_representable!(number, type, op)

  # The magnitudes from which numbers are rounded to an infinity: half way between the largest
  # finite value of the type and the value that would follow if its exponent were unlimited.
  @overflow_limits %{
    {:f, 8} => 61_440.0,
    {:f, 16} => 65_520.0,
    {:bf, 16} => 3.3961775292304601e38,
    {:f, 32} => 3.4028235677973366e38,
    {:f8_e4m3fn, 8} => 464.0,
    {:c, 64} => 3.4028235677973366e38
  }

  defp representable?(n, type) when type in [{:f, 64}, {:c, 128}],
    do: is_float(n) or abs(n) < 1.7976931348623157e308

  defp representable?(n, type), do: abs(n) < :erlang.map_get(type, @overflow_limits)

  @spec raise_not_representable!(term, Type.t() | :bool, atom) :: no_return
  defp raise_not_representable!(number, type, op) do
    raise ArgumentError,
          "#{op}: #{inspect(number)} does not fit #{Names.short(type)}" <> hint(number, type)
  end

  defp hint(_number, :bool), do: "; as_type/2 makes true of what is not zero"

  defp hint(number, {kind, _}) when is_number(number) and kind in [:s, :u] do
    if is_integer(number),
      do: "; give a wider :type, or as_type/2 to wrap around",
      else: "; give a float :type, or as_type/2 to truncate"
  end

  defp hint(_number, _type), do: "; give a :type that holds it"

  @doc """
  The type and the data of a number that is an operand of an operation with a result of the given
  type.

  The number keeps its exact value, except for floats where the result has at most 32 bits: those
  become f32, as in Nx.
  """
  @spec operand(number_term, Type.t(), atom) :: {Type.t(), binary}
  # Shortcuts for the most frequent numbers and types.
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

  @max_finite_f64 1.7976931348623157e308
  @max_finite_f32 3.4028234663852886e38

  @doc """
  The data of one number in a type, by the rules of Nx for constants: integers wrap around, and
  floats outside of the range become infinite.
  """
  @spec constant(number_term, Type.t()) :: bitstring
  def constant(integer, {kind, bits}) when is_integer(integer) and kind in [:s, :u],
    do: <<integer::size(bits)-native>>

  # The two most frequent types, without a call of the native library.
  def constant(number, {:f, 32}) when is_number(number) and abs(number) <= @max_finite_f32,
    do: <<number::float-32-native>>

  def constant(number, {:f, 64}) when is_number(number) and abs(number) <= @max_finite_f64,
    do: <<number::float-64-native>>

  def constant(number, type) do
    {re, im} = parts(number)
    cast(<<f64_binary(re)::binary, f64_binary(im)::binary>>, {:c, 128}, type, 1)
  end

  defp f64_binary(n) when is_number(n) and n > @max_finite_f64, do: f64_binary(:infinity)
  defp f64_binary(n) when is_number(n) and n < -@max_finite_f64, do: f64_binary(:neg_infinity)
  defp f64_binary(n) when is_number(n), do: <<n::float-64-native>>
  defp f64_binary(atom), do: encode_float(atom, atom, {:f, 64}, :constant)

  @doc """
  The numbers in the data of a tensor: booleans, integers, floats or complex numbers. Infinities and
  NaN are atoms.
  """
  @spec decode(bitstring, Type.t() | :bool, non_neg_integer) :: [number_term]
  def decode(data, :bool, count), do: for(n <- decode(data, {:u, 8}, count), do: n != 0)

  def decode(data, {_, bits} = type, count) when bit_size(data) != bits * count do
    raise ArgumentError,
          "#{count} elements of #{Type.to_string(type)} take #{bits * count} bits, " <>
            "got #{bit_size(data)}"
  end

  def decode(data, {:s, _} = type, count),
    do: for(<<n::64-signed-native <- cast(data, type, {:s, 64}, count)>>, do: n)

  def decode(data, {:u, _} = type, count),
    do: for(<<n::64-unsigned-native <- cast(data, type, {:u, 64}, count)>>, do: n)

  def decode(data, {:c, _} = type, count) do
    module = Complex.module()

    for <<re::binary-8, im::binary-8 <- cast(data, type, {:c, 128}, count)>> do
      %{__struct__: module, re: decode_float(re), im: decode_float(im)}
    end
  end

  def decode(data, type, count),
    do: for(<<float::binary-8 <- cast(data, type, {:f, 64}, count)>>, do: decode_float(float))

  defp decode_float(<<float::float-64-native>>), do: float
  defp decode_float(<<0x7FF0_0000_0000_0000::64-native>>), do: :infinity
  defp decode_float(<<0xFFF0_0000_0000_0000::64-native>>), do: :neg_infinity
  defp decode_float(_), do: :nan
end
