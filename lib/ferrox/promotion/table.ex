defmodule Ferrox.Promotion.Table do
  @moduledoc """
  Promotion systems to look at: tables as text, Markdown, HTML or CSV, and a
  lattice as SVG or DOT. `mix ferrox.promote` prints them.

  Types carry the codes of JAX's document, `f4` for a float of 4 bytes, under
  all systems but Nx's, which have types without a code. Cells of other systems
  that differ from NumPy's are marked by that document's rule: where `bf` is
  involved, which NumPy doesn't have, and where the type differs from NumPy's
  when plain numbers are read as 64 bits wide.
  """

  alias Ferrox.{Native, Promotion}
  alias Ferrox.Promotion.Names

  @doc """
  The rows of the table: `{type, [{type, result, different?}]}`. The result is
  `nil` where the system leaves it undefined.

  ## Examples

      iex> [{:bool, cells} | _] = Ferrox.Promotion.Table.rows(:jax)
      iex> Enum.at(cells, 9)
      {{:bf, 16}, {:bf, 16}, true}
      iex> rows = Ferrox.Promotion.Table.rows(:jax)
      iex> for({_, cells} <- rows, {_, _, true} <- cells, do: 1) |> length()
      95

  """
  @spec rows(Promotion.promotion()) :: [
          {Promotion.t(), [{Promotion.t(), Promotion.t() | nil, boolean}]}
        ]
  def rows(promotion) do
    mode = Promotion.mode(promotion)
    types = order(Promotion.types(mode))

    for left <- types do
      {left,
       for right <- types do
         result = defined(mode, left, right)
         {right, result, different?(mode, left, right, result)}
       end}
    end
  end

  # As the documents have them; types they don't have keep Rust's order.
  defp order(types) do
    known = for {type, _, _} <- Names.all(), type in types, do: type
    if Enum.all?(types, &(&1 in known)), do: known, else: types
  end

  defp defined(mode, left, right) do
    case Native.merge(mode, left, right) do
      {:error, _} -> nil
      type -> type
    end
  end

  defp different?(:numpy, _left, _right, _result), do: false

  defp different?(mode, left, right, result) do
    {:bf, 16} in [left, right] or
      (result && Native.promotion_concrete(mode, result)) !=
        defined(:numpy, wide(left), wide(right))
  end

  defp wide(:int), do: {:s, 64}
  defp wide(:float), do: {:f, 64}
  defp wide(:complex), do: {:c, 128}
  defp wide(type), do: type

  @doc """
  The table as `:text`, `:markdown`, `:html` or `:csv`.

  Text marks the cells that differ from NumPy's with a `'`, Markdown is bold
  there, and HTML has the class `d`. CSV isn't marked; with `differ: true` it
  holds 1 for those cells and 0 for others.

  ## Examples

      iex> Ferrox.Promotion.Table.format(:numpy, :csv) |> String.split("\\n") |> hd()
      ",b1,u1,u2,u4,u8,i1,i2,i4,i8,f2,f4,f8,c8,c16,i*,f*,c*"

  """
  @spec format(Promotion.promotion(), :text | :markdown | :html | :csv, keyword) :: String.t()
  def format(promotion, format, opts \\ []) do
    rows = rows(promotion)
    name = naming(rows)
    header = for {type, _cells} <- rows, do: name.(type)
    mark = mark(format, Keyword.get(opts, :differ, false))

    lines =
      for {type, cells} <- rows do
        [
          name.(type)
          | Enum.map(cells, fn {_, result, d} ->
              mark.(if(result, do: name.(result), else: "-"), d)
            end)
        ]
      end

    layout(format, [["" | header] | lines])
  end

  # The code `u2` is a u16, which would stand beside Nx's u2.
  defp naming(rows) do
    coded = for {type, _, _} <- Names.all(), do: type

    if Enum.all?(rows, fn {type, _} -> type in coded end),
      do: &Names.code/1,
      else: &Names.short/1
  end

  defp mark(:csv, true), do: fn _code, different? -> if different?, do: "1", else: "0" end
  defp mark(:csv, false), do: fn code, _ -> code end
  defp mark(:text, _), do: fn code, different? -> if different?, do: code <> "'", else: code end

  defp mark(:markdown, _) do
    fn code, different? -> if different?, do: {:bold, code}, else: code end
  end

  defp mark(:html, _), do: fn code, different? -> {code, different?} end

  defp layout(:csv, lines), do: Enum.map_join(lines, &(Enum.join(&1, ",") <> "\n"))

  defp layout(:text, lines) do
    width = lines |> List.flatten() |> Enum.map(&String.length/1) |> Enum.max()

    Enum.map_join(lines, fn line ->
      line
      |> Enum.map_join(" ", &String.pad_trailing(&1, width))
      |> String.trim_trailing()
      |> Kernel.<>("\n")
    end)
  end

  defp layout(:markdown, [header | lines]) do
    line = fn cells -> "| " <> Enum.map_join(cells, " | ", &markdown/1) <> " |\n" end
    rule = Enum.map(header, fn _ -> "---" end)
    line.(header) <> line.(rule) <> Enum.map_join(lines, line)
  end

  defp layout(:html, [["" | header] | lines]) do
    head = "<tr><th></th>" <> Enum.map_join(header, &"<th>#{&1}</th>") <> "</tr>\n"

    body =
      Enum.map_join(lines, fn [name | cells] ->
        "<tr><th>#{name}</th>" <>
          Enum.map_join(cells, fn
            {code, true} -> ~s(<td class="d">#{code}</td>)
            {code, false} -> "<td>#{code}</td>"
          end) <> "</tr>\n"
      end)

    """
    <style>
    #types { overflow-x: auto; }
    #types table { border-collapse: collapse; font: 14px sans-serif; color: #111; background: #fff; }
    #types th, #types td { border: 1px solid #bbb; padding: 2px 6px; text-align: center; }
    #types th { background: #eee; }
    #types td.d { background: #ccf2cc; }
    </style>
    <div id="types">
    <table>
    #{head}#{body}</table>
    </div>
    """
  end

  defp markdown({:bold, code}), do: "**#{markdown(code)}**"
  defp markdown(code), do: String.replace(code, "*", "\\*")

  @doc """
  The lattice that a system's results are joins of, as `:svg` or `:dot`, the
  nodes where JAX's document has them.

  ## Examples

      iex> Ferrox.Promotion.Table.lattice(:jax, :dot) |> String.split("\\n") |> Enum.count(&(&1 =~ "->"))
      24
      iex> Ferrox.Promotion.Table.lattice(:numpy, :dot)
      ** (ArgumentError) :numpy is a plain table, not a lattice; :jax has one

  """
  @spec lattice(Promotion.promotion(), :svg | :dot) :: String.t()
  def lattice(promotion, format) do
    mode = Promotion.mode(promotion)

    case Native.promotion_lattice(mode) do
      {edges, positions} ->
        # Codes are drawn, and edges told by them.
        edges =
          for {from, successors} <- edges,
              to <- successors,
              do: {Names.code(from), Names.code(to)}

        draw(format, edges, for({type, x, y} <- positions, do: {Names.code(type), x, y}))

      nil ->
        others = Enum.filter(Promotion.systems(), &Native.promotion_lattice/1)

        raise ArgumentError,
              "#{inspect(mode)} is a plain table, not a lattice; " <>
                "#{Enum.map_join(others, ", ", &inspect/1)} has one"
    end
  end

  defp draw(:dot, edges, positions) do
    nodes = Enum.map_join(positions, fn {code, x, y} -> ~s(  "#{code}" [pos="#{x},#{y}!"];\n) end)
    arrows = Enum.map_join(edges, fn {from, to} -> ~s(  "#{from}" -> "#{to}";\n) end)

    """
    // neato -n lays the nodes out where they are given.
    digraph lattice {
      graph [inputscale=72, splines=true];
      node [shape=circle, style=filled, fillcolor=lightgray, color=lightgray, fontname="sans-serif"];
    #{nodes}#{arrows}}
    """
  end

  # 8 by 2.6 inches of 100 pixels, as the document's figure.
  @width 800
  @height 260
  @margin 35
  @radius 17

  defp draw(:svg, edges, positions) do
    {right, top} = {extent(positions, 1), extent(positions, 2)}

    # The figure's y axis points up.
    at =
      Map.new(positions, fn {code, x, y} ->
        {code,
         {@margin + x / right * (@width - 2 * @margin),
          @height - @margin - y / top * (@height - 2 * @margin)}}
      end)

    arrows =
      Enum.map_join(edges, fn {from, to} ->
        others = at |> Map.drop([from, to]) |> Map.values()

        case Enum.find(others, &between?(&1, at[from], at[to])) do
          nil -> arrow(at[from], at[to])
          node -> arrow_around(node, at[from], at[to])
        end
      end)

    nodes =
      Enum.map_join(positions, fn {code, _, _} ->
        {x, y} = at[code]

        ~s(  <circle cx="#{px(x)}" cy="#{px(y)}" r="#{@radius}" fill="lightgray"/>\n) <>
          ~s(  <text x="#{px(x)}" y="#{px(y)}" dy="0.35em">#{code}</text>\n)
      end)

    """
    <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 #{@width} #{@height}" width="#{@width}" height="#{@height}" font-family="sans-serif" font-size="14" text-anchor="middle">
      <title>The type promotion lattice</title>
      <defs><marker id="arrow" viewBox="0 0 10 10" refX="10" refY="5" markerWidth="9" markerHeight="9" orient="auto"><path d="M0 0L10 5L0 10z"/></marker></defs>
      <rect width="#{@width}" height="#{@height}" fill="white"/>
    #{arrows}#{nodes}</svg>
    """
  end

  # Whether a straight arrow would run through the node.
  defp between?({x, y}, {x1, y1}, {x2, y2}) do
    {dx, dy} = {x2 - x1, y2 - y1}
    squared = dx * dx + dy * dy
    along = ((x - x1) * dx + (y - y1) * dy) / squared
    aside = abs((x - x1) * dy - (y - y1) * dx) / :math.sqrt(squared)
    along > 0 and along < 1 and aside < @radius + 2
  end

  # An arc past it, on the side where the figure has room: towards the middle.
  @aside 70
  defp arrow_around({x, y}, {x1, y1}, {x2, y2}) do
    turn = if y < @height / 2, do: @aside, else: -@aside
    {x3, y3} = {(x1 + x2) / 2, (y1 + y2) / 2}
    {start_x, start_y} = rim({x1, y1}, {x3, y3})
    {end_x, end_y} = rim({x2, y2}, {x, y + turn})

    ~s(  <path d="M#{px(start_x)} #{px(start_y)}C#{px(x3)} #{px(y3)} #{px(x)} #{px(y + turn)} ) <>
      ~s[#{px(end_x)} #{px(end_y)}" fill="none" stroke="black" marker-end="url(#arrow)"/>\n]
  end

  # The point of a node's rim in the direction of another point.
  defp rim({x, y}, {to_x, to_y}) do
    length = :math.sqrt((to_x - x) ** 2 + (to_y - y) ** 2)
    {x + (to_x - x) / length * @radius, y + (to_y - y) / length * @radius}
  end

  # From rim to rim.
  defp arrow(from, to) do
    {x1, y1} = rim(from, to)
    {x2, y2} = rim(to, from)

    ~s(  <line x1="#{px(x1)}" y1="#{px(y1)}" x2="#{px(x2)}" y2="#{px(y2)}" ) <>
      ~s[stroke="black" marker-end="url(#arrow)"/>\n]
  end

  defp extent(positions, axis), do: positions |> Enum.map(&elem(&1, axis)) |> Enum.max()

  defp px(number), do: :erlang.float_to_binary(number, decimals: 1)
end
