//===- UserMonoid.cpp - execution of user-defined monoids -----------------===//
#include "lib/Interpreter/UserMonoid.h"
#include "lib/Interpreter/Kernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;
using namespace moa;
using namespace moa::interp;

static Type elementOf(Type type) {
  auto array = dyn_cast<ArrayType>(type);
  return array ? array.getElementType() : type;
}

std::shared_ptr<const UserMonoid> UserMonoid::make(MonoidOp op, std::string &why) {
  auto result = std::make_shared<UserMonoid>();
  result->identity = *ofAttribute(op.getIdentity());
  result->form = Form::of(op.getElementType());
  Block &body = op.getBody().front();
  llvm::DenseMap<Value, unsigned> numbers;
  for (BlockArgument argument : body.getArguments())
    numbers[argument] = argument.getArgNumber();
  for (Operation &inner : body.without_terminator()) {
    Step step;
    Attribute constant;
    std::optional<Instr> instr;
    if (auto map = dyn_cast<MapOp>(inner)) {
      if (map.getFn() == ScalarFn::select)
        step.kind = Step::Select;
      else if (map.getFn() == ScalarFn::otherwise) // both arguments are present
        instr = instrOf(ScalarFn::id, elementOf(inner.getOperand(0).getType()));
      else
        instr = instrOf(map.getFn(), elementOf(inner.getOperand(0).getType()));
    } else if (auto cast = dyn_cast<CastOp>(inner)) {
      instr = castOf(elementOf(cast.getInput().getType()), elementOf(cast.getResult().getType()), cast.getImplicit());
    } else if (isa<arith::SelectOp>(inner)) {
      step.kind = Step::Select;
    } else if (isa<ConstantOp, arith::ConstantOp>(inner)) {
      constant = inner.getAttr("value");
    } else {
      instr = instrOf(&inner);
    }
    if (constant) {
      step.kind = Step::Constant;
      step.constant = *ofAttribute(constant);
    } else if (instr) {
      step.instr = *instr;
    } else if (step.kind != Step::Select) {
      why = ("'" + inner.getName().getStringRef() + "' has no meaning in a monoid").str();
      return nullptr;
    }
    for (Value operand : inner.getOperands())
      step.operands[step.count++] = numbers.lookup(operand);
    numbers[inner.getResult(0)] = result->steps.size() + 2;
    result->steps.push_back(step);
  }
  result->returned = numbers.lookup(op.getReturned());
  return result;
}

const char *UserMonoid::apply(Cell x, Cell y, Cell &result) const {
  llvm::SmallVector<Cell, 16> values{x, y};
  llvm::SmallVector<const char *, 16> wrong{nullptr, nullptr};
  for (const Step &step : steps) {
    Cell operands[3], value = ofInt(0);
    const char *fault = nullptr;
    if (step.kind == Step::Constant) {
      value = step.constant;
    } else if (step.kind == Step::Select) {
      unsigned condition = step.operands[0];
      unsigned picked = step.operands[values[condition].i ? 1 : 2];
      fault = wrong[condition] ? wrong[condition] : wrong[picked];
      value = values[picked];
    } else {
      for (unsigned k = 0; k < step.count; ++k) {
        operands[k] = values[step.operands[k]];
        fault = fault ? fault : wrong[step.operands[k]];
      }
      if (!fault)
        fault = perform(step.instr, operands, value);
    }
    values.push_back(value);
    wrong.push_back(fault);
  }
  result = values[returned];
  return wrong[returned];
}

llvm::Expected<std::shared_ptr<const UserMonoid>> moa::interp::getUserMonoid(Operation *op) {
  MonoidOp monoid = lookupMonoid(op);
  if (!monoid)
    return std::shared_ptr<const UserMonoid>();
  std::string why;
  auto made = UserMonoid::make(monoid, why);
  if (!made)
    return makeError(locationText(op->getLoc()) + why);
  return made;
}
