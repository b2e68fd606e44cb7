defmodule Ferrox.PromotionGuideTest do
  # What the guides say and show. The files that are generated are written anew
  # with FERROX_UPDATE=1.
  use ExUnit.Case, async: true

  alias Ferrox.Promotion.Table

  doctest Ferrox.PromotionGuide

  @guides Path.expand("../../guides", __DIR__)

  for {file, mode} <- [
        {"lattice_jax", :jax},
        {"lattice_jax_x32", {:jax, x64: false}},
        {"lattice_jax_strict", {:jax, strict: true}}
      ] do
    test "#{file}.svg is current" do
      current("files/#{unquote(file)}.svg", Table.lattice(unquote(mode), :svg))
    end
  end

  test "promotion_tables.md is current" do
    current("promotion_tables.md", tables())
  end

  test "pictures and pages that the guide names are there" do
    guide = File.read!(Path.join(@guides, "promotion.md"))

    for [_, file] <- Regex.scan(~r/\]\(([^)#]+\.(?:svg|md))/, guide) do
      assert File.exists?(Path.join(@guides, file)), file
    end
  end

  defp current(file, content) do
    path = Path.join(@guides, file)
    if System.get_env("FERROX_UPDATE") == "1", do: File.write!(path, content)
    assert File.read!(path) == content, "#{file} is out of date: run with FERROX_UPDATE=1"
  end

  @systems [
    {"JAX", :jax,
     "The joins of this lattice:\n\n![The lattice of JAX](files/lattice_jax.svg)\n\n"},
    {"JAX without types of 64 bits", {:jax, x64: false},
     "![Its lattice](files/lattice_jax_x32.svg)\n\n"},
    {"JAX, strict", {:jax, strict: true}, "![Its lattice](files/lattice_jax_strict.svg)\n\n"},
    {"NumPy", :numpy, ""},
    {"NumPy before 2", {:numpy, scalar: :legacy}, ""},
    {"Array API", :array_api, ""},
    {"Ivy", :ivy, ""},
    {"Ivy, not precise", {:ivy, precise: false}, ""},
    {"Nx", :nx, "Nx has no weak types: it looks at the value of a number.\n\n"},
    {"Nx 0.9", :nx_0_9, ""},
    {"Ivy's frontend of Torch", :ivy_torch, ""},
    {"Ivy's frontend of Paddle", :ivy_paddle, ""},
    {"Ivy's frontend of NumPy", :ivy_numpy, ""},
    {"Ivy's frontend of JAX", :ivy_jax, ""},
    {"Ivy's frontend of ONNX", :ivy_onnx, ""},
    {"Ivy's frontend of MXNet", :ivy_mxnet, ""},
    {"Ivy's frontend of TensorFlow", :ivy_tensorflow, ""}
  ]

  test "every system has its table" do
    shown = for {_, mode, _} <- @systems, do: if(is_tuple(mode), do: elem(mode, 0), else: mode)
    assert Enum.sort(Enum.uniq(shown)) == Enum.sort(Ferrox.Promotion.systems())
  end

  defp tables do
    """
    # The promotion of all pairs

    Types carry the codes of JAX's document, which count bytes: `f4` is a float of 32 bits, `i*`, `f*` and `c*` are plain numbers. Nx's own types keep their names. A dash stands for what a system refuses. Bold are results that differ from NumPy's, and whatever meets a type that NumPy doesn't have. `mix ferrox.promote --table jax --format html` prints such a table; see [the guide](promotion.md) for what they mean.
    """ <>
      Enum.map_join(@systems, fn {name, mode, text} ->
        "\n## #{name}\n\n#{text}" <> Table.format(mode, :markdown)
      end)
  end
end
