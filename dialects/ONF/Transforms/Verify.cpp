//===- Verify.cpp - the contract of the operational normal form -----------===//

#include "dialects/MoA/Transforms/Contract.h"
#include "dialects/ONF/IR/Hints.h"
#include "dialects/ONF/IR/ONF.h"
#include "dialects/ONF/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;

namespace moa::onf {
#define GEN_PASS_DEF_ONFVERIFY
#include "dialects/ONF/Transforms/ONFPasses.h.inc"

namespace {
class KernelVerifier {
public:
  explicit KernelVerifier(KernelOp kernel) : kernel(kernel), symbols(kernel.getSymbols()) {}

  LogicalResult verify() {
    if (failed(verifyInterface(kernel, kernel.getSymbols(), kernel.getRequires(), kernel.getArgNames(),
                               kernel.getResultNames(), kernel.getResultTypes())) ||
        failed(verifyTemporaryNames()))
      return failure();
    WalkResult walked = kernel.getBody().walk([&](Operation *op) { return WalkResult(verify(op)); });
    if (walked.wasInterrupted() || failed(verifyLift()))
      return failure();
    for (BlockArgument array : kernel.getBody().getArguments().drop_front(kernel.getNumInputs()))
      if (failed(verifyWrittenOnce(array)) || failed(verifyOrder(array)))
        return failure();
    return success();
  }

private:
  LogicalResult verify(Operation *op) {
    StringRef dialect = op->getName().getDialectNamespace();
    if (!llvm::is_contained({"onf", "arith", "math"}, dialect))
      return op->emitOpError("expects loops, folds and scalar operations (O1)");
    if (!isa<FoldOp, AccOp>(op) && llvm::any_of(op->getResultTypes(), llvm::IsaPred<ArrayType>))
      return op->emitOpError("expects no array but parameters and states (O1)");
    if (auto nest = dyn_cast<ForOp>(op); nest && nest.getChoices()) {
      auto array = dyn_cast<BlockArgument>(nest.getChoices());
      if (nest->getParentOp() != kernel || !array || array.getOwner()->getParentOp() != kernel ||
          !kernel.isTemporary(array.getArgNumber()))
        return nest.emitOpError("expects a choice of a nest at the top, by a temporary (O3)");
    }
    if (auto nest = dyn_cast<ForOp>(op); nest && nest.getWhere() && failed(symbols.check(op, *nest.getWhere(), "O2")))
      return failure();
    if (auto extents = op->getAttrOfType<ArrayAttr>("extents"))
      return symbols.check(op, extents, "O2");
    for (StringRef name : {"extent", "expr"})
      if (auto expr = op->getAttrOfType<ExprAttr>(name))
        return symbols.check(op, expr.getValue(), "O2");
    if (auto access = dyn_cast<AccessOpInterface>(op))
      return verifyAccess(access);
    if (auto at = dyn_cast<AtOp>(op))
      if (!at.getState().getDefiningOp<FoldOp>())
        return at.emitOpError("expects the final state of a fold (O5)");
    return success();
  }

  StringRef getName(BlockArgument array) { return kernel.getArrayName(array.getArgNumber()); }
  StringRef getKind(BlockArgument array) { return kernel.isTemporary(array.getArgNumber()) ? "temporary " : "output "; }

  LogicalResult verifyTemporaryNames() {
    unsigned first = kernel.getNumInputs() + kernel.getNumOutputs();
    for (unsigned k = first; k < first + kernel.getNumTemporaries(); ++k) {
      StringRef name = kernel.getArrayName(k);
      auto isName = [&](StringRef other) { return other == name; };
      if (kernel.findArray(name) != k || llvm::any_of(kernel.getSymbols().getAsValueRange<StringAttr>(), isName))
        return kernel.emitOpError("expects distinct names (K1), but '") << name << "' is declared twice";
    }
    return success();
  }

  Operation *getNest(Operation *op) { return kernel.getBody().front().findAncestorOpInBlock(*op); }

  /// O7: only nests after the one that stores a temporary load it or are chosen by it.
  LogicalResult verifyOrder(BlockArgument array) {
    Operation *store = getNest(kernel.getStore(array.getArgNumber()));
    for (Operation *user : array.getUsers())
      if (isa<LoadOp, ForOp>(user) && !store->isBeforeInBlock(getNest(user)))
        return user->emitOpError("expects a nest after the one that stores the temporary ")
               << getName(array) << " (O7)";
    return success();
  }

  LogicalResult verifyAccess(AccessOpInterface op) {
    bool output = isa<StoreOp>(op);
    auto array = dyn_cast<BlockArgument>(op.getArray());
    bool isOurs = array && array.getOwner()->getParentOp() == kernel;
    bool isAllowed =
        isOurs && (kernel.isTemporary(array.getArgNumber()) || kernel.isInput(array.getArgNumber()) != output);
    if (!isAllowed)
      return op->emitOpError("expects an ") << (output ? "output" : "input") << " of the kernel or a temporary (O3)";
    for (const Subscript &axis : op.getSubscripts().getAxes()) {
      if (failed(symbols.check(op, axis.constant, "O2")))
        return failure();
      for (const auto &[term, factor] : axis.factors)
        if (failed(symbols.check(op, factor, "O2")))
          return failure();
    }
    return success();
  }

  LogicalResult verifyLift() {
    auto nests = kernel.getBody().getOps<ForOp>();
    auto isLifted = [](ForOp nest) { return bool(nest.getLift()); };
    if (llvm::any_of(nests, isLifted) && !llvm::all_of(nests, isLifted))
      return kernel.emitOpError("expects a lift on every nest or on none (O6)");
    return success();
  }

  /// Returns the extent of the loop that an index belongs to, or null.
  static ExprAttr getLoopExtent(Value index, Operation *inner) {
    auto argument = dyn_cast_or_null<BlockArgument>(index);
    if (!argument)
      return {};
    auto loop = dyn_cast<ForOp>(argument.getOwner()->getParentOp());
    if (!loop || !loop->isProperAncestor(inner))
      return {};
    return cast<ExprAttr>(loop.getExtents()[argument.getArgNumber()]);
  }

  LogicalResult verifyWrittenOnce(BlockArgument output) {
    StringRef name = getName(output);
    SmallVector<StoreOp> stores;
    for (Operation *user : output.getUsers())
      if (auto store = dyn_cast<StoreOp>(user))
        stores.push_back(store);
    auto isChosen = [&](StoreOp store) { return bool(cast<ForOp>(getNest(store)).getChoices()); };
    bool isOutput = !kernel.isTemporary(output.getArgNumber()), hasChoices = isOutput && llvm::any_of(stores, isChosen);
    bool hasVersions = isOutput && stores.size() == 2 && areComplementary(getNest(stores[0]), getNest(stores[1]));
    if (!hasChoices && !hasVersions && stores.size() != 1)
      return kernel.emitOpError("expects one store to ")
             << getKind(output) << name << " (O4), but got " << stores.size();
    for (StoreOp store : stores)
      if (failed(verifyCovers(store)))
        return failure();
    llvm::sort(stores, [&](StoreOp x, StoreOp y) { return getNest(x)->isBeforeInBlock(getNest(y)); });
    return hasChoices ? verifyChoices(stores) : success();
  }

  /// Returns the axis of the stored array for each axis of the nest's choice.
  SmallVector<unsigned> getChosenAxes(StoreOp store) {
    SmallVector<unsigned> axes;
    for (Value index : cast<ForOp>(getNest(store)).getChoiceIndices())
      for (unsigned axis = 0; axis < store.getArray().getType().getRank(); ++axis)
        if (store.getIndex(axis).getValue() == index)
          axes.push_back(axis);
    return axes;
  }

  /// Collects the values that a choice may have. Fails unless it consists of constants and
  /// selections.
  static LogicalResult collectChoices(Value value, llvm::SmallSet<int64_t, 4> &values) {
    if (auto select = value.getDefiningOp<arith::SelectOp>())
      return success(succeeded(collectChoices(select.getTrueValue(), values)) &&
                     succeeded(collectChoices(select.getFalseValue(), values)));
    APInt constant;
    if (!matchPattern(value, m_ConstantInt(&constant)))
      return failure();
    values.insert(constant.getSExtValue());
    return success();
  }

  using Values = llvm::SmallSet<int64_t, 4>;

  /// Returns the store of an array of choices. Emits an error and fails if a nest with a choice
  /// stores it.
  FailureOr<StoreOp> getDecision(Value choices) {
    StoreOp decision = kernel.getStore(cast<BlockArgument>(choices).getArgNumber());
    if (decision && cast<ForOp>(getNest(decision)).getChoices())
      return decision.emitOpError("expects a nest without a choice to store the array that nests of "
                                  "an output are chosen by (O4)");
    return decision;
  }

  static LogicalResult verifyHeld(StoreOp decision, Value stored, const Values &taken) {
    Values held;
    if (failed(collectChoices(stored, held)) ||
        !llvm::all_of(held, [&](int64_t value) { return taken.contains(value); }))
      return decision.emitOpError("expects a selection among the values that nests are chosen for (O4)");
    return success();
  }

  /// O4 for an output that several nests store: exactly one of them stores each element. They are
  /// chosen by one array, along the same axes, for different values, and the array has no other
  /// values. Or they are chosen by it and by a second array that refines it: the second one is a
  /// choice where the first has a further value, and has no chosen value elsewhere.
  LogicalResult verifyChoices(ArrayRef<StoreOp> stores) {
    llvm::MapVector<Value, Values> taken;
    for (StoreOp store : stores) {
      auto nest = cast<ForOp>(getNest(store));
      if (!nest.getChoices() || getChosenAxes(store) != getChosenAxes(stores.front()) ||
          !taken[nest.getChoices()].insert(*nest.getChoice()).second)
        return store.emitOpError("expects the stores of an output in nests chosen by one array "
                                 "along the same axes, for different values (O4)");
    }
    auto first = getDecision(taken.front().first), last = getDecision(taken.back().first);
    if (failed(first) || failed(last))
      return failure();
    if (!*first || !*last)
      return success(); // reported for the temporary itself
    if (taken.size() == 1)
      return verifyHeld(*first, (*first).getValue(), taken.front().second);
    // The refinement is stored after the array that it refines.
    if (getNest(*last)->isBeforeInBlock(getNest(*first)))
      std::swap(*first, *last);
    Value one = (*first).getArray(), other = (*last).getArray();
    auto refinement = getRefinement(*last);
    if (taken.size() > 2 || !refinement || refinement->of != one || taken[one].contains(refinement->value) ||
        taken[other].contains(refinement->outside))
      return emitError(StoreOp(stores.back()).getLoc())
             << "expects the stores of an output in nests chosen by one array, or by it and one "
                "that refines it (O4)";
    taken[one].insert(refinement->value);
    if (failed(verifyHeld(*first, (*first).getValue(), taken[one])))
      return failure();
    return verifyHeld(*last, refinement->inside, taken[other]);
  }

  /// Returns whether an index in parts takes every value below `extent` once.
  bool coversInParts(const IndexParts &parts, const SymExpr &extent, StoreOp store) {
    ExprAttr groups = getLoopExtent(parts.group, store), members = getLoopExtent(parts.member, store);
    return groups && members && members.getValue() == parts.size &&
           isProduct(kernel, extent, groups.getValue(), parts.size);
  }

  /// O4: a store writes every element of its array once.
  LogicalResult verifyCovers(StoreOp store) {
    llvm::DenseSet<Value> used;
    for (auto [axis, extent] : llvm::enumerate(store.getArray().getType().getShape())) {
      LinearIndex index = store.getIndex(axis);
      if (extent.getValue() == SymExpr(1) && index == LinearIndex())
        continue;
      if (auto parts = getParts(index); parts && coversInParts(*parts, extent.getValue(), store)) {
        if (!used.insert(parts->group).second || !used.insert(parts->member).second)
          return store.emitOpError("expects an index of its own on axis ") << axis << " (O4)";
        continue;
      }
      if (getLoopExtent(index.getValue(), store) != extent)
        return store.emitOpError("expects the index of a loop over ")
               << extent.getValue().str() << " on axis " << axis << " (O4), but got '"
               << store.getSubscripts().getAxes()[axis].getExpr().str() << "'";
      if (!used.insert(index.getValue()).second)
        return store.emitOpError("expects an index of its own on axis ") << axis << " (O4)";
    }
    return verifyNoOtherLoop(store, used);
  }

  static LogicalResult verifyNoOtherLoop(StoreOp store, const llvm::DenseSet<Value> &used) {
    for (auto loop = store->getParentOfType<ForOp>(); loop; loop = loop->getParentOfType<ForOp>())
      for (BlockArgument index : loop.getBody().getArguments()) {
        if (!used.contains(index) && getSymExpr(loop.getExtents()[index.getArgNumber()]) != SymExpr(1))
          return store.emitOpError("expects every enclosing loop's index on an "
                                   "axis (O4), but ")
                 << loop.getNames()[index.getArgNumber()] << " is not used";
      }
    return success();
  }

  KernelOp kernel;
  DeclaredSymbols symbols;
};

struct ONFVerify final : impl::ONFVerifyBase<ONFVerify> {
  using Base::Base;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    getOperation()->walk([&](KernelOp kernel) {
      if (failed(KernelVerifier(kernel).verify()))
        signalPassFailure();
    });
  }
};
} // namespace
} // namespace moa::onf
