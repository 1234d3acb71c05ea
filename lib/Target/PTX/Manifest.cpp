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
json::Object printMap(const gpu::TensorMap &map, const Program &program) {
  const gpu::WorkspaceArray *temporary = gpu::findArray(program.workspace, map.array);
  const Parameter *array = temporary ? nullptr : &program.signature.parameters[map.array];
  unsigned rank = temporary ? temporary->extents.size() : array->getRank();
  unsigned bits = temporary ? temporary->element.getIntOrFloatBitWidth() : getBits(array->type);
  std::string type;
  llvm::raw_string_ostream os(type);
  temporary ? os << temporary->element : os << getName(array->type);
  json::Array box;
  for (unsigned k = 0; k != rank; ++k) {
    unsigned axis = rank - 1 - k;
    box.push_back(k == 0 ? int64_t(1024 / bits) : axis == map.rowAxis ? map.rows : int64_t(1));
  }
  json::Object object{{"kind", "tensor_map"},
                      {"name", map.name},
                      {temporary ? "workspace" : "array", temporary ? temporary->name : array->name},
                      {"type", type},
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

json::Object printLaunch(const gpu::Launch &launch, const Program &program) {
  const KernelSignature &signature = program.signature;
  json::Array parameters;
  for (unsigned number : launch.parameters.arrays) {
    if (const gpu::WorkspaceArray *array = gpu::findArray(program.workspace, number))
      parameters.push_back(
          json::Object{{"kind", "workspace"}, {"name", array->name}, {"offset", getReadable(array->offset.str())}});
    else
      parameters.push_back(json::Object{{"kind", "pointer"}, {"array", signature.parameters[number].name}});
  }
  for (const gpu::TensorMap &map : launch.parameters.maps)
    parameters.push_back(printMap(map, program));
  for (unsigned number : launch.parameters.scalars)
    parameters.push_back(json::Object{{"kind", "scalar"},
                                      {"name", signature.parameters[number].name},
                                      {"type", getName(signature.parameters[number].type)}});
  for (const std::string &symbol : launch.parameters.symbols)
    parameters.push_back(json::Object{{"kind", "symbol"}, {"name", symbol}, {"type", "i64"}});
  std::string grid = getReadable(launch.blocks.str());
  if (std::optional<int64_t> most = launch.getMostBlocks())
    grid = "min(" + grid + ", " + std::to_string(*most) + ")";
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

/// Returns a number or an expression over the symbols.
json::Value printBytes(ArrayRef<gpu::WorkspaceArray> workspace) {
  SymExpr bytes = gpu::getWorkspaceBytes(workspace);
  if (auto constant = bytes.getConstant())
    return *constant;
  return getReadable(bytes.str());
}

json::Array printWorkspace(ArrayRef<gpu::WorkspaceArray> workspace) {
  json::Array list;
  for (const gpu::WorkspaceArray &array : workspace) {
    std::string type;
    llvm::raw_string_ostream(type) << array.element;
    list.push_back(json::Object{{"name", array.name},
                                {"type", type},
                                {"shape", describeShape(array.extents)},
                                {"bytes", getReadable(array.bytes.str())},
                                {"offset", getReadable(array.offset.str())},
                                {"unit", array.unit},
                                {"slack", array.slack}});
  }
  return list;
}

json::Object printProgram(const Program &program) {
  const KernelSignature &signature = program.signature;
  json::Array launches;
  for (const gpu::Launch &launch : program.launches)
    launches.push_back(printLaunch(launch, program));
  json::Object object = describeSignature(signature);
  object["workspace_bytes"] = printBytes(program.workspace);
  object["workspace"] = printWorkspace(program.workspace);
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
    const gpu::WorkspaceArray &bounds = gpu::getArray(program.workspace, entry.bounds);
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

std::string printManifest(ArrayRef<Program> programs) {
  json::Array list;
  for (const Program &program : programs)
    list.push_back(printProgram(program));
  json::Value manifest(json::Object{{"version", kManifestVersion},
                                    {"target", "sm_90a"},
                                    {"ptx_version", "8.6"},
                                    {"driver", "12.7"},
                                    {"programs", std::move(list)}});
  return formatv("{0:2}\n", manifest).str();
}

} // namespace moa::ptx
