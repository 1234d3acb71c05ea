//===- GpuSchedule.h - schedules of a GPU's kernels -------------*- C++ -*-===//
//
// A nest runs on a GPU in one of four ways.
//
// With one thread per row: the last axis is cut into blocks of threads.
//
// With warps: a block has four of them with 16 rows each, which contract what they read into
// their registers. Bound to the machine, the last axis is <block, warp: 4, register: 2, lane: 8>.
//
// With lanes along its rows: a block has four warps, and a group of lanes per row. Bound to the
// machine, the axis of the rows is <block, warp: 4, lane: 32 / L>, and every fold, or the last axis
// where the columns are one, is cut into runs of W elements per lane: <…, lane: L, register: W>.
//
// With tiles: a block has consumer warpgroups of 64 rows each and a producer,
// which copies tiles of the fold's indices, the *keys*, into the stages of rings
// in shared memory. The consumers contract on the tensor cores. Bound to the
// machine, the last axis is <block, warpgroup, warp: 4, register: 2, lane: 8>,
// the rows of an accumulator, and the fold <sequential, stage, shared>: its tiles
// in the order they are visited, the stage each is copied to, and the keys in it.
//
// What stands here is plain data: the conversion to the device level says what a
// nest needs (lib/Conversion/ONFToDevice/GpuNests.cpp), the description what a
// machine has, and nothing else decides.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_SCHEDULE_GPUSCHEDULE_H
#define MOA_SCHEDULE_GPUSCHEDULE_H

#include "lib/Schedule/GpuMachine.h"
#include "lib/Schedule/Schedule.h"

namespace moa {

/// The shape of a kernel of tiles.
struct TileShape : PipelineSchedule {
  int64_t warpgroups = 2; ///< consumers, each with 64 rows
  int64_t keys = 128;     ///< per tile
  int64_t stages = 2;
  int64_t rows() const { return 64 * warpgroups; }
  int64_t threads() const { return 128 * (warpgroups + 1); }
};

/// Operations per pair (row, key), by the units that do them.
struct OperationCounts {
  int64_t f32 = 0, special = 0, integer = 0, loads = 0;
};

/// Columns of a row in whole pieces of 128 bytes.
inline int64_t paddedColumns(int64_t columns, int64_t bytes = 2) {
  int64_t piece = 128 / bytes;
  return (columns + piece - 1) / piece * piece;
}

/// The columns of an operand's tiles, with elements of so many bytes.
struct TileColumns {
  int64_t columns, bytes;
  /// Whether the columns of the product are the rows of the tiles.
  bool isTransposed = false;
  /// Of a sum of several products of such operands: how many, and the different operands of rows
  /// and of keys.
  int64_t products = 1, rowOperands = 1, keyOperands = 1;
  TileColumns(int64_t columns, int64_t bytes = 2, bool isTransposed = false)
      : columns(columns), bytes(bytes), isTransposed(isTransposed) {}
  int64_t padded() const { return paddedColumns(columns, isTransposed ? 2 : bytes); }
  /// That instructions contract along: of bytes in steps of 32, else all of a ring's.
  int64_t contracted() const { return bytes == 1 ? (columns + 31) / 32 * 32 : padded(); }
  int64_t paddedBytes() const { return padded() * bytes; }
  /// What states add of one tile is apart where it is a sum of several products, or has 8 bits.
  bool isApart() const { return products > 1 || bytes == 1; }
};

/// A fold that can run with tiles.
struct TileFold {
  std::optional<int64_t> extent;
  /// Lengths of the contractions that give scores, and of the axes that states
  /// carry; rings hold them in whole pieces, sums as if they had 16 bits.
  llvm::SmallVector<TileColumns, 2> depths, widths;
  /// Of the widths, those that a change of a reference multiplies.
  int64_t repaired = 0;
  /// Different computed operands of the states with axes.
  int64_t weights = 1;
  /// States without axes.
  int64_t states = 0;
  /// Fragments of a tile beside its scores and weights.
  int64_t terms = 0;
  /// Of a row of a tile of results that does not pass through the rows' tiles.
  int64_t resultBytes = 0;
  bool guarded = false;
  /// Whether weights are elements of an array, of which a tile has rows by indices of the fold.
  bool isProduct = false;
  /// Of folds in front of the tiles: bytes that they read, and registers of their sums.
  int64_t priorBytes = 0, priorSums = 0;
  /// The most indices that 64 rows visit, where that is known and they are few: blocks are short
  /// then, have 64 rows, and several of them share a multiprocessor.
  std::optional<int64_t> visited;
  /// Bytes of shared memory beside rings and barriers.
  int64_t listBytes = 0;
  /// Whether there are outer indices to group.
  bool canGroup = false;
  /// Whether a block can leave off anywhere and another one go on: all blocks visit the same
  /// indices, the fold is no product of arrays and has none in front, and what it carries is f32 or
  /// bool.
  bool canShare = false;
  /// Whether the call has a workspace in any case.
  bool hasWorkspace = false;
  /// Largest bound of late repairs that the states and the operands' type allow, and
  /// the bound that is taken by default.
  int64_t mostRepairBound = 0, repairBound = 0;
  /// Of every tile, and of the guard.
  OperationCounts counts, guardCounts;
};

/// How lanes share the columns of a row.
struct LaneShape {
  int64_t lanes = 32; ///< of a row
  int64_t width = 8;  ///< elements of a run
  /// Runs of a block where the columns are the nest's last axis; else 0.
  int64_t runs = 0;
  int64_t turns = 1; ///< rows of a lane, one behind the other
  /// Folds that all lanes of a row take in order.
  std::vector<std::string> serial;
};

/// How lanes have runs of columns, the nest's last axis.
struct ColumnShape {
  size_t rowAxis = 0; ///< of which the lanes of a warp have `rows` each
  int64_t width = 8;  ///< columns of a run
  int64_t rows = 1;
};

struct GpuNest {
  std::vector<std::string> axes, folds;
  /// Of the axes, where constant.
  std::vector<std::optional<int64_t>> extents;
  /// Whether a fold's domain is known by intervals.
  bool hasPieces = false;
  /// The one fold, where the nest can run with tiles; else why it cannot.
  std::optional<TileFold> fold;
  std::string why;
  /// Whether it can run with warps.
  bool isProduct = false;
  /// How it runs with lanes along its rows, if it can.
  std::optional<LaneShape> lanes;
  /// How it runs with runs of columns, if it can.
  std::optional<ColumnShape> columns;
};

/// What a kernel of tiles takes.
struct TileNeeds {
  // Bytes of a block's shared memory.
  int64_t rowBytes = 0, stageBytes = 0, stages = 0, otherBytes = 0;
  int64_t bytes() const { return rowBytes + stages * stageBytes + otherBytes; }
  // Registers of a consumer's thread. Of sums those of one tile are apart, of others those that
  // products leave.
  int64_t sums = 0, apart = 0, scores = 0, weights = 0, rows = 0, others = 0, kept = 0;
  /// Where each tile's weights are multiplied behind its states: its scores, of which each becomes
  /// a part of a weight, are not needed any more beside the products. Else the scores of a tile
  /// stand beside the products of the one before.
  bool multipliesAtOnce = false;
  int64_t registers() const {
    int64_t always = sums + rows;
    return multipliesAtOnce ? always + std::max(scores + others, apart + weights + kept)
                            : always + apart + scores + weights + others;
  }
};
/// Tiles of a fold from which on a block in two parts is worth what its states cost, some
/// microseconds.
inline constexpr int64_t leastSharedTiles = 16;

TileNeeds tileNeeds(const TileFold &fold, const TileShape &shape);

/// Registers of consumers and producer for a number of warpgroups: the consumers
/// get what a producer of the fewest leaves, the producer the rest.
/// `residents` blocks share a multiprocessor.
void assignRegisters(TileShape &shape, const GpuMachine &machine, int64_t residents = 1);

/// Blocks of a shape that share a multiprocessor's registers.
int64_t residentBlocks(const TileShape &shape, const GpuMachine &machine);

/// Whether a machine can run a fold in a shape. The message holds the numbers.
llvm::Error checkTileShape(const TileFold &fold, const TileShape &shape, const GpuMachine &machine,
                           const llvm::Twine &where);

/// Cycles of a multiprocessor for one tile (GpuCostModel.cpp).
struct TileCost {
  double tensor = 0, special = 0, issue = 0, shared = 0, copy = 0, chain = 0;
  /// Of a copy, what the stages do not hide.
  double exposed = 0;
  /// Of one tile, and per pair with everything that is not a whole tile.
  double period = 0, perPair = 0;
};
TileCost tileCost(const GpuNest &nest, const TileShape &shape, const GpuMachine &machine);

/// The shapes that the machine can run, the cheapest first.
std::vector<std::pair<TileShape, TileCost>> rankTileShapes(const GpuNest &nest,
                                                           const GpuMachine &machine);
/// The ranking as a table: the cycles of a tile by units, what a shape needs, and its
/// cost relative to the cheapest.
std::string printRanking(const GpuNest &nest, const GpuMachine &machine);
/// Threads of a block with one thread per row.
int64_t chooseThreads(const GpuNest &nest, const GpuMachine &machine);

/// The shape that a nest's schedule asks for; nothing for one thread per row.
std::optional<TileShape> tileShapeOf(const NestSchedule &nest);
/// The threads of a block that it asks for otherwise.
int64_t threadsOf(const NestSchedule &nest);
NestSchedule makeTileSchedule(const GpuNest &nest, const TileShape &shape);
NestSchedule makeRowSchedule(const GpuNest &nest, int64_t threads);
/// The schedule of a nest that runs with warps, and whether a schedule is one.
NestSchedule makeWarpSchedule(const GpuNest &nest);
bool runsWithWarps(const NestSchedule &nest);
/// The schedule of a nest that runs with lanes along its rows, and whether a schedule is one.
NestSchedule makeLaneSchedule(const GpuNest &nest);
bool runsWithLanes(const NestSchedule &nest);
NestSchedule makeColumnSchedule(const GpuNest &nest);
bool runsWithColumns(const NestSchedule &nest);

/// The default: for every nest the cheapest shape, or one thread per row where
/// there are no tiles. A function of the nests and the description only.
Schedule chooseGpuSchedule(llvm::StringRef kernel, llvm::ArrayRef<GpuNest> nests,
                           const GpuMachine &machine);
/// Whether the schedule names the kernel's indices and asks for what the nests and
/// the machine can do. The message holds the numbers.
llvm::Error checkGpuSchedule(llvm::StringRef kernel, llvm::ArrayRef<GpuNest> nests,
                             const Schedule &schedule, const GpuMachine &machine);

} // namespace moa

#endif // MOA_SCHEDULE_GPUSCHEDULE_H
