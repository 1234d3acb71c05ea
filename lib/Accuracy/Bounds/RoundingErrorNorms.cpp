//===- RoundingErrorNorms.cpp - norms of terms over an index --------------===//
#include "lib/Accuracy/Bounds/RoundingErrorWalk.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace moa;

bool moa::isTakenAsItIs(Value value) {
  Closure term = resolve({value, nullptr});
  Operation *op = term.value.getDefiningOp();
  if (!op)
    return false;
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return isTakenAsItIs(select.getTrueValue()) && isTakenAsItIs(select.getFalseValue());
  return isa<dnf::PsiOp>(op);
}

/// Returns the roundings of a blocked sum in any order (Lemma E9).
ErrorExpr ErrorWalk::sumRounding(const SymExpr &extent) {
  ErrorExpr count = pool.extent(extent);
  const RoundingModel &model = context.model;
  auto constant = count.getConstant();
  if (!constant || *constant > model.blockTerms)
    count = ErrorExpr(model.blockTerms) + ErrorExpr(1 / model.blockLength) * count;
  return count * rules.arithmetic;
}

ErrorExpr ErrorWalk::substituteIndices(const ErrorExpr &e, llvm::function_ref<std::optional<Value>(Value)> to) {
  return context.replaceIndices(e, [&](int number) {
    std::optional<Value> index = to(context.indices[number]);
    return index ? context.indexNumber(*index) : MagnitudeStatistic::kExtreme;
  });
}

void ErrorWalk::substituteIndices(ErrorValue &x, llvm::function_ref<std::optional<Value>(Value)> to) {
  for (ErrorExpr *e : {&x.relative, &x.absolute, &x.magnitude, &x.least})
    *e = substituteIndices(*e, to);
  if (x.distance)
    x.distance = substituteIndices(*x.distance, to);
  std::set<unsigned> facts;
  for (unsigned number : x.facts) {
    ErrorFact fact = rules.facts[number];
    if (fact.value)
      fact.value = substituteIndices(*fact.value, to);
    facts.insert(rules.fact(std::move(fact)));
  }
  x.facts = std::move(facts);
}

static std::optional<Value> asIndex(const Closure &term) {
  Closure other = resolve(term);
  if (isa<BlockArgument>(other.value) && other.value.getType().isIndex())
    return other.value;
  return std::nullopt;
}

/// Moves a bound on the term's value to the indices of the term.
ErrorExpr ErrorWalk::atIndices(const ErrorExpr &own, const Closure &term) {
  if (!term.environment)
    return own;
  return substituteIndices(own, [&](Value index) { return asIndex({index, term.environment}); });
}

ErrorExpr ErrorWalk::magnitude(const Closure &term) { return atIndices(of(term.value).magnitude, term); }
ErrorExpr ErrorWalk::least(const Closure &term) { return atIndices(of(term.value).least, term); }

bool ErrorWalk::dependsOn(const Closure &term, Value index) {
  if (!term.environment)
    return of(term.value).indices.count(index) || term.value == index;
  return llvm::any_of(of(term.value).indices, [&](Value own) {
    Closure other = resolve({own, term.environment});
    return isa<BlockArgument>(other.value) ? other.value == index : dependsOn(other, index);
  });
}

std::optional<ErrorExpr> ErrorWalk::normOfElement(dnf::PsiOp psi, const Closure &term, Value index, Norm kind) {
  MagnitudeStatistic statistic;
  statistic.array = context.arrayName(psi.getArray());
  statistic.kind = kind;
  bool hasNorm = false;
  for (Value operand : psi.getIndices()) {
    Closure subscript{operand, term.environment};
    std::optional<Value> plain = asIndex(subscript);
    if (plain && *plain == index) {
      if (hasNorm)
        return std::nullopt; // a diagonal
      hasNorm = true;
      statistic.axes.push_back(MagnitudeStatistic::kNorm);
    } else if (dependsOn(subscript, index)) {
      return std::nullopt;
    } else {
      statistic.axes.push_back(plain ? context.indexNumber(*plain) : MagnitudeStatistic::kExtreme);
    }
  }
  if (!hasNorm)
    return std::nullopt;
  return pool.statistic(statistic);
}

std::optional<ErrorExpr> ErrorWalk::leastNorm(dnf::ReduceOp op, Closure x) {
  Value index = op.getBody().getArgument(0);
  if (getYield(op.getBody()).getPresent())
    return std::nullopt;
  x = resolveMagnitude(std::move(x));
  Operation *value = x.value.getDefiningOp();
  if (!value)
    return std::nullopt;
  auto operand = [&](unsigned k) { return Closure{value->getOperand(k), x.environment}; };
  if (auto psi = dyn_cast<dnf::PsiOp>(value)) {
    // A part of the axis may have a smaller norm.
    auto shape = cast<ArrayType>(psi.getArray().getType()).getShape();
    for (auto [subscript, extent] : llvm::zip(psi.getIndices(), shape))
      if (asIndex({subscript, x.environment}) == index && extent != op.getExtentAttr())
        return std::nullopt;
    return normOfElement(psi, x, index, Norm::MinL2);
  }
  if (isa<arith::DivFOp>(value) && !dependsOn(operand(1), index) && !magnitude(operand(1)).isUnknown())
    if (auto other = leastNorm(op, operand(0)))
      return *other * pool.recip(magnitude(operand(1)));
  if (isa<arith::MulFOp>(value))
    for (unsigned k : {0u, 1u})
      if (!dependsOn(operand(k), index) && !least(operand(k)).isZero())
        if (auto other = leastNorm(op, operand(1 - k)))
          return least(operand(k)) * *other;
  return std::nullopt;
}

std::optional<ErrorExpr> ErrorWalk::leastOfMagnitudes(dnf::ReduceOp op, Value term) {
  Closure resolved = resolve({term, nullptr});
  return isa_and_nonnull<math::AbsFOp>(resolved.value.getDefiningOp()) ? leastNorm(op, resolved) : std::nullopt;
}

std::optional<ErrorExpr> ErrorWalk::leastOfSum(dnf::ReduceOp op, Value term) {
  auto element = findSquared(resolve({term, nullptr}));
  if (!element)
    return leastOfMagnitudes(op, term);
  auto least = leastNorm(op, *element);
  return least ? std::optional(*least * *least) : std::nullopt;
}

/// Lemma E10: returns a bound on the norm of the terms x_j over the range of j. Adds to `rests` the
/// facts and requirements of the bound.
std::optional<ErrorExpr> ErrorWalk::norm(Closure term, Value index, Norm kind, ErrorValue &rests) {
  term = resolve(term);
  Operation *op = term.value.getDefiningOp();
  if (!op)
    return std::nullopt;
  auto operand = [&](unsigned k) { return Closure{op->getOperand(k), term.environment}; };
  if (auto psi = dyn_cast<dnf::PsiOp>(op))
    return normOfElement(psi, term, index, kind);
  if (isa<arith::NegFOp, math::AbsFOp>(op))
    return norm(operand(0), index, kind, rests);
  if (isa<arith::DivFOp, arith::MulFOp>(op))
    if (auto found = findQuotient(term, {index});
        found && found->norm != Norm::MaxAbs && !dependsOn(found->reduction, index)) {
      rests.requirements.push_back({op, found->reduction, found->place});
      if (found->norm == Norm::MaxL2 && kind == Norm::MaxL1) // Cauchy and Schwarz
        return pool.sqrt(pool.extent(found->reduction.value.getDefiningOp<dnf::ReduceOp>().getExtent())) * found->scale;
      return found->scale; // ‖x‖₂ ≤ ‖x‖₁
    }
  if (isa<arith::MulFOp>(op)) {
    // If both factors depend on the index: bound the norm by the largest magnitude of one factor
    // times the norm of the other.
    for (unsigned k : {0u, 1u})
      if (!dependsOn(operand(k), index))
        if (auto other = norm(operand(1 - k), index, kind, rests))
          return magnitude(operand(k)) * *other;
    if (kind == Norm::MaxL1) // Cauchy and Schwarz
      if (auto left = norm(operand(0), index, Norm::MaxL2, rests))
        if (auto right = norm(operand(1), index, Norm::MaxL2, rests))
          return *left * *right;
    for (unsigned k : {0u, 1u})
      if (!magnitude(operand(k)).isUnknown())
        if (auto other = norm(operand(1 - k), index, kind, rests))
          return magnitude(operand(k)) * *other;
    return std::nullopt;
  }
  if (!isa<arith::DivFOp>(op) || dependsOn(operand(1), index) || least(operand(1)).isZero())
    return std::nullopt;
  if (auto other = norm(operand(0), index, kind, rests))
    return *other * pool.recip(least(operand(1)));
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Elements divided by their norm
//===----------------------------------------------------------------------===//

std::optional<Closure> ErrorWalk::findSquared(const Closure &square) {
  Operation *op = square.value.getDefiningOp();
  auto operand = [&](unsigned k) { return Closure{op->getOperand(k), square.environment}; };
  bool isSquare = isa_and_nonnull<math::PowFOp>(op)
                      ? of(op->getOperand(1)).constant == 2.0
                      : isa_and_nonnull<arith::MulFOp>(op) && areEqual(operand(0), operand(1)); // not |x|·x
  return isSquare ? std::optional(resolveMagnitude(operand(0))) : std::nullopt;
}

/// Returns the norm that a reduction computes, or whose square it computes.
std::optional<ErrorWalk::Normalised> ErrorWalk::findNormIn(const Closure &x, const Closure &whole, bool isSquared,
                                                           const std::set<Value, ValueLess> &candidates) {
  auto reduce = whole.value.getDefiningOp<dnf::ReduceOp>();
  bool isSum = reduce.getMonoid() == Monoid::add;
  if (!isSum && reduce.getMonoid() != Monoid::max)
    return std::nullopt;
  Value yielded = getYield(reduce.getBody()).getValue();
  Closure own = resolveMagnitude(x);
  for (Value index : candidates) {
    Closure place{index, nullptr};
    Closure body = resolve({yielded, bindIndex(whole.environment, reduce.getBody().getArgument(0), place)});
    Operation *op = body.value.getDefiningOp();
    bool isSize = isa_and_nonnull<math::AbsFOp>(op) || of(yielded).nonnegative;
    std::optional<Closure> element = isSquared ? findSquared(body)
                                     : isSize  ? std::optional(resolveMagnitude(body))
                                               : std::nullopt;
    if (element && areEqual(own, *element))
      return Normalised{!isSum ? Norm::MaxAbs : isSquared ? Norm::MaxL2 : Norm::MaxL1, ErrorExpr(1), whole, place};
  }
  return std::nullopt;
}

/// Lemma E12: finds a norm of x such that y, or its root, is at least the norm divided by `scale`.
std::optional<ErrorWalk::Normalised> ErrorWalk::findNorm(const Closure &x, Closure y, bool isSquared,
                                                         const std::set<Value, ValueLess> &candidates) {
  y = resolve(std::move(y));
  Operation *op = y.value.getDefiningOp();
  if (!op)
    return std::nullopt;
  if (isa<dnf::ReduceOp>(op))
    return findNormIn(x, y, isSquared, candidates);
  auto operand = [&](unsigned k) { return Closure{op->getOperand(k), y.environment}; };
  auto isNonnegative = [&](unsigned k) { return of(op->getOperand(k)).nonnegative; };
  auto within = [&](unsigned k, const ErrorExpr &factor) {
    auto found = findNorm(x, operand(k), isSquared, candidates);
    if (found)
      found->scale = found->scale * factor;
    return found;
  };
  if (isa<math::SqrtOp>(op) && !isSquared) {
    auto found = findNorm(x, operand(0), /*isSquared=*/true, candidates);
    if (found)
      found->scale = pool.sqrt(found->scale);
    return found;
  }
  if (isa<arith::DivFOp>(op))
    return isNonnegative(1) ? within(0, magnitude(operand(1))) : std::nullopt;
  bool isSum = isa<arith::AddFOp>(op), isProduct = isa<arith::MulFOp>(op);
  if (!isSum && !isProduct && !isa<arith::MaximumFOp, arith::MaxNumFOp>(op))
    return std::nullopt;
  for (unsigned k : {0u, 1u}) {
    if ((isSum || isProduct) && !isNonnegative(1 - k))
      continue;
    if (isProduct && least(operand(1 - k)).isZero())
      continue;
    if (auto found = within(k, isProduct ? pool.recip(least(operand(1 - k))) : ErrorExpr(1)))
      return found;
  }
  return std::nullopt;
}

/// Bounds x/y, or x over the root of y. Factors of x multiply the bound of the remaining ones.
std::optional<ErrorWalk::Normalised> ErrorWalk::findOver(Closure x, const Closure &y, bool isRoot,
                                                         const std::set<Value, ValueLess> &candidates) {
  if (auto found = findNorm(x, y, /*isSquared=*/isRoot, candidates)) {
    if (isRoot)
      found->scale = pool.sqrt(found->scale);
    return found;
  }
  x = resolve(std::move(x));
  Operation *op = x.value.getDefiningOp();
  if (!isa_and_nonnull<arith::MulFOp>(op))
    return std::nullopt;
  auto operand = [&](unsigned k) { return Closure{op->getOperand(k), x.environment}; };
  for (unsigned k : {0u, 1u})
    if (ErrorExpr other = magnitude(operand(1 - k)); !other.isUnknown())
      if (auto found = findOver(operand(k), y, isRoot, candidates)) {
        found->scale = found->scale * other;
        return found;
      }
  return std::nullopt;
}

/// Bounds a quotient x/y, x·(c/y) or x·y^(−1/2) by the norm in y.
std::optional<ErrorWalk::Normalised> ErrorWalk::findQuotient(const Closure &term,
                                                             const std::set<Value, ValueLess> &candidates) {
  Operation *op = term.value.getDefiningOp();
  if (context.banned.count(op))
    return std::nullopt;
  auto operand = [&](unsigned k) { return Closure{op->getOperand(k), term.environment}; };
  if (isa<arith::DivFOp>(op))
    return findOver(operand(0), operand(1), /*isRoot=*/false, candidates);
  for (unsigned k : {0u, 1u}) {
    Closure factor = resolve(operand(k));
    Operation *inverse = factor.value.getDefiningOp();
    if (isa_and_nonnull<math::RsqrtOp>(inverse)) {
      if (auto found = findOver(operand(1 - k), {inverse->getOperand(0), factor.environment},
                                /*isRoot=*/true, candidates))
        return found;
    } else if (isa_and_nonnull<arith::DivFOp>(inverse)) {
      Closure numerator{inverse->getOperand(0), factor.environment},
          divisor{inverse->getOperand(1), factor.environment};
      auto found = findOver(operand(1 - k), divisor, /*isRoot=*/false, candidates);
      if (found && !magnitude(numerator).isUnknown()) {
        found->scale = found->scale * magnitude(numerator);
        return found;
      }
    }
  }
  return std::nullopt;
}
