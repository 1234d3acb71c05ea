//===- TileMaps.cpp - scalar functions of the elements of tiles -----------===//
#include "lib/Conversion/ONFToDevice/TileKernel.h"
#include "mlir/Analysis/SliceAnalysis.h"

using namespace mlir;
using namespace moa;
using namespace moa::onf;

namespace moa::tiles {

/// Removes what no result of a map needs.
static void eraseUnused(device::MapOp op) {
  Block &block = op.getBody().front();
  for (Operation &inner : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&inner))
      inner.erase();
  for (unsigned k = op.getInputs().size(); k-- != 0;)
    if (block.getArgument(k).use_empty()) {
      block.eraseArgument(k);
      op->eraseOperand(k);
    }
}

Values TileKernel::map(ScalarCode &code, StringRef name, ValueRange inputs, Over over,
                       ArrayRef<Type> elements,
                       llvm::function_ref<Values(ValueRange, ValueRange)> body) {
  FragmentType whole = typeOver(over, b.getF32Type());
  SmallVector<Type> results;
  for (Type element : elements)
    results.push_back(typeOver(over, element));
  auto op = device::MapOp::create(b, name.empty() ? code.loc : code.named(name), results, inputs,
                                  whole.getLayout());
  OpBuilder::InsertionGuard guard(b);
  Block &block = op.getBody().emplaceBlock();
  for (Value input : inputs)
    block.addArgument(elementOf(input), input.getLoc());
  for (unsigned axis = 0; axis < whole.getShape().size(); ++axis)
    block.addArgument(b.getIndexType(), code.loc);
  b.setInsertionPointToEnd(&block);
  code.open();
  ValueRange arguments = block.getArguments();
  Values values = body(arguments.take_front(inputs.size()),
                       arguments.drop_front(inputs.size()));
  device::YieldOp::create(b, code.loc, values);
  code.close();
  eraseUnused(op);
  if (over.kind == Over::Tile && !hasFewValues) {
    hideStrides(code, op);
    hideConditions(code, op);
    moveToRows(code, op);
  }
  return Values(op.getResults());
}

/// What a value of a map's body is computed from inside of it, in order.
static SetVector<Operation *> stepsInside(device::MapOp op, Value value) {
  SetVector<Operation *> steps;
  BackwardSliceOptions options;
  options.filter = [&](Operation *step) { return op->isProperAncestor(step); };
  options.inclusive = true;
  (void)getBackwardSlice(value, &steps, options);
  return steps;
}

/// Whether a value of a map's body depends on the element.
static bool isOfElement(device::MapOp op, Value value) {
  auto isArgument = [&](Value operand) {
    return is_contained(op.getBody().getArguments(), operand);
  };
  return isArgument(value) || llvm::any_of(stepsInside(op, value), [&](Operation *step) {
    return llvm::any_of(step->getOperands(), isArgument);
  });
}

/// Where a map over a tile reads memory, an address per element would follow from few
/// strides and be kept in registers from tile to tile: what is multiplied with an index
/// becomes opaque in front of the map.
void TileKernel::hideStrides(ScalarCode &code, device::MapOp op) {
  if (!op.walk([](device::LoadOp) { return WalkResult::interrupt(); }).wasInterrupted())
    return;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(op);
  llvm::StringMap<Value> hidden;
  op.walk([&](device::SymbolOp symbol) {
    if (llvm::none_of(symbol->getUsers(), [&](Operation *user) {
          return isa<arith::MulIOp>(user) && isOfElement(op, user->getResult(0));
        }))
      return;
    Value &value = hidden[symbol.getExpr()];
    if (!value)
      value = device::OpaqueOp::create(b, code.loc, code.symbol(symbol.getExpr()));
    symbol.replaceAllUsesWith(value);
  });
  eraseUnused(op);
}

/// A condition that is the same for a whole tile becomes one per row that a compiler
/// cannot see to be the same: with a branch around all elements, the registers of both
/// sides would be live.
void TileKernel::hideConditions(ScalarCode &code, device::MapOp op) {
  Block &block = op.getBody().front();
  llvm::MapVector<Value, SmallVector<OpOperand *>> uses;
  for (auto select : block.getOps<arith::SelectOp>()) {
    if (!isOfElement(op, select.getCondition()))
      uses[select.getCondition()].push_back(&select.getConditionMutable());
  }
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(op);
  for (auto &[condition, operands] : uses) {
    Value ofRows = map(code, "", {}, Over::rows(), {b.getI1Type()}, [&](ValueRange, ValueRange) {
      IRMapping copies;
      for (Operation *step : stepsInside(op, condition))
        b.clone(*step, copies);
      Value word = arith::ExtUIOp::create(b, code.loc, b.getI32Type(),
                                          copies.lookupOrDefault(condition));
      Value zero = code.constant(b.getI32IntegerAttr(0));
      return Values{code.differs(device::OpaqueOp::create(b, code.loc, word), zero)};
    })[0];
    unsigned number = op.getInputs().size();
    op.getInputsMutable().append(ofRows);
    Value argument = block.insertArgument(number, b.getI1Type(), code.loc);
    for (OpOperand *operand : operands)
      operand->set(argument);
  }
}

/// Moves what a map over a tile computes of its row alone, numbers and conditions, to a
/// map over the rows in front of it.
void TileKernel::moveToRows(ScalarCode &code, device::MapOp op) {
  Block &block = op.getBody().front();
  unsigned count = op.getInputs().size();
  auto isOfRow = [&](BlockArgument argument) {
    unsigned number = argument.getArgNumber();
    return number < count
               ? cast<FragmentType>(op.getInputs()[number].getType()).getShape().size() == 1
               : number == count;
  };
  // Of the row, or the same for the whole tile.
  llvm::SmallPtrSet<Operation *, 16> ofRow, uniform;
  for (Operation &inner : block.without_terminator()) {
    // Inputs do not change, so that what is read anyway may be read here.
    if (inner.getNumRegions() != 0 || !(isPure(&inner) || isa<device::LoadOp>(inner)))
      continue;
    bool row = false, other = false;
    for (Value operand : inner.getOperands()) {
      auto argument = dyn_cast<BlockArgument>(operand);
      Operation *def = operand.getDefiningOp();
      if (argument && argument.getOwner() == &block)
        (isOfRow(argument) ? row : other) = true;
      else if (def && def->getBlock() == &block)
        (ofRow.contains(def) ? row : other) |= !uniform.contains(def);
    }
    if (!other)
      (row ? ofRow : uniform).insert(&inner);
  }
  Values roots;
  for (Operation &inner : block) {
    if (!ofRow.contains(&inner) || !isa<IntegerType, FloatType>(inner.getResult(0).getType()))
      continue;
    if (llvm::any_of(inner.getUsers(), [&](Operation *user) { return !ofRow.contains(user); }))
      roots.push_back(inner.getResult(0));
  }
  if (roots.empty())
    return;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(op);
  SmallVector<Type> types;
  Values inputs;
  IRMapping copies;
  SmallVector<unsigned> numbers;
  for (unsigned k = 0; k != count; ++k)
    if (isOfRow(block.getArgument(k)))
      inputs.push_back(op.getInputs()[k]), numbers.push_back(k);
  for (Value root : roots)
    types.push_back(root.getType());
  Values results = map(code, "", inputs, Over::rows(), types,
                       [&](ValueRange in, ValueRange at) {
    for (auto [number, value] : llvm::zip(numbers, in))
      copies.map(block.getArgument(number), value);
    copies.map(block.getArgument(count), at[0]);
    for (Operation &inner : block)
      if (ofRow.contains(&inner) || uniform.contains(&inner))
        b.clone(inner, copies);
    Values values;
    for (Value root : roots)
      values.push_back(copies.lookup(root));
    return values;
  });
  for (auto [root, result] : llvm::zip(roots, results)) {
    unsigned number = op.getInputs().size();
    op.getInputsMutable().append(result);
    root.replaceAllUsesWith(block.insertArgument(number, root.getType(), root.getLoc()));
  }
  eraseUnused(op);
}

void TileKernel::bindElement(ScalarCode &code, ValueRange at, Value first) {
  code.bind(plan.nest.getBody().getArguments().back(),
            arith::AddIOp::create(b, code.loc, rowBase, at[0]));
  if (at.size() > 1)
    code.bind(plan.fold.getBody().getArgument(0),
              arith::AddIOp::create(b, code.loc, first, at[1]));
}

Values TileKernel::ifAny(ScalarCode &code, Value condition, ValueRange otherwise,
                         llvm::function_ref<Values()> body) {
  auto op = device::IfAnyOp::create(b, code.loc, ValueRange(otherwise).getTypes(), condition,
                                    otherwise);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(&op.getBody().emplaceBlock());
  code.open();
  Values values = body();
  device::YieldOp::create(b, code.loc, values);
  code.close();
  return Values(op.getResults());
}

} // namespace moa::tiles
