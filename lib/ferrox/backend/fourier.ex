defmodule Ferrox.Backend.Fourier do
  @moduledoc false
  # Fourier transforms: maps the callbacks and blocks of Nx to calls of the native library. Each
  # function takes the template of the result and returns the data of the result.

  alias Ferrox.Native

  @typep data :: bitstring
  @typep template :: %{type: {atom, pos_integer}, shape: tuple}

  @doc "A transform along one axis. `op` is `:fft`, `:ifft`, `:rfft` or `:irfft`."
  @spec transform(atom, template, Native.operand(), keyword) :: data
  def transform(op, %{type: type, shape: shape}, {_, from, _} = input, opts) do
    {axis, length} = axis_length(shape, opts)

    # Only `:irfft` can have a length below one: without a :length option, it makes 2 * (n - 1)
    # elements of n.
    if length < 1 do
      raise ArgumentError,
            "#{op}: one element along axis #{axis} of shape #{inspect(from)} gives " <>
              "2 * (1 - 1) = 0 elements: pass a :length"
    end

    Native.fourier(op, type, shape, [{axis, length}], eps(opts), input)
  end

  @doc "The axis that is transformed and its length, given the shape of the result."
  @spec axis_length(tuple, keyword | map) :: {non_neg_integer, integer}
  def axis_length(shape, opts), do: {opts[:axis], opts[:length] || elem(shape, opts[:axis])}

  @doc "A transform along two axes. `op` is `:fft2` or `:ifft2`."
  @spec transform2(atom, template, Native.operand(), keyword) :: data
  def transform2(op, %{type: type, shape: shape}, input, opts) do
    axes = Enum.zip(opts[:axes], opts[:lengths])
    op = if op == :fft2, do: :fft, else: :ifft
    Native.fourier(op, type, shape, axes, eps(opts), input)
  end

  defp eps(opts), do: opts[:eps] || 0.0
end
