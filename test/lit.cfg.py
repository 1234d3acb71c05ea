# The test suite of the compiler: shell tests over .mlir, .moa and .py files.
import glob
import os
import platform
import re
import shutil
import subprocess

import lit.formats

config.name = "MoA"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".moa", ".py", ".test"]
config.excludes = ["Inputs", "Support", "lit.cfg.py", "summary.py", "CMakeLists.txt"]
config.test_source_root = os.path.join(config.moa_source_root, "test")
config.test_exec_root = os.path.join(config.moa_binary_root, "test")

moa_tools_dir = os.path.join(config.moa_binary_root, "bin")
path = os.pathsep.join(
    [moa_tools_dir, config.llvm_tools_dir, os.environ.get("PATH", "")]
)
config.environment["PATH"] = path
config.environment["PYTHONPATH"] = os.path.join(
    config.test_source_root, "Integration", "Support"
)
config.environment["PYTHONDONTWRITEBYTECODE"] = "1"
config.environment["MOA_SOURCE_ROOT"] = config.moa_source_root
config.environment["MOA_BINARY_ROOT"] = config.moa_binary_root
config.environment["CC"] = config.c_compiler
config.environment["CXX"] = config.cxx_compiler
for name in ("OMP_NUM_THREADS", "HOME", "CCACHE_DIR"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
# Threads that wait leave the cores to the tests that run at the same time.
config.environment["KMP_BLOCKTIME"] = "0"
config.environment["OMP_WAIT_POLICY"] = "passive"
config.environment["OPENBLAS_NUM_THREADS"] = "1"

# The Python of build.sh with packages of PyPI.
venv_python = os.path.join(config.moa_binary_root, "venv", "bin", "python")

config.substitutions += [
    ("%venv_python", venv_python),
    # Python with the package of the build, and the helpers of the tests of moa.torch.
    ("%torch_python", "env PYTHONPATH=" + os.pathsep.join(
        [os.path.join(config.moa_binary_root, "python"),
         os.path.join(config.test_source_root, "Python", "Torch", "Support")]) + " " + venv_python),
    # The Python package of the build.
    ("%moa_python", f"env PYTHONPATH={os.path.join(config.moa_binary_root, 'python')} {venv_python}"),
    ("%python", config.python_executable),
    ("%examples", os.path.join(config.moa_source_root, "examples")),
    ("%moa_source_root", config.moa_source_root),
    ("%moa_binary_root", config.moa_binary_root),
    ("%cc", config.c_compiler),
    ("%cxx", config.cxx_compiler),
]


def has_gpu():
    """Whether a CUDA device answers on this machine."""
    if not shutil.which("nvidia-smi"):
        return False
    answer = subprocess.run(
        ["nvidia-smi", "-L"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    return answer.returncode == 0 and b"GPU" in answer.stdout


def find_wheel():
    """The wheel that MOA_WHEEL names, else the one of this version in dist; or an empty text."""
    if "MOA_WHEEL" in os.environ:
        return os.environ["MOA_WHEEL"]
    with open(os.path.join(config.moa_source_root, "CMakeLists.txt"), encoding="utf-8") as file:
        version = re.search(r"project\(MoA VERSION ([0-9.]+)", file.read())[1]
    made = glob.glob(os.path.join(config.moa_source_root, "dist", f"moa-{version}-*.whl"))
    return max(made, key=os.path.getmtime, default="")


def has_modules(*names):
    """Whether the Python of packages has these modules. They are not imported, because that may take seconds."""
    script = "import sys, importlib.util; sys.exit(not all(map(importlib.util.find_spec, sys.argv[1:])))"
    try:
        return subprocess.run([venv_python, "-c", script, *names], stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


def has_package():
    """Whether the Python package is built, and the Python of packages has NumPy."""
    package = os.path.join(config.moa_binary_root, "python", "moa", "_native.abi3.so")
    try:
        return os.path.exists(package) and subprocess.run([venv_python, "-c", "import numpy"],
                                                          stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


# The architecture, x86_64 for one, is a feature of its own.
config.available_features.add(platform.machine())
# What a test may ask for by `REQUIRES:`; a test without it is reported as skipped.
if has_gpu():
    config.available_features.add("gpu")
if shutil.which("nvcc"):
    config.available_features.add("nvcc")
if shutil.which("ptxas"):
    config.available_features.add("ptxas")
wheel = find_wheel()
config.substitutions.append(("%moa_wheel", wheel))
if wheel and has_modules("numpy"):
    config.available_features.add("wheel")
if has_modules("numpy", "tvm_ffi"):
    config.available_features.add("tvm-ffi")
if has_package() and has_modules("numpy", "torch"):
    config.available_features.add("torch")
    for feature, module in {"attn-gym": "attn_gym", "transformers": "transformers"}.items():
        if has_modules(module):
            config.available_features.add(feature)
for feature, modules in {"jax": ["jax"], "onnxruntime": ["onnxruntime", "onnx"]}.items():
    if has_modules("numpy", *modules):
        config.available_features.add(feature)
if has_package():
    config.available_features.add("moa-python")
