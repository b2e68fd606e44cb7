defmodule Ferrox.Backend.Operations do
  @moduledoc false
  # The operations of Nx, and their options as the native library takes them: what the backend and the
  # compiler both go by.

  @doc "The elementwise operations on one tensor."
  @spec unary() :: [atom]
  def unary do
    [:exp, :expm1, :log, :log1p, :sigmoid, :cos, :sin, :tan, :tanh, :sqrt, :rsqrt] ++
      [:asin, :acos, :atan, :sinh, :cosh, :asinh, :acosh, :atanh, :cbrt] ++
      [:erf, :erfc, :erf_inv, :conjugate, :real, :imag, :phase] ++
      [:abs, :bitwise_not, :ceil, :floor, :negate, :round, :sign] ++
      [:is_nan, :is_infinity, :logical_not, :population_count, :count_leading_zeros]
  end

  @doc "The elementwise operations on two tensors."
  @spec binary() :: [atom]
  def binary do
    [:add, :subtract, :multiply, :pow, :remainder, :divide, :atan2, :min, :max] ++
      [:quotient, :bitwise_and, :bitwise_or, :bitwise_xor, :left_shift, :right_shift] ++
      [:equal, :not_equal, :greater, :less, :greater_equal, :less_equal] ++
      [:logical_and, :logical_or, :logical_xor]
  end

  @doc "The windows of an operation with the options of Nx, which has no dilations in scatters."
  @spec windows(tuple, keyword) :: {tuple, list, list, list}
  def windows(window, opts) do
    dilations = opts[:window_dilations] || List.duplicate(1, tuple_size(window))
    {window, opts[:padding], opts[:strides], dilations}
  end

  @doc """
  The shape of the updates of a tensor at some indices. Nx flattens those of vectorized tensors; they keep
  this shape where it doesn't say which axes of the tensor were there.
  """
  @spec updates_shape(tuple, tuple, tuple, [non_neg_integer]) :: tuple
  def updates_shape({size} = updates, {count, _}, shape, axes) when count > 0 do
    others =
      for axis <- Enum.to_list(0..(tuple_size(shape) - 1)//1) -- axes, do: elem(shape, axis)

    cond do
      others != [] and size == count * Enum.product(others) -> List.to_tuple([count | others])
      match?([_], others) and rem(size, count) == 0 -> {count, div(size, count)}
      true -> updates
    end
  end

  def updates_shape(updates, _indices, _shape, _axes), do: updates

  @doc "The options of a convolution."
  @spec conv_options(keyword) :: tuple
  def conv_options(opts) do
    {opts[:strides], opts[:padding], opts[:input_dilation], opts[:kernel_dilation],
     {opts[:feature_group_size], opts[:batch_group_size]},
     {opts[:input_permutation], opts[:kernel_permutation], opts[:output_permutation]}}
  end
end
