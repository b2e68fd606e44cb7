defmodule Ferrox.Ops.NaN do
  @moduledoc false
  # Reductions of the elements that aren't NaN.

  import Ferrox.Numbers, only: [is_number_term: 1, wide: 1]
  import Ferrox.Operands, only: [boolean!: 3, native: 1, options!: 3, promotion!: 2]

  alias Ferrox.{Native, Numbers, Operands, Promotion, Shape, Tensor, Type}
  alias Ferrox.Ops.{Elementwise, Reduce, Sort}
  alias Ferrox.Ops.Shape, as: Shapes

  @doc "See `Ferrox.isfinite/2`."
  @spec finite(term, keyword) :: Tensor.t()
  def finite(tensor, opts) do
    mode = Operands.chosen_mode!(opts, :isfinite)
    tensor = Operands.tensor!(tensor, mode, :isfinite)
    type = Promotion.type_as(mode, :is_nan, :isfinite, [tensor])
    # What isn't finite has no product with zero.
    zeros = Elementwise.step(:multiply, stored(tensor), 0)
    Elementwise.cast(Elementwise.step(:equal, zeros, 0), type)
  end

  @doc "See `Ferrox.nan_to_num/2`."
  @spec replace(term, keyword) :: Tensor.t()
  def replace(tensor, opts) do
    opts = options!(opts, [:nan, :posinf, :neginf], :nan_to_num)
    %Tensor{type: type, shape: shape} = tensor = Operands.to_tensor(tensor, :nan_to_num)

    case type do
      {:c, bits} ->
        # Both parts lie side by side.
        parts = %{
          tensor
          | type: {:f, div(bits, 2)},
            shape: Tuple.insert_at(shape, tuple_size(shape), 2)
        }

        %{replace_real(parts, opts) | type: type, shape: shape}

      type ->
        if type != :bool and Type.float?(type), do: replace_real(tensor, opts), else: tensor
    end
  end

  defp replace_real(%Tensor{type: type, weak: weak} = tensor, opts) do
    infinite? = Elementwise.step(:is_infinity, tensor)
    positive? = Elementwise.step(:greater, tensor, 0)

    replaced =
      for {key, default, where?} <- [
            {:nan, 0.0, Elementwise.step(:is_nan, tensor)},
            {:posinf, limit(type, :max), Elementwise.step(:logical_and, infinite?, positive?)},
            {:neginf, limit(type, :min), Elementwise.step(:greater, infinite?, positive?)}
          ],
          reduce: tensor do
        tensor ->
          without(tensor, where?, number!(Keyword.get(opts, key) || default, key, type))
      end

    %{replaced | weak: weak}
  end

  defp limit(type, end_of) do
    data = if end_of == :max, do: Type.max_finite_binary(type), else: Type.min_finite_binary(type)
    %Tensor{data: data, type: type, shape: {}}
  end

  defp number!(%Tensor{shape: {}} = scalar, _key, type), do: Elementwise.cast(scalar, type)
  defp number!(number, _key, type) when is_number_term(number), do: scalar(number, type)

  defp number!(other, key, _type) do
    raise ArgumentError,
          "nan_to_num: #{inspect(key)} must be a number or a scalar, got: #{inspect(other)}"
  end

  defp scalar(number, type),
    do: %Tensor{data: Numbers.encode([number], type, :nan_to_num), type: type, shape: {}}

  @doc "The larger or the smaller one of two: `name` is the function, `op` the operation that gives NaN."
  @spec extreme(:fmax | :fmin, :max | :min, term, term, keyword) :: Tensor.t()
  def extreme(name, op, left, right, opts) do
    mode = Operands.chosen_mode!(opts, name)
    {left, right, type, weak} = Elementwise.together(mode, op, name, left, right)
    Operands.ordered!(type, name)
    shape = Shape.broadcast!(left.shape, right.shape, name, left.type, right.type)

    [left, right] =
      for t <- [left, right] do
        t |> Elementwise.cast(type) |> stored() |> Shapes.broadcast(shape, [])
      end

    extreme = Elementwise.step(op, left, right)
    extreme = or_other(or_other(extreme, left, right), right, left)
    %{extreme | type: type, weak: weak}
  end

  # The other one where an operand is NaN.
  defp or_other(extreme, operand, other) do
    case nan?(operand) do
      nil -> extreme
      nan? -> Elementwise.select(nan?, other, extreme, promotion: :nx)
    end
  end

  @doc "A sum or an extreme: `name` is the function, `op` the reduction."
  @spec reduce(atom, atom, term, keyword) :: Tensor.t()
  def reduce(name, op, tensor, opts) do
    opts = options!(opts, [:axes, :keep_axes, :promotion], name)
    mode = promotion!(opts, name)
    tensor = Operands.tensor!(tensor, mode, name)
    _ = Promotion.type_as(mode, op, name, [tensor])
    if op != :sum, do: Operands.ordered!(tensor.type, name)

    case {nan?(tensor), op} do
      {nil, _op} ->
        Reduce.reduce(op, tensor, opts)

      {nan?, :sum} ->
        Reduce.reduce(op, without(tensor, nan?, 0), opts)

      {nan?, _extreme} ->
        reduced = Reduce.reduce(op, without(tensor, nan?, neutral(op, tensor.type)), opts)
        none? = Reduce.step(:all, nan?, Keyword.take(opts, [:axes, :keep_axes]))
        without(reduced, none?, :nan)
    end
  end

  # Elements of types below floats are none.
  defp nan?(%Tensor{type: type} = tensor),
    do: if(type != :bool and Type.float?(type), do: Elementwise.step(:is_nan, tensor))

  # The tensor with a value in place of others, in its own type.
  defp without(tensor, nil, _value), do: tensor

  defp without(%Tensor{type: type} = tensor, where?, value) do
    value = if is_struct(value, Tensor), do: value, else: scalar(value, type)
    Elementwise.select(where?, value, tensor, promotion: :nx)
  end

  defp neutral(op, type) do
    data = if op == :reduce_max, do: Type.min_binary(type), else: Type.max_binary(type)
    %Tensor{data: data, type: type, shape: {}}
  end

  defp stored(tensor), do: %{tensor | type: Operands.storage(tensor.type), weak: false}

  @doc "The mean: see `Ferrox.nanmean/2`."
  @spec mean(term, keyword) :: Tensor.t()
  def mean(tensor, opts) do
    opts = options!(opts, [:axes, :keep_axes, :promotion], :nanmean)
    {tensor, nan?, axes, type} = numbers!(:nanmean, tensor, opts)
    kept = [axes: axes, keep_axes: boolean!(opts, :keep_axes, :nanmean)]
    Elementwise.cast(mean_of(tensor, nan?, kept), type)
  end

  @doc "The variance, or the standard deviation: `:nanvar` or `:nanstd`."
  @spec spread(:nanvar | :nanstd, term, keyword) :: Tensor.t()
  def spread(name, tensor, opts) do
    opts = options!(opts, [:axes, :keep_axes, :ddof, :promotion], name)
    {tensor, nan?, axes, type} = numbers!(name, tensor, opts)
    kept = [axes: axes, keep_axes: boolean!(opts, :keep_axes, name)]
    ddof = Keyword.get(opts, :ddof, 0)

    unless is_integer(ddof) and ddof >= 0 do
      raise ArgumentError,
            "#{name}: :ddof must be an integer that is not negative, got: #{inspect(ddof)}"
    end

    mean = mean_of(tensor, nan?, axes: axes, keep_axes: true)
    distance = Elementwise.step(:abs, Elementwise.step(:subtract, tensor, mean))
    distance = without(distance, nan?, 0)
    sum = Reduce.step(:sum, Elementwise.step(:multiply, distance, distance), kept)
    divisor = Elementwise.step(:subtract, count(tensor, nan?, kept), ddof)
    few? = Elementwise.step(:less_equal, divisor, 0)
    divisor = Elementwise.select(few?, :nan, divisor, promotion: :nx)
    variance = Elementwise.step(:divide, sum, divisor)
    spread = if name == :nanstd, do: Elementwise.step(:sqrt, variance), else: variance
    type = with {:c, bits} <- type, do: {:f, div(bits, 2)}
    Elementwise.cast(spread, type)
  end

  # The tensor in 64 bits, where it is NaN (nil for integers), the axes, and the type of a mean.
  defp numbers!(name, tensor, opts) do
    mode = promotion!(opts, name)
    %Tensor{shape: shape} = tensor = Operands.tensor!(tensor, mode, name)
    type = Promotion.type_as(mode, :mean, name, [tensor])
    axes = Shape.axes!(shape, opts[:axes], name)
    {Elementwise.cast(tensor, wide(type)), nan?(tensor), axes, type}
  end

  defp mean_of(tensor, nan?, kept) do
    sum = Reduce.step(:sum, without(tensor, nan?, 0), kept)
    Elementwise.step(:divide, sum, count(tensor, nan?, kept))
  end

  # How many elements aren't NaN, in f64.
  defp count(%Tensor{shape: shape}, nil, axes: axes, keep_axes: _keep?) do
    count = axes |> Enum.map(&elem(shape, &1)) |> Enum.product()
    %Tensor{data: <<count * 1.0::float-64-native>>, type: {:f, 64}, shape: {}}
  end

  defp count(_tensor, nan?, kept) do
    number? = Elementwise.step(:logical_not, nan?)
    Reduce.step(:sum, Elementwise.cast(number?, {:f, 64}), kept)
  end

  @doc "See `Ferrox.nanmedian/2`."
  @spec median(term, keyword) :: Tensor.t()
  def median(tensor, opts) do
    opts = options!(opts, [:axis, :keep_axis, :promotion], :nanmedian)
    mode = promotion!(opts, :nanmedian)
    %Tensor{shape: given} = tensor = Operands.tensor!(tensor, mode, :nanmedian)
    type = Promotion.type_as(mode, :mean, :nanmedian, [tensor])
    keep? = boolean!(opts, :keep_axis, :nanmedian)
    Operands.ordered!(type, :nanmedian)

    flat? = opts[:axis] == nil
    tensor = stored(if flat?, do: Shapes.flatten(tensor), else: tensor)
    axis = Shape.axis!(tensor.shape, opts[:axis] || 0, :nanmedian)
    kept = Shape.reduce(given, if(flat?, do: Shape.all_axes(given), else: [axis]), keep?)

    # NaN are the last of the sorted elements, so that the middle of the others is known by their number.
    sorted = Sort.sort(tensor, axis: axis)
    number = Elementwise.step(:logical_not, Elementwise.step(:is_nan, sorted))
    number = Elementwise.cast(number, {:s, 64})
    count = Reduce.step(:sum, number, axes: [axis], keep_axes: true)
    before = Elementwise.step(:max, Elementwise.step(:subtract, count, 1), 0)

    [low, high] =
      for places <- [before, count] do
        middle = Elementwise.step(:quotient, places, 2)
        data = Native.take_along_axis(axis, native(sorted), native(middle))
        Elementwise.cast(%{sorted | data: data, shape: middle.shape}, {:f, 64})
      end

    median = Elementwise.step(:divide, Elementwise.step(:add, low, high), 2)
    Elementwise.cast(%{median | shape: kept}, type)
  end
end
