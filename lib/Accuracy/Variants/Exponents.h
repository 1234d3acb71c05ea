//===- Exponents.h - by what factors scores are exponents -------*- C++ -*-===//
//
// What an error of a score does depends on what is made of the score: products, quotients and roots
// are off by as much relatively as it is, an exponential by as much relatively as its exponent is
// absolutely, and an exponent is the score times what stands on the way to it.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_ACCURACY_EXPONENTS_H
#define MOA_ACCURACY_EXPONENTS_H

#include "lib/Accuracy/Selection/Candidates.h"
#include "lib/Accuracy/Stages/KernelEditor.h"

namespace moa::accuracy {

/// A way from a score to where its errors matter absolutely: an exponential, a function that
/// saturates, a sum with something else. An error there is at most that of the score times the
/// factors, divided by the divisors, which the row or the key alone decides.
struct Exponent {
  struct Factors {
    llvm::SmallVector<mlir::Value, 2> factors, divisors;
    bool isOne() const { return factors.empty() && divisors.empty(); }
  };
  Factors ofRow, ofKey;
};

/// All of them of a score, the exponentials if there are any.
struct Exponents {
  llvm::SmallVector<Exponent> ways;
  /// What makes a factor on a way one that neither the row nor the key alone decides: a product
  /// with what depends on both or on the score, a sum over keys, a function of unknown slope. Null:
  /// nothing does.
  mlir::Operation *unknown = nullptr;
};

/// Of the sum of products itself, to all that its nest makes of it.
Exponents findExponents(const Score &score, onf::ForOp nest);

/// The factors of a key on one way, squared. `map` has the indices of the nest, but its last, and
/// of the score's fold.
mlir::Value squareOfKey(Code &code, const Exponent &way, mlir::IRMapping &map);

/// The square of what errors of the score are multiplied with, at most, on the ways that are known,
/// times `square`; on none by the factor that the score has. `map` has the indices of the nest;
/// `ofKeys` is the largest `squareOfKey` of a way.
mlir::Value timesFactors(Code &code, mlir::Value square, const Score &score, onf::ForOp nest, mlir::IRMapping &map,
                         llvm::function_ref<mlir::Value(const Exponent &way, unsigned number)> ofKeys);

/// Whether rows of the nest have different factors.
bool hasFactorsOfRows(const Score &score, onf::ForOp nest);

} // namespace moa::accuracy

#endif // MOA_ACCURACY_EXPONENTS_H
