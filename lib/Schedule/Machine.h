//===- Machine.h - what a schedule must know of a processor -----*- C++ -*-===//
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
  /// LLVM's names of the processors it describes, and the features they must
  /// report.
  std::vector<std::string> cpus, features;
  /// Widths of the vector registers, ascending.
  std::vector<int64_t> vectorBits;
  /// Architectural vector registers.
  int64_t registers = 16;
  /// Vector multiply-adds per cycle at the widest width.
  int64_t fmaPerCycle = 1;
  /// Private cache of one core.
  int64_t l1Bytes = 0, l2Bytes = 0, l2BytesPerCycle = 32;
  int64_t cores = 1;

  /// Lane counts for elements of `bits` bits: 1 and one per vector width.
  std::vector<int64_t> laneCounts(unsigned bits) const;
};

/// Reads a description; unknown, missing or senseless values are errors.
llvm::Expected<Machine> parseMachine(llvm::StringRef text);
std::string printMachine(const Machine &machine);

/// The processor this runs on: the description that names it, or the first one
/// whose features it has, with the cache sizes the system reports.
Machine hostMachine();

/// "host", the name of a compiled-in description, or the path of a file.
llvm::Expected<Machine> loadMachine(llvm::StringRef nameOrPath);

/// The compiled-in descriptions.
std::vector<Machine> knownMachines();
const llvm::ArrayRef<const char *> machineTexts();

} // namespace moa

#endif // MOA_SCHEDULE_MACHINE_H
