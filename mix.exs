Code.require_file("native/compiler.exs", __DIR__)

defmodule Ferrox.MixProject do
  use Mix.Project

  @version "0.1.0"

  # The address of the repository. The native libraries of releases are downloaded from below it; as
  # long as it is nil there are none, and cargo builds the library.
  @source_url nil

  def project do
    [
      app: :ferrox,
      version: @version,
      elixir: "~> 1.14",
      elixirc_paths: elixirc_paths(Mix.env()),
      # Files there are data of tests, and the scripts that record them.
      test_ignore_filters: [&String.starts_with?(&1, "test/fixtures/")],
      elixirc_options: [ferrox_nx: if(hex?(), do: :hex, else: nx_on_code_path())],
      compilers: [:ferrox_native | Mix.compilers()],
      # Consolidation collects protocol implementations from the dependencies only. An Nx that
      # is found on the code path is no dependency, and would lose its implementation of Inspect.
      consolidate_protocols: hex?(),
      # Without dependencies Mix would take everything but Nx off the code path, such as an Axon.
      prune_code_paths: hex?(),
      deps: if(hex?(), do: deps(), else: []),
      name: "Ferrox",
      description: "A native CPU backend for Nx, written in Rust",
      source_url: @source_url,
      package: package(),
      docs: docs()
    ]
  end

  def application do
    # Elixir 1.20 warns of applications that aren't there, even of optional ones.
    optional =
      for app <- [:nx, :complex], not hex?(), is_list(:code.lib_dir(app)), do: {app, :optional}

    [mod: {Ferrox.Application, []}, extra_applications: [:logger | optional]]
  end

  defp docs do
    [
      main: "readme",
      source_ref: "v#{@version}",
      extras: [
        "README.md",
        "CONTRIBUTING.md",
        "guides/compiler.md",
        "guides/observing.md",
        "guides/serving.md",
        "guides/backend.md",
        "guides/accuracy.md",
        "guides/numpy.md",
        "guides/promotion.md",
        "guides/promotion_tables.md",
        "guides/tour.livemd",
        "guides/promotion_systems.livemd",
        "guides/images_and_signals.livemd",
        "guides/training.livemd",
        "guides/clustering.livemd",
        "guides/compiling.livemd",
        "examples/data/digits.md",
        "CHANGELOG.md",
        "SECURITY.md",
        "LICENSE"
      ],
      assets: %{"guides/files" => "files", "bench/results" => "bench/results"},
      groups_for_extras: [Guides: ~r"^guides/.*\.md$", Notebooks: ~r"\.livemd$"],
      # It names modules that are hidden.
      skip_undefined_reference_warnings_on: ["CONTRIBUTING.md"],
      groups_for_modules: [
        Nx: [Ferrox.Backend, Ferrox.Defn],
        "The direct API": [Ferrox, Ferrox.LinAlg, Ferrox.FFT, Ferrox.Random],
        "Tensors and types": [Ferrox.Tensor, Ferrox.Type, Ferrox.Complex],
        Files: [Ferrox.Npy, Ferrox.Npz, Ferrox.Csv],
        Promotion: [~r"^Ferrox\.Promotion"],
        Ivy: [~r"^Ferrox\.Ivy"]
      ]
    ]
  end

  defp elixirc_paths(:test), do: ["lib", "test/support"]
  defp elixirc_paths(_env), do: ["lib"]

  # Hex doesn't check which Elixir version a package needs: without the limits it would fetch an Nx
  # that doesn't compile on an older Elixir. No Nx release that Ferrox supports runs on Elixir 1.14.
  defp deps do
    dependencies = [
      {"1.14.0", {:rustler_precompiled, "~> 0.8.2", runtime: false}},
      {"1.15.0-dev", {:nx, nx(), optional: true}},
      {"1.15.0-dev", {:ex_doc, "~> 0.34", only: :dev, runtime: false}}
    ]

    for {oldest, dependency} <- dependencies ++ libraries(), elixir?(oldest), do: dependency
  end

  # What examples, notebooks and some tests need besides, which are left out otherwise.
  defp libraries do
    if System.get_env("FERROX_LIBRARIES", "") in ["", "0"] do
      []
    else
      [
        {"1.17.0-dev", {:axon, "~> 0.8", only: :test}},
        {"1.17.0-dev", {:scholar, "~> 0.4", only: :test}},
        {"1.17.0-dev", {:explorer, "~> 0.11", only: :test}}
      ]
    end
  end

  defp nx, do: if(elixir?("1.17.0-dev"), do: ">= 0.9.0", else: ">= 0.9.0 and < 0.11.0")

  # Whether the dependencies are managed by Hex.
  #
  # Without Hex, Mix refuses a project that has dependencies. Ferrox requires none: without Hex it
  # uses an Nx that is on the code path (ERL_LIBS, or the library directory of OTP). The environment
  # variable FERROX_OFFLINE selects this mode also where Hex is installed.
  defp hex?,
    do: Code.ensure_loaded?(Hex) and System.get_env("FERROX_OFFLINE", "") in ["", "0"]

  defp elixir?(oldest), do: Version.match?(System.version(), ">= #{oldest}")

  # The directory and modification time of the Nx on the code path, or nil.
  #
  # Mix doesn't notice a change of an Nx that isn't a dependency, but recompiles the project when a
  # compiler option changes. So project/0 passes this value as a compiler option.
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
      links: for(url <- List.wrap(@source_url), into: %{}, do: {"Source", url}),
      # The checksums are those of the release's archives, and are not in the repository.
      files:
        ~w(.cargo Cargo.lock Cargo.toml native lib guides examples mix.exs README.md) ++
          ~w(CHANGELOG.md SECURITY.md LICENSE checksum-Elixir.Ferrox.Native.exs)
    ]
  end
end
