//===- KernelPrinter.h - a device kernel as CUDA C++ ------------*- C++ -*-===//
//
// A value that is used once, in its own block, is written where it is used; other
// values are named constants. Values that a loop carries are variables, and a
// conditional that ends in the next values of its loop assigns them in place.
// Fragments are arrays of a thread's registers, declared at the start of their
// block; those of 16-bit floats are packed. No line passes 120 columns.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_TARGET_CUDA_KERNELPRINTER_H
#define MOA_TARGET_CUDA_KERNELPRINTER_H

#include "lib/Target/CUDA/Cuda.h"
#include "lib/Target/CUDA/Expressions.h"
#include "lib/Target/CUDA/Storage.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

namespace moa::cuda {

class KernelPrinter {
public:
  KernelPrinter(device::KernelOp kernel, const Names &names, Helpers &helpers)
      : kernel(kernel), program(mlir::cast<device::ProgramOp>(kernel->getParentOp())),
        names(names), helpers(helpers), storage(kernel) {}

  llvm::Expected<KernelText> print();

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
  /// A constant, on the line of the one before where the types agree.
  void writeConstant(const std::string &type, const std::string &declarator);
  /// A call without a result, on the line of the one before if that is one too.
  void writeCall(const std::string &call);
  bool continueLine(const std::string &kind, const std::string &text);
  /// The head of a block, and its end or what follows it. The head may use names of
  /// its scope: then the scope is open already.
  void open(const std::string &head, bool hasScope = false);
  void close(const std::string &text = "}");

  //===--- Values ---------------------------------------------------------===//
  Expr value(mlir::Value v);
  Expr symbolText(device::SymbolOp op);
  /// Whether a loop or conditional, which may change variables, stands between.
  static bool isSeparated(mlir::Operation &op, mlir::Operation *user);
  static bool isInline(mlir::Operation &op);
  /// Keeps an expression for its one use, or names it.
  void define(mlir::Operation &op, Expr expr, bool mayInline = true);

  //===--- Statements -----------------------------------------------------===//
  void printBlock(mlir::Block &block);
  void printStatement(mlir::Operation &op);
  void printScalar(mlir::Operation &op);
  std::string access(mlir::Value array, mlir::Value offset);
  std::string element(mlir::Value local, mlir::OperandRange indices);
  void printLocal(mlir::memref::AllocaOp local);

  /// Text for values assigned together: none may read a variable that an earlier
  /// assignment has changed.
  void assign(mlir::ValueRange targets, mlir::ValueRange sources);

  /// Loops whose bodies index private arrays must be unrolled: registers have no
  /// addresses.
  bool mustUnroll(mlir::scf::ForOp loop);
  void printFor(mlir::scf::ForOp loop);
  /// if (c) { …next values… } else { the old ones } assigns the loop's variables.
  void aliasConditional(mlir::scf::ForOp loop, mlir::scf::YieldOp yield);
  void printIf(mlir::scf::IfOp branch);

  //===--- Tiles (TilePrinter.cpp) ----------------------------------------===//
  bool printTile(mlir::Operation *op);
  void printShared(mlir::Operation *op);
  bool hasRoles();
  void initBarriers();
  void printSpecialize(device::SpecializeOp op);
  void printCopy(device::CopyOp op);
  void printStoreTile(device::StoreTileOp op);
  void printClear(device::ClearUnseenOp op);
  /// The name of the descriptor of an array's tiles, a parameter of the kernel.
  std::string requestMap(mlir::Value array, unsigned rowAxis, int64_t rows);
  std::string slot(mlir::Value barriers, mlir::Value index);
  /// The address of a stage of a ring.
  std::string stage(mlir::Value ring, mlir::Value number);

  //===--- Fragments (FragmentPrinter.cpp) --------------------------------===//
  void declareRegisters(mlir::Value fragment, const std::string &name);
  /// The register array of a fragment, declared before its first use.
  std::string declareFragment(mlir::Value fragment, const char *fallback);
  void copyFragment(const std::string &to, const std::string &from);
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
  /// The statements of one map for the register `e`: how many there are.
  unsigned printMapBody(device::MapOp op, const std::string &e,
                        llvm::function_ref<bool(mlir::Value)> isLocal);
  void printThreadPlaces(mlir::Region &consumer);
  std::string requestRegisterFunction(const char *wish, const std::string &part,
                                      const std::string &e);
  /// The function that combines two values of a monoid.
  std::string requestCombination(Monoid monoid, mlir::Type type);
  std::string requestReduction(device::LayoutAttr layout, device::LayoutAttr rows);
  static device::MapOp findMerge(device::ReduceOp op);
  /// Prints a reduction and a merge into a state behind it; the last one of them.
  mlir::Operation *printReduce(device::ReduceOp op);

  //===--- Registers of warps (WarpPrinter.cpp) ---------------------------===//
  void printContractFragments(device::ContractFragmentsOp op);
  void printLoadFragment(device::LoadFragmentOp op);
  void printConvertLayout(device::ConvertLayoutOp op);

  //===--- Signature ------------------------------------------------------===//
  KernelParameters getParameters();
  std::string printSignature(const KernelText &text);

  device::KernelOp kernel;
  device::ProgramOp program;
  const Names &names;
  Helpers &helpers;
  FragmentStorage storage;
  std::string body;
  size_t depth = 0, written = 0;
  std::string error;
  llvm::DenseMap<mlir::Value, Expr> values;
  std::set<std::string> used, symbols;
  std::vector<Scope> scopes;
  size_t joinEnd = 0;   // where the last line ends that the next may go on with
  bool isWrapped = false;
  std::string joinKind; // what it is: the type of a constant, or `call`
  llvm::DenseMap<mlir::Value, std::string> fragmentArrays; // by FragmentStorage::of
  llvm::DenseMap<mlir::Value, std::string> localValues;    // fragments of one loop's maps
  std::map<std::string, std::string> threadPlaces;         // names, by what they are
  std::set<unsigned> arrays, scalars;
  std::vector<TensorMap> maps;
  /// Bytes of shared memory handed out, and the barriers in it.
  int64_t sharedBytes = 0;
  std::string clearWords; // where clear_unseen collects its bits
  std::vector<std::pair<std::string, device::BarriersType>> barriers;
};

} // namespace moa::cuda

#endif // MOA_TARGET_CUDA_KERNELPRINTER_H
