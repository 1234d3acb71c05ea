//===- ColumnRuns.cpp - kernels that transpose their input ----------------===//
//
// A nest without folds is a transposition if it stores along its last axis, the columns, elements
// that it loads along another axis, the rows. The lanes of a warp are neighbouring rows, so that
// loads coalesce. Each lane has a run of columns, which it writes by accesses of 16 bytes. Two
// lanes have the two runs of a row that fill a sector, if half as many rows still fill a sector of
// the loads. Conditions of selections on the column alone are evaluated once per run.
//
//===----------------------------------------------------------------------===//
#include "lib/Conversion/ONFToDevice/GpuNests.h"
#include "lib/Conversion/ONFToDevice/RowLanes.h"
#include "lib/Conversion/ONFToDevice/Tiles.h"
#include "lib/Conversion/ONFToVector/Dependence.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace moa;
using namespace moa::onf;

static constexpr int64_t kLanes = 32, kWarps = 4;
/// Rows of a lane, if all lanes have as many.
static constexpr int64_t kMostRows = 2;
/// The smallest access of memory; a run of 16 bytes is half of it.
static constexpr int64_t kSectorBits = 256;

//===----------------------------------------------------------------------===//
// The form
//===----------------------------------------------------------------------===//

namespace {
/// The shape of such a kernel: a block has 32 or 64 rows and four runs of `width` columns.
struct ColumnRuns {
  mutable ForOp nest;
  unsigned rowAxis = 0;
  int64_t width = 8; ///< columns of a lane
  /// Rows of a lane: 32 apart, or adjacent if one access loads both. With two, fewer blocks start
  /// in vain.
  int64_t rowsPerLane = 1;
  /// Conditions of selections that depend on the column, not on the row, and read no memory.
  SmallVector<Value> conditions = {};
  unsigned columnAxis() const { return nest.getExtents().size() - 1; }
};
} // namespace

/// Returns whether some load is adjacent along the row's index and depends on the column.
static bool isTurnedAlong(Block &body, Value row, Value column) {
  rows::Dependence deps;
  auto isTurned = [&](LoadOp load) {
    return isAdjacentAlong(load, row) &&
           llvm::any_of(load.getTerms(), [&](Value term) { return deps.on(term, column); });
  };
  return llvm::any_of(body.getOps<LoadOp>(), isTurned);
}

static SetVector<Operation *> sliceOf(Value value) {
  SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.omitBlockArguments = true;
  options.inclusive = true;
  (void)getBackwardSlice(value, &slice, options);
  return slice;
}

static bool readsNothing(Value value) {
  return llvm::none_of(sliceOf(value), [](Operation *op) { return isa<LoadOp>(op); });
}

/// Returns whether an element is loaded wherever these conditions hold. Other selections may use it
/// only if their condition loads it, too.
static bool isReadWhere(ArrayRef<Value> conditions, LoadOp load, Block &body) {
  return llvm::all_of(body.getOps<arith::SelectOp>(), [&](arith::SelectOp select) {
    bool isKnown = llvm::is_contained(conditions, select.getCondition());
    return sliceOf(select.getCondition()).contains(load) ||
           !(sliceOf(select.getFalseValue()).contains(load) ||
             (!isKnown && sliceOf(select.getTrueValue()).contains(load)));
  });
}

static std::optional<ColumnRuns> findColumnRuns(ForOp nest) {
  Block &body = nest.getBody().front();
  unsigned rank = body.getNumArguments();
  bool isFlat = llvm::none_of(body, [](Operation &op) { return isa<FoldOp, ForOp, GuardOp>(op); });
  if (rank < 2 || !isFlat)
    return std::nullopt;
  ColumnRuns form{nest};
  Value column = body.getArgument(rank - 1);
  int64_t leastBits = 64;
  for (auto store : body.getOps<StoreOp>()) {
    if (!isAdjacentAlong(store, column))
      return std::nullopt;
    leastBits = std::min<int64_t>(leastBits, store.getArray().getType().getElementType().getIntOrFloatBitWidth());
  }
  form.width = 128 / leastBits;
  std::optional<unsigned> axis;
  for (unsigned k = rank - 1; k-- > 0 && !axis;)
    if (isTurnedAlong(body, body.getArgument(k), column))
      axis = k;
  if (!axis)
    return std::nullopt;
  form.rowAxis = *axis;
  // With fewer rows than half of the lanes, columns are better neighbours.
  auto size = getSymExpr(nest.getExtents()[*axis]).getConstant();
  if (size && *size < kLanes / 2)
    return std::nullopt;
  if (size && *size % (kMostRows * kLanes) == 0)
    form.rowsPerLane = kMostRows;
  // The predicate of a versioned nest must be the same for a whole block.
  if (llvm::any_of(nest.getChoiceAxes().value_or(ArrayRef<int64_t>()),
                   [&](int64_t k) { return k == int64_t(*axis) || k == int64_t(rank) - 1; }))
    return std::nullopt;
  rows::Dependence deps;
  for (auto select : body.getOps<arith::SelectOp>()) {
    Value condition = select.getCondition();
    if (deps.on(condition, column) && !deps.on(condition, body.getArgument(*axis)) && readsNothing(condition) &&
        !llvm::is_contained(form.conditions, condition))
      form.conditions.push_back(condition);
  }
  return form;
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

namespace {
class ColumnKernel {
  using Values = ScalarCode::Values;

public:
  ColumnKernel(const ColumnRuns &form, device::ProgramOp program, unsigned number)
      : form(form), program(program), kernelNumber(number), b(program.getContext()), body(form.nest.getBody().front()),
        column(body.getArgument(form.columnAxis())) {}
  LogicalResult run();

private:
  const SymExpr &extent(unsigned axis) { return getSymExpr(form.nest.getExtents()[axis]); }
  StringRef nameOf(unsigned axis) { return cast<StringAttr>(form.nest.getNames()[axis]).getValue(); }
  SymExpr tiles(unsigned axis) {
    SymExpr size(axis == form.rowAxis ? form.rowsPerLane * kLanes : kWarps * form.width);
    return SymExpr::floorDiv(extent(axis) + size - SymExpr(1), size);
  }
  /// Returns whether all columns of all runs exist.
  bool isWhole() {
    SymExpr count = extent(form.columnAxis()), width(form.width);
    return SymExpr::floorDiv(count, width) * width == count;
  }
  Value less(ScalarCode &code, Value x, Value y) {
    return arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::slt, x, y);
  }
  Value plus(ScalarCode &code, Value start, int64_t count) {
    return b.createOrFold<arith::AddIOp>(code.loc, start, code.index(count));
  }
  int64_t runsOfWarp();
  void bindIndices(ScalarCode &code);
  Value holdsForRun(ScalarCode &code, Value condition);
  Value isPlain(ScalarCode &code);
  Value columnAt(ScalarCode &code, Value place);
  using Buffers = SmallVector<std::pair<StoreOp, Value>>;
  void findPairs();
  int64_t stepOfRows() { return pairs.empty() ? kLanes : 1; }
  void bindRow(ScalarCode &code, Value step);
  Buffers makeBuffers(ScalarCode &code);
  void fill(ScalarCode &code, const Buffers &buffers, bool plain);
  void fillPairs(ScalarCode &code, ArrayRef<Buffers> rows);
  void store(ScalarCode &code, const Buffers &buffers);
  void storeRuns(ScalarCode &code);
  void storePairs(ScalarCode &code);

  const ColumnRuns &form;
  device::ProgramOp program;
  unsigned kernelNumber;
  OpBuilder b;
  Block &body;
  Value column, first, inside; // index, a lane's first column, whether that exists
  Value firstRow;              // of a lane
  SmallVector<LoadOp> pairs;   // loads of both rows of a lane by one access
};
} // namespace

/// Returns how many runs of a row neighbouring lanes have: two, which fill a sector, if half as
/// many rows still fill a sector of every load.
int64_t ColumnKernel::runsOfWarp() {
  constexpr int64_t kRuns = 2;
  Value row = body.getArgument(form.rowAxis);
  int64_t rowsOfAccess = kLanes / kRuns * (pairs.empty() ? 1 : form.rowsPerLane);
  bool fills = llvm::all_of(body.getOps<LoadOp>(), [&](LoadOp load) {
    int64_t bits = load.getArray().getType().getElementType().getIntOrFloatBitWidth();
    return !isAdjacentAlong(load, row) || rowsOfAccess * bits >= kSectorBits;
  });
  return fills ? kRuns : 1;
}

/// Binds the indices and a lane's first row: block = ((i0 · n1 + i1) · … · column tiles + column
/// tile) · row tiles + row tile.
void ColumnKernel::bindIndices(ScalarCode &code) {
  Value thread = device::ThreadOp::create(b, code.named("thread"), b.getIndexType());
  Value lane = arith::RemUIOp::create(b, code.named("lane"), thread, code.index(kLanes));
  Value warp = arith::DivUIOp::create(b, code.named("warp"), thread, code.index(kLanes));
  Value rest = device::BlockOp::create(b, code.loc, b.getIndexType());
  unsigned left = body.getNumArguments();
  auto digit = [&](const SymExpr &radix, StringRef name) -> Value {
    if (--left == 0)
      return rest;
    return code.takeDigit(rest, code.narrow(code.symbol(radix)), name);
  };
  unsigned rowAxis = form.rowAxis, columnAxis = form.columnAxis();
  Value rowTile = digit(tiles(rowAxis), "row_tile"), columnTile = digit(tiles(columnAxis), "column_tile");
  auto place = [&](Value high, int64_t scale, Value low) -> Value {
    Value scaled = b.createOrFold<arith::MulIOp>(code.loc, high, code.index(scale));
    return b.createOrFold<arith::AddIOp>(code.loc, scaled, low);
  };
  Value row = lane, runOfTile = warp;
  if (int64_t runs = runsOfWarp(); runs > 1) {
    Value count = code.index(runs);
    Value rowInGroup = arith::DivUIOp::create(b, code.loc, lane, count);
    row = place(arith::RemUIOp::create(b, code.loc, warp, count), kLanes / runs, rowInGroup);
    Value runInGroup = arith::RemUIOp::create(b, code.loc, lane, count);
    runOfTile = place(arith::DivUIOp::create(b, code.loc, warp, count), runs, runInGroup);
  }
  Value within =
      pairs.empty() ? row : arith::MulIOp::create(b, code.loc, row, code.index(form.rowsPerLane)).getResult();
  firstRow =
      arith::AddIOp::create(b, code.named(nameOf(rowAxis)),
                            arith::MulIOp::create(b, code.loc, rowTile, code.index(form.rowsPerLane * kLanes)), within);
  Value run =
      arith::AddIOp::create(b, code.loc, arith::MulIOp::create(b, code.loc, columnTile, code.index(kWarps)), runOfTile);
  first = arith::MulIOp::create(b, code.named("first_" + nameOf(columnAxis).str()), run, code.index(form.width));
  code.bind(body.getArgument(rowAxis), firstRow);
  for (unsigned axis = columnAxis; axis-- > 0;)
    if (axis != rowAxis)
      code.bind(body.getArgument(axis), digit(extent(axis), nameOf(axis)));
  inside = less(code, first, code.symbol(extent(columnAxis)));
  auto rows = extent(rowAxis).getConstant();
  if (!rows || *rows % kLanes != 0)
    inside = code.both(less(code, firstRow, code.symbol(extent(rowAxis))), inside);
}

/// Returns whether a condition holds for all columns of a run. A bound of the column is evaluated
/// for the last or the first of them only.
Value ColumnKernel::holdsForRun(ScalarCode &code, Value condition) {
  using Predicate = arith::CmpIPredicate;
  auto evalAt = [&](Value index) {
    code.open();
    code.bind(column, index);
    Value result = code.eval(condition);
    code.close();
    return result;
  };
  rows::Dependence deps;
  if (auto compare = condition.getDefiningOp<arith::CmpIOp>()) {
    bool isLeft = compare.getLhs() == column, isRight = compare.getRhs() == column;
    bool isBound = isLeft != isRight && !deps.on(isLeft ? compare.getRhs() : compare.getLhs(), column);
    Predicate predicate = compare.getPredicate();
    bool isLess = predicate == Predicate::slt || predicate == Predicate::sle;
    if (isBound && (isLess || predicate == Predicate::sgt || predicate == Predicate::sge))
      return evalAt(isLess == isLeft ? plus(code, first, form.width - 1) : first);
  }
  Value holds = code.constant(b.getBoolAttr(true));
  return code.loop(0, form.width, holds, {"element", "all"}, [&](Value element, ValueRange all) {
    Value index = arith::AddIOp::create(b, code.loc, first, element);
    return Values{arith::AndIOp::create(b, code.loc, all[0], evalAt(index)).getResult()};
  })[0];
}

/// Returns whether all columns of a run exist and all selections take their first side; null:
/// always.
Value ColumnKernel::isPlain(ScalarCode &code) {
  Value result;
  if (!isWhole()) {
    Value columns = code.symbol(extent(form.columnAxis()));
    result = arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::sle, plus(code, first, form.width), columns);
  }
  for (Value condition : form.conditions)
    result = code.both(result, holdsForRun(code, condition));
  return result;
}

/// Returns the column at a place of a run in memory. In interleaved arrays, place p3 p2 p1 p0 has
/// column p1 p3 p2 p0.
Value ColumnKernel::columnAt(ScalarCode &code, Value place) {
  bool isTurned = llvm::any_of(body.getOps<StoreOp>(), [](StoreOp store) { return isInterleaved(store.getArray()); });
  if (!isTurned)
    return arith::AddIOp::create(b, code.named(nameOf(form.columnAxis())), first, place);
  auto digit = [&](int64_t divisor, int64_t radix, int64_t weight) -> Value {
    Value value = arith::DivUIOp::create(b, code.loc, place, code.index(divisor));
    value = arith::RemUIOp::create(b, code.loc, value, code.index(radix));
    return arith::MulIOp::create(b, code.loc, value, code.index(weight));
  };
  Value lowest = arith::RemUIOp::create(b, code.loc, place, code.index(2));
  Value middle = digit(4, 4, 2), highest = digit(2, 2, 8);
  Value sum = arith::AddIOp::create(b, code.loc, arith::AddIOp::create(b, code.loc, lowest, middle), highest);
  return arith::AddIOp::create(b, code.named(nameOf(form.columnAxis())), first, sum);
}

/// Finds loads of 16 bits along the rows from arrays that TMA copies elsewhere. Hosts check the
/// alignment of such arrays, so that one access can load two adjacent rows.
void ColumnKernel::findPairs() {
  if (form.rowsPerLane != 2)
    return;
  Value row = body.getArgument(form.rowAxis);
  auto isInTiles = [&](Value array) {
    return llvm::any_of(array.getUsers(), [&](Operation *user) {
      ForOp nest = isa<LoadOp>(user) ? getNest(user) : ForOp();
      return nest && nest != form.nest && nest.getPipeline();
    });
  };
  rows::Dependence deps;
  for (auto load : body.getOps<LoadOp>()) {
    if (!isAdjacentAlong(load, row) || !deps.on(load.getResult(), column))
      continue;
    Type element = load.getArray().getType().getElementType();
    if (element.getIntOrFloatBitWidth() != 16 || load.getResult().getType() != element || !isInTiles(load.getArray()) ||
        !isReadWhere(form.conditions, load, body))
      return pairs.clear();
    pairs.push_back(load);
  }
}

/// Binds one of the lane's rows.
void ColumnKernel::bindRow(ScalarCode &code, Value step) {
  Value offset = b.createOrFold<arith::MulIOp>(code.loc, step, code.index(stepOfRows()));
  code.bind(body.getArgument(form.rowAxis),
            arith::AddIOp::create(b, code.named(nameOf(form.rowAxis)), firstRow, offset));
}

ColumnKernel::Buffers ColumnKernel::makeBuffers(ScalarCode &code) {
  Buffers buffers;
  for (auto store : body.getOps<StoreOp>())
    buffers.emplace_back(
        store, memref::AllocaOp::create(b, code.named("run"),
                                        MemRefType::get({form.width}, store.getArray().getType().getElementType())));
  return buffers;
}

/// Computes the values of a run. If it is plain, selections take their first side.
void ColumnKernel::fill(ScalarCode &code, const Buffers &buffers, bool plain) {
  if (plain)
    for (Value condition : form.conditions)
      code.bind(condition, code.constant(b.getBoolAttr(true)));
  code.loop(0, form.width, "element", [&](Value element) {
    Value index = columnAt(code, element);
    code.bind(column, index);
    auto computeElement = [&] {
      for (auto [store, buffer] : buffers)
        memref::StoreOp::create(b, code.loc, code.stored(store), buffer, element);
    };
    plain ? computeElement() : code.when(less(code, index, code.symbol(extent(form.columnAxis()))), computeElement);
  });
}

/// The same for plain runs of two neighbouring rows.
void ColumnKernel::fillPairs(ScalarCode &code, ArrayRef<Buffers> rows) {
  for (Value condition : form.conditions)
    code.bind(condition, code.constant(b.getBoolAttr(true)));
  code.loop(0, form.width, "element", [&](Value element) {
    code.bind(column, columnAt(code, element));
    Value row = body.getArgument(form.rowAxis);
    Values loaded;
    code.open();
    code.bind(row, firstRow);
    for (LoadOp load : pairs) {
      StringRef name =
          form.nest->getParentOfType<onf::KernelOp>().getArrayName(cast<BlockArgument>(load.getArray()).getArgNumber());
      Value pair = memref::AllocaOp::create(b, code.named(name.str() + "_pair"),
                                            MemRefType::get({2}, load.getArray().getType().getElementType()));
      unsigned term = llvm::find(load.getTerms(), row) - load.getTerms().begin();
      Value offset = code.addressOf(load), stride = code.coefficientOf(load, term);
      device::LoadRunOp::create(b, code.loc, code.arrayOf(load.getArray()), offset, stride, code.index(2), pair,
                                ValueRange(), IntegerAttr());
      loaded.push_back(pair);
    }
    code.close();
    for (auto [k, buffers] : llvm::enumerate(rows)) {
      code.open();
      bindRow(code, code.index(k));
      for (auto [load, pair] : llvm::zip_equal(pairs, loaded))
        code.bind(load.getResult(), memref::LoadOp::create(b, code.loc, pair, ValueRange{code.index(k)}));
      for (auto [store, buffer] : buffers)
        memref::StoreOp::create(b, code.loc, code.stored(store), buffer, element);
      code.close();
    }
  });
}

void ColumnKernel::store(ScalarCode &code, const Buffers &buffers) {
  SymExpr columns = extent(form.columnAxis());
  Value count = isWhole() ? code.index(form.width)
                          : arith::SubIOp::create(b, code.named("count"), code.symbol(columns), first).getResult();
  for (auto [store, buffer] : buffers) {
    code.open();
    code.bind(column, first);
    unsigned term = llvm::find(store.getTerms(), column) - store.getTerms().begin();
    Value offset = code.addressOf(store), stride = code.coefficientOf(store, term);
    code.close();
    device::StoreRunOp::create(b, code.loc, buffer, ValueRange(), code.arrayOf(store.getArray()), offset, stride,
                               count);
  }
}

/// Emits the runs of one row.
void ColumnKernel::storeRuns(ScalarCode &code) {
  Buffers buffers = makeBuffers(code);
  Value plain = isPlain(code);
  auto fillPlain = [&] { return fill(code, buffers, true), Values(); };
  auto fillOthers = [&] { return fill(code, buffers, false), Values(); };
  plain ? code.branch(plain, {}, fillPlain, fillOthers) : fillPlain();
  store(code, buffers);
}

/// Emits the runs of two neighbouring rows, which are loaded together if they are plain.
void ColumnKernel::storePairs(ScalarCode &code) {
  Value plain = isPlain(code);
  auto both = [&] {
    SmallVector<Buffers> rows{makeBuffers(code), makeBuffers(code)};
    fillPairs(code, rows);
    for (auto [k, buffers] : llvm::enumerate(rows)) {
      code.open();
      bindRow(code, code.index(k));
      store(code, buffers);
      code.close();
    }
    return Values();
  };
  auto others = [&] {
    code.loop(0, 2, "step", [&](Value step) {
      bindRow(code, step);
      Buffers buffers = makeBuffers(code);
      fill(code, buffers, false);
      store(code, buffers);
    });
    return Values();
  };
  plain ? code.branch(plain, {}, both, others) : both();
}

LogicalResult ColumnKernel::run() {
  b.setInsertionPointToEnd(&program.getBody().front());
  SymExpr blocks = tiles(form.columnAxis()) * tiles(form.rowAxis);
  for (unsigned axis = 0; axis < form.columnAxis(); ++axis)
    if (axis != form.rowAxis)
      blocks = extent(axis) * blocks;
  beginKernel(b, form.nest, program, Twine(kernelNumber), blocks, kWarps * kLanes);
  ScalarCode code(b, mapArrays(form.nest, program), form.nest.getLoc());
  Value chosen = onf::ForOp(form.nest).buildChoice();
  findPairs();
  bindIndices(code);
  if (chosen)
    inside = code.both(code.eval(chosen), inside);
  code.when(inside, [&] {
    if (form.rowsPerLane == 1)
      return storeRuns(code);
    if (!pairs.empty())
      return storePairs(code);
    code.loop(0, form.rowsPerLane, "step", [&](Value step) {
      bindRow(code, step);
      storeRuns(code);
    });
  });
  return failure(code.failed);
}

//===----------------------------------------------------------------------===//
// The interface
//===----------------------------------------------------------------------===//

namespace {
class ColumnMatch final : public FormMatch {
public:
  explicit ColumnMatch(ColumnRuns form) : form(std::move(form)) {}
  DictionaryAttr describe() final {
    NestSchedule schedule = outerFactors(form.nest);
    AxisSchedule &rows = schedule.axes[form.rowAxis], &columns = schedule.axes.back();
    if (form.rowsPerLane > 1)
      rows.factors.emplace_back(Resource::sequential, form.rowsPerLane);
    rows.factors.emplace_back(Resource::lane, kLanes);
    columns.factors.emplace_back(Resource::warp, kWarps);
    columns.factors.emplace_back(Resource::register_, form.width);
    return writeSchedule(form.nest.getContext(), schedule,
                         "runs of " + Twine(form.width) + " columns, a lane per " +
                             (form.rowsPerLane > 1 ? "two " : "") + rows.name);
  }
  LogicalResult lower(device::ProgramOp program, unsigned number) final {
    return ColumnKernel(form, program, number).run();
  }

private:
  ColumnRuns form;
};
} // namespace

static Match<std::unique_ptr<FormMatch>> matchColumns(ForOp nest) {
  auto form = findColumnRuns(nest);
  if (!form)
    return Reason("it does not store along its last axis elements that it reads along another axis");
  return std::make_unique<ColumnMatch>(std::move(*form));
}

const KernelForm moa::forms::columns = {"columns", "runs of columns", matchColumns};
