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

  # The column of each system, and how tensors without axes count among others.
  @columns %{
    nx: {:nx, :types},
    nx_0_9: {:nx, :types},
    jax: {:jax, :types},
    numpy: {:numpy, :types},
    array_api: {:array_api, :types},
    ivy: {:ivy, :types},
    ivy_torch: {:ivy, :adopt},
    ivy_paddle: {:ivy, :types},
    ivy_numpy: {:ivy, :adopt},
    ivy_jax: {:ivy, :types},
    ivy_onnx: {:ivy, :types},
    ivy_mxnet: {:ivy, :types},
    ivy_tensorflow: {:ivy, :types}
  }

  @legacy {:numpy, 1}

  @doc false
  # What operations ask about a mode, put together once.
  def facts(mode) do
    {column, scalars} = Map.fetch!(@columns, if(is_tuple(mode), do: elem(mode, 0), else: mode))

    [int, float, complex] =
      Enum.map([:int, :float, :complex], &Native.promotion_concrete(mode, &1))

    %{
      column: column,
      scalars: if(mode == @legacy, do: :values, else: scalars),
      bool: if(column == :nx, do: nil, else: :bool),
      predicate: if(column == :nx, do: {:u, 8}, else: :bool),
      weak: column == :jax,
      index: index(column, int),
      int: int,
      float: float,
      complex: complex
    }
  end

  defp index(column, int) when column in [:nx, :jax], do: int
  defp index(_column, _int), do: {:s, 64}

  @doc false
  # The type in which a result is stored.
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

  @predicates [:equal, :not_equal, :greater, :less, :greater_equal, :less_equal] ++
                [:logical_and, :logical_or, :logical_xor]

  @doc false
  # What is computed for an operation on two operands of a type, and its type;
  # `:error` where the system refuses it.
  def binary(%{column: column} = facts, op, type) when op in @predicates do
    if column == :array_api and refused?(op, type), do: :error, else: {op, facts.predicate}
  end

  def binary(facts, :divide, type), do: op(:divide, quotient(facts.column, facts, type))

  def binary(%{column: column} = facts, :atan2, type) do
    if column not in [:nx, :jax] and Promotion.kind(type) == :complex,
      do: :error,
      else: op(:atan2, floating(facts, type))
  end

  def binary(%{column: :array_api}, op, :bool)
      when op not in [:bitwise_and, :bitwise_or, :bitwise_xor],
      do: :error

  def binary(_facts, op, :bool) when is_map_key(@logical, op),
    do: {:erlang.map_get(op, @logical), :bool}

  def binary(facts, op, :bool) when op in @counting,
    do: {op, if(facts.column == :jax, do: {:s, 32}, else: {:s, 8})}

  def binary(_facts, _op, :bool), do: :error
  def binary(_facts, op, type), do: {op, type}

  defp refused?(op, type) when op in [:logical_and, :logical_or, :logical_xor], do: type != :bool
  defp refused?(op, _type) when op in [:equal, :not_equal], do: false
  defp refused?(_op, type), do: type == :bool

  defp op(_op, :error), do: :error
  defp op(op, type), do: {op, type}

  defp quotient(:numpy, _facts, type) when type == :bool or elem(type, 0) in [:s, :u],
    do: {:f, 64}

  defp quotient(_column, facts, type), do: floating(facts, type)

  @bit_counts [:population_count, :count_leading_zeros]

  @doc false
  # The same for an operation on one.
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
      when op in [:negate, :sign, :floor, :ceil, :round, :abs] or op in @bit_counts,
      do: {op, type}

  def unary(_facts, :bitwise_not, type), do: {:bitwise_not, type}
  def unary(facts, op, type), do: op(op, floating(facts, type))

  @doc false
  # The float that a function of real numbers gives.
  def floating(%{column: column} = facts, type) do
    case Promotion.kind(type) do
      kind when kind in [:float, :complex] -> type
      _ when type == :int -> :float
      kind -> floating(column, facts, kind, type)
    end
  end

  defp floating(:jax, facts, :int, {_, 64}), do: facts.float
  defp floating(:jax, _facts, _kind, _type), do: {:f, 32}
  defp floating(:numpy, _facts, :bool, _type), do: {:f, 16}
  defp floating(:numpy, _facts, :int, {_, bits}), do: {:f, min(max(2 * bits, 16), 64)}
  defp floating(:array_api, _facts, _kind, _type), do: :error
  defp floating(:ivy, facts, _kind, _type), do: facts.float
  defp floating(:nx, _facts, _kind, type), do: Type.to_floating(type)

  @doc false
  # The type of a reduction.
  def reduction(facts, op, type) do
    case reduced(facts.column, facts, op, type) do
      :error -> :error
      type -> concrete(facts, type)
    end
  end

  defp reduced(_column, facts, op, _type) when op in [:all, :any], do: facts.predicate
  defp reduced(:array_api, _facts, _op, :bool), do: :error
  defp reduced(_column, _facts, op, type) when op in [:reduce_max, :reduce_min], do: type
  defp reduced(column, facts, :mean, type), do: quotient(column, facts, type)
  defp reduced(:nx, _facts, _op, type), do: Type.to_aggregate(type)
  defp reduced(_column, facts, _op, :bool), do: facts.int
  defp reduced(:ivy, _facts, :sum, type), do: type

  defp reduced(:ivy, facts, :product, type) do
    {kind, bits} = type
    {_, least} = concrete(facts, Promotion.kind(type))

    cond do
      bits >= least -> type
      kind == :bf -> facts.float
      true -> {kind, least}
    end
  end

  defp reduced(_column, facts, _op, {kind, _}) when kind in [:s, :u],
    do: {kind, elem(facts.int, 1)}

  defp reduced(_column, _facts, _op, type), do: type

  @doc false
  # Whether the system has an order for the type, in which to look for extremes.
  def ordered?(%{column: :array_api}, :bool), do: false
  def ordered?(_facts, _type), do: true

  @doc false
  # The type of a literal, weak where the system has that.
  def literal(%{column: :nx}, number), do: Type.infer(number)
  def literal(_facts, number) when is_boolean(number), do: :bool
  def literal(_facts, number) when is_integer(number), do: :int
  def literal(_facts, number) when is_float(number) or is_atom(number), do: :float
  def literal(_facts, _complex), do: :complex

  @doc false
  # A type that is asked for, where the system can't do as said: JAX without
  # types of 64 bits takes those of 32.
  def narrow(:nx, type), do: type

  def narrow(mode, type) do
    case Native.merge(mode, type, type) do
      {:error, _} -> type
      type -> type
    end
  end
end
