//===- ONF.h - the onf dialect ----------------------------------*- C++ -*-===//
#ifndef MOA_DIALECTS_ONF_IR_ONF_H
#define MOA_DIALECTS_ONF_IR_ONF_H

#include "dialects/MoA/IR/MoA.h"
#include "mlir/IR/AffineMap.h"

#include "dialects/ONF/IR/ONFDialect.h.inc"
#include "dialects/ONF/IR/ONFEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/ONF/IR/ONFAttrs.h.inc"
#define GET_OP_CLASSES
#include "dialects/ONF/IR/ONFOps.h.inc"

#endif // MOA_DIALECTS_ONF_IR_ONF_H
