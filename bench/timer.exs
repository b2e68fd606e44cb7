# How late another process's timers of 1 ms are while a large operation runs.
#
#     MIX_ENV=prod mix run bench/timer.exs [SECONDS]
#
# Prints the median, the 99th percentile and the greatest lateness of each operation,
# run again and again for SECONDS, 5 by default, and of nothing at all beside them.

Code.require_file("lateness.exs", __DIR__)

defmodule Bench.Timer do
  alias Bench.Lateness

  def run(args) do
    seconds = args |> List.first("5") |> String.to_integer()
    IO.puts(Lateness.heading("ms late"))
    for {name, fun} <- operations(), do: measure(name, fun, seconds)
  end

  defp operations do
    large = Ferrox.divide(Ferrox.iota({10_000_000}, type: :f32), 1.0e7)
    double = Ferrox.as_type(large, :f64)
    matrix = Ferrox.divide(Ferrox.iota({2_048, 2_048}, type: :f32), 4.0e6)
    small = Ferrox.divide(Ferrox.iota({10_000}, type: :f32), 1.0e4)
    middle = Ferrox.divide(Ferrox.iota({1_000_000}, type: :f32), 1.0e6)

    [
      {"nothing", fn -> Process.sleep(10) end},
      {"exp of 10,000 f32", fn -> Ferrox.exp(small) end},
      {"exp of 1,000,000 f32", fn -> Ferrox.exp(middle) end},
      {"add of 10,000,000 f32", fn -> Ferrox.add(large, large) end},
      {"exp of 10,000,000 f32", fn -> Ferrox.exp(large) end},
      {"sum of 10,000,000 f32", fn -> Ferrox.sum(large) end},
      {"sin of 10,000,000 f64", fn -> Ferrox.sin(double) end},
      {"dot of 2048 by 2048 f32", fn -> Ferrox.dot(matrix, matrix) end}
      | backend(double)
    ]
  end

  # What only the backend has.
  if Code.ensure_loaded?(Nx) do
    defp backend(double) do
      sine = Nx.from_binary(Ferrox.sin(double).data, :f64, backend: Ferrox.Backend)
      images = Nx.iota({8, 64, 128, 128}, type: :f32, backend: Ferrox.Backend)
      filters = Nx.iota({64, 64, 3, 3}, type: :f32, backend: Ferrox.Backend)
      symmetric = Nx.reshape(sine[0..(512 * 512 - 1)], {512, 512})
      symmetric = Nx.add(symmetric, Nx.transpose(symmetric))

      [
        {"sort of 10,000,000 f64", fn -> Nx.sort(sine) end},
        {"argsort of 10,000,000 f64", fn -> Nx.argsort(sine) end},
        {"fft of 10,000,000 f64", fn -> Nx.fft(sine) end},
        {"conv of 8 x 64 x 128 x 128 f32", fn -> Nx.conv(images, filters, padding: :same) end},
        {"eigh of 512 by 512 f64", fn -> Nx.LinAlg.eigh(symmetric) end}
      ]
    end
  else
    defp backend(_double), do: []
  end

  defp measure(name, fun, seconds) do
    watcher = Lateness.start()
    busy(fun, System.monotonic_time(:millisecond) + seconds * 1_000)
    IO.puts(Lateness.line(name, Lateness.stop(watcher)))
  end

  defp busy(fun, stop) do
    fun.()
    if System.monotonic_time(:millisecond) < stop, do: busy(fun, stop)
  end
end

Bench.Timer.run(System.argv())
