# What a program's memory does: the peak of a thousand results of 40 MB with none kept,
# and whether it grows while operations of every size run for a while.
#
#     MIX_ENV=prod mix run bench/memory.exs [MINUTES]
#
# Reads /proc, so Linux only. MINUTES is how long the second part runs, 10 by default.

defmodule Bench.Memory do
  @results 1_000
  @mb 1_048_576

  def run(args) do
    minutes = args |> List.first("10") |> String.to_integer()
    results()
    soak(minutes * 60)
  end

  defp results do
    a = Ferrox.iota({10_000_000}, type: :f32)
    # The kernel notes the most that there was from here on.
    File.write!("/proc/self/clear_refs", "5")
    start = status("VmRSS")
    # Without a collection by hand: the process lives on, as a server does.
    Enum.each(1..@results, fn _ -> Ferrox.add(a, a) end)
    peak = status("VmHWM")
    IO.puts("#{@results} results of 40 MB, none kept: #{start} MB before, #{peak} MB at most,")
    IO.puts("#{peak - start} MB above the start")
  end

  # Several processes that compute and forget, while one looks on.
  defp soak(seconds) do
    IO.puts("\nseconds   MB resident   MB of binaries   operations")
    stop = System.monotonic_time(:second) + seconds
    counter = :counters.new(1, [])
    workers = for seed <- 1..4, do: Task.async(fn -> work(seed, stop, counter) end)
    watch(System.monotonic_time(:second), stop, max(div(seconds, 20), 1), counter)
    Task.await_many(workers, :infinity)
  end

  defp watch(start, stop, every, counter) do
    now = System.monotonic_time(:second)
    binaries = div(:erlang.memory(:binary), @mb)

    columns = [
      {now - start, 7},
      {status("VmRSS"), 14},
      {binaries, 17},
      {:counters.get(counter, 1), 13}
    ]

    IO.puts(for {value, width} <- columns, do: String.pad_leading("#{value}", width))

    if now < stop do
      Process.sleep(every * 1_000)
      watch(start, stop, every, counter)
    end
  end

  defp work(seed, stop, counter) do
    :rand.seed(:exsss, {seed, 2, 3})
    work(stop, counter)
  end

  defp work(stop, counter) do
    n = :rand.uniform(1_000)
    a = Ferrox.divide(Ferrox.iota({n, n}, type: :f32), n)
    b = Ferrox.exp(Ferrox.negate(a))
    product = if n < 200, do: Ferrox.dot(a, b), else: Ferrox.multiply(Ferrox.transpose(a), b)
    true = Ferrox.to_number(Ferrox.sum(Ferrox.as_type(product, :f64))) |> is_number()
    :counters.add(counter, 1, 8 + backend(b))
    if System.monotonic_time(:second) < stop, do: work(stop, counter)
  end

  # What only the backend has, on a part: how many operations.
  if Code.ensure_loaded?(Nx) do
    defp backend(tensor) do
      a = Ferrox.to_nx(tensor)
      side = min(Nx.axis_size(a, 0), 64)
      part = a[[0..(side - 1), 0..(side - 1)]]
      sorted = Nx.sort(a)
      true = Nx.shape(Nx.argsort(sorted)) == Nx.shape(a)
      true = Nx.shape(Nx.fft(a)) == Nx.shape(a)
      {_, r} = Nx.LinAlg.qr(part)
      filters = Nx.reshape(part, {1, 1, side, side})
      images = Nx.reshape(r, {1, 1, side, side})
      _ = Nx.conv(images, filters, padding: :same)
      _ = Nx.window_max(images, {1, 1, 1, 1})
      9
    end
  else
    defp backend(_tensor), do: 0
  end

  defp status(name) do
    [_, kb] = Regex.run(~r/#{name}:\s+(\d+) kB/, File.read!("/proc/self/status"))
    div(String.to_integer(kb), 1024)
  end
end

Bench.Memory.run(System.argv())
