//===- Storage.h - register allocation of fragments -------------*- C++ -*-===//
//
// A fragment is an array of a thread's registers. Loop-carried values, results of conditionals, and
// the result of a map over a dying value share one array if their live ranges are disjoint. The
// text then uses the same array instead of copying (register coalescing).
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

/// Returns the name of a value in the program, or an empty text. Operations with several results
/// have names separated by commas. The name of a loop is not that of its results.
std::string getNameInProgram(mlir::Value value);

inline bool isFragment(mlir::Value value) { return mlir::isa<device::FragmentType>(value.getType()); }

/// Assigns register arrays to the fragments of one kernel.
class FragmentStorage {
public:
  explicit FragmentStorage(device::KernelOp kernel);

  /// Returns the value that represents all fragments in the same array.
  mlir::Value of(mlir::Value fragment) const;
  /// Returns whether the fragment is a constant that is only copied into other arrays.
  bool isCopiedConstant(device::FillOp op) const;
  /// Returns the array's name in the program, or an empty text.
  std::string nameOf(mlir::Value fragment) const;

private:
  /// Points of the program's text, including both ends.
  using Interval = std::pair<unsigned, unsigned>;
  struct Class {
    std::vector<mlir::Value> members;
    std::vector<Interval> live;
    /// A sum of products that starts at zero. Only tensor cores may write it: other writes would
    /// need a fence in the next iteration.
    bool isReserved = false;
  };

  void addValue(mlir::Value fragment);
  void addUse(std::vector<Interval> &live, mlir::Value fragment, mlir::Operation *user) const;
  /// Returns the operation after which a contraction's operand registers are free again.
  static mlir::Operation *getEnd(mlir::Operation *user, mlir::Value fragment);
  void unite(mlir::Value x, mlir::Value y, bool isRequired = false);
  void joinRequired(mlir::Operation *op);
  void joinNext(mlir::Operation *op);
  void joinFirst(mlir::Operation *op);
  void joinBranch(mlir::Operation *op);
  void joinMap(mlir::Operation *op);

  llvm::DenseMap<mlir::Operation *, Interval> points; // points before and after each operation
  llvm::DenseMap<mlir::Block *, unsigned> starts;
  llvm::DenseMap<mlir::Value, unsigned> classOf;
  std::vector<Class> classes;
};

} // namespace moa::cuda

#endif // MOA_TARGET_CUDA_STORAGE_H
