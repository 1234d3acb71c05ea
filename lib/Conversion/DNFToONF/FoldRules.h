//===- FoldRules.h - the rules R0, R1 and R3 on expressions -----*- C++ -*-===//
//
// A cascade t = ⊕_j F(j, d) that reads the result d of an earlier reduction
// over the same range runs in one pass if F = G(j) ⊗ H(d): then the factor
// c(d, d') = H(d') / H(d) repairs the state when d grows. The procedure is
// structural, sound and incomplete; where it fails it returns the subterm that
// blocks it. (Rabe and Staats 2112.05682 and Milakov and Gimelshein 1805.02867
// are the special case d = max, H = exp.)
//
//===----------------------------------------------------------------------===//
#ifndef MOA_CONVERSION_DNFTOONF_FOLDRULES_H
#define MOA_CONVERSION_DNFTOONF_FOLDRULES_H

#include "lib/Conversion/DNFToONF/Expr.h"
#include "llvm/ADT/SetVector.h"

namespace moa {

/// Reductions whose values are states of the fold under construction.
using StateSet = llvm::SmallSetVector<Expr, 4>;

/// e = G ⊗ H with G free of the states and H free of the fold's indices, or
/// the subterm that blocks such a split.
struct Split {
  Expr g = nullptr, h = nullptr;
  Expr blocked = nullptr;
  explicit operator bool() const { return g != nullptr; }
};

/// How F is repaired when a state it reads changes.
struct Repair {
  llvm::SmallVector<Expr> refs;       // the states H reads, in order
  llvm::SmallVector<double> singular; // per ref; NaN if there is none
  Expr g = nullptr, h = nullptr;      // F = G ⊗ H, the factor H over the states
  /// Where F is 0 that the state leaves out, its identity being another: the indices whose values
  /// are those at which a ref is singular.
  llvm::SmallVector<Expr> leftOut;
  /// The terms of all indices so far vanish when the state changes: the state
  /// starts again, and H is not used.
  bool resets = false;
  /// F = W · Π Dᵢ, G ⊗ H being W and Dᵢ = gᵢ + hᵢ: F where it is present, the hᵢ, and the sums
  /// that the repair adds.
  Expr term = nullptr;
  llvm::SmallVector<Expr> from;
  struct Other {
    Expr sum; // Σ W · Π of fewer differences
    /// The sets, as bits, of the differences that it lacks.
    llvm::SmallVector<unsigned> lacks;
    unsigned degree = 0; // how many it has
  };
  llvm::SmallVector<Other> others;
  /// The subterm that blocks, and why, when there is no repair.
  Expr blocked = nullptr;
  std::string reason;
  bool valid() const { return !blocked; }
};

class FoldRules {
public:
  FoldRules(ExprContext &exprs) : exprs(exprs) {}

  /// Multiplicative split of a value with respect to `states`; `indices` are
  /// the free indices of the fold (its own and the carried ones).
  Split splitMul(Expr e, const StateSet &states, llvm::ArrayRef<int64_t> indices);
  /// Additive split.
  Split splitAdd(Expr e, const StateSet &states, llvm::ArrayRef<int64_t> indices);

  /// R3 for sums of powers of differences (Moments.cpp): the repair of Σ W · Π (gᵢ + hᵢ) over the
  /// `present` j; its `others` are sums that do not cascade further than `t`.
  /// `any` says that the range is not empty.
  Repair moments(Expr t, Expr body, Expr present, Expr any, const StateSet &states, int64_t j,
                 llvm::function_ref<Expr(Expr)> stateBody);

  /// A factor g(j) + h(states).
  struct Difference {
    Expr base, g, h;
  };
  /// body = weight · Π differences, the weight without what mixes the index with states.
  bool takesDifferences(Expr body, const StateSet &states, int64_t j, Expr &weight,
                        llvm::SmallVectorImpl<Difference> &differences);
  /// Whether a difference is that of elements from their own maximum or minimum: it never
  /// changes its sign, and grows in size with every step of the extreme.
  bool isExtremeDifference(const Difference &difference, const StateSet &states,
                           llvm::function_ref<Expr(Expr)> stateBody);
  /// `e` where `any` holds: selections by it pick their first operand.
  Expr whereAny(Expr e, Expr any);

  /// R3 for the reduction `t`, whose body at index `j` is `body`: the repair
  /// with respect to `states`, whose bodies at `j` are given by `stateBody`.
  Repair repair(Expr t, Expr body, const StateSet &states, llvm::ArrayRef<int64_t> indices,
                llvm::function_ref<Expr(Expr)> stateBody);

  /// H(new)/H(old): `h` with each state read as given.
  Expr ratio(Expr h, const StateSet &states, llvm::function_ref<Expr(Expr)> oldState,
             llvm::function_ref<Expr(Expr)> newState);

  /// h(new) − h(old).
  Expr difference(Expr h, const StateSet &states, llvm::function_ref<Expr(Expr)> oldState,
                  llvm::function_ref<Expr(Expr)> newState);
  /// What an other of a repair is multiplied with where the differences move by `by`.
  Expr coefficient(const Repair::Other &other, llvm::ArrayRef<Expr> by);

  /// Whether every state has its old value, as a condition.
  Expr unchanged(const StateSet &states, llvm::function_ref<Expr(Expr)> oldState,
                 llvm::function_ref<Expr(Expr)> newState);

  /// Factors of a product: base and whether it divides.
  struct Factor {
    Expr base;
    bool divides;
  };
  llvm::SmallVector<Factor> factors(Expr e);
  Expr product(llvm::ArrayRef<Factor> factors, mlir::Type type);
  /// The product `e` as it is written, with each factor, numbered as factors()
  /// lists them, replaced by what `with` gives for it; null leaves it out.
  Expr rebuildProduct(Expr e, llvm::function_ref<Expr(unsigned, Expr)> with);

  bool reads(Expr e, const StateSet &states);
  /// Whether the value is known not to be negative, wherever it is a number.
  bool isNonNegative(Expr e);

private:
  bool free(Expr e, llvm::ArrayRef<int64_t> indices);
  Expr meanWeight(const Difference &difference, Expr weight, const StateSet &states,
                  llvm::function_ref<Expr(Expr)> stateBody);
  bool guardMoments(Repair &repair, Expr weight, llvm::ArrayRef<Expr> counts,
                    const StateSet &states, llvm::function_ref<Expr(Expr)> stateBody);
  /// Direction of growth in the running states: −1, 0, +1, or nothing if it is
  /// not monotone; and whether the value is known not to be negative.
  struct Trend {
    std::optional<int> direction;
    bool nonNegative = false;
  };
  Trend trend(Expr e, const StateSet &states);
  Trend trendOf(Expr e, const StateSet &states);
  Split splitMulOf(Expr e, const StateSet &states, llvm::ArrayRef<int64_t> indices);
  Split splitAddOf(Expr e, const StateSet &states, llvm::ArrayRef<int64_t> indices);
  bool isPositive(Expr e);
  bool findNonNegative(Expr e);
  bool findPositive(Expr e);
  std::optional<double> evaluate(Expr e, llvm::function_ref<std::optional<double>(Expr)> leaf);
  /// The one state on which `body` depends, where terms are the identity of t's
  /// monoid unless their index attains that state, a maximum or minimum.
  Expr attained(Expr t, Expr body, const StateSet &states,
                llvm::function_ref<Expr(Expr)> stateBody);
  bool vanishesAt(Expr g, Expr stateBody, double singular);
  std::optional<double> singularPoint(Expr h, Expr state, const StateSet &states);

  /// What is known of a subterm while one question is answered: a term that is read twice
  /// at each level of a chain is looked at once.
  struct Memo {
    llvm::DenseMap<Expr, Split> product, sum;
    llvm::DenseMap<Expr, Trend> trends;
  };
  /// The answer for `e` that `table` has or `find` finds.
  template <typename T>
  T remember(llvm::DenseMap<Expr, T> Memo::*table, Expr e, llvm::function_ref<T()> find) {
    Memo own;
    bool isOutermost = !memo;
    if (isOutermost)
      memo = &own;
    auto it = (memo->*table).find(e);
    T result = it != (memo->*table).end() ? it->second : find();
    (memo->*table)[e] = result;
    if (isOutermost)
      memo = nullptr;
    return result;
  }

  ExprContext &exprs;
  Memo *memo = nullptr;
  llvm::DenseMap<Expr, bool> nonNegative, positive;
};

} // namespace moa

#endif // MOA_CONVERSION_DNFTOONF_FOLDRULES_H
