defmodule Mix.Tasks.Compile.FerroxNative do
  @moduledoc false
  # A Mix compiler: builds native/ferrox_nif with cargo and copies the library to priv/native.
  #
  # mix.exs requires this file. It is not in lib/, because Mix needs this compiler before it
  # compiles any module of Ferrox, also when Ferrox is a dependency. Cargo runs on every
  # compilation: cargo itself decides whether anything must be rebuilt, and returns quickly if not.

  use Mix.Task.Compiler

  @root Path.expand("..", __DIR__)

  # The libraries to build: Ferrox's own library, and for the tests of this project also a library
  # with a NIF that panics.
  @libraries if Mix.env() == :test, do: ["ferrox_nif", "panic_nif"], else: ["ferrox_nif"]

  @impl true
  def run(_args) do
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

    installed = Enum.map(@libraries, &install_library(&1, target, target_dir))
    if :ok in installed, do: {:ok, []}, else: {:noop, []}
  end

  defp install_library(library, target, target_dir) do
    built = Path.join([target_dir, target || "", "native", built_name(library, target)])

    case install(built, installed(library, target)) do
      :same ->
        :same

      :ok ->
        # On the first compilation of a fresh clone, priv/ didn't exist yet when Mix linked it into
        # _build.
        Mix.Project.build_structure()
        :ok

      {:error, reason} ->
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

  # The VM loads a .dll on Windows, and a .so on all other systems, macOS included.
  defp installed(library, target) do
    extension = if platform(target) == :windows, do: "dll", else: "so"
    Path.join(@root, "priv/native/#{library}.#{extension}")
  end

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
