defmodule Ferrox.Ops.Scaled do
  @moduledoc false
  # Sums of exponentials and of squares, which leave the range of floats where their logarithm or root doesn't:
  # computed in 64 bits, with what is largest taken out before.

  import Ferrox.Operands, only: [boolean!: 3, options!: 3, promotion!: 2]

  alias Ferrox.{Numbers, Operands, Promotion, Shape, Tensor}
  alias Ferrox.Ops.{Elementwise, Reduce}
  alias Ferrox.Ops.Shape, as: Shapes

  @doc "See `Ferrox.logsumexp/2`."
  @spec logsumexp(term, keyword) :: Tensor.t()
  def logsumexp(tensor, opts) do
    opts = options!(opts, [:axes, :keep_axes, :exp_scaling_factor, :promotion], :logsumexp)
    mode = promotion!(opts, :logsumexp)
    %Tensor{shape: shape} = tensor = Operands.tensor!(tensor, mode, :logsumexp)
    axes = Shape.axes!(shape, opts[:axes], :logsumexp)
    keep? = boolean!(opts, :keep_axes, :logsumexp)

    {sum, type} =
      case opts[:exp_scaling_factor] do
        nil ->
          type = Promotion.type_as(mode, :divide, :logsumexp, [tensor, tensor])
          Operands.ordered!(type, :logsumexp)
          {tensor |> Elementwise.cast({:f, 64}) |> log_sum(axes), type}

        factor ->
          {tensor, factor, type, _weak} =
            Elementwise.together(mode, :divide, :logsumexp, tensor, factor)

          Operands.ordered!(type, :logsumexp)
          [tensor, factor] = for t <- [tensor, factor], do: Elementwise.cast(t, {:f, 64})
          {log_weighted_sum(tensor, factor!(factor, shape), axes), type}
      end

    %{Elementwise.cast(sum, type) | shape: Shape.reduce(shape, axes, keep?)}
  end

  # What the largest elements are, and what the others add to them.
  defp log_sum(tensor, axes) do
    kept = [axes: axes, keep_axes: true]
    largest = Reduce.step(:reduce_max, tensor, kept)
    largest? = Elementwise.step(:equal, tensor, largest)
    count = Reduce.step(:sum, Elementwise.cast(largest?, {:f, 64}), kept)
    others = Elementwise.step(:exp, Elementwise.step(:subtract, tensor, largest))
    others = Elementwise.select(largest?, 0.0, others, promotion: :nx)
    rest = Elementwise.step(:divide, Reduce.step(:sum, others, kept), count)
    added = Elementwise.step(:add, Elementwise.step(:log1p, rest), Elementwise.step(:log, count))
    Elementwise.step(:add, added, largest)
  end

  defp log_weighted_sum(tensor, factor, axes) do
    kept = [axes: axes, keep_axes: true]
    counts? = Elementwise.step(:not_equal, factor, 0)
    tensor = Elementwise.select(counts?, tensor, :neg_infinity, promotion: :nx)
    largest = Reduce.step(:reduce_max, tensor, kept)
    infinite? = Elementwise.step(:is_infinity, largest)
    shift = Elementwise.select(infinite?, 0.0, largest, promotion: :nx)
    powers = Elementwise.step(:exp, Elementwise.step(:subtract, tensor, shift))
    sum = Reduce.step(:sum, Elementwise.step(:multiply, powers, factor), kept)
    Elementwise.step(:add, Elementwise.step(:log, sum), shift)
  end

  defp factor!(%Tensor{shape: given} = factor, shape) do
    unless Shape.broadcast(given, shape) == shape do
      raise ArgumentError,
            "logsumexp: an :exp_scaling_factor of shape #{inspect(given)} does not broadcast to shape " <>
              inspect(shape)
    end

    Shapes.broadcast(factor, shape, [])
  end

  @doc "See `Ferrox.logaddexp/3`."
  @spec logaddexp(term, term, keyword) :: Tensor.t()
  def logaddexp(left, right, opts) do
    {left, right, type, weak} = wide!(:logaddexp, left, right, opts)
    larger = Elementwise.step(:max, left, right)
    apart = Elementwise.step(:abs, Elementwise.step(:subtract, left, right))
    # Equal infinities have no difference.
    equal? = Elementwise.step(:equal, left, right)
    apart = Elementwise.select(equal?, 0.0, apart, promotion: :nx)
    added = Elementwise.step(:log1p, Elementwise.step(:exp, Elementwise.step(:negate, apart)))
    %{Elementwise.cast(Elementwise.step(:add, larger, added), type) | weak: weak}
  end

  # No square of the numbers between, and no sum of two, leaves the range of floats.
  @least 2.0 ** -500
  @most 2.0 ** 500
  @scale 2.0 ** 600

  @doc "See `Ferrox.hypot/3`."
  @spec hypot(term, term, keyword) :: Tensor.t()
  def hypot(left, right, opts) do
    {left, right, type, weak} = wide!(:hypot, left, right, opts)
    [left, right] = for side <- [left, right], do: Elementwise.step(:abs, side)
    larger = Elementwise.step(:max, left, right)
    select = &Elementwise.select(&1, &2, &3, promotion: :nx)
    small? = Elementwise.step(:less, larger, @least)
    large? = Elementwise.step(:greater, larger, @most)
    scale = select.(small?, f64(@scale), select.(large?, f64(1 / @scale), f64(1.0)))

    [left, right] =
      sides = for side <- [left, right], do: Elementwise.step(:multiply, side, scale)

    [a, b] = for side <- sides, do: Elementwise.step(:multiply, side, side)

    length =
      Elementwise.step(:divide, Elementwise.step(:sqrt, Elementwise.step(:add, a, b)), scale)

    # An infinite side is longer than one that isn't known.
    [a, b] = for side <- [left, right], do: Elementwise.step(:is_infinity, side)
    length = select.(Elementwise.step(:logical_or, a, b), f64(:infinity), length)
    %{Elementwise.cast(length, type) | weak: weak}
  end

  defp f64(number),
    do: %Tensor{data: Numbers.constant(number, {:f, 64}), type: {:f, 64}, shape: {}}

  # Both operands in 64 bits, the type of the result, and whether it is weak.
  defp wide!(name, left, right, opts) do
    mode = Operands.chosen_mode!(opts, name)
    {left, right, type, weak} = Elementwise.together(mode, :atan2, name, left, right)
    Operands.ordered!(type, name)
    _ = Shape.broadcast!(left.shape, right.shape, name, left.type, right.type)
    {Elementwise.cast(left, {:f, 64}), Elementwise.cast(right, {:f, 64}), type, weak}
  end
end
