if Code.ensure_loaded?(Nx) do
  defmodule Ferrox.BackendFoldTest do
    # Reductions with an Elixir function; differential_test.exs compares their results
    # with BinaryBackend's.
    use Ferrox.BackendCase, async: true

    import Nx.Defn

    describe "reduce" do
      test "gives the function scalars of this backend, the elements in order" do
        tensor = on_ferrox([[1, 2], [3, 4]], type: :u8, names: [:x, :y])
        parent = self()

        fun = fn x, acc ->
          send(parent, {x, acc})
          x
        end

        result = Nx.reduce(tensor, Nx.tensor(0, type: :u8), [axes: [:x]], fun)
        assert {Nx.to_list(result), result.names} == {[3, 4], [:y]}
        assert backend(result) == Backend

        seen =
          for _ <- 1..4 do
            assert_received {x, acc}
            assert {backend(x), x.type, x.shape, x.names} == {Backend, {:u, 8}, {}, []}
            {Nx.to_number(x), Nx.to_number(acc)}
          end

        assert seen == [{1, 0}, {3, 1}, {2, 0}, {4, 2}]
      end

      test "takes numbers and scalars of the result's type" do
        tensor = on_ferrox([1, 2, 3])
        assert Nx.to_number(Nx.reduce(tensor, 0, fn _, _ -> 7 end)) == 7
        assert Nx.to_number(Nx.reduce(tensor, 0, fn x, _ -> Nx.backend_copy(x) end)) == 3
        assert Nx.to_number(Nx.reduce(on_ferrox([1.5]), 0, fn _, _ -> 7 end)) == 7.0
        assert Nx.to_number(Nx.reduce(on_ferrox([1.5]), 0, fn _, _ -> :nan end)) == :nan
        z = Complex.new(1, -2)
        assert Nx.to_number(Nx.reduce(on_ferrox([z]), 0, fn _, _ -> z end)) == z
      end

      test "converts scalars of other types, after each element" do
        tensor = on_ferrox([1.0, 0.75], type: :f16)
        half = Nx.tensor(0.5, type: :f64)
        sum = Nx.reduce(tensor, Nx.tensor(2048, type: :f16), &Nx.add(Nx.add(&1, half), &2))
        assert {sum.type, Nx.to_number(sum)} == {{:f, 16}, 2052.0}
        bytes = on_ferrox([1, 2], type: :u8)

        assert Nx.to_number(
                 Nx.reduce(bytes, Nx.tensor(0, type: :u8), &Nx.add(&1, Nx.add(&2, 255)))
               ) == 1
      end

      test "refuses anything else" do
        tensor = on_ferrox([1, 2, 3])

        for {value, problem} <- [
              {on_ferrox([1]), ~r/reduce: .*scalar tensor of type s32, got: #Nx.Tensor/s},
              {on_ferrox(1.0), ~r/reduce: .*scalar tensor of type s32, got: #Nx.Tensor/s},
              {:zero, ~r/reduce: .*got: :zero/},
              {1.5, ~r/the function gave 1.5, which is no s32/},
              {:infinity, ~r/the function gave :infinity, which is no s32/}
            ] do
          assert_raise ArgumentError, problem, fn ->
            Nx.reduce(tensor, 0, fn _, _ -> value end)
          end
        end
      end

      test "goes on after the function has raised, and in another process" do
        tensor = Nx.iota({100}, backend: Backend)
        assert_raise RuntimeError, fn -> Nx.reduce(tensor, 0, fn _, _ -> raise "no" end) end
        task = Task.async(fn -> Nx.reduce(tensor, 0, &Nx.add/2) end)
        assert Nx.to_number(Task.await(task)) == 4950
      end

      test "operands on BinaryBackend, in any place" do
        for {t, acc} <- [
              {on_ferrox([1, 2]), Nx.tensor(3)},
              {Nx.tensor([1, 2]), on_ferrox(3)},
              {on_ferrox([1, 2]), on_ferrox(3)}
            ],
            do: assert(Nx.to_number(Nx.reduce(t, acc, &Nx.add/2)) == 6)
      end

      test "types that share a byte" do
        tensor = on_ferrox([[1, 2, 3], [0, 1, 2]], type: :u2)
        result = Nx.reduce(tensor, Nx.tensor(0, type: :u2), [axes: [0]], &Nx.max/2)
        assert {result.type, Nx.to_flat_list(result)} == {{:u, 2}, [1, 2, 3]}
      end

      test "vectorized tensors" do
        tensor = on_ferrox([[1, 2], [3, 4]]) |> Nx.vectorize(:batch)
        result = Nx.reduce(tensor, 10, &Nx.add/2)
        assert {result.vectorized_axes, Nx.to_flat_list(result)} == {[batch: 2], [13, 17]}
      end
    end

    describe "window_reduce" do
      test "gives the function scalar tensors, padding with the accumulator" do
        parent = self()

        fun = fn x, acc ->
          send(parent, {x.type, Nx.to_number(x), acc.type, Nx.to_number(acc)})
          x
        end

        tensor = on_ferrox([1, 2, 3], type: :u8)
        opts = [padding: [{0, 1}], strides: [2]]
        result = Nx.window_reduce(tensor, Nx.tensor(9, type: :u8), {2}, opts, fun)
        assert {backend(result), result.type, Nx.to_list(result)} == {Backend, {:u, 8}, [2, 9]}
        seen = for _ <- 1..4, do: receive(do: ({{:u, 8}, x, {:u, 8}, acc} -> {x, acc}))
        assert seen == [{1, 9}, {2, 1}, {3, 9}, {9, 3}]
      end

      test "the accumulator becomes an element, or is refused" do
        # An integer is an s32, whatever the type of the tensor.
        for type <- [:u8, :s64, :bf16, :f64, :c64] do
          result = Nx.window_reduce(on_ferrox([1, 2, 3], type: type), 0, {2}, &Nx.add/2)

          assert {result.type, Nx.to_list(Nx.real(result))} ==
                   {Nx.Type.normalize!(type), [3.0, 5.0]}
        end

        for {type, acc} <- [u8: -1, u8: 256, s32: 0.5, s8: :infinity, f32: Complex.new(1, 2)] do
          assert_raise ArgumentError, ~r/window_reduce: the accumulator .* is no/, fn ->
            Nx.window_reduce(on_ferrox([1, 2], type: type), on_ferrox(acc), {2}, &Nx.add/2)
          end
        end
      end

      test "negative padding cuts off" do
        tensor = on_ferrox([1, 2, 3, 4])
        result = Nx.window_reduce(tensor, 0, {2}, [padding: [{-1, 1}]], &Nx.add/2)
        assert Nx.to_list(result) == [5, 7, 4]
      end

      test "vectorized tensors, names and operands on BinaryBackend" do
        tensor = on_ferrox([[1, 2, 3], [4, 5, 6]], names: [nil, :x]) |> Nx.vectorize(:batch)
        result = Nx.window_reduce(tensor, Nx.tensor(0), {2}, &Nx.add/2)
        assert {result.vectorized_axes, result.names} == {[batch: 2], [:x]}
        assert Nx.to_flat_list(result) == [3, 5, 9, 11]

        there = Nx.tensor([1, 2, 3])

        # Before, Nx asks the backend of the tensor alone.
        if Version.match?("#{Application.spec(:nx, :vsn)}", ">= 0.13.1"),
          do: assert(Nx.to_list(Nx.window_reduce(there, on_ferrox(0), {2}, &Nx.add/2)) == [3, 5])
      end

      # As many as the sum of the windows' sizes, not as the square of the tensor's.
      test "takes time in proportion to the windows" do
        calls = fn n ->
          counter = :counters.new(1, [])

          Nx.window_reduce(Nx.iota({n}, backend: Backend), 0, {3}, fn x, _ ->
            :counters.add(counter, 1, 1)
            x
          end)

          :counters.get(counter, 1)
        end

        assert {calls.(1_000), calls.(10_000)} == {3 * 998, 3 * 9_998}
      end
    end

    describe "in defn" do
      defn(sum(t), do: Nx.reduce(t, 0, [axes: [-1]], fn x, y -> x + y end))
      defn(windows(t), do: Nx.window_reduce(t, 0, {2}, [padding: :same], fn x, y -> x + y end))

      test "the function is one of defn's" do
        assert Nx.to_list(sum(on_ferrox([[1, 2], [3, 4]]))) == [3, 7]
        assert Nx.to_list(windows(on_ferrox([1, 2, 3]))) == [3, 5, 3]
        assert backend(windows(on_ferrox([1, 2, 3]))) == Backend
      end
    end
  end
end
