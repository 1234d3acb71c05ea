//===- Schedule.h - how a kernel's axes map to a machine --------*- C++ -*-===//
//
// A schedule is data: for every top-level nest the factors of each index, and
// for every fold of the nest the factors of its range. It is printed, edited
// and fed back as JSON:
//
//   { "kernel": "f", "machine": "zen4", "nests": [
//       { "axes":  [ { "name": "h", "core": 0 },
//                    { "name": "i", "core": 0, "register": 6, "lane": 16 } ],
//         "folds": [ { "name": "j", "sequential": 0, "cache": 128 } ] } ] }
//
// The factor of size 0 is the outermost: it takes what the others leave. The
// lanes of a vector run over the last axis of a nest. The first fold of a nest may
// be split over cores (rule R4), here in parts of 16 · 128 indices:
//
//         "folds": [ { "name": "j", "core": 0, "sequential": 16, "cache": 128 } ]
//
// On a GPU (GpuSchedule.h)
// the resources are others, and a nest with warpgroups has a pipeline:
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

/// The factors of one index, from the outermost in; the outermost has size 0.
struct AxisSchedule {
  std::string name;
  std::vector<std::pair<onf::Resource, int64_t>> factors;

  /// Size of the factor bound to `resource`, or 1.
  int64_t getSize(onf::Resource resource) const;
  bool operator==(const AxisSchedule &other) const {
    return name == other.name && factors == other.factors;
  }
};

/// How the warpgroups of a block work together, as in #onf.pipeline.
struct PipelineSchedule {
  int64_t consumerRegisters = 240, producerRegisters = 24; ///< per thread
  /// Whether the products of a tile are in flight during the next one's states.
  bool overlap = true;
  /// Whether the blocks of the last rows run first.
  bool descending = false;
  /// Bytes of what the outer indices that go through the rows together read of the
  /// fold's range; 0: one index after the other.
  int64_t groupBytes = 0;
  /// log2 of the factor by which a reference may fall behind; 0: not at all.
  int64_t repairBound = 0;
  /// Whether consumers keep the operands of their rows in registers.
  bool holdsRows = false;
  /// Whether the warpgroups start the scores of a tile one after the other.
  bool takesTurns = false;
  /// Multiprocessors among which the blocks of a last round that does not fill them are shared
  /// (docs/Architecture.md); 0: none.
  int64_t shares = 0;
};

struct NestSchedule {
  std::vector<AxisSchedule> axes, folds;
  std::optional<PipelineSchedule> pipeline;
  /// Whether the axes are bound to blocks of a GPU.
  bool isGpu() const;
  /// Rows of a tile: the product of the last axis's inner factors.
  int64_t getRows() const;
};

struct Schedule {
  std::string kernel, machine;
  std::vector<NestSchedule> nests;
};

/// Reads a schedule; unknown keys, sizes below 1 and missing or repeated outer
/// factors are errors that name the axis.
llvm::Expected<Schedule> parseSchedule(llvm::StringRef text);
llvm::Expected<Schedule> loadSchedule(llvm::StringRef path);

/// The schedule as JSON; `parseSchedule` gives it back.
std::string printSchedule(const Schedule &schedule);

/// Whether the schedule names the kernel's indices, uses lane counts that the
/// machine has, and keeps every tile's working set within half of the
/// second-level cache. The message holds the numbers.
llvm::Error checkSchedule(onf::KernelOp kernel, const Schedule &schedule, const Machine &machine);

/// The default: the cheapest schedule of the cost model, among those whose
/// working set fits; the smallest one if none fits. A function of the kernel
/// and the description and of nothing else.
Schedule chooseSchedule(onf::KernelOp kernel, const Machine &machine);

/// The schedule without parts of ranges: what cores share is rows alone.
void joinRanges(Schedule &schedule);

/// Writes `lift` and `pipeline` on the kernel's top-level nests and the folds in them.
mlir::LogicalResult lift(onf::KernelOp kernel, const Schedule &schedule);

} // namespace moa

#endif // MOA_SCHEDULE_SCHEDULE_H
