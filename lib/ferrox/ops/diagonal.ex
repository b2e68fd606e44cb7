defmodule Ferrox.Ops.Diagonal do
  @moduledoc false
  # Triangles and diagonals of matrices, which are the last two axes of a tensor.

  import Ferrox.Operands, only: [native: 1, options!: 3, promotion!: 2, storage: 1, to_tensor: 2]

  alias Ferrox.{Native, Operands, Promotion, Shape, Tensor}
  alias Ferrox.Ops.{Create, Elementwise, Reduce}
  alias Ferrox.Ops.Shape, as: Shapes

  @doc "See `Ferrox.tri/3`."
  @spec tri(term, term, keyword) :: Tensor.t()
  def tri(rows, columns, opts) do
    opts = options!(opts, [:k, :promotion], :tri)
    mode = promotion!(opts, :tri)
    Shape.validate!({rows, columns}, :tri)
    %Tensor{data: data} = below(rows, columns, integer!(opts, :k, :tri))
    %Tensor{data: data, type: Promotion.facts(mode).bool || {:u, 8}, shape: {rows, columns}}
  end

  # 1 at and below the diagonal `k`, else 0.
  defp below(rows, columns, k) do
    column = Create.iota({1, columns}, type: {:s, 64})
    row = Create.iota({rows, 1}, type: {:s, 64})
    Elementwise.step(:greater_equal, row, Elementwise.step(:subtract, column, k))
  end

  @doc "See `Ferrox.tril/2` and `Ferrox.triu/2`."
  @spec triangle(:tril | :triu, term, keyword) :: Tensor.t()
  def triangle(name, tensor, opts) do
    opts = options!(opts, [:k], name)
    k = integer!(opts, :k, name)
    %Tensor{shape: shape} = tensor = to_tensor(tensor, name)
    {_batch, rows, columns} = matrices!(shape, name)
    {_, bits} = type = storage(tensor.type)
    zero = {type, {}, <<0::size(bits)>>}

    {mask, on_true, on_false} =
      if name == :tril,
        do: {below(rows, columns, k), native(tensor), zero},
        else: {below(rows, columns, k - 1), zero, native(tensor)}

    %{tensor | data: Native.select(type, shape, native(mask), on_true, on_false)}
  end

  @doc "See `Ferrox.take_diagonal/2`."
  @spec take(term, keyword) :: Tensor.t()
  def take(tensor, opts) do
    opts = options!(opts, [:offset], :take_diagonal)
    taken(to_tensor(tensor, :take_diagonal), opts, :take_diagonal)
  end

  @doc "See `Ferrox.trace/2`."
  @spec trace(term, keyword) :: Tensor.t()
  def trace(tensor, opts) do
    opts = options!(opts, [:offset, :promotion], :trace)
    mode = promotion!(opts, :trace)
    diagonal = tensor |> Operands.tensor!(mode, :trace) |> taken(opts, :trace)
    _ = Promotion.type_as(mode, :sum, :trace, [diagonal])
    Reduce.reduce(:sum, diagonal, axes: [-1], promotion: mode)
  end

  defp taken(%Tensor{shape: shape} = tensor, opts, name) do
    {batch, rows, columns} = matrices!(shape, name)
    {first, count} = diagonal!(rows, columns, integer!(opts, :offset, name), name)

    # In a row of all elements of a matrix, those on a diagonal have the same distance.
    distance = columns + 1
    axis = length(batch)
    from = List.to_tuple(batch ++ [rows * columns])
    to = List.to_tuple(batch ++ [count])
    starts = List.duplicate(0, axis) ++ [first]
    lengths = batch ++ [(count - 1) * distance + 1]
    strides = List.duplicate(1, axis) ++ [distance]
    input = native(%{tensor | shape: from})
    %{tensor | data: Native.slice(to, starts, lengths, strides, input), shape: to}
  end

  @doc "See `Ferrox.make_diagonal/2`."
  @spec make(term, keyword) :: Tensor.t()
  def make(tensor, opts) do
    opts = options!(opts, [:offset], :make_diagonal)
    offset = integer!(opts, :offset, :make_diagonal)
    %Tensor{shape: shape} = tensor = to_tensor(tensor, :make_diagonal)

    unless tuple_size(shape) == 1 do
      raise ArgumentError,
            "make_diagonal expects a tensor of one axis, got shape #{inspect(shape)}"
    end

    size = elem(shape, 0) + abs(offset)
    shape = Shape.validate!({size, size}, :make_diagonal)
    {first, count} = diagonal!(size, size, offset, :make_diagonal)
    {_, bits} = type = storage(tensor.type)
    last = first + (count - 1) * (size + 1)
    padding = [{first, size * size - 1 - last, size}]
    zero = {type, {}, <<0::size(bits)>>}
    %{tensor | data: Native.pad(type, {size * size}, padding, native(tensor), zero), shape: shape}
  end

  @doc "See `Ferrox.put_diagonal/3`."
  @spec put(term, term, keyword) :: Tensor.t()
  def put(tensor, diagonal, opts) do
    opts = options!(opts, [:offset, :promotion], :put_diagonal)
    mode = promotion!(opts, :put_diagonal)
    %Tensor{shape: shape} = tensor = Operands.tensor!(tensor, mode, :put_diagonal)
    diagonal = Operands.tensor!(diagonal, mode, :put_diagonal)

    unless tuple_size(shape) == 2 do
      raise ArgumentError,
            "put_diagonal expects a matrix, got a tensor of shape #{inspect(shape)}"
    end

    {rows, columns} = shape

    {first, count} =
      diagonal!(rows, columns, integer!(opts, :offset, :put_diagonal), :put_diagonal)

    unless diagonal.shape == {count} do
      raise ArgumentError,
            "put_diagonal: this diagonal of shape #{inspect(shape)} takes shape {#{count}}, got: " <>
              inspect(diagonal.shape)
    end

    type = Promotion.type_as(mode, :select, :put_diagonal, [tensor, diagonal])
    [tensor, diagonal] = for t <- [tensor, diagonal], do: Elementwise.cast(t, type)
    last = first + (count - 1) * (columns + 1)
    places = Create.arange(first, last + 1, step: columns + 1, type: {:s, 64})
    places = Shapes.new_axis(places, -1)
    flat = native(%{tensor | shape: {rows * columns}})

    data =
      Native.indexed(:indexed_put, storage(type), [0], flat, native(places), native(diagonal))

    %Tensor{data: data, type: type, shape: shape}
  end

  # The axes of the batch, and the sizes of the matrices.
  defp matrices!(shape, name) do
    case Enum.split(Tuple.to_list(shape), -2) do
      {batch, [rows, columns]} ->
        {batch, rows, columns}

      _ ->
        raise ArgumentError,
              "#{name} expects a tensor of at least two axes, got shape #{inspect(shape)}"
    end
  end

  # The place of the first element of a diagonal in a row of all elements, and how many there are.
  defp diagonal!(rows, columns, offset, name) do
    count = if offset >= 0, do: min(rows, columns - offset), else: min(rows + offset, columns)

    if count < 1 do
      raise ArgumentError,
            "#{name}: :offset must be from #{1 - rows} to #{columns - 1} for matrices of shape " <>
              "#{inspect({rows, columns})}, got: #{offset}"
    end

    {if(offset >= 0, do: offset, else: -offset * columns), count}
  end

  defp integer!(opts, key, name) do
    case Keyword.get(opts, key, 0) do
      integer when is_integer(integer) ->
        integer

      other ->
        raise ArgumentError, "#{name}: #{inspect(key)} must be an integer, got: #{inspect(other)}"
    end
  end
end
