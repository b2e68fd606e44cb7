defmodule Ferrox.Promotion.Table do
  @moduledoc since: "0.1.0"
  @moduledoc """
  Draws promotion systems: as tables in text, Markdown, HTML or CSV, and lattices as SVG or DOT.
  `mix ferrox.promote` prints them.

  Types are written as in the documentation of JAX, `f4` for a float of 4 bytes. The systems of Nx
  have types without such a code, so their tables have Nx's names.

  In the tables of all systems but NumPy, the cells that differ from NumPy's table are marked, by
  the rule of JAX's documentation: the cells of `bf`, which NumPy doesn't have, and the cells whose
  type differs from NumPy's if weak types count as types of 64 bits.
  """

  alias Ferrox.{Native, Promotion}
  alias Ferrox.Promotion.Names

  @doc """
  Returns the rows of the table: `{left type, [{right type, result, different?}]}`. The result is
  `nil` where the system doesn't define it, and `different?` says whether it differs from NumPy's.

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
         result = merge_or_nil(mode, left, right)
         {right, result, different?(mode, left, right, result)}
       end}
    end
  end

  # The types in the order of JAX's documentation, or in the order of the native library if some of
  # them are not in the documentation.
  defp order(types) do
    known = for {type, _, _} <- Names.all(), type in types, do: type
    if Enum.all?(types, &(&1 in known)), do: known, else: types
  end

  defp merge_or_nil(mode, left, right) do
    with {:error, _} <- Native.merge(mode, left, right), do: nil
  end

  defp different?(:numpy, _left, _right, _result), do: false

  defp different?(mode, left, right, result) do
    {:bf, 16} in [left, right] or
      (result && Native.promotion_concrete(mode, result)) !=
        merge_or_nil(:numpy, to_64_bits(left), to_64_bits(right))
  end

  defp to_64_bits(:int), do: {:s, 64}
  defp to_64_bits(:float), do: {:f, 64}
  defp to_64_bits(:complex), do: {:c, 128}
  defp to_64_bits(type), do: type

  @doc """
  Returns the table as `:text`, `:markdown`, `:html` or `:csv`.

  A cell that differs from NumPy's table ends in `'` in text, is bold in Markdown, and has the class
  `d` in HTML. CSV has no marks; with the option `differ: true`, CSV has 1 for the cells that differ
  and 0 for the others, instead of types.

  ## Examples

      iex> Ferrox.Promotion.Table.format(:numpy, :csv) |> String.split("\\n") |> hd()
      ",b1,u1,u2,u4,u8,i1,i2,i4,i8,f2,f4,f8,c8,c16,i*,f*,c*"

  """
  @spec format(Promotion.promotion(), :text | :markdown | :html | :csv, keyword) :: String.t()
  def format(promotion, format, opts \\ []) do
    rows = rows(promotion)
    name = naming_function(rows)
    header = for {type, _cells} <- rows, do: name.(type)
    style = if opts[:differ] && format == :csv, do: :differ, else: format

    lines =
      for {type, cells} <- rows do
        [
          name.(type)
          | for {_right, result, different?} <- cells do
              mark(style, if(result, do: name.(result), else: "-"), different?)
            end
        ]
      end

    layout(format, [["" | header] | lines])
  end

  # JAX's codes if all types have one, else Nx's names. One table doesn't mix the two, because JAX's
  # code `u2` is a u16, and not the u2 of Nx.
  defp naming_function(rows) do
    types_with_code = for {type, _, _} <- Names.all(), do: type

    if Enum.all?(rows, fn {type, _} -> type in types_with_code end),
      do: &Names.code/1,
      else: &Names.short/1
  end

  # A cell, marked if it differs from NumPy's.
  defp mark(:differ, _code, different?), do: if(different?, do: "1", else: "0")
  defp mark(:html, code, different?), do: {code, different?}
  defp mark(:text, code, true), do: code <> "'"
  defp mark(:markdown, code, true), do: {:bold, code}
  defp mark(_format, code, _different?), do: code

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
  Draws the lattice whose joins are the results of a system, as `:svg` or `:dot`. The nodes have the
  positions of the figure in JAX's documentation.

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
        # The drawing refers to a type by its code.
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

  # In pixels. The figure in JAX's documentation has 8 by 2.6 inches, at 100 pixels per inch.
  @width 800
  @height 260
  @margin 35
  @radius 17

  defp draw(:svg, edges, positions) do
    {max_x, max_y} = {max_coordinate(positions, 1), max_coordinate(positions, 2)}

    # The y axis of the given positions points up, and that of SVG points down.
    centres =
      Map.new(positions, fn {code, x, y} ->
        {code,
         {@margin + x / max_x * (@width - 2 * @margin),
          @height - @margin - y / max_y * (@height - 2 * @margin)}}
      end)

    arrows =
      Enum.map_join(edges, fn {from, to} ->
        other_centres = centres |> Map.drop([from, to]) |> Map.values()

        case Enum.find(other_centres, &crossed?(&1, centres[from], centres[to])) do
          nil -> arrow(centres[from], centres[to])
          centre -> arrow_around(centre, centres[from], centres[to])
        end
      end)

    nodes =
      Enum.map_join(positions, fn {code, _, _} ->
        {x, y} = centres[code]

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

  # Whether a straight arrow between the other two points would touch the node at the first one.
  defp crossed?({x, y}, {x1, y1}, {x2, y2}) do
    {dx, dy} = {x2 - x1, y2 - y1}
    length_squared = dx * dx + dy * dy
    fraction_along = ((x - x1) * dx + (y - y1) * dy) / length_squared
    distance = abs((x - x1) * dy - (y - y1) * dx) / :math.sqrt(length_squared)
    fraction_along > 0 and fraction_along < 1 and distance < @radius + 2
  end

  # A curved arrow that passes a node at a distance, on the side towards the middle of the figure,
  # where there is more room.
  @curve_offset 70
  defp arrow_around({x, y}, {x1, y1}, {x2, y2}) do
    offset = if y < @height / 2, do: @curve_offset, else: -@curve_offset
    {x3, y3} = {(x1 + x2) / 2, (y1 + y2) / 2}
    {start_x, start_y} = rim_point({x1, y1}, {x3, y3})
    {end_x, end_y} = rim_point({x2, y2}, {x, y + offset})

    ~s(  <path d="M#{px(start_x)} #{px(start_y)}C#{px(x3)} #{px(y3)} #{px(x)} #{px(y + offset)} ) <>
      ~s[#{px(end_x)} #{px(end_y)}" fill="none" stroke="black" marker-end="url(#arrow)"/>\n]
  end

  # The point on the rim of a node in the direction of another point.
  defp rim_point({x, y}, {to_x, to_y}) do
    length = :math.sqrt((to_x - x) ** 2 + (to_y - y) ** 2)
    {x + (to_x - x) / length * @radius, y + (to_y - y) / length * @radius}
  end

  # A straight arrow from the rim of one node to the rim of another.
  defp arrow(from, to) do
    {x1, y1} = rim_point(from, to)
    {x2, y2} = rim_point(to, from)

    ~s(  <line x1="#{px(x1)}" y1="#{px(y1)}" x2="#{px(x2)}" y2="#{px(y2)}" ) <>
      ~s[stroke="black" marker-end="url(#arrow)"/>\n]
  end

  defp max_coordinate(positions, axis), do: positions |> Enum.map(&elem(&1, axis)) |> Enum.max()

  # A coordinate in pixels, as text.
  defp px(number), do: :erlang.float_to_binary(number, decimals: 1)
end
