defmodule Ferrox.NativeTest do
  use ExUnit.Case, async: false

  alias Ferrox.Native

  test "long work is left to a dirty scheduler, short work is not" do
    data = fn size -> :binary.copy(<<0.5::float-32-native>>, size) end
    few = {{:f, 32}, {1000}, data.(1000)}
    many = {{:f, 32}, {4_000_000}, data.(4_000_000)}
    assert is_binary(Native.unary_normal(:exp, {:f, 32}, {1000}, few))
    assert Native.unary_normal(:exp, {:f, 32}, {4_000_000}, many) == :dirty

    assert Native.unary(:exp, {:f, 32}, many) ==
             Native.unary_dirty(:exp, {:f, 32}, {4_000_000}, many)

    matrix = put_elem(many, 1, {2000, 2000})

    assert Native.dot_normal({:f, 32}, {2000, 2000}, matrix, [1], [], matrix, [0], []) ==
             :dirty
  end

  test "what a run of a program copies is left to a dirty scheduler, if it is large" do
    {f32, size} = {{:f, 32}, 4_000_000}
    large = {0, f32, {size}}
    data = :binary.copy(<<1.5::float-32-native>>, size)

    # A value of the program, which is also kept.
    literal = put_elem(large, 0, -1)
    constant = Native.compile({[{[], 0, [], [literal, literal]}], [data]})
    assert {:paused, run} = Native.graph_run_normal(constant, {})

    assert {:error, message} = Native.graph_resume_normal(constant, run, {}, [<<0>>])
    assert message =~ "does not wait for a function"

    assert {:paused, run} = Native.graph_run_normal(constant, {})
    assert {:paused, run} = Native.graph_resume_normal(constant, run, {}, nil)
    assert Native.graph_resume_dirty(constant, run, {}, nil) == [data, data]
    assert Native.run(constant, {}) == [data, data]

    # What a function of Elixir gives.
    call = {:call, 7, [], [large]}
    asks = Native.compile({[{[], 1, [call], [large, large]}], []})
    assert {:call, run, 7, []} = Native.graph_run_normal(asks, {})
    assert Native.graph_resume_normal(asks, run, {}, [data]) == :dirty
    assert Native.resume(asks, run, {}, [data]) == [data, data]

    # What it is given.
    slots = for slot <- 0..1, do: put_elem(large, 0, slot)
    [argument, reversed] = slots
    reverse = {:run, {:reverse, [0]}, [argument], [reversed]}
    gives = {:call, 8, [reversed], [{2, f32, {}}]}
    regions = [{[{f32, {size}}], 3, [reverse, gives], [reversed, {2, f32, {}}]}]
    gives = Native.compile({regions, []})
    assert {:paused, run} = Native.graph_run_normal(gives, {data})
    assert {:call, run, 8, [^data]} = Native.graph_resume_dirty(gives, run, {data}, nil)
    assert Native.resume(gives, run, {data}, [<<0::32>>]) == [data, <<0::32>>]
  end

  test "few rows with long right sides or large results are long work" do
    tensor = fn shape, size -> {{:f, 64}, shape, :binary.copy(<<1.0::float-64-native>>, size)} end
    right = tensor.({2, 200_000}, 400_000)
    assert Native.solve_normal(:lu, {:f, 64}, tensor.({2, 2}, 4), right) == :dirty

    column = tensor.({1000, 1}, 1000)
    results = [{{:f, 64}, {1000, 1000}}, {{:f, 64}, {1000, 1}}]
    assert Native.factor_normal(:qr, results, 1.0e-10, column) == :dirty
  end

  test "what takes a while counts as time of its process, which others wait for" do
    data = :binary.copy(<<0.5::float-64-native>>, 100_000)

    used_once = fn size ->
      operand = {{:f, 64}, {size}, binary_part(data, 0, size * 8)}
      {:reductions, before} = Process.info(self(), :reductions)
      assert is_binary(Native.unary_normal(:exp, {:f, 64}, {size}, operand))
      {:reductions, now} = Process.info(self(), :reductions)
      now - before
    end

    # The collection of garbage counts as well, but not every time.
    used = fn size -> Enum.min(for _ <- 1..10, do: used_once.(size)) end

    # A hundredth of a millisecond is 40 of 4,000 reductions.
    assert used.(100) < 40
    assert used.(100_000) >= 80
  end

  test "a panic in Rust reaches Elixir as an exception, and the library goes on" do
    # rustler's message for a panic; Rust prints where it happened on stderr.
    for nif <- [&Ferrox.PanicNif.panic_normal/1, &Ferrox.PanicNif.panic_dirty/1] do
      assert_raise ErlangError, ~r/nif_panicked/, fn -> nif.("on purpose") end
    end

    assert Ferrox.to_number(Ferrox.add(1, 2)) == 3
  end

  test "the module can be loaded again, and its programs go on" do
    Code.ensure_loaded!(Native)
    type = {:f, 32}
    steps = [{:run, {:unary, :exp}, [{0, type, {100}}], [{1, type, {100}}]}]
    source = {[{[{type, {100}}], 2, steps, [{1, type, {100}}]}], []}
    run = &Native.run(&1, {<<0::3200>>})
    program = Native.compile(source)
    result = run.(program)
    assert [<<1.0::float-32-native, _::binary>>] = result

    for _ <- 1..3 do
      :code.purge(Native)
      assert {:module, Native} = :code.load_file(Native)
      assert run.(program) == result

      # The old version's types of resources are free after this, unless the new one has them.
      :code.purge(Native)
      assert run.(program) == result
      for _ <- 1..100, do: assert(run.(Native.compile(source)) == result)
      :erlang.garbage_collect()
    end

    a = Ferrox.iota({2, 2}, type: :u4)
    assert Ferrox.to_list(Ferrox.concatenate([a, a])) == [[0, 1], [2, 3], [0, 1], [2, 3]]
    assert Ferrox.to_list(Ferrox.select(a, 1, a)) == [[0, 1], [1, 1]]
    assert Ferrox.to_list(Ferrox.clip(a, 1, 2)) == [[1, 1], [2, 2]]
    assert Ferrox.to_list(Ferrox.dot(a, a)) == [[2, 3], [6, 11]]

    assert Ferrox.to_number(Ferrox.add(1, 2)) == 3
  end

  test "the module is deleted, purged and loaded beside callers" do
    stop = :atomics.new(1, [])
    type = {:f, 32}

    callers =
      for i <- 1..8 do
        # Every other caller is most of the time in the library, and keeps the old version from being purged.
        size = if rem(i, 2) == 0, do: 1_000_000, else: 2000
        operand = {type, {size}, :binary.copy(<<0::32>>, size)}

        spawn_monitor(fn ->
          # Between a deletion and the next load there is no function to call.
          call = fn call ->
            try do
              Native.unary(:exp, type, operand)
            rescue
              UndefinedFunctionError -> :deleted
            end

            if :atomics.get(stop, 1) == 0, do: call.(call)
          end

          call.(call)
        end)
      end

    changes = fn ->
      for _ <- 1..20 do
        :code.delete(Native)
        :code.soft_purge(Native)
        {:module, Native} = :code.ensure_loaded(Native)
        :code.soft_purge(Native)
      end
    end

    Ferrox.Defn.Cache.fetch(:programs, :of_this_library, fn -> {:old, 0} end)
    task = Task.async(changes)
    outcome = Task.yield(task, 20_000) || Task.shutdown(task, :brutal_kill)
    :atomics.put(stop, 1, 1)
    assert {:ok, _} = outcome
    # A program of the library that was purged can't be run.
    assert Ferrox.Defn.Cache.fetch(:programs, :of_this_library, fn -> {:new, 0} end) == :new
    for {pid, monitor} <- callers, do: assert_receive({:DOWN, ^monitor, _, ^pid, :normal}, 5000)
    assert Ferrox.to_number(Ferrox.add(1, 2)) == 3
  end

  test "memory that an operation needs in between can't take the VM down" do
    # The limit leaves room for the tensors, not for copies of them.
    script = """
    data = fn bytes -> :binary.copy(<<0>>, bytes) end
    big = fn type, n, bytes -> %Ferrox.Tensor{type: type, shape: {n}, data: data.(bytes)} end
    0 = Ferrox.to_number(Ferrox.argmax(big.({:bf, 16}, 150_000_000, 300_000_000)))
    <<_, unaligned::binary>> = data.(400_000_001)
    vector = %Ferrox.Tensor{type: {:f, 32}, shape: {100_000_000}, data: unaligned}

    try do
      Ferrox.dot(vector, vector)
      IO.puts("computed")
    rescue
      error in ArgumentError -> IO.puts(error.message)
    end

    3 = Ferrox.to_number(Ferrox.add(1, 2))
    IO.puts("alive")
    """

    {output, status} = Ferrox.ChildVM.run(script, memory: 2_500, flags: "+S 1 +SDcpu 1")
    assert {String.ends_with?(output, "alive\n"), status} == {true, 0}, output
    assert output =~ "dot: a tensor of type f32" or output =~ "computed"
  end

  test "the direct API and the backend have every operation of the library" do
    [binary, unary, reduce, cumulative] = Native.operations()

    assert {length(binary), :add in binary, :exp in unary, :sum in reduce} ==
             {24, true, true, true}

    Code.ensure_loaded!(Ferrox)
    Code.ensure_loaded!(Ferrox.Backend)

    for {ops, api_arity, backend_arity} <- [{binary, 2, 3}, {unary, 1, 2}, {reduce, 1, 3}],
        op <- ops do
      assert function_exported?(Ferrox, op, api_arity), "Ferrox.#{op}/#{api_arity} is missing"

      assert function_exported?(Ferrox.Backend, op, backend_arity),
             "Ferrox.Backend.#{op}/#{backend_arity} is missing"
    end

    # The direct API has none of these yet.
    for op <- cumulative, do: assert(function_exported?(Ferrox.Backend, op, 3))
  end

  test "terms of the wrong kind are refused" do
    operand = {{:f, 32}, {1}, <<0::32>>}

    for bad <- [
          fn -> Native.binary_normal(:no_such_op, {:f, 32}, {1}, operand, operand) end,
          fn -> Native.binary_normal(:add, {:f, 31}, {1}, operand, operand) end,
          fn -> Native.binary_normal(:add, {:f, 32}, {-1}, operand, operand) end,
          fn -> Native.binary_normal(:add, {:f, 32}, [1], operand, operand) end,
          fn -> Native.binary_normal(:add, {:f, 32}, {1}, operand, :data) end,
          fn -> Native.binary_normal(:add, {:f, 32}, {1}, operand, <<0::31>>) end,
          fn ->
            Native.binary_normal(:add, {:f, 32}, {1}, operand, {{:f, 32}, {1}, <<0::31>>})
          end,
          fn -> Native.binary_normal(:add, {:f, 32}, {1}, operand, {}) end,
          fn -> Native.binary_normal(:add, {:f, 32}, {1}, operand, {{:f, 32}, :data}) end,
          fn -> Native.as_type_normal({:f, 32}, {1}, {{:f}, <<0::32>>}) end,
          fn -> Native.dot_normal({:f, 32}, {}, operand, [-1], [], operand, [0], []) end,
          fn -> Native.dot_normal({:f, 32}, {}, operand, [0], [], 0, [0], []) end,
          fn -> Native.nx_binary_normal(:add, {:f, 32}, {1}, <<0::32>>, :one) end,
          fn -> Native.nx_binary_normal(:add, {:f, 32}, {1}, 1, 2) end,
          fn -> Native.nx_unary_normal(:exp, :nx, {1}, <<0::32>>) end,
          fn -> Native.nx_binary_normal(:add, {:f, 32}, {1}, {{:f, 33}, <<0::32>>}, operand) end,
          fn -> Native.nx_binary_normal(:add, {:f, 32}, {-1}, <<>>, <<>>) end,
          fn -> Native.binary_normal(:add, "nx", {1}, operand, operand) end,
          fn -> Native.reduce_normal(:sum, {:f, 32}, [-1], operand) end,
          fn -> Native.reduce_normal(:sum, {:f, 32}, [0, :axis], operand) end,
          fn -> Native.reduce_normal(:sum, {:f, 32}, :all, operand) end,
          fn -> Native.reduce_normal(:sum, {:f, 32}, nil, {{:f, 32}, {-1}, <<0::32>>}) end,
          fn -> Native.reduce_normal(:sum, {:f, 32}, nil, {{:f, 32}, {1}, {:f, 32}}) end,
          fn -> Native.arg_reduce_normal(:reduce_max, {:s, 32}, nil, nil, operand) end,
          fn -> Native.arg_reduce_normal(:reduce_max, {:s, 32}, -1, true, operand) end
        ] do
      assert_raise ArgumentError, bad
    end
  end

  test "improper lists are refused" do
    operand = {{:f, 32}, {2, 2}, <<0::128>>}
    {one, type} = {{{:f, 32}, {}, <<0::32>>}, {:f, 32}}
    windows = fn padding, strides -> {{1, 1}, padding, strides, [1, 1]} end
    unpadded = [{0, 0}, {0, 0}]
    unary = {:run, {:unary, :exp}, [{0, type, {2}}], [{1, type, {2}} | :end]}

    for bad <- [
          fn -> Native.reverse_normal({2, 2}, [0 | :end], operand) end,
          fn -> Native.reverse_normal({2, 2}, [0, 1 | :end], operand) end,
          fn -> Native.reverse_normal({2, 2}, [0, 1, 1 | 1], operand) end,
          fn -> Native.reduce_normal(:sum, type, [0 | :end], operand) end,
          fn -> Native.reduce_normal(:sum, type, [0 | 1], operand) end,
          fn -> Native.reduce_normal(:sum, type, [1, 0 | 1], operand) end,
          fn -> Native.concatenate_normal(type, {4, 2}, 0, [operand, operand | operand]) end,
          fn -> Native.pad_normal(type, {2, 2}, [{0, 0, 0} | {0, 0, 0}], operand, one) end,
          fn ->
            windows = windows.([{0, 0} | {0, 0}], [1, 1])
            Native.window_normal(:window_sum, type, {2, 2}, windows, operand)
          end,
          fn ->
            windows = windows.(unpadded, [1, 1 | 1])
            Native.window_normal(:window_sum, type, {2, 2}, windows, operand)
          end,
          fn ->
            windows = {[1, 1], [1, 1], [1, 1], [{0, 0} | :end]}
            Native.window_elements_normal({2, 2, 1, 1}, windows, operand, one)
          end,
          fn -> Native.fourier_normal(:fft, {:c, 64}, {2, 2}, [{1, 2} | :end], 0.0, operand) end,
          fn -> Native.factor_normal(:cholesky, [{type, {2, 2}} | :end], 0.0, operand) end,
          fn -> Native.supports(:add, type, [type, type | type]) end,
          fn -> Native.graph_compile({[{[], 0, [], []} | :end], []}) end,
          fn -> Native.graph_compile({[{[{type, {2}}], 2, [unary], [{1, type, {2}}]}], []}) end
        ] do
      assert_raise ArgumentError, bad
    end

    assert Native.result_type(:nx, [type | type]) == {:error, :operand}
  end

  test "the library checks what its callers have computed" do
    operand = {{:f, 32}, {2}, <<0::64>>}

    for {answer, problem} <- [
          {Native.binary_normal(:add, {:f, 32}, {3}, operand, operand), "don't broadcast"},
          {Native.binary_normal(:add, {:s, 32}, {2}, operand, operand), "not defined"},
          {Native.binary_normal(:add, {:f, 32}, {2}, operand, <<0::32>>), "takes 8 bytes, got 4"},
          {Native.binary_normal(:add, {:f, 32}, 2, <<0::64>>, {{:u, 8}, <<0>>}), "takes 2 bytes"},
          {Native.binary_normal(:add, {:f, 32}, 2, <<0::64>>, {{:u, 8}, {}, <<0, 0>>}),
           "takes 1 bytes, got 2"},
          {Native.binary_normal(:add, {:f, 32}, {2}, operand, {{:f, 32}, {1, 1}, <<0::32>>}),
           "don't broadcast"},
          {Native.nx_binary_normal(:add, {:f, 32}, 2, <<0::64>>, {{:u, 8}, <<0>>}),
           "takes 2 bytes"},
          {Native.nx_binary_normal(:bitwise_and, {:f, 32}, 1, <<0::32>>, {{:u, 8}, <<0>>}),
           "not defined"},
          {Native.nx_binary_normal(:quotient, {:s, 32}, 1, <<1::32>>, {{:u, 8}, <<0>>}),
           "division by zero"},
          {Native.dot_normal({:f, 32}, {}, operand, [0], [], {{:f, 32}, {2}, <<0::32>>}, [0], []),
           "takes 8 bytes, got 4"},
          {Native.unary_normal(:exp, {:s, 32}, {2}, operand), "not defined"},
          {Native.unary_normal(:exp, {:f, 32}, {3}, operand), "differ"},
          {Native.unary_normal(:exp, {:f, 32}, {3}, <<0::64>>), "takes 12 bytes, got 8"},
          {Native.as_type_normal({:f, 64}, {3}, operand), "differ"},
          {Native.nx_unary_normal(:exp, {:f, 32}, {3}, <<0::64>>), "takes 12 bytes, got 8"},
          {Native.reduce_normal(:sum, {:f, 32}, [1], operand), "axis 1 is out of range"},
          {Native.reduce_normal(:sum, {:f, 32}, nil, {{:f, 32}, {3}, <<0::64>>}),
           "takes 12 bytes, got 8"},
          {Native.reduce_normal(:sum, {:s, 32}, [0], {{:c, 64}, {1}, <<0::64>>}), "not defined"},
          {Native.arg_reduce_normal(
             :reduce_max,
             {:s, 32},
             1,
             false,
             {{:f, 32}, {2, 2}, <<0::64>>}
           ), "takes 16 bytes, got 8"},
          {Native.arg_reduce_normal(:reduce_max, {:s, 32}, 0, false, {{:f, 32}, {0}, <<>>}),
           "an empty axis"},
          {Native.transpose_normal({2}, [1], operand), "not a permutation"},
          {Native.transpose_normal({3}, [0], operand), "differ"},
          {Native.slice_normal({2}, [1], [2], [1], operand), "reaches past axis 0"},
          {Native.broadcast_normal({3}, [0], operand), "don't go together"},
          {Native.concatenate_normal({:f, 32}, {3}, 0, [operand, operand]), "can't be joined"},
          {Native.concatenate_normal({:f, 64}, {4}, 0, [operand, operand]), "not defined"},
          {Native.dot_normal({:f, 32}, {2}, operand, [0], [], operand, [0], []),
           "give a product"},
          {Native.dot_normal({:f, 32}, {}, operand, [1], [], operand, [0], []), "out of range"},
          {Native.iota_normal({:f, 32}, {2}, 1), "axis 1 is out of range"},
          {Native.eye_normal({:f, 32}, {2}), "at least two axes"}
        ] do
      assert {:error, message} = answer
      assert message =~ problem
    end
  end

  test "sizes that overflow are refused" do
    max = 0xFFFF_FFFF_FFFF_FFFF
    assert {:error, message} = Native.iota_dirty({:f, 32}, {max, max}, nil)
    assert message =~ "does not fit into memory"
    operand = {{:f, 32}, {max, 2}, <<>>}
    assert {:error, message} = Native.unary_dirty(:exp, {:f, 32}, {max, 2}, operand)
    assert message =~ "does not fit into memory"
  end
end
