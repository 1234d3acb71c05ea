# RUN: %python %s
"""Every phrase of the messages to users has a test that shows it.

A phrase is a string literal of at least two words in the sources of the dialects,
of the front end, of the validation, of the pipelines, of the library and of the tools,
less the texts of --help: messages are made of such literals and of values. A phrase
without a test, in the tests of its area, is listed, and fails.
"""
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(os.environ.get("MOA_SOURCE_ROOT",
                                   pathlib.Path(__file__).parents[2]))
# Where messages come from, and where their tests are.
AREAS = {
    "dialects": ["Dialects", "Schedule", "Accuracy", "Conversion", "Interpreter", "Unit"],
    "lib/Frontend": ["Frontend", "Unit/Frontend", "Tools"],
    "lib/CAPI": ["Integration/CAPI"],
    "lib/Compiler": ["Tools", "Unit/Compiler", "Integration/CPU", "Target"],
    "lib/Validation": ["Validation", "Unit/Validation", "Unit/Conversion", "Frontend", "Conversion",
                       "Families", "Tools"],
    "lib/Accuracy": ["Accuracy"],
    "lib/Pipelines": ["Tools", "Accuracy", "Conversion", "Schedule"],
    "tools": ["Tools", "Unit/Tools"],
}
SUFFIXES = {".mlir", ".moa", ".test", ".c", ".cpp", ".py", ".txt"}
# Guards that no input reaches, and why.
UNREACHED = {
    "a warp's registers hold different rows, columns or k in different operands":
        "layouts of equal extents whose warps start alike hold the same elements",
    "expected an array expression": "the parser and the resolver leave none of these",
    "the compiler failed by an exception": "the compiler throws no exception but those of memory",
    "the size of the workspace has no 64 bits": "an array of the call has no 64 bits then, and is refused",
    ": the input could not be read": "whatever ends the reading has said why",
    "the passes to": "whatever ends a pass has said why",
    "failed without a reason": "whatever ends a pass has said why",
    "the kernels do not link into one object": "names of entry points differ, others are internal",
    "no machine description fits the processor '": "the machine 'generic' fits every processor",
    "the kernel refused the call, code": "moa-run refuses before, with the files' names",
    "operands of": "shown where it takes more than two seconds",
    "conditioning of": "shown where it takes more than two seconds",
    "ties of": "shown where it takes more than two seconds",
    "range of": "shown where it takes more than two seconds",
    "running the interpreter": "shown where it takes more than two seconds",
    "the digits of": "digits of sizes from 1 are a bijection, and the attribute has no others",
    "are in no bijection with its indices":
        "digits of sizes from 1 are a bijection, and the attribute has no others",
    "(anonymous namespace)::SimplifyTrivialLoops": "the name of a pattern",
    "Every pass from moa to": "what --help shows",
    ", with the contracts between the levels": "what --help shows",
    "Every pass from moa to device, with the contracts between the levels": "what --help shows",
    "running the interpreter for": "shown where it takes more than two seconds",
    "preparing the arrays": "shown where it takes more than two seconds",
    "magnitudes of": "shown where it takes more than two seconds",
}
# What --help shows of an option.
TEXT = r'(?:"(?:[^"\\\n]|\\.)*"\s*)+'
HELP = (r'cl::(?:value_)?desc\(\s*' + TEXT + r'\)|(?:OptionCategory category|OptionSet optionSet)\(' + TEXT + r'\)|'
        r'ParseCommandLineOptions\(\s*argc, argv,\s*' + TEXT + r'\)|'
        r'registerAndParseCLIOptions\(argc, argv,\s*' + TEXT)
# What printf makes of a number.
FORMAT = re.compile(r"%[-+.\d]*(?:l|z)*[a-z]")
TOKEN = re.compile(r'R"\w*\(.*?\)\w*"|"(?:[^"\\\n]|\\.)*"|//[^\n]*|\'(?:[^\'\\\n]|\\.)\'', re.S)
PHRASE = re.compile(r"\w[\w']*[,;:]? +\S")


def unescape(literal):
    return literal[1:-1].replace(r"\"", '"').replace(r"\n", "\n").replace("\\\\", "\\")


def literals(text):
    """(line, text) of string literals; those that only space separates are one."""
    result, end = [], None
    for match in TOKEN.finditer(text):
        token = match.group(0)
        if not token.startswith('"'):
            continue
        value = unescape(token)
        between = text[end:match.start()] if end is not None else "x"
        if result and not between.strip():
            result[-1][1] += value
        else:
            result.append([text.count("\n", 0, match.start()) + 1, value])
        end = match.end()
    return result


def phrases(path):
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"^#include.*$|\bassert\([^;]*;|llvm_unreachable\([^;]*;|" + HELP,
                  lambda m: "\n" * m.group(0).count("\n"), text, flags=re.M)
    for line, literal in literals(text):
        if PHRASE.search(literal.strip()):
            yield line, literal.strip()


def shown(folders):
    texts = []
    for folder in folders:
        for path in sorted((ROOT / "test" / folder).rglob("*")):
            if path.suffix in SUFFIXES and path.name != pathlib.Path(__file__).name:
                text = path.read_text(encoding="utf-8")
                texts.append(text)
                if path.suffix in {".c", ".cpp", ".py"}:
                    texts += [literal for _, literal in literals(text)]
    return "\n".join(texts)


def is_shown(phrase, tests):
    if not FORMAT.search(phrase):
        return phrase in tests
    pattern = r"\S+".join(re.escape(part) for part in FORMAT.split(phrase))
    return re.search(pattern, tests) is not None


def main():
    missing, count = [], 0
    for area, folders in AREAS.items():
        tests = shown(folders)
        for path in sorted(p for p in (ROOT / area).rglob("*") if p.suffix in {".cpp", ".h"}):
            if path.name.startswith("RoundingError"):  # reasons in a report, not messages
                continue
            for line, phrase in phrases(path):
                count += 1
                if phrase not in UNREACHED and not is_shown(phrase, tests):
                    missing.append(f"{path.relative_to(ROOT)}:{line}: no test shows '{phrase}'")
    if count < 300:
        missing.append(f"only {count} phrases were found")
    print("\n".join(missing) or f"{count} phrases of messages have a test")
    return bool(missing)


if __name__ == "__main__":
    sys.exit(main())
