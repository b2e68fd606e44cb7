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

  # How many standard deviations counts are from those that are expected, by Pearson's test.
  defp distance(counts, probability, n) do
    expected = for k <- 0..(length(counts) + 20), do: n * probability.(k)
    counts = counts ++ List.duplicate(0, length(expected) - length(counts))
    {frequent, rare} = counts |> Enum.zip(expected) |> Enum.split_with(&(elem(&1, 1) >= 10))
    {count, expected} = Enum.unzip(rare)
    pairs = [{Enum.sum(count), Enum.sum(expected)} | frequent]
    sum = for {count, expected} <- pairs, expected > 0, do: (count - expected) ** 2 / expected
    (Enum.sum(sum) - length(sum)) / :math.sqrt(2 * length(sum))
  end

  defp log_factorial(n), do: Enum.reduce(1..n//1, 0.0, &(:math.log(&1) + &2))

  test "numbers of Poisson's distribution are as frequent as they should be" do
    n = 20_000

    for rate <- [0.5, 4.0, 9.9, 10.0, 25.0, 150.0] do
      {numbers, _key} = Random.poisson(Random.key(17), rate, shape: {n})
      counts = list(Ferrox.bincount(numbers))
      probability = &:math.exp(&1 * :math.log(rate) - rate - log_factorial(&1))
      assert abs(distance(counts, probability, n)) < 3.5, "#{rate}"
    end

    {numbers, _key} = Random.poisson(Random.key(17), 1.0e9, shape: {n}, type: :s64)
    numbers = Ferrox.as_type(numbers, :f64)
    assert_in_delta Ferrox.to_number(Ferrox.mean(numbers)), 1.0e9, 4 * :math.sqrt(1.0e9 / n)
    assert_in_delta Ferrox.to_number(Ferrox.variance(numbers)) / 1.0e9, 1, 0.05
  end

  test "numbers of the binomial distribution are as frequent as they should be" do
    n = 20_000

    for {trials, p} <- [
          {1, 0.5},
          {10, 0.3},
          {10, 0.9},
          {40, 0.25},
          {40, 0.7},
          {200, 0.1},
          {500, 0.01}
        ] do
      {numbers, _key} = Random.binomial(Random.key(18), trials, p, shape: {n})
      counts = list(Ferrox.bincount(numbers))
      ways = &(log_factorial(trials) - log_factorial(&1) - log_factorial(trials - &1))
      chance = &:math.exp(ways.(&1) + &1 * :math.log(p) + (trials - &1) * :math.log(1 - p))
      probability = &if(&1 > trials, do: 0.0, else: chance.(&1))
      assert length(counts) <= trials + 1
      assert abs(distance(counts, probability, n)) < 3.5, "#{trials} #{p}"
    end
  end

  test "large counts have the spread that they should have, to the last digit" do
    n = 20_000
    t = Ferrox.full({n}, 2 ** 50, type: :s64)

    for {{numbers, _key}, variance} <- [
          {Random.poisson(Random.key(21), 2 ** 50, shape: {n}, type: :s64), 2.0 ** 50},
          {Random.binomial(Random.key(21), 2 ** 52, 0.25, shape: {n}, type: :s64),
           0.75 * 2.0 ** 50}
        ] do
      apart =
        Ferrox.divide(Ferrox.as_type(Ferrox.subtract(numbers, t), :f64), :math.sqrt(variance))

      assert_in_delta Ferrox.to_number(Ferrox.mean(apart)), 0, 4 / :math.sqrt(n)
      assert_in_delta Ferrox.to_number(Ferrox.variance(apart)), 1, 0.05
      assert_in_delta Ferrox.to_number(Ferrox.mean(Ferrox.pow(apart, 4))), 3, 0.3
    end
  end

  test "exponentially distributed numbers are spread as they should be, with a long tail" do
    {numbers, _key} = Random.exponential(Random.key(19), 2, shape: {200_000}, type: :f64)
    assert_in_delta Ferrox.to_number(Ferrox.mean(numbers)), 2, 0.02
    assert_in_delta Ferrox.to_number(Ferrox.variance(numbers)), 4, 0.1
    assert_in_delta Ferrox.to_number(Ferrox.median(numbers)), 2 * :math.log(2), 0.02
    assert Ferrox.to_number(Ferrox.reduce_min(numbers)) >= 0
    # Of the 10 random bits that an f16 holds, the largest would be 6.9.
    {numbers, _key} = Random.exponential(Random.key(19), shape: {200_000}, type: :f16)
    assert Ferrox.to_number(Ferrox.reduce_max(numbers)) > 9
  end

  test "counts of what is sure, of both kinds together, and of every type" do
    key = Random.key(20)
    rates = Ferrox.tensor([0.0, 3.0, 10.0, 1000.0])
    {numbers, next} = Random.poisson(key, rates, shape: {500, 4})
    assert {numbers.type, numbers.shape} == {{:s, 32}, {500, 4}}
    assert next == elem(Random.uniform(key), 1)
    assert Random.poisson(key, rates, shape: {500, 4}) == {numbers, next}
    means = Ferrox.to_list(Ferrox.mean(numbers, axes: [0]))

    for {mean, rate} <- Enum.zip(means, list(rates)),
        do: assert_in_delta(mean, rate, 0.2 * :math.sqrt(rate))

    assert hd(means) == 0.0

    {trials, chances} = {Ferrox.tensor([[0], [7], [3000]]), Ferrox.tensor([0.0, 0.5, 1.0])}
    {numbers, _next} = Random.binomial(key, trials, chances, shape: {200, 3, 3})
    for i <- 0..199, do: assert(list(numbers[[i, 0..2, 0]]) == [0, 0, 0])
    for i <- 0..199, do: assert(list(numbers[[i, 0..2, 2]]) == [0, 7, 3000])
    assert_in_delta Ferrox.to_number(Ferrox.mean(numbers[[0..199, 2, 1]])), 1500, 10

    for type <- ~w(s8 u8 s16 u32 s64 u64)a do
      type = Ferrox.Type.normalize!(type)
      assert elem(Random.poisson(key, 5, type: type), 0).type == type
      assert elem(Random.binomial(key, 5, 0.5, type: type), 0).type == type
    end

    for type <- ~w(f8 f16 bf16 f32 f64)a,
        do:
          assert(
            elem(Random.exponential(key, 2, type: type), 0).type == Ferrox.Type.normalize!(type)
          )
  end

  test "parameters that can't be are refused" do
    key = Random.key(0)

    for wrong <- [-1, :nan, :infinity, Ferrox.tensor([1, -2])] do
      opts = [shape: {2}]

      raises("poisson: the rate must be finite and not negative", fn ->
        Random.poisson(key, wrong, opts)
      end)

      raises("exponential: the scale must be finite and not", fn ->
        Random.exponential(key, wrong, opts)
      end)

      raises("binomial: the probability must be finite", fn ->
        Random.binomial(key, 3, wrong, opts)
      end)
    end

    raises("binomial: the probability must be at most 1, got: 1.5", fn ->
      Random.binomial(key, 3, 1.5)
    end)

    raises("poisson: the rate must be at most 9007199254740992, got: 1.0e20", fn ->
      Random.poisson(key, 1.0e20, type: :u64)
    end)

    raises("binomial: the number of trials must be whole", fn ->
      Random.binomial(key, 2.5, 0.5)
    end)

    raises("binomial: the number of trials must be at most", fn ->
      Random.binomial(key, 1.0e20, 0.5)
    end)

    raises(~r/poisson: \d+ does not fit s8; give a wider :type/, fn ->
      Random.poisson(key, 500, type: :s8)
    end)

    raises("poisson: :type must be an integer type", fn -> Random.poisson(key, 5, type: :f32) end)

    raises("exponential: :type must be a real float type", fn ->
      Random.exponential(key, 1, type: :c64)
    end)

    raises("does not broadcast to the :shape {}", fn -> Random.poisson(key, Ferrox.iota({2})) end)

    raises("poisson: the rate must be real, got: c64", fn ->
      Random.poisson(key, Ferrox.tensor(Ferrox.Complex.new(1, 2)))
    end)

    raises("poisson expects a key", fn -> Random.poisson(Ferrox.iota({2}), 2) end)
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

          # Nx 0.9 has eigenvectors and singular vectors of its own in a defn.
          new? = Version.match?("#{Application.spec(:nx, :vsn)}", ">= 0.13.0")
          methods = if new?, do: [:cholesky, :eigh, :svd], else: [:cholesky]

          for shape <- [{}, {5}, {2, 3}], type <- [:f32, :f64], method <- methods do
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
