//===- DeviceFragments.cpp - maps and reductions in registers -------------===//
#include "lib/Interpreter/DeviceAgent.h"
#include <array>
#include <cmath>

using namespace mlir;
using namespace moa;
using namespace moa::interp;

namespace {

/// The body of a map, with one lane per element that a thread holds.
class MapBody final : public Threads {
public:
  MapBody(Launch &launch, Registers &registers, const LayoutTable &table, std::string where, int64_t firstThread)
      : Threads(launch, registers, table.elements.size(), std::move(where)), table(table), firstThread(firstThread) {}

protected:
  /// Repeats a per-thread value for all elements of the thread.
  Lanes adapt(const Lanes &lanes) override {
    if (lanes.size() == 1 || lanes.size() == width)
      return lanes;
    Repeated &known = repeated[lanes.data()];
    if (!known.source)
      known = {lanes, repeat(lanes, table.registers)};
    return known.list;
  }
  int64_t threadNumber(size_t k) override { return firstThread + k / table.registers; }
  bool special(Operation *op) override {
    auto offset = dyn_cast<device::ThreadOffsetOp>(op);
    if (!offset)
      return Threads::special(op);
    auto arg = cast<BlockArgument>(offset.getIndex());
    auto map = cast<device::MapOp>(arg.getOwner()->getParentOp());
    const auto &index = table.indices[arg.getArgNumber() - map.getInputs().size()];
    Cells list = Cells::some(width);
    for (size_t first = 0; first < width; first += table.registers)
      for (size_t k = first; k < first + table.registers; ++k)
        list[k] = ofInt(index[k] - index[first]);
    define(offset.getResult(), Lanes(std::move(list)));
    return true;
  }
  void checkStore(device::StoreOp op) override {
    if (!table.isReplicated)
      return;
    std::vector<int32_t> stored(table.count, -1);
    for (size_t k = 0; k < width; ++k) {
      if (!active[k])
        continue;
      int32_t &before = stored[table.elements[k]];
      if (before >= 0) {
        std::vector<int64_t> index;
        for (const auto &axis : table.indices)
          index.push_back(axis[k]);
        return fail(op, "element " + indexText(index) + " of the fragments is stored by threads " +
                            Twine(threadNumber(before)) + " and " + Twine(threadNumber(k)) + ", which both hold it");
      }
      before = k;
    }
  }

private:
  /// The source stays alive, so that its address names it.
  struct Repeated {
    Lanes source, list;
  };

  const LayoutTable &table;
  int64_t firstThread;
  llvm::DenseMap<const Cell *, Repeated> repeated;
};

bool same(Cell x, Cell y, bool isFloat) {
  return isFloat ? x.f == y.f || (std::isnan(x.f) && std::isnan(y.f)) : x.i == y.i;
}

std::string textOf(Cell cell, bool isFloat) { return isFloat ? std::to_string(cell.f) : std::to_string(cell.i); }

} // namespace

void Agent::fill(device::FillOp op) {
  if (width != kWarpgroupThreads) {
    isWarpgroup(op);
    return;
  }
  Lanes value = get(op.getValue(), op);
  int64_t registers = tableOf(op.getResult()).registers;
  Lanes cells = value.isUniform() ? Lanes(Cells(width * registers, value[0])) : repeat(value, registers);
  if (checkReplicas(op.getResult(), cells, op))
    define(op.getResult(), {std::move(cells), nullptr}, op);
}

/// Checks that threads that hold the same element hold the same value.
bool Agent::checkReplicas(Value fragment, ArrayRef<Cell> cells, Operation *op) {
  const LayoutTable &table = tableOf(fragment);
  if (!table.isReplicated)
    return true;
  Type type = cast<device::FragmentType>(fragment.getType()).getElementType();
  bool isFloat = isa<FloatType>(type);
  std::vector<int32_t> first(table.count, -1);
  for (size_t place = 0; place < cells.size(); ++place) {
    if (!active[place / table.registers])
      continue;
    int32_t &known = first[table.elements[place]];
    if (known < 0)
      known = place;
    if (same(cells[known], cells[place], isFloat))
      continue;
    std::vector<int64_t> index;
    for (const auto &axis : table.indices)
      index.push_back(axis[place]);
    fail(op, "the threads that hold element " + indexText(index) + " disagree: thread " +
                 Twine(threadNumber(known / table.registers)) + " has " + textOf(cells[known], isFloat) + ", thread " +
                 Twine(threadNumber(place / table.registers)) + " has " + textOf(cells[place], isFloat));
    return false;
  }
  return true;
}

/// Binds the body's arguments: the elements, then per-row and per-thread values repeated for the
/// thread's places, then indices.
bool Agent::bindElements(device::MapOp op, const LayoutTable &table) {
  ::mlir::Block &body = op.getBody().front();
  size_t places = table.elements.size();
  for (auto [input, arg] : llvm::zip(op.getInputs(), body.getArguments())) {
    Lanes cells = read(input, op).lanes;
    if (failed())
      return false;
    auto layout = cast<device::FragmentType>(input.getType()).getLayout();
    if (layout != op.getLayout()) {
      const std::vector<int32_t> &rows = block.layouts.getRows(op.getLayout(), layout);
      Cells spread = Cells::some(places);
      for (size_t place = 0; place < places; ++place) {
        if (rows[place] < 0) {
          fail(op, "thread " + Twine(threadNumber(place / table.registers)) + " does not hold row " +
                       Twine(table.indices[0][place]) + " of its elements");
          return false;
        }
        spread[place] = cells[rows[place]];
      }
      cells = Lanes(std::move(spread));
    }
    define(arg, std::move(cells));
  }
  for (auto [arg, indices] : llvm::zip(body.getArguments().drop_front(op.getInputs().size()), table.indexLanes))
    define(arg, indices);
  return true;
}

void Agent::map(device::MapOp op) {
  if (width != kWarpgroupThreads) {
    isWarpgroup(op);
    return;
  }
  const LayoutTable &table = block.layouts.get(op.getLayout());
  size_t places = table.elements.size();
  if (!bindElements(op, table))
    return;
  // A map without results has side effects. Over rows it runs once per row.
  bool once = op.getNumResults() == 0 && table.shape.size() == 1;
  Mask mask(places);
  if (once || !active.isAll()) {
    std::vector<uint8_t> list(places);
    for (size_t place = 0; place < places; ++place)
      list[place] = active[place / table.registers] && (!once || table.isFirst[place]);
    mask = Mask(places, std::move(list));
  }
  MapBody threads(launch, registers, table, where, firstThread);
  threads.start(op.getBody().front(), mask);
  threads.run(~0u);
  if (failed())
    return;
  for (auto [result, given] : llvm::zip(op.getResults(), threads.yielded)) {
    Lanes value = given.lanes;
    if (value.size() != places)
      value = value.isUniform() ? Lanes(Cells(places, value[0])) : repeat(value, table.registers);
    if (!checkReplicas(result, value, op))
      return;
    define(result, {std::move(value), nullptr}, op);
  }
}

/// Checks that the thread of a place also holds its row.
bool Agent::holdsRow(device::ReduceOp op, int32_t place, const LayoutTable &table, const std::vector<int32_t> &rowOf) {
  if (rowOf[place] >= 0)
    return true;
  fail(op, "thread " + Twine(threadNumber(place / table.registers)) + " has no register for row " +
               Twine(table.indices[0][place]));
  return false;
}

/// Adds f16 columns in the order that the op defines (half2 additions). Sums neighbouring pairs
/// with even and with odd number separately in f16, then both in f16, then the two neighbours in
/// f32.
void Agent::addPairs(device::ReduceOp op, const Lanes &cells, const LayoutTable &table, const LayoutTable &rows,
                     const std::vector<int32_t> &rowOf) {
  RoundedMonoid addHalf(Monoid::add, op.getFragment().getType().getElementType());
  RoundedMonoid addSingle(Monoid::add, op.getResult().getType().getElementType());
  std::vector<std::array<Cell, 4>> sums(rows.elements.size(), {ofFloat(0), ofFloat(0), ofFloat(0), ofFloat(0)});
  std::vector<int64_t> counts(rows.elements.size());
  for (int32_t place : table.byColumn) {
    if (!holdsRow(op, place, table, rowOf))
      return;
    Cell &sum = sums[rowOf[place]][counts[rowOf[place]]++ % 4];
    sum = addHalf(sum, cells[place]);
  }
  Cells result(sums.size());
  for (const auto &[k, of] : llvm::enumerate(sums)) {
    Cell even = addHalf(of[0], of[2]), odd = addHalf(of[1], of[3]);
    result[k] = addSingle(even, odd);
  }
  if (checkReplicas(op.getResult(), result, op))
    define(op.getResult(), {Lanes(std::move(result)), nullptr}, op);
}

/// Reduces in the order that the op defines. First come a thread's columns in order, even and odd
/// ones separately. Then come the lanes, nearest first, unless the op keeps per-lane partials.
void Agent::reduce(device::ReduceOp op) {
  if (width != kWarpgroupThreads) {
    isWarpgroup(op);
    return;
  }
  Lanes cells = read(op.getFragment(), op).lanes;
  if (failed())
    return;
  device::LayoutAttr layout = op.getFragment().getType().getLayout();
  const LayoutTable &table = block.layouts.get(layout), &rows = tableOf(op.getResult());
  const std::vector<int32_t> &rowOf = block.layouts.getRows(layout, rows.layout);
  Type type = op.getResult().getType().getElementType();
  Monoid monoid = op.getMonoid();
  if (op.getFragment().getType().getElementType().isF16() && type.isF32())
    return addPairs(op, cells, table, rows, rowOf);
  RoundedMonoid combined(monoid, type);
  auto add = [&](Cell &to, Cell x) { to = combined(to, x); };
  Cells even(rows.elements.size(), identityOf(monoid, type)), odd = even;
  for (int32_t place : table.byColumn) {
    if (!holdsRow(op, place, table, rowOf))
      return;
    add((table.indices[1][place] % 2 ? odd : even)[rowOf[place]], cells[place]);
  }
  for (size_t k = 0; k < even.size(); ++k)
    add(even[k], odd[k]);
  std::vector<int64_t> distances;
  bool joins = rows.shape.size() == 1;
  for (const device::LayoutAttr::Digit &digit : layout.getDigits(1))
    if (joins && digit.place == device::Place::lane)
      for (int64_t bit = 1; bit < digit.size; bit *= 2)
        distances.push_back(bit * digit.stride);
  llvm::sort(distances);
  for (int64_t distance : distances) {
    Cells before = even;
    for (size_t k = 0; k < even.size(); ++k) {
      int64_t thread = k / rows.registers, reg = k % rows.registers;
      add(even[k], before[(thread ^ distance) * rows.registers + reg]);
    }
  }
  if (checkReplicas(op.getResult(), even, op))
    define(op.getResult(), {Lanes(std::move(even)), nullptr}, op);
}

//===----------------------------------------------------------------------===//
// Branches of single warps
//===----------------------------------------------------------------------===//

std::vector<uint8_t> Agent::anyOf(Value condition, Operation *op) {
  std::vector<uint8_t> warps(width / kWarpThreads);
  if (width != kWarpgroupThreads) {
    isWarpgroup(op);
    return warps;
  }
  Lanes cells = read(condition, op).lanes;
  int64_t registers = tableOf(condition).registers;
  for (size_t k = 0; k < width && !failed(); ++k)
    for (int64_t reg = 0; active[k] && reg < registers; ++reg)
      warps[k / kWarpThreads] |= cells[k * registers + reg].i != 0;
  return warps;
}

void Agent::any(device::AnyOp op) {
  std::vector<uint8_t> warps = anyOf(op.getCondition(), op);
  if (failed())
    return;
  int64_t registers = tableOf(op.getResult()).registers;
  Cells cells(width * registers);
  for (size_t place = 0; place < cells.size(); ++place)
    cells[place] = ofInt(warps[place / registers / kWarpThreads]);
  if (checkReplicas(op.getResult(), cells, op))
    define(op.getResult(), {Lanes(std::move(cells)), nullptr}, op);
}

void Agent::enter(device::IfAnyOp op) {
  std::vector<uint8_t> warps = anyOf(op.getCondition(), op), list(width);
  for (size_t k = 0; k < width; ++k)
    list[k] = active[k] && warps[k / kWarpThreads];
  // Warps that skip the body also need the alternative values to be defined.
  SmallVector<Register> otherwise;
  for (Value value : op.getOtherwise())
    otherwise.push_back(read(value, op));
  if (failed())
    return;
  if (llvm::is_contained(warps, 1))
    return push(op, op.getBody().front(), Mask(width, std::move(list)));
  for (auto [result, value] : llvm::zip(op.getResults(), otherwise))
    define(result, value, op);
}

/// Warps that ran the body take the yielded values; others take the alternatives.
bool Agent::finishRegion(Frame &frame) {
  if (auto collect = dyn_cast<device::CollectOp>(frame.op))
    return finishRound(collect, frame);
  if (auto copy = dyn_cast<device::CopyRowsOp>(frame.op))
    return finishRound(copy, frame);
  auto op = dyn_cast<device::IfAnyOp>(frame.op);
  if (!op)
    return true;
  for (auto [k, result] : llvm::enumerate(op.getResults())) {
    Lanes yes = yielded[k].lanes, no = registers[op.getOtherwise()[k]].lanes;
    int64_t count = tableOf(result).registers;
    if (!active.isAll()) {
      Cells cells = Cells::some(width * count);
      for (size_t place = 0; place < cells.size(); ++place)
        cells[place] = active[place / count] ? yes[place] : no[place];
      yes = Lanes(std::move(cells));
    }
    define(result, {std::move(yes), nullptr}, op);
  }
  return true;
}
