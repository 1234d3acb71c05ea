//===- DeviceLayouts.cpp - elements of fragments in registers -------------===//
#include "lib/Interpreter/DeviceLayouts.h"
#include <numeric>

using namespace moa;
using namespace moa::interp;

LayoutTable::LayoutTable(device::LayoutAttr attr) : layout(attr) {
  // Uses only the attribute's parameters: a digit is (number / stride) mod size.
  llvm::ArrayRef<int64_t> ranks = layout.getRanks(), places = layout.getPlaces(), sizes = layout.getSizes(),
                          strides = layout.getStrides();
  for (auto [place, size] : llvm::zip(places, sizes))
    if (place == static_cast<int64_t>(device::Place::register_))
      registers *= size;
  int64_t axes = ranks.size() - 1, digits = 0;
  for (int64_t axis = 0; axis <= axes; ++axis) {
    int64_t extent = 1;
    for (int64_t k = digits; k < digits + ranks[axis]; ++k)
      extent *= sizes[k];
    digits += ranks[axis];
    if (axis == axes)
      isReplicated = extent > 1;
    else
      shape.push_back(extent);
  }
  for (int64_t extent : shape)
    count *= extent;
  int64_t all = kWarpgroupThreads * registers;
  indices.assign(axes, std::vector<int32_t>(all));
  elements.resize(all);
  isFirst.resize(all);
  for (int64_t place = 0; place < all; ++place) {
    int64_t thread = place / registers;
    int64_t numbers[3] = {thread / kWarpThreads, thread % kWarpThreads, place % registers};
    int64_t element = 0;
    for (int64_t axis = 0, digit = 0; axis <= axes; ++axis) {
      int64_t index = 0;
      for (int64_t end = digit + ranks[axis]; digit < end; ++digit)
        index = index * sizes[digit] + numbers[places[digit]] / strides[digit] % sizes[digit];
      if (axis == axes) {
        isFirst[place] = index == 0;
      } else {
        indices[axis][place] = index;
        element = element * shape[axis] + index;
      }
    }
    elements[place] = element;
  }
  for (const std::vector<int32_t> &axis : indices) {
    Cells cells = Cells::some(all);
    std::transform(axis.begin(), axis.end(), cells.data(), ofInt);
    indexLanes.emplace_back(std::move(cells));
  }
  if (axes != 2)
    return;
  byColumn.resize(all);
  std::iota(byColumn.begin(), byColumn.end(), 0);
  for (auto first = byColumn.begin(); first != byColumn.end(); first += registers)
    std::stable_sort(first, first + registers, [&](int32_t x, int32_t y) { return indices[1][x] < indices[1][y]; });
}

const LayoutTable &LayoutTables::get(device::LayoutAttr layout) {
  auto &table = tables[layout];
  if (!table)
    table = std::make_unique<LayoutTable>(layout);
  return *table;
}

const std::vector<int32_t> &LayoutTables::getRows(device::LayoutAttr whole, device::LayoutAttr rows) {
  auto &list = rowTables[{whole, rows}];
  if (list)
    return *list;
  const LayoutTable &from = get(whole), &to = get(rows);
  list = std::make_unique<std::vector<int32_t>>(from.elements.size(), -1);
  for (size_t place = 0; place < list->size(); ++place) {
    int64_t thread = place / from.registers;
    for (int64_t reg = 0; reg < to.registers; ++reg)
      if (to.indices[0][thread * to.registers + reg] == from.indices[0][place])
        (*list)[place] = thread * to.registers + reg;
  }
  return *list;
}
