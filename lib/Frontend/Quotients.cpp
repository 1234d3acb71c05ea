//===- Quotients.cpp - guards for quotients by zero sizes -----------------===//
//
// M/N has no value if N is 0. In a shape of the header or in a constraint this is checked when the
// kernel is called. Here all other quotients that the results always need become constraints.
//
//===----------------------------------------------------------------------===//
#include "lib/Frontend/Quotients.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace moa;

namespace {

class Quotients {
public:
  explicit Quotients(SmallVectorImpl<std::string> &constraints) : constraints(constraints) {}

  /// Records the divisors of an expression that every call evaluates.
  void know(const SymExpr &e) {
    for (auto &[text, divisor] : divisors(e))
      known.insert(divisor);
  }
  /// Adds a constraint for each quotient whose divisor is not recorded yet.
  void require(const SymExpr &e) {
    for (auto &[quotient, divisor] : divisors(e))
      if (known.insert(divisor).second)
        constraints.push_back(quotient + " == " + quotient);
  }

private:
  /// Returns the quotients and remainders in an expression whose divisor may be 0, each with its
  /// divisor, inner ones first.
  static std::vector<std::pair<std::string, std::string>> divisors(const SymExpr &e) {
    std::vector<std::pair<std::string, std::string>> result;
    for (const auto &[monomial, coefficient] : e.getTerms())
      for (const auto &[atom, power] : monomial) {
        if (atom->kind == SymExpr::Atom::Kind::Symbol)
          continue;
        for (const SymExpr *inside : {&atom->lhs, &atom->rhs})
          llvm::append_range(result, divisors(*inside));
        if (!atom->rhs.getConstant())
          result.emplace_back(atom->text, atom->rhs.str());
      }
    return result;
  }

  SmallVectorImpl<std::string> &constraints;
  std::set<std::string> known;
};

} // namespace

/// Returns the operands that are always read; for example, only the condition of a select.
static ValueRange neededOperands(Operation *op) {
  if (auto map = dyn_cast<MapOp>(op)) {
    bool isLogic = map.getResult().getType().getElementType().isInteger(1) &&
                   (map.getFn() == ScalarFn::and_ || map.getFn() == ScalarFn::or_);
    if (map.getFn() == ScalarFn::select || map.getFn() == ScalarFn::otherwise || isLogic)
      return map.getInputs().take_front(1);
  }
  if (isa<MaskOp>(op)) // its predicate
    return op->getOperands().take_front(1);
  return op->getOperands();
}

/// Returns the operations that `start` depends on through the operands given by `operandsOf`.
static llvm::SetVector<Operation *> collect(ValueRange start, function_ref<ValueRange(Operation *)> operandsOf) {
  llvm::SetVector<Operation *> found;
  auto add = [&](ValueRange operands) {
    for (Value operand : operands)
      if (Operation *op = operand.getDefiningOp())
        found.insert(op);
  };
  add(start);
  for (size_t k = 0; k < found.size(); ++k)
    add(operandsOf(found[k]));
  return found;
}

llvm::SetVector<Operation *> frontend::findNeeded(KernelOp kernel) {
  return collect(kernel.getBody().front().getTerminator()->getOperands(), neededOperands);
}

void frontend::requireQuotients(KernelOp kernel, SmallVectorImpl<std::string> &constraints) {
  Quotients quotients(constraints);
  auto shape = [](Type type) {
    SmallVector<SymExpr> extents;
    for (unsigned k = 0; k < cast<ArrayType>(type).getRank(); ++k)
      extents.push_back(cast<ArrayType>(type).getExtent(k));
    return extents;
  };
  for (BlockArgument argument : kernel.getBody().getArguments())
    for (const SymExpr &extent : shape(argument.getType()))
      quotients.know(extent);
  for (Attribute type : kernel.getResultTypes())
    for (const SymExpr &extent : shape(cast<TypeAttr>(type).getValue()))
      quotients.know(extent);
  for (const std::string &constraint : constraints) {
    SmallVector<StringRef> sides;
    llvm::SplitString(constraint, sides, "=!<>&");
    for (StringRef side : sides)
      if (auto e = SymExpr::parse(side.trim()))
        quotients.know(*e);
  }

  // Every reached array has its shape, even if no element of it is needed.
  llvm::SetVector<Operation *> needed = findNeeded(kernel);
  llvm::SetVector<Operation *> reached = collect(kernel.getBody().front().getTerminator()->getOperands(),
                                                 [](Operation *op) { return ValueRange(op->getOperands()); });
  for (Operation &op : kernel.getBody().front()) {
    if (reached.contains(&op))
      for (Type type : op.getResultTypes())
        for (const SymExpr &extent : shape(type))
          quotients.require(extent);
    if (auto extent = dyn_cast<ExtentOp>(op); extent && needed.contains(&op))
      quotients.require(extent.getExpr());
  }
}
