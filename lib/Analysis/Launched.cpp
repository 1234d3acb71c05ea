//===- Launched.cpp - conditions that hold if a nest is launched ----------===//
#include "lib/Analysis/Launched.h"
#include "dialects/ONF/IR/Hints.h"

using namespace mlir;
using namespace moa;

/// Returns expressions that are not negative if the nest is launched: x − y − 1 for each pair, and
/// those of the kernel's requirements.
static SmallVector<SymExpr> getNonNegative(onf::ForOp nest) {
  SmallVector<SymExpr> list;
  for (auto [x, y] : onf::getLaunchConditions(nest))
    list.push_back(x.getValue() - y.getValue() - SymExpr(1));
  for (StringRef text : nest->getParentOfType<onf::KernelOp>().getRequires().getAsValueRange<StringAttr>())
    for (StringRef relation : {">=", "<=", ">", "<"})
      if (text.contains(relation)) {
        auto [x, y] = text.split(relation);
        if (relation[0] == '<')
          std::swap(x, y);
        if (auto larger = SymExpr::parse(x), smaller = SymExpr::parse(y); larger && smaller)
          list.push_back(*larger - *smaller - SymExpr(relation.size() == 1));
        break;
      }
  return list;
}

bool moa::isPositive(const SymExpr &expr, onf::ForOp nest) {
  if (expr.getTerms().size() != 1)
    return false;
  const auto &[monomial, factor] = *expr.getTerms().begin();
  auto known = getNonNegative(nest);
  auto isAtLeast = [&](const SymExpr &x, int64_t least) {
    return llvm::any_of(known, [&](const SymExpr &part) {
      auto rest = (x - SymExpr(least) - part).getConstant();
      return rest && *rest >= 0;
    });
  };
  return factor >= 1 && llvm::all_of(monomial, [&](const auto &power) {
           const SymExpr::Atom &atom = *power.first;
           if (atom.kind == SymExpr::Atom::Kind::Symbol)
             return isAtLeast(SymExpr::symbol(atom.text), 1);
           auto divisor = atom.kind == SymExpr::Atom::Kind::FloorDiv ? atom.rhs.getConstant() : std::nullopt;
           return divisor && *divisor >= 1 && isAtLeast(atom.lhs, *divisor);
         });
}

bool moa::runsWithin(onf::ForOp nest, onf::ForOp other) {
  bool isChosen = !other.getChoices() ||
                  (nest.getChoices() == other.getChoices() && nest.getChoiceAxesAttr() == other.getChoiceAxesAttr() &&
                   nest.getChoiceAttr() == other.getChoiceAttr());
  auto own = onf::getLaunchConditions(nest);
  return isChosen &&
         llvm::all_of(onf::getLaunchConditions(other), [&](const auto &pair) { return llvm::is_contained(own, pair); });
}
