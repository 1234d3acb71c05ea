"""Kernels in PTX, started by the C program that comes with them, which run.sh has
compiled beside those in CUDA C++."""
import ctypes
import os

import gpu


class Kernel(gpu.Kernel):

    def __init__(self, spec, **settings):
        base = os.path.join(os.environ["MOA_GPU_KERNELS"], gpu.file_name(spec, settings))
        self.read_header(base + ".h")
        self.loaded = ctypes.CDLL(base + ".ptx.so")
