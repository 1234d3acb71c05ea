# REQUIRES: ptxas
# RUN: %python %s
"""ptxas takes the PTX of every example, the C compiler its launcher beside its header, and
the manifest says what both say.

Products that ptxas serialises (C7510 to C7519) and warnings are errors everywhere,
registers spilled to memory in the kernels on the tensor cores (gpu_cases.py).
"""
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import gpu_cases
import moa_testing as mt

TOOLKIT = os.path.dirname(os.path.dirname(os.path.realpath(shutil.which("ptxas"))))

# Examples whose products of 16-bit operands run with one thread per row, and why.
MISSES = {"paper": "a contraction's length is no multiple of 8", "layernorm_product": "the nest has 2 folds"}


def run(*words):
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=300)


class Assemble(unittest.TestCase):

    def assert_said(self, said, name, settings):
        """Nothing, but of products of 16-bit operands that miss the tensor cores one warning."""
        why = MISSES.get(name) if settings["T"] == "bf16" else None
        found = re.findall(r"^.*: (?:warning|error): .*$", said, re.M)
        if why is None:
            self.assertEqual(said, "")
        else:
            self.assertEqual(len(found), 1, said)
            self.assertRegex(found[0], rf"{name}\.moa:\d+:\d+: warning: .* without tensor cores, .*: {why}")

    def emit(self, directory, name, settings):
        base = os.path.join(directory, "-".join([name] + [f"{k}={v}" for k, v in settings.items()]))
        sets = [w for k, v in settings.items() for w in ("--set", f"{k}={v}")]
        made = mt.tool("moa-codegen", mt.example(name), *sets, "--target=ptx", "-o", base + ".ptx",
                       "--header", base + ".h")
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assert_said(made.stderr, name, settings)
        return base

    def assemble(self, directory, name, settings):
        """The files of an example, and what ptxas said of the PTX."""
        base = self.emit(directory, name, settings)
        return base, run("ptxas", "-arch=sm_90a", "-v", base + ".ptx", "-o", base + ".cubin")

    def check_manifest(self, base):
        """The launches of the manifest are the entries of the PTX."""
        with open(base + ".json", encoding="utf-8") as file:
            manifest = json.load(file)
        with open(base + ".ptx", encoding="utf-8") as file:
            text = file.read()
        self.assertEqual((manifest["version"], manifest["target"]), (3, "sm_90a"))
        launches = [l for p in manifest["programs"] for l in p["launches"]]
        self.assertEqual([l["kernel"] for l in launches], re.findall(r"\.entry (\w+)\(", text))
        sizes = {"pointer": ".u64 .ptr .global", "symbol": ".u64", "tensor_map": ".align 64 .b8"}
        for launch in launches:
            entry = re.search(rf"\.entry {launch['kernel']}\((.*?)\)\n(.*?)\{{", text, re.S)
            parameters = re.findall(r"\.param (.*?) \w+_param_\d+", entry[1])
            self.assertEqual(len(parameters), len(launch["parameters"]))
            for declared, parameter in zip(parameters, launch["parameters"]):
                if parameter["kind"] in sizes:
                    self.assertTrue(declared.startswith(sizes[parameter["kind"]]), (declared, parameter))
                if parameter["kind"] == "tensor_map":
                    self.assertEqual(parameter["box"][0], 64)
            self.assertIn(f".maxntid {launch['block']}, 1, 1", entry[2])
            self.assertEqual(launch["shared_bytes"] > 0, bool(re.search(r"\.minnctapersm [1-8]\b", entry[2])))
            self.assertLessEqual(launch["shared_bytes"], 227 * 1024)
            self.assertTrue(launch["grid"])

    def test_examples(self):
        self.assertGreaterEqual(len(gpu_cases.names()), 11)
        with tempfile.TemporaryDirectory(prefix="moa-test-") as directory, \
                concurrent.futures.ThreadPoolExecutor(2) as pool:
            running = [(*case, pool.submit(self.assemble, directory, *case[:2]))
                       for case in gpu_cases.cases()]
            for name, settings, strict, future in running:
                with self.subTest(example=name, **settings):
                    base, done = future.result()
                    self.assertEqual(done.returncode, 0, done.stdout)
                    gpu_cases.check_assembler(self, done.stdout, strict)
                    done = run(os.environ["CC"], "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC",
                               "-I" + os.path.join(TOOLKIT, "include"), "-include", base + ".h", base + ".c",
                               "-o", base + ".so")
                    self.assertEqual((done.returncode, done.stdout), (0, ""))
                    self.check_manifest(base)

    def test_cubin(self):
        with tempfile.TemporaryDirectory(prefix="moa-test-") as directory:
            path = os.path.join(directory, "paper.cubin")
            made = mt.tool("moa-codegen", mt.example("paper"), "--target=cubin", "-o", path)
            self.assertEqual((made.returncode, made.stderr), (0, ""))
            with open(path, "rb") as file:
                self.assertEqual(file.read(4), b"\x7fELF")

    def seconds(self, directory, name, target, settings):
        """Processor time of the one process, alone: others may run beside it."""
        sets = [w for k, v in settings.items() for w in ("--set", f"{k}={v}")]
        before = os.times()
        made = mt.tool("moa-codegen", mt.example(name), *sets, "--target=" + target, "-o",
                       os.path.join(directory, "timed." + target))
        after = os.times()
        self.assertEqual(made.returncode, 0, made.stderr)
        return (after.children_user + after.children_system -
                before.children_user - before.children_system)

    def test_time(self):
        """Half a second for every example, per nest of tiles; who is late has two more tries, each after all others."""
        nests = {"backward": 2, "gqa_causal": 2}  # of query rows and of key rows; of many rows and of few
        cases = []
        for name in gpu_cases.names():
            with open(mt.example(name), encoding="utf-8") as file:
                has_width = re.search(r"\bD = \d", file.read())
            for kind in ("bf16", "f16", "f32"):
                for width in (64, 128, 256) if has_width else (None,):
                    settings = {"T": kind, "D": width} if width else {"T": kind}
                    cases += [(name, target, settings, []) for target in ("ptx", "cuda")]
        with tempfile.TemporaryDirectory(prefix="moa-test-") as directory:
            for _ in range(3):
                for name, target, settings, tries in cases:
                    bound = 0.5 * nests.get(name, 1)
                    if min(tries, default=bound) >= bound:
                        tries.append(self.seconds(directory, name, target, settings))
        for name, target, settings, tries in cases:
            with self.subTest(example=name, target=target, **settings):
                self.assertLess(min(tries), 0.5 * nests.get(name, 1), tries)


if __name__ == "__main__":
    unittest.main(verbosity=2)
