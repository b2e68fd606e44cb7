defmodule Mix.Tasks.Ferrox.PromoteTest do
  use ExUnit.Case, async: true

  import ExUnit.CaptureIO

  alias Mix.Tasks.Ferrox.Promote

  defp answer(args), do: capture_io(fn -> Promote.run(args) end)

  defp refusal(args) do
    capture_io(:stderr, fn -> assert catch_exit(Promote.run(args)) == {:shutdown, 1} end)
  end

  test "answers a query" do
    assert answer(~w(--system jax uint8 int8 float16)) == "float16\n"
    assert answer(~w(--system jax uint8 1.0)) == "float*\n"
    assert answer(~w(--system jax,x32 uint64 int64)) == "int32\n"
    assert answer(~w(u8 -1)) == "s16\n"
    assert answer(~w(u8 -- -1)) == "s16\n"
    assert answer(~w(--system numpy,legacy int16 1)) == "int64\n"
    assert answer(~w(--system numpy,legacy int16[] 1)) == "int16\n"
    assert answer(~w(--system ivy,nonprecise int32 float32)) == "float32\n"
  end

  test "a refusal is one line" do
    for {args, words} <- [
          {~w(--system jax,strict float32 int32), "f32 and s32 have no implicit promotion"},
          {~w(--system jacks u8), "unknown system \"jacks\", expected one of: nx, nx_0_9, jax"},
          {~w(--system jax,legacy u8),
           "unknown option \"legacy\" of jax, expected one of: strict, x32"},
          {~w(uint9), "unknown type \"uint9\""},
          {["u8", String.duplicate("9", 400) <> "j"], "unknown type \"9999"},
          {~w(--system numpy uint8 256), "256 is out of the range of u8"},
          {~w(--system jax), "expected at least one operand"},
          {~w(--what u8), "unknown option --what"},
          {~w(--table jax --format pdf), "unknown format \"pdf\", expected one of: text"},
          {~w(--lattice numpy), ":numpy is a plain table"},
          {~w(--table jax --lattice jax), "one of them"}
        ] do
      text = refusal(args)
      assert text =~ words
      assert length(String.split(text, "\n", trim: true)) == 1
    end
  end

  test "answers each line of the standard input" do
    lines = [
      {"jax\tuint8 int8 float16", "float16"},
      {"jax\tuint8 float*", "float*"},
      {"jax,strict\tuint8 int8", "error"},
      {"jax,x32,strict\tint64 int*", "int32"},
      {"ivy,nonprecise\tint32 float32", "float32"},
      {"ivy,array_api\tint32 float32", "error"},
      {"numpy,legacy\tint16 int*", "int64"},
      {"nx\tu8 -1", "s16"},
      {"nx\tu2 2", "u8"},
      {"nx\tu8 18446744073709551616", "u64"},
      {"nx_0_9\tf64 c64", "c64"},
      {"jax\t", "error"},
      {"", "error"},
      {"no tab", "error"},
      {"jax\tuint8 1e999", "error"}
    ]

    input = Enum.map_join(lines, "\n", &elem(&1, 0))

    for ending <- ["", "\n"] do
      output =
        capture_io([input: input <> ending, capture_prompt: false], fn ->
          Promote.run(["--stdin"])
        end)

      assert String.split(output, "\n", trim: true) == Enum.map(lines, &elem(&1, 1))
    end
  end

  test "prints tables and the lattice" do
    assert answer(~w(--table jax)) =~ ~r/^b1 .* bf' /m
    assert answer(~w(--table jax --format markdown)) =~ "| **bf** |"
    assert answer(~w(--table jax --format html)) =~ ~s(<td class="d">bf</td>)
    assert answer(~w(--table jax --format csv)) =~ "b1,b1,u1,"
    assert answer(~w(--lattice jax)) =~ "<svg "
    assert answer(~w(--lattice jax --format dot)) =~ "digraph"
  end
end
