//===- Subscripts.h - subscripts of a flat address --------------*- C++ -*-===//
//
// The address of a load is linear in the stride symbols of its array. The coefficient of an axis's
// stride is the index along that axis, so the subscripts can be recovered.
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

/// Returns the coefficient of each symbol of `names` in an expression that is linear in them.
/// Returns nothing if a term contains none of them.
std::optional<std::map<std::string, SymExpr>> splitBySymbols(const SymExpr &expr, const std::set<std::string> &names);

/// The index along one axis: constant + Σ factor · value.
struct Subscript {
  SymExpr constant;
  llvm::SmallVector<std::pair<mlir::Value, SymExpr>, 2> terms;
};

/// Returns one subscript per axis of the array, or nothing if the address is not linear in the
/// array's strides.
std::optional<llvm::SmallVector<Subscript>> getSubscripts(onf::LoadOp load);

} // namespace moa

#endif // MOA_ANALYSIS_SUBSCRIPTS_H
