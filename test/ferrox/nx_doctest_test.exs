if Code.ensure_loaded?(Nx) do
  # Some of Nx's doctests call what Nx deprecates. A module defined in a task is not
  # searched for such calls, whose warnings would fail our tests.
  define = fn ->
    defmodule Ferrox.NxDoctestTest do
      # Nx's own doctests, run on Ferrox.Backend: all but the two of erf_inv in f64, whose values
      # are right to seven digits, as 0.08885598780483887 for 0.0888559904942577. Ferrox gives the
      # nearest number, which corners_test.exs asks for.
      use ExUnit.Case, async: false

      @moduletag :nx

      setup do
        Nx.default_backend(Ferrox.Backend)
        :ok
      end

      doctest Nx, except: [erf_inv: 1]
      doctest Nx.LinAlg
      doctest Nx.Random
    end
  end

  define |> Task.async() |> Task.await(:infinity)
end
