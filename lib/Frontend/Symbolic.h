//===- Symbolic.h - integer expressions over symbols ------------*- C++ -*-===//
#ifndef MOA_FRONTEND_SYMBOLIC_H
#define MOA_FRONTEND_SYMBOLIC_H

#include "lib/Frontend/Reporter.h"
#include <map>

namespace moa::frontend {

/// Integers by name, and the real constants of a kernel.
struct SymbolTable : std::map<std::string, SymExpr> {
  std::map<std::string, double> reals;
};

/// An integer over the symbols, or a real number where `integer` is empty.
struct Number {
  std::optional<SymExpr> integer;
  double real = 0;
  /// The value as a real number; nothing if symbols decide it.
  std::optional<double> getReal() const;
};

/// a fn b for + - * / % and, with b ignored, negation. Fails without a value
/// when `fn` has no symbolic form, and with a reason in `why` when the result
/// divides by zero, overflows 64 bits or is unreasonably large.
std::optional<SymExpr> combineSymbolic(ScalarFn fn, const SymExpr &a, const SymExpr &b,
                                       std::string &why);

/// The value of an expression of the kernel's header, where only symbols and
/// integers stand.
mlir::FailureOr<SymExpr> evaluateSymbolic(const Expr &expr, const SymbolTable &symbols,
                                          const Reporter &reporter);

/// The value of an expression of the header where real numbers may stand too: the default
/// of a constant, the ends of a range of floats. For example `-1e30`, `0.5 * D`.
mlir::FailureOr<Number> evaluateNumber(const Expr &expr, const SymbolTable &symbols,
                                       const Reporter &reporter);

/// a fn b of real numbers for + - * / and negation; nothing for other functions.
std::optional<double> combineReals(ScalarFn fn, double a, double b);

/// "the real number 0.5".
std::string realText(double value);

} // namespace moa::frontend

#endif // MOA_FRONTEND_SYMBOLIC_H
