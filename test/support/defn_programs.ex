if Code.ensure_loaded?(Nx.Defn) do
  defmodule Ferrox.DefnPrograms do
    @moduledoc """
    Random functions of tensors, for comparing compilers: programs as data, which `run/2` interprets
    with the functions of Nx. The same seed gives the same program.

    A step is a name, a seed of its own, and the steps inside of it: of the branches of a condition, of
    a loop's body. It takes some of the values so far, which are the results of the steps before and
    the inputs. An operation that can't be had of these values, such as the product of matrices that
    don't fit, is left out, but for some programs, which raise.
    """

    import Nx.Defn
    import Ferrox.DefnArguments, except: [argument: 3, few: 2, like: 2]

    alias Ferrox.{DefnOperations, Generators}

    defmodule Pair do
      @moduledoc false
      @derive {Nx.Container, containers: [:left, :right], keep: [:name]}
      defstruct [:left, :right, :name]
    end

    @small [{}, {1}, {3}, {4, 3}, {1, 3}, {4, 1}, {2, 4, 3}, {3, 3}]
    # Large enough to be computed together, by rows, with the axes of the small ones.
    @large [{}, {1}, {100}, {70, 100}, {1, 100}, {70, 1}, {3, 70, 100}, {7000}]

    # Values are cut to that many elements.
    @max_size 45_000

    # The steps with steps inside, and the numbers of bodies that these may have.
    @nested [
      condition: 2..3,
      condition: 2..2,
      loop: 1..1,
      loop: 1..1,
      loop_over: 1..1,
      grad: 1..1
    ]

    @doc """
    A program of some steps and a container of inputs. Half of the programs are of large tensors.
    """
    def random(seed, steps) do
      :rand.seed(:exsss, seed)
      shapes = if rem(seed, 2) == 0, do: @small, else: @large
      inputs = for _ <- 1..Enum.random(1..4), do: input(shapes)
      inputs = contain(inputs, Enum.random([:tuple, :map, :nested, :struct]))
      program = for _ <- 1..steps, do: step(2)
      {{program, Enum.random([1, 2, 3]), :rand.uniform(1_000_000), rem(seed, 8) == 7}, inputs}
    end

    ## Drawing

    defp step(depth) do
      if depth > 0 and :rand.uniform(8) == 1 do
        {name, bodies} = Enum.random(@nested)
        {name, salt(), for(_ <- 1..Enum.random(bodies), do: inside(name, depth - 1))}
      else
        {DefnOperations.random(), salt(), []}
      end
    end

    defp salt, do: :rand.uniform(1_000_000_000)
    defp steps(depth), do: for(_ <- 1..Enum.random(1..4), do: step(depth))

    # Some gradients are of a loop, whose gradient Nx can write only if all values are of f32.
    defp inside(:grad, _depth) do
      of_f32 = fn ->
        for(_ <- 1..Enum.random(1..3), do: {DefnOperations.random_of_f32(), salt(), []})
      end

      Enum.random([
        steps(0),
        steps(0),
        of_f32.(),
        of_f32.() ++ [{:loop_of_f32, salt(), [of_f32.()]}]
      ])
    end

    defp inside(_name, depth), do: steps(depth)

    ## Inputs

    defp input(shapes) do
      types = real_types() ++ [c: 64, c: 128]
      tensor = tensor(Enum.random(types), Enum.random(shapes))

      case :rand.uniform(16) do
        1 -> Nx.reverse(tensor)
        2 -> tensor |> Nx.transpose() |> named()
        3 -> Nx.slice_along_axis(Nx.stack([tensor, tensor]), 1, 1, axis: 0)
        4 -> named(tensor)
        n when n in 5..7 -> vectorized(tensor, n - 5)
        n when n in 8..10 -> unaligned(tensor, Enum.random([1, 3, 8, 16, 24]))
        11 -> Enum.random([0, 3, -1, 2.5])
        _ -> tensor
      end
    end

    defp tensor(type, shape) do
      count = Tuple.product(shape)

      data =
        case Enum.random([:easy, :easy, :everyday, :special]) do
          :easy -> easy(type, count)
          :everyday -> Generators.data(type, count, only: :everyday)
          :special -> Generators.data(type, count)
        end

      # Nx 0.9 takes whole bytes only.
      %{Nx.template(shape, type) | data: %Ferrox.Backend{state: data}}
    end

    defp easy({kind, _} = type, count) do
      numbers =
        for _ <- 1..count do
          if kind in [:s, :u],
            do: Enum.random(if(type == {:s, 2}, do: 0..1, else: 0..3)),
            else: Enum.random([0.0, -0.0, 1.0, 0.5, -1.5, 2.25, 100.0, :rand.normal()])
        end

      Nx.tensor(numbers, type: type).data.state
    end

    # The data within larger data, after some bits.
    defp unaligned(%{data: %{state: state} = data} = tensor, bits) do
      <<_::size(bits), part::bitstring>> = <<0::size(bits), state::bitstring>>
      %{tensor | data: %{data | state: part}}
    end

    defp named(tensor), do: Nx.rename(tensor, names(tensor.shape))

    # The first axes are vectorized.
    defp vectorized(%{shape: {size, _, _}} = tensor, 2),
      do: tensor |> Nx.vectorize(vector_name(size)) |> vectorized(1)

    # Loops may have a trip for each entry, and operations the product of the entries of two tensors.
    defp vectorized(%{shape: shape} = tensor, _axes) do
      if shape == {} or elem(shape, 0) > 100 or Nx.flat_size(tensor) > 7000,
        do: tensor,
        else: Nx.vectorize(tensor, vector_name(elem(shape, 0)))
    end

    ## Running

    @doc "The results of a program."
    def run({program, results, salt, strict?}, inputs) do
      Process.put({__MODULE__, :strict?}, strict?)
      values = interpret(program, Enum.reverse(Nx.Defn.Composite.flatten_list([inputs])))
      :rand.seed(:exsss, salt)
      contain(for(_ <- 1..results, do: pick(values)), container())
    end

    @doc "Programs that have less steps: one of the steps gives the value before it."
    def smaller({program, results, salt, strict?}),
      do: for(steps <- less(program), do: {steps, results, salt, strict?})

    defp less(steps) do
      Enum.flat_map(Enum.with_index(steps), fn {{name, salt, bodies}, index} ->
        shorter =
          for {body, at} <- Enum.with_index(bodies),
              body <- less(body),
              do: {name, salt, List.replace_at(bodies, at, body)}

        for step <- [{:same, 0, []} | shorter],
            name != :same,
            do: List.replace_at(steps, index, step)
      end)
    end

    defp interpret(program, values) do
      Enum.reduce(program, values, fn {name, salt, bodies}, values ->
        :rand.seed(:exsss, salt)
        results = attempt(fn -> apply_step(name, bodies, values) end)
        Enum.map(results, &cut/1) ++ values
      end)
    end

    # The results of a step in a list.
    defp attempt(fun) do
      Nx.Defn.Composite.flatten_list([fun.()])
    rescue
      exception ->
        if Process.get({__MODULE__, :strict?}), do: reraise(exception, __STACKTRACE__), else: []
    end

    defp cut(value) do
      if Nx.flat_size(value) > @max_size or Nx.rank(value) > 5,
        do:
          value
          |> Nx.devectorize()
          |> Nx.flatten()
          |> Nx.slice([0], [min(100, Nx.flat_size(value))]),
        else: value
    end

    defp apply_step({_, _, _} = operation, [], values), do: DefnOperations.run(operation, values)
    defp apply_step(:same, _bodies, values), do: hd(values)

    # A condition with a container in each branch.
    defp apply_step(:condition, bodies, values) do
      predicates = for _ <- tl(bodies), do: Nx.any(pick(values))
      templates = for _ <- 1..Enum.random(1..3), do: pick(values)
      container = container()
      fit? = :rand.uniform(8) > 1

      branches =
        for body <- bodies do
          fn ->
            results = interpret(body, values)
            contain(fitted(results, templates, fit?), container)
          end
        end

      choose(List.to_tuple(predicates), branches: branches)
    end

    # A loop that counts, until a number, a value, or each vectorized entry to its own number.
    defp apply_step(:loop, [body], values) do
      carried = for _ <- 1..Enum.random(1..3), do: pick(values)
      same = pick(values)
      trips = Enum.random(0..4)

      {zero, more} =
        case Enum.random([:number, :number, :number, :value, :vectorized, :float]) do
          :number -> {0, fn i, _carried, _same -> Nx.less(i, trips) end}
          :float -> {0.0, fn i, _carried, _same -> Nx.less(i, trips) end}
          :value -> {0, &Nx.logical_and(Nx.less(&1, trips), below(&2, &3))}
          :vectorized -> {0, fn i, _carried, same -> Nx.less(i, entries(same, trips)) end}
        end

      loop(zero, contain(carried, container()), same, more: more, body: body(body, carried, :f64))
    end

    defp apply_step(:loop_of_f32, [body], values) do
      carried = for _ <- 1..Enum.random(1..2), do: values |> pick() |> real() |> Nx.as_type(:f32)
      same = values |> pick() |> real() |> Nx.as_type(:f32)
      trips = Enum.random(0..4)
      body = body(body, carried, :f32)

      loop(0, contain(carried, container()), same,
        more: fn i, _, _ -> Nx.less(i, trips) end,
        body: body
      )
    end

    # A loop over a range, unrolled or not, or over the entries of a tensor.
    defp apply_step(:loop_over, [body], values) do
      carried = for _ <- 1..Enum.random(1..2), do: pick(values)
      container = contain(carried, container())
      body = body(body, carried, :f64)

      case Enum.random([:range, :unrolled, :tensor]) do
        :tensor ->
          over(container, few(pick(values)), body: body, unroll: false)

        :range ->
          over_range(container, pick(values),
            range: 0..Enum.random(0..4),
            body: body,
            unroll: false
          )

        :unrolled ->
          over_range(container, pick(values),
            range: 3..1//-1,
            body: body,
            unroll: Enum.random([2, true])
          )
      end
    end

    # The gradient of a value, or the value too, for one or two values.
    defp apply_step(:grad, [body], values) do
      loop? = Enum.any?(body, &match?({:loop_of_f32, _, _}, &1))

      convert =
        &(&1
          |> real()
          |> inexact()
          |> if(loop?, do: fn a -> Nx.as_type(a, :f32) end, else: fn a -> a end).())

      vars = for _ <- 1..Enum.random(1..2), do: convert.(pick(values))
      vars = if match?([_], vars), do: hd(vars), else: List.to_tuple(vars)
      others = if loop? or :rand.uniform(2) == 1, do: [], else: values
      {choice, gradient} = {:rand.uniform(4), Enum.random([:grad, :value_and_grad])}

      fun = fn vars ->
        inner = interpret(body, Nx.Defn.Composite.flatten_list([vars]) ++ others)
        inner |> Enum.at(rem(choice - 1, length(inner))) |> real() |> Nx.sum()
      end

      apply(Nx.Defn, gradient, [vars, fun])
    end

    # A loop's body as a function, in which the value that is the same in all trips is also there in
    # another type, transposed and reduced.
    defp body(steps, templates, other) do
      fit? = :rand.uniform(24) > 1

      fn container, same ->
        squares =
          Nx.sum(Nx.multiply(same, same), axes: Enum.take(Nx.axes(same), -1), keep_axes: true)

        as_other = if other == :f32, do: same, else: Nx.as_type(real(same), other)
        carried = Nx.Defn.Composite.flatten_list([container])
        results = interpret(steps, carried ++ [Nx.transpose(same), as_other, squares, same])
        like(container, fitted(results, templates, fit?))
      end
    end

    defp below(carried, same) do
      [first | _] = Nx.Defn.Composite.flatten_list([carried])
      Nx.less_equal(Nx.sum(first(real(first))), Nx.sum(real(same))) |> Nx.any()
    end

    defp entries(same, trips),
      do: same |> real() |> first() |> Nx.as_type(:s32) |> Nx.remainder(trips + 1)

    defp few(value),
      do: if(Nx.rank(value) > 0 and Nx.axis_size(value, 0) <= 7, do: value, else: Nx.iota({3}))

    deftransformp choose({predicate}, opts) do
      [yes, no] = opts[:branches]
      choose_one(predicate, yes: yes, no: no)
    end

    deftransformp choose({first, second}, opts) do
      [one, two, three] = opts[:branches]
      choose_two(first, second, one: one, two: two, three: three)
    end

    defnp choose_one(predicate, opts) do
      if predicate do
        call(opts[:yes])
      else
        call(opts[:no])
      end
    end

    defnp choose_two(first, second, opts) do
      cond do
        first -> call(opts[:one])
        second -> call(opts[:two])
        true -> call(opts[:three])
      end
    end

    defnp loop(zero, carried, same, opts) do
      {_, carried, _} =
        while {i = zero, carried, same}, call(opts[:more], i, carried, same) do
          {i + 1, call(opts[:body], carried, same), same}
        end

      carried
    end

    defnp over_range(carried, same, opts) do
      {carried, _} =
        while {carried, same}, i <- opts[:range], unroll: opts[:unroll] do
          {call(opts[:body], carried, same * i), same}
        end

      carried
    end

    defnp over(carried, tensor, opts) do
      while carried, row <- tensor do
        call(opts[:body], carried, row)
      end
    end

    deftransformp(call(fun), do: fun.())
    deftransformp(call(fun, a, b), do: fun.(a, b))
    deftransformp(call(fun, a, b, c), do: fun.(a, b, c))

    ## Containers

    defp container, do: Enum.random([:single, :tuple, :tuple, :map, :nested, :struct])

    defp contain([value], :single), do: value

    defp contain([value | rest], :nested) when rest != [],
      do: {value, %{rest: List.to_tuple(rest)}}

    defp contain([value | rest], :struct) when rest != [],
      do: %Pair{left: value, right: List.to_tuple(rest), name: "pair"}

    defp contain(values, :map),
      do: values |> Enum.with_index() |> Map.new(fn {value, i} -> {:"r#{i}", value} end)

    defp contain(values, _container), do: List.to_tuple(values)

    # The container with other values.
    defp like(container, values) do
      {container, []} =
        Nx.Defn.Composite.traverse(container, values, fn _, [value | rest] -> {value, rest} end)

      container
    end

    # The latest values in place of those of a container, in their types and shapes if asked for.
    defp fitted(values, templates, fit?) do
      for {template, index} <- Enum.with_index(templates) do
        value = Enum.at(values, rem(index, length(values)))
        if fit?, do: fit(value, template), else: value
      end
    end

    # The value in the type and shape of another.
    defp fit(value, %{type: type, shape: shape, names: names, vectorized_axes: axes}) do
      value = if match?({:c, _}, type), do: value, else: real(value)

      value =
        if value.vectorized_axes == axes,
          do: value,
          else: Nx.devectorize(value, keep_names: false)

      if value.vectorized_axes == axes do
        value |> Nx.as_type(type) |> resize(shape) |> Nx.rename(names)
      else
        sizes = List.to_tuple(Keyword.values(axes) ++ Tuple.to_list(shape))

        value
        |> Nx.as_type(type)
        |> resize(sizes)
        |> Nx.revectorize(axes, target_shape: shape, target_names: names)
      end
    end
  end
end
