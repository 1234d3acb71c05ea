# RUN: %python %s %moa_source_root
"""Counts words and sentences that are hard to read, in documents, comments and messages.

Limits per kind of text:
  - "what" as a noun: at most 1 per 1,000 words (any "what" outside a question counts);
  - "behind", "beside" and "in front of": at most 0.5 per 1,000 words;
  - sentences of more than 35 words: at most 2 %;
  - Markdown: lines of at most 100 columns outside tables and code.

With --list every place is printed; a second argument restricts the paths, for example
`words.py . lib/Frontend --list`.
"""
import pathlib
import re
import sys

arguments = [a for a in sys.argv[1:] if a != "--list"]
root = pathlib.Path(arguments[0]).resolve()
only = arguments[1] if len(arguments) > 1 else ""
listing = "--list" in sys.argv

LIMITS = {"what": 1.0, "behind, beside, in front of": 0.5}  # per 1,000 words
LONGEST, LONG_SHARE, COLUMNS = 35, 0.02, 100
PLACES = re.compile(r"\b(?:behind|beside|in\s+front\s+of)\b", re.I)
WHAT = re.compile(r"\bwhat\b", re.I)
WORD = re.compile(r"[A-Za-z][A-Za-z'’-]*")
# Generated from TableGen, and counted there. Records of measurements (benchmarks/) are not counted.
GENERATED = {"docs/Passes.md", "docs/Dialects/MoA.md", "docs/Dialects/DNF.md", "docs/Dialects/ONF.md",
             "docs/Dialects/Device.md"}


class Text:
    """Paragraphs of one kind of text, each with its place."""

    def __init__(self, name):
        self.name, self.words, self.sentences = name, 0, 0
        self.found = {"what": [], "behind, beside, in front of": [], "long": [], "columns": []}

    def add(self, place, paragraph):
        paragraph = re.sub(r"`[^`]*`", "X", paragraph)
        for sentence in re.split(r"(?<=[.!?])[\"')\]*_]*\s+(?=[^a-z])", paragraph.strip()):
            count = len(WORD.findall(sentence))
            if not count:
                continue
            self.words += count
            self.sentences += 1
            if count > LONGEST:
                self.found["long"].append(f"{place}: {count} words: {sentence}")
            if not sentence.rstrip("\"')*_ ").endswith("?"):
                self.found["what"] += [f"{place}: what: {sentence}"] * len(WHAT.findall(sentence))
            self.found["behind, beside, in front of"] += \
                [f"{place}: {match.group(0)}: {sentence}" for match in PLACES.finditer(sentence)]

    def report(self):
        """Prints the counts; returns whether all are within the limits."""
        good = True
        print(f"{self.name}: {self.words} words in {self.sentences} sentences")
        for kind, limit in LIMITS.items():
            rate = 1000 * len(self.found[kind]) / max(1, self.words)
            good &= rate <= limit
            print(f"  {kind}: {len(self.found[kind])}, {rate:.2f} per 1,000 words (at most {limit})")
        share = len(self.found["long"]) / max(1, self.sentences)
        good &= share <= LONG_SHARE
        print(f"  sentences over {LONGEST} words: {len(self.found['long'])}, {100 * share:.1f} % "
              f"(at most {100 * LONG_SHARE:.0f} %)")
        if self.found["columns"]:
            good = False
            print(f"  lines over {COLUMNS} columns: {len(self.found['columns'])} (at most 0)")
        if listing or not good:
            for kind in self.found:
                print("\n".join("    " + place for place in self.found[kind][:None if listing else 5]))
        return good


def paragraphs(lines):
    """Joins the lines of prose into paragraphs; (number of the first line, text) for each."""
    start, text = 0, []
    for number, line in lines:
        stripped = line.strip()
        item = re.match(r"(?:[-*+]|\d+\.)\s+(.*)", stripped)
        if not stripped or item or stripped.startswith(("|", "#", ">")):
            if text:
                yield start, " ".join(text)
            text = []
            stripped = item.group(1) if item else stripped.lstrip("|#> ")
            if not stripped:
                continue
        if not text:
            start = number
        text.append(stripped)
    if text:
        yield start, " ".join(text)


def markdown(path, place, text):
    prose, fenced = [], False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
            line = ""
        if fenced or (line.startswith("    ") and not re.match(r"\s*(?:[-*+]|\d+\.)\s", line)
                      and not (prose and prose[-1][1].strip() and prose[-1][1] != line)):
            prose.append((number, ""))
            continue
        table = line.lstrip().startswith("|")
        if not table and len(re.sub(r"\]\([^)]*\)", "]", line)) > COLUMNS:
            text.found["columns"].append(f"{place}:{number}: {len(line)} columns")
        if table:  # each cell is a paragraph of its own
            for cell in line.strip().strip("|").split("|"):
                prose += [(number, cell), (number, "")]
        else:
            prose.append((number, re.sub(r"\]\([^)]*\)", "]", line)))
    for number, paragraph in paragraphs(prose):
        text.add(f"{place}:{number}", paragraph)


def c_tokens(source):
    """Comments and string literals of C++ or TableGen, in order: (kind, line, text)."""
    token = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|\[\{.*?\}\]|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'',
                       re.S)
    line, last = 1, 0
    for match in token.finditer(source):
        line += source.count("\n", last, match.start())
        last = match.start()
        yield match, line


def source_file(path, place, comments, messages, documents):
    source = path.read_text(encoding="utf-8")
    block, string, string_end, block_end = [], [], None, None

    def end_block():
        for number, paragraph in paragraphs(block):
            comments.add(f"{place}:{number}", paragraph)
        block.clear()

    def end_string():
        text = "".join(part for _, part in string)
        # A message is a text of words; what is emitted as code has braces, semicolons or '=' signs.
        if len(re.findall(r"\b[a-z]{2,}\b", text)) >= 4 and not re.search(r"[{};]\s*(?:\\n|$)|==|\(\)|^\s*#", text):
            messages.add(f"{place}:{string[0][0]}", text.replace("\\n", "\n").replace('\\"', '"'))
        string.clear()

    for match, line in c_tokens(source):
        text = match.group(0)
        gap_is_blank = lambda end: end is not None and not source[end:match.start()].strip()
        if text.startswith("//"):
            if not (gap_is_blank(block_end) and source.count("\n", block_end, match.start()) == 1):
                end_block()
            line_text = re.sub(r"^//[/!]?<?", "", text)
            # An indented example is no prose.
            block.append((line, "" if line_text.startswith("    ") or line_text.strip().startswith(("===", "---"))
                          else line_text))
            block_end = match.end()
            continue
        if text.startswith("[{") and path.suffix == ".td":
            body = re.sub(r"```.*?```", lambda m: "\n" * m.group(0).count("\n"), text[2:-2], flags=re.S)
            lines = [(line + i, "" if part.startswith("      ") else part) for i, part in enumerate(body.split("\n"))]
            if not re.search(r"\$_\w+|return |::", body):
                for number, paragraph in paragraphs(lines):
                    documents.add(f"{place}:{number}", paragraph)
            continue
        if text.startswith('"'):
            if not (string and gap_is_blank(string_end)):
                end_string()
            string.append((line, text[1:-1]))
            string_end = match.end()
            if path.suffix == ".td":
                kind = documents
                if len(re.findall(r"\b[a-z]{2,}\b", text)) >= 3:
                    kind.add(f"{place}:{line}", text[1:-1])
                string.clear()
    end_block()
    end_string()


documents, comments, messages = Text("documents"), Text("comments"), Text("messages")
for path in sorted(root.rglob("*.md")):
    place = str(path.relative_to(root))
    if place.startswith(("build", ".", "benchmarks/", "findings/")) or place in GENERATED \
            or not place.startswith(only):
        continue
    markdown(path, place, documents)
for folder in ("lib", "dialects", "include", "tools"):
    for path in sorted((root / folder).rglob("*")):
        place = str(path.relative_to(root))
        if path.suffix in (".cpp", ".h", ".td", ".c") and place.startswith(only):
            source_file(path, place, comments, messages, documents)
if not only:
    assert documents.words > 30000 and comments.words > 40000 and messages.words > 5000, \
        (documents.words, comments.words, messages.words)
good = [text.report() for text in (documents, comments, messages)]
sys.exit(not all(good))
