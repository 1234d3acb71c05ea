//===- RoundingErrorWalk.cpp - errors of the definitions of dnf -----------===//
#include "lib/Accuracy/Bounds/RoundingErrorWalk.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>

using namespace mlir;
using namespace moa;

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

const ErrorValue &ErrorWalk::of(Value value) {
  auto it = values.find(value);
  if (it == values.end())
    it = values.try_emplace(value, std::make_shared<ErrorValue>(compute(value))).first;
  return *it->second;
}

/// Returns the value in the measure whose leaves are the operands of the outermost contractions.
ErrorValue ErrorWalk::shallow(Value value) {
  if (auto it = shallowValues.find(value); it != shallowValues.end())
    return *it->second;
  Operation *op = value.getDefiningOp();
  ErrorValue result;
  if (auto apply = dyn_cast_or_null<dnf::ApplyOp>(op))
    result = this->apply(apply, shallow(getYield(getLet(apply).getBody()).getValue()));
  else if (auto reduce = dyn_cast_or_null<dnf::ReduceOp>(op))
    result = this->reduce(reduce, true);
  else if (isa_and_nonnull<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp, arith::NegFOp>(op))
    result = computeArithmetic(op, true);
  else
    result = of(value);
  shallowValues.try_emplace(value, std::make_shared<ErrorValue>(result));
  return result;
}

ErrorValue ErrorWalk::index(BlockArgument argument) {
  Operation *owner = argument.getOwner()->getParentOp();
  Attribute extent;
  if (auto reduce = dyn_cast<dnf::ReduceOp>(owner))
    extent = reduce.getExtentAttr();
  else
    extent = (isa<dnf::LetOp>(owner) ? cast<dnf::LetOp>(owner).getDomain()
                                     : cast<dnf::OutputOp>(owner).getDomain())[argument.getArgNumber()];
  ErrorValue value = rules.exact(pool.extent(getSymExpr(extent)));
  value.nonnegative = true;
  value.indices.insert(argument);
  return value;
}

ErrorValue ErrorWalk::element(dnf::PsiOp op) {
  MagnitudeStatistic statistic;
  statistic.array = context.arrayName(op.getArray());
  ErrorValue value;
  for (Value subscript : op.getIndices()) {
    ErrorValue place = of(subscript);
    if (!place.isExact())
      return rules.unknown(
          context.reasonAt(op.getResult(), "an index of " + statistic.array + " is computed from rounded values"));
    ErrorRules::merge(value, place);
    bool isPlain = isa<BlockArgument>(subscript);
    statistic.axes.push_back(isPlain ? context.indexNumber(subscript) : MagnitudeStatistic::kExtreme);
  }
  value.magnitude = pool.statistic(statistic);
  if (isa<FloatType>(op.getResult().getType())) {
    if (!statistic.axes.empty())
      statistic.kind = MagnitudeStatistic::Kind::MinAbs;
    value.least = pool.statistic(statistic);
  } else if (op.getResult().getType().isInteger(1)) {
    value.magnitude = ErrorExpr(1);
    value.nonnegative = true;
  }
  return value;
}

/// Returns the value of a let at other indices.
ErrorValue ErrorWalk::apply(dnf::ApplyOp op, ErrorValue value) {
  auto arguments = getLet(op).getBody().getArguments();
  auto to = [&](Value index) -> std::optional<Value> {
    for (auto [argument, operand] : llvm::zip(arguments, op.getIndices()))
      if (argument == index && isa<BlockArgument>(operand))
        return operand;
    return std::nullopt;
  };
  bool isPlain = llvm::all_of(value.shared, [&](const auto &entry) {
    return llvm::all_of(entry.second.indices, [&](Value index) { return to(index).has_value(); });
  });
  if (!isPlain)
    value = rules.collapse(std::move(value));
  substituteIndices(value, to);
  std::map<std::string, SharedError> shared;
  for (auto &[key, error] : value.shared) {
    for (Value &index : error.indices)
      index = *to(index);
    std::string name = context.sharedKey(error.origin, error.indices);
    error.bound = substituteIndices(error.bound, to);
    auto [it, isNew] = shared.emplace(name, error);
    if (!isNew)
      it->second.coefficient += error.coefficient;
  }
  value.shared = std::move(shared);
  auto environment = enterLet(op, {op.getResult(), nullptr});
  for (RangeRequirement &requirement : value.requirements) {
    requirement.reduction = rebase(requirement.reduction, environment);
    requirement.index = resolve(rebase(requirement.index, environment));
  }
  std::set<Value, ValueLess> used = std::move(value.indices);
  value.indices.clear();
  for (auto [argument, operand] : llvm::zip(arguments, op.getIndices())) {
    const ErrorValue &place = of(operand);
    if (!place.isExact())
      return rules.unknown(context.reasonAt(op.getResult(), "an index is computed from rounded values"));
    if (used.count(argument)) {
      value.indices.insert(place.indices.begin(), place.indices.end());
      value.facts.insert(place.facts.begin(), place.facts.end());
    }
  }
  return value;
}

ErrorValue ErrorWalk::compute(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return index(argument);
  Operation *op = value.getDefiningOp();
  if (auto psi = dyn_cast<dnf::PsiOp>(op))
    return element(psi);
  if (auto apply = dyn_cast<dnf::ApplyOp>(op))
    return this->apply(apply, of(getYield(getLet(apply).getBody()).getValue()));
  if (auto reduce = dyn_cast<dnf::ReduceOp>(op))
    return this->reduce(reduce, false);
  if (auto extent = dyn_cast<dnf::ExtentOp>(op)) {
    ErrorValue number = rules.exact(pool.extent(extent.getExpr()));
    number.least = number.magnitude;
    number.nonnegative = extent.getExpr().getSymbol() || extent.getExpr().getConstant().value_or(-1) >= 0;
    return number;
  }
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    if (auto real = dyn_cast<FloatAttr>(constant.getValue()))
      return rules.constant(real.getValueAsDouble());
    return rules.constant(double(cast<IntegerAttr>(constant.getValue()).getInt()));
  }
  if (isa<arith::SelectOp>(op))
    return select(op);
  if (isa<arith::ExtFOp, arith::TruncFOp, arith::SIToFPOp, arith::UIToFPOp>(op))
    return computeConversion(op);
  if (!isa<FloatType>(value.getType()))
    return computeInteger(op);
  if (isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp, arith::NegFOp>(op))
    return computeArithmetic(op, false);
  return computeFunction(op);
}

ErrorValue ErrorWalk::computeConversion(Operation *op) {
  ErrorValue x = of(op->getOperand(0));
  auto type = cast<FloatType>(op->getResult(0).getType());
  if (isa<arith::SIToFPOp, arith::UIToFPOp>(op)) {
    auto constant = x.magnitude.getConstant();
    // Integers of up to 24 bits are exact floats.
    if (constant && *constant <= 0x1p24)
      return x;
    return rules.rounded(std::move(x), rules.arithmetic);
  }
  const OperandFormat *format = getFormatOf(type);
  bool rounds = isa<arith::TruncFOp>(op) || op->hasAttr("moa.round");
  if (!rounds)
    return x;
  if (!format)
    return rules.unknown(context.reasonAt(op->getResult(0), "a cast to a type without a rule"));
  return rules.round(std::move(x), *format);
}

ErrorValue ErrorWalk::computeInteger(Operation *op) {
  ErrorValue result;
  for (Value operand : op->getOperands()) {
    const ErrorValue &x = of(operand);
    if (!x.isExact()) {
      std::string what = isa<arith::CmpFOp>(op) ? "a comparison of rounded values decides"
                                                : "a whole number is made of a rounded value";
      return rules.unknown(context.reasonAt(op->getResult(0), what));
    }
    ErrorRules::merge(result, x);
  }
  auto m = [&](unsigned k) { return of(op->getOperand(k)).magnitude; };
  bool nonnegative = llvm::all_of(op->getOperands(), [&](Value operand) { return of(operand).nonnegative; });
  if (op->getResult(0).getType().isInteger(1)) {
    result.magnitude = ErrorExpr(1);
    nonnegative = true;
  } else if (isa<arith::AddIOp, arith::SubIOp>(op)) {
    ErrorExpr right = m(1), left = m(0);
    result.magnitude = left + right;
    nonnegative &= isa<arith::AddIOp>(op);
  } else if (isa<arith::MulIOp>(op)) {
    ErrorExpr right = m(1), left = m(0);
    result.magnitude = left * right;
  } else if (isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp, arith::ExtUIOp, arith::FPToSIOp,
                 arith::FPToUIOp>(op)) {
    result.magnitude = m(0);
    if (!isa<arith::FPToSIOp, arith::FPToUIOp>(op))
      result.least = of(op->getOperand(0)).least;
  } else if (isa<arith::DivSIOp, arith::FloorDivSIOp>(op)) {
    result.magnitude = m(0) + ErrorExpr(1);
  } else if (isa<math::AbsIOp>(op)) {
    result.magnitude = m(0);
    nonnegative = true;
  } else if (isa<arith::RemSIOp>(op)) {
    result.magnitude = m(1);
  } else if (isa<arith::MaxSIOp, arith::MinSIOp>(op)) {
    ErrorExpr right = m(1), left = m(0);
    result.magnitude = pool.max(left, right);
  } else {
    result.magnitude =
        pool.unknown(context.reasonAt(op->getResult(0), "no bound on a whole number that is computed there"));
    nonnegative = false;
  }
  result.nonnegative = nonnegative;
  return result;
}

//===----------------------------------------------------------------------===//
// Relations between elements and extremes
//===----------------------------------------------------------------------===//

/// Proves x ≤ max x or min x ≤ x, which requires that x is in the range.
bool ErrorWalk::isBelowExtreme(Value element, Value extreme, Monoid monoid, Operation *op, ErrorValue &result) {
  if (context.banned.count(op))
    return false;
  Closure whole = resolve({extreme, nullptr});
  auto reduce = whole.value.getDefiningOp<dnf::ReduceOp>();
  if (!reduce || reduce.getMonoid() != monoid)
    return false;
  auto place = findIndex({element, nullptr}, whole, of(element).indices);
  if (!place)
    return false;
  result.requirements.push_back({op, whole, *place});
  return true;
}

/// Returns true if a sum of e^(x − max x) contains the term of the maximum, which is 1.
bool ErrorWalk::holdsExtreme(dnf::ReduceOp op, Value value) {
  Closure term = resolve({value, nullptr});
  Operation *exp = term.value.getDefiningOp();
  if (!isa_and_nonnull<math::ExpOp, math::Exp2Op>(exp))
    return false;
  Closure argument = resolve({exp->getOperand(0), term.environment});
  auto difference = argument.value.getDefiningOp<arith::SubFOp>();
  if (!difference)
    return false;
  Closure whole = resolve({difference.getRhs(), argument.environment});
  auto reduce = whole.value.getDefiningOp<dnf::ReduceOp>();
  if (!reduce || reduce.getMonoid() != Monoid::max || reduce.getExtent() != op.getExtent())
    return false;
  Value index = op.getBody().getArgument(0);
  if (!findIndex({difference.getLhs(), argument.environment}, whole, {index}))
    return false;
  auto own = getYield(op.getBody());
  auto other = getYield(reduce.getBody());
  auto environment = bindIndex(whole.environment, reduce.getBody().getArgument(0), {index, nullptr});
  return implies({other.getPresent(), environment}, {own.getPresent(), nullptr});
}

/// Keeps the error of a value used by many elements, such as a row maximum, as a shared error
/// (Lemma E2).
ErrorValue ErrorWalk::share(ErrorValue x, Value value, const ErrorValue &partner) {
  Operation *op = value.getDefiningOp();
  if (x.isExact() || !isa_and_nonnull<dnf::ApplyOp, dnf::ReduceOp>(op) || x.indices.size() >= partner.indices.size() ||
      !llvm::all_of(x.indices, [&](Value index) { return partner.indices.count(index); }))
    return x;
  Operation *origin = op;
  std::vector<Value> indices(x.indices.begin(), x.indices.end());
  llvm::sort(indices, [&](Value a, Value b) { return context.indexNumber(a) < context.indexNumber(b); });
  if (auto apply = dyn_cast<dnf::ApplyOp>(op)) {
    if (!llvm::all_of(apply.getIndices(), [](Value i) { return isa<BlockArgument>(i); }))
      return x;
    origin = getLet(apply);
    indices.assign(apply.getIndices().begin(), apply.getIndices().end());
  }
  std::string key = context.sharedKey(origin, indices);
  x = rules.makeShared(std::move(x), origin, key);
  x.shared[key].indices = indices;
  return x;
}

/// Returns the extent of the reduction that a shared value comes from.
static ExprAttr getReferenceExtent(Value value, DenseSet<Operation *> &seen) {
  Closure term = resolve({value, nullptr});
  Operation *op = term.value.getDefiningOp();
  if (!op || !seen.insert(op).second)
    return {};
  if (auto reduce = dyn_cast<dnf::ReduceOp>(op))
    return reduce.getExtentAttr();
  for (Value operand : op->getOperands())
    if (ExprAttr extent = getReferenceExtent(operand, seen))
      return extent;
  return {};
}

/// Returns the number of rescales: the changes of a running maximum or minimum (Lemma E8).
ErrorExpr ErrorWalk::countRescales(const ErrorValue &x) {
  ErrorExpr count;
  for (const auto &[key, shared] : x.shared) {
    Value value;
    if (auto let = dyn_cast<dnf::LetOp>(shared.origin))
      value = getYield(let.getBody()).getValue();
    else
      value = shared.origin->getResult(0);
    DenseSet<Operation *> seen;
    if (ExprAttr extent = getReferenceExtent(value, seen))
      count += ErrorExpr(1 / context.model.indicesPerRescale) * pool.extent(extent.getValue());
  }
  return count;
}

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

ErrorValue ErrorWalk::sum(Operation *op, ErrorValue x, ErrorValue y, bool isDifference) {
  Value a = op->getOperand(0), b = op->getOperand(1);
  if (isDifference || !x.nonnegative || !y.nonnegative) {
    ErrorValue first = x;
    x = share(std::move(x), a, y);
    y = share(std::move(y), b, first);
  }
  if (isDifference)
    y = rules.negate(std::move(y));
  ErrorValue result = rules.add(std::move(x), std::move(y));
  if (isDifference && (isBelowExtreme(a, b, Monoid::max, op, result) || isBelowExtreme(b, a, Monoid::min, op, result)))
    result.nonpositive = true;
  return result;
}

/// Computes a product or quotient. If it is an element divided by a norm of its vector, that bounds
/// the result.
ErrorValue ErrorWalk::product(Operation *op, ErrorValue x, ErrorValue y) {
  std::set<Value, ValueLess> indices = x.indices;
  indices.insert(y.indices.begin(), y.indices.end());
  auto found = findQuotient({op->getResult(0), nullptr}, indices);
  std::optional<ErrorExpr> bound;
  if (found) {
    bound = found->scale;
    // The norm bounds |x|, but x may have a larger majorant. Use absolute errors instead.
    for (ErrorValue *value : {&x, &y})
      if (!value->tight)
        *value = rules.toAbsolute(std::move(*value));
  }
  ErrorValue result = isa<arith::DivFOp>(op)
                          ? rules.divide(std::move(x), std::move(y), context.describe(op->getOperand(1)), bound)
                          : rules.multiply(std::move(x), std::move(y), op->getOperand(0) == op->getOperand(1), bound);
  if (found)
    result.requirements.push_back({op, found->reduction, found->place});
  return result;
}

ErrorValue ErrorWalk::computeArithmetic(Operation *op, bool isShallow) {
  auto operand = [&](unsigned k) { return isShallow ? shallow(op->getOperand(k)) : of(op->getOperand(k)); };
  // Evaluate in order, so that the numbering of atoms is deterministic.
  ErrorValue x = operand(0);
  if (isa<arith::NegFOp>(op))
    return rules.negate(std::move(x));
  ErrorValue y = isa<arith::DivFOp>(op) ? of(op->getOperand(1)) : operand(1);
  if (isa<arith::DivFOp, arith::MulFOp>(op))
    return product(op, std::move(x), std::move(y));
  return sum(op, std::move(x), std::move(y), isa<arith::SubFOp>(op));
}

ErrorValue ErrorWalk::extreme(Operation *op, bool isMax) {
  ErrorValue x = of(op->getOperand(0)), y = of(op->getOperand(1));
  ErrorValue result = rules.extreme(x, y);
  auto sign = [&](const ErrorValue &value) { return isMax ? value.nonnegative : value.nonpositive; };
  bool either = sign(x) || sign(y), both = sign(x) && sign(y);
  (isMax ? result.nonnegative : result.nonpositive) = either;
  (isMax ? result.nonpositive : result.nonnegative) =
      isMax ? x.nonpositive && y.nonpositive : x.nonnegative && y.nonnegative;
  if (isMax && both)
    result.least = pool.max(x.least, y.least);
  else if (isMax && either)
    result.least = x.nonnegative ? x.least : y.least;
  return result;
}

ErrorValue ErrorWalk::select(Operation *op) {
  ErrorValue condition = of(op->getOperand(0));
  if (!condition.isExact())
    return rules.unknown(context.reasonAt(op->getResult(0), "a selection depends on rounded values"));
  ErrorValue x = of(op->getOperand(1)), y = of(op->getOperand(2));
  ErrorValue result = rules.select(std::move(x), std::move(y));
  ErrorRules::merge(result, condition);
  return result;
}

/// Returns the error, for one rounding of `rounding`, of a weight that depends on a distance. Such
/// a weight is factored at the ends of parts of the range, where sums continue with the next part
/// (Lemma E13). Returns 0 for other exponents.
ErrorExpr ErrorWalk::stepRounding(Value exponent, const ErrorExpr &rounding) {
  std::set<Value, ValueLess> indices;
  bool isOfElements = true; // of inputs
  llvm::DenseSet<Value> seen;
  std::function<void(Value)> visit = [&](Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || !seen.insert(value).second)
      return;
    isOfElements &= !isa<dnf::ReduceOp>(op);
    if (auto conversion = dyn_cast<arith::SIToFPOp>(op)) {
      ErrorValue number = of(conversion.getIn());
      indices.insert(number.indices.begin(), number.indices.end());
    } else if (auto apply = dyn_cast<dnf::ApplyOp>(op)) {
      visit(getYield(getLet(apply).getBody()).getValue());
    }
    llvm::for_each(op->getOperands(), visit);
  };
  visit(exponent);
  ErrorExpr steps;
  for (Value index : indices)
    steps += ErrorExpr(1 / context.model.indicesPerStep) * of(index).magnitude;
  return indices.empty() || !isOfElements ? ErrorExpr()
                                          : (ErrorExpr(2) + steps) * (rounding + ErrorExpr(2) * rules.arithmetic);
}

ErrorValue ErrorWalk::power(Operation *op) {
  ErrorValue x = of(op->getOperand(0)), y = of(op->getOperand(1));
  if (x.isExact() && y.isExact() && !y.constant) {
    std::string what = context.describe(op->getResult(0));
    ErrorValue result = rules.exact(pool.unknown("no bound on " + what));
    ErrorRules::merge(result, x);
    ErrorRules::merge(result, y);
    bool isWhole = isa_and_nonnull<arith::SIToFPOp>(op->getOperand(1).getDefiningOp());
    ErrorExpr rounding = isWhole ? rules.powerRounding : rules.functionRounding;
    return rules.rounded(std::move(result), rounding + stepRounding(op->getOperand(1), rules.functionRounding));
  }
  if (!y.constant || !std::isfinite(*y.constant))
    return rules.unknown(context.reasonAt(op->getResult(0), "a power whose exponent is no constant"));
  return rules.power(std::move(x), *y.constant, context.describe(op->getOperand(0)));
}

/// A remainder of exact operands is exact, and closer to 0 than both.
ErrorValue ErrorWalk::remainder(Operation *op) {
  ErrorValue x = of(op->getOperand(0)), y = of(op->getOperand(1));
  if (!x.isExact() || !y.isExact())
    return rules.unknown(context.reasonAt(op->getResult(0), "a remainder of rounded values"));
  ErrorValue result = rules.exact(y.constant ? y.magnitude : x.magnitude);
  result.nonnegative = x.nonnegative;
  result.nonpositive = x.nonpositive;
  ErrorRules::merge(result, x);
  ErrorRules::merge(result, y);
  return result;
}

ErrorValue ErrorWalk::computeFunction(Operation *op) {
  ErrorValue x = of(op->getOperand(0));
  StringRef name = op->getName().getStringRef();
  std::string argument = context.describe(op->getOperand(0));
  if (name == "math.exp" || name == "math.exp2") {
    ErrorExpr count = x.exponential ? ErrorExpr() : countRescales(x);
    ErrorExpr steps = stepRounding(op->getOperand(0), rules.exponentialRounding);
    ErrorValue result = rules.exponential(std::move(x), name == "math.exp2" ? 2 : M_E, count, argument);
    return steps.isZero() ? result : rules.rounded(std::move(result), steps);
  }
  if (name == "math.log")
    return rules.logarithm(std::move(x), 1, argument);
  if (name == "math.log2")
    return rules.logarithm(std::move(x), 1.4426950408889636, argument);
  if (name == "math.sqrt")
    return rules.squareRoot(std::move(x), argument);
  if (name == "math.rsqrt")
    return rules.reciprocalRoot(std::move(x), argument);
  if (name == "math.tanh")
    return rules.bounded(std::move(x), 1, 1, true, rules.tanhRounding);
  if (name == "math.erf")
    return rules.bounded(std::move(x), 1.1283791670955128, 1, true, rules.functionRounding);
  if (name == "math.sin" || name == "math.cos") {
    // Argument reduction has an error of one rounding of the argument.
    ErrorExpr magnitude = x.magnitude;
    ErrorValue result = rules.bounded(std::move(x), 1, 1, false, rules.functionRounding);
    rules.addAbsolute(result, rules.arithmetic * magnitude);
    result.distance.reset();
    return result;
  }
  if (name == "math.absf")
    return rules.absolute(std::move(x));
  if (name == "arith.maximumf" || name == "arith.maxnumf")
    return extreme(op, true);
  if (name == "arith.minimumf" || name == "arith.minnumf")
    return extreme(op, false);
  if (name == "math.floor" || name == "math.ceil")
    return rules.step(std::move(x));
  if (name == "math.powf")
    return power(op);
  if (name == "arith.remf")
    return remainder(op);
  return rules.unknown(
      context.reasonAt(op->getResult(0), "there is no rule for " + op->getName().stripDialect().str()));
}
