defmodule Drawing do
  @moduledoc """
  Pictures, lines and points as SVG, from lists of numbers. The guides and the examples
  draw with it.
  """

  # Colours that the colour-blind tell apart, as far as ten can be.
  @colours ~w(#0072b2 #d55e00 #009e73 #cc79a7 #e69f00 #56b4e9 #7f3c8d #8a8a8a #000000 #80ba5a)

  # The levels of grey, beside white: digits have as many.
  @levels 16

  # Of a chart: its size, and what of it the axes enclose.
  @size {640, 360}
  @plot {64, 40, 520, 310}

  @doc """
  Grey pictures side by side, each `{rows, caption}` with its caption below.

  Rows are lists of numbers from 0, which is white, to 1, which is black; what is beyond
  is cut. `:side` is the width of each in pixels, 160 by default, and `:columns` how many
  are beside each other, 4 by default.
  """
  def images(pictures, options \\ []) do
    side = Keyword.get(options, :side, 160)
    columns = options |> Keyword.get(:columns, 4) |> min(length(pictures))
    rows = div(length(pictures) + columns - 1, columns)
    {cell_width, cell_height} = {side + 16, side + 32}

    drawn =
      for {{rows, caption}, index} <- Enum.with_index(pictures) do
        x = 8 + rem(index, columns) * cell_width
        y = 8 + div(index, columns) * cell_height
        scale = side / length(hd(rows))

        [
          ~s(<g shape-rendering="crispEdges" transform="translate\(#{x} #{y}\) scale\(#{number(scale, 3)}\)">\n),
          levels(rows),
          "</g>\n",
          ~s(<rect x="#{x}" y="#{y}" width="#{side}" height="#{side}" fill="none" stroke="#ccc"/>\n),
          text(x + div(side, 2), y + side + 17, caption, "middle")
        ]
      end

    svg({columns * cell_width, rows * cell_height}, drawn)
  end

  # A path for each level of grey, with a rectangle for each run of equal pixels.
  defp levels(rows) do
    runs =
      for {row, y} <- Enum.with_index(rows),
          {level, x, width} <- runs(Enum.map(row, &level/1)),
          level > 0,
          do: {level, "M#{x} #{y}h#{width}v1h-#{width}z"}

    for {level, paths} <- runs |> Enum.group_by(&elem(&1, 0), &elem(&1, 1)) |> Enum.sort() do
      grey = 255 - div(255 * level, @levels)
      ~s[<path fill="rgb(#{grey},#{grey},#{grey})" d="#{paths}"/>\n]
    end
  end

  defp level(number), do: number |> max(0) |> min(1) |> Kernel.*(@levels) |> round()

  defp runs(row) do
    {runs, _width} =
      row
      |> Enum.chunk_by(& &1)
      |> Enum.map_reduce(0, fn [level | _] = run, x ->
        {{level, x, length(run)}, x + length(run)}
      end)

    runs
  end

  @doc """
  A chart of lines, each `{name, [{x, y}]}`. `:title`, `:x` and `:y` are the texts above it,
  below it and beside it.
  """
  def lines(series, options \\ []), do: chart(series, options, &line/2)

  @doc "A chart of points, each series `{name, [{x, y}]}` in a colour of its own; as `lines/2`."
  def points(series, options \\ []), do: chart(series, options, &dots/2)

  defp line(points, colour) do
    [first | rest] = for {x, y} <- points, do: "#{number(x, 1)} #{number(y, 1)}"
    path = ["M", first | Enum.map(rest, &["L", &1])]
    ~s(<path fill="none" stroke="#{colour}" stroke-width="1.8" d="#{path}"/>\n)
  end

  defp dots(points, colour) do
    path = for {x, y} <- points, do: "M#{number(x, 1)} #{number(y, 1)}h0"

    ~s(<path stroke="#{colour}" stroke-width="5" stroke-linecap="round" ) <>
      ~s(stroke-opacity="0.7" d="#{path}"/>\n)
  end

  defp chart(series, options, draw) do
    {left, top, right, bottom} = @plot
    all = for {_name, points} <- series, point <- points, do: point
    x_ticks = all |> Enum.map(&elem(&1, 0)) |> ticks()
    y_ticks = all |> Enum.map(&elem(&1, 1)) |> ticks()
    x_at = &(left + (right - left) * part(&1, x_ticks))
    y_at = &(bottom - (bottom - top) * part(&1, y_ticks))

    grid =
      for y <- y_ticks do
        at = number(y_at.(y), 1)

        [
          ~s(<path stroke="#ddd" d="M#{left} #{at}H#{right}"/>\n),
          text(left - 6, y_at.(y) + 4, tick(y), "end")
        ]
      end

    drawn =
      for {{name, points}, index} <- Enum.with_index(series) do
        colour = Enum.at(@colours, rem(index, length(@colours)))
        points = for {x, y} <- points, do: {x_at.(x), y_at.(y)}

        [
          draw.(points, colour),
          text(right + 14, top + 12 + 18 * index, name, "start", ~s( fill="#{colour}"))
        ]
      end

    svg(@size, [
      text(left, top - 16, Keyword.get(options, :title, ""), "start"),
      grid,
      for(x <- x_ticks, do: text(x_at.(x), bottom + 18, tick(x), "middle")),
      text(div(left + right, 2), bottom + 38, Keyword.get(options, :x, ""), "middle"),
      text(left - 6, top - 16, Keyword.get(options, :y, ""), "end"),
      drawn
    ])
  end

  # Round numbers from below the least to above the greatest, 1, 2 or 5 times a power of ten apart.
  defp ticks(numbers) do
    {least, greatest} = Enum.min_max(numbers)
    span = max(greatest - least, 1.0e-9)
    power = :math.pow(10, Float.floor(:math.log10(span / 4)))
    step = Enum.find([1, 2, 5, 10], &(&1 * power * 5 >= span)) * power
    first = floor(least / step)
    for k <- first..max(ceil(greatest / step), first + 1), do: k * step
  end

  defp part(number, ticks), do: (number - hd(ticks)) / (List.last(ticks) - hd(ticks))

  defp tick(number) do
    if abs(number - round(number)) < 1.0e-9 * max(abs(number), 1),
      do: "#{round(number)}",
      else: number |> :erlang.float_to_binary([:compact, decimals: 6])
  end

  defp svg({width, height}, content) do
    IO.iodata_to_binary([
      ~s(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 #{width} #{height}" ),
      ~s(width="#{width}" height="#{height}" font-family="sans-serif" font-size="13">\n),
      ~s(<rect width="#{width}" height="#{height}" fill="white"/>\n),
      content,
      "</svg>\n"
    ])
  end

  defp text(x, y, text, anchor, more \\ "") do
    escaped = for <<char::utf8 <- "#{text}">>, do: escape(char)
    at = ~s(x="#{number(x, 1)}" y="#{number(y, 1)}")
    ~s(<text #{at} text-anchor="#{anchor}"#{more}>#{escaped}</text>\n)
  end

  defp escape(?<), do: "&lt;"
  defp escape(?>), do: "&gt;"
  defp escape(?&), do: "&amp;"
  defp escape(char), do: <<char::utf8>>

  defp number(number, decimals),
    do: :erlang.float_to_binary(number / 1, [:compact, decimals: decimals])
end
