//===- FoldPlan.cpp - how a fold runs in blocks ---------------------------===//
#include "lib/Conversion/ONFToVector/FoldPlan.h"
#include "lib/Conversion/ONFToVector/Emitter.h"
#include "lib/Conversion/ONFToVector/Integers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace moa;

namespace moa::rows {
using namespace moa::onf;

namespace {

class Planner {
public:
  Planner(FoldOp fold, Value laneIndex, Dependence &deps, OnDemand &onDemand, std::string *why, MachineSums sums)
      : fold(fold), lane(laneIndex), key(fold.getBody().getArgument(0)), deps(deps), onDemand(onDemand), why(why),
        sums(sums) {}
  std::optional<FoldPlan> run();

private:
  enum class Side { Row, Key, None };
  bool usesState(Value value);
  bool split(AccOp acc, Value term, llvm::function_ref<Side(Value)> side, Factors &rowFactors, Factors &keyFactors);
  bool splitSum(AccOp acc, llvm::function_ref<Side(Value)> side, Factors &rowFactors, Factors &keyFactors,
                SmallVectorImpl<FactorPair> &further);
  bool refuse(const Twine &subject, const Twine &reason);
  std::string describeFactors(const Factors &mixed);
  bool planScore(FoldOp inner);
  bool checkInteger(const Score &score, const Twine &subject);
  bool takeIntegers(Score &score);
  bool planAccumulator(AccOp acc, unsigned pass);
  bool planStates();
  void planReuse();
  bool isOfKey(Value value);
  bool isRowLoad(LoadOp load, Value along);
  void collectRowLoads(Value value, Value along, llvm::function_ref<void(LoadOp)> found);
  void visit(Value value, unsigned pass);
  bool isScore(Operation *op) const {
    return llvm::any_of(plan.scores, [&](const Score &s) { return s.fold == op; });
  }

  FoldOp fold;
  Value lane, key;
  Dependence &deps;
  OnDemand &onDemand;
  std::string *why;
  MachineSums sums;
  FoldPlan plan;
  llvm::DenseMap<Value, unsigned> firstPass;
  llvm::DenseSet<Value> seen; // in the pass being visited
};

bool Planner::usesState(Value value) {
  SmallVector<Value> work{value};
  llvm::SmallPtrSet<Operation *, 16> visited;
  while (!work.empty()) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (!op || !fold->isProperAncestor(op) || !visited.insert(op).second)
      continue;
    if (isa<AccOp>(op) && op->getParentOp() == fold)
      return true;
    op->walk([&](Operation *inner) { work.append(inner->operand_begin(), inner->operand_end()); });
  }
  return false;
}

bool Planner::refuse(const Twine &subject, const Twine &reason) {
  if (why && why->empty())
    *why = (subject + " " + reason).str();
  return false;
}

/// Splits the product in a state's term into row factors and key factors; a / b counts as
/// a · (1 / b). If the operands are rounded, each side must be one operand of the product.
/// Otherwise factors are regrouped.
bool Planner::split(AccOp acc, Value term, llvm::function_ref<Side(Value)> side, Factors &rowFactors,
                    Factors &keyFactors) {
  bool rounds = roundsOperands(acc);
  SmallVector<std::pair<Value, bool>> factors{{term, false}};
  for (unsigned k = 0; k != factors.size();) {
    auto [value, divides] = factors[k];
    Operation *op = value.getDefiningOp();
    bool isProduct = isa_and_nonnull<arith::MulFOp, arith::MulIOp>(op);
    bool quotient = isa_and_nonnull<arith::DivFOp>(op);
    if ((!isProduct && !quotient) || (rounds && factors.size() == 2)) {
      ++k;
      continue;
    }
    factors[k] = {op->getOperand(0), divides};
    factors.insert(factors.begin() + k + 1, {op->getOperand(1), quotient ? !divides : divides});
  }
  for (auto [value, divides] : factors) {
    Side where = side(value);
    if (where == Side::None)
      return false;
    Factors &group = where == Side::Row ? rowFactors : keyFactors;
    (divides ? group.divisors : group.values).push_back(value);
  }
  if (!rounds)
    return true;
  for (Factors *operand : {&rowFactors, &keyFactors}) {
    if (operand->values.size() + operand->divisors.size() != 1)
      return false;
    if (operand->values.empty() || !getReadElement(operand->values[0]))
      operand->narrow = *acc.getOperandType();
  }
  return true;
}

/// Returns x if `value` is x rounded to a narrower type and widened again, else null.
static Value getRounded(Value value) {
  auto widened = value.getDefiningOp<arith::ExtFOp>();
  auto rounded = widened ? widened.getIn().getDefiningOp<arith::TruncFOp>() : arith::TruncFOp();
  return rounded && rounded.getIn().getType() == value.getType() ? rounded.getIn() : Value();
}

/// Splits the term of a state into products with row and key factors. With `sums.ofProducts`, a
/// term may be a sum of such products with one factor each. Removes their explicit roundings to
/// record them as Factors::narrow.
bool Planner::splitSum(AccOp acc, llvm::function_ref<Side(Value)> side, Factors &rowFactors, Factors &keyFactors,
                       SmallVectorImpl<FactorPair> &further) {
  SmallVector<Value> terms{getYielded(acc.getValue())};
  for (unsigned k = 0; sums.ofProducts && !roundsOperands(acc) && k != terms.size();) {
    auto sum = terms[k].getDefiningOp<arith::AddFOp>();
    if (!sum) {
      ++k;
      continue;
    }
    terms[k] = sum.getLhs();
    terms.insert(terms.begin() + k + 1, sum.getRhs());
  }
  for (auto [k, term] : llvm::enumerate(terms)) {
    FactorPair pair;
    if (!split(acc, term, side, k == 0 ? rowFactors : pair.row, k == 0 ? keyFactors : pair.key))
      return false;
    if (terms.size() == 1)
      return true;
    Factors &rows = k == 0 ? rowFactors : pair.row, &keys = k == 0 ? keyFactors : pair.key;
    if (rows.values.size() != 1 || keys.values.size() != 1 || !rows.divisors.empty() || !keys.divisors.empty())
      return false;
    for (Factors *factors : {&rows, &keys})
      if (Value rounded = getRounded(factors->values[0])) {
        factors->narrow = cast<arith::ExtFOp>(factors->values[0].getDefiningOp()).getIn().getType();
        factors->values[0] = rounded;
      }
    if (k != 0)
      further.push_back(pair);
  }
  return true;
}

/// Describes why a product cannot be split into row factors and key factors.
std::string Planner::describeFactors(const Factors &mixed) {
  std::string names = "'" + getIndexName(lane).str() + "' and '" + getIndexName(key).str() + "'";
  if (mixed.values.empty())
    return "is no sum of products of one factor along '" + getIndexName(lane).str() + "' and one along '" +
           getIndexName(key).str() + "'";
  LoadOp load = getReadElement(mixed.values[0]);
  if (!load)
    return "sums up products with a factor along both " + names;
  return "reads " + getArrayName(load).str() + " along both " + names;
}

/// Returns the f32 that an integer sum is converted to. Returns null if the sum has another use or
/// an intermediate type is narrower than 32 bits.
static Value getFloat(Value integer) {
  for (bool isFloat = false; !isFloat; isFloat = integer.getType().isF32()) {
    Operation *user = integer.hasOneUse() ? *integer.getUsers().begin() : nullptr;
    if (!isa_and_nonnull<arith::IndexCastOp, arith::SIToFPOp>(user))
      return Value();
    if (Type type = user->getResult(0).getType(); type.isInteger() && type.getIntOrFloatBitWidth() < 32)
      return Value();
    integer = user->getResult(0);
  }
  return integer;
}

/// Rewrites a score of floats that hold i8 integers as a sum of integers:
/// Σ f32(x)·f32(y) = f32(Σ x·y). A product is at most 2^14, so a sum of 2^10 products is at most
/// 2^24, and f32 holds all partial sums exactly. For example, `f32(Q) +.* transpose(f32(K))` is
/// `f32(Q +.* transpose(K))`.
bool Planner::takeIntegers(Score &score) {
  constexpr int64_t most = 1 << 10;
  if (!score.type.isF32() || score.extent > std::min(most, sums.mostTerms) || !score.further.empty())
    return false;
  auto integerOf = [](const Factors &from) {
    bool isOne = from.values.size() == 1 && from.divisors.empty();
    bool isHeld = !from.narrow || from.narrow.getIntOrFloatBitWidth() >= 16;
    return isOne && isHeld ? getIntegerOf(from.values[0]) : Value();
  };
  Value rowInteger = integerOf(score.row), keyInteger = integerOf(score.key);
  if (!rowInteger || !keyInteger)
    return false;
  score.row = score.key = Factors();
  score.row.values.push_back(rowInteger);
  score.key.values.push_back(keyInteger);
  score.type = IndexType::get(fold.getContext());
  return true;
}

/// Checks that the machine can compute a score of integers. Its factors must be i8 elements and, on
/// tensor cores, the sum must be read only as one f32.
bool Planner::checkInteger(const Score &score, const Twine &subject) {
  if (sums.asFloats && !score.value)
    return refuse(subject, "is a sum of integers that is not read as one f32(…)");
  for (const Factors *factors : {&score.row, &score.key}) {
    LoadOp load = factors->values.size() == 1 ? getReadElement(factors->values[0]) : LoadOp();
    auto low = factors->values.size() == 1 ? factors->values[0].getDefiningOp<arith::AndIOp>() : arith::AndIOp();
    if (!load && low && getReadElement(low.getLhs()))
      return refuse(subject, "sums up products of integers without a sign, not of elements of i8");
    if (!load)
      return refuse(subject, "sums up products of computed integers, not of elements of i8");
    if (!load.getResult().getType().isInteger(8)) {
      std::string type;
      llvm::raw_string_ostream(type) << load.getResult().getType();
      return refuse(subject, "sums up products of integers of more than 8 bits: " + getArrayName(load) +
                                 " has elements of " + type);
    }
  }
  return true;
}

bool Planner::planScore(FoldOp inner) {
  std::string subject = "the inner fold over '" + inner.getName().str() + "'";
  SmallVector<AccOp> accs = getAccs(inner);
  auto length = inner.getExtent().getConstant();
  if (accs.size() != 1)
    return refuse(subject, "has " + Twine(accs.size()) + " states");
  if (getGuard(inner))
    return refuse(subject, "is masked");
  if (!onDemand.isUnconditional(inner))
    return refuse(subject, "runs only under a condition");
  if (!length)
    return refuse(subject, "has the extent " + inner.getExtent().str() + ", which is not known at compile time");
  if (*length < 1)
    return refuse(subject, "is empty");
  AccOp acc = accs[0];
  Type type = acc.getResult().getType();
  bool isInteger = type.isIndex() && *length <= sums.mostTerms;
  if (acc.getMonoid() != Monoid::add || !(type.isF32() || type.isF64() || isInteger) || !acc.getRefs().empty() ||
      !acc.getExtents().empty())
    return refuse(subject, "is no sum of f32 or f64");
  Value result = inner.getResult(0), k = inner.getBody().getArgument(0);
  if (!deps.on(result, lane))
    return refuse(subject, "does not depend on the nest's last axis, '" + getIndexName(lane) + "'");
  if (!deps.on(result, key))
    return refuse(subject, "does not depend on the index of its fold, '" + getIndexName(key) + "'");
  for (Value index : deps.of(result))
    if (isa_and_nonnull<AccOp>(index.getParentBlock()->getParentOp()))
      return refuse(subject, "is inside an axis of a state");
  Value value = isInteger ? getFloat(result) : result;
  Score score{inner, value, type, *length, {}, {}, {}};
  Factors mixed;
  bool ok = splitSum(
      acc,
      [&](Value factor) {
        if (usesState(factor) || (deps.on(factor, lane) && deps.on(factor, key))) {
          mixed.values.push_back(factor);
          return Side::None;
        }
        if (deps.on(factor, lane))
          return Side::Row;
        return deps.on(factor, key) || deps.on(factor, k) ? Side::Key : Side::Row;
      },
      score.row, score.key, score.further);
  if (!ok || score.row.empty() || score.key.empty())
    return refuse(subject, describeFactors(mixed));
  if (isInteger && !checkInteger(score, subject))
    return false;
  takeIntegers(score);
  seen.clear();
  for (const auto &factors : {score.row.values, score.row.divisors})
    for (Value factor : factors)
      collectRowLoads(factor, k, [&](LoadOp load) { score.rowLoads.push_back(load); });
  for (const FactorPair &pair : score.further)
    for (Value factor : pair.row.values)
      collectRowLoads(factor, k, [&](LoadOp load) { score.rowLoads.push_back(load); });
  plan.scores.push_back(score);
  return true;
}

bool Planner::planAccumulator(AccOp acc, unsigned pass) {
  std::string subject = "the state '" + acc.getName().str() + "'";
  Type type = cast<ArrayType>(acc.getResult().getType()).getElementType();
  if (acc.getMonoid() != Monoid::add || !(type.isF32() || type.isF64()))
    return refuse(subject, "is no sum of f32 or f64");
  if (!acc.getRefs().empty() && acc.getCombine() != ScalarFn::mul)
    return refuse(subject, "is not rescaled by a factor");
  Accumulator accumulator{acc, pass, type, {}, {}, {}};
  for (const SymExpr &extent : acc.getExtents().getAsValueRange<ExprAttr>()) {
    auto size = extent.getConstant();
    if (!size)
      return refuse(subject, "has an axis of extent " + extent.str() + ", which is not known at compile time");
    if (*size < 1)
      return refuse(subject, "has an empty axis");
    accumulator.extents.push_back(*size);
  }
  auto indices = acc.getValue().getArguments();
  bool ok = splitSum(
      acc,
      [&](Value factor) {
        bool carried = llvm::any_of(indices, [&](Value index) { return deps.on(factor, index); });
        if (!carried)
          return Side::Row;
        return deps.on(factor, lane) || usesState(factor) ? Side::None : Side::Key;
      },
      accumulator.row, accumulator.key, accumulator.further);
  if (!ok)
    return refuse(subject, "is no sum of products of a weight and a factor along its axis");
  accumulator.operand = plan.operands;
  for (const Accumulator &other : plan.accumulators)
    if (other.row == accumulator.row && accumulator.further.empty() && other.further.empty() && other.pass == pass &&
        other.type == type && other.acc.getRefs() == acc.getRefs() && other.acc.getSingular() == acc.getSingular())
      accumulator.operand = other.operand;
  plan.operands = std::max(plan.operands, accumulator.operand + 1);
  plan.accumulators.push_back(accumulator);
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
    else if (!planAccumulator(acc, pass))
      return false;
  }
  return true;
}

/// Returns whether recomputing a value costs more than loading it.
static bool isExpensive(Operation *op) {
  if (isa<FoldOp>(op))
    return true;
  return isa<math::MathDialect>(op->getDialect()) && !isa<math::AbsFOp, math::FloorOp, math::CeilOp, math::FmaOp>(op);
}

/// Returns whether the value is a function of j and of values from outside the fold.
bool Planner::isOfKey(Value value) {
  if (!deps.on(value, key))
    return false;
  return llvm::all_of(deps.of(value), [&](Value index) {
    return index == key || !fold->isProperAncestor(index.getParentBlock()->getParentOp());
  });
}

/// Returns whether a load of row elements is contiguous along an index and in bounds for every
/// index, masked out or not.
bool Planner::isRowLoad(LoadOp load, Value along) {
  if (!deps.on(load.getResult(), lane) || !runsAlong(load, along, deps) || !onDemand.isInBounds(load))
    return false;
  return llvm::all_of(load.getTerms(),
                      [&](Value term) { return factorOf(term, lane, deps) && !term.getDefiningOp<LoadOp>(); });
}

/// Passes the loads of an expression that isRowLoad accepts to `found`.
void Planner::collectRowLoads(Value value, Value along, llvm::function_ref<void(LoadOp)> found) {
  Operation *op = value.getDefiningOp();
  if (!op || !fold->isProperAncestor(op) || isa<AccOp, FoldOp>(op) || !seen.insert(value).second)
    return;
  auto load = dyn_cast<LoadOp>(op);
  if (load && isRowLoad(load, along))
    return found(load);
  for (Value operand : op->getOperands())
    collectRowLoads(operand, along, found);
}

void Planner::visit(Value value, unsigned pass) {
  Operation *op = value.getDefiningOp();
  if (!op || !fold->isProperAncestor(op) || isScore(op) || isa<AccOp>(op) || !seen.insert(value).second)
    return;
  if (isExpensive(op) && isOfKey(value) && op->getNumResults() == 1 && onDemand.isUnconditional(op)) {
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
  if (load && isOfKey(value) && isRowLoad(load, key) && !llvm::is_contained(plan.rowLoads, load))
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
    for (const Accumulator &accumulator : plan.accumulators)
      if (accumulator.pass == pass)
        for (const auto &factors : {accumulator.row.values, accumulator.row.divisors})
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
    collectRowLoads(guard.getCondition(), key, [&](LoadOp load) { plan.guardLoads.push_back(load); });
  if (plan.scores.empty() && plan.accumulators.empty() && plan.rowLoads.empty())
    return std::nullopt;
  return plan;
}

} // namespace

std::optional<FoldPlan> planFold(FoldOp fold, Value laneIndex, Dependence &deps, OnDemand &onDemand, std::string *why,
                                 MachineSums sums) {
  return Planner(fold, laneIndex, deps, onDemand, why, sums).run();
}

Value getIntegerOf(Value value) {
  while (isa<FloatType>(value.getType())) {
    Operation *op = value.getDefiningOp();
    bool isWide = value.getType().getIntOrFloatBitWidth() >= 16;
    if (!isWide || !isa_and_nonnull<arith::SIToFPOp, arith::ExtFOp, arith::TruncFOp>(op))
      return Value();
    value = op->getOperand(0);
  }
  LoadOp load = getReadElement(value);
  return load && load.getResult().getType().isInteger(8) ? value : Value();
}

StringRef getIndexName(Value index) {
  auto argument = cast<BlockArgument>(index);
  Operation *owner = argument.getOwner()->getParentOp();
  if (auto fold = dyn_cast<FoldOp>(owner))
    return fold.getName();
  auto acc = dyn_cast<AccOp>(owner);
  ArrayAttr names = acc ? acc.getNames() : cast<ForOp>(owner).getNames();
  return cast<StringAttr>(names[argument.getArgNumber()]).getValue();
}

StringRef getArrayName(LoadOp load) {
  auto kernel = load->getParentOfType<onf::KernelOp>();
  unsigned number = cast<BlockArgument>(load.getArray()).getArgNumber();
  return kernel.getArrayName(number);
}

} // namespace moa::rows
