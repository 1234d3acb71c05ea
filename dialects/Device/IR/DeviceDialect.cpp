//===- DeviceDialect.cpp - the device dialect -----------------------------===//
#include "dialects/Device/IR/Device.h"
#include "mlir/Interfaces/FoldInterfaces.h"

using namespace mlir;
using namespace moa::device;

#include "dialects/Device/IR/DeviceDialect.cpp.inc"

namespace {
/// Constants made by folding stay inside a kernel: a program holds none.
struct KeepConstantsInside : DialectFoldInterface {
  using DialectFoldInterface::DialectFoldInterface;
  bool shouldMaterializeInto(Region *region) const final {
    return isa<KernelOp>(region->getParentOp());
  }
};
} // namespace

void DeviceDialect::initialize() {
  addInterfaces<KeepConstantsInside>();
  addOperations<
#define GET_OP_LIST
#include "dialects/Device/IR/DeviceOps.cpp.inc"
      >();
}
