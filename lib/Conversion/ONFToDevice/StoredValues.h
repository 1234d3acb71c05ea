//===- StoredValues.h - values of rows or keys alone, stored once -*- C++ -*-===//
//
// In a fold over keys each score may need what the row or the key alone decides: computed and
// rounded operands, norms, reciprocals. In nests of their own, in front of the fold's, they are
// computed once.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_CONVERSION_ONFTODEVICE_STOREDVALUES_H
#define MOA_CONVERSION_ONFTODEVICE_STOREDVALUES_H

#include "dialects/ONF/IR/ONF.h"

namespace moa {

/// Stores elements of the rows or of the keys that are computed and rounded in the fold, as by a
/// cast, and loads them there.
void storeOperands(onf::FoldOp fold);

/// Stores what folds give for each key, which all rows read.
void storeFoldsOfKeys(onf::FoldOp fold);

/// Quotients by what the row or the key alone decides become products with the reciprocal, one for
/// each row and key, where nothing that follows may jump. Where tensor cores take the nest its
/// numbers have few bits.
void takeReciprocals(onf::ForOp nest, onf::FoldOp fold);

} // namespace moa

#endif // MOA_CONVERSION_ONFTODEVICE_STOREDVALUES_H
