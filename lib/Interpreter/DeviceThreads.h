//===- DeviceThreads.h - threads of a device kernel -------------*- C++ -*-===//
//
// Threads that run the same code run together: a value is one scalar per thread,
// and a branch or a loop that only some take runs for these alone. Such a group
// stops where it has to wait for others, and goes on from there.
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

/// What all blocks of a program share.
struct Launch {
  /// Records the first error.
  void fail(mlir::Location loc, const llvm::Twine &message) {
    if (!error)
      error = locationText(loc) + message.str();
  }
  int64_t valueOf(device::SymbolOp op);

  Symbols symbols;                               // strides included
  std::vector<std::unique_ptr<Memory>> memories; // inputs, outputs, workspace
  size_t firstWorkspace = 0;                     // among these
  std::optional<std::string> error;
  std::map<std::string, int64_t> copied; // tiles by the name of their array
  int64_t cleared = 0;                   // stages whose unseen rows were cleared
  int64_t block = 0, blocks = 0;         // its number, and of how many
  llvm::DenseMap<mlir::Operation *, int64_t> symbolValues;
  llvm::DenseMap<mlir::Operation *, std::optional<Instr>> instrs;
  /// Elements of arrays with copies that threads of the current launch write, by memory and
  /// address: the copy engine sees them in a later launch only.
  llvm::DenseMap<std::pair<const Memory *, int64_t>, mlir::Operation *> stored;
};

/// A contraction or the bulk store of a tile, which runs on its own until it is awaited.
struct Flight {
  Flight(mlir::Operation *op, unsigned agent) : op(op), agent(agent) {}
  mlir::Operation *op;
  unsigned agent;
  bool isDone = false;
  llvm::DenseMap<unsigned, uint32_t> stamps; // of the clocks of the warps that awaited it, then
};
using FlightPtr = std::shared_ptr<Flight>;

/// A scalar per thread, or a fragment: the cells of thread t are those from t·R.
struct Register {
  Lanes lanes;
  FlightPtr contraction; // whose result this is, not awaited
};
using Registers = llvm::DenseMap<mlir::Value, Register>;

/// An array of every thread's own.
struct PrivateArray {
  std::vector<int64_t> shape;
  int64_t count = 1;
  Cells cells;
  std::vector<uint8_t> written;
};

/// Where the threads' elements of such an array stand, which are apart for each.
struct Places {
  int64_t operator[](size_t k) const { return (each.empty() ? first : each[k]) + int64_t(k); }
  int64_t first = 0;         // of all, where they have the same indices
  std::vector<int64_t> each; // else
};

class Threads {
public:
  /// `where` names them in errors: "block 3, warpgroup 1".
  Threads(Launch &launch, Registers &registers, size_t width, std::string where)
      : launch(launch), registers(registers), width(width), where(std::move(where)), active(width) {
  }
  virtual ~Threads() = default;

  /// Begins a block of a region.
  void start(mlir::Block &block, const Mask &mask);
  /// Runs until the end, an error, or an operation that has to wait; the latter is
  /// tried again by the next call. Stops behind `turns` operations that other
  /// threads can see. True at the end.
  bool run(unsigned turns);
  /// The operation they wait in.
  mlir::Operation *getWaiting() const { return waiting; }
  size_t getWidth() const { return width; }
  const std::string &getWhere() const { return where; }

  /// The values the last terminator gave.
  llvm::SmallVector<Register> yielded;

protected:
  struct Frame {
    mlir::Operation *op;
    mlir::Block *block;
    mlir::Block::iterator next;
    Mask outer;                // of the threads around the op
    Lanes index, end, step;    // scf.for
    bool isSplit = false;      // scf.if whose sides both run
    std::optional<Mask> other; // the threads of the side that has yet to run
    llvm::SmallVector<Register> first;
  };

  /// An operation of the level itself; false to wait and try again.
  virtual bool special(mlir::Operation *op);
  /// What a region of such an operation yields to it; false if it runs once more.
  virtual bool finishRegion(Frame &frame) { return true; }
  /// A value as the threads here have it.
  virtual Lanes adapt(const Lanes &lanes) { return lanes; }
  virtual void checkStore(device::StoreOp op) {}
  /// The number of thread k in its block.
  virtual int64_t threadNumber(size_t k) { return k; }

  bool failed() const { return launch.error.has_value(); }
  void fail(mlir::Operation *op, const llvm::Twine &message);
  void failAt(mlir::Operation *op, size_t k, const llvm::Twine &message);
  /// What a value holds, until something is defined.
  const Register &find(mlir::Value value, mlir::Operation *user);
  Register read(mlir::Value value, mlir::Operation *user) { return find(value, user); }
  Lanes get(mlir::Value value, mlir::Operation *user) { return adapt(find(value, user).lanes); }
  /// An index that is the same in all threads.
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
  /// Contractions of these threads, in the order they were started.
  std::vector<FlightPtr> inFlight;
  unsigned turns = 0; // left to this run

private:
  bool execute(mlir::Operation *op);
  void leave(mlir::Operation *terminator);
  void enter(mlir::scf::ForOp op);
  void enter(mlir::scf::IfOp op);
  bool beginIteration(Frame &frame);
  void finishIf(Frame &frame);
  void scalar(mlir::Operation *op);
  void select(mlir::arith::SelectOp op);
  /// A function the machine approximates, of every cell.
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
  std::optional<Places> placesOf(mlir::Operation *op, const PrivateArray &array,
                                 mlir::OperandRange operands);
  void load(mlir::memref::LoadOp op);
  void store(mlir::memref::StoreOp op);
  template <typename OpT, typename F> void overRun(OpT op, F element);
  void load(device::LoadRunOp op);
  void store(device::StoreRunOp op);
  void exchange(device::ExchangeOp op);

  llvm::DenseMap<mlir::Value, std::unique_ptr<PrivateArray>> privates;
};

} // namespace moa::interp

#endif // MOA_INTERPRETER_DEVICETHREADS_H
