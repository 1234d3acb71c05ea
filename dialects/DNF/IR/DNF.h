//===- DNF.h - the dnf dialect ----------------------------------*- C++ -*-===//
#ifndef MOA_DIALECTS_DNF_IR_DNF_H
#define MOA_DIALECTS_DNF_IR_DNF_H

#include "dialects/MoA/IR/MoA.h"
#include "mlir/IR/AffineMap.h"

#include "dialects/DNF/IR/DNFDialect.h.inc"

#define GET_OP_CLASSES
#include "dialects/DNF/IR/DNFOps.h.inc"

#endif // MOA_DIALECTS_DNF_IR_DNF_H
