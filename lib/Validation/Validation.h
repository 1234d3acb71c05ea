//===- Validation.h - what is shown of every compilation --------*- C++ -*-===//
//
// Translation validation on multi-indices (docs/Spec.md, section 10). Of one kernel:
//
//   moa against dnf   every output has the same term, element by element: the same
//                     elements of every input, the same ranges and conditions of
//                     presence, the same scalar operations up to the laws of Term.h
//   dnf               every element that is read lies inside of its array
//   dnf against onf   the addresses, read back from the coefficients of the strides,
//                     are the multi-indices of the normal form, and every element of an
//                     output is stored exactly once
//   onf against its   the digits of every lifted axis and fold are in bijection with
//   lifted form       its indices, and nothing else has changed
//   dnf against       the lifted folds have the values of the normal form at a point
//   lifted onf        picked at random, by the interpreter of each level
//
// The readers of the levels are this library's own and share no code with the passes
// between them.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_VALIDATION_VALIDATION_H
#define MOA_VALIDATION_VALIDATION_H

#include "dialects/DNF/IR/DNF.h"
#include "dialects/MoA/IR/MoA.h"
#include "dialects/ONF/IR/ONF.h"
#include <memory>

namespace moa {

/// Attributes that kernels of every level carry for the validation: the declared range
/// of every parameter, `low..high` or nothing, and the predicates that the user assumes.
inline constexpr llvm::StringLiteral kRangesAttr = "moa.ranges";
inline constexpr llvm::StringLiteral kAssumesAttr = "moa.assumes";

/// One thing that was shown.
struct Fact {
  enum Kind { Uses, Bounds, Addresses, Writes, Lifting, Values };
  enum Status {
    Proved,
    ByLemma, ///< `because` names the lemmas of docs/Spec.md
    Assumed, ///< `because` holds what the user declares or assumes
    Checked, ///< by a condition on elements that the generated code evaluates
    Tried,   ///< at a point picked at random, which the statement names
    Untried  ///< `because` says why there is none
  };
  Kind kind = Uses;
  Status status = Proved;
  std::string subject;   ///< the array
  std::string statement; ///< what holds
  std::vector<std::string> because;
  mlir::Location place;
};

/// The words of reports: `bounds`, `by lemma`.
llvm::StringRef getName(Fact::Kind kind);
llvm::StringRef getName(Fact::Status status);

/// Validates one kernel, level by level from above. What does not hold is an error at
/// its place; what does is a fact.
class Validator {
public:
  explicit Validator(mlir::MLIRContext *context);
  ~Validator();

  /// dnf means what moa means.
  mlir::LogicalResult compareUses(KernelOp moa, dnf::KernelOp dnf);
  /// Every element that is read lies inside of its array.
  mlir::LogicalResult checkBounds(dnf::KernelOp dnf);
  /// Every address is a multi-index inside of its array, and every output is stored once.
  mlir::LogicalResult checkBounds(onf::KernelOp onf);
  /// onf reads the elements that dnf reads, and writes each once.
  mlir::LogicalResult compareAddresses(dnf::KernelOp dnf, onf::KernelOp onf);
  /// The lifted kernel runs over the indices of `onf`, each once.
  mlir::LogicalResult checkLifting(onf::KernelOp onf, onf::KernelOp lifted);
  /// `lifted` has the values of `above`, its normal form or, where that was read, the onf
  /// kernel itself, at a point picked at random; `onf` is what was lifted, the folds.
  mlir::LogicalResult compareValues(mlir::Operation *above, onf::KernelOp onf,
                                    onf::KernelOp lifted);

  const std::vector<Fact> &getFacts() const { return facts; }

  /// Of the implementation.
  struct State;

private:
  std::unique_ptr<State> state;
  std::vector<Fact> facts;
};

} // namespace moa

#endif // MOA_VALIDATION_VALIDATION_H
