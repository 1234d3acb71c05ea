"""Times attention with norms, gains and positions of its operands (norms.moa) beside attention as it is written, and
beside PyTorch, which computes them on their own (compiled, in one kernel each) in front of cuDNN's attention:

    moa-codegen benchmarks/gpu/norms.moa --target=cuda -o DIRECTORY/norms.cu
    nvcc -gencode arch=compute_90a,code=sm_90a -O3 -shared -Xcompiler -fPIC DIRECTORY/norms.cu -o DIRECTORY/norms.so -lcuda
    python3 benchmarks/gpu/norms.py DIRECTORY/norms.so

Medians of interleaved launches; relative L2 errors against float64 on 128 rows of one head.
"""
import argparse
import ctypes
import statistics

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from timing import Kernel, measure


def rms(x):
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-6)


def turn(x, c, s):
    half = x.shape[-1] // 2
    return x * c + torch.cat((-x[..., half:], x[..., :half]), -1) * s


# What is computed of the queries, of the keys and of the result, and whether the operands are rounded.
FORMS = {
    "plain": (lambda q, a: q, lambda k, a: k, lambda o: o, False),
    "norms": (lambda q, a: rms(q), lambda k, a: rms(k), lambda o: o, False),
    "gains": (lambda q, a: rms(q) * a[0], lambda k, a: rms(k) * a[1], lambda o: o, True),
    "rotary": (lambda q, a: turn(q, *a), lambda k, a: turn(k, *a), lambda o: o, True),
    "results": (lambda q, a: q, lambda k, a: k, rms, False),
}


def arrays(form, n, d):
    if form == "gains":
        return [torch.rand(d, device="cuda") + 0.5 for _ in range(2)]
    if form == "rotary":
        angle = torch.arange(n, device="cuda")[:, None] * 10000 ** (-torch.arange(d // 2, device="cuda") / (d // 2))
        angle = torch.cat((angle, angle), -1)
        return [angle.cos().float(), angle.sin().float()]
    return []


def torch_form(form, q, k, v, more, scale):
    of_q, of_k, of_o, _ = FORMS[form]
    front = torch.compile(lambda q, k: (of_q(q.float(), more).bfloat16(), of_k(k.float(), more).bfloat16()))
    behind = torch.compile(lambda o: of_o(o.float()).bfloat16())

    def call():
        a, b = (q, k) if form in ("plain", "results") else front(q, k)
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            o = F.scaled_dot_product_attention(a, b, v, scale=scale, is_causal=form == "rotary")
        return behind(o) if form == "results" else o
    return call


def expected(form, q, k, v, more, scale, rows):
    of_q, of_k, of_o, is_rounded = FORMS[form]
    q, k, v, more = (x.double() if torch.is_tensor(x) else [y.double() for y in x] for x in (q[0, 0], k[0, 0], v[0, 0], more))
    a, b = of_q(q, more), of_k(k, more)
    if is_rounded:
        a, b = a.bfloat16().double(), b.bfloat16().double()
    s = a[rows] @ b.T * scale
    if form == "rotary":
        s = s.masked_fill(torch.arange(len(k), device="cuda") > rows[:, None], -torch.inf)
    return of_o(torch.softmax(s, -1) @ v)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("object")
    parser.add_argument("--shape", action="append", help="B,H,N,D; may be given again (default 2,16,8192,128)")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    torch.manual_seed(0)
    print(torch.cuda.get_device_name(), "PyTorch", torch.__version__)
    print("| form | B, H, N, D | ours, ms | times plain | PyTorch, ms | PyTorch / ours | error, PyTorch's |")
    print("|---|---|---:|---:|---:|---:|---|")
    for shape in options.shape or ["2,16,8192,128"]:
        b, h, n, d = map(int, shape.split(","))
        q, k, v = (torch.randn(b, h, n, d, device="cuda", dtype=torch.bfloat16) for _ in range(3))
        scale, calls, outputs, mores = d ** -0.5, {}, {}, {}
        for form in FORMS:
            mores[form] = arrays(form, n, d)
            outputs[form] = torch.empty_like(v)
            calls[form] = Kernel(options.object, form, [q, k, v, *mores[form], ctypes.c_float(scale)], outputs[form])
            calls["torch " + form] = torch_form(form, q, k, v, mores[form], scale)
            calls["torch " + form]()
        times = {way: statistics.median(list_) for way, list_ in measure(calls, options.rounds, 0.01).items()}
        rows = torch.randint(0, n, (128,), device="cuda")
        for form in FORMS:
            wanted = expected(form, q, k, v, mores[form], scale, rows)
            errors = [float((x[0, 0][rows].double() - wanted).norm() / wanted.norm())
                      for x in (outputs[form], calls["torch " + form]())]
            ours, theirs = times[form], times["torch " + form]
            print(f"| {form} | {b}, {h}, {n}, {d} | {ours:.3f} | {ours / times['plain']:.3f} | {theirs:.3f} | "
                  f"{theirs / ours:.2f} | {errors[0]:.1e}, {errors[1]:.1e} |", flush=True)


if __name__ == "__main__":
    main()
