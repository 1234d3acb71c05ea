//===- Fitted.cpp - values of classes that are right on some rows ---------===//
//
// Where keys do not repeat but weights of rows are combinations of few, sums over classes are wrong
// by as much as keys are apart; a change of the classes' values that makes them right on some rows
// makes them right on all (law F11 of docs/LowRank.md). Of the nest nothing has to be known but
// that a result is linear in the values.
//
//===----------------------------------------------------------------------===//
#include "lib/Precision/LowRank.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;

namespace moa::precision {

/// Rows that tell whether weights are combinations of few, and of how many at most: 64² / Σ cos² of
/// their angles. Rows that are nearly one see little but the same few keys, as sinks, of which
/// there may be more than the pilot has.
static constexpr int64_t kAlikeRows = 64;
static constexpr double kMostAlike = 4.5, kLeastAlike = 1.03;
/// Runs of a part of which one element each is found first, where the largest of a part is looked
/// for.
static constexpr int64_t kRunsOfPart = 16;
/// Rows on which values are right: so many that a hash picks, and as many that are drawn by their
/// distance to those before, each time.
static constexpr int64_t kFitPicked = 32, kFitDraws = 3, kFitRows = (1 + kFitDraws) * kFitPicked;
/// What half of the square of a row's distance is at most, for the probability with which it is
/// drawn.
static constexpr double kMostDistance = 0x1p40;
/// What is added to the diagonal of the matrix that is inverted, of the largest sum of a row; and
/// steps of its inversion, which are four times as near each until they are near, and then square
/// what is left.
static constexpr double kRidge = 3e-6;
static constexpr int kSteps = 14;
/// What no eigenvalue that was 1 becomes less than: f32 adds noise of some 1e-6 of the largest,
/// which must not make it negative.
static constexpr double kLeastOfLarge = 0x1p-10;
/// What an estimate may be, of what it may be elsewhere.
static constexpr double kFittedShare = 0.9;
/// Of keys in a plane the estimate was this or more for two of three heads, relative and
/// component-wise: what fitted values save for the others is what is lost for these
/// (benchmarks/gpu/PRECISION.md, "Fitted values where little is left").
static constexpr double kLeastFitted = 5.5e-3;
/// Classes that products of two rows of shares are summed over at once.
static constexpr int64_t kGramPart = 64;
/// Numbers that tell hashes apart.
static constexpr int64_t kAlikeSalt = 5, kSignSalt = 6, kFitSalt = 7;

//===----------------------------------------------------------------------===//
// Whether a result is linear in values
//===----------------------------------------------------------------------===//

/// One sum, known by one result: its element along the axis, multiplied with or divided by what has
/// no such axis, where the row does not select something else.
bool KeyClasses::findFit() {
  if (sums.size() != 1 || isBounded() || !options.uses("F11"))
    return false;
  onf::AccOp acc = sums[0].acc;
  onf::FoldOp outer = score().outer;
  Value state;
  for (auto [k, other] : llvm::enumerate(outer.getBody().getOps<onf::AccOp>()))
    if (other == acc)
      state = outer.getResult(k);
  if (!state || !state.hasOneUse())
    return false;
  auto element = dyn_cast<onf::AtOp>(*state.user_begin());
  if (!element)
    return false;
  Value value = element.getResult();
  auto loop = element->getParentOfType<onf::ForOp>();
  while (value.hasOneUse()) {
    Operation *user = *value.user_begin();
    if (auto store = dyn_cast<onf::StoreOp>(user)) {
      for (auto [k, result] : llvm::enumerate(results))
        if (result.store == store && result.extents.size() == 1 && acc.getExtents().size() == 1 &&
            result.extents[0] == acc.getExtents()[0] && element.getIndices().size() == 1 &&
            element.getIndices()[0] == loop.getBody().getArgument(0) &&
            store->getParentOp() == loop && widthOf(sums[0]).getConstant())
          fit = Fit{unsigned(k), 0};
      break;
    }
    auto isOfRow = [&](Value other) {
      return other == value || !loop->isAncestor(other.getParentRegion()->getParentOp());
    };
    bool isScaled = isa<arith::ExtFOp, arith::TruncFOp>(user);
    if (isa<arith::MulFOp>(user) || (isa<arith::DivFOp>(user) && user->getOperand(0) == value))
      isScaled = llvm::count(user->getOperands(), value) == 1 &&
                 llvm::all_of(user->getOperands(), isOfRow);
    // Rows whose result is another value altogether are right as they are.
    if (auto select = dyn_cast<arith::SelectOp>(user))
      isScaled = select.getCondition() != value && llvm::all_of(user->getOperands(), isOfRow);
    if (!isScaled)
      break;
    value = user->getResult(0);
  }
  // Where less is left for the estimate, few heads take them.
  if (fit && leftOf(results[fit->result]) * kFittedShare < kLeastFitted)
    fit.reset();
  return mayFit();
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// Rows of the nest, one behind the other.
KeyClasses::RowSet
KeyClasses::rowSetOf(StringRef name, int64_t count, const Choice &where,
                     llvm::function_ref<Value(Code &, ValueRange, Value)> rowOf) {
  RowSet rows;
  std::tie(rows.names, rows.extents) = headed("r", SymExpr(count));
  rows.numbers = addArray(name, {SymExpr(count)}, Builder(kernel.getContext()).getI32Type());
  editor.addShortNest(rows.names, rows.extents, &where, [&](Code &code, ValueRange indices) {
    code.store(rowOf(code, indices.drop_back(), indices.back()), rows.numbers, indices);
  });
  llvm::SaveAndRestore<RowSet> isOf(picked, rows);
  llvm::SaveAndRestore<Choice> isAt(sampled, where);
  rows.gathered.push_back(addGathered(score(), score().row.array()));
  return rows;
}

/// A row of one of equal parts of them that a hash picks.
Value KeyClasses::hashedRow(Code &code, ValueRange head, Value part, int64_t parts, int64_t salt) {
  Value start = partStart(code, part, rows(), code.index(parts));
  Value end =
      partStart(code, code.make<arith::AddIOp>(part, code.index(1)), rows(), code.index(parts));
  Value length = code.make<arith::MaxSIOp>(code.make<arith::SubIOp>(end, start), code.index(1));
  SmallVector<Value> numbers{code.index(salt)};
  llvm::append_range(numbers, head);
  return code.make<arith::AddIOp>(start,
                                  code.make<arith::RemSIOp>(code.hash(part, numbers), length));
}

/// Σ_k x(k)·y(k) of two rows of matrices.
static Value product(Code &code, const SymExpr &extent,
                     llvm::function_ref<std::pair<Value, Value>(Code &, Value)> factors) {
  return code.fold("k", extent, [&](Code &in, Value k, Value &) {
    auto [x, y] = factors(in, k);
    return SmallVector<Code::Term>{{Monoid::add, "product", in.make<arith::MulFOp>(x, y)}};
  })[0];
}

//===----------------------------------------------------------------------===//
// Whether weights are combinations of few
//===----------------------------------------------------------------------===//

/// What the nest makes of some rows, of the pilot's keys and of signs in the place of values: as
/// many random combinations of weights as there are columns, whose angles are about those of the
/// weights. Signs of two neighbours are opposite, so that what all weights have in common is no
/// part of them.
void KeyClasses::addLikeness() {
  Builder b(kernel.getContext());
  Type f32 = b.getF32Type();
  SymExpr keys(kPilotKeys), count(kAlikeRows);
  const WeightedSum &sum = sums[fit->sum];
  SymExpr width = widthOf(sum);
  RowSet rows = rowSetOf("alike_row", kAlikeRows, tried, [&](Code &code, ValueRange head, Value r) {
    return hashedRow(code, head, r, kAlikeRows, kAlikeSalt);
  });
  Type type = sums[fit->sum].load.getResult().getType();
  Value signs =
      editor.addTemporary(base() + "_sign", {editor.text(keys), editor.text(width)}, type);
  editor.addNest(
      {editor.text("p"), editor.text("d")}, {editor.text(keys), editor.text(width)}, &tried,
      [&](Code &code, ValueRange indices) {
        Value pair = code.make<arith::FloorDivSIOp>(indices[0], code.index(2));
        Value hash = code.hash(pair, {code.index(kSignSalt), indices[1]});
        Value bit = code.make<arith::RemSIOp>(code.make<arith::FloorDivSIOp>(hash, code.index(64)),
                                              code.index(2));
        Value parity =
            code.make<arith::RemSIOp>(code.make<arith::AddIOp>(bit, indices[0]), code.index(2));
        Value isOdd = code.make<arith::CmpIOp>(arith::CmpIPredicate::eq, parity, code.index(1));
        code.store(code.make<arith::SelectOp>(isOdd, code.real(-1), code.real(1)), signs, indices);
      });
  Value sketch;
  {
    llvm::SaveAndRestore<RowSet> isOf(picked, rows);
    llvm::SaveAndRestore<Choice> isAt(sampled, tried);
    SmallVector<Value> arrays = addSampleArrays("_alike", picked.extents, f32);
    sketch = arrays[fit->result];
    Copy copy = copySample(tried);
    readSampledRows(copy, score(), picked.gathered[0]);
    auto outer = cast<onf::FoldOp>(copy.map.lookup(score().outer.getOperation()));
    outer.setExtentAttr(editor.text(keys));
    Value index = outer.getBody().getArgument(0);
    Value depthAxis =
        cast<onf::FoldOp>(copy.map.lookup(score().fold.getOperation())).getBody().getArgument(0);
    ValueRange head = copy.nest.getBody().getArguments().drop_back();
    readFrom(copy, score().key.load,
             [&](Code &code) { return code.load(pilotKeys, at(head, {index, depthAxis})); });
    auto acc = cast<onf::AccOp>(copy.map.lookup(onf::AccOp(sum.acc).getOperation()));
    readFrom(copy, sum.load,
             [&](Code &code) { return code.load(signs, {index, acc.getValue().getArgument(0)}); });
    storeIn(copy, arrays);
    splitSample(copy, kPartLength);
  }
  // Divided by their lengths.
  Value units = addArray("alike_unit", {count, width}, type);
  editor.addShortNest(rows.names, rows.extents, &tried, [&](Code &code, ValueRange indices) {
    Value square = product(code, width, [&](Code &in, Value d) {
      Value x = in.load(sketch, at(indices, {d}));
      return std::pair(x, x);
    });
    square = code.make<arith::MaximumFOp>(square, code.real(0x1p-80));
    Value inverse = code.make<arith::DivFOp>(code.real(1), code.make<math::SqrtOp>(square));
    code.loops({editor.text("d")}, {editor.text(width)}, [&](Code &in, ValueRange d) {
      Value x = in.load(sketch, at(indices, {d[0]}));
      in.store(in.make<arith::MulFOp>(x, inverse), units, at(indices, {d[0]}));
    });
  });
  alike = addArray("alike", {count}, f32);
  editor.addShortNest(rows.names, rows.extents, &tried, [&](Code &code, ValueRange indices) {
    Value total = code.fold("s", count, [&](Code &in, Value s, Value &) {
      Value cosine = product(in, width, [&](Code &deep, Value d) {
        return std::pair(deep.loadFloat(units, at(indices, {d})),
                         deep.loadFloat(units, at(indices.drop_back(), {s, d})));
      });
      return SmallVector<Code::Term>{
          {Monoid::add, "alike", in.make<arith::MulFOp>(cosine, cosine)}};
    })[0];
    code.store(total, alike, indices);
  });
}

/// Launches what `add` adds with so many rows and keys only.
void KeyClasses::runFromFit(llvm::function_ref<void()> add) {
  llvm::DenseSet<Operation *> before;
  for (auto other : kernel.getBody().getOps<onf::ForOp>())
    before.insert(other);
  add();
  SmallVector<Attribute> conditions(runs);
  for (const SymExpr &extent : {rows(), numKeys()})
    conditions.append({editor.text(extent), editor.text(SymExpr(fitFrom() - 1))});
  for (auto other : kernel.getBody().getOps<onf::ForOp>())
    if (!before.contains(other))
      other->setAttr(onf::kRunsAttr, ArrayAttr::get(kernel.getContext(), conditions));
}

Value KeyClasses::isSmooth(Code &code, ValueRange head, Value where) {
  for (const SymExpr &extent : {rows(), numKeys()}) {
    Value is = code.make<arith::CmpIOp>(arith::CmpIPredicate::sge, code.extent(extent),
                                        code.index(fitFrom()));
    where = code.make<arith::AndIOp>(where, is);
  }
  Value sum = code.fold("r", SymExpr(kAlikeRows), [&](Code &in, Value r, Value &present) {
    present = where;
    return SmallVector<Code::Term>{{Monoid::add, "alike", in.load(alike, at(head, {r}))}};
  })[0];
  auto compare = [&](arith::CmpFPredicate predicate, double number) {
    Value limit = code.real(double(kAlikeRows) * kAlikeRows / number);
    where = code.make<arith::AndIOp>(where, code.make<arith::CmpFOp>(predicate, sum, limit));
  };
  compare(arith::CmpFPredicate::OGE, kMostAlike);
  compare(arith::CmpFPredicate::OLE, kLeastAlike);
  return where;
}

/// Errors of values that are fitted are those of rows that are unlike all on which they are right,
/// so that few rows have most of them.
Value KeyClasses::tighten(Code &code, ValueRange head, Value limit) {
  if (!mayFit())
    return limit;
  return code.make<arith::SelectOp>(
      isFitted(code, head), code.make<arith::MulFOp>(limit, code.real(kFittedShare)), limit);
}

Value KeyClasses::numFitted(Code &code) {
  constexpr int64_t unit = 4 * kClassUnit;
  SymExpr rounded = SymExpr::floorDiv(numKeys() + SymExpr(kKeysPerFitted * unit - 1),
                                      SymExpr(kKeysPerFitted * unit)) *
                    SymExpr(unit);
  Value number = code.make<arith::MaxSIOp>(code.extent(rounded), code.index(kFewestFitted));
  return code.make<arith::MinSIOp>(number, code.extent(mostClasses()));
}

/// Where keys do not repeat, those belong to a class that are about as near as others are to
/// theirs.
void KeyClasses::widenRadius(Value nearest) {
  Type f32 = Builder(kernel.getContext()).getF32Type();
  SymExpr parts(kCountParts);
  Value sums = addArray("near_sum", {parts}, f32);
  auto [names, extents] = headed("p", parts);
  editor.addNest(names, extents, &smooth, [&](Code &code, ValueRange indices) {
    ValueRange head = indices.drop_back();
    Value sum = code.fold("t", SymExpr(kPilotKeys / kCountParts), [&](Code &in, Value t, Value &) {
      Value key =
          in.make<arith::AddIOp>(in.make<arith::MulIOp>(t, in.index(kCountParts)), indices.back());
      Value half = in.make<arith::SubFOp>(in.load(pilotHalves, at(head, {key})),
                                          in.load(nearest, at(head, {key})));
      return SmallVector<Code::Term>{
          {Monoid::add, "half", in.make<arith::MaximumFOp>(half, in.real(0))}};
    })[0];
    code.store(sum, sums, indices);
  });
  Value narrow = radius, sharp = sharpness;
  radius = addArray("radius", {}, f32);
  sharpness = addArray("sharpness", {}, f32);
  editor.addShortNest(headNames, headExtents, &tried, [&](Code &code, ValueRange head) {
    Value is = isFitted(code, head);
    Value sum = code.fold("p", parts, [&](Code &in, Value p, Value &present) {
      present = is;
      return SmallVector<Code::Term>{{Monoid::add, "half", in.load(sums, at(head, {p}))}};
    })[0];
    // Twice the mean of the squared distances.
    Value wide = code.make<arith::MaximumFOp>(
        code.make<arith::MulFOp>(sum, code.real(4.0 / kPilotKeys)), code.real(0x1p-100));
    code.store(code.make<arith::SelectOp>(is, wide, code.load(narrow, head)), radius, head);
    Value blunt = code.make<arith::DivFOp>(code.real(kSharpness), wide);
    code.store(code.make<arith::SelectOp>(is, blunt, code.load(sharp, head)), sharpness, head);
  });
}

//===----------------------------------------------------------------------===//
// The fit
//===----------------------------------------------------------------------===//

/// [x, r]: the result of row r if the value of class x is 1 and all others are 0.
Value KeyClasses::addShares() {
  Builder b(kernel.getContext());
  const WeightedSum &sum = sums[fit->sum];
  SymExpr width = widthOf(sum), places = fittedPlaces(), count(kFitRows);
  SymExpr blocks = SymExpr::floorDiv(places + width - SymExpr(1), width);
  // Values of so many classes as there are columns are 1 at once.
  SmallVector<Attribute> unitExtents{editor.text(places), editor.text(blocks), editor.text(width)};
  Value units =
      editor.addTemporary(base() + "_unit", unitExtents, sums[fit->sum].load.getResult().getType());
  editor.addNest(
      {editor.text("c"), editor.text("b"), editor.text("d")}, unitExtents, &tried,
      [&](Code &code, ValueRange indices) {
        Value column = code.make<arith::AddIOp>(
            code.make<arith::MulIOp>(indices[1], code.extent(width)), indices[2]);
        Value is = code.make<arith::CmpIOp>(arith::CmpIPredicate::eq, indices[0], column);
        code.store(code.make<arith::SelectOp>(is, code.real(1), code.real(0)), units, indices);
      });
  Copy copy = copySample(fitting);
  readSampledRows(copy, score(), picked.gathered[0]);
  Block &body = copy.nest.getBody().front();
  Value block = body.insertArgument(0u, b.getIndexType(), nest.getLoc());
  SmallVector<Attribute> names{editor.text("b")}, extents{editor.text(blocks)};
  llvm::append_range(names, picked.names);
  llvm::append_range(extents, picked.extents);
  copy.nest.setNamesAttr(b.getArrayAttr(names));
  copy.nest.setExtentsAttr(b.getArrayAttr(extents));
  Choice where = fitting;
  for (int64_t &axis : where.axes)
    ++axis;
  setChoice(copy.nest, where);
  ValueRange head = copy.nest.getBody().getArguments().drop_front().drop_back();
  foldOverClasses(copy, head);
  readClasses(copy, head, [&](Code &code, unsigned, Value index, Value along) {
    return code.load(units, {index, block, along});
  });
  SmallVector<Value> arrays = addSampleArrays("_unit", extents, b.getF32Type());
  storeIn(copy, arrays);
  Value found = arrays[fit->result];
  Value shares = addArray("shares", {places, count}, b.getF32Type());
  auto [placeNames, placeExtents] = headed("x", places);
  placeNames.push_back(picked.names.back());
  placeExtents.push_back(picked.extents.back());
  editor.addNest(placeNames, placeExtents, &fitting, [&](Code &code, ValueRange indices) {
    ValueRange head = indices.drop_back(2);
    Value number = indices[head.size()];
    SmallVector<Value> place{code.make<arith::FloorDivSIOp>(number, code.extent(width))};
    llvm::append_range(
        place, at(head, {indices.back(), code.make<arith::RemSIOp>(number, code.extent(width))}));
    code.store(code.load(found, place), shares, indices);
  });
  return shares;
}

/// The inverse X of A = P·Pᵀ + ridge, by Newton's iteration X ← μX·(2 − μA·X) from X = 1/λ on, λ
/// the largest sum of a row, so that eigenvalues of A·X are between ℓ = ridge/λ and 1. With μ =
/// 2/(1 + ℓ) both ends become 4ℓ/(1 + ℓ)², and no eigenvalue is more than 1; without it they would
/// be 2ℓ (Pan and Schreiber, SIAM J. Sci. Stat. Comput. 12, 1991). The second is A.
std::pair<Value, Value> KeyClasses::addInverse(Value shares) {
  Type f32 = Builder(kernel.getContext()).getF32Type();
  SymExpr count(kFitRows), places = fittedPlaces();
  SmallVector<SymExpr> square{count, count};
  auto [rowNames, rowExtents] = headed("i", count);
  auto names = rowNames, extents = rowExtents;
  names.push_back(editor.text("j"));
  extents.push_back(editor.text(count));
  // In parts, which run at once.
  SymExpr part(kGramPart), parts = SymExpr::floorDiv(places + SymExpr(kGramPart - 1), part);
  Value some = addArray("gram_part", {parts, count, count}, f32);
  auto [partNames, partExtents] = headed("p", parts);
  partNames.push_back(editor.text("i"));
  partExtents.push_back(editor.text(count));
  editor.addNest(partNames, partExtents, &fitting, [&](Code &code, ValueRange indices) {
    ValueRange head = indices.drop_back(2);
    Value p = indices[head.size()], i = indices.back(), weight, place;
    Code::Values found = code.fold(
        "x", part,
        [&](Code &in, Value x, Value &present) {
          place = in.make<arith::AddIOp>(in.make<arith::MulIOp>(p, in.index(kGramPart)), x);
          present = in.make<arith::CmpIOp>(arith::CmpIPredicate::slt, place, in.extent(places));
          weight = in.load(shares, at(head, {place, i}));
          return SmallVector<Code::Term>();
        },
        [&](Code &) {
          auto along = [&](Code &term, Value j) { return term.load(shares, at(head, {place, j})); };
          return SmallVector<Code::Sum>{
              {"product", editor.text("j"), editor.text(count), weight, along, Type()}};
        });
    code.loops({editor.text("j")}, {editor.text(count)}, [&](Code &in, ValueRange j) {
      in.store(in.make<onf::AtOp>(f32, found[0], j), some, at(indices, {j[0]}));
    });
  });
  Value gram = addArray("gram", square, f32);
  editor.addNest(names, extents, &fitting, [&](Code &code, ValueRange indices) {
    ValueRange head = indices.drop_back(2);
    Value sum = code.fold("p", parts, [&](Code &in, Value p, Value &) {
      return SmallVector<Code::Term>{
          {Monoid::add, "sum", in.load(some, at(head, {p, indices[head.size()], indices.back()}))}};
    })[0];
    code.store(sum, gram, indices);
  });
  Value rowSums = addArray("gram_sum", {count}, f32);
  editor.addShortNest(rowNames, rowExtents, &fitting, [&](Code &code, ValueRange indices) {
    code.store(code.fold("k", count,
                         [&](Code &in, Value k, Value &) {
                           return SmallVector<Code::Term>{
                               {Monoid::add, "size",
                                in.make<math::AbsFOp>(in.load(gram, at(indices, {k})))}};
                         })[0],
               rowSums, indices);
  });
  Value ridge = addArray("ridge", {}, f32), largest = addArray("gram_most", {}, f32);
  editor.addShortNest(headNames, headExtents, &tried, [&](Code &code, ValueRange head) {
    Value is = isTried(code, fitting, head);
    Code::Values found = code.fold("k", count, [&](Code &in, Value k, Value &present) {
      present = is;
      return SmallVector<Code::Term>{{Monoid::max, "most", in.load(rowSums, at(head, {k}))}};
    });
    Value most = code.make<arith::MaximumFOp>(found[0], code.real(0x1p-80));
    code.store(code.make<arith::MulFOp>(most, code.real(kRidge)), ridge, head);
    code.store(code.make<arith::MulFOp>(most, code.real(1 + kRidge)), largest, head);
  });
  // With the ridge, and the first step from 1/λ on.
  double least = kRidge;
  auto factorOf = [](double least) { return 2 / (1 + std::max(least, kLeastOfLarge)); };
  double factor = factorOf(least);
  Value matrix = addArray("matrix", square, f32), inverse = addArray("inverse", square, f32);
  editor.addNest(names, extents, &fitting, [&](Code &code, ValueRange indices) {
    ValueRange head = indices.drop_back(2);
    Value isSame =
        code.make<arith::CmpIOp>(arith::CmpIPredicate::eq, indices[head.size()], indices.back());
    Value more = code.make<arith::SelectOp>(isSame, code.load(ridge, head), code.real(0));
    Value a = code.make<arith::AddFOp>(code.load(gram, indices), more);
    code.store(a, matrix, indices);
    Value first = code.make<arith::DivFOp>(code.real(1), code.load(largest, head));
    Value two = code.make<arith::SelectOp>(isSame, code.real(2 * factor), code.real(0));
    Value x =
        code.make<arith::SubFOp>(two, code.make<arith::MulFOp>(code.make<arith::MulFOp>(a, first),
                                                               code.real(factor * factor)));
    code.store(code.make<arith::MulFOp>(x, first), inverse, indices);
  });
  for (int step = 1; step < kSteps; ++step) {
    Value before = inverse;
    inverse = addArray("inverse", square, f32);
    least = factor * least * (2 - factor * least);
    factor = factorOf(least);
    Value middle = addArray("inverse_matrix", square, f32);
    auto times = [&](Code &code, ValueRange indices, Value x, Value y) {
      ValueRange head = indices.drop_back(2);
      return product(code, count, [&](Code &in, Value k) {
        return std::pair(in.load(x, at(head, {indices[head.size()], k})),
                         in.load(y, at(head, {k, indices.back()})));
      });
    };
    editor.addNest(names, extents, &fitting, [&](Code &code, ValueRange indices) {
      code.store(times(code, indices, before, matrix), middle, indices);
    });
    editor.addNest(names, extents, &fitting, [&](Code &code, ValueRange indices) {
      Value twice = code.make<arith::MulFOp>(code.load(before, indices), code.real(2 * factor));
      Value sum = code.make<arith::MulFOp>(times(code, indices, middle, before),
                                           code.real(factor * factor));
      code.store(code.make<arith::SubFOp>(twice, sum), inverse, indices);
    });
  }
  return {inverse, matrix};
}

/// Of each of some parts of the weights the number of the largest: first of runs of a part, as
/// threads that look through a whole part would be few and wait for each of its elements.
Value KeyClasses::addLargest(StringRef name, Value weights, const SymExpr &count, int64_t parts,
                             const Choice &choice) {
  Type i32 = Builder(kernel.getContext()).getI32Type();
  SymExpr runs(kRunsOfPart), most(parts),
      longest = SymExpr::floorDiv(count, SymExpr(parts * kRunsOfPart)) + SymExpr(1);
  Value ofRuns = addArray((name + "_run").str(), {most, runs}, i32),
        ofParts = addArray(name, {most}, i32);
  auto [names, extents] = headed("p", most);
  auto runNames = names, runExtents = extents;
  runNames.push_back(editor.text("r"));
  runExtents.push_back(editor.text(runs));
  editor.addNest(runNames, runExtents, &choice, [&](Code &code, ValueRange indices) {
    ValueRange head = indices.drop_back(2);
    Value part = code.make<arith::MulIOp>(indices[head.size()], code.index(kRunsOfPart));
    Value run = code.make<arith::AddIOp>(part, indices.back());
    Value all = code.index(parts * kRunsOfPart);
    Value start = partStart(code, run, count, all),
          next = partStart(code, code.make<arith::AddIOp>(run, code.index(1)), count, all);
    Value found = largestOfPart(code, weights, head, run, count, all, longest);
    Value isEmpty = code.make<arith::CmpIOp>(arith::CmpIPredicate::sge, start, next);
    code.store(code.make<arith::SelectOp>(isEmpty, code.index(-1), found), ofRuns, indices);
  });
  editor.addNest(names, extents, &choice, [&](Code &code, ValueRange indices) {
    ValueRange head = indices.drop_back();
    auto numberAt = [&](Code &in, Value r) {
      return in.toIndex(in.load(ofRuns, at(indices, {r})));
    };
    auto weightAt = [&](Code &in, Value r) {
      return in.load(weights, at(head, {in.make<arith::MaxSIOp>(numberAt(in, r), in.index(0))}));
    };
    Value place = placeOfLargest(code, "r", runs, weightAt, [&](Code &in, Value r) {
      return in.make<arith::CmpIOp>(arith::CmpIPredicate::sge, numberAt(in, r), in.index(0));
    });
    code.store(code.make<arith::MaxSIOp>(numberAt(code, place), code.index(0)), ofParts, indices);
  });
  return ofParts;
}

/// Some rows that a hash picks, and twice as many that are drawn by how much their scores differ
/// from those of the ones before: with a probability proportional to d⁴, where d² = (q − q′)ᵀ·C·(q
/// − q′), and C = Σ (z − z̄)·(z − z̄)ᵀ over the pilot's seeds.
KeyClasses::RowSet KeyClasses::addFitRows() {
  Builder b(kernel.getContext());
  Type f32 = b.getF32Type(), rowType = score().row.load.getResult().getType();
  SymExpr seeds(kPilot), n = rows();
  auto rowAt = [&](Code &in, ValueRange head, Value row, Value k) {
    IRMapping map = headMap(head, row);
    return in.widen(loadAt(in, score().row, score().row.array(), k, map));
  };
  Value mean = addArray("seed_mean", {depth()}, f32);
  auto [meanNames, meanExtents] = headed("k", depth());
  editor.addNest(meanNames, meanExtents, &fitting, [&](Code &code, ValueRange indices) {
    Value sum = code.fold("c", seeds, [&](Code &in, Value c, Value &) {
      Value x = in.loadFloat(pilotSeeds, at(indices.drop_back(), {c, indices.back()}));
      return SmallVector<Code::Term>{{Monoid::add, "sum", x}};
    })[0];
    code.store(code.make<arith::MulFOp>(sum, code.real(1.0 / kPilot)), mean, indices);
  });
  // The seeds from there on, so that C has a trace of about 1.
  Value around = addArray("around", {seeds, depth()}, rowType),
        exactly = addArray("around", {seeds, depth()}, f32);
  auto [seedNames, seedExtents] = headed("c", seeds);
  editor.addNest(seedNames, seedExtents, &fitting, [&](Code &code, ValueRange indices) {
    ValueRange head = indices.drop_back();
    Value sum = code.fold("c", seeds, [&](Code &in, Value c, Value &) {
      return SmallVector<Code::Term>{
          {Monoid::add, "half", in.load(pilotSeedHalves, at(head, {c}))}};
    })[0];
    Value twice = code.make<arith::MaximumFOp>(code.make<arith::MulFOp>(sum, code.real(2)),
                                               code.real(0x1p-100));
    Value scale = code.make<arith::DivFOp>(code.real(1), code.make<math::SqrtOp>(twice));
    code.loops({editor.text("k")}, {editor.text(depth())}, [&](Code &in, ValueRange k) {
      Value off = in.make<arith::SubFOp>(in.loadFloat(pilotSeeds, at(indices, {k[0]})),
                                         in.load(mean, at(head, {k[0]})));
      Value scaled = in.make<arith::MulFOp>(off, scale);
      in.store(scaled, around, at(indices, {k[0]}));
      in.store(scaled, exactly, at(indices, {k[0]}));
    });
  });
  Value metric = addArray("metric", {depth(), depth()}, f32);
  auto metricNames = meanNames, metricExtents = meanExtents;
  metricNames.push_back(editor.text("l"));
  metricExtents.push_back(editor.text(depth()));
  editor.addShortNest(metricNames, metricExtents, &fitting, [&](Code &code, ValueRange indices) {
    ValueRange head = indices.drop_back(2);
    code.store(product(code, seeds,
                       [&](Code &in, Value c) {
                         return std::pair(in.load(exactly, at(head, {c, indices[head.size()]})),
                                          in.load(exactly, at(head, {c, indices.back()})));
                       }),
               metric, indices);
  });
  // ½·qᵀ·C·q.
  Value halves = addArray("spread", {n}, f32);
  auto [rowNames, rowExtents] = headed("i", n);
  editor.addNest(rowNames, rowExtents, &fitting, [&](Code &code, ValueRange indices) {
    ValueRange head = indices.drop_back();
    Value sum = code.fold("c", seeds, [&](Code &in, Value c, Value &) {
      Value like = product(in, depth(), [&](Code &deep, Value k) {
        return std::pair(rowAt(deep, head, indices.back(), k),
                         deep.loadFloat(around, at(head, {c, k})));
      });
      return SmallVector<Code::Term>{{Monoid::add, "square", in.make<arith::MulFOp>(like, like)}};
    })[0];
    code.store(code.make<arith::MulFOp>(sum, code.real(0.5)), halves, indices);
  });
  // The rows so far, and the distance of each row to the nearest of them.
  SmallVector<Value> found;
  Value nearest;
  auto numberIn = [](Code &code, Value numbers, ValueRange head, Value r) {
    return code.toIndex(code.load(numbers, at(head, {r})));
  };
  auto draw = [&](Value numbers, int64_t salt) {
    Value moved = addArray("moved_row", {SymExpr(kFitPicked), depth()}, rowType);
    auto [names, extents] = headed("r", SymExpr(kFitPicked));
    names.push_back(editor.text("k"));
    extents.push_back(editor.text(depth()));
    editor.addNest(names, extents, &fitting, [&](Code &code, ValueRange indices) {
      ValueRange head = indices.drop_back(2);
      Value row = numberIn(code, numbers, head, indices[head.size()]);
      code.store(product(code, depth(),
                         [&](Code &in, Value l) {
                           return std::pair(in.load(metric, at(head, {indices.back(), l})),
                                            rowAt(in, head, row, l));
                         }),
                 moved, indices);
    });
    Value before = nearest, weights = addArray("row_draw", {n}, f32);
    nearest = addArray("row_near", {n}, f32);
    editor.addNest(rowNames, rowExtents, &fitting, [&](Code &code, ValueRange indices) {
      ValueRange head = indices.drop_back();
      Value near = code.fold("r", SymExpr(kFitPicked), [&](Code &in, Value r, Value &) {
        Value like = product(in, depth(), [&](Code &deep, Value k) {
          return std::pair(rowAt(deep, head, indices.back(), k),
                           deep.loadFloat(moved, at(head, {r, k})));
        });
        Value half = in.load(halves, at(head, {numberIn(in, numbers, head, r)}));
        return SmallVector<Code::Term>{{Monoid::max, "near", in.make<arith::SubFOp>(like, half)}};
      })[0];
      if (before)
        near = code.make<arith::MaximumFOp>(near, code.load(before, indices));
      code.store(near, nearest, indices);
      Value half = code.make<arith::MaximumFOp>(
          code.make<arith::SubFOp>(code.load(halves, indices), near), code.real(0));
      half = code.make<arith::MinimumFOp>(half,
                                          code.real(kMostDistance)); // its third power is a number
      Value sixth = code.make<arith::MulFOp>(code.make<arith::MulFOp>(half, half), half);
      code.store(overVariate(code, sixth, head, indices.back(), salt), weights, indices);
    });
    return addLargest("row_drawn", weights, n, kFitPicked, fitting);
  };
  found.push_back(addArray("row_hashed", {SymExpr(kFitPicked)}, b.getI32Type()));
  auto [names, extents] = headed("r", SymExpr(kFitPicked));
  editor.addShortNest(names, extents, &fitting, [&](Code &code, ValueRange indices) {
    code.store(hashedRow(code, indices.drop_back(), indices.back(), kFitPicked, kFitSalt), found[0],
               indices);
  });
  for (int64_t k = 1; k <= kFitDraws; ++k)
    found.push_back(draw(found.back(), kFitSalt + k));
  return rowSetOf("fit_row", kFitRows, fitting, [&](Code &code, ValueRange head, Value r) {
    Value row;
    for (auto [k, numbers] : llvm::enumerate(found)) {
      Value place = code.make<arith::SubIOp>(r, code.index(k * kFitPicked));
      place = code.make<arith::MinSIOp>(code.make<arith::MaxSIOp>(place, code.index(0)),
                                        code.index(kFitPicked - 1));
      Value number = numberIn(code, numbers, head, place);
      Value isHere =
          row ? code.make<arith::CmpIOp>(arith::CmpIPredicate::sge, r, code.index(k * kFitPicked))
              : Value();
      row = row ? Value(code.make<arith::SelectOp>(isHere, number, row)) : number;
    }
    return row;
  });
}

/// P and (P·Pᵀ + ridge)⁻¹·R, where R is by how much results of some rows are wrong.
std::pair<Value, Value> KeyClasses::solveFit() {
  Type f32 = Builder(kernel.getContext()).getF32Type();
  SymExpr count(kFitRows), width = widthOf(sums[fit->sum]);
  RowSet rows = addFitRows();
  Value exact, rough, shares;
  {
    llvm::SaveAndRestore<RowSet> isOf(picked, rows);
    llvm::SaveAndRestore<Choice> isAt(sampled, fitting);
    exact = addSample(0, "_fit", f32)[fit->result];
    rough = addSample(1, "_fit", f32)[fit->result];
    shares = addShares();
  }
  auto [rowNames, rowExtents] = headed("i", count);
  auto names = rowNames, extents = rowExtents;
  names.push_back(editor.text("d"));
  extents.push_back(editor.text(width));
  SmallVector<SymExpr> shape{count, width};
  auto addMatrix = [&](StringRef name,
                       llvm::function_ref<Value(Code &, ValueRange, Value, Value)> make) {
    Value array = addArray(name, shape, f32);
    editor.addNest(names, extents, &fitting, [&](Code &code, ValueRange indices) {
      ValueRange head = indices.drop_back(2);
      code.store(make(code, head, indices[head.size()], indices.back()), array, indices);
    });
    return array;
  };
  Value wrong = addMatrix("wrong", [&](Code &code, ValueRange head, Value i, Value d) {
    return code.make<arith::SubFOp>(code.loadFloat(exact, at(head, {i, d})),
                                    code.loadFloat(rough, at(head, {i, d})));
  });
  auto [inverse, matrix] = addInverse(shares);
  // Of the transposed matrix: by rounding X is one of X·A = 1 rather than of A·X = 1.
  auto times = [&, count](Code &code, ValueRange head, Value x, Value i, Value y, Value d) {
    return product(code, count, [&](Code &in, Value k) {
      return std::pair(in.load(x, at(head, {k, i})), in.load(y, at(head, {k, d})));
    });
  };
  // A second time from what is left, as the inverse of f32 is not exact.
  Value first =
      addMatrix("weighed", [&, inverse = inverse](Code &code, ValueRange head, Value i, Value d) {
        return times(code, head, inverse, i, wrong, d);
      });
  Value left =
      addMatrix("left", [&, matrix = matrix](Code &code, ValueRange head, Value i, Value d) {
        return code.make<arith::SubFOp>(code.load(wrong, at(head, {i, d})),
                                        times(code, head, matrix, i, first, d));
      });
  Value weighed =
      addMatrix("weighed", [&, inverse = inverse](Code &code, ValueRange head, Value i, Value d) {
        return code.make<arith::AddFOp>(code.load(first, at(head, {i, d})),
                                        times(code, head, inverse, i, left, d));
      });
  return {shares, weighed};
}

/// The values of classes, changed by Z = Pᵀ·(P·Pᵀ + ridge)⁻¹·R, where R is by how much results of
/// some rows are wrong.
void KeyClasses::addFit() {
  Builder b(kernel.getContext());
  Type f32 = b.getF32Type();
  SymExpr count(kFitRows), width = widthOf(sums[fit->sum]), places = fittedPlaces();
  fitting = addChoiceOf("fitting");
  editor.addShortNest(headNames, headExtents, nullptr, [&](Code &code, ValueRange head) {
    Value is = code.make<arith::AndIOp>(isTried(code, sampled, head), isFitted(code, head));
    code.store(code.make<arith::SelectOp>(is, code.index(1), code.index(0)), fitting.array, head);
  });
  Value shares, weighed;
  runFromFit([&] { std::tie(shares, weighed) = solveFit(); });
  SymExpr most = classPlaces();
  Value before = classValues[fit->sum];
  Value values = addArray("fitted", {most, width}, sums[fit->sum].load.getResult().getType());
  auto [classNames, classExtents] = headed("c", most);
  editor.addNest(classNames, classExtents, &sampled, [&](Code &code, ValueRange indices) {
    ValueRange head = indices.drop_back();
    Value isThere = code.make<arith::CmpIOp>(arith::CmpIPredicate::slt, indices.back(),
                                             code.toIndex(code.load(all, head)));
    isThere = code.make<arith::AndIOp>(isThere, isTried(code, fitting, head));
    Value place = code.make<arith::MinSIOp>(
        indices.back(), code.make<arith::SubIOp>(code.extent(places), code.index(1)));
    Value share, row;
    Code::Values change = code.fold(
        "r", count,
        [&](Code &in, Value r, Value &present) {
          present = isThere;
          share = in.load(shares, at(head, {place, r}));
          row = r;
          return SmallVector<Code::Term>();
        },
        [&](Code &) {
          auto along = [&](Code &term, Value d) { return term.load(weighed, at(head, {row, d})); };
          return SmallVector<Code::Sum>{
              {"change", editor.text("d"), editor.text(width), share, along, Type()}};
        });
    code.loops({editor.text("d")}, {editor.text(width)}, [&](Code &in, ValueRange d) {
      Value sum = in.make<onf::AtOp>(f32, change[0], d);
      in.store(in.make<arith::AddFOp>(in.loadFloat(before, at(indices, {d[0]})), sum), values,
               at(indices, {d[0]}));
    });
  });
  classValues[fit->sum] = values;
}

} // namespace moa::precision
