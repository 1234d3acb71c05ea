"""Calls kernels through tvm-ffi with PyTorch's CUDA tensors: ffi_calls.py DIRECTORY (see ../GPU/ffi.sh).

Results are compared with PyTorch in float64. The overhead is the host's time of one call of a tiny
kernel, the median of 10,000 calls without synchronisation, next to an empty function of tvm-ffi.
"""
import os
import statistics
import sys
import time

import torch
import tvm_ffi

directory = sys.argv[1]
failed = False


def load(name):
    return tvm_ffi.load_module(os.path.join(directory, name + ".so"))


def normal(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape, device="cuda", dtype=dtype)


def call(kernel, name, *arguments):
    size = getattr(kernel, name + "_workspace")(*arguments)
    workspace = [torch.empty(size, device="cuda", dtype=torch.uint8)] if size else []
    code = getattr(kernel, name)(*arguments, *workspace)
    assert code == 0, code
    return workspace


def attention(q, k, v, scale, causal):
    scores = q.double() @ k.double().transpose(-1, -2) * scale
    if causal:
        n, m = scores.shape[-2:]
        hidden = torch.ones(n, m, device="cuda", dtype=torch.bool).tril(m - n).logical_not()
        scores = scores.masked_fill(hidden, float("-inf"))
    return scores.softmax(-1) @ v.double(), scores.logsumexp(-1)


def compare(name, got, want, bound):
    global failed
    error = ((got.double() - want).norm() / want.norm()).item()
    failed |= not error < bound
    print(f"{name:24} relative error {error:.1e} {'ok' if error < bound else 'FAILED'}")


def run_sdpa(kernel):
    q, k, v = normal(2, 4, 300, 128), normal(2, 4, 400, 128), normal(2, 4, 400, 128)
    o = torch.empty_like(q)
    kept = call(kernel, "sdpa", q, k, v, 128 ** -0.5, o)
    return kept, lambda: compare("sdpa", o, attention(q, k, v, 128 ** -0.5, False)[0], 4e-3)


def run_gqa(kernel):
    q, k, v = normal(2, 8, 300, 128), normal(2, 2, 400, 128), normal(2, 2, 400, 128)
    o, lse = torch.empty_like(q), torch.empty(2, 8, 300, device="cuda")
    kept = call(kernel, "gqa_causal", q, k, v, 128 ** -0.5, o, lse)

    def check():
        wide = k.repeat_interleave(4, 1), v.repeat_interleave(4, 1)
        want, want_lse = attention(q, *wide, 128 ** -0.5, True)
        compare("gqa_causal O", o, want, 4e-3)
        compare("gqa_causal lse", lse, want_lse, 1e-4)
    return kept, check


def run_norm(kernel):
    x, gamma, beta, w = (normal(*shape, dtype=torch.float32) for shape in ((500, 256), (256,), (256,), (256, 128)))
    y = torch.empty(500, 128, device="cuda")
    kept = call(kernel, "layernorm_product", x, gamma, beta, w, 1e-5, y)
    norm = torch.nn.functional.layer_norm
    return kept, lambda: compare("layernorm_product", y, norm(x.double(), (256,), gamma.double(), beta.double(), 1e-5)
                                 @ w.double(), 1e-5)


def is_refused(what, kind, function):
    global failed
    try:
        function()
        found = "no error"
    except Exception as error:  # pylint: disable=broad-except
        found = type(error).__name__
    failed |= found != kind
    print(f"{what:24} {found} {'ok' if found == kind else 'FAILED'}")


def median_time(function, calls=10000):
    for _ in range(100):
        function()
    torch.cuda.synchronize()
    times = []
    for k in range(calls):
        start = time.perf_counter_ns()
        function()
        times.append(time.perf_counter_ns() - start)
        if k % 500 == 499:
            torch.cuda.synchronize()  # the queue of launches stays short
    return statistics.median(times) / 1000


print(f"tvm-ffi {tvm_ffi.__version__}, PyTorch {torch.__version__}, {torch.cuda.get_device_name()}")
torch.manual_seed(0)
for name, run in (("sdpa", run_sdpa), ("gqa_causal", run_gqa), ("layernorm_product", run_norm)):
    module, stream = load(name), torch.cuda.Stream()
    run(module)  # loads the code, which may wait for the device
    torch.cuda.synchronize()
    # The inputs are made in the other stream too, after long work: a launch in the default stream would read too early.
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)
        kept, check = run(module)
        busy = not stream.query()
        check()
    failed |= not busy
    print(f"{name + ' stream':24} {'returned before the work' if busy else 'FAILED: waited for the work'}")
    stream.synchronize()

kernel = load("sdpa")
q = normal(1, 1, 64, 128)
o = torch.empty_like(q)
is_refused("sdpa on the CPU", "RuntimeError", lambda: kernel.sdpa(q.cpu(), q, q, 1.0, o))
is_refused("sdpa of float32", "TypeError", lambda: kernel.sdpa(q.float(), q, q, 1.0, o))
is_refused("sdpa of a slice", "ValueError", lambda: kernel.sdpa(q[..., :127], q, q, 1.0, o))
empty = load("empty").nothing
print(f"{'host time of a call':24} {'us':>8}")
sdpa = kernel.sdpa
print(f"{'sdpa (1 block)':24} {median_time(lambda: sdpa(q, q, q, 1.0, o)):8.2f}")
print(f"{'an empty function':24} {median_time(lambda: empty(q, q, q, 1.0, o)):8.2f}")
sys.exit(failed)
