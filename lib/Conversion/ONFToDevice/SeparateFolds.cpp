//===- SeparateFolds.cpp - folds in nests of their own ---------------------===//
//
// Tensor cores take a nest with one fold, of sums of products of its rows, whose elements stand in arrays. A fold in
// front of it, as the norm of a row, and one behind it, as the norm of what it gives, is little work beside that, and
// moves to a nest of its own. So does what all rows would compute again for each key, and elements that are computed
// and rounded.
//
//===----------------------------------------------------------------------===//
#include "dialects/ONF/Transforms/Temporaries.h"
#include "lib/Analysis/OnDemand.h"
#include "lib/Analysis/Subscripts.h"
#include "lib/Conversion/ONFToDevice/ONFToDevice.h"
#include "lib/Conversion/ONFToDevice/Tiles.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
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
/// One nest with several folds.
class Separation {
public:
  /// With `takesSums` the fold with sums of products moves too, where others wait for it.
  Separation(ForOp nest, bool takesSums)
      : takesSums(takesSums), nest(nest), body(nest.getBody().front()), kernel(nest->getParentOfType<onf::KernelOp>()), b(nest) {}
  /// Moves some of its folds to a nest in front of it; that one, or null where all stay.
  ForOp run();

private:
  using Ops = llvm::SmallSetVector<Operation *, 8>;
  Operation *getOpOfBody(Operation *op);
  bool follows(Operation *op, FoldOp fold);
  bool canMove(const Ops &folds);
  Ops findSources(const Ops &folds);
  ForOp move(const Ops &folds);

  bool takesSums;
  ForOp nest;
  Block &body;
  onf::KernelOp kernel;
  OpBuilder b;
};
} // namespace

/// How many folds of a nest hold others, as sums of products.
static unsigned countSums(ForOp nest) {
  return llvm::count_if(nest.getBody().getOps<FoldOp>(),
                        [](FoldOp fold) { return !fold.getBody().getOps<FoldOp>().empty(); });
}

/// The first fold over keys of a function of sums of products.
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

/// What the specification calls a state, or the kind of the state.
static StringRef nameOf(AccOp acc) {
  auto named = dyn_cast<NameLoc>(acc->getLoc());
  bool isName = named && llvm::all_of(named.getName().getValue(), [](char c) { return llvm::isAlnum(c) || c == '_'; });
  return isName ? named.getName().getValue() : acc.getName();
}

/// Whether it may be taken apart: it has rows, is not chosen or bound to a machine, and tensor cores do not take it as it is.
static bool isOpen(ForOp nest) {
  std::string ignored;
  return nest.getBody().getNumArguments() && !nest.getChoices() && !nest.getLift() &&
         nest.getBody().getOps<GuardOp>().empty() && !findTiles(nest, ignored);
}

//===----------------------------------------------------------------------===//
// Folds
//===----------------------------------------------------------------------===//

/// The operation of the body that holds this one.
Operation *Separation::getOpOfBody(Operation *op) { return body.findAncestorOpInBlock(*op); }

/// Whether an operation of the body reads a state of the fold, or what follows from it.
bool Separation::follows(Operation *op, FoldOp fold) {
  llvm::SmallPtrSet<Operation *, 16> seen;
  SmallVector<Operation *> open{fold};
  while (!open.empty())
    for (Operation *user : open.pop_back_val()->getUsers())
      if (Operation *at = getOpOfBody(user); at && seen.insert(at).second)
        open.push_back(at);
  return seen.contains(op);
}

/// Whether temporaries hold all of their states, which are read element by element.
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

/// What of the body these folds are computed from, with themselves.
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

/// Moves these folds, with copies of what they are computed from, to a nest in front of this one, which stores the states
/// that this one reads.
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
  // What nothing but moved folds reads is no longer needed here.
  llvm::SmallPtrSet<Operation *, 16> gone(folds.begin(), folds.end());
  for (Operation *op : llvm::reverse(sources)) {
    bool isUnused = llvm::all_of(op->getUsers(), [&](Operation *user) { return gone.contains(getOpOfBody(user)); });
    if (isUnused && (isa<FoldOp>(op) || isMemoryEffectFree(op) || isa<LoadOp>(op)))
      gone.insert(op);
  }
  SmallVector<SymExpr> extents;
  for (StringRef extent : nest.getExtents().getAsValueRange<StringAttr>())
    extents.push_back(*SymExpr::parse(extent));
  for (Operation *op : folds)
    for (auto [acc, state] : llvm::zip_equal(rows::getAccs(cast<FoldOp>(op)), op->getResults())) {
      auto isRead = [&](Operation *user) { return !gone.contains(getOpOfBody(user)); };
      if (llvm::none_of(state.getUsers(), isRead))
        continue;
      SmallVector<SymExpr> shape(extents);
      for (StringRef extent : acc.getExtents().getAsValueRange<StringAttr>())
        shape.push_back(*SymExpr::parse(extent));
      Location loc = acc.getLoc();
      BlockArgument array =
          addTemporary(kernel, (nameOf(acc) + "_of_row").str(), shape, storedType(elementOf(acc)), loc);
      // Stored there …
      b.setInsertionPointToEnd(block);
      SmallVector<Value> indices(block->getArguments());
      Value value = map.lookup(state);
      if (!acc.getExtents().empty()) {
        auto loop = ForOp::create(b, loc, acc.getNames(), acc.getExtents());
        size_t axes = acc.getExtents().size();
        Block *inside = b.createBlock(&loop.getBody(), {}, SmallVector<Type>(axes, b.getIndexType()),
                                      SmallVector<Location>(axes, loc));
        value = AtOp::create(b, loc, elementOf(acc), value, inside->getArguments());
        llvm::append_range(indices, inside->getArguments());
      }
      storeValue(b, loc, kernel, value, array, indices);
      // … and loaded here.
      auto load = [&](Operation *before, ValueRange inner) {
        b.setInsertionPoint(before);
        SmallVector<Value> at(body.getArguments());
        llvm::append_range(at, inner);
        return loadValue(b, loc, kernel, elementOf(acc), array, at);
      };
      if (acc.getExtents().empty()) {
        Value loaded = load(op, {});
        state.replaceUsesWithIf(loaded, [&](OpOperand &use) { return isRead(use.getOwner()); });
        continue;
      }
      for (Operation *user : llvm::make_early_inc_range(state.getUsers()))
        if (isRead(user)) {
          user->getResult(0).replaceAllUsesWith(load(user, cast<AtOp>(user).getIndices()));
          user->erase();
        }
    }
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
  // Those that do not wait for it, or where all do, itself.
  Ops moved;
  for (FoldOp fold : folds)
    if (fold != scored && !follows(fold, scored))
      moved.insert(fold);
  if (moved.empty() && takesSums)
    moved.insert(scored);
  return !moved.empty() && canMove(moved) ? move(moved) : ForOp();
}

//===----------------------------------------------------------------------===//
// Values of rows or keys alone
//===----------------------------------------------------------------------===//

namespace {
/// A value of the rows or of the keys alone in a fold over keys: what it is computed from and its indices.
class StoredValue {
public:
  StoredValue(FoldOp fold, Value value) : fold(fold), value(value), nest(cast<ForOp>(fold->getParentOp())), b(nest) {}
  /// Whether it is an element that a contraction rounds.
  bool isOperand();
  /// Whether it is a number for each key, or for each row.
  bool isNumber();
  /// Stores it in front of the nest, for all indices, and loads it where it was computed.
  void store();

private:
  bool find();
  bool collect(Value from);
  bool collectTerm(LoadOp load, unsigned number);
  bool isWithinBounds(LoadOp load);
  std::pair<StringAttr, StringAttr> findInner();
  std::string makeName();

  FoldOp fold;
  Value value;
  ForOp nest;
  OpBuilder b;
  llvm::SetVector<Operation *> sources; // operands first
  llvm::SmallPtrSet<Value, 8> indices;
  llvm::MapVector<Value, StringAttr> quotients; // of indices in front of the rows, with extents: heads of keys, …
  Value inner; // the last axis of what is stored
  bool takesQuotients = true;
};
} // namespace

/// The extent of the axis that one index of a load runs along by itself, or null where it is not along one.
static StringAttr findExtent(LoadOp load, unsigned number) {
  auto texts = load.getCoefficients().getAsValueRange<StringAttr>();
  StringRef text = *std::next(texts.begin(), number);
  ArrayType type = load.getArray().getType();
  for (unsigned axis = 0; axis < type.getRank(); ++axis) {
    std::string stride = (rows::getArrayName(load) + ".s" + Twine(axis)).str();
    bool isAlone = llvm::count_if(texts, [&](StringRef each) { return each.contains(stride); }) == 1 &&
                   !load.getConstant().contains(stride);
    if (text == stride && isAlone)
      return StringAttr::get(load.getContext(), type.getExtent(axis).str());
  }
  return StringAttr();
}

/// An index of a load. A quotient of those in front of the rows, as the number of a group of heads, is one itself, along all of
/// the array's axis.
bool StoredValue::collectTerm(LoadOp load, unsigned number) {
  Value term = load.getTerms()[number], row = nest.getBody().getArguments().back();
  Operation *op = term.getDefiningOp();
  rows::Dependence deps;
  if (takesQuotients && isa_and_nonnull<arith::FloorDivSIOp, arith::DivSIOp, arith::DivUIOp>(op) &&
      op->getParentOp() == nest && !deps.of(term).empty() && !deps.on(term, row))
    if (StringAttr extent = findExtent(load, number))
      return quotients.insert({term, extent}).first->second == extent;
  return collect(term);
}

/// Whether only conditions on indices inside of the value keep a load in its array, which are computed with it: along axes of the
/// nest and of the keys an index has all of it, and along others numbers alone decide.
bool StoredValue::isWithinBounds(LoadOp load) {
  rows::Dependence deps;
  auto rangeOf = [&](Value index) -> std::pair<Attribute, bool> {
    auto argument = cast<BlockArgument>(index);
    Operation *owner = argument.getOwner()->getParentOp();
    if (owner == nest)
      return {nest.getExtents()[argument.getArgNumber()], true};
    if (auto over = dyn_cast<FoldOp>(owner))
      return {over.getExtentAttr(), owner == fold};
    auto acc = dyn_cast<AccOp>(owner);
    return {acc ? acc.getExtents()[argument.getArgNumber()] : Attribute(), false};
  };
  auto isNumber = [](Attribute extent) {
    auto text = dyn_cast_or_null<StringAttr>(extent);
    return text && SymExpr::parse(text.getValue())->getConstant();
  };
  // Numbers and what is computed of such indices.
  std::function<bool(Value)> isOfNumbers = [&](Value x) {
    Operation *op = x.getDefiningOp();
    if (!op)
      return !rangeOf(x).second && isNumber(rangeOf(x).first);
    return isa<arith::ArithDialect>(op->getDialect()) && llvm::all_of(op->getOperands(), isOfNumbers);
  };
  ArrayType type = load.getArray().getType();
  SmallVector<std::string> strides;
  for (unsigned axis = 0; axis < type.getRank(); ++axis)
    strides.push_back((rows::getArrayName(load) + ".s" + Twine(axis)).str());
  auto offsets = splitBySymbols(*SymExpr::parse(load.getConstant()), {strides.begin(), strides.end()});
  if (!offsets)
    return false;
  for (auto [axis, stride] : llvm::enumerate(strides)) {
    bool hasNumbers = type.getExtent(axis).getConstant().has_value();
    auto offset = offsets->find(stride);
    if (offset != offsets->end() && !(hasNumbers && offset->second.getConstant()))
      return false;
    for (auto [number, term] : llvm::enumerate(load.getTerms())) {
      StringRef text = cast<StringAttr>(load.getCoefficients()[number]).getValue();
      if (!text.contains(stride))
        continue;
      auto factors = splitBySymbols(*SymExpr::parse(text), {stride});
      bool isInside = hasNumbers && factors && factors->at(stride).getConstant() && isOfNumbers(term);
      StringAttr extent = findExtent(load, number);
      bool isWhole = extent && isa<BlockArgument>(term) && rangeOf(term) == std::pair<Attribute, bool>(extent, true);
      if (!isInside && !isWhole && !quotients.contains(term))
        return false;
    }
  }
  return true;
}

/// What a value is computed from: loads, folds, and what has no effects.
bool StoredValue::collect(Value from) {
  Operation *op = from.getDefiningOp();
  if (!op) {
    indices.insert(from);
    return true;
  }
  if (sources.contains(op))
    return true;
  if (!isa<LoadOp, FoldOp>(op) && (op->getNumRegions() || !isMemoryEffectFree(op)))
    return false;
  bool isKnown = true;
  op->walk([&](Operation *inside) {
    auto load = dyn_cast<LoadOp>(inside);
    unsigned first = load ? 1 : 0; // the array
    for (OpOperand &operand : inside->getOpOperands().drop_front(first)) {
      Operation *source = operand.get().getParentBlock()->getParentOp();
      if (isKnown && !op->isAncestor(source))
        isKnown = load ? collectTerm(load, operand.getOperandNumber() - first) : collect(operand.get());
    }
  });
  sources.insert(op);
  return isKnown;
}

bool StoredValue::find() {
  // It is computed at all indices then, whatever conditions it stands behind.
  OnDemand onDemand(nest->getParentOfType<onf::KernelOp>());
  if (onDemand.mayDivideByZero(value) || !collect(value))
    return false;
  // Where it depends on an index itself, quotients of that are none.
  rows::Dependence deps;
  auto isKnown = [&](const auto &quotient) {
    return llvm::any_of(deps.of(quotient.first), [&](Value index) { return indices.contains(index); });
  };
  if (llvm::any_of(quotients, isKnown)) {
    takesQuotients = false;
    sources.clear(), indices.clear(), quotients.clear();
    if (!collect(value))
      return false;
  }
  Value row = nest.getBody().getArguments().back(), key = fold.getBody().getArgument(0);
  for (Value index : indices) {
    Operation *owner = cast<BlockArgument>(index).getOwner()->getParentOp();
    if (owner == nest || owner == fold)
      continue;
    bool isAxis = isa<FoldOp, AccOp>(owner) && owner->getParentOp() == fold && !inner;
    if (!isAxis)
      return false;
    inner = index;
  }
  auto isThere = [&](Operation *op) {
    return !op->walk([&](LoadOp load) {
                return onDemand.isInBounds(load) || isWithinBounds(load) ? WalkResult::advance() : WalkResult::interrupt();
              }).wasInterrupted();
  };
  return indices.contains(row) != indices.contains(key) && llvm::all_of(sources, isThere);
}

bool StoredValue::isOperand() { return value.getDefiningOp<arith::TruncFOp>() && find() && inner; }

bool StoredValue::isNumber() {
  Operation *op = value.getDefiningOp();
  return op && llvm::is_contained({fold.getOperation(), nest.getOperation()}, op->getParentOp()) &&
         !isa<ArrayType>(value.getType()) && storedType(value.getType()) && find() && !inner;
}

/// The name and the extent of the last axis.
std::pair<StringAttr, StringAttr> StoredValue::findInner() {
  if (!inner)
    return {};
  Operation *owner = cast<BlockArgument>(inner).getOwner()->getParentOp();
  if (auto sum = dyn_cast<FoldOp>(owner))
    return {sum.getNameAttr(), sum.getExtentAttr()};
  auto acc = cast<AccOp>(owner);
  unsigned axis = cast<BlockArgument>(inner).getArgNumber();
  return {cast<StringAttr>(acc.getNames()[axis]), cast<StringAttr>(acc.getExtents()[axis])};
}

/// After the state of a fold, or the first array that the value is computed from.
std::string StoredValue::makeName() {
  std::string behind = inner ? "_rounded" : indices.contains(fold.getBody().getArgument(0)) ? "_of_key" : "_of_row";
  for (Operation *op : sources)
    if (auto sum = dyn_cast<FoldOp>(op); sum && !inner)
      return nameOf(rows::getAccs(sum).front()).str() + behind;
  auto read = llvm::find_if(sources, [](Operation *op) { return isa<LoadOp>(op); });
  StringRef base = read == sources.end() ? "value" : rows::getArrayName(cast<LoadOp>(*read));
  base.consume_back(behind);
  return base.str() + behind;
}

void StoredValue::store() {
  onf::KernelOp kernel = nest->getParentOfType<onf::KernelOp>();
  Location loc = value.getLoc();
  SmallVector<Attribute> names, extents;
  SmallVector<Value> axes;
  auto add = [&](Value index, Attribute name, Attribute extent) {
    names.push_back(name), extents.push_back(extent), axes.push_back(index);
  };
  Value row = nest.getBody().getArguments().back();
  for (auto [index, name, extent] : llvm::zip_equal(nest.getBody().getArguments(), nest.getNames(), nest.getExtents())) {
    if (index == row)
      for (auto [number, pair] : llvm::enumerate(quotients))
        add(pair.first, b.getStringAttr("g" + Twine(number)), pair.second);
    if (indices.contains(index))
      add(index, name, extent);
  }
  if (Value key = fold.getBody().getArgument(0); indices.contains(key))
    add(key, fold.getNameAttr(), fold.getExtentAttr());
  SmallVector<SymExpr> shape;
  for (Attribute text : extents)
    shape.push_back(*SymExpr::parse(cast<StringAttr>(text).getValue()));
  auto [name, extent] = findInner();
  if (inner)
    shape.push_back(*SymExpr::parse(extent.getValue()));
  Type type = isa<FloatType>(value.getType()) ? value.getType() : storedType(value.getType());
  BlockArgument array = addTemporary(kernel, makeName(), shape, type, loc);
  auto makeLoop = [&](ArrayRef<Attribute> names, ArrayRef<Attribute> extents) {
    auto loop = ForOp::create(b, nest.getLoc(), b.getArrayAttr(names), b.getArrayAttr(extents));
    b.createBlock(&loop.getBody(), {}, SmallVector<Type>(names.size(), b.getIndexType()),
                  SmallVector<Location>(names.size(), nest.getLoc()));
    return loop;
  };
  IRMapping map;
  ForOp outer = makeLoop(names, extents);
  map.map(axes, outer.getBody().getArguments());
  rows::Dependence deps;
  auto isOfInner = [&](Operation *op) { return inner && deps.on(op->getResult(0), inner); };
  for (Operation *op : sources)
    if (!isOfInner(op))
      b.clone(*op, map);
  SmallVector<Value> at(outer.getBody().getArguments());
  if (inner) {
    ForOp loop = makeLoop({name}, {extent});
    map.map(inner, loop.getBody().getArgument(0));
    for (Operation *op : sources)
      if (isOfInner(op))
        b.clone(*op, map);
    at.push_back(loop.getBody().getArgument(0));
    axes.push_back(inner);
  }
  storeValue(b, loc, kernel, map.lookup(value), array, at);
  b.setInsertionPoint(value.getDefiningOp());
  value.replaceAllUsesWith(loadValue(b, loc, kernel, value.getType(), array, axes));
  for (Operation *op : llvm::reverse(sources))
    if (op->use_empty())
      op->erase();
}

/// Stores elements of the rows or of the keys that are computed and rounded, as by a cast.
static void storeOperands(FoldOp fold) {
  SmallVector<Value> rounded;
  fold.walk([&](arith::TruncFOp value) { rounded.push_back(value); });
  for (Value each : rounded)
    if (StoredValue value(fold, each); value.isOperand())
      value.store();
}

/// The same, tried on a copy, which takes the kernel's place where the nest of this number runs by tiles then.
static onf::KernelOp tryOperands(onf::KernelOp kernel, unsigned number) {
  auto nestOf = [&](onf::KernelOp each) { return *std::next(each.getBody().getOps<ForOp>().begin(), number); };
  ForOp nest = nestOf(kernel);
  if (!llvm::hasSingleElement(nest.getBody().getOps<FoldOp>()) || !isOpen(nest) || !findScored(nest))
    return kernel;
  OpBuilder b(kernel);
  auto copy = cast<onf::KernelOp>(b.clone(*kernel));
  nest = nestOf(copy);
  storeOperands(findScored(nest));
  std::string ignored;
  bool isTaken = findTiles(nest, ignored).has_value();
  (isTaken ? kernel : copy).erase();
  return isTaken ? copy : kernel;
}

/// Stores what folds give for each key, which all rows read.
static void storeFoldsOfKeys(FoldOp fold) {
  for (FoldOp inner : llvm::to_vector(fold.getBody().getOps<FoldOp>()))
    if (StoredValue value(fold, inner.getResult(0)); inner->getNumResults() == 1 && value.isNumber())
      value.store();
}

/// Whether what follows from a value may jump, as far as a kernel's nest tells: a comparison with something finite, an integer, a
/// monoid of the user, or what other nests read.
static bool mayJump(Value value) {
  SmallVector<Value> open{value};
  llvm::SmallPtrSet<Operation *, 16> seen;
  auto isInfinite = [](Value x) {
    FloatAttr number;
    return matchPattern(x, m_Constant(&number)) && number.getValue().isInfinity();
  };
  while (!open.empty()) {
    Value next = open.pop_back_val();
    for (OpOperand &use : next.getUses()) {
      Operation *user = use.getOwner(), *parent = user->getParentOp();
      if (auto compared = dyn_cast<arith::CmpFOp>(user);
          compared && (isInfinite(compared.getLhs()) || isInfinite(compared.getRhs())))
        continue;
      if (isa<arith::CmpFOp, arith::FPToSIOp, arith::FPToUIOp, math::FloorOp, math::CeilOp, math::RoundOp,
              math::RoundEvenOp, math::TruncOp>(user))
        return true;
      if (auto store = dyn_cast<StoreOp>(user)) {
        auto kernel = store->getParentOfType<onf::KernelOp>();
        if (kernel.isTemporary(cast<BlockArgument>(store.getArray()).getArgNumber()))
          return true;
      }
      if (auto acc = dyn_cast<AccOp>(parent); acc && acc.getMonoid() == Monoid::user)
        return true;
      if (isa<onf::YieldOp>(user)) { // a state of a fold, or what an accumulation takes in
        Value made = isa<FoldOp>(parent) ? parent->getResult(use.getOperandNumber()) : Value();
        if (auto acc = dyn_cast<AccOp>(parent))
          made = acc.getResult();
        if (made && seen.insert(made.getDefiningOp()).second)
          open.append(made.getDefiningOp()->result_begin(), made.getDefiningOp()->result_end());
      } else if (seen.insert(user).second) {
        open.append(user->result_begin(), user->result_end());
      }
    }
  }
  return false;
}

/// Quotients by what the row or the key alone decides become products with the reciprocal, one for each row and key. Where tensor
/// cores take the nest its numbers have few bits.
static void takeReciprocals(ForOp nest, FoldOp fold) {
  Value row = nest.getBody().getArguments().back(), key = fold.getBody().getArgument(0);
  rows::Dependence deps;
  for (auto quotient : llvm::to_vector(fold.getBody().getOps<arith::DivFOp>())) {
    Value y = quotient.getRhs();
    bool ofRow = deps.on(y, row), ofKey = deps.on(y, key);
    bool isOfBoth = deps.on(quotient, row) && deps.on(quotient, key);
    if (!quotient.getType().isF32() || ofRow == ofKey || !isOfBoth || mayJump(quotient))
      continue;
    // A divisor of the row stands in front of the fold.
    OpBuilder b(quotient);
    if (Operation *op = y.getDefiningOp(); ofRow && op && op->getParentOp() == nest)
      b.setInsertionPointAfter(op);
    Location loc = quotient.getLoc();
    Value one = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(1.0f));
    Value reciprocal = arith::DivFOp::create(b, loc, one, y);
    b.setInsertionPoint(quotient);
    quotient.replaceAllUsesWith(arith::MulFOp::create(b, loc, quotient.getLhs(), reciprocal).getResult());
    quotient.erase();
    if (StoredValue value(fold, reciprocal); value.isNumber())
      value.store();
  }
}

namespace {
struct SeparateFolds final : moa::impl::SeparateFoldsBase<SeparateFolds> {
  using SeparateFoldsBase::SeparateFoldsBase;
  /// All nests of a kernel.
  static void separate(onf::KernelOp kernel, bool takesSums) {
    SmallVector<ForOp> open(kernel.getBody().getOps<ForOp>());
    while (!open.empty()) {
      ForOp nest = open.pop_back_val();
      if (ForOp made = Separation(nest, takesSums).run())
        open.append({nest, made});
    }
  }

  /// Folds with sums of products move only if all of these run by tiles then: that is what pays for storing what they give, and
  /// the same sums computed by tiles and otherwise differ in their last bits, which comparisons of what follows may see.
  onf::KernelOp separateFolds(onf::KernelOp kernel) {
    if (forTiles) {
      OpBuilder b(kernel);
      auto copy = cast<onf::KernelOp>(b.clone(*kernel));
      separate(copy, /*takesSums=*/true);
      std::string ignored;
      bool areTiles = llvm::all_of(copy.getBody().getOps<ForOp>(), [&](ForOp nest) {
        return countSums(nest) == 0 || findTiles(nest, ignored);
      });
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
      // Nests in front of one are added behind those that are still to come.
      for (unsigned number = llvm::range_size(kernel.getBody().getOps<ForOp>()); number-- > 0;)
        kernel = tryOperands(kernel, number);
      for (ForOp nest : llvm::to_vector(kernel.getBody().getOps<ForOp>())) {
        if (nest.getBody().getNumArguments() == 0 || nest.getChoices() || nest.getLift())
          continue;
        std::string ignored;
        FoldOp fold = forTiles && findTiles(nest, ignored) ? findScored(nest) : FoldOp();
        if (!fold)
          continue;
        takeReciprocals(nest, fold);
        storeFoldsOfKeys(fold);
      }
    }
  }
};
} // namespace

std::unique_ptr<Pass> moa::createSeparateFoldsPass(bool forTiles) {
  SeparateFoldsOptions options;
  options.forTiles = forTiles;
  return std::make_unique<SeparateFolds>(options);
}
