# Finds clusters and principal components of handwritten digits, with Scholar on Ferrox,
# and draws them as SVG:
#
#   mix run examples/clusters.exs     where Nx, Scholar and NimbleOptions are in ERL_LIBS
#   elixir examples/clusters.exs      fetches them where Hex can be reached
#
# This file only reports; the work is in
#
#   digits/data.ex        the pictures: read and shuffled
#   digits/clusters.ex    the components and the clusters
#   drawing.ex            charts as SVG
#   command.ex            options, and libraries that are missing

Code.require_file("command.ex", __DIR__)

options =
  Command.options!(
    "clusters",
    "Finds clusters and principal components of handwritten digits, with Scholar on Ferrox.",
    clusters: {:integer, "N", 10, {2, 100}, "how many clusters; 10 if not given"},
    svg: {:string, "FILE", "clusters.svg", nil, "the picture; clusters.svg if not given"}
  )

if File.dir?(options.svg) or not File.dir?(Path.dirname(options.svg)) do
  Command.fail!(
    "clusters",
    "--svg takes a file of a directory that is there, got: #{options.svg}"
  )
end

Command.libraries!("clusters", [:nx, :scholar])
Code.require_file("drawing.ex", __DIR__)
for file <- ~w(data clusters), do: Code.require_file("digits/#{file}.ex", __DIR__)

alias Digits.{Clusters, Data}

Nx.default_backend(Ferrox.Backend)
Nx.Defn.default_options(compiler: Ferrox)

digits = Data.load()
labels = for {_pixels, label} <- digits, do: label
tensor = Clusters.tensor(digits)
seconds = fn microseconds -> Command.decimals(microseconds / 1.0e6, 2) <> " s" end

IO.puts("""
#{length(digits)} handwritten digits of 64 pixels (their source: examples/data),
with #{Command.version("Scholar", :scholar)} on #{Command.version("Nx", :nx)}, compiled by Ferrox.
""")

{time, {points, share}} = :timer.tc(fn -> Clusters.components(tensor) end)

IO.puts(
  "Two principal components took #{seconds.(time)}, with compilation; " <>
    "they have #{round(share * 100)}% of the variance."
)

{time, {members, iterations}} = :timer.tc(fn -> Clusters.k_means(tensor, options.clusters) end)

IO.puts("""
#{options.clusters} clusters, the best of ten runs, took #{seconds.(time)} and #{iterations} iterations.

  cluster   size   shows\
""")

table = Clusters.table(members, labels)

for {cluster, size, counts} <- table do
  shown = counts |> Enum.take(4) |> Enum.map_join(", ", fn {digit, n} -> "#{digit} (#{n})" end)
  more = if length(counts) > 4, do: ", ...", else: ""

  IO.puts(
    String.pad_leading("#{cluster}", 9) <>
      String.pad_leading("#{size}", 7) <> "   #{shown}#{more}"
  )
end

right = for {_cluster, _size, [{_digit, count} | _]} <- table, reduce: 0, do: (n -> n + count)

series =
  Enum.zip(members, points)
  |> Enum.group_by(&elem(&1, 0), &elem(&1, 1))
  |> Enum.sort()
  |> Enum.map(fn {cluster, points} ->
    {_, _, [{digit, _} | _]} = List.keyfind(table, cluster, 0)
    {"#{cluster}: mostly #{digit}", points}
  end)

svg = Drawing.points(series, title: "Clusters of digits along their first two components")

case File.write(options.svg, svg) do
  :ok ->
    IO.puts("""

    #{Command.decimals(100 * right / length(digits), 1)}% of the digits are in a cluster where theirs is the most frequent one.
    The clusters are drawn in #{options.svg}.\
    """)

  {:error, reason} ->
    Command.fail!(
      "clusters",
      "--svg #{options.svg} can't be written: #{:file.format_error(reason)}"
    )
end
