//===- Sample.cpp - rows that every plan computes -------------------------===//
#include "dialects/ONF/Transforms/SplitFolds.h"
#include "lib/Precision/Adapter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cfloat>

using namespace mlir;

namespace moa::precision {

/// The same of f32, whose products tensor cores do not take: a GPU has a thread for each row and part.
static constexpr int64_t kShortPart = 256;

/// Rows of each part that are drawn to be taken in proportion to their squares, of which one is as much as this many times the mean of
/// the others, so that of rows that are alike most parts have one that is taken.
static constexpr int64_t kDraws = 64, kMostOfMean = 32;
/// Numbers behind the part's that hashes of draws have.
static constexpr int64_t kDrawSalt = 977, kTakeSalt = 1913;

/// Reads what the load reads, so far behind it along the axis that `index` is a term of.
static Value loadFurther(Code &at, onf::LoadOp load, Value index, Value further) {
  SmallVector<Value> terms(load.getTerms());
  SmallVector<Attribute> texts(load.getCoefficients().getValue());
  texts.push_back(texts[llvm::find(terms, index) - terms.begin()]);
  terms.push_back(further);
  Value result = at.make<onf::LoadOp>(load.getType(), load.getArray(), terms, at.b.getArrayAttr(texts),
                                      load.getConstantAttr());
  load.erase();
  return result;
}

/// Whether a load's address has the index as one term, and otherwise nothing that follows from it.
static bool isTermOf(onf::LoadOp load, Value index) {
  std::function<bool(Value)> follows = [&](Value value) {
    Operation *op = value.getDefiningOp();
    return value == index || (op && llvm::any_of(op->getOperands(), follows));
  };
  return llvm::count(load.getTerms(), index) == 1 && llvm::count_if(load.getTerms(), follows) == 1;
}

/// The rows fall into parts of equal length. Of each, the sample has the row of the largest magnitude, of odd number, and one of the
/// others: of kDraws that a hash of the indices draws the first one that is taken, each with a probability a = min(1, x²/(32·mean x²)),
/// or, if none is, one that the hash picks. So rows whose size may betray them are not missed because they are few, and a row's
/// probability is p = q·a/Σ a + (1 − q)/n, q = 1 − (1 − Σ a/n)^kDraws: it stands for 1/p rows (Def 31).
void Chooser::addSampleRows() {
  Builder builder(kernel.getContext());
  picked.numbers = editor.addTemporary(base() + "_row", picked.extents, builder.getI32Type());
  picked.shares = editor.addTemporary(base() + "_share", picked.extents, builder.getF32Type());
  SymExpr count = rows();
  editor.addShortNest(picked.names, picked.extents, &sampled, [&](Code &code, ValueRange indices) {
    auto add = [](Code &at, Value x, Value y) { return at.make<arith::AddIOp>(x, y); };
    auto divided = [](Code &at, Value x, int64_t y) { return at.make<arith::FloorDivSIOp>(x, at.index(y)); };
    auto modulo = [](Code &at, Value x, int64_t y) { return at.make<arith::RemSIOp>(x, at.index(y)); };
    Value r = indices.back(), part = divided(code, r, 2), n = code.extent(count);
    auto bound = [&](Value p) { return divided(code, code.make<arith::MulIOp>(p, n), kParts); };
    Value start = bound(part), end = bound(add(code, part, code.index(1)));
    Value length = code.make<arith::SubIOp>(end, start);
    Value numOthers = code.make<arith::SubIOp>(length, code.index(1));
    // The magnitude of neighbours from the start of the part on, or from further in front so that all
    // exist: those of the part count as they are, others as 0. Where the row is an index of the
    // magnitudes, the address is that of the first one and t, which lanes share.
    SymExpr longest = SymExpr::floorDiv(count, SymExpr(kParts)) + SymExpr(1);
    Value from = code.make<arith::MinSIOp>(start, code.extent(count - longest));
    auto isInside = [&](Code &at, Value t) {
      Value row = add(at, from, t);
      return at.make<arith::AndIOp>(at.make<arith::CmpIOp>(arith::CmpIPredicate::sge, row, start),
                                    at.make<arith::CmpIOp>(arith::CmpIPredicate::slt, row, end));
    };
    auto magnitudeOf = [&](Code &at, Value row) {
      IRMapping map;
      SmallVector<Value> rowIndices(indices.drop_back());
      rowIndices.push_back(row);
      map.map(nest.getBody().getArguments(), rowIndices);
      return loadMagnitude(at, map);
    };
    auto magnitudeAt = [&](Code &at, Value t) {
      auto first = magnitudeOf(at, from).getDefiningOp<onf::LoadOp>();
      return first && isTermOf(first, from) ? loadFurther(at, first, from, t) : magnitudeOf(at, add(at, from, t));
    };
    Value most = code.fold("t", longest, [&](Code &at, Value t, Value &) {
      Value limit = at.make<arith::SelectOp>(isInside(at, t), at.real(INFINITY), at.real(0));
      return SmallVector<Code::Term>{{Monoid::max, "most", at.make<arith::MinimumFOp>(magnitudeAt(at, t), limit)}};
    })[0];
    // Relative to the largest, whose square may be beyond f32.
    Value inverse = code.make<arith::DivFOp>(code.real(1), code.make<arith::MaximumFOp>(most, code.real(FLT_MIN)));
    auto squareOf = [&](Code &at, Value magnitude) {
      Value x = at.make<arith::MulFOp>(magnitude, inverse);
      return isMagnitudeSquare() ? x : Value(at.make<arith::MulFOp>(x, x));
    };
    auto ifInside = [&](Code &at, Value t, Value x) { return at.make<arith::SelectOp>(isInside(at, t), x, at.real(0)); };
    Code::Values found = code.fold("t", longest, [&](Code &at, Value t, Value &) {
      Value x = magnitudeAt(at, t);
      Value is = at.make<arith::CmpFOp>(arith::CmpFPredicate::OEQ, x, most);
      Value isHere = at.make<arith::AndIOp>(is, isInside(at, t));
      Value row = at.make<arith::SelectOp>(isHere, add(at, from, t), at.index(0));
      return SmallVector<Code::Term>{{Monoid::max, "where", row}, {Monoid::add, "squares", ifInside(at, t, squareOf(at, x))}};
    });
    // Of NaN no row has the largest.
    Value where = code.make<arith::MaxSIOp>(found[0], start);
    Value isOdd = code.make<arith::CmpIOp>(arith::CmpIPredicate::eq, modulo(code, r, 2), code.index(1));
    Value isEven = code.make<arith::XOrIOp>(isOdd, code.make<arith::ConstantOp>(code.b.getBoolAttr(true)));
    Value others = code.toReal(numOthers);
    Value mean = code.make<arith::DivFOp>(code.make<arith::SubFOp>(found[1], code.real(1)), others);
    Value taken = code.make<arith::DivFOp>(code.real(1.0 / kMostOfMean), code.make<arith::MaximumFOp>(mean, code.real(0x1p-60)));
    auto chanceOf = [&](Code &at, Value magnitude) {
      return at.make<arith::MinimumFOp>(at.make<arith::MulFOp>(squareOf(at, magnitude), taken), at.real(1));
    };
    Value sum = code.fold("t", longest, [&](Code &at, Value t, Value &present) {
      present = isEven;
      Value isLargest = at.make<arith::CmpIOp>(arith::CmpIPredicate::eq, add(at, from, t), where);
      Value chance = at.make<arith::SelectOp>(isLargest, at.real(0), chanceOf(at, magnitudeAt(at, t)));
      return SmallVector<Code::Term>{{Monoid::add, "chances", ifInside(at, t, chance)}};
    })[0];
    auto salted = [&](Code &at, int64_t salt) {
      SmallVector<Value> numbers(indices.drop_back());
      numbers.push_back(add(at, part, at.index(salt)));
      return numbers;
    };
    // All but the largest.
    auto drawn = [&](Code &at, Value draw) {
      Value row = add(at, start, at.make<arith::RemSIOp>(at.hash(draw, salted(at, kDrawSalt)), numOthers));
      Value isBehind = at.make<arith::CmpIOp>(arith::CmpIPredicate::sge, row, where);
      return Value(at.make<arith::SelectOp>(isBehind, add(at, row, at.index(1)), row));
    };
    // The number of the first draw that is taken, counted from behind; 0 if none is.
    Value first = code.fold("t", SymExpr(kDraws), [&](Code &at, Value t, Value &present) {
      present = isEven;
      Value chance = chanceOf(at, magnitudeOf(at, drawn(at, t)));
      Value number = at.make<arith::MulFOp>(at.toReal(at.hash(t, salted(at, kTakeSalt))), at.real(1.0 / Code::kHashes));
      Value is = at.make<arith::CmpFOp>(arith::CmpFPredicate::OLT, number, chance);
      Value left = at.make<arith::SubIOp>(at.index(kDraws), t);
      return SmallVector<Code::Term>{{Monoid::max, "first", at.make<arith::SelectOp>(is, left, at.index(0))}};
    })[0];
    first = code.make<arith::MaxSIOp>(first, code.index(0)); // where there are no draws
    Value other = drawn(code, code.make<arith::SubIOp>(code.index(kDraws), first));
    // q·a/Σ a + (1 − q)/n, with (1 − Σ a/n)^64 by squares.
    Value missed = code.make<arith::SubFOp>(code.real(1), code.make<arith::DivFOp>(sum, others));
    missed = code.make<arith::MaximumFOp>(missed, code.real(0));
    static_assert(kDraws == 64);
    for (int squares = 0; squares < 6; ++squares)
      missed = code.make<arith::MulFOp>(missed, missed);
    Value share = code.make<arith::DivFOp>(chanceOf(code, magnitudeOf(code, other)), code.make<arith::MaximumFOp>(sum, code.real(0x1p-60)));
    Value probability = code.make<arith::MulFOp>(code.make<arith::SubFOp>(code.real(1), missed), share);
    probability = code.make<arith::AddFOp>(probability, code.make<arith::DivFOp>(missed, others));
    Value stands = code.make<arith::DivFOp>(code.real(1), probability);
    code.store(code.make<arith::SelectOp>(isOdd, where, other), picked.numbers, indices);
    code.store(code.make<arith::SelectOp>(isOdd, code.real(1), stands), picked.shares, indices);
  });
}

/// The rows of the sample, one behind the other.
Value Chooser::addGathered(const Score &score, Value from) {
  auto type = cast<ArrayType>(from.getType());
  SmallVector<Attribute> extents(picked.extents);
  extents.push_back(type.getShape()[score.row.axis]);
  std::string name = kernel.getArrayName(cast<BlockArgument>(from).getArgNumber()).str() + "_rows";
  Value array = editor.addTemporary(name, extents, type.getElementType());
  editor.addShortNest(picked.names, picked.extents, &sampled, [&](Code &code, ValueRange indices) {
    IRMapping map;
    SmallVector<Value> rowIndices(indices.drop_back());
    rowIndices.push_back(code.toIndex(code.load(picked.numbers, indices)));
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

/// The nest with the sample in the place of its rows.
Chooser::Copy Chooser::copySample(const Choice &where) {
  Copy copy = copyNest();
  Builder b(kernel.getContext());
  copy.nest.setNamesAttr(b.getArrayAttr(picked.names));
  copy.nest.setExtentsAttr(b.getArrayAttr(picked.extents));
  setChoice(copy.nest, where);
  // What is no result here it does not store, nor has it loops for that.
  nest.walk([&](onf::StoreOp store) {
    if (llvm::none_of(results, [&](const Result &result) { return result.store == store; }))
      copy.map.lookup(store.getOperation())->erase();
  });
  copy.nest.walk([&](onf::ForOp loop) {
    bool stores = loop.walk([](onf::StoreOp) { return WalkResult::interrupt(); }).wasInterrupted();
    if (loop != copy.nest && !stores)
      loop.erase();
  });
  // The row's number takes the place of its index, but where rows were gathered.
  Block &body = copy.nest.getBody().front();
  Code code(kernel, OpBuilder::atBlockBegin(&body), nest.getLoc());
  Value place = body.getArguments().back();
  Value row = code.toIndex(code.load(picked.numbers, body.getArguments()));
  Operation *read = row.getDefiningOp()->getOperand(0).getDefiningOp();
  place.replaceUsesWithIf(row, [&](OpOperand &use) { return use.getOwner() != read; });
  copy.row = row;
  return copy;
}

SmallVector<Value> Chooser::indicesOf(const Copy &copy, onf::StoreOp store) {
  onf::ForOp nest = copy.nest;
  SmallVector<Value> inner, indices(nest.getBody().getArguments());
  for (auto loop = store->getParentOfType<onf::ForOp>(); loop != nest; loop = loop->getParentOfType<onf::ForOp>())
    inner.insert(inner.begin(), loop.getBody().args_begin(), loop.getBody().args_end());
  llvm::append_range(indices, inner);
  return indices;
}

/// Stores in these arrays, at the indices of the nest and of the loops around, what is stored in results; in wider ones before it
/// is rounded.
void Chooser::storeIn(Copy &copy, ArrayRef<Value> arrays) {
  for (auto [result, array] : llvm::zip_equal(results, arrays)) {
    auto store = cast<onf::StoreOp>(copy.map.lookup(result.store.getOperation()));
    SmallVector<Value> indices = indicesOf(copy, store);
    Code at(kernel, OpBuilder(store), store.getLoc());
    Value value = store.getValue();
    if (auto rounded = value.getDefiningOp<arith::TruncFOp>();
        rounded && rounded.getIn().getType() == cast<ArrayType>(array.getType()).getElementType())
      value = rounded.getIn();
    at.store(value, array, indices);
    store.erase();
  }
}

/// 64 rows are few: the range falls into parts, which run at once.
void Chooser::splitSample(Copy &copy, int64_t length) {
  if (llvm::hasSingleElement(copy.nest.getBody().getOps<onf::FoldOp>()) && onf::canSplitFold(copy.nest))
    onf::splitFold(copy.nest, length);
}

SmallVector<Value> Chooser::addSampleArrays(const Twine &suffix, ArrayRef<Attribute> rowExtents, Type element) {
  SmallVector<Value> arrays;
  for (Result &result : results) {
    SmallVector<Attribute> extents(rowExtents);
    llvm::append_range(extents, result.extents);
    arrays.push_back(editor.addTemporary(kernel.getArrayName(numberOf(result.store)) + suffix, extents,
                                         element ? element : result.store.getValue().getType()));
  }
  return arrays;
}

/// What a copy of the nest stores goes to temporaries for its rows.
SmallVector<Value> Chooser::storeSample(Copy &copy, const Twine &suffix, ArrayRef<Attribute> rowExtents) {
  SmallVector<Value> samples = addSampleArrays(suffix, rowExtents);
  storeIn(copy, samples);
  return samples;
}

/// The nest for the rows of the sample, as a plan computes it or, for plan 0, as it is
/// written: arrays of what it would store.
SmallVector<Value> Chooser::addSample(unsigned plan, StringRef name, Type element) {
  SmallVector<Value> samples = addSampleArrays(name + Twine(plan), picked.extents, element);
  Copy copy = copySample(sampled);
  if (plan)
    rewrite(copy, plan, copy.nest.getBody().getArguments());
  else
    for (auto [score, rows] : llvm::zip_equal(scores, picked.gathered))
      readSampledRows(copy, score, rows);
  storeIn(copy, samples);
  splitSample(copy, sampleLength(/*isWritten=*/!plan));
  return samples;
}

/// Indices of a part of the fold, of the nest as it is written or of a plan.
int64_t Chooser::sampleLength(bool isWritten) const {
  bool isSingle = options.halves && llvm::any_of(scores, [](const Score &score) {
    return score.row.load.getResult().getType().isF32();
  });
  return isWritten && isSingle ? kShortPart : kPartLength;
}

} // namespace moa::precision
