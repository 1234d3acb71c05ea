//===- TileConsumer.cpp - what a consumer warpgroup does -------------------===//
#include "lib/Conversion/ONFToDevice/TileKernel.h"

using namespace mlir;
using namespace moa;
using namespace moa::onf;

namespace moa::tiles {

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
      bool overlapped = plan.shape.overlap && !(masked && readsMemory);
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

} // namespace moa::tiles
