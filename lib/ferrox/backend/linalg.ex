defmodule Ferrox.Backend.LinAlg do
  @moduledoc false
  # Linear algebra: maps the callbacks and blocks of Nx to calls of the native library. Each
  # function takes the templates of its results and returns the data of the results.

  alias Ferrox.Native

  @typep data :: bitstring
  @typep template :: %{type: {atom, pos_integer}, shape: tuple}

  @doc "The solution of a triangular system, with the options of `Nx.LinAlg.triangular_solve/3`."
  @spec triangular_solve(template, Native.operand(), Native.operand(), keyword) :: data
  def triangular_solve(%{type: type}, a, b, opts), do: Native.solve(triangle(opts), type, a, b)

  @doc "Which triangular system the options of `Nx.LinAlg.triangular_solve/3` describe."
  @spec triangle(keyword) :: {lower :: boolean, left_side :: boolean, transform_a :: atom}
  def triangle(opts),
    do: {opts[:lower] != false, opts[:left_side] != false, opts[:transform_a] || :none}

  @doc """
  The solution of a system of equations, by the LU factorization (`:lu`), which
  `Nx.LinAlg.solve/2` uses since Nx 0.11, or by the QR factorization (`:qr`), which it used up to
  Nx 0.10.
  """
  @spec solve(:lu | :qr, template, Native.operand(), Native.operand()) :: data
  def solve(method, %{type: type}, a, b), do: Native.solve(method, type, a, b)

  @doc """
  The results of a factorization. `op` is `:cholesky`, `:determinant`, `:lu`, `:qr`, `:eigh`,
  `:svd` or `:thin_svd`, or one of `:lu_0_9`, `:qr_0_9`, `:eigh_0_9` and `:svd_0_9`, whose results
  are those of Nx 0.9.
  """
  @spec factor(atom, [template], Native.operand(), keyword) :: [data]
  def factor(op, outs, input, opts \\ []) do
    results = for %{type: type, shape: shape} <- outs, do: {type, shape}
    Native.factor(op, results, opts[:eps] || 0.0, input)
  end
end
