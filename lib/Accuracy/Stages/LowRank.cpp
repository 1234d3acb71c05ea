//===- LowRank.cpp - the pass onf-low-rank --------------------------------===//
#include "lib/Accuracy/Stages/LowRank.h"
#include "lib/Accuracy/Passes.h"
#include "lib/Accuracy/Variants/Exponents.h"
#include "lib/Analysis/Jumps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace moa {
#define GEN_PASS_DEF_LOWRANKPASS
#include "lib/Accuracy/AccuracyPasses.h.inc"
} // namespace moa

using namespace mlir;

namespace moa::accuracy {

/// Clusters per estimated distinct key, and the fewest clusters.
static constexpr int64_t kClustersPerKey = 4, kFewestClusters = 512;
/// The number of clusters is a multiple of this, unless it is the largest.
static constexpr int64_t kRoundedClusters = 256;
/// A key is an outlier from this multiple of the squared radius on.
static constexpr double kFar = 4;
/// Parts of the keys in which outliers are counted in parallel, and how many parts the first step
/// of a search skips at once.
static constexpr int64_t kOutlierParts = 2048;
static constexpr int64_t kOutlierRun = 32;
/// Keys farther from the first seeds than this multiple of the squared radius are equally likely to
/// be drawn.
static constexpr double kFarthest = 16;
/// One in kFirst clusters is chosen by a hash, the others by their distance to these.
static constexpr int64_t kFirst = 3;
static constexpr int64_t kRadiusRows = 256;

//===----------------------------------------------------------------------===//
// The form of the nest
//===----------------------------------------------------------------------===//

/// Collects weighted sums. Sums count a cluster once per member, extremes and truth values once.
bool KeyClusters::findSums(std::string &why) {
  onf::FoldOp outer = score().outer;
  Value key = outer.getBody().getArgument(0);
  Value row = nest.getBody().front().getArguments().back();
  auto refuse = [&](onf::AccOp acc, const Twine &reason) {
    why = ("the state '" + acc.getName() + "' " + reason).str();
    return false;
  };
  for (auto acc : outer.getBody().getOps<onf::AccOp>()) {
    bool isSum = acc.getMonoid() == Monoid::add, isTruth = acc.getResult().getType().isInteger(1);
    if (isTruth && (acc.getMonoid() == Monoid::or_ || acc.getMonoid() == Monoid::and_) && acc.getExtents().empty())
      continue; // idempotent
    if (!isSum && acc.getMonoid() != Monoid::max && acc.getMonoid() != Monoid::min)
      return refuse(acc, "is neither a sum nor an extreme");
    if (!acc.getOthers().empty() || (!acc.getRefs().empty() && acc.getCombine() != ScalarFn::mul))
      return refuse(acc, "is not rescaled by a factor");
    if (acc.getExtents().empty()) {
      if (!acc.getResult().getType().isF32())
        return refuse(acc, "is not computed in f32");
      continue;
    }
    auto array = cast<ArrayType>(acc.getResult().getType());
    auto product = getTerm(acc).getDefiningOp<arith::MulFOp>();
    constexpr const char *kNoElement = "multiplies with no element of an array along its axis";
    if (!isSum || array.getRank() != 1 || !array.getElementType().isF32() || !product)
      return refuse(acc, kNoElement);
    Value column = acc.getValue().getArgument(0);
    onf::LoadOp load;
    Value along;
    for (Value factor : {product.getLhs(), product.getRhs()})
      if (onf::LoadOp found = getElement(factor); found && llvm::is_contained(found.getTerms(), column))
        load = found, along = factor;
    if (!load || !load.getResult().hasOneUse() || !isa<FloatType>(load.getResult().getType()))
      return refuse(acc, kNoElement);
    unsigned keys = 0;
    bool isFree = kernel.isInput(cast<BlockArgument>(load.getArray()).getArgNumber());
    for (Value term : load.getTerms()) {
      keys += term == key;
      Operation *op = term.getDefiningOp();
      llvm::SmallPtrSet<Value, 8> indices;
      if (term != key && term != column)
        isFree &= collectIndices(term, indices) && !indices.contains(row) && !(op && outer->isAncestor(op));
    }
    if (keys != 1 || !isFree)
      return refuse(acc, "reads an array at an index that is none of its own");
    // Weights times members are rounded to this type.
    if (load.getResult().getType().isF16())
      return refuse(acc, "multiplies elements of f16, whose range is too small for weights times members");
    sums.push_back({acc, load, along});
  }
  return true;
}

/// Returns true if the fold uses its index only for the score and the weighted sums.
bool KeyClusters::checkUses(std::string &why) {
  onf::FoldOp outer = score().outer;
  for (Operation *user : outer.getBody().getArgument(0).getUsers()) {
    bool isKnown = user == score().key.load.getOperation() ||
                   llvm::any_of(sums, [&](ClusterSum &sum) { return sum.load == user; });
    if (isKnown)
      continue;
    why = "terms of the fold over '" + outer.getName().str() + "' depend on more of a key than its products with rows";
    return false;
  }
  return true;
}

bool KeyClusters::plan(std::string &why) {
  for (StringRef law : {"F2", "F9"})
    if (!options.uses(law)) {
      why = ("law " + law + ", of clusters of keys, is disabled").str();
      return false;
    }
  scores = findScores(nest, onDemand);
  auto folds = nest.getBody().getOps<onf::FoldOp>();
  if (scores.size() != 1 || !llvm::hasSingleElement(folds)) {
    why = scores.empty() ? whyNoScores()
                         : "it has several folds or several sums of products of rows, but clusters need one of each";
    return false;
  }
  bool isOfHead = llvm::all_of(score().key.load.getTerms(), [&](Value term) {
    Operation *op = term.getDefiningOp();
    return !op || !score().outer->isAncestor(op);
  });
  if (!score().keyAxis || !isOfHead) {
    why = "the index of the fold is no axis of the keys";
    return false;
  }
  if (!score().outer.getBody().getOps<onf::GuardOp>().empty()) {
    why = "the fold over '" + score().outer.getName().str() + "' is masked, but clusters need keys that all rows see";
    return false;
  }
  if (!findSums(why) || !checkUses(why) || !findResults(why))
    return false;
  auto isShort = [&](const SymExpr &extent) { return extent.getConstant() && *extent.getConstant() < fewest; };
  if (isShort(rows()) || isShort(numKeys())) {
    why = "rows or keys are known to be fewer than " + std::to_string(fewest);
    return false;
  }
  SmallVector<Value> approximate{score().fold.getResult(0)};
  for (Value state : score().outer.getResults()) // truth values follow from the scores, or are exact
    if (!state.getType().isInteger(1))
      approximate.push_back(state);
  if (auto jump = findJump(approximate)) {
    why = describeJump(*jump);
    return false;
  }
  findHead();
  return true;
}

SmallVector<std::string> KeyClusters::listLaws(unsigned) {
  std::string keys = kernel.getArrayName(score().key.array().getArgNumber()).str(), values;
  for (ClusterSum &sum : sums)
    values += (values.empty() ? "" : " and ") + editor.nameOf(sum.load.getArray()).str();
  SmallVector<std::string> laws{
      "F2: the fold over keys runs over clusters, with the number of members as a factor of sums",
      "F9: a key has a share in each cluster that is near" +
          (values.empty() ? "" : ", and clusters the sums of " + values + " by shares") + "; outliers of " + keys +
          " remain"};
  return laws;
}

std::string KeyClusters::describe(unsigned) {
  std::string text = kernel.getArrayName(score().key.array().getArgNumber()).str();
  for (ClusterSum &sum : sums)
    text += " and " + editor.nameOf(sum.load.getArray()).str();
  return text + " in up to " + mostClusters().str() + " clusters of similar keys, and up to " + mostPlaces().str() +
         " with outliers";
}

//===----------------------------------------------------------------------===//
// Arrays per head
//===----------------------------------------------------------------------===//

void KeyClusters::addNestOver(StringRef name, const SymExpr &extent, const Choice &where,
                              llvm::function_ref<void(Code &, ValueRange)> body) {
  SmallVector<Attribute> names(headNames), extents(headExtents);
  names.push_back(editor.text(name));
  extents.push_back(editor.expr(extent));
  editor.addNest(names, extents, &where, body);
}

Value KeyClusters::addArray(StringRef suffix, ArrayRef<SymExpr> inner, Type element) {
  SmallVector<Attribute> extents(headExtents);
  for (const SymExpr &extent : inner)
    extents.push_back(editor.expr(extent));
  return editor.addTemporary(base() + "_" + suffix, extents, element);
}

Value KeyClusters::loadKey(Code &code, ValueRange head, Value key, Value k) {
  IRMapping map = mapIndices(head, Value());
  map.map(score().outer.getBody().getArgument(0), key);
  return loadAt(code, score().key, score().key.array(), k, map);
}

Value KeyClusters::partStart(Code &code, Value part, const SymExpr &count, Value parts) {
  Value product = code.mul(part, code.extent(count));
  return code.floorDiv(product, parts);
}

Value KeyClusters::hashedKey(Code &code, ValueRange head, Value part, Value parts, int64_t salt) {
  Value start = partStart(code, part, numKeys(), parts);
  Value end = partStart(code, code.add(part, code.index(1)), numKeys(), parts);
  Value least = code.index(1), length = code.max(code.sub(end, start), least);
  SmallVector<Value> numbers{code.index(salt)};
  llvm::append_range(numbers, head);
  Value place = code.add(start, code.make<arith::RemSIOp>(code.hash(part, numbers), length));
  Value one = code.index(1), last = code.sub(code.extent(numKeys()), one);
  return code.min(place, last);
}

Value KeyClusters::numClusters(Code &code, ValueRange head) { return code.toIndex(code.load(clusterCount, head)); }

Value KeyClusters::numFirst(Code &code, ValueRange head) {
  Value divisor = code.index(kFirst);
  return code.floorDiv(numClusters(code, head), divisor);
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// Stores |factors · row|² of some rows, with the factors of the score in exponents.
Value KeyClusters::addMagnitudes(StringRef name, const SymExpr &extent, const Choice &where,
                                 llvm::function_ref<Value(Code &, Value)> rowOf) {
  Value array = addArray(name, {extent}, editor.f32());
  addNestOver("i", extent, where, [&](Code &code, ValueRange indices) {
    IRMapping map = mapIndices(indices.drop_back(), rowOf(code, indices.back()));
    Value square = code.fold("k", depth(), [&](Code &in, Value k, Value &) {
      Value x = in.widen(loadAt(in, score().row, score().row.array(), k, map));
      return SmallVector<Code::State>{{Monoid::add, "square", in.mul(x, x)}};
    })[0];
    auto noneOfKeys = [](const ExponentPath &, unsigned) -> Value {
      llvm_unreachable("terms know no more of a key (checkUses)");
    };
    code.store(timesFactors(code, square, score(), nest, map, noneOfKeys), array, indices);
  });
  return array;
}

Value KeyClusters::loadMagnitude(Code &code, IRMapping &map) {
  SmallVector<Value> indices;
  for (Value argument : nest.getBody().getArguments())
    indices.push_back(map.lookup(argument));
  return code.load(rowMagnitudes, indices);
}

/// Stores the square of the radius ρ of a cluster. Keys at distance ρ in a random direction change
/// scores of a row by |factor · row|·ρ / √D in the root mean square. ρ makes this change equal to
/// the tolerance.
void KeyClusters::addRadius() {
  double allowed = INFINITY;
  for (NestResult &result : results)
    allowed = std::min(allowed, result.allowed.epsilon);
  SymExpr count(kRadiusRows);
  Value magnitudes = addMagnitudes(
      "reach", count, tried, [&](Code &code, Value p) { return partStart(code, p, rows(), code.index(kRadiusRows)); });
  Type f32 = editor.f32();
  radius = addArray("radius", {}, f32);
  sharpness = addArray("sharpness", {}, f32);
  editor.addShortNest(headNames, headExtents, &tried, [&](Code &code, ValueRange head) {
    Value sum = code.fold("p", count, [&](Code &in, Value p, Value &) {
      return SmallVector<Code::State>{{Monoid::add, "sum", in.load(magnitudes, placed(head, {p}))}};
    })[0];
    Value least = code.max(sum, code.real(0x1p-100));
    double depthOf = *depth().getConstant();
    Value square = code.div(code.real(allowed * allowed * depthOf * kRadiusRows), least);
    code.store(square, radius, head);
    code.store(code.div(code.real(kSharpness), square), sharpness, head);
  });
}

//===----------------------------------------------------------------------===//
// Seeds and distances
//===----------------------------------------------------------------------===//

Value KeyClusters::addSeeds(StringRef suffix, const SymExpr &count, const Choice &where,
                            llvm::function_ref<Value(Code &, ValueRange, Value)> keyOf) {
  Value seeds = addArray(suffix, {count, depth()}, score().key.load.getResult().getType());
  addNestOver("c", count, where, [&](Code &code, ValueRange indices) {
    Value key = keyOf(code, indices.drop_back(), indices.back());
    code.loops({editor.text("k")}, {editor.expr(depth())}, [&](Code &in, ValueRange k) {
      in.store(loadKey(in, indices.drop_back(), key, k[0]), seeds, placed(indices, {k[0]}));
    });
  });
  return seeds;
}

Value KeyClusters::addHalfSquares(Value seeds, const SymExpr &count, const Choice &where) {
  Value halves = addArray("half", {count}, editor.f32());
  addNestOver("c", count, where, [&](Code &code, ValueRange indices) {
    Value square = code.fold("k", depth(), [&](Code &in, Value k, Value &) {
      Value x = seeds ? in.loadFloat(seeds, placed(indices, {k}))
                      : in.widen(loadKey(in, indices.drop_back(), indices.back(), k));
      return SmallVector<Code::State>{{Monoid::add, "square", in.mul(x, x)}};
    })[0];
    code.store(code.mul(square, code.real(0.5)), halves, indices);
  });
  return halves;
}

/// Returns Σ_k seed(k) · key(k); null `keys` are those of the nest.
Value KeyClusters::likeness(Code &code, ValueRange head, Value seeds, Value seed, Value keys, Value key,
                            bool seedFirst) {
  return code.fold("k", depth(), [&](Code &in, Value k, Value &) {
    Value x = in.loadFloat(seeds, placed(head, {seed, k}));
    Value y = keys ? in.loadFloat(keys, placed(head, {key, k})) : in.widen(loadKey(in, head, key, k));
    if (!seedFirst)
      std::swap(x, y);
    return SmallVector<Code::State>{{Monoid::add, "like", in.mul(x, y)}};
  })[0];
}

/// Stores max_c (z_c·k_j − |z_c|²/2) = (|k_j|² − d²)/2, with d the distance to the nearest seed.
Value KeyClusters::addNearest(Value keys, Value seeds, Value halves, const SymExpr &count, const SymExpr &seedCount,
                              const Choice &where, Value (KeyClusters::*ends)(Code &, ValueRange)) {
  Value nearest = addArray("near", {count}, editor.f32());
  addNestOver("j", count, where, [&](Code &code, ValueRange indices) {
    ValueRange head = indices.drop_back();
    Value end = ends ? (this->*ends)(code, head) : Value();
    Value most = code.fold("c", seedCount, [&](Code &in, Value c, Value &present) {
      if (end)
        present = in.compare(arith::CmpIPredicate::slt, c, end);
      Value like = likeness(in, head, seeds, c, keys, indices.back(), /*seedFirst=*/false);
      Value near = in.sub(like, in.load(halves, placed(head, {c})));
      return SmallVector<Code::State>{{Monoid::max, "near", near}};
    })[0];
    code.store(most, nearest, indices);
  });
  return nearest;
}

//===----------------------------------------------------------------------===//
// The number of clusters
//===----------------------------------------------------------------------===//

/// Stores, per part of the pilot's keys, how many are within `radii` squared radii of a seed.
Value KeyClusters::addNearCounts(Value nearest, double radii, const Choice &where) {
  SymExpr parts(kCountParts);
  Value nearCounts = addArray("near_count", {parts}, editor.f32());
  addNestOver("p", parts, where, [&](Code &code, ValueRange indices) {
    ValueRange head = indices.drop_back();
    Value factor = code.real(0.5 * radii), limit = code.mul(code.load(radius, head), factor);
    Value sum = code.fold("t", SymExpr(kPilotKeys / kCountParts), [&](Code &in, Value t, Value &) {
      // Adjacent threads read adjacent keys.
      Value key = in.add(in.mul(t, in.index(kCountParts)), indices.back());
      Value ofSeed = in.load(nearest, placed(head, {key}));
      Value half = in.sub(in.load(pilotHalves, placed(head, {key})), ofSeed);
      Value isNear = in.compare(arith::CmpFPredicate::OLE, half, limit);
      Value none = in.real(0), one = in.real(1);
      return SmallVector<Code::State>{{Monoid::add, "count", in.select(isNear, one, none)}};
    })[0];
    code.store(sum, nearCounts, indices);
  });
  return nearCounts;
}

Value KeyClusters::addCounts(Code &code, ValueRange head, Value partCounts, Value where) {
  return code.fold("p", SymExpr(kCountParts), [&](Code &in, Value p, Value &present) {
    present = where;
    return SmallVector<Code::State>{{Monoid::add, "count", in.load(partCounts, placed(head, {p}))}};
  })[0];
}

/// Estimates the number of distinct keys from the share of pilot keys near a seed.
void KeyClusters::addPilot() {
  SymExpr pilot(kPilot), count(kPilotKeys);
  auto hashed = [&](int64_t parts, int64_t salt) {
    return
        [=, this](Code &code, ValueRange head, Value c) { return hashedKey(code, head, c, code.index(parts), salt); };
  };
  pilotSeeds = addSeeds("pilot", pilot, tried, hashed(kPilot, 1));
  pilotSeedHalves = addHalfSquares(pilotSeeds, pilot, tried);
  pilotKeys = addSeeds("pilot_key", count, tried, hashed(kPilotKeys, 2));
  pilotHalves = addHalfSquares(pilotKeys, count, tried);
  Value nearest = addNearest(pilotKeys, pilotSeeds, pilotSeedHalves, count, pilot, tried, nullptr);
  Value nearCounts = addNearCounts(nearest, 1, tried);
  promising = addHeadChoice("_promising");
  clusterCount = addArray("classes", {}, editor.i32());
  editor.addShortNest(headNames, headExtents, nullptr, [&](Code &code, ValueRange head) {
    Value runs = isTried(code, tried, head);
    Value near = addCounts(code, head, nearCounts, runs);
    // Of r equally frequent keys, a share of 1 − e^{−kPilot/r} is near a seed.
    Value nearShare = code.mul(near, code.real(1.0 / kPilotKeys));
    Value far = code.sub(code.real(1), nearShare), farthest = code.real(1 - 1.0 / kPilotKeys);
    far = code.min(code.max(far, code.real(1.0 / kPilotKeys)), farthest);
    Value logarithm = code.make<math::LogOp>(far);
    Value needed = code.div(code.real(-double(kClustersPerKey) * kPilot), logarithm);
    Value most = code.toReal(code.extent(SymExpr::floorDiv(numKeys(), SymExpr(kKeysPerCluster))));
    needed = code.mul(needed, code.real(1.0 / kRoundedClusters));
    needed = code.make<math::FloorOp>(code.add(needed, code.real(0.5)));
    needed = code.mul(needed, code.real(kRoundedClusters));
    // Up to 1.5 times the limit is tried; the sample decides then.
    Value fits = code.compare(arith::CmpFPredicate::OLE, needed, code.mul(most, code.real(1.5)));
    auto whole = arith::FPToSIOp::create(code.b, code.loc, editor.i32(), code.min(needed, most));
    Value number = code.toIndex(whole);
    Value mostHere = code.extent(mostClusters());
    Value least = code.min(code.index(kFewestClusters), mostHere);
    number = code.max(number, least);
    code.store(number, clusterCount, head);
    Value is = code.both(runs, fits);
    code.store(code.toNumber(is), promising.array, head);
  });
}

//===----------------------------------------------------------------------===//
// Clusters
//===----------------------------------------------------------------------===//

/// Returns the weight over an exponential variate: the largest is drawn in proportion to the
/// weight.
static Value overVariate(Code &code, Value weight, ValueRange head, Value number) {
  Value half = code.real(0.5), hash = code.add(code.toReal(code.hash(number, head)), half);
  Value uniform = code.mul(hash, code.real(1.0 / (Code::kHashes + 1)));
  Value variate = code.make<arith::NegFOp>(code.make<math::LogOp>(uniform));
  return code.div(weight, code.max(variate, code.real(0x1p-30)));
}

/// Returns the last index of the largest weight in a part of at most `longest` weights, or the
/// first index of the part if all are NaN.
Value KeyClusters::largestOfPart(Code &code, Value weights, ValueRange head, Value part, const SymExpr &count,
                                 Value parts, const SymExpr &longest) {
  Value start = partStart(code, part, count, parts);
  Value end = partStart(code, code.add(part, code.index(1)), count, parts);
  Value one = code.index(1), last = code.sub(code.extent(count), one);
  auto numberAt = [&](Code &in, Value t) { return in.min(in.add(start, t), last); };
  Value length = code.sub(end, start);
  auto weightAt = [&](Code &in, Value t) { return in.load(weights, placed(head, {numberAt(in, t)})); };
  auto isInside = [&](Code &in, Value t) { return in.compare(arith::CmpIPredicate::slt, t, length); };
  Value most = code.fold("t", longest, [&](Code &in, Value t, Value &present) {
    present = isInside(in, t);
    return SmallVector<Code::State>{{Monoid::max, "most", weightAt(in, t)}};
  })[0];
  Value where = code.fold("t", longest, [&](Code &in, Value t, Value &present) {
    Value is = in.compare(arith::CmpFPredicate::OEQ, weightAt(in, t), most);
    present = in.both(isInside(in, t), is);
    return SmallVector<Code::State>{{Monoid::max, "where", t}};
  })[0];
  return numberAt(code, code.max(where, code.index(0)));
}

/// Draws a key of each part in proportion to min(d², limit)², with d the distance to the nearest
/// seed.
Value KeyClusters::addDrawn(Value nearest) {
  Value weights = addArray("draw", {numKeys()}, editor.f32());
  addNestOver("j", numKeys(), promising, [&](Code &code, ValueRange indices) {
    Value ofSeed = code.load(nearest, indices);
    Value half = code.sub(code.load(keyHalves, indices), ofSeed), factor = code.real(0.5 * kFarthest);
    Value most = code.mul(code.load(radius, indices.drop_back()), factor);
    half = code.min(code.max(half, code.real(0)), most);
    Value fourth = code.mul(half, half);
    code.store(overVariate(code, fourth, indices.drop_back(), indices.back()), weights, indices);
  });
  Value drawn = addArray("drawn", {mostClusters()}, editor.i32());
  addNestOver("c", mostClusters(), promising, [&](Code &code, ValueRange indices) {
    ValueRange head = indices.drop_back();
    Value firsts = numFirst(code, head), parts = code.sub(numClusters(code, head), firsts);
    SymExpr longest = SymExpr::floorDiv(numKeys(), SymExpr(kFewestClusters / 2)) + SymExpr(2 * kKeysPerCluster);
    code.store(largestOfPart(code, weights, head, indices.back(), numKeys(), parts, longest), drawn, indices);
  });
  return drawn;
}

Value KeyClusters::isOutlier(Code &in, ValueRange head, Value key, Value count, Value shares) {
  Value last = in.sub(count, in.index(1));
  Value share = in.load(shares, placed(head, {in.min(key, last)}));
  Value is = in.compare(arith::CmpFPredicate::OEQ, share, in.real(0));
  return in.both(in.compare(arith::CmpIPredicate::slt, key, count), is);
}

Value KeyClusters::roomForOutliers(Code &code, ValueRange head) {
  Value places = code.extent(mostPlaces());
  return code.sub(places, numClusters(code, head));
}

/// Lists the outliers, keys without a share in any cluster, as clusters of their own. A head is
/// sampled (`sampled`) if there is room for all outliers. Part p has the keys p, p + kOutlierParts,
/// …, so that adjacent threads read adjacent keys.
void KeyClusters::addOutliers(Value shares, const Choice &likely) {
  SymExpr parts(kOutlierParts), longest = SymExpr::floorDiv(numKeys(), parts) + SymExpr(1);
  Value outlierCounts = addArray("lost", {parts}, editor.i32());
  Value before = addArray("lost_before", {parts}, editor.i32());
  auto keyOf = [](Code &in, Value t, Value part) { return in.add(in.mul(t, in.index(kOutlierParts)), part); };
  addNestOver("p", parts, likely, [&](Code &code, ValueRange indices) {
    Value count = code.extent(numKeys());
    Value sum = code.fold("t", longest, [&](Code &in, Value t, Value &present) {
      present = isOutlier(in, indices.drop_back(), keyOf(in, t, indices.back()), count, shares);
      return SmallVector<Code::State>{{Monoid::add, "lost", in.index(1)}};
    })[0];
    code.store(sum, outlierCounts, indices);
  });
  using Where = llvm::function_ref<Value(Code &, Value)>;
  auto sumOver = [&](Code &code, ValueRange head, Where where) {
    return code.fold("q", parts, [&](Code &in, Value q, Value &present) {
      present = where(in, q);
      return SmallVector<Code::State>{{Monoid::add, "lost", in.toIndex(in.load(outlierCounts, placed(head, {q})))}};
    })[0];
  };
  addNestOver("p", parts, likely, [&](Code &code, ValueRange indices) {
    Value sum = sumOver(code, indices.drop_back(),
                        [&](Code &in, Value q) { return in.compare(arith::CmpIPredicate::slt, q, indices.back()); });
    code.store(sum, before, indices);
  });
  sampled = addHeadChoice("_try");
  all = addArray("all", {}, editor.i32());
  editor.addShortNest(headNames, headExtents, nullptr, [&](Code &code, ValueRange head) {
    Value runs = isTried(code, likely, head);
    Value number = sumOver(code, head, [&](Code &, Value) { return runs; });
    // Other heads have no number of clusters.
    Value noRoom = code.index(0), room = code.select(runs, roomForOutliers(code, head), noRoom);
    Value noClusters = code.index(0);
    Value clustersHere = code.select(runs, numClusters(code, head), noClusters);
    Value fits = code.compare(arith::CmpIPredicate::sle, number, room);
    code.store(code.add(clustersHere, number), all, head);
    Value is = code.both(runs, fits);
    code.store(code.toNumber(is), sampled.array, head);
  });
  // Finds outlier s: the last part with at most s before it, then the key by its rank there.
  SymExpr most = mostPlaces();
  outlierKeys = addArray("odd", {most}, editor.i32());
  addNestOver("s", most, sampled, [&](Code &code, ValueRange indices) {
    ValueRange head = indices.drop_back();
    Value count = code.extent(numKeys()), number = indices.back();
    Value clustersHere = numClusters(code, head);
    Value total = code.sub(code.toIndex(code.load(all, head)), clustersHere);
    Value isThere = code.compare(arith::CmpIPredicate::slt, number, total);
    // First by runs of parts, then within one; counts before parts do not decrease.
    auto lastOf = [&](StringRef name, int64_t length, int64_t step, Value first) {
      Value last = code.fold(name, SymExpr(length), [&](Code &in, Value k, Value &present) {
        Value part = in.mul(k, in.index(step));
        if (first)
          part = in.add(first, part);
        Value start = in.toIndex(in.load(before, placed(head, {part})));
        present = in.both(isThere, in.compare(arith::CmpIPredicate::sle, start, number));
        return SmallVector<Code::State>{{Monoid::max, "part", part}};
      })[0];
      return code.max(last, code.index(0));
    };
    static_assert(kOutlierParts % kOutlierRun == 0);
    Value part = lastOf("run", kOutlierParts / kOutlierRun, kOutlierRun, Value());
    part = lastOf("p", kOutlierRun, 1, part);
    Value rank = code.sub(number, code.toIndex(code.load(before, placed(head, {part}))));
    Value found = code.fold("t", longest, [&](Code &in, Value t, Value &present) {
      Value key = keyOf(in, t, part);
      Value earlier = in.fold("u", longest, [&](Code &deep, Value u, Value &isCounted) {
        Value isEarlier = deep.compare(arith::CmpIPredicate::slt, u, t);
        Value other = isOutlier(deep, head, keyOf(deep, u, part), count, shares);
        isCounted = deep.both(deep.both(isThere, isEarlier), other);
        return SmallVector<Code::State>{{Monoid::add, "earlier", deep.index(1)}};
      })[0];
      Value isIt = in.compare(arith::CmpIPredicate::eq, earlier, rank);
      Value isOutlierHere = isOutlier(in, head, key, count, shares);
      present = in.both(in.both(isThere, isIt), isOutlierHere);
      return SmallVector<Code::State>{{Monoid::max, "key", key}};
    })[0];
    code.store(code.max(found, code.index(0)), outlierKeys, indices);
  });
}

/// Returns e^{−s·d²/2} for the distance d of key j to κ_c.
Value KeyClusters::nearness(Code &in, ValueRange head, Value c, Value j, Value halves, bool seedFirst) {
  Value like = likeness(in, head, clusterKeys, c, Value(), j, seedFirst);
  Value ofKey = in.load(keyHalves, placed(head, {j}));
  Value less = in.sub(in.sub(like, in.load(halves, placed(head, {c}))), ofKey);
  return in.make<math::ExpOp>(in.mul(less, in.load(sharpness, head)));
}

/// Chooses the keys κ_c, and divides each key j among the clusters: the share of cluster c is
/// e^{−s·d²/2} / Σ_c′ e^{−s·d′²/2}.
void KeyClusters::addClusters() {
  keyHalves = addHalfSquares(Value(), numKeys(), promising);
  SymExpr firsts = SymExpr::floorDiv(mostClusters(), SymExpr(kFirst));
  auto hashed = [&](Code &code, ValueRange head, Value c) { return hashedKey(code, head, c, numFirst(code, head), 3); };
  Value first = addSeeds("seed", firsts, promising, hashed);
  Value firstHalves = addHalfSquares(first, firsts, promising);
  Value nearest = addNearest(Value(), first, firstHalves, numKeys(), firsts, promising, &KeyClusters::numFirst);
  Value drawn = addDrawn(nearest);
  clusterKeys = addSeeds("key", mostClusters(), promising, [&](Code &code, ValueRange head, Value c) {
    Value end = numFirst(code, head), place = code.sub(c, end);
    Value isFirst = code.compare(arith::CmpIPredicate::slt, c, end);
    Value early = hashed(code, head, code.min(c, code.sub(end, code.index(1))));
    Value late = code.toIndex(code.load(drawn, placed(head, {code.max(place, code.index(0))})));
    return code.select(isFirst, early, late);
  });
  Value halves = addHalfSquares(clusterKeys, mostClusters(), promising);
  // There are too few clusters if too many pilot keys are far from all: the head stays unmodified.
  Value nearer = addNearest(pilotKeys, clusterKeys, halves, SymExpr(kPilotKeys), mostClusters(), promising,
                            &KeyClusters::numClusters);
  Value nearCounts = addNearCounts(nearer, kFar, promising);
  Choice likely = addHeadChoice("_likely");
  editor.addShortNest(headNames, headExtents, nullptr, [&](Code &code, ValueRange head) {
    Value runs = isTried(code, promising, head);
    Value near = addCounts(code, head, nearCounts, runs);
    Value noRoom = code.index(0), room = code.select(runs, roomForOutliers(code, head), noRoom);
    Value allKeys = code.toReal(code.extent(numKeys()));
    Value part = code.div(code.toReal(room), allKeys);
    Value most = code.mul(part, code.real(kPilotKeys));
    Value far = code.sub(code.real(kPilotKeys), near);
    Value enough = code.compare(arith::CmpFPredicate::OLE, far, most);
    Value is = code.both(runs, enough);
    code.store(code.toNumber(is), likely.array, head);
  });
  Value inverse = addArray("share", {numKeys()}, editor.f32());
  addNestOver("j", numKeys(), likely, [&](Code &code, ValueRange indices) {
    ValueRange head = indices.drop_back();
    Value end = numClusters(code, head);
    Value total = code.fold("c", mostClusters(), [&](Code &in, Value c, Value &present) {
      present = in.compare(arith::CmpIPredicate::slt, c, end);
      return SmallVector<Code::State>{
          {Monoid::add, "total", nearness(in, head, c, indices.back(), halves, /*seedFirst=*/false)}};
    })[0];
    // Outliers and NaN have no share.
    Value isAny = code.compare(arith::CmpFPredicate::OGT, total, code.real(std::exp(-kSharpness * kFar / 2)));
    Value one = code.real(1);
    Value divided = code.div(one, code.select(isAny, total, one));
    code.store(code.select(isAny, divided, code.real(0)), inverse, indices);
  });
  addOutliers(inverse, likely);
  addMeans(halves, inverse);
  addSums();
}

Value KeyClusters::valueAt(Code &code, const ClusterSum &sum, ValueRange head, Value key, Value column) {
  IRMapping map = mapIndices(head, Value());
  map.map(score().outer.getBody().getArgument(0), key);
  map.map(sum.acc.getValue().getArgument(0), column);
  return loadAs(code, sum.load, sum.load.getArray(), placesWithout(sum.load.getArray().getType().getRank(), {}), map);
}

SymExpr KeyClusters::widthOf(const ClusterSum &sum) { return getSymExpr(sum.acc.getExtents()[0]); }

void KeyClusters::addMeans(Value halves, Value shares) {
  counts = addArray("class_members", {mostClusters()}, editor.f32());
  for (ClusterSum &sum : sums)
    means.push_back(addArray("means", {mostClusters(), widthOf(sum)}, sum.load.getResult().getType()));
  addNestOver("c", mostClusters(), sampled, [&](Code &code, ValueRange indices) {
    ValueRange head = indices.drop_back();
    Value weight, key;
    Value isCluster = code.compare(arith::CmpIPredicate::slt, indices.back(), numClusters(code, head));
    Code::Values found = code.fold(
        "j", numKeys(),
        [&](Code &in, Value j, Value &present) {
          present = isCluster;
          key = j;
          Value share = nearness(in, head, indices.back(), j, halves, /*seedFirst=*/true);
          weight = in.mul(share, in.load(shares, placed(head, {j})));
          return SmallVector<Code::State>{{Monoid::add, "members", weight}};
        },
        [&](Code &) {
          SmallVector<Code::Sum> terms;
          for (ClusterSum &sum : sums) {
            Type type = sum.load.getResult().getType();
            bool isHalf = type.isBF16() || type.isF16();
            auto along = [&](Code &term, Value column) { return term.widen(valueAt(term, sum, head, key, column)); };
            terms.push_back(
                {"values", editor.text("d"), editor.expr(widthOf(sum)), weight, along, isHalf ? type : Type()});
          }
          return terms;
        });
    code.store(found[0], counts, indices);
    Value isNone = code.compare(arith::CmpFPredicate::OEQ, found[0], code.real(0));
    Value divisor = code.select(isNone, code.real(1), found[0]);
    for (auto [k, array] : llvm::enumerate(means))
      code.loops({editor.text("d")}, {editor.expr(widthOf(sums[k]))}, [&](Code &in, ValueRange d) {
        Value sum = in.make<onf::AtOp>(in.b.getF32Type(), found[1 + k], d);
        in.store(in.div(sum, divisor), array, placed(indices, {d[0]}));
      });
  });
}

/// Appends the outliers to the clusters, each with one member.
void KeyClusters::addSums() {
  SymExpr most = mostPlaces();
  Value keys = addArray("all_keys", {most, depth()}, score().key.load.getResult().getType());
  members = addArray("members", {most}, editor.f32());
  for (ClusterSum &sum : sums)
    clusterValues.push_back(addArray("values", {most, widthOf(sum)}, sum.load.getResult().getType()));
  addNestOver("c", most, sampled, [&](Code &code, ValueRange indices) {
    ValueRange head = indices.drop_back();
    Value number = indices.back(), end = numClusters(code, head);
    Value isCluster = code.compare(arith::CmpIPredicate::slt, number, end);
    Value isThere = code.compare(arith::CmpIPredicate::slt, number, code.toIndex(code.load(all, head)));
    Value least = code.index(0), place = code.max(code.sub(number, end), least);
    Value outlier = code.toIndex(code.load(outlierKeys, placed(head, {place})));
    Value step = code.index(1), last = code.sub(code.extent(mostClusters()), step);
    Value c = code.min(number, last);
    Value no = code.real(0), yes = code.real(1), one = code.select(isThere, yes, no);
    code.store(code.select(isCluster, code.load(counts, placed(head, {c})), one), members, indices);
    code.loops({editor.text("k")}, {editor.expr(depth())}, [&](Code &in, ValueRange k) {
      Value ofOutlier = loadKey(in, head, outlier, k[0]);
      Value found = in.select(isCluster, in.load(clusterKeys, placed(head, {c, k[0]})), ofOutlier);
      in.store(found, keys, placed(indices, {k[0]}));
    });
    for (auto [k, sum] : llvm::enumerate(sums))
      code.loops({editor.text("d")}, {editor.expr(widthOf(sums[k]))}, [&](Code &in, ValueRange d) {
        Value mean = in.load(means[k], placed(head, {c, d[0]})), own = valueAt(in, sum, head, outlier, d[0]);
        in.store(in.select(isCluster, mean, own), clusterValues[k], placed(indices, {d[0]}));
      });
  });
  clusterKeys = keys;
}

//===----------------------------------------------------------------------===//
// Copies of the nest
//===----------------------------------------------------------------------===//

/// Rewrites the fold to run over clusters: their keys, weights times members, and means of values.
void KeyClusters::rewrite(Copy &copy, unsigned plan, ValueRange rowIndices) {
  if (!rowIndices.empty())
    readSampledRows(copy, score(), picked.gathered[0]);
  ValueRange head = copy.nest.getBody().getArguments().drop_back();
  foldOverClusters(copy, head);
  readClusters(copy, head);
}

void KeyClusters::foldOverClusters(Copy &copy, ValueRange head) {
  auto outer = cast<onf::FoldOp>(copy.map.lookup(score().outer.getOperation()));
  outer.setExtentAttr(editor.expr(mostPlaces()));
  Code front(kernel, OpBuilder::atBlockBegin(&outer.getBody().front()), outer.getLoc());
  Code before(kernel, OpBuilder(outer), outer.getLoc());
  Value end = before.toIndex(before.load(all, head));
  Value isCluster = front.compare(arith::CmpIPredicate::slt, outer.getBody().getArgument(0), end);
  onf::GuardOp::create(front.b, outer.getLoc(), isCluster);
}

void KeyClusters::readFrom(Copy &copy, onf::LoadOp old, llvm::function_ref<Value(Code &)> make) {
  auto load = cast<onf::LoadOp>(copy.map.lookup(old.getOperation()));
  Code code(kernel, OpBuilder(load), load.getLoc());
  load.getResult().replaceAllUsesWith(make(code));
  load.erase();
}

/// Reads keys and values from the clusters of the head, and multiplies weights by members.
void KeyClusters::readClusters(Copy &copy, ValueRange head) {
  auto outer = cast<onf::FoldOp>(copy.map.lookup(score().outer.getOperation()));
  Value index = outer.getBody().getArgument(0);
  auto inner = cast<onf::FoldOp>(copy.map.lookup(score().fold.getOperation()));
  Value depthAxis = inner.getBody().getArgument(0);
  readFrom(copy, score().key.load,
           [&](Code &code) { return code.load(clusterKeys, placed(head, {index, depthAxis})); });
  auto counted = [&](onf::AccOp acc, Value weight) {
    Operation *yield = acc.getValue().front().getTerminator();
    bool isInside = weight.getParentRegion() == &acc.getValue();
    Value &known = copy.weights[weight];
    if (known)
      return known;
    // Before all states that may read it.
    Code code(kernel, isInside ? OpBuilder(yield) : OpBuilder(*outer.getBody().getOps<onf::AccOp>().begin()),
              acc.getLoc());
    if (Operation *op = weight.getDefiningOp(); op && op->getBlock() == &outer.getBody().front())
      code.b.setInsertionPointAfter(op);
    Value product = code.mul(weight, code.load(members, placed(head, {index})));
    if (isInside)
      return product;
    return known = product;
  };
  for (auto [k, sum] : llvm::enumerate(sums)) {
    auto acc = cast<onf::AccOp>(copy.map.lookup(sum.acc.getOperation()));
    Value along = acc.getValue().getArgument(0);
    readFrom(copy, sum.load,
             [&, k = k](Code &code) { return code.load(clusterValues[k], placed(head, {index, along})); });
    Operation *product = getTerm(acc).getDefiningOp();
    unsigned weight = getTerm(sum.acc).getDefiningOp()->getOperand(0) == sum.factor;
    product->setOperand(weight, counted(acc, product->getOperand(weight)));
  }
  for (auto acc : outer.getBody().getOps<onf::AccOp>())
    if (acc.getMonoid() == Monoid::add && acc.getExtents().empty())
      acc.getValue().front().getTerminator()->setOperand(0, counted(acc, getTerm(acc)));
}

void KeyClusters::run() {
  recordPlans();
  addDecisionResults();
  addCondition(fewest);
  addRadius();
  addPilot();
  addClusters();
  if (needsEstimates()) {
    rowMagnitudes = addMagnitudes("magnitude", rows(), sampled, [&](Code &, Value row) { return row; });
    addSampleRows();
    picked.gathered.push_back(addGathered(score(), score().row.array()));
  }
  addChoice();
}

namespace {
struct LowRank final : moa::impl::LowRankPassBase<LowRank> {
  using Base::Base;

  void runOnOperation() final {
    if (failed(checkLaws(getOperation(), disable, kLowRankLaws)))
      return signalPassFailure();
    Options options{decisions, check, false, false, false, table, shared};
    options.disabled.assign(disable.begin(), disable.end());
    auto condense = [&](onf::KernelOp kernel, onf::ForOp nest) { return KeyClusters(kernel, nest, options, fewest); };
    if (failed(chooseEverywhere(getOperation(), "no keys stand for others: ", warns,
                                /*takesLeft=*/false, condense)))
      signalPassFailure();
  }
};
} // namespace

} // namespace moa::accuracy
