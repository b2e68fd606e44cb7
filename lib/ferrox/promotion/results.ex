defmodule Ferrox.Promotion.Results do
  @moduledoc since: "0.1.0"
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
  | integers: `cumulative_sum`, `cumulative_product`, `window_sum`, `window_product` | stay | stay | as `product` | as `product` | as `product` |
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

  alias Ferrox.{Native, Operands, Promotion, Tensor, Type}

  # What operations ask about a mode. `scalars` says how tensors without axes count among others.
  @doc false
  @spec facts(Promotion.mode()) :: map
  def facts(mode) do
    {scalars, weak, predicate, index} = Native.promotion_facts(mode)

    %{
      scalars: scalars,
      weak: weak,
      bool: if(predicate == :bool, do: :bool),
      index: index,
      int: Native.promotion_concrete(mode, :int),
      float: Native.promotion_concrete(mode, :float),
      complex: Native.promotion_concrete(mode, :complex)
    }
  end

  # The type in which a result is stored.
  @doc false
  def concrete(facts, :int), do: facts.int
  def concrete(facts, :float), do: facts.float
  def concrete(facts, :complex), do: facts.complex
  def concrete(_facts, type), do: type

  # The type of a literal, weak where the system has that.
  @doc false
  def literal(%{bool: nil}, number), do: Type.infer(number)
  def literal(_facts, number), do: Promotion.kind(number)

  # The type of a cumulative operation or of one of windows on a tensor. Minima and maxima are elements of the tensor.
  @doc false
  @spec cumulative(Promotion.mode(), atom, Tensor.t()) :: Type.t() | :bool
  def cumulative(mode, op, %Tensor{type: type} = tensor)
      when op in [:cumulative_sum, :cumulative_product, :window_sum, :window_product] do
    facts = Promotion.facts(mode)

    cond do
      facts.bool == nil -> Operands.storage(type)
      facts.weak and type != :bool -> type
      true -> Promotion.type_as(mode, :product, op, [tensor])
    end
  end

  def cumulative(_mode, _op, %Tensor{type: type}), do: type

  # The type of a result for which `type` is asked: JAX without types of 64 bits takes those of 32.
  @doc false
  def narrow(:nx, type), do: type

  def narrow(mode, type) do
    with {:error, _} <- Native.merge(mode, type, type), do: type
  end
end
