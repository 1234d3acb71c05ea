"""Times the first call of a new causal attention from Python, and the host time of later calls:

    python3 benchmarks/gpu/first_call.py [--rounds 3]

It needs the package moa and PyTorch on a machine with the GPU. Every first call is made in a process of its own, with
PyTorch imported and the context of the GPU made. The clock runs from the text of the specification, or from PyTorch's
functions, until the result is there. Caches of MoA, Triton, Inductor and the driver are empty, unless a line says so.
Prints medians.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

SOURCE = """
kernel causal[B, H, N, M; T : float = bf16, D = 128](
    Q : T[B, H, N, D], K : T[B, H, M, D], V : T[B, H, M, D], scale : f32) -> (O : T[B, H, N, D])
{
  S = mask([_, _, i, j] j <= i + (M - N), (Q +.* transpose(K)) * scale)
  O = softmax(S) +.* V
}
"""
FIRST = ("moa", "moa, cached", "flex", "sdpa")


def make_inputs(torch, n=2048):
    torch.manual_seed(0)
    return [torch.randn(1, 16, n, 128, dtype=torch.bfloat16, device="cuda") for _ in range(3)]


def first_call(kind):
    import torch
    import torch.nn.functional as F
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    q, k, v = make_inputs(torch)
    (q @ k.transpose(-1, -2)).sum().item()  # makes the context and loads cuBLAS
    import moa
    start = time.perf_counter()
    if kind.startswith("moa"):
        result = moa.compile(SOURCE, target="cuda")(q, k, v, scale=128**-0.5)
    elif kind == "flex":
        mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, q.shape[2], k.shape[2])
        result = torch.compile(flex_attention)(q, k, v, block_mask=mask)
    else:
        result = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    torch.cuda.synchronize()
    taken = time.perf_counter() - start
    wanted = F.scaled_dot_product_attention(q.float(), k.float(), v.float(), is_causal=True)
    error = ((result.float() - wanted).norm() / wanted.norm()).item()
    assert error < 3e-3, error
    print(taken)


def host_times():
    """Host time in µs of calls that are not awaited, for a kernel of one block."""
    import torch
    import moa
    q, k, v = make_inputs(torch, 128)
    q, k, v = (x[:, :1] for x in (q, k, v))
    kernel, out = moa.compile(SOURCE, target="cuda"), torch.empty_like(q)
    scale = 128**-0.5

    @torch.library.custom_op("bench::empty", mutates_args=())
    def empty(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float) -> torch.Tensor:
        return torch.empty_like(q)

    calls = {"kernel(q, k, v)": lambda: kernel(q, k, v, scale), "kernel(…, out=)": lambda: kernel(q, k, v, scale, out=out),
             "an empty custom operator": lambda: empty(q, k, v, scale),
             "scaled_dot_product_attention": lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)}
    try:
        import moa.torch as moa_torch
        operator = moa_torch.operator(kernel)
        calls["moa.torch.operator"] = lambda: operator(q, k, v, scale)
    except ImportError:
        pass
    for name, call in calls.items():
        for _ in range(100):
            call()
        torch.cuda.synchronize()
        times = []
        for _ in range(100):
            start = time.perf_counter()
            for _ in range(100):
                call()
            times.append((time.perf_counter() - start) / 100)
            torch.cuda.synchronize()
        print(f"{name:32} {1e6 * statistics.median(times):8.2f}", flush=True)


def run(kind, folder):
    caches = {name: os.path.join(folder, name) for name in ("MOA_CACHE_DIR", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR",
                                                            "CUDA_CACHE_PATH")}
    environment = {**os.environ, **caches}
    return float(subprocess.run([sys.executable, __file__, "--child", kind], env=environment, check=True,
                                stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child")
    options = parser.parse_args()
    if options.child == "host":
        return host_times()
    if options.child:
        return first_call(options.child)
    print("first call                          seconds")
    times = {kind: [] for kind in FIRST}
    for _ in range(options.rounds):
        for kind in FIRST:
            with tempfile.TemporaryDirectory() as folder:
                if kind == "moa, cached":
                    run(kind, folder)
                times[kind].append(run(kind, folder))
    for kind, values in times.items():
        print(f"{kind:32} {statistics.median(values):10.3f}")
    for name in ("moa", "torch"):
        command = f"import time; start = time.perf_counter(); import {name}; print(time.perf_counter() - start)"
        values = [float(subprocess.run([sys.executable, "-c", command], check=True, stdout=subprocess.PIPE).stdout)
                  for _ in range(options.rounds)]
        print(f"{'import ' + name:32} {statistics.median(values):10.3f}")
    print("host time of a call                 µs", flush=True)
    subprocess.run([sys.executable, __file__, "--child", "host"], check=True)


if __name__ == "__main__":
    main()
