"""Compares the simulated formats with PyTorch's conversions, on a GPU where there is one.

    python3 benchmarks/accuracy/formats_torch.py

For a machine that has PyTorch; prints the number of values that were compared, and fails with the first that differs.
"""
import sys

import numpy as np

import reference

try:
    import torch
except ImportError:
    torch = None


def samples():
    """All float16 values, and random numbers over the range of each format, midpoints among them."""
    every = np.arange(65536, dtype=np.uint16).view(np.float16)
    generator = np.random.default_rng(0)
    wide = generator.standard_normal(1 << 20) * np.exp2(generator.uniform(-26, 10, 1 << 20))
    table = np.sort(reference.e4m3_values()[~np.isnan(reference.e4m3_values())])
    middle = (table[1:] + table[:-1]) / 2
    return np.concatenate([every[np.isfinite(every)].astype(np.float32), wide.astype(np.float32), middle.astype(np.float32)])


def main():
    if torch is None:
        print("formats_torch.py: this Python has no PyTorch", file=sys.stderr)
        return 1
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = samples()
    for name, kind, limit in (("bf16", torch.bfloat16, np.inf), ("f16", torch.float16, np.inf),
                              ("e4m3", torch.float8_e4m3fn, reference.E4M3_MAX)):
        values = x[np.abs(x) <= limit]
        theirs = torch.from_numpy(values).to(device).to(kind).to(torch.float32).cpu().numpy()
        ours = reference.ROUND[name](values)
        wrong = np.nonzero(~((ours == theirs) | (np.isnan(ours) & np.isnan(theirs))))[0]
        if wrong.size:
            at = wrong[0]
            print(f"formats_torch.py: {name} of {values[at]!r} is {ours[at]!r} here and {theirs[at]!r} in PyTorch", file=sys.stderr)
            return 1
        print(f"{name}: {len(values)} values as in PyTorch {torch.__version__} on {device}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
