#!/usr/bin/env python3
"""Reads lit's JSON results, lists the ten slowest tests, and ends with the line `N passed, N failed, N skipped`."""
import json
import sys

PASSED = {"PASS", "XFAIL", "FLAKYPASS"}
SKIPPED = {"UNSUPPORTED", "SKIPPED", "EXCLUDED"}
# What installs a feature that tests require.
PACKAGES = "MOA_TORCH=1 ./build.sh test, or: build/venv/bin/pip install -r test/Python/requirements-torch.txt"
REMEDIES = {"tvm-ffi": "python3 -m venv build/venv && build/venv/bin/pip install -r test/Python/requirements.txt",
            **dict.fromkeys(("torch", "attn-gym", "transformers", "jax", "onnxruntime"), PACKAGES),
            "wheel": "./build.sh wheel"}


def main(path):
    try:
        with open(path, encoding="utf-8") as file:
            tests = json.load(file)["tests"]
    except (OSError, ValueError, KeyError) as error:
        print(f"the test run left no results: {error}")
        print("0 passed, 1 failed, 0 skipped")
        return 1

    passed = [t for t in tests if t["code"] in PASSED]
    skipped = [t for t in tests if t["code"] in SKIPPED]
    failed = [t for t in tests if t["code"] not in PASSED | SKIPPED]
    for test in skipped:
        reason = test.get("output", "").strip().splitlines() or ["no reason given"]
        lines = dict.fromkeys(line for feature, line in REMEDIES.items() if feature in reason[0])
        remedy = "".join(f"; to install it: {line}" for line in lines)
        print(f"skipped: {test['name']}: {reason[0]}{remedy}")
    for test in failed:
        print(f"failed: {test['name']}")
    slowest = sorted(tests, key=lambda test: -(test.get("elapsed") or 0))[:10]
    for test in slowest:
        print(f"slow: {test.get('elapsed') or 0:.0f} s: {test['name']}")
    if not tests:
        print("no test was found")
    print(f"{len(passed)} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 1 if failed or not tests else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
