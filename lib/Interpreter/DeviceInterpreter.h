//===- DeviceInterpreter.h - the meaning of device programs -----*- C++ -*-===//
//
// Runs a device.program on the CPU: every thread of every block. Consumer warpgroups and the
// producer are separate agents, fragments are in the registers that their layouts name, and ring
// stages hold the bits of tiles. The interpreter uses the dialects, but no code of the lowering to
// this level or of the code printer after it.
//
// Floats are computed in their own types. Where hardware may choose, the interpreter fixes one
// choice. A contraction adds its exact products in float64 in order of k and rounds the sum to f32
// once. device.exp2 and the math functions are accurate to 1 ulp.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_INTERPRETER_DEVICEINTERPRETER_H
#define MOA_INTERPRETER_DEVICEINTERPRETER_H

#include "lib/Interpreter/Interpreter.h"

namespace moa {

/// Totals over all blocks of a program.
struct DeviceCounts {
  std::map<std::string, int64_t> copied; // copied tiles, by name of their array
  int64_t masked = 0;                    // stages with masked-out rows cleared
};

struct DeviceOptions {
  /// Seed of the interleaving of a block's agents and its copy engine, and of the order of blocks.
  /// With 0 each agent runs as far as it can, and blocks run in order. Other values give random
  /// orders. The result of a correct program does not depend on it.
  uint64_t interleaving = 0;
  /// Shared memory per block; by default that of sm_90a.
  int64_t sharedBytes = 227 * 1024;
  /// If not null, receives the counts.
  DeviceCounts *counts = nullptr;
  /// If not null, receives the arrays of the workspace that it names, after the kernels have run.
  /// They stay unset if the program writes no output.
  std::map<std::string, Array> *workspace = nullptr;
};

/// Returns all outputs of a program in order, floats rounded to their element types. Errors carry
/// the op's location and values:
/// - arguments that do not fit;
/// - a wait that never ends, or that a later phase overtakes;
/// - more arrivals than declared, or too few at the end;
/// - a stage read or written without a barrier that orders the access after conflicting copies,
///   writes and contractions;
/// - a stage read before it is written;
/// - registers of a contraction used or changed before it is awaited;
/// - a bulk store that another warp's write, or the end of its block, may overtake;
/// - a copied element that threads of the same launch write;
/// - threads of a warpgroup that diverge where they must not;
/// - an address outside its array;
/// - an output element written twice or never;
/// - a private element read before it is written;
/// - more shared memory than available.
llvm::Expected<std::vector<Array>> runDevice(mlir::Operation *program, const KernelInputs &inputs,
                                             const DeviceOptions &options = {});

} // namespace moa

#endif // MOA_INTERPRETER_DEVICEINTERPRETER_H
