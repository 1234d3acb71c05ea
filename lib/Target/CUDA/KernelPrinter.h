//===- KernelPrinter.h - a device kernel as CUDA C++ ------------*- C++ -*-===//
//
// A value that is used once, in its own block, is written where it is used; other
// values are named constants. Values that a loop carries are variables, and a
// conditional that ends in the next values of its loop assigns them in place.
// Fragments are arrays of a thread's registers; those of 16-bit floats are packed.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_TARGET_CUDA_KERNELPRINTER_H
#define MOA_TARGET_CUDA_KERNELPRINTER_H

#include "lib/Target/CUDA/Cuda.h"
#include "lib/Target/CUDA/Expressions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/raw_ostream.h"

namespace moa::cuda {

class KernelPrinter {
public:
  KernelPrinter(device::KernelOp kernel, const Names &names, std::set<std::string> &helpers)
      : kernel(kernel), program(mlir::cast<device::ProgramOp>(kernel->getParentOp())),
        names(names), helpers(helpers), os(body) {}

  llvm::Expected<KernelText> print();

private:
  //===--- Names ----------------------------------------------------------===//
  std::string fresh(mlir::Location loc, const char *fallback);
  void write(const std::string &text) { os << std::string(2 * depth, ' ') << text << "\n"; }

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
  void printTile(mlir::Operation *op);
  void printShared(mlir::Operation *op);
  void printSpecialize(device::SpecializeOp op);
  void printCopy(device::CopyOp op);
  void printFill(device::FillOp op);
  void printContract(device::ContractOp op);
  void printAwait(device::AwaitOp op);
  void printMap(device::MapOp op);
  void printAny(device::AnyOp op);
  void printIfAny(device::IfAnyOp op);
  bool printRounding(device::MapOp op);
  void printStoreTile(device::StoreTileOp op);
  /// The name of the descriptor of an array's tiles, a parameter of the kernel.
  std::string requestMap(mlir::Value array, unsigned rowAxis, int64_t rows);
  void printClear(device::ClearUnseenOp op);
  void printReduce(device::ReduceOp op);
  /// A register array for a fragment, or the one of a value that ends here.
  std::string declareFragment(mlir::Value fragment, mlir::Value reuse, const char *fallback);
  std::string slot(mlir::Value barriers, mlir::Value index);

  //===--- Signature ------------------------------------------------------===//
  KernelParameters getParameters();
  std::string printSignature(const KernelText &text);

  device::KernelOp kernel;
  device::ProgramOp program;
  const Names &names;
  std::set<std::string> &helpers;
  std::string body;
  llvm::raw_string_ostream os;
  size_t depth = 0;
  std::string error;
  llvm::DenseMap<mlir::Value, Expr> values;
  llvm::DenseMap<mlir::Value, std::string> places; // where a fragment is wanted
  std::set<std::string> used, symbols;
  std::set<unsigned> arrays, scalars;
  std::vector<TensorMap> maps;
  /// Bytes of shared memory handed out, and the barriers in it.
  int64_t sharedBytes = 0;
  std::string clearWords; // where clear_unseen collects its bits
  std::vector<std::pair<std::string, device::BarriersType>> barriers;
};

} // namespace moa::cuda

#endif // MOA_TARGET_CUDA_KERNELPRINTER_H
