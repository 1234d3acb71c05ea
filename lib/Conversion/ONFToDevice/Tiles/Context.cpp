//===- Context.cpp - names that all parts of a tile kernel use ------------===//
#include "lib/Conversion/ONFToDevice/Tiles/Context.h"
#include "lib/Conversion/ONFToDevice/Tiles/GuardTiles.h"

using namespace mlir;
using namespace moa;
using namespace moa::onf;

namespace moa::tiles {

SymExpr tilesOf(const SymExpr &extent, int64_t size) {
  return SymExpr::floorDiv(extent + SymExpr(size - 1), SymExpr(size));
}

SmallVector<unsigned> axesOf(ArrayRef<Value> values, ForOp nest) {
  rows::Dependence deps;
  SmallVector<unsigned> axes;
  for (unsigned axis = 0; axis + 1 < nest.getExtents().size(); ++axis)
    if (llvm::any_of(values, [&](Value value) { return deps.on(value, nest.getBody().getArgument(axis)); }))
      axes.push_back(axis);
  return axes;
}

FragmentType typeOver(Over over, Type element) {
  MLIRContext *context = element.getContext();
  int64_t columns = over.kind == Over::Tile ? over.columns : 64;
  LayoutAttr tile = LayoutAttr::getAccumulator(context, columns);
  if (over.kind == Over::Rows)
    return FragmentType::get(context, {64}, element, tile.getSlice(0));
  if (over.kind == Over::Tile)
    return FragmentType::get(context, {64, columns}, element, tile);
  LayoutAttr parts = tile.getThreadPart(1);
  return FragmentType::get(context, {64, parts.getExtent(1)}, element, parts);
}

Value asFloat(ScalarCode &code, Value element) {
  return element.getType().isInteger(32)
             ? arith::SIToFPOp::create(code.b, code.loc, code.b.getF32Type(), element).getResult()
             : element;
}

void nameValue(ScalarCode &code, Value value, StringRef name) {
  Operation *op = value.getDefiningOp();
  if (op && !isa<NameLoc>(op->getLoc()) && !isa<device::SymbolOp>(op) && !getConstantIntValue(value))
    op->setLoc(code.named(name));
}

void clampLoads(ScalarCode &code, const TilePlan &plan) {
  code.clampsLoads = true;
  for (auto [index, size] :
       llvm::zip(plan.nest.getBody().getArguments(), plan.nest.getExtents().getAsValueRange<ExprAttr>()))
    code.indices[index] = size;
  code.indices[plan.keyIndex()] = plan.fold.getExtent();
}

static bool canClamp(const TilePlan &plan, Value condition, llvm::DenseMap<Operation *, bool> &known) {
  Operation *op = condition.getDefiningOp();
  bool isOfTiles =
      op == plan.fold.getOperation() ||
      llvm::any_of(plan.prologue,
                   [&](const TileProduct &contraction) { return contraction.fold.getOperation() == op; }) ||
      llvm::any_of(plan.folded.scores, [&](const Score &score) { return score.value == condition; });
  if (!op || !plan.nest->isProperAncestor(op) || isOfTiles)
    return true;
  if (auto found = known.find(op); found != known.end())
    return found->second;
  bool result = isPure(op) && op->getNumRegions() == 0 &&
                llvm::all_of(op->getOperands(), [&](Value operand) { return canClamp(plan, operand, known); });
  return known[op] = result;
}

bool canClamp(const TilePlan &plan, Value condition) {
  llvm::DenseMap<Operation *, bool> known;
  return canClamp(plan, condition, known);
}

bool isUniform(const TilePlan &plan, Value value) {
  rows::Dependence deps;
  return !deps.on(value, plan.rowIndex()) && !deps.on(value, plan.keyIndex());
}

TileContext::TileContext(const TilePlan &plan, device::ProgramOp program, unsigned number, OpBuilder &b)
    : plan(plan), program(program), number(number), b(b), choice(onf::ForOp(plan.nest).buildChoice()),
      predicate(plan.product ? std::nullopt : readPredicate(plan)) {}

std::string TileContext::freshName(StringRef wish) const {
  SmallVector<StringRef> taken = program.getAllNames();
  std::string name = wish.str();
  for (unsigned k = 2; llvm::is_contained(taken, name); ++k)
    name = (wish + "_" + Twine(k)).str();
  return name;
}

void WarpgroupPart::bindElement(ValueRange at, Value first) {
  code.bind(plan.rowIndex(), arith::AddIOp::create(b, code.loc, rows.base, at[0]));
  if (at.size() > 1)
    code.bind(plan.keyIndex(), arith::AddIOp::create(b, code.loc, first, at[1]));
}

} // namespace moa::tiles
