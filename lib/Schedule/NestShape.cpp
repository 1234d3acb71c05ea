//===- NestShape.cpp - shape of a nest for the cost model -----------------===//
#include "lib/Schedule/NestShape.h"
#include "dialects/ONF/IR/ColumnsHint.h"
#include "dialects/ONF/IR/Hints.h"

using namespace mlir;
using namespace moa;

/// Returns a constant extent; a negative extent is an empty range.
static std::optional<int64_t> sizeOf(const SymExpr &extent) {
  auto value = extent.getConstant();
  return value ? std::optional<int64_t>(std::max<int64_t>(*value, 0)) : std::nullopt;
}

// Far larger than every cache, far below overflow.
static constexpr int64_t maxCount = int64_t(1) << 24;

static int64_t countOf(const SymExpr &extent) { return std::min(sizeOf(extent).value_or(assumedExtent), maxCount); }

static FoldShape foldShape(onf::FoldOp fold) {
  FoldShape shape;
  shape.guarded = !fold.getBody().front().getOps<onf::GuardOp>().empty();
  shape.name = fold.getName().str();
  shape.extent = sizeOf(fold.getExtent());
  for (Operation &op : fold.getBody().front()) {
    if (auto acc = dyn_cast<onf::AccOp>(op)) {
      if (acc.getExtents().empty())
        continue;
      int64_t product = 1;
      for (const SymExpr &extent : acc.getExtents().getAsValueRange<ExprAttr>())
        product = std::min(product * countOf(extent), maxCount);
      shape.carried = std::min(shape.carried + product, maxCount);
    }
    op.walk([&](onf::FoldOp inner) { shape.inner = std::min(shape.inner + countOf(inner.getExtent()), maxCount); });
  }
  shape.values = shape.inner > 0 || shape.carried > 0 ? 1 : 0;
  return shape;
}

static unsigned computeBits(onf::ForOp nest) {
  bool anyFloat = false, anyWide = false, anyLong = false;
  nest.walk([&](Operation *op) {
    if (isa<onf::LoadOp>(op))
      return;
    for (Type type : op->getResultTypes()) {
      if (auto array = dyn_cast<ArrayType>(type))
        type = array.getElementType();
      anyFloat |= isa<FloatType>(type);
      anyWide |= type.isF64();
      if (isa<onf::AccOp>(op))
        anyLong |= type.isIndex() || type.isInteger(64);
    }
  });
  return anyWide || (!anyFloat && anyLong) ? 64 : 32;
}

std::vector<NestShape> moa::nestShapes(onf::KernelOp kernel) {
  std::vector<NestShape> shapes;
  for (auto nest : kernel.getBody().getOps<onf::ForOp>()) {
    NestShape shape;
    for (StringRef name : nest.getNames().getAsValueRange<StringAttr>())
      shape.names.push_back(name.str());
    if (!nest.getExtents().empty())
      shape.laneExtent = sizeOf(getSymExpr(nest.getExtents().getValue().back()));
    shape.bits = computeBits(nest);
    shape.isShort = nest->hasAttr(onf::kShortAttr);
    for (auto fold : nest.getBody().getOps<onf::FoldOp>()) {
      FoldShape &made = shape.folds.emplace_back(foldShape(fold));
      if (auto columns = nest->getAttrOfType<IntegerAttr>(onf::kColumnsAttr))
        made.carried = columns.getInt(), made.values = 1;
    }
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

RegisterBlock moa::registerBlock(const Machine &machine) {
  int64_t broadcasts = std::max<int64_t>(1, machine.registers / 4);
  return {broadcasts, std::max<int64_t>(1, (machine.registers - 1) / (broadcasts + 1))};
}

WorkingSet moa::workingSet(const NestShape &nest, const FoldShape &fold, const Machine &machine, int64_t registers,
                           int64_t lanes, int64_t block) {
  int64_t rows = registers * lanes;
  int64_t panel = std::min(registers, registerBlock(machine).vectors) * lanes;
  int64_t bytes = nest.bits / 8, wide = fold.inner + fold.carried;
  WorkingSet set;
  set.staged = block * wide * bytes;
  set.values = block * panel * fold.values * bytes;
  set.states = rows * wide * bytes;
  return set;
}
