defmodule Ferrox.ReadmeTest do
  # The code in README.md.
  use ExUnit.Case, async: true

  alias Ferrox.{Guide, Promotion}

  test "its code runs, and its settings are those that Ferrox and Nx read" do
    [project, example, config] = Guide.blocks("README.md")

    [dependencies, nx] = String.split(project, "# config/config.exs")
    [nx: requirement, ferrox: [path: path]] = Guide.run("[" <> dependencies <> "]")
    for release <- ["0.9.2", "0.13.1"], do: assert(Version.match?(release, requirement))
    assert is_binary(path)

    assert Guide.settings(nx) == [
             nx: [default_backend: Ferrox.Backend, default_defn_options: [compiler: Ferrox]]
           ]

    assert Guide.printed(example) == Guide.expected(example)

    [ferrox: settings] = Guide.settings(config)
    # Each is read somewhere, under its name.
    sources = Enum.map_join(Path.wildcard("lib/**/*.ex"), &File.read!/1)
    for {name, _} <- settings, do: assert(sources =~ ~r/_env\(:ferrox, :#{name}\b/, "#{name}")

    assert Promotion.with(settings[:promotion], &Promotion.current/0) == [
             system: :jax,
             x64: false
           ]
  end
end
