//===- Sample.cpp - the sampled rows --------------------------------------===//
#include "dialects/ONF/Transforms/SplitFolds.h"
#include "lib/Accuracy/Selection/Adapter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cfloat>

using namespace mlir;

namespace moa::accuracy {

/// Keys per part for the unmodified nest in f32, which uses no tensor cores: a GPU has one thread
/// per row and part.
static constexpr int64_t kShortPart = 256;

/// Draws per part. A draw is accepted in proportion to its squared magnitude, with certainty from
/// this multiple of the mean on. Of equal rows, six parts in seven accept one.
static constexpr int64_t kDraws = 64, kMostOfMean = 32;
/// A part of the keys whose largest score is farther from the maximum than this cannot contain the
/// maximum of a plan, whose score errors have deviations of at most 0.2.
static constexpr double kFar = 0.75;
static constexpr int64_t kTakeSalt = 977;

/// Loads the element `further` positions later along the axis that `index` addresses.
static Value loadFurther(Code &at, onf::LoadOp load, Value index, Value further) {
  SmallVector<Value> terms(load.getTerms());
  std::vector<onf::Subscript> axes = load.getSubscripts().getAxes();
  for (onf::Subscript &axis : axes)
    if (auto found = axis.factors.find(llvm::find(terms, index) - terms.begin()); found != axis.factors.end())
      axis.factors[terms.size()] = found->second;
  terms.push_back(further);
  Value result =
      at.make<onf::LoadOp>(load.getType(), load.getArray(), terms, onf::SubscriptsAttr::get(load.getContext(), axes));
  load.erase();
  return result;
}

/// Returns true if the index is one term of the load's address and no other term depends on it.
static bool isTermOf(onf::LoadOp load, Value index) {
  std::function<bool(Value)> follows = [&](Value value) {
    Operation *op = value.getDefiningOp();
    return value == index || (op && llvm::any_of(op->getOperands(), follows));
  };
  return llvm::count(load.getTerms(), index) == 1 && llvm::count_if(load.getTerms(), follows) == 1;
}

/// Picks the rows of the sample (Def 31). The rows fall into parts of equal length. The sample has
/// one row of each part, and the row with the largest magnitude x of each group of parts.
///
/// In each part a hash draws kDraws rows. The first that is accepted, with probability a = min(1,
/// x²/(32·mean x²)), is picked; if none is, one more draw is. So a row's probability is p = q·a/Σ a
/// + (1 − q)/n with q = 1 − (1 − Σ a/n)^kDraws, and it represents 1/p rows. Few rows with a
/// conspicuous size are not missed.
void Chooser::addSampleRows() {
  Builder builder(kernel.getContext());
  Type i32 = builder.getI32Type(), f32 = builder.getF32Type();
  SymExpr count = rows();
  SmallVector<Attribute> names(picked.names), extents(picked.extents);
  names.back() = editor.text("p"), extents.back() = editor.expr(kParts.count);
  Value largest = editor.addTemporary(base() + "_largest", extents, i32);
  Value sizes = editor.addTemporary(base() + "_size", extents, f32);
  Value units = editor.addTemporary(base() + "_unit", extents, f32),
        sums = editor.addTemporary(base() + "_chances", extents, f32);
  auto startOf = [&](Code &at, Value part) {
    Value numParts = at.index(kParts.count);
    return at.floorDiv(at.mul(part, at.extent(count)), numParts);
  };
  auto lengthOf = [&](Code &at, Value part, Value start) {
    return at.sub(startOf(at, at.add(part, at.index(1))), start);
  };
  auto magnitudeOf = [&](Code &at, ValueRange head, Value row) {
    IRMapping map = mapIndices(head, row);
    return loadMagnitude(at, map);
  };
  auto chanceOf = [&](Code &at, Value magnitude, Value unit, Value most) {
    Value x = at.mul(magnitude, unit);
    return at.min(isMagnitudeSquare() ? x : at.mul(x, x), most);
  };
  // The largest magnitude of each part, and the sum of the probabilities of the other rows.
  editor.addShortNest(names, extents, &sampled, [&](Code &code, ValueRange indices) {
    ValueRange head = indices.drop_back();
    Value part = indices.back(), start = startOf(code, part), end = startOf(code, code.add(part, code.index(1)));
    // The range starts at the part, or earlier so that all rows exist; rows outside of the part
    // count as 0. If the row is an index of the magnitudes, the address is that of the first row
    // plus t, so that lanes share the loads.
    SymExpr longest = SymExpr::floorDiv(count, SymExpr(kParts.count)) + SymExpr(1);
    Value from = code.min(start, code.extent(count - longest));
    auto isInside = [&](Code &at, Value t) {
      Value row = at.add(from, t);
      Value isBeforeEnd = at.compare(arith::CmpIPredicate::slt, row, end);
      return at.both(at.compare(arith::CmpIPredicate::sge, row, start), isBeforeEnd);
    };
    auto magnitudeAt = [&](Code &at, Value t) {
      auto first = magnitudeOf(at, head, from).getDefiningOp<onf::LoadOp>();
      return first && isTermOf(first, from) ? loadFurther(at, first, from, t) : magnitudeOf(at, head, at.add(from, t));
    };
    auto ifInside = [&](Code &at, Value t, Value x) {
      Value none = at.real(0);
      return at.select(isInside(at, t), x, none);
    };
    Value most = code.fold("t", longest, [&](Code &at, Value t, Value &) {
      Value none = at.real(0), all = at.real(INFINITY);
      Value limit = at.select(isInside(at, t), all, none);
      return SmallVector<Code::State>{{Monoid::max, "most", at.min(magnitudeAt(at, t), limit)}};
    })[0];
    // Relative to the largest, because squares may overflow.
    Value mostOrTiny = code.max(most, code.real(FLT_MIN));
    Value inverse = code.div(code.real(1), mostOrTiny);
    Code::Values found = code.fold("t", longest, [&](Code &at, Value t, Value &) {
      Value magnitude = magnitudeAt(at, t), x = at.mul(magnitude, inverse);
      Value is = at.compare(arith::CmpFPredicate::OEQ, magnitude, most);
      Value isHere = at.both(is, isInside(at, t));
      Value none = at.index(0), row = at.select(isHere, at.add(from, t), none);
      Value square = isMagnitudeSquare() ? x : at.mul(x, x);
      return SmallVector<Code::State>{{Monoid::max, "where", row}, {Monoid::add, "squares", ifInside(at, t, square)}};
    });
    Value where = code.max(found[0], start);
    Value itself = code.index(1);
    Value others = code.toReal(code.sub(lengthOf(code, part, start), itself));
    Value mean = code.div(code.sub(found[1], code.real(1)), others);
    Value meanOrTiny = code.max(mean, code.real(0x1p-60));
    Value unit = code.div(code.real(1.0 / kMostOfMean), meanOrTiny);
    unit = code.mul(isMagnitudeSquare() ? unit : Value(code.make<math::SqrtOp>(unit)), inverse);
    unit = code.min(unit, code.real(FLT_MAX));
    Value sum = code.fold("t", longest, [&](Code &at, Value t, Value &) {
      // All rows are read, so that lanes share the loads.
      Value isOther = at.compare(arith::CmpIPredicate::ne, at.add(from, t), where);
      Value none = at.real(0), all = at.real(1);
      Value limit = at.select(at.both(isOther, isInside(at, t)), all, none);
      return SmallVector<Code::State>{{Monoid::add, "chances", chanceOf(at, magnitudeAt(at, t), unit, limit)}};
    })[0];
    code.store(where, largest, indices);
    code.store(most, sizes, indices);
    code.store(unit, units, indices);
    code.store(sum, sums, indices);
  });
  // The draw is the last number of the hash, so that a part hashes the others once.
  auto hashOf = [&](Code &at, ValueRange head, Value part, Value draw) { return at.hash(part, placed(head, {draw})); };
  auto leaderOf = [&](Code &at, ValueRange head, Value group) {
    Value first = at.mul(group, at.index(kParts.perGroup)), leader = first,
          most = at.load(sizes, placed(head, {first}));
    for (int64_t k = 1; k < kParts.perGroup; ++k) {
      Value part = at.add(first, at.index(k)), size = at.load(sizes, placed(head, {part}));
      Value isMore = at.compare(arith::CmpFPredicate::OGT, size, most);
      leader = at.select(isMore, part, leader), most = at.select(isMore, size, most);
    }
    return leader;
  };
  auto isLeader = [&](Code &at, ValueRange head, Value part) {
    Value leader = leaderOf(at, head, at.floorDiv(part, at.index(kParts.perGroup)));
    return at.compare(arith::CmpIPredicate::eq, leader, part);
  };
  auto numOthers = [&](Code &at, Value part, Value leads) {
    Value none = at.index(0), one = at.index(1), own = at.select(leads, one, none);
    return at.sub(lengthOf(at, part, startOf(at, part)), own);
  };
  // Draws a row other than the group's largest.
  auto drawn = [&](Code &at, ValueRange head, Value part, Value draw, Value leads) {
    Value others = numOthers(at, part, leads);
    Value number = at.mul(hashOf(at, head, part, draw), others);
    Value further = at.floorDiv(number, at.index(Code::kHashes));
    Value row = at.add(startOf(at, part), further);
    Value where = at.toIndex(at.load(largest, placed(head, {part})));
    Value isBehind = at.both(leads, at.compare(arith::CmpIPredicate::sge, row, where));
    return at.select(isBehind, at.add(row, at.index(1)), row);
  };
  names.push_back(editor.text("t")), extents.push_back(editor.expr(kDraws));
  Value taken = editor.addTemporary(base() + "_taken", extents, i32);
  editor.addShortNest(names, extents, &sampled, [&](Code &code, ValueRange indices) {
    ValueRange head = indices.drop_back(2), at = indices.drop_back();
    Value part = at.back(), draw = indices.back();
    Value row = drawn(code, head, part, draw, isLeader(code, head, part));
    Value most = code.real(1), unit = code.load(units, at);
    Value chance = chanceOf(code, magnitudeOf(code, head, row), unit, most);
    Value factor = code.real(1.0 / Code::kHashes);
    Value number = code.mul(code.toReal(hashOf(code, head, part, code.add(draw, code.index(kTakeSalt)))), factor);
    Value is = code.compare(arith::CmpFPredicate::OLT, number, chance);
    code.store(code.toNumber(is), taken, indices);
  });
  picked.numbers = editor.addTemporary(base() + "_row", picked.extents, i32);
  picked.shares = editor.addTemporary(base() + "_share", picked.extents, f32);
  editor.addShortNest(picked.names, picked.extents, &sampled, [&](Code &code, ValueRange indices) {
    ValueRange head = indices.drop_back();
    Value r = indices.back(), part = code.min(r, code.index(kParts.count - 1));
    SmallVector<Value> at = placed(head, {part});
    Value leads = isLeader(code, head, part), unit = code.load(units, at), sum = code.load(sums, at);
    // The largest row of the part may be drawn, unless it is the group's.
    Value most = code.real(1), chance = chanceOf(code, code.load(sizes, at), unit, most);
    Value ofLargest = code.select(leads, code.real(0), chance);
    sum = code.add(sum, ofLargest);
    Value first = code.fold("t", SymExpr(kDraws), [&](Code &in, Value t, Value &) {
      Value no = in.index(0);
      Value is = in.compare(arith::CmpIPredicate::ne, in.toIndex(in.load(taken, placed(at, {t}))), no);
      return SmallVector<Code::State>{{Monoid::min, "first", in.select(is, t, in.index(kDraws))}};
    })[0];
    Value row = drawn(code, head, part, first, leads), others = code.toReal(numOthers(code, part, leads));
    // q·a/Σ a + (1 − q)/n, with (1 − Σ a/n)^64 by squares.
    Value mean = code.div(sum, others);
    Value missed = code.sub(code.real(1), mean);
    missed = code.max(missed, code.real(0));
    static_assert(kDraws == 64);
    for (int squares = 0; squares < 6; ++squares)
      missed = code.mul(missed, missed);
    Value sumOrTiny = code.max(sum, code.real(0x1p-60)), mostOfRow = code.real(1);
    Value ofRow = chanceOf(code, magnitudeOf(code, head, row), unit, mostOfRow);
    Value share = code.div(ofRow, sumOrTiny);
    Value probability = code.mul(code.sub(code.real(1), missed), share);
    probability = code.add(probability, code.div(missed, others));
    Value stands = code.div(code.real(1), probability);
    Value isPicked = code.compare(arith::CmpIPredicate::slt, r, code.index(kParts.count));
    Value none = code.index(0);
    Value group = code.max(code.sub(r, code.index(kParts.count)), none);
    Value where = code.toIndex(code.load(largest, placed(head, {leaderOf(code, head, group)})));
    code.store(code.select(isPicked, row, where), picked.numbers, indices);
    code.store(code.select(isPicked, stands, code.real(1)), picked.shares, indices);
  });
}

Value Chooser::addGathered(const ScoreFold &score, Value from) {
  auto type = cast<ArrayType>(from.getType());
  SmallVector<Attribute> extents(picked.extents);
  extents.push_back(type.getShape()[score.row.axis]);
  std::string name = editor.nameOf(from).str() + "_rows";
  Value array = editor.addTemporary(name, extents, type.getElementType());
  editor.addShortNest(picked.names, picked.extents, &sampled, [&](Code &code, ValueRange indices) {
    IRMapping map = mapIndices(indices.drop_back(), code.toIndex(code.load(picked.numbers, indices)));
    code.loops({editor.text("k")}, {extents.back()}, [&](Code &at, ValueRange k) {
      Value x = loadAt(at, score.row, from, k[0], map);
      at.store(isa<FloatType>(x.getType()) ? x : at.toIndex(x), array, placed(indices, {k[0]}));
    });
  });
  return array;
}

/// Returns a copy of the nest over the rows of the sample.
Chooser::Copy Chooser::copySample() {
  Copy copy = copyNest();
  Builder b(kernel.getContext());
  copy.nest.setNamesAttr(b.getArrayAttr(picked.names));
  copy.nest.setExtentsAttr(b.getArrayAttr(picked.extents));
  setChoice(copy.nest, sampled);
  nest.walk([&](onf::StoreOp store) {
    if (llvm::none_of(results, [&](const NestResult &result) { return result.store == store; }))
      copy.map.lookup(store.getOperation())->erase();
  });
  copy.nest.walk([&](onf::ForOp loop) {
    bool stores = loop.walk([](onf::StoreOp) { return WalkResult::interrupt(); }).wasInterrupted();
    if (loop != copy.nest && !stores)
      loop.erase();
  });
  // Uses the original row index, except to load it.
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

/// Redirects stores of results to these arrays.
void Chooser::storeIn(Copy &copy, ArrayRef<Value> arrays) {
  for (auto [result, array] : llvm::zip_equal(results, arrays)) {
    auto store = cast<onf::StoreOp>(copy.map.lookup(result.store.getOperation()));
    Code at(kernel, OpBuilder(store), store.getLoc());
    at.store(store.getValue(), array, indicesOf(copy, store));
    store.erase();
  }
}

/// Splits the fold, because 64 rows alone give too little parallelism.
std::optional<onf::SplitNest> Chooser::splitSample(Copy &copy, int64_t length) {
  if (!llvm::hasSingleElement(copy.nest.getBody().getOps<onf::FoldOp>()) || !onf::canSplitFold(copy.nest))
    return std::nullopt;
  return onf::splitFold(copy.nest, length);
}

SmallVector<Value> Chooser::addSampleArrays(const Twine &suffix, ArrayRef<Attribute> rowExtents) {
  SmallVector<Value> arrays;
  for (NestResult &result : results) {
    SmallVector<Attribute> extents(rowExtents);
    llvm::append_range(extents, result.extents);
    arrays.push_back(editor.addTemporary(editor.nameOf(result.store.getArray()) + suffix, extents,
                                         result.store.getValue().getType()));
  }
  return arrays;
}

SmallVector<Value> Chooser::storeSample(Copy &copy, const Twine &suffix, ArrayRef<Attribute> rowExtents) {
  SmallVector<Value> samples = addSampleArrays(suffix, rowExtents);
  storeIn(copy, samples);
  return samples;
}

/// Returns true if a value depends on a result of the fold for which `isChosen` holds.
static bool isFoundFrom(Value value, onf::FoldOp fold, llvm::function_ref<bool(unsigned)> isChosen) {
  llvm::DenseSet<Value> seen;
  SmallVector<Value> open{value};
  while (!open.empty()) {
    Value next = open.pop_back_val();
    if (!seen.insert(next).second || !next.getDefiningOp())
      continue;
    if (next.getDefiningOp() == fold && isChosen(cast<OpResult>(next).getResultNumber()))
      return true;
    if (next.getDefiningOp() != fold)
      llvm::append_range(open, next.getDefiningOp()->getOperands());
  }
  return false;
}

/// Finds the pivots of the fold, if every result is the same for any larger pivot.
void Chooser::findPivots() {
  if (!llvm::hasSingleElement(nest.getBody().getOps<onf::FoldOp>()))
    return;
  onf::FoldOp fold = *nest.getBody().getOps<onf::FoldOp>().begin();
  auto yield = cast<onf::YieldOp>(fold.getBody().front().back());
  auto accAt = [&](unsigned k) { return yield.getValues()[k].getDefiningOp<onf::AccOp>(); };
  for (unsigned k = 0; k < fold.getNumResults(); ++k) {
    onf::AccOp acc = accAt(k);
    bool isExtreme = acc.getMonoid() == Monoid::max || acc.getMonoid() == Monoid::min;
    auto refers = [&](unsigned other) { return llvm::is_contained(accAt(other).getRefs(), acc.getResult()); };
    // A result that depends on exactly one state relative to the pivot depends on the pivot.
    // Quotients of two, and sums of the pivot and a function of one, do not.
    auto isTold = [&](const NestResult &result) {
      onf::StoreOp store = result.store;
      unsigned found = 0;
      for (unsigned other = 0; other < fold.getNumResults(); ++other)
        if (other == k || refers(other))
          found += isFoundFrom(store.getValue(), fold, [&](unsigned number) { return number == other; });
      return found != 1;
    };
    if (isExtreme && acc.getType().isF32() && llvm::any_of(llvm::seq(fold.getNumResults()), refers) &&
        llvm::all_of(results, isTold))
      pivots.push_back({acc, k, Value()});
  }
}

/// Stores, for each part of a plan's fold, the pivot of all keys if the part's own is far from it,
/// otherwise the identity. Pivots are those of the unmodified nest.
void Chooser::addPivots(const onf::SplitNest &written) {
  onf::FoldOp fold = *nest.getBody().getOps<onf::FoldOp>().begin();
  int64_t length = sampleLength(/*isWritten=*/false), own = sampleLength(/*isWritten=*/true);
  auto numParts = [&](int64_t of) { return SymExpr::floorDiv(fold.getExtent() + SymExpr(of - 1), SymExpr(of)); };
  SmallVector<Attribute> names(picked.names), extents(picked.extents);
  names.insert(std::prev(names.end()), editor.text("part"));
  extents.insert(std::prev(extents.end()), editor.expr(numParts(length)));
  for (Pivot &of : pivots) {
    Type type = of.acc.getType();
    Monoid monoid = of.acc.getMonoid();
    bool isMax = monoid == Monoid::max;
    of.array = editor.addTemporary(base() + "_far_" + of.acc.getName(), extents, type);
    editor.addShortNest(names, extents, &sampled, [&](Code &code, ValueRange indices) {
      auto extreme = [&](const SymExpr &count, llvm::function_ref<Value(Code &, Value)> partAt) {
        return code.fold("q", count, [&](Code &in, Value q, Value &present) {
          Value part = partAt(in, q);
          present = in.compare(arith::CmpIPredicate::slt, part, in.extent(numParts(own)));
          SmallVector<Value> place(indices);
          place[place.size() - 2] = part;
          return SmallVector<Code::State>{{monoid, "extreme", in.load(written.states[of.result], place)}};
        })[0];
      };
      Value whole = extreme(numParts(own), [&](Code &, Value q) { return q; });
      Value here = extreme(SymExpr(length / own), [&](Code &in, Value q) {
        Value first = in.mul(indices[indices.size() - 2], in.index(length / own));
        return in.add(first, q);
      });
      Value off = isMax ? code.sub(whole, here) : code.sub(here, whole);
      Value isFar = code.compare(arith::CmpFPredicate::OGT, off, code.real(kFar));
      code.store(code.select(isFar, whole, code.real(isMax ? -INFINITY : INFINITY)), of.array, indices);
    });
  }
}

/// Makes parts that are far from the pivot of all keys use that pivot, as the whole fold would: it
/// determines how weights are rounded. The part is 0 until the nest is split.
void Chooser::takePivots(Copy &copy) {
  for (Pivot &of : pivots) {
    auto acc = dyn_cast_or_null<onf::AccOp>(copy.map.lookupOrNull(of.acc.getOperation()));
    if (!acc)
      continue;
    Code row(kernel, OpBuilder(acc->getParentOp()), nest.getLoc());
    SmallVector<Value> place(copy.nest.getBody().getArguments());
    place.insert(std::prev(place.end()), row.index(0));
    Value known = row.load(of.array, place);
    if (Value moved = copy.moved.lookup(of.result))
      known = row.sub(known, moved);
    auto yield = cast<onf::YieldOp>(acc.getValue().front().back());
    Code code(kernel, OpBuilder(yield), nest.getLoc());
    Value own = yield.getValues()[0];
    Value value = acc.getMonoid() == Monoid::max ? code.max(own, known) : code.min(own, known);
    yield->setOperand(0, value);
  }
}

SmallVector<Value> Chooser::addSample(unsigned plan) {
  SmallVector<Value> samples = addSampleArrays("_sample" + Twine(plan), picked.extents);
  Copy copy = copySample();
  if (plan)
    rewrite(copy, plan, copy.nest.getBody().getArguments());
  else
    for (auto [score, rows] : llvm::zip_equal(scores, picked.gathered))
      readSampledRows(copy, score, rows);
  storeIn(copy, samples);
  if (!plan && llvm::any_of(llvm::seq(1u, numPlans() + 1), [&](unsigned p) { return roundsSmallWeights(p); }))
    findPivots();
  if (plan && roundsSmallWeights(plan) && onf::canSplitFold(copy.nest))
    takePivots(copy);
  auto split = splitSample(copy, sampleLength(/*isWritten=*/!plan));
  if (!plan && split)
    addPivots(*split);
  else if (!plan)
    pivots.clear();
  else if (split)
    split->parts.walk([&](onf::LoadOp load) {
      if (llvm::any_of(pivots, [&](const Pivot &of) { return of.array == load.getArray(); })) {
        auto axes = split->parts.getBody().getArguments();
        load.getTermsMutable()[load.getTerms().size() - 2].assign(axes[axes.size() - 2]);
      }
    });
  return samples;
}

int64_t Chooser::sampleLength(bool isWritten) const {
  bool isSingle = options.halves && llvm::any_of(scores, [](const ScoreFold &score) {
                    return score.row.load.getResult().getType().isF32();
                  });
  return isWritten && isSingle ? kShortPart : kPartLength;
}

} // namespace moa::accuracy
