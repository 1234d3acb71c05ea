"""What the examples mean, written by hand in NumPy and float64.

Nothing here is shared with the compiler or its interpreter. Arrays are
Q [B, H, N, D], K and V [B, G, M, D]; query head h uses key head h // (H // G).
`present` is a boolean array that broadcasts to [B, H, N, M]; an absent score
takes part in nothing.
"""
import numpy as np


def heads_of(kv, heads):
    """K or V with one entry per query head."""
    groups = kv.shape[1]
    if heads == groups or not heads:
        return kv[:, :heads]
    return kv[:, np.arange(heads) // (heads // groups)]


def scores(q, k, scale):
    with np.errstate(invalid="ignore", over="ignore"):
        return np.matmul(q, np.swapaxes(heads_of(k, q.shape[1]), -1, -2)) * scale


def value_product(weights, v, present):
    """weights · V; rows of V that nobody sees do not matter, whatever they hold."""
    values = heads_of(v, weights.shape[1])
    seen = present.any(axis=-2)[..., None]
    return np.matmul(weights, np.where(seen, values, 0.0))


def softmax_attention(s, v, present=None):
    """Softmax over the present scores, times V; and log-sum-exp of each row."""
    present = np.broadcast_to(True if present is None else present, s.shape)
    s = np.where(present, s, -np.inf)
    some = present.any(axis=-1)
    top = s.max(axis=-1, initial=-np.inf)
    shift = np.where(some, top, 0.0)[..., None]
    e = np.where(present, np.exp(np.where(present, s - shift, 0.0)), 0.0)
    total = e.sum(axis=-1)
    divisor = np.where(some, total, 1.0)
    output = value_product(e, v, present) / divisor[..., None]
    with np.errstate(divide="ignore"):
        lse = np.where(some, top + np.log(divisor), -np.inf)
    return np.where(some[..., None], output, 0.0), lse


def positions(n, m):
    return np.arange(n)[:, None], np.arange(m)[None, :]


def sdpa(Q, K, V, scale):
    return softmax_attention(scores(Q, K, scale), V)


def causal(Q, K, V, scale):
    """Bottom-right aligned: the last query sees the last key."""
    i, j = positions(Q.shape[2], K.shape[2])
    offset = K.shape[2] - Q.shape[2]
    return softmax_attention(scores(Q, K, scale), V, j <= i + offset)


def masked(Q, K, V, scale, mask):
    return softmax_attention(scores(Q, K, scale), V, np.asarray(mask, bool))


def alibi(Q, K, V, scale, slope):
    """Causal, with a bias that falls with the distance, by a slope per head."""
    i, j = positions(Q.shape[2], K.shape[2])
    distance = i + (K.shape[2] - Q.shape[2]) - j
    bias = -slope[None, :, None, None] * distance
    return softmax_attention(scores(Q, K, scale) + bias, V, distance >= 0)


def sliding_window(Q, K, V, scale, window):
    """A query sees its own position and the window - 1 positions before it."""
    i, j = positions(Q.shape[2], K.shape[2])
    distance = i + (K.shape[2] - Q.shape[2]) - j
    return softmax_attention(scores(Q, K, scale), V,
                             (distance >= 0) & (distance < window))


def softcap(Q, K, V, scale, cap):
    return softmax_attention(cap * np.tanh(scores(Q, K, scale) / cap), V)


def sigmoid_attention(Q, K, V, scale, bias=0.0, present=None):
    s = scores(Q, K, scale) + bias
    present = np.broadcast_to(True if present is None else present, s.shape)
    weights = np.where(present, 1.0 / (1.0 + np.exp(-s)), 0.0)
    return value_product(weights, V, present)


def scaled_norm(x):
    """The 2-norm of each row, by way of the largest element."""
    m = np.abs(x).max(axis=-1)
    return m * np.sqrt(((x / m[..., None]) ** 2).sum(axis=-1))


def layernorm_product(x, gamma, beta, W, eps):
    centred = x - x.mean(axis=-1, keepdims=True)
    deviation = np.sqrt((centred ** 2).mean(axis=-1, keepdims=True) + eps)
    return np.matmul(centred / deviation * gamma + beta, W)
