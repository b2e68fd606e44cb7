defmodule Command do
  @moduledoc """
  What the examples do with their arguments, and where a library is missing. Mistakes
  end the script with one line on stderr and the exit status 1.
  """

  @root Path.expand("..", __DIR__)

  # Those that examples use, with a module of each, and the version that Hex is asked for.
  @libraries [
    nx: {Nx, "~> 0.13"},
    axon: {Axon, "~> 0.8"},
    scholar: {Scholar.Cluster.KMeans, "~> 0.4"}
  ]

  @doc """
  The options that the script was called with, as a map with the default values of those
  that weren't given.

  `options` has for each `{type, letter, default, range, text}`: `letter` stands for the
  value in the help, and `range` is `{least, greatest}`, a list of what is possible, or nil.
  """
  def options!(name, heading, options) do
    switches = for {option, {type, _, _, _, _}} <- options, do: {option, type}

    {given, arguments, unknown} =
      OptionParser.parse(System.argv(), strict: [{:help, :boolean} | switches])

    wrong = for({option, value} <- unknown, part <- [option, value], part, do: part) ++ arguments

    cond do
      given[:help] ->
        IO.puts(usage(name, heading, options))
        exit({:shutdown, 0})

      wrong != [] ->
        there_are = Enum.map_join(options, ", ", fn {option, spec} -> switch(option, spec) end)

        fail!(
          name,
          "#{Enum.join(wrong, " ")} is not understood; there are #{there_are} and --help"
        )

      true ->
        Enum.each(given, &check!(name, &1, options))

        defaults =
          for {option, {_, _, default, _, _}} <- options, into: %{}, do: {option, default}

        Enum.into(given, defaults)
    end
  end

  defp check!(name, {option, value}, options) do
    case Keyword.fetch!(options, option) do
      {_, _, _, {least, greatest}, _} when value < least or value > greatest ->
        fail!(name, "--#{option} takes a number from #{least} to #{greatest}")

      {_, _, _, [_ | _] = possible, _} ->
        if value not in possible,
          do: fail!(name, "--#{option} takes one of #{Enum.join(possible, ", ")}")

      _ ->
        :ok
    end
  end

  defp usage(name, heading, options) do
    switches = for {option, spec} <- options, do: {switch(option, spec), elem(spec, 4)}
    width = switches |> Enum.map(fn {switch, _} -> String.length(switch) end) |> Enum.max()

    lines =
      for {switch, text} <- switches, do: "  #{String.pad_trailing(switch, width)}   #{text}"

    short = Enum.map_join(switches, " ", fn {switch, _} -> "[#{switch}]" end)
    "#{name} #{short}\n\n#{heading}\n\n" <> Enum.join(lines, "\n")
  end

  defp switch(option, {_, letter, _, _, _}), do: "--#{option} #{letter}"

  @doc """
  Makes sure that these libraries are there: under `mix run` they must be, `elixir` alone
  has Mix fetch and compile them, and Ferrox.
  """
  def libraries!(name, libraries) do
    missing = for app <- libraries, not loaded?(app), do: app
    script = "examples/#{name}.exs"

    cond do
      not Code.ensure_loaded?(Ferrox) ->
        install!(name, libraries)

      missing != [] ->
        names = Enum.map_join(missing, " and ", &Macro.camelize("#{&1}"))

        fail!(
          name,
          "#{names} missing: `elixir #{script}` fetches what is, where Hex can be reached; " <>
            "`mix run #{script}` finds it in ERL_LIBS"
        )

      true ->
        {:ok, _} = Application.ensure_all_started(:nx)
    end
  end

  defp loaded?(app) do
    {module, _version} = @libraries[app]
    Code.ensure_loaded?(module)
  end

  defp install!(name, libraries) do
    if Path.wildcard(Path.join(Mix.path_for(:archives), "hex-*")) == [] do
      fail!(
        name,
        "Hex is missing, which fetches libraries: `mix local.hex` installs it; " <>
          "`mix run examples/#{name}.exs` takes those in ERL_LIBS"
      )
    end

    dependencies =
      for app <- libraries do
        {_module, version} = @libraries[app]
        {app, version}
      end

    Mix.install([{:ferrox, path: @root} | dependencies])
  rescue
    error in Mix.Error ->
      [line | _] = error |> Exception.message() |> String.split("\n", trim: true)
      fail!(name, "Mix can't fetch and compile what is missing: #{line}")
  end

  @doc "Ends the script with one line on stderr."
  @spec fail!(String.t(), String.t()) :: no_return
  def fail!(name, line) do
    IO.puts(:stderr, "#{name}: #{line}")
    exit({:shutdown, 1})
  end

  @doc "The name of a library with its version, as far as that is known."
  def version(name, app) do
    Application.load(app)
    if version = Application.spec(app, :vsn), do: "#{name} #{version}", else: name
  end

  @doc "A number with so many decimals."
  def decimals(number, count), do: :erlang.float_to_binary(number / 1, decimals: count)
end
