defmodule Ferrox.Schedulers do
  @moduledoc """
  Operations in several processes while the number of schedulers changes.

  `main/0` runs in a VM of its own, which has four of each kind.
  """

  alias Ferrox.Native

  @f {:f, 32}
  @processes 6
  @milliseconds 3_000

  @doc """
  Computes again and again, and prints "as before" if all answers are those that there were before the number
  changed.
  """
  def main do
    calls = calls()
    expected = for call <- calls, do: call.()
    stop = System.monotonic_time(:millisecond) + @milliseconds

    tasks = for _ <- 1..@processes, do: Task.async(fn -> compute(calls, expected, stop) end)
    change(stop)

    IO.puts(
      if Enum.all?(Task.await_many(tasks, :infinity)), do: "as before", else: "other answers"
    )
  end

  # Short calls and long ones, some of which threads share, and a run of a program that pauses.
  defp calls do
    data = for k <- 1..1024, into: <<>>, do: <<rem(k * 167, 251) / 7.0::float-32-native>>
    large = {@f, {1_048_576}, :binary.copy(data, 1024)}
    small = {@f, {1024}, data}
    matrix = {@f, {512, 512}, :binary.copy(data, 256)}
    values = for slot <- 0..2, do: {slot, @f, {1_048_576}}
    [a, b, c] = values

    steps = [
      {:run, {:sort, 0, false}, [a], [b]},
      {:run, {:cumulative, :cumulative_sum, 0, false}, [b], [c]}
    ]

    program = Native.compile({[{[{@f, {1_048_576}}], 3, steps, [c]}], []})

    [
      fn -> Native.unary(:exp, @f, small) end,
      fn -> Native.unary(:sin, @f, large) end,
      fn -> Native.sort(0, true, large) end,
      fn -> Native.reduce(:sum, @f, {}, nil, large) end,
      fn -> Native.dot(@f, {512, 512}, {matrix, [1], []}, {matrix, [0], []}) end,
      fn -> Native.run(program, {elem(large, 2)}) end
    ]
  end

  defp compute(calls, expected, stop) do
    cond do
      System.monotonic_time(:millisecond) > stop -> true
      for(call <- calls, do: call.()) != expected -> false
      true -> compute(calls, expected, stop)
    end
  end

  defp change(stop) do
    # There are no more dirty schedulers than others.
    for count <- Enum.shuffle(1..4) do
      :erlang.system_flag(:schedulers_online, count)
      :erlang.system_flag(:dirty_cpu_schedulers_online, Enum.random(1..count))
      Process.sleep(Enum.random(0..5))
    end

    if System.monotonic_time(:millisecond) < stop, do: change(stop)
  end
end
