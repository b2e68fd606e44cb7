defmodule Ferrox.Defn.RecompilationTest do
  # Of functions that are compiled with the compiler of Nx.Defn, in test/ferrox/defn_test.exs.
  use ExUnit.Case, async: false

  import ExUnit.CaptureLog

  alias Ferrox.Defn.{Cache, Recompilation}

  setup do
    Cache.clear()
    on_exit(&Cache.clear/0)
  end

  @stack [
    {Ferrox.Defn, :compile, 5, [file: ~c"lib/ferrox/defn.ex", line: 1]},
    {:erlang, :apply, 2, []},
    {Enum, :map, 2, [file: ~c"lib/enum.ex", line: 2]},
    {My.Model, :train, 2, [file: ~c"lib/my/model.ex", line: 12]}
  ]

  # What is logged where functions are compiled, each at a time in seconds.
  defp log(functions, opts \\ []) do
    {rest, now} = {opts[:rest] || :rest, opts[:now] || 0}
    capture_log(fn -> for f <- functions, do: :ok = Recompilation.note(f, rest, @stack, now) end)
  end

  defp warnings(log), do: length(String.split(log, "has been compiled")) - 1

  defp adding(value), do: fn x -> {x, value} end
  defp scaling(value), do: fn x -> {value, x} end

  test "the eighth compilation for other captured values gives a warning, and no later one" do
    assert log(for n <- 1..7, do: adding(n)) == ""
    log = log([adding(8)])
    assert warnings(log) == 1

    assert log =~
             ~r/#Function<[^>]*adding\/1[^>]*>, used in .*lib\/my\/model.ex:12: My.Model.train\/2,/

    assert log =~ "compiled 8 times"
    assert log =~ "8, 7 before"
    assert log(for n <- 9..30, do: adding(n)) == ""
    assert log(for(n <- 1..30, do: adding(n)), now: 1_000, rest: :other) == ""
  end

  test "there is one warning a minute" do
    assert warnings(log(for n <- 1..10, do: adding(n))) == 1
    assert log(for(n <- 1..10, do: scaling(n)), now: 59) == ""
    assert warnings(log([scaling(11)], now: 60)) == 1
  end

  test "nothing is said of the same values, other arguments, and functions that capture nothing" do
    assert log(for _ <- 1..20, do: adding(1)) == ""
    for n <- 1..20, do: assert(log([adding(n)], rest: n) == "")
    assert log(for _ <- 1..20, do: &String.length/1) == ""
    assert log(for n <- 1..7, do: adding(n)) == ""
  end

  test "the innermost value that differs is named" do
    log =
      log(
        for n <- 1..8 do
          layers = [%{name: "a", rate: 0.5}, %{name: "b", rate: n / 4}]
          inner = fn x -> {x, {:layers, layers}} end
          adding(inner)
        end
      )

    assert log =~ "rate is 2.0, 1.75 before"
  end

  test "values that differ in several places, or in kind, are shown whole and cut" do
    assert log(for n <- 1..8, do: adding({n, -n})) =~ "{8, -8}, {7, -7} before"
    Cache.clear()
    values = [1, "b", [1 | 2], [1 | 3], :e, {1}, {1, 2}, String.duplicate("long", 100)]

    assert [_, shown] =
             Regex.run(~r/each time: (.*), \{1, 2\} before/, log(Enum.map(values, &adding/1)))

    assert String.length(shown) < 120
  end

  test "evaluated functions are told apart by their code" do
    evaluate = fn code, n -> elem(Code.eval_string(code, rate: n), 0) end
    assert log(for n <- 1..8, do: evaluate.("fn x -> {x, rate} end", n)) =~ ": 8, 7 before"
    Cache.clear()
    assert log(for n <- 1..20, do: evaluate.("fn x -> {x, #{n}, rate} end", n)) == ""
  end

  test "many functions do not fill the table, and those of which it was warned are known" do
    assert warnings(log(for n <- 1..8, do: scaling(n))) == 1
    for n <- 1..3_000, do: Recompilation.note(adding(n), {:shape, n}, @stack, 0)
    assert :ets.info(Recompilation, :size) <= 1_000
    assert log(for(n <- 1..8, do: scaling(n)), now: 1_000) == ""
  end
end
