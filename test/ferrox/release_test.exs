defmodule Ferrox.ReleaseTest do
  use ExUnit.Case, async: true

  # What bin/release packs from a library that is built already, and what has to agree with it.

  @root Path.expand("../..", __DIR__)
  @version Mix.Project.config()[:version]
  @checksums "checksum-Elixir.Ferrox.Native.exs"
  @linux_x86 "x86_64-unknown-linux-gnu"

  defp path(name), do: Path.join(@root, name)
  defp read(name), do: name |> path() |> File.read!()

  defp targets,
    do: for(line <- read("native/targets.txt") |> lines(), line =~ ~r/^[^#]/, do: line)

  defp lines(text), do: String.split(text, ~r/\R/, trim: true)

  defp out do
    unique = System.unique_integer([:positive])
    directory = Path.join(System.tmp_dir!(), "ferrox_release_test_#{System.pid()}_#{unique}")
    on_exit(fn -> File.rm_rf!(directory) end)
    directory
  end

  defp release(arguments),
    do: System.cmd("bash", [path("bin/release") | arguments], stderr_to_stdout: true)

  defp archive_name(target) do
    {prefix, extension} = if target =~ "windows", do: {"", "dll"}, else: {"lib", "so"}
    "#{prefix}ferrox_nif-v#{@version}-nif-2.15-#{target}.#{extension}.tar.gz"
  end

  defp library do
    path = Path.join(:code.priv_dir(:ferrox), "native/ferrox_nif")
    Enum.find([path <> ".so", path <> ".dll"], &File.regular?/1)
  end

  # The target of the library that the tests have loaded, if this is Linux with glibc on x86-64.
  defp linux_x86? do
    match?("x86_64" <> _, to_string(:erlang.system_info(:system_architecture))) and
      :os.type() == {:unix, :linux} and File.exists?("/lib64/ld-linux-x86-64.so.2")
  end

  defp tool?(name), do: System.find_executable(name) != nil

  test "an archive holds the library under the name that rustler_precompiled looks for" do
    out = out()
    file = Path.join(System.tmp_dir!(), "ferrox_release_test_#{System.pid()}.library")
    on_exit(fn -> File.rm!(file) end)
    File.write!(file, bytes = :crypto.strong_rand_bytes(10_000))

    # Linux's libraries are looked at before they are packed, and this file isn't one.
    packed = Enum.reject(targets(), &(&1 == @linux_x86 or &1 =~ "musl"))
    assert length(packed) >= 6

    for target <- packed do
      assert {text, 0} = release(["--out", out, "--target", target, "--library", file])
      assert text =~ archive_name(target)
      archive = Path.join(out, archive_name(target))
      member = target |> archive_name() |> Path.rootname() |> Path.rootname()
      assert {:ok, [{name, ^bytes}]} = :erl_tar.extract(archive, [:compressed, :memory])
      assert to_string(name) == member
    end

    names = Enum.map(packed, &archive_name/1)
    assert Enum.sort(File.ls!(out)) == Enum.sort([@checksums | names])

    {checksums, _} = Code.eval_file(Path.join(out, @checksums))

    assert checksums ==
             Map.new(names, fn name ->
               hash = :crypto.hash(:sha256, File.read!(Path.join(out, name)))
               {name, "sha256:" <> Base.encode16(hash, case: :lower)}
             end)

    # Archives of other machines are put into the directory, and other versions left out.
    File.rm!(Path.join(out, archive_name(hd(packed))))
    File.write!(Path.join(out, "libferrox_nif-v0.0.1-nif-2.15-#{@linux_x86}.so.tar.gz"), "")
    assert {_, 0} = release(["--out", out, "--checksums"])
    {fewer, _} = Code.eval_file(Path.join(out, @checksums))
    assert fewer == Map.delete(checksums, archive_name(hd(packed)))
  end

  test "the library of this machine can be packed" do
    if linux_x86?() and tool?("objdump") do
      out = out()

      case release(["--out", out, "--target", @linux_x86, "--library", library()]) do
        {text, 0} ->
          assert text =~ ~r/needs glibc \S+ or newer; releases may need/
          archive = Path.join(out, archive_name(@linux_x86))
          assert {:ok, [{_, bytes}]} = :erl_tar.extract(archive, [:compressed, :memory])
          assert bytes == File.read!(library())

        # Built on a system with a newer glibc, it needs that one.
        {text, 1} ->
          assert text =~ ~r/needs glibc \S+, and releases no newer one than/
          assert not File.exists?(Path.join(out, archive_name(@linux_x86)))
      end
    end
  end

  # Packs a library for a target that isn't looked at before.
  defp packed(file) do
    out = out()
    target = if match?({:win32, _}, :os.type()), do: "windows", else: "apple"
    target = Enum.find(targets(), &(&1 =~ target))
    assert {_, 0} = release(["--out", out, "--target", target, "--library", file])
    Path.join(out, archive_name(target))
  end

  test "the library of an archive is loaded, and tested" do
    archive = packed(library())
    assert {text, 0} = release(["--load", archive])
    assert text =~ ~r/^Library    #{Regex.escape(@version)}, precompiled, /m
    assert text =~ ~r/^Self-test  all \d+ families right/m
    assert List.last(lines(text)) == "release: the library of #{archive} works here"
  end

  test "an archive of what is no library is refused" do
    archive = packed(path("mix.exs"))
    assert {text, 1} = release(["--load", archive])
    assert List.last(lines(text)) =~ "release: the library of #{archive} "

    File.write!(archive, "not an archive")
    line = "release: #{archive} is not an archive of a library"
    assert {text, 1} = release(["--load", archive])
    assert lines(text) == [line]
  end

  test "what can't be released gets one line" do
    out = out()

    for {arguments, words} <- [
          {["--nonsense"], "unknown argument --nonsense: the options are --out"},
          {["--target"], "--target takes an argument"},
          {["--target", "z80-sinclair-basic"],
           "native/targets.txt does not have z80-sinclair-basic"},
          {["--library", "no/such/file"], "there is no file"},
          {["--target", hd(targets()), "--target", @linux_x86, "--library", path("mix.exs")],
           "--library takes one --target"},
          {["--checksums"], "there is no archive of version #{@version} in"},
          {["--glibc"], "--glibc takes an argument"},
          {["--load", "no/such/archive"], "there is no file"}
        ] do
      assert {text, 1} = release(["--out", out | arguments])
      assert [line] = lines(text)
      assert line =~ "release: "
      assert line =~ words
    end

    if linux_x86?() and tool?("readelf") do
      musl = "x86_64-unknown-linux-musl"
      assert {text, 1} = release(["--out", out, "--target", musl, "--library", library()])
      assert [line] = lines(text)
      assert line =~ "is linked with glibc, not with musl"
      assert not File.exists?(Path.join(out, archive_name(musl)))
    end
  end

  test "the oldest glibc is the one that the documents state" do
    [_, oldest] = Regex.run(~r/^oldest_glibc=(\S+)$/m, read("bin/release"))

    for document <- ["README.md", "CONTRIBUTING.md"],
        do: assert(String.contains?(read(document), "glibc #{oldest}"), document)

    if linux_x86?() and tool?("objdump") do
      assert {text, 0} = release(["--glibc", library()])
      assert [_, needed] = Regex.run(~r/needs glibc (\S+) or newer/, text)
      assert needed == oldest
    end
  end

  test "all places that name targets, versions and files agree" do
    workflow = read(".github/workflows/release.yml")
    matrix = for [_, target] <- Regex.scan(~r/\{ target: ([^,\s]+),/, workflow), do: target
    assert Enum.sort(matrix) == Enum.sort(targets())
    assert targets() == Enum.uniq(targets())
    assert Mix.Tasks.Compile.FerroxNative.targets() == targets()

    files = Mix.Project.config()[:package][:files]
    assert @checksums in files
    assert "native" in files
    assert read(".gitignore") =~ ~r/^\/checksum-\*\.exs$/m
  end

  test "the address of releases stands in mix.exs alone" do
    assert [[line]] = Regex.scan(~r/^  @source_url .*$/m, read("mix.exs"))
    {url, _} = line |> String.replace("@source_url", "") |> Code.eval_string()
    assert Mix.Project.config()[:source_url] == url

    folders = "{.ci,.github,bench,bin,config,examples,lib,native}"
    files = Path.wildcard(path("#{folders}/**"), match_dot: true)

    uses =
      for file <- files,
          File.regular?(file),
          text = File.read!(file),
          text =~ "releases/download" or (url != nil and String.contains?(text, url)),
          do: Path.relative_to(file, @root)

    assert uses == ["native/compiler.exs"]
  end
end
