//===- FoldPlan.h - plan of a fold in blocks of keys ------------*- C++ -*-===//
//
// A fold over keys j, in a nest whose lanes are rows i, can run in blocks of keys if its inner
// reductions and its states with axes are contractions:
//
//   scores        s(i, j) = Σ_k u(i, k) · v(j, k)      an inner fold
//   accumulators  t(i, d) = ⊕_j p(i, j) · g(j, d)      a state that carries axes
//
// On tensor cores a term may be a sum of several products.
//
// States are computed block by block in *passes*: pass 0 computes the states without references
// (such as the running maximum), pass n+1 those whose references are known after pass n. With
// d' = d ⊛ (the block's d), a state t becomes c(d, d') ⊗ t ⊕ ⊕_j F(j, d'): the online softmax.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_CONVERSION_ONFTOVECTOR_FOLDPLAN_H
#define MOA_CONVERSION_ONFTOVECTOR_FOLDPLAN_H

#include "lib/Analysis/OnDemand.h"
#include "lib/Conversion/ONFToVector/Dependence.h"
#include "llvm/ADT/MapVector.h"
#include <limits>
#include <optional>

namespace moa::rows {

/// A product of values, divided by others, and rounded to `narrow` unless that is null.
struct Factors {
  llvm::SmallVector<mlir::Value, 2> values, divisors;
  mlir::Type narrow;
  bool empty() const { return values.empty() && divisors.empty(); }
  bool operator==(const Factors &other) const {
    return values == other.values && divisors == other.divisors && narrow == other.narrow;
  }
};

// Ops are handles whose accessors are not const, hence `mutable`.

/// The contractions that a machine supports besides sums of float products. Sums of i8 products can
/// have up to `mostTerms` terms, and with `asFloats` must be read as one f32. With `ofProducts`, a
/// term may be a sum of products, whose roundings are explicit in the IR.
struct MachineSums {
  int64_t mostTerms = 0;
  bool asFloats = false;
  bool ofProducts = false;
};

/// Tensor cores of GPUs.
inline constexpr MachineSums kTensorSums{std::numeric_limits<int64_t>::max(), true, true};

/// A product of row factors and key factors.
struct FactorPair {
  Factors row, key;
};

/// An inner fold s(i, j) = Σ_k row(i, k) · key(j, k). In attention, Q·Kᵀ.
struct Score {
  mutable onf::FoldOp fold;
  /// The value that is read: the result or, for integers, the one f32 that it is converted to.
  mlir::Value value;
  mlir::Type type; // of the sum
  int64_t extent;
  Factors row, key;
  llvm::SmallVector<onf::LoadOp, 1> rowLoads; // of (i, k), contiguous along k
  llvm::SmallVector<FactorPair, 0> further{}; // products of the same sum
  bool isInteger() const { return type.isIndex(); }
};

/// A state with axes d: t(i, d) = ⊕_j row(i, j) · key(j, d). In attention, the accumulator P·V.
struct Accumulator {
  mutable onf::AccOp acc;
  unsigned pass;
  mlir::Type type;
  llvm::SmallVector<int64_t, 2> extents;
  Factors row, key;
  unsigned operand = 0;                       // number of the row operand; equal ones are shared
  llvm::SmallVector<FactorPair, 0> further{}; // products of the same sum
};

/// A state without axes.
struct Scalar {
  mutable onf::AccOp acc;
  unsigned pass;
};

struct FoldPlan {
  unsigned passes = 0;
  llvm::SmallVector<Scalar, 4> scalars;
  llvm::SmallVector<Accumulator, 1> accumulators;
  llvm::SmallVector<Score, 1> scores;
  unsigned operands = 0; // distinct row operands of accumulators
  /// Expensive values of (i, j) that a later pass uses, with the pass that computes them.
  llvm::MapVector<mlir::Value, unsigned> kept;
  /// Expensive values of j alone.
  llvm::SetVector<mlir::Value> keyValues;
  /// Loads of (i, j) that are contiguous along j, in states and in the guard.
  llvm::SmallVector<onf::LoadOp> rowLoads, guardLoads;
};

/// Returns the plan of a fold over rows, or nothing if its form does not allow one. If an inner
/// fold cannot be a score or a state with axes cannot be an accumulator, `why` receives the first
/// such reason.
std::optional<FoldPlan> planFold(onf::FoldOp fold, mlir::Value laneIndex, Dependence &deps, OnDemand &onDemand,
                                 std::string *why = nullptr, MachineSums sums = {});

/// Returns the user's name of an index of a nest, a fold or a state's axis.
llvm::StringRef getIndexName(mlir::Value index);
/// Returns the user's name of the array that a load reads.
llvm::StringRef getArrayName(onf::LoadOp load);

} // namespace moa::rows

#endif // MOA_CONVERSION_ONFTOVECTOR_FOLDPLAN_H
