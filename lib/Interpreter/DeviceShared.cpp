//===- DeviceShared.cpp - shared memory, barriers, who knows what ---------===//
#include "lib/Interpreter/DeviceShared.h"
#include "lib/Support/HalfFloat.h"

using namespace mlir;
using namespace moa;
using namespace moa::interp;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

double RingMemory::valueOf(uint16_t word) const {
  if (type.getElementType().isBF16())
    return fromBFloat16(word);
  if (type.getElementType().isInteger(8))
    return int8_t(word);
  if (isa<Float8E4M3FNType>(type.getElementType()))
    return fromFloat8(uint8_t(word));
  return type.getElementType().isF16() ? fromFloat16(word) : int16_t(word);
}

uint16_t RingMemory::wordOf(double value) const {
  if (type.getElementType().isBF16())
    return toBFloat16(value);
  if (isa<Float8E4M3FNType>(type.getElementType()))
    return toFloat8(value);
  return type.getElementType().isF16() ? toFloat16(value)
                                       : uint16_t(static_cast<int64_t>(value));
}

Shared::Shared(Launch &launch, unsigned agents, int64_t limit)
    : launch(launch), agents(agents), limit(limit), clocks(agents, Clock(agents)) {
  for (unsigned agent = 0; agent < agents; ++agent)
    clocks[agent][agent] = 1;
}

/// The user's name of a ring or of barriers, or where they are declared.
static std::string nameOf(Operation *op, const char *what) {
  if (auto named = dyn_cast<NameLoc>(op->getLoc()))
    return "'" + named.getName().str() + "'";
  std::string where = locationText(op->getLoc());
  return where.empty() ? std::string("a ") + what
                       : std::string("the ") + what + " of " +
                             where.substr(0, where.size() - 2);
}

void Shared::checkLimit(Operation *op) {
  if (bytes > limit)
    launch.fail(op->getLoc(), "needs " + Twine(bytes) +
                                  " bytes of shared memory with what stands before it, but "
                                  "a block has " +
                                  Twine(limit));
}

void Shared::add(device::SharedOp op) {
  auto ring = std::make_unique<RingMemory>();
  ring->type = op.getResult().getType();
  ring->name = nameOf(op, "ring");
  int64_t elements = ring->type.getStages() * ring->type.getRows() * ring->type.getColumns();
  // The swizzle repeats every 1024 bytes.
  bytes = llvm::alignTo(bytes, 1024) + ring->type.getStages() * ring->type.getStageBytes();
  checkLimit(op);
  ring->bits.assign(elements, 0);
  ring->written.assign(elements, 0);
  ring->accesses.resize(ring->type.getStages());
  numbers[op.getResult()] = rings.size();
  rings.push_back(std::move(ring));
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
    barrier.component = agents + barriers.size();
    barriers.push_back(std::move(barrier));
  }
  bytes += 8 * type.getStages();
  checkLimit(op);
  for (Clock &clock : clocks)
    clock.resize(agents + barriers.size());
  for (BarrierState &barrier : barriers)
    for (Clock *clock : {&barrier.gathered, &barrier.last})
      clock->resize(agents + barriers.size());
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
    launch.fail(op->getLoc(), "the ring is none of this block");
    return nullptr;
  }
  RingMemory *ring = rings[found->second].get();
  if (stage >= 0 && stage < ring->type.getStages())
    return ring;
  launch.fail(op->getLoc(), ring->name + " has no stage " + Twine(stage) + ", only " +
                                Twine(ring->type.getStages()));
  return nullptr;
}

std::optional<unsigned> Shared::getBarrier(Value value, int64_t slot, Operation *op) {
  auto found = numbers.find(value);
  auto type = cast<device::BarriersType>(value.getType());
  if (found != numbers.end() && slot >= 0 && slot < type.getStages())
    return found->second + slot;
  launch.fail(op->getLoc(), found == numbers.end()
                                ? "the barriers are none of this block"
                                : "there is no barrier " + Twine(slot) + ", only " +
                                      Twine(type.getStages()));
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Reads and writes
//===----------------------------------------------------------------------===//

bool Shared::knows(const Clock &clock, const Access &access) const {
  if (!access.contraction)
    return clock[access.component] >= access.stamp;
  return access.contraction->isDone && clock[access.component] >= access.contraction->stamp;
}

void Shared::access(unsigned agent, RingMemory &ring, int64_t stage, Access access) {
  std::vector<Access> &known = ring.accesses[stage];
  std::string rows = "rows " + std::to_string(access.first) + " to " +
                     std::to_string(access.end - 1) + " of stage " + std::to_string(stage) +
                     " of " + ring.name;
  for (const Access &other : known) {
    bool overlaps = other.first < access.end && access.first < other.end;
    if (!overlaps || (!access.isWrite && !other.isWrite) || knows(clocks[agent], other))
      continue;
    std::string what;
    if (other.isWrite && isa<device::CopyOp>(other.op))
      what = " before the copy at " + locationText(other.op->getLoc()) +
             "is known to have completed";
    else if (other.contraction && !other.contraction->isDone)
      what = " while the contraction at " + locationText(other.op->getLoc()) + "of " +
             agentName(other.component) + " reads them and is not awaited";
    else
      what = " although " + agentName(other.component) + " may still " +
             (other.isWrite ? "write" : "read") + " them at " +
             locationText(other.op->getLoc()) + "nothing orders the two";
    launch.fail(access.op->getLoc(), agentName(agent) +
                                         (access.isWrite ? " overwrites " : " reads ") +
                                         rows + what);
    return;
  }
  // What a write is ordered behind need not be looked at again, nor an agent's read
  // that is over behind its next one: who knows this one knows that one too.
  llvm::erase_if(known, [&](const Access &other) {
    if (other.first < access.first || access.end < other.end)
      return false;
    return access.isWrite || (!other.isWrite && other.component == access.component &&
                              (!other.contraction || other.contraction->isDone));
  });
  known.push_back(std::move(access));
}

bool Shared::checkWritten(const RingMemory &ring, int64_t stage, int64_t first,
                          int64_t rows, int64_t columns, Operation *op, unsigned agent,
                          int64_t firstColumn) {
  for (int64_t row = first; row < first + rows; ++row)
    for (int64_t column = firstColumn; column < columns; ++column)
      if (!ring.written[ring.placeOf(stage, row, column)]) {
        launch.fail(op->getLoc(), agentName(agent) + " reads element " +
                                      indexText({row, column}) + " of stage " +
                                      Twine(stage) + " of " + ring.name +
                                      ", which nothing has written");
        return false;
      }
  return true;
}

void Shared::meet(unsigned count) {
  Clock all = clocks[0];
  for (unsigned agent = 1; agent < count; ++agent)
    for (auto [to, from] : llvm::zip(all, clocks[agent]))
      to = std::max(to, from);
  for (unsigned agent = 0; agent < count; ++agent) {
    clocks[agent] = all;
    ++clocks[agent][agent];
  }
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

std::string Shared::describe(unsigned number) const {
  const BarrierState &barrier = barriers[number];
  return barrier.name + ", whose phase " + std::to_string(barrier.phase) + " has " +
         std::to_string(barrier.arrived) + " of " + std::to_string(barrier.declared) +
         " arrivals";
}

void Shared::arrive(unsigned agent, unsigned number, int64_t count, Operation *op) {
  BarrierState &barrier = barriers[number];
  Clock &clock = clocks[agent];
  // Otherwise the arrival may belong to the phase before.
  if (clock[barrier.component] < barrier.phase || barrier.arrived + count > barrier.declared) {
    bool early = clock[barrier.component] < barrier.phase;
    launch.fail(op->getLoc(),
                agentName(agent) + " arrives at " + barrier.name + ", but phase " +
                    Twine(early ? barrier.phase - 1 : barrier.phase) +
                    (early ? " may then have more than its " : " has more than its ") +
                    Twine(barrier.declared) + " arrivals" +
                    (early ? ": nothing tells " + agentName(agent) + " that it has completed"
                           : ": " + std::to_string(barrier.arrived) + " and " +
                                 std::to_string(count) + " more"));
    return;
  }
  barrier.arrived += count;
  for (auto [to, from] : llvm::zip(barrier.gathered, clock))
    to = std::max(to, from);
  ++clock[agent];
  completePhase(barrier, op);
}

void Shared::completePhase(BarrierState &barrier, Operation *op) {
  if (barrier.arrived != barrier.declared || barrier.bytes != 0)
    return;
  for (const BarrierState::Waited &waited : barrier.waits)
    if (barrier.gathered[waited.agent] < waited.stamp) {
      launch.fail(op->getLoc(), "phase " + Twine(barrier.phase) + " of " + barrier.name +
                                    " may complete before " + agentName(waited.agent) +
                                    " has waited for phase " +
                                    Twine(int64_t(barrier.phase) - 1) + " at " +
                                    locationText(waited.op->getLoc()) +
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
  Clock &clock = clocks[agent];
  // The phase that is meant: the next one the agent does not know to have completed
  // or, by its parity, the last one it does; before the first one that is one of
  // parity 1.
  uint32_t known = clock[barrier.component];
  bool isNext = (known & 1) == parity;
  uint32_t after = isNext ? known + 1 : known; // phases completed when it is
  if (barrier.phase > after) {
    launch.fail(op->getLoc(), agentName(agent) + " waits for phase " +
                                  Twine(int64_t(after) - 1) + " of " + barrier.name +
                                  ", but " + Twine(barrier.phase) +
                                  " phases have completed: the wait has been overtaken");
    return true;
  }
  if (barrier.phase < after)
    return false;
  for (auto [to, from] : llvm::zip(clock, barrier.last))
    to = std::max(to, from);
  barrier.waits.push_back({agent, clock[agent], op});
  return true;
}

//===----------------------------------------------------------------------===//
// The copy engine
//===----------------------------------------------------------------------===//

void Shared::startCopy(unsigned agent, PendingCopy copy) {
  RingMemory &ring = *getRing(copy.op.getRing(), copy.stage, copy.op);
  BarrierState &barrier = barriers[copy.barrier];
  Access write;
  write.end = ring.type.getRows();
  write.isWrite = true;
  write.component = barrier.component;
  write.stamp = barrier.phase + 1;
  write.op = copy.op;
  access(agent, ring, copy.stage, write);
  int64_t elements = ring.type.getRows() * ring.type.getColumns();
  std::fill_n(ring.written.begin() + copy.stage * elements, elements, 0);
  barrier.bytes += ring.type.getStageBytes();
  unsigned number = copy.barrier;
  Operation *op = copy.op;
  copies.push_back(std::move(copy));
  arrive(agent, number, 1, op);
}

void Shared::completeCopy(size_t which) {
  PendingCopy copy = std::move(copies[which]);
  copies.erase(copies.begin() + which);
  RingMemory &ring = *getRing(copy.op.getRing(), copy.stage, copy.op);
  const Memory &memory =
      *launch.memories[cast<BlockArgument>(copy.op.getArray()).getArgNumber()];
  std::vector<int64_t> index = copy.coordinates;
  index.push_back(0);
  unsigned rowAxis = copy.op.getRowAxis();
  for (int64_t row = 0; row < ring.type.getRows(); ++row) {
    index[rowAxis] = (copy.coordinates[rowAxis] + row) * copy.step;
    for (int64_t column = 0; column < ring.type.getColumns(); ++column) {
      index.back() = copy.column + column;
      bool inside = true;
      for (auto [i, extent] : llvm::zip(index, memory.getShape()))
        inside &= i >= 0 && i < extent;
      int64_t place = ring.placeOf(copy.stage, row, column);
      ring.bits[place] =
          inside ? ring.wordOf(memory.read(memory.addressOf(index))) : uint16_t(0);
      ring.written[place] = 1;
    }
  }
  BarrierState &barrier = barriers[copy.barrier];
  barrier.bytes -= ring.type.getStageBytes();
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
        bool isCopy = access.isWrite && isa<device::CopyOp>(access.op);
        bool isKnown = llvm::any_of(
            clocks, [&](const Clock &clock) { return knows(clock, access); });
        if (isCopy && !isKnown)
          launch.fail(access.op->getLoc(), "the block may end before this copy into stage " +
                                               Twine(stage) + " of " + ring->name +
                                               ": nobody waits for it");
      }
  for (const BarrierState &barrier : barriers)
    if (barrier.arrived != 0)
      launch.fail(kernel->getLoc(), "the block ends with " + Twine(barrier.arrived) +
                                        " of " + Twine(barrier.declared) +
                                        " arrivals in phase " + Twine(barrier.phase) +
                                        " of " + barrier.name);
  // The next block begins with the phases that this one leaves, if it has got as far as its roles.
  bool goesOn = !cast<device::KernelOp>(kernel).getBody().front().getOps<device::NextBlockOp>().empty();
  bool hasBegun = llvm::any_of(barriers, [](const BarrierState &barrier) { return barrier.phase != 0; });
  for (const BarrierState &barrier : barriers)
    if (goesOn && hasBegun && barrier.phase % 2 != barrier.isOdd)
      launch.fail(kernel->getLoc(), "the block ends behind " + Twine(barrier.phase) + " phases of " + barrier.name +
                                        ", and the next one expects an " + (barrier.isOdd ? "odd" : "even") + " number");
}
