//===- GpuSchedule.h - schedules of a GPU's kernels -------------*- C++ -*-===//
//
// A nest runs on a GPU in one of several forms. These are:
//
// - **One thread per row:** the last axis is cut into blocks of threads.
// - **Warps:** a block has four warps with 16 rows each, which load operands directly into
//   registers and contract them there. The last axis is <block, warp: 4, register: 2, lane: 8>.
// - **Lanes along rows:** a block has four warps, and L lanes share a row. The axis of the rows is
//   <block, warp: 4, lane: 32 / L>. Every fold, or the last axis if columns are one, is cut into
//   runs of W elements per lane: <…, lane: L, register: W>.
// - **Runs of columns:** each lane has a run of the last axis, for transposing copies.
// - **Tiles:** a block has consumer warpgroups of 64 rows each and a producer warpgroup. The
//   producer copies tiles of fold indices, the *keys*, into rings of stages in shared memory. The
//   consumers contract them on the tensor cores. The last axis is <block, warpgroup, warp: 4,
//   register: 2, lane: 8>, the rows of an accumulator. The fold is <sequential, stage, shared>: its
//   tiles in the order of visits, the stage of each, and its keys.
//
// This file is plain data. The forms of a nest come from the conversion to the device level
// (lib/Conversion/ONFToDevice/Forms.h), the resources from the machine description. The cost model
// chooses the shape of tiles and the threads of rows. The factors of other forms are those of the
// nest.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_SCHEDULE_GPUSCHEDULE_H
#define MOA_SCHEDULE_GPUSCHEDULE_H

#include "lib/Schedule/GpuMachine.h"
#include "lib/Schedule/Schedule.h"

namespace moa {

/// The shape of a warp-specialised tile kernel.
struct TileShape : PipelineSchedule {
  int64_t warpgroups = 2; ///< consumer warpgroups, each with 64 rows
  int64_t keys = 128;     ///< per tile
  int64_t stages = 2;
  int64_t rows() const { return 64 * warpgroups; }
  int64_t threads() const { return 128 * (warpgroups + 1); }
};

/// Operations per pair (row, key), by execution unit.
struct OperationCounts {
  int64_t f32 = 0, special = 0, integer = 0, loads = 0;
};

/// Returns the columns of a row padded to a multiple of 128 bytes.
inline int64_t paddedColumns(int64_t columns, int64_t bytes = 2) {
  int64_t piece = 128 / bytes;
  return (columns + piece - 1) / piece * piece;
}

/// The columns of an operand's tiles, and their bytes per element.
struct TileColumns {
  int64_t columns, bytes;
  /// True if the columns of the product are the rows of the tiles.
  bool isTransposed = false;
  /// For a sum of several products of such operands: the number of products, and the numbers of
  /// different operands of rows and of keys.
  int64_t products = 1, rowOperands = 1, keyOperands = 1;
  TileColumns(int64_t columns, int64_t bytes = 2, bool isTransposed = false)
      : columns(columns), bytes(bytes), isTransposed(isTransposed) {}
  int64_t padded() const { return paddedColumns(columns, isTransposed ? 2 : bytes); }
  /// Returns the columns that instructions contract: steps of 32 for 8-bit elements, else the
  /// padded columns.
  int64_t contracted() const { return bytes == 1 ? (columns + 31) / 32 * 32 : padded(); }
  int64_t paddedBytes() const { return padded() * bytes; }
  /// Returns true if the sum over one tile has an accumulator of its own, which is added to the
  /// state. This holds for a sum of several products and for 8-bit operands.
  bool isSummedPerTile() const { return products > 1 || bytes == 1; }
};

/// The names of the forms whose schedules depend on the machine.
inline constexpr llvm::StringLiteral kTilesForm = "tiles", kRowsForm = "rows";

struct TileFold {
  std::string name;
  std::optional<int64_t> extent;
  /// True if a fold of the nest has index intervals.
  bool hasPieces = false;
  /// True if later rows visit fewer indices of a fold.
  bool visitsFewerLater = false;
  /// Lengths of the contractions that compute scores, and of the axes of the states. Rings store
  /// them padded; accumulators have the padding of 16-bit elements.
  llvm::SmallVector<TileColumns, 2> depths, widths;
  /// Sum of the padded widths that are rescaled when a running maximum changes.
  int64_t rescaledColumns = 0;
  /// Number of different computed operands of the states with axes.
  int64_t weights = 1;
  int64_t states = 0;
  /// Accumulator fragments of a tile other than its scores and weights.
  int64_t terms = 0;
  /// Bytes per row of the result tiles that do not reuse the memory of the row tiles.
  int64_t resultBytes = 0;
  bool guarded = false;
  /// True if the weights are elements of an array, with rows of its tiles selected by fold indices.
  bool isProduct = false;
  /// Bytes read by the prologue contractions, and registers of their sums.
  int64_t prologueBytes = 0, prologueSums = 0;
  /// The most indices that 64 rows visit, if known and small. Then blocks are short: they have 64
  /// rows, and several of them are resident per multiprocessor.
  std::optional<int64_t> visited;
  /// True if a block folds one part of the range (R4). Rows are then few, and blocks mostly wait for
  /// keys from memory.
  bool isPart = false;
  /// Keys of the shortest pages, if keys are found by pages; else 0. A stage then has several copies.
  int64_t page = 0;
  /// Bytes of shared memory other than rings and barriers.
  int64_t listBytes = 0;
  bool canGroup = false;
  /// True if a block may stop at any tile and another block continue it (stream-K split). All
  /// blocks must visit the same indices. The fold must not be a product of arrays or have a
  /// prologue. Its states must be f32 or bool.
  bool canShare = false;
  /// True if the call has a workspace in any case.
  bool hasWorkspace = false;
  /// Largest bound for conditional rescaling that the states and the operands' type allow, and the
  /// default bound.
  int64_t mostRescaleBound = 0, rescaleBound = 0;
  /// Operations of every tile, and of the guard.
  OperationCounts counts, guardCounts;
};

/// A form of a nest whose schedule the nest alone determines.
struct FixedForm {
  std::string name;
  std::optional<NestSchedule> schedule; ///< if the form applies
  std::string why;                      ///< if it does not
  std::string text;                     ///< the schedule in words
  /// The distribution of a row in words, if tensor cores would be faster.
  std::string slow;
};

struct GpuNest {
  std::vector<std::string> axes, folds;
  std::vector<std::optional<int64_t>> extents;
  /// The fold, if the nest can run with tiles; otherwise `why` gives the reason.
  std::optional<TileFold> fold;
  std::string why;
  /// The other forms in order of preference. One thread per row, which is always possible, is not
  /// among them.
  std::vector<FixedForm> others;
  /// Returns the first of the other forms that applies, or null.
  const FixedForm *getFixed() const;
};

struct TileNeeds {
  // Bytes of a block's shared memory.
  int64_t rowBytes = 0, stageBytes = 0, stages = 0, otherBytes = 0;
  int64_t bytes() const { return rowBytes + stages * stageBytes + otherBytes; }
  // Registers per consumer thread. `apart` counts the accumulators of sums over one tile, `others`
  // states and addresses, `kept` those that are live during products.
  int64_t sums = 0, apart = 0, scores = 0, weights = 0, rows = 0, others = 0, kept = 0;
  /// True if the weights of a tile are multiplied directly after its states: the scores, which
  /// become the weights, are dead during the products. Otherwise the scores of a tile are live
  /// during the products of the previous tile.
  bool multipliesAtOnce = false;
  int64_t registers() const {
    int64_t always = sums + rows;
    return multipliesAtOnce ? always + std::max(scores + others, apart + weights + kept)
                            : always + apart + scores + weights + others;
  }
};
/// Least number of tiles of a fold for which a split block is worth the cost of merging its states.
inline constexpr int64_t leastSplitTiles = 16;

TileNeeds tileNeeds(const TileFold &fold, const TileShape &shape);

/// Sets the registers per thread of consumers and producer, for `residents` blocks per
/// multiprocessor. Consumers get the most that a producer with the fewest registers leaves, the
/// producer the rest.
void assignRegisters(TileShape &shape, const TileFold &fold, const GpuMachine &machine, int64_t residents = 1);

/// Returns the number of blocks that share the registers of a multiprocessor.
int64_t residentBlocks(const TileShape &shape, const GpuMachine &machine);

/// Checks that a machine can run a fold in a shape. The error states the numbers.
llvm::Error checkTileShape(const TileFold &fold, const TileShape &shape, const GpuMachine &machine,
                           const llvm::Twine &where);

/// Cycles of a multiprocessor for one tile, by unit (GpuCostModel.cpp).
struct TileCost {
  double tensor = 0, special = 0, issue = 0, shared = 0, copy = 0, chain = 0;
  /// The part of a copy that the stages do not hide.
  double exposed = 0;
  /// Cycles of one tile, and per pair including all overheads.
  double period = 0, perPair = 0;
};
TileCost tileCost(const GpuNest &nest, const TileShape &shape, const GpuMachine &machine);

/// Returns the shapes that the machine can run, the cheapest first.
std::vector<std::pair<TileShape, TileCost>> rankTileShapes(const GpuNest &nest, const GpuMachine &machine);
/// Prints the ranking as a table: cycles of a tile by unit, resources, and cost relative to the
/// cheapest shape.
std::string printRanking(const GpuNest &nest, const GpuMachine &machine);
/// Chooses the threads of a block for one thread per row.
int64_t chooseThreads(const GpuNest &nest, const GpuMachine &machine);

/// Returns the tile shape of a nest's schedule; nothing if it does not use tiles.
std::optional<TileShape> tileShapeOf(const NestSchedule &nest);
/// Returns the threads per block of a schedule with one thread per row.
int64_t threadsOf(const NestSchedule &nest);
NestSchedule makeTileSchedule(const GpuNest &nest, const TileShape &shape);
NestSchedule makeRowSchedule(const GpuNest &nest, int64_t threads);
/// Returns a schedule that binds every axis to blocks and leaves every fold sequential.
NestSchedule outerFactors(llvm::ArrayRef<std::string> axes, llvm::ArrayRef<std::string> folds);
/// Returns the form of a nest that has this schedule, or null for tiles and for one thread per row.
const FixedForm *findFixed(const GpuNest &nest, const NestSchedule &schedule);

/// Returns the default schedule: the cheapest shape of every nest, or its first other form. The
/// result depends only on the nests and the description.
Schedule chooseGpuSchedule(llvm::StringRef kernel, llvm::ArrayRef<GpuNest> nests, const GpuMachine &machine);
/// Checks that the schedule names the kernel's indices, and that the nests and the machine can run
/// it. The error states the numbers.
llvm::Error checkGpuSchedule(llvm::StringRef kernel, llvm::ArrayRef<GpuNest> nests, const Schedule &schedule,
                             const GpuMachine &machine);

} // namespace moa

#endif // MOA_SCHEDULE_GPUSCHEDULE_H
