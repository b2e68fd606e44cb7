defmodule Ferrox.Defn.Expression do
  @moduledoc false
  # What the compiler asks tensors and expressions of Nx, for every release of Nx that it supports.

  @compile {:no_warn_undefined, [Nx, Nx.Defn.Composite, Nx.Defn.Tree]}

  @doc "The shape with the vectorized axes, as Nx stores the elements."
  @spec shape(map) :: tuple
  def shape(%{vectorized_axes: [_ | _] = axes, shape: shape}),
    do: List.to_tuple(Keyword.values(axes) ++ Tuple.to_list(shape))

  def shape(%{shape: shape}), do: shape

  @doc "The data of a tensor, on whichever backend it is."
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
  Whether a container of expressions has hooks that are called (in Nx 0.9, whose hooks are tokens).
  """
  @spec hooks?(term, (atom, boolean -> boolean)) :: boolean
  def hooks?(container, hook?), do: elem(hooks(container, hook?, %{}), 0)

  defp hooks(container, hook?, seen) do
    [container]
    |> Nx.Defn.Composite.flatten_list()
    |> Enum.reduce({false, seen}, fn
      _expression, {true, seen} ->
        {true, seen}

      %{data: %{id: id}}, {false, seen} when is_map_key(seen, id) ->
        {false, seen}

      %{data: %{id: id, op: :token, args: [token]}}, {false, seen} ->
        seen = Map.put(seen, id, true)

        Enum.reduce(token.hooks, {false, seen}, fn
          _hook, {true, seen} ->
            {true, seen}

          %{name: name, callback: callback, expr: inner}, {false, seen} ->
            if hook?.(name, callback != nil), do: {true, seen}, else: hooks(inner, hook?, seen)
        end)

      %{data: %{id: id}} = expression, {false, seen} ->
        {_args, acc} =
          Nx.Defn.Tree.apply_args(expression, {false, Map.put(seen, id, true)}, fn arg, acc ->
            {found?, seen} = acc
            {arg, if(found?, do: {true, seen}, else: hooks(arg, hook?, seen))}
          end)

        acc
    end)
  end
end
