defmodule Ferrox.Defn.Expression do
  @moduledoc false
  # What the compiler asks tensors and expressions of Nx, for every release of Nx that it supports.

  @compile {:no_warn_undefined, [Nx, Nx.Defn.Tree]}

  @doc """
  The shape with the vectorized axes, as Nx stores the elements.

      iex> Ferrox.Defn.Expression.shape(Nx.vectorize(Nx.iota({2, 3}), :row))
      {2, 3}
  """
  @spec shape(map) :: tuple
  def shape(%{vectorized_axes: [_ | _] = axes, shape: shape}),
    do: List.to_tuple(Keyword.values(axes) ++ Tuple.to_list(shape))

  def shape(%{shape: shape}), do: shape

  @doc """
  The data of a tensor, on whichever backend it is.

      iex> Ferrox.Defn.Expression.data(Nx.tensor([1, 2], type: :u8))
      <<1, 2>>
  """
  @spec data(map) :: bitstring
  def data(%{data: %{__struct__: backend, state: state}})
      when backend in [Ferrox.Backend, Nx.BinaryBackend],
      do: state

  def data(%{data: %{__struct__: Nx.Defn.Expr}} = tensor) do
    raise ArgumentError,
          "cannot pass a tensor expression as argument to defn, got: #{inspect(tensor)}"
  end

  def data(tensor), do: Nx.to_binary(tensor)

  @doc """
  The expressions of the same scope that an expression is made of.

      iex> sum = Nx.Defn.debug_expr(&Nx.sum/1).(Nx.iota({3}))
      iex> [parameter] = Ferrox.Defn.Expression.arguments(sum)
      iex> parameter.data.op
      :parameter
  """
  @spec arguments(map) :: [map]
  def arguments(expression) do
    {_args, arguments} =
      Nx.Defn.Tree.apply_args(expression, :scope, [], fn
        %{__struct__: Nx.Tensor} = argument, arguments -> {argument, [argument | arguments]}
        other, arguments -> {other, arguments}
      end)

    Enum.reverse(arguments)
  end

  # The number of captured terms that are looked at.
  @max_searched_terms 200

  @doc """
  Whether a function can be a key of a table.

  A function that has captured expressions can't: expressions share parts, and the VM copies and hashes a
  term as if none were shared, which takes exponential time. One that has captured a negative zero can't
  before OTP 27, where a table doesn't tell it from zero.

      iex> sum = Nx.Defn.debug_expr(&Nx.sum/1).(Nx.iota({3}))
      iex> Ferrox.Defn.Expression.key?(fn x -> Nx.add(x, sum) end)
      false
      iex> number = 3
      iex> Ferrox.Defn.Expression.key?(fn x -> Nx.add(x, number) end)
      true
  """
  @spec key?(fun) :: boolean
  def key?(fun) do
    case :erlang.fun_info(fun, :env) do
      {:env, []} -> true
      {:env, captured} -> search([captured], @max_searched_terms)
    end
  end

  # Whether all terms can be in a key.
  defp search([], _left), do: true
  defp search(_terms, 0), do: true
  defp search([%{__struct__: Nx.Defn.Expr} | _], _left), do: false

  defp search([%{} = map | terms], left), do: search(Map.values(map) ++ terms, left - 1)

  defp search([tuple | terms], left) when is_tuple(tuple),
    do: search(Tuple.to_list(tuple) ++ terms, left - 1)

  defp search([[head | tail] | terms], left), do: search([head, tail | terms], left - 1)

  defp search([fun | terms], left) when is_function(fun) do
    {:env, captured} = :erlang.fun_info(fun, :env)
    search([captured | terms], left - 1)
  end

  if :erlang.system_info(:otp_release) < ~c"27" do
    defp search([float | terms], left) when is_float(float),
      do: <<float::float>> != <<1::1, 0::63>> and search(terms, left - 1)
  end

  defp search([_other | terms], left), do: search(terms, left - 1)
end
