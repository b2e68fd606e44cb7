if Code.ensure_loaded?(Nx.Defn) do
  defmodule Ferrox.DefnTest do
    use ExUnit.Case, async: false

    import Nx.Defn

    alias Ferrox.Defn.{Cache, Lower}

    @moduletag :nx

    setup do
      Nx.default_backend(Ferrox.Backend)
      :ok
    end

    defp compiled(fun, args, opts \\ []),
      do: Nx.Defn.jit_apply(fun, args, opts ++ [compiler: Ferrox, fallback: :raise])

    defp evaluated(fun, args, opts \\ []),
      do: Nx.Defn.jit_apply(fun, args, [compiler: Nx.Defn.Evaluator] ++ opts)

    defp events(name, fun) do
      {result, events} = emitted([[:ferrox, :compiler, name]], fun)
      {result, for({_event, measurements, metadata} <- events, do: {measurements, metadata})}
    end

    # The events of compilations, by their last name.
    defp spans(fun) do
      names = [:start, :stop, :exception]
      {result, events} = emitted(for(name <- names, do: [:ferrox, :compile, name]), fun)
      {result, for({[_, _, name], numbers, metadata} <- events, do: {name, numbers, metadata})}
    end

    defp emitted(events, fun) do
      test = self()
      id = make_ref()
      :telemetry.attach_many(id, events, &__MODULE__.forward/4, {test, id})

      try do
        result = fun.()
        {result, received(id)}
      after
        :telemetry.detach(id)
      end
    end

    def forward(event, measurements, metadata, {test, id}),
      do: send(test, {id, event, measurements, metadata})

    defp received(id) do
      receive do
        {^id, event, measurements, metadata} -> [{event, measurements, metadata} | received(id)]
      after
        0 -> []
      end
    end

    describe "results" do
      test "are containers of tensors with names and vectorized axes on Ferrox.Backend" do
        x = Nx.tensor([[1.0, 2.0], [3.0, 4.0]], names: [:a, :b])
        v = Nx.vectorize(Nx.tensor([1, 2]), :v)

        result =
          compiled(fn x, v -> %{sum: Nx.sum(x, axes: [:b]), pair: {v, Nx.add(v, 1)}} end, [x, v])

        assert %{sum: sum, pair: {first, second}} = result
        assert %{names: [:a], data: %Ferrox.Backend{}} = sum
        assert Nx.to_flat_list(sum) == [3.0, 7.0]
        assert first == v
        assert second.vectorized_axes == [v: 2]
        assert Nx.to_flat_list(Nx.devectorize(second)) == [2, 3]
      end

      test "may be arguments, constants, and the same value twice" do
        x = Nx.iota({100})

        {a, b, c, d} =
          compiled(
            fn x ->
              y = Nx.add(x, 1)
              {x, 2, y, y}
            end,
            [x]
          )

        assert a == x
        assert b == Nx.tensor(2)
        assert c == Nx.add(x, 1)
        assert d == c
      end

      test "are computed from tensors of other backends" do
        x = Nx.tensor([1, 2, 3], backend: Nx.BinaryBackend)
        assert %{data: %Ferrox.Backend{}} = y = compiled(&Nx.multiply(&1, 2), [x])
        assert Nx.to_flat_list(y) == [2, 4, 6]
      end

      test "of types below a byte are cut to their bits" do
        x = Nx.tensor([1, 2, 3], type: :u4)
        y = compiled(fn x -> {x, Nx.add(x, 1), Nx.concatenate([x, x])} end, [x])
        assert {x, Nx.tensor([2, 3, 4], type: :u4), Nx.tensor([1, 2, 3, 1, 2, 3], type: :u4)} == y
      end
    end

    defn count_to(n, opts \\ []) do
      {_, x, _} =
        while {i = 0, x = 0.0, n}, i < n do
          {i + 1, tick(x + 1, opts), n}
        end

      x
    end

    defn grow(x, opts \\ []) do
      {_, x} =
        while {i = 0, x}, i < 3 do
          {i + 1, tick(Nx.sin(x), opts)}
        end

      x
    end

    deftransformp tick(x, opts) do
      if fun = opts[:hook], do: observe(x, name: :tick, fun: fun), else: x
    end

    # A hook, whose name in Nx has changed.
    deftransformp observe(x, opts) do
      args = [x, opts[:name] | if(opts[:fun], do: [opts[:fun]], else: [])]
      kernel = Nx.Defn.Kernel
      apply(kernel, if(function_exported?(kernel, :io_call, 3), do: :io_call, else: :hook), args)
    end

    defn lazy_divide(x, y) do
      quotient = Nx.quotient(x, y)
      a = if y != 0, do: quotient, else: x
      b = if y != 0, do: quotient + 1, else: x
      {a, b}
    end

    defn nested(x) do
      {i, y} =
        while {i = 0, x}, i < 3 do
          {_, z, _} =
            while {j = 0, x, i}, j < i do
              {j + 1, if(Nx.sum(x) > 100, do: x - 50, else: x * 2), i}
            end

          {i + 1, z}
        end

      {i, y}
    end

    defn powers(x, w) do
      {_, x, _} =
        while {i = 0, x, w}, i < 40 do
          {i + 1, Nx.dot(x, Nx.transpose(w)), w}
        end

      x
    end

    # Distances in each trip, of which a fold and a product of what does not change are parts.
    defn nearest(x, w, trips) do
      {_, distances, _, _, _} =
        while {i = 0, d = Nx.broadcast(0.0, {2, 3}), x, w, trips}, i < trips do
          squares = Nx.sum(x * x, axes: [1], keep_axes: true)
          {i + 1, Nx.abs(squares - 2 * Nx.dot(x * 2, w) + d), x, w, trips}
        end

      distances
    end

    # Two expressions of one operation, which are computed once, in branches that are taken or not.
    defn twice_in_branches(x, p, q) do
      {a, b} = {x * 2, x * 2}
      first = if p, do: a + Nx.sum(b), else: x
      second = if q, do: b - 1, else: x
      {first, second, a}
    end

    describe "control flow" do
      test "common subexpressions of branches" do
        x = Nx.tensor([1.0, 2.0])

        for p <- [0, 1], q <- [0, 1] do
          assert compiled(&twice_in_branches/3, [x, p, q]) ==
                   evaluated(&twice_in_branches/3, [x, p, q])
        end
      end

      test "loops run any number of trips, none as well" do
        for n <- [0, 1, 2, 1000], do: assert(Nx.to_number(compiled(&count_to/1, [n])) == n * 1.0)
      end

      # The values before a condition are needed by both of its branches and by those of its gradient.
      defn gradient_through_branches(a, e) do
        grad({a, e}, fn {a, e} ->
          b = Nx.sqrt(a)
          {s, _} = if Nx.sum(b) > 1, do: {Nx.sin(e), b}, else: {Nx.sin(1 + e), b}
          Nx.sum(Nx.cumulative_sum(Nx.pad(b, Nx.reduce_max(s), [{0, 0, 1}])))
        end)
      end

      test "programs grow with the function, whatever its branches share" do
        for size <- [5, 130], sign <- [1, -1] do
          args = [Nx.divide(Nx.iota({size}), 10), Nx.multiply(sign, Nx.iota({3, 4}, type: :f32))]

          assert compiled(&gradient_through_branches/2, args) ==
                   evaluated(&gradient_through_branches/2, args)
        end

        [few, many] =
          for size <- [65, 130] do
            vars = [Nx.template({size}, :f32), Nx.template({3, 4}, :f32)]
            container = apply(Nx.Defn.debug_expr(&gradient_through_branches/2), vars)
            parameters = for var <- vars, do: {var.type, var.shape}
            %{program: {regions, _literals}} = Lower.program(container, parameters, %{}, :exact)
            assert regions |> Enum.map(&depth/1) |> Enum.max() <= 3
            regions |> Enum.map(&steps/1) |> Enum.sum()
          end

        assert many <= 3 * few
      end

      # The number of steps in a term, and of those inside of each other.
      defp steps(term) when is_tuple(term), do: length_of(term) + steps(Tuple.to_list(term))
      defp steps(term) when is_list(term), do: term |> Enum.map(&steps/1) |> Enum.sum()
      defp steps(_term), do: 0

      defp length_of(term) when elem(term, 0) in [:run, :cond, :unless, :while, :call], do: 1
      defp length_of(_term), do: 0

      defp depth(term) when is_tuple(term) and tuple_size(term) > 0 do
        inner = term |> Tuple.to_list() |> depth()
        if elem(term, 0) in [:cond, :unless], do: inner + 1, else: inner
      end

      defp depth([_ | _] = terms), do: terms |> Enum.map(&depth/1) |> Enum.max()
      defp depth(_term), do: 0

      # Conditions that share a chain: all their branches use it, or not the last ones.
      defn shared_chain(x, n, opts \\ []) do
        y = chain(x, opts)
        other = if opts[:all?], do: y, else: x
        a = if n > 0, do: y * 2, else: other + 1

        b =
          cond do
            n > 1 -> y - 3
            n > 2 -> y / 2
            true -> other * 4
          end

        a + b
      end

      deftransformp chain(x, opts) do
        Enum.reduce(1..opts[:length], x, &(&2 |> Nx.add(&1) |> Nx.abs()))
      end

      test "what all branches compute is computed after them, what some do maybe" do
        for all? <- [true, false], n <- 0..3 do
          chain = &shared_chain(&1, &2, all?: all?, length: 4)
          args = [Nx.iota({300, 20}, type: :f32), n]
          assert compiled(chain, args) == evaluated(chain, args)
        end

        shared? = fn all? ->
          chain = &shared_chain(&1, &2, all?: all?, length: 4)
          args = [Nx.template({300, 20}, :f32), Nx.template({}, :s32)]
          explain = fn -> Ferrox.Defn.explain(chain, args) end
          ExUnit.CaptureIO.capture_io(explain) =~ "has a value"
        end

        refute shared?.(true)
        assert shared?.(false)
      end

      test "conditions that share a long chain take time in proportion to it" do
        for all? <- [true, false] do
          chain = &shared_chain(&1, &2, all?: all?, length: 4_000)
          args = [Nx.tensor([1.0, 2.0]), 2]
          assert compiled(chain, args) == evaluated(chain, args)

          [few, many] =
            for length <- [500, 2_000] do
              vars = [Nx.template({2}, :f32), Nx.template({}, :s32)]
              shared = &shared_chain(&1, &2, all?: all?, length: length)
              container = apply(Nx.Defn.debug_expr(shared), vars)
              parameters = for var <- vars, do: {var.type, var.shape}
              reductions(fn -> Lower.program(container, parameters, %{}, :exact) end)
            end

          assert many <= 6 * few
        end
      end

      # The work of a function, as the VM counts it: the same on every machine, but for a few percent.
      defp reductions(fun) do
        {:reductions, before} = Process.info(self(), :reductions)
        fun.()
        {:reductions, afterwards} = Process.info(self(), :reductions)
        afterwards - before
      end

      # As many conditions inside of each other as `:depth`.
      defn conditions(x, opts \\ []) do
        if x > opts[:depth], do: Nx.sin(x) * opts[:depth], else: inner_conditions(x + 1, opts)
      end

      deftransform inner_conditions(x, opts) do
        case opts[:depth] do
          1 -> x
          depth -> conditions(x, depth: depth - 1)
        end
      end

      test "conditions inside of each other, up to 32" do
        x = Nx.tensor(0.5)
        # The condition outermost is in no branch.
        assert compiled(&conditions(&1, depth: 32), [x]) ==
                 evaluated(&conditions(&1, depth: 32), [x])

        assert_raise ArgumentError, ~r/more than 32 conditions inside of each other/, fn ->
          compiled(&conditions(&1, depth: 33), [x])
        end

        deep = &conditions(&1, depth: 100)
        assert Nx.Defn.jit_apply(deep, [x], compiler: Ferrox) == evaluated(deep, [x])
      end

      test "what no branch needs is not computed" do
        assert compiled(&lazy_divide/2, [6, 0]) == evaluated(&lazy_divide/2, [6, 0])
        assert compiled(&lazy_divide/2, [6, 3]) == {Nx.tensor(2), Nx.tensor(3)}
      end

      test "what is the same in every trip" do
        x = Nx.iota({2, 3}, type: :f32)
        w = Nx.iota({3, 3}, type: :f32)
        assert compiled(&powers/2, [x, w]) == evaluated(&powers/2, [x, w])

        for trips <- [0, 1, 3] do
          args = [x, w, trips]
          assert compiled(&nearest/3, args) == evaluated(&nearest/3, args)
        end

        explain = fn -> Ferrox.Defn.explain(&nearest/3, [x, w, 3]) end
        explained = ExUnit.CaptureIO.capture_io(explain)
        [before_loop, in_loop] = String.split(explained, "region 1", parts: 2)
        assert before_loop =~ "sum(" and before_loop =~ "dot("
        refute in_loop =~ "sum(" or in_loop =~ "dot("
      end

      test "loops and conditions inside of loops" do
        x = Nx.tensor([1.0, 2.0, 30.0])
        assert compiled(&nested/1, [x]) == evaluated(&nested/1, [x])
      end
    end

    defp ticks do
      receive do
        {:tick, number} -> [number | ticks()]
      after
        0 -> []
      end
    end

    describe "side effects" do
      deftransform(first(x), do: send(self(), {:first, Nx.to_number(x)}))
      deftransform(second(x), do: send(self(), {:second, Nx.to_number(x)}))

      defn two_hooks(x) do
        a = observe(x + 1, name: :first, fun: &first/1)
        b = observe(a * 2, name: :second, fun: &second/1)
        unused = observe(x, name: :third)
        {b, unused}
      end

      test "happen in the evaluator's order" do
        for run <- [&compiled/2, &evaluated/2] do
          run.(&two_hooks/1, [1])
          assert messages() == [first: 2, second: 4]
        end
      end

      test "happen in every trip of a loop" do
        test = self()
        fun = &count_to(&1, hook: fn x -> send(test, Nx.to_number(x)) end)
        assert Nx.to_number(compiled(fun, [3])) == 3.0
        assert messages() == [1.0, 2.0, 3.0]
      end

      defn common(x, p) do
        q = Nx.any(x)
        r = Nx.any(observe(x, name: :first, fun: &first/1))
        if p, do: q + r, else: q - r
      end

      test "happen in each branch, where the operation on what is hooked is another's" do
        for p <- [1, 0], run <- [&compiled/2, &evaluated/2] do
          run.(&common/2, [3, p])
          assert messages() == [first: 3]
        end
      end

      test "of hooks given as an option are those of each call" do
        compiled(&two_hooks/1, [1])
        assert messages() == [first: 2, second: 4]

        for name <- [:a, :b] do
          hooks = %{first: &send(self(), {name, &1}), third: &send(self(), {name, &1})}
          compiled(&two_hooks/1, [1], hooks: hooks)
          assert [{^name, first}, {:second, 4}, {^name, third}] = messages()
          assert {Nx.to_number(first), Nx.to_number(third)} == {2, 1}
        end
      end

      test "happen in a loop's gradient as often as in the loop that Nx makes of it" do
        test = self()
        hook = &send(test, {:tick, Nx.to_number(&1)})
        gradient = &Nx.Defn.grad(&1, fn x -> grow(x, hook: hook) end)
        result = compiled(gradient, [0.5])
        ours = ticks()
        assert length(ours) >= 3
        assert {result, ours} == {evaluated(gradient, [0.5]), ticks()}
      end

      test "that raise leave nothing behind, and the function can be called again" do
        fun = &count_to(&1, hook: fn x -> if Nx.to_number(x) == 2.0, do: raise("stop") end)
        assert_raise RuntimeError, "stop", fn -> compiled(fun, [5]) end
        assert_raise RuntimeError, "stop", fn -> compiled(fun, [5]) end
        assert Nx.to_number(compiled(fun, [1])) == 1.0
      end
    end

    defp messages do
      receive do
        message -> [message | messages()]
      after
        0 -> []
      end
    end

    describe "errors" do
      test "are those of the evaluator" do
        for {fun, args} <- [
              {&Nx.quotient/2, [Nx.tensor([1, 2]), Nx.tensor([1, 0])]},
              {&Nx.remainder/2, [Nx.tensor([1, 2]), Nx.tensor([1, 0])]},
              {&Nx.right_shift/2, [Nx.tensor([1, 2]), -1]},
              # Nx names an axis of a vectorized tensor twice.
              {&Nx.broadcast(&1, {5, 3}, axes: [0]), [Nx.vectorize(Nx.iota({1, 5}), :x)]}
            ] do
          error = assert_raise ArgumentError, fn -> compiled(fun, args) end
          expected = assert_raise ArgumentError, fn -> evaluated(fun, args) end
          assert error.message == expected.message
        end
      end

      test "an argument that is an expression is refused" do
        assert_raise ArgumentError, ~r/expression/, fn ->
          Nx.Defn.jit_apply(
            fn x ->
              Nx.Defn.jit_apply(&Nx.add(&1, 1), [x], compiler: Ferrox, on_conflict: :force)
            end,
            [1],
            compiler: Ferrox
          )
        end
      end
    end

    describe "long programs" do
      defn forever(x) do
        {_, x} =
          while {x, y = 0}, x > 0 do
            {x, y + 1}
          end

        x
      end

      test "that never end can be killed, and free their scheduler" do
        {pid, monitor} = spawn_monitor(fn -> compiled(&forever/1, [1]) end)
        Process.sleep(50)
        assert Process.alive?(pid)
        Process.exit(pid, :kill)
        assert_receive {:DOWN, ^monitor, :process, ^pid, :killed}, 100

        # All dirty schedulers can be had again.
        schedulers = :erlang.system_info(:dirty_cpu_schedulers)

        for _ <- 1..3 do
          pids = for _ <- 1..schedulers, do: spawn(fn -> compiled(&forever/1, [1]) end)
          Process.sleep(20)
          Enum.each(pids, &Process.exit(&1, :kill))
        end

        task = Task.async(fn -> compiled(&count_to/1, [100_000]) end)
        assert Nx.to_number(Task.await(task, 5_000)) == 100_000.0
      end
    end

    describe "long programs over large tensors" do
      # A loop over rows, whose trips are computed together.
      defn rows_forever(x) do
        {x, _} =
          while {x, i = 1}, i > 0 do
            {x * 1.000001 + 0.5, i}
          end

        x
      end

      # A loop over tensors, with a product.
      defn products_forever(x) do
        {x, _} =
          while {x, i = 1}, i > 0 do
            {Nx.dot(x, x) / 1000, i}
          end

        x
      end

      for loop <- [:rows_forever, :products_forever] do
        test "that never end can be killed, and give back their memory: #{loop}" do
          x = Nx.broadcast(Nx.tensor(0.001, type: :f32), {1500, 1500})
          fun = &apply(__MODULE__, unquote(loop), [&1])

          kill = fn _ ->
            {pid, monitor} = spawn_monitor(fn -> compiled(fun, [x]) end)
            Process.sleep(40)
            Process.exit(pid, :kill)
            assert_receive {:DOWN, ^monitor, :process, ^pid, :killed}, 2_000
          end

          Enum.each(1..6, kill)
          before = resident_bytes()
          Enum.each(1..30, kill)

          # The last runs may still have some tensors, and others are kept for the next one.
          few = fn -> resident_bytes() - before < 10 * 1500 * 1500 * 4 end
          assert before == nil or soon?(few, 50)

          # A dirty scheduler can be had again.
          task = Task.async(fn -> compiled(&count_to/1, [100_000]) end)
          assert Nx.to_number(Task.await(task, 5_000)) == 100_000.0
        end
      end

      defp soon?(_holds, 0), do: false

      defp soon?(holds, tries) do
        holds.() ||
          (
            Process.sleep(50)
            soon?(holds, tries - 1)
          )
      end

      # The memory of this VM, where the system says it.
      defp resident_bytes do
        with {:ok, status} <- File.read("/proc/self/status"),
             [_, kb] <- Regex.run(~r/VmRSS:\s+(\d+) kB/, status) do
          1024 * String.to_integer(kb)
        else
          _ -> nil
        end
      end
    end

    describe "the option :math" do
      test "is :exact or :fast" do
        assert_raise ArgumentError, ~r/:math to be :exact or :fast, got: :fastest/, fn ->
          compiled(&Nx.exp/1, [1.0], math: :fastest)
        end
      end

      test "concerns functions of f32 that have a fast form" do
        x = Nx.linspace(0.1, 3, n: 101, type: :f32)
        explain = fn fun, x -> Ferrox.Defn.explain(fun, [x], math: :fast) end
        print = fn fun, x -> ExUnit.CaptureIO.capture_io(fn -> explain.(fun, x) end) end

        for op <- [:exp, :log, :tanh, :sigmoid, :erf, :rsqrt] do
          fun = &apply(Nx, op, [&1])
          assert print.(fun, x) =~ "fast #{op}("
          refute print.(fun, Nx.as_type(x, :f64)) =~ "fast"
          close = Nx.all_close(compiled(fun, [x], math: :fast), evaluated(fun, [x]), rtol: 3.0e-7)
          assert Nx.to_number(close) == 1
        end

        refute print.(&Nx.cos/1, x) =~ "fast"
        assert compiled(&Nx.cos/1, [x], math: :fast) == evaluated(&Nx.cos/1, [x])
      end
    end

    describe "the cache" do
      setup do
        Cache.clear()
      end

      test "keeps a function for the types, shapes, names and axes of its arguments" do
        fun = fn x -> Nx.add(x, x) end

        inputs = [
          Nx.tensor([1, 2]),
          Nx.tensor([1, 2], type: :u8),
          Nx.tensor([1, 2, 3]),
          Nx.tensor([1, 2], names: [:x]),
          Nx.vectorize(Nx.tensor([1, 2]), :x)
        ]

        {_, compiled} =
          events(:compile, fn ->
            for input <- inputs ++ inputs do
              result = compiled(fun, [input])
              assert result == Nx.add(input, input)
            end
          end)

        assert length(compiled) == length(inputs)
        assert Cache.size(:functions) == length(inputs)
        assert [{%{duration: _}, %{function: ^fun}} | _] = compiled
      end

      test "keeps functions apart by the option :math" do
        x = Nx.linspace(-3, 3, n: 1001, type: :f32)
        fun = fn x -> Nx.tanh(x) end
        exact = compiled(fun, [x])
        fast = compiled(fun, [x], math: :fast)
        assert exact == evaluated(fun, [x])
        assert exact == compiled(fun, [x], math: :exact)
        assert fast != exact and fast == compiled(fun, [x], math: :fast)
        assert Nx.to_number(Nx.all_close(fast, exact, rtol: 3.0e-7, atol: 0.0)) == 1
        assert Cache.size(:functions) == 2
      end

      test "keeps functions apart by what they capture" do
        for n <- [1, 2, 3],
            do: assert(compiled(fn x -> Nx.add(x, n) end, [1]) == Nx.tensor(n + 1))

        for s <- [{2}, {3}], do: assert(compiled(fn x -> Nx.broadcast(x, s) end, [1]).shape == s)
      end

      test "stays within its bound" do
        for n <- 1..1_100,
            do: assert(compiled(&Nx.add(&1, 1), [Nx.broadcast(1.0, {n})]).shape == {n})

        assert Cache.size(:functions) in 900..1_000
        assert Cache.size(:programs) in 900..1_000
      end

      test "keeps functions apart by the containers of their arguments" do
        fun = fn x -> x |> Nx.Defn.Composite.flatten_list() |> Enum.reduce(&Nx.subtract/2) end
        inputs = [{1, {2, 3}}, {{1, 2}, 3}, %{a: 1, b: 2, c: 3}]
        fun_of_type = fn x -> if is_map(x), do: Nx.negate(fun.([x])), else: fun.([x]) end

        assert for(input <- inputs, do: Nx.to_number(compiled(fun_of_type, [input]))) == [
                 2,
                 2,
                 -2
               ]

        assert Cache.size(:functions) == 3
      end

      test "tells zeros from negative zeros" do
        for _ <- 1..2, {zero, quotient} <- [{0.0, :infinity}, {-0.0, :neg_infinity}] do
          assert Nx.to_number(compiled(fn x -> Nx.divide(x, zero) end, [1.0])) == quotient
        end
      end

      test "compiles a function again after its module" do
        module = Ferrox.DefnTest.Again

        for n <- [1, 2] do
          code = "defmodule #{module} do
            import Nx.Defn
            defn add(x), do: x + #{n}
            def subtract(x), do: Nx.subtract(x, #{n})
          end"

          ExUnit.CaptureIO.capture_io(:stderr, fn -> Code.compile_string(code) end)
          [add, subtract] = for name <- [:add, :subtract], do: Function.capture(module, name, 1)
          assert Nx.to_number(compiled(add, [0])) == n
          assert Nx.to_number(compiled(subtract, [0])) == -n
          defaults = Nx.Defn.default_options(compiler: Ferrox)
          assert Nx.to_number(add.(0)) == n
          Nx.Defn.default_options(defaults)
        end
      end

      # A function that captures another tensor each time is warned of.
      @tag :capture_log
      test "bounds the bytes that compiled functions have captured" do
        restart = fn ->
          for cache <- [Cache.Functions, Cache.Programs] do
            :ok = Supervisor.terminate_child(Ferrox.Supervisor, cache)
            {:ok, _} = Supervisor.restart_child(Ferrox.Supervisor, cache)
          end
        end

        Application.put_env(:ferrox, :compiler_cache_bytes, 100_000)
        restart.()

        on_exit(fn ->
          Application.delete_env(:ferrox, :compiler_cache_bytes)
          restart.()
        end)

        on_binary = &Nx.backend_copy(&1, Nx.BinaryBackend)
        large = for n <- 1..20, do: on_binary.(Nx.broadcast(Nx.u8(n), {10_000}))

        for tensor <- large do
          assert compiled(fn x -> Nx.add(x, tensor)[0] end, [Nx.u8(1)]) == Nx.add(1, tensor[0])
          assert Cache.size(:functions) <= 10 and Cache.size(:programs) <= 10
        end

        assert Cache.size(:functions) == 10
        # One that is larger than all together may have is kept.
        huge = on_binary.(Nx.iota({200_000}, type: :u8))
        for _ <- 1..2, do: compiled(fn x -> Nx.add(x, huge) end, [1])
        assert {Cache.size(:functions), Cache.size(:programs)} == {1, 1}
      end

      test "keeps what is used when it is full" do
        used = fn x -> Nx.subtract(x, 1) end
        compiled(used, [1])

        {_, compiled} =
          events(:compile, fn ->
            for n <- 1..2_100 do
              compiled(&Nx.add(&1, 1), [Nx.broadcast(1.0, {n})])
              if rem(n, 100) == 0, do: compiled(used, [1])
            end
          end)

        assert Enum.count(compiled, fn {_, %{function: fun}} -> fun == used end) == 0
      end

      test "lets one process compile what several ask for" do
        test = self()

        fun = fn x ->
          send(test, :traced)
          Process.sleep(50)
          Nx.multiply(x, 3)
        end

        tasks = for _ <- 1..8, do: Task.async(fn -> compiled(fun, [2]) end)
        assert Enum.map(tasks, &Nx.to_number(Task.await(&1))) == List.duplicate(6, 8)
        assert messages() |> Enum.count(&(&1 == :traced)) == 1
      end

      test "compiles again after a failure, and when the compiling process is killed" do
        test = self()

        fun = fn x ->
          send(test, {:traced, self()})
          Process.sleep(30)
          Nx.multiply(x, 5)
        end

        first = spawn(fn -> compiled(fun, [2]) end)
        assert_receive {:traced, ^first}
        waiting = Task.async(fn -> compiled(fun, [2]) end)
        Process.sleep(10)
        Process.exit(first, :kill)
        assert Nx.to_number(Task.await(waiting)) == 10

        failing = fn _x -> raise "no" end
        for _ <- 1..2, do: assert_raise(RuntimeError, "no", fn -> compiled(failing, [1]) end)
      end

      # As many native programs as are built for some functions of one argument, with their results.
      defp built(functions, x) do
        {results, built} = events(:build, fn -> for fun <- functions, do: compiled(fun, [x]) end)

        assert Enum.all?(built, &match?({%{duration: _}, %{function: _}}, &1))
        {length(built), results}
      end

      test "lets functions of the same operations share a native program" do
        functions =
          for n <- 1..5 do
            ref = make_ref()
            fn x -> Nx.add(Nx.exp(x), 0 * Process.get(ref, n)) end
          end

        {{1, results}, compiled} = events(:compile, fn -> built(functions, 1.0) end)
        assert length(compiled) == 5
        assert Enum.uniq(results) == [Nx.exp(1.0)]
        assert {Cache.size(:functions), Cache.size(:programs)} == {5, 1}
        # Others that are written elsewhere, and give the result in another container.
        sum = Nx.exp(1.0)
        assert {0, [%{sum: ^sum}]} = built([fn x -> %{sum: Nx.add(Nx.exp(x), 0)} end], 1.0)
      end

      test "keeps native programs apart by the bytes of literals, operations, types and shapes" do
        tensors =
          for values <- [[1.0, 2.0], [1.0, 3.0], [0.0, 1.0], [-0.0, 1.0]],
              do: Nx.tensor(values, backend: Nx.BinaryBackend)

        x = Nx.tensor([6.0, 6.0])
        functions = for t <- tensors, do: fn x -> Nx.divide(x, t) end
        assert {4, results} = built(functions ++ functions, x)
        assert results == for(f <- functions ++ functions, do: evaluated(f, [x]))
        assert length(Enum.uniq(results)) == 4

        t = hd(tensors)
        assert {1, [product]} = built([fn x -> Nx.multiply(x, t) end], x)
        assert product == Nx.tensor([6.0, 12.0])

        assert {1, [wide]} = built([fn x -> Nx.divide(x, t) end], Nx.as_type(x, :f64))
        assert wide == Nx.tensor([6.0, 3.0], type: :f64)
        assert {1, [tall]} = built([fn x -> Nx.divide(x, t) end], Nx.reshape(x, {2, 1}))
        assert tall == Nx.tensor([[6.0, 3.0], [6.0, 3.0]])
        sum = fn axis -> fn x -> Nx.sum(x, axes: [axis]) end end
        assert {2, [a, b]} = built([sum.(0), sum.(1)], Nx.iota({2, 2}))
        assert {a, b} == {Nx.tensor([2, 4]), Nx.tensor([1, 5])}
      end

      test "calls the hooks of each function of a native program, and asks for its arguments" do
        test = self()

        hook = fn name ->
          fn x -> observe(Nx.add(x, 1), name: :tick, fun: &send(test, {name, &1})) end
        end

        assert {1, _} = built([hook.(:a), hook.(:b)], 1)
        two = Nx.tensor(2)
        assert messages() == [a: two, b: two]

        # One native program, whose parameters are the same but for what it does not use.
        {_, built} =
          events(:build, fn ->
            assert compiled(fn x, _y -> Nx.subtract(x, 3) end, [5, Nx.tensor([1, 2])]) == two
            assert compiled(fn x, _y -> Nx.subtract(x, 3) end, [5, Nx.tensor([1.0])]) == two
          end)

        assert length(built) == 1
      end

      test "builds a native program once that several functions of one time need" do
        test = self()

        build = fn ->
          send(test, :built)
          Process.sleep(50)
          {:native, 0}
        end

        tasks =
          for _ <- 1..8, do: Task.async(fn -> Cache.fetch(:programs, {[], ["key"]}, build) end)

        assert Task.await_many(tasks) == List.duplicate(:native, 8)
        assert messages() == [:built]
      end

      test "warns of functions that are compiled again for each captured value" do
        loop = fn values ->
          ExUnit.CaptureLog.capture_log(fn ->
            for n <- values do
              result = compiled(fn x -> Nx.multiply(x, n) end, [2])
              assert result == Nx.tensor(2 * n)
            end
          end)
        end

        assert loop.(List.duplicate(3, 20)) == ""
        log = loop.(1..20)
        assert [_, _] = String.split(log, "has been compiled")
        assert log =~ ~r/#Function<.*Ferrox.DefnTest.*>, used in .*defn_test.exs:\d+: .*/
        assert log =~ ~r/8 times.*: 8, 7 before/
        assert loop.(21..40) == ""
      end

      test "does not hold functions that captured expressions" do
        expression =
          Nx.Defn.debug_expr(fn x -> Enum.reduce(1..60, x, fn _, x -> Nx.add(x, x) end) end).(1)

        assert Nx.to_number(compiled(fn _x -> expression end, [1])) == 0
        assert Cache.size(:functions) == 0

        # Their native programs are.
        assert {0, [zero]} = built([fn _x -> expression end], 1)
        assert zero == Nx.tensor(0)
      end
    end

    describe "what has no native form" do
      test "is treated as the option :fallback says, which is :evaluator or :raise" do
        assert_raise ArgumentError, ~r/:fallback to be :evaluator or :raise, got: :none/, fn ->
          compiled(&Nx.exp/1, [1.0], fallback: :none)
        end
      end

      test "is passed to the evaluator, with an event that says why" do
        x = Nx.tensor([1, 2, 3], type: :u4)
        fun = fn x -> Nx.reduce(x, Nx.tensor(0, type: :u4), fn a, b -> Nx.add(a, b) end) end

        {result, [{_, metadata}]} =
          events(:fallback, fn -> Nx.Defn.jit_apply(fun, [x], compiler: Ferrox) end)

        assert result == Nx.tensor(6, type: :u4)
        assert %{function: ^fun, reason: reason} = metadata
        assert reason =~ "{:u, 4}"

        assert_raise ArgumentError, ~r/has no native form: .*{:u, 4}/, fn ->
          compiled(fun, [x])
        end
      end
    end

    describe "the span of a compilation" do
      setup do: Cache.clear()

      test "starts and stops once, and isn't there for a function in the cache" do
        fun = fn x -> Nx.add(x, 1) end

        {_, [start, stop]} = spans(fn -> for _ <- 1..2, do: compiled(fun, [1]) end)
        assert {:start, numbers, %{function: ^fun, telemetry_span_context: context}} = start
        assert Map.keys(numbers) == [:monotonic_time, :system_time]
        assert {:stop, %{duration: duration, monotonic_time: stopped}, metadata} = stop
        assert stopped - numbers.monotonic_time == duration and duration > 0
        expected = %{function: fun, result: :program, telemetry_span_context: context}
        assert metadata == expected
      end

      test "stops with a fallback where there is no native form" do
        x = Nx.tensor([1, 2, 3], type: :u4)
        fun = fn x -> Nx.reduce(x, Nx.tensor(0, type: :u4), fn a, b -> Nx.add(a, b) end) end

        {_, events} =
          spans(fn -> for _ <- 1..2, do: Nx.Defn.jit_apply(fun, [x], compiler: Ferrox) end)

        assert [{:start, _, _}, {:stop, _, %{function: ^fun, result: :fallback}}] = events
      end

      test "ends with an exception that the function raises, each time" do
        fun = fn x -> Nx.dot(x, Nx.iota({5})) end

        run = fn ->
          assert_raise ArgumentError, ~r/dot/, fn -> compiled(fun, [Nx.iota({3})]) end
        end

        {message, events} = spans(fn -> for(_ <- 1..2, do: run.()) |> hd() end)
        assert [{:start, _, %{telemetry_span_context: context}}, exception | again] = events
        assert [{:start, _, _}, {:exception, _, _}] = again
        assert {:exception, %{duration: _, monotonic_time: _}, metadata} = exception
        assert %{function: ^fun, kind: :error, telemetry_span_context: ^context} = metadata
        assert metadata.reason == message
        assert Enum.any?(metadata.stacktrace, &match?({__MODULE__, _, _, _}, &1))
      end

      test "ends with an exception that the function throws" do
        {_, events} = spans(fn -> catch_throw(compiled(fn _x -> throw(:no) end, [1])) end)
        assert [{:start, _, _}, {:exception, _, %{kind: :throw, reason: :no}}] = events
      end
    end

    test "functions are compiled, and passed to the evaluator, without telemetry" do
      script = """
      {:ok, _} = Application.ensure_all_started(:ferrox)
      true = :code.del_path(:telemetry)
      :code.delete(:telemetry)
      false = Code.ensure_loaded?(:telemetry)
      add = fn a, b -> Nx.add(a, b) end
      reduce = fn x -> Nx.reduce(x, Nx.tensor(0, type: :u4), add) end
      x = Nx.tensor([1, 2, 3], type: :u4)
      sum = Nx.Defn.jit_apply(fn x -> Nx.sum(x) end, [x], compiler: Ferrox)
      reduced = Nx.Defn.jit_apply(reduce, [x], compiler: Ferrox)
      IO.inspect({Nx.to_number(sum), Nx.to_number(reduced)})
      """

      assert Ferrox.ChildVM.run(script) == {"{6, 6}\n", 0}
    end

    test "explain/2 prints what is computed together, loops, and what is written in place" do
      print = fn fun, args ->
        ExUnit.CaptureIO.capture_io(fn -> :ok = Ferrox.Defn.explain(fun, args) end)
      end

      x = Nx.template({100, 200}, :f32)
      text = print.(fn x, y -> Nx.sum(Nx.multiply(Nx.exp(x), y), axes: [1]) end, [x, 2])

      assert text =~
               ~r/%\d+ f32\[100\] = together\(%0 f32\[100\]\[200\], %1 s32\), 100 rows, \d+ at a time/

      assert text =~ ~r/buffer 0 = f32 exp\(%0\)/
      assert text =~ ~r/# reads 80 KB, writes 400 bytes/
      assert print.(&count_to/1, [3]) =~ ~r/= while region 1 do region 2/
      assert print.(fn {x, y} -> Nx.add(x, y) end, [{x, 2.5}]) =~ ~r/add\(%0 .*, %1 f32\)/

      # What is the same in every trip is computed before the loop.
      text = print.(&powers/2, [Nx.template({2, 3}, :f32), Nx.template({3, 3}, :f32)])
      [before, inside] = String.split(text, "region 1(")
      assert before =~ "transpose" and not (inside =~ "transpose")

      # A mean and a variance sum up the same, with and without the axis.
      text = print.(fn x -> {Nx.mean(x, axes: [0]), Nx.variance(x, axes: [0])} end, [x])
      assert length(String.split(text, "sum(%0")) == 2

      # A grid that is moved by one place is not written to memory.
      moved = fn x -> Nx.subtract(Nx.concatenate([x[1..-1//1], x[0..0]]), x) end
      text = print.(moved, [x])
      assert text =~ "subtract([%0 | %0], %0)" and not (text =~ "concatenate(")
      assert text =~ "# reads 160 KB, writes 80 KB"

      # The gradient of a slice of neighbours pads by nothing.
      gradient = fn x -> Nx.Defn.grad(x, &Nx.sum(Nx.exp(&1[0..-2//1]))) end
      refute print.(gradient, [Nx.template({10}, :f32)]) =~ "pad("

      assert_raise ArgumentError, ~r/no native form/, fn ->
        Ferrox.Defn.explain(fn x -> Nx.reduce(x, x[0], &Nx.add/2) end, [Nx.template({3}, :u4)])
      end
    end

    test "explain/3 measures the instructions, those of loops in all trips, and calls hooks" do
      print = fn fun, args ->
        ExUnit.CaptureIO.capture_io(fn -> :ok = Ferrox.Defn.explain(fun, args, time: true) end)
      end

      text = print.(&powers/2, [Nx.iota({200, 200}, type: :f32), Nx.eye(200, type: :f32)])
      assert text =~ ~r/^a run: \d+\.\d us, the mean of \d+$/m
      assert text =~ ~r/^ *\d+\.\d us +\d+ % +\d+  %\d+ f32.* = transpose\(/m
      assert text =~ ~r/^ *\d+\.\d us +\d+ % x \d+ +\d+  %\d+ .* = dot\(/m

      test = self()
      text = print.(&count_to(&1, hook: fn x -> send(test, {:seen, Nx.to_number(x)}) end), [1])
      assert text =~ "the mean of 1"
      # In the run before, and in the one that is measured.
      assert_received {:seen, 1.0}
      assert_received {:seen, 1.0}

      assert_raise ArgumentError,
                   ~r/expected tensors to run the program with, got a template/,
                   fn ->
                     Ferrox.Defn.explain(&Nx.exp/1, [Nx.template({2}, :f32)], time: true)
                   end
    end

    test "options of other compilers are ignored" do
      assert compiled(&Nx.add(&1, 1), [1], batch_keys: [:a], cache: false) == Nx.tensor(2)
    end

    test "compiled functions and servings" do
      add =
        Nx.Defn.compile(&Nx.add/2, [Nx.template({2}, :f32), Nx.template({}, :f32)],
          compiler: Ferrox
        )

      assert add.(Nx.tensor([1.0, 2.0]), 3.0) == Nx.tensor([4.0, 5.0])
      assert Nx.Defn.to_backend(compiler: Ferrox) == {Ferrox.Backend, []}
      serving = Nx.Serving.jit(&Nx.multiply(&1, 2), compiler: Ferrox)
      batch = Nx.Batch.stack([Nx.tensor([1, 2]), Nx.tensor([3, 4])])
      assert Nx.Serving.run(serving, batch) == Nx.tensor([[2, 4], [6, 8]])
    end
  end
end
