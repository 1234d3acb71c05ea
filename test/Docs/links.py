# RUN: %python %s %moa_source_root
"""Every relative link of every page leads to a file and, where it has one, to a heading there.

The README has at most 150 lines.
"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1]).resolve()
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.M | re.S)


def pages():
    yield from root.glob("*.md")
    for folder in ("docs", "benchmarks", "test", "examples"):
        yield from (root / folder).rglob("*.md")


def anchor(heading):
    """The name that GitHub gives a heading: its words in lower case, with hyphens."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def anchors(path):
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    found = set()
    for heading in re.findall(r"^#+ (.*)$", text, re.M):
        name, number = anchor(heading), 0
        while (name if not number else f"{name}-{number}") in found:
            number += 1
        found.add(name if not number else f"{name}-{number}")
    return found


broken, count = [], 0
for page in sorted(pages()):
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    for target in LINK.findall(text):
        if re.match(r"[a-z]+:", target):
            continue
        count += 1
        name, _, place = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        if not path.exists():
            broken.append(f"{page.relative_to(root)}: there is no {target}")
        elif place and path.suffix == ".md" and place not in anchors(path):
            broken.append(f"{page.relative_to(root)}: {name or page.name} has no heading for #{place}")
lines = len((root / "README.md").read_text(encoding="utf-8").splitlines())
if lines > 150:
    broken.append(f"README.md has {lines} lines; at most 150 are allowed")
assert count > 150, count
print("\n".join(broken) or f"{count} links lead somewhere")
sys.exit(bool(broken))
