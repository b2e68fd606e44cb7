defmodule Ferrox.Type do
  @moduledoc since: "0.1.0"
  @moduledoc """
  The types of tensors, and functions about types.

  A type is a tuple of its kind and its size in bits:

    * `:s` - signed integer (2, 4, 8, 16, 32, 64)
    * `:u` - unsigned integer (2, 4, 8, 16, 32, 64)
    * `:f` - float (8, 16, 32, 64); the float of 8 bits has the format E5M2
    * `:f8_e4m3fn` - float with the format E4M3FN, which is more precise than E5M2 and has no
      infinities (8)
    * `:bf` - float with the range of `{:f, 32}` (16)
    * `:c` - complex number, a pair of floats (64, 128)

  Each type has a short name: `:u8` for `{:u, 8}`, and `:f8_e4m3fn` for `{:f8_e4m3fn, 8}`.
  `normalize!/2` takes both forms, all other functions take the tuple.

  ## Versions of Nx

  The functions have the results and errors of `Nx.Type` in Nx 0.9. Nx 0.13 differs from Nx 0.9 in
  two points. The functions concerned take the promotion system (see `Ferrox.Promotion`) as their
  last argument: `:nx_0_9` for Nx 0.9, or `:nx` for Nx 0.13.

    * `merge/3` of `{:f, 64}` with `{:c, 64}` gives `{:c, 64}` in Nx 0.9, the default here, and
      `{:c, 128}` in later releases.
    * Nx 0.9 doesn't have `{:f8_e4m3fn, 8}`. So `merge/3` and `merge_number/3` only accept it under
      `:nx`. `normalize!/2` accepts every type of Ferrox by default, and refuses `{:f8_e4m3fn, 8}`
      under `:nx_0_9`. All other functions have the results of Nx 0.13 for it.

  The functions of `Ferrox` itself promote under `:nx`.

  ## Constants

  The functions whose names end in `_binary` return the data of one element in native byte order.
  Their values are those of Nx, and some of them are not the nearest value of the type;
  `nearest_binary/2` returns the nearest one.
  """

  import Bitwise
  import Ferrox.Complex, only: [is_complex: 1]

  alias Ferrox.Promotion

  @typedoc "A type as a tuple of its kind and its size in bits."
  @type t ::
          {:s, 2 | 4 | 8 | 16 | 32 | 64}
          | {:u, 2 | 4 | 8 | 16 | 32 | 64}
          | {:f, 8 | 16 | 32 | 64}
          | {:f8_e4m3fn, 8}
          | {:bf, 16}
          | {:c, 64 | 128}

  @typedoc "The short name of a type."
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
  Returns the type as a tuple, given a tuple or a short name.

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

    # A shortcut: :nx has every type.
    if known && (system == :nx or known in Promotion.types(system)) do
      known
    else
      raise ArgumentError,
            "invalid numerical type: #{inspect(type)} (see Nx.Type docs for all supported types)"
    end
  end

  # The same as normalize!/1, but returns nil instead of raising.
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
  Returns the type of a number on its own.

  The type of integers is `{:s, 32}`, whatever their size.

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
  Returns the type that two types promote to.

  Two types of one kind give the wider one. Two types of different kinds give the one of the higher
  kind, whatever the sizes:

      c > f > bf > s > u

  The exception is an unsigned with a signed type: they give a signed type with twice the size of
  the unsigned one, at most 64 bits, or the signed type if it is wider.

  `system` is the promotion system, see the documentation of the module.

  ## Examples

      iex> Ferrox.Type.merge({:u, 8}, {:s, 8})
      {:s, 16}
      iex> Ferrox.Type.merge({:u, 64}, {:f, 32})
      {:f, 32}
      iex> Ferrox.Type.merge({:s, 64}, {:bf, 16})
      {:bf, 16}
      iex> Ferrox.Type.merge({:f, 32}, {:bf, 16})
      {:f, 32}
      iex> Ferrox.Type.merge({:c, 64}, {:f, 32})
      {:c, 64}

      iex> Ferrox.Type.merge({:f, 64}, {:c, 64})
      {:c, 64}
      iex> Ferrox.Type.merge({:f, 64}, {:c, 64}, :nx)
      {:c, 128}

  """
  @spec merge(t, t, Promotion.system()) :: t
  def merge({left_kind, _} = left, {right_kind, _} = right, system \\ :nx_0_9)
      when left_kind in @kinds and right_kind in @kinds,
      do: Promotion.merge(system, left, right)

  @doc """
  Returns the type that a type and a number promote to.

  With an integer, an integer type is widened until it holds the number, up to 64 bits, and becomes
  signed if the number is negative. With a float, an integer type becomes `{:f, 32}`. Float and
  complex types stay as they are with any number.

  `system` is the promotion system, see the documentation of the module.

  ## Examples

      iex> Ferrox.Type.merge_number({:u, 8}, 255)
      {:u, 8}
      iex> Ferrox.Type.merge_number({:u, 8}, 256)
      {:u, 16}
      iex> Ferrox.Type.merge_number({:u, 8}, -1)
      {:s, 16}
      iex> Ferrox.Type.merge_number({:s, 8}, 128)
      {:s, 16}
      iex> Ferrox.Type.merge_number({:s, 8}, 1.0)
      {:f, 32}
      iex> Ferrox.Type.merge_number({:u, 64}, -1337)
      {:s, 64}
      iex> Ferrox.Type.merge_number({:f, 32}, 1)
      {:f, 32}

  When widening, sizes below 8 bits are left out:

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
  Converts the number to the kind of the type.

  The function doesn't check whether the number is in the range of the type.

  ## Examples

      iex> Ferrox.Type.cast_number!({:u, 8}, 10)
      10
      iex> Ferrox.Type.cast_number!({:s, 8}, -10)
      -10
      iex> Ferrox.Type.cast_number!({:f, 32}, 10)
      10.0

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
  Returns the type in which sums of the type are accumulated.

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
  Returns the real or complex float type for the type: integers become `{:f, 32}`, other types stay.

  ## Examples

      iex> Ferrox.Type.to_floating({:s, 8})
      {:f, 32}
      iex> Ferrox.Type.to_floating({:bf, 16})
      {:bf, 16}
      iex> Ferrox.Type.to_floating({:c, 64})
      {:c, 64}

  """
  @spec to_floating(t) :: t
  def to_floating({kind, _}) when kind in [:u, :s], do: {:f, 32}
  def to_floating({kind, _} = type) when kind in @kinds, do: type

  @doc """
  Returns the real float type for the type: integers become `{:f, 32}`, and complex types the type of
  their parts.

  ## Examples

      iex> Ferrox.Type.to_real({:s, 8})
      {:f, 32}
      iex> Ferrox.Type.to_real({:bf, 16})
      {:bf, 16}
      iex> Ferrox.Type.to_real({:c, 64})
      {:f, 32}
      iex> Ferrox.Type.to_real({:c, 128})
      {:f, 64}

  """
  @spec to_real(t) :: t
  def to_real({:c, size}), do: {:f, div(size, 2)}
  def to_real(type), do: to_floating(type)

  @doc """
  Returns the complex type for the type: `{:f, 64}` becomes `{:c, 128}`, complex types stay, and all
  others become `{:c, 64}`.

  ## Examples

      iex> Ferrox.Type.to_complex({:s, 64})
      {:c, 64}
      iex> Ferrox.Type.to_complex({:bf, 16})
      {:c, 64}
      iex> Ferrox.Type.to_complex({:c, 64})
      {:c, 64}
      iex> Ferrox.Type.to_complex({:f, 64})
      {:c, 128}

  """
  @spec to_complex(t) :: t
  def to_complex({:c, size}), do: {:c, size}
  def to_complex({:f, 64}), do: {:c, 128}
  def to_complex({kind, _}) when kind in @kinds, do: {:c, 64}

  @doc """
  Returns the short name of the type as a string.

  ## Examples

      iex> Ferrox.Type.to_string({:s, 8})
      "s8"
      iex> Ferrox.Type.to_string({:bf, 16})
      "bf16"
      iex> Ferrox.Type.to_string({:f, 32})
      "f32"
      iex> Ferrox.Type.to_string({:f8_e4m3fn, 8})
      "f8_e4m3fn"

  """
  @spec to_string(t) :: String.t()
  def to_string({:f8_e4m3fn, 8}), do: "f8_e4m3fn"
  def to_string({kind, size}), do: Atom.to_string(kind) <> Integer.to_string(size)

  @doc """
  Returns whether the type is an integer type, signed or unsigned.

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
  Returns whether the type is a real or complex float type.

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
  Returns whether the type is complex.

  ## Examples

      iex> Ferrox.Type.complex?({:c, 64})
      true
      iex> Ferrox.Type.complex?({:f, 64})
      false

  """
  @spec complex?(t) :: boolean
  def complex?({kind, _}), do: kind == :c

  @doc """
  Returns whether the type has infinities. `Nx.Type` has this function since Nx 0.11.

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

  # The special values of the float formats, from the numbers of exponent and mantissa bits.
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

  # In E4M3FN, the largest exponent belongs to ordinary values, except for one NaN. Where this type
  # has no infinity, Nx uses the largest finite value.
  e4m3fn = %{
    type: {:f8_e4m3fn, 8},
    max_finite: 0x7E,
    infinity: 0x7E,
    nan: 0x7F,
    smallest_normal: 0x08
  }

  formats = [e4m3fn | formats]

  @doc """
  Returns the smallest finite value of a real type.

  ## Examples

      iex> Ferrox.Type.min_finite_binary({:s, 8})
      <<-128::signed>>
      iex> Ferrox.Type.min_finite_binary({:f, 32})
      <<-3.4028234663852886e38::float-32-native>>

  """
  @spec min_finite_binary(t) :: bitstring
  def min_finite_binary(type)

  @doc """
  Returns the largest finite value of a real type.

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
  Returns the smallest value of a real type: negative infinity if the type has one, else the smallest
  finite value.

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
  Returns the largest value of a real type: infinity if the type has one, else the largest finite
  value.

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
  Returns infinity in a real float type, or the largest finite value if the type has no infinity.

  ## Examples

      iex> Ferrox.Type.infinity_binary({:f, 32})
      <<0x7F800000::32-native>>

  """
  @spec infinity_binary(t) :: binary
  def infinity_binary(type)

  @doc """
  Returns negative infinity in a real float type, or the smallest finite value if the type has no
  infinity.

  ## Examples

      iex> Ferrox.Type.neg_infinity_binary({:f, 32})
      <<0xFF800000::32-native>>

  """
  @spec neg_infinity_binary(t) :: binary
  def neg_infinity_binary(type)

  @doc """
  Returns NaN in a real float type.

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
  Returns the smallest positive normal value of a real float type.

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

  def smallest_positive_normal_binary(type), do: raise_not_floating!(type)

  # `{type, the bits in Nx, the bits of the nearest value}`. Nx truncates e and γ in bf16, and γ in
  # f8. For f8_e4m3fn, Nx has a wrong epsilon, and the bits of f8 for π, e and γ.
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
  Returns the distance from 1 to the next larger value of a real float type.

  The value in `{:f8_e4m3fn, 8}` is wrong, as in Nx, see `nearest_binary/2`.

  ## Examples

      iex> Ferrox.Type.epsilon_binary({:f, 64})
      <<2.220446049250313e-16::float-64-native>>

      iex> Ferrox.Type.epsilon_binary({:s, 32})
      ** (ArgumentError) only floating types are supported, got: {:s, 32}

  """
  @spec epsilon_binary(t) :: binary
  def epsilon_binary(type)

  @doc """
  Returns π in a real float type.

  The value in `{:f8_e4m3fn, 8}` is wrong, as in Nx, see `nearest_binary/2`.

  ## Examples

      iex> Ferrox.Type.pi_binary({:f, 64})
      <<3.141592653589793::float-64-native>>

  """
  @spec pi_binary(t) :: binary
  def pi_binary(type)

  @doc """
  Returns e, the base of the natural logarithm, in a real float type.

  The value in `{:f8_e4m3fn, 8}` is wrong, and the value in `{:bf, 16}` is truncated, as in Nx, see
  `nearest_binary/2`.

  ## Examples

      iex> Ferrox.Type.e_binary({:f, 64})
      <<2.718281828459045::float-64-native>>

  """
  @spec e_binary(t) :: binary
  def e_binary(type)

  @doc """
  Returns γ, the Euler-Mascheroni constant, in a real float type.

  The value in `{:f8_e4m3fn, 8}` is wrong, and the values in `{:f, 8}` and `{:bf, 16}` are truncated,
  as in Nx, see `nearest_binary/2`.

  ## Examples

      iex> Ferrox.Type.euler_gamma_binary({:f, 64})
      <<0.5772156649015329::float-64-native>>

  """
  @spec euler_gamma_binary(t) :: binary
  def euler_gamma_binary(type)

  @doc """
  Returns the value of a real float type that is nearest to a constant.

  The function of the constant (such as `e_binary/1`) returns the same value, with seven exceptions:
  all four values of `{:f8_e4m3fn, 8}`, and the three values of `{:f, 8}` and `{:bf, 16}` that Nx
  truncates.

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

    def unquote(:"#{name}_binary")(type), do: raise_not_floating!(type)
    def nearest_binary(unquote(name), type), do: raise_not_floating!(type)
  end

  @spec raise_not_floating!(term) :: no_return
  defp raise_not_floating!(type) do
    raise ArgumentError, "only floating types are supported, got: #{inspect(type)}"
  end
end
