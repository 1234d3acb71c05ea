//===- DeviceAgent.cpp - copies, barriers, stages -------------------------===//
#include "lib/Interpreter/DeviceAgent.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace moa;
using namespace moa::interp;

bool Agent::special(Operation *op) {
  --turns;
  auto done = [](auto) { return true; };
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<device::SharedOp, device::BarriersOp>([&](auto memory) { return block.shared.add(memory), true; })
      .Case<device::WarpgroupOp>([&](auto warpgroup) {
        define(warpgroup.getResult(), Lanes(ofInt(firstThread / kWarpgroupThreads)));
        return true;
      })
      .Case<device::CopyOp>([&](auto copied) { return copy(copied); })
      .Case<device::CopyRowsOp>([&](auto copied) { return done((enter(copied), 0)); })
      .Case<device::WaitOp>([&](auto waited) { return wait(waited); })
      .Case<device::ArriveOp>([&](auto arrived) { return arrive(arrived); })
      .Case<device::ClearUnseenOp>([&](auto cleared) { return clearUnseen(cleared); })
      .Case<device::FillOp>([&](auto filled) { return done((fill(filled), 0)); })
      .Case<device::ContractOp>([&](auto product) { return done((contract(product), 0)); })
      .Case<device::ContractFragmentsOp>([&](auto product) { return done((contractFragments(product), 0)); })
      .Case<device::LoadFragmentOp>([&](auto load) { return done((loadFragment(load), 0)); })
      .Case<device::ConvertLayoutOp>([&](auto converted) { return done((convertLayout(converted), 0)); })
      .Case<device::AwaitOp>([&](auto awaited) { return done((await(awaited), 0)); })
      .Case<device::StoreTileOp>([&](auto tile) { return done((storeTile(tile), 0)); })
      .Case<device::AwaitStoresOp>([&](auto awaited) { return done((awaitStores(awaited), 0)); })
      .Case<device::PublishOp>([&](auto published) { return done((publish(published), 0)); })
      .Case<device::SyncClusterOp>([&](auto barrier) { return done((syncCluster(barrier), 0)); })
      .Case<device::LoadPeerOp>([&](auto load) { return done((loadPeer(load), 0)); })
      .Case<device::SyncWarpgroupOp>([&](auto barrier) { return done((syncWarpgroup(barrier), 0)); })
      .Case<device::MapOp>([&](auto mapped) { return done((map(mapped), 0)); })
      .Case<device::ReduceOp>([&](auto reduced) { return done((reduce(reduced), 0)); })
      .Case<device::AnyOp>([&](auto vote) { return done((any(vote), 0)); })
      .Case<device::IfAnyOp>([&](auto branch) { return done((enter(branch), 0)); })
      .Case<device::CollectOp>([&](auto collected) { return done((enter(collected), 0)); })
      .Case<device::MemberOp>([&](auto asked) { return done((member(asked), 0)); })
      .Default([&](Operation *) {
        auto roles = dyn_cast<device::SpecializeOp>(op);
        if (!roles || !runRoles || !isTogether(op))
          return Threads::special(op);
        Value condition = roles.getCondition();
        std::optional<int64_t> runs = condition ? getUniform(condition, op) : 1;
        if (runs && *runs)
          runRoles(roles);
        return true;
      });
}

std::string Agent::describeWait() {
  std::string text = block.shared.agentName(number) + " waits at " + locationText(getWaiting()->getLoc());
  if (auto wait = dyn_cast<device::WaitOp>(getWaiting())) {
    auto barrier = barrierOf(wait.getBarriers(), wait.getSlot(), wait);
    auto parity = getUniform(wait.getParity(), wait);
    if (barrier && parity)
      text += "for parity " + std::to_string(*parity) + " of " + block.shared.describe(*barrier);
  } else {
    text += "for the other consumers: " + std::to_string(block.meeting.arrived) + " of " +
            std::to_string(block.consumers) + " are there";
  }
  return text;
}

bool Agent::isTogether(Operation *op) {
  for (const Frame &frame : frames)
    if (isa<device::IfAnyOp>(frame.op)) {
      fail(op, "'" + op->getName().getStringRef() + "' needs all warps, but some may skip the device.if_any around it");
      return false;
    }
  if (active.isAll() || active.count() == width)
    return true;
  fail(op, "'" + op->getName().getStringRef() + "' needs all threads, but " + Twine(active.count()) + " of " +
               Twine(width) + " are here");
  return false;
}

bool Agent::isWarpgroup(Operation *op) {
  if (width == kWarpgroupThreads)
    return isTogether(op);
  fail(op, "'" + op->getName().getStringRef() + "' needs the 128 threads of a warpgroup, but " + Twine(width) +
               (width == 1 ? " runs" : " run") + " it");
  return false;
}

std::optional<unsigned> Agent::barrierOf(Value barriers, Value slot, Operation *op) {
  auto index = getUniform(slot, op);
  return index ? block.shared.getBarrier(barriers, *index, op) : std::nullopt;
}

std::optional<std::vector<int64_t>> Agent::indicesOf(OperandRange values, Operation *op) {
  std::vector<int64_t> indices;
  for (Value value : values) {
    auto index = getUniform(value, op);
    if (!index)
      return std::nullopt;
    indices.push_back(*index);
  }
  return indices;
}

//===----------------------------------------------------------------------===//
// Copies and barriers
//===----------------------------------------------------------------------===//

template <typename OpT> std::optional<PendingCopy> Agent::describe(OpT op) {
  auto stage = getUniform(op.getStage(), op);
  auto barrier = barrierOf(op.getBarriers(), op.getSlot(), op);
  if (!stage || !barrier || !block.shared.getRing(op.getRing(), *stage, op))
    return std::nullopt;
  PendingCopy pending;
  pending.op = op;
  pending.from = launch.memories[cast<BlockArgument>(op.getArray()).getArgNumber()].get();
  pending.ring = op.getRing();
  pending.barrier = *barrier;
  pending.stage = *stage;
  return pending;
}

/// Starts a copy by the active thread, or by the first of a producer whose threads work together.
bool Agent::copy(device::CopyOp op) {
  auto roles = op->getParentOfType<device::SpecializeOp>();
  if (roles && roles.getTogether() ? !isTogether(op) : active.count() != 1) {
    if (!failed())
      fail(op, "one thread executes a copy, but " + Twine(active.count()) + " do");
    return true;
  }
  auto pending = describe(op);
  auto coordinates = pending ? indicesOf(op.getCoordinates(), op) : std::nullopt;
  std::optional<int64_t> column = op.getColumn() ? getUniform(op.getColumn(), op) : 0;
  std::optional<int64_t> first = op.getFirst() ? getUniform(op.getFirst(), op) : 0;
  if (!coordinates || !column || !first)
    return true;
  int64_t rows = op.getRing().getType().getRows(), count = op.getTileRows();
  if (*first < 0 || *first % 8 != 0 || *first + count > rows) {
    fail(op, "copies rows " + Twine(*first) + " to " + Twine(*first + count - 1) + " of " + Twine(rows) +
                 "; the first one is a multiple of 8");
    return true;
  }
  auto step = evaluate(op.getStep(), launch.symbols);
  if (!step || *step < 1) {
    fail(op, step ? "a step of rows is at least 1, but got " + Twine(*step) : Twine(toString(step.takeError())));
    return true;
  }
  pending->first = *first;
  std::vector<int64_t> index = *coordinates;
  index.push_back(*column);
  for (int64_t row = 0; row < count; ++row) {
    index[op.getRowAxis()] = ((*coordinates)[op.getRowAxis()] + row) * *step;
    pending->rows.push_back(pending->from->getRow(index, op.getRing().getType().getColumns()));
  }
  ++launch.copied[pending->from->getName()];
  size_t thread = 0;
  while (!active[thread])
    ++thread;
  block.shared.startCopy(warpOf(thread), std::move(*pending), 1);
  return true;
}

/// Starts the body of a copy of rows, in rounds of one row per thread.
void Agent::enter(device::CopyRowsOp op) {
  auto pending = isTogether(op) ? describe(op) : std::nullopt;
  if (!pending)
    return;
  rowsCopied = std::move(*pending);
  rowsCopied.rows.resize(op.getRing().getType().getRows());
  Cells first(width);
  for (size_t k = 0; k < width; ++k)
    first[k] = ofInt(k);
  push(op, op.getBody().front(), active);
  Frame &frame = frames.back();
  frame.index = Lanes(std::move(first));
  frame.end = Lanes(ofInt(rowsCopied.rows.size()));
  beginRound(frame);
}

bool Agent::finishRound(device::CopyRowsOp op, Frame &frame) {
  int64_t columns = op.getColumns(), unit = 16 / op.getRing().getType().getElementBytes();
  const Memory &memory = *rowsCopied.from;
  for (size_t k = 0; k < width; ++k) {
    if (!active[k] || !yielded[1].lanes[k].i)
      continue;
    Memory::Row row{0, columns, yielded[0].lanes[k].i, 1};
    if (row.address % unit != 0) {
      failAt(op, k, "a row begins at element " + Twine(row.address) + ", which is no multiple of 16 bytes");
      return true;
    }
    for (int64_t column = 0; column < columns; ++column)
      if (!memory.isElement(row.addressOf(column))) {
        failAt(op, k, "a row reaches outside of its array: " + outside(row.addressOf(column), memory));
        return true;
      }
    rowsCopied.rows[frame.index[k].i] = row;
  }
  Cells next(width);
  for (size_t k = 0; k < width; ++k)
    next[k] = ofInt(frame.index[k].i + width);
  frame.index = Lanes(std::move(next));
  if (beginRound(frame))
    return false;
  ++launch.copied[memory.getName()];
  SmallVector<unsigned> warps;
  for (size_t thread = 0; thread < width; thread += kWarpThreads)
    warps.push_back(warpOf(thread));
  block.shared.startCopy(warps, std::move(rowsCopied), op.kThreads);
  return true;
}

bool Agent::wait(device::WaitOp op) {
  auto barrier = barrierOf(op.getBarriers(), op.getSlot(), op);
  auto parity = getUniform(op.getParity(), op);
  if (!barrier || !parity || !isTogether(op))
    return true;
  if (*parity != 0 && *parity != 1) {
    fail(op, "a parity is 0 or 1, but got " + Twine(*parity));
    return true;
  }
  return block.shared.wait(number, *barrier, *parity, op);
}

bool Agent::arrive(device::ArriveOp op) {
  auto barrier = barrierOf(op.getBarriers(), op.getSlot(), op);
  if (!barrier)
    return true;
  SmallVector<unsigned> warps;
  for (size_t first = 0; first < width; first += kWarpThreads)
    if (active[first])
      warps.push_back(warpOf(first));
  if (!warps.empty())
    block.shared.arrive(warps, *barrier, op);
  return true;
}

//===----------------------------------------------------------------------===//
// Lists of indices
//===----------------------------------------------------------------------===//

void Agent::enter(device::CollectOp op) {
  auto lower = getUniform(op.getLower(), op), upper = getUniform(op.getUpper(), op);
  if (!lower || !upper || !isTogether(op))
    return;
  int64_t capacity = cast<device::MembersType>(op.getLists()[0].getType()).getCapacity();
  if (*upper - *lower > capacity)
    return fail(op, "asks for the indices from " + Twine(*lower) + " to " + Twine(*upper) +
                        ", but a list has room for " + Twine(capacity));
  block.shared.add(op);
  for (Value list : op.getLists())
    block.lists[list] = {*lower, {}};
  Cells first(width);
  for (size_t k = 0; k < width; ++k)
    first[k] = ofInt(*lower + threadNumber(k));
  push(op, op.getBody().front(), active);
  Frame &frame = frames.back();
  frame.index = Lanes(std::move(first));
  frame.end = Lanes(ofInt(*upper));
  if (beginRound(frame))
    return;
  active = frame.outer;
  frames.pop_back();
  for (Value count : op.getCounts())
    define(count, Lanes(ofInt(0)));
}

/// Activates the threads whose index is in range. Returns false if there is none.
bool Agent::beginRound(Frame &frame) {
  std::vector<uint8_t> inside(width);
  for (size_t k = 0; k < width; ++k)
    inside[k] = frame.index[k].i < frame.end[0].i;
  active = Mask(width, std::move(inside));
  if (!active.any())
    return false;
  define(frame.block->getArgument(0), frame.index);
  frame.next = frame.block->begin();
  return true;
}

bool Agent::finishRound(device::CollectOp op, Frame &frame) {
  Cells next(width);
  for (auto [list, result] : llvm::zip(op.getLists(), yielded)) {
    MemberList &members = block.lists[list];
    for (size_t k = 0; k < width; ++k)
      if (active[k] && result.lanes[k].i)
        members.members.push_back(frame.index[k].i - members.first);
  }
  for (size_t k = 0; k < width; ++k)
    next[k] = ofInt(frame.index[k].i + width);
  frame.index = Lanes(std::move(next));
  if (beginRound(frame))
    return false;
  for (auto [list, count] : llvm::zip(op.getLists(), op.getCounts()))
    define(count, Lanes(ofInt(block.lists[list].members.size())));
  return true;
}

void Agent::member(device::MemberOp op) {
  const MemberList &list = block.lists[op.getList()];
  int64_t capacity = op.getList().getType().getCapacity();
  Lanes places = get(op.getPlace(), op);
  Cells out(places.size());
  for (size_t k = 0; k < out.size() && !failed(); ++k) {
    int64_t place = places[k].i;
    if ((places.isUniform() || active[k]) && (place < 0 || place >= capacity))
      return fail(op, "asks for place " + Twine(place) + " of a list with room for " + Twine(capacity));
    // A place after the last member has an undefined index.
    bool isMember = place >= 0 && place < static_cast<int64_t>(list.members.size());
    out[k] = ofInt(isMember ? list.first + list.members[place] : -1);
  }
  define(op.getResult(), Lanes(std::move(out)));
}

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

/// Reads operand A: 64 rows, row-major.
bool Agent::readOperand(device::ContractOp op, const FlightPtr &contraction, std::vector<double> &rows) {
  auto fragment = dyn_cast<device::FragmentType>(op.getA().getType());
  if (fragment) {
    Lanes cells = read(op.getA(), op).lanes;
    int64_t columns = fragment.getShape()[1], registers = tableOf(op.getA()).registers;
    rows.assign(64 * columns, 0);
    for (int64_t thread = 0; thread < kWarpgroupThreads; ++thread)
      for (int64_t reg = 0; reg < registers; ++reg) {
        auto [i, j] = operandPlace(thread, reg % 8);
        rows[i * columns + reg / 8 * 16 + j] = cells[thread * registers + reg].f;
      }
    return !failed();
  }
  auto first = getUniform(op.getARow(), op);
  RingMemory *ring = first ? block.shared.getRing(op.getA(), 0, op) : nullptr;
  if (!ring)
    return false;
  if (*first < 0 || *first + 64 > ring->rows) {
    fail(op, "reads rows " + Twine(*first) + " to " + Twine(*first + 63) + " of " + ring->name + ", which has " +
                 Twine(ring->rows));
    return false;
  }
  int64_t columns = ring->columns;
  for (unsigned warp = 0; warp < 4; ++warp) // each warp reads the rows of its results
    block.shared.access(
        block.shared.getWarp(number, warp), *ring, 0,
        {*first + 16 * warp, *first + 16 * (warp + 1), false, block.shared.getWarp(number, warp), 0, contraction, op});
  if (failed() || !block.shared.checkWritten(*ring, 0, *first, 64, columns, op, number))
    return false;
  rows.resize(64 * columns);
  for (int64_t i = 0; i < 64; ++i)
    for (int64_t j = 0; j < columns; ++j)
      rows[i * columns + j] = ring->read(0, *first + i, j);
  return true;
}

/// Reads operand B: depth by columns, row-major.
bool Agent::readStage(device::ContractOp op, const FlightPtr &contraction, std::vector<double> &columns) {
  auto stage = getUniform(op.getBStage(), op);
  RingMemory *ring = stage ? block.shared.getRing(op.getB(), *stage, op) : nullptr;
  if (!ring)
    return false;
  int64_t rows = ring->rows, width = ring->columns;
  for (unsigned warp = 0; warp < 4; ++warp)
    block.shared.access(block.shared.getWarp(number, warp), *ring, *stage,
                        {0, rows, false, block.shared.getWarp(number, warp), 0, contraction, op});
  if (failed() || !block.shared.checkWritten(*ring, *stage, 0, rows, width, op, number))
    return false;
  columns.resize(rows * width);
  bool isTransposed = op.getTransposed(), isInterleaved = op.isInterleaved();
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < width; ++j)
      columns[isTransposed ? j * rows + i : i * width + j] =
          ring->read(*stage, i, isInterleaved ? op.getInterleaved(j) : j);
  return true;
}

/// Adds the products of 64 rows and of the first `most` indices of k. They are exact, so that a
/// fused multiply-add gives the same sums.
#if defined(__x86_64__) && defined(__GLIBC__)
__attribute__((target_clones("fma", "default")))
#endif
static void addProducts(const double *a, const double *b, double *sums, int64_t depth, int64_t columns, int64_t most) {
  for (int64_t i = 0; i < 64; ++i)
    for (int64_t k = 0; k < most; ++k) {
      double factor = a[i * depth + k], *to = &sums[i * columns];
      const double *from = &b[k * columns];
      for (int64_t j = 0; j < columns; ++j)
        to[j] += factor * from[j];
    }
}

/// Products of 16-bit and 8-bit floats and of 8-bit integers are exact in float64. They are added
/// there in order of k. The sum is rounded to f32 once; integer sums are exact.
void Agent::contract(device::ContractOp op) {
  if (!isWarpgroup(op))
    return;
  auto contraction = std::make_shared<Flight>(op, number);
  std::vector<double> a, b;
  if (!readOperand(op, contraction, a) || !readStage(op, contraction, b))
    return;
  int64_t columns = op.getResult().getType().getShape()[1];
  int64_t depth = a.size() / 64, registers = columns / 2;
  bool isInteger = isa<IntegerType>(op.getResult().getType().getElementType());
  std::vector<double> sums(64 * columns, 0);
  Lanes start;
  if (op.getC()) {
    start = read(op.getC(), op).lanes;
    if (failed())
      return;
    for (int64_t thread = 0; thread < kWarpgroupThreads; ++thread)
      for (int64_t reg = 0; reg < registers; ++reg) {
        auto [i, j] = accumulatorPlace(thread, reg);
        Cell cell = start[thread * registers + reg];
        sums[i * columns + j] = isInteger ? static_cast<double>(cell.i) : cell.f;
      }
  }
  addProducts(a.data(), b.data(), sums.data(), depth, columns, op.getDepth().value_or(depth));
  Cells result(kWarpgroupThreads * registers);
  for (int64_t thread = 0; thread < kWarpgroupThreads; ++thread)
    for (int64_t reg = 0; reg < registers; ++reg) {
      auto [i, j] = accumulatorPlace(thread, reg);
      double sum = sums[i * columns + j];
      result[thread * registers + reg] =
          isInteger ? ofInt(static_cast<int32_t>(static_cast<int64_t>(sum))) : ofFloat(static_cast<float>(sum));
    }
  define(op.getResult(), {Lanes(std::move(result)), contraction}, op);
  inFlight.push_back(std::move(contraction));
}

void Agent::await(device::AwaitOp op) {
  if (!isWarpgroup(op))
    return;
  Register value = read(op.getFragment(), op);
  if (!failed() && !value.contraction)
    return fail(op, "awaits a fragment that no contraction gives");
  int64_t pending = op.getPending(), started = inFlight.size();
  while (static_cast<int64_t>(inFlight.size()) > pending) {
    block.shared.finish(*inFlight.front(), block.shared.getWarp(number), block.shared.countWarps(number));
    inFlight.erase(inFlight.begin());
  }
  if (!failed() && !value.contraction->isDone)
    return fail(op, "leaves " + Twine(pending) +
                        " contractions on their way, of which the "
                        "awaited one, at " +
                        locationText(value.contraction->op->getLoc()) + "is one: only " +
                        Twine(started - 1 - (llvm::find(inFlight, value.contraction) - inFlight.begin()) -
                              (started - static_cast<int64_t>(inFlight.size()))) +
                        " were started after it");
  define(op.getResult(), {value.lanes, nullptr}, op);
}

void Agent::checkEnd() {
  if (!inFlight.empty())
    fail(inFlight.front()->op, "this contraction is never awaited");
}

//===----------------------------------------------------------------------===//
// Stages that warpgroups write
//===----------------------------------------------------------------------===//

bool Agent::clearUnseen(device::ClearUnseenOp op) {
  Meeting &meeting = block.meeting;
  if (joined) {
    if (meeting.round == *joined)
      return false;
    joined.reset();
    return true;
  }
  if (!isWarpgroup(op))
    return true;
  auto stage = getUniform(op.getStage(), op);
  RingMemory *ring = stage ? block.shared.getRing(op.getRing(), *stage, op) : nullptr;
  Lanes seen = read(op.getSeen(), op).lanes;
  if (!ring || failed())
    return true;
  block.shared.addWords(op);
  if (meeting.arrived == 0) {
    meeting.op = op;
    meeting.stage = *stage;
    meeting.seen.assign(op.getInterleaved() ? ring->columns : ring->rows, 0);
  } else if (meeting.op.getRing() != op.getRing() || meeting.stage != *stage) {
    fail(op, "the consumers clear different stages: here stage " + Twine(*stage) + " of " + ring->name +
                 ", but another does stage " + Twine(meeting.stage) + " at " +
                 StringRef(locationText(meeting.op.getLoc())).rtrim(": "));
    return true;
  }
  const LayoutTable &table = tableOf(op.getSeen());
  for (size_t place = 0; place < table.elements.size(); ++place)
    if (seen[place].i)
      meeting.seen[table.indices[1][place]] = 1;
  if (++meeting.arrived < block.consumers) {
    joined = meeting.round;
    return false;
  }
  clear(op, *ring);
  meeting.arrived = 0;
  ++meeting.round;
  ++block.shared.progress;
  return true;
}

void Agent::clear(device::ClearUnseenOp op, RingMemory &ring) {
  Meeting &meeting = block.meeting;
  ++launch.cleared;
  unsigned warp = block.shared.getWarp(number);
  block.shared.meet(0, block.shared.getWarp(block.consumers));
  Access write;
  write.end = ring.rows;
  write.isWrite = true;
  write.component = warp;
  write.stamp = block.shared.now(warp) - 1;
  write.op = op;
  block.shared.access(warp, ring, meeting.stage, write);
  if (failed() || !block.shared.checkWritten(ring, meeting.stage, 0, ring.rows, ring.columns, op, number))
    return;
  for (int64_t row = 0; row < ring.rows; ++row)
    for (int64_t column = 0; column < ring.columns; ++column)
      if (!meeting.seen[op.getInterleaved() ? column : row])
        ring.bits[ring.placeOf(meeting.stage, row,
                               op.getInterleaved() ? device::ContractOp::getInterleaved(column) : column)] = 0;
}

void Agent::storeTile(device::StoreTileOp op) {
  if (!isWarpgroup(op))
    return;
  auto stage = getUniform(op.getStage(), op), first = getUniform(op.getRow(), op);
  auto coordinates = indicesOf(op.getCoordinates(), op);
  RingMemory *ring = stage ? block.shared.getRing(op.getRing(), *stage, op) : nullptr;
  Lanes cells = read(op.getFragment(), op).lanes;
  if (!ring || !first || !coordinates || failed())
    return;
  if (*first < 0 || *first + 64 > ring->rows)
    return fail(op, "writes rows " + Twine(*first) + " to " + Twine(*first + 63) + " of " + ring->name +
                        ", which has " + Twine(ring->rows));
  const LayoutTable &table = tableOf(op.getFragment());
  for (unsigned warp = 0; warp < 4; ++warp) { // each warp writes the rows that it holds
    unsigned writer = block.shared.getWarp(number, warp);
    block.shared.access(
        writer, *ring, *stage,
        {*first + 16 * warp, *first + 16 * (warp + 1), true, writer, block.shared.now(writer), nullptr, op});
  }
  for (size_t place = 0; place < table.elements.size(); ++place)
    ring->write(*stage, *first + table.indices[0][place], table.indices[1][place], cells[place].f);
  // After a barrier of the warpgroup, the first warp starts the store.
  unsigned starter = block.shared.getWarp(number);
  block.shared.meet(starter, 4);
  stores.push_back(std::make_shared<Flight>(op, number));
  block.shared.access(starter, *ring, *stage, {*first, *first + 64, false, starter, 0, stores.back(), op});
  writeOutput(op, *ring, *stage, *first, std::move(*coordinates));
}

/// Writes the tile to the output. This may happen at once, since nothing changes the rows while the
/// store reads them.
void Agent::writeOutput(device::StoreTileOp op, const RingMemory &ring, int64_t stage, int64_t first,
                        std::vector<int64_t> index) {
  Memory &memory = *launch.memories[cast<BlockArgument>(op.getArray()).getArgNumber()];
  unsigned rowAxis = op.getRowAxis();
  int64_t start = index[rowAxis], columns = op.getFragment().getType().getShape()[1];
  index.push_back(0);
  for (int64_t row = 0; row < 64; ++row) {
    index[rowAxis] = start + row;
    Memory::Row elements = memory.getRow(index, columns);
    for (int64_t column = elements.begin; column < elements.end && !failed(); ++column) {
      int64_t address = elements.addressOf(column);
      if (memory.store(address, ofFloat(ring.read(stage, first + row, column))) > 1)
        fail(op, "element " + indexText(memory.indexOf(address)) + " of '" + memory.getName() + "' is written twice");
    }
  }
}

/// Awaits the bulk stores. Only one thread of the first warp waits.
void Agent::awaitStores(device::AwaitStoresOp op) {
  if (!isWarpgroup(op))
    return;
  for (const FlightPtr &store : stores)
    block.shared.finish(*store, block.shared.getWarp(number), 1);
  stores.clear();
}

/// Every warp overwrites its part of the ring's memory, wherever that is: it must know that nothing
/// else uses the ring.
void Agent::publish(device::PublishOp op) {
  Lanes cells = isWarpgroup(op) ? read(op.getFragment(), op).lanes : Lanes();
  if (failed())
    return;
  device::RingType type = op.getRing().getType();
  for (int64_t stage = 0; stage < type.getStages() && !failed(); ++stage) {
    RingMemory *ring = block.shared.getRing(op.getRing(), stage, op);
    if (!ring)
      return;
    for (unsigned warp = 0; warp < 4; ++warp) {
      unsigned writer = block.shared.getWarp(number, warp);
      block.shared.access(writer, *ring, stage, {0, ring->rows, true, writer, block.shared.now(writer), nullptr, op});
    }
    std::fill_n(ring->written.begin() + stage * ring->stageSize, ring->stageSize, 0);
  }
  launch.published[{launch.rank(), number, op.getResult().getAsOpaquePointer()}] = {
      std::move(cells), launch.syncs[{launch.rank(), number}]};
}

void Agent::syncCluster(device::SyncClusterOp op) {
  if (isWarpgroup(op))
    ++launch.syncs[{launch.rank(), number}];
}

void Agent::loadPeer(device::LoadPeerOp op) {
  auto rank = getUniform(op.getRank(), op);
  if (!rank || !isWarpgroup(op))
    return;
  if (launch.rank() != 0)
    return fail(op,
                "only the block of rank 0 reads fragments of its cluster, but rank " + Twine(launch.rank()) + " does");
  if (*rank < 0 || *rank >= launch.cluster)
    return fail(op, "asks for rank " + Twine(*rank) + " of a cluster of " + Twine(launch.cluster) + " blocks");
  auto found = launch.published.find({*rank, number, op.getPublished().getAsOpaquePointer()});
  if (found == launch.published.end())
    return fail(op, "reads a fragment that rank " + Twine(*rank) + " has not published");
  unsigned passed = launch.syncs[{0, number}], peer = launch.syncs[{*rank, number}];
  if (found->second.syncs >= passed)
    return fail(op, "reads a fragment of rank " + Twine(*rank) + " that no barrier of the cluster orders before it");
  if (*rank != 0 && peer <= passed)
    return fail(op, "reads a fragment of rank " + Twine(*rank) + ", which may have ended: it passes no later barrier");
  define(op.getResult(), {found->second.lanes, nullptr}, op);
}

void Agent::syncWarpgroup(device::SyncWarpgroupOp op) {
  if (isWarpgroup(op))
    block.shared.meet(block.shared.getWarp(number), 4);
}
