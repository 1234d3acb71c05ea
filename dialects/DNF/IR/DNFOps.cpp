//===- DNFOps.cpp - verifiers of the dnf ops ------------------------------===//
#include "dialects/DNF/IR/DNF.h"
#include "dialects/MoA/IR/Monoid.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "dialects/DNF/IR/DNFOps.cpp.inc"

namespace moa::dnf {

static void nameArguments(Region &region, ArrayAttr names, OpAsmSetValueNameFn setName) {
  if (region.empty())
    return;
  for (auto [arg, name] : llvm::zip(region.getArguments(), names))
    setName(arg, cast<StringAttr>(name).getValue());
}

/// C1 and C2 of let and output: one index argument and one name per extent, and a yield of the
/// declared type.
template <typename OpTy> static LogicalResult verifyDefinition(OpTy op) {
  Block &block = op.getBody().front();
  if (block.getNumArguments() != op.getDomain().size() || op.getNames().size() != op.getDomain().size())
    return op.emitOpError("expects one index and one name per extent (C1), but got ")
           << block.getNumArguments() << " indices and " << op.getNames().size() << " names for "
           << op.getDomain().size();
  for (BlockArgument arg : block.getArguments())
    if (!arg.getType().isIndex())
      return op.emitOpError("expects arguments of type index (C1), but got ") << arg.getType();
  auto yield = block.empty() ? YieldOp() : dyn_cast<YieldOp>(block.back());
  if (!yield)
    return op.emitOpError("expects dnf.yield at its end (C2)");
  if (yield.getValue().getType() != op.getType())
    return op.emitOpError("expects a yield of type ")
           << op.getType() << " (C2), but got " << yield.getValue().getType();
  return success();
}

void KernelOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  nameArguments(region, getArgNames(), setName);
}

LogicalResult KernelOp::verify() {
  Block &block = getBody().front();
  if (block.getNumArguments() != getArgNames().size())
    return emitOpError("expects one name per parameter (C1), but got ")
           << getArgNames().size() << " for " << block.getNumArguments();
  if (!llvm::all_of(block.getArgumentTypes(), llvm::IsaPred<ArrayType>) ||
      !llvm::all_of(getResultTypes().getAsValueRange<TypeAttr>(), llvm::IsaPred<ArrayType>))
    return emitOpError("expects parameters and results of array type (C5)");
  SmallVector<bool> defined(getResultTypes().size(), false);
  if (getResultNames().size() != defined.size())
    return emitOpError("expects one name per result (C2), but got ")
           << getResultNames().size() << " for " << defined.size();
  for (Operation &op : block) {
    if (auto output = dyn_cast<OutputOp>(op)) {
      uint64_t k = output.getResult();
      if (k >= defined.size() || defined[k])
        return output.emitOpError("expects each result to be defined once (C3)");
      defined[k] = true;
    } else if (!isa<LetOp>(op)) {
      return op.emitOpError("expects only dnf.let and dnf.output in a kernel (C4)");
    }
  }
  return verifyWithin(*this, "C6");
}

void LetOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  nameArguments(region, getNames(), setName);
}
LogicalResult LetOp::verify() { return verifyDefinition(*this); }

void OutputOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  nameArguments(region, getNames(), setName);
}
LogicalResult OutputOp::verify() { return verifyDefinition(*this); }

LogicalResult PsiOp::verify() {
  ArrayType type = getArray().getType();
  if (getIndices().size() != type.getRank())
    return emitOpError("expects a full index (C1), but got ")
           << getIndices().size() << " indices for rank " << type.getRank();
  if (getResult().getType() != type.getElementType())
    return emitOpError("expects the element type (C2), but got ") << getResult().getType();
  auto arg = dyn_cast<BlockArgument>(getArray());
  if (!arg || !isa<KernelOp>(arg.getOwner()->getParentOp()))
    return emitOpError("expects an input array (C3)");
  return success();
}

LogicalResult ApplyOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto let = symbols.lookupNearestSymbolFrom<LetOp>(*this, getLetAttr());
  if (!let)
    return emitOpError("expects a let (C1), but got ") << getLetAttr();
  if (let.getDomain().size() != getIndices().size())
    return emitOpError("expects one index per axis of the let (C2), but got ")
           << getIndices().size() << " for " << let.getDomain().size();
  if (let.getType() != getResult().getType())
    return emitOpError("expects the type of the let (C3), but got ") << getResult().getType();
  Operation *owner = *this;
  while (owner && !isa<KernelOp>(owner->getParentOp()))
    owner = owner->getParentOp();
  if (owner == let || !let->isBeforeInBlock(owner))
    return emitOpError("expects a let defined above (C4), but got ") << getLetAttr();
  return success();
}

void ReduceOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  if (!region.empty() && region.getNumArguments() == 1)
    setName(region.getArgument(0), getName());
}

LogicalResult ReduceOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyMonoidUse(*this, getMonoid(), getFunctionAttr(), getResult().getType(), "C4", symbols);
}

LogicalResult ReduceOp::verify() {
  Block &block = getBody().front();
  if (block.getNumArguments() != 1 || !block.getArgument(0).getType().isIndex())
    return emitOpError("expects one index argument (C1)");
  auto yield = block.empty() ? YieldOp() : dyn_cast<YieldOp>(block.back());
  if (!yield)
    return emitOpError("expects dnf.yield at its end (C2)");
  if (yield.getValue().getType() != getResult().getType())
    return emitOpError("expects a yield of the result's type (C2), but got ") << yield.getValue().getType();
  if (!isDefinedOn(getMonoid(), getResult().getType()))
    return emitOpError("expects ") << (isLogical(getMonoid()) ? "booleans" : "numbers") << " for '"
                                   << stringifyMonoid(getMonoid()) << "' (C3), but got " << getResult().getType();
  return success();
}

} // namespace moa::dnf
