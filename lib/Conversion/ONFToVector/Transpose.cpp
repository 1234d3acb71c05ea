//===- Transpose.cpp - transposed loads and stores of contiguous rows -----===//
//
// Lanes are rows, but in memory the elements of one row are often contiguous. So L rows of L
// consecutive elements are loaded as vectors along the row and transposed in registers, in log2 L
// rounds. The round for bit s swaps elements (i + s, l) and (i, l + s) for all i and l whose bit s
// is 0. Stores do the reverse.
//
//===----------------------------------------------------------------------===//
#include "lib/Conversion/ONFToVector/Emitter.h"

using namespace mlir;
using namespace moa;

namespace moa::rows {
using namespace moa::onf;

Emitter::Values transpose(Build b, Emitter::Values rows) {
  int64_t size = rows.size();
  for (int64_t s = size / 2; s > 0; s /= 2) {
    SmallVector<int64_t> upper, lower;
    for (int64_t l = 0; l != size; ++l) {
      upper.push_back(l & s ? size + l - s : l);
      lower.push_back(l & s ? size + l : l + s);
    }
    for (int64_t i = 0; i != size; ++i) {
      if (i & s)
        continue;
      Value x = rows[i], y = rows[i + s];
      rows[i] = vector::ShuffleOp::create(b.b, b.loc, x, y, upper);
      rows[i + s] = vector::ShuffleOp::create(b.b, b.loc, x, y, lower);
    }
  }
  return rows;
}

std::optional<int64_t> factorOf(Value term, Value index, Dependence &deps) {
  if (term == index)
    return 1;
  if (!deps.on(term, index))
    return 0;
  Operation *op = term.getDefiningOp();
  if (!op)
    return std::nullopt;
  if (isa<arith::IndexCastOp>(op))
    return factorOf(op->getOperand(0), index, deps);
  if (!isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op))
    return std::nullopt;
  auto lhs = factorOf(op->getOperand(0), index, deps);
  auto rhs = factorOf(op->getOperand(1), index, deps);
  if (!lhs || !rhs)
    return std::nullopt;
  if (isa<arith::AddIOp>(op))
    return *lhs + *rhs;
  if (isa<arith::SubIOp>(op))
    return *lhs - *rhs;
  APInt constant;
  if (matchPattern(op->getOperand(1), m_ConstantInt(&constant)))
    return *lhs * constant.getSExtValue();
  if (matchPattern(op->getOperand(0), m_ConstantInt(&constant)))
    return *rhs * constant.getSExtValue();
  return std::nullopt;
}

bool runsAlong(LoadOp load, Value index, Dependence &deps) {
  bool along = false;
  for (auto [number, term] : llvm::enumerate(load.getTerms())) {
    auto factor = factorOf(term, index, deps);
    if (!factor)
      return false;
    along |= *factor == 1 && load.getSubscripts().getAxes().back().factors.count(number);
  }
  return along;
}

/// Returns the distance in memory between neighbours along `index`, or null if it varies.
Value Emitter::strideAlong(AccessOpInterface op, Value index) {
  Value stride = at(0).index(0);
  for (auto [term, coefficient] : llvm::zip_equal(op.getTerms(), op.getAddress().coefficients)) {
    auto factor = factorOf(term, index, deps);
    if (!factor)
      return Value();
    stride = at(0).add(stride, at(0).mul(extent(coefficient), *factor));
  }
  return stride;
}

Emitter::Values Emitter::laneAddresses(Type storage, Value array, const Address &where) {
  Build b = here();
  Value pointer = b.address(storage, pointerOf(array), where.uniform.value);
  Values addresses;
  for (int64_t lane = 0; lane != lanes; ++lane) {
    Value offset = vector::ExtractOp::create(b.b, loc, where.perLane.value, lane);
    addresses.push_back(b.address(storage, pointer, offset));
  }
  return addresses;
}

void Emitter::stageLoad(LoadOp load, Value index, Value first, Value count, Value buffer, int64_t stride) {
  auto singly = [&](Value from) {
    loop(from, count, 1, [&](Value s) {
      top().values[index] = here().add(first, s);
      Value value = rowValue(load.getResult());
      storeState(here(), value, buffer, here().mul(s, stride));
    });
  };
  Value zero = here().index(0);
  Value along = strideAlong(load, index);
  if (!along || lanes == 1)
    return singly(zero);
  auto inSquares = [&] {
    Build b = here();
    Value squares = b.mul(b.div(count, lanes), lanes);
    Type element = load.getResult().getType(), type = movedType(element);
    loop(zero, squares, lanes, [&](Value s) {
      top().values[index] = here().add(first, s);
      Address where = address(load);
      Values rows;
      for (Value pointer : laneAddresses(type, load.getArray(), where))
        rows.push_back(here().load(rowType(type), pointer, storageBytes(element)));
      Build b = here();
      for (auto [t, column] : llvm::enumerate(transpose(b, rows))) {
        Value offset = b.mul(b.add(s, t), stride);
        b.store(column, b.address(type, buffer, offset), storageBytes(element));
      }
    });
    singly(squares);
  };
  Build b = here();
  Value isFilled = nonEmpty(load, depth());
  Value unit = b.both(b.eq(along, b.index(1)), isFilled);
  when(unit, inSquares, [&] { singly(zero); });
}

/// Stores the values of `store` for index = first, …, first + L - 1, which are consecutive in
/// memory, for L rows. `square` is scratch memory.
void Emitter::storeSquare(StoreOp store, Value index, Value first, Value square) {
  Type element = store.getArray().getType().getElementType();
  Type type = movedType(element);
  unsigned align = storageBytes(element);
  Value end = here().index(lanes), start = here().index(0);
  loop(start, end, 1, [&](Value t) {
    top().values[index] = here().add(first, t);
    Value value = rowValue(store.getValue());
    Build b = here();
    Value place = b.mul(t, lanes);
    storeState(b, convert(b, value, element), square, place);
  });
  scoped([&](Scope &scope) {
    scope.values[index] = first;
    Address where = address(store);
    Values columnVectors;
    Build b = here();
    for (int64_t t = 0; t != lanes; ++t)
      columnVectors.push_back(b.load(rowType(type), b.address(type, square, b.index(t * lanes)), align));
    Values rows = transpose(b, columnVectors);
    for (auto [row, pointer] : llvm::zip_equal(rows, laneAddresses(type, store.getArray(), where)))
      b.store(row, pointer, align);
  });
}

void Emitter::storeAlong(ForOp inner, Value index, Value size, Value laneMask, llvm::function_ref<void()> body) {
  auto singly = [&](Value from) {
    loop(from, size, 1, [&](Value value) {
      top().values[index] = value;
      body();
    });
  };
  Value zero = here().index(0), unit;
  for (Operation &op : inner.getBody().front()) {
    auto store = dyn_cast<StoreOp>(op);
    if (isa<ForOp>(op))
      return singly(zero);
    if (!store)
      continue;
    Value along = strideAlong(store, index);
    bool perLane = llvm::any_of(store.getTerms(), [&](Value t) { return isRow(t); });
    if (!along || !perLane || lanes == 1 || !laneMask)
      return singly(zero);
    Build b = here();
    unit = b.both(unit, b.eq(along, b.index(1)));
  }
  if (!unit)
    return singly(zero);
  auto inSquares = [&] {
    Build b = here();
    Value squares = b.mul(b.div(size, lanes), lanes);
    loop(zero, squares, lanes, [&](Value first) {
      for (auto store : inner.getBody().front().getOps<StoreOp>())
        storeSquare(store, index, first, scratch(lanes * lanes * 8));
    });
    singly(squares);
  };
  when(here().both(unit, here().all(laneMask)), inSquares, [&] { singly(zero); });
}

} // namespace moa::rows
