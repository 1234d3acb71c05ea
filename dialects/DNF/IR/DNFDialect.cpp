//===- DNFDialect.cpp - the dnf dialect -----------------------------------===//
#include "dialects/DNF/IR/DNF.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FoldInterfaces.h"

using namespace mlir;

#include "dialects/DNF/IR/DNFDialect.cpp.inc"

namespace {
/// Keeps constants that folding creates inside a let or an output: a kernel's body may not hold
/// any.
struct KeepConstantsInside : DialectFoldInterface {
  using DialectFoldInterface::DialectFoldInterface;
  bool shouldMaterializeInto(Region *region) const final {
    return isa<moa::dnf::LetOp, moa::dnf::OutputOp>(region->getParentOp());
  }
};
} // namespace

void moa::dnf::DNFDialect::initialize() {
  addInterfaces<KeepConstantsInside>();
  addOperations<
#define GET_OP_LIST
#include "dialects/DNF/IR/DNFOps.cpp.inc"
      >();
}
