//===- DeviceOps.cpp - verifiers of the device ops ------------------------===//
#include "dialects/Device/IR/Device.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "dialects/Device/IR/DeviceOps.cpp.inc"

namespace moa::device {

void ProgramOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  if (region.empty())
    return;
  SmallVector<Attribute> names(getArgNames().begin(), getArgNames().end());
  names.append(getResultNames().begin(), getResultNames().end());
  for (auto [arg, name] : llvm::zip(region.getArguments(), names))
    setName(arg, cast<StringAttr>(name).getValue());
}

LogicalResult ProgramOp::verify() {
  Block &block = getBody().front();
  size_t inputs = getArgNames().size(), outputs = getResultTypes().size();
  if (block.getNumArguments() != inputs + outputs || getResultNames().size() != outputs)
    return emitOpError("expects one argument per input and output (C1), but got ")
           << block.getNumArguments() << " for " << inputs << " and " << outputs;
  if (!llvm::all_of(block.getArgumentTypes(), llvm::IsaPred<ArrayType>))
    return emitOpError("expects arguments of array type (C2)");
  for (auto [arg, type] : llvm::zip(block.getArguments().drop_front(inputs),
                                    getResultTypes().getAsValueRange<TypeAttr>()))
    if (arg.getType() != type)
      return emitOpError("expects outputs of the declared types (C2), but got ")
             << arg.getType();
  for (Operation &op : block)
    if (!isa<KernelOp>(op))
      return op.emitOpError("expects only device.kernel in a program (C3)");
  return success();
}

LogicalResult KernelOp::verify() {
  int64_t threads = getThreads();
  if (threads < 32 || threads > 1024 || threads % 32 != 0)
    return emitOpError("expects a multiple of 32 up to 1024 as the threads of a block "
                       "(C1), but got ")
           << threads;
  if (getBody().getNumArguments() != 0)
    return emitOpError("expects no arguments of its own (C3), but got ")
           << getBody().getNumArguments();
  return success();
}

LogicalResult SymbolOp::verify() {
  std::string why;
  if (!SymExpr::parse(getExpr(), &why))
    return emitOpError("expects an integer expression (C1), but got '")
           << getExpr() << "': " << why;
  return success();
}

/// The accessed array is a parameter of the program, on the expected side.
static LogicalResult verifyParameter(Operation *op, Value array, bool output) {
  auto arg = dyn_cast<BlockArgument>(array);
  auto program = op->getParentOfType<ProgramOp>();
  if (!arg || !program || arg.getOwner() != &program.getBody().front())
    return op->emitOpError("expects a parameter of the program (C1)");
  bool isOutput = arg.getArgNumber() >= program.getArgNames().size();
  if (isOutput != output)
    return op->emitOpError("expects an ")
           << (output ? "output" : "input") << " (C2), but got argument "
           << arg.getArgNumber();
  return success();
}

static LogicalResult verifyElement(Operation *op, Type value, ArrayType array) {
  if (value != array.getElementType())
    return op->emitOpError("expects the array's element type ")
           << array.getElementType() << " (C3), but got " << value;
  return success();
}

LogicalResult ScalarOp::verify() {
  if (getArray().getType().getRank() != 0)
    return emitOpError("expects an array of rank 0 (C4), but got rank ")
           << getArray().getType().getRank();
  return failure(failed(verifyParameter(*this, getArray(), false)) ||
                 failed(verifyElement(*this, getResult().getType(),
                                      getArray().getType())));
}

LogicalResult LoadOp::verify() {
  return failure(failed(verifyParameter(*this, getArray(), false)) ||
                 failed(verifyElement(*this, getResult().getType(),
                                      getArray().getType())));
}

LogicalResult StoreOp::verify() {
  return failure(failed(verifyParameter(*this, getArray(), true)) ||
                 failed(verifyElement(*this, getValue().getType(),
                                      getArray().getType())));
}

} // namespace moa::device
