defmodule Ferrox.Defn.ReverseLoop do
  @moduledoc false
  # Recognizes the loop that `Nx.Defn.Grad` makes of the gradient of a `while`, since Nx 0.13.
  #
  # That loop has no memory of the values that the `while` had in its trips. It computes them again from
  # the start for each trip, `n * (n + 1) / 2` trips in all, each of which selects between a trip forward
  # and one backward, and computes both:
  #
  #     while {s, g, k, j, s0}, k > 0 do
  #       if j < k - 1,
  #         do: {body(s), g, k, j + 1, s0},
  #         else: {s0, gradient(s, g), k - 1, 0, s0}
  #     end
  #
  # where `s` are the values of the `while`, `g` the gradients, `k` the number of trips that are left and
  # `s0` the values at the start. A program keeps the values of each trip instead, and takes `n` trips
  # forward and `n` backward, whose results are the same bits.

  alias Ferrox.Defn.Expression

  @compile {:no_warn_undefined, Nx.Defn.Composite}

  @type t :: %{
          # The number of the values of the `while`.
          count: pos_integer,
          # Expressions of its values, which give those after a trip.
          forward: [map],
          # Expressions of its values and the gradients, which give the gradients before a trip.
          backward: [map]
        }

  @doc """
  The parts of a loop with this condition and body, or nil if it is another loop.

  Its values at the start are those of the `while`, the gradients, the number of trips, zero, and the
  values of the `while` again.
  """
  @spec parts(initial :: term, condition :: map, body :: term) :: t | nil
  def parts(initial, condition, body) do
    [initial, results] = Enum.map([initial, body], &Nx.Defn.Composite.flatten_list([&1]))
    count = div(length(initial) - 2, 3)
    {k, j, start} = {2 * count, 2 * count + 1, 2 * count + 2}

    with true <- count > 0 and length(initial) == 3 * count + 2,
         true <- matches?(condition, {:greater, [{:parameter, k}, 0]}),
         {values, [number, zero | again]} <- Enum.split(initial, 2 * count),
         %{type: {kind, bits} = type, shape: {}} when kind in [:s, :u] and bits >= 8 <- number,
         true <- constant?(zero, 0) and zero.type == type,
         true <- same?(Enum.take(values, count), again),
         {states, [next_k, next_j | passed]} <- Enum.split(results, 2 * count),
         true <- parameters?(passed, start),
         %{data: %{op: :select, args: [predicate | _]}} <- next_k,
         fewer = {:subtract, [{:parameter, k}, 1]},
         true <- matches?(predicate, {:less, [{:parameter, j}, fewer]}),
         true <- matches?(next_k, {:select, [predicate, {:parameter, k}, fewer]}),
         true <- matches?(next_j, {:select, [predicate, {:add, [1, {:parameter, j}]}, 0]}),
         [_ | _] = choices <- choices(states, predicate),
         {forward, kept} = choices |> Enum.take(count) |> Enum.unzip(),
         {kept_gradients, backward} = choices |> Enum.drop(count) |> Enum.unzip(),
         true <- parameters?(kept, start) and parameters?(kept_gradients, count),
         true <- reads_below?(forward, count) and reads_below?(backward, 2 * count) do
      %{count: count, forward: forward, backward: backward}
    else
      _ -> nil
    end
  end

  # Whether an expression is made in this way: of an operation and its arguments, a parameter, a number,
  # or another expression.
  defp matches?(%{data: %{op: :parameter, args: [index]}}, {:parameter, index}), do: true

  defp matches?(%{data: %{op: op, args: args}}, {op, expected}) when is_list(expected),
    do: length(args) == length(expected) and Enum.all?(Enum.zip_with(args, expected, &matches?/2))

  defp matches?(%{data: %{id: id}}, %{data: %{id: id}}), do: true
  defp matches?(expression, number) when is_integer(number), do: constant?(expression, number)
  defp matches?(_expression, _expected), do: false

  defp constant?(%{shape: {}, data: %{op: :constant, args: [number]}}, number), do: true
  defp constant?(_expression, _number), do: false

  defp same?(left, right), do: Enum.map(left, & &1.data.id) == Enum.map(right, & &1.data.id)

  defp parameters?(expressions, first) do
    expressions
    |> Enum.with_index(first)
    |> Enum.all?(fn {expression, index} -> matches?(expression, {:parameter, index}) end)
  end

  # The branches of expressions that all select by a predicate, and whose branches have their types and
  # shapes; else an empty list.
  defp choices(expressions, predicate) do
    Enum.reduce_while(Enum.reverse(expressions), [], fn
      %{data: %{op: :select, args: [by, left, right]}} = expression, choices ->
        if matches?(by, predicate) and alike?(left, expression) and alike?(right, expression),
          do: {:cont, [{left, right} | choices]},
          else: {:halt, []}

      _expression, _choices ->
        {:halt, []}
    end)
  end

  defp alike?(left, right),
    do:
      Map.take(left, [:type, :shape, :vectorized_axes]) ==
        Map.take(right, [:type, :shape, :vectorized_axes])

  # Whether the expressions read no parameter from this number on.
  defp reads_below?(expressions, bound) do
    {result, _seen} = reads_below?(expressions, bound, %{})
    result
  end

  defp reads_below?(expressions, bound, seen) do
    Enum.reduce_while(expressions, {true, seen}, fn
      %{data: %{op: :parameter, args: [index]}}, {true, seen} ->
        {if(index < bound, do: :cont, else: :halt), {index < bound, seen}}

      %{data: %{id: id}} = expression, {true, seen} ->
        {result, seen} =
          if is_map_key(seen, id),
            do: {true, seen},
            else: reads_below?(Expression.arguments(expression), bound, Map.put(seen, id, true))

        {if(result, do: :cont, else: :halt), {result, seen}}
    end)
  end
end
