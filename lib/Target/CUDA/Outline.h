//===- Outline.h - steps on fragments that occur repeatedly -----*- C++ -*-===//
//
// The same steps on fragments may stand in several places of a kernel. They become
// one function of the text, and each place a call.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_TARGET_CUDA_OUTLINE_H
#define MOA_TARGET_CUDA_OUTLINE_H

#include "lib/Target/CUDA/Storage.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include <string>
#include <vector>

namespace moa::cuda {

/// A sequence of maps, reductions, votes and choices without loops, waits or
/// accesses to memory, and the places where it stands.
struct Outline {
  /// The operations of each place, in order. Scalars may be computed in between.
  std::vector<std::vector<mlir::Operation *>> places;
  /// The values of each place, those it takes included, by the first place's.
  std::vector<llvm::DenseMap<mlir::Value, mlir::Value>> values;
  /// What the sequence takes from outside, in order: the first place's values.
  std::vector<mlir::Value> inputs;
  /// What is used behind some place: the first place's values.
  std::vector<mlir::Value> outputs;

  /// A parameter of the function: a value of the first place, a part of an index that
  /// warp and lane decide, or neither: what the program calls by this name.
  struct Parameter {
    mlir::Value value;
    std::string part, name, declaration;
  };
  /// Once it is written: what it is called and what it is given.
  std::string name;
  std::vector<Parameter> parameters;

  bool contains(mlir::Operation *op) const { return llvm::is_contained(places.front(), op); }
  bool isOutput(mlir::Value value) const { return llvm::is_contained(outputs, value); }
};

/// The outlines of a kernel; a later one may stand inside of an earlier one. Loops
/// that are phases of one are searched only if it says so.
std::vector<Outline> findOutlines(device::KernelOp kernel, const FragmentStorage &storage,
                                  bool acrossPhases);

/// The loop and those that follow it, as long as each goes on with all that the one
/// before carries, in the same registers.
llvm::SmallVector<mlir::scf::ForOp> findPhases(mlir::scf::ForOp first,
                                               const FragmentStorage &storage);

/// A map that only combines a state with the reduction that stands before it.
device::MapOp findMerge(device::ReduceOp op);

/// Whether the text has nothing at the operation: where its result is used, what it
/// is stands there.
bool isWrittenInPlace(mlir::Operation &op, const FragmentStorage &storage);

} // namespace moa::cuda

#endif // MOA_TARGET_CUDA_OUTLINE_H
