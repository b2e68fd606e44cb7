defmodule Ferrox.NumPyGuideTest do
  # The table of guides/numpy.md names functions that are there.
  use ExUnit.Case, async: true

  @guide Path.expand("../../guides/numpy.md", __DIR__)

  test "the functions of the table exist" do
    names =
      for "| " <> row <- File.stream!(@guide),
          [_numpy, ours | _] <- [String.split(row, " | ")],
          [_, name] <- Regex.scan(~r/`((?:LinAlg\.|FFT\.|Random\.)?[a-z_0-9]+!?)`/, ours),
          do: name

    assert length(names) > 80

    for name <- names do
      {module, function} =
        case String.split(name, ".") do
          [function] -> {Ferrox, function}
          [module, function] -> {Module.concat(Ferrox, module), function}
        end

      Code.ensure_loaded!(module)

      exported =
        for {exported, _arity} <- module.__info__(:functions), do: Atom.to_string(exported)

      assert function in exported, "#{inspect(module)}.#{function}"
    end
  end

  # What NumPy gives for a = [3, 0.5, 2], b = [1, 2, 4] and m = [[1, 2], [3, 4]].
  @results %{
    "union1d(a, b)" => [0.5, 1, 2, 3, 4],
    "intersect1d(a, b)" => [2],
    "setdiff1d(a, b)" => [0.5, 3],
    "rot90(m)" => [[2, 4], [1, 3]],
    "polyval(a, b)" => [5.5, 15, 52],
    "polyfit(a, b, 1)" => [-0.26315789, 2.81578947]
  }

  test "the expressions give what NumPy gives" do
    rows =
      for "| `" <> row <- File.stream!(@guide),
          [numpy, "Ferrox." <> _ = code] <- [String.split(row, "` | `")],
          do: {numpy, code |> String.trim_trailing("` |\n")}

    assert Enum.sort(Map.keys(@results)) == Enum.sort(Enum.map(rows, &elem(&1, 0)))
    f64 = &Ferrox.tensor(&1, type: :f64)
    binding = [a: f64.([3, 0.5, 2]), b: f64.([1, 2, 4]), m: Ferrox.tensor([[1, 2], [3, 4]])]

    for {numpy, code} <- rows do
      {result, _binding} = Code.eval_string(code, binding)
      expected = @results[numpy]
      assert result.shape == Ferrox.tensor(expected).shape, code
      close? = Ferrox.all_close(result, Ferrox.tensor(expected, type: :f64), rtol: 1.0e-6)
      assert Ferrox.to_number(close?) == 1, "#{code} gives #{inspect(result)}"
    end
  end
end
