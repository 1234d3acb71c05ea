//===- Launch.h - launch parameters of a device kernel ----------*- C++ -*-===//
//
// Facts about a kernel on which its code and the host code must agree. All targets derive them
// here.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_TARGET_GPU_LAUNCH_H
#define MOA_TARGET_GPU_LAUNCH_H

#include "dialects/Device/IR/Device.h"
#include "lib/Target/Signature.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include <optional>
#include <string>
#include <vector>

namespace moa::gpu {

/// A TMA descriptor (tensor map) for tiles of an array: `rows` indices along `rowAxis`, every
/// `step`-th one, and boxes of 128 bytes of the last axis.
struct TensorMap {
  std::string name;
  unsigned array = 0, rowAxis = 0;
  int64_t rows = 0;
  SymExpr step = SymExpr(1);
  bool hasSteps() const { return step != SymExpr(1); }
};

/// The parameters of one launch, in this order: array pointers, tensor maps, scalars, then the
/// values of symbols and strides.
struct KernelParameters {
  std::vector<unsigned> arrays; // numbers of the program's arguments
  std::vector<TensorMap> maps;
  std::vector<unsigned> scalars;
  std::vector<std::string> symbols; // `N`, `Q.s2`
};

/// Returns whether an index is known to be below 2^32.
bool isWord(mlir::Value index);

/// The host may skip a launch unless x > y for all of these pairs (onf::kLaunchIfAttr).
using LaunchCondition = std::vector<std::pair<SymExpr, SymExpr>>;

/// The host's part of one launch of a program: plain data.
struct HostLaunch {
  std::string name;
  SymExpr blocks;
  std::optional<int64_t> mostBlocks; ///< the largest grid of a persistent kernel
  int64_t threads = 0, sharedBytes = 0;
  /// Overlapped launch (PDL, device::kOverlapAttr): this launch does not wait for its predecessor P
  /// if P took place; all launches before P have ended. One extra block of this launch waits for P,
  /// so that waiting for this launch implies P.
  bool overlapsPrevious = false;
  /// The array with the skip flag, which is 0 if the kernel has nothing to do (device::kSkipFlagAttr).
  /// `idleAfter` is the number of the launch after which blocks may read it without waiting. They
  /// then exit at once, except the last block, which waits.
  std::optional<unsigned> idle;
  unsigned idleAfter = 0;
  /// Only NAME_shown launches this kernel: it estimates errors.
  bool isReportOnly = false;
  unsigned number = 0;
  /// Later launches rely on this launch's wait (device::findWaiting), but the host skips it if it
  /// has no blocks. In this case the next launch must not overlap with any earlier one.
  bool isReliedOn = false;
  /// Returns a launch number. The host lets this launch overlap with the latest launch of the call
  /// if that has at least this number.
  unsigned getFirstOverlapped() const { return std::max(overlapsPrevious ? number - 1 : 0, idleAfter); }
  LaunchCondition condition;
  KernelParameters parameters;
  /// Set by HostTable: the number of the condition, and that of the first tensor map among all maps.
  std::optional<unsigned> conditionNumber;
  unsigned firstMap = 0;

  /// Returns C that limits a number of blocks to the largest grid.
  std::string printGrid(const std::string &count) const;
};

/// One launch of a program, with the facts that its code needs.
struct Launch : HostLaunch {
  /// Another launch of the program precedes this one. The device may then start its blocks while
  /// that launch ends. The kernel first waits until the earlier blocks have ended and their writes
  /// are visible (programmatic dependent launch, CUDA Programming Guide).
  bool follows = false;
  /// Blocks let the next launch start early (griddepcontrol.launch_dependents), once they have
  /// started and waited. True if the next launch does not wait, or if this launch has few blocks:
  /// the waiting blocks then do not take their places.
  bool letsNextStart = false;
  /// Numbers of the arrays that earlier launches write and this one only reads. They are constant
  /// after the wait for these launches.
  llvm::SmallVector<unsigned> awaited;
  bool awaits(unsigned array) const { return llvm::is_contained(awaited, array); }
  /// Arrays that this kernel writes, and those that it also reads while other blocks write them.
  llvm::SmallVector<unsigned> written, exchanged;
  bool writes(unsigned array) const { return llvm::is_contained(written, array); }
  /// Returns whether nothing else writes an array while this kernel runs.
  bool isNoAlias(unsigned array) const { return !awaits(array) && !llvm::is_contained(exchanged, array); }
  /// Blocks whose registers fit one multiprocessor together, if the kernel is warp-specialised.
  int64_t residents = 1;
  /// In persistent kernels (device.next_block): the op that fetches the next block number; the ops
  /// before the roles that depend on it, in order; their values that consumers read.
  device::NextBlockOp nextBlock;
  llvm::SmallVector<mlir::Operation *> perBlockOps;
  llvm::SmallVector<mlir::Value> perBlockValues;
  bool isPerBlock(mlir::Operation *op) const { return llvm::is_contained(perBlockOps, op); }
  /// The stages of the kernel (device.stages), or null.
  device::StagesOp stages;
  /// Offsets in shared memory: of the producer's barrier (a block's numbers are stored), of the
  /// consumers' barrier (all threads have left a block), and of the word that is 0 after the last.
  int64_t givenBarrier = 0, leftBarrier = 0, hasBlockOffset = 0;

  /// Returns the byte offset of a ring, of barriers or of a list in shared memory.
  int64_t getOffset(mlir::Value memory) const { return offsets.lookup(memory); }
  int64_t getKeptOffset(mlir::Value value) const { return firstKept + 8 * (llvm::find(kept, value) - kept.begin()); }
  /// Returns the tensor map of an array's tiles of the given rows.
  const TensorMap &getMap(mlir::Value array, unsigned rowAxis, int64_t rows, const SymExpr &step = SymExpr(1)) const;
  const TensorMap &getMap(device::CopyOp copy) const;

  llvm::DenseMap<mlir::Value, int64_t> offsets;
  /// Byte offsets of the 4 words in which `device.clear_unseen` collects bits, and of the 32 words in
  /// which `device.collect` counts members per warp. 0: none.
  int64_t clearWords = 0, collectWords = 0;
  /// The numbers that `device.kept` reads, without repetition, and the byte offset of the first.
  std::vector<mlir::Value> kept;
  int64_t firstKept = 0;
};

/// An array of a program's workspace. `number` is its position among the program's arguments.
struct WorkspaceArray : Parameter {
  unsigned number = 0;
  SymExpr offset, bytes;
  /// It starts at unit * floor((end of the array before + slack) / unit).
  int64_t unit = 1, slack = 0;
};

/// Returns the arrays of the workspace in order of placement, wider elements first, so that all are
/// aligned. They are aligned to 64 bytes if tiles or wide accesses need it. If launches overlap, no
/// two arrays share a cache line of 128 bytes, wherever the workspace starts.
std::vector<WorkspaceArray> getWorkspace(device::ProgramOp program);
/// Returns the array with this name, which must exist.
const WorkspaceArray &getArray(llvm::ArrayRef<WorkspaceArray> workspace, llvm::StringRef name);
SymExpr getWorkspaceBytes(llvm::ArrayRef<WorkspaceArray> arrays);

/// Returns the launch of a kernel. Rings are at multiples of 1024 bytes, the period of the 128-byte
/// swizzle. Arrays and scalars are in the order of the program's arguments, symbols in the order of
/// their names.
Launch getLaunch(device::KernelOp kernel);

} // namespace moa::gpu

#endif // MOA_TARGET_GPU_LAUNCH_H
