//===- StoredValues.h - values of rows or keys alone, computed once -*- C++ -*-===//
//
// In a fold over keys, scores may need values of the row or of the key alone: rounded operands,
// norms, reciprocals. These functions hoist such values into nests before that of the fold, which
// store them.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_CONVERSION_ONFTODEVICE_STOREDVALUES_H
#define MOA_CONVERSION_ONFTODEVICE_STOREDVALUES_H

#include "dialects/ONF/IR/ONF.h"

namespace moa {

/// Stores operands of rows or keys that the fold computes and rounds, for example by a cast, and
/// loads them in the fold.
void storeOperands(onf::FoldOp fold);

/// Stores the results of inner folds for each key, which all rows read.
void storeFoldsOfKeys(onf::FoldOp fold);

/// Rewrites quotients by a value of the row or the key alone to products with its reciprocal, which
/// is computed once per row or key. Skips quotients that a discontinuous function may follow. For
/// nests of tensor cores only, whose operands have few bits.
void takeReciprocals(onf::ForOp nest, onf::FoldOp fold);

} // namespace moa

#endif // MOA_CONVERSION_ONFTODEVICE_STOREDVALUES_H
