//===- Launched.cpp - conditions that hold if a nest is launched ----------===//
#include "lib/Analysis/Launched.h"
#include "dialects/ONF/IR/Hints.h"

using namespace mlir;
using namespace moa;

/// Returns the texts x, y of each pair of onf::kLaunchIfAttr.
static SmallVector<std::pair<StringRef, StringRef>> getConditions(onf::ForOp nest) {
  SmallVector<std::pair<StringRef, StringRef>> pairs;
  if (auto runs = nest->getAttrOfType<ArrayAttr>(onf::kLaunchIfAttr)) {
    SmallVector<StringRef> texts(runs.getAsValueRange<StringAttr>());
    for (size_t k = 0; k + 1 < texts.size(); k += 2)
      pairs.emplace_back(texts[k], texts[k + 1]);
  }
  return pairs;
}

/// Returns expressions that are not negative if the nest is launched: x − y − 1 for each pair, and
/// those of the kernel's requirements.
static SmallVector<SymExpr> getNonNegative(onf::ForOp nest) {
  SmallVector<SymExpr> list;
  auto add = [&](StringRef larger, StringRef smaller, int64_t apart) {
    auto x = SymExpr::parse(larger), y = SymExpr::parse(smaller);
    if (x && y)
      list.push_back(*x - *y - SymExpr(apart));
  };
  for (auto [x, y] : getConditions(nest))
    add(x, y, 1);
  for (StringRef text : nest->getParentOfType<onf::KernelOp>().getRequires().getAsValueRange<StringAttr>())
    for (StringRef relation : {">=", "<=", ">", "<"})
      if (text.contains(relation)) {
        auto [x, y] = text.split(relation);
        if (relation[0] == '<')
          std::swap(x, y);
        add(x, y, relation.size() == 1);
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
  auto own = getConditions(nest);
  return isChosen &&
         llvm::all_of(getConditions(other), [&](const auto &pair) { return llvm::is_contained(own, pair); });
}
