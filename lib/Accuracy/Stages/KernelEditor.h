//===- KernelEditor.h - arrays and nests added to a kernel ------*- C++ -*-===//
#ifndef MOA_ACCURACY_KERNELEDITOR_H
#define MOA_ACCURACY_KERNELEDITOR_H

#include "dialects/ONF/IR/Hints.h"
#include "dialects/ONF/IR/ONF.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <functional>

namespace moa::accuracy {

/// Writes onf at one place: scalars, addresses, folds and nests.
class Code {
public:
  using Values = llvm::SmallVector<mlir::Value>;

  Code(onf::KernelOp kernel, mlir::OpBuilder builder, mlir::Location loc) : kernel(kernel), b(builder), loc(loc) {}

  //===--- Arrays ---------------------------------------------------------===//
  /// The element at one index per axis.
  mlir::Value load(mlir::Value array, mlir::ValueRange indices);
  /// The element so far behind that one along the last axis.
  mlir::Value loadFrom(mlir::Value array, mlir::ValueRange indices, mlir::Value further);
  /// The element with floats widened to f32.
  mlir::Value loadFloat(mlir::Value array, mlir::ValueRange indices);
  void store(mlir::Value value, mlir::Value array, mlir::ValueRange indices);
  mlir::ArrayAttr strides(mlir::Value array);

  //===--- Scalars --------------------------------------------------------===//
  mlir::Value extent(const SymExpr &expr);
  mlir::Value index(int64_t value);
  mlir::Value integer(int64_t value); // of i32
  mlir::Value real(double value);     // of f32
  template <typename OpT, typename... Args> mlir::Value make(Args &&...args) {
    return OpT::create(b, loc, std::forward<Args>(args)...).getResult();
  }
  mlir::Value widen(mlir::Value value);
  mlir::Value toIndex(mlir::Value value);
  mlir::Value toReal(mlir::Value index);
  /// A hash of numbers that are not negative, below 2^25.
  static constexpr int64_t kHashes = int64_t(1) << 25;
  mlir::Value hash(mlir::Value number, mlir::ValueRange others);

  //===--- Structure ------------------------------------------------------===//
  /// One accumulation of a fold, which no other state repairs.
  struct Term {
    Monoid monoid;
    std::string name;
    mlir::Value value;
  };
  /// A sum that carries an axis: of value · along(index), both rounded to `operand` if that is not
  /// null.
  struct Sum {
    std::string name;
    mlir::StringAttr axis, extent;
    mlir::Value value;
    std::function<mlir::Value(Code &, mlir::Value)> along;
    mlir::Type operand;
  };
  /// A fold over 0 … extent − 1; `body` gives the terms at an index and, if it is not the
  /// whole range, where they are present.
  Values fold(llvm::StringRef name, const SymExpr &extent,
              llvm::function_ref<llvm::SmallVector<Term>(Code &, mlir::Value, mlir::Value &)> body) {
    return fold(name, extent, body, [](Code &) { return llvm::SmallVector<Sum>(); });
  }
  /// The same with sums behind the terms, which may read what `body` has written.
  Values fold(llvm::StringRef name, const SymExpr &extent,
              llvm::function_ref<llvm::SmallVector<Term>(Code &, mlir::Value, mlir::Value &)> body,
              llvm::function_ref<llvm::SmallVector<Sum>(Code &)> sums);
  /// Loops inside of a nest, over the last axes of what they store.
  void loops(llvm::ArrayRef<mlir::Attribute> names, llvm::ArrayRef<mlir::Attribute> extents,
             llvm::function_ref<void(Code &, mlir::ValueRange)> body);

  onf::KernelOp kernel;
  mlir::OpBuilder b;
  mlir::Location loc;
};

/// A choice: the array, the axes of a nest that it runs over, and a value.
struct Choice {
  mlir::Value array;
  llvm::SmallVector<int64_t> axes;
  int64_t value = 0;
};
void setChoice(onf::ForOp nest, const Choice &choice);

/// Adds arrays and nests to a kernel, in front of one of its nests.
class KernelEditor {
public:
  KernelEditor(onf::KernelOp kernel, onf::ForOp before) : kernel(kernel), before(before) {}

  /// A temporary whose name begins so.
  mlir::Value addTemporary(const llvm::Twine &name, llvm::ArrayRef<mlir::Attribute> extents, mlir::Type element);
  /// One more result, which may have no error.
  mlir::Value addResult(const llvm::Twine &name, llvm::ArrayRef<mlir::Attribute> extents, mlir::Type element);
  /// A nest in front of that one; `body` writes it.
  onf::ForOp addNest(llvm::ArrayRef<mlir::Attribute> names, llvm::ArrayRef<mlir::Attribute> extents,
                     const Choice *choice, llvm::function_ref<void(Code &, mlir::ValueRange)> body);
  /// The same of one that does little beside that one, so that code for it should be short.
  onf::ForOp addShortNest(llvm::ArrayRef<mlir::Attribute> names, llvm::ArrayRef<mlir::Attribute> extents,
                          const Choice *choice, llvm::function_ref<void(Code &, mlir::ValueRange)> body) {
    onf::ForOp loop = addNest(names, extents, choice, body);
    loop->setAttr(onf::kShortAttr, mlir::UnitAttr::get(kernel.getContext()));
    return loop;
  }
  mlir::StringAttr text(const llvm::Twine &value) { return mlir::StringAttr::get(kernel.getContext(), value); }
  mlir::StringAttr text(const SymExpr &value) { return text(value.str()); }

  onf::KernelOp kernel;
  onf::ForOp before;

private:
  std::string makeName(const llvm::Twine &name);
};

} // namespace moa::accuracy

#endif // MOA_ACCURACY_KERNELEDITOR_H
