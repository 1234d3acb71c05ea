//===- Columns.cpp - nests in blocks of columns ---------------------------===//
#include "lib/Conversion/ONFToVector/Columns.h"
#include "dialects/ONF/IR/ColumnsHint.h"
#include "dialects/ONF/IR/Hints.h"
#include "lib/Analysis/OnDemand.h"
#include "lib/Conversion/ONFToVector/FoldPlan.h"
#include "lib/Conversion/ONFToVector/ONFToVector.h"
#include "lib/Conversion/ONFToVector/Running.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace moa {

#define GEN_PASS_DEF_BLOCKCOLUMNS
#include "lib/Conversion/ConversionPasses.h.inc"

namespace rows {
using namespace onf;

/// Axes with fewer rows or columns than this are not blocked.
static constexpr int64_t kFewest = 8;

void moveLast(ForOp nest, unsigned axis) {
  Builder b(nest.getContext());
  SmallVector<Attribute> names(nest.getNames().getValue()), extents(nest.getExtents().getValue());
  auto rotate = [&](auto &list) { std::rotate(list.begin() + axis, list.begin() + axis + 1, list.end()); };
  rotate(names), rotate(extents);
  nest.setNamesAttr(b.getArrayAttr(names));
  nest.setExtentsAttr(b.getArrayAttr(extents));
  Block &body = nest.getBody().front();
  BlockArgument before = body.getArgument(axis);
  before.replaceAllUsesWith(body.addArgument(before.getType(), before.getLoc()));
  body.eraseArgument(axis);
}

namespace {

/// Rewrites one nest, whose last two axes are columns and rows, or one loop in it over columns of
/// its rows.
class Columns {
public:
  explicit Columns(ForOp nest)
      : nest(nest), body(nest.getBody().front()), b(nest.getContext()), column(*(body.getArguments().end() - 2)) {}
  Columns(ForOp nest, ForOp loop)
      : nest(nest), body(loop.getBody().front()), b(nest.getContext()), column(body.getArgument(0)) {}
  /// Returns whether the sums in the nest or the loop can carry columns.
  bool check();
  void rewrite();

private:
  bool isSum(FoldOp fold);
  bool isOfColumn(Operation *op) {
    return llvm::any_of(op->getResults(), [&](Value result) { return deps.on(result, column); });
  }
  FoldOp carry(FoldOp fold);
  AccOp carry(AccOp acc, const IRMapping &map);
  Value cloneOf(Value value, Block *source, IRMapping &map);
  void moveRest();

  ForOp nest;
  Block &body;
  OpBuilder b;
  BlockArgument column;
  Dependence deps;
  SmallVector<std::pair<FoldOp, FoldOp>> folds; // the original, the fold for all columns
};

} // namespace

/// Returns whether a fold consists of plain float sums per column. Its guard may depend only on the
/// row: a block multiplies masked-out elements by 0, and such an element may be NaN or infinite.
bool Columns::isSum(FoldOp fold) {
  if (GuardOp guard = getGuard(fold);
      guard && (deps.on(guard.getCondition(), column) || deps.on(guard.getCondition(), fold.getBody().getArgument(0))))
    return false;
  if (llvm::any_of(fold.getBounds(), [&](Value bound) { return deps.on(bound, column); }))
    return false;
  bool isPlain = llvm::all_of(getAccs(fold), [&](AccOp acc) {
    Type type = acc.getResult().getType();
    return acc.getMonoid() == Monoid::add && (type.isF32() || type.isF64()) && acc.getRefs().empty() &&
           acc.getOthers().empty() && acc.getExtents().empty();
  });
  // A nested fold would be copied for every column.
  auto hasInner = [&] { return fold.getBody().walk([](FoldOp) { return WalkResult::interrupt(); }).wasInterrupted(); };
  // The emitter treats every state as a row value, even if all rows share it. So in a term with
  // columns, a state must be a whole factor. For example, y(k, c)·m is accepted, but
  // exp(y(k, c) − m) is not.
  llvm::SmallDenseMap<Value, bool> known;
  std::function<bool(Value)> isOfFold = [&](Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || known.try_emplace(value, false).second == false)
      return op && known.lookup(value);
    return known[value] = isa<FoldOp>(op) || llvm::any_of(op->getOperands(), isOfFold);
  };
  auto mixesStates = [&] {
    return fold.getBody()
        .walk([&](Operation *op) {
          bool isMixed = !isa<arith::MulFOp, arith::DivFOp, AccOp, YieldOp, FoldOp>(op) &&
                         llvm::any_of(op->getOperands(), isOfFold) &&
                         llvm::any_of(op->getOperands(), [&](Value operand) { return deps.on(operand, column); });
          return isMixed ? WalkResult::interrupt() : WalkResult::advance();
        })
        .wasInterrupted();
  };
  return isPlain && !hasInner() && !mixesStates() &&
         OnDemand(nest->getParentOfType<onf::KernelOp>()).isUnconditional(fold);
}

/// Returns whether the part of `value` that depends on the column contains no fold.
static bool isScalarCode(Value value, BlockArgument column, Dependence &deps, llvm::SmallPtrSetImpl<Value> &seen) {
  Operation *op = value.getDefiningOp();
  if (!op || !seen.insert(value).second || !deps.on(value, column))
    return true;
  return op->getNumRegions() == 0 &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return isScalarCode(operand, column, deps, seen); });
}

bool Columns::check() {
  bool isAny = false;
  for (Operation &op : body) {
    auto carries = [](AccOp acc) { return !acc.getExtents().empty(); };
    if (isa<ForOp>(op) || (isa<FoldOp>(op) && llvm::any_of(getAccs(cast<FoldOp>(op)), carries)))
      return false;
    auto fold = dyn_cast<FoldOp>(op);
    if (!fold || !isOfColumn(fold))
      continue;
    if (!isSum(fold))
      return false;
    llvm::SmallPtrSet<Value, 16> seen;
    for (AccOp acc : getAccs(fold))
      if (!isScalarCode(getYielded(acc.getValue()), column, deps, seen))
        return false;
    isAny = true;
  }
  return isAny && !llvm::is_contained(nest.getChoiceIndices(), column) && !findRunningFold(nest);
}

/// Returns the copy of a value for column `column + d`, in the region of a state. Copies the ops of
/// the block `source`, and elsewhere only the ops that depend on the column.
Value Columns::cloneOf(Value value, Block *source, IRMapping &map) {
  if (Value known = map.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  if (!op || (op->getBlock() != source && !deps.on(value, column)))
    return value;
  for (Value operand : op->getOperands())
    map.map(operand, cloneOf(operand, source, map));
  return b.clone(*op, map)->getResult(cast<OpResult>(value).getResultNumber());
}

/// Returns the state with an added axis of columns.
AccOp Columns::carry(AccOp acc, const IRMapping &outside) {
  Location loc = acc.getLoc();
  Type type = ArrayType::get(b.getContext(), {SymExpr(kColumns)}, acc.getResult().getType());
  auto made = AccOp::create(b, loc, type, acc.getMonoid(), acc.getNameAttr(), b.getStrArrayAttr({getIndexName(column)}),
                            b.getArrayAttr(ExprAttr::get(b.getContext(), kColumns)), ValueRange(), ValueRange(),
                            acc.getCombine(), acc.getSingular(), acc.getOperandTypeAttr(), acc.getFunctionAttr());
  made->setDiscardableAttrs(acc->getDiscardableAttrDictionary());
  OpBuilder::InsertionGuard guard(b);
  Block *block = b.createBlock(&made.getValue(), {}, b.getIndexType(), loc);
  IRMapping map = outside;
  map.map(column, arith::AddIOp::create(b, loc, column, block->getArgument(0)).getResult());
  Block *source = &acc.getValue().front();
  YieldOp::create(b, loc, cloneOf(getYielded(acc.getValue()), source, map));
  return made;
}

/// Returns the fold whose states have an axis for the columns of a block.
FoldOp Columns::carry(FoldOp fold) {
  b.setInsertionPoint(fold);
  SmallVector<AccOp> accs = getAccs(fold);
  SmallVector<Type> types;
  for (AccOp acc : accs)
    types.push_back(ArrayType::get(b.getContext(), {SymExpr(kColumns)}, acc.getResult().getType()));
  auto made = FoldOp::create(b, fold.getLoc(), types, fold.getNameAttr(), fold.getExtentAttr(), fold.getLiftAttr(),
                             fold.getPiecesAttr(), fold.getBounds());
  OpBuilder::InsertionGuard guard(b);
  Block *block = b.createBlock(&made.getBody(), {}, b.getIndexType(), fold.getLoc());
  IRMapping map;
  map.map(fold.getBody().getArgument(0), block->getArgument(0));
  SmallVector<Value> states;
  for (Operation &op : fold.getBody().front()) {
    if (auto acc = dyn_cast<AccOp>(op))
      states.push_back(carry(acc, map).getResult());
    else if (!isa<YieldOp>(op) && !isOfColumn(&op))
      b.clone(op, map);
  }
  YieldOp::create(b, fold.getLoc(), states);
  return made;
}

/// Moves the ops after the folds into a loop over the columns of a block.
void Columns::moveRest() {
  Location loc = nest.getLoc();
  b.setInsertionPointToEnd(&body);
  if (Operation *last = body.empty() ? nullptr : &body.back(); last && last->hasTrait<OpTrait::IsTerminator>())
    b.setInsertionPoint(last);
  auto loop = ForOp::create(b, loc, b.getStrArrayAttr({getIndexName(column)}),
                            b.getArrayAttr(ExprAttr::get(b.getContext(), kColumns)));
  Block *block = b.createBlock(&loop.getBody(), {}, b.getIndexType(), loc);
  IRMapping map;
  Value index = block->getArgument(0);
  map.map(column, arith::AddIOp::create(b, loc, column, index).getResult());
  for (auto [one, all] : folds)
    for (auto [result, state] : llvm::zip_equal(one.getResults(), all.getResults()))
      map.map(result, AtOp::create(b, loc, result.getType(), state, index).getResult());
  SmallVector<Operation *> old;
  for (Operation &op : body) {
    if (&op == loop || op.hasTrait<OpTrait::IsTerminator>() || (isa<FoldOp>(op) && !isOfColumn(&op)))
      continue;
    old.push_back(&op);
    bool isCarried = llvm::any_of(folds, [&](auto &pair) { return pair.first == &op || pair.second == &op; });
    if (isCarried)
      continue;
    if (isa<StoreOp>(op) || isOfColumn(&op))
      b.clone(op, map);
  }
  for (Operation *op : llvm::reverse(old))
    if (isa<StoreOp>(op) || (op->use_empty() && op->getNumResults() != 0))
      op->erase();
}

void Columns::rewrite() {
  for (auto fold : llvm::to_vector(body.getOps<FoldOp>()))
    if (isOfColumn(fold))
      folds.emplace_back(fold, carry(fold));
  deps = Dependence(); // the IR has changed
  moveRest();
}

/// Returns whether all folds of a body that carry columns run in blocks.
static bool runInBlocks(Block &body, Value row) {
  Dependence deps;
  OnDemand onDemand(row.getParentBlock()->getParentOp()->getParentOfType<onf::KernelOp>());
  return llvm::all_of(body.getOps<FoldOp>(), [&](FoldOp fold) {
    auto accs = getAccs(fold);
    if (accs.empty() || accs[0].getExtents().empty())
      return true;
    auto plan = planFold(fold, row, deps, onDemand);
    return plan && plan->accumulators.size() == accs.size();
  });
}

/// Returns whether the folds run in blocks after the rewrite. Tries it on a copy of the nest, for
/// the nest itself or for its loop `number`.
static bool runsInBlocks(ForOp nest, std::optional<unsigned> number = std::nullopt) {
  OpBuilder b(nest);
  auto copy = cast<ForOp>(b.clone(*nest.getOperation()));
  ForOp loop = number ? *std::next(copy.getBody().getOps<ForOp>().begin(), *number) : ForOp();
  Columns columns = loop ? Columns(copy, loop) : Columns(copy);
  bool isBlocked = columns.check();
  if (isBlocked) {
    columns.rewrite();
    isBlocked = runInBlocks((loop ? loop : copy).getBody().front(), copy.getBody().getArguments().back());
  }
  copy.erase();
  return isBlocked;
}

bool orderColumns(ForOp nest) {
  auto isFew = [&](unsigned axis) {
    auto size = getSymExpr(nest.getExtents()[axis]).getConstant();
    return size && *size < kFewest;
  };
  unsigned rank = nest.getExtents().size();
  if (rank < 2 || nest.getLift() || nest->hasAttr(kColumnsAttr) || nest->hasAttr(kShortAttr) || isFew(rank - 1) ||
      llvm::none_of(nest.getBody().getOps<FoldOp>(), [](FoldOp) { return true; }))
    return false;
  OpBuilder b(nest);
  for (unsigned axis = rank - 1; axis-- > 0;) {
    if (isFew(axis))
      continue;
    auto copy = cast<ForOp>(b.clone(*nest.getOperation()));
    moveLast(copy, axis);
    bool isBlocked = runsInBlocks(copy);
    copy.erase();
    if (!isBlocked)
      continue;
    moveLast(nest, axis);
    nest->setAttr(kColumnsAttr, b.getI64IntegerAttr(kColumns));
    return true;
  }
  return false;
}

void blockColumns(ForOp nest) {
  if (nest->hasAttr(kColumnsAttr))
    return Columns(nest).rewrite();
  if (nest.getExtents().empty())
    return;
  for (auto [number, loop] : llvm::enumerate(llvm::to_vector(nest.getBody().getOps<ForOp>())))
    if (loop.getExtents().size() == 1 && !loop.getBody().getOps<FoldOp>().empty() && runsInBlocks(nest, number)) {
      Columns(nest, loop).rewrite();
      loop->setAttr(kColumnsAttr, Builder(nest.getContext()).getI64IntegerAttr(kColumns));
    }
}

} // namespace rows

namespace {
struct BlockColumns final : impl::BlockColumnsBase<BlockColumns> {
  void runOnOperation() final {
    for (auto kernel : getOperation().getOps<onf::KernelOp>())
      for (auto nest : llvm::to_vector(kernel.getBody().getOps<onf::ForOp>()))
        rows::orderColumns(nest);
  }
};
} // namespace

std::unique_ptr<Pass> createBlockColumnsPass() { return std::make_unique<BlockColumns>(); }

} // namespace moa
