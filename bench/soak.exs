# Many processes that compute at once, as in a server: whether answers stay right, memory flat and
# other processes' timers in time.
#
#     MIX_ENV=prod mix run bench/soak.exs [MINUTES] [--processes N] [--kills N] [--reloads N] [--seed N]
#
# 200 processes, unless --processes says otherwise, call the cases of compare/cases.exs, with Nx those of
# Ferrox.Backend and the compiled programs too, for MINUTES, 1 by default. Each draws what it calls: nine
# of ten calls take less than 0.1 ms by themselves, and one of a hundred more than 2 ms. --kills ends so
# many processes a second wherever they are, and starts others; --reloads deletes the module of the native
# functions so many times a second, and loads it again.
#
# Answers are compared with those of one process before: the same bits, or for products of matrices and
# what is made of them, Fourier transforms and programs, which other numbers of threads may round
# otherwise, the bound that the case has.
#
# Timers are compared with those beside nothing, and beside as many processes that run loops of Elixir. A
# process of normal priority waits for its turn among the others in any case; one of priority :max is late
# only where a scheduler is held.
#
# The exit status is 1 if an answer was wrong, a process ended otherwise than by --kills, or memory grew.

for file <- ["lateness.exs", "measure.exs", "compare/cases.exs", "compare/calls.exs"],
    do: Code.require_file(file, __DIR__)

if Code.ensure_loaded?(Nx.Defn), do: Code.require_file("compare/programs.exs", __DIR__)

defmodule Bench.Soak do
  @compile {:no_warn_undefined, Nx}

  alias Bench.{Calls, Cases, Lateness}

  @switches [processes: :integer, kills: :integer, reloads: :integer, seed: :integer]
  @max_elements 1_000_000
  @max_work 200_000_000
  # Groups whose answers may depend on the number of threads.
  @rounded [:dot, :conv, :fft, :programs]
  # Of a hundred calls, how many are of which class, and the microseconds below which a case is in it.
  @classes [short: {90, 100}, middle: {9, 2_000}, long: {1, :infinity}]
  # Bytes that are compared at once, and the reductions that this counts as: a millisecond has 4,000.
  @part 65_536
  @part_reductions 40
  # Memory has grown if the last quarter has more than the second by so much, as ratio and MB.
  @growth 1.05
  @growth_mb 32
  @sample_ms 1_000

  def run(args) do
    {seconds, opts} = options(args)
    if Code.ensure_loaded?(Nx), do: Nx.global_default_backend(Ferrox.Backend)
    cases = cases()
    store(cases)

    IO.puts(
      "#{length(cases)} cases, #{opts.processes} processes, #{System.schedulers_online()} schedulers, " <>
        "#{elem(Ferrox.Native.library(), 2)} threads; seed #{opts.seed}"
    )

    few = min(seconds, 10)
    idle = timers("nothing", fn -> Process.sleep(few * 1_000) end)
    elixir = timers("loops of Elixir", fn -> loops(opts.processes, few) end)
    {load, soaked} = timers_of("Ferrox", fn -> soak(seconds, opts) end)
    report(soaked, seconds)
    IO.puts(["\n", Lateness.heading("ms late")])

    for lines <- [idle, elixir, load],
        {name, late} <- lines,
        do: IO.puts(Lateness.line(name, late))

    if faults(soaked) != [], do: System.halt(1)
  end

  defp options(args) do
    case OptionParser.parse(args, strict: @switches) do
      {opts, minutes, []} when length(minutes) <= 1 ->
        seed = :erlang.phash2(System.os_time(), 1_000_000)
        opts = Map.merge(%{processes: 200, kills: 0, reloads: 0, seed: seed}, Map.new(opts))
        {trunc(60 * number(List.first(minutes, "1"))), opts}

      _ ->
        usage()
    end
  end

  defp number(text) do
    case Float.parse(text) do
      {number, ""} when number > 0 -> number
      _ -> usage()
    end
  end

  defp usage do
    IO.puts(:stderr, "soak.exs [MINUTES] [--processes N] [--kills N] [--reloads N] [--seed N]")
    System.halt(2)
  end

  ## Cases

  # Each with its call, its class and its answer.
  defp cases do
    {:ok, groups} = Cases.named([])

    for {group, row, call} <- Calls.of_cases(groups, @max_work, @max_elements) do
      expected = results(call.())
      {micros, answer} = :timer.tc(call)
      true = same?(results(answer), expected)

      %{
        name: "#{group} | #{row.name} | #{inspect(row.shape)}",
        call: call,
        micros: micros,
        expected: expected,
        bound: if(group in @rounded, do: row.bound, else: :exact)
      }
    end
  end

  # The cases of each class where all processes read them without a copy.
  defp store(cases) do
    by_class = Enum.group_by(cases, &class/1)

    for {class, _} <- @classes do
      of_class = Map.get(by_class, class, [])
      IO.puts("#{length(of_class)} #{class} cases")
      :persistent_term.put({__MODULE__, class}, List.to_tuple(of_class))
    end
  end

  defp class(%{micros: micros}),
    do: Enum.find_value(@classes, fn {class, {_, below}} -> micros < below && class end)

  defp results(answer) do
    for tensor <- Calls.results(answer) do
      if is_struct(tensor, Ferrox.Tensor), do: tensor, else: apply(Ferrox, :from_nx, [tensor])
    end
  end

  defp same?([], []), do: true

  defp same?([a | as], [b | bs]),
    do:
      a.type == b.type and a.shape == b.shape and same_bytes?(bytes(a), bytes(b)) and
        same?(as, bs)

  defp same?(_, _), do: false

  # The comparison of large binaries isn't interrupted, and would hold the scheduler.
  defp same_bytes?(<<a::binary-size(@part), as::binary>>, <<b::binary-size(@part), bs::binary>>) do
    :erlang.bump_reductions(@part_reductions)
    a == b and same_bytes?(as, bs)
  end

  defp same_bytes?(as, bs), do: as == bs

  defp bytes(tensor), do: tensor |> Ferrox.to_binary() |> Ferrox.Native.whole_bytes()

  ## Load

  defp soak(seconds, opts) do
    # What keeps the processes has its turn before them.
    Process.flag(:priority, :high)
    counts = :counters.new(length(@classes), [])
    keeper = %{opts: opts, counts: counts, workers: %{}, next: 1, killed: 0, faults: []}
    keeper = Enum.reduce(1..opts.processes, keeper, fn _, keeper -> start_worker(keeper) end)
    reloader = if opts.reloads > 0, do: spawn_link(fn -> reload(div(1_000, opts.reloads), 0) end)
    now = System.monotonic_time(:millisecond)
    schedule(:sample, @sample_ms)
    if opts.kills > 0, do: schedule(:kill, div(1_000, opts.kills))
    {keeper, samples} = keep(keeper, now + seconds * 1_000, [sample(counts, now)])
    for {pid, _} <- keeper.workers, do: Process.exit(pid, :kill)

    reloads =
      if reloader do
        send(reloader, {:stop, self()})

        receive do
          {:reloaded, times} -> times
        end
      end

    Map.merge(keeper, %{samples: Enum.reverse(samples), reloads: reloads})
  end

  defp schedule(what, ms), do: Process.send_after(self(), what, max(ms, 1))

  # A worker is known by the seed of its draws.
  defp start_worker(%{opts: opts, counts: counts, next: next} = keeper) do
    keeper_pid = self()

    {pid, _monitor} =
      spawn_monitor(fn ->
        :rand.seed(:exsss, {opts.seed, next, 1})
        work(keeper_pid, counts)
      end)

    %{keeper | workers: Map.put(keeper.workers, pid, next), next: next + 1}
  end

  defp keep(keeper, stop, samples) do
    receive do
      :sample ->
        schedule(:sample, @sample_ms)
        now = System.monotonic_time(:millisecond)
        samples = [sample(keeper.counts, now) | samples]
        if now < stop, do: keep(keeper, stop, samples), else: {keeper, samples}

      :kill ->
        schedule(:kill, div(1_000, keeper.opts.kills))
        {pid, _} = Enum.random(keeper.workers)
        Process.exit(pid, :kill)
        keep(keeper, stop, samples)

      {:wrong, name, text} ->
        keep(%{keeper | faults: ["#{name}: #{text}" | keeper.faults]}, stop, samples)

      {:DOWN, _, _, pid, reason} ->
        keeper = %{keeper | workers: Map.delete(keeper.workers, pid)} |> start_worker()

        keeper =
          if reason == :killed,
            do: %{keeper | killed: keeper.killed + 1},
            else: %{keeper | faults: ["a process ended: #{inspect(reason)}" | keeper.faults]}

        keep(keeper, stop, samples)
    end
  end

  defp work(keeper, counts) do
    {number, drawn} = draw()
    answer = call(drawn)
    if not same?(answer, drawn.expected), do: check(answer, drawn, keeper)
    :counters.add(counts, number, 1)
    work(keeper, counts)
  end

  # Where the library is deleted, calls fail until it is there again.
  defp call(drawn) do
    results(drawn.call.())
  rescue
    error in UndefinedFunctionError ->
      if error.module != Ferrox.Native, do: reraise(error, __STACKTRACE__)
      call(drawn)
  end

  defp draw do
    part = :rand.uniform(100)

    {class, number} =
      @classes
      |> Enum.with_index(1)
      |> Enum.reduce_while(part, fn {{class, {share, _}}, number}, part ->
        if part <= share, do: {:halt, {class, number}}, else: {:cont, part - share}
      end)

    case :persistent_term.get({__MODULE__, class}) do
      {} -> draw()
      cases -> {number, elem(cases, :rand.uniform(tuple_size(cases)) - 1)}
    end
  end

  # An answer with other bits: within the bound, or wrong.
  defp check(answer, drawn, keeper) do
    problems =
      for {{mine, other}, k} <- Enum.with_index(Enum.zip(answer, drawn.expected)),
          problem = difference(mine, other, drawn.bound),
          do: "result #{k} #{problem}"

    if problems != [] or length(answer) != length(drawn.expected),
      do: send(keeper, {:wrong, drawn.name, Enum.join(problems, ", ")})
  end

  defp difference(%{type: type, shape: shape}, %{type: type2, shape: shape2}, _bound)
       when {type, shape} != {type2, shape2},
       do: "is #{inspect(type)} #{inspect(shape)}"

  defp difference(mine, other, :exact),
    do: if(not same_bytes?(bytes(mine), bytes(other)), do: "has other bits")

  defp difference(mine, other, {kind, bound}) do
    distance = Ferrox.abs(Ferrox.subtract(mine, other))
    size = Ferrox.abs(other)
    most = fn tensor -> Ferrox.to_number(Ferrox.reduce_max(tensor)) end

    error =
      case kind do
        :whole -> most.(distance) / max(most.(size), 1.0e-300)
        :each -> most.(Ferrox.divide(distance, Ferrox.max(size, 1.0e-300)))
      end

    # What is not a number is an atom, which is greater.
    if error > bound, do: "is off by #{inspect(error)}"
  end

  defp reload(ms, times) do
    receive do
      {:stop, pid} -> send(pid, {:reloaded, times})
    after
      ms ->
        # It can't be deleted while processes still run the version before.
        :code.soft_purge(Ferrox.Native)
        deleted? = :code.delete(Ferrox.Native)
        {:module, Ferrox.Native} = :code.ensure_loaded(Ferrox.Native)
        reload(ms, if(deleted?, do: times + 1, else: times))
    end
  end

  ## What is measured

  defp timers(name, fun), do: elem(timers_of(name, fun), 0)

  defp timers_of(name, fun) do
    watchers = for priority <- [:normal, :max], do: {priority, Lateness.start(priority)}
    result = fun.()

    late =
      for {priority, watcher} <- watchers,
          do: {"#{name}, priority :#{priority}", Lateness.stop(watcher)}

    {late, result}
  end

  # Processes that are always ready to run, and call no native function.
  defp loops(processes, seconds) do
    pids = for _ <- 1..processes, do: spawn(fn -> loop(0) end)
    Process.sleep(seconds * 1_000)
    for pid <- pids, do: Process.exit(pid, :kill)
  end

  defp loop(n), do: loop(rem(n * 7 + 1, 1_000_003))

  defp sample(counts, now) do
    memory = :erlang.memory([:total, :binary])

    %{
      at: now,
      resident: resident(),
      vm: mb(memory[:total]),
      binaries: mb(memory[:binary]),
      operations: for(k <- 1..length(@classes), do: :counters.get(counts, k))
    }
  end

  defp mb(bytes), do: div(bytes, 1_000_000)

  # Nil where the system does not tell.
  defp resident do
    with {:ok, status} <- File.read("/proc/self/status"),
         [_, kb] <- Regex.run(~r/VmRSS:\s+(\d+) kB/, status) do
      mb(1024 * String.to_integer(kb))
    else
      _ -> nil
    end
  end

  ## The report

  defp report(%{samples: samples} = soaked, seconds) do
    IO.puts("\n seconds   MB resident      MB of VM   MB of binaries   operations")
    start = hd(samples).at
    # Twenty lines.
    every = max(div(length(samples), 20), 1)

    for {sample, k} <- Enum.with_index(samples), rem(k, every) == 0 do
      columns = [
        {div(sample.at - start, 1_000), 8},
        {sample.resident, 14},
        {sample.vm, 14},
        {sample.binaries, 17},
        {Enum.sum(sample.operations), 13}
      ]

      IO.puts(for {value, width} <- columns, do: String.pad_leading("#{value}", width))
    end

    operations = Enum.zip(Keyword.keys(@classes), List.last(samples).operations)
    total = Enum.sum(Keyword.values(operations))
    each = Enum.map_join(operations, ", ", fn {class, count} -> "#{count} #{class}" end)
    IO.puts("\n#{total} operations (#{each}), #{div(total, max(seconds, 1))} a second")
    if soaked.killed > 0, do: IO.puts("#{soaked.killed} processes killed")
    if soaked.reloads, do: IO.puts("#{soaked.reloads} times deleted and loaded again")

    for key <- [:resident, :binaries], {from, to} <- [quarters(samples, key)] do
      IO.puts("MB #{key}: #{from} in the second quarter, #{to} in the last (medians)")
    end

    case faults(soaked) do
      [] ->
        IO.puts("no wrong answer, no process that ended, no growth")

      faults ->
        IO.puts("#{length(faults)} FAULTS, the first of them:")
        for fault <- Enum.take(faults, 20), do: IO.puts("  #{fault}")
    end
  end

  defp faults(%{faults: faults, samples: samples}) do
    grown =
      for key <- [:resident, :binaries],
          {from, to} <- [quarters(samples, key)],
          to > from * @growth + @growth_mb,
          do: "MB #{key} grew from #{from} to #{to}"

    grown ++ Enum.reverse(faults)
  end

  # The medians of the second and the last quarter: the first one is for caches to fill.
  defp quarters(samples, key) do
    values = for sample <- samples, value = sample[key], do: value
    quarter = div(length(values), 4)

    if quarter == 0,
      do: {0, 0},
      else: {median(Enum.slice(values, quarter, quarter)), median(Enum.take(values, -quarter))}
  end

  defp median(values), do: values |> Enum.sort() |> Enum.at(div(length(values), 2))
end

Bench.Soak.run(System.argv())
