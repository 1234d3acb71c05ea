//===- Instructions.h - sequences of PTX instructions as ops ----*- C++ -*-===//
//
// Encodings follow the PTX ISA 8.6: mbarrier (9.7.13.15), cp.async.bulk.tensor (9.7.9.25), wgmma
// and its matrix descriptors (9.7.15). Instructions that must stay together are one piece of
// assembly. For example, the products of one contraction and their fences, or a wait and the
// registers that it protects.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_CONVERSION_DEVICETONVVM_INSTRUCTIONS_H
#define MOA_CONVERSION_DEVICETONVVM_INSTRUCTIONS_H

#include "dialects/Device/IR/LayoutMaps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Builders.h"

namespace moa::nvvm {

using Values = llvm::SmallVector<mlir::Value>;

/// Address spaces of pointers.
constexpr unsigned kGlobalSpace = static_cast<unsigned>(mlir::NVVM::NVVMMemorySpace::Global);
constexpr unsigned kSharedSpace = static_cast<unsigned>(mlir::NVVM::NVVMMemorySpace::Shared);

/// The products of one contraction.
struct ContractionShape {
  int64_t columns = 0, steps = 0; // of the result, and of 32 bytes along the contraction
  mlir::Type element;             // of the operands
  int64_t aRows = 0;              // of the tile that holds a; 0: a is in registers
  int64_t bRows = 0;              // of b's tile
  bool byColumns = false;         // b has the contraction along its rows
};

/// Emits instructions at a builder's insertion point. Shared memory has 32-bit addresses; all other
/// numbers have the width in their names.
class Instructions {
public:
  explicit Instructions(mlir::OpBuilder &builder) : b(builder) {}

  //===--- Numbers --------------------------------------------------------===//
  /// Constants are made once each, at the start of `entry`.
  void setEntry(mlir::Block &block) { entry = &block; }
  mlir::Value constant(mlir::TypedAttr value);
  /// Returns the result of a new op, folded if its operands are integers: most parts of a
  /// register's position are constants, and there is an op per register.
  template <typename Op, typename... Arguments> mlir::Value make(Arguments &&...arguments) {
    return simplify(Op::create(b, loc, std::forward<Arguments>(arguments)...));
  }
  /// Returns the result of a new op at the insertion point; erases the op if it folds.
  mlir::Value simplify(mlir::Operation *op);
  mlir::Value i32(int64_t value);
  mlir::Value i64(int64_t value);
  mlir::Value f32(float value);
  mlir::Value i1(bool value);
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, mlir::Value y);
  mlir::Value add(mlir::Value x, int64_t y);
  mlir::Value mul(mlir::Value x, int64_t y);
  mlir::Value div(mlir::Value x, int64_t y); // unsigned
  mlir::Value rem(mlir::Value x, int64_t y);
  mlir::Value equals(mlir::Value x, int64_t y);
  /// Returns the low 32 bits of an i64.
  mlir::Value narrow(mlir::Value x);
  mlir::Value widen(mlir::Value x);

  //===--- Assembly -------------------------------------------------------===//
  Values assembly(mlir::StringRef text, mlir::StringRef constraints, mlir::ValueRange operands, mlir::TypeRange results,
                  bool isVolatile = true);
  mlir::Value call(mlir::StringRef intrinsic, mlir::Type type, mlir::ValueRange operands);

  //===--- Threads --------------------------------------------------------===//
  mlir::Value thread();
  mlir::Value block();
  /// Returns the value of the lane whose number differs by `mask`; of 1, 32 or 64 bits.
  mlir::Value shuffle(mlir::Value value, int64_t mask, std::optional<int64_t> group = std::nullopt);
  /// Returns the value of the lane with this number.
  mlir::Value shuffleFrom(mlir::Value value, mlir::Value lane);
  /// Returns whether one of the conditions holds in some lane.
  mlir::Value vote(mlir::ValueRange conditions);
  /// Returns the value of lane 0.
  mlir::Value broadcast(mlir::Value value);
  /// Waits for all threads of the block, or for `threads` of them at a numbered barrier.
  void synchronize();
  void synchronize(mlir::Value barrier, int64_t threads);
  void setRegisters(int64_t count, bool more);

  //===--- Shared memory --------------------------------------------------===//
  mlir::Value sharedPointer(mlir::Value address);
  void initBarrier(mlir::Value address, int64_t arrivals);
  /// Makes initialised barriers visible to the copy engine.
  void publishBarriers();
  /// Adds one to a counter in global memory, once per warp, after all stores of the warp (release).
  void signal(mlir::Value counter);
  /// Loads a 32-bit counter of signals (acquire): all stores before these signals are visible
  /// afterwards.
  mlir::Value signals(mlir::Value counter);
  /// Adds one to a 32-bit counter in global memory. Returns its old value.
  mlir::Value fetchAndAdd(mlir::Value counter);
  /// Adds one to the counter in one thread, after all stores of the block before its last barrier
  /// (release).
  void signalAlone(mlir::Value counter);
  /// Waits in one thread until the 32-bit counter reaches `count` (acquire).
  void awaitSignals(mlir::Value counter, mlir::Value count);
  /// Sets a 32-bit flag to 1, which other threads may do at the same time.
  void raise(mlir::Value flag);
  void wait(mlir::Value barrier, mlir::Value parity);
  /// Waits until all blocks of the earlier launches have ended and their writes are visible.
  void awaitEarlierLaunches();
  /// Returns whether a flag is 0. The flag must not change any more.
  mlir::Value hasNothingToDo(mlir::Value flag);
  /// Waits for the earlier launches in the last block, which then exits if `exits`. The next launch
  /// may start meanwhile.
  void awaitAsLastBlock(bool exits);
  /// Lets the next launch start once all blocks have done this or ended.
  void letNextLaunchStart();
  /// Arrives once, in lane 0.
  void arrive(mlir::Value barrier, mlir::Value lane);
  /// Arrives once per thread.
  void arriveAll(mlir::Value barrier);
  void expectBytes(mlir::Value barrier, int64_t bytes);
  /// Copies one box of an array; coordinates are innermost first.
  void copyBox(mlir::Value to, mlir::Value map, mlir::Value barrier, mlir::ValueRange at);
  void copyUnit(mlir::Value to, mlir::Value from, mlir::Value bytes);
  /// Arrives once per thread, when its copies of units have landed.
  void arriveCopied(mlir::Value barrier);
  void syncCluster();
  /// Reads a word at an address of this block in the shared memory of another block of the cluster.
  mlir::Value loadPeer(mlir::Value address, mlir::Value rank, mlir::Type type);
  void storeBox(mlir::Value from, mlir::Value map, mlir::ValueRange at);
  /// Commits the boxes stored so far as one group. With `andWait` waits until all groups have been
  /// read.
  void commitStores(bool andWait);
  void awaitStores();
  /// Makes writes to shared memory visible to the copy engine and the tensor cores.
  void publishShared();

  //===--- Tensor cores ---------------------------------------------------===//
  /// Returns the descriptor of a tile, without its steps; `rows` is 0 unless the tile is by
  /// columns.
  mlir::Value descriptor(mlir::Value address, int64_t rows);
  /// Starts sum + a · b, from zero without `sum`. `a` is a descriptor, or four registers per step.
  Values contract(const ContractionShape &shape, mlir::ValueRange sum, mlir::ValueRange a, mlir::Value bTile);
  /// Waits for all but `pending` groups of products. Returns the registers, which may then be read.
  Values awaitProducts(mlir::ValueRange sum, int64_t pending);

  /// Returns sum + left · right of one tile, computed by a warp (mma).
  Values multiply(const device::TileInstruction &tile, mlir::Type element, mlir::ValueRange sum,
                  mlir::ValueRange leftWords, mlir::ValueRange rightWords);
  /// Loads matrices of 8 by 8 16-bit elements; lanes hold the addresses of their rows (ldmatrix).
  Values loadMatrices(mlir::Value address, int64_t count, bool transposed);

  //===--- Arithmetic -----------------------------------------------------===//
  mlir::Value exp2(mlir::Value x);
  mlir::Value reciprocal(mlir::Value x, bool subnormals);
  /// Returns the same value, of which LLVM knows nothing.
  mlir::Value opaque(mlir::Value x);
  /// Rounds four floats to f8E4M3FN, the first one in the lowest byte.
  mlir::Value packFour(mlir::ValueRange x);
  /// Makes two 16-bit floats as `device.half_from_bits` does, the first one in the low half.
  mlir::Value halvesFromBits(mlir::Value low, mlir::Value high);
  /// Adds two pairs of 16-bit floats; adds the floats of a pair as f32.
  mlir::Value addHalves(mlir::Value x, mlir::Value y);
  mlir::Value sumOfHalves(mlir::Value x);
  /// Rounds two pairs of 16-bit floats to f8E4M3FN, the first one in the lowest byte.
  mlir::Value packPairs(mlir::Value low, mlir::Value high);
  /// Rounds a float to f8E4M3FN, as a byte; converts such a byte to a float.
  mlir::Value toFloat8(mlir::Value x);
  mlir::Value fromFloat8(mlir::Value x);
  /// Rounds two floats to 16 bits, the first one in the low half.
  mlir::Value pack(mlir::Value low, mlir::Value high, bool isBF16);

private:
  mlir::Value exchange(mlir::Value value, mlir::Value operand, mlir::NVVM::ShflKind kind, mlir::Value lanes = {});

  mlir::Block *entry = nullptr;
  mlir::Operation *lastConstant = nullptr;
  llvm::DenseMap<mlir::Attribute, mlir::Value> constants;

public:
  mlir::OpBuilder &b;
  mlir::Location loc = mlir::UnknownLoc::get(b.getContext());
};

} // namespace moa::nvvm

#endif // MOA_CONVERSION_DEVICETONVVM_INSTRUCTIONS_H
