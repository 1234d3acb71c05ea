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
// lanes of a vector run over the last axis of a nest.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_SCHEDULE_SCHEDULE_H
#define MOA_SCHEDULE_SCHEDULE_H

#include "dialects/ONF/IR/ONF.h"
#include "lib/Schedule/Machine.h"

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

struct NestSchedule {
  std::vector<AxisSchedule> axes, folds;
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
llvm::Error checkSchedule(onf::KernelOp kernel, const Schedule &schedule,
                          const Machine &machine);

/// The default: the cheapest schedule of the cost model, among those whose
/// working set fits; the smallest one if none fits. A function of the kernel
/// and the description and of nothing else.
Schedule chooseSchedule(onf::KernelOp kernel, const Machine &machine);

/// Writes `lift` on the kernel's top-level nests and the folds in them.
mlir::LogicalResult lift(onf::KernelOp kernel, const Schedule &schedule);

} // namespace moa

#endif // MOA_SCHEDULE_SCHEDULE_H
