defmodule Ferrox.Ivy.Default do
  @moduledoc """
  Which data type results where none is given.

  `default_dtype/1` decides in four steps:

    1. the type that is given, `dtype:`;
    2. else that of the tensor that is given, `item:`;
    3. else that of the number: the default of its kind, unless the number is too
       large for it;
    4. else the global default.

  Five defaults can be set, each a stack of the calling process:

  | | without a setting | |
  | --- | --- | --- |
  | the global default | float32 | `set_default_dtype/1` |
  | of integers | int32 | `set_default_int_dtype/1` |
  | of unsigned integers | uint32 | `set_default_uint_dtype/1` |
  | of floats | float32 | `set_default_float_dtype/1` |
  | of complex numbers | complex64 | `set_default_complex_dtype/1` |

  A global default stands in for that of its kind where that isn't set, and a
  default float for the global one.

  `with_default_dtype/2` and its kin set one while a function runs, and restore it
  also when it raises. The lowest default is configured:

      config :ferrox, ivy: [default_float_dtype: "bfloat16"]

  """

  import Ferrox.Complex, only: [is_complex: 1]

  alias Ferrox.{Complex, Tensor}
  alias Ferrox.Ivy.{Dtype, Scope}

  @typedoc "What a type is told from: a tensor, a number, or lists, tuples and maps of them."
  @type item :: term

  @non_finite [:nan, :infinity, :neg_infinity]

  # What is larger, or nearer to zero, takes 64 bits.
  @largest 3.4028235e38
  @smallest :math.pow(2, -127)

  @doc """
  The data type to use.

  ## Options

    * `:dtype` - the type, if it is known
    * `:item` - a tensor, number or nested list to tell it from

  ## Examples

      iex> Ferrox.Ivy.Default.default_dtype()
      {:f, 32}
      iex> Ferrox.Ivy.Default.default_dtype(dtype: "float16", item: 1)
      {:f, 16}
      iex> Ferrox.Ivy.Default.default_dtype(item: Ferrox.tensor([1, 2], type: :s8))
      {:s, 8}

  Large numbers take a larger type, but for negative integers:

      iex> for item <- [1, 2 ** 31, 2 ** 63, -(2 ** 40), 1.0, 1.0e39, 1.0e-39], do: Ferrox.Ivy.Default.default_dtype(item: item)
      [{:s, 32}, {:s, 64}, {:u, 64}, {:s, 32}, {:f, 32}, {:f, 64}, {:f, 64}]

  In a list a complex number decides, else a float, else an integer. An empty one
  says nothing, and `true` in a list is an integer:

      iex> for item <- [[1, 2.0], [], true, [true]], do: Ferrox.Ivy.Default.default_dtype(item: item)
      [{:f, 32}, {:f, 32}, :bool, {:s, 32}]

  """
  @spec default_dtype(keyword) :: Dtype.t()
  def default_dtype(opts \\ []) do
    opts = options!(opts, [:dtype, :item])

    cond do
      opts[:dtype] != nil -> Dtype.new!(opts[:dtype])
      opts[:item] == nil -> global()
      opts[:item] in [[], {}, %{}] -> global()
      true -> of_item(opts[:item])
    end
  end

  defp of_item(%Tensor{type: type}), do: type

  defp of_item(item) do
    cond do
      kind?(item, :complex) -> default_complex_dtype(input: item)
      kind?(item, :float) -> default_float_dtype(input: item)
      kind?(item, :int) -> default_int_dtype(input: item)
      true -> Dtype.new!(:bool)
    end
  end

  # Whether a number is of that kind, or one inside a list. There true is an
  # integer.
  @doc false
  @spec kind?(item, :bool | :int | :uint | :float | :complex) :: boolean
  def kind?(%Tensor{type: type}, kind), do: of_kind?(type, kind)

  def kind?(item, kind) do
    if nested?(item) do
      Enum.any?(leaves(item), fn
        boolean when is_boolean(boolean) -> kind in [:int, :bool]
        leaf -> kind?(leaf, kind)
      end)
    else
      kind == kind_of(item)
    end
  end

  @doc false
  @spec of_kind?(Dtype.t(), :bool | :int | :uint | :float | :complex) :: boolean
  def of_kind?(type, :bool), do: type == :bool
  def of_kind?(type, kind), do: type in Dtype.all(kind)

  defp kind_of(boolean) when is_boolean(boolean), do: :bool
  defp kind_of(integer) when is_integer(integer), do: :int
  defp kind_of(float) when is_float(float) or float in @non_finite, do: :float
  defp kind_of(complex) when is_complex(complex), do: :complex

  defp kind_of(other) do
    raise ArgumentError,
          "expected a tensor, a number, or lists of them, got: #{inspect(other)}"
  end

  defp nested?(item),
    do: is_list(item) or is_tuple(item) or (is_map(item) and not is_struct(item))

  # The tensors and numbers of nested lists, tuples and maps, from left to right.
  @doc false
  @spec leaves(item) :: list
  def leaves(list) when is_list(list), do: Enum.flat_map(list, &leaves/1)
  def leaves(tuple) when is_tuple(tuple), do: tuple |> Tuple.to_list() |> leaves()
  def leaves(map) when is_map(map) and not is_struct(map), do: map |> Map.values() |> leaves()
  def leaves(leaf), do: [leaf]

  defp global do
    with :error <- Scope.fetch(:default_dtype, &Dtype.new!/1),
         :error <- Scope.fetch(:default_float_dtype, &Dtype.new!(&1, :float)) do
      {:f, 32}
    else
      {:ok, type} -> type
    end
  end

  kinds = [
    {:int, "integers", {:s, 32}, "int8", {:s, 8}, "float32",
     "float32 is no integer type, expected one of int8, int16, int32, int64, uint8, uint16, uint32, uint64",
     [{"2 ** 31", {:s, 64}}, {"2 ** 63", {:u, 64}}]},
    {:uint, "unsigned integers", {:u, 32}, "uint8", {:u, 8}, "int32",
     "int32 is no unsigned integer type, expected one of uint8, uint16, uint32, uint64",
     [{"1", {:u, 32}}, {"2 ** 32", {:u, 64}}]},
    {:float, "floats", {:f, 32}, "float16", {:f, 16}, "int32",
     "int32 is no float type, expected one of bfloat16, float16, float32, float64",
     [{"4294.967346", {:f, 32}}, {"1.0e39", {:f, 64}}]},
    {:complex, "complex numbers", {:c, 64}, "complex128", {:c, 128}, "float32",
     "float32 is no complex type, expected one of complex64, complex128",
     [{"1.0", {:c, 64}}, {"Ferrox.Complex.new(1.0e39, 1.0e39)", {:c, 128}}]}
  ]

  for {kind, plural, fallback, name, type, wrong, message, inputs} <- kinds do
    setting = :"default_#{kind}_dtype"

    @doc """
    The data type of #{plural}: the one given, else that of the tensor or number
    that is given, else the default.

    ## Options

      * `:#{kind}_dtype` - the type, if it is known
      * `:input` - a tensor, number or nested list to tell it from

    ## Examples

        iex> Ferrox.Ivy.Default.#{setting}()
        #{inspect(fallback)}
        iex> Ferrox.Ivy.Default.#{setting}(#{kind}_dtype: #{inspect(name)})
        #{inspect(type)}
    #{for {input, result} <- inputs do
      "    iex> Ferrox.Ivy.Default.#{setting}(input: #{input})\n    #{inspect(result)}\n"
    end}
    """
    @spec unquote(setting)(keyword) :: Dtype.t()
    def unquote(setting)(opts \\ []) do
      opts = options!(opts, [unquote(:"#{kind}_dtype"), :input])
      given = opts[unquote(:"#{kind}_dtype")]

      cond do
        given != nil -> Dtype.new!(given, unquote(kind))
        opts[:input] == nil -> of(unquote(kind))
        true -> of_input(unquote(kind), opts[:input])
      end
    end

    @doc """
    Puts a default type of #{plural} on the calling process's stack, until
    `unset_#{setting}/0`.

    ## Examples

        iex> Ferrox.Ivy.Default.set_#{setting}(#{inspect(name)})
        iex> Ferrox.Ivy.Default.#{setting}()
        #{inspect(type)}
        iex> Ferrox.Ivy.Default.unset_#{setting}()
        iex> Ferrox.Ivy.Default.#{setting}()
        #{inspect(fallback)}

        iex> Ferrox.Ivy.Default.set_#{setting}(#{inspect(wrong)})
        ** (ArgumentError) #{message}

    """
    @spec unquote(:"set_#{setting}")(Dtype.name()) :: :ok
    def unquote(:"set_#{setting}")(type),
      do: Scope.push(unquote(setting), Dtype.new!(type, unquote(kind)))

    @doc """
    Takes the last default type of #{plural} off the stack; harmless where there is none.

    ## Examples

        iex> Ferrox.Ivy.Default.unset_#{setting}()
        :ok

    """
    @spec unquote(:"unset_#{setting}")() :: :ok
    def unquote(:"unset_#{setting}")(), do: Scope.pop(unquote(setting))

    @doc """
    Runs the function with a default type of #{plural}: Ivy's context manager
    `Default#{kind |> Atom.to_string() |> String.capitalize()}Dtype`.

    ## Examples

        iex> Ferrox.Ivy.Default.with_#{setting}(#{inspect(name)}, fn -> Ferrox.Ivy.Default.#{setting}() end)
        #{inspect(type)}

    """
    @spec unquote(:"with_#{setting}")(Dtype.name(), fun) :: term
    def unquote(:"with_#{setting}")(type, fun),
      do: Scope.run(unquote(setting), Dtype.new!(type, unquote(kind)), fun)

    # What is set for the kind, else a global default of it, else the fallback.
    defp of(unquote(kind)) do
      with :error <- Scope.fetch(unquote(setting), &Dtype.new!(&1, unquote(kind))) do
        default = global()
        if of_kind?(default, unquote(kind)), do: default, else: unquote(Macro.escape(fallback))
      else
        {:ok, type} -> type
      end
    end
  end

  @doc """
  Puts a global default on the calling process's stack, until `unset_default_dtype/0`.

  ## Examples

      iex> Ferrox.Ivy.Default.set_default_dtype("int16")
      iex> for item <- [nil, 1, 1.0, []], do: Ferrox.Ivy.Default.default_dtype(item: item)
      [{:s, 16}, {:s, 16}, {:f, 32}, {:s, 16}]
      iex> Ferrox.Ivy.Default.unset_default_dtype()
      iex> Ferrox.Ivy.Default.default_dtype()
      {:f, 32}

  """
  @spec set_default_dtype(Dtype.name()) :: :ok
  def set_default_dtype(type), do: Scope.push(:default_dtype, Dtype.new!(type))

  @doc """
  Takes the last global default off the stack; harmless where there is none.

  ## Examples

      iex> Ferrox.Ivy.Default.unset_default_dtype()
      :ok

  """
  @spec unset_default_dtype() :: :ok
  def unset_default_dtype, do: Scope.pop(:default_dtype)

  @doc """
  Runs the function with a global default: Ivy's context manager `DefaultDtype`.

  ## Examples

      iex> Ferrox.Ivy.Default.with_default_float_dtype("float16", fn ->
      ...>   Ferrox.Ivy.Default.with_default_dtype("int16", fn ->
      ...>     {Ferrox.Ivy.Default.default_dtype(), Ferrox.Ivy.Default.default_float_dtype()}
      ...>   end)
      ...> end)
      {{:s, 16}, {:f, 16}}

  """
  @spec with_default_dtype(Dtype.name(), fun) :: term
  def with_default_dtype(type, fun), do: Scope.run(:default_dtype, Dtype.new!(type), fun)

  @doc """
  The default of the kind that a data type is of.

  ## Examples

      iex> for type <- ["int8", "uint8", "bfloat16", "complex128", "bool"], do: Ferrox.Ivy.Default.infer_default_dtype(type)
      [{:s, 32}, {:u, 32}, {:f, 32}, {:c, 64}, :bool]

  """
  @spec infer_default_dtype(Dtype.name()) :: Dtype.t()
  def infer_default_dtype(type) do
    case Dtype.new!(type) do
      :bool -> :bool
      {:s, _} -> default_int_dtype()
      {:u, _} -> default_uint_dtype()
      {:c, _} -> default_complex_dtype()
      _float -> default_float_dtype()
    end
  end

  @doc """
  The data type that a function with a `dtype:` works in, from its arguments:
  Ivy's wrapper `infer_dtype`.

  It is the type given, else that of the first tensor, in nested lists too, else
  the global default. Numbers have no say, since many of them are axes and sizes:
  a function whose number does count, such as `full`, asks `default_dtype/1`
  itself.

  ## Examples

      iex> Ferrox.Ivy.Default.infer_dtype([1, [Ferrox.tensor([1], type: :s8)]])
      {:s, 8}
      iex> Ferrox.Ivy.Default.infer_dtype([1])
      {:f, 32}
      iex> Ferrox.Ivy.Default.infer_dtype([Ferrox.tensor([1], type: :s8)], dtype: "float64")
      {:f, 64}

  """
  @spec infer_dtype([term], keyword) :: Dtype.t()
  def infer_dtype(args, opts \\ []) do
    {given, rest} = Keyword.pop(options!(opts, :any), :dtype)
    tensor = Enum.find(leaves([args, Keyword.values(rest)]), &is_struct(&1, Tensor))
    default_dtype(dtype: given, item: tensor)
  end

  ## The type of an input under the default of a kind

  defp of_input(_kind, %Tensor{type: type}), do: type

  defp of_input(kind, input) do
    leaves = leaves(input)

    cond do
      kind == :int and Enum.any?(leaves, &over?(&1, 0x7FFF_FFFF_FFFF_FFFF, {:u, 64})) -> {:u, 64}
      kind == :int and Enum.any?(leaves, &over?(&1, 0x7FFF_FFFF, {:s, 64})) -> {:s, 64}
      kind == :uint and Enum.any?(leaves, &over?(&1, 0xFFFF_FFFF, {:u, 64})) -> {:u, 64}
      kind == :float and Enum.any?(leaves, &wide?/1) -> {:f, 64}
      kind == :complex and Enum.any?(leaves, &wide_complex?/1) -> {:c, 128}
      true -> of(kind)
    end
  end

  defp over?(%Tensor{type: type}, _bound, wide), do: type == wide
  defp over?(number, bound, _wide) when is_number(number), do: number > bound
  defp over?(_other, _bound, _wide), do: false

  defp wide?(%Tensor{type: type}), do: type == {:f, 64}

  defp wide?(number) when is_number(number),
    do: abs(number) > @largest or (number != 0 and abs(number) < @smallest)

  defp wide?(_other), do: false

  defp wide_complex?(%Tensor{type: type}), do: type == {:c, 128}

  defp wide_complex?(complex) when is_complex(complex) do
    {re, im} = Complex.parts(complex)
    wide?(re) and wide?(im)
  end

  defp wide_complex?(_other), do: false

  defp options!(opts, known) do
    cond do
      not Keyword.keyword?(opts) ->
        raise ArgumentError, "expected a keyword list of options, got: #{inspect(opts)}"

      known == :any or Keyword.keys(opts) -- known == [] ->
        opts

      true ->
        raise ArgumentError,
              "unknown option #{inspect(hd(Keyword.keys(opts) -- known))}, expected one of " <>
                Enum.map_join(known, ", ", &inspect/1)
    end
  end
end
