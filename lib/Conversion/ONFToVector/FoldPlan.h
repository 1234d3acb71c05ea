//===- FoldPlan.h - how a fold runs in blocks -------------------*- C++ -*-===//
//
// A fold over j in a nest whose lanes are rows i can run in blocks of j if its
// inner reductions and carried states are contractions:
//
//   scores    s(i, j) = Σ_k u(i, k) · v(j, k)      an inner fold
//   carriers  t(i, d) = ⊕_j p(i, j) · g(j, d)      a state that carries axes
//
// Where the machine adds several products up in one sum, a term may be a sum of products.
//
// The states are then computed block by block in *passes*: pass 0 those that
// need no other state, pass n+1 those whose refs are known after pass n. With
// d' = d ⊛ (the block's d), a state becomes c(d, d') ⊗ t ⊕ ⊕_j F(j, d').
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

/// A product of values, divided by others, rounded to `narrow` if that is not
/// null.
struct Factors {
  llvm::SmallVector<mlir::Value, 2> values, divisors;
  mlir::Type narrow;
  bool empty() const { return values.empty() && divisors.empty(); }
  bool operator==(const Factors &other) const {
    return values == other.values && divisors == other.divisors && narrow == other.narrow;
  }
};

// Ops are handles whose accessors are not const, hence `mutable`.

/// Which contractions a machine takes. Sums of products of i8: of so many terms or fewer, all of
/// them or those that are read as one float. And whether a term may be a sum of several products,
/// whose computed operands say themselves what they are rounded to.
struct MachineSums {
  int64_t mostTerms = 0;
  bool asFloats = false;
  bool ofProducts = false;
};

/// What tensor cores take.
inline constexpr MachineSums kTensorSums{std::numeric_limits<int64_t>::max(), true, true};

/// A product of a factor of the rows and one of the keys.
struct FactorPair {
  Factors row, key;
};

/// s(i, j) = Σ_k row(i, k) · key(j, k), an inner fold.
struct Score {
  mutable onf::FoldOp fold;
  /// What is read of it: its result or, of integers, the one value of f32 that this is
  /// converted to.
  mlir::Value value;
  mlir::Type type; // of the sum
  int64_t extent;
  Factors row, key;
  llvm::SmallVector<onf::LoadOp, 1> rowLoads; // of (i, k), contiguous along k
  llvm::SmallVector<FactorPair, 0> further{}; // products of the same sum
  bool isInteger() const { return type.isIndex(); }
};

/// A state with axes d: t(i, d) = ⊕_j row(i, j) · key(j, d).
struct Carrier {
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
  llvm::SmallVector<Carrier, 1> carriers;
  llvm::SmallVector<Score, 1> scores;
  unsigned operands = 0; // distinct row operands of carriers
  /// Values of (i, j) that cost much and are used in a later pass, with the pass
  /// that computes them.
  llvm::MapVector<mlir::Value, unsigned> kept;
  /// Values of j alone that cost much.
  llvm::SetVector<mlir::Value> keyValues;
  /// Loads of (i, j) that are contiguous along j, in the states and in the guard.
  llvm::SmallVector<onf::LoadOp> rowLoads, guardLoads;
};

/// The plan of a fold over rows, or nothing where its form does not allow one. `why`
/// receives what keeps the first inner fold from being a score or the first state with
/// axes from being a carrier, and is left alone where nothing does.
std::optional<FoldPlan> planFold(onf::FoldOp fold, mlir::Value laneIndex, Dependence &deps,
                                 OnDemand &onDemand, std::string *why = nullptr,
                                 MachineSums sums = {});

/// The user's name of a loop index, of a fold's, a nest's or a state's axis.
llvm::StringRef getIndexName(mlir::Value index);
/// The user's name of the array a load reads.
llvm::StringRef getArrayName(onf::LoadOp load);

} // namespace moa::rows

#endif // MOA_CONVERSION_ONFTOVECTOR_FOLDPLAN_H
