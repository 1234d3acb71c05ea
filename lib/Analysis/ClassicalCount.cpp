//===- ClassicalCount.cpp - intermediates of operator-by-operator evaluation ===//
//
// [Def 18]. The operators of a kernel are views, generators, contractions, reductions and
// point-wise operators. Connected point-wise operators are fused into maximal groups, one loop
// each. A group must be convex: it may not depend on a value outside that depends on the group.
// Every contraction and reduction writes an array. A group writes one array for each of its values
// that is used outside. It reuses the array of a contraction or reduction of the same size that
// only the group reads. Outputs are not intermediates.
//
//===----------------------------------------------------------------------===//
#include "lib/Analysis/DataMovement.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace moa;

namespace {

class ClassicalCount {
public:
  explicit ClassicalCount(KernelOp kernel) : body(kernel.getBody().front()) {}
  std::vector<IntermediateArray> run();

private:
  using Group = llvm::SetVector<Operation *>;

  static bool isView(Operation *op);
  static bool isPointwise(Operation *op) { return isa<MapOp, CastOp, MaskOp>(op); }
  /// Returns the operator whose result the value views; null for inputs and generated arrays.
  Operation *producerOf(Value value) const;
  void classify();
  void makeGroups();
  bool isConvex(const Group &group) const;
  void merge(Operation *a, Operation *b);
  bool isUsedOutside(Operation *op) const;
  Operation *absorberOf(Operation *op) const;
  void add(Operation *op, std::vector<IntermediateArray> &arrays) const;

  Block &body;
  llvm::SmallPtrSet<Operation *, 32> generated;
  /// The operators that compute an array, in order, and the users of each, looking through views.
  std::vector<Operation *> nodes;
  llvm::DenseMap<Operation *, llvm::SetVector<Operation *>> users;
  llvm::SmallPtrSet<Operation *, 8> outputs;
  llvm::DenseMap<Operation *, std::shared_ptr<Group>> groups;
};

bool ClassicalCount::isView(Operation *op) {
  if (auto cast = dyn_cast<CastOp>(op))
    return cast.getImplicit();
  return isa<PsiOp, TransposeOp, ReshapeOp, SliceOp, ReverseOp, RotateOp>(op);
}

Operation *ClassicalCount::producerOf(Value value) const {
  Operation *op = value.getDefiningOp();
  while (op && isView(op))
    op = op->getOperand(0).getDefiningOp();
  return op && !generated.contains(op) ? op : nullptr;
}

/// Classifies the operators. Arrays that depend on indices and scalars alone are generated: they
/// are computed where they are used and have no memory.
void ClassicalCount::classify() {
  auto isFree = [&](Value value) {
    Operation *op = value.getDefiningOp();
    return cast<ArrayType>(value.getType()).getRank() == 0 || (op && generated.contains(op));
  };
  for (Operation &op : body.without_terminator()) {
    bool generates = isa<ConstantOp, ExtentOp, IotaOp>(op);
    if (isView(&op) || isPointwise(&op))
      generates = llvm::all_of(op.getOperands(), isFree);
    if (generates)
      generated.insert(&op);
    else if (!isView(&op))
      nodes.push_back(&op);
  }
  for (Operation &op : body) {
    if (generated.contains(&op) || isView(&op))
      continue;
    for (Value operand : op.getOperands())
      if (Operation *producer = producerOf(operand)) {
        if (isa<ReturnOp>(op))
          outputs.insert(producer);
        else
          users[producer].insert(&op);
      }
  }
}

/// Returns true if no path leaves the group and comes back.
bool ClassicalCount::isConvex(const Group &group) const {
  llvm::SetVector<Operation *> outside;
  auto visit = [&](Operation *op, bool fromOutside) {
    auto it = users.find(op);
    if (it == users.end())
      return true;
    for (Operation *user : it->second) {
      if (!group.contains(user))
        outside.insert(user);
      else if (fromOutside)
        return false;
    }
    return true;
  };
  for (Operation *op : group)
    visit(op, false);
  for (size_t k = 0; k < outside.size(); ++k)
    if (!visit(outside[k], true))
      return false;
  return true;
}

void ClassicalCount::merge(Operation *a, Operation *b) {
  if (groups[a] == groups[b])
    return;
  auto merged = std::make_shared<Group>(*groups[a]);
  merged->insert(groups[b]->begin(), groups[b]->end());
  if (!isConvex(*merged))
    return;
  for (Operation *op : *merged)
    groups[op] = merged;
}

void ClassicalCount::makeGroups() {
  for (Operation *op : nodes) {
    auto group = std::make_shared<Group>();
    group->insert(op);
    groups[op] = std::move(group);
    if (!isPointwise(op))
      continue;
    for (Value operand : op->getOperands())
      if (Operation *producer = producerOf(operand); producer && isPointwise(producer))
        merge(producer, op);
  }
}

bool ClassicalCount::isUsedOutside(Operation *op) const {
  auto it = users.find(op);
  const auto &group = *groups.find(op)->second;
  return it != users.end() && llvm::any_of(it->second, [&](Operation *user) { return !group.contains(user); });
}

/// Returns the value of a group that reuses the array of a contraction or reduction.
Operation *ClassicalCount::absorberOf(Operation *op) const {
  auto it = users.find(op);
  if (it == users.end() || outputs.contains(op))
    return nullptr;
  std::shared_ptr<Group> group = groups.find(it->second.front())->second;
  auto inGroup = [&](Operation *user) { return group->contains(user); };
  if (!isPointwise(it->second.front()) || !llvm::all_of(it->second, inGroup))
    return nullptr;
  auto sizeOf = [](Operation *producer) {
    return moa::detail::elementsOf(cast<ArrayType>(producer->getResult(0).getType()));
  };
  for (Operation *member : *group)
    if ((isUsedOutside(member) || outputs.contains(member)) && sizeOf(member) == sizeOf(op))
      return member;
  return nullptr;
}

void ClassicalCount::add(Operation *op, std::vector<IntermediateArray> &arrays) const {
  IntermediateArray array;
  array.kind = isa<InnerOp>(op) ? "contraction" : isa<ReduceOp>(op) ? "reduction" : "point-wise";
  array.elements = moa::detail::elementsOf(cast<ArrayType>(op->getResult(0).getType()));
  op->getLoc()->walk([&](Location loc) {
    if (auto name = dyn_cast<NameLoc>(loc); name && array.name.empty())
      array.name = name.getName().str();
    if (auto file = dyn_cast<FileLineColLoc>(loc); file && !array.line)
      array.line = file.getLine();
    return WalkResult::advance();
  });
  arrays.push_back(std::move(array));
}

std::vector<IntermediateArray> ClassicalCount::run() {
  classify();
  makeGroups();
  std::vector<IntermediateArray> arrays;
  llvm::SmallPtrSet<Operation *, 8> taken;
  for (Operation *op : nodes) {
    if (outputs.contains(op))
      continue;
    if (isPointwise(op)) {
      if (isUsedOutside(op))
        add(op, arrays);
      continue;
    }
    Operation *absorber = absorberOf(op);
    if (absorber && taken.insert(absorber).second)
      continue;
    if (users.count(op))
      add(op, arrays);
  }
  return arrays;
}

} // namespace

std::vector<IntermediateArray> moa::detail::countIntermediates(KernelOp kernel) { return ClassicalCount(kernel).run(); }
