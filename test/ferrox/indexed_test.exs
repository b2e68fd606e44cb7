if Code.ensure_loaded?(Nx) do
  defmodule Ferrox.IndexedTest do
    # Padding, sorts and operations on indices as a user of Nx meets them: where the
    # operands are, and what becomes of bad ones. What they give is compared in
    # differential_test.exs and nx_doctest_test.exs.
    use Ferrox.BackendCase, async: true

    setup do
      Nx.default_backend(Backend)
      :ok
    end

    defp elsewhere(list, opts \\ []), do: Nx.tensor(list, [backend: Nx.BinaryBackend] ++ opts)

    describe "indices out of bounds" do
      test "name the index, the axis and the shape" do
        t = Nx.iota({2, 3}, type: :f32)

        for {index, axis, call} <- [
              {2, 0, fn -> Nx.gather(t, Nx.tensor([[1, 1], [2, 0]])) end},
              {-1, 1, fn -> Nx.gather(t, Nx.tensor([[0, -1]])) end},
              {3, 1, fn -> Nx.gather(t, Nx.tensor([[2], [3]], type: :u64), axes: [1]) end},
              {3, 1, fn -> Nx.take(t, Nx.tensor([0, 3]), axis: 1) end},
              {-4, 0, fn -> Nx.take(t, Nx.tensor([[-4]])) end},
              {5, 1, fn -> Nx.take_along_axis(t, Nx.tensor([[0], [5]]), axis: 1) end},
              {2, 0, fn -> Nx.indexed_add(t, Nx.tensor([[2, 0]]), Nx.tensor([1.0])) end},
              {9, 0, fn -> Nx.indexed_put(t, Nx.tensor([[1], [9]]), Nx.iota({2, 3})) end}
            ] do
          message = "index #{index} is out of bounds for axis #{axis} in shape {2, 3}"
          assert_raise ArgumentError, message, call
        end
      end

      test "of 64 bits are not taken for small ones" do
        t = Nx.tensor([1, 2])

        assert_raise ArgumentError, ~r/^index 18446744073709551615 is out of bounds/, fn ->
          Nx.take(t, Nx.tensor([18_446_744_073_709_551_615], type: :u64))
        end
      end

      test "of slices are moved into the tensor" do
        t = Nx.tensor([1, 2, 3])
        slice = Nx.tensor([8, 9])
        assert Nx.to_list(Nx.put_slice(t, [5], slice)) == [1, 8, 9]
        assert Nx.to_list(Nx.put_slice(t, [Nx.tensor(-7)], slice)) == [8, 9, 3]
      end
    end

    test "k is at most the size of the last axis" do
      assert_raise ArgumentError, ~r/got size=2 and k=3/, fn ->
        Nx.top_k(Nx.tensor([1, 2]), k: 3)
      end

      # As a backend of 0.9 is called.
      out = %{Nx.tensor([0, 0, 0]) | data: nil}

      assert_raise ArgumentError, "top_k: k is 3, but the last axis has a size of 2", fn ->
        Backend.top_k({out, out}, Nx.tensor([1, 2]), k: 3)
      end
    end

    test "complex numbers have no order" do
      t = Nx.tensor([Complex.new(1, 2)])

      for call <- [&Nx.sort/1, &Nx.argsort/1, &Nx.top_k/1],
          do: assert_raise(ArgumentError, fn -> call.(t) end)
    end

    test "NaN is above infinity, equal elements keep their order" do
      t = Nx.tensor([:nan, 1.0, :neg_infinity, :infinity, -0.0, 0.0, :nan], type: :bf16)
      [ascending, descending] = for d <- [:asc, :desc], do: Nx.sort(t, direction: d)

      assert Nx.to_list(ascending) == [:neg_infinity, -0.0, 0.0, 1.0, :infinity, :nan, :nan]
      assert Nx.to_list(descending) == [:nan, :nan, :infinity, 1.0, -0.0, 0.0, :neg_infinity]
      assert Nx.to_list(Nx.argsort(t)) == [2, 4, 5, 1, 3, 0, 6]
      assert Nx.to_list(Nx.argsort(t, direction: :desc)) == [0, 6, 3, 1, 4, 5, 2]
      {values, places} = Nx.top_k(t, k: 3)
      assert {Nx.to_list(values), Nx.to_list(places)} == {[:nan, :nan, :infinity], [0, 6, 3]}
    end

    test "updates of one element are added up, the last is put" do
      t = Nx.tensor([1.0, 2.0, 3.0])
      {places, updates} = {Nx.tensor([[1], [0], [1]]), Nx.tensor([10.0, 20.0, 30.0])}
      assert Nx.to_list(Nx.indexed_add(t, places, updates)) == [21.0, 42.0, 3.0]
      assert Nx.to_list(Nx.indexed_put(t, places, updates)) == [20.0, 30.0, 3.0]
    end

    test "updates smaller than what they update are for its start" do
      t = Nx.broadcast(0, {2, 3, 3})
      updates = Nx.iota({1, 2, 2}) |> Nx.add(1)
      put = Nx.indexed_put(t, Nx.tensor([[1]]), updates)
      assert Nx.to_list(put[1]) == [[1, 2, 0], [3, 4, 0], [0, 0, 0]]
      assert Nx.to_list(put[0]) == Nx.to_list(t[0])
    end

    test "vectorized tensors have updates along some axes" do
      args = [
        Nx.vectorize(Nx.iota({2, 2, 3}), :x),
        Nx.tensor([[0], [2]]),
        Nx.tensor([[10, 20], [30, 40]])
      ]

      for {fun, expected} <- [
            {&Nx.indexed_put/4, [[[10, 1, 30], [20, 4, 40]], [[10, 7, 30], [20, 10, 40]]]},
            {&Nx.indexed_add/4, [[[10, 1, 32], [23, 4, 45]], [[16, 7, 38], [29, 10, 51]]]}
          ] do
        assert Nx.to_list(Nx.devectorize(apply(fun, args ++ [[axes: [1]]]))) == expected
        of_tensors = &fun.(&1, &2, &3, axes: [1])
        compiled = Nx.Defn.jit_apply(of_tensors, args, compiler: Ferrox, fallback: :raise)
        assert Nx.to_list(Nx.devectorize(compiled)) == expected
      end
    end

    test "a padding of another type gives the type of both" do
      padded = Nx.pad(Nx.tensor([1, 2], type: :u8), 0.5, [{1, 0, 1}])
      assert {padded.type, Nx.to_list(padded)} == {{:f, 32}, [0.5, 1.0, 0.5, 2.0]}
      scalar = Nx.pad(Nx.tensor(3), 0.5, [])
      assert {scalar.type, Nx.to_number(scalar)} == {{:f, 32}, 3.0}
    end

    test "an axis may be cut off past its end" do
      assert Nx.to_list(Nx.pad(Nx.tensor([1, 2, 3]), 0, [{-5, 4, 0}])) == [0, 0]
      assert Nx.to_list(Nx.pad(Nx.tensor([1, 2, 3]), 0, [{4, -5, 0}])) == [0, 0]
      assert Nx.to_list(Nx.pad(Nx.tensor([1, 2, 3]), 0, [{-3, 1, 1}])) == [0, 3, 0]
    end

    test "operands may be on BinaryBackend, in any place" do
      t = [[3.0, 1.0], [2.0, 4.0]]
      [rows, along] = [[[1], [0]], [[0, 1], [1, 0]]]

      for {args, call} <- [
            {[t, rows], &Nx.gather/2},
            {[t, [1, 0]], &Nx.take/2},
            {[t, along], &Nx.take_along_axis/2},
            {[t, rows, t], &Nx.indexed_add/3},
            {[t, rows, t], &Nx.indexed_put/3},
            {[t, 0.0], &Nx.pad(&1, &2, [{1, 0, 0}, {0, 1, 1}])},
            {[t, [[9.0]]], &Nx.put_slice(&1, [1, 0], &2)}
          ] do
        here = Enum.map(args, &Nx.tensor/1)
        Nx.default_backend(Nx.BinaryBackend)
        expected = apply(call, Enum.map(args, &elsewhere/1))
        Nx.default_backend(Backend)
        assert backend(expected) == Nx.BinaryBackend

        for place <- 0..(length(args) - 1) do
          mixed = List.replace_at(here, place, elsewhere(Enum.at(args, place)))
          got = apply(call, mixed)
          # Nx 0.9 asks the backend of the first.
          if place > 0, do: assert(backend(got) == Backend)
          assert Nx.to_binary(got) == Nx.to_binary(expected)
        end
      end
    end

    test "blocks keep names, vectorized axes and the backend, in defn too" do
      t = Nx.tensor([[3, 1, 2], [6, 5, 4]], names: [:x, :y])
      {values, places} = Nx.top_k(t, k: 2)
      assert {values.names, backend(values), backend(places)} == {[:x, :y], Backend, Backend}
      {values, places} = Nx.Defn.jit(&Nx.top_k(&1, k: 2)).(t)
      assert {Nx.to_list(values), Nx.to_list(places)} == {[[3, 2], [6, 5]], [[0, 2], [0, 1]]}
      assert backend(values) == Backend

      assert Nx.to_list(Nx.Defn.jit(&Nx.take(&1, Nx.tensor([2, 0]), axis: :y)).(t)) == [
               [2, 3],
               [4, 6]
             ]

      sorted = t |> Nx.vectorize(:x) |> Nx.sort() |> Nx.devectorize()
      assert Nx.to_list(sorted) == [[1, 2, 3], [4, 5, 6]]
      along = Nx.take_along_axis(t, Nx.argsort(t, axis: 1), axis: 1)
      assert {along.names, Nx.to_list(along)} == {[:x, :y], [[1, 2, 3], [4, 5, 6]]}
    end
  end
end
