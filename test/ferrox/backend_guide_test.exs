defmodule Ferrox.BackendGuideTest do
  # guides/backend.md: that its tables name every callback and every block, and
  # types that the kernels take, and no others; and that its code runs.
  use ExUnit.Case, async: true

  alias Ferrox.{Fixtures, Native}

  # Its tables are before the sections about anything else.
  @guide File.read!("guides/backend.md") |> String.split("\n## Tensors on other nodes") |> hd()

  @integers [s: 2, s: 4, s: 8, s: 16, s: 32, s: 64, u: 2, u: 4, u: 8, u: 16, u: 32, u: 64]
  @floats [f: 8, f8_e4m3fn: 8, bf: 16, f: 16, f: 32, f: 64]
  @complex [c: 64, c: 128]
  @types %{
    "all" => @integers ++ @floats ++ @complex,
    "reals" => @integers ++ @floats,
    "integers" => @integers
  }

  # `{names, types, differences}`, as they are written.
  defp rows do
    for "| `" <> _ = line <- String.split(@guide, "\n"), do: cells(line)
  end

  defp blocks do
    for "| block" <> _ = line <- String.split(@guide, "\n"), do: cells(line)
  end

  defp cells(line) do
    [_, names, types, differences, _] = line |> String.split("|") |> Enum.map(&String.trim/1)
    {for([_, name] <- Regex.scan(~r/`([\w.]+)`/, names), do: name), types, differences}
  end

  defp names, do: Enum.flat_map(rows() ++ blocks(), &elem(&1, 0))

  test "names every callback of both versions of Nx, and nothing that isn't there" do
    callbacks =
      for version <- ["0.9.2", "0.13.1"],
          {name, _arity} <- Fixtures.read(Fixtures.callbacks_file(version)),
          uniq: true,
          do: Atom.to_string(name)

    assert callbacks -- ["block" | names()] == []

    {:module, _} = Code.ensure_loaded(Ferrox.Backend)
    exported = for {name, _} <- Ferrox.Backend.__info__(:functions), do: Atom.to_string(name)
    there = Enum.reject(names(), &(&1 =~ ~r/^[A-Z]/))
    assert there -- exported == []
    assert there == Enum.uniq(there)
  end

  test "names every difference in the list, and only those" do
    {:docs_v1, _, _, _, %{"en" => text}, _, _} = Code.fetch_docs(Ferrox.Backend)
    listed = for [_, number] <- Regex.scan(~r/^ +(\d+)\. /m, text), do: number

    named =
      for {_, _, differences} <- rows() ++ blocks(),
          number <- String.split(differences, ", ", trim: true),
          uniq: true,
          do: number

    assert Enum.sort(named) == Enum.sort(listed)
  end

  test "the types of operations are those of the kernels" do
    wrong =
      for {names, types, _} <- rows(),
          expected = @types[types],
          name <- names,
          type <- @types["all"],
          supports?(name, type) not in [nil, type in expected],
          do: {name, type}

    assert wrong == []
    asked = for {names, _, _} <- rows(), name <- names, supports?(name, {:f, 32}), do: name
    assert length(asked) > 50
  end

  # Whether the kernels take a type, with any result that Nx would ask for; nil of
  # what can't be asked.
  defp supports?(name, type) do
    results = [type, {:u, 8}, {:f, 32}, {:c, 64}, Ferrox.Type.to_aggregate(type)]

    case for arity <- 1..3,
             result <- results,
             answer = Native.supports(name(name), result, List.duplicate(type, arity)),
             answer != nil,
             do: answer do
      [] -> nil
      answers -> Enum.any?(answers)
    end
  rescue
    ArgumentError -> nil
  end

  defp name(name), do: String.to_existing_atom(name)

  if Code.ensure_loaded?(Nx) do
    @tag :nx
    test "its code sends tensors that every node with Nx can use" do
      [send, serving] = Ferrox.Guide.blocks("guides/backend.md")
      tensor = Nx.tensor([1, 2, 3], backend: Ferrox.Backend)

      Process.register(self(), :collector)
      Ferrox.Guide.run(send, node: node(), tensor: tensor)
      assert_receive {:result, sent}

      served = Ferrox.Guide.run(serving, serving: Nx.Serving.jit(&Nx.add(&1, 1)))
      %{sum: sum} = served.distributed_postprocessing.(%{sum: tensor})

      for result <- [sent, sum] do
        assert %{data: %Nx.BinaryBackend{}} = result
        assert Nx.to_list(result) == [1, 2, 3]
      end
    end
  end

  if Code.ensure_loaded?(Nx.Block.Take) do
    test "names every block" do
      # The files, since not every nx.app lists its modules.
      directory = Nx |> :code.which() |> Path.dirname()

      blocks =
        for file <- Path.wildcard("#{directory}/Elixir.Nx.Block.*.beam"),
            "Elixir.Nx.Block." <> name = Path.basename(file, ".beam"),
            module = Module.concat(Nx.Block, name),
            Code.ensure_loaded?(module) and function_exported?(module, :__struct__, 0),
            do: name

      assert blocks != []
      assert blocks -- names() == []
    end
  end
end
