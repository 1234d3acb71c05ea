//===- DeviceThreads.h - threads of a device kernel -------------*- C++ -*-===//
//
// Threads that run the same code run together (SIMT). A value is one scalar per thread. A branch or
// loop that only some threads take runs with a mask. A group that has to wait for others stops and
// resumes at the same operation.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_INTERPRETER_DEVICETHREADS_H
#define MOA_INTERPRETER_DEVICETHREADS_H

#include "dialects/Device/IR/Device.h"
#include "lib/Interpreter/DeviceLanes.h"
#include "lib/Interpreter/Memory.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace moa::interp {

/// State shared by all blocks of a program.
struct Launch {
  void fail(mlir::Location loc, const llvm::Twine &message) {
    if (!error)
      error = locationText(loc) + message.str();
  }
  int64_t valueOf(device::SymbolOp op);

  Symbols symbols;                               // strides included
  std::vector<std::unique_ptr<Memory>> memories; // inputs, outputs, workspace
  size_t firstWorkspace = 0;                     // where the workspace begins among these
  std::optional<std::string> error;
  std::map<std::string, int64_t> copied; // copied tiles, by name of their array
  int64_t cleared = 0;                   // stages with masked-out rows cleared
  int64_t block = 0, blocks = 0;         // number of the current block, and of all
  /// A fragment that a warpgroup of a block of the current cluster has published.
  struct Published {
    Lanes lanes;
    unsigned syncs; // barriers of the cluster before it
  };
  /// By rank of the block in its cluster, warpgroup and result of device.publish.
  std::map<std::tuple<int64_t, unsigned, void *>, Published> published;
  /// Barriers of the cluster that a warpgroup has passed, by rank and warpgroup.
  std::map<std::pair<int64_t, unsigned>, unsigned> syncs;
  int64_t cluster = 1; // blocks of a cluster of the current kernel
  int64_t rank() const { return block % cluster; }
  llvm::DenseMap<mlir::Operation *, int64_t> symbolValues;
  llvm::DenseMap<mlir::Operation *, std::optional<Instr>> instrs;
  llvm::DenseMap<mlir::Operation *, Lanes> constants;
  /// Elements of copied arrays that threads of the current launch write, by memory and address. The
  /// copy engine sees these writes only in a later launch.
  llvm::DenseMap<std::pair<const Memory *, int64_t>, mlir::Operation *> stored;
};

/// An asynchronous contraction, or bulk store of a tile, until it is awaited.
struct Flight {
  Flight(mlir::Operation *op, unsigned agent) : op(op), agent(agent) {}
  mlir::Operation *op;
  unsigned agent;
  bool isDone = false;
  llvm::DenseMap<unsigned, uint32_t> stamps; // clock of each warp that awaited it, at that time
};
using FlightPtr = std::shared_ptr<Flight>;

/// A scalar per thread, or a fragment: thread t has the R cells from t·R.
struct Register {
  Lanes lanes;
  FlightPtr contraction; // that computes this value, until it is awaited
};
using Registers = llvm::DenseMap<mlir::Value, Register>;

/// A private array of every thread.
struct PrivateArray {
  std::vector<int64_t> shape;
  int64_t count = 1;
  Cells cells;
  std::vector<uint8_t> written;
};

/// Places of the threads' elements of a private array. Each thread has its own elements.
struct Places {
  int64_t operator[](size_t k) const { return (each.empty() ? first : each[k]) + int64_t(k); }
  int64_t first = 0;         // if all threads have the same indices
  std::vector<int64_t> each; // otherwise, per thread
};

class Threads {
public:
  /// `where` names the threads in errors: "block 3, warpgroup 1".
  Threads(Launch &launch, Registers &registers, size_t width, std::string where)
      : launch(launch), registers(registers), width(width), where(std::move(where)), active(width) {}
  virtual ~Threads() = default;

  void start(mlir::Block &block, const Mask &mask);
  /// Runs until the end, an error, or an operation that has to wait, which the next call retries.
  /// Stops after `turns` operations that other threads can observe. Returns true at the end.
  bool run(unsigned turns);
  mlir::Operation *getWaiting() const { return waiting; }
  size_t getWidth() const { return width; }
  const std::string &getWhere() const { return where; }

  /// The operands of the last terminator.
  llvm::SmallVector<Register> yielded;

protected:
  struct Frame {
    mlir::Operation *op;
    mlir::Block *block;
    mlir::Block::iterator next;
    Mask outer;                // threads active around the op
    Lanes index, end, step;    // scf.for
    bool isSplit = false;      // scf.if with divergent threads: both sides run
    std::optional<Mask> other; // threads of the side that has not run yet
    llvm::SmallVector<Register> first;
  };

  /// Executes an operation of the device dialect. Returns false to wait and retry.
  virtual bool special(mlir::Operation *op);
  /// Receives the yielded values of such an operation's region. Returns false if the region runs
  /// again.
  virtual bool finishRegion(Frame &frame) { return true; }
  /// Converts a value to the lanes of this group.
  virtual Lanes adapt(const Lanes &lanes) { return lanes; }
  virtual void checkStore(device::StoreOp op) {}
  /// Returns the number of thread k in its block.
  virtual int64_t threadNumber(size_t k) { return k; }

  bool failed() const { return launch.error.has_value(); }
  void fail(mlir::Operation *op, const llvm::Twine &message);
  void failAt(mlir::Operation *op, size_t k, const llvm::Twine &message);
  /// Returns the content of a value. The reference is valid until the next definition.
  const Register &find(mlir::Value value, mlir::Operation *user);
  Register read(mlir::Value value, mlir::Operation *user) { return find(value, user); }
  Lanes get(mlir::Value value, mlir::Operation *user) { return adapt(find(value, user).lanes); }
  /// Returns an index that is uniform over the active threads. Otherwise reports an error.
  std::optional<int64_t> getUniform(mlir::Value value, mlir::Operation *user);
  void define(mlir::Value value, Register content, mlir::Operation *op);
  void define(mlir::Value value, Lanes lanes) { registers[value] = {std::move(lanes), nullptr}; }
  void push(mlir::Operation *op, mlir::Block &block, const Mask &mask);

  Launch &launch;
  Registers &registers;
  size_t width;
  std::string where;
  Mask active;
  std::vector<Frame> frames;
  mlir::Operation *waiting = nullptr;
  /// Contractions of these threads in flight, in issue order.
  std::vector<FlightPtr> inFlight;
  unsigned turns = 0; // left in this run

private:
  bool execute(mlir::Operation *op);
  void leave(mlir::Operation *terminator);
  void enter(mlir::scf::ForOp op);
  void enter(mlir::scf::IfOp op);
  bool beginIteration(Frame &frame);
  void finishIf(Frame &frame);
  void scalar(mlir::Operation *op);
  void select(mlir::arith::SelectOp op);
  /// Applies a function that hardware approximates to every cell.
  void approximate(mlir::Operation *op, double (*function)(double));
  void load(device::LoadOp op);
  void store(device::StoreOp op);
  std::optional<int64_t> findCounter(mlir::Operation *op, Memory &memory, mlir::Value offset);
  void beginBlock(device::NextBlockOp op);
  void beginBlock(device::StagesOp op);
  void count(device::SignalOp op);
  void count(device::SignalsOp op);
  void raise(device::RaiseOp op);
  void end(device::ExitIfOp op);
  PrivateArray *getPrivate(mlir::Value value);
  std::optional<Places> placesOf(mlir::Operation *op, const PrivateArray &array, mlir::OperandRange operands);
  void load(mlir::memref::LoadOp op);
  void store(mlir::memref::StoreOp op);
  template <typename OpT, typename F> void overRun(OpT op, F element);
  void load(device::LoadRunOp op);
  void store(device::StoreRunOp op);
  void exchange(device::ExchangeOp op);

  llvm::DenseMap<mlir::Value, std::unique_ptr<PrivateArray>> privates;
};

/// Describes an address that is no element of an array, for messages.
std::string outside(int64_t address, const Memory &memory);

} // namespace moa::interp

#endif // MOA_INTERPRETER_DEVICETHREADS_H
