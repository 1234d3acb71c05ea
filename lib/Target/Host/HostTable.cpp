//===- HostTable.cpp - the host's part of a device program ----------------===//
#include "lib/Target/Host/HostTable.h"

namespace moa::gpu {

HostTable::HostTable(KernelSignature given, std::vector<WorkspaceArray> arrays, std::vector<HostLaunch> list)
    : signature(std::move(given)), workspace(std::move(arrays)), workspaceBytes(getWorkspaceBytes(workspace)),
      launches(std::move(list)) {
  hasRuntimeOffsets = llvm::any_of(workspace, [](const WorkspaceArray &array) { return !array.offset.getConstant(); });
  for (HostLaunch &launch : launches) {
    if (!launch.condition.empty()) {
      launch.conditionNumber = llvm::find(conditions, launch.condition) - conditions.begin();
      if (*launch.conditionNumber == conditions.size())
        conditions.push_back(launch.condition);
    }
    launch.firstMap = numMaps;
    numMaps += launch.parameters.maps.size();
    for (const TensorMap &map : launch.parameters.maps)
      if (!findTemporary(map.array) && !llvm::is_contained(tiled, map.array))
        tiled.push_back(map.array);
  }
}

const WorkspaceArray *HostTable::findTemporary(unsigned number) const {
  auto found = llvm::find_if(workspace, [&](const WorkspaceArray &array) { return array.number == number; });
  return found == workspace.end() ? nullptr : &*found;
}

const Parameter &HostTable::getArray(unsigned number) const {
  const WorkspaceArray *temporary = findTemporary(number);
  return temporary ? *temporary : signature.parameters[number];
}

} // namespace moa::gpu
