defmodule Ferrox.Ops.Einsum do
  @moduledoc false
  # Sums of products by the names of axes, as NumPy's einsum: pairs of operands are multiplied by `dot`,
  # from left to right.

  alias Ferrox.{Operands, Promotion, Tensor}
  alias Ferrox.Ops.{Diagonal, Dot, Elementwise, Reduce}
  alias Ferrox.Ops.Shape, as: Shapes

  @doc "See `Ferrox.einsum/3`."
  @spec einsum(term, term, keyword) :: Tensor.t()
  def einsum(equation, [_ | _] = operands, opts) when is_binary(equation) do
    mode = Operands.chosen_mode!(opts, :einsum)
    operands = for operand <- operands, do: Operands.tensor!(operand, mode, :einsum)
    {inputs, output} = parse!(equation)
    check!(equation, inputs, output, operands)

    # One type from the beginning: that of the products of all operands.
    type = Promotion.type_as(mode, :dot, :einsum, operands)

    if type == :bool,
      do: raise(ArgumentError, "einsum is not defined for bool; cast with Ferrox.as_type/2")

    [first | rest] =
      for {labels, operand} <- Enum.zip(inputs, operands),
          do: diagonal({labels, Elementwise.cast(operand, type)})

    {labels, tensor} = product(first, rest, output)
    {labels, tensor} = sum({labels, tensor}, output)
    order = for label <- output, do: Enum.find_index(labels, &(&1 == label))
    Shapes.transpose(tensor, axes: order)
  end

  def einsum(equation, operands, _opts) do
    raise ArgumentError,
          "einsum expects an equation and a list of tensors, got: #{inspect(equation)} and #{inspect(operands)}"
  end

  # The labels of each operand and of the result, by default those that are there once, in order.
  defp parse!(equation) do
    {left, output} =
      case equation |> String.replace(" ", "") |> String.split("->") do
        [left] -> {left, nil}
        [left, right] -> {left, String.to_charlist(right)}
        _ -> malformed!(equation)
      end

    inputs = for labels <- String.split(left, ","), do: String.to_charlist(labels)
    all = List.flatten(inputs)

    unless Enum.all?(all ++ (output || []), &(&1 in ?a..?z or &1 in ?A..?Z)),
      do: malformed!(equation)

    once = for {label, 1} <- Enum.frequencies(all), do: label
    {inputs, output || Enum.sort(once)}
  end

  @spec malformed!(String.t()) :: no_return
  defp malformed!(equation) do
    raise ArgumentError,
          "einsum: expected an equation such as \"ij,jk->ik\", of letters for axes, got: #{inspect(equation)}"
  end

  defp check!(equation, inputs, output, operands) do
    if length(inputs) != length(operands) do
      raise ArgumentError,
            "einsum: #{inspect(equation)} has #{length(inputs)} operands, got: #{length(operands)}"
    end

    if output != Enum.uniq(output) or output -- List.flatten(inputs) != [] do
      raise ArgumentError,
            "einsum: each letter of the result of #{inspect(equation)} must be there once, and in an operand"
    end

    sizes =
      for {labels, %Tensor{shape: shape}} <- Enum.zip(inputs, operands) do
        if length(labels) != tuple_size(shape) do
          raise ArgumentError,
                "einsum: #{inspect(List.to_string(labels))} does not name the axes of shape #{inspect(shape)}"
        end

        Enum.zip(labels, Tuple.to_list(shape))
      end

    for {label, sizes} <- sizes |> List.flatten() |> Enum.group_by(&elem(&1, 0), &elem(&1, 1)),
        length(Enum.uniq(sizes)) > 1 do
      raise ArgumentError,
            "einsum: axis #{<<label>>} of #{inspect(equation)} has different sizes: " <>
              Enum.map_join(Enum.uniq(sizes), ", ", &inspect/1)
    end
  end

  # An operand with a letter twice is its diagonal.
  defp diagonal({labels, tensor}) do
    case labels -- Enum.uniq(labels) do
      [] ->
        {labels, tensor}

      [label | _] ->
        [first, second] =
          labels
          |> Enum.with_index()
          |> Enum.filter(&(elem(&1, 0) == label))
          |> Enum.take(2)
          |> Enum.map(&elem(&1, 1))

        others = Enum.to_list(0..(length(labels) - 1)) -- [first, second]
        matrices = Shapes.transpose(tensor, axes: others ++ [first, second])
        diagonal({Enum.map(others, &Enum.at(labels, &1)) ++ [label], Diagonal.take(matrices, [])})
    end
  end

  defp product(first, [], _output), do: first

  defp product(left, [right | rest], output) do
    needed = output ++ Enum.flat_map(rest, &elem(&1, 0))
    # What neither the other operand nor the rest needs is summed first.
    {left_labels, left} = sum(left, needed ++ elem(right, 0))
    {right_labels, right} = sum(right, needed ++ left_labels)
    shared = for label <- left_labels, label in right_labels, do: label
    {batch, summed} = Enum.split_with(shared, &(&1 in needed))
    side = fn tensor, labels -> {tensor, places(labels, summed), places(labels, batch)} end
    tensor = Dot.dot_axes(side.(left, left_labels), side.(right, right_labels), promotion: :nx)
    product({batch ++ (left_labels -- shared) ++ (right_labels -- shared), tensor}, rest, output)
  end

  defp places(labels, some), do: for(label <- some, do: Enum.find_index(labels, &(&1 == label)))

  defp sum({labels, tensor}, needed) do
    gone = for label <- labels, label not in needed, do: label

    tensor =
      if gone == [], do: tensor, else: Reduce.step(:sum, tensor, axes: places(labels, gone))

    {labels -- gone, tensor}
  end
end
