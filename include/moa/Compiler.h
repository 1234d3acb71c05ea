//===- Compiler.h - the compiler as a library -------------------*- C++ -*-===//
//
// A specification goes in; the text of every level, object code, a header, a
// report and callable kernels come out:
//
//   moa::CompilerOptions options;
//   options.settings = {"T=f32"};
//   moa::Compilation unit = moa::Compiler(options).compileFile("sdpa.moa");
//   if (!unit.ok())
//     std::cerr << unit.renderDiagnostics();
//   std::optional<std::string> onf = unit.print(moa::Level::ONF);
//   std::optional<moa::Kernel> kernel = unit.load("sdpa");
//
// Nothing here throws. A function that returns an empty optional has added an
// error to the diagnostics of its compilation. Work is done on demand and kept:
// printing a level runs the passes up to it once.
//
// Errors are of two kinds. An error in the specification or the options, or one
// of a pass, ends the compilation: ok() is false from then on and every
// question is answered by an error. An error in a question (a kernel that does
// not exist, shapes that disagree, a level above the input's, arrays that do
// not fit) is one more diagnostic, and the compilation goes on.
//
// A Compilation may be used by one thread at a time; different ones, and the
// kernels loaded from them, are independent.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_COMPILER_H
#define MOA_COMPILER_H

#include "moa/Accuracy.h"
#include "moa/DLPack.h"
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace moa {

/// The levels of the compiler: those above Lifted in order of lowering; behind ONF
/// Lifted, Vector and LLVM lead to a CPU, Device to a GPU.
enum class Level { MoA, DNF, ONF, Lifted, Vector, LLVM, Device };

/// The name of a level on a command line: "moa", "dnf", …
const char *getLevelName(Level level);
/// The level of that name.
std::optional<Level> parseLevel(const std::string &name);

struct CompilerOptions {
  /// Values of compile-time parameters: "D=64", "T=f16".
  std::vector<std::string> settings;
  /// A schedule as printed by Compilation::schedule(); empty: the cost model's.
  std::string schedule;
  /// The file the schedule comes from, named in errors about it.
  std::string scheduleFile;
  /// An LLVM processor name; empty: this machine's.
  std::string processor;
  /// The GPU that the level Lifted and the schedule are for, by its architecture:
  /// "sm_90a"; empty: they are a CPU's, and the level Device is sm_90a's.
  std::string architecture;
  /// How hard LLVM works on code for a CPU, 0 to 3, which means the same: 0 compiles soonest, to
  /// slow code, and more than 1 is hardly ever faster (benchmarks/cpu/NOTES.md).
  unsigned optimization = 1;
  /// How results may be less accurate, and what is told of it. Without it, no accuracy is spent,
  /// and calls check tolerances that the specification states for every input.
  std::optional<AccuracyOptions> accuracy;
  /// Laws of ψ-reduction and rules of the fold derivation that are not applied, `intervals` (the
  /// analysis of masks), and `precision` and `low-rank` (the passes that spend accuracy). For
  /// tests.
  std::vector<std::string> disabledRules;
  /// Whether the derivation is recorded for Compilation::explain().
  bool explain = false;
  /// Where every level is written as it is reached; empty: nowhere.
  std::string dumpDirectory;
};

enum class Severity { Error, Warning, Remark, Note };

/// A message about the input. File, line and column are where it applies, in
/// the specification whenever that is known; line 0: nowhere in particular.
struct Diagnostic {
  Severity severity = Severity::Error;
  std::string file;
  unsigned line = 0, column = 0;
  std::string message;
  std::vector<Diagnostic> notes;
};

/// One parameter of a kernel.
struct ParameterInfo {
  std::string name;
  std::string elementType; ///< "f64", "f32", "bf16", "f16", "bool", "i8" … "i64", "u8" … "u32"
  std::vector<std::string> extents; ///< expressions over the symbols
  /// For each extent that is a compile-time constant its name, "" for others; empty where
  /// the input is no specification.
  std::vector<std::string> constants;
  bool isOutput = false;
  /// The declared range, `low..high` of expressions over the symbols, or nothing. Integers
  /// have low ≤ element < high; floats, whose ends may be real numbers, low ≤ element ≤ high.
  std::string range;
  /// Of an output, if the specification or the options give one.
  std::optional<AllowedError> within;
  /// Of an output that tells of decisions: the result they are about.
  std::string decisionOf;
  /// Passed by value: an input without axes.
  bool isScalar() const { return extents.empty() && !isOutput; }
};

/// What a caller of a kernel must know.
struct KernelInfo {
  std::string name;
  std::string text; ///< one line that reads like the specification
  std::vector<std::string> symbols;
  std::vector<std::string> constraints;
  std::vector<ParameterInfo> parameters; ///< inputs, then outputs
};

/// A scalar argument, converted to the parameter's type. Floats round to
/// nearest; for an integer parameter a float is cut to its integral part (of 64
/// bits at most; NaN is 0), and integers wrap at the parameter's width.
class Scalar {
public:
  Scalar(double value) : isFloat(true), real(value) {}
  Scalar(int64_t value) : isFloat(false), integer(value) {}
  Scalar(int value) : Scalar(int64_t(value)) {}
  Scalar(bool value) : Scalar(int64_t(value)) {}
  double asDouble() const { return isFloat ? real : double(integer); }
  int64_t asInteger() const { return isFloat ? truncate(real) : integer; }

private:
  static int64_t truncate(double value) {
    if (value >= 0x1p63)
      return INT64_MAX;
    return value >= -0x1p63 ? int64_t(value) : value < 0 ? INT64_MIN : 0;
  }
  bool isFloat;
  double real = 0;
  int64_t integer = 0;
};

/// Compiled code of one kernel in this process. Copies share the code, which
/// lives as long as one of them.
class Kernel {
public:
  const KernelInfo &info() const;

  /// The code of a call that computed its results, unmodified, but found no bound within the
  /// tolerance of one that is to hold for every input.
  static constexpr int32_t kNotShown = 15;

  /// Runs the kernel. `arrays` are the descriptors of the array parameters,
  /// inputs then outputs; `scalars` the scalar parameters in order. Returns 0
  /// or a code, and `message` says why; then nothing was written, but where the code is
  /// kNotShown. The workspace is allocated here, and what `shown` says is asked for.
  int32_t operator()(const std::vector<const DLTensor *> &arrays,
                     const std::vector<Scalar> &scalars, std::string *message = nullptr) const;

  /// The same with the caller's workspace, at any address; allocates nothing
  /// large.
  int32_t run(const std::vector<const DLTensor *> &arrays, const std::vector<Scalar> &scalars,
              void *workspace, size_t bytes) const;
  /// What is known of the tolerances of a run with the same arguments and workspace, which it may
  /// change: 0, kNotShown, and then which results are not shown to be within theirs, or another
  /// code.
  int32_t shown(const std::vector<const DLTensor *> &arrays, const std::vector<Scalar> &scalars,
                void *workspace, size_t bytes, std::string *message = nullptr) const;
  /// Bytes of workspace for these arguments, or minus a code.
  int64_t workspace(const std::vector<const DLTensor *> &arrays,
                    const std::vector<Scalar> &scalars) const;
  /// Why a call would be refused, or 0.
  int32_t check(const std::vector<const DLTensor *> &arrays, std::string *message = nullptr) const;

  struct Impl;
  explicit Kernel(std::shared_ptr<const Impl> impl);

private:
  std::shared_ptr<const Impl> impl;
};

/// An array of the reference interpreter, row-major. Booleans are 0 and 1.
/// Integers are float64 too, so those beyond 2^53, which only i64 has, are
/// rounded where they cross this interface.
struct ReferenceArray {
  std::vector<int64_t> shape;
  std::vector<double> data;
};

/// Roundings that the reference interpreter makes below the moa level; as it stands, none.
struct Roundings {
  Roundings(double relative = 0, uint64_t seed = 0) : relative(relative), seed(seed) {}
  /// Every computed float is moved relatively by this, up or down as a hash with `seed`
  /// decides (Monte Carlo arithmetic): how far the result moves tells how much of an
  /// error is the problem's conditioning.
  double relative;
  uint64_t seed;
  /// On the levels from ONF on, computed operands of contractions are rounded to the type
  /// that code rounds them to: to nearest if `seed` is 0, else at random, up or down.
  bool operands = false;
  /// Computed floats have the range of f32: what is beyond is infinite, and what is below
  /// its least normal number is 0.
  bool singleRange = false;
};

/// Time spent in one stage of the compilation.
struct StageTime {
  std::string stage;
  double seconds = 0;
};

enum class ReportFormat { Text, JSON };

/// Kernels as PTX and their host side.
struct PTXFiles {
  std::string text;     ///< PTX for sm_90a
  std::string launcher; ///< C that holds the PTX and launches it by the driver API
  std::string manifest; ///< JSON: the facts of every launch
};

/// What the blocks of a program for a GPU have copied and masked, all together.
struct TileCounts {
  std::map<std::string, int64_t> copied; ///< tiles by the name of their array
  int64_t masked =
      0; ///< stages cleared of what no row sees: one per carried operand and visit with a guard
};

/// One compiled specification.
class Compilation {
public:
  Compilation(Compilation &&);
  Compilation &operator=(Compilation &&);
  ~Compilation();

  /// False once the specification, the options or a pass turned out wrong.
  bool ok() const;
  /// The level the input is at; of a specification it is MoA.
  Level inputLevel() const;
  const std::vector<Diagnostic> &diagnostics() const;
  /// The diagnostics as text: file, line, column, the source line and a caret.
  /// Remarks are left out unless asked for. `program` stands in front of what has no place.
  std::string renderDiagnostics(bool remarks = false, const std::string &program = "") const;

  /// The kernels of the specification, in order.
  const std::vector<KernelInfo> &kernels() const;

  /// A level as text that moa-opt reads back (LLVM: LLVM IR).
  std::optional<std::string> print(Level level);
  /// The normal forms dnf and onf of every kernel as readable mathematics.
  std::optional<std::string> mathematics();
  /// How the kernels were derived, for a reader: every law of ψ-reduction as it was
  /// applied, with the definition before and after, the rules that fused reductions or
  /// why they did not, masks as intervals, and the schedule. Recorded while the passes
  /// run, so that CompilerOptions::explain has to be set.
  std::optional<std::string> explain();
  /// What may be computed less accurately of a result, as its tolerance allows: one line per
  /// plan; none where nothing is.
  std::vector<std::string> spent(const std::string &kernel, const std::string &result);
  /// Object code for the processor of the options.
  std::optional<std::vector<char>> object();
  /// PTX of all kernels, and what launches them.
  std::optional<PTXFiles> ptx();
  /// The same kernels as machine code for sm_90a, by the ptxas of a CUDA toolkit
  /// found at run time.
  std::optional<std::vector<char>> cubin();
  /// CUDA C++ of all kernels, one file that stands alone.
  std::optional<std::string> cuda();
  /// The C header of the entry points: the object's or, where the options name an
  /// architecture of GPUs, those of cuda() and of the launcher of ptx().
  std::optional<std::string> header();
  /// The schedule of the lifted level, to be edited and fed back.
  std::optional<std::string> schedule();
  /// Data movement, workspace, schedule and what the derivation found. With
  /// values of all symbols, numbers stand beside the polynomials; values of
  /// only some are an error.
  std::optional<std::string> report(ReportFormat format,
                                    const std::map<std::string, int64_t> &symbols = {});

  /// Compiles for this machine and loads into this process. `name` may be
  /// empty when there is one kernel.
  std::optional<Kernel> load(const std::string &name = "");

  /// The values of a kernel's symbols from the shapes of its input parameters
  /// (scalars have none) and given values, or an error that names the conflict.
  std::optional<std::map<std::string, int64_t>>
  bindSymbols(const std::string &kernel, const std::vector<std::vector<int64_t>> &shapes,
              const std::map<std::string, int64_t> &given = {});
  /// The shapes of all parameters, inputs then outputs, under values of the
  /// symbols.
  std::optional<std::vector<std::vector<int64_t>>>
  shapes(const std::string &kernel, const std::map<std::string, int64_t> &symbols);
  /// All outputs by the reference interpreter on a level up to Lifted. `inputs`
  /// has one array per input parameter, scalars included; `symbols` gives the
  /// values that no input's shape determines, and may give others.
  std::optional<std::vector<ReferenceArray>>
  evaluate(const std::string &kernel, Level level, const std::vector<ReferenceArray> &inputs,
           const Roundings &roundings = {}, const std::map<std::string, int64_t> &symbols = {});
  /// Chosen elements of one output; cheap for single rows of large problems on
  /// the levels DNF and ONF.
  std::optional<std::vector<double>> evaluateElements(
      const std::string &kernel, Level level, const std::vector<ReferenceArray> &inputs,
      unsigned output, const std::vector<std::vector<int64_t>> &indices,
      const Roundings &roundings = {}, const std::map<std::string, int64_t> &symbols = {});
  /// The magnitudes of elements of one output: what the component-wise error is relative
  /// to. They are the values with the absolute values of the terms of the outermost sums
  /// and of what stands around them (docs/Spec.md, Def 24).
  std::optional<std::vector<double>>
  evaluateMagnitudes(const std::string &kernel, const std::vector<ReferenceArray> &inputs,
                     unsigned output, const std::vector<std::vector<int64_t>> &indices,
                     const std::map<std::string, int64_t> &symbols = {});
  /// All outputs of the kernel's program of level Device, run on this CPU with one
  /// agent per warpgroup and in the types of the machine; an error where the
  /// program breaks a rule of its level (a stage of shared memory used without a
  /// barrier that orders it, a wait that never ends, an element written twice, …).
  /// `interleaving` picks the order of blocks, and in which their agents take turns, on which the
  /// result of a correct program does not depend. `counts` receives the tiles that
  /// the program has visited, `notShown` what a call and NAME_shown on a GPU say of tolerances:
  /// which results are not shown to be within theirs, and why; empty where all are.
  std::optional<std::vector<ReferenceArray>>
  runDevice(const std::string &kernel, const std::vector<ReferenceArray> &inputs,
            const std::map<std::string, int64_t> &symbols = {}, uint64_t interleaving = 0,
            TileCounts *counts = nullptr, std::string *notShown = nullptr);
  /// Floating-point operations of a run: two for every term of every sum of
  /// products, each sum once however often the loops compute it again, but for the terms that index
  /// masks make absent (a mask that is an array counts as if nothing were absent); one for every
  /// term of every reduction in a kernel without sums of products.
  std::optional<double> flops(const std::string &kernel,
                              const std::map<std::string, int64_t> &symbols,
                              const std::vector<Scalar> &scalars = {});

  /// How long each stage run so far has taken.
  const std::vector<StageTime> &times() const;

  struct Impl;
  explicit Compilation(std::unique_ptr<Impl> impl);

private:
  std::unique_ptr<Impl> impl;
};

/// Options, applied to any number of inputs.
class Compiler {
public:
  explicit Compiler(CompilerOptions options = {});

  /// Compiles a specification. A `name` ending in `.mlir` says that the text is
  /// the IR of one of the levels up to Lifted, or of Device.
  Compilation compileText(const std::string &text, const std::string &name = "input.moa") const;
  /// The same for a file; "-" is standard input.
  Compilation compileFile(const std::string &path) const;

private:
  CompilerOptions options;
};

} // namespace moa

#endif // MOA_COMPILER_H
