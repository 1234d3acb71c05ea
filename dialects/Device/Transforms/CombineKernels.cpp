//===- CombineKernels.cpp - kernels side by side in one launch ------------===//
//
// A launch costs a device a few microseconds, and at its end multiprocessors wait for its last blocks. Kernels of
// which none reads or writes what another one writes need no order, so that their blocks may be those of one grid; nor do
// those that store an output each where one array chooses it.
//
//===----------------------------------------------------------------------===//
#include "dialects/Device/Transforms/Accesses.h"
#include "dialects/ONF/IR/Hints.h"
#include "lib/Support/SymExpr.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace moa::device {
#define GEN_PASS_DEF_DEVICECOMBINEKERNELS
#include "dialects/Device/Transforms/DevicePasses.h.inc"

namespace {
/// Kernels that are to be one launch.
struct Group {
  SmallVector<KernelOp> kernels;
  SmallVector<Accesses> accesses;
};

/// Whether there are blocks, whose threads use nothing but registers, the arrays, and each other's registers: shared
/// memory and the registers of roles are divided for a whole launch.
bool isPlain(KernelOp kernel) {
  if (SymExpr::parse(kernel.getBlocks())->isZero())
    return false;
  return !kernel.walk([](Operation *op) {
                  bool isDevice = op->getName().getDialectNamespace() == "device";
                  bool isKnown = isa<KernelOp, BlockOp, ThreadOp, SymbolOp, ScalarOp, LoadOp, StoreOp, LoadRunOp,
                                     StoreRunOp, ExchangeOp, Exp2Op, HalfFromBitsOp>(op);
                  return isDevice && !isKnown ? WalkResult::interrupt() : WalkResult::advance();
                })
              .wasInterrupted();
}

/// Whether hosts launch both in the same cases, with as many threads, for the same choice.
bool haveSameLaunch(KernelOp a, KernelOp b) {
  return a.getThreads() == b.getThreads() && a->getAttr(kChosenAttr) == b->getAttr(kChosenAttr) &&
         a->getAttr(onf::kRunsAttr) == b->getAttr(onf::kRunsAttr);
}

/// Each kernel in the first launch that it may be in: behind all that it interferes with.
SmallVector<Group> findGroups(ProgramOp program) {
  SmallVector<Group> groups;
  for (auto kernel : program.getBody().getOps<KernelOp>()) {
    Accesses accesses(kernel);
    size_t place = groups.size();
    while (place > 0 && llvm::none_of(groups[place - 1].accesses,
                                      [&](const Accesses &other) { return accesses.interferes(other); }))
      --place;
    if (isPlain(kernel))
      while (place < groups.size() && !(isPlain(groups[place].kernels.front()) &&
                                        haveSameLaunch(groups[place].kernels.front(), kernel)))
        ++place;
    else
      place = groups.size();
    if (place == groups.size())
      groups.emplace_back();
    groups[place].kernels.push_back(kernel);
    groups[place].accesses.push_back(std::move(accesses));
  }
  return groups;
}

/// Moves what a kernel does behind the builder's place, with `number` as the block's.
void moveBody(KernelOp kernel, OpBuilder &b, Value number) {
  Block &from = kernel.getBody().front();
  kernel.walk([&](BlockOp block) {
    block.getResult().replaceAllUsesWith(number);
    block.erase();
  });
  b.getBlock()->getOperations().splice(b.getInsertionPoint(), from.getOperations());
}

/// One kernel whose first blocks are those of the first one, and so on.
KernelOp combine(ArrayRef<KernelOp> kernels) {
  KernelOp first = kernels.front();
  OpBuilder b(first);
  Location loc = b.getFusedLoc(llvm::map_to_vector(kernels, [](KernelOp kernel) { return kernel.getLoc(); }));
  SymExpr blocks;
  for (KernelOp kernel : kernels)
    blocks = blocks + *SymExpr::parse(kernel.getBlocks());
  auto made = KernelOp::create(b, loc, first.getSymName(), blocks.str(), first.getThreads());
  made->setDiscardableAttrs(first->getDiscardableAttrDictionary());
  b.setInsertionPointToStart(&made.getBody().emplaceBlock());
  Value number = BlockOp::create(b, loc);
  for (KernelOp kernel : kernels.drop_back()) {
    Value count = SymbolOp::create(b, loc, kernel.getBlocks());
    Value isOwn = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, number, count);
    auto branch = scf::IfOp::create(b, loc, isOwn, /*withElseRegion=*/true);
    b.setInsertionPoint(branch.thenYield());
    moveBody(kernel, b, number);
    b.setInsertionPoint(branch.elseYield());
    // A block's number has 32 bits, and divisions of such numbers are fast.
    Value rest = arith::SubIOp::create(b, loc, number, count);
    Value low = arith::IndexCastOp::create(b, loc, b.getI32Type(), rest);
    number = arith::IndexCastOp::create(b, loc, b.getIndexType(),
                                        arith::ExtUIOp::create(b, loc, b.getI64Type(), low));
  }
  moveBody(kernels.back(), b, number);
  for (KernelOp kernel : kernels)
    kernel.erase();
  return made;
}

struct DeviceCombineKernels final : impl::DeviceCombineKernelsBase<DeviceCombineKernels> {
  using Base::Base;

  void runOnOperation() override {
    getOperation()->walk([&](ProgramOp program) {
      SmallVector<Group> groups = findGroups(program);
      // In the order of the groups: one may hold a kernel that stood behind those of a later one.
      for (Group &group : groups) {
        KernelOp kernel = group.kernels.size() > 1 ? combine(group.kernels) : group.kernels.front();
        kernel->moveBefore(&program.getBody().front(), program.getBody().front().end());
      }
    });
  }
};
} // namespace
} // namespace moa::device
