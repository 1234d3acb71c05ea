//===- Earlier.cpp - nests with plans of an earlier pass ------------------===//
//
// Nests with plans of an earlier pass. Such a nest runs for heads that take none of these plans,
// and may get further ones. Their numbers follow the earlier ones, and decisions and estimates
// become one table. The nests before the new plans run only for heads that the earlier pass has
// left.
//
//===----------------------------------------------------------------------===//
#include "lib/Accuracy/Passes.h"
#include "lib/Accuracy/Selection/Adapter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace moa::accuracy {

//===----------------------------------------------------------------------===//
// The earlier choice
//===----------------------------------------------------------------------===//

static unsigned countPlans(onf::KernelOp kernel, onf::ForOp nest) {
  auto lists = kernel->getAttrOfType<ArrayAttr>(kSpentAttr);
  std::optional<unsigned> count;
  nest.walk([&](onf::StoreOp store) {
    unsigned number = cast<BlockArgument>(store.getArray()).getArgNumber() - kernel.getNumInputs();
    WithinAttr within = number < kernel.getNumOutputs() ? getWithin(kernel, number) : WithinAttr();
    bool isListed = lists && number < lists.size() && within && within.getTolerance().isSampled;
    unsigned here = isListed ? cast<ArrayAttr>(lists[number]).size() : 0;
    count = std::min(count.value_or(here), here);
  });
  return count.value_or(0);
}

bool isLeftAsWritten(onf::KernelOp kernel, onf::ForOp nest) {
  if (!nest.getChoices() || *nest.getChoice() != 0 || countPlans(kernel, nest) == 0)
    return false;
  // The unmodified nest of a refined choice stays as it is.
  auto refines = [&](onf::ForOp other) {
    return llvm::any_of(other.getBody().getOps<onf::StoreOp>(), [&](onf::StoreOp store) {
      auto found = onf::getRefinement(store);
      return found && found->of == nest.getChoices();
    });
  };
  onf::StoreOp decision = kernel.getStore(cast<BlockArgument>(nest.getChoices()).getArgNumber());
  if (llvm::any_of(kernel.getBody().getOps<onf::ForOp>(), refines) || (decision && onf::getRefinement(decision)))
    return false;
  ArrayRef<int64_t> axes = *nest.getChoiceAxes();
  return axes.size() + 1 == nest.getExtents().size() &&
         llvm::all_of(llvm::enumerate(axes), [](auto axis) { return axis.value() == int64_t(axis.index()); });
}

bool isAdded(onf::KernelOp kernel, onf::ForOp nest) {
  auto stored = kernel->getAttrOfType<IntegerAttr>(kStoredAttr);
  if (!stored)
    return false;
  int64_t first = kernel.getNumInputs() + kernel.getNumOutputs() + stored.getInt();
  return nest
      .walk([&](onf::StoreOp store) {
        bool isOwn = cast<BlockArgument>(store.getArray()).getArgNumber() < first;
        return isOwn ? WalkResult::advance() : WalkResult::interrupt();
      })
      .wasInterrupted();
}

void Chooser::findEarlier() {
  if (!nest.getChoices())
    return;
  earlier = {nest.getChoices(), SmallVector<int64_t>(*nest.getChoiceAxes()), 0};
  numEarlier = countPlans(kernel, nest);
}

//===----------------------------------------------------------------------===//
// One table
//===----------------------------------------------------------------------===//

/// Moves the nest before all copies of the earlier pass.
void Chooser::leadAlternatives() {
  for (auto other : kernel.getBody().getOps<onf::ForOp>())
    if (earlier.array && other.getChoices() == earlier.array) {
      if (other != nest)
        nest->moveBefore(other);
      return;
    }
}

void Chooser::takeAlternatives() {
  for (auto other : kernel.getBody().getOps<onf::ForOp>())
    if (earlier.array && other.getChoices() == earlier.array)
      other.getChoicesMutable().assign(chosen.array);
}

/// Returns the earlier plan of the head, or `plan` if that is 0.
Value Chooser::takenBefore(Code &code, ValueRange head, Value plan) {
  for (unsigned p = 1; p <= numEarlier; ++p) {
    Value is = isTried(code, {earlier.array, earlier.axes, int64_t(p)}, head);
    plan = code.select(is, code.index(p), plan);
  }
  return plan;
}

/// Returns the earlier result for decisions or estimates of `of`, or null.
Value Chooser::findDecision(StringRef of, Type element) {
  auto told = kernel->getAttrOfType<ArrayAttr>(kDecisionsAttr);
  if (!earlier.array || !told)
    return {};
  unsigned first = kernel.getNumInputs() + kernel.getNumOutputs() - told.size();
  for (auto [k, name] : llvm::enumerate(told.getAsValueRange<StringAttr>())) {
    BlockArgument array = kernel.getBody().getArgument(first + k);
    if (name == of && cast<ArrayType>(array.getType()).getElementType() == element)
      return array;
  }
  return {};
}

/// Extends an earlier result to all plans; returns a new array with the earlier values.
Value Chooser::extendDecision(Value result) {
  auto array = cast<BlockArgument>(result);
  onf::StoreOp store = kernel.getStore(array.getArgNumber());
  if (!store)
    return {};
  auto old = cast<ArrayType>(array.getType());
  SmallVector<Attribute> extents(old.getShape().begin(), old.getShape().end());
  Value before = editor.addTemporary(editor.nameOf(array) + "_before", extents, old.getElementType());
  Code code(kernel, OpBuilder(store), store.getLoc());
  code.store(store.getValue(), before, store.getTerms());
  store.erase();
  SmallVector<ExprAttr> shape(old.getShape());
  shape.back() = editor.expr(numAll());
  auto type = ArrayType::get(kernel.getContext(), shape, old.getElementType());
  array.setType(type);
  SmallVector<Attribute> types(kernel.getResultTypes().begin(), kernel.getResultTypes().end());
  types[array.getArgNumber() - kernel.getNumInputs()] = TypeAttr::get(type);
  kernel.setResultTypesAttr(ArrayAttr::get(kernel.getContext(), types));
  return before;
}

//===----------------------------------------------------------------------===//
// Switches
//===----------------------------------------------------------------------===//

/// Restricts the sample to heads left by earlier passes, and for which `also` holds.
void Chooser::addOpen(llvm::function_ref<Value(Code &, ValueRange)> also) {
  sampled = tried;
  if (!earlier.array && !also)
    return;
  sampled = addHeadChoice("_open");
  editor.addShortNest(headNames, headExtents, nullptr, [&](Code &code, ValueRange head) {
    Value is = isTried(code, tried, {});
    if (earlier.array)
      is = code.both(is, isTried(code, earlier, head));
    if (also)
      is = code.both(is, also(code, head));
    code.store(code.toNumber(is), sampled.array, head);
  });
}

static bool isSame(Value x, Value y) {
  if (x == y)
    return true;
  Operation *one = x.getDefiningOp(), *other = y.getDefiningOp();
  return one && other && one->getNumRegions() == 0 && one->getName() == other->getName() &&
         one->getAttrDictionary() == other->getAttrDictionary() && one->getNumResults() == 1 &&
         one->getNumOperands() == other->getNumOperands() &&
         llvm::all_of(llvm::zip(one->getOperands(), other->getOperands()),
                      [](auto both) { return isSame(std::get<0>(both), std::get<1>(both)); });
}

/// Returns the leading axes of an array that all loads address by the same expressions of the head.
Adapter::Need Adapter::findNeed(Value array) {
  SmallVector<onf::LoadOp> loads;
  for (const ScoreFold &score : scores)
    loads.append({score.row.load, score.key.load});
  for (ArrayRef<WeightedSum> list : {ArrayRef(weightedSums), ArrayRef(anyWeightedSums)})
    for (const WeightedSum &weighted : list)
      loads.push_back(weighted.load);
  llvm::erase_if(loads, [&](onf::LoadOp load) { return load.getArray() != array; });
  ValueRange head = nest.getBody().getArguments().drop_back();
  auto type = cast<ArrayType>(array.getType());
  /// Returns the only term of a load along an axis, if it depends on the head alone.
  auto termOf = [&](onf::LoadOp load, unsigned axis) {
    Value term = load.getIndex(axis).getValue();
    llvm::SmallPtrSet<Value, 8> indices;
    bool isOfHead = term && collectIndices(term, indices) && !indices.empty() &&
                    llvm::all_of(indices, [&](Value index) { return llvm::is_contained(head, index); });
    return isOfHead ? term : Value();
  };
  Need need;
  for (unsigned axis = 0; axis < type.getRank() && !loads.empty(); ++axis) {
    Value term = termOf(loads.front(), axis);
    bool isOne = term && llvm::all_of(loads, [&](onf::LoadOp load) {
                   Value other = termOf(load, axis);
                   return other && isSame(term, other);
                 });
    if (!isOne)
      break;
    need.axes.push_back(axis);
    need.terms.push_back(term);
    need.extents.push_back(type.getShape()[axis]);
  }
  return need;
}

/// Adds an array that is 1 where a head that is tried reads the indices.
Value Adapter::addNeed(const Need &need) {
  ValueRange head = nest.getBody().getArguments().drop_back();
  if (llvm::equal(need.terms, head) && llvm::equal(need.extents, headExtents))
    return sampled.array;
  for (const Need &known : needs)
    if (known.extents == need.extents && llvm::all_of(llvm::zip(known.terms, need.terms), [](auto both) {
          return isSame(std::get<0>(both), std::get<1>(both));
        }))
      return known.array;
  Value array = editor.addTemporary(base() + "_needed", need.extents, editor.i32());
  SmallVector<Attribute> names;
  for (unsigned axis : need.axes)
    names.push_back(editor.text("i" + Twine(axis)));
  editor.addNest(names, need.extents, nullptr, [&](Code &code, ValueRange indices) {
    // If an index of the head is an axis here it is known; the others are searched.
    auto isKnown = [&](unsigned place) {
      auto axis = llvm::find(head, need.terms[place]);
      return axis != head.end() && headExtents[axis - head.begin()] == need.extents[place];
    };
    std::function<Value(Code &, SmallVector<Value>)> any = [&](Code &at, SmallVector<Value> found) {
      unsigned axis = found.size();
      if (axis < head.size()) {
        for (unsigned place = 0; place < need.terms.size(); ++place)
          if (need.terms[place] == head[axis] && isKnown(place)) {
            found.push_back(indices[place]);
            return any(at, found);
          }
        const SymExpr &extent = getSymExpr(headExtents[axis]);
        return at.fold(cast<StringAttr>(headNames[axis]).getValue(), extent, [&](Code &in, Value index, Value &) {
          return SmallVector<Code::State>{{Monoid::max, "needed", any(in, placed(found, {index}))}};
        })[0];
      }
      Value is = isTried(at, sampled, found);
      IRMapping map;
      map.map(head, found);
      for (unsigned place = 0; place < need.terms.size(); ++place)
        if (!isKnown(place)) {
          Value term = copyOf(at, need.terms[place], map);
          Value isSame = at.compare(arith::CmpIPredicate::eq, term, indices[place]);
          is = at.both(is, isSame);
        }
      return at.toNumber(is);
    };
    code.store(any(code, {}), array, indices);
  });
  needs.push_back(need);
  needs.back().array = array;
  return array;
}

/// Returns the predicate of a nest over these axes of an operand: 1 where a tried head reads it.
/// All nests with further axes have the same one, so that each reads only data that were written.
Choice Adapter::whereRead(Value array, const Axes &axes) {
  if (sampled.array == tried.array)
    return tried;
  if (llvm::is_contained(picked.gathered, array))
    return sampled;
  Need need = findNeed(array);
  if (need.axes.empty())
    return tried;
  Choice choice{addNeed(need), {}, 1};
  for (unsigned axis : need.axes) {
    choice.axes.push_back(llvm::find(axes, std::optional(axis)) - axes.begin());
    assert(choice.axes.back() + 1 < int64_t(axes.size()) && "the nest has no axis beyond those of its predicate");
  }
  return choice;
}

/// The same for a nest that reads few elements and does not wait for the pilot.
Choice Adapter::whereReadFew(Value array, const Axes &axes) { return piloted.array ? tried : whereRead(array, axes); }

/// Returns whether the predicate holds at `indices`; null: always.
Value Adapter::isNeeded(Code &code, const Choice &where, ValueRange indices) {
  return where.array == tried.array ? Value() : isTried(code, where, indices);
}

/// Returns true if the array is a switch of nests before the plans.
bool Adapter::isSwitch(Value array) const {
  return array && (array == tried.array || array == sampled.array ||
                   llvm::any_of(needs, [&](const Need &need) { return need.array == array; }));
}

SmallVector<onf::ForOp> Adapter::switchedNests() {
  SmallVector<onf::ForOp> nests;
  for (auto other : kernel.getBody().getOps<onf::ForOp>())
    if (isSwitch(other.getChoices()))
      nests.push_back(other);
  return nests;
}

} // namespace moa::accuracy
