//===- StoredValues.cpp - values of rows or keys alone, computed once -----===//
#include "lib/Conversion/ONFToDevice/StoredValues.h"
#include "dialects/ONF/Transforms/Temporaries.h"
#include "lib/Analysis/Jumps.h"
#include "lib/Analysis/OnDemand.h"
#include "lib/Conversion/ONFToDevice/Tiles.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace moa;
using namespace moa::onf;

namespace {
/// A value of the row or of the key alone in a fold over keys, with its sources and indices.
class StoredValue {
public:
  StoredValue(FoldOp fold, Value value) : fold(fold), value(value), nest(cast<ForOp>(fold->getParentOp())), b(nest) {}
  /// Returns whether it is a rounded operand of a contraction.
  bool isOperand();
  /// Returns whether it is a number per key, or per row.
  bool isNumber();
  /// Stores it before the nest, for all indices, and loads it where it was computed.
  void store();

private:
  bool find();
  bool collect(Value from);
  bool collectTerm(LoadOp load, unsigned number);
  bool isWithinBounds(LoadOp load);
  std::pair<StringAttr, ExprAttr> findInner();
  std::string makeName();

  FoldOp fold;
  Value value;
  ForOp nest;
  OpBuilder b;
  llvm::SetVector<Operation *> sources; // operands first
  llvm::SmallPtrSet<Value, 8> indices;
  llvm::MapVector<Value, ExprAttr> quotients; // of outer indices, with extents; for example heads of keys
  Value inner;                                // the last axis of the stored array
  bool takesQuotients = true;
};
} // namespace

/// Returns the extent of the axis that one index of a load runs along by itself; else null.
static ExprAttr findExtent(LoadOp load, unsigned number) {
  auto axis = load.getSubscripts().findAxis(number);
  if (!axis || load.getIndex(*axis).getValue() != load.getTerms()[number])
    return ExprAttr();
  return load.getArray().getType().getShape()[*axis];
}

/// Collects an index of a load. A quotient of outer indices, such as the number of a group of
/// heads, is an index itself, along all of the array's axis.
bool StoredValue::collectTerm(LoadOp load, unsigned number) {
  Value term = load.getTerms()[number], row = nest.getBody().getArguments().back();
  Operation *op = term.getDefiningOp();
  rows::Dependence deps;
  if (takesQuotients && isa_and_nonnull<arith::FloorDivSIOp, arith::DivSIOp, arith::DivUIOp>(op) &&
      op->getParentOp() == nest && !deps.of(term).empty() && !deps.on(term, row))
    if (ExprAttr extent = findExtent(load, number))
      return quotients.insert({term, extent}).first->second == extent;
  return collect(term);
}

/// Returns whether a load is in bounds by conditions on indices inside of the value, which are
/// computed with it. On axes of the nest and of the keys, an index must cover the whole axis; on
/// others, bounds must be numbers.
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
  auto isNumber = [](Attribute extent) { return extent && getSymExpr(extent).getConstant(); };
  // Returns whether a value is computed from numbers and such indices.
  std::function<bool(Value)> isOfNumbers = [&](Value x) {
    Operation *op = x.getDefiningOp();
    if (!op)
      return !rangeOf(x).second && isNumber(rangeOf(x).first);
    return isa<arith::ArithDialect>(op->getDialect()) && llvm::all_of(op->getOperands(), isOfNumbers);
  };
  ArrayType type = load.getArray().getType();
  for (auto [axis, subscript] : llvm::enumerate(load.getSubscripts().getAxes())) {
    bool hasNumbers = type.getExtent(axis).getConstant().has_value();
    if (!subscript.constant.isZero() && !(hasNumbers && subscript.constant.getConstant()))
      return false;
    for (auto &[number, factor] : subscript.factors) {
      Value term = load.getTerms()[number];
      bool isInside = hasNumbers && factor.getConstant() && isOfNumbers(term);
      ExprAttr extent = findExtent(load, number);
      bool isWhole = extent && isa<BlockArgument>(term) && rangeOf(term) == std::pair<Attribute, bool>(extent, true);
      if (!isInside && !isWhole && !quotients.contains(term))
        return false;
    }
  }
  return true;
}

/// Collects the sources of a value: loads, folds, and operations without effects.
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
    unsigned first = load ? 1 : 0; // skips the array
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
  // The value is then computed at all indices, also where its conditions are false.
  OnDemand onDemand(nest->getParentOfType<onf::KernelOp>());
  if (onDemand.mayDivideByZero(value) || !collect(value))
    return false;
  // If the value also depends on an index directly, quotients of that index are not separate.
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
                return onDemand.isInBounds(load) || isWithinBounds(load) ? WalkResult::advance()
                                                                         : WalkResult::interrupt();
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

std::pair<StringAttr, ExprAttr> StoredValue::findInner() {
  if (!inner)
    return {};
  Operation *owner = cast<BlockArgument>(inner).getOwner()->getParentOp();
  if (auto sum = dyn_cast<FoldOp>(owner))
    return {sum.getNameAttr(), sum.getExtentAttr()};
  auto acc = cast<AccOp>(owner);
  unsigned axis = cast<BlockArgument>(inner).getArgNumber();
  return {cast<StringAttr>(acc.getNames()[axis]), cast<ExprAttr>(acc.getExtents()[axis])};
}

/// Returns a name after the state of a fold, or the first array that the value depends on.
std::string StoredValue::makeName() {
  std::string suffix = inner ? "_rounded" : indices.contains(fold.getBody().getArgument(0)) ? "_of_key" : "_of_row";
  for (Operation *op : sources)
    if (auto sum = dyn_cast<FoldOp>(op); sum && !inner)
      return nameOf(rows::getAccs(sum).front()).str() + suffix;
  auto read = llvm::find_if(sources, [](Operation *op) { return isa<LoadOp>(op); });
  StringRef base = read == sources.end() ? "value" : rows::getArrayName(cast<LoadOp>(*read));
  base.consume_back(suffix);
  return base.str() + suffix;
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
  for (auto [index, name, extent] :
       llvm::zip_equal(nest.getBody().getArguments(), nest.getNames(), nest.getExtents())) {
    if (index == row)
      for (auto [number, pair] : llvm::enumerate(quotients))
        add(pair.first, b.getStringAttr("g" + Twine(number)), pair.second);
    if (indices.contains(index))
      add(index, name, extent);
  }
  if (Value key = fold.getBody().getArgument(0); indices.contains(key))
    add(key, fold.getNameAttr(), fold.getExtentAttr());
  SmallVector<SymExpr> shape;
  for (Attribute extent : extents)
    shape.push_back(getSymExpr(extent));
  auto [name, extent] = findInner();
  if (inner)
    shape.push_back(extent.getValue());
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
  storeValue(b, loc, map.lookup(value), array, at);
  b.setInsertionPoint(value.getDefiningOp());
  value.replaceAllUsesWith(loadValue(b, loc, value.getType(), array, axes));
  for (Operation *op : llvm::reverse(sources))
    if (op->use_empty())
      op->erase();
}

void moa::storeOperands(FoldOp fold) {
  SmallVector<Value> rounded;
  fold.walk([&](arith::TruncFOp value) { rounded.push_back(value); });
  for (Value each : rounded)
    if (StoredValue value(fold, each); value.isOperand())
      value.store();
}

void moa::storeFoldsOfKeys(FoldOp fold) {
  for (FoldOp inner : llvm::to_vector(fold.getBody().getOps<FoldOp>()))
    if (StoredValue value(fold, inner.getResult(0)); inner->getNumResults() == 1 && value.isNumber())
      value.store();
}

/// Returns whether a discontinuous function may follow from a value, as far as the kernel shows, or
/// another nest reads it.
static bool mayJump(Value value) {
  if (findJump(value))
    return true;
  return llvm::any_of(findStores(value.getDefiningOp()), [](StoreOp store) {
    auto array = cast<BlockArgument>(store.getArray());
    return store->getParentOfType<onf::KernelOp>().isTemporary(array.getArgNumber());
  });
}

void moa::takeReciprocals(ForOp nest, FoldOp fold) {
  Value row = nest.getBody().getArguments().back(), key = fold.getBody().getArgument(0);
  rows::Dependence deps;
  for (auto quotient : llvm::to_vector(fold.getBody().getOps<arith::DivFOp>())) {
    Value y = quotient.getRhs();
    bool ofRow = deps.on(y, row), ofKey = deps.on(y, key);
    bool isOfBoth = deps.on(quotient, row) && deps.on(quotient, key);
    if (!quotient.getType().isF32() || ofRow == ofKey || !isOfBoth || mayJump(quotient))
      continue;
    // A divisor of the row is before the fold.
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
