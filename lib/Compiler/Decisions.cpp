//===- Decisions.cpp - plans and decisions of mixed precision -------------===//

#include "dialects/ONF/IR/ONF.h"
#include "lib/Accuracy/Passes.h"
#include "lib/Compiler/CompilationImpl.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

using namespace mlir;

namespace moa {

/// Returns the text of an error about the given plans, which may come from a file.
static std::string aboutPlans(const AccuracyOptions &options, const llvm::Twine &message) {
  return ((options.plansFile.empty() ? "" : options.plansFile + ": ") + "plans: " + message).str();
}

/// Reads the plans, such as {"plans": {"f.O": [1, 0]}}, into the syntax of the pass option. The
/// optional {"meaning": {"f.O": ["plan 1: …"]}} describes each plan.
bool Compilation::Impl::readPlans() {
  if (accuracy.plans.empty())
    return true;
  auto refuse = [&](const llvm::Twine &message) {
    log.addError(aboutPlans(accuracy, message));
    return false;
  };
  auto value = llvm::json::parse(accuracy.plans);
  if (!value)
    return refuse(llvm::toString(value.takeError()));
  const llvm::json::Object *whole = value->getAsObject();
  const llvm::json::Object *lists = whole ? whole->getObject("plans") : nullptr;
  if (!lists)
    return refuse("expects an object with \"plans\", as moa-run --calibrate writes it");
  for (const auto &[key, member] : *whole)
    if (llvm::StringRef(key) != "plans" && llvm::StringRef(key) != "meaning")
      return refuse("there is no member '" + llvm::StringRef(key) + "'; there are \"plans\" and \"meaning\"");
  for (const auto &[key, list] : *lists) {
    const llvm::json::Array *entries = list.getAsArray();
    SmallVector<std::string> numbers;
    for (const llvm::json::Value &plan : entries ? *entries : llvm::json::Array())
      if (auto number = plan.getAsInteger(); number && *number >= 0)
        numbers.push_back(std::to_string(*number));
    if (!entries || numbers.size() != entries->size())
      return refuse("'" + llvm::StringRef(key) + "' expects a list of plans, integers from 0 on");
    int64_t largest = 0;
    for (const llvm::json::Value &plan : *entries)
      largest = std::max(largest, *plan.getAsInteger());
    largestPlans[llvm::StringRef(key).str()] = largest;
    planTable += (planTable.empty() ? "" : ";") + llvm::StringRef(key).str() + "=" + llvm::join(numbers, ",");
  }
  const llvm::json::Object *meaning = whole->getObject("meaning");
  bool areTexts = meaning || !whole->get("meaning");
  for (const auto &[key, list] : meaning ? *meaning : llvm::json::Object()) {
    const llvm::json::Array *texts = list.getAsArray();
    areTexts &= texts != nullptr;
    std::vector<std::string> &plans = planTexts[llvm::StringRef(key).str()];
    for (const llvm::json::Value &text : texts ? *texts : llvm::json::Array()) {
      areTexts &= text.getAsString().has_value();
      plans.push_back(text.getAsString().value_or("").str());
    }
  }
  if (!areTexts)
    return refuse("\"meaning\" expects a list of texts for each result, as moa-run --calibrate writes it");
  return true;
}

bool Compilation::Impl::checkPlanNames() {
  if (accuracy.plans.empty())
    return true;
  if (entry > Level::ONF) {
    log.addError(aboutPlans(accuracy, fileName + " is at the level " + getLevelName(entry) +
                                          ", before which plans are taken; compile the specification with them"));
    return false;
  }
  std::vector<std::string> known;
  for (const KernelInfo &info : infos)
    for (const ParameterInfo &parameter : info.parameters)
      if (parameter.isOutput && parameter.decisionOf.empty())
        known.push_back(info.name + "." + parameter.name);
  for (const auto &[name, largest] : largestPlans)
    if (!llvm::is_contained(known, name)) {
      log.addError(
          aboutPlans(accuracy, "there is no result '" + name + "' of a kernel; there are " + llvm::join(known, ", ")));
      return false;
    }
  if (!largestPlans.empty())
    return true;
  log.addError(
      aboutPlans(accuracy, "there is no list of plans; leave --plans out, and they are decided when the kernel runs"));
  return false;
}

/// Returns the texts of the plans of a result; empty if there are none.
static std::vector<std::string> getSpentOf(Operation *kernel, unsigned result) {
  auto lists = kernel->getAttrOfType<ArrayAttr>(kSpentAttr);
  std::vector<std::string> texts;
  if (lists && result < lists.size())
    for (StringRef text : cast<ArrayAttr>(lists[result]).getAsValueRange<StringAttr>())
      texts.push_back(text.str());
  return texts;
}

bool Compilation::Impl::checkPlansTaken(ModuleOp module) {
  if (plansFit)
    return *plansFit;
  plansFit = true;
  auto refuse = [&](const llvm::Twine &message) {
    log.addError(aboutPlans(accuracy, message));
    return *(plansFit = false);
  };
  for (unsigned k = 0; k < infos.size(); ++k) {
    unsigned number = 0;
    for (const ParameterInfo &parameter : infos[k].parameters) {
      if (!parameter.isOutput)
        continue;
      std::string name = infos[k].name + "." + parameter.name;
      auto texts = planTexts.find(name);
      auto largest = largestPlans.find(name);
      std::vector<std::string> here = getSpentOf(kernelAt(module, k), number++);
      if (texts != planTexts.end() && texts->second != here)
        return refuse("those of '" + name + "' were found for '" +
                      (texts->second.empty() ? "no plan" : llvm::join(texts->second, "; ")) + "', but here there is '" +
                      (here.empty() ? "no plan" : llvm::join(here, "; ")) +
                      "'; compile with the options they were found with, or calibrate again");
      if (largest != largestPlans.end() && largest->second > int64_t(here.size()))
        return refuse("there is no plan '" + llvm::Twine(largest->second) + "' for '" + name + "'; " +
                      accuracy::tellPlans(here.size()));
    }
  }
  return true;
}

/// Makes the arrays of decisions outputs of the kernels.
bool Compilation::Impl::addDecisions() {
  if (!accuracy.decisions || entry > Level::ONF)
    return true;
  ModuleOp module = getAdapted();
  if (!module)
    return false;
  auto kernels = module.getOps<onf::KernelOp>();
  if (llvm::none_of(kernels, [](onf::KernelOp kernel) { return kernel->hasAttr(kDecisionsAttr); })) {
    bool isAny = llvm::any_of(kernels, [](onf::KernelOp kernel) { return bool(kernel.getWithin()); });
    (*kernels.begin()).emitWarning("has no plans to decide between: ")
        << (isAny ? "no plan uses a result's tolerance; --remarks says why"
                  : "no result may have an error; say which with 'within'");
  }
  for (unsigned k = 0; k < infos.size(); ++k) {
    Operation *kernel = kernelAt(module, k);
    auto told = kernel->getAttrOfType<ArrayAttr>(kDecisionsAttr);
    if (!told)
      continue;
    auto signature = take(getSignature(kernel));
    if (!signature)
      return false;
    std::vector<ParameterInfo> &parameters = infos[k].parameters;
    size_t first = signature->parameters.size() - told.size();
    for (auto [of, parameter] :
         llvm::zip_equal(told.getAsValueRange<StringAttr>(), llvm::ArrayRef(signature->parameters).drop_front(first))) {
      ParameterInfo info = makeParameterInfo(parameter);
      info.decisionOf = of.str();
      parameters.push_back(std::move(info));
    }
    infos[k].text = signature->getText();
    signatures[k] = std::move(*signature);
  }
  return true;
}

std::vector<std::string> Compilation::Impl::describePlans(unsigned kernel, unsigned result) {
  ModuleOp module = entry <= Level::ONF ? getAdapted() : ModuleOp();
  return module ? getSpentOf(kernelAt(module, kernel), result) : std::vector<std::string>();
}

std::vector<std::string> Compilation::Impl::describePlanLaws(unsigned kernel) {
  ModuleOp module = entry <= Level::ONF ? getAdapted() : ModuleOp();
  auto laws = module ? kernelAt(module, kernel)->getAttrOfType<ArrayAttr>(kLawsAttr) : ArrayAttr();
  std::vector<std::string> lines;
  if (laws)
    for (StringRef line : laws.getAsValueRange<StringAttr>())
      lines.push_back(line.str());
  return lines;
}

std::vector<std::string> Compilation::spent(const std::string &kernel, const std::string &result) {
  std::optional<unsigned> index = impl->isOpen() ? impl->findKernel(kernel) : std::nullopt;
  unsigned number = 0;
  if (index)
    for (const ParameterInfo &parameter : impl->infos[*index].parameters) {
      if (parameter.isOutput && parameter.name == result)
        return impl->describePlans(*index, number);
      number += parameter.isOutput;
    }
  return {};
}

} // namespace moa
