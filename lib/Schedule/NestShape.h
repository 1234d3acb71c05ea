//===- NestShape.h - what the cost model sees of a nest ---------*- C++ -*-===//
#ifndef MOA_SCHEDULE_NESTSHAPE_H
#define MOA_SCHEDULE_NESTSHAPE_H

#include "dialects/ONF/IR/ONF.h"
#include "lib/Schedule/Machine.h"
#include <optional>
#include <string>
#include <vector>

namespace moa {

/// One fold that stands directly in a nest.
struct FoldShape {
  std::string name;
  /// The extent when it is a compile-time constant.
  std::optional<int64_t> extent;
  /// Σ of the extents of the reductions inside the body, and Σ of the products
  /// of the extents that the states carry: elements per index and per row.
  int64_t inner = 0, carried = 0;
  /// Whether a guard restricts the range.
  bool guarded = false;
  /// Scalars per index and row that pass from one reduction to the next.
  int64_t values = 0;
};

struct NestShape {
  std::vector<std::string> names;
  std::optional<int64_t> laneExtent;
  /// Width of the compute type: 64 if anything is computed in f64 or, without
  /// floats, if a state is a 64-bit integer; else 32.
  unsigned bits = 32;
  std::vector<FoldShape> folds;
  bool isShort = false; ///< onf::kShortAttr
};

/// What a symbolic extent inside a fold's body counts in the model.
constexpr int64_t assumedExtent = 128;

std::vector<NestShape> nestShapes(onf::KernelOp kernel);

/// Vectors of rows and broadcast elements of the register blocking: their product
/// of accumulators, the vectors and one broadcast are in registers.
struct RegisterBlock {
  int64_t broadcasts, vectors;
};
RegisterBlock registerBlock(const Machine &machine);

/// Bytes that one core touches again and again while it runs one block of a
/// fold over one tile of rows.
struct WorkingSet {
  int64_t staged = 0; // block × (inner + carried): what all rows share
  int64_t values = 0; // block × the rows of one register panel
  int64_t states = 0; // rows × (inner + carried)
  int64_t total() const { return staged + values + states; }
};

/// For tiles of `registers` vectors of `lanes` rows.
WorkingSet workingSet(const NestShape &nest, const FoldShape &fold, const Machine &machine,
                      int64_t registers, int64_t lanes, int64_t block);

} // namespace moa

#endif // MOA_SCHEDULE_NESTSHAPE_H
