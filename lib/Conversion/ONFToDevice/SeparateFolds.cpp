//===- SeparateFolds.cpp - pass onf-separate-folds ------------------------===//
//
// Tensor cores take a nest with one fold over a function of contractions, whose operands are
// elements of arrays. Cheap folds before or after it move to nests of their own. For example, the
// norm of a row comes before it, and the norm of its result after it. The same holds for values
// that all rows would compute again for each key, and operands that are computed and rounded.
//
//===----------------------------------------------------------------------===//
#include "dialects/ONF/Transforms/Temporaries.h"
#include "lib/Analysis/OnDemand.h"
#include "lib/Conversion/ONFToDevice/ONFToDevice.h"
#include "lib/Conversion/ONFToDevice/StoredValues.h"
#include "lib/Conversion/ONFToDevice/Tiles.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace moa {
#define GEN_PASS_DECL_SEPARATEFOLDS
#define GEN_PASS_DEF_SEPARATEFOLDS
#include "lib/Conversion/ConversionPasses.h.inc"
} // namespace moa

using namespace mlir;
using namespace moa;
using namespace moa::onf;

namespace {
/// A reader of an element of a state, and the value that it computes from the element and from
/// elements of arrays.
class Reader {
public:
  Reader(AtOp at, ForOp nest) : at(at), value(at.getResult()), nest(nest) {}

  /// Returns whether the element's indices are those of loops or folds over the whole state.
  bool isOfLoops(AccOp acc) {
    llvm::SmallDenseSet<Value> seen;
    return llvm::all_of(llvm::zip_equal(at.getIndices(), acc.getExtents()), [&](auto pair) {
      auto index = dyn_cast<BlockArgument>(std::get<0>(pair));
      Operation *owner = index ? index.getOwner()->getParentOp() : nullptr;
      Attribute extent;
      if (auto loop = dyn_cast_or_null<ForOp>(owner); loop && loop != nest)
        extent = loop.getExtents()[index.getArgNumber()];
      else if (auto fold = dyn_cast_or_null<FoldOp>(owner))
        extent = fold.getExtentAttr();
      return extent == std::get<1>(pair) && seen.insert(index).second;
    });
  }
  /// Returns whether no guard restricts the rows or the elements at which `user` runs.
  bool isUnguarded(Operation *user) {
    for (Operation *op = user->getParentOp(); op != nest; op = op->getParentOp())
      if (auto fold = dyn_cast<FoldOp>(op); !isa<ForOp, FoldOp, AccOp>(op) || (fold && rows::getGuard(fold)))
        return false;
    return true;
  }
  /// Returns the only operation that uses the value, if its other operands are known for the row,
  /// or are elements of arrays at the same indices; else null.
  Operation *findUser() {
    Operation *user = value.hasOneUse() ? *value.getUsers().begin() : nullptr;
    bool isPure = user && user->getNumResults() == 1 && user->getNumRegions() == 0 && isMemoryEffectFree(user) &&
                  user->getResult(0).getType() == at.getResult().getType();
    return isPure && llvm::all_of(user->getOperands(), [&](Value v) { return v == value || isKnown(v); }) ? user
                                                                                                          : nullptr;
  }
  /// Returns whether `user` reads elements of arrays along the state's axis.
  bool readsArrays(Operation *user) {
    return llvm::any_of(user->getOperands(), [&](Value v) { return v != value && readsAlong(v); });
  }
  bool dependsOnIndices(Value v) {
    return llvm::any_of(at.getIndices(), [&](Value index) { return deps.on(v, index); });
  }

  AtOp at;
  Value value;

private:
  bool isKnown(Value v) {
    if (llvm::is_contained(at.getIndices(), v) || !nest->isAncestor(v.getParentBlock()->getParentOp()))
      return true;
    Operation *op = v.getDefiningOp();
    if (!op)
      return cast<BlockArgument>(v).getOwner()->getParentOp() == nest;
    if (auto found = known.find(v); found != known.end())
      return found->second;
    bool mayStand = op->getNumRegions() == 0 && !isa<AtOp>(op) && (isa<LoadOp>(op) || isMemoryEffectFree(op));
    return known[v] = mayStand && llvm::all_of(op->getOperands(), [&](Value operand) { return isKnown(operand); });
  }
  bool readsAlong(Value v) {
    Operation *op = v.getDefiningOp();
    if (!op || !nest->isProperAncestor(op) || !dependsOnIndices(v))
      return false;
    if (auto found = along.find(v); found != along.end())
      return found->second;
    bool result =
        isa<LoadOp>(op) || llvm::any_of(op->getOperands(), [&](Value operand) { return readsAlong(operand); });
    return along[v] = result;
  }

  ForOp nest;
  rows::Dependence deps;
  llvm::DenseMap<Value, bool> known, along;
};

/// Compares the values that two readers compute from their elements and indices.
class ReaderComparison {
public:
  ReaderComparison(Reader &left, Reader &right) : left(left), right(right) {}
  bool isSame(Value x, Value y) {
    if (x == left.at.getResult() || y == right.at.getResult())
      return x == left.at.getResult() && y == right.at.getResult();
    for (auto [i, j] : llvm::zip_equal(left.at.getIndices(), right.at.getIndices()))
      if (x == i || y == j)
        return x == i && y == j;
    if (x == y && !left.dependsOnIndices(x) && !right.dependsOnIndices(y))
      return true;
    Operation *a = x.getDefiningOp(), *b = y.getDefiningOp();
    if (!a || !b)
      return false;
    if (!seen.insert({x, y}).second)
      return true; // or another pair differs
    return a->getName() == b->getName() && a->getAttrs() == b->getAttrs() && a->getNumRegions() == 0 &&
           b->getNumRegions() == 0 && a->getResultTypes() == b->getResultTypes() &&
           a->getNumOperands() == b->getNumOperands() &&
           llvm::all_of(llvm::zip(a->getOperands(), b->getOperands()),
                        [&](auto pair) { return isSame(std::get<0>(pair), std::get<1>(pair)); });
  }

private:
  Reader &left, &right;
  llvm::DenseSet<std::pair<Value, Value>> seen;
};

/// Splits one nest with several folds.
class Separation {
public:
  /// With `takesSums` the fold of contractions moves too, if all others depend on it.
  Separation(ForOp nest, bool takesSums)
      : takesSums(takesSums), nest(nest), body(nest.getBody().front()), kernel(nest->getParentOfType<onf::KernelOp>()),
        b(nest) {}
  /// Moves some of the folds to a new nest before this one. Returns the new nest, or null if all
  /// stay.
  ForOp run();

private:
  using Ops = llvm::SmallSetVector<Operation *, 8>;
  Operation *getOpOfBody(Operation *op);
  bool follows(Operation *op, FoldOp fold);
  bool canMove(const Ops &folds);
  Ops findSources(const Ops &folds);
  /// A state that moves and is still read, its readers if it has axes, and whether a value that
  /// they share is stored in its place.
  struct MovedState {
    AccOp acc;
    Value state;
    std::vector<Reader> readers;
    bool isJoined = false;
  };
  bool joinReaders(AccOp acc, MutableArrayRef<Reader> readers);
  std::vector<MovedState> findMoved(const Ops &folds, llvm::function_ref<bool(Operation *)> isGone);
  void storeMoved(MovedState &moved, Block *block, IRMapping &map, llvm::function_ref<bool(Operation *)> isGone);
  ForOp move(const Ops &folds);

  bool takesSums;
  ForOp nest;
  Block &body;
  onf::KernelOp kernel;
  OpBuilder b;
};
} // namespace

/// Returns the number of folds that hold other folds, such as contractions.
static unsigned countSums(ForOp nest) {
  return llvm::count_if(nest.getBody().getOps<FoldOp>(),
                        [](FoldOp fold) { return !fold.getBody().getOps<FoldOp>().empty(); });
}

/// Returns the first fold over keys of functions of contractions, or null.
static FoldOp findScored(ForOp nest) {
  Block &body = nest.getBody().front();
  rows::Dependence deps;
  OnDemand onDemand(nest->getParentOfType<onf::KernelOp>());
  for (auto fold : body.getOps<FoldOp>()) {
    auto plan = rows::planFold(fold, body.getArguments().back(), deps, onDemand, nullptr, rows::kTensorSums);
    if (plan && !plan->scores.empty())
      return fold;
  }
  return FoldOp();
}

/// Returns whether a nest may be split: it has rows, no predicate, no schedule, and no tile plan
/// yet.
static bool isOpen(ForOp nest) {
  return nest.getBody().getNumArguments() && !nest.getChoices() && !nest.getLift() &&
         nest.getBody().getOps<GuardOp>().empty() && !applies(forms::tiles, nest);
}

//===----------------------------------------------------------------------===//
// Folds
//===----------------------------------------------------------------------===//

/// Returns the operation of the body that holds `op`.
Operation *Separation::getOpOfBody(Operation *op) { return body.findAncestorOpInBlock(*op); }

/// Returns whether an operation of the body depends on a state of the fold.
bool Separation::follows(Operation *op, FoldOp fold) {
  llvm::SmallPtrSet<Operation *, 16> seen;
  SmallVector<Operation *> open{fold};
  while (!open.empty())
    for (Operation *user : open.pop_back_val()->getUsers())
      if (Operation *at = getOpOfBody(user); at && seen.insert(at).second)
        open.push_back(at);
  return seen.contains(op);
}

/// Returns whether all states fit into temporaries and are read element by element.
bool Separation::canMove(const Ops &folds) {
  return llvm::all_of(folds, [](Operation *op) {
    for (auto [acc, state] : llvm::zip_equal(rows::getAccs(cast<FoldOp>(op)), op->getResults())) {
      bool hasAxes = isa<ArrayType>(state.getType());
      if (!storedType(elementOf(acc)) ||
          (hasAxes && !llvm::all_of(state.getUsers(), [](Operation *user) { return isa<AtOp>(user); })))
        return false;
    }
    return true;
  });
}

/// Returns the operations of the body that these folds depend on, with the folds themselves.
Separation::Ops Separation::findSources(const Ops &folds) {
  llvm::SmallPtrSet<Operation *, 16> needed;
  SmallVector<Operation *> open(folds.begin(), folds.end());
  while (!open.empty()) {
    Operation *op = open.pop_back_val();
    if (!needed.insert(op).second)
      continue;
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (Operation *source = operand.getDefiningOp(); source && source->getBlock() == &body)
          open.push_back(source);
    });
  }
  Ops sources;
  for (Operation &op : body)
    if (needed.contains(&op))
      sources.insert(&op);
  return sources;
}

/// Advances the readers of a state to the last value that all of them compute from its elements and
/// elements of arrays. For example, a[i, d] + o[d]. That value, if there is one, is stored in place
/// of the state: the nest of the state may hold a[i, d], too.
bool Separation::joinReaders(AccOp acc, MutableArrayRef<Reader> readers) {
  if (readers.empty() || !llvm::all_of(readers, [&](Reader &reader) { return reader.isOfLoops(acc); }))
    return false;
  OnDemand onDemand(kernel);
  bool found = false;
  for (;; found = true) {
    SmallVector<Operation *> users;
    for (Reader &reader : readers)
      users.push_back(reader.findUser());
    if (llvm::is_contained(users, nullptr) || !readers[0].readsArrays(users[0]))
      return found;
    // The value is then computed for all elements, also where the conditions of the readers are
    // false.
    bool isThere = false;
    for (auto [reader, user] : llvm::zip_equal(readers, users)) {
      if (!ReaderComparison(readers[0], reader).isSame(users[0]->getResult(0), user->getResult(0)))
        return found;
      isThere |= (onDemand.isAlwaysNeeded(user) && reader.isUnguarded(user)) ||
                 (!onDemand.mayFault(user) && !onDemand.mayDivideByZero(user->getResult(0)));
    }
    if (!isThere)
      return found;
    for (auto [reader, user] : llvm::zip_equal(readers, users))
      reader.value = user->getResult(0);
  }
}

/// Removes an unused operation, and operands that are unused then.
static void eraseUnread(Operation *first) {
  llvm::SmallSetVector<Operation *, 8> open;
  open.insert(first);
  while (!open.empty()) {
    Operation *op = open.pop_back_val();
    if (!op->use_empty() || op->getNumRegions() != 0 || !(isa<LoadOp>(op) || isMemoryEffectFree(op)))
      continue;
    SmallVector<Value> operands(op->getOperands());
    op->erase();
    for (Value operand : operands)
      if (Operation *source = operand.getDefiningOp())
        open.insert(source);
  }
}

/// Copies a value of a nest with some values replaced. `ofRow` copies operations of the nest's own
/// body.
static Value cloneTo(OpBuilder &b, OpBuilder &ofRow, Value value, IRMapping &map, ForOp nest) {
  if (Value known = map.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  if (!op || !nest->isProperAncestor(op))
    return value;
  for (Value operand : op->getOperands())
    cloneTo(b, ofRow, operand, map, nest);
  return (op->getParentOp() == nest ? ofRow : b).clone(*op, map)->getResult(0);
}

/// Finds the states that move and are still read, and the values to store. All readers are examined
/// before any of them loads a temporary, because the nest that stores it may not load it.
std::vector<Separation::MovedState> Separation::findMoved(const Ops &folds,
                                                          llvm::function_ref<bool(Operation *)> isGone) {
  std::vector<MovedState> moved;
  for (Operation *op : folds)
    for (auto [acc, state] : llvm::zip_equal(rows::getAccs(cast<FoldOp>(op)), op->getResults())) {
      SmallVector<Operation *> users;
      llvm::copy_if(state.getUsers(), std::back_inserter(users),
                    [&](Operation *user) { return !isGone(getOpOfBody(user)); });
      if (users.empty())
        continue;
      MovedState &found = moved.emplace_back();
      found.acc = acc;
      found.state = state;
      if (acc.getExtents().empty())
        continue;
      for (Operation *user : users)
        found.readers.emplace_back(cast<AtOp>(user), nest);
      found.isJoined = joinReaders(acc, found.readers);
    }
  return moved;
}

/// Stores a state, or the value that its readers share, at the end of the new nest, and loads it
/// where it is read.
void Separation::storeMoved(MovedState &moved, Block *block, IRMapping &map,
                            llvm::function_ref<bool(Operation *)> isGone) {
  AccOp acc = moved.acc;
  Location loc = acc.getLoc();
  SmallVector<SymExpr> shape;
  for (ArrayAttr list : {nest.getExtents(), acc.getExtents()})
    llvm::append_range(shape, list.getAsValueRange<ExprAttr>());
  BlockArgument array = addTemporary(kernel, (nameOf(acc) + "_of_row").str(), shape, storedType(elementOf(acc)), loc);
  b.setInsertionPointToEnd(block);
  SmallVector<Value> indices(block->getArguments());
  Value value = map.lookup(moved.state);
  if (!acc.getExtents().empty()) {
    auto loop = ForOp::create(b, loc, acc.getNames(), acc.getExtents());
    size_t axes = acc.getExtents().size();
    Block *inside =
        b.createBlock(&loop.getBody(), {}, SmallVector<Type>(axes, b.getIndexType()), SmallVector<Location>(axes, loc));
    value = AtOp::create(b, loc, elementOf(acc), value, inside->getArguments());
    llvm::append_range(indices, inside->getArguments());
    if (moved.isJoined) {
      Reader &reader = moved.readers.front();
      IRMapping ofElement;
      OpBuilder ofRow(block, block->begin());
      ofElement.map(body.getArguments(), block->getArguments());
      ofElement.map(reader.at.getIndices(), inside->getArguments());
      ofElement.map(reader.at.getResult(), value);
      value = cloneTo(b, ofRow, reader.value, ofElement, nest);
    }
  }
  storeValue(b, loc, value, array, indices);
  auto load = [&](Operation *before, ValueRange inner) {
    b.setInsertionPoint(before);
    SmallVector<Value> at(body.getArguments());
    llvm::append_range(at, inner);
    return loadValue(b, loc, elementOf(acc), array, at);
  };
  if (acc.getExtents().empty()) {
    Value loaded = load(moved.state.getDefiningOp(), {});
    moved.state.replaceUsesWithIf(loaded, [&](OpOperand &use) { return !isGone(getOpOfBody(use.getOwner())); });
    return;
  }
  for (Reader &reader : moved.readers) {
    Operation *read = reader.value.getDefiningOp();
    reader.value.replaceAllUsesWith(load(read, reader.at.getIndices()));
    eraseUnread(read);
  }
}

/// Moves these folds, with copies of the operations they depend on, to a new nest before this one.
/// It stores the states that this nest reads.
ForOp Separation::move(const Ops &folds) {
  Ops sources = findSources(folds);
  auto made = ForOp::create(b, nest.getLoc(), nest.getNames(), nest.getExtents());
  size_t rank = body.getNumArguments();
  Block *block = b.createBlock(&made.getBody(), {}, SmallVector<Type>(rank, b.getIndexType()),
                               SmallVector<Location>(rank, nest.getLoc()));
  IRMapping map;
  map.map(body.getArguments(), block->getArguments());
  for (Operation *op : sources)
    b.clone(*op, map);
  // Operations that only moved folds read are no longer needed here.
  llvm::SmallPtrSet<Operation *, 16> gone(folds.begin(), folds.end());
  auto isGone = [&](Operation *op) { return gone.contains(op); };
  for (Operation *op : llvm::reverse(sources)) {
    bool isUnused = llvm::all_of(op->getUsers(), [&](Operation *user) { return isGone(getOpOfBody(user)); });
    if (isUnused && (isa<FoldOp>(op) || isMemoryEffectFree(op) || isa<LoadOp>(op)))
      gone.insert(op);
  }
  std::vector<MovedState> moved = findMoved(folds, isGone);
  for (MovedState &each : moved)
    storeMoved(each, block, map, isGone);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (gone.contains(&op)) {
      op.dropAllUses();
      op.erase();
    }
  return made;
}

ForOp Separation::run() {
  auto folds = llvm::to_vector(body.getOps<FoldOp>());
  if (folds.size() < 2 || !isOpen(nest))
    return ForOp();
  FoldOp scored = findScored(nest);
  if (!scored)
    return ForOp();
  // Folds that do not depend on it or, if all do, itself.
  Ops moved;
  for (FoldOp fold : folds)
    if (fold != scored && !follows(fold, scored))
      moved.insert(fold);
  if (moved.empty() && takesSums)
    moved.insert(scored);
  return !moved.empty() && canMove(moved) ? move(moved) : ForOp();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Stores operands in arrays of their own, on a copy of the kernel. The copy replaces the kernel if
/// the nest of this number then runs by tiles.
static onf::KernelOp tryOperands(onf::KernelOp kernel, unsigned number) {
  auto nestOf = [&](onf::KernelOp each) { return *std::next(each.getBody().getOps<ForOp>().begin(), number); };
  ForOp nest = nestOf(kernel);
  if (!llvm::hasSingleElement(nest.getBody().getOps<FoldOp>()) || !isOpen(nest) || !findScored(nest))
    return kernel;
  OpBuilder b(kernel);
  auto copy = cast<onf::KernelOp>(b.clone(*kernel));
  nest = nestOf(copy);
  storeOperands(findScored(nest));
  bool isTaken = applies(forms::tiles, nest);
  (isTaken ? kernel : copy).erase();
  return isTaken ? copy : kernel;
}

namespace {
struct SeparateFolds final : moa::impl::SeparateFoldsBase<SeparateFolds> {
  using SeparateFoldsBase::SeparateFoldsBase;
  static void separate(onf::KernelOp kernel, bool takesSums) {
    SmallVector<ForOp> open(kernel.getBody().getOps<ForOp>());
    while (!open.empty()) {
      ForOp nest = open.pop_back_val();
      if (ForOp made = Separation(nest, takesSums).run())
        open.append({nest, made});
    }
  }

  /// Moves folds of contractions only if all of these then run by tiles. Only tiles make up for
  /// storing their results. Also, sums computed by tiles differ from others in their last bits,
  /// which later comparisons may see.
  onf::KernelOp separateFolds(onf::KernelOp kernel) {
    if (forTiles) {
      OpBuilder b(kernel);
      auto copy = cast<onf::KernelOp>(b.clone(*kernel));
      separate(copy, /*takesSums=*/true);
      bool areTiles = llvm::all_of(copy.getBody().getOps<ForOp>(),
                                   [](ForOp nest) { return countSums(nest) == 0 || applies(forms::tiles, nest); });
      (areTiles ? kernel : copy).erase();
      if (areTiles)
        return copy;
    }
    if (llvm::none_of(kernel.getBody().getOps<ForOp>(), [](ForOp nest) { return countSums(nest) > 1; }))
      separate(kernel, /*takesSums=*/false);
    return kernel;
  }

  void runOnOperation() final {
    for (onf::KernelOp kernel : llvm::to_vector(getOperation().getOps<onf::KernelOp>())) {
      kernel = separateFolds(kernel);
      // New nests are inserted after the nests that are still to come.
      for (unsigned number = llvm::range_size(kernel.getBody().getOps<ForOp>()); number-- > 0;)
        kernel = tryOperands(kernel, number);
      for (ForOp nest : llvm::to_vector(kernel.getBody().getOps<ForOp>())) {
        if (nest.getBody().getNumArguments() == 0 || nest.getChoices() || nest.getLift())
          continue;
        bool maySpend = forPlans && kernel.getWithin();
        FoldOp fold = forTiles && (maySpend || applies(forms::tiles, nest)) ? findScored(nest) : FoldOp();
        if (!fold)
          continue;
        takeReciprocals(nest, fold);
        storeFoldsOfKeys(fold);
      }
    }
  }
};
} // namespace

std::unique_ptr<Pass> moa::createSeparateFoldsPass(bool forTiles, bool forPlans) {
  SeparateFoldsOptions options;
  options.forTiles = forTiles;
  options.forPlans = forPlans;
  return std::make_unique<SeparateFolds>(options);
}
