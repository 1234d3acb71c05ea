//===- DataMovement.h - what a specification reads, writes and keeps -*- C++ -*-===//
//
// Counts of the moa level of one kernel, as polynomials in the user's symbols
// [Def 17, Def 18]:
//  - distinct elements: each element of an input that some output needs, once,
//    and each element of an output, once. This is the compulsory traffic; what
//    a machine moves between two of its memories is more when they are small;
//  - the classical count: the same inputs, and every intermediate array of an
//    operator-by-operator evaluation, once: one array per contraction,
//    reduction or group of point-wise operators; views are free.
// Counts are meant for extents that are not 0.
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

/// Values of the user's symbols.
using SymbolValues = std::map<std::string, int64_t>;

/// Distinct elements of one input or output array. Rank-0 inputs travel by
/// value and are not listed.
struct ArrayCount {
  std::string name;
  mlir::Type elementType;
  SymExpr elements;
  /// False: `elements` is an upper bound, and `note` says why.
  bool exact = true;
  std::string note;
};

/// One intermediate array of the classical evaluation.
struct IntermediateArray {
  /// The user's name, if the specification gives one.
  std::string name;
  /// "contraction", "reduction" or "point-wise".
  std::string kind;
  unsigned line = 0; // in the specification, 0 if unknown
  SymExpr elements;
};

/// The counts of one kernel.
struct DataMovementReport {
  std::string kernel;
  std::vector<ArrayCount> inputs, outputs;
  std::vector<IntermediateArray> intermediates;

  /// Distinct elements of all inputs, of all outputs.
  SymExpr inputElements() const;
  SymExpr outputElements() const;
  /// The classical count without the outputs: inputs and intermediates.
  SymExpr classicalElements() const;

  /// Numbers under values of the symbols.
  struct Numbers {
    int64_t inputs = 0, outputs = 0, classical = 0;
    /// Bytes of the inputs and outputs in their own element types.
    int64_t inputBytes = 0, outputBytes = 0;
    /// classical / inputs, and (classical + outputs) / (inputs + outputs).
    double ratioWithoutOutput = 0, ratioWithOutput = 0;
  };
  /// Nothing if a symbol has no value or a divisor is 0.
  std::optional<Numbers> evaluate(const SymbolValues &symbols) const;

  /// With `symbols`, numbers stand beside the polynomials.
  llvm::json::Value toJSON(const SymbolValues *symbols = nullptr) const;
  void print(llvm::raw_ostream &os, const SymbolValues *symbols = nullptr) const;
};

/// Counts a kernel of the moa level. Equal arrays are counted once.
DataMovementReport analyzeDataMovement(KernelOp kernel);

namespace detail {
/// The intermediates of the classical evaluation.
std::vector<IntermediateArray> countIntermediates(KernelOp kernel);
/// The distinct elements read of every input of rank 1 or more.
std::vector<ArrayCount> countReads(KernelOp kernel);
/// Number of elements of an array type.
SymExpr elementsOf(ArrayType type);
} // namespace detail

} // namespace moa

#endif // MOA_ANALYSIS_DATAMOVEMENT_H
