//===- Launches.h - when hosts launch kernels, and how large ----*- C++ -*-===//
#ifndef MOA_DIALECTS_DEVICE_TRANSFORMS_LAUNCHES_H
#define MOA_DIALECTS_DEVICE_TRANSFORMS_LAUNCHES_H

#include "dialects/Device/IR/Device.h"
#include "dialects/Device/Transforms/Passes.h"
#include "dialects/ONF/IR/Hints.h"
#include "lib/Support/SymExpr.h"
#include "llvm/ADT/SetVector.h"
#include <cmath>

namespace moa::device {

/// What a host launches a kernel for, pair by pair.
inline llvm::SmallVector<std::pair<mlir::Attribute, mlir::Attribute>>
conditionsOf(KernelOp kernel) {
  llvm::SmallVector<std::pair<mlir::Attribute, mlir::Attribute>> pairs;
  if (auto runs = kernel->getAttrOfType<mlir::ArrayAttr>(onf::kRunsAttr))
    for (size_t k = 0; k + 1 < runs.size(); k += 2)
      pairs.emplace_back(runs[k], runs[k + 1]);
  return pairs;
}

/// With how many sizes the number of a kernel's blocks grows.
inline unsigned degreeOf(KernelOp kernel) {
  return SymExpr::parse(kernel.getBlocks())->getDegree();
}

/// What sizes are taken to be where blocks of kernels are compared that grow alike.
inline constexpr int64_t kLarge = 4096;

/// Blocks of a kernel where all sizes are large.
inline double countBlocks(KernelOp kernel) {
  auto large = [](llvm::StringRef) { return std::optional<int64_t>(kLarge); };
  auto number = SymExpr::parse(kernel.getBlocks())->evaluate(large);
  return number ? double(*number) : INFINITY;
}

/// Whether the first kernel is always launched, has a block, and has ended when another one starts.
inline bool isFirstOver(ProgramOp program, KernelOp kernel) {
  llvm::SmallVector<KernelOp> kernels(program.getBody().getOps<KernelOp>());
  KernelOp first = kernels.front();
  auto blocks = SymExpr::parse(first.getBlocks())->getConstant();
  if (!conditionsOf(first).empty() || !blocks || *blocks <= 0 ||
      !first.getBody().getOps<ExitIfOp>().empty())
    return false;
  for (KernelOp other : llvm::ArrayRef(kernels).drop_front())
    if (!other->hasAttr(kBesideAttr)) // this one has waited for the first
      return other == kernel || other->isBeforeInBlock(kernel);
  return false;
}

/// The flag that says whether a kernel has anything to do (kIdleAttr); null if there is none.
inline mlir::Value getIdleFlag(KernelOp kernel) {
  auto program = kernel->getParentOfType<ProgramOp>();
  auto name = kernel->getAttrOfType<mlir::StringAttr>(kIdleAttr);
  llvm::SmallVector<llvm::StringRef> names = program.getAllNames();
  auto found = name ? llvm::find(names, name.getValue()) : names.end();
  return found == names.end() ? mlir::Value()
                              : program.getBody().getArgument(found - names.begin());
}

/// The kernels that raise a flag.
inline llvm::SetVector<KernelOp> raisersOf(mlir::Value flag) {
  llvm::SetVector<KernelOp> raisers;
  for (mlir::Operation *user : flag.getUsers())
    if (llvm::isa<RaiseOp>(user))
      raisers.insert(user->getParentOfType<KernelOp>());
  return raisers;
}

/// Whether a flag stays 0 where another one does: it is that one, or only kernels raise it that
/// have nothing to do by a flag for which this holds, which kernels in front of them raise.
inline bool isWithin(mlir::Value flag, mlir::Value other) {
  llvm::SetVector<mlir::Value> flags;
  flags.insert(flag);
  for (size_t k = 0; k < flags.size(); ++k) {
    if (flags[k] == other)
      continue;
    for (KernelOp raiser : raisersOf(flags[k])) {
      mlir::Value of = getIdleFlag(raiser);
      if (!of || (of != other && !llvm::all_of(raisersOf(of), [&](KernelOp first) {
                    return first->isBeforeInBlock(raiser);
                  })))
        return false;
      flags.insert(of);
    }
  }
  return true;
}

/// Whether a kernel waits for all before it wherever one that it stands behind does something: it
/// does not run beside another one, and ends early, if at all, by the flag that this one has
/// nothing to do by.
inline bool waitsBehind(KernelOp kernel, KernelOp writer) {
  return !kernel->hasAttr(kBesideAttr) &&
         (!kernel->hasAttr(kIdleAttr) || kernel->getAttr(kIdleAttr) == writer->getAttr(kIdleAttr));
}

/// Whether hosts launch a kernel wherever they launch another one.
inline bool isLaunchedWith(KernelOp kernel, KernelOp other) {
  auto pairs = conditionsOf(other);
  return llvm::all_of(conditionsOf(kernel),
                      [&](const auto &pair) { return llvm::is_contained(pairs, pair); });
}

/// Whether a kernel that waits has done so wherever another one behind it overlaps with what is in
/// front of that: it is launched wherever that one is, or wherever any kernel between them is, as
/// without one of these hosts do not let it overlap. A kernel without blocks is not launched
/// either: hosts forget the launches before it then (gpu::Launch::isCountedOn).
inline bool hasWaitedFor(KernelOp waiting, KernelOp reader) {
  if (isLaunchedWith(waiting, reader))
    return true;
  for (mlir::Operation *between = waiting->getNextNode(); between != reader;
       between = between->getNextNode())
    if (auto kernel = llvm::dyn_cast_or_null<KernelOp>(between);
        !between || (kernel && !isLaunchedWith(waiting, kernel)))
      return false;
  return true;
}

/// The kernel in front of another one that waits until a flag is what it stays, and behind which
/// that one reads it without waiting: the first behind all that raise it that waits wherever they
/// do something (hasWaitedFor). Null if there is none.
inline KernelOp findWaiting(mlir::Value flag, KernelOp reader) {
  llvm::SetVector<KernelOp> raisers = raisersOf(flag);
  for (auto kernel : reader->getParentOfType<ProgramOp>().getBody().getOps<KernelOp>()) {
    if (kernel == reader)
      break;
    bool waits = llvm::all_of(raisers, [&](KernelOp raiser) {
      return raiser->isBeforeInBlock(kernel) && waitsBehind(kernel, raiser);
    });
    if (!raisers.empty() && waits && hasWaitedFor(kernel, reader))
      return kernel;
  }
  return nullptr;
}

/// The kernel that runs beside another one and would not have waited where that one has nothing to
/// do by a flag; null if there is none.
inline KernelOp findUnsafeBeside(KernelOp kernel, mlir::Value flag) {
  auto next = llvm::dyn_cast_or_null<KernelOp>(kernel->getNextNode());
  if (!next || !next->hasAttr(kBesideAttr))
    return nullptr;
  mlir::Value of = getIdleFlag(next);
  return of && isWithin(of, flag) ? nullptr : next;
}

} // namespace moa::device

#endif // MOA_DIALECTS_DEVICE_TRANSFORMS_LAUNCHES_H
