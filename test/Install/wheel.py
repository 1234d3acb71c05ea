# REQUIRES: wheel
# RUN: %venv_python %s %moa_source_root %moa_wheel
"""The wheel that `./build.sh wheel` made: its tag, files, sizes, licences and symbols, and its work where only NumPy
is installed, in a root folder with Python alone if this test may make one."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

source, wheel = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
CLIENT = source / "test" / "Install" / "Inputs" / "wheel_client.py"
VERSION = re.search(r"project\(MoA VERSION ([0-9.]+)", (source / "CMakeLists.txt").read_text())[1]
LIBRARIES = {"libmoa-c.so", "libmoa-runtime.so", "libomp.so.5"}
TOOLS = {"moa-codegen", "moa-opt", "moa-run"}
# Of the libraries that every manylinux system has, those that compilers add.
ALLOWED = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libgcc_s.so.1",
           "ld-linux-x86-64.so.2", "linux-vdso.so.1"}
MEGABYTE = 1_000_000


def run(*command, env=None):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          encoding="utf-8", env=env)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\nended with {done.returncode}\n{done.stdout}")
    return done.stdout


def check_archive():
    """Returns the version of glibc that the tag names."""
    tag = re.fullmatch(rf"moa-{re.escape(VERSION)}-cp310-abi3-manylinux_2_(\d+)_x86_64\.whl", wheel.name)
    assert tag, f"{wheel.name} has another version or tag"
    assert wheel.stat().st_size <= 150 * MEGABYTE, wheel.stat().st_size
    with zipfile.ZipFile(wheel) as archive:
        entries = {entry.filename: entry.file_size for entry in archive.infolist()}
        metadata = f"moa-{VERSION}.dist-info"
        assert f"Tag: cp310-abi3-manylinux_2_{tag[1]}_x86_64\n" in archive.read(f"{metadata}/WHEEL").decode()
        assert "Requires-Python: >=3.10\n" in archive.read(f"{metadata}/METADATA").decode()
    assert sum(entries.values()) <= 250 * MEGABYTE, sum(entries.values())
    for licence in ("LICENSE", "NOTICE", "licenses/third-party.txt"):
        assert f"{metadata}/licenses/{licence}" in entries, f"no {licence}"
    found = {name.removeprefix("moa/_lib/") for name in entries if name.startswith("moa/_lib/")}
    assert found == LIBRARIES | TOOLS, found
    megabytes = [size / MEGABYTE for size in (wheel.stat().st_size, sum(entries.values()))]
    print("{}: {:.1f} MB, installed {:.1f} MB".format(wheel.name, *megabytes))
    return int(tag[1])


def check_files(package, glibc):
    """Each file needs libraries of manylinux and of the wheel, no glibc newer than the tag, and no folder of this
    machine."""
    binaries = [path for path in package.rglob("*") if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]
    assert len(binaries) >= len(LIBRARIES | TOOLS), binaries
    for path in binaries:
        for line in run("ldd", path, env={"PATH": os.defpath}).splitlines():
            name, _, place = line.strip().partition(" => ")
            name = name.split()[0].rpartition("/")[2]
            inside = place.startswith(f"{path.parent}/")
            assert inside if name in LIBRARIES else name in ALLOWED, f"{path.name} needs {name}: {line}"
        needed = re.findall(r"GLIBC_2\.(\d+)", run("llvm-readelf", "--version-info", path))
        assert max(map(int, needed)) <= glibc, f"{path.name} needs glibc 2.{max(map(int, needed))}"
        paths = re.findall(r"R(?:UN)?PATH\).*\[(.*)\]", run("llvm-readelf", "-d", path))
        assert paths in ([], ["$ORIGIN"]), f"{path.name} looks for libraries in {paths}"
        assert os.fsencode(source) + b"/" not in path.read_bytes(), f"{path.name} names {source}"
    # C++ of another library never meets that of libmoa-c.so.
    for name in ("libmoa-c.so", "libmoa-runtime.so"):
        exported = run("llvm-nm", "-D", "--defined-only", "-j", package / "_lib" / name).split()
        assert exported and all(symbol.startswith("moa_") for symbol in exported), name


def make_environment(work):
    """Returns the Python of a new virtual environment with the wheel and NumPy, which is copied from this one."""
    run(sys.executable, "-m", "venv", work / "venv")
    python = work / "venv" / "bin" / "python"
    packages = pathlib.Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    for folder in pathlib.Path(sysconfig.get_path("purelib")).glob("numpy*"):
        shutil.copytree(folder, packages / folder.name)
    run(python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", wheel)
    return python, packages


def copy_into(root, *paths):
    for path in map(os.path.abspath, paths):
        target = root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if os.path.isdir(path):
            shutil.copytree(path, target, dirs_exist_ok=True, symlinks=True,
                            ignore=shutil.ignore_patterns("__pycache__", "test", "site-packages", "dist-packages"))
        elif not target.exists():
            shutil.copy(path, target)


def make_root(root, python, packages):
    """Fills a root folder with Python, its libraries, NumPy and the wheel."""
    library = sysconfig.get_path("stdlib")
    copy_into(root, library, os.path.realpath(python))
    for folder in packages.iterdir():
        if folder.name.startswith(("numpy", "moa")):
            shutil.copytree(folder, root / "packages" / folder.name)
    binaries = [os.path.realpath(python), *pathlib.Path(library).rglob("*.so"), *(packages.glob("numpy*/**/*.so*"))]
    for line in run("ldd", *binaries).splitlines():
        # The folders are links in some systems: libraries are copied to the path that programs name.
        place = re.search(r"(/\S+) \(0x", line)
        if place and not place[1].startswith(str(packages)):
            copy_into(root, place[1])
    for folder in ("tmp", "proc", "dev/shm"):
        (root / folder).mkdir(parents=True)
    (root / "dev" / "null").touch()
    assert not list(root.rglob("libLLVM*")) and not list(root.rglob("libMLIR*"))


def check_empty_root(work, python, packages):
    """Runs the client where no other file of this machine can be seen."""
    unshare = ["unshare", "--mount", "--pid", "--fork", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    if subprocess.run([*unshare, "true"], stderr=subprocess.DEVNULL).returncode:
        print("skipped: the run in an empty root, because this user may not make one")
        return
    root = work / "root"
    make_root(root, python, packages)
    copy_into(root, source / "examples" / "sdpa.moa", CLIENT)
    script = 'mount -t proc proc "$1/proc" || exit 1; shift; exec "$@"'
    chroot = shutil.which("chroot", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    print(run(*unshare, "sh", "-c", script, "sh", root, chroot, root, os.path.realpath(python), CLIENT,
              source / "examples" / "sdpa.moa", VERSION,
              env={"PATH": os.environ["PATH"], "PYTHONPATH": "/packages", "PYTHONDONTWRITEBYTECODE": "1",
                   "MOA_CACHE": "0"}), end="")


with tempfile.TemporaryDirectory() as name:
    work = pathlib.Path(name).resolve()
    glibc = check_archive()
    python, packages = make_environment(work)
    check_files(packages / "moa", glibc)
    # Neither a tool nor a library of this machine is found, from any current folder.
    os.chdir(work)
    client = [python, CLIENT, source / "examples" / "sdpa.moa", VERSION]
    alone = {"PATH": "", "LD_LIBRARY_PATH": "", "MOA_CACHE": "0"}
    print(run(*client, env=alone), end="")
    # Intel's OpenMP has another name and is otherwise like LLVM's.
    other = work / "libiomp5.so"
    other.write_bytes((packages / "moa" / "_lib" / "libomp.so.5").read_bytes().replace(b"libomp.so.5", b"libiomp5.so"))
    print(run(*client, other, env=alone), end="")
    check_empty_root(work, python, packages)
