//===- Temporaries.cpp - arrays of the workspace ---------------------------===//
#include "dialects/ONF/Transforms/Temporaries.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace moa::onf {

StringRef nameOf(AccOp acc) {
  auto named = dyn_cast<NameLoc>(acc->getLoc());
  bool isName = named && llvm::all_of(named.getName().getValue(), [](char c) { return llvm::isAlnum(c) || c == '_'; });
  return isName ? named.getName().getValue() : acc.getName();
}

Type elementOf(AccOp acc) {
  auto array = dyn_cast<ArrayType>(acc.getResult().getType());
  return array ? array.getElementType() : acc.getResult().getType();
}

Type storedType(Type type) {
  OpBuilder b(type.getContext());
  if (type.isF32() || type.isF64() || type.isInteger(64))
    return type;
  if (type.isIndex())
    return b.getI64Type();
  return type.isInteger(1) ? b.getI8Type() : Type();
}

BlockArgument addTemporary(KernelOp kernel, StringRef wish, ArrayRef<SymExpr> shape, Type element, Location loc) {
  Builder b(kernel.getContext());
  auto isTaken = [&](const std::string &name) {
    return kernel.findArray(name) || llvm::is_contained(kernel.getSymbols().getAsValueRange<StringAttr>(), name);
  };
  std::string name = wish.str();
  for (unsigned k = 2; isTaken(name); ++k)
    name = wish.str() + std::to_string(k);
  auto type = ArrayType::get(b.getContext(), shape, element);
  SmallVector<Attribute> names, types;
  if (kernel.getTemporaryNames()) {
    llvm::append_range(names, *kernel.getTemporaryNames());
    llvm::append_range(types, *kernel.getTemporaryTypes());
  }
  names.push_back(b.getStringAttr(name));
  types.push_back(TypeAttr::get(type));
  kernel.setTemporaryNamesAttr(b.getArrayAttr(names));
  kernel.setTemporaryTypesAttr(b.getArrayAttr(types));
  return kernel.getBody().front().addArgument(type, loc);
}

void storeValue(OpBuilder &b, Location loc, Value value, BlockArgument array, ValueRange indices) {
  if (value.getType().isInteger(1))
    value = arith::ExtUIOp::create(b, loc, b.getI8Type(), value);
  StoreOp::create(b, loc, value, array, indices);
}

Value loadValue(OpBuilder &b, Location loc, Type type, BlockArgument array, ValueRange indices) {
  Value value = LoadOp::create(b, loc, array, indices);
  if (type.isIndex())
    return arith::IndexCastOp::create(b, loc, type, value);
  if (!type.isInteger(1))
    return value;
  Value zero = arith::ConstantOp::create(b, loc, b.getI8IntegerAttr(0));
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, value, zero);
}

} // namespace moa::onf
