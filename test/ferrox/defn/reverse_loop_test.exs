if Code.ensure_loaded?(Nx.Defn) do
  defmodule Ferrox.Defn.ReverseLoopTest do
    use Ferrox.DefnCase, async: true

    # Older releases differentiate the trips of a loop from the first to the last.
    @reverses Version.match?("#{Application.spec(:nx, :vsn)}", ">= 0.13.1-dev")

    defn recurrent(inputs, state, weights, bias, trips) do
      {_, state, _, _, _, _} =
        while {i = 0, state, inputs, weights, bias, trips}, i < trips do
          {i + 1, Nx.tanh(Nx.dot(state, weights) + inputs[i] + bias), inputs, weights, bias,
           trips}
        end

      Nx.sum(state * state)
    end

    defn recurrent_gradient(inputs, state, weights, bias, trips) do
      value_and_grad({inputs, state, weights, bias}, fn {inputs, state, weights, bias} ->
        recurrent(inputs, state, weights, bias, trips)
      end)
    end

    defn(weights_gradient(inputs, state, weights, bias, trips),
      do: grad(weights, &recurrent(inputs, state, &1, bias, trips))
    )

    defp arguments(trips) do
      key = Nx.Random.key(3)
      {inputs, key} = Nx.Random.normal(key, shape: {6, 4, 5})
      {state, key} = Nx.Random.normal(key, shape: {4, 5})
      {weights, key} = Nx.Random.normal(key, shape: {5, 5})
      {bias, _key} = Nx.Random.normal(key, shape: {5})
      [inputs, state, weights, bias, trips]
    end

    test "gradients of a loop for any number of trips" do
      for trips <- [-1, 0, 1, 2, 6] do
        same!(&recurrent_gradient/5, arguments(trips))
        same!(&weights_gradient/5, arguments(trips))
      end

      printed = explained(&weights_gradient/5, arguments(6))
      assert printed =~ "gradient of" == @reverses
      # The gradient of the inputs, which the loop is passed, is not asked for.
      refute @reverses and printed =~ ~r/f32\[6\]\[4\]\[5\] = (add|put_slice)/
    end

    defn nested(x, outer) do
      {_, x, _} =
        while {i = 0, x, outer}, i < outer do
          {_, x} =
            while {j = 0, x}, j < 3 do
              {j + 1, if(Nx.sum(x) > j, do: Nx.sin(x) * 1.5, else: x + 0.25)}
            end

          {i + 1, Nx.cos(x), outer}
        end

      Nx.sum(x)
    end

    test "gradients of loops in loops, with conditions" do
      gradient = &Nx.Defn.value_and_grad(&1, fn x -> nested(x, &2) end)
      for outer <- 0..4, do: same!(gradient, [Nx.tensor([0.5, -1.25, 3.0]), outer])
    end

    test "gradients of gradients" do
      second = &Nx.Defn.grad(&1, fn x -> Nx.sum(Nx.Defn.grad(x, fn x -> nested(x, 2) end)) end)
      same!(second, [Nx.tensor([0.5, -1.25, 3.0])])
    end

    test "values that a loop computes for nothing are left out, unless they fail" do
      for fun <- [
            &Nx.quotient(&2, &1),
            &Nx.add/2,
            fn x, _ -> x end,
            fn _, acc -> acc end,
            fn _, _ -> 7 end
          ] do
        same!(fn x -> Nx.reduce(x, 3, fun) end, [Nx.tensor([1, 2, 1])])
        same!(&beside/2, [Nx.tensor([1, 2, 1]), 5])
        same!(fn x -> elem(counted(x, fun: fun), 0) end, [Nx.tensor([1, 2, 1])])
      end

      failing = fn x -> elem(counted(x, fun: &Nx.quotient(&2, &1)), 0) end

      for compiler <- [Ferrox, Nx.Defn.Evaluator] do
        assert_raise ArgumentError, ~r/zero/, fn ->
          Nx.Defn.jit_apply(failing, [Nx.tensor([1, 0])], compiler: compiler)
        end
      end
    end

    defn counted(x, opts \\ []) do
      while {i = 0, last = 0, x}, i < 3 do
        {i + 1, last + fold(x, opts[:fun]), x}
      end
    end

    deftransformp(fold(x, fun), do: Nx.reduce(x, 0, fun))

    # Nothing of the gradient is computed in a trip.
    defn(beside(x, n), do: grad(Nx.as_type(x, :f32), &shifted(&1, n)))

    defn shifted(x, n) do
      {_, x, _} =
        while {i = 0, x, n}, i < n do
          {i + 1, x + 1, n}
        end

      Nx.sum(x)
    end

    # The loop that Nx makes of a gradient, and the same with one part changed each.
    defn like_a_gradient(x, g, trips, opts \\ []) do
      change = opts[:change]

      {_, g, left, _, _} =
        while {x, g, k = trips, j = 0, start = x}, above?(k, change) do
          forward? = j < k - bound(change)
          body = Nx.sin(x)
          gradient = if_changed(change, :reads_number, g * Nx.cos(x), g * Nx.cos(x) * k)
          restarted = if_changed(change, :restart, start, start + 1)

          {
            Nx.select(forward?, body, restarted),
            Nx.select(forward?, if_changed(change, :forward, g, g + 1), gradient),
            Nx.select(forward?, k, k - step(change)),
            Nx.select(forward?, j + 1, if_changed(change, :zero, 0, Nx.min(j, 1))),
            if_changed(change, :start, start, start * 1.5)
          }
        end

      {g, left}
    end

    deftransformp(above?(k, :condition), do: Nx.greater(k, 1))
    deftransformp(above?(k, _), do: Nx.greater(k, 0))
    deftransformp(bound(:bound), do: 2)
    deftransformp(bound(_), do: 1)
    deftransformp(step(:step), do: 2)
    deftransformp(step(_), do: 1)
    deftransformp(if_changed(change, change, _same, changed), do: changed)
    deftransformp(if_changed(_change, _name, same, _changed), do: same)

    @changes [:condition, :bound, :step, :reads_number, :restart, :forward, :zero, :start]

    # The function that captures the change is compiled for each, of which the compiler warns.
    @tag :capture_log
    test "loops that only look like gradients are run as they are" do
      x = Nx.tensor([0.5, 1.5])

      for change <- [:none | @changes], trips <- [-2, 0, 1, 5] do
        fun = fn x, g, trips -> like_a_gradient(x, g, trips, change: change) end
        same!(fun, [x, Nx.tensor([1.0, 2.0]), trips])
        printed = explained(fun, [x, Nx.tensor([1.0, 2.0]), trips])
        assert {change, printed =~ "gradient of"} == {change, change == :none}
      end
    end
  end
end
