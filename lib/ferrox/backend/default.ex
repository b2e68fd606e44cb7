defmodule Ferrox.Backend.Default do
  @moduledoc false
  # Runs Nx's own definition of a compound operation that Ferrox has no native code for. While it
  # runs, Ferrox.Backend is the default backend of the process, so that the intermediate tensors
  # that Nx creates are Ferrox's too, whatever default backend the caller has set.

  # The key of the process dictionary under which Nx stores the default backend of a process.
  @default_backend_key {Nx, :default_backend}

  @doc """
  Calls `fun` with `args` while Ferrox.Backend is the default backend of the process, and returns
  its result. The previous default backend is restored, also if `fun` raises.
  """
  @spec run((... -> term), [term]) :: term
  def run(fun, args) do
    previous = Process.put(@default_backend_key, {Ferrox.Backend, []})

    try do
      apply(fun, args)
    after
      # A process without a default backend of its own follows the global one, so the key is deleted
      # and not set to the global default.
      if previous,
        do: Process.put(@default_backend_key, previous),
        else: Process.delete(@default_backend_key)
    end
  end
end
