//===- Subscripts.h - the indices that a flat address stands for -*- C++ -*-===//
//
// The address of a load is linear in the stride symbols of its array, so that the
// index along every axis is what the axis's stride is multiplied with.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_ANALYSIS_SUBSCRIPTS_H
#define MOA_ANALYSIS_SUBSCRIPTS_H

#include "dialects/ONF/IR/ONF.h"
#include "lib/Support/SymExpr.h"
#include <map>
#include <optional>
#include <set>
#include <string>

namespace moa {

/// The factor of a symbol in every term of an expression that is linear in the
/// symbols of `names`; nothing where a term has none of them.
std::optional<std::map<std::string, SymExpr>> splitBySymbols(const SymExpr &expr,
                                                             const std::set<std::string> &names);

/// The index along one axis: constant + Σ factor · value.
struct Subscript {
  SymExpr constant;
  llvm::SmallVector<std::pair<mlir::Value, SymExpr>, 2> terms;
};

/// One subscript per axis of the array, or nothing where the address is not linear in
/// the array's strides.
std::optional<llvm::SmallVector<Subscript>> getSubscripts(onf::LoadOp load);

} // namespace moa

#endif // MOA_ANALYSIS_SUBSCRIPTS_H
