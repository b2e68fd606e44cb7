defmodule GPT.Model do
  @moduledoc """
  A GPT of the shape of GPT-2, as Bumblebee builds it: blocks of a layer norm, attention
  with several heads, a layer norm and two dense layers with a GELU between them, on
  embeddings of tokens and positions; the embeddings of tokens also give the scores of the
  next one. Nothing here names a backend or a compiler.

  Tokens are generated one by one. The keys and values of all tokens so far are kept in a
  cache, so that each step computes a single token, and reads every weight once.
  """

  import Nx.Defn

  @doc """
  Weights at random, of a spec `%{layers: l, width: d, heads: h, context: n, tokens: v}`:
  a map of tensors, with a map for each of the layers. `type` is that of all tensors.
  """
  def init(spec, type, seed) do
    %{width: width, tokens: tokens, context: context, layers: layers} = spec
    shapes = [{:tokens, {tokens, width}}, {:positions, {context, width}}]

    # The scale of GPT-2.
    {tensors, key} = normal(shapes, Nx.Random.key(seed), 0.02, type)

    {blocks, _key} =
      Enum.map_reduce(1..layers, key, fn _layer, key ->
        {weights, key} =
          normal(
            [
              query_key_value: {width, 3 * width},
              attention: {width, width},
              wide: {width, 4 * width},
              narrow: {4 * width, width}
            ],
            key,
            0.02,
            type
          )

        biases =
          for {name, tensor} <- weights, do: {bias(name), zeros(Nx.axis_size(tensor, 1), type)}

        {Map.new(weights ++ biases ++ norm(:norm_1, width, type) ++ norm(:norm_2, width, type)),
         key}
      end)

    tensors
    |> Map.new()
    |> Map.merge(Map.new(norm(:norm, width, type)))
    |> Map.put(:blocks, List.to_tuple(blocks))
  end

  defp normal(shapes, key, scale, type) do
    Enum.map_reduce(shapes, key, fn {name, shape}, key ->
      {tensor, key} = Nx.Random.normal(key, 0.0, scale, shape: shape, type: :f32)
      {{name, Nx.as_type(tensor, type)}, key}
    end)
  end

  defp norm(name, width, type),
    do: [
      {name, Nx.broadcast(Nx.tensor(1, type: type), {width})},
      {bias(name), zeros(width, type)}
    ]

  defp zeros(width, type), do: Nx.broadcast(Nx.tensor(0, type: type), {width})
  defp bias(name), do: :"#{name}_bias"

  @doc "An empty cache: keys and values of each layer, of shape `{heads, context, width / heads}`."
  def cache(%{layers: layers, heads: heads, context: context, width: width}, type) do
    empty = Nx.broadcast(Nx.tensor(0, type: type), {heads, context, div(width, heads)})
    List.to_tuple(List.duplicate({empty, empty}, layers))
  end

  @doc """
  Fills in `count` tokens from a position on, which are read if they are before `known`,
  and else drawn by their scores over the temperature. `text` has shape `{context}`.
  Gives the text, the cache and the key of random numbers after it.
  """
  defn generate(weights, text, cache, key, position, known, temperature, opts \\ []) do
    opts = keyword!(opts, [:count])

    {text, cache, key, _, _, _, _} =
      while {text, cache, key, position, known, temperature, weights}, _ <- 1..opts[:count] do
        {scores, cache} = step(weights, text[position], position, cache)
        {next, key} = draw(scores, key, temperature)
        next = if position + 1 < known, do: text[position + 1], else: next
        text = Nx.put_slice(text, [position + 1], Nx.reshape(next, {1}))
        {text, cache, key, position + 1, known, temperature, weights}
      end

    {text, cache, key}
  end

  # Draws one by adding noise to the scores: the greatest is each with its probability.
  defnp draw(scores, key, temperature) do
    {uniform, key} = Nx.Random.uniform(key, 1.0e-7, 1.0, shape: Nx.shape(scores), type: :f32)
    {Nx.argmax(scores / temperature - Nx.log(-Nx.log(uniform))), key}
  end

  @doc "The scores of what follows a token, and the cache with its keys and values."
  defn step(weights, token, position, cache) do
    x = weights.tokens[token] + weights.positions[position]
    {x, cache} = blocks(x, weights.blocks, position, cache)
    x = layer_norm(x, weights.norm, weights.norm_bias)
    {x |> Nx.dot([0], weights.tokens, [1]) |> Nx.as_type(:f32), cache}
  end

  # Each layer has weights and a cache of its own: the loop is unrolled.
  deftransformp blocks(x, blocks, position, cache) do
    {cache, x} =
      Tuple.to_list(blocks)
      |> Enum.zip(Tuple.to_list(cache))
      |> Enum.map_reduce(x, fn {weights, cache}, x ->
        {x, cache} = block(x, weights, position, cache)
        {cache, x}
      end)

    {x, List.to_tuple(cache)}
  end

  defnp block(x, weights, position, {keys, values}) do
    {heads, context, size} = Nx.shape(keys)

    parts =
      x
      |> layer_norm(weights.norm_1, weights.norm_1_bias)
      |> Nx.dot(weights.query_key_value)
      |> Nx.add(weights.query_key_value_bias)
      |> Nx.reshape({3, heads, 1, size})

    keys = Nx.put_slice(keys, [0, position, 0], parts[1])
    values = Nx.put_slice(values, [0, position, 0], parts[2])

    # What comes after the token is not there yet.
    scores = Nx.dot(parts[0], [2], [0], keys, [2], [0]) * scale(size)
    known = Nx.iota({heads, 1, context}, axis: 2) <= position
    scores = Nx.select(known, Nx.as_type(scores, :f32), -1.0e9)
    exp = Nx.exp(scores - Nx.reduce_max(scores, axes: [2], keep_axes: true))
    weights_of_values = Nx.as_type(exp / Nx.sum(exp, axes: [2], keep_axes: true), Nx.type(x))

    attention =
      weights_of_values
      |> Nx.dot([2], [0], values, [1], [0])
      |> Nx.reshape({heads * size})
      |> Nx.dot(weights.attention)
      |> Nx.add(weights.attention_bias)

    x = x + attention

    dense =
      x
      |> layer_norm(weights.norm_2, weights.norm_2_bias)
      |> Nx.dot(weights.wide)
      |> Nx.add(weights.wide_bias)
      |> gelu()
      |> Nx.dot(weights.narrow)
      |> Nx.add(weights.narrow_bias)

    {x + dense, {keys, values}}
  end

  deftransformp(scale(size), do: 1 / :math.sqrt(size))

  defnp(gelu(x), do: 0.5 * x * (1 + Nx.tanh(0.7978845608 * (x + 0.044715 * x * x * x))))

  defnp layer_norm(x, scale, bias) do
    centred = x - Nx.mean(x)
    centred * Nx.rsqrt(Nx.mean(centred * centred) + 1.0e-5) * scale + bias
  end

  @doc "The bytes of all weights that a step reads: positions are looked up, one row each."
  def bytes_per_token(weights) do
    [weights.tokens, weights.norm, weights.norm_bias]
    |> Enum.concat(Enum.flat_map(Tuple.to_list(weights.blocks), &Map.values/1))
    |> Enum.map(&Nx.byte_size/1)
    |> Enum.sum()
  end
end
