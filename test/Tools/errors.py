# RUN: %python %s
"""What the tools say to flags and files that they cannot use: one message with the
values and what to do, the exit status 1, and nothing written."""
import os
import tempfile
import unittest

import numpy as np

import moa_testing as mt

SPEC = """kernel k[N; D = 4](x : f32[N, D], a : f32) -> y : f32[N, D] { y = a * x }
"""
TWO = SPEC + "kernel l[N](x : f32[N]) -> y : f32 { y = +/ x }\n"
MIXED = """moa.kernel @a attributes {symbols = [], requires = [], arg_names = [],
    result_names = ["y"], result_types = [!moa.array<[], f32>]} {
  %c = moa.constant 1.0 : f32 -> !moa.array<[], f32>
  moa.return %c : !moa.array<[], f32>
}
dnf.kernel @b attributes {symbols = [], requires = [], arg_names = [],
    result_names = ["y"], result_types = [!moa.array<[], f32>]} {
  dnf.output 0 over [] in [] -> f32 {
    %c = arith.constant 1.0 : f32
    dnf.yield %c : f32
  }
}
"""


def doubled(times):
    """cat(s, s), `times` times over: an element of y is 2**times elements of x."""
    lines = [f"  s{k + 1} = cat(s{k}, s{k})" for k in range(times)]
    return "\n".join([f"kernel k[N](x : f32[N]) -> y : f32[{2**times}*N] {{", "  s0 = x", *lines,
                      f"  y = s{times}", "}"]) + "\n"


RUN = ("moa-run", "spec.moa", "--random", "1", "N=3", "a=2", "-o", "y=out")
CODE = ("moa-codegen", "spec.moa", "-o", "out")

# The command, and what its one message says.
CASES = [
    # moa-opt
    (("moa-opt", "none.mlir"), "moa-opt: error: cannot open input file 'none.mlir': No such file"),
    (("moa-opt", "spec.moa", "-o", "no/out"), "moa-opt: error: cannot open output file 'no/out'"),
    (("moa-opt", "spec.moa", "--set", "D"), "moa-opt: error: --set takes NAME=VALUE, but got 'D'"),
    (("moa-opt", "spec.moa", "--set", "D=3", "--set", "D=4"), "moa-opt: error: 'D' is set twice"),
    (("moa-opt", "spec.moa", "--set", "D=x"),
     "spec.moa:1:13: error: the setting of 'D' is to be an integer from 0 to 2^63 - 1, but is 'x'"),
    # moa-opt: levels
    (("moa-opt", "spec.moa", "--convert-dnf-to-onf"),
     "spec.moa:1:8: error: the pass 'convert-dnf-to-onf' works on kernels of the level dnf, but this "
     "one is of the level moa; run '--moa-to-dnf-pipeline' first"),
    (("moa-opt", "normal.mlir", "--convert-moa-to-dnf"),
     "normal.mlir:1:1: error: the pass 'convert-moa-to-dnf' works on kernels of the level moa, but "
     "this one is of the level dnf, which comes after it"),
    (("moa-opt", "normal.mlir", "--onf-lift"),
     "is of the level dnf; run '--convert-dnf-to-onf' first"),
    (("moa-opt", "normal.mlir", "--device-verify"), "of the level dnf, from which passes lead to it"),
    (("moa-opt", "spec.moa", "--moa-validate"), "works on kernels of the level dnf or onf, but"),
    # moa-codegen: flags
    (("moa-codegen",),
     "moa-codegen: error: there is no specification to compile; see moa-codegen --help"),
    (CODE + ("two.moa",), "moa-codegen: error: takes one specification, but got spec.moa, two.moa"),
    (("moa-codegen", "spec.moa"), "moa-codegen: error: nothing to write; give -o, --header, --manifest, --emit, "
     "--explain, --report or --schedule=print"),
    (CODE + ("--target=vax",), "there is no target 'vax'; there are cpu, cuda, ptx and cubin"),
    (CODE + ("--target=cuda", "--arch=sm_12"),
     "there is no GPU architecture 'sm_12'; there is sm_90a"),
    (CODE + ("--arch=sm_90a",), "--arch names a GPU; --target=cpu takes --mcpu"),
    (CODE + ("--target=ptx", "--mcpu=skylake"), "--mcpu names a CPU; --target=ptx takes --arch"),
    (CODE + ("--emit=soup",), "there is no level 'soup'; there are moa, dnf, onf, lifted, vector, "
     "llvm, device and math"),
    (CODE + ("--report=xml",), "--report is text or json, not 'xml'"),
    (CODE + ("--report=text", "--at", "N=-1"), "--at takes SYMBOL=VALUE, not 'N=-1'"),
    (CODE + ("--report=text", "--at", "N=x"),
     "--at takes SYMBOL=VALUE, not 'N=x'; a size is an integer from 0 to 2^63 - 1"),
    (CODE + ("--report=text", "--at", "N=1", "--at", "N=2"), "--at gives 'N' two sizes"),
    (CODE + ("--report=text", "--at", "Q=1"), "moa-codegen: error: no kernel has a symbol 'Q'"),
    (CODE + ("--set", "D"), "expects a setting NAME=VALUE, but got 'D'"),
    (CODE + ("--set", "D=3", "--set", "D=4"), "'D' is set twice"),
    (CODE + ("--set", "E=3"), "unknown setting 'E'; set one of N, D"),
    # Tolerances
    (CODE + ("--within", "y"), "moa-codegen: error: expects a tolerance RESULT=NUMBER, "
                               "optionally followed by ',relative' and ',sampled', but got 'y'"),
    (CODE + ("--within", "y=0"),
     "moa-codegen: error: the tolerance of 'y' is a positive, finite number, but '0' is none"),
    (CODE + ("--within", "y=inf,relative"), "of 'y' is a positive, finite number, but 'inf' is none"),
    (CODE + ("--within", "y=small"), "of 'y' is a positive, finite number, but 'small' is none"),
    (CODE + ("--within", "y=1e-2,sampled,relative"),
     "the tolerance of 'y' is a number, optionally followed by ',relative' and ',sampled', in this order, "
     "but it ends in ',relative'"),
    (CODE + ("--within", "y=1e-2", "--within", "y=2e-2"), "'y' is given two tolerances"),
    (CODE + ("--within", "z=1e-2"), "moa-codegen: error: no kernel has a result 'z'; there are y"),
    (RUN[:-2] + ("--within", "z=1e-2"), "moa-run: error: no kernel has a result 'z'; there are y"),
    (("moa-codegen", "counts.moa", "--within", "n=1e-2", "-o", "out"),
     "moa-codegen: error: a tolerance bounds the error of floats, but the result 'n' of 'c' is exact"),
    (CODE + ("--within", "y=1e-9"),
     "moa-codegen: error: the tolerance of 'y': no result of f32 is within 1e-9 for every input, as rounding to f32 alone "
     "is off by up to 6e-8"),
    (("moa-codegen", "program.mlir", "--target=cuda", "--within", "y=1e-2", "-o", "out"),
     "tolerances apply to kernels of the levels moa, dnf and onf, and this module has none"),
    (("moa-opt", "spec.moa", "--within", "z=1"), "moa-opt: error: no kernel has a result 'z'; there are y"),
    (("moa-opt", "spec.moa", "--within", "y=-1"),
     "moa-opt: error: the tolerance of 'y' is a positive, finite number, but '-1' is none"),
    (("moa-opt", "normal.mlir", "--within", "y=1"),
     "moa-opt: error: --within is for specifications; write the attribute 'within' into normal.mlir"),
    (CODE + ("--disable-rule=R99",), "R99"),
    (CODE + ("--schedule=spec.moa",), "spec.moa: schedule: [1:1, byte=1]: Invalid JSON value; --schedule=print writes one to begin with"),
    (CODE + ("--schedule=empty.moa",),
     "empty.moa: the file is empty; --schedule=print of moa-codegen writes a schedule"),
    (("moa-codegen", "spec.moa", "--target=cubin", "-o", "out", "--header", "out.h"),
     "machine code of a GPU has no entry points for C; --header goes with --target=cpu, cuda and ptx"),
    (CODE + ("--target=cubin", "--binding=tvm-ffi"),
     "machine code of a GPU has no entry points for C; --binding goes with --target=cpu, cuda and ptx"),
    (CODE + ("--binding=python",), "there is no binding 'python'; there is tvm-ffi"),
    (CODE + ("--binding=",), "there is no binding ''; there is tvm-ffi"),
    (CODE + ("--schedule=none.json",), "none.json: No such file or directory"),
    # moa-codegen: files
    (("moa-codegen", "spec.moa", "-o", "out.cu"),
     "moa-codegen: error: -o out.cu names a file of --target=cuda, but the target is cpu, the default; give "
     "that target or another name"),
    (("moa-codegen", "spec.moa", "--target=ptx", "-o", "out.o"),
     "moa-codegen: error: -o out.o names a file of --target=cpu, but the target is ptx; give "),
    (("moa-codegen", "none.moa", "-o", "out"), "moa-codegen: error: none.moa: No such file or directory"),
    (("moa-codegen", ".", "-o", "out"), ".: this is a directory"),
    (("moa-codegen", "bytes.moa", "-o", "out"),
     "bytes.moa: the text is not UTF-8; the first malformed byte is at offset 2"),
    (("moa-codegen", "empty.moa", "-o", "out"), "error: the specification has no kernel"),
    (("moa-codegen", "empty.mlir", "-o", "out"), "empty.mlir: there is no kernel in this file"),
    (("moa-codegen", "mixed.mlir", "-o", "out"),
     "mixed.mlir: the kernels are at different levels"),
    (("moa-codegen", "mixed.mlir", "--set", "D=3", "-o", "out"),
     "settings apply to specifications only, not to"),
    (("moa-codegen", "double.moa", "-o", "out"),
     "double.moa:1:8: error: a kernel cannot be called 'double' in C: it is a word of C or C++; give "
     "it another name"),
    (("moa-codegen", "malloc.moa", "-o", "out"),
     "a kernel cannot be called 'malloc' in C: it is a function of a C library"),
    (("moa-codegen", "_Use.moa", "-o", "out"),
     "a kernel cannot be called '_Use' in C: C reserves such names"),
    (("moa-codegen", "DLTensor.moa", "-o", "out"),
     "a kernel cannot be called 'DLTensor' in C: the header declares this name"),
    (("moa-codegen", "doubled12.moa", "-o", "out"),
     "an element of 'y' takes 16395 scalar operations, made of 13 operators on arrays; the limit "
     "is 10000"),
    (("moa-codegen", "doubled30.moa", "-o", "out"),
     "scalar operations, made of 31 operators on arrays; the limit is 1000000"),
    (("moa-run", "ranged.moa", "--random", "1", "M=2", "N=0"),
     "t : i32[M] in 0..N: the range is empty at these sizes, give t=FILE.npy"),
    (("moa-run", "chosen.moa", "--random", "1", "N=4", "c=7"),
     "c is 7, outside of its declared range 0..N, which is 0..4 here"),
    (("moa-run", "wide.moa", "--random", "1", "N=4", "c=9223372036854775807", "--check"),
     "c holds an integer of 2^53 or more in size, which the interpreters, whose numbers are float64, "
     "do not have; run it for the CPU without --check"),
    (("moa-codegen", "spec.moa", "-o", "no/out"), "cannot write no/out: No such file or directory"),
    (("moa-codegen", "spec.moa", "-o", "."), "cannot write .: this is a directory"),
    (("moa-codegen", "spec.moa", "-o", "spec.moa"), "cannot write spec.moa: this file is an input"),
    (("moa-codegen", "spec.moa", "-o", "out", "--header", "no/out.h"),
     "cannot write no/out.h: No such file or directory"),
    # moa-run: flags
    (RUN + ("--target=vax",), "there is no target 'vax'; there are cpu, reference and device"),
    (RUN + ("--interleaving=3",), "--interleaving applies to --target=device only"),
    (RUN + ("--repeat=0",), "--repeat takes a number from 1 to 4294967295, not '0'"),
    (RUN + ("--repeat=-1",), "--repeat takes a number from 1 to 4294967295, not '-1'"),
    (RUN + ("--repeat=4294967296",), "--repeat takes a number from 1 to 4294967295, not '4294967296'"),
    (("moa-run", "spec.moa", "--random=x"), "--random takes a number from 0 to 2^64 - 1, not 'x'"),
    (RUN + ("--target=device", "--interleaving=18446744073709551616"),
     "--interleaving takes a number from 0 to 2^64 - 1, not '18446744073709551616'"),
    (("moa-run",), "there is no specification to run; see moa-run --help"),
    (RUN + ("--target=device", "--repeat=2"),
     "--repeat times compiled code; --target=device is an interpreter"),
    (RUN + ("--target=reference", "--schedule=spec.moa"),
     "--schedule applies to compiled code and to --target=device; --target=reference interprets the "
     "specification"),
    (RUN + ("--check=few",), "--check takes a number of rows from 1, or 'all', not 'few'"),
    (RUN + ("--schedule=print",),
     "--schedule takes a file; moa-codegen --schedule=print writes one"),
    (RUN + ("--kernel=m",), "no kernel 'm'; there are k"),
    (RUN + ("z=3",), "kernel 'k' has no input or run-time symbol 'z': k(x : f32[N, 4], a : f32) -> "
     "(y : f32[N, 4]); a compile-time constant or an element type is set by --set z=3"),
    (RUN + ("-o", "z=out2"), "kernel 'k' has no output 'z': k(x : f32[N, 4], a : f32) -> "),
    (("moa-run", "two.moa", "--random", "1", "N=3"), "choose a kernel; there are k, l"),
    # moa-run: files and values
    (("moa-run", "none.moa"), "moa-run: error: none.moa: No such file or directory"),
    (("moa-run", "spec.moa", "N=3", "a=2"),
     "x : f32[N, 4] has no value; give x=FILE.npy, or --random SEED for arrays"),
    (("moa-run", "spec.moa"), "x : f32[N, 4], a : f32 have no value; give x=FILE.npy a=VALUE, or "
     "--random SEED for arrays"),
    (("moa-run", "spec.moa", "--random", "1"),
     "a : f32, the symbol N have no value; give a=VALUE N=SIZE"),
    (("moa-run", "spec.moa", "x=shape.npy", "a=2"),
     "x: shape.npy: axis 1 of 'x' has extent 5, but '4' is declared"),
    (("moa-run", "constant.moa", "x=shape.npy"),
     "x: shape.npy: axis 1 of 'x' has extent 5, but '4' is declared by the constant D; set it, --set D=5"),
    (("moa-run", "decay.moa", "x=shape.npy", "g=0.5"), "x[0, 0] is 1, outside of its declared range -1.5..0"),
    (("moa-run", "decay.moa", "--random", "1", "N=2", "M=2", "g=2"), "g is 2, outside of its declared range 0..1"),
    (("moa-run", "spec.moa", "x=shape.npy", "a=2", "N=7"),
     "x: shape.npy: axis 0 of 'x' has extent 3, but 'N' is 7, as given"),
    (("moa-run", "sum.moa", "x=shape.npy", "z=shape.npy"),
     "z: shape.npy: axis 0 of 'z' has extent 3, but 'M' is 5, as x of shape.npy has it"),
    (("moa-run", "sum.moa", "x=shape.npy", "z=square.npy"),
     "z: square.npy: axis 1 of 'z' has extent 5, but 'M + N' is 8 with M = 5, as x of shape.npy has "
     "it; N = 3, as x of shape.npy has it"),
    (("moa-run", "spec.moa", "N=-3", "a=2"),
     "'-3' is no value of the symbol N; a size is an integer from 0 to 2^63 - 1"),
    (("moa-run", "spec.moa", "--random", "1", "N=9223372036854775807", "a=2"),
     ", which this machine's memory cannot hold"),
    (("moa-run", "spec.moa", "--random", "1", "N=3", "a=1e39"),
     "a : f32: 1e39 is beyond the range of this type; an infinity is 'inf'"),
    (("moa-run", "many.moa"), "x7 : f32[N] and 32 more have no value; give x0=FILE.npy"),
    (("moa-run", "many.moa", "--random", "1", "N=3"),
     "many.moa:1:8: error: kernel 'k' has 41 array parameters; the limit is 32"),
    (("moa-run", "spec.moa", "x=none.npy", "a=2"), "x: none.npy: No such file or directory"),
    (("moa-run", "spec.moa", "x=.", "a=2"), "x: .: this is a directory"),
]

# The same for messages of LLVM and MLIR, which may take several lines.
FOREIGN_CASES = [
    # Flags
    (("moa-opt", "spec.moa", "--nonsense"), "moa-opt: Unknown command line argument '--nonsense'."),
    (("moa-opt", "spec.moa", "--convert-moa-to-dfn"), "moa-opt: Did you mean '--convert-moa-to-dnf'?"),
    (("moa-opt", "spec.moa", "-o"), "moa-opt: for the -o option: requires a value!"),
    (CODE + ("--timing=3",), "moa-codegen: for the --timing option: '3' is invalid value for boolean argument!"),
    (CODE + ("--timign",), "moa-codegen: Did you mean '--timing'?"),
    (CODE + ("--emit",), "moa-codegen: for the --emit option: requires a value!"),
    (CODE + ("--nonsense",), "moa-codegen: Unknown command line argument '--nonsense'."),
    (RUN + ("--repeat",), "moa-run: for the --repeat option: requires a value!"),
    (RUN + ("--nonsense",), "moa-run: Unknown command line argument '--nonsense'."),
    # Passes and their options
    (("moa-opt", "spec.moa", "--convert-moa-to-dnf=disabel=P4"), "no such option disabel"),
    (("moa-opt", "spec.moa", "--cse=x=1"), "no such option x"),
    (("moa-opt", "spec.moa", "--convert-moa-to-dnf=seed=x"), "for the --seed option: 'x' value invalid for"),
    (("moa-opt", "spec.moa", "--convert-onf-to-vector=vector-bits=x"),
     "for the --vector-bits option: 'x' value invalid for"),
    (("moa-opt", "spec.moa", "--convert-moa-to-dnf=seed"), "for the --seed option: requires a value!"),
    (("moa-opt", "spec.moa", "--onf-lift=print=maybe"),
     "for the --print option: 'maybe' is invalid value for boolean argument!"),
    (("moa-opt", "spec.moa", "--canonicalize=region-simplify=no"),
     "for the --region-simplify option: Cannot find option named 'no'!"),
    (("moa-opt", "spec.moa", "--inline=op-pipelines=func.func(csee)"), "'csee' does not refer to a registered pass"),
    (("moa-opt", "spec.moa", "--pass-pipeline=builtin.module(nonsense)"),
     "'nonsense' does not refer to a registered pass"),
    (("moa-opt", "spec.moa", "--pass-pipeline=builtin.module(convert-moa-to-dnf{sed=1})"), "no such option sed"),
    (("moa-opt", "spec.moa", "--pass-pipeline=builtin.module(cse"), "expected pass pipeline to be wrapped"),
    (("moa-opt", "spec.moa", "--pass-pipeline=builtin.module(cse cse)"),
     "'cse cse' does not refer to a registered pass"),
    (("moa-opt", "spec.moa", "--pass-pipeline=builtin.module(cse{)"), "missing closing '}'"),
    (("moa-opt", "spec.moa", "--pass-pipeline="), "expected pass pipeline to be wrapped"),
    (("moa-opt", "spec.moa", "--pass-pipeline=builtin.module(cse))"), "encountered extra closing ')'"),
    (("moa-opt", "spec.moa", "--pass-pipeline=cse"), "expected pass pipeline to be wrapped"),
    (("moa-opt", "spec.moa", "--pass-pipeline=func.func(convert-moa-to-dnf)"),
     "restricted to 'builtin.module' on a PassManager intended to run on 'func.func'"),
    # Texts of the levels
    (("moa-opt", "text.mlir"), "text.mlir:1:1: error: custom op 'kernel' is unknown"),
    (("moa-opt", "word.mlir"), "word.mlir:4:3: error: custom op 'moa.retrun' is unknown"),
    (("moa-opt", "form.mlir"), "form.mlir:3:30: error: expected '->'"),
    (("moa-opt", "fn.mlir"), "fn.mlir:3:16: error: custom op 'moa.map' expected ::moa::ScalarFn to be one of: id"),
    (("moa-opt", "value.mlir"), "value.mlir:4:14: error: use of undeclared SSA value name"),
    (("moa-opt", "rule.mlir"), "rule.mlir:1:1: error: 'moa.kernel' op expects one name per result (C2)"),
    (("moa-opt", "chunks.mlir", "--split-input-file"),
     "chunks.mlir:10:3: error: custom op 'moa.retrun' is unknown"),
    (("moa-codegen", "text.mlir", "-o", "out"), "text.mlir:1:1: error: custom op 'kernel' is unknown"),
    (("moa-codegen", "word.mlir", "-o", "out"), "word.mlir:4:3: error: custom op 'moa.retrun' is unknown"),
    (("moa-codegen", "rule.mlir", "-o", "out"), "rule.mlir:1:1: error: 'moa.kernel' op expects one name"),
    (("moa-run", "value.mlir"), "value.mlir:4:14: error: use of undeclared SSA value name"),
]


class Errors(unittest.TestCase):

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.files = {"spec.moa": SPEC, "two.moa": TWO, "mixed.mlir": MIXED,
                      "empty.moa": "", "empty.mlir": "module {}\n"}
        self.files["text.mlir"] = SPEC
        self.files["normal.mlir"] = MIXED[MIXED.index("dnf.kernel"):]
        kernel = MIXED[:MIXED.index("dnf.kernel")]
        self.files["word.mlir"] = kernel.replace("moa.return", "moa.retrun")
        self.files["form.mlir"] = kernel.replace("f32 ->", "f32")
        self.files["chunks.mlir"] = kernel + "// -----\n" + self.files["word.mlir"]
        self.files["fn.mlir"] = kernel.replace("moa.constant 1.0", "moa.map expp()")
        self.files["value.mlir"] = kernel.replace("moa.return %c", "moa.return %d")
        self.files["rule.mlir"] = kernel.replace('["y"]', '["y", "z"]')
        self.files["doubled12.moa"], self.files["doubled30.moa"] = doubled(12), doubled(30)
        self.files["ranged.moa"] = (
            "kernel k[M, N](x : f32[N], t : i32[M] in 0..N) -> y : f32[M] { y = x[t] }\n")
        self.files["constant.moa"] = "kernel k[N; D = 4](x : f32[N, D]) -> y : f32[N, D] { y = x + 1 }\n"
        self.files["decay.moa"] = ("kernel k[N, M; low = -1.5](x : f32[N, M] in low..0, g : f32 in 0..1) "
                                   "-> y : f32[N, M] { y = x * g }\n")
        self.files["wide.moa"] = "kernel k[N](x : f32[N], c : i64) -> y : i64[N] { y = [i] c - i }\n"
        self.files["chosen.moa"] = "kernel k[N](x : f32[N], c : i32 in 0..N) -> y : f32 { y = x[c] }\n"
        self.files["counts.moa"] = "kernel c[N](x : f32[N]) -> n : i32[N] { n = iota(N) }\n"
        self.files["program.mlir"] = (
            'device.program @p attributes {symbols = [], requires = [], arg_names = [], '
            'result_names = ["y"], result_types = [!moa.array<[], f32>]} {\n'
            '^bb0(%y: !moa.array<[], f32>):\n}\n')
        self.files["many.moa"] = "kernel k[N](" + ", ".join(
            f"x{k} : f32[N]" for k in range(40)) + ") -> y : f32[N] { y = x0 }\n"
        self.files["sum.moa"] = (
            "kernel k[N, M](x : f32[N, M], z : f32[M, N + M]) -> y : f32 { y = +/ (+/ x) }\n")
        np.save(os.path.join(self.directory, "shape.npy"), np.ones((3, 5), np.float32))
        np.save(os.path.join(self.directory, "square.npy"), np.ones((5, 5), np.float32))
        for name in ("double", "malloc", "_Use", "DLTensor"):
            self.files[name + ".moa"] = SPEC.replace("kernel k", "kernel " + name)
        for name, text in self.files.items():
            with open(os.path.join(self.directory, name), "w", encoding="utf-8") as file:
                file.write(text)
        with open(os.path.join(self.directory, "bytes.moa"), "wb") as file:
            file.write(b"//\xff")

    def test_messages(self):
        self.refuse(CASES, [1])

    def test_foreign_messages(self):
        self.refuse(FOREIGN_CASES, range(3))

    def refuse(self, cases, counts):
        """Every case is refused with its message, and no file changes."""
        before = sorted(os.listdir(self.directory))
        for command, message in cases:
            with self.subTest(command=" ".join(command)):
                done = mt.tool(*command, cwd=self.directory)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn(message, done.stderr)
                self.assertIn(done.stderr.count("error: "), counts, done.stderr)
                self.assertNotIn("Stack dump", done.stderr)
                self.assertEqual(sorted(os.listdir(self.directory)), before)
        for name, text in self.files.items():
            with open(os.path.join(self.directory, name), encoding="utf-8") as file:
                self.assertEqual(file.read(), text, name)


if __name__ == "__main__":
    unittest.main(verbosity=2)
