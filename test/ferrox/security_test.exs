defmodule Ferrox.SecurityTest do
  # What SECURITY.md says of unsafe code and of dependencies, compared with the code.
  use ExUnit.Case, async: true

  @root Path.expand("../..", __DIR__)
  @text File.read!(Path.join(@root, "SECURITY.md"))
  @crates ["ferrox_core", "ferrox_nif", "panic_nif"]

  defp read(path), do: File.read!(Path.join(@root, path))

  defp rust_files(folder), do: Path.wildcard(Path.join([@root, folder, "**/*.rs"]))

  # The first column of the table below a heading.
  defp table(heading) do
    [_, section] = String.split(@text, "## #{heading}\n")
    [section | _] = String.split(section, "\n## ")

    for [_, column] <- Regex.scan(~r/^\| (`.*?) \|/m, section),
        [_, name] <- Regex.scan(~r/`([^`]+)`/, column),
        do: name
  end

  test "files with unsafe code are listed, and no others" do
    unsafe = ~r/\bunsafe\s*(\{|fn|impl|extern|trait)|#\[unsafe\(|allow\(\s*unsafe_code/

    found =
      for file <- rust_files("native"),
          code = file |> File.read!() |> String.replace(~r{//.*$}m, ""),
          code =~ unsafe,
          do: Path.relative_to(file, @root)

    assert Enum.sort(found) == Enum.sort(table("Unsafe code"))
  end

  test "unsafe code is denied where it isn't allowed" do
    assert read("Cargo.toml") =~ ~r/^unsafe_code = "deny"$/m
    assert read("Cargo.toml") =~ ~r/^undocumented_unsafe_blocks = "deny"$/m

    for crate <- @crates,
        do: assert(read("native/#{crate}/Cargo.toml") =~ "[lints]\nworkspace = true")
  end

  test "dependencies are used, and listed with what they are for" do
    named =
      for crate <- @crates, name <- dependencies("native/#{crate}/Cargo.toml"), do: {crate, name}

    for {crate, name} <- named do
      used = ~r/\b#{String.replace(name, "-", "_")}\b/

      assert Enum.any?(rust_files("native/#{crate}"), &(File.read!(&1) =~ used)),
             "#{crate}: #{name}"
    end

    names = named |> Enum.map(&elem(&1, 1)) |> Enum.uniq() |> Enum.sort()
    assert names == Enum.sort(dependencies("Cargo.toml"))
    assert names -- ["ferrox_core"] == Enum.sort(table("Dependencies"))
  end

  # The names in all sections of dependencies.
  defp dependencies(path) do
    for section <- String.split("\n" <> read(path), "\n["),
        [head, lines] = String.split(section <> "\n", "\n", parts: 2),
        head =~ ~r/dependencies\]$/,
        [_, name] <- Regex.scan(~r/^([\w-]+)[ .]/m, lines),
        do: name
  end
end
