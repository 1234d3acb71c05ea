"""Times emitted kernels next to cuDNN, FlashAttention 2 and FlexAttention, and FlashAttention 4 if it is installed.

Launches of all variants go in shuffled round-robin order, each after an idle gap, a flush of the second-level cache
and at least 1 ms of queued device work, so that no time of the host is measured (timing.py). Prints medians of the
times and of the ratios per round, with quartiles.

Several directories of kernels are variants of ours in the same run, each named
after its directory.
"""
import argparse
import ctypes
import os
import random
import statistics
import sys

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from timing import Kernel, measure

try:
    from flash_attn.cute import flash_attn_func as flash_attention_4
except ImportError:
    flash_attention_4 = None

WINDOW, CAP, DOCUMENT = 1024, 30.0, 1024


def truths(shape, share=0.5):
    return torch.rand(shape, device="cuda") < share


def documents_of(n):
    """Whether two of n tokens are of one document."""
    numbers = truths((n,), 1 / DOCUMENT).cumsum(0)
    return numbers[:, None] == numbers[None]


def tree(n):
    """The ancestors of n drafted tokens, each behind one of the eight before it."""
    ancestors = torch.eye(n, dtype=torch.bool)
    for token in range(1, n):
        ancestors[token] |= ancestors[max(0, token - random.randrange(1, 9))]
    return ancestors.cuda()


# Masks that are read at every pair: the kernel, the array it reads, and which element of it
# tells of batch entry b, head h, row i and key j.
MASKS = {
    "mask_documents": ("mask_ij", lambda b, h, n, m: documents_of(n), lambda a, b, h, i, j: a[i, j]),
    "mask_half": ("mask_ij", lambda b, h, n, m: truths((n, m)), lambda a, b, h, i, j: a[i, j]),
    "mask_half_bh": ("mask_bhij", lambda b, h, n, m: truths((b, h, n, m)), lambda a, b, h, i, j: a[b, h, i, j]),
    "block_sparse": ("block_sparse", lambda b, h, n, m: truths((b, h, n // 64, m // 64), 0.125),
                     lambda a, b, h, i, j: a[b, h, i // 64, j // 64]),
}


class Case:
    """One form at one shape: our arguments, its peers, its meaning.

    Queries are [b, h, n, d], keys and values [b, g, m, d].
    """

    def __init__(self, form, b, h, n, d, m=None, g=None):
        self.form, self.shape, self.keys, self.key_heads = form, (b, h, n, d), m or n, g or h
        self.q = torch.randn(b, h, n, d, device="cuda", dtype=torch.bfloat16)
        self.k, self.v = (torch.randn(b, self.key_heads, self.keys, d, device="cuda", dtype=torch.bfloat16)
                          for _ in range(2))
        self.kernel = {"softcap": "softcapped", "decode": "gqa_causal"}.get(form, form)
        self.seen = None  # of batch entry, head, row and key, where the form is a mask
        if form in MASKS:
            self.kernel, array, seen = MASKS[form]
            made = self.array = array(b, h, n, self.keys)
            self.seen = lambda b, h, i, j: seen(made, b, h, i, j)
        elif form == "tree_ancestors":
            past, ancestors = self.keys - n, tree(n)
            self.array = ancestors
            self.seen = lambda b, h, i, j: (j < past) | ancestors[i, (j - past).clamp(0)]
        self.scale = d ** -0.5
        # Documents of random lengths, DOCUMENT tokens on average.
        starts = torch.rand(b, n, device="cuda") < 1 / DOCUMENT
        self.documents = starts.cumsum(1).to(torch.int32)
        self.slopes = 2.0 ** (-8.0 * torch.arange(1, h + 1, device="cuda") / h)

    def causal(self):
        """Whether a query sees the keys up to its own position, the last query the last key."""
        return self.form in ("causal", "alibi", "sliding_window", "gqa_causal", "decode")

    def file(self):
        """The name of the kernel's file, without its extension."""
        if self.seen:
            return f"{self.kernel}-{self.shape[3]}"
        return f"{self.form}-{self.shape[3]}"

    def outputs(self):
        made = [torch.full_like(self.q, float("nan"))]
        if self.kernel == "gqa_causal":
            made.append(torch.empty(self.shape[:3], device="cuda"))
        return made

    def inputs(self):
        scale = ctypes.c_float(self.scale)
        if self.seen:
            return [self.q, self.k, self.v, scale, self.array]
        extra = {"alibi": [self.slopes, scale], "softcap": [scale, ctypes.c_float(CAP)],
                 "sliding_window": [scale, ctypes.c_int32(WINDOW)],
                 "document": [self.documents, scale]}
        return [self.q, self.k, self.v] + extra.get(self.form, [scale])

    def visible(self, i, j):
        seen = j <= i + (self.keys - self.shape[2])
        return seen & (i - j < WINDOW) if self.form == "sliding_window" else seen

    def peers(self):
        if self.form in ("sdpa", "causal", "gqa_causal", "decode"):
            is_causal = self.causal() and self.shape[2] > 1  # one query sees every key

            def backend(which):
                def run():
                    with sdpa_kernel(which):
                        F.scaled_dot_product_attention(self.q, self.k, self.v, scale=self.scale, is_causal=is_causal,
                                                       enable_gqa=self.key_heads != self.shape[1])
                return run
            made = {"cuDNN": backend(SDPBackend.CUDNN_ATTENTION), "FA2": backend(SDPBackend.FLASH_ATTENTION)}
            if flash_attention_4:
                q, k, v = (x.transpose(1, 2).contiguous() for x in (self.q, self.k, self.v))
                made["FA4"] = lambda: flash_attention_4(q, k, v, causal=is_causal, softmax_scale=self.scale)
            return made
        slopes = self.slopes
        score = {"alibi": lambda s, b, h, i, j: s + slopes[h] * (j - i),
                 "softcap": lambda s, b, h, i, j: CAP * torch.tanh(s / CAP)}.get(self.form)
        mask = None
        if self.seen:
            b, h, n = self.shape[:3]
            shared = self.kernel in ("mask_ij", "tree_ancestors")
            mask = create_block_mask(self.seen, None if shared else b, None if shared else h, n, self.keys)
        if self.form == "document":
            b, n = self.shape[0], self.shape[2]
            documents = self.documents
            mask = create_block_mask(lambda b, h, i, j: documents[b, i] == documents[b, j], b, None, n, n)
        if self.causal():
            n = self.shape[2]
            mask = create_block_mask(lambda b, h, i, j: self.visible(i, j), None, None, n, n)
        torch._dynamo.reset()  # at most eight compiled variants of a function are kept
        flex = torch.compile(flex_attention, dynamic=False)
        return {"Flex": lambda: flex(self.q, self.k, self.v, score_mod=score, block_mask=mask,
                                     scale=self.scale)}

    def error(self, output):
        """Relative L2 error on some rows, against float64."""
        n = self.shape[2]
        rows = torch.tensor(sorted(random.sample(range(n), min(n, 32))), device="cuda")
        k, v = (x.double().repeat_interleave(self.shape[1] // self.key_heads, 1) for x in (self.k, self.v))
        s = (self.q[:, :, rows].double() @ k.transpose(-1, -2)) * self.scale
        i, j = rows[:, None], torch.arange(self.keys, device="cuda")[None]
        if self.seen:
            b, h = (torch.arange(size, device="cuda") for size in self.shape[:2])
            seen = self.seen(b[:, None, None, None], h[:, None, None], i, j)
            s = s.masked_fill(~seen, float("-inf"))
        if self.form == "alibi":
            s = s + self.slopes.double()[:, None, None] * (j - i)
        if self.form == "softcap":
            s = CAP * torch.tanh(s / CAP)
        if self.form == "document":
            d = self.documents
            s = s.masked_fill((d[:, rows, None] != d[:, None, :])[:, None], float("-inf"))
        if self.causal():
            s = s.masked_fill(~self.visible(i, j), float("-inf"))
        want = torch.softmax(s, -1).nan_to_num() @ v  # 0 where a row sees nothing
        return ((output[:, :, rows].double() - want).norm() / want.norm()).item()

    def flops(self):
        """Of the scores that are seen."""
        b, h, n, d = self.shape
        area = n * self.keys
        if self.seen:
            i, j = torch.arange(n, device="cuda")[:, None], torch.arange(self.keys, device="cuda")[None]
            return 4 * d * sum(int(self.seen(torch.tensor(x), torch.tensor(y), i, j).sum())
                               for x in range(b) for y in range(h))
        if self.form == "document":
            sizes = [torch.bincount(of.long()).double() for of in self.documents]
            return 4 * h * d * sum(float((s * s).sum()) for s in sizes)
        if self.form == "sliding_window":
            area = sum(min(i + 1, WINDOW) for i in range(n))
        elif self.causal():
            area = n * (n + 1) // 2 + n * (self.keys - n)
        return 4 * b * h * d * area

    def bytes(self):
        """Of keys and values."""
        return 2 * self.k.numel() * self.k.element_size()


# Form, B, H, N, D and, where they differ, the keys M and the key heads G.
CASES = [("sdpa", 2, 16, 8192, 128), ("causal", 2, 16, 8192, 128),
         ("sdpa", 2, 32, 8192, 64), ("causal", 2, 32, 8192, 64),
         ("sdpa", 2, 8, 8192, 256), ("causal", 2, 8, 8192, 256),
         ("sdpa", 1, 16, 16384, 128), ("causal", 1, 16, 16384, 128),
         ("sdpa", 8, 16, 2048, 128), ("causal", 8, 16, 2048, 128),
         ("sdpa", 16, 16, 1024, 128), ("causal", 16, 16, 1024, 128),
         ("sdpa", 32, 16, 512, 128), ("causal", 32, 16, 512, 128),
         ("sdpa", 32, 32, 512, 64), ("causal", 32, 32, 512, 64),
         ("gqa_causal", 2, 32, 8192, 128, 8192, 8), ("gqa_causal", 8, 32, 2048, 128, 2048, 8),
         ("gqa_causal", 8, 32, 1, 128, 8192, 8), ("decode", 8, 32, 1, 128, 8192, 8),
         ("decode", 1, 32, 1, 128, 131072, 8), ("decode", 8, 32, 1, 128, 8192, 32),
         ("alibi", 2, 16, 8192, 128), ("softcap", 2, 16, 8192, 128),
         ("sliding_window", 2, 16, 8192, 128),
         ("alibi", 2, 32, 8192, 64), ("softcap", 2, 32, 8192, 64),
         ("sliding_window", 2, 32, 8192, 64),
         ("document", 2, 16, 8192, 128), ("document", 2, 32, 8192, 64),
         ("mask_documents", 2, 16, 8192, 128), ("mask_half", 2, 16, 8192, 128),
         ("mask_half_bh", 2, 16, 8192, 128), ("block_sparse", 2, 16, 8192, 128),
         ("tree_ancestors", 8, 32, 64, 128, 8192 + 64)]


def runs(name, run, case):
    """Whether a variant runs at all; prints why not. A peer may lack a form or a shape."""
    try:
        run()
        torch.cuda.synchronize()
        return True
    except Exception as error:  # whatever a peer raises
        if name in ("cuDNN", "FA2", "FA4", "Flex"):
            print(f"  {name} does not run {case.form} {case.shape}: {str(error).splitlines()[0][:150]}")
            return False
        raise


def table_row(label, times, flops, size):
    """Returns a row of Markdown: the speed of our first variant relative to each peer, medians of ratios per round."""
    ours, *others = times
    median = {name: statistics.median(values) for name, values in times.items()}
    speed = {name: statistics.median(t / o for t, o in zip(times[name], times[ours])) for name in others}
    rate = f"{flops / median[ours] * 1e-9:.0f} TFLOP/s" if flops else f"{size / median[ours] * 1e-6:.0f} GB/s"
    peer = next((name for name in ("cuDNN", "Flex") if name in speed), None)
    further = ", ".join(f"{name} {value:.3f}" for name, value in speed.items() if name != peer)
    if not peer:
        return f"| {label} | {median[ours]:.4f} | {rate} | | | | {further} |"
    return f"| {label} | {median[ours]:.4f} | {rate} | {peer} | {median[peer]:.4f} | {speed[peer]:.3f} | {further} |"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directories", nargs="+")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--gap", type=float, default=0.05)
    parser.add_argument("--forms", default="")
    options = parser.parse_args()
    torch.manual_seed(1)
    print(torch.cuda.get_device_name(), "PyTorch", torch.__version__, "cuDNN",
          torch.backends.cudnn.version(), flush=True)
    table, missing = [], []
    for form, b, h, n, d, *more in CASES:
        if options.forms and form not in options.forms.split(","):
            continue
        case = Case(form, b, h, n, d, *more)
        variants, errors = {}, []
        for directory in options.directories:
            path = os.path.join(directory, case.file() + ".so")
            if not os.path.exists(path):
                print(f"{form} {case.shape}: no kernel {path}", file=sys.stderr, flush=True)
                missing.append(path)
                continue
            *others, last = outputs = case.outputs()
            kernel = Kernel(path, case.kernel, case.inputs() + others, last)
            kernel()
            torch.cuda.synchronize()
            errors.append(f"{case.error(outputs[0]):.2e}")
            label = "ours" if len(options.directories) == 1 else os.path.basename(directory)
            variants[label] = kernel
        if not variants:
            continue
        variants.update(case.peers())
        variants = {name: run for name, run in variants.items() if runs(name, run, case)}
        times = measure(variants, options.rounds, options.gap)
        flops = case.flops()
        base = "cuDNN" if "cuDNN" in times else "Flex"
        heads = f"{h}/{case.key_heads}" if case.key_heads != h else f"{h}"
        keys = f" of {case.keys} keys" if case.keys != n else ""
        print(f"{form} bf16 ({b}, {heads}, {n}{keys}, {d}): error {' '.join(errors)}")
        for name, values in times.items():
            ratio = sorted(c / t for c, t in zip(times[base], values))
            q1, q2, q3 = statistics.quantiles(ratio, n=4)
            median = statistics.median(values)
            rate = f"{flops / median * 1e-9:7.1f} TFLOP/s" if n > 1 else f"{case.bytes() / median * 1e-6:7.0f} GB/s   "
            print(f"  {name:6} {median:8.4f} ms {rate}   "
                  f"{q2:.3f} x {base} (quartiles {q1:.3f} .. {q3:.3f})", flush=True)
        table.append(table_row(f"{form} ({b}, {heads}, {n}{keys}, {d})", times, flops if n > 1 else 0, case.bytes()))
    print("\n| form (B, H, N, D) | ours, ms | rate | peer | peer, ms | speed of ours / peer | further peers |")
    print("|---|---:|---|---|---:|---:|---|")
    print("\n".join(table))
    return f"{len(missing)} kernels are missing: first write them with run.sh emit, then compile them" if missing else None


if __name__ == "__main__":
    sys.exit(main())
