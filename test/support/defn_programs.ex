if Code.ensure_loaded?(Nx.Defn) do
  defmodule Ferrox.DefnPrograms do
    @moduledoc """
    Random functions of tensors, for comparing compilers: programs as data, which `run/2` interprets
    with the functions of Nx. The same seed gives the same program.
    """

    import Nx.Defn

    @small [{}, {1}, {3}, {4, 3}, {1, 3}, {4, 1}, {2, 4, 3}]
    # Large enough to be computed together, by rows, with the axes of the small ones.
    @large [{}, {1}, {100}, {70, 100}, {1, 100}, {70, 1}, {3, 70, 100}, {7000}]
    @types [
      f: 32,
      f: 32,
      f: 32,
      s: 32,
      u: 8,
      f: 64,
      bf: 16,
      f: 16,
      s: 64,
      s: 8,
      u: 16,
      u: 32,
      u: 64,
      s: 16,
      c: 64,
      c: 128,
      f: 8,
      s: 4,
      u: 2
    ]

    @unary [:exp, :tanh, :sqrt, :negate, :abs, :sigmoid, :log1p, :sin, :cos, :sign, :floor] ++
             [:logical_not, :erf, :rsqrt, :expm1, :ceil, :round, :is_nan, :real, :conjugate]
    @binary [:add, :subtract, :multiply, :divide, :min, :max, :pow, :remainder, :quotient, :atan2] ++
              [
                :equal,
                :less,
                :greater_equal,
                :logical_and,
                :logical_xor,
                :not_equal,
                :bitwise_and
              ]
    @reductions [:sum, :product, :reduce_max, :reduce_min, :all, :any, :argmax, :argmin, :mean]

    @doc """
    A program of some steps, its inputs, and how its results are picked. Half of the programs are of
    large tensors.
    """
    def random(seed, steps) do
      :rand.seed(:exsss, {seed, steps, 7})
      Process.put(__MODULE__, if(rem(seed, 2) == 0, do: @small, else: @large))
      inputs = for _ <- 1..Enum.random(1..4), do: {Enum.random(@types), shape()}
      program = for _ <- 1..steps, do: step(2)
      results = for _ <- 1..Enum.random(1..3), do: index()
      tensors = Enum.map(inputs, &tensor/1)
      {{program, results, Enum.random([:tuple, :map, :single])}, tensors}
    end

    defp shape, do: Enum.random(Process.get(__MODULE__))

    # Later values are picked more often, so that programs are deep.
    defp index, do: Enum.random([0, 0, 0, 1, 1, 2, 3, 4, 6, 9])

    @kinds [:unary, :unary, :binary, :binary, :binary, :binary, :select, :clip, :as_type] ++
             [:reshape, :transpose, :reverse, :slice, :dynamic_slice, :put_slice, :concatenate] ++
             [:stack, :pad, :reduce, :reduce, :cumulative, :dot, :sort, :argsort, :take, :gather] ++
             [:indexed_add, :constant, :iota, :window_sum, :broadcast, :fold, :bitcast, :top_k] ++
             [:softmax, :norm, :hook, :runtime]
    @nested [:cond, :cond, :while, :while, :grad]

    # What has a gradient, and results of f32 if its operands are.
    @of_f32 [:unary, :unary, :binary, :binary, :select, :clip, :reshape, :transpose, :reverse] ++
              [:slice, :concatenate, :stack, :pad, :reduce, :dot, :constant, :softmax, :norm]

    defp step(depth, kinds \\ nil) do
      kinds = kinds || @kinds ++ if(depth > 0, do: @nested, else: [])

      case Enum.random(kinds) do
        :unary ->
          {:unary, Enum.random(@unary), index()}

        :binary ->
          {:binary, Enum.random(@binary), index(), index()}

        :select ->
          {:select, index(), index(), index()}

        :clip ->
          {:clip, index()}

        :as_type ->
          {:as_type, index(), Enum.random(@types)}

        :reduce ->
          {:reduce, Enum.random(@reductions), index(), Enum.random([:all, :first, :last])}

        :constant ->
          {:constant, Enum.random([0, 1, 2, -1, 0.5, 1.0e10]), shape()}

        :iota ->
          shape = shape()
          axes = Enum.to_list(0..(tuple_size(shape) - 1)//1)
          {:iota, Enum.random(@types), shape, Enum.random([nil | axes])}

        :broadcast ->
          {:broadcast, index(), Enum.random([{2}, {2, 4}])}

        :fold ->
          {:fold, index(), Enum.random([:add, :max])}

        :cond ->
          {:cond, index(), index(), steps(depth - 1), index(), steps(depth - 1), index()}

        :while ->
          {:while, Enum.random(0..4), index(), index(), steps(depth - 1), index()}

        :grad ->
          {:grad, index(), Enum.random([steps(0), steps(0), with_loop()]), index()}

        kind when kind in [:put_slice, :dot, :concatenate, :stack, :take] ->
          {kind, index(), index()}

        kind when kind in [:dynamic_slice, :gather, :indexed_add] ->
          {kind, index(), index()}

        # Each hook of a program has a name of its own.
        :hook ->
          {:hook, index(), :rand.uniform(1_000_000_000)}

        kind ->
          {kind, index()}
      end
    end

    defp steps(depth, kinds \\ nil), do: for(_ <- 1..Enum.random(1..4), do: step(depth, kinds))

    # Steps with a loop whose gradient Nx can write.
    defp with_loop do
      loop = {:while, Enum.random(0..4), index(), index(), steps(0, @of_f32), index()}
      Enum.random([[], steps(0, @of_f32)]) ++ [loop]
    end

    defp tensor({{kind, _} = type, shape}) do
      count = Tuple.product(shape)

      numbers =
        for _ <- 1..count do
          case kind do
            kind when kind in [:s, :u] -> Enum.random(0..3)
            _ -> Enum.random([0.0, -0.0, 1.0, 0.5, -1.5, 2.25, 100.0, :rand.normal()])
          end
        end

      numbers |> Nx.tensor(type: type) |> Nx.reshape(shape)
    end

    @doc "The results of a program."
    def run({program, results, container}, inputs) do
      values = interpret(program, Enum.reverse(inputs))
      picked = Enum.map(results, &pick(values, &1))

      case container do
        :tuple -> List.to_tuple(picked)
        :map -> picked |> Enum.with_index() |> Map.new(fn {value, i} -> {:"r#{i}", value} end)
        :single -> hd(picked)
      end
    end

    defp interpret(program, values), do: Enum.reduce(program, values, &[apply_step(&1, &2) | &2])

    defp pick(values, index), do: Enum.at(values, rem(index, length(values)))

    defp apply_step({:unary, op, a}, values) do
      a = pick(values, a)
      complex? = match?({:c, _}, a.type)

      if complex? and op in [:sign, :floor, :ceil, :round, :erf, :is_nan, :logical_not, :rsqrt],
        do: Nx.negate(a),
        else: apply(Nx, op, [if(op in [:erf, :sqrt], do: float(a), else: a)])
    end

    defp apply_step({:binary, op, a, b}, values) do
      {a, b} = compatible(pick(values, a), pick(values, b))
      complex? = match?({:c, _}, a.type) or match?({:c, _}, b.type)
      integers? = integer?(a) and integer?(b)

      cond do
        op in [:quotient, :bitwise_and] and not integers? -> Nx.add(a, b)
        complex? and op not in [:add, :subtract, :multiply, :divide, :equal] -> Nx.multiply(a, b)
        op == :pow and integers? -> Nx.subtract(a, b)
        true -> apply(Nx, op, [a, b])
      end
    end

    defp apply_step({:select, p, a, b}, values) do
      {a, b} = compatible(pick(values, a), pick(values, b))
      p = pick(values, p)
      p = if compatible?(p.shape, Nx.add(a, b).shape), do: p, else: Nx.any(p)
      Nx.select(p, a, b)
    end

    defp apply_step({:clip, a}, values), do: values |> pick(a) |> real() |> Nx.clip(0, 2)
    defp apply_step({:as_type, a, {:c, _} = type}, values), do: Nx.as_type(pick(values, a), type)

    defp apply_step({:as_type, a, type}, values),
      do: values |> pick(a) |> real() |> Nx.as_type(type)

    defp apply_step({:reshape, a}, values), do: Nx.flatten(pick(values, a))
    defp apply_step({:transpose, a}, values), do: Nx.transpose(pick(values, a))
    defp apply_step({:reverse, a}, values), do: Nx.reverse(pick(values, a))

    defp apply_step({:slice, a}, values) do
      a = pick(values, a)
      lengths = for size <- Tuple.to_list(a.shape), do: max(size - 1, 1)
      Nx.slice(a, List.duplicate(0, Nx.rank(a)), lengths)
    end

    defp apply_step({:dynamic_slice, a, start}, values) do
      {a, start} = {pick(values, a), scalar_index(pick(values, start))}
      Nx.slice(a, List.duplicate(start, Nx.rank(a)), List.duplicate(1, Nx.rank(a)))
    end

    defp apply_step({:put_slice, a, b}, values) do
      {a, b} = {pick(values, a), pick(values, b)}
      update = Nx.broadcast(Nx.reshape(first(b), {}), Tuple.duplicate(1, Nx.rank(a)))
      Nx.put_slice(a, List.duplicate(scalar_index(b), Nx.rank(a)), update)
    end

    defp apply_step({op, a, b}, values) when op in [:concatenate, :stack] do
      {a, b} = {Nx.flatten(pick(values, a)), Nx.flatten(pick(values, b))}
      size = min(Nx.size(a), Nx.size(b))
      apply(Nx, op, [[Nx.slice(a, [0], [size]), Nx.slice(b, [0], [size])]])
    end

    defp apply_step({:pad, a}, values) do
      a = pick(values, a)
      Nx.pad(a, Nx.as_type(1, a.type), List.duplicate({1, 0, 0}, Nx.rank(a)))
    end

    defp apply_step({:reduce, op, a, axes}, values) do
      a = pick(values, a)
      a = if op in [:sum, :product, :mean], do: a, else: real(a)

      opts =
        cond do
          Nx.rank(a) == 0 or axes == :all -> []
          op in [:argmax, :argmin] -> [axis: if(axes == :first, do: 0, else: -1)]
          axes == :first -> [axes: [0], keep_axes: true]
          true -> [axes: [-1]]
        end

      apply(Nx, op, [a, opts])
    end

    defp apply_step({:cumulative, a}, values) do
      a = real(pick(values, a))
      if Nx.rank(a) == 0, do: a, else: Nx.cumulative_sum(a, axis: -1)
    end

    defp apply_step({:dot, a, b}, values) do
      {a, b} = {Nx.flatten(pick(values, a)), Nx.flatten(pick(values, b))}
      size = min(Nx.size(a), Nx.size(b))
      Nx.dot(Nx.slice(a, [0], [size]), Nx.slice(b, [0], [size]))
    end

    defp apply_step({op, a}, values) when op in [:sort, :argsort] do
      a = real(pick(values, a))
      if Nx.rank(a) == 0, do: a, else: apply(Nx, op, [a, [axis: 0]])
    end

    defp apply_step({:top_k, a}, values) do
      a = real(pick(values, a))

      if Nx.rank(a) == 0 do
        a
      else
        {top, indices} = Nx.top_k(a, k: 1)
        Nx.add(top, indices)
      end
    end

    defp apply_step({:softmax, a}, values) do
      a = float(real(pick(values, a)))
      axes = if Nx.rank(a) == 0, do: [], else: [-1]
      exp = Nx.exp(Nx.subtract(a, Nx.reduce_max(a, axes: axes, keep_axes: true)))
      Nx.divide(exp, Nx.sum(exp, axes: axes, keep_axes: true))
    end

    defp apply_step({:norm, a}, values) do
      a = float(real(pick(values, a)))
      axes = if Nx.rank(a) == 0, do: [], else: [-1]
      mean = Nx.mean(a, axes: axes, keep_axes: true)
      Nx.divide(Nx.subtract(a, mean), Nx.add(Nx.variance(a, axes: axes, keep_axes: true), 1))
    end

    # The values that hooks are given are sent to the process that runs the program.
    defp apply_step({:hook, a, name}, values) do
      a = pick(values, a)
      kernel = Nx.Defn.Kernel
      hook = if function_exported?(kernel, :io_call, 3), do: :io_call, else: :hook
      apply(kernel, hook, [a, :"hook_#{name}", &send(self(), {name, &1})])
    end

    defp apply_step({:runtime, a}, values) do
      a = pick(values, a)

      if function_exported?(Nx, :runtime_call, 3),
        do: apply(Nx, :runtime_call, [a, a, &__MODULE__.negated/2]),
        else: Nx.negate(a)
    end

    defp apply_step({:take, a, b}, values) do
      a = pick(values, a)
      if Nx.rank(a) == 0, do: a, else: Nx.take(a, Nx.new_axis(scalar_index(pick(values, b)), 0))
    end

    defp apply_step({:gather, a, b}, values) do
      a = Nx.flatten(pick(values, a))
      index = b |> then(&pick(values, &1)) |> scalar_index() |> Nx.min(Nx.size(a) - 1)
      Nx.gather(a, Nx.reshape(index, {1, 1}))
    end

    defp apply_step({:indexed_add, a, b}, values) do
      {a, b} = {Nx.flatten(pick(values, a)), pick(values, b)}
      index = b |> scalar_index() |> Nx.min(Nx.size(a) - 1)
      Nx.indexed_add(a, Nx.reshape(index, {1, 1}), Nx.reshape(first(b), {1}))
    end

    defp apply_step({:constant, number, shape}, _values), do: Nx.broadcast(number, shape)

    defp apply_step({:iota, type, shape, axis}, _values),
      do: Nx.iota(shape, type: type, axis: axis)

    defp apply_step({:window_sum, a}, values) do
      a = pick(values, a)
      window = Tuple.duplicate(1, Nx.rank(a))
      window = if Nx.rank(a) == 0, do: window, else: put_elem(window, 0, min(elem(a.shape, 0), 2))
      Nx.window_sum(a, window)
    end

    defp apply_step({:broadcast, a, lead}, values) do
      a = pick(values, a)

      if Nx.rank(a) > 2,
        do: a,
        else: Nx.broadcast(a, List.to_tuple(Tuple.to_list(lead) ++ Tuple.to_list(a.shape)))
    end

    defp apply_step({:fold, a, op}, values) do
      a = real(pick(values, a))
      {_, bits} = a.type

      if bits < 8,
        do: a,
        else: Nx.reduce(a, Nx.tensor(0, type: a.type), fn x, y -> apply(Nx, op, [x, y]) end)
    end

    defp apply_step({:bitcast, a}, values) do
      case pick(values, a) do
        %{type: {:f, 32}} = a -> Nx.bitwise_and(Nx.bitcast(a, {:s, 32}), 0xFFFF)
        a -> a
      end
    end

    defp apply_step({:cond, p, a, then_steps, then_index, else_steps, else_index}, values) do
      p = Nx.any(pick(values, p))
      template = pick(values, a)
      fun = fn steps, index -> fn -> fit(pick(interpret(steps, values), index), template) end end
      branch(p, then: fun.(then_steps, then_index), otherwise: fun.(else_steps, else_index))
    end

    defp apply_step({:while, trips, a, b, steps, index}, values),
      do: repeat({trips, a, b, steps, index}, values, :f64)

    defp apply_step({:while_of_f32, trips, a, b, steps, index}, values),
      do: repeat({trips, a, b, steps, index}, values, :f32)

    defp apply_step({:grad, a, steps, index}, values) do
      a = float(real(pick(values, a)))
      kinds = kinds(steps)

      # Nx 0.13 begins the gradients of a loop's values with f32, whatever the type of the gradient in a
      # trip is, and its evaluator then takes the bytes of one type for those of the other.
      {a, steps, others} =
        if :while in kinds,
          do: {Nx.as_type(a, :f32), of_f32(steps), [:as_type, :bitcast, :iota]},
          else: {a, steps, []}

      if Enum.any?(kinds, &(&1 in [:fold, :window_sum, :runtime | others])) do
        a
      else
        fun = fn x -> x |> then(&pick(interpret(steps, [&1]), index)) |> real() |> Nx.sum() end
        Nx.Defn.grad(a, fun)
      end
    end

    # A loop, in whose trips the value that is the same in all of them is also there in another type.
    defp repeat({trips, a_index, b, steps, index}, values, other) do
      {a, b} = {pick(values, a_index), pick(values, b)}

      # The last value is the same in every trip.
      fun = fn a, b, c ->
        squares = Nx.sum(Nx.multiply(c, c), axes: [-1], keep_axes: true)
        inner = interpret(steps, [a, b, Nx.transpose(c), Nx.as_type(c, other), squares, c])
        {fit(pick(inner, index), a), fit(pick(inner, index + 1), b)}
      end

      loop(a, b, real(pick(values, a_index + 1)), trips: trips, fun: fun)
    end

    # Loops whose values are all of f32 if those before them are.
    defp of_f32(steps) when is_list(steps), do: Enum.map(steps, &of_f32/1)

    defp of_f32({:while, trips, a, b, steps, index}),
      do: {:while_of_f32, trips, a, b, of_f32(steps), index}

    defp of_f32(step) do
      step
      |> Tuple.to_list()
      |> Enum.map(&if(is_list(&1), do: of_f32(&1), else: &1))
      |> List.to_tuple()
    end

    # The kinds of all steps, those of branches and loops too.
    defp kinds(steps) do
      Enum.flat_map(steps, fn step ->
        inner = step |> Tuple.to_list() |> Enum.filter(&is_list/1)
        [elem(step, 0) | Enum.flat_map(inner, &kinds/1)]
      end)
    end

    @doc false
    def negated(x, _opts), do: Nx.negate(x)

    defnp branch(p, opts) do
      if p do
        call(opts[:then])
      else
        call(opts[:otherwise])
      end
    end

    defnp loop(a, b, c, opts) do
      {_, a, _, _} =
        while {i = 0, a, b, c}, i < opts[:trips] do
          {a, b} = call(opts[:fun], a, b, c)
          {i + 1, a, b, c}
        end

      a
    end

    deftransformp(call(fun), do: fun.())
    deftransformp(call(fun, a, b, c), do: fun.(a, b, c))

    # The value in the type and shape of another.
    defp fit(value, %{type: type, shape: shape}) do
      value = if match?({:c, _}, type), do: value, else: real(value)
      value |> first() |> Nx.as_type(type) |> Nx.broadcast(shape)
    end

    defp first(value), do: value |> Nx.flatten() |> Nx.slice([0], [1]) |> Nx.reshape({})
    defp integer?(%{type: {kind, _}}), do: kind in [:s, :u]
    defp real(%{type: {:c, _}} = value), do: Nx.real(value)
    defp real(value), do: value
    defp float(%{type: {kind, _}} = value) when kind in [:s, :u], do: Nx.as_type(value, :f32)
    defp float(value), do: value

    defp scalar_index(value),
      do: value |> real() |> first() |> Nx.is_nan() |> Nx.logical_not() |> Nx.as_type(:s32)

    defp compatible(a, b), do: if(compatible?(a.shape, b.shape), do: {a, b}, else: {a, first(b)})

    defp compatible?(a, b) do
      {a, b} = {Enum.reverse(Tuple.to_list(a)), Enum.reverse(Tuple.to_list(b))}
      Enum.zip(a, b) |> Enum.all?(fn {x, y} -> x == y or x == 1 or y == 1 end)
    end
  end
end
