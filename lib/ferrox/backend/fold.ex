defmodule Ferrox.Backend.Fold do
  @moduledoc false
  # Reductions with an Elixir function of scalar tensors (`Nx.reduce/4`, `Nx.window_reduce/5`). The
  # native library arranges the data so that the elements of one result are adjacent; only the
  # function itself is called here, once for each element.

  import Ferrox.Bits, only: [bound_size: 1]

  alias Ferrox.{Complex, Native, Numbers, Shape, Type}

  @doc "The data of the result of `Nx.reduce/4`."
  @spec reduce(map, map, term, keyword, fun) :: bitstring
  def reduce(out, %{type: type, shape: shape} = tensor, acc, opts, fun) do
    {data, count} = reduced_axes_last({type, shape, tensor.data.state}, opts[:axes])
    fold(:reduce, data, count, scalar_template(tensor), acc, out, fun)
  end

  # The data, transposed so that the axes to reduce are the last ones, and the number of elements
  # that are reduced to one.
  defp reduced_axes_last({_type, shape, data}, nil), do: {data, Tuple.product(shape)}

  defp reduced_axes_last({_type, shape, data} = operand, axes) do
    {all_axes, axes} = {Shape.all_axes(shape), Enum.sort(axes)}
    order = (all_axes -- axes) ++ axes
    data = if order == all_axes, do: data, else: transpose(order, operand)
    {data, Tuple.product(sizes(shape, axes))}
  end

  defp transpose(order, {_type, shape, _data} = operand),
    do: Native.transpose(sizes(shape, order), order, operand)

  @doc "The data of the result of `Nx.window_reduce/5`. The padding has the accumulator's value."
  @spec window_reduce(map, map, term, tuple, keyword, fun) :: bitstring
  def window_reduce(%{type: type, shape: out_shape} = out, tensor, acc, window, opts, fun) do
    padding_value = cast_accumulator!(acc, type)
    windows = {Tuple.to_list(window), opts[:strides], opts[:window_dilations], opts[:padding]}
    shape = List.to_tuple(Tuple.to_list(out_shape) ++ Tuple.to_list(window))
    operand = {tensor.type, tensor.shape, tensor.data.state}
    data = Native.window_elements(shape, windows, operand, {type, {}, padding_value})

    template = scalar_template(tensor)
    acc = %{template | data: %{template.data | state: padding_value}}
    fold(:window_reduce, data, Tuple.product(window), template, acc, out, fun)
  end

  defp sizes(shape, axes), do: axes |> Enum.map(&elem(shape, &1)) |> List.to_tuple()

  # A scalar tensor without data, of the type and backend of the elements.
  defp scalar_template(tensor),
    do: %{tensor | shape: {}, names: [], data: %Ferrox.Backend{state: <<>>}}

  # The data of the accumulator in the type of the windows. The accumulator must have this type,
  # because it is also the value of the padding. Raises where the cast would change its value.
  defp cast_accumulator!(%{type: type, data: %{state: state}}, type), do: state

  defp cast_accumulator!(
         %{type: {from, _} = acc_type, data: %{state: state}},
         {to, _} = type
       ) do
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

  # The data of a result whose elements are the folds of `count` adjacent elements each. `template`
  # is the scalar tensor that becomes an element when it is given data.
  defp fold(op, data, count, %{type: {_, bits}} = template, acc, out, fun) do
    row_bits = bits * count

    for <<row::bitstring-bound_size(row_bits) <- data>>, into: <<>> do
      folded =
        for <<element::bitstring-bound_size(bits) <- row>>, reduce: acc do
          acc ->
            converted(fun.(%{template | data: %{template.data | state: element}}, acc), out.type)
        end

      element_data(op, folded, out.type)
    end
  end

  # What the function has returned. A scalar tensor is converted, where every number has a value in the
  # result's type: Nx leaves that to backends.
  defp converted(
         %{type: {from, _} = type, shape: {}, data: %Ferrox.Backend{}} = scalar,
         {to, _} = out
       )
       when type != out and (to == :c or from != :c) and (to not in [:s, :u] or from in [:s, :u]) do
    state = Native.as_type(out, {type, {}, scalar.data.state})
    %{scalar | type: out, data: %Ferrox.Backend{state: state}}
  end

  defp converted(other, _type), do: other

  # The data of what the function has returned: a scalar tensor of the result's type on any backend,
  # or a number.
  defp element_data(_op, %{type: type, shape: {}, data: %{state: state}}, type), do: state

  defp element_data(_op, number, type)
       when is_number(number) or number in [:nan, :infinity, :neg_infinity],
       do: constant(number, type)

  defp element_data(op, other, type) do
    module = Complex.module()

    case other do
      %{__struct__: ^module} ->
        constant(other, type)

      %{type: ^type, shape: {}} = tensor ->
        apply(Nx, :to_binary, [tensor])

      _ ->
        raise ArgumentError,
              "#{op}: the function must give a number or a scalar tensor of type " <>
                "#{Type.to_string(type)}, got: #{inspect(other)}"
    end
  end

  # The data of a number. Raises for a float or complex number in an integer type, and for a complex
  # number in a real type.
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
