//===- GpuMachine.h - descriptions of GPUs for schedules --------*- C++ -*-===//
//
// A description is a JSON file; those in lib/Schedule/machines are compiled in. Every quantity has
// a value, a unit and a source:
//
//   { "name": "h200", "architecture": "sm_90a", "quantities": {
//       "multiprocessors": { "value": 132, "unit": "SM", "source": "…" }, … } }
//
// All quantities are required. An unknown quantity, another unit, a value below 1 or an empty
// source is an error.
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
  /// Registers of a multiprocessor, and the most that a thread can address. A warpgroup can set its
  /// registers per thread to a multiple of registerUnit from leastRegisters to mostRegisters.
  int64_t registers = 0, registersPerThread = 0;
  int64_t registerUnit = 0, leastRegisters = 0, mostRegisters = 0;
  int64_t sharedPerBlock = 0, shared = 0, sharedBandwidth = 0;
  int64_t l2Bytes = 0, l2Bandwidth = 0, memoryBandwidth = 0;
  /// Latency of a tile copy in cycles, and the most rows of one copy.
  int64_t copyLatency = 0, copyRows = 0;
  /// A contraction instruction: rows of a warpgroup, most columns, depth.
  int64_t tensorRows = 0, tensorColumns = 0, tensorDepth = 0;
  int64_t tensor8 = 0, tensor16 = 0, tensorTF32 = 0, tensorF64 = 0;
  int64_t issue = 0, f32 = 0, f64 = 0, integer = 0, special = 0;
  /// Break-even points of mixed-precision variants: multiply-adds of a nest per byte moved by
  /// rounding and sampling. They are for variants of 8 bits, of 16 bits for f32, and of sums of two
  /// floats.
  int64_t workPerByte8 = 0, workPerByte16 = 0, workPerByteSplit = 0;

  std::map<std::string, std::string> sources;

  /// Returns the registers per thread at the launch of a block of this many threads, if one block
  /// is resident per multiprocessor.
  int64_t getLaunchRegisters(int64_t blockThreads) const;
};

llvm::Expected<GpuMachine> parseGpuMachine(llvm::StringRef text);
std::string printGpuMachine(const GpuMachine &machine);

/// Loads a compiled-in description by its name or architecture, or a file by its path.
llvm::Expected<GpuMachine> loadGpuMachine(llvm::StringRef nameOrPath);

std::vector<GpuMachine> knownGpuMachines();
const llvm::ArrayRef<const char *> gpuMachineTexts();

} // namespace moa

#endif // MOA_SCHEDULE_GPUMACHINE_H
