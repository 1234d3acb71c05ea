//===- FoldFacts.cpp - properties of a fold's states ----------------------===//
#include "lib/Conversion/ONFToDevice/Tiles/FoldFacts.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>

using namespace mlir;
using namespace moa;
using namespace moa::onf;

namespace moa::tiles {

FoldFacts::FoldFacts(const TilePlan &plan) : plan(plan) {
  planRescales();
  findLoads();
  findScaledScores();
}

unsigned FoldFacts::numberOf(Value state) const {
  for (auto [k, scalar] : llvm::enumerate(plan.folded.scalars))
    if (scalar.acc == state.getDefiningOp())
      return k;
  llvm_unreachable("references are states without axes of the same fold");
}

std::optional<double> valueWhere(Value value, llvm::DenseMap<Value, double> &known) {
  auto found = known.find(value);
  if (found != known.end())
    return found->second;
  Operation *op = value.getDefiningOp();
  if (!op)
    return std::nullopt;
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto number = dyn_cast<FloatAttr>(constant.getValue());
    return number ? std::optional(number.getValue().convertToDouble()) : std::nullopt;
  }
  if (isa<arith::TruncFOp, arith::ExtFOp>(op)) {
    auto number = valueWhere(op->getOperand(0), known);
    if (!number)
      return std::nullopt;
    llvm::APFloat rounded(*number);
    bool isExact;
    rounded.convert(cast<FloatType>(op->getResult(0).getType()).getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven,
                    &isExact);
    return rounded.convertToDouble();
  }
  if (auto piecewise = dyn_cast<PiecewiseExp2Op>(op)) {
    auto number = valueWhere(piecewise.getOperand(), known);
    double times = piecewise.getTimes().convertToDouble(), plus = piecewise.getPlus().convertToDouble();
    return number ? std::optional(PiecewiseExp2Op::evaluate(times * *number + plus)) : std::nullopt;
  }
  SmallVector<double, 2> operands(2, 0.0);
  if (!isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::NegFOp, math::ExpOp, math::Exp2Op>(op))
    return std::nullopt;
  for (auto [k, operand] : llvm::enumerate(op->getOperands())) {
    auto number = valueWhere(operand, known);
    if (!number)
      return std::nullopt;
    operands[k] = *number;
  }
  if (isa<arith::AddFOp>(op))
    return operands[0] + operands[1];
  if (isa<arith::SubFOp>(op))
    return operands[0] - operands[1];
  if (isa<arith::MulFOp>(op))
    return operands[0] * operands[1];
  if (isa<arith::NegFOp>(op))
    return -operands[0];
  return isa<math::ExpOp>(op) ? std::exp(operands[0]) : std::exp2(operands[0]);
}

/// Returns whether a reference records by itself that it has been regular. A maximum or minimum
/// does, if its identity is the value for which its users are undefined: it never goes back there.
static bool remembers(AccOp acc, unsigned ref) {
  auto extreme = acc.getRefs()[ref].getDefiningOp<AccOp>();
  Monoid monoid = extreme.getMonoid();
  return (monoid == Monoid::max || monoid == Monoid::min) &&
         acc.getSingular()[ref] == getIdentity(monoid, extreme.getResult().getType());
}

static bool haveSameRescale(AccOp x, AccOp y) {
  return llvm::equal(x.getRefs(), y.getRefs()) && llvm::equal(x.getOthers(), y.getOthers()) &&
         x.getSingular() == y.getSingular() && x.getCombine() == y.getCombine() &&
         OperationEquivalence::isRegionEquivalentTo(&x.getRepair(), &y.getRepair(),
                                                    OperationEquivalence::IgnoreLocations);
}

/// Returns the number of a state's rescaling, which other states may share; −1 if it has none.
int FoldFacts::addRescale(AccOp acc) {
  if (acc.getRefs().empty())
    return -1;
  for (auto [k, rescale] : llvm::enumerate(rescales))
    if (haveSameRescale(rescale.acc, acc))
      return k;
  Rescale rescale{acc, {}, 0, false};
  for (auto [k, ref] : llvm::enumerate(acc.getRefs())) {
    unsigned number = numberOf(ref);
    rescale.refs.push_back(number);
    rescale.pass = std::max(rescale.pass, plan.folded.scalars[number].pass);
    rescale.needsStarted |= !remembers(acc, k);
  }
  rescales.push_back(rescale);
  return rescales.size() - 1;
}

/// Finds the distinct rescalings and the references, and whether rescaling can be conditional.
void FoldFacts::planRescales() {
  for (const rows::Scalar &scalar : plan.folded.scalars)
    rescaleOfScalar.push_back(addRescale(scalar.acc));
  for (const Accumulator &accumulator : plan.folded.accumulators)
    rescaleOfAccumulator.push_back(addRescale(accumulator.acc));
  isReference.assign(plan.folded.scalars.size(), false);
  for (const Rescale &rescale : rescales)
    for (unsigned ref : rescale.refs)
      isReference[ref] = true;
  lazy = plan.shape.rescaleBound > 0 && canRescaleLazily(plan);
}

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

rows::SplitTerm FoldFacts::termsOf(AccOp acc) const {
  rows::SplitTerm terms = rows::splitTerm(acc, plan.keyIndex());
  if (terms.bound && canClamp(plan, terms.bound))
    return terms;
  return {rows::getYielded(acc.getValue()), Value()};
}

/// Returns the loads that the fold needs only for bounds of terms. The epilogue loads them again.
llvm::DenseSet<Operation *> FoldFacts::findLoadsOfBounds() {
  // Maxima and minima of two operands that are only used as terms of states with this bound.
  llvm::DenseMap<Operation *, Value> boundOf;
  for (const rows::Scalar &scalar : plan.folded.scalars) {
    Value bound = termsOf(scalar.acc).bound;
    Operation *terms = bound ? rows::getYielded(AccOp(scalar.acc).getValue()).getDefiningOp() : nullptr;
    if (terms && llvm::all_of(terms->getUsers(), [&](Operation *user) {
          auto acc = isa<YieldOp>(user) ? dyn_cast<AccOp>(user->getParentOp()) : AccOp();
          return acc && termsOf(acc).bound == bound;
        }))
      boundOf[terms] = bound;
  }
  llvm::DenseMap<Operation *, bool> known;
  std::function<bool(Operation *)> isOfBounds = [&](Operation *op) {
    if (auto found = known.find(op); found != known.end())
      return found->second;
    bool isInside = plan.fold->isAncestor(op),
         all = op->getNumRegions() == 0 && (!isInside || op->getNumResults() == 1);
    for (Operation *user : op->getUsers())
      all = all && (boundOf.lookup(user) == op->getResult(0) || isOfBounds(user));
    return known[op] = all;
  };
  llvm::DenseSet<Operation *> loads;
  if (!boundOf.empty())
    plan.nest.walk([&](LoadOp load) {
      if (isOfBounds(load))
        loads.insert(load);
    });
  return loads;
}

/// Returns whether a load reads one element per block that is always in bounds. The subscript of
/// each axis is then an outer index of the nest with the extent of the axis.
bool FoldFacts::isSameForBlock(LoadOp load) {
  auto type = load.getArray().getType();
  Block::BlockArgListType outer = plan.nest.getBody().getArguments().drop_back();
  for (unsigned axis = 0; axis < type.getRank(); ++axis) {
    auto found = llvm::find(outer, load.getIndex(axis).getValue());
    if (found == outer.end() || getSymExpr(plan.nest.getExtents()[found - outer.begin()]) != type.getExtent(axis))
      return false;
  }
  return true;
}

/// Returns whether a load is that of an operand of a product.
static bool isOperand(const TilePlan &plan, LoadOp load) {
  bool isFound = plan.product && plan.product->left.load == load;
  for (const auto *list : {&plan.rowOperands, &plan.keyOperands, &plan.valueOperands})
    for (const TileOperand &operand : *list)
      isFound |= isSameElement(operand.load, load);
  return isFound;
}

/// Returns whether a value has no use but subscripts of operands. For example, the number of a page.
static bool isSubscript(const TilePlan &plan, Value value) {
  return !value.use_empty() && llvm::all_of(value.getUsers(), [&](Operation *user) {
    if (auto load = dyn_cast<LoadOp>(user); load && isOperand(plan, load))
      return true;
    return isPure(user) && user->getNumRegions() == 0 && user->getNumResults() != 0 &&
           llvm::all_of(user->getResults(), [&](Value result) { return isSubscript(plan, result); });
  });
}

/// Finds the loads of the states and the guard, apart from the operands of products.
void FoldFacts::findLoads() {
  // Operations that the fold depends on, also outside of it.
  SetVector<Operation *> used;
  BackwardSliceOptions options;
  options.omitUsesFromAbove = false;
  (void)getBackwardSlice(plan.fold.getOperation(), &used, options);
  // Those that the states depend on, not the guard alone.
  SetVector<Operation *> ofStates;
  options.omitBlockArguments = true;
  for (AccOp acc : rows::getAccs(plan.fold))
    (void)getBackwardSlice(acc.getOperation(), &ofStates, options);
  llvm::DenseSet<Operation *> ofBounds = findLoadsOfBounds();
  plan.nest.walk([&](LoadOp load) {
    if ((!plan.fold->isProperAncestor(load) && !used.contains(load)) || ofBounds.contains(load))
      return;
    if (isOperand(plan, load) || isSubscript(plan, load.getResult()) || load.getArray().getType().getRank() == 0)
      return;
    if (isSameForBlock(load))
      readOnce.push_back(load);
    else if (isUniform(plan, load.getResult()) && !plan.fold->isProperAncestor(load))
      return; // before all tiles, at its original address
    else {
      readsMemory = true;
      statesRead |= ofStates.contains(load) || load->getParentOfType<AccOp>() ||
                    llvm::any_of(ofStates, [&](Operation *op) { return op->isProperAncestor(load); });
    }
  });
}

//===----------------------------------------------------------------------===//
// Scores with a factor
//===----------------------------------------------------------------------===//

/// Returns whether a value is computed from loads with one address per block and constants.
bool FoldFacts::isReadOnce(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto load = dyn_cast_or_null<LoadOp>(op))
    return load.getArray().getType().getRank() == 0 || llvm::is_contained(readOnce, load);
  return op && !isa<FoldOp>(op) && llvm::all_of(op->getOperands(), [&](Value operand) { return isReadOnce(operand); });
}

bool isExponent(Value difference) {
  return difference.getType().isF32() && !difference.use_empty() &&
         llvm::all_of(difference.getUsers(), [](Operation *user) { return isa<math::ExpOp, PiecewiseExp2Op>(user); });
}

/// Returns whether all uses of a value are differences that are exponents.
static bool isOfExponents(Value value) {
  return llvm::all_of(value.getUsers(),
                      [](Operation *user) { return isa<arith::SubFOp>(user) && isExponent(user->getResult(0)); });
}

/// Returns whether evaluating a value reads memory or runs a fold.
static bool isCostly(Value value) {
  return anySource(value, [](Operation *op) -> std::optional<bool> {
    if (auto load = dyn_cast<LoadOp>(op))
      return load.getArray().getType().getRank() != 0 ? std::optional(true) : std::nullopt;
    return isa<FoldOp>(op);
  });
}

/// Finds scores s whose only use is a product s·u with u uniform in the block. The product must be
/// reduced by a maximum or minimum, or be used in exponents only. For integer scores u may be
/// loaded from memory, as quantization steps are.
void FoldFacts::findScaledScores() {
  Value row = plan.rowIndex();
  Value key = plan.keyIndex();
  rows::Dependence deps;
  for (const rows::Score &score : plan.folded.scores) {
    ScaledScore scaled = {};
    Value value = score.value;
    auto op = value.hasOneUse() ? dyn_cast<arith::MulFOp>(*value.getUsers().begin()) : arith::MulFOp();
    bool reduced = op && llvm::any_of(plan.folded.scalars, [&](const rows::Scalar &scalar) {
                     AccOp acc = scalar.acc;
                     return (acc.getMonoid() == Monoid::max || acc.getMonoid() == Monoid::min) &&
                            acc.getRefs().empty() && termsOf(acc).value == op.getResult();
                   });
    if (op && (reduced || isOfExponents(op.getResult())) && op.getType().isF32()) {
      Value other = op.getLhs() == value ? op.getRhs() : op.getLhs();
      bool isKnown = !isCostly(other) || (score.type.isIndex() && isReadOnce(other));
      if (!deps.on(other, row) && !deps.on(other, key) && isKnown)
        scaled = {op.getResult(), other};
    }
    scaledScores.push_back(scaled);
  }
}

Value keepsOrder(ScalarCode &code, Value u) {
  Value zero = code.constant(code.b.getF32FloatAttr(0)), limit = code.constant(code.b.getF32FloatAttr(0x1p127f));
  auto less = [&](Value x, Value y) -> Value {
    return arith::CmpFOp::create(code.b, code.loc, arith::CmpFPredicate::OLT, x, y);
  };
  Value isFinite = less(u, limit);
  return code.b.createOrFold<arith::AndIOp>(code.named("keeps_order"), less(zero, u), isFinite);
}

} // namespace moa::tiles
