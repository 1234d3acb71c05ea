//===- CompilationImpl.h - the state of one compilation ---------*- C++ -*-===//
#ifndef MOA_COMPILER_COMPILATIONIMPL_H
#define MOA_COMPILER_COMPILATIONIMPL_H

#include "lib/Compiler/Diagnostics.h"
#include "lib/Explain/FoldTrace.h"
#include "lib/Explain/PsiTrace.h"
#include "lib/Pipelines/Pipelines.h"
#include "lib/Schedule/Schedule.h"
#include "lib/Target/Binding.h"
#include "lib/Target/Signature.h"
#include "lib/Validation/Validation.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "moa/Compiler.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace moa {

/// Modules of all levels reached so far, and the results derived from them.
///
/// Levels up to Lifted hold all kernels in one module. After Lifted every kernel has a module of
/// its own.
struct Compilation::Impl {
  explicit Impl(CompilerOptions options);

  //===--------------------------------------------------------------------===//
  // Levels
  //===--------------------------------------------------------------------===//

  /// Reads the input at any level. Errors go to the log.
  void read(const std::string &text, const std::string &name);
  /// Returns the module of a level up to Lifted, or null.
  mlir::ModuleOp getModule(Level level);
  /// Returns the kernel's module of level Vector or LLVM (the llvm dialect), or null.
  mlir::ModuleOp getKernelModule(unsigned kernel, Level level);
  /// Returns the programs of all kernels at level Device, or null.
  mlir::ModuleOp getDeviceModule();
  /// Returns the optimised LLVM IR of a kernel, or null.
  llvm::Module *getLLVM(unsigned kernel, bool packed);
  const llvm::SmallVectorImpl<char> *getObject(bool packed);
  /// Returns true if the CPU code of any kernel uses AMX tiles, and nothing after an error.
  std::optional<bool> usesTiles();
  /// Returns the target machine: the one in the options, or with `host` this machine.
  llvm::TargetMachine *getTargetMachine(bool host);
  /// Checks that this machine has the dot products of bytes and of bf16 that the code may use.
  /// Otherwise reports an error.
  bool checkRunsHere();

  Level getEntryLevel() const { return entry; }
  /// Returns the facts of a kernel up to the levels reached so far.
  llvm::ArrayRef<Fact> getFacts(unsigned kernel) const;
  /// Returns the schedules of the lifted level, one per kernel, or null.
  const std::vector<Schedule> *getSchedules();

  /// Returns the op of a kernel at a level up to Lifted or at Device, or null.
  mlir::Operation *getKernelOp(const std::string &kernel, Level level);
  /// Returns the position of a kernel. Reports an error if there is none.
  std::optional<unsigned> findKernel(const std::string &name);

  //===--------------------------------------------------------------------===//
  // Messages and times
  //===--------------------------------------------------------------------===//

  template <typename T> std::optional<T> take(llvm::Expected<T> value) {
    if (value)
      return std::move(*value);
    log.addError(llvm::toString(value.takeError()));
    return std::nullopt;
  }
  /// Does the same for a query: the compilation continues after the error.
  template <typename T> std::optional<T> answer(llvm::Expected<T> value) {
    if (value)
      return std::move(*value);
    log.addQueryError(llvm::toString(value.takeError()));
    return std::nullopt;
  }
  /// Returns true if queries can be answered. Reports an error if the compilation has failed.
  /// Returns the binding of the options, which are checked.
  Binding getBinding() const { return *parseBinding(options.binding); }
  bool isOpen();
  /// Runs passes on a module as one stage. With `verifies` the module is verified after each pass.
  /// Without it, a later step must verify the result.
  bool runPasses(mlir::ModuleOp module, const char *stage, llvm::function_ref<void(mlir::OpPassManager &)> build,
                 bool verifies = true);
  /// Runs a stage and adds its time.
  bool timed(const char *stage, llvm::function_ref<bool()> work);
  /// Writes a file into the dump directory, if there is one. `name` is the stem of the input's
  /// name, or the kernel's name if it has a module of its own.
  void dump(llvm::StringRef name, Level level, llvm::function_ref<void(llvm::raw_ostream &)> print);

  CompilerOptions options;
  const AccuracyOptions accuracy = options.accuracy.value_or(AccuracyOptions());
  DiagnosticLog log;
  std::vector<StageTime> times;
  /// Recorded by the passes if the options ask for an explanation.
  PsiTrace psiTrace;
  FoldTrace foldTrace;
  mlir::MLIRContext context;
  llvm::LLVMContext llvmContext;
  std::string fileName, sourceText;
  std::vector<KernelSignature> signatures;
  std::vector<KernelInfo> infos;
  /// Names of the compile-time constants that are extents, by kernel, parameter and axis.
  std::map<std::string, std::vector<std::vector<std::string>>> constants;

  /// Returns the plans of a result, its mixed-precision and low-rank variants, one line each
  /// (Decisions.cpp).
  std::vector<std::string> describePlans(unsigned kernel, unsigned result);
  /// Returns the laws that these variants apply, one line each.
  std::vector<std::string> describePlanLaws(unsigned kernel);

  /// Checks that C can call a kernel by its name. Otherwise reports an error (EntryNames.cpp).
  bool checkEntryName(unsigned kernel);
  /// Finds for each signature if it has an entry point NAME_shown. Returns false after an error.
  bool findShown();
  /// Returns the comment at the beginning of GPU code: the specification, the options, the elements
  /// moved, and the normal forms.
  std::optional<std::string> makeNotes(std::optional<std::string> forms);

private:
  bool checkOptions();
  PipelineOptions getPipelineOptions();
  bool hasByteDots();
  Bf16Dots getBf16Dots();
  bool readSettings(std::map<std::string, std::string> &settings);
  bool parse(const std::string &text, const std::string &name);
  bool findEntryLevel();
  bool readSignatures();
  bool readPlans();
  /// Checks that there is a result for each list of plans.
  bool checkPlanNames();
  bool addDecisions();
  /// Checks that the module has the given plans, and that they mean the same as where they were
  /// found.
  bool checkPlansTaken(mlir::ModuleOp module);
  std::string planTable;                       ///< in the syntax of the pass option
  std::map<std::string, int64_t> largestPlans; ///< the largest number in each list, by f.O
  std::optional<bool> plansFit;                ///< unset before the first check
  /// The texts of the plans of `f.O` where they were found, if given.
  std::map<std::string, std::vector<std::string>> planTexts;
  void dumpModule(llvm::StringRef name, Level level, mlir::ModuleOp module);
  mlir::ModuleOp isolateKernel(unsigned kernel);
  /// Returns true if calls check tolerances. Without law B5 nothing is checked.
  bool checksTolerances() const;
  /// Warns once, with the reason, if options for mixed precision or low rank can have no effect.
  /// Covers reasons known before any pass looks at nests.
  void warnOfUnusedAccuracy(onf::KernelOp first, bool hasTolerance);
  bool hasWarnedOfUnusedAccuracy = false;
  /// Returns the onf module with mixed-precision and low-rank variants, or null.
  mlir::ModuleOp getAdapted();
  /// Returns this module with the tolerance checks of entry points, or null.
  mlir::ModuleOp getChecked();
  /// Returns true if a call checks the tolerance of any result.
  bool checksAnyTolerance();
  /// Adds the tolerance checks. Returns false after an error.
  bool addChecks(mlir::ModuleOp module, bool isForGpu);
  /// Proves that a level has the meaning of the level above it.
  bool validate(Level level, mlir::ModuleOp above, mlir::ModuleOp module);
  /// Derives intervals, applies schedules, then verifies the contracts (Schedules.cpp).
  bool applySchedules(mlir::ModuleOp module, llvm::function_ref<bool()> apply);
  /// Lowers onf to the lifted level by applySchedules.
  bool lift(mlir::ModuleOp module);
  void addScheduleError(const llvm::Twine &message);
  bool readSchedules(std::map<std::string, Schedule> &given);
  bool schedule(onf::KernelOp kernel, const Machine &target, const std::map<std::string, Schedule> &given);
  std::optional<Machine> getScheduleMachine();
  /// Does the same for a GPU. `used` receives the schedules.
  bool liftForGpu(mlir::ModuleOp module, std::vector<Schedule> &used);
  /// Runs passes on an onf module. Validates it again if anything changed and the input has a normal
  /// form, since loads may have left their conditions.
  bool runValidated(mlir::ModuleOp module, llvm::function_ref<void(mlir::OpPassManager &)> build);
  bool separateFolds(mlir::ModuleOp module, bool isForGpu);
  bool splitFolds(mlir::ModuleOp module);
  bool blockColumns(mlir::ModuleOp module);

  /// The modules of one kernel after the lifted level.
  struct KernelModules {
    mlir::OwningOpRef<mlir::ModuleOp> vector, llvm;
    std::unique_ptr<llvm::Module> ir[2]; // without and with packed entries
  };
  std::map<Level, mlir::OwningOpRef<mlir::ModuleOp>> modules;
  mlir::OwningOpRef<mlir::ModuleOp> adapted, checked;
  std::vector<Schedule> schedules;
  /// One per kernel.
  std::vector<std::unique_ptr<Validator>> validators;
  Level entry = Level::MoA;
  std::vector<KernelModules> kernelModules;
  std::unique_ptr<llvm::TargetMachine> targetMachines[2]; // for the options, for this machine
  bool hasNoTargetMachine[2] = {false, false};            // already reported
  std::optional<llvm::SmallVector<char, 0>> objects[2];
};

/// Returns a kernel of any level by its number, not counting monoids.
mlir::Operation *kernelAt(mlir::ModuleOp module, unsigned number);

/// Returns the name, type, extents and direction of a parameter.
ParameterInfo makeParameterInfo(const Parameter &parameter);

/// Prints the report of one compilation (Report.cpp).
std::optional<std::string> printReport(Compilation::Impl &compilation, ReportFormat format,
                                       const std::map<std::string, int64_t> &symbols);

} // namespace moa

#endif // MOA_COMPILER_COMPILATIONIMPL_H
