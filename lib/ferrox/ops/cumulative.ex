defmodule Ferrox.Ops.Cumulative do
  @moduledoc false
  # What depends on the elements before along an axis: cumulative operations and differences, and integrals
  # and derivatives by these.

  import Ferrox.Operands, only: [boolean!: 3, native: 1, options!: 3, promotion!: 2]

  alias Ferrox.{Native, Numbers, Operands, Promotion, Shape, Tensor}
  alias Ferrox.Ops.{Elementwise, Index, Reduce}
  alias Ferrox.Ops.Shape, as: Shapes
  alias Ferrox.Promotion.Results

  @doc "A cumulative operation."
  @spec cumulative(atom, term, keyword) :: Tensor.t()
  def cumulative(op, tensor, opts) do
    opts = options!(opts, [:axis, :reverse, :promotion], op)
    mode = promotion!(opts, op)
    %Tensor{shape: shape} = tensor = Operands.tensor!(tensor, mode, op)
    axis = Shape.axis!(shape, Keyword.get(opts, :axis, 0), op)
    type = Results.cumulative(mode, op, tensor)
    input = tensor |> Elementwise.cast(type) |> native()

    %Tensor{
      data: Native.cumulative(op, axis, boolean!(opts, :reverse, op), input),
      type: type,
      shape: shape
    }
  end

  @doc "See `Ferrox.diff/2`."
  @spec diff(term, keyword) :: Tensor.t()
  def diff(tensor, opts) do
    opts = options!(opts, [:order, :axis, :promotion], :diff)
    mode = promotion!(opts, :diff)
    %Tensor{shape: shape} = tensor = Operands.tensor!(tensor, mode, :diff)
    axis = Shape.axis!(shape, Keyword.get(opts, :axis, -1), :diff)
    order = Keyword.get(opts, :order, 1)

    unless is_integer(order) and order >= 0 and order < elem(shape, axis) do
      raise ArgumentError,
            "diff: :order must be from 0 to #{elem(shape, axis) - 1} for axis #{axis} of shape " <>
              "#{inspect(shape)}, got: #{inspect(order)}"
    end

    difference(tensor, order, axis, mode)
  end

  defp difference(tensor, 0, _axis, _mode), do: tensor

  defp difference(tensor, order, axis, mode) do
    [before, next] = neighbours(tensor, axis)
    difference = Elementwise.binary(:subtract, next, before, promotion: mode)
    difference(difference, order - 1, axis, mode)
  end

  @doc "See `Ferrox.trapezoid/2`."
  @spec trapezoid(term, keyword) :: Tensor.t()
  def trapezoid(tensor, opts) do
    opts = options!(opts, [:x, :dx, :axis, :promotion], :trapezoid)
    mode = promotion!(opts, :trapezoid)
    %Tensor{shape: shape} = tensor = Operands.tensor!(tensor, mode, :trapezoid)
    axis = Shape.axis!(shape, Keyword.get(opts, :axis, -1), :trapezoid)
    size = elem(shape, axis)
    x = if opts[:x] != nil, do: Operands.tensor!(opts[:x], mode, :trapezoid)

    if size < 2 do
      raise ArgumentError,
            "trapezoid: axis #{axis} of shape #{inspect(shape)} has one element, and nothing lies between"
    end

    if x && x.shape != {size} do
      raise ArgumentError,
            "trapezoid: :x must be a vector of #{size} elements, as axis #{axis} of shape #{inspect(shape)} " <>
              "has, got shape #{inspect(x.shape)}"
    end

    type = Promotion.type_as(mode, :divide, :trapezoid, [tensor | List.wrap(x)])
    wide = Numbers.wide(type)
    [low, high] = neighbours(Elementwise.cast(tensor, wide), axis)
    heights = Elementwise.step(:divide, Elementwise.step(:add, low, high), 2)
    widths = if x, do: widths(x, wide, axis, shape), else: spacing!(opts, :dx, :trapezoid)
    areas = Elementwise.step(:multiply, heights, widths)
    Elementwise.cast(Reduce.step(:sum, areas, axes: [axis]), type)
  end

  # The differences of a vector along an axis.
  defp widths(x, wide, axis, shape) do
    [low, high] = neighbours(Elementwise.cast(x, wide), 0)
    %Tensor{shape: {size}} = widths = Elementwise.step(:subtract, high, low)
    ones = List.duplicate(1, tuple_size(shape))
    Shapes.reshape(widths, List.to_tuple(List.replace_at(ones, axis, size)))
  end

  @doc "See `Ferrox.gradient/2`."
  @spec gradient(term, keyword) :: Tensor.t()
  def gradient(tensor, opts) do
    opts = options!(opts, [:spacing, :axis, :promotion], :gradient)
    mode = promotion!(opts, :gradient)
    %Tensor{shape: shape} = tensor = Operands.tensor!(tensor, mode, :gradient)
    axis = Shape.axis!(shape, Keyword.get(opts, :axis, -1), :gradient)
    size = elem(shape, axis)

    if size < 2 do
      raise ArgumentError,
            "gradient: axis #{axis} of shape #{inspect(shape)} has one element, without a neighbour"
    end

    type = Promotion.type_as(mode, :divide, :gradient, [tensor])
    tensor = Elementwise.cast(tensor, Numbers.wide(type))
    spacing = spacing!(opts, :spacing, :gradient)
    part = &Index.slice_along_axis(tensor, &1, &2, axis: axis)

    slope = fn low, high, distance ->
      Elementwise.step(:divide, Elementwise.step(:subtract, high, low), distance)
    end

    first = slope.(part.(0, 1), part.(1, 1), spacing)
    last = slope.(part.(size - 2, 1), part.(size - 1, 1), spacing)

    inner =
      if size > 2, do: [slope.(part.(0, size - 2), part.(2, size - 2), 2 * spacing)], else: []

    :concatenate
    |> Shapes.join([first | inner] ++ [last], axis: axis, promotion: :nx)
    |> Elementwise.cast(type)
  end

  # The elements of an axis but the last, and but the first.
  defp neighbours(%Tensor{shape: shape} = tensor, axis) do
    length = elem(shape, axis) - 1
    for start <- [0, 1], do: Index.slice_along_axis(tensor, start, length, axis: axis)
  end

  defp spacing!(opts, key, name) do
    case Keyword.get(opts, key, 1) do
      spacing when is_number(spacing) and spacing != 0 ->
        spacing

      other ->
        raise ArgumentError,
              "#{name}: #{inspect(key)} must be a number that is not zero, got: #{inspect(other)}"
    end
  end
end
