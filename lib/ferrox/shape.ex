defmodule Ferrox.Shape do
  @moduledoc false
  # Shapes and axes: checks them, and finds the shapes of results. The errors name the operation and
  # the shapes.

  alias Ferrox.Operands
  alias Ferrox.Promotion.Names

  @type t :: tuple

  # No memory can hold the data of more elements than this.
  @max_elements 0x7FFF_FFFF_FFFF_FFFF

  @doc """
  Returns `shape` if it is a tuple of positive integers and its number of elements is within
  bounds, else raises.
  """
  @spec validate!(term, atom) :: t
  def validate!(shape, op) do
    dims = if is_tuple(shape), do: Tuple.to_list(shape), else: [:invalid]

    unless Enum.all?(dims, &(is_integer(&1) and &1 > 0)) do
      raise ArgumentError,
            "#{op} expects a shape, a tuple of positive integers, got: #{inspect(shape)}"
    end

    if Enum.product(dims) > @max_elements do
      raise ArgumentError,
            "#{op}: a tensor of shape #{inspect(shape)} does not fit into memory"
    end

    shape
  end

  @doc "The shape that two operands broadcast to."
  @spec broadcast!(t, t, atom, term, term) :: t
  def broadcast!(shape, shape, _op, _left_type, _right_type), do: shape
  def broadcast!({}, shape, _op, _left_type, _right_type), do: shape
  def broadcast!(shape, {}, _op, _left_type, _right_type), do: shape

  def broadcast!(left, right, op, left_type, right_type) do
    broadcast(left, right) ||
      raise ArgumentError,
            "#{op}: shapes #{inspect(left)} of #{Names.short(left_type)} and " <>
              "#{inspect(right)} of #{Names.short(right_type)} don't broadcast together: " <>
              "each axis, counted from the last, must be equal or one"
  end

  @doc "The shape that two shapes broadcast to, or nil."
  @spec broadcast(t, t) :: t | nil
  def broadcast(left, right), do: broadcast(left, tuple_size(left), right, tuple_size(right), [])

  # Puts the sizes that the first `i` axes of `left` and the first `j` of `right` broadcast to in
  # front of `dims`, from the last axis on.
  defp broadcast(_left, 0, _right, 0, dims), do: List.to_tuple(dims)

  defp broadcast(left, i, right, 0, dims),
    do: broadcast(left, i - 1, right, 0, [elem(left, i - 1) | dims])

  defp broadcast(left, 0, right, j, dims),
    do: broadcast(left, 0, right, j - 1, [elem(right, j - 1) | dims])

  defp broadcast(left, i, right, j, dims) do
    case {elem(left, i - 1), elem(right, j - 1)} do
      {dim, other} when other in [dim, 1] -> broadcast(left, i - 1, right, j - 1, [dim | dims])
      {1, dim} -> broadcast(left, i - 1, right, j - 1, [dim | dims])
      _ -> nil
    end
  end

  @doc "The axis, counted from zero. A negative axis counts from the end."
  @spec axis!(t, term, atom) :: non_neg_integer
  def axis!(shape, axis, op) do
    rank = tuple_size(shape)

    cond do
      is_integer(axis) and axis >= 0 and axis < rank ->
        axis

      is_integer(axis) and axis < 0 and axis >= -rank ->
        rank + axis

      true ->
        range = if rank == 0, do: "it has no axes", else: "its axes are #{-rank} to #{rank - 1}"

        raise ArgumentError,
              "#{op}: axis #{inspect(axis)} is out of range for shape #{inspect(shape)}: #{range}"
    end
  end

  @doc "The axes, counted from zero. Raises for axes that aren't distinct; nil stands for all axes."
  @spec axes!(t, term, atom) :: [non_neg_integer]
  def axes!(shape, nil, _op), do: all_axes(shape)
  def axes!(_shape, [], _op), do: []
  def axes!(shape, [axis], op), do: [axis!(shape, axis, op)]

  # The guard fails for anything but a proper list.
  def axes!(shape, axes, op) when length(axes) >= 0 do
    axes = each_axis!(axes, shape, op)

    unless distinct?(axes) do
      raise ArgumentError,
            "#{op}: axes #{inspect(axes)} of shape #{inspect(shape)} name an axis twice"
    end

    axes
  end

  def axes!(_shape, axes, op) do
    raise ArgumentError, "#{op}: :axes must be a list of axes, got: #{inspect(axes)}"
  end

  # Plain recursion, here and below, for speed: almost every operation checks axes, and there are
  # only a few of them.
  defp each_axis!([], _shape, _op), do: []

  defp each_axis!([axis | axes], shape, op),
    do: [axis!(shape, axis, op) | each_axis!(axes, shape, op)]

  defp distinct?([axis | rest]), do: not :lists.member(axis, rest) and distinct?(rest)
  defp distinct?([]), do: true

  @doc "All axes of a shape, in order."
  @spec all_axes(t) :: [non_neg_integer]
  def all_axes({}), do: []
  def all_axes({_}), do: [0]
  def all_axes({_, _}), do: [0, 1]
  def all_axes(shape), do: :lists.seq(0, tuple_size(shape) - 1)

  @doc "The shape without `axes`, or with size 1 for each of them if `keep?` is true."
  @spec reduce(t, [non_neg_integer], boolean) :: t
  def reduce({size, _}, [1], false), do: {size}
  def reduce({_, size}, [0], false), do: {size}
  def reduce(shape, axes, keep?), do: List.to_tuple(remaining_sizes(shape, axes, keep?))

  # The sizes that remain after a reduction of `axes`.
  defp remaining_sizes(shape, axes, keep?) do
    for axis <- all_axes(shape), keep? or not :lists.member(axis, axes) do
      if :lists.member(axis, axes), do: 1, else: elem(shape, axis)
    end
  end

  @doc """
  The axes of a reduction by its options `:axes` and `:keep_axes`, and the shape of its result. The
  axes are nil where all axes are reduced. The caller has already refused unknown options.
  """
  @spec reduction!(t, keyword, atom) :: {[non_neg_integer] | nil, t}
  def reduction!(_shape, [], _op), do: {nil, {}}
  def reduction!(_shape, [axes: nil], _op), do: {nil, {}}

  def reduction!(shape, [axes: axes], op) do
    axes = axes!(shape, axes, op)
    {axes, reduce(shape, axes, false)}
  end

  def reduction!(shape, opts, op) do
    axes = axes!(shape, opts[:axes], op)
    {axes, reduce(shape, axes, Operands.boolean!(opts, :keep_axes, op))}
  end

  @doc "The shape of the result of `dot`, from the shapes, contracted axes and batch axes of both sides."
  @spec dot!(t, [non_neg_integer], [non_neg_integer], t, [non_neg_integer], [non_neg_integer]) ::
          t
  # Shortcuts for the most frequent cases: two matrices, and two batches of matrices.
  def dot!({_, _} = left, [axis], [], {_, _} = right, [other], [])
      when elem(left, axis) == elem(right, other),
      do: {elem(left, 1 - axis), elem(right, 1 - other)}

  def dot!({b, m, k}, [2], [0], {b, k, n}, [1], [0]), do: {b, m, n}

  def dot!(left, left_axes, left_batch, right, right_axes, right_batch) do
    if sizes(left, left_axes) != sizes(right, right_axes) or
         sizes(left, left_batch) != sizes(right, right_batch) do
      raise ArgumentError,
            "dot: shapes #{inspect(left)} and #{inspect(right)} differ in the sizes of the axes " <>
              "to sum over, #{inspect(left_axes)} and #{inspect(right_axes)}" <>
              if(left_batch == [] and right_batch == [],
                do: "",
                else: ", or of the batch, #{inspect(left_batch)} and #{inspect(right_batch)}"
              )
    end

    List.to_tuple(
      sizes(left, left_batch) ++
        remaining_sizes(left, left_axes ++ left_batch, false) ++
        remaining_sizes(right, right_axes ++ right_batch, false)
    )
  end

  defp sizes(_shape, []), do: []
  defp sizes(shape, [axis | axes]), do: [elem(shape, axis) | sizes(shape, axes)]
end
