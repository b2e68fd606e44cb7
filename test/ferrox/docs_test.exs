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
end
