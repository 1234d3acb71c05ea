//===- HostTable.h - the host's part of a device program --------*- C++ -*-===//
//
// Plain data that all host code prints: CUDA C++, the launcher of PTX, and the manifest, which the
// run-time library executes. A call checks in this order: the arrays of the signature, the bindings of
// its symbols, extents, constraints, memory, tiles, grids, the workspace. Then it launches.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_TARGET_HOST_HOSTTABLE_H
#define MOA_TARGET_HOST_HOSTTABLE_H

#include "lib/Target/GPU/Launch.h"

namespace moa::gpu {

struct HostTable {
  HostTable(KernelSignature signature, std::vector<WorkspaceArray> workspace, std::vector<HostLaunch> launches);

  /// Returns an array of the workspace by its number among the program's arguments, or null.
  const WorkspaceArray *findTemporary(unsigned number) const;
  /// Returns an array of the caller or of the workspace.
  const Parameter &getArray(unsigned number) const;

  KernelSignature signature;
  std::vector<WorkspaceArray> workspace;
  SymExpr workspaceBytes;
  /// Some array starts at an offset known only at run time. Launchers then compute all offsets once,
  /// because the expressions of late arrays are long.
  bool hasRuntimeOffsets = false;
  std::vector<HostLaunch> launches;
  std::vector<LaunchCondition> conditions; ///< of the launches, each once
  std::vector<unsigned> tiled;             ///< numbers of the caller's arrays that are copied by tiles, each once
  unsigned numMaps = 0;                    ///< of all launches
};

} // namespace moa::gpu

#endif // MOA_TARGET_HOST_HOSTTABLE_H
