"""Calls the C entry point of examples/sdpa.moa on PyTorch tensors:

    build/bin/moa-codegen examples/sdpa.moa --target=cuda -o build/sdpa.cu
    nvcc -O2 -gencode arch=compute_90a,code=sm_90a -shared -Xcompiler -fPIC build/sdpa.cu -o build/libsdpa.so
    python3 examples/pytorch/call_sdpa.py build/libsdpa.so

docs/Calling.md has the signature. The library of --target=ptx serves as well.
"""
import ctypes
import sys

import torch


class DLTensor(ctypes.Structure):  # https://dmlc.github.io/dlpack
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


def describe(x):
    code = 4 if x.dtype == torch.bfloat16 else 2
    sizes = ctypes.c_int64 * x.dim()
    return DLTensor(x.data_ptr(), (2, x.device.index), x.dim(), code, 8 * x.element_size(), 1,
                    sizes(*x.shape), sizes(*x.stride()), 0)


q, k, v = torch.randn(3, 2, 16, 1024, 128, device="cuda:0", dtype=torch.bfloat16)
o = torch.empty_like(q)
inputs, output = [describe(x) for x in (q, k, v)], describe(o)
arguments = [*map(ctypes.byref, inputs), ctypes.c_float(128 ** -0.5), ctypes.byref(output)]
library = ctypes.CDLL(sys.argv[1])
library.sdpa_workspace.restype = ctypes.c_int64
# Memory that the kernel needs for itself, or minus a code, which the call gives again; 0 bytes as the example is.
size = max(library.sdpa_workspace(*arguments), 0)
workspace = torch.empty(size, device="cuda:0", dtype=torch.uint8)
stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
code = library.sdpa(*arguments, ctypes.c_void_p(workspace.data_ptr()), ctypes.c_size_t(size), stream)
want = torch.nn.functional.scaled_dot_product_attention(q.double(), k.double(), v.double())
print("code", code, "relative error", ((o - want).norm() / want.norm()).item())
