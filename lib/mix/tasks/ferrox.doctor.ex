defmodule Mix.Tasks.Ferrox.Doctor do
  @shortdoc "Prints what Ferrox runs on, tests it, and says what to do about what is wrong"

  @moduledoc since: "0.1.0"
  @moduledoc """
  Prints on one screen what Ferrox runs on, for a bug report, tests each family of operations, and says
  what to do about what is wrong.

      $ mix ferrox.doctor
      Ferrox     0.1.0
      Elixir     1.18.3 on Erlang/OTP 27, ERTS 15.2.3 with JIT
      System     linux 6.1.0, x86_64-pc-linux-gnu
      Library    0.1.0, built by cargo, 15.9 MB: /app/_build/dev/lib/ferrox/priv/native/ferrox_nif.so
      Processor  x86-64-v4 (AVX-512) and machine code, 2 cores, 2 schedulers, 2 threads
      Nx         0.13.1: /app/_build/dev/lib/nx
      Backend    Ferrox.Backend
      Compiler   Nx.Defn.Evaluator
      Self-test  all 12 families right, in 0.5 s

      note: the default compiler of defn is Nx.Defn.Evaluator: set config :nx, ...

  Run it in the project that uses Ferrox: it looks at that project's configuration, which also says
  what the default backend and the default compiler are. It takes no options.

  The library is either precompiled, from a release, or built by cargo.

  A line with `broken:` is about something that doesn't work, and the exit status is 1 then. A line
  with `note:` is about something that could be better.
  """

  use Mix.Task

  alias Ferrox.Doctor

  @impl true
  def run([]) do
    project = load_project()
    Application.ensure_all_started(:ferrox)
    facts = Doctor.facts(rebuild())
    problems = project ++ Doctor.problems(facts)
    Enum.each(Doctor.lines(facts, problems), &IO.puts/1)
    if List.keymember?(problems, :broken, 0), do: exit({:shutdown, 1})
  end

  def run([argument | _]) do
    IO.puts(:stderr, "mix ferrox.doctor takes no arguments, got: #{argument}")
    exit({:shutdown, 1})
  end

  # Loads the project and its configuration. Ferrox is there also if the project doesn't compile.
  defp load_project do
    Mix.Task.run("app.config")
    []
  rescue
    exception ->
      message = exception |> Exception.message() |> String.split("\n") |> hd()
      [{:broken, "the project can't be compiled or configured: #{message}"}]
  catch
    :exit, {:shutdown, _} -> [{:broken, "the project can't be compiled: see above"}]
  end

  defp rebuild do
    if Mix.Project.config()[:app] == :ferrox,
      do: "mix compile --force",
      else: "mix deps.compile ferrox --force"
  end
end
