//===- NestShape.h - shape of a nest for the cost model ---------*- C++ -*-===//
#ifndef MOA_SCHEDULE_NESTSHAPE_H
#define MOA_SCHEDULE_NESTSHAPE_H

#include "dialects/ONF/IR/ONF.h"
#include "lib/Schedule/Machine.h"
#include <optional>
#include <string>
#include <vector>

namespace moa {

struct FoldShape {
  std::string name;
  std::optional<int64_t> extent;
  /// Elements per index and per row: the sum of the extents of inner reductions, and the sum over
  /// states of the products of their extents.
  int64_t inner = 0, carried = 0;
  /// True if a guard restricts the range.
  bool guarded = false;
  /// Scalars per index and row that pass from one reduction to the next.
  int64_t values = 0;
};

struct NestShape {
  std::vector<std::string> names;
  std::optional<int64_t> laneExtent;
  /// Bits of the compute type: 64 if anything is computed in f64 or, without floats, if a state is
  /// a 64-bit integer; otherwise 32.
  unsigned bits = 32;
  std::vector<FoldShape> folds;
  bool isShort = false; ///< onf::kShortAttr
};

/// Assumed value of a symbolic extent inside a fold's body.
constexpr int64_t assumedExtent = 128;

std::vector<NestShape> nestShapes(onf::KernelOp kernel);

/// Register blocking: broadcasts × vectors accumulators, `vectors` vector operands and one
/// broadcast element are in registers.
struct RegisterBlock {
  int64_t broadcasts, vectors;
};
RegisterBlock registerBlock(const Machine &machine);

/// Bytes that a core accesses repeatedly while it runs one block of a fold over one tile of rows.
struct WorkingSet {
  int64_t staged = 0; // block × (inner + carried): data shared by all rows
  int64_t values = 0; // block × the rows of one register panel
  int64_t states = 0; // rows × (inner + carried)
  int64_t total() const { return staged + values + states; }
};

/// Returns the working set for tiles of `registers` vectors of `lanes` rows.
WorkingSet workingSet(const NestShape &nest, const FoldShape &fold, const Machine &machine, int64_t registers,
                      int64_t lanes, int64_t block);

} // namespace moa

#endif // MOA_SCHEDULE_NESTSHAPE_H
