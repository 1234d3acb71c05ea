//===- Launch.h - how a device kernel is launched ---------------*- C++ -*-===//
//
// What every text of a kernel must agree on with the host code that launches it.
// All of it follows from the kernel, so that each target reads the same facts.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_TARGET_GPU_LAUNCH_H
#define MOA_TARGET_GPU_LAUNCH_H

#include "dialects/Device/IR/Device.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include <optional>
#include <string>
#include <vector>

namespace moa::gpu {

/// The descriptor of tiles of an array: `rows` along `rowAxis`, of which it has every `step`-th
/// index, and 128 bytes of the last axis per box.
struct TensorMap {
  std::string name;
  unsigned array = 0, rowAxis = 0;
  int64_t rows = 0;
  SymExpr step = SymExpr(1);
  bool hasSteps() const { return step != SymExpr(1); }
};

/// What one launch passes to its kernel, in this order: pointers of arrays,
/// descriptors of tiles, values of scalars, symbols and strides.
struct KernelParameters {
  std::vector<unsigned> arrays; // numbers of the program's arguments
  std::vector<TensorMap> maps;
  std::vector<unsigned> scalars;
  std::vector<std::string> symbols; // `N`, `Q.s2`
};

/// Whether an index is known to be below 2^32.
bool isWord(mlir::Value index);

/// One launch of a program.
struct Launch {
  std::string name;
  SymExpr blocks;
  int64_t threads = 0, sharedBytes = 0;
  /// Whether it stands behind another launch of its program. The host then allows the device to
  /// start its blocks while the last blocks of that one end, and the kernel begins by waiting until
  /// all of them have, and what they wrote is seen: programmatic dependent launch, CUDA Programming
  /// Guide.
  bool follows = false;
  /// Whether it need not wait for the launch in front of it (device::kBesideAttr), if that has been
  /// launched: then all else has ended before. It has one block more, which ends behind that
  /// launch, so that who waits for this one waits for both.
  bool isBeside = false;
  /// Whether the next launch may start beside this one, which blocks tell when they have started,
  /// and waited: it need not wait, or waits where this one has few blocks, whose places those that
  /// wait do not take.
  bool letsNextStart = false;
  /// The array of the flag that is 0 where it has nothing to do (device::kIdleAttr), and the number
  /// of the launch behind which blocks may read it without waiting. They end then, but for the last
  /// one, which waits.
  std::optional<unsigned> idle;
  unsigned idleBehind = 0;
  /// Whether it only finds what NAME_shown tells, which launches it.
  bool isTelling = false;
  /// Its place among the launches of the program.
  unsigned number = 0;
  /// Later launches count on its wait (device::findWaiting), but a host does not launch it if it
  /// has no blocks. The host forgets the launches before it then, so that the next one does not
  /// overlap with any.
  bool isCountedOn = false;
  /// The host allows it to overlap with the latest launch of the call if that is this one or one
  /// behind it.
  unsigned getLeastBefore() const { return std::max(isBeside ? number - 1 : 0, idleBehind); }
  /// Arrays that earlier launches write and this one only reads, by number: they change until that
  /// is waited for, and are constant behind it.
  llvm::SmallVector<unsigned> awaited;
  bool awaits(unsigned array) const { return llvm::is_contained(awaited, array); }
  /// Arrays that this kernel writes, and those of them that it also reads: other blocks write them
  /// meanwhile.
  llvm::SmallVector<unsigned> written, exchanged;
  bool writes(unsigned array) const { return llvm::is_contained(written, array); }
  /// Whether nothing else changes an array while this kernel runs.
  bool isAlone(unsigned array) const {
    return !awaits(array) && !llvm::is_contained(exchanged, array);
  }
  /// It need not be launched but where x > y for each of these (onf::kRunsAttr).
  std::vector<std::pair<SymExpr, SymExpr>> condition;
  /// Blocks whose registers a multiprocessor has together, where roles divide them.
  int64_t residents = 1;
  /// Where blocks go on with others (device.next_block): that operation, what stands in front of
  /// the roles and depends on it, in order, and the values of it that consumers read.
  device::NextBlockOp nextBlock;
  llvm::SmallVector<mlir::Operation *> ofBlock;
  llvm::SmallVector<mlir::Value> given;
  bool isOfBlock(mlir::Operation *op) const { return llvm::is_contained(ofBlock, op); }
  /// What it does in stages (device.stages); null where it has none.
  device::StagesOp stages;
  /// The most blocks of a grid where blocks do the work of further ones.
  std::optional<int64_t> getMostBlocks() const {
    if (stages)
      return static_cast<int64_t>(device::StagesOp(stages).getResidents()) + isBeside;
    if (!nextBlock)
      return std::nullopt;
    return static_cast<int64_t>(device::NextBlockOp(nextBlock).getResidents()) + isBeside;
  }
  /// The first bytes of two barriers: of the producer, which has given numbers of a block, and of
  /// the consumers' threads, which have left one; and of the number that says whether there is a
  /// block.
  int64_t givenBarrier = 0, leftBarrier = 0, isMorePlace = 0;
  KernelParameters parameters;

  /// The first byte of a ring, of barriers or of a list in shared memory.
  int64_t getPlace(mlir::Value memory) const { return places.lookup(memory); }
  /// The first byte of the four words `device.clear_unseen` collects its bits in.
  int64_t getClearWords() const { return clearWords; }
  /// The first byte of the 32 words `device.collect` counts the warps' members in.
  int64_t getCollectWords() const { return collectWords; }
  /// The numbers that `device.kept` reads, each once, and the first byte of one of them.
  llvm::ArrayRef<mlir::Value> getKept() const { return kept; }
  int64_t getKeptPlace(mlir::Value number) const {
    return firstKept + 8 * (llvm::find(kept, number) - kept.begin());
  }
  /// The descriptor of an array's tiles of so many rows.
  const TensorMap &getMap(mlir::Value array, unsigned rowAxis, int64_t rows,
                          const SymExpr &step = SymExpr(1)) const;
  const TensorMap &getMap(device::CopyOp copy) const;

  llvm::DenseMap<mlir::Value, int64_t> places;
  int64_t clearWords = 0, collectWords = 0, firstKept = 0;
  std::vector<mlir::Value> kept;
};

/// An array of a program's workspace: its number among the program's arguments, the type
/// of an element, where it starts and how many bytes it has.
struct WorkspaceArray {
  unsigned number = 0;
  std::string name;
  mlir::Type element;
  SymExpr offset, bytes;
  std::vector<SymExpr> extents;
  /// It starts at unit * floor((end of the array before + slack) / unit).
  int64_t unit = 1, slack = 0;
};

/// Whether an array starts where only a call knows: a launcher then adds up bytes once for all of
/// them, as what stands behind many has a long expression.
bool hasRuntimePlaces(llvm::ArrayRef<WorkspaceArray> arrays);

/// The arrays of the workspace one behind the other, those of wider elements first, so that
/// all of them are aligned: to 64 bytes where tiles of one are copied, or runs begin where wide
/// accesses may. Where launches overlap, no two arrays share a line of 128 bytes, wherever the
/// workspace starts.
std::vector<WorkspaceArray> getWorkspace(device::ProgramOp program);
/// The bytes of all of them.
SymExpr getWorkspaceBytes(llvm::ArrayRef<WorkspaceArray> arrays);

/// The launch of a kernel. Rings stand at multiples of 1024 bytes, where the
/// 128-byte swizzle repeats; arrays and scalars are in the order of the program's
/// arguments, symbols in that of their names.
Launch getLaunch(device::KernelOp kernel);

} // namespace moa::gpu

#endif // MOA_TARGET_GPU_LAUNCH_H
