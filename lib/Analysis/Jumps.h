//===- Jumps.h - where results jump as values pass others -------*- C++ -*-===//
//
// Errors of rounded sums move what follows from them continuously, by about as much in each row, or
// they carry a value past a number where something jumps: then few rows are off, by much, and a
// sample of rows seldom shows it.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_ANALYSIS_JUMPS_H
#define MOA_ANALYSIS_JUMPS_H

#include "dialects/ONF/IR/ONF.h"

namespace moa {

struct Jump {
  mlir::Operation *op = nullptr; // which jumps
  unsigned result = 0;           // the number of an array of the kernel that it reaches
};

/// What jumps as these values of a nest move and reaches a store: a comparison, unless it chooses
/// of two values that are equal where it changes; a rounding to integers; anything that is not
/// known to be continuous, poles apart. Nothing where all that follows from them is continuous [Def
/// 31].
std::optional<Jump> findJump(llvm::ArrayRef<mlir::Value> values);

/// What an operation has made of one of its operands, also where that is a result of what is around
/// it.
llvm::SmallVector<mlir::Value> getMade(mlir::Operation *user);

/// What stores something that follows from an operation.
llvm::SmallVector<onf::StoreOp> findStores(mlir::Operation *op);

/// What it is and where, and what to do.
std::string describeJump(const Jump &jump);

} // namespace moa

#endif // MOA_ANALYSIS_JUMPS_H
