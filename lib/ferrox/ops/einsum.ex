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
    count!(equation, inputs, operands)
    {inputs, output} = named!(equation, inputs, output, operands)
    check!(equation, inputs, output, operands)

    {inputs, operands} =
      inputs
      |> Enum.zip(operands)
      |> Enum.map(&without_ones(&1, inputs, operands))
      |> Enum.unzip()

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

  # The labels of each operand and of the result, which is nil where it isn't given.
  defp parse!(equation) do
    {left, output} =
      case equation |> String.replace(" ", "") |> String.split("->") do
        [left] -> {left, nil}
        [left, right] -> {left, labels!(right, equation)}
        _ -> malformed!(equation)
      end

    {for(labels <- String.split(left, ","), do: labels!(labels, equation)), output}
  end

  defp labels!(text, equation) do
    labels = labels(text, equation)
    if Enum.count(labels, &(&1 == :ellipsis)) > 1, do: malformed!(equation)
    labels
  end

  defp labels("", _equation), do: []
  defp labels("..." <> rest, equation), do: [:ellipsis | labels(rest, equation)]

  defp labels(<<letter, rest::binary>>, equation) when letter in ?a..?z or letter in ?A..?Z,
    do: [letter | labels(rest, equation)]

  defp labels(_text, equation), do: malformed!(equation)

  @spec malformed!(String.t()) :: no_return
  defp malformed!(equation) do
    raise ArgumentError,
          "einsum: expected an equation such as \"ij,jk->ik\", of letters for axes and \"...\" for others, got: " <>
            inspect(equation)
  end

  defp count!(equation, inputs, operands) do
    if length(inputs) != length(operands) do
      raise ArgumentError,
            "einsum: #{inspect(equation)} has #{length(inputs)} operands, got: #{length(operands)}"
    end
  end

  # The axes of an ellipsis have numbers in place of letters, -1 for the last one and so on, as those of all
  # operands go together from the last one on. Where the result isn't given, it has them first, and the
  # letters that are there once, in order.
  defp named!(equation, inputs, output, operands) do
    counts =
      for {labels, %Tensor{shape: shape}} <- Enum.zip(inputs, operands) do
        count = tuple_size(shape) - Enum.count(labels, &(&1 != :ellipsis))

        if count < 0 or (count > 0 and :ellipsis not in labels) do
          raise ArgumentError,
                "einsum: #{inspect(text(labels))} does not name the axes of shape #{inspect(shape)}"
        end

        count
      end

    most = Enum.max(counts)

    if most > 0 and output != nil and :ellipsis not in output do
      raise ArgumentError,
            "einsum: the result of #{inspect(equation)} must have the axes of \"...\", too: they aren't summed over"
    end

    inputs = Enum.zip_with(inputs, counts, &expanded/2)
    once = for {label, 1} <- inputs |> Enum.concat() |> Enum.frequencies(), label > 0, do: label
    {inputs, expanded(output || [:ellipsis | Enum.sort(once)], most)}
  end

  defp expanded(labels, count) do
    Enum.flat_map(labels, fn
      :ellipsis -> Enum.to_list(-count..-1//1)
      label -> [label]
    end)
  end

  defp text(labels), do: Enum.map_join(labels, &if(&1 == :ellipsis, do: "...", else: <<&1>>))

  # Axes of an ellipsis with size one stand for as many elements as those of the other operands have.
  defp without_ones({labels, %Tensor{shape: shape} = tensor}, inputs, operands) do
    ones =
      for {label, axis} <- Enum.with_index(labels),
          label < 0 and elem(shape, axis) == 1 and
            Enum.any?(Enum.zip(inputs, operands), &longer?(&1, label)),
          do: {label, axis}

    {gone, axes} = Enum.unzip(ones)
    {labels -- gone, Shapes.squeeze(tensor, axes: axes)}
  end

  defp longer?({labels, %Tensor{shape: shape}}, label) do
    axis = Enum.find_index(labels, &(&1 == label))
    axis != nil and elem(shape, axis) > 1
  end

  defp check!(equation, inputs, output, operands) do
    if output != Enum.uniq(output) or output -- List.flatten(inputs) != [] do
      raise ArgumentError,
            "einsum: each letter of the result of #{inspect(equation)} must be there once, and in an operand"
    end

    sizes =
      for {labels, %Tensor{shape: shape}} <- Enum.zip(inputs, operands),
          do: Enum.zip(labels, Tuple.to_list(shape))

    for {label, sizes} <- sizes |> List.flatten() |> Enum.group_by(&elem(&1, 0), &elem(&1, 1)),
        sizes = Enum.uniq(sizes),
        length(if(label < 0, do: sizes -- [1], else: sizes)) > 1 do
      axis = if label < 0, do: "#{label} of \"...\"", else: <<label>>

      raise ArgumentError,
            "einsum: axis #{axis} of #{inspect(equation)} has different sizes: " <>
              Enum.map_join(sizes, ", ", &inspect/1)
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
