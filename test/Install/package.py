# RUN: %python %s %moa_source_root %moa_binary_root
"""The installed package: complete, relocatable, and enough for programs that embed the
compiler, in C++ and in C, and for one that links an emitted kernel; what is missing is named."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

source, binary = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
LINKER = ["-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=mold"] if shutil.which("mold") else []
OUTPUT = """\
weights(x : f32[N, M], scale : f32) -> (y : f32[N, M])
0.0159 0.1173 0.8668
0.8668 0.1173 0.0159
line 3, column 17: '+' combines shapes [N, M] and [M, N], but only equal shapes and \
scalars combine; axis 0 is N on one side and M on the other; 'transpose(bias)' has the shape of the first
wrote made.cu
"""


def run(*command, cwd, fails=False):
    """Standard output of a command; both streams of one that has to fail."""
    done = subprocess.run([str(word) for word in command], cwd=cwd, encoding="utf-8",
                          stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT if fails else subprocess.PIPE)
    if (done.returncode != 0) != fails:
        sys.exit(f"{' '.join(map(str, command))}\nended with {done.returncode}\n"
                 f"{done.stdout}{done.stderr or ''}")
    return done.stdout


def install(work):
    """The package in a place it was not installed to: it was moved there."""
    run("cmake", "--install", binary, "--prefix", work / "installed", cwd=work)
    return (work / "installed").rename(work / "prefix")


def check_files(prefix):
    headers = {path.relative_to(source / "include")
               for path in (source / "include").rglob("*.h")}
    found = {path.relative_to(prefix / "include")
             for path in (prefix / "include").rglob("*") if path.is_file()}
    assert found == headers, f"headers: {sorted(found ^ headers)} are on one side only"
    for tool in ("moa-codegen", "moa-opt", "moa-run"):
        assert (prefix / "bin" / tool).is_file(), f"no bin/{tool}"
    for name in ("LICENSE", "NOTICE"):
        assert list(prefix.glob(f"share/doc/*/{name}")), f"no {name}"
    # Nothing may lead back to where it was built.
    for path in filter(pathlib.Path.is_file, prefix.rglob("*")):
        for tree in (source, binary):
            assert os.fsencode(tree) + b"/" not in path.read_bytes(), f"{path} names {tree}"


def configure(project, build, prefix, *flags, fails=False):
    return run("cmake", "-G", "Ninja", "-S", project, "-B", build,
               f"-DCMAKE_PREFIX_PATH={prefix}", *LINKER, *flags, cwd=build.parent, fails=fails)


def check_embedding(work, prefix):
    """examples/embed-cpp, copied out of the repository."""
    project = shutil.copytree(source / "examples" / "embed-cpp", work / "embed")
    configure(project, work / "embed-build", prefix)
    run("cmake", "--build", work / "embed-build", cwd=work)
    printed = run(work / "embed-build" / "embed", "made.cu", cwd=work)
    assert printed == OUTPUT, f"embed printed\n{printed}"
    # The file it wrote is what the installed tool writes of the same text.
    text = re.search(r'R"\((.*?)\)"', (project / "main.cpp").read_text(), re.S)[1]
    (work / "weights.moa").write_text(text)
    run(prefix / "bin" / "moa-codegen", "weights.moa", "--target=cuda", "-o", "tool.cu", cwd=work)
    made = (work / "made.cu").read_text()
    assert "__global__" in made and made == (work / "tool.cu").read_text(), made


def check_linking(work, prefix):
    """The project of docs/Calling.md: a C program and a kernel that its build compiles."""
    page = (source / "docs" / "Calling.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```cmake\n(.*?)^```", page, re.M | re.S)
    assert len(blocks) == 1, f"{len(blocks)} CMake projects in docs/Calling.md"
    project = work / "caller"
    project.mkdir()
    (project / "CMakeLists.txt").write_text(blocks[0])
    shutil.copy(source / "examples" / "gqa_causal.moa", project)
    shutil.copy(source / "examples" / "c" / "call_gqa.c", project)
    configure(project, work / "caller-build", prefix)
    run("cmake", "--build", work / "caller-build", cwd=work)
    here = run(work / "caller-build" / "call_gqa", cwd=work)
    assert here.strip(), "call_gqa printed nothing"


def check_c(work, prefix):
    """The program of docs/Calling.md that embeds the compiler, in a project that knows C alone: against
    the whole package, and against its component C, for which CMake may not find LLVM."""
    page = (source / "docs" / "Calling.md").read_text(encoding="utf-8")
    blocks = [block for block in re.findall(r"^```c\n(.*?)^```", page, re.M | re.S) if "moa-c/moa.h" in block]
    assert len(blocks) == 1, f"{len(blocks)} programs in docs/Calling.md include moa-c/moa.h"
    project = work / "client"
    project.mkdir()
    (project / "main.c").write_text(blocks[0], encoding="utf-8")
    (project / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(Client LANGUAGES C)\n"
        "find_package(MoA 0.1 REQUIRED COMPONENTS C)\n"
        "add_executable(client main.c)\ntarget_link_libraries(client PRIVATE MoA::C)\n")
    alone = work / "alone"
    run("cmake", "--install", binary, "--prefix", alone, "--component", "C", cwd=work)
    headers = {str(path.relative_to(alone / "include")) for path in (alone / "include").rglob("*.h")}
    assert headers == {"moa-c/moa.h", "moa-c/runtime.h", "moa/DLPack.h"}, headers
    for name, place in (("all", prefix), ("alone", alone.rename(work / "moved"))):
        build = work / f"client-{name}"
        configure(project, build, place, "-DCMAKE_DISABLE_FIND_PACKAGE_MLIR=ON")
        run("cmake", "--build", build, cwd=work)
        printed = run(build / "client", cwd=work)
        assert printed == "0.0900 0.2447 0.6652\n", printed
    (project / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(Client LANGUAGES C)\nfind_package(MoA REQUIRED)\n")
    text = " ".join(configure(project, work / "client-fails", work / "moved", fails=True).split())
    assert "the component 'Compiler' of MoA is not installed" in text, text


def check_messages(work, prefix):
    """What a package cannot give is said by find_package, in words that help."""
    def answer(call, *flags):
        project = pathlib.Path(tempfile.mkdtemp(dir=work))
        (project / "CMakeLists.txt").write_text(
            f"cmake_minimum_required(VERSION 3.25)\nproject(P LANGUAGES C CXX)\n{call}\n")
        text = configure(project, project / "build", prefix, *flags, fails=True)
        return " ".join(text.split())

    text = answer("find_package(MoA 99 REQUIRED)")
    assert 'requested version "99"' in text and "version: 0." in text, text
    text = answer("find_package(MoA REQUIRED COMPONENTS Tools Python)")
    assert "the component 'Python' of MoA is not installed" in text, text
    text = answer('find_package(MoA)\nmessage(FATAL_ERROR "${MoA_NOT_FOUND_MESSAGE}")',
                  "-DCMAKE_DISABLE_FIND_PACKAGE_MLIR=ON")
    assert "dependency MLIR could not be found" in text, text
    archive = next(prefix.glob("lib*/**/libMoASchedule.a"))
    archive.rename(archive.with_suffix(".away"))
    text = answer("find_package(MoA REQUIRED)")
    assert f'"{archive}" but this file does not exist' in text, text
    archive.with_suffix(".away").rename(archive)


with tempfile.TemporaryDirectory() as name:
    work = pathlib.Path(name).resolve()
    prefix = install(work)
    check_files(prefix)
    check_embedding(work, prefix)
    check_linking(work, prefix)
    check_c(work, prefix)
    check_messages(work, prefix)
