//===- Compiler.h - the compiler as a library -------------------*- C++ -*-===//
//
// Compiles a specification to the text of every level, object code, a header, a report and callable
// kernels:
//
//   moa::CompilerOptions options;
//   options.settings = {"T=f32"};
//   moa::Compilation unit = moa::Compiler(options).compileFile("sdpa.moa");
//   if (!unit.ok())
//     std::cerr << unit.renderDiagnostics();
//   std::optional<std::string> onf = unit.print(moa::Level::ONF);
//   std::optional<moa::Kernel> kernel = unit.load("sdpa");
//
// No function throws. A function that returns an empty optional has added an error to the
// diagnostics of its compilation. Work is done on demand and cached: printing a level runs the
// passes up to it once.
//
// There are two kinds of errors:
// - An error in the specification, the options or a pass ends the compilation: ok() is false from
//   then on, and every query fails.
// - An error in a query adds a diagnostic, and the compilation remains usable. For example, a
//   kernel does not exist, shapes disagree, a level is above the input's, or arrays do not fit.
//
// A Compilation may be used by one thread at a time. Different compilations, and the kernels loaded
// from them, are independent.
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

/// The levels of the compiler, in order of lowering up to ONF. From ONF, the levels Lifted, Vector
/// and LLVM lead to a CPU, and Device leads to a GPU.
enum class Level { MoA, DNF, ONF, Lifted, Vector, LLVM, Device };

/// Returns the name of a level on a command line: "moa", "dnf", …
const char *getLevelName(Level level);
/// Returns the level with a name, or nothing.
std::optional<Level> parseLevel(const std::string &name);

struct CompilerOptions {
  /// Values of compile-time parameters, for example "D=64", "T=f16".
  std::vector<std::string> settings;
  /// A schedule as printed by Compilation::schedule(); empty: chosen by the cost model.
  std::string schedule;
  /// The file of the schedule, named in errors about it.
  std::string scheduleFile;
  /// An LLVM processor name; empty: this machine's.
  std::string processor;
  /// The architecture of the GPU that the level Lifted and the schedule are for, for example
  /// "sm_90a". If empty, they are for a CPU, and the level Device is for sm_90a.
  std::string architecture;
  /// A calling convention that is added to the C entry points of emitted code: "tvm-ffi" adds the
  /// functions `__tvm_ffi_NAME` of apache-tvm-ffi (docs/Calling.md). Empty: none.
  std::string binding;
  /// LLVM's optimisation level for CPU code, 0 to 3; all values yield the same results. 0 compiles
  /// fastest, to slow code; values above 1 rarely yield faster code (benchmarks/cpu/NOTES.md).
  unsigned optimization = 1;
  /// Tolerances, and the variants that may be computed within them. Without it, kernels are
  /// unmodified, and calls check the specification's tolerances that hold for every input.
  std::optional<AccuracyOptions> accuracy;
  /// Disabled laws of ψ-reduction and rules of the fold derivation, for tests. `intervals` disables
  /// the analysis of masks, `precision` and `low-rank` the passes that use tolerances.
  std::vector<std::string> disabledRules;
  /// Record the derivation for Compilation::explain().
  bool explain = false;
  /// Directory to which every level is written when it is reached; empty: none.
  std::string dumpDirectory;
};

enum class Severity { Error, Warning, Remark, Note };

/// A message about the input. File, line and column refer to the specification if known; line 0
/// means no particular place.
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
  std::string elementType;          ///< "f64", "f32", "bf16", "f16", "bool", "i8" … "i64", "u8" … "u32"
  std::vector<std::string> extents; ///< expressions over the symbols
  /// For each extent, its name if it is a compile-time constant, else ""; empty if the input is not
  /// a specification.
  std::vector<std::string> constants;
  bool isOutput = false;
  /// The declared range, `low..high` of expressions over the symbols, or empty. Integers satisfy
  /// low ≤ element < high. Floats satisfy low ≤ element ≤ high, with real bounds allowed.
  std::string range;
  /// The tolerance of an output, if the specification or the options give one.
  std::optional<AllowedError> within;
  /// For an output with decisions: the result that they are about.
  std::string decisionOf;
  /// Returns true for an input without axes, which is passed by value.
  bool isScalar() const { return extents.empty() && !isOutput; }
};

/// The interface of a kernel.
struct KernelInfo {
  std::string name;
  std::string text; ///< one line in the syntax of the specification
  std::vector<std::string> symbols;
  std::vector<std::string> constraints;
  std::vector<ParameterInfo> parameters; ///< inputs, then outputs
};

/// A scalar argument, converted to the parameter's type. Floats round to nearest. For an integer
/// parameter, a float is truncated (to 64 bits; NaN is 0), and an integer wraps at the parameter's
/// width.
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

/// Compiled code of one kernel in this process. Copies share the code; the last one frees it.
class Kernel {
public:
  const KernelInfo &info() const;

  /// Status code of a call that computed its results with the unmodified kernel, but could not bound
  /// the error of a result by its tolerance.
  static constexpr int32_t kNotShown = 15;

  /// Runs the kernel and then `shown`. `arrays` are the descriptors of the array parameters, inputs
  /// then outputs; `scalars` are the scalar parameters in order. Allocates the workspace. Returns 0
  /// or a code, with the reason in `message`. Outputs are written only for the codes 0 and
  /// kNotShown.
  int32_t operator()(const std::vector<const DLTensor *> &arrays, const std::vector<Scalar> &scalars,
                     std::string *message = nullptr) const;

  /// Runs the kernel with the caller's workspace, at any address. Makes no large allocations.
  int32_t run(const std::vector<const DLTensor *> &arrays, const std::vector<Scalar> &scalars, void *workspace,
              size_t bytes) const;
  /// Checks the tolerances of a run with the same arguments and workspace, which it may modify.
  /// Returns 0; kNotShown, with the results that may exceed their tolerances in `message`; or
  /// another code.
  int32_t shown(const std::vector<const DLTensor *> &arrays, const std::vector<Scalar> &scalars, void *workspace,
                size_t bytes, std::string *message = nullptr) const;
  /// Returns the bytes of workspace for these arguments, or a negated code.
  int64_t workspace(const std::vector<const DLTensor *> &arrays, const std::vector<Scalar> &scalars) const;
  /// Returns the code with which a call would be refused, or 0.
  int32_t check(const std::vector<const DLTensor *> &arrays, std::string *message = nullptr) const;

  struct Impl;
  explicit Kernel(std::shared_ptr<const Impl> impl);

private:
  std::shared_ptr<const Impl> impl;
};

/// A row-major array of the reference interpreter. Booleans are 0 and 1. Integers are float64, so
/// integers beyond 2^53, which only i64 has, are rounded at this interface.
struct ReferenceArray {
  std::vector<int64_t> shape;
  std::vector<double> data;
};

/// Roundings that the reference interpreter makes below the moa level; by default none.
struct Roundings {
  Roundings(double relative = 0, uint64_t seed = 0) : relative(relative), seed(seed) {}
  /// Every computed float is changed by this relative amount, up or down by a hash of `seed` (Monte
  /// Carlo arithmetic). The change of the result measures the condition of the problem.
  double relative;
  uint64_t seed;
  /// From ONF on, computed operands of contractions are rounded to the type that code rounds them
  /// to: to nearest if `seed` is 0, else up or down at random.
  bool operands = false;
  /// Computed floats have the range of f32: values beyond it become infinite, and values below its
  /// least normal number become 0.
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

/// Tile statistics of all blocks of a GPU program.
struct TileCounts {
  std::map<std::string, int64_t> copied; ///< tiles by the name of their array
  int64_t masked = 0; ///< stages whose masked-out keys were cleared, per operand of a state and guarded visit
};

/// One compiled specification.
class Compilation {
public:
  Compilation(Compilation &&);
  Compilation &operator=(Compilation &&);
  ~Compilation();

  /// Returns false after an error in the specification, the options or a pass.
  bool ok() const;
  /// Returns the level of the input; MoA for a specification.
  Level inputLevel() const;
  const std::vector<Diagnostic> &diagnostics() const;
  /// Prints the diagnostics: file, line, column, the source line and a caret. Remarks are optional.
  /// `program` is the prefix of diagnostics without a place.
  std::string renderDiagnostics(bool remarks = false, const std::string &program = "") const;

  /// Returns the kernels of the specification, in order.
  const std::vector<KernelInfo> &kernels() const;

  /// Prints a level as text that moa-opt reads back (LLVM: LLVM IR).
  std::optional<std::string> print(Level level);
  /// Prints the normal forms dnf and onf of every kernel as readable mathematics.
  std::optional<std::string> mathematics();
  /// Explains how the kernels were derived: every application of a law of ψ-reduction with the
  /// definition before and after, the rules that fused reductions or the reasons why not, masks as
  /// intervals, and the schedule. Requires CompilerOptions::explain, as the passes record it.
  std::optional<std::string> explain();
  /// Returns one line per mixed-precision variant that the tolerance of a result allows; empty if
  /// none.
  std::vector<std::string> spent(const std::string &kernel, const std::string &result);
  /// Returns object code for the processor of the options.
  std::optional<std::vector<char>> object();
  /// Returns PTX of all kernels with its launcher and manifest.
  std::optional<PTXFiles> ptx();
  /// Returns all kernels as machine code for sm_90a. Needs the ptxas of a CUDA toolkit at run time.
  std::optional<std::vector<char>> cubin();
  /// Returns CUDA C++ of all kernels, as one self-contained file.
  std::optional<std::string> cuda();
  /// Returns the C header of the entry points: those of the object or, if the options name a GPU
  /// architecture, those of cuda() and of the launcher of ptx().
  std::optional<std::string> header();
  /// Returns the manifest, a JSON description of the same entry points (docs/Calling.md).
  std::optional<std::string> manifest();
  /// Returns the schedule of the lifted level, which can be edited and read back.
  std::optional<std::string> schedule();
  /// Reports data movement, workspace, schedule and findings of the derivation. With values of all
  /// symbols, every polynomial is followed by its value; values of only some symbols are an error.
  std::optional<std::string> report(ReportFormat format, const std::map<std::string, int64_t> &symbols = {});

  /// Compiles for this machine and loads into this process. `name` may be empty if there is one
  /// kernel.
  std::optional<Kernel> load(const std::string &name = "");

  /// Returns the values of a kernel's symbols, from the shapes of its input parameters (scalars
  /// have none) and given values. The error names a conflict.
  std::optional<std::map<std::string, int64_t>> bindSymbols(const std::string &kernel,
                                                            const std::vector<std::vector<int64_t>> &shapes,
                                                            const std::map<std::string, int64_t> &given = {});
  /// Returns the shapes of all parameters, inputs then outputs, for values of the symbols.
  std::optional<std::vector<std::vector<int64_t>>> shapes(const std::string &kernel,
                                                          const std::map<std::string, int64_t> &symbols);
  /// Evaluates all outputs with the reference interpreter on a level up to Lifted. `inputs` has one
  /// array per input parameter, including scalars. `symbols` must have the values that no input's
  /// shape determines, and may have others.
  std::optional<std::vector<ReferenceArray>> evaluate(const std::string &kernel, Level level,
                                                      const std::vector<ReferenceArray> &inputs,
                                                      const Roundings &roundings = {},
                                                      const std::map<std::string, int64_t> &symbols = {});
  /// Evaluates selected elements of one output. On the levels DNF and ONF this is cheap for single
  /// rows of large problems.
  std::optional<std::vector<double>> evaluateElements(const std::string &kernel, Level level,
                                                      const std::vector<ReferenceArray> &inputs, unsigned output,
                                                      const std::vector<std::vector<int64_t>> &indices,
                                                      const Roundings &roundings = {},
                                                      const std::map<std::string, int64_t> &symbols = {});
  /// Returns the magnitudes of elements of one output, the denominators of the component-wise
  /// error. They are the values with absolute values taken of the terms of the outermost sums and
  /// of the operations around them (docs/Spec.md, Def 24).
  std::optional<std::vector<double>> evaluateMagnitudes(const std::string &kernel,
                                                        const std::vector<ReferenceArray> &inputs, unsigned output,
                                                        const std::vector<std::vector<int64_t>> &indices,
                                                        const std::map<std::string, int64_t> &symbols = {});
  /// Runs the kernel's program of level Device on this CPU, with one agent per warpgroup and the
  /// types of the machine, and returns all outputs. Returns an error if the program breaks a rule
  /// of its level. For example, a stage of shared memory is used without a barrier, a wait never
  /// ends, or an element is written twice. `interleaving` selects the order of blocks and of their
  /// agents, on which the result of a correct program does not depend. `counts` receives the
  /// visited tiles. `notShown` receives the results that are not proved to be within their
  /// tolerances, with reasons, as from NAME_shown on a GPU; empty if all are.
  std::optional<std::vector<ReferenceArray>> runDevice(const std::string &kernel,
                                                       const std::vector<ReferenceArray> &inputs,
                                                       const std::map<std::string, int64_t> &symbols = {},
                                                       uint64_t interleaving = 0, TileCounts *counts = nullptr,
                                                       std::string *notShown = nullptr);
  /// Returns the floating-point operations of a run. With sums of products, these are two per term
  /// of every such sum. A sum that is recomputed counts once, and terms removed by index masks do
  /// not count; mask arrays remove nothing. Without sums of products: one per term of every
  /// reduction.
  std::optional<double> flops(const std::string &kernel, const std::map<std::string, int64_t> &symbols,
                              const std::vector<Scalar> &scalars = {});

  /// Returns the time of each stage that has run.
  const std::vector<StageTime> &times() const;

  struct Impl;
  explicit Compilation(std::unique_ptr<Impl> impl);

private:
  std::unique_ptr<Impl> impl;
};

/// A compiler with options, for any number of inputs.
class Compiler {
public:
  explicit Compiler(CompilerOptions options = {});

  /// Compiles a specification. If `name` ends in `.mlir`, the text is IR of a level up to Lifted,
  /// or of Device.
  Compilation compileText(const std::string &text, const std::string &name = "input.moa") const;
  /// Compiles a file; "-" is standard input.
  Compilation compileFile(const std::string &path) const;

private:
  CompilerOptions options;
};

} // namespace moa

#endif // MOA_COMPILER_H
