defmodule Ferrox.Ops.SearchTest do
  # Masks and searches: every type, edges and errors. More values are compared with NumPy's in
  # test/ferrox/numpy_test.exs.
  use Ferrox.DirectCase, async: true

  alias Ferrox.Complex

  describe "masks" do
    test "are of every type, and select from every type" do
      for type <- real_types() ++ [:bool, {:c, 64}, {:c, 128}] do
        t = Ferrox.as_type(Ferrox.tensor([[1, 0, 1], [0, 0, 1]]), type)
        assert {rows, columns} = Ferrox.nonzero(t)
        assert {list(rows), list(columns)} == {[0, 0, 1], [0, 2, 2]}
        assert {rows.type, columns.type} == {{:s, 32}, {:s, 32}}
        assert Ferrox.argwhere(t).shape == {3, 2}
        assert Ferrox.extract(t, t) == Ferrox.as_type(Ferrox.tensor([1, 1, 1]), type)
        assert t[Ferrox.as_type(t, :bool)] == Ferrox.extract(t, t)

        assert Ferrox.extract(Ferrox.tensor([0, 7]), t) ==
                 Ferrox.as_type(Ferrox.tensor([[0, 0, 1]]), type)
      end
    end

    test "have the indices' type of the system" do
      assert {places} = Ferrox.nonzero(Ferrox.tensor([0, 2]), promotion: :numpy)
      assert places == Ferrox.tensor([1], type: :s64)
      assert Ferrox.argwhere(Ferrox.tensor([0, 2]), promotion: :numpy).type == {:s, 64}
    end

    test "count NaN and what is small, and neither zero" do
      t = Ferrox.tensor([:nan, 0.0, -0.0, 5.0e-324, :infinity], type: :f64)
      assert {places} = Ferrox.nonzero(t)
      assert list(places) == [0, 3, 4]
      t = Ferrox.tensor([Complex.new(0, 0), Complex.new(0, -1.0e-40)])
      assert Ferrox.argwhere(t) == Ferrox.tensor([[1]])
    end

    test "of all elements, and of the last of many" do
      t = Ferrox.iota({2, 3, 4})
      assert t[Ferrox.full({2, 3, 4}, true, type: :bool)] == Ferrox.flatten(t)
      assert t[Ferrox.full({2}, true, type: :bool)] == t
      n = 100_000
      last = Ferrox.indexed_put(Ferrox.full({n}, 0), Ferrox.tensor([n - 1]), 5)
      assert {places} = Ferrox.nonzero(last)
      assert list(places) == [n - 1]
    end

    test "that can't be are refused" do
      t = Ferrox.iota({2, 3})
      none = "and a tensor has at least one element; Ferrox.any/2 tells"

      raises("nonzero: no element of shape {2} differs from zero, #{none}", fn ->
        Ferrox.nonzero(Ferrox.tensor([0, 0]))
      end)

      raises("argwhere: no element", fn -> Ferrox.argwhere(Ferrox.tensor([0])) end)

      raises("extract: nothing is selected by a mask of zeros, #{none}", fn ->
        Ferrox.extract(Ferrox.tensor([0, 0]), t)
      end)

      raises("tensor[mask]: nothing is selected", fn ->
        t[Ferrox.full({2}, false, type: :bool)]
      end)

      raises("tensor[mask]: a mask of shape {3} does not fit a tensor of shape {2, 3}", fn ->
        t[Ferrox.full({3}, true, type: :bool)]
      end)

      raises("extract: a mask of shape {2, 3, 1} does not fit", fn ->
        Ferrox.extract(Ferrox.full({2, 3, 1}, 1), t)
      end)

      raises("extract: a mask of shape {} does not fit", fn -> Ferrox.extract(1, t) end)
      raises("nonzero expects a tensor with axes, got a scalar", fn -> Ferrox.nonzero(5) end)
      raises("nonzero: unknown option :axis", fn -> Ferrox.nonzero(t, axis: 0) end)
      raises("a mask of bools", fn -> t[[Ferrox.full({2}, true, type: :bool), 0]] end)
    end
  end

  describe "searches" do
    test "work on every type that has an order" do
      for type <- real_types() ++ [:bool] do
        sorted = Ferrox.as_type(Ferrox.tensor([0, 0, 1, 1, 1]), type)
        values = Ferrox.as_type(Ferrox.tensor([[1], [0]]), type)
        assert Ferrox.searchsorted(sorted, values) == Ferrox.tensor([[2], [0]])
        assert Ferrox.searchsorted(sorted, values, side: :right) == Ferrox.tensor([[5], [2]])

        assert Ferrox.isin(values, Ferrox.take(sorted, Ferrox.tensor([0]))) ==
                 Ferrox.tensor([[0], [1]], type: :u8)
      end
    end

    test "agree with counts of smaller elements, for every number of elements" do
      :rand.seed(:exsss, 7)

      for n <- [1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33] do
        sorted = Enum.sort(for _ <- 1..n, do: :rand.uniform(20))
        values = Enum.to_list(-1..22)
        {t, v} = {Ferrox.tensor(sorted), Ferrox.tensor(values)}
        less = for value <- values, do: Enum.count(sorted, &(&1 < value))
        at_most = for value <- values, do: Enum.count(sorted, &(&1 <= value))
        assert list(Ferrox.searchsorted(t, v)) == less
        assert list(Ferrox.searchsorted(t, v, side: :right)) == at_most

        assert list(Ferrox.isin(v, t)) ==
                 for(value <- values, do: if(value in sorted, do: 1, else: 0))
      end
    end

    test "have bins, of edges in both orders" do
      for type <- real_types() ++ [:bool] do
        values = Ferrox.as_type(Ferrox.tensor([[1], [0]]), type)
        edges = Ferrox.as_type(Ferrox.tensor([0, 1]), type)
        down = Ferrox.reverse(edges)
        assert Ferrox.digitize(values, edges) == Ferrox.tensor([[2], [1]])
        assert Ferrox.digitize(values, edges, right: true) == Ferrox.tensor([[1], [0]])
        assert Ferrox.digitize(values, down) == Ferrox.tensor([[0], [1]])
        assert Ferrox.digitize(values, down, right: true) == Ferrox.tensor([[1], [2]])
      end

      assert Ferrox.digitize(3, Ferrox.iota({2}), promotion: :numpy) ==
               Ferrox.tensor(2, type: :s64)

      assert Ferrox.digitize(Ferrox.tensor(3), 1.5 |> Ferrox.reshape({1})) == Ferrox.tensor(1)

      for wrong <- [[0, 2, 1], [2.0, :nan, 1.0]],
          do:
            raises("digitize: the edges must be in ascending or descending order", fn ->
              Ferrox.digitize(1, Ferrox.tensor(wrong))
            end)

      raises("digitize: the edges must be a vector, got shape {}", fn -> Ferrox.digitize(1, 2) end)

      raises("digitize: :right must be a boolean", fn ->
        Ferrox.digitize(1, Ferrox.iota({2}), right: 1)
      end)

      raises("digitize is not defined for c64", fn ->
        Ferrox.digitize(Complex.new(1, 2), Ferrox.iota({2}))
      end)
    end

    test "compare all types exactly" do
      sorted = Ferrox.tensor([-1, 9_007_199_254_740_992, 9_007_199_254_740_993], type: :s64)
      last = Ferrox.tensor(18_446_744_073_709_551_615, type: :u64)
      assert Ferrox.searchsorted(sorted, last) == Ferrox.tensor(3)

      assert Ferrox.searchsorted(sorted, 9_007_199_254_740_992.0, side: :right) ==
               Ferrox.tensor(2)

      assert Ferrox.searchsorted(Ferrox.tensor([0.1, 0.2], type: :f64), 0.1) == Ferrox.tensor(0)
      assert Ferrox.searchsorted(Ferrox.tensor([0.1, 0.2]), 0.1) == Ferrox.tensor(0)
      assert Ferrox.isin(last, Ferrox.tensor([-1])) == Ferrox.tensor(0, type: :u8)

      assert Ferrox.isin(Ferrox.tensor([1.0, 1.5]), Ferrox.tensor([1, 2])) ==
               Ferrox.tensor([1, 0], type: :u8)
    end

    test "have the types of the system" do
      assert Ferrox.searchsorted(Ferrox.iota({3}), 1, promotion: :numpy).type == {:s, 64}
      assert Ferrox.isin(Ferrox.iota({3}), 1, promotion: :numpy).type == :bool

      points = [
        Ferrox.tensor([0.5], type: :f16),
        Ferrox.iota({2}, type: :f16),
        Ferrox.iota({2}, type: :f16)
      ]

      assert apply(Ferrox, :interp, points).type == {:f, 32}
      assert apply(Ferrox, :interp, points ++ [[promotion: :numpy]]).type == {:f, 64}
    end

    test "between points with infinite coordinates" do
      xs = Ferrox.tensor([0.0, 1.0, 2.0])
      ys = Ferrox.tensor([:neg_infinity, 3.0, :infinity])
      assert list(Ferrox.interp(xs, xs, ys)) == [:neg_infinity, 3.0, :infinity]

      assert list(Ferrox.interp(Ferrox.tensor([:neg_infinity, :nan, :infinity]), xs, xs)) == [
               0.0,
               :nan,
               2.0
             ]
    end

    test "that can't be are refused" do
      {v, z} = {Ferrox.iota({3}), Ferrox.tensor([Complex.new(1, 2)])}

      raises("searchsorted: :side must be :left or :right, got: :middle", fn ->
        Ferrox.searchsorted(v, 1, side: :middle)
      end)

      raises("searchsorted: the sorted elements must be a vector, got shape {}", fn ->
        Ferrox.searchsorted(1, 1)
      end)

      raises("searchsorted is not defined for c64: complex numbers have no order", fn ->
        Ferrox.searchsorted(z, 1)
      end)

      raises("searchsorted is not defined for c64", fn -> Ferrox.searchsorted(v, z) end)

      raises("searchsorted: expected a Ferrox.Tensor or a number, got: [1]", fn ->
        Ferrox.searchsorted(v, [1])
      end)

      raises("isin is not defined for c64", fn -> Ferrox.isin(v, z) end)

      raises(
        "interp: there is one y-coordinate for each x-coordinate, got shapes {3} and {1}",
        fn -> Ferrox.interp(1, v, Ferrox.tensor([1])) end
      )

      raises("interp: the x-coordinates must be a vector, got shape {}", fn ->
        Ferrox.interp(1, 1, 1)
      end)

      raises("interp is not defined for c64", fn -> Ferrox.interp(z, v, v) end)
    end
  end
end
