"""Calls emitted kernels on PyTorch tensors and times them without the time of the host.

Every timed launch has device work queued in front of it, so that the host has queued the launch and both events
before the device reaches the first one. `measure` checks this for each launch and repeats those where it fails.
"""
import ctypes
import random
import time

import torch

# Cycles that the device waits before a timed launch: about 1 ms at 1.98 GHz.
AHEAD = 2_000_000


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


def time_once(run, ahead, flush):
    """Returns the time of one call in ms and the cycles that the device waited before it.

    Doubles the wait, up to 64 times its start, until the host has queued everything before the device starts the call.
    """
    for _ in range(7):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        flush.zero_()
        torch.cuda._sleep(ahead)
        start.record()
        run()
        end.record()
        is_ahead = not start.query()
        torch.cuda.synchronize()
        if is_ahead:
            return start.elapsed_time(end), ahead
        ahead *= 2
    raise RuntimeError(f"the host needs longer to queue a call than the device waits ({ahead // 2} cycles)")


def measure(variants, rounds, gap, ahead=AHEAD):
    """Returns lists of times in ms, one per variant.

    Launches of all variants go in shuffled round-robin order, each after `gap` seconds of idle, a flush of the
    second-level cache and a wait of at least `ahead` cycles on the device, which hides the host.
    """
    flush = torch.empty(512 << 20, dtype=torch.uint8, device="cuda")
    times = {name: [] for name in variants}
    waits = dict.fromkeys(variants, ahead)
    for run in variants.values():
        run()
    torch.cuda.synchronize()
    for _ in range(rounds):
        order = list(variants)
        random.shuffle(order)
        for name in order:
            time.sleep(gap)
            value, waits[name] = time_once(variants[name], waits[name], flush)
            times[name].append(value)
    return times
