defmodule Ferrox.Promotion.Scalars do
  @moduledoc false
  # Operands that are tensors without axes, for the systems in which they count as numbers: before
  # NumPy 2 their value decided, and under two of Ivy's frontends they take the type of an array of
  # their kind.

  alias Ferrox.{Promotion, Tensor}

  @doc """
  Returns the operands, with each tensor without axes replaced by what it counts as.

  `facts.scalars` is the rule of the system: `:types` (all tensors count with their type), `:values`
  (tensors without axes count as numbers), or `:adopt` (they don't count if an array of their kind
  is among the operands).
  """
  @spec settle(list, map) :: list
  def settle(operands, %{scalars: :types}), do: operands

  def settle(operands, %{scalars: rule}) do
    arrays = for operand <- operands, array?(operand), do: type(operand)

    cond do
      arrays == [] or not Enum.any?(operands, &scalar?/1) -> operands
      rule == :values -> by_value(operands, arrays)
      rule == :adopt -> Enum.reject(operands, &(scalar?(&1) and adopts?(&1.type, arrays)))
    end
  end

  # The tensors without axes as numbers, unless one of them has a higher kind than all arrays.
  defp by_value(operands, arrays) do
    highest = arrays |> Enum.map(&kind_rank/1) |> Enum.max()

    if Enum.all?(operands, &(array?(&1) or kind_rank(type(&1)) <= highest)) do
      Enum.map(operands, fn
        %Tensor{shape: {}, type: type} = scalar when type != :bool -> Ferrox.to_number(scalar)
        operand -> operand
      end)
    else
      operands
    end
  end

  # Whether one of the arrays has the kind of the type. bf16 is a kind of its own, as in Ivy.
  defp adopts?(type, arrays), do: Enum.any?(arrays, &(family(&1) == family(type)))

  defp family({:bf, _}), do: :bf
  defp family(type), do: Promotion.kind(type)

  # The rank of a type's kind. Before NumPy 2, floats and complex numbers counted as one kind.
  defp kind_rank(type) do
    case Promotion.kind(type) do
      :bool -> 0
      :int -> 1
      _ -> 2
    end
  end

  defp scalar?(%Tensor{shape: {}}), do: true
  defp scalar?(_operand), do: false

  defp array?(%Tensor{shape: shape}), do: shape != {}
  defp array?({:array, _}), do: true
  defp array?(_operand), do: false

  defp type(%Tensor{type: type}), do: type
  defp type({:array, type}), do: Promotion.fetch(type) || :bool
  defp type(integer) when is_integer(integer), do: :int
  defp type(boolean) when is_boolean(boolean) or is_nil(boolean), do: :bool
  defp type(type_or_number), do: Promotion.fetch(type_or_number) || :float
end
