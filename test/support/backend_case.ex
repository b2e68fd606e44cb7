if Code.ensure_loaded?(Nx) do
  defmodule Ferrox.BackendCase do
    @moduledoc "A test case of Ferrox.Backend, with functions that put tensors on it and find them there."

    use ExUnit.CaseTemplate

    using do
      quote do
        import Ferrox.BackendCase

        alias Ferrox.Backend

        @moduletag :nx
      end
    end

    @doc "A tensor on Ferrox.Backend."
    @spec on_ferrox(term, keyword) :: Nx.Tensor.t()
    def on_ferrox(value, opts \\ []), do: Nx.tensor(value, [backend: Ferrox.Backend] ++ opts)

    @doc "The backend of a tensor."
    @spec backend(Nx.Tensor.t()) :: module
    def backend(%{data: %module{}}), do: module
  end
end
