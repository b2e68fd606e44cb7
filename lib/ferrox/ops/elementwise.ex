defmodule Ferrox.Ops.Elementwise do
  @moduledoc false
  # Elementwise operations of the direct API.
  #
  # The native library says what an operation computes under a promotion system, and in which type.
  # Under Nx's own system it finds the type and the data in one call for the most frequent
  # operands.

  import Ferrox.Numbers, only: [is_64_bit: 1]
  import Ferrox.Operands, only: [mode!: 2, native: 1, storage: 1]

  alias Ferrox.{Native, Numbers, Operands, Promotion, Shape, Tensor, Type}
  alias Ferrox.Ops.Create
  alias Ferrox.Ops.Shape, as: Shapes
  alias Ferrox.Promotion.Results

  # The short path of most calls.
  @compile {:inline, nx_binary: 3, nx_native: 5, nx_unary: 2, answer: 3}

  @doc "An operation on two operands."
  @spec binary(atom, term, term, keyword) :: Tensor.t()
  def binary(op, left, right, opts) do
    case mode!(opts, op) do
      :nx -> nx_binary(op, left, right)
      mode -> promoted_binary(mode, op, left, right)
    end
  end

  @doc "A step of another function: an operation on tensors and numbers by the rules of Nx."
  @spec step(atom, Tensor.t() | number, Tensor.t() | number) :: Tensor.t()
  def step(op, left, right), do: nx_binary(op, left, right)

  @doc "The same on one operand."
  @spec step(atom, Tensor.t()) :: Tensor.t()
  def step(op, tensor), do: nx_unary(op, tensor)

  # Types are matched element by element, because the VM compares whole tuples by a call. Types of
  # less than 8 bits are left to promoted_binary/4.
  defp nx_binary(
         op,
         %Tensor{type: {kind, bits} = type, shape: shape, data: left},
         %Tensor{type: {kind, bits}, shape: shape, data: right}
       )
       when bits >= 8,
       do: nx_native(op, type, shape, left, right)

  defp nx_binary(
         op,
         %Tensor{type: {_, left_bits} = left_type, shape: shape, data: left},
         %Tensor{type: {_, right_bits} = right_type, shape: shape, data: right}
       )
       when left_bits >= 8 and right_bits >= 8,
       do: nx_native(op, left_type, shape, left, {right_type, right})

  defp nx_binary(
         op,
         %Tensor{type: {_, left_bits} = left_type, shape: left_shape, data: left},
         %Tensor{type: {_, right_bits} = right_type, shape: right_shape, data: right}
       )
       when left_bits >= 8 and right_bits >= 8 do
    shape = Shape.broadcast!(left_shape, right_shape, op, left_type, right_type)
    left = {left_type, left_shape, left}
    nx_native(op, left_type, shape, left, {right_type, right_shape, right})
  end

  defp nx_binary(op, %Tensor{type: {_, bits} = type, shape: shape, data: left}, number)
       when bits >= 8 and is_64_bit(number),
       do: nx_native(op, type, shape, left, number)

  defp nx_binary(op, number, %Tensor{type: {_, bits} = type, shape: shape, data: right})
       when bits >= 8 and is_64_bit(number),
       do: nx_native(op, type, shape, number, right)

  defp nx_binary(op, left, right), do: promoted_binary(:nx, op, left, right)

  defp nx_native(op, given, shape, left, right),
    do: answer(Native.nx_binary(op, given, shape, left, right), given, shape)

  # The answer of the library names the type of the result if it is not the given one.
  defp answer(data, type, shape) when is_binary(data),
    do: %Tensor{data: data, type: type, shape: shape}

  defp answer({type, data}, _given, shape), do: %Tensor{data: data, type: type, shape: shape}

  defp promoted_binary(mode, op, left, right) do
    {left, right, {native_op, type, weak, operand_type}} = promote(mode, op, left, right)
    left = number(left, operand_type, op)
    right = number(right, operand_type, op)
    shape = Shape.broadcast!(left.shape, right.shape, op, left.type, right.type)
    data = Native.binary(native_op, storage(type), shape, native(left), native(right))
    %Tensor{data: data, type: type, shape: shape, weak: weak}
  end

  @doc """
  Both operands as tensors, of which each has its own type, and the type that they have together by the
  rule of `op`, with whether it is weak. `name` is the function that was called, for errors.
  """
  @spec together(Promotion.mode(), atom, atom, term, term) ::
          {Tensor.t(), Tensor.t(), Type.t() | :bool, boolean}
  def together(mode, op, name, left, right) do
    {left, right} = operands!(mode, name, left, right)
    _ = Promotion.type_as(mode, op, name, [left, right])
    {_, type, weak, _} = Promotion.operation(mode, op, [left, right])
    {number(left, type, name), number(right, type, name), type, weak}
  end

  # The operands, and what the system computes for them.
  defp promote(mode, op, left, right) do
    {left, right} = operands!(mode, op, left, right)
    {left, right, Promotion.operation(mode, op, [left, right])}
  end

  # The operands, of which at least one is a tensor.
  defp operands!(mode, name, left, right) do
    if is_struct(left, Tensor) or is_struct(right, Tensor),
      do: {Operands.check!(left, name), Operands.check!(right, name)},
      else: {Operands.tensor!(left, mode, name), Operands.tensor!(right, mode, name)}
  end

  # A number as a scalar tensor. Its type is one that keeps its value and that operations with a result
  # of `type` take, see Numbers.operand/3.
  defp number(%Tensor{} = tensor, _type, _op), do: tensor

  defp number(number, type, op) do
    {type, data} = Numbers.operand(number, storage(type), op)
    %Tensor{data: data, type: type, shape: {}}
  end

  @doc "An operation on one operand."
  @spec unary(atom, term, keyword) :: Tensor.t()
  def unary(op, tensor, opts) do
    case mode!(opts, op) do
      :nx -> nx_unary(op, tensor)
      mode -> promoted_unary(mode, op, tensor)
    end
  end

  defp nx_unary(op, %Tensor{type: {_, bits} = type, shape: shape, data: data}) when bits >= 8,
    do: answer(Native.nx_unary(op, type, shape, data), type, shape)

  defp nx_unary(op, tensor), do: promoted_unary(:nx, op, tensor)

  defp promoted_unary(mode, op, tensor) do
    tensor = Operands.tensor!(tensor, mode, op)
    {native_op, type, weak, operand_type} = Promotion.operation(mode, op, [tensor])

    tensor =
      if storage(tensor.type) == storage(operand_type),
        do: tensor,
        else: cast(tensor, operand_type)

    data = Native.unary(native_op, storage(type), native(tensor))
    %Tensor{data: data, type: type, shape: tensor.shape, weak: weak}
  end

  @doc "See `Ferrox.mod/3`."
  @spec mod(term, term, keyword) :: Tensor.t()
  def mod(left, right, opts) do
    {type, weak, _left, right, remainder, across?} = floored(:mod, left, right, opts)
    moved = step(:add, remainder, right)
    modulus = select(across?, moved, remainder, promotion: :nx)

    modulus =
      if Type.float?(type) do
        # A zero has the sign of the right operand.
        zero = select(step(:less, right, 0), -0.0, 0.0, promotion: :nx)
        select(step(:equal, modulus, 0), zero, modulus, promotion: :nx)
      else
        modulus
      end

    %{cast(modulus, type) | weak: weak}
  end

  @doc "See `Ferrox.floor_divide/3`."
  @spec floor_divide(term, term, keyword) :: Tensor.t()
  def floor_divide(left, right, opts) do
    {type, weak, left, right, remainder, across?} = floored(:floor_divide, left, right, opts)

    quotient =
      if Type.float?(type) do
        # What is left without the remainder is a multiple of the right operand, but for rounding. Adding
        # zero makes a negative zero positive.
        whole = step(:divide, step(:subtract, left, remainder), right)
        divided = step(:divide, left, right)
        nearest = step(:round, step(:subtract, whole, across?))
        nearest = step(:add, nearest, 0.0)
        # By zero, and of zero, it is the quotient itself, with its sign.
        plain? = step(:logical_or, step(:equal, right, 0), step(:equal, left, 0))
        select(plain?, divided, nearest, promotion: :nx)
      else
        step(:subtract, step(:quotient, left, right), cast(across?, type))
      end

    %{cast(quotient, type) | weak: weak}
  end

  # The type of a remainder, whether it is weak, both operands and the remainder of a division that rounds
  # towards zero in one type, of floats in 64 bits, and where the quotient lies below that.
  defp floored(name, left, right, opts) do
    mode = mode!(opts, name)
    {left, right, type, weak} = together(mode, :remainder, name, left, right)
    Operands.ordered!(type, name)
    wide = if Type.float?(type), do: {:f, 64}, else: type
    [left, right] = for x <- [left, right], do: cast(x, wide)
    _ = Shape.broadcast!(left.shape, right.shape, name, left.type, right.type)
    remainder = step(:remainder, left, right)
    apart? = step(:not_equal, step(:less, remainder, 0), step(:less, right, 0))
    across? = step(:logical_and, step(:not_equal, remainder, 0), apart?)
    {type, weak, left, right, remainder, across?}
  end

  @doc "The logarithm to another base than e, 2 or 10: `:log2` or `:log10`."
  @spec logarithm(:log2 | :log10, term, keyword) :: Tensor.t()
  def logarithm(name, tensor, opts) do
    mode = mode!(opts, name)
    %Tensor{} = tensor = Operands.tensor!(tensor, mode, name)
    type = Promotion.type_as(mode, :log, name, [tensor])
    base = if name == :log2, do: 2.0, else: 10.0
    wide = cast(tensor, Numbers.wide(type))
    quotient = step(:divide, step(:log, wide), :math.log(base))

    # The logarithm of a power of the base is a whole number, which the quotient may miss.
    exact =
      if Type.complex?(type) do
        quotient
      else
        whole = step(:round, quotient)
        select(step(:equal, step(:pow, base, whole), wide), whole, quotient, promotion: :nx)
      end

    cast(exact, type)
  end

  @doc "See `Ferrox.square/2`."
  @spec square(term, keyword) :: Tensor.t()
  def square(tensor, opts) do
    mode = mode!(opts, :square)
    tensor = Operands.tensor!(tensor, mode, :square)
    _ = Promotion.type_as(mode, :multiply, :square, [tensor, tensor])
    binary(:multiply, tensor, tensor, promotion: mode)
  end

  @doc "See `Ferrox.reciprocal/2`."
  @spec reciprocal(term, keyword) :: Tensor.t()
  def reciprocal(tensor, opts) do
    mode = mode!(opts, :reciprocal)
    tensor = Operands.tensor!(tensor, mode, :reciprocal)
    _ = Promotion.type_as(mode, :divide, :reciprocal, [1, tensor])
    binary(:divide, 1, tensor, promotion: mode)
  end

  @doc "An angle in the other unit, `:degrees` or `:radians`."
  @spec angle(:degrees | :radians, term, keyword) :: Tensor.t()
  def angle(name, tensor, opts) do
    mode = mode!(opts, name)
    tensor = Operands.tensor!(tensor, mode, name)
    _ = Promotion.type_as(mode, :sin, name, [tensor])
    {_, type, weak, _} = Promotion.operation(mode, :sin, [tensor])
    Operands.ordered!(type, name)
    factor = if name == :degrees, do: 180 / :math.pi(), else: :math.pi() / 180
    converted = step(:multiply, cast(tensor, {:f, 64}), factor)
    %{cast(converted, type) | weak: weak}
  end

  @doc "See `Ferrox.complex/3`."
  @spec complex(term, term, keyword) :: Tensor.t()
  def complex(real, imag, opts) do
    mode = mode!(opts, :complex)
    parts = for part <- [real, imag], do: Operands.tensor!(part, mode, :complex)
    together = Promotion.type_as(mode, :select, :complex, parts)

    if together != :bool and Type.complex?(together) do
      types = Enum.map_join(parts, " and ", &Promotion.Names.short(&1.type))
      raise ArgumentError, "complex: the parts must be real, got: #{types}"
    end

    [real, imag] = parts
    shape = Shape.broadcast!(real.shape, imag.shape, :complex, real.type, imag.type)
    one = %Tensor{data: <<0>>, type: {:u, 8}, shape: {}} |> cast(together)
    {:c, bits} = type = Promotion.type_as(mode, :conjugate, :complex, [one])

    # The parts lie side by side, each in half of the bits.
    halves =
      for part <- parts do
        part |> cast({:f, div(bits, 2)}) |> Shapes.broadcast(shape, [])
      end

    %Tensor{data: data} = Shapes.join(:stack, halves, axis: -1, promotion: :nx)
    %Tensor{data: data, type: type, shape: shape}
  end

  @doc "See `Ferrox.bitcast/2`."
  @spec bitcast(term, term) :: Tensor.t()
  def bitcast(tensor, type) do
    %Tensor{type: from} = tensor = Operands.to_tensor(tensor, :bitcast)
    {_, bits} = type = Operands.type!(type, :bitcast) |> number_type!()

    if elem(storage(from), 1) != bits do
      raise ArgumentError,
            "bitcast: elements of #{Promotion.Names.short(from)} have another size than those of " <>
              Promotion.Names.short(type)
    end

    %{tensor | type: type, weak: false}
  end

  defp number_type!(:bool),
    do:
      raise(
        ArgumentError,
        "bitcast: not every byte is a bool; as_type/2 makes true of what is not zero"
      )

  defp number_type!(type), do: type

  @doc "The real or the imaginary part, `:real` or `:imag`."
  @spec part(:real | :imag, term) :: Tensor.t()
  def part(op, tensor) do
    %Tensor{type: from, shape: shape} = tensor = Operands.tensor!(tensor, :nx, op)
    {_, type, _, _} = Promotion.operation(:nx, op, [tensor])

    cond do
      from != :bool and Type.complex?(from) -> nx_unary(op, tensor)
      op == :real -> cast(tensor, type)
      op == :imag -> Create.full(shape, 0.0, type: type, promotion: :nx)
    end
  end

  @doc "See `Ferrox.as_type/3`."
  @spec as_type(term, term, keyword) :: Tensor.t()
  def as_type(tensor, type, opts) do
    mode = mode!(opts, :as_type)
    tensor = Operands.tensor!(tensor, mode, :as_type)
    cast(tensor, Results.narrow(mode, Operands.type!(type, :as_type)))
  end

  @doc "The tensor in another type, not weak."
  @spec cast(Tensor.t(), Type.t() | :bool) :: Tensor.t()
  # Types are matched element by element, see above.
  def cast(%Tensor{type: {kind, bits}, weak: false} = tensor, {kind, bits}), do: tensor

  def cast(%Tensor{type: {_, _} = from, shape: shape, data: data, weak: false}, {_, _} = type)
      when is_binary(data),
      do: %Tensor{data: Native.as_type(type, {from, shape, data}), type: type, shape: shape}

  def cast(%Tensor{type: type} = tensor, type), do: %{tensor | weak: false}

  def cast(%Tensor{shape: shape} = tensor, :bool),
    do: %Tensor{data: truth(shape, native(tensor)), type: :bool, shape: shape}

  def cast(%Tensor{shape: shape} = tensor, type),
    do: %Tensor{data: Native.as_type(type, native(tensor)), type: type, shape: shape}

  @doc "The data of a bool tensor: what is not zero, NaN among it, is true."
  @spec truth(tuple, Native.operand()) :: binary
  def truth(shape, operand),
    do: Native.binary(:not_equal, {:u, 8}, shape, operand, {{:u, 8}, {}, <<0>>})

  @doc "See `Ferrox.select/4`."
  @spec select(term, term, term, keyword) :: Tensor.t()
  def select(pred, on_true, on_false, opts) do
    mode = mode!(opts, :select)
    pred = Operands.tensor!(pred, mode, :select)
    {on_true, on_false, {_, type, weak, _}} = promote(mode, :select, on_true, on_false)
    on_true = number(on_true, type, :select)
    on_false = number(on_false, type, :select)

    shape =
      if pred.shape == {},
        do: Shape.broadcast!(on_true.shape, on_false.shape, :select, on_true.type, on_false.type),
        else: pred.shape

    data = Native.select(storage(type), shape, native(pred), native(on_true), native(on_false))
    %Tensor{data: data, type: type, shape: shape, weak: weak}
  end

  @doc "See `Ferrox.clip/4`."
  @spec clip(term, term, term, keyword) :: Tensor.t()
  def clip(tensor, min, max, opts) do
    mode = mode!(opts, :clip)

    for {name, %Tensor{shape: shape}} <- [min: min, max: max], shape != {} do
      raise ArgumentError,
            "clip: #{name} must be a scalar, got a tensor of shape #{inspect(shape)}"
    end

    tensor = Operands.tensor!(tensor, mode, :clip)
    {min, max} = {Operands.check!(min, :clip), Operands.check!(max, :clip)}
    {_, type, weak, _} = result = Promotion.operation(mode, :clip, [tensor, min, max])

    min = number(min, limit_type(mode, tensor, min, result), :clip)
    max = number(max, limit_type(mode, tensor, max, result), :clip)
    data = Native.clip(storage(type), tensor.shape, native(tensor), native(min), native(max))
    %Tensor{data: data, type: type, shape: tensor.shape, weak: weak}
  end

  # The type beside which a limit is written. In Nx, a float is rounded as in an operation with the
  # tensor alone, whatever the other limit is; that has the tensor's type if the result does.
  defp limit_type(:nx, %Tensor{type: type} = tensor, limit, {_, result, _, _})
       when is_float(limit) and type != result,
       do: :nx |> Promotion.operation(:select, [tensor, limit]) |> elem(3)

  defp limit_type(_mode, _tensor, _limit, {_, _, _, operand_type}), do: operand_type
end
