defmodule Ferrox.Application do
  @moduledoc false
  # Owns the compiler's caches.

  use Application

  @impl Application
  def start(_type, _args) do
    children = [{Ferrox.Defn.Cache, :functions}, {Ferrox.Defn.Cache, :programs}]
    Supervisor.start_link(children, strategy: :one_for_one, name: Ferrox.Supervisor)
  end
end
