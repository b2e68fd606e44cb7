defmodule Ferrox.Ops.Search do
  @moduledoc false
  # Elements that are found by what they are: by masks, and in sorted elements.

  import Ferrox.Operands, only: [native: 1, options!: 3, promotion!: 2]

  alias Ferrox.{Native, Numbers, Operands, Promotion, Tensor, Type}
  alias Ferrox.Ops.{Create, Elementwise, Index, Reduce, Sort}
  alias Ferrox.Ops.Shape, as: Shapes

  ## Masks

  @doc "See `Ferrox.nonzero/2`."
  @spec nonzero(term, keyword) :: tuple
  def nonzero(tensor, opts), do: tensor |> indices(opts, :nonzero) |> List.to_tuple()

  @doc "See `Ferrox.argwhere/2`."
  @spec argwhere(term, keyword) :: Tensor.t()
  def argwhere(tensor, opts),
    do: Shapes.join(:stack, indices(tensor, opts, :argwhere), axis: 1, promotion: :nx)

  # A vector of indices for each axis, in row-major order.
  defp indices(tensor, opts, name) do
    mode = Operands.chosen_mode!(opts, name)
    %Tensor{shape: shape} = tensor = Operands.tensor!(tensor, mode, name)

    if shape == {} do
      raise ArgumentError, "#{name} expects a tensor with axes, got a scalar"
    end

    places = places!(tensor, name, "no element of shape #{inspect(shape)} differs from zero")
    sizes = Tuple.to_list(shape)
    # How many elements lie between two neighbours along each axis.
    [_ | steps] = Enum.scan([1 | Enum.reverse(sizes)], &*/2) |> Enum.reverse()
    type = Promotion.facts(mode).index

    for {{size, step}, axis} <- sizes |> Enum.zip(steps) |> Enum.with_index() do
      index = if step == 1, do: places, else: Elementwise.step(:quotient, places, step)
      index = if axis == 0, do: index, else: Elementwise.step(:remainder, index, size)
      Elementwise.cast(index, type)
    end
  end

  @doc "See `Ferrox.extract/2`."
  @spec extract(term, term) :: Tensor.t()
  def extract(mask, tensor) do
    mask = Operands.to_tensor(mask, :extract)
    masked(mask, Operands.to_tensor(tensor, :extract), :extract)
  end

  @doc "The parts of a tensor where a mask of its first axes isn't zero."
  @spec masked(Tensor.t(), Tensor.t(), atom | String.t()) :: Tensor.t()
  def masked(%Tensor{shape: mask_shape} = mask, %Tensor{shape: shape} = tensor, name) do
    rank = tuple_size(mask_shape)
    {first, rest} = shape |> Tuple.to_list() |> Enum.split(rank)

    unless rank > 0 and List.to_tuple(first) == mask_shape do
      raise ArgumentError,
            "#{name}: a mask of shape #{inspect(mask_shape)} does not fit a tensor of shape " <>
              "#{inspect(shape)}: a mask has the sizes of all axes, or of the first ones"
    end

    places = places!(mask, name, "nothing is selected by a mask of zeros")
    flat = %{tensor | shape: List.to_tuple([Native.size(mask_shape) | rest])}
    Index.take(flat, places, axis: 0)
  end

  defp places!(%Tensor{shape: shape} = tensor, name, nothing) do
    data = Elementwise.truth(shape, native(tensor))
    mask = %Tensor{data: data, type: {:u, 8}, shape: {Native.size(shape)}}

    Sort.places(mask) ||
      raise ArgumentError,
            "#{name}: #{nothing}, and a tensor has at least one element; Ferrox.any/2 tells whether " <>
              "there are others"
  end

  ## Sorted elements

  @doc "See `Ferrox.searchsorted/3`."
  @spec searchsorted(term, term, keyword) :: Tensor.t()
  def searchsorted(sorted, values, opts) do
    opts = options!(opts, [:side, :promotion], :searchsorted)
    mode = promotion!(opts, :searchsorted)
    sorted = Operands.tensor!(sorted, mode, :searchsorted)

    {sorted, values, _type, _weak} =
      Elementwise.together(mode, :select, :searchsorted, sorted, values)

    side =
      case Keyword.get(opts, :side, :left) do
        side when side in [:left, :right] ->
          side

        other ->
          raise ArgumentError,
                "searchsorted: :side must be :left or :right, got: #{inspect(other)}"
      end

    vector!(sorted, "the sorted elements", :searchsorted)
    for operand <- [sorted, values], do: Operands.ordered!(operand.type, :searchsorted)
    sorted |> before(values, side) |> Elementwise.cast(Promotion.facts(mode).index)
  end

  defp vector!(%Tensor{shape: {_}}, _what, _name), do: :ok

  defp vector!(%Tensor{shape: shape}, what, name) do
    raise ArgumentError, "#{name}: #{what} must be a vector, got shape #{inspect(shape)}"
  end

  # How many of the sorted elements come before each value: a binary search of all values at once, each in
  # a part of the elements that is half as long after every step.
  defp before(%Tensor{shape: {size}} = sorted, %Tensor{shape: shape} = values, side) do
    [sorted, values] = for t <- [sorted, values], do: %{t | type: Operands.storage(t.type)}
    type = if size > 0x7FFF_FFFF, do: {:s, 64}, else: {:s, 32}
    first = Create.full(shape, 0, type: type, promotion: :nx)
    before? = comparison(values, side)
    {first, 1} = halve(first, size, &before?.(Index.take(sorted, &1, axis: 0)))
    Elementwise.step(:add, first, before?.(Index.take(sorted, first, axis: 0)))
  end

  defp halve(first, 1, _before?), do: {first, 1}

  defp halve(first, length, before?) do
    half = div(length, 2)
    later? = before?.(Elementwise.step(:add, first, half - 1))
    later = Elementwise.step(:add, first, half)
    halve(Elementwise.select(later?, later, first, promotion: :nx), length - half, before?)
  end

  # Whether elements come before the values beside them, where NaN is the last of all numbers.
  defp comparison(%Tensor{type: type} = values, side) do
    op = if side == :left, do: :less, else: :less_equal
    nan? = if Type.float?(type), do: Elementwise.step(:is_nan, values)

    cond do
      nan? == nil or Reduce.step(:reduce_max, nan?).data == <<0>> ->
        &Elementwise.step(op, &1, values)

      side == :left ->
        fn elements ->
          number? = Elementwise.step(:logical_not, Elementwise.step(:is_nan, elements))
          last? = Elementwise.step(:logical_and, nan?, number?)
          Elementwise.step(:logical_or, Elementwise.step(op, elements, values), last?)
        end

      side == :right ->
        &Elementwise.step(:logical_or, Elementwise.step(op, &1, values), nan?)
    end
  end

  @doc "See `Ferrox.digitize/3`."
  @spec digitize(term, term, keyword) :: Tensor.t()
  def digitize(values, edges, opts) do
    opts = options!(opts, [:right, :promotion], :digitize)
    mode = promotion!(opts, :digitize)
    side = if Operands.boolean!(opts, :right, :digitize), do: :left, else: :right
    edges = Operands.tensor!(edges, mode, :digitize)
    {edges, values, _type, _weak} = Elementwise.together(mode, :select, :digitize, edges, values)
    vector!(edges, "the edges", :digitize)
    for operand <- [edges, values], do: Operands.ordered!(operand.type, :digitize)

    index =
      case order!(edges) do
        :asc ->
          before(edges, values, side)

        :desc ->
          after? = before(Shapes.reverse(edges, []), values, side)
          Elementwise.step(:subtract, elem(edges.shape, 0), after?)
      end

    Elementwise.cast(index, Promotion.facts(mode).index)
  end

  defp order!(%Tensor{shape: {1}}), do: :asc

  defp order!(%Tensor{shape: {size}} = edges) do
    stored = %{edges | type: Operands.storage(edges.type), weak: false}
    [first, second] = for i <- [0, 1], do: Shapes.slice(stored, [i], [size - 1], [])
    all? = &(Reduce.step(:all, Elementwise.step(&1, first, second)).data == <<1>>)

    cond do
      all?.(:less_equal) -> :asc
      all?.(:greater_equal) -> :desc
      true -> raise ArgumentError, "digitize: the edges must be in ascending or descending order"
    end
  end

  @doc "See `Ferrox.isin/3`."
  @spec isin(term, term, keyword) :: Tensor.t()
  def isin(tensor, values, opts) do
    mode = Operands.chosen_mode!(opts, :isin)
    [tensor, values] = for t <- [tensor, values], do: Operands.tensor!(t, mode, :isin)
    for operand <- [tensor, values], do: Operands.ordered!(operand.type, :isin)
    %Tensor{shape: {size}} = sorted = Sort.sort(Shapes.flatten(values), [])
    place = Elementwise.step(:min, before(sorted, tensor, :left), size - 1)
    Elementwise.binary(:equal, Index.take(sorted, place, axis: 0), tensor, promotion: mode)
  end

  @doc "See `Ferrox.interp/4`."
  @spec interp(term, term, term, keyword) :: Tensor.t()
  def interp(x, xs, ys, opts) do
    opts = options!(opts, [:left, :right, :promotion], :interp)
    mode = promotion!(opts, :interp)
    operands = for t <- [x, xs, ys], do: Operands.tensor!(t, mode, :interp)
    [x, %Tensor{shape: xs_shape} = xs, %Tensor{shape: ys_shape} = ys] = operands
    type = Promotion.type_as(mode, :divide, :interp, operands)
    type = Promotion.merge(mode, type, Promotion.facts(mode).float)
    for t <- [x, xs], do: Operands.ordered!(t.type, :interp)
    vector!(xs, "the x-coordinates", :interp)

    if xs_shape != ys_shape do
      raise ArgumentError,
            "interp: there is one y-coordinate for each x-coordinate, got shapes #{inspect(xs_shape)} " <>
              "and #{inspect(ys_shape)}"
    end

    {size} = xs_shape
    [x, xs] = for t <- [x, xs], do: Elementwise.cast(t, {:f, 64})
    ys = Elementwise.cast(ys, Numbers.wide(type))
    [first, last] = for t <- [0, size - 1], do: {Index.fetch(xs, t), Index.fetch(ys, t)}
    left = Keyword.get(opts, :left) || elem(first, 1)
    right = Keyword.get(opts, :right) || elem(last, 1)

    x
    |> between(xs, ys)
    |> outside(Elementwise.step(:less, x, elem(first, 0)), left)
    |> outside(Elementwise.step(:greater, x, elem(last, 0)), right)
    |> Elementwise.cast(type)
  end

  defp outside(y, outside?, value),
    do: Elementwise.select(outside?, value, y, promotion: :nx)

  # On the straight line from the last point that is not after `x` to the next one.
  defp between(x, %Tensor{shape: {1}}, ys),
    do: Elementwise.select(Elementwise.step(:is_nan, x), x, Index.fetch(ys, 0), promotion: :nx)

  defp between(x, %Tensor{shape: {size}} = xs, ys) do
    low = Elementwise.step(:subtract, before(xs, x, :right), 1)
    low = Elementwise.clip(low, 0, size - 2, promotion: :nx)
    high = Elementwise.step(:add, low, 1)
    [x0, x1, y0, y1] = for t <- [xs, ys], i <- [low, high], do: Index.take(t, i, axis: 0)

    slope =
      Elementwise.step(
        :divide,
        Elementwise.step(:subtract, y1, y0),
        Elementwise.step(:subtract, x1, x0)
      )

    line = fn x_at, y_at ->
      rise = Elementwise.step(:multiply, slope, Elementwise.step(:subtract, x, x_at))
      Elementwise.step(:add, y_at, rise)
    end

    # Points with the coordinates of `x` itself need no line, which infinities may leave without a number.
    y = Elementwise.select(Elementwise.step(:equal, x, x0), y0, line.(x0, y0), promotion: :nx)
    Elementwise.select(Elementwise.step(:equal, x, x1), y1, y, promotion: :nx)
  end
end
