defmodule Mix.Tasks.Compile.FerroxNative do
  @moduledoc false
  # Builds native/ferrox_nif with cargo and puts the library in priv/native.
  #
  # It stands in mix.exs, not in lib/, because it must be there before anything
  # of Ferrox is compiled, also when Ferrox is a dependency. Cargo is asked on
  # every compilation: it knows best what has changed, and says so in 0.1 s.

  use Mix.Task.Compiler

  @root __DIR__

  @impl true
  def run(_args) do
    cargo = cargo!()
    target = System.get_env("CARGO_BUILD_TARGET")
    target_dir = Path.expand(System.get_env("CARGO_TARGET_DIR") || "target", @root)

    # The directory is named even where it is cargo's default, so that a
    # `build.target-dir` in the user's own configuration can't move the library.
    args = ["build", "--profile", "native", "-p", "ferrox_nif", "--target-dir", target_dir]

    if cargo(cargo, args) != 0 do
      Mix.raise("Ferrox's native library could not be built: cargo's own message is above")
    end

    built = Path.join([target_dir, target || "", "native", built_name(target)])

    case install(built, installed(target)) do
      :same ->
        {:noop, []}

      :ok ->
        # On the first compilation of a fresh clone priv/ didn't exist when Mix
        # linked it into _build.
        Mix.Project.build_structure()
        {:ok, []}

      {:error, reason} ->
        Mix.raise(
          "cargo has built Ferrox's native library, but #{built} can't be put in priv/native: " <>
            "#{:file.format_error(reason)} (a target set in cargo's configuration must be " <>
            "in CARGO_BUILD_TARGET too; on Windows, stop every VM that uses Ferrox)"
        )
    end
  end

  @impl true
  def manifests, do: [installed(System.get_env("CARGO_BUILD_TARGET"))]

  # Cargo's target directory stays: cargo never takes a stale file from it, and
  # `cargo clean` is there for those who want the space back.
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

  # Shows what cargo says as it says it, except the one line that tells that
  # nothing had to be done.
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

  defp built_name(target) do
    case platform(target) do
      :windows -> "ferrox_nif.dll"
      :macos -> "libferrox_nif.dylib"
      :unix -> "libferrox_nif.so"
    end
  end

  # The VM looks for .dll on Windows and for .so everywhere else, macOS included.
  defp installed(target) do
    extension = if platform(target) == :windows, do: "dll", else: "so"
    Path.join(@root, "priv/native/ferrox_nif.#{extension}")
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

  # A running VM may have the old library mapped: it is replaced by a rename,
  # never written over.
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

defmodule Ferrox.MixProject do
  use Mix.Project

  @version "0.1.0"

  def project do
    [
      app: :ferrox,
      version: @version,
      elixir: "~> 1.14",
      elixirc_paths: elixirc_paths(Mix.env()),
      elixirc_options: [ferrox_nx: if(hex?(), do: :hex, else: nx_on_code_path())],
      compilers: [:ferrox_native | Mix.compilers()],
      # Consolidated protocols know only the implementations of dependencies:
      # an Nx found on the code path would lose its Inspect.
      consolidate_protocols: hex?(),
      deps: if(hex?(), do: deps(), else: []),
      name: "Ferrox",
      description: "A native CPU backend for Nx, written in Rust",
      package: package(),
      docs: docs()
    ]
  end

  def application do
    if hex?(), do: [], else: [extra_applications: [nx: :optional, complex: :optional]]
  end

  defp docs do
    [
      main: "readme",
      extras: [
        "README.md",
        "guides/backend.md",
        "guides/accuracy.md",
        "guides/promotion.md",
        "guides/promotion_tables.md",
        "CHANGELOG.md",
        "LICENSE"
      ],
      assets: %{"guides/assets" => "assets", "bench/results" => "bench/results"},
      groups_for_extras: [Guides: ~r"^guides/"],
      groups_for_modules: [
        Promotion: [~r"^Ferrox\.Promotion"],
        "Tensors and types": [Ferrox.Tensor, Ferrox.Type, Ferrox.Complex, Ferrox.Npy]
      ]
    ]
  end

  defp elixirc_paths(:test), do: ["lib", "test/support"]
  defp elixirc_paths(_env), do: ["lib"]

  # Hex doesn't ask which Elixir a package needs, so it would bring an Nx that
  # can't be compiled here.
  defp deps do
    nx = if elixir?("1.17.0-dev"), do: ">= 0.9.0", else: ">= 0.9.0 and < 0.11.0"

    [
      {:nx, nx, optional: true},
      {:ex_doc, "~> 0.34", only: :dev, runtime: false}
    ]
  end

  # Without Hex, Mix refuses a project that has dependencies. Ferrox needs none:
  # an Nx that is on the code path (ERL_LIBS, or OTP's own library directory) is
  # used all the same. FERROX_OFFLINE chooses that where Hex is there as well.
  # No Nx that Ferrox works with runs on an Elixir older than 1.15.
  defp hex? do
    Code.ensure_loaded?(Hex) and elixir?("1.15.0-dev") and
      System.get_env("FERROX_OFFLINE", "") in ["", "0"]
  end

  defp elixir?(oldest), do: Version.match?(System.version(), ">= #{oldest}")

  # Mix doesn't watch an Nx that isn't a dependency. It compiles everything anew
  # when a compiler option has changed, so which Nx was found is made one.
  defp nx_on_code_path do
    with lib when is_list(lib) <- :code.lib_dir(:nx),
         {:ok, %{mtime: mtime}} <- File.stat(Path.join(lib, "ebin/Elixir.Nx.beam")) do
      {lib, mtime}
    else
      _ -> nil
    end
  end

  defp package do
    [
      licenses: ["Apache-2.0"],
      links: %{},
      files:
        ~w(.cargo Cargo.lock Cargo.toml native lib guides mix.exs README.md CHANGELOG.md LICENSE)
    ]
  end
end
