#!/usr/bin/env python3
"""Writes docs/Dialects/*.md and docs/Passes.md from the TableGen files.

    docs/generate.py [--check] [--tblgen mlir-tblgen] [--include DIRECTORY]

With --check nothing is written: what would change is shown, and the exit status is 1.
The target moa-docs runs this with the programs of the build."""
import argparse
import difflib
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
HOW = "cmake --build build --target moa-docs"

DIALECTS = {"MoA": "moa", "DNF": "dnf", "ONF": "onf", "Device": "device"}

# Headings of docs/Passes.md and the files below them, from the specification to the machine.
PASSES = [
    ("Between the levels", ["lib/Conversion/Passes.td"]),
    ("Analyses", ["lib/Analysis/Passes.td"]),
    ("Accuracy", ["lib/Accuracy/Passes.td"]),
    ("Dimension lifting", ["lib/Schedule/Passes.td"]),
    ("Validation", ["lib/Validation/Passes.td"]),
    ("Contracts of the levels", [f"dialects/{name}/Transforms/Passes.td" for name in DIALECTS]),
]


def tblgen(options, generator, file, *flags):
    """The generator's text without its first line, which says that it is generated."""
    command = [options.tblgen, generator, "-I", str(ROOT), "-I", options.include, *flags,
               str(ROOT / file)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          encoding="utf-8")
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return re.sub(r"\A<!--.*?-->\n", "", done.stdout)


def anchor(heading):
    """What a heading is linked by: letters, digits and - of its text in lower case."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def tidy(text):
    """Blanks at ends of lines and more than one empty line are the generator's."""
    text = re.sub(r"[ \t]+$", "", text, flags=re.M)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def without_foreign(text, name):
    """The generator lists the enumerations of included files too."""
    for heading in ("Monoid", "ScalarFn") if name != "MoA" else ():
        text = re.sub(rf"^### {heading}$.*?(?=^### |\Z)", "", text, flags=re.M | re.S)
    return text


def index(text, level):
    """A list of links to the headings of one level, as `name`."""
    links = []
    for heading in re.findall(rf"^{'#' * level} (.*)$", text, re.M):
        name = re.match(r"`-?([^`]*)`|\S+", heading)
        links.append(f"[{name[1] or name[0]}](#{anchor(heading)})")
    return " · ".join(links)


def dialect_page(options, name):
    file = f"dialects/{name}/IR/{name}.td"
    attributes = f"dialects/{name}/IR/{name}Attributes.td"  # includes the file and others
    whole = attributes if (ROOT / attributes).exists() else file
    text = tblgen(options, "-gen-dialect-doc", whole, f"-dialect={DIALECTS[name]}")
    text = without_foreign(text, name)
    note = f"<!-- Made of {file} by `{HOW}`; change that file. -->\n\n"
    toc = index(text, 3) + "\n\nNumbers such as [Def 8] are those of [Spec](../Spec.md)."
    return tidy(note + text.replace("[TOC]", toc))


def pass_page(options):
    sections = []
    for heading, files in PASSES:
        parts = "".join(tblgen(options, "-gen-pass-doc", file) for file in files)
        sections.append(f"## {heading}\n\n{parts}")
    body = "\n\n".join(sections)
    return tidy(f"<!-- Made of the files Passes.td by `{HOW}`; change those. -->\n\n# Passes\n\n"
                "`moa-opt` runs each by its name; [Architecture](Architecture.md) shows them in one\n"
                "picture. Rules and laws are those of [Spec](Spec.md).\n\n" + index(body, 3) + "\n\n" + body)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--tblgen", default="/usr/lib/llvm-22/bin/mlir-tblgen")
    parser.add_argument("--include", default="/usr/lib/llvm-22/include")
    options = parser.parse_args()
    pages = {f"docs/Dialects/{name}.md": dialect_page(options, name) for name in DIALECTS}
    pages["docs/Passes.md"] = pass_page(options)
    stale = []
    for path, text in pages.items():
        file = ROOT / path
        old = file.read_text(encoding="utf-8") if file.exists() else ""
        if old == text:
            continue
        stale.append(path)
        if options.check:
            sys.stdout.writelines(difflib.unified_diff(
                old.splitlines(True), text.splitlines(True), path, "the TableGen files"))
        else:
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
            print("wrote", path)
    if options.check and stale:
        sys.exit(f"{', '.join(stale)}: not what the TableGen files say. Run\n    {HOW}\n"
                 "and commit the result.")


main()
