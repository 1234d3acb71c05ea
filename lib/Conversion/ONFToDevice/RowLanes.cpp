//===- RowLanes.cpp - row kernels with a group of lanes per row -----------===//
#include "lib/Conversion/ONFToDevice/RowLanes.h"
#include "lib/Conversion/ONFToDevice/GpuNests.h"
#include "lib/Conversion/ONFToDevice/Tiles.h"
#include "lib/Conversion/ONFToVector/Dependence.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace moa;
using namespace moa::onf;

/// Rows with fewer columns have one thread each. A lane keeps at most `kMostKept` elements of a row
/// in registers.
static constexpr int64_t kLeastColumns = 32, kMostKept = 32;
/// Runs of a block if the columns are an axis of the nest.
static constexpr int64_t kMostRuns = 4;
/// Rows of a lane if blocks may have nothing to do, because starting and ending a block takes as
/// long as a load. With at most `kFewRows` rows, if known, blocks are few anyway.
static constexpr int64_t kRowsPerLane = 2, kFewRows = 1024;

//===----------------------------------------------------------------------===//
// The form
//===----------------------------------------------------------------------===//

static bool canRun(Type element) { return element.isIntOrFloat() && element.getIntOrFloatBitWidth() >= 8; }

static StringRef arrayName(Value array) {
  auto argument = cast<BlockArgument>(array);
  return cast<onf::KernelOp>(argument.getOwner()->getParentOp()).getArrayName(argument.getArgNumber());
}

/// Returns the position of the term `index` if it is the subscript of the last axis and no other
/// term depends on it. Returns nullopt otherwise, or if elements cannot be read as a run (canRun).
static std::optional<unsigned> findColumn(AccessOpInterface op, Value index, rows::Dependence &deps) {
  ArrayType type = op.getArray().getType();
  if (type.getRank() == 0 || !canRun(type.getElementType()))
    return std::nullopt;
  std::optional<unsigned> column;
  for (auto [k, term] : llvm::enumerate(op.getTerms())) {
    if (term != index && !deps.on(term, index))
      continue;
    if (column || term != index || op.getSubscripts().findAxis(k) != type.getRank() - 1)
      return std::nullopt;
    column = k;
  }
  return column;
}

/// Returns whether every subscript is an index of a loop with the axis's extent. The element is
/// then in bounds under any conditions.
static bool isAlwaysThere(LoadOp load) {
  ArrayType type = load.getArray().getType();
  for (unsigned axis = 0; axis < type.getRank(); ++axis) {
    auto index = dyn_cast_or_null<BlockArgument>(load.getIndex(axis).getValue());
    if (!index)
      return false;
    Attribute extent;
    if (auto loop = dyn_cast<ForOp>(index.getOwner()->getParentOp()))
      extent = loop.getExtents()[index.getArgNumber()];
    else if (auto fold = dyn_cast<FoldOp>(index.getOwner()->getParentOp()))
      extent = fold.getExtentAttr();
    if (extent != type.getShape()[axis])
      return false;
  }
  return true;
}

/// Returns whether all loads of a value are in bounds under any conditions.
static bool isThere(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto load = dyn_cast_or_null<LoadOp>(op))
    return load.getArray().getType().getRank() == 0 || isAlwaysThere(load);
  return !op || (op->getNumRegions() == 0 && llvm::all_of(op->getOperands(), isThere));
}

/// Returns the guard of a scope if it is the same for all columns; else null. Elements may be out
/// of bounds where it fails, so that a run has none there.
static GuardOp findRowGuard(Block &scope, Value index) {
  auto guards = llvm::to_vector(scope.getOps<GuardOp>());
  rows::Dependence deps;
  if (guards.empty() || deps.on(guards[0].getCondition(), index))
    return {};
  return guards[0];
}

/// Returns whether the address of a load is computed without reading memory.
static bool isComputed(LoadOp load) {
  return !anySource(load.getTerms(), [](Operation *op) { return isa<LoadOp, FoldOp>(op); });
}

/// Returns the loads along the columns that every element of a scope needs, or whose elements are
/// in bounds anyway. Loads of one side of a selection, or under a guard, may be out of bounds.
static SmallVector<LoadOp> findRuns(Block &scope, Value index) {
  SmallVector<LoadOp> runs;
  rows::Dependence deps;
  llvm::DenseMap<Value, bool> seen; // whether it is always needed
  SmallVector<std::pair<Value, bool>> open;
  bool isGuarded = !scope.getOps<GuardOp>().empty(), ofRow = bool(findRowGuard(scope, index));
  for (Operation &op : scope) {
    if (auto store = dyn_cast<StoreOp>(op))
      open.emplace_back(store.getValue(), true);
    else if (auto acc = dyn_cast<AccOp>(op))
      open.emplace_back(rows::getYielded(acc.getValue()), !isGuarded || ofRow);
    else if (auto yield = dyn_cast<YieldOp>(op); yield && isa<AccOp>(scope.getParentOp()))
      open.emplace_back(yield.getValues()[0], true);
    else if (auto guard = dyn_cast<GuardOp>(op))
      open.emplace_back(guard.getCondition(), true);
  }
  while (!open.empty()) {
    auto [value, isNeeded] = open.pop_back_val();
    Operation *op = value.getDefiningOp();
    auto [entry, isNew] = seen.try_emplace(value, isNeeded);
    if (!op || (!isNew && (entry->second || !isNeeded)) || isa<FoldOp, AccOp>(op) || !deps.on(value, index))
      continue;
    entry->second = isNeeded;
    auto load = dyn_cast<LoadOp>(op);
    if (load && !llvm::is_contained(runs, load) && findColumn(load, index, deps) &&
        ((isNeeded && (!ofRow || isComputed(load))) || isAlwaysThere(load)))
      runs.push_back(load);
    bool chooses =
        isa<arith::SelectOp>(op) || (isa<arith::AndIOp, arith::OrIOp>(op) && op->getResult(0).getType().isInteger(1));
    for (OpOperand &operand : op->getOpOperands())
      open.emplace_back(operand.get(), isNeeded && (!chooses || operand.getOperandNumber() == 0));
  }
  return runs;
}

bool moa::isAdjacentAlong(LoadOp load, Value index) {
  rows::Dependence deps;
  return findColumn(load, index, deps).has_value();
}

bool moa::isAdjacentAlong(StoreOp store, Value index) {
  rows::Dependence deps;
  return findColumn(store, index, deps).has_value();
}

/// Returns whether a fold is a contraction: its operands are of different rows, as in a product of
/// matrices, or it reads across the columns.
static bool isContraction(FoldOp fold) {
  Block &scope = fold.getBody().front();
  Value index = scope.getArgument(0);
  auto axes = cast<ForOp>(fold->getParentOp()).getBody().getArguments();
  rows::Dependence deps;
  SmallVector<LoadOp> loads;
  fold.walk([&](LoadOp load) {
    if (deps.on(load.getResult(), index))
      loads.push_back(load);
  });
  auto isOn = [&](LoadOp load, Value axis) {
    return llvm::any_of(load.getTerms(), [&](Value term) { return term == axis || deps.on(term, axis); });
  };
  auto hasOther = [&](LoadOp load, LoadOp other) {
    return llvm::any_of(axes, [&](Value axis) { return isOn(load, axis) && !isOn(other, axis); });
  };
  return llvm::any_of(loads, [&](LoadOp load) {
    return !findColumn(load, index, deps) ||
           llvm::any_of(loads, [&](LoadOp other) { return hasOther(load, other) && hasOther(other, load); });
  });
}

/// Visits the scopes of columns inside of a serial fold.
static void forScopes(FoldOp fold, llvm::function_ref<void(Block &, const SymExpr &)> body) {
  for (Operation &op : fold.getBody().front()) {
    if (auto inner = dyn_cast<FoldOp>(op))
      body(inner.getBody().front(), inner.getExtent());
    else if (auto acc = dyn_cast<AccOp>(op); acc && !acc.getExtents().empty())
      body(acc.getValue().front(), getSymExpr(acc.getExtents()[0]));
  }
}

/// Returns whether every step of a fold needs an inner fold. The inner fold's loads are then in
/// bounds, and it can be computed before all columns.
static bool isNeeded(FoldOp fold, FoldOp inner) {
  llvm::DenseSet<Value> seen;
  SmallVector<Value> open;
  auto pushTerms = [&](FoldOp of) {
    for (AccOp acc : rows::getAccs(of))
      open.push_back(rows::getYielded(acc.getValue()));
  };
  pushTerms(fold);
  while (!open.empty()) {
    Operation *op = open.pop_back_val().getDefiningOp();
    if (op == inner)
      return true;
    auto other = dyn_cast_or_null<FoldOp>(op);
    if (other && other->getParentOp() == fold && !rows::getGuard(other))
      pushTerms(other);
    if (!op || op->getNumRegions() != 0)
      continue;
    bool chooses =
        isa<arith::SelectOp>(op) || (isa<arith::AndIOp, arith::OrIOp>(op) && op->getResult(0).getType().isInteger(1));
    for (Value operand : chooses ? op->getOperands().take_front() : op->getOperands())
      if (seen.insert(operand).second)
        open.push_back(operand);
  }
  return false;
}

/// Returns whether a value may be computed from a fold.
static bool reaches(Value value, FoldOp fold) {
  llvm::DenseSet<Value> seen;
  SmallVector<Value> open{value};
  while (!open.empty()) {
    Operation *op = open.pop_back_val().getDefiningOp();
    if (!op)
      continue;
    if (op == fold)
      return true;
    auto push = [&](Operation *of) {
      for (Value operand : of->getOperands())
        if (seen.insert(operand).second)
          open.push_back(operand);
    };
    push(op);
    for (Region &region : op->getRegions())
      region.walk(push);
  }
  return false;
}

/// Returns whether all inner folds of a serial fold are computed outside of column loops, where
/// lanes are not together. Each must be needed in every step, or be used by columns only through
/// factors that are computed before them.
static bool areOutsideColumns(FoldOp fold) {
  for (auto inner : fold.getBody().getOps<FoldOp>()) {
    if (isNeeded(fold, inner))
      continue;
    bool isInside = false;
    forScopes(fold, [&](Block &scope, const SymExpr &) {
      Operation *owner = scope.getParentOp();
      Operation *term = isa<AccOp>(owner) ? rows::getYielded(cast<AccOp>(owner).getValue()).getDefiningOp() : nullptr;
      if (owner == inner)
        return;
      scope.walk([&](Operation *op) {
        for (Value operand : op->getOperands()) {
          bool isOutside = operand.getParentBlock() != &scope;
          isInside |= isOutside && op != term && reaches(operand, inner);
        }
      });
    });
    if (isInside)
      return false;
  }
  return true;
}

namespace {
/// Finds the scopes of a nest whose index runs over columns.
class RowLanesFinder {
public:
  explicit RowLanesFinder(ForOp nest) { form.nest = nest; }
  std::optional<RowLanes> run();

private:
  bool add(Block &scope, Value index, const SymExpr &extent);
  bool addSerial(FoldOp fold);
  bool hasColumns(FoldOp fold);
  bool isFlat(Block &scope) {
    return llvm::none_of(scope, [](Operation &op) { return isa<FoldOp, ForOp>(op); });
  }
  void choose();

  RowLanes form;
  int64_t most = 0, leastBits = 64, mostRead = 0;
  bool isKnown = true, any = false;
};
} // namespace

/// Adds a scope, which must load or store along its columns.
bool RowLanesFinder::add(Block &scope, Value index, const SymExpr &extent) {
  bool found = false;
  auto visit = [&](Type element) {
    leastBits = std::min<int64_t>(leastBits, element.getIntOrFloatBitWidth());
    found = true;
  };
  for (LoadOp load : findRuns(scope, index)) {
    visit(load.getResult().getType());
    // An array that all rows read stays in caches, and does not decide the width of loads.
    Block &body = form.nest.getBody().front();
    Value row = body.getArgument(body.getNumArguments() - (form.columnsInNest ? 2 : 1));
    if (rows::Dependence().on(load.getResult(), row))
      mostRead = std::max<int64_t>(mostRead, load.getResult().getType().getIntOrFloatBitWidth());
  }
  for (auto store : scope.getOps<StoreOp>())
    if (isAdjacentAlong(store, index))
      visit(store.getArray().getType().getElementType());
  auto columns = extent.getConstant();
  isKnown &= columns.has_value();
  most = std::max(most, columns.value_or(0));
  any = true;
  return found && isFlat(scope);
}

/// Adds a fold that is not over columns, but whose inner folds and states with one axis are.
bool RowLanesFinder::addSerial(FoldOp fold) {
  bool found = false;
  rows::Dependence deps;
  for (Operation &op : fold.getBody().front()) {
    if (isa<ForOp>(op))
      return false;
    if (auto inner = dyn_cast<FoldOp>(op)) {
      Block &scope = inner.getBody().front();
      Value index = scope.getArgument(0);
      auto isAcross = [&](LoadOp load) { return deps.on(load.getResult(), index) && !findColumn(load, index, deps); };
      bool hasAxes = llvm::any_of(rows::getAccs(inner), [](AccOp acc) { return !acc.getExtents().empty(); });
      if (hasAxes || llvm::any_of(scope.getOps<LoadOp>(), isAcross) || !add(scope, index, inner.getExtent()))
        return false;
      found = true;
    }
    auto acc = dyn_cast<AccOp>(op);
    if (!acc || acc.getExtents().empty())
      continue;
    const SymExpr &extent = getSymExpr(acc.getExtents()[0]);
    Block &scope = acc.getValue().front();
    if (acc.getExtents().size() != 1 || !add(scope, scope.getArgument(0), extent))
      return false;
    found = true;
  }
  form.serial.push_back(fold);
  return found && isKnown && areOutsideColumns(fold);
}

/// Returns whether elements of states with an axis are used only in scopes over the columns.
bool RowLanesFinder::hasColumns(FoldOp fold) {
  for (auto [result, acc] : llvm::zip_equal(fold.getResults(), rows::getAccs(fold))) {
    if (acc.getExtents().empty())
      continue;
    for (Operation *user : result.getUsers()) {
      auto at = dyn_cast<AtOp>(user);
      auto index = at && at.getIndices().size() == 1 ? dyn_cast<BlockArgument>(at.getIndices()[0]) : BlockArgument();
      Operation *scope = index ? index.getOwner()->getParentOp() : nullptr;
      Attribute other;
      if (auto loop = dyn_cast_or_null<ForOp>(scope); loop && loop != form.nest)
        other = loop.getExtents()[index.getArgNumber()];
      else if (auto outer = dyn_cast_or_null<FoldOp>(scope); outer && !form.isSerial(outer))
        other = outer.getExtentAttr();
      if (other != acc.getExtents()[0])
        return false;
    }
  }
  return true;
}

void RowLanesFinder::choose() {
  // 16 bytes of the smallest elements. However, a lane that loads 32 bytes of larger ones halves
  // the memory throughput of an H200.
  form.width = 128 / (mostRead >= 32 ? mostRead : leastBits);
  form.lanes = 32;
  // In a serial fold a lane has as many columns as registers allow, so that few lanes repeat the
  // computations of a row.
  if (!form.serial.empty())
    form.lanes = std::clamp<int64_t>(llvm::PowerOf2Ceil(llvm::divideCeil(most, kMostKept)), 4, 32);
  else if (isKnown) {
    // Two runs of a lane are in flight together if a row has them.
    int64_t groups = llvm::PowerOf2Ceil(llvm::divideCeil(most, form.width));
    form.lanes = std::clamp<int64_t>(groups / 2, 1, 32);
  }
  // A nest that stores nothing along its rows has little work: it reads reduced arrays.
  Block &body = form.nest.getBody().front();
  auto rows = getSymExpr(form.nest.getExtents().getValue().back()).getConstant();
  if (form.nest.getChoices() && rows.value_or(kFewRows + 1) > kFewRows && form.serial.empty() &&
      !body.getOps<ForOp>().empty())
    form.rowsPerLane = kRowsPerLane;
  if (form.columnsInNest)
    form.runsPerLane =
        isKnown ? std::min(kMostRuns, static_cast<int64_t>(llvm::divideCeil(most, form.step()))) : kMostRuns;
}

std::optional<RowLanes> RowLanesFinder::run() {
  Block &body = form.nest.getBody().front();
  unsigned rank = body.getNumArguments();
  if (rank == 0)
    return std::nullopt;
  if (isFlat(body)) {
    form.columnsInNest = true;
    const SymExpr &extent = getSymExpr(form.nest.getExtents()[rank - 1]);
    if (rank < 2 || !add(body, body.getArgument(rank - 1), extent))
      return std::nullopt;
  }
  for (Operation &op : body) {
    if (auto fold = dyn_cast<FoldOp>(op)) {
      bool hasAxes = llvm::any_of(rows::getAccs(fold), [](AccOp acc) { return !acc.getExtents().empty(); });
      if (hasAxes || !isFlat(fold.getBody().front())) {
        if (!addSerial(fold))
          return std::nullopt;
      } else if (isContraction(fold) || !add(fold.getBody().front(), fold.getBody().getArgument(0), fold.getExtent())) {
        return std::nullopt;
      }
    } else if (auto loop = dyn_cast<ForOp>(op)) {
      if (loop.getExtents().size() != 1 ||
          !add(loop.getBody().front(), loop.getBody().getArgument(0), getSymExpr(loop.getExtents()[0])))
        return std::nullopt;
    }
  }
  if (!any || (isKnown && most < kLeastColumns))
    return std::nullopt;
  if (!form.serial.empty() && (!isKnown || !llvm::all_of(form.serial, [&](FoldOp fold) { return hasColumns(fold); })))
    return std::nullopt;
  choose();
  if (!form.serial.empty() && llvm::divideCeil(most, form.step()) * form.width > 2 * kMostKept)
    return std::nullopt;
  return form;
}

static std::optional<RowLanes> findRowLanes(ForOp nest) {
  auto form = RowLanesFinder(nest).run();
  // The predicate of a versioned nest must be the same for a whole block.
  if (form && llvm::any_of(nest.getChoiceAxes().value_or(ArrayRef<int64_t>()),
                           [&](int64_t axis) { return axis >= int64_t(form->rowAxis()); }))
    return std::nullopt;
  return form;
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

/// Returns equal keys for loads of the same columns of the same row.
static std::string keyOf(LoadOp load, Value index, const SymExpr &extent) {
  std::string key;
  llvm::raw_string_ostream os(key);
  os << extent.str() << " " << load.getArray().getAsOpaquePointer();
  for (Value term : load.getTerms()) {
    if (term == index)
      os << " column";
    else
      os << " " << term.getAsOpaquePointer();
  }
  os << " " << load.getSubscripts();
  return key;
}

LaneCode::LaneCode(ScalarCode &code, const RowLanes &form, Value lane) : code(code), b(code.b), form(form), lane(lane) {
  if (form.width > 1)
    firstColumn = arith::MulIOp::create(b, code.named("first_column"), lane, code.index(form.width));
  std::map<std::string, unsigned> uses;
  auto visit = [&](Block &scope, const SymExpr &extent) {
    auto columns = extent.getConstant();
    if (!columns || llvm::divideCeil(*columns, form.step()) * form.width > kMostKept ||
        findRowGuard(scope, scope.getArgument(0)))
      return;
    std::set<std::string> keys;
    for (LoadOp load : findRuns(scope, scope.getArgument(0)))
      keys.insert(keyOf(load, scope.getArgument(0), extent));
    for (const std::string &key : keys)
      if (++uses[key] == 2)
        shared.insert(key);
  };
  for (Operation &op : form.nest.getBody().front()) {
    if (auto fold = dyn_cast<FoldOp>(op)) {
      if (!form.isSerial(fold))
        visit(fold.getBody().front(), fold.getExtent());
    } else if (auto loop = dyn_cast<ForOp>(op))
      visit(loop.getBody().front(), getSymExpr(loop.getExtents()[0]));
  }
}

std::optional<int64_t> LaneCode::termsOf(const SymExpr &extent) const {
  auto columns = extent.getConstant();
  if (!columns)
    return std::nullopt;
  return llvm::divideCeil(*columns, form.step()) * form.width;
}

MemRefType LaneCode::bufferType(Type element, std::optional<int64_t> runs) {
  SmallVector<int64_t> shape;
  if (runs)
    shape.push_back(*runs);
  shape.push_back(form.width);
  return MemRefType::get(shape, element);
}

/// Returns the first column of a run.
Value LaneCode::firstOf(Value number) {
  Value first = b.createOrFold<arith::MulIOp>(code.loc, number, code.index(form.step()));
  return arith::AddIOp::create(b, code.named("first"), first, firstColumn ? firstColumn : lane);
}

/// Returns the number of columns from the first of `runs` runs on. If runs divide the columns, a
/// constant that covers these runs.
Value LaneCode::countFrom(const Columns &columns, Value first, int64_t runs) {
  auto extent = columns.extent.getConstant();
  if (extent && *extent % form.step() == 0)
    return code.index((runs - 1) * form.step() + form.width);
  return arith::SubIOp::create(b, code.named("count"), code.symbol(columns.extent), first);
}

Value LaneCode::read(LoadOp load, Value index, Value first, Value count, Value buffer, ValueRange at,
                     IntegerAttr step) {
  rows::Dependence deps;
  unsigned column = *findColumn(load, index, deps);
  code.open();
  code.bind(index, first);
  Value offset = code.addressOf(load);
  Value stride = code.coefficientOf(load, column);
  if (GuardOp guard = findRowGuard(*cast<BlockArgument>(index).getOwner(), index)) {
    Value none = code.index(0);
    count = arith::SelectOp::create(b, code.loc, code.eval(guard.getCondition()), count, none);
  }
  code.close();
  device::LoadRunOp::create(b, code.loc, code.arrayOf(load.getArray()), offset, stride, count, buffer, at, step);
  return buffer;
}

/// Loads the runs that several scopes read, unless that has been done. Returns whether there are
/// any.
bool LaneCode::keep(const Columns &columns) {
  bool any = false;
  SmallVector<std::pair<LoadOp, Value>> missing;
  std::optional<int64_t> runs;
  for (LoadOp load : findRuns(columns.scope, columns.index)) {
    std::string key = keyOf(load, columns.index, columns.extent);
    if (findRowGuard(columns.scope, columns.index))
      continue;
    any |= kept.count(key) != 0 || (shared.count(key) != 0 && !isInSerial);
    if (!shared.count(key) || kept.count(key) || isInSerial)
      continue;
    runs = llvm::divideCeil(*columns.extent.getConstant(), form.step());
    StringRef array = arrayName(load.getArray());
    kept[key] =
        memref::AllocaOp::create(b, code.named((array + "_row").str()), bufferType(load.getResult().getType(), runs));
    missing.emplace_back(load, kept[key]);
  }
  if (missing.empty())
    return any;
  code.loop(0, *runs, "run", [&](Value number) {
    Value first = firstOf(number), count = countFrom(columns, first);
    for (auto [load, buffer] : missing)
      read(load, columns.index, first, count, buffer, number);
  });
  return true;
}

LaneCode::Values LaneCode::run(const Columns &columns, Value number, ValueRange states, ArrayRef<std::string> names,
                               Body body, llvm::function_ref<void(Value, Value)> after) {
  Value first = firstOf(number), count = countFrom(columns, first);
  SmallVector<Run> runs;
  std::map<std::string, Value> known;
  for (LoadOp load : findRuns(columns.scope, columns.index)) {
    std::string key = keyOf(load, columns.index, columns.extent);
    auto found = kept.find(key);
    if (found != kept.end() && !findRowGuard(columns.scope, columns.index)) {
      runs.push_back({load, found->second, true});
      continue;
    }
    Value &buffer = known[key];
    if (!buffer) {
      StringRef array = arrayName(load.getArray());
      buffer = memref::AllocaOp::create(b, code.named((array + "_run").str()), bufferType(load.getResult().getType()));
      read(load, columns.index, first, count, buffer, {});
    }
    runs.push_back({load, buffer, false});
  }
  auto extent = columns.extent.getConstant();
  bool isFull = extent && *extent % form.step() == 0, isWhole = extent && *extent % form.width == 0;
  std::vector<std::string> all{"element"};
  llvm::append_range(all, names);
  Values next = code.loop(0, form.width, states, all, [&](Value e, ValueRange olds) {
    Value column = arith::AddIOp::create(b, code.named(columns.name), first, e);
    code.bind(columns.index, column);
    llvm::SaveAndRestore restored(place, Values{number, e});
    auto step = [&] {
      for (Run &run : runs) {
        Values at = run.isKept ? Values{number, e} : Values{e};
        code.bind(run.load.getResult(), memref::LoadOp::create(b, code.loc, run.buffer, at));
      }
      return body(e, olds);
    };
    // Nothing has been loaded where a guard is false.
    GuardOp guard = findRowGuard(columns.scope, columns.index);
    if (isFull && !guard)
      return step();
    Value exists = guard ? code.eval(guard.getCondition()) : Value();
    if (!isFull)
      exists = code.both(exists, arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::slt, isWhole ? first : column,
                                                       code.symbol(columns.extent)));
    if (!olds.empty())
      return code.branch(exists, olds.getTypes(), step, [&] { return Values(olds); });
    code.when(exists, [&] { step(); });
    return Values();
  });
  if (after)
    after(first, count);
  return next;
}

LaneCode::Values LaneCode::overRuns(const Columns &columns, std::optional<std::pair<Value, Value>> range,
                                    ValueRange inits, ArrayRef<std::string> names, Body body,
                                    llvm::function_ref<void(Value, Value)> after) {
  bool hasKept = keep(columns);
  SymExpr runs = SymExpr::floorDiv(columns.extent + SymExpr(form.step() - 1), SymExpr(form.step()));
  Value first = code.index(0), end = code.symbol(runs);
  // Kept runs are in registers, which have no addresses: they need a constant range.
  if (range && !hasKept) {
    Value step = code.index(form.step());
    first = arith::FloorDivSIOp::create(b, code.loc, range->first, step);
    end = arith::CeilDivSIOp::create(b, code.loc, range->second, step);
  }
  std::vector<std::string> all{"run"};
  llvm::append_range(all, names);
  return code.loop(first, end, inits, all,
                   [&](Value number, ValueRange olds) { return run(columns, number, olds, names, body, after); });
}

/// Loads the runs of a scope that are in bounds in every step: those that depend on the fold's
/// index or those that do not.
void LaneCode::keepOf(FoldOp fold, Block &scope, const SymExpr &extent, bool isOfStep) {
  rows::Dependence deps;
  Value column = scope.getArgument(0), index = fold.getBody().getArgument(0);
  int64_t runs = llvm::divideCeil(*extent.getConstant(), form.step());
  auto inner = dyn_cast<FoldOp>(scope.getParentOp());
  bool needed = isOfStep && (!inner || isNeeded(fold, inner));
  if (runs * form.width > kMostKept || findRowGuard(scope, column))
    return;
  for (LoadOp load : findRuns(scope, column)) {
    std::string key = keyOf(load, column, extent);
    if (kept.count(key) || deps.on(load.getResult(), index) != isOfStep || !(isAlwaysThere(load) || needed) ||
        !isComputed(load))
      continue;
    Value buffer = memref::AllocaOp::create(b, code.named((arrayName(load.getArray()) + "_row").str()),
                                            bufferType(load.getResult().getType(), runs));
    kept[key] = buffer;
    if (isOfStep)
      ofStep.push_back(key);
    Columns columns{scope, column, "k", extent};
    Value first = firstOf(code.index(0));
    read(load, column, first, countFrom(columns, first, runs), buffer, {}, b.getI64IntegerAttr(form.step()));
  }
}

void LaneCode::enter(FoldOp fold) {
  forScopes(fold, [&](Block &scope, const SymExpr &extent) { keepOf(fold, scope, extent, /*isOfStep=*/false); });
  isInSerial = true;
}

void LaneCode::beginStep(FoldOp fold) {
  forScopes(fold, [&](Block &scope, const SymExpr &extent) { keepOf(fold, scope, extent, /*isOfStep=*/true); });
  // Lanes must be together to exchange partial folds, which they are not in column loops.
  for (auto inner : fold.getBody().getOps<FoldOp>())
    if (isNeeded(fold, inner))
      code.eval(inner.getResult(0));
}

void LaneCode::endStep() {
  for (const std::string &key : ofStep)
    kept.erase(key);
  ofStep.clear();
}

MemRefType LaneCode::stateType(const SymExpr &extent, Type element) {
  return bufferType(element, llvm::divideCeil(*extent.getConstant(), form.step()));
}

void LaneCode::overState(const SymExpr &extent, StringRef name, llvm::function_ref<void(ValueRange)> body) {
  int64_t runs = llvm::divideCeil(*extent.getConstant(), form.step());
  code.loop(0, runs, "run", [&](Value number) { code.loop(0, form.width, name, [&](Value e) { body({number, e}); }); });
}

LaneCode::Values LaneCode::overColumns(Block &scope, StringRef name, const SymExpr &extent,
                                       std::optional<std::pair<Value, Value>> range, ValueRange inits,
                                       ArrayRef<std::string> names, Body body) {
  return overRuns({scope, scope.getArgument(0), name, extent}, range, inits, names, body, nullptr);
}

/// Returns whether only sums, products, extremes and the like follow from a value in its block. A
/// pole or a jump might tell a quotient of 1 from its neighbour.
static bool isContinuedPlainly(Value value) {
  SmallVector<Value> open{value};
  llvm::DenseSet<Operation *> seen;
  while (!open.empty())
    for (OpOperand &use : open.pop_back_val().getUses()) {
      Operation *user = use.getOwner();
      bool isDivisor = isa<arith::DivFOp>(user) && use.getOperandNumber() == 1;
      bool isCondition = isa<arith::SelectOp>(user) && use.getOperandNumber() == 0;
      bool isPlain =
          isa<StoreOp, arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp, arith::NegFOp, math::AbsFOp,
              arith::ExtFOp, arith::TruncFOp, arith::MaximumFOp, arith::MinimumFOp, arith::SelectOp>(user);
      if (!isPlain || isDivisor || isCondition)
        return false;
      if (seen.insert(user).second)
        llvm::append_range(open, user->getResults());
    }
  return true;
}

/// Returns the f32 quotients by values of the row from which, by such operations only, results of
/// 16 bits follow.
static llvm::DenseSet<Operation *> findQuotients(Block &scope, Value index) {
  llvm::DenseSet<Operation *> found;
  bool isRounded = llvm::all_of(scope.getOps<StoreOp>(), [](StoreOp store) {
    Type type = store.getArray().getType().getElementType();
    return type.isBF16() || type.isF16();
  });
  rows::Dependence deps;
  for (auto quotient : scope.getOps<arith::DivFOp>())
    if (isRounded && quotient.getType().isF32() && !deps.on(quotient.getRhs(), index) &&
        isContinuedPlainly(quotient.getResult()))
      found.insert(quotient);
  return found;
}

void LaneCode::store(Block &scope, Value index, StringRef name, const SymExpr &extent, Value firstRun, int64_t numRuns,
                     Value isStored) {
  Columns columns{scope, index, name, extent};
  rows::Dependence deps;
  // Values that all elements share are computed before the loop.
  for (Operation &op : scope)
    for (Value operand : op.getOperands())
      if (!deps.on(operand, index) && isa<FloatType, IntegerType, IndexType>(operand.getType()) &&
          (!code.isCostly(operand) || isThere(operand)))
        code.eval(operand);
  SmallVector<std::pair<StoreOp, Value>> runs;
  SmallVector<StoreOp> others;
  for (auto store : scope.getOps<StoreOp>()) {
    if (!isAdjacentAlong(store, index) || isInterleaved(store.getArray())) {
      others.push_back(store);
      continue;
    }
    StringRef array = arrayName(store.getArray());
    runs.emplace_back(store, memref::AllocaOp::create(b, code.named((array + "_run").str()),
                                                      bufferType(store.getArray().getType().getElementType())));
  }
  llvm::DenseSet<Operation *> quotients = findQuotients(scope, index);
  llvm::SaveAndRestore takes(code.takesReciprocal);
  llvm::SaveAndRestore scales(code.scalesDivisors, code.scalesDivisors || !quotients.empty());
  if (!quotients.empty())
    code.takesReciprocal = [&](arith::DivFOp quotient) { return quotients.contains(quotient); };
  auto body = [&](Value element, ValueRange) {
    for (auto [store, buffer] : runs) {
      Value value = code.stored(store);
      memref::StoreOp::create(b, code.loc, value, buffer, element);
    }
    auto single = [&] {
      for (StoreOp store : others)
        code.store(store);
    };
    if (isStored && !others.empty())
      code.when(isStored, single);
    else
      single();
    return Values();
  };
  auto after = [&](Value first, Value count) {
    if (isStored)
      count = arith::SelectOp::create(b, code.loc, isStored, count, code.index(0));
    for (auto [store, buffer] : runs) {
      code.open();
      code.bind(index, first);
      Value offset = code.addressOf(store);
      Value stride = code.coefficientOf(store, *findColumn(store, index, deps));
      code.close();
      device::StoreRunOp::create(b, code.loc, buffer, ValueRange(), code.arrayOf(store.getArray()), offset, stride,
                                 count);
    }
  };
  if (!firstRun) {
    overRuns(columns, std::nullopt, {}, {}, body, after);
    return;
  }
  code.loop(0, numRuns, "run", [&](Value k) {
    Value number = b.createOrFold<arith::AddIOp>(code.loc, firstRun, k);
    run(columns, number, {}, {}, body, after);
  });
}

//===----------------------------------------------------------------------===//
// Exchanges
//===----------------------------------------------------------------------===//

Value LaneCode::exchange(Value value, int64_t mask) {
  Type type = value.getType();
  Type passed = type;
  if (!type.isIndex() && type.getIntOrFloatBitWidth() < 32)
    passed = isa<FloatType>(type) ? Type(b.getF32Type()) : Type(b.getI32Type());
  bool isApart = !form.serial.empty() && form.lanes < 32;
  Value result = device::ExchangeOp::create(b, code.loc, passed, code.convert(value, passed), b.getI64IntegerAttr(mask),
                                            isApart ? b.getI64IntegerAttr(form.lanes) : IntegerAttr());
  if (type.isInteger(1))
    return arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::ne, result, code.constant(b.getI32IntegerAttr(0)));
  return code.convert(result, type);
}

Value LaneCode::isLower(int64_t mask) {
  Value bit = arith::AndIOp::create(b, code.loc, lane, code.index(mask));
  return arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::eq, bit, code.index(0));
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

namespace {
class LaneKernel {
public:
  LaneKernel(const RowLanes &form, device::ProgramOp program, unsigned number)
      : form(form), program(program), kernelNumber(number), b(program.getContext()) {}
  LogicalResult run();

private:
  const SymExpr &extent(unsigned axis) { return getSymExpr(form.nest.getExtents()[axis]); }
  StringRef nameOf(unsigned axis) { return cast<StringAttr>(form.nest.getNames()[axis]).getValue(); }
  SymExpr tiles(unsigned axis, int64_t size) {
    return SymExpr::floorDiv(extent(axis) + SymExpr(size - 1), SymExpr(size));
  }
  void bindIndices(ScalarCode &code);
  void bindRow(ScalarCode &code, Value number);
  void statements(ScalarCode &code, LaneCode &lanes);

  const RowLanes &form;
  device::ProgramOp program;
  unsigned kernelNumber;
  OpBuilder b;
  Value lane, isRow, firstRun;
  Value firstRow; // of a lane
};
} // namespace

/// Binds the indices: block = ((i0 · n1 + i1) · … · tiles + tile) · column tiles + column tile.
void LaneKernel::bindIndices(ScalarCode &code) {
  Value thread = device::ThreadOp::create(b, code.named("thread"), b.getIndexType());
  lane = arith::RemUIOp::create(b, code.named("lane_of_row"), thread, code.index(form.lanes));
  Value group = arith::DivUIOp::create(b, code.named("group"), thread, code.index(form.lanes));
  Value rest = device::BlockOp::create(b, code.loc, b.getIndexType());
  unsigned rowAxis = form.rowAxis();
  // Takes the last digit of `rest`. `left` is the number of indices in the rest, `first` names the
  // last of them.
  auto digit = [&](Value radix, unsigned left, StringRef name, StringRef first) -> Value {
    if (left == 0)
      return rest;
    // At most the number of blocks, so that divisions have 32 bits.
    return code.takeDigit(rest, code.narrow(radix), name, left == 1 ? first : "outer_index");
  };
  if (form.columnsInNest) {
    SymExpr count = tiles(rowAxis + 1, form.step() * form.runsPerLane);
    firstRun = code.index(0);
    if (count.getConstant() != 1) {
      Value tile = digit(code.symbol(count), rowAxis + 1, "column_tile", "tile");
      firstRun = arith::MulIOp::create(b, code.named("first_run"), tile, code.index(form.runsPerLane));
    }
  }
  int64_t rows = form.rowsPerLane * form.rows();
  Value tile = digit(code.symbol(tiles(rowAxis, rows)), rowAxis, "tile", nameOf(0));
  firstRow =
      arith::AddIOp::create(b, code.named("row"), arith::MulIOp::create(b, code.loc, tile, code.index(rows)), group);
  if (form.rowsPerLane == 1)
    bindRow(code, Value());
  Block &body = form.nest.getBody().front();
  for (unsigned axis = rowAxis; axis-- > 0;)
    code.bind(body.getArgument(axis), digit(code.symbol(extent(axis)), axis, nameOf(axis), nameOf(0)));
}

/// Binds the row of a lane with this number, or its only row. Lanes beyond the last row compute that row again and
/// store nothing, so that all lanes of a warp stay together.
void LaneKernel::bindRow(ScalarCode &code, Value number) {
  unsigned rowAxis = form.rowAxis();
  Value row = firstRow;
  if (number)
    row = arith::AddIOp::create(b, code.loc, row, arith::MulIOp::create(b, code.loc, number, code.index(form.rows())));
  auto size = extent(rowAxis).getConstant();
  if (!size || *size % (form.rowsPerLane * form.rows()) != 0) {
    Value rows = code.symbol(extent(rowAxis));
    isRow = arith::CmpIOp::create(b, code.named("is_row"), arith::CmpIPredicate::slt, row, rows);
    Value last = arith::SubIOp::create(b, code.loc, rows, code.index(1));
    row = arith::MinSIOp::create(b, code.named(nameOf(rowAxis)), row, last);
  }
  code.row = row;
  code.bind(form.nest.getBody().front().getArgument(rowAxis), row);
}

void LaneKernel::statements(ScalarCode &code, LaneCode &lanes) {
  Block &body = form.nest.getBody().front();
  if (form.columnsInNest) {
    unsigned axis = form.rowAxis() + 1;
    return lanes.store(body, body.getArgument(axis), nameOf(axis), extent(axis), firstRun, form.runsPerLane, isRow);
  }
  for (Operation &op : body) {
    code.loc = withoutName(op.getLoc());
    if (auto fold = dyn_cast<FoldOp>(op)) {
      emitFold(code, fold);
    } else if (auto store = dyn_cast<StoreOp>(op)) {
      // All lanes compute a value of the row, and one stores it.
      if (!code.isCostly(store.getValue()))
        code.eval(store.getValue());
      Value isFirst = arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::eq, lane, code.index(0));
      code.when(code.both(isFirst, isRow), [&] { code.store(store); });
    } else if (auto loop = dyn_cast<ForOp>(op)) {
      lanes.store(loop.getBody().front(), loop.getBody().getArgument(0),
                  cast<StringAttr>(loop.getNames()[0]).getValue(), getSymExpr(loop.getExtents()[0]), Value(), 0, isRow);
    }
  }
}

LogicalResult LaneKernel::run() {
  b.setInsertionPointToEnd(&program.getBody().front());
  unsigned rowAxis = form.rowAxis();
  SymExpr blocks = tiles(rowAxis, form.rowsPerLane * form.rows());
  if (form.columnsInNest)
    blocks = tiles(rowAxis + 1, form.step() * form.runsPerLane) * blocks;
  for (unsigned axis = 0; axis < rowAxis; ++axis)
    blocks = extent(axis) * blocks;
  beginKernel(b, form.nest, program, Twine(kernelNumber), blocks, 128);
  ScalarCode code(b, mapArrays(form.nest, program), form.nest.getLoc());
  Value chosen = onf::ForOp(form.nest).buildChoice();
  bindIndices(code);
  auto emitRow = [&] {
    LaneCode lanes(code, form, lane);
    code.lanes = &lanes;
    statements(code, lanes);
  };
  auto emitRows = [&] {
    if (form.rowsPerLane == 1)
      return emitRow();
    code.loop(0, form.rowsPerLane, "turn", [&](Value number) {
      bindRow(code, number);
      emitRow();
    });
  };
  chosen ? code.when(code.eval(chosen), emitRows) : emitRows();
  return failure(code.failed);
}

//===----------------------------------------------------------------------===//
// The interface
//===----------------------------------------------------------------------===//

namespace {
class LaneMatch final : public FormMatch {
public:
  explicit LaneMatch(RowLanes form) : form(std::move(form)) {}
  DictionaryAttr describe() final;
  LogicalResult lower(device::ProgramOp program, unsigned number) final {
    return LaneKernel(form, program, number).run();
  }

private:
  RowLanes form;
};
} // namespace

DictionaryAttr LaneMatch::describe() {
  NestSchedule schedule = outerFactors(form.nest);
  auto add = [](AxisSchedule &axis, Resource resource, int64_t size) {
    if (size != 1)
      axis.factors.emplace_back(resource, size);
  };
  auto share = [&](AxisSchedule &columns) {
    add(columns, Resource::lane, form.lanes);
    add(columns, Resource::register_, form.width);
  };
  AxisSchedule &rows = schedule.axes[form.rowAxis()];
  add(rows, Resource::sequential, form.rowsPerLane);
  rows.factors.emplace_back(Resource::warp, 4);
  add(rows, Resource::lane, 32 / form.lanes);
  for (auto [fold, axis] : llvm::zip_equal(form.nest.getBody().getOps<FoldOp>(), schedule.folds))
    if (!form.isSerial(fold))
      share(axis);
  if (form.columnsInNest) {
    add(schedule.axes.back(), Resource::sequential, form.runsPerLane);
    share(schedule.axes.back());
  }
  std::string lanes = std::to_string(form.lanes) + " lanes";
  return writeSchedule(form.nest.getContext(), schedule, lanes + " per row, runs of " + Twine(form.width),
                       form.serial.empty() ? "" : lanes);
}

static Match<std::unique_ptr<FormMatch>> matchLanes(ForOp nest) {
  auto form = findRowLanes(nest);
  if (!form)
    return Reason("it does not run along the last axis of the arrays that it reads or stores");
  return std::make_unique<LaneMatch>(std::move(*form));
}

const KernelForm moa::forms::lanes = {"lanes", "lanes along its rows", matchLanes, /*isForOthers=*/true};
