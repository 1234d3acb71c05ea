//===- Machine.h - descriptions of processors for schedules -----*- C++ -*-===//
//
// A machine description is a JSON file; those in lib/Schedule/machines are
// compiled in. All keys are required:
//
//   { "name": "zen4", "cpus": ["znver4"], "features": ["avx512f", "fma"],
//     "vector_bits": [128, 256, 512], "registers": 32, "fma_per_cycle": 1,
//     "l1_bytes": 32768, "l2_bytes": 1048576, "l2_bytes_per_cycle": 64,
//     "cores": 1 }
//
//===----------------------------------------------------------------------===//
#ifndef MOA_SCHEDULE_MACHINE_H
#define MOA_SCHEDULE_MACHINE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>
#include <vector>

namespace moa {

struct Machine {
  std::string name;
  /// LLVM's names of the processors, and the features that they must report.
  std::vector<std::string> cpus, features;
  /// Widths of the vector registers, in bits, ascending.
  std::vector<int64_t> vectorBits;
  int64_t registers = 16;
  /// Vector multiply-adds per cycle at the largest width.
  int64_t fmaPerCycle = 1;
  /// Sizes and bandwidth of the private caches of one core.
  int64_t l1Bytes = 0, l2Bytes = 0, l2BytesPerCycle = 32;
  int64_t cores = 1;

  /// Returns the lane counts for elements of `bits` bits: 1 and one per vector width.
  std::vector<int64_t> laneCounts(unsigned bits) const;
};

/// Parses a description; unknown, missing or invalid values are errors.
llvm::Expected<Machine> parseMachine(llvm::StringRef text);
std::string printMachine(const Machine &machine);

/// Returns the description that names this processor, or else the first whose features it has. The
/// cache sizes and the number of cores are those that the system reports.
Machine hostMachine();

/// Loads "host", a compiled-in description by its name, or a file by its path.
llvm::Expected<Machine> loadMachine(llvm::StringRef nameOrPath);

std::vector<Machine> knownMachines();
const llvm::ArrayRef<const char *> machineTexts();

} // namespace moa

#endif // MOA_SCHEDULE_MACHINE_H
