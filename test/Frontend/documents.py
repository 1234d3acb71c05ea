# RUN: %python %s %examples %moa_source_root/docs/Language.md
"""Every example and every `moa` block of the language's page elaborates."""
import pathlib
import re
import subprocess
import sys
import tempfile

examples, page = map(pathlib.Path, sys.argv[1:])
texts = {path.name: path.read_text(encoding="utf-8") for path in sorted(examples.glob("*.moa"))}
blocks = re.findall(r"^```moa\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
texts.update({f"block{k}.moa": block for k, block in enumerate(blocks)})
assert len(texts) - len(blocks) >= 11 and len(blocks) >= 5, sorted(texts)

failed = []
for name, text in texts.items():
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory, name)
        path.write_text(text, encoding="utf-8")
        done = subprocess.run(["moa-opt", str(path)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, encoding="utf-8")
        if done.returncode or done.stderr or "moa.kernel" not in done.stdout:
            failed.append(f"{name}:\n{done.stderr}")
print("\n".join(failed))
sys.exit(bool(failed))
