//===- RoundingErrorExpr.h - bounds as expressions --------------*- C++ -*-===//
//
// An error bound is an expression that is never negative: a sum of products with positive
// coefficients (a posynomial) over atoms. Atoms are statistics of the inputs, extents of the
// kernel, unit roundoffs of operands and operations (*parameters*), and monotone functions of other
// expressions. A divisor is a factor with a negative power. Expressions are non-decreasing in every
// statistic except the least magnitudes and norms. Nothing is subtracted, so evaluation in double
// has no cancellation.
//
// An unknown quantity is an atom too: it has the value ∞ and a reason. Terms multiplied by 0 are
// dropped, so an unknown magnitude affects only the bounds that use it.
//
// Atoms are hash-consed in a pool, so the cost of an operation is linear in the number of different
// atoms.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_ACCURACY_ROUNDINGERROREXPR_H
#define MOA_ACCURACY_ROUNDINGERROREXPR_H

#include "lib/Support/SymExpr.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/JSON.h"
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace moa {

class ErrorExprPool;

/// A magnitude of an input, found in one pass over the input. Every axis is at a free index, is an
/// axis of the norm, or is one over which the extreme of the norms is taken.
struct MagnitudeStatistic {
  enum class Kind { MaxAbs, MaxL2, MaxL1, MinAbs, MinL2 };
  static constexpr int kExtreme = -1, kNorm = -2;
  std::string array;
  Kind kind = Kind::MaxAbs;
  /// Per axis: kExtreme, kNorm, or the number of a free index.
  std::vector<int> axes;
};

class ErrorExpr {
public:
  struct Atom;
  using Factors = std::vector<std::pair<const Atom *, int>>; ///< sorted by number
  struct FactorsLess {
    bool operator()(const Factors &a, const Factors &b) const;
  };
  using Terms = std::map<Factors, double, FactorsLess>;

  ErrorExpr() = default;
  /// A constant, which must not be negative.
  ErrorExpr(double value);
  explicit ErrorExpr(const Atom *atom, int power = 1);

  ErrorExpr operator+(const ErrorExpr &other) const;
  ErrorExpr operator*(const ErrorExpr &other) const;
  ErrorExpr &operator+=(const ErrorExpr &other);
  bool operator==(const ErrorExpr &other) const { return terms == other.terms; }

  bool isZero() const { return terms.empty(); }
  std::optional<double> getConstant() const;
  bool isUnknown() const;
  /// Returns true if every term is at most the same term of `other`.
  bool isDominatedBy(const ErrorExpr &other) const;
  const Terms &getTerms() const { return terms; }
  /// Returns the sum of the terms for which `keep` holds.
  ErrorExpr filter(llvm::function_ref<bool(const Factors &)> keep) const;
  /// Returns all atoms, including those inside functions, operands first.
  std::vector<const Atom *> collectAtoms() const;

private:
  friend class ErrorExprPool;
  friend class ErrorSubstitution;
  void add(const Factors &factors, double coefficient);
  Terms terms;
};

struct ErrorExpr::Atom {
  enum class Kind {
    Statistic,
    Extent,
    Parameter,
    Tiny,    ///< the least normal number η of the compute type
    Unknown, ///< ∞
    Exp,
    Expm1,
    Sqrt,
    Recip,
    Max,
    Min,
    Group, ///< its operand, a sum that is not multiplied out
  };
  Kind kind;
  unsigned number;
  ErrorExprPool *pool;
  MagnitudeStatistic statistic;
  SymExpr extent; ///< its magnitude is used
  unsigned parameter = 0;
  std::string text; ///< the name of a Parameter, the reason of an Unknown
  std::vector<ErrorExpr> operands;
};

struct ErrorBindings {
  llvm::function_ref<std::optional<double>(const MagnitudeStatistic &)> statistic;
  llvm::function_ref<std::optional<int64_t>(llvm::StringRef)> symbol;
};

class ErrorExprPool {
public:
  using Expr = ErrorExpr;
  using Atom = ErrorExpr::Atom;

  Expr statistic(MagnitudeStatistic statistic);
  Expr extent(const SymExpr &extent);
  Expr parameter(unsigned number, const std::string &name);
  Expr tiny();
  Expr unknown(const std::string &reason);
  Expr exp(const Expr &e);
  Expr expm1(const Expr &e);
  Expr sqrt(const Expr &e);
  Expr recip(const Expr &e);
  Expr max(const Expr &a, const Expr &b);
  Expr min(const Expr &a, const Expr &b);
  Expr group(const Expr &e);
  /// Returns the sum, as one factor if it has many terms, so that later products do not grow with
  /// it.
  Expr compact(const Expr &e);

  /// Replaces every atom for which `replace` returns an expression, also inside functions.
  Expr substitute(const Expr &e, llvm::function_ref<std::optional<Expr>(const Atom &)> replace);
  /// Evaluates an expression, rounded upwards by a factor 1 + 1e-6. Returns ∞ if an atom is
  /// unknown, NaN or without a value. `tinyValue` is the least normal number.
  static double evaluate(const Expr &e, const ErrorBindings &bindings, double tinyValue = 0x1p-126);

private:
  Expr intern(Atom atom, const std::string &key);
  Expr function(Atom::Kind kind, std::vector<Expr> operands);
  std::deque<Atom> atoms;
  std::map<std::string, const Atom *> known;
};

/// Prints expressions with the user's names. Long sub-expressions that occur more than once get a
/// name.
class ErrorExprText {
public:
  /// `indexName` returns the name of a free index.
  explicit ErrorExprText(llvm::function_ref<std::string(int)> indexName) : indexName(indexName) {}
  /// Prints the expressions together; appends the lines of the named parts to `definitions`.
  std::vector<std::string> print(llvm::ArrayRef<ErrorExpr> expressions, std::vector<std::string> &definitions);
  std::string name(const MagnitudeStatistic &statistic) const;
  /// Returns {terms: [{coefficient, factors: [{atom, power}]}]}. Every atom is appended to `atoms`
  /// once, operands first.
  llvm::json::Value toJSON(const ErrorExpr &e, llvm::json::Array &atoms, std::set<unsigned> &listed) const;

private:
  std::string sum(const ErrorExpr &e);
  std::string product(const ErrorExpr::Factors &factors, double coefficient);
  std::string atom(const ErrorExpr::Atom &atom);
  std::string writeAtom(const ErrorExpr::Atom &atom);
  llvm::json::Object atomToJSON(const ErrorExpr::Atom &atom) const;
  llvm::function_ref<std::string(int)> indexName;
  std::map<unsigned, unsigned> uses;
  std::map<unsigned, std::string> texts;
  std::vector<std::string> *definitions = nullptr;
};

} // namespace moa

#endif // MOA_ACCURACY_ROUNDINGERROREXPR_H
