//===- Outline.h - repeated steps on fragments as functions -----*- C++ -*-===//
//
// Equal steps on fragments in several places of a kernel become one function (outlining).
//
//===----------------------------------------------------------------------===//
#ifndef MOA_TARGET_CUDA_OUTLINE_H
#define MOA_TARGET_CUDA_OUTLINE_H

#include "lib/Target/CUDA/Storage.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include <string>
#include <vector>

namespace moa::cuda {

/// A sequence of maps, reductions, votes and conditionals without loops, waits or memory accesses,
/// and its occurrences.
struct Outline {
  /// The operations of each occurrence, in order, possibly with scalars in between.
  std::vector<std::vector<mlir::Operation *>> occurrences;
  /// The values of each occurrence, inputs included, by the value of the first.
  std::vector<llvm::DenseMap<mlir::Value, mlir::Value>> values;
  /// Values from outside, in order, as values of the first occurrence.
  std::vector<mlir::Value> inputs;
  /// Values used after some occurrence, as values of the first.
  std::vector<mlir::Value> outputs;

  /// A parameter of the function: a value of the first occurrence, a part of an index given by warp
  /// and lane, or otherwise an argument or symbol of the program with this name.
  struct Parameter {
    mlir::Value value;
    std::string part, name, declaration;
  };
  /// The function's name and parameters, set when it is printed.
  std::string name;
  std::vector<Parameter> parameters;

  bool isOutput(mlir::Value value) const { return llvm::is_contained(outputs, value); }
};

/// Returns the outlines of a kernel. A later one may be inside of an earlier one. If
/// `acrossPhases` is false, loops that will be merged (findPhases) are not searched.
std::vector<Outline> findOutlines(device::KernelOp kernel, const FragmentStorage &storage, bool acrossPhases);

/// Returns the loop and the loops after it, as long as each continues with all loop-carried values
/// of the one before in the same registers.
llvm::SmallVector<mlir::scf::ForOp> findPhases(mlir::scf::ForOp first, const FragmentStorage &storage);

/// Returns the map after a reduction that only combines it with a state, or null.
device::MapOp findMerge(device::ReduceOp op);

/// Returns whether the operation prints nothing itself, because its expression is printed at each
/// use.
bool isWrittenInPlace(mlir::Operation &op, const FragmentStorage &storage);

} // namespace moa::cuda

#endif // MOA_TARGET_CUDA_OUTLINE_H
