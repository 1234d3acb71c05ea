//===- Storage.h - fragments that share registers ---------------*- C++ -*-===//
//
// A fragment is an array of a thread's registers. Values that one loop or
// conditional hands on, and the result of a map over a value that ends there,
// share one array where no two of them are needed at the same time; the text then
// names the same array instead of copying.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_TARGET_CUDA_STORAGE_H
#define MOA_TARGET_CUDA_STORAGE_H

#include "dialects/Device/IR/Device.h"
#include "llvm/ADT/DenseMap.h"
#include <string>
#include <utility>
#include <vector>

namespace moa::cuda {

/// The arrays of one kernel's fragments.
class FragmentStorage {
public:
  explicit FragmentStorage(device::KernelOp kernel);

  /// The value that stands for all that share the fragment's array.
  mlir::Value of(mlir::Value fragment) const;
  /// Whether the fragment is one constant that is only copied, into arrays of others.
  bool isCopiedConstant(device::FillOp op) const;
  /// What the array is called in the program, or empty.
  std::string nameOf(mlir::Value fragment) const;

private:
  /// Points of the program's text, both ends included.
  using Interval = std::pair<unsigned, unsigned>;
  struct Class {
    std::vector<mlir::Value> members;
    std::vector<Interval> live;
    /// The sum of products that starts at zero: only the tensor cores write it,
    /// or it would have to be fenced in the next round.
    bool isReserved = false;
  };

  void addValue(mlir::Value fragment);
  void addUse(std::vector<Interval> &live, mlir::Value fragment, mlir::Operation *user) const;
  /// Where the registers of a contraction's operand are free again.
  static mlir::Operation *getEnd(mlir::Operation *user, mlir::Value fragment);
  void unite(mlir::Value x, mlir::Value y, bool isRequired = false);
  void joinRequired(mlir::Operation *op);
  void joinNext(mlir::Operation *op);
  void joinFirst(mlir::Operation *op);
  void joinBranch(mlir::Operation *op);
  void joinMap(mlir::Operation *op);

  llvm::DenseMap<mlir::Operation *, Interval> points; // before and after
  llvm::DenseMap<mlir::Block *, unsigned> starts;
  llvm::DenseMap<mlir::Value, unsigned> classOf;
  std::vector<Class> classes;
};

} // namespace moa::cuda

#endif // MOA_TARGET_CUDA_STORAGE_H
