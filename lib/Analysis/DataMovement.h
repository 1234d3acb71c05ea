//===- DataMovement.h - data read, written and kept by a specification ----===//
//
// Counts for one kernel of the moa level, as polynomials in the user's symbols [Def 17, Def 18]:
//
// - Distinct elements: every element of an input that some output needs, and every element of an
//   output, counted once. This is the compulsory traffic. A machine with a small fast memory moves
//   more.
// - Classical count: the same inputs, and once every intermediate array of an operator-by-operator
//   evaluation. Each contraction, reduction or group of point-wise operators makes one array; views
//   make none.
//
// The counts assume that no extent is 0.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_ANALYSIS_DATAMOVEMENT_H
#define MOA_ANALYSIS_DATAMOVEMENT_H

#include "dialects/MoA/IR/MoA.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace moa {

using SymbolValues = std::map<std::string, int64_t>;

/// Distinct elements of one input or output array. Inputs of rank 0 are passed by value and not
/// listed.
struct ArrayCount {
  std::string name;
  mlir::Type elementType;
  SymExpr elements;
  /// If false, `elements` is an upper bound, and `note` gives the reason.
  bool exact = true;
  std::string note;
};

struct IntermediateArray {
  std::string name;
  /// "contraction", "reduction" or "point-wise".
  std::string kind;
  unsigned line = 0; // in the specification, 0 if unknown
  SymExpr elements;
};

struct DataMovementReport {
  std::string kernel;
  std::vector<ArrayCount> inputs, outputs;
  std::vector<IntermediateArray> intermediates;

  /// Return the distinct elements of all inputs and of all outputs.
  SymExpr inputElements() const;
  SymExpr outputElements() const;
  /// Returns the classical count without the outputs: inputs and intermediates.
  SymExpr classicalElements() const;

  /// The counts for given values of the symbols.
  struct Numbers {
    int64_t inputs = 0, outputs = 0, classical = 0;
    /// Bytes of the inputs and outputs in their own element types.
    int64_t inputBytes = 0, outputBytes = 0;
    /// classical / inputs, and (classical + outputs) / (inputs + outputs).
    double ratioWithoutOutput = 0, ratioWithOutput = 0;
  };
  /// Returns nothing if a symbol has no value or a divisor is 0.
  std::optional<Numbers> evaluate(const SymbolValues &symbols) const;

  /// With `symbols`, every polynomial is followed by its value.
  llvm::json::Value toJSON(const SymbolValues *symbols = nullptr) const;
  void print(llvm::raw_ostream &os, const SymbolValues *symbols = nullptr) const;
};

/// Counts a kernel of the moa level, after common subexpression elimination.
DataMovementReport analyzeDataMovement(KernelOp kernel);

namespace detail {
std::vector<IntermediateArray> countIntermediates(KernelOp kernel);
/// Counts the distinct elements read of every input of rank 1 or more.
std::vector<ArrayCount> countReads(KernelOp kernel);
SymExpr elementsOf(ArrayType type);
} // namespace detail

} // namespace moa

#endif // MOA_ANALYSIS_DATAMOVEMENT_H
