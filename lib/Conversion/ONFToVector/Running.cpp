//===- Running.cpp - a fold that goes on along an axis of its nest --------===//
#include "lib/Conversion/ONFToVector/Running.h"
#include "lib/Conversion/ONFToVector/Dependence.h"
#include "lib/Support/SymExpr.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace moa;
using namespace moa::onf;

/// The axis t of a guard j < t.
static Value endOf(GuardOp guard, Value j) {
  auto compare = guard ? guard.getCondition().getDefiningOp<arith::CmpIOp>() : arith::CmpIOp();
  if (!compare)
    return Value();
  bool isBelow = compare.getPredicate() == arith::CmpIPredicate::slt && compare.getLhs() == j;
  bool isAbove = compare.getPredicate() == arith::CmpIPredicate::sgt && compare.getRhs() == j;
  return isBelow ? compare.getRhs() : isAbove ? compare.getLhs() : Value();
}

std::optional<rows::RunningFold> rows::findRunningFold(ForOp nest) {
  Block &body = nest.getBody().front();
  auto folds = llvm::to_vector(body.getOps<FoldOp>());
  if (folds.size() != 1 || nest.getChoices() || !body.getOps<ForOp>().empty())
    return std::nullopt;
  FoldOp fold = folds[0];
  auto axis = dyn_cast_or_null<BlockArgument>(endOf(getGuard(fold), fold.getBody().getArgument(0)));
  if (!axis || axis.getOwner() != &body || axis.getArgNumber() + 1 >= body.getNumArguments())
    return std::nullopt;
  auto extent = cast<StringAttr>(nest.getExtents()[axis.getArgNumber()]).getValue();
  if (*SymExpr::parse(extent) != *SymExpr::parse(fold.getExtent()) + SymExpr(1))
    return std::nullopt;
  Dependence deps;
  bool isPlain = llvm::all_of(getAccs(fold), [&](AccOp acc) {
    return isPureSum(acc) && acc.getRefs().empty() && acc.getExtents().empty() &&
           !deps.on(getYielded(acc.getValue()), axis);
  });
  if (!isPlain)
    return std::nullopt;
  return RunningFold{fold, axis.getArgNumber()};
}
