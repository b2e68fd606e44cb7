defmodule Ferrox.NotebookTest do
  # The guides that are notebooks, run whole. FERROX_UPDATE=1 writes the outputs of their cells and
  # the pictures anew. Not beside other tests: a cell counts all calls of the library.
  use ExUnit.Case, async: false

  alias Ferrox.Notebook

  @guides Path.expand("../../guides", __DIR__)

  # What each needs besides Ferrox, with a module of it.
  @notebooks %{
    "images_and_signals.livemd" => [nx: Nx],
    "promotion_systems.livemd" => [],
    "clustering.livemd" => [nx: Nx, scholar: Scholar.Cluster.KMeans],
    "compiling.livemd" => [nx: Nx],
    "tour.livemd" => [nx: Nx],
    "training.livemd" => [nx: Nx, axon: Axon]
  }

  test "every notebook is run here" do
    files = @guides |> Path.join("*.livemd") |> Path.wildcard() |> Enum.map(&Path.basename/1)
    assert Enum.sort(files) == Enum.sort(Map.keys(@notebooks))
  end

  for {file, needs} <- @notebooks do
    test "the cells of #{file} are Elixir, and its setup installs what it needs" do
      path = Path.join(@guides, unquote(file))
      [_ | _] = for cell <- Notebook.cells(path), do: Notebook.quoted!(cell, path)

      # Livebook shows pictures of Markdown that are named here.
      entries =
        for %{picture: "files/" <> name} <- Notebook.cells(path),
            do: ~s({"name":"#{name}","type":"attachment"})

      if entries != [] do
        header = ~s(<!-- livebook:{"file_entries":[#{Enum.join(entries, ",")}]} -->)
        assert path |> File.read!() |> String.split("\n") |> hd() == header
      end

      {dependencies, options} = Notebook.install!(path)
      names = for dependency <- dependencies, do: elem(dependency, 0)
      assert Enum.sort(names) == Enum.sort([:ferrox, :kino] ++ unquote(Keyword.keys(needs)))
      {:ferrox, [path: root]} = List.keyfind(dependencies, :ferrox, 0)
      assert Path.expand(root) == Path.expand("../..", __DIR__)
      assert options[:config][:ferrox] == [add_backend_on_inspect: false]

      if :nx in names do
        assert options[:config][:nx] ==
                 [default_backend: Ferrox.Backend, default_defn_options: [compiler: Ferrox]]
      end
    end

    # Releases of Nx print differently, and the notebooks ask for a new one.
    nx = Application.spec(:nx, :vsn) || "0.0.0"

    if Enum.all?(Keyword.values(needs), &Code.ensure_loaded?/1) and
         (needs == [] or Version.match?("#{nx}", ">= 0.13.0")) do
      if needs != [], do: @tag(:nx)

      # Nx.Random is compiled for many shapes, which the compiler warns of.
      @tag :capture_log
      test "#{file} gives what it shows" do
        path = Path.join(@guides, unquote(file))
        {_, options} = Notebook.install!(path)

        configure(options[:config][:nx])
        {text, pictures} = Notebook.run(path)

        for {file, content} <- [{unquote(file), text} | pictures] do
          path = Path.join(@guides, file)
          if System.get_env("FERROX_UPDATE") == "1", do: File.write!(path, content)

          # What a program looks like depends on whether there is machine code.
          is_explained = file == "compiling.livemd" and not machine_code?()

          # What is learned depends on how large products are rounded, which is not the same on all
          # processors.
          if not is_explained and
               (unquote(Keyword.keys(needs)) in [[], [:nx]] or file =~ ".livemd") do
            assert {file, difference(File.read!(path), content)} == {file, nil}
          else
            assert File.exists?(path)
          end
        end
      end
    end
  end

  # Whether elementwise operations become machine code here.
  defp machine_code? do
    {_version, instructions, _threads, machine_code, _debug?} = Ferrox.Native.library()
    machine_code == "used" and instructions != "x86-64 (SSE2)"
  end

  # The first line that differs, as it is and as it should be.
  defp difference(text, text), do: nil

  defp difference(found, expected) do
    [found, expected] = for text <- [found, expected], do: String.split(text, "\n")
    line = Enum.find(0..length(found), &(Enum.at(found, &1) != Enum.at(expected, &1)))
    {line + 1, Enum.at(found, line), Enum.at(expected, line)}
  end

  if Code.ensure_loaded?(Nx) do
    defp configure(nil), do: :ok

    defp configure(default_backend: backend, default_defn_options: options) do
      Nx.default_backend(backend)
      Nx.Defn.default_options(options)
    end
  else
    defp configure(nil), do: :ok
  end
end
