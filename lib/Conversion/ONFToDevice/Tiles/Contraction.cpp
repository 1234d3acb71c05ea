//===- Contraction.cpp - products of tiles on tensor cores ----------------===//
#include "lib/Conversion/ONFToDevice/Tiles/Contraction.h"
#include "lib/Conversion/ONFToDevice/Tiles/Maps.h"
#include "lib/Conversion/ONFToDevice/Tiles/Names.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace moa;
using namespace moa::onf;

namespace moa::tiles {

/// Returns the depth of a contraction of 8-bit operands: a multiple of 32 bytes, the step of an
/// instruction, which is often less than a ring's row. Null: the whole row.
static IntegerAttr depthOf(const TileOperand &operand) {
  LoadOp load = operand.load;
  int64_t bytes = operand.getBytes(), depth = llvm::alignTo(operand.columns, 32 / bytes);
  bool isWhole = bytes != 1 || depth == padded(operand.columns, bytes);
  return isWhole ? IntegerAttr() : Builder(load.getContext()).getI64IntegerAttr(depth);
}

/// Returns the number of products of all sums from `from` on.
static int64_t countProducts(ArrayRef<SmallVector<ProductTerm, 1>> terms, unsigned from) {
  int64_t count = 0;
  for (const auto &ofSum : terms.drop_front(from))
    count += ofSum.size();
  return count;
}

/// Waits for turn n of a warpgroup (ping-pong). It comes when the previous warpgroup has passed its
/// turn n; for the first warpgroup, when the last one has passed turn n − 1. These are the phases n
/// and n − 1 of the warpgroup's barrier. Phase −1 counts as complete.
void Contraction::awaitTurn(Value n) {
  if (!rings.turns)
    return;
  Value two = code.index(2), one = code.index(1);
  Value isFirst = arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::eq, rows.number, code.index(0));
  Value after =
      arith::AddIOp::create(b, code.loc, n, arith::SelectOp::create(b, code.loc, isFirst, one, code.index(0)));
  device::WaitOp::create(b, code.loc, rings.turns, rows.number,
                         arith::RemUIOp::create(b, code.named("turn"), after, two));
}

void Contraction::passTurn() {
  if (!rings.turns)
    return;
  Value next = arith::AddIOp::create(b, code.loc, rows.number, code.index(1));
  device::ArriveOp::create(
      b, code.loc, rings.turns,
      arith::RemUIOp::create(b, code.named("next_warpgroup"), next, code.index(plan.shape.warpgroups)));
}

Values Contraction::contractPrologue(Value firstRow) {
  Values sums;
  Value offset = arith::MulIOp::create(b, code.loc, rows.number, code.index(64)), zero = code.index(0);
  for (auto [contraction, ring] : llvm::zip_equal(plan.prologue, rings.prologue)) {
    auto isOfRows = [&](unsigned k) {
      const TileOperand &operand = plan.rowOperands[k];
      return contraction.length == operand.columns &&
             isSameTile(contraction.left, operand, contraction.fold.getBody().getArgument(0), operand.getInner());
    };
    unsigned k = 0;
    while (!isOfRows(k))
      ++k;
    device::WaitOp::create(b, code.loc, ring.full, zero, zero);
    Value sum = device::ContractOp::create(b, code.named(contraction.acc.getName()),
                                           typeOver(Over::tile(padded(contraction.right.columns)), b.getF32Type()),
                                           rings.rows[k].tiles, offset, ring.tiles, zero, Value(), /*transposed=*/false,
                                           IntegerAttr());
    sum = device::AwaitOp::create(b, code.loc, sum.getType(), sum, 0);
    if (contraction.condition) {
      code.open(); // the same for all rows of the block
      code.bind(plan.rowIndex(), firstRow);
      Value holds = code.eval(contraction.condition);
      code.close();
      sum = map(code, "before", sum, Over::tile(padded(contraction.right.columns)), {b.getF32Type()},
                [&](ValueRange in, ValueRange) {
                  Value none = code.constant(b.getF32FloatAttr(0));
                  return Values{arith::SelectOp::create(b, code.loc, holds, in[0], none)};
                })[0];
    }
    sums.push_back(sum);
  }
  return sums;
}

Values Contraction::startScores(Value n, Value stage, Value parity) {
  Values scores;
  llvm::BitVector awaited(rings.keys.size());
  for (auto [k, score] : llvm::enumerate(plan.folded.scores)) {
    Value sum;
    for (const ProductTerm &term : plan.scoreTerms[k]) {
      if (!awaited.test(term.key))
        device::WaitOp::create(b, code.loc, rings.keys[term.key].full, stage, parity);
      awaited.set(term.key);
      if (k == 0 && !sum)
        awaitTurn(n);
      bool isHeld = plan.shape.holdsRows;
      Value rowOffset;
      if (!isHeld)
        rowOffset = arith::MulIOp::create(b, code.loc, rows.number, code.index(64));
      sum = device::ContractOp::create(
          b, code.named(nameOfProducts(context, k)),
          typeOver(Over::tile(plan.shape.keys), score.type.isIndex() ? b.getI32Type() : score.type),
          isHeld ? heldRows[term.row] : rings.rows[term.row].tiles, rowOffset, rings.keys[term.key].tiles, stage, sum,
          /*transposed=*/true, depthOf(plan.rowOperands[term.row]));
    }
    scores.push_back(sum);
  }
  return scores;
}

void Contraction::awaitScores(Values &scores, Value stage, int64_t pending) {
  SmallVector<unsigned> lastReader(rings.keys.size()); // score after which a ring's stage is free
  for (auto [k, terms] : llvm::enumerate(plan.scoreTerms))
    for (const ProductTerm &term : terms)
      lastReader[term.key] = k;
  for (auto [k, score] : llvm::enumerate(scores)) {
    int64_t others = countProducts(plan.scoreTerms, k + 1) + pending;
    score = device::AwaitOp::create(b, code.loc, score.getType(), score, others);
    for (auto [ring, reader] : llvm::zip_equal(rings.keys, lastReader))
      if (reader == k)
        device::ArriveOp::create(b, code.loc, ring.empty, stage);
  }
  passTurn();
}

int64_t Contraction::countAccumulatorProducts() const { return countProducts(plan.accumulatorTerms, 0); }

Value Contraction::loadWeights(Value stage) {
  auto ring = cast<RingType>(rings.weights.tiles.getType());
  Value offset = arith::MulIOp::create(b, code.loc, rows.number, code.index(64)), zero = code.index(0);
  bool isTransposed = plan.product->left.isTransposed;
  return device::LoadFragmentOp::create(
      b, code.named("weights"), typeOver(Over::tile(plan.shape.keys), ring.getElementType()), rings.weights.tiles,
      stage, isTransposed ? zero : offset, isTransposed ? offset : zero, isTransposed);
}

/// Rounds the weights of each accumulator. Missing ones are computed from the first ones.
void Contraction::packWeights(Running &running) {
  for (auto [number, factors, sum] : llvm::enumerate(plan.weights, running.sums)) {
    Value whole = sum.weights[0];
    Over over = Over::tile(plan.shape.keys);
    for (auto [k, weights] : llvm::enumerate(sum.weights)) {
      const rows::Factors &factor = factors[k];
      if (!weights)
        weights = map(code, "rest", whole, over, {elementOf(whole)}, [&](ValueRange in, ValueRange) {
          code.bind(factors[0].values[0], in[0]);
          return Values{code.eval(factor.values[0])};
        })[0];
      weights = map(code, nameOfWeights(plan, number), weights, over, {factor.narrow},
                    [&](ValueRange in, ValueRange) { return Values{code.convert(in[0], factor.narrow)}; })[0];
    }
  }
}

/// Starts O + P · G of the tile at a position, whose G has been awaited. If a sum has several
/// products, or 8-bit operands, the products of one tile are summed separately. Tensor cores
/// truncate each product that they add, those of 8-bit floats some 13 bits below the sum so far.
/// Hence only few terms may share such a sum.
void Contraction::startAccumulators(Value n, StringRef stageName, Running &running) {
  Value stage = rings.stageOf(n, stageName).first;
  for (auto [terms, sum] : llvm::zip_equal(plan.accumulatorTerms, running.sums)) {
    bool isApart = terms.size() > 1 || plan.valueOperands[terms.front().key].getBytes() == 1;
    Value &to = isApart ? sum.part : sum.sum;
    to = isApart ? Value() : to;
    for (const ProductTerm &term : terms)
      to = device::ContractOp::create(b, isApart ? code.named("part") : code.loc, sum.sum.getType(),
                                      sum.weights[term.row], Value(), rings.values[term.key].tiles, stage, to,
                                      plan.valueOperands[term.key].isTransposed,
                                      /*depth=*/IntegerAttr());
    sum.weights.assign(sum.weights.size(), Value());
  }
}

void Contraction::finishAccumulators(Value n, StringRef stageName, Running &running) {
  Value stage = rings.stageOf(n, stageName).first;
  for (auto [k, sum] : llvm::enumerate(running.sums)) {
    Value &to = sum.part ? sum.part : sum.sum;
    to = device::AwaitOp::create(b, code.loc, to.getType(), to, countProducts(plan.accumulatorTerms, k + 1));
    llvm::SmallSetVector<unsigned, 2> read;
    for (const ProductTerm &term : plan.accumulatorTerms[k])
      read.insert(term.key);
    for (unsigned ring : read)
      device::ArriveOp::create(b, code.loc, rings.values[ring].empty, stage);
    if (!sum.part)
      continue;
    auto type = cast<FragmentType>(sum.sum.getType());
    sum.sum = map(code, AccOp(plan.folded.accumulators[k].acc).getName(), {sum.sum, sum.part},
                  Over::tile(type.getShape()[1]), {type.getElementType()},
                  [&](ValueRange in, ValueRange) { return Values{code.combine(Monoid::add, in[0], in[1])}; })[0];
    sum.part = Value();
  }
  // An arrival alone does not wait until a fragment is in its registers; products that have read
  // them do.
  if (plan.product)
    device::ArriveOp::create(b, code.loc, rings.weights.empty, stage);
}

} // namespace moa::tiles
