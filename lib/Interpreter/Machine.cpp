//===- Machine.cpp - demand-driven evaluation of scalar code --------------===//
#include "lib/Interpreter/Machine.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/Hashing.h"

using namespace mlir;
using namespace moa;
using namespace moa::interp;
using llvm::Error;
using llvm::Expected;

namespace {

struct ConstantNode final : Node {
  ConstantNode(Scope *scope, Location loc, Cell cell) : Node(scope, loc), cell(cell) {}
  Cell compute(Machine &) override { return cell; }
  Cell cell;
};

/// A value with operands is absent if any operand is.
struct OperandNode : Node {
  OperandNode(Scope *scope, Location loc, std::vector<Node *> inputs) : Node(scope, loc), operands(std::move(inputs)) {
    for (Node *operand : operands)
      mayBeAbsent |= operand->mayBeAbsent;
  }
  bool present(Machine &m) override {
    for (Node *operand : operands)
      if (!m.isPresent(operand))
        return false;
    return true;
  }
  std::vector<Node *> operands;
};

struct ScalarNode final : OperandNode {
  ScalarNode(Scope *scope, Location loc, std::vector<Node *> inputs, Instr instr)
      : OperandNode(scope, loc, std::move(inputs)), instr(instr) {}
  Cell compute(Machine &m) override {
    Cell cells[4], result = ofInt(0);
    for (size_t k = 0; k < operands.size(); ++k)
      cells[k] = m.get(operands[k]);
    if (const char *why = perform(instr, cells, result))
      return m.fail(loc, why);
    if (isRounded(instr.code))
      result.f = m.moved(result.f, *this);
    return result;
  }
  Instr instr;
};

struct SelectNode final : OperandNode {
  using OperandNode::OperandNode;
  Cell compute(Machine &m) override { return m.get(operands[m.get(operands[0]).i ? 1 : 2]); }
};

/// A value that cannot be computed; an error if it is needed.
struct FaultNode final : Node {
  FaultNode(Scope *scope, Location loc, std::string why) : Node(scope, loc), why(std::move(why)) {}
  Cell compute(Machine &m) override { return m.fail(loc, why); }
  std::string why;
};

/// Logical `and` and `or` with short-circuit evaluation.
struct LogicNode final : OperandNode {
  LogicNode(Scope *scope, Location loc, std::vector<Node *> inputs, bool decisive)
      : OperandNode(scope, loc, std::move(inputs)), decisive(decisive) {}
  Cell compute(Machine &m) override {
    Cell left = m.get(operands[0]);
    return static_cast<bool>(left.i) == decisive ? left : m.get(operands[1]);
  }
  bool decisive; // the value of the left operand that decides the result
};

} // namespace

Scope *GraphBuilder::makeScope(unsigned nesting) {
  scopes.push_back(std::make_unique<Scope>());
  scopes.back()->depth = nesting;
  return scopes.back().get();
}

Scope *GraphBuilder::scopeOf(ValueRange values) {
  Scope *deepest = &top;
  for (Value value : values)
    if (Node *node = nodeOf(value); node && node->scope->depth > deepest->depth)
      deepest = node->scope;
  return deepest;
}

Scope *GraphBuilder::captureScope(Region &region) {
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(region, captured);
  return scopeOf(captured.getArrayRef());
}

std::vector<Node *> GraphBuilder::nodesOf(ValueRange values) {
  std::vector<Node *> result;
  for (Value value : values)
    result.push_back(nodeOf(value));
  return result;
}

std::vector<Node *> GraphBuilder::makeArguments(Block &block, Scope *scope) {
  std::vector<Node *> result;
  for (BlockArgument arg : block.getArguments()) {
    result.push_back(make<ArgumentNode>(scope, arg.getLoc()));
    define(arg, result.back());
  }
  return result;
}

void GraphBuilder::makeExtent(Value value, Expected<int64_t> number) {
  if (number)
    define(value, make<ConstantNode>(&top, value.getLoc(), ofInt(*number)));
  else
    define(value, make<FaultNode>(&top, value.getLoc(), llvm::toString(number.takeError())));
}

Error GraphBuilder::buildOp(Operation *op) {
  auto special = buildSpecial(op);
  if (!special || *special)
    return special.takeError();
  auto unknown = [&] {
    return makeError(locationText(op->getLoc()) + "no meaning for '" + op->getName().getStringRef() +
                     "' in the interpreter");
  };
  for (Value operand : op->getOperands())
    if (!nodeOf(operand))
      return unknown();
  Location loc = op->getLoc();
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto cell = ofAttribute(constant.getValue());
    if (!cell)
      return unknown();
    define(constant, make<ConstantNode>(&top, loc, *cell));
    return Error::success();
  }
  Scope *scope = scopeOf(op->getOperands());
  if (isa<arith::SelectOp>(op)) {
    define(op->getResult(0), make<SelectNode>(scope, loc, nodesOf(op->getOperands())));
    return Error::success();
  }
  if (isa<arith::AndIOp, arith::OrIOp>(op) && op->getResult(0).getType().isInteger(1)) {
    define(op->getResult(0), make<LogicNode>(scope, loc, nodesOf(op->getOperands()), isa<arith::OrIOp>(op)));
    return Error::success();
  }
  auto instr = instrOf(op);
  if (!instr)
    return unknown();
  define(op->getResult(0), make<ScalarNode>(scope, loc, nodesOf(op->getOperands()), *instr));
  return Error::success();
}
