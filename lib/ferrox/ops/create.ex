defmodule Ferrox.Ops.Create do
  @moduledoc false
  # Tensors from numbers, lists and binaries.

  import Ferrox.Numbers, only: [is_number_term: 1]
  import Ferrox.Operands, only: [options!: 3, promotion!: 2, storage: 1, type_option: 3]

  alias Ferrox.{Native, Numbers, Operands, Promotion, Shape, Tensor}
  alias Ferrox.Ops.Elementwise
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

  defp encode(numbers, type, shape),
    do: %Tensor{data: Numbers.encode(numbers, type, :tensor), type: type, shape: shape}

  # The type of a tensor of these numbers.
  defp infer(mode, numbers) do
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
    facts = Promotion.facts(mode)
    type = type_option(opts, mode, :eye) || if(facts.bool, do: facts.float, else: facts.int)

    if tuple_size(shape) < 2 do
      raise ArgumentError, "eye expects a shape of at least two axes, got: #{inspect(shape)}"
    end

    %Tensor{data: Native.eye(storage(type), shape), type: type, shape: shape}
  end

  @doc "See `Ferrox.full/3`."
  @spec full(term, term, keyword) :: Tensor.t()
  def full(shape, number, opts) do
    opts = options!(opts, [:type, :promotion], :full)
    number |> tensor(opts) |> Ferrox.Ops.Shape.broadcast(shape, [])
  end
end
