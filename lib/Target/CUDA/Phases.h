//===- Phases.h - statements of loops that follow each other ----*- C++ -*-===//
//
// Loops behind each other that carry the same registers often do nearly the same, as
// those over the first tile, masked tiles and full ones. Their texts are written as
// one: statements that all have stand there once, others under a condition on the
// phase. What remains if the phase is fixed is that loop's own text, with constants
// in front that it does not use.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_TARGET_CUDA_PHASES_H
#define MOA_TARGET_CUDA_PHASES_H

#include <optional>
#include <string>
#include <vector>

namespace moa::cuda {

/// A statement of a loop's body. A constant has a type and `text` is `name = value`;
/// of a call `text` is without its semicolon; else it is whole lines.
struct Statement {
  enum Kind { Lines, Constant, Call } kind = Lines;
  std::string text, type;
  unsigned phases = 0; ///< bit k: phase k has it
  bool operator==(const Statement &other) const {
    return kind == other.kind && text == other.text && type == other.type;
  }
};

/// The statements of all phases in an order that keeps each phase's own. A constant
/// that is used under other conditions than its own is given to all phases, by a
/// choice among its values by `phase`, a variable. Fails if a name would stand for
/// different things, or if little is saved.
std::optional<std::vector<Statement>> mergePhases(const std::vector<std::vector<Statement>> &bodies,
                                                  const std::string &phase);

/// The condition that the phase is one of these, of `count`: `phase >= 1`.
std::string printCondition(unsigned phases, unsigned count, const std::string &phase);

} // namespace moa::cuda

#endif // MOA_TARGET_CUDA_PHASES_H
