//===- Maps.cpp - scalar functions of the elements of tiles ---------------===//
#include "lib/Conversion/ONFToDevice/Tiles/Maps.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace moa;
using namespace moa::onf;

namespace moa::tiles {

/// Removes operations and inputs that no result of a map needs.
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

static device::MapOp emitMap(ScalarCode &code, StringRef name, ValueRange inputs, Over over, ArrayRef<Type> elements,
                             MapBody body) {
  FragmentType whole = typeOver(over, code.b.getF32Type());
  SmallVector<Type> results;
  for (Type element : elements)
    results.push_back(typeOver(over, element));
  auto op =
      device::MapOp::create(code.b, name.empty() ? code.loc : code.named(name), results, inputs, whole.getLayout());
  OpBuilder::InsertionGuard guard(code.b);
  Block &block = op.getBody().emplaceBlock();
  for (Value input : inputs)
    block.addArgument(elementOf(input), input.getLoc());
  for (unsigned axis = 0; axis < whole.getShape().size(); ++axis)
    block.addArgument(code.b.getIndexType(), code.loc);
  code.b.setInsertionPointToEnd(&block);
  code.open();
  ValueRange arguments = block.getArguments();
  Values values = body(arguments.take_front(inputs.size()), arguments.drop_front(inputs.size()));
  device::YieldOp::create(code.b, code.loc, values);
  code.close();
  eraseUnused(op);
  return op;
}

Values mapAtOnce(ScalarCode &code, StringRef name, ValueRange inputs, Over over, ArrayRef<Type> elements,
                 MapBody body) {
  return Values(emitMap(code, name, inputs, over, elements, body).getResults());
}

/// Returns the operations of a map's body that a value is computed from, in order.
static SetVector<Operation *> stepsInside(device::MapOp op, Value value) {
  SetVector<Operation *> steps;
  BackwardSliceOptions options;
  options.filter = [&](Operation *step) { return op->isProperAncestor(step); };
  options.inclusive = true;
  options.omitUsesFromAbove = false; // a branch computes with values from above it
  (void)getBackwardSlice(value, &steps, options);
  return steps;
}

/// Returns whether a value of a map's body depends on the element.
static bool isOfElement(device::MapOp op, Value value) {
  auto isArgument = [&](Value operand) { return is_contained(op.getBody().getArguments(), operand); };
  auto readsArgument = [&](Operation *step) { return llvm::any_of(step->getOperands(), isArgument); };
  return isArgument(value) || llvm::any_of(stepsInside(op, value), [&](Operation *step) {
           return step
               ->walk([&](Operation *inner) {
                 return readsArgument(inner) ? WalkResult::interrupt() : WalkResult::advance();
               })
               .wasInterrupted();
         });
}

/// Makes factors of indices opaque before a map over a tile that loads memory. Otherwise a compiler
/// derives an address per element from few strides and keeps all of them in registers across tiles.
static void hideStrides(ScalarCode &code, device::MapOp op) {
  if (!op.walk([](device::LoadOp) { return WalkResult::interrupt(); }).wasInterrupted())
    return;
  OpBuilder::InsertionGuard guard(code.b);
  code.b.setInsertionPoint(op);
  llvm::DenseMap<ExprAttr, Value> hidden;
  op.walk([&](device::SymbolOp symbol) {
    if (llvm::none_of(symbol->getUsers(),
                      [&](Operation *user) { return isa<arith::MulIOp>(user) && isOfElement(op, user->getResult(0)); }))
      return;
    Value &value = hidden[symbol.getExprAttr()];
    if (!value)
      value = device::OpaqueOp::create(code.b, code.loc, code.symbol(symbol.getExpr()));
    symbol.replaceAllUsesWith(value);
  });
  eraseUnused(op);
}

/// Replaces conditions that are the same for a whole tile with opaque conditions per row. Otherwise
/// a compiler branches around all elements, and the registers of both sides are live.
static void hideConditions(ScalarCode &code, device::MapOp op) {
  Block &block = op.getBody().front();
  llvm::MapVector<Value, SmallVector<OpOperand *>> uses;
  for (auto select : block.getOps<arith::SelectOp>()) {
    if (!isOfElement(op, select.getCondition()))
      uses[select.getCondition()].push_back(&select.getConditionMutable());
  }
  OpBuilder::InsertionGuard guard(code.b);
  code.b.setInsertionPoint(op);
  // A condition may follow from another one: all are computed before any is replaced.
  Values ofRows;
  for (auto &[condition, operands] : uses)
    ofRows.push_back(
        mapAtOnce(code, "", {}, Over::rows(), {code.b.getI1Type()}, [&, condition = condition](ValueRange, ValueRange) {
          IRMapping copies;
          for (Operation *step : stepsInside(op, condition))
            code.b.clone(*step, copies);
          Value word = arith::ExtUIOp::create(code.b, code.loc, code.b.getI32Type(), copies.lookupOrDefault(condition));
          Value zero = code.constant(code.b.getI32IntegerAttr(0));
          return Values{code.differs(device::OpaqueOp::create(code.b, code.loc, word), zero)};
        })[0]);
  for (auto [use, value] : llvm::zip_equal(uses, ofRows)) {
    unsigned number = op.getInputs().size();
    op.getInputsMutable().append(value);
    Value argument = block.insertArgument(number, code.b.getI1Type(), code.loc);
    for (OpOperand *operand : use.second)
      operand->set(argument);
  }
}

namespace {
/// Classifies the values of a map over a tile: uniform, of the row, or of the element. Operations
/// with regions count as of the element, except branches whose blocks have no arguments.
class RowDependence {
public:
  enum Kind { Uniform, Row, Element };

  explicit RowDependence(device::MapOp op) : op(op) {}

  bool isOfRow(BlockArgument argument) {
    unsigned number = argument.getArgNumber(), count = op.getInputs().size();
    return number < count ? cast<FragmentType>(op.getInputs()[number].getType()).getShape().size() == 1
                          : number == count;
  }

  Kind of(Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    if (argument)
      return argument.getOwner() != &op.getBody().front() ? Uniform : isOfRow(argument) ? Row : Element;
    Operation *def = value.getDefiningOp();
    return op->isProperAncestor(def) ? of(def) : Uniform;
  }

  /// Classifies an operation. If it may not be computed once for a row, it is of the element.
  Kind of(Operation *step) {
    if (auto known = kinds.find(step); known != kinds.end())
      return known->second;
    Kind kind = Uniform;
    auto join = [&](ValueRange operands) {
      for (Value operand : operands)
        kind = std::max(kind, of(operand));
    };
    join(step->getOperands());
    // Inputs do not change, so that one load may serve all elements.
    if (!isa<scf::IfOp, scf::YieldOp>(step) &&
        (step->getNumRegions() != 0 || !(isPure(step) || isa<device::LoadOp>(step))))
      kind = Element;
    for (Region &region : step->getRegions())
      for (Operation &inner : region.getOps())
        kind = std::max(kind, of(&inner));
    return kinds[step] = kind;
  }

private:
  device::MapOp op;
  llvm::DenseMap<Operation *, Kind> kinds;
};
} // namespace

/// Returns whether a map's registers can hold a value.
static bool isNumber(Value value) { return isa<IntegerType, FloatType>(value.getType()); }

/// Splits branches whose condition is not of the element. Their row-only operations move to a
/// branch with the same condition before them, where loads are as safe, so that they may be
/// computed once per row.
static void splitBranches(ScalarCode &code, device::MapOp op) {
  SmallVector<scf::IfOp> branches;
  op.walk([&](scf::IfOp branch) { branches.push_back(branch); }); // inner ones first
  for (scf::IfOp branch : branches) {
    RowDependence dependence(op);
    if (dependence.of(branch.getCondition()) == RowDependence::Element ||
        dependence.of(branch) != RowDependence::Element)
      continue;
    SmallVector<Operation *> moved;
    for (Region &side : branch->getRegions())
      for (Operation &inner : side.getOps())
        if (!isa<scf::YieldOp>(inner) && dependence.of(&inner) != RowDependence::Element)
          moved.push_back(&inner);
    auto stays = [&](Operation *user) {
      return llvm::none_of(moved, [&](Operation *step) { return step->isAncestor(user); });
    };
    Values roots;
    for (Operation *step : moved)
      for (Value result : step->getResults())
        if (dependence.of(step) == RowDependence::Row && isNumber(result) && llvm::any_of(result.getUsers(), stays))
          roots.push_back(result);
    if (roots.empty())
      continue;
    OpBuilder::InsertionGuard guard(code.b);
    code.b.setInsertionPoint(branch);
    auto front =
        scf::IfOp::create(code.b, branch.getLoc(), ValueRange(roots).getTypes(), branch.getCondition(), true, true);
    for (auto [from, to] : llvm::zip(branch->getRegions(), front->getRegions())) {
      code.b.setInsertionPointToEnd(&to.front());
      IRMapping copies;
      for (Operation *step : moved)
        if (step->getParentRegion() == &from)
          code.b.clone(*step, copies);
      Values values;
      for (Value root : roots) {
        Value copy = copies.lookupOrNull(root);
        TypedAttr zero = code.b.getZeroAttr(root.getType());
        values.push_back(copy ? copy : arith::ConstantOp::create(code.b, root.getLoc(), zero));
      }
      scf::YieldOp::create(code.b, branch.getLoc(), values);
    }
    for (auto [root, result] : llvm::zip(roots, front.getResults()))
      root.replaceUsesWithIf(result, [&](OpOperand &use) { return stays(use.getOwner()); });
    for (Operation *step : llvm::reverse(moved))
      if (isOpTriviallyDead(step))
        step->erase();
  }
}

/// Hoists row-only numbers and conditions of a map over a tile to a map over rows before it.
static void moveToRows(ScalarCode &code, device::MapOp op) {
  splitBranches(code, op);
  Block &block = op.getBody().front();
  unsigned count = op.getInputs().size();
  RowDependence dependence(op);
  Values roots;
  auto isOfRow = [&](Operation *step) { return dependence.of(step) == RowDependence::Row; };
  auto staysHere = [&](Operation *user) {
    return isa<device::YieldOp>(user) || !isOfRow(block.findAncestorOpInBlock(*user));
  };
  for (Operation &inner : block.without_terminator())
    for (Value result : inner.getResults())
      if (isOfRow(&inner) && isNumber(result) && llvm::any_of(result.getUsers(), staysHere))
        roots.push_back(result);
  if (roots.empty())
    return;
  OpBuilder::InsertionGuard guard(code.b);
  code.b.setInsertionPoint(op);
  SmallVector<Type> types;
  Values inputs;
  IRMapping copies;
  SmallVector<unsigned> numbers;
  for (unsigned k = 0; k != count; ++k)
    if (dependence.isOfRow(block.getArgument(k)))
      inputs.push_back(op.getInputs()[k]), numbers.push_back(k);
  for (Value root : roots)
    types.push_back(root.getType());
  Values results = mapAtOnce(code, "", inputs, Over::rows(), types, [&](ValueRange in, ValueRange at) {
    for (auto [number, value] : llvm::zip(numbers, in))
      copies.map(block.getArgument(number), value);
    copies.map(block.getArgument(count), at[0]);
    for (Operation &inner : block.without_terminator())
      if (dependence.of(&inner) != RowDependence::Element)
        code.b.clone(inner, copies);
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

Values map(ScalarCode &code, StringRef name, ValueRange inputs, Over over, ArrayRef<Type> elements, MapBody body) {
  if (over.kind != Over::Tile)
    return mapAtOnce(code, name, inputs, over, elements, body);
  auto op = emitMap(code, name, inputs, over, elements, body);
  hideStrides(code, op);
  hideConditions(code, op);
  moveToRows(code, op);
  return Values(op.getResults());
}

Values WarpgroupPart::mapNearestRows(StringRef name, ValueRange inputs, Over over, ArrayRef<Type> elements,
                                     llvm::function_ref<Values(ValueRange)> body) {
  llvm::SaveAndRestore clamps(code.clampsLoads), eager(code.eager);
  return map(code, name, inputs, over, elements, [&](ValueRange in, ValueRange at) {
    Value one = code.index(1), count = code.symbol(context.rowExtent());
    Value last = arith::SubIOp::create(b, code.loc, count, one);
    code.bind(plan.rowIndex(),
              arith::MinSIOp::create(b, code.loc, arith::AddIOp::create(b, code.loc, rows.base, at[0]), last));
    clampLoads(code, plan);
    code.eager = true;
    return body(in);
  });
}

Values ifAny(ScalarCode &code, Value condition, ValueRange otherwise, llvm::function_ref<Values()> body) {
  auto op = device::IfAnyOp::create(code.b, code.loc, ValueRange(otherwise).getTypes(), condition, otherwise);
  OpBuilder::InsertionGuard guard(code.b);
  code.b.setInsertionPointToEnd(&op.getBody().emplaceBlock());
  code.open();
  Values values = body();
  device::YieldOp::create(code.b, code.loc, values);
  code.close();
  return Values(op.getResults());
}

} // namespace moa::tiles
