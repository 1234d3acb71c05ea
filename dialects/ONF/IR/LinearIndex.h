//===- LinearIndex.h - linear indices of array elements ---------*- C++ -*-===//
#ifndef MOA_DIALECTS_ONF_IR_LINEARINDEX_H
#define MOA_DIALECTS_ONF_IR_LINEARINDEX_H

#include "lib/Support/SymExpr.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/MapVector.h"

namespace moa {

/// constant + Σ factor · value. No factor is 0.
struct LinearIndex {
  SymExpr constant;
  llvm::MapVector<mlir::Value, SymExpr> terms;
  /// Adds factor · value.
  void add(mlir::Value value, const SymExpr &factor);
  bool operator==(const LinearIndex &other) const;
  /// Returns the value if the index is just one value, else null.
  mlir::Value getValue() const;
};

namespace onf {

/// An index in two parts: size · group + member.
struct IndexParts {
  mlir::Value group, member;
  SymExpr size;
};

/// Returns the parts of an index that has no other terms.
std::optional<IndexParts> getParts(const LinearIndex &index);

/// The index along one axis, by numbers of terms: constant + Σ factor · term. No factor is 0.
struct Subscript {
  SymExpr constant;
  std::map<unsigned, SymExpr> factors;
  bool operator==(const Subscript &other) const;
  /// Returns the form as an expression, in which $k stands for term k.
  SymExpr getExpr() const;
  /// Returns the subscript with this expression, or nothing if it is not linear in $0, $1, ….
  static std::optional<Subscript> get(const SymExpr &expr);
};

llvm::hash_code hash_value(const std::vector<Subscript> &axes);

/// The distance of an element from the first one of its array: constant + Σ coefficient · term,
/// with one coefficient per term, over the symbols and the strides.
struct FlatAddress {
  SymExpr constant;
  llvm::SmallVector<SymExpr> coefficients;
};

} // namespace onf
} // namespace moa

#endif // MOA_DIALECTS_ONF_IR_LINEARINDEX_H
