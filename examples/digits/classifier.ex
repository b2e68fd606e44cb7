defmodule Digits.Classifier do
  @moduledoc """
  A softmax classifier on Ferrox's direct API, its gradient written by hand.

  The parameters are `{weights, bias}`, of shapes `{64, 10}` and `{10}`: a picture's
  score for each of the ten digits is a weighted sum of its pixels.
  """

  @doc """
  Trains for that many epochs, which are passes over all batches.

  After each, `report` is called with its number, the mean loss of its steps and
  the parameters.
  """
  def train(batches, epochs, learning_rate, report \\ fn _epoch, _loss, _params -> :ok end) do
    Enum.reduce(1..epochs, init(), fn epoch, params ->
      {losses, params} = Enum.map_reduce(batches, params, &step(&2, &1, learning_rate))
      report.(epoch, Enum.sum(losses) / length(losses), params)
      params
    end)
  end

  @doc "Parameters to start from. There is a single minimum, so zeros will do."
  def init, do: {Ferrox.full({64, 10}, 0.0), Ferrox.full({10}, 0.0)}

  @doc "A step of gradient descent: the loss of the batch, and better parameters."
  def step({weights, bias}, {images, labels}, learning_rate) do
    inputs = scale(images)
    log_probabilities = inputs |> scores(weights, bias) |> log_softmax()
    targets = one_hot(labels)
    loss = targets |> Ferrox.multiply(log_probabilities) |> Ferrox.sum(axes: [1]) |> Ferrox.mean()

    # The gradient of the loss by the scores is the difference between what the
    # model expects and what it should; the chain rule does the rest.
    error = log_probabilities |> Ferrox.exp() |> Ferrox.subtract(targets)
    scores_gradient = Ferrox.divide(error, Ferrox.size(labels))
    weights_gradient = Ferrox.dot(inputs, [0], scores_gradient, [0])
    bias_gradient = Ferrox.sum(scores_gradient, axes: [0])

    {-Ferrox.to_number(loss),
     {Ferrox.subtract(weights, Ferrox.multiply(weights_gradient, learning_rate)),
      Ferrox.subtract(bias, Ferrox.multiply(bias_gradient, learning_rate))}}
  end

  @doc "The digit that each image shows, as the model reads it."
  def predict({weights, bias}, images),
    do: images |> scale() |> scores(weights, bias) |> Ferrox.argmax(axis: 1)

  @doc "The share of images that are read as their labels say."
  def accuracy(params, {images, labels}),
    do: params |> predict(images) |> Ferrox.equal(labels) |> Ferrox.mean() |> Ferrox.to_number()

  # Pixels from 0 to 1. As in Nx, a division makes f32 of u8.
  defp scale(images), do: Ferrox.divide(images, 16)

  defp scores(inputs, weights, bias), do: inputs |> Ferrox.dot(weights) |> Ferrox.add(bias)

  # The largest score is taken off first, so that no exponential overflows.
  defp log_softmax(scores) do
    shifted = Ferrox.subtract(scores, Ferrox.reduce_max(scores, axes: [1], keep_axes: true))
    total = shifted |> Ferrox.exp() |> Ferrox.sum(axes: [1], keep_axes: true)
    Ferrox.subtract(shifted, Ferrox.log(total))
  end

  # A row for each label, with a one in the label's column: {n, 1} against {10}.
  defp one_hot(labels), do: labels |> Ferrox.new_axis(1) |> Ferrox.equal(Ferrox.iota({10}))
end
