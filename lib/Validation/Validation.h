//===- Validation.h - proofs about every compilation ------------*- C++ -*-===//
//
// Translation validation on multi-indices (docs/Spec.md, section 10). For one kernel it shows:
//
//    moa against dnf   every output has the same term, element by element: the same
//                      elements of every input, the same ranges and conditions of
//                      presence, the same scalar operations up to the laws of Term.h
//    dnf               every element that is read lies inside its array
//    dnf against onf   the indices of loads are the multi-indices of the normal form, and
//                      every element of an output is stored exactly once
//    onf against its   the digits of every lifted axis and fold are in bijection with
//    lifted form       its indices, and nothing else has changed
//    dnf against       the lifted folds have the values of the normal form at random
//    lifted onf        points and edge sizes, by the interpreter of each level
//
// The readers of the levels share no code with the passes between the levels.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_VALIDATION_VALIDATION_H
#define MOA_VALIDATION_VALIDATION_H

#include "dialects/DNF/IR/DNF.h"
#include "dialects/MoA/IR/MoA.h"
#include "dialects/ONF/IR/ONF.h"
#include <memory>

namespace moa {

/// Attributes that kernels of every level carry for the validation: the declared range of every
/// parameter (`low..high` or empty), and the predicates that the user assumes.
inline constexpr llvm::StringLiteral kRangesAttr = "moa.ranges";
inline constexpr llvm::StringLiteral kAssumesAttr = "moa.assumes";

/// One statement that was proved, or has another status below.
struct Fact {
  enum Kind { Uses, Bounds, Addresses, Writes, Lifting, Values };
  enum Status {
    Proved,
    ByLemma, ///< `because` names the lemmas of docs/Spec.md
    Assumed, ///< `because` holds the user's declarations or assumptions
    Checked, ///< by a condition on elements, evaluated by the generated code
    Tried,   ///< at a random point, which the statement names
    Untried  ///< `because` says why there is no point
  };
  Kind kind = Uses;
  Status status = Proved;
  std::string subject;   ///< the array
  std::string statement; ///< the claim
  std::vector<std::string> because;
  mlir::Location place;
};

/// Returns the words of reports, for example `bounds`, `by lemma`.
llvm::StringRef getName(Fact::Kind kind);
llvm::StringRef getName(Fact::Status status);

/// Validates one kernel, level by level from the top. Each statement that holds becomes a fact. One
/// that does not hold is an error at its place.
class Validator {
public:
  explicit Validator(mlir::MLIRContext *context);
  ~Validator();

  /// Checks V1: dnf has the meaning of moa.
  mlir::LogicalResult compareUses(KernelOp moa, dnf::KernelOp dnf);
  /// Checks V2: every element that is read lies inside its array.
  mlir::LogicalResult checkBounds(dnf::KernelOp dnf);
  /// Checks V2 and V4: every address is a multi-index inside its array, and every output is stored
  /// once.
  mlir::LogicalResult checkBounds(onf::KernelOp onf);
  /// Checks V3 and V4: onf reads the elements that dnf reads, and writes each output element once.
  mlir::LogicalResult compareAddresses(dnf::KernelOp dnf, onf::KernelOp onf);
  /// Checks V5: the lifted kernel runs over each index of `onf` once.
  mlir::LogicalResult checkLifting(onf::KernelOp onf, onf::KernelOp lifted);
  /// Checks V6: `lifted` and `above` have the same values at some points. `above` is the normal
  /// form, or the onf kernel itself if compilation started there. `onf` is the kernel before
  /// lifting.
  mlir::LogicalResult compareValues(mlir::Operation *above, onf::KernelOp onf, onf::KernelOp lifted);

  const std::vector<Fact> &getFacts() const { return facts; }

  struct State;

private:
  std::unique_ptr<State> state;
  std::vector<Fact> facts;
};

} // namespace moa

#endif // MOA_VALIDATION_VALIDATION_H
