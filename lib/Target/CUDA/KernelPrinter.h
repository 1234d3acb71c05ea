//===- KernelPrinter.h - a device kernel as CUDA C++ ------------*- C++ -*-===//
//
// A value that is used once, in its own block, is written where it is used; other
// values are named constants. Values that a loop carries are variables, and a
// conditional that ends in the next values of its loop assigns them in place.
// Fragments are arrays of a thread's registers, declared at the start of their
// block; those of 16-bit floats are packed. Steps on fragments that occur several
// times are functions (Outline.h). No line passes 120 columns.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_TARGET_CUDA_KERNELPRINTER_H
#define MOA_TARGET_CUDA_KERNELPRINTER_H

#include "lib/Target/CUDA/Cuda.h"
#include "lib/Target/CUDA/Expressions.h"
#include "lib/Target/CUDA/Outline.h"
#include "lib/Target/CUDA/Phases.h"
#include "lib/Target/CUDA/Storage.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

namespace moa::cuda {

class KernelPrinter {
public:
  /// Writes the kernel, or the function of one of its outlines. Each outline needs
  /// the functions of those behind it. If it `merges`, loops that follow each other are
  /// written as one (Phases.h).
  KernelPrinter(device::KernelOp kernel, const Names &names, Helpers &helpers,
                const FragmentStorage &storage, std::vector<Outline> &outlines, bool merges,
                std::optional<size_t> function = std::nullopt)
      : kernel(kernel), program(mlir::cast<device::ProgramOp>(kernel->getParentOp())), names(names),
        helpers(helpers), storage(storage), outlines(outlines), merges(merges), function(function),
        launch(gpu::getLaunch(kernel)) {}

  llvm::Expected<KernelText> print();
  llvm::Expected<std::string> printFunction();
  /// Whether the text is whole: all loops that should be are written as one.
  bool hasMergedAll() const { return mergedAll; }

private:
  //===--- Names ----------------------------------------------------------===//
  /// A C++ name near the wish that nothing in scope has, until the scope ends.
  std::string fresh(llvm::StringRef wish);
  std::string freshState(llvm::StringRef wish);
  /// What a value is, in a word: its name in the program, or what made it.
  std::string wishFor(mlir::Value value, const char *fallback) const;
  std::string wishForFragment(mlir::Value fragment) const;
  void pushScope() { scopes.emplace_back(); }
  void popScope();

  /// What a pair of braces holds: names that end with it, and the arrays that are
  /// declared at its start, by their types.
  struct Scope {
    std::vector<std::string> names;
    std::optional<size_t> start;
    std::vector<std::pair<std::string, std::string>> arrays;
  };
  /// Declares an array at the start of the innermost block.
  void declareArray(const std::string &type, const std::string &declarator);
  void writeArrays(Scope &scope);

  //===--- Lines ----------------------------------------------------------===//
  /// One statement, broken where it passes 120 columns.
  void write(const std::string &text);
  /// A variable of a thread that changes.
  void writeVariable(const std::string &declaration);
  /// A constant, on the line of the one before where the types agree.
  void writeConstant(const std::string &type, const std::string &declarator);
  /// A call without a result, on the line of the one before if that is one too.
  void writeCall(const std::string &call);
  bool continueLine(const std::string &kind, const std::string &text);
  /// The head of a block, and its end or what follows it. The head may use names of
  /// its scope: then the scope is open already.
  void open(const std::string &head, bool hasScope = false);
  void close(const std::string &text = "}");
  /// Writes a conditional of single statements, which starts there, without braces.
  void dropBraces(size_t start);

  //===--- Values ---------------------------------------------------------===//
  Expr value(mlir::Value v);
  Expr symbolText(device::SymbolOp op);
  /// Whether a loop or conditional, which may change variables, stands between.
  static bool isSeparated(mlir::Operation &op, mlir::Operation *user);
  /// Keeps an expression for its one use, or names it.
  void define(mlir::Operation &op, Expr expr, bool mayInline = true);

  //===--- Statements -----------------------------------------------------===//
  void printBlock(mlir::Block &block) { printFrom(&block.front()); }
  /// The operation and all behind it.
  void printFrom(mlir::Operation *op);
  void printStatement(mlir::Operation &op);
  void printScalar(mlir::Operation &op);
  std::string access(mlir::Value array, mlir::Value offset);
  template <typename OpT> std::string runAt(OpT op);
  std::string element(mlir::Value local, mlir::OperandRange indices);
  void printLocal(mlir::memref::AllocaOp local);

  /// Text for values assigned together: none may read a variable that an earlier
  /// assignment has changed.
  void assign(mlir::ValueRange targets, mlir::ValueRange sources);

  /// Loops whose bodies index private arrays must be unrolled: registers have no
  /// addresses.
  static bool mustUnroll(mlir::scf::ForOp loop);
  void printFor(mlir::scf::ForOp loop);
  /// The loop, or with it those that follow it, as one; the last of them.
  mlir::Operation *printLoops(mlir::scf::ForOp first);
  bool printPhases(llvm::MutableArrayRef<mlir::scf::ForOp> loops);
  std::vector<Statement> record(mlir::scf::ForOp loop, size_t at, Scope &scope);
  static std::optional<std::vector<std::pair<std::string, std::string>>>
  uniteArrays(llvm::ArrayRef<Scope> parts, llvm::ArrayRef<Statement> statements);
  bool writeUnder(const std::string &head, const Statement &statement, size_t recorded);
  void writeStatements(llvm::ArrayRef<Statement> statements, size_t recorded);
  /// if (c) { …next values… } else { the old ones } assigns the loop's variables.
  void aliasConditional(mlir::scf::ForOp loop, mlir::scf::YieldOp yield);
  void printIf(mlir::scf::IfOp branch);
  void printStages(device::StagesOp op);

  //===--- Repeated steps (OutlinePrinter.cpp) ----------------------------===//
  struct Call {
    Outline *outline;
    size_t place;
  };
  /// The call that stands in place of the operation and others behind it.
  std::optional<Call> findCall(mlir::Operation *op);
  /// Prints a call; the last operation that it stands for.
  mlir::Operation *printCall(Call call);
  bool isStepOfFunction(mlir::Operation *op) const;
  /// What the text has behind an operation of a block.
  mlir::Operation *getNext(mlir::Operation *op) const;
  std::string wishForFunction(const Outline &outline) const;
  std::string freshParameter(llvm::StringRef wish);
  void declareParameters();
  void addParameter(const Outline::Parameter &parameter);
  /// The name of a part of an index that warp and lane decide.
  std::string threadPlace(const std::string &part, const std::string &wish);

  //===--- Tiles (TilePrinter.cpp) ----------------------------------------===//
  bool printTile(mlir::Operation *op);
  void printShared(mlir::Operation *op);
  bool hasRoles();
  void initBarriers(mlir::Value goesOn = {});
  void printSpecialize(device::SpecializeOp op);
  void printRoles(device::SpecializeOp op);
  void printProducerBlocks(device::SpecializeOp op);
  void printConsumerBlocks(device::SpecializeOp op);
  std::string ofAllLanes(mlir::Value number);
  std::string bitsOf(mlir::Value number);
  void giveBlock();
  void declareShared();
  void printCollect(device::CollectOp op);
  void printCopy(device::CopyOp op);
  void printStoreTile(device::StoreTileOp op);
  void printAwaitStores(device::AwaitStoresOp op);
  void printClear(device::ClearUnseenOp op);
  std::string slot(mlir::Value barriers, mlir::Value index);
  /// The address of a stage of a ring.
  std::string stage(mlir::Value ring, mlir::Value number);
  std::string keptNumber(mlir::Value number);

  //===--- Fragments (FragmentPrinter.cpp) --------------------------------===//
  /// The type and number of a thread's registers.
  static std::pair<std::string, std::string> getRegisters(mlir::Value fragment);
  void declareRegisters(mlir::Value fragment, const std::string &name);
  /// The register array of a fragment, declared before its first use.
  std::string declareFragment(mlir::Value fragment, const char *fallback);
  void copyFragment(const std::string &to, const std::string &from);
  /// A fragment that the text has no array for is one constant.
  void copyFragment(const std::string &to, mlir::Value from);
  bool isCopiedConstant(mlir::Value fragment) const;
  /// Whether a loop starts with the value but neither reads it nor ends with it.
  static bool isNeverRead(mlir::OpOperand &use);
  void writeFill(const std::string &to, device::FillOp op);
  void printFill(device::FillOp op);
  std::string requestProducts(device::ContractOp op);
  void printContract(device::ContractOp op);
  void printAwait(device::AwaitOp op);
  void printAny(device::AnyOp op);
  void printIfAny(device::IfAnyOp op);
  bool printRounding(device::MapOp op);
  bool printConstantMap(device::MapOp op);
  /// Prints a map and those after it that share its loop; the last one of them.
  mlir::Operation *printMaps(device::MapOp first);
  void printPair(device::StoreOp store);
  /// The statements of one map for the register `e`: how many there are.
  unsigned printMapBody(device::MapOp op, const std::string &e,
                        llvm::function_ref<bool(mlir::Value)> isLocal);
  void printThreadPlaces(mlir::Region &consumer);
  std::string requestRegisterFunction(const char *wish, const std::string &part,
                                      const std::string &e);
  /// The function that combines two values of a monoid.
  std::string requestCombination(Monoid monoid, mlir::Type type);
  std::string requestSumOfHalves(device::LayoutAttr layout, device::LayoutAttr rows);
  std::string requestReduction(device::LayoutAttr layout, device::LayoutAttr rows);
  /// Prints a reduction and a merge into a state behind it; the last one of them.
  mlir::Operation *printReduce(device::ReduceOp op);

  //===--- Registers of warps (WarpPrinter.cpp) ---------------------------===//
  void printContractFragments(device::ContractFragmentsOp op);
  void printLoadFragment(device::LoadFragmentOp op);
  void printConvertLayout(device::ConvertLayoutOp op);

  std::string printHeading();
  std::string printSignature();

  device::KernelOp kernel;
  device::ProgramOp program;
  const Names &names;
  Helpers &helpers;
  const FragmentStorage &storage;
  std::vector<Outline> &outlines;
  bool merges, mergedAll = true;
  std::optional<size_t> function; // which of these is written
  gpu::Launch launch;
  std::string body;
  size_t depth = 0, written = 0;
  std::string error;
  llvm::DenseMap<mlir::Value, Expr> values;
  std::set<std::string> used;
  std::vector<Scope> scopes;
  /// The statements of one block, at its own depth: where each starts, and what it is.
  struct Recording {
    size_t depth = 0;
    std::vector<std::pair<size_t, Statement>> statements;
  };
  std::optional<Recording> recording;
  std::map<std::string, std::string> phaseArrays; // registers, by names
  bool hasVariables = false; // in the statements of some phase: no two may be one
  size_t joinEnd = 0;        // where the last line ends that the next may go on with
  bool isWrapped = false;
  std::string joinKind; // what it is: the type of a constant, or `call`
  llvm::DenseMap<mlir::Value, std::string> fragmentArrays; // by FragmentStorage::of
  llvm::DenseMap<mlir::Value, std::string> localValues;    // fragments of one loop's maps
  std::map<std::string, std::string> threadPlaces;         // names, by what they are
  std::string keptArray;                                   // numbers of the block in shared memory
  // Where blocks go on with others (device.next_block): two barriers, the number that says whether
  // there is a block, and the parity of blocks.
  std::string givenBarrier, leftBarrier, isMore, turn;
  bool inProducer = false;
  bool hasShared = false; // whether the array of shared memory is declared
  std::vector<std::pair<std::string, device::BarriersType>> barriers;
};

} // namespace moa::cuda

#endif // MOA_TARGET_CUDA_KERNELPRINTER_H
