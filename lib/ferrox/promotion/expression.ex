defmodule Ferrox.Promotion.Expression do
  @moduledoc since: "0.1.0"
  @moduledoc """
  Finds the types of expressions that use several promotion systems.

  Where libraries are mixed, each operation follows the rules of the library that runs it, and the
  type of the result can depend on the grouping. An expression is a tree:

    * an operand is anything that `Ferrox.Promotion.result_type/2` takes: a type, a tensor or a
      number;
    * an operation is `{system, left, right}`, or `{{system, options}, left, right}` for a system
      with options.

  The documentation of JAX warns of `np.int16(1) + 1 + jnp.int16(1)`. Under the rules of NumPy 1,
  NumPy computes the first sum, as an int64, and JAX keeps this type. In the other grouping, JAX
  computes both sums, and the number takes the type int16:

      iex> alias Ferrox.Promotion.Expression
      iex> numpy_1 = {:numpy, scalar: :legacy}
      iex> Expression.type({:jax, {numpy_1, :s16, 1}, :s16})
      {:s, 64}
      iex> Expression.type({:jax, :s16, {:jax, 1, :s16}})
      {:s, 16}

  Under the rules of NumPy 2, both groupings give an int16:

      iex> alias Ferrox.Promotion.Expression
      iex> Expression.type({:jax, {:numpy, :s16, 1}, :s16})
      {:s, 16}

  but with a float the results still differ:

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
  Returns the type of the expression, which can be weak. Raises the same errors as
  `Ferrox.Promotion.result_type/2`.

  ## Examples

      iex> Ferrox.Promotion.Expression.type({:jax, {:jax, :u8, 1.0}, :s32})
      :float
      iex> Ferrox.Promotion.Expression.type({:ivy, {:nx, :u8, :s8}, :f16})
      {:f, 32}

  """
  @spec type(t) :: Promotion.t()
  def type({system, left, right}), do: operation_type(system, resolve(left), resolve(right))
  def type(operand), do: Promotion.result_type([operand])

  @doc """
  Returns the expression as text, with one line for each operation and operand, and the type of
  each.

  ## Examples

      iex> expression = {:jax, {{:numpy, scalar: :legacy}, :s16, 1}, :s16}
      iex> Ferrox.Promotion.Expression.explain(expression) |> String.split("\\n")
      ["int64  by jax", "  int64  by numpy, scalar: :legacy", "    int16", "    1", "  int16"]

  """
  @spec explain(t) :: String.t()
  def explain(expression), do: expression |> lines(0) |> elem(1) |> Enum.join("\n")

  # An operation is replaced by its type, an operand stays as it is.
  defp resolve({_system, _left, _right} = operation), do: type(operation)
  defp resolve(operand), do: operand

  defp operation_type({system, options}, left, right),
    do: Promotion.result_type([left, right], [{:system, system} | options])

  defp operation_type(system, left, right),
    do: Promotion.result_type([left, right], system: system)

  # The type or operand of an expression, and the lines of its text.
  defp lines({system, left, right}, depth) do
    {left, left_lines} = lines(left, depth + 1)
    {right, right_lines} = lines(right, depth + 1)
    type = operation_type(system, left, right)
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
