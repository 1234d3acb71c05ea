//===- DistinctElements.cpp - input elements that the outputs need --------===//
//
// [Def 17]. Walks from every output element, at a symbolic index, down to the inputs. Each visit of
// an input is an access: an index of expressions in loop indices, and the conditions (masks,
// selections) under which it is read. An access is counted exactly if the entries of its index are
// independent ranges and a witness proves that every element is read under the conditions.
//
//===----------------------------------------------------------------------===//
#include "lib/Analysis/DataMovement.h"
#include "lib/Analysis/Witness.h"
#include "llvm/ADT/DenseMap.h"
#include <set>

using namespace mlir;
using namespace moa;
using namespace moa::detail;

namespace {

/// One entry of an index: an expression, or nothing if it is an element of an array.
using Entry = std::optional<SymExpr>;
using Index = std::vector<Entry>;
using Operands = std::vector<std::pair<Value, Index>>;

/// A demand for the elements of a value whose index is reached by some assignment of the variables
/// that satisfies the conditions.
struct Demand {
  Value value;
  Index index;
  Variables variables;
  std::vector<Condition> conditions;

  std::string key() const;
  void require(Condition condition);
};

std::string Demand::key() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << value.getAsOpaquePointer();
  for (const Entry &entry : index)
    os << '|' << (entry ? entry->str() : "?");
  for (const Condition &condition : conditions)
    os << '&' << condition.text();
  return text;
}

void Demand::require(Condition condition) {
  if (condition.kind == Condition::True)
    return;
  std::string text = condition.text();
  for (const Condition &known : conditions)
    if (known.text() == text)
      return;
  conditions.push_back(std::move(condition));
}

/// The elements of an input that one access reads.
struct Box {
  struct AxisSlice {
    SymExpr start, count;
  };
  std::vector<AxisSlice> slices;
  /// Empty if exact.
  std::string note;
};

class ReadCount {
public:
  explicit ReadCount(KernelOp kernel) : kernel(kernel), witness(kernel) {}
  std::vector<ArrayCount> run();

private:
  void demandOutputs();
  void visit(const Demand &demand);
  void visitOp(Operation *op, const Demand &demand);
  void push(Demand demand);
  Operands operandsAt(Operation *op, Demand &demand);
  Index viewIndex(Operation *op, const Index &index);
  Index psiIndex(PsiOp op, const Demand &demand);
  SymExpr variable(Operation *op, const SymExpr &extent, Demand &demand, unsigned position = 0);
  void requirePresence(Value value, const Index &index, Demand &demand);
  void requirePresence(Value value, const Index &index, Demand &demand, std::set<std::string> &asked);
  bool mayBeAbsent(Value value);
  Condition condition(Value predicate, const Index &index, bool negated);

  Box boxOf(const Demand &demand);
  bool rangeOf(const Demand &demand, const SymExpr &entry, Box::AxisSlice &range, Variables &taken);
  SymExpr quotients(const SymExpr &extent, const SymExpr &c) const;
  bool contains(const Box &a, const Box &b) const;
  bool areDisjoint(const Box &a, const Box &b) const;
  ArrayCount countOf(unsigned argument);

  KernelOp kernel;
  Witness witness;
  std::vector<Demand> pending;
  std::set<std::string> seen;
  llvm::DenseMap<Value, bool> absence;
  llvm::DenseMap<Operation *, unsigned> numbers;
  std::map<unsigned, std::vector<Demand>> accesses;
  bool gaveUp = false;
};

//===----------------------------------------------------------------------===//
// From the outputs to the inputs
//===----------------------------------------------------------------------===//

constexpr size_t kMaxDemands = 20000;

void ReadCount::push(Demand demand) {
  if (seen.size() >= kMaxDemands) {
    gaveUp = true;
    return;
  }
  if (seen.insert(demand.key()).second)
    pending.push_back(std::move(demand));
}

void ReadCount::demandOutputs() {
  for (Value value : kernel.getBody().front().getTerminator()->getOperands()) {
    Demand demand;
    demand.value = value;
    auto type = cast<ArrayType>(value.getType());
    for (unsigned k = 0; k < type.getRank(); ++k) {
      std::string name = "$" + std::to_string(k) + "$";
      demand.variables[name] = type.getExtent(k);
      demand.index.push_back(SymExpr::symbol(name));
    }
    requirePresence(value, demand.index, demand);
    push(std::move(demand));
  }
}

/// Returns the variable of an operator; repeated calls return the same name.
SymExpr ReadCount::variable(Operation *op, const SymExpr &extent, Demand &demand, unsigned position) {
  unsigned number = numbers.try_emplace(op, numbers.size()).first->second;
  std::string name = "$op" + std::to_string(number) + "." + std::to_string(position) + "$";
  demand.variables[name] = extent;
  return SymExpr::symbol(name);
}

Index pick(const Index &index, ArrayRef<int64_t> axes) {
  Index result;
  for (int64_t axis : axes)
    result.push_back(index[axis]);
  return result;
}

ArrayRef<int64_t> axesOf(ArrayAttr axes, unsigned k) { return cast<DenseI64ArrayAttr>(axes[k]).asArrayRef(); }

std::optional<std::vector<SymExpr>> known(const Index &index) {
  std::vector<SymExpr> result;
  for (const Entry &entry : index) {
    if (!entry)
      return std::nullopt;
    result.push_back(*entry);
  }
  return result;
}

Index ReadCount::psiIndex(PsiOp op, const Demand &demand) {
  Index result(cast<ArrayType>(op.getInput().getType()).getRank());
  std::vector<bool> selected(result.size(), false);
  for (auto [k, indices] : llvm::enumerate(op.getIndices())) {
    selected[op.getDims()[k]] = true;
    if (auto at = known(pick(demand.index, axesOf(op.getAxes(), k))))
      result[op.getDims()[k]] = integerAt(indices, *at);
  }
  unsigned next = op.getFrame();
  for (size_t axis = 0; axis < result.size(); ++axis)
    if (!selected[axis])
      result[axis] = demand.index[next++];
  return result;
}

Entry plus(const Entry &entry, const SymExpr &offset) { return entry ? Entry(*entry + offset) : entry; }

ArrayType typeOf(Value value) { return cast<ArrayType>(value.getType()); }

/// Returns the operands of a computing operator and their indices, for one element of its result.
Operands ReadCount::operandsAt(Operation *op, Demand &demand) {
  const Index &index = demand.index;
  Operands operands;
  if (auto map = dyn_cast<MapOp>(op)) {
    for (auto [k, input] : llvm::enumerate(map.getInputs()))
      operands.emplace_back(input, pick(index, axesOf(map.getAxes(), k)));
  } else if (auto cast = dyn_cast<CastOp>(op)) {
    operands.emplace_back(cast.getInput(), index);
  } else if (auto mask = dyn_cast<MaskOp>(op)) {
    operands.emplace_back(mask.getPredicate(), pick(index, mask.getAxes()));
    operands.emplace_back(mask.getInput(), index);
  } else if (auto reduce = dyn_cast<ReduceOp>(op)) {
    Index at = index;
    SymExpr extent = typeOf(reduce.getInput()).getExtent(reduce.getAxis());
    at.insert(at.begin() + reduce.getAxis(), variable(op, extent, demand));
    operands.emplace_back(reduce.getInput(), at);
  } else if (auto inner = dyn_cast<InnerOp>(op)) {
    ArrayType lhs = typeOf(inner.getLhs());
    size_t frame = inner.getFrame();
    size_t free = lhs.getRank() - 1 - (inner.getLhsFramed() ? frame : 0);
    Entry l = variable(op, lhs.getExtent(lhs.getRank() - 1), demand);
    Index left, right;
    if (inner.getLhsFramed())
      left.assign(index.begin(), index.begin() + frame);
    if (inner.getRhsFramed())
      right.assign(index.begin(), index.begin() + frame);
    left.insert(left.end(), index.begin() + frame, index.begin() + frame + free);
    left.push_back(l);
    right.push_back(l);
    right.insert(right.end(), index.begin() + frame + free, index.end());
    operands.emplace_back(inner.getLhs(), left);
    operands.emplace_back(inner.getRhs(), right);
  } else if (auto psi = dyn_cast<PsiOp>(op)) {
    operands.emplace_back(psi.getInput(), psiIndex(psi, demand));
    for (auto [k, indices] : llvm::enumerate(psi.getIndices()))
      operands.emplace_back(indices, pick(index, axesOf(psi.getAxes(), k)));
  } else if (op->getNumOperands() == 1) {
    operands.emplace_back(op->getOperand(0), viewIndex(op, index));
  }
  return operands;
}

/// Returns the index into the operand of a view other than ψ.
Index ReadCount::viewIndex(Operation *op, const Index &index) {
  ArrayType type = typeOf(op->getOperand(0));
  Index at = index;
  if (auto transpose = dyn_cast<TransposeOp>(op)) {
    for (auto [k, axis] : llvm::enumerate(transpose.getPerm()))
      at[axis] = index[k];
  } else if (auto slice = dyn_cast<SliceOp>(op)) {
    Entry &entry = at[slice.getAxis()];
    entry = plus(entry, slice.getStart());
  } else if (auto reverse = dyn_cast<ReverseOp>(op)) {
    Entry &entry = at[reverse.getAxis()];
    if (entry)
      entry = type.getExtent(reverse.getAxis()) - SymExpr(1) - *entry;
  } else if (auto rotate = dyn_cast<RotateOp>(op)) {
    Entry &entry = at[rotate.getAxis()];
    if (entry)
      entry = SymExpr::mod(*entry + rotate.getBy(), type.getExtent(rotate.getAxis()));
  } else {
    // Reshape and unknown views: visitOp demands the whole operand.
    at.assign(type.getRank(), std::nullopt);
  }
  return at;
}

Condition ReadCount::condition(Value predicate, const Index &index, bool negated) {
  auto at = known(index);
  return at ? conditionAt(predicate, *at, negated) : Condition();
}

bool ReadCount::mayBeAbsent(Value value) {
  auto [it, inserted] = absence.try_emplace(value, false);
  Operation *op = value.getDefiningOp();
  if (!inserted || !op || isa<ReduceOp, InnerOp>(op))
    return it->second;
  // A default fills absent elements: the result is absent only if both operands are.
  if (auto map = dyn_cast<MapOp>(op); map && map.getFn() == ScalarFn::otherwise)
    return absence[value] = llvm::all_of(op->getOperands(), [&](Value v) { return mayBeAbsent(v); });
  bool result = isa<MaskOp>(op) || llvm::any_of(op->getOperands(), [&](Value v) { return mayBeAbsent(v); });
  return absence[value] = result;
}

void ReadCount::requirePresence(Value value, const Index &index, Demand &demand) {
  std::set<std::string> asked;
  requirePresence(value, index, demand, asked);
}

/// Adds the conditions under which a value is present (not masked out).
void ReadCount::requirePresence(Value value, const Index &index, Demand &demand, std::set<std::string> &asked) {
  Demand inner;
  inner.value = value;
  inner.index = index;
  if (!mayBeAbsent(value) || !asked.insert(inner.key()).second)
    return;
  Operation *op = value.getDefiningOp();
  if (auto map = dyn_cast<MapOp>(op); map && map.getFn() == ScalarFn::otherwise)
    return demand.require(Condition()); // one of two conditions
  if (auto mask = dyn_cast<MaskOp>(op))
    demand.require(condition(mask.getPredicate(), pick(index, mask.getAxes()), false));
  for (auto &[operand, at] : operandsAt(op, inner))
    requirePresence(operand, at, demand, asked);
}

/// Returns true if the demand is for a whole array without conditions.
bool isWhole(const Demand &demand) {
  std::set<std::string> names;
  auto type = cast<ArrayType>(demand.value.getType());
  for (auto [k, entry] : llvm::enumerate(demand.index)) {
    auto name = entry ? entry->getSymbol() : std::nullopt;
    auto it = name ? demand.variables.find(*name) : demand.variables.end();
    if (it == demand.variables.end() || it->second != type.getExtent(k) || !names.insert(*name).second)
      return false;
  }
  return demand.conditions.empty();
}

/// Demands the operands of an operator. Point-wise operators and contractions need an operand only
/// where all operands are present. A selection needs an operand only where it is chosen. The right
/// operand of a boolean and/or is needed only where the left one does not decide.
void ReadCount::visitOp(Operation *op, const Demand &from) {
  Demand demand = from;
  auto operands = operandsAt(op, demand);
  Demand present = demand;
  auto map = dyn_cast<MapOp>(op);
  bool fills = map && map.getFn() == ScalarFn::otherwise;
  for (auto &[operand, at] : operands)
    if (!fills || &operand == &operands.front().first)
      requirePresence(operand, at, present);
  bool selects = map && map.getFn() == ScalarFn::select;
  bool isOr = map && map.getFn() == ScalarFn::or_;
  bool isLogic =
      map && (isOr || map.getFn() == ScalarFn::and_) && cast<ArrayType>(map.getType()).getElementType().isInteger(1);
  for (auto [k, entry] : llvm::enumerate(operands)) {
    auto &[operand, at] = entry;
    // A mask needs its predicate also where the element is absent.
    bool isPredicate = isa<MaskOp>(op) && k == 0;
    Demand next = isPredicate ? demand : present;
    if (selects && k > 0)
      next.require(condition(map.getInputs()[0], operands[0].second, k == 2));
    // The default is needed where the first operand is absent.
    if (fills && k > 0) {
      next = demand;
      next.require(Condition());
    }
    if (isLogic && k > 0)
      next.require(condition(map.getInputs()[0], operands[0].second, isOr));
    next.value = operand;
    next.index = at;
    if (isa<ReshapeOp>(op)) {
      // A whole result needs the whole operand; the part needed for a partial result is unknown.
      ArrayType type = cast<ArrayType>(operand.getType());
      for (unsigned axis = 0; axis < type.getRank(); ++axis)
        next.index[axis] = variable(op, type.getExtent(axis), next, axis);
      if (!isWhole(from))
        next.require(Condition());
    }
    push(std::move(next));
  }
}

void ReadCount::visit(const Demand &demand) {
  if (Operation *op = demand.value.getDefiningOp())
    return visitOp(op, demand);
  accesses[cast<BlockArgument>(demand.value).getArgNumber()].push_back(demand);
}

//===----------------------------------------------------------------------===//
// Counting accesses
//===----------------------------------------------------------------------===//

std::vector<std::string> variablesIn(const SymExpr &expr, const Variables &variables) {
  std::set<std::string> names;
  expr.collectSymbols(names);
  std::vector<std::string> result;
  for (const std::string &name : names)
    if (variables.count(name))
      result.push_back(name);
  return result;
}

/// Sets `range` for an entry c, c + v, c − v, v / c or (v + k) % c, where v is a variable used in
/// no other entry, and c and k contain no variables. Adds v to `taken` with its extent, as every
/// value of v then reads an element of its own. Returns false for all other entries.
bool ReadCount::rangeOf(const Demand &demand, const SymExpr &entry, Box::AxisSlice &range, Variables &taken) {
  auto names = variablesIn(entry, demand.variables);
  if (names.empty()) {
    range = {entry, SymExpr(1)};
    return true;
  }
  if (names.size() > 1)
    return false;
  SymExpr v = SymExpr::symbol(names[0]), extent = demand.variables.at(names[0]);
  for (bool up : {true, false}) {
    SymExpr rest = up ? entry - v : entry + v;
    if (!variablesIn(rest, demand.variables).empty())
      continue;
    range = {up ? rest : rest - extent + SymExpr(1), extent};
    return taken.emplace(names[0], extent).second;
  }
  if (entry.getTerms().size() != 1 || entry.getTerms().begin()->second != 1 ||
      entry.getTerms().begin()->first.size() != 1)
    return false;
  const auto &[atom, power] = entry.getTerms().begin()->first[0];
  if (power != 1 || !variablesIn(atom->rhs, demand.variables).empty())
    return false;
  const SymExpr &c = atom->rhs;
  range.start = SymExpr(0);
  if (atom->kind == SymExpr::Atom::Kind::FloorDiv && atom->lhs == v)
    range.count = quotients(extent, c);
  else if (atom->kind == SymExpr::Atom::Kind::Mod && witness.divides(c, extent) &&
           variablesIn(atom->lhs - v, demand.variables).empty())
    range.count = c;
  else
    return false;
  // Conditions on v would have to be translated to the quotient.
  for (const Condition &condition : demand.conditions)
    if (StringRef(condition.text()).contains(names[0]))
      return false;
  return taken.emplace(names[0], extent).second;
}

/// Returns the number of values of v / c for 0 ≤ v < extent. This is r if c = extent / r and r
/// divides the extent.
SymExpr ReadCount::quotients(const SymExpr &extent, const SymExpr &c) const {
  if (c.getTerms().size() == 1 && c.getTerms().begin()->first.size() == 1) {
    const auto &[atom, power] = c.getTerms().begin()->first[0];
    if (atom->kind == SymExpr::Atom::Kind::FloorDiv && power == 1 && c.getTerms().begin()->second == 1 &&
        atom->lhs == extent && witness.divides(atom->rhs, extent))
      return atom->rhs;
  }
  if (witness.divides(c, extent))
    return SymExpr::floorDiv(extent, c);
  return SymExpr::floorDiv(extent + c - SymExpr(1), c);
}

Box ReadCount::boxOf(const Demand &demand) {
  Box box;
  Variables all, some = demand.variables;
  auto type = cast<ArrayType>(demand.value.getType());
  for (auto [axis, entry] : llvm::enumerate(demand.index)) {
    Box::AxisSlice range{SymExpr(0), type.getExtent(axis)};
    if (!entry)
      box.note = "an index depends on data";
    else if (!rangeOf(demand, *entry, range, all)) {
      range = {SymExpr(0), type.getExtent(axis)};
      box.note = "the elements an index selects are not counted";
    }
    box.slices.push_back(range);
  }
  for (const auto &[name, extent] : all)
    some.erase(name);
  if (box.note.empty() && !witness.exists(demand.conditions, all, some))
    box.note = "a mask or a selection may leave some unread";
  return box;
}

bool ReadCount::contains(const Box &a, const Box &b) const {
  for (auto [x, y] : llvm::zip(a.slices, b.slices))
    if (!witness.isNotNegative(y.start - x.start, {}) ||
        !witness.isNotNegative(x.start + x.count - y.start - y.count, {}))
      return false;
  return true;
}

bool ReadCount::areDisjoint(const Box &a, const Box &b) const {
  for (auto [x, y] : llvm::zip(a.slices, b.slices))
    if (witness.isNotNegative(y.start - x.start - x.count, {}) ||
        witness.isNotNegative(x.start - y.start - y.count, {}))
      return true;
  return false;
}

ArrayCount ReadCount::countOf(unsigned argument) {
  auto type = cast<ArrayType>(kernel.getBody().getArgument(argument).getType());
  ArrayCount count;
  count.name = cast<StringAttr>(kernel.getArgNames()[argument]).getValue().str();
  count.elementType = type.getElementType();
  std::vector<Box> boxes;
  for (const Demand &demand : accesses[argument])
    boxes.push_back(boxOf(demand));
  llvm::stable_sort(boxes, [](const Box &a, const Box &b) { return a.note.empty() && !b.note.empty(); });
  std::vector<Box> kept;
  for (const Box &box : boxes)
    if (llvm::none_of(kept, [&](const Box &k) { return contains(k, box); }))
      kept.push_back(box);
  for (size_t k = 0; k < kept.size(); ++k) {
    SymExpr product(1);
    for (const Box::AxisSlice &range : kept[k].slices)
      product = product * range.count;
    count.elements = count.elements + product;
    if (count.note.empty())
      count.note = kept[k].note;
    for (size_t l = 0; l < k; ++l)
      if (!areDisjoint(kept[k], kept[l]))
        count.note = "parts that may overlap";
  }
  if (count.note == "parts that may overlap" || gaveUp) {
    count.elements = elementsOf(type);
    count.note = gaveUp ? "too many accesses to follow" : count.note;
  }
  count.exact = count.note.empty();
  return count;
}

std::vector<ArrayCount> ReadCount::run() {
  demandOutputs();
  while (!pending.empty()) {
    Demand demand = std::move(pending.back());
    pending.pop_back();
    visit(demand);
  }
  std::vector<ArrayCount> counts;
  for (BlockArgument arg : kernel.getBody().getArguments())
    if (cast<ArrayType>(arg.getType()).getRank() > 0)
      counts.push_back(countOf(arg.getArgNumber()));
  return counts;
}

} // namespace

std::vector<ArrayCount> moa::detail::countReads(KernelOp kernel) { return ReadCount(kernel).run(); }
