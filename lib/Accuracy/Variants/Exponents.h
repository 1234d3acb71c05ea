//===- Exponents.h - factors of scores in exponents -------------*- C++ -*-===//
//
// Finds the factors between a score and an exponential. Products, quotients and roots keep the
// relative error of a score. The relative error of an exponential is the absolute error of its
// exponent, which is the score times these factors.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_ACCURACY_EXPONENTS_H
#define MOA_ACCURACY_EXPONENTS_H

#include "lib/Accuracy/Selection/Candidates.h"
#include "lib/Accuracy/Stages/KernelEditor.h"

namespace moa::accuracy {

/// A path from a score to a use of its absolute error: an exponential, a saturating function, a
/// sum. The error there is at most that of the score times the factors over the divisors; each
/// depends on the row or on the key alone.
struct ExponentPath {
  struct Factors {
    llvm::SmallVector<mlir::Value, 2> factors, divisors;
    bool isOne() const { return factors.empty() && divisors.empty(); }
  };
  Factors ofRow, ofKey;
};

/// The paths of a score; those to exponentials if there are any.
struct ExponentPaths {
  llvm::SmallVector<ExponentPath> paths;
  /// An operation that makes a factor depend on more than the row or the key: for example a product
  /// with a value that depends on both, a sum over keys, or a function of unknown slope. Null:
  /// none.
  mlir::Operation *unknown = nullptr;
};

/// Follows the score to all its uses in the nest.
ExponentPaths findExponents(const ScoreFold &score, onf::ForOp nest);

/// Returns the square of the key's factors on a path. `map` has the indices of the nest except the
/// last, and of the score's fold.
mlir::Value squareOfKey(Code &code, const ExponentPath &way, mlir::IRMapping &map);

/// Returns `square` times the largest square of the factors over all known paths; without a path,
/// the factor is that of the score. `map` has the indices of the nest; `ofKeys` returns the largest
/// `squareOfKey` of a path.
mlir::Value timesFactors(Code &code, mlir::Value square, const ScoreFold &score, onf::ForOp nest, mlir::IRMapping &map,
                         llvm::function_ref<mlir::Value(const ExponentPath &way, unsigned number)> ofKeys);

bool hasFactorsOfRows(const ScoreFold &score, onf::ForOp nest);

} // namespace moa::accuracy

#endif // MOA_ACCURACY_EXPONENTS_H
