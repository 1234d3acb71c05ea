# RUN: %python %s %moa_source_root
"""Every C and C++ file is formatted as .clang-format at the root says (clang-format of LLVM 22)."""
import pathlib
import shutil
import subprocess
import sys

root = pathlib.Path(sys.argv[1]).resolve()
program = shutil.which("clang-format-22") or shutil.which("clang-format", path="/usr/lib/llvm-22/bin")
assert program, "clang-format-22 is missing: apt-get install clang-format-22"
files = sorted(str(path) for folder in ("lib", "dialects", "tools", "include", "test", "benchmarks", "examples")
               for path in (root / folder).rglob("*") if path.suffix in (".cpp", ".h", ".c"))
assert len(files) > 500, len(files)
wrong = []
for start in range(0, len(files), 100):
    done = subprocess.run([program, "--dry-run", "-Werror", "--style=file", *files[start:start + 100]],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8")
    if done.returncode:
        wrong.append(done.stdout)
print("".join(wrong) or f"{len(files)} files are formatted")
if wrong:
    print(f"run: {program} -i FILE")
sys.exit(bool(wrong))
