//===- CombineKernels.cpp - kernels side by side in one launch ------------===//
//
// A launch costs a device a few microseconds, and at its end multiprocessors wait for its last
// blocks. Kernels of which none reads or writes what another one writes need no order, so that
// their blocks may be those of one grid; nor do those that store an output each where one array
// chooses it.
//
//===----------------------------------------------------------------------===//
#include "dialects/Device/Transforms/Accesses.h"
#include "dialects/Device/Transforms/KernelRewrites.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace moa::device {
#define GEN_PASS_DEF_DEVICECOMBINEKERNELS
#include "dialects/Device/Transforms/DevicePasses.h.inc"

namespace {
/// A kernel hides others that have together fewer blocks than it by this factor.
constexpr double kLonger = 4;

/// Kernels that are to be one launch.
struct Group {
  SmallVector<KernelOp> kernels;
  SmallVector<Accesses> accesses;
};

/// Whether a kernel stores in what is no workspace.
bool storesOutput(KernelOp kernel) {
  auto program = kernel->getParentOfType<ProgramOp>();
  return llvm::any_of(Accesses(kernel).written,
                      [&](Value array) { return !program.isWorkspace(array); });
}

/// Whether hosts launch both with as many threads, and one wherever they launch the other. A launch
/// of both asks for what each asks for. Blocks of different choices make no difference but for
/// outputs, which D4 is about.
bool haveSameLaunch(KernelOp a, KernelOp b) {
  auto of = conditionsOf(a), others = conditionsOf(b);
  if (of.size() > others.size())
    std::swap(of, others);
  bool sameChoice = a->getAttr(kChosenAttr) == b->getAttr(kChosenAttr);
  return a.getThreads() == b.getThreads() && of.empty() == others.empty() &&
         (sameChoice || !(of.empty() || storesOutput(a) || storesOutput(b))) &&
         llvm::all_of(of, [&](const auto &pair) { return llvm::is_contained(others, pair); });
}

/// Whether a kernel may be of the same launch as each of the group. What only tells of results is
/// launched by itself.
bool canJoin(const Group &group, KernelOp kernel, const llvm::SetVector<KernelOp> &telling) {
  return llvm::all_of(group.kernels, [&](KernelOp other) {
    return isPlain(other) && haveSameLaunch(other, kernel) &&
           telling.contains(other) == telling.contains(kernel);
  });
}

/// Each kernel in the first launch that it may be in: behind all that it interferes with.
SmallVector<Group> findGroups(ProgramOp program) {
  SmallVector<Group> groups;
  const llvm::SetVector<KernelOp> telling = findTelling(program);
  for (auto kernel : program.getBody().getOps<KernelOp>()) {
    Accesses accesses(kernel);
    size_t place = groups.size();
    while (place > 0 && llvm::none_of(groups[place - 1].accesses, [&](const Accesses &other) {
             return accesses.interferes(other);
           }))
      --place;
    if (isPlain(kernel))
      while (place < groups.size() && !canJoin(groups[place], kernel, telling))
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

/// Takes a kernel out of its launch and puts it into another one.
void put(Group &from, unsigned which, Group &to) {
  to.kernels.push_back(from.kernels[which]);
  to.accesses.push_back(std::move(from.accesses[which]));
  from.kernels.erase(from.kernels.begin() + which);
  from.accesses.erase(from.accesses.begin() + which);
}

/// Moves what interferes with a kernel, in the launches from `place` to `last`, to the latest
/// launches behind these that it may be in, if that has at most so many blocks each. False: not
/// possible, and the groups are of no use.
bool pushBehind(SmallVector<Group> &groups, const Accesses &accesses, size_t place, size_t last,
                double most, const llvm::SetVector<KernelOp> &telling) {
  for (; place <= last; ++place)
    for (unsigned k = groups[place].kernels.size(); k-- > 0;) {
      if (!accesses.interferes(groups[place].accesses[k]))
        continue;
      KernelOp kernel = groups[place].kernels[k];
      const Accesses own = groups[place].accesses[k];
      if (!isPlain(kernel) || countBlocks(kernel) > most ||
          !pushBehind(groups, own, place + 1, last, most, telling))
        return false;
      size_t next = last + 1, latest = 0;
      auto needsIt = [&](const Accesses &other) { return own.interferes(other); };
      for (; next < groups.size() && llvm::none_of(groups[next].accesses, needsIt); ++next)
        if (!groups[next].kernels.empty() && canJoin(groups[next], kernel, telling))
          latest = next;
      if (latest == 0)
        return false;
      put(groups[place], k, groups[latest]);
    }
  return true;
}

/// Moves a kernel to the first later launch that it may be in and `fits` says yes to, if there is
/// one.
bool moveToLater(SmallVector<Group> &groups, size_t from, unsigned which, double most,
                 const llvm::SetVector<KernelOp> &telling,
                 llvm::function_ref<bool(const Group &)> fits) {
  const Accesses &own = groups[from].accesses[which];
  auto staysBehind = [&](auto pair) { // what no move of others changes
    auto &[other, accesses] = pair;
    return own.interferes(accesses) && (!isPlain(other) || countBlocks(other) > most);
  };
  for (size_t place = from + 1; place < groups.size(); ++place) {
    if (llvm::any_of(llvm::zip_equal(groups[place].kernels, groups[place].accesses), staysBehind))
      return false;
    if (groups[place].kernels.empty() ||
        !canJoin(groups[place], groups[from].kernels[which], telling) || !fits(groups[place]))
      continue;
    SmallVector<Group> moved(groups);
    if (!pushBehind(moved, groups[from].accesses[which], from + 1, place, most, telling) ||
        moved[place].kernels.empty())
      continue;
    put(moved[from], which, moved[place]);
    groups = std::move(moved);
    return true;
  }
  return false;
}

/// Kernels that may wait: one that is alone, which saves its launch, and of several whose blocks
/// grow with all sizes the last ones, each of which hides what has few blocks elsewhere. Others of
/// few blocks that need them wait for them.
void delay(SmallVector<Group> &groups, const llvm::SetVector<KernelOp> &telling) {
  auto blocksOf = [](const Group &group) {
    double sum = 0;
    for (KernelOp kernel : group.kernels)
      sum += countBlocks(kernel);
    return sum;
  };
  unsigned degree = 0;
  for (const Group &group : groups)
    for (KernelOp kernel : group.kernels)
      degree = std::max(degree, degreeOf(kernel));
  for (size_t place = groups.size(); place-- > 0;)
    for (size_t which = groups[place].kernels.size(); which-- > 0;) {
      KernelOp kernel = groups[place].kernels[which];
      if (!isPlain(kernel))
        continue;
      double own = countBlocks(kernel);
      bool isAlone = groups[place].kernels.size() == 1;
      bool isLong = degreeOf(kernel) == degree && 2 * own <= blocksOf(groups[place]);
      if (isAlone || isLong)
        moveToLater(groups, place, which, isAlone ? 0 : own / kLonger, telling,
                    [&](const Group &other) { return isAlone || own > kLonger * blocksOf(other); });
    }
  llvm::erase_if(groups, [](const Group &group) { return group.kernels.empty(); });
}

/// One kernel whose first blocks are those of the first one, and so on.
KernelOp combine(ArrayRef<KernelOp> kernels) {
  KernelOp first = kernels.front();
  OpBuilder b(first);
  Location loc =
      b.getFusedLoc(llvm::map_to_vector(kernels, [](KernelOp kernel) { return kernel.getLoc(); }));
  SymExpr blocks;
  for (KernelOp kernel : kernels)
    blocks = blocks + *SymExpr::parse(kernel.getBlocks());
  auto made = KernelOp::create(b, loc, first.getSymName(), blocks.str(), first.getThreads());
  setAttributesOfAll(made, kernels);
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
      delay(groups, findTelling(program));
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
