//===- SymExpr.h - symbolic integer expressions -----------------*- C++ -*-===//
//
// Extents, strides and counts are integer expressions over the user's symbols: `N`, `H/G`, `N + M`,
// `2*B*N*128`. A SymExpr keeps such an expression in one canonical form: a polynomial with integer
// coefficients over atoms. An atom is a symbol, a floored quotient or a floored remainder. Two
// expressions that are equal as polynomials compare equal and print the same text.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_SUPPORT_SYMEXPR_H
#define MOA_SUPPORT_SYMEXPR_H

#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace moa {

class SymExpr {
public:
  struct Atom;
  using AtomPtr = std::shared_ptr<const Atom>;
  /// A product of atoms with positive powers, ordered by the atoms' text.
  using Monomial = std::vector<std::pair<AtomPtr, unsigned>>;
  struct MonomialLess {
    bool operator()(const Monomial &a, const Monomial &b) const;
  };
  using Terms = std::map<Monomial, int64_t, MonomialLess>;

  SymExpr() = default;
  SymExpr(int64_t value);
  static SymExpr symbol(llvm::StringRef name);
  static SymExpr product(const Monomial &monomial);

  /// Parses `+ - * / % ( )`, integers and symbols (identifiers, which may contain `.` and `$`: `Q.s0`).
  /// `/` floors, and `%` has the divisor's sign. Returns nothing for malformed text and sets
  /// `error` to the reason.
  static std::optional<SymExpr> parse(llvm::StringRef text, std::string *error = nullptr);

  /// Returns the canonical text; `parse(str())` returns the same expression.
  std::string str() const;

  SymExpr operator+(const SymExpr &other) const;
  SymExpr operator-(const SymExpr &other) const;
  SymExpr operator*(const SymExpr &other) const;
  SymExpr operator-() const { return SymExpr(0) - *this; }
  static SymExpr floorDiv(const SymExpr &a, const SymExpr &b);
  static SymExpr mod(const SymExpr &a, const SymExpr &b);

  bool operator==(const SymExpr &other) const;
  bool operator!=(const SymExpr &other) const { return !(*this == other); }
  friend llvm::hash_code hash_value(const SymExpr &expr);

  /// Returns the value if no symbol occurs.
  std::optional<int64_t> getConstant() const;
  bool isZero() const { return terms.empty(); }
  /// Returns the name if the expression is a single symbol.
  std::optional<std::string> getSymbol() const;

  /// Evaluates under an assignment of every symbol. Returns nothing if a symbol has no value, a
  /// divisor is zero or the value exceeds 63 bits.
  std::optional<int64_t> evaluate(llvm::function_ref<std::optional<int64_t>(llvm::StringRef)> value) const;
  std::optional<int64_t> evaluate(const std::map<std::string, int64_t> &values) const;
  SymExpr substitute(llvm::function_ref<std::optional<SymExpr>(llvm::StringRef)> value) const;

  /// Returns the asymptotic degree: the number of symbols in the largest product if all are large.
  /// A quotient has the degree of the dividend minus that of the divisor, a remainder that of the
  /// divisor. Constants have degree 0.
  unsigned getDegree() const;

  void collectSymbols(std::set<std::string> &names) const;
  const Terms &getTerms() const { return terms; }

private:
  static SymExpr fromAtom(AtomPtr atom) { return product({{std::move(atom), 1u}}); }
  static SymExpr fromDivision(bool isRemainder, const SymExpr &a, const SymExpr &b);
  void addTerm(const Monomial &monomial, int64_t coefficient);
  /// Returns a / b if the monomial b divides a as a polynomial.
  static std::optional<SymExpr> divideExactly(const SymExpr &a, const SymExpr &b);
  Terms terms;
};

struct SymExpr::Atom {
  enum class Kind { Symbol, FloorDiv, Mod };
  Kind kind = Kind::Symbol;
  std::string text; // canonical text, the atom's identity
  SymExpr lhs, rhs; // operands of FloorDiv and Mod
};

} // namespace moa

#endif // MOA_SUPPORT_SYMEXPR_H
