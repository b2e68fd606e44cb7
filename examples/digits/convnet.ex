defmodule Digits.ConvNet do
  @moduledoc """
  A small convolutional net in Axon that reads the digits. Nothing here names a backend
  or a compiler.
  """

  @doc "Digits as images of shape `{n, 8, 8, 1}`, from 0 to 1, and targets of shape `{n, 10}`."
  def tensors(digits) do
    {images, labels} = Digits.Data.tensors(digits)
    images = images |> Ferrox.to_nx() |> Nx.divide(16) |> Nx.reshape({:auto, 8, 8, 1})
    {images, Nx.equal(Nx.new_axis(Ferrox.to_nx(labels), 1), Nx.iota({10}))}
  end

  @doc "Two convolutions, each followed by pooling, and a layer for the ten digits."
  def model do
    Axon.input("images", shape: {nil, 8, 8, 1})
    |> Axon.conv(16, kernel_size: 3, padding: :same, activation: :relu)
    |> Axon.max_pool(kernel_size: 2)
    |> Axon.conv(32, kernel_size: 3, padding: :same, activation: :relu)
    |> Axon.max_pool(kernel_size: 2)
    |> Axon.flatten()
    |> Axon.dense(10, activation: :softmax)
  end

  @doc """
  Trains on batches for that many epochs; after each, `report` is called with its number,
  and the means of the loss and the accuracy of its steps.
  """
  def train(model, batches, epochs, report \\ fn _epoch, _loss, _accuracy -> :ok end) do
    note = fn %{epoch: epoch, metrics: %{"loss" => loss, "accuracy" => accuracy}} = loop ->
      report.(epoch + 1, Nx.to_number(loss), Nx.to_number(accuracy))
      {:continue, loop}
    end

    optimizer = Polaris.Optimizers.adam(learning_rate: 0.005)

    model
    |> Axon.Loop.trainer(:categorical_cross_entropy, optimizer, log: 0, seed: 1)
    |> Axon.Loop.metric(:accuracy)
    |> Axon.Loop.handle_event(:epoch_completed, note)
    |> Axon.Loop.run(batches, Axon.ModelState.empty(), epochs: epochs)
  end

  @doc "The digit that each image shows, as the model reads it."
  def predict(model, state, images),
    do: model |> Axon.predict(state, images) |> Nx.argmax(axis: 1) |> Nx.to_list()
end
