defmodule Ferrox.PromotionGuide do
  guide = Path.expand("../../guides/promotion.md", __DIR__)
  @external_resource guide
  # Doctests are taken from documentation, on every version of Elixir.
  @moduledoc File.read!(guide)
end
