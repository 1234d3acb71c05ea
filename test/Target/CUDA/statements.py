# REQUIRES: x86_64
# RUN: %python %s
"""The text of every example declares no name twice in nested blocks (-Wshadow), chains no
statements by commas, and names no value by its operation and a number.
"""
import glob
import os
import re
import unittest

import moa_testing as mt


def without_strings(line):
    """The line without its comment, and with empty strings."""
    return re.sub(r'"(?:[^"\\]|\\.)*"', '""', line).split("//")[0].rstrip()


def statements(text):
    """Statements and heads of blocks, each on one line, of code without macros."""
    joined = ""
    for line in text.split("\n"):
        line = without_strings(line)
        if line.endswith("\\") or line.lstrip().startswith("#"):
            continue
        joined = (joined + " " + line.strip()).strip()
        if joined.endswith((";", "{", "}")):
            yield joined
            joined = ""


def skip_parentheses(text):
    depth = 0
    for k, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if depth == 0 and c == ")":
            return text[k + 1:].lstrip()
    return ""


def after_heads(text):
    """The statement after `if (…)`, `else` and `for (…)`."""
    while True:
        head = re.match(r"(?:\} )?(?:else\b|(?:UNROLL )?(?:if|for|while) )", text)
        if not head:
            return text
        text = text[head.end():].lstrip()
        if text.startswith("("):
            text = skip_parentheses(text)


def split_top(text):
    """The parts between commas outside of parentheses and of template arguments."""
    text = re.sub(r"<<<.*>>>|<[\w, ]+>(?=\()", "", text)
    parts, depth, start = [], 0, 0
    for k, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            parts.append(text[start:k])
            start = k + 1
    return parts + [text[start:]]


TYPE = (r"(?:extern |static |constexpr |\[\[maybe_unused\]\] |__shared__ |__align__\(\d+\) |alignas\(\w+\) |const )*"
        r"(?:unsigned char|unsigned int|unsigned|char|short|int|bool|float|double|auto|size_t|u?int\d+_t|float2|__half2?|"
        r"__nv_bfloat162?|T|F|Unit|Shared|Checked|Array|Message|DLTensor|CUtensorMap|cu\w+|cuda\w+)\b(?: const)?[ *&]+"
        r"(?:const )?")


def declared(text):
    """The names that a declaration declares."""
    head = re.match(TYPE + r"(?=\w+\s*(?:[;=,\[({]|$))", text)
    if not head or re.match(r"\w+\([^)]*\) \{", text[head.end():]):
        return []
    return [re.match(r"[ *&]*(?:const )?(\w+)", part).group(1) for part in split_top(text[head.end():])]


def shadowed(text):
    """Names declared in a block inside of one that has declared them before."""
    found, scopes = [], [set()]
    for line in statements(text):
        for _ in range(len(line) - len(line.lstrip("} "))):
            if line[0] == "}" and len(scopes) > 1:
                scopes.pop()
            line = line[1:]
        inner = set()
        for loop in re.finditer(r"\bfor \(", line):
            inner.update(declared(line[loop.end():].split(";")[0].split(" : ")[0]))
        function = re.match(r"(?:template <[^{]*> )?(?:constexpr )?(?:DEVICE|__global__|static)[^(]*\(", line)
        if function and line.endswith("{"):
            parameters = line[function.end():]
            inner.update(m.group(1) for m in re.finditer(r"(\w+)\)?(?:\[\w+\])?(?: = \w+)?(?=[,)])", parameters))
        names = declared(after_heads(line)) if not function else []
        visible = set().union(*scopes[1:])
        found += [name for name in [*inner, *names] if name in visible and name not in scopes[-1]]
        scopes[-1].update(names if len(scopes) > 1 else [])
        opened = line.count("{") - line.count("}")
        for k in range(max(opened, 0)):
            scopes.append(set(inner) if k == 0 else set())
        for _ in range(max(-opened, 0)):
            if len(scopes) > 1:
                scopes.pop()
    return found


def chained(text):
    """Statements that are chained by commas."""
    return [line for line in statements(text)
            if line.endswith(";") and not line.startswith("{")
            and not re.match(r"(?:return|typedef|struct|enum|template|asm)\b", after_heads(line))
            and not declared(after_heads(line)) and len(split_top(after_heads(line))) > 1]


class Statements(unittest.TestCase):

    def texts(self):
        folder = os.path.dirname(mt.example("sdpa"))
        for path in sorted(glob.glob(os.path.join(folder, "*.moa"))):
            for kind in ("f32", "bf16"):
                made = mt.tool("moa-codegen", path, "--set", f"T={kind}", "--target=cuda", "-o", "-")
                self.assertEqual(made.returncode, 0, made.stderr)
                name = os.path.basename(path)[:-4]
                yield name, kind, made.stdout[made.stdout.index("#define DEVICE"):]

    def test_examples(self):
        count = 0
        for name, kind, text in self.texts():
            count += 1
            with self.subTest(example=name, type=kind):
                self.assertEqual(shadowed(text), [])
                self.assertEqual(chained(text), [])
        self.assertGreaterEqual(count, 22)

    def test_roles(self):
        """The states of attention by their roles, numbers of the mathematics by their names."""
        text = mt.tool("moa-codegen", mt.example("gqa_causal"), "--target=cuda", "--disable-rule=R4", "-o", "-").stdout
        for name in ("running_max", "reference_max", "correction", "row_sum", "mask", "probabilities", "pivot",
                     "previous_stage", "empty_parity"):
            self.assertRegex(text, rf"\b{name}\b")
        kernel = text[text.index("__global__"):text.index("//===- Checks")]
        self.assertEqual(sorted(set(re.findall(r"\b[a-z]\w*_\d\b(?<!_s\d)(?<!gqa_causal_0)(?<!products_0)", kernel))), [])
        self.assertNotIn("1.44269502f", kernel)
        self.assertNotIn("1024.0f", kernel)

    def test_roles_of_rows(self):
        """Values of states in kernels of rows: the next ones, those of other lanes, sums, elements, results."""
        for name, words in (("sdpa", ("next_max", "next_add", "next_add_rest", "other_add", "joined_add",
                                      "total_add", "K_element", "V_element")),
                            ("scaled_norm", ("next_m", "is_left", "left_m", "right_m", "joined_m", "next_norm", "rescaled_norm",
                                             "norm_2_result")),
                            ("layernorm_product", ("Y_element", "Y_result"))):
            with self.subTest(example=name):
                text = mt.tool("moa-codegen", mt.example(name), "--set", "T=f32", "--target=cuda", "-o", "-").stdout
                kernel = text[text.index("__global__"):text.index("//===- Checks")]
                for word in words:
                    self.assertRegex(kernel, rf"\b{word}(_\d+)?\b")

    def test_the_checks(self):
        """The checks find what they are for."""
        outer = "DEVICE void f(int a) {\n  float b[2], c = g(1, 2);\n  for (int k = 0; k < 2; ++k) {\n    %s\n  }\n}\n"
        self.assertEqual(shadowed(outer % "const float d = 1.0f;"), [])
        for name in "abc":
            self.assertEqual(shadowed(outer % f"const float {name} = 1.0f;"), [name])
        self.assertEqual(chained(outer % "fill(b, 0), fill(b, 1);"), ["fill(b, 0), fill(b, 1);"])
        self.assertEqual(chained(outer % "h<1, 2>(b, k);"), [])
        self.assertEqual(len(chained(outer % "if (k) b[0] = c, b[1] = c;")), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
