# Draws the comparison as SVG: a panel for each group, nanoseconds per element against
# the number of elements, both logarithmic, a line for each system. Whole programs are below
# them, a row for each, with a mark for the time of each system.

defmodule Bench.Chart do
  alias Bench.Report

  # Colours that the colour-blind tell apart; markers tell them apart without any.
  @styles %{
    ferrox: {"#d55e00", 2.6, :circle},
    numpy: {"#0072b2", 1.6, :square},
    jax: {"#009e73", 1.6, :triangle},
    binary: {"#8a8a8a", 1.6, :diamond},
    evaluator: {"#b07aa1", 1.6, :diamond}
  }

  @columns 3
  @margin 28
  @gap 26
  # Where the first line of text is, and the height of each.
  @lines 54
  @line 16
  @panel {300, 232}
  # What of a panel the axes enclose.
  @plot {44, 34, 288, 198}

  # Of whole programs: the height of a row, where the first is, and what of a row's width the name and
  # the ratio take.
  @row 19
  @first_row 38
  @name 188
  @ratio 52

  @doc """
  The drawing of some panels, each `{title, note, cells}`, and of whole programs, `{title, note, cells}`
  too, under a title and lines of text.
  """
  def svg(title, lines, panels, programs \\ {"", nil, []}) do
    panels =
      for {name, note, cells} <- panels,
          lines = lines(cells),
          lines != [],
          do: {name, note, lines}

    {width, height} = @panel
    columns = min(@columns, max(length(panels), 2))
    rows = div(length(panels) + columns - 1, columns)
    inner = columns * (width + @gap) - @gap
    legend = @lines + @line * length(lines) + 8
    top = legend + 24
    below = top + rows * (height + @gap)
    {programs, programs_height} = programs(programs, inner - (width - elem(@plot, 2)), columns)
    cells = for {_, _, lines} <- panels, {system, _} <- lines, do: system
    drawn = cells ++ programs.systems

    IO.iodata_to_binary([
      open({2 * @margin + inner, below + programs_height + 10}),
      text(@margin, 34, "title", title),
      for(
        {line, k} <- Enum.with_index(lines),
        do: text(@margin, @lines + @line * k, "note", line)
      ),
      legend(legend, for(system <- Report.systems(), system in drawn, do: system)),
      for {panel, k} <- Enum.with_index(panels) do
        x = @margin + rem(k, columns) * (width + @gap)
        y = top + div(k, columns) * (height + @gap)
        group(x, y, panel(panel))
      end,
      group(@margin, below, programs.drawing),
      "</svg>\n"
    ])
  end

  defp group(_x, _y, []), do: []
  defp group(x, y, drawing), do: [~s|<g transform="translate(#{x} #{y})">\n|, drawing, "</g>\n"]

  @doc """
  The lines of a panel, `{system, [{elements, ns per element}]}`.

  Ferrox's is the geometric mean of its cells of a size. A peer's stands as far above
  it as the mean of the ratios says, over the cells that both have: so a peer isn't
  faster for what it leaves out, and is left out itself where it has less than half.
  """
  def lines(cells) do
    sizes = cells |> Enum.filter(&us(&1, :ferrox)) |> Enum.group_by(& &1.elements) |> Enum.sort()

    for system <- Report.systems(),
        points = for({size, cells} <- sizes, y = mean(cells, size, system), do: {size, y}),
        points != [],
        do: {system, points}
  end

  defp mean(cells, elements, system) do
    ours = for cell <- cells, do: us(cell, :ferrox) * 1.0e3 / elements
    ratios = for cell <- cells, us = us(cell, system), do: us / us(cell, :ferrox)
    ratio = if 2 * length(ratios) >= length(cells), do: Report.geometric_mean(ratios)
    ratio && Report.geometric_mean(ours) * ratio
  end

  defp us(%{error: nil, us: us}, system), do: us[system]
  defp us(_, _), do: nil

  defp open({width, height}) do
    """
    <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 #{width} #{height}" width="#{width}" height="#{height}" role="img">
    <style>
    text { font: 11px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; fill: #57606a }
    .title { font-size: 19px; font-weight: 600; fill: #1f2328 }
    .note { font-size: 12px }
    .name { font-size: 13px; font-weight: 600; fill: #1f2328 }
    .mean, .ratio { font-size: 12px; font-weight: 600; fill: #b34700 }
    .ratio { font-size: 11px }
    .program { fill: #1f2328 }
    .legend { font-size: 12px; fill: #1f2328 }
    .grid { stroke: #e4e7eb; stroke-width: 1 }
    .axis { stroke: #afb8c1; stroke-width: 1 }
    </style>
    <rect width="#{width}" height="#{height}" rx="8" fill="#fff"/>
    """
  end

  defp legend(y, systems) do
    widths = for system <- systems, do: 44 + 8 * String.length(Report.title(system))
    starts = Enum.scan([@margin | widths], &+/2)

    for {system, x} <- Enum.zip(systems, starts) do
      {colour, width, shape} = @styles[system]

      [
        ~s|<path d="M#{x} #{y - 4}h22" stroke="#{colour}" stroke-width="#{width}"/>\n|,
        marker(shape, colour, x + 11, y - 4, ""),
        text(x + 27, y, "legend", Report.title(system))
      ]
    end
  end

  ## Whole programs

  # The systems that are drawn with the drawing, and its height.
  defp programs({title, note, cells}, width, panel_columns) do
    cells = Enum.filter(cells, &us(&1, :ferrox))

    if cells == [],
      do: {%{systems: [], drawing: []}, 0},
      else: programs(title, note, cells, width, panel_columns)
  end

  # In two columns below three panels, else in one.
  defp programs(title, note, cells, width, panel_columns) do
    columns = if panel_columns == @columns, do: 2, else: 1
    rows = div(length(cells) + columns - 1, columns)
    column = div(width - (columns - 1) * @gap, columns)
    times = for cell <- cells, system <- Report.systems(), us = us(cell, system), do: us * 1.0e3
    {left, right} = {@name + 8, column - @ratio}
    scale = scale(times, left + 6, right - 6)
    bottom = @first_row + rows * @row - 6

    drawing = [
      text(0, 16, "name", title),
      if(note, do: text(width, 16, "mean", note, "end"), else: ""),
      for {cells, k} <- cells |> Enum.chunk_every(rows) |> Enum.with_index() do
        group(k * (column + @gap), 0, [
          time_axis(times, scale, {left, right, bottom}),
          for(
            {cell, k} <- Enum.with_index(cells),
            do: program(cell, @first_row + k * @row, scale, column)
          )
        ])
      end
    ]

    systems = for system <- Report.systems(), Enum.any?(cells, &us(&1, system)), do: system

    {%{systems: systems, drawing: drawing}, bottom + 26}
  end

  defp time_axis(times, scale, {left, right, bottom}) do
    [
      for decade <- decades(times) do
        at = scale.(:math.pow(10, decade))

        [
          ~s|<path class="grid" d="M#{at} #{@first_row - 10}V#{bottom}"/>\n|,
          text(at, bottom + 16, "tick", nanoseconds(decade), "middle")
        ]
      end,
      ~s|<path class="axis" d="M#{left} #{bottom}H#{right}"/>\n|
    ]
  end

  # A row: the name, a mark for each system on a line from the shortest time to the longest, and the
  # ratio.
  defp program(cell, y, scale, width) do
    marks =
      for system <- Report.systems(), us = us(cell, system), do: {system, scale.(us * 1.0e3), us}

    {least, most} = marks |> Enum.map(&elem(&1, 1)) |> Enum.min_max()
    ratio = Report.ratio(cell)

    [
      text(@name, y + 4, "program", cell.name, "end"),
      ~s|<path class="axis" d="M#{least} #{y}H#{most}"/>\n|,
      for {system, x, us} <- Enum.reverse(marks) do
        {colour, _width, shape} = @styles[system]
        title = "#{cell.name}, #{Report.title(system)}: #{Report.number(us)} µs"
        marker(shape, colour, x, y, title)
      end,
      if(ratio, do: text(width, y + 4, "ratio", "#{Report.number(ratio)} ×", "end"), else: "")
    ]
  end

  ## Panels

  defp panel({name, note, lines}) do
    {left, top, right, bottom} = @plot
    points = Enum.flat_map(lines, &elem(&1, 1))
    {xs, ys} = Enum.unzip(points)
    x = scale(xs, left + 8, right - 8)
    y = scale(ys, bottom - 6, top + 6)

    [
      text(0, 16, "name", name),
      if(note, do: text(right, 16, "mean", note, "end"), else: ""),
      for decade <- decades(ys) do
        at = y.(:math.pow(10, decade))

        [
          ~s|<path class="grid" d="M#{left} #{at}H#{right}"/>\n|,
          text(left - 6, round1(at + 4), "tick", nanoseconds(decade), "end")
        ]
      end,
      ~s|<path class="axis" d="M#{left} #{bottom}H#{right}"/>\n|,
      for decade <- decades(xs) do
        at = x.(:math.pow(10, decade))

        [
          ~s|<path class="axis" d="M#{at} #{bottom}v4"/>\n|,
          text(at, bottom + 16, "tick", count(decade), "middle")
        ]
      end,
      # Ferrox last, so that it is on top.
      for({system, points} <- Enum.reverse(lines), do: line(system, points, x, y))
    ]
  end

  defp line(system, points, x, y) do
    {colour, width, shape} = @styles[system]
    at = for {size, ns} <- points, do: {x.(size), y.(ns), size, ns}
    path = Enum.map_join(at, "L", fn {x, y, _, _} -> "#{x} #{y}" end)

    [
      ~s|<path d="M#{path}" fill="none" stroke="#{colour}" stroke-width="#{width}" stroke-linejoin="round"/>\n|,
      for {x, y, size, ns} <- at do
        size = size |> Integer.to_string() |> Report.thousands()
        marker(shape, colour, x, y, "#{Report.title(system)}, #{size}: #{Report.number(ns)} ns")
      end
    ]
  end

  defp marker(shape, colour, x, y, title) do
    path =
      case shape do
        :circle -> "M#{x} #{y}m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z"
        :square -> "M#{x} #{y}m-3 -3h6v6h-6z"
        :triangle -> "M#{x} #{y}m0 -3.8l3.8 6.6h-7.6z"
        :diamond -> "M#{x} #{y}m0 -4l4 4l-4 4l-4 -4z"
      end

    title = if title == "", do: "", else: ["<title>", escape(title), "</title>"]
    [~s|<path d="#{path}" fill="#{colour}" stroke="#fff" stroke-width=".8">|, title, "</path>\n"]
  end

  # From a number to a place, by its logarithm.
  defp scale(numbers, from, to) do
    {least, most} = range(numbers)
    fn number -> round1(from + (:math.log10(number) - least) / (most - least) * (to - from)) end
  end

  # Powers of ten to be marked: every second where there are many.
  defp decades(numbers) do
    {least, most} = range(numbers)
    all = Enum.to_list(ceil(least)..floor(most)//1)
    if length(all) > 5, do: Enum.filter(all, &(rem(&1, 2) == 0)), else: all
  end

  # Wide enough that a power of ten is in it.
  defp range(numbers) do
    {least, most} = numbers |> Enum.map(&:math.log10/1) |> Enum.min_max()
    missing = max(1.0 - (most - least), 0.0) / 2
    {least - missing, most + missing}
  end

  defp nanoseconds(decade) when decade < 0,
    do: "0." <> String.duplicate("0", -decade - 1) <> "1 ns"

  defp nanoseconds(decade) when decade < 3, do: "#{Integer.pow(10, decade)} ns"
  defp nanoseconds(decade) when decade < 6, do: "#{Integer.pow(10, decade - 3)} µs"
  defp nanoseconds(decade) when decade < 9, do: "#{Integer.pow(10, decade - 6)} ms"
  defp nanoseconds(decade), do: "#{Integer.pow(10, decade - 9)} s"

  defp count(decade) when decade < 3, do: "#{Integer.pow(10, decade)}"
  defp count(decade) when decade < 6, do: "#{Integer.pow(10, decade - 3)}K"
  defp count(decade), do: "#{Integer.pow(10, decade - 6)}M"

  defp text(x, y, class, text, anchor \\ "start"),
    do:
      ~s|<text x="#{x}" y="#{y}" class="#{class}" text-anchor="#{anchor}">#{escape(text)}</text>\n|

  defp round1(number), do: Float.round(number * 1.0, 1)

  defp escape(text) do
    text
    |> String.replace("&", "&amp;")
    |> String.replace("<", "&lt;")
    |> String.replace(">", "&gt;")
    |> String.replace("\"", "&quot;")
  end
end
