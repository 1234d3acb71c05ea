"""python -m moa codegen|opt|run …: executes a tool with these arguments, and ends with its status."""
import os
import sys

from moa import _libraries

TOOLS = ("codegen", "opt", "run")


def main() -> int:
    if len(sys.argv) < 2 or sys.argv[1] not in TOOLS:
        given = f"python -m moa: no tool '{sys.argv[1]}'\n" if len(sys.argv) > 1 else ""
        sys.stderr.write(f"{given}usage: python -m moa codegen|opt|run ARGUMENT…\n")
        return 2
    try:
        tool = _libraries.find_tool("moa-" + sys.argv[1])
    except FileNotFoundError as error:
        sys.stderr.write(f"python -m moa: {error}\n")
        return 2
    sys.stdout.flush()
    os.execv(tool, [tool, *sys.argv[2:]])


if __name__ == "__main__":
    sys.exit(main())
