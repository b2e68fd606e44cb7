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
end
