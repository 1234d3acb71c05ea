//===- FoldPlan.cpp - how a fold runs in blocks ---------------------------===//
#include "lib/Conversion/ONFToVector/FoldPlan.h"
#include "lib/Conversion/ONFToVector/Emitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace moa;

namespace moa::rows {
using namespace moa::onf;

namespace {

class Planner {
public:
  Planner(FoldOp fold, Value laneIndex, Dependence &deps, OnDemand &onDemand)
      : fold(fold), lane(laneIndex), key(fold.getBody().getArgument(0)),
        deps(deps), onDemand(onDemand) {}
  std::optional<FoldPlan> run();

private:
  enum class Side { Row, Key, None };
  bool usesState(Value value);
  bool split(AccOp acc, llvm::function_ref<Side(Value)> side, Factors &row,
             Factors &key);
  bool planScore(FoldOp inner);
  bool planCarrier(AccOp acc, unsigned pass);
  bool planStates();
  void planReuse();
  bool isOfKey(Value value);
  bool isRowLoad(LoadOp load, Value along);
  void collectRowLoads(Value value, Value along,
                       llvm::function_ref<void(LoadOp)> found);
  void visit(Value value, unsigned pass);
  bool isScore(Operation *op) const {
    return llvm::any_of(plan.scores, [&](const Score &s) { return s.fold == op; });
  }

  FoldOp fold;
  Value lane, key;
  Dependence &deps;
  OnDemand &onDemand;
  FoldPlan plan;
  llvm::DenseMap<Value, unsigned> firstPass;
  llvm::DenseSet<Value> seen; // in the pass being visited
};

/// True if the value is computed from a state of this fold.
bool Planner::usesState(Value value) {
  SmallVector<Value> work{value};
  llvm::SmallPtrSet<Operation *, 16> seen;
  while (!work.empty()) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (!op || !fold->isProperAncestor(op) || !seen.insert(op).second)
      continue;
    if (isa<AccOp>(op) && op->getParentOp() == fold)
      return true;
    op->walk([&](Operation *inner) {
      work.append(inner->operand_begin(), inner->operand_end());
    });
  }
  return false;
}

/// Splits the product a state adds into a factor of the rows and one of the
/// keys; a / b counts as a · (1 / b). With a type to round to, the two operands
/// stay as they are written; otherwise the factors are regrouped.
bool Planner::split(AccOp acc, llvm::function_ref<Side(Value)> side,
                    Factors &row, Factors &key) {
  Value term = getYielded(acc.getValue());
  bool rounds = roundsOperands(acc);
  SmallVector<std::pair<Value, bool>> factors{{term, false}};
  for (unsigned k = 0; k != factors.size();) {
    auto [value, divides] = factors[k];
    auto product = value.getDefiningOp<arith::MulFOp>();
    auto quotient = value.getDefiningOp<arith::DivFOp>();
    if ((!product && !quotient) || (rounds && factors.size() == 2)) {
      ++k;
      continue;
    }
    Operation *op = value.getDefiningOp();
    factors[k] = {op->getOperand(0), divides};
    factors.insert(factors.begin() + k + 1,
                   {op->getOperand(1), quotient ? !divides : divides});
  }
  for (auto [value, divides] : factors) {
    Side where = side(value);
    if (where == Side::None)
      return false;
    Factors &group = where == Side::Row ? row : key;
    (divides ? group.divisors : group.values).push_back(value);
  }
  if (!rounds)
    return true;
  for (Factors *operand : {&row, &key}) {
    if (operand->values.size() + operand->divisors.size() != 1)
      return false;
    if (operand->values.empty() || !getReadElement(operand->values[0]))
      operand->narrow = *acc.getOperandType();
  }
  return true;
}

bool Planner::planScore(FoldOp inner) {
  SmallVector<AccOp> accs = getAccs(inner);
  auto expr = SymExpr::parse(inner.getExtent());
  if (accs.size() != 1 || getGuard(inner) || !onDemand.isUnconditional(inner) || !expr || !expr->getConstant() ||
      *expr->getConstant() < 1)
    return false;
  AccOp acc = accs[0];
  Type type = acc.getResult().getType();
  if (acc.getMonoid() != Monoid::add || !isa<FloatType>(type) ||
      !acc.getRefs().empty() || !acc.getExtents().empty() ||
      !(type.isF32() || type.isF64()))
    return false;
  Value result = inner.getResult(0), k = inner.getBody().getArgument(0);
  if (!deps.on(result, lane) || !deps.on(result, key))
    return false;
  for (Value index : deps.of(result))
    if (auto owner = dyn_cast_or_null<AccOp>(index.getParentBlock()->getParentOp()))
      return false; // inside a carried axis
  Score score{inner, type, *expr->getConstant(), {}, {}, {}};
  bool ok = split(acc, [&](Value factor) {
    if (usesState(factor) || (deps.on(factor, lane) && deps.on(factor, key)))
      return Side::None;
    if (deps.on(factor, lane))
      return Side::Row;
    return deps.on(factor, key) || deps.on(factor, k) ? Side::Key : Side::Row;
  }, score.row, score.key);
  if (!ok || score.row.empty() || score.key.empty())
    return false;
  seen.clear();
  for (const auto &factors : {score.row.values, score.row.divisors})
    for (Value factor : factors)
      collectRowLoads(factor, k, [&](LoadOp load) { score.rowLoads.push_back(load); });
  plan.scores.push_back(score);
  return true;
}

bool Planner::planCarrier(AccOp acc, unsigned pass) {
  Type type = cast<ArrayType>(acc.getResult().getType()).getElementType();
  if (acc.getMonoid() != Monoid::add || !(type.isF32() || type.isF64()) ||
      (!acc.getRefs().empty() && acc.getCombine() != ScalarFn::mul))
    return false;
  Carrier carrier{acc, pass, type, {}, {}, {}};
  for (Attribute text : acc.getExtents()) {
    auto expr = SymExpr::parse(cast<StringAttr>(text).getValue());
    if (!expr || expr->getConstant().value_or(0) < 1)
      return false;
    carrier.extents.push_back(*expr->getConstant());
  }
  auto indices = acc.getValue().getArguments();
  bool ok = split(acc, [&](Value factor) {
    bool carried = llvm::any_of(
        indices, [&](Value index) { return deps.on(factor, index); });
    if (!carried)
      return Side::Row;
    return deps.on(factor, lane) || usesState(factor) ? Side::None : Side::Key;
  }, carrier.row, carrier.key);
  if (!ok)
    return false;
  carrier.operand = plan.operands;
  for (const Carrier &other : plan.carriers)
    if (other.row == carrier.row && other.pass == pass && other.type == type &&
        other.acc.getRefs() == acc.getRefs() &&
        other.acc.getSingular() == acc.getSingular())
      carrier.operand = other.operand;
  plan.operands = std::max(plan.operands, carrier.operand + 1);
  plan.carriers.push_back(carrier);
  return true;
}

bool Planner::planStates() {
  llvm::DenseMap<Operation *, unsigned> passOf;
  for (AccOp acc : getAccs(fold)) {
    unsigned pass = 0;
    for (Value ref : acc.getRefs())
      pass = std::max(pass, passOf[ref.getDefiningOp()] + 1);
    passOf[acc] = pass;
    plan.passes = std::max(plan.passes, pass + 1);
    if (acc.getExtents().empty())
      plan.scalars.push_back({acc, pass});
    else if (!planCarrier(acc, pass))
      return false;
  }
  return true;
}

/// Values that cost more than reading them back.
static bool isExpensive(Operation *op) {
  if (isa<FoldOp>(op))
    return true;
  return isa<math::MathDialect>(op->getDialect()) &&
         !isa<math::AbsFOp, math::FloorOp, math::CeilOp, math::FmaOp>(op);
}

/// True if the value is a function of j and of what is known outside the fold.
bool Planner::isOfKey(Value value) {
  if (!deps.on(value, key))
    return false;
  return llvm::all_of(deps.of(value), [&](Value index) {
    return index == key ||
           !fold->isProperAncestor(index.getParentBlock()->getParentOp());
  });
}

/// True for a load of a row's element that moves along an index and can be made
/// for every index, present or not.
bool Planner::isRowLoad(LoadOp load, Value along) {
  if (!deps.on(load.getResult(), lane) || !runsAlong(load, along, deps) ||
      !onDemand.isInBounds(load))
    return false;
  return llvm::all_of(load.getTerms(), [&](Value term) {
    return factorOf(term, lane, deps) && !term.getDefiningOp<LoadOp>();
  });
}

/// The loads an expression reads that isRowLoad accepts.
void Planner::collectRowLoads(Value value, Value along,
                              llvm::function_ref<void(LoadOp)> found) {
  Operation *op = value.getDefiningOp();
  if (!op || !fold->isProperAncestor(op) || isa<AccOp, FoldOp>(op) ||
      !seen.insert(value).second)
    return;
  auto load = dyn_cast<LoadOp>(op);
  if (load && isRowLoad(load, along))
    return found(load);
  for (Value operand : op->getOperands())
    collectRowLoads(operand, along, found);
}

void Planner::visit(Value value, unsigned pass) {
  Operation *op = value.getDefiningOp();
  if (!op || !fold->isProperAncestor(op) || isScore(op) || isa<AccOp>(op) ||
      !seen.insert(value).second)
    return;
  if (isExpensive(op) && isOfKey(value) && op->getNumResults() == 1 &&
      onDemand.isUnconditional(op)) {
    bool row = deps.on(value, lane) || usesState(value);
    if (!row) {
      plan.keyValues.insert(value);
      return;
    }
    auto found = firstPass.find(value);
    if (found != firstPass.end()) {
      if (found->second != pass)
        plan.kept.insert({value, found->second});
      return;
    }
    firstPass[value] = pass;
  }
  auto load = dyn_cast<LoadOp>(op);
  if (load && isOfKey(value) && isRowLoad(load, key) &&
      !llvm::is_contained(plan.rowLoads, load))
    plan.rowLoads.push_back(load);
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (inner == op || !op->isAncestor(operand.getParentBlock()->getParentOp()))
        visit(operand, pass);
  });
}

void Planner::planReuse() {
  for (unsigned pass = 0; pass != plan.passes; ++pass) {
    seen.clear();
    for (const Scalar &scalar : plan.scalars)
      if (scalar.pass == pass)
        visit(getYielded(scalar.acc.getValue()), pass);
    for (const Carrier &carrier : plan.carriers)
      if (carrier.pass == pass)
        for (const auto &factors : {carrier.row.values, carrier.row.divisors})
          for (Value factor : factors)
            visit(factor, pass);
  }
}

std::optional<FoldPlan> Planner::run() {
  fold.getBody().walk<WalkOrder::PreOrder>([&](FoldOp inner) {
    planScore(inner);
    return WalkResult::skip();
  });
  if (!planStates())
    return std::nullopt;
  planReuse();
  seen.clear();
  if (GuardOp guard = getGuard(fold))
    collectRowLoads(guard.getCondition(), key,
                    [&](LoadOp load) { plan.guardLoads.push_back(load); });
  if (plan.scores.empty() && plan.carriers.empty() && plan.rowLoads.empty())
    return std::nullopt;
  return plan;
}

} // namespace

std::optional<FoldPlan> planFold(FoldOp fold, Value laneIndex, Dependence &deps,
                                 OnDemand &onDemand) {
  return Planner(fold, laneIndex, deps, onDemand).run();
}

} // namespace moa::rows
