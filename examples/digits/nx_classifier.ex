defmodule Digits.NxClassifier do
  @moduledoc """
  The model of `Digits.Classifier` in Nx: only the loss is written down, `defn`
  finds its gradient. Nothing here names a backend or a compiler.
  """

  import Nx.Defn

  @doc "Trains for that many epochs, which are passes over all batches."
  def train(batches, epochs, learning_rate) do
    step = compile_step(batches, learning_rate)

    Enum.reduce(1..epochs, init(), fn _epoch, params ->
      Enum.reduce(batches, params, fn batch, params ->
        {_loss, params} = step.(params, batch, learning_rate)
        params
      end)
    end)
  end

  @doc "Parameters to start from. There is a single minimum, so zeros will do."
  def init, do: {Nx.broadcast(0.0, {64, 10}), Nx.broadcast(0.0, {10})}

  @doc "`step/3` for batches of this shape: traced and differentiated once, not at every call."
  def compile_step([batch | _], learning_rate),
    do: Nx.Defn.compile(&step/3, [init(), batch, learning_rate])

  @doc "A step of gradient descent: the loss of the batch, and better parameters."
  defn step({weights, bias} = params, {images, labels}, learning_rate) do
    {loss, {weights_gradient, bias_gradient}} = value_and_grad(params, &loss(&1, images, labels))
    {loss, {weights - learning_rate * weights_gradient, bias - learning_rate * bias_gradient}}
  end

  @doc "The digit that each image shows, as the model reads it."
  defn(predict(params, images), do: params |> scores(images) |> Nx.argmax(axis: 1))

  @doc "The share of images that are read as their labels say."
  defn(accuracy(params, {images, labels}), do: Nx.mean(predict(params, images) == labels))

  defnp loss(params, images, labels) do
    scores = scores(params, images)

    # The largest score is taken off so that no exponential overflows. It cancels
    # out, so it has no part in the gradient.
    shifted = scores - stop_grad(Nx.reduce_max(scores, axes: [1], keep_axes: true))
    total = shifted |> Nx.exp() |> Nx.sum(axes: [1], keep_axes: true)
    targets = Nx.new_axis(labels, 1) == Nx.iota({10})
    -Nx.mean(Nx.sum(targets * (shifted - Nx.log(total)), axes: [1]))
  end

  defnp(scores({weights, bias}, images), do: Nx.dot(images / 16, weights) + bias)
end
