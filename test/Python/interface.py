# REQUIRES: moa-python
# RUN: %moa_python %s
"""What a kernel tells of itself, the levels and reports, and the command python -m moa."""
import json
import os
import pathlib
import pickle
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent / "Support"))
from helpers import DOUBLE, EXAMPLES, Case, normal, np  # noqa: E402

import moa  # noqa: E402


class Interface(Case):

    @classmethod
    def setUpClass(cls):
        cls.kernel = moa.compile(EXAMPLES / "gqa_causal.moa", D=8, T="f32")

    def test_facts(self):
        kernel = self.kernel
        self.assertEqual((kernel.name, kernel.target), ("gqa_causal", "cpu"))
        self.assertEqual(kernel.symbols, ("B", "H", "G", "N", "M"))
        self.assertEqual(kernel.constraints, ("H % G == 0",))
        self.assertEqual(kernel.settings, {"D": "8", "T": "f32"})
        self.assertEqual(kernel.options, moa.Options())
        self.assertEqual(kernel.specification, (EXAMPLES / "gqa_causal.moa").read_text())
        self.assertEqual(kernel.parameters[0], moa.Parameter("Q", "input", "f32", ("B", "H", "N", "8")))
        self.assertEqual([(p.name, p.role, p.dtype) for p in kernel.parameters[3:]],
                         [("scale", "scalar", "f32"), ("O", "output", "f32"), ("lse", "output", "f32")])
        self.assertRegex(kernel.text, r"^gqa_causal\(Q : f32\[B, H, N, 8\], ")
        self.assertEqual(repr(kernel), "<moa.Kernel gqa_causal(Q: f32[B, H, N, 8], K: f32[B, G, M, 8], V: f32[B, G, M, 8], "
                         "scale: f32) -> (O: f32[B, H, N, 8], lse: f32[B, H, N]), target cpu>")
        self.assertEqual(kernel.manifest["programs"][0]["name"], "gqa_causal")

    def test_forms(self):
        kernel = self.kernel
        for form, part in (("moa", "moa."), ("dnf", "dnf."), ("onf", "onf."), ("lifted", "onf."), ("vector", "vector"),
                           ("llvm", "define "), ("device", "device."), ("cuda", "__global__"), ("header", "gqa_causal_check"),
                           ("manifest", '"programs"')):
            with self.subTest(form):
                self.assertIn(part, kernel.source(form))
        self.assertRefused(moa.ArgumentError, "there is no form 'c'; there are moa, dnf, onf, lifted, vector, llvm, device, "
                           "cuda, ptx, launcher, manifest, header", kernel.source, "c")
        self.assertIn("O[", kernel.math())
        self.assertGreater(len(kernel.explain()), 500)

    def test_reports(self):
        kernel = self.kernel
        self.assertIn("gqa_causal", kernel.report())
        sizes = dict(B=1, H=4, G=2, N=16, M=16)
        self.assertIsInstance(json.loads(kernel.report("json", **sizes)), dict)
        self.assertNotEqual(kernel.report(**sizes), kernel.report())
        with self.assertRaises(moa.ArgumentError):
            kernel.report(B=1)
        self.assertRefused(moa.ArgumentError, "there is no format 'xml' of a report; there are text, json", kernel.report, "xml")

    def test_schedule(self):
        text = self.kernel.schedule
        again = moa.compile(EXAMPLES / "gqa_causal.moa", D=8, T="f32", options=moa.Options(schedule=text))
        self.assertEqual(again.schedule, text)

    def test_architecture(self):
        """A kernel that runs here tells what it would be on a GPU."""
        kernel = moa.compile(EXAMPLES / "sdpa.moa", D=16, T="f32", options=moa.Options(architecture="sm_90a"))
        q = normal(1, 1, 3, 16)
        self.assertEqual(kernel(q, q, q, 0.25).shape, q.shape)
        self.assertNotEqual(kernel.schedule, moa.compile(EXAMPLES / "sdpa.moa", D=16, T="f32").schedule)

    def test_pickle(self):
        again = pickle.loads(pickle.dumps(self.kernel))
        self.assertEqual(repr(again), repr(self.kernel))
        q, k = normal(1, 4, 3, 8), normal(1, 2, 3, 8)
        self.assertTrue((again(q, k, k, 1).O == self.kernel(q, k, k, 1).O).all())

    def test_settings(self):
        for given in ("f32", np.float32, np.dtype("float32")):
            self.assertEqual(moa.compile(EXAMPLES / "sdpa.moa", D=np.int64(8), T=given).settings, {"D": "8", "T": "f32"})
        kernel = moa.compile(DOUBLE, options=moa.Options(settings={"T": "i64"}))
        self.assertEqual(kernel.parameters[0].dtype, "i64")

    def test_real_settings(self):
        text = "kernel real[N; eps = 1e-6](x : f32[N]) -> y : f32[N] { y = [i < N] max(x[i], eps) }"
        for given, wanted in ((0.5, 0.5), (np.float64(1e-5), 1e-5), (float("-inf"), -1), (2, 2)):
            kernel = moa.compile(text, eps=given)
            self.assertEqual(kernel(np.full(3, -1, np.float32)).tolist(), [float(np.float32(wanted))] * 3)
        self.assertEqual(moa.compile(text, eps=np.float64(1e-5)).settings, {"eps": "1e-05"})

    def test_text_or_path(self):
        for source in (str(EXAMPLES / "sdpa.moa"), EXAMPLES / "sdpa.moa", (EXAMPLES / "sdpa.moa").read_text()):
            self.assertEqual(moa.compile(source, D=8, T="f32").name, "sdpa")

    def test_names(self):
        self.assertEqual([name for name in moa.__all__ if not hasattr(moa, name)], [])
        self.assertRegex(moa.__version__, r"^\d+\.\d+\.\d+$")
        with self.assertRaises(AttributeError):
            moa.missing
        for name in moa.__all__:
            self.assertTrue(getattr(moa, name).__doc__, name)


class Command(Case):

    def run_tool(self, *arguments):
        return subprocess.run([sys.executable, "-m", "moa", *arguments], capture_output=True, text=True)

    def test_tools(self):
        for tool in ("codegen", "opt", "run"):
            done = self.run_tool(tool, "--help")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("moa-" + tool, done.stdout)
        done = self.run_tool("codegen", str(EXAMPLES / "sdpa.moa"), "--emit=math")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("O[", done.stdout)

    def test_status(self):
        done = self.run_tool("codegen", "missing.moa", "--emit=math")
        self.assertEqual(done.returncode, 1)
        self.assertIn("missing.moa", done.stderr)
        done = self.run_tool("link")
        self.assertEqual((done.returncode, done.stderr),
                         (2, "python -m moa: no tool 'link'\nusage: python -m moa codegen|opt|run ARGUMENT…\n"))
        self.assertEqual(self.run_tool().returncode, 2)

    def test_import(self):
        code = ("import sys, time; begin = time.perf_counter(); import moa; print(time.perf_counter() - begin)\n"
                "print(*[name for name in ('numpy', 'torch', 'ctypes', 'moa._native') if name in sys.modules])")
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        seconds, loaded = done.stdout.split("\n")[:2]
        print(f"import moa: {1e3 * float(seconds):.0f} ms", file=sys.stderr)
        self.assertEqual(loaded, "")


if __name__ == "__main__":
    unittest.main(verbosity=2)
