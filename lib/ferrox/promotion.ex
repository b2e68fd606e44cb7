defmodule Ferrox.Promotion do
  @moduledoc since: "0.1.0"
  @moduledoc """
  Finds the type that results from operands of several types.

  Libraries have different rules for this, so Ferrox keeps the rules as data: each *promotion
  system* is a table in the native library.

    * `:nx` - Nx 0.13.1, the default.
    * `:nx_0_9` - Nx 0.9.0 to 0.9.2. It has no `f8_e4m3fn`, and `f64` with `c64` gives `c64`, while
      it gives `c128` under `:nx`.
    * `:jax` - JAX. A result is the join (least upper bound) of the operands in a lattice. Options:
      `strict: true` only promotes plain numbers and refuses all other pairs; `x64: false` has no
      types of 64 bits.
    * `:numpy` - NumPy. Option: `scalar: :nep50` for the rule of NumPy 2, or `scalar: :legacy` for
      the rule before it, by which the value of a number decides (see below).
    * `:array_api` - the Python array API standard. It doesn't define pairs of different kinds,
      except a float with a complex type.
    * `:ivy` - Ivy. Options: `precise: false` doesn't widen a float that meets an integer;
      `array_api: true` only allows what the array API standard defines.
    * `:ivy_torch`, `:ivy_paddle`, `:ivy_numpy`, `:ivy_jax`, `:ivy_onnx`, `:ivy_mxnet`,
      `:ivy_tensorflow` - the tables of Ivy's frontends. Each frontend imitates the library in its
      name.

  The result of one pair under several systems:

      iex> for system <- [:nx, :jax, :numpy, :ivy], do: Ferrox.Promotion.promote(:s32, :f32, system: system)
      [{:f, 32}, {:f, 32}, {:f, 64}, {:f, 64}]

  ## Types

  The types are those of `Ferrox.Type`, written as tuples (`{:bf, 16}`) or short names (`:bf16`),
  and `:bool` in all systems but those of Nx. NumPy's names (`"bfloat16"`) are also accepted.

  A plain number has no size. Its type is *weak*: `:int`, `:float` or `:complex`, without a size.
  With a type of the same kind, the result is that type:

      iex> Ferrox.Promotion.promote(:s8, :int, system: :jax)
      {:s, 8}

  Under `:jax`, a result is weak too if no operand determines its size. It can be promoted further.
  `weak?/1` returns whether a type is weak, and `concrete/2` returns the type in which a weak result
  is stored:

      iex> weak = Ferrox.Promotion.promote(:u8, :float, system: :jax)
      :float
      iex> Ferrox.Promotion.promote(weak, :f16, system: :jax)
      {:f, 16}
      iex> Ferrox.Promotion.concrete(weak, system: :jax)
      {:f, 64}

  No other system has weak results. The systems of Nx have no weak types at all: they look at the
  value of a number.

  ## Which system is used

  All functions take a system and its options. Without `:system`, the options change those of the
  system in effect: the one that `with/2` has set for the process, else the one in the
  application's configuration, else `:nx`.

      config :ferrox, promotion: [system: :jax, x64: false]

  The configuration is read once, at the first promotion. `global_default/1` changes the default at
  run time.

  The functions of `Ferrox` find their system in the same way: each takes the option `:promotion`, a
  system or a system with options, and without it uses the system in effect.

      iex> Ferrox.Promotion.with(:numpy, fn -> Ferrox.add(Ferrox.tensor([1]), 0.5) |> Ferrox.type() end)
      {:f, 64}
      iex> Ferrox.add(Ferrox.tensor([1]), 0.5, promotion: {:jax, x64: false}) |> Ferrox.type()
      {:f, 32}

  `Ferrox.Promotion.Results` documents the other rules for result types that depend on the system.

  ## Order of the operands

  Under `:nx`, promotion is commutative and associative, except for `f8_e4m3fn`: with another float,
  the result is the type of the left operand.

      iex> Ferrox.Promotion.promote(:f8_e4m3fn, :f32)
      {:f8_e4m3fn, 8}
      iex> Ferrox.Promotion.promote(:f32, :f8_e4m3fn)
      {:f, 32}

  Under `:jax`, promotion is always commutative and associative. Ivy's tables are commutative but
  not associative, so `result_type/2` promotes from left to right. NumPy's table isn't associative
  either; `result_type/2` promotes the types of the highest kind first, whatever the order. Two of
  the frontends, `:ivy_numpy` and `:ivy_mxnet`, define `bool` with `bf16`, but not `bf16` with
  `bool`.

  ## NumPy's legacy rule

  Before NumPy 2, a number together with scalars had its default type. A type without a shape counts
  as a scalar:

      iex> Ferrox.Promotion.result_type([:s16, 1], system: :numpy)
      {:s, 16}
      iex> Ferrox.Promotion.result_type([:s16, 1], system: :numpy, scalar: :legacy)
      {:s, 64}

  Together with an array of the same kind, the value of the number decided. A tensor with axes is an
  array, and `{:array, type}` stands for an array where only types are given:

      iex> Ferrox.Promotion.result_type([{:array, :s16}, 1], system: :numpy, scalar: :legacy)
      {:s, 16}
      iex> Ferrox.Promotion.result_type([{:array, :s16}, 40_000], system: :numpy, scalar: :legacy)
      {:s, 32}

  """

  import Ferrox.Complex, only: [is_complex: 1]

  import Ferrox.Numbers, only: [is_64_bit: 1]

  alias Ferrox.{Native, Numbers, PromotionError, Tensor, Type}
  alias Ferrox.Promotion.{Names, Results, Scalars}

  @compile {:inline, default: 0}

  @typedoc "The name of a promotion system, see `systems/0`."
  @type system :: atom

  @typedoc "A type for promotion. `:int`, `:float` and `:complex` are weak."
  @type t :: Type.t() | :bool | :int | :float | :complex

  @typedoc "The forms in which a type can be given."
  @type type :: t | Type.short_t() | String.t()

  @typedoc "A system, or a system with options."
  @type promotion :: system | {system, keyword} | keyword

  # The key of the persistent term that holds the default mode. It is an atom because an atom is
  # looked up faster than a tuple.
  @default_mode_key __MODULE__.Default

  # The internal form of a system and its options: the system, or the system and one bit for each
  # option that is not at its default.
  @typedoc false
  @type mode :: system | {system, pos_integer}

  @doc """
  Returns the names of the promotion systems, the default one first.

  ## Examples

      iex> hd(Ferrox.Promotion.systems())
      :nx
      iex> :jax in Ferrox.Promotion.systems()
      true

  """
  @spec systems() :: [system]
  def systems, do: for({system, _switches} <- Native.promotion_systems(), do: system)

  @doc """
  Returns the types of a system.

  ## Examples

      iex> {:f8_e4m3fn, 8} in Ferrox.Promotion.types(:nx)
      true
      iex> {:f8_e4m3fn, 8} in Ferrox.Promotion.types(:nx_0_9)
      false
      iex> length(Ferrox.Promotion.types(system: :jax, x64: false))
      18

  """
  @spec types(promotion) :: [t]
  def types(promotion \\ :nx), do: Native.promotion_types(mode(promotion))

  @doc """
  Returns the type that a `left` and a `right` operand promote to.

  ## Options

    * `:system` - one of `systems/0`
    * `:strict`, `:x64` - options of JAX
    * `:scalar` - option of NumPy
    * `:precise`, `:array_api` - options of Ivy

  ## Examples

      iex> Ferrox.Promotion.promote({:u, 8}, {:f, 32})
      {:f, 32}
      iex> Ferrox.Promotion.promote(:f64, :c64)
      {:c, 128}
      iex> Ferrox.Promotion.promote(:f64, :c64, system: :nx_0_9)
      {:c, 64}
      iex> Ferrox.Promotion.promote("uint32", "int32", system: :jax)
      {:s, 64}
      iex> Ferrox.Promotion.promote("uint32", "int32", system: :jax, x64: false)
      {:s, 32}

  """
  @spec promote(type, type, promotion) :: t
  def promote(left, right, opts \\ []), do: merge(mode(opts), type!(left), type!(right))

  @doc """
  Returns the type that any number of operands promote to: types, tensors, plain numbers and
  booleans.

  The operand `nil` is the default float under `:jax` and `:numpy`, and is ignored under Ivy's
  systems. The options are those of `promote/3`.

  ## Examples

      iex> Ferrox.Promotion.result_type([:u8, Ferrox.tensor([1, 2], type: :s8), 1.0])
      {:f, 32}
      iex> Ferrox.Promotion.result_type(["uint8", "int8", "float16"], system: :jax)
      {:f, 16}
      iex> Ferrox.Promotion.result_type([1, 2.0], system: :jax)
      :float
      iex> Ferrox.Promotion.result_type([1, 2.0], system: :numpy)
      {:f, 64}
      iex> Ferrox.Promotion.result_type([:u8, -1], system: :nx)
      {:s, 16}

      iex> Ferrox.Promotion.result_type([:u8, 256], system: :numpy)
      ** (ArgumentError) 256 is out of the range of u8, 0 to 255, which it would be under system: :numpy

  """
  @spec result_type([type | Tensor.t() | number | boolean | Ferrox.Complex.t() | nil], promotion) ::
          t
  def result_type(operands, opts \\ []) do
    unless is_list(operands) do
      raise ArgumentError, "expected a list of operands, got: #{inspect(operands)}"
    end

    mode = mode(opts)
    result(mode, settle(mode, operands))
  end

  # The operands as promotion sees them. In a system without bool or without weak types, a tensor of
  # such a type counts as the type that stands for it.
  defp settle(mode, operands) do
    facts = facts(mode)
    operands |> Scalars.settle(facts) |> Enum.map(&operand_type!(&1, facts))
  end

  # What a system computes for an operation on tensors and numbers: `{operation, type, whether the
  # type is weak, type that operands are computed in}`. The operation is another one where `:add` of
  # bools is `:logical_or`. The first clause is a shortcut for tensors of one type in operations
  # whose result has the type of the operands; a test checks that the table gives the same.
  @doc false
  @spec operation(mode, atom, list) :: {atom, Type.t() | :bool, boolean, Type.t() | :bool}
  def operation(:nx, op, [%Tensor{type: {_, _} = type} | rest] = operands)
      when op in [:dot, :select, :concatenate, :stack] do
    if all_of_type?(rest, type), do: {op, type, false, type}, else: resolve(:nx, op, op, operands)
  end

  def operation(mode, op, operands), do: resolve(mode, op, op, operands)

  # The type that a function named `name`, which the table doesn't have, gives: that of an operation
  # which it has.
  @doc false
  @spec type_as(mode, atom, atom, list) :: Type.t() | :bool
  def type_as(mode, op, name, operands), do: mode |> resolve(op, name, operands) |> elem(1)

  defp all_of_type?([], _type), do: true
  defp all_of_type?([%Tensor{type: type} | rest], type), do: all_of_type?(rest, type)
  defp all_of_type?(_operands, _type), do: false

  # `name` is the function that was called, for errors.
  defp resolve(mode, op, name, operands) do
    case Native.operation(mode, op, plain(operands, mode) || native_operands(mode, operands)) do
      {:error, {:undefined, type}} ->
        raise ArgumentError,
              "#{name} is not defined for #{Names.short(type)} under #{name(mode)}; " <>
                "cast with Ferrox.as_type/2, or choose another promotion system"

      {:error, reason} ->
        raise_refused!(reason, mode, settle(mode, operands))

      resolved ->
        resolved
    end
  end

  defp native_operands(mode, operands), do: mode |> settle(operands) |> Enum.map(&to_native/1)

  # The operands for the native library if they need no preparation, else nil: tensors that are neither
  # weak nor of type bool, and numbers of 64 bits, in a system where all tensors count with their type.
  defp plain(operands, mode),
    do: if(facts(mode).scalars == :types, do: plain(operands))

  defp plain([]), do: []

  defp plain([%Tensor{type: {_, _} = type, weak: false} | rest]) do
    if rest = plain(rest), do: [type | rest]
  end

  defp plain([number | rest]) when is_64_bit(number) do
    if rest = plain(rest), do: [number | rest]
  end

  defp plain(_operands), do: nil

  @doc """
  Returns whether a type is weak: it has a kind, but no size.

  ## Examples

      iex> Ferrox.Promotion.weak?(:float)
      true
      iex> Ferrox.Promotion.weak?({:f, 32})
      false

  """
  @spec weak?(t) :: boolean
  def weak?(type), do: type in [:int, :float, :complex]

  @doc """
  Returns the type in which a weak result is stored: the default type of its kind. Returns other
  types unchanged.

  ## Examples

      iex> Ferrox.Promotion.concrete(:int, system: :jax)
      {:s, 64}
      iex> Ferrox.Promotion.concrete(:int, system: :jax, x64: false)
      {:s, 32}
      iex> Ferrox.Promotion.concrete({:u, 8}, system: :jax)
      {:u, 8}

  """
  @spec concrete(type, promotion) :: Type.t() | :bool
  def concrete(type, opts \\ []), do: Native.promotion_concrete(mode(opts), type!(type))

  @doc """
  Runs the function while a system with its options is in effect for the calling process.

  Calls can be nested: options without `:system` change those of the surrounding call. The previous
  system is restored at the end, also if the function raises. Processes that the function starts
  are not affected.

  ## Examples

      iex> Ferrox.Promotion.with([system: :jax], fn ->
      ...>   Ferrox.Promotion.with([x64: false], fn -> Ferrox.Promotion.promote(:u32, :s32) end)
      ...> end)
      {:s, 32}
      iex> Ferrox.Promotion.with(:numpy, fn -> Ferrox.Promotion.promote(:s32, :f32) end)
      {:f, 64}
      iex> Ferrox.Promotion.promote(:s32, :f32)
      {:f, 32}

  """
  @spec with(promotion, fun) :: term
  def with(options, fun) when is_function(fun, 0) do
    mode = mode(options)
    previous = Process.put(__MODULE__, mode)

    try do
      fun.()
    after
      if previous, do: Process.put(__MODULE__, previous), else: Process.delete(__MODULE__)
    end
  end

  def with(_options, other) do
    raise ArgumentError, "expected a function without arguments, got: #{inspect(other)}"
  end

  @doc """
  Returns the system in effect and its options, as a keyword list that `with/2` accepts.

  ## Examples

      iex> Ferrox.Promotion.current()
      [system: :nx]
      iex> Ferrox.Promotion.with({:jax, strict: true}, &Ferrox.Promotion.current/0)
      [system: :jax, strict: true]

  """
  @spec current() :: keyword
  def current, do: describe(mode([]))

  @doc """
  Sets the default system of all processes, and returns the previous default. A process in which
  `with/2` has set a system keeps that one.

  Without a system, the options change those in the application's configuration, so `[]` reads the
  configuration again. Call this function when a system starts: as with any change of a
  `:persistent_term`, every process then runs a garbage collection.

  ## Examples

      iex> Ferrox.Promotion.global_default([])
      [system: :nx]

  """
  @spec global_default(promotion) :: keyword
  def global_default(promotion) do
    previous = describe(default())
    configured = configured()
    promotion = if promotion == nil, do: [], else: promotion

    mode =
      if Keyword.keyword?(promotion) and not Keyword.has_key?(promotion, :system),
        do: apply_options!(configured, promotion),
        else: mode(promotion)

    :persistent_term.put(@default_mode_key, mode)
    previous
  end

  # Converts a system and its options to a mode, the internal form that the functions below take.
  # Every operation calls this function, so the clauses for the frequent forms come first.
  @doc false
  @spec mode(promotion | nil) :: mode
  def mode(promotion)
  def mode(:nx), do: :nx
  def mode(empty) when empty in [[], nil], do: in_effect()
  def mode(system: :nx), do: :nx
  def mode(system) when is_atom(system), do: resolve!(system, [])
  def mode(system: system), do: resolve!(system, [])

  def mode({system, bits} = mode) when is_atom(system) and is_integer(bits) do
    known = Map.get(switches(), system, [])

    if bits in 1..(2 ** length(known) - 1)//1 do
      mode
    else
      raise ArgumentError, "expected a keyword list of options, got: #{inspect(bits)}"
    end
  end

  def mode({system, opts}) do
    if is_list(opts) and Keyword.has_key?(opts, :system) do
      raise ArgumentError, "the system is given twice: #{inspect({system, opts})}"
    end

    resolve!(system, opts)
  end

  def mode(opts) do
    case opts |> keyword!() |> Keyword.pop(:system) do
      {nil, opts} -> apply_options!(in_effect(), opts)
      {system, opts} -> resolve!(system, opts)
    end
  end

  @doc false
  @spec in_effect() :: mode
  def in_effect do
    case :erlang.get(__MODULE__) do
      :undefined -> default()
      mode -> mode
    end
  end

  defp default do
    with nil <- :persistent_term.get(@default_mode_key, nil),
         do: cache(@default_mode_key, configured())
  end

  defp configured do
    case Application.get_env(:ferrox, :promotion) do
      empty when empty in [nil, []] -> :nx
      system when is_atom(system) -> resolve!(system, [])
      {system, opts} -> resolve!(system, opts)
      opts -> resolve!(Keyword.get(keyword!(opts), :system, :nx), Keyword.delete(opts, :system))
    end
  end

  defp cache(key, value) do
    :persistent_term.put(key, value)
    value
  end

  # The properties of a mode that operations need, see Ferrox.Promotion.Results.facts/1. They are
  # cached for each mode.
  @doc false
  @spec facts(mode) :: map
  def facts(mode) do
    key = {__MODULE__, mode}
    with nil <- :persistent_term.get(key, nil), do: cache(key, Results.facts(mode))
  end

  defp resolve!(system, opts) do
    unless is_atom(system) and is_map_key(switches(), system) do
      raise ArgumentError, unknown_system(system)
    end

    apply_options!(system, opts)
  end

  defp apply_options!(mode, opts) do
    case opts |> keyword!() |> Enum.reduce(split_mode(mode), &apply_option!/2) do
      {system, 0} -> system
      mode -> mode
    end
  end

  defp keyword!(opts) do
    if Keyword.keyword?(opts) do
      opts
    else
      raise ArgumentError, "expected a keyword list of options, got: #{inspect(opts)}"
    end
  end

  # Sets or clears the bit of an option.
  defp apply_option!({key, value}, {system, bits}) do
    switches = Map.fetch!(switches(), system)

    case Enum.find(switches, fn {_bit, _flag, known, _, _} -> known == key end) do
      {bit, _flag, _key, _off, ^value} ->
        {system, Bitwise.bor(bits, bit)}

      {bit, _flag, _key, ^value, _on} ->
        {system, Bitwise.band(bits, Bitwise.bnot(bit))}

      {_bit, _flag, key, off, on} ->
        raise ArgumentError,
              "invalid value for option #{inspect(key)}: #{inspect(value)}, " <>
                "expected #{inspect(off)} or #{inspect(on)}"

      nil ->
        raise ArgumentError,
              "unknown option #{inspect(key)} of #{inspect(system)}, expected: " <>
                Enum.map_join([:system | Enum.map(switches, &elem(&1, 2))], ", ", &inspect/1)
    end
  end

  defp split_mode({_system, _bits} = mode), do: mode
  defp split_mode(system), do: {system, 0}

  # The options of each system, `%{system => [{bit, flag, key, off, on}]}`: `flag` is the name of
  # the option in `mix ferrox.promote`, `off` the default value of `key`, and `on` the other value.
  # The native library is asked once, because the list can't change while the library is loaded.
  @doc false
  @spec switches() :: %{system => [{pos_integer, String.t(), atom, term, term}]}
  def switches do
    with nil <- :persistent_term.get(__MODULE__, nil) do
      numbered =
        for {system, switches} <- Native.promotion_systems(), into: %{} do
          {system,
           Enum.with_index(switches, fn {flag, key, off, on}, n ->
             {2 ** n, flag, key, off, on}
           end)}
        end

      cache(__MODULE__, numbered)
    end
  end

  # A mode as a keyword list, the form in which users write it.
  @doc false
  @spec describe(mode) :: keyword
  def describe(mode) do
    {system, bits} = split_mode(mode)

    on =
      for {bit, _flag, key, _off, on} <- Map.get(switches(), system, []),
          Bitwise.band(bits, bit) != 0,
          do: {key, on}

    [{:system, system} | on]
  end

  # The type that two types promote to.
  @doc false
  @spec merge(mode, t, t) :: t
  def merge(mode, left, right) do
    case Native.merge(mode, left, right) do
      {:error, reason} -> raise_refused!(reason, mode, [left, right])
      type -> type
    end
  end

  # The type that a type and a plain number promote to.
  @doc false
  @spec merge_number(mode, t, term) :: t
  def merge_number(mode, type, integer) when is_integer(integer) and not is_64_bit(integer),
    do: result(mode, [type, integer])

  def merge_number(mode, type, number) do
    case Native.merge_number(mode, type, number) do
      {:error, reason} -> raise_refused!(reason, mode, [type, number])
      type -> type
    end
  end

  # The same as result_type/2, but with operands that have been checked and converted.
  @doc false
  @spec result(mode, list) :: t
  def result(mode, operands) do
    case Native.result_type(mode, Enum.map(operands, &to_native/1)) do
      {:error, reason} -> raise_refused!(reason, mode, operands)
      type -> type
    end
  end

  # An operand in the form that the native library reads.
  defp to_native(integer) when is_integer(integer) and not is_64_bit(integer),
    do: {:int, if(integer > 0, do: 1, else: -1)}

  defp to_native(%{re: re, im: im}), do: {:complex, finite_part(re), finite_part(im)}
  defp to_native(non_finite) when non_finite in [:nan, :infinity, :neg_infinity], do: 0.0
  defp to_native(operand), do: operand

  # Some systems look at the magnitude of a number, but none at infinities and NaN.
  defp finite_part(part) when is_float(part), do: part
  defp finite_part(_non_finite), do: 0.0

  # A number as it is, and the type of anything else.
  defp operand_type!(number, _facts) when is_number(number) or is_complex(number), do: number

  defp operand_type!(atom, _facts)
       when atom in [nil, true, false, :nan, :infinity, :neg_infinity],
       do: atom

  defp operand_type!(%Tensor{} = tensor, facts) do
    case tensor_type(tensor, facts) do
      type when tensor.shape == {} or type in [:int, :float, :complex] -> type
      type -> {:array, type}
    end
  end

  defp operand_type!({:array, type}, _facts), do: {:array, type!(type)}
  defp operand_type!(type, _facts), do: type!(type)

  # The type of a tensor in a system with these properties.
  defp tensor_type(%Tensor{type: :bool}, %{bool: nil}), do: {:u, 8}
  defp tensor_type(%Tensor{weak: true, type: type}, %{weak: true}), do: kind(type)
  defp tensor_type(%Tensor{type: type}, _facts), do: type

  # The weak type of the same kind as a type or a number, or :bool.
  @doc false
  @spec kind(t | Numbers.number_term()) :: :bool | :int | :float | :complex
  def kind({kind, _}) when kind in [:s, :u], do: :int
  def kind({:c, _}), do: :complex
  def kind({_, _}), do: :float
  def kind(integer) when is_integer(integer), do: :int
  def kind(float) when is_float(float) or float in [:nan, :infinity, :neg_infinity], do: :float
  def kind(complex) when is_complex(complex), do: :complex
  def kind(boolean) when is_boolean(boolean), do: :bool
  def kind(weak_or_bool), do: weak_or_bool

  # The type in its canonical form, or nil if the term is no type.
  @doc false
  @spec fetch(term) :: t | nil
  def fetch(type) when type in [:bool, :int, :float, :complex], do: type
  def fetch(name) when is_binary(name), do: Names.from_numpy(name)
  def fetch(type), do: Type.fetch(type)

  defp type!(type), do: fetch(type) || raise(ArgumentError, unknown_type(type))

  # Raises the error for a reason that the native library has returned.
  @spec raise_refused!(term, mode, list) :: no_return
  defp raise_refused!(:pair, mode, operands) do
    types = Enum.map(operands, &type_of_operand/1)

    raise PromotionError,
      operands: types,
      promotion: describe(mode),
      message:
        "#{join_with_and(Enum.map(types, &operand_text/1))} have no implicit promotion under " <>
          "#{name(mode)}. Cast the operands to the type you want, or #{suggestion(mode, operands)}"
  end

  defp raise_refused!(reason, mode, operands),
    do: raise(ArgumentError, refusal(reason, mode, operands))

  defp refusal(:mode, mode, _), do: unknown_system(elem(split_mode(mode), 0))
  defp refusal(:left, _mode, operands), do: unknown_type(hd(operands))
  defp refusal(:right, _mode, operands), do: unknown_type(List.last(operands))
  defp refusal(:empty, _mode, _operands), do: "expected at least one operand"
  defp refusal(:absent, mode, _operands), do: "nil stands for no type under #{name(mode)}"

  defp refusal(:operand, _mode, operands),
    do: "expected types and numbers, got: #{inspect(operands)}"

  defp refusal({:unknown, type}, mode, operands) do
    "#{elem(split_mode(mode), 0)} does not define the promotion of " <>
      "#{Enum.map_join(operands, " with ", &operand_text/1)}: it has no type #{Names.short(type)}, " <>
      "only #{Enum.map_join(types(mode), ", ", &Names.short/1)}"
  end

  defp refusal(:alone, mode, operands) do
    "no type holds #{Enum.map_join(operands, ", ", &operand_text/1)} under #{name(mode)}: " <>
      "give the number a type, or a partner that has one"
  end

  defp refusal({:range, type}, mode, operands) do
    {low, high} = Numbers.integer_range(type)
    number = Enum.find(operands, &(is_integer(&1) and (&1 < low or &1 > high)))

    "#{number} is out of the range of #{Names.short(type)}, #{low} to #{high}, " <>
      "which it would be under #{name(mode)}"
  end

  # The last part of the error message: an option whose default value would define the promotion,
  # else another system.
  defp suggestion(mode, operands) do
    {system, bits} = split_mode(mode)
    operands = Enum.map(operands, &to_native/1)
    defined? = &(not match?({:error, _}, Native.result_type(&1, operands)))

    switch =
      Enum.find(Map.fetch!(switches(), system), fn {bit, _, _, _, _} ->
        Bitwise.band(bits, bit) != 0 and defined?.({system, Bitwise.bxor(bits, bit)})
      end)

    case switch || Enum.find(systems(), defined?) do
      {_bit, _flag, key, off, _on} -> "set #{key}: #{inspect(off)}"
      nil -> "choose a system that defines it"
      other -> "choose a system that defines it, such as system: #{inspect(other)}"
    end
  end

  # A mode as text for error messages.
  @doc false
  @spec name(mode) :: String.t()
  def name(mode) do
    Enum.map_join(describe(mode), ", ", fn {key, value} -> "#{key}: #{inspect(value)}" end)
  end

  # The type of an operand for an error message about types: a number has the weak type of its kind.
  defp type_of_operand({:array, type}), do: type
  defp type_of_operand({_, _} = type), do: type
  defp type_of_operand(number_or_type), do: kind(number_or_type)

  defp operand_text({:array, type}), do: Names.short(type)
  defp operand_text(number) when is_number(number), do: inspect(number)
  defp operand_text(type), do: if(fetch(type), do: Names.short(type), else: inspect(type))

  defp join_with_and([one]), do: one
  defp join_with_and(many), do: Enum.join(Enum.drop(many, -1), ", ") <> " and " <> List.last(many)

  defp unknown_system(system) do
    "unknown promotion system #{inspect(system)}, expected one of: " <>
      Enum.map_join(systems(), ", ", &inspect/1)
  end

  defp unknown_type(type) do
    "unknown type #{inspect(type)}, expected a tuple such as {:f, 32} or one of: " <>
      Enum.map_join(types(:nx) ++ [:bool, :int, :float, :complex], ", ", fn type ->
        ":" <> String.trim_trailing(Names.short(type), "*")
      end)
  end
end
