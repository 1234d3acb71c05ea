//===- Lifting.h - mixed-radix digits of a lifted axis ----------*- C++ -*-===//
//
// Lifting factors an index i < n by sizes s₁ … s_k: i = ((c·s₁ + d₁)·s₂ + …) + d_k
// with 0 ≤ d_m < s_m, 0 ≤ c < ⌈n / (s₁·…·s_k)⌉ and the guard i < n. The map from
// the guarded digits to the indices is a bijection.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_SCHEDULE_LIFTING_H
#define MOA_SCHEDULE_LIFTING_H

#include "dialects/ONF/IR/ONF.h"
#include "llvm/Support/Error.h"

namespace moa {

/// The digits (c, d₁, …, d_k) of an index.
llvm::SmallVector<int64_t> liftedDigits(llvm::ArrayRef<int64_t> innerSizes, int64_t index);

/// The index of digits.
int64_t liftedIndex(llvm::ArrayRef<int64_t> innerSizes, llvm::ArrayRef<int64_t> digits);

/// ⌈n / (s₁·…·s_k)⌉, the size that the outermost factor takes.
int64_t liftedQuotient(llvm::ArrayRef<int64_t> innerSizes, int64_t extent);

/// The quotient of a shape by one factor per axis: <8 12 64 32> by <2 3 4 8> is
/// <4 4 16 4>.
llvm::SmallVector<int64_t> liftedShape(llvm::ArrayRef<int64_t> shape,
                                       llvm::ArrayRef<int64_t> factors);

/// Proves for every extent n ≥ 0, by emptiness of integer sets, that the guarded
/// digits of an axis and the indices 0 ≤ i < n correspond one to one. The error
/// names the half of the proof that failed.
llvm::Error verifyBijection(onf::AxisAttr axis);

} // namespace moa

#endif // MOA_SCHEDULE_LIFTING_H
