//===- Faults.cpp - values that may only be asked for in places -----------===//
#include "lib/Analysis/Faults.h"
#include "lib/Analysis/Subscripts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace moa;

/// The extent that an index of a nest or of a fold runs over.
static std::optional<StringRef> extentOf(Value index) {
  auto argument = dyn_cast<BlockArgument>(index);
  if (!argument)
    return std::nullopt;
  Operation *owner = argument.getOwner()->getParentOp();
  if (auto nest = dyn_cast<onf::ForOp>(owner))
    return cast<StringAttr>(nest.getExtents()[argument.getArgNumber()]).getValue();
  if (auto fold = dyn_cast<onf::FoldOp>(owner); fold && argument.getArgNumber() == 0)
    return fold.getExtent();
  return std::nullopt;
}

/// Whether an expression over symbols, which are not negative, is so in plain sight.
static bool isNonNegative(const SymExpr &e) {
  return llvm::all_of(e.getTerms(), [](const auto &term) {
    const auto &[monomial, coefficient] = term;
    return coefficient >= 0 && llvm::all_of(monomial, [](const auto &factor) {
             return factor.first->kind == SymExpr::Atom::Kind::Symbol;
           });
  });
}

/// c + Σ f·i for indices 0 ≤ i < n lies in c to c + Σ f·(n − 1).
static bool isInside(const Subscript &subscript, const SymExpr &extent) {
  SymExpr most = subscript.constant;
  if (!isNonNegative(subscript.constant))
    return false;
  for (const auto &[index, factor] : subscript.terms) {
    std::optional<StringRef> range = extentOf(index);
    auto size = range ? SymExpr::parse(*range) : std::nullopt;
    if (!size || !isNonNegative(factor))
      return false;
    most = most + factor * (*size - SymExpr(1));
  }
  return isNonNegative(extent - SymExpr(1) - most);
}

bool Faults::loadMayFault(onf::LoadOp load) {
  ArrayType type = load.getArray().getType();
  if (type.getRank() == 0)
    return false;
  auto subscripts = getSubscripts(load);
  if (!subscripts)
    return true;
  for (auto [subscript, extent] : llvm::zip_equal(*subscripts, type.getShape())) {
    auto size = SymExpr::parse(extent.getValue());
    if (!size || !isInside(subscript, *size))
      return true;
  }
  return false;
}

bool Faults::mayFault(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || isa<onf::FoldOp>(op))
    return false;
  if (auto found = known.find(value); found != known.end())
    return found->second;
  bool result = llvm::any_of(op->getOperands(), [&](Value v) { return mayFault(v); });
  if (auto load = dyn_cast<onf::LoadOp>(op))
    result |= loadMayFault(load);
  else if (isa<onf::AccOp, onf::AtOp>(op) || op->getNumRegions() != 0)
    result = true;
  else if (isa<arith::FloorDivSIOp, arith::CeilDivSIOp, arith::DivSIOp, arith::DivUIOp,
               arith::RemSIOp, arith::RemUIOp>(op)) {
    // Divisors among the extents are a matter of the kernel, not of places.
    APInt divisor;
    Value by = op->getOperand(1);
    bool isConstant = matchPattern(by, m_ConstantInt(&divisor)) && !divisor.isZero();
    result |= !isConstant && !by.getDefiningOp<onf::ExtentOp>();
  }
  return known[value] = result;
}
