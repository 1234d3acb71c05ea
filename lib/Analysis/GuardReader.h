//===- GuardReader.h - from a guard to a predicate --------------*- C++ -*-===//
//
// Reads the condition of an `onf.guard` as a predicate on the index of the
// enclosing nest's last axis and the fold's index. What does not depend on
// these two is a symbol; what depends on them and is not quasi-affine is an
// unknown.
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

  /// The guard's predicate with the box of its indices.
  IntervalProblem read(onf::GuardOp guard);

  /// The value of a symbol of the problem, of type index, available before the
  /// fold: an existing value, or operations created by `builder`. Values that
  /// may be as wide as 64 bits are clamped to ±2^56, which changes the truth of
  /// no comparison with indices and keeps the bounds from overflowing.
  mlir::Value materialise(unsigned symbol, mlir::OpBuilder &builder);

private:
  /// An integer by cases; the conditions cover everything.
  struct Case {
    PredicateRef condition;
    mlir::AffineExpr value;
  };
  using Cases = llvm::SmallVector<Case, 1>;
  /// A condition, and whether it holds.
  using Choice = std::pair<mlir::Value, bool>;
  struct Symbol {
    mlir::Value value;      // or
    std::string expression; // an integer expression over the kernel's symbols
    bool nonNegative = false;
    bool clamp = false;
    /// When the value may be asked for; 0 otherwise.
    llvm::SmallVector<Choice, 2> when;
  };

  PredicateRef predicate(mlir::Value value);
  PredicateRef predicateWhere(mlir::Value condition, bool holds, mlir::Value value);
  std::optional<llvm::SmallVector<Choice, 2>> placesOf(mlir::Value value);
  PredicateRef leafPredicate(mlir::Value value);
  PredicateRef comparison(mlir::arith::CmpIOp op);
  /// A sum of signed values.
  using Sum = llvm::SmallVector<std::pair<mlir::Value, int64_t>>;
  std::optional<PredicateRef> nonNegativeSum(Sum terms, mlir::AffineExpr rest, unsigned splits);
  std::optional<Cases> integer(mlir::Value value);
  std::optional<Cases> affine(mlir::Value value);
  std::optional<Cases> division(mlir::Value value, mlir::Operation *op);
  std::optional<Cases> bits(mlir::Operation *op);
  std::optional<Cases> selection(mlir::Operation *op);
  std::optional<Cases> conversion(mlir::Operation *op);
  template <typename Function>
  std::optional<Cases> map(mlir::Value a, mlir::Value b, Function function);
  std::optional<Cases> leaf(mlir::Value value);
  std::optional<mlir::AffineExpr> extent(llvm::StringRef text);
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
  llvm::SmallVector<Choice> path; // what holds where the value being read is asked for
  std::vector<Symbol> symbols;
  llvm::SmallVector<mlir::AffineExpr> facts;
  llvm::DenseMap<mlir::Value, bool> dependence;
  llvm::DenseMap<mlir::Value, unsigned> unknowns;
  llvm::DenseMap<mlir::Value, mlir::Value> hoisted;
};

} // namespace moa

#endif // MOA_ANALYSIS_GUARDREADER_H
