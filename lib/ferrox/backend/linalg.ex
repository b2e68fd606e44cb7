defmodule Ferrox.Backend.LinAlg do
  @moduledoc false
  # Linear algebra: the callbacks and blocks of Nx as calls of the library. Each
  # function takes the template of the result, or several, and gives the data.

  alias Ferrox.Native

  @typep data :: bitstring
  @typep template :: %{type: {atom, pos_integer}, shape: tuple}

  @spec triangular_solve(template, Native.operand(), Native.operand(), keyword) :: data
  def triangular_solve(%{type: type}, a, b, opts) do
    how = {opts[:lower] != false, opts[:left_side] != false, opts[:transform_a] || :none}
    Native.solve(how, type, a, b)
  end

  @doc """
  By an LU factorization, as Nx has done since 0.10, or a QR factorization, as it did
  before.
  """
  @spec solve(:lu | :qr, template, Native.operand(), Native.operand()) :: data
  def solve(method, %{type: type}, a, b), do: Native.solve(method, type, a, b)

  @doc """
  A factorization: `:cholesky`, `:determinant`, `:lu`, `:qr`, `:eigh` or `:svd`, the
  last four also as Nx 0.9 has them: `:lu_0_9` and so on.
  """
  @spec factor(atom, [template], Native.operand(), keyword) :: [data]
  def factor(op, outs, input, opts \\ []) do
    results = for %{type: type, shape: shape} <- outs, do: {type, shape}
    Native.factor(op, results, opts[:eps] || 0.0, input)
  end

  @doc "The type of double precision."
  @spec wide({atom, pos_integer}) :: {atom, pos_integer}
  def wide({:c, _}), do: {:c, 128}
  def wide(_type), do: {:f, 64}
end
