//===- CombineKernels.cpp - one launch for independent kernels ------------===//
//
// A launch costs a few microseconds, and multiprocessors idle at its end while its last blocks run.
// Kernels without conflicts (none writes an array that another one accesses) need no order, so
// their blocks can share one grid. The same holds for kernels that one array chooses to store an
// output.
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
/// A kernel hides others if it has more blocks than they have together, by this factor.
constexpr double kLonger = 4;

struct Group {
  SmallVector<KernelOp> kernels;
  SmallVector<Accesses> accesses;
};

bool storesOutput(KernelOp kernel) {
  auto program = kernel->getParentOfType<ProgramOp>();
  return llvm::any_of(Accesses(kernel).written, [&](Value array) { return !program.isWorkspace(array); });
}

/// Returns true if both kernels have as many threads, and hosts launch one whenever they launch the
/// other. The combined launch has the conditions of both. Different choices matter only for outputs
/// (D4).
bool haveSameLaunch(KernelOp a, KernelOp b) {
  auto of = onf::getLaunchConditions(a), others = onf::getLaunchConditions(b);
  if (of.size() > others.size())
    std::swap(of, others);
  bool sameChoice = a->getAttr(kChosenAttr) == b->getAttr(kChosenAttr);
  return a.getThreads() == b.getThreads() && of.empty() == others.empty() &&
         (sameChoice || !(of.empty() || storesOutput(a) || storesOutput(b))) &&
         llvm::all_of(of, [&](const auto &pair) { return llvm::is_contained(others, pair); });
}

/// Returns true if a kernel may share a launch with each kernel of the group. Kernels that only
/// `NAME_shown` needs have their own launches.
bool canJoin(const Group &group, KernelOp kernel, const llvm::SetVector<KernelOp> &telling) {
  return llvm::all_of(group.kernels, [&](KernelOp other) {
    return isPlain(other) && haveSameLaunch(other, kernel) && telling.contains(other) == telling.contains(kernel);
  });
}

/// Puts each kernel in the earliest launch possible: after all kernels that it conflicts with.
SmallVector<Group> findGroups(ProgramOp program) {
  SmallVector<Group> groups;
  const llvm::SetVector<KernelOp> telling = findReportOnly(program);
  for (auto kernel : program.getBody().getOps<KernelOp>()) {
    Accesses accesses(kernel);
    size_t place = groups.size();
    while (place > 0 &&
           llvm::none_of(groups[place - 1].accesses, [&](const Accesses &other) { return accesses.interferes(other); }))
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

void put(Group &from, unsigned which, Group &to) {
  to.kernels.push_back(from.kernels[which]);
  to.accesses.push_back(std::move(from.accesses[which]));
  from.kernels.erase(from.kernels.begin() + which);
  from.accesses.erase(from.accesses.begin() + which);
}

/// Moves kernels that conflict with `accesses` out of the launches `place` to `last`, each to the
/// latest possible launch after `last`. Each may have at most `most` blocks. Returns false if that
/// is impossible; the groups are then invalid.
bool postpone(SmallVector<Group> &groups, const Accesses &accesses, size_t place, size_t last, double most,
              const llvm::SetVector<KernelOp> &telling) {
  for (; place <= last; ++place)
    for (unsigned k = groups[place].kernels.size(); k-- > 0;) {
      if (!accesses.interferes(groups[place].accesses[k]))
        continue;
      KernelOp kernel = groups[place].kernels[k];
      const Accesses own = groups[place].accesses[k];
      if (!isPlain(kernel) || countBlocks(kernel) > most || !postpone(groups, own, place + 1, last, most, telling))
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

/// Moves a kernel to the first later launch that it may be in and that satisfies `fits`. Returns
/// false if there is none.
bool moveToLater(SmallVector<Group> &groups, size_t from, unsigned which, double most,
                 const llvm::SetVector<KernelOp> &telling, llvm::function_ref<bool(const Group &)> fits) {
  const Accesses &own = groups[from].accesses[which];
  auto staysBehind = [&](auto pair) { // no move of others can resolve this conflict
    auto &[other, accesses] = pair;
    return own.interferes(accesses) && (!isPlain(other) || countBlocks(other) > most);
  };
  for (size_t place = from + 1; place < groups.size(); ++place) {
    if (llvm::any_of(llvm::zip_equal(groups[place].kernels, groups[place].accesses), staysBehind))
      return false;
    if (groups[place].kernels.empty() || !canJoin(groups[place], groups[from].kernels[which], telling) ||
        !fits(groups[place]))
      continue;
    SmallVector<Group> moved(groups);
    if (!postpone(moved, groups[from].accesses[which], from + 1, place, most, telling) || moved[place].kernels.empty())
      continue;
    put(moved[from], which, moved[place]);
    groups = std::move(moved);
    return true;
  }
  return false;
}

/// Delays kernels to later launches. A kernel that is alone moves, because that saves its launch.
/// Of a launch with several kernels whose blocks grow with all sizes, the last ones move to hide a
/// launch with few blocks. Kernels with few blocks that depend on a moved kernel move after it.
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

/// Emits one kernel whose first blocks are those of the first kernel, and so on.
KernelOp combine(ArrayRef<KernelOp> kernels) {
  KernelOp first = kernels.front();
  OpBuilder b(first);
  Location loc = b.getFusedLoc(llvm::map_to_vector(kernels, [](KernelOp kernel) { return kernel.getLoc(); }));
  SymExpr blocks;
  for (KernelOp kernel : kernels)
    blocks = blocks + kernel.getBlocks();
  auto made = KernelOp::create(b, loc, first.getSymName(), blocks, first.getThreads());
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
    // Block numbers have 32 bits; divisions of such numbers are fast.
    Value rest = arith::SubIOp::create(b, loc, number, count);
    Value low = arith::IndexCastOp::create(b, loc, b.getI32Type(), rest);
    number = arith::IndexCastOp::create(b, loc, b.getIndexType(), arith::ExtUIOp::create(b, loc, b.getI64Type(), low));
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
      delay(groups, findReportOnly(program));
      // Order the kernels by group: a kernel may have moved before those of a later group.
      for (Group &group : groups) {
        KernelOp kernel = group.kernels.size() > 1 ? combine(group.kernels) : group.kernels.front();
        kernel->moveBefore(&program.getBody().front(), program.getBody().front().end());
      }
    });
  }
};
} // namespace
} // namespace moa::device
