# Ferrox beside NumPy, jax (XLA's CPU compiler, which EXLA runs) and, where Nx is there,
# Nx.BinaryBackend: the same work in one run, round by round. Answers are compared
# before times. bin/bench brings the peers and starts this:
#
#     bin/bench [--group NAME]... [--math fast] [--quick] [--threads N]
#     bin/bench --draw FILE [--draw FILE]...
#
# The second measures nothing: it draws what runs have left in files of JSON as one, in place of the
# drawing beside the first file.
#
# What is compared is in compare/cases.exs, a row for each case.

parts = ["report.exs", "chart.exs", "cases.exs", "calls.exs", "costs.exs"]
parts = if Code.ensure_loaded?(Nx.Defn), do: parts ++ ["programs.exs"], else: parts

# The modules with their code, which the processes that measure memory load.
modules =
  for part <- ["measure.exs" | Enum.map(parts, &("compare/" <> &1))],
      module <- Code.require_file(part, __DIR__),
      do: module

defmodule Bench.Compare do
  @compile {:no_warn_undefined, Nx}

  alias Bench.{Calls, Cases, Chart, Costs, Report}

  # Seconds for all calls of a system in a cell, in how many rounds.
  @full %{budget: 0.06, rounds: 7}
  @quick %{budget: 0.01, rounds: 3}

  # Seconds a call of a peer may take, and one of BinaryBackend, as its last size
  # predicts. Ferrox is always called.
  @patience %{numpy: 4.0, jax: 4.0, binary: 0.3}
  # Of work that BinaryBackend is asked for without a smaller size before.
  @untried 10_000

  # Where the limit of memory is measured, the bytes that an element of the streaming loop
  # moves, and the most of them that a case moves: two c64 in, one out.
  @large 10_000_000
  @streamed 3 * 4
  @most 3 * 8 * @large

  def run(args, modules) do
    case OptionParser.parse(args,
           strict: [group: :keep, math: :string, quick: :boolean, draw: :keep, help: :boolean]
         ) do
      {opts, [], []} ->
        drawn = Keyword.get_values(opts, :draw)

        cond do
          opts[:help] -> help()
          drawn != [] -> draw(drawn)
          true -> compare(groups(opts), math(opts), opts[:quick] || false, modules)
        end

      {_, rest, unknown} ->
        refuse(
          "bin/bench doesn't take #{Enum.join(Enum.map(unknown, &elem(&1, 0)) ++ rest, " ")}"
        )
    end
  end

  defp refuse(message) do
    IO.puts(:stderr, message)
    System.halt(2)
  end

  defp help do
    IO.puts("bin/bench [--group NAME]... [--math fast] [--quick] [--threads N]")
    IO.puts("bin/bench --draw FILE [--draw FILE]...\n\nGroups:\n")

    for {name, title} <- Cases.groups(),
        do: IO.puts("  #{String.pad_trailing("#{name}", 11)}#{title}")
  end

  defp groups(opts) do
    case Cases.named(Keyword.get_values(opts, :group)) do
      {:ok, groups} -> groups
      {:error, message} -> refuse(message)
    end
  end

  # How whole programs evaluate functions of f32.
  defp math(opts) do
    case Keyword.get(opts, :math, "exact") do
      math when math in ["exact", "fast"] -> String.to_atom(math)
      other -> refuse("--math is exact or fast, not #{other}")
    end
  end

  defp compare(groups, math, quick?, modules) do
    nx? = Code.ensure_loaded?(Nx)
    if nx?, do: Nx.global_default_backend(Ferrox.Backend)
    threads = Application.get_env(:ferrox, :threads, System.schedulers_online())
    peer = Bench.peer(modules: ["jax"], threads: threads)
    machine = machine(peer, threads, nx?)
    introduce(machine)

    # The programs of compare/programs.exs in jax.
    if :programs in groups and nx? and :jax in peers(peer),
      do: Bench.setup(peer, "load('#{Path.join(__DIR__, "compare/programs.py")}')")

    run = %{
      peer: peer,
      peers: peers(peer),
      nx?: nx?,
      math: math,
      threads: threads,
      modules: modules,
      stream: stream(threads),
      plan: if(quick?, do: @quick, else: @full),
      directory: directory()
    }

    # From system and case to what its last size took, and the inputs at hand.
    state = %{last: %{}, inputs: %{}}

    {cells, _} =
      Enum.flat_map_reduce(groups, state, fn group, state ->
        rows = Enum.filter(Cases.rows(group, quick: quick?), &Calls.ferrox?(&1, nx?))
        IO.puts("\n#{Cases.groups()[group]}\n\n#{Report.heading()}")
        {cells, state} = Enum.map_reduce(rows, state, &cell(&1, &2, run))
        summary = Report.summary(cells)
        mean = Report.number(summary.geometric_mean)
        IO.puts("geometric mean of best peer / Ferrox: #{mean}")
        costs(Enum.filter(cells, &is_map_key(&1, :peak_mb)), summary)
        {cells, state}
      end)

    File.rm_rf!(run.directory)
    finish(cells, groups, machine, quick?)
  end

  defp costs([], _summary), do: :ok

  defp costs(cells, summary) do
    IO.puts("\n#{Report.costs_heading()}")
    Enum.each(cells, &IO.puts(Report.costs_line(&1)))
    IO.puts(Report.costs_summary(summary))
  end

  defp peers(nil), do: []
  defp peers(peer), do: if(peer.name =~ "jax", do: [:numpy, :jax], else: [:numpy])

  # Files that carry tensors to the peers; in memory where that is a directory.
  defp directory do
    base = if File.dir?("/dev/shm"), do: "/dev/shm", else: System.tmp_dir!()
    path = Path.join(base, "ferrox_bench_#{System.pid()}")
    File.mkdir_p!(path)
    path
  end

  ## A cell

  defp cell(row, state, run) do
    {given, state} = inputs(row, state, run)
    systems = systems(row, given, state, run)
    {error, systems} = check(systems, given, row, run)
    {us, state} = if error, do: {%{}, state}, else: measure(systems, row, state, run)

    cell = %{
      group: row.group,
      panel: row.panel,
      name: row.name,
      shape: Enum.map_join(Tuple.to_list(row.shape), "x", &Integer.to_string/1) |> scalar(),
      elements: row.elements,
      us: Map.delete(us, :stream),
      error: error,
      limit: us[:stream]
    }

    IO.puts(Report.line(cell))
    costs = if error, do: %{}, else: costs(row.call, row, given, run)
    {Map.merge(cell, costs), state}
  end

  defp scalar(""), do: "1"
  defp scalar(shape), do: shape |> String.split("x") |> thousands()

  defp thousands([n]), do: Report.thousands(n)
  defp thousands(dims), do: Enum.join(dims, "x")

  # The tensors of a row, made and sent to the peers unless they are there already.
  defp inputs(row, state, run) do
    keys = for {{_, spec}, seed} <- Enum.with_index(row.inputs, 1), do: {spec, seed}

    inputs =
      Map.new(keys, fn {spec, seed} = key ->
        {key, Map.get_lazy(state.inputs, key, fn -> Cases.input(spec, seed) end)}
      end)

    if run.peer do
      named = Enum.zip_with(row.inputs, keys, fn {name, _}, key -> {name, key(key)} end)
      dict = Enum.map_join(named, ", ", fn {name, key} -> "'#{name}': '#{key}'" end)
      list = Enum.map_join(keys, ", ", &"'#{key(&1)}'")
      Bench.setup(run.peer, "case([#{list}], {#{dict}})")

      for key <- Enum.uniq(keys), not Map.has_key?(state.inputs, key) do
        file = file(run, "input", inputs[key])
        Bench.setup(run.peer, "store('#{key(key)}', *#{file})")
      end
    end

    {Enum.map(keys, &inputs[&1]), %{state | inputs: inputs}}
  end

  defp key({{type, shape, range}, seed}),
    do: inspect({type, shape, range, seed}) |> String.replace("'", "")

  # A tensor in a file, as Python's tuple of path, type and shape.
  defp file(run, name, %{type: {kind, bits}, shape: shape} = tensor) do
    path = Path.join(run.directory, name)
    File.write!(path, data(tensor))
    dims = Enum.map_join(Tuple.to_list(shape), "", &"#{&1},")
    "('#{path}', '#{kind}#{bits}', (#{dims}))"
  end

  defp data(%Ferrox.Tensor{data: data}), do: data
  defp data(tensor), do: Nx.to_binary(tensor)

  # Who takes part, with the first answer and the seconds a call takes.
  defp systems(row, given, state, run) do
    ours = {:ferrox, Calls.ferrox(row.call, given, run)}
    binary = if run.nx?, do: {:binary, Calls.binary(row.call, given)}
    evaluator = if run.nx? && row.evaluator, do: {:evaluator, Calls.evaluator(row.call, given)}
    peers = for system <- run.peers, expression = row[system], do: {system, expression}

    for {system, call} <- [ours, binary, evaluator | peers] |> Enum.reject(&is_nil/1),
        call != nil,
        patient?(system, row, state),
        do: {system, call}
  end

  defp patient?(system, _, _) when system in [:ferrox, :evaluator], do: true

  defp patient?(system, row, state) do
    case state.last[{system, row.group, row.name}] do
      nil -> system != :binary or row.work <= @untried
      {seconds, work} -> seconds * max(row.work / work, 1) <= @patience[system]
    end
  end

  ## Answers

  # Every answer beside Ferrox's: nil, or what differs. Also how long a call takes.
  defp check([{:ferrox, ours} | others], given, row, run) do
    answer = Calls.results(ours.())
    seconds = min(Bench.time_once(ours), Bench.time_once(ours))
    bytes = Enum.reduce(given ++ answer, 0, &(byte_size(data(&1)) + &2))
    files = files(run, "ours", answer)

    checked =
      for {system, call} <- others do
        {seconds, verdict} = verdict(system, call, files, row, run)
        if verdict != "ok", do: throw({:differs, verdict})
        {system, call, seconds}
      end

    # Calls of the evaluator that take seconds have answered, but are not timed round by round.
    timed =
      Enum.reject(checked, fn {system, _, seconds} -> system == :evaluator and seconds > 1 end)

    {nil, [{:ferrox, ours, seconds}] ++ timed ++ [{:bytes, bytes, nil}]}
  rescue
    error -> {Exception.message(error) |> String.split("\n") |> hd(), []}
  catch
    {:differs, verdict} -> {verdict, []}
  end

  defp verdict(system, call, files, row, run) when system in [:binary, :evaluator] do
    {micros, answer} = :timer.tc(call)
    expected = files(run, "#{system}", Calls.results(answer))
    verdict = if run.peer, do: ask_check(system, files, expected, row, run), else: "ok"
    {micros / 1.0e6, verdict}
  end

  defp verdict(system, expression, files, row, run) do
    seconds = number(run, "prepare('#{system}', #{python(expression)})")
    {seconds, ask_check(system, files, "None", row, run)}
  end

  defp ask_check(system, files, expected, row, run) do
    exact? = system == :evaluator and run.math == :exact

    bound =
      case (system == :binary && row.binary_bound) || (exact? && :exact) || row.bound do
        :exact -> "('exact', 0)"
        {kind, bound} -> "('#{kind}', #{bound})"
      end

    through = if row.through, do: python(row.through), else: "None"
    title = Report.title(system)

    verdict =
      Bench.value(run.peer, "check('#{system}', #{files}, #{expected}, #{through}, #{bound})")

    String.replace(verdict, "#{system}", title)
  end

  defp python(text), do: [?", String.replace(text, "\"", "\\\""), ?"] |> IO.iodata_to_binary()

  defp files(run, name, tensors) do
    files = for {tensor, k} <- Enum.with_index(tensors), do: file(run, "#{name}#{k}", tensor)
    "[#{Enum.join(files, ", ")}]"
  end

  ## Times

  defp measure(systems, row, state, run) do
    {[{:bytes, bytes, _}], systems} = Enum.split_with(systems, &(elem(&1, 0) == :bytes))

    timed =
      for {system, call, seconds} <- systems ++ limits(row, bytes, run) do
        %{budget: budget, rounds: rounds} = run.plan
        seconds = max(seconds, 1.0e-8)
        count = max(trunc(budget / rounds / seconds), 1)
        {system, call, count, rounds(seconds * count, run.plan)}
      end

    rounds = timed |> Enum.map(&elem(&1, 3)) |> Enum.max()

    samples =
      for round <- 1..rounds, {system, call, count, own} <- timed, round <= own do
        {system, time(system, call, count, run) / count * 1.0e6}
      end

    us =
      samples
      |> Enum.group_by(&elem(&1, 0), &elem(&1, 1))
      |> Map.new(fn {system, samples} -> {system, Bench.median(samples)} end)

    last =
      for {system, us} <- us,
          into: state.last,
          do: {{system, row.group, row.name}, {us / 1.0e6, row.work}}

    {us, %{state | last: last}}
  end

  # Fewer where a single call takes more than its share.
  defp rounds(seconds, %{budget: budget, rounds: rounds}) do
    least = if seconds < 0.5, do: 3, else: 1
    (budget / seconds) |> trunc() |> max(least) |> min(rounds)
  end

  defp time(system, call, count, _run) when system in [:ferrox, :binary, :evaluator],
    do: Bench.time(call, count)

  # It answers with seconds, the first time for what goes before.
  defp time(:stream, {stream, elements}, count, _run) do
    {calls, _} = Bench.warm(count)
    Bench.ask(stream, "#{elements} #{calls}")
    String.to_float(Bench.ask(stream, "#{elements} #{count}"))
  end

  defp time(system, _, count, run) do
    {calls, seconds} = Bench.warm(count)
    number(run, "bench('#{system}', #{count}, #{calls}, #{seconds})")
  end

  defp number(run, expression) do
    {number, ""} = Float.parse(Bench.value(run.peer, expression))
    number
  end

  ## What compiling takes, and memory

  defp costs({:defn, fun}, row, given, run) do
    options = Calls.options(:ferrox, run)
    ours = %{ferrox: Costs.compile_ms(fun, given, options)}
    files = for {tensor, k} <- Enum.with_index(given), do: file(run, "given#{k}", tensor)

    typed =
      for {tensor, k} <- Enum.with_index(given),
          do: {Path.join(run.directory, "given#{k}"), tensor.type, tensor.shape}

    evaluator = if row.evaluator, do: Calls.options(:evaluator, run)

    peaks =
      for {system, options} <- [ferrox: options, evaluator: evaluator],
          options,
          into: %{},
          do: {system, Costs.peak_mb(fun, typed, options, run)}

    if :jax in run.peers do
      seconds = number(run, "compile_seconds(#{python(row.jax)})")
      peaks = Map.put(peaks, :jax, if(Costs.told?(), do: jax_peak(row, files, run)))
      %{compile_ms: Map.put(ours, :jax, seconds * 1.0e3), peak_mb: peaks}
    else
      %{compile_ms: ours, peak_mb: peaks}
    end
  end

  defp costs(_call, _row, _given, _run), do: %{}

  # In a process of its own.
  defp jax_peak(row, files, run) do
    peer = Bench.peer(modules: ["jax"], threads: run.threads, env: Costs.malloc())
    names = Enum.map(row.inputs, fn {name, _} -> name end)
    list = Enum.map_join(names, ", ", &"'#{&1}'")
    dict = Enum.map_join(names, ", ", &"'#{&1}': '#{&1}'")
    Bench.setup(peer, "load('#{Path.join(__DIR__, "compare/programs.py")}')")
    Bench.setup(peer, "case([#{list}], {#{dict}})")

    for {name, file} <- Enum.zip(names, files),
        do: Bench.setup(peer, "store('#{name}', *#{file})")

    peak = number(%{peer: peer}, "peak(#{python(row.jax)})")
    Port.close(peer.port)
    peak
  end

  ## What memory allows

  # For as many bytes as the case reads and writes: what a cache of the machine holds of
  # 40 MB, it doesn't of 80.
  defp limits(%{group: group, elements: @large}, bytes, %{stream: stream})
       when group in [:binary, :unary] and stream != nil,
       do: [{:stream, {stream, div(bytes, @streamed)}, bytes / 50.0e9}]

  defp limits(_, _, _), do: []

  defp stream(threads) do
    target = Path.expand(System.get_env("CARGO_TARGET_DIR", "target"))

    path =
      Path.join([target, System.get_env("CARGO_BUILD_TARGET", ""), "release/examples/stream"])

    if File.exists?(path) do
      most = div(@most, @streamed)
      args = ["#{threads}", "#{most}"]
      stream = %{port: Port.open({:spawn_executable, path}, [:binary, line: 100, args: args])}
      Bench.ask(stream, "#{most} 3")
      stream
    end
  end

  ## The machine

  defp machine(peer, threads, nx?) do
    versions = if peer, do: String.split(peer.name, ", "), else: []

    %{
      cpu: cpu(),
      cores: :erlang.system_info(:logical_processors_available) |> known(),
      threads: threads,
      system: to_string(:erlang.system_info(:system_architecture)),
      date: Date.to_iso8601(Date.utc_today()),
      commit: commit(),
      versions:
        for version <- ours(nx?) ++ versions, into: %{} do
          [name, version] = String.split(version, " ", parts: 2)
          {name, version}
        end
    }
  end

  defp known(:unknown), do: System.schedulers_online()
  defp known(n), do: n

  defp ours(nx?) do
    Enum.concat([
      ["ferrox #{version(:ferrox)}", "elixir #{System.version()}", "otp #{System.otp_release()}"],
      if(nx?, do: ["nx #{version(:nx)}"], else: []),
      case System.find_executable("rustc") && System.cmd("rustc", ["--version"]) do
        {"rustc " <> version, 0} -> ["rustc " <> hd(String.split(version))]
        _ -> []
      end
    ])
  end

  # Of Ferrox, with `+` where files have changed since; nil outside of a repository.
  defp commit do
    git = fn args ->
      if System.find_executable("git"), do: System.cmd("git", args, stderr_to_stdout: true)
    end

    with {commit, 0} <- git.(["rev-parse", "--short", "HEAD"]),
         {changes, 0} <- git.(["status", "--porcelain", "--untracked-files=no"]) do
      String.trim(commit) <> if(changes == "", do: "", else: "+")
    else
      _ -> nil
    end
  end

  defp version(app) do
    Application.load(app)
    Application.spec(app, :vsn) || "unknown"
  end

  defp cpu do
    with {:ok, info} <- File.read("/proc/cpuinfo"),
         [_, model] <- Regex.run(~r/^model name\s*:\s*(.*)$/m, info) do
      model
    else
      _ ->
        case System.find_executable("sysctl") &&
               System.cmd("sysctl", ["-n", "machdep.cpu.brand_string"]) do
          {model, 0} -> String.trim(model)
          _ -> "unknown"
        end
    end
  end

  defp introduce(machine) do
    Enum.each(described(machine), &IO.puts/1)
    unless machine.versions["numpy"], do: IO.puts("NumPy isn't there: nothing to compare with")
    unless machine.versions["jax"], do: IO.puts("jax isn't there: XLA is left out")
    unless machine.versions["nx"], do: IO.puts("Nx isn't there: what needs it is left out")
  end

  defp described(machine) do
    versions =
      for name <- ~w(ferrox numpy jax nx elixir otp rustc), version = machine.versions[name] do
        if name == "ferrox" and machine.commit,
          do: "#{name} #{version} (#{machine.commit})",
          else: "#{name} #{version}"
      end

    [
      "#{machine.cpu}, #{machine.cores} cores; threads of each system: #{machine.threads}; #{machine.date}",
      Enum.join(versions, ", ")
    ]
  end

  ## Results

  defp finish(cells, groups, machine, quick?) do
    titles = Cases.groups()
    by_group = Enum.group_by(cells, & &1.group)
    summaries = for group <- groups, do: {group, Report.summary(by_group[group] || [])}
    IO.puts("")
    named = for {group, summary} <- summaries, do: {titles[group], summary}
    Enum.each(Report.summaries(named), &IO.puts/1)

    base = Path.join([__DIR__, "results", name(groups, quick?)])
    File.mkdir_p!(Path.dirname(base))

    File.write!(
      base <> ".json",
      Report.json(%{
        machine: machine,
        quick: quick?,
        groups: for({group, summary} <- summaries, do: Map.put(summary, :group, group)),
        cells: for(cell <- cells, do: Map.put(cell, :ratio, Report.ratio(cell)))
      })
    )

    File.write!(base <> ".svg", drawing(cells, described(machine)))
    IO.puts("\nwrote #{Path.relative_to_cwd(base)}.json and .svg")

    case Enum.count(cells, & &1.error) do
      0 ->
        :ok

      n ->
        IO.puts("in #{n} cells the answers differ, or there is none")
        System.halt(1)
    end
  end

  defp drawing(cells, lines) do
    {programs, others} = Enum.split_with(cells, &(&1.group == :programs))

    panels =
      for panel <- others |> Enum.map(& &1.panel) |> Enum.uniq() do
        cells = Enum.filter(others, &(&1.panel == panel))
        {panel, mean(cells), cells}
      end

    title =
      if others == [],
        do: "Time of a call",
        else: "Time per element against number of elements"

    figures =
      "The figures: the best peer's time / Ferrox's, in the geometric mean of several cells."

    programs = {"whole programs: time of a call", mean(programs), programs}
    Chart.svg(title, lines ++ [figures], panels, programs)
  end

  defp mean(cells) do
    mean = Report.summary(cells).geometric_mean
    mean && "#{Report.number(mean)} ×"
  end

  # Draws what runs have left in files of JSON as one: the groups of the first, and those of each
  # other one in place of the same groups before.
  defp draw([first | others]) do
    unless Code.ensure_loaded?(:json), do: refuse("--draw needs Erlang/OTP 27 or later")
    {cells, lines} = results(first)

    {cells, lines} =
      for path <- others, reduce: {cells, lines} do
        {cells, lines} ->
          {more, [machine | versions]} = results(path)
          groups = more |> Enum.map(& &1.group) |> Enum.uniq()
          titles = Enum.map_join(groups, ", ", &Cases.groups()[&1])
          kept = Enum.reject(cells, &(&1.group in groups))
          {kept ++ more, lines ++ ["#{titles}: #{machine}" | versions]}
      end

    path = Path.rootname(first) <> ".svg"
    File.write!(path, drawing(cells, lines))
    IO.puts("wrote #{path}")
  end

  # The cells of a file, and the lines that describe its machine.
  defp results(path) do
    %{"cells" => cells, "machine" => machine} = apply(:json, :decode, [File.read!(path)])
    machine = for {key, value} <- machine, into: %{}, do: {String.to_atom(key), null(value)}
    {Enum.map(cells, &read_cell/1), described(machine)}
  end

  defp read_cell(cell) do
    cell = for {key, value} <- cell, into: %{}, do: {String.to_atom(key), null(value)}
    us = for {system, us} <- cell.us, into: %{}, do: {String.to_existing_atom(system), null(us)}
    %{cell | group: String.to_existing_atom(cell.group), us: us}
  end

  defp null(:null), do: nil
  defp null(value), do: value

  # The same for every run of the same groups.
  defp name(groups, quick?) do
    all? = groups == Keyword.keys(Cases.groups())
    name = if all?, do: "full", else: Enum.join(groups, "-")
    if quick?, do: name <> "-quick", else: name
  end
end

Bench.Compare.run(System.argv(), modules)
