//===- Sample.cpp - rows that every plan computes -------------------------===//
#include "lib/Precision/Adapter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace moa::precision {

/// The rows fall into parts of equal length. Of each, the sample has the row whose operand has
/// the largest element, of odd number, and one that a hash of the indices picks.
void Adapter::addSampleRows() {
  Builder builder(kernel.getContext());
  sampledRows = editor.addTemporary(base() + "_row", sampleExtents, builder.getI32Type());
  SymExpr count = rows();
  const Score &first = scores[plans[0].scores[0]];
  Rounded operand = rounded(first.row);
  editor.addNest(sampleNames, sampleExtents, &tried, [&](Code &code, ValueRange indices) {
    auto add = [](Code &at, Value x, Value y) { return at.make<arith::AddIOp>(x, y); };
    auto times = [](Code &at, Value x, int64_t y) { return at.make<arith::MulIOp>(x, at.index(y)); };
    auto divided = [](Code &at, Value x, int64_t y) { return at.make<arith::FloorDivSIOp>(x, at.index(y)); };
    auto modulo = [](Code &at, Value x, int64_t y) { return at.make<arith::RemSIOp>(x, at.index(y)); };
    Value r = indices.back(), part = divided(code, r, 2), n = code.extent(count);
    auto bound = [&](Value p) { return divided(code, code.make<arith::MulIOp>(p, n), kParts); };
    Value start = bound(part), end = bound(add(code, part, code.index(1)));
    Value length = code.make<arith::SubIOp>(end, start);
    // A hash: two rounds of squares modulo a prime.
    constexpr int64_t prime = 1048573;
    Value hash = times(code, part, 7919);
    for (Value index : indices.drop_back())
      hash = modulo(code, add(code, times(code, modulo(code, hash, prime), 104729), index), prime);
    for (int64_t shift : {12345, 54321}) {
      Value moved = modulo(code, add(code, hash, code.index(shift)), prime);
      hash = divided(code, modulo(code, code.make<arith::MulIOp>(moved, moved), prime * 1024), 32);
    }
    Value picked = add(code, start, code.make<arith::RemSIOp>(hash, length));
    // The scale of a row of the part.
    Value last = code.make<arith::SubIOp>(n, code.index(1));
    auto scaleAt = [&](Code &at, Value t) {
      Value row = at.make<arith::MinSIOp>(add(at, start, t), last);
      IRMapping map;
      SmallVector<Value> rowIndices(indices.drop_back());
      rowIndices.push_back(row);
      map.map(nest.getBody().getArguments(), rowIndices);
      return loadLargest(at, first.row, operand, map);
    };
    auto isInside = [&](Code &at, Value t) {
      return at.make<arith::CmpIOp>(arith::CmpIPredicate::slt, t, length);
    };
    SymExpr longest = SymExpr::floorDiv(count, SymExpr(kParts)) + SymExpr(1);
    Value most = code.fold("t", longest, [&](Code &at, Value t, Value &present) {
      present = isInside(at, t);
      return SmallVector<Code::Term>{{Monoid::max, "most", scaleAt(at, t)}};
    })[0];
    Value where = code.fold("t", longest, [&](Code &at, Value t, Value &present) {
      Value is = at.make<arith::CmpFOp>(arith::CmpFPredicate::OEQ, scaleAt(at, t), most);
      present = at.make<arith::AndIOp>(isInside(at, t), is);
      return SmallVector<Code::Term>{{Monoid::max, "where", t}};
    })[0];
    // Of NaN no row has the largest.
    where = code.make<arith::MaxSIOp>(where, code.index(0));
    Value isOdd = code.make<arith::CmpIOp>(arith::CmpIPredicate::eq, modulo(code, r, 2), code.index(1));
    Value row = code.make<arith::SelectOp>(isOdd, add(code, start, where), picked);
    code.store(row, sampledRows, indices);
  });
}

/// The rows of the sample, one behind the other.
Value Adapter::addGathered(const Score &score, Value from) {
  auto type = cast<ArrayType>(from.getType());
  SmallVector<Attribute> extents(sampleExtents);
  extents.push_back(type.getShape()[score.row.axis]);
  std::string name = kernel.getArrayName(cast<BlockArgument>(from).getArgNumber()).str() + "_rows";
  Value array = editor.addTemporary(name, extents, type.getElementType());
  editor.addNest(sampleNames, sampleExtents, &tried, [&](Code &code, ValueRange indices) {
    IRMapping map;
    SmallVector<Value> rowIndices(indices.drop_back());
    rowIndices.push_back(code.toIndex(code.load(sampledRows, indices)));
    map.map(nest.getBody().getArguments(), rowIndices);
    code.loops({editor.text("k")}, {extents.back()}, [&](Code &at, ValueRange k) {
      SmallVector<Value> element(indices);
      element.push_back(k[0]);
      Value x = loadAt(at, score.row, from, k[0], map);
      at.store(isa<FloatType>(x.getType()) ? x : at.toIndex(x), array, element);
    });
  });
  return array;
}

/// The nest for the rows of the sample, as a plan computes it or, without one, as it is
/// written: arrays of what it would store.
SmallVector<Value> Adapter::addSample(const Plan *plan, unsigned number) {
  SmallVector<Value> samples;
  for (Result &result : results) {
    SmallVector<Attribute> extents(sampleExtents);
    llvm::append_range(extents, result.extents);
    samples.push_back(editor.addTemporary(
        kernel.getArrayName(numberOf(result.store)) + "_sample" + Twine(number), extents,
        result.store.getValue().getType()));
  }
  Copy copy = copyNest();
  Builder b(kernel.getContext());
  copy.nest.setNamesAttr(b.getArrayAttr(sampleNames));
  copy.nest.setExtentsAttr(b.getArrayAttr(sampleExtents));
  setChoice(copy.nest, tried);
  // The row's number takes the place of its index, but where rows were gathered.
  Block &body = copy.nest.getBody().front();
  Code code(kernel, OpBuilder::atBlockBegin(&body), nest.getLoc());
  Value place = body.getArguments().back();
  Value row = code.toIndex(code.load(sampledRows, body.getArguments()));
  Operation *read = row.getDefiningOp()->getOperand(0).getDefiningOp();
  place.replaceUsesWithIf(row, [&](OpOperand &use) { return use.getOwner() != read; });
  copy.row = row;
  for (auto [k, score] : llvm::enumerate(scores)) {
    if (plan && llvm::is_contained(plan->scores, k))
      roundScore(copy, score, gatheredRounded[k], body.getArguments(), rounded(score.key));
    else
      readSampledRows(copy, score, gathered[k]);
  }
  if (plan && plan->sums)
    for (const Carrier &carrier : carriers)
      roundCarrier(copy, carrier);
  for (auto [result, sample] : llvm::zip_equal(results, samples)) {
    auto store = cast<onf::StoreOp>(copy.map.lookup(result.store.getOperation()));
    SmallVector<Value> inner, indices(body.getArguments());
    for (auto loop = store->getParentOfType<onf::ForOp>(); loop != copy.nest;
         loop = loop->getParentOfType<onf::ForOp>())
      inner.insert(inner.begin(), loop.getBody().args_begin(), loop.getBody().args_end());
    llvm::append_range(indices, inner);
    Code at(kernel, OpBuilder(store), store.getLoc());
    at.store(store.getValue(), sample, indices);
    store.erase();
  }
  return samples;
}

} // namespace moa::precision
