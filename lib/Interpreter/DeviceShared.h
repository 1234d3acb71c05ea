//===- DeviceShared.h - shared memory, barriers, who knows what -*- C++ -*-===//
//
// The agents of a block are its consumer warpgroups, then the producer's thread.
// Every warp, and every barrier, has a clock; a warp's vector of clocks says what
// it knows to have happened (L. Lamport 1978, C. Fidge 1988). Arrivals hand a
// warp's knowledge to a barrier, a completed phase to those that wait for it. What
// reads or writes a stage must know the writes before it, and a write the reads: if
// it does not, there is an order of events that goes wrong, and that is an error
// whether this run took that order or not.
//
// Copies, contractions and bulk stores run on their own. A copy is over with the phase
// of its barrier. Each warp has a part of a contraction, 16 rows of A and all of B, and
// learns by its own await that this part is over. A bulk store belongs to one warp,
// which alone learns by its await that the store has read its rows.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_INTERPRETER_DEVICESHARED_H
#define MOA_INTERPRETER_DEVICESHARED_H

#include "lib/Interpreter/DeviceThreads.h"

namespace moa::interp {

using Clock = std::vector<uint32_t>;

/// Rows of a stage that something reads or writes.
struct Access {
  int64_t first = 0, end = 0; // rows
  bool isWrite = false;
  /// When it is over: a value of the clock of a warp or a barrier.
  unsigned component = 0;
  uint32_t stamp = 0;
  FlightPtr flight; // that reads; over when the warp has awaited it
  mlir::Operation *op = nullptr;
};

/// One ring: elements in the order of its type, and who uses its rows.
struct RingMemory {
  device::RingType type;
  std::string name;
  std::vector<uint16_t> bits;
  std::vector<uint8_t> written;
  std::vector<std::vector<Access>> accesses; // per stage

  /// Where an element stands, c of them in 128 bytes: [columns / c][rows][c], 16-byte unit
  /// u of row r at u xor (r mod 8).
  int64_t placeOf(int64_t stage, int64_t row, int64_t column) const {
    int64_t rows = type.getRows(), piece = 1024 / type.getElementType().getIntOrFloatBitWidth();
    int64_t perUnit = piece / 8, unit = column % piece / perUnit;
    return stage * rows * type.getColumns() + column / piece * rows * piece + row * piece +
           (unit ^ row % 8) * perUnit + column % perUnit;
  }
  double valueOf(uint16_t word) const;
  uint16_t wordOf(double value) const;
};

/// One barrier of a block.
struct BarrierState {
  std::string name;
  bool isOdd = false; // the number of phases of a block, where blocks go on with others
  int64_t declared = 0;
  unsigned component = 0;
  uint32_t phase = 0; // completed ones
  int64_t arrived = 0, bytes = 0;
  Clock gathered, last; // of the phase under way, of the completed one
  struct Waited {
    unsigned warp;
    uint32_t stamp;
    mlir::Operation *op;
  };
  std::vector<Waited> waits; // that ended with the last phase
};

/// A copy the copy engine has been asked for.
struct PendingCopy {
  device::CopyOp op;
  unsigned ring = 0, barrier = 0;
  int64_t stage = 0;
  std::vector<int64_t> coordinates;
  int64_t column = 0; // where the tile starts on the last axis
  int64_t step = 1;   // of rows along their axis
};

class Shared {
public:
  /// Each agent has so many warps.
  Shared(Launch &launch, llvm::ArrayRef<unsigned> warps, int64_t limit);

  //===--- Memory ---------------------------------------------------------===//
  void add(device::SharedOp op);
  void add(device::BarriersOp op);
  /// Space for lists of indices, and for the counts of warps, once.
  void add(device::CollectOp op);
  /// Space for what clear_unseen exchanges, once.
  void addWords(device::ClearUnseenOp op);
  RingMemory *getRing(mlir::Value ring, int64_t stage, mlir::Operation *op);
  std::optional<unsigned> getBarrier(mlir::Value barriers, int64_t slot, mlir::Operation *op);

  //===--- Order ----------------------------------------------------------===//
  /// A read or a write by a warp that is over when it returns, or with its flight.
  void access(unsigned warp, RingMemory &ring, int64_t stage, Access access);
  /// Reports an element that nothing wrote, of rows from `first` and columns below
  /// `columns`.
  bool checkWritten(const RingMemory &ring, int64_t stage, int64_t first, int64_t rows,
                    int64_t columns, mlir::Operation *op, unsigned agent, int64_t firstColumn = 0);
  /// One arrival of each of these warps of one agent.
  void arrive(llvm::ArrayRef<unsigned> warps, unsigned barrier, mlir::Operation *op);
  /// Whether the phase has completed; then the agent's warps know what its arrivals knew.
  bool wait(unsigned agent, unsigned barrier, bool parity, mlir::Operation *op);
  /// A warp's own time, which passes when it tells others what it has done.
  uint32_t now(unsigned warp) const { return clocks[warp][warp]; }
  /// Warp k of an agent.
  unsigned getWarp(unsigned agent, unsigned k = 0) const { return firstWarps[agent] + k; }
  unsigned countWarps(unsigned agent) const { return firstWarps[agent + 1] - firstWarps[agent]; }
  /// These warps have awaited it.
  void finish(Flight &flight, unsigned firstWarp, unsigned count) {
    flight.isDone = true;
    for (unsigned warp = firstWarp; warp < firstWarp + count; ++warp)
      flight.stamps[warp] = now(warp);
  }
  void startCopy(unsigned warp, PendingCopy copy);
  void completeCopy(size_t which);
  size_t countCopies() const { return copies.size(); }
  /// These warps know what each of them knew, and what one of them does at the time before now.
  void meet(unsigned first, unsigned count);
  /// Barriers and copies when all agents have ended.
  void checkEnd(mlir::Operation *kernel);

  std::string agentName(unsigned agent) const {
    return agent + 1 == agents && agents > 1 ? "the producer"
                                             : "warpgroup " + std::to_string(agent);
  }
  std::string warpName(unsigned warp) const;
  std::string describe(unsigned barrier) const;
  /// Counts what others may wait for.
  uint64_t progress = 0;

private:
  bool knows(const Clock &clock, const Access &access) const;
  unsigned agentOf(unsigned warp) const;
  std::string describeConflict(unsigned warp, const Access &access, const Access &other) const;
  void completePhase(BarrierState &barrier, mlir::Operation *op);
  void checkLimit(mlir::Operation *op);

  Launch &launch;
  unsigned agents, warps = 0;
  llvm::SmallVector<unsigned> firstWarps; // of each agent, and the number of all
  int64_t limit, bytes = 0;
  bool hasWords = false, hasCounts = false;
  std::vector<std::unique_ptr<RingMemory>> rings;
  std::vector<BarrierState> barriers;
  llvm::DenseMap<mlir::Value, unsigned> numbers; // of rings, of first barriers
  std::vector<Clock> clocks;                     // of the warps
  std::vector<PendingCopy> copies;
};

} // namespace moa::interp

#endif // MOA_INTERPRETER_DEVICESHARED_H
