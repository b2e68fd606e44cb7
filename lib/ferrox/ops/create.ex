defmodule Ferrox.Ops.Create do
  @moduledoc false
  # Tensors from numbers, lists and binaries.

  import Ferrox.Numbers, only: [is_64_bit: 1, is_number_term: 1]
  import Ferrox.Operands, only: [options!: 3, promotion!: 2, storage: 1, type_option: 3]

  alias Ferrox.{Native, Numbers, Operands, Promotion, Shape, Tensor, Type}
  alias Ferrox.Ops.Elementwise
  alias Ferrox.Ops.Shape, as: Shapes
  alias Ferrox.Promotion.Results

  @doc "See `Ferrox.tensor/2`."
  @spec tensor(term, keyword) :: Tensor.t()
  def tensor(value, opts) do
    opts = options!(opts, [:type, :promotion], :tensor)
    mode = promotion!(opts, :tensor)
    type = type_option(opts, mode, :tensor)

    case value do
      %Tensor{} ->
        if type, do: Elementwise.cast(value, type), else: value

      list when is_list(list) ->
        dims = list_dims(list)
        numbers = list |> flatten(dims, []) |> Enum.reverse()
        encode(numbers, type || infer(mode, numbers), List.to_tuple(dims))

      number when is_number_term(number) and type == nil ->
        Operands.tensor!(number, mode, :tensor)

      number when is_number_term(number) ->
        encode([number], type, {})

      other ->
        raise ArgumentError,
              "tensor expects a number or nested lists of numbers, got: #{inspect(other)}"
    end
  end

  defp encode(numbers, type, shape, op \\ :tensor),
    do: %Tensor{data: Numbers.encode(numbers, type, op), type: type, shape: shape}

  @doc "The type of a tensor of these numbers."
  @spec infer(Promotion.mode(), [Numbers.number_term()]) :: Type.t() | :bool
  def infer(mode, numbers) do
    facts = Promotion.facts(mode)
    literals = numbers |> Enum.map(&Results.literal(facts, &1)) |> Enum.uniq()

    if facts.bool,
      do: Results.concrete(facts, Enum.max_by(literals, &kind_rank/1)),
      else: Promotion.result(mode, literals)
  end

  defp kind_rank(kind), do: Enum.find_index([:bool, :int, :float, :complex], &(&1 == kind))

  defp list_dims([]), do: raise(ArgumentError, "tensor: an empty list has no shape")

  defp list_dims([first | _] = list) when is_list(first),
    do: [list_length(list) | list_dims(first)]

  defp list_dims(list), do: [list_length(list)]

  defp list_length(list) do
    if List.improper?(list) do
      raise ArgumentError, "tensor: the list is improper, got: #{inspect(list)}"
    end

    length(list)
  end

  defp flatten(list, [dim | dims], acc) when is_list(list) do
    if list_length(list) != dim do
      raise ArgumentError,
            "tensor: lists of different lengths: one of length #{length(list)} " <>
              "where others have #{dim}"
    end

    Enum.reduce(list, acc, &flatten(&1, dims, &2))
  end

  defp flatten(number, [], acc) when is_number_term(number), do: [number | acc]

  defp flatten(other, dims, _acc) do
    expected = if dims == [], do: "a number", else: "a list of length #{hd(dims)}"
    raise ArgumentError, "tensor: expected #{expected}, got: #{inspect(other)}"
  end

  @doc "See `Ferrox.from_binary/2`."
  @spec from_binary(term, term) :: Tensor.t()
  def from_binary(binary, type) when is_bitstring(binary) do
    type = Operands.type!(type, :from_binary)
    {_, bits} = stored = storage(type)
    given = bit_size(binary)

    if given == 0 or rem(given, bits) != 0 do
      raise ArgumentError,
            "from_binary: #{given} bits are no whole number of elements of " <>
              "#{Promotion.Names.short(type)}, which take #{bits} each"
    end

    size = div(given, bits)

    if type == :bool and
         Native.reduce(:reduce_max, stored, {}, nil, {stored, {size}, binary}) > <<1>> do
      raise ArgumentError, "from_binary: the bytes of bool are 0 and 1, others were given"
    end

    %Tensor{data: binary, type: type, shape: {size}}
  end

  def from_binary(other, _type) do
    raise ArgumentError, "from_binary expects a binary or bitstring, got: #{inspect(other)}"
  end

  @doc "See `Ferrox.iota/2`."
  @spec iota(term, keyword) :: Tensor.t()
  def iota(shape, opts) do
    opts = options!(opts, [:type, :axis, :promotion], :iota)
    shape = Shape.validate!(shape, :iota)
    mode = promotion!(opts, :iota)
    type = type_option(opts, mode, :iota) || Promotion.facts(mode).int
    axis = opts[:axis] && Shape.axis!(shape, opts[:axis], :iota)

    if type == :bool,
      do: raise(ArgumentError, "iota: bool does not count past 1; give a number type")

    %Tensor{data: Native.iota(type, shape, axis), type: type, shape: shape}
  end

  @doc "See `Ferrox.eye/2`."
  @spec eye(term, keyword) :: Tensor.t()
  def eye(n, opts) when is_integer(n), do: eye({n, n}, opts)

  def eye(shape, opts) do
    opts = options!(opts, [:type, :promotion], :eye)
    shape = Shape.validate!(shape, :eye)
    mode = promotion!(opts, :eye)
    type = type_option(opts, mode, :eye) || default_type(mode)

    if tuple_size(shape) < 2 do
      raise ArgumentError, "eye expects a shape of at least two axes, got: #{inspect(shape)}"
    end

    %Tensor{data: Native.eye(storage(type), shape), type: type, shape: shape}
  end

  # Nx's functions without a type give integers, those of other libraries floats.
  defp default_type(mode) do
    facts = Promotion.facts(mode)
    if facts.bool, do: facts.float, else: facts.int
  end

  @doc "See `Ferrox.full/3`."
  @spec full(term, term, keyword) :: Tensor.t()
  def full(shape, number, opts) do
    opts = options!(opts, [:type, :promotion], :full)
    number |> tensor(opts) |> Shapes.broadcast(shape, [])
  end

  for {name, like, number} <- [{:zeros, :zeros_like, 0}, {:ones, :ones_like, 1}] do
    @doc "See `Ferrox.#{name}/2`."
    @spec unquote(name)(term, keyword) :: Tensor.t()
    def unquote(name)(shape, opts) do
      opts = options!(opts, [:type, :promotion], unquote(name))
      mode = promotion!(opts, unquote(name))
      shape = Shape.validate!(shape, unquote(name))
      type = type_option(opts, mode, unquote(name)) || default_type(mode)
      Shapes.broadcast(encode([unquote(number)], type, {}, unquote(name)), shape, [])
    end

    @doc "See `Ferrox.#{like}/2`."
    @spec unquote(like)(term, keyword) :: Tensor.t()
    def unquote(like)(tensor, opts), do: like(unquote(like), tensor, unquote(number), opts)
  end

  @doc "See `Ferrox.full_like/3`."
  @spec full_like(term, term, keyword) :: Tensor.t()
  def full_like(tensor, number, opts), do: like(:full_like, tensor, number, opts)

  defp like(name, tensor, number, opts) do
    opts = options!(opts, [:type, :promotion], name)
    mode = promotion!(opts, name)
    %Tensor{shape: shape} = tensor = Operands.tensor!(tensor, mode, name)
    given = type_option(opts, mode, name)
    scalar = number |> Operands.check!(name) |> scalar!(given || tensor.type, name)
    %{Shapes.broadcast(scalar, shape, []) | weak: tensor.weak and given == nil}
  end

  defp scalar!(%Tensor{shape: {}} = scalar, type, _name), do: Elementwise.cast(scalar, type)

  defp scalar!(%Tensor{shape: shape}, _type, name) do
    raise ArgumentError,
          "#{name} expects a number or a scalar, got a tensor of shape #{inspect(shape)}; " <>
            "Ferrox.broadcast/3 repeats one"
  end

  defp scalar!(number, type, name), do: encode([number], type, {}, name)

  @doc "See `Ferrox.fill/3`."
  @spec fill(term, term, keyword) :: Tensor.t()
  def fill(tensor, value, opts) do
    opts = options!(opts, [:type, :promotion], :fill)
    mode = promotion!(opts, :fill)
    %Tensor{shape: shape} = tensor = Operands.tensor!(tensor, mode, :fill)

    {value, weak} =
      if type = type_option(opts, mode, :fill) do
        {value |> Operands.tensor!(mode, :fill) |> Elementwise.cast(type), false}
      else
        {_tensor, value, type, weak} = Elementwise.together(mode, :select, :fill, tensor, value)
        {Elementwise.cast(value, type), weak}
      end

    unless Shape.broadcast(value.shape, shape) == shape do
      raise ArgumentError,
            "fill: a value of shape #{inspect(value.shape)} does not broadcast to shape #{inspect(shape)}"
    end

    %{Shapes.broadcast(value, shape, []) | weak: weak}
  end

  @doc "See `Ferrox.linspace/3`."
  @spec linspace(term, term, keyword) :: Tensor.t()
  def linspace(start, stop, opts) do
    opts = options!(opts, [:n, :type, :endpoint, :promotion], :linspace)
    {spaced, type} = wide_linspace(:linspace, start, stop, opts)
    Elementwise.cast(spaced, type)
  end

  @doc "See `Ferrox.logspace/3`."
  @spec logspace(term, term, keyword) :: Tensor.t()
  def logspace(start, stop, opts) do
    opts = options!(opts, [:n, :base, :type, :endpoint, :promotion], :logspace)
    base = Keyword.get(opts, :base, 10)

    unless is_number(base) do
      raise ArgumentError, "logspace: :base must be a number, got: #{inspect(base)}"
    end

    {exponents, type} = wide_linspace(:logspace, start, stop, opts)
    base = encode([base], exponents.type, {}, :logspace)
    Elementwise.cast(Elementwise.step(:pow, base, exponents), type)
  end

  # The numbers in 64 bits, and the type that they have in the end.
  defp wide_linspace(name, start, stop, opts) do
    mode = promotion!(opts, name)
    endpoint? = Operands.boolean!(Keyword.put_new(opts, :endpoint, true), :endpoint, name)
    n = Operands.positive!(opts[:n], ":n", name)
    ends = for number <- [start, stop], do: Operands.tensor!(number, mode, name)
    [%Tensor{shape: shape}, %Tensor{shape: stop_shape}] = ends

    if shape != stop_shape do
      raise ArgumentError,
            "#{name}: start and stop must have the same shape, got: #{inspect(shape)} and " <>
              inspect(stop_shape)
    end

    together = Promotion.type_as(mode, :divide, name, ends)
    type = type_option(opts, mode, name) || together
    wide = Numbers.wide(together)

    [start, stop] =
      for operand <- [start, stop], do: operand |> wide(wide, name) |> Shapes.new_axis(-1)

    {spaced(start, stop, n, endpoint?, wide), type}
  end

  # Plain numbers are taken as they are.
  defp wide(%Tensor{} = tensor, type, _name), do: Elementwise.cast(tensor, type)
  defp wide(number, type, name), do: encode([number], type, {}, name)

  defp spaced(start, _stop, 1, _endpoint?, _type), do: start

  defp spaced(%Tensor{shape: column} = start, stop, n, endpoint?, type) do
    axis = tuple_size(column) - 1
    # The last number is `stop` itself, whatever the steps before it are rounded to.
    count = if endpoint?, do: n - 1, else: n
    index = %Tensor{data: Native.iota({:f, 64}, {count}, nil), type: {:f, 64}, shape: {count}}

    step = Elementwise.step(:divide, Elementwise.step(:subtract, stop, start), count)
    spaced = Elementwise.step(:add, Elementwise.step(:multiply, index, step), start)
    spaced = Elementwise.cast(spaced, type)

    if endpoint?,
      do: Shapes.join(:concatenate, [spaced, stop], axis: axis, promotion: :nx),
      else: spaced
  end

  @doc "See `Ferrox.arange/3`."
  @spec arange(term, term, keyword) :: Tensor.t()
  def arange(start, stop, opts) do
    opts = options!(opts, [:step, :type, :promotion], :arange)
    mode = promotion!(opts, :arange)
    step = Keyword.get(opts, :step, 1)

    for {name, number} <- [start: start, stop: stop, step: step], not is_number(number) do
      raise ArgumentError,
            "arange: #{name} must be an integer or a float, got: #{inspect(number)}"
    end

    if step == 0, do: raise(ArgumentError, "arange: the step must not be zero")
    count = count(start, stop, step)

    if count < 1 do
      raise ArgumentError,
            "arange: no number lies from #{start} to before #{stop} in steps of #{step}, and a " <>
              "tensor has at least one element"
    end

    type = type_option(opts, mode, :arange) || infer(mode, [start, stop, step])
    Shape.validate!({count}, :arange)
    # Both ends must fit the type; then all numbers between them do.
    _ = Numbers.encode([start, start + (count - 1) * step], type, :arange)
    start |> counted(step, count) |> Elementwise.cast(type)
  end

  # How many numbers there are from `start` to before `stop`.
  defp count(start, stop, step) when is_integer(start) and is_integer(stop) and is_integer(step),
    do: max(-Integer.floor_div(start - stop, step), 0)

  defp count(start, stop, step), do: max(ceil((stop - start) / step), 0)

  defp counted(start, step, count) do
    last = start + (count - 1) * step
    integers? = is_integer(start) and is_integer(step) and is_64_bit(start) and is_64_bit(last)

    type =
      cond do
        not integers? -> {:f, 64}
        max(start, last) > 0x7FFF_FFFF_FFFF_FFFF -> {:u, 64}
        true -> {:s, 64}
      end

    index = %Tensor{data: Native.iota(type, {count}, nil), type: type, shape: {count}}
    # What wraps around in 64 bits is right again in the sum.
    [start, step] =
      for n <- [start, step], do: %Tensor{data: Numbers.constant(n, type), type: type, shape: {}}

    Elementwise.step(:add, Elementwise.step(:multiply, index, step), start)
  end
end
