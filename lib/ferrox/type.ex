defmodule Ferrox.Type do
  @moduledoc """
  The types that tensors have, and what can be told about them.

  A type is a tuple of its kind and its size in bits:

    * `:s` - signed integer (2, 4, 8, 16, 32, 64)
    * `:u` - unsigned integer (2, 4, 8, 16, 32, 64)
    * `:f` - float (8, 16, 32, 64); the one of 8 bits is E5M2
    * `:f8_e4m3fn` - the other float of 8 bits, more precise and without
      infinities
    * `:bf` - float with the range of `{:f, 32}` (16)
    * `:c` - complex number, a pair of floats (64, 128)

  Each type has a short name: `:u8` is `{:u, 8}`, and `:f8_e4m3fn` is
  `{:f8_e4m3fn, 8}`. `normalize!/2` takes both, all other functions the tuple.

  ## Versions of Nx

  The functions are those of `Nx.Type` 0.9, with the same results and errors.
  Releases of Nx answer differently in two points, and the functions concerned
  take the promotion system (see `Ferrox.Promotion`) as their last argument,
  `:nx_0_9` for Nx 0.9 and `:nx` for Nx 0.13:

    * `merge/3`: `{:f, 64}` with `{:c, 64}` is `{:c, 64}` in Nx 0.9, the
      default here, and `{:c, 128}` in later releases;
    * `{:f8_e4m3fn, 8}` came after Nx 0.9. So `merge/3` and `merge_number/3`
      refuse it unless they are given `:nx`. `normalize!/2` accepts every type
      of Ferrox by default and refuses it under `:nx_0_9`. All other functions
      answer as Nx 0.13 does.

  The functions of `Ferrox` itself promote under `:nx`.

  ## Constants

  The functions whose names end in `_binary` return one element in native byte
  order, as a bitstring of the type's size. They give the bits that Nx gives,
  some of which are not the nearest ones; those are had from
  `nearest_binary/2`.
  """

  import Bitwise
  import Ferrox.Complex, only: [is_complex: 1]

  alias Ferrox.Promotion

  @type t ::
          {:s, 2 | 4 | 8 | 16 | 32 | 64}
          | {:u, 2 | 4 | 8 | 16 | 32 | 64}
          | {:f, 8 | 16 | 32 | 64}
          | {:f8_e4m3fn, 8}
          | {:bf, 16}
          | {:c, 64 | 128}

  @type short_t ::
          :s2
          | :s4
          | :s8
          | :s16
          | :s32
          | :s64
          | :u2
          | :u4
          | :u8
          | :u16
          | :u32
          | :u64
          | :f8
          | :f8_e4m3fn
          | :f16
          | :f32
          | :f64
          | :bf16
          | :c64
          | :c128

  @kinds [:u, :s, :f, :bf, :c, :f8_e4m3fn]

  @non_finite [:infinity, :neg_infinity, :nan]

  @doc """
  The type as a tuple, given a tuple or a short name.

  ## Examples

      iex> Ferrox.Type.normalize!({:u, 8})
      {:u, 8}
      iex> Ferrox.Type.normalize!(:u8)
      {:u, 8}

      iex> Ferrox.Type.normalize!({:u, 0})
      ** (ArgumentError) invalid numerical type: {:u, 0} (see Nx.Type docs for all supported types)

      iex> Ferrox.Type.normalize!({:k, 8})
      ** (ArgumentError) invalid numerical type: {:k, 8} (see Nx.Type docs for all supported types)

      iex> Ferrox.Type.normalize!(:f8_e4m3fn)
      {:f8_e4m3fn, 8}
      iex> Ferrox.Type.normalize!(:f8_e4m3fn, :nx_0_9)
      ** (ArgumentError) invalid numerical type: :f8_e4m3fn (see Nx.Type docs for all supported types)

  """
  @spec normalize!(t | short_t, Promotion.system()) :: t
  def normalize!(type, system \\ :nx) do
    known = fetch(type)

    # :nx has every type, and asking takes time.
    if known && (system == :nx or known in Promotion.types(system)) do
      known
    else
      raise ArgumentError,
            "invalid numerical type: #{inspect(type)} (see Nx.Type docs for all supported types)"
    end
  end

  # normalize!/1 that answers nil instead of raising.
  @doc false
  @spec fetch(term) :: t | nil
  def fetch(type)

  for {kind, sizes} <- [
        f: [8, 16, 32, 64],
        s: [2, 4, 8, 16, 32, 64],
        u: [2, 4, 8, 16, 32, 64],
        bf: [16],
        c: [64, 128]
      ],
      size <- sizes do
    def fetch({unquote(kind), unquote(size)} = type), do: type
    def fetch(unquote(:"#{kind}#{size}")), do: {unquote(kind), unquote(size)}
  end

  def fetch({:f8_e4m3fn, 8} = type), do: type
  def fetch(:f8_e4m3fn), do: {:f8_e4m3fn, 8}
  def fetch(_other), do: nil

  @doc """
  The type that a number has on its own.

  Integers are `{:s, 32}`, whatever their size.

  ## Examples

      iex> Ferrox.Type.infer(1)
      {:s, 32}
      iex> Ferrox.Type.infer(1.0)
      {:f, 32}
      iex> Ferrox.Type.infer(Ferrox.Complex.new(1))
      {:c, 64}
      iex> Ferrox.Type.infer(true)
      {:u, 8}
      iex> Ferrox.Type.infer(:nan)
      {:f, 32}

  """
  @spec infer(number | boolean | Ferrox.Complex.t() | Ferrox.Complex.non_finite()) :: t
  def infer(number) when is_integer(number), do: {:s, 32}
  def infer(number) when is_float(number) or number in @non_finite, do: {:f, 32}
  def infer(boolean) when is_boolean(boolean), do: {:u, 8}
  def infer(complex) when is_complex(complex), do: {:c, 64}

  @doc """
  The type that can represent what two types do.

  Of two types of one kind, the wider one. Of two kinds the higher one wins,
  whatever the sizes:

      c > f > bf > s > u

  An unsigned type with a signed one gives a signed type of twice the unsigned
  one's size, up to 64 bits, or the signed one if that is wider.

  `system` is the promotion system, see the module's documentation.

  ## Examples

      iex> Ferrox.Type.merge({:s, 8}, {:s, 8})
      {:s, 8}
      iex> Ferrox.Type.merge({:s, 8}, {:s, 64})
      {:s, 64}
      iex> Ferrox.Type.merge({:s, 8}, {:u, 8})
      {:s, 16}
      iex> Ferrox.Type.merge({:s, 16}, {:u, 8})
      {:s, 16}
      iex> Ferrox.Type.merge({:s, 8}, {:u, 16})
      {:s, 32}
      iex> Ferrox.Type.merge({:s, 32}, {:u, 8})
      {:s, 32}
      iex> Ferrox.Type.merge({:s, 8}, {:u, 32})
      {:s, 64}
      iex> Ferrox.Type.merge({:s, 64}, {:u, 8})
      {:s, 64}
      iex> Ferrox.Type.merge({:s, 8}, {:u, 64})
      {:s, 64}
      iex> Ferrox.Type.merge({:u, 8}, {:f, 32})
      {:f, 32}
      iex> Ferrox.Type.merge({:u, 64}, {:f, 32})
      {:f, 32}
      iex> Ferrox.Type.merge({:s, 8}, {:f, 32})
      {:f, 32}
      iex> Ferrox.Type.merge({:s, 64}, {:f, 32})
      {:f, 32}
      iex> Ferrox.Type.merge({:u, 8}, {:f, 64})
      {:f, 64}
      iex> Ferrox.Type.merge({:u, 64}, {:f, 64})
      {:f, 64}
      iex> Ferrox.Type.merge({:s, 8}, {:f, 64})
      {:f, 64}
      iex> Ferrox.Type.merge({:s, 64}, {:f, 64})
      {:f, 64}
      iex> Ferrox.Type.merge({:u, 8}, {:bf, 16})
      {:bf, 16}
      iex> Ferrox.Type.merge({:u, 64}, {:bf, 16})
      {:bf, 16}
      iex> Ferrox.Type.merge({:s, 8}, {:bf, 16})
      {:bf, 16}
      iex> Ferrox.Type.merge({:s, 64}, {:bf, 16})
      {:bf, 16}
      iex> Ferrox.Type.merge({:f, 32}, {:bf, 16})
      {:f, 32}
      iex> Ferrox.Type.merge({:f, 64}, {:bf, 16})
      {:f, 64}
      iex> Ferrox.Type.merge({:c, 64}, {:f, 32})
      {:c, 64}
      iex> Ferrox.Type.merge({:c, 64}, {:c, 64})
      {:c, 64}
      iex> Ferrox.Type.merge({:c, 128}, {:c, 64})
      {:c, 128}

      iex> Ferrox.Type.merge({:f, 64}, {:c, 64})
      {:c, 64}
      iex> Ferrox.Type.merge({:f, 64}, {:c, 64}, :nx)
      {:c, 128}

  """
  @spec merge(t, t, Promotion.system()) :: t
  def merge({left_kind, _} = left, {right_kind, _} = right, system \\ :nx_0_9)
      when left_kind in @kinds and right_kind in @kinds,
      do: Promotion.lookup(system, left, right)

  @doc """
  The type of an operation on a type and a number.

  An integer type is widened until an integer fits, up to 64 bits, and is
  signed for a negative one. A float makes it `{:f, 32}`. Float types stay, and
  so do complex types, with any number.

  `system` is the promotion system, see the module's documentation.

  ## Examples

      iex> Ferrox.Type.merge_number({:u, 8}, 0)
      {:u, 8}
      iex> Ferrox.Type.merge_number({:u, 8}, 255)
      {:u, 8}
      iex> Ferrox.Type.merge_number({:u, 8}, 256)
      {:u, 16}
      iex> Ferrox.Type.merge_number({:u, 8}, -1)
      {:s, 16}
      iex> Ferrox.Type.merge_number({:u, 8}, -32767)
      {:s, 16}
      iex> Ferrox.Type.merge_number({:u, 8}, -32768)
      {:s, 16}
      iex> Ferrox.Type.merge_number({:u, 8}, -32769)
      {:s, 32}
      iex> Ferrox.Type.merge_number({:s, 8}, 0)
      {:s, 8}
      iex> Ferrox.Type.merge_number({:s, 8}, 127)
      {:s, 8}
      iex> Ferrox.Type.merge_number({:s, 8}, -128)
      {:s, 8}
      iex> Ferrox.Type.merge_number({:s, 8}, 128)
      {:s, 16}
      iex> Ferrox.Type.merge_number({:s, 8}, -129)
      {:s, 16}
      iex> Ferrox.Type.merge_number({:s, 8}, 1.0)
      {:f, 32}
      iex> Ferrox.Type.merge_number({:u, 64}, -1337)
      {:s, 64}
      iex> Ferrox.Type.merge_number({:f, 32}, 1)
      {:f, 32}
      iex> Ferrox.Type.merge_number({:f, 32}, 1.0)
      {:f, 32}
      iex> Ferrox.Type.merge_number({:f, 64}, 1.0)
      {:f, 64}

  Sizes between 1 and 8 bits are not counted:

      iex> Ferrox.Type.merge_number({:u, 2}, 1)
      {:u, 2}
      iex> Ferrox.Type.merge_number({:u, 2}, 2)
      {:u, 8}

  """
  @spec merge_number(t, term, Promotion.system()) :: t
  def merge_number({kind, _} = type, number, system \\ :nx_0_9)
      when kind in @kinds and (is_number(number) or kind == :c),
      do: Promotion.merge_number(system, type, number)

  @doc """
  The number as one of the type's kind.

  Whether it is in the type's range is not looked at.

  ## Examples

      iex> Ferrox.Type.cast_number!({:u, 8}, 10)
      10
      iex> Ferrox.Type.cast_number!({:s, 8}, 10)
      10
      iex> Ferrox.Type.cast_number!({:s, 8}, -10)
      -10
      iex> Ferrox.Type.cast_number!({:f, 32}, 10)
      10.0
      iex> Ferrox.Type.cast_number!({:bf, 16}, -10)
      -10.0
      iex> Ferrox.Type.cast_number!({:f, 32}, 10.0)
      10.0
      iex> Ferrox.Type.cast_number!({:bf, 16}, -10.0)
      -10.0

      iex> %{re: re, im: im} = Ferrox.Type.cast_number!({:c, 64}, 10)
      iex> {re, im}
      {10.0, 0.0}

      iex> Ferrox.Type.cast_number!({:u, 8}, -10)
      ** (ArgumentError) cannot cast number -10 to {:u, 8}

      iex> Ferrox.Type.cast_number!({:s, 8}, 10.0)
      ** (ArgumentError) cannot cast number 10.0 to {:s, 8}

  """
  @spec cast_number!(t, number | Ferrox.Complex.non_finite()) :: number | Ferrox.Complex.t()
  def cast_number!({:u, _}, number) when is_integer(number) and number >= 0, do: number
  def cast_number!({:s, _}, number) when is_integer(number), do: number

  def cast_number!({kind, _}, number) when kind in [:f, :bf] and is_number(number),
    do: number * 1.0

  def cast_number!({:c, _}, number), do: Ferrox.Complex.new(number)

  def cast_number!(type, other) do
    raise ArgumentError, "cannot cast number #{inspect(other)} to #{inspect(type)}"
  end

  @doc """
  The type in which sums are accumulated.

  ## Examples

      iex> Ferrox.Type.to_aggregate({:s, 8})
      {:s, 32}
      iex> Ferrox.Type.to_aggregate({:u, 16})
      {:u, 32}
      iex> Ferrox.Type.to_aggregate({:s, 64})
      {:s, 64}
      iex> Ferrox.Type.to_aggregate({:bf, 16})
      {:bf, 16}
      iex> Ferrox.Type.to_aggregate({:f, 32})
      {:f, 32}
      iex> Ferrox.Type.to_aggregate({:c, 64})
      {:c, 64}

  """
  @spec to_aggregate(t) :: t
  def to_aggregate({:u, 64}), do: {:s, 64}
  def to_aggregate({:u, _}), do: {:u, 32}
  def to_aggregate({:s, 64}), do: {:s, 64}
  def to_aggregate({:s, _}), do: {:s, 32}
  def to_aggregate({kind, _} = type) when kind in @kinds, do: type

  @doc """
  The real or complex float type that stands for the type.

  ## Examples

      iex> Ferrox.Type.to_floating({:s, 8})
      {:f, 32}
      iex> Ferrox.Type.to_floating({:s, 32})
      {:f, 32}
      iex> Ferrox.Type.to_floating({:bf, 16})
      {:bf, 16}
      iex> Ferrox.Type.to_floating({:f, 32})
      {:f, 32}
      iex> Ferrox.Type.to_floating({:c, 64})
      {:c, 64}

  """
  @spec to_floating(t) :: t
  def to_floating({kind, _}) when kind in [:u, :s], do: {:f, 32}
  def to_floating({kind, _} = type) when kind in @kinds, do: type

  @doc """
  The real float type that stands for the type, or for the parts of a complex
  one.

  ## Examples

      iex> Ferrox.Type.to_real({:s, 8})
      {:f, 32}
      iex> Ferrox.Type.to_real({:s, 64})
      {:f, 32}
      iex> Ferrox.Type.to_real({:bf, 16})
      {:bf, 16}
      iex> Ferrox.Type.to_real({:c, 64})
      {:f, 32}
      iex> Ferrox.Type.to_real({:c, 128})
      {:f, 64}
      iex> Ferrox.Type.to_real({:f, 32})
      {:f, 32}
      iex> Ferrox.Type.to_real({:f, 64})
      {:f, 64}

  """
  @spec to_real(t) :: t
  def to_real({:c, size}), do: {:f, div(size, 2)}
  def to_real(type), do: to_floating(type)

  @doc """
  The complex type that stands for the type.

  ## Examples

      iex> Ferrox.Type.to_complex({:s, 64})
      {:c, 64}
      iex> Ferrox.Type.to_complex({:bf, 16})
      {:c, 64}
      iex> Ferrox.Type.to_complex({:f, 32})
      {:c, 64}
      iex> Ferrox.Type.to_complex({:c, 64})
      {:c, 64}
      iex> Ferrox.Type.to_complex({:f, 64})
      {:c, 128}
      iex> Ferrox.Type.to_complex({:c, 128})
      {:c, 128}

  """
  @spec to_complex(t) :: t
  def to_complex({:c, size}), do: {:c, size}
  def to_complex({:f, 64}), do: {:c, 128}
  def to_complex({kind, _}) when kind in @kinds, do: {:c, 64}

  @doc """
  The short name of the type as a string.

  ## Examples

      iex> Ferrox.Type.to_string({:s, 8})
      "s8"
      iex> Ferrox.Type.to_string({:s, 16})
      "s16"
      iex> Ferrox.Type.to_string({:s, 32})
      "s32"
      iex> Ferrox.Type.to_string({:s, 64})
      "s64"
      iex> Ferrox.Type.to_string({:u, 8})
      "u8"
      iex> Ferrox.Type.to_string({:u, 16})
      "u16"
      iex> Ferrox.Type.to_string({:u, 32})
      "u32"
      iex> Ferrox.Type.to_string({:u, 64})
      "u64"
      iex> Ferrox.Type.to_string({:f, 16})
      "f16"
      iex> Ferrox.Type.to_string({:bf, 16})
      "bf16"
      iex> Ferrox.Type.to_string({:f, 32})
      "f32"
      iex> Ferrox.Type.to_string({:f, 64})
      "f64"
      iex> Ferrox.Type.to_string({:f8_e4m3fn, 8})
      "f8_e4m3fn"

  """
  @spec to_string(t) :: String.t()
  def to_string({:f8_e4m3fn, 8}), do: "f8_e4m3fn"
  def to_string({kind, size}), do: Atom.to_string(kind) <> Integer.to_string(size)

  @doc """
  Whether the type's elements are integers in Elixir.

  ## Examples

      iex> Ferrox.Type.integer?({:s, 8})
      true
      iex> Ferrox.Type.integer?({:u, 64})
      true
      iex> Ferrox.Type.integer?({:f, 64})
      false

  """
  @spec integer?(t) :: boolean
  def integer?({kind, _}), do: kind in [:u, :s]

  @doc """
  Whether the type is a real or a complex float type.

  ## Examples

      iex> Ferrox.Type.float?({:f, 32})
      true
      iex> Ferrox.Type.float?({:bf, 16})
      true
      iex> Ferrox.Type.float?({:u, 64})
      false

  """
  @spec float?(t) :: boolean
  def float?({kind, _}), do: kind in [:f, :bf, :c, :f8_e4m3fn]

  @doc """
  Whether the type is complex.

  ## Examples

      iex> Ferrox.Type.complex?({:c, 64})
      true
      iex> Ferrox.Type.complex?({:f, 64})
      false

  """
  @spec complex?(t) :: boolean
  def complex?({kind, _}), do: kind == :c

  @doc """
  Whether the type has infinities. Nx has this function since 0.11.

  ## Examples

      iex> Ferrox.Type.infinite_float?({:f, 8})
      true
      iex> Ferrox.Type.infinite_float?({:f8_e4m3fn, 8})
      false
      iex> Ferrox.Type.infinite_float?({:s, 32})
      false

  """
  @spec infinite_float?(t) :: boolean
  def infinite_float?({kind, _}), do: kind in [:f, :bf, :c]
  def infinite_float?(_other), do: false

  # What follows from the format of a float: its bits of exponent and mantissa.
  formats =
    for {type, exponent, mantissa} <- [
          {{:f, 8}, 5, 2},
          {{:f, 16}, 5, 10},
          {{:bf, 16}, 8, 7},
          {{:f, 32}, 8, 23},
          {{:f, 64}, 11, 52}
        ] do
      infinity = ((1 <<< exponent) - 1) <<< mantissa

      %{
        type: type,
        max_finite: infinity - 1,
        infinity: infinity,
        nan: infinity + (1 <<< (mantissa - 1)),
        smallest_normal: 1 <<< mantissa
      }
    end

  # The largest exponent is an ordinary one here, but for a single NaN. Where an
  # infinity is asked for, Nx gives the largest finite value.
  e4m3fn = %{
    type: {:f8_e4m3fn, 8},
    max_finite: 0x7E,
    infinity: 0x7E,
    nan: 0x7F,
    smallest_normal: 0x08
  }

  formats = [e4m3fn | formats]

  @doc """
  The smallest finite value of a real type.

  ## Examples

      iex> Ferrox.Type.min_finite_binary({:s, 8})
      <<-128::signed>>
      iex> Ferrox.Type.min_finite_binary({:f, 32})
      <<-3.4028234663852886e38::float-32-native>>

  """
  @spec min_finite_binary(t) :: bitstring
  def min_finite_binary(type)

  @doc """
  The largest finite value of a real type.

  ## Examples

      iex> Ferrox.Type.max_finite_binary({:u, 4})
      <<15::4>>
      iex> Ferrox.Type.max_finite_binary({:f, 32})
      <<3.4028234663852886e38::float-32-native>>

  """
  @spec max_finite_binary(t) :: bitstring
  def max_finite_binary(type)

  for size <- [2, 4, 8, 16, 32, 64] do
    def min_finite_binary({:u, unquote(size)}), do: <<0::unquote(size)-native>>
    def max_finite_binary({:u, unquote(size)}), do: <<-1::unquote(size)-native>>

    def min_finite_binary({:s, unquote(size)}),
      do: <<unquote(-1 <<< (size - 1))::unquote(size)-native>>

    def max_finite_binary({:s, unquote(size)}),
      do: <<unquote((1 <<< (size - 1)) - 1)::unquote(size)-native>>
  end

  for %{type: {_, size} = type, max_finite: bits} <- formats do
    negative = bits + (1 <<< (size - 1))
    def min_finite_binary(unquote(type)), do: <<unquote(negative)::unquote(size)-native>>
    def max_finite_binary(unquote(type)), do: <<unquote(bits)::unquote(size)-native>>
  end

  @doc """
  The smallest value of a real type, negative infinity where there is one.

  ## Examples

      iex> Ferrox.Type.min_binary({:s, 8})
      <<-128::signed>>
      iex> Ferrox.Type.min_binary({:f, 32}) == Ferrox.Type.neg_infinity_binary({:f, 32})
      true

  """
  @spec min_binary(t) :: bitstring
  def min_binary(type) do
    if infinite_float?(type), do: neg_infinity_binary(type), else: min_finite_binary(type)
  end

  @doc """
  The largest value of a real type, infinity where there is one.

  ## Examples

      iex> Ferrox.Type.max_binary({:s, 8})
      <<127>>
      iex> Ferrox.Type.max_binary({:f, 32}) == Ferrox.Type.infinity_binary({:f, 32})
      true

  """
  @spec max_binary(t) :: bitstring
  def max_binary(type) do
    if infinite_float?(type), do: infinity_binary(type), else: max_finite_binary(type)
  end

  @doc """
  Infinity in a real float type; the largest finite value where there is none.

  ## Examples

      iex> Ferrox.Type.infinity_binary({:f, 32})
      <<0x7F800000::32-native>>

  """
  @spec infinity_binary(t) :: binary
  def infinity_binary(type)

  @doc """
  Negative infinity in a real float type; the smallest finite value where there
  is none.

  ## Examples

      iex> Ferrox.Type.neg_infinity_binary({:f, 32})
      <<0xFF800000::32-native>>

  """
  @spec neg_infinity_binary(t) :: binary
  def neg_infinity_binary(type)

  @doc """
  NaN in a real float type.

  ## Examples

      iex> Ferrox.Type.nan_binary({:f, 32})
      <<0x7FC00000::32-native>>

  """
  @spec nan_binary(t) :: binary
  def nan_binary(type)

  for %{type: {_, size} = type} = format <- formats do
    negative = format.infinity + (1 <<< (size - 1))
    def infinity_binary(unquote(type)), do: <<unquote(format.infinity)::unquote(size)-native>>
    def neg_infinity_binary(unquote(type)), do: <<unquote(negative)::unquote(size)-native>>
    def nan_binary(unquote(type)), do: <<unquote(format.nan)::unquote(size)-native>>
  end

  @doc """
  The smallest positive normal value of a real float type.

  ## Examples

      iex> Ferrox.Type.smallest_positive_normal_binary({:f, 32})
      <<1.1754943508222875e-38::float-32-native>>

      iex> Ferrox.Type.smallest_positive_normal_binary({:s, 32})
      ** (ArgumentError) only floating types are supported, got: {:s, 32}

  """
  @spec smallest_positive_normal_binary(t) :: binary
  def smallest_positive_normal_binary(type)

  for %{type: {_, size} = type, smallest_normal: bits} <- formats do
    def smallest_positive_normal_binary(unquote(type)),
      do: <<unquote(bits)::unquote(size)-native>>
  end

  def smallest_positive_normal_binary(type), do: not_floating!(type)

  # Nx's bits, wrong ones included, beside the nearest. Nx truncates bf16's e
  # and Euler-Mascheroni constant, and f8's; it gives f8's bits for f8_e4m3fn.
  constants = [
    epsilon: [
      {{:f, 8}, 0x34, 0x34},
      {{:f8_e4m3fn, 8}, 0x32, 0x20},
      {{:f, 16}, 0x1400, 0x1400},
      {{:bf, 16}, 0x3C00, 0x3C00},
      {{:f, 32}, 0x34000000, 0x34000000},
      {{:f, 64}, 0x3CB0000000000000, 0x3CB0000000000000}
    ],
    pi: [
      {{:f, 8}, 0x42, 0x42},
      {{:f8_e4m3fn, 8}, 0x42, 0x45},
      {{:f, 16}, 0x4248, 0x4248},
      {{:bf, 16}, 0x4049, 0x4049},
      {{:f, 32}, 0x40490FDB, 0x40490FDB},
      {{:f, 64}, 0x400921FB54442D18, 0x400921FB54442D18}
    ],
    e: [
      {{:f, 8}, 0x41, 0x41},
      {{:f8_e4m3fn, 8}, 0x41, 0x43},
      {{:f, 16}, 0x4170, 0x4170},
      {{:bf, 16}, 0x402D, 0x402E},
      {{:f, 32}, 0x402DF854, 0x402DF854},
      {{:f, 64}, 0x4005BF0A8B145769, 0x4005BF0A8B145769}
    ],
    euler_gamma: [
      {{:f, 8}, 0x38, 0x39},
      {{:f8_e4m3fn, 8}, 0x38, 0x31},
      {{:f, 16}, 0x389E, 0x389E},
      {{:bf, 16}, 0x3F13, 0x3F14},
      {{:f, 32}, 0x3F13C468, 0x3F13C468},
      {{:f, 64}, 0x3FE2788CFC6FB619, 0x3FE2788CFC6FB619}
    ]
  ]

  @doc """
  The distance from 1 to the next larger value of a real float type.

  In `{:f8_e4m3fn, 8}` it is wrong, as in Nx, see `nearest_binary/2`.

  ## Examples

      iex> Ferrox.Type.epsilon_binary({:f, 64})
      <<2.220446049250313e-16::float-64-native>>

      iex> Ferrox.Type.epsilon_binary({:s, 32})
      ** (ArgumentError) only floating types are supported, got: {:s, 32}

  """
  @spec epsilon_binary(t) :: binary
  def epsilon_binary(type)

  @doc """
  π in a real float type.

  In `{:f8_e4m3fn, 8}` it is wrong, as in Nx, see `nearest_binary/2`.

  ## Examples

      iex> Ferrox.Type.pi_binary({:f, 64})
      <<3.141592653589793::float-64-native>>

  """
  @spec pi_binary(t) :: binary
  def pi_binary(type)

  @doc """
  e, the base of the natural logarithm, in a real float type.

  In `{:f8_e4m3fn, 8}` it is wrong and in `{:bf, 16}` truncated, as in Nx, see
  `nearest_binary/2`.

  ## Examples

      iex> Ferrox.Type.e_binary({:f, 64})
      <<2.718281828459045::float-64-native>>

  """
  @spec e_binary(t) :: binary
  def e_binary(type)

  @doc """
  γ, the Euler-Mascheroni constant, in a real float type.

  In `{:f8_e4m3fn, 8}` it is wrong and in `{:f, 8}` and `{:bf, 16}` truncated,
  as in Nx, see `nearest_binary/2`.

  ## Examples

      iex> Ferrox.Type.euler_gamma_binary({:f, 64})
      <<0.5772156649015329::float-64-native>>

  """
  @spec euler_gamma_binary(t) :: binary
  def euler_gamma_binary(type)

  @doc """
  The value of a real float type that is nearest to a constant.

  It is what the constant's own function returns, but for seven values where
  Nx has other ones: all four of `{:f8_e4m3fn, 8}`, and those of `{:f, 8}` and
  `{:bf, 16}` that Nx truncates.

  ## Examples

      iex> Ferrox.Type.e_binary({:bf, 16})
      <<0x402D::16-native>>
      iex> Ferrox.Type.nearest_binary(:e, {:bf, 16})
      <<0x402E::16-native>>
      iex> Ferrox.Type.nearest_binary(:pi, {:f8_e4m3fn, 8})
      <<0x45>>

  """
  @spec nearest_binary(:epsilon | :pi | :e | :euler_gamma, t) :: binary
  def nearest_binary(constant, type)

  for {name, values} <- constants do
    for {{_, size} = type, bits, nearest} <- values do
      def unquote(:"#{name}_binary")(unquote(type)), do: <<unquote(bits)::unquote(size)-native>>

      def nearest_binary(unquote(name), unquote(type)),
        do: <<unquote(nearest)::unquote(size)-native>>
    end

    def unquote(:"#{name}_binary")(type), do: not_floating!(type)
    def nearest_binary(unquote(name), type), do: not_floating!(type)
  end

  @spec not_floating!(term) :: no_return
  defp not_floating!(type) do
    raise ArgumentError, "only floating types are supported, got: #{inspect(type)}"
  end
end
