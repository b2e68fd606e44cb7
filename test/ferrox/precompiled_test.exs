# A project that depends on Ferrox gets its library from archives on this machine. This needs
# rustler_precompiled, which is there with Hex or in ERL_LIBS together with castore, and programs that
# are scripts: without them, no test is defined here.

# From Elixir 1.15 on, Mix hides what isn't a dependency.
for directory <- "ERL_LIBS" |> System.get_env("") |> String.split(":", trim: true),
    library <- ["rustler_precompiled", "castore"],
    do: Code.append_path(Path.join([directory, library, "ebin"]))

if function_exported?(Mix, :ensure_application!, 1),
  do: apply(Mix, :ensure_application!, [:inets])

if Code.ensure_loaded?(RustlerPrecompiled) and match?({:unix, _}, :os.type()) do
  defmodule Ferrox.PrecompiledTest do
    use ExUnit.Case, async: false

    @moduletag timeout: 300_000

    @root Path.expand("../..", __DIR__)
    # A development version is never downloaded.
    @version Mix.Project.config()[:version] |> String.replace(~r/-.*/, "")
    @checksums "checksum-Elixir.Ferrox.Native.exs"

    setup_all do
      directory = Path.join(System.tmp_dir!(), "ferrox_precompiled_test_#{System.pid()}")
      www = Path.join(directory, "www")
      releases = Path.join(www, "releases/download/v#{@version}")
      File.mkdir_p!(releases)
      on_exit(fn -> File.rm_rf!(directory) end)

      {:ok, _} = Application.ensure_all_started(:inets)

      {:ok, server} =
        :inets.start(:httpd,
          port: 0,
          bind_address: {127, 0, 0, 1},
          server_name: ~c"localhost",
          server_root: to_charlist(directory),
          document_root: to_charlist(www)
        )

      on_exit(fn -> :inets.stop(:httpd, server) end)
      port = :httpd.info(server)[:port]

      {:ok, "nif-" <> target} = RustlerPrecompiled.target()
      [_, target] = String.split(target, "-", parts: 2)
      member = "libferrox_nif-v#{@version}-nif-2.15-#{target}.so"
      archive = Path.join(releases, member <> ".tar.gz")
      library = File.read!(Application.app_dir(:ferrox, "priv/native/ferrox_nif.so"))
      :ok = :erl_tar.create(archive, [{to_charlist(member), library}], [:compressed])

      # Counts its calls, and builds nothing.
      cargo = Path.join(directory, "bin/cargo")
      File.mkdir_p!(Path.dirname(cargo))
      File.write!(cargo, "#!/bin/sh\necho called >> \"$CARGO_CALLS\"\nexit 1\n")
      File.chmod!(cargo, 0o755)

      %{directory: directory, url: "http://127.0.0.1:#{port}", archive: archive}
    end

    # A package of Ferrox as it is on Hex, and a project that depends on it.
    setup context do
      directory = Path.join(context.directory, to_string(System.unique_integer([:positive])))
      package = Path.join(directory, "ferrox")

      for file <- Mix.Project.config()[:package][:files], File.exists?(Path.join(@root, file)) do
        File.mkdir_p!(Path.dirname(Path.join(package, file)))
        File.cp_r!(Path.join(@root, file), Path.join(package, file))
      end

      File.mkdir_p!(Path.join(directory, "app"))

      File.write!(Path.join(directory, "app/mix.exs"), """
      defmodule App.MixProject do
        use Mix.Project

        def project,
          do: [app: :app, version: "0.1.0", deps: [{:ferrox, path: "../ferrox"}]]
      end
      """)

      test = Map.merge(context, %{package: package, app: Path.join(directory, "app")})
      test = Map.put(test, :cache, Path.join(directory, "cache"))
      set(test, :version, @version)
      set(test, :source_url, context.url)
      # Here rustler_precompiled is found in ERL_LIBS.
      edit(test, ~r/app: :ferrox,/, "app: :ferrox, prune_code_paths: false,")
      write_checksums(test, %{Path.basename(context.archive) => sha256(context.archive)})
      test
    end

    # Changes an attribute of mix.exs.
    defp set(test, name, value),
      do: edit(test, ~r/^  @#{name} .*$/m, "  @#{name} #{inspect(value)}")

    defp edit(test, old, new) do
      file = Path.join(test.package, "mix.exs")
      assert [before, rest] = file |> File.read!() |> String.split(old)
      File.write!(file, [before, new, rest])
    end

    defp write_checksums(test, checksums),
      do: File.write!(Path.join(test.package, @checksums), inspect(checksums))

    defp sha256(file),
      do: "sha256:" <> Base.encode16(:crypto.hash(:sha256, File.read!(file)), case: :lower)

    # Runs Mix in the project. Returns its output, its status, and whether it has called cargo.
    defp mix(test, arguments, variables \\ []) do
      calls = Path.join(test.app, "cargo_calls")
      File.rm(calls)

      libraries =
        for application <- [:rustler_precompiled, :castore],
            do: application |> :code.lib_dir() |> Path.dirname()

      proxies = for name <- ~w(HTTP_PROXY HTTPS_PROXY http_proxy https_proxy), do: {name, nil}
      unset = for name <- ~w(CARGO_BUILD_TARGET FERROX_BUILD MIX_BUILD_PATH), do: {name, nil}

      environment =
        proxies ++
          unset ++
          [
            {"PATH", Path.join(test.directory, "bin") <> ":" <> System.get_env("PATH")},
            {"ERL_LIBS", libraries |> Enum.uniq() |> Enum.join(":")},
            {"MIX_ENV", "prod"},
            {"FERROX_OFFLINE", "1"},
            {"RUSTLER_PRECOMPILED_GLOBAL_CACHE_PATH", test.cache},
            {"CARGO_CALLS", calls}
            | variables
          ]

      {text, status} =
        System.cmd("mix", arguments, cd: test.app, env: environment, stderr_to_stdout: true)

      {text, status, File.exists?(calls)}
    end

    defp compile(test, variables \\ []), do: mix(test, ["deps.compile"], variables)

    defp downloaded(test) do
      case File.ls(test.cache) do
        {:ok, files} -> files
        {:error, :enoent} -> []
      end
    end

    # The line that says what went wrong, and how to go on.
    defp assert_stops(result, words) do
      assert {text, 1, false = _cargo?} = result

      assert [line] =
               Regex.run(~r/^.*Ferrox's precompiled library can't be installed: .*$/m, text)

      assert line =~ words
      assert line =~ ~r/set FERROX_BUILD=1 to build it with cargo$/
      assert String.length(line) < 700
      refute text =~ ~r/^ +\(\w+ [\d.]+\) /m
      line
    end

    test "a project gets the library without cargo", test do
      expression = "IO.puts(inspect(Ferrox.to_list(Ferrox.add(Ferrox.tensor([1, 2]), 0.5))))"
      assert {text, 0, false} = mix(test, ["run", "-e", expression])
      assert text =~ "[1.5, 2.5]"
      assert downloaded(test) == [Path.basename(test.archive)]

      native = Path.join(test.package, "priv/native")
      assert Enum.sort(File.ls!(native)) == ["ferrox_nif.so", "origin"]
      assert File.read!(Path.join(native, "origin")) == Path.basename(test.archive)

      {text, _, false} = mix(test, ["ferrox.doctor"])
      assert text =~ ~r/^Library    \S+, precompiled, /m

      # The server isn't asked again.
      File.rm_rf!(native)
      set(test, :source_url, "http://127.0.0.1:1")
      assert {_, 0, false} = mix(test, ["deps.compile", "--force"])
      assert File.exists?(Path.join(native, "ferrox_nif.so"))

      # The library that cargo builds takes its place.
      assert {_, 1, true} = mix(test, ["deps.compile", "--force"], [{"FERROX_BUILD", "1"}])
    end

    test "cargo builds where it is told to, or there are no releases", test do
      for variables <- [
            [{"FERROX_BUILD", "1"}],
            [{"RUSTLER_PRECOMPILED_FORCE_BUILD_ALL", "1"}],
            [{"CARGO_BUILD_TARGET", "x86_64-unknown-linux-musl"}]
          ] do
        assert {text, 1, true} = compile(test, variables)
        refute text =~ "because"
      end

      File.mkdir_p!(Path.join(test.app, "config"))
      config = "import Config\nconfig :rustler_precompiled, :force_build, ferrox: true\n"
      File.write!(Path.join(test.app, "config/config.exs"), config)
      assert {_, 1, true} = compile(test)
      File.rm!(Path.join(test.app, "config/config.exs"))

      set(test, :version, @version <> "-dev")
      assert {_, 1, true} = compile(test)
      set(test, :version, @version)

      set(test, :source_url, nil)
      assert {_, 1, true} = compile(test)
      assert downloaded(test) == []
    end

    test "cargo builds what there is no release of, and a line says so", test do
      sparc = [{"TARGET_ARCH", "sparc64"}, {"TARGET_OS", "linux"}, {"TARGET_ABI", "gnu"}]
      assert {text, 1, true} = compile(test, sparc)
      assert text =~ ~r/^Ferrox: cargo builds the .*, because .*: "sparc64-unknown-linux-gnu"$/m

      # The target is one of those, but this release doesn't have it.
      write_checksums(test, %{"libferrox_nif-v#{@version}-nif-2.15-none.so.tar.gz" => "sha256:0"})
      assert {text, 1, true} = compile(test)
      name = Regex.escape(Path.basename(test.archive))
      assert text =~ ~r/^Ferrox: cargo builds the .*, because there is no release of #{name}$/m

      # The repository has no file of checksums.
      File.rm!(Path.join(test.package, @checksums))
      assert {text, 1, true} = compile(test)
      assert text =~ ~r/because there is no release of #{name}$/m
      assert downloaded(test) == []
    end

    test "an archive with another checksum is not unpacked", test do
      write_checksums(test, %{
        Path.basename(test.archive) => "sha256:" <> String.duplicate("0", 64)
      })

      line = assert_stops(compile(test), "the checksum of files does not match")
      cached = Path.join(test.cache, Path.basename(test.archive))
      assert line =~ "delete #{cached} to download it again, or "
      refute File.exists?(Path.join(test.package, "priv/native/ferrox_nif.so"))

      # What the line says helps.
      write_checksums(test, %{Path.basename(test.archive) => sha256(test.archive)})
      File.write!(cached, "what another download has left")
      assert_stops(compile(test), "the checksum of files does not match")
      File.rm!(cached)
      assert {_, 0, false} = compile(test)
    end

    test "a truncated archive is not unpacked", test do
      whole = File.read!(test.archive)
      on_exit(fn -> File.write!(test.archive, whole) end)
      File.write!(test.archive, binary_part(whole, 0, div(byte_size(whole), 2)))
      assert_stops(compile(test), "the checksum of files does not match")

      # It was truncated before its checksum was taken.
      File.rm_rf!(test.cache)
      write_checksums(test, %{Path.basename(test.archive) => sha256(test.archive)})
      assert_stops(compile(test), "can't be installed: ")
      refute File.exists?(Path.join(test.package, "priv/native/ferrox_nif.so"))
    end

    test "an archive that the server doesn't have is named", test do
      name = String.replace(Path.basename(test.archive), @version, "9.9.9")
      set(test, :version, "9.9.9")
      write_checksums(test, %{name => sha256(test.archive)})
      address = "#{test.url}/releases/download/v9.9.9/#{name}"
      line = assert_stops(compile(test), "couldn't fetch NIF from #{address}: ")
      assert line =~ "404"
      refute line =~ "delete"
    end
  end
end
