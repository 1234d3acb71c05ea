//===- Bounds.h - bounds on errors, computed by a kernel --------*- C++ -*-===//
//
// What is shown of rounding errors before a kernel runs is an expression over magnitudes of its
// inputs (docs/Accuracy/Bounds.md). Here a kernel evaluates it: nests find the magnitudes, and a
// scalar at each index of the axes in front of the rows is the bound there, in f32 and never below
// the value of the expression.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_ACCURACY_BOUNDS_H
#define MOA_ACCURACY_BOUNDS_H

#include "lib/Accuracy/Stages/KernelEditor.h"
#include "llvm/Support/JSON.h"
#include <map>

namespace moa::accuracy {

/// Elements that are off by no more are near enough, as what is small may underflow; of results
/// with a larger least positive number, that [Def 25].
inline constexpr double kUnderflow = 0x1p-80;

/// The same of a result's element type.
double getLeast(mlir::Type element);

/// Why nothing is shown of a tolerance that is relative and not sampled.
inline constexpr llvm::StringLiteral kNoRelativeBound =
    "no bound is known of errors relative to a result, as none knows before it runs how large that "
    "is";

/// Why a kernel has no bounds to read, and what helps.
std::string whyNoBounds(onf::KernelOp kernel);

/// The error of a result as it is written, and the narrowest type that it rounds to, or null: f32.
struct ErrorAsWritten {
  double size;
  mlir::Type rounded; // the narrowest type
};
/// The sums of products that a result follows from by what is inside of `where`, a nest or a
/// kernel, without any plan, and that round what they multiply to fewer than 32 bits: an operand
/// that is no element of such an input.
llvm::SmallVector<onf::AccOp> findRounded(mlir::Operation *where, mlir::Value result);
/// The error of a result by what is inside of `where`, a nest or a kernel, without any plan: of
/// what it follows from. In the norm about: what is rounded to bf16, weights and results, is off by
/// 0.43 of its unit roundoff each in the mean (measured; of numbers whose logarithms are even it is
/// 0.39). Of elements at most: one unit roundoff of the result and one of operands.
ErrorAsWritten errorAsWritten(mlir::Operation *where, mlir::Value result, const Tolerance &allowed);

/// Why nothing is ever shown of a result, by its number among the kernel's arrays, that has a
/// tolerance; nothing where inputs decide, or a sample. From kBoundsAttr.
std::optional<std::string> whyNeverShown(onf::KernelOp kernel, unsigned number, const Tolerance &allowed);
/// The entry of kShownAttr for a result, by its number, whose bound or estimate this array has.
mlir::DictionaryAttr tellOfBound(KernelEditor &editor, unsigned number, mlir::Value array);
/// The entry for a result of which nothing is ever shown, and with `hasBound` a bound of ∞ that
/// calls compare.
mlir::DictionaryAttr tellNeverShown(KernelEditor &editor, unsigned number, llvm::StringRef why, bool hasBound);
/// Says so.
void warnOfNeverShown(onf::KernelOp kernel, unsigned number, const Tolerance &allowed, llvm::StringRef why);

/// The bounds of a kernel, from kBoundsAttr.
class Bounds {
public:
  /// Nothing where the kernel has none.
  static std::optional<Bounds> read(onf::KernelOp kernel);

  bool hasBound(llvm::StringRef result, llvm::StringRef formats) const;
  /// Whether an input is an operand of contractions of two inputs, or of those of one.
  bool isOf(llvm::StringRef list, llvm::StringRef input) const;
  /// Why a bound is ∞ whatever the inputs are, if it is; elements may be off by `least`.
  std::optional<std::string> whyInfinite(llvm::StringRef result, llvm::StringRef formats, double least) const;

  const llvm::json::Object *findResult(llvm::StringRef result) const;
  const llvm::json::Object *findAtom(int64_t number) const;

  /// The atoms of a sum, those inside of functions too.
  void collect(const llvm::json::Object &sum, llvm::function_ref<void(const llvm::json::Object &)> visit) const;

private:
  explicit Bounds(llvm::json::Object whole) : whole(std::move(whole)) {}
  llvm::json::Object whole;
};

/// Which of the nest's axes in front of the rows each axis of a result is at that the nest stores.
llvm::SmallVector<std::optional<unsigned>> findHeadAxes(onf::ForOp nest, onf::StoreOp store, llvm::StringRef name);

/// Computes the bounds of one result at indices of the axes in front of a nest's rows.
class BoundNests {
public:
  /// `axes` says for each axis of the result which of the nest's axes it is at, if one in front of
  /// the rows.
  BoundNests(KernelEditor &editor, const Bounds &bounds, llvm::StringRef result,
             llvm::ArrayRef<std::optional<unsigned>> axes, llvm::ArrayRef<mlir::Attribute> headExtents);

  /// Adds the nests that find the magnitudes of a bound, each once.
  void addStatistics(llvm::StringRef formats);
  /// The least tolerance that is kept at an index: ∞ where a condition fails or something is not
  /// known. Statistics must be there.
  mlir::Value write(Code &code, mlir::ValueRange head, llvm::StringRef formats);

  llvm::SmallVector<onf::ForOp> nests; // that were added

private:
  /// Of each axis of an array the axis of the nest that it is at, or what is taken over it.
  static constexpr int kExtreme = -1, kNorm = -2;
  struct Statistic {
    mlir::Value array;
    std::string kind;
    llvm::SmallVector<int> axes;
  };
  /// What atoms are worth in one scalar code, from above and from below.
  struct Known {
    std::map<int64_t, mlir::Value> upper, lower;
  };
  using Json = llvm::json::Object;
  const Json *boundOf(llvm::StringRef formats) const;
  std::optional<Statistic> readStatistic(const Json &atom) const;
  mlir::Value addStatistic(Statistic statistic);
  mlir::Value reduce(mlir::Value array, unsigned axis, bool isMax);

  mlir::Value sum(Code &code, mlir::ValueRange head, const Json &sum, bool isUpper, Known &known);
  mlir::Value atom(Code &code, mlir::ValueRange head, int64_t number, bool isUpper, Known &known);
  mlir::Value function(Code &code, mlir::ValueRange head, const Json &atom, bool isUpper, Known &known);
  mlir::Value statistic(Code &code, mlir::ValueRange head, const Json &atom, bool isUpper);

  KernelEditor &editor;
  const Bounds &bounds;
  const Json *result;
  double least; // what an element may be off in any case
  llvm::SmallVector<std::optional<unsigned>> axes;
  llvm::SmallVector<mlir::Attribute> headExtents;
  std::map<std::string, mlir::Value> arrays; // by array, kind and axes
};

} // namespace moa::accuracy

#endif // MOA_ACCURACY_BOUNDS_H
