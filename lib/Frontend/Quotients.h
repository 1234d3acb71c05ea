//===- Quotients.h - quotients of symbols that have no value ----*- C++ -*-===//
#ifndef MOA_FRONTEND_QUOTIENTS_H
#define MOA_FRONTEND_QUOTIENTS_H

#include "dialects/MoA/IR/MoA.h"
#include "llvm/ADT/SetVector.h"

namespace moa::frontend {

/// Adds `q == q` to the constraints for every quotient or remainder q of symbols that
/// the results need whatever the elements of the arrays are, or that is an extent of
/// something they are computed from: like every constraint it is refused in a call where
/// it divides by zero, if there is something to compute. Those that are in the header or
/// in a constraint anyhow get none.
void requireQuotients(KernelOp kernel, llvm::SmallVectorImpl<std::string> &constraints);

/// The operations of which elements are needed whatever those of the arrays are, where the
/// results have any.
llvm::SetVector<mlir::Operation *> findNeeded(KernelOp kernel);

} // namespace moa::frontend

#endif // MOA_FRONTEND_QUOTIENTS_H
