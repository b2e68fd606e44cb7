defmodule Ferrox.Ops.Cumulative do
  @moduledoc false
  # What depends on the elements before along an axis: cumulative operations and differences.

  import Ferrox.Operands, only: [boolean!: 3, native: 1, options!: 3, promotion!: 2]

  alias Ferrox.{Native, Operands, Shape, Tensor}
  alias Ferrox.Ops.{Elementwise, Index}
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

  defp difference(%Tensor{shape: shape} = tensor, order, axis, mode) do
    length = elem(shape, axis) - 1

    [before, next] =
      for start <- [0, 1], do: Index.slice_along_axis(tensor, start, length, axis: axis)

    difference = Elementwise.binary(:subtract, next, before, promotion: mode)
    difference(difference, order - 1, axis, mode)
  end
end
