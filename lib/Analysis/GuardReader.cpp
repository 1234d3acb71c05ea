//===- GuardReader.cpp - from a guard to a predicate ----------------------===//
#include "lib/Analysis/GuardReader.h"
#include "lib/Support/SymExpr.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/OperationSupport.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace moa;

static constexpr int64_t maxLiteral = int64_t(1) << 31;
static constexpr int64_t clampLimit = int64_t(1) << 56;
static constexpr unsigned maxCases = 8;
static constexpr unsigned maxSplits = 4;

GuardReader::GuardReader(onf::ForOp nest, onf::FoldOp fold)
    : nest(nest), fold(fold), context(fold.getContext()), onDemand(nest->getParentOfType<onf::KernelOp>()) {}

static AffineExpr literal(int64_t value, MLIRContext *context) { return getAffineConstantExpr(value, context); }

//===----------------------------------------------------------------------===//
// Dependence
//===----------------------------------------------------------------------===//

/// Returns true if a value may change with the lane index or the fold index.
bool GuardReader::depends(Value value) {
  auto known = dependence.find(value);
  if (known != dependence.end())
    return known->second;
  bool result = true;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    Operation *owner = argument.getOwner()->getParentOp();
    if (owner == nest)
      result = argument.getArgNumber() + 1 == nest.getExtents().size();
    else
      result = !isa<onf::KernelOp>(owner);
  } else if (Operation *op = value.getDefiningOp(); !isa<onf::AccOp>(op)) {
    result = llvm::any_of(op->getOperands(), [&](Value v) { return depends(v); });
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (!result && !op->isAncestor(operand.getParentRegion()->getParentOp()))
          result = depends(operand);
    });
  }
  dependence[value] = result;
  return result;
}

/// Returns true if an array has elements whenever the nest's body runs. Then a load that is legal
/// at every fold index is also legal before a fold over an empty range.
bool GuardReader::isNeverEmpty(ArrayType type) {
  return llvm::all_of(type.getShape(), [&](ExprAttr extent) {
    return llvm::is_contained(nest.getExtents(), extent) || extent.getValue().getConstant().value_or(0) > 0;
  });
}

bool GuardReader::canHoist(Value value) {
  if (!fold->isAncestor(value.getParentRegion()->getParentOp()))
    return true;
  Operation *op = value.getDefiningOp();
  if (auto load = dyn_cast_or_null<onf::LoadOp>(op); load && !isNeverEmpty(load.getArray().getType()))
    return false;
  return op && op->getNumRegions() == 0 && isPure(op) &&
         llvm::all_of(op->getOperands(), [&](Value v) { return canHoist(v); });
}

Value GuardReader::hoist(Value value, OpBuilder &builder) {
  if (!fold->isAncestor(value.getParentRegion()->getParentOp()))
    return value;
  if (Value known = hoisted.lookup(value))
    return known;
  Operation *op = value.getDefiningOp();
  IRMapping mapping;
  for (Value operand : op->getOperands())
    mapping.map(operand, hoist(operand, builder));
  Operation *copy = builder.clone(*op, mapping);
  for (auto [from, to] : llvm::zip(op->getResults(), copy->getResults()))
    hoisted[from] = to;
  return hoisted[value];
}

//===----------------------------------------------------------------------===//
// Symbols
//===----------------------------------------------------------------------===//

static bool isSameValue(Value a, Value b) {
  if (a == b)
    return true;
  Operation *left = a ? a.getDefiningOp() : nullptr;
  Operation *right = b ? b.getDefiningOp() : nullptr;
  return left && right && left->getNumRegions() == 0 && left->getNumResults() == 1 && isPure(left) &&
         OperationEquivalence::isEquivalentTo(left, right, OperationEquivalence::IgnoreLocations);
}

unsigned GuardReader::addSymbol(Symbol symbol) {
  for (auto [number, known] : llvm::enumerate(symbols))
    if (symbol.value ? known.value && isSameValue(known.value, symbol.value) && known.when == symbol.when
                     : !known.value && known.expression == symbol.expression)
      return number;
  unsigned number = symbols.size();
  if (symbol.nonNegative)
    facts.push_back(getAffineSymbolExpr(number, context));
  symbols.push_back(std::move(symbol));
  return number;
}

/// Converts an extent expression; each product of the polynomial becomes one symbol.
std::optional<AffineExpr> GuardReader::extent(const SymExpr &expr) {
  AffineExpr result = literal(0, context);
  for (const auto &[monomial, coefficient] : expr.getTerms()) {
    if (std::abs(coefficient) > maxLiteral)
      return std::nullopt;
    if (monomial.empty()) {
      result = result + coefficient;
      continue;
    }
    // Symbols are sizes and so not negative; quotients and remainders may have either sign.
    bool plain = llvm::all_of(monomial, [](auto &factor) { return factor.first->kind == SymExpr::Atom::Kind::Symbol; });
    unsigned number = addSymbol({Value(), SymExpr::product(monomial), plain, false, {}});
    result = result + getAffineSymbolExpr(number, context) * coefficient;
  }
  return result;
}

Value GuardReader::materialise(unsigned number, OpBuilder &builder) {
  const Symbol &symbol = symbols[number];
  Location loc = fold.getLoc();
  if (!symbol.value)
    return onf::ExtentOp::create(builder, loc, builder.getIndexType(), symbol.expression);
  Value value = hoist(symbol.value, builder);
  Type index = builder.getIndexType();
  if (!symbol.when.empty()) {
    Value isAsked;
    for (auto [condition, holds] : symbol.when) {
      Value choice = hoist(condition, builder);
      if (!holds) {
        Value yes = arith::ConstantIntOp::create(builder, loc, 1, 1);
        choice = arith::XOrIOp::create(builder, loc, choice, yes);
      }
      isAsked = isAsked ? arith::AndIOp::create(builder, loc, isAsked, choice) : choice;
    }
    Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(value.getType()));
    value = arith::SelectOp::create(builder, loc, isAsked, value, zero);
  }
  if (value.getType().isInteger(1)) {
    Value one = arith::ConstantIndexOp::create(builder, loc, 1);
    Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
    return arith::SelectOp::create(builder, loc, value, one, zero);
  }
  if (value.getType() != index)
    value = arith::IndexCastOp::create(builder, loc, index, value);
  if (!symbol.clamp)
    return value;
  Value low = arith::ConstantIndexOp::create(builder, loc, -clampLimit);
  Value high = arith::ConstantIndexOp::create(builder, loc, clampLimit);
  value = arith::MaxSIOp::create(builder, loc, value, low);
  return arith::MinSIOp::create(builder, loc, value, high);
}

/// Returns the conditions, all free of both indices, under which a symbol may be computed. Returns
/// nothing if the value may fault and a condition depends on the indices or cannot be hoisted.
std::optional<SmallVector<GuardReader::Choice, 2>> GuardReader::placesOf(Value value) {
  SmallVector<Choice, 2> when;
  if (path.empty() || !(onDemand.mayFault(value) || onDemand.mayDivideByZero(value)))
    return when;
  for (const Choice &choice : path) {
    if (depends(choice.first) || !canHoist(choice.first))
      return std::nullopt;
    if (!llvm::is_contained(when, choice))
      when.push_back(choice);
  }
  return when;
}

std::optional<GuardReader::Cases> GuardReader::leaf(Value value) {
  if (depends(value) || !canHoist(value))
    return std::nullopt;
  auto when = placesOf(value);
  if (!when)
    return std::nullopt;
  bool isIndexOfNest = isa<BlockArgument>(value) && cast<BlockArgument>(value).getOwner()->getParentOp() == nest;
  auto type = dyn_cast<IntegerType>(value.getType());
  bool narrow = type && type.getWidth() < 64;
  if (!type && !value.getType().isIndex())
    return std::nullopt;
  unsigned number = addSymbol({value, SymExpr(), isIndexOfNest, !narrow && !isIndexOfNest, *when});
  return single(getAffineSymbolExpr(number, context));
}

bool GuardReader::isNonNegative(AffineExpr e) const {
  auto form = linearize(e);
  if (!form || form->constant < 0)
    return false;
  return llvm::all_of(form->terms, [&](auto term) {
    auto [atom, coefficient] = term;
    if (coefficient < 0)
      return false;
    if (auto symbol = dyn_cast<AffineSymbolExpr>(atom))
      return symbols[symbol.getPosition()].nonNegative;
    if (auto division = dyn_cast<AffineBinaryOpExpr>(atom))
      return isNonNegative(division.getLHS());
    return true; // both indices start at 0
  });
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

GuardReader::Cases GuardReader::single(AffineExpr e) const { return {{Predicate::constant(true), e}}; }

/// Applies the function to every pair of cases.
template <typename Function> std::optional<GuardReader::Cases> GuardReader::map(Value a, Value b, Function function) {
  auto left = integer(a), right = integer(b);
  if (!left || !right || left->size() * right->size() > maxCases)
    return std::nullopt;
  Cases result;
  for (const Case &x : *left)
    for (const Case &y : *right) {
      AffineExpr value = function(x.value, y.value);
      if (!value)
        return std::nullopt;
      result.push_back({Predicate::conjunction(x.condition, y.condition), value});
    }
  return result;
}

/// Reads an integer value. A value without either index that is not affine in simpler ones becomes
/// a symbol.
std::optional<GuardReader::Cases> GuardReader::integer(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    Operation *owner = argument.getOwner()->getParentOp();
    if (owner == fold)
      return single(getAffineDimExpr(1, context));
    if (owner == nest && depends(value))
      return single(getAffineDimExpr(0, context));
    return leaf(value);
  }
  if (auto result = affine(value))
    return result;
  return leaf(value);
}

std::optional<GuardReader::Cases> GuardReader::affine(Value value) {
  Operation *op = value.getDefiningOp();
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant))) {
    auto known = constant.trySExtValue();
    if (!known || std::abs(*known) > maxLiteral)
      return std::nullopt;
    return single(literal(*known, context));
  }
  if (auto size = dyn_cast<onf::ExtentOp>(op)) {
    auto e = extent(size.getExpr());
    return e ? std::optional<Cases>(single(*e)) : std::nullopt;
  }
  if (isa<arith::IndexCastOp, arith::ExtSIOp, arith::ExtUIOp>(op))
    return conversion(op);
  // Narrow integers wrap around, indices do not.
  if (auto type = dyn_cast<IntegerType>(value.getType()); type && type.getWidth() < 64)
    return std::nullopt;
  if (isa<arith::AddIOp>(op))
    return map(op->getOperand(0), op->getOperand(1), [](AffineExpr a, AffineExpr b) { return a + b; });
  if (isa<arith::SubIOp>(op))
    return map(op->getOperand(0), op->getOperand(1), [](AffineExpr a, AffineExpr b) { return a - b; });
  if (isa<arith::MulIOp>(op))
    return map(op->getOperand(0), op->getOperand(1), [](AffineExpr a, AffineExpr b) {
      bool affine = isa<AffineConstantExpr>(a) || isa<AffineConstantExpr>(b);
      return affine ? a * b : AffineExpr();
    });
  if (!depends(value))
    return std::nullopt;
  if (isa<arith::SelectOp, arith::MinSIOp, arith::MaxSIOp>(op))
    return selection(op);
  if (isa<arith::ShLIOp, arith::ShRSIOp, arith::AndIOp>(op))
    return bits(op);
  return division(value, op);
}

std::optional<GuardReader::Cases> GuardReader::conversion(Operation *op) {
  Value source = op->getOperand(0);
  auto from = dyn_cast<IntegerType>(source.getType());
  auto to = dyn_cast<IntegerType>(op->getResult(0).getType());
  if (from && from.getWidth() == 1 && isa<arith::ExtUIOp>(op)) {
    PredicateRef condition = predicate(source);
    return Cases{{condition, literal(1, context)}, {Predicate::negation(condition), literal(0, context)}};
  }
  bool narrows = isa<arith::IndexCastOp>(op) && to && to.getWidth() < 64;
  if (narrows || isa<arith::ExtUIOp>(op) || (from && from.getWidth() == 1))
    return std::nullopt;
  return integer(source);
}

/// Reads min, max and select, case by case.
std::optional<GuardReader::Cases> GuardReader::selection(Operation *op) {
  auto select = dyn_cast<arith::SelectOp>(op);
  bool isMin = isa<arith::MinSIOp>(op);
  unsigned offset = select ? 1 : 0;
  auto operand = [&](unsigned k) {
    if (select)
      path.emplace_back(select.getCondition(), k == 0);
    auto cases = integer(op->getOperand(offset + k));
    if (select)
      path.pop_back();
    return cases;
  };
  auto left = operand(0), right = operand(1);
  if (!left || !right)
    return std::nullopt;
  if (select) {
    if (left->size() + right->size() > maxCases)
      return std::nullopt;
    PredicateRef condition = predicate(select.getCondition());
    Cases result;
    for (const Case &x : *left)
      result.push_back({Predicate::conjunction(condition, x.condition), x.value});
    for (const Case &y : *right)
      result.push_back({Predicate::conjunction(Predicate::negation(condition), y.condition), y.value});
    return result;
  }
  if (2 * left->size() * right->size() > maxCases)
    return std::nullopt;
  Cases result;
  for (const Case &x : *left)
    for (const Case &y : *right) {
      PredicateRef both = Predicate::conjunction(x.condition, y.condition);
      PredicateRef less = Predicate::nonNegative(y.value - x.value);
      if (!isMin)
        less = Predicate::nonNegative(x.value - y.value);
      result.push_back({Predicate::conjunction(both, less), x.value});
      result.push_back({Predicate::conjunction(both, Predicate::negation(less)), y.value});
    }
  return result;
}

static std::optional<int64_t> positiveConstant(Value value) {
  APInt constant;
  if (!matchPattern(value, m_ConstantInt(&constant)))
    return std::nullopt;
  std::optional<int64_t> known = constant.trySExtValue();
  if (!known || *known <= 0 || *known > maxLiteral)
    return std::nullopt;
  return known;
}

/// Reads shifts by a constant and masks 2^k − 1 as products, quotients and remainders.
std::optional<GuardReader::Cases> GuardReader::bits(Operation *op) {
  Value source = op->getOperand(0), amount = op->getOperand(1);
  if (isa<arith::AndIOp>(op)) {
    if (!positiveConstant(amount))
      std::swap(source, amount);
    auto mask = positiveConstant(amount);
    if (!mask || !llvm::isMask_64(*mask) || *mask == maxLiteral)
      return std::nullopt;
    return map(source, amount, [&](AffineExpr a, AffineExpr) { return a % (*mask + 1); });
  }
  APInt constant;
  if (!matchPattern(amount, m_ConstantInt(&constant)) || constant.uge(31))
    return std::nullopt;
  int64_t factor = int64_t(1) << constant.getZExtValue();
  bool left = isa<arith::ShLIOp>(op);
  return map(source, amount, [&](AffineExpr a, AffineExpr) { return left ? a * factor : a.floorDiv(factor); });
}

/// Reads quotients and remainders by a positive constant. If they truncate towards zero and the
/// sign of the dividend is unknown, the result has one case per sign.
std::optional<GuardReader::Cases> GuardReader::division(Value value, Operation *op) {
  if (!isa<arith::FloorDivSIOp, arith::CeilDivSIOp, arith::DivSIOp, arith::RemSIOp, arith::DivUIOp, arith::RemUIOp>(op))
    return std::nullopt;
  auto divisor = positiveConstant(op->getOperand(1));
  auto dividend = integer(op->getOperand(0));
  if (!divisor || !dividend || 2 * dividend->size() > maxCases)
    return std::nullopt;
  int64_t c = *divisor;
  Cases result;
  for (const Case &x : *dividend) {
    if (isa<arith::FloorDivSIOp>(op)) {
      result.push_back({x.condition, x.value.floorDiv(c)});
      continue;
    }
    if (isa<arith::CeilDivSIOp>(op)) {
      result.push_back({x.condition, x.value.ceilDiv(c)});
      continue;
    }
    bool quotient = isa<arith::DivSIOp, arith::DivUIOp>(op);
    auto positive = [&](AffineExpr e) { return quotient ? e.floorDiv(c) : e % c; };
    if (isNonNegative(x.value)) {
      result.push_back({x.condition, positive(x.value)});
      continue;
    }
    if (isa<arith::DivUIOp, arith::RemUIOp>(op))
      return std::nullopt;
    PredicateRef sign = Predicate::nonNegative(x.value);
    result.push_back({Predicate::conjunction(x.condition, sign), positive(x.value)});
    result.push_back({Predicate::conjunction(x.condition, Predicate::negation(sign)), -positive(-x.value)});
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Predicates
//===----------------------------------------------------------------------===//

/// Reads a predicate that is evaluated only if `condition` equals `holds`.
PredicateRef GuardReader::predicateWhere(Value condition, bool holds, Value value) {
  path.emplace_back(condition, holds);
  PredicateRef result = predicate(value);
  path.pop_back();
  return result;
}

PredicateRef GuardReader::predicate(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return Predicate::constant(!constant.isZero());
  Operation *op = value.getDefiningOp();
  if (!op)
    return leafPredicate(value);
  if (isa<arith::AndIOp>(op))
    return Predicate::conjunction(predicate(op->getOperand(0)),
                                  predicateWhere(op->getOperand(0), true, op->getOperand(1)));
  if (isa<arith::OrIOp>(op))
    return Predicate::disjunction(predicate(op->getOperand(0)),
                                  predicateWhere(op->getOperand(0), false, op->getOperand(1)));
  if (isa<arith::XOrIOp>(op))
    return Predicate::exclusive(predicate(op->getOperand(0)), predicate(op->getOperand(1)));
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    PredicateRef condition = predicate(select.getCondition());
    return Predicate::disjunction(
        Predicate::conjunction(condition, predicateWhere(select.getCondition(), true, select.getTrueValue())),
        Predicate::conjunction(Predicate::negation(condition),
                               predicateWhere(select.getCondition(), false, select.getFalseValue())));
  }
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return comparison(compare);
  return leafPredicate(value);
}

/// A truth value without either index becomes a symbol in {0, 1}.
PredicateRef GuardReader::leafPredicate(Value value) {
  auto when = depends(value) || !canHoist(value) ? std::nullopt : placesOf(value);
  if (when) {
    size_t before = symbols.size();
    AffineExpr symbol = getAffineSymbolExpr(addSymbol({value, SymExpr(), true, false, *when}), context);
    if (symbols.size() > before)
      facts.push_back(1 - symbol);
    return Predicate::nonNegative(symbol - 1);
  }
  return Predicate::makeUnknown(unknowns.try_emplace(value, unknowns.size()).first->second);
}

/// Reads Σ sign·term + rest ≥ 0. A maximum is ≥ 0 if one operand is, a minimum if both are; a
/// negative sign swaps the two. This keeps one convex piece where distinguishing cases would make
/// several.
std::optional<PredicateRef> GuardReader::nonNegativeSum(Sum terms, AffineExpr rest, unsigned splits) {
  for (size_t k = 0; k < terms.size(); ++k) {
    auto [value, sign] = terms[k];
    Operation *op = value.getDefiningOp();
    auto type = dyn_cast<IntegerType>(value.getType());
    bool opens = op && depends(value) && !(type && type.getWidth() < 64);
    if (opens && isa<arith::AddIOp, arith::SubIOp>(op)) {
      terms.emplace_back(op->getOperand(0), sign);
      terms.emplace_back(op->getOperand(1), isa<arith::AddIOp>(op) ? sign : -sign);
      continue;
    }
    if (opens && isa<arith::MinSIOp, arith::MaxSIOp>(op) && splits > 0) {
      Sum left(terms.begin() + k + 1, terms.end()), right = left;
      left.emplace_back(op->getOperand(0), sign);
      right.emplace_back(op->getOperand(1), sign);
      auto a = nonNegativeSum(left, rest, splits - 1);
      auto b = nonNegativeSum(right, rest, splits - 1);
      if (!a || !b)
        return std::nullopt;
      bool either = isa<arith::MaxSIOp>(op) == (sign > 0);
      return either ? Predicate::disjunction(*a, *b) : Predicate::conjunction(*a, *b);
    }
    auto cases = integer(value);
    if (!cases || cases->size() > 1)
      return std::nullopt;
    rest = rest + cases->front().value * sign;
  }
  return Predicate::nonNegative(rest);
}

static PredicateRef compare(arith::CmpIPredicate predicate, AffineExpr a, AffineExpr b) {
  switch (predicate) {
  case arith::CmpIPredicate::eq:
    return Predicate::zero(a - b);
  case arith::CmpIPredicate::ne:
    return Predicate::negation(Predicate::zero(a - b));
  case arith::CmpIPredicate::slt:
  case arith::CmpIPredicate::ult:
    return Predicate::nonNegative(b - a - 1);
  case arith::CmpIPredicate::sle:
  case arith::CmpIPredicate::ule:
    return Predicate::nonNegative(b - a);
  case arith::CmpIPredicate::sgt:
  case arith::CmpIPredicate::ugt:
    return Predicate::nonNegative(a - b - 1);
  case arith::CmpIPredicate::sge:
  case arith::CmpIPredicate::uge:
    return Predicate::nonNegative(a - b);
  }
  return nullptr;
}

PredicateRef GuardReader::comparison(arith::CmpIOp op) {
  using arith::CmpIPredicate;
  CmpIPredicate kind = op.getPredicate();
  if (op.getLhs().getType().isInteger(1)) {
    if (kind != CmpIPredicate::eq && kind != CmpIPredicate::ne)
      return leafPredicate(op);
    PredicateRef differ = Predicate::exclusive(predicate(op.getLhs()), predicate(op.getRhs()));
    return kind == CmpIPredicate::ne ? differ : Predicate::negation(differ);
  }
  AffineExpr zero = literal(0, context);
  std::optional<PredicateRef> sum;
  if (kind == CmpIPredicate::sle || kind == CmpIPredicate::slt)
    sum =
        nonNegativeSum({{op.getRhs(), 1}, {op.getLhs(), -1}}, kind == CmpIPredicate::slt ? zero - 1 : zero, maxSplits);
  if (kind == CmpIPredicate::sge || kind == CmpIPredicate::sgt)
    sum =
        nonNegativeSum({{op.getLhs(), 1}, {op.getRhs(), -1}}, kind == CmpIPredicate::sgt ? zero - 1 : zero, maxSplits);
  if (sum)
    return *sum;
  auto left = integer(op.getLhs()), right = integer(op.getRhs());
  if (!left || !right || left->size() * right->size() > maxCases)
    return leafPredicate(op);
  bool isUnsigned = kind == CmpIPredicate::ult || kind == CmpIPredicate::ule || kind == CmpIPredicate::ugt ||
                    kind == CmpIPredicate::uge;
  PredicateRef result = Predicate::constant(false);
  for (const Case &x : *left)
    for (const Case &y : *right) {
      if (isUnsigned && !(isNonNegative(x.value) && isNonNegative(y.value)))
        return leafPredicate(op);
      PredicateRef holds =
          Predicate::conjunction(Predicate::conjunction(x.condition, y.condition), compare(kind, x.value, y.value));
      result = Predicate::disjunction(result, holds);
    }
  return result;
}

IntervalProblem GuardReader::read(onf::GuardOp guard) {
  IntervalProblem problem;
  problem.context = context;
  problem.predicate = predicate(guard.getCondition());
  auto extents = nest.getExtents().getAsValueRange<ExprAttr>();
  SmallVector<SymExpr> sizes(extents.begin(), extents.end());
  // An extent with large numbers becomes one symbol.
  auto sizeOf = [&](const SymExpr &size) {
    if (auto e = extent(size))
      return *e;
    return getAffineSymbolExpr(addSymbol({Value(), size, true, false, {}}), context);
  };
  if (!sizes.empty())
    problem.laneExtent = sizeOf(sizes.back());
  problem.foldExtent = sizeOf(fold.getExtent());
  for (unsigned k = 0; k + 1 < sizes.size(); ++k) {
    Value index = nest.getBody().getArgument(k);
    for (unsigned number = 0, end = symbols.size(); number < end; ++number)
      if (symbols[number].value == index)
        facts.push_back(sizeOf(sizes[k]) - 1 - getAffineSymbolExpr(number, context));
  }
  problem.facts = facts;
  problem.numSymbols = symbols.size();
  return problem;
}
