//===- Schedule.h - mapping of a kernel's axes to a machine -----*- C++ -*-===//
//
// A schedule is data: for every top-level nest the factors of each index, and for every fold of the
// nest the factors of its range. It can be printed as JSON, edited and read back:
//
//   { "kernel": "f", "machine": "zen4", "nests": [
//       { "axes":  [ { "name": "h", "core": 0 },
//                    { "name": "i", "core": 0, "register": 6, "lane": 16 } ],
//         "folds": [ { "name": "j", "sequential": 0, "cache": 128 } ] } ] }
//
// The factor of size 0 is the outermost: its size is the extent divided by all others. The lanes of
// a vector run over the last axis of a nest. The first fold of a nest may be split over cores (rule
// R4, split-K), here in parts of 16 · 128 indices:
//
//         "folds": [ { "name": "j", "core": 0, "sequential": 16, "cache": 128 } ]
//
// A GPU has other resources (GpuSchedule.h), and a nest with warpgroups has a pipeline:
//
//       { "axes":  [ { "name": "h", "block": 0 },
//                    { "name": "i", "block": 0, "warpgroup": 2, "warp": 4, "register": 2, "lane": 8
//                    } ],
//         "folds": [ { "name": "j", "sequential": 0, "stage": 2, "shared": 128 } ],
//         "pipeline": { "consumer": 240, "producer": 24, "overlap": true,
//                       "order": "ascending", "group": 0, "lazy": 8 } }
//
//===----------------------------------------------------------------------===//
#ifndef MOA_SCHEDULE_SCHEDULE_H
#define MOA_SCHEDULE_SCHEDULE_H

#include "dialects/ONF/IR/ONF.h"
#include "lib/Schedule/Machine.h"
#include <optional>

namespace moa {

/// The factors of one index, outermost first; the outermost has size 0.
struct AxisSchedule {
  std::string name;
  std::vector<std::pair<onf::Resource, int64_t>> factors;

  /// Returns the size of the factor bound to `resource`, or 1.
  int64_t getSize(onf::Resource resource) const;
  bool operator==(const AxisSchedule &other) const { return name == other.name && factors == other.factors; }
};

/// The pipeline of the warpgroups of a block, as in #onf.pipeline.
struct PipelineSchedule {
  int64_t consumerRegisters = 240, producerRegisters = 24; ///< per thread
  /// True if the products of a tile overlap with the states of the next one.
  bool overlap = true;
  /// True if the blocks of the last rows run first.
  bool descending = false;
  /// Outer indices traverse the rows together while their fold data is at most this many bytes, so
  /// that it stays in the second-level cache. 0: one index after the other.
  int64_t groupBytes = 0;
  /// Conditional rescaling (`lazy`): states are rescaled only if a correction factor is outside
  /// [2^-rescaleBound, 2^rescaleBound]; 0: whenever a running maximum changes.
  int64_t rescaleBound = 0;
  /// True if consumers keep the operands of their rows in registers.
  bool holdsRows = false;
  /// True if consumer warpgroups start the scores of a tile in turn (ping-pong schedule).
  bool takesTurns = false;
  /// Number of multiprocessors that share the blocks of an incomplete last wave (stream-K split,
  /// docs/Architecture.md); 0: no split.
  int64_t shares = 0;
};

struct NestSchedule {
  std::vector<AxisSchedule> axes, folds;
  std::optional<PipelineSchedule> pipeline;
  /// Returns true if the axes are bound to blocks of a GPU.
  bool isGpu() const;
  /// Returns the rows of a tile: the product of the last axis's inner factors.
  int64_t getRows() const;
};

struct Schedule {
  std::string kernel, machine;
  std::vector<NestSchedule> nests;
};

/// Parses a schedule. Unknown keys, sizes below 1 and missing or repeated outer factors are errors
/// that name the axis.
llvm::Expected<Schedule> parseSchedule(llvm::StringRef text);
llvm::Expected<Schedule> loadSchedule(llvm::StringRef path);

/// Prints the schedule as JSON that `parseSchedule` reads back.
std::string printSchedule(const Schedule &schedule);

/// Checks the schedule: it must name the kernel's indices, use lane counts of the machine, and keep
/// the working set of every tile within half of the second-level cache. The error states the
/// numbers.
llvm::Error checkSchedule(onf::KernelOp kernel, const Schedule &schedule, const Machine &machine);

/// Checks that a schedule names these indices in order. `kind` says in the error which ones they are.
llvm::Error checkNames(llvm::ArrayRef<AxisSchedule> axes, llvm::ArrayRef<std::string> names, const llvm::Twine &kind);

/// Returns the default: the cheapest schedule of the cost model whose working set fits, or the
/// smallest one if none fits. The result depends only on the kernel and the description.
Schedule chooseSchedule(onf::KernelOp kernel, const Machine &machine);

/// Removes the splits of ranges over cores; only rows are distributed then.
void joinRanges(Schedule &schedule);

/// Returns the factors as an attribute.
onf::AxisAttr axisAttr(mlir::MLIRContext *context, const AxisSchedule &axis);

/// Sets `lift` and `pipeline` on the kernel's top-level nests and their folds.
mlir::LogicalResult lift(onf::KernelOp kernel, const Schedule &schedule);

} // namespace moa

#endif // MOA_SCHEDULE_SCHEDULE_H
