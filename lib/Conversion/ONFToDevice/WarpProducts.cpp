//===- WarpProducts.cpp - a nest as one product per warp ------------------===//
#include "lib/Conversion/ONFToDevice/WarpProducts.h"
#include "lib/Conversion/ONFToDevice/ScalarCode.h"
#include "lib/Conversion/ONFToVector/Dependence.h"
#include "lib/Support/Constant.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace moa;
using namespace moa::onf;

/// Rows of a block, and indices of the fold that one instruction takes.
static constexpr int64_t kRows = 64, kDepth = 16;
/// Terms that are added up without compensation.
static constexpr int64_t kMostTerms = 1024;
/// Columns whose sums a thread has registers for.
static constexpr int64_t kMostColumns = 128;

//===----------------------------------------------------------------------===//
// The form
//===----------------------------------------------------------------------===//

static bool isHalf(Type type) { return type && (type.isBF16() || type.isF16()); }

/// The one fold, its one state and the loop that stores it.
static bool findParts(WarpProduct &product) {
  Block &body = product.nest.getBody().front();
  auto folds = llvm::to_vector(body.getOps<FoldOp>());
  if (body.getNumArguments() == 0 || folds.size() != 1 || folds[0].getNumResults() != 1)
    return false;
  product.fold = folds[0];
  product.acc = rows::getAccs(product.fold).front();
  for (Operation &op : body) {
    if (isa<StoreOp>(op))
      return false;
    if (auto loop = dyn_cast<ForOp>(op)) {
      if (product.stores || loop.getExtents().size() != 1)
        return false;
      product.stores = loop;
    }
  }
  AccOp acc = product.acc;
  auto length = constantOf(product.fold.getExtent());
  if (!product.stores || acc.getMonoid() != Monoid::add || !acc.getRefs().empty() ||
      acc.getExtents().size() != 1 || !length || *length < kDepth || *length > kMostTerms)
    return false;
  auto columns = constantOf(cast<StringAttr>(acc.getExtents()[0]).getValue());
  bool hasInner = product.fold
                      ->walk([&](Operation *op) {
                        return op != product.fold && isa<FoldOp>(op) ? WalkResult::interrupt()
                                                                     : WalkResult::advance();
                      })
                      .wasInterrupted();
  if (hasInner || !columns || *columns % 8 != 0 || *columns < 8 || *columns > kMostColumns ||
      product.stores.getExtents()[0] != acc.getExtents()[0])
    return false;
  product.length = *length;
  product.columns = *columns;
  return rows::getYielded(acc.getValue()).getType().isF32();
}

/// The type that a product of factors has where it is read as it is; null where it is computed.
static Type readType(ArrayRef<Value> factors) {
  LoadOp load = factors.size() == 1 ? rows::getReadElement(factors[0]) : LoadOp();
  return load ? load.getResult().getType() : Type();
}

static bool findOperands(WarpProduct &product, rows::Dependence &deps) {
  Value row = product.nest.getBody().getArguments().back();
  Value carried = product.acc.getValue().getArgument(0);
  SmallVector<Value> open{rows::getYielded(product.acc.getValue())};
  while (!open.empty()) {
    Value factor = open.pop_back_val();
    if (auto times = factor.getDefiningOp<arith::MulFOp>()) {
      open.push_back(times.getLhs());
      open.push_back(times.getRhs());
      continue;
    }
    bool ofRow = deps.on(factor, row), ofColumn = deps.on(factor, carried);
    if (ofRow && ofColumn)
      return false;
    // What is of neither is multiplied where a thread has fewer elements: every warp has all columns.
    bool isWithRow = ofRow || (!ofColumn && product.columns > kRows / 4);
    (isWithRow ? product.rowFactors : product.keyFactors).push_back(factor);
  }
  if (product.rowFactors.empty() || product.keyFactors.empty())
    return false;
  // What is computed is rounded once to the type of the other operand, or to the one that is written.
  Type left = readType(product.rowFactors), right = readType(product.keyFactors);
  Type rounds = rows::roundsOperands(product.acc) ? *product.acc.getOperandType() : Type();
  if (!isHalf(left))
    left = rounds;
  if (!isHalf(right))
    right = rounds;
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
    if (deps.on(part, row) && deps.on(part, key))
      return false;
    (deps.on(part, row) ? product.rowConditions : product.keyConditions).push_back(part);
  }
  return true;
}

std::optional<WarpProduct> moa::findWarpProduct(ForOp nest) {
  WarpProduct product;
  product.nest = nest;
  rows::Dependence deps;
  if (!findParts(product) || !findOperands(product, deps) || !findConditions(product, deps))
    return std::nullopt;
  return product;
}

bool moa::isLiftedToWarps(ForOp nest) {
  auto lift = nest.getLift();
  if (!lift || lift->empty())
    return false;
  auto resources = cast<AxisAttr>(lift->getValue().back()).getResources();
  return llvm::is_contained(resources, static_cast<int64_t>(Resource::warp)) &&
         !llvm::is_contained(resources, static_cast<int64_t>(Resource::warpgroup));
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

namespace {
class ProductKernel {
public:
  ProductKernel(const WarpProduct &product, device::ProgramOp program, unsigned number)
      : product(product), program(program), number(number), b(program.getContext()) {}
  LogicalResult run();

private:
  using Values = ScalarCode::Values;
  StringRef extent(unsigned axis) { return cast<StringAttr>(product.nest.getExtents()[axis]).getValue(); }
  std::string tiles() {
    SymExpr rows = *SymExpr::parse(extent(rank() - 1));
    return SymExpr::floorDiv(rows + SymExpr(kRows - 1), SymExpr(kRows)).str();
  }
  unsigned rank() { return product.nest.getExtents().size(); }
  void bindIndices(ScalarCode &code);
  Value map(ScalarCode &code, StringRef name, ValueRange inputs, device::LayoutAttr layout,
            Type element, llvm::function_ref<Value(ValueRange, ValueRange)> body);
  Value operand(ScalarCode &code, StringRef name, ArrayRef<Value> factors, Value inside);
  Value rounded(ScalarCode &code, Value fragment);
  Value rows(ScalarCode &code, Value first);
  Value keys(ScalarCode &code, Value first);
  Value inRange(ScalarCode &code, Value index);
  Value hasRow(ScalarCode &code, Value row);
  Value all(ScalarCode &code, ArrayRef<Value> conditions, Value inside);
  device::LayoutAttr keyLayout();

  const WarpProduct &product;
  device::ProgramOp program;
  unsigned number;
  OpBuilder b;
  Value firstRow;
};
} // namespace

/// The operand b of mma.sync with all columns in every warp.
device::LayoutAttr ProductKernel::keyLayout() {
  auto place = [](device::Place p) { return static_cast<int64_t>(p); };
  int64_t warp = place(device::Place::warp), lane = place(device::Place::lane),
          reg = place(device::Place::register_);
  return device::LayoutAttr::get(b.getContext(), {3, 2, 1}, {reg, lane, reg, reg, lane, warp},
                                 {2, 4, 2, product.columns / 8, 8, 4}, {2, 1, 1, 4, 4, 1});
}

void ProductKernel::bindIndices(ScalarCode &code) {
  Value rest = device::BlockOp::create(b, code.loc, b.getIndexType());
  auto digit = [&](Value radix, bool isFirst, StringRef name) -> Value {
    if (isFirst)
      return rest;
    Value result = arith::RemUIOp::create(b, code.named(name), rest, radix);
    rest = arith::DivUIOp::create(b, code.loc, rest, radix);
    return result;
  };
  Value tile = digit(code.symbol(tiles()), rank() == 1, "tile");
  firstRow = arith::MulIOp::create(b, code.named("first_row"), tile, code.index(kRows));
  for (unsigned axis = rank() - 1; axis-- > 0;)
    code.bind(product.nest.getBody().getArgument(axis),
              digit(code.symbol(extent(axis)), axis == 0,
                    cast<StringAttr>(product.nest.getNames()[axis]).getValue()));
}

Value ProductKernel::map(ScalarCode &code, StringRef name, ValueRange inputs, device::LayoutAttr layout,
                         Type element, llvm::function_ref<Value(ValueRange, ValueRange)> body) {
  SmallVector<Type> results;
  if (element)
    results.push_back(device::FragmentType::get(b.getContext(), {layout.getExtent(0), layout.getExtent(1)},
                                                element, layout));
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

/// Whether a row exists; null where each does.
Value ProductKernel::hasRow(ScalarCode &code, Value row) {
  auto size = constantOf(extent(rank() - 1));
  if (size && *size % kRows == 0)
    return {};
  return arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::slt, row, code.symbol(extent(rank() - 1)));
}

Value ProductKernel::inRange(ScalarCode &code, Value index) {
  if (product.length % kDepth == 0)
    return {};
  return arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::slt, index, code.index(product.length));
}

/// `inside` and the conditions, each evaluated only where those before it hold.
Value ProductKernel::all(ScalarCode &code, ArrayRef<Value> conditions, Value inside) {
  for (Value condition : conditions)
    inside = inside ? code.branch(inside, {b.getI1Type()}, [&] { return Values{code.eval(condition)}; },
                                  [&] { return Values{code.constant(b.getBoolAttr(false))}; })[0]
                    : code.eval(condition);
  return inside;
}

/// The product of factors, and 0 outside.
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
  return code.branch(inside, {type}, [&] { return Values{value()}; },
                     [&] { return Values{code.constant(b.getFloatAttr(type, 0))}; })[0];
}

/// Operands in their 16 bits, which loses nothing of what was read.
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
    Value inside = code.both(hasRow(code, row), inRange(code, key));
    inside = all(code, product.rowConditions, inside);
    return operand(code, "left", product.rowFactors, all(code, product.keyConditions, inside));
  }));
}

Value ProductKernel::keys(ScalarCode &code, Value first) {
  return rounded(code, map(code, "right", {}, keyLayout(), b.getF32Type(), [&](ValueRange, ValueRange at) {
    Value key = arith::AddIOp::create(b, code.named(product.fold.getName()), first, at[0]);
    code.bind(product.fold.getBody().getArgument(0), key);
    code.bind(product.acc.getValue().getArgument(0), at[1]);
    return operand(code, "right", product.keyFactors, all(code, product.keyConditions, inRange(code, key)));
  }));
}

LogicalResult ProductKernel::run() {
  b.setInsertionPointToEnd(&program.getBody().front());
  SymExpr blocks = *SymExpr::parse(tiles());
  for (unsigned axis = 0; axis + 1 < rank(); ++axis)
    blocks = *SymExpr::parse(extent(axis)) * blocks;
  std::string name = program.getSymName().str() + "_" + std::to_string(number);
  auto kernel = device::KernelOp::create(b, product.nest.getLoc(), name, blocks.str(), 2 * kRows);
  b.setInsertionPointToStart(&kernel.getBody().emplaceBlock());
  auto source = product.nest->getParentOfType<onf::KernelOp>();
  IRMapping arrays;
  for (auto [from, to] : llvm::zip(source.getBody().getArguments(), program.getBody().getArguments()))
    arrays.map(from, to);
  ScalarCode code(b, arrays);
  code.loc = product.nest.getLoc();
  bindIndices(code);
  auto layout = device::LayoutAttr::getAccumulator(b.getContext(), product.columns);
  auto sums = device::FragmentType::get(b.getContext(), {kRows, product.columns}, b.getF32Type(), layout);
  Value zero = device::FillOp::create(b, code.named(product.acc.getName()), sums,
                                      code.constant(b.getF32FloatAttr(0)));
  Value steps = code.index(llvm::divideCeil(product.length, kDepth));
  Value sum = code.loop(code.index(0), steps, {zero}, {"step", product.acc.getName().str()},
                        [&](Value step, ValueRange olds) {
    Value first = arith::MulIOp::create(b, code.named("first"), step, code.index(kDepth));
    Value left = rows(code, first), right = keys(code, first);
    return Values{device::ContractFragmentsOp::create(b, code.named(product.acc.getName()), sums, left, right,
                                                      olds[0])};
  })[0];
  map(code, "", sum, layout, Type(), [&](ValueRange in, ValueRange at) -> Value {
    Value row = arith::AddIOp::create(b, code.named("row"), firstRow, at[0]);
    code.bind(product.nest.getBody().getArguments().back(), row);
    code.bind(product.stores.getBody().getArgument(0), at[1]);
    code.bind(product.fold.getResult(0), in[0]);
    auto store = [&] {
      for (auto op : product.stores.getBody().getOps<StoreOp>())
        code.store(op);
    };
    if (Value inside = hasRow(code, row))
      code.when(inside, store);
    else
      store();
    return {};
  });
  return failure(code.failed);
}

LogicalResult moa::lowerWarpProduct(const WarpProduct &product, device::ProgramOp program, unsigned number) {
  return ProductKernel(product, program, number).run();
}
