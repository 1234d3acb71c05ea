//===- Schedules.cpp - from onf to the lifted level -----------------------===//

#include "dialects/ONF/Transforms/Passes.h"
#include "lib/Analysis/Passes.h"
#include "lib/Compiler/CompilationImpl.h"
#include "lib/Conversion/ONFToDevice/Forms.h"
#include "lib/Conversion/ONFToDevice/ONFToDevice.h"
#include "lib/Schedule/GpuMachine.h"
#include "lib/Schedule/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/Support/JSON.h"

using namespace mlir;

namespace moa {

/// Adds an error about the user's schedule, which may come from a file.
void Compilation::Impl::addScheduleError(const llvm::Twine &message) {
  log.addError((options.scheduleFile.empty() ? "" : options.scheduleFile + ": ") + message);
}

/// Reads the user's schedules by kernel: one JSON object, or a list of them.
bool Compilation::Impl::readSchedules(std::map<std::string, Schedule> &given) {
  if (options.schedule.empty())
    return true;
  auto value = llvm::json::parse(options.schedule);
  if (!value) {
    addScheduleError("schedule: " + llvm::toString(value.takeError()) + "; --schedule=print writes one to begin with");
    return false;
  }
  std::vector<std::string> texts = {options.schedule};
  if (llvm::json::Array *list = value->getAsArray()) {
    texts.clear();
    for (const llvm::json::Value &item : *list)
      texts.push_back(llvm::formatv("{0}", item).str());
  }
  for (const std::string &text : texts) {
    auto schedule = parseSchedule(text);
    if (!schedule) {
      addScheduleError(llvm::toString(schedule.takeError()));
      return false;
    }
    std::string name = schedule->kernel;
    std::vector<std::string> names;
    for (const KernelInfo &info : infos)
      names.push_back(info.name);
    if (!llvm::is_contained(names, name)) {
      addScheduleError("schedule: no kernel is called '" + name + "'; there are " + llvm::join(names, ", "));
      return false;
    }
    given[name] = std::move(*schedule);
  }
  return true;
}

/// Returns the description of the target processor: the one that names it, else the first one whose
/// features the processor has.
std::optional<Machine> Compilation::Impl::getScheduleMachine() {
  if (options.processor.empty() || options.processor == "native")
    return hostMachine();
  for (Machine &known : knownMachines())
    if (llvm::is_contained(known.cpus, options.processor))
      return known;
  llvm::TargetMachine *target = getTargetMachine(/*host=*/false);
  if (!target)
    return std::nullopt;
  const llvm::MCSubtargetInfo *subtarget = target->getMCSubtargetInfo();
  for (Machine &known : knownMachines())
    if (llvm::all_of(known.features,
                     [&](const std::string &feature) { return subtarget->checkFeatures("+" + feature); }))
      return known;
  log.addError("no machine description fits the processor '" + options.processor + "'");
  return std::nullopt;
}

bool Compilation::Impl::schedule(onf::KernelOp kernel, const Machine &target,
                                 const std::map<std::string, Schedule> &given) {
  auto found = given.find(kernel.getSymName().str());
  Schedule schedule = found != given.end() ? found->second : chooseSchedule(kernel, target);
  if (found != given.end()) {
    if (schedule.machine != target.name) {
      addScheduleError("schedule: it is for the machine '" + schedule.machine + "', but this is '" + target.name +
                       "'; print one for this machine, or change the name");
      return false;
    }
    if (llvm::Error error = checkSchedule(kernel, schedule, target)) {
      addScheduleError(llvm::toString(std::move(error)));
      return false;
    }
  }
  if (!getPipelineOptions().splitsFolds)
    joinRanges(schedule);
  if (failed(moa::lift(kernel, schedule)))
    return false;
  schedules.push_back(std::move(schedule));
  return true;
}

bool Compilation::Impl::applySchedules(ModuleOp module, llvm::function_ref<bool()> apply) {
  if (getPipelineOptions().derivesIntervals &&
      !runPasses(module, "lifted", [](OpPassManager &pm) { pm.addPass(createDeriveIntervalsPass()); }))
    return false;
  return timed("lifted", apply) && runPasses(module, "lifted", [](OpPassManager &pm) {
           pm.addPass(createVerifyLiftingPass());
           pm.addPass(onf::createONFVerify());
         });
}

bool Compilation::Impl::liftForGpu(ModuleOp module, std::vector<Schedule> &used) {
  std::map<std::string, Schedule> given;
  auto gpu = take(loadGpuMachine(options.architecture.empty() ? "sm_90a" : options.architecture));
  if (!gpu || !readSchedules(given))
    return false;
  return applySchedules(module, [&] {
    used.clear();
    for (onf::KernelOp kernel : module.getOps<onf::KernelOp>()) {
      auto found = given.find(kernel.getSymName().str());
      setForms(kernel);
      auto schedule = liftToGpu(kernel, *gpu, found != given.end() ? &found->second : nullptr);
      if (!schedule) {
        addScheduleError(llvm::toString(schedule.takeError()));
        return false;
      }
      used.push_back(std::move(*schedule));
    }
    return true;
  });
}

bool Compilation::Impl::lift(ModuleOp module) {
  if (!options.architecture.empty())
    return liftForGpu(module, schedules);
  std::map<std::string, Schedule> given;
  std::optional<Machine> target = getScheduleMachine();
  if (!target || !readSchedules(given))
    return false;
  return applySchedules(module, [&] {
    schedules.clear();
    for (onf::KernelOp kernel : module.getOps<onf::KernelOp>())
      if (!schedule(kernel, *target, given))
        return false;
    return true;
  });
}

const std::vector<Schedule> *Compilation::Impl::getSchedules() {
  if (!getModule(Level::Lifted))
    return nullptr;
  if (schedules.empty()) {
    log.addQueryError("the input is lifted already; there is no schedule to print");
    return nullptr;
  }
  return &schedules;
}

std::optional<std::string> Compilation::schedule() {
  const std::vector<Schedule> *schedules = impl->isOpen() ? impl->getSchedules() : nullptr;
  if (!schedules)
    return std::nullopt;
  if (schedules->size() == 1)
    return printSchedule(schedules->front());
  std::string text;
  for (const Schedule &schedule : *schedules)
    text += (text.empty() ? "[\n" : ",\n") + printSchedule(schedule);
  return text + "]\n";
}

} // namespace moa
