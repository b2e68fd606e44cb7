if Code.ensure_loaded?(Nx.Defn) do
  defmodule Ferrox.Defn.ExamplesTest do
    # The examples in the documentation of the compiler, and in guides/compiler.md.
    use ExUnit.Case, async: false

    import ExUnit.CaptureIO

    @moduletag :nx

    # What examples print is compared below.
    setup do
      Nx.default_backend(Ferrox.Backend)
      {:ok, printed} = StringIO.open("")
      Process.group_leader(self(), printed)
      :ok
    end

    doctest Ferrox.Defn
    doctest Ferrox.Defn.Cache
    doctest Ferrox.Defn.Expression

    test "explain/2 prints what its documentation says" do
      {:docs_v1, _, _, _, _, _, docs} = Code.fetch_docs(Ferrox.Defn)
      {_, _, _, %{"en" => text}, _} = List.keyfind(docs, {:function, :explain, 3}, 0)
      [example, printed] = String.split(text, "\n\nThis prints\n\n")
      [printed, _] = String.split(printed, "\n\n## Options")
      assert printed(example) == unindent(printed)
    end

    # The blocks of code in the guide.
    defp blocks do
      for [_, block] <- Regex.scan(~r/```elixir\n(.*?)```/s, File.read!("guides/compiler.md")),
          do: block
    end

    test "the examples of the guide print, or give, what it says" do
      for "defmodule" <> _ = module <- blocks(), do: Code.eval_string(module)
      examples = for "iex>" <> _ = block <- blocks(), do: String.split(block, "\n")

      for lines <- examples do
        {code, expected} = Enum.split_while(lines, &(&1 =~ ~r/^(iex|\.\.\.)>/))
        assert printed(Enum.join(code, "\n")) == String.trim(Enum.join(expected, "\n"))
      end

      assert length(examples) == 2
    end

    test "the other code of the guide is code" do
      for block <- blocks(),
          not String.starts_with?(block, "iex>"),
          do: assert({:ok, _} = Code.string_to_quoted(block))
    end

    # What the lines of an example that begin with `iex>` or `...>` print, and give if that isn't `:ok`.
    defp printed(example) do
      code = for [_, line] <- Regex.scan(~r/^ *(?:iex|\.\.\.)> (.*)$/m, example), do: [line, "\n"]

      output =
        capture_io(fn ->
          {result, _} = code |> IO.iodata_to_binary() |> Code.eval_string()
          if result != :ok, do: IO.inspect(result)
        end)

      String.trim(output)
    end

    defp unindent(text), do: text |> String.replace(~r/^    /m, "") |> String.trim()
  end
end
