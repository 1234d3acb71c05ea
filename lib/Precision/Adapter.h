//===- Adapter.h - one nest in several precisions ---------------*- C++ -*-===//
//
// A nest that contracts rows of inputs is written once more for each plan, and each copy
// runs at those indices of the axes in front of the rows where a sample says that its
// results are near enough to those of the nest as it was written. In front of them stand
// the nests that round operands, pick the sample, compute it by every copy, and decide.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_PRECISION_ADAPTER_H
#define MOA_PRECISION_ADAPTER_H

#include "lib/Precision/Candidates.h"
#include "lib/Precision/KernelEditor.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

namespace moa::precision {

/// Rows of a sample: two from each of so many equal parts of the rows.
inline constexpr int64_t kParts = 32, kSample = 2 * kParts;

/// With fewer rows, or a fold over fewer indices, nothing is tried.
inline constexpr int64_t kFewest = 256;

/// What the pass is asked for.
struct Options {
  bool decisions = false, check = false, sums = false;
  std::string table;
};

/// An array in 8 bits, and what a row of it along the contraction's axis is a multiple of: one for
/// each, or for all that the axis `across` tells apart, as tensor cores want it. `largest` are the
/// magnitudes of the rows then, that axis last.
struct Rounded {
  mlir::Value data, scale, largest;
  std::optional<unsigned> across;
};

/// A vector near the mean of an array along one axis.
struct Mean {
  mlir::Value array;
  unsigned axis = 0;
};

/// Values of sums in e4m3, j adjacent and as many as a multiple of 16; what they are multiplied with
/// by column, and what they are smaller by.
struct RoundedValues {
  mlir::Value data, scale;
  Mean mean;
};

/// A result that the nest stores, with the tolerance it has.
struct Result {
  onf::StoreOp store;
  Tolerance allowed;
  llvm::SmallVector<mlir::Attribute> names, extents; // of the loops inside of the nest around the store
  mlir::Value sample;                          // of the nest as it is written
  mlir::Value norm;                            // Σ |sample|² of a row
};

/// One way to compute the nest: the scores whose operands are rounded.
struct Plan {
  llvm::SmallVector<unsigned> scores;
  bool sums = false; // and what sums with an axis add up
};

/// Adapts one nest of a kernel.
class Adapter {
public:
  Adapter(onf::KernelOp kernel, onf::ForOp nest, const Options &options)
      : kernel(kernel), nest(nest), options(options), editor(kernel, nest), onDemand(kernel) {}

  /// Whether there is anything to adapt; `why` says why not.
  bool plan(std::string &why);
  mlir::LogicalResult readTable();
  void run();
  void note();

private:
  //===--- What there is --------------------------------------------------===//
  bool findResults(std::string &why);
  std::string base() { return kernel.getArrayName(numberOf(results[0].store)).str(); }
  static unsigned numberOf(onf::StoreOp store) {
    return llvm::cast<mlir::BlockArgument>(store.getArray()).getArgNumber();
  }
  SymExpr rows() { return *SymExpr::parse(llvm::cast<mlir::StringAttr>(nest.getExtents().getValue().back()).getValue()); }

  //===--- The nests in front ---------------------------------------------===//
  void addCondition();
  Rounded addRounded(mlir::Value array, unsigned axis, const Mean *mean = nullptr,
                     std::optional<unsigned> across = std::nullopt);
  std::optional<unsigned> rowAxisOf(const Score &score);
  /// Whether one scale is that of all keys, and of all rows, as tensor cores want them.
  bool hasCommonScales(const Score &score) { return options.sums && score.keyAxis && rowAxisOf(score); }
  Rounded rounded(const Operand &operand) { return roundedArrays[{operand.array(), operand.axis}]; }
  Mean addMean(mlir::BlockArgument keys, unsigned axis, bool ifLarge = false);
  RoundedValues addRoundedValues(const Carrier &carrier);
  mlir::Value addShift(const Score &score, const Mean &mean);
  void addSampleRows();
  mlir::Value addGathered(const Score &score, mlir::Value array);
  llvm::SmallVector<mlir::Value> addSample(const Plan *plan, unsigned number);
  void addErrors(llvm::ArrayRef<llvm::SmallVector<mlir::Value>> samples);
  mlir::Value tabled(Code &code, mlir::ValueRange head);
  void addDecision();
  void addTable();
  void storeDecision(Code &code, mlir::ValueRange head, mlir::Value plan);

  //===--- Copies of the nest ---------------------------------------------===//
  struct Copy {
    onf::ForOp nest;
    mlir::IRMapping map;
    mlir::Value row; // the number of the row
    llvm::DenseMap<mlir::Value, mlir::Value> weights; // as they are, and multiplied
    llvm::DenseMap<unsigned, mlir::Value> totals;     // results of the fold, divided again
  };
  Copy copyNest();
  void roundScore(Copy &copy, const Score &score, const Rounded &row, mlir::ValueRange rowIndices,
                  const Rounded &key);
  void roundCarrier(Copy &copy, const Carrier &carrier);
  void readSampledRows(Copy &copy, const Score &score, mlir::Value gathered);

  onf::KernelOp kernel;
  onf::ForOp nest;
  const Options &options;
  KernelEditor editor;
  OnDemand onDemand;
  llvm::SmallVector<Score> scores;
  llvm::SmallVector<Carrier> carriers;
  llvm::SmallVector<Result, 2> results;
  llvm::SmallVector<Plan, 2> plans;

  llvm::SmallVector<mlir::Attribute> headNames, headExtents;   // the axes in front of the rows
  llvm::SmallVector<mlir::Attribute> sampleNames, sampleExtents; // and those of the sample
  Choice tried, chosen;
  mlir::Value sampledRows; // the number of each row of the sample
  llvm::MapVector<std::pair<mlir::Value, unsigned>, Rounded> roundedArrays;
  llvm::DenseMap<mlir::Value, RoundedValues> roundedValues;
  llvm::DenseMap<const Score *, mlir::Value> shifts; // what scores are smaller by
  llvm::SmallVector<mlir::Value> gathered;        // by score
  llvm::SmallVector<Rounded> gatheredRounded;
  llvm::SmallVector<llvm::SmallVector<mlir::Value>> errors; // by plan and result
  llvm::SmallVector<int64_t> table;             // plans that are given, or none
  mlir::Value planArray;                        // results for the decisions, if there are such
  llvm::SmallVector<mlir::Value> estimateArrays;
};

/// The value that `map` has for this one, or a copy of what computes it.
mlir::Value copyOf(Code &at, mlir::Value value, mlir::IRMapping &map);

/// Where each axis of an array stands in another one; nothing for one that it lacks, which has
/// an index of its own.
using Places = llvm::SmallVector<std::optional<unsigned>>;
/// The places in an array that lacks these axes.
Places placesWithout(unsigned rank, llvm::ArrayRef<unsigned> axes);
/// Loads from `array` what the load reads, with its axes at these places and indices by `map`.
mlir::Value loadAs(Code &at, onf::LoadOp load, mlir::Value array, const Places &places, mlir::IRMapping &map);
/// What a score's operand reads at index k of the contraction, from an array of its shape.
mlir::Value loadAt(Code &at, const Operand &operand, mlir::Value array, mlir::Value k, mlir::IRMapping &map);
/// The scale of the row that it reads, and the row's largest magnitude.
mlir::Value loadScale(Code &at, const Operand &operand, const Rounded &rounded, mlir::IRMapping &map);
mlir::Value loadLargest(Code &at, const Operand &operand, const Rounded &rounded, mlir::IRMapping &map);

} // namespace moa::precision

#endif // MOA_PRECISION_ADAPTER_H
