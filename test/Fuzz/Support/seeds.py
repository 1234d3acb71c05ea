#!/usr/bin/env python3
"""Writes the seed corpora of the fuzzing targets: seeds.py FOLDER [MOA-RANDOM] makes
FOLDER/specification of the repository's specifications and of 200 that moa-random makes,
and FOLDER/levels of the tests of the levels, one file for each part of a test."""
import hashlib
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]


def parts(path):
    """A file, or the pieces that `// -----` splits it into, without RUN lines."""
    text = path.read_text(errors="replace")
    for piece in text.split("// -----"):
        lines = [l for l in piece.splitlines() if "RUN:" not in l and "CHECK" not in l]
        piece = "\n".join(lines).strip() + "\n"
        if 1 < len(piece) <= 20000:
            yield piece


def specifications(random):
    for folder in ("examples", "test", "lib/Frontend", "benchmarks"):
        for path in sorted((ROOT / folder).rglob("*.moa")):
            yield from parts(path)
    for path in sorted((ROOT / "docs").rglob("*.md")):
        yield from re.findall(r"```moa\n(.*?)```", path.read_text(), re.DOTALL)
    if random:
        run = [random, "--print", "--count=200", "--code-every=0"]
        text = subprocess.run(run, stdout=subprocess.PIPE, check=False).stdout.decode()
        yield from re.split(r"// seed \d+\n", text)[1:]


def levels():
    for path in sorted((ROOT / "test").rglob("*.mlir")):
        yield from parts(path)


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    random = sys.argv[2] if len(sys.argv) == 3 else None
    for name, pieces in (("specification", specifications(random)), ("levels", levels())):
        folder = pathlib.Path(sys.argv[1]) / name
        folder.mkdir(parents=True, exist_ok=True)
        count = 0
        for piece in pieces:
            digest = hashlib.sha1(piece.encode()).hexdigest()
            (folder / digest).write_text(piece)
            count += 1
        print(f"{folder}: {count} seeds")


if __name__ == "__main__":
    main()
