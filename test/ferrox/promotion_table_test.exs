defmodule Ferrox.PromotionTableTest do
  use ExUnit.Case, async: true

  doctest Ferrox.Promotion.Table

  alias Ferrox.Golden
  alias Ferrox.Promotion.{Names, Table}

  test "tables as CSV are the golden files" do
    for {promotion, file} <- [
          {:jax, "jax_promotion.csv"},
          {[system: :jax, x64: false], "jax_promotion_x32_result.csv"}
        ] do
      assert Table.format(promotion, :csv) == String.trim_trailing(Golden.read(file)) <> "\n"
    end
  end

  test "the cells that differ from NumPy's are those of the golden file, in each format" do
    golden = Golden.cells("jax_differs_from_numpy.csv")
    assert Enum.count(golden, &(elem(&1, 2) == "1")) == 95

    assert Table.format(:jax, :csv, differ: true) ==
             String.trim_trailing(Golden.read("jax_differs_from_numpy.csv")) <> "\n"

    marks = for {_, _, cell} <- golden, do: cell == "1"

    [_ | text] = :jax |> Table.format(:text) |> String.split("\n", trim: true)
    assert Enum.flat_map(text, &cells(&1, ~r/\S+/, "'")) == marks

    [_, _ | markdown] = :jax |> Table.format(:markdown) |> String.split("\n", trim: true)
    assert Enum.flat_map(markdown, &cells(&1, ~r/[^| ]+/, "**")) == marks

    html = Table.format(:jax, :html)
    assert for([cell] <- Regex.scan(~r/<td[^>]*>/, html), do: cell =~ ~s(class="d")) == marks
    assert length(Regex.scan(~r/<tr>/, html)) == 19
  end

  defp cells(line, regex, mark) do
    [_name | cells] = for [cell] <- Regex.scan(regex, line), do: String.contains?(cell, mark)
    cells
  end

  test "every system has a table in every format" do
    for system <- Ferrox.Promotion.systems(), format <- [:text, :markdown, :html, :csv] do
      assert Table.format(system, format) != ""
    end
  end

  test "the lattice has the document's nodes, edges, positions and proportion" do
    golden = Golden.json("jax_lattice.json")
    dot = Table.lattice(:jax, :dot)
    edges = for [_, from, to] <- Regex.scan(~r/"(.+)" -> "(.+)"/, dot), do: [from, to]
    assert Enum.sort(edges) == Enum.sort(golden["edges"])

    positions =
      for [_, code, x, y] <- Regex.scan(~r/"(.+)" \[pos="(.+),(.+)!"\]/, dot), into: %{} do
        {code, [String.to_float(x), String.to_float(y)]}
      end

    assert map_size(positions) == 18
    for {code, [x, y]} <- golden["positions"], do: assert(positions[code] == [x * 1.0, y * 1.0])

    svg = Table.lattice(:jax, :svg)
    labels = for [_, label] <- Regex.scan(~r/<text [^>]*>(.+)<\/text>/, svg), do: label
    assert Enum.sort(labels) == Enum.sort(golden["order"])
    assert length(Regex.scan(~r/<line /, svg)) == 24
    assert svg =~ ~s(viewBox="0 0 800 260")
  end

  test "Nx's types keep their names, of which some are codes of others" do
    [header | _] = :nx |> Table.format(:csv) |> String.split("\n")
    names = header |> String.split(",") |> tl()
    assert Enum.uniq(names) == names
    assert Enum.take(names, 3) == ["u2", "u4", "u8"]
  end

  test "arrows go around nodes" do
    svg = Table.lattice([system: :jax, strict: true], :svg)
    # f* to f8 past f4, and c* to c16 past c8.
    assert length(Regex.scan(~r/<path d="M[^"]*C/, svg)) == 2
    assert length(Regex.scan(~r/<line /, svg)) == 14
  end

  test "lattices under the options" do
    assert Table.lattice([system: :jax, x64: false], :dot) =~ ~s("u4" -> "i4")
    strict = Table.lattice([system: :jax, strict: true], :dot)
    assert length(Regex.scan(~r/->/, strict)) == 8 + 1 + 4 + 1 + 2
    assert Names.code({:f, 32}) == "f4"
  end
end
