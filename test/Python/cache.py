# REQUIRES: moa-python
# RUN: %moa_python %s
"""The cache on disk: hits, corrupt entries, several processes, the limit of its size, and none."""
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
import warnings
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


WRITER = """import hashlib, sys
from moa import _cache
for number in range(40):
    name = hashlib.sha256(f"{sys.argv[1]} {number}".encode()).hexdigest()
    _cache.write(name, {}, bytes(1000))
    found = _cache.read(name)
    assert found is None or found == ({}, bytes(1000))
"""


class Base(Case):

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="moa-cache-")
        self.addCleanup(directory.cleanup)
        self.place = pathlib.Path(directory.name, "made", "here")
        self.enterContext(mock.patch.dict(os.environ, {"MOA_CACHE_DIR": str(self.place)}))
        os.environ.pop("MOA_CACHE_SIZE", None)
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


class Cache(Base):

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


class Size(Base):

    CODE = bytes(1000)  # an entry has 12 + 32 + 8 + 2 bytes more

    def setUp(self):
        super().setUp()
        self.names = [hashlib.sha256(bytes([number])).hexdigest() for number in range(9)]

    def limit(self, text):
        os.environ["MOA_CACHE_SIZE"] = text

    def write(self, *numbers):
        for number in numbers:
            _cache.write(self.names[number], {}, self.CODE)
            self.age()

    def age(self):
        """Makes the last use of every entry ten seconds earlier."""
        for path in self.entries():
            before = path.stat().st_mtime_ns - 10**10
            os.utime(path, ns=(before, before))

    def kept(self):
        return {self.names.index(path.name) for path in self.entries()}

    def test_sizes(self):
        for text, bytes_wanted in (("", 1 << 30), ("0", 0), ("1000", 1000), ("3K", 3072), ("2m", 2 << 20), ("5G", 5 << 30)):
            self.limit(text)
            self.assertEqual(_cache.size_limit(), bytes_wanted, text)
        del os.environ["MOA_CACHE_SIZE"]
        self.assertEqual(_cache.size_limit(), 1 << 30)
        for text in ("1Q", "-1", "1.5G", "K", "1 000"):
            self.limit(text)
            with self.assertWarnsRegex(RuntimeWarning, "^MOA_CACHE_SIZE is '.*', so the limit is 1G; give bytes or a "
                                                       "suffix, as in 512M$"):
                self.assertEqual(_cache.size_limit(), 1 << 30)

    def test_oldest_go(self):
        self.limit("3200")  # three entries of 1,054 bytes
        self.write(0, 1, 2)
        self.assertEqual(self.kept(), {0, 1, 2})
        self.write(3)
        self.assertEqual(self.kept(), {1, 2, 3})
        self.limit("2200")
        self.write(4)
        self.assertEqual(self.kept(), {3, 4})

    def test_exact_limit(self):
        self.limit(str(2 * 1054))
        self.write(0, 1)
        self.assertEqual(self.kept(), {0, 1})
        self.limit(str(3 * 1054 - 1))
        self.write(2)
        self.assertEqual(self.kept(), {1, 2})

    def test_hit_renews(self):
        self.limit("3200")
        self.write(0, 1, 2)
        self.assertEqual(_cache.read(self.names[0]), ({}, self.CODE))
        self.age()
        self.write(3)
        self.assertEqual(self.kept(), {0, 2, 3})

    def test_corrupt_entry_is_not_renewed(self):
        self.limit("3200")
        self.write(0, 1, 2)
        path = self.place / self.names[0]
        before = path.stat().st_mtime_ns
        path.write_bytes(b"x" * 1054)
        os.utime(path, ns=(before, before))
        self.assertIsNone(_cache.read(self.names[0]))
        self.write(3)
        self.assertEqual(self.kept(), {1, 2, 3})

    def test_own_entry_stays(self):
        """The entry just written stays, also if it alone is over the limit or others seem to be newer."""
        self.limit("0")
        self.write(0)
        self.assertEqual(self.kept(), {0})
        later = time.time_ns() + 10**12
        os.utime(self.entries()[0], ns=(later, later))
        self.write(1)
        self.assertEqual(self.kept(), {1})

    def test_other_files_stay(self):
        self.limit("0")
        self.place.mkdir(parents=True)
        for name, age in (("notes.txt", 9999), (".new-alive", 60), (".new-dead", 9999), ("0" * 63, 9999)):
            (self.place / name).write_bytes(self.CODE)
            then = time.time() - age
            os.utime(self.place / name, (then, then))
        self.write(0)
        self.assertEqual([path.name for path in self.entries()], sorted(["notes.txt", ".new-alive", "0" * 63, self.names[0]]))

    def test_removed_meanwhile(self):
        """Another process removes the same entries first."""
        self.write(0, 1, 2)
        self.limit("1100")
        unlink = os.unlink

        def twice(path, **named):
            unlink(path)
            unlink(path, **named)

        with mock.patch.object(os, "unlink", twice):
            self.write(3)
        self.assertEqual(self.kept(), {3})

    def test_cannot_remove(self):
        self.write(0, 1, 2)
        self.limit("1100")
        with mock.patch.object(os, "unlink", side_effect=PermissionError):
            self.write(3)
        self.assertEqual(self.kept(), {0, 1, 2, 3})

    def test_kernels(self):
        """A kernel that was removed is compiled again; its old copy goes on computing."""
        self.limit("1")
        x = np.arange(7).astype(np.int32)
        first = moa.compile(DOUBLE)
        moa.compile(DOUBLE + "// another\n")
        self.assertEqual((len(self.entries()), len(self.made)), (1, 2))
        self.assertTrue((first(x) == 2 * x).all())
        self.assertTrue((moa.compile(DOUBLE)(x) == 2 * x).all())
        self.assertEqual((len(self.entries()), len(self.made)), (1, 3))

    def test_no_warning_on_a_hit(self):
        moa.compile(DOUBLE)
        self.limit("much")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            moa.compile(DOUBLE)

    def test_processes(self):
        self.limit("5500")  # five entries
        running = [subprocess.Popen([sys.executable, "-c", WRITER, str(number)]) for number in range(3)]
        self.assertEqual([process.wait() for process in running], [0, 0, 0])
        self.write(0)
        self.assertLessEqual(len(self.entries()), 5)
        self.assertIn(self.names[0], [path.name for path in self.entries()])
        self.assertTrue(all(path.stat().st_size == 1054 for path in self.entries()))


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
