# RUN: %python %s
"""What the front end says, in full: message, line, caret and notes.

Inputs/messages.txt holds specifications, each with all that moa-opt writes about it:

    === NAME [FLAGS]
    specification
    ---
    what moa-opt writes to its standard error

`python3 messages.py --update` writes down what it says now: read what changes. That
every message stands here or in another test, test/Docs/messages.py checks.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

PATH = pathlib.Path(__file__).with_name("Inputs") / "messages.txt"


def sections():
    text = PATH.read_text(encoding="utf-8")
    for section in re.split(r"^=== ", text, flags=re.M)[1:]:
        head, rest = section.split("\n", 1)
        spec, expected = re.split(r"^---\n", rest, maxsplit=1, flags=re.M)
        yield head, spec, expected.strip("\n")


def says(head, spec, directory):
    path = pathlib.Path(directory) / "spec.moa"
    path.write_text(spec.rstrip("\n") + "\n", encoding="utf-8")
    done = subprocess.run(["moa-opt", str(path), "-o", os.devnull] + head.split()[1:],
                          capture_output=True, text=True, timeout=60, check=False)
    text = re.sub(r"\S*?(spec|prelude)\.moa", r"\1.moa", done.stderr).strip("\n")
    if (done.returncode != 0) != (" error: " in text):
        text += f"\nexit status {done.returncode}"
    return text


def main():
    if not shutil.which("moa-opt"):
        sys.exit("moa-opt is not on the PATH")
    failures, written, count = 0, [], 0
    with tempfile.TemporaryDirectory() as directory:
        for head, spec, expected in sections():
            count += 1
            got = says(head, spec, directory)
            written.append(f"=== {head}\n{spec}---\n{got}\n")
            if got != expected:
                failures += 1
                print(f"{head}: expected\n{expected}\nbut got\n{got}\n")
    if "--update" in sys.argv:
        PATH.write_text("\n".join(written), encoding="utf-8")
        return 0
    print(f"{count - failures} of {count} specifications have their messages")
    return failures != 0 or count < 100


if __name__ == "__main__":
    sys.exit(main())
