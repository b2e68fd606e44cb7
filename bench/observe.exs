# What Ferrox.observe/1 adds to a call, the figures of guides/observing.md.
#
#     MIX_ENV=prod mix run bench/observe.exs
#
# Through Nx where it is on the code path, and by the direct API. Events are measured where telemetry
# is, without a handler. The least of all rounds counts, which other work on the machine disturbs least.

Code.require_file("measure.exs", __DIR__)

defmodule Bench.Observe do
  @compile {:no_warn_undefined, Nx}

  @rounds 15
  @calls 200_000

  def run do
    x = Ferrox.tensor([1.0, 2.0])
    report("Ferrox.add/2 of 2 elements", fn -> Ferrox.add(x, x) end)

    if Code.ensure_loaded?(Nx) do
      y = Nx.tensor([1.0, 2.0], backend: Ferrox.Backend)
      report("Nx.add/2 of 2 elements", fn -> Nx.add(y, y) end)
    end

    look_up = least(fn -> :persistent_term.get(Ferrox.Observer, :off) end) - least(fn -> :ok end)
    IO.puts("the look-up of what is observed: #{nanoseconds(look_up)}")
  end

  defp report(name, fun) do
    modes = if Code.ensure_loaded?(:telemetry), do: [:off, :stats, :events], else: [:off, :stats]

    [{:off, off} | others] =
      for mode <- modes do
        Ferrox.observe(mode)
        {mode, least(fun)}
      end

    Ferrox.observe(:off)
    IO.puts("#{name}: #{nanoseconds(off)}")
    for {mode, time} <- others, do: IO.puts("  #{mode} adds #{nanoseconds(time - off)}")
  end

  defp least(fun), do: Enum.min(for _ <- 1..@rounds, do: Bench.time(fun, @calls) / @calls)
  defp nanoseconds(seconds), do: "#{round(seconds * 1.0e9)} ns"
end

Bench.Observe.run()
