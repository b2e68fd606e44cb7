# f32 addition called from Elixir: what a small one costs over the cheapest NIF, and large ones
# beside NumPy, round by round in one run.
#
#     MIX_ENV=prod mix run bench/add.exs
#
# NumPy is taken from the `python3` on the PATH, or from PYTHON.

Code.require_file("measure.exs", __DIR__)

defmodule Bench.Add do
  @rounds 15
  @sizes [1, 1_000, 100_000, 1_000_000, 10_000_000]

  def run do
    small()
    large(Bench.peer())
  end

  defp small do
    a = Ferrox.tensor(1.0)
    v = Ferrox.iota({16}, type: :f32)
    count = 500_000

    cases = [
      {"an empty function", fn -> :ok end},
      {"the cheapest NIF", fn -> Ferrox.Native.promotion_concrete(:nx, :bool) end},
      {"Ferrox.add of scalars", fn -> Ferrox.add(a, a) end},
      {"Ferrox.add of 16 elements", fn -> Ferrox.add(v, v) end}
    ]

    medians =
      Bench.medians(@rounds, fn -> for {_, fun} <- cases, do: Bench.time(fun, count) / count end)

    [_, cheapest | _] = medians
    IO.puts("ns a call (median of #{@rounds} rounds), and over the cheapest NIF:\n")

    for {{name, _}, time} <- Enum.zip(cases, medians),
        do: Bench.row(name, [time * 1.0e9, (time - cheapest) * 1.0e9])
  end

  defp large(nil), do: IO.puts("\nNumPy isn't there: nothing to compare with")

  defp large(peer) do
    IO.puts("\nus an addition, f32 (median of #{@rounds} rounds), beside #{peer.name}:\n")
    IO.puts("elements                                Ferrox       NumPy NumPy/Ferrox")

    for n <- @sizes do
      a = Ferrox.divide(Ferrox.iota({n}), 3)
      b = Ferrox.subtract(1, a)
      Bench.setup(peer, "a = (np.arange(#{n}) / 3).astype(np.float32); b = 1 - a")
      Bench.check!(peer, "a + b", Ferrox.add(a, b))
      # Enough calls that the first ones, into cold memory, do not count.
      count = max(div(200_000_000, n), 20) |> min(100_000)

      ours = {fn -> Ferrox.add(a, b) end, count}
      times = Bench.medians_beside(@rounds, peer, ours, {"r = a + b", count})
      Bench.times_row("#{n}", times, 1.0e6)
    end
  end
end

Bench.Add.run()
