# RUN: %python %s
"""What a message about an index proposes really mends the program: every constraint,
range, assumption, clamp, remainder and condition that the messages of
test/Frontend/Inputs/messages.txt propose is written into its specification, and the
index is no longer refused."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(os.environ.get("MOA_SOURCE_ROOT", pathlib.Path(__file__).parents[2]))
FLAGS = "--convert-moa-to-dnf --moa-validate"
PLACE = re.compile(r"spec\.moa:(\d+):(\d+): error: index '?(.*?)'? may be outside of axis \d+ of (\w+)")


def sections():
    text = (ROOT / "test/Frontend/Inputs/messages.txt").read_text(encoding="utf-8")
    for section in re.split(r"^=== ", text, flags=re.M)[1:]:
        head, rest = section.split("\n", 1)
        if head.endswith(FLAGS):
            spec, message = re.split(r"^---\n", rest, maxsplit=1, flags=re.M)
            yield head.split()[0], spec, message


def refusal(spec):
    """What is said of an index of the specification, or nothing."""
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "spec.moa"
        path.write_text(spec, encoding="utf-8")
        done = subprocess.run(["moa-opt", str(path), "-o", os.devnull, *FLAGS.split()],
                              capture_output=True, text=True, timeout=60, check=False)
    return done.stderr


def state(spec, clause):
    """The clause behind the results of the kernel."""
    at = spec.index("{")
    return spec[:at].rstrip() + " " + clause + " " + spec[at:]


def at_place(spec, line, column):
    """The offset of a line and a column, which count from 1."""
    return sum(len(text) + 1 for text in spec.split("\n")[:line - 1]) + column - 1


def reading(spec, offset, array):
    """Where `array[…]` around the offset begins and ends, or nothing."""
    begin = spec.rfind(array + "[", 0, offset)
    if begin < 0:
        return None
    depth = 0
    for end in range(begin + len(array), len(spec)):
        depth += {"[": 1, "]": -1}.get(spec[end], 0)
        if depth == 0:
            return (begin, end + 1) if end > offset else None
    return None


def mended(spec, message):
    """(what was proposed, the specification with it) of every proposal."""
    found = PLACE.search(message)
    if not found:
        return
    line, column, index, array = found.groups()
    offset = at_place(spec, int(line), int(column))
    require = re.search(r"with '(require [^']*)'", message)
    for clause in re.findall(r"write '((?:require|assume) [^']*)'", message):
        yield clause, state(spec, clause)
        if clause.startswith("require"):
            yield "assume", state(spec, clause.replace("require", "assume", 1))
    for name, bounds in re.findall(r"declare the range of (\w+) \('(in 0\.\.[^']*)'\)", message):
        yield bounds, re.sub(rf"(\b{name} : \w+(?:\[[^]]*\])?)", rf"\1 {bounds}", spec, count=1)
    for new in re.findall(r"(?:clamp|wrap) it, as in '([^']*)'", message):
        text = spec[:offset] + new + spec[offset + len(index):]
        yield new, state(text, require.group(1)) if require else text
    for new in re.findall(r"under a condition, as in '([^']*)'", message):
        if place := reading(spec, offset, array):
            yield new, spec[:place[0]] + new + spec[place[1]:]


class Remedies(unittest.TestCase):

    def test_all(self):
        count = 0
        for name, spec, message in sections():
            found = list(mended(spec, message))
            for proposal, text in found:
                count += 1
                with self.subTest(name=name, proposal=proposal):
                    self.assertEqual(refusal(text), "", text)
        self.assertGreater(count, 25)


if __name__ == "__main__":
    sys.exit(not unittest.main(verbosity=2, exit=False).result.wasSuccessful())
