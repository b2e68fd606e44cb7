defmodule Ferrox.Ivy.Dtype do
  @moduledoc """
  Ivy's fifteen data types, their names, and which comes before which.

  Ivy writes them as strings. Here they are Ferrox's types, `{:f, 32}` and
  `:bool`, so that they can be given to `Ferrox.as_type/2` and
  `Ferrox.Promotion` as they are; every function takes the strings as well, and
  the short names of `Ferrox.Type`.

  | Ivy | Ferrox | | Ivy | Ferrox |
  | --- | --- | --- | --- | --- |
  | `"int8"` to `"int64"` | `{:s, 8}` to `{:s, 64}` | | `"float16"` to `"float64"` | `{:f, 16}` to `{:f, 64}` |
  | `"uint8"` to `"uint64"` | `{:u, 8}` to `{:u, 64}` | | `"complex64"`, `"complex128"` | `{:c, 64}`, `{:c, 128}` |
  | `"bfloat16"` | `{:bf, 16}` | | `"bool"` | `:bool` |

  The types of Ferrox that Ivy lacks, those of 2 and 4 bits and the floats of 8,
  are refused.
  """

  alias Ferrox.Ivy.{Default, Profile}
  alias Ferrox.Promotion.Names
  alias Ferrox.Type

  @typedoc "A data type."
  @type t :: {:s | :u | :f | :bf | :c, pos_integer} | :bool

  @typedoc "What is taken for one."
  @type name :: t | Type.short_t() | String.t()

  @type class :: :all | :numeric | :int | :uint | :float | :complex

  # In Ivy's order.
  @ints [s: 8, s: 16, s: 32, s: 64]
  @uints [u: 8, u: 16, u: 32, u: 64]
  @floats [bf: 16, f: 16, f: 32, f: 64]
  @complexes [c: 64, c: 128]
  @numeric @ints ++ @uints ++ @floats ++ @complexes
  @all @numeric ++ [:bool]

  @markers [:int, :float, :complex, :bool]

  @doc """
  The data type of a name: Ivy's constructor `Dtype`.

  The names are exact. Python's classes `int`, `float`, `complex` and `bool` are
  the atoms `:int`, `:float`, `:complex` and `:bool`, and stand for the default
  type of their kind.

  The second argument says what kind it has to be, as Ivy's `IntDtype`,
  `UintDtype`, `FloatDtype` and `ComplexDtype` do: `:int` takes unsigned integers
  too.

  ## Examples

      iex> Ferrox.Ivy.Dtype.new!("bfloat16")
      {:bf, 16}
      iex> Ferrox.Ivy.Dtype.new!(:f32)
      {:f, 32}
      iex> Ferrox.Ivy.Dtype.new!(:int)
      {:s, 32}
      iex> Ferrox.Ivy.Dtype.new!("uint8", :int)
      {:u, 8}

      iex> Ferrox.Ivy.Dtype.new!("int8", :uint)
      ** (ArgumentError) int8 is no unsigned integer type, expected one of uint8, uint16, uint32, uint64

      iex> Ferrox.Ivy.Dtype.new!(" float32")
      ** (ArgumentError) unknown data type " float32", expected one of int8, int16, int32, int64, uint8, uint16, uint32, uint64, bfloat16, float16, float32, float64, complex64, complex128, bool

  A type that the backend in effect doesn't have is refused:

      iex> Ferrox.Ivy.Profile.with_backend(:numpy, fn -> Ferrox.Ivy.Dtype.new!("bfloat16") end)
      ** (ArgumentError) numpy 1.26.3 has no data type bfloat16, only int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, float32, float64, complex64, complex128, bool

  """
  @spec new!(name | :int | :float | :complex, class) :: t
  def new!(name, class \\ :all)

  def new!(marker, class) when marker in [:int, :float, :complex] and class in [:all, marker] do
    case marker do
      :int -> Default.default_int_dtype()
      :float -> Default.default_float_dtype()
      :complex -> Default.default_complex_dtype()
    end
  end

  def new!(marker, class) when marker in @markers and class != :all, do: kind!(marker, class)

  def new!(name, class) do
    type = Profile.check!(Profile.current(), known!(name))
    if class == :all, do: type, else: kind!(type, class)
  end

  # As new!/1, whatever the backend.
  @doc false
  @spec known!(term) :: t
  def known!(name) do
    parse(name) ||
      raise ArgumentError,
            "unknown data type #{inspect(name)}, expected one of " <> names(@all)
  end

  @doc false
  @spec parse(term) :: t | nil
  def parse(:bool), do: :bool
  def parse(name) when is_binary(name), do: ivy(Names.from_numpy(name))
  def parse(type), do: ivy(Type.fetch(type))

  defp ivy(type) when type in @all, do: type
  defp ivy(_other), do: nil

  @doc """
  The types of a class, in Ivy's order.

  ## Examples

      iex> Ferrox.Ivy.Dtype.all(:float)
      [{:bf, 16}, {:f, 16}, {:f, 32}, {:f, 64}]
      iex> length(Ferrox.Ivy.Dtype.all())
      15

  """
  @spec all(class) :: [t]
  def all(class \\ :all)
  def all(:all), do: @all
  def all(:numeric), do: @numeric
  def all(:int), do: @ints ++ @uints
  def all(:uint), do: @uints
  def all(:float), do: @floats
  def all(:complex), do: @complexes

  @doc """
  Ivy's name of a data type.

  ## Examples

      iex> Ferrox.Ivy.Dtype.name({:s, 32})
      "int32"

  """
  @spec name(name) :: String.t()
  def name(type), do: Names.numpy(known!(type))

  @doc """
  How many bits an element has: Ivy's `dtype_bits`. A bool has one, although it
  takes a byte.

  ## Examples

      iex> for type <- ["uint16", "complex64", "bool"], do: Ferrox.Ivy.Dtype.bits(type)
      [16, 64, 1]

  """
  @spec bits(name) :: pos_integer
  def bits(type) do
    case known!(type) do
      :bool -> 1
      {_, bits} -> bits
    end
  end

  @doc """
  How two data types compare, by their promotion: `:eq`, or `:gt` if the left one
  holds the right one, else `:lt`.

  That is no order: `int16` and `uint16` are both less than the other. It follows
  the precise mode in effect.

  ## Examples

      iex> Ferrox.Ivy.Dtype.compare("int8", "int16")
      :lt
      iex> {Ferrox.Ivy.Dtype.compare("int16", "uint16"), Ferrox.Ivy.Dtype.compare("uint16", "int16")}
      {:lt, :lt}

  """
  @spec compare(name, name) :: :lt | :eq | :gt
  def compare(left, right) do
    {left, right} = {new!(left), new!(right)}

    cond do
      left == right -> :eq
      Ferrox.Ivy.promote_types(left, right) == left -> :gt
      true -> :lt
    end
  end

  for {name, operator, answers} <- [
        {:less?, "<", [:lt]},
        {:less_equal?, "<=", [:lt, :eq]},
        {:greater?, ">", [:gt]},
        {:greater_equal?, ">=", [:gt, :eq]}
      ] do
    @doc """
    Ivy's operator `#{operator}` on data types, see `compare/2`.

    ## Examples

        iex> Ferrox.Ivy.Dtype.#{name}("int8", "int16")
        #{:lt in answers}
        iex> Ferrox.Ivy.Dtype.#{name}("float64", "float32")
        #{:gt in answers}

    """
    @spec unquote(name)(name, name) :: boolean
    def unquote(name)(left, right), do: compare(left, right) in unquote(answers)
  end

  @kinds [
    int: "integer",
    uint: "unsigned integer",
    float: "float",
    complex: "complex",
    numeric: "numeric"
  ]

  defp kind!(type, class) when class in [:int, :uint, :float, :complex, :numeric] do
    if type in all(class) do
      type
    else
      raise ArgumentError,
            "#{show(type)} is no #{@kinds[class]} type, expected one of " <> names(all(class))
    end
  end

  defp kind!(_type, class) do
    raise ArgumentError,
          "unknown class of data types #{inspect(class)}, expected one of :all, :numeric, :int, " <>
            ":uint, :float, :complex"
  end

  defp show(marker) when is_atom(marker), do: inspect(marker)
  defp show(type), do: name(type)

  defp names(types), do: Enum.map_join(types, ", ", &Names.numpy/1)
end
