//===- DeviceShared.cpp - shared memory, barriers, clocks -----------------===//
#include "lib/Interpreter/DeviceShared.h"
#include "lib/Support/HalfFloat.h"
#include <cstring>

using namespace mlir;
using namespace moa;
using namespace moa::interp;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

RingMemory::RingMemory(device::RingType type, std::string name)
    : type(type), name(std::move(name)), rows(type.getRows()), columns(type.getColumns()), stageSize(rows * columns),
      bits(type.getStages() * stageSize), written(bits.size()), accesses(type.getStages()) {
  Type element = type.getElementType();
  unitBits = llvm::Log2_32(128 / element.getIntOrFloatBitWidth());
  if (element.isBF16()) {
    decode = fromBFloat16;
    encode = toBFloat16;
  } else if (element.isF16()) {
    decode = fromFloat16;
    encode = toFloat16;
  } else if (isa<Float8E4M3FNType>(element)) {
    decode = [](uint16_t word) { return fromFloat8(uint8_t(word)); };
    encode = [](double value) { return uint16_t(toFloat8(value)); };
  } else {
    decode = [](uint16_t word) { return double(int16_t(word)); };
    if (element.isInteger(8))
      decode = [](uint16_t word) { return double(int8_t(word)); };
    encode = [](double value) { return uint16_t(static_cast<int64_t>(value)); };
  }
}

bool RingMemory::isWritten(int64_t stage, int64_t first, int64_t count, int64_t from, int64_t to) const {
  // Rows of 128 bytes are adjacent.
  int64_t piece = int64_t(8) << unitBits;
  if (from % piece == 0 && to % piece == 0) {
    for (int64_t column = from; column < to; column += piece) {
      const uint8_t *marks = &written[stage * stageSize + (column * rows + first * piece)];
      if (std::memchr(marks, 0, count * piece))
        return false;
    }
    return true;
  }
  for (int64_t row = first; row < first + count; ++row)
    for (int64_t column = from; column < to; ++column)
      if (!written[placeOf(stage, row, column)])
        return false;
  return true;
}

Shared::Shared(Launch &launch, ArrayRef<unsigned> counts, int64_t limit)
    : launch(launch), agents(counts.size()), limit(limit) {
  for (unsigned count : counts) {
    firstWarps.push_back(warps);
    warps += count;
  }
  firstWarps.push_back(warps);
  clocks.assign(warps, Clock(warps));
  for (unsigned warp = 0; warp < warps; ++warp)
    clocks[warp][warp] = 1;
}

unsigned Shared::agentOf(unsigned warp) const { return llvm::upper_bound(firstWarps, warp) - firstWarps.begin() - 1; }

std::string Shared::warpName(unsigned warp) const {
  unsigned agent = agentOf(warp);
  std::string name = agentName(agent);
  return countWarps(agent) == 1 ? name : "warp " + std::to_string(warp - firstWarps[agent]) + " of " + name;
}

/// Returns the user's name of a ring or of barriers, or the place of their declaration.
static std::string nameOf(Operation *op, const char *what) {
  if (auto named = dyn_cast<NameLoc>(op->getLoc()))
    return "'" + named.getName().str() + "'";
  std::string where = locationText(op->getLoc());
  return where.empty() ? std::string("a ") + what
                       : std::string("the ") + what + " of " + where.substr(0, where.size() - 2);
}

void Shared::checkLimit(Operation *op) {
  if (bytes > limit)
    launch.fail(op->getLoc(), "needs " + Twine(bytes) +
                                  " bytes of shared memory with all earlier declarations, but "
                                  "a block has " +
                                  Twine(limit));
}

void Shared::add(device::SharedOp op) {
  device::RingType type = op.getResult().getType();
  // The swizzle repeats every 1024 bytes.
  bytes = llvm::alignTo(bytes, 1024) + type.getStages() * type.getStageBytes();
  checkLimit(op);
  numbers[op.getResult()] = rings.size();
  rings.push_back(std::make_unique<RingMemory>(type, nameOf(op, "ring")));
}

void Shared::add(device::BarriersOp op) {
  device::BarriersType type = op.getResult().getType();
  numbers[op.getResult()] = barriers.size();
  std::string name = nameOf(op, "barriers");
  for (int64_t slot = 0; slot < type.getStages(); ++slot) {
    BarrierState barrier;
    barrier.name = name + "[" + std::to_string(slot) + "]";
    barrier.isOdd = op.getOdd();
    barrier.declared = type.getArrivals();
    barrier.component = warps + barriers.size();
    barriers.push_back(std::move(barrier));
  }
  bytes += 8 * type.getStages();
  checkLimit(op);
  for (Clock &clock : clocks)
    clock.resize(warps + barriers.size());
  for (BarrierState &barrier : barriers)
    for (Clock *clock : {&barrier.gathered, &barrier.last})
      clock->resize(warps + barriers.size());
}

void Shared::add(device::CollectOp op) {
  for (Value list : op.getLists())
    bytes += cast<device::MembersType>(list.getType()).getBytes();
  bytes += hasCounts ? 0 : 32 * 4;
  hasCounts = true;
  checkLimit(op);
}

void Shared::addWords(device::ClearUnseenOp op) {
  if (!hasWords)
    bytes = llvm::alignTo(bytes, 16) + 16;
  hasWords = true;
  checkLimit(op);
}

RingMemory *Shared::getRing(Value value, int64_t stage, Operation *op) {
  auto found = numbers.find(value);
  if (found == numbers.end()) {
    launch.fail(op->getLoc(), "the ring does not belong to this block");
    return nullptr;
  }
  RingMemory *ring = rings[found->second].get();
  if (stage >= 0 && stage < ring->type.getStages())
    return ring;
  launch.fail(op->getLoc(), ring->name + " has no stage " + Twine(stage) + ", only " + Twine(ring->type.getStages()));
  return nullptr;
}

std::optional<unsigned> Shared::getBarrier(Value value, int64_t slot, Operation *op) {
  auto found = numbers.find(value);
  auto type = cast<device::BarriersType>(value.getType());
  if (found != numbers.end() && slot >= 0 && slot < type.getStages())
    return found->second + slot;
  launch.fail(op->getLoc(), found == numbers.end()
                                ? "the barriers are none of this block"
                                : "there is no barrier " + Twine(slot) + ", only " + Twine(type.getStages()));
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Reads and writes
//===----------------------------------------------------------------------===//

bool Shared::knows(const Clock &clock, const Access &access) const {
  if (!access.flight)
    return clock[access.component] >= access.stamp;
  auto stamp = access.flight->stamps.find(access.component);
  return stamp != access.flight->stamps.end() && clock[access.component] >= stamp->second;
}

/// Returns the reason why a warp's access conflicts with an earlier one.
std::string Shared::describeConflict(unsigned warp, const Access &access, const Access &other) const {
  std::string at = locationText(other.op->getLoc());
  if (other.isWrite && isa<device::CopyOp, device::CopyRowsOp>(other.op))
    return " before the copy at " + at + "is known to have completed";
  unsigned owner = other.component;
  if (isa<device::StoreTileOp>(other.op) && other.flight)
    return other.flight->isDone ? " although the bulk store at " + at + "may still read them: only " + warpName(owner) +
                                      " has awaited it, and no barrier follows"
                                : " while the bulk store at " + at + "reads them and is not awaited";
  if (other.flight && !other.flight->isDone)
    return " while the contraction at " + at + "of " + agentName(agentOf(owner)) + " reads them and is not awaited";
  std::string who = agentOf(owner) == agentOf(warp) ? warpName(owner) : agentName(agentOf(owner));
  return " although " + who + " may still " + (other.isWrite ? "write" : "read") + " them at " + at +
         "nothing orders the two";
}

void Shared::access(unsigned warp, RingMemory &ring, int64_t stage, Access access) {
  std::vector<Access> &known = ring.accesses[stage];
  for (const Access &other : known) {
    bool overlaps = other.first < access.end && access.first < other.end;
    // Fragments are published at places of their own.
    bool areApart = isa<device::PublishOp>(access.op) && isa<device::PublishOp>(other.op);
    if (!overlaps || areApart || (!access.isWrite && !other.isWrite) || knows(clocks[warp], other))
      continue;
    bool isBetweenWarps = other.component < warps && agentOf(other.component) == agentOf(warp);
    std::string who = isBetweenWarps ? warpName(warp) : agentName(agentOf(warp));
    launch.fail(access.op->getLoc(), who + (access.isWrite ? " overwrites " : " reads ") + "rows " +
                                         Twine(access.first) + " to " + Twine(access.end - 1) + " of stage " +
                                         Twine(stage) + " of " + ring.name + describeConflict(warp, access, other));
    return;
  }
  // Forget the accesses that this one is ordered after: all under a write, and completed reads of
  // the same warp under a read. Whoever knows this access knows those too.
  llvm::erase_if(known, [&](const Access &other) {
    if (other.first < access.first || access.end < other.end)
      return false;
    return access.isWrite ||
           (!other.isWrite && other.component == access.component && (!other.flight || other.flight->isDone));
  });
  known.push_back(std::move(access));
}

bool Shared::checkWritten(const RingMemory &ring, int64_t stage, int64_t first, int64_t rows, int64_t columns,
                          Operation *op, unsigned agent, int64_t firstColumn) {
  if (ring.isWritten(stage, first, rows, firstColumn, columns))
    return true;
  for (int64_t row = first; row < first + rows; ++row)
    for (int64_t column = firstColumn; column < columns; ++column)
      if (!ring.written[ring.placeOf(stage, row, column)]) {
        launch.fail(op->getLoc(), agentName(agent) + " reads element " + indexText({row, column}) + " of stage " +
                                      Twine(stage) + " of " + ring.name + ", which nothing has written");
        return false;
      }
  llvm_unreachable("an element is not written");
}

void Shared::meet(unsigned first, unsigned count) {
  Clock all = clocks[first];
  for (unsigned warp = first; warp < first + count; ++warp)
    for (auto [to, from] : llvm::zip(all, clocks[warp]))
      to = std::max(to, from);
  for (unsigned warp = first; warp < first + count; ++warp) {
    clocks[warp] = all;
    ++clocks[warp][warp];
  }
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

std::string Shared::describe(unsigned number) const {
  const BarrierState &barrier = barriers[number];
  return barrier.name + ", whose phase " + std::to_string(barrier.phase) + " has " + std::to_string(barrier.arrived) +
         " of " + std::to_string(barrier.declared) + " arrivals";
}

void Shared::arrive(ArrayRef<unsigned> from, unsigned number, Operation *op, int64_t count) {
  BarrierState &barrier = barriers[number];
  if (count == 0)
    count = from.size();
  std::string who = agentName(agentOf(from.front()));
  // Otherwise the arrival may count for the phase before.
  bool early = llvm::any_of(from, [&](unsigned warp) { return clocks[warp][barrier.component] < barrier.phase; });
  if (early || barrier.arrived + count > barrier.declared) {
    launch.fail(
        op->getLoc(),
        who + " arrives at " + barrier.name + ", but phase " + Twine(early ? barrier.phase - 1 : barrier.phase) +
            (early ? " may then have more than its " : " has more than its ") + Twine(barrier.declared) + " arrivals" +
            (early ? ": nothing tells " + who + " that it has completed"
                   : ": " + std::to_string(barrier.arrived) + " and " + std::to_string(count) + " more"));
    return;
  }
  barrier.arrived += count;
  for (unsigned warp : from) {
    for (auto [to, known] : llvm::zip(barrier.gathered, clocks[warp]))
      to = std::max(to, known);
    ++clocks[warp][warp];
  }
  completePhase(barrier, op);
}

void Shared::completePhase(BarrierState &barrier, Operation *op) {
  if (barrier.arrived != barrier.declared || barrier.bytes != 0)
    return;
  for (const BarrierState::Waited &waited : barrier.waits)
    if (barrier.gathered[waited.warp] < waited.stamp) {
      launch.fail(op->getLoc(), "phase " + Twine(barrier.phase) + " of " + barrier.name + " may complete before " +
                                    agentName(agentOf(waited.warp)) + " has waited for phase " +
                                    Twine(int64_t(barrier.phase) - 1) + " at " + locationText(waited.op->getLoc()) +
                                    "which would then wait for another");
      return;
    }
  barrier.waits.clear();
  barrier.arrived = 0;
  ++barrier.phase;
  barrier.gathered[barrier.component] = barrier.phase;
  barrier.last = barrier.gathered;
  ++progress;
}

bool Shared::wait(unsigned agent, unsigned number, bool parity, Operation *op) {
  BarrierState &barrier = barriers[number];
  unsigned first = getWarp(agent), end = first + countWarps(agent);
  // Find the phase that the parity means: the next phase that the agent does not know to have
  // completed, or the last one that it knows. Before the first phase there is a completed one of
  // parity 1.
  uint32_t known = clocks[first][barrier.component]; // as all of its warps, which wait together
  bool isNext = (known & 1) == parity;
  uint32_t after = isNext ? known + 1 : known; // phases completed when it is
  if (barrier.phase > after) {
    launch.fail(op->getLoc(), agentName(agent) + " waits for phase " + Twine(int64_t(after) - 1) + " of " +
                                  barrier.name + ", but " + Twine(barrier.phase) +
                                  " phases have completed: the wait has been overtaken");
    return true;
  }
  if (barrier.phase < after)
    return false;
  for (unsigned warp = first; warp < end; ++warp) {
    for (auto [to, from] : llvm::zip(clocks[warp], barrier.last))
      to = std::max(to, from);
    barrier.waits.push_back({warp, now(warp), op});
  }
  return true;
}

//===----------------------------------------------------------------------===//
// The copy engine
//===----------------------------------------------------------------------===//

int64_t RingMemory::bytesOf(const PendingCopy &copy) const {
  return copy.rows.size() * columns * type.getElementBytes();
}

void Shared::startCopy(ArrayRef<unsigned> by, PendingCopy copy, int64_t arrivals) {
  RingMemory &ring = *getRing(copy.ring, copy.stage, copy.op);
  BarrierState &barrier = barriers[copy.barrier];
  Access write;
  write.first = copy.first;
  write.end = copy.first + copy.rows.size();
  write.isWrite = true;
  write.component = barrier.component;
  write.stamp = barrier.phase + 1;
  write.op = copy.op;
  access(by.front(), ring, copy.stage, write);
  for (int64_t row = write.first; row < write.end; ++row)
    for (int64_t column = 0; column < ring.columns; ++column)
      ring.written[ring.placeOf(copy.stage, row, column)] = 0;
  barrier.bytes += ring.bytesOf(copy);
  unsigned number = copy.barrier;
  Operation *op = copy.op;
  copies.push_back(std::move(copy));
  arrive(by, number, op, arrivals);
}

void Shared::completeCopy(size_t which) {
  PendingCopy copy = std::move(copies[which]);
  copies.erase(copies.begin() + which);
  RingMemory &ring = *getRing(copy.ring, copy.stage, copy.op);
  const Memory &memory = *copy.from;
  bool hasStores = !launch.stored.empty();
  for (auto [number, elements] : llvm::enumerate(copy.rows)) {
    int64_t row = copy.first + number;
    for (int64_t column = 0; column < ring.columns; ++column) {
      if (!elements.contains(column)) {
        ring.write(copy.stage, row, column, 0);
        continue;
      }
      int64_t address = elements.addressOf(column);
      if (hasStores)
        if (Operation *store = launch.stored.lookup({&memory, address}))
          return launch.fail(copy.op->getLoc(), "the copy reads element " + indexText(memory.indexOf(address)) +
                                                    " of '" + memory.getName() + "', which the threads' store at " +
                                                    locationText(store->getLoc()) +
                                                    "writes: copies see it in a later launch only");
      ring.write(copy.stage, row, column, memory.read(address));
    }
  }
  BarrierState &barrier = barriers[copy.barrier];
  barrier.bytes -= ring.bytesOf(copy);
  completePhase(barrier, copy.op);
  ++progress;
}

//===----------------------------------------------------------------------===//
// The end of a block
//===----------------------------------------------------------------------===//

void Shared::checkEnd(Operation *kernel) {
  for (const auto &ring : rings)
    for (auto [stage, accesses] : llvm::enumerate(ring->accesses))
      for (const Access &access : accesses) {
        bool isCopy = access.isWrite && isa<device::CopyOp, device::CopyRowsOp>(access.op);
        bool isStore = !access.isWrite && isa<device::StoreTileOp>(access.op);
        bool isKnown = llvm::any_of(clocks, [&](const Clock &clock) { return knows(clock, access); });
        if ((isCopy || isStore) && !isKnown)
          launch.fail(access.op->getLoc(), Twine("the block may end before this ") +
                                               (isCopy ? "copy into" : "bulk store has read") + " stage " +
                                               Twine(stage) + " of " + ring->name + ": nobody waits for it");
      }
  for (const BarrierState &barrier : barriers)
    if (barrier.arrived != 0)
      launch.fail(kernel->getLoc(), "the block ends with " + Twine(barrier.arrived) + " of " + Twine(barrier.declared) +
                                        " arrivals in phase " + Twine(barrier.phase) + " of " + barrier.name);
  // In a persistent kernel the next block starts with the phases that this block leaves, if it has
  // reached its roles.
  bool goesOn = !cast<device::KernelOp>(kernel).getBody().front().getOps<device::NextBlockOp>().empty();
  bool hasBegun = llvm::any_of(barriers, [](const BarrierState &barrier) { return barrier.phase != 0; });
  for (const BarrierState &barrier : barriers)
    if (goesOn && hasBegun && barrier.phase % 2 != barrier.isOdd)
      launch.fail(kernel->getLoc(), "the block ends after " + Twine(barrier.phase) + " phases of " + barrier.name +
                                        ", and the next one expects an " + (barrier.isOdd ? "odd" : "even") +
                                        " number");
}
