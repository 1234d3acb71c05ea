//===- OnDemand.cpp - on-demand evaluation and bounds of loads ------------===//
#include "lib/Analysis/OnDemand.h"
#include "lib/Analysis/Launched.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace moa;

namespace moa {
using namespace moa::onf;

bool isOnDemand(Operation *op, unsigned operand) {
  if (isa<arith::SelectOp>(op))
    return operand != 0;
  return isa<arith::AndIOp, arith::OrIOp>(op) && operand == 1 && op->getResult(0).getType().isInteger(1);
}

//===----------------------------------------------------------------------===//
// Ranges of index expressions
//===----------------------------------------------------------------------===//

bool isNonNegative(const SymExpr &expr) {
  return llvm::all_of(expr.getTerms(), [](const auto &term) {
    return term.second >= 0 && llvm::all_of(term.first, [](const auto &factor) {
             return factor.first->kind == SymExpr::Atom::Kind::Symbol ||
                    (isNonNegative(factor.first->lhs) && isNonNegative(factor.first->rhs));
           });
  });
}

/// Returns true if an expression is not negative whenever the nest is launched. This also uses e −
/// c·⌊e/c⌋ ≥ 0, and ⌊e/c⌋ ≥ 1 if the launch conditions imply it.
static bool isNonNegativeIn(ForOp nest, const SymExpr &expr) {
  if (isNonNegative(expr))
    return true;
  return llvm::any_of(expr.getTerms(), [&](const auto &term) {
    return llvm::any_of(term.first, [&](const auto &factor) {
      const SymExpr::Atom &atom = *factor.first;
      auto divisor = atom.kind == SymExpr::Atom::Kind::FloorDiv ? atom.rhs.getConstant() : std::nullopt;
      if (!divisor || *divisor < 1)
        return false;
      SymExpr quotient = SymExpr::floorDiv(atom.lhs, atom.rhs), rest = expr - atom.lhs + atom.rhs * quotient;
      return isNonNegative(rest) || (isPositive(quotient, nest) && isNonNegative(rest - quotient + SymExpr(1)));
    });
  });
}

OnDemand::MaybeSpan OnDemand::scaled(MaybeSpan range, const SymExpr &factor) {
  if (!range)
    return std::nullopt;
  if (isNonNegative(factor))
    return Span{range->low * factor, range->high * factor};
  if (isNonNegative(-factor))
    return Span{range->high * factor, range->low * factor};
  return std::nullopt;
}

OnDemand::MaybeSpan OnDemand::rangeOfIndex(BlockArgument index) {
  Operation *parent = index.getOwner()->getParentOp();
  ExprAttr extent;
  if (auto loop = dyn_cast<ForOp>(parent))
    extent = cast<ExprAttr>(loop.getExtents()[index.getArgNumber()]);
  else if (auto fold = dyn_cast<FoldOp>(parent))
    extent = fold.getExtentAttr();
  else if (auto acc = dyn_cast<AccOp>(parent); acc && index.getOwner()->getParent() == &acc.getValue())
    extent = cast<ExprAttr>(acc.getExtents()[index.getArgNumber()]);
  return extent ? MaybeSpan(Span{SymExpr(0), extent.getValue() - SymExpr(1)}) : std::nullopt;
}

/// Returns true if a constraint of the kernel or arithmetic proves that `divisor` divides `value`.
bool OnDemand::divides(const SymExpr &divisor, const SymExpr &value) {
  SymExpr rest = SymExpr::mod(value, divisor);
  if (rest.isZero())
    return true;
  return llvm::any_of(kernel.getRequires().getAsRange<StringAttr>(), [&](StringAttr text) {
    auto [left, right] = text.getValue().split("==");
    auto expr = SymExpr::parse(left.trim());
    return right.trim() == "0" && expr && *expr == rest;
  });
}

/// Returns the range of ⌊v / c⌋ for 0 ≤ v < n. The maximum is n/c − 1 if c divides n. If c = n/d
/// for a divisor d of n, then c divides n, and n/c is d.
OnDemand::MaybeSpan OnDemand::rangeOfQuotient(Value dividend, const SymExpr &divisor) {
  MaybeSpan range = rangeOf(dividend);
  if (!range || !range->low.isZero() || !isNonNegative(divisor))
    return std::nullopt;
  SymExpr size = range->high + SymExpr(1);
  if (divides(divisor, size))
    return Span{SymExpr(0), SymExpr::floorDiv(size, divisor) - SymExpr(1)};
  const auto &terms = divisor.getTerms();
  if (terms.size() != 1 || terms.begin()->second != 1 || terms.begin()->first.size() != 1)
    return std::nullopt;
  const auto &[atom, power] = terms.begin()->first.front();
  if (power != 1 || atom->kind != SymExpr::Atom::Kind::FloorDiv || atom->lhs != size || !divides(atom->rhs, size))
    return std::nullopt;
  return Span{SymExpr(0), atom->rhs - SymExpr(1)};
}

OnDemand::MaybeSpan OnDemand::rangeOf(Value value) {
  if (auto index = dyn_cast<BlockArgument>(value))
    return rangeOfIndex(index);
  Operation *op = value.getDefiningOp();
  APInt number;
  if (matchPattern(value, m_ConstantInt(&number)))
    return Span{number.getSExtValue(), number.getSExtValue()};
  if (auto extent = dyn_cast<onf::ExtentOp>(op))
    return Span{extent.getExpr(), extent.getExpr()};
  if (!isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::FloorDivSIOp>(op) || !value.getType().isIndex())
    return std::nullopt;
  MaybeSpan x = rangeOf(op->getOperand(0)), y = rangeOf(op->getOperand(1));
  if (!x || !y)
    return std::nullopt;
  if (isa<arith::AddIOp>(op))
    return Span{x->low + y->low, x->high + y->high};
  if (isa<arith::SubIOp>(op))
    return Span{x->low - y->high, x->high - y->low};
  if (isa<arith::FloorDivSIOp>(op))
    return y->low == y->high ? rangeOfQuotient(op->getOperand(0), y->low) : std::nullopt;
  if (y->low == y->high)
    return scaled(x, y->low);
  return x->low == x->high ? scaled(y, x->low) : std::nullopt;
}

bool OnDemand::computeInBounds(LoadOp load) {
  ForOp nest;
  for (Operation *op = load; op; op = op->getParentOp())
    if (auto loop = dyn_cast<ForOp>(op))
      nest = loop;
  ArrayType array = load.getArray().getType();
  for (unsigned axis = 0; axis != array.getRank(); ++axis) {
    LinearIndex index = load.getIndex(axis);
    Span range{index.constant, index.constant};
    for (const auto &[term, factor] : index.terms) {
      MaybeSpan part = scaled(rangeOf(term), factor);
      if (!part)
        return false;
      range = {range.low + part->low, range.high + part->high};
    }
    if (!isNonNegative(range.low) || !isNonNegativeIn(nest, array.getExtent(axis) - SymExpr(1) - range.high))
      return false;
  }
  return true;
}

bool OnDemand::isInBounds(LoadOp load) {
  auto [entry, isNew] = inBounds.try_emplace(load, false);
  if (isNew)
    entry->second = computeInBounds(load);
  return entry->second;
}

//===----------------------------------------------------------------------===//
// Needed operations
//===----------------------------------------------------------------------===//

bool OnDemand::mayFault(Value value) {
  Operation *op = value.getDefiningOp();
  return op && mayFault(op);
}

bool OnDemand::mayFault(Operation *op) {
  auto found = faults.find(op);
  if (found != faults.end())
    return found->second;
  faults[op] = false; // breaks cycles between states
  bool result = false;
  op->walk([&](Operation *inner) {
    auto load = dyn_cast<LoadOp>(inner);
    result |= load && !isInBounds(load);
    for (Value operand : inner->getOperands())
      if (Operation *source = operand.getDefiningOp(); source && !op->isAncestor(source))
        result |= mayFault(source);
  });
  return faults[op] = result;
}

bool OnDemand::mayDivideByZero(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || isa<FoldOp>(op))
    return false;
  auto [entry, isNew] = divisions.try_emplace(op, false);
  if (!isNew)
    return entry->second;
  bool result = llvm::any_of(op->getOperands(), [&](Value v) { return mayDivideByZero(v); });
  if (isa<arith::FloorDivSIOp, arith::CeilDivSIOp, arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp>(
          op)) {
    Value divisor = op->getOperand(1);
    result |= !matchPattern(divisor, m_NonZero()) && !divisor.getDefiningOp<onf::ExtentOp>();
  }
  return divisions[op] = result;
}

/// Returns the extent E of a condition E > 0.
static std::optional<SymExpr> getNonEmpty(Value condition) {
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  if (!compare)
    return std::nullopt;
  Value low = compare.getRhs(), high = compare.getLhs();
  if (compare.getPredicate() == arith::CmpIPredicate::slt)
    std::swap(low, high);
  else if (compare.getPredicate() != arith::CmpIPredicate::sgt)
    return std::nullopt;
  auto extent = high.getDefiningOp<onf::ExtentOp>();
  return extent && matchPattern(low, m_Zero()) ? std::optional(extent.getExpr()) : std::nullopt;
}

/// Collects the folds over `extent` that a value depends on if extent > 0. A fold over an empty
/// range reads nothing, so such a condition protects no load.
void OnDemand::collectFolds(Value value, const SymExpr &extent, llvm::DenseSet<Operation *> &seen,
                            SmallVectorImpl<Operation *> &folds) {
  Operation *op = value.getDefiningOp();
  if (!op || !seen.insert(op).second)
    return;
  if (auto fold = dyn_cast<FoldOp>(op)) {
    if (fold.getExtent() == extent)
      folds.push_back(fold);
    return;
  }
  for (auto [k, operand] : llvm::enumerate(op->getOperands())) {
    auto same = isOnDemand(op, k) ? getNonEmpty(op->getOperand(0)) : extent;
    if (same && *same == extent)
      collectFolds(operand, extent, seen, folds);
  }
}

void OnDemand::collectNeeded() {
  collected = true;
  SmallVector<Operation *> work;
  auto need = [&](Operation *op) {
    if (op && needed.insert(op).second)
      work.push_back(op);
  };
  kernel.walk([&](StoreOp store) { need(store); });
  while (!work.empty()) {
    Operation *op = work.pop_back_val();
    for (auto [k, operand] : llvm::enumerate(op->getOperands())) {
      SmallVector<Operation *> folds;
      llvm::DenseSet<Operation *> seen;
      if (!isOnDemand(op, k))
        need(operand.getDefiningOp());
      else if (auto extent = getNonEmpty(op->getOperand(0)))
        collectFolds(operand, *extent, seen, folds);
      for (Operation *fold : folds)
        need(fold);
    }
    if (isa<FoldOp, AccOp>(op))
      for (Region &region : op->getRegions())
        for (Operation &inner : region.getOps())
          if (isa<AccOp, GuardOp, YieldOp>(inner))
            need(&inner);
  }
}

bool OnDemand::isAlwaysNeeded(Operation *op) {
  if (!collected)
    collectNeeded();
  return needed.contains(op);
}

} // namespace moa
