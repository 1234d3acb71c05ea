//===- KernelEmitter.h - a device kernel as an llvm.func --------*- C++ -*-===//
//
// Walks a kernel in order and emits the instructions of each op into the function. A scalar of the
// device level is one value, a fragment is the list of its registers, and indices are i64.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_CONVERSION_DEVICETONVVM_KERNELEMITTER_H
#define MOA_CONVERSION_DEVICETONVVM_KERNELEMITTER_H

#include "lib/Conversion/DeviceToNVVM/Fragments.h"
#include "lib/Conversion/DeviceToNVVM/Instructions.h"
#include "lib/Target/GPU/Launch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"

namespace moa::nvvm {

class KernelEmitter {
public:
  KernelEmitter(device::KernelOp kernel, mlir::ModuleOp module)
      : kernel(kernel), module(module), b(kernel.getContext()), to(b), launch(gpu::getLaunch(kernel)) {}

  /// Emits the function at the end of the module. Fails with a diagnostic at an op that has no
  /// instructions.
  mlir::LogicalResult run();

private:
  //===--- The function ---------------------------------------------------===//
  mlir::LLVM::LLVMFuncOp createFunction();
  void bindParameters(mlir::LLVM::LLVMFuncOp function);
  mlir::Type parameterType(unsigned argument);

  //===--- Values ---------------------------------------------------------===//
  mlir::Value value(mlir::Value v) { return scalars.lookup(v); }
  /// Returns a scalar, or the registers of a fragment.
  Values registers(mlir::Value v);
  Values registers(mlir::ValueRange list);
  void bind(mlir::Value v, mlir::ValueRange registers);
  /// Binds every value to as many of `registers` as it has.
  void bindAll(mlir::ValueRange list, mlir::ValueRange registers);
  /// Gives values to the code after a failure.
  void bindPoison(mlir::ValueRange list);
  llvm::SmallVector<mlir::Type> registerTypes(mlir::TypeRange types);
  static mlir::Type scalarType(mlir::Type type);
  void fail(mlir::Operation *op, const llvm::Twine &why);

  //===--- Scalars and control flow (Scalars.cpp) -------------------------===//
  void emitBlock(mlir::Block &block);
  void emit(mlir::Operation *op);
  void emitScalar(mlir::Operation *op);
  /// Returns the result of a scalar op on values of its operands; null for other ops.
  mlir::Value compute(mlir::Operation *op, mlir::ValueRange in);
  mlir::Value computeInteger(mlir::Operation *op, mlir::ValueRange in);
  enum class Quotient { truncated, floored, ceiled, remainder };
  mlir::Value divide(Quotient kind, mlir::Value x, mlir::Value y);
  mlir::Value shift(mlir::Value x, mlir::Value y, bool left);
  mlir::Value computeCast(mlir::Operation *op, mlir::ValueRange in);
  mlir::Value toInteger(mlir::Value x, mlir::Type type);
  mlir::Value callLibrary(mlir::Operation *op, mlir::StringRef name, mlir::ValueRange in);
  mlir::Value symbolValue(const SymExpr &expr);
  mlir::Value floorDivide(mlir::Value x, mlir::Value y, bool remainder);
  void emitFor(mlir::scf::ForOp loop);
  void emitIf(mlir::scf::IfOp branch);
  void emitExit(device::ExitIfOp exit);
  void emitStages(device::StagesOp op);
  mlir::Value sharedWord();
  /// Emits `if (condition) body`.
  void when(mlir::Value condition, llvm::function_ref<void()> body);
  void emitLocal(mlir::memref::AllocaOp local);
  mlir::Value element(mlir::Value local, mlir::ValueRange indices);
  mlir::Value address(mlir::Value array, mlir::Value offset);
  void emitLoad(device::LoadOp load);
  void emitStore(device::StoreOp store);
  template <typename OpT>
  void overRun(OpT op, int64_t unitBytes, llvm::function_ref<void(mlir::Value)> whole,
               llvm::function_ref<void(int64_t, mlir::Value)> single);
  mlir::Value rowOf(mlir::Value buffer, mlir::ValueRange at, int64_t offset);
  bool isInvariant(mlir::Value array);
  void emitLoadRun(device::LoadRunOp op);
  void emitStoreRun(device::StoreRunOp op);

  //===--- Tiles (Tiles.cpp) ----------------------------------------------===//
  void emitTile(mlir::Operation *op);
  void emitSpecialize(device::SpecializeOp op);
  void emitRoles(device::SpecializeOp op);
  void emitProducerBlocks(device::SpecializeOp op);
  void emitConsumerBlocks(device::SpecializeOp op);
  mlir::Value loadKept(mlir::Value number);
  void awaitLeft(mlir::Value parity);
  void giveBlock();
  /// Sends the consumers a flag that is true if there is another block.
  void tellBlock(bool isMore);
  /// Initialises all barriers, in the first thread; the caller synchronises the block.
  void initBarriers();
  /// Binds the numbers of a thread's warpgroup, warp and lane.
  void bindThread();
  bool hasRoles();
  /// Returns the address of a stage of a ring, or of a slot of barriers.
  mlir::Value stage(mlir::Value ring, mlir::Value number);
  mlir::Value slot(mlir::Value barriers, mlir::Value number);
  mlir::Value sharedAddress(int64_t byte);
  /// Returns the coordinates of a box, innermost first: its column, then those of the axes.
  Values boxAt(int64_t column, mlir::ValueRange coordinates, mlir::Value from = mlir::Value());
  void emitCollect(device::CollectOp op);
  mlir::Value appendMembers(mlir::Value list, mlir::Value count, mlir::Value in, mlir::Value number);
  void emitMember(device::MemberOp op);
  void emitCopy(device::CopyOp op);
  void emitCopyRows(device::CopyRowsOp op);
  void emitStoreTile(device::StoreTileOp op);
  void putFragment(mlir::Value tile, int64_t rows, mlir::ValueRange packed);
  void clearColumns(mlir::Value tile, int64_t rows, int64_t threads,
                    llvm::function_ref<mlir::Value(mlir::Value)> wordOf);
  void emitClear(device::ClearUnseenOp op);
  mlir::Value publishedAt(device::PublishOp op, int64_t words, int64_t number);
  void emitPublish(device::PublishOp op);
  void emitLoadPeer(device::LoadPeerOp op);
  mlir::Value unseenBits(mlir::ValueRange seen);
  void emitFill(device::FillOp op);
  void emitContract(device::ContractOp op);
  //===--- Registers of warps (Warps.cpp) ---------------------------------===//
  void emitContractFragments(device::ContractFragmentsOp op);
  void emitLoadFragment(device::LoadFragmentOp op);
  void emitConvertLayout(device::ConvertLayoutOp op);
  mlir::Value warpPart(device::LayoutAttr layout, unsigned axis);

  void emitMap(device::MapOp op);
  bool emitRounding(device::MapOp op);
  void emitPair(device::StoreOp store);
  void emitElement(device::MapOp op, const RegisterPlace &registerPlace, mlir::ValueRange threadParts,
                   llvm::SmallVectorImpl<Values> &results);
  void emitIfAny(device::IfAnyOp op);
  Values addPairs(mlir::ArrayRef<RegisterPlace> places, int64_t rows, mlir::ValueRange from);
  void emitReduce(device::ReduceOp op);
  mlir::Value combine(Monoid monoid, mlir::Value x, mlir::Value y);
  mlir::Value threadPart(device::LayoutAttr layout, unsigned axis);
  mlir::Value firstReplica(device::LayoutAttr layout);

  device::KernelOp kernel;
  mlir::ModuleOp module;
  mlir::OpBuilder b;
  Instructions to;
  gpu::Launch launch;
  bool failed = false;
  mlir::IRMapping scalars;
  llvm::DenseMap<mlir::Value, Values> fragments;
  llvm::StringMap<mlir::Value> symbols;
  llvm::DenseMap<unsigned, mlir::Value> parameters; // arrays and scalars of the program
  llvm::StringMap<mlir::Value> maps;
  mlir::Value warpgroup, warp, lane; // of a consumer
  mlir::Value blockParity;           // parity of the block in a persistent kernel (device.next_block)
  bool inProducer = false;
  /// For each op of a map's body: its results, by operands, in earlier registers.
  using Known = std::vector<std::pair<Values, mlir::Value>>;
  llvm::DenseMap<mlir::Operation *, Known> known;
  const RegisterPlace *place = nullptr; // of the map's element that is being emitted
};

} // namespace moa::nvvm

#endif // MOA_CONVERSION_DEVICETONVVM_KERNELEMITTER_H
