//===- RoundingErrorNorms.cpp - sums of magnitudes over an index ----------===//
#include "lib/Analysis/RoundingErrorWalk.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace moa;

bool moa::isTakenAsItIs(Value value) {
  Term term = resolve({value, nullptr});
  Operation *op = term.value.getDefiningOp();
  if (!op)
    return false;
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return isTakenAsItIs(select.getTrueValue()) && isTakenAsItIs(select.getFalseValue());
  return isa<dnf::PsiOp>(op);
}

ErrorExpr ErrorWalk::extentOf(StringRef text) {
  auto extent = SymExpr::parse(text);
  return extent ? pool.extent(*extent) : pool.unknown("the extent " + text.str());
}

/// Roundings of a sum, in blocks and with any order of terms (Lemma E9).
ErrorExpr ErrorWalk::sumRounding(StringRef extent) {
  ErrorExpr count = extentOf(extent);
  const RoundingModel &model = context.model;
  auto constant = count.getConstant();
  if (!constant || *constant > model.blockTerms)
    count = ErrorExpr(model.blockTerms) + ErrorExpr(1 / model.blockLength) * count;
  return count * rules.arithmetic;
}

/// The expression with the indices of its statistics replaced; where there is none, the
/// extreme over the axis.
ErrorExpr ErrorWalk::substituteIndices(
    const ErrorExpr &e, llvm::function_ref<std::optional<Value>(Value)> to) {
  return pool.substitute(e, [&](const ErrorExpr::Atom &atom) -> std::optional<ErrorExpr> {
    if (atom.kind != ErrorExpr::Atom::Kind::Statistic)
      return std::nullopt;
    MagnitudeStatistic statistic = atom.statistic;
    for (int &axis : statistic.axes)
      if (axis >= 0) {
        std::optional<Value> index = to(context.indices[axis]);
        axis = index ? context.indexNumber(*index) : MagnitudeStatistic::kExtreme;
      }
    return pool.statistic(statistic);
  });
}

void ErrorWalk::substituteFacts(ErrorValue &x, llvm::function_ref<std::optional<Value>(Value)> to) {
  std::set<unsigned> facts;
  for (unsigned number : x.facts) {
    ErrorFact fact = rules.facts[number];
    if (fact.value)
      fact.value = substituteIndices(*fact.value, to);
    facts.insert(rules.fact(std::move(fact)));
  }
  x.facts = std::move(facts);
}

static std::optional<Value> asIndex(const Term &term) {
  Term other = resolve(term);
  if (isa<BlockArgument>(other.value) && other.value.getType().isIndex())
    return other.value;
  return std::nullopt;
}

ErrorExpr ErrorWalk::magnitude(const Term &term) {
  ErrorExpr own = of(term.value).magnitude;
  if (!term.environment)
    return own;
  return substituteIndices(
      own, [&](Value index) { return asIndex({index, term.environment}); });
}

bool ErrorWalk::dependsOn(const Term &term, Value index) {
  if (!term.environment)
    return of(term.value).indices.count(index) || term.value == index;
  return llvm::any_of(of(term.value).indices, [&](Value own) {
    Term other = resolve({own, term.environment});
    return isa<BlockArgument>(other.value) ? other.value == index : dependsOn(other, index);
  });
}

std::optional<ErrorExpr> ErrorWalk::normOfElement(dnf::PsiOp psi, const Term &term,
                                                  Value index, Norm kind) {
  MagnitudeStatistic statistic;
  auto array = cast<BlockArgument>(psi.getArray());
  statistic.array =
      cast<StringAttr>(context.kernel.getArgNames()[array.getArgNumber()]).str();
  statistic.kind = kind;
  bool hasNorm = false;
  for (Value operand : psi.getIndices()) {
    Term subscript{operand, term.environment};
    std::optional<Value> plain = asIndex(subscript);
    if (plain && *plain == index) {
      if (hasNorm)
        return std::nullopt; // a diagonal
      hasNorm = true;
      statistic.axes.push_back(MagnitudeStatistic::kNorm);
    } else if (dependsOn(subscript, index)) {
      return std::nullopt;
    } else {
      statistic.axes.push_back(plain ? context.indexNumber(*plain)
                                     : MagnitudeStatistic::kExtreme);
    }
  }
  if (!hasNorm)
    return std::nullopt;
  return pool.statistic(statistic);
}

/// Lemma E10: the norm of the terms x_j as j runs over its range. `rests` gets what it
/// rests on.
std::optional<ErrorExpr> ErrorWalk::norm(Term term, Value index, Norm kind,
                                         ErrorValue &rests) {
  term = resolve(term);
  Operation *op = term.value.getDefiningOp();
  if (!op)
    return std::nullopt;
  auto operand = [&](unsigned k) { return Term{op->getOperand(k), term.environment}; };
  if (auto psi = dyn_cast<dnf::PsiOp>(op))
    return normOfElement(psi, term, index, kind);
  if (isa<arith::NegFOp, math::AbsFOp>(op))
    return norm(operand(0), index, kind, rests);
  if (isa<arith::MulFOp>(op)) {
    for (unsigned k : {0u, 1u})
      if (!dependsOn(operand(k), index))
        if (auto other = norm(operand(1 - k), index, kind, rests))
          return magnitude(operand(k)) * *other;
    return std::nullopt;
  }
  // Terms over their sum have the sum 1.
  if (!isa<arith::DivFOp>(op) || context.banned.count(op) || !of(op->getOperand(0)).nonnegative)
    return std::nullopt;
  Term whole = resolve(operand(1));
  auto reduce = whole.value.getDefiningOp<dnf::ReduceOp>();
  if (!reduce || reduce.getMonoid() != Monoid::add)
    return std::nullopt;
  auto place = findIndex(operand(0), whole, {index});
  if (!place)
    return std::nullopt;
  require(rests, {op, whole, *place});
  return ErrorExpr(1);
}
