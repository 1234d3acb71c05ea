# RUN: %python %s %moa_source_root
"""Which part of the compiler may include which.

  - lib/Accuracy is included by itself, lib/Compiler and lib/Pipelines alone.
  - lib/Forms, lib/Schedule and lib/Transforms include no lowering and no target.
  - dialects/ includes dialects/ downwards, and lib/Support.
  - Rooms (lib/Analysis, lib/Conversion/ONFToDevice, dialects/ONF, …) include each other without a cycle.
"""
import collections
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1]).resolve()
INCLUDE = re.compile(r'^\s*#include "((?:lib|dialects|include|tools)/[^"]+)"', re.M)
ORDER = ["MoA", "DNF", "ONF", "Device"]  # of the dialects, upwards
LOWERING = re.compile(r"lib/(?:Lowering|Target|Conversion/(?:ONFToVector|ONFToDevice|DeviceToNVVM))/")
WITHOUT_LOWERING = ("lib/Forms/", "lib/Schedule/", "lib/Transforms/")
ACCURACY = ("lib/Accuracy/", "lib/Compiler/", "lib/Pipelines/")


def room(path):
    """The room of a file: lib/Analysis, lib/Conversion/ONFToDevice, dialects/ONF, …"""
    parts = path.split("/")
    depth = 3 if parts[:2] in (["lib", "Conversion"], ["lib", "Target"]) and len(parts) > 3 else 2
    return "/".join(parts[:depth])


def wrong(file, included):
    """Why a file may not include another, or None."""
    if included.startswith("lib/Accuracy/") and not file.startswith(ACCURACY):
        return "only lib/Accuracy, lib/Compiler and lib/Pipelines include lib/Accuracy"
    if file.startswith(WITHOUT_LOWERING) and LOWERING.match(included):
        return "forms, schedules and transforms include no lowering"
    if file.startswith("dialects/"):
        if included.startswith("lib/") and not included.startswith("lib/Support/"):
            return "dialects include no more of lib/ than lib/Support"
        if included.startswith("dialects/") and ORDER.index(included.split("/")[1]) > ORDER.index(file.split("/")[1]):
            return "dialects include each other downwards"
    return None


edges, faults, count = collections.defaultdict(dict), [], 0
for folder in ("lib", "dialects", "tools"):
    for path in sorted((root / folder).rglob("*")):
        if path.suffix not in (".h", ".cpp"):
            continue
        file = path.relative_to(root).as_posix()
        for included in INCLUDE.findall(path.read_text(encoding="utf-8")):
            count += 1
            reason = wrong(file, included)
            if reason:
                faults.append(f"{file} includes {included}: {reason}")
            if room(file) != room(included) and not included.endswith(".inc"):
                edges[room(file)].setdefault(room(included), f"{file} includes {included}")


def find_cycle():
    """One cycle between rooms as a list of places, or None."""
    state, trail = {}, []

    def visit(at):
        state[at] = "open"
        for to, place in edges[at].items():
            trail.append((to, place))
            if state.get(to) == "open":
                first = next((k for k, (name, _) in enumerate(trail) if name == to and k + 1 < len(trail)), -1)
                return [place for _, place in trail[first + 1:]]
            if to not in state:
                found = visit(to)
                if found:
                    return found
            trail.pop()
        state[at] = "done"
        return None

    for at in list(edges):
        if at not in state:
            found = visit(at)
            if found:
                return found
    return None


cycle = find_cycle()
if cycle:
    faults.append("rooms include each other in a cycle:\n  " + "\n  ".join(cycle))
assert count > 800, count
print("\n".join(faults) or f"{count} includes between {len(edges)} rooms are as they may be")
sys.exit(bool(faults))
