//===- LevelCheck.cpp - checks that passes find their level ---------------===//
#include "lib/Pipelines/LevelCheck.h"
#include "dialects/DNF/IR/DNF.h"
#include "dialects/Device/IR/Device.h"
#include "dialects/MoA/IR/MoA.h"
#include "dialects/ONF/IR/ONF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace moa;

static const StringLiteral kLevels[] = {"moa", "dnf", "onf", "device"};

/// Returns the levels that a pass works on, by its name; none for a pass that works on any.
static SmallVector<StringRef> levelsOf(StringRef pass) {
  if (pass == "moa-validate")
    return {"dnf", "onf"};
  if (pass == "moa-expand-math")
    return {};
  for (StringRef level : kLevels)
    if (pass.starts_with((level + "-").str()) || pass.starts_with(("convert-" + level + "-to-").str()))
      return {level};
  return {};
}

static StringRef levelOf(Operation &op) {
  return isa<KernelOp>(op)            ? "moa"
         : isa<dnf::KernelOp>(op)     ? "dnf"
         : isa<onf::KernelOp>(op)     ? "onf"
         : isa<device::ProgramOp>(op) ? "device"
                                      : "";
}

namespace {
struct LevelCheck final : PassInstrumentation {
  explicit LevelCheck(bool &found) : found(found) {}

  void runBeforePass(Pass *pass, Operation *root) final {
    auto module = dyn_cast<ModuleOp>(root);
    SmallVector<StringRef> wanted = levelsOf(pass->getArgument());
    if (found || !module || wanted.empty())
      return;
    Operation *other = nullptr;
    for (Operation &op : *module.getBody()) {
      StringRef level = levelOf(op);
      if (llvm::is_contained(wanted, level))
        return;
      if (!other && !level.empty())
        other = &op;
    }
    if (!other)
      return;
    found = true;
    StringRef has = levelOf(*other);
    auto order = [](StringRef level) { return llvm::find(kLevels, level) - std::begin(kLevels); };
    auto error = emitError(other->getLoc()) << "the pass '" << pass->getArgument() << "' works on kernels of the level "
                                            << llvm::join(wanted, " or ") << ", but this one is of the level " << has;
    if (order(has) > order(wanted.back()))
      error << ", which comes after it";
    else if (has == "moa")
      error << "; run '--moa-to-" << wanted.front() << "-pipeline' first";
    else if (has == "dnf" && wanted.front() == "onf")
      error << "; run '--convert-dnf-to-onf' first";
    else
      error << ", from which passes lead to it";
  }

  bool &found;
};
} // namespace

void moa::addLevelCheck(PassManager &passes, bool &found) {
  passes.addInstrumentation(std::make_unique<LevelCheck>(found));
}
