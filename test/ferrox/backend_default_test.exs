if Code.ensure_loaded?(Nx) do
  defmodule Ferrox.BackendDefaultTest do
    # Where Ferrox.Backend is the default backend, and what Nx computes by itself
    # on it.
    use Ferrox.BackendCase, async: true

    # Which application is started there, is up to the code.
    defp in_another_vm(code) do
      paths = Enum.flat_map(:code.get_path(), &["-pa", List.to_string(&1)])
      {output, status} = System.cmd("elixir", paths ++ ["-e", code], stderr_to_stdout: true)
      assert status == 0, output
      output
    end

    describe "the default backend" do
      test "of an application, by its configuration" do
        output =
          in_another_vm("""
          Application.put_all_env([nx: [default_backend: Ferrox.Backend]], persistent: true)
          {:ok, _} = Application.ensure_all_started(:nx)
          IO.inspect(Nx.default_backend())
          IO.inspect(Nx.add(Nx.tensor([1, 2]), 1).data.__struct__)
          task = Task.async(fn -> Nx.iota({2}).data.__struct__ end)
          IO.inspect(Task.await(task))
          """)

        assert String.split(output, "\n", trim: true) ==
                 ["{Ferrox.Backend, []}", "Ferrox.Backend", "Ferrox.Backend"]
      end

      test "at compile time, without a started application" do
        output =
          in_another_vm("""
          defmodule Constants do
            @angles Nx.tensor([0.0, 1.0], backend: Ferrox.Backend)
            @sines Nx.sin(Nx.multiply(@angles, @angles))
            @sums Nx.cumulative_sum(@angles)
            def all, do: {@angles, @sines, @sums}
          end

          for tensor <- Tuple.to_list(Constants.all()), do: IO.inspect({tensor.data.__struct__, Nx.to_list(tensor)})
          started = for {app, _, _} <- Application.started_applications(), do: app
          IO.inspect(Enum.filter([:nx, :ferrox], &(&1 in started)))
          """)

        assert output == """
               {Ferrox.Backend, [0.0, 1.0]}
               {Ferrox.Backend, [0.0, 0.8414709568023682]}
               {Ferrox.Backend, [0.0, 1.0]}
               []
               """
      end
    end

    describe "what Nx computes by itself" do
      # A block that Ferrox has nothing of its own for.
      defp fallback(tensor, fun) do
        if Code.ensure_loaded?(Nx.Block.Phase),
          do: Backend.block(%{__struct__: Unknown}, tensor, [tensor], fn _, t -> fun.(t) end),
          else: Backend.optional(:unknown, [tensor], fun)
      end

      test "makes its tensors here, and leaves the default as it was" do
        tensor = on_ferrox([1, 2, 3])
        key = {Nx, :default_backend}
        assert Nx.Shared.backend_pdict_key() == key
        assert Process.get(key) == nil
        assert backend(fallback(tensor, fn _ -> Nx.iota({3}) end)) == Backend
        assert Process.get(key) == nil

        Nx.default_backend(Nx.BinaryBackend)
        assert backend(fallback(tensor, fn _ -> Nx.iota({3}) end)) == Backend
        assert Nx.default_backend() == {Nx.BinaryBackend, []}
      end

      test "leaves the default as it was after an exception, an exit and a throw" do
        tensor = on_ferrox([1])
        Nx.default_backend(Nx.BinaryBackend)
        assert_raise RuntimeError, fn -> fallback(tensor, fn _ -> raise "no" end) end
        assert catch_exit(fallback(tensor, fn _ -> exit(:no) end)) == :no
        assert catch_throw(fallback(tensor, fn _ -> throw(:no) end)) == :no
        assert Nx.default_backend() == {Nx.BinaryBackend, []}
      end
    end

    describe "compound operations" do
      test "phase, cumulative operations and all_close are native, in the Evaluator too" do
        tensor = on_ferrox([[1.0, -2.0], [3.0, 4.0]])

        for {fun, expected} <- [
              {&Nx.phase/1, [[0.0, 3.1415927410125732], [0.0, 0.0]]},
              {&Nx.cumulative_sum(&1, axis: 1), [[1.0, -1.0], [3.0, 7.0]]},
              {&Nx.cumulative_product(&1, axis: 0), [[1.0, -2.0], [3.0, -8.0]]},
              {&Nx.cumulative_min(&1, axis: 1, reverse: true), [[-2.0, -2.0], [3.0, 4.0]]},
              {&Nx.cumulative_max(&1, axis: -1), [[1.0, 1.0], [3.0, 4.0]]}
            ],
            call <- [fun, Nx.Defn.jit(fun, compiler: Nx.Defn.Evaluator)] do
          result = call.(tensor)
          assert {backend(result), Nx.to_list(result)} == {Backend, expected}
        end

        close = &Nx.all_close(&1, Nx.add(&1, 0.01), atol: 0.1)

        for call <- [close, Nx.Defn.jit(close, compiler: Nx.Defn.Evaluator)],
            do: assert(Nx.to_number(call.(tensor)) == 1)
      end

      test "options that are nil are off, as whoever passes options on has them" do
        nan = on_ferrox([:nan])
        assert Nx.to_number(Nx.all_close(nan, nan, equal_nan: nil)) == 0
        assert Nx.to_list(Nx.cumulative_sum(on_ferrox([1, 2]), reverse: nil)) == [1, 3]
      end

      test "of operands on BinaryBackend, names and vectorized axes" do
        there = Nx.tensor([1, 2])

        for {a, b} <- [{on_ferrox([1, 2]), there}, {there, on_ferrox([1, 2])}],
            do: assert(Nx.to_number(Nx.all_close(a, b)) == 1)

        named = on_ferrox([[1, 2], [3, 4]], names: [:x, :y])
        assert Nx.cumulative_sum(named, axis: :y).names == [:x, :y]

        vectors = Nx.vectorize(named, :x)
        sums = Nx.cumulative_sum(vectors, axis: :y)
        assert {sums.vectorized_axes, Nx.to_flat_list(sums)} == {[x: 2], [1, 3, 3, 7]}

        close = Nx.all_close(vectors, on_ferrox([1, 2]))
        assert {close.vectorized_axes, Nx.to_flat_list(close)} == {[x: 2], [1, 0]}
      end

      test "an all_close with tolerances that are no numbers is left to Nx" do
        a = on_ferrox([1.0, 2.0])
        assert Nx.to_number(Nx.all_close(a, a, rtol: 0, atol: 0)) == 1

        if Code.ensure_loaded?(Nx.Block.AllClose) do
          assert Nx.to_number(Nx.all_close(a, Nx.add(a, 5), atol: Nx.tensor(10))) == 1
        end
      end

      test "cumulative minima and maxima of complex numbers are refused" do
        tensor = on_ferrox([Complex.new(1, 2), Complex.new(3, 4)])
        assert_raise ArgumentError, ~r/cumulative_max.*c64/, fn -> Nx.cumulative_max(tensor) end
      end
    end

    describe "bitcast" do
      test "keeps the data, of every type of the same width" do
        types =
          [u: 2, s: 2, u: 4, s: 4, u: 8, s: 8, f: 8, u: 16, s: 16, f: 16, bf: 16] ++
            [u: 32, s: 32, f: 32, u: 64, s: 64, f: 64]

        for {_, bits} = from <- types, {_, ^bits} = to <- types do
          tensor = on_ferrox([1, 0, 1], type: from)
          result = Nx.bitcast(tensor, to)
          assert {result.type, backend(result)} == {to, Backend}
          assert Nx.bitcast(result, from) == tensor
        end

        assert Nx.to_flat_list(Nx.bitcast(on_ferrox([3, 2], type: :u2), :s2)) == [-1, -2]
      end

      test "of another width or of complex numbers is refused" do
        assert_raise ArgumentError, fn -> Nx.bitcast(on_ferrox([1.0]), :f64) end
        assert_raise ArgumentError, fn -> Nx.bitcast(on_ferrox(Complex.new(1, 2)), :f64) end
      end
    end

    describe "to_batched" do
      test "of several axes, of vectorized tensors, and beyond the tensor" do
        tensor = Nx.iota({7, 2}, backend: Backend, names: [:x, :y])
        there = Nx.backend_copy(tensor, Nx.BinaryBackend)

        for size <- 1..7, leftover <- [:repeat, :discard] do
          batches = tensor |> Nx.to_batched(size, leftover: leftover) |> Enum.to_list()
          expected = there |> Nx.to_batched(size, leftover: leftover) |> Enum.to_list()
          assert Enum.map(batches, &Nx.to_list/1) == Enum.map(expected, &Nx.to_list/1)
          assert Enum.all?(batches, &(&1.names == [:x, :y] and backend(&1) == Backend))
        end

        vectors = tensor |> Nx.vectorize(:x)
        there = there |> Nx.vectorize(:x)

        [batches, expected] =
          for t <- [vectors, there], do: t |> Nx.to_batched(3) |> Enum.to_list()

        assert Enum.map(batches, & &1.vectorized_axes) == Enum.map(expected, & &1.vectorized_axes)
        assert Enum.map(batches, &Nx.to_flat_list/1) == Enum.map(expected, &Nx.to_flat_list/1)

        assert_raise ArgumentError, "cannot batch beyond original tensor", fn ->
          Nx.to_batched(tensor, 8)
        end
      end
    end

    test "pointers are refused with the reason" do
      for call <- [
            fn -> Nx.to_pointer(on_ferrox([1, 2])) end,
            fn ->
              pointer = %Nx.Pointer{kind: :local, address: 1, data_size: 4}
              Nx.from_pointer(Backend, pointer, :f32, {1})
            end
          ] do
        assert_raise ArgumentError, ~r/Ferrox.Backend has no pointers/, call
      end
    end
  end
end
