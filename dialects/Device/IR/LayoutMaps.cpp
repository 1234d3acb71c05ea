//===- LayoutMaps.cpp - maps derived from the digits of layouts -----------===//
#include "dialects/Device/IR/LayoutMaps.h"
#include "llvm/ADT/STLExtras.h"
#include <map>
#include <set>

using namespace mlir;

namespace moa::device {

static int64_t digitOf(const LayoutAttr::Digit &digit, const Where &where) {
  return where.of(digit.place) / digit.stride % digit.size;
}

static void add(Where &where, const LayoutAttr::Digit &digit, int64_t value) {
  int64_t &number = digit.place == Place::warp ? where.warp : digit.place == Place::lane ? where.lane : where.reg;
  number += value * digit.stride;
}

LayoutMap::LayoutMap(LayoutAttr layout) : replicas(layout.getDigits(layout.getRank())) {
  for (unsigned axis = 0; axis < layout.getRank(); ++axis)
    axes.push_back(layout.getDigits(axis));
}

Indices LayoutMap::getIndices(const Where &where) const {
  Indices indices(axes.size(), 0);
  for (auto [index, digits] : llvm::zip(indices, axes))
    for (const LayoutAttr::Digit &digit : digits)
      index += digitOf(digit, where) * digit.weight;
  return indices;
}

Where LayoutMap::getWhere(ArrayRef<int64_t> indices, const Where &near) const {
  Where where;
  for (auto [index, digits] : llvm::zip(indices, axes))
    for (const LayoutAttr::Digit &digit : digits)
      add(where, digit, index / digit.weight % digit.size);
  for (const LayoutAttr::Digit &digit : replicas)
    if (digit.place != Place::register_)
      add(where, digit, digitOf(digit, near));
  return where;
}

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

using At = std::array<int64_t, 2>;

/// The larger depth comes first, because both may fit.
static const TileInstruction kHalfInstructions[] = {
    {16,
     8,
     16,
     {16, 16, 8,
      [](int64_t lane, int64_t i) -> At { return {lane / 4 + 8 * (i / 2 % 2), lane % 4 * 2 + i % 2 + 8 * (i / 4)}; }},
     {16, 8, 4, [](int64_t lane, int64_t i) -> At { return {lane % 4 * 2 + i % 2 + 8 * (i / 2), lane / 4}; }},
     {16, 8, 4, [](int64_t lane, int64_t i) -> At { return {lane / 4 + 8 * (i / 2), lane % 4 * 2 + i % 2}; }}},
    {16,
     8,
     8,
     {16, 8, 4, [](int64_t lane, int64_t i) -> At { return {lane / 4 + 8 * (i / 2), lane % 4 * 2 + i % 2}; }},
     {8, 8, 2, [](int64_t lane, int64_t i) -> At { return {lane % 4 * 2 + i, lane / 4}; }},
     {16, 8, 4, [](int64_t lane, int64_t i) -> At { return {lane / 4 + 8 * (i / 2), lane % 4 * 2 + i % 2}; }}}};

static const TileInstruction kDoubleInstructions[] = {
    {8,
     8,
     4,
     {8, 4, 1, [](int64_t lane, int64_t) -> At { return {lane / 4, lane % 4}; }},
     {4, 8, 1, [](int64_t lane, int64_t) -> At { return {lane % 4, lane / 4}; }},
     {8, 8, 2, [](int64_t lane, int64_t i) -> At { return {lane / 4, lane % 4 * 2 + i}; }}}};

std::optional<TileRegisters> getTileRegisters(LayoutAttr layout, const TileOperand &operand) {
  if (layout.getRank() != 2)
    return std::nullopt;
  LayoutMap map(layout);
  for (int64_t lane = 0; lane < kLanes; ++lane)
    if (auto [row, column] = operand.place(lane, 0); map.getIndices({0, lane, 0}) != Indices{row, column})
      return std::nullopt;
  std::map<At, int64_t> known; // contributions of the registers
  for (int64_t reg = 0; reg < layout.getNumRegisters(); ++reg) {
    Indices at = map.getIndices({0, 0, reg});
    if (!known.try_emplace({at[0], at[1]}, reg).second)
      return std::nullopt; // a replica: the register to write would be ambiguous
  }
  TileRegisters tiles;
  std::set<int64_t> rows, columns;
  for (const auto &[at, reg] : known) {
    rows.insert(at[0] / operand.rows * operand.rows);
    columns.insert(at[1] / operand.columns * operand.columns);
  }
  tiles.rowStarts.assign(rows.begin(), rows.end());
  tiles.columnStarts.assign(columns.begin(), columns.end());
  if (static_cast<int64_t>(rows.size() * columns.size()) * operand.elements != layout.getNumRegisters())
    return std::nullopt;
  for (int64_t row : rows) {
    auto &line = tiles.registers.emplace_back();
    for (int64_t column : columns) {
      auto &list = line.emplace_back();
      for (int64_t i = 0; i < operand.elements; ++i) {
        auto [r, c] = operand.place(0, i);
        auto found = known.find({row + r, column + c});
        if (found == known.end())
          return std::nullopt;
        list.push_back(found->second);
      }
    }
  }
  return tiles;
}

/// Returns true if elements 2i and 2i + 1 of every tile are one packed pair of registers.
static bool hasPairs(const TileRegisters &tiles) {
  for (const auto &line : tiles.registers)
    for (const auto &list : line)
      for (size_t i = 0; i + 1 < list.size(); i += 2)
        if (list[i] % 2 != 0 || list[i + 1] != list[i] + 1)
          return false;
  return true;
}

static std::array<int64_t, kWarps> getWarpStarts(LayoutAttr layout, unsigned axis) {
  LayoutMap map(layout);
  std::array<int64_t, kWarps> starts;
  for (int64_t warp = 0; warp < kWarps; ++warp)
    starts[warp] = map.getIndices({warp, 0, 0})[axis];
  return starts;
}

/// Returns why the warps' parts of the operands do not give the warps' parts of the result, or "".
static std::string compareWarps(LayoutAttr a, LayoutAttr b, LayoutAttr c) {
  auto rows = getWarpStarts(a, 0), columns = getWarpStarts(b, 1);
  auto resultRows = getWarpStarts(c, 0), resultColumns = getWarpStarts(c, 1);
  auto depthA = getWarpStarts(a, 1), depthB = getWarpStarts(b, 0);
  auto differ = [](int64_t warp, const char *what, int64_t first, const char *of, int64_t expected) {
    return "warp " + std::to_string(warp) + " holds " + what + " from " + std::to_string(first) + " of " + of +
           ", and in the result from " + std::to_string(expected);
  };
  for (int64_t warp = 0; warp < kWarps; ++warp) {
    if (rows[warp] != resultRows[warp])
      return differ(warp, "rows", rows[warp], "a", resultRows[warp]);
    if (columns[warp] != resultColumns[warp])
      return differ(warp, "columns", columns[warp], "b", resultColumns[warp]);
    if (depthA[warp] || depthB[warp])
      return "warp " + std::to_string(warp) + " holds k from " +
             std::to_string(depthA[warp] ? depthA[warp] : depthB[warp]) + " only";
  }
  return "";
}

std::optional<TileContraction> getTileContraction(FragmentType a, FragmentType b, FragmentType c, std::string &why) {
  bool isDouble = a.getElementType().isF64();
  ArrayRef<TileInstruction> candidates = isDouble ? ArrayRef(kDoubleInstructions) : ArrayRef(kHalfInstructions);
  LayoutAttr layouts[] = {a.getLayout(), b.getLayout(), c.getLayout()};
  for (const TileInstruction &instruction : candidates) {
    const TileOperand *operands[] = {&instruction.a, &instruction.b, &instruction.c};
    std::optional<TileRegisters> tiles[3];
    for (unsigned k = 0; k != 3; ++k) {
      tiles[k] = getTileRegisters(layouts[k], *operands[k]);
      if (tiles[k] && k < 2 && !isDouble && !hasPairs(*tiles[k]))
        tiles[k].reset();
      if (!tiles[k] && why.empty()) {
        static const char *const names[] = {"a", "b", "the result"};
        why = "expects tiles of " + std::to_string(operands[k]->rows) + " by " + std::to_string(operands[k]->columns) +
              " in " + names[k] + ", as mma.sync m" + std::to_string(instruction.m) + "n" +
              std::to_string(instruction.n) + "k" + std::to_string(instruction.k) + " has them (C2)";
      }
    }
    if (!tiles[0] || !tiles[1] || !tiles[2])
      continue;
    why = compareWarps(layouts[0], layouts[1], layouts[2]);
    bool agree = tiles[0]->rowStarts == tiles[2]->rowStarts && tiles[1]->columnStarts == tiles[2]->columnStarts &&
                 tiles[0]->columnStarts == tiles[1]->rowStarts;
    if (why.empty() && !agree)
      why = "a warp's registers hold different rows, columns or k in different operands";
    if (!why.empty()) {
      why = "expects every warp's parts of a, b and the result to agree (C4), but " + why;
      return std::nullopt;
    }
    return TileContraction{&instruction, *tiles[0], *tiles[1], *tiles[2]};
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Reading tiles
//===----------------------------------------------------------------------===//

/// Returns up to two factors of 2 of the register digits above the pairs: their strides and their
/// contributions to the indices, ascending.
static SmallVector<std::pair<int64_t, Indices>> getFactors(LayoutAttr layout) {
  SmallVector<std::pair<int64_t, Indices>> factors;
  for (unsigned axis = 0; axis <= layout.getRank(); ++axis)
    for (const LayoutAttr::Digit &digit : layout.getDigits(axis)) {
      if (digit.place != Place::register_ || digit.stride == 1)
        continue;
      for (int64_t part = 1; digit.size / part % 2 == 0; part *= 2) {
        Indices adds(2, 0);
        if (axis < 2)
          adds[axis] = digit.weight * part;
        factors.emplace_back(digit.stride * part, adds);
      }
    }
  llvm::sort(factors, [](const auto &x, const auto &y) { return x.first < y.first; });
  if (factors.size() > 2)
    factors.truncate(2);
  return factors;
}

std::optional<MatrixLoads> getMatrixLoads(LayoutAttr layout, bool transposed) {
  if (layout.getRank() != 2 || layout.getNumRegisters() % 2 != 0)
    return std::nullopt;
  // All indices from here on are rows and columns of the tile.
  auto inTile = [&](Indices at) { return transposed ? Indices{at[1], at[0]} : at; };
  LayoutMap map(layout);
  auto indices = [&](const Where &where) { return inTile(map.getIndices(where)); };
  MatrixLoads result;
  Indices pair = indices({0, 0, 1});
  result.isTransposed = pair == Indices{1, 0};
  if (!result.isTransposed && pair != Indices{0, 1})
    return std::nullopt;
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    Indices given = {lane / 4, lane % 4 * 2};
    if (result.isTransposed)
      std::swap(given[0], given[1]);
    if (indices({0, lane, 0}) != given)
      return std::nullopt;
  }
  auto isWhole = [](const Indices &at) { return at[0] % 8 == 0 && at[1] % 8 == 0; };
  for (int64_t warp = 0; warp < kWarps; ++warp)
    if (!isWhole(indices({warp, 0, 0})))
      return std::nullopt;
  auto factors = getFactors(layout);
  result.count = int64_t(1) << factors.size();
  for (auto [k, factor] : llvm::enumerate(factors))
    result.steps[k] = inTile(factor.second);
  for (int64_t reg = 0; reg < layout.getNumRegisters(); reg += 2) {
    Indices at = indices({0, 0, reg}), next = indices({0, 0, reg + 1});
    if (!isWhole(at) || next[0] != at[0] + pair[0] || next[1] != at[1] + pair[1])
      return std::nullopt;
    if (llvm::any_of(factors, [&](auto &factor) { return reg / factor.first % 2 != 0; }))
      continue;
    MatrixLoads::Load load{at[0], at[1], {}};
    for (int64_t k = 0; k != result.count; ++k) {
      int64_t number = reg;
      for (auto [bit, factor] : llvm::enumerate(factors))
        number += (k >> bit & 1) * factor.first;
      load.pairs.push_back(number / 2);
    }
    result.loads.push_back(std::move(load));
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

std::optional<LayoutConversion> getConversion(LayoutAttr from, LayoutAttr to, bool packed, std::string &why) {
  LayoutMap fromMap(from), toMap(to);
  int64_t registers = to.getNumRegisters();
  LayoutConversion result;
  std::vector<std::set<int64_t>> asked(registers);
  bool keepsPairs = packed && registers % 2 == 0 && from.getNumRegisters() % 2 == 0;
  for (int64_t warp = 0; warp < kWarps; ++warp)
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      Where first; // of a pair
      for (int64_t reg = 0; reg < registers; ++reg) {
        Where where{warp, lane, reg};
        Indices indices = toMap.getIndices(where);
        Where source = fromMap.getWhere(indices, where);
        if (source.warp != warp) {
          std::string element;
          for (int64_t index : indices)
            element += (element.empty() ? "[" : ", ") + std::to_string(index);
          why = "element " + element + "] of warp " + std::to_string(warp) + " stands in warp " +
                std::to_string(source.warp);
          return std::nullopt;
        }
        asked[reg].insert(source.reg);
        result.movesLanes |= source.lane != lane;
        if (reg % 2 == 0)
          first = source;
        else
          keepsPairs &= first.reg % 2 == 0 && source.lane == first.lane && source.reg == first.reg + 1;
      }
    }
  result.width = keepsPairs ? 2 : 1;
  for (int64_t reg = 0; reg < registers; reg += result.width) {
    auto &list = result.sources.emplace_back();
    for (int64_t source : asked[reg])
      list.push_back(source / result.width);
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

bool isReadByWarps(Value ring) { return llvm::any_of(ring.getUsers(), llvm::IsaPred<LoadFragmentOp>); }

AwaitStoresOp findWait(StoreTileOp store) { return dyn_cast_or_null<AwaitStoresOp>(store->getNextNode()); }

bool usesLanes(KernelOp kernel) {
  WalkResult found = kernel.walk([](Operation *op) {
    bool uses = isa<ArriveOp>(op) || llvm::any_of(op->getResultTypes(), llvm::IsaPred<FragmentType>);
    return uses ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found.wasInterrupted();
}

bool isLastBarriers(Operation *op) {
  Operation *last = nullptr;
  op->getParentOfType<KernelOp>().walk([&](BarriersOp barriers) { last = barriers; });
  return op == last;
}

} // namespace moa::device
