defmodule Ferrox.Random.Counts do
  @moduledoc false
  # Numbers of Poisson's and of the binomial distribution, in f64.
  #
  # Small expectations are counted: gaps between events are drawn, from the exponential or the geometric
  # distribution, until they are past the end. Others are drawn by transformed rejection (Hörmann 1993, PTRS
  # and BTRS): a proposal is accepted with the probability that the exact distribution says, so that nothing is
  # approximated but its logarithm, to the precision of f64. Elements that are not done go on with the next numbers
  # of the key.

  alias Ferrox.{Random, Tensor}
  alias Ferrox.Ops.{Create, Elementwise, Index, Reduce}

  # From which expectation on rejection is right.
  @large 10.0

  @doc "Numbers with expectations of a shape."
  @spec poisson(Random.key(), Tensor.t()) :: Tensor.t()
  def poisson(key, %Tensor{shape: shape} = rate) do
    large? = step(:greater_equal, rate, @large)
    keys = Random.split(key)

    either(
      large?,
      fn -> keys |> Index.fetch(0) |> events(select(large?, 0.0, rate)) end,
      fn -> keys |> Index.fetch(1) |> ptrs(select(large?, rate, @large), shape) end
    )
  end

  @doc "The numbers of trials that succeed, given those of all trials and the probabilities, of the same shape."
  @spec binomial(Random.key(), Tensor.t(), Tensor.t()) :: Tensor.t()
  def binomial(key, %Tensor{shape: shape} = trials, probability) do
    likely? = step(:greater, probability, 0.5)
    # Of the rarer outcome.
    rare = select(likely?, step(:subtract, 1.0, probability), probability)
    large? = step(:greater_equal, step(:multiply, trials, rare), @large)
    keys = Random.split(key)

    count =
      either(
        large?,
        fn ->
          never? = step(:logical_or, large?, step(:equal, rare, 0.0))
          trials = select(never?, 0.0, trials)
          keys |> Index.fetch(0) |> successes(trials, select(never?, 0.5, rare))
        end,
        fn ->
          trials = select(large?, trials, 2 * @large)
          rare = select(large?, rare, 0.5)
          keys |> Index.fetch(1) |> btrs(trials, rare, shape)
        end
      )

    select(likely?, step(:subtract, trials, count), count)
  end

  # Both ways where there are elements for both.
  defp either(large?, small, large) do
    case {Reduce.step(:all, large?).data, Reduce.step(:any, large?).data} do
      {<<1>>, _} -> large.()
      {_, <<0>>} -> small.()
      _ -> select(large?, large.(), small.())
    end
  end

  ## Counting

  # Events before a time, with gaps of the expectation one between them.
  defp events(key, %Tensor{shape: shape} = time) do
    counted(key, shape, &step(:less, &1, time), fn uniform ->
      step(:negate, step(:log1p, step(:negate, uniform)))
    end)
  end

  # Successes among trials: how many trials it takes from one to the next has a geometric distribution.
  defp successes(key, %Tensor{shape: shape} = trials, probability) do
    scale = step(:log1p, step(:negate, probability))

    counted(key, shape, &step(:less_equal, &1, trials), fn uniform ->
      logarithm = step(:log1p, step(:negate, uniform))
      step(:max, step(:ceil, step(:divide, logarithm, scale)), 1.0)
    end)
  end

  # How many sums of gaps lie within the end.
  defp counted(key, shape, within?, gap) do
    zero = Create.zeros(shape, type: {:f, 64})
    count(key, zero, zero, within?, gap)
  end

  defp count(key, count, sum, within?, gap) do
    {uniform, key} = uniform(key, count.shape)
    sum = step(:add, sum, gap.(uniform))
    more? = within?.(sum)
    count = step(:add, count, more?)

    if Reduce.step(:any, more?).data == <<1>>,
      do: count(key, count, sum, within?, gap),
      else: count
  end

  ## Rejection

  defp ptrs(key, rate, shape) do
    b = step(:add, step(:multiply, step(:sqrt, rate), 2.53), 0.931)
    a = step(:subtract, step(:multiply, b, 0.02483), 0.059)
    inverse = step(:add, step(:divide, 1.1328, step(:subtract, b, 3.4)), 1.1239)
    quick = step(:subtract, 0.9277, step(:divide, 3.6224, step(:subtract, b, 2.0)))
    proposals = %{a: a, b: b, center: step(:add, rate, 0.43), scale: inverse, quick: quick}
    within? = &step(:greater_equal, &1, 0.0)
    rejection(key, shape, proposals, within?, &log_poisson(&1, rate))
  end

  defp btrs(key, trials, probability, shape) do
    other = step(:subtract, 1.0, probability)
    mean = step(:multiply, trials, probability)
    deviation = step(:sqrt, step(:multiply, mean, other))
    b = step(:add, step(:multiply, deviation, 2.53), 1.15)
    a = step(:subtract, step(:multiply, b, 0.0248), 0.0873)
    a = step(:add, a, step(:multiply, probability, 0.01))
    alpha = step(:multiply, step(:add, step(:divide, 5.1, b), 2.83), deviation)
    quick = step(:subtract, 0.92, step(:divide, 4.2, b))
    mode = step(:floor, step(:multiply, step(:add, trials, 1.0), probability))

    # Where successes and failures are numbers of Poisson's distribution, and their sum is known. What depends
    # on the trials alone is the same for all.
    logarithm = fn k ->
      failures = log_poisson(step(:subtract, trials, k), step(:multiply, trials, other))
      step(:add, log_poisson(k, mean), failures)
    end

    highest = logarithm.(mode)
    probability = &step(:subtract, logarithm.(&1), highest)

    proposals = %{a: a, b: b, center: step(:add, mean, 0.5), scale: alpha, quick: quick}
    within? = &step(:logical_and, step(:greater_equal, &1, 0.0), step(:less_equal, &1, trials))
    rejection(key, shape, proposals, within?, probability)
  end

  # Proposals again and again for those elements that have none yet.
  defp rejection(key, shape, proposals, within?, probability) do
    zero = Create.zeros(shape, type: {:f, 64})
    done? = Create.zeros(shape, type: {:u, 8})
    rejection(key, zero, done?, proposals, within?, probability)
  end

  defp rejection(key, numbers, done?, proposals, within?, probability) do
    %{a: a, b: b, center: center, scale: scale, quick: quick} = proposals
    {u, key} = uniform(key, numbers.shape)
    {v, key} = uniform(key, numbers.shape)
    u = step(:subtract, u, 0.5)
    edge = step(:subtract, 0.5, step(:abs, u))

    slope = step(:add, step(:divide, step(:multiply, a, 2.0), edge), b)
    k = step(:floor, step(:add, step(:multiply, slope, u), center))

    # Most proposals are right without a look at the probability.
    middle? = step(:greater_equal, edge, 0.07)
    quick? = step(:logical_and, middle?, step(:less_equal, v, quick))

    inside? = within?.(k)
    density = step(:add, step(:divide, a, step(:multiply, edge, edge)), b)
    proposed = step(:log, step(:divide, step(:multiply, v, scale), density))
    exact? = step(:less_equal, proposed, probability.(select(inside?, k, 0.0)))
    accepted? = step(:logical_or, quick?, step(:logical_and, inside?, exact?))

    numbers = select(step(:greater, accepted?, done?), k, numbers)
    done? = step(:logical_or, done?, accepted?)

    if Reduce.step(:all, done?).data == <<1>>,
      do: numbers,
      else: rejection(key, numbers, done?, proposals, within?, probability)
  end

  # The logarithm of the probability of a number of events. Large terms, as in `k * log(mean)`, would cancel each
  # other: what is left of them is computed from the distance to the mean (Loader 2000).
  defp log_poisson(%Tensor{} = number, mean) do
    some = step(:max, number, 1.0)
    apart = step(:divide, step(:subtract, some, mean), mean)
    ratio = step(:multiply, step(:add, apart, 1.0), step(:log1p, apart))
    deviance = step(:multiply, step(:subtract, ratio, apart), mean)
    root = step(:multiply, step(:log, step(:multiply, some, 2 * :math.pi())), 0.5)
    sum = step(:add, step(:add, deviance, root), stirling_error(some))
    step(:negate, select(step(:equal, number, 0), mean, sum))
  end

  # What Stirling's formula leaves of the logarithm of a factorial. From here on its series has the precision of
  # f64.
  @few 16
  @errors for {logarithm, k} <-
                1..(@few - 1)
                |> Enum.scan(&*/2)
                |> Enum.map(&:math.log/1)
                |> Enum.with_index(1),
              do: logarithm - (k + 0.5) * :math.log(k) + k - :math.log(2 * :math.pi()) / 2

  defp stirling_error(%Tensor{shape: shape} = number) do
    few? = step(:less, number, @few * 1.0)
    table = Create.tensor(@errors, type: :f64)
    place = step(:subtract, step(:min, number, @few - 1.0), 1.0)
    exact = Index.take(table, Elementwise.cast(place, {:s, 64}), axis: 0)

    inverse = step(:divide, 1.0, number)
    square = step(:multiply, inverse, inverse)
    zero = Create.zeros(shape, type: {:f, 64})

    series =
      for coefficient <- [-1 / 1680, 1 / 1260, -1 / 360, 1 / 12], reduce: zero do
        series -> step(:add, step(:multiply, series, square), coefficient)
      end

    select(few?, exact, step(:multiply, series, inverse))
  end

  ## Steps

  defp uniform(key, shape), do: Random.uniform(key, shape: shape, type: :f64)
  defp step(op, tensor), do: Elementwise.step(op, tensor)
  defp step(op, left, right), do: Elementwise.step(op, left, right)

  # Both have the shape of the condition, or none.
  defp select(condition, on_true, on_false),
    do: Elementwise.select(condition, on_true, on_false, promotion: :nx)
end
