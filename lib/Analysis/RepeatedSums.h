//===- RepeatedSums.h - sums of products that are computed again -*- C++ -*-===//
//
// A sum of products that is computed again where it is read has the same bits there. So only a sum
// that nothing computes again may be added up by instructions that are not multiply-adds in order.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_ANALYSIS_REPEATEDSUMS_H
#define MOA_ANALYSIS_REPEATEDSUMS_H

#include "dialects/ONF/IR/ONF.h"
#include <vector>

namespace moa {

/// The sums of a kernel with factors that are elements of bf16.
class RepeatedSums {
public:
  explicit RepeatedSums(onf::KernelOp kernel);

  /// Whether some other fold may compute the sum again: one of which none stands in the other and
  /// that sums up products of these elements, of a computed factor too where the sum has one; or
  /// the condition of the fold around it, which is evaluated on its own. What the sum says of
  /// itself (onf::kAloneAttr) comes first.
  bool contains(onf::AccOp sum) const;

  /// Says of each sum whether it is one, so that copies of it say the same.
  static void note(onf::KernelOp kernel);

private:
  /// What a term multiplies: arrays of bf16, and anything else.
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
