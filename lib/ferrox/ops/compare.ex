defmodule Ferrox.Ops.Compare do
  @moduledoc false
  # Whether tensors are equal, or nearly so, and how many elements differ from zero.

  import Ferrox.Operands, only: [boolean!: 3, native: 1, options!: 3, promotion!: 2]

  alias Ferrox.{Native, Operands, Promotion, Shape, Tensor, Type}
  alias Ferrox.Ops.{Create, Elementwise, Reduce}

  @doc "See `Ferrox.all_close/3`."
  @spec all_close(term, term, keyword) :: Tensor.t()
  def all_close(left, right, opts) do
    {left, right, type, tolerance} = close!(:all_close, left, right, opts)
    data = Native.all_close({}, tolerance, native(left), native(right))
    %Tensor{data: data, type: type, shape: {}}
  end

  @doc "See `Ferrox.isclose/3`."
  @spec isclose(term, term, keyword) :: Tensor.t()
  def isclose(left, right, opts) do
    {left, right, type, {relative, absolute, equal_nan?}} = close!(:isclose, left, right, opts)
    [left, right] = for t <- [left, right], do: stored(t)
    {distance, magnitude} = distance(left, right)
    allowed = Elementwise.step(:add, Elementwise.step(:multiply, magnitude, relative), absolute)
    within? = Elementwise.step(:less_equal, distance, allowed)
    # An infinite tolerance is that beside infinity, which is close to itself alone.
    finite? = Elementwise.step(:logical_not, Elementwise.step(:is_infinity, right))
    within? = Elementwise.step(:logical_and, within?, finite?)
    close? = Elementwise.step(:logical_or, within?, Elementwise.step(:equal, left, right))
    close? = if equal_nan?, do: or_both_nan(close?, left, right), else: close?
    Elementwise.cast(close?, type)
  end

  # Of integers exact, in f64 in the end.
  defp distance(%Tensor{type: {kind, _}} = left, %Tensor{type: {other, _}} = right)
       when kind in [:s, :u] and other in [:s, :u] do
    larger? = Elementwise.step(:greater, left, right)
    [a, b] = for t <- [left, right], do: Elementwise.cast(t, {:u, 64})
    [there, back] = [Elementwise.step(:subtract, a, b), Elementwise.step(:subtract, b, a)]
    select = &Elementwise.select(&1, &2, &3, promotion: :nx)
    exact = Elementwise.cast(select.(larger?, there, back), {:f, 64})
    # Between a negative number and one past those with a sign, it may have wrapped around.
    {near, magnitude} = float_distance(left, right, {:f, 64})
    wrapped? = Elementwise.step(:greater_equal, near, 2.0 ** 64)
    {select.(wrapped?, near, exact), magnitude}
  end

  defp distance(%Tensor{type: left_type} = left, %Tensor{type: right_type} = right) do
    complex? = Type.complex?(left_type) or Type.complex?(right_type)
    float_distance(left, right, if(complex?, do: {:c, 128}, else: {:f, 64}))
  end

  defp float_distance(left, right, type) do
    [left, right] = for t <- [left, right], do: Elementwise.cast(t, type)

    {Elementwise.step(:abs, Elementwise.step(:subtract, left, right)),
     Elementwise.step(:abs, right)}
  end

  defp or_both_nan(close?, left, right) do
    [a, b] = for t <- [left, right], do: Elementwise.step(:is_nan, t)
    Elementwise.step(:logical_or, close?, Elementwise.step(:logical_and, a, b))
  end

  defp stored(tensor), do: %{tensor | type: Operands.storage(tensor.type), weak: false}

  # Both operands, the type of the result, and `{relative, absolute, whether NaN equals NaN}`.
  defp close!(name, left, right, opts) do
    opts = options!(opts, [:rtol, :atol, :equal_nan, :promotion], name)
    mode = promotion!(opts, name)
    relative = tolerance!(opts, :rtol, 1.0e-5, name)
    absolute = tolerance!(opts, :atol, 1.0e-8, name)
    equal_nan? = boolean!(opts, :equal_nan, name)
    operands = for operand <- [left, right], do: Operands.tensor!(operand, mode, name)
    [left, right] = operands
    type = Promotion.type_as(mode, :equal, name, operands)
    Shape.broadcast!(left.shape, right.shape, name, left.type, right.type)
    {left, right, type, {relative, absolute, equal_nan?}}
  end

  defp tolerance!(opts, key, default, name),
    do: Operands.not_negative!(Keyword.get(opts, key, default), inspect(key), name) * 1.0

  @doc "See `Ferrox.array_equal/3`."
  @spec array_equal(term, term, keyword) :: Tensor.t()
  def array_equal(left, right, opts) do
    opts = options!(opts, [:equal_nan, :promotion], :array_equal)
    mode = promotion!(opts, :array_equal)
    equal_nan? = boolean!(opts, :equal_nan, :array_equal)
    operands = for operand <- [left, right], do: Operands.tensor!(operand, mode, :array_equal)
    type = Promotion.type_as(mode, :equal, :array_equal, operands)
    [%Tensor{shape: shape} = left, right] = for t <- operands, do: stored(t)

    if right.shape == shape do
      equal? = Elementwise.step(:equal, left, right)
      equal? = if equal_nan?, do: or_both_nan(equal?, left, right), else: equal?
      Elementwise.cast(Reduce.step(:all, equal?), type)
    else
      Create.zeros({}, type: type)
    end
  end

  @doc "See `Ferrox.count_nonzero/2`."
  @spec count_nonzero(term, keyword) :: Tensor.t()
  def count_nonzero(tensor, opts) do
    opts = options!(opts, [:axes, :keep_axes, :promotion], :count_nonzero)
    mode = promotion!(opts, :count_nonzero)
    %Tensor{shape: shape} = tensor = Operands.tensor!(tensor, mode, :count_nonzero)
    data = Elementwise.truth(shape, native(tensor))
    ones = Elementwise.cast(%Tensor{data: data, type: {:u, 8}, shape: shape}, {:s, 64})
    kept = boolean!(opts, :keep_axes, :count_nonzero)
    axes = Shape.axes!(shape, opts[:axes], :count_nonzero)
    counts = Reduce.step(:sum, ones, axes: axes, keep_axes: kept)
    Elementwise.cast(counts, Promotion.facts(mode).index)
  end
end
