defmodule Mix.Tasks.Compile.FerroxNative do
  @moduledoc false
  # A Mix compiler: puts the native library into priv/native. It unpacks the library of a release, or
  # builds native/ferrox_nif with cargo; origin/1 says which.
  #
  # mix.exs requires this file. It is not in lib/, because Mix needs this compiler before it
  # compiles any module of Ferrox, also when Ferrox is a dependency. Cargo runs on every
  # compilation: cargo itself decides whether anything must be rebuilt, and returns quickly if not.

  use Mix.Task.Compiler

  @compile {:no_warn_undefined, [RustlerPrecompiled, RustlerPrecompiled.Config]}

  @root Path.expand("..", __DIR__)

  # Says where the library is from: "cargo", or the name of a release's archive.
  @origin Path.join(@root, "priv/native/origin")

  # The NIF version for which rustler compiles by default. bin/release reads it here.
  @nif_version "2.15"

  # The libraries to build: Ferrox's own library, and for the tests of this project also a library
  # with a NIF that panics.
  @libraries if Mix.env() == :test, do: ["ferrox_nif", "panic_nif"], else: ["ferrox_nif"]

  @impl true
  def run(_args) do
    case origin(Mix.Project.config()) do
      {:release, config, metadata} ->
        unpack(config, metadata)

      :cargo ->
        build()

      {:cargo, reason} ->
        Mix.shell().info("Ferrox: cargo builds the native library, because #{reason}")
        build()
    end
  end

  # Where the library comes from: the first case that applies, here and in released/1. A reason is
  # given where a release could have been expected.
  defp origin(project) do
    cond do
      # Ferrox's own tests test what cargo builds.
      "panic_nif" in @libraries -> :cargo
      # There are no releases.
      project[:source_url] == nil -> :cargo
      # Dependencies aren't managed by Hex.
      not Code.ensure_loaded?(RustlerPrecompiled) -> :cargo
      # Only cargo knows this variable.
      set?("CARGO_BUILD_TARGET") -> :cargo
      set?("FERROX_BUILD") or set?("RUSTLER_PRECOMPILED_FORCE_BUILD_ALL") -> :cargo
      Application.get_env(:rustler_precompiled, :force_build_all, false) -> :cargo
      Application.get_env(:rustler_precompiled, :force_build, [])[project[:app]] -> :cargo
      true -> released(project)
    end
  end

  # These three functions of rustler_precompiled are what `use RustlerPrecompiled` calls. That itself
  # isn't used: it fixes the argument of the library's load function when Ferrox is compiled, which is
  # the number of threads and configured at run time, and it can only build by way of Rustler's own
  # compiler.
  defp released(project) do
    config =
      RustlerPrecompiled.Config.new(
        otp_app: project[:app],
        module: Ferrox.Native,
        crate: "ferrox_nif",
        version: project[:version],
        base_url: "#{project[:source_url]}/releases/download/v#{project[:version]}",
        targets: targets(),
        nif_versions: [@nif_version],
        force_build: false
      )

    case RustlerPrecompiled.build_metadata(config) do
      # A development version: "dev" stands in it.
      _ when config.force_build? ->
        :cargo

      {:error, message} ->
        {:cargo, message |> String.split("\n") |> hd() |> String.trim_trailing(".")}

      {:ok, %{file_name: archive} = metadata} ->
        if is_map_key(checksums(), archive),
          do: {:release, config, metadata},
          else: {:cargo, "there is no release of #{archive}"}
    end
  end

  # The file is part of packages, but not of the repository.
  defp checksums do
    file = Path.join(@root, "checksum-Elixir.Ferrox.Native.exs")
    if File.regular?(file), do: file |> Code.eval_file() |> elem(0), else: %{}
  end

  @doc false
  def targets do
    for line <- @root |> Path.join("native/targets.txt") |> File.stream!(),
        not String.starts_with?(line, "#"),
        do: String.trim(line)
  end

  defp set?(variable), do: System.get_env(variable, "") not in ["", "0"]

  ## The library of a release

  defp unpack(config, metadata) do
    # rustler_precompiled unpacks into priv/ of the build, which it finds on the code path, and which
    # must be a link to this one by then. On Windows it is a copy.
    File.mkdir_p!(Path.dirname(@origin))
    Mix.Project.build_structure()
    File.mkdir_p!(Mix.Project.compile_path())
    Code.prepend_path(Mix.Project.compile_path())

    # Mix hides parts of OTP that the project doesn't use when it runs, since Elixir 1.15.
    if function_exported?(Mix, :ensure_application!, 1),
      do: for(part <- [:crypto, :inets, :ssl], do: apply(Mix, :ensure_application!, [part]))

    with {:ok, %{load_from: {app, path}}} <-
           RustlerPrecompiled.download_or_reuse_nif_file(config, metadata),
         unpacked = Application.app_dir(app, path) <> extension(metadata.target),
         installed when installed in [:ok, :same] <-
           install(unpacked, installed("ferrox_nif", metadata.target)) do
      File.rm(unpacked)
      finish([installed], metadata.file_name)
    else
      {:error, reason} ->
        cached = metadata.cached_tar_gz

        again =
          if File.exists?(cached), do: "delete #{cached} to download it again, or ", else: ""

        Mix.raise(
          "Ferrox's precompiled library can't be installed: #{one_line(reason)}: #{again}" <>
            "set FERROX_BUILD=1 to build it with cargo"
        )
    end
  end

  # Ends a compilation. On the first one, priv/ didn't exist yet when Mix linked it into _build.
  defp finish(installed, origin) do
    if :ok in installed or File.read(@origin) != {:ok, origin} do
      File.write!(@origin, origin)
      Mix.Project.build_structure()
      {:ok, []}
    else
      {:noop, []}
    end
  end

  # Answers of servers are part of some reasons.
  defp one_line(reason) do
    text = if is_binary(reason), do: reason, else: to_string(:erl_tar.format_error(reason))
    line = String.replace(text, ~r/\s+/, " ")
    if String.length(line) > 300, do: String.slice(line, 0, 300) <> "...", else: line
  end

  ## The library that cargo builds

  defp build do
    cargo = cargo!()
    target = System.get_env("CARGO_BUILD_TARGET")
    target_dir = Path.expand(System.get_env("CARGO_TARGET_DIR") || "target", @root)

    # --target-dir is passed even if it is cargo's default, so that a `build.target-dir` in the
    # user's cargo configuration doesn't move the library.
    packages = Enum.flat_map(@libraries, &["-p", &1])
    args = ["build", "--profile", "native", "--target-dir", target_dir | packages]

    if cargo(cargo, args) != 0 do
      Mix.raise("Ferrox's native library could not be built: cargo's own message is above")
    end

    @libraries
    |> Enum.map(&install_library(&1, target, target_dir))
    |> finish("cargo")
  end

  defp install_library(library, target, target_dir) do
    built = Path.join([target_dir, target || "", "native", built_name(library, target)])

    with {:error, reason} <- install(built, installed(library, target)) do
      Mix.raise(
        "cargo has built Ferrox's native library, but #{built} can't be put in priv/native: " <>
          "#{:file.format_error(reason)} (a target set in cargo's configuration must be " <>
          "in CARGO_BUILD_TARGET too; on Windows, stop every VM that uses Ferrox)"
      )
    end
  end

  @impl true
  def manifests,
    do: Enum.map(@libraries, &installed(&1, System.get_env("CARGO_BUILD_TARGET")))

  # Keeps cargo's target directory: cargo never uses a stale file from it, and `cargo clean` frees
  # its disk space.
  @impl true
  def clean do
    File.rm_rf!(Path.join(@root, "priv/native"))
    :ok
  end

  defp cargo! do
    home = System.get_env("CARGO_HOME") || Path.join(System.user_home() || "/", ".cargo")

    System.find_executable("cargo") || System.find_executable(Path.join(home, "bin/cargo")) ||
      Mix.raise(
        "Ferrox's native library is written in Rust, and cargo isn't on the PATH: " <>
          "install Rust from https://rustup.rs or with your package manager"
      )
  end

  # Runs cargo, prints its output line by line, and returns its exit status. A single line
  # "Finished ..." is not printed, because then cargo had nothing to build.
  defp cargo(cargo, args) do
    colour = if IO.ANSI.enabled?(), do: "always", else: "never"

    port =
      Port.open({:spawn_executable, cargo}, [
        :binary,
        :exit_status,
        :hide,
        :stderr_to_stdout,
        line: 65_536,
        cd: @root,
        args: args ++ ["--color", colour]
      ])

    stream(port, _silent? = true, "")
  end

  defp stream(port, silent?, line) do
    receive do
      {^port, {:data, {:noeol, part}}} ->
        stream(port, silent?, line <> part)

      {^port, {:data, {:eol, rest}}} ->
        line = line <> rest

        if silent? and line =~ ~r/^(\e\[[\d;]*m|\s)*Finished/ do
          stream(port, true, "")
        else
          Mix.shell().info(line)
          stream(port, false, "")
        end

      {^port, {:exit_status, status}} ->
        status
    end
  end

  defp built_name(library, target) do
    case platform(target) do
      :windows -> "#{library}.dll"
      :macos -> "lib#{library}.dylib"
      :unix -> "lib#{library}.so"
    end
  end

  defp installed(library, target),
    do: Path.join(@root, "priv/native/#{library}#{extension(target)}")

  # The VM loads a .dll on Windows, and a .so on all other systems, macOS included.
  defp extension(target), do: if(platform(target) == :windows, do: ".dll", else: ".so")

  defp platform(nil) do
    case :os.type() do
      {:win32, _} -> :windows
      {:unix, :darwin} -> :macos
      {:unix, _} -> :unix
    end
  end

  defp platform(target) do
    cond do
      target =~ "windows" -> :windows
      target =~ "apple" -> :macos
      true -> :unix
    end
  end

  # Replaces the library by renaming a new file, and never overwrites it in place, because a running
  # VM may have the old file mapped into memory.
  defp install(built, installed) do
    temporary = "#{installed}.#{System.pid()}"

    with {:ok, library} <- File.read(built) do
      if File.read(installed) == {:ok, library} do
        :same
      else
        with :ok <- File.mkdir_p(Path.dirname(installed)),
             :ok <- File.write(temporary, library),
             {:error, reason} <- File.rename(temporary, installed) do
          File.rm(temporary)
          {:error, reason}
        end
      end
    end
  end
end
