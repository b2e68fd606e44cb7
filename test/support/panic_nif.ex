defmodule Ferrox.PanicNif do
  @moduledoc false
  # A library of its own, so that the one that is shipped has no NIF that exists for a test.

  @on_load :load

  @doc false
  def load do
    :ferrox |> :code.priv_dir() |> :filename.join(~c"native/panic_nif") |> :erlang.load_nif(0)
  end

  @doc "Panics on a normal scheduler."
  def panic_normal(_message), do: :erlang.nif_error(:not_loaded)

  @doc "Panics on a dirty scheduler."
  def panic_dirty(_message), do: :erlang.nif_error(:not_loaded)
end
