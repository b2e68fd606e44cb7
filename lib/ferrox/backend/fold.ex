defmodule Ferrox.Backend.Fold do
  @moduledoc false
  # Reductions with an Elixir function, which is given scalar tensors: the library
  # brings the elements of each result together, only the function runs here.

  alias Ferrox.{Complex, Native, Numbers, Shape, Type}

  @doc "The data of `Nx.reduce/4`."
  @spec reduce(map, map, term, keyword, fun) :: bitstring
  def reduce(out, %{type: type, shape: shape} = tensor, acc, opts, fun) do
    {rows, count} = rows({type, shape, tensor.data.state}, opts[:axes])
    fold(:reduce, rows, count, scalar(tensor), acc, out, fun)
  end

  # The data with the axes to reduce last, and how many elements they have.
  defp rows({_type, shape, data}, nil), do: {data, Tuple.product(shape)}

  defp rows({_type, shape, data} = operand, axes) do
    {all, axes} = {Shape.all_axes(shape), Enum.sort(axes)}
    kept = all -- axes
    order = kept ++ axes
    data = if order == all, do: data, else: transpose(order, operand)
    {data, Tuple.product(pick(shape, axes))}
  end

  defp transpose(order, {_type, shape, _data} = operand),
    do: Native.transpose(pick(shape, order), order, operand)

  @doc "The data of `Nx.window_reduce/5`, whose padding is the accumulator."
  @spec window_reduce(map, map, term, tuple, keyword, fun) :: bitstring
  def window_reduce(%{type: type, shape: places} = out, tensor, acc, window, opts, fun) do
    pad = start(acc, type)
    windows = {Tuple.to_list(window), opts[:strides], opts[:window_dilations], opts[:padding]}
    shape = List.to_tuple(Tuple.to_list(places) ++ Tuple.to_list(window))
    operand = {tensor.type, tensor.shape, tensor.data.state}
    elements = Native.window_elements(shape, windows, operand, {type, {}, pad})

    each = scalar(tensor)
    acc = %{each | data: %{each.data | state: pad}}
    fold(:window_reduce, elements, Tuple.product(window), each, acc, out, fun)
  end

  defp pick(shape, axes), do: axes |> Enum.map(&elem(shape, &1)) |> List.to_tuple()

  # What becomes an element when it is given its data.
  defp scalar(tensor), do: %{tensor | shape: {}, names: [], data: %Ferrox.Backend{state: <<>>}}

  # The accumulator becomes an element of the windows, so it has their type.
  defp start(%{type: type, data: %{state: state}}, type), do: state

  defp start(%{type: {from, _} = acc_type, data: %{state: state}}, {to, _} = type) do
    data = Native.as_type(type, {acc_type, {}, state})

    exact? = fn ->
      Numbers.decode(state, acc_type, 1) == Numbers.decode(data, type, 1)
    end

    if (to == :c or from != :c) and (to not in [:s, :u] or exact?.()) do
      data
    else
      [number] = Numbers.decode(state, acc_type, 1)

      raise ArgumentError,
            "window_reduce: the accumulator #{inspect(number)} of type " <>
              "#{Type.to_string(acc_type)} is no #{Type.to_string(type)}, the type of the tensor"
    end
  end

  # Folds so many elements at a time.
  defp fold(op, data, count, %{type: {_, bits}} = each, acc, out, fun) do
    row_bits = bits * count

    for <<row::bitstring-size(row_bits) <- data>>, into: <<>> do
      folded =
        for <<element::bitstring-size(bits) <- row>>, reduce: acc do
          acc -> fun.(%{each | data: %{each.data | state: element}}, acc)
        end

      result(op, folded, out.type)
    end
  end

  defp result(_op, %{type: type, shape: {}, data: %{state: state}}, type), do: state

  defp result(_op, number, type)
       when is_number(number) or number in [:nan, :infinity, :neg_infinity],
       do: constant(number, type)

  defp result(op, other, type) do
    module = Complex.module()

    case other do
      %{__struct__: ^module} ->
        constant(other, type)

      %{type: ^type, shape: {}} = elsewhere ->
        apply(Nx, :to_binary, [elsewhere])

      _ ->
        raise ArgumentError,
              "#{op}: the function must give a number or a scalar tensor of type " <>
                "#{Type.to_string(type)}, got: #{inspect(other)}"
    end
  end

  # Only integers fit an integer type, and only reals a real one.
  defp constant(number, {kind, _} = type) do
    fits? =
      case kind do
        :c -> true
        kind when kind in [:s, :u] -> is_integer(number)
        _ -> is_number(number) or is_atom(number)
      end

    if fits? do
      Numbers.constant(number, type)
    else
      raise ArgumentError,
            "the function gave #{inspect(number)}, which is no #{Type.to_string(type)}"
    end
  end
end
