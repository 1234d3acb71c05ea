//===- Tolerances.cpp - the errors that results may have ------------------===//
#include "lib/Pipelines/Tolerances.h"
#include "dialects/DNF/IR/DNF.h"
#include "dialects/MoA/IR/MoA.h"
#include "dialects/ONF/IR/ONF.h"
#include "lib/Support/ToleranceLimit.h"
#include "llvm/ADT/StringExtras.h"
#include <set>

using namespace mlir;

namespace moa {

using Tolerances = std::map<std::string, Tolerance>;

llvm::Expected<Tolerances> readTolerances(llvm::ArrayRef<std::string> words) {
  Tolerances result;
  for (const std::string &word : words) {
    auto [name, text] = StringRef(word).split('=');
    if (name.trim().empty() || text.trim().empty())
      return llvm::createStringError("expects a tolerance RESULT=NUMBER, optionally followed by "
                                     "',relative' and ',sampled', but got '" +
                                     word + "'");
    std::string why;
    std::optional<Tolerance> tolerance = parseTolerance(text, why);
    if (!tolerance)
      return llvm::createStringError("the tolerance of '" + name.trim() + "' " + why);
    if (!result.emplace(name.trim().str(), *tolerance).second)
      return llvm::createStringError("'" + name.trim() + "' is given two tolerances");
  }
  return result;
}

/// Sets the tolerances of one kernel that are given by name. Adds its results to `known`.
static llvm::Error setTolerances(Operation *kernel, const Tolerances &tolerances, std::set<std::string> &known) {
  auto names = kernel->getAttrOfType<ArrayAttr>("result_names");
  auto types = kernel->getAttrOfType<ArrayAttr>("result_types");
  SmallVector<Attribute> entries;
  bool isNew = false;
  for (auto [k, name] : llvm::enumerate(names.getAsValueRange<StringAttr>())) {
    known.insert(name.str());
    WithinAttr old = getWithin(kernel, k);
    entries.push_back(old ? Attribute(old) : UnitAttr::get(kernel->getContext()));
    auto given = tolerances.find(name.str());
    if (given == tolerances.end())
      continue;
    auto type = cast<ArrayType>(cast<TypeAttr>(types[k]).getValue());
    if (!isa<FloatType>(type.getElementType()))
      return llvm::createStringError("a tolerance bounds the error of floats, but the result '" + name + "' of '" +
                                     SymbolTable::getSymbolName(kernel).str() + "' is exact");
    std::string element;
    llvm::raw_string_ostream(element) << type.getElementType();
    if (auto why = whyNotKept(given->second, cast<FloatType>(type.getElementType()).getFPMantissaWidth(), element))
      return llvm::createStringError("the tolerance of '" + name + "': " + *why);
    entries.back() = WithinAttr::get(kernel->getContext(), given->second);
    isNew = true;
  }
  if (isNew)
    kernel->setAttr("within", ArrayAttr::get(kernel->getContext(), entries));
  return llvm::Error::success();
}

llvm::Error setTolerances(ModuleOp module, const Tolerances &tolerances) {
  std::set<std::string> known;
  for (Operation &op : *module.getBody())
    if (isa<KernelOp, dnf::KernelOp, onf::KernelOp>(op))
      if (llvm::Error error = setTolerances(&op, tolerances, known))
        return error;
  for (const auto &[name, tolerance] : tolerances)
    if (!known.count(name))
      return llvm::createStringError(
          known.empty() ? "tolerances apply to kernels of the levels moa, dnf and onf, and this "
                          "module has none"
                        : "no kernel has a result '" + name + "'; there are " + llvm::join(known, ", "));
  return llvm::Error::success();
}

} // namespace moa
