//===- Symbolic.h - integer expressions over symbols ------------*- C++ -*-===//
#ifndef MOA_FRONTEND_SYMBOLIC_H
#define MOA_FRONTEND_SYMBOLIC_H

#include "lib/Frontend/Reporter.h"
#include <map>

namespace moa::frontend {

using SymbolTable = std::map<std::string, SymExpr>;

/// a fn b for + - * / % and, with b ignored, negation. Fails without a value
/// when `fn` has no symbolic form, and with a reason in `why` when the result
/// divides by zero, overflows 64 bits or is unreasonably large.
std::optional<SymExpr> combineSymbolic(ScalarFn fn, const SymExpr &a,
                                       const SymExpr &b, std::string &why);

/// The value of an expression of the kernel's header, where only symbols and
/// integers stand.
mlir::FailureOr<SymExpr> evaluateSymbolic(const Expr &expr,
                                          const SymbolTable &symbols,
                                          const Reporter &reporter);

} // namespace moa::frontend

#endif // MOA_FRONTEND_SYMBOLIC_H
