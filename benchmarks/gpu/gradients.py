"""Times the gradients of causal attention (examples/backward.moa) next to PyTorch's:

    moa-codegen examples/backward.moa --target=cuda -o DIRECTORY/backward.cu
    nvcc -gencode arch=compute_90a,code=sm_90a -shared -Xcompiler -fPIC DIRECTORY/backward.cu -o DIRECTORY/backward.so
    python3 benchmarks/gpu/gradients.py DIRECTORY... [--rounds 15]

Several directories are variants of ours in one run. The exit code is not 0 unless all of them give the same bits.
Errors are the largest relative L2 errors of the three gradients against float32, ours and PyTorch's, of one batch
entry and group of the first shape. Times are medians in ms, launched as timing.py says.
"""
import argparse
import ctypes
import os
import statistics
import sys

import torch
import torch.nn.functional as F

from timing import Kernel, measure

SHAPES = ((1, 16, 16, 4096), (2, 16, 4, 8192), (1, 32, 8, 16384))


def attend(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


def exact(q, k, v, upstream):
    """dQ, dK and dV of one batch entry and one group, in float32."""
    leaves = [x.float().requires_grad_() for x in (q, k, v)]
    scores = leaves[0] @ leaves[1].transpose(-1, -2) * q.shape[-1] ** -0.5
    visible = torch.ones(scores.shape[-2:], dtype=torch.bool, device="cuda").tril()
    result = scores.masked_fill(~visible, -torch.inf).softmax(-1) @ leaves[2]
    return torch.autograd.grad(result, leaves, upstream.float())


def error(found, wanted):
    return ((found.float() - wanted).norm() / wanted.norm()).item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directories", nargs="+")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    torch.manual_seed(1)
    differ = False
    for b, heads, groups, n in SHAPES:
        q, upstream = (torch.randn(b, heads, n, 128, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        k, v = (torch.randn(b, groups, n, 128, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        leaves = [x.clone().requires_grad_() for x in (q, k, v)]
        result = attend(*leaves)
        out = result.detach()
        share = heads // groups
        lse = torch.empty(b, heads, n, device="cuda")
        for h in range(heads):
            for first in range(0, n, 4096):
                rows = torch.arange(first, min(first + 4096, n), device="cuda")
                scores = q[:, h, rows].float() @ k[:, h // share].float().transpose(-1, -2) * 128**-0.5
                hidden = rows[:, None] < torch.arange(n, device="cuda")
                lse[:, h, rows] = scores.masked_fill(hidden, -torch.inf).logsumexp(-1)
        gradients = {}
        variants = {}
        for directory in options.directories:
            made = [torch.empty_like(q), torch.empty_like(q), torch.empty_like(q)]
            arguments = [q, k, v, out, upstream, lse, ctypes.c_float(128**-0.5), made[0], made[1]]
            variants[directory] = Kernel(os.path.join(directory, "backward.so"), "backward", arguments, made[2])
            gradients[directory] = made
        variants["PyTorch"] = lambda: torch.autograd.grad(result, leaves, upstream, retain_graph=True)
        times = measure(variants, options.rounds, 0.02)
        first = gradients[options.directories[0]]
        differ |= any(not torch.equal(x, y) for other in gradients.values() for x, y in zip(first, other))
        errors = ""
        if n <= 4096:  # the comparison needs n × n arrays
            theirs = variants["PyTorch"]()
            wanted = exact(q[0, :share], k[0, :1], v[0, :1], upstream[0, :share])
            ours = [first[0][0, :share], *(x[0, :share].float().sum(0, keepdim=True) for x in first[1:])]
            peer = [theirs[0][0, :share], theirs[1][0, :1], theirs[2][0, :1]]
            errors = ", ".join(f"{max(map(error, made, wanted)):.1e}" for made in (ours, peer))
        medians = {name: statistics.median(values) for name, values in times.items()}
        peer = medians.pop("PyTorch")
        print(f"B {b}, H {heads}, G {groups}, N {n}: " + ", ".join(f"{name} {value:.3f}" for name, value in medians.items()) +
              f", PyTorch {peer:.3f} ms" + (f"; errors {errors}" if errors else ""), flush=True)
        base = times[options.directories[0]]
        for name in options.directories[1:]:
            print(f"  {options.directories[0]} / {name}: {statistics.median(x / y for x, y in zip(base, times[name])):.4f}")
    if differ:
        sys.exit("the gradients of the directories differ")


if __name__ == "__main__":
    main()
