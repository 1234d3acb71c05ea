# RUN: %python %s
"""Every constraint of an op, a type or a level has a test that shows its message.

The constraints are those that the descriptions in dialects/*/{IR,Transforms}/*.td
number, (C1) or "- K1:". A test is an `expected-error` with that number in a .mlir
file of test/Dialects, at the op. What one side lacks is listed, and fails.
"""
import collections
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(os.environ.get("MOA_SOURCE_ROOT",
                                   pathlib.Path(__file__).parents[2]))
DIALECTS = {"MoA": "moa", "DNF": "dnf", "ONF": "onf", "Device": "device"}


def blocks(text):
    """(mnemonic, body) of the definitions of ops, attributes and types."""
    starts = [m.start() for m in re.finditer(r"^def ", text, re.M)] + [len(text)]
    for begin, end in zip(starts, starts[1:]):
        body = text[begin:end]
        name = (re.search(r'let mnemonic = "([\w.]+)"', body)
                or re.match(r'def \w+\s*:\s*\w+<"([\w.]+)"', body))
        if name:
            yield name.group(1), body


def numbers(text):
    """The constraints a description numbers; `C1, C2` and `C1 and C2` are two."""
    return set(re.findall(r"\bC\d+\b", text))


def documented():
    found = collections.defaultdict(set)
    for folder, dialect in DIALECTS.items():
        for path in sorted((ROOT / "dialects" / folder / "IR").glob("*.td")):
            for mnemonic, body in blocks(path.read_text(encoding="utf-8")):
                description = re.search(r"description = \[\{(.*?)\}\]", body, re.S)
                if description and numbers(description.group(1)):
                    found[f"{dialect}.{mnemonic}"] |= numbers(description.group(1))
        for path in sorted((ROOT / "dialects" / folder / "Transforms").glob("*.td")):
            clauses = re.findall(r"^ +- ([A-Z]\d+):", path.read_text(encoding="utf-8"), re.M)
            found[f"{dialect}-verify"] |= set(clauses)
    return found


def verifiers():
    """(definition, number, message) of the messages in the verifiers of ops: a verifier may
    place its message at an operation inside of its own."""
    for folder, dialect in DIALECTS.items():
        names = {}
        for path in (ROOT / "dialects" / folder / "IR").glob("*.td"):
            names.update(re.findall(r'^def \w+_(\w+)Op\s*:\s*\w+<"([\w.]+)"',
                                    path.read_text(encoding="utf-8"), re.M))
        for path in (ROOT / "dialects" / folder / "IR").glob("*.cpp"):
            bodies = re.split(r"^LogicalResult (\w+)Op::verify\w*\(",
                              path.read_text(encoding="utf-8"), flags=re.M)
            for name, body in zip(bodies[1::2], bodies[2::2]):
                for message in re.findall(r'"((?:[^"\\]|\\.)*\(C\d+\)(?:[^"\\]|\\.)*)"', body):
                    if name in names and len(message) > 24:
                        number = re.search(r"\((C\d+)\)", message).group(1)
                        yield f"{dialect}.{names[name]}", number, message


def op_messages():
    """How the messages of the verifiers of ops begin; others are of attributes and types."""
    found = set()
    for path in (ROOT / "dialects").rglob("*.cpp"):
        found |= set(re.findall(r'emitOpError\(\s*"([^"]{12,})"', path.read_text(encoding="utf-8")))
    return tuple(found)


def operation(lines, k, where):
    """The op, attribute or type that the error annotated at line `k` stands at."""
    step = -1 if where == "above" else 1
    j = k + (int(where[1:]) * (1 if where[0] == "+" else -1) if where[:1] in "+-" else step)
    while 0 <= j < len(lines) and (not lines[j].strip() or lines[j].strip().startswith("//")):
        j += step
    return lines[j]


def tested():
    found, of_ops = collections.defaultdict(set), op_messages()
    own = list(verifiers())
    for path in sorted((ROOT / "test" / "Dialects").rglob("*.mlir")):
        dialect = DIALECTS[path.relative_to(ROOT / "test" / "Dialects").parts[0]]
        lines = path.read_text(encoding="utf-8").splitlines()
        for k, line in enumerate(lines):
            for where, message in re.findall(
                    r"expected-error(?:-re)?\s*@?(above|below|[+-]\d+)?\s*\{\{(.*?)\}\}", line):
                target = operation(lines, k, where or "+0")
                for name, number, start in own:
                    if start in message:
                        found[name].add(number)
                is_op = any(start in message for start in of_ops)
                for number in re.findall(r"\(([A-Z]\d+)\)", message):
                    if number[0] != "C":
                        found[f"{dialect}-verify"].add(number)
                    for name in re.findall(r"[#!]?\b(?:moa|dnf|onf|device)\.[\w.]+", target):
                        if not is_op or name[0] not in "#!":
                            found[name.lstrip("#!")].add(number)
    return found


def main():
    wanted, shown = documented(), tested()
    missing = [f"{name}: no test shows {number}" for name in sorted(wanted)
               for number in sorted(wanted[name] - shown[name])]
    if len(wanted) < 50:
        missing.append(f"only {len(wanted)} definitions with constraints were found")
    print("\n".join(missing) or f"{sum(map(len, wanted.values()))} constraints of "
          f"{len(wanted)} definitions have a test")
    return bool(missing)


if __name__ == "__main__":
    sys.exit(main())
