# What a whole program costs beside its time: the time to compile it, and memory.

defmodule Bench.Costs do
  @compile {:no_warn_undefined, [Nx, Nx.Defn]}

  alias Ferrox.Defn.Cache

  @rounds 5

  @doc """
  Milliseconds to compile a function of Nx.Defn, by which its first call is longer than later ones: to
  trace it, to lower it and to build the native program. The median of some rounds, with empty caches
  in each.

  It is compiled without a call, as `compile_seconds` of peer.py has jax do: where a call takes 20 ms,
  two of them differ by more than compiling takes.
  """
  def compile_ms(fun, given, opts) do
    given = Enum.map(given, &Ferrox.to_nx/1)

    samples =
      for _ <- 1..@rounds do
        Cache.clear()
        # In a process of its own, whose memory is that of nothing else.
        compile = fn -> Bench.time_once(fn -> Nx.Defn.compile(fun, given, opts) end) end
        Task.await(Task.async(compile), :infinity)
      end

    Bench.median(samples) * 1.0e3
  end

  @doc """
  The most memory that one call of a compiled function uses beyond its arguments, in MB (10^6 bytes);
  nil where the system does not tell.

  A process of its own is started for each call, and `peak` of peer.py does the same in Python:

    1. The program is compiled, and another small one is run, so that what is only done once is done.
    2. Unused memory is returned to the system.
    3. The resident memory is read, and the kernel told to begin anew with the most that it notes
       (`VmHWM`, by a 5 in `clear_refs`).
    4. The program is called once, for the first time, and its results are kept.
    5. The growth is the most that the kernel has noted, less the memory before and what has been
       read from files meanwhile, which are pages of libraries.

  So this is the memory of results, of intermediate values and of copies of arguments: what a call
  touches. It does not have what the compiler takes, what a system keeps from one call for the next,
  and addresses that are only reserved. Linux counts in pages, and notes them in batches for each
  core: differences below half a MB mean nothing.
  """
  def peak_mb(fun, files, opts, run) do
    if told?() and Code.ensure_loaded?(:peer), do: in_process(fun, files, opts, run)
  end

  @doc "Whether the system tells the most memory that a process had."
  def told?, do: File.exists?("/proc/self/clear_refs")

  defp in_process(fun, files, opts, run) do
    # Memory for binaries is returned at once when they die. So are large blocks of libraries.
    args = [
      ~c"+S",
      ~c"#{run.threads}:#{run.threads}",
      ~c"+MMmcs",
      ~c"0",
      ~c"+MBsbct",
      ~c"128",
      ~c"+fnu"
    ]

    env = for {name, value} <- malloc(), do: {~c"#{name}", ~c"#{value}"}
    options = %{connection: :standard_io, args: args, env: env, wait_boot: 60_000}
    {:ok, node, _name} = apply(:peer, :start_link, [options])
    call = fn module, name, args -> apply(:peer, :call, [node, module, name, args, :infinity]) end

    try do
      call.(:code, :add_paths, [:code.get_path()])
      for {module, code} <- run.modules, do: call.(:code, :load_binary, [module, ~c"bench", code])
      for app <- [:nx, :ferrox], do: {:ok, _} = call.(Application, :ensure_all_started, [app])
      call.(__MODULE__, :growth, [fun, files, opts])
    after
      apply(:peer, :stop, [node])
    end
  end

  @doc "The variables that make an allocator of GNU return freed blocks to the system at once."
  def malloc,
    do: [{"MALLOC_MMAP_THRESHOLD_", "131072"}, {"MALLOC_TRIM_THRESHOLD_", "131072"}]

  @doc false
  # Runs in the process of its own.
  def growth(fun, files, opts) do
    Nx.global_default_backend(Ferrox.Backend)
    given = Enum.map(files, &read/1)
    call = Nx.Defn.compile(fun, given, opts)
    one = Nx.tensor([1.0])
    Nx.Defn.compile(fn x -> Nx.sum(Nx.exp(x)) end, [one], opts).(one)
    settle()
    {rss, file} = {status("VmRSS"), status("RssFile")}
    File.write!("/proc/self/clear_refs", "5")
    Process.put(:results, apply(call, given))
    {most, file_after} = {status("VmHWM"), status("RssFile")}
    max(most - rss - (file_after - file), 0) * 1024 / 1.0e6
  end

  # What has died is freed a moment later, by the scheduler that allocated it.
  defp settle do
    for _ <- 1..3 do
      Enum.each(Process.list(), &:erlang.garbage_collect/1)
      Process.sleep(50)
    end
  end

  defp read({path, type, shape}),
    do: path |> File.read!() |> Nx.from_binary(type) |> Nx.reshape(shape)

  defp status(name) do
    [_, kb] = Regex.run(~r/#{name}:\s+(\d+) kB/, File.read!("/proc/self/status"))
    String.to_integer(kb)
  end
end
