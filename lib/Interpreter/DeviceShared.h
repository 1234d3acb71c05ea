//===- DeviceShared.h - shared memory, barriers, clocks ---------*- C++ -*-===//
//
// The agents of a block are its consumer warpgroups, then the producer's thread. Races are detected
// with vector clocks (L. Lamport 1978, C. Fidge 1988). Every warp and every barrier has a clock,
// and a warp's vector of clocks says which events it knows to have happened. An arrival passes a
// warp's knowledge to a barrier, and a completed phase passes it to the waiting warps. An access to
// a stage must know all earlier writes, and a write also all earlier reads. Otherwise some order of
// events is a race, and that is an error even if this run took another order.
//
// Copies, contractions and bulk stores are asynchronous. A copy completes with the phase of its
// barrier. Each warp has a part of a contraction, with 16 rows of A and all of B, and its own await
// tells it that this part is complete. A bulk store belongs to one warp, and only that warp's await
// tells that the store has read its rows.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_INTERPRETER_DEVICESHARED_H
#define MOA_INTERPRETER_DEVICESHARED_H

#include "lib/Interpreter/DeviceThreads.h"

namespace moa::interp {

using Clock = std::vector<uint32_t>;

/// Rows of a stage that an operation reads or writes.
struct Access {
  int64_t first = 0, end = 0; // rows
  bool isWrite = false;
  /// The time of completion: a value of the clock of a warp or a barrier.
  unsigned component = 0;
  uint32_t stamp = 0;
  FlightPtr flight; // an asynchronous reader; complete when the warp has awaited it
  mlir::Operation *op = nullptr;
};

struct PendingCopy;

/// One ring: elements in the order of its type, and the accesses to its rows.
struct RingMemory {
  RingMemory(device::RingType type, std::string name);

  device::RingType type;
  std::string name;
  int64_t rows, columns, stageSize;
  std::vector<uint16_t> bits;
  std::vector<uint8_t> written;
  std::vector<std::vector<Access>> accesses; // per stage

  /// Returns the place of an element in the swizzled layout. With c elements in 128 bytes it is
  /// [columns / c][rows][c], where 16-byte unit u of row r is stored at u xor (r mod 8).
  int64_t placeOf(int64_t stage, int64_t row, int64_t column) const {
    int64_t unit = column >> unitBits & 7, piece = column >> (unitBits + 3);
    int64_t start = stage * stageSize + ((piece * rows + row) << (unitBits + 3));
    return start + ((unit ^ (row & 7)) << unitBits) + (column & ((1 << unitBits) - 1));
  }
  /// Returns true if all elements of rows from `first` and of columns in [from, to) are written.
  bool isWritten(int64_t stage, int64_t first, int64_t count, int64_t from, int64_t to) const;
  int64_t bytesOf(const PendingCopy &copy) const;
  double read(int64_t stage, int64_t row, int64_t column) const { return decode(bits[placeOf(stage, row, column)]); }
  void write(int64_t stage, int64_t row, int64_t column, double value) {
    int64_t place = placeOf(stage, row, column);
    bits[place] = encode(value);
    written[place] = 1;
  }

private:
  unsigned unitBits; // logarithm of the number of elements in 16 bytes
  double (*decode)(uint16_t);
  uint16_t (*encode)(double);
};

/// One barrier of a block.
struct BarrierState {
  std::string name;
  bool isOdd = false; // parity of the phases per block, in a persistent kernel
  int64_t declared = 0;
  unsigned component = 0;
  uint32_t phase = 0; // number of completed phases
  int64_t arrived = 0, bytes = 0;
  Clock gathered, last; // of the current phase, of the last completed phase
  struct Waited {
    unsigned warp;
    uint32_t stamp;
    mlir::Operation *op;
  };
  std::vector<Waited> waits; // waits that ended with the last phase
};

/// A copy that was issued and is not complete.
struct PendingCopy {
  mlir::Operation *op = nullptr;
  const Memory *from = nullptr;
  mlir::Value ring;
  unsigned barrier = 0;
  int64_t stage = 0, first = 0;  // of the rows in the ring
  std::vector<Memory::Row> rows; // the source of each row; columns outside of it become zero
};

class Shared {
public:
  /// `warps` gives the number of warps of each agent.
  Shared(Launch &launch, llvm::ArrayRef<unsigned> warps, int64_t limit);

  //===--- Memory ---------------------------------------------------------===//
  void add(device::SharedOp op);
  void add(device::BarriersOp op);
  /// Allocates space for lists of indices, and once for the counts of warps.
  void add(device::CollectOp op);
  /// Allocates once the space in which clear_unseen exchanges masks.
  void addWords(device::ClearUnseenOp op);
  RingMemory *getRing(mlir::Value ring, int64_t stage, mlir::Operation *op);
  std::optional<unsigned> getBarrier(mlir::Value barriers, int64_t slot, mlir::Operation *op);

  //===--- Order ----------------------------------------------------------===//
  /// Checks and records an access by a warp. It is complete on return, or with its flight.
  void access(unsigned warp, RingMemory &ring, int64_t stage, Access access);
  /// Reports an element that was never written, among rows from `first` and columns below
  /// `columns`.
  bool checkWritten(const RingMemory &ring, int64_t stage, int64_t first, int64_t rows, int64_t columns,
                    mlir::Operation *op, unsigned agent, int64_t firstColumn = 0);
  /// Counts arrivals of these warps of one agent, one for each unless `count` is given.
  void arrive(llvm::ArrayRef<unsigned> warps, unsigned barrier, mlir::Operation *op, int64_t count = 0);
  /// Returns true if the phase has completed. Then the agent's warps learn the knowledge of its
  /// arrivals.
  bool wait(unsigned agent, unsigned barrier, bool parity, mlir::Operation *op);
  /// Returns a warp's own time. It advances when the warp passes its knowledge on.
  uint32_t now(unsigned warp) const { return clocks[warp][warp]; }
  /// Returns warp k of an agent.
  unsigned getWarp(unsigned agent, unsigned k = 0) const { return firstWarps[agent] + k; }
  unsigned countWarps(unsigned agent) const { return firstWarps[agent + 1] - firstWarps[agent]; }
  /// Marks a flight as awaited by these warps.
  void finish(Flight &flight, unsigned firstWarp, unsigned count) {
    flight.isDone = true;
    for (unsigned warp = firstWarp; warp < firstWarp + count; ++warp)
      flight.stamps[warp] = now(warp);
  }
  /// Starts a copy by these warps of an agent, which makes `arrivals` arrivals on its barrier.
  void startCopy(llvm::ArrayRef<unsigned> warps, PendingCopy copy, int64_t arrivals);
  void completeCopy(size_t which);
  size_t countCopies() const { return copies.size(); }
  /// Synchronises these warps: each learns the knowledge of all, then its own clock advances. An
  /// access by one of them stamped now − 1 is thus known to all.
  void meet(unsigned first, unsigned count);
  /// Checks barriers and copies after all agents have ended.
  void checkEnd(mlir::Operation *kernel);

  std::string agentName(unsigned agent) const {
    return agent + 1 == agents && agents > 1 ? "the producer" : "warpgroup " + std::to_string(agent);
  }
  std::string warpName(unsigned warp) const;
  std::string describe(unsigned barrier) const;
  /// Counts the events that waiting agents may depend on.
  uint64_t progress = 0;

private:
  bool knows(const Clock &clock, const Access &access) const;
  unsigned agentOf(unsigned warp) const;
  std::string describeConflict(unsigned warp, const Access &access, const Access &other) const;
  void completePhase(BarrierState &barrier, mlir::Operation *op);
  void checkLimit(mlir::Operation *op);

  Launch &launch;
  unsigned agents, warps = 0;
  llvm::SmallVector<unsigned> firstWarps; // of each agent, then the total
  int64_t limit, bytes = 0;
  bool hasWords = false, hasCounts = false;
  std::vector<std::unique_ptr<RingMemory>> rings;
  std::vector<BarrierState> barriers;
  llvm::DenseMap<mlir::Value, unsigned> numbers; // of rings, and of first barriers
  std::vector<Clock> clocks;                     // of the warps
  std::vector<PendingCopy> copies;
};

} // namespace moa::interp

#endif // MOA_INTERPRETER_DEVICESHARED_H
