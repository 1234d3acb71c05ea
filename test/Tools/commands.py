# RUN: %python %s %moa_source_root README.md docs/Tools.md docs/Calling.md docs/Recipes.md docs/Accuracy/Guide.md
"""The commands that the pages print run as they stand, from the root of a checkout
whose build directory is fresh but for the programs."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

root, pages = pathlib.Path(sys.argv[1]), sys.argv[2:]
binaries = pathlib.Path(os.environ["MOA_BINARY_ROOT"], "bin")

# Blocks of indented lines in which a tool of the project, the C compiler, or a
# Python program stands.
BLOCK = re.compile(r"(?:^    .*\n|^\n(?=    ))+", re.M)
COMMAND = re.compile(r"^(build/bin/|python3 - <<|cc |nvcc )", re.M)


# What only the CUDA toolkit has, which build.sh does not install.
TOOLKIT = re.compile(r"^nvcc |-lcuda\b|--target=cubin", re.M)
# The Python of build.sh with packages of PyPI, and what only it has.
VENV = pathlib.Path(os.environ["MOA_BINARY_ROOT"], "venv", "bin")
PACKAGES = re.compile(r"^import .*\btvm_ffi\b", re.M)


def has_packages():
    """Whether that Python is there and has tvm-ffi."""
    try:
        return subprocess.run([VENV / "python", "-c", "import numpy, tvm_ffi"], stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


def commands(page):
    text = (root / page).read_text(encoding="utf-8")
    blocks = (re.sub(r"^    ", "", block, flags=re.M) for block in BLOCK.findall(text))
    found = [block for block in blocks if COMMAND.search(block)]
    assert len(found) >= 3, (page, found)
    for pattern, is_there, what in ((TOOLKIT, shutil.which("nvcc"), "CUDA toolkit"),
                                    (PACKAGES, has_packages(), "apache-tvm-ffi in build/venv")):
        left_out = [] if is_there else [block for block in found if pattern.search(block)]
        if not is_there:
            print(f"{page}: no {what}, {len(left_out)} of {len(found)} blocks are left out")
        found = [block for block in found if block not in left_out]
    return found


failed = []
for page in pages:
    found = commands(page)
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        (directory / "examples").symlink_to(root / "examples")
        (directory / "test").symlink_to(root / "test")
        (directory / "include").symlink_to(root / "include")
        (directory / "build").mkdir()
        (directory / "build" / "bin").symlink_to(binaries)
        (directory / "build" / "lib").symlink_to(binaries.parent / "lib")
        # `python3` is the interpreter of the tests, which has NumPy.
        (directory / "path").mkdir()
        (directory / "path" / "python3").symlink_to(sys.executable)
        environment = {**os.environ,
                       "PATH": f"{directory / 'path'}:{os.environ['PATH']}"}
        packages = {**environment, "PATH": f"{VENV}:{environment['PATH']}"}
        for block in found:
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", block],
                                  cwd=directory, env=packages if PACKAGES.search(block) else environment,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  encoding="utf-8")
            if done.returncode:
                failed.append(f"{page}:\n{block}\n{done.stdout}")
        left = {path.name for path in directory.iterdir()}
        assert left == {"build", "examples", "include", "path", "test"}, left
print("\n".join(failed))
sys.exit(bool(failed))
