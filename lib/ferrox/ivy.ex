defmodule Ferrox.Ivy do
  @moduledoc """
  Ivy's data types: which there are, how they promote, which a backend or a
  function has, and what to do where one is missing.

  This follows Ivy 1.0.0.5 and its document on data types. Decorators are macros
  and attributes here, context managers functions that take a function, and
  global switches belong to the calling process, over a default in the
  application's configuration:

      config :ferrox, ivy: [backend: :torch, precise: false, default_int_dtype: "int64"]

  Data types are Ferrox's, `{:f, 32}` and `:bool`, and Ivy's names are taken
  everywhere, see `Ferrox.Ivy.Dtype`.

      iex> Ferrox.Ivy.promote_types("float32", "int32")
      {:f, 64}
      iex> Ferrox.Ivy.with_precise_mode(false, fn -> Ferrox.Ivy.promote_types("float32", "int32") end)
      {:f, 32}

  ## From Ivy's names to these

  Functions without a module are here.

  | Ivy | Ferrox |
  | --- | --- |
  | `Dtype`, `IntDtype`, `UintDtype`, `FloatDtype`, `ComplexDtype` | `Ferrox.Ivy.Dtype.new!/2` |
  | `<`, `<=`, `>`, `>=` of types | `Ferrox.Ivy.Dtype.compare/2`, `less?/2` and so on |
  | `all_dtypes`, `all_int_dtypes` and so on | `all_dtypes/0`, `all_int_dtypes/0` and so on |
  | `valid_dtypes`, `invalid_dtypes` and so on | `valid_dtypes/1`, `invalid_dtypes/1` and so on |
  | `set_backend`, `unset_backend`, `with_backend` | `Ferrox.Ivy.Profile.with_backend/2`, `set_backend/1`, `unset_backend/0` |
  | `ivy.float32`, `ivy.native_float32` | `Ferrox.Ivy.Profile.fetch_dtype/2`, `native_dtype/2` |
  | `valid_dtype`, `invalid_dtype` | `valid_dtype?/2`, `invalid_dtype?/2` |
  | `closest_valid_dtype` | `closest_valid_dtype/2` |
  | `as_ivy_dtype`, `as_native_dtype`, `is_native_dtype` | `as_ivy_dtype/1`, `as_native_dtype/2`, `native_dtype?/2` |
  | `dtype`, `dtype_bits`, `finfo`, `iinfo` | `dtype/1`, `dtype_bits/1`, `finfo/1`, `iinfo/1` |
  | `is_int_dtype` and so on, `check_float` | `int_dtype?/1` and so on, `check_float/1` |
  | `astype`, `can_cast` | `astype/2`, `can_cast?/3` |
  | `promote_types`, `result_type` | `promote_types/3`, `result_type/2` |
  | `type_promote_arrays`, `promote_types_of_inputs` | `type_promote_arrays/3`, `promote_types_of_inputs/3` |
  | `broadcast_to`, `broadcast_arrays` | `Ferrox.broadcast/3` and `broadcast_arrays/1` |
  | `PreciseMode`, `set_precise_mode`, `unset_precise_mode` | `with_precise_mode/2`, `set_precise_mode/1`, `unset_precise_mode/0` |
  | `default_dtype`, `default_int_dtype`, their setters and managers, `infer_default_dtype`, `infer_dtype` | the same in `Ferrox.Ivy.Default` |
  | `with_supported_dtypes` and its kin, `function_supported_dtypes` and its kin | `Ferrox.Ivy.Support` |
  | `upcast_data_types` and its kin | `Ferrox.Ivy.Casting` |
  | `ivy.abs`, `ivy.zeros` and others with a rule of their own about types | `Ferrox.Ivy.Functions` |
  | `promote_types_torch` and its kin | `Ferrox.Ivy.Frontend.promote_types/3`, `promote_types_of_inputs/3` |

  ## What is left out, and why

    * Names taken out of a module when a backend is set: modules don't change.
      `Ferrox.Ivy.Profile.fetch_dtype/2` and `Ferrox.Ivy.Dtype.new!/2` refuse them.
    * Reading a function's source to find what it calls: it declares it, see
      `Ferrox.Ivy.Support`. Ivy misses what is bound to a variable.
    * Decorating whole imported modules, and Python's globals: the block form wraps
      definitions.
    * `as_native` as an option: it is a function, `as_native_dtype/2`.
    * What the document says about bugs of backends and how to note them down.

  ## Where Ivy and its document disagree

  The document wins where it says what should be: without a backend every type is
  valid, while Ivy falls back to NumPy, which has no bfloat16; `result_type/2`
  follows Ivy's table, while Ivy asks its backend; an unsupported type raises,
  while Ivy leaves that to the backend; casting picks supported types only.

  Ivy wins where the document is loose: `uint16` with `float16` is `float32` in
  the precise mode, not `float64`; and without it two 16-bit floats of different
  kinds do give a `float32`.

  ## Promotion isn't associative

  40 triples of types depend on how they are grouped, and 64 without the precise
  mode. `result_type/2` goes from left to right.

      iex> Ferrox.Ivy.promote_types(Ferrox.Ivy.promote_types("int8", "uint8"), "float16")
      {:f, 32}
      iex> Ferrox.Ivy.promote_types("int8", Ferrox.Ivy.promote_types("uint8", "float16"))
      {:f, 16}

  Promotion brings operands together, and no more: nothing is computed in a wider
  type for the sake of accuracy and narrowed again.
  """

  import Ferrox.Complex, only: [is_complex: 1]

  alias Ferrox.Ivy.{Default, Dtype, Profile, Scope}
  alias Ferrox.{Promotion, Tensor, Type}

  @typedoc "A tensor, a number, or nested lists of numbers."
  @type input :: Tensor.t() | number | boolean | Ferrox.Complex.t() | list

  ## The types

  for {class, prefix, text} <- [
        {:all, "", "data types"},
        {:numeric, "numeric_", "numeric data types, all but bool"},
        {:int, "int_", "integer types, signed and unsigned"},
        {:uint, "uint_", "unsigned integer types"},
        {:float, "float_", "float types"},
        {:complex, "complex_", "complex types"}
      ] do
    @doc """
    The #{text}; a backend doesn't change them.

    ## Examples

        iex> Ferrox.Ivy.all_#{prefix}dtypes() |> Enum.map_join(" ", &Ferrox.Ivy.as_ivy_dtype/1)
        #{class |> Dtype.all() |> Enum.map_join(" ", &Dtype.name/1) |> inspect()}

    """
    @spec unquote(:"all_#{prefix}dtypes")() :: [Dtype.t()]
    def unquote(:"all_#{prefix}dtypes")(), do: Dtype.all(unquote(class))

    @doc """
    Those of `all_#{prefix}dtypes/0` that the backend has, all where there is none.

    ## Examples

        iex> Ferrox.Ivy.valid_#{prefix}dtypes(:torch) == Ferrox.Ivy.all_#{prefix}dtypes() -- [u: 16, u: 32, u: 64]
        true

    """
    @spec unquote(:"valid_#{prefix}dtypes")(Profile.backend()) :: [Dtype.t()]
    def unquote(:"valid_#{prefix}dtypes")(backend \\ Profile.current()),
      do: Profile.valid(backend, unquote(class))

    @doc """
    Those of `all_#{prefix}dtypes/0` that the backend doesn't have.

    ## Examples

        iex> Ferrox.Ivy.invalid_#{prefix}dtypes()
        []

    """
    @spec unquote(:"invalid_#{prefix}dtypes")(Profile.backend()) :: [Dtype.t()]
    def unquote(:"invalid_#{prefix}dtypes")(backend \\ Profile.current()),
      do: Profile.invalid(backend, unquote(class))
  end

  @doc """
  Whether the backend has a data type. So it has `nil`, no type in particular.

  ## Examples

      iex> for backend <- [nil, :torch, :ferrox], do: Ferrox.Ivy.valid_dtype?("uint16", backend)
      [true, false, true]
      iex> Ferrox.Ivy.valid_dtype?(nil)
      true

      iex> Ferrox.Ivy.valid_dtype?("uint7")
      ** (ArgumentError) unknown data type "uint7", expected one of int8, int16, int32, int64, uint8, uint16, uint32, uint64, bfloat16, float16, float32, float64, complex64, complex128, bool

  """
  @spec valid_dtype?(Dtype.name() | nil, Profile.backend()) :: boolean
  def valid_dtype?(type, backend \\ Profile.current())
  def valid_dtype?(nil, _backend), do: true
  def valid_dtype?(type, backend), do: Dtype.known!(type) in Profile.valid(backend)

  @doc """
  Whether the backend doesn't have a data type.

  ## Examples

      iex> for backend <- [nil, :torch, :ferrox], do: Ferrox.Ivy.invalid_dtype?("uint16", backend)
      [false, true, false]

  """
  @spec invalid_dtype?(Dtype.name() | nil, Profile.backend()) :: boolean
  def invalid_dtype?(type, backend \\ Profile.current())
  def invalid_dtype?(nil, _backend), do: false
  def invalid_dtype?(type, backend), do: Dtype.known!(type) in Profile.invalid(backend)

  @doc """
  The type itself if the backend has it, else the one that the backend puts in its
  place; the default type for `nil`.

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

    cond do
      profile == nil or type in profile.valid.all ->
        type

      closest = profile.closest[type] ->
        closest

      true ->
        raise ArgumentError,
              "#{profile.name} #{profile.version} has nothing in place of #{Dtype.name(type)}"
    end
  end

  @doc """
  Ivy's name of a data type.

  ## Examples

      iex> for type <- [{:bf, 16}, :s32, :bool, :float], do: Ferrox.Ivy.as_ivy_dtype(type)
      ["bfloat16", "int32", "bool", "float32"]

  """
  @spec as_ivy_dtype(Dtype.name()) :: String.t()
  def as_ivy_dtype(type), do: type |> Dtype.new!() |> Dtype.name()

  @doc """
  The backend's name of a data type, see `Ferrox.Ivy.Profile.native_dtype/2`.

  ## Examples

      iex> Ferrox.Ivy.as_native_dtype("float32", :torch)
      "torch.float32"

  """
  @spec as_native_dtype(Dtype.name(), Profile.backend()) :: String.t() | Dtype.t()
  def as_native_dtype(type, backend \\ Profile.current()),
    do: Profile.native_dtype(backend, type)

  @doc """
  Whether that is a name which the backend gives to one of its data types.

  ## Examples

      iex> for name <- ["torch.float32", "torch.uint16", "float32"], do: Ferrox.Ivy.native_dtype?(name, :torch)
      [true, false, false]

  """
  @spec native_dtype?(term, Profile.backend()) :: boolean
  def native_dtype?(name, backend \\ Profile.current()),
    do: Enum.any?(Profile.valid(backend), &(Profile.native_dtype(backend, &1) == name))

  @doc """
  The data type of a tensor.

  ## Examples

      iex> Ferrox.Ivy.dtype(Ferrox.tensor([1.0]))
      {:f, 32}

  """
  @spec dtype(Tensor.t()) :: Dtype.t()
  def dtype(%Tensor{type: type}), do: Dtype.known!(type)
  def dtype(other), do: raise(ArgumentError, "expected a Ferrox.Tensor, got: #{inspect(other)}")

  @doc """
  How many bits an element of that type has: one for bool.

  ## Examples

      iex> for type <- ["int8", "bfloat16", "complex128", "bool"], do: Ferrox.Ivy.dtype_bits(type)
      [8, 16, 128, 1]

  """
  @spec dtype_bits(Dtype.name()) :: pos_integer
  def dtype_bits(type), do: type |> Dtype.new!() |> Dtype.bits()

  for {kind, yes, no} <- [
        {:bool, [:bool, true, [true]], ["uint8", 1]},
        {:int, ["uint8", 1, [1, 2.0]], [true, "bool"]},
        {:uint, ["uint8"], ["int8", 1]},
        {:float, ["bfloat16", 1.0, [1, 2.0]], [1, "complex64"]},
        {:complex, ["complex64"], [1.0, "float32"]}
      ] do
    @doc """
    Whether a data type, a tensor or a number is #{if kind == :int, do: "an integer", else: "a #{kind}"}, or a number inside a list.

    ## Examples

        iex> Enum.map(#{inspect(yes)}, &Ferrox.Ivy.#{kind}_dtype?/1)
        #{inspect(Enum.map(yes, fn _ -> true end) |> Enum.with_index(fn _, i -> not (kind == :bool and i == 1) end))}
        iex> Enum.map(#{inspect(no)}, &Ferrox.Ivy.#{kind}_dtype?/1)
        #{inspect(Enum.map(no, fn _ -> false end))}

    """
    @spec unquote(:"#{kind}_dtype?")(Dtype.name() | input) :: boolean
    def unquote(:"#{kind}_dtype?")(input), do: kind?(input, unquote(kind))
  end

  # A lone boolean isn't even a bool to Ivy, only one in a list.
  defp kind?(boolean, _kind) when is_boolean(boolean), do: false

  defp kind?(input, kind) do
    case Dtype.parse(input) do
      nil when is_binary(input) -> Default.of_kind?(Dtype.new!(input), kind)
      nil -> Default.kind?(input, kind)
      type -> Default.of_kind?(Profile.check!(Profile.current(), type), kind)
    end
  end

  @doc """
  Whether a term is a real number. Booleans are, as they are in Python.

  ## Examples

      iex> Enum.map([1, 1.5, true, "1"], &Ferrox.Ivy.check_float/1)
      [true, true, true, false]

  """
  @spec check_float(term) :: boolean
  def check_float(term), do: is_number(term) or is_boolean(term)

  @doc """
  The limits of a float type, or of a tensor's: for a complex type those of its
  parts.

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

    number = fn binary -> binary |> Ferrox.from_binary(type) |> Ferrox.to_flat_list() |> hd() end

    %{
      dtype: type,
      bits: Dtype.bits(type),
      eps: number.(Type.epsilon_binary(type)),
      max: number.(Type.max_finite_binary(type)),
      min: number.(Type.min_finite_binary(type)),
      smallest_normal: number.(Type.smallest_positive_normal_binary(type))
    }
  end

  @doc """
  The limits of an integer type, or of a tensor's.

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

    {min, max} = range(type)
    %{dtype: type, bits: Dtype.bits(type), max: max, min: min}
  end

  defp range({:u, bits}), do: {0, 2 ** bits - 1}
  defp range({:s, bits}), do: {-(2 ** (bits - 1)), 2 ** (bits - 1) - 1}

  defp type_of(%Tensor{} = tensor), do: dtype(tensor)
  defp type_of(type), do: Dtype.new!(type)

  ## Precise mode

  @doc """
  Whether the precise mode is on: what is set for the process, else what
  `Ferrox.Promotion.current/0` says if it is `:ivy`, else what is configured, else
  true.

  In it an integer beside a float makes the float wide enough to hold the integer,
  as far as one can be; without it the float stays what it is.

  ## Examples

      iex> Ferrox.Ivy.precise_mode()
      true
      iex> Ferrox.Promotion.with([system: :ivy, precise: false], &Ferrox.Ivy.precise_mode/0)
      false

  """
  @spec precise_mode() :: boolean
  def precise_mode do
    with [] <- Scope.stack(:precise), :ivy <- Promotion.current()[:system] do
      Keyword.get(Promotion.current(), :precise, true)
    else
      [mode | _] ->
        mode

      _another_system ->
        case Scope.fetch(:precise, &boolean!/1) do
          {:ok, mode} -> mode
          :error -> true
        end
    end
  end

  @doc """
  Runs the function in the precise mode, or out of it: Ivy's `PreciseMode`.

  They nest, and what was in effect before is restored, also when the function
  raises.

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
  Puts a mode on the calling process's stack, until `unset_precise_mode/0`.

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
  Takes the last mode off the stack; harmless where there is none.

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
  What is in effect, as `Ferrox.Promotion` and the `:promotion` of Ferrox's
  operations take it.

  ## Examples

      iex> Ferrox.Ivy.promotion()
      [system: :ivy, precise: true]
      iex> Ferrox.Promotion.promote(:s32, :f32, Ferrox.Ivy.promotion(precise: false))
      {:f, 32}

  """
  @spec promotion(keyword) :: keyword
  def promotion(opts \\ []) do
    case Keyword.keys(opts) -- [:precise, :array_api] do
      [] ->
        Keyword.merge([system: :ivy, precise: precise_mode()], opts)

      [unknown | _] ->
        raise ArgumentError,
              "unknown option #{inspect(unknown)}, expected :precise or :array_api"
    end
  end

  ## Promotion

  @doc """
  The type of an operation on two. With `nil` it is the other one.

  ## Options

    * `:precise` - instead of the mode in effect
    * `:array_api` - true allows only what the array API standard defines

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
  The type of an operation on any number of tensors and types, from left to right.

  ## Options

  Those of `promote_types/3`.

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
  Whether a type, or that of a tensor, becomes another one by promotion alone.

  ## Options

  Those of `promote_types/3`.

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
  The tensor in another type: integers wrap, floats are rounded or cut, and what
  isn't zero is true.

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
  Both tensors, in the type that they promote to.

  ## Options

  Those of `promote_types/3`.

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
  Two operands, numbers among them, as tensors of the type that they promote to.

  A number beside a tensor takes the tensor's type; but a float beside integers is
  a float64, in both modes, a complex number beside real ones a complex128, and
  beside a bool tensor every number is of its default type. So are two numbers.

  ## Options

  Those of `promote_types/3`.

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
    {left, right} =
      case {left, right} do
        {%Tensor{}, %Tensor{}} ->
          {left, right}

        {%Tensor{}, _} ->
          {left, number(right, beside(right, left))}

        {_, %Tensor{}} ->
          {number(left, beside(left, right)), right}

        _ ->
          {number(left, Default.default_dtype(item: left)),
           number(right, Default.default_dtype(item: right))}
      end

    type_promote_arrays(left, right, opts)
  end

  defp beside(item, tensor) do
    type = dtype(tensor)

    cond do
      is_float(item) and type in Dtype.all(:int) -> {:f, 64}
      item in [:nan, :infinity, :neg_infinity] and type in Dtype.all(:int) -> {:f, 64}
      type == :bool and not is_boolean(item) -> Default.default_dtype(item: item)
      is_complex(item) and type not in Dtype.all(:complex) -> {:c, 128}
      true -> type
    end
  end

  # A number, or lists of them, as a tensor of that type. Floats may overflow,
  # integers may not.
  @doc false
  @spec number(input, Dtype.t()) :: Tensor.t()
  def number(item, type) do
    item = integers(item, type)

    if type in Dtype.all(:int) and not Default.kind?(item, :float),
      do: Ferrox.tensor(item, type: type),
      else: item |> Ferrox.tensor(type: wide(type)) |> Ferrox.as_type(type)
  end

  defp wide({:c, _}), do: {:c, 128}
  defp wide(_real), do: {:f, 64}

  # Truth as a number, which every type holds.
  defp integers(list, type) when is_list(list), do: Enum.map(list, &integers(&1, type))
  defp integers(true, _type), do: 1
  defp integers(false, _type), do: 0

  defp integers(integer, {kind, _} = type) when is_integer(integer) and kind in [:s, :u] do
    {min, max} = range(type)

    if integer < min or integer > max do
      raise ArgumentError,
            "#{integer} is out of the range of #{Dtype.name(type)}, #{min} to #{max}"
    end

    integer
  end

  defp integers(number, _type), do: number

  @doc """
  Tensors of several shapes, broadcast to the one that they have in common.

  ## Examples

      iex> for tensor <- Ferrox.Ivy.broadcast_arrays([Ferrox.iota({2, 1}), Ferrox.iota({3})]), do: Ferrox.shape(tensor)
      [{2, 3}, {2, 3}]

  """
  @spec broadcast_arrays([Tensor.t()]) :: [Tensor.t()]
  def broadcast_arrays([]), do: []

  def broadcast_arrays(tensors) when is_list(tensors) do
    shape = tensors |> Enum.map(&Ferrox.shape/1) |> Enum.reduce(&common_shape(&2, &1))
    Enum.map(tensors, &Ferrox.broadcast(&1, shape))
  end

  defp common_shape(left, right) do
    rank = max(tuple_size(left), tuple_size(right))
    pad = fn shape -> List.duplicate(1, rank - tuple_size(shape)) ++ Tuple.to_list(shape) end

    Enum.zip(pad.(left), pad.(right))
    |> Enum.map(fn
      {1, size} ->
        size

      {size, other} when other in [1, size] ->
        size

      _ ->
        raise ArgumentError,
              "broadcast_arrays: shapes #{inspect(left)} and #{inspect(right)} don't broadcast together"
    end)
    |> List.to_tuple()
  end
end
