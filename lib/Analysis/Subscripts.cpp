//===- Subscripts.cpp - subscripts of a flat address ----------------------===//
#include "lib/Analysis/Subscripts.h"

using namespace mlir;
using namespace moa;

static SymExpr atomExpr(const SymExpr::Atom &atom) {
  switch (atom.kind) {
  case SymExpr::Atom::Kind::Symbol:
    return SymExpr::symbol(atom.text);
  case SymExpr::Atom::Kind::FloorDiv:
    return SymExpr::floorDiv(atom.lhs, atom.rhs);
  case SymExpr::Atom::Kind::Mod:
    return SymExpr::mod(atom.lhs, atom.rhs);
  }
  llvm_unreachable("unknown atom");
}

std::optional<std::map<std::string, SymExpr>> moa::splitBySymbols(const SymExpr &expr,
                                                                  const std::set<std::string> &names) {
  std::map<std::string, SymExpr> parts;
  for (const auto &[monomial, coefficient] : expr.getTerms()) {
    SymExpr rest(coefficient);
    std::string symbol;
    for (const auto &[atom, power] : monomial) {
      bool found = symbol.empty() && power == 1 && names.count(atom->text);
      if (found)
        symbol = atom->text;
      for (unsigned k = found; k < power; ++k)
        rest = rest * atomExpr(*atom);
    }
    if (symbol.empty())
      return std::nullopt;
    parts[symbol] = parts[symbol] + rest;
  }
  return parts;
}

std::optional<SmallVector<Subscript>> moa::getSubscripts(onf::LoadOp load) {
  auto kernel = load->getParentOfType<onf::KernelOp>();
  auto array = dyn_cast<BlockArgument>(load.getArray());
  if (!kernel || !array)
    return std::nullopt;
  StringRef name = kernel.getArrayName(array.getArgNumber());
  unsigned rank = load.getArray().getType().getRank();
  std::vector<std::string> strides;
  for (unsigned axis = 0; axis < rank; ++axis)
    strides.push_back((name + ".s" + Twine(axis)).str());
  std::set<std::string> names(strides.begin(), strides.end());
  SmallVector<Subscript> result(rank);
  auto split = [&](StringRef text, llvm::function_ref<void(Subscript &, const SymExpr &)> add) {
    auto expr = SymExpr::parse(text);
    auto parts = expr ? splitBySymbols(*expr, names) : std::nullopt;
    for (unsigned axis = 0; parts && axis < rank; ++axis)
      if (auto part = parts->find(strides[axis]); part != parts->end())
        add(result[axis], part->second);
    return parts.has_value();
  };
  bool isLinear =
      split(load.getConstant(), [](Subscript &subscript, const SymExpr &constant) { subscript.constant = constant; });
  for (auto [term, text] : llvm::zip_equal(load.getTerms(), load.getCoefficients()))
    isLinear &= split(cast<StringAttr>(text).getValue(), [&, term = term](Subscript &subscript, const SymExpr &factor) {
      subscript.terms.emplace_back(term, factor);
    });
  if (!isLinear)
    return std::nullopt;
  return result;
}
