//===- Lifting.h - mixed-radix digits of a lifted axis ----------*- C++ -*-===//
//
// Lifting (strip-mining) factors an index i < n by sizes s₁ … s_k: i = ((c·s₁ + d₁)·s₂ + …) + d_k
// with 0 ≤ d_m < s_m, 0 ≤ c < ⌈n / (s₁·…·s_k)⌉ and the guard i < n. The map from the guarded digits
// to the indices is a bijection.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_SCHEDULE_LIFTING_H
#define MOA_SCHEDULE_LIFTING_H

#include "dialects/ONF/IR/ONF.h"
#include "llvm/Support/Error.h"

namespace moa {

/// Returns the digits (c, d₁, …, d_k) of an index.
llvm::SmallVector<int64_t> liftedDigits(llvm::ArrayRef<int64_t> innerSizes, int64_t index);

int64_t liftedIndex(llvm::ArrayRef<int64_t> innerSizes, llvm::ArrayRef<int64_t> digits);

/// Returns ⌈n / (s₁·…·s_k)⌉, the size of the outermost factor.
int64_t liftedQuotient(llvm::ArrayRef<int64_t> innerSizes, int64_t extent);

/// Returns the quotient of a shape by one factor per axis. For example, <8 12 64 32> by <2 3 4 8>
/// is <4 4 16 4>.
llvm::SmallVector<int64_t> liftedShape(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> factors);

/// Proves, by emptiness of integer sets, that the guarded digits of an axis and the indices 0 ≤ i <
/// n correspond one to one, for every extent n ≥ 0. The error names the half of the proof that
/// failed.
llvm::Error verifyBijection(onf::AxisAttr axis);

} // namespace moa

#endif // MOA_SCHEDULE_LIFTING_H
