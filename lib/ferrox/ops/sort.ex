defmodule Ferrox.Ops.Sort do
  @moduledoc false
  # Sorts, and what is found in sorted elements.

  import Ferrox.Operands, only: [native: 1, options!: 3, promotion!: 2, to_tensor: 2]

  alias Ferrox.{Native, Operands, Promotion, Shape, Tensor, Type}
  alias Ferrox.Ops.{Create, Elementwise, Index, Reduce}
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

  @doc "See `Ferrox.unique/2`."
  @spec unique(term, keyword) :: Tensor.t()
  def unique(tensor, opts) do
    opts = options!(opts, [:axis], :unique)
    groups(to_tensor(tensor, :unique), opts, :unique).values
  end

  @doc "See `Ferrox.unique_counts/2`."
  @spec unique_counts(term, keyword) :: {Tensor.t(), Tensor.t()}
  def unique_counts(tensor, opts) do
    {groups, _shape, type} = unique!(:unique_counts, tensor, opts)
    %{places: %Tensor{shape: {count}} = places, order: %Tensor{shape: {size}}} = groups

    # A group ends where the next one starts.
    ends = Shapes.join(:concatenate, [places, Create.tensor([size], type: {:s, 64})], [])
    ends = Shapes.slice(ends, [1], [count], [])
    {groups.values, Elementwise.cast(Elementwise.step(:subtract, ends, places), type)}
  end

  @doc "See `Ferrox.unique_index/2`."
  @spec unique_index(term, keyword) :: {Tensor.t(), Tensor.t()}
  def unique_index(tensor, opts) do
    {groups, _shape, type} = unique!(:unique_index, tensor, opts)
    # Equal ones have kept their order.
    first = Index.take(groups.order, groups.places, axis: 0)
    {groups.values, Elementwise.cast(first, type)}
  end

  @doc "See `Ferrox.unique_inverse/2`."
  @spec unique_inverse(term, keyword) :: {Tensor.t(), Tensor.t()}
  def unique_inverse(tensor, opts) do
    {%{order: order} = groups, shape, type} = unique!(:unique_inverse, tensor, opts)

    # The number of the group of each sorted element, back where the element was.
    wide = Elementwise.cast(groups.mask, {:s, 64})
    started = %{wide | data: Native.cumulative(:cumulative_sum, 0, false, native(wide))}
    group = Elementwise.step(:subtract, started, 1)
    inverse = Index.indexed(:indexed_put, order, Shapes.new_axis(order, 1), group, promotion: :nx)
    {groups.values, inverse |> Elementwise.cast(type) |> Shapes.reshape(shape)}
  end

  # The groups of equal elements or parts, the shape of what they are of, and the type of an index.
  defp unique!(name, tensor, opts) do
    opts = options!(opts, [:axis, :promotion], name)
    index = Promotion.facts(promotion!(opts, name)).index
    tensor = to_tensor(tensor, name)
    groups = groups(tensor, opts, name)
    {groups, if(opts[:axis] == nil, do: tensor.shape, else: groups.order.shape), index}
  end

  # `:order` are the indices that sort the elements of a tensor, or its parts along an axis, `:mask` is where
  # among the sorted ones another value starts (1, else 0), `:places` are the places of these starts, and
  # `:values` the values there.
  defp groups(%Tensor{shape: shape} = tensor, opts, name) do
    Operands.ordered!(tensor.type, name)
    axis = opts[:axis] && Shape.axis!(shape, opts[:axis], name)
    parts = if axis, do: Shapes.moveaxis(tensor, axis, 0), else: Shapes.flatten(tensor)
    size = elem(parts.shape, 0)
    rows = Shapes.reshape(parts, {size, :auto})
    keys = keys(rows)
    order = order(keys)
    mask = keys |> Index.take(order, axis: 0) |> starts()
    places = places(mask)
    values = Index.take(parts, Index.take(order, places, axis: 0), axis: 0)
    values = if axis, do: Shapes.moveaxis(values, 0, axis), else: values
    %{order: order, mask: mask, places: places, values: values}
  end

  # One zero and one NaN for all, which are one value.
  defp keys(%Tensor{type: type} = rows) do
    stored = %{rows | type: Operands.storage(type), weak: false}

    if type != :bool and Type.float?(type) do
      nan? = Elementwise.step(:is_nan, stored)
      Elementwise.select(nan?, :nan, Elementwise.step(:add, stored, 0), promotion: :nx)
    else
      stored
    end
  end

  # The indices that sort rows by their first elements, where those are equal by the second ones, and so on: as
  # sorts keep the order of equal elements, the last elements come first.
  defp order(%Tensor{shape: {_, columns}} = keys) do
    Enum.reduce((columns - 2)..0//-1, sorting(column(keys, columns - 1)), fn i, order ->
      sorting = keys |> column(i) |> Index.take(order, axis: 0) |> sorting()
      Index.take(order, sorting, axis: 0)
    end)
  end

  defp column(%Tensor{shape: {size, _}} = rows, i),
    do: rows |> Shapes.slice([0, i], [size, 1], []) |> Shapes.reshape({size})

  defp sorting(%Tensor{shape: shape} = vector),
    do: %Tensor{
      data: Native.argsort({:s, 64}, 0, false, native(vector)),
      type: {:s, 64},
      shape: shape
    }

  defp starts(%Tensor{shape: {1, _}}), do: Create.tensor([1], type: :u8)

  defp starts(%Tensor{shape: {size, columns}, type: type} = sorted) do
    [before, here] = for i <- [0, 1], do: Shapes.slice(sorted, [i, 0], [size - 1, columns], [])
    differs = Elementwise.step(:not_equal, before, here)

    differs =
      if Type.float?(type) do
        [a, b] = for rows <- [before, here], do: Elementwise.step(:is_nan, rows)
        both? = Elementwise.step(:logical_and, a, b)
        Elementwise.step(:greater, differs, both?)
      else
        differs
      end

    differs = Reduce.step(:any, differs, axes: [1])
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
