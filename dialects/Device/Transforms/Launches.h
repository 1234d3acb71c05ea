//===- Launches.h - when hosts launch kernels, and how large ----*- C++ -*-===//
#ifndef MOA_DIALECTS_DEVICE_TRANSFORMS_LAUNCHES_H
#define MOA_DIALECTS_DEVICE_TRANSFORMS_LAUNCHES_H

#include "dialects/Device/IR/Device.h"
#include "dialects/Device/Transforms/Passes.h"
#include "dialects/ONF/IR/Hints.h"
#include "lib/Support/SymExpr.h"
#include <cmath>

namespace moa::device {

/// What a host launches a kernel for, pair by pair.
inline llvm::SmallVector<std::pair<mlir::Attribute, mlir::Attribute>> conditionsOf(KernelOp kernel) {
  llvm::SmallVector<std::pair<mlir::Attribute, mlir::Attribute>> pairs;
  if (auto runs = kernel->getAttrOfType<mlir::ArrayAttr>(onf::kRunsAttr))
    for (size_t k = 0; k + 1 < runs.size(); k += 2)
      pairs.emplace_back(runs[k], runs[k + 1]);
  return pairs;
}

/// With how many sizes the number of a kernel's blocks grows.
inline unsigned degreeOf(KernelOp kernel) { return SymExpr::parse(kernel.getBlocks())->getDegree(); }

/// What sizes are taken to be where blocks of kernels are compared that grow alike.
inline constexpr int64_t kLarge = 4096;

/// Blocks of a kernel where all sizes are large.
inline double countBlocks(KernelOp kernel) {
  auto large = [](llvm::StringRef) { return std::optional<int64_t>(kLarge); };
  auto number = SymExpr::parse(kernel.getBlocks())->evaluate(large);
  return number ? double(*number) : INFINITY;
}

/// The flag that says whether a kernel has anything to do (kIdleAttr); null if there is none.
inline mlir::Value getIdleFlag(KernelOp kernel) {
  auto program = kernel->getParentOfType<ProgramOp>();
  auto name = kernel->getAttrOfType<mlir::StringAttr>(kIdleAttr);
  llvm::SmallVector<llvm::StringRef> names = program.getAllNames();
  auto found = name ? llvm::find(names, name.getValue()) : names.end();
  return found == names.end() ? mlir::Value() : program.getBody().getArgument(found - names.begin());
}

/// Whether a kernel waits for all before it wherever one that it stands behind does something: it does not run beside another
/// one, and ends early, if at all, by the flag that this one has nothing to do by.
inline bool waitsBehind(KernelOp kernel, KernelOp writer) {
  return !kernel->hasAttr(kBesideAttr) &&
         (!kernel->hasAttr(kIdleAttr) || kernel->getAttr(kIdleAttr) == writer->getAttr(kIdleAttr));
}

/// Whether a flag that kernels in front of one raise stays 0 where another one does: it is that one, or only kernels raise it that
/// have nothing to do by a flag that is within the other one.
inline bool isWithin(mlir::Value flag, mlir::Value other, KernelOp behind) {
  return flag == other || llvm::all_of(flag.getUsers(), [&](mlir::Operation *user) {
           auto raiser = user->getParentOfType<KernelOp>();
           mlir::Value of = llvm::isa<RaiseOp>(user) ? getIdleFlag(raiser) : other;
           return of && (of == other || (raiser->isBeforeInBlock(behind) && isWithin(of, other, raiser)));
         });
}

/// The kernel that waits until a flag is what it stays, and behind which others read it without waiting: the first behind
/// all that raise it that waits wherever they do something. Null if there is none.
inline KernelOp findWaiting(ProgramOp program, mlir::Value flag) {
  KernelOp waiting, raiser;
  for (auto kernel : program.getBody().getOps<KernelOp>()) {
    bool raises = llvm::any_of(flag.getUsers(), [&](mlir::Operation *user) {
      return llvm::isa<RaiseOp>(user) && kernel->isAncestor(user);
    });
    if (raises)
      raiser = kernel, waiting = nullptr;
    else if (raiser && !waiting && waitsBehind(kernel, raiser))
      waiting = kernel;
  }
  return waiting;
}

} // namespace moa::device

#endif // MOA_DIALECTS_DEVICE_TRANSFORMS_LAUNCHES_H
