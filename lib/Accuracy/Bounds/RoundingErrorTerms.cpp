//===- RoundingErrorTerms.cpp - equal scalar terms of dnf -----------------===//
#include "lib/Accuracy/Bounds/RoundingErrorTerms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace moa;

/// The place of a value in a block `outer` that contains it. The first entry is the op in that
/// block, or null for an argument of the block. The second is true if the value is inside that op.
/// The third is the number of the value or region.
using TextPlace = std::tuple<Operation *, bool, unsigned>;

static TextPlace getPlace(Value value, Block *outer) {
  Block *own = value.getParentBlock();
  if (own == outer) {
    if (auto argument = dyn_cast<BlockArgument>(value))
      return {nullptr, false, argument.getArgNumber()};
    return {value.getDefiningOp(), false, cast<OpResult>(value).getResultNumber()};
  }
  Operation *holder = outer->findAncestorOpInBlock(*own->getParentOp());
  Region *region = own->getParent();
  while (region->getParentOp() != holder)
    region = region->getParentRegion();
  return {holder, true, region->getRegionNumber()};
}

bool moa::comesBefore(Value a, Value b) {
  // Climb to a block that contains both.
  Block *ofB = b.getParentBlock(), *outer = a.getParentBlock();
  while (outer != ofB && !outer->findAncestorOpInBlock(*ofB->getParentOp()))
    outer = outer->getParentOp()->getBlock();
  auto [opA, isInsideA, numberA] = getPlace(a, outer);
  auto [opB, isInsideB, numberB] = getPlace(b, outer);
  // Arguments come before every op, and an op's results before the values inside it.
  if (opA != opB)
    return !opA || (opB && opA->isBeforeInBlock(opB));
  return std::pair(isInsideA, numberA) < std::pair(isInsideB, numberB);
}

dnf::YieldOp moa::getYield(Region &body) { return cast<dnf::YieldOp>(body.front().getTerminator()); }

dnf::LetOp moa::getLet(dnf::ApplyOp apply) {
  return SymbolTable::lookupNearestSymbolFrom<dnf::LetOp>(apply, apply.getLetAttr());
}

std::shared_ptr<const Environment> moa::enterLet(dnf::ApplyOp apply, const Closure &term) {
  auto environment = std::make_shared<Environment>();
  for (auto [index, operand] : llvm::zip(getLet(apply).getBody().getArguments(), apply.getIndices()))
    environment->indices[index] = {operand, term.environment};
  return environment;
}

std::shared_ptr<const Environment> moa::bindIndex(std::shared_ptr<const Environment> environment, Value index,
                                                  Closure term) {
  auto inner = std::make_shared<Environment>();
  inner->indices[index] = std::move(term);
  inner->outer = std::move(environment);
  return inner;
}

static const Closure *lookup(const Environment *environment, Value index) {
  for (; environment; environment = environment->outer.get()) {
    auto it = environment->indices.find(index);
    if (it != environment->indices.end())
      return &it->second;
  }
  return nullptr;
}

Closure moa::resolve(Closure term) {
  while (true) {
    Operation *op = term.value.getDefiningOp();
    if (!op) {
      const Closure *other = lookup(term.environment.get(), term.value);
      if (!other)
        return {term.value, nullptr};
      term = Closure(*other);
    } else if (auto apply = dyn_cast<dnf::ApplyOp>(op)) {
      term = {getYield(getLet(apply).getBody()).getValue(), enterLet(apply, term)};
    } else if (isa<arith::ExtFOp>(op)) {
      term.value = op->getOperand(0);
    } else {
      return term;
    }
  }
}

namespace {
class ClosureComparison {
public:
  bool equal(Closure a, Closure b) {
    if (++steps > kMaxSteps)
      return false;
    // Applications of the same let at equal indices are equal.
    if (areSameApplications(a, b))
      return true;
    a = resolve(std::move(a));
    b = resolve(std::move(b));
    Operation *x = a.value.getDefiningOp(), *y = b.value.getDefiningOp();
    if (!x || !y || isa<BlockArgument>(a.value))
      return a.value == b.value;
    if (x->getName() != y->getName() || x->getNumOperands() != y->getNumOperands() ||
        x->getNumRegions() != y->getNumRegions() || x->getResultTypes() != y->getResultTypes())
      return false;
    if (auto reduce = dyn_cast<dnf::ReduceOp>(x))
      return equalReductions(reduce, cast<dnf::ReduceOp>(y), a, b);
    return x->getAttrDictionary() == y->getAttrDictionary() && equalOperands(x, y, a, b);
  }

private:
  static constexpr unsigned kMaxSteps = 4096;

  bool equalOperands(Operation *x, Operation *y, const Closure &a, const Closure &b) {
    for (auto [left, right] : llvm::zip(x->getOperands(), y->getOperands()))
      if (!equal({left, a.environment}, {right, b.environment}))
        return false;
    return true;
  }
  bool areSameApplications(const Closure &a, const Closure &b) {
    auto x = a.value.getDefiningOp<dnf::ApplyOp>();
    auto y = b.value.getDefiningOp<dnf::ApplyOp>();
    return x && y && x.getLetAttr() == y.getLetAttr() && equalOperands(x, y, a, b);
  }
  bool equalReductions(dnf::ReduceOp x, dnf::ReduceOp y, const Closure &a, const Closure &b) {
    if (x.getMonoid() != y.getMonoid() || x.getExtent() != y.getExtent() ||
        x.getFunctionAttr() != y.getFunctionAttr() || x.getOperandTypeAttr() != y.getOperandTypeAttr())
      return false;
    Value index = x.getBody().getArgument(0);
    auto inner = bindIndex(b.environment, y.getBody().getArgument(0), {index, nullptr});
    auto left = getYield(x.getBody());
    auto right = getYield(y.getBody());
    if (bool(left.getPresent()) != bool(right.getPresent()))
      return false;
    return equal({left.getValue(), a.environment}, {right.getValue(), inner}) &&
           (!left.getPresent() || equal({left.getPresent(), a.environment}, {right.getPresent(), inner}));
  }
  unsigned steps = 0;
};
} // namespace

bool moa::areEqual(const Closure &a, const Closure &b) { return ClosureComparison().equal(a, b); }

static std::shared_ptr<const Environment> rebase(const std::shared_ptr<const Environment> &inner,
                                                 const std::shared_ptr<const Environment> &outer) {
  if (!inner)
    return outer;
  auto copy = std::make_shared<Environment>();
  for (const auto &[index, term] : inner->indices)
    copy->indices[index] = {term.value, rebase(term.environment, outer)};
  copy->outer = rebase(inner->outer, outer);
  return copy;
}

Closure moa::rebase(const Closure &term, std::shared_ptr<const Environment> environment) {
  return {term.value, ::rebase(term.environment, environment)};
}

static void collectConjuncts(const Closure &condition, SmallVectorImpl<Closure> &conjuncts) {
  conjuncts.push_back(condition);
  if (auto both = condition.value.getDefiningOp<arith::AndIOp>()) {
    conjuncts.pop_back();
    collectConjuncts({both.getLhs(), condition.environment}, conjuncts);
    collectConjuncts({both.getRhs(), condition.environment}, conjuncts);
  }
}

bool moa::implies(const Closure &a, const Closure &b) {
  if (!b.value)
    return true;
  if (!a.value)
    return false;
  SmallVector<Closure> known, wanted;
  collectConjuncts(a, known);
  collectConjuncts(b, wanted);
  return llvm::all_of(wanted, [&](const Closure &part) {
    return llvm::any_of(known, [&](const Closure &other) { return areEqual(other, part); });
  });
}

bool moa::isInRange(const RangeRequirement &requirement, Value condition) {
  auto reduce = requirement.reduction.value.getDefiningOp<dnf::ReduceOp>();
  auto yield = getYield(reduce.getBody());
  auto environment = bindIndex(requirement.reduction.environment, reduce.getBody().getArgument(0), requirement.index);
  return implies({condition, nullptr}, {yield.getPresent(), environment});
}

Closure moa::resolveMagnitude(Closure term) {
  for (term = resolve(std::move(term)); isa_and_nonnull<arith::NegFOp, math::AbsFOp>(term.value.getDefiningOp());
       term = resolve(std::move(term)))
    term.value = term.value.getDefiningOp()->getOperand(0);
  return term;
}

std::optional<Closure> moa::findIndex(const Closure &element, const Closure &reduction,
                                      const std::set<Value, ValueLess> &candidates) {
  auto reduce = reduction.value.getDefiningOp<dnf::ReduceOp>();
  Value yielded = getYield(reduce.getBody()).getValue();
  for (Value index : candidates) {
    Closure term{index, nullptr};
    auto environment = bindIndex(reduction.environment, reduce.getBody().getArgument(0), term);
    if (areEqual(element, {yielded, environment}))
      return term;
  }
  return std::nullopt;
}
