//===- RepeatedSums.h - repeated sums of products ---------------*- C++ -*-===//
//
// If a sum of products is computed at several places, all copies must have the same bits. Only a
// sum that is computed once may use instructions other than ordered multiply-adds, such as bf16 dot
// products.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_ANALYSIS_REPEATEDSUMS_H
#define MOA_ANALYSIS_REPEATEDSUMS_H

#include "dialects/ONF/IR/ONF.h"
#include <vector>

namespace moa {

/// The sums of products of a kernel with factors from bf16 arrays.
class RepeatedSums {
public:
  explicit RepeatedSums(onf::KernelOp kernel);

  /// Returns true if the sum may be computed a second time, by
  /// - another fold, not nested with its fold, over products of the same arrays; if the sum has one
  ///   array and a computed factor, the other one must have a computed factor too;
  /// - the condition of a guard, which is evaluated separately.
  ///
  /// The attribute onf::kAloneAttr of the sum, if present, takes precedence.
  bool contains(onf::AccOp sum) const;

  /// Stores the result of `contains` on each sum (onf::kAloneAttr), so that copies of the sum
  /// inherit the result.
  static void note(onf::KernelOp kernel);

private:
  /// The factors of a term: arrays of bf16, and whether others are computed.
  struct Factors {
    mutable onf::AccOp sum;
    llvm::SmallSetVector<mlir::Value, 2> arrays;
    bool areComputed = false, isProduct = false, isOfGuard = false;
  };
  static Factors read(onf::AccOp sum);
  static bool mayEqual(const Factors &sum, const Factors &other);
  std::vector<Factors> sums;
};

} // namespace moa

#endif // MOA_ANALYSIS_REPEATEDSUMS_H
