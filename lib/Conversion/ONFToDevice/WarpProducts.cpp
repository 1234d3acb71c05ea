//===- WarpProducts.cpp - matrix products by single warps -----------------===//
//
// A nest whose one fold sums products x(i, j) · y(j, d) of 16-bit operands runs on mma.sync. i is
// its last axis and d the axis of the state. A block has 64 rows, 16 per warp. The operands are
// loaded or computed directly in the registers of mma.sync, so that any expressions and strides are
// allowed. The state stays in registers. This suits short folds: rows share operands only through
// caches.
//
// Alternatively, the columns are an axis of the nest, c = c₀ + d, whose size is known at run time
// only: the axis before the last one. A block then has 64 columns, and the nest may store any
// function of the sum at (i, c). Such sums may be long: each 1024 terms are summed separately, and
// these partial sums are added with compensation.
//
//===----------------------------------------------------------------------===//
#include "lib/Conversion/ONFToDevice/GpuNests.h"
#include "lib/Conversion/ONFToDevice/ScalarCode.h"
#include "lib/Conversion/ONFToVector/Dependence.h"
#include "lib/Conversion/ONFToVector/Integers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace moa;
using namespace moa::onf;

/// Rows of a block, and the depth of one mma.sync.
static constexpr int64_t kRows = 64, kDepth = 16;
/// Terms that are summed without compensation.
static constexpr int64_t kMostTerms = 1024;
/// Columns whose sums fit into a thread's registers. For an axis of the nest they are fewer,
/// because long sums take three numbers each.
static constexpr int64_t kMostColumns = 128, kNestColumns = 64;

//===----------------------------------------------------------------------===//
// The form
//===----------------------------------------------------------------------===//

namespace {
/// The parts of such a nest.
struct WarpProduct {
  mutable ForOp nest;
  mutable FoldOp fold;
  mutable AccOp acc;
  mutable ForOp stores;          // the loop over the state's axis, if it has one
  Value column;                  // index of that axis in the fold, or of the nest
  std::optional<int64_t> length; ///< of the fold, if known
  int64_t columns = 0;           ///< per block
  Type element;                  ///< of both operands
  SmallVector<Value> rowFactors, keyFactors;
  /// Conjuncts of the guard on the row alone, and those that rows share.
  SmallVector<Value> rowConditions, keyConditions;
};
} // namespace

static bool isHalf(Type type) { return type && (type.isBF16() || type.isF16()); }

/// Finds the only fold, its only state and the loop that stores it, if there is one.
static bool findFold(WarpProduct &product) {
  Block &body = product.nest.getBody().front();
  auto folds = llvm::to_vector(body.getOps<FoldOp>());
  if (body.getNumArguments() == 0 || folds.size() != 1 || folds[0].getNumResults() != 1)
    return false;
  product.fold = folds[0];
  product.acc = rows::getAccs(product.fold).front();
  for (Operation &op : body)
    if (auto loop = dyn_cast<ForOp>(op)) {
      if (product.stores || loop.getExtents().size() != 1)
        return false;
      product.stores = loop;
    }
  AccOp acc = product.acc;
  product.length = product.fold.getExtent().getConstant();
  bool hasInner = product.fold
                      ->walk([&](Operation *op) {
                        return op != product.fold && isa<FoldOp>(op) ? WalkResult::interrupt() : WalkResult::advance();
                      })
                      .wasInterrupted();
  return !hasInner && acc.getMonoid() == Monoid::add && acc.getRefs().empty() &&
         rows::getYielded(acc.getValue()).getType().isF32();
}

/// Finds the axis of the state, which a loop stores.
static bool findColumnsOfState(WarpProduct &product) {
  AccOp acc = product.acc;
  bool storesRow = !product.nest.getBody().getOps<StoreOp>().empty();
  if (storesRow || acc.getExtents().size() != 1 || !product.length || *product.length < kDepth ||
      *product.length > kMostTerms)
    return false;
  auto columns = getSymExpr(acc.getExtents()[0]).getConstant();
  if (!columns || *columns % 8 != 0 || *columns < 8 || *columns > kMostColumns ||
      product.stores.getExtents()[0] != acc.getExtents()[0])
    return false;
  product.column = acc.getValue().getArgument(0);
  product.columns = *columns;
  return true;
}

/// Finds the columns as an axis of the nest, before that of the rows.
static bool findColumnsOfNest(WarpProduct &product) {
  auto indices = product.nest.getBody().getArguments();
  bool isShort = product.length && *product.length < kDepth;
  if (indices.size() < 2 || !product.acc.getExtents().empty() || isShort || product.nest.getChoices())
    return false;
  // With few rows or columns, most of a block would be padding.
  constexpr int64_t fewest = 8;
  for (const SymExpr &extent :
       llvm::drop_begin(product.nest.getExtents().getAsValueRange<ExprAttr>(), indices.size() - 2))
    if (auto size = extent.getConstant(); size && *size < fewest)
      return false;
  product.column = *(indices.end() - 2);
  product.columns = kNestColumns;
  return true;
}

static bool findParts(WarpProduct &product) {
  return findFold(product) && (product.stores ? findColumnsOfState(product) : findColumnsOfNest(product));
}

/// Returns the type of a factor that is a plain load; null if it is computed.
static Type readType(ArrayRef<Value> factors) {
  LoadOp load = factors.size() == 1 ? rows::getReadElement(factors[0]) : LoadOp();
  return load ? load.getResult().getType() : Type();
}

static bool findOperands(WarpProduct &product, rows::Dependence &deps) {
  Value row = product.nest.getBody().getArguments().back(), column = product.column;
  SmallVector<Value> open{rows::getYielded(product.acc.getValue())};
  while (!open.empty()) {
    Value factor = open.pop_back_val();
    if (auto times = factor.getDefiningOp<arith::MulFOp>()) {
      open.push_back(times.getLhs());
      open.push_back(times.getRhs());
      continue;
    }
    bool ofRow = deps.on(factor, row), ofColumn = deps.on(factor, column);
    if (ofRow && ofColumn)
      return false;
    // Factors of neither side go where a thread has fewer elements: every warp has all columns.
    bool isWithRow = ofRow || (!ofColumn && product.columns > kRows / 4);
    (isWithRow ? product.rowFactors : product.keyFactors).push_back(factor);
  }
  if (product.rowFactors.empty() || product.keyFactors.empty())
    return false;
  // Computed operands are rounded once, to the type of the other operand or to the one in the
  // specification.
  Type left = readType(product.rowFactors), right = readType(product.keyFactors);
  Type rounds = rows::roundsOperands(product.acc) ? *product.acc.getOperandType() : Type();
  if (!isHalf(left))
    left = rounds;
  if (!isHalf(right))
    right = rounds;
  // Integers of i8 are exact in 16 bits, and sums of 1024 of their products are exact in f32.
  auto isInteger = [](ArrayRef<Value> factors) { return factors.size() == 1 && rows::getIntegerOf(factors[0]); };
  if (isInteger(product.rowFactors) && isInteger(product.keyFactors))
    left = right = BFloat16Type::get(product.nest.getContext());
  product.element = left;
  return isHalf(left) && left == right;
}

static bool findConditions(WarpProduct &product, rows::Dependence &deps) {
  GuardOp guard = rows::getGuard(product.fold);
  if (!guard)
    return true;
  Value row = product.nest.getBody().getArguments().back(), key = product.fold.getBody().getArgument(0);
  SmallVector<Value> open{guard.getCondition()};
  while (!open.empty()) {
    Value part = open.pop_back_val();
    if (auto both = part.getDefiningOp<arith::AndIOp>()) {
      open.push_back(both.getRhs());
      open.push_back(both.getLhs());
      continue;
    }
    bool ofColumn = !product.stores && deps.on(part, product.column);
    if (ofColumn || (deps.on(part, row) && deps.on(part, key)))
      return false;
    (deps.on(part, row) ? product.rowConditions : product.keyConditions).push_back(part);
  }
  return true;
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

namespace {
class ProductKernel {
public:
  ProductKernel(const WarpProduct &product, device::ProgramOp program, unsigned number)
      : product(product), program(program), kernelNumber(number), b(program.getContext()) {}
  LogicalResult run();

private:
  using Values = ScalarCode::Values;
  const SymExpr &extent(unsigned axis) { return getSymExpr(product.nest.getExtents()[axis]); }
  bool hasColumns() const { return !product.stores; }
  SymExpr blocks(unsigned axis) {
    int64_t size = axis + 1 == rank() ? kRows : hasColumns() && axis + 2 == rank() ? product.columns : 1;
    if (size == 1)
      return extent(axis);
    return SymExpr::floorDiv(extent(axis) + SymExpr(size - 1), SymExpr(size));
  }
  unsigned rank() { return product.nest.getExtents().size(); }
  void bindIndices(ScalarCode &code);
  Value map(ScalarCode &code, StringRef name, ValueRange inputs, device::LayoutAttr layout, Type element,
            llvm::function_ref<Value(ValueRange, ValueRange)> body);
  Value operand(ScalarCode &code, StringRef name, ArrayRef<Value> factors, Value inside);
  Value rounded(ScalarCode &code, Value fragment);
  Value rows(ScalarCode &code, Value first);
  Value keys(ScalarCode &code, Value first);
  Value inRange(ScalarCode &code, Value index);
  Value isBelow(ScalarCode &code, Value index, unsigned axis, int64_t block);
  Value hasRow(ScalarCode &code, Value row) { return isBelow(code, row, rank() - 1, kRows); }
  Value bindColumn(ScalarCode &code, Value number);
  Value addUp(ScalarCode &code, Type sums, Value zero);
  Value steps(ScalarCode &code, Value sum, Value from, Value to);
  std::pair<Value, Value> addPart(ScalarCode &code, Value sum, Value rest, Value part);
  void storeResults(ScalarCode &code, Value sum);
  Value all(ScalarCode &code, ArrayRef<Value> conditions, Value inside);
  device::LayoutAttr keyLayout();

  const WarpProduct &product;
  device::ProgramOp program;
  unsigned kernelNumber;
  OpBuilder b;
  Value firstRow, firstColumn;
};
} // namespace

/// Returns the layout of operand b of mma.sync, with all columns in every warp.
device::LayoutAttr ProductKernel::keyLayout() {
  auto place = [](device::Place p) { return static_cast<int64_t>(p); };
  int64_t warp = place(device::Place::warp), lane = place(device::Place::lane), reg = place(device::Place::register_);
  return device::LayoutAttr::get(b.getContext(), {3, 2, 1}, {reg, lane, reg, reg, lane, warp},
                                 {2, 4, 2, product.columns / 8, 8, 4}, {2, 1, 1, 4, 4, 1});
}

void ProductKernel::bindIndices(ScalarCode &code) {
  Value rest = device::BlockOp::create(b, code.loc, b.getIndexType());
  for (unsigned axis = rank(); axis-- > 0;) {
    bool isRow = axis + 1 == rank(), isColumn = hasColumns() && axis + 2 == rank();
    Value digit = rest;
    if (axis != 0) {
      std::string name = isRow      ? "tile"
                         : isColumn ? "column_tile"
                                    : cast<StringAttr>(product.nest.getNames()[axis]).str();
      digit = code.takeDigit(rest, code.symbol(blocks(axis)), name);
    }
    if (isRow)
      firstRow = arith::MulIOp::create(b, code.named("first_row"), digit, code.index(kRows));
    else if (isColumn)
      firstColumn = arith::MulIOp::create(b, code.named("first_column"), digit, code.index(product.columns));
    else
      code.bind(product.nest.getBody().getArgument(axis), digit);
  }
}

Value ProductKernel::map(ScalarCode &code, StringRef name, ValueRange inputs, device::LayoutAttr layout, Type element,
                         llvm::function_ref<Value(ValueRange, ValueRange)> body) {
  SmallVector<Type> results;
  if (element)
    results.push_back(
        device::FragmentType::get(b.getContext(), {layout.getExtent(0), layout.getExtent(1)}, element, layout));
  auto op = device::MapOp::create(b, code.named(name), results, inputs, layout);
  OpBuilder::InsertionGuard guard(b);
  Block &block = op.getBody().emplaceBlock();
  for (Value input : inputs)
    block.addArgument(cast<device::FragmentType>(input.getType()).getElementType(), code.loc);
  for (unsigned axis = 0; axis < 2; ++axis)
    block.addArgument(b.getIndexType(), code.loc);
  b.setInsertionPointToEnd(&block);
  code.open();
  ValueRange arguments = block.getArguments();
  Value value = body(arguments.take_front(inputs.size()), arguments.drop_front(inputs.size()));
  device::YieldOp::create(b, code.loc, value ? Values{value} : Values());
  code.close();
  return element ? op.getResult(0) : Value();
}

/// Returns whether an index of an axis exists, for blocks of `block` indices; null: always.
Value ProductKernel::isBelow(ScalarCode &code, Value index, unsigned axis, int64_t block) {
  auto size = extent(axis).getConstant();
  if (size && *size % block == 0)
    return {};
  return arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::slt, index, code.symbol(extent(axis)));
}

/// Binds the column of a block with this number. Returns whether it exists; null: always.
Value ProductKernel::bindColumn(ScalarCode &code, Value number) {
  if (!hasColumns()) {
    code.bind(product.column, number);
    return {};
  }
  Value column = arith::AddIOp::create(b, code.named("column"), firstColumn, number);
  code.bind(product.column, column);
  return isBelow(code, column, rank() - 2, product.columns);
}

Value ProductKernel::inRange(ScalarCode &code, Value index) {
  if (product.length && *product.length % kDepth == 0)
    return {};
  return arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::slt, index, code.symbol(product.fold.getExtent()));
}

/// Returns the conjunction of `inside` and the conditions, each evaluated only where those before
/// it hold.
Value ProductKernel::all(ScalarCode &code, ArrayRef<Value> conditions, Value inside) {
  for (Value condition : conditions)
    inside = inside ? code.branch(
                          inside, {b.getI1Type()}, [&] { return Values{code.eval(condition)}; },
                          [&] { return Values{code.constant(b.getBoolAttr(false))}; })[0]
                    : code.eval(condition);
  return inside;
}

/// Returns the product of factors, or 0 outside.
Value ProductKernel::operand(ScalarCode &code, StringRef name, ArrayRef<Value> factors, Value inside) {
  Type type = b.getF32Type();
  auto value = [&]() -> Value {
    Value result;
    for (Value factor : factors) {
      Value next = code.eval(factor);
      result = result ? arith::MulFOp::create(b, code.named(name), result, next).getResult() : next;
    }
    return result;
  };
  if (!inside)
    return value();
  return code.branch(
      inside, {type}, [&] { return Values{value()}; },
      [&] { return Values{code.constant(b.getFloatAttr(type, 0))}; })[0];
}

/// Rounds operands to 16 bits, which is exact for loaded ones.
Value ProductKernel::rounded(ScalarCode &code, Value fragment) {
  auto layout = cast<device::FragmentType>(fragment.getType()).getLayout();
  return map(code, "packed", fragment, layout, product.element,
             [&](ValueRange in, ValueRange) { return code.convert(in[0], product.element); });
}

Value ProductKernel::rows(ScalarCode &code, Value first) {
  auto layout = device::LayoutAttr::getAccumulator(b.getContext(), kDepth);
  return rounded(code, map(code, "left", {}, layout, b.getF32Type(), [&](ValueRange, ValueRange at) {
                   Value row = arith::AddIOp::create(b, code.named("row"), firstRow, at[0]);
                   Value key = arith::AddIOp::create(b, code.named(product.fold.getName()), first, at[1]);
                   code.bind(product.nest.getBody().getArguments().back(), row);
                   code.bind(product.fold.getBody().getArgument(0), key);
                   Value hasKey = inRange(code, key), inside = code.both(hasRow(code, row), hasKey);
                   inside = all(code, product.rowConditions, inside);
                   return operand(code, "left", product.rowFactors, all(code, product.keyConditions, inside));
                 }));
}

Value ProductKernel::keys(ScalarCode &code, Value first) {
  return rounded(code, map(code, "right", {}, keyLayout(), b.getF32Type(), [&](ValueRange, ValueRange at) {
                   Value key = arith::AddIOp::create(b, code.named(product.fold.getName()), first, at[0]);
                   code.bind(product.fold.getBody().getArgument(0), key);
                   Value hasKey = inRange(code, key), inside = code.both(bindColumn(code, at[1]), hasKey);
                   return operand(code, "right", product.keyFactors, all(code, product.keyConditions, inside));
                 }));
}

/// Adds the products of the steps of 16 terms from `from` to `to` to `sum`.
Value ProductKernel::steps(ScalarCode &code, Value sum, Value from, Value to) {
  return code.loop(from, to, {sum}, {"step", product.acc.getName().str()}, [&](Value step, ValueRange olds) {
    Value first = arith::MulIOp::create(b, code.named("first"), step, code.index(kDepth));
    Value left = rows(code, first), right = keys(code, first);
    return Values{
        device::ContractFragmentsOp::create(b, code.named(product.acc.getName()), sum.getType(), left, right, olds[0])};
  })[0];
}

/// Returns sum + part as rounded, and `rest` plus the rounding error.
std::pair<Value, Value> ProductKernel::addPart(ScalarCode &code, Value sum, Value rest, Value part) {
  auto layout = cast<device::FragmentType>(sum.getType()).getLayout();
  Value lost = map(code, "rest", {sum, rest, part}, layout, b.getF32Type(), [&](ValueRange in, ValueRange) -> Value {
    return arith::AddFOp::create(b, code.named("rest"), in[1], sumAndRest(code, in[0], in[2]).second);
  });
  Value total = map(code, "total", {sum, part}, layout, b.getF32Type(), [&](ValueRange in, ValueRange) -> Value {
    return arith::AddFOp::create(b, code.named("total"), in[0], in[1]);
  });
  return {total, lost};
}

Value ProductKernel::addUp(ScalarCode &code, Type sums, Value zero) {
  if (product.length && *product.length <= kMostTerms) {
    Value end = code.index(llvm::divideCeil(*product.length, kDepth));
    return steps(code, zero, code.index(0), end);
  }
  const SymExpr &length = product.fold.getExtent();
  auto count = [&](int64_t terms) {
    return code.symbol(SymExpr::floorDiv(length + SymExpr(terms - 1), SymExpr(terms)));
  };
  Value all = count(kDepth), parts = count(kMostTerms), most = code.index(kMostTerms / kDepth);
  auto both =
      code.loop(code.index(0), parts, {zero, zero}, {"part", "total", "rest"}, [&](Value part, ValueRange olds) {
        Value from = arith::MulIOp::create(b, code.named("from"), part, most);
        Value to = arith::AddIOp::create(b, code.loc, from, most);
        to = arith::MinSIOp::create(b, code.named("to"), to, all);
        Value none =
            device::FillOp::create(b, code.named(product.acc.getName()), sums, code.constant(b.getF32FloatAttr(0)));
        auto [total, rest] = addPart(code, olds[0], olds[1], steps(code, none, from, to));
        return Values{total, rest};
      });
  auto layout = cast<device::FragmentType>(sums).getLayout();
  return map(code, product.acc.getName(), both, layout, b.getF32Type(), [&](ValueRange in, ValueRange) -> Value {
    return arith::AddFOp::create(b, code.named(product.acc.getName()), in[0], in[1]);
  });
}

void ProductKernel::storeResults(ScalarCode &code, Value sum) {
  auto layout = cast<device::FragmentType>(sum.getType()).getLayout();
  map(code, "", sum, layout, Type(), [&](ValueRange in, ValueRange at) -> Value {
    Value row = arith::AddIOp::create(b, code.named("row"), firstRow, at[0]), inside = hasRow(code, row);
    code.bind(product.nest.getBody().getArguments().back(), row);
    code.bind(product.fold.getResult(0), in[0]);
    if (hasColumns())
      inside = code.both(inside, bindColumn(code, at[1]));
    else
      code.bind(product.stores.getBody().getArgument(0), at[1]);
    auto store = [&] {
      for (auto op : (hasColumns() ? product.nest.getBody() : product.stores.getBody()).getOps<StoreOp>())
        code.store(op);
    };
    if (inside)
      code.when(inside, store);
    else
      store();
    return {};
  });
}

LogicalResult ProductKernel::run() {
  b.setInsertionPointToEnd(&program.getBody().front());
  SymExpr all(1);
  for (unsigned axis = 0; axis < rank(); ++axis)
    all = all * blocks(axis);
  beginKernel(b, product.nest, program, Twine(kernelNumber), all, 2 * kRows);
  ScalarCode code(b, mapArrays(product.nest, program), product.nest.getLoc());
  bindIndices(code);
  auto layout = device::LayoutAttr::getAccumulator(b.getContext(), product.columns);
  auto sums = device::FragmentType::get(b.getContext(), {kRows, product.columns}, b.getF32Type(), layout);
  Value zero = device::FillOp::create(b, code.named(product.acc.getName()), sums, code.constant(b.getF32FloatAttr(0)));
  storeResults(code, addUp(code, sums, zero));
  return failure(code.failed);
}

//===----------------------------------------------------------------------===//
// The interface
//===----------------------------------------------------------------------===//

namespace {
class WarpMatch final : public FormMatch {
public:
  explicit WarpMatch(WarpProduct product) : product(std::move(product)) {}
  DictionaryAttr describe() final {
    NestSchedule schedule = outerFactors(product.nest);
    auto &rows = schedule.axes.back().factors;
    rows.emplace_back(Resource::warp, 4);
    rows.emplace_back(Resource::register_, 2);
    rows.emplace_back(Resource::lane, 8);
    return writeSchedule(product.nest.getContext(), schedule, "a warp per 16 rows");
  }
  LogicalResult lower(device::ProgramOp program, unsigned number) final {
    return ProductKernel(product, program, number).run();
  }

private:
  WarpProduct product;
};
} // namespace

static Match<std::unique_ptr<FormMatch>> matchWarps(ForOp nest) {
  if (nest.getChoices())
    return Reason("it is chosen at run time, and products of warps have no predicate");
  WarpProduct product;
  product.nest = nest;
  rows::Dependence deps;
  if (!findParts(product) || !findOperands(product, deps) || !findConditions(product, deps))
    return Reason("its fold is no sum of products of 16-bit operands over a short range");
  return std::make_unique<WarpMatch>(std::move(product));
}

const KernelForm moa::forms::warps = {"warps", "warps", matchWarps};
