defmodule Ferrox.Shape do
  @moduledoc false
  # Shapes and axes: what an operation's result looks like, and errors that
  # name the operation and the shapes.

  alias Ferrox.Operands

  @type t :: tuple

  # Shapes of more elements than this have no data in any memory.
  @max_size 0x7FFF_FFFF_FFFF_FFFF

  @doc "Raises unless `shape` is a tuple of positive integers of a size that can be."
  @spec validate!(term, atom) :: t
  def validate!(shape, op) do
    dims = if is_tuple(shape), do: Tuple.to_list(shape), else: [:invalid]

    unless Enum.all?(dims, &(is_integer(&1) and &1 > 0)) do
      raise ArgumentError,
            "#{op} expects a shape, a tuple of positive integers, got: #{inspect(shape)}"
    end

    if Enum.product(dims) > @max_size do
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
    dims = joined(left, tuple_size(left), right, tuple_size(right), [])

    unless dims do
      raise ArgumentError,
            "#{op}: shapes #{inspect(left)} of #{Ferrox.Promotion.Names.short(left_type)} and " <>
              "#{inspect(right)} of #{Ferrox.Promotion.Names.short(right_type)} don't broadcast together: " <>
              "each axis, counted from the last, must be equal or one"
    end

    List.to_tuple(dims)
  end

  # The first axes of both, joined from the last one on, before those that are.
  defp joined(_left, 0, _right, 0, dims), do: dims

  defp joined(left, i, right, 0, dims),
    do: joined(left, i - 1, right, 0, [elem(left, i - 1) | dims])

  defp joined(left, 0, right, j, dims),
    do: joined(left, 0, right, j - 1, [elem(right, j - 1) | dims])

  defp joined(left, i, right, j, dims) do
    case {elem(left, i - 1), elem(right, j - 1)} do
      {dim, dim} -> joined(left, i - 1, right, j - 1, [dim | dims])
      {1, dim} -> joined(left, i - 1, right, j - 1, [dim | dims])
      {dim, 1} -> joined(left, i - 1, right, j - 1, [dim | dims])
      _ -> nil
    end
  end

  @doc "The axis counted from zero; negative ones count from the end."
  @spec axis!(t, term, atom) :: non_neg_integer
  def axis!(shape, axis, op) do
    rank = tuple_size(shape)

    cond do
      is_integer(axis) and axis >= 0 and axis < rank -> axis
      is_integer(axis) and axis < 0 and axis >= -rank -> rank + axis
      true -> raise_axis!(shape, axis, op)
    end
  end

  defp raise_axis!(shape, axis, op) do
    rank = tuple_size(shape)
    range = if rank == 0, do: "it has no axes", else: "its axes are #{-rank} to #{rank - 1}"

    raise ArgumentError,
          "#{op}: axis #{inspect(axis)} is out of range for shape #{inspect(shape)}: #{range}"
  end

  @doc "Distinct axes; nil stands for all."
  @spec axes!(t, term, atom) :: [non_neg_integer]
  def axes!(shape, nil, _op), do: all_axes(shape)
  def axes!(_shape, [], _op), do: []
  def axes!(shape, [axis], op), do: [axis!(shape, axis, op)]

  # The guard fails where it is no proper list.
  def axes!(shape, axes, op) when length(axes) >= 0 do
    axes = counted(axes, shape, op)

    unless distinct?(axes) do
      raise ArgumentError,
            "#{op}: axes #{inspect(axes)} of shape #{inspect(shape)} name an axis twice"
    end

    axes
  end

  def axes!(_shape, axes, op) do
    raise ArgumentError, "#{op}: :axes must be a list of axes, got: #{inspect(axes)}"
  end

  # Plain recursion, here and below: axes are few, and every call has some.
  defp counted([], _shape, _op), do: []
  defp counted([axis | axes], shape, op), do: [axis!(shape, axis, op) | counted(axes, shape, op)]

  defp distinct?([axis | rest]), do: not :lists.member(axis, rest) and distinct?(rest)
  defp distinct?([]), do: true

  @doc "The axes of a shape."
  @spec all_axes(t) :: [non_neg_integer]
  def all_axes({}), do: []
  def all_axes({_}), do: [0]
  def all_axes({_, _}), do: [0, 1]
  def all_axes(shape), do: :lists.seq(0, tuple_size(shape) - 1)

  @doc "The shape without `axes`, or with ones in their place."
  @spec reduce(t, [non_neg_integer], boolean) :: t
  def reduce({size, _}, [1], false), do: {size}
  def reduce({_, size}, [0], false), do: {size}
  def reduce(shape, axes, keep?), do: List.to_tuple(kept(shape, axes, keep?, []))

  # The sizes that remain, before others.
  defp kept(shape, axes, keep?, dims), do: kept(shape, tuple_size(shape) - 1, axes, keep?, dims)

  defp kept(_shape, -1, _axes, _keep?, dims), do: dims

  defp kept(shape, axis, axes, keep?, dims) do
    dims =
      cond do
        not :lists.member(axis, axes) -> [elem(shape, axis) | dims]
        keep? -> [1 | dims]
        true -> dims
      end

    kept(shape, axis - 1, axes, keep?, dims)
  end

  @doc """
  The axes that the options of a reduction name, nil for all, and the shape of its
  result. What other options there are has been looked at.
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

  @doc "The shape of a product over axes."
  @spec dot!(t, [non_neg_integer], [non_neg_integer], t, [non_neg_integer], [non_neg_integer]) ::
          t
  # Matrices, as most are.
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

    dims = kept(right, right_axes ++ right_batch, false, [])
    dims = kept(left, left_axes ++ left_batch, false, dims)
    List.to_tuple(sizes(left, left_batch) ++ dims)
  end

  defp sizes(_shape, []), do: []
  defp sizes(shape, [axis | axes]), do: [elem(shape, axis) | sizes(shape, axes)]
end
