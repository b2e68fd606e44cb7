defmodule Ferrox.Ivy.Dtype do
  @moduledoc since: "0.1.0"
  @moduledoc """
  Ivy's fifteen data types, their names, and their comparison.

  In Ivy, data types are strings. Here they are Ferrox's types, `{:f, 32}` and `:bool`, so that
  `Ferrox.as_type/2` and `Ferrox.Promotion` accept them. Every function also takes Ivy's strings, and
  the short names of `Ferrox.Type`.

  | Ivy | Ferrox | | Ivy | Ferrox |
  | --- | --- | --- | --- | --- |
  | `"int8"` to `"int64"` | `{:s, 8}` to `{:s, 64}` | | `"float16"` to `"float64"` | `{:f, 16}` to `{:f, 64}` |
  | `"uint8"` to `"uint64"` | `{:u, 8}` to `{:u, 64}` | | `"complex64"`, `"complex128"` | `{:c, 64}`, `{:c, 128}` |
  | `"bfloat16"` | `{:bf, 16}` | | `"bool"` | `:bool` |

  Ferrox's types that Ivy doesn't have are refused: integers of 2 and 4 bits, and floats of 8 bits.
  """

  alias Ferrox.Ivy.{Default, Profile}
  alias Ferrox.Promotion.Names
  alias Ferrox.Type

  @typedoc "A data type."
  @type t :: {:s | :u | :f | :bf | :c, pos_integer} | :bool

  @typedoc "The forms in which a data type can be given."
  @type name :: t | Type.short_t() | String.t()

  @typedoc "A class of data types."
  @type class :: :all | :numeric | :int | :uint | :float | :complex

  # The types in Ivy's order.
  @ints [s: 8, s: 16, s: 32, s: 64]
  @uints [u: 8, u: 16, u: 32, u: 64]
  @floats [bf: 16, f: 16, f: 32, f: 64]
  @complexes [c: 64, c: 128]
  @numeric @ints ++ @uints ++ @floats ++ @complexes
  @all @numeric ++ [:bool]

  # The classes, their names in error messages, and their types.
  @classes [
    all: {"", @all},
    numeric: {"numeric", @numeric},
    int: {"integer", @ints ++ @uints},
    uint: {"unsigned integer", @uints},
    float: {"float", @floats},
    complex: {"complex", @complexes}
  ]

  @doc """
  Returns the data type with a name: Ivy's constructor `Dtype`.

  The name must match exactly. The atoms `:int`, `:float`, `:complex` and `:bool` are Python's classes
  `int`, `float`, `complex` and `bool`, and stand for the default type of their kind.

  The second argument is the class that the type must have, as in Ivy's constructors `IntDtype`,
  `UintDtype`, `FloatDtype` and `ComplexDtype`. The class `:int` includes unsigned integers.

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

  A type that the backend in effect doesn't have raises:

      iex> Ferrox.Ivy.Profile.with_backend(:numpy, fn -> Ferrox.Ivy.Dtype.new!("bfloat16") end)
      ** (ArgumentError) numpy 1.26.3 has no data type bfloat16, only int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, float32, float64, complex64, complex128, bool

  """
  @spec new!(name | :int | :float | :complex, class) :: t
  def new!(name, class \\ :all)

  def new!(python_class, class)
      when python_class in [:int, :float, :complex] and class in [:all, python_class] do
    case python_class do
      :int -> Default.default_int_dtype()
      :float -> Default.default_float_dtype()
      :complex -> Default.default_complex_dtype()
    end
  end

  def new!(python_class, class)
      when python_class in [:int, :float, :complex, :bool] and class != :all,
      do: check_class!(python_class, class)

  def new!(name, class),
    do: Profile.current() |> Profile.check!(known!(name)) |> check_class!(class)

  # Like new!/1, but also for a type that the backend doesn't have.
  @doc false
  @spec known!(term) :: t
  def known!(name) do
    parse(name) ||
      raise ArgumentError,
            "unknown data type #{inspect(name)}, expected one of " <> names(@all)
  end

  # The type with a name, or nil if the term names no type of Ivy.
  @doc false
  @spec parse(term) :: t | nil
  def parse(:bool), do: :bool

  def parse(name) do
    type = if is_binary(name), do: Names.from_numpy(name), else: Type.fetch(name)
    if type in @all, do: type
  end

  @doc """
  Returns the types of a class, in Ivy's order.

  ## Examples

      iex> Ferrox.Ivy.Dtype.all(:float)
      [{:bf, 16}, {:f, 16}, {:f, 32}, {:f, 64}]
      iex> length(Ferrox.Ivy.Dtype.all())
      15

  """
  @spec all(class) :: [t]
  def all(class \\ :all)

  for {class, {_name, types}} <- @classes do
    def all(unquote(class)), do: unquote(types)
  end

  def all(other) do
    raise ArgumentError,
          "unknown class of data types #{inspect(other)}, expected one of " <>
            Enum.map_join(classes(), ", ", &inspect/1)
  end

  @doc false
  @spec classes() :: [class]
  def classes, do: unquote(Keyword.keys(@classes))

  @doc """
  Returns Ivy's name of a data type.

  ## Examples

      iex> Ferrox.Ivy.Dtype.name({:s, 32})
      "int32"

  """
  @spec name(name) :: String.t()
  def name(type), do: Names.numpy(known!(type))

  @doc """
  Returns the number of bits of an element: Ivy's `dtype_bits`. A bool has one bit, although it is
  stored in a byte.

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
  Compares two data types by their promotion. Returns `:eq` for equal types, `:gt` if they promote to
  the left one, else `:lt`.

  This comparison is not an order: `int16` is less than `uint16`, and `uint16` is less than `int16`.
  It depends on the precise mode in effect.

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

  defp check_class!(type, class) do
    types = all(class)

    unless type in types do
      text = if is_atom(type), do: inspect(type), else: name(type)
      {class_name, _types} = @classes[class]

      raise ArgumentError, "#{text} is no #{class_name} type, expected one of " <> names(types)
    end

    type
  end

  defp names(types), do: Enum.map_join(types, ", ", &Names.numpy/1)
end
