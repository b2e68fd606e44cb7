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

  @doc "A factorization: `:cholesky`, `:determinant`, `:lu`, `:qr`, `:eigh` or `:svd`."
  @spec factor(atom, [template], Native.operand(), keyword) :: [data]
  def factor(op, outs, input, opts \\ []) do
    results = for %{type: type, shape: shape} <- outs, do: {type, shape}
    Native.factor(op, results, opts[:eps] || 0.0, input)
  end

  ## Nx's own algorithms

  # Nx's documentation shows results of single precision whose last digits, or more,
  # are those of its own algorithms, which are less accurate than the library's.
  # So matrices no larger than those it shows go through these algorithms, unless
  # they are ill-conditioned: then the error would be more than a few digits.
  @few 4
  @well_conditioned 100
  @nx? Code.ensure_loaded?(Nx.BinaryBackend)

  @doc "Whether Nx's own algorithm is to be used, given what the library has found."
  @spec as_nx?(:lu | :eigh | :svd, tuple) :: boolean
  def as_nx?(:lu, {_p, l, u}), do: few?(l) and finite?(l) and finite?(u)
  def as_nx?(:eigh, {values, vectors}), do: few?(vectors) and well_conditioned?(values)
  def as_nx?(:svd, {u, s, vt}), do: few?(u) and few?(vt) and well_conditioned?(s)

  defp few?(%{type: type, shape: shape}) do
    rank = tuple_size(shape)

    @nx? and type in [{:f, 32}, {:c, 64}] and
      max(elem(shape, rank - 1), elem(shape, rank - 2)) in 2..@few
  end

  defp finite?(tensor), do: tensor |> numbers() |> Enum.all?(&(is_number(&1) or is_map(&1)))

  defp well_conditioned?(%{shape: shape} = values) do
    values
    |> numbers()
    |> Enum.map(&magnitude/1)
    |> Enum.chunk_every(elem(shape, tuple_size(shape) - 1))
    |> Enum.all?(fn values ->
      {least, greatest} = Enum.min_max(values)
      is_number(greatest) and greatest <= least * @well_conditioned
    end)
  end

  defp numbers(%{type: type, shape: shape, data: %{state: state}}),
    do: Ferrox.Numbers.decode(state, type, Native.size(shape))

  # What is not finite is an atom, which is greater than any number.
  defp magnitude(value) when is_number(value), do: abs(value)
  defp magnitude(%{re: re}), do: magnitude(re)
  defp magnitude(value), do: value

  @doc "What a function gives while Nx.BinaryBackend is the process's default."
  @spec on_binary_backend(fun) :: tuple
  def on_binary_backend(run) do
    default = apply(Nx, :default_backend, [Nx.BinaryBackend])

    try do
      run.()
    after
      apply(Nx, :default_backend, [default])
    end
  end

  @doc "What Nx up to 0.9 gives, of a tensor on Nx.BinaryBackend."
  @spec before(:lu | :eigh | :svd, tuple, struct, keyword) :: tuple
  def before(:svd, _outs, tensor, opts), do: apply(Nx.LinAlg.SVD, :svd, [tensor, opts])
  def before(op, outs, tensor, opts), do: apply(Nx.BinaryBackend, op, [outs, tensor, opts])

  @doc "The type of double precision."
  @spec wide({atom, pos_integer}) :: {atom, pos_integer}
  def wide({:c, _}), do: {:c, 128}
  def wide(_type), do: {:f, 64}
end
