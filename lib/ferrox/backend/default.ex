defmodule Ferrox.Backend.Default do
  @moduledoc false
  # Compound operations that Nx computes with others, for which Ferrox has nothing
  # of its own. The tensors that they make on their way are Ferrox's too, whatever
  # the default backend of the process is.

  # Where Nx keeps the default backend of a process.
  @key {Nx, :default_backend}

  @doc "What `fun` gives with Ferrox.Backend as the default."
  @spec run((... -> term), [term]) :: term
  def run(fun, args) do
    previous = Process.put(@key, {Ferrox.Backend, []})

    try do
      apply(fun, args)
    after
      # None of its own is not the same as the global one.
      if previous, do: Process.put(@key, previous), else: Process.delete(@key)
    end
  end
end
