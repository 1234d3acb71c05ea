"""Exact attention, the two measures of error, number formats in NumPy, and the laws that buy accuracy.

Everything here is written from the definitions and shares nothing with the compiler. Exact means float64 by a
softmax that streams over blocks of keys. Formats are simulated by rounding float32 arrays to the values of the
format; products are then accumulated in float32, as matrix units do, or in float64 where this is asked for.

The two measures, with P the exact weights and O = P V:

    component-wise   max over elements of |O' - O| / (|P| |V|)       (how `within` measures by default)
    relative         ||O' - O||_F / ||O||_F over the rows of a head  (`relative`)
"""
import math

import numpy as np

# -- exact attention ---------------------------------------------------------


def exact_rows(queries, keys, values, scale, block=8192):
    """O, |P| |V| and the log-sum-exp for some rows, in float64.

    `keys` and `values` are arrays, or functions of (start, stop) with an attribute `count`, so that a range
    that does not fit into memory is read block by block.
    """
    queries = np.asarray(queries, np.float64)
    count = keys.count if callable(keys) else len(keys)
    read = (lambda a, lo, hi: a(lo, hi)) if callable(keys) else (lambda a, lo, hi: a[lo:hi])
    largest = np.full(len(queries), -np.inf)
    total = np.zeros(len(queries))
    output = magnitude = 0.0
    for start in range(0, count, block):
        stop = min(start + block, count)
        scores = scale * (queries @ np.asarray(read(keys, start, stop), np.float64).T)
        v = np.asarray(read(values, start, stop), np.float64)
        grown = np.maximum(largest, scores.max(1))
        repair = np.exp(largest - grown)
        weights = np.exp(scores - grown[:, None])
        total = total * repair + weights.sum(1)
        output = output * repair[:, None] + weights @ v
        magnitude = magnitude * repair[:, None] + weights @ np.abs(v)
        largest = grown
    if count == 0:
        width = (values(0, 0) if callable(values) else values).shape[1]
        empty = np.zeros((len(queries), width))
        return empty, empty.copy(), largest
    return output / total[:, None], magnitude / total[:, None], largest + np.log(total)


class Streamed:
    """A method of a family as something that exact_rows reads block by block."""

    def __init__(self, read, count):
        self.read, self.count = read, count

    def __call__(self, start, stop):
        return self.read(start, stop)


def exact_sample(head, rows, block=8192):
    """O and |P| |V| of a family's head for the rows given, without its arrays in memory."""
    queries = np.concatenate([head.queries(int(i), int(i) + 1) for i in rows])
    keys, values = Streamed(head.keys, head.m), Streamed(head.values, head.m)
    return exact_rows(queries, keys, values, head.scale, block)[:2]


def componentwise(found, exact, magnitude):
    """max |found - exact| / (|P| |V|); where the magnitude is 0 any difference is infinite."""
    difference = np.abs(np.asarray(found, np.float64) - exact)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(difference == 0, 0.0, difference / magnitude)
    return float(ratio.max(initial=0.0))


def relative_l2(found, exact):
    norm = np.linalg.norm(exact)
    difference = np.linalg.norm(np.asarray(found, np.float64) - exact)
    return float(difference / norm) if norm else (0.0 if difference == 0 else math.inf)


# -- formats -----------------------------------------------------------------


def round_bf16(x):
    """To the nearest bfloat16, ties to even, as float32."""
    x = np.ascontiguousarray(x, np.float32)
    bits = x.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(x), x, rounded.view(np.float32))


def round_f16(x):
    """To the nearest float16, ties to even, as float32; infinite beyond 65520."""
    x = np.ascontiguousarray(x, np.float32)
    bits = x.view(np.uint32)
    rounded = (bits + np.uint32(0xFFF) + ((bits >> np.uint32(13)) & np.uint32(1))) & np.uint32(0xFFFFE000)
    value = rounded.view(np.float32)
    magnitude = np.abs(x)
    small = magnitude < np.float32(2.0 ** -14)      # subnormal numbers are multiples of 2^-24
    if small.any():
        value = np.where(small, np.rint(x * np.float32(2 ** 24)) / np.float32(2 ** 24), value)
    value = np.where(magnitude >= 65520, np.copysign(np.float32(np.inf), x), value)
    return np.where(np.isnan(x), x, value)


E4M3_MAX = 448.0


def round_e4m3(x):
    """To the nearest e4m3 (the form without infinities), ties to even, as float32; beyond 448 it saturates."""
    x = np.ascontiguousarray(x, np.float32)
    bits = x.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFFF) + ((bits >> np.uint32(20)) & np.uint32(1))) & np.uint32(0xFFF00000)
    value = np.clip(rounded.view(np.float32), -E4M3_MAX, E4M3_MAX)
    small = np.abs(x) < np.float32(2.0 ** -6)       # subnormal numbers are multiples of 2^-9
    if small.any():
        value = np.where(small, np.rint(x * np.float32(512)) / np.float32(512), value)
    return np.where(np.isnan(x), x, value)


def e4m3_values():
    """The values of all 256 codes, by the definition of the format: 4 bits of exponent, bias 7, and 3 of fraction."""
    table = np.empty(256)
    for code in range(256):
        exponent, fraction = code >> 3 & 15, code & 7
        value = fraction * 2.0 ** -9 if exponent == 0 else (8 + fraction) * 2.0 ** (exponent - 10)
        if exponent == 15 and fraction == 7:
            value = math.nan
        table[code] = -value if code & 128 else value
    return table


def round_int8(x):
    """To the nearest integer of -127 … 127, ties to even, saturating: symmetric, -128 is not used."""
    return np.clip(np.rint(np.asarray(x, np.float32)), -127, 127)


ROUND = {"f32": lambda x: np.asarray(x, np.float32), "bf16": round_bf16, "f16": round_f16,
         "e4m3": round_e4m3, "int8": round_int8}
LARGEST = {"e4m3": E4M3_MAX, "int8": 127.0}
TILE = 64      # rows that share a scale
ROWS = 256     # query rows whose weights are in memory at a time


def power_of_two_above(x):
    """The least power of two that is at least x, element by element; x > 0."""
    fraction, exponent = np.frexp(x)
    return np.ldexp(np.float32(1), exponent - (fraction == 0.5)).astype(np.float32)


def scales(x, kind, granularity, pow2=False):
    """What to divide x by before rounding, broadcast against it.

    Of rows, tiles of 64 rows, channels (columns) or the whole head, the largest magnitude goes to the largest value of the format,
    or, with a power of two, at most to it. A part of zeros only has the scale 1.
    """
    magnitude = np.abs(x)
    if granularity == "row":
        largest = magnitude.max(1, keepdims=True, initial=0)
    elif granularity == "channel":
        largest = magnitude.max(0, keepdims=True, initial=0)
    elif granularity == "head":
        largest = magnitude.max(initial=0).reshape(1, 1)
    elif granularity == "tile":
        rows = magnitude.max(1, initial=0)
        padded = np.pad(rows, (0, -len(rows) % TILE)).reshape(-1, TILE).max(1)
        largest = np.repeat(padded, TILE)[:len(rows), None]
    else:
        raise ValueError(f"there is no scale per '{granularity}'; there are: row, tile, channel, head")
    scale = np.where(largest > 0, largest / np.float32(LARGEST[kind]), 1).astype(np.float32)
    return power_of_two_above(scale) if pow2 else scale


def quantise(x, kind, granularity="head", pow2=False):
    """x rounded to a format with scales, as float32 values of the size of x."""
    if kind not in ROUND:
        raise ValueError(f"there is no format '{kind}'; there are: {', '.join(ROUND)}")
    if kind not in LARGEST:
        return ROUND[kind](x)
    scale = scales(x, kind, granularity, pow2)
    return ROUND[kind](x / scale) * scale


def quantise_weights(weights, kind):
    """Weights e^(s - max) of 0 … 1: e4m3 takes them times 2^8, int8 times 127, so that the range is used."""
    if kind == "e4m3":
        return round_e4m3(weights * np.float32(256)) * np.float32(2.0 ** -8)
    if kind == "int8":
        return round_int8(weights * np.float32(127)) / np.float32(127)
    return ROUND[kind](weights)


# -- laws --------------------------------------------------------------------


def centre_keys(keys):
    """K less its mean key. softmax(Q (K - 1 c^T)^T) = softmax(Q K^T), as q . c is the same for all keys of a row."""
    return keys - keys.mean(0, keepdims=True, dtype=np.float64).astype(np.float32)


def centre_values(values):
    """V less its mean row, and the mean: P V = P (V - 1 c^T) + c^T, as the weights of a row add up to 1."""
    mean = values.mean(0, keepdims=True, dtype=np.float64).astype(np.float32)
    return values - mean, mean


def rotation(width, seed=0):
    """Random signs, then Hadamard's matrix over the root of its order: orthogonal, D log D work to apply.

    A width that is no power of two takes blocks of the largest power of two that divides it.
    """
    order = width & -width
    matrix = np.ones((1, 1), np.float32)
    while len(matrix) < order:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    signs = np.random.default_rng(seed).choice(np.array([-1, 1], np.float32), width)
    whole = np.kron(np.eye(width // order, dtype=np.float32), matrix / np.float32(math.sqrt(order)))
    return signs[:, None] * whole


LAWS = ("kmean", "vmean", "rotate", "pow2", "norm")


class Choice:
    """Formats of Q and K (`scores`), of P and of V, each with the granularity of its scale."""

    def __init__(self, name, scores, weights, values, per="head", values_per="head"):
        self.name, self.scores, self.weights, self.values = name, scores, weights, values
        self.per, self.values_per = per, values_per

    def cost(self):
        """Of both contractions in units of 16-bit ones, where products of 8 bits run twice as fast: 1 … 2."""
        half = lambda kind: 0.5 if kind in LARGEST else 1.0
        return (half(self.scores) + max(half(self.weights), half(self.values))) / 2


def simulate(q, k, v, scale, choice, laws=(), accumulate=np.float32):
    """The output of attention in the formats of a choice, under some of the laws.

    `kmean` subtracts the mean key, `vmean` centres V and adds the mean back, `rotate` applies a rotation to Q and K,
    `pow2` makes scales powers of two, `norm` divides by the sum of the rounded weights in place of the exact ones.
    """
    unknown = sorted(set(laws) - set(LAWS))
    if unknown:
        raise ValueError(f"there is no law '{unknown[0]}'; there are: {', '.join(LAWS)}")
    q, k, v = (np.asarray(x, np.float32) for x in (q, k, v))
    mean = np.float32(0)
    if "kmean" in laws:
        k = centre_keys(k)
    if "vmean" in laws:
        v, mean = centre_values(v)
    if "rotate" in laws:
        turn = rotation(q.shape[1])
        q, k = q @ turn, k @ turn
    pow2 = "pow2" in laws
    q = quantise(q, choice.scores, choice.per, pow2)
    k = quantise(k, choice.scores, choice.per, pow2)
    v = quantise(v, choice.values, choice.values_per, pow2)
    q, k, v = (x.astype(accumulate, copy=False) for x in (q * np.float32(scale), k.T, v))
    output = np.empty((len(q), v.shape[1]), accumulate)
    for start in range(0, len(q), ROWS):
        scores = q[start:start + ROWS] @ k
        scores -= scores.max(1, keepdims=True)
        # Below this e^s is no normal number of float32, and nothing beside the weight 1 of the maximum.
        weights = np.exp(np.maximum(scores, -87, out=scores), out=scores)
        rounded = quantise_weights(weights, choice.weights).astype(accumulate, copy=False)
        total = (rounded if "norm" in laws else weights).sum(1, keepdims=True)
        output[start:start + ROWS] = rounded @ v / total
    return output + mean
