//===- Quotients.h - guards for quotients by zero sizes ---------*- C++ -*-===//
#ifndef MOA_FRONTEND_QUOTIENTS_H
#define MOA_FRONTEND_QUOTIENTS_H

#include "dialects/MoA/IR/MoA.h"
#include "llvm/ADT/SetVector.h"

namespace moa::frontend {

/// Adds the constraint `q == q` for each quotient or remainder q of symbols that every call
/// evaluates. Either the results need q for all array elements, or q is an extent of an array that
/// the results depend on. As with every constraint, a call is refused if q divides by zero and
/// there is something to compute. Quotients that the header or a constraint already evaluates get
/// none.
void requireQuotients(KernelOp kernel, llvm::SmallVectorImpl<std::string> &constraints);

/// Returns the operations with an element that the results need for any elements of the input
/// arrays, if the results are not empty.
llvm::SetVector<mlir::Operation *> findNeeded(KernelOp kernel);

} // namespace moa::frontend

#endif // MOA_FRONTEND_QUOTIENTS_H
