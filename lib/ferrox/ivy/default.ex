defmodule Ferrox.Ivy.Default do
  @moduledoc since: "0.1.0"
  @moduledoc """
  Finds the data type where none is given.

  `default_dtype/1` returns the first of these that applies:

    1. the type that is given as `dtype:`;
    2. the type of the tensor that is given as `item:`;
    3. the type of the number that is given as `item:`: the default of its kind, or a wider type if
       the number is too large for it;
    4. the global default.

  There are five defaults. Each can be set, and has its own stack in the calling process:

  | default | without a setting | setter |
  | --- | --- | --- |
  | global | float32 | `set_default_dtype/1` |
  | of integers | int32 | `set_default_int_dtype/1` |
  | of unsigned integers | uint32 | `set_default_uint_dtype/1` |
  | of floats | float32 | `set_default_float_dtype/1` |
  | of complex numbers | complex64 | `set_default_complex_dtype/1` |

  If the default of a kind isn't set, the global default is used for it, provided it is set to a type
  of this kind. If the global default isn't set, the default of floats is used for it.

  `with_default_dtype/2` and the similar functions set a default while a function runs, and restore
  the previous one at the end, also if the function raises.

      iex> alias Ferrox.Ivy.Default
      iex> Default.with_default_float_dtype("float16", fn ->
      ...>   Default.with_default_dtype("int16", fn ->
      ...>     for item <- [nil, 1, 1.0, []], do: Default.default_dtype(item: item)
      ...>   end)
      ...> end)
      [{:s, 16}, {:s, 16}, {:f, 16}, {:s, 16}]

  The application's configuration sets the default below all stacks:

      config :ferrox, ivy: [default_float_dtype: "bfloat16"]

  """

  import Ferrox.Complex, only: [is_complex: 1]

  alias Ferrox.{Complex, Tensor}
  alias Ferrox.Ivy.{Dtype, Scope}

  @typedoc "A value that determines a type: a tensor, a number, or lists, tuples and maps of them."
  @type item :: term

  @non_finite [:nan, :infinity, :neg_infinity]

  # Numbers with a magnitude outside of these limits take a type with parts of 64 bits.
  @max_f32_magnitude 3.4028235e38
  @min_f32_magnitude :math.pow(2, -127)

  @doc """
  Returns the data type to use.

  ## Options

    * `:dtype` - the type, if it is known
    * `:item` - a tensor, number or nested list that determines the type

  ## Examples

      iex> Ferrox.Ivy.Default.default_dtype()
      {:f, 32}
      iex> Ferrox.Ivy.Default.default_dtype(dtype: "float16", item: 1)
      {:f, 16}
      iex> Ferrox.Ivy.Default.default_dtype(item: Ferrox.tensor([1, 2], type: :s8))
      {:s, 8}

  Large numbers take a wider type, except for negative integers:

      iex> for item <- [1, 2 ** 31, 2 ** 63, -(2 ** 40), 1.0, 1.0e39, 1.0e-39], do: Ferrox.Ivy.Default.default_dtype(item: item)
      [{:s, 32}, {:s, 64}, {:u, 64}, {:s, 32}, {:f, 32}, {:f, 64}, {:f, 64}]

  In a list, complex numbers take precedence over floats, and floats over integers. An empty list
  gives the global default, and `true` in a list is an integer:

      iex> for item <- [[1, 2.0], [], true, [true]], do: Ferrox.Ivy.Default.default_dtype(item: item)
      [{:f, 32}, {:f, 32}, :bool, {:s, 32}]

  """
  @spec default_dtype(keyword) :: Dtype.t()
  def default_dtype(opts \\ []) do
    opts = options!(opts, [:dtype, :item])

    cond do
      opts[:dtype] != nil -> Dtype.new!(opts[:dtype])
      opts[:item] in [nil, [], {}, %{}] -> global_default()
      true -> type_of_item(opts[:item])
    end
  end

  defp type_of_item(%Tensor{type: type}), do: type

  defp type_of_item(item) do
    cond do
      kind?(item, :complex) -> default_complex_dtype(input: item)
      kind?(item, :float) -> default_float_dtype(input: item)
      kind?(item, :int) -> default_int_dtype(input: item)
      true -> Dtype.new!(:bool)
    end
  end

  # Whether a number, or any number in a nested list, has the kind. In a list, a boolean is both an
  # integer and a bool.
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

  defp kind_of(other),
    do:
      raise(
        ArgumentError,
        "expected a tensor, a number, or lists of them, got: #{inspect(other)}"
      )

  defp nested?(item),
    do: is_list(item) or is_tuple(item) or (is_map(item) and not is_struct(item))

  # The tensors and numbers in nested lists, tuples and maps, from left to right.
  @doc false
  @spec leaves(item) :: list
  def leaves(list) when is_list(list), do: Enum.flat_map(list, &leaves/1)
  def leaves(tuple) when is_tuple(tuple), do: tuple |> Tuple.to_list() |> leaves()
  def leaves(map) when is_map(map) and not is_struct(map), do: map |> Map.values() |> leaves()
  def leaves(leaf), do: [leaf]

  defp global_default do
    Scope.get(:default_dtype, &Dtype.new!/1) ||
      Scope.get(:default_float_dtype, {:f, 32}, &Dtype.new!(&1, :float))
  end

  # The kinds: the default without a setting, another type, and examples of inputs.
  kinds = [
    {:int, "integers", {:s, 32}, {:s, 8}, [{"2 ** 31", {:s, 64}}, {"2 ** 63", {:u, 64}}]},
    {:uint, "unsigned integers", {:u, 32}, {:u, 8}, [{"1", {:u, 32}}, {"2 ** 32", {:u, 64}}]},
    {:float, "floats", {:f, 32}, {:f, 16}, [{"4294.967346", {:f, 32}}, {"1.0e39", {:f, 64}}]},
    {:complex, "complex numbers", {:c, 64}, {:c, 128},
     [{"1.0", {:c, 64}}, {"Ferrox.Complex.new(1.0e39, 1.0e39)", {:c, 128}}]}
  ]

  for {kind, plural, fallback, other, inputs} <- kinds do
    setting = :"default_#{kind}_dtype"
    option = :"#{kind}_dtype"

    @doc """
    Returns the data type of #{plural}: the given type, else the type of the given tensor or number,
    else the default.

    ## Options

      * `:#{option}` - the type, if it is known
      * `:input` - a tensor, number or nested list that determines the type

    ## Examples

        iex> Ferrox.Ivy.Default.#{setting}()
        #{inspect(fallback)}
        iex> Ferrox.Ivy.Default.#{setting}(#{option}: #{inspect(Dtype.name(other))})
        #{inspect(other)}
    #{for {input, type} <- inputs do
      "    iex> Ferrox.Ivy.Default.#{setting}(input: #{input})\n    #{inspect(type)}\n"
    end}
    """
    @spec unquote(setting)(keyword) :: Dtype.t()
    def unquote(setting)(opts \\ []) do
      opts = options!(opts, [unquote(option), :input])

      cond do
        opts[unquote(option)] != nil -> Dtype.new!(opts[unquote(option)], unquote(kind))
        opts[:input] == nil -> default_of_kind(unquote(kind))
        true -> type_of_input(unquote(kind), opts[:input])
      end
    end

    # The default that is set for the kind, else the global default if it has the kind.
    defp default_of_kind(unquote(kind)) do
      with nil <- Scope.get(unquote(setting), &Dtype.new!(&1, unquote(kind))) do
        default = global_default()
        if of_kind?(default, unquote(kind)), do: default, else: unquote(fallback)
      end
    end
  end

  settings =
    for {kind, plural, fallback, other, _inputs} <- kinds do
      ivy_name = "Default#{kind |> Atom.to_string() |> String.capitalize()}Dtype"
      {kind, :"default_#{kind}_dtype", "default type of #{plural}", fallback, other, ivy_name}
    end

  for {class, setting, text, fallback, other, ivy_name} <-
        [{:all, :default_dtype, "global default", {:f, 32}, {:s, 16}, "DefaultDtype"} | settings] do
    name = inspect(Dtype.name(other))

    @doc """
    Pushes a #{text} on the stack of the calling process. `unset_#{setting}/0` removes it. Raises for
    a type of another kind, as `Ferrox.Ivy.Dtype.new!/2` does.

    ## Examples

        iex> Ferrox.Ivy.Default.set_#{setting}(#{name})
        iex> Ferrox.Ivy.Default.#{setting}()
        #{inspect(other)}
        iex> Ferrox.Ivy.Default.unset_#{setting}()
        iex> Ferrox.Ivy.Default.#{setting}()
        #{inspect(fallback)}

    """
    @spec unquote(:"set_#{setting}")(Dtype.name()) :: :ok
    def unquote(:"set_#{setting}")(type),
      do: Scope.push(unquote(setting), Dtype.new!(type, unquote(class)))

    @doc """
    Removes the last #{text} from the stack of the calling process. Does nothing if the stack is
    empty.

    ## Examples

        iex> Ferrox.Ivy.Default.unset_#{setting}()
        :ok

    """
    @spec unquote(:"unset_#{setting}")() :: :ok
    def unquote(:"unset_#{setting}")(), do: Scope.pop(unquote(setting))

    @doc """
    Runs the function while a #{text} is in effect: Ivy's context manager `#{ivy_name}`.

    ## Examples

        iex> Ferrox.Ivy.Default.with_#{setting}(#{name}, &Ferrox.Ivy.Default.#{setting}/0)
        #{inspect(other)}

    """
    @spec unquote(:"with_#{setting}")(Dtype.name(), fun) :: term
    def unquote(:"with_#{setting}")(type, fun),
      do: Scope.run(unquote(setting), Dtype.new!(type, unquote(class)), fun)
  end

  @doc """
  Returns the default type of the same kind as a data type.

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
  Returns the data type in which a function with the option `dtype:` computes, from its arguments:
  Ivy's wrapper `infer_dtype`.

  The type is the given one, else the type of the first tensor, also in nested lists, else the
  global default. Numbers are ignored, because many of them are axes and sizes: `full` and the like
  call `default_dtype/1` themselves.

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

  # The types that are wider than the default of a kind, with the largest integer that the next
  # narrower type holds.
  @wide_types [
    int: [{{:u, 64}, 0x7FFF_FFFF_FFFF_FFFF}, {{:s, 64}, 0x7FFF_FFFF}],
    uint: [{{:u, 64}, 0xFFFF_FFFF}],
    float: [{{:f, 64}, nil}],
    complex: [{{:c, 128}, nil}]
  ]

  defp type_of_input(_kind, %Tensor{type: type}), do: type

  defp type_of_input(kind, input) do
    leaves = leaves(input)

    Enum.find_value(@wide_types[kind], fn {type, bound} ->
      if Enum.any?(leaves, &needs?(&1, type, bound)), do: type
    end) || default_of_kind(kind)
  end

  defp needs?(%Tensor{type: type}, wide_type, _bound), do: type == wide_type

  defp needs?(number, {:f, 64}, _bound) when is_number(number),
    do: abs(number) > @max_f32_magnitude or (number != 0 and abs(number) < @min_f32_magnitude)

  defp needs?(complex, {:c, 128}, _bound) when is_complex(complex) do
    {re, im} = Complex.parts(complex)
    needs?(re, {:f, 64}, nil) and needs?(im, {:f, 64}, nil)
  end

  defp needs?(number, {kind, _}, bound) when is_number(number) and kind in [:s, :u],
    do: number > bound

  defp needs?(_other, _type, _bound), do: false

  defp options!(opts, known) do
    unless Keyword.keyword?(opts) do
      raise ArgumentError, "expected a keyword list of options, got: #{inspect(opts)}"
    end

    with true <- known != :any, [unknown | _] <- Keyword.keys(opts) -- known do
      raise ArgumentError,
            "unknown option #{inspect(unknown)}, expected one of " <>
              Enum.map_join(known, ", ", &inspect/1)
    end

    opts
  end
end
