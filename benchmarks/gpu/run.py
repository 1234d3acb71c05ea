"""Times emitted kernels beside cuDNN, FlashAttention 2 and FlexAttention.

Launches of all variants go in shuffled round-robin order, each after an idle gap
and a flush of the second-level cache, which also hides the work of the host, so
that clock, cache and queue are the same for all of them; printed are medians of
the times and of the per-round ratios, with quartiles.

Several directories of kernels are variants of ours in the same run, each named
after its directory.
"""
import argparse
import ctypes
import os
import random
import statistics
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

WINDOW, CAP, DOCUMENT = 1024, 30.0, 1024


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


def describe(tensor):
    """DLPack's descriptor of a tensor on the current device."""
    n = tensor.dim()
    code = {torch.bfloat16: 4}.get(tensor.dtype, 2)
    code = {torch.int8: 0, torch.int32: 0, torch.bool: 6}.get(tensor.dtype, code)
    return DLTensor(tensor.data_ptr(), 2, tensor.device.index or 0, n, code,
                    8 * tensor.element_size(), 1, (ctypes.c_int64 * n)(*tensor.shape),
                    (ctypes.c_int64 * n)(*tensor.stride()), 0)


class Kernel:
    """An emitted entry point on tensors and scalars that do not change."""

    def __init__(self, path, name, inputs, output):
        library = ctypes.CDLL(path)
        self.function = getattr(library, name)
        tensors = [describe(x) for x in inputs if isinstance(x, torch.Tensor)] + [describe(output)]
        refs = iter([ctypes.byref(t) for t in tensors])
        self.kept = tensors
        self.arguments = [next(refs) if isinstance(x, torch.Tensor) else x for x in inputs]
        self.arguments.append(next(refs))
        needed = getattr(library, name + "_workspace")
        needed.restype = ctypes.c_int64
        self.workspace = torch.empty(max(needed(*self.arguments), 0), dtype=torch.uint8, device="cuda")
        self.arguments += [ctypes.c_void_p(self.workspace.data_ptr()), ctypes.c_size_t(self.workspace.numel())]

    def __call__(self):
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        code = self.function(*self.arguments, stream)
        if code:
            raise RuntimeError(f"the kernel refused: code {code}")


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
    """One form at one shape: our arguments, its peers, its meaning."""

    def __init__(self, form, b, h, n, d, m=None):
        self.form, self.shape, self.keys = form, (b, h, n, d), m or n
        self.q = torch.randn(b, h, n, d, device="cuda", dtype=torch.bfloat16)
        self.k, self.v = (torch.randn(b, h, self.keys, d, device="cuda", dtype=torch.bfloat16)
                          for _ in range(2))
        self.kernel = {"softcap": "softcapped"}.get(form, form)
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
        return self.form in ("causal", "alibi", "sliding_window")

    def inputs(self):
        scale = ctypes.c_float(self.scale)
        if self.seen:
            return [self.q, self.k, self.v, scale, self.array]
        extra = {"alibi": [self.slopes, scale], "softcap": [scale, ctypes.c_float(CAP)],
                 "sliding_window": [scale, ctypes.c_int32(WINDOW)],
                 "document": [self.documents, scale]}
        return [self.q, self.k, self.v] + extra.get(self.form, [scale])

    def visible(self, i, j):
        seen = j <= i
        return seen & (i - j < WINDOW) if self.form == "sliding_window" else seen

    def peers(self):
        if self.form in ("sdpa", "causal"):
            def backend(which):
                def run():
                    with sdpa_kernel(which):
                        F.scaled_dot_product_attention(self.q, self.k, self.v, scale=self.scale,
                                                       is_causal=self.causal())
                return run
            return {"cuDNN": backend(SDPBackend.CUDNN_ATTENTION),
                    "FA2": backend(SDPBackend.FLASH_ATTENTION)}
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
        flex = torch.compile(flex_attention, dynamic=False)
        return {"Flex": lambda: flex(self.q, self.k, self.v, score_mod=score, block_mask=mask,
                                     scale=self.scale)}

    def error(self, output):
        """Relative L2 error on some rows, against float64."""
        n = self.shape[2]
        rows = torch.tensor(sorted(random.sample(range(n), 32)), device="cuda")
        s = (self.q[:, :, rows].double() @ self.k.double().transpose(-1, -2)) * self.scale
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
        want = torch.softmax(s, -1).nan_to_num() @ self.v.double()  # 0 where a row sees nothing
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
        if self.form in ("causal", "alibi"):
            area = n * (n + 1) // 2
        elif self.form == "sliding_window":
            area = sum(min(i + 1, WINDOW) for i in range(n))
        return 4 * b * h * d * area


def measure(variants, rounds, gap, ahead=0):
    """Times of interleaved launches in ms. The device first waits so many cycles, so that a host that needs long to
    start many kernels is ahead of it, as it is where launches follow each other."""
    flush = torch.empty(512 << 20, dtype=torch.uint8, device="cuda")
    times = {name: [] for name in variants}
    for run in variants.values():
        run()
    torch.cuda.synchronize()
    for _ in range(rounds):
        order = list(variants)
        random.shuffle(order)
        for name in order:
            time.sleep(gap)
            flush.zero_()
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            if ahead:
                torch.cuda._sleep(ahead)
            start.record()
            variants[name]()
            end.record()
            torch.cuda.synchronize()
            times[name].append(start.elapsed_time(end))
    return times


CASES = [("sdpa", 2, 16, 8192, 128), ("causal", 2, 16, 8192, 128),
         ("sdpa", 2, 32, 8192, 64), ("causal", 2, 32, 8192, 64),
         ("sdpa", 2, 8, 8192, 256), ("causal", 2, 8, 8192, 256),
         ("alibi", 2, 16, 8192, 128), ("softcap", 2, 16, 8192, 128),
         ("sliding_window", 2, 16, 8192, 128),
         ("alibi", 2, 32, 8192, 64), ("softcap", 2, 32, 8192, 64),
         ("sliding_window", 2, 32, 8192, 64),
         ("document", 2, 16, 8192, 128), ("document", 2, 32, 8192, 64),
         ("mask_documents", 2, 16, 8192, 128), ("mask_half", 2, 16, 8192, 128),
         ("mask_half_bh", 2, 16, 8192, 128), ("block_sparse", 2, 16, 8192, 128),
         ("tree_ancestors", 8, 32, 64, 128, 8192 + 64)]


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
    for form, b, h, n, d, *m in CASES:
        if options.forms and form not in options.forms.split(","):
            continue
        case = Case(form, b, h, n, d, *m)
        variants, errors = {}, []
        for directory in options.directories:
            file = case.kernel if case.seen else form
            path = os.path.join(directory, f"{file}-{d}.so")
            if not os.path.exists(path):
                continue
            output = torch.full_like(case.q, float("nan"))
            kernel = Kernel(path, case.kernel, case.inputs(), output)
            kernel()
            torch.cuda.synchronize()
            errors.append(f"{case.error(output):.2e}")
            label = "ours" if len(options.directories) == 1 else os.path.basename(directory)
            variants[label] = kernel
        variants.update(case.peers())
        times = measure(variants, options.rounds, options.gap)
        flops = case.flops()
        base = "cuDNN" if "cuDNN" in times else "Flex"
        print(f"{form} bf16 ({b}, {h}, {n}, {d}): error {' '.join(errors)}")
        for name, values in times.items():
            ratio = sorted(c / t for c, t in zip(times[base], values))
            q1, q2, q3 = statistics.quantiles(ratio, n=4)
            median = statistics.median(values)
            print(f"  {name:6} {median:8.3f} ms {flops / median * 1e-9:7.1f} TFLOP/s   "
                  f"{q2:.3f} x {base} (quartiles {q1:.3f} .. {q3:.3f})", flush=True)


if __name__ == "__main__":
    main()
