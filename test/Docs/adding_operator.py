# RUN: %python %s %moa_source_root docs/AddingAnOperator.md 38
# RUN: %python %s %moa_source_root docs/AddingAForm.md 12
"""Every file and place that a page on adding an operator or a form names is there."""
import pathlib
import re
import sys

root, page, least = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
ROW = re.compile(r"^\| ([\w-]+/[\w/.-]+) \| `([^`]+)` \|", re.M)

text = (root / page).read_text(encoding="utf-8")
rows = ROW.findall(text)
# Rows of tables whose first cell is a path, however the second one is written.
paths = re.findall(r"^\| [\w-]+/[^|]*\|", text, re.M)
missing = [f"{page}: '{row}' is not read by this test" for row in paths[len(rows):]]
for name, place in rows:
    path = root / name
    if not path.exists():
        missing.append(f"{page}: there is no {name}")
    elif place not in path.read_text(encoding="utf-8"):
        missing.append(f"{page}: {name} does not have '{place}'")
assert len(rows) >= least, len(rows)
print("\n".join(missing) or f"{len(rows)} places are there")
sys.exit(bool(missing))
