//===- Verify.cpp - the contract of the device level ----------------------===//

#include "dialects/Device/IR/Device.h"
#include "dialects/Device/Transforms/Accesses.h"
#include "dialects/Device/Transforms/Launches.h"
#include "dialects/MoA/Transforms/Contract.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace moa::device {
#define GEN_PASS_DEF_DEVICEVERIFY
#include "dialects/Device/Transforms/DevicePasses.h.inc"

namespace {
class ProgramVerifier {
public:
  explicit ProgramVerifier(ProgramOp program)
      : program(program), symbols(program.getSymbols()), extended(program.getSymbols()) {
    for (BlockArgument arg : program.getBody().getArguments())
      for (unsigned axis = 0; axis < cast<ArrayType>(arg.getType()).getRank(); ++axis)
        extended.add((nameOf(arg) + ".s" + Twine(axis)).str());
  }

  LogicalResult verify() {
    if (failed(verifyInterface(program, program.getSymbols(), program.getRequires(), program.getArgNames(),
                               program.getResultNames(), program.getResultTypes())))
      return failure();
    WalkResult walked = program.getBody().walk([&](Operation *op) { return WalkResult(verify(op)); });
    if (walked.wasInterrupted() || failed(verifyOrder()) || failed(verifyIdle()))
      return failure();
    for (BlockArgument output : program.getBody().getArguments().drop_front(program.getArgNames().size()))
      if (program.isWorkspace(output)) {
        if (failed(verifyWorkspace(output)))
          return failure();
      } else if (!output.hasOneUse() && !isStoredByChoice(output) && !isStoredByVersion(output))
        return program.emitOpError("expects one store of output '")
               << nameOf(output) << "' (D4), but got " << std::distance(output.use_begin(), output.use_end());
    return success();
  }

private:
  StringRef nameOf(BlockArgument arg) { return program.getAllNames()[arg.getArgNumber()]; }

  /// Returns true if two kernels store the output, once each, and exactly one of them is launched.
  static bool isStoredByVersion(BlockArgument output) {
    auto users = llvm::to_vector(output.getUsers());
    return users.size() == 2 &&
           onf::areComplementary(users[0]->getParentOfType<KernelOp>(), users[1]->getParentOfType<KernelOp>());
  }

  /// Returns true if several kernels store the output, once each, with exclusive choices.
  static bool isStoredByChoice(BlockArgument output) {
    SmallVector<DictionaryAttr> choices;
    for (Operation *user : output.getUsers()) {
      auto choice = user->getParentOfType<KernelOp>()->getAttrOfType<DictionaryAttr>(kChosenAttr);
      if (!choice || !llvm::all_of(choices, [&](DictionaryAttr other) { return areExclusive(choice, other); }))
        return false;
      choices.push_back(choice);
    }
    return !choices.empty();
  }

  /// Returns true if blocks of a kernel synchronise: it signals a counter and reads it.
  static bool passesOn(KernelOp kernel) {
    llvm::SmallPtrSet<Value, 2> signalled, read;
    kernel.walk([&](Operation *op) {
      if (auto signal = dyn_cast<SignalOp>(op))
        signalled.insert(signal.getArray());
      if (auto signals = dyn_cast<SignalsOp>(op))
        read.insert(signals.getArray());
    });
    return llvm::any_of(read, [&](Value counter) { return signalled.contains(counter); });
  }

  /// Returns the number of the stage (device.stages) that contains an operation, or nothing.
  static std::optional<unsigned> stageOf(Operation *op) {
    auto stages = op->getParentOfType<StagesOp>();
    if (!stages)
      return std::nullopt;
    for (Region &stage : stages.getStages())
      if (stage.isAncestor(op->getParentRegion()))
        return stage.getRegionNumber();
    return std::nullopt;
  }

  /// D5: one kernel stores the array. Only later kernels load it, or blocks of the same kernel that
  /// read signals, or its later stages.
  LogicalResult verifyWorkspace(BlockArgument array) {
    KernelOp writer;
    std::optional<unsigned> last; // last stage that stores
    auto stores = [&](Operation *op) {
      if (auto run = dyn_cast<StoreRunOp>(op))
        return run.getArray() == array;
      auto store = dyn_cast<StoreOp>(op);
      return store && store.getArray() == array;
    };
    WalkResult written = program.getBody().walk([&](Operation *store) {
      auto kernel = store->getParentOfType<KernelOp>();
      if (!stores(store))
        return WalkResult::advance();
      if (!writer)
        writer = kernel;
      if (writer == kernel) {
        last = std::max(last, stageOf(store));
        return WalkResult::advance();
      }
      store->emitOpError("expects one kernel to store array '")
          << nameOf(array) << "' of the workspace (D5), but '" << writer.getSymName() << "' does too";
      return WalkResult::interrupt();
    });
    if (written.wasInterrupted())
      return failure();
    llvm::SmallPtrSet<Operation *, 2> raisers;
    for (Operation *user : array.getUsers())
      if (isa<RaiseOp>(user))
        raisers.insert(user->getParentOfType<KernelOp>());
    for (Operation *user : array.getUsers()) {
      auto kernel = user->getParentOfType<KernelOp>();
      bool isPassed =
          writer == kernel && !isa<SignalOp, SignalsOp>(user) && (passesOn(kernel) || (last && stageOf(user) > last));
      bool isBehind = writer && (writer->isBeforeInBlock(kernel) || isPassed);
      if (!stores(user) && !isBehind)
        return user->emitOpError("expects an earlier kernel to store array '")
               << nameOf(array) << "' of the workspace (D5)";
      if (!isa<RaiseOp>(user) && raisers.contains(kernel))
        return user->emitOpError("expects another kernel than this to raise flag '") << nameOf(array) << "' (D5)";
    }
    return success();
  }

  /// D6: overlapping kernels do not conflict.
  LogicalResult verifyOrder() {
    SmallVector<std::pair<KernelOp, Accesses>> running;
    for (auto kernel : program.getBody().getOps<KernelOp>()) {
      Accesses accesses(kernel);
      if (!kernel->hasAttr(kOverlapAttr))
        running.clear();
      else if (running.empty())
        return kernel.emitOpError("expects a kernel before one that overlaps with another (D6)");
      for (auto &[other, others] : running)
        if (accesses.interferes(others))
          return kernel.emitOpError("expects no conflict with '")
                 << other.getSymName()
                 << "', which it may overlap with (D6), but one writes an array that the other "
                    "accesses";
      running.push_back({kernel, std::move(accesses)});
    }
    return success();
  }

  /// D7: checks skip flags and the kernels that overlap with a skipped one.
  LogicalResult verifyIdle() {
    for (auto kernel : program.getBody().getOps<KernelOp>()) {
      if (!kernel->hasAttr(kSkipFlagAttr))
        continue;
      Value flag = getSkipFlag(kernel);
      auto type = flag ? cast<ArrayType>(flag.getType()) : ArrayType();
      if (!flag || !program.isWorkspace(flag) || !type.getElementType().isInteger(32) || type.getRank() != 1 ||
          type.getExtent(0).getConstant() != 1)
        return kernel.emitOpError("expects a flag of the workspace (D7), but got ") << kernel->getAttr(kSkipFlagAttr);
      if (!findWaiting(flag, kernel))
        return kernel.emitOpError("expects a kernel that waits between those that raise flag '")
               << nameOf(cast<BlockArgument>(flag)) << "' and this one (D7)";
      if (KernelOp next = findUnsafeOverlap(kernel, flag))
        return next.emitOpError("expects flag '") << nameOf(cast<BlockArgument>(flag)) << "' of '"
                                                  << kernel.getSymName() << "', which it may overlap with (D7)";
    }
    return success();
  }

  LogicalResult verify(Operation *op) {
    StringRef dialect = op->getName().getDialectNamespace();
    if (!llvm::is_contained({"device", "arith", "math", "scf", "memref"}, dialect))
      return op->emitOpError("expects operations of device, arith, math, scf and memref "
                             "only (D1)");
    if (auto kernel = dyn_cast<KernelOp>(op))
      return symbols.check(op, kernel.getBlocks(), "D2");
    if (auto symbol = dyn_cast<SymbolOp>(op))
      return extended.check(op, symbol.getExpr(), "D2");
    if (auto copy = dyn_cast<CopyOp>(op))
      return symbols.check(op, copy.getStep(), "D2");
    if (dialect == "memref" && !isa<memref::AllocaOp, memref::LoadOp, memref::StoreOp>(op))
      return op->emitOpError("expects private arrays only (D3)");
    if (auto local = dyn_cast<memref::AllocaOp>(op); local && !local.getType().hasStaticShape())
      return op->emitOpError("expects a constant shape (D3), but got ") << local.getType();
    return success();
  }

  ProgramOp program;
  DeclaredSymbols symbols, extended;
};

struct DeviceVerify final : impl::DeviceVerifyBase<DeviceVerify> {
  using Base::Base;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    WalkResult walked =
        getOperation()->walk([&](ProgramOp program) { return WalkResult(ProgramVerifier(program).verify()); });
    if (walked.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
} // namespace moa::device
