if Code.ensure_loaded?(Nx) do
  # Some of Nx's doctests call what Nx deprecates. A module defined in a task is not
  # searched for such calls, whose warnings would fail our tests.
  define = fn ->
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

  define |> Task.async() |> Task.await(:infinity)
end
