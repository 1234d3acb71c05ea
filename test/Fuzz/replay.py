# RUN: %python %s
"""What the fuzzing targets found once: the tools end with a message, never by a signal,
and in time. Specifications go through moa-codegen to onf; modules of the levels through
moa-opt, which parses and verifies them, and through moa-codegen to vector code and to that of a GPU."""
import os
import pathlib
import subprocess
import sys

INPUTS = pathlib.Path(__file__).resolve().parent / "Inputs"
SECONDS = 60


def commands(path):
    if path.suffix == ".moa":
        return [["moa-codegen", str(path), "--emit=onf", "-o", os.devnull]]
    return [
        ["moa-opt", str(path), "-o", os.devnull],
        ["moa-codegen", str(path), "--emit=vector", "-o", os.devnull],
        ["moa-codegen", str(path), "--emit=device", "-o", os.devnull],
    ]


def replay(command):
    """Why the tool's end is not what it should be, or nothing."""
    try:
        run = subprocess.run(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"more than {SECONDS} seconds"
    message = run.stderr.decode(errors="replace")
    if run.returncode < 0 or run.returncode > 2:
        return f"ended with {run.returncode}: {message[-500:]}"
    if run.returncode and "error" not in message:
        return f"refused without a message: {message[-500:]}"
    return None


def main():
    files = sorted(p for p in INPUTS.iterdir() if p.suffix in (".moa", ".mlir"))
    if not files:
        sys.exit(f"{INPUTS} holds nothing")
    failed = 0
    for path in files:
        for command in commands(path):
            why = replay(command)
            print(f"{path.name}, {command[0]}: {why or 'ok'}")
            failed += why is not None
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
