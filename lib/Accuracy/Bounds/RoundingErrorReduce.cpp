//===- RoundingErrorReduce.cpp - errors of reductions ---------------------===//
#include "lib/Accuracy/Bounds/RoundingErrorWalk.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <cmath>

using namespace mlir;
using namespace moa;

/// Leaves the scope of an index and gives up all facts that hold only inside.
ErrorValue ErrorWalk::leave(ErrorValue x, Value index, const SymExpr &extent, Value condition) {
  std::vector<RangeRequirement> open;
  for (const RangeRequirement &requirement : x.requirements) {
    auto reduce = requirement.reduction.value.getDefiningOp<dnf::ReduceOp>();
    if (requirement.index.value != index) {
      // A computed index is in no range that can be proved.
      if (isa<BlockArgument>(requirement.index.value))
        open.push_back(requirement);
      else
        repeat |= context.banned.insert(requirement.relation).second;
    } else if (reduce.getExtent() != extent || !isInRange(requirement, condition)) {
      repeat |= context.banned.insert(requirement.relation).second;
    }
  }
  x.requirements = std::move(open);
  std::map<std::string, SharedError> kept;
  for (auto it = x.shared.begin(); it != x.shared.end();) {
    if (llvm::is_contained(it->second.indices, index)) {
      ++it;
    } else {
      kept.insert(*it);
      it = x.shared.erase(it);
    }
  }
  bool exponential = x.exponential;
  x = rules.collapse(std::move(x));
  x.shared = std::move(kept);
  x.exponential = exponential && !x.shared.empty();
  auto to = [&](Value other) -> std::optional<Value> {
    return other == index ? std::nullopt : std::optional<Value>(other);
  };
  substituteIndices(x, to);
  for (auto &[key, shared] : x.shared)
    shared.bound = substituteIndices(shared.bound, to);
  x.indices.erase(index);
  return x;
}

ErrorValue ErrorWalk::reduce(dnf::ReduceOp op, bool isShallow) {
  auto yield = getYield(op.getBody());
  Value index = op.getBody().getArgument(0), term = yield.getValue();
  std::string what = context.describe(op.getResult());
  ErrorValue result;
  bool isFloat = isa<FloatType>(op.getResult().getType());
  Operation *body = term.getDefiningOp();
  if (op.getMonoid() == Monoid::user) {
    result = rules.unknown(context.reasonAt(op.getResult(), "nothing is known of the errors of the monoid " +
                                                                op.getFunction().value_or("").str()));
  } else if (!isFloat) {
    result = of(term);
    if (!result.isExact())
      result = rules.unknown(context.reasonAt(op.getResult(), "a reduction of rounded decisions"));
    else if (op.getMonoid() == Monoid::add)
      result.magnitude = pool.extent(op.getExtent()) * result.magnitude;
    else if (op.getMonoid() == Monoid::mul)
      result.magnitude = pool.unknown("no bound on " + what);
    result.constant.reset();
    result.least = ErrorExpr();
  } else if (op.getMonoid() == Monoid::add && isa_and_nonnull<arith::MulFOp>(body)) {
    result = contraction(op, body, isShallow);
  } else if (op.getMonoid() == Monoid::add) {
    result = plainSum(op, term, isShallow);
  } else if (op.getMonoid() == Monoid::mul) {
    ErrorExpr extent = pool.extent(op.getExtent());
    result = rules.reduceProduct(of(term), extent, what);
  } else {
    result = rules.reduceExtreme(of(term));
    result.constant.reset();
    // The largest of n elements is at least their 2-norm divided by √n.
    auto least = op.getMonoid() == Monoid::max ? leastOfMagnitudes(op, term) : std::nullopt;
    if (least)
      result.least = *least * pool.recip(pool.sqrt(pool.extent(op.getExtent())));
    else if (yield.getPresent()) // the condition may hold nowhere
      result.least = ErrorExpr();
  }
  if (yield.getPresent()) {
    const ErrorValue &condition = of(yield.getPresent());
    if (!condition.isExact())
      result = rules.unknown(context.reasonAt(op.getResult(), "its range depends on rounded values"));
    ErrorRules::merge(result, condition);
  }
  result = leave(std::move(result), index, op.getExtent(), yield.getPresent());
  for (ErrorExpr *e : {&result.relative, &result.absolute, &result.magnitude, &result.least})
    *e = pool.compact(*e);
  if (isFloat && op.getMonoid() == Monoid::add && holdsExtreme(op, term))
    result.least = ErrorExpr(1);
  return result;
}

/// Lemma E9.
ErrorValue ErrorWalk::plainSum(dnf::ReduceOp op, Value term, bool isShallow) {
  ErrorValue x = of(term);
  if (isShallow && !x.tight)
    x = rules.toAbsolute(std::move(x));
  Value index = op.getBody().getArgument(0);
  ErrorExpr extent = pool.extent(op.getExtent());
  if (!x.exponential)
    x = rules.collapse(std::move(x));
  auto l1 = x.tight ? norm({term, nullptr}, index, Norm::MaxL1, x) : std::nullopt;
  ErrorValue result = x;
  result.relative = x.relative + sumRounding(op.getExtent());
  result.absolute = extent * x.absolute;
  rules.addAbsolute(result, extent * pool.tiny());
  result.magnitude = l1 ? *l1 : extent * x.magnitude;
  if (x.distance) {
    ErrorExpr underflow = extent * pool.tiny(), computed = result.magnitude + extent * *x.distance;
    ErrorExpr rounding = pool.expm1(sumRounding(op.getExtent())) * computed;
    result.distance = extent * *x.distance + rounding + underflow;
  }
  result.tight = x.tight && x.nonnegative;
  result.least = leastOfSum(op, term).value_or(ErrorExpr());
  result.constant.reset();
  rules.limitMagnitude(result);
  return result;
}

/// Returns the error of a computed operand if its bf16 factor may be flushed to 0 in the product,
/// and the other factors are applied after the sum (R1).
ErrorExpr ErrorWalk::flushedFactors(Value value, std::set<unsigned> &facts) {
  Operation *op = value.getDefiningOp();
  auto ofFactor = [&](Value factor) {
    Type type = isTakenAsItIs(factor) ? resolve({factor, nullptr}).value.getType() : Type();
    return type && type.isBF16() ? pool.tiny() : flushedFactors(factor, facts);
  };
  if (isa_and_nonnull<arith::MulFOp>(op)) {
    Value x = op->getOperand(0), y = op->getOperand(1);
    ErrorExpr flushedY = ofFactor(y), withY = of(x).magnitude * flushedY;
    ErrorExpr largestY = of(y).magnitude, flushedX = ofFactor(x);
    return flushedX * largestY + withY;
  }
  if (!isa_and_nonnull<arith::DivFOp>(op))
    return ErrorExpr();
  ErrorExpr least = of(op->getOperand(1)).least, flushed = ofFactor(op->getOperand(0));
  return rules.quotient(flushed, least, context.describe(op->getOperand(1)), facts);
}

/// Returns an upper bound on the operand's magnitude, whether or not factors and divisors free of
/// `index` are hoisted out of the sum (R1).
ErrorExpr ErrorWalk::largestIfHoisted(Value value, Value index) {
  Operation *op = value.getDefiningOp();
  ErrorExpr own = of(value).magnitude;
  bool isQuotient = isa_and_nonnull<arith::DivFOp>(op);
  if (!isQuotient && !isa_and_nonnull<arith::MulFOp>(op))
    return own;
  auto ofFactor = [&](unsigned k) { return largestIfHoisted(op->getOperand(k), index); };
  auto canLeave = [&](unsigned k) { return !dependsOn({op->getOperand(k), nullptr}, index); };
  ErrorExpr most = own;
  if (!isQuotient) {
    ErrorExpr second = ofFactor(1), first = ofFactor(0);
    most = pool.max(own, first * second);
  }
  if (canLeave(1))
    most = pool.max(most, ofFactor(0));
  return !isQuotient && canLeave(0) ? pool.max(most, ofFactor(1)) : most;
}

/// Multiplies an absolute error of an operand by the factors that are applied after the sum. For a
/// divisor without a lower bound, underflow is assumed to be negligible.
ErrorExpr ErrorWalk::timesHoisted(const ErrorExpr &amount, Value value, Value index, std::set<unsigned> &facts) {
  Operation *op = value.getDefiningOp();
  bool isQuotient = isa_and_nonnull<arith::DivFOp>(op);
  if (!isQuotient && !isa_and_nonnull<arith::MulFOp>(op))
    return amount;
  auto hoisted = [&](const ErrorExpr &of, unsigned k) { return timesHoisted(of, op->getOperand(k), index, facts); };
  auto canLeave = [&](unsigned k) { return !dependsOn({op->getOperand(k), nullptr}, index); };
  ErrorExpr inner = hoisted(amount, 0);
  if (isQuotient)
    return canLeave(1) ? pool.max(inner, rules.quotient(inner, of(op->getOperand(1)).least,
                                                        context.describe(op->getOperand(1)), facts))
                       : inner;
  ErrorExpr most = hoisted(inner, 1);
  if (canLeave(1))
    most = pool.max(most, of(op->getOperand(1)).magnitude * inner);
  if (!canLeave(0))
    return most;
  ErrorExpr second = hoisted(amount, 1);
  return pool.max(most, of(op->getOperand(0)).magnitude * second);
}

/// Lemma E11: rounds an operand of a contraction to its format.
ErrorValue ErrorWalk::roundOperand(unsigned number, Value value, Value index, ErrorValue x) {
  const ContractionOperand &operand = context.operands[number];
  auto parameter = [&](unsigned k) { return context.pool.parameter(operand.parameter + k, operand.name); };
  // An invariant factor may be applied after the sum; then the remaining factors are rounded.
  ErrorExpr largest = operand.isComputed ? largestIfHoisted(value, index) : x.magnitude;
  auto hoisted = [&](const ErrorExpr &amount) {
    return operand.isComputed ? timesHoisted(amount, value, index, x.facts) : amount;
  };
  x.facts.insert(rules.fact({"", largest, 0, number}));
  x.relative += parameter(0);
  // The largest magnitude of the row includes the invariant factors of the row.
  x.absolute += parameter(1) * (x.magnitude + x.absolute);
  rules.addAbsolute(x, hoisted(parameter(2)));
  rules.addAbsolute(x, hoisted(parameter(3) * pool.tiny()));
  if (operand.isComputed && !context.isDouble)
    rules.addAbsolute(x, flushedFactors(value, x.facts));
  x.distance.reset();
  return x;
}

ErrorValue ErrorWalk::contraction(dnf::ReduceOp op, Operation *product, bool isShallow) {
  Value index = op.getBody().getArgument(0);
  const ErrorContext::Contraction &names = context.contractions.at(op);
  Value multiplied[] = {product->getOperand(0), product->getOperand(1)};
  ErrorValue factors[2];
  std::optional<ErrorExpr> l1[2], l2[2];
  ErrorValue rests;
  ErrorExpr extent = pool.extent(op.getExtent());
  for (unsigned k : {0u, 1u}) {
    ErrorValue x = of(multiplied[k]);
    bool isOfRow =
        llvm::any_of(x.shared, [&](const auto &entry) { return llvm::is_contained(entry.second.indices, index); });
    if (isShallow && !x.tight)
      x = rules.toAbsolute(std::move(x));
    else if (!x.exponential || isOfRow)
      x = rules.collapse(std::move(x));
    if (x.tight) {
      l1[k] = norm({multiplied[k], nullptr}, index, Norm::MaxL1, rests);
      l2[k] = norm({multiplied[k], nullptr}, index, Norm::MaxL2, rests);
    }
    factors[k] = roundOperand(k == 0 ? names.lhs : names.rhs, multiplied[k], index, std::move(x));
  }
  auto &[x, y] = factors;
  auto sumOf = [&](unsigned k) { return l1[k] ? *l1[k] : extent * factors[k].magnitude; };
  ErrorExpr sumX = sumOf(0), sumY = sumOf(1);
  bool isSquare = multiplied[0] == multiplied[1];
  ErrorValue result = rules.multiply(x, y, isSquare);
  ErrorExpr accumulated = names.accumulate * (extent + ErrorExpr(32));
  result.relative = x.relative + y.relative + sumRounding(op.getExtent()) + rules.arithmetic + accumulated;
  ErrorExpr ofBoth = extent * x.absolute * y.absolute, ofY = sumX * y.absolute;
  result.absolute = x.absolute * sumY + ofY + ofBoth;
  rules.addAbsolute(result, extent * timesHoisted(timesHoisted(pool.tiny(), multiplied[0], index, rests.facts),
                                                  multiplied[1], index, rests.facts));
  result.distance.reset();
  result.constant.reset();
  // For stochastic weights, the 1-norm is known directly and does not follow from the 2-norm.
  auto isStochasticAt = [&](unsigned k) {
    auto sum = l1[k] ? l1[k]->getConstant() : std::nullopt, root = l2[k] ? l2[k]->getConstant() : std::nullopt;
    return sum && (!root || *sum <= *root);
  };
  bool isStochastic[] = {isStochasticAt(0), isStochasticAt(1)};
  if (isStochastic[0])
    result.magnitude = *l1[0] * y.magnitude;
  else if (isStochastic[1])
    result.magnitude = *l1[1] * x.magnitude;
  else if (l2[0] && l2[1])
    result.magnitude = *l2[0] * *l2[1];
  else if (l1[1])
    result.magnitude = x.magnitude * *l1[1];
  else
    result.magnitude = sumX * y.magnitude;
  result.least = leastOfSum(op, product->getResult(0)).value_or(ErrorExpr());
  result.tight = result.nonnegative && x.tight && y.tight;
  // The bound on the sum also bounds its products and partial sums.
  result.facts = x.facts;
  result.facts.insert(y.facts.begin(), y.facts.end());
  ErrorRules::merge(result, rests);
  rules.limitMagnitude(result);
  // The sum before its invariant factors and divisors are applied.
  ErrorValue front;
  ErrorExpr fronts[] = {largestIfHoisted(multiplied[0], index), largestIfHoisted(multiplied[1], index)};
  if (!(fronts[0] == x.magnitude && fronts[1] == y.magnitude)) {
    front.magnitude = extent * fronts[0] * fronts[1];
    rules.limitMagnitude(front);
    result.facts.insert(front.facts.begin(), front.facts.end());
  }
  return result;
}

ErrorValue ErrorWalk::output(dnf::OutputOp op, bool isShallow) {
  auto yield = getYield(op.getBody());
  ErrorValue x = isShallow ? shallow(yield.getValue()) : of(yield.getValue());
  if (yield.getPresent()) {
    const ErrorValue &condition = of(yield.getPresent());
    if (!condition.isExact())
      x = rules.unknown(context.reasonAt(yield.getPresent(), "which elements are present depends on rounded values"));
    ErrorRules::merge(x, condition);
  }
  for (const RangeRequirement &requirement : x.requirements) {
    auto reduce = requirement.reduction.value.getDefiningOp<dnf::ReduceOp>();
    auto index = dyn_cast<BlockArgument>(requirement.index.value);
    bool holds = index && index.getOwner() == &op.getBody().front() &&
                 getSymExpr(op.getDomain()[index.getArgNumber()]) == reduce.getExtent() &&
                 isInRange(requirement, yield.getPresent());
    if (!holds)
      repeat |= context.banned.insert(requirement.relation).second;
  }
  return rules.collapse(std::move(x));
}
