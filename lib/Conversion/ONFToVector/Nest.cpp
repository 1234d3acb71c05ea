//===- Nest.cpp - emits the functions of one nest -------------------------===//
//
// A task is a tile of rows at one position of the nest's outer axes. First the folds that depend on
// the row run, each over the whole tile, and leave their states in scratch memory. Then the other
// code runs once per vector of rows and stores the results.
//
//===----------------------------------------------------------------------===//
#include "lib/Conversion/ONFToVector/Nest.h"
#include "dialects/ONF/IR/ColumnsHint.h"
#include "lib/Conversion/ONFToVector/Columns.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace moa;

namespace moa::rows {
using namespace moa::onf;

static int64_t lanesOf(onf::KernelOp kernel, ForOp nest, const ONFToVectorOptions &options) {
  if (auto lift = nest.getLift(); lift && !lift->empty())
    return cast<AxisAttr>((*lift)[lift->size() - 1]).getSize(Resource::lane);
  int64_t bits = 32;
  for (BlockArgument arg : kernel.getBody().getArguments())
    if (cast<ArrayType>(arg.getType()).getElementType().isF64())
      bits = 64;
  return std::max<int64_t>(options.vectorBits / bits, 1);
}

NestEmitter::NestEmitter(onf::KernelOp kernel, ForOp nest, Value chosen, unsigned number, const ArgumentBlock &block,
                         Dependence &deps, const ONFToVectorOptions &options, bool merging)
    : nest(nest), chosen(chosen), number(number), options(options),
      emitter(kernel, block, deps, lanesOf(kernel, nest, options)), merging(merging) {
  unsigned rank = nest.getExtents().size();
  for (unsigned axis = 0; axis != rank; ++axis) {
    if (auto lift = nest.getLift())
      tiles.push_back(cast<AxisAttr>((*lift)[axis]).getTile());
    else
      tiles.push_back(axis + 1 == rank ? options.vectorsPerTile * emitter.lanes : 1);
  }
  if (rank)
    tiles.back() = llvm::alignTo(tiles.back(), emitter.lanes);
  hasColumns = nest->hasAttr(kColumnsAttr) && options.blocks;
  if (hasColumns)
    tiles[rank - 2] = kColumns;
  emitter.loc = nest.getLoc();
  running = findRunningFold(nest);
  split = running || hasColumns ? FoldOp() : findSplit();
  if (split)
    planTotals();
}

const SymExpr &NestEmitter::extentOf(unsigned axis) { return getSymExpr(nest.getExtents()[axis]); }

Value NestEmitter::laneIndex() {
  auto args = nest.getBody().getArguments();
  return args.empty() ? Value() : Value(args.back());
}

//===----------------------------------------------------------------------===//
// Functions and tasks
//===----------------------------------------------------------------------===//

static func::FuncOp createFunction(OpBuilder &builder, Location loc, const Twine &name, ArrayRef<Type> inputs,
                                   ArrayRef<Type> results) {
  auto type = builder.getFunctionType(inputs, results);
  auto function = func::FuncOp::create(builder, loc, name.str(), type);
  function.addEntryBlock();
  return function;
}

/// Emits the function NAME`suffix`<k>, which computes its result from the number of tiles.
void NestEmitter::countTasks(OpBuilder builder, StringRef suffix, llvm::function_ref<Value(Emitter &, Value)> result) {
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  auto function = createFunction(builder, nest.getLoc(), emitter.kernel.getSymName() + suffix + Twine(number),
                                 {pointer}, {builder.getI64Type()});
  Emitter counting(emitter.kernel, emitter.block, emitter.deps, emitter.lanes);
  OpBuilder inFunction = OpBuilder::atBlockEnd(&function.front());
  Scope scope;
  scope.builder = &inFunction;
  counting.loc = nest.getLoc();
  counting.stack.push_back(&scope);
  counting.arguments = function.getArgument(0);
  Value count = counting.here().index(1);
  for (unsigned axis = 0; axis != tiles.size(); ++axis) {
    if (running && axis == running->axis)
      continue;
    Value size = counting.extent(extentOf(axis));
    Build b = counting.here();
    Value zero = b.index(0);
    count = b.mul(count, b.max(b.ceilDiv(size, tileOf(axis)), zero));
  }
  count = result(counting, count);
  func::ReturnOp::create(inFunction, nest.getLoc(), counting.here().i64(count));
}

void NestEmitter::emitTasks(OpBuilder builder) {
  countTasks(builder, "_tasks", [&](Emitter &counting, Value numTiles) {
    if (!split)
      return numTiles;
    Parts counted = partsOf(counting);
    Build b = counting.here();
    return merging ? b.select(counted.taskPerPart, numTiles, b.index(0))
                   : b.select(counted.taskPerPart, b.mul(numTiles, counted.count), numTiles);
  });
}

bool NestEmitter::emit(OpBuilder builder) {
  emitTasks(builder);
  if (split && !merging)
    emitShared(builder);
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  Type i64 = builder.getI64Type();
  auto function = createFunction(builder, nest.getLoc(), emitter.kernel.getSymName() + "_nest" + Twine(number),
                                 {pointer, pointer, i64, i64}, {});
  // Values of depth 0 are emitted at the start of the function, before the loop over tasks.
  OpBuilder inFunction = OpBuilder::atBlockEnd(&function.front());
  Scope scope;
  scope.builder = &inFunction;
  emitter.stack.push_back(&scope);
  emitter.arguments = function.getArgument(0);
  emitter.scratchPointer = function.getArgument(1);
  Type index = builder.getIndexType();
  auto toIndex = [&](unsigned arg) -> Value {
    return arith::IndexCastOp::create(inFunction, emitter.loc, index, function.getArgument(arg));
  };
  if (split)
    parts = partsOf(emitter);
  Value endTask = toIndex(3), firstTask = toIndex(2);
  emitter.loop(firstTask, endTask, 1, [&](Value taskNumber) { emitTask(taskNumber); });
  func::ReturnOp::create(inFunction, emitter.loc);
  emitter.stack.pop_back();
  return !emitter.failed;
}

void NestEmitter::emitTask(Value taskNumber) {
  SmallVector<Value> digits(tiles.size());
  Value rest = task = taskNumber;
  if (split && !merging) {
    Build b = emitter.here();
    Value numParts = b.select(parts.taskPerPart, parts.count, b.index(1));
    taskPart = b.rem(rest, numParts);
    rest = b.div(rest, numParts);
  }
  unsigned first = running && running->axis == 0;
  for (unsigned axis = tiles.size(); axis-- > 0;) {
    if (running && axis == running->axis)
      continue;
    Value size = emitter.extent(extentOf(axis));
    Value one = emitter.at(0).index(1);
    Value count = emitter.at(0).max(emitter.at(0).ceilDiv(size, tileOf(axis)), one);
    Build b = emitter.here();
    digits[axis] = axis == first ? rest : b.rem(rest, count);
    rest = b.div(rest, count);
  }
  overFactors(0, digits);
}

/// Binds the outer axes. Loops over an axis if a task has several of its indices.
void NestEmitter::overFactors(unsigned axis, ArrayRef<Value> digits) {
  if (axis == tiles.size())
    return emitTile(Value());
  if (running && axis == running->axis)
    return overFactors(axis + 1, digits);
  Value base = emitter.here().mul(digits[axis], tileOf(axis));
  if (axis + 1 == tiles.size())
    return emitTile(base);
  Value index = nest.getBody().getArgument(axis);
  if (tileOf(axis) == 1) {
    emitter.top().values[index] = base;
    return overFactors(axis + 1, digits);
  }
  Value size = emitter.extent(extentOf(axis));
  Build b = emitter.here();
  if (hasColumns && axis + 2 == tiles.size()) {
    emitter.top().values[index] = base;
    Value most = b.index(kColumns);
    emitter.columns = b.min(b.sub(size, base), most);
    return overFactors(axis + 1, digits);
  }
  emitter.loop(base, b.min(b.add(base, tileOf(axis)), size), 1, [&](Value value) {
    emitter.top().values[index] = value;
    overFactors(axis + 1, digits);
  });
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

void bindRows(Emitter &emitter, Scope &scope, Value laneIndex, Value v) {
  Tile &tile = emitter.tile;
  Build b = emitter.here();
  scope.vectorNumber = v;
  scope.firstRow = b.min(b.add(tile.base, b.mul(v, emitter.lanes)), tile.lastRow);
  scope.lastRow = b.min(b.add(scope.firstRow, emitter.lanes - 1), tile.lastRow);
  Value first = b.add(tile.base, b.mul(v, emitter.lanes));
  emitter.bindLanes(scope, laneIndex, first, tile.lastRow);
}

void NestEmitter::emitTile(Value firstRow) {
  if (!chosen)
    return emitRows(firstRow);
  emitter.when(emitter.value(chosen), [&] {
    // If the nest does not run, arrays that hold indices may be unset. So loads that may fault must
    // stay inside the branch.
    emitter.top().guardedFrom = std::numeric_limits<int>::max();
    emitRows(firstRow);
  });
}

void NestEmitter::emitRows(Value firstRow) {
  if (firstRow) {
    Tile &tile = emitter.tile;
    Value size = emitter.extent(extentOf(tiles.size() - 1));
    Build b = emitter.here();
    tile.base = firstRow;
    tile.extent = size;
    Value most = b.index(tiles.back());
    tile.rows = b.min(b.sub(size, firstRow), most);
    tile.lastRow = b.sub(size, b.index(1));
    tile.vectors = b.ceilDiv(tile.rows, emitter.lanes);
  }
  if (running)
    return emitRunning();
  if (!split)
    return finishTile();
  return merging ? emitMerge() : emitParts();
}

/// Returns whether the fold runs for a whole tile, before the code for its rows.
bool NestEmitter::isTileFold(FoldOp fold) {
  // Loads of valid columns need no condition.
  if (hasColumns && !getAccs(fold).empty() && !getAccs(fold)[0].getExtents().empty())
    return true;
  return laneIndex() && emitter.onDemand.isUnconditional(fold) &&
         llvm::any_of(fold.getResults(), [&](Value result) { return emitter.deps.on(result, laneIndex()); });
}

/// Emits the folds of the tile, except a split one (which has run), and the code for its rows.
void NestEmitter::finishTile() {
  for (auto fold : nest.getBody().front().getOps<FoldOp>())
    if (fold != split && isTileFold(fold))
      emitTileOf(fold);
  emitRowCode();
}

void NestEmitter::emitTileOf(FoldOp fold) {
  emitter.loc = fold.getLoc();
  bool isBlocked = options.blocks && emitBlockedFold(emitter, fold, laneIndex(), tiles.back() / emitter.lanes, options);
  SmallVector<AccOp> accs = getAccs(fold);
  bool hasAxes = !accs.empty() && !accs[0].getExtents().empty();
  if (!isBlocked && emitter.columns && hasAxes)
    emitter.fail(fold, "expects a fold for columns to run in blocks");
  else if (!isBlocked)
    emitTileFold(fold);
  emitter.loc = nest.getLoc();
}

void NestEmitter::emitTileFold(FoldOp fold) {
  int64_t vectors = tiles.back() / emitter.lanes;
  SmallVector<StateBuffer> buffers;
  for (AccOp acc : getAccs(fold)) {
    StateBuffer buffer = StateBuffer::of(acc);
    buffer.tiled = true;
    buffer.pointer = emitter.scratchFor(buffer.element, vectors * buffer.padded * emitter.lanes);
    buffers.push_back(buffer);
  }
  emitter.loop(emitter.here().index(0), emitter.tile.vectors, 1, [&](Value v) {
    bindRows(emitter, emitter.top(), laneIndex(), v);
    SmallVector<StateBuffer> own = buffers;
    Build b = emitter.here();
    for (StateBuffer &buffer : own)
      buffer.pointer = b.address(storageType(buffer.element), buffer.pointer, b.mul(v, buffer.padded * emitter.lanes));
    Emitter::Values finals = emitter.emitFold(fold, own);
    for (auto [final, buffer] : llvm::zip_equal(finals, own))
      if (final) {
        Value start = emitter.here().index(0);
        emitter.storeState(emitter.here(), emitter.here().splat(final, emitter.lanes), buffer.pointer, start);
      }
  });
  for (auto [result, buffer] : llvm::zip_equal(fold.getResults(), buffers)) {
    emitter.top().states[result] = buffer;
    emitter.deps.add(result, laneIndex());
  }
}

void NestEmitter::emitRowCode() {
  Block &block = nest.getBody().front();
  if (!laneIndex())
    return emitStores(block, Value());
  emitter.loop(emitter.here().index(0), emitter.tile.vectors, 1, [&](Value v) {
    bindRows(emitter, emitter.top(), laneIndex(), v);
    emitStores(block, laneMask());
  });
  for (auto loop : block.getOps<ForOp>())
    if (loop->hasAttr(kColumnsAttr))
      emitColumns(loop);
}

/// Emits a loop over columns, in blocks of columns. Each block computes its sums for the whole tile
/// of rows and then stores the results.
void NestEmitter::emitColumns(ForOp loop) {
  Block &block = loop.getBody().front();
  Value size = emitter.extent(getSymExpr(loop.getExtents()[0]));
  emitter.loop(emitter.here().index(0), size, kColumns, [&](Value base) {
    Build b = emitter.here();
    emitter.top().values[block.getArgument(0)] = base;
    Value most = b.index(kColumns);
    emitter.columns = b.min(b.sub(size, base), most);
    for (auto fold : block.getOps<FoldOp>())
      emitTileOf(fold);
    emitter.loop(emitter.here().index(0), emitter.tile.vectors, 1, [&](Value v) {
      bindRows(emitter, emitter.top(), laneIndex(), v);
      emitStores(block, laneMask());
    });
  });
  emitter.columns = Value();
}

/// Returns the mask of lanes that have rows in the current vector.
Value NestEmitter::laneMask() {
  Build b = emitter.here();
  auto type = VectorType::get({emitter.lanes}, b.b.getIndexType());
  Value lane = vector::StepOp::create(b.b, emitter.loc, type), vectorNumber;
  for (Scope *scope : llvm::reverse(emitter.stack))
    if ((vectorNumber = scope->vectorNumber))
      break;
  Value first = b.add(emitter.tile.base, b.mul(vectorNumber, emitter.lanes));
  Value left = b.sub(emitter.tile.extent, first);
  return b.slt(lane, b.splat(left, emitter.lanes));
}

/// Emits a running fold: for each vector of rows, runs the axis in order. Each step stores the
/// results so far and then adds one index.
void NestEmitter::emitRunning() {
  SmallVector<AccOp> accs = getAccs(running->fold);
  Value axis = nest.getBody().getArgument(running->axis), j = running->fold.getBody().getArgument(0);
  emitter.loop(emitter.here().index(0), emitter.tile.vectors, 1, [&](Value v) {
    bindRows(emitter, emitter.top(), laneIndex(), v);
    Value mask = laneMask();
    Emitter::Values inits;
    SmallVector<unsigned> firsts; // positions of states; pure sums have two, sum and compensation
    for (AccOp acc : accs) {
      firsts.push_back(inits.size());
      inits.append(isPureSum(acc) ? 2 : 1,
                   emitter.here().identity(acc.getMonoid(), emitter.rowType(acc.getResult().getType())));
    }
    // The products of weights w(1), by which one step of the axis multiplies the sum so far.
    SmallVector<SmallVector<Value, 1>> steps(accs.size());
    emitter.scoped([&](Scope &scope) {
      scope.values[axis] = emitter.here().index(2);
      scope.values[j] = emitter.here().index(0);
      for (auto [weights, factors] : llvm::zip_equal(running->weights, steps))
        for (Value weight : weights)
          factors.push_back(emitter.rowValue(weight));
    });
    Value end = emitter.extent(running->fold.getExtent());
    Value size = emitter.extent(extentOf(running->axis)), start = emitter.here().index(0);
    emitter.loop(start, size, 1, inits, [&](Value step, ValueRange states) {
      Value t = running->descends ? emitter.here().sub(end, step) : step;
      emitter.top().values[axis] = t;
      for (auto [acc, first, result] : llvm::zip_equal(accs, firsts, running->fold.getResults()))
        emitter.top().values[result] =
            isPureSum(acc) ? emitter.here().combine(Monoid::add, states[first], states[first + 1]) : states[first];
      emitStores(nest.getBody().front(), mask);
      return emitter.branch(
          emitter.here().slt(step, end), states.getTypes(),
          [&] {
            emitter.top().values[j] = running->descends ? emitter.here().sub(t, emitter.here().index(1)) : t;
            for (auto &weights : running->weights) // the newest term has weight 1
              for (Value weight : weights)
                emitter.top().values[weight] = emitter.here().identity(Monoid::mul, weight.getType());
            Value isFirst = emitter.here().slt(t, emitter.here().index(1));
            Emitter::Values next;
            for (auto [k, acc] : llvm::enumerate(accs)) {
              Value term = emitter.evalTerm(acc);
              Build b = emitter.here();
              Value before = states[firsts[k]];
              if (!isPureSum(acc)) {
                next.push_back(b.combine(acc.getMonoid(), before, b.splat(term, emitter.lanes)));
                continue;
              }
              Value lost = states[firsts[k] + 1];
              for (Value factor : steps[k]) { // the first step has no terms to scale
                factor = b.select(isFirst, b.identity(Monoid::mul, factor.getType()), factor);
                before = b.combine(Monoid::mul, before, factor);
                lost = b.combine(Monoid::mul, lost, factor);
              }
              auto [sum, rest] = b.addCompensated(before, lost, b.splat(term, emitter.lanes));
              next.append({sum, rest});
            }
            return next;
          },
          [&] { return Emitter::Values(states); });
    });
  });
}

void NestEmitter::emitStores(Block &block, Value laneMask) {
  for (Operation &op : block) {
    if (auto store = dyn_cast<StoreOp>(op))
      emitter.emitStore(store, laneMask);
    auto inner = dyn_cast<ForOp>(op);
    if (!inner || inner->hasAttr(kColumnsAttr))
      continue;
    std::function<void(unsigned)> nestLoops = [&](unsigned axis) {
      if (axis == inner.getExtents().size())
        return emitStores(inner.getBody().front(), laneMask);
      Value size = emitter.columns ? emitter.columns : emitter.extent(getSymExpr(inner.getExtents()[axis]));
      Value argument = inner.getBody().getArgument(axis);
      if (axis + 1 == inner.getExtents().size())
        return emitter.storeAlong(inner, argument, size, laneMask, [&] { nestLoops(axis + 1); });
      emitter.loop(emitter.here().index(0), size, 1, [&](Value index) {
        emitter.top().values[argument] = index;
        nestLoops(axis + 1);
      });
    };
    nestLoops(0);
  }
}

} // namespace moa::rows
