if Code.ensure_loaded?(Nx.Defn) do
  # A module defined in a task is not searched for calls of what Nx deprecates.
  define = fn ->
    defmodule Ferrox.Defn.NxDoctestTest do
      # Nx's own doctests, each operation of which is compiled.
      use ExUnit.Case, async: false

      @moduletag :nx
      @moduletag :capture_log

      setup do
        Nx.default_backend(Ferrox.CompiledBackend)
        :ok
      end

      doctest Nx, except: [erf_inv: 1]
      # Older releases ask a backend for a factorization by a name that expressions don't have.
      if Code.ensure_loaded?(Nx.Block.LinAlg.SVD), do: doctest(Nx.LinAlg)
      doctest Nx.Random
    end
  end

  define |> Task.async() |> Task.await(:infinity)
end
