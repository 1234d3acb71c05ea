# REQUIRES: moa-python
# RUN: %moa_python %s
"""Calls from several threads, and what calls leave behind."""
import gc
import pathlib
import sys
import threading
import unittest
import weakref

sys.path.insert(0, str(pathlib.Path(__file__).parent / "Support"))
from helpers import EXAMPLES, Case, Lender, attention, normal, np  # noqa: E402

import moa  # noqa: E402


def resident():
    """The bytes of memory that this process has."""
    with open("/proc/self/statm", encoding="utf-8") as file:
        return int(file.read().split()[1]) * 4096


class Threads(Case):

    def test_calls(self):
        kernel = moa.compile(EXAMPLES / "gqa_causal.moa", D=8, T="f32")
        q, k = normal(1, 4, 9, 8), normal(1, 2, 9, 8)
        want, failures = kernel(q, k, k, 0.3), []

        def work(number):
            for _ in range(200):
                got = kernel(q, k, k, 0.3)
                if not (got.O == want.O).all() or not (got.lse == want.lse).all():
                    failures.append(number)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_compilations(self):
        results = {}

        def work(width):
            kernel = moa.compile(EXAMPLES / "sdpa.moa", D=width, T="f32")
            q = normal(1, 1, 3, width)
            results[width] = np.abs(kernel(q, q, q, 0.25) - attention(q, q, q, 0.25)).max(), kernel.source("dnf")

        threads = [threading.Thread(target=work, args=(width,)) for width in (4, 8, 12, 16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(results), [4, 8, 12, 16])
        for difference, _ in results.values():
            self.assertLess(difference, 1e-5)

    def test_other_threads_run(self):
        """A call lets other threads run."""
        kernel = moa.compile(EXAMPLES / "sdpa.moa", D=64, T="f32")
        q = normal(1, 8, 2048, 64)
        counted, stop = [0], threading.Event()

        def count():
            while not stop.is_set():
                counted[0] += 1

        thread = threading.Thread(target=count)
        thread.start()
        before = counted[0]
        kernel(q, q, q, 0.125)
        after = counted[0]
        stop.set()
        thread.join()
        self.assertGreater(after, before)


class Leaks(Case):

    def test_calls(self):
        kernel = moa.compile(EXAMPLES / "gqa_causal.moa", D=8, T="f32")
        q, k = normal(1, 2, 3, 8), normal(1, 2, 3, 8, seed=1)
        lent, out = Lender(k), (np.empty_like(q), np.empty((1, 2, 3), np.float32))
        scale = np.float32(0.25)
        bad = normal(1, 2, 3, 4)
        watched = [kernel, q, k, lent, out, *out, scale, bad, np.ndarray, None, type(kernel)]

        def work():
            kernel(q, k, k, 0.25)
            kernel(q, lent, V=lent, scale=scale, out=out)
            kernel.check(q, k, k, scale)
            kernel.result_shapes(q, k, k, 1)
            kernel.workspace_bytes(q, k, k, 1, out=out)
            for refused in ((bad, k, k, 1), (q, k, 3, 1), (q, k), (q, k, k, "x")):
                try:
                    kernel(*refused)
                except (ValueError, TypeError):
                    pass

        for _ in range(200):
            work()
        gc.collect()
        counts, memory = [sys.getrefcount(watch) for watch in watched], resident()
        for _ in range(10000):
            work()
        gc.collect()
        after = [sys.getrefcount(watch) for watch in watched]
        for watch, count, now in zip(watched, counts, after):
            self.assertLess(abs(now - count), 100, repr(watch)[:60])
        self.assertLess(resident() - memory, 4 << 20)

    def test_results(self):
        kernel = moa.compile(EXAMPLES / "sdpa.moa", D=8, T="f32")
        q = normal(1, 1, 3, 8)
        result = kernel(q, q, q, 1)
        self.assertEqual(sys.getrefcount(result), 2)
        gone = weakref.ref(result)
        del result
        self.assertIsNone(gone())

    def test_kernel(self):
        kernel = moa.compile(EXAMPLES / "sdpa.moa", D=8, T="f32")
        gone = weakref.ref(kernel)
        del kernel
        gc.collect()
        self.assertIsNone(gone())


if __name__ == "__main__":
    unittest.main(verbosity=2)
