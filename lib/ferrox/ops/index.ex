defmodule Ferrox.Ops.Index do
  @moduledoc false
  # Elements by their indices, and `tensor[...]`.

  import Ferrox.Operands, only: [native: 1, options!: 3, promotion!: 2, storage: 1, to_tensor: 2]

  alias Ferrox.{Native, Numbers, Operands, Promotion, Shape, Tensor}
  alias Ferrox.Ops.{Elementwise, Search}
  alias Ferrox.Ops.Shape, as: Shapes

  @doc "See `Ferrox.take/3`."
  @spec take(term, term, keyword) :: Tensor.t()
  def take(tensor, indices, opts) do
    opts = options!(opts, [:axis], :take)
    %Tensor{shape: shape} = tensor = to_tensor(tensor, :take)
    indices = indices!(indices, :take)
    axis = Shape.axis!(shape, Keyword.get(opts, :axis, 0), :take)
    {before, [_ | rest]} = shape |> Tuple.to_list() |> Enum.split(axis)
    shape = List.to_tuple(before ++ Tuple.to_list(indices.shape) ++ rest)
    %{tensor | data: Native.take(shape, axis, native(tensor), native(indices)), shape: shape}
  end

  @doc "See `Ferrox.take_along_axis/3`."
  @spec take_along_axis(term, term, keyword) :: Tensor.t()
  def take_along_axis(tensor, indices, opts) do
    opts = options!(opts, [:axis], :take_along_axis)
    %Tensor{shape: shape} = tensor = to_tensor(tensor, :take_along_axis)
    indices = indices!(indices, :take_along_axis)
    axis = Shape.axis!(shape, Keyword.get(opts, :axis, 0), :take_along_axis)

    unless tuple_size(indices.shape) == tuple_size(shape) and
             put_elem(indices.shape, axis, 1) == put_elem(shape, axis, 1) do
      raise ArgumentError,
            "take_along_axis: indices of shape #{inspect(indices.shape)} must have the shape of the " <>
              "tensor, #{inspect(shape)}, but along axis #{axis}"
    end

    data = Native.take_along_axis(axis, native(tensor), native(indices))
    %{tensor | data: data, shape: indices.shape}
  end

  @doc "See `Ferrox.gather/3`."
  @spec gather(term, term, keyword) :: Tensor.t()
  def gather(tensor, indices, opts) do
    opts = options!(opts, [:axes], :gather)
    %Tensor{shape: shape} = tensor = to_tensor(tensor, :gather)
    indices = indices!(indices, :gather)

    if indices.shape == {} do
      raise ArgumentError, "gather: indices must have at least one axis, got a scalar"
    end

    axes = indexed_axes!(shape, indices, opts, :gather)
    places = indices.shape |> Tuple.to_list() |> Enum.drop(-1)
    kept = for axis <- Shape.all_axes(shape), axis not in axes, do: elem(shape, axis)
    shape = List.to_tuple(places ++ kept)
    %{tensor | data: Native.gather(shape, axes, native(tensor), native(indices)), shape: shape}
  end

  @doc "See `Ferrox.indexed_add/4` and `Ferrox.indexed_put/4`."
  @spec indexed(:indexed_add | :indexed_put, term, term, term, keyword) :: Tensor.t()
  def indexed(name, target, indices, updates, opts) do
    opts = options!(opts, [:axes, :promotion], name)
    mode = promotion!(opts, name)
    %Tensor{shape: shape} = target = Operands.tensor!(target, mode, name)
    updates = Operands.tensor!(updates, mode, name)
    {indices, updates} = indices |> indices!(name) |> rows(updates)
    axes = indexed_axes!(shape, indices, opts, name)
    updates!(updates.shape, indices.shape, axes, shape, name)

    type = Promotion.type_as(mode, :select, name, [target, updates])

    # Sums of the bytes of bools would be none.
    if type == :bool and name == :indexed_add do
      raise ArgumentError, "indexed_add is not defined for bool; cast with Ferrox.as_type/2"
    end

    [target, updates] = for tensor <- [target, updates], do: Elementwise.cast(tensor, type)
    indices = native(indices)
    data = Native.indexed(name, storage(type), axes, native(target), indices, native(updates))
    %Tensor{data: data, type: type, shape: shape}
  end

  # A vector of indices stands for a single place.
  defp rows(%Tensor{shape: {_}} = indices, updates),
    do: {Shapes.new_axis(indices, 0), Shapes.new_axis(updates, 0)}

  defp rows(indices, updates), do: {indices, updates}

  defp updates!(updates, {count, _depth}, axes, shape, name) do
    window = for axis <- Shape.all_axes(shape), axis not in axes, do: elem(shape, axis)

    fits? = fn [n | sizes] ->
      n == count and length(sizes) == length(window) and smaller?(sizes, window)
    end

    unless updates != {} and fits?.(Tuple.to_list(updates)) do
      raise ArgumentError,
            "#{name}: updates must have the shape #{inspect(List.to_tuple([count | window]))}, for " <>
              "#{count} rows of indices of axes #{inspect(axes)} of shape #{inspect(shape)}, got: " <>
              inspect(updates)
    end
  end

  defp updates!(_updates, indices, _axes, _shape, name) do
    raise ArgumentError,
          "#{name}: indices must have one or two axes, got a tensor of shape #{inspect(indices)}"
  end

  defp smaller?(sizes, window),
    do: sizes |> Enum.zip(window) |> Enum.all?(fn {size, limit} -> size <= limit end)

  # The axes that the last axis of the indices counts, by default the first ones.
  defp indexed_axes!(shape, indices, opts, name) do
    depth =
      if indices.shape == {}, do: 0, else: elem(indices.shape, tuple_size(indices.shape) - 1)

    rank = tuple_size(shape)

    axes =
      if opts[:axes],
        do: Shape.axes!(shape, opts[:axes], name),
        else: Enum.to_list(0..(depth - 1)//1)

    if length(axes) != depth or depth > rank or axes != Enum.sort(axes) do
      raise ArgumentError,
            "#{name}: the last axis of indices of shape #{inspect(indices.shape)} has one index for " <>
              "each of the :axes, in ascending order, of shape #{inspect(shape)}, got: #{inspect(axes)}"
    end

    axes
  end

  defp indices!(indices, name) do
    case to_tensor(indices, name) do
      %Tensor{type: {kind, _}} = tensor when kind in [:s, :u] ->
        tensor

      %Tensor{type: type} ->
        raise ArgumentError,
              "#{name}: indices must be integers, got: #{Promotion.Names.short(type)}"
    end
  end

  @doc "See `Ferrox.put_slice/4`."
  @spec put_slice(term, term, term, keyword) :: Tensor.t()
  def put_slice(tensor, starts, slice, opts) do
    mode = Operands.chosen_mode!(opts, :put_slice)
    %Tensor{shape: shape} = tensor = Operands.tensor!(tensor, mode, :put_slice)
    slice = Operands.tensor!(slice, mode, :put_slice)
    sizes = Tuple.to_list(shape)
    lengths = Tuple.to_list(slice.shape)

    unless length(lengths) == length(sizes) and smaller?(lengths, sizes) do
      raise ArgumentError,
            "put_slice: a slice of shape #{inspect(slice.shape)} does not fit into shape #{inspect(shape)}"
    end

    unless is_list(starts) and length(starts) == length(sizes) and
             Enum.all?(starts, &is_integer/1) do
      raise ArgumentError,
            "put_slice: starts must be a list of one integer for each axis of shape " <>
              "#{inspect(shape)}, got: #{inspect(starts)}"
    end

    # A start from which the slice would reach past the end is moved back.
    starts =
      for {start, size, length} <- Enum.zip([starts, sizes, lengths]),
          do: start |> max(0) |> min(size - length)

    type = Promotion.type_as(mode, :select, :put_slice, [tensor, slice])
    [tensor, slice] = for t <- [tensor, slice], do: Elementwise.cast(t, type)
    data = Native.put_slice(storage(type), starts, native(tensor), native(slice))
    %Tensor{data: data, type: type, shape: shape}
  end

  @doc "See `Ferrox.slice_along_axis/4`."
  @spec slice_along_axis(term, term, term, keyword) :: Tensor.t()
  def slice_along_axis(tensor, start, length, opts) do
    opts = options!(opts, [:axis, :strides], :slice_along_axis)
    %Tensor{shape: shape} = tensor = to_tensor(tensor, :slice_along_axis)
    axis = Shape.axis!(shape, Keyword.get(opts, :axis, 0), :slice_along_axis)
    along = &List.replace_at(&1, axis, &2)
    starts = along.(List.duplicate(0, tuple_size(shape)), start)
    lengths = along.(Tuple.to_list(shape), length)
    strides = along.(List.duplicate(1, tuple_size(shape)), Keyword.get(opts, :strides, 1))
    Shapes.slice(tensor, starts, lengths, strides: strides)
  end

  ## `tensor[...]`

  @doc "What `tensor[index]` is."
  @spec fetch(Tensor.t(), term) :: Tensor.t()
  def fetch(%Tensor{shape: {}}, _index) do
    raise ArgumentError, "tensor[index]: a scalar has no axes; Ferrox.to_number/1 reads it"
  end

  def fetch(tensor, []), do: tensor

  def fetch(tensor, %Tensor{shape: shape, type: :bool} = mask) when shape != {},
    do: Search.masked(mask, tensor, "tensor[mask]")

  def fetch(tensor, %Tensor{shape: shape} = indices) when shape != {},
    do: take(tensor, indices, [])

  def fetch(%Tensor{shape: shape} = tensor, index) do
    indices = if is_list(index), do: index, else: [index]

    if length(indices) > tuple_size(shape) do
      raise ArgumentError,
            "tensor[index]: #{length(indices)} indices were given for the #{tuple_size(shape)} axes of " <>
              "shape #{inspect(shape)}"
    end

    ranges =
      for axis <- Shape.all_axes(shape),
          do: range!(Enum.at(indices, axis, 0..-1//1), axis, shape)

    {starts, lengths, strides} =
      Enum.reduce(Enum.reverse(ranges), {[], [], []}, fn {first, last, step},
                                                         {starts, lengths, strides} ->
        {[first | starts], [last - first + 1 | lengths], [step | strides]}
      end)

    single = for {index, axis} <- Enum.with_index(indices), not is_struct(index, Range), do: axis
    tensor |> Shapes.slice(starts, lengths, strides: strides) |> Shapes.squeeze(axes: single)
  end

  # `{first, last, step}` of an axis.
  defp range!(index, axis, shape) when is_integer(index) do
    index = position!(index, axis, shape)
    {index, index, 1}
  end

  defp range!(%Tensor{shape: {}, type: {kind, _} = type, data: data}, axis, shape)
       when kind in [:s, :u] do
    [index] = Numbers.decode(data, type, 1)
    range!(index, axis, shape)
  end

  defp range!(first..last//step = range, axis, shape) do
    if step < 1 do
      raise ArgumentError,
            "tensor[index]: the step of a range must be positive, got: #{inspect(range)}; write " <>
              "first..last//1, and Ferrox.reverse/2 reverses an axis"
    end

    {first, last} = {position!(first, axis, shape), position!(last, axis, shape)}

    if first > last do
      raise ArgumentError,
            "tensor[index]: the range #{inspect(range)} selects nothing along axis #{axis} of shape " <>
              inspect(shape)
    end

    {first, last, step}
  end

  defp range!(other, _axis, _shape) do
    raise ArgumentError,
          "tensor[index] expects an integer, a range, a tensor of integers, a mask of bools, or a list of " <>
            "integers, ranges and scalar tensors, got: #{inspect(other)}"
  end

  defp position!(index, axis, shape) do
    size = elem(shape, axis)
    position = if index < 0, do: size + index, else: index

    if position not in 0..(size - 1) do
      raise ArgumentError,
            "tensor[index]: index #{index} is out of bounds for axis #{axis} of shape #{inspect(shape)}"
    end

    position
  end
end
