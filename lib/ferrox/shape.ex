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
    {short, long} =
      if tuple_size(left) < tuple_size(right), do: {left, right}, else: {right, left}

    {lead, rest} = Enum.split(Tuple.to_list(long), tuple_size(long) - tuple_size(short))

    joined =
      Enum.zip_with(rest, Tuple.to_list(short), fn
        dim, dim -> dim
        1, dim -> dim
        dim, 1 -> dim
        _, _ -> raise_broadcast!(left, right, op, left_type, right_type)
      end)

    List.to_tuple(lead ++ joined)
  end

  defp raise_broadcast!(left, right, op, left_type, right_type) do
    raise ArgumentError,
          "#{op}: shapes #{inspect(left)} of #{Ferrox.Promotion.Names.short(left_type)} and " <>
            "#{inspect(right)} of #{Ferrox.Promotion.Names.short(right_type)} don't broadcast together: " <>
            "each axis, counted from the last, must be equal or one"
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

  def axes!(shape, [_ | _] = axes, op) do
    if List.improper?(axes), do: raise_axes!(axes, op)
    axes = Enum.map(axes, &axis!(shape, &1, op))

    unless distinct?(axes) do
      raise ArgumentError,
            "#{op}: axes #{inspect(axes)} of shape #{inspect(shape)} name an axis twice"
    end

    axes
  end

  def axes!(_shape, [], _op), do: []
  def axes!(_shape, axes, op), do: raise_axes!(axes, op)

  # Axes are few.
  defp distinct?([axis | rest]), do: axis not in rest and distinct?(rest)
  defp distinct?([]), do: true

  @spec raise_axes!(term, atom) :: no_return
  defp raise_axes!(axes, op) do
    raise ArgumentError, "#{op}: :axes must be a list of axes, got: #{inspect(axes)}"
  end

  @doc "The axes of a shape."
  @spec all_axes(t) :: [non_neg_integer]
  def all_axes(shape), do: :lists.seq(0, tuple_size(shape) - 1)

  @doc "The shape without `axes`, or with ones in their place."
  @spec reduce(t, [non_neg_integer], boolean) :: t
  def reduce(shape, axes, keep?), do: reduce(shape, tuple_size(shape) - 1, axes, keep?, [])

  defp reduce(_shape, -1, _axes, _keep?, dims), do: List.to_tuple(dims)

  defp reduce(shape, axis, axes, keep?, dims) do
    dims =
      cond do
        axis not in axes -> [elem(shape, axis) | dims]
        keep? -> [1 | dims]
        true -> dims
      end

    reduce(shape, axis - 1, axes, keep?, dims)
  end

  @doc "The axes that the options of a reduction name, and the shape of its result."
  @spec reduction!(t, keyword, atom) :: {[non_neg_integer], t}
  def reduction!(shape, opts, op) do
    opts = Operands.options!(opts, [:axes, :keep_axes], op)
    axes = axes!(shape, opts[:axes], op)
    {axes, reduce(shape, axes, Operands.boolean!(opts, :keep_axes, op))}
  end

  @doc "The shape of a product over axes."
  @spec dot!(t, [non_neg_integer], [non_neg_integer], t, [non_neg_integer], [non_neg_integer]) ::
          t
  def dot!(left, left_axes, left_batch, right, right_axes, right_batch) do
    sizes = fn shape, axes -> Enum.map(axes, &elem(shape, &1)) end

    if sizes.(left, left_axes) != sizes.(right, right_axes) or
         sizes.(left, left_batch) != sizes.(right, right_batch) do
      raise ArgumentError,
            "dot: shapes #{inspect(left)} and #{inspect(right)} differ in the sizes of the axes " <>
              "to sum over, #{inspect(left_axes)} and #{inspect(right_axes)}" <>
              if(left_batch == [] and right_batch == [],
                do: "",
                else: ", or of the batch, #{inspect(left_batch)} and #{inspect(right_batch)}"
              )
    end

    free = fn shape, taken -> sizes.(shape, all_axes(shape) -- taken) end

    List.to_tuple(
      sizes.(left, left_batch) ++
        free.(left, left_axes ++ left_batch) ++ free.(right, right_axes ++ right_batch)
    )
  end
end
