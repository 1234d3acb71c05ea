//===- FoldRules.h - the rules R0, R1 and R3 on expressions -----*- C++ -*-===//
//
// A cascade t = ⊕_j F(j, d) reads the result d of an earlier reduction over the same range. It runs
// in one pass if F = G(j) ⊗ H(d): whenever d becomes d', the state is rescaled by the correction
// factor c(d, d') = H(d') / H(d). With d = max and H = exp this gives the online softmax (Milakov
// and Gimelshein 1805.02867, Rabe and Staats 2112.05682). The procedure is structural, sound and
// incomplete. If it fails, it returns the subterm that blocks it.
//===----------------------------------------------------------------------===//
#ifndef MOA_CONVERSION_DNFTOONF_FOLDRULES_H
#define MOA_CONVERSION_DNFTOONF_FOLDRULES_H

#include "lib/Conversion/DNFToONF/Expr.h"
#include "llvm/ADT/SetVector.h"

namespace moa {

/// Reductions whose values are states of the fold under construction.
using StateSet = llvm::SmallSetVector<Expr, 4>;

/// A split e = G ⊗ H with G free of the states and H free of the fold's indices, or the subterm
/// that blocks the split.
struct Split {
  Expr g = nullptr, h = nullptr;
  Expr blocked = nullptr;
  explicit operator bool() const { return g != nullptr; }
};

/// How a state is rescaled when a state that its term F reads changes.
struct RescaleRule {
  llvm::SmallVector<Expr> refs;       // the states H reads, in order
  llvm::SmallVector<double> singular; // per ref: where H may not be finite; NaN if nowhere
  Expr g = nullptr, h = nullptr;      // F = G ⊗ H
  /// Conditions under which F is 0 but the state omits it, because its identity is not 0: a ref is
  /// singular at the index.
  llvm::SmallVector<Expr> leftOut;
  /// All earlier terms vanish when a ref changes: the state restarts from the identity, and H is
  /// not used.
  bool resets = false;
  /// Powers of differences: F = W · Π Dᵢ with W = G ⊗ H and Dᵢ = gᵢ + hᵢ. `term` is F where it is
  /// present, `from` are the hᵢ, and `others` are the sums that the rescale adds.
  Expr term = nullptr;
  llvm::SmallVector<Expr> from;
  struct Other {
    Expr sum; // Σ W · Π of fewer differences
    /// Sets of differences that the sum lacks, as bit masks.
    llvm::SmallVector<unsigned> lacks;
    unsigned degree = 0; // number of its differences
  };
  llvm::SmallVector<Other> others;
  /// The subterm that blocks the rescale, and the reason, if there is none.
  Expr blocked = nullptr;
  std::string reason;
  bool valid() const { return !blocked; }
};

class FoldRules {
public:
  FoldRules(ExprContext &exprs) : exprs(exprs) {}

  /// Splits a value multiplicatively with respect to `states`. `indices` are the free indices of
  /// the fold: its own and the carried ones.
  Split splitMul(Expr e, const StateSet &states, llvm::ArrayRef<int64_t> indices);
  /// Splits a value additively.
  Split splitAdd(Expr e, const StateSet &states, llvm::ArrayRef<int64_t> indices);

  /// Returns the rescale (R3, Moments.cpp) of Σ W · Π (gᵢ + hᵢ) over the `present` j. Its `others`
  /// cascade no further than `t`. `any` says that the range is not empty.
  RescaleRule moments(Expr t, Expr body, Expr present, Expr any, const StateSet &states, int64_t j,
                      llvm::function_ref<Expr(Expr)> stateBody);

  /// A factor g(j) + h(states).
  struct Difference {
    Expr base, g, h;
  };
  /// Splits body = weight · Π differences, where all factors of the weight split multiplicatively.
  /// Returns false if there is no such form.
  bool splitDifferences(Expr body, const StateSet &states, int64_t j, Expr &weight,
                        llvm::SmallVectorImpl<Difference> &differences);
  /// Returns whether a difference is of elements from their own maximum or minimum. It then never
  /// changes its sign, and its magnitude grows with every step of the extreme.
  bool isExtremeDifference(const Difference &difference, const StateSet &states,
                           llvm::function_ref<Expr(Expr)> stateBody);
  /// Returns `e` with every selection by `any` replaced by its first operand.
  Expr whereAny(Expr e, Expr any);

  /// Returns the rescale (R3) of the reduction `t`, whose body at its index is `body`, with respect
  /// to `states`. `stateBody` gives the bodies of the states at the same index.
  RescaleRule rescale(Expr t, Expr body, const StateSet &states, llvm::ArrayRef<int64_t> indices,
                      llvm::function_ref<Expr(Expr)> stateBody);

  /// Returns H(new)/H(old): the ratio of `h` with each state read as given.
  Expr correctionFactor(Expr h, const StateSet &states, llvm::function_ref<Expr(Expr)> oldState,
                        llvm::function_ref<Expr(Expr)> newState);

  /// Returns h(new) − h(old).
  Expr difference(Expr h, const StateSet &states, llvm::function_ref<Expr(Expr)> oldState,
                  llvm::function_ref<Expr(Expr)> newState);
  /// Returns the factor of `other` in the rescaled state if the differences change by `by`.
  Expr coefficient(const RescaleRule::Other &other, llvm::ArrayRef<Expr> by);

  /// Returns the condition that every state has its old value.
  Expr unchanged(const StateSet &states, llvm::function_ref<Expr(Expr)> oldState,
                 llvm::function_ref<Expr(Expr)> newState);

  /// A factor of a product: its base, and whether it divides.
  struct Factor {
    Expr base;
    bool divides;
  };
  llvm::SmallVector<Factor> factors(Expr e);
  Expr product(llvm::ArrayRef<Factor> factors, mlir::Type type);
  /// Rebuilds the product `e` with each factor, numbered as factors() lists them, replaced by the
  /// result of `with`. A null result drops the factor.
  Expr rebuildProduct(Expr e, llvm::function_ref<Expr(unsigned, Expr)> with);

  /// Returns the product of the factors of `e` that depend on an index, or of those that do not. Returns null if
  /// there are none.
  Expr factorsOn(Expr e, int64_t index, bool depend = true);

  bool reads(Expr e, const StateSet &states);
  /// Returns whether the value is known to be non-negative wherever it is a number.
  bool isNonNegative(Expr e);

private:
  bool free(Expr e, llvm::ArrayRef<int64_t> indices);
  bool readsState(Expr e, Expr state);
  bool shrinks(Expr h, const StateSet &states);
  Expr readAs(Expr e, const StateSet &states, llvm::function_ref<Expr(Expr)> state);
  Expr meanWeight(const Difference &difference, Expr weight, const StateSet &states,
                  llvm::function_ref<Expr(Expr)> stateBody);
  bool guardMoments(RescaleRule &rescale, Expr weight, llvm::ArrayRef<Expr> counts, const StateSet &states,
                    llvm::function_ref<Expr(Expr)> stateBody);
  /// Direction of growth in the running states: −1, 0, +1, or nothing if not monotone.
  /// `nonNegative`: the value is known to be non-negative.
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
  /// Returns the only state that `body` reads, if it is a maximum or minimum and terms are the
  /// identity of t's monoid unless their index attains it. Returns null otherwise.
  Expr attained(Expr t, Expr body, const StateSet &states, llvm::function_ref<Expr(Expr)> stateBody);
  bool vanishesAt(Expr g, Expr stateBody, double singular);
  std::optional<double> singularPoint(Expr h, Expr state, const StateSet &states);

  /// Memoized results for subterms during one query, so that a term that each level of a chain
  /// reads twice is visited once.
  struct Memo {
    llvm::DenseMap<Expr, Split> product, sum;
    llvm::DenseMap<Expr, Trend> trends;
  };
  /// Returns the entry of `e` in `table`; computes it with `find` if missing.
  template <typename T> T memoize(llvm::DenseMap<Expr, T> Memo::*table, Expr e, llvm::function_ref<T()> find) {
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
