defmodule Ferrox.Ops.SortTest do
  # Sorts, statistics, cumulative operations and indices: every type, shapes and errors. The values are
  # compared with NumPy's in test/ferrox/numpy_test.exs.
  use Ferrox.DirectCase, async: true

  alias Ferrox.{Complex, Promotion}

  describe "sorts" do
    test "work on every type that has an order" do
      for type <- real_types() ++ [:bool] do
        t = Ferrox.as_type(Ferrox.tensor([[1, 0, 1], [0, 1, 0]]), type)
        zero_one = if type == :bool, do: [false, true], else: [0, 1]
        assert Ferrox.type(Ferrox.sort(t)) == type
        assert Enum.map(list(Ferrox.sort(t, axis: 1)), &at(zero_one, &1)) == [0, 1, 1, 0, 0, 1]
        assert list(Ferrox.argsort(t, axis: 1)) == [1, 0, 2, 0, 2, 1]
        assert list(Ferrox.argsort(t, axis: 1, direction: :desc)) == [0, 2, 1, 1, 0, 2]
        {values, indices} = Ferrox.top_k(t, k: 2)
        assert {Ferrox.type(values), Ferrox.shape(values)} == {type, {2, 2}}
        assert list(indices) == [0, 2, 1, 0]
        assert Ferrox.unique(t) == Ferrox.as_type(Ferrox.tensor([0, 1]), type)
        assert list(elem(Ferrox.unique_counts(t), 1)) == [3, 3]
        assert list(elem(Ferrox.unique_inverse(t), 1)) == [1, 0, 1, 0, 1, 0]
      end
    end

    defp at(zero_one, x), do: Enum.find_index(zero_one, &(&1 == x))

    test "find equal parts of every type" do
      for type <- real_types() ++ [:bool] do
        t = Ferrox.as_type(Ferrox.tensor([[1, 0, 1], [0, 1, 0], [1, 0, 1], [1, 0, 0]]), type)
        as = &Ferrox.as_type(Ferrox.tensor(&1), type)
        rows = as.([[0, 1, 0], [1, 0, 0], [1, 0, 1]])
        assert Ferrox.unique(t, axis: 0) == rows
        assert Ferrox.unique_counts(t, axis: 0) == {rows, Ferrox.tensor([1, 1, 2])}
        assert Ferrox.unique_index(t, axis: 0) == {rows, Ferrox.tensor([1, 3, 0])}
        assert Ferrox.unique_inverse(t, axis: 0) == {rows, Ferrox.tensor([2, 0, 2, 1])}
        assert Ferrox.unique(Ferrox.transpose(t), axis: -1) == Ferrox.transpose(rows)
        assert Ferrox.unique_index(t) == {as.([0, 1]), Ferrox.tensor([1, 0])}
      end
    end

    test "agree with Enum on random rows" do
      :rand.seed(:exsss, 41)

      for n <- [1, 2, 9, 200], width <- [1, 2, 5] do
        rows = for _ <- 1..n, do: for(_ <- 1..width, do: :rand.uniform(3))
        {values, inverse} = Ferrox.unique_inverse(Ferrox.tensor(rows), axis: 0)
        assert Ferrox.to_list(values) == rows |> Enum.sort() |> Enum.uniq()
        assert Ferrox.to_list(Ferrox.take(values, inverse)) == rows
        {_values, first} = Ferrox.unique_index(Ferrox.tensor(rows), axis: 0)

        assert list(first) ==
                 for(row <- Ferrox.to_list(values), do: Enum.find_index(rows, &(&1 == row)))
      end
    end

    test "count zeros and NaN of parts as one value" do
      nan = Ferrox.tensor(:nan, type: :f64)

      t =
        Ferrox.stack([
          nan,
          Ferrox.tensor(1.0, type: :f64),
          Ferrox.negate(nan),
          Ferrox.tensor(1.0, type: :f64)
        ])

      rows = Ferrox.stack([t, Ferrox.tensor([0.0, 2.0, -0.0, 2.0], type: :f64)], axis: 1)
      assert {values, counts} = Ferrox.unique_counts(rows, axis: 0)
      assert {list(values), list(counts)} == {[1.0, 2.0, :nan, 0.0], [2, 2]}
      raises("unique is not defined for c64", fn -> Ferrox.unique(Complex.new(1, 2)) end)
      raises("unique_index: axis 2 is out of range", fn -> Ferrox.unique_index(rows, axis: 2) end)
      raises("unique: unknown option :axes", fn -> Ferrox.unique(rows, axes: [0]) end)
    end

    test "find the most frequent element of every type, of several the smallest" do
      for type <- real_types() ++ [:bool] do
        t = Ferrox.as_type(Ferrox.tensor([[1, 0, 1], [0, 1, 0]]), type)
        as = &Ferrox.as_type(Ferrox.tensor(&1), type)
        assert Ferrox.mode(t, axis: 1) == as.([1, 0])
        assert Ferrox.mode(t, axis: 0, keep_axis: true) == as.([[0, 0, 0]])
        assert Ferrox.mode(t) == as.(0)
        assert Ferrox.mode(t, keep_axis: true) == as.([[0]])
        assert Ferrox.mode(t[0..0], axis: 0) == t[0]
        assert Ferrox.mode(t[0][0]) == t[0][0]
      end

      t =
        Ferrox.tensor([
          [:nan, :nan, 2.0, :nan],
          [:nan, 5.0, :infinity, :infinity],
          [:nan, :nan, :nan, :nan]
        ])

      assert list(Ferrox.mode(t, axis: 1)) == [2.0, :infinity, :nan]
      raises("mode is not defined for c64", fn -> Ferrox.mode(Complex.new(1, 2)) end)
      raises("mode: axis 2 is out of range", fn -> Ferrox.mode(t, axis: 2) end)
    end

    test "agree with Enum on random elements" do
      :rand.seed(:exsss, 39)

      for n <- [1, 2, 3, 17, 1000], range <- [1, 5, 1000] do
        numbers = for _ <- 1..n, do: :rand.uniform(range)
        t = Ferrox.tensor(numbers)
        assert list(Ferrox.sort(t)) == Enum.sort(numbers)
        assert list(Ferrox.unique(t)) == numbers |> Enum.sort() |> Enum.uniq()
        frequencies = Enum.frequencies(numbers)
        {number, _count} = Enum.max_by(Enum.sort(frequencies), &elem(&1, 1))
        assert Ferrox.to_number(Ferrox.mode(t)) == number
        {values, counts} = Ferrox.unique_counts(t)
        assert Map.new(Enum.zip(list(values), list(counts))) == Enum.frequencies(numbers)
        {values, inverse} = Ferrox.unique_inverse(t)
        assert Ferrox.take(values, inverse) == t

        assert list(Ferrox.bincount(t)) ==
                 for(i <- 0..Enum.max(numbers), do: Enum.count(numbers, &(&1 == i)))
      end
    end

    test "give indices of the type that the system has, or of the given one" do
      t = Ferrox.iota({3})
      assert Ferrox.type(Ferrox.argsort(t)) == {:s, 32}
      assert Ferrox.type(Ferrox.argsort(t, promotion: :numpy)) == {:s, 64}
      assert Ferrox.type(Ferrox.argsort(t, type: :u8)) == {:u, 8}
      assert Ferrox.type(elem(Ferrox.top_k(t, promotion: {:jax, x64: false}), 1)) == {:s, 32}
      assert Ferrox.type(elem(Ferrox.unique_counts(t), 1)) == {:s, 32}
    end

    test "refuse what has no order, and bad options" do
      complex = Ferrox.tensor([Complex.new(1, 2)])

      for f <- [&Ferrox.sort/1, &Ferrox.argsort/1, &Ferrox.top_k/1, &Ferrox.unique/1],
          do: raises("is not defined for c64", fn -> f.(complex) end)

      raises("median is not defined for c64: complex numbers have no order", fn ->
        Ferrox.median(complex)
      end)

      raises("sort: :direction must be :asc or :desc, got: :down", fn ->
        Ferrox.sort(Ferrox.iota({2}), direction: :down)
      end)

      raises("sort: axis 0 is out of range for shape {}", fn -> Ferrox.sort(1) end)
      raises("top_k: :k must be from 1 to 2", fn -> Ferrox.top_k(Ferrox.iota({2}), k: 3) end)
      raises("an index is no bool", fn -> Ferrox.argsort(Ferrox.iota({2}), type: :bool) end)
    end
  end

  describe "statistics" do
    test "are computed in two passes, in 64 bits" do
      # In one pass, and in f32, all digits are lost.
      t = Ferrox.tensor([1.0e6, 1.0e6 + 1, 1.0e6 + 2])
      assert Ferrox.to_number(Ferrox.variance(t)) == 0.6666666865348816
      wide = Ferrox.tensor([1.0e9, 1.0e9 + 1, 1.0e9 + 2], type: :f64)
      assert Ferrox.to_number(Ferrox.variance(wide)) == 2 / 3
      bf16 = Ferrox.tensor([256, 258, 260], type: :bf16)
      assert Ferrox.to_number(Ferrox.variance(bf16)) == 2.671875
    end

    test "a coefficient of correlation is at most one, and NaN of what doesn't vary" do
      :rand.seed(:exsss, 11)
      t = Ferrox.tensor(for(_ <- 1..100, do: for(_ <- 1..3, do: :rand.normal())), type: :f64)
      twice = Ferrox.concatenate([t, Ferrox.multiply(t, 1.0e-7), Ferrox.negate(t)], axis: 1)
      coefficients = Ferrox.corrcoef(twice)
      assert Ferrox.to_number(Ferrox.reduce_max(coefficients)) <= 1
      assert Ferrox.to_number(Ferrox.reduce_min(coefficients)) >= -1

      assert Ferrox.to_number(
               Ferrox.all_close(Ferrox.take_diagonal(coefficients), 1, rtol: 1.0e-15)
             ) == 1

      assert_in_delta Ferrox.to_number(coefficients[[0, 3]]), 1, 1.0e-15
      assert_in_delta Ferrox.to_number(coefficients[[0, 6]]), -1, 1.0e-15

      assert [one, :nan, :nan, :nan] = list(Ferrox.corrcoef(Ferrox.tensor([[1, 5], [2, 5]])))
      assert one == 1.0
      assert Ferrox.corrcoef(Ferrox.iota({5, 4, 2})).shape == {5, 2, 2}
      assert Ferrox.corrcoef(Ferrox.iota({4, 2}), promotion: :numpy).type == {:f, 64}
    end

    test "a distance of extremes has the type of a difference" do
      for type <- real_types() ++ [:bool] do
        t = Ferrox.as_type(Ferrox.tensor([[1, 0], [1, 1]]), type)
        assert Ferrox.ptp(t) == Ferrox.subtract(Ferrox.reduce_max(t), Ferrox.reduce_min(t))
        assert list(Ferrox.ptp(t, axes: [1], keep_axes: true)) == [1, 0]
        assert Ferrox.ptp(t, axes: [1], keep_axes: true).shape == {2, 1}
      end

      assert Ferrox.to_number(Ferrox.ptp(Ferrox.tensor([1.0, :nan]))) == :nan
    end

    test "have the type of a mean, of complex numbers a real one" do
      for {type, promotion, expected} <- [
            {:u8, :nx, {:f, 32}},
            {:u8, :numpy, {:f, 64}},
            {:bf16, :nx, {:bf, 16}},
            {:c64, :nx, {:f, 32}},
            {:c128, :numpy, {:f, 64}}
          ],
          f <- [&Ferrox.variance/2, &Ferrox.standard_deviation/2] do
        result =
          f.(Ferrox.full({2, 2}, 1, type: type), promotion: promotion, axes: [0], keep_axes: true)

        assert {result.type, result.shape} == {expected, {1, 2}}
      end

      raises("variance is not defined for s32 under", fn ->
        Ferrox.variance(Ferrox.iota({2}), promotion: :array_api)
      end)
    end

    test "refuse what they can't do" do
      raises(
        "variance: :ddof must be an integer from 0 to 1, below the number of elements, 2",
        fn ->
          Ferrox.variance(Ferrox.iota({2}), ddof: 2)
        end
      )

      raises("covariance expects a tensor of at least two axes", fn ->
        Ferrox.covariance(Ferrox.iota({2}))
      end)

      raises("corrcoef expects a tensor of at least two axes", fn ->
        Ferrox.corrcoef(Ferrox.iota({2}))
      end)

      raises("corrcoef: unknown option :ddof", fn -> Ferrox.corrcoef(Ferrox.eye(2), ddof: 1) end)
      raises("ptp is not defined for c64", fn -> Ferrox.ptp(Complex.new(1, 2)) end)
      raises("ptp: axis 1 is out of range", fn -> Ferrox.ptp(Ferrox.iota({2}), axes: [1]) end)

      raises("ptp is not defined for bool under system: :numpy", fn ->
        Ferrox.ptp(Ferrox.tensor([true], type: :bool), promotion: :numpy)
      end)

      raises("percentile expects a number from 0 to 100", fn ->
        Ferrox.percentile(Ferrox.iota({2}), 101)
      end)

      raises("quantile expects a number", fn -> Ferrox.quantile(Ferrox.iota({2}), [0.5, :nan]) end)

      raises("quantile expects a number", fn -> Ferrox.quantile(Ferrox.iota({2}), []) end)

      raises("bincount: negative integers are not counted, got: -1", fn ->
        Ferrox.bincount(Ferrox.tensor([-1]))
      end)

      raises("bincount expects integers, got: f32", fn ->
        Ferrox.bincount(Ferrox.tensor([1.0]))
      end)

      raises("does not fit into memory", fn ->
        Ferrox.bincount(Ferrox.tensor([2 ** 62], type: :s64))
      end)

      raises("histogram: :bins must be a positive", fn ->
        Ferrox.histogram(Ferrox.iota({2}), bins: 0)
      end)

      raises("give a finite :range", fn -> Ferrox.histogram(Ferrox.tensor([:nan, 1.0])) end)

      raises("histogram: :range must be", fn ->
        Ferrox.histogram(Ferrox.iota({2}), range: {1, 1})
      end)
    end

    test "quantiles take tensors of fractions, and keep the axis where that is asked" do
      t = Ferrox.iota({2, 5})
      assert list(Ferrox.quantile(t, Ferrox.tensor([0.0, 0.5]))) == [0.0, 4.5]

      assert Ferrox.shape(Ferrox.quantile(t, Ferrox.tensor(0.5), axis: 1, keep_axis: true)) ==
               {2, 1}

      assert Ferrox.shape(Ferrox.quantile(t, [0.5, 1.0], keep_axis: true)) == {2, 1, 1}
      assert Ferrox.median(t, axis: 1) == Ferrox.tensor([2, 7])
      assert Ferrox.median(t, axis: 1, promotion: :numpy) == Ferrox.tensor([2, 7], type: :f64)
      # An integer that f64 does not hold.
      large = Ferrox.tensor([2 ** 53 + 1], type: :s64)
      assert Ferrox.median(large) == Ferrox.squeeze(large)
    end

    test "infinities have quantiles between them and numbers" do
      t = Ferrox.tensor([:neg_infinity, 1.0, 2.0, :infinity])

      assert list(Ferrox.quantile(t, [0, 0.1, 0.3, 0.5, 0.9, 1])) ==
               [:neg_infinity, :neg_infinity, :neg_infinity, 1.5, :infinity, :infinity]

      wide = Ferrox.tensor([-1.5e308, 1.5e308], type: :f64)
      assert list(Ferrox.quantile(wide, 0.5)) == [0.0]
    end
  end

  describe "cumulative operations" do
    test "under each system" do
      small = Ferrox.tensor([100, 100], type: :s8)

      for {promotion, type, sum} <- [
            {:nx, {:s, 8}, -56},
            {:jax, {:s, 8}, -56},
            {:numpy, {:s, 64}, 200},
            {:array_api, {:s, 64}, 200},
            {:ivy, {:s, 32}, 200}
          ] do
        result = Ferrox.cumulative_sum(small, promotion: promotion)
        assert {result.type, list(result)} == {type, [100, sum]}
        assert Ferrox.cumulative_max(small, promotion: promotion) == small
      end

      bool = Ferrox.tensor([true, true], type: :bool)
      assert Ferrox.cumulative_sum(bool) == Ferrox.tensor([1, 2], type: :u8)
      assert Ferrox.cumulative_sum(bool, promotion: :jax) == Ferrox.tensor([1, 2], type: :s64)
      assert Ferrox.cumulative_min(bool, promotion: :jax) == bool

      raises("cumulative_sum is not defined for bool", fn ->
        Ferrox.cumulative_sum(bool, promotion: :array_api)
      end)
    end

    test "from the end, and errors" do
      t = Ferrox.tensor([[1, 2, 3]])
      assert list(Ferrox.cumulative_sum(t, axis: 1, reverse: true)) == [6, 5, 3]
      raises("cumulative_sum: axis 2", fn -> Ferrox.cumulative_sum(t, axis: 2) end)
      raises(":reverse must be a boolean", fn -> Ferrox.cumulative_min(t, reverse: :yes) end)
      raises("diff: :order must be from 0 to 2", fn -> Ferrox.diff(t, order: 3) end)
    end
  end

  describe "indices" do
    test "replace elements in a promoted type" do
      t = Ferrox.iota({2, 3})
      half = Ferrox.tensor([[0.5]])

      assert Ferrox.put_slice(t, [9, -4], half) ==
               Ferrox.tensor([[0.0, 1.0, 2.0], [0.5, 4.0, 5.0]])

      assert Ferrox.indexed_put(t, Ferrox.tensor([1, 1]), 9) ==
               Ferrox.tensor([[0, 1, 2], [3, 9, 5]])

      assert list(Ferrox.indexed_put(t, Ferrox.tensor([[2]]), Ferrox.tensor([[7, 8]]), axes: [1])) ==
               [0, 1, 7, 3, 4, 8]

      bool = Ferrox.tensor([true, true], type: :bool)

      put =
        Ferrox.indexed_put(bool, Ferrox.tensor([[0]]), Ferrox.tensor([false], type: :bool),
          promotion: :numpy
        )

      assert list(put) == [false, true]

      assert Ferrox.pad(t, 0.5, [{0, 0, 0}, {0, 1, 0}]) |> list() == [
               0.0,
               1.0,
               2.0,
               0.5,
               3.0,
               4.0,
               5.0,
               0.5
             ]

      assert Ferrox.type(Ferrox.pad(Ferrox.tensor([1], type: :u8), -1, [{1, 1, 0}])) == {:s, 16}
    end

    test "that are out of bounds, no integers or of other shapes are refused" do
      t = Ferrox.iota({2, 3})

      raises("index -1 is out of bounds for axis 0", fn -> Ferrox.take(t, Ferrox.tensor([-1])) end)

      raises("take: indices must be integers, got: f32", fn ->
        Ferrox.take(t, Ferrox.tensor([1.0]))
      end)

      raises("take: indices must be integers, got: bool", fn ->
        Ferrox.take(t, Ferrox.tensor([true], type: :bool))
      end)

      raises("must have the shape of the tensor, {2, 3}, but along axis 0", fn ->
        Ferrox.take_along_axis(t, Ferrox.iota({2, 2}))
      end)

      raises("gather: indices must have at least one axis", fn -> Ferrox.gather(t, 1) end)
      raises("gather: the last axis of indices", fn -> Ferrox.gather(t, Ferrox.iota({1, 3})) end)

      raises("gather: the last axis of indices", fn ->
        Ferrox.gather(t, Ferrox.iota({1, 2}), axes: [1, 0])
      end)

      raises("indexed_add: updates must have the shape {1}", fn ->
        Ferrox.indexed_add(t, Ferrox.tensor([[0, 0]]), Ferrox.iota({2}))
      end)

      raises("indexed_put: updates must have the shape {1, 3}", fn ->
        Ferrox.indexed_put(t, Ferrox.tensor([[0]]), Ferrox.iota({1, 4}))
      end)

      raises("indices must have one or two axes", fn ->
        Ferrox.indexed_put(t, Ferrox.iota({1, 1, 1}), 1)
      end)

      bool = Ferrox.tensor([true], type: :bool)

      raises("indexed_add is not defined for bool", fn ->
        Ferrox.indexed_add(bool, Ferrox.tensor([[0]]), bool, promotion: :numpy)
      end)

      raises("a slice of shape {3, 3} does not fit", fn ->
        Ferrox.put_slice(t, [0, 0], Ferrox.iota({3, 3}))
      end)

      raises("starts must be a list of one integer", fn ->
        Ferrox.put_slice(t, [0], Ferrox.iota({1, 1}))
      end)
    end

    test "in brackets" do
      t = Ferrox.iota({2, 3})
      assert t[[]] == t
      assert t[[1, 2]] |> Ferrox.to_number() == 5
      assert t[[0..1, Ferrox.tensor(1)]] |> list() == [1, 4]
      assert t[-1][0..1//1] |> list() == [3, 4]
      assert get_in(t, [1, 2]) |> Ferrox.to_number() == 5
      raises("index 2 is out of bounds for axis 0 of shape {2, 3}", fn -> t[2] end)
      raises("index -4 is out of bounds for axis 1", fn -> t[[0, -4]] end)
      raises("3 indices were given for the 2 axes", fn -> t[[0, 0, 0]] end)
      raises("the step of a range must be positive, got: 1..0//-1", fn -> t[1..0//-1] end)
      raises("selects nothing along axis 0", fn -> t[1..0//1] end)
      raises("expects an integer, a range", fn -> t[:x] end)
      raises("expects an integer, a range", fn -> t[[0, "x"]] end)
      raises("a scalar has no axes", fn -> Ferrox.tensor(1)[0] end)
      raises("can't be updated through Access", fn -> put_in(t[0], 1) end)
      raises("can't be popped", fn -> pop_in(t[0]) end)
    end
  end

  test "shapes that can't be are refused" do
    t = Ferrox.iota({2, 3})

    raises("tile: repetitions must be a list of positive integers, got: [0]", fn ->
      Ferrox.tile(t, [0])
    end)

    raises("repeat: times must be a positive integer", fn -> Ferrox.repeat(t, 0) end)
    raises("repeat: a tensor of shape", fn -> Ferrox.repeat(t, 2 ** 62) end)
    raises("split: axis 0 of shape {2, 3} can't be split at 2", fn -> Ferrox.split(t, 2) end)
    raises("can't be split at :half", fn -> Ferrox.split(t, :half) end)
    assert {a, b} = Ferrox.split(t, 0.5, axis: 1)
    assert {list(a), list(b)} == {[0, 1, 3, 4], [2, 5]}
    raises("pad: the value must be a scalar", fn -> Ferrox.pad(t, t, [{0, 0, 0}, {0, 0, 0}]) end)
    raises("pad: the padding must be a list", fn -> Ferrox.pad(t, 0, [{0, 0}]) end)

    raises("pad: nothing is left of shape {2, 3}", fn ->
      Ferrox.pad(t, 0, [{-2, 0, 0}, {0, 0, 0}])
    end)
  end

  test "weak tensors stay weak where only elements move" do
    Promotion.with(:jax, fn ->
      t = Ferrox.full({3}, 1)
      assert t.weak

      for f <- [&Ferrox.sort/1, &Ferrox.reverse/1, &Ferrox.flatten/1, & &1[0], &Ferrox.unique/1],
          do: assert(f.(t).weak)

      for f <- [&Ferrox.cumulative_sum/1, &Ferrox.variance/1], do: refute(f.(t).weak)
    end)
  end
end
