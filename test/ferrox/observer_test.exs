defmodule Ferrox.ObserverTest do
  # What is observed concerns all processes.
  use ExUnit.Case, async: false

  alias Ferrox.{Guide, Native}

  doctest Ferrox, only: [observe: 1, stats: 0, reset_stats: 0]

  @compile {:no_warn_undefined, [Nx, Nx.Defn, :telemetry]}

  setup do
    Ferrox.reset_stats()
    on_exit(fn -> Ferrox.observe(:off) end)
  end

  defp f32(shape, value \\ 1.0),
    do: {{:f, 32}, shape, :binary.copy(<<value::float-32-native>>, Native.size(shape))}

  test "nothing is counted unless asked for" do
    Ferrox.add(Ferrox.iota({3}), 1)
    assert Ferrox.stats().families == %{}
  end

  test "calls are counted by family, until they are reset" do
    Ferrox.observe(:stats)
    for _ <- 1..3, do: Ferrox.add(Ferrox.tensor([1.0]), Ferrox.tensor([2.0]))
    Ferrox.exp(Ferrox.tensor([1.0, 2.0]))
    Native.unary(:exp, {:f, 32}, f32({2_000_000}))

    assert %{threads: threads, families: %{binary: binary, unary: unary} = families} =
             Ferrox.stats()

    assert threads >= 1
    assert %{calls: 3, dirty_calls: 0, bytes: 12, time: time} = binary
    assert time > 0
    assert %{calls: 2, dirty_calls: 1, bytes: 8_000_008} = unary
    refute Map.has_key?(families, :dot)

    Ferrox.observe(:off)
    Ferrox.exp(Ferrox.tensor([1.0, 2.0]))
    assert Ferrox.stats().families.unary == unary
    assert Ferrox.reset_stats() == :ok
    assert Ferrox.stats().families == %{}
  end

  test "the most scratch memory is counted, whether it is asked for or not, until it is reset" do
    matrix = Ferrox.iota({256, 256}, type: :f64)
    before = Ferrox.stats().scratch_bytes
    Ferrox.LinAlg.svd(matrix)
    most = Ferrox.stats().scratch_bytes
    # It works on a copy of the matrix at least, and on no more than some.
    assert (most - before) in (256 * 256 * 8)..(50 * 256 * 256 * 8)
    Ferrox.add(matrix, 1)
    assert Ferrox.stats().scratch_bytes == most
    Ferrox.reset_stats()
    # Threads may keep what they need for the next one.
    assert Ferrox.stats().scratch_bytes in before..(most - 256 * 256 * 8)
  end

  test "errors are raised, and not counted" do
    Ferrox.observe(:stats)

    assert_raise ArgumentError, ~r/zero/, fn ->
      Ferrox.quotient(Ferrox.tensor([1, 2]), Ferrox.tensor([0, 1]))
    end

    assert_raise ArgumentError, fn -> Native.sort(0, false, {{:f, 31}, {1}, <<0, 0, 0, 0>>}) end
    refute Map.has_key?(Ferrox.stats().families, :sort)
    refute Map.has_key?(Ferrox.stats().families, :binary)
  end

  # Calls of every family, with the event's operation, types and shapes.
  @f32 {:f, 32}
  defp calls do
    {a, v, i} = {f32({2, 3}), f32({3}), {{:s, 32}, {1}, <<0::32>>}}
    scalar = f32({})
    square = {{:f, 64}, {1, 1}, <<2.0::float-64-native>>}
    windows = {{1, 2}, [{0, 0}, {0, 0}], [1, 1], [1, 1]}
    image = f32({1, 1, 2, 2})

    conv =
      {[1, 1], [{0, 0}, {0, 0}], [1, 1], [1, 1], {1, 1},
       {[0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3]}}

    [
      {:binary, :add, [{@f32, {2, 3}}, {@f32, {3}}],
       fn -> Native.binary(:add, @f32, {2, 3}, a, v) end},
      {:binary, :less, [{@f32, {2, 3}}, {@f32, {2, 3}}],
       fn -> Native.binary(:less, {:u, 8}, {2, 3}, a, a) end},
      {:binary, :multiply, [{@f32, {3}}],
       fn -> Native.nx_binary(:multiply, @f32, {3}, elem(v, 2), 2) end},
      {:unary, :exp, [{@f32, {3}}], fn -> Native.unary(:exp, @f32, v) end},
      {:unary, :abs, [{@f32, {3}}], fn -> Native.nx_unary(:abs, @f32, {3}, elem(v, 2)) end},
      {:as_type, :as_type, [{@f32, {3}}], fn -> Native.as_type({:s, 8}, v) end},
      {:reduce, :sum, [{@f32, {2, 3}}], fn -> Native.reduce(:sum, @f32, {2}, [1], a) end},
      {:reduce, :product, [{@f32, {2, 3}}], fn -> Native.nx_reduce(:product, {2}, [1], a) end},
      {:arg_reduce, :argmax, [{@f32, {3}}],
       fn -> Native.arg_reduce(:reduce_max, {:s, 32}, {}, 0, :low, v) end},
      {:dot, :dot, [{@f32, {2, 3}}, {@f32, {3, 1}}],
       fn -> Native.dot(@f32, {2}, {a, [1], []}, {v, [0], []}) end},
      {:dot, :dot, [{@f32, {2, 3}}, {@f32, {2, 3}}],
       fn -> Native.dot(@f32, {2, 2}, {a, [1], []}, {a, [1], []}) end},
      {:window, :window_max, [{@f32, {2, 3}}],
       fn -> Native.window(:window_max, @f32, {2, 2}, windows, a) end},
      {:window_scatter, :window_scatter_max, [{@f32, {2, 3}}, {@f32, {2, 2}}, {@f32, {}}],
       fn -> Native.window_scatter(:window_scatter_max, @f32, windows, a, f32({2, 2}), scalar) end},
      {:conv, :conv, [{@f32, {1, 1, 2, 2}}, {@f32, {1, 1, 2, 2}}],
       fn -> Native.conv(@f32, {1, 1, 1, 1}, image, image, conv) end},
      {:select, :select, [{{:u, 8}, {3}}, {@f32, {3}}, {@f32, {}}],
       fn -> Native.select(@f32, {3}, {{:u, 8}, {3}, <<1, 0, 1>>}, v, scalar) end},
      {:clip, :clip, [{@f32, {3}}, {@f32, {}}, {@f32, {}}],
       fn -> Native.clip(@f32, {3}, v, scalar, scalar) end},
      {:transpose, :transpose, [{@f32, {2, 3}}], fn -> Native.transpose({3, 2}, [1, 0], a) end},
      {:broadcast, :broadcast, [{@f32, {3}}], fn -> Native.broadcast({2, 3}, [1], v) end},
      {:reverse, :reverse, [{@f32, {3}}], fn -> Native.reverse({3}, [0], v) end},
      {:slice, :slice, [{@f32, {2, 3}}],
       fn -> Native.slice({1, 2}, [0, 1], [1, 2], [1, 1], a) end},
      {:concatenate, :concatenate, [{@f32, {2, 3}}, {@f32, {2, 3}}],
       fn -> Native.concatenate(@f32, {2, 6}, 1, [a, a]) end},
      {:pad, :pad, [{@f32, {3}}, {@f32, {}}],
       fn -> Native.pad(@f32, {5}, [{1, 1, 0}], v, scalar) end},
      {:put_slice, :put_slice, [{@f32, {3}}, {@f32, {3}}],
       fn -> Native.put_slice(@f32, [0], v, v) end},
      {:iota, :iota, [], fn -> Native.iota(@f32, {4}, nil) end},
      {:eye, :eye, [], fn -> Native.eye(@f32, {2, 2}) end},
      {:sort, :sort, [{@f32, {3}}], fn -> Native.sort(0, true, v) end},
      {:argsort, :argsort, [{@f32, {3}}], fn -> Native.argsort({:s, 32}, 0, false, v) end},
      {:top_k, :top_k, [{@f32, {3}}], fn -> Native.top_k({:s, 32}, {2}, v) end},
      {:gather, :gather, [{@f32, {3}}, {{:s, 32}, {1}}], fn -> Native.gather({}, [0], v, i) end},
      {:take, :take, [{@f32, {3}}, {{:s, 32}, {1}}], fn -> Native.take({1}, 0, v, i) end},
      {:take_along_axis, :take_along_axis, [{@f32, {3}}, {{:s, 32}, {1}}],
       fn -> Native.take_along_axis(0, v, i) end},
      {:indexed, :indexed_add, [{@f32, {3}}, {{:s, 32}, {1, 1}}, {@f32, {1}}],
       fn ->
         Native.indexed(:indexed_add, @f32, [0], v, put_elem(i, 1, {1, 1}), f32({1}))
       end},
      {:cumulative, :cumulative_sum, [{@f32, {3}}],
       fn -> Native.cumulative(:cumulative_sum, 0, false, v) end},
      {:all_close, :all_close, [{@f32, {3}}, {@f32, {3}}],
       fn -> Native.all_close({}, {0.1, 0.1, false}, v, v) end},
      {:window_elements, :window_elements, [{@f32, {3}}, {@f32, {}}],
       fn -> Native.window_elements({2, 2}, {[2], [1], [1], [{0, 0}]}, v, scalar) end},
      {:fourier, :fft, [{@f32, {3}}],
       fn -> Native.fourier(:fft, {:c, 64}, {3}, [{0, 3}], 1.0e-10, v) end},
      {:solve, :solve, [{{:f, 64}, {1, 1}}, {{:f, 64}, {1, 1}}],
       fn -> Native.solve(:lu, {:f, 64}, square, square) end},
      {:solve, :triangular_solve, [{{:f, 64}, {1, 1}}, {{:f, 64}, {1, 1}}],
       fn -> Native.solve({true, true, :none}, {:f, 64}, square, square) end},
      {:factor, :cholesky, [{{:f, 64}, {1, 1}}],
       fn -> Native.factor(:cholesky, [{{:f, 64}, {1, 1}}], 0.0, square) end}
    ]
  end

  test "every family is counted, and gives what it gives otherwise" do
    for {_family, operation, _operands, call} <- calls() do
      Ferrox.observe(:off)
      expected = call.()
      Ferrox.observe(:stats)
      assert {operation, call.()} == {operation, expected}
    end

    called = for {family, _, _, _} <- calls(), uniq: true, do: family
    counted = Ferrox.stats().families |> Map.keys()
    assert Enum.sort(called) == Enum.sort(counted)

    # Every NIF of a family has been called.
    for {name, _arity} <- Native.__info__(:functions),
        [_, name] <- [Regex.run(~r/^(.*)_dirty$/, Atom.to_string(name))],
        name not in ~w(nx_binary nx_unary nx_reduce matmul graph_resume result_type operation) do
      assert String.to_atom(name) in called
    end
  end

  def handle(_event, numbers, metadata, test), do: send(test, {:event, numbers, metadata})

  describe "events" do
    @describetag :nx

    setup do
      Ferrox.observe(:events)
      event = [:ferrox, :operation, :stop]
      :ok = :telemetry.attach("observer_test", event, &__MODULE__.handle/4, self())
      on_exit(fn -> :telemetry.detach("observer_test") end)
    end

    test "say what an operation is of" do
      for {family, operation, operands, call} <- calls() do
        call.()
        assert_received {:event, %{duration: duration, bytes: bytes}, metadata}
        assert duration > 0
        assert bytes > 0
        {types, shapes} = Enum.unzip(operands)

        assert %{family: ^family, operation: ^operation, types: ^types, shapes: ^shapes} =
                 metadata

        assert metadata.scheduler in [:normal, :dirty]
        assert metadata.threads >= 1
        assert metadata.function == nil
      end

      refute_received {:event, _, _}
    end

    test "come from Nx, and are counted as well" do
      tensor = Nx.tensor([1.0, 2.0], backend: Ferrox.Backend)
      Nx.exp(tensor)
      assert_received {:event, %{bytes: 8}, %{operation: :exp, shapes: [{2}], scheduler: :normal}}
      assert %{unary: %{calls: 1}} = Ferrox.stats().families
    end

    test "come from compiled programs, with their function" do
      double = fn x, n -> Nx.multiply(Nx.add(x, n), 2) end
      tensor = Nx.tensor([1.0, 2.0], backend: Ferrox.Backend)
      Nx.Defn.jit(double, compiler: Ferrox).(tensor, 3)

      assert_received {:event, %{bytes: 8}, %{operation: :program, function: ^double} = metadata}
      assert %{family: :program, types: [{:f, 32}, {:s, 32}], shapes: [{2}, {}]} = metadata
      assert Ferrox.stats().families.program.calls == 1
    end

    test "of a program that calls Elixir come before and after the call" do
      kernel = Nx.Defn.Kernel
      hook = if function_exported?(kernel, :io_call, 3), do: :io_call, else: :hook
      send_it = &send(self(), {:hook, &1})
      hooked = fn x -> Nx.exp(apply(kernel, hook, [Nx.add(x, 1), :sum, send_it])) end
      tensor = Nx.tensor([1.0, 2.0], backend: Ferrox.Backend)
      Nx.Defn.jit(hooked, compiler: Ferrox).(tensor)
      assert_received {:hook, _}
      assert Ferrox.stats().families.program.calls == 2
    end
  end

  @tag :nx
  test "the code of the guide runs" do
    printed =
      for block <- Guide.blocks("guides/observing.md"),
          do: ExUnit.CaptureIO.capture_io(fn -> Guide.run(block) end)

    assert [stats, "", explained] = printed
    assert stats =~ ~r/^dot: 1 calls, \d+ us, 1000000 bytes$/m
    assert stats =~ ~r/^reduce: 1 calls, \d+ us, 4 bytes$/m
    assert explained =~ ~r/us .* dot\(/

    log =
      ExUnit.CaptureLog.capture_log(fn ->
        apply(MyApp.SlowOperations, :attach, [])
        metadata = %{operation: :sort, types: [f: 32], shapes: [{9}], function: nil}
        slow = %{duration: System.convert_time_unit(20, :millisecond, :native), bytes: 36}
        :telemetry.execute([:ferrox, :operation, :stop], slow, metadata)
        :telemetry.execute([:ferrox, :operation, :stop], %{slow | duration: 1}, metadata)
      end)

    :telemetry.detach("slow")
    assert [_, _] = String.split(log, "sort of [f: 32] and shapes [{9}] took 20 ms for 36 bytes")
  end

  test "events need telemetry" do
    if not Code.ensure_loaded?(:telemetry) do
      assert_raise ArgumentError, ~r/events need the application :telemetry/, fn ->
        Ferrox.observe(:events)
      end

      assert :persistent_term.get(Ferrox.Observer, :off) == :off
    end
  end
end
