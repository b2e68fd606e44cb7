# Requests a second of an Nx.Serving, by partitions and sizes of batches, with some number of threads:
# a column or two of the table in guides/serving.md.
#
#     MIX_ENV=prod mix run bench/partitions.exs [THREADS [SECONDS]]
#
# The threads are those of the VM, so each number of them is a run of its own. Needs Nx on the code path.

defmodule Bench.Partitions do
  @compile {:no_warn_undefined, [Nx, Nx.Batch, Nx.Defn, Nx.Serving]}

  @units [784, 1024, 1024, 10]
  @batch_sizes [1, 8, 32]
  @partitions [1, 2]
  @processes 64

  def run(arguments) do
    unless Code.ensure_loaded?(Nx), do: raise("Nx is not on the code path")
    {threads, seconds} = options(arguments)
    # Read when the library is loaded.
    Application.put_env(:ferrox, :threads, threads)
    Nx.default_backend(Ferrox.Backend)

    params =
      for [rows, columns] <- Enum.chunk_every(@units, 2, 1, :discard),
          do: Nx.divide(Nx.sin(Nx.iota({rows, columns}, type: :f32)), rows)

    IO.puts(
      "requests a second: layers of #{Enum.join(@units, ", ")} units, #{@processes} processes asking, " <>
        "threads: #{threads}, schedulers: #{System.schedulers_online()}\n\n" <>
        "batch size" <> Enum.map_join(@partitions, &String.pad_leading("#{&1} partitions", 16))
    )

    for batch_size <- @batch_sizes do
      columns =
        for partitions <- @partitions, do: measure(params, batch_size, partitions, seconds)

      numbers = Enum.map_join(columns, &String.pad_leading("#{round(&1)}", 16))
      IO.puts(String.pad_trailing("#{batch_size}", 10) <> numbers)
    end
  end

  defp options([]), do: options(["#{System.schedulers_online()}"])
  defp options([threads]), do: options([threads, "3"])
  defp options([threads, seconds]), do: {String.to_integer(threads), String.to_integer(seconds)}

  defp measure(params, batch_size, partitions, seconds) do
    {:ok, supervisor} =
      Supervisor.start_link(
        [
          {Nx.Serving,
           serving: serving(params, batch_size, partitions),
           name: __MODULE__,
           batch_size: batch_size,
           batch_timeout: 5,
           partitions: partitions > 1}
        ],
        strategy: :one_for_one
      )

    request = Nx.Batch.stack([Nx.cos(Nx.iota({hd(@units)}, type: :f32))])
    ask(request, 0.3)
    answers = ask(request, seconds)
    Supervisor.stop(supervisor)
    answers / seconds
  end

  defp serving(params, batch_size, partitions) do
    Nx.Serving.new(
      fn options ->
        template = Nx.template({batch_size, hd(@units)}, :f32)
        model = Nx.Defn.compile(&predict/2, [List.to_tuple(params), template], options)

        fn batch ->
          model.(List.to_tuple(params), Nx.Batch.pad(batch, batch_size - batch.size))
        end
      end,
      compiler: Ferrox,
      max_concurrency: partitions
    )
  end

  defp predict({first, second, third}, x) do
    x |> Nx.dot(first) |> Nx.max(0) |> Nx.dot(second) |> Nx.max(0) |> Nx.dot(third)
  end

  # How many answers all processes have got.
  defp ask(request, seconds) do
    stop = System.monotonic_time(:millisecond) + round(seconds * 1000)

    1..@processes
    |> Enum.map(fn _ -> Task.async(fn -> answers(request, stop, 0) end) end)
    |> Task.await_many(:infinity)
    |> Enum.sum()
  end

  defp answers(request, stop, count) do
    if System.monotonic_time(:millisecond) >= stop do
      count
    else
      Nx.Serving.batched_run(__MODULE__, request)
      answers(request, stop, count + 1)
    end
  end
end

Bench.Partitions.run(System.argv())
