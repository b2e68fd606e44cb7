# How late the timers of a process are, which waits for a millisecond again and again.
#
#     Code.require_file("lateness.exs", __DIR__)
#
# The VM rounds a time up to the next tick of a millisecond: without any load timers are about one
# millisecond late.

defmodule Bench.Lateness do
  # Counts are kept in steps of 20 us up to two seconds, so that an hour takes no more memory than a second.
  @step_us 20
  @steps 100_000

  @doc "Starts a process of a priority, `:normal` or `:max`, that watches its timers until `stop/1`."
  def start(priority \\ :normal) do
    counts = :counters.new(@steps + 1, [])
    most = :atomics.new(1, [])

    {pid, monitor} =
      spawn_monitor(fn ->
        Process.flag(:priority, priority)
        watch(counts, most)
      end)

    {pid, monitor, counts, most}
  end

  @doc "The median, the 99th percentile and the greatest lateness, in milliseconds, and the number of timers."
  def stop({pid, monitor, counts, most}) do
    Process.exit(pid, :kill)

    receive do
      {:DOWN, ^monitor, _, ^pid, _} -> :ok
    end

    all = for step <- 1..(@steps + 1), do: :counters.get(counts, step)
    total = Enum.sum(all)

    %{
      median: percentile(all, total * 0.5),
      most_of_100: percentile(all, total * 0.99),
      most: :atomics.get(most, 1) / 1000,
      timers: total
    }
  end

  @doc "The heading and the columns of `line/2`."
  def heading(title),
    do: [String.pad_trailing(title, 34), "      median         99%        most"]

  @doc "A line with what `stop/1` has given."
  def line(name, late),
    do: [
      String.pad_trailing(name, 34)
      | for(key <- [:median, :most_of_100, :most], do: column(late[key]))
    ]

  defp column(ms), do: String.pad_leading(:erlang.float_to_binary(ms * 1.0, decimals: 2), 12)

  # The end of the step in which the wanted number of timers is reached.
  defp percentile(counts, wanted) do
    {_, step} =
      Enum.reduce_while(counts, {0, 0}, fn count, {sum, step} ->
        if sum + count >= wanted and sum + count > 0,
          do: {:halt, {sum, step + 1}},
          else: {:cont, {sum + count, step + 1}}
      end)

    step * @step_us / 1000
  end

  defp watch(counts, most) do
    start = System.monotonic_time(:microsecond)

    receive do
    after
      1 -> :ok
    end

    late = max(System.monotonic_time(:microsecond) - start - 1000, 0)
    :counters.add(counts, min(div(late, @step_us), @steps) + 1, 1)
    if late > :atomics.get(most, 1), do: :atomics.put(most, 1, late)
    watch(counts, most)
  end
end
