//===- KernelEditor.h - arrays and nests added to a kernel ------*- C++ -*-===//
#ifndef MOA_ACCURACY_KERNELEDITOR_H
#define MOA_ACCURACY_KERNELEDITOR_H

#include "dialects/ONF/IR/Hints.h"
#include "dialects/ONF/IR/ONF.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <functional>

namespace moa::accuracy {

/// Returns the indices, followed by more.
inline llvm::SmallVector<mlir::Value> placed(mlir::ValueRange indices, std::initializer_list<mlir::Value> more) {
  llvm::SmallVector<mlir::Value> all(indices);
  all.append(more);
  return all;
}

/// Builds onf operations at one insertion point.
class Code {
public:
  using Values = llvm::SmallVector<mlir::Value>;

  Code(onf::KernelOp kernel, mlir::OpBuilder builder, mlir::Location loc) : kernel(kernel), b(builder), loc(loc) {}

  //===--- Arrays ---------------------------------------------------------===//
  mlir::Value load(mlir::Value array, mlir::ValueRange indices);
  /// Loads the element `further` positions after `indices` along the last axis.
  mlir::Value loadFrom(mlir::Value array, mlir::ValueRange indices, mlir::Value further);
  /// Loads an element, widened to f32.
  mlir::Value loadFloat(mlir::Value array, mlir::ValueRange indices);
  void store(mlir::Value value, mlir::Value array, mlir::ValueRange indices);

  //===--- Scalars --------------------------------------------------------===//
  mlir::Value extent(const SymExpr &expr);
  mlir::Value index(int64_t value);
  mlir::Value integer(int64_t value);
  mlir::Value real(double value);
  template <typename OpT, typename... Args> mlir::Value make(Args &&...args) {
    return OpT::create(b, loc, std::forward<Args>(args)...).getResult();
  }
  mlir::Value widen(mlir::Value value);
  mlir::Value toIndex(mlir::Value value);
  mlir::Value toReal(mlir::Value index);
  /// Returns the index 1 if the condition holds, otherwise 0.
  mlir::Value toNumber(mlir::Value condition);
  /// Arithmetic of floats or of integers, by the type of x.
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value sub(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, mlir::Value y);
  mlir::Value max(mlir::Value x, mlir::Value y);
  mlir::Value min(mlir::Value x, mlir::Value y);
  mlir::Value div(mlir::Value x, mlir::Value y); ///< of floats
  mlir::Value absolute(mlir::Value x);           ///< of a float
  mlir::Value floorDiv(mlir::Value x, mlir::Value y);
  mlir::Value compare(mlir::arith::CmpIPredicate is, mlir::Value x, mlir::Value y);
  mlir::Value compare(mlir::arith::CmpFPredicate is, mlir::Value x, mlir::Value y);
  mlir::Value both(mlir::Value x, mlir::Value y);
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y);
  /// Returns a hash in 0 … kHashes − 1 of numbers that are not negative.
  static constexpr int64_t kHashes = int64_t(1) << 25;
  mlir::Value hash(mlir::Value number, mlir::ValueRange others);

  //===--- Structure ------------------------------------------------------===//
  /// A state of a fold that no other state rescales.
  struct State {
    Monoid monoid;
    std::string name;
    mlir::Value value;
  };
  /// An accumulator along an axis: the sum of value · along(index), both rounded to `operand`
  /// unless that is null.
  struct Sum {
    std::string name;
    mlir::StringAttr axis;
    ExprAttr extent;
    mlir::Value value;
    std::function<mlir::Value(Code &, mlir::Value)> along;
    mlir::Type operand;
  };
  /// Builds a fold over 0 … extent − 1. `body` returns the states at an index and may set a guard;
  /// `sums` returns accumulators, which may use values of `body`.
  Values fold(llvm::StringRef name, const SymExpr &extent,
              llvm::function_ref<llvm::SmallVector<State>(Code &, mlir::Value, mlir::Value &)> body,
              llvm::function_ref<llvm::SmallVector<Sum>(Code &)> sums = nullptr);
  void loops(llvm::ArrayRef<mlir::Attribute> names, llvm::ArrayRef<mlir::Attribute> extents,
             llvm::function_ref<void(Code &, mlir::ValueRange)> body);

  onf::KernelOp kernel;
  mlir::OpBuilder b;
  mlir::Location loc;
};

/// A predicate of a nest: an array over these axes of the nest, and the value for which it runs.
struct Choice {
  mlir::Value array;
  llvm::SmallVector<int64_t> axes;
  int64_t value = 0;
};
void setChoice(onf::ForOp nest, const Choice &choice);

/// Adds arrays, and nests before a given nest, to a kernel.
class KernelEditor {
public:
  KernelEditor(onf::KernelOp kernel, onf::ForOp before) : kernel(kernel), before(before) {}

  /// Adds a temporary; the name gets a suffix if it is taken.
  mlir::Value addTemporary(const llvm::Twine &name, llvm::ArrayRef<mlir::Attribute> extents, mlir::Type element);
  /// Adds a result without a tolerance.
  mlir::Value addResult(const llvm::Twine &name, llvm::ArrayRef<mlir::Attribute> extents, mlir::Type element);
  onf::ForOp addNest(llvm::ArrayRef<mlir::Attribute> names, llvm::ArrayRef<mlir::Attribute> extents,
                     const Choice *choice, llvm::function_ref<void(Code &, mlir::ValueRange)> body);
  /// The same for a nest with little work, for which short code matters (onf::kShortAttr).
  onf::ForOp addShortNest(llvm::ArrayRef<mlir::Attribute> names, llvm::ArrayRef<mlir::Attribute> extents,
                          const Choice *choice, llvm::function_ref<void(Code &, mlir::ValueRange)> body) {
    onf::ForOp loop = addNest(names, extents, choice, body);
    loop->setAttr(onf::kShortAttr, mlir::UnitAttr::get(kernel.getContext()));
    return loop;
  }
  /// Returns names and extents for a nest over the axes of an array, except some.
  using Attributes = llvm::SmallVector<mlir::Attribute>;
  std::pair<Attributes, Attributes> axesOf(mlir::Value array, llvm::ArrayRef<unsigned> without = {});
  llvm::StringRef nameOf(mlir::Value array) {
    return kernel.getArrayName(llvm::cast<mlir::BlockArgument>(array).getArgNumber());
  }
  mlir::Type f32() { return mlir::Float32Type::get(kernel.getContext()); }
  mlir::Type i32() { return mlir::IntegerType::get(kernel.getContext(), 32); }
  mlir::StringAttr text(const llvm::Twine &value) { return mlir::StringAttr::get(kernel.getContext(), value); }
  ExprAttr expr(const SymExpr &value) { return ExprAttr::get(kernel.getContext(), value); }

  onf::KernelOp kernel;
  onf::ForOp before;

private:
  std::string makeName(const llvm::Twine &name);
};

} // namespace moa::accuracy

#endif // MOA_ACCURACY_KERNELEDITOR_H
