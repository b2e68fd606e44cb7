defmodule Ferrox.Promoted do
  @moduledoc false
  # The operations of the direct API under whatever promotion system: `Ferrox`
  # itself has the short way under Nx's, and comes here for all others.
  #
  # Each asks `Promotion` for the type of its operands, `Promotion.Results` for
  # what the operation makes of it, and the native code for the data.

  import Ferrox.Operands, only: [native: 1, storage: 1, stored: 4]
  import Ferrox.Promotion.Results, only: [is_predicate: 1]

  alias Ferrox.{Native, Numbers, Operands, Promotion, Shape, Tensor, Type}
  alias Ferrox.Promotion.{Names, Results}

  @doc "The type of a tensor of these numbers."
  @spec infer(Promotion.mode(), [Numbers.number_term()]) :: Type.t() | :bool
  def infer(:nx, numbers) do
    numbers |> Enum.map(&Type.infer/1) |> Enum.uniq() |> Enum.reduce(&Type.merge(&2, &1))
  end

  def infer(mode, numbers) do
    facts = Promotion.facts(mode)
    literals = numbers |> Enum.map(&Results.literal(facts, &1)) |> Enum.uniq()

    if facts.column == :nx,
      do: Promotion.result(mode, literals),
      else: Results.concrete(facts, Enum.max_by(literals, &level/1))
  end

  defp level(kind), do: Enum.find_index([:bool, :int, :float, :complex], &(&1 == kind))

  @doc "The tensor in another type, not weak."
  @spec cast(Tensor.t(), Type.t() | :bool) :: Tensor.t()
  # Of tuples only the elements are compared without a call.
  def cast(%Tensor{type: {kind, bits}, weak: false} = tensor, {kind, bits}), do: tensor

  def cast(%Tensor{type: {_, _} = from, shape: shape, data: data, weak: false}, {_, _} = type)
      when is_binary(data) do
    %Tensor{data: Native.as_type(type, {from, shape, data}), type: type, shape: shape}
  end

  def cast(%Tensor{type: type} = tensor, type), do: %{tensor | weak: false}

  def cast(%Tensor{shape: shape} = tensor, :bool),
    do: %{tensor | data: truth(shape, native(tensor)), type: :bool, weak: false}

  def cast(%Tensor{shape: shape} = tensor, type),
    do: %Tensor{data: Native.as_type(type, native(tensor)), type: type, shape: shape}

  # What is not zero, NaN among it, is true.
  defp truth(shape, operand),
    do: Native.binary(:not_equal, {:u, 8}, shape, operand, {{:u, 8}, {}, <<0>>})

  @doc "An operation on two operands."
  @spec binary(Promotion.mode(), atom, term, term) :: Tensor.t()
  def binary(mode, op, left, right) do
    {left, right, node} = meet(mode, op, left, right)
    facts = Promotion.facts(mode)
    node = angle(mode, facts, op, node, left, right)
    {native_op, result} = defined!(Results.binary(facts, op, node), mode, op, node)
    # Numbers are encoded beside what they are computed with.
    beside = if is_predicate(op), do: node, else: result
    type = storage(Results.concrete(facts, beside))
    left = number(left, type, op)
    right = number(right, type, op)
    shape = Shape.broadcast!(left.shape, right.shape, op, left.type, right.type)

    stored(
      facts,
      result,
      shape,
      &Native.binary(native_op, storage(&1), shape, native(left), native(right))
    )
  end

  # NumPy has the least float that either integer fits, where all others ask for
  # that of the integer that holds both.
  defp angle(mode, %{column: :numpy} = facts, :atan2, node, %Tensor{} = left, %Tensor{} = right) do
    [left, right] = Enum.map([left, right], &Results.floating(facts, &1.type))
    if Promotion.kind(node) == :int, do: Promotion.lookup(mode, left, right), else: node
  end

  defp angle(_mode, _facts, _op, node, _left, _right), do: node

  # The operands, of which one is a tensor, and their type. Comparisons take
  # numbers of any size.
  defp meet(mode, op, left, right) do
    {left, right} =
      if is_struct(left, Tensor) or is_struct(right, Tensor) do
        Operands.check!(left, op)
        Operands.check!(right, op)
        {left, right}
      else
        {Operands.tensor!(left, mode, op), Operands.tensor!(right, mode, op)}
      end

    asked = if is_predicate(op), do: [kind(mode, left), kind(mode, right)], else: [left, right]
    {left, right, Promotion.result_of(mode, asked)}
  end

  defp kind(_mode, %Tensor{} = tensor), do: tensor

  defp kind(mode, number) do
    facts = Promotion.facts(mode)
    if facts.column == :nx, do: number, else: Results.literal(facts, number)
  end

  defp number(%Tensor{} = tensor, _type, _op), do: tensor

  defp number(number, type, op) do
    {type, data} = Numbers.operand(number, type, op)
    %Tensor{data: data, type: type, shape: {}}
  end

  @doc """
  Both operands as tensors, and a function that takes a shape and a function from
  a type to data, and gives the tensor of their type.
  """
  @spec operands(Promotion.mode(), atom, term, term) ::
          {Tensor.t(), Tensor.t(), (tuple, (Type.t() -> bitstring) -> Tensor.t())}
  def operands(mode, op, left, right) do
    {left, right, node} = meet(mode, op, left, right)
    facts = Promotion.facts(mode)
    type = storage(Results.concrete(facts, node))
    make = fn shape, fun -> stored(facts, node, shape, &fun.(storage(&1))) end
    {number(left, type, op), number(right, type, op), make}
  end

  @doc "An operation on one operand."
  @spec unary(Promotion.mode(), atom, term) :: Tensor.t()
  def unary(mode, op, tensor) do
    tensor = Operands.tensor!(tensor, mode, op)
    node = Promotion.result_of(mode, [tensor])
    facts = Promotion.facts(mode)
    {native_op, result} = defined!(Results.unary(facts, op, node), mode, op, node)

    # A bool is rounded as the number that it becomes.
    tensor = if op == :round and node == :bool, do: cast(tensor, result), else: tensor
    tensor = narrow(tensor, facts, node)

    stored(facts, result, tensor.shape, fn type ->
      if node == :bool and native_op in [:abs, :floor, :ceil],
        do: tensor.data,
        else: Native.unary(native_op, storage(type), native(tensor))
    end)
  end

  # JAX without types of 64 bits computes in what such a tensor is there.
  defp narrow(tensor, facts, node) do
    type = Results.concrete(facts, node)
    if tensor.type in [type, :bool] or type == :bool, do: tensor, else: cast(tensor, type)
  end

  @doc "A value between two scalars."
  @spec clip(Promotion.mode(), term, term, term) :: Tensor.t()
  def clip(mode, tensor, min, max) do
    tensor = Operands.tensor!(tensor, mode, :clip)
    Enum.each([min, max], &Operands.check!(&1, :clip))
    node = Promotion.result_of(mode, [tensor, min, max])
    facts = check_number_like!(mode, :clip, node)
    type = storage(Results.concrete(facts, node))
    [min, max] = Enum.map([min, max], &number(&1, type, :clip))

    stored(
      facts,
      node,
      tensor.shape,
      &Native.clip(storage(&1), tensor.shape, native(tensor), native(min), native(max))
    )
  end

  @doc "A reduction. Its result is never weak."
  @spec reduce(Promotion.mode(), atom, term, keyword) :: Tensor.t()
  def reduce(mode, op, tensor, opts) do
    tensor = Operands.tensor!(tensor, mode, op)
    type = reduced!(mode, op, tensor)
    {axes, shape} = Shape.reduction!(tensor.shape, opts, op)
    data = Native.reduce(op, storage(type), shape, axes, native(tensor))
    %Tensor{data: data, type: type, shape: shape}
  end

  defp reduced!(mode, op, tensor) do
    node = Promotion.result_of(mode, [tensor])
    type = Results.reduction(Promotion.facts(mode), op, node)
    defined!(type, mode, op, node)
  end

  @doc "The mean. What has less than 32 bits is summed in an f32."
  @spec mean(Promotion.mode(), term, keyword) :: Tensor.t()
  def mean(mode, tensor, opts) do
    tensor = Operands.tensor!(tensor, mode, :mean)
    type = reduced!(mode, :mean, tensor)
    {axes, shape} = Shape.reduction!(tensor.shape, opts, :mean)
    {_, bits} = type
    wide = if bits < 32, do: {:f, 32}, else: type
    sum = Native.reduce(:sum, wide, shape, axes, native(tensor))
    count = number(div(Native.size(tensor.shape), Native.size(shape)), {:f, 64}, :mean)
    data = Native.binary(:divide, type, shape, {wide, shape, sum}, native(count))
    %Tensor{data: data, type: type, shape: shape}
  end

  @doc "Raises where the system has no order for the tensor's type."
  @spec check_order!(Promotion.mode(), atom, Tensor.t()) :: :ok
  def check_order!(:nx, _op, _tensor), do: :ok

  def check_order!(mode, op, tensor) do
    check_number_like!(mode, op, Promotion.result_of(mode, [tensor]))
    :ok
  end

  # The facts of the mode. Raises where the system has no operations on numbers for the type.
  defp check_number_like!(mode, op, node) do
    facts = Promotion.facts(mode)
    unless Results.number_like?(facts, node), do: defined!(:error, mode, op, node)
    facts
  end

  @doc "A product; each side is `{tensor, axes to sum over, axes of the batch}`."
  @spec dot(Promotion.mode(), tuple, side, side) :: Tensor.t()
        when side: {Tensor.t(), [non_neg_integer], [non_neg_integer]}
  def dot(mode, shape, {left, left_axes, left_batch}, {right, right_axes, right_batch}) do
    node = Promotion.result_of(mode, [left, right])
    facts = check_number_like!(mode, :dot, node)
    left = {native(left), left_axes, left_batch}
    right = {native(right), right_axes, right_batch}

    stored(facts, node, shape, fn
      # As many truths as there are must not wrap around to none.
      :bool -> truth(shape, {{:u, 64}, shape, Native.dot({:u, 64}, shape, left, right)})
      type -> Native.dot(type, shape, left, right)
    end)
  end

  @doc "The tensors in the type that they have together, and whether that is weak."
  @spec alike(Promotion.mode(), atom, [term]) :: {[Tensor.t()], boolean}
  def alike(mode, op, tensors) do
    tensors = for tensor <- tensors, do: Operands.tensor!(tensor, mode, op)
    node = Promotion.result_of(mode, tensors)
    facts = Promotion.facts(mode)
    type = Results.concrete(facts, node)

    tensors =
      for tensor <- tensors, do: if(tensor.type == type, do: tensor, else: cast(tensor, type))

    {tensors, facts.weak and Promotion.weak?(node)}
  end

  defp defined!(:error, mode, op, node) do
    raise ArgumentError,
          "#{op} is not defined for #{Names.short(node)} under #{Promotion.name(mode)}; " <>
            "cast with Ferrox.as_type/2, or choose another promotion system"
  end

  defp defined!(result, _mode, _op, _node), do: result
end
