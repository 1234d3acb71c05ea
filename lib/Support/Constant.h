//===- Constant.h - the value of an expression without symbols --*- C++ -*-===//
#ifndef MOA_SUPPORT_CONSTANT_H
#define MOA_SUPPORT_CONSTANT_H

#include "lib/Support/SymExpr.h"

namespace moa {

/// The value of an expression's text where no symbol occurs in it.
inline std::optional<int64_t> constantOf(llvm::StringRef text) {
  auto expression = SymExpr::parse(text);
  return expression ? expression->getConstant() : std::nullopt;
}

} // namespace moa

#endif // MOA_SUPPORT_CONSTANT_H
