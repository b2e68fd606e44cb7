if Code.ensure_loaded?(Nx) do
  defmodule Ferrox.BackendTest do
    # Ferrox.Backend as a user of Nx meets it. What the operations give is compared
    # in differential_test.exs and nx_doctest_test.exs.
    use Ferrox.BackendCase, async: false

    import ExUnit.CaptureIO
    import Nx.Defn

    defp same_binary?(one, other) do
      # Of binaries that are not on the heap of the process, the very same one.
      byte_size(one) > 64 and :erts_debug.same(one, other)
    end

    describe "the default backend" do
      test "of a process" do
        Nx.default_backend(Backend)
        assert backend(Nx.tensor([1, 2])) == Backend
        assert backend(Nx.iota({2})) == Backend
        assert Task.await(Task.async(fn -> backend(Nx.tensor(1)) end)) == Nx.BinaryBackend
      end

      test "of all processes" do
        {previous, opts} = Nx.default_backend()
        Nx.global_default_backend(Backend)
        on_exit(fn -> Nx.global_default_backend({previous, opts}) end)
        assert Task.await(Task.async(fn -> backend(Nx.tensor(1)) end)) == Backend
      end

      test "of one tensor" do
        assert backend(Nx.tensor([1, 2], backend: Backend)) == Backend
        assert backend(Nx.eye(2, backend: {Backend, []})) == Backend
        assert backend(Nx.tensor([1, 2])) == Nx.BinaryBackend
      end

      test "takes no options" do
        assert_raise ArgumentError,
                     ~r/Ferrox.Backend takes no options, got: \[threads: 2\]/,
                     fn ->
                       Nx.default_backend({Backend, threads: 2})
                       Nx.tensor(1)
                     end
      end
    end

    describe "transfers" do
      test "to and from BinaryBackend keep the binary" do
        there = Nx.iota({100}, type: :s32, backend: Nx.BinaryBackend)
        here = Nx.backend_transfer(there, Backend)
        assert backend(here) == Backend
        assert same_binary?(there.data.state, here.data.state)

        for fun <- [:backend_transfer, :backend_copy] do
          back = apply(Nx, fun, [here, Nx.BinaryBackend])
          assert backend(back) == Nx.BinaryBackend
          assert same_binary?(back.data.state, here.data.state)
        end

        assert same_binary?(Nx.to_binary(here), here.data.state)
      end

      test "to the same backend are no change" do
        tensor = on_ferrox([1, 2])
        assert Nx.backend_transfer(tensor, Backend) == tensor
        assert Nx.backend_copy(tensor, Backend) == tensor
      end

      test "of maps and tuples reach every tensor" do
        assert %{a: a, b: {b}} =
                 Nx.backend_transfer(%{a: Nx.tensor(1), b: {Nx.tensor(2)}}, Backend)

        assert {backend(a), backend(b)} == {Backend, Backend}
      end

      test "a tensor may be deallocated twice" do
        tensor = on_ferrox([1, 2])
        assert Nx.backend_deallocate(tensor) == :ok
        assert Nx.backend_deallocate(tensor) == :ok
      end

      test "reshape and squeeze share the data" do
        tensor = Nx.iota({1, 100}, backend: Backend)
        assert same_binary?(Nx.reshape(tensor, {10, 10}).data.state, tensor.data.state)
        assert same_binary?(Nx.squeeze(tensor).data.state, tensor.data.state)
      end

      test "a tensor goes to another process as it is" do
        tensor = Nx.iota({1000}, backend: Backend)
        task = Task.async(fn -> Nx.sum(receive(do: ({:tensor, tensor} -> tensor))) end)
        send(task.pid, {:tensor, tensor})
        sum = Task.await(task)
        assert {backend(sum), Nx.to_number(sum)} == {Backend, 499_500}
      end

      test "survives a serialization" do
        tensor = on_ferrox([[1, 2], [3, 4]], names: [:x, nil])
        assert tensor |> Nx.serialize() |> Nx.deserialize() |> Nx.to_list() == [[1, 2], [3, 4]]
        assert tensor |> :erlang.term_to_binary() |> :erlang.binary_to_term() == tensor
      end
    end

    describe "operands on BinaryBackend" do
      @a [[1.0, 2.0], [3.0, 4.0]]

      # One operand at a time.
      for {name, count, call} <- [
            {:add, 2, quote(do: &Nx.add/2)},
            {:dot, 2, quote(do: &Nx.dot/2)},
            {:select, 3, quote(do: &Nx.select/3)},
            {:concatenate, 2, quote(do: &Nx.concatenate([&1, &2]))},
            {:stack, 2, quote(do: &Nx.stack([&1, &2]))}
          ] do
        test "of #{name}, in any place" do
          fun = unquote(call)
          there = Nx.tensor(@a)
          expected = apply(fun, List.duplicate(there, unquote(count)))

          for place <- 0..(unquote(count) - 1) do
            tensors =
              there |> List.duplicate(unquote(count)) |> List.replace_at(place, on_ferrox(@a))

            result = apply(fun, tensors)
            assert Nx.to_binary(result) == Nx.to_binary(expected)
          end
        end
      end

      test "of clip and slice" do
        assert Nx.to_list(Nx.clip(on_ferrox([1, 5]), Nx.tensor(2), Nx.tensor(3))) == [2, 3]
        assert Nx.to_list(Nx.slice(on_ferrox([1, 2, 3]), [Nx.tensor(1)], [2])) == [2, 3]
      end

      test "numbers" do
        assert Nx.to_list(Nx.add(on_ferrox([1, 2]), 1)) == [2, 3]
        assert Nx.to_list(Nx.divide(1, on_ferrox([1, 2]))) == [1.0, 0.5]
      end
    end

    describe "inspection" do
      test "shows the backend, unless it is configured off" do
        # As in the tests, where doctests want it off.
        assert inspect(on_ferrox([1, 2])) == """
               #Nx.Tensor<
                 s32[2]
                 [1, 2]
               >\
               """

        code = """
        Application.put_env(:ferrox, :add_backend_on_inspect, true)
        Code.compiler_options(ignore_module_conflict: true)
        [{module, _} | _] = Code.compile_file("lib/ferrox/backend.ex")
        IO.write(inspect(Nx.tensor([1, 2], backend: module)))
        """

        shown = in_another_vm(code)

        assert shown =~ """
               #Nx.Tensor<
                 s32[2]
                 Ferrox.Backend
                 [1, 2]
               >\
               """
      end

      test "is limited" do
        assert inspect(Nx.iota({10_000}, backend: Backend), limit: 3) =~ "[0, 1, 2, ...]"
        assert inspect(on_ferrox([1, 2, 3]), limit: :infinity) =~ "[1, 2, 3]"
      end

      test "of names, complex numbers and what isn't finite" do
        assert inspect(on_ferrox([[1]], names: [:x, :y])) =~ "s32[x: 1][y: 1]"
        assert inspect(on_ferrox([:nan, :infinity], type: :bf16)) =~ "[NaN, Inf]"
        assert inspect(on_ferrox(Complex.new(1, -2))) =~ "1.0-2.0i"
      end
    end

    defp in_another_vm(code) do
      paths = Enum.flat_map(:code.get_path(), &["-pa", List.to_string(&1)])
      {output, 0} = System.cmd("elixir", paths ++ ["-e", code], stderr_to_stdout: true)
      output
    end

    describe "to_batched" do
      test "repeats from the start, or discards, what is left over" do
        tensor = Nx.iota({5, 2}, backend: Backend)
        refute is_list(Nx.to_batched(tensor, 2))
        lists = fn opts -> tensor |> Nx.to_batched(2, opts) |> Enum.map(&Nx.to_flat_list/1) end
        assert lists.([]) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 0, 1]]
        assert lists.(leftover: :discard) == [[0, 1, 2, 3], [4, 5, 6, 7]]
      end

      test "of types narrower than a byte" do
        batches = on_ferrox([1, 2, 3, 0, 1], type: :u2) |> Nx.to_batched(3) |> Enum.to_list()
        assert Enum.map(batches, &Nx.to_flat_list/1) == [[1, 2, 3], [0, 1, 1]]
        assert Enum.map(batches, &backend/1) == [Backend, Backend]
      end
    end

    describe "what Nx builds on a backend" do
      setup do
        Nx.default_backend(Backend)
        :ok
      end

      test "names" do
        tensor = on_ferrox([[1, 2], [3, 4]], names: [:row, :column])
        assert Nx.sum(tensor, axes: [:row]).names == [:column]
        assert Nx.transpose(tensor).names == [:column, :row]
        assert Nx.add(tensor, 1).names == [:row, :column]
      end

      test "vectorized tensors" do
        tensor = [[1, 2], [3, 4]] |> on_ferrox() |> Nx.vectorize(:batch)
        sum = Nx.sum(Nx.multiply(tensor, 2))
        assert {sum.vectorized_axes, Nx.to_flat_list(sum)} == {[batch: 2], [6, 14]}
        assert backend(sum) == Backend
      end

      defn(loss(w, x, y), do: Nx.mean((Nx.sigmoid(Nx.dot(x, w)) - y) ** 2))
      defn(gradient(w, x, y), do: grad(w, &loss(&1, x, y)))

      defn collatz(n) do
        {_, steps} =
          while {n, steps = 0}, n > 1 do
            {Nx.select(Nx.remainder(n, 2) == 0, Nx.quotient(n, 2), 3 * n + 1), steps + 1}
          end

        steps
      end

      test "defn, its gradients and loops, in the Evaluator" do
        {w, x, y} =
          {on_ferrox([0.1, -0.2]), on_ferrox([[1.0, 2.0], [3.0, 4.0]]), on_ferrox([0, 1])}

        there = Enum.map([w, x, y], &Nx.backend_copy(&1, Nx.BinaryBackend))

        for fun <- [&loss/3, &gradient/3, Nx.Defn.jit(&gradient/3, compiler: Nx.Defn.Evaluator)] do
          result = apply(fun, [w, x, y])
          assert backend(result) == Backend
          Nx.default_backend(Nx.BinaryBackend)
          expected = apply(fun, there)
          Nx.default_backend(Backend)

          for {got, expected} <-
                Enum.zip(Nx.to_flat_list(result), Nx.to_flat_list(expected)),
              do: assert_in_delta(got, expected, 1.0e-6)
        end

        assert Nx.to_number(collatz(27)) == 111
      end

      test "value_and_grad and hooks" do
        fun = fn x ->
          x |> Nx.multiply(x) |> Nx.Defn.Kernel.print_value(label: "square") |> Nx.sum()
        end

        assert capture_io(fn ->
                 {value, gradient} = Nx.Defn.value_and_grad(on_ferrox([1.0, 2.0]), fun)
                 assert {Nx.to_number(value), Nx.to_list(gradient)} == {5.0, [2.0, 4.0]}
               end) =~ "square"
      end

      test "batches and servings" do
        batch = Nx.Batch.stack([on_ferrox([1, 2]), on_ferrox([3, 4])])

        serving = Nx.Serving.jit(fn x -> Nx.multiply(x, 2) end)
        result = Nx.Serving.run(serving, batch)
        assert {backend(result), Nx.to_list(result)} == {Backend, [[2, 4], [6, 8]]}
      end

      test "random numbers are those of BinaryBackend" do
        {here, _} = Nx.Random.uniform(Nx.Random.key(7), shape: {20})
        Nx.default_backend(Nx.BinaryBackend)
        {there, _} = Nx.Random.uniform(Nx.Random.key(7), shape: {20})
        assert backend(here) == Backend
        assert Nx.to_binary(here) == Nx.to_binary(there)
      end
    end

    describe "errors" do
      test "of a tensor that no memory can hold" do
        shape = {1_000_000_000_000}

        for fun <- [
              fn -> Nx.iota(shape, backend: Backend) end,
              fn -> Nx.broadcast(on_ferrox(1), shape) end,
              fn -> Nx.eye({1_000_000, 1_000_000}, type: :f64, backend: Backend) end
            ] do
          assert_raise ArgumentError, ~r/memory/, fun
        end
      end

      test "of shapes and types are Nx's own" do
        assert_raise ArgumentError, "cannot broadcast tensor of dimensions {2} to {3}", fn ->
          Nx.add(on_ferrox([1, 2]), on_ferrox([1, 2, 3]))
        end

        assert_raise ArgumentError, ~r/expects integer tensors/, fn ->
          Nx.quotient(on_ferrox([1.0]), on_ferrox([1]))
        end

        assert_raise ArgumentError, "invalid value given to Nx.tensor/1, got: []", fn ->
          on_ferrox([])
        end
      end

      test "of integers name the operation and the types" do
        for {op, right, message} <- [
              {:quotient, 0, ~r/quotient.*s32.*zero/s},
              {:remainder, 0, ~r/remainder.*s32.*zero/s},
              {:pow, -1, ~r/pow.*s32.*negative/s},
              {:left_shift, -1, ~r/left_shift.*s32.*negative/s},
              {:right_shift, -1, ~r/right_shift.*s32.*negative/s}
            ] do
          assert_raise ArgumentError, message, fn ->
            apply(Nx, op, [on_ferrox([1, 2]), on_ferrox([1, right])])
          end
        end
      end
    end

    test "fifty processes at once get right answers" do
      1..50
      |> Task.async_stream(
        fn n ->
          Nx.default_backend(Backend)
          tensor = Nx.iota({n, 1000}, type: :s64)
          size = n * 1000

          for _ <- 1..20 do
            assert Nx.to_number(Nx.sum(Nx.multiply(tensor, 2))) == size * (size - 1)
            assert Nx.to_number(Nx.reduce_max(Nx.add(tensor, n))) == size - 1 + n

            assert Nx.to_number(Nx.dot(Nx.flatten(tensor), Nx.broadcast(1, {size}))) ==
                     div(size * (size - 1), 2)

            assert_raise ArgumentError, fn -> Nx.quotient(tensor, 0) end
          end
        end,
        max_concurrency: 50,
        timeout: 60_000
      )
      |> Enum.each(&assert match?({:ok, _}, &1))
    end
  end
end
