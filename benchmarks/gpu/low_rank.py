"""Times attention within 1e-2 (low_rank.moa) whose keys may stand for one another beside the same as it is written:

    for way in classes dense; do
      moa-codegen benchmarks/gpu/low_rank.moa --target=cuda $([ $way = classes ] && echo --low-rank=4096) -o DIRECTORY/$way.cu
      nvcc -gencode arch=compute_90a,code=sm_90a -O3 -shared -Xcompiler -fPIC DIRECTORY/$way.cu -o DIRECTORY/$way.so -lcuda
    done
    python3 benchmarks/gpu/low_rank.py DIRECTORY [--kernels] [--growth] [--families known_rank,normal]

All of it is in the times: looking for classes, their sums, the sample and the decision; the time in which a host starts
kernels is not, as it is ahead of the device. Printed are medians of interleaved
launches, how many heads differ from the dense kernel (those of few keys), and the largest relative L2 error of a head, on
128 rows against float64. With --growth one family of 256 different keys from N = 4,096 to 262,144 and the exponent of a
fit; with --kernels the time of each kernel of a launch.
"""
import argparse
import ctypes
import math
import statistics

import torch

from eight_bits import attention
from timing import Kernel, measure

SHAPES = ((1, 16, 32768, 128), (1, 16, 32768, 64), (1, 16, 131072, 128), (1, 16, 131072, 64))
FAMILIES = {}


def family(make):
    FAMILIES[make.__name__] = make
    return make


def normal_of(*shape):
    return torch.randn(*shape, device="cuda")


def among(count, h, n, d):
    """Keys that are drawn from so many different ones."""
    centres = normal_of(h, count, d)
    return torch.gather(centres, 1, torch.randint(count, (h, n, 1), device="cuda").expand(h, n, d))


@family
def known_rank(h, n, d):
    """n/64 different keys: the exponentials of scores have this rank."""
    return among(n // 64, h, n, d)


@family
def clusters(h, n, d):
    """n/64 clusters, 0.004 around their centres in each coordinate."""
    return among(n // 64, h, n, d) + 0.004 * normal_of(h, n, d)


@family
def few_keys(h, n, d):
    """256 different keys."""
    return among(256, h, n, d)


@family
def decay(h, n, d):
    """512 different keys whose frequencies fall geometrically to 1/1000 of the first."""
    weight = 1000.0 ** (-torch.arange(512, device="cuda") / 511)
    drawn = torch.multinomial(weight, h * n, replacement=True).view(h, n, 1)
    return torch.gather(normal_of(h, 512, d), 1, drawn.expand(h, n, d))


@family
def uniform(h, n, d):
    """All keys are equal."""
    return normal_of(h, 1, d).expand(h, n, d)


@family
def wide_clusters(h, n, d):
    """64 clusters with 0.1 around their centres: too much noise, must stay dense."""
    return among(64, h, n, d) + 0.1 * normal_of(h, n, d)


@family
def four_dimensions(h, n, d):
    """Keys of four dimensions for scores of deviation 1, none of which repeats: must stay dense."""
    basis = torch.linalg.qr(normal_of(h, d, 4))[0].transpose(1, 2)
    return (d / 4) ** 0.5 * normal_of(h, n, 4) @ basis


@family
def normal(h, n, d):
    """No structure, must stay dense."""
    return normal_of(h, n, d)


def make(name, b, h, n, d):
    keys = FAMILIES[name](b * h, n, d).reshape(b, h, n, d)
    return [x.bfloat16().contiguous() for x in (normal_of(b, h, n, d), keys, normal_of(b, h, n, d))]


def compare(directory, shape, name, rounds, kernels=False):
    b, h, n, d = shape
    q, k, v = make(name, *shape)
    scale = d ** -0.5
    outputs = {way: torch.empty_like(v) for way in ("dense", "classes")}
    variants = {way: Kernel(f"{directory}/{way}.so", f"low_rank_{d}", [q, k, v, ctypes.c_float(scale)], outputs[way])
                for way in outputs}
    times = measure(variants, rounds, 0.02)
    ratio = statistics.median(x / y for x, y in zip(times["dense"], times["classes"]))
    rows = torch.arange(0, n, n // 128, device="cuda")
    meant = attention(q, k, v, rows, scale)
    found = {way: output.flatten(0, 1) for way, output in outputs.items()}
    errors = {way: float(((x[:, rows].double() - meant).norm(dim=(1, 2)) / meant.norm(dim=(1, 2))).max())
              for way, x in found.items()}
    few = int((found["dense"] != found["classes"]).flatten(1).any(1).sum())
    print(f"| {shape} | {name} | {statistics.median(times['dense']):.3f} | {statistics.median(times['classes']):.3f} | "
          f"{ratio:.3f} | {few} of {b * h} | {errors['classes']:.1e} | {errors['dense']:.1e} | "
          f"{variants['classes'].workspace.numel() / 2**20:.0f} |", flush=True)
    if kernels:
        from torch.profiler import ProfilerActivity, profile
        with profile(activities=[ProfilerActivity.CUDA]) as p:
            variants["classes"]()
            torch.cuda.synchronize()
        for x in p.key_averages():
            if x.device_time_total:
                print(f"    {x.key.split(chr(40))[0]:24s} {x.device_time_total / 1000:.3f} ms")
    return statistics.median(times["dense"]), statistics.median(times["classes"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directory")
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--shapes", default=",".join(map(str, range(len(SHAPES)))))
    parser.add_argument("--kernels", action="store_true")
    parser.add_argument("--growth", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(0)
    print("| B, H, N, D | keys | dense, ms | classes, ms | dense / classes | heads of few keys | error | error dense | workspace, MiB |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|")
    for number in map(int, filter(None, options.shapes.split(","))):
        for name in options.families.split(","):
            compare(options.directory, SHAPES[number], name, options.rounds, options.kernels)
    if options.growth:
        points = []
        for n in [2 ** k for k in range(12, 19)]:
            points.append((math.log(n), math.log(compare(options.directory, (1, 4, n, 128), "few_keys", 5)[1])))
        for first in (0, 3):
            some = points[first:]
            x, y = (sum(p[i] for p in some) / len(some) for i in (0, 1))
            slope = sum((p - x) * (t - y) for p, t in some) / sum((p - x) ** 2 for p, _ in some)
            print(f"from N = {round(math.exp(some[0][0]))}: time grows as N^{slope:.2f}", flush=True)


if __name__ == "__main__":
    main()
