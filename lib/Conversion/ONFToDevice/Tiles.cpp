//===- Tiles.cpp - folds with contractions on the tensor cores ------------===//
//
// A producer copies tiles of the keys' operands into rings. Every consumer
// warpgroup runs, for its 64 rows and each tile of keys,
//
//   scores    S = rows · keysᵀ                              contract
//   passes    states without axes: ⊕ over the tile's keys   map, reduce
//   carriers  O = c · O + P · G                             map, contract
//
// where the states of one tile are merged into the running ones with the repairs
// of their definition. There are two versions of the code for a tile: one for
// keys that every row of the block sees, and one that evaluates the guard.
//
//===----------------------------------------------------------------------===//
#include "lib/Conversion/ONFToDevice/Tiles.h"
#include "dialects/MoA/IR/Monoid.h"
#include "lib/Conversion/ONFToDevice/ONFToDevice.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>

using namespace mlir;
using namespace moa;
using namespace moa::onf;

namespace {

using rows::Carrier;
using rows::Score;
using Values = ScalarCode::Values;
using device::BarriersType;
using device::FragmentType;
using device::LayoutAttr;
using device::RingType;

int64_t padded(int64_t columns) { return llvm::alignTo(columns, 64); }

/// A ring, with the barriers that say when a stage is full and when empty.
struct Ring {
  Value tiles, full, empty;
};

class TileKernel {
public:
  TileKernel(const TilePlan &plan, device::ProgramOp program, unsigned number)
      : plan(plan), program(program), number(number), b(program.getContext()) {}
  LogicalResult run();

private:
  //===--- The block ------------------------------------------------------===//
  std::string tiles();
  StringRef extent(unsigned axis) {
    return cast<StringAttr>(plan.nest.getExtents()[axis]).getValue();
  }
  Ring makeRing(ScalarCode &code, StringRef name, int64_t stages, int64_t rows,
                int64_t columns, Type element, bool withEmpty);
  void bindBlock(ScalarCode &code);
  std::pair<Value, Value> interval(ScalarCode &code, AffineMap lower, AffineMap upper);
  void findRange(ScalarCode &code);
  void findFullRange(ScalarCode &code);
  Value tileAt(ScalarCode &code, Value position, std::optional<bool> masked);
  Value hasAllRows(ScalarCode &code);
  void copy(ScalarCode &code, const TileOperand &operand, Value first, const Ring &ring,
            Value stage);
  std::pair<Value, Value> stageOf(ScalarCode &code, Value n);
  void produce(ScalarCode &code);

  //===--- A consumer -----------------------------------------------------===//
  /// The states without axes, a fragment of rows each, and whether those with
  /// references have started.
  struct State {
    Value value, started;
    Value terms; // of the tile that has been merged last
  };
  void consume(ScalarCode &code);
  Values initialise(ScalarCode &code);
  Values iterate(ScalarCode &code, Value n, ValueRange args, bool masked, bool overlapped);
  unsigned countScalarStates();
  unsigned unrepaired();
  void startCarriers(ScalarCode &code, Value n, Values &sums, ValueRange weightsOf);
  void finishCarriers(ScalarCode &code, Value n, Values &sums);
  Values passes(ScalarCode &code, ValueRange scores, ValueRange args, Value first,
                bool masked);
  Values scalarStep(ScalarCode &code, const rows::Scalar &scalar, unsigned k,
                    ValueRange scores, ArrayRef<State> olds, SmallVectorImpl<State> &news,
                    Value first, bool masked);
  std::optional<unsigned> findTerms(const Carrier &carrier, ArrayRef<State> news);
  Value weights(ScalarCode &code, const Carrier &carrier, ValueRange scores,
                ArrayRef<State> news, Value first, bool masked);
  Value factors(ScalarCode &code, AccOp acc, ArrayRef<State> olds, ArrayRef<State> news,
                Value started);
  void finish(ScalarCode &code, ValueRange finals);
  std::optional<unsigned> findRowAxis(StoreOp store, Value loopIndex, unsigned carrier);
  void bindFinals(ScalarCode &code, ValueRange in, ValueRange at);
  void writeElements(ScalarCode &code, ValueRange finals, Block &block,
                     std::optional<unsigned> carrier, Value loopIndex);
  void writeTile(ScalarCode &code, ValueRange finals, StoreOp store, unsigned carrier,
                 unsigned rowAxis, Value loopIndex);
  Value resultOf(AccOp acc) {
    SmallVector<AccOp> accs = rows::getAccs(plan.fold);
    return plan.fold.getResult(llvm::find(accs, acc) - accs.begin());
  }

  //===--- Maps -----------------------------------------------------------===//
  Type elementOf(Value fragment) {
    return cast<FragmentType>(fragment.getType()).getElementType();
  }
  FragmentType rowType(Type element) {
    LayoutAttr layout = LayoutAttr::getAccumulator(b.getContext(), 64).getSlice(0);
    return FragmentType::get(b.getContext(), {64}, element, layout);
  }
  FragmentType tileType(int64_t columns, Type element) {
    return FragmentType::get(b.getContext(), {64, columns}, element,
                             LayoutAttr::getAccumulator(b.getContext(), columns));
  }
  /// A map over rows, or over rows and `columns`. The body gets the inputs'
  /// elements and the element's indices.
  Values map(ScalarCode &code, ValueRange inputs, int64_t columns, ArrayRef<Type> elements,
             llvm::function_ref<Values(ValueRange, ValueRange)> body);
  void bindElement(ScalarCode &code, ValueRange at, Value first);
  /// `value` where the element is present and `keep` holds, else `none`; what
  /// `value` reads is read only there. In tiles that are not masked every element
  /// is present.
  Value guarded(ScalarCode &code, bool masked, ValueRange at, Value keep, Value none,
                ValueRange reads, llvm::function_ref<Value()> value);
  Value isPresent(ScalarCode &code);
  void clearUnseen(ScalarCode &code, Value first, Value stage, Value parity);
  unsigned numberOf(Value ref) {
    for (auto [k, scalar] : llvm::enumerate(plan.folded.scalars))
      if (scalar.acc == ref.getDefiningOp())
        return k;
    llvm_unreachable("references are states without axes of the same fold");
  }
  Value regular(ScalarCode &code, AccOp acc, ArrayRef<Value> refs);
  Value bindReferences(ScalarCode &code, AccOp acc, ArrayRef<Value> refs,
                       ArrayRef<Value> factors);
  Value identity(ScalarCode &code, Monoid monoid, Type type) {
    return code.constant(cast<TypedAttr>(getIdentity(monoid, type)));
  }

  const TilePlan &plan;
  device::ProgramOp program;
  unsigned number;
  OpBuilder b;
  SmallVector<Ring> rowRings, keyRings, carriedRings;
  bool readsMemory = false; // the states or the guard, beside the operands
  Value firstRow, lastRow, rowBase;    // of the block, clamped; of the warpgroup
  Value firstTile, endTile, firstFull, endFull; // tiles of keys
  Value numTiles, numMasked, warpgroup;
};

//===----------------------------------------------------------------------===//
// The block
//===----------------------------------------------------------------------===//

std::string TileKernel::tiles() {
  SymExpr rows = *SymExpr::parse(extent(plan.nest.getExtents().size() - 1));
  int64_t tile = plan.shape.rows();
  return SymExpr::floorDiv(rows + SymExpr(tile - 1), SymExpr(tile)).str();
}

Ring TileKernel::makeRing(ScalarCode &code, StringRef name, int64_t stages, int64_t rows,
                          int64_t columns, Type element, bool withEmpty) {
  MLIRContext *context = b.getContext();
  Ring ring;
  auto type = RingType::get(context, stages, {rows, padded(columns)}, element);
  auto named = [&](const char *what) { return code.named(name.str() + what); };
  ring.tiles = device::SharedOp::create(b, named("_ring"), type);
  ring.full =
      device::BarriersOp::create(b, named("_full"), BarriersType::get(context, stages, 1));
  // One arrival per consuming warp.
  if (withEmpty)
    ring.empty = device::BarriersOp::create(
        b, named("_empty"), BarriersType::get(context, stages, 4 * plan.shape.warpgroups));
  return ring;
}

void TileKernel::bindBlock(ScalarCode &code) {
  int64_t rank = plan.nest.getExtents().size();
  Block &body = plan.nest.getBody().front();
  auto nameOf = [&](unsigned axis) {
    return cast<StringAttr>(plan.nest.getNames()[axis]).getValue();
  };
  Value rest = device::BlockOp::create(b, code.loc, b.getIndexType());
  auto digit = [&](Value radix, unsigned left, StringRef name) -> Value {
    if (left == 0)
      return rest;
    Value result = arith::RemUIOp::create(b, code.named(name), rest, radix);
    rest = arith::DivUIOp::create(b, left == 1 ? code.named(nameOf(0)) : code.loc, rest,
                                  radix);
    return result;
  };
  Value tile = digit(code.symbol(tiles()), rank - 1, "tile");
  // Later rows often see more keys; the longest blocks start first.
  if (plan.fold.getPieces()) {
    Value last = arith::SubIOp::create(b, code.loc, code.symbol(tiles()), code.index(1));
    tile = arith::SubIOp::create(b, code.named("tile"), last, tile);
  }
  firstRow = arith::MulIOp::create(b, code.named("first_" + nameOf(rank - 1).str()), tile,
                                   code.index(plan.shape.rows()));
  Value end = arith::AddIOp::create(b, code.loc, firstRow, code.index(plan.shape.rows() - 1));
  Value last = arith::SubIOp::create(b, code.loc, code.symbol(extent(rank - 1)),
                                     code.index(1));
  lastRow = arith::MinSIOp::create(b, code.named("last_" + nameOf(rank - 1).str()), end, last);
  for (int64_t axis = rank - 2; axis >= 0; --axis)
    code.bind(body.getArgument(axis), digit(code.symbol(extent(axis)), axis, nameOf(axis)));
}

std::pair<Value, Value> TileKernel::interval(ScalarCode &code, AffineMap lower,
                                             AffineMap upper) {
  Values operands{firstRow, lastRow};
  for (Value bound : plan.fold.getBounds())
    operands.push_back(code.eval(bound));
  Value low = code.index(0), high = code.symbol(plan.fold.getExtent());
  if (auto values = affine::expandAffineMap(b, code.loc, lower, operands))
    for (Value value : *values)
      low = b.createOrFold<arith::MaxSIOp>(code.loc, low, value);
  if (auto values = affine::expandAffineMap(b, code.loc, upper, operands))
    for (Value value : *values)
      high = b.createOrFold<arith::MinSIOp>(code.loc, high, value);
  return {low, high};
}

/// The tiles of keys that some row of the block needs.
void TileKernel::findRange(ScalarCode &code) {
  Value low = code.index(0), high = code.symbol(plan.fold.getExtent());
  if (plan.fold.getPieces()) {
    Value from, to;
    for (auto piece : plan.fold.getPieces()->getAsRange<PieceAttr>()) {
      auto [l, h] = interval(code, piece.getVisitLower(), piece.getVisitUpper());
      from = from ? b.createOrFold<arith::MinSIOp>(code.loc, from, l) : l;
      to = to ? b.createOrFold<arith::MaxSIOp>(code.loc, to, h) : h;
    }
    low = from ? from : code.index(0);
    high = to ? to : code.index(0);
  }
  Value size = code.index(plan.shape.keys), zero = code.index(0);
  // A tile range of no tile is empty whatever its ends are.
  Value some = arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::slt, low, high);
  firstTile = arith::DivUIOp::create(
      b, code.named("first_tile"), arith::SelectOp::create(b, code.loc, some, low, zero), size);
  Value up = arith::AddIOp::create(b, code.loc, high, code.index(plan.shape.keys - 1));
  Value end = arith::DivUIOp::create(
      b, code.loc, arith::SelectOp::create(b, code.loc, some, up, zero), size);
  endTile = arith::SelectOp::create(b, code.named("end_tile"), some, end, firstTile);
}

/// The tiles of keys that every row of the block sees, a stretch of the others.
void TileKernel::findFullRange(ScalarCode &code) {
  bool isGuarded = !plan.fold.getBody().front().getOps<GuardOp>().empty();
  Value low = code.index(0), high = code.symbol(plan.fold.getExtent());
  if (isGuarded) {
    high = low; // none is known to be
    auto pieces = plan.fold.getPieces();
    if (pieces && pieces->size() == 1)
      if (auto piece = cast<PieceAttr>((*pieces)[0]); piece.getFull())
        std::tie(low, high) = interval(code, piece.getFullLower(), piece.getFullUpper());
  }
  Value zero = code.index(0), size = code.index(plan.shape.keys);
  auto at = [&](Value key, int64_t add, StringRef name) -> Value {
    Value positive = b.createOrFold<arith::MaxSIOp>(code.loc, key, zero);
    Value sum = b.createOrFold<arith::AddIOp>(code.loc, positive, code.index(add));
    return arith::DivUIOp::create(b, code.named(name), sum, size);
  };
  auto between = [&](Value value, Value least, Value most, StringRef name) -> Value {
    Value up = b.createOrFold<arith::MaxSIOp>(code.loc, value, least);
    return arith::MinSIOp::create(b, code.named(name), up, most);
  };
  firstFull = between(at(low, plan.shape.keys - 1, "tile"), firstTile, endTile, "first_full");
  endFull = between(at(high, 0, "tile"), firstFull, endTile, "end_full");
  if (readsMemory) {
    Value all = hasAllRows(code);
    firstFull = arith::SelectOp::create(b, code.named("first_full"), all, firstFull, endTile);
    endFull = arith::SelectOp::create(b, code.named("end_full"), all, endFull, endTile);
  }
  numTiles = arith::SubIOp::create(b, code.named("tiles"), endTile, firstTile);
  Value full = arith::SubIOp::create(b, code.loc, endFull, firstFull);
  numMasked = arith::SubIOp::create(b, code.named("masked_tiles"), numTiles, full);
}

/// The tile at a position: first those in front of the full ones and behind them,
/// then the full ones. `masked` says which, if that is known.
Value TileKernel::tileAt(ScalarCode &code, Value position, std::optional<bool> masked) {
  if (!masked) {
    Value isMasked = arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::slt, position,
                                           numMasked);
    return arith::SelectOp::create(b, code.named("tile"), isMasked,
                                   tileAt(code, position, true), tileAt(code, position, false));
  }
  auto add = [&](Value x, Value y) { return b.createOrFold<arith::AddIOp>(code.loc, x, y); };
  auto sub = [&](Value x, Value y) { return b.createOrFold<arith::SubIOp>(code.loc, x, y); };
  if (!*masked)
    return add(firstFull, sub(position, numMasked));
  Value front = sub(firstFull, firstTile);
  Value inFront = arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::slt, position, front);
  return arith::SelectOp::create(b, code.named("tile"), inFront, add(firstTile, position),
                                 add(endFull, sub(position, front)));
}

/// Rows beyond the last may compute anything but not read.
Value TileKernel::hasAllRows(ScalarCode &code) {
  Value end = arith::AddIOp::create(b, code.loc, firstRow, code.index(plan.shape.rows()));
  return arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::sle, end,
                               code.symbol(extent(plan.nest.getExtents().size() - 1)));
}

/// Stage and parity of the n-th tile of the block.
std::pair<Value, Value> TileKernel::stageOf(ScalarCode &code, Value n) {
  Value stages = code.index(plan.shape.stages);
  Value stage = arith::RemUIOp::create(b, code.named("stage"), n, stages);
  Value round = arith::DivUIOp::create(b, code.loc, n, stages);
  Value parity = arith::RemUIOp::create(b, code.named("parity"), round, code.index(2));
  return {stage, parity};
}

void TileKernel::copy(ScalarCode &code, const TileOperand &operand, Value first,
                      const Ring &ring, Value stage) {
  Values coordinates;
  for (auto [axis, term] : llvm::enumerate(operand.load.getTerms().drop_back()))
    coordinates.push_back(axis == operand.rowAxis ? first : code.eval(term));
  Value array = program.getBody().getArgument(
      cast<BlockArgument>(operand.load.getArray()).getArgNumber());
  device::CopyOp::create(b, code.loc, array, coordinates,
                         b.getI64IntegerAttr(operand.rowAxis), ring.tiles, stage, ring.full,
                         stage);
}

void TileKernel::produce(ScalarCode &code) {
  for (auto [operand, ring] : llvm::zip_equal(plan.rowOperands, rowRings))
    copy(code, operand, firstRow, ring, code.index(0));
  code.loop(code.index(0), numTiles, "n", [&](Value n) {
    auto [stage, parity] = stageOf(code, n);
    Value tile = tileAt(code, n, std::nullopt);
    Value free = arith::SubIOp::create(b, code.loc, code.index(1), parity);
    Value first = arith::MulIOp::create(b, code.named("first_" + plan.fold.getName().str()),
                                        tile, code.index(plan.shape.keys));
    auto fill = [&](ArrayRef<TileOperand> operands, ArrayRef<Ring> rings) {
      for (auto [operand, ring] : llvm::zip_equal(operands, rings)) {
        device::WaitOp::create(b, code.loc, ring.empty, stage, free);
        copy(code, operand, first, ring, stage);
      }
    };
    fill(plan.keyOperands, keyRings);
    fill(plan.carried, carriedRings);
  });
}

//===----------------------------------------------------------------------===//
// Maps
//===----------------------------------------------------------------------===//

Values TileKernel::map(ScalarCode &code, ValueRange inputs, int64_t columns,
                       ArrayRef<Type> elements,
                       llvm::function_ref<Values(ValueRange, ValueRange)> body) {
  FragmentType whole = columns ? tileType(columns, b.getF32Type()) : rowType(b.getF32Type());
  SmallVector<Type> results;
  for (Type element : elements)
    results.push_back(columns ? tileType(columns, element) : rowType(element));
  auto op = device::MapOp::create(b, code.loc, results, inputs, whole.getLayout());
  OpBuilder::InsertionGuard guard(b);
  Block &block = op.getBody().emplaceBlock();
  for (Value input : inputs)
    block.addArgument(elementOf(input), input.getLoc());
  for (unsigned axis = 0; axis < whole.getShape().size(); ++axis)
    block.addArgument(b.getIndexType(), code.loc);
  b.setInsertionPointToEnd(&block);
  code.open();
  ValueRange arguments = block.getArguments();
  Values values = body(arguments.take_front(inputs.size()),
                       arguments.drop_front(inputs.size()));
  device::YieldOp::create(b, code.loc, values);
  code.close();
  return Values(op.getResults());
}

void TileKernel::bindElement(ScalarCode &code, ValueRange at, Value first) {
  code.bind(plan.nest.getBody().getArguments().back(),
            arith::AddIOp::create(b, code.loc, rowBase, at[0]));
  if (at.size() > 1)
    code.bind(plan.fold.getBody().getArgument(0),
              arith::AddIOp::create(b, code.loc, first, at[1]));
}

Value TileKernel::guarded(ScalarCode &code, bool masked, ValueRange at, Value keep,
                          Value none, ValueRange reads,
                          llvm::function_ref<Value()> value) {
  Value present = masked ? isPresent(code) : Value();
  bool reading = masked && llvm::any_of(reads, [&](Value v) { return code.isCostly(v); });
  keep = code.both(present, keep);
  if (reading)
    return code.branch(keep, {none.getType()}, [&] { return Values{value()}; },
                       [&] { return Values{none}; })[0];
  Value result = value();
  if (!keep)
    return result;
  return arith::SelectOp::create(b, code.loc, keep, result, none);
}

/// Whether the key is one of the fold's and the row sees it.
Value TileKernel::isPresent(ScalarCode &code) {
  auto below = [&](Value index, StringRef end) {
    return arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::slt, code.eval(index),
                                 code.symbol(end))
        .getResult();
  };
  unsigned last = plan.nest.getExtents().size() - 1;
  Value present = below(plan.fold.getBody().getArgument(0), plan.fold.getExtent());
  if (readsMemory)
    present = code.both(present, below(plan.nest.getBody().getArgument(last), extent(last)));
  auto guards = plan.fold.getBody().front().getOps<GuardOp>();
  if (guards.empty())
    return present;
  Value condition = (*guards.begin()).getCondition();
  if (!code.isCostly(condition))
    return code.both(present, code.eval(condition));
  return code.branch(present, {b.getI1Type()}, [&] { return Values{code.eval(condition)}; },
                     [&] { return Values{code.constant(b.getBoolAttr(false))}; })[0];
}

Value TileKernel::regular(ScalarCode &code, AccOp acc, ArrayRef<Value> refs) {
  Value ok;
  for (auto [ref, singular] : llvm::zip_equal(refs, acc.getSingular())) {
    auto value = dyn_cast<FloatAttr>(singular);
    if (value && !value.getValue().isNaN() && value.getType() == ref.getType())
      ok = code.both(ok, code.differs(ref, code.constant(value)));
  }
  return ok;
}

/// The value of an expression where some leaves are known; nothing if it depends on
/// the others.
static std::optional<double> valueWhere(Value value, llvm::DenseMap<Value, double> &known) {
  auto found = known.find(value);
  if (found != known.end())
    return found->second;
  Operation *op = value.getDefiningOp();
  if (!op)
    return std::nullopt;
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto number = dyn_cast<FloatAttr>(constant.getValue());
    return number ? std::optional(number.getValue().convertToDouble()) : std::nullopt;
  }
  SmallVector<double, 2> operands(2, 0.0);
  if (!isa<arith::AddFOp, arith::SubFOp, arith::NegFOp, math::ExpOp, math::Exp2Op>(op))
    return std::nullopt;
  for (auto [k, operand] : llvm::enumerate(op->getOperands())) {
    auto number = valueWhere(operand, known);
    if (!number)
      return std::nullopt;
    operands[k] = *number;
  }
  if (isa<arith::AddFOp>(op))
    return operands[0] + operands[1];
  if (isa<arith::SubFOp>(op))
    return operands[0] - operands[1];
  if (isa<arith::NegFOp>(op))
    return -operands[0];
  return isa<math::ExpOp>(op) ? std::exp(operands[0]) : std::exp2(operands[0]);
}

/// Binds the references of a state's term and returns where the term counts, null
/// for everywhere. A maximum that is still −∞ is one of terms x that are all −∞. If
/// the term is the identity for x = −∞ and any finite reference in place of the
/// maximum, then 0 takes its place and nothing has to be left out: for exp(x − m),
/// exp(−∞ − 0) = 0. The same holds for minima and +∞.
Value TileKernel::bindReferences(ScalarCode &code, AccOp acc, ArrayRef<Value> refs,
                                 ArrayRef<Value> factors) {
  Value keep = regular(code, acc, refs);
  for (auto [ref, value] : llvm::zip_equal(acc.getRefs(), refs))
    code.bind(ref, value);
  if (acc.getRefs().size() != 1 || factors.size() != 1 || !keep ||
      acc.getMonoid() != Monoid::add)
    return keep;
  AccOp extreme = acc.getRefs()[0].getDefiningOp<AccOp>();
  auto singular = cast<FloatAttr>(acc.getSingular()[0]);
  bool isExtreme = extreme.getMonoid() == Monoid::max || extreme.getMonoid() == Monoid::min;
  if (!isExtreme || singular != getIdentity(extreme.getMonoid(), singular.getType()))
    return keep;
  llvm::DenseMap<Value, double> known;
  known[rows::getYielded(extreme.getValue())] = singular.getValue().convertToDouble();
  known[acc.getRefs()[0]] = 0;
  auto term = valueWhere(factors[0], known);
  if (!term || *term != 0)
    return keep;
  Value zero = code.constant(FloatAttr::get(singular.getType(), 0.0));
  code.bind(acc.getRefs()[0],
            arith::SelectOp::create(b, code.loc, keep, refs[0], zero));
  return Value();
}

//===----------------------------------------------------------------------===//
// A consumer
//===----------------------------------------------------------------------===//

// Loop arguments: per scalar its value, then per scalar with references whether
// it has started, per carrier its fragment, per carrier with references whether it
// has started.
Values TileKernel::initialise(ScalarCode &code) {
  Values inits;
  auto fill = [&](Value value, FragmentType type, const Twine &name) {
    inits.push_back(device::FillOp::create(b, code.named(name.str()), type, value));
  };
  Value none = code.constant(b.getBoolAttr(false));
  for (const rows::Scalar &scalar : plan.folded.scalars) {
    AccOp acc = scalar.acc;
    Type type = acc.getResult().getType();
    fill(identity(code, acc.getMonoid(), type), rowType(type), acc.getName());
  }
  for (const rows::Scalar &scalar : plan.folded.scalars)
    if (AccOp acc = scalar.acc; !acc.getRefs().empty())
      fill(none, rowType(b.getI1Type()), acc.getName() + "_started");
  for (const Carrier &carrier : plan.folded.carriers)
    fill(identity(code, Monoid::add, carrier.type),
         tileType(padded(carrier.extents[0]), carrier.type), AccOp(carrier.acc).getName());
  for (const Carrier &carrier : plan.folded.carriers)
    if (AccOp acc = carrier.acc; !acc.getRefs().empty())
      fill(none, rowType(b.getI1Type()), acc.getName() + "_started");
  return inits;
}

/// One state without axes: the tile's keys combined, then merged.
Values TileKernel::scalarStep(ScalarCode &code, const rows::Scalar &scalar, unsigned k,
                              ValueRange scores, ArrayRef<State> olds,
                              SmallVectorImpl<State> &news, Value first, bool masked) {
  AccOp acc = scalar.acc;
  Type type = acc.getResult().getType();
  Values inputs(scores);
  for (Value ref : acc.getRefs())
    inputs.push_back(news[numberOf(ref)].value);
  Value terms = map(code, inputs, plan.shape.keys, {type}, [&](ValueRange in, ValueRange at) {
    bindElement(code, at, first);
    for (auto [score, value] : llvm::zip(plan.folded.scores, in))
      code.bind(FoldOp(score.fold).getResult(0), value);
    Values refs(in.drop_front(scores.size()));
    Value keep = bindReferences(code, acc, refs, {rows::getYielded(acc.getValue())});
    Value term = rows::getYielded(acc.getValue());
    return Values{guarded(code, masked, at, keep,
                          identity(code, acc.getMonoid(), type), {term},
                          [&] { return code.eval(term); })};
  })[0];
  Value partial = device::ReduceOp::create(
      b, code.loc, rowType(type),
      MonoidAttr::get(b.getContext(), acc.getMonoid()), terms);
  news[k].terms = terms;
  Values merged{olds[k].value, partial};
  for (Value ref : acc.getRefs()) {
    merged.push_back(olds[numberOf(ref)].value);
    merged.push_back(news[numberOf(ref)].value);
  }
  if (acc.getRefs().empty())
    return map(code, merged, 0, {type}, [&](ValueRange in, ValueRange) {
      return Values{code.combine(acc.getMonoid(), in[0], in[1])};
    });
  Value factor = factors(code, acc, olds, news, olds[k].started);
  Values inputsOf{olds[k].value, partial, factor, olds[k].started};
  for (Value ref : acc.getRefs())
    inputsOf.push_back(news[numberOf(ref)].value);
  return map(code, inputsOf, 0, {type, b.getI1Type()}, [&](ValueRange in, ValueRange) {
    Monoid combine = acc.getCombine() == ScalarFn::mul ? Monoid::mul : Monoid::add;
    Value moved = code.combine(combine, in[0], in[2]);
    Value ok = regular(code, acc, Values(in.drop_front(4)));
    Value started = ok ? b.createOrFold<arith::OrIOp>(code.loc, in[3], ok)
                       : code.constant(b.getBoolAttr(true));
    return Values{code.combine(acc.getMonoid(), moved, in[1]), started};
  });
}

/// c(d, d′) where the state has started and a reference has changed, else the
/// identity of ⊗.
Value TileKernel::factors(ScalarCode &code, AccOp acc, ArrayRef<State> olds,
                          ArrayRef<State> news, Value started) {
  Values inputs{started};
  for (Value ref : acc.getRefs()) {
    inputs.push_back(olds[numberOf(ref)].value);
    inputs.push_back(news[numberOf(ref)].value);
  }
  Type type = rows::getYielded(acc.getRepair()).getType();
  return map(code, inputs, 0, {type}, [&](ValueRange in, ValueRange) {
    Value apply = in[0], changed;
    Values refs;
    for (unsigned k = 0; k != acc.getRefs().size(); ++k) {
      Value old = in[1 + 2 * k], now = in[2 + 2 * k];
      code.bind(acc.getRepair().getArgument(2 * k), old);
      code.bind(acc.getRepair().getArgument(2 * k + 1), now);
      Value moved = code.differs(old, now);
      changed = changed ? b.createOrFold<arith::OrIOp>(code.loc, changed, moved) : moved;
      refs.push_back(now);
    }
    apply = code.both(code.both(apply, changed), regular(code, acc, refs));
    Monoid combine = acc.getCombine() == ScalarFn::mul ? Monoid::mul : Monoid::add;
    Value factor = code.eval(rows::getYielded(acc.getRepair()));
    return Values{arith::SelectOp::create(b, code.loc, apply, factor,
                                          identity(code, combine, type))};
  })[0];
}

/// A state without axes that adds what this carrier multiplies with.
std::optional<unsigned> TileKernel::findTerms(const Carrier &carrier, ArrayRef<State> news) {
  AccOp acc = carrier.acc;
  if (carrier.row.values.size() != 1 || !carrier.row.divisors.empty())
    return std::nullopt;
  for (auto [k, scalar] : llvm::enumerate(plan.folded.scalars)) {
    AccOp other = scalar.acc;
    if (news[k].terms && other.getMonoid() == Monoid::add &&
        rows::getYielded(other.getValue()) == carrier.row.values[0] &&
        llvm::equal(other.getRefs(), acc.getRefs()) &&
        other.getSingular() == acc.getSingular())
      return k;
  }
  return std::nullopt;
}

/// The row operand P of a carrier before it is rounded; 0 where absent.
Value TileKernel::weights(ScalarCode &code, const Carrier &carrier, ValueRange scores,
                          ArrayRef<State> news, Value first, bool masked) {
  AccOp acc = carrier.acc;
  Values inputs(scores);
  for (Value ref : acc.getRefs())
    inputs.push_back(news[numberOf(ref)].value);
  if (auto k = findTerms(carrier, news))
    return news[*k].terms;
  return map(code, inputs, plan.shape.keys, {carrier.type}, [&](ValueRange in, ValueRange at) {
    bindElement(code, at, first);
    for (auto [score, value] : llvm::zip(plan.folded.scores, in))
      code.bind(FoldOp(score.fold).getResult(0), value);
    Values refs(in.drop_front(scores.size()));
    Values reads(carrier.row.values.begin(), carrier.row.values.end());
    Value keep = bindReferences(code, acc, refs,
                                carrier.row.divisors.empty() ? reads : Values());
    llvm::append_range(reads, carrier.row.divisors);
    Value none = identity(code, Monoid::add, carrier.type);
    Value weight = guarded(code, masked, at, keep, none, reads, [&] {
      Value product;
      for (Value factor : carrier.row.values) {
        Value value = code.eval(factor);
        product = product ? code.combine(Monoid::mul, product, value) : value;
      }
      if (!product)
        product = code.constant(cast<TypedAttr>(FloatAttr::get(carrier.type, 1.0)));
      for (Value divisor : carrier.row.divisors)
        product = arith::DivFOp::create(b, code.loc, product, code.eval(divisor));
      return product;
    });
    return Values{weight};
  })[0];
}

/// The states behind one tile, and the weights of the carriers: [scalars, started
/// of scalars, factors and started of carriers with references, weights].
Values TileKernel::passes(ScalarCode &code, ValueRange scores, ValueRange args, Value first,
                          bool masked) {
  unsigned count = plan.folded.scalars.size(), next = count;
  SmallVector<State> olds(count), news(count);
  for (auto [k, scalar] : llvm::enumerate(plan.folded.scalars)) {
    AccOp acc = scalar.acc;
    olds[k].value = args[k];
    if (!acc.getRefs().empty())
      olds[k].started = args[next++];
  }
  news = olds;
  next += plan.folded.carriers.size();
  Values ofCarriers, weightsOf;
  SmallVector<Value> started;
  for (const Carrier &carrier : plan.folded.carriers)
    started.push_back(AccOp(carrier.acc).getRefs().empty() ? Value() : args[next++]);
  for (unsigned pass = 0; pass != plan.folded.passes; ++pass) {
    for (auto [k, scalar] : llvm::enumerate(plan.folded.scalars)) {
      if (scalar.pass != pass)
        continue;
      Values step = scalarStep(code, scalar, k, scores, olds, news, first, masked);
      news[k].value = step[0];
      news[k].started = step.size() > 1 ? step[1] : Value();
    }
  }
  for (auto [k, carrier] : llvm::enumerate(plan.folded.carriers)) {
    weightsOf.push_back(weights(code, carrier, scores, news, first, masked));
    AccOp acc = carrier.acc;
    if (acc.getRefs().empty())
      continue;
    ofCarriers.push_back(factors(code, acc, olds, news, started[k]));
    Values inputs{started[k]};
    for (Value ref : acc.getRefs())
      inputs.push_back(news[numberOf(ref)].value);
    ofCarriers.push_back(map(code, inputs, 0, {b.getI1Type()}, [&](ValueRange in, ValueRange) {
      Value ok = regular(code, acc, Values(in.drop_front()));
      return Values{ok ? b.createOrFold<arith::OrIOp>(code.loc, in[0], ok)
                       : code.constant(b.getBoolAttr(true))};
    })[0]);
  }
  Values results;
  for (const State &state : news)
    results.push_back(state.value);
  for (const State &state : news)
    if (state.started)
      results.push_back(state.started);
  results.append(ofCarriers);
  results.append(weightsOf);
  return results;
}

/// The states after the tile at a position, and its weights. The weights of the
/// tile before, the last of `args`, are multiplied with their operand here, where
/// `overlapped` while this tile's states are computed.
Values TileKernel::iterate(ScalarCode &code, Value n, ValueRange args, bool masked,
                           bool overlapped) {
  unsigned carriers = plan.folded.carriers.size(), scalars = countScalarStates();
  bool isFirst = args.size() == scalars + 2 * carriers - unrepaired();
  auto [stage, parity] = stageOf(code, n);
  Value first = arith::MulIOp::create(b, code.named("first_" + plan.fold.getName().str()),
                                      tileAt(code, n, isFirst ? std::nullopt : std::optional(masked)),
                                      code.index(plan.shape.keys));
  Values scores, sums;
  for (auto [k, score] : llvm::enumerate(plan.folded.scores)) {
    device::WaitOp::create(b, code.loc, keyRings[k].full, stage, parity);
    Value rowOffset = arith::MulIOp::create(b, code.loc, warpgroup, code.index(64));
    scores.push_back(device::ContractOp::create(
        b, code.named("S"), tileType(plan.shape.keys, score.type), rowRings[k].tiles, rowOffset,
        keyRings[k].tiles, stage, Value(), /*transposed=*/true));
  }
  Value last = arith::SubIOp::create(b, code.loc, n, code.index(1));
  for (unsigned k = 0; k != carriers; ++k)
    sums.push_back(args[scalars + k]);
  auto add = [&] { startCarriers(code, last, sums, args.take_back(carriers)); };
  auto settle = [&] { finishCarriers(code, last, sums); };
  if (overlapped && !isFirst)
    add();
  for (auto [k, score] : llvm::enumerate(scores)) {
    int64_t pending = scores.size() - 1 - k + (overlapped && !isFirst ? carriers : 0);
    score = device::AwaitOp::create(b, code.loc, score.getType(), score, pending);
    device::ArriveOp::create(b, code.loc, keyRings[k].empty, stage);
  }
  if (!overlapped && !isFirst) {
    add();
    settle();
  }
  Values step = passes(code, scores, args, first, masked);
  if (overlapped && !isFirst)
    settle();
  if (masked && !plan.fold.getBody().front().getOps<GuardOp>().empty())
    clearUnseen(code, first, stage, parity);
  // What has been added is repaired, then the weights are rounded.
  Values next(ArrayRef<Value>(step).take_front(scalars)), started, weightsOf;
  unsigned position = scalars;
  for (auto [k, carrier] : llvm::enumerate(plan.folded.carriers)) {
    if (!AccOp(carrier.acc).getRefs().empty()) {
      Value factor = step[position++];
      started.push_back(step[position++]);
      sums[k] = map(code, {sums[k], factor}, padded(carrier.extents[0]), {carrier.type},
                    [&](ValueRange in, ValueRange) {
                      return Values{code.combine(Monoid::mul, in[0], in[1])};
                    })[0];
    }
    Type narrow = carrier.row.narrow;
    Value weight = step[step.size() - carriers + k];
    weightsOf.push_back(map(code, weight, plan.shape.keys, {narrow},
                            [&](ValueRange in, ValueRange) {
                              return Values{code.convert(in[0], narrow)};
                            })[0]);
  }
  next.append(sums);
  next.append(started);
  next.append(weightsOf);
  return next;
}

/// Elements of carried operands that no row of the block sees must not meet the
/// weights, not even with weight 0.
void TileKernel::clearUnseen(ScalarCode &code, Value first, Value stage, Value parity) {
  Value seen = map(code, {}, plan.shape.keys, {b.getI1Type()}, [&](ValueRange, ValueRange at) {
    bindElement(code, at, first);
    unsigned last = plan.nest.getExtents().size() - 1;
    Value isRow = arith::CmpIOp::create(
        b, code.loc, arith::CmpIPredicate::slt,
        code.eval(plan.nest.getBody().getArgument(last)), code.symbol(extent(last)));
    return Values{code.both(isRow, isPresent(code))};
  })[0];
  for (const Ring &ring : carriedRings) {
    device::WaitOp::create(b, code.loc, ring.full, stage, parity);
    device::ClearUnseenOp::create(b, code.loc, ring.tiles, stage, seen);
  }
}

unsigned TileKernel::countScalarStates() {
  unsigned count = plan.folded.scalars.size();
  for (const rows::Scalar &scalar : plan.folded.scalars)
    count += !AccOp(scalar.acc).getRefs().empty();
  return count;
}

/// Carriers without references.
unsigned TileKernel::unrepaired() {
  return llvm::count_if(plan.folded.carriers, [](const Carrier &carrier) {
    return AccOp(carrier.acc).getRefs().empty();
  });
}

/// Starts O + P · G of the tile at a position.
void TileKernel::startCarriers(ScalarCode &code, Value n, Values &sums, ValueRange weightsOf) {
  auto [stage, parity] = stageOf(code, n);
  for (auto [k, sum] : llvm::enumerate(sums)) {
    device::WaitOp::create(b, code.loc, carriedRings[k].full, stage, parity);
    sum = device::ContractOp::create(b, code.loc, sum.getType(), weightsOf[k], Value(),
                                     carriedRings[k].tiles, stage, sum, /*transposed=*/false);
  }
}

void TileKernel::finishCarriers(ScalarCode &code, Value n, Values &sums) {
  auto [stage, parity] = stageOf(code, n);
  for (auto [k, sum] : llvm::enumerate(sums)) {
    sum = device::AwaitOp::create(b, code.loc, sum.getType(), sum, sums.size() - 1 - k);
    device::ArriveOp::create(b, code.loc, carriedRings[k].empty, stage);
  }
}

/// The row of an output stands along this axis, if a carrier's loop writes it axis by
/// axis, its last axis last, and what it writes reads no memory.
std::optional<unsigned> TileKernel::findRowAxis(StoreOp store, Value loopIndex,
                                                unsigned carrier) {
  Type element = store.getArray().getType().getElementType();
  unsigned rank = store.getArray().getType().getRank();
  RingType ring = cast<RingType>(rowRings[0].tiles.getType());
  Value row = plan.nest.getBody().getArguments().back();
  if (element != ring.getElementType() || rank < 2 || rank > 5 ||
      ring.getColumns() < padded(plan.folded.carriers[carrier].extents[0]) ||
      plan.folded.carriers[carrier].extents[0] % 8 != 0 ||
      store.getTerms().size() != rank || store.getConstant() != "0" ||
      store.getTerms().back() != loopIndex || !store.getValue().getType().isF32())
    return std::nullopt;
  auto kernel = store->getParentOfType<onf::KernelOp>();
  unsigned output = cast<BlockArgument>(store.getArray()).getArgNumber() -
                    kernel.getArgNames().size();
  StringRef name = cast<StringAttr>(kernel.getResultNames()[output]).getValue();
  std::optional<unsigned> rowAxis;
  rows::Dependence deps;
  for (unsigned axis = 0; axis < rank; ++axis) {
    Value term = store.getTerms()[axis];
    if (cast<StringAttr>(store.getCoefficients()[axis]).getValue() !=
        (name + ".s" + Twine(axis)).str())
      return std::nullopt;
    if (term == row && axis + 1 != rank)
      rowAxis = axis;
    else if (axis + 1 != rank && (deps.on(term, row) || deps.on(term, loopIndex)))
      return std::nullopt;
  }
  WalkResult reads = plan.nest.getBody().walk([&](LoadOp load) {
    bool inFold = plan.fold->isProperAncestor(load);
    return !inFold && load.getArray().getType().getRank() != 0 ? WalkResult::interrupt()
                                                               : WalkResult::advance();
  });
  return reads.wasInterrupted() ? std::nullopt : rowAxis;
}

/// Binds the row and the fold's results: the states without axes to the first of
/// `in`.
void TileKernel::bindFinals(ScalarCode &code, ValueRange in, ValueRange at) {
  code.bind(plan.nest.getBody().getArguments().back(),
            arith::AddIOp::create(b, code.loc, rowBase, at[0]));
  for (auto [scalar, value] : llvm::zip(plan.folded.scalars, in))
    code.bind(resultOf(scalar.acc), value);
}

/// Stores of a block for each row, or for each element of a carrier.
void TileKernel::writeElements(ScalarCode &code, ValueRange finals, Block &block,
                               std::optional<unsigned> carrier, Value loopIndex) {
  unsigned count = plan.folded.scalars.size();
  Values inputs(finals.take_front(count));
  int64_t columns = 0;
  if (carrier) {
    inputs.push_back(finals[countScalarStates() + *carrier]);
    columns = padded(plan.folded.carriers[*carrier].extents[0]);
  }
  map(code, inputs, columns, {}, [&](ValueRange in, ValueRange at) {
    bindFinals(code, in, at);
    Value inside = arith::CmpIOp::create(
        b, code.loc, arith::CmpIPredicate::slt,
        code.eval(plan.nest.getBody().getArguments().back()),
        code.symbol(extent(plan.nest.getExtents().size() - 1)));
    if (carrier) {
      const Carrier &which = plan.folded.carriers[*carrier];
      code.bind(loopIndex, at[1]);
      code.bind(resultOf(which.acc), in[count]);
      if (columns != which.extents[0])
        inside = code.both(inside, arith::CmpIOp::create(
                                       b, code.loc, arith::CmpIPredicate::slt, at[1],
                                       code.index(which.extents[0])));
    }
    code.when(inside, [&] {
      for (auto store : block.getOps<StoreOp>())
        code.store(store);
    });
    return Values();
  });
}

/// The whole tile of an output at once, by way of the rows' ring, which is free now.
void TileKernel::writeTile(ScalarCode &code, ValueRange finals, StoreOp store,
                           unsigned carrier, unsigned rowAxis, Value loopIndex) {
  unsigned count = plan.folded.scalars.size();
  Values inputs(finals.take_front(count));
  inputs.push_back(finals[countScalarStates() + carrier]);
  int64_t columns = padded(plan.folded.carriers[carrier].extents[0]);
  Type element = store.getArray().getType().getElementType();
  code.reciprocals = true;
  Value values = map(code, inputs, columns, {b.getF32Type()}, [&](ValueRange in, ValueRange at) {
    bindFinals(code, in, at);
    code.bind(loopIndex, at[1]);
    code.bind(resultOf(plan.folded.carriers[carrier].acc), in[count]);
    return Values{code.eval(store.getValue())};
  })[0];
  code.reciprocals = false;
  Value rounded = map(code, values, columns, {element}, [&](ValueRange in, ValueRange) {
    return Values{code.convert(in[0], element)};
  })[0];
  Values coordinates;
  for (auto [axis, term] : llvm::enumerate(store.getTerms().drop_back()))
    coordinates.push_back(axis == rowAxis ? rowBase : code.eval(term));
  Value array = program.getBody().getArgument(
      cast<BlockArgument>(store.getArray()).getArgNumber());
  Value row = arith::MulIOp::create(b, code.loc, warpgroup, code.index(64));
  device::StoreTileOp::create(b, code.loc, rounded, rowRings[0].tiles, code.index(0), row, array,
                              coordinates, b.getI64IntegerAttr(rowAxis));
}

/// What stands behind the fold, for each row or each element of a carrier.
void TileKernel::finish(ScalarCode &code, ValueRange finals) {
  Block &body = plan.nest.getBody().front();
  if (!body.getOps<StoreOp>().empty())
    writeElements(code, finals, body, std::nullopt, Value());
  for (auto loop : body.getOps<ForOp>()) {
    // The one carrier this loop reads.
    unsigned which = 0;
    loop.walk([&](AtOp at) {
      for (auto [k, carrier] : llvm::enumerate(plan.folded.carriers))
        if (resultOf(carrier.acc) == at.getState())
          which = k;
    });
    Value index = loop.getBody().getArgument(0);
    auto stores = llvm::to_vector(loop.getBody().front().getOps<StoreOp>());
    auto rowAxis = stores.size() == 1 ? findRowAxis(stores[0], index, which) : std::nullopt;
    if (rowAxis)
      writeTile(code, finals, stores[0], which, *rowAxis, index);
    else
      writeElements(code, finals, loop.getBody().front(), which, index);
  }
}

void TileKernel::consume(ScalarCode &code) {
  warpgroup = device::WarpgroupOp::create(b, code.named("warpgroup"), b.getIndexType());
  Value offset = arith::MulIOp::create(b, code.loc, warpgroup, code.index(64));
  rowBase = arith::AddIOp::create(b, code.named("row_base"), firstRow, offset);
  for (const Ring &ring : rowRings)
    device::WaitOp::create(b, code.loc, ring.full, code.index(0), code.index(0));
  Values inits = initialise(code);
  std::vector<std::string> names{"n"};
  for (const rows::Scalar &scalar : plan.folded.scalars)
    names.push_back(AccOp(scalar.acc).getName().str());
  for (const rows::Scalar &scalar : plan.folded.scalars)
    if (AccOp acc = scalar.acc; !acc.getRefs().empty())
      names.push_back(acc.getName().str() + "_started");
  for (const Carrier &carrier : plan.folded.carriers)
    names.push_back(AccOp(carrier.acc).getName().str());
  for (const Carrier &carrier : plan.folded.carriers)
    if (AccOp acc = carrier.acc; !acc.getRefs().empty())
      names.push_back(acc.getName().str() + "_started");
  for (const Carrier &carrier : plan.folded.carriers)
    names.push_back("weights_of_" + AccOp(carrier.acc).getName().str());
  unsigned carriers = plan.folded.carriers.size(), scalars = countScalarStates();
  SmallVector<Type> types;
  for (Value init : inits)
    types.push_back(init.getType());
  Value some = arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::sgt, numTiles,
                                     code.index(0));
  Values finals = code.branch(some, types, [&] {
    Value one = code.index(1);
    // The first tile's states; its code serves masked and full tiles.
    Values state = iterate(code, code.index(0), inits, /*masked=*/true, false);
    auto run = [&](Value from, Value to, bool masked) {
      // Code that branches must not run beside products that are in flight.
      bool overlapped = !(masked && readsMemory);
      state = code.loop(from, to, state, names, [&](Value n, ValueRange args) {
        return iterate(code, n, args, masked, overlapped);
      });
    };
    Value begin = b.createOrFold<arith::MaxSIOp>(code.loc, numMasked, one);
    run(one, begin, true);
    run(begin, numTiles, false);
    Values sums(ArrayRef<Value>(state).slice(scalars, carriers));
    Value last = arith::SubIOp::create(b, code.loc, numTiles, one);
    startCarriers(code, last, sums, ValueRange(state).take_back(carriers));
    finishCarriers(code, last, sums);
    for (unsigned k = 0; k != carriers; ++k)
      state[scalars + k] = sums[k];
    state.truncate(inits.size());
    return state;
  }, [&] { return inits; });
  finish(code, finals);
}

LogicalResult TileKernel::run() {
  b.setInsertionPointToEnd(&program.getBody().front());
  std::string name = program.getSymName().str() + "_" + std::to_string(number);
  SymExpr blocks = *SymExpr::parse(tiles());
  for (unsigned axis = 0; axis + 1 < plan.nest.getExtents().size(); ++axis)
    blocks = *SymExpr::parse(extent(axis)) * blocks;
  int64_t threads = 128 * (plan.shape.warpgroups + 1);
  auto kernel =
      device::KernelOp::create(b, plan.nest.getLoc(), name, blocks.str(), threads);
  b.setInsertionPointToStart(&kernel.getBody().emplaceBlock());
  auto source = plan.nest->getParentOfType<onf::KernelOp>();
  IRMapping arrays;
  arrays.map(source.getBody().getArguments(), program.getBody().getArguments());
  ScalarCode code(b, arrays);
  code.approximate = true;
  code.loc = plan.nest.getLoc();
  plan.fold.walk([&](LoadOp load) {
    bool isOperand = false;
    for (const auto *list : {&plan.rowOperands, &plan.keyOperands, &plan.carried})
      for (const TileOperand &operand : *list)
        isOperand |= operand.load == load;
    readsMemory |= !isOperand && load.getArray().getType().getRank() != 0;
  });
  auto nameOf = [&](Value array) {
    unsigned argument = cast<BlockArgument>(array).getArgNumber();
    return cast<StringAttr>(program.getArgNames()[argument]).getValue();
  };
  auto rings = [&](ArrayRef<TileOperand> operands, SmallVectorImpl<Ring> &list,
                   int64_t stages, int64_t rows, bool withEmpty,
                   llvm::function_ref<int64_t(unsigned)> columns) {
    for (auto [k, operand] : llvm::enumerate(operands))
      list.push_back(makeRing(code, nameOf(operand.load.getArray()), stages, rows, columns(k),
                              operand.load.getResult().getType(), withEmpty));
  };
  auto depth = [&](unsigned k) { return plan.folded.scores[k].extent; };
  rings(plan.rowOperands, rowRings, 1, plan.shape.rows(), false, depth);
  rings(plan.keyOperands, keyRings, plan.shape.stages, plan.shape.keys, true, depth);
  rings(plan.carried, carriedRings, plan.shape.stages, plan.shape.keys, true,
        [&](unsigned k) { return plan.folded.carriers[k].extents[0]; });
  bindBlock(code);
  findRange(code);
  findFullRange(code);
  bool wide = plan.shape.warpgroups == 3;
  auto roles = device::SpecializeOp::create(b, code.loc, plan.shape.warpgroups,
                                            wide ? 160 : 240, wide ? 32 : 24);
  auto fill = [&](Region &region, llvm::function_ref<void()> body) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&region.emplaceBlock());
    code.open();
    body();
    code.close();
  };
  fill(roles.getConsumer(), [&] { consume(code); });
  fill(roles.getProducer(), [&] { produce(code); });
  return failure(code.failed);
}

} // namespace

LogicalResult moa::lowerTiles(const TilePlan &plan, device::ProgramOp program,
                              unsigned number) {
  return TileKernel(plan, program, number).run();
}
