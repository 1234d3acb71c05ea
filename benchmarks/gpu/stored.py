"""Times the kernels of stored.moa and PyTorch's operators for the same formulas. Each kernel reads a value per row along another axis.

    benchmarks/gpu/others.sh emit DIRECTORY
    benchmarks/gpu/others.sh run DIRECTORY stored

Prints medians of interleaved launches in ms, and relative L2 errors against float64 up to 2,048 rows.
For twice N = M a time should grow four times. A time that grows eight times says that every row computes something again.
"""
import statistics
import sys

import torch

from run import Kernel, measure

SIZES = (1024, 2048, 4096)
SHAPE = (1, 16)
D = 64


class Stored(Kernel):
    """A kernel with any number of outputs."""

    def __init__(self, path, name, inputs, outputs):
        super().__init__(path, name, list(inputs) + list(outputs[:-1]), outputs[-1])


def weights(q, k):
    return torch.softmax((q @ k.transpose(-1, -2)) * 0.125, -1)


def sticks(q, k):
    s = (q @ k.transpose(-1, -2)) * 0.125
    n = s.shape[-1]
    below = torch.ones(n, n, device=s.device, dtype=torch.bool).tril(-1)
    left = torch.where(below, torch.nn.functional.logsigmoid(-s), 0)
    after = left.flip(-1).cumsum(-1).flip(-1) - left
    return torch.where(below, torch.sigmoid(s) * torch.exp(after), 0)


FORMS = {
    "column_sums": lambda q, k, v: [weights(q, k).sum(-2)],
    "turned": lambda q, k, v: [weights(q, k).transpose(-1, -2) @ v],
    "heads": lambda q, k, v: [weights(q, k).mean(1)],
    "tops": lambda q, k, v: [rows := ((q @ k.transpose(-1, -2)) * 0.125).amax(-1), rows.amax(-1), rows.sum(-1)],
    "stick": lambda q, k, v: [sticks(q, k) @ v],
}
TAKES_VALUES = ("turned", "stick")


def compare(directory, form, kind, n):
    dtype = torch.bfloat16 if kind == "bf16" else torch.float32
    q, k, v = (torch.randn(*SHAPE, n, D, device="cuda", dtype=dtype) for _ in range(3))
    meaning = FORMS[form]
    wanted = meaning(q.double(), k.double(), v.double()) if n <= 2048 else None
    likely = meaning(q, k, v)
    outputs = [torch.empty(t.shape, device="cuda", dtype=dtype if form in TAKES_VALUES else torch.float32) for t in likely]
    inputs = [q, k, v] if form in TAKES_VALUES else [q, k]
    kernel = Stored(f"{directory}/stored-{kind}.so", form, inputs, outputs)
    times = measure({"ours": kernel, "torch": lambda: meaning(q, k, v)}, 15, 0.01)
    ours, theirs = (statistics.median(times[way]) for way in ("ours", "torch"))
    error = "-" if wanted is None else f"{max(float((o.double() - w).norm() / w.norm()) for o, w in zip(outputs, wanted)):.1e}"
    print(f"| {form} | {kind} | {n} | {ours:.4f} | {theirs:.4f} | {theirs / ours:.2f} | {error} |", flush=True)


def main():
    torch.manual_seed(0)
    print("| form | type | N = M | ours, ms | PyTorch, ms | PyTorch / ours | error |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for form in FORMS:
        for kind in ("bf16", "f32"):
            for n in SIZES:
                compare(sys.argv[1], form, kind, n)


if __name__ == "__main__":
    main()
