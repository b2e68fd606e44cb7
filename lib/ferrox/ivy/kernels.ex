defmodule Ferrox.Ivy.Kernels do
  @moduledoc since: "0.1.0"
  @moduledoc """
  Finds the data types that Ferrox's own operations support.

  The answer comes from the operation in the native library, so there is no list that could be out of
  date. The backend `:ferrox` of `Ferrox.Ivy.Profile` uses this module.
  """

  alias Ferrox.Ivy.Dtype
  alias Ferrox.{Native, Operands, Type}

  @arities 1..3

  @doc """
  Returns whether an operation, named as in `Ferrox`, supports tensors of a type.

  The type can be any type of `Ferrox.Type`, also one that Ivy doesn't have.

  ## Examples

      iex> Ferrox.Ivy.Kernels.supports?(:bitwise_and, :s4)
      true
      iex> Ferrox.Ivy.Kernels.supports?(:bitwise_and, "float32")
      false
      iex> Ferrox.Ivy.Kernels.supports?(:floor, "complex64")
      false

      iex> Ferrox.Ivy.Kernels.supports?(:frobnicate, :s4)
      ** (ArgumentError) unknown operation :frobnicate, expected one that Ferrox has a kernel for, such as :add, :exp, :sum, :dot or :clip

  """
  @spec supports?(atom, Dtype.name() | Type.t() | Type.short_t()) :: boolean
  def supports?(op, type) when is_atom(op) do
    type = Operands.storage(Dtype.parse(type) || Type.normalize!(type))
    arity = arity!(op, type)

    # The result has the type of the operand, or is an f32 for operations that convert integers to
    # floats.
    Enum.any?([type, {:f, 32}], &Native.supports(op, &1, List.duplicate(type, arity)))
  end

  @doc """
  Returns the data types of Ivy that an operation supports.

  ## Examples

      iex> Ferrox.Ivy.Kernels.supported_dtypes(:reduce_max) |> Enum.map(&Ferrox.Ivy.as_ivy_dtype/1) |> Enum.join(" ")
      "int8 int16 int32 int64 uint8 uint16 uint32 uint64 bfloat16 float16 float32 float64 bool"

  """
  @spec supported_dtypes(atom) :: [Dtype.t()]
  def supported_dtypes(op), do: Enum.filter(Dtype.all(), &supports?(op, &1))

  # The number of operands of an operation.
  defp arity!(op, type) do
    Enum.find(@arities, &(Native.supports(op, type, List.duplicate(type, &1)) != nil)) ||
      raise ArgumentError,
            "unknown operation #{inspect(op)}, expected one that Ferrox has a kernel for, " <>
              "such as :add, :exp, :sum, :dot or :clip"
  end
end
