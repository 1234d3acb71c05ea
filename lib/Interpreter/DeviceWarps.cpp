//===- DeviceWarps.cpp - operations of warps on their registers -----------===//
#include "lib/Interpreter/DeviceAgent.h"
#include <cmath>

using namespace mlir;
using namespace moa;
using namespace moa::interp;

namespace {

/// Returns the place of every element that the warp holds, or −1. If `lane` gives a lane for an
/// element, only the place in this lane counts; −1 allows any lane.
std::vector<int32_t> placesIn(int64_t warp, const LayoutTable &table,
                              llvm::function_ref<int64_t(int64_t, int64_t)> lane) {
  std::vector<int32_t> places(table.count, -1);
  int64_t first = warp * kWarpThreads * table.registers;
  for (int64_t place = first; place < first + kWarpThreads * table.registers; ++place) {
    int64_t expected = lane(table.indices[0][place], table.shape.size() > 1 ? table.indices[1][place] : 0);
    int32_t &known = places[table.elements[place]];
    if (known < 0 && (expected < 0 || expected == place / table.registers % kWarpThreads))
      known = place;
  }
  return places;
}

int64_t anyLane(int64_t, int64_t) { return -1; }

} // namespace

std::vector<uint8_t> Agent::activeWarps() const {
  std::vector<uint8_t> warps(width / kWarpThreads);
  for (size_t k = 0; k < width; ++k)
    warps[k / kWarpThreads] |= active[k];
  return warps;
}

/// Emulates mma.sync. Tiles have 8 by 8 and 8 by 4 elements, with lane / 4 along one index and lane
/// mod 4 along the other. Each operand element must be in the lane that mma.sync reads it from; a
/// copy in another lane does not count.
void Agent::contractFragments(device::ContractFragmentsOp op) {
  if (width != kWarpgroupThreads) {
    isWarpgroup(op);
    return;
  }
  Lanes a = read(op.getA(), op).lanes, b = read(op.getB(), op).lanes, c;
  if (op.getC())
    c = read(op.getC(), op).lanes;
  if (failed())
    return;
  const LayoutTable &rows = tableOf(op.getA()), &columns = tableOf(op.getB()), &sums = tableOf(op.getResult());
  bool isDouble = op.getResult().getType().getElementType().isF64();
  int64_t depth = rows.shape[1], across = sums.shape[1], each = isDouble ? 1 : 2;
  auto laneOf = [](int64_t outer, int64_t inner, int64_t each) { return outer % 8 * 4 + inner % (4 * each) / each; };
  Cells result(sums.elements.size());
  std::vector<uint8_t> warps = activeWarps();
  for (int64_t warp = 0; warp < static_cast<int64_t>(warps.size()); ++warp) {
    if (!warps[warp])
      continue;
    auto aPlaces = placesIn(warp, rows, [&](int64_t i, int64_t k) { return laneOf(i, k, each); });
    auto bPlaces = placesIn(warp, columns, [&](int64_t k, int64_t j) { return laneOf(j, k, each); });
    int64_t first = warp * kWarpThreads * sums.registers;
    for (int64_t place = first; place < first + kWarpThreads * sums.registers; ++place) {
      int64_t i = sums.indices[0][place], j = sums.indices[1][place];
      int64_t lane = place / sums.registers % kWarpThreads;
      if (lane != laneOf(i, j, 2))
        return fail(op, "lane " + Twine(lane) + " of warp " + Twine(warp) + " holds element " + indexText({i, j}) +
                            " of the result, which mma.sync leaves in lane " + Twine(laneOf(i, j, 2)));
      double sum = c ? c[place].f : 0;
      for (int64_t k = 0; k < depth; ++k) {
        int32_t x = aPlaces[i * depth + k], y = bPlaces[k * across + j];
        if (x < 0 || y < 0)
          return fail(op, "element " + indexText(x < 0 ? std::vector<int64_t>{i, k} : std::vector<int64_t>{k, j}) +
                              " of operand " + (x < 0 ? "a" : "b") + " is not in the lane of warp " + Twine(warp) +
                              " that mma.sync takes it from");
        sum = isDouble ? std::fma(a[x].f, b[y].f, sum) : sum + a[x].f * b[y].f;
      }
      result[place] = ofFloat(isDouble ? sum : static_cast<double>(static_cast<float>(sum)));
    }
  }
  if (checkReplicas(op.getResult(), result, op))
    define(op.getResult(), {Lanes(std::move(result)), nullptr}, op);
}

void Agent::loadFragment(device::LoadFragmentOp op) {
  if (width != kWarpgroupThreads) {
    isWarpgroup(op);
    return;
  }
  auto stage = getUniform(op.getStage(), op), row = getUniform(op.getRow(), op),
       column = getUniform(op.getColumn(), op);
  RingMemory *ring = stage ? block.shared.getRing(op.getRing(), *stage, op) : nullptr;
  if (!ring || !row || !column)
    return;
  const LayoutTable &table = tableOf(op.getResult());
  bool transposed = op.getTransposed();
  int64_t rows = table.shape[transposed], columns = table.shape[!transposed];
  if (*row % 8 != 0 || *column % 8 != 0)
    return fail(op,
                "reads from row " + Twine(*row) + " and column " + Twine(*column) + ", which are not multiples of 8");
  if (*row < 0 || *row + rows > ring->rows || *column < 0 || *column + columns > ring->columns)
    return fail(op, "reads rows " + Twine(*row) + " to " + Twine(*row + rows - 1) + " and columns " + Twine(*column) +
                        " to " + Twine(*column + columns - 1) + " of " + ring->name + ", which has " +
                        Twine(ring->rows) + " and " + Twine(ring->columns));
  const std::vector<int32_t> &rowOf = table.indices[transposed];
  size_t places = table.elements.size() / 4; // of a warp
  for (auto [warp, isActive] : llvm::enumerate(activeWarps())) {
    if (!isActive)
      continue;
    auto [least, most] = std::minmax_element(rowOf.begin() + warp * places, rowOf.begin() + (warp + 1) * places);
    unsigned reader = block.shared.getWarp(number, warp);
    block.shared.access(reader, *ring, *stage,
                        {*row + *least, *row + *most + 1, false, reader, block.shared.now(reader), nullptr, op});
  }
  if (failed() || !block.shared.checkWritten(*ring, *stage, *row, rows, *column + columns, op, number, *column))
    return;
  Cells cells(table.elements.size());
  for (size_t place = 0; place < cells.size(); ++place) {
    int64_t i = table.indices[transposed][place], j = table.indices[!transposed][place];
    cells[place] = ofFloat(ring->read(*stage, *row + i, *column + j));
  }
  define(op.getResult(), {Lanes(std::move(cells)), nullptr}, op);
}

void Agent::convertLayout(device::ConvertLayoutOp op) {
  if (width != kWarpgroupThreads) {
    isWarpgroup(op);
    return;
  }
  Lanes cells = read(op.getFragment(), op).lanes;
  if (failed())
    return;
  const LayoutTable &from = tableOf(op.getFragment()), &to = tableOf(op.getResult());
  Cells result(to.elements.size());
  std::vector<uint8_t> warps = activeWarps();
  for (int64_t warp = 0; warp < static_cast<int64_t>(warps.size()); ++warp) {
    if (!warps[warp])
      continue;
    auto places = placesIn(warp, from, anyLane);
    int64_t first = warp * kWarpThreads * to.registers;
    for (int64_t place = first; place < first + kWarpThreads * to.registers; ++place) {
      int32_t source = places[to.elements[place]];
      if (source < 0)
        return fail(op, "warp " + Twine(warp) + " holds element " + Twine(to.elements[place]) +
                            " of the result and not of the "
                            "fragment");
      result[place] = cells[source];
    }
  }
  define(op.getResult(), {Lanes(std::move(result)), nullptr}, op);
}
