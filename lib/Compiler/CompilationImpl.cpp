//===- CompilationImpl.cpp - the stages of one compilation ----------------===//

#include "lib/Compiler/CompilationImpl.h"
#include "dialects/DNF/IR/DNF.h"
#include "dialects/DNF/Transforms/Passes.h"
#include "dialects/Device/IR/Device.h"
#include "dialects/Device/Transforms/Passes.h"
#include "dialects/MoA/IR/MoA.h"
#include "dialects/ONF/IR/Hints.h"
#include "dialects/ONF/IR/ONF.h"
#include "dialects/ONF/Transforms/Passes.h"
#include "lib/Accuracy/Bounds/Bounds.h"
#include "lib/Accuracy/Bounds/RoundingError.h"
#include "lib/Accuracy/Passes.h"
#include "lib/Analysis/Passes.h"
#include "lib/Conversion/MoAToDNF/MoAToDNF.h"
#include "lib/Conversion/ONFToDevice/ONFToDevice.h"
#include "lib/Frontend/Frontend.h"
#include "lib/Interpreter/MonoidClaims.h"
#include "lib/Pipelines/Registration.h"
#include "lib/Pipelines/Tolerances.h"
#include "lib/Schedule/Passes.h"
#include "lib/Support/ToleranceLimit.h"
#include "lib/Target/CPU/Codegen.h"
#include "lib/Target/CPU/Features.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include <chrono>
#include <utility>

using namespace mlir;

namespace moa {

static DialectRegistry makeRegistry() {
  DialectRegistry registry;
  registerDialects(registry);
  return registry;
}

Compilation::Impl::Impl(CompilerOptions options)
    : options(std::move(options)), context(makeRegistry(), MLIRContext::Threading::DISABLED) {
  context.loadAllAvailableDialects();
  // Messages are for users, who do not know the ops.
  context.printOpOnDiagnostic(false);
  context.getDiagEngine().registerHandler([this](mlir::Diagnostic &diagnostic) {
    log.add(diagnostic);
    return success();
  });
}

bool Compilation::Impl::isOpen() {
  if (!log.hasErrors())
    return true;
  log.addQueryError("there is no answer: the compilation has failed");
  return false;
}

bool Compilation::Impl::timed(const char *stage, llvm::function_ref<bool()> work) {
  auto start = std::chrono::steady_clock::now();
  bool result = work();
  std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  for (StageTime &time : times)
    if (time.stage == stage) {
      time.seconds += spent.count();
      return result;
    }
  times.push_back({stage, spent.count()});
  return result;
}

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

static const char *const kFoldRules[] = {"R0", "R1", "R2", "R3", "R5", "R6", "R7"};
/// Splits the range of a reduction: that of a stored sum into parts, and that of a scheduled fold
/// over cores (split-K).
static const char *const kSplit = "R4";
/// The analysis that derives the intervals of keys that a tile of rows needs.
static const char *const kIntervals = "intervals";
/// The passes that trade accuracy for speed.
static const char *const kPrecision = "precision", *const kLowRank = "low-rank";

bool Compilation::Impl::checkOptions() {
  if (options.optimization > 3) {
    log.addError("expects an optimization level from 0 to 3, but got " + llvm::Twine(options.optimization));
    return false;
  }
  if (!parseBinding(options.binding)) {
    log.addError("there is no binding '" + options.binding + "'; there is tvm-ffi");
    return false;
  }
  if (!options.processor.empty() && !getTargetMachine(/*host=*/false))
    return false;
  std::vector<std::string> known = getPsiLawNames();
  known.insert(known.end(), std::begin(kFoldRules), std::end(kFoldRules));
  known.push_back(kSplit);
  known.push_back(kIntervals);
  known.push_back(kPrecision);
  known.push_back(kLowRank);
  known.insert(known.end(), std::begin(accuracy::kPrecisionLaws), std::end(accuracy::kPrecisionLaws));
  known.insert(known.end(), std::begin(accuracy::kLowRankLaws), std::end(accuracy::kLowRankLaws));
  for (const std::string &name : options.disabledRules)
    if (!llvm::is_contained(known, name)) {
      log.addError("no law or rule is called '" + name + "'; there are " + llvm::join(known, ", "));
      return false;
    }
  return true;
}

/// Returns true if the target CPU has dot products of four bytes.
bool Compilation::Impl::hasByteDots() {
  llvm::TargetMachine *target = getTargetMachine(/*host=*/false);
  return target && cpu::hasByteDots(*target);
}

/// Returns the target CPU's instructions for dot products of bf16.
Bf16Dots Compilation::Impl::getBf16Dots() {
  llvm::TargetMachine *target = getTargetMachine(/*host=*/false);
  return target ? cpu::getBf16Dots(*target) : Bf16Dots::none;
}

bool Compilation::Impl::checkRunsHere() {
  llvm::TargetMachine *target = getTargetMachine(/*host=*/false), *host = getTargetMachine(/*host=*/true);
  if (!target || !host)
    return false;
  bool hasAll =
      (!cpu::hasByteDots(*target) || cpu::hasByteDots(*host)) && cpu::getBf16Dots(*target) <= cpu::getBf16Dots(*host);
  if (!hasAll)
    log.addQueryError("kernels for the processor '" + options.processor + "' do not run on this one, '" +
                      host->getTargetCPU() +
                      "', which lacks products of bytes or of bf16 that they may use; "
                      "leave the option 'processor' empty to run kernels here");
  return hasAll;
}

PipelineOptions Compilation::Impl::getPipelineOptions() {
  PipelineOptions result;
  // The plans of a table are the same on all targets. If only speed is asked for on a CPU, scores
  // and sums are bf16 if the CPU has bf16 dot products. Otherwise only scores are narrowed, to 8
  // bits.
  bool isForGpu = accuracy.variantsOfGpu || !options.architecture.empty() || !accuracy.plans.empty();
  bool hasBf16 = !isForGpu && accuracy.mixedPrecision && getBf16Dots() != Bf16Dots::none;
  result.precision = {
      accuracy.decisions,    planTable, accuracy.checksPlans,        /*sums=*/isForGpu || !accuracy.mixedPrecision,
      /*halves=*/isForGpu,   hasBf16,   accuracy.mixedPrecisionFrom, accuracy.pilotFrom,
      accuracy.warnsIfUnused};
  result.lowRankFrom = accuracy.lowRankFrom;
  // Fewer bits are not faster on every CPU, as rounding and the sample take time. With low rank, a
  // table without other requests holds only classes of keys.
  bool isAsked = accuracy.decisions || !accuracy.plans.empty();
  bool pays = isForGpu || accuracy.mixedPrecisionFrom > 0 || hasBf16 || hasByteDots();
  result.spends = (accuracy.mixedPrecision && pays) || (isAsked && accuracy.lowRankFrom <= 0);
  if (options.explain) {
    result.psiObserver = &psiTrace;
    result.foldObserver = &foldTrace;
  }
  for (const std::string &name : options.disabledRules)
    if (name == kIntervals)
      result.derivesIntervals = false;
    else if (name == kPrecision)
      result.spends = false;
    else if (name == kLowRank)
      result.lowRankFrom = 0;
    else if (name == kSplit) {
      result.splitsFolds = false;
      result.disabledRules.push_back(name);
    } else if (llvm::is_contained(accuracy::kPrecisionLaws, name) || llvm::is_contained(accuracy::kLowRankLaws, name))
      result.precision.disabledLaws.push_back(name);
    else
      (llvm::is_contained(kFoldRules, name) ? result.disabledRules : result.disabledLaws).push_back(name);
  return result;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

void Compilation::Impl::read(const std::string &text, const std::string &name) {
  fileName = name;
  sourceText = text;
  log.addSource(name, text);
  if (!checkOptions() || !readPlans() || !timed("frontend", [&] { return parse(text, name); }) || !findEntryLevel() ||
      !readSignatures()) {
    modules.clear();
    if (!log.hasErrors())
      log.addError(name + ": the input could not be read");
    return;
  }
  if (!addDecisions() || !checkPlanNames()) {
    modules.clear();
    return;
  }
  kernelModules.resize(signatures.size());
  dumpModule(llvm::sys::path::stem(fileName), entry, *modules[entry]);
}

/// Reads settings such as "D=64". Each name may be set once.
bool Compilation::Impl::readSettings(std::map<std::string, std::string> &settings) {
  for (const std::string &setting : options.settings) {
    auto [name, value] = llvm::StringRef(setting).split('=');
    if (name.trim().empty() || value.trim().empty()) {
      log.addError("expects a setting NAME=VALUE, but got '" + setting + "'");
      return false;
    }
    if (!settings.emplace(name.trim().str(), value.trim().str()).second) {
      log.addError("'" + name.trim() + "' is set twice");
      return false;
    }
  }
  return true;
}

bool Compilation::Impl::parse(const std::string &text, const std::string &name) {
  OwningOpRef<ModuleOp> module;
  // For example "O=3e-2,relative".
  auto tolerances = take(readTolerances(accuracy.tolerances));
  if (!tolerances)
    return false;
  if (llvm::StringRef(name).ends_with(".mlir")) {
    if (!options.settings.empty()) {
      log.addError("settings apply to specifications only, not to " + name);
      return false;
    }
    module = parseSourceString<ModuleOp>(text, ParserConfig(&context), name);
  } else {
    FrontendOptions frontend;
    if (!readSettings(frontend.settings))
      return false;
    for (const auto &[result, tolerance] : *tolerances)
      frontend.replacedTolerances.insert(result);
    frontend.constants = &constants;
    log.addSource("prelude.moa", getPreludeText());
    module = parseMoA(text, name, frontend, &context);
  }
  if (!module || failed(checkMonoidClaims(*module)))
    return false;
  if (llvm::Error error = setTolerances(*module, *tolerances)) {
    log.addError(llvm::toString(std::move(error)));
    return false;
  }
  modules[Level::MoA] = std::move(module);
  return true;
}

/// Finds the level of the input from its kernels.
bool Compilation::Impl::findEntryLevel() {
  ModuleOp module = *modules[Level::MoA];
  std::set<Level> found;
  for (Operation &op : *module.getBody()) {
    if (isa<MonoidOp>(op))
      continue;
    if (isa<KernelOp>(op))
      found.insert(Level::MoA);
    else if (isa<dnf::KernelOp>(op))
      found.insert(Level::DNF);
    else if (auto kernel = dyn_cast<onf::KernelOp>(op))
      found.insert(
          llvm::any_of(kernel.getBody().getOps<onf::ForOp>(), [](onf::ForOp loop) { return bool(loop.getLift()); })
              ? Level::Lifted
              : Level::ONF);
    else if (isa<device::ProgramOp>(op))
      found.insert(Level::Device);
    else
      return emitError(op.getLoc()) << "expects kernels of moa, dnf or onf, or device programs, but got '"
                                    << op.getName() << "'",
             false;
  }
  if (found.size() != 1) {
    log.addError(fileName +
                 (found.empty() ? ": there is no kernel in this file" : ": the kernels are at different levels"));
    return false;
  }
  entry = *found.begin();
  if (entry == Level::Lifted && !options.schedule.empty()) {
    addScheduleError("schedule: " + llvm::Twine(fileName) +
                     " is lifted already; a schedule applies to the levels above");
    return false;
  }
  if (entry != Level::MoA) {
    modules[entry] = std::move(modules[Level::MoA]);
    modules.erase(Level::MoA);
  }
  // Check the contract of this level here, since no pass leads to it. That of moa is checked before
  // its first pass.
  if (entry == Level::MoA)
    return true;
  return runPasses(*modules[entry], getLevelName(entry), [&](OpPassManager &pm) {
    if (entry == Level::Device)
      return pm.addPass(device::createDeviceVerify());
    if (entry == Level::DNF)
      return pm.addPass(dnf::createDNFVerify());
    if (entry == Level::Lifted)
      pm.addPass(createVerifyLiftingPass());
    pm.addPass(onf::createONFVerify());
  });
}

Operation *kernelAt(ModuleOp module, unsigned number) {
  for (Operation &op : *module.getBody())
    if (!isa<MonoidOp>(op) && number-- == 0)
      return &op;
  llvm_unreachable("no kernel of this number");
}

/// Returns the declared range of an input, of integers or of floats.
static std::string getRange(Operation *kernel, size_t number) {
  for (StringRef name : {StringRef(kRangesAttr), StringRef("moa.real_ranges")})
    if (auto ranges = kernel->getAttrOfType<ArrayAttr>(name); ranges && number < ranges.size())
      if (StringRef range = cast<StringAttr>(ranges[number]).getValue(); !range.empty())
        return range.str();
  return "";
}

ParameterInfo makeParameterInfo(const Parameter &parameter) {
  ParameterInfo info;
  info.name = parameter.name;
  info.elementType = getName(parameter.type).str();
  for (const SymExpr &extent : parameter.extents)
    info.extents.push_back(extent.str());
  info.isOutput = parameter.isOutput;
  return info;
}

static KernelInfo makeInfo(const KernelSignature &signature, Operation *kernel) {
  KernelInfo info;
  info.name = signature.name;
  info.text = signature.getText();
  info.symbols = signature.symbols;
  for (const Constraint &constraint : signature.constraints)
    info.constraints.push_back(constraint.text);
  for (const Parameter &parameter : signature.parameters) {
    ParameterInfo entry = makeParameterInfo(parameter);
    if (const std::optional<Tolerance> &within = parameter.within)
      entry.within = AllowedError{within->epsilon, within->isRelative, within->isSampled};
    entry.range = getRange(kernel, info.parameters.size()); // inputs are first
    info.parameters.push_back(std::move(entry));
  }
  return info;
}

void Compilation::Impl::dumpModule(llvm::StringRef name, Level level, ModuleOp module) {
  dump(name, level, [&](llvm::raw_ostream &os) { module.print(os); });
}

/// Checks that no two kernels share the name of an entry point, such as `f` and `f_check`.
static bool checkEntryNames(const std::vector<KernelSignature> &signatures, DiagnosticLog &log) {
  std::set<std::string> names;
  auto mayBeShown = [](const Parameter &parameter) { return parameter.within.has_value(); };
  for (const KernelSignature &signature : signatures)
    for (StringRef suffix : {"", "_workspace", "_check", "_prepare", "_shown"})
      if (!(suffix == "_shown" && llvm::none_of(signature.parameters, mayBeShown)) &&
          !names.insert(signature.name + suffix.str()).second) {
        log.addError("two kernels have an entry point '" + signature.name + suffix + "'");
        return false;
      }
  return true;
}

bool Compilation::Impl::readSignatures() {
  for (Operation &op : *modules[entry]->getBody()) {
    if (isa<MonoidOp>(op))
      continue;
    auto signature = getSignature(&op);
    if (!signature) {
      emitError(op.getLoc()) << llvm::toString(signature.takeError());
      return false;
    }
    infos.push_back(makeInfo(*signature, &op));
    if (auto known = constants.find(signature->name); known != constants.end())
      for (auto [parameter, names] : llvm::zip(infos.back().parameters, known->second))
        parameter.constants = names;
    signatures.push_back(std::move(*signature));
  }
  return checkEntryNames(signatures, log);
}

//===----------------------------------------------------------------------===//
// Levels up to lifted onf
//===----------------------------------------------------------------------===//

bool Compilation::Impl::runPasses(ModuleOp module, const char *stage, llvm::function_ref<void(OpPassManager &)> build,
                                  bool verifies) {
  return timed(stage, [&] {
    PassManager pm(&context);
    pm.enableVerifier(verifies);
    build(pm);
    bool before = log.hasErrors();
    if (succeeded(pm.run(module)))
      return true;
    if (!before && !log.hasErrors())
      log.addError(llvm::Twine("the passes to ") + stage + " failed without a reason");
    return false;
  });
}

ModuleOp Compilation::Impl::getModule(Level level) {
  auto found = modules.find(level);
  if (found != modules.end())
    return *found->second;
  if (log.hasErrors())
    return {};
  if (level < entry || level > Level::Lifted) {
    log.addQueryError(llvm::Twine("the input stands below the level ") + getLevelName(level) + ": it is at the level " +
                      getLevelName(entry));
    return {};
  }
  ModuleOp above = level == Level::Lifted ? getChecked() : getModule(static_cast<Level>(static_cast<int>(level) - 1));
  if (!above)
    return {};
  OwningOpRef<ModuleOp> module = above.clone(), ordered;
  if (level == Level::Lifted && options.architecture.empty()) {
    if (!blockColumns(*module))
      return {};
    ordered = module->clone();
    above = *ordered;
  }
  PipelineOptions pipeline = getPipelineOptions();
  bool done = level == Level::Lifted ? lift(*module) : runPasses(*module, getLevelName(level), [&](OpPassManager &pm) {
    level == Level::DNF ? buildMoAToDNF(pm, pipeline) : buildDNFToONF(pm, pipeline);
  });
  if (!done || !validate(level, above, *module) ||
      (level == Level::ONF && !options.architecture.empty() && (!separateFolds(*module, true) || !splitFolds(*module))))
    return {};
  // Remark on the loops as they are emitted: for a GPU more arrays are stored by now.
  if (level == Level::ONF &&
      !runPasses(*module, "onf", [](OpPassManager &pm) { pm.addPass(createRemarkRecomputationPass()); }))
    return {};
  modules[level] = std::move(module);
  dumpModule(llvm::sys::path::stem(fileName), level, *modules[level]);
  return *modules[level];
}

void Compilation::Impl::warnOfUnusedAccuracy(onf::KernelOp first, bool hasTolerance) {
  if (std::exchange(hasWarnedOfUnusedAccuracy, true))
    return;
  PipelineOptions pipeline = getPipelineOptions();
  auto asks = [&](const char *rule) { return !llvm::is_contained(options.disabledRules, rule); };
  bool asksForBits = accuracy.warnsIfUnused && asks(kPrecision);
  constexpr const char *kNone = "no result may have an error; say which with 'within'";
  if (!hasTolerance && asksForBits)
    first.emitWarning("computes nothing in fewer bits: ") << kNone;
  else if (asksForBits && !pipeline.spends)
    first.emitWarning("computes nothing in fewer bits: without dot products of bytes or of bf16 "
                      "fewer bits are no faster on "
                      "this processor; "
                      "'--spend=4096' takes them from so many keys on all the same");
  else if (asksForBits && !pipeline.precision.halves && accuracy.pilotFrom >= 0)
    first.emitWarning("looks at no few rows and keys first: a pilot is for a GPU, and code for a "
                      "CPU tries its plans without one");
  if (!hasTolerance && pipeline.lowRankFrom > 0)
    first.emitWarning("no keys stand for others: ") << kNone;
}

bool Compilation::Impl::checksTolerances() const {
  return accuracy.checksTolerances && !llvm::is_contained(options.disabledRules, "B5");
}

ModuleOp Compilation::Impl::getAdapted() {
  if (adapted)
    return *adapted;
  ModuleOp exact = getModule(Level::ONF);
  auto hasTolerance = [](onf::KernelOp kernel) { return bool(kernel.getWithin()); };
  PipelineOptions pipeline = getPipelineOptions();
  bool spends = pipeline.spends || pipeline.lowRankFrom > 0;
  if (!exact)
    return exact;
  bool isAny = llvm::any_of(exact.getOps<onf::KernelOp>(), hasTolerance);
  warnOfUnusedAccuracy(*exact.getOps<onf::KernelOp>().begin(), isAny);
  if (!spends || !isAny)
    return checkPlansTaken(exact) ? exact : ModuleOp();
  OwningOpRef<ModuleOp> module = exact.clone();
  if (options.architecture.empty() && !separateFolds(*module, accuracy.variantsOfGpu))
    return {};
  // On a GPU fewer bits pay off on tensor cores, even if its code is interpreted.
  NestReason tellsSlow;
  if (!options.architecture.empty() || accuracy.variantsOfGpu)
    tellsSlow = tellsSlowOn(pipeline.gpu, pipeline.precision.fewest == 0);
  else if (pipeline.precision.fewest == 0)
    tellsSlow = tellsFewSeen();
  if (!runPasses(*module, "adapted", [&](OpPassManager &pm) { buildAdapted(pm, pipeline, tellsSlow); }))
    return {};
  // The sample has few rows, and merged nests may fold over the same ranges.
  auto finish = [&](OpPassManager &pm) {
    if (pipeline.splitsFolds)
      pm.addPass(onf::createONFSplitFolds());
    pm.addPass(onf::createONFFuseFolds());
    pm.addPass(createReadThroughCopiesPass());
    pm.addPass(onf::createONFVerify());
  };
  if (!options.architecture.empty() && !runPasses(*module, "adapted", finish))
    return {};
  if (!checkPlansTaken(*module))
    return {};
  adapted = std::move(module);
  return *adapted;
}

bool Compilation::Impl::checksAnyTolerance() {
  auto isPromised = [&](onf::KernelOp kernel) {
    for (unsigned k = 0; k < kernel.getNumOutputs(); ++k)
      if (WithinAttr within = getWithin(kernel, k); within && !within.getTolerance().isSampled)
        return true;
    return false;
  };
  return checksTolerances() && llvm::any_of(getModule(Level::ONF).getOps<onf::KernelOp>(), isPromised);
}

ModuleOp Compilation::Impl::getChecked() {
  if (checked)
    return *checked;
  ModuleOp above = getAdapted();
  if (!above || !checksAnyTolerance())
    return above;
  OwningOpRef<ModuleOp> module = above.clone();
  if (!addChecks(*module, !options.architecture.empty()))
    return {};
  checked = std::move(module);
  return *checked;
}

bool Compilation::Impl::findShown() {
  bool isAbove = entry <= Level::Lifted;
  ModuleOp module = isAbove ? getModule(Level::Lifted) : ModuleOp();
  for (unsigned k = 0; module && k < signatures.size(); ++k)
    if (auto shown = kernelAt(module, k)->getAttrOfType<ArrayAttr>(onf::kShownAttr))
      signatures[k].hasShown =
          llvm::any_of(shown, [](Attribute entry) { return !cast<DictionaryAttr>(entry).get("why"); });
  for (KernelSignature &signature : signatures)
    signature.hasShown |= !isAbove && !signature.shownLater.empty();
  return module || !isAbove;
}

bool Compilation::Impl::addChecks(ModuleOp module, bool isForGpu) {
  // Bounds come from the dnf level.
  if (entry <= Level::DNF)
    for (unsigned k = 0; k < infos.size(); ++k)
      setBounds(cast<dnf::KernelOp>(kernelAt(getModule(Level::DNF), k)), kernelAt(module, k));
  bool splits = isForGpu && getPipelineOptions().splitsFolds;
  return runPasses(module, "adapted", [&](OpPassManager &pm) {
    pm.addPass(createCheckBoundsPass(CheckBoundsPassOptions{/*onlyKnown=*/isForGpu}));
    if (splits)
      pm.addPass(onf::createONFSplitFolds());
    if (isForGpu) {
      pm.addPass(onf::createONFFuseFolds());
      pm.addPass(createReadThroughCopiesPass());
    }
    pm.addPass(onf::createONFVerify());
  });
}

bool Compilation::Impl::validate(Level level, ModuleOp above, ModuleOp module) {
  return timed("validate", [&] {
    for (unsigned k = 0; k < infos.size(); ++k) {
      if (validators.size() == k)
        validators.push_back(std::make_unique<Validator>(&context));
      Validator &validator = *validators[k];
      Operation *from = kernelAt(above, k), *to = kernelAt(module, k);
      LogicalResult result = success();
      if (level == Level::DNF)
        result = success(succeeded(validator.compareUses(cast<KernelOp>(from), cast<dnf::KernelOp>(to))) &&
                         succeeded(validator.checkBounds(cast<dnf::KernelOp>(to))));
      else if (level == Level::ONF)
        // If the input is a normal form, its bounds are not checked yet. Mixed-precision variants
        // read and store more than the normal form, so they are not compared.
        result = success(to->hasAttr(kSpentAttr) ||
                         ((entry != Level::DNF || succeeded(validator.checkBounds(cast<dnf::KernelOp>(from)))) &&
                          succeeded(validator.compareAddresses(cast<dnf::KernelOp>(from), cast<onf::KernelOp>(to)))));
      else {
        // Mixed-precision variants have other values. Compare the exact module instead.
        Operation *exact = kernelAt(getModule(Level::ONF), k);
        bool isExact = !from->hasAttr(kSpentAttr);
        result = success(
            succeeded(validator.checkLifting(cast<onf::KernelOp>(from), cast<onf::KernelOp>(to))) &&
            succeeded(validator.compareValues(entry <= Level::DNF ? kernelAt(getModule(Level::DNF), k) : exact,
                                              cast<onf::KernelOp>(exact), cast<onf::KernelOp>(isExact ? to : exact))));
      }
      if (failed(result))
        return false;
    }
    return true;
  });
}

llvm::ArrayRef<Fact> Compilation::Impl::getFacts(unsigned kernel) const {
  if (kernel >= validators.size())
    return {};
  return validators[kernel]->getFacts();
}

std::optional<unsigned> Compilation::Impl::findKernel(const std::string &name) {
  for (auto [k, info] : llvm::enumerate(infos))
    if (info.name == name || (name.empty() && infos.size() == 1))
      return k;
  if (log.hasErrors())
    return std::nullopt;
  std::vector<std::string> names;
  for (const KernelInfo &info : infos)
    names.push_back(info.name);
  log.addQueryError((name.empty() ? "a kernel must be named" : "no kernel is called '" + name + "'") + "; there are " +
                    llvm::join(names, ", "));
  return std::nullopt;
}

Operation *Compilation::Impl::getKernelOp(const std::string &kernel, Level level) {
  std::optional<unsigned> index = findKernel(kernel);
  ModuleOp module;
  if (index)
    module = level == Level::Device ? getDeviceModule() : getModule(level);
  return module ? kernelAt(module, *index) : nullptr;
}

//===----------------------------------------------------------------------===//
// After lifted onf: one module per kernel
//===----------------------------------------------------------------------===//

ModuleOp Compilation::Impl::isolateKernel(unsigned kernel) {
  if (!options.architecture.empty()) {
    log.addQueryError("the kernels are lifted for the GPU " + options.architecture +
                      "; code for a CPU needs a compilation for one");
    return {};
  }
  ModuleOp lifted = getModule(Level::Lifted);
  if (!lifted)
    return {};
  ModuleOp module = ModuleOp::create(lifted.getLoc());
  for (MonoidOp monoid : lifted.getOps<MonoidOp>())
    module.push_back(monoid->clone());
  module.push_back(kernelAt(lifted, kernel)->clone());
  return module;
}

ModuleOp Compilation::Impl::getKernelModule(unsigned kernel, Level level) {
  KernelModules &own = kernelModules[kernel];
  if (!own.vector) {
    OwningOpRef<ModuleOp> module = isolateKernel(kernel);
    PipelineOptions pipeline = getPipelineOptions();
    pipeline.byteDots = hasByteDots();
    pipeline.bf16Dots = getBf16Dots();
    if (!module || !runPasses(*module, "vector", [&](OpPassManager &pm) { buildLiftedToVector(pm, pipeline); }))
      return {};
    own.vector = std::move(module);
    dumpModule(signatures[kernel].name, Level::Vector, *own.vector);
  }
  if (level == Level::LLVM && !own.llvm) {
    OwningOpRef<ModuleOp> module = own.vector->clone();
    PipelineOptions pipeline = getPipelineOptions();
    if (!runPasses(*module, "llvm", [&](OpPassManager &pm) { buildVectorToLLVM(pm, pipeline); }))
      return {};
    own.llvm = std::move(module);
  }
  return level == Level::LLVM ? *own.llvm : *own.vector;
}

/// Returns true if a module's nests are bound to the blocks of a GPU.
static bool isLiftedToGpu(ModuleOp module) {
  return module
      .walk([](onf::ForOp nest) {
        auto lift = nest.getLift();
        bool isBound = lift && !lift->empty() &&
                       cast<onf::AxisAttr>((*lift)[lift->size() - 1]).getResource(0) != onf::Resource::core;
        return isBound ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

std::optional<bool> Compilation::Impl::usesTiles() {
  // An input below the lifted level, or lifted for a GPU, is for no CPU.
  if (entry > Level::Lifted || getBf16Dots() != Bf16Dots::tiles)
    return false;
  if (ModuleOp lifted = getModule(Level::Lifted); !lifted)
    return std::nullopt;
  else if (isLiftedToGpu(lifted))
    return false;
  bool uses = false;
  for (unsigned k = 0; k < infos.size() && !uses; ++k) {
    ModuleOp module = getKernelModule(k, Level::Vector);
    if (!module)
      return std::nullopt;
    uses = module
               ->walk([](mlir::LLVM::CallIntrinsicOp op) {
                 bool isTiles = op.getIntrin() == cpu::kTilesIntrinsic;
                 return isTiles ? WalkResult::interrupt() : WalkResult::advance();
               })
               .wasInterrupted();
  }
  return uses;
}

llvm::TargetMachine *Compilation::Impl::getTargetMachine(bool host) {
  if (!targetMachines[host] && !hasNoTargetMachine[host]) {
    if (auto created = take(cpu::createTargetMachine(host ? llvm::StringRef() : llvm::StringRef(options.processor),
                                                     options.optimization)))
      targetMachines[host] = std::move(*created);
    hasNoTargetMachine[host] = !targetMachines[host];
  }
  return targetMachines[host].get();
}

/// Packed entries are compiled for this machine, which will run them.
llvm::Module *Compilation::Impl::getLLVM(unsigned kernel, bool packed) {
  KernelModules &own = kernelModules[kernel];
  if (own.ir[packed])
    return own.ir[packed].get();
  if (!checkEntryName(kernel))
    return nullptr;
  ModuleOp module = getKernelModule(kernel, Level::LLVM);
  llvm::TargetMachine *target = module ? getTargetMachine(packed) : nullptr;
  if (!target)
    return nullptr;
  std::unique_ptr<llvm::Module> ir;
  timed("translate", [&] {
    auto made =
        cpu::translate(module, llvmContext, *target, signatures[kernel], packed, packed ? Binding::None : getBinding());
    if (made)
      ir = std::move(*made);
    else
      kernelAt(*modules[entry], kernel)->emitError() << llvm::toString(made.takeError());
    return bool(ir);
  });
  if (!ir)
    return nullptr;
  timed("optimise", [&] {
    cpu::optimise(*ir, *target, options.optimization);
    return true;
  });
  own.ir[packed] = std::move(ir);
  dump(signatures[kernel].name, Level::LLVM, [&](llvm::raw_ostream &os) { own.ir[packed]->print(os, nullptr); });
  return own.ir[packed].get();
}

const llvm::SmallVectorImpl<char> *Compilation::Impl::getObject(bool packed) {
  if (objects[packed])
    return &*objects[packed];
  std::unique_ptr<llvm::Module> all;
  for (unsigned kernel = 0; kernel < signatures.size(); ++kernel) {
    llvm::Module *ir = getLLVM(kernel, packed);
    if (!ir)
      return nullptr;
    std::unique_ptr<llvm::Module> copy = llvm::CloneModule(*ir);
    if (!all) {
      all = std::move(copy);
    } else if (llvm::Linker::linkModules(*all, std::move(copy))) {
      log.addError("the kernels do not link into one object");
      return nullptr;
    }
  }
  timed("codegen", [&] {
    objects[packed] = take(cpu::emitObject(*all, *getTargetMachine(packed)));
    return objects[packed].has_value();
  });
  return objects[packed] ? &*objects[packed] : nullptr;
}

//===----------------------------------------------------------------------===//
// Dumps
//===----------------------------------------------------------------------===//

void Compilation::Impl::dump(llvm::StringRef name, Level level, llvm::function_ref<void(llvm::raw_ostream &)> print) {
  if (options.dumpDirectory.empty())
    return;
  llvm::SmallString<128> path(options.dumpDirectory);
  std::error_code error = llvm::sys::fs::create_directories(path);
  llvm::sys::path::append(path, name + "." + getLevelName(level) + (level == Level::LLVM ? ".ll" : ".mlir"));
  if (!error) {
    llvm::raw_fd_ostream stream(path, error);
    if (!error)
      print(stream);
  }
  if (error)
    log.addError(llvm::Twine("cannot write ") + path + ": " + error.message());
}

} // namespace moa
