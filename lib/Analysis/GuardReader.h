//===- GuardReader.h - from a guard to a predicate --------------*- C++ -*-===//
//
// Reads the condition of an `onf.guard` as a predicate on two indices: that of the nest's last axis
// and that of the fold. A value that depends on neither is a symbol. A value that depends on them
// and is not quasi-affine is an unknown.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_ANALYSIS_GUARDREADER_H
#define MOA_ANALYSIS_GUARDREADER_H

#include "dialects/ONF/IR/ONF.h"
#include "lib/Analysis/Intervals.h"
#include "lib/Analysis/OnDemand.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/DenseMap.h"

namespace moa {

class GuardReader {
public:
  GuardReader(onf::ForOp nest, onf::FoldOp fold);

  IntervalProblem read(onf::GuardOp guard);

  /// Returns the value of a symbol of the problem, of type index, available before the fold: an
  /// existing value, or operations created by `builder`. A value that may be as wide as 64 bits is
  /// clamped to ±2^56. This changes no comparison with an index and keeps the bounds from
  /// overflowing.
  mlir::Value materialise(unsigned symbol, mlir::OpBuilder &builder);

private:
  /// One case of an integer; the conditions of all cases together cover everything.
  struct Case {
    PredicateRef condition;
    mlir::AffineExpr value;
  };
  using Cases = llvm::SmallVector<Case, 1>;
  /// A condition, and the value that it has.
  using Choice = std::pair<mlir::Value, bool>;
  struct Symbol {
    mlir::Value value;  // either a value, or
    SymExpr expression; // an integer expression over the kernel's symbols
    bool nonNegative = false;
    bool clamp = false;
    /// Conditions under which the value may be computed without a fault; empty if it never faults.
    llvm::SmallVector<Choice, 2> when;
  };

  PredicateRef predicate(mlir::Value value);
  PredicateRef predicateWhere(mlir::Value condition, bool holds, mlir::Value value);
  std::optional<llvm::SmallVector<Choice, 2>> placesOf(mlir::Value value);
  PredicateRef leafPredicate(mlir::Value value);
  PredicateRef comparison(mlir::arith::CmpIOp op);
  using Sum = llvm::SmallVector<std::pair<mlir::Value, int64_t>>;
  std::optional<PredicateRef> nonNegativeSum(Sum terms, mlir::AffineExpr rest, unsigned splits);
  std::optional<Cases> integer(mlir::Value value);
  std::optional<Cases> affine(mlir::Value value);
  std::optional<Cases> division(mlir::Value value, mlir::Operation *op);
  std::optional<Cases> bits(mlir::Operation *op);
  std::optional<Cases> selection(mlir::Operation *op);
  std::optional<Cases> conversion(mlir::Operation *op);
  template <typename Function> std::optional<Cases> map(mlir::Value a, mlir::Value b, Function function);
  std::optional<Cases> leaf(mlir::Value value);
  std::optional<mlir::AffineExpr> extent(const SymExpr &expr);
  Cases single(mlir::AffineExpr e) const;

  bool depends(mlir::Value value);
  bool isNeverEmpty(ArrayType type);
  bool canHoist(mlir::Value value);
  mlir::Value hoist(mlir::Value value, mlir::OpBuilder &builder);
  bool isNonNegative(mlir::AffineExpr e) const;
  unsigned addSymbol(Symbol symbol);

  onf::ForOp nest;
  onf::FoldOp fold;
  mlir::MLIRContext *context;
  OnDemand onDemand;
  llvm::SmallVector<Choice> path; // conditions that hold where the current value is evaluated
  std::vector<Symbol> symbols;
  llvm::SmallVector<mlir::AffineExpr> facts;
  llvm::DenseMap<mlir::Value, bool> dependence;
  llvm::DenseMap<mlir::Value, unsigned> unknowns;
  llvm::DenseMap<mlir::Value, mlir::Value> hoisted;
};

} // namespace moa

#endif // MOA_ANALYSIS_GUARDREADER_H
