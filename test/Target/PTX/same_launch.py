# RUN: %python %s
"""Both targets launch a kernel alike: threads, bytes of shared memory, the arrays
passed by pointer and the tiles of the copy engine stand in the CUDA C++ text as in
the manifest that is written beside PTX.
"""
import json
import os
import re
import tempfile
import unittest

import moa_testing as mt


class SameLaunch(unittest.TestCase):

    def emit(self, name, kind, target, directory):
        path = os.path.join(directory, f"{name}.{target}")
        made = mt.tool("moa-codegen", mt.example(name), "--set", f"T={kind}",
                       f"--target={target}", "-o", path)
        self.assertEqual(made.returncode, 0, made.stderr)
        with open(path, encoding="utf-8") as file:
            return file.read()

    def test_launches(self):
        # Kernels of bf16, whose exponentials are the hardware's, need no libdevice.
        for name in ("sdpa", "causal", "alibi", "sliding_window", "cross_mask"):
            with self.subTest(example=name), tempfile.TemporaryDirectory() as directory:
                cuda = self.emit(name, "bf16", "cuda", directory)
                self.emit(name, "bf16", "ptx", directory)
                with open(os.path.join(directory, f"{name}.json"), encoding="utf-8") as file:
                    launches = json.load(file)["programs"][0]["launches"]
                call = r"launch_kernel(?:_in_order)?\(m, (\w+),(?: latest, \d+, \d+,)?\s+blocks\[\d\].value,\s+(\d+),\s+(\d+),\s+\*stream,(.*?)\)[);]"
                texts = re.findall(call, cuda, re.DOTALL)
                self.assertEqual(len(texts), 2 if name == "cross_mask" else 1)  # a table of tiles
                self.assertEqual([t[0] for t in texts], [launch["kernel"] for launch in launches])
                for (_, threads, shared, arguments), launch in zip(texts, launches):
                    self.assertEqual(int(threads), launch["block"])
                    self.assertEqual(int(shared), launch["shared_bytes"])
                    pointers = re.findall(r"\)(\w+)\.begin", arguments)
                    self.assertEqual(pointers, [p["array"] for p in launch["parameters"]
                                                if p["kind"] == "pointer"])
                    self.assertEqual("workspace" in arguments,
                                     any(p["kind"] == "workspace" for p in launch["parameters"]))
                tiles = re.findall(r"describe_tiles\(m, &maps\.(\w+), (\w+), (\d+), (\d+)\)", cuda)
                maps = [p for p in launches[-1]["parameters"] if p["kind"] == "tensor_map"]
                self.assertGreaterEqual(len(maps), 3)
                self.assertEqual(
                    [(re.sub(r"_\d$", "", m), a, int(axis), int(rows)) for m, a, axis, rows in tiles],
                    [(p["name"], p["array"], p["row_axis"], p["box"][len(p["box"]) - 1 - p["row_axis"]])
                     for p in maps])


if __name__ == "__main__":
    unittest.main()
