# Whether a change made Ferrox slower: the times of all cases of compare/cases.exs in two
# checkouts, without peers.
#
#     MIX_ENV=prod mix run bench/regress.exs --write FILE [--group NAME]...
#     MIX_ENV=prod mix run bench/regress.exs --compare BEFORE AFTER
#
# `--write` keeps the shorter of the time that it measures and the time in the file. Run it several
# times in each checkout, in turns: on many machines the times of small calls change by half from
# one second to the next, for both, and only the shortest can be compared. A file has a case and its
# nanoseconds in each line. Older checkouts run this file by its path: the cases are those beside it.

for part <- ["measure.exs", "compare/report.exs", "compare/cases.exs", "compare/calls.exs"],
    do: Code.require_file(part, __DIR__)

if Code.ensure_loaded?(Nx.Defn), do: Code.require_file("compare/programs.exs", __DIR__)

defmodule Bench.Regress do
  @compile {:no_warn_undefined, Nx}

  alias Bench.{Calls, Cases, Report}

  @rounds 40
  # Microseconds of a case in each round, and in all rounds after the first four.
  @round 300
  @budget 60_000
  # Larger cases take their time from memory, and each run of them takes long.
  @max_elements 1_000_000
  @max_work 100_000_000
  @shown 20

  def run(args) do
    case OptionParser.parse(args, strict: [write: :string, compare: :boolean, group: :keep]) do
      {[compare: true], [before, later], []} ->
        compare(read(before), read(later))

      {opts, [], []} when opts != [] ->
        case Cases.named(Keyword.get_values(opts, :group)) do
          {:ok, groups} -> write(opts[:write] || usage(), groups)
          {:error, message} -> refuse(message)
        end

      _ ->
        usage()
    end
  end

  defp usage, do: refuse("regress.exs --write FILE [--group NAME]... | --compare BEFORE AFTER")

  defp refuse(message) do
    IO.puts(:stderr, message)
    System.halt(2)
  end

  ## Measuring

  defp write(path, groups) do
    if Code.ensure_loaded?(Nx), do: Nx.default_backend(Ferrox.Backend)
    before = if File.exists?(path), do: read(path), else: %{}
    times = Map.merge(before, measure(cases(groups)), fn _name, a, b -> min(a, b) end)
    File.write!(path, for({name, time} <- Enum.sort(times), do: "#{name}\t#{time}\n"))
    IO.puts("#{map_size(times)} cases in #{path}")
  end

  # Each case with its call, and how many calls a round has.
  defp cases(groups) do
    for {group, row, call} <- Calls.of_cases(groups, @max_work, @max_elements) do
      call.()
      once = max(min(microseconds(call, 1), microseconds(call, 1)), 1)
      {"#{group} | #{row.name} | #{inspect(row.shape)}", call, max(div(@round, once), 1)}
    end
  end

  # The shortest time of each case. All cases have a turn in every round, so that a slow second of the
  # machine doesn't hit one of them alone.
  defp measure(cases) do
    {times, _spent} =
      Enum.reduce(1..@rounds, {%{}, %{}}, fn round, state ->
        Enum.reduce(cases, state, fn {name, call, count}, {times, spent} ->
          if round > 4 and spent[name] > @budget do
            {times, spent}
          else
            time = microseconds(call, count)
            each = 1.0e3 * time / count

            {Map.update(times, name, each, &min(&1, each)),
             Map.update(spent, name, time, &(&1 + time))}
          end
        end)
      end)

    times
  end

  defp microseconds(call, count) do
    {time, :ok} = :timer.tc(fn -> Bench.repeat(call, count) end)
    time
  end

  ## Comparing

  defp read(path) do
    for line <- path |> File.read!() |> String.split("\n", trim: true), into: %{} do
      [name, time] = String.split(line, "\t")
      {name, String.to_float(time)}
    end
  end

  defp compare(before, later) do
    ratios =
      for {name, time} <- later, old = before[name] do
        {old / time, name, old, time}
      end

    if ratios == [], do: usage()
    IO.puts("before / after, nanoseconds; the cases that lost most:\n")

    for {ratio, name, old, time} <- ratios |> Enum.sort() |> Enum.take(@shown),
        do: IO.puts("#{Report.number(ratio)}  #{round(old)} -> #{round(time)}  #{name}")

    IO.puts("\ngeometric means:\n")
    by_group = Enum.group_by(ratios, fn {_, name, _, _} -> hd(String.split(name, " | ")) end)

    for {group, ratios} <- Enum.sort(by_group) do
      mean = Report.geometric_mean(for {ratio, _, _, _} <- ratios, do: ratio)
      IO.puts("#{Report.number(mean)}  #{group} (#{length(ratios)})")
    end
  end
end

Bench.Regress.run(System.argv())
