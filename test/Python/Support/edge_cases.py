"""The rows of docs/Compatibility.md as probes, and the comparison of the page with the outcomes.

A probe takes `run`, which calls one implementation of attention, and returns a word such as "NaN". A cell of the page
is that word. Arrays and references are NumPy's, so implementations need only a function of arrays.
"""
import contextlib
import dataclasses
import pathlib
import re
import sys

import numpy as np

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs" / "Compatibility.md"

# Each column belongs to one script, named by the part of the tests that runs it.
COLUMNS = {
    "math": "torch", "CPU flash": "torch", "FlexAttention, eager": "torch",
    "MoA SDPA": "torch", "MoA Flex": "torch", "MoA kernel": "moa",
    "cuDNN": "cuda", "efficient": "cuda", "FA2": "cuda", "FlexAttention, compiled": "cuda",
    "MoA SDPA, GPU": "cuda", "MoA Flex, GPU": "cuda",
    "JAX": "jax", "onnxruntime": "onnx", "ONNX reference": "onnx",
    "mask(p, S)": "moa", "addmask(S, a)": "moa", "select(p, S, -inf)": "moa",
}
NOT_OFFERED = "–"
UNSEEN = "?"  # in columns of a GPU: not observed yet
WORDS = {NOT_OFFERED, "right", "error", "0", "NaN", "mean of V", "unmasked", "both", "mask only", "causal only", "other", "wrong",
         "top-left", "bottom-right", "as written", "some rows NaN", "every row NaN", "empty", "e", "2",
         "B, H, N", "B, N, H", "B, H, N, 1", "B, H, N padded", "−∞", "+∞", "−2.4e38"}


class NotOffered(Exception):
    """The implementation has no argument for this."""


class Unclear(Exception):
    """Two words stand for results that are too close to be told apart."""


@dataclasses.dataclass
class Result:
    out: np.ndarray
    lse: np.ndarray = None


class Implementation:
    """Calls one implementation with arrays [B, H, N, D] of NumPy.

    `call(q, k, v, mask, causal, scale, gqa, lse)` returns a Result or raises. `causal` is False, True, or for
    implementations with `is_written` also "top-left" and "bottom-right": they take predicates instead of a flag.
    """
    bound = 1e-3  # of relative errors
    is_written = False

    def __call__(self, q, k, v, mask=None, causal=False, scale=None, gqa=False, lse=False):
        return self.call(q, k, v, mask, causal, scale, gqa, lse)

    def lower_right(self, q, k, v):
        """Calls with the library's own lower-right mask, not with an array."""
        raise NotOffered

    def lse_of_empty_row(self):
        """Returns the log-sum-exp of rows that see no key."""
        q, k, v = inputs(2, 3, 40, 96)
        mask = np.ones((1, 1, 40, 96), bool)
        mask[..., EMPTY, :] = False
        return by_heads(self(q, k, v, mask=mask, lse=True).lse)[:, :, EMPTY]

    def half(self):
        """Returns the same implementation in bfloat16."""
        raise NotOffered


EMPTY = 5  # the row without keys
LOWEST = np.float32(np.finfo(np.float32).min)  # stands for the lowest finite number of the mask's type


def inputs(b=2, h=4, n=48, m=80, d=64, e=None, g=None, seed=0):
    """Normal queries, keys and values; values have means that differ by column, so that words differ."""
    random = np.random.default_rng(seed)
    q, k, v = (random.standard_normal(shape).astype(np.float32)
               for shape in ((b, h, n, d), (b, g or h, m, d), (b, g or h, m, e or d)))
    return q * 2, k, v + random.standard_normal(v.shape[-1]).astype(np.float32)


def reference(q, k, v, mask=None, causal=None, scale=None):
    """Attention in float64: (output, natural log-sum-exp). Hidden keys are left out of every sum."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    if k.shape[1] != q.shape[1]:
        k, v = (np.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    n, m = q.shape[2], k.shape[2]
    scale = 1 / np.sqrt(q.shape[3]) if scale is None else scale
    seen = np.ones((n, m), bool)
    if causal:
        seen = np.tri(n, m, 0 if causal == "top-left" else m - n, dtype=bool)
    bias = np.zeros(())
    if mask is not None and mask.dtype == bool:
        seen = seen & mask
    elif mask is not None:
        bias, seen = np.where(mask > -np.inf, mask, 0).astype(np.float64), seen & (mask > -np.inf)
    seen = np.broadcast_to(seen, (*q.shape[:2], n, m))
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        scores = np.where(seen, (q @ np.swapaxes(k, -1, -2)) * scale + bias, -np.inf)
    top = scores.max(axis=-1, keepdims=True, initial=-np.inf)
    weights = np.where(seen, np.exp(scores - np.where(top > -np.inf, top, 0)), 0)
    total = weights.sum(axis=-1, keepdims=True)
    used = np.where(np.isfinite(v), v, 0)  # hidden keys may hold anything
    out = weights @ used / np.where(total > 0, total, 1)
    with np.errstate(divide="ignore"):
        return out, (np.log(total) + np.where(top > -np.inf, top, 0))[..., 0]


def distance(found, expected):
    if found.shape != expected.shape or not np.isfinite(found).all():
        return np.inf
    norm = np.linalg.norm(expected) or 1
    return np.linalg.norm(found.astype(np.float64) - expected) / norm


def judge(found, candidates, bound):
    """Returns the word whose array is `found`, "NaN", or "other"; words must be far from each other."""
    arrays = list(candidates.items())
    for k, (word, array) in enumerate(arrays):
        for other, rival in arrays[k + 1:]:
            if max(distance(array, rival), distance(rival, array)) <= 8 * bound:
                raise Unclear(f"{word} and {other} are too close")
    if np.isnan(found).all():
        return "NaN"
    return next((word for word, array in arrays if distance(found, array) < bound), "other")


def right_or_wrong(found, expected, bound):
    if found.size and np.isnan(found).all():
        return "NaN"
    return "right" if distance(found, expected) < bound else "wrong"


# Masks


def empty_row(value):
    """A row whose mask is `value` at every key; other rows have a mask of mixed entries."""
    def probe(run):
        q, k, v = inputs()
        keep = np.random.default_rng(1).random((2, 1, 48, 80)) > 0.3
        keep[:, :, EMPTY] = False
        if value is False:
            mask = keep
        else:
            mask = np.where(keep, 0, -np.inf).astype(np.float32)
            mask[:, :, EMPTY] = value
        found = run(q, k, v, mask=mask).out
        rest = np.arange(48) != EMPTY
        if distance(found[:, :, rest], reference(q, k, v, mask)[0][:, :, rest]) > run.bound:
            return "wrong in other rows"
        words = {"0": np.zeros_like(found[:, :, EMPTY]),
                 "mean of V": np.broadcast_to(v.astype(np.float64).mean(2), found[:, :, EMPTY].shape),
                 "unmasked": reference(q, k, v)[0][:, :, EMPTY]}
        return judge(found[:, :, EMPTY], words, run.bound)
    return probe


def mask_and_causal(run):
    q, k, v = inputs(n=48, m=48)
    mask = np.random.default_rng(1).random((2, 1, 48, 48)) > 0.3
    mask[..., 0] = True
    found = run(q, k, v, mask=mask, causal=True).out
    return judge(found, {"both": reference(q, k, v, mask, "top-left")[0], "mask only": reference(q, k, v, mask)[0],
                         "causal only": reference(q, k, v, None, "top-left")[0]}, run.bound)


# Causal corners


def corner(n, m):
    def probe(run):
        q, k, v = inputs(n=n, m=m)
        words = {name: reference(q, k, v, causal=name)[0] for name in ("top-left", "bottom-right")}
        if run.is_written:
            found = [judge(run(q, k, v, causal=name).out, words, run.bound) for name in words]
            return "as written" if found == list(words) else str(found)
        return judge(run(q, k, v, causal=True).out, words, run.bound)
    return probe


def lower_right(n, m):
    def probe(run):
        q, k, v = inputs(n=n, m=m)
        words = {"bottom-right": reference(q, k, v, causal="bottom-right")[0], "unmasked": reference(q, k, v)[0]}
        found = run.lower_right(q, k, v).out
        some = max(0, n - m)  # rows without keys
        return judge(found[:, :, some:], {word: array[:, :, some:] for word, array in words.items()}, run.bound)
    return probe


def lower_right_empty_row(run):
    q, k, v = inputs(n=80, m=48)
    found, some = run.lower_right(q, k, v).out[:, :, :32], slice(0, 32)
    words = {"0": np.zeros_like(found), "unmasked": reference(q, k, v)[0][:, :, some],
             "mean of V": np.broadcast_to(v.astype(np.float64).mean(2, keepdims=True), found.shape)}
    return judge(found, words, run.bound)


# Numerics


def scaled(scale, causal):
    def probe(run):
        q, k, v = inputs(n=128, m=128)
        expected = reference(q, k, v, causal="top-left" if causal else None, scale=scale)[0]
        found = run(q, k, v, causal=causal, scale=scale).out
        if not causal:
            return right_or_wrong(found, expected, run.bound)
        # The last row sees every key.
        return judge(found[:, :, :-1], {"0": np.zeros_like(expected[:, :, :-1]), "right": expected[:, :, :-1]},
                     run.bound)
    return probe


def in_half(probe):
    return lambda run: probe(run.half())


HIDDEN = 700  # the key that holds NaN or infinity


def hidden(array, value, causal):
    """Puts `value` into all of a key's row of K or V. No row sees the key, or with `causal` the rows from it on do."""
    def probe(run):
        q, k, v = inputs(b=1, h=2, n=768, m=768)
        mask = None if causal else np.tile(np.arange(768) != HIDDEN, (768, 1))
        expected = reference(q, k, v, mask, "top-left" if causal else None)[0]
        k, v = k.copy(), v.copy()
        {"K": k, "V": v}[array][:, :, HIDDEN] = value
        rows = slice(0, HIDDEN if causal else 768)
        found = run(q, k, v, mask=mask, causal=causal).out[:, :, rows]
        bad = ~np.isfinite(found).all(axis=(0, 1, 3))
        if distance(found[:, :, ~bad], expected[:, :, rows][:, :, ~bad]) > run.bound:
            return "wrong"
        return "every row NaN" if bad.all() else "some rows NaN" if bad.any() else "right"
    return probe


def lse_of(run):
    q, k, v = inputs(b=2, h=3, n=40, m=96)
    return run(q, k, v, lse=True).lse, reference(q, k, v)[1]


def lse_shape(run):
    return {(2, 3, 40): "B, H, N", (2, 40, 3): "B, N, H", (2, 3, 40, 1): "B, H, N, 1",
            (2, 3, 64): "B, H, N padded"}.get(lse_of(run)[0].shape, "another")


def by_heads(lse):
    """Returns lse of 2 batch entries, 3 heads and 40 queries as [B, H, N], without padding."""
    if lse.shape == (2, 40, 3):
        lse = lse.transpose(0, 2, 1)
    return lse.reshape(2, 3, -1)[:, :, :40]


def lse_base(run):
    found, expected = lse_of(run)
    return judge(by_heads(found), {"e": expected, "2": expected / np.log(2)}, max(run.bound, 5e-3))


def lse_empty(run):
    values = run.lse_of_empty_row().reshape(-1)
    if np.isnan(values).all():
        return "NaN"
    if (values != values[0]).any():
        return f"from {values.min()} to {values.max()}"
    if np.isinf(values[0]):
        return "+∞" if values[0] > 0 else "−∞"
    return "0" if values[0] == 0 else f"{values[0]:.1e}".replace("e+", "e").replace("-", "−")


# Shapes


def shaped(**shape):
    def probe(run):
        q, k, v = inputs(**shape)
        return right_or_wrong(run(q, k, v).out, reference(q, k, v)[0], run.bound)
    return probe


def heads(count, flag):
    def probe(run):
        q, k, v = inputs(h=6, g=count)
        found = run(q, k, v, gqa=flag).out
        return right_or_wrong(found, reference(q, k, v)[0], run.bound) if 6 % count == 0 else "no error"
    return probe


def no_keys(run):
    q, k, v = inputs(m=0)
    found = run(q, k, v).out
    return "NaN" if np.isnan(found).all() else "0" if found.shape == q.shape and not found.any() else "wrong"


def no_queries(run):
    q, k, v = inputs(n=0)
    return "empty" if run(q, k, v).out.shape == q.shape else "wrong"


def mask_shape(*shape, strided=False):
    def probe(run):
        q, k, v = inputs()
        mask = np.random.default_rng(1).random(shape) > 0.3
        mask[..., 0] = True
        full = np.broadcast_to(mask, (2, 4, 48, 80))
        found = run(q, k, v, mask=full if strided else mask).out
        return right_or_wrong(found, reference(q, k, v, full)[0], run.bound)
    return probe


ROWS = {
    "a row of False": empty_row(False),
    "a row of −∞": empty_row(-np.inf),
    "a row of the lowest finite float": empty_row(LOWEST),
    "a row of −1e4": empty_row(-1e4),
    "a mask and is_causal": mask_and_causal,
    "is_causal, N < M": corner(48, 80),
    "is_causal, N > M": corner(80, 48),
    "is_causal, N = 1": corner(1, 80),
    "causal_lower_right, N < M": lower_right(48, 80),
    "causal_lower_right, N > M": lower_right(80, 48),
    "its rows without keys": lower_right_empty_row,
    "scale 0": scaled(0.0, False),
    "scale 0, causal": scaled(0.0, True),
    "scale −1": scaled(-1.0, False),
    "scale −1, causal": scaled(-1.0, True),
    "scale −1, causal, bf16": in_half(scaled(-1.0, True)),
    "NaN in V, masked key": hidden("V", np.nan, False),
    "∞ in V, masked key": hidden("V", np.inf, False),
    "NaN in V, later key, causal": hidden("V", np.nan, True),
    "NaN in K, masked key": hidden("K", np.nan, False),
    "∞ in K, masked key": hidden("K", np.inf, False),
    "NaN in K, later key, causal": hidden("K", np.nan, True),
    "base of lse": lse_base,
    "shape of lse": lse_shape,
    "lse of a row without keys": lse_empty,
    "head size 60": shaped(d=60),
    "head size 72": shaped(d=72),
    "head size 100": shaped(d=100),
    "head size 512": shaped(d=512),
    "values of another width": shaped(d=64, e=32),
    "6 heads share 2, with the flag": heads(2, True),
    "6 heads share 2, no flag": heads(2, False),
    "6 heads, 4 key heads": heads(4, True),
    "one key": shaped(m=1),
    "no keys": no_keys,
    "no queries": no_queries,
    "mask [B, 1, 1, M]": mask_shape(2, 1, 1, 80),
    "mask [H, 1, M]": mask_shape(4, 1, 80),
    "mask [N, M]": mask_shape(48, 80),
    "mask [1, M]": mask_shape(1, 80),
    "mask [M]": mask_shape(80),
    "mask with strides of 0": mask_shape(2, 1, 1, 80, strided=True),
}


# The page


def plain(cell):
    return re.sub(r"[`*]", "", cell).strip()


def tables(text=None):
    """Yields (line, row, column, word) for every cell of the tables whose columns are implementations."""
    header = None
    lines = (PAGE.read_text(encoding="utf-8") if text is None else text).splitlines()
    for number, line in enumerate(lines, 1):
        if not line.startswith("|"):
            header = None
            continue
        cells = [plain(cell) for cell in line.strip().strip("|").split("|")]
        if header is None:
            header = cells
        elif header[0] == "case" and not re.fullmatch(r"[-|: ]+", line):
            if len(cells) != len(header):
                raise ValueError(f"{PAGE.name}:{number}: {len(cells)} cells, but {len(header)} columns")
            yield from ((number, cells[0], column, word) for column, word in zip(header[1:], cells[1:]))


def versions(text=None):
    """Returns the versions that the page states: library -> version."""
    text = PAGE.read_text(encoding="utf-8") if text is None else text
    return dict(re.findall(r"^\| ([A-Za-z]+) \| ([0-9.]+) \|", text, re.M))


def check_page(text=None):
    """Returns the faults of the page itself: unknown rows, columns and words, cells that stand twice, and versions that
    differ between the tables."""
    faults, seen = [], set()
    for number, row, column, word in tables(text):
        words = WORDS | {UNSEEN} if COLUMNS.get(column) == "cuda" else WORDS
        for kind, name, known in (("row", row, ROWS), ("column", column, COLUMNS), ("word", word, words)):
            if name not in known:
                faults.append(f"{PAGE.name}:{number}: there is no probe for the {kind} '{name}'")
        if (row, column) in seen:
            faults.append(f"{PAGE.name}:{number}: '{row}' of '{column}' stands twice")
        seen.add((row, column))
    faults += [f"no table has the row '{row}'" for row in ROWS if row not in {r for r, _ in seen}]
    faults += [f"no table has the column '{column}'" for column in COLUMNS if column not in {c for _, c in seen}]
    stated = versions(text)
    for library, version in re.findall(r"(\w+) ([0-9]+\.[0-9.]+[0-9])", " ".join(heads_of_tables(text))):
        if library in stated and version != stated[library]:
            faults.append(f"a table is for {library} {version}, but the page for {stated[library]}")
    return faults


def heads_of_tables(text=None):
    text = PAGE.read_text(encoding="utf-8") if text is None else text
    return re.findall(r"^\*\*(.*)\*\*$", text, re.M)


def observe(run, row):
    """Returns the word of a row, and the message of an error."""
    try:
        with np.errstate(all="ignore"), getattr(run, "quiet", contextlib.nullcontext)():
            return ROWS[row](run), ""
    except NotOffered:
        return NOT_OFFERED, ""
    except Unclear:
        raise
    except Exception as error:  # libraries refuse with classes of their own
        return "error", f"{type(error).__name__}: {error}"


def compare(implementations, options=()):
    """Runs every cell of the columns `implementations`; returns (number of cells, messages on wrong cells).

    Options: `--verbose` prints every cell, `--only=TEXT` takes the cells whose row or column has the text, and
    `--write` writes the observed words into the page.
    """
    only = next((option[7:] for option in options if option.startswith("--only=")), "")
    count, wrong, changed = 0, [], {}
    for number, row, column, expected in tables():
        if column not in implementations or row not in ROWS or only not in f"{row} / {column}":
            continue
        found, message = observe(implementations[column], row)
        count += 1
        if "--verbose" in options:
            reason = f"   ({' '.join(message.split())[:150]})" if message else ""
            print(f"{'ok   ' if found == expected else 'WRONG'} {column:24} {row:34} observed: {found:14} "
                  f"expected: {expected}{reason}", flush=True)
        if found != expected:
            wrong.append(f"{PAGE.name}:{number}: {row}, {column}: the page says '{expected}', observed '{found}' "
                         f"{message[:400]}")
            changed[number, column] = found
    if "--write" in options:
        write(changed)
    return count, wrong


def write(changed):
    """Writes words into the cells (line, column) of the page."""
    lines, header = PAGE.read_text(encoding="utf-8").split("\n"), []
    for number, line in enumerate(lines, 1):
        if plain(line.strip("|").split("|")[0]) == "case":
            header = [plain(cell) for cell in line.strip().strip("|").split("|")]
        places = {header.index(column): word for (at, column), word in changed.items() if at == number}
        if places:
            cells = line.strip().strip("|").split("|")
            lines[number - 1] = "|" + "|".join(f" {places[k]} " if k in places else cell
                                               for k, cell in enumerate(cells)) + "|"
    PAGE.write_text("\n".join(lines), encoding="utf-8")


def same_version(library, installed):
    """Returns whether the page is for the installed version; says so if it is not."""
    stated = versions().get(library)
    assert stated, f"the page states no version of {library}"
    if installed.split("+")[0] == stated:
        return True
    print(f"skipped: {library} is {installed}, but the page is for {stated}", file=sys.stderr)
    return False
