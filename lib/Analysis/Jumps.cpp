//===- Jumps.cpp - discontinuities of results -----------------------------===//
#include "lib/Analysis/Jumps.h"
#include "dialects/MoA/IR/MoA.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;

namespace moa {

/// Operands of a select that differ relatively by less are equal up to rounded constants.
static constexpr double kRounding = 0x1p-20;
/// Depth of the search in the definitions of the operands of a select.
static constexpr unsigned kDepth = 12;

static bool isContinuous(Operation *op) {
  return isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp, arith::NegFOp, arith::MaximumFOp,
             arith::MinimumFOp, arith::MaxNumFOp, arith::MinNumFOp, arith::ExtFOp, arith::TruncFOp, arith::SelectOp,
             math::AbsFOp, math::ExpOp, math::Exp2Op, math::LogOp, math::Log2Op, math::SqrtOp, math::RsqrtOp,
             math::TanhOp, math::SinOp, math::CosOp, math::ErfOp, math::PowFOp, onf::AtOp>(op);
}

//===----------------------------------------------------------------------===//
// Choices
//===----------------------------------------------------------------------===//

/// Returns true if a value is above 0. Empty sums and underflow are not considered.
static bool isPositive(Value value, unsigned depth) {
  if (FloatAttr constant; matchPattern(value, m_Constant(&constant)))
    return constant.getValueAsDouble() > 0;
  Operation *op = value.getDefiningOp();
  if (!op || depth == 0)
    return false;
  if (isa<math::ExpOp, math::Exp2Op>(op))
    return true;
  auto is = [&](Value operand) { return isPositive(operand, depth - 1); };
  if (isa<arith::AddFOp, arith::MulFOp, arith::DivFOp, arith::MinimumFOp, arith::ExtFOp, arith::TruncFOp, math::SqrtOp>(
          op))
    return llvm::all_of(op->getOperands(), is);
  if (isa<arith::MaximumFOp>(op))
    return llvm::any_of(op->getOperands(), is);
  auto fold = dyn_cast<onf::FoldOp>(op);
  auto acc = fold ? fold.getBody()
                        .front()
                        .getTerminator()
                        ->getOperand(cast<OpResult>(value).getResultNumber())
                        .getDefiningOp<onf::AccOp>()
                  : dyn_cast<onf::AccOp>(op);
  if (!acc || acc.getMonoid() != Monoid::add || !acc.getExtents().empty() || !acc.getOthers().empty())
    return false;
  // A rescale multiplies by a correction factor, which must be positive too.
  SmallVector<Block *> blocks{&acc.getValue().front()};
  if (!acc.getRefs().empty())
    blocks.push_back(&acc.getRepair().front());
  return (acc.getRefs().empty() || acc.getCombine() == ScalarFn::mul) &&
         llvm::all_of(blocks, [&](Block *block) { return is(block->getTerminator()->getOperand(0)); });
}

namespace {
/// Evaluates expressions under the assumption that the two operands of a comparison are equal: x is
/// replaced by y.
class Threshold {
public:
  explicit Threshold(arith::CmpFOp comparison) : x(comparison.getLhs()), y(comparison.getRhs()) {
    if (matchPattern(x, m_Constant()))
      std::swap(x, y);
  }

  /// Rounding cannot move a finite value past an infinity, a value past itself, or a positive value
  /// past 0.
  bool isOutOfReach() const {
    auto constant = getConstant(y, kDepth);
    return x == y || (constant && (std::isinf(*constant) || (*constant == 0 && isPositive(x, kDepth))));
  }

  bool agree(Value a, Value b, unsigned depth = kDepth) const {
    a = at(a), b = at(b);
    if (a == b)
      return true;
    auto c = getConstant(a, depth), d = getConstant(b, depth);
    if (c && d)
      return std::abs(*c - *d) <= kRounding * std::max(std::abs(*c), std::abs(*d));
    Operation *f = a.getDefiningOp(), *g = b.getDefiningOp();
    return depth && f && g && f->getName() == g->getName() && f->getAttrDictionary() == g->getAttrDictionary() &&
           f->getNumRegions() + g->getNumRegions() == 0 && f->getNumResults() == 1 && g->getNumResults() == 1 &&
           isa<FloatType>(a.getType()) && f->getNumOperands() == g->getNumOperands() && f->getNumOperands() > 0 &&
           llvm::all_of(llvm::zip(f->getOperands(), g->getOperands()),
                        [&](auto pair) { return agree(std::get<0>(pair), std::get<1>(pair), depth - 1); });
  }

private:
  Value at(Value value) const { return value == x ? y : value; }

  std::optional<double> getConstant(Value value, unsigned depth) const {
    value = at(value);
    if (FloatAttr constant; matchPattern(value, m_Constant(&constant)))
      return constant.getValueAsDouble();
    Operation *op = value.getDefiningOp();
    if (!op || depth == 0 || op->getNumRegions() > 0)
      return std::nullopt;
    if (auto choice = dyn_cast<arith::SelectOp>(op)) {
      auto condition = getTruth(choice.getCondition(), depth - 1);
      return condition ? getConstant(*condition ? choice.getTrueValue() : choice.getFalseValue(), depth - 1)
                       : std::nullopt;
    }
    if (!isContinuous(op) || isa<onf::AtOp>(op))
      return std::nullopt;
    SmallVector<std::optional<double>, 2> of;
    for (Value operand : op->getOperands())
      of.push_back(getConstant(operand, depth - 1));
    if (isa<arith::MulFOp>(op) && (of[0] == 0.0 || of[1] == 0.0))
      return 0.0;
    if (isa<arith::SubFOp>(op) && agree(op->getOperand(0), op->getOperand(1), depth - 1))
      return 0.0;
    if (llvm::any_of(of, [](auto &c) { return !c; }))
      return std::nullopt;
    double a = *of[0], b = of.size() > 1 ? *of[1] : 0;
    return llvm::TypeSwitch<Operation *, std::optional<double>>(op)
        .Case([&](arith::AddFOp) { return a + b; })
        .Case([&](arith::SubFOp) { return a - b; })
        .Case([&](arith::MulFOp) { return a * b; })
        .Case([&](arith::DivFOp) { return a / b; })
        .Case([&](arith::NegFOp) { return -a; })
        .Case<arith::MaximumFOp, arith::MaxNumFOp>([&](auto) { return std::max(a, b); })
        .Case<arith::MinimumFOp, arith::MinNumFOp>([&](auto) { return std::min(a, b); })
        .Case<arith::ExtFOp, arith::TruncFOp>([&](auto) { return a; })
        .Case([&](math::AbsFOp) { return std::abs(a); })
        .Case([&](math::ExpOp) { return std::exp(a); })
        .Case([&](math::Exp2Op) { return std::exp2(a); })
        .Case([&](math::LogOp) { return std::log(a); })
        .Case([&](math::Log2Op) { return std::log2(a); })
        .Case([&](math::SqrtOp) { return std::sqrt(a); })
        .Case([&](math::RsqrtOp) { return 1 / std::sqrt(a); })
        .Case([&](math::TanhOp) { return std::tanh(a); })
        .Case([&](math::SinOp) { return std::sin(a); })
        .Case([&](math::CosOp) { return std::cos(a); })
        .Case([&](math::ErfOp) { return std::erf(a); })
        .Case([&](math::PowFOp) { return std::pow(a, b); })
        .Default([](Operation *) { return std::nullopt; });
  }

  /// Returns the value of a comparison of constants at the threshold, unless the constants are
  /// equal.
  std::optional<bool> getTruth(Value value, unsigned depth) const {
    auto comparison = value.getDefiningOp<arith::CmpFOp>();
    if (!comparison)
      return std::nullopt;
    auto a = getConstant(comparison.getLhs(), depth), b = getConstant(comparison.getRhs(), depth);
    if (!a || !b || *a == *b)
      return std::nullopt;
    return arith::applyCmpPredicate(comparison.getPredicate(), llvm::APFloat(*a), llvm::APFloat(*b));
  }

  Value x, y;
};
} // namespace

/// Returns true if the results are continuous where a comparison changes. This holds if its result,
/// alone or combined with other conditions, controls only selects whose operands are equal there.
static bool isContinuous(arith::CmpFOp comparison) {
  Threshold threshold(comparison);
  if (threshold.isOutOfReach())
    return true;
  llvm::SetVector<Value> conditions;
  conditions.insert(comparison.getResult());
  for (size_t next = 0; next < conditions.size(); ++next)
    for (Operation *user : conditions[next].getUsers()) {
      auto choice = dyn_cast<arith::SelectOp>(user);
      bool isCondition = user->getNumResults() == 1 && user->getResult(0).getType().isInteger(1);
      if (isCondition && (choice || isa<arith::AndIOp, arith::OrIOp, arith::XOrIOp>(user)))
        conditions.insert(user->getResult(0));
      else if (!choice || !threshold.agree(choice.getTrueValue(), choice.getFalseValue()))
        return false;
    }
  return true;
}

//===----------------------------------------------------------------------===//
// Forward dependences
//===----------------------------------------------------------------------===//

SmallVector<Value> getMade(Operation *user) {
  SmallVector<Value> made(user->getResults());
  Operation *around = user->getParentOp();
  if (isa<onf::YieldOp, onf::GuardOp>(user))
    llvm::append_range(made, around->getResults());
  return made;
}

SmallVector<onf::StoreOp> findStores(Operation *op) {
  llvm::SetVector<Operation *> reached;
  SmallVector<onf::StoreOp> stores;
  reached.insert(op);
  for (size_t next = 0; next < reached.size(); ++next) {
    if (auto store = dyn_cast<onf::StoreOp>(reached[next]))
      stores.push_back(store);
    for (Value made : getMade(reached[next]))
      reached.insert(made.getUsers().begin(), made.getUsers().end());
    // The value computed in the `repair` region updates the state.
    if (auto acc = dyn_cast<onf::AccOp>(reached[next]->getParentOp()))
      reached.insert(acc);
  }
  return stores;
}

namespace {
class Followed {
public:
  /// Returns the first discontinuous operation that depends on `start` and satisfies `hasEffect`.
  std::optional<Operation *> run(ValueRange start, llvm::function_ref<bool(Operation *)> hasEffect) {
    values.insert(start.begin(), start.end());
    for (size_t next = 0; next < values.size(); ++next)
      for (OpOperand &use : values[next].getUses())
        if (!follow(use) && hasEffect(use.getOwner()))
          return use.getOwner();
    return std::nullopt;
  }

private:
  void add(ValueRange made) { values.insert(made.begin(), made.end()); }

  /// Adds the values that depend continuously on a use; returns false at a discontinuity.
  bool follow(OpOperand &use) {
    Operation *user = use.getOwner();
    if (auto comparison = dyn_cast<arith::CmpFOp>(user))
      return isContinuous(comparison);
    if (auto acc = dyn_cast<onf::AccOp>(user))
      return followReference(acc, use);
    if (isa<onf::StoreOp, CombinedOp>(user))
      return true;
    if (isa<onf::YieldOp>(user)) {
      auto acc = dyn_cast<onf::AccOp>(user->getParentOp());
      if (!acc)
        add(user->getParentOp()->getResult(use.getOperandNumber()));
      else
        add(acc.getResult());
      return !acc || acc.getMonoid() != Monoid::user || isContinuousMonoid(acc);
    }
    add(user->getResults());
    return isContinuous(user);
  }

  /// Follows a state that other states refer to, such as a running maximum. Their rescales
  /// (`repair` regions) read it before and after the update. At its singular value the rescale is
  /// skipped; this is continuous only if the singular value is infinite.
  bool followReference(onf::AccOp acc, OpOperand &use) {
    add(acc.getResult());
    bool isAway = true;
    for (auto [k, ref] : llvm::enumerate(acc.getRefs()))
      if (ref == use.get()) {
        isAway &= !cast<FloatAttr>(acc.getSingular()[k]).getValue().isFinite();
        for (unsigned side : {0, 1})
          add(acc.getRepair().getArgument(2 * k + side));
      }
    return isAway;
  }

  static bool isContinuousMonoid(onf::AccOp acc) {
    auto monoid = SymbolTable::lookupNearestSymbolFrom<MonoidOp>(acc, acc.getFunctionAttr());
    return !Followed().run(monoid.getBody().getArguments(), [](Operation *) { return true; });
  }

  llvm::SetVector<Value> values;
};
} // namespace

std::optional<Jump> findJump(ArrayRef<Value> values) {
  Jump jump;
  auto found = Followed().run(values, [&](Operation *op) {
    auto stores = findStores(op);
    if (!stores.empty())
      jump.result = cast<BlockArgument>(stores.front().getArray()).getArgNumber();
    return !stores.empty();
  });
  if (!found)
    return std::nullopt;
  jump.op = *found;
  return jump;
}

std::string describeJump(const Jump &jump) {
  const char *what = llvm::TypeSwitch<Operation *, const char *>(jump.op)
                         .Case([](arith::CmpFOp) { return "a comparison"; })
                         .Case<math::FloorOp, math::CeilOp, math::RoundOp, math::RoundEvenOp, math::TruncOp,
                               arith::FPToSIOp, arith::FPToUIOp>([](auto) { return "a rounding to integers"; })
                         .Case<onf::YieldOp, onf::AccOp>([](auto) { return "the monoid of a state"; })
                         .Default([](Operation *) { return "an operation that may not be continuous"; });
  auto kernel = jump.op->getParentOfType<onf::KernelOp>();
  auto fold = jump.op->getParentOfType<onf::FoldOp>();
  std::string where = fold ? "in the fold over '" + fold.getName().str() + "'" : "after the folds";
  std::string name = "'" + kernel.getArrayName(jump.result).str() + "'";
  return name + " is discontinuous in sums of products, by " + what + " " + where +
         ", so a sample of rows cannot bound its error: leave " + name + " without a tolerance";
}

} // namespace moa
