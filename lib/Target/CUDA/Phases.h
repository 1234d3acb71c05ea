//===- Phases.h - merging the statements of consecutive loops ---*- C++ -*-===//
//
// Consecutive loops with the same loop-carried registers are often nearly equal, for example those
// over the first tile, masked tiles and full tiles. Their texts are merged into one loop: common
// statements occur once, others under a condition on the phase. With the phase fixed, each loop's
// own text remains, preceded by constants that it does not use.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_TARGET_CUDA_PHASES_H
#define MOA_TARGET_CUDA_PHASES_H

#include "llvm/ADT/ArrayRef.h"
#include <optional>
#include <string>
#include <vector>

namespace moa::cuda {

/// A statement of a loop's body: whole lines, a comment, or a constant with its type and the text
/// `name = value`.
struct Statement {
  enum Kind { Lines, Constant, Comment } kind = Lines;
  std::string text, type;
  unsigned phases = 0; ///< bit k: phase k has it
  bool operator==(const Statement &other) const {
    return kind == other.kind && text == other.text && type == other.type;
  }
};

/// Merges the statements of all phases, keeping each phase's order. A constant that is used outside
/// its own phases is defined for all phases, selected by the variable `phase`. Fails if a name has
/// several meanings or if little is saved. Phases without labels are numbered.
std::optional<std::vector<Statement>> mergePhases(const std::vector<std::vector<Statement>> &bodies,
                                                  const std::string &phase, llvm::ArrayRef<std::string> labels = {});

/// Prints the condition that the phase is one of `phases`, for example `phase != FIRST`. Its values
/// are `labels`.
std::string printCondition(unsigned phases, const std::string &phase, llvm::ArrayRef<std::string> labels);

} // namespace moa::cuda

#endif // MOA_TARGET_CUDA_PHASES_H
