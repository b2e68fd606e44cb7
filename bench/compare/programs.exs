# Whole programs: functions of Nx.Defn, and beside them, in programs.py, the same functions of jax,
# which are compiled by jax.jit.

defmodule Bench.Programs do
  import Nx.Defn

  @unit {-1, 1}
  @m 1_000_000

  @doc "Name, inputs, function, expression of jax and options of a case, of each program."
  def all do
    f32 = fn shape -> {:f32, shape, @unit} end
    positive = fn shape -> {:f32, shape, {0.5, 2}} end
    whole = &[bound: {:whole, &1}]

    [
      {"chain", [a: f32.({@m}), b: f32.({@m})], &chain/2, "chain(a, b)", whole.(1.0e-6)},
      {"chain small", [a: f32.({1_000}), b: f32.({1_000})], &chain/2, "chain(a, b)",
       whole.(1.0e-6)},
      {"gelu", [a: f32.({@m})], &gelu/1, "gelu(a)", whole.(1.0e-6)},
      {"softmax", [a: f32.({1024, 1024})], &softmax/1, "softmax(a)", whole.(1.0e-5)},
      {"layer norm", [a: f32.({1024, 1024}), b: f32.({1024}), c: f32.({1024})], &layer_norm/3,
       "layer_norm(a, b, c)", whole.(1.0e-4)},
      {"mlp train step",
       [
         a: f32.({784, 128}),
         b: f32.({128}),
         c: f32.({128, 10}),
         d: f32.({10}),
         e: f32.({64, 784}),
         y: positive.({64, 10})
       ], &mlp/6, "mlp(a, b, c, d, e, y)", whole.(1.0e-4)},
      {"conv train step",
       [
         a: f32.({16, 1, 3, 3}),
         b: f32.({16 * 14 * 14, 10}),
         c: f32.({32, 1, 28, 28}),
         d: positive.({32, 10})
       ], &conv/4, "conv(a, b, c, d)", whole.(1.0e-3)},
      {"mandelbrot, 100 trips", [a: f32.({256, 256}), b: f32.({256, 256})], &mandelbrot/2,
       "mandelbrot(a, b)", [bound: {:whole, 0.01}, through: "[r[0].mean()]"]},
      {"logistic regression, 100 trips", [a: f32.({1_000, 20}), b: positive.({1_000})],
       &logistic_regression/2, "logistic_regression(a, b)", whole.(1.0e-4)},
      {"attention", [a: f32.({8, 128, 64}), b: f32.({8, 128, 64}), c: f32.({8, 128, 64})],
       &attention/3, "attention(a, b, c)", whole.(1.0e-5)},
      {"black-scholes", [a: positive.({@m}), b: positive.({@m}), c: positive.({@m})],
       &black_scholes/3, "black_scholes(a, b, c)", whole.(1.0e-5)},
      {"adam", [a: f32.({@m}), b: f32.({@m}), c: f32.({@m}), d: positive.({@m})], &adam/4,
       "adam(a, b, c, d)", whole.(1.0e-5)},
      {"k-means step", [a: f32.({10_000, 16}), b: f32.({16, 16})], &k_means/2, "k_means(a, b)",
       whole.(1.0e-3)},
      {"rms norm, gated mlp",
       [
         a: f32.({64, 512}),
         b: f32.({512}),
         c: f32.({512, 1024}),
         d: f32.({512, 1024}),
         e: f32.({1024, 512})
       ], &gated_mlp/5, "gated_mlp(a, b, c, d, e)", whole.(1.0e-4)},
      {"gru, 64 steps",
       [a: f32.({64, 32, 64}), b: f32.({64, 192}), c: f32.({64, 192}), d: f32.({32, 64})], &gru/4,
       "gru(a, b, c, d)", whole.(1.0e-3)},
      decode_step("decode step, 512", :f32, 512, 256, whole.(1.0e-3)),
      decode_step("decode step, 768", :f32, 768, 1024, whole.(1.0e-3)),
      decode_step("decode step, 512, bf16", :bf16, 512, 256, whole.(0.05)),
      decode_step("decode step, 768, bf16", :bf16, 768, 1024, whole.(0.05)),
      {"generation, 64 tokens",
       [
         a: f32.({1_000, 256}),
         b: f32.({256, 768}),
         c: f32.({256, 256}),
         d: f32.({256, 1_000}),
         i: {:s32, {}, {0, 1}}
       ], &generate/5, "generate(a, b, c, d, i)", [bound: :exact]},
      {"causal attention",
       [a: f32.({12, 512, 64}), b: f32.({12, 512, 64}), c: f32.({12, 512, 64})],
       &causal_attention/3, "causal_attention(a, b, c)", whole.(1.0e-5)},
      {"k-means, 50 trips", [a: f32.({10_000, 16}), b: f32.({16, 16})], &k_means_loop/2,
       "k_means_loop(a, b)", whole.(0.05)},
      # What the evaluator compiles has the expression of `svd` in it, which takes too long to pass
      # to the process that measures.
      {"pca", [a: f32.({1_000, 50})], &pca/1, "pca(a)",
       [bound: {:whole, 1.0e-3}, evaluator: nil]},
      {"resnet block, train step",
       [
         a: f32.({64, 64, 3, 3}),
         b: f32.({64, 64, 3, 3}),
         c: f32.({64}),
         d: f32.({64}),
         e: f32.({8, 64, 16, 16})
       ], &resnet/5, "resnet(a, b, c, d, e)", whole.(1.0e-3)},
      {"random normal", [a: {:u32, {2}, {0, 1_000}}], &normal/1, "normal(a)",
       [bound: {:whole, 0.01}, through: "[np.sort(r[0].ravel())[10000::10000]]"]},
      {"scalar loop, 1,000,000 trips", [a: {:s32, {}, {1_000_000, 1_000_000}}], &scalar_loop/1,
       "scalar_loop(a)", whole.(1.0e-3)},
      {"lorenz, 2,000 trips", [a: {:f32, {3}, {0.9, 1.1}}], &lorenz/1, "lorenz(a)",
       whole.(1.0e-3)},
      {"kalman filter, 500 trips",
       [a: f32.({500, 2}), b: f32.({4, 4}), c: f32.({2, 4}), d: f32.({4, 4})], &kalman/4,
       "kalman(a, b, c, d)", whole.(1.0e-2)},
      {"moving average, 2,000 trips", [a: f32.({2_000, 16})], &moving_average/1,
       "moving_average(a)", whole.(1.0e-5)}
    ]
  end

  # A step of a model with vectors of `d` numbers, in heads of 64, and a cache of some tokens.
  defp decode_step(name, type, d, tokens, opts) do
    inputs = [
      a: {type, {1, d}, @unit},
      b: {type, {d, 3 * d}, @unit},
      c: {type, {div(d, 64), tokens, 64}, @unit},
      d: {type, {div(d, 64), tokens, 64}, @unit},
      e: {type, {d, d}, @unit},
      i: {:s32, {}, {div(tokens, 2), div(tokens, 2) + 1}}
    ]

    {name, inputs, &decode/6, "decode(a, b, c, d, e, i)", opts}
  end

  defn(chain(x, y), do: Nx.tanh(x * y + 1) * y)

  defn(gelu(x), do: 0.5 * x * (1 + Nx.tanh(0.7978845608 * (x + 0.044715 * x * x * x))))

  defn softmax(x) do
    exp = Nx.exp(x - Nx.reduce_max(x, axes: [-1], keep_axes: true))
    exp / Nx.sum(exp, axes: [-1], keep_axes: true)
  end

  defn layer_norm(x, gain, bias) do
    mean = Nx.mean(x, axes: [-1], keep_axes: true)
    variance = Nx.variance(x, axes: [-1], keep_axes: true)
    (x - mean) / Nx.sqrt(variance + 1.0e-5) * gain + bias
  end

  defnp cross_entropy(scores, targets) do
    shifted = scores - Nx.reduce_max(scores, axes: [-1], keep_axes: true)
    logs = shifted - Nx.log(Nx.sum(Nx.exp(shifted), axes: [-1], keep_axes: true))
    -Nx.mean(Nx.sum(logs * targets, axes: [-1]))
  end

  defn mlp(w1, b1, w2, b2, x, y) do
    {loss, {g1, h1, g2, h2}} =
      value_and_grad({w1, b1, w2, b2}, fn {w1, b1, w2, b2} ->
        hidden = Nx.max(Nx.dot(x, w1) + b1, 0)
        cross_entropy(Nx.dot(hidden, w2) + b2, y)
      end)

    {loss, w1 - 0.01 * g1, b1 - 0.01 * h1, w2 - 0.01 * g2, b2 - 0.01 * h2}
  end

  defn conv(kernel, w, x, y) do
    {loss, {kernel_grad, w_grad}} =
      value_and_grad({kernel, w}, fn {kernel, w} ->
        features = Nx.max(Nx.conv(x, kernel, padding: :same), 0)
        pooled = Nx.window_max(features, {1, 1, 2, 2}, strides: [1, 1, 2, 2])
        cross_entropy(Nx.dot(Nx.reshape(pooled, {32, 16 * 14 * 14}), w), y)
      end)

    {loss, kernel - 0.01 * kernel_grad, w - 0.01 * w_grad}
  end

  defn mandelbrot(cx, cy) do
    zero = Nx.broadcast(0.0, cx)

    {_, _, _, n, _, _} =
      while {i = 0, zx = zero, zy = zero, n = zero, cx, cy}, i < 100 do
        x2 = zx * zx
        y2 = zy * zy
        inside = x2 + y2 <= 4.0
        next_x = x2 - y2 + cx
        next_y = 2 * zx * zy + cy
        {i + 1, Nx.select(inside, next_x, zx), Nx.select(inside, next_y, zy), n + inside, cx, cy}
      end

    n
  end

  defn logistic_regression(x, y) do
    {_, w, _, _} =
      while {i = 0, w = Nx.broadcast(0.0, {20}), x, y}, i < 100 do
        gradient = Nx.dot(Nx.transpose(x), Nx.sigmoid(Nx.dot(x, w)) - y) / 1000
        {i + 1, w - 0.1 * gradient, x, y}
      end

    w
  end

  defn attention(q, k, v) do
    scores = Nx.dot(q, [2], [0], k, [2], [0]) / 8.0
    Nx.dot(softmax(scores), [2], [0], v, [1], [0])
  end

  defnp(normal_cdf(x), do: 0.5 * (1 + Nx.erf(x / 1.4142135623730951)))

  defn black_scholes(price, strike, time) do
    d1 = (Nx.log(price / strike) + 0.07 * time) / (0.2 * Nx.sqrt(time))
    d2 = d1 - 0.2 * Nx.sqrt(time)
    price * normal_cdf(d1) - strike * Nx.exp(-0.05 * time) * normal_cdf(d2)
  end

  defn adam(p, g, m, v) do
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    {p - 0.001 * (m / 0.19) / (Nx.sqrt(v / 0.002) + 1.0e-8), m, v}
  end

  defn k_means(x, centers) do
    distances =
      Nx.sum(x * x, axes: [1], keep_axes: true) - 2 * Nx.dot(x, Nx.transpose(centers)) +
        Nx.sum(centers * centers, axes: [1])

    nearest = Nx.argmin(distances, axis: 1)
    members = Nx.as_type(Nx.equal(Nx.new_axis(nearest, 1), Nx.iota({1, 16})), :f32)
    counts = Nx.max(Nx.new_axis(Nx.sum(members, axes: [0]), 1), 1)
    Nx.dot(Nx.transpose(members), x) / counts
  end

  defn gated_mlp(x, gain, w_gate, w_up, w_down) do
    normed = x / Nx.sqrt(Nx.mean(x * x, axes: [-1], keep_axes: true) + 1.0e-6) * gain
    gate = Nx.dot(normed, w_gate)
    Nx.dot(gate * Nx.sigmoid(gate) * Nx.dot(normed, w_up), w_down)
  end

  defn gru(xs, w, u, h) do
    {_, h, _, _, _} =
      while {i = 0, h, xs, w, u}, i < 64 do
        a = Nx.dot(xs[i], w) * 0.1
        b = Nx.dot(h, u) * 0.1
        z = Nx.sigmoid(a[[.., 0..63]] + b[[.., 0..63]])
        r = Nx.sigmoid(a[[.., 64..127]] + b[[.., 64..127]])
        n = Nx.tanh(a[[.., 128..191]] + r * b[[.., 128..191]])
        {i + 1, (1 - z) * n + z * h, xs, w, u}
      end

    h
  end

  # A layer's attention for one token, with caches of keys and values.
  defn decode(x, w_qkv, keys, values, w_out, position) do
    {heads, tokens, _} = Nx.shape(keys)
    qkv = Nx.reshape(Nx.dot(x, w_qkv) * 0.03, {3, heads, 1, 64})
    keys = Nx.put_slice(keys, [0, position, 0], qkv[1])
    values = Nx.put_slice(values, [0, position, 0], qkv[2])
    scores = Nx.dot(qkv[0], [2], [0], keys, [2], [0]) / 8.0
    scores = Nx.select(Nx.iota({heads, 1, tokens}, axis: 2) <= position, scores, -1.0e9)
    context = Nx.dot(softmax(scores), [2], [0], values, [1], [0])
    {x + Nx.dot(Nx.reshape(context, {1, heads * 64}), w_out), keys, values}
  end

  # A model of one such layer, whose most probable token is its next input.
  defn generate(embedding, w_qkv, w_out, w_tokens, token) do
    cache = Nx.broadcast(0.0, {4, 64, 64})
    tokens = Nx.broadcast(0, {64})

    {_, _, tokens, _, _, _, _, _, _} =
      while {i = 0, token, tokens, keys = cache, values = cache, embedding, w_qkv, w_out,
             w_tokens},
            i < 64 do
        {x, keys, values} =
          decode(Nx.new_axis(embedding[token], 0), w_qkv, keys, values, w_out, i)

        token = Nx.as_type(Nx.argmax(Nx.dot(x, w_tokens)), :s32)
        tokens = Nx.put_slice(tokens, [i], Nx.reshape(token, {1}))
        {i + 1, token, tokens, keys, values, embedding, w_qkv, w_out, w_tokens}
      end

    tokens
  end

  defn causal_attention(q, k, v) do
    scores = Nx.dot(q, [2], [0], k, [2], [0]) / 8.0
    shape = Nx.shape(scores)
    is_past = Nx.iota(shape, axis: 2) <= Nx.iota(shape, axis: 1)
    Nx.dot(softmax(Nx.select(is_past, scores, -1.0e9)), [2], [0], v, [1], [0])
  end

  defn k_means_loop(x, centers) do
    {_, centers, _} =
      while {i = 0, centers, x}, i < 50 do
        {i + 1, k_means(x, centers), x}
      end

    centers
  end

  # The singular values, and the projections on ten components but for their signs.
  defn pca(x) do
    centered = x - Nx.mean(x, axes: [0])
    {_, s, vt} = Nx.LinAlg.svd(centered, full_matrices?: false)
    {s, Nx.abs(Nx.dot(centered, Nx.transpose(vt[0..9])))}
  end

  defnp normalize(x, gain) do
    mean = Nx.mean(x, axes: [0, 2, 3], keep_axes: true)
    variance = Nx.variance(x, axes: [0, 2, 3], keep_axes: true)
    (x - mean) / Nx.sqrt(variance + 1.0e-5) * Nx.reshape(gain, {1, 64, 1, 1})
  end

  defn resnet(kernel1, kernel2, gain1, gain2, x) do
    {loss, {k1, k2, g1, g2}} =
      value_and_grad({kernel1, kernel2, gain1, gain2}, fn {kernel1, kernel2, gain1, gain2} ->
        hidden = Nx.max(normalize(Nx.conv(x, kernel1, padding: :same), gain1), 0)
        out = Nx.max(x + normalize(Nx.conv(hidden, kernel2, padding: :same), gain2), 0)
        Nx.mean(out * out)
      end)

    {loss, kernel1 - 0.01 * k1, kernel2 - 0.01 * k2, gain1 - 0.01 * g1, gain2 - 0.01 * g2}
  end

  defn normal(key) do
    {numbers, _} = Nx.Random.normal(key, shape: {@m})
    numbers
  end

  defn lorenz(state) do
    {_, state} =
      while {i = 0, state}, i < 2_000 do
        {x, y, z} = {state[0], state[1], state[2]}
        slopes = Nx.stack([10 * (y - x), x * (28 - z) - y, x * y - 2.6666667 * z])
        {i + 1, state + 0.001 * slopes}
      end

    state
  end

  defn kalman(measured, steps, observation, noise) do
    f = Nx.eye(4) + 0.1 * steps
    q = 0.1 * Nx.dot(noise, Nx.transpose(noise))

    {_, x, p, _, _, _, _} =
      while {i = 0, x = Nx.broadcast(0.0, {4}), p = Nx.eye(4, type: :f32), measured, f,
             h = observation, q},
            i < 500 do
        x = Nx.dot(f, x)
        p = Nx.dot(Nx.dot(f, p), Nx.transpose(f)) + q
        s = Nx.dot(Nx.dot(h, p), Nx.transpose(h)) + Nx.eye(2)
        {a, b, c, d} = {s[0][0], s[0][1], s[1][0], s[1][1]}
        inverse = Nx.stack([Nx.stack([d, -b]), Nx.stack([-c, a])]) / (a * d - b * c)
        gain = Nx.dot(Nx.dot(p, Nx.transpose(h)), inverse)
        x = x + Nx.dot(gain, measured[i] - Nx.dot(h, x))
        {i + 1, x, Nx.dot(Nx.eye(4) - Nx.dot(gain, h), p), measured, f, h, q}
      end

    {x, p}
  end

  defn moving_average(x) do
    {_, means, _} =
      while {i = 1, means = x, x}, i < 2_000 do
        row = 0.1 * x[i] + 0.9 * means[i - 1]
        {i + 1, Nx.put_slice(means, [i, 0], Nx.new_axis(row, 0)), x}
      end

    means
  end

  defn scalar_loop(n) do
    {_, x, _} =
      while {i = 0, x = 0.0, n}, i < n do
        {i + 1, x * 0.999 + 1.0, n}
      end

    x
  end
end
