//===- Exponents.cpp - factors of scores in exponents ---------------------===//
#include "lib/Accuracy/Variants/Exponents.h"
#include "lib/Accuracy/Selection/Adapter.h"
#include "lib/Analysis/Jumps.h"
#include "lib/Conversion/ONFToVector/Dependence.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"
#include <set>

using namespace mlir;

namespace moa::accuracy {

namespace {
/// Follows a score through its uses, and collects the factors on each path.
class Follower {
public:
  Follower(onf::ForOp nest, onf::FoldOp outer) : nest(nest), key(outer.getBody().getArgument(0)) {}

  ExponentPaths run(Value start) {
    findReached(start);
    follow(start, {});
    while (!open.empty()) {
      auto [value, way] = open.pop_back_val();
      for (OpOperand &use : value.getUses())
        if (nest->isProperAncestor(use.getOwner()))
          step(use, way);
    }
    // A sum with another value has its own magnitude; it matters if no exponential follows.
    if (result.paths.empty() && !result.unknown)
      result.paths = sums;
    return std::move(result);
  }

private:
  struct Way : ExponentPath {
    Operation *unknown = nullptr;
    std::vector<void *> key(Value value) const {
      std::vector<void *> key{value.getAsOpaquePointer(), unknown};
      for (ArrayRef<Value> list :
           {ArrayRef(ofRow.factors), ArrayRef(ofRow.divisors), ArrayRef(ofKey.factors), ArrayRef(ofKey.divisors)}) {
        for (Value x : list)
          key.push_back(x.getAsOpaquePointer());
        key.push_back(nullptr);
      }
      return key;
    }
  };

  /// Returns the values that a use defines; for a yield of a fold, one result.
  static SmallVector<Value> madeBy(OpOperand &use) {
    Operation *user = use.getOwner();
    if (auto fold = dyn_cast<onf::FoldOp>(user->getParentOp()); fold && isa<onf::YieldOp>(user))
      return {fold->getResult(use.getOperandNumber())};
    return getMade(user);
  }

  void findReached(Value start) {
    reached.insert(start);
    for (size_t next = 0; next < reached.size(); ++next)
      for (OpOperand &use : reached[next].getUses())
        if (nest->isProperAncestor(use.getOwner())) {
          SmallVector<Value> made = madeBy(use);
          reached.insert(made.begin(), made.end());
        }
  }

  void follow(Value value, const Way &way) {
    constexpr size_t kMostWays = 256;
    if (seen.size() < kMostWays && seen.insert(way.key(value)).second)
      open.push_back({value, way});
    else if (seen.size() >= kMostWays)
      result.unknown = nest;
  }

  /// Return true if the value depends on the row alone, or on the key alone, and not on the score.
  bool isOfRow(Value value) {
    auto isOfNest = [&](Value index) { return cast<BlockArgument>(index).getOwner()->getParentOp() == nest; };
    return !reached.contains(value) && llvm::all_of(deps.of(value), isOfNest) && canCopy(value);
  }
  bool isOfKey(Value value) {
    Value row = nest.getBody().getArguments().back();
    auto isKnown = [&](Value index) {
      return index == key || (index != row && cast<BlockArgument>(index).getOwner()->getParentOp() == nest);
    };
    return !reached.contains(value) && llvm::all_of(deps.of(value), isKnown) && canCopy(value);
  }
  bool canCopy(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || !nest->isProperAncestor(op))
      return true;
    if (reached.contains(value) || !isPure(op))
      return false;
    SetVector<Value> used(op->operand_begin(), op->operand_end());
    getUsedValuesDefinedAbove(op->getRegions(), used);
    return llvm::all_of(used, [&](Value operand) { return canCopy(operand); });
  }
  static bool isPure(Operation *op) { return isa<onf::LoadOp, onf::FoldOp>(op) || isMemoryEffectFree(op); }

  void end(const Way &way) {
    if (way.unknown)
      result.unknown = way.unknown;
    else
      result.paths.push_back(way);
  }

  void step(OpOperand &use, const Way &way) {
    Operation *user = use.getOwner();
    // Errors pass neither through comparisons (see Jumps.h) nor into states that are relative to
    // the score, which cancel its changes.
    if (isa<arith::CmpFOp, onf::AccOp>(user))
      return;
    Way next = way;
    auto lose = [&] { next.unknown = user; };
    if (isa<arith::MulFOp, arith::DivFOp>(user)) {
      bool isQuotient = isa<arith::DivFOp>(user);
      Value other = user->getOperand(1 - use.getOperandNumber());
      bool ofRow = isOfRow(other);
      ExponentPath::Factors &into = ofRow ? next.ofRow : next.ofKey;
      if ((isQuotient && use.getOperandNumber() == 1) || !(ofRow || isOfKey(other)))
        lose();
      else
        (isQuotient ? into.divisors : into.factors).push_back(other);
    } else if (isa<arith::AddFOp, arith::SubFOp>(user)) {
      if (!reached.contains(user->getOperand(1 - use.getOperandNumber())) && !way.unknown)
        sums.push_back(way);
    } else if (isa<math::ExpOp, math::Exp2Op>(user)) {
      return end(way);
    } else if (isa<math::TanhOp, math::ErfOp, math::SinOp, math::CosOp, math::AtanOp>(user)) {
      end(way); // slope at most 1.13
    } else if (isa<math::LogOp, math::Log2Op, math::Log1pOp, math::SqrtOp, math::RsqrtOp>(user)) {
      lose();
    } else if (isa_and_nonnull<math::MathDialect>(user->getDialect()) && !isa<math::AbsFOp>(user)) {
      lose();
      end(next);
      return;
    } else if (auto acc = dyn_cast<onf::AccOp>(user->getParentOp()); acc && isa<onf::YieldOp>(user)) {
      // A maximum or minimum is one of its terms; a sum or a product is not.
      if (acc.getMonoid() != Monoid::max && acc.getMonoid() != Monoid::min)
        next.unknown = acc;
      if (acc.getMonoid() == Monoid::user)
        end(next);
    }
    for (Value made : madeBy(use))
      follow(made, next);
  }

  onf::ForOp nest;
  Value key;
  rows::Dependence deps;
  llvm::SetVector<Value> reached;
  SmallVector<std::pair<Value, Way>> open;
  std::set<std::vector<void *>> seen;
  SmallVector<ExponentPath> sums;
  ExponentPaths result;
};
} // namespace

ExponentPaths findExponents(const ScoreFold &score, onf::ForOp nest) {
  return Follower(nest, score.outer).run(score.fold.getResult(0));
}

/// Returns `square` times the squares of the factors, over those of the divisors.
static Value timesSquares(Code &code, Value square, const ExponentPath::Factors &by, IRMapping &map) {
  auto squareOf = [&](Value factor) {
    Value copy = copyOf(code, factor, map);
    return code.mul(copy, copy);
  };
  for (Value factor : by.factors)
    square = code.mul(square, squareOf(factor));
  for (Value divisor : by.divisors)
    square = code.div(square, squareOf(divisor));
  return square;
}

Value squareOfKey(Code &code, const ExponentPath &way, IRMapping &map) {
  return timesSquares(code, code.real(1), way.ofKey, map);
}

Value timesFactors(Code &code, Value square, const ScoreFold &score, onf::ForOp nest, IRMapping &map,
                   llvm::function_ref<Value(const ExponentPath &, unsigned)> ofKeys) {
  ExponentPaths exponents = findExponents(score, nest);
  if (exponents.paths.empty() && score.factor)
    exponents.paths.push_back({{{score.factor}, {}}, {}});
  Value largest;
  for (auto [number, way] : llvm::enumerate(exponents.paths)) {
    Value x = timesSquares(code, square, way.ofRow, map);
    if (!way.ofKey.isOne())
      x = code.mul(x, ofKeys(way, number));
    largest = largest ? code.max(largest, x) : x;
  }
  return largest ? largest : square;
}

bool hasFactorsOfRows(const ScoreFold &score, onf::ForOp nest) {
  rows::Dependence deps;
  Value row = nest.getBody().getArguments().back();
  return llvm::any_of(findExponents(score, nest).paths, [&](const ExponentPath &way) {
    auto differs = [&](Value factor) { return deps.on(factor, row); };
    return llvm::any_of(way.ofRow.factors, differs) || llvm::any_of(way.ofRow.divisors, differs);
  });
}

} // namespace moa::accuracy
