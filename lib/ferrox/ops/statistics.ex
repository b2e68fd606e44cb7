defmodule Ferrox.Ops.Statistics do
  @moduledoc false
  # Spread, quantiles and counts. Floats are computed in 64 bits and rounded once.

  import Ferrox.Numbers, only: [wide: 1]
  import Ferrox.Operands, only: [boolean!: 3, options!: 3, promotion!: 2]

  alias Ferrox.{Native, Numbers, Operands, Promotion, Shape, Tensor, Type}
  alias Ferrox.Ops.{Create, Cumulative, Diagonal, Dot, Elementwise, Index, Reduce, Sort}
  alias Ferrox.Ops.Shape, as: Shapes

  ## Spread

  @doc "See `Ferrox.variance/2`."
  @spec variance(term, keyword) :: Tensor.t()
  def variance(tensor, opts) do
    {variance, type} = wide_variance(:variance, tensor, opts)
    Elementwise.cast(variance, type)
  end

  @doc "See `Ferrox.standard_deviation/2`."
  @spec standard_deviation(term, keyword) :: Tensor.t()
  def standard_deviation(tensor, opts) do
    {variance, type} = wide_variance(:standard_deviation, tensor, opts)
    Elementwise.cast(Elementwise.step(:sqrt, variance), type)
  end

  # The variance in f64, and the type that it has in the end.
  defp wide_variance(name, tensor, opts) do
    opts = options!(opts, [:axes, :keep_axes, :ddof, :promotion], name)
    mode = promotion!(opts, name)
    %Tensor{shape: shape} = tensor = Operands.tensor!(tensor, mode, name)
    mean_type = Promotion.type_as(mode, :mean, name, [tensor])
    axes = Shape.axes!(shape, opts[:axes], name)
    keep? = boolean!(opts, :keep_axes, name)
    count = axes |> Enum.map(&elem(shape, &1)) |> Enum.product()
    divisor = count - ddof!(opts, count, name)

    wide = Elementwise.cast(tensor, wide(mean_type))
    mean = Elementwise.step(:divide, Reduce.step(:sum, wide, axes: axes, keep_axes: true), count)
    distance = Elementwise.step(:abs, Elementwise.step(:subtract, wide, mean))
    squares = Elementwise.step(:multiply, distance, distance)
    sum = Reduce.step(:sum, squares, axes: axes, keep_axes: keep?)
    {Elementwise.step(:divide, sum, divisor), real(mean_type)}
  end

  defp real({:c, bits}), do: {:f, div(bits, 2)}
  defp real(type), do: type

  defp ddof!(opts, count, name) do
    case Keyword.get(opts, :ddof, 0) do
      ddof when is_integer(ddof) and ddof >= 0 and ddof < count ->
        ddof

      other ->
        raise ArgumentError,
              "#{name}: :ddof must be an integer from 0 to #{count - 1}, below the number of elements, " <>
                "#{count}, got: #{inspect(other)}"
    end
  end

  @doc "See `Ferrox.covariance/2`."
  @spec covariance(term, keyword) :: Tensor.t()
  def covariance(tensor, opts) do
    opts = options!(opts, [:ddof, :promotion], :covariance)
    {covariance, type} = wide_covariance(:covariance, tensor, opts)
    Elementwise.cast(covariance, type)
  end

  @doc "See `Ferrox.corrcoef/2`."
  @spec corrcoef(term, keyword) :: Tensor.t()
  def corrcoef(tensor, opts) do
    opts = options!(opts, [:promotion], :corrcoef)
    {covariance, type} = wide_covariance(:corrcoef, tensor, opts)
    variance = Elementwise.part(:real, Diagonal.take(covariance, []))
    deviation = Elementwise.step(:sqrt, variance)
    by_row = Elementwise.step(:divide, covariance, Shapes.new_axis(deviation, -1))
    by_both = Elementwise.step(:divide, by_row, Shapes.new_axis(deviation, -2))
    Elementwise.cast(within_one(by_both), type)
  end

  # What rounding has moved past one is one, of complex numbers in both parts, which lie side by side.
  defp within_one(%Tensor{type: {:c, 128} = type, shape: shape} = tensor) do
    parts = %{tensor | type: {:f, 64}, shape: Tuple.insert_at(shape, tuple_size(shape), 2)}
    %{within_one(parts) | type: type, shape: shape}
  end

  defp within_one(tensor), do: Elementwise.clip(tensor, -1, 1, promotion: :nx)

  # In 64 bits, with the type in the end.
  defp wide_covariance(name, tensor, opts) do
    mode = promotion!(opts, name)
    %Tensor{shape: shape} = tensor = Operands.tensor!(tensor, mode, name)
    rank = tuple_size(shape)

    if rank < 2 do
      raise ArgumentError,
            "#{name} expects a tensor of at least two axes, got shape #{inspect(shape)}"
    end

    type = Promotion.type_as(mode, :mean, name, [tensor])
    count = elem(shape, rank - 2)
    divisor = count - ddof!(opts, count, name)

    wide = Elementwise.cast(tensor, wide(type))
    sum = Reduce.step(:sum, wide, axes: [rank - 2], keep_axes: true)
    distance = Elementwise.step(:subtract, wide, Elementwise.step(:divide, sum, count))

    mirrored =
      if match?({:c, _}, type), do: Elementwise.step(:conjugate, distance), else: distance

    batch = Enum.to_list(0..(rank - 3)//1)

    product =
      Dot.dot_axes({mirrored, [rank - 2], batch}, {distance, [rank - 2], batch}, promotion: :nx)

    {Elementwise.step(:divide, product, divisor), type}
  end

  @doc "See `Ferrox.weighted_mean/3`."
  @spec weighted_mean(term, term, keyword) :: Tensor.t()
  def weighted_mean(tensor, weights, opts) do
    opts = options!(opts, [:axes, :keep_axes, :promotion], :weighted_mean)
    mode = promotion!(opts, :weighted_mean)
    operands = for t <- [tensor, weights], do: Operands.tensor!(t, mode, :weighted_mean)
    [%Tensor{shape: shape} = tensor, %Tensor{shape: given} = weights] = operands
    axes = Shape.axes!(shape, opts[:axes], :weighted_mean)
    kept = [axes: axes, keep_axes: boolean!(opts, :keep_axes, :weighted_mean)]

    unless given in [shape, List.to_tuple(for axis <- axes, do: elem(shape, axis))] do
      raise ArgumentError,
            "weighted_mean: weights of shape #{inspect(given)} have neither the shape of the tensor, " <>
              "#{inspect(shape)}, nor the sizes of the axes #{inspect(axes)}"
    end

    # Each axis of the weights lies along one of the tensor.
    weights = if given == shape, do: weights, else: along(weights, axes, shape)
    type = Promotion.type_as(mode, :divide, :weighted_mean, operands)
    [tensor, weights] = for t <- [tensor, weights], do: Elementwise.cast(t, wide(type))

    [sum, total] =
      for t <- [
            Elementwise.step(:multiply, tensor, weights),
            Shapes.broadcast(weights, shape, [])
          ],
          do: Reduce.step(:sum, t, kept)

    Elementwise.cast(Elementwise.step(:divide, sum, total), type)
  end

  defp along(%Tensor{shape: given} = weights, axes, shape) do
    order = axes |> Enum.with_index() |> Enum.sort() |> Enum.map(&elem(&1, 1))
    weights = if given == {}, do: weights, else: Shapes.transpose(weights, axes: order)

    sizes =
      for axis <- Shape.all_axes(shape), do: if(axis in axes, do: elem(shape, axis), else: 1)

    Shapes.reshape(weights, List.to_tuple(sizes))
  end

  ## Quantiles

  @doc "See `Ferrox.median/2`."
  @spec median(term, keyword) :: Tensor.t()
  def median(tensor, opts) do
    {sorted, axis, type, mode, keep?} = sorted!(:median, tensor, opts)
    size = elem(sorted.shape, axis)

    # Nx keeps the type where an element is in the middle.
    if mode in [:nx, :nx_0_9] and rem(size, 2) == 1 do
      middle = Index.slice_along_axis(sorted, div(size, 2), 1, axis: axis)
      middle |> or_nan(sorted, axis) |> drop(axis, keep?)
    else
      sorted |> quantile_at(0.5, axis) |> Elementwise.cast(type) |> drop(axis, keep?)
    end
  end

  @doc """
  See `Ferrox.quantile/3` and `Ferrox.percentile/3`. `whole` is the number that stands for the largest
  element.
  """
  @spec quantile(atom, term, term, number, keyword) :: Tensor.t()
  def quantile(name, tensor, quantiles, whole, opts) do
    {sorted, axis, type, _mode, keep?} = sorted!(name, tensor, opts)
    at = &(sorted |> quantile_at(&1, axis) |> Elementwise.cast(type) |> drop(axis, keep?))

    case quantiles!(quantiles, whole, name) do
      fraction when is_float(fraction) -> at.(fraction)
      fractions -> Shapes.join(:stack, Enum.map(fractions, at), promotion: :nx)
    end
  end

  @doc "See `Ferrox.mode/2`."
  @spec mode(term, keyword) :: Tensor.t()
  def mode(tensor, opts) do
    opts = options!(opts, [:axis, :keep_axis], :mode)
    %Tensor{shape: given} = tensor = Operands.to_tensor(tensor, :mode)
    Operands.ordered!(tensor.type, :mode)
    keep? = boolean!(opts, :keep_axis, :mode)
    flat? = opts[:axis] == nil
    %Tensor{shape: shape} = tensor = if flat?, do: Shapes.flatten(tensor), else: tensor
    axis = Shape.axis!(shape, opts[:axis] || 0, :mode)
    kept = Shape.reduce(given, if(flat?, do: Shape.all_axes(given), else: [axis]), keep?)

    # The element at which a row of equal ones is longest, of several the first.
    sorted = Sort.sort(tensor, axis: axis)
    place = Create.iota(shape, axis: axis, type: {:s, 64}, promotion: :nx)
    first = Elementwise.select(starts(sorted, axis), place, 0, promotion: :nx)
    first = Cumulative.cumulative(:cumulative_max, first, axis: axis, promotion: :nx)
    length = Elementwise.step(:subtract, place, first)
    index = Reduce.arg_reduce(:argmax, :reduce_max, length, axis: axis, keep_axis: true)
    %{Index.take_along_axis(sorted, index, axis: axis) | shape: kept}
  end

  # Whether another value than before begins at each of the sorted elements.
  defp starts(%Tensor{shape: shape} = sorted, axis) do
    stored = %{sorted | type: Operands.storage(sorted.type), weak: false}
    size = elem(shape, axis)
    start = Create.full(put_elem(shape, axis, 1), 1, type: {:u, 8}, promotion: :nx)

    if size == 1 do
      start
    else
      [before, here] =
        for i <- [0, 1], do: Index.slice_along_axis(stored, i, size - 1, axis: axis)

      differs = Elementwise.step(:not_equal, before, here)
      Shapes.join(:concatenate, [start, differs], axis: axis, promotion: :nx)
    end
  end

  # The fraction of the elements that each number stands for.
  defp quantiles!(number, whole, _name)
       when is_number(number) and number >= 0 and number <= whole,
       do: number / whole

  defp quantiles!([_ | _] = numbers, whole, name) do
    unless Enum.all?(numbers, &is_number/1), do: refuse_quantiles!(numbers, whole, name)
    Enum.map(numbers, &quantiles!(&1, whole, name))
  end

  defp quantiles!(%Tensor{shape: shape, type: type, data: data}, whole, name)
       when tuple_size(shape) <= 1 do
    case {shape, Numbers.decode(data, type, Native.size(shape))} do
      {{}, [number]} -> quantiles!(number, whole, name)
      {_, numbers} -> quantiles!(numbers, whole, name)
    end
  end

  defp quantiles!(other, whole, name), do: refuse_quantiles!(other, whole, name)

  @spec refuse_quantiles!(term, number, atom) :: no_return
  defp refuse_quantiles!(other, whole, name) do
    raise ArgumentError,
          "#{name} expects a number from 0 to #{whole}, or a list or a vector of such, got: #{inspect(other)}"
  end

  # The sorted tensor, the axis that was sorted, the type of a quantile, the promotion, and whether the
  # axis stays.
  defp sorted!(name, tensor, opts) do
    opts = options!(opts, [:axis, :keep_axis, :promotion], name)
    mode = promotion!(opts, name)
    tensor = Operands.tensor!(tensor, mode, name)
    type = Promotion.type_as(mode, :mean, name, [tensor])

    Operands.ordered!(type, name)
    keep? = boolean!(opts, :keep_axis, name)
    rank = tuple_size(tensor.shape)

    {tensor, axis, kept} =
      if opts[:axis] == nil do
        {Shapes.flatten(tensor), 0, List.to_tuple(List.duplicate(1, rank))}
      else
        axis = Shape.axis!(tensor.shape, opts[:axis], name)
        {tensor, axis, put_elem(tensor.shape, axis, 1)}
      end

    tensor = %{tensor | type: Operands.storage(tensor.type), weak: false}
    {Sort.sort(tensor, axis: axis), axis, type, mode, keep? && kept}
  end

  # The result without the axis, or in the shape that keeps its place.
  defp drop(tensor, axis, false), do: Shapes.squeeze(tensor, axes: [axis])
  defp drop(tensor, _axis, kept), do: %{tensor | shape: kept}

  # The element at a fraction of the way along the sorted axis, in f64: between two elements on the
  # straight line from one to the other.
  defp quantile_at(%Tensor{shape: shape} = sorted, fraction, axis) do
    last = elem(shape, axis) - 1
    place = last * fraction
    low = min(trunc(place), last)
    at = &(sorted |> Index.slice_along_axis(&1, 1, axis: axis) |> Elementwise.cast({:f, 64}))
    weight = place - low
    between = if weight == 0, do: at.(low), else: line(at.(low), at.(low + 1), weight)
    or_nan(between, sorted, axis)
  end

  # From the nearer end. Between equal elements, infinities among them, nothing is computed.
  defp line(low, high, weight) do
    distance = Elementwise.step(:subtract, high, low)

    between =
      if weight < 0.5,
        do: Elementwise.step(:add, low, Elementwise.step(:multiply, distance, weight)),
        else: Elementwise.step(:subtract, high, Elementwise.step(:multiply, distance, 1 - weight))

    # A distance that is infinite, or too large, leaves no number between.
    apart =
      Elementwise.step(
        :add,
        Elementwise.step(:multiply, low, 1 - weight),
        Elementwise.step(:multiply, high, weight)
      )

    far? = Elementwise.step(:is_infinity, distance)
    between = Elementwise.select(far?, apart, between, promotion: :nx)
    Elementwise.select(Elementwise.step(:equal, low, high), low, between, promotion: :nx)
  end

  # NaN where there is one among the sorted elements, of which it is the last.
  defp or_nan(%Tensor{type: type} = value, %Tensor{shape: shape, type: from} = sorted, axis) do
    if Type.float?(from) do
      last = Index.slice_along_axis(sorted, elem(shape, axis) - 1, 1, axis: axis)
      nan? = Elementwise.step(:is_nan, last)
      Elementwise.select(nan?, Elementwise.cast(last, type), value, promotion: :nx)
    else
      value
    end
  end

  ## Counts

  @doc "See `Ferrox.bincount/2`."
  @spec bincount(term, keyword) :: Tensor.t()
  def bincount(tensor, opts) do
    opts = options!(opts, [:min_length, :promotion], :bincount)
    mode = promotion!(opts, :bincount)
    %Tensor{type: type} = tensor = Operands.tensor!(tensor, mode, :bincount)
    least = opts |> Keyword.get(:min_length, 1) |> Operands.positive!(":min_length", :bincount)

    unless match?({kind, _} when kind in [:s, :u], type) do
      raise ArgumentError, "bincount expects integers, got: #{Promotion.Names.short(type)}"
    end

    [smallest, largest] =
      for op <- [:reduce_min, :reduce_max],
          do: op |> Reduce.step(tensor) |> then(&hd(Numbers.decode(&1.data, type, 1)))

    if smallest < 0 do
      raise ArgumentError, "bincount: negative integers are not counted, got: #{smallest}"
    end

    counts(
      Shapes.flatten(tensor),
      max(largest + 1, least),
      Promotion.facts(mode).index,
      :bincount
    )
  end

  # How often each integer from zero to before `size` is among the elements of a vector.
  defp counts(%Tensor{shape: {n}} = vector, size, type, name) do
    Shape.validate!({size}, name)
    zeros = Create.full({size}, 0, type: {:s, 64}, promotion: :nx)
    ones = Create.full({n}, 1, type: {:s, 64}, promotion: :nx)
    indices = Shapes.new_axis(vector, -1)
    :indexed_add |> Index.indexed(zeros, indices, ones, promotion: :nx) |> Elementwise.cast(type)
  end

  @doc "See `Ferrox.histogram/2`."
  @spec histogram(term, keyword) :: {Tensor.t(), Tensor.t()}
  def histogram(tensor, opts) do
    opts = options!(opts, [:bins, :range, :promotion], :histogram)
    mode = promotion!(opts, :histogram)
    tensor = Operands.tensor!(tensor, mode, :histogram)
    type = Promotion.type_as(mode, :mean, :histogram, [tensor])
    bins = opts |> Keyword.get(:bins, 10) |> Operands.positive!(":bins", :histogram)
    Operands.ordered!(type, :histogram)
    flat = Elementwise.cast(Shapes.flatten(tensor), {:f, 64})
    {low, high} = range!(opts[:range], flat)
    edges = Create.linspace(low, high, n: bins + 1, type: type, promotion: :nx)
    wide = Elementwise.cast(edges, {:f, 64})
    {Elementwise.cast(counted(flat, wide, bins), Promotion.facts(mode).index), edges}
  end

  defp range!(nil, flat) do
    [low, high] =
      for op <- [:reduce_min, :reduce_max],
          do: hd(Numbers.decode(Reduce.step(op, flat).data, {:f, 64}, 1))

    unless is_float(low) and is_float(high) do
      raise ArgumentError,
            "histogram: the elements reach from #{inspect(low)} to #{inspect(high)}; give a finite :range"
    end

    if low == high, do: {low - 0.5, high + 0.5}, else: {low, high}
  end

  defp range!({low, high}, _flat) when is_number(low) and is_number(high) and low < high,
    do: {low, high}

  defp range!(other, _flat) do
    raise ArgumentError,
          "histogram: :range must be {low, high}, numbers in this order, got: #{inspect(other)}"
  end

  # Elements lie in the bin whose lower edge is the last that is not above them, and those on the last edge
  # in the last bin. What is outside of all bins is counted in one more, which is left out.
  defp counted(flat, %Tensor{shape: {n}} = edges, bins) do
    [low, high] =
      for i <- [0, n - 1], do: edges |> Shapes.slice([i], [1], []) |> Shapes.squeeze([])

    width = Elementwise.step(:divide, Elementwise.step(:subtract, high, low), bins)

    guess =
      flat
      |> then(&Elementwise.step(:divide, Elementwise.step(:subtract, &1, low), width))
      |> Elementwise.clip(0, bins - 1, promotion: :nx)
      |> Elementwise.cast({:s, 64})

    edge = &Index.take(edges, &1, axis: 0)
    too_high = Elementwise.step(:less, flat, edge.(guess))
    next = Elementwise.step(:add, guess, 1)
    too_low = Elementwise.step(:greater_equal, flat, edge.(next))
    bin = Elementwise.step(:add, Elementwise.step(:subtract, guess, too_high), too_low)
    bin = Elementwise.clip(bin, 0, bins - 1, promotion: :nx)

    inside =
      Elementwise.step(
        :logical_and,
        Elementwise.step(:greater_equal, flat, low),
        Elementwise.step(:less_equal, flat, high)
      )

    bin = Elementwise.select(inside, bin, bins, promotion: :nx)
    bin |> counts(bins + 1, {:s, 64}, :histogram) |> Shapes.slice([0], [bins], [])
  end
end
