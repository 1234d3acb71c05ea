# REQUIRES: moa-python
# RUN: %moa_python %s
"""The cache on disk: hits, corrupt entries, several processes, and none."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).parent / "Support"))
from helpers import DOUBLE, EXAMPLES, Case, np  # noqa: E402

import moa  # noqa: E402
from moa import _cache, _kernel  # noqa: E402

CHILD = """import sys, numpy, moa
from moa import _kernel
made = []
make = _kernel._make
_kernel._make = lambda source: made.append(source) or make(source)
kernel = moa.compile(sys.argv[1], T="i32")
assert (kernel(numpy.arange(5, dtype=numpy.int32)) == 2 * numpy.arange(5)).all()
print(len(made))
"""


class Cache(Case):

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="moa-cache-")
        self.addCleanup(directory.cleanup)
        self.place = pathlib.Path(directory.name, "made", "here")
        self.enterContext(mock.patch.dict(os.environ, {"MOA_CACHE_DIR": str(self.place)}))
        self.made = []
        make = _kernel._make
        self.enterContext(mock.patch.object(_kernel, "_make", lambda source: self.made.append(source) or make(source)))

    if not hasattr(unittest.TestCase, "enterContext"):  # before Python 3.11

        def enterContext(self, context):
            entered = context.__enter__()
            self.addCleanup(context.__exit__, None, None, None)
            return entered

    def entries(self):
        return sorted(self.place.iterdir()) if self.place.is_dir() else []

    def compile(self, text=DOUBLE, **named):
        kernel = moa.compile(text, **named)
        x = np.arange(7).astype(np.int32)
        self.assertTrue((kernel(x) == 2 * x).all())
        return len(self.made)

    def test_hit(self):
        self.assertEqual(self.compile(), 1)
        self.assertEqual(len(self.entries()), 1)
        self.assertEqual(self.place.stat().st_mode & 0o777, 0o700)
        self.assertEqual(self.compile(), 1)
        kernel = moa.compile(DOUBLE)
        self.assertIn("dnf.", kernel.source("dnf"))  # compiled now

    def test_keys(self):
        self.compile()
        for number, named in enumerate((dict(T="i32"), dict(options=moa.Options(optimization=0)),
                                        dict(text=DOUBLE + "// another text\n"),
                                        dict(options=moa.Options(processor="x86-64"))), 2):
            self.assertEqual(self.compile(**named), number, named)
        self.assertEqual(len(self.entries()), 5)
        self.assertEqual(self.compile(options=moa.Options(name="elsewhere.moa")), 5)
        with mock.patch.object(_cache, "processor", lambda: "another"):
            self.assertEqual(self.compile(), 6)

    def test_corrupt(self):
        self.compile()
        (entry,) = self.entries()
        whole = entry.read_bytes()
        middle = len(whole) // 2
        for number, broken in enumerate((b"", whole[:20], whole[:-1], whole[:middle] + bytes([whole[middle] ^ 1]) +
                                         whole[middle + 1:], b"x" + whole), 2):
            entry.write_bytes(broken)
            self.assertEqual(self.compile(), number)
            self.assertEqual(entry.read_bytes()[:20], whole[:20])
            self.assertEqual(self.compile(), number)
        self.assertEqual(self.entries(), [entry])

    def test_wrong_code(self):
        """An entry that is whole, but cannot be loaded."""
        self.compile()
        (entry,) = self.entries()
        facts, _ = _cache.read(entry.name)
        _cache.write(entry.name, facts, b"no object")
        self.assertEqual(self.compile(), 2)
        self.assertNotEqual(_cache.read(entry.name)[1], b"no object")

    def test_disabled(self):
        with mock.patch.dict(os.environ, {"MOA_CACHE": "0"}):
            self.compile()
            self.assertEqual(self.compile(), 2)
        self.compile(options=moa.Options(cache=False))
        self.assertEqual(self.entries(), [])

    def test_cannot_write(self):
        self.place.parent.write_text("a file where the directory should be")
        self.assertEqual(self.compile(), 1)
        self.assertEqual(self.compile(), 2)

    def test_directories(self):
        with mock.patch.dict(os.environ, {"XDG_CACHE_HOME": "/x", "HOME": "/home/y"}):
            self.assertEqual(_cache.directory(), str(self.place))
            del os.environ["MOA_CACHE_DIR"]
            self.assertEqual(_cache.directory(), "/x/moa")
            del os.environ["XDG_CACHE_HOME"]
            self.assertEqual(_cache.directory(), "/home/y/.cache/moa")

    def test_processes(self):
        running = [subprocess.Popen([sys.executable, "-c", CHILD, DOUBLE], stdout=subprocess.PIPE, text=True)
                   for _ in range(2)]
        for process in running:
            said, _ = process.communicate()
            self.assertEqual(process.returncode, 0)
            self.assertIn(said, ("0\n", "1\n"))
        self.assertEqual(len(self.entries()), 1)
        done = subprocess.run([sys.executable, "-c", CHILD, DOUBLE], capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, "0\n")

    def test_failure_is_not_kept(self):
        for _ in range(2):
            with self.assertRaises(moa.CompileError):
                moa.compile(EXAMPLES / "sdpa.moa", D="wrong")
        self.assertEqual(self.entries(), [])


class Progress(Case):

    def say(self, **variables):
        code = ("import time\nfrom moa._kernel import _Progress\n"
                "with _Progress('sdpa.moa for cpu', after=0.01):\n    time.sleep(0.5)\n"
                "with _Progress('quick.moa for cpu', after=60):\n    pass\n")
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                              env={**os.environ, **variables})
        self.assertEqual(done.stdout, "")
        return done.stderr

    def test_line(self):
        self.assertRegex(self.say(MOA_PROGRESS="1"), r"^moa: compiling sdpa\.moa for cpu … \d\.\d s\n$")
        self.assertEqual(self.say(), "")
        self.assertEqual(self.say(MOA_PROGRESS="0"), "")


if __name__ == "__main__":
    unittest.main(verbosity=2)
