defmodule Ferrox.Promotion.Expression do
  @moduledoc """
  The types of expressions in which several systems meet.

  Where libraries are mixed, each operation follows the rules of the one that
  runs it, and what the whole gives can depend on how it is grouped. An
  expression here is a tree:

    * an operand is what `Ferrox.Promotion.result_type/2` takes: a type, a
      tensor or a number;
    * an operation is `{system, left, right}`, the system with options as
      `{{system, options}, left, right}`.

  JAX's document warns of `np.int16(1) + 1 + jnp.int16(1)`. Under the rules of
  NumPy 1 the sum on the left is NumPy's and an int64, which JAX then keeps.
  Grouped the other way, both sums are JAX's and the number gives way:

      iex> alias Ferrox.Promotion.Expression
      iex> numpy_1 = {:numpy, scalar: :legacy}
      iex> Expression.type({:jax, {numpy_1, :s16, 1}, :s16})
      {:s, 64}
      iex> Expression.type({:jax, :s16, {:jax, 1, :s16}})
      {:s, 16}

  Under the rules of NumPy 2 both are int16:

      iex> alias Ferrox.Promotion.Expression
      iex> Expression.type({:jax, {:numpy, :s16, 1}, :s16})
      {:s, 16}

  but with a float they still differ:

      iex> alias Ferrox.Promotion.Expression
      iex> Expression.type({:jax, {:numpy, :s16, 1.0}, :f16})
      {:f, 64}
      iex> Expression.type({:jax, :s16, {:jax, 1.0, :f16}})
      {:f, 16}

  """

  alias Ferrox.Promotion
  alias Ferrox.Promotion.Names

  @typedoc "An operand, or an operation on two expressions."
  @type t :: {Promotion.system() | {Promotion.system(), keyword}, t, t} | term

  @doc """
  The type of the expression. A weak one stays weak, and raises what
  `Ferrox.Promotion.result_type/2` raises.

  ## Examples

      iex> Ferrox.Promotion.Expression.type({:jax, {:jax, :u8, 1.0}, :s32})
      :float
      iex> Ferrox.Promotion.Expression.type({:ivy, {:nx, :u8, :s8}, :f16})
      {:f, 32}

  """
  @spec type(t) :: Promotion.t()
  def type({system, left, right}), do: operation(system, reduce(left), reduce(right))
  def type(operand), do: Promotion.result_type([operand])

  @doc """
  The expression as text, one operation or operand a line, each with its type.

  ## Examples

      iex> expression = {:jax, {{:numpy, scalar: :legacy}, :s16, 1}, :s16}
      iex> Ferrox.Promotion.Expression.explain(expression) |> String.split("\\n")
      ["int64  by jax", "  int64  by numpy, scalar: :legacy", "    int16", "    1", "  int16"]

  """
  @spec explain(t) :: String.t()
  def explain(expression), do: expression |> lines(0) |> elem(1) |> Enum.join("\n")

  defp reduce({_system, _left, _right} = operation), do: type(operation)
  defp reduce(operand), do: operand

  defp operation({system, options}, left, right),
    do: Promotion.result_type([left, right], [{:system, system} | options])

  defp operation(system, left, right),
    do: Promotion.result_type([left, right], system: system)

  defp lines({system, left, right}, depth) do
    {left, left_lines} = lines(left, depth + 1)
    {right, right_lines} = lines(right, depth + 1)
    type = operation(system, left, right)
    line = indent(depth) <> "#{Names.numpy(type)}  by #{name(system)}"
    {type, [line | left_lines] ++ right_lines}
  end

  defp lines(operand, depth) do
    text =
      case Promotion.fetch(operand) do
        nil -> inspect(operand)
        type -> Names.numpy(type)
      end

    {operand, [indent(depth) <> text]}
  end

  defp indent(depth), do: String.duplicate("  ", depth)

  defp name({system, options}) do
    Enum.map_join([system | options], ", ", fn
      {key, value} -> "#{key}: #{inspect(value)}"
      system -> "#{system}"
    end)
  end

  defp name(system), do: "#{system}"
end
