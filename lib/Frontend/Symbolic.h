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

/// An integer over the symbols, or a real number if `integer` is empty.
struct Number {
  std::optional<SymExpr> integer;
  double real = 0;
  /// Returns the value as a real number, or nothing if it depends on symbols.
  std::optional<double> getReal() const;
};

/// Returns a fn b for + - * / % and (ignoring b) negation. Returns nothing if `fn` has no symbolic
/// form. Also sets `why` if the result divides by zero, overflows 64 bits or is too large.
std::optional<SymExpr> combineSymbolic(ScalarFn fn, const SymExpr &a, const SymExpr &b, std::string &why);

/// Evaluates an expression of the kernel's header that may contain only symbols and integers.
mlir::FailureOr<SymExpr> evaluateSymbolic(const Expr &expr, const SymbolTable &symbols, const Reporter &reporter);

/// Evaluates an expression of the header that may also contain real numbers: the default of a
/// constant, the ends of a range of floats. For example `-1e30`, `0.5 * D`.
mlir::FailureOr<Number> evaluateNumber(const Expr &expr, const SymbolTable &symbols, const Reporter &reporter);

/// Returns a fn b of real numbers for + - * / and negation, or nothing for other functions.
std::optional<double> combineReals(ScalarFn fn, double a, double b);

std::string realText(double value);

} // namespace moa::frontend

#endif // MOA_FRONTEND_SYMBOLIC_H
