# What the benchmarks share: timing round by round, and a NumPy to be timed beside.
#
#     Code.require_file("measure.exs", __DIR__)
#
# With BENCHEE=1, where Benchee is a dependency or in ERL_LIBS, every call of Elixir is
# timed by it. Otherwise a loop is: Benchee reads the clock for every call, which is
# felt where one takes a tenth of a microsecond.

defmodule Bench do
  @compile {:no_warn_undefined, [Benchee]}

  # Calls before those that count. What others have driven out of the cache is back in it only
  # when it has been read a few times: of the same sum of 40 MB, called one after the other on a
  # Xeon, the first takes 3.4 ms, the others 3.3, 2.6, 1.9, 1.6 and 1.5.
  @warm_calls 5
  @warm_seconds 0.02

  @doc "How many calls go before `count` that count, if they take no longer than so many seconds."
  def warm(count), do: {max(div(count, 10), @warm_calls), @warm_seconds}

  @doc "Seconds for `count` calls, after some that don't count."
  def time(fun, count), do: if(benchee?(), do: benchee(fun, count), else: loop(fun, count))

  defp benchee? do
    System.get_env("BENCHEE", "") not in ["", "0"] and
      (Code.ensure_loaded?(Benchee) or benchee_in_libs?() or
         raise("BENCHEE is set, but Benchee is neither a dependency nor in ERL_LIBS"))
  end

  # Mix takes from the code path what the project doesn't name.
  defp benchee_in_libs? do
    for libs <- String.split(System.get_env("ERL_LIBS", ""), ":", trim: true),
        path <- Path.wildcard(libs <> "/{benchee,statistex,deep_merge}*/ebin"),
        do: Code.append_path(path)

    Code.ensure_loaded?(Benchee)
  end

  # Its median, from the time that so many calls take.
  defp benchee(fun, count) do
    seconds = time_once(fun) * count
    quiet = [benchmarking: false, configuration: false, fast_warning: false]

    suite =
      [time: seconds, warmup: seconds / 10, print: quiet]
      |> Benchee.init()
      |> Benchee.benchmark("call", fun)
      |> Benchee.collect()
      |> Benchee.statistics()

    [%{run_time_data: %{statistics: %{median: nanoseconds}}}] = suite.scenarios
    nanoseconds * count / 1.0e9
  end

  defp loop(fun, count) do
    # The process dies young, so that garbage of one measurement does not burden
    # the next.
    Task.async(fn ->
      {calls, seconds} = warm(count)
      repeat(fun, calls, System.monotonic_time(:nanosecond) + trunc(seconds * 1.0e9))
      start = System.monotonic_time(:nanosecond)
      repeat(fun, count)
      (System.monotonic_time(:nanosecond) - start) / 1.0e9
    end)
    |> Task.await(:infinity)
  end

  @doc "Seconds for one call, the first."
  def time_once(fun) do
    {us, _} = :timer.tc(fun)
    us / 1.0e6
  end

  # At least one call, and others only begin within the time.
  defp repeat(fun, calls, until) do
    fun.()

    if calls > 1 and System.monotonic_time(:nanosecond) < until,
      do: repeat(fun, calls - 1, until)
  end

  @doc "Calls a function a number of times."
  def repeat(_fun, 0), do: :ok

  def repeat(fun, n) do
    fun.()
    repeat(fun, n - 1)
  end

  @doc "The medians of the columns of rounds that are timed one after the other."
  def medians(rounds, measure) do
    for(_ <- 1..rounds, do: measure.()) |> Enum.zip_with(&median/1)
  end

  def median(list), do: list |> Enum.sort() |> Enum.at(div(length(list), 2))

  @doc "A line of a table: a name, then numbers."
  def row(name, numbers) do
    [String.pad_trailing(name, 34) | Enum.map(numbers, &pad/1)] |> IO.puts()
  end

  @doc "A line with seconds a call, ours and a peer's, as `per_second` of a unit, and their ratio."
  def times_row(name, [ours | theirs], per_second),
    do: row(name, [ours * per_second | Enum.flat_map(theirs, &[&1 * per_second, &1 / ours])])

  def pad(number),
    do: String.pad_leading(:erlang.float_to_binary(number * 1.0, decimals: 2), 12)

  @doc "A line of us a call through Nx, on Ferrox and on Nx.BinaryBackend."
  def binary_backend_row(name, ours, theirs) do
    count = max(trunc(0.05 / time_once(theirs)), 1) |> min(20_000)

    medians(3, fn -> [time(ours, count * 10) / count / 10, time(theirs, count) / count] end)
    |> then(&times_row(name, &1, 1.0e6))
  end

  @doc "Whole numbers below 1009 without an order, as f32."
  def scrambled(shape) do
    Ferrox.iota({Tuple.product(shape)})
    |> Ferrox.remainder(1009)
    |> Ferrox.multiply(7919)
    |> Ferrox.remainder(1009)
    |> Ferrox.as_type(:f32)
    |> Ferrox.reshape(shape)
  end

  @doc "The numbers of `scrambled/1` as an expression of NumPy."
  def numpy_scrambled(shape) do
    "(np.arange(#{Tuple.product(shape)}) % 1009 * 7919 % 1009).astype(np.float32)" <>
      ".reshape(#{dims(shape)})"
  end

  @doc "The sizes of a shape, as the arguments of a function of NumPy."
  def dims(shape), do: shape |> Tuple.to_list() |> Enum.join(", ")

  ## The peers, in a process of their own

  @doc """
  The peers of the `python3` on the PATH, or of PYTHON; nil where NumPy isn't.

  ## Options

    * `:modules` - what to bring beside NumPy, if it is there: `["jax"]`
    * `:threads` - how many threads they may use; by default it is up to them
    * `:env` - names and values of more variables of their process

  """
  def peer(opts \\ []) do
    python = System.find_executable(System.get_env("PYTHON", "python3"))

    with path when path != nil <- python,
         {_, 0} <- System.cmd(path, ["-c", "import numpy"], stderr_to_stdout: true) do
      args = [Path.join(__DIR__, "peer.py") | opts[:modules] || []]
      threads = if n = opts[:threads], do: [{"THREADS", n}], else: []
      env = for {name, value} <- threads ++ (opts[:env] || []), do: {~c"#{name}", ~c"#{value}"}
      port = Port.open({:spawn_executable, path}, [:binary, line: 10_000, args: args, env: env])
      %{port: port, name: answer(port)}
    else
      _ -> nil
    end
  end

  @doc "Prints the header of a table and calls the function with NumPy, if NumPy is there."
  def beside_numpy(rounds, fun) do
    if peer = peer() do
      IO.puts("us a call (median of #{rounds} rounds), beside #{peer.name}:\n")
      IO.puts(String.duplicate(" ", 40) <> "Ferrox       NumPy   NumPy / Ferrox")
      fun.(peer)
    else
      IO.puts("NumPy isn't there: nothing to compare with")
    end
  end

  @doc """
  The medians of seconds a call over the rounds, ours and those of a statement of the peer, if there
  is one. Each of the two comes with its calls a round.
  """
  def medians_beside(rounds, peer, {ours, count}, {statement, peer_count}) do
    medians(rounds, fn ->
      ours = time(ours, count) / count
      if peer, do: [ours, peer_time(peer, statement, peer_count) / peer_count], else: [ours]
    end)
  end

  @doc "Runs a statement."
  def setup(peer, statement), do: ask(peer, "setup " <> statement)

  @doc "The value of an expression, as text."
  def value(peer, expression), do: ask(peer, "value " <> expression)

  @doc "Seconds for `count` runs of a statement."
  def peer_time(peer, statement, count),
    do: String.to_float(ask(peer, "time #{count} #{statement}"))

  @doc "Raises unless an expression of NumPy has the bytes of a tensor."
  def check!(peer, expression, tensor) do
    ours = Ferrox.to_binary(tensor) |> :erlang.md5() |> Base.encode16(case: :lower)
    setup(peer, "import hashlib")

    if ours != value(peer, "hashlib.md5((#{expression}).tobytes()).hexdigest()") do
      raise "the answers differ: #{expression}"
    end
  end

  @doc "Sends a line to a program that answers each with one; raises what it answers with `error`."
  def ask(%{port: port}, line) do
    Port.command(port, line <> "\n")

    case answer(port) do
      "error " <> message -> raise message
      answer -> answer
    end
  end

  defp answer(port) do
    receive do
      {^port, {:data, {:eol, line}}} -> line
    after
      300_000 -> raise "the peers' process does not answer"
    end
  end
end
