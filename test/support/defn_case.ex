if Code.ensure_loaded?(Nx.Defn) do
  defmodule Ferrox.DefnCase do
    @moduledoc "A test case of functions that `Ferrox` compiles, compared with Nx's evaluator."

    use ExUnit.CaseTemplate

    using do
      quote do
        import Ferrox.DefnCase
        import Nx.Defn

        @moduletag :nx
      end
    end

    setup do
      Nx.default_backend(Ferrox.Backend)
      :ok
    end

    @doc "Asserts that a function, compiled as a whole, gives the evaluator's results, and returns them."
    @spec same!(fun, [term]) :: term
    def same!(fun, args) do
      ours = Nx.Defn.jit_apply(fun, args, compiler: Ferrox, fallback: :raise)
      assert ours == Nx.Defn.jit_apply(fun, args, compiler: Nx.Defn.Evaluator)
      ours
    end

    @doc "What `Ferrox.Defn.explain/2` prints."
    @spec explained(fun, [term]) :: String.t()
    def explained(fun, args),
      do: ExUnit.CaptureIO.capture_io(fn -> Ferrox.Defn.explain(fun, args) end)
  end
end
