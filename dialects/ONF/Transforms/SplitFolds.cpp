//===- SplitFolds.cpp - R4: the range of a fold in parts, by nests --------===//
#include "dialects/ONF/Transforms/SplitFolds.h"
#include "dialects/MoA/IR/Monoid.h"
#include "dialects/ONF/Transforms/Passes.h"
#include "dialects/ONF/Transforms/Temporaries.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace moa::onf {

#define GEN_PASS_DEF_ONFSPLITFOLDS
#include "dialects/ONF/Transforms/ONFPasses.h.inc"

//===----------------------------------------------------------------------===//
// Conditions
//===----------------------------------------------------------------------===//

static SmallVector<AccOp> accsOf(FoldOp fold) { return llvm::to_vector(fold.getBody().front().getOps<AccOp>()); }

/// Returns true if an empty part, for example a masked-out one, may have a state that repairs
/// cannot handle: the state has refs, and no singular value shows that they had no element.
static bool asksForElements(FoldOp fold) {
  return !fold.getBody().getOps<GuardOp>().empty() && llvm::any_of(accsOf(fold), [](AccOp acc) {
    return !acc.getRefs().empty() &&
           llvm::all_of(acc.getSingular(), [](Attribute limit) { return cast<FloatAttr>(limit).getValue().isNaN(); });
  });
}

/// Returns the number of a state that tells whether there were elements: a disjunction of `true`.
static std::optional<unsigned> findPresence(FoldOp fold) {
  for (auto [k, acc] : llvm::enumerate(accsOf(fold))) {
    auto truth = acc.getValue().front().getTerminator()->getOperand(0);
    if (acc.getMonoid() == Monoid::or_ && acc.getExtents().empty() && acc.getRefs().empty() &&
        matchPattern(truth, m_One()))
      return k;
  }
  return std::nullopt;
}

bool canSplitFold(ForOp nest) {
  Block &body = nest.getBody().front();
  auto folds = llvm::to_vector(body.getOps<FoldOp>());
  if (!isa<KernelOp>(nest->getParentOp()) || nest.getLift() || folds.size() != 1 || folds[0].getPieces() ||
      folds[0].getLift())
    return false;
  auto areKnown = [](ArrayAttr extents) {
    return llvm::all_of(extents.getAsValueRange<ExprAttr>(),
                        [](const SymExpr &extent) { return extent.getConstant().has_value(); });
  };
  if (asksForElements(folds[0]) && !findPresence(folds[0]))
    return false;
  for (AccOp acc : accsOf(folds[0]))
    if (!storedType(elementOf(acc)) || !areKnown(acc.getExtents()))
      return false;
  for (auto loop : body.getOps<ForOp>()) {
    bool isFlat = llvm::none_of(loop.getBody().front(), [](Operation &op) { return isa<ForOp, FoldOp>(op); });
    if (!isFlat || !areKnown(loop.getExtents()))
      return false;
  }
  WalkResult reads = nest.walk([&](AtOp at) {
    bool isPlain = llvm::all_of(at.getIndices(), [&](Value index) {
      auto argument = dyn_cast<BlockArgument>(index);
      return argument && isa<ForOp>(argument.getOwner()->getParentOp());
    });
    return isPlain ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !reads.wasInterrupted();
}

//===----------------------------------------------------------------------===//
// The nests
//===----------------------------------------------------------------------===//

namespace {
class Splitter {
public:
  Splitter(ForOp nest, const SymExpr &length)
      : nest(nest), fold(*nest.getBody().getOps<FoldOp>().begin()), length(length),
        kernel(nest->getParentOfType<KernelOp>()), accs(accsOf(fold)), b(nest), loc(fold.getLoc()) {}
  SplitNest run();

private:
  /// A state that results read, at indices of the enclosing loop.
  struct Read {
    unsigned acc = 0;
    SmallVector<Value> indices;
    bool operator==(const Read &other) const { return acc == other.acc && indices == other.indices; }
  };
  ForOp makeNest(ArrayAttr names, ArrayAttr extents);
  ArrayAttr with(ArrayAttr list, Attribute part);
  BlockArgument addTemporary(AccOp acc);
  ForOp addPartNest();
  void addMergeNest(ForOp loop);
  SmallVector<Read> readsOf(ForOp loop);
  Value loadPart(unsigned acc, ValueRange rows, Value part, ValueRange indices);
  Value merge(unsigned k, ArrayRef<Read> reads, ArrayRef<Value> parts, ArrayRef<Value> states, const IRMapping &front);
  llvm::BitVector findFirst(ArrayRef<Read> reads);
  void mergeFold(ArrayRef<Read> reads, const llvm::BitVector &chosen, ForOp made, const IRMapping &map,
                 MutableArrayRef<Value> states);
  void removeUnused(ForOp made);
  unsigned partAxis() { return std::max<size_t>(nest.getExtents().size(), 1) - 1; }
  ExprAttr numParts() {
    return ExprAttr::get(b.getContext(), SymExpr::floorDiv(fold.getExtent() + length - SymExpr(1), length));
  }

  ForOp nest;
  FoldOp fold;
  SymExpr length;
  KernelOp kernel;
  SmallVector<AccOp> accs;
  OpBuilder b;
  Location loc;
  SmallVector<BlockArgument> temporaries; // of each state
};
} // namespace

ArrayAttr Splitter::with(ArrayAttr list, Attribute part) {
  SmallVector<Attribute> all(list.begin(), list.end());
  all.insert(all.begin() + partAxis(), part);
  return b.getArrayAttr(all);
}

ForOp Splitter::makeNest(ArrayAttr names, ArrayAttr extents) {
  b.setInsertionPoint(nest);
  auto made = ForOp::create(b, nest.getLoc(), names, extents);
  made.setWhereAttr(nest.getWhereAttr());
  // The axes of a choice come before the new axes.
  if (nest.getChoices()) {
    made.getChoicesMutable().assign(nest.getChoices());
    made.setChoiceAxesAttr(nest.getChoiceAxesAttr());
    made.setChoiceAttr(nest.getChoiceAttr());
  }
  b.createBlock(&made.getBody(), {}, SmallVector<Type>(extents.size(), b.getIndexType()),
                SmallVector<Location>(extents.size(), nest.getLoc()));
  return made;
}

/// Adds the temporary for the states of all parts. Its axes are the nest's, with the axis of parts
/// before the last one, then those of the state.
BlockArgument Splitter::addTemporary(AccOp acc) {
  SmallVector<SymExpr> shape;
  for (ArrayAttr list : {with(nest.getExtents(), numParts()), acc.getExtents()})
    llvm::append_range(shape, list.getAsValueRange<ExprAttr>());
  return onf::addTemporary(kernel, (acc.getName() + "_parts").str(), shape, storedType(elementOf(acc)), acc.getLoc());
}

/// Emits the nest over rows and parts: the operations before the fold, the fold with the part's
/// indices as guard, and stores of its states.
ForOp Splitter::addPartNest() {
  ForOp made = makeNest(with(nest.getNames(), b.getStringAttr("part")), with(nest.getExtents(), numParts()));
  Block &body = made.getBody().front();
  IRMapping map;
  SmallVector<Value> rows(body.getArguments().begin(), body.getArguments().end());
  Value part = rows[partAxis()];
  for (auto [k, argument] : llvm::enumerate(nest.getBody().getArguments()))
    map.map(argument, rows[k + (k >= partAxis())]);
  for (Operation &op : nest.getBody().front()) {
    if (&op == fold)
      break;
    if (!isa<StoreOp, ForOp>(op))
      b.clone(op, map);
  }
  auto copy = cast<FoldOp>(b.clone(*fold, map));
  Block &inside = copy.getBody().front();
  OpBuilder at = OpBuilder::atBlockBegin(&inside);
  auto known = length.getConstant();
  Value size = known ? arith::ConstantIndexOp::create(at, loc, *known).getResult()
                     : ExtentOp::create(at, loc, at.getIndexType(), ExprAttr::get(b.getContext(), length)).getResult();
  Value first = arith::MulIOp::create(at, loc, part, size);
  Value end = arith::AddIOp::create(at, loc, first, size);
  Value j = inside.getArgument(0);
  Value above = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::sge, j, first);
  Value below = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::slt, j, end);
  Value isInPart = arith::AndIOp::create(at, loc, above, below);
  auto guards = llvm::to_vector(inside.getOps<GuardOp>());
  if (guards.empty()) {
    GuardOp::create(at, loc, isInPart);
  } else {
    at.setInsertionPoint(guards[0]);
    guards[0].getConditionMutable().assign(arith::AndIOp::create(at, loc, isInPart, guards[0].getCondition()));
  }
  for (auto [k, acc] : llvm::enumerate(accs)) {
    BlockArgument array = temporaries[k];
    OpBuilder in = b;
    SmallVector<Value> terms = rows, axes;
    if (!acc.getExtents().empty()) {
      auto loop = ForOp::create(b, loc, acc.getNames(), acc.getExtents());
      size_t rank = acc.getExtents().size();
      OpBuilder::InsertionGuard guard(b);
      Block *block = b.createBlock(&loop.getBody(), {}, SmallVector<Type>(rank, b.getIndexType()),
                                   SmallVector<Location>(rank, loc));
      in = OpBuilder::atBlockEnd(block);
      llvm::append_range(axes, block->getArguments());
      llvm::append_range(terms, axes);
    }
    Value state = copy.getResult(k);
    if (!axes.empty())
      state = AtOp::create(in, loc, elementOf(acc), state, axes);
    storeValue(in, acc.getLoc(), state, array, terms);
  }
  return made;
}

/// Returns the states that the stores of a loop (or of the nest) read, with all states that these
/// refer to, in the order of the fold.
SmallVector<Splitter::Read> Splitter::readsOf(ForOp loop) {
  SmallVector<Value> open;
  Block &scope = loop ? loop.getBody().front() : nest.getBody().front();
  for (auto store : scope.getOps<StoreOp>())
    llvm::append_range(open, store->getOperands());
  std::vector<SmallVector<Read>> found(accs.size());
  llvm::DenseSet<Value> seen;
  auto add = [&](unsigned acc, SmallVector<Value> indices) {
    Read read{acc, std::move(indices)};
    if (!llvm::is_contained(found[acc], read))
      found[acc].push_back(std::move(read));
  };
  while (!open.empty()) {
    Value value = open.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (!op || !seen.insert(value).second)
      continue;
    if (auto at = dyn_cast<AtOp>(op))
      add(cast<OpResult>(at.getState()).getResultNumber(), SmallVector<Value>(at.getIndices()));
    else if (op == fold)
      add(cast<OpResult>(value).getResultNumber(), {});
    else
      llvm::append_range(open, op->getOperands());
  }
  for (unsigned k = accs.size(); k-- > 0;)
    if (!found[k].empty())
      for (ValueRange list : {ValueRange(accs[k].getRefs()), ValueRange(accs[k].getOthers())})
        for (Value other : list)
          add(llvm::find(accs, other.getDefiningOp<AccOp>()) - accs.begin(), {});
  SmallVector<Read> reads;
  for (auto &list : found)
    llvm::append_range(reads, list);
  return reads;
}

Value Splitter::loadPart(unsigned k, ValueRange rows, Value part, ValueRange indices) {
  BlockArgument array = temporaries[k];
  SmallVector<Value> terms(rows);
  terms.insert(terms.begin() + partAxis(), part);
  llvm::append_range(terms, indices);
  return loadValue(b, loc, elementOf(accs[k]), array, terms);
}

static Value differs(OpBuilder &b, Location loc, Value x, Value y) {
  if (isa<FloatType>(x.getType()))
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, x, y);
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, x, y);
}

/// Emits a part's contribution to a state: the part's state, rescaled from the part's references to
/// the merged ones. It is unchanged if the references are equal, or if the part's were singular,
/// because it is the identity then. A select of the factors decides this, so that loads of states
/// need not wait for a branch. `front` maps operations before the fold, which repairs may read, to
/// their copies.
Value Splitter::merge(unsigned k, ArrayRef<Read> reads, ArrayRef<Value> parts, ArrayRef<Value> states,
                      const IRMapping &front) {
  AccOp acc = accs[reads[k].acc];
  Value part = parts[k];
  if (acc.getRefs().empty())
    return part;
  auto numberOf = [&](Value state) {
    unsigned number = llvm::find(accs, state.getDefiningOp<AccOp>()) - accs.begin();
    return llvm::find_if(reads, [&](const Read &read) { return read.acc == number; }) - reads.begin();
  };
  IRMapping map = front;
  Value stays, changed;
  auto either = [&](Value x, Value y) -> Value { return x ? arith::OrIOp::create(b, loc, x, y).getResult() : y; };
  Block &repair = acc.getRepair().front();
  for (auto [n, ref, limit] : llvm::enumerate(acc.getRefs(), acc.getSingular())) {
    Value before = parts[numberOf(ref)], after = states[numberOf(ref)];
    map.map(repair.getArgument(2 * n), before);
    map.map(repair.getArgument(2 * n + 1), after);
    changed = either(changed, differs(b, loc, before, after));
    auto value = cast<FloatAttr>(limit);
    if (!value.getValue().isNaN() && value.getType() == before.getType())
      stays = either(stays, arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, before,
                                                  arith::ConstantOp::create(b, loc, value)));
  }
  Value isSame = arith::XOrIOp::create(b, loc, changed, arith::ConstantOp::create(b, loc, b.getBoolAttr(true)));
  stays = either(stays, isSame);
  for (Operation &op : repair.without_terminator())
    b.clone(op, map);
  auto yielded = [&](unsigned n, TypedAttr neutral) -> Value {
    Value value = map.lookupOrDefault(repair.getTerminator()->getOperand(n));
    return arith::SelectOp::create(b, loc, stays, arith::ConstantOp::create(b, loc, neutral), value);
  };
  if (acc.getCombine() == ScalarFn::select) {
    Value identity = arith::ConstantOp::create(b, loc, getIdentityOf(acc, acc.getMonoid(), part.getType()));
    return arith::SelectOp::create(b, loc, yielded(0, b.getBoolAttr(true)), part, identity);
  }
  Monoid combine = acc.getCombine() == ScalarFn::mul ? Monoid::mul : Monoid::add;
  Value moved = buildMonoid(b, loc, combine, part, yielded(0, getIdentity(combine, part.getType())));
  for (auto [n, other] : llvm::enumerate(acc.getOthers())) {
    Value coefficient = yielded(n + 1, cast<TypedAttr>(b.getZeroAttr(part.getType())));
    moved = arith::AddFOp::create(b, loc, moved, arith::MulFOp::create(b, loc, coefficient, parts[numberOf(other)]));
  }
  return moved;
}

/// Returns the states that a separate fold merges first: those that others refer to, if none of
/// them has refs. The other states are then rescaled once per part, to the final references, and no
/// sum is rescaled while it grows.
llvm::BitVector Splitter::findFirst(ArrayRef<Read> reads) {
  llvm::BitVector first(reads.size());
  for (const Read &read : reads)
    for (ValueRange list : {ValueRange(accs[read.acc].getRefs()), ValueRange(accs[read.acc].getOthers())})
      for (Value other : list) {
        unsigned number = llvm::find(accs, other.getDefiningOp<AccOp>()) - accs.begin();
        first.set(llvm::find_if(reads, [&](const Read &each) { return each.acc == number; }) - reads.begin());
      }
  for (unsigned k : first.set_bits())
    if (!accs[reads[k].acc].getRefs().empty() || !accs[reads[k].acc].getOthers().empty())
      return llvm::BitVector(reads.size());
  return first;
}

/// Emits a fold over the parts, without axes, that merges the chosen states, one per element read.
/// `states` holds the states that were merged before and receives the others.
void Splitter::mergeFold(ArrayRef<Read> reads, const llvm::BitVector &chosen, ForOp made, const IRMapping &map,
                         MutableArrayRef<Value> states) {
  SmallVector<Type> types;
  for (unsigned k : chosen.set_bits())
    types.push_back(elementOf(accs[reads[k].acc]));
  auto merged =
      FoldOp::create(b, loc, types, b.getStringAttr("part"), numParts(), AxisAttr(), ArrayAttr(), ValueRange{});
  OpBuilder::InsertionGuard guard(b);
  Block *block = b.createBlock(&merged.getBody(), {}, b.getIndexType(), loc);
  ValueRange rows = made.getBody().getArguments().take_front(nest.getExtents().size());
  SmallVector<Value> parts, inside(states.begin(), states.end()), yielded;
  for (const Read &read : reads) {
    auto indices = llvm::map_to_vector(read.indices, [&](Value index) { return map.lookup(index); });
    parts.push_back(loadPart(read.acc, rows, block->getArgument(0), indices));
  }
  // Skips empty parts if nothing else shows that they are empty.
  if (asksForElements(fold)) {
    unsigned presence = *findPresence(fold);
    auto known = llvm::find_if(reads, [&](const Read &read) { return read.acc == presence; });
    GuardOp::create(b, loc,
                    known != reads.end() ? parts[known - reads.begin()]
                                         : loadPart(presence, rows, block->getArgument(0), {}));
  }
  for (unsigned k : chosen.set_bits()) {
    AccOp acc = accs[reads[k].acc];
    Value value = merge(k, reads, parts, inside, map);
    // Keep the refs only if they change in this fold.
    bool changes = true;
    auto mapped = [&](ValueRange list) {
      return llvm::map_to_vector(list, [&](Value state) {
        unsigned number = llvm::find(accs, state.getDefiningOp<AccOp>()) - accs.begin();
        unsigned which = llvm::find_if(reads, [&](const Read &other) { return other.acc == number; }) - reads.begin();
        changes &= chosen.test(which);
        return inside[which];
      });
    };
    auto refs = mapped(acc.getRefs()), others = mapped(acc.getOthers());
    if (!changes)
      refs.clear(), others.clear();
    auto copy = AccOp::create(b, acc.getLoc(), value.getType(), acc.getMonoid(), acc.getNameAttr(), b.getArrayAttr({}),
                              b.getArrayAttr({}), refs, others, acc.getCombine(),
                              changes ? acc.getSingular() : b.getArrayAttr({}), TypeAttr(), acc.getFunctionAttr());
    OpBuilder::InsertionGuard inner(b);
    b.createBlock(&copy.getValue());
    YieldOp::create(b, loc, value);
    if (changes && !acc.getRepair().empty()) {
      IRMapping clone = map;
      acc.getRepair().cloneInto(&copy.getRepair(), clone);
    }
    inside[k] = copy.getResult();
    yielded.push_back(copy.getResult());
  }
  YieldOp::create(b, loc, yielded);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*block)))
    if (isa<LoadOp, arith::IndexCastOp, arith::CmpIOp, arith::ConstantOp>(op) && op.use_empty())
      op.erase();
  for (auto [number, k] : llvm::enumerate(chosen.set_bits()))
    states[k] = merged.getResult(number);
}

/// Emits the nest that merges states for one loop of the nest, whose axes become the nest's last,
/// or for the stores of its rows (null `loop`).
void Splitter::addMergeNest(ForOp loop) {
  SmallVector<Attribute> names(nest.getNames().begin(), nest.getNames().end()),
      extents(nest.getExtents().begin(), nest.getExtents().end());
  if (loop) {
    for (StringRef name : loop.getNames().getAsValueRange<StringAttr>()) {
      Attribute own = b.getStringAttr(name);
      for (unsigned k = 2; llvm::is_contained(names, own); ++k)
        own = b.getStringAttr(name + Twine(k));
      names.push_back(own);
    }
    llvm::append_range(extents, loop.getExtents());
  }
  ForOp made = makeNest(b.getArrayAttr(names), b.getArrayAttr(extents));
  auto arguments = made.getBody().getArguments();
  IRMapping map;
  map.map(nest.getBody().getArguments(), arguments.take_front(nest.getExtents().size()));
  if (loop)
    map.map(loop.getBody().getArguments(), arguments.drop_front(nest.getExtents().size()));
  SmallVector<Read> reads = readsOf(loop);
  SmallVector<Value> merged(reads.size());
  auto clone = [&](Operation &op) {
    auto at = dyn_cast<AtOp>(op);
    if (!at)
      return (void)b.clone(op, map);
    Read read{static_cast<unsigned>(cast<OpResult>(at.getState()).getResultNumber()),
              SmallVector<Value>(at.getIndices())};
    auto found = llvm::find(reads, read);
    if (found != reads.end())
      map.map(at.getResult(), merged[found - reads.begin()]);
  };
  for (Operation &op : nest.getBody().front()) {
    if (&op == fold) {
      llvm::BitVector first = findFirst(reads), rest = first;
      rest.flip();
      if (first.any())
        mergeFold(reads, first, made, map, merged);
      if (rest.any())
        mergeFold(reads, rest, made, map, merged);
      for (auto [k, read] : llvm::enumerate(reads))
        if (read.indices.empty())
          map.map(fold.getResult(read.acc), merged[k]);
    } else if (isa<ForOp>(op)) {
      if (&op == loop)
        for (Operation &inner : loop.getBody().front())
          clone(inner);
    } else if (!isa<StoreOp>(op) || !loop) {
      // No store needs operations that read states which are not merged here.
      bool isNeeded =
          llvm::all_of(op.getOperands(), [&](Value value) { return !value.getDefiningOp() || map.contains(value); });
      if (isNeeded)
        clone(op);
    }
  }
  removeUnused(made);
}

void Splitter::removeUnused(ForOp made) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(made.getBody().front())))
    if (!isa<StoreOp>(op) && op.use_empty())
      op.erase();
}

SplitNest Splitter::run() {
  for (AccOp acc : accs)
    temporaries.push_back(addTemporary(acc));
  SplitNest split{addPartNest(), SmallVector<Value>(temporaries.begin(), temporaries.end())};
  Block &body = nest.getBody().front();
  if (!body.getOps<StoreOp>().empty())
    addMergeNest(ForOp());
  for (auto loop : llvm::to_vector(body.getOps<ForOp>()))
    addMergeNest(loop);
  nest.erase();
  return split;
}

SplitNest splitFold(ForOp nest, const SymExpr &length) { return Splitter(nest, length).run(); }

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
struct ONFSplitFolds final : impl::ONFSplitFoldsBase<ONFSplitFolds> {
  using Base::Base;

  /// Returns true if the rows that share the fold's loads are few and the range may be long. Only
  /// compile-time sizes count.
  bool isWorthSplitting(ForOp nest) {
    auto folds = llvm::to_vector(nest.getBody().getOps<FoldOp>());
    if (folds.size() != 1)
      return false;
    auto range = folds[0].getExtent().getConstant();
    if (range && *range <= length)
      return false;
    // Do not split nests that store temporaries: those have parts already. Nests that merge parts
    // read temporaries and fold over quotients. Other temporaries are read like inputs.
    bool merges = folds[0].getExtent().str().find('/') != std::string::npos;
    auto kernel = nest->getParentOfType<KernelOp>();
    auto isTemporary = [&](Value array) { return kernel.isTemporary(cast<BlockArgument>(array).getArgNumber()); };
    SmallVector<LoadOp> reads;
    bool hasTemporary = false;
    nest.walk([&](Operation *op) {
      if (auto store = dyn_cast<StoreOp>(op))
        hasTemporary |= isTemporary(store.getArray());
      auto load = dyn_cast<LoadOp>(op);
      hasTemporary |= load && merges && isTemporary(load.getArray());
      if (load && isOn(load, folds[0].getBody().getArgument(0)))
        reads.push_back(load);
    });
    int64_t count = 1;
    for (auto [axis, extent] :
         llvm::zip_equal(nest.getBody().getArguments(), nest.getExtents().getAsValueRange<ExprAttr>())) {
      bool isShared = axis == nest.getBody().getArguments().back() ||
                      llvm::any_of(reads, [&](LoadOp load) { return !isOn(load, axis); });
      if (!isShared)
        continue;
      auto size = extent.getConstant();
      if (!size || *size > rows)
        return false;
      count *= *size;
    }
    return !hasTemporary && count <= rows;
  }

  /// Returns true if the address of a load depends on an index.
  static bool isOn(LoadOp load, Value index) {
    llvm::DenseSet<Value> seen;
    SmallVector<Value> open(load.getTerms());
    while (!open.empty()) {
      Value value = open.pop_back_val();
      if (value == index)
        return true;
      if (Operation *op = value.getDefiningOp(); op && seen.insert(value).second)
        llvm::append_range(open, op->getOperands());
    }
    return false;
  }

  void runOnOperation() override {
    getOperation()->walk([&](KernelOp kernel) {
      for (auto nest : llvm::to_vector(kernel.getBody().getOps<ForOp>()))
        if (isWorthSplitting(nest) && canSplitFold(nest))
          splitFold(nest, SymExpr(length));
    });
  }
};
} // namespace

} // namespace moa::onf
