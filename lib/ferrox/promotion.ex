defmodule Ferrox.Promotion do
  @moduledoc """
  Which type results from operands of two types.

  Libraries disagree about that, so the rules are data: each *promotion system*
  is a table on the native side.

    * `:nx` - Nx as it is today (0.13.1), what the functions of `Ferrox` use.
    * `:nx_0_9` - Nx 0.9.0 to 0.9.2. There `f64` with `c64` is `c64`, while it
      is `c128` in `:nx`, and there is no `f8_e4m3fn`.

  Under both systems, types of one kind become the wider one; of two kinds the
  higher of `c > f > bf > s > u` wins whole, whatever the sizes; and unsigned
  with signed is a signed type that holds both, up to `s64`.

      iex> Ferrox.Promotion.promote(:u8, :s8)
      {:s, 16}
      iex> Ferrox.Promotion.promote(:s64, :bf16)
      {:bf, 16}

  Operands commute, and can be grouped at will, but for `f8_e4m3fn` under
  `:nx`: with another float the left one wins.

      iex> Ferrox.Promotion.promote(:f8_e4m3fn, :f32)
      {:f8_e4m3fn, 8}
      iex> Ferrox.Promotion.promote(:f32, :f8_e4m3fn)
      {:f, 32}

  """

  alias Ferrox.{Native, Type}

  @typedoc "A name out of `systems/0`."
  @type system :: atom

  @doc """
  The names of the promotion systems, the default one first.

  ## Examples

      iex> hd(Ferrox.Promotion.systems())
      :nx
      iex> :nx_0_9 in Ferrox.Promotion.systems()
      true

  """
  @spec systems() :: [system]
  def systems, do: for({system, _types} <- Native.promotion_systems(), do: system)

  @doc """
  The types that a system has.

  ## Examples

      iex> {:f8_e4m3fn, 8} in Ferrox.Promotion.types(:nx)
      true
      iex> {:f8_e4m3fn, 8} in Ferrox.Promotion.types(:nx_0_9)
      false

  """
  @spec types(system) :: [Type.t()]
  def types(system \\ :nx) do
    case List.keyfind(Native.promotion_systems(), system, 0) do
      {^system, types} -> types
      nil -> raise ArgumentError, unknown_system(system)
    end
  end

  @doc """
  The type of an operation on a `left` and a `right` operand.

  Types are given as tuples or as atoms.

  ## Options

    * `:system` - one of `systems/0`, by default `:nx`

  ## Examples

      iex> Ferrox.Promotion.promote({:u, 8}, {:f, 32})
      {:f, 32}
      iex> Ferrox.Promotion.promote(:f64, :c64)
      {:c, 128}
      iex> Ferrox.Promotion.promote(:f64, :c64, system: :nx_0_9)
      {:c, 64}

  """
  @spec promote(Type.t() | Type.short_t(), Type.t() | Type.short_t(), system: system) :: Type.t()
  def promote(left, right, opts \\ []) do
    system = system!(opts)
    lookup(system, type!(left), type!(right))
  end

  # What operations call before they start: the types are valid already. Equal
  # ones stay what they are under :nx, which a test holds it to.
  @doc false
  @spec merge(system, Type.t(), Type.t()) :: Type.t()
  def merge(:nx, type, type), do: type
  def merge(system, left, right), do: lookup(system, left, right)

  # As merge/3, but whatever the types, an invalid one raises.
  @doc false
  @spec lookup(system, Type.t(), Type.t()) :: Type.t()
  def lookup(system, left, right) do
    case Native.merge(system, left, right) do
      {:error, reason} -> raise ArgumentError, explain(reason, system, left, right)
      type -> type
    end
  end

  # The largest integers that a type holds. No system looks at how far beyond
  # an integer is.
  @min -0x8000000000000000
  @max 0xFFFFFFFFFFFFFFFF

  @doc false
  @spec merge_number(system, Type.t(), term) :: Type.t()
  def merge_number(system, type, integer) when is_integer(integer) and integer > @max,
    do: merge_number(system, type, @max)

  def merge_number(system, type, integer) when is_integer(integer) and integer < @min,
    do: merge_number(system, type, @min)

  def merge_number(system, type, number) do
    case Native.merge_number(system, type, number) do
      {:error, reason} -> raise ArgumentError, explain(reason, system, type, number)
      type -> type
    end
  end

  defp system!([]), do: :nx
  defp system!(system: system), do: system

  defp system!(opts) do
    unless Keyword.keyword?(opts) do
      raise ArgumentError, "expected a keyword list of options, got: #{inspect(opts)}"
    end

    case Keyword.split(opts, [:system]) do
      {known, []} ->
        Keyword.get(known, :system, :nx)

      {_, [{name, _} | _]} ->
        raise ArgumentError, "unknown option #{inspect(name)}, expected: :system"
    end
  end

  defp type!(type), do: Type.fetch(type) || raise(ArgumentError, unknown_type(type))

  defp explain(:system, system, _left, _right), do: unknown_system(system)
  defp explain(:left, _system, left, _right), do: unknown_type(left)
  defp explain(:right, _system, _left, right), do: unknown_type(right)
  defp explain(message, _system, _left, _right), do: message

  defp unknown_system(system) do
    "unknown promotion system #{inspect(system)}, expected one of: " <>
      Enum.map_join(systems(), ", ", &inspect/1)
  end

  defp unknown_type(type) do
    "unknown type #{inspect(type)}, expected a tuple such as {:f, 32} or one of: " <>
      Enum.map_join(types(), ", ", &":#{Type.to_string(&1)}")
  end
end
