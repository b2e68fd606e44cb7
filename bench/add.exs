# f32 addition called from Elixir: what a small one costs over an empty NIF, and
# large ones beside NumPy, round by round in one run.
#
#     MIX_ENV=prod mix run bench/add.exs
#
# NumPy is taken from the `python3` on the PATH, or from PYTHON.

defmodule Bench.Add do
  @rounds 15
  @sizes [1, 1_000, 100_000, 1_000_000, 10_000_000]

  def run do
    small()
    peer = peer()
    large(peer)
  end

  defp small do
    a = Ferrox.tensor(1.0)
    v = Ferrox.iota({16}, type: :f32)
    count = 500_000

    cases = [
      {"an empty function", fn -> :ok end},
      {"an empty NIF", fn -> Ferrox.Native.empty() end},
      {"Ferrox.add of scalars", fn -> Ferrox.add(a, a) end},
      {"Ferrox.add of 16 elements", fn -> Ferrox.add(v, v) end}
    ]

    times =
      for _ <- 1..@rounds do
        for {_, fun} <- cases, do: time(fun, count) / count
      end

    medians = times |> Enum.zip_with(& &1) |> Enum.map(&median/1)
    [_, empty | _] = medians
    IO.puts("ns a call (median of #{@rounds} rounds), and over an empty NIF:\n")

    for {{name, _}, ns} <- Enum.zip(cases, medians) do
      IO.puts("  #{String.pad_trailing(name, 28)}#{pad(ns * 1.0e9)}#{pad((ns - empty) * 1.0e9)}")
    end
  end

  defp large(nil), do: IO.puts("\nNumPy isn't there: nothing to compare with")

  defp large(peer) do
    IO.puts("\nus an addition, f32 (median of #{@rounds} rounds), beside #{peer.name}:\n")
    IO.puts("    elements      Ferrox       NumPy   NumPy / Ferrox")

    for n <- @sizes do
      a = Ferrox.divide(Ferrox.iota({n}), 3)
      b = Ferrox.subtract(1, a)
      ask(peer, "setup a = (np.arange(#{n}) / 3).astype(np.float32); b = 1 - a")
      check!(peer, Ferrox.add(a, b))
      # Enough calls that the first ones, into cold memory, do not count.
      count = max(div(200_000_000, n), 20) |> min(100_000)

      rounds =
        for _ <- 1..@rounds do
          ours = time(fn -> Ferrox.add(a, b) end, count) / count
          theirs = String.to_float(ask(peer, "time #{count} r = a + b")) / count
          {ours, theirs}
        end

      {ours, theirs} = Enum.unzip(rounds)
      [ours, theirs] = Enum.map([ours, theirs], &(median(&1) * 1.0e6))
      IO.puts("#{String.pad_leading("#{n}", 12)}#{pad(ours)}#{pad(theirs)}#{pad(theirs / ours)}")
    end
  end

  # Answers before times.
  defp check!(peer, tensor) do
    ours = :crypto.hash(:md5, Ferrox.to_binary(tensor)) |> Base.encode16(case: :lower)
    ask(peer, "setup import hashlib")
    theirs = ask(peer, "value hashlib.md5((a + b).tobytes()).hexdigest()")
    if ours != theirs, do: raise("the answers differ")
  end

  # The process dies young, so that garbage of one measurement does not burden
  # the next.
  defp time(fun, count) do
    Task.async(fn ->
      repeat(fun, div(count, 10) + 1)
      start = System.monotonic_time(:nanosecond)
      repeat(fun, count)
      (System.monotonic_time(:nanosecond) - start) / 1.0e9
    end)
    |> Task.await(:infinity)
  end

  defp repeat(_fun, 0), do: :ok

  defp repeat(fun, n) do
    fun.()
    repeat(fun, n - 1)
  end

  defp median(list), do: list |> Enum.sort() |> Enum.at(div(length(list), 2))
  defp pad(number), do: String.pad_leading(:erlang.float_to_binary(number * 1.0, decimals: 2), 12)

  defp peer do
    python = System.find_executable(System.get_env("PYTHON", "python3"))

    with path when path != nil <- python,
         {_, 0} <- System.cmd(path, ["-c", "import numpy"], stderr_to_stdout: true) do
      script = Path.join(__DIR__, "peer.py")
      port = Port.open({:spawn_executable, path}, [:binary, line: 10_000, args: [script]])
      %{port: port, name: answer(port)}
    else
      _ -> nil
    end
  end

  defp ask(%{port: port}, line) do
    Port.command(port, line <> "\n")
    answer(port)
  end

  defp answer(port) do
    receive do
      {^port, {:data, {:eol, line}}} -> line
    after
      120_000 -> raise "NumPy's process does not answer"
    end
  end
end

Bench.Add.run()
