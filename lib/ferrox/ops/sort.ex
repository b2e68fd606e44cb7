defmodule Ferrox.Ops.Sort do
  @moduledoc false
  # Sorts, and what is found in sorted elements.

  import Ferrox.Operands, only: [native: 1, options!: 3, promotion!: 2, to_tensor: 2]

  alias Ferrox.{Native, Operands, Promotion, Shape, Tensor}
  alias Ferrox.Ops.{Create, Elementwise, Index}
  alias Ferrox.Ops.Shape, as: Shapes

  @doc "See `Ferrox.sort/2`."
  @spec sort(term, keyword) :: Tensor.t()
  def sort(tensor, opts) do
    opts = options!(opts, [:axis, :direction, :stable], :sort)
    %Tensor{shape: shape} = tensor = to_tensor(tensor, :sort)
    axis = Shape.axis!(shape, Keyword.get(opts, :axis, 0), :sort)
    %{tensor | data: Native.sort(axis, descending!(opts, :sort), native(tensor))}
  end

  @doc "See `Ferrox.argsort/2`."
  @spec argsort(term, keyword) :: Tensor.t()
  def argsort(tensor, opts) do
    opts = options!(opts, [:axis, :direction, :stable, :type, :promotion], :argsort)
    mode = promotion!(opts, :argsort)
    %Tensor{shape: shape} = tensor = Operands.tensor!(tensor, mode, :argsort)
    axis = Shape.axis!(shape, Keyword.get(opts, :axis, 0), :argsort)
    type = Operands.type_option(opts, mode, :argsort) || Promotion.facts(mode).index

    if type == :bool,
      do: raise(ArgumentError, "argsort: an index is no bool; give a number type")

    data = Native.argsort(type, axis, descending!(opts, :argsort), native(tensor))
    %Tensor{data: data, type: type, shape: shape}
  end

  # All sorts are stable, so that the option has no effect.
  defp descending!(opts, op) do
    _ = Operands.boolean!(opts, :stable, op)

    case Keyword.get(opts, :direction, :asc) do
      :asc ->
        false

      :desc ->
        true

      other ->
        raise ArgumentError, "#{op}: :direction must be :asc or :desc, got: #{inspect(other)}"
    end
  end

  @doc "See `Ferrox.top_k/2`."
  @spec top_k(term, keyword) :: {Tensor.t(), Tensor.t()}
  def top_k(tensor, opts) do
    opts = options!(opts, [:k, :promotion], :top_k)
    mode = promotion!(opts, :top_k)
    %Tensor{shape: shape} = tensor = Operands.tensor!(tensor, mode, :top_k)
    axis = Shape.axis!(shape, -1, :top_k)
    k = Keyword.get(opts, :k, 1)

    unless is_integer(k) and k > 0 and k <= elem(shape, axis) do
      raise ArgumentError,
            "top_k: :k must be from 1 to #{elem(shape, axis)}, the size of the last axis of shape " <>
              "#{inspect(shape)}, got: #{inspect(k)}"
    end

    shape = put_elem(shape, axis, k)
    type = Promotion.facts(mode).index
    indices = %Tensor{data: Native.top_k(type, shape, native(tensor)), type: type, shape: shape}
    {Index.take_along_axis(tensor, indices, axis: axis), indices}
  end

  @doc "See `Ferrox.unique/1`."
  @spec unique(term) :: Tensor.t()
  def unique(tensor) do
    {_order, sorted, _mask, places} = groups(tensor, :unique)
    Index.take(sorted, places, axis: 0)
  end

  @doc "See `Ferrox.unique_counts/2`."
  @spec unique_counts(term, keyword) :: {Tensor.t(), Tensor.t()}
  def unique_counts(tensor, opts) do
    mode = Operands.chosen_mode!(opts, :unique_counts)
    {_order, %Tensor{shape: {size}} = sorted, _mask, places} = groups(tensor, :unique_counts)

    # A group ends where the next one starts.
    ends = Shapes.join(:concatenate, [places, Create.tensor([size], type: {:s, 64})], [])
    count = elem(places.shape, 0)
    ends = Shapes.slice(ends, [1], [count], [])
    counts = Elementwise.step(:subtract, ends, places)
    {Index.take(sorted, places, axis: 0), Elementwise.cast(counts, Promotion.facts(mode).index)}
  end

  @doc "See `Ferrox.unique_inverse/2`."
  @spec unique_inverse(term, keyword) :: {Tensor.t(), Tensor.t()}
  def unique_inverse(tensor, opts) do
    mode = Operands.chosen_mode!(opts, :unique_inverse)
    %Tensor{shape: shape} = tensor = to_tensor(tensor, :unique_inverse)
    {order, sorted, mask, places} = groups(tensor, :unique_inverse)

    # The number of the group of each sorted element, back where the element was.
    started =
      Native.cumulative(:cumulative_sum, 0, false, mask |> Elementwise.cast({:s, 64}) |> native())

    group = Elementwise.step(:subtract, %{order | data: started}, 1)
    inverse = Index.indexed(:indexed_put, order, Shapes.new_axis(order, 1), group, promotion: :nx)
    inverse = Elementwise.cast(inverse, Promotion.facts(mode).index)
    {Index.take(sorted, places, axis: 0), Shapes.reshape(inverse, shape)}
  end

  # The indices that sort the elements, the sorted elements, where among them another value starts
  # (1, else 0), and the places of these starts.
  defp groups(tensor, name) do
    %Tensor{} = tensor = to_tensor(tensor, name)
    size = Native.size(tensor.shape)
    flat = Shapes.reshape(tensor, {size})
    data = Native.argsort({:s, 64}, 0, false, native(flat))
    order = %Tensor{data: data, type: {:s, 64}, shape: {size}}
    sorted = Index.take(flat, order, axis: 0)
    mask = starts(sorted)
    {order, sorted, mask, places(mask)}
  end

  defp starts(%Tensor{shape: {1}}), do: Create.tensor([1], type: :u8)

  defp starts(%Tensor{shape: {size}} = sorted) do
    stored = %{sorted | type: Operands.storage(sorted.type), weak: false}
    before = Shapes.slice(stored, [0], [size - 1], [])
    differs = Elementwise.step(:not_equal, Shapes.slice(stored, [1], [size - 1], []), before)
    # NaN are the last of the sorted elements, and count as one value.
    number = Elementwise.step(:logical_not, Elementwise.step(:is_nan, before))
    differs = Elementwise.step(:logical_and, differs, number)
    Shapes.join(:concatenate, [Create.tensor([1], type: :u8), differs], promotion: :nx)
  end

  @doc "Where a mask, a vector of zeros and ones, has ones, or nil where it has none."
  @spec places(Tensor.t()) :: Tensor.t() | nil
  def places(%Tensor{shape: {size}} = mask) do
    type = if size > 0x7FFF_FFFF, do: {:s, 64}, else: {:s, 32}
    wide = Elementwise.cast(mask, type)
    sums = %{wide | data: Native.cumulative(:cumulative_sum, 0, false, native(wide))}
    count = sums |> Index.fetch(-1) |> Ferrox.to_number()

    if count > 0 do
      # The place of a one goes to where the number of ones up to it says, that of zeros before all others.
      row = mask |> Elementwise.select(sums, 0, promotion: :nx) |> Shapes.new_axis(1)
      all = %Tensor{data: Native.iota({:s, 64}, {size}, nil), type: {:s, 64}, shape: {size}}
      target = Create.full({count + 1}, 0, type: {:s, 64}, promotion: :nx)

      :indexed_put
      |> Index.indexed(target, row, all, promotion: :nx)
      |> Shapes.slice([1], [count], [])
    end
  end
end
