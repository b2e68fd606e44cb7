defmodule Ferrox.Ops.Dot do
  @moduledoc false
  # Products of the direct API.

  import Ferrox.Operands,
    only: [mode!: 2, native: 1, options!: 3, promotion!: 2, storage: 1]

  alias Ferrox.{Native, Operands, Promotion, Shape, Tensor}
  alias Ferrox.Ops.Elementwise
  alias Ferrox.Ops.Shape, as: Shapes

  @doc "See `Ferrox.dot/3`."
  @spec dot(term, term, keyword) :: Tensor.t()
  def dot(left, right, opts) do
    case {mode!(opts, :dot), left, right} do
      {:nx, %Tensor{type: {kind, bits}, shape: {_, k}},
       %Tensor{type: {kind, bits}, shape: right_shape}}
      when bits >= 8 and elem(right_shape, 0) == k and tuple_size(right_shape) <= 2 ->
        matrices(left, right)

      {mode, _, _} ->
        dot_last(mode, left, right, opts)
    end
  end

  # Most products are of a matrix with a matrix or a vector of the same type.
  defp matrices(
         %Tensor{type: type, shape: {m, k}, data: left},
         %Tensor{shape: right_shape, data: right}
       ) do
    {shape, n} =
      case right_shape do
        {_, n} -> {{m, n}, n}
        {_} -> {{m}, 1}
      end

    data = Native.matmul(type, shape, {1, m, k, n}, left, right)
    %Tensor{data: data, type: type, shape: shape}
  end

  # The product over the last axis of the left and the last but one of the right operand.
  defp dot_last(mode, left, right, opts) do
    left = Operands.tensor!(left, mode, :dot)
    right = Operands.tensor!(right, mode, :dot)

    case {tuple_size(left.shape), tuple_size(right.shape)} do
      {0, _} -> Elementwise.binary(:multiply, left, right, opts)
      {_, 0} -> Elementwise.binary(:multiply, left, right, opts)
      {m, n} -> contract(mode, {left, [m - 1], []}, {right, [max(n - 2, 0)], []})
    end
  end

  @doc "See `Ferrox.matmul/3`."
  @spec matmul(term, term, keyword) :: Tensor.t()
  def matmul(left, right, opts) do
    mode = mode!(opts, :matmul)
    [left, right] = for operand <- [left, right], do: Operands.tensor!(operand, mode, :matmul)
    _ = Promotion.type_as(mode, :dot, :matmul, [left, right])
    batch = matmul_batch!(left.shape, right.shape)

    # Only batches of matrices on both sides are products of pairs; others are sums over the same axes as those
    # of `dot/3`.
    if tuple_size(right.shape) <= 2 or tuple_size(left.shape) == 1,
      do: dot_last(mode, left, right, promotion: mode),
      else: dot_matrices(with_batch(left, batch), with_batch(right, batch), mode)
  end

  # The axes of the batch that both operands are broadcast to.
  defp matmul_batch!(left, right) do
    if left == {} or right == {} do
      raise ArgumentError,
            "matmul expects vectors, matrices or batches of them, got shapes #{inspect(left)} and " <>
              "#{inspect(right)}; Ferrox.multiply/3 takes scalars"
    end

    [left_axis, right_axis] = [tuple_size(left) - 1, max(tuple_size(right) - 2, 0)]

    if elem(left, left_axis) != elem(right, right_axis) do
      raise ArgumentError,
            "matmul: axis #{left_axis} of shape #{inspect(left)} and axis #{right_axis} of shape " <>
              "#{inspect(right)}, which are summed over, have different sizes"
    end

    [left_batch, right_batch] = for shape <- [left, right], do: batch(shape)

    Shape.broadcast(left_batch, right_batch) ||
      raise ArgumentError,
            "matmul: the batches of shapes #{inspect(left)} and #{inspect(right)}, " <>
              "#{inspect(left_batch)} and #{inspect(right_batch)}, don't broadcast together: each axis, " <>
              "counted from the last, must be equal or one"
  end

  defp batch(shape), do: shape |> Tuple.to_list() |> Enum.drop(-2) |> List.to_tuple()

  defp with_batch(%Tensor{shape: shape} = tensor, batch) do
    sizes = Tuple.to_list(batch) ++ Enum.take(Tuple.to_list(shape), -2)

    if length(sizes) == tuple_size(shape) and batch(shape) == batch,
      do: tensor,
      else: Shapes.broadcast(tensor, List.to_tuple(sizes), [])
  end

  @doc "The products of the matrices of two batches of the same shape."
  @spec dot_matrices(Tensor.t(), Tensor.t(), Promotion.mode()) :: Tensor.t()
  def dot_matrices(%Tensor{shape: shape} = left, right, mode \\ :nx) do
    rank = tuple_size(shape)
    batch = Enum.to_list(0..(rank - 3)//1)
    dot_axes({left, [rank - 1], batch}, {right, [rank - 2], batch}, promotion: mode)
  end

  @doc "See `Ferrox.outer/3`."
  @spec outer(term, term, keyword) :: Tensor.t()
  def outer(left, right, opts) do
    mode = mode!(opts, :outer)
    left = left |> Operands.tensor!(mode, :outer) |> Shapes.reshape({:auto, 1})
    right = right |> Operands.tensor!(mode, :outer) |> Shapes.reshape({1, :auto})
    Elementwise.binary(:multiply, left, right, promotion: mode)
  end

  @doc "See `Ferrox.kron/3`."
  @spec kron(term, term, keyword) :: Tensor.t()
  def kron(left, right, opts) do
    mode = mode!(opts, :kron)
    operands = for t <- [left, right], do: Operands.tensor!(t, mode, :kron)
    _ = Promotion.type_as(mode, :multiply, :kron, operands)
    rank = operands |> Enum.map(&tuple_size(&1.shape)) |> Enum.max()

    [left_sizes, right_sizes] =
      for %Tensor{shape: shape} <- operands,
          do: List.duplicate(1, rank - tuple_size(shape)) ++ Tuple.to_list(shape)

    # The axes of both one by one, so that each has size one beside the other's.
    interleaved = fn tensor, sizes, place ->
      %{
        tensor
        | shape: sizes |> Enum.flat_map(&List.insert_at([1], place, &1)) |> List.to_tuple()
      }
    end

    [left, right] = operands
    left = interleaved.(left, left_sizes, 0)
    right = interleaved.(right, right_sizes, 1)
    product = Elementwise.binary(:multiply, left, right, promotion: mode)
    %{product | shape: left_sizes |> Enum.zip_with(right_sizes, &*/2) |> List.to_tuple()}
  end

  @doc "See `Ferrox.cross/3`."
  @spec cross(term, term, keyword) :: Tensor.t()
  def cross(left, right, opts) do
    opts = options!(opts, [:axis, :promotion], :cross)
    mode = promotion!(opts, :cross)
    operands = for t <- [left, right], do: Operands.tensor!(t, mode, :cross)
    given = Keyword.get(opts, :axis, -1)
    type = Promotion.type_as(mode, :subtract, :cross, operands)

    # The vectors lie along the last axis while they are multiplied.
    [left, right] =
      for %Tensor{shape: shape} = operand <- operands do
        axis = Shape.axis!(shape, given, :cross)

        if elem(shape, axis) != 3 do
          raise ArgumentError,
                "cross: vectors have three elements, got axis #{given} of shape #{inspect(shape)}"
        end

        operand |> Elementwise.cast(type) |> Shapes.moveaxis(axis, -1)
      end

    _ = Shape.broadcast!(left.shape, right.shape, :cross, left.type, right.type)
    at = fn tensor, shift -> Shapes.roll(tensor, -shift, axis: -1) end
    product = &Elementwise.step(:multiply, at.(left, &1), at.(right, &2))
    cross = Elementwise.step(:subtract, product.(1, 2), product.(2, 1))
    Shapes.moveaxis(cross, -1, given)
  end

  @doc "See `Ferrox.dot/7`; each side is `{operand, axes to sum over, axes of the batch}`."
  @spec dot_axes({term, term, term}, {term, term, term}, keyword) :: Tensor.t()
  # The axes that `dot/3` takes.
  def dot_axes({%Tensor{shape: {_, _}} = left, [1], []}, {%Tensor{} = right, [0], []}, opts)
      when tuple_size(right.shape) in [1, 2],
      do: dot(left, right, opts)

  def dot_axes(left, right, opts) do
    mode = mode!(opts, :dot)

    contract(mode, side!(left, mode), side!(right, mode))
  end

  defp side!({operand, axes, batch}, mode) do
    %Tensor{shape: shape} = tensor = Operands.tensor!(operand, mode, :dot)
    {tensor, Shape.axes!(shape, axes, :dot), Shape.axes!(shape, batch, :dot)}
  end

  defp contract(mode, {left, axes, batch}, {right, right_axes, right_batch}) do
    shape = Shape.dot!(left.shape, axes, batch, right.shape, right_axes, right_batch)
    {_, type, weak, _} = Promotion.operation(mode, :dot, [left, right])
    {left, right} = {{native(left), axes, batch}, {native(right), right_axes, right_batch}}

    data =
      case type do
        # The number of true products must not wrap around to zero.
        :bool ->
          Elementwise.truth(shape, {{:u, 64}, shape, Native.dot({:u, 64}, shape, left, right)})

        type ->
          Native.dot(storage(type), shape, left, right)
      end

    %Tensor{data: data, type: type, shape: shape, weak: weak}
  end
end
