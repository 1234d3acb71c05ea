//===- GpuMachine.h - what a schedule must know of a GPU --------*- C++ -*-===//
//
// A description is a JSON file; those in lib/Schedule/machines are compiled in.
// Every quantity has a value, the unit it is meant in, and where it comes from:
//
//   { "name": "h200", "architecture": "sm_90a", "quantities": {
//       "multiprocessors": { "value": 132, "unit": "SM", "source": "…" }, … } }
//
// All quantities are required; an unknown one, another unit, a value below 1 or
// an empty source is an error.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_SCHEDULE_GPUMACHINE_H
#define MOA_SCHEDULE_GPUMACHINE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace moa {

struct GpuMachine {
  std::string name, architecture;

  // Throughputs are per multiprocessor and cycle.
  int64_t multiprocessors = 0, clock = 0, sustainedClock = 0;
  int64_t threads = 0, threadsPerBlock = 0, blocks = 0;
  /// Registers of a multiprocessor; what one thread can name; the multiples and
  /// the range in which a warpgroup can change its number.
  int64_t registers = 0, registersPerThread = 0;
  int64_t registerUnit = 0, leastRegisters = 0, mostRegisters = 0;
  int64_t sharedPerBlock = 0, shared = 0, sharedBandwidth = 0;
  int64_t l2Bytes = 0, l2Bandwidth = 0, memoryBandwidth = 0;
  /// Cycles until a copied tile is there, and rows that one copy can have.
  int64_t copyLatency = 0, copyRows = 0;
  /// The unit of contractions: rows of a warpgroup, most columns, depth.
  int64_t tensorRows = 0, tensorColumns = 0, tensorDepth = 0;
  int64_t tensor8 = 0, tensor16 = 0, tensorTF32 = 0, tensorF64 = 0;
  int64_t issue = 0, f32 = 0, f64 = 0, integer = 0, special = 0;
  /// Multiply-adds of a nest for each byte that rounding and the sample in front of its plan move,
  /// where both take the same time: of plans of 8 bits, of 16 bits for f32, of sums of two floats.
  int64_t workPerByte8 = 0, workPerByte16 = 0, workPerByteSplit = 0;

  /// Where each quantity comes from.
  std::map<std::string, std::string> sources;

  /// Registers per thread with which a block of so many threads starts when it
  /// has a multiprocessor to itself.
  int64_t getLaunchRegisters(int64_t blockThreads) const;
};

llvm::Expected<GpuMachine> parseGpuMachine(llvm::StringRef text);
std::string printGpuMachine(const GpuMachine &machine);

/// The name of a compiled-in description, an architecture that one has, or the
/// path of a file.
llvm::Expected<GpuMachine> loadGpuMachine(llvm::StringRef nameOrPath);

/// The compiled-in descriptions.
std::vector<GpuMachine> knownGpuMachines();
const llvm::ArrayRef<const char *> gpuMachineTexts();

} // namespace moa

#endif // MOA_SCHEDULE_GPUMACHINE_H
