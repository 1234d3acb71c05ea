//===- Manifest.cpp - JSON description of all launches --------------------===//
#include "lib/Target/Manifest.h"
#include "lib/Target/PTX/PTX.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace llvm;

namespace moa::ptx {
namespace {

/// Describes a call of cuTensorMapEncodeTiled; axes are listed innermost first.
json::Object printMap(const gpu::TensorMap &map, const gpu::HostTable &table) {
  const gpu::WorkspaceArray *temporary = table.findTemporary(map.array);
  const Parameter &array = table.getArray(map.array);
  json::Array box;
  for (unsigned k = 0; k != array.getRank(); ++k) {
    unsigned axis = array.getRank() - 1 - k;
    box.push_back(k == 0 ? int64_t(1024 / getBits(array.type)) : axis == map.rowAxis ? map.rows : int64_t(1));
  }
  json::Object object{{"kind", "tensor_map"},
                      {"name", map.name},
                      {temporary ? "workspace" : "array", array.name},
                      {"type", getName(array.type)},
                      {"row_axis", int64_t(map.rowAxis)},
                      {"box", std::move(box)},
                      {"interleave", "none"},
                      {"swizzle", "128B"},
                      {"l2_promotion", "256B"},
                      {"out_of_bounds", "zeros"}};
  if (map.hasSteps())
    object["row_step"] = getReadable(map.step.str());
  if (!temporary)
    return object;
  object["shape"] = describeShape(temporary->extents);
  object["offset"] = getReadable(temporary->offset.str());
  return object;
}

json::Object printLaunch(const gpu::HostLaunch &launch, const gpu::HostTable &table) {
  json::Array parameters;
  for (unsigned number : launch.parameters.arrays) {
    if (const gpu::WorkspaceArray *array = table.findTemporary(number))
      parameters.push_back(
          json::Object{{"kind", "workspace"}, {"name", array->name}, {"offset", getReadable(array->offset.str())}});
    else
      parameters.push_back(json::Object{{"kind", "pointer"}, {"array", table.signature.parameters[number].name}});
  }
  for (const gpu::TensorMap &map : launch.parameters.maps)
    parameters.push_back(printMap(map, table));
  for (unsigned number : launch.parameters.scalars)
    parameters.push_back(json::Object{
        {"kind", "scalar"}, {"name", table.getArray(number).name}, {"type", getName(table.getArray(number).type)}});
  for (const std::string &symbol : launch.parameters.symbols)
    parameters.push_back(json::Object{{"kind", "symbol"}, {"name", symbol}, {"type", "i64"}});
  std::string grid = getReadable(launch.blocks.str());
  if (launch.mostBlocks)
    grid = "min(" + grid + ", " + std::to_string(*launch.mostBlocks) + ")";
  json::Object object{{"kernel", launch.name},
                      {"grid", grid},
                      {"block", launch.threads},
                      {"shared_bytes", launch.sharedBytes},
                      {"parameters", std::move(parameters)}};
  if (launch.overlapsPrevious)
    object["beside"] = true;
  if (launch.isReportOnly)
    object["for_shown"] = true;
  if (launch.idle)
    object["overlaps_behind"] = launch.idleAfter;
  if (launch.isReliedOn)
    object["relied_on"] = true;
  // The launch is not needed if a condition does not hold.
  json::Array conditions;
  for (const auto &[x, y] : launch.condition)
    conditions.push_back(getReadable(x.str()) + " > " + getReadable(y.str()));
  if (!conditions.empty())
    object["needed_where"] = std::move(conditions);
  return object;
}

json::Array printWorkspace(ArrayRef<gpu::WorkspaceArray> workspace) {
  json::Array list;
  for (const gpu::WorkspaceArray &array : workspace) {
    list.push_back(json::Object{{"name", array.name},
                                {"type", getName(array.type)},
                                {"shape", describeShape(array.extents)},
                                {"bytes", getReadable(array.bytes.str())},
                                {"offset", getReadable(array.offset.str())},
                                {"unit", array.unit},
                                {"slack", array.slack}});
  }
  return list;
}

json::Object printProgram(const gpu::HostTable &table) {
  const KernelSignature &signature = table.signature;
  json::Array launches;
  for (const gpu::HostLaunch &launch : table.launches)
    launches.push_back(printLaunch(launch, table));
  json::Object object = describeSignature(signature);
  // A number, or an expression over the symbols.
  std::optional<int64_t> bytes = table.workspaceBytes.getConstant();
  object["workspace_bytes"] = bytes ? json::Value(*bytes) : json::Value(getReadable(table.workspaceBytes.str()));
  object["workspace"] = printWorkspace(table.workspace);
  object["launches"] = std::move(launches);
  json::Array shown;
  for (const ShownLater &entry : signature.shownLater) {
    json::Object told{{"result", signature.parameters[entry.parameter].name},
                      {"within", entry.within.epsilon},
                      {"tolerance", entry.within.str()}};
    if (entry.bounds.empty()) {
      told["never"] = entry.why;
      shown.push_back(std::move(told));
      continue;
    }
    const gpu::WorkspaceArray &bounds = gpu::getArray(table.workspace, entry.bounds);
    told["workspace"] = bounds.name;
    told["offset"] = getReadable(bounds.offset.str());
    told["shape"] = describeShape(bounds.extents);
    shown.push_back(std::move(told));
  }
  if (!shown.empty())
    object["shown"] = std::move(shown);
  return object;
}

} // namespace

std::string printManifest(ArrayRef<gpu::HostTable> programs) {
  json::Array list;
  for (const gpu::HostTable &program : programs)
    list.push_back(printProgram(program));
  json::Value manifest(json::Object{{"version", kManifestVersion},
                                    {"target", "sm_90a"},
                                    {"ptx_version", "8.6"},
                                    {"driver", "12.7"},
                                    {"programs", std::move(list)}});
  return formatv("{0:2}\n", manifest).str();
}

} // namespace moa::ptx
