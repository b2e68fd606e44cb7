defmodule Ferrox.Ops.Shape do
  @moduledoc false
  # Operations of the direct API that move elements or change the shape.

  import Ferrox.Operands, only: [native: 1, options!: 3, promotion!: 2, storage: 1, to_tensor: 2]

  alias Ferrox.{Bits, Native, Operands, Promotion, Shape, Tensor}
  alias Ferrox.Ops.Elementwise

  @doc "See `Ferrox.reshape/2`."
  @spec reshape(term, term) :: Tensor.t()
  def reshape(tensor, shape) do
    %Tensor{shape: old} = tensor = to_tensor(tensor, :reshape)
    %{tensor | shape: fill_auto(shape, old)}
  end

  defp fill_auto(shape, old) do
    dims = if is_tuple(shape), do: Tuple.to_list(shape), else: []
    size = Native.size(old)

    filled =
      case Enum.count(dims, &(&1 == :auto)) do
        1 ->
          known = Shape.validate!(List.to_tuple(List.delete(dims, :auto)), :reshape)
          auto = max(div(size, Native.size(known)), 1)
          List.to_tuple(for dim <- dims, do: if(dim == :auto, do: auto, else: dim))

        _ ->
          shape
      end

    if Native.size(Shape.validate!(filled, :reshape)) != size do
      raise ArgumentError,
            "reshape: a tensor of shape #{inspect(old)} has #{size} elements, which do not fill " <>
              "shape #{inspect(shape)}"
    end

    filled
  end

  @doc "See `Ferrox.transpose/2`."
  @spec transpose(term, keyword) :: Tensor.t()
  def transpose(%Tensor{shape: {rows, columns}} = tensor, []) do
    shape = {columns, rows}
    %{tensor | data: Native.transpose(shape, [1, 0], native(tensor)), shape: shape}
  end

  def transpose(tensor, opts) do
    opts = options!(opts, [:axes], :transpose)
    %Tensor{shape: old} = tensor = to_tensor(tensor, :transpose)

    axes =
      if opts[:axes],
        do: Shape.axes!(old, opts[:axes], :transpose),
        else: Enum.reverse(Shape.all_axes(old))

    if length(axes) != tuple_size(old) do
      raise ArgumentError,
            "transpose: :axes must name each axis of shape #{inspect(old)} once, got: #{inspect(axes)}"
    end

    shape = List.to_tuple(for axis <- axes, do: elem(old, axis))
    %{tensor | data: Native.transpose(shape, axes, native(tensor)), shape: shape}
  end

  @doc "See `Ferrox.broadcast/3`."
  @spec broadcast(term, term, keyword) :: Tensor.t()
  def broadcast(tensor, shape, opts) do
    opts = options!(opts, [:axes], :broadcast)
    %Tensor{shape: old} = tensor = to_tensor(tensor, :broadcast)
    shape = Shape.validate!(shape, :broadcast)
    lead = tuple_size(shape) - tuple_size(old)

    axes =
      cond do
        opts[:axes] -> Shape.axes!(shape, opts[:axes], :broadcast)
        lead >= 0 -> Enum.map(Shape.all_axes(old), &(&1 + lead))
        true -> []
      end

    if axes != Enum.sort(axes) do
      raise ArgumentError, "broadcast: :axes must be in ascending order, got: #{inspect(axes)}"
    end

    %{tensor | data: Native.broadcast(shape, axes, native(tensor)), shape: shape}
  end

  @doc "See `Ferrox.squeeze/2`."
  @spec squeeze(term, keyword) :: Tensor.t()
  def squeeze(tensor, opts) do
    opts = options!(opts, [:axes], :squeeze)
    %Tensor{shape: old} = tensor = to_tensor(tensor, :squeeze)

    axes =
      if opts[:axes],
        do: Shape.axes!(old, opts[:axes], :squeeze),
        else: Enum.filter(Shape.all_axes(old), &(elem(old, &1) == 1))

    for axis <- axes, elem(old, axis) != 1 do
      raise ArgumentError,
            "squeeze: axis #{axis} of shape #{inspect(old)} has size #{elem(old, axis)}, not one"
    end

    %{tensor | shape: Shape.reduce(old, axes, false)}
  end

  @doc "See `Ferrox.new_axis/2`."
  @spec new_axis(term, term) :: Tensor.t()
  def new_axis(tensor, axis) do
    %Tensor{shape: old} = tensor = to_tensor(tensor, :new_axis)
    # The axis is one of the result's.
    axis = old |> Tuple.insert_at(0, 1) |> Shape.axis!(axis, :new_axis)
    %{tensor | shape: Tuple.insert_at(old, axis, 1)}
  end

  @doc "See `Ferrox.flatten/1`."
  @spec flatten(term) :: Tensor.t()
  def flatten(tensor) do
    %Tensor{shape: shape} = tensor = to_tensor(tensor, :flatten)
    %{tensor | shape: {Native.size(shape)}}
  end

  @doc "See `Ferrox.reverse/2`."
  @spec reverse(term, keyword) :: Tensor.t()
  def reverse(tensor, opts) do
    opts = options!(opts, [:axes], :reverse)
    %Tensor{shape: shape} = tensor = to_tensor(tensor, :reverse)
    axes = Shape.axes!(shape, opts[:axes], :reverse)
    %{tensor | data: Native.reverse(shape, axes, native(tensor))}
  end

  @doc "See `Ferrox.tile/2`."
  @spec tile(term, term) :: Tensor.t()
  def tile(tensor, repetitions) do
    %Tensor{shape: shape} = tensor = to_tensor(tensor, :tile)

    unless is_list(repetitions) and Enum.all?(repetitions, &(is_integer(&1) and &1 > 0)) do
      raise ArgumentError,
            "tile: repetitions must be a list of positive integers, got: #{inspect(repetitions)}"
    end

    # The last axes are those of both.
    rank = max(tuple_size(shape), length(repetitions))
    fill = &(List.duplicate(1, rank - length(&1)) ++ &1)
    {sizes, times} = {fill.(Tuple.to_list(shape)), fill.(repetitions)}
    repeat_axes(tensor, Enum.zip(times, sizes), Enum.zip_with(sizes, times, &*/2), :tile)
  end

  @doc "See `Ferrox.repeat/3`."
  @spec repeat(term, term, keyword) :: Tensor.t()
  def repeat(tensor, times, opts) do
    opts = options!(opts, [:axis], :repeat)
    tensor = to_tensor(tensor, :repeat)
    %Tensor{shape: shape} = tensor = if opts[:axis] == nil, do: flatten(tensor), else: tensor
    axis = Shape.axis!(shape, opts[:axis] || 0, :repeat)

    times = Operands.positive!(times, "times", :repeat)

    {before, [size | rest]} = shape |> Tuple.to_list() |> Enum.split(axis)
    pairs = Enum.map(before, &{1, &1}) ++ [{1, size}, {times, 1}] ++ Enum.map(rest, &{1, &1})
    repeat_axes(tensor, pairs, before ++ [size * times | rest], :repeat)
  end

  # The tensor as axes in pairs of `{times, size}`, of which the first is repeated.
  defp repeat_axes(tensor, pairs, sizes, op) do
    shape = Shape.validate!(List.to_tuple(sizes), op)
    narrow = pairs |> Enum.flat_map(fn {_times, size} -> [1, size] end) |> List.to_tuple()
    wide = pairs |> Enum.flat_map(&Tuple.to_list/1) |> List.to_tuple()
    %{broadcast(%{tensor | shape: narrow}, wide, []) | shape: shape}
  end

  @doc "See `Ferrox.split/3`."
  @spec split(term, term, keyword) :: {Tensor.t(), Tensor.t()}
  def split(tensor, split, opts) do
    opts = options!(opts, [:axis], :split)
    %Tensor{shape: shape} = tensor = to_tensor(tensor, :split)
    axis = Shape.axis!(shape, Keyword.get(opts, :axis, 0), :split)
    size = elem(shape, axis)

    at =
      cond do
        is_float(split) -> ceil(split * size)
        is_integer(split) and split < 0 -> size + split
        true -> split
      end

    unless is_integer(at) and at in 1..(size - 1)//1 do
      raise ArgumentError,
            "split: axis #{axis} of shape #{inspect(shape)} can't be split at #{inspect(split)}: expected an " <>
              "index, or a float between 0 and 1, that leaves elements on both sides"
    end

    {along(tensor, axis, 0, at), along(tensor, axis, at, size - at)}
  end

  @doc "See `Ferrox.array_split/3`."
  @spec array_split(term, term, keyword) :: [Tensor.t()]
  def array_split(tensor, parts, opts) do
    opts = options!(opts, [:axis], :array_split)
    %Tensor{shape: shape} = tensor = to_tensor(tensor, :array_split)
    axis = Shape.axis!(shape, Keyword.get(opts, :axis, 0), :array_split)
    size = elem(shape, axis)
    edges = [0] ++ inner_edges(parts, size) ++ [size]
    lengths = edges |> tl() |> Enum.zip_with(edges, &-/2)

    unless Enum.all?(lengths, &(&1 > 0)) do
      raise ArgumentError,
            "array_split: axis #{axis} of shape #{inspect(shape)} can't be split by #{inspect(parts)}: expected " <>
              "a number of parts from 1 to #{size}, or a list of indices in ascending order from 1 to " <>
              "#{size - 1}, as each part has at least one element"
    end

    Enum.zip_with(edges, lengths, &along(tensor, axis, &1, &2))
  end

  # The first parts are one longer where they can't all be equal.
  defp inner_edges(parts, size) when is_integer(parts) and parts in 1..size//1 do
    {length, longer} = {div(size, parts), rem(size, parts)}
    for part <- 1..(parts - 1)//1, do: part * length + min(part, longer)
  end

  defp inner_edges(parts, size) do
    if is_list(parts) and not List.improper?(parts) and Enum.all?(parts, &is_integer/1),
      do: parts,
      else: [size]
  end

  # So many elements of an axis from a start on.
  defp along(%Tensor{shape: shape} = tensor, axis, start, length) do
    starts = List.replace_at(List.duplicate(0, tuple_size(shape)), axis, start)
    slice(tensor, starts, shape |> put_elem(axis, length) |> Tuple.to_list(), [])
  end

  @doc "See `Ferrox.to_batched/3`."
  @spec to_batched(term, term, keyword) :: Enumerable.t()
  def to_batched(tensor, batch_size, opts) do
    opts = options!(opts, [:leftover], :to_batched)
    %Tensor{shape: shape, data: data} = tensor = to_tensor(tensor, :to_batched)
    leftover = Keyword.get(opts, :leftover, :repeat)

    if shape == {},
      do: raise(ArgumentError, "to_batched expects a tensor with axes, got a scalar")

    unless is_integer(batch_size) and batch_size in 1..elem(shape, 0) do
      raise ArgumentError,
            "to_batched: a part of shape #{inspect(shape)} must have from 1 to #{elem(shape, 0)} rows, " <>
              "got: #{inspect(batch_size)}"
    end

    unless leftover in [:repeat, :discard] do
      raise ArgumentError,
            "to_batched: :leftover must be :repeat or :discard, got: #{inspect(leftover)}"
    end

    row_bits = div(bit_size(data), elem(shape, 0))
    batch = put_elem(shape, 0, batch_size)

    data
    |> Bits.batches(batch_size * row_bits, leftover)
    |> Stream.map(&%{tensor | data: &1, shape: batch})
  end

  @doc "See `Ferrox.axis_size/2`."
  @spec axis_size(term, term) :: pos_integer
  def axis_size(tensor, axis) do
    %Tensor{shape: shape} = to_tensor(tensor, :axis_size)
    elem(shape, Shape.axis!(shape, axis, :axis_size))
  end

  @doc "See `Ferrox.roll/3`."
  @spec roll(term, term, keyword) :: Tensor.t()
  def roll(tensor, shift, opts) do
    opts = options!(opts, [:axis], :roll)
    %Tensor{shape: given} = tensor = to_tensor(tensor, :roll)

    unless is_integer(shift) do
      raise ArgumentError, "roll: the shift must be an integer, got: #{inspect(shift)}"
    end

    %Tensor{shape: shape} = tensor = if opts[:axis] == nil, do: flatten(tensor), else: tensor
    axis = Shape.axis!(shape, opts[:axis] || 0, :roll)
    size = elem(shape, axis)

    case Integer.mod(shift, size) do
      0 ->
        %{tensor | shape: given}

      shift ->
        parts = [along(tensor, axis, size - shift, shift), along(tensor, axis, 0, size - shift)]
        data = Native.concatenate(storage(tensor.type), shape, axis, Enum.map(parts, &native/1))
        %{tensor | data: data, shape: given}
    end
  end

  @doc "See `Ferrox.swapaxes/3`."
  @spec swapaxes(term, term, term) :: Tensor.t()
  def swapaxes(tensor, first, second) do
    %Tensor{shape: shape} = tensor = to_tensor(tensor, :swapaxes)
    [first, second] = for axis <- [first, second], do: Shape.axis!(shape, axis, :swapaxes)
    axes = Shape.all_axes(shape)
    axes = axes |> List.replace_at(first, second) |> List.replace_at(second, first)
    transpose(tensor, axes: axes)
  end

  @doc "See `Ferrox.moveaxis/3`."
  @spec moveaxis(term, term, term) :: Tensor.t()
  def moveaxis(tensor, source, destination) do
    %Tensor{shape: shape} = tensor = to_tensor(tensor, :moveaxis)
    [source, destination] = for a <- [source, destination], do: Shape.axis!(shape, a, :moveaxis)

    axes =
      shape |> Shape.all_axes() |> List.delete_at(source) |> List.insert_at(destination, source)

    transpose(tensor, axes: axes)
  end

  @doc "See `Ferrox.meshgrid/2`."
  @spec meshgrid(term, keyword) :: [Tensor.t()]
  def meshgrid([_ | _] = vectors, opts) do
    opts = options!(opts, [:indexing], :meshgrid)
    vectors = for vector <- vectors, do: to_tensor(vector, :meshgrid)

    for %Tensor{shape: shape} <- vectors, tuple_size(shape) != 1 do
      raise ArgumentError, "meshgrid expects vectors, got a tensor of shape #{inspect(shape)}"
    end

    axes = Enum.to_list(0..(length(vectors) - 1))

    axes =
      case {Keyword.get(opts, :indexing, :xy), axes} do
        {:xy, [0, 1 | rest]} ->
          [1, 0 | rest]

        {indexing, axes} when indexing in [:xy, :ij] ->
          axes

        {other, _axes} ->
          raise ArgumentError,
                "meshgrid: :indexing must be :xy or :ij, got: #{inspect(other)}"
      end

    # The axes are their own inverse.
    shape = List.to_tuple(for axis <- axes, do: elem(Enum.at(vectors, axis).shape, 0))
    Enum.zip_with(vectors, axes, &broadcast(&1, shape, axes: [&2]))
  end

  def meshgrid(other, _opts) do
    raise ArgumentError,
          "meshgrid expects a list of at least one vector, got: #{inspect(other)}"
  end

  @doc "See `Ferrox.slice/4`."
  @spec slice(term, term, term, keyword) :: Tensor.t()
  def slice(tensor, starts, lengths, opts) do
    opts = options!(opts, [:strides], :slice)
    %Tensor{shape: old} = tensor = to_tensor(tensor, :slice)
    rank = tuple_size(old)
    strides = Keyword.get(opts, :strides, 1)
    strides = if is_integer(strides), do: List.duplicate(strides, rank), else: strides

    one_an_axis!(:starts, starts, old)
    one_an_axis!(:lengths, lengths, old)
    one_an_axis!(:strides, strides, old)
    {starts, dims} = slice_axes(starts, lengths, strides, 0, old)
    shape = List.to_tuple(dims)
    %{tensor | data: Native.slice(shape, starts, lengths, strides, native(tensor)), shape: shape}
  end

  defp one_an_axis!(_name, list, shape) when length(list) == tuple_size(shape), do: :ok

  defp one_an_axis!(name, list, shape) do
    raise ArgumentError,
          "slice: #{name} must have one entry for each axis of shape #{inspect(shape)}, in a list, got: " <>
            inspect(list)
  end

  # Where each axis starts within the tensor, and its size in the result.
  defp slice_axes([], [], [], _axis, _shape), do: {[], []}

  defp slice_axes([start | starts], [length | lengths], [stride | strides], axis, shape) do
    dim = elem(shape, axis)

    unless is_integer(length) and length > 0 and length <= dim,
      do: bad_slice!(:length, length, axis, shape)

    unless is_integer(stride) and stride > 0, do: bad_slice!(:stride, stride, axis, shape)
    unless is_integer(start), do: bad_slice!(:start, start, axis, shape)
    {starts, dims} = slice_axes(starts, lengths, strides, axis + 1, shape)
    start = start |> max(0) |> min(dim - length)
    {[start | starts], [div(length + stride - 1, stride) | dims]}
  end

  @spec bad_slice!(atom, term, non_neg_integer, tuple) :: no_return
  defp bad_slice!(name, value, axis, shape) do
    raise ArgumentError,
          "slice: #{name} #{inspect(value)} is out of range for axis #{axis} of shape #{inspect(shape)}"
  end

  @doc "See `Ferrox.vstack/2`."
  @spec vstack(term, keyword) :: Tensor.t()
  def vstack(tensors, opts) do
    rows = fn
      %Tensor{shape: shape} = tensor when tuple_size(shape) < 2 -> reshape(tensor, {1, :auto})
      tensor -> tensor
    end

    beside(:vstack, tensors, opts, rows, fn _shape -> 0 end)
  end

  @doc "See `Ferrox.hstack/2`."
  @spec hstack(term, keyword) :: Tensor.t()
  def hstack(tensors, opts) do
    vectors = fn
      %Tensor{shape: {}} = tensor -> reshape(tensor, {1})
      tensor -> tensor
    end

    beside(:hstack, tensors, opts, vectors, &min(tuple_size(&1) - 1, 1))
  end

  # `concatenate`, where numbers count as they do there.
  defp beside(name, [_ | _] = tensors, opts, prepare, axis) do
    mode = Operands.chosen_mode!(opts, name)

    if List.improper?(tensors) do
      raise ArgumentError, "#{name}: the list of tensors is improper, got: #{inspect(tensors)}"
    end

    tensors = for tensor <- tensors, do: Operands.tensor!(tensor, mode, name)
    [%Tensor{shape: shape} | _] = prepared = Enum.map(tensors, prepare)
    join_as(:concatenate, prepared, axis.(shape), mode, name)
  end

  defp beside(name, other, _opts, _prepare, _axis) do
    raise ArgumentError,
          "#{name} expects a list of at least one tensor, got: #{inspect(other)}"
  end

  @doc "Joins tensors, along an axis that they have or along a new one: `:concatenate` or `:stack`."
  @spec join(:concatenate | :stack, term, keyword) :: Tensor.t()
  def join(op, [_ | _] = tensors, opts) do
    opts = options!(opts, [:axis, :promotion], op)
    mode = promotion!(opts, op)
    axis = Keyword.get(opts, :axis, 0)

    if List.improper?(tensors) do
      raise ArgumentError, "#{op}: the list of tensors is improper, got: #{inspect(tensors)}"
    end

    join_as(op, tensors, axis, mode, op)
  end

  def join(op, other, _opts) do
    raise ArgumentError, "#{op} expects a list of at least one tensor, got: #{inspect(other)}"
  end

  # `name` is the function that was called, for errors.
  defp join_as(op, tensors, axis, mode, name) do
    {given, type, weak} = promote(mode, op, name, tensors)
    tensors = if op == :stack, do: Enum.map(given, &new_axis(&1, axis)), else: given
    [%Tensor{shape: first} | _] = tensors
    axis = Shape.axis!(first, axis, name)
    dim = joined_dim(tensors, axis, put_elem(first, axis, 1), 0)

    unless dim do
      shapes = Enum.map_join(given, ", ", &inspect(&1.shape))
      raise ArgumentError, "#{name}: shapes #{shapes} can't be joined along axis #{axis}"
    end

    shape = put_elem(first, axis, dim)
    data = Native.concatenate(storage(type), shape, axis, Enum.map(tensors, &native/1))
    %Tensor{data: data, type: type, shape: shape, weak: weak}
  end

  # The tensors in the type that they have together, this type, and whether it is weak.
  defp promote(mode, op, name, tensors) do
    tensors = for tensor <- tensors, do: Operands.tensor!(tensor, mode, name)
    {_, type, weak, _} = Promotion.operation(mode, op, tensors)
    {for(tensor <- tensors, do: typed(tensor, type)), type, weak}
  end

  defp typed(%Tensor{type: type} = tensor, type), do: tensor
  defp typed(tensor, type), do: Elementwise.cast(tensor, type)

  # The size of the axis along which tensors are joined. `row` is the shape of each with size one for
  # this axis. Returns nil where a tensor has another one.
  defp joined_dim([], _axis, _row, sum), do: sum

  defp joined_dim([%Tensor{shape: shape} | tensors], axis, row, sum) do
    if tuple_size(shape) == tuple_size(row) and put_elem(shape, axis, 1) == row,
      do: joined_dim(tensors, axis, row, sum + elem(shape, axis))
  end
end
