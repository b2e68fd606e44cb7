defmodule Ferrox.Ops.Reduce do
  @moduledoc false
  # Reductions of the direct API. Their results are never weak.

  import Ferrox.Operands, only: [boolean!: 3, native: 1, options!: 3, promotion!: 2, storage: 1]

  alias Ferrox.{Native, Operands, Promotion, Shape, Tensor}
  alias Ferrox.Ops.Elementwise

  @doc "A reduction by `op`."
  @spec reduce(atom, term, keyword) :: Tensor.t()
  def reduce(op, tensor, opts) do
    case mode!(opts, op) do
      :nx -> nx_reduce(op, op, tensor, opts)
      mode -> promoted_reduce(mode, op, tensor, opts)
    end
  end

  @doc """
  A step of another function: a reduction that keeps the type of the tensor, with the options `:axes`
  and `:keep_axes`.
  """
  @spec step(atom, Tensor.t(), keyword) :: Tensor.t()
  def step(op, %Tensor{type: type} = tensor, opts \\ []) do
    {axes, shape} = Shape.reduction!(tensor.shape, opts, op)
    %Tensor{data: Native.reduce(op, type, shape, axes, native(tensor)), type: type, shape: shape}
  end

  # `name` is the function that was called, for errors.
  defp nx_reduce(name, op, tensor, opts) do
    tensor = Operands.tensor!(tensor, :nx, name)
    {axes, shape} = Shape.reduction!(tensor.shape, opts, name)
    {type, data} = Native.nx_reduce(op, shape, axes, native(tensor))
    %Tensor{data: data, type: type, shape: shape}
  end

  defp promoted_reduce(mode, op, tensor, opts) do
    tensor = Operands.tensor!(tensor, mode, op)
    {_, type, _, _} = Promotion.operation(mode, op, [tensor])
    {axes, shape} = Shape.reduction!(tensor.shape, opts, op)
    data = Native.reduce(op, storage(type), shape, axes, native(tensor))
    %Tensor{data: data, type: type, shape: shape}
  end

  # The promotion of the options, which it checks. The most frequent options need no search.
  defp mode!([], _op), do: Promotion.in_effect()
  defp mode!([axes: _], _op), do: Promotion.in_effect()

  defp mode!(opts, op),
    do: opts |> options!([:axes, :keep_axes, :promotion], op) |> promotion!(op)

  @doc "See `Ferrox.ptp/2`."
  @spec ptp(term, keyword) :: Tensor.t()
  def ptp(tensor, opts) do
    mode = mode!(opts, :ptp)
    %Tensor{} = tensor = Operands.tensor!(tensor, mode, :ptp)
    Operands.ordered!(tensor.type, :ptp)
    type = Promotion.type_as(mode, :subtract, :ptp, [tensor, tensor])
    tensor = Elementwise.cast(tensor, type)
    kept = Keyword.take(opts, [:axes, :keep_axes])
    {axes, shape} = Shape.reduction!(tensor.shape, kept, :ptp)

    [most, least] =
      for op <- [:reduce_max, :reduce_min] do
        data = Native.reduce(op, type, shape, axes, native(tensor))
        %Tensor{data: data, type: type, shape: shape}
      end

    Elementwise.step(:subtract, most, least)
  end

  @doc "The mean: the sum, divided by the number of elements."
  @spec mean(term, keyword) :: Tensor.t()
  def mean(tensor, opts) do
    mode = mode!(opts, :mean)
    %Tensor{shape: whole} = tensor = Operands.tensor!(tensor, mode, :mean)

    case mode do
      :nx ->
        %Tensor{shape: shape} = sum = nx_reduce(:mean, :sum, tensor, opts)

        Elementwise.binary(:divide, sum, div(Native.size(whole), Native.size(shape)),
          promotion: :nx
        )

      mode ->
        {_, type, _, sum_type} = Promotion.operation(mode, :mean, [tensor])
        {axes, shape} = Shape.reduction!(whole, opts, :mean)
        sum = Native.reduce(:sum, sum_type, shape, axes, native(tensor))
        count = {{:s, 64}, {}, <<div(Native.size(whole), Native.size(shape))::64-native>>}
        data = Native.binary(:divide, type, shape, {sum_type, shape, sum}, count)
        %Tensor{data: data, type: type, shape: shape}
    end
  end

  @doc "The index of an extreme element: `name` is `:argmax` or `:argmin`, `op` the reduction."
  @spec arg_reduce(atom, atom, term, keyword) :: Tensor.t()
  def arg_reduce(name, op, tensor, opts) do
    {mode, given, keep?, tie_break, given_type} = arg_options!(opts, name)
    %Tensor{shape: shape} = tensor = Operands.tensor!(tensor, mode, name)
    index = index_type(mode, name, tensor)

    if given_type == :bool,
      do: raise(ArgumentError, "#{name}: an index is no bool; give a number type")

    axis = if given != nil, do: Shape.axis!(shape, given, name)
    shape = if axis, do: Shape.reduce(shape, [axis], keep?), else: {}
    type = given_type || index
    data = Native.arg_reduce(op, type, shape, axis, tie_break, native(tensor))
    %Tensor{data: data, type: type, shape: shape}
  end

  defp index_type(:nx, _name, _tensor), do: Promotion.facts(:nx).index
  defp index_type(mode, name, tensor), do: elem(Promotion.operation(mode, name, [tensor]), 1)

  # The most frequent options need no search.
  defp arg_options!([], _name), do: {Promotion.in_effect(), nil, false, :low, nil}
  defp arg_options!([axis: axis], _name), do: {Promotion.in_effect(), axis, false, :low, nil}

  defp arg_options!(opts, name) do
    opts = options!(opts, [:axis, :keep_axis, :tie_break, :type, :promotion], name)
    mode = promotion!(opts, name)
    tie_break = Keyword.get(opts, :tie_break) || :low

    unless tie_break in [:low, :high] do
      raise ArgumentError,
            "#{name}: :tie_break must be :low or :high, got: #{inspect(tie_break)}"
    end

    keep? = boolean!(opts, :keep_axis, name)
    {mode, opts[:axis], keep?, tie_break, Operands.type_option(opts, mode, name)}
  end
end
