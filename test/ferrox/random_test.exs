defmodule Ferrox.RandomTest do
  use Ferrox.DirectCase, async: true

  doctest Ferrox.Random

  alias Ferrox.Random

  test "numbers are spread as they should be" do
    key = Random.key(3)
    {uniform, key} = Random.uniform(key, -2, 3, shape: {20_000})
    assert_in_delta Ferrox.to_number(Ferrox.mean(uniform)), 0.5, 0.05
    assert_in_delta Ferrox.to_number(Ferrox.variance(uniform)), 25 / 12, 0.05

    assert Ferrox.to_number(Ferrox.reduce_min(uniform)) >= -2 and
             Ferrox.to_number(Ferrox.reduce_max(uniform)) < 3

    {normal, key} = Random.normal(key, 1, 2, shape: {20_000}, type: :f64)
    assert_in_delta Ferrox.to_number(Ferrox.mean(normal)), 1, 0.06
    assert_in_delta Ferrox.to_number(Ferrox.standard_deviation(normal)), 2, 0.05
    assert_in_delta Ferrox.to_number(Ferrox.median(normal)), 1, 0.08

    {integers, key} = Random.randint(key, -1, 3, shape: {20_000})
    counts = integers |> Ferrox.add(1) |> Ferrox.bincount() |> Ferrox.to_list()
    assert length(counts) == 4
    for count <- counts, do: assert_in_delta(count, 5000, 300)

    {shuffled, _key} = Random.shuffle(key, Ferrox.iota({1000}))
    assert shuffled != Ferrox.iota({1000})
    assert Ferrox.sort(shuffled) == Ferrox.iota({1000})
  end

  test "every float type, and bf16 without infinities" do
    for type <- ~w(f8 f8_e4m3fn f16 bf16 f32 f64 c64 c128)a do
      for {tensor, _key} <- [
            Random.uniform(Random.key(1), 0, 1, shape: {500}, type: type),
            Random.normal(Random.key(1), 0, 1, shape: {500}, type: type)
          ] do
        assert {tensor.type, tensor.shape} == {Ferrox.Type.normalize!(type), {500}}
        assert Ferrox.to_number(Ferrox.any(Ferrox.is_infinity(tensor))) == 0
        assert Ferrox.to_number(Ferrox.any(Ferrox.is_nan(tensor))) == 0
      end
    end
  end

  test "choices are as frequent as they should be" do
    weights = Ferrox.tensor([0.0, 1.0, 0.0, 3.0, 0.0])
    {places, key} = Random.choice(Random.key(5), Ferrox.iota({5}), weights, samples: 20_000)
    assert [0, ones, 0, threes] = Ferrox.to_list(Ferrox.bincount(places))
    assert_in_delta ones, 5000, 200
    assert_in_delta threes, 15_000, 200

    {places, key} = Random.choice(key, Ferrox.iota({4}), samples: 20_000)
    for count <- Ferrox.to_list(Ferrox.bincount(places)), do: assert_in_delta(count, 5000, 200)

    # Without replacement, each once, and the likely ones first.
    draw = fn _, key ->
      {places, key} = Random.choice(key, Ferrox.iota({5}), weights, samples: 2, replace: false)
      {Ferrox.to_list(places), key}
    end

    {draws, key} = Enum.map_reduce(1..400, key, draw)
    assert %{[3, 1] => likely, [1, 3] => unlikely} = frequencies = Enum.frequencies(draws)
    assert map_size(frequencies) == 2
    assert_in_delta likely, 300, 30
    assert_in_delta unlikely, 100, 30

    {all, _key} = Random.choice(key, Ferrox.iota({2, 50}), samples: 50, replace: false, axis: -1)
    assert Ferrox.sort(all, axis: 1) == Ferrox.iota({2, 50})
  end

  test "vectors have the covariances that they should have" do
    covariance = Ferrox.tensor([[4.0, 1.0, 0.0], [1.0, 1.0, 0.5], [0.0, 0.5, 2.0]], type: :f64)
    mean = Ferrox.tensor([1, 2, 3])

    for method <- [:cholesky, :eigh, :svd] do
      opts = [shape: {200, 100}, method: method]
      {vectors, _key} = Random.multivariate_normal(Random.key(9), mean, covariance, opts)
      assert {vectors.type, vectors.shape} == {{:f, 64}, {200, 100, 3}}
      rows = Ferrox.reshape(vectors, {:auto, 3})

      assert Ferrox.to_number(Ferrox.all_close(Ferrox.mean(rows, axes: [0]), mean, atol: 0.05)) ==
               1

      assert Ferrox.to_number(Ferrox.all_close(Ferrox.covariance(rows), covariance, atol: 0.1)) ==
               1
    end

    # A line is no matter for eigenvalues of zero.
    line = Ferrox.tensor([[1.0, 2.0], [2.0, 4.0]], type: :f64)

    {vectors, _key} =
      Random.multivariate_normal(Random.key(9), Ferrox.tensor([0, 0]), line,
        shape: {50},
        method: :svd
      )

    assert Ferrox.to_number(
             Ferrox.all_close(vectors[[0..-1//1, 1]], Ferrox.multiply(vectors[[0..-1//1, 0]], 2))
           ) == 1
  end

  test "numbers of Gumbel's distribution are spread as they should be" do
    for type <- ~w(f16 bf16 f32 f64)a do
      {tensor, _key} = Random.gumbel(Random.key(4), shape: {20_000}, type: type)
      assert tensor.type == Ferrox.Type.normalize!(type)
      assert_in_delta Ferrox.to_number(Ferrox.mean(Ferrox.as_type(tensor, :f64))), 0.5772, 0.05

      assert_in_delta Ferrox.to_number(Ferrox.variance(Ferrox.as_type(tensor, :f64))),
                      :math.pi() ** 2 / 6,
                      0.1
    end
  end

  test "choices of every float type and of every type of elements" do
    for type <- ~w(f8 f8_e4m3fn f16 bf16 f32 f64)a, replace <- [true, false] do
      weights = Ferrox.tensor([0.5, 0.0, 1.5], type: type)
      opts = [samples: 2, replace: replace]

      {chosen, _key} =
        Random.choice(Random.key(8), Ferrox.tensor([0, 1, 2], type: :u2), weights, opts)

      assert {chosen.type, chosen.shape} == {{:u, 2}, {2}}
      refute 1 in Ferrox.to_list(chosen)
    end
  end

  test "choices that can't be are refused" do
    {key, t} = {Random.key(0), Ferrox.iota({3})}
    weights = &Ferrox.tensor(&1, type: :f32)

    raises("choice: :samples must be a positive integer, got: 0", fn ->
      Random.choice(key, t, samples: 0)
    end)

    raises("choice: 4 samples can't be taken of 3 without replacement", fn ->
      Random.choice(key, t, samples: 4, replace: false)
    end)

    raises("choice: 2 samples can't be taken of 1 without", fn ->
      Random.choice(key, t, weights.([0, 1, 0]), samples: 2, replace: false)
    end)

    raises("choice: expected a tensor of 3 probabilities, got: shape {2}", fn ->
      Random.choice(key, t, weights.([0, 1]))
    end)

    raises("choice: expected a tensor of 3 probabilities, got: 0.5", fn ->
      Random.choice(key, t, 0.5, [])
    end)

    raises("choice: probabilities must be floats, got: s32", fn -> Random.choice(key, t, t) end)

    for wrong <- [[0, 0, 0], [-1, 2, 0], [1, :nan, 0], [1, :infinity, 0]],
        do:
          raises("choice: probabilities must be finite", fn ->
            Random.choice(key, t, weights.(wrong))
          end)

    raises("choice: axis 1 is out of range", fn -> Random.choice(key, t, axis: 1) end)
    raises("choice expects a key", fn -> Random.choice(1, t) end)
    raises("choice: unknown option :size", fn -> Random.choice(key, t, size: 1) end)
  end

  test "what can't be is refused" do
    key = Random.key(0)
    raises("key expects an integer of 64 bits, got: 1.0", fn -> Random.key(1.0) end)
    raises("key expects an integer of 64 bits", fn -> Random.key(2 ** 64) end)

    raises("uniform expects a key, as Ferrox.Random.key/1 makes it", fn ->
      Random.uniform(Ferrox.iota({2}))
    end)

    raises("split: :parts must be a positive integer", fn -> Random.split(key, parts: 0) end)
    raises("fold_in expects integers, got: f32", fn -> Random.fold_in(key, 1.5) end)

    raises("uniform: :type must be a float or complex type, got: s32", fn ->
      Random.uniform(key, 0, 1, type: :s32)
    end)

    raises("randint: :type must be an integer type", fn ->
      Random.randint(key, 0, 1, type: :f32)
    end)

    raises("max_value must be greater than min_value", fn -> Random.randint(key, 3, 3) end)

    raises("does not broadcast to the :shape {2}", fn ->
      Random.normal(key, Ferrox.iota({3}), 1, shape: {2})
    end)

    for type <- [:s32, :c64], do: raises("gumbel", fn -> Random.gumbel(key, type: type) end)

    raises("gumbel: :type must be a real float type, got: c64", fn ->
      Random.gumbel(key, type: :c64)
    end)

    {mean, covariance} = {Ferrox.iota({2}), Ferrox.eye(2)}

    raises("multivariate_normal: :method must be :cholesky, :eigh or :svd, got: :lu", fn ->
      Random.multivariate_normal(key, mean, covariance, method: :lu)
    end)

    for {mean, covariance} <- [{Ferrox.iota({3}), covariance}, {1, covariance}, {mean, mean}],
        do:
          raises("multivariate_normal expects a vector of means and a square matrix", fn ->
            Random.multivariate_normal(key, mean, covariance)
          end)

    raises("multivariate_normal: :type must be a real float type, got: s32", fn ->
      Random.multivariate_normal(key, mean, covariance, type: :s32)
    end)

    raises("shuffle: axis 1", fn -> Random.shuffle(key, Ferrox.iota({2}), axis: 1) end)
    raises("unknown option :names", fn -> Random.uniform(key, names: [:x]) end)
  end

  if Code.ensure_loaded?(Nx) do
    describe "beside Nx.Random" do
      @describetag :nx

      setup do
        Nx.default_backend(Ferrox.Backend)
        :ok
      end

      defp same!({ours, our_key}, {theirs, their_key}) do
        same!(ours, theirs)
        same!(our_key, their_key)
      end

      defp same!(ours, theirs), do: assert(ours == Ferrox.from_nx(theirs))

      test "the bits are the same" do
        for seed <- [0, 1, 42, -7, 2 ** 40 + 3] do
          {key, theirs} = {Random.key(seed), Nx.Random.key(seed)}
          same!(key, theirs)

          for parts <- [1, 2, 3, 7],
              do: same!(Random.split(key, parts: parts), Nx.Random.split(theirs, parts: parts))

          for data <- [0, 1, 2 ** 31 - 1],
              do: same!(Random.fold_in(key, data), Nx.Random.fold_in(theirs, data))

          for shape <- [{}, {1}, {5}, {2, 3}, {100}] do
            for type <- [:f16, :bf16, :f32, :f64, :c64] do
              opts = [shape: shape, type: type]

              same!(
                Random.uniform(key, -1.0, 2.5, opts),
                Nx.Random.uniform(theirs, -1.0, 2.5, opts)
              )

              # Nx's numbers of bf16 may be infinite.
              if type != :bf16,
                do:
                  same!(
                    Random.normal(key, 1.0, 2.0, opts),
                    Nx.Random.normal(theirs, 1.0, 2.0, opts)
                  )
            end

            for type <- [:s8, :u16, :s32, :u32, :s64, :u64] do
              opts = [shape: shape, type: type]
              same!(Random.randint(key, 2, 100, opts), Nx.Random.randint(theirs, 2, 100, opts))
            end
          end

          for shape <- [{}, {5}, {2, 3}], type <- [:f16, :bf16, :f32, :f64] do
            opts = [shape: shape, type: type]
            # Nx takes types by their long names alone here.
            nx_opts = [shape: shape, type: Ferrox.Type.normalize!(type)]
            same!(Random.gumbel(key, opts), Nx.Random.gumbel(theirs, nx_opts))
          end

          mean = Ferrox.tensor([1.0, -2.0])
          covariance = Ferrox.tensor([[2.0, 0.5], [0.5, 1.0]])
          [nx_mean, nx_covariance] = for t <- [mean, covariance], do: Ferrox.to_nx(t)

          for shape <- [{}, {5}, {2, 3}],
              type <- [:f32, :f64],
              method <- [:cholesky, :eigh, :svd] do
            opts = [shape: shape, type: type, method: method]

            same!(
              Random.multivariate_normal(key, mean, covariance, opts),
              Nx.Random.multivariate_normal(theirs, nx_mean, nx_covariance, opts)
            )
          end

          tensor = Ferrox.iota({7, 3})

          for opts <- [[], [axis: 1], [axis: 0, independent: true]],
              do:
                same!(
                  Random.shuffle(key, tensor, opts),
                  Nx.Random.shuffle(theirs, Ferrox.to_nx(tensor), opts)
                )

          nx_tensor = Ferrox.to_nx(tensor)

          for opts <- [
                [],
                [samples: 30],
                [samples: 5, axis: 0],
                [samples: 3, axis: 1, replace: false]
              ],
              do:
                same!(Random.choice(key, tensor, opts), Nx.Random.choice(theirs, nx_tensor, opts))

          for type <- [:f16, :bf16, :f32, :f64],
              opts <- [[], [samples: 30], [samples: 6, replace: false]] do
            weights = Ferrox.tensor([0.5, 0.0, 1.0, 2.0, 0.25, 3.0, 4.0], type: type)
            opts = [axis: 0] ++ opts

            same!(
              Random.choice(key, tensor, weights, opts),
              Nx.Random.choice(theirs, nx_tensor, Ferrox.to_nx(weights), opts)
            )
          end
        end
      end
    end
  end
end
