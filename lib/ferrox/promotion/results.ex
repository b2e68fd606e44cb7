defmodule Ferrox.Promotion.Results do
  @moduledoc """
  What else of an operation's type depends on the promotion system.

  Promotion finds one type for the operands. What an operation makes of it is
  part of the system too:

  | | Nx | JAX | NumPy | Array API | Ivy |
  | --- | --- | --- | --- | --- | --- |
  | comparisons, logical operations, `is_nan`, `all`, `any` | u8 | bool | bool | bool | bool |
  | integers: `exp` and its kin, `atan2` | f32 | f32, of 64 bits the default float | f16, f32 or f64 by their size | refused | the default float |
  | integers: `divide` | f32 | as above | f64 | refused | the default float |
  | integers: `mean` | f32 | as above | f64 | refused | the default float |
  | integers: `sum` | 32 bits, of 64 bits 64 | the default size | 64 bits | 64 bits | stay |
  | integers: `product` | as `sum` | as `sum` | as `sum` | as `sum` | at least 32 bits |
  | complex numbers: `atan2`, where they are real | stay | stay | refused | refused | refused |
  | bool: `add`, `max`; `multiply`, `min` | | or; and | or; and | refused | or; and |
  | bool: `subtract`, `negate`, `sign` | | refused | refused | refused | refused |
  | bool: `pow`, `remainder`, `quotient`, shifts | | s32 | s8 | refused | s8 |
  | bool: `bitwise_and` and its kin | | logical | logical | logical | logical |
  | bool: `round` | | refused | f16 | refused | f16 |
  | bool: `sum`, `product` | | the default integer | s64 | refused | the default integer |
  | indices: `argmax`, `argmin` | s32 | the default integer | s64 | s64 | s64 |
  | a literal integer, float | s32, f32 | weak, the default ones | s64, f64 | s64, f64 | s32, f32 |

  The default types are those that `Ferrox.Promotion.concrete/2` gives for weak
  ones. Floats and complex numbers stay what they are, but the magnitude of a
  complex number is a float of half its size.

  Under the Nx systems, which have no bool, a tensor of bools counts as the u8
  that holds it. The frontends of Ivy go by Ivy's column. Results that are weak
  are so under JAX alone; reductions drop weakness, as they do there.
  """

  alias Ferrox.{Native, Promotion, Type}

  @ivy ~w(ivy ivy_torch ivy_paddle ivy_numpy ivy_jax ivy_onnx ivy_mxnet ivy_tensorflow)a

  # The column of each system.
  @columns %{nx: :nx, nx_0_9: :nx, jax: :jax, numpy: :numpy, array_api: :array_api}
           |> Map.merge(Map.new(@ivy, &{&1, :ivy}))

  # What operations ask about a mode. `scalars` says how tensors without axes count among others.
  @doc false
  @spec facts(Promotion.mode()) :: map
  def facts(mode) do
    column = Map.fetch!(@columns, if(is_tuple(mode), do: elem(mode, 0), else: mode))
    int = Native.promotion_concrete(mode, :int)

    %{
      column: column,
      scalars: scalars(mode),
      bool: if(column == :nx, do: nil, else: :bool),
      predicate: if(column == :nx, do: {:u, 8}, else: :bool),
      weak: column == :jax,
      index: if(column in [:nx, :jax], do: int, else: {:s, 64}),
      int: int,
      float: Native.promotion_concrete(mode, :float),
      complex: Native.promotion_concrete(mode, :complex)
    }
  end

  # `{:numpy, 1}` is NumPy with its legacy rule.
  defp scalars({:numpy, 1}), do: :values
  defp scalars(mode) when mode in [:ivy_torch, :ivy_numpy], do: :adopt
  defp scalars(_mode), do: :types

  # The type in which a result is stored.
  @doc false
  def concrete(facts, :int), do: facts.int
  def concrete(facts, :float), do: facts.float
  def concrete(facts, :complex), do: facts.complex
  def concrete(_facts, type), do: type

  @logical %{
    add: :logical_or,
    max: :logical_or,
    bitwise_or: :logical_or,
    multiply: :logical_and,
    min: :logical_and,
    bitwise_and: :logical_and,
    bitwise_xor: :logical_xor
  }

  @counting [:pow, :remainder, :quotient, :left_shift, :right_shift]

  @logical_ops [:logical_and, :logical_or, :logical_xor]
  @comparisons [:equal, :not_equal, :greater, :less, :greater_equal, :less_equal]

  @doc false
  defguard is_predicate(op) when op in @comparisons or op in @logical_ops

  # What is computed for an operation on two operands of a type, and its type;
  # `:error` where the system refuses it.
  @doc false
  def binary(%{column: :array_api}, op, type) when op in @logical_ops and type != :bool,
    do: :error

  def binary(%{column: :array_api}, op, :bool)
      when op not in @logical_ops and
             op not in [:equal, :not_equal, :bitwise_and, :bitwise_or, :bitwise_xor],
      do: :error

  def binary(facts, op, _type) when is_predicate(op), do: {op, facts.predicate}
  def binary(facts, :divide, type), do: computed(:divide, quotient(facts, type))

  def binary(%{column: column} = facts, :atan2, type) do
    if column not in [:nx, :jax] and Promotion.kind(type) == :complex,
      do: :error,
      else: computed(:atan2, floating(facts, type))
  end

  def binary(_facts, op, :bool) when is_map_key(@logical, op),
    do: {:erlang.map_get(op, @logical), :bool}

  def binary(facts, op, :bool) when op in @counting,
    do: {op, if(facts.column == :jax, do: {:s, 32}, else: {:s, 8})}

  def binary(_facts, _op, :bool), do: :error
  def binary(_facts, op, type), do: {op, type}

  defp computed(_op, :error), do: :error
  defp computed(op, type), do: {op, type}

  defp quotient(%{column: :numpy}, type) when type == :bool or elem(type, 0) in [:s, :u],
    do: {:f, 64}

  defp quotient(facts, type), do: floating(facts, type)

  @bit_counts [:population_count, :count_leading_zeros]

  # The same for an operation on one.
  @doc false
  def unary(%{column: :array_api}, :logical_not, type) when type != :bool, do: :error

  def unary(%{column: :array_api}, op, :bool) when op not in [:logical_not, :bitwise_not],
    do: :error

  def unary(facts, op, _type) when op in [:is_nan, :is_infinity, :logical_not],
    do: {op, facts.predicate}

  def unary(_facts, :bitwise_not, :bool), do: {:logical_not, :bool}
  def unary(_facts, op, :bool) when op in [:abs, :floor, :ceil], do: {op, :bool}

  def unary(%{column: column}, :round, :bool) when column in [:numpy, :ivy],
    do: {:round, {:f, 16}}

  def unary(_facts, op, :bool) when op in [:negate, :sign, :round] or op in @bit_counts,
    do: :error

  def unary(_facts, :abs, :complex), do: {:abs, :float}
  def unary(_facts, :abs, {:c, bits}), do: {:abs, {:f, div(bits, 2)}}

  def unary(_facts, op, type)
      when op in [:negate, :sign, :floor, :ceil, :round, :abs, :bitwise_not] or op in @bit_counts,
      do: {op, type}

  def unary(facts, op, type), do: computed(op, floating(facts, type))

  # The float that a function of real numbers gives.
  @doc false
  def floating(_facts, :int), do: :float

  def floating(%{column: column} = facts, type) do
    kind = Promotion.kind(type)
    if kind in [:float, :complex], do: type, else: floating(column, facts, kind, type)
  end

  defp floating(:jax, facts, :int, {_, 64}), do: facts.float
  defp floating(:jax, _facts, _kind, _type), do: {:f, 32}
  defp floating(:numpy, _facts, :bool, _type), do: {:f, 16}
  defp floating(:numpy, _facts, :int, {_, bits}), do: {:f, min(max(2 * bits, 16), 64)}
  defp floating(:array_api, _facts, _kind, _type), do: :error
  defp floating(:ivy, facts, _kind, _type), do: facts.float
  defp floating(:nx, _facts, _kind, type), do: Type.to_floating(type)

  # The type of a reduction.
  @doc false
  def reduction(facts, op, type) do
    with type when type != :error <- reduced(facts, op, type), do: concrete(facts, type)
  end

  defp reduced(facts, op, _type) when op in [:all, :any], do: facts.predicate
  defp reduced(%{column: :array_api}, _op, :bool), do: :error
  defp reduced(_facts, op, type) when op in [:reduce_max, :reduce_min], do: type
  defp reduced(facts, :mean, type), do: quotient(facts, type)
  defp reduced(%{column: :nx}, _op, type), do: Type.to_aggregate(type)
  defp reduced(facts, _op, :bool), do: facts.int
  defp reduced(%{column: :ivy}, :sum, type), do: type

  defp reduced(%{column: :ivy} = facts, :product, {kind, bits} = type) do
    {_, least} = concrete(facts, Promotion.kind(type))

    cond do
      bits >= least -> type
      kind == :bf -> facts.float
      true -> {kind, least}
    end
  end

  defp reduced(facts, _op, {kind, _}) when kind in [:s, :u], do: {kind, elem(facts.int, 1)}
  defp reduced(_facts, _op, type), do: type

  # Whether operations on numbers take the type. The array API has none for bools.
  @doc false
  def number_like?(%{column: column}, type), do: column != :array_api or type != :bool

  # The type of a literal, weak where the system has that.
  @doc false
  def literal(%{column: :nx}, number), do: Type.infer(number)
  def literal(_facts, number), do: Promotion.kind(number)

  # The type of a result for which `type` is asked: JAX without types of 64 bits takes those of 32.
  @doc false
  def narrow(:nx, type), do: type

  def narrow(mode, type) do
    with {:error, _} <- Native.merge(mode, type, type), do: type
  end
end
