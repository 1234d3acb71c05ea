# The GoogleTest executables, one lit test per GoogleTest case.
import os

import lit.formats

config.name = "MoA-Unit"
config.suffixes = []
config.test_exec_root = os.path.join(config.moa_binary_root, "test", "Unit")
config.test_source_root = config.test_exec_root
config.test_format = lit.formats.GoogleTest("bin", "Tests")
config.environment["MOA_SOURCE_ROOT"] = config.moa_source_root
for name in ("HOME", "OMP_NUM_THREADS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
