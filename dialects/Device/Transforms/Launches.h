//===- Launches.h - launch conditions and sizes -----------------*- C++ -*-===//
#ifndef MOA_DIALECTS_DEVICE_TRANSFORMS_LAUNCHES_H
#define MOA_DIALECTS_DEVICE_TRANSFORMS_LAUNCHES_H

#include "dialects/Device/IR/Device.h"
#include "dialects/Device/Transforms/Passes.h"
#include "dialects/ONF/IR/Hints.h"
#include "lib/Support/SymExpr.h"
#include "llvm/ADT/SetVector.h"
#include <cmath>

namespace moa::device {

/// Returns the number of sizes that the kernel's block count grows with (its degree).
inline unsigned degreeOf(KernelOp kernel) { return kernel.getBlocks().getDegree(); }

/// The value of every size when block counts of one degree are compared.
inline constexpr int64_t kLarge = 4096;

/// Returns the kernel's number of blocks if all sizes are large.
inline double countBlocks(KernelOp kernel) {
  auto large = [](llvm::StringRef) { return std::optional<int64_t>(kLarge); };
  auto number = kernel.getBlocks().evaluate(large);
  return number ? double(*number) : INFINITY;
}

/// Returns true if the first kernel is always launched, has a block, and has ended when `kernel`
/// starts.
inline bool isFirstOver(ProgramOp program, KernelOp kernel) {
  llvm::SmallVector<KernelOp> kernels(program.getBody().getOps<KernelOp>());
  KernelOp first = kernels.front();
  auto blocks = first.getBlocks().getConstant();
  if (!onf::getLaunchConditions(first).empty() || !blocks || *blocks <= 0 ||
      !first.getBody().getOps<ExitIfOp>().empty())
    return false;
  for (KernelOp other : llvm::ArrayRef(kernels).drop_front())
    if (!other->hasAttr(kOverlapAttr)) // waits for the first
      return other == kernel || other->isBeforeInBlock(kernel);
  return false;
}

/// Returns the skip flag of a kernel (kSkipFlagAttr), or null. The kernel has no work if the flag is 0.
inline mlir::Value getSkipFlag(KernelOp kernel) {
  auto program = kernel->getParentOfType<ProgramOp>();
  auto name = kernel->getAttrOfType<mlir::StringAttr>(kSkipFlagAttr);
  llvm::SmallVector<llvm::StringRef> names = program.getAllNames();
  auto found = name ? llvm::find(names, name.getValue()) : names.end();
  return found == names.end() ? mlir::Value() : program.getBody().getArgument(found - names.begin());
}

inline llvm::SetVector<KernelOp> raisersOf(mlir::Value flag) {
  llvm::SetVector<KernelOp> raisers;
  for (mlir::Operation *user : flag.getUsers())
    if (llvm::isa<RaiseOp>(user))
      raisers.insert(user->getParentOfType<KernelOp>());
  return raisers;
}

/// Returns true if `flag` stays 0 whenever `other` does. That holds if the flag is `other`, or if
/// every kernel that raises it is skipped by such a flag, which only earlier kernels raise.
inline bool isWithin(mlir::Value flag, mlir::Value other) {
  llvm::SetVector<mlir::Value> flags;
  flags.insert(flag);
  for (size_t k = 0; k < flags.size(); ++k) {
    if (flags[k] == other)
      continue;
    for (KernelOp raiser : raisersOf(flags[k])) {
      mlir::Value of = getSkipFlag(raiser);
      if (!of ||
          (of != other && !llvm::all_of(raisersOf(of), [&](KernelOp first) { return first->isBeforeInBlock(raiser); })))
        return false;
      flags.insert(of);
    }
  }
  return true;
}

/// Returns true if `kernel`, which is after `writer`, waits for all earlier kernels whenever
/// `writer` does work: it does not overlap with the kernel before it, and its skip flag, if any, is
/// `writer`'s.
inline bool waitsAfter(KernelOp kernel, KernelOp writer) {
  return !kernel->hasAttr(kOverlapAttr) &&
         (!kernel->hasAttr(kSkipFlagAttr) || kernel->getAttr(kSkipFlagAttr) == writer->getAttr(kSkipFlagAttr));
}

/// Returns true if hosts launch `kernel` whenever they launch `other`.
inline bool isLaunchedWith(KernelOp kernel, KernelOp other) {
  auto pairs = onf::getLaunchConditions(other);
  return llvm::all_of(onf::getLaunchConditions(kernel),
                      [&](const auto &pair) { return llvm::is_contained(pairs, pair); });
}

/// Returns true if `waiting` has waited whenever the later kernel `reader` overlaps with the kernel
/// before it. That holds if hosts launch `waiting` whenever they launch `reader`, or whenever they
/// launch any kernel between them: if none of those is launched, hosts do not let `reader` overlap.
/// A kernel without blocks is not launched either; hosts then forget earlier launches
/// (gpu::Launch::isReliedOn).
inline bool hasWaitedFor(KernelOp waiting, KernelOp reader) {
  if (isLaunchedWith(waiting, reader))
    return true;
  for (mlir::Operation *between = waiting->getNextNode(); between != reader; between = between->getNextNode())
    if (auto kernel = llvm::dyn_cast_or_null<KernelOp>(between);
        !between || (kernel && !isLaunchedWith(waiting, kernel)))
      return false;
  return true;
}

/// Returns the kernel after which `reader` can read the flag without waiting, or null. It is the
/// first kernel after all that raise the flag that waits whenever they do work, and that has waited
/// when `reader` runs (hasWaitedFor). The flag is final then.
inline KernelOp findWaiting(mlir::Value flag, KernelOp reader) {
  llvm::SetVector<KernelOp> raisers = raisersOf(flag);
  for (auto kernel : reader->getParentOfType<ProgramOp>().getBody().getOps<KernelOp>()) {
    if (kernel == reader)
      break;
    bool waits = llvm::all_of(
        raisers, [&](KernelOp raiser) { return raiser->isBeforeInBlock(kernel) && waitsAfter(kernel, raiser); });
    if (!raisers.empty() && waits && hasWaitedFor(kernel, reader))
      return kernel;
  }
  return nullptr;
}

/// Returns the kernel launched directly after `kernel` if it overlaps with it and its own skip flag
/// does not imply `flag`. Returns null otherwise. It would not have waited for earlier kernels if
/// `kernel` is skipped.
inline KernelOp findUnsafeOverlap(KernelOp kernel, mlir::Value flag) {
  auto next = llvm::dyn_cast_or_null<KernelOp>(kernel->getNextNode());
  if (!next || !next->hasAttr(kOverlapAttr))
    return nullptr;
  mlir::Value of = getSkipFlag(next);
  return of && isWithin(of, flag) ? nullptr : next;
}

} // namespace moa::device

#endif // MOA_DIALECTS_DEVICE_TRANSFORMS_LAUNCHES_H
