//===- Columns.h - nests in blocks of columns -------------------*- C++ -*-===//
//
// C(i, c) = f(i, c, Σ_k x(i, k) · y(k, c)) with an axis c that is long, or whose size only the run
// knows. The nest is lifted: c = c₀ + d with d < kColumns, so that the sum becomes a state that
// carries d, of which every element of x and y is read once per block (register blocking of a
// matrix product):
//
//   for c, i:                            for c₀ in steps of kColumns, i:
//     fold k: s ← s + x(i, k)·y(k, c)      fold k: s[d] ← s[d] + x(i, k)·y(k, c₀ + d)
//     store f(i, c, s)                     for d, c₀ + d < C: store f(i, c₀ + d, s[d])
//
// The last block has fewer columns. Nothing is read or stored for the others. A loop over c inside
// of a nest of rows is lifted in the same way: it has the fold over k for each block, and a loop
// over d in it.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_CONVERSION_ONFTOVECTOR_COLUMNS_H
#define MOA_CONVERSION_ONFTOVECTOR_COLUMNS_H

#include "dialects/ONF/IR/ONF.h"

namespace moa::rows {

/// Columns of a block: a block of 256 indices k of y has 128 KB of f32, and the states of 96 rows
/// 48 KB.
inline constexpr int64_t kColumns = 128;

/// Makes `axis` of a nest its last one.
void moveLast(onf::ForOp nest, unsigned axis);

/// Moves the axes of a nest so that its last two are columns and rows of its sums, and says so with
/// a hint, if the nest has this form. Returns whether it has.
bool orderColumns(onf::ForOp nest);

/// Rewrites a nest that orderColumns has marked as shown above, or the loops of another nest that
/// have this form, and marks these. The steps of the axis and the end of the inner loop are left to
/// the caller, as onf has no words for them.
void blockColumns(onf::ForOp nest);

} // namespace moa::rows

#endif // MOA_CONVERSION_ONFTOVECTOR_COLUMNS_H
