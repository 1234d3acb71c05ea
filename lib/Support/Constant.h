//===- Constant.h - values of expressions without symbols -------*- C++ -*-===//
#ifndef MOA_SUPPORT_CONSTANT_H
#define MOA_SUPPORT_CONSTANT_H

#include "lib/Support/SymExpr.h"

namespace moa {

/// Returns the value of an expression's text if it contains no symbol.
inline std::optional<int64_t> constantOf(llvm::StringRef text) {
  auto expression = SymExpr::parse(text);
  return expression ? expression->getConstant() : std::nullopt;
}

} // namespace moa

#endif // MOA_SUPPORT_CONSTANT_H
