# What the comparison says of its measurements, without taking any: the table, its
# means, and JSON.
#
# A cell is a map: `group` and `panel` (where it is drawn), `name`, `shape`, `elements`,
# `us` (a map from system to median microseconds, nil where it wasn't run), `error`
# (nil if all answers agreed) and `limit` (what memory allows, in us, or nil). Whole programs also
# have maps from system to the milliseconds that compiling takes (`compile_ms`) and to the memory that
# a call uses at most (`peak_mb`), as costs.exs measures them.

defmodule Bench.Report do
  @systems [:ferrox, :numpy, :jax, :binary, :evaluator]
  # Nx's evaluator on Ferrox.Backend, which runs whole programs too, is no peer.
  @peers @systems -- [:ferrox, :evaluator]
  @titles %{
    ferrox: "Ferrox",
    numpy: "NumPy",
    jax: "jax",
    binary: "BinaryBackend",
    evaluator: "Evaluator"
  }

  # What no cell may be below, and how many times what memory allows a cell may take.
  @floor 0.8
  @ceiling 1.3
  # The least difference of two peaks of memory, in MB, that is one.
  @peak_mb 0.5

  @doc "What is compared, in the order of the columns."
  def systems, do: @systems

  def title(system), do: Map.fetch!(@titles, system)

  @doc "The best peer's time over Ferrox's; nil where either is missing, or an answer differs."
  def ratio(%{error: error}) when error != nil, do: nil

  def ratio(%{us: us}) do
    best = Enum.min(for(peer <- @peers, time = us[peer], do: time), fn -> nil end)
    if us[:ferrox] && best, do: best / us.ferrox
  end

  @doc "The geometric mean; nil of none."
  def geometric_mean([]), do: nil

  def geometric_mean(numbers) do
    :math.exp(Enum.sum(Enum.map(numbers, &:math.log/1)) / length(numbers))
  end

  @doc "The time in which jax compiles a program over Ferrox's; nil where either is missing."
  def compile_ratio(%{compile_ms: %{ferrox: ours, jax: theirs}}) when ours > 0 and theirs > 0,
    do: theirs / ours

  def compile_ratio(_cell), do: nil

  @doc "Whether Ferrox uses more memory than jax; nil where either is not known."
  def higher_peak?(%{peak_mb: %{ferrox: ours, jax: theirs}})
      when is_number(ours) and is_number(theirs),
      do: ours >= theirs + @peak_mb

  def higher_peak?(_cell), do: nil

  @doc "Mean, least and count of the ratios of some cells, and how many are below the floor."
  def summary(cells) do
    ratios = for cell <- cells, ratio = ratio(cell), do: ratio
    limits = for %{limit: limit, us: %{ferrox: us}} when limit != nil <- cells, do: us / limit
    peaks = cells |> Enum.map(&higher_peak?/1) |> Enum.reject(&is_nil/1)

    %{
      cells: length(cells),
      geometric_mean: geometric_mean(ratios),
      least: Enum.min(ratios, fn -> nil end),
      below: Enum.count(ratios, &(&1 < @floor)),
      errors: Enum.count(cells, & &1.error),
      limits: length(limits),
      over_limit: Enum.count(limits, &(&1 > @ceiling)),
      most_over_limit: Enum.max(limits, fn -> nil end),
      compile_mean: geometric_mean(for cell <- cells, ratio = compile_ratio(cell), do: ratio),
      peaks: length(peaks),
      higher_peaks: Enum.count(peaks, & &1)
    }
  end

  ## The table

  @name 30
  @shape 16
  @column 14

  @doc "The heading of the table."
  def heading do
    columns = Enum.map(@systems, &title/1) ++ ["best/Ferrox"]
    name = String.pad_trailing("us a call", @name) <> String.pad_leading("size", @shape)
    name <> Enum.map_join(columns, &String.pad_leading(&1, @column))
  end

  @doc "A cell's line: times, ratio, `<` where that is below 0.8, and what differs."
  def line(cell) do
    times = for system <- @systems, do: number(cell.us[system])
    ratio = ratio(cell)
    mark = if ratio && ratio < @floor, do: " <", else: "  "
    columns = Enum.map_join(times ++ [number(ratio)], &String.pad_leading(&1, @column))
    name = String.pad_trailing(cell.name, @name) <> String.pad_leading(cell.shape, @shape)
    String.trim_trailing(name <> columns <> mark <> remark(cell))
  end

  defp remark(%{error: error}) when error != nil, do: " ERROR: " <> error
  defp remark(%{limit: nil}), do: ""

  defp remark(%{limit: limit, us: us}),
    do: " #{number(us.ferrox / limit)} x the memory limit of #{number(limit)}"

  @peaked [:ferrox, :jax, :evaluator]

  @doc "The heading of the table of what programs cost beside time."
  def costs_heading do
    columns =
      ["Ferrox ms", "jax ms", "jax/Ferrox"] ++ for(system <- @peaked, do: title(system) <> " MB")

    String.pad_trailing("to compile; memory of a call", @name) <> costs_columns(columns)
  end

  @doc "A program's line of that table: `>` where more memory is used than by jax."
  def costs_line(cell) do
    {compile, peak} = {Map.get(cell, :compile_ms, %{}), Map.get(cell, :peak_mb, %{})}
    times = [compile[:ferrox], compile[:jax], compile_ratio(cell)]
    columns = Enum.map(times ++ for(system <- @peaked, do: peak[system]), &number/1)
    mark = if higher_peak?(cell), do: " >", else: ""
    String.pad_trailing(cell.name, @name) <> costs_columns(columns) <> mark
  end

  defp costs_columns(columns), do: Enum.map_join(columns, &String.pad_leading(&1, @column))

  @doc "What is said of all programs."
  def costs_summary(summary) do
    "geometric mean of jax / Ferrox to compile: #{number(summary.compile_mean)}; " <>
      "more memory than jax, by #{@peak_mb} MB or more: #{summary.higher_peaks} of #{summary.peaks}"
  end

  @doc "The table of the groups: a heading and lines."
  def summaries(groups) do
    columns = [
      "cells",
      "mean",
      "least",
      "below #{@floor}",
      "errors",
      "over #{@ceiling}",
      "x memory"
    ]

    heading = String.pad_trailing("best peer / Ferrox", @name) <> Enum.map_join(columns, &pad/1)

    lines =
      for {group, summary} <- groups do
        columns = [
          "#{summary.cells}",
          number(summary.geometric_mean),
          number(summary.least),
          "#{summary.below}",
          "#{summary.errors}",
          if(summary.limits > 0, do: "#{summary.over_limit} of #{summary.limits}", else: "-"),
          number(summary.most_over_limit)
        ]

        String.pad_trailing(group, @name) <> Enum.map_join(columns, &pad/1)
      end

    [heading | lines]
  end

  defp pad(text), do: String.pad_leading(text, 11)

  @doc "Two figures or more, `-` for nil."
  def number(nil), do: "-"
  def number(number) when number < 0.01, do: float(number, 4)
  def number(number) when number < 0.1, do: float(number, 3)
  def number(number) when number < 10, do: float(number, 2)
  def number(number) when number < 100, do: float(number, 1)
  def number(number), do: number |> round() |> Integer.to_string() |> thousands()

  defp float(number, decimals), do: :erlang.float_to_binary(number * 1.0, decimals: decimals)

  @doc "An integer's digits with commas."
  def thousands(digits), do: Regex.replace(~r/(?<=\d)(?=(\d{3})+$)/, digits, ",")

  ## JSON

  @doc """
  A term as JSON: maps (in the order of their keys), lists, strings, numbers, true,
  false and nil; other atoms as strings. OTP has an encoder from release 27 only.
  """
  def json(term), do: IO.iodata_to_binary([encode(term, "\n"), "\n"])

  defp encode(nil, _), do: "null"
  defp encode(flag, _) when is_boolean(flag), do: Atom.to_string(flag)
  defp encode(atom, indent) when is_atom(atom), do: encode(Atom.to_string(atom), indent)
  defp encode(number, _) when is_integer(number), do: Integer.to_string(number)
  # Its shortest form, `1.0e-5`, is JSON's too.
  defp encode(number, _) when is_float(number), do: Float.to_string(number)
  defp encode(text, _) when is_binary(text), do: [?", escape(text), ?"]

  defp encode(list, indent) when is_list(list),
    do: enclose("[", Enum.map(list, &encode(&1, indent <> "  ")), "]", indent)

  defp encode(map, indent) when is_map(map) do
    members =
      for {key, value} <- Enum.sort_by(map, fn {key, _} -> "#{key}" end),
          do: [?", escape("#{key}"), "\": ", encode(value, indent <> "  ")]

    enclose("{", members, "}", indent)
  end

  defp enclose(open, [], close, _), do: [open, close]

  # What is short stays on a line.
  defp enclose(open, items, close, indent) do
    line = IO.iodata_to_binary([open, Enum.intersperse(items, ", "), close])

    if byte_size(line) < 100 and not String.contains?(line, "\n"),
      do: line,
      else: [open, indent, "  ", Enum.intersperse(items, [",", indent, "  "]), indent, close]
  end

  defp escape(text) do
    for <<char::utf8 <- text>>, into: "" do
      case char do
        ?" -> "\\\""
        ?\\ -> "\\\\"
        char when char < 32 -> "\\u" <> String.pad_leading(Integer.to_string(char, 16), 4, "0")
        char -> <<char::utf8>>
      end
    end
  end
end
