if Code.ensure_loaded?(Nx) do
  # Nx's own doctests, run on Ferrox.Backend, and each operation compiled: all but the two of erf_inv in f64,
  # whose values are right to seven digits, as 0.08885598780483887 for 0.0888559904942577. Ferrox gives the
  # nearest number, which corners_test.exs asks for.
  #
  # Some of Nx's doctests call what Nx deprecates. A module defined in a task is not searched for such calls,
  # whose warnings would fail our tests.
  define = fn module, backend ->
    defmodule module do
      use ExUnit.Case, async: false

      @moduletag :nx
      @moduletag :capture_log

      @backend backend

      setup do
        Nx.default_backend(@backend)
        :ok
      end

      doctest Nx, except: [erf_inv: 1]
      doctest Nx.Random

      # Older releases ask a backend for a factorization by a name that expressions don't have.
      if backend == Ferrox.Backend or Code.ensure_loaded?(Nx.Block.LinAlg.SVD),
        do: doctest(Nx.LinAlg)
    end
  end

  for {module, backend} <- [
        {Ferrox.NxDoctestTest, Ferrox.Backend},
        {Ferrox.Defn.NxDoctestTest, Ferrox.CompiledBackend}
      ],
      do: fn -> define.(module, backend) end |> Task.async() |> Task.await(:infinity)
end
