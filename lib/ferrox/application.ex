defmodule Ferrox.Application do
  @moduledoc false
  # Owns the compiler's cache.

  use Application

  @impl Application
  def start(_type, _args) do
    Supervisor.start_link([Ferrox.Defn.Cache], strategy: :one_for_one, name: Ferrox.Supervisor)
  end
end
