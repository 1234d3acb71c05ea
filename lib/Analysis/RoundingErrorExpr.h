//===- RoundingErrorExpr.h - bounds as expressions --------------*- C++ -*-===//
//
// A bound on a rounding error is an expression that is never negative: a sum of
// products with positive coefficients (a posynomial) over atoms. Atoms are
// statistics of the inputs, extents of the kernel, the unit roundoffs of
// operands and operations (*parameters*), and monotone functions of other
// expressions. Everything is non-decreasing in every statistic but the least
// magnitudes and norms of an array, and nothing is ever subtracted, so that evaluation in
// doubles loses relative accuracy only. A divisor is a factor with a negative power.
//
// What is not known is an atom too, which has the value ∞ and says why. A term
// that is multiplied by 0 is dropped, so an unknown magnitude harms only what
// needs it.
//
// Atoms live in a pool and are shared: equal atoms are one, and work on an
// expression is linear in the number of different atoms.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_ANALYSIS_ROUNDINGERROREXPR_H
#define MOA_ANALYSIS_ROUNDINGERROREXPR_H

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

/// A magnitude of an input that one pass over the input finds. Every axis is an
/// index that stays free, an axis of the norm, or one over which the extreme of
/// the norms is taken.
struct MagnitudeStatistic {
  enum class Kind { MaxAbs, MaxL2, MaxL1, MinAbs, MinL2 };
  static constexpr int kExtreme = -1, kNorm = -2;
  std::string array;
  Kind kind = Kind::MaxAbs;
  /// Per axis kExtreme, kNorm, or the number of the free index that it is at.
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

  /// Zero.
  ErrorExpr() = default;
  /// A constant, not negative.
  ErrorExpr(double value);
  explicit ErrorExpr(const Atom *atom, int power = 1);

  ErrorExpr operator+(const ErrorExpr &other) const;
  ErrorExpr operator*(const ErrorExpr &other) const;
  ErrorExpr &operator+=(const ErrorExpr &other);
  bool operator==(const ErrorExpr &other) const { return terms == other.terms; }

  bool isZero() const { return terms.empty(); }
  std::optional<double> getConstant() const;
  bool isUnknown() const;
  /// Term by term at most `other`.
  bool isDominatedBy(const ErrorExpr &other) const;
  const Terms &getTerms() const { return terms; }
  /// The terms for which `keep` holds.
  ErrorExpr filter(llvm::function_ref<bool(const Factors &)> keep) const;
  /// All atoms, those inside functions included, operands first.
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
    Tiny,    ///< the least normal number of the compute type
    Unknown, ///< ∞
    Exp,
    Expm1,
    Sqrt,
    Recip,
    Max,
    Min,
    Group, ///< the operand itself, a sum that is not multiplied out
  };
  Kind kind;
  unsigned number;
  ErrorExprPool *pool;
  MagnitudeStatistic statistic;
  SymExpr extent; ///< its magnitude
  unsigned parameter = 0;
  std::string text; ///< of Parameter its name, of Unknown the reason
  std::vector<ErrorExpr> operands;
};

/// What the atoms of an expression stand for.
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
  /// The sum, as one factor if its terms are many: what is made of it grows no further with them.
  Expr compact(const Expr &e);

  /// The expression with every atom that `replace` knows replaced, in functions too.
  Expr substitute(const Expr &e, llvm::function_ref<std::optional<Expr>(const Atom &)> replace);
  /// The value, rounded upwards by a factor 1 + 1e-6; ∞ where something is unknown,
  /// NaN or not given. `tinyValue` is the least normal number.
  static double evaluate(const Expr &e, const ErrorBindings &bindings, double tinyValue = 0x1p-126);

private:
  Expr intern(Atom atom, const std::string &key);
  Expr function(Atom::Kind kind, std::vector<Expr> operands);
  std::deque<Atom> atoms;
  std::map<std::string, const Atom *> known;
};

/// Expressions as text, in the user's names: sub-expressions that occur more than once
/// and are long get a name.
class ErrorExprText {
public:
  /// The names of free indices by number.
  explicit ErrorExprText(llvm::function_ref<std::string(int)> indexName) : indexName(indexName) {}
  /// Text of all of them together; `definitions` gets the lines of the named parts.
  std::vector<std::string> print(llvm::ArrayRef<ErrorExpr> expressions,
                                 std::vector<std::string> &definitions);
  std::string name(const MagnitudeStatistic &statistic) const;
  /// {terms: [{coefficient, factors: [{atom, power}]}]}; atoms are listed once, operands
  /// first, in `atoms`.
  llvm::json::Value toJSON(const ErrorExpr &e, llvm::json::Array &atoms,
                           std::set<unsigned> &listed) const;

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

#endif // MOA_ANALYSIS_ROUNDINGERROREXPR_H
