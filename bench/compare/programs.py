"""The programs of programs.exs in jax."""

import jax
import jax.numpy as np


def chain(x, y):
    return np.tanh(x * y + 1) * y


def gelu(x):
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def softmax(x):
    exp = np.exp(x - x.max(-1, keepdims=True))
    return exp / exp.sum(-1, keepdims=True)


def layer_norm(x, gain, bias):
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5) * gain + bias


def cross_entropy(scores, targets):
    shifted = scores - scores.max(-1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    return -(logs * targets).sum(-1).mean()


def mlp(w1, b1, w2, b2, x, y):
    def loss(p):
        return cross_entropy(np.maximum(x @ p[0] + p[1], 0) @ p[2] + p[3], y)

    p = (w1, b1, w2, b2)
    value, gradients = jax.value_and_grad(loss)(p)
    return (value,) + tuple(p - 0.01 * g for p, g in zip(p, gradients))


def conv(kernel, w, x, y):
    def loss(p):
        features = np.maximum(jax.lax.conv_general_dilated(x, p[0], (1, 1), "SAME"), 0)
        window = (1, 1, 2, 2)
        pooled = jax.lax.reduce_window(features, -np.inf, jax.lax.max, window, window, "VALID")
        return cross_entropy(pooled.reshape(32, -1) @ p[1], y)

    value, (kernel_grad, w_grad) = jax.value_and_grad(loss)((kernel, w))
    return value, kernel - 0.01 * kernel_grad, w - 0.01 * w_grad


def mandelbrot(cx, cy):
    def trip(state):
        i, zx, zy, n = state
        x2, y2 = zx * zx, zy * zy
        inside = x2 + y2 <= 4.0
        next_x, next_y = x2 - y2 + cx, 2 * zx * zy + cy
        return i + 1, np.where(inside, next_x, zx), np.where(inside, next_y, zy), n + inside

    zero = np.zeros_like(cx)
    return jax.lax.while_loop(lambda state: state[0] < 100, trip, (0, zero, zero, zero))[3]


def logistic_regression(x, y):
    def trip(state):
        i, w = state
        return i + 1, w - 0.1 * (x.T @ (jax.nn.sigmoid(x @ w) - y) / 1000)

    start = (0, np.zeros(20, np.float32))
    return jax.lax.while_loop(lambda state: state[0] < 100, trip, start)[1]


def attention(q, k, v):
    scores = np.einsum("bqd,bkd->bqk", q, k) / 8.0
    return np.einsum("bqk,bkd->bqd", softmax(scores), v)


def normal_cdf(x):
    return 0.5 * (1 + jax.scipy.special.erf(x / 1.4142135623730951))


def black_scholes(price, strike, time):
    d1 = (np.log(price / strike) + 0.07 * time) / (0.2 * np.sqrt(time))
    d2 = d1 - 0.2 * np.sqrt(time)
    return price * normal_cdf(d1) - strike * np.exp(-0.05 * time) * normal_cdf(d2)


def adam(p, g, m, v):
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    return p - 0.001 * (m / 0.19) / (np.sqrt(v / 0.002) + 1e-8), m, v


def k_means(x, centers):
    distances = (x * x).sum(1, keepdims=True) - 2 * (x @ centers.T) + (centers * centers).sum(1)
    members = (distances.argmin(1)[:, None] == np.arange(16)[None]).astype(np.float32)
    return members.T @ x / np.maximum(members.sum(0)[:, None], 1)


def gated_mlp(x, gain, w_gate, w_up, w_down):
    normed = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * gain
    gate = normed @ w_gate
    return (gate * jax.nn.sigmoid(gate) * (normed @ w_up)) @ w_down


def gru(xs, w, u, h):
    def step(i, h):
        a, b = xs[i] @ w * 0.1, h @ u * 0.1
        z = jax.nn.sigmoid(a[:, :64] + b[:, :64])
        r = jax.nn.sigmoid(a[:, 64:128] + b[:, 64:128])
        n = np.tanh(a[:, 128:] + r * b[:, 128:])
        return (1 - z) * n + z * h

    return jax.lax.fori_loop(0, 64, step, h)


def decode(x, w_qkv, keys, values, w_out, position):
    heads, tokens, _ = keys.shape
    scale = np.asarray(0.03, x.dtype)
    q, k, v = (x @ w_qkv * scale).reshape(3, heads, 1, 64)
    start = (np.int32(0), position, np.int32(0))
    keys = jax.lax.dynamic_update_slice(keys, k, start)
    values = jax.lax.dynamic_update_slice(values, v, start)
    scores = np.einsum("hqd,hkd->hqk", q, keys) / 8.0
    scores = np.where(np.arange(tokens)[None, None] <= position, scores, np.asarray(-1e9, x.dtype))
    context = np.einsum("hqk,hkd->hqd", softmax(scores), values)
    return x + context.reshape(1, heads * 64) @ w_out, keys, values


def generate(embedding, w_qkv, w_out, w_tokens, token):
    def step(i, state):
        token, tokens, keys, values = state
        x, keys, values = decode(embedding[token][None], w_qkv, keys, values, w_out, i)
        token = (x @ w_tokens).argmax().astype(np.int32)
        return token, tokens.at[i].set(token), keys, values

    cache = np.zeros((4, 64, 64), np.float32)
    state = (token, np.zeros(64, np.int32), cache, cache)
    return jax.lax.fori_loop(np.int32(0), np.int32(64), step, state)[1]


def causal_attention(q, k, v):
    scores = np.einsum("bqd,bkd->bqk", q, k) / 8.0
    at = np.arange(scores.shape[1])
    scores = np.where(at[None, None, :] <= at[None, :, None], scores, np.float32(-1e9))
    return np.einsum("bqk,bkd->bqd", softmax(scores), v)


def k_means_loop(x, centers):
    return jax.lax.fori_loop(0, 50, lambda i, centers: k_means(x, centers), centers)


def pca(x):
    centered = x - x.mean(0)
    _, s, vt = np.linalg.svd(centered, full_matrices=False)
    return s, np.abs(centered @ vt[:10].T)


def normalize(x, gain):
    mean, variance = x.mean((0, 2, 3), keepdims=True), x.var((0, 2, 3), keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5) * gain.reshape(1, 64, 1, 1)


def resnet(kernel1, kernel2, gain1, gain2, x):
    def convolve(x, kernel):
        return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME")

    def loss(p):
        hidden = np.maximum(normalize(convolve(x, p[0]), p[2]), 0)
        out = np.maximum(x + normalize(convolve(hidden, p[1]), p[3]), 0)
        return (out * out).mean()

    p = (kernel1, kernel2, gain1, gain2)
    value, gradients = jax.value_and_grad(loss)(p)
    return (value,) + tuple(p - 0.01 * g for p, g in zip(p, gradients))


def normal(key):
    key = jax.random.wrap_key_data(key, impl="threefry2x32")
    return jax.random.normal(key, (1_000_000,), np.float32)


def scalar_loop(n):
    def trip(state):
        return state[0] + 1, state[1] * np.float32(0.999) + np.float32(1.0)

    return jax.lax.while_loop(lambda state: state[0] < n, trip, (np.int32(0), np.float32(0)))[1]


def lorenz(state):
    def trip(i, state):
        x, y, z = state
        slopes = np.stack([10 * (y - x), x * (28 - z) - y, x * y - 2.6666667 * z])
        return state + 0.001 * slopes

    return jax.lax.fori_loop(0, 2_000, trip, state)


def kalman(measured, steps, h, noise):
    f = np.eye(4) + 0.1 * steps
    q = 0.1 * (noise @ noise.T)

    def trip(i, state):
        x, p = state
        x = f @ x
        p = f @ p @ f.T + q
        s = h @ p @ h.T + np.eye(2)
        (a, b), (c, d) = s
        inverse = np.stack([np.stack([d, -b]), np.stack([-c, a])]) / (a * d - b * c)
        gain = p @ h.T @ inverse
        return x + gain @ (measured[i] - h @ x), (np.eye(4) - gain @ h) @ p

    return jax.lax.fori_loop(0, 500, trip, (np.zeros(4), np.eye(4)))


def moving_average(x):
    def trip(i, means):
        row = 0.1 * x[i] + 0.9 * means[i - 1]
        return jax.lax.dynamic_update_slice(means, row[None], (i, 0))

    return jax.lax.fori_loop(1, 2_000, trip, x)
