defmodule Ferrox.Doctor do
  @moduledoc false
  # What `mix ferrox.doctor` prints: what is found (`facts/1`), what is wrong with it (`problems/1`), and
  # both as lines (`lines/2`).

  alias Ferrox.Doctor.SelfTest
  alias Ferrox.Native

  @compile {:no_warn_undefined, [Nx, Nx.Defn]}

  @typedoc """
  What is found. `:library` is `{:error, reason}` if it can't be loaded; `:nx`, and what depends on it, is
  nil without Nx. `:known?` is whether Ferrox was compiled with Nx, `:error` why Nx can't be started, if it
  can't. `:rebuild` is the command that builds the library and compiles Ferrox again.
  """
  @type facts :: %{
          ferrox: String.t(),
          library: {:ok, library} | {:error, String.t()},
          library_path: String.t(),
          library_bytes: non_neg_integer | nil,
          precompiled?: boolean,
          cores: pos_integer | nil,
          schedulers: pos_integer,
          configured_threads: term,
          nx: %{version: String.t(), path: String.t(), known?: boolean, error: term} | nil,
          backend: module | nil,
          compiler: module | nil,
          self_test: [{String.t(), SelfTest.verdict()}],
          self_test_us: non_neg_integer,
          rebuild: String.t(),
          cargo?: boolean
        }

  # A library of before `Ferrox.Native.library/0` doesn't say what it is.
  @typep library ::
           %{
             version: String.t(),
             instructions: String.t(),
             threads: pos_integer,
             machine_code: String.t(),
             debug?: boolean
           }
           | :unknown

  @typedoc "Something that doesn't work, or that could be better."
  @type problem :: {:broken | :note, String.t()}

  # The releases of Nx that Ferrox is for.
  @nx ">= 0.9.2 and < 0.14.0-dev"

  ## What is found

  @doc "Looks at the running system, and tests the library if it can be loaded."
  @spec facts(String.t()) :: facts
  def facts(rebuild) do
    library = library()
    nx = nx()
    path = Path.join(:code.priv_dir(:ferrox), "native/ferrox_nif#{extension()}")
    started? = match?(%{error: nil}, nx)

    {time, self_test} =
      if match?({:ok, _}, library),
        do: :timer.tc(fn -> SelfTest.run(started? and nx.known?) end),
        else: {0, []}

    %{
      ferrox: version(:ferrox),
      library: library,
      library_path: path,
      library_bytes: bytes(path),
      precompiled?: precompiled?(path),
      cores: cores(),
      schedulers: System.schedulers_online(),
      configured_threads: Application.get_env(:ferrox, :threads),
      nx: nx,
      backend: if(started?, do: Nx.default_backend() |> elem(0)),
      compiler: if(started?, do: Nx.Defn.default_options()[:compiler] || Nx.Defn.Evaluator),
      self_test: self_test,
      self_test_us: time,
      rebuild: rebuild,
      cargo?: System.find_executable("cargo") != nil
    }
  end

  defp library do
    # The VM logs why a library can't be loaded.
    %{level: level} = :logger.get_primary_config()
    :logger.set_primary_config(:level, :none)
    loaded = Code.ensure_loaded(Native)
    :logger.set_primary_config(:level, level)

    case loaded do
      {:module, _} -> {:ok, described()}
      {:error, reason} -> {:error, :persistent_term.get({Native, :load_error}, inspect(reason))}
    end
  end

  defp described do
    {version, instructions, threads, machine_code, debug?} = Native.library()

    %{
      version: version,
      instructions: instructions,
      threads: threads,
      machine_code: machine_code,
      debug?: debug?
    }
  rescue
    ErlangError -> :unknown
  end

  defp nx do
    if Code.ensure_loaded?(Nx) do
      started = Application.ensure_all_started(:nx)

      %{
        version: version(:nx),
        path: :nx |> :code.lib_dir() |> to_string(),
        known?: Code.ensure_loaded?(Ferrox) and function_exported?(Ferrox, :to_nx, 1),
        error: with({:ok, _} <- started, do: nil)
      }
    end
  end

  defp version(application) do
    Application.load(application)
    to_string(Application.spec(application, :vsn) || "unknown")
  end

  defp extension, do: if(match?({:win32, _}, :os.type()), do: ".dll", else: ".so")

  defp bytes(path) do
    case File.stat(path) do
      {:ok, %{size: size}} -> size
      {:error, _} -> nil
    end
  end

  # native/compiler.exs leaves the origin of the library beside it.
  defp precompiled?(path) do
    case path |> Path.dirname() |> Path.join("origin") |> File.read() do
      {:ok, origin} -> origin != "cargo"
      {:error, _} -> false
    end
  end

  defp cores do
    case :erlang.system_info(:logical_processors_available) do
      cores when is_integer(cores) -> cores
      :unknown -> nil
    end
  end

  ## What is wrong

  @doc "What is wrong, each a line that says what to do."
  @spec problems(facts) :: [problem]
  def problems(facts) do
    problems =
      library_problems(facts) ++ thread_problems(facts) ++ nx_problems(facts) ++ wrong(facts)

    Enum.sort_by(problems, fn {kind, _} -> kind == :note end)
  end

  defp library_problems(%{library: {:error, _}, library_bytes: nil} = facts) do
    [
      {:broken,
       "there is no native library: #{facts.rebuild} builds it" <>
         if(facts.cargo?,
           do: "",
           else: ", with cargo, which isn't on the PATH: install Rust from https://rustup.rs"
         )}
    ]
  end

  # A library that was built elsewhere may need a newer C library than there is here.
  defp library_problems(%{library: {:error, reason}} = facts) do
    build = if facts.precompiled?, do: "FERROX_BUILD=1 #{facts.rebuild}", else: facts.rebuild
    [{:broken, "the native library can't be loaded: #{one_line(reason)}: #{build}"}]
  end

  defp library_problems(%{library: {:ok, :unknown}} = facts) do
    [{:broken, "the native library is older than Ferrox #{facts.ferrox}: #{facts.rebuild}"}]
  end

  defp library_problems(%{library: {:ok, library}, ferrox: ferrox} = facts) do
    version =
      if library.version != ferrox do
        {:broken,
         "the native library is of version #{library.version}, and Ferrox of #{ferrox}: " <>
           facts.rebuild}
      end

    debug =
      if library.debug? do
        {:note,
         "the native library was built without optimizations, and is slow: #{facts.rebuild}, " <>
           "without a cargo profile of your own"}
      end

    Enum.reject([version, debug, machine_code_problem(library.machine_code)], &is_nil/1)
  end

  defp machine_code_problem("refused") do
    {:note,
     "the system refuses memory for machine code, as a security policy may have it: compiled " <>
       "functions are interpreted, those with loops over numbers some times slower"}
  end

  defp machine_code_problem("off") do
    {:note,
     "compiled functions are interpreted: take config :ferrox, machine_code: false away to " <>
       "have machine code"}
  end

  defp machine_code_problem(_used_or_unsupported), do: nil

  defp thread_problems(%{library: {:ok, %{threads: threads}}} = facts) do
    %{schedulers: schedulers, cores: cores, configured_threads: configured} = facts

    cond do
      configured not in [nil, threads] ->
        [
          {:note,
           "config :ferrox, threads: #{inspect(configured)} is not in use, but #{threads}: " <>
             "it must be an integer from 1 to 256, and set before Ferrox is used"}
        ]

      threads < schedulers ->
        [
          {:note,
           "large operations use #{threads} of #{schedulers} schedulers: take " <>
             "config :ferrox, threads: #{threads} away to use all"}
        ]

      cores != nil and threads > cores ->
        [
          {:note,
           "there are more threads than cores (#{threads} for #{cores}): set " <>
             "config :ferrox, threads: #{cores}"}
        ]

      cores != nil and threads < cores ->
        [
          {:note,
           "the VM was started with #{count(schedulers, "scheduler")} on #{cores} cores: start " <>
             "it without +S, or set config :ferrox, threads: #{cores}"}
        ]

      true ->
        []
    end
  end

  defp thread_problems(_facts), do: []

  defp nx_problems(%{nx: nil}), do: []

  defp nx_problems(%{nx: %{error: {:error, {application, _}}}}),
    do: [{:broken, "Nx can't be started: its application #{application} is missing or fails"}]

  defp nx_problems(%{nx: nx} = facts) do
    compiled =
      if not nx.known?,
        do: {:broken, "Ferrox was compiled without Nx, which is there now: #{facts.rebuild}"}

    version =
      if match?({:ok, _}, Version.parse(nx.version)) and not Version.match?(nx.version, @nx),
        do: {:note, "Ferrox is for Nx 0.9.2 to 0.13, not #{nx.version}: take one of these"}

    backend =
      if facts.backend != Ferrox.Backend do
        {:note,
         "the default backend is #{inspect(facts.backend)}: set config :nx, " <>
           "default_backend: Ferrox.Backend in config/config.exs"}
      end

    compiler =
      if facts.compiler != Ferrox do
        {:note,
         "the default compiler of defn is #{inspect(facts.compiler)}: set config :nx, " <>
           "default_defn_options: [compiler: Ferrox] in config/config.exs"}
      end

    Enum.reject([compiled, version, backend, compiler], &is_nil/1)
  end

  defp wrong(%{self_test: self_test}) do
    for {family, {:wrong, text}} <- self_test,
        do:
          {:broken,
           "self-test of #{family}: #{one_line(text)}: report this with all of the above"}
  end

  defp one_line(text), do: String.replace(text, ~r/\s+/, " ")

  ## As text

  @doc "The lines that are printed."
  @spec lines(facts, [problem]) :: [String.t()]
  def lines(facts, problems) do
    rows = [
      {"Ferrox", facts.ferrox},
      {"Elixir", "#{System.version()} on Erlang/OTP #{System.otp_release()}, #{emulator()}"},
      {"System", system()},
      {"Library", library_text(facts)},
      {"Processor", processor(facts)},
      {"Nx", nx_text(facts.nx)},
      {"Backend", inspect(facts.backend)},
      {"Compiler", inspect(facts.compiler)},
      {"Self-test", self_test(facts)}
    ]

    rows = if facts.nx, do: rows, else: List.delete_at(List.delete_at(rows, 6), 6)
    rows = for {label, text} <- rows, do: String.pad_trailing(label, 11) <> text

    case for({kind, text} <- problems, do: "#{kind}: #{text}") do
      [] -> rows ++ ["", "Nothing is wrong."]
      problems -> rows ++ ["" | problems]
    end
  end

  defp emulator do
    flavor = if :erlang.system_info(:emu_flavor) == :jit, do: "with JIT", else: "without JIT"
    "ERTS #{:erlang.system_info(:version)} #{flavor}"
  end

  defp system do
    {family, name} = :os.type()

    version =
      case :os.version() do
        version when is_tuple(version) -> version |> Tuple.to_list() |> Enum.join(".")
        version -> to_string(version)
      end

    name = if family == :win32, do: "windows", else: name
    "#{name} #{version}, #{:erlang.system_info(:system_architecture)}"
  end

  defp library_text(%{library_path: path, library_bytes: nil}), do: "none at #{path}"

  defp library_text(%{library: library, library_path: path, library_bytes: bytes} = facts) do
    origin = if facts.precompiled?, do: "precompiled", else: "built by cargo"

    what =
      case library do
        {:error, _} -> "not loaded"
        {:ok, :unknown} -> "of an unknown version"
        {:ok, %{version: version}} -> version
      end

    "#{what}, #{origin}, #{Float.round(bytes / 1.0e6, 1)} MB: #{path}"
  end

  defp processor(%{library: {:ok, %{instructions: instructions} = library}} = facts) do
    instructions =
      if library.machine_code == "used",
        do: instructions <> " and machine code",
        else: instructions

    "#{instructions}, #{count(facts.cores, "core")}, #{count(facts.schedulers, "scheduler")}, " <>
      count(library.threads, "thread")
  end

  defp processor(facts),
    do: "#{count(facts.cores, "core")}, #{count(facts.schedulers, "scheduler")}"

  defp count(nil, what), do: "unknown #{what}s"
  defp count(1, what), do: "1 #{what}"
  defp count(n, what), do: "#{n} #{what}s"

  defp nx_text(nil), do: "none, which Ferrox's own API doesn't need"
  defp nx_text(nx), do: "#{nx.version}: #{nx.path}"

  defp self_test(%{self_test: []}), do: "not run, without a library"

  defp self_test(%{self_test: verdicts, self_test_us: us}) do
    {right, wrong} = Enum.split_with(verdicts, fn {_, verdict} -> verdict == :ok end)
    seconds = :erlang.float_to_binary(us / 1.0e6, decimals: 1)

    case Enum.map_join(wrong, ", ", &elem(&1, 0)) do
      "" -> "all #{length(right)} families right, in #{seconds} s"
      wrong -> "WRONG: #{wrong}; #{length(right)} of #{length(verdicts)} families right"
    end
  end
end
