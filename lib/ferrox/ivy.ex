defmodule Ferrox.Ivy do
  @moduledoc since: "0.1.0"
  @moduledoc """
  Ivy's data types: the list of types, their promotion, the types that a backend or a function
  supports, and the casts for unsupported types.

  This module follows Ivy 1.0.0.5 and its documentation of data types. Ivy's decorators are macros
  and module attributes here, and its context managers are functions that take a function. Ivy's
  global settings are settings of the calling process, with defaults in the application's
  configuration:

      config :ferrox, ivy: [backend: :torch, precise: false, default_int_dtype: "int64"]

  Data types are Ferrox's types, `{:f, 32}` and `:bool`. All functions also take Ivy's names, see
  `Ferrox.Ivy.Dtype`.

      iex> Ferrox.Ivy.promote_types("float32", "int32")
      {:f, 64}
      iex> Ferrox.Ivy.with_precise_mode(false, fn -> Ferrox.Ivy.promote_types("float32", "int32") end)
      {:f, 32}

  ## Ivy's names and their counterparts

  Functions without a module name belong to this module.

  | Ivy | Ferrox |
  | --- | --- |
  | `Dtype`, `IntDtype`, `UintDtype`, `FloatDtype`, `ComplexDtype` | `Ferrox.Ivy.Dtype.new!/2` |
  | `<`, `<=`, `>`, `>=` of types | `Ferrox.Ivy.Dtype.compare/2`, `less?/2` and similar |
  | `all_dtypes`, `all_int_dtypes` and similar | `all_dtypes/0`, `all_int_dtypes/0` and similar |
  | `valid_dtypes`, `invalid_dtypes` and similar | `valid_dtypes/1`, `invalid_dtypes/1` and similar |
  | `set_backend`, `unset_backend`, `with_backend` | `Ferrox.Ivy.Profile.with_backend/2`, `set_backend/1`, `unset_backend/0` |
  | `ivy.float32`, `ivy.native_float32` | `Ferrox.Ivy.Profile.fetch_dtype/2`, `native_dtype/2` |
  | `valid_dtype`, `invalid_dtype` | `valid_dtype?/2`, `invalid_dtype?/2` |
  | `closest_valid_dtype` | `closest_valid_dtype/2` |
  | `as_ivy_dtype`, `as_native_dtype`, `is_native_dtype` | `as_ivy_dtype/1`, `as_native_dtype/2`, `native_dtype?/2` |
  | `dtype`, `dtype_bits`, `finfo`, `iinfo` | `dtype/1`, `dtype_bits/1`, `finfo/1`, `iinfo/1` |
  | `is_int_dtype` and similar, `check_float` | `int_dtype?/1` and similar, `check_float/1` |
  | `astype`, `can_cast` | `astype/2`, `can_cast?/3` |
  | `promote_types`, `result_type` | `promote_types/3`, `result_type/2` |
  | `type_promote_arrays`, `promote_types_of_inputs` | `type_promote_arrays/3`, `promote_types_of_inputs/3` |
  | `broadcast_to`, `broadcast_arrays` | `Ferrox.broadcast/3` and `broadcast_arrays/1` |
  | `PreciseMode`, `set_precise_mode`, `unset_precise_mode` | `with_precise_mode/2`, `set_precise_mode/1`, `unset_precise_mode/0` |
  | `default_dtype`, `default_int_dtype`, their setters and context managers, `infer_default_dtype`, `infer_dtype` | the same names in `Ferrox.Ivy.Default` |
  | `with_supported_dtypes`, `function_supported_dtypes` and similar | `Ferrox.Ivy.Support` |
  | `upcast_data_types` and similar | `Ferrox.Ivy.Casting` |
  | `ivy.abs`, `ivy.zeros` and other functions with their own rule for types | `Ferrox.Ivy.Functions` |
  | `promote_types_torch` and similar | `Ferrox.Ivy.Frontend.promote_types/3`, `promote_types_of_inputs/3` |

  ## What is left out, and why

    * Ivy removes names from a module when a backend is set. Elixir modules can't change, so
      `Ferrox.Ivy.Profile.fetch_dtype/2` and `Ferrox.Ivy.Dtype.new!/2` refuse these names instead.
    * Ivy reads the source of a function to find the functions that it calls, and misses those that
      are bound to a variable. Here a function declares what it calls, see `Ferrox.Ivy.Support`.
    * Ivy can decorate whole imported modules, and uses Python's globals. Here the block form of a
      declaration wraps several definitions.
    * The option `as_native` is the function `as_native_dtype/2` here.
    * The parts of the documentation about bugs of backends, and how to record them, have no
      counterpart.

  ## Where Ivy and its documentation disagree

  Ferrox follows the documentation where it says how Ivy should behave:

    * Without a backend, every type is valid. Ivy falls back to NumPy, which has no bfloat16.
    * `result_type/2` uses Ivy's table. Ivy asks its backend.
    * An unsupported type raises an error. Ivy leaves the error to the backend.
    * Casting modes only choose supported types.

  Ferrox follows Ivy where the documentation is inexact:

    * `uint16` with `float16` is `float32` in the precise mode, not `float64`.
    * Two 16-bit floats of different kinds give a `float32` also without the precise mode.

  ## Promotion isn't associative

  The result of 40 triples of types depends on their grouping, and of 64 triples without the precise
  mode. `result_type/2` promotes from left to right.

      iex> Ferrox.Ivy.promote_types(Ferrox.Ivy.promote_types("int8", "uint8"), "float16")
      {:f, 32}
      iex> Ferrox.Ivy.promote_types("int8", Ferrox.Ivy.promote_types("uint8", "float16"))
      {:f, 16}

  Promotion only finds a common type for the operands. No operation computes in a wider type, for
  more accuracy, and then casts its result back.
  """

  import Ferrox.Complex, only: [is_complex: 1]

  alias Ferrox.Ivy.{Default, Dtype, Profile, Scope}
  alias Ferrox.{Numbers, Promotion, Shape, Tensor, Type}

  @typedoc "A tensor, a number, or nested lists of numbers."
  @type input :: Tensor.t() | number | boolean | Ferrox.Complex.t() | list

  ## The types

  classes = [
    {:all, "", "data types"},
    {:numeric, "numeric_", "numeric data types, all but bool"},
    {:int, "int_", "integer types, signed and unsigned"},
    {:uint, "uint_", "unsigned integer types"},
    {:float, "float_", "float types"},
    {:complex, "complex_", "complex types"}
  ]

  for {class, prefix, text} <- classes do
    all_dtypes = :"all_#{prefix}dtypes"

    @doc """
    Returns the #{text}. The list doesn't depend on the backend.

    ## Examples

        iex> Ferrox.Ivy.#{all_dtypes}() |> Enum.map_join(" ", &Ferrox.Ivy.as_ivy_dtype/1)
        #{class |> Dtype.all() |> Enum.map_join(" ", &Dtype.name/1) |> inspect()}

    """
    @spec unquote(all_dtypes)() :: [Dtype.t()]
    def unquote(all_dtypes)(), do: Dtype.all(unquote(class))

    for {validity, text, of_torch} <- [
          {:valid, "has, or all of them without a backend", "-- [u: 16, u: 32, u: 64]"},
          {:invalid, "doesn't have, or none without a backend",
           "-- Ferrox.Ivy.valid_dtypes(:torch)"}
        ] do
      dtypes = :"#{validity}_#{prefix}dtypes"

      @doc """
      Returns the types of `#{all_dtypes}/0` that the backend #{text}.

      ## Examples

          iex> Ferrox.Ivy.#{dtypes}(:torch) == Ferrox.Ivy.#{all_dtypes}() #{of_torch}
          true

      """
      @spec unquote(dtypes)(Profile.backend()) :: [Dtype.t()]
      def unquote(dtypes)(backend \\ Profile.current()),
        do: Profile.unquote(validity)(backend, unquote(class))
    end
  end

  @doc """
  Returns whether the backend has a data type. `nil` stands for no type in particular, which every
  backend has.

  ## Examples

      iex> for backend <- [nil, :torch, :ferrox], do: Ferrox.Ivy.valid_dtype?("uint16", backend)
      [true, false, true]
      iex> Ferrox.Ivy.valid_dtype?(nil)
      true

      iex> Ferrox.Ivy.valid_dtype?("uint7")
      ** (ArgumentError) unknown data type "uint7", expected one of int8, int16, int32, int64, uint8, uint16, uint32, uint64, bfloat16, float16, float32, float64, complex64, complex128, bool

  """
  @spec valid_dtype?(Dtype.name() | nil, Profile.backend()) :: boolean
  def valid_dtype?(type, backend \\ Profile.current()),
    do: type == nil or Dtype.known!(type) in Profile.valid(backend)

  @doc """
  Returns whether the backend lacks a data type. No backend lacks `nil`.

  ## Examples

      iex> for backend <- [nil, :torch, :ferrox], do: Ferrox.Ivy.invalid_dtype?("uint16", backend)
      [false, true, false]

  """
  @spec invalid_dtype?(Dtype.name() | nil, Profile.backend()) :: boolean
  def invalid_dtype?(type, backend \\ Profile.current()),
    do: type != nil and Dtype.known!(type) in Profile.invalid(backend)

  @doc """
  Returns the type itself if the backend has it, else the type that the backend uses instead. For
  `nil`, returns the default type.

  ## Examples

      iex> {Ferrox.Ivy.closest_valid_dtype("uint64", :torch), Ferrox.Ivy.closest_valid_dtype("bfloat16", :numpy)}
      {{:u, 8}, {:f, 16}}
      iex> Ferrox.Ivy.closest_valid_dtype(nil)
      {:f, 32}

      iex> Ferrox.Ivy.closest_valid_dtype("int16", :mxnet)
      ** (ArgumentError) mxnet 1.9.1 has nothing in place of int16

  """
  @spec closest_valid_dtype(Dtype.name() | nil, Profile.backend()) :: Dtype.t()
  def closest_valid_dtype(type, backend \\ Profile.current())
  def closest_valid_dtype(nil, _backend), do: Default.default_dtype()

  def closest_valid_dtype(type, backend) do
    type = Dtype.known!(type)
    profile = Profile.fetch!(backend)

    if profile == nil or type in profile.valid.all do
      type
    else
      profile.closest[type] ||
        raise ArgumentError,
              "#{profile.name} #{profile.version} has nothing in place of #{Dtype.name(type)}"
    end
  end

  @doc """
  Returns Ivy's name of a data type.

  ## Examples

      iex> for type <- [{:bf, 16}, :s32, :bool, :float], do: Ferrox.Ivy.as_ivy_dtype(type)
      ["bfloat16", "int32", "bool", "float32"]

  """
  @spec as_ivy_dtype(Dtype.name()) :: String.t()
  def as_ivy_dtype(type), do: type |> Dtype.new!() |> Dtype.name()

  @doc """
  Returns the backend's name of a data type, see `Ferrox.Ivy.Profile.native_dtype/2`.

  ## Examples

      iex> Ferrox.Ivy.as_native_dtype("float32", :torch)
      "torch.float32"

  """
  @spec as_native_dtype(Dtype.name(), Profile.backend()) :: String.t() | Dtype.t()
  def as_native_dtype(type, backend \\ Profile.current()),
    do: Profile.native_dtype(backend, type)

  @doc """
  Returns whether the term is the backend's name of one of its data types.

  ## Examples

      iex> for name <- ["torch.float32", "torch.uint16", "float32"], do: Ferrox.Ivy.native_dtype?(name, :torch)
      [true, false, false]

  """
  @spec native_dtype?(term, Profile.backend()) :: boolean
  def native_dtype?(name, backend \\ Profile.current()),
    do: Enum.any?(Profile.valid(backend), &(Profile.native_dtype(backend, &1) == name))

  @doc """
  Returns the data type of a tensor.

  ## Examples

      iex> Ferrox.Ivy.dtype(Ferrox.tensor([1.0]))
      {:f, 32}

  """
  @spec dtype(Tensor.t()) :: Dtype.t()
  def dtype(%Tensor{type: type}), do: Dtype.known!(type)
  def dtype(other), do: raise(ArgumentError, "expected a Ferrox.Tensor, got: #{inspect(other)}")

  @doc """
  Returns the number of bits of an element of the type. A bool has one bit.

  ## Examples

      iex> for type <- ["int8", "bfloat16", "complex128", "bool"], do: Ferrox.Ivy.dtype_bits(type)
      [8, 16, 128, 1]

  """
  @spec dtype_bits(Dtype.name()) :: pos_integer
  def dtype_bits(type), do: type |> Dtype.new!() |> Dtype.bits()

  for {kind, yes, no} <- [
        {:bool, [:bool, [true]], ["uint8", 1, true]},
        {:int, ["uint8", 1, [1, 2.0]], [true, "bool"]},
        {:uint, ["uint8"], ["int8", 1]},
        {:float, ["bfloat16", 1.0, [1, 2.0]], [1, "complex64"]},
        {:complex, ["complex64"], [1.0, "float32"]}
      ] do
    @doc """
    Returns whether a data type, a tensor or a number is #{if kind == :int, do: "an integer", else: "a #{kind}"},
    or for a list, whether any number in it is.

    ## Examples

        iex> Enum.map(#{inspect(yes)}, &Ferrox.Ivy.#{kind}_dtype?/1)
        #{inspect(Enum.map(yes, fn _ -> true end))}
        iex> Enum.map(#{inspect(no)}, &Ferrox.Ivy.#{kind}_dtype?/1)
        #{inspect(Enum.map(no, fn _ -> false end))}

    """
    @spec unquote(:"#{kind}_dtype?")(Dtype.name() | input) :: boolean
    def unquote(:"#{kind}_dtype?")(input), do: kind?(input, unquote(kind))
  end

  # For Ivy, a boolean alone is of no kind, not even a bool; a boolean in a list is.
  defp kind?(boolean, _kind) when is_boolean(boolean), do: false

  defp kind?(input, kind) do
    case Dtype.parse(input) do
      nil when is_binary(input) -> Default.of_kind?(Dtype.new!(input), kind)
      nil -> Default.kind?(input, kind)
      type -> Default.of_kind?(Profile.check!(Profile.current(), type), kind)
    end
  end

  @doc """
  Returns whether the term is a real number. Booleans are real numbers, as in Python.

  ## Examples

      iex> Enum.map([1, 1.5, true, "1"], &Ferrox.Ivy.check_float/1)
      [true, true, true, false]

  """
  @spec check_float(term) :: boolean
  def check_float(term), do: is_number(term) or is_boolean(term)

  @doc """
  Returns the limits of a float type, or of the type of a tensor. The limits of a complex type are
  those of its parts.

  ## Examples

      iex> Ferrox.Ivy.finfo("bfloat16")
      %{bits: 16, eps: 0.0078125, max: 3.3895313892515355e38, min: -3.3895313892515355e38, smallest_normal: 1.1754943508222875e-38, dtype: {:bf, 16}}

      iex> Ferrox.Ivy.finfo("int8")
      ** (ArgumentError) finfo is about floats, got: int8; see iinfo/1

  """
  @spec finfo(Dtype.name() | Tensor.t()) :: map
  def finfo(type) do
    type =
      case type_of(type) do
        {:c, bits} -> {:f, div(bits, 2)}
        type -> type
      end

    unless type in Dtype.all(:float) do
      raise ArgumentError, "finfo is about floats, got: #{Dtype.name(type)}; see iinfo/1"
    end

    for {limit, binary} <- [
          eps: Type.epsilon_binary(type),
          max: Type.max_finite_binary(type),
          min: Type.min_finite_binary(type),
          smallest_normal: Type.smallest_positive_normal_binary(type)
        ],
        into: %{dtype: type, bits: Dtype.bits(type)},
        do: {limit, binary |> Ferrox.from_binary(type) |> Ferrox.to_flat_list() |> hd()}
  end

  @doc """
  Returns the limits of an integer type, or of the type of a tensor.

  ## Examples

      iex> Ferrox.Ivy.iinfo("int16")
      %{bits: 16, max: 32767, min: -32768, dtype: {:s, 16}}

      iex> Ferrox.Ivy.iinfo("bool")
      ** (ArgumentError) iinfo is about integers, got: bool; see finfo/1

  """
  @spec iinfo(Dtype.name() | Tensor.t()) :: map
  def iinfo(type) do
    type = type_of(type)

    unless type in Dtype.all(:int) do
      raise ArgumentError, "iinfo is about integers, got: #{Dtype.name(type)}; see finfo/1"
    end

    {min, max} = Numbers.integer_range(type)
    %{dtype: type, bits: Dtype.bits(type), max: max, min: min}
  end

  defp type_of(%Tensor{} = tensor), do: dtype(tensor)
  defp type_of(type), do: Dtype.new!(type)

  ## Precise mode

  @doc """
  Returns whether the precise mode is on: the mode set for the process, else the mode of
  `Ferrox.Promotion.current/0` if its system is `:ivy`, else the configured mode, else true.

  In the precise mode, a float that meets an integer type is widened until it holds the integers, as
  far as possible. Without the precise mode, the float type stays as it is.

  ## Examples

      iex> Ferrox.Ivy.precise_mode()
      true
      iex> Ferrox.Promotion.with([system: :ivy, precise: false], &Ferrox.Ivy.precise_mode/0)
      false

  """
  @spec precise_mode() :: boolean
  def precise_mode do
    with [] <- Scope.stack(:precise), [{:system, :ivy} | opts] <- Promotion.current() do
      Keyword.get(opts, :precise, true)
    else
      _ -> Scope.get(:precise, true, &boolean!/1)
    end
  end

  @doc """
  Runs the function with the precise mode on or off: Ivy's `PreciseMode`.

  Calls can be nested. The previous mode is restored at the end, also if the function raises.

  ## Examples

      iex> Ferrox.Ivy.with_precise_mode(false, fn ->
      ...>   {Ferrox.Ivy.promote_types("int16", "float16"),
      ...>    Ferrox.Ivy.with_precise_mode(true, fn -> Ferrox.Ivy.promote_types("int16", "float16") end)}
      ...> end)
      {{:f, 16}, {:f, 32}}

      iex> Ferrox.Ivy.with_precise_mode("x", fn -> :ok end)
      ** (ArgumentError) the precise mode is true or false, got: "x"

  """
  @spec with_precise_mode(boolean, fun) :: term
  def with_precise_mode(mode, fun), do: Scope.run(:precise, boolean!(mode), fun)

  @doc """
  Pushes a mode on the stack of the calling process. `unset_precise_mode/0` removes it.

  ## Examples

      iex> Ferrox.Ivy.set_precise_mode(false)
      iex> Ferrox.Ivy.promote_types("float32", "int32")
      {:f, 32}
      iex> Ferrox.Ivy.unset_precise_mode()
      iex> Ferrox.Ivy.precise_mode()
      true

  """
  @spec set_precise_mode(boolean) :: :ok
  def set_precise_mode(mode), do: Scope.push(:precise, boolean!(mode))

  @doc """
  Removes the last mode from the stack of the calling process. Does nothing if the stack is empty.

  ## Examples

      iex> Ferrox.Ivy.unset_precise_mode()
      :ok

  """
  @spec unset_precise_mode() :: :ok
  def unset_precise_mode, do: Scope.pop(:precise)

  defp boolean!(mode) when is_boolean(mode), do: mode

  defp boolean!(other),
    do: raise(ArgumentError, "the precise mode is true or false, got: #{inspect(other)}")

  @doc """
  Returns the promotion system `:ivy` with the mode in effect, in the form that the functions of
  `Ferrox.Promotion` and the option `:promotion` of Ferrox's operations take.

  ## Examples

      iex> Ferrox.Ivy.promotion()
      [system: :ivy, precise: true]
      iex> Ferrox.Promotion.promote(:s32, :f32, Ferrox.Ivy.promotion(precise: false))
      {:f, 32}

  """
  @spec promotion(keyword) :: keyword
  def promotion(opts \\ []) do
    with [unknown | _] <- Keyword.keys(opts) -- [:precise, :array_api] do
      raise ArgumentError, "unknown option #{inspect(unknown)}, expected :precise or :array_api"
    end

    Keyword.merge([system: :ivy, precise: precise_mode()], opts)
  end

  ## Promotion

  @doc """
  Returns the type that two types promote to. If one of them is `nil`, returns the other one.

  ## Options

    * `:precise` - the precise mode, by default the one in effect
    * `:array_api` - true only allows what the array API standard defines

  ## Examples

      iex> Ferrox.Ivy.promote_types("uint8", "int8")
      {:s, 16}
      iex> Ferrox.Ivy.promote_types("int32", "complex64")
      {:c, 128}
      iex> Ferrox.Ivy.promote_types("int32", "complex64", precise: false)
      {:c, 64}
      iex> Ferrox.Ivy.promote_types(nil, "int8")
      {:s, 8}

      iex> Ferrox.Ivy.promote_types("bool", "int8", array_api: true)
      ** (Ferrox.PromotionError) bool and s8 have no implicit promotion under system: :ivy, array_api: true. Cast the operands to the type you want, or set array_api: false

  """
  @spec promote_types(Dtype.name() | nil, Dtype.name() | nil, keyword) :: Dtype.t()
  def promote_types(left, right, opts \\ []) do
    promotion = promotion(opts)

    case {left && Dtype.new!(left), right && Dtype.new!(right)} do
      {nil, nil} -> raise ArgumentError, "expected a data type, got: nil and nil"
      {left, nil} -> left
      {nil, right} -> right
      {left, right} -> Promotion.promote(left, right, promotion)
    end
  end

  @doc """
  Returns the type that any number of tensors and types promote to, from left to right. The options
  are those of `promote_types/3`.

  ## Examples

      iex> Ferrox.Ivy.result_type(["int8", "uint8", "float16"])
      {:f, 32}
      iex> Ferrox.Ivy.result_type([Ferrox.tensor([1]), "float32"], precise: false)
      {:f, 32}

      iex> Ferrox.Ivy.result_type([])
      ** (ArgumentError) expected at least one tensor or data type

  """
  @spec result_type([Dtype.name() | Tensor.t()], keyword) :: Dtype.t()
  def result_type(operands, opts \\ [])

  def result_type([], _opts),
    do: raise(ArgumentError, "expected at least one tensor or data type")

  def result_type(operands, opts) when is_list(operands),
    do: operands |> Enum.map(&type_of/1) |> Enum.reduce(&promote_types(&2, &1, opts))

  def result_type(other, _opts),
    do: raise(ArgumentError, "expected a list of tensors and data types, got: #{inspect(other)}")

  @doc """
  Returns whether `from`, a type or a tensor, can be cast to the type `to` by promotion alone. The
  options are those of `promote_types/3`.

  ## Examples

      iex> Ferrox.Ivy.can_cast?("int16", "float32")
      true
      iex> Ferrox.Ivy.can_cast?("int32", "float32")
      false
      iex> Ferrox.Ivy.can_cast?("int32", "float32", precise: false)
      true

  """
  @spec can_cast?(Dtype.name() | Tensor.t(), Dtype.name(), keyword) :: boolean
  def can_cast?(from, to, opts \\ []) do
    to = Dtype.new!(to)
    promote_types(type_of(from), to, opts) == to
  end

  @doc """
  Casts the tensor to another type. Integers wrap around, floats are rounded, or truncated to
  integers, and everything but zero becomes true.

  ## Examples

      iex> Ferrox.Ivy.astype(Ferrox.tensor([1.5, -2.5]), "int8")
      #Ferrox.Tensor<
        s8[2]
        [1, -2]
      >

  """
  @spec astype(Tensor.t(), Dtype.name()) :: Tensor.t()
  def astype(%Tensor{} = tensor, type), do: Ferrox.as_type(tensor, Dtype.new!(type))

  def astype(other, _type),
    do: raise(ArgumentError, "expected a Ferrox.Tensor, got: #{inspect(other)}")

  @doc """
  Casts both tensors to the type that they promote to. The options are those of `promote_types/3`.

  ## Examples

      iex> {left, right} = Ferrox.Ivy.type_promote_arrays(Ferrox.tensor([1], type: :s8), Ferrox.tensor([1.0]))
      iex> {left.type, right.type}
      {{:f, 32}, {:f, 32}}

  """
  @spec type_promote_arrays(Tensor.t(), Tensor.t(), keyword) :: {Tensor.t(), Tensor.t()}
  def type_promote_arrays(left, right, opts \\ []) do
    type = promote_types(dtype(left), dtype(right), opts)
    {astype(left, type), astype(right, type)}
  end

  @doc """
  Converts two operands, tensors or numbers, to tensors of the type that they promote to.

  A number with a tensor takes the type of the tensor, with these exceptions: a float with an integer
  tensor becomes a float64, in both modes; a complex number with a real tensor becomes a complex128;
  and with a bool tensor, every number has its default type. Two numbers have their default types.
  The options are those of `promote_types/3`.

  ## Examples

      iex> int8 = Ferrox.tensor([1], type: :s8)
      iex> for number <- [1, 1.0, Ferrox.Complex.new(1)] do
      ...>   {left, right} = Ferrox.Ivy.promote_types_of_inputs(int8, number)
      ...>   {left.type, right.type}
      ...> end
      [{{:s, 8}, {:s, 8}}, {{:f, 64}, {:f, 64}}, {{:c, 128}, {:c, 128}}]

      iex> Ferrox.Ivy.promote_types_of_inputs(Ferrox.tensor([1], type: :u8), -1)
      ** (ArgumentError) -1 is out of the range of uint8, 0 to 255

  """
  @spec promote_types_of_inputs(input, input, keyword) :: {Tensor.t(), Tensor.t()}
  def promote_types_of_inputs(left, right, opts \\ []) do
    type_promote_arrays(tensor(left, right), tensor(right, left), opts)
  end

  # An operand as a tensor, in the type that it has beside the other operand.
  defp tensor(%Tensor{} = tensor, _other), do: tensor
  defp tensor(number, %Tensor{} = other), do: number(number, type_beside_tensor(number, other))
  defp tensor(number, _other), do: number(number, Default.default_dtype(item: number))

  defp type_beside_tensor(item, tensor) do
    type = dtype(tensor)

    cond do
      is_float(item) and type in Dtype.all(:int) -> {:f, 64}
      item in [:nan, :infinity, :neg_infinity] and type in Dtype.all(:int) -> {:f, 64}
      type == :bool and not is_boolean(item) -> Default.default_dtype(item: item)
      is_complex(item) and type not in Dtype.all(:complex) -> {:c, 128}
      true -> type
    end
  end

  # Converts a number, or nested lists of numbers, to a tensor of the type. Floats may overflow, but
  # integers out of range raise.
  @doc false
  @spec number(input, Dtype.t()) :: Tensor.t()
  def number(item, type) do
    item = check_integers!(item, type)

    if type in Dtype.all(:int) and not Default.kind?(item, :float),
      do: Ferrox.tensor(item, type: type),
      else: item |> Ferrox.tensor(type: widest_type(type)) |> Ferrox.as_type(type)
  end

  defp widest_type({:c, _}), do: {:c, 128}
  defp widest_type(_real), do: {:f, 64}

  # The numbers, with booleans as 0 and 1. Raises for an integer out of the range of the type.
  defp check_integers!(list, type) when is_list(list),
    do: Enum.map(list, &check_integers!(&1, type))

  defp check_integers!(boolean, _type) when is_boolean(boolean), do: if(boolean, do: 1, else: 0)

  defp check_integers!(integer, {kind, _} = type) when is_integer(integer) and kind in [:s, :u] do
    {min, max} = Numbers.integer_range(type)

    if integer < min or integer > max do
      raise ArgumentError,
            "#{integer} is out of the range of #{Dtype.name(type)}, #{min} to #{max}"
    end

    integer
  end

  defp check_integers!(number, _type), do: number

  @doc """
  Broadcasts tensors of several shapes to their common shape.

  ## Examples

      iex> for tensor <- Ferrox.Ivy.broadcast_arrays([Ferrox.iota({2, 1}), Ferrox.iota({3})]), do: Ferrox.shape(tensor)
      [{2, 3}, {2, 3}]

  """
  @spec broadcast_arrays([Tensor.t()]) :: [Tensor.t()]
  def broadcast_arrays([]), do: []

  def broadcast_arrays(tensors) when is_list(tensors) do
    shape =
      tensors
      |> Enum.map(&Ferrox.shape/1)
      |> Enum.reduce(fn right, left ->
        Shape.broadcast(left, right) ||
          raise ArgumentError,
                "broadcast_arrays: shapes #{inspect(left)} and #{inspect(right)} don't broadcast together"
      end)

    Enum.map(tensors, &Ferrox.broadcast(&1, shape))
  end
end
