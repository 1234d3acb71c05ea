# RUN: %python %s %moa_source_root
"""The derivation is that of the compiler: what it ends with are the normal forms, its laws
have the numbers of docs/Spec.md, and docs/Tools.md shows what the tool prints."""
import pathlib
import re
import subprocess
import sys
import tempfile

root = pathlib.Path(sys.argv[1])
# What no example has: masks in masks, absent output elements and values in their place, slices, catenation.
MORE = """
kernel more[N, M](x : f32[N, M]) -> (y : f32[N, M], z : f32[N - 1, 2], c : f32[2 * N, M], o : f32[N, M]) {
  s = mask([i, j] j <= i, x)
  t = mask([i, j] j != 3, s)
  y = t * 2
  z = take(drop(x, 1), 2, 1)
  c = cat(x, s)
  o = otherwise(s, -1.0)
}
"""
more = tempfile.NamedTemporaryFile("w", suffix=".moa")
more.write(MORE)
more.flush()
specifications = [*sorted((root / "examples").glob("*.moa")), root / "test/Frontend/forms.moa",
                  pathlib.Path(more.name)]


def codegen(*arguments):
    done = subprocess.run(["moa-codegen", *map(str, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding="utf-8")
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout


def section(text, heading):
    """The lines of the section, which ends where a line begins with a letter again."""
    found = re.search(rf"^{heading}[^\n]*\n(.*?)(?=^\S[^\[\n]*$(?<!\])|\Z)", text, re.M | re.S)
    return found[1] if found else ""


def derived(text):
    """The last line of every definition: {"O[b, n]": "Σ…"}."""
    ends, head = {}, None
    for line in section(text, "ψ-reduction, by").splitlines():
        if start := re.match(r"  ([^\s(\[]+(?:\[[^=]*?\]|\([^=]*?\))?) = (.*)$", line):
            head = start[1]
            ends[head] = start[2]
        elif step := re.match(r"    \S.*?  = (.*)$", line):
            ends[head] = step[1]
        elif line == "    unfolded where it is used":
            del ends[head]
    return ends


laws = dict(re.findall(r"^\| ([PA]\d+) \|.*\| (\S+) \|$", (root / "docs/Spec.md").read_text(), re.M))
seen = set()
for specification in specifications:
    explained, mathematics = codegen(specification, "--explain"), codegen(specification, "--emit=math")
    # One kernel after the other, in both.
    parts = [re.split(r"^(?=kernel \w+\()", text, flags=re.M)[1:] for text in (explained, mathematics)]
    assert len(parts[0]) == len(parts[1]) > 0, specification
    for ours, theirs in zip(*parts):
        normal = re.search(r"Denotational normal form\n\n\S.*\n((?:  .*\n)*)", theirs)[1]
        wanted = {re.sub(r" +$", "", head): text
                  for head, text in re.findall(r"^  (.*?) += (.*)$", normal, re.M)}
        assert derived(ours) == wanted, (specification, derived(ours), wanted)
    for number, name in re.findall(r"^    ([PA]\d+) ((?:psi|absent)-\S+)", explained, re.M):
        assert laws.get(number) == name, f"{specification}: {name} is called {number}"
        seen.add(name)
assert len(laws) >= 22, laws
missing = set(laws.values()) - seen
assert not missing - {"psi-cast", "psi-extent", "psi-constant"}, f"no line shows {missing}"

# The page: a command, and below it lines of its output; a line of … leaves some out.
page = (root / "docs/Tools.md").read_text(encoding="utf-8")
shown = re.findall(r"^    build/bin/moa-codegen ([^\n]*--explain)\n\n```text\n(.*?)^```", page, re.M | re.S)
assert len(shown) == 1, f"{len(shown)} derivations in docs/Tools.md"
for arguments, block in shown:
    output = codegen(*(root / word if word.startswith("examples/") else word
                       for word in arguments.split()))
    at = 0
    for piece in re.split(r"^ *…\n", block, flags=re.M):
        found = output.find(piece, at)
        assert found >= 0, f"docs/Tools.md: this is not printed (any more):\n{piece}"
        at = found + len(piece)
