//===- Bounds.h - error bounds evaluated by a kernel ------------*- C++ -*-===//
//
// A bound on rounding errors is an expression over magnitudes of inputs (docs/Accuracy/Bounds.md).
// Here a kernel evaluates it: nests compute the magnitudes, and one nest per head the bound, in f32
// and rounded up.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_ACCURACY_BOUNDS_H
#define MOA_ACCURACY_BOUNDS_H

#include "lib/Accuracy/Stages/KernelEditor.h"
#include "llvm/Support/JSON.h"
#include <map>

namespace moa::accuracy {

/// An absolute error that any component-wise tolerance allows, because small values may underflow;
/// results of a type with a larger smallest number have that [Def 25].
inline constexpr double kUnderflow = 0x1p-80;

double getLeast(mlir::Type element);

inline constexpr llvm::StringLiteral kNoRelativeBound =
    "no bound is known of errors relative to a result, because its norm is not known before the kernel runs";

/// Returns why a kernel has no `moa.bounds`, and the remedy.
std::string whyNoBounds(onf::KernelOp kernel);

/// Returns the L2 error, relative to the norm, that the types inside `nest` give an unmodified
/// result. Each rounding of the result and of rounded operands counts 0.43 of its unit roundoff, as
/// measured for bf16. Squares of errors are added.
double errorOfTypes(onf::ForOp nest, mlir::Value result);

/// The bounds of a kernel, read from kBoundsAttr.
class Bounds {
public:
  static std::optional<Bounds> read(onf::KernelOp kernel);

  bool hasBound(llvm::StringRef result, llvm::StringRef formats) const;
  /// Returns true if `list` ("scores" or "sums": operands of contractions of two inputs, or of one)
  /// has the input.
  bool isOf(llvm::StringRef list, llvm::StringRef input) const;
  /// Returns why a bound is ∞ for all inputs, if it is; elements may be off by `least`.
  std::optional<std::string> whyInfinite(llvm::StringRef result, llvm::StringRef formats, double least) const;

  const llvm::json::Object *findResult(llvm::StringRef result) const;
  const llvm::json::Object *findAtom(int64_t number) const;

  void collect(const llvm::json::Object &sum, llvm::function_ref<void(const llvm::json::Object &)> visit) const;

private:
  explicit Bounds(llvm::json::Object whole) : whole(std::move(whole)) {}
  llvm::json::Object whole;
};

/// Returns the axis of the head, if any, that indexes each axis of a stored result.
llvm::SmallVector<std::optional<unsigned>> findHeadAxes(onf::ForOp nest, onf::StoreOp store);

/// Computes the bounds of one result per head.
class BoundNests {
public:
  BoundNests(KernelEditor &editor, const Bounds &bounds, llvm::StringRef result,
             llvm::ArrayRef<std::optional<unsigned>> axes, llvm::ArrayRef<mlir::Attribute> headExtents);

  void addStatistics(llvm::StringRef formats);
  /// Returns the smallest tolerance that is certain to hold for a head; ∞ if a condition fails or a
  /// term is unknown. Requires addStatistics.
  mlir::Value write(Code &code, mlir::ValueRange head, llvm::StringRef formats);

  llvm::SmallVector<onf::ForOp> nests;

private:
  /// For each axis of an array, the axis of the head that indexes it, or how it is reduced.
  static constexpr int kExtreme = -1, kNorm = -2;
  struct Statistic {
    mlir::Value array;
    std::string kind;
    llvm::SmallVector<int> axes;
  };
  /// Upper and lower bounds of atoms in one block.
  struct AtomValues {
    std::map<int64_t, mlir::Value> upper, lower;
  };
  using Json = llvm::json::Object;
  std::optional<Statistic> readStatistic(const Json &atom) const;
  mlir::Value addStatistic(Statistic statistic);
  mlir::Value reduce(mlir::Value array, unsigned axis, bool isMax);

  mlir::Value sum(Code &code, mlir::ValueRange head, const Json &sum, bool isUpper, AtomValues &known);
  mlir::Value atom(Code &code, mlir::ValueRange head, int64_t number, bool isUpper, AtomValues &known);
  mlir::Value function(Code &code, mlir::ValueRange head, const Json &atom, bool isUpper, AtomValues &known);
  mlir::Value statistic(Code &code, mlir::ValueRange head, const Json &atom, bool isUpper);

  KernelEditor &editor;
  const Bounds &bounds;
  const Json *result;
  double least; // absolute error that is always allowed
  llvm::SmallVector<std::optional<unsigned>> axes;
  llvm::SmallVector<mlir::Attribute> headExtents;
  std::map<std::string, mlir::Value> arrays;
};

} // namespace moa::accuracy

#endif // MOA_ACCURACY_BOUNDS_H
