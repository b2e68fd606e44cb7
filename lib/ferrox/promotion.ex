defmodule Ferrox.Promotion do
  @moduledoc """
  Which type results from operands of several types.

  Libraries disagree about that, so the rules are data: each *promotion system*
  is a table on the native side.

    * `:nx` - Nx as it is today (0.13.1), the default.
    * `:nx_0_9` - Nx 0.9.0 to 0.9.2. There `f64` with `c64` is `c64`, while it
      is `c128` in `:nx`, and there is no `f8_e4m3fn`.
    * `:jax` - JAX: joins of a lattice. Options: `strict: true` refuses all but
      the promotion of plain numbers; `x64: false` does without types of 64 bits.
    * `:numpy` - NumPy. Option: `scalar: :nep50` (NumPy 2) or `:legacy`, where
      the value of a number decides (see below).
    * `:array_api` - the Python array API standard, which leaves undefined what
      mixes kinds.
    * `:ivy` - Ivy. Options: `precise: false` keeps a float as it is beside
      integers, `array_api: true` allows what the standard defines.
    * `:ivy_torch`, `:ivy_paddle`, `:ivy_numpy`, `:ivy_jax`, `:ivy_onnx`,
      `:ivy_mxnet`, `:ivy_tensorflow` - the tables of Ivy's frontends, each named
      after the library that it stands for.

  One pair under some of them:

      iex> for system <- [:nx, :jax, :numpy, :ivy], do: Ferrox.Promotion.promote(:s32, :f32, system: system)
      [{:f, 32}, {:f, 32}, {:f, 64}, {:f, 64}]

  ## Types

  Types are those of `Ferrox.Type`, as tuples (`{:bf, 16}`) or short names
  (`:bf16`), and in all systems but Nx's `:bool`. NumPy's names (`"bfloat16"`)
  are taken as well.

  A plain number says nothing about its size. Its type is *weak*: `:int`,
  `:float` or `:complex`, without a size. Beside a type of the same kind it
  gives way:

      iex> Ferrox.Promotion.promote(:s8, :int, system: :jax)
      {:s, 8}

  Under `:jax` results are weak too, where no operand says how large they are,
  and they can be promoted further. `weak?/1` tells, and `concrete/2` gives the
  type that such a result is stored in:

      iex> weak = Ferrox.Promotion.promote(:u8, :float, system: :jax)
      :float
      iex> Ferrox.Promotion.promote(weak, :f16, system: :jax)
      {:f, 16}
      iex> Ferrox.Promotion.concrete(weak, system: :jax)
      {:f, 64}

  No other system has weak results, and Nx's have no weak types at all: they
  look at the value of a number.

  ## Which system

  All functions take the system and its options. Without `:system` the options
  refine what is in effect: what `with/2` has set for the process, else the
  application's configuration, else `:nx`.

      config :ferrox, promotion: [system: :jax, x64: false]

  The configuration is read once, at the first promotion. `global_default/1`
  changes what is in effect while the system runs.

  The functions of `Ferrox` ask the same: each takes `:promotion`, a system or a
  system with options, and goes by what is in effect without it.

      iex> Ferrox.Promotion.with(:numpy, fn -> Ferrox.add(Ferrox.tensor([1]), 0.5) |> Ferrox.type() end)
      {:f, 64}
      iex> Ferrox.add(Ferrox.tensor([1]), 0.5, promotion: {:jax, x64: false}) |> Ferrox.type()
      {:f, 32}

  Beyond promotion, `Ferrox.Promotion.Results` has what else of an operation's
  type depends on the system.

  ## Order

  Under `:nx`, operands commute and can be grouped at will, but for
  `f8_e4m3fn`: with another float the left one wins.

      iex> Ferrox.Promotion.promote(:f8_e4m3fn, :f32)
      {:f8_e4m3fn, 8}
      iex> Ferrox.Promotion.promote(:f32, :f8_e4m3fn)
      {:f, 32}

  Under `:jax` both always hold. Ivy's tables commute but do not associate, so
  `result_type/2` goes from left to right. NumPy's doesn't associate either;
  there the types of the highest kind come first, whatever the order. Two of the
  frontends, `:ivy_numpy` and `:ivy_mxnet`, know `bool` with `bf16`, but not
  `bf16` with `bool`.

  ## NumPy's legacy rule

  Before NumPy 2 a number beside scalars was of its default type. A type stands
  for a scalar here:

      iex> Ferrox.Promotion.result_type([:s16, 1], system: :numpy)
      {:s, 16}
      iex> Ferrox.Promotion.result_type([:s16, 1], system: :numpy, scalar: :legacy)
      {:s, 64}

  Beside an array of the same kind its value decided. A tensor with axes is an
  array, and `{:array, type}` stands for one:

      iex> Ferrox.Promotion.result_type([{:array, :s16}, 1], system: :numpy, scalar: :legacy)
      {:s, 16}
      iex> Ferrox.Promotion.result_type([{:array, :s16}, 40_000], system: :numpy, scalar: :legacy)
      {:s, 32}

  """

  import Ferrox.Complex, only: [is_complex: 1]

  alias Ferrox.{Native, PromotionError, Tensor, Type}
  alias Ferrox.Promotion.{Names, Results, Scalars}

  @compile {:inline, default: 0}

  @typedoc "A name out of `systems/0`."
  @type system :: atom

  @typedoc "A type as promotion sees it; the last three are weak."
  @type t :: Type.t() | :bool | :int | :float | :complex

  @typedoc "What is taken for a type."
  @type type :: t | Type.short_t() | String.t()

  @typedoc "A system, or a system with options."
  @type promotion :: system | {system, keyword} | keyword

  # An atom is looked up sooner than a tuple.
  @default __MODULE__.Default

  # A system, or one with the bits of the options that are not at their default.
  @typedoc false
  @type mode :: system | {system, pos_integer}

  @doc """
  The names of the promotion systems, the default one first.

  ## Examples

      iex> hd(Ferrox.Promotion.systems())
      :nx
      iex> :jax in Ferrox.Promotion.systems()
      true

  """
  @spec systems() :: [system]
  def systems, do: for({system, _switches} <- Native.promotion_systems(), do: system)

  @doc """
  The types that a system has.

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
  The type of an operation on a `left` and a `right` operand.

  ## Options

    * `:system` - one of `systems/0`
    * `:strict`, `:x64` - JAX's
    * `:scalar` - NumPy's
    * `:precise`, `:array_api` - Ivy's

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
  def promote(left, right, opts \\ []), do: lookup(mode(opts), type!(left), type!(right))

  @doc """
  The type of an operation on any number of operands: types, tensors, plain
  numbers and booleans.

  `nil` is the default float under `:jax` and `:numpy`, and nothing under Ivy's
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

    result_of(mode(opts), operands)
  end

  # What operations ask: a system that has no bool or no weak results sees the
  # types that stand for them. Tensors of one type need none of it under Nx's.
  @doc false
  @spec result_of(mode, list) :: t
  def result_of(:nx, [%Tensor{type: {_, _} = type} | rest] = operands),
    do: if(all_of?(rest, type), do: type, else: result_of_each(:nx, operands))

  def result_of(mode, operands), do: result_of_each(mode, operands)

  defp all_of?([], _type), do: true
  defp all_of?([%Tensor{type: type} | rest], type), do: all_of?(rest, type)
  defp all_of?(_operands, _type), do: false

  defp result_of_each(mode, [%Tensor{} = left, %Tensor{} = right] = operands) do
    case facts(mode) do
      %{scalars: :types} = facts -> lookup(mode, type_of(left, facts), type_of(right, facts))
      facts -> result(mode, operands |> Scalars.settle(facts) |> Enum.map(&operand!(&1, facts)))
    end
  end

  defp result_of_each(mode, operands) do
    facts = facts(mode)
    result(mode, operands |> Scalars.settle(facts) |> Enum.map(&operand!(&1, facts)))
  end

  @doc """
  Whether a result is weak: has a kind, but no size.

  ## Examples

      iex> Ferrox.Promotion.weak?(:float)
      true
      iex> Ferrox.Promotion.weak?({:f, 32})
      false

  """
  @spec weak?(t) :: boolean
  def weak?(type), do: type in [:int, :float, :complex]

  @doc """
  The type that a weak result is stored in, the default one of its kind. Other
  types stay.

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
  Runs the function with a system and options in effect for the calling process.

  They nest: options without `:system` refine those around them. What was in
  effect before is restored at the end, and when the function raises. Processes
  that the function starts are not affected.

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
    before = Process.put(__MODULE__, mode)

    try do
      fun.()
    after
      if before, do: Process.put(__MODULE__, before), else: Process.delete(__MODULE__)
    end
  end

  def with(_options, other) do
    raise ArgumentError, "expected a function without arguments, got: #{inspect(other)}"
  end

  @doc """
  What is in effect, as a keyword list that `with/2` takes.

  ## Examples

      iex> Ferrox.Promotion.current()
      [system: :nx]
      iex> Ferrox.Promotion.with({:jax, strict: true}, &Ferrox.Promotion.current/0)
      [system: :jax, strict: true]

  """
  @spec current() :: keyword
  def current, do: describe(mode([]))

  @doc """
  Sets what is in effect in all processes where `with/2` has set nothing, and
  returns what was before.

  Without a system the options refine the application's configuration, so `[]`
  reads that anew. Like any use of `:persistent_term`, a change makes
  every process collect its garbage: it is meant for the start of a system.

  ## Examples

      Ferrox.Promotion.global_default({:jax, x64: false})
      #=> [system: :nx]

  """
  @spec global_default(promotion) :: keyword
  def global_default(promotion) do
    before = describe(default())
    configured = configured()

    mode =
      cond do
        promotion in [[], nil] ->
          configured

        Keyword.keyword?(promotion) and not Keyword.has_key?(promotion, :system) ->
          promotion |> Enum.reduce(split(configured), &switch!/2) |> join()

        true ->
          mode(promotion)
      end

    :persistent_term.put(@default, mode)
    before
  end

  # What all other functions take: a system, or one with the bits of its options.
  # Asked once an operation, so the frequent forms come first.
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
    keyword!(opts)

    case Keyword.pop(opts, :system) do
      {nil, opts} -> opts |> Enum.reduce(split(mode([])), &switch!/2) |> join()
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
    case :persistent_term.get(@default, nil) do
      nil ->
        mode = configured()
        :persistent_term.put(@default, mode)
        mode

      mode ->
        mode
    end
  end

  defp configured do
    case Application.get_env(:ferrox, :promotion) do
      nil -> :nx
      [] -> :nx
      system when is_atom(system) -> resolve!(system, [])
      {system, opts} -> resolve!(system, opts)
      opts -> resolve!(Keyword.get(keyword!(opts), :system, :nx), Keyword.delete(opts, :system))
    end
  end

  # What operations ask about a mode, see `Results`.
  @doc false
  def facts(mode) do
    case :persistent_term.get({__MODULE__, mode}, nil) do
      nil ->
        facts = Results.facts(mode)
        :persistent_term.put({__MODULE__, mode}, facts)
        facts

      facts ->
        facts
    end
  end

  defp resolve!(system, opts) do
    unless is_atom(system) and is_map_key(switches(), system) do
      raise ArgumentError, unknown_system(system)
    end

    opts |> keyword!() |> Enum.reduce({system, 0}, &switch!/2) |> join()
  end

  defp keyword!(opts) do
    if Keyword.keyword?(opts) do
      opts
    else
      raise ArgumentError, "expected a keyword list of options, got: #{inspect(opts)}"
    end
  end

  defp switch!({key, value}, {system, bits}) do
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

  defp split({system, bits}), do: {system, bits}
  defp split(system), do: {system, 0}
  defp join({system, 0}), do: system
  defp join(mode), do: mode

  # `%{system => [{bit, flag, key, off, on}]}`. Rust is asked once: the list
  # can't change while the library is loaded.
  @doc false
  def switches do
    with nil <- :persistent_term.get(__MODULE__, nil) do
      switches =
        for {system, switches} <- Native.promotion_systems(), into: %{} do
          {system,
           for {{flag, key, off, on}, n} <- Enum.with_index(switches) do
             {2 ** n, flag, key, off, on}
           end}
        end

      :persistent_term.put(__MODULE__, switches)
      switches
    end
  end

  # A mode as users write it.
  @doc false
  @spec describe(mode) :: keyword
  def describe(mode) do
    {system, bits} = split(mode)

    on =
      for {bit, _flag, key, _off, on} <- Map.get(switches(), system, []),
          Bitwise.band(bits, bit) != 0,
          do: {key, on}

    [{:system, system} | on]
  end

  # What operations call before they start: the types are valid already. Equal
  # ones stay what they are under :nx, which a test holds it to.
  @doc false
  @spec merge(mode, t, t) :: t
  def merge(:nx, type, type), do: type
  def merge(mode, left, right), do: lookup(mode, left, right)

  # As merge/3, but whatever the types, an invalid one raises.
  @doc false
  @spec lookup(mode, t, t) :: t
  def lookup(mode, left, right) do
    case Native.merge(mode, left, right) do
      {:error, reason} -> refuse(reason, mode, [left, right])
      type -> type
    end
  end

  # The largest integers that a type holds.
  @min -0x8000000000000000
  @max 0xFFFFFFFFFFFFFFFF

  @doc false
  @spec merge_number(mode, t, term) :: t
  def merge_number(mode, type, integer)
      when is_integer(integer) and (integer > @max or integer < @min),
      do: result(mode, [type, integer])

  def merge_number(mode, type, number) do
    case Native.merge_number(mode, type, number) do
      {:error, reason} -> refuse(reason, mode, [type, number])
      type -> type
    end
  end

  # result_type/2 without its checks.
  @doc false
  @spec result(mode, list) :: t
  def result(mode, operands) do
    case Native.result_type(mode, Enum.map(operands, &native/1)) do
      {:error, reason} -> refuse(reason, mode, operands)
      type -> type
    end
  end

  defp native(integer) when is_integer(integer) and integer > @max, do: {:int, 1}
  defp native(integer) when is_integer(integer) and integer < @min, do: {:int, -1}
  defp native(%{re: re, im: im}), do: {:complex, finite(re), finite(im)}
  defp native(non_finite) when non_finite in [:nan, :infinity, :neg_infinity], do: 0.0
  defp native(operand), do: operand

  # No system looks at an infinity or a NaN, but some at how large a number is.
  defp finite(part) when is_float(part), do: part
  defp finite(_non_finite), do: 0.0

  defp operand!(number, _facts) when is_number(number) or is_complex(number), do: number

  defp operand!(atom, _facts) when atom in [nil, true, false, :nan, :infinity, :neg_infinity],
    do: atom

  defp operand!(%Tensor{} = tensor, facts) do
    case type_of(tensor, facts) do
      type when tensor.shape == {} or type in [:int, :float, :complex] -> type
      type -> {:array, type}
    end
  end

  defp operand!({:array, type}, _facts), do: {:array, type!(type)}
  defp operand!(type, _facts), do: type!(type)

  defp type_of(%Tensor{type: :bool}, %{bool: nil}), do: {:u, 8}
  defp type_of(%Tensor{weak: true, type: type}, %{weak: true}), do: kind(type)
  defp type_of(%Tensor{type: type}, _facts), do: type

  # The weak type of a type's kind.
  @doc false
  @spec kind(t) :: t
  def kind({kind, _}) when kind in [:s, :u], do: :int
  def kind({:c, _}), do: :complex
  def kind({_, _}), do: :float
  def kind(weak_or_bool), do: weak_or_bool

  @doc false
  @spec fetch(term) :: t | nil
  def fetch(type) when type in [:bool, :int, :float, :complex], do: type
  def fetch(name) when is_binary(name), do: Names.from_numpy(name)
  def fetch(type), do: Type.fetch(type)

  defp type!(type), do: fetch(type) || raise(ArgumentError, unknown_type(type))

  defp refuse(reason, mode, operands) do
    case reason do
      :mode ->
        raise ArgumentError, unknown_system(elem(split(mode), 0))

      :left ->
        raise ArgumentError, unknown_type(hd(operands))

      :right ->
        raise ArgumentError, unknown_type(List.last(operands))

      :operand ->
        raise ArgumentError, "expected types and numbers, got: #{inspect(operands)}"

      :empty ->
        raise ArgumentError, "expected at least one operand"

      :absent ->
        raise ArgumentError, "nil stands for no type under #{name(mode)}"

      {:unknown, type} ->
        raise ArgumentError,
              "#{elem(split(mode), 0)} does not define the promotion of " <>
                "#{Enum.map_join(operands, " with ", &show/1)}: it has no type #{Names.short(type)}, " <>
                "only #{Enum.map_join(types(mode), ", ", &Names.short/1)}"

      :alone ->
        raise ArgumentError,
              "no type holds #{Enum.map_join(operands, ", ", &show/1)} under #{name(mode)}: " <>
                "give the number a type, or a partner that has one"

      {:range, type} ->
        raise ArgumentError, out_of_range(type, mode, operands)

      :pair ->
        raise PromotionError,
          operands: Enum.map(operands, &kind_of/1),
          promotion: describe(mode),
          message:
            "#{list(Enum.map(operands, &show(kind_of(&1))))} have no implicit promotion under " <>
              "#{name(mode)}. Cast the operands to the type you want, or #{remedy(mode, operands)}"
    end
  end

  defp out_of_range({kind, size} = type, mode, operands) do
    {low, high} =
      if kind == :u, do: {0, 2 ** size - 1}, else: {-(2 ** (size - 1)), 2 ** (size - 1) - 1}

    number = Enum.find(operands, &(is_integer(&1) and (&1 < low or &1 > high)))

    "#{number} is out of the range of #{Names.short(type)}, #{low} to #{high}, " <>
      "which it would be under #{name(mode)}"
  end

  # The option whose default would do, else another system.
  defp remedy(mode, operands) do
    {system, bits} = split(mode)
    operands = Enum.map(operands, &native/1)
    defined? = &(not match?({:error, _}, Native.result_type(&1, operands)))

    switch =
      Enum.find(Map.fetch!(switches(), system), fn {bit, _, _, _, _} ->
        Bitwise.band(bits, bit) != 0 and defined?.({system, Bitwise.bxor(bits, bit)})
      end)

    case switch do
      {_bit, _flag, key, off, _on} ->
        "set #{key}: #{inspect(off)}"

      nil ->
        case Enum.find(systems(), defined?) do
          nil -> "choose a system that defines it"
          other -> "choose a system that defines it, such as system: #{inspect(other)}"
        end
    end
  end

  @doc false
  @spec name(mode) :: String.t()
  def name(mode) do
    Enum.map_join(describe(mode), ", ", fn {key, value} -> "#{key}: #{inspect(value)}" end)
  end

  # Numbers are named by their type where types are told.
  defp kind_of(integer) when is_integer(integer), do: :int
  defp kind_of(float) when is_float(float), do: :float
  defp kind_of(complex) when is_complex(complex), do: :complex
  defp kind_of(boolean) when is_boolean(boolean), do: :bool
  defp kind_of(non_finite) when non_finite in [:nan, :infinity, :neg_infinity], do: :float
  defp kind_of({:array, type}), do: type
  defp kind_of(type), do: type

  defp show({:array, type}), do: Names.short(type)
  defp show(number) when is_number(number), do: inspect(number)
  defp show(type), do: if(fetch(type), do: Names.short(type), else: inspect(type))

  defp list([one]), do: one
  defp list(many), do: Enum.join(Enum.drop(many, -1), ", ") <> " and " <> List.last(many)

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
