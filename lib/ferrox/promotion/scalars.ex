defmodule Ferrox.Promotion.Scalars do
  @moduledoc false
  # Tensors without axes among operands, where a system treats them as numbers:
  # before NumPy 2 their value decided, and under two of Ivy's frontends they
  # adopt the type of an array of their kind.

  alias Ferrox.{Promotion, Tensor}

  @doc "The operands, such tensors as what they count as."
  @spec settle(list, map) :: list
  def settle(operands, %{scalars: :types}), do: operands

  def settle(operands, %{scalars: how}) do
    arrays = for operand <- operands, array?(operand), do: type(operand)

    cond do
      arrays == [] or not Enum.any?(operands, &scalar?/1) -> operands
      how == :values -> by_value(operands, arrays)
      how == :adopt -> Enum.reject(operands, &(scalar?(&1) and adopts?(&1.type, arrays)))
    end
  end

  # Unless one of the scalars is of a higher kind than all arrays.
  defp by_value(operands, arrays) do
    highest = arrays |> Enum.map(&level/1) |> Enum.max()

    if Enum.all?(operands, &(array?(&1) or level(type(&1)) <= highest)) do
      Enum.map(operands, fn operand ->
        if scalar?(operand) and operand.type != :bool,
          do: Ferrox.to_number(operand),
          else: operand
      end)
    else
      operands
    end
  end

  # bf16 is a kind of its own, as it is live.
  defp adopts?(type, arrays), do: Enum.any?(arrays, &(family(&1) == family(type)))

  defp family({:bf, _}), do: :bf
  defp family(type), do: Promotion.kind(type)

  # Floats and complex numbers count as one kind before NumPy 2.
  defp level(type) do
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

  defp type(type) do
    case Promotion.fetch(type) do
      nil -> :float
      type -> type
    end
  end
end
