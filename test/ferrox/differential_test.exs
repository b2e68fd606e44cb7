if Code.ensure_loaded?(Nx) do
  defmodule Ferrox.DifferentialTest do
    # Results of Ferrox.Backend that do not have the bits of Nx.BinaryBackend's must be what
    # `explain` expects, computed independently of Ferrox, and the difference is in one of the
    # classes of `@kept`, or the test fails.
    use Ferrox.DifferentialCase, async: true

    import Ferrox.Bits, only: [bound_size: 1]

    alias Ferrox.{Differences, Generators, Oracle}

    @cases cases()
    @types types()

    @binary [:add, :subtract, :multiply, :divide, :pow, :remainder, :quotient, :atan2, :min] ++
              [:max, :bitwise_and, :bitwise_or, :bitwise_xor, :left_shift, :right_shift] ++
              [:equal, :not_equal, :greater, :less, :greater_equal, :less_equal] ++
              [:logical_and, :logical_or, :logical_xor]

    @transcendental Differences.transcendental()
    @kept Differences.kept()

    @unary [:sqrt, :abs, :bitwise_not, :ceil, :floor, :negate, :round, :sign] ++
             [:is_nan, :is_infinity, :logical_not, :conjugate, :real, :imag, :phase] ++
             [:population_count, :count_leading_zeros] ++ @transcendental

    @shapes [
      {{}, {}},
      {{}, {9}},
      {{9}, {}},
      {{67}, {67}},
      {{3, 5}, {5}},
      {{5}, {3, 5}},
      {{4, 3}, {4, 1}},
      {{4, 1}, {4, 3}},
      {{4, 1}, {1, 5}},
      {{1}, {6}},
      {{2, 3, 4}, {3, 1}},
      {{2, 1, 4}, {3, 4}},
      {{2, 2, 3}, {2, 2, 3}}
    ]

    ## Elementwise

    for op <- @binary do
      test "#{op}", context do
        for left <- @types, right <- @types, round <- 1..@cases do
          Generators.seed(context.seed, {unquote(op), left, right, round})
          {left_shape, right_shape} = Generators.pick(@shapes)
          l = tensor(left, left_shape)
          r = tensor(right, right_shape, right_data(unquote(op), left, right, right_shape))
          elementwise(context, :binary, unquote(op), [l, r])
        end

        report()
      end
    end

    # Shifts and integer powers by small counts; BinaryBackend would compute
    # the number in full.
    defp right_data(op, {l, _}, {r, bits} = type, shape)
         when op in [:pow, :left_shift, :right_shift] and l in [:s, :u] and r in [:s, :u] do
      largest = Integer.pow(2, if(r == :s, do: bits - 1, else: bits)) - 1
      lowest = if r == :s and :rand.uniform(8) == 1, do: -2, else: 0

      for _ <- 1..Nx.size(shape), into: <<>> do
        Oracle.encode(lowest + rem(:rand.uniform(140), largest + 1), type)
      end
    end

    defp right_data(_op, _, type, shape), do: Generators.data(type, Nx.size(shape))

    test "numbers as operands", context do
      numbers = [0, 1, -1, 3, 200, 70_000, 1.5, -0.0, 1.0e-3, 3.0e38] ++ [Complex.new(1.0, -2.5)]

      for op <- @binary, type <- @types, round <- 1..@cases do
        Generators.seed(context.seed, {:numbers, op, type, round})
        number = Generators.pick(numbers)
        tensor = tensor(type, Generators.pick([{}, {7}, {2, 3}]))

        # What Nx makes of the number next to the tensor.
        scalar = Nx.tensor(number)

        unless op in [:pow, :left_shift, :right_shift] and number == 70_000 do
          elementwise(context, :number, op, [tensor, scalar], &apply(Nx, op, [hd(&1), number]))
        end

        unless op in [:pow, :left_shift, :right_shift] and integer?(tensor) do
          elementwise(
            context,
            :number,
            op,
            [scalar, tensor],
            &apply(Nx, op, [number, List.last(&1)])
          )
        end
      end

      report()
    end

    for op <- @unary do
      # Of reals it is made by Nx, on the default backend.
      types = if op == :imag, do: [c: 64, c: 128], else: @types

      test "#{op}", context do
        for type <- unquote(types), round <- 1..(4 * @cases) do
          Generators.seed(context.seed, {unquote(op), type, round})

          elementwise(context, :unary, unquote(op), [
            tensor(type, Generators.pick([{}, {71}, {3, 4}]))
          ])
        end

        report()
      end
    end

    test "as_type", context do
      for from <- @types, to <- @types, round <- 1..(2 * @cases) do
        Generators.seed(context.seed, {:as_type, from, to, round})
        tensor = tensor(from, Generators.pick([{}, {71}, {3, 4}]))
        elementwise(context, :as_type, :as_type, [tensor], &Nx.as_type(hd(&1), to))
      end

      report()
    end

    test "select", context do
      for left <- @types, right <- @types, round <- 1..@cases do
        Generators.seed(context.seed, {:select, left, right, round})

        {shape, pred_shape} =
          Generators.pick([{{}, {}}, {{6}, {6}}, {{2, 3}, {2, 3}}, {{2, 3}, {}}])

        pred_type = Generators.pick(@types)
        {left_shape, right_shape} = {Generators.pick([shape, {}]), Generators.pick([shape, {}])}
        shape = if pred_shape == {}, do: shape, else: pred_shape

        tensors = [
          tensor(pred_type, pred_shape),
          tensor(left, left_shape),
          tensor(right, right_shape)
        ]

        elementwise(context, :select, :select, tensors, &apply(Nx, :select, &1), shape)
      end

      report()
    end

    test "clip", context do
      for type <- @types, bound <- @types, round <- 1..@cases do
        Generators.seed(context.seed, {:clip, type, bound, round})
        {min, max} = {Generators.data(bound, 1), Generators.data(bound, 1)}

        tensors = [
          tensor(type, Generators.pick([{}, {9}, {2, 5}])),
          tensor(bound, {}, min),
          tensor(bound, {}, max)
        ]

        elementwise(context, :clip, :clip, tensors)
      end

      report()
    end

    ## Reductions and products

    for op <- [:sum, :product, :reduce_max, :reduce_min, :all, :any] do
      test "#{op}", context do
        for type <- @types, round <- 1..(6 * @cases) do
          Generators.seed(context.seed, {unquote(op), type, round})

          shape =
            Generators.pick([{1}, {40}, {3, 5}, {2, 3, 4}, {2, 1, 3, 2}, {2, 200}, {200, 2}])

          axes = Generators.pick([nil | axes(shape)])
          opts = [axes: axes, keep_axes: Generators.pick([true, false])]

          only =
            if unquote(op) == :product, do: :everyday, else: Generators.pick([:everyday, :any])

          tensor = tensor(type, shape, Generators.data(type, Nx.size(shape), only: only))
          reduction(context, unquote(op), tensor, opts)
        end

        report()
      end
    end

    for op <- [:argmax, :argmin] do
      test "#{op}", context do
        for type <- @types, round <- 1..(6 * @cases) do
          Generators.seed(context.seed, {unquote(op), type, round})
          shape = Generators.pick([{}, {1}, {40}, {3, 5}, {2, 3, 4}, {2, 1, 3, 2}])
          axis = Generators.pick([nil | Enum.to_list(0..(tuple_size(shape) - 1)//1)])

          opts = [
            axis: axis,
            tie_break: Generators.pick([:low, :high]),
            keep_axis: Generators.pick([true, false])
          ]

          moved(
            context,
            :arg_reduce,
            unquote(op),
            [tensor(type, shape)],
            &apply(Nx, unquote(op), [hd(&1), opts])
          )
        end

        report()
      end
    end

    for op <- [:cumulative_sum, :cumulative_product, :cumulative_min, :cumulative_max] do
      test "#{op}", context do
        for type <- @types, round <- 1..(6 * @cases) do
          Generators.seed(context.seed, {unquote(op), type, round})
          shape = Generators.pick([{1}, {2}, {7}, {40}, {3, 5}, {2, 3, 4}, {2, 200}, {200, 2}])
          axis = Generators.pick(Enum.to_list(0..(tuple_size(shape) - 1)))
          opts = [axis: axis, reverse: Generators.pick([true, false])]

          only =
            if unquote(op) == :cumulative_product,
              do: :everyday,
              else: Generators.pick([:everyday, :any])

          # The product of more may overflow on the way.
          most = if unquote(op) == :cumulative_product, do: 24, else: 400
          shape = if Nx.size(shape) > most, do: {3, 5}, else: shape
          axis = min(axis, tuple_size(shape) - 1)
          tensor = tensor(type, shape, Generators.data(type, Nx.size(shape), only: only))
          scan(context, unquote(op), tensor, Keyword.put(opts, :axis, axis))
        end

        report()
      end
    end

    test "all_close", context do
      for left <- @types, right <- @types, round <- 1..@cases do
        Generators.seed(context.seed, {:all_close, left, right, round})
        {left_shape, right_shape} = Generators.pick(@shapes)
        a = tensor(left, left_shape)

        b =
          if Generators.pick([true, false]) and left == right and left_shape == right_shape,
            do: nudged(a),
            else: tensor(right, right_shape)

        opts = [
          equal_nan: Generators.pick([true, false]),
          rtol: Generators.pick([1.0e-5, 0.0, 0.3]),
          atol: Generators.pick([1.0e-8, 0, 2.5, 300])
        ]

        close(context, a, b, opts)
      end

      report()
    end

    # The same elements, but for one that may be its neighbour.
    defp nudged(%{type: {_, bits}} = tensor) do
      [first | rest] = chunks(tensor.data.state, bits)
      <<n::bound_size(bits)-native>> = first
      data = Enum.into([<<n + :rand.uniform(2) - 1::size(bits)-native>> | rest], <<>>)
      tensor(tensor.type, tensor.shape, data)
    end

    # Functions that round nothing, or round as BinaryBackend does.
    defp functions({kind, bits}) do
      exact? = kind in [:s, :u] or {kind, bits} in [f: 32, f: 64]

      [{:second, fn x, _ -> x end}] ++
        if(kind == :c, do: [], else: [{:max, &Nx.max/2}, {:min, &Nx.min/2}]) ++
        if(exact?, do: [{:add, &Nx.add/2}, {:subtract, &Nx.subtract/2}], else: [])
    end

    test "reduce", context do
      for type <- @types -- [f: 8], round <- 1..(4 * @cases) do
        Generators.seed(context.seed, {:reduce, type, round})
        shape = Generators.pick([{}, {1}, {9}, {3, 5}, {2, 3, 4}, {2, 1, 3, 2}])
        axes = Generators.pick([nil | axes(shape)])
        opts = [axes: axes, keep_axes: Generators.pick([true, false])]
        tensor = tensor(type, shape, Generators.data(type, Nx.size(shape), only: :everyday))
        acc = Nx.tensor(1, type: type)
        {_, fun} = Generators.pick(functions(type))
        moved(context, :function, :reduce, [tensor], &Nx.reduce(hd(&1), acc, opts, fun))
      end

      report()
    end

    # BinaryBackend hands numbers to the function.
    test "window_reduce", context do
      for type <- @types -- [f: 8], round <- 1..(4 * @cases) do
        Generators.seed(context.seed, {:window_reduce, type, round})
        shape = Generators.pick([{9}, {5, 4}, {3, 4, 3}])
        some = fn choices -> for _ <- Tuple.to_list(shape), do: Generators.pick(choices) end
        padding = Enum.zip(some.([0, 1, 2]), some.([0, 1, 2]))

        opts = [
          strides: some.([1, 2, 3]),
          window_dilations: some.([1, 2]),
          padding: Generators.pick([:valid, :same, padding])
        ]

        window = List.to_tuple(some.([1, 2]))
        tensor = tensor(type, shape, Generators.data(type, Nx.size(shape), only: :everyday))
        acc = Nx.tensor(1, type: type)
        {_, fun} = Generators.pick(functions(type))
        typed = fn x -> if is_struct(x, Nx.Tensor), do: x, else: Nx.tensor(x, type: type) end
        fun = fn x, acc -> fun.(typed.(x), typed.(acc)) end

        moved(
          context,
          :function,
          :window_reduce,
          [tensor],
          &Nx.window_reduce(hd(&1), acc, window, opts, fun)
        )
      end

      report()
    end

    test "bitcast", context do
      for {_, bits} = from <- @types,
          {kind, ^bits} = to when kind != :c <- @types,
          elem(from, 0) != :c do
        Generators.seed(context.seed, {:bitcast, from, to})
        tensor = tensor(from, Generators.pick([{}, {7}, {3, 5}]))
        moved(context, :shape, :bitcast, [tensor], &Nx.bitcast(hd(&1), to))
      end

      report()
    end

    # Every set of axes but the empty one, for which Nx does nothing.
    defp axes(shape) do
      all = Enum.to_list(0..(tuple_size(shape) - 1)//1)

      all
      |> Enum.reduce([[]], fn axis, sets -> sets ++ Enum.map(sets, &(&1 ++ [axis])) end)
      |> tl()
    end

    test "dot", context do
      for left <- @types, right <- @types, round <- 1..@cases do
        Generators.seed(context.seed, {:dot, left, right, round})

        {left_shape, left_axes, left_batch, right_shape, right_axes, right_batch} =
          Generators.pick([
            {{5}, [0], [], {5}, [0], []},
            {{}, [], [], {4}, [], []},
            {{2, 3}, [1], [], {3, 4}, [0], []},
            {{3, 2}, [0], [], {4, 3}, [1], []},
            {{2, 3, 2}, [2, 1], [], {3, 2, 2}, [1, 0], []},
            {{2, 3, 2}, [2], [0], {2, 2, 3}, [1], [0]},
            {{2, 3}, [1], [0], {2, 3, 2}, [1], [0]},
            {{17, 20}, [1], [], {20, 18}, [0], []}
          ])

        only = Generators.pick([:everyday, :everyday, :any])
        l = tensor(left, left_shape, Generators.data(left, Nx.size(left_shape), only: only))
        r = tensor(right, right_shape, Generators.data(right, Nx.size(right_shape), only: only))
        dot(context, [l, left_axes, left_batch, r, right_axes, right_batch])
      end

      report()
    end

    ## What moves elements without changing them

    test "shape operations", context do
      for type <- @types, round <- 1..(4 * @cases) do
        Generators.seed(context.seed, {:shape, type, round})
        shape = Generators.pick([{1}, {7}, {3, 4}, {2, 3, 2}, {1, 3, 2, 2}, {33, 34}])
        tensor = tensor(type, shape)
        all = Enum.to_list(0..(tuple_size(shape) - 1))
        shuffled = Enum.shuffle(all)
        starts = for dim <- Tuple.to_list(shape), do: :rand.uniform(dim) - 1

        lengths =
          for {dim, start} <- Enum.zip(Tuple.to_list(shape), starts),
              do: :rand.uniform(dim - start)

        strides = for _ <- all, do: :rand.uniform(3)
        wider = List.to_tuple([2 | Tuple.to_list(shape)])
        reversed = Generators.pick(axes(shape))
        new = Generators.pick([0, -1])

        for {name, fun} <- [
              transpose: &Nx.transpose(&1, axes: shuffled),
              reverse: &Nx.reverse(&1, axes: reversed),
              slice: &Nx.slice(&1, starts, lengths, strides: strides),
              slice: &Nx.slice(&1, Enum.map(starts, fn start -> Nx.tensor(start) end), lengths),
              broadcast: &Nx.broadcast(&1, wider),
              reshape: &Nx.reshape(&1, {Nx.size(&1)}),
              squeeze: &Nx.squeeze/1,
              new_axis: &Nx.new_axis(&1, -1),
              tile: &Nx.tile(&1, [2, 1]),
              concatenate: &Nx.concatenate([&1, &1, Nx.reverse(&1)], axis: 0),
              stack: &Nx.stack([&1, Nx.reverse(&1)], axis: new)
            ] do
          moved(context, :shape, name, [tensor], &fun.(hd(&1)))
        end
      end

      report()
    end

    test "indices, padding and slices", context do
      for type <- @types, round <- 1..(4 * @cases) do
        Generators.seed(context.seed, {:indexed, type, round})
        shape = Generators.pick([{1}, {7}, {3, 4}, {2, 3, 2}, {1, 3, 2, 2}, {33, 34}])
        rank = tuple_size(shape)
        tensor = tensor(type, shape)
        axis = :rand.uniform(rank) - 1
        axes = Enum.filter(0..(rank - 1), fn _ -> :rand.uniform(2) == 1 end)
        axes = if axes == [], do: [axis], else: axes
        batch = Generators.pick([[1], [5], [2, 3]])

        rows = indices(batch ++ [length(axes)], Enum.map(axes, &elem(shape, &1)))
        places = indices(batch, [elem(shape, axis)])
        along = shape |> put_elem(axis, 5) |> Tuple.to_list() |> indices([elem(shape, axis)])
        # Without cutting off more than there is, where BinaryBackend fails.
        paddings =
          for dim <- Tuple.to_list(shape) do
            Generators.pick([
              {0, 0, 0},
              {:rand.uniform(3), :rand.uniform(3) - 1, :rand.uniform(3) - 1},
              {1 - min(dim, 2), 2, :rand.uniform(3) - 1},
              {2, 1 - min(dim, 2), :rand.uniform(3) - 1}
            ])
          end

        lengths = for dim <- Tuple.to_list(shape), do: :rand.uniform(dim)
        starts = for dim <- Tuple.to_list(shape), do: :rand.uniform(dim + 4) - 3
        slice = tensor(type, List.to_tuple(lengths))
        computed = Enum.map(starts, &Nx.tensor(&1, type: :s8))

        for {name, tensors, call} <- [
              {:gather, [tensor, rows], fn [t, i] -> Nx.gather(t, i, axes: axes) end},
              {:take, [tensor, places], fn [t, i] -> Nx.take(t, i, axis: axis) end},
              {:take_along_axis, [tensor, along],
               fn [t, i] -> Nx.take_along_axis(t, i, axis: axis) end},
              {:pad, [tensor, tensor(type, {})], fn [t, v] -> Nx.pad(t, v, paddings) end},
              {:put_slice, [tensor, slice], fn [t, s] -> Nx.put_slice(t, starts, s) end},
              {:put_slice, [tensor, slice], fn [t, s] -> Nx.put_slice(t, computed, s) end}
            ] do
          moved(context, :shape, name, tensors, call)
        end
      end

      report()
    end

    test "updates by indices", context do
      for type <- @types, op <- [:indexed_add, :indexed_put], round <- 1..(4 * @cases) do
        Generators.seed(context.seed, {op, type, round})
        shape = Generators.pick([{1}, {7}, {3, 4}, {2, 3, 2}, {33, 34}])
        rank = tuple_size(shape)
        axes = Enum.filter(0..(rank - 1), fn _ -> :rand.uniform(2) == 1 end)
        axes = if axes == [], do: [0], else: axes
        rows = :rand.uniform(20)
        rest = for axis <- Enum.to_list(0..(rank - 1)) -- axes, do: elem(shape, axis)
        indices = indices([rows, length(axes)], Enum.map(axes, &elem(shape, &1)))
        only = if op == :indexed_add, do: :everyday, else: :any

        [target, updates] =
          for shape <- [shape, List.to_tuple([rows | rest])],
              do: tensor(type, shape, Generators.data(type, Nx.size(shape), only: only))

        updated(context, op, [target, indices, updates], axes)
      end

      report()
    end

    # Indices of any integer type, each below one of the sizes in turn.
    defp indices(shape, dims) do
      count = Enum.product(shape)
      {_, bits} = type = Generators.pick(u: 8, u: 64, s: 8, s: 32, s: 64, u: 4, s: 2)
      largest = Integer.pow(2, bits - 1) - 1

      data =
        for {dim, _} <- Enum.zip(Stream.cycle(dims), 1..count),
            into: <<>>,
            do: Oracle.encode(min(:rand.uniform(dim) - 1, largest), type)

      tensor(type, List.to_tuple(shape), data)
    end

    # Floats narrower than 32 bits as in 64, rounded once.
    defp updated(context, op, [%{type: type} = target, indices, updates], axes) do
      narrow? = type in [{:f, 8}, {:f8_e4m3fn, 8}, {:bf, 16}, {:f, 16}]

      wide =
        &tensor(
          {:f, 64},
          &1.shape,
          for(x <- values(&1), into: <<>>, do: Oracle.encode(x, {:f, 64}))
        )

      call = fn [t, i, u] -> apply(Nx, op, [t, i, u, [axes: axes]]) end

      expected =
        if narrow? do
          result = call.([wide.(target), indices, wide.(updates)])
          data = for x <- values(result), into: <<>>, do: Oracle.encode(x, type)
          {:ok, tensor(type, target.shape, data)}
        else
          {:ok, call.([target, indices, updates])}
        end

      got = call.(Enum.map([target, indices, updates], &on_ferrox/1))

      check(context, {:indexed, op}, [target, indices, updates], expected, got, fn _, _, _, _ ->
        nil
      end)
    end

    test "sorts", context do
      # BinaryBackend misreads f8, so that it sorts them otherwise.
      for {kind, bits} = type when kind != :c and {kind, bits} != {:f, 8} <- @types,
          round <- 1..(4 * @cases) do
        Generators.seed(context.seed, {:sort, type, round})
        shape = Generators.pick([{1}, {7}, {3, 4}, {2, 3, 2}, {40}, {300}, {12, 34}])
        tensor = tensor(type, shape, Generators.data(type, Nx.size(shape)))
        axis = :rand.uniform(tuple_size(shape)) - 1
        direction = Generators.pick([:asc, :desc])
        opts = [axis: axis, direction: direction]
        k = :rand.uniform(elem(shape, tuple_size(shape) - 1))
        place_type = Generators.pick(s: 32, u: 8, s: 64, f: 32, u: 2)

        for {name, call} <- [
              sort: &Nx.sort(&1, opts),
              argsort: &Nx.argsort(&1, opts),
              argsort: &Nx.argsort(&1, [type: place_type] ++ opts),
              top_k: &elem(Nx.top_k(&1, k: k), 0),
              top_k: &elem(Nx.top_k(&1, k: k), 1)
            ] do
          moved(context, :shape, name, [tensor], &call.(hd(&1)))
        end
      end

      report()
    end

    test "concatenate and stack of two types", context do
      for left <- @types, right <- @types, round <- 1..@cases, op <- [:concatenate, :stack] do
        Generators.seed(context.seed, {op, left, right, round})
        {shape, axis} = Generators.pick([{{3}, 0}, {{2, 3}, 1}, {{2, 2, 2}, 0}])
        tensors = [tensor(left, shape), tensor(right, shape)]

        # As elements: those of one, then those of the other.
        rank = tuple_size(shape) + if(op == :stack, do: 1, else: 0)
        front = [axis | Enum.to_list(0..(rank - 1)) -- [axis]]

        call = fn tensors ->
          apply(Nx, op, [tensors, [axis: axis]]) |> Nx.transpose(axes: front)
        end

        joined(context, op, tensors, call, axis)
      end

      report()
    end

    test "iota and eye", context do
      for type <- @types, shape <- [{}, {5}, {2, 3}, {3, 3}, {2, 2, 3}, {4, 70}] do
        for axis <- [nil | Enum.to_list(0..(tuple_size(shape) - 1)//1)] do
          fun = &Nx.iota(shape, type: type, axis: axis, backend: &1)
          created(context, :iota, shape, axis, fun)
        end

        if tuple_size(shape) > 1,
          do: created(context, :eye, shape, nil, &Nx.eye(shape, type: type, backend: &1))
      end

      report()
    end

    defp created(context, op, shape, axis, fun) do
      expected = attempt(fn -> fun.(Nx.BinaryBackend) end)
      got = fun.(backend())

      check(context, {:create, op}, [], expected, got, fn i, type, got, direct ->
        {Differences.converted(counted(i, shape, axis), {:s, 64}, type, direct, got), i}
      end)
    end

    ## Comparing

    defp elementwise(context, family, op, tensors, call \\ nil, shape \\ nil) do
      call = call || (&apply(Nx, op, &1))
      expected = attempt(fn -> call.(tensors) end)
      got = attempt(fn -> call.(Enum.map(tensors, &on_ferrox/1)) end)

      case {expected, got} do
        {{:raised, %ArgumentError{} = error}, {:raised, error}} ->
          count(context, family, :both_raise, 1)

        {_, {:raised, %ArgumentError{} = error}} ->
          cond do
            faulty?(op, tensors) ->
              count(context, family, :both_raise, 1)
              elementwise(context, family, op, without_faults(op, tensors))

            op in [:atan2, :sign] and Enum.any?(tensors, &match?(%{type: {:c, _}}, &1)) ->
              count(context, family, :refused, 1)

            true ->
              fail(context, op, tensors, "Ferrox raised #{Exception.message(error)}")
          end

        {_, {:raised, error}} ->
          fail(context, op, tensors, "Ferrox raised #{inspect(error)}")

        {_, {:ok, got}} ->
          shape = shape || got.shape

          columns =
            for t <- tensors,
                do: t |> values() |> Oracle.broadcast(t.shape, shape) |> List.to_tuple()

          types = Enum.map(tensors, & &1.type)

          check(context, {family, op}, tensors, expected, got, fn i, type, got, direct ->
            values = Enum.map(columns, &elem(&1, i))

            direct =
              direct || Differences.element(op, type, Enum.zip_with(values, types, &scalar/2))

            if is_bitstring(direct) and Oracle.same?(got, direct, type),
              do: :equal,
              else: {Differences.explain(op, type, types, values, direct, got), values}
          end)
      end
    end

    # The element of an iota.
    defp counted(i, _shape, nil), do: i

    defp counted(i, shape, axis) do
      inner = shape |> Tuple.to_list() |> Enum.drop(axis + 1) |> Enum.product()
      i |> div(inner) |> rem(elem(shape, axis))
    end

    # Compares the elements; `explain` says why one differs, given its place, the
    # type, and the bits of both sides (nil if BinaryBackend raised).
    defp check(context, {family, op}, tensors, expected, %{type: {_, bits} = type} = got, explain) do
      assert got.data.__struct__ == backend()

      direct =
        case expected do
          {:ok, expected} ->
            assert {op, got.type, got.shape, got.names} ==
                     {op, expected.type, expected.shape, expected.names}

            chunks(expected.data.state, bits)

          {:raised, _} ->
            List.duplicate(nil, Nx.size(got.shape))
        end

      got = chunks(got.data.state, bits)
      assert length(got) == length(direct)

      classes =
        [got, direct, 0..(length(got) - 1)]
        |> Enum.zip_with(fn [got, direct, i] ->
          if same?(family, got, direct, type),
            do: :equal,
            else: {explain.(i, type, got, direct), got, direct}
        end)
        |> Enum.map(fn
          {:equal, _, _} -> :equal
          {{class, _}, _, _} when is_map_key(@kept, class) -> class
          other -> other
        end)

      for {class, n} <- Enum.frequencies(classes),
          is_atom(class),
          do: count(context, family, class, n)

      case Enum.reject(classes, &is_atom/1) do
        [] ->
          :ok

        [{why, got, direct} | _] = all ->
          fail(
            context,
            op,
            tensors,
            "#{length(all)} elements differ, the first in #{inspect(type)}: Ferrox #{show(got, type)}, " <>
              "BinaryBackend #{show(direct, type)}, #{inspect(why)}"
          )
      end
    end

    # What only moves elements moves the bits of a NaN too.
    defp same?(_family, _got, nil, _type), do: false
    defp same?(:shape, got, direct, _type), do: got == direct
    defp same?(_family, got, direct, type), do: Oracle.same?(got, direct, type)

    defp show(nil, _), do: "raised"
    defp show(bits, type), do: inspect(Oracle.decode(bits, type))

    ## Reductions

    defp reduction(context, op, tensor, opts) do
      call = fn tensor -> apply(Nx, op, [tensor, opts]) end
      groups = groups(tensor.shape, opts[:axes])
      values = tensor |> values() |> List.to_tuple()

      case {attempt(fn -> call.(tensor) end), attempt(fn -> call.(on_ferrox(tensor)) end)} do
        {{:raised, %ArgumentError{} = error}, {:raised, error}} ->
          count(context, :reduction, :both_raise, 1)

        {_, {:raised, error}} ->
          fail(context, op, [tensor], "Ferrox raised #{inspect(error)}")

        {expected, {:ok, got}} ->
          check(context, {:reduction, op}, [tensor], expected, got, fn i, type, got, _direct ->
            group = groups |> Enum.at(i) |> Enum.map(&elem(values, &1))
            {Differences.folded(op, tensor.type, type, group, got), group}
          end)
      end
    end

    defp scan(context, op, tensor, opts) do
      call = fn tensor -> apply(Nx, op, [tensor, opts]) end
      values = tensor |> values() |> List.to_tuple()
      places = Differences.prefixes(tensor.shape, opts[:axis], opts[:reverse])

      case {attempt(fn -> call.(tensor) end), attempt(fn -> call.(on_ferrox(tensor)) end)} do
        {{:raised, %ArgumentError{}}, {:raised, %ArgumentError{}}} ->
          count(context, :cumulative, :both_raise, 1)

        # Nx does nothing along an axis of one.
        {_, {:raised, %ArgumentError{}}}
        when op in [:cumulative_min, :cumulative_max] and elem(tensor.type, 0) == :c and
               elem(tensor.shape, 0) == 1 ->
          count(context, :cumulative, :refused, 1)

        {_, {:raised, error}} ->
          fail(context, op, [tensor], "Ferrox raised #{inspect(error)}")

        {expected, {:ok, got}} ->
          check(context, {:cumulative, op}, [tensor], expected, got, fn i, type, got, _direct ->
            prefix = places |> Enum.at(i) |> Enum.map(&elem(values, &1))
            {Differences.accumulated(op, type, prefix, got), prefix}
          end)
      end
    end

    defp close(context, a, b, opts) do
      {expected, got} =
        {attempt(fn -> Nx.all_close(a, b, opts) end),
         attempt(fn -> Nx.all_close(on_ferrox(a), on_ferrox(b), opts) end)}

      case got do
        {:raised, error} ->
          fail(context, :all_close, [a, b], "Ferrox raised #{inspect(error)}")

        {:ok, got} ->
          check(context, {:all_close, :all_close}, [a, b], expected, got, fn _, type, got, _ ->
            shape = Nx.shape(Nx.add(Nx.iota(a.shape), Nx.iota(b.shape)))
            [left, right] = for t <- [a, b], do: Oracle.broadcast(values(t), t.shape, shape)

            close? =
              Enum.zip(left, right) |> Enum.all?(fn {x, y} -> Differences.close?(x, y, opts) end)

            same? = got == Oracle.encode(if(close?, do: 1, else: 0), type)
            {if(same?, do: :closer, else: :wrong), opts}
          end)
      end
    end

    # The places of the elements that each result is made of.
    defp groups(shape, axes) do
      all = Enum.to_list(0..(tuple_size(shape) - 1)//1)
      axes = axes || all
      inner = axes |> Enum.map(&elem(shape, &1)) |> Enum.product()

      shape
      |> Nx.iota(backend: Nx.BinaryBackend)
      |> Nx.transpose(axes: (all -- axes) ++ axes)
      |> Nx.to_flat_list()
      |> Enum.chunk_every(inner)
    end

    defp dot(context, [left, left_axes, left_batch, right, right_axes, right_batch] = args) do
      [expected, got] =
        for to_backend <- [& &1, &on_ferrox/1] do
          attempt(fn ->
            apply(Nx, :dot, [
              to_backend.(left),
              left_axes,
              left_batch,
              to_backend.(right),
              right_axes,
              right_batch
            ])
          end)
        end

      {left_rows, right_rows} =
        {rows(left.shape, left_axes, left_batch), rows(right.shape, right_axes, right_batch)}

      pairs = for {ls, rs} <- Enum.zip(left_rows, right_rows), l <- ls, r <- rs, do: {l, r}
      {left_values, right_values} = {List.to_tuple(values(left)), List.to_tuple(values(right))}

      case got do
        {:raised, error} ->
          fail(
            context,
            {:dot, Enum.reject(args, &is_map/1)},
            [left, right],
            "Ferrox raised #{inspect(error)}"
          )

        {:ok, got} ->
          check(context, {:dot, :dot}, [left, right], expected, got, fn i, type, got, _direct ->
            {ls, rs} = Enum.at(pairs, i)

            terms =
              Enum.zip_with(ls, rs, fn l, r -> [elem(left_values, l), elem(right_values, r)] end)

            {Differences.dotted(terms, type, got), terms}
          end)
      end
    end

    # The places of the rows that are multiplied, in each of the batch.
    defp rows(shape, axes, batch) do
      free = Enum.to_list(0..(tuple_size(shape) - 1)//1) -- (axes ++ batch)
      size = fn axes -> axes |> Enum.map(&elem(shape, &1)) |> Enum.product() end

      shape
      |> Nx.iota(backend: Nx.BinaryBackend)
      |> Nx.transpose(axes: batch ++ free ++ axes)
      |> Nx.to_flat_list()
      |> Enum.chunk_every(size.(axes))
      |> Enum.chunk_every(size.(free))
    end

    # `call` gives the elements of the first tensor, then those of the second.
    defp joined(context, op, tensors, call, axis) do
      expected = attempt(fn -> call.(tensors) end)
      got = call.(Enum.map(tensors, &on_ferrox/1))

      all =
        for %{type: type} = tensor <- tensors,
            value <- tensor |> Nx.transpose(axes: front(tensor.shape, axis)) |> values(),
            do: {value, type}

      all = if op == :stack, do: for(t <- tensors, v <- values(t), do: {v, t.type}), else: all

      check(context, {:joined, op}, tensors, expected, got, fn i, type, got, direct ->
        {value, from} = Enum.at(all, i)
        {Differences.converted(value, from, type, direct, got), value}
      end)
    end

    defp front(shape, axis), do: [axis | Enum.to_list(0..(tuple_size(shape) - 1)) -- [axis]]

    # Elements are copied bit by bit, whatever they are.
    defp moved(context, family, op, tensors, call) do
      # BinaryBackend misreads f8, which matters where values are compared.
      read = if family == :arg_reduce, do: Enum.map(tensors, &without_f8/1), else: tensors

      case {attempt(fn -> call.(read) end),
            attempt(fn -> call.(Enum.map(tensors, &on_ferrox/1)) end)} do
        {{:raised, %ArgumentError{} = error}, {:raised, error}} ->
          count(context, family, :both_raise, 1)

        {_, {:raised, error}} ->
          fail(context, op, tensors, "Ferrox raised #{inspect(error)}")

        {expected, {:ok, got}} ->
          check(context, {family, op}, tensors, expected, got, fn _, _, _, _ -> nil end)
      end
    end

    defp without_f8(%{type: {:f, 8}} = tensor) do
      data = for x <- values(tensor), into: <<>>, do: Oracle.encode(x, {:f, 64})
      tensor({:f, 64}, tensor.shape, data)
    end

    defp without_f8(tensor), do: tensor

    ## Tensors

    defp tensor(type, shape), do: tensor(type, shape, Generators.data(type, Nx.size(shape)))

    defp tensor(type, shape, data), do: Differences.tensor(type, shape, data)

    defp scalar(value, type), do: tensor(type, {}, Oracle.encode(value, type))

    # Integer operations that have no result for some right operands.
    defp faulty?(op, [left, right]) do
      integer?(left) and integer?(right) and Enum.any?(values(right), &fault?(op, &1))
    end

    defp faulty?(_, _), do: false

    defp fault?(op, n) when op in [:quotient, :remainder], do: n == 0
    defp fault?(op, n) when op in [:pow, :left_shift, :right_shift], do: n < 0
    defp fault?(_, _), do: false

    defp without_faults(op, [left, right]) do
      data =
        for n <- values(right),
            into: <<>>,
            do: Oracle.encode(if(fault?(op, n), do: 1, else: n), right.type)

      [left, tensor(right.type, right.shape, data)]
    end

    defp integer?(%{type: {kind, _}}), do: kind in [:s, :u]
  end
end
