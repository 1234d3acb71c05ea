//===- Instructions.h - sequences of PTX instructions as ops ----*- C++ -*-===//
//
// Encodings follow the PTX ISA 8.6: mbarrier (9.7.13.15), cp.async.bulk.tensor
// (9.7.9.25), wgmma and its matrix descriptors (9.7.15). What must not be torn apart
// (the products of one contraction and the fences around them, a wait and the
// registers it protects) is one piece of assembly.
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
struct Contraction {
  int64_t columns = 0, steps = 0; // of the result, and of 32 bytes along the contraction
  mlir::Type element;             // of the operands
  int64_t aRows = 0;              // of the tile a stands in; 0: it is in registers
  int64_t bRows = 0;              // of b's tile
  bool byColumns = false;         // b has the contraction along its rows
};

/// Writes instructions at a builder's insertion point. Shared memory is addressed
/// by 32 bits, all other numbers have the width their names say.
class Instructions {
public:
  explicit Instructions(mlir::OpBuilder &builder) : b(builder) {}

  //===--- Numbers --------------------------------------------------------===//
  /// Constants, of which each stands once, at the start of `entry`.
  void setEntry(mlir::Block &block) { entry = &block; }
  mlir::Value constant(mlir::TypedAttr value);
  /// An op's result. What integers alone decide is decided here: most numbers of a
  /// register's place are constants, and there is an op per register.
  template <typename Op, typename... Arguments> mlir::Value make(Arguments &&...arguments) {
    return simplify(Op::create(b, loc, std::forward<Arguments>(arguments)...));
  }
  /// The result of a new op at the insertion point, which may disappear.
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
  /// The low 32 bits of an i64.
  mlir::Value narrow(mlir::Value x);
  mlir::Value widen(mlir::Value x);

  //===--- Assembly -------------------------------------------------------===//
  Values assembly(mlir::StringRef text, mlir::StringRef constraints, mlir::ValueRange operands,
                  mlir::TypeRange results, bool isVolatile = true);
  mlir::Value call(mlir::StringRef intrinsic, mlir::Type type, mlir::ValueRange operands);

  //===--- Threads --------------------------------------------------------===//
  mlir::Value thread();
  mlir::Value block();
  /// The value of the lane whose number differs by `mask`; of 1, 32 or 64 bits.
  mlir::Value shuffle(mlir::Value value, int64_t mask, std::optional<int64_t> group = std::nullopt);
  /// The value of the lane of that number.
  mlir::Value shuffleFrom(mlir::Value value, mlir::Value lane);
  /// Whether one of the conditions holds in some lane.
  mlir::Value vote(mlir::ValueRange conditions);
  /// The value of lane 0.
  mlir::Value broadcast(mlir::Value value);
  /// Waits for all threads of the block, or for so many at a barrier of a number.
  void synchronize();
  void synchronize(mlir::Value barrier, int64_t threads);
  void setRegisters(int64_t count, bool more);

  //===--- Shared memory --------------------------------------------------===//
  mlir::Value sharedPointer(mlir::Value address);
  void initBarrier(mlir::Value address, int64_t arrivals);
  /// Makes initialised barriers known to the copy engine.
  void publishBarriers();
  /// Adds one to a counter in global memory, once per warp, behind all that the warp has stored.
  void signal(mlir::Value counter);
  /// A counter of signals, 32 bits; behind it everything is seen that stands in front of those in
  /// it.
  mlir::Value signals(mlir::Value counter);
  /// Adds one to a counter of 32 bits in global memory: what it was.
  mlir::Value fetchAndAdd(mlir::Value counter);
  /// Adds one to it, by one thread, behind everything that the block has stored before it met.
  void signalAlone(mlir::Value counter);
  /// Waits until it is as much as that, 32 bits; by one thread.
  void awaitSignals(mlir::Value counter, mlir::Value count);
  /// Sets a flag of 32 bits to 1, which other threads may do meanwhile.
  void raise(mlir::Value flag);
  void wait(mlir::Value barrier, mlir::Value parity);
  /// Until every block of the launches before has ended, and what they wrote is seen.
  void awaitEarlierLaunches();
  /// In the block behind the last one, which then ends, until the launch before has ended.
  void awaitLaunchBeside();
  /// Whether a flag is 0, which does not change any more.
  mlir::Value hasNothingToDo(mlir::Value flag);
  /// In the last block, until the launches before have ended; the next one may start meanwhile.
  void awaitAsLastBlock();
  /// The next launch may start when all blocks have done this, or ended.
  void letNextLaunchStart();
  /// One arrival, by lane 0.
  void arrive(mlir::Value barrier, mlir::Value lane);
  /// One arrival of each thread.
  void arriveAll(mlir::Value barrier);
  void expectBytes(mlir::Value barrier, int64_t bytes);
  /// One box of an array; coordinates innermost first.
  void copyBox(mlir::Value to, mlir::Value map, mlir::Value barrier, mlir::ValueRange at);
  void storeBox(mlir::Value from, mlir::Value map, mlir::ValueRange at);
  /// Makes the boxes stored so far one group, and waits until all groups have been read if asked
  /// to.
  void commitStores(bool andWait);
  void awaitStores();
  /// Makes writes to shared memory known to the copy engine and the tensor cores.
  void publishShared();

  //===--- Tensor cores ---------------------------------------------------===//
  /// The descriptor of a tile, without its steps; `rows` of a tile by columns, else 0.
  mlir::Value descriptor(mlir::Value address, int64_t rows);
  /// Starts sum + a · b, from zero without `sum`. `a` is a descriptor, or four
  /// registers per step.
  Values contract(const Contraction &shape, mlir::ValueRange sum, mlir::ValueRange a,
                  mlir::Value bTile);
  /// Waits for all but `pending` groups of products, and passes the registers that
  /// may be read after it.
  Values awaitProducts(mlir::ValueRange sum, int64_t pending);

  /// sum + a · b of one tile, by a warp.
  Values multiply(const device::TileInstruction &tile, mlir::Type element, mlir::ValueRange sum,
                  mlir::ValueRange a, mlir::ValueRange b);
  /// Matrices of 8 by 8 elements of 16 bits, whose rows the lanes have the addresses of.
  Values loadMatrices(mlir::Value address, int64_t count, bool transposed);

  //===--- Arithmetic -----------------------------------------------------===//
  mlir::Value exp2(mlir::Value x);
  mlir::Value reciprocal(mlir::Value x, bool subnormals);
  /// The same value, of which LLVM knows nothing.
  mlir::Value opaque(mlir::Value x);
  /// Four floats rounded to f8E4M3FN, the first one in the lowest byte.
  mlir::Value packFour(mlir::ValueRange x);
  /// Two floats of 16 bits as `device.half_from_bits` makes them of floats, the first one in the
  /// low half.
  mlir::Value halvesFromBits(mlir::Value low, mlir::Value high);
  /// The sums of two pairs of floats of 16 bits, and of one pair as a float.
  mlir::Value addHalves(mlir::Value x, mlir::Value y);
  mlir::Value sumOfHalves(mlir::Value x);
  /// Two pairs of floats of 16 bits rounded to f8E4M3FN, the first one in the lowest byte.
  mlir::Value packPairs(mlir::Value low, mlir::Value high);
  /// A float rounded to f8E4M3FN, as a byte, and the float that such a byte is.
  mlir::Value toFloat8(mlir::Value x);
  mlir::Value fromFloat8(mlir::Value x);
  /// Two floats rounded to 16 bits, the first one in the low half.
  mlir::Value pack(mlir::Value low, mlir::Value high, bool isBF16);

private:
  mlir::Value exchange(mlir::Value value, mlir::Value operand, mlir::NVVM::ShflKind kind,
                       mlir::Value lanes = {});

  mlir::Block *entry = nullptr;
  mlir::Operation *lastConstant = nullptr;
  llvm::DenseMap<mlir::Attribute, mlir::Value> constants;

public:
  mlir::OpBuilder &b;
  mlir::Location loc = mlir::UnknownLoc::get(b.getContext());
};

} // namespace moa::nvvm

#endif // MOA_CONVERSION_DEVICETONVVM_INSTRUCTIONS_H
