//===- Running.cpp - folds that are scans along an axis of their nest -----===//
#include "lib/Conversion/ONFToVector/Running.h"
#include "lib/Conversion/ONFToVector/Dependence.h"
#include "lib/Support/SymExpr.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace moa;
using namespace moa::onf;

/// Returns t if the guard is j < t or, with `descends` set, j ≥ t. Returns null otherwise.
static Value endOf(GuardOp guard, Value j, bool &descends) {
  auto compare = guard ? guard.getCondition().getDefiningOp<arith::CmpIOp>() : arith::CmpIOp();
  if (!compare)
    return Value();
  using Predicate = arith::CmpIPredicate;
  Predicate predicate = compare.getPredicate();
  bool isLeft = compare.getLhs() == j, isRight = compare.getRhs() == j;
  descends = (isLeft && predicate == Predicate::sge) || (isRight && predicate == Predicate::sle);
  bool ascends = (isLeft && predicate == Predicate::slt) || (isRight && predicate == Predicate::sgt);
  return !ascends && !descends ? Value() : isLeft ? compare.getRhs() : compare.getLhs();
}

namespace {

/// Recognizes weights that depend on the distance t − 1 − j.
class Distances {
public:
  Distances(Value t, Value j) : t(t), j(j) {}
  /// Returns whether a value is b^n, e^n or 2^n with n a multiple of the distance.
  bool isWeight(Value value);
  /// Collects the factors of a product that depend on t. Returns false if one is no such weight.
  bool collect(Value product, SmallVectorImpl<Value> &weights);

private:
  bool isFree(Value value) { return !deps.on(value, t) && !deps.on(value, j); }
  bool isMultiple(Value value);
  /// An index expression a · t + b · j + c as (a, b, c).
  struct Linear {
    int64_t t = 0, j = 0, constant = 0;
  };
  std::optional<Linear> linear(Value value);
  static bool isNonNegative(Value value);

  rows::Dependence deps;
  Value t, j;
};

} // namespace

std::optional<Distances::Linear> Distances::linear(Value value) {
  if (value == t)
    return Linear{1, 0, 0};
  if (value == j)
    return Linear{0, 1, 0};
  IntegerAttr number;
  if (matchPattern(value, m_Constant(&number)))
    return Linear{0, 0, number.getInt()};
  Operation *op = value.getDefiningOp();
  if (!op || !isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op))
    return std::nullopt;
  auto a = linear(op->getOperand(0)), b = linear(op->getOperand(1));
  if (!a || !b)
    return std::nullopt;
  if (isa<arith::MulIOp>(op)) {
    if (a->t != 0 || a->j != 0)
      std::swap(a, b);
    if (a->t != 0 || a->j != 0)
      return std::nullopt;
    return Linear{a->constant * b->t, a->constant * b->j, a->constant * b->constant};
  }
  int64_t sign = isa<arith::SubIOp>(op) ? -1 : 1;
  return Linear{a->t + sign * b->t, a->j + sign * b->j, a->constant + sign * b->constant};
}

bool Distances::isMultiple(Value value) {
  if (isa<IndexType>(value.getType())) {
    auto form = linear(value);
    return form && form->j == -form->t && form->constant == -form->t;
  }
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (value.getType().isInteger() && value.getType().getIntOrFloatBitWidth() < 32) // wraps around
    return false;
  if (isa<arith::SIToFPOp, arith::IndexCastOp, arith::NegFOp>(op))
    return isMultiple(op->getOperand(0));
  if (isa<arith::AddFOp, arith::SubFOp>(op))
    return isMultiple(op->getOperand(0)) && isMultiple(op->getOperand(1));
  if (isa<arith::MulFOp>(op) && isFree(op->getOperand(0)))
    return isMultiple(op->getOperand(1));
  return isa<arith::MulFOp, arith::DivFOp>(op) && isFree(op->getOperand(1)) && isMultiple(op->getOperand(0));
}

bool Distances::isNonNegative(Value value) {
  FloatAttr number;
  if (matchPattern(value, m_Constant(&number)))
    return !number.getValue().isNegative();
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (isa<math::ExpOp, math::Exp2Op, math::AbsFOp, math::SqrtOp>(op))
    return true;
  return isa<arith::MulFOp, arith::DivFOp, arith::AddFOp, arith::MaximumFOp, arith::MinimumFOp>(op) &&
         llvm::all_of(op->getOperands(), isNonNegative);
}

bool Distances::isWeight(Value value) {
  Operation *op = value.getDefiningOp();
  if (op && isa<math::ExpOp, math::Exp2Op>(op))
    return isMultiple(op->getOperand(0));
  auto power = dyn_cast_or_null<math::PowFOp>(op);
  if (!power || !isFree(power.getLhs()) || !isMultiple(power.getRhs()))
    return false;
  return isa<arith::SIToFPOp>(power.getRhs().getDefiningOp()) || isNonNegative(power.getLhs());
}

bool Distances::collect(Value product, SmallVectorImpl<Value> &weights) {
  if (!deps.on(product, t))
    return true;
  if (auto factors = product.getDefiningOp<arith::MulFOp>())
    return collect(factors.getLhs(), weights) && collect(factors.getRhs(), weights);
  weights.push_back(product);
  return isWeight(product);
}

std::optional<rows::RunningFold> rows::findRunningFold(ForOp nest) {
  Block &body = nest.getBody().front();
  auto folds = llvm::to_vector(body.getOps<FoldOp>());
  if (folds.size() != 1 || nest.getChoices() || !body.getOps<ForOp>().empty())
    return std::nullopt;
  FoldOp fold = folds[0];
  bool descends = false;
  auto axis = dyn_cast_or_null<BlockArgument>(endOf(getGuard(fold), fold.getBody().getArgument(0), descends));
  if (!axis || axis.getOwner() != &body || axis.getArgNumber() + 1 >= body.getNumArguments())
    return std::nullopt;
  if (getSymExpr(nest.getExtents()[axis.getArgNumber()]) != fold.getExtent() + SymExpr(1))
    return std::nullopt;
  RunningFold running{fold, axis.getArgNumber(), descends, {}};
  Distances distances(axis, fold.getBody().getArgument(0));
  rows::Dependence deps;
  bool isPlain = llvm::all_of(getAccs(fold), [&](AccOp acc) {
    if (acc.getFunction() || !acc.getRefs().empty() || !acc.getOthers().empty() || !acc.getExtents().empty())
      return false;
    auto &weights = running.weights.emplace_back();
    Value term = getYielded(acc.getValue());
    if (!llvm::all_of(acc.getResult().getUsers(), [](Operation *user) { return isa<YieldOp>(user); }))
      return false;
    return isPureSum(acc) && !descends ? distances.collect(term, weights) : !deps.on(term, axis);
  });
  return isPlain ? std::optional(running) : std::nullopt;
}
