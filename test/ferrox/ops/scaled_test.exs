defmodule Ferrox.Ops.ScaledTest do
  # Sums of exponentials and squares: every type, the ends of the range and errors. More values are compared with
  # NumPy's in test/ferrox/numpy_test.exs.
  use Ferrox.DirectCase, async: true

  test "every type" do
    for type <- real_types() do
      t = Ferrox.tensor([[1, 0, 1], [0, 0, 1]], type: type)
      float = Ferrox.divide(t, t).type
      sum = Ferrox.logsumexp(t, axes: [1])
      close!(sum, float, for(row <- [[1, 0, 1], [0, 0, 1]], do: log_sum(row)))
      factor = Ferrox.tensor(1, type: type)
      close!(Ferrox.logsumexp(t, axes: [1], exp_scaling_factor: factor), float, list(sum))
      assert Ferrox.logsumexp(t, axes: [1], keep_axes: true).shape == {2, 1}
      assert Ferrox.logsumexp(t, keep_axes: true).shape == {1, 1}
      pair = Ferrox.logaddexp(t, Ferrox.tensor(0, type: type))
      close!(Ferrox.flatten(pair), float, for(a <- [1, 0, 1, 0, 0, 1], do: log_sum([a, 0])))
      assert list(Ferrox.hypot(t, Ferrox.tensor(0, type: type))) == [1, 0, 1, 0, 0, 1]
    end

    assert Ferrox.logsumexp(Ferrox.tensor([true, false], type: :bool)).type == {:f, 32}
  end

  # The last bit in 64 bits depends on the order of steps.
  defp close!(tensor, type, numbers) do
    assert tensor.type == type
    expected = Ferrox.as_type(Ferrox.tensor(numbers, type: :f64), type)
    assert Ferrox.to_number(Ferrox.all_close(tensor, expected, rtol: 1.0e-15, atol: 0)) == 1
  end

  defp log_sum(numbers), do: numbers |> Enum.map(&:math.exp/1) |> Enum.sum() |> :math.log()

  test "nothing overflows or underflows on the way" do
    for scale <- [1.0, 1.0e300, 1.0e-300, 1.0e-320] do
      [length] = list(Ferrox.hypot(Ferrox.tensor([3 * scale], type: :f64), 4 * scale))
      assert_in_delta length / scale, 5, if(scale < 1.0e-310, do: 1.0e-3, else: 1.0e-15)
    end

    f64 = &Ferrox.tensor(&1, type: :f64)
    assert list(Ferrox.hypot(f64.([1.7e308]), f64.([1.7e308]))) == [:infinity]

    assert list(Ferrox.hypot(Ferrox.tensor([3.0e38], type: :f32), 1.0e38)) == [
             f32(1.0e38 * :math.sqrt(10))
           ]

    assert list(Ferrox.logsumexp(f64.([[1.0e4, 1.0e4], [-1.0e4, -1.0e4]]), axes: [1])) == [
             10_000 + :math.log(2),
             -10_000 + :math.log(2)
           ]

    # What an exponential below the precision of one adds to it isn't lost beside zero.
    assert_in_delta Ferrox.to_number(Ferrox.logsumexp(f64.([0, -60]))) / :math.exp(-60),
                    1,
                    1.0e-15

    assert_in_delta Ferrox.to_number(Ferrox.logaddexp(f64.(-60), 0)) / :math.exp(-60), 1, 1.0e-15
  end

  defp f32(number), do: number |> Ferrox.tensor(type: :f32) |> Ferrox.to_number()

  test "elements with a factor of zero count for nothing" do
    t = Ferrox.tensor([1.0, :infinity, :nan, 1.0e30])
    factor = Ferrox.tensor([2, 0, 0, 0])

    assert_in_delta Ferrox.to_number(Ferrox.logsumexp(t, exp_scaling_factor: factor)),
                    1 + :math.log(2),
                    1.0e-6

    assert Ferrox.to_number(Ferrox.logsumexp(t, exp_scaling_factor: 0)) == :neg_infinity

    assert Ferrox.to_number(Ferrox.logsumexp(Ferrox.tensor([0, 0]), exp_scaling_factor: -1)) ==
             :nan

    assert Ferrox.to_number(Ferrox.logsumexp(3, exp_scaling_factor: 1)) == 3.0
  end

  test "what can't be is refused" do
    complex = Ferrox.tensor(Ferrox.Complex.new(1, 2))

    for fun <- [&Ferrox.logsumexp/1, &Ferrox.hypot(&1, 1), &Ferrox.logaddexp(1, &1)],
        do:
          raises("is not defined for c64: complex numbers have no order", fn -> fun.(complex) end)

    raises("factor of shape {3} does not broadcast to shape {2}", fn ->
      Ferrox.logsumexp(Ferrox.iota({2}), exp_scaling_factor: Ferrox.iota({3}))
    end)

    raises("hypot: shapes {2} of s32 and {3} of s32 don't broadcast", fn ->
      Ferrox.hypot(Ferrox.iota({2}), Ferrox.iota({3}))
    end)

    raises("logaddexp is not defined for s32 under system: :array_api", fn ->
      Ferrox.logaddexp(Ferrox.iota({2}), Ferrox.iota({2}), promotion: :array_api)
    end)

    raises("logsumexp: axis 1 is out of range", fn ->
      Ferrox.logsumexp(Ferrox.iota({2}), axes: [1])
    end)

    raises("hypot: unknown option :axes", fn -> Ferrox.hypot(1, 1, axes: []) end)
  end
end
