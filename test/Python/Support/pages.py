"""Runs the blocks of Python on a page of the documentation.

A block that starts with a prompt is a doctest. Any other block is executed. The blocks share their names, in order. If the
next block is marked `text`, it is the output. Its numbers may differ, because they are times.
"""
import contextlib
import doctest
import importlib.util
import io
import re

BLOCK = re.compile(r"^```python\n(.*?)^```$(?:(?:(?!^```).)*^```text\n(.*?)^```$)?", re.M | re.S)


def blocks(page):
    """Returns the blocks of Python of a page, each with the text that it prints or None."""
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def is_doctest(code):
    return code.startswith(">>>")


def _without_numbers(text):
    return re.sub(r"\d+(\.\d+)?", "0", " ".join(text.split()))


def _check_doctest(code, name, names):
    example = doctest.DocTestParser().get_doctest(code, names, name, name, 0)
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    result = runner.run(example, out=said.append, clear_globs=False)
    names.update(example.globs)  # the doctest had a copy
    assert result.failed == 0, "".join(said)
    return result.attempted


def run(page, executes=True, optional=()):
    """Runs the blocks of a page. Raises AssertionError if a block does not print what the page says.

    executes: execute the blocks without prompts; otherwise they are only compiled.
    optional: modules; a block without prompts that imports one is left out if there is no such module.

    Returns the names that the blocks define, the number of doctests and the number of blocks that were executed.
    """
    names, attempted, executed = {}, 0, 0
    for number, (code, wanted) in enumerate(blocks(page), 1):
        name = f"{page.name}, block {number}"
        if is_doctest(code):
            attempted += _check_doctest(code, name, names)
            continue
        made = compile(code, name, "exec")
        if not executes or any(module in code and not importlib.util.find_spec(module) for module in optional):
            continue
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(made, names)
        executed += 1
        if wanted:
            assert _without_numbers(said.getvalue()) == _without_numbers(wanted), f"{name} prints\n{said.getvalue()}"
    return names, attempted, executed
