//===- DNFDialect.cpp - the dnf dialect -----------------------------------===//
#include "dialects/DNF/IR/DNF.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;

#include "dialects/DNF/IR/DNFDialect.cpp.inc"

void moa::dnf::DNFDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/DNF/IR/DNFOps.cpp.inc"
      >();
}
