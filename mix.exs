Code.require_file("native/compiler.exs", __DIR__)

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
        "CONTRIBUTING.md",
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
