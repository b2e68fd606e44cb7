defmodule Ferrox.Ivy.Kernels do
  @moduledoc """
  Which data types Ferrox's own operations are defined on.

  The native library is asked, and it asks the operation itself: there is no
  list that could be out of date. This is what stands behind the backend
  `:ferrox` of `Ferrox.Ivy.Profile`.
  """

  alias Ferrox.Ivy.Dtype
  alias Ferrox.{Native, Type}

  @arities 1..3

  @doc """
  Whether an operation, named as in `Ferrox`, is defined on tensors of a type.

  All types of `Ferrox.Type` may be asked for, also those that Ivy doesn't have.

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
    type = storage(Dtype.parse(type) || Type.normalize!(type))
    arity = arity!(op, type)

    # The result is of the operand's type, or an f32 for operations that make
    # floats of integers.
    Enum.any?([type, {:f, 32}], &Native.supports(op, &1, List.duplicate(type, arity)))
  end

  @doc """
  The data types of Ivy that an operation is defined on.

  ## Examples

      iex> Ferrox.Ivy.Kernels.supported_dtypes(:reduce_max) |> Enum.map(&Ferrox.Ivy.as_ivy_dtype/1) |> Enum.join(" ")
      "int8 int16 int32 int64 uint8 uint16 uint32 uint64 bfloat16 float16 float32 float64 bool"

  """
  @spec supported_dtypes(atom) :: [Dtype.t()]
  def supported_dtypes(op), do: Enum.filter(Dtype.all(), &supports?(op, &1))

  # Whether tensors can have it at all.
  @doc false
  @spec dtype?(Dtype.t()) :: boolean
  def dtype?(type), do: supports?(:as_type, type)

  # A bool is stored as a u8.
  defp storage(:bool), do: {:u, 8}
  defp storage(type), do: type

  defp arity!(op, type) do
    Enum.find(@arities, &(Native.supports(op, type, List.duplicate(type, &1)) != nil)) ||
      raise ArgumentError,
            "unknown operation #{inspect(op)}, expected one that Ferrox has a kernel for, " <>
              "such as :add, :exp, :sum, :dot or :clip"
  end
end
