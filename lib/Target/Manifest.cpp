//===- Manifest.cpp - JSON description of entry points --------------------===//
#include "lib/Target/Manifest.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace moa {

json::Array describeShape(ArrayRef<SymExpr> extents) {
  json::Array shape;
  for (const SymExpr &extent : extents)
    shape.push_back(getReadable(extent.str()));
  return shape;
}

static json::Object describeArgument(const Parameter &parameter) {
  return json::Object{{"name", parameter.name},
                      {"type", getName(parameter.type)},
                      {"role", parameter.isOutput     ? "output"
                               : parameter.isScalar() ? "scalar"
                                                      : "input"},
                      {"shape", describeShape(parameter.extents)}};
}

json::Object describeSignature(const KernelSignature &signature) {
  json::Array arguments, constraints, bindings;
  for (const Parameter &parameter : signature.parameters)
    arguments.push_back(describeArgument(parameter));
  for (const Constraint &constraint : signature.constraints)
    constraints.push_back(json::Object{{"text", constraint.text},
                                       {"left", getReadable(constraint.lhs.str())},
                                       {"relation", constraint.getRelation()},
                                       {"right", getReadable(constraint.rhs.str())}});
  for (const SymbolBinding &binding : signature.bindings)
    bindings.push_back(json::Object{{"symbol", binding.name}, {"value", getReadable(binding.value.str())}});
  return json::Object{{"name", signature.name},
                      {"symbols", json::Array(signature.symbols)},
                      {"bindings", std::move(bindings)},
                      {"constraints", std::move(constraints)},
                      {"arguments", std::move(arguments)}};
}

std::string printManifest(ArrayRef<KernelSignature> kernels) {
  json::Array list;
  for (const KernelSignature &kernel : kernels)
    list.push_back(describeSignature(kernel));
  json::Value manifest(json::Object{{"version", kManifestVersion}, {"target", "cpu"}, {"programs", std::move(list)}});
  return formatv("{0:2}\n", manifest).str();
}

} // namespace moa
