//===- Columns.h - nests in blocks of columns -------------------*- C++ -*-===//
//
// Register blocking of a matrix product. A nest computes C(i, c) = f(i, c, Σ_k x(i, k) · y(k, c)),
// where the axis c is long or its size is known only at run time. The pass splits c = c₀ + d with
// d < kColumns, so that the sum becomes a state with the axis d. Each element of x and y is then
// read once per block:
//
//   for c, i:                            for c₀ in steps of kColumns, i:
//     fold k: s ← s + x(i, k)·y(k, c)      fold k: s[d] ← s[d] + x(i, k)·y(k, c₀ + d)
//     store f(i, c, s)                     for d, c₀ + d < C: store f(i, c₀ + d, s[d])
//
// The last block has fewer columns; nothing is read or stored for the missing ones. A loop over c
// inside a nest of rows is rewritten in the same way: each block has the fold over k and a loop
// over d.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_CONVERSION_ONFTOVECTOR_COLUMNS_H
#define MOA_CONVERSION_ONFTOVECTOR_COLUMNS_H

#include "dialects/ONF/IR/ONF.h"

namespace moa::rows {

/// Columns of a block. In f32, 256 indices k of y then take 128 KB, and the states of 96 rows 48
/// KB.
inline constexpr int64_t kColumns = 128;

void moveLast(onf::ForOp nest, unsigned axis);

/// Moves the axes of a nest so that its last two are columns and rows of its sums, and marks the
/// nest with a hint. Returns false, with nothing changed, if the nest does not have the form above.
bool orderColumns(onf::ForOp nest);

/// Rewrites a nest marked by orderColumns as described above. In other nests, rewrites and marks
/// the loops that have this form. The caller must emit the step of the axis c and the end of the
/// loop over d, because onf cannot express them.
void blockColumns(onf::ForOp nest);

} // namespace moa::rows

#endif // MOA_CONVERSION_ONFTOVECTOR_COLUMNS_H
