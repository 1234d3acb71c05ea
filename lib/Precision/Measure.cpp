//===- Measure.cpp - what component-wise errors are measured by -----------===//
//
// |P|·|V| of a result is the result with absolute values pushed through sums, products and
// quotients, and through the sum over keys of weights times values [Def 24]. For the rows of the
// sample it is computed by a copy of the nest as it is written: sums of weights times values add up
// |w|·|v|, from an array of the |v|, and what is behind the fold has magnitudes in the place of
// values.
//
//===----------------------------------------------------------------------===//
#include "lib/Precision/Adapter.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace moa::precision {

/// The sum of weights times values that an element of a state is, or null.
static const Carrier *findSum(Value value, ArrayRef<Carrier> carriers) {
  auto at = value.getDefiningOp<onf::AtOp>();
  auto found = llvm::find_if(carriers, [&](const Carrier &carrier) {
    return at && carrier.outer->getResult(carrier.result) == at.getState();
  });
  return found == carriers.end() ? nullptr : &*found;
}

/// Whether the value follows from such a sum.
static bool readsSums(Value value, ArrayRef<Carrier> carriers) {
  if (findSum(value, carriers))
    return true;
  Operation *op = value.getDefiningOp();
  return op && !isa<onf::FoldOp>(op) && llvm::any_of(op->getOperands(), [&](Value operand) {
           return readsSums(operand, carriers);
         });
}

/// Adds the arrays of which the states that a value follows from add up elements, with weights or
/// without.
static void collectSummed(Value value, ArrayRef<Carrier> carriers,
                          llvm::SmallPtrSetImpl<Value> &arrays) {
  Operation *op = value.getDefiningOp();
  if (const Carrier *carrier = findSum(value, carriers)) {
    arrays.insert(carrier->load.getArray());
    return;
  }
  if (!op || isa<onf::FoldOp>(op))
    return;
  if (auto at = dyn_cast<onf::AtOp>(op))
    if (auto fold = at.getState().getDefiningOp<onf::FoldOp>()) {
      unsigned number = cast<OpResult>(at.getState()).getResultNumber();
      auto acc =
          fold.getBody().front().getTerminator()->getOperand(number).getDefiningOp<onf::AccOp>();
      SetVector<Operation *> slice;
      BackwardSliceOptions options;
      options.inclusive = options.omitUsesFromAbove = options.omitBlockArguments = true;
      if (acc)
        (void)getBackwardSlice(getTerm(acc), &slice, options);
      for (Operation *from : slice)
        if (auto load = dyn_cast<onf::LoadOp>(from))
          arrays.insert(load.getArray());
    }
  for (Value operand : op->getOperands())
    collectSummed(operand, carriers, arrays);
}

/// Whether a value is at least 0, or a sum Σ w·v with w ≥ 0, or one of these times a number that
/// is.
static bool isOfWeights(Value value, ArrayRef<Carrier> carriers) {
  if (const Carrier *carrier = findSum(value, carriers))
    return carrier->isNormalised;
  Operation *op = value.getDefiningOp();
  auto are = [&](ValueRange values) {
    return llvm::all_of(values, [&](Value x) { return isOfWeights(x, carriers); });
  };
  if (auto constant = dyn_cast_or_null<arith::ConstantOp>(op)) {
    auto number = dyn_cast<FloatAttr>(constant.getValue());
    return number && !number.getValue().isNegative();
  }
  if (isa_and_nonnull<math::ExpOp, math::Exp2Op>(op))
    return true;
  // Not a product of two sums, of which one may have either sign.
  if (isa_and_nonnull<arith::MulFOp, arith::DivFOp>(op))
    return are(op->getOperands()) &&
           !(readsSums(op->getOperand(0), carriers) && readsSums(op->getOperand(1), carriers));
  if (isa_and_nonnull<arith::AddFOp, arith::ExtFOp, arith::TruncFOp>(op))
    return are(op->getOperands());
  if (auto select = dyn_cast_or_null<arith::SelectOp>(op))
    return are({select.getTrueValue(), select.getFalseValue()});
  auto fold = dyn_cast_or_null<onf::FoldOp>(op);
  auto acc = fold ? fold.getBody()
                        .front()
                        .getTerminator()
                        ->getOperand(cast<OpResult>(value).getResultNumber())
                        .getDefiningOp<onf::AccOp>()
                  : onf::AccOp();
  return acc && acc.getMonoid() == Monoid::add && acc.getExtents().empty() &&
         isOfWeights(getTerm(acc), carriers);
}

/// Whether two values follow from sums over elements of one array: Σ p·v − Σ q·v may be Σ (p −
/// q)·v, whose measure is Σ |p − q|·|v| and may be far less than the sum of both, and no fold has
/// both weights at once.
static bool haveOneArray(Value x, Value y, ArrayRef<Carrier> carriers) {
  llvm::SmallPtrSet<Value, 4> ofX, ofY;
  collectSummed(x, carriers, ofX);
  collectSummed(y, carriers, ofY);
  return llvm::any_of(ofX, [&](Value array) { return ofY.contains(array); });
}

/// Whether absolute values can be pushed through to sums of weights times values.
static bool hasMeasure(Value value, ArrayRef<Carrier> carriers) {
  if (!readsSums(value, carriers) || findSum(value, carriers))
    return true;
  Operation *op = value.getDefiningOp();
  auto all = [&](ValueRange values) {
    return llvm::all_of(values, [&](Value x) { return hasMeasure(x, carriers); });
  };
  bool isSum =
      isa<arith::AddFOp>(op) && isOfWeights(value, carriers); // Σ p·|v| + Σ q·|v| = Σ |p + q|·|v|
  if (isa<arith::AddFOp, arith::SubFOp>(op) && !isSum &&
      haveOneArray(op->getOperand(0), op->getOperand(1), carriers))
    return false;
  if (isa<arith::MulFOp, arith::AddFOp, arith::SubFOp, arith::NegFOp, arith::ExtFOp,
          arith::TruncFOp>(op))
    return all(op->getOperands());
  if (isa<arith::DivFOp>(op))
    return !readsSums(op->getOperand(1), carriers) && hasMeasure(op->getOperand(0), carriers);
  if (isa<arith::SelectOp>(op))
    return !readsSums(op->getOperand(0), carriers) && all(op->getOperands().drop_front());
  return false;
}

/// Whether a value follows from one of these indices by what was not seen yet.
static bool follows(Value value, ValueRange indices, llvm::SmallPtrSetImpl<Operation *> &seen) {
  Operation *op = value.getDefiningOp();
  if (llvm::is_contained(indices, value))
    return true;
  return op && op->walk<WalkOrder::PreOrder>([&](Operation *inner) {
                   if (!seen.insert(inner).second)
                     return WalkResult::skip();
                   bool does = llvm::any_of(inner->getOperands(),
                                            [&](Value x) { return follows(x, indices, seen); });
                   return does ? WalkResult::interrupt() : WalkResult::advance();
                 }).wasInterrupted();
}

/// Whether one follows from these indices by where something is alone, not by scores.
static bool follow(ValueRange values, ValueRange indices, ArrayRef<Score> scores) {
  llvm::SmallPtrSet<Operation *, 16> seen;
  for (const Score &score : scores)
    seen.insert(score.fold);
  return llvm::any_of(values, [&](Value value) { return follows(value, indices, seen); });
}

/// Whether this tells keys of a row apart by where they are: a condition of a range, a choice, or
/// an element of an array (which may be -inf) of row and key.
static bool mayHideKeys(Operation *op, Value row, ValueRange keys, ArrayRef<Score> scores) {
  if (auto guard = dyn_cast<onf::GuardOp>(op))
    return follow(guard.getCondition(), row, scores);
  ValueRange where = isa<arith::SelectOp>(op) ? ValueRange(op->getOperands().take_front())
                     : isa<onf::LoadOp>(op)   ? ValueRange(op->getOperands().drop_front())
                                              : ValueRange();
  return follow(where, row, scores) && follow(where, keys, scores);
}

bool Chooser::hasMeasureOf(const Result &result) {
  Value value = onf::StoreOp(result.store).getValue();
  return readsSums(value, measured) && hasMeasure(value, measured);
}

/// All results have sums of weights times values, whose elements' errors are measured by |w|·|v|,
/// and all rows have the same keys: of few keys errors do not average, and a sample of the rows may
/// not have those with few.
bool Chooser::findMeasure(std::string &why) {
  measured = findCarriers(nest, onDemand, /*anyWeights=*/true);
  for (const Result &result : results) {
    if (hasMeasureOf(result))
      continue;
    why = "'" + kernel.getArrayName(numberOf(result.store)).str() +
          "' has a component-wise tolerance that is sampled, and is no sum of computed weights "
          "times elements of an "
          "input, or of such sums of different inputs; 'relative' takes any";
    return false;
  }
  SmallVector<Value> keys;
  for (const Carrier &carrier : measured)
    keys.push_back(carrier.outer.getBody().getArgument(0));
  Value row = nest.getBody().getArguments().back();
  // Behind the folds no key is told from others.
  auto isOfKeys = [&](Operation *op) {
    return llvm::any_of(measured, [&](const Carrier &carrier) {
      return onf::FoldOp(carrier.outer)->isProperAncestor(op);
    });
  };
  bool isMasked = nest.walk([&](Operation *op) {
                        return isOfKeys(op) && mayHideKeys(op, row, keys, scores)
                                   ? WalkResult::interrupt()
                                   : WalkResult::advance();
                      })
                      .wasInterrupted();
  if (isMasked)
    why = "'" + base() +
          "' has a component-wise tolerance that is sampled, and which keys a row has, or what is "
          "added to their scores, depends on where both are: "
          "rows with few keys are off by more, and a sample may not have them; 'relative' takes "
          "the norm over all rows";
  return !isMasked;
}

/// |x| of every element of an array, in its type.
Value Chooser::addSizes(Value array) {
  auto type = cast<ArrayType>(array.getType());
  SmallVector<Attribute> names, extents(type.getShape().begin(), type.getShape().end());
  for (unsigned k = 0; k < extents.size(); ++k)
    names.push_back(editor.text("i" + Twine(k)));
  std::string name = kernel.getArrayName(cast<BlockArgument>(array).getArgNumber()).str() + "_size";
  Value sizes = editor.addTemporary(name, extents, type.getElementType());
  Choice where = whereRead(array, axesWithout(type.getRank(), {unsigned(type.getRank()) - 1}));
  editor.addNest(ArrayRef(names).drop_back(), ArrayRef(extents).drop_back(), &where,
                 [&](Code &code, ValueRange outer) {
                   code.loops({names.back()}, {extents.back()}, [&](Code &at, ValueRange last) {
                     SmallVector<Value> indices(outer);
                     indices.push_back(last[0]);
                     at.store(at.make<math::AbsFOp>(at.loadFloat(array, indices)), sizes, indices);
                   });
                 });
  return sizes;
}

/// The state of a copy adds up |w|·|v|.
void Chooser::addUpSizes(Copy &copy, const Carrier &carrier, Value sizes) {
  auto acc = cast<onf::AccOp>(copy.map.lookup(carrier.acc.getOperation()));
  auto load = cast<onf::LoadOp>(copy.map.lookup(carrier.load.getOperation()));
  Code term(kernel, OpBuilder(load), load.getLoc());
  unsigned rank = carrier.load.getArray().getType().getRank();
  load.getResult().replaceAllUsesWith(
      loadAs(term, carrier.load, sizes, placesWithout(rank, {}), copy.map));
  load.erase();
  if (carrier.isNormalised)
    return;
  Value weight = copy.map.lookup(carrier.weight);
  Code front(kernel, OpBuilder(weight.getDefiningOp()), acc.getLoc());
  front.b.setInsertionPointAfter(weight.getDefiningOp());
  Value size = front.make<math::AbsFOp>(weight);
  getTerm(acc).getDefiningOp()->replaceUsesOfWith(weight, size);
  if (acc.getRepair().empty() || acc.getRefs().empty())
    return;
  Operation *yield = acc.getRepair().front().getTerminator();
  Code repair(kernel, OpBuilder(yield), acc.getLoc());
  yield->setOperand(0, repair.make<math::AbsFOp>(yield->getOperand(0)));
}

/// |x| of what follows from sums of sizes, at the place of the code.
Value Chooser::pushSizes(Code &code, Value value, Copy &copy) {
  Value now = copy.map.lookupOrDefault(value);
  if (findSum(value, measured))
    return now;
  if (!readsSums(value, measured))
    return code.make<math::AbsFOp>(now);
  Operation *op = value.getDefiningOp();
  auto of = [&](unsigned k) { return pushSizes(code, op->getOperand(k), copy); };
  if (isa<arith::AddFOp, arith::SubFOp>(op))
    return code.make<arith::AddFOp>(of(0), of(1));
  if (isa<arith::MulFOp>(op))
    return code.make<arith::MulFOp>(of(0), of(1));
  if (isa<arith::DivFOp>(op))
    return code.make<arith::DivFOp>(of(0), of(1));
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return code.make<arith::SelectOp>(copy.map.lookupOrDefault(select.getCondition()), of(1),
                                      of(2));
  if (isa<arith::NegFOp>(op))
    return of(0);
  return code.b
      .create(op->getLoc(), op->getName().getIdentifier(), of(0), op->getResultTypes(),
              op->getAttrs())
      ->getResult(0);
}

/// What the errors of the sample's rows are measured by.
void Chooser::addMeasure() {
  llvm::MapVector<Value, Value> sizes;
  for (const Carrier &carrier : measured)
    if (Value &known = sizes[carrier.load.getArray()]; !known)
      known = addSizes(carrier.load.getArray());
  Type element = isCheck ? Builder(kernel.getContext()).getF32Type() : Type();
  SmallVector<Value> arrays = addSampleArrays("_measure", picked.extents, element);
  Copy copy = copySample(sampled);
  for (auto [score, rows] : llvm::zip_equal(scores, picked.gathered))
    readSampledRows(copy, score, rows);
  for (const Carrier &carrier : measured) {
    addUpSizes(copy, carrier, sizes[carrier.load.getArray()]);
    if (isCheck) // what rounding of weights leaves of them is what is measured
      cast<onf::AccOp>(copy.map.lookup(carrier.acc.getOperation())).removeOperandTypeAttr();
  }
  for (auto [result, array] : llvm::zip_equal(results, arrays)) {
    auto store = cast<onf::StoreOp>(copy.map.lookup(result.store.getOperation()));
    Code code(kernel, OpBuilder(store), store.getLoc());
    store.getValueMutable().assign(pushSizes(code, result.store.getValue(), copy));
    result.measure = array;
  }
  storeIn(copy, arrays);
  copy.nest.walk([](onf::ForOp loop) {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(loop.getBody().front())))
      if (isOpTriviallyDead(&op))
        op.erase();
  });
  splitSample(copy, sampleLength(/*isWritten=*/true));
}

} // namespace moa::precision
