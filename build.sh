#!/usr/bin/env bash
# Does all the set-up and then one job:
#
#   ./build.sh demo    compile examples/gqa_causal.moa for this CPU, run it and check it
#   ./build.sh test    run every test; the last line is the count
#   ./build.sh build   only the set-up and the build
#   ./build.sh wheel   build the Python package with LLVM inside into ./dist; this compiles in
#                      ./build/wheel, with scikit-build-core and auditwheel of PyPI in ./build/venv
#
# The set-up installs the missing Debian packages (as root on Debian 12; anywhere
# else it names them and stops), configures and builds in ./build. `test` also puts
# NumPy, ml_dtypes and apache-tvm-ffi of PyPI into ./build/venv, and skips their
# tests if it cannot. `MOA_TORCH=1 ./build.sh test` adds PyTorch, transformers, JAX
# and ONNX Runtime (5.5 GB), for the tests of moa.torch. A second run finds
# everything in place and rebuilds nothing.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=${MOA_BUILD_DIR:-$root/build}

# package | a file or command that shows it on a system without dpkg
packages='
cmake              | cmake
ninja-build        | ninja
g++                | g++
ccache             | ccache
mold               | mold
python3            | python3
python3-dev        | python3-config
python3-numpy      | /usr/lib/python3/dist-packages/numpy
python3-venv       | python3
llvm-22-dev        | /usr/lib/llvm-22/lib/cmake/llvm/LLVMConfig.cmake
llvm-22-tools      | /usr/lib/llvm-22/bin/FileCheck
libmlir-22-dev     | /usr/lib/llvm-22/lib/cmake/mlir/MLIRConfig.cmake
mlir-22-tools      | /usr/lib/llvm-22/bin/mlir-tblgen
clang-22           | /usr/lib/llvm-22/bin/clang
clang-format-22    | /usr/bin/clang-format-22
libomp-22-dev      | /usr/lib/llvm-22/lib/libomp.so
libzstd-dev        | /usr/include/zstd.h
zlib1g-dev         | /usr/include/zlib.h
libfmt-dev         | /usr/include/fmt/format.h
libgtest-dev       | /usr/include/gtest/gtest.h
libgmock-dev       | /usr/include/gmock/gmock.h
nlohmann-json3-dev | /usr/include/nlohmann/json.hpp
libbenchmark-dev   | /usr/include/benchmark/benchmark.h
libopenblas-dev    | /usr/include/x86_64-linux-gnu/cblas.h
'

say() { printf '%s\n' "$*"; }
die() { printf 'build.sh: %s\n' "$*" >&2; exit 1; }

# Whether one row of the table is there: dpkg knows, else the file or command shows.
is_installed() {
  local package=$1 probe=$2
  if command -v dpkg-query >/dev/null 2>&1; then
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ]
  elif [ "${probe#/}" != "$probe" ]; then
    [ -e "$probe" ]
  else
    command -v "$probe" >/dev/null 2>&1
  fi
}

missing_packages() {
  local package probe
  while IFS='|' read -r package probe; do
    package=${package//[[:space:]]/}
    probe=${probe//[[:space:]]/}
    [ -n "$package" ] || continue
    is_installed "$package" "$probe" || printf '%s ' "$package"
  done <<<"$packages"
}

is_debian_12() {
  [ -r /etc/os-release ] && (
    . /etc/os-release
    [ "${ID:-}" = debian ] && [ "${VERSION_ID:-}" = 12 ]
  )
}

install_packages() {
  local missing
  missing=$(missing_packages)
  [ -n "$missing" ] || return 0
  if ! is_debian_12; then
    say "Missing packages (by their names in Debian 12): $missing"
    die "only Debian 12 is set up by itself; install them, then run this again"
  fi
  if [ "$(id -u)" != 0 ]; then
    say "Missing packages: $missing"
    die "run as root, or: apt-get install --no-install-recommends $missing"
  fi
  say "Installing: $missing"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -q || die "apt-get update failed"
  # shellcheck disable=SC2086
  apt-get install -q -y --no-install-recommends $missing ||
    die "could not install: $missing (LLVM 22 comes from bookworm-security)"
}

# Builds the targets that are named, or everything.
configure_and_build() {
  export CCACHE_BASEDIR=$root
  if [ ! -f "$build/build.ninja" ]; then
    say "Configuring in $build"
    (cd "$root" && cmake --preset default -B "$build") || return 1
  fi
  say "Building"
  NINJA_STATUS='[%f/%t, %es] ' ninja -C "$build" "$@"
}

# Makes the Python of the tests of tvm-ffi and of the Python package, with packages of PyPI; with
# MOA_TORCH=1 also those of moa.torch. Tests whose packages are missing are skipped.
make_venv() {
  local venv=$build/venv log=$build/venv.log list=$root/test/Python/requirements.txt size=
  if [ "${MOA_TORCH:-0}" = 1 ]; then
    list=$root/test/Python/requirements-torch.txt size=' (5.5 GB with PyTorch, kept between runs)'
  fi
  say "Installing the packages of ${list#"$root"/} into $venv$size"
  { [ -x "$venv/bin/pip" ] || "$python" -m venv "$venv"; } >"$log" 2>&1 &&
    "$venv/bin/pip" install --quiet --retries 1 -r "$list" >>"$log" 2>&1 && return
  say "pip failed ($log); tests whose packages are missing are skipped. To install by hand:"
  say "  $python -m venv $venv && $venv/bin/pip install -r $list"
}

# Builds the wheel, and gives it the platform tag of the libraries that its files need.
make_wheel() {
  local venv=$build/venv log=$build/wheel.log made=$build/wheel-made tools='scikit-build-core auditwheel wheel numpy' tag wheel
  mkdir -p "$build"
  if ! "$venv/bin/python" -c 'import scikit_build_core, auditwheel, wheel, numpy' 2>/dev/null; then
    say "Installing $tools into $venv"
    # shellcheck disable=SC2086
    { "$python" -m venv "$venv" && "$venv/bin/pip" install --quiet --retries 1 $tools; } >"$log" 2>&1 ||
      die "pip could not install $tools ($log); without network, name a folder of their wheels in PIP_FIND_LINKS and set PIP_NO_INDEX=1"
  fi
  say "Building the wheel in $build/wheel; the first time compiles everything"
  rm -rf "$made"
  CCACHE_BASEDIR=$root SKBUILD_BUILD_DIR=$build/wheel SKBUILD_CMAKE_ARGS=--preset=wheel \
    "$venv/bin/pip" wheel -v --no-deps --no-build-isolation --no-index --wheel-dir "$made" "$root" >"$log" 2>&1 ||
    { tail -n 40 "$log" >&2; die "the wheel could not be built; $log has the whole output"; }
  wheel=$(echo "$made"/moa-*.whl)
  tag=$("$venv/bin/auditwheel" show "$wheel" 2>>"$log" | tr '\n' ' ' |
    sed -n 's/.*following platform tag: *"\([a-z0-9_]*\)".*/\1/p')
  [ "${tag#manylinux}" != "$tag" ] ||
    die "$wheel needs libraries that manylinux does not allow; see: $venv/bin/auditwheel show $wheel"
  "$venv/bin/wheel" tags --remove --platform-tag "$tag" "$wheel" >/dev/null
  mkdir -p "$root/dist"
  mv -f "$made"/moa-*.whl "$root/dist/"
  ls -l "$root"/dist/moa-*-"$tag".whl
}

run_demo() {
  local spec=$root/examples/gqa_causal.moa type
  say; say "== The specification: examples/gqa_causal.moa"
  cat "$spec"
  say; say "== Its normal forms"
  "$build/bin/moa-codegen" "$spec" --emit=math
  for type in bf16 f32; do
    say; say "== On this CPU: B=1 H=8 G=2 N=M=4096 D=128, $type, sampled rows against the interpreter"
    "$build/bin/moa-run" "$spec" --set "T=$type" --set D=128 --random 1 \
      B=1 H=8 G=2 N=4096 M=4096 scale=0.08838834764831845 --check
  done
}

run_tests() {
  local results=$build/test-results.json status=0
  rm -f "$results"
  "$python" "$lit" -v -o "$results" "$build/test" || status=$?
  "$python" "$root/test/summary.py" "$results" || status=1
  return "$status"
}

usage() { sed -n '2,15s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }

job=${1:-help}
case $job in
  demo | test | build | wheel) [ $# = 1 ] || { usage >&2; exit 2; } ;;
  help | -h | --help) usage; exit 0 ;;
  *) usage >&2; exit 2 ;;
esac

install_packages
# Debian's own Python and lit, whatever else stands first in PATH.
python=/usr/bin/python3
[ -x "$python" ] || python=python3
lit=/usr/lib/llvm-22/bin/lit

if [ "$job" = wheel ]; then
  make_wheel
  exit
fi
targets=()
[ "$job" != demo ] || targets=(moa-codegen moa-run)
if ! configure_and_build "${targets[@]}"; then
  [ "$job" != test ] || printf 'the build failed, no test was run\n0 passed, 1 failed, 0 skipped\n'
  exit 1
fi
case $job in
  demo) run_demo ;;
  test) make_venv; run_tests ;;
esac
