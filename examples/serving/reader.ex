defmodule Digits.Reader do
  @moduledoc """
  The model of `Digits.NxClassifier` behind `Nx.Serving`: a request is a list of
  pictures, 64 bytes each, the answer the node that has read them and a tensor of
  digits.
  """

  alias Digits.NxClassifier

  @doc """
  Starts to serve on this node; in an application, the child would be one of its
  supervision tree.
  """
  def start(params, batch_size) do
    child = {
      Nx.Serving,
      # How long the first request of a batch waits for others, in milliseconds.
      serving: serving(params, batch_size),
      name: __MODULE__,
      batch_size: batch_size,
      batch_timeout: 2
    }

    {:ok, supervisor} = Supervisor.start_link([child], strategy: :one_for_one)
    Process.unlink(supervisor)
    supervisor
  end

  @doc "The serving, which `Nx.Serving.run/2` runs in the calling process."
  def serving(params, batch_size) do
    compile = fn options ->
      # All batches are filled up to one size, so that there is one program.
      images = Nx.template({batch_size, 64}, :u8)
      read = Nx.Defn.compile(&NxClassifier.predict/2, [params, images], options)
      fn batch -> read.(params, Nx.Batch.pad(batch, batch_size - batch.size)) end
    end

    Nx.Serving.new(compile, compiler: Ferrox)
    |> Nx.Serving.batch_size(batch_size)
    |> Nx.Serving.client_preprocessing(&{batch(&1), :no_info})
    |> Nx.Serving.client_postprocessing(fn {digits, _}, :no_info -> {node(), digits} end)
    |> Nx.Serving.distributed_postprocessing(&on_binary_backend/1)
  end

  @doc """
  Asks the serving of this node, or else of one of the nodes that this one is
  connected to: `{:ok, {node, digits}}`, or `{:error, reason}` if the node goes away
  before it has answered, or none serves.
  """
  def read(pictures) do
    {:ok, Nx.Serving.batched_run(__MODULE__, pictures)}
  catch
    :exit, {reason, _call} -> {:error, reason}
  end

  defp batch(pictures) do
    images = pictures |> IO.iodata_to_binary() |> Nx.from_binary(:u8) |> Nx.reshape({:auto, 64})
    Nx.Batch.concatenate([images])
  end

  # The node of the request may have no Ferrox. Nothing is copied.
  defp on_binary_backend({node, digits}),
    do: {node, Nx.backend_transfer(digits, Nx.BinaryBackend)}
end
