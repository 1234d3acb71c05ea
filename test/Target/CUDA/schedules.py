# REQUIRES: nvcc
# RUN: %python %s
"""Editing a schedule changes the text, and nvcc takes every text as it takes the
first one: without a warning, with no product serialised.
"""
import concurrent.futures
import json
import os
import re
import subprocess
import tempfile
import unittest

import moa_testing as mt
import schedule_edits as schedules

FLAGS = ["-gencode", "arch=compute_90a,code=sm_90a", "-Werror", "all-warnings",
         "-Xptxas", "-v", "-cubin"]
SERIALISED = re.compile(r"C751\d|wgmma\S* .*serializ", re.IGNORECASE)
# The launch has the bytes of shared memory between the threads and the stream.
LAUNCH = re.compile(r"launch_kernel\w*\([^;]*?, (\d+), \*stream")


def code(base, example, settings, schedule):
    """The text for a schedule, in BASE.cu."""
    with open(base + ".json", "w", encoding="utf-8") as file:
        json.dump(schedule, file)
    sets = [w for k, v in settings for w in ("--set", f"{k}={v}")]
    made = mt.tool("moa-codegen", mt.example(example), *sets, "--target=cuda",
                   f"--schedule={base}.json", "-o", base + ".cu")
    if made.returncode:
        return None, made.stderr
    with open(base + ".cu", encoding="utf-8") as file:
        return file.read(), ""


def compile(base):
    done = subprocess.run(["nvcc", *FLAGS, base + ".cu", "-o", base + ".cubin"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=300)
    return done.returncode, done.stdout


class Schedules(unittest.TestCase):

    def test_edits(self):
        with tempfile.TemporaryDirectory(prefix="moa-test-") as directory, \
                concurrent.futures.ThreadPoolExecutor(2) as pool:
            running = []
            for (example, settings), variants in schedules.CASES.items():
                default = schedules.printed(example, settings)
                texts = {}
                for name, edits in {"default": {}, **variants}.items():
                    base = os.path.join(directory, f"{example}-{len(running)}")
                    with self.subTest(example=example, settings=settings, schedule=name):
                        schedule = schedules.edited(default, edits)
                        text, error = code(base, example, settings, schedule)
                        self.assertIsNotNone(text, error)
                        self.assertNotIn(text, texts, f"the text of {texts.get(text)}")
                        texts[text] = name
                        running.append((example, name, pool.submit(compile, base)))
                self.assertEqual(len(texts), len(variants) + 1)
            for example, name, future in running:
                with self.subTest(example=example, schedule=name):
                    status, output = future.result()
                    self.assertEqual(status, 0, output)
                    self.assertNotIn("warning", output.lower())
                    self.assertNotRegex(output, SERIALISED)

    def test_shared_memory(self):
        """What a schedule is checked with is no less than what is launched, and the
        largest number of stages that is taken fits."""
        settings = (("D", 64), ("T", "bf16"))
        default = schedules.printed("sdpa", settings)
        with tempfile.TemporaryDirectory(prefix="moa-test-") as directory:
            base = os.path.join(directory, "sdpa")
            for stages in range(2, 9):
                schedule = schedules.edited(default, {"stage": stages})
                text, error = code(base, "sdpa", settings, schedule)
                if text is None:
                    break
                launched = int(LAUNCH.search(text).group(1))
                self.assertLessEqual(launched, 232448)
            needed = int(re.search(r"needs (\d+) bytes of shared memory", error).group(1))
            self.assertGreater(needed, 232448)
            # One more stage than fits: K and V of 128 keys of 64 columns each.
            self.assertLessEqual(launched + 2 * 128 * 64 * 2, needed)
            self.assertLess(needed - (launched + 2 * 128 * 64 * 2), 3 * 1024)


if __name__ == "__main__":
    unittest.main(verbosity=2)
