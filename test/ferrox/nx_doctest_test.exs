if Code.ensure_loaded?(Nx) do
  defmodule Ferrox.NxDoctestTest do
    # Nx's own doctests, run on Ferrox.Backend: all of them.
    use ExUnit.Case, async: false

    @moduletag :nx

    setup do
      Nx.default_backend(Ferrox.Backend)
      :ok
    end

    doctest Nx
    doctest Nx.LinAlg
    doctest Nx.Random
  end
end
