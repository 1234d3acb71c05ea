//===- DeviceInterpreter.h - the meaning of device programs -----*- C++ -*-===//
//
// Runs a device.program on the CPU: every thread of every block, warpgroups and
// producers as agents of their own, fragments in the registers their layouts name,
// tiles as the bits of rings. It uses the dialects and no code of the lowering to
// this level or of the printer behind it.
//
// Floats are computed in their own types. What a machine is free to do is fixed
// here: a contraction adds its products, which are exact, in float64 in order of k
// and rounds the sum to f32 once; device.exp2 and the functions of math give the
// nearest float up to the last place.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_INTERPRETER_DEVICEINTERPRETER_H
#define MOA_INTERPRETER_DEVICEINTERPRETER_H

#include "lib/Interpreter/Interpreter.h"

namespace moa {

/// What the blocks of a program have done with tiles, all together.
struct DeviceCounts {
  std::map<std::string, int64_t> copied; // tiles by the name of their array
  int64_t masked = 0;                    // stages whose unseen rows were cleared
};

struct DeviceOptions {
  /// The order in which the agents of a block and the copy engine take turns, and that of the
  /// blocks: 0 each as far as it gets and by their numbers, another number random orders of its
  /// own. The result of a correct program does not depend on it.
  uint64_t interleaving = 0;
  /// Shared memory of a block; by default that of sm_90a.
  int64_t sharedBytes = 227 * 1024;
  /// Where tiles are counted, if not null.
  DeviceCounts *counts = nullptr;
  /// Arrays of the workspace by name, filled behind the kernels, if not null; none where the
  /// program has nothing to write.
  std::map<std::string, Array> *workspace = nullptr;
};

/// All outputs of a program in order, floats rounded to their element types. Errors,
/// with the op's location and values: arguments that do not fit; a wait that never
/// ends or that is overtaken by a later phase; arrivals beyond those declared, or
/// short of them at the end; a stage that is read, or written, without a barrier that
/// orders this behind the copies, writes and contractions that use it; a stage read
/// before anything wrote it; registers of a contraction used or changed before it is
/// awaited; a bulk store that another warp's write, or the end of its block, may overtake;
/// an element copied that threads of the same launch write; threads of a warpgroup that disagree
/// where they must not; an address outside its array; an output element written twice or never; a
/// private element read before it is written; more shared memory than there is.
llvm::Expected<std::vector<Array>> runDevice(mlir::Operation *program, const KernelInputs &inputs,
                                             const DeviceOptions &options = {});

} // namespace moa

#endif // MOA_INTERPRETER_DEVICEINTERPRETER_H
