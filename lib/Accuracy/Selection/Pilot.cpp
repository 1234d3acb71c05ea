//===- Pilot.cpp - a cheap trial of a plan --------------------------------===//
//
// The nests before a plan, which round all keys and rows and compute the sample, are wasted if the
// plan is not taken. So a pilot comes first: the nest for few rows and keys at equal distances,
// unmodified and by the plan. Heads that are not accurate enough there skip the rest. Each head
// decides for itself, so that its results do not depend on other heads.
//
//===----------------------------------------------------------------------===//
#include "dialects/ONF/IR/Hints.h"
#include "lib/Accuracy/Selection/Adapter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace moa::accuracy {

/// Rows and keys of the pilot: one tile of rows, and enough keys for the plan's tiles.
static constexpr int64_t kPilotRows = 128, kPilotKeys = 1024;
/// The nest must have this multiple of the pairs of rows and keys of the pilot.
static constexpr int64_t kPilotShare = 200;
/// Multiply-adds of a head from which the pilot pays: 15,300 rows and keys of 256 columns
/// (benchmarks/gpu/NOTES.md). It must not depend on the number of heads, so that results do not.
static constexpr int64_t kPilotWork = 60'000'000'000;
/// A head passes the pilot if its error in the pilot is at most this multiple of the tolerance.
/// With few keys fewer of them matter to a row, so the error with all keys may be smaller.
static constexpr double kHopeful = 1.1;
/// The same multiple if scores are off by more than the tolerance. Errors of weights then depend on
/// how many keys have similar weights, which few keys do not show.
static constexpr double kDoubtful = 0.5;

/// Returns true if there is one plan, of 8 bits, and one fold whose index is used only in loads,
/// along one axis of each. A mask would differ for few keys.
bool Adapter::canPilot() {
  bool isAsked = options.pilot >= 0 || (options.fewest == 0 && options.pilot == Options::kPilotWherePays);
  if (!isAsked || options.decisions || isTabled || plans.size() != 1 || plans[0].half || headExtents.empty())
    return false;
  onf::FoldOp outer = scores[0].outer;
  Value row = nest.getBody().getArguments().back(), key = outer.getBody().getArgument(0);
  auto rowExtent = cast<ExprAttr>(nest.getExtents().getValue().back());
  for (const ScoreFold &score : scores)
    if (score.outer != outer || !score.keyAxis || !findAxis(score.row.load, row, rowExtent))
      return false;
  return llvm::all_of(weightedSums, [&](const WeightedSum &weighted) { return weighted.outer == outer; }) &&
         llvm::all_of(key.getUsers(), [&](Operation *user) {
           auto load = dyn_cast<onf::LoadOp>(user);
           return load && isa<BlockArgument>(load.getArray()) && findAxis(load, key, outer.getExtentAttr());
         });
}

/// Adds an array of `count` indices at equal distances along the axis.
Value Adapter::addSubset(Value array, unsigned axis, int64_t count, const Choice &where, onf::ForOp before) {
  KernelEditor editor(kernel, before);
  auto type = cast<ArrayType>(array.getType());
  auto [names, extents] = editor.axesOf(array);
  SymExpr size = type.getExtent(axis);
  extents[axis] = editor.expr(count);
  std::string name = editor.nameOf(array).str() + "_part";
  Value part = editor.addTemporary(name, extents, type.getElementType());
  SmallVector<Attribute> outer(llvm::drop_end(names)), outerExtents(llvm::drop_end(extents));
  editor.addNest(outer, outerExtents, &where, [&](Code &code, ValueRange indices) {
    code.loops({names.back()}, {extents.back()}, [&](Code &at, ValueRange last) {
      SmallVector<Value> to = placed(indices, {last[0]}), from = to;
      from[axis] = at.mul(to[axis], at.extent(SymExpr::floorDiv(size, SymExpr(count))));
      at.store(at.load(array, from), part, to);
    });
  });
  return part;
}

/// Adds a copy of the nest for the pilot; `small` gets its operands.
Chooser::Copy Adapter::addPilotNest(Adapter &small, const Choice &where) {
  DenseMap<std::pair<Value, unsigned>, Value> parts;
  Copy copy = copyNest();
  copy.nest.setExtentsAttr(Builder(kernel.getContext()).getArrayAttr(small.picked.extents));
  setChoice(copy.nest, small.sampled);
  auto outer = cast<onf::FoldOp>(copy.map.lookup(scores[0].outer.getOperation()));
  outer.setExtentAttr(editor.expr(kPilotKeys));
  // Outside of operands, the row index is that of the original row.
  Block &body = copy.nest.getBody().front();
  Code front(kernel, OpBuilder::atBlockBegin(&body), nest.getLoc());
  Value place = body.getArguments().back();
  Value step = front.extent(SymExpr::floorDiv(rows(), SymExpr(kPilotRows)));
  Value row = front.mul(place, step);
  place.replaceAllUsesExcept(row, row.getDefiningOp());
  auto replace = [&](onf::LoadOp load, unsigned axis, int64_t count) {
    Value &part = parts[{load.getArray(), axis}];
    if (!part) {
      part = addSubset(load.getArray(), axis, count, where, copy.nest);
      small.origins[part] = load.getArray();
    }
    auto old = cast<onf::LoadOp>(copy.map.lookup(load.getOperation()));
    Code code(kernel, OpBuilder(old), old.getLoc());
    IRMapping terms;
    for (Value term : old.getTerms())
      terms.map(term, term);
    Value now = loadAs(code, old, part, placesWithout(old.getArray().getType().getRank(), {}), terms);
    old.getResult().replaceAllUsesWith(now);
    old.erase();
    return now.getDefiningOp<onf::LoadOp>();
  };
  auto copied = [&](auto op) { return cast<decltype(op)>(copy.map.lookup(op.getOperation())); };
  // Arrays that depend on the row are read in place, because a copy for all rows would be large.
  DenseMap<Operation *, onf::LoadOp> replaced;
  onf::FoldOp from = scores[0].outer;
  Value key = from.getBody().getArgument(0);
  Code inside(kernel, OpBuilder::atBlockBegin(&outer.getBody().front()), nest.getLoc());
  Value keyStep = inside.extent(SymExpr::floorDiv(from.getExtent(), SymExpr(kPilotKeys)));
  Value keyOf = inside.mul(outer.getBody().getArgument(0), keyStep);
  for (Operation *user : llvm::to_vector(key.getUsers())) {
    auto load = cast<onf::LoadOp>(user);
    llvm::SmallPtrSet<Value, 8> indices;
    bool isKnown = llvm::all_of(load.getTerms(), [&](Value term) { return collectIndices(term, indices); });
    if (!isKnown || indices.contains(nest.getBody().getArguments().back()))
      copy.map.lookup(load.getOperation())->replaceUsesOfWith(outer.getBody().getArgument(0), keyOf);
    else if (!replaced.count(load))
      replaced[load] = replace(load, *findAxis(load, key, from.getExtentAttr()), kPilotKeys);
  }
  auto rowExtent = cast<ExprAttr>(nest.getExtents().getValue().back());
  for (const ScoreFold &score : scores) {
    ScoreFold now = score;
    now.outer = outer;
    now.fold = copied(score.fold);
    unsigned axis = *findAxis(score.row.load, nest.getBody().getArguments().back(), rowExtent);
    cast<onf::LoadOp>(copy.map.lookup(score.row.load.getOperation()))->replaceUsesOfWith(row, place);
    now.row.load = replace(score.row.load, axis, kPilotRows);
    now.key.load = replaced.at(score.key.load);
    now.value = copy.map.lookup(score.value);
    now.factor = score.factor ? copy.map.lookupOrDefault(score.factor) : Value();
    if (score.scaled)
      now.scaled = copied(score.scaled);
    small.scores.push_back(now);
  }
  for (const WeightedSum &weighted : weightedSums) {
    WeightedSum now = weighted;
    now.outer = outer;
    now.acc = copied(weighted.acc);
    now.load = replaced.at(weighted.load);
    now.weight = copy.map.lookup(weighted.weight);
    small.weightedSums.push_back(now);
  }
  for (Value unused : {row, step, keyOf, keyStep})
    if (unused.use_empty())
      unused.getDefiningOp()->erase();
  return copy;
}

/// The pilot runs if x > y for each pair.
SmallVector<std::pair<SymExpr, SymExpr>> Adapter::pilotConditions() {
  const SymExpr &keys = scores[0].outer.getExtent();
  SmallVector<std::pair<SymExpr, SymExpr>> list{{keys, SymExpr(2 * kPilotKeys - 1)},
                                                {rows() * keys, SymExpr(kPilotShare * kPilotRows * kPilotKeys)}};
  SymExpr work = weigh().first;
  if (options.pilot >= 0)
    list.assign({{keys, SymExpr(2 * kPilotKeys - 1)}, {work, SymExpr(options.pilot)}});
  else if (options.sums)
    list.push_back({work, SymExpr(kPilotWork)});
  return list;
}

/// Adds the switch of the pilot to the nest that compares sizes.
void Adapter::addPiloted(Code &code, Value isLarge) {
  piloted = {editor.addTemporary(base() + "_piloted", {}, editor.i32()), {}, 1};
  Value is = isLarge;
  for (const auto &[x, y] : pilotConditions()) {
    Value right = code.extent(y), left = code.extent(x);
    is = code.both(is, code.compare(arith::CmpIPredicate::sgt, left, right));
  }
  code.store(code.toNumber(is), piloted.array, {});
}

/// Adds the pilot, and restricts the sample to heads that pass it.
void Adapter::addPilot() {
  const Choice where = piloted;
  Adapter small(kernel, nest, options);
  small.picked.names = picked.names, small.picked.extents = picked.extents;
  small.picked.extents.back() = editor.expr(kPilotRows);
  small.plans = plans;
  small.tried = where;
  small.results = results;
  small.headNames = headNames, small.headExtents = headExtents;
  small.findEarlier();
  small.addOpen();
  Copy copy = addPilotNest(small, where);
  small.nest = small.editor.before = copy.nest;
  for (NestResult &result : small.results)
    result.store = cast<onf::StoreOp>(copy.map.lookup(result.store.getOperation()));
  small.takeScales(*this);
  small.addBytes();
  for (const ScoreFold &score : small.scores)
    small.reach.push_back(small.addReach(score, /*ofSample=*/false));
  Copy fewer = small.copyNest();
  small.rewrite(fewer, 1, {});
  SmallVector<SmallVector<Value>> samples{small.storeSample(fewer, "_pilot1", small.picked.extents)};
  SmallVector<Value> exact = storeSample(copy, "_pilot0", small.picked.extents);
  for (auto [result, from, sample] : llvm::zip_equal(small.results, results, exact))
    result.store = from.store, result.sample = sample;
  small.editor.before = nest;
  small.addErrors(samples);
  fuseNests(small.switchedNests());
  SmallVector<Attribute> needed(runs);
  for (const auto &[x, y] : pilotConditions())
    needed.append({editor.expr(x), editor.expr(y)});
  for (auto other : small.switchedNests())
    other->setAttr(onf::kLaunchIfAttr, ArrayAttr::get(kernel.getContext(), needed));
  addOpen([&](Code &code, ValueRange head) {
    Value yes = code.make<arith::ConstantOp>(code.b.getBoolAttr(true));
    Value looked = isTried(code, where, {});
    if (earlier.array)
      looked = code.both(looked, isTried(code, small.sampled, head));
    ScoreErrors scores = small.measureScores(code, head, 1, looked);
    Value isNear = code.make<arith::XOrIOp>(either(code, scores.beyond, isOffBy(code, scores, kMuch)), yes);
    for (auto [o, result] : llvm::enumerate(small.results)) {
      Code::Values sums = code.fold("r", SymExpr(kPilotRows), [&](Code &in, Value r, Value &present) {
        present = looked;
        SmallVector<Value> at = placed(head, {r});
        return SmallVector<Code::State>{{Monoid::add, "norm", in.load(result.norm, at)},
                                        {Monoid::add, "error", in.load(small.errors[0][o], at)}};
      });
      auto allowed = [&](double share) { return code.real(std::pow(share * result.allowed.epsilon, 2)); };
      Value isDoubtful = isOffBy(code, scores, result.allowed.epsilon);
      Value little = allowed(kDoubtful), usual = allowed(kHopeful);
      Value share = code.select(isDoubtful, little, usual);
      Value most = code.mul(sums[0], share);
      Value is = code.compare(arith::CmpFPredicate::OLE, sums[1], most);
      isNear = code.both(isNear, is);
    }
    return code.select(looked, isNear, yes);
  });
  // Heads that are not tried do not wait for the others.
  if (earlier.array)
    return;
  leavesAtOnce = true;
  setChoice(copyNest().nest, {sampled.array, sampled.axes, 0});
}

} // namespace moa::accuracy
