defmodule Ferrox.DocsTest do
  # That what is public is documented: what it does, its types, an example, and since when.
  use ExUnit.Case, async: true

  {:ok, modules} = :application.get_key(:ferrox, :modules)

  # Modules without a documentation are hidden, and those of test/support are no part of the library.
  @documented for module <- modules,
                  {:docs_v1, _, _, _, %{"en" => _}, metadata, docs} <- [Code.fetch_docs(module)],
                  not ("#{module.module_info(:compile)[:source]}" =~ "/test/support/"),
                  do: {module, metadata, docs}

  defp functions(kinds) do
    for {module, metadata, docs} <- @documented,
        {{kind, name, arity}, _, _, doc, own} <- docs,
        kind in kinds and doc != :hidden and name not in [:exception, :message],
        do: {module, name, arity, doc, Map.merge(metadata, own)}
  end

  test "there are as many modules as one would think" do
    for module <- [Ferrox, Ferrox.Promotion, Ferrox.Type, Ferrox.Ivy, Ferrox.Npy],
        do: assert(List.keymember?(@documented, module, 0))
  end

  test "every public function has an example" do
    for {module, name, arity, doc, _} <- functions([:function, :macro]) do
      assert %{"en" => text} = doc, "#{inspect(module)}.#{name}/#{arity} has no documentation"
      mix_task? = inspect(module) =~ "Mix.Tasks"
      assert mix_task? or text =~ "iex>", "#{inspect(module)}.#{name}/#{arity} has no example"
    end
  end

  test "every public function has a type" do
    for {module, name, arity, _, _} <- functions([:function]) do
      {:ok, specs} = Code.Typespec.fetch_specs(module)
      assert List.keymember?(specs, {name, arity}, 0), "#{inspect(module)}.#{name}/#{arity}"
    end
  end

  test "everything public says since which release it is there" do
    for {module, name, arity, _, metadata} <- functions([:function, :macro, :type]) do
      assert {:ok, _} = Version.parse(metadata[:since] || ""),
             "#{inspect(module)}.#{name}/#{arity}"
    end
  end

  test "every type is explained" do
    for {module, name, arity, doc, _} <- functions([:type, :opaque]),
        do: assert(%{"en" => _} = doc, "#{inspect(module)}.#{name}/#{arity}")
  end

  test "every function of Ferrox is in a group" do
    {Ferrox, _, docs} = List.keyfind(@documented, Ferrox, 0)

    for {{:function, name, arity}, _, _, doc, metadata} <- docs, doc != :hidden do
      assert is_binary(metadata[:group]), "#{name}/#{arity}"
    end
  end

  # Pages of the documentation are found by the last part of their path alone. Other files are there
  # if they are assets, under the names that these have in the documentation.
  describe "links of the pages" do
    @pages Mix.Project.config()[:docs][:extras]
    @assets Mix.Project.config()[:docs][:assets]

    test "are to pages whose names are their own" do
      names = Enum.map(@pages, &Path.basename/1)
      assert names -- Enum.uniq(names) == []
    end

    test "lead to pages, sections and assets that are there" do
      links = for page <- @pages, {path, section} <- links(page), do: {page, path, section}
      assert length(links) > 30

      wrong =
        for {page, path, section} <- links,
            file = if(path == "", do: page, else: relative(page, path)),
            not there?(file, path, section),
            do: {page, path, section}

      assert wrong == []
    end

    defp links(page) do
      for [_, path | section] <- Regex.scan(~r/\]\(([^)#\s]*)(?:#([^)\s]+))?\)/, text(page)),
          URI.parse(path).scheme == nil,
          do: {path, List.first(section)}
    end

    # What is code has no links.
    defp text(page),
      do: page |> File.read!() |> String.replace(~r/^```.*?^```|`[^`\n]+`/ms, "")

    defp relative(page, path),
      do: page |> Path.dirname() |> Path.join(path) |> Path.expand("/") |> Path.relative_to("/")

    defp there?(file, path, section) do
      if file in @pages,
        do: section == nil or section in sections(file),
        else: section == nil and asset?(path) and File.regular?(file)
    end

    defp asset?(path) do
      Enum.any?(@assets, fn {source, target} ->
        String.starts_with?(path, target <> "/") and
          File.regular?(Path.join(source, Path.relative_to(path, target)))
      end)
    end

    # The identifiers of headings, as ex_doc makes them.
    defp sections(page) do
      for [_, heading] <- Regex.scan(~r/^##+ (.*)$/m, File.read!(page)) do
        heading
        |> String.downcase()
        |> String.replace(~r/[^\w\s-]/u, "")
        |> String.trim()
        |> String.replace(~r/\s+/, "-")
      end
    end
  end
end
