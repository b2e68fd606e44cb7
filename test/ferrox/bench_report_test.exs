defmodule Ferrox.BenchReportTest do
  # What bench/compare.exs says of its measurements; the measurements themselves are
  # left to bin/bench.
  use ExUnit.Case, async: true

  Code.require_file("../../bench/compare/report.exs", __DIR__)
  Code.require_file("../../bench/compare/chart.exs", __DIR__)
  Code.require_file("../../bench/compare/cases.exs", __DIR__)

  # Whole programs are functions of Nx.Defn.
  if Code.ensure_loaded?(Nx.Defn) do
    Code.require_file("../../bench/compare/programs.exs", __DIR__)
    @groups Bench.Cases.groups()
  else
    @groups Keyword.delete(Bench.Cases.groups(), :programs)
  end

  alias Bench.{Cases, Chart, Report}

  defp cell(us, more \\ []) do
    Map.merge(
      %{
        group: :binary,
        panel: "binary",
        name: "add f32",
        shape: "1,000",
        elements: 1000,
        us: Map.new(us),
        error: nil,
        limit: nil
      },
      Map.new(more)
    )
  end

  describe "ratios" do
    test "the best peer over Ferrox" do
      assert Report.ratio(cell(ferrox: 2.0, numpy: 6.0, jax: 5.0, binary: 8.0)) == 2.5
      assert Report.ratio(cell(ferrox: 2.0, numpy: 6.0)) == 3.0
      assert Report.ratio(cell(ferrox: 2.0, numpy: 6.0, binary: 3.0)) == 1.5
    end

    test "BinaryBackend where there is no other" do
      assert Report.ratio(cell(ferrox: 2.0, binary: 8.0)) == 4.0
    end

    test "none without a peer, or where the answers differ" do
      assert Report.ratio(cell(ferrox: 2.0)) == nil
      assert Report.ratio(cell([], error: "differs")) == nil
    end

    test "geometric mean" do
      assert Report.geometric_mean([]) == nil
      assert_in_delta Report.geometric_mean([0.5, 2.0, 8.0]), 2.0, 1.0e-12
    end

    test "summary" do
      summary =
        Report.summary([
          cell(ferrox: 1.0, numpy: 4.0),
          cell([ferrox: 2.0, jax: 1.0], limit: 1.6),
          cell([ferrox: 2.0, jax: 4.0], limit: 1.0),
          cell([], error: "differs")
        ])

      assert %{cells: 4, least: 0.5, below: 1, errors: 1} = summary
      assert %{limits: 2, over_limit: 1, most_over_limit: 2.0} = summary
      assert_in_delta summary.geometric_mean, :math.pow(4, 1 / 3), 1.0e-12
    end
  end

  describe "the table" do
    test "columns stand under their headings" do
      line = Report.line(cell(ferrox: 1.234, numpy: 12.34, jax: 1234.4))
      assert line =~ ~r/^add f32 +1,000 +1.23 +12.3 +1,234 +- +- +10.0$/
      # The number ends where its heading does.
      {at, length} = :binary.match(Report.heading(), "NumPy")
      assert binary_part(line, at + length - 4, 5) == "12.3 "
    end

    test "marks what is slow and what differs, and relates it to the memory limit" do
      assert Report.line(cell(ferrox: 2.0, numpy: 1.0)) =~ ~r/0\.50 <$/
      assert Report.line(cell(ferrox: 1.0, numpy: 1.0)) =~ ~r/1\.00$/
      assert Report.line(cell([], error: "shape")) =~ ~r/ERROR: shape$/
      assert Report.line(cell([ferrox: 3.0], limit: 2.0)) =~ "1.50 x the memory limit"
    end

    test "what programs cost beside time" do
      program = fn compile, peak ->
        cell([], compile_ms: Map.new(compile), peak_mb: Map.new(peak))
      end

      more = program.([ferrox: 0.5, jax: 50.0], ferrox: 4.5, jax: 4.0, evaluator: 16.25)
      less = program.([ferrox: 2.0, jax: 50.0], ferrox: 4.49, jax: 4.0, evaluator: nil)
      unknown = program.([ferrox: 2.0], ferrox: 9.0)

      assert Report.costs_line(more) =~ ~r/^add f32 +0.50 +50.0 +100 +4.50 +4.00 +16.3 >$/
      assert Report.costs_line(less) =~ ~r/^add f32 +2.00 +50.0 +25.0 +4.49 +4.00 +-$/
      assert Report.costs_line(unknown) =~ ~r/^add f32 +2.00 +- +- +9.00 +- +-$/
      {at, length} = :binary.match(Report.costs_heading(), "jax/Ferrox")
      assert binary_part(Report.costs_line(more), at + length - 4, 5) == " 100 "

      summary = Report.summary([more, less, unknown, cell(ferrox: 1.0)])
      assert %{peaks: 2, higher_peaks: 1} = summary
      assert_in_delta summary.compile_mean, 50.0, 1.0e-12
      assert Report.costs_summary(summary) =~ ~r/compile: 50.0; .*: 1 of 2$/
      assert %{compile_mean: nil, peaks: 0} = Report.summary([unknown])
    end

    test "numbers" do
      assert Enum.map([nil, 0.00123, 0.123, 12.34, 1_234_567.8], &Report.number/1) ==
               ["-", "0.0012", "0.12", "12.3", "1,234,568"]
    end
  end

  describe "JSON" do
    @term %{
      "text" => "a \"quoted\" \\ line\nµs",
      list: [1, -2.5, 1.0e-7, 1.0e22, true, false, nil, []],
      nested: %{empty: %{}, atom: :f32}
    }

    test "is valid" do
      assert Report.json(@term) == """
             {
               "list": [1, -2.5, 1.0e-7, 1.0e22, true, false, null, []],
               "nested": {"atom": "f32", "empty": {}},
               "text": "a \\"quoted\\" \\\\ line\\u000Aµs"
             }
             """
    end

    # Erlang/OTP 27 has a decoder.
    if Code.ensure_loaded?(:json) do
      test "comes back" do
        cells = [cell(ferrox: 1.5, numpy: nil), cell([], error: "a \"b\"")]
        long = List.duplicate(1.25, 100)
        decoded = apply(:json, :decode, [Report.json(%{cells: cells, long: long, term: @term})])
        assert %{"cells" => [one, two], "long" => ^long, "term" => term} = decoded
        assert %{"us" => %{"ferrox" => 1.5, "numpy" => :null}, "group" => "binary"} = one
        assert two["error"] == "a \"b\""
        assert term["text"] == @term["text"]
      end
    end
  end

  describe "the drawing" do
    test "a peer's line stands where the cells that both have put it" do
      cells = [
        cell(ferrox: 1.0, numpy: 2.0),
        cell(ferrox: 4.0),
        cell([ferrox: 1.0], elements: 10)
      ]

      assert [ferrox: [{10, ten}, {1000, ours}], numpy: [{1000, theirs}]] = Chart.lines(cells)
      assert_in_delta ten, 100.0, 1.0e-9
      assert_in_delta ours, 2.0, 1.0e-9
      assert_in_delta theirs, 4.0, 1.0e-9
    end

    test "is well-formed, with a panel for each group that has cells" do
      cells = for n <- [1, 1000, 10_000_000], do: cell([ferrox: 1.0, numpy: 2.0], elements: n)
      one = [cell(ferrox: 3.0, jax: 3.0, binary: 100.0)]

      svg =
        Chart.svg("A < B & \"C\"", ["1 > 0"], [
          {"a", "1.2", cells},
          {"b", nil, one},
          {"c", nil, []}
        ])

      assert well_formed?(svg)
      assert svg =~ ~s(<svg xmlns="http://www.w3.org/2000/svg")
      assert length(String.split(svg, ~s(class="name"))) == 3
      refute svg =~ ~r/NaN|Infinity|nil/
    end

    test "has a row for each whole program, with a mark for each system" do
      program = fn name, us -> cell(us, name: name, group: :programs) end

      programs = [
        program.("a & b", ferrox: 2.0, jax: 3.0, evaluator: 200.0),
        program.("c", ferrox: 50.0, jax: 25.0),
        cell([], name: "d", error: "differs")
      ]

      svg = Chart.svg("title", [], [], {"programs", "0.87 ×", programs})
      assert well_formed?(svg)
      names = Regex.scan(~r/class="program"[^>]*>([^<]*)</, svg, capture: :all_but_first)
      assert names == [["a &amp; b"], ["c"]]
      ratios = Regex.scan(~r/class="ratio"[^>]*>([^<]*)</, svg, capture: :all_but_first)
      assert ratios == [["1.50 ×"], ["0.50 ×"]]
      legend = Regex.scan(~r/class="legend"[^>]*>([^<]*)</, svg, capture: :all_but_first)
      assert legend == [["Ferrox"], ["jax"], ["Evaluator"]]
      assert svg =~ "a &amp; b, Evaluator: 200 µs"

      # The longer the time, the farther to the right.
      place = fn title ->
        [_, x] = Regex.run(~r/d="M([0-9.]+) [^>]*><title>#{title}/, svg)
        String.to_float(x)
      end

      places = Enum.map(["a &amp; b, Ferrox", "a &amp; b, jax", "c, jax", "c, Ferrox"], place)
      assert places == Enum.sort(places) and Enum.uniq(places) == places
    end

    test "of nothing is well-formed too" do
      assert well_formed?(Chart.svg("nothing", [], []))
      refute well_formed?("<svg><g></svg></g>")
      refute well_formed?("<svg>a < b</svg>")
    end

    # Whether elements nest, and nothing else has markup's characters. There may be no
    # xmerl: distributions package it apart.
    defp well_formed?(svg) do
      tag = ~r/<(\/?)([a-z]+)((?: [a-zA-Z-]+="[^"<&]*(?:&[a-z]+;[^"<&]*)*")*)(\/?)>/
      text = Regex.replace(~r/&(amp|lt|gt|quot);/, Regex.replace(tag, svg, ""), "")

      open =
        for [_, close, name, _, empty] <- Regex.scan(tag, svg), empty == "", reduce: [] do
          [^name | outer] when close == "/" -> outer
          open -> [close <> name | open]
        end

      open == [] and not String.contains?(text, ["<", ">", "&"])
    end
  end

  describe "the cases" do
    test "every group has some, also where few are asked for" do
      for {group, _} <- @groups do
        rows = Cases.rows(group)
        few = Cases.rows(group, quick: true)
        assert few != [] and length(few) < 100
        assert few -- rows == []
        assert length(Enum.uniq_by(rows, &{&1.name, &1.shape, &1.inputs})) == length(rows)
      end
    end

    test "sizes ascend, so that a size can tell of the next" do
      for {group, _} <- Cases.groups(),
          {_, rows} <- Enum.group_by(Cases.rows(group), & &1.name) do
        work = Enum.map(rows, & &1.work)
        assert group in [:conv, :small] or work == Enum.sort(work)
      end
    end

    test "inputs are of the type, shape and range, and the same every time" do
      for type <- [:u8, :s32, :s64, :bf16, :f16, :f32, :f64, :c64] do
        tensor = Cases.input({type, {20, 30}, {1, 5}}, 1)
        assert tensor == Cases.input({type, {20, 30}, {1, 5}}, 1)
        refute tensor == Cases.input({type, {20, 30}, {1, 5}}, 2)
        assert {tensor.type, tensor.shape} == {Cases.type(type), {20, 30}}

        unless type == :c64 do
          assert Ferrox.to_number(Ferrox.reduce_min(tensor)) >= 1
          assert Ferrox.to_number(Ferrox.reduce_max(tensor)) <= 5
        end
      end
    end
  end
end
