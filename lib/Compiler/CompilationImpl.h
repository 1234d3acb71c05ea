//===- CompilationImpl.h - the state of one compilation ---------*- C++ -*-===//
#ifndef MOA_COMPILER_COMPILATIONIMPL_H
#define MOA_COMPILER_COMPILATIONIMPL_H

#include "lib/Compiler/Diagnostics.h"
#include "lib/Explain/FoldTrace.h"
#include "lib/Explain/PsiTrace.h"
#include "lib/Pipelines/Pipelines.h"
#include "lib/Schedule/Schedule.h"
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

/// Modules of every level reached so far, and what was made of them.
///
/// Levels up to Lifted hold all kernels in one module. Behind it every kernel
/// has a module of its own.
struct Compilation::Impl {
  explicit Impl(CompilerOptions options);

  //===--------------------------------------------------------------------===//
  // Levels
  //===--------------------------------------------------------------------===//

  /// Reads the input, whatever level it is at. Errors go to the log.
  void read(const std::string &text, const std::string &name);
  /// The module of a level up to Lifted, or null.
  mlir::ModuleOp getModule(Level level);
  /// The kernel's module of level Vector or LLVM (the llvm dialect), or null.
  mlir::ModuleOp getKernelModule(unsigned kernel, Level level);
  /// The programs of all kernels at level Device, or null.
  mlir::ModuleOp getDeviceModule();
  /// Optimised LLVM IR of a kernel, or null.
  llvm::Module *getLLVM(unsigned kernel, bool packed);
  /// Object code of all kernels.
  const llvm::SmallVectorImpl<char> *getObject(bool packed);
  /// Whether the code of any kernel for a CPU has tiles of AMX; nothing if one has no code.
  std::optional<bool> usesTiles();
  /// What code is generated for: as the options say, or this machine.
  llvm::TargetMachine *getMachine(bool host);
  /// Whether this machine has the products of bytes and of bf16 that the loops may use; an error if
  /// not.
  bool checkRunsHere();

  /// The level the input is at.
  Level getEntryLevel() const { return entry; }
  /// What was shown of a kernel up to the levels reached so far.
  llvm::ArrayRef<Fact> getFacts(unsigned kernel) const;
  /// The schedules of the lifted level, one per kernel, or null.
  const std::vector<Schedule> *getSchedules();

  /// The op of a kernel at a level up to Lifted or at Device, or null.
  mlir::Operation *getKernelOp(const std::string &kernel, Level level);
  /// The position of a kernel; an error when there is none.
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
  /// The same for a question: the compilation goes on.
  template <typename T> std::optional<T> answer(llvm::Expected<T> value) {
    if (value)
      return std::move(*value);
    log.addQueryError(llvm::toString(value.takeError()));
    return std::nullopt;
  }
  /// Whether a question can be answered; an error if the compilation has ended.
  bool isOpen();
  /// Runs passes on a module as one stage; the module is verified behind each, where
  /// what comes next does not verify it itself.
  bool runPasses(mlir::ModuleOp module, const char *stage,
                 llvm::function_ref<void(mlir::OpPassManager &)> build, bool verifies = true);
  /// Runs a stage and adds its time.
  bool timed(const char *stage, llvm::function_ref<bool()> work);
  /// Writes a file into the dump directory, if there is one: NAME is the
  /// input's, or the kernel's where it has a module of its own.
  void dump(llvm::StringRef name, Level level, llvm::function_ref<void(llvm::raw_ostream &)> print);

  CompilerOptions options;
  const AccuracyOptions accuracy = options.accuracy.value_or(AccuracyOptions());
  DiagnosticLog log;
  std::vector<StageTime> times;
  /// Filled by the passes if the options ask for an explanation.
  PsiTrace psiTrace;
  FoldTrace foldTrace;
  mlir::MLIRContext context;
  llvm::LLVMContext llvmContext;
  std::string fileName, sourceText;
  std::vector<KernelSignature> signatures;
  std::vector<KernelInfo> infos;
  /// The compile-time constants that extents are, by kernel, parameter and axis.
  std::map<std::string, std::vector<std::vector<std::string>>> constants;

  /// The ways in which a result may be computed that spend accuracy (Decisions.cpp).
  std::vector<std::string> getSpent(unsigned kernel, unsigned result);
  /// The laws that these apply, in lines.
  std::vector<std::string> getSpendingLaws(unsigned kernel);

  /// Whether C can call a kernel by its name; an error if not (EntryNames.cpp).
  bool checkEntryName(unsigned kernel);
  /// Of each signature, whether there is an entry point NAME_shown; false after an error.
  bool findShown();
  /// The comment that opens the text for a GPU: the specification, what was set and
  /// is moved, and the normal forms.
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
  /// Whether there is a result for each list of plans.
  bool checkPlanNames();
  bool addDecisions();
  /// Whether the module has the plans that were given, and they are what they were where they were
  /// found.
  bool checkPlansTaken(mlir::ModuleOp module);
  std::string planTable;                       ///< as the pass takes it
  std::map<std::string, int64_t> largestPlans; ///< of each list, by f.O
  std::optional<bool> plansFit;                ///< which is said once
  /// What the plans of `f.O` were where they were found, if that is said.
  std::map<std::string, std::vector<std::string>> planTexts;
  void dumpModule(llvm::StringRef name, Level level, mlir::ModuleOp module);
  mlir::ModuleOp isolateKernel(unsigned kernel);
  /// Whether calls are to tell of tolerances; without law B5 nothing is checked.
  bool checksTolerances() const;
  /// Says once why accuracy that is asked for is not spent, where that is seen before any pass
  /// looks at nests.
  void warnOfNothingSpent(onf::KernelOp first, bool hasTolerance);
  bool hasWarnedOfNothingSpent = false;
  /// The onf level with what is computed in fewer bits, or null.
  mlir::ModuleOp getAdapted();
  /// The same with what entry points tell of tolerances, or null.
  mlir::ModuleOp getChecked();
  /// Whether a call is to tell of any result.
  bool isAnythingTold();
  /// Adds what they tell; false after an error.
  bool addChecks(mlir::ModuleOp module, bool isForGpu);
  /// Shows that a level means what the one above it means.
  bool validate(Level level, mlir::ModuleOp above, mlir::ModuleOp module);
  /// The lifted level from onf: intervals, then the schedules (Schedules.cpp).
  bool lift(mlir::ModuleOp module);
  void addScheduleError(const llvm::Twine &message);
  bool readSchedules(std::map<std::string, Schedule> &given);
  bool schedule(onf::KernelOp kernel, const Machine &machine,
                const std::map<std::string, Schedule> &given);
  std::optional<Machine> getScheduleMachine();
  /// The same for a GPU; `used` gets the schedules (Schedules.cpp).
  bool liftForGpu(mlir::ModuleOp module, std::vector<Schedule> &used);
  bool separateFolds(mlir::ModuleOp module, bool isForGpu);
  bool splitFolds(mlir::ModuleOp module);
  bool blockColumns(mlir::ModuleOp module);

  /// What stands behind the lifted level, per kernel.
  struct Unit {
    mlir::OwningOpRef<mlir::ModuleOp> vector, llvm;
    std::unique_ptr<llvm::Module> ir[2]; // without and with packed entries
  };
  std::map<Level, mlir::OwningOpRef<mlir::ModuleOp>> modules;
  mlir::OwningOpRef<mlir::ModuleOp> adapted, checked;
  std::vector<Schedule> schedules;
  /// One per kernel.
  std::vector<std::unique_ptr<Validator>> validators;
  Level entry = Level::MoA;
  std::vector<Unit> units;
  std::unique_ptr<llvm::TargetMachine> machine[2]; // as asked, this one
  bool hasNoMachine[2] = {false, false};           // which is said once
  std::optional<llvm::SmallVector<char, 0>> objects[2];
};

/// A kernel of any level by its number; monoids do not count.
mlir::Operation *kernelAt(mlir::ModuleOp module, unsigned number);

/// The report of one compilation (Report.cpp).
std::optional<std::string> printReport(Compilation::Impl &unit, ReportFormat format,
                                       const std::map<std::string, int64_t> &symbols);

} // namespace moa

#endif // MOA_COMPILER_COMPILATIONIMPL_H
