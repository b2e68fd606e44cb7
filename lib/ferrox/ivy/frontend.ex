defmodule Ferrox.Ivy.Frontend do
  @moduledoc since: "0.1.0"
  @moduledoc """
  Promotion by the rules of the libraries that Ivy's frontends imitate.

  Ivy's own functions promote operands by Ivy's table. The functions of a frontend promote them by the
  table of the library: `:torch`, `:paddle`, `:numpy`, `:jax`, `:onnx`, `:mxnet` or `:tensorflow`.
  """

  alias Ferrox.{Ivy, Promotion, Tensor}
  alias Ferrox.Ivy.Dtype

  @frontends ~w(torch paddle numpy jax onnx mxnet tensorflow)a

  @doc """
  Returns the type that two types promote to by the rules of a frontend: Ivy's
  `promote_types_torch` and similar functions. TensorFlow only accepts equal types.

  ## Examples

      iex> for frontend <- [:torch, :numpy, :jax], do: Ferrox.Ivy.Frontend.promote_types("int32", "float16", frontend)
      [{:f, 16}, {:f, 64}, {:f, 16}]

      iex> Ferrox.Ivy.Frontend.promote_types("int32", "int8", :tensorflow)
      ** (Ferrox.PromotionError) s32 and s8 have no implicit promotion under system: :ivy_tensorflow. Cast the operands to the type you want, or choose a system that defines it, such as system: :nx

      iex> Ferrox.Ivy.Frontend.promote_types("int32", "int8", :scipy)
      ** (ArgumentError) unknown frontend :scipy, expected one of :torch, :paddle, :numpy, :jax, :onnx, :mxnet, :tensorflow

  """
  @spec promote_types(Dtype.name(), Dtype.name(), atom) :: Dtype.t()
  def promote_types(left, right, frontend),
    do: Promotion.promote(Dtype.known!(left), Dtype.known!(right), system: frontend!(frontend))

  @doc """
  Converts two operands to tensors of the type that they promote to by the rules of a frontend. A
  number takes the type of a tensor of the same kind. Under `:torch` and `:numpy`, a tensor without
  axes also does.

  ## Examples

      iex> {left, _right} = Ferrox.Ivy.Frontend.promote_types_of_inputs(Ferrox.tensor([1], type: :s8), 1, :torch)
      iex> left.type
      {:s, 8}
      iex> {left, _right} = Ferrox.Ivy.Frontend.promote_types_of_inputs(Ferrox.tensor([1], type: :s8), Ferrox.tensor(1, type: :s64), :numpy)
      iex> left.type
      {:s, 8}

  """
  @spec promote_types_of_inputs(Ivy.input(), Ivy.input(), atom) :: {Tensor.t(), Tensor.t()}
  def promote_types_of_inputs(left, right, frontend) do
    type = Promotion.result_type([left, right], system: frontend!(frontend))
    {cast(left, type), cast(right, type)}
  end

  defp cast(%Tensor{} = tensor, type), do: Ferrox.as_type(tensor, type)
  defp cast(number, type), do: Ivy.number(number, type)

  defp frontend!(frontend) when frontend in @frontends, do: :"ivy_#{frontend}"

  defp frontend!(other) do
    raise ArgumentError,
          "unknown frontend #{inspect(other)}, expected one of " <>
            Enum.map_join(@frontends, ", ", &inspect/1)
  end
end
