//===- Storage.cpp - register allocation of fragments ---------------------===//
#include "lib/Target/CUDA/Storage.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace moa::cuda {

std::string getNameInProgram(Value value) {
  auto named = dyn_cast<NameLoc>(value.getLoc());
  if (!named || value.getDefiningOp<scf::ForOp>())
    return "";
  SmallVector<StringRef> list;
  named.getName().getValue().split(list, ',');
  auto result = dyn_cast<OpResult>(value);
  return list[result && result.getResultNumber() < list.size() ? result.getResultNumber() : 0].str();
}

FragmentStorage::FragmentStorage(device::KernelOp kernel) {
  Block &body = kernel.getBody().front();
  unsigned next = 0;
  // Each operation has a point before and after it, each block one at its start.
  auto visit = [&](auto &self, Block &block) -> void {
    starts[&block] = next++;
    for (Operation &op : block) {
      points[&op].first = next++;
      for (Region &region : op.getRegions())
        for (Block &inner : region)
          self(self, inner);
      points[&op].second = next++;
    }
  };
  visit(visit, body);
  kernel.walk<WalkOrder::PreOrder>([&](Block *block) {
    for (Value argument : block->getArguments())
      addValue(argument);
    for (Operation &op : *block)
      for (Value result : op.getResults())
        addValue(result);
  });
  for (auto join : {&FragmentStorage::joinRequired, &FragmentStorage::joinBranch, &FragmentStorage::joinNext})
    kernel.walk<WalkOrder::PreOrder>([&](Operation *op) { (this->*join)(op); });
  // Visit the initial values of loops from the last loop to the first. Values passed between the
  // loops then share one array; if the first value cannot, one copy precedes all loops.
  SmallVector<Operation *> ops;
  kernel.walk<WalkOrder::PreOrder>([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : llvm::reverse(ops))
    joinFirst(op);
  for (Operation *op : ops)
    joinMap(op);
}

Operation *FragmentStorage::getEnd(Operation *user, Value fragment) {
  auto contract = dyn_cast<device::ContractOp>(user);
  if (!contract || contract.getA() != fragment)
    return user;
  for (Operation *reader : contract.getResult().getUsers())
    if (reader->getBlock() == user->getBlock()) {
      if (isa<device::AwaitOp>(reader))
        return reader;
      if (auto next = dyn_cast<device::ContractOp>(reader); next && next.getC() == contract.getResult())
        return getEnd(next, next.getA()); // awaited after both
    }
  return user->getBlock()->getTerminator();
}

/// Adds the live range from the definition to a use. It includes all of a loop that repeats the
/// use, but only the used side of a conditional.
void FragmentStorage::addUse(std::vector<Interval> &live, Value fragment, Operation *user) const {
  Block *home = fragment.getParentBlock();
  Operation *at = getEnd(user, fragment);
  unsigned end = points.lookup(at).first;
  while (at->getBlock() != home) {
    Block *block = at->getBlock();
    at = block->getParentOp();
    if (isa<scf::ForOp>(at)) {
      end = points.lookup(at).second;
      continue;
    }
    live.emplace_back(starts.lookup(block), end);
    end = points.lookup(at).first;
  }
  Operation *definition = fragment.getDefiningOp();
  live.emplace_back(definition ? points.lookup(definition).second : starts.lookup(home), end);
}

void FragmentStorage::addValue(Value fragment) {
  if (!isFragment(fragment))
    return;
  Class entry;
  entry.members = {fragment};
  for (Operation *user : fragment.getUsers())
    addUse(entry.live, fragment, user);
  Operation *definition = fragment.getDefiningOp();
  unsigned start = definition ? points.lookup(definition).second : starts.lookup(fragment.getParentBlock());
  entry.live.emplace_back(start, start);
  // A map over elements writes each of its rows several times.
  if (auto map = dyn_cast_or_null<device::MapOp>(definition);
      map && cast<device::FragmentType>(fragment.getType()).getLayout() != map.getLayout())
    entry.live.emplace_back(points.lookup(map).first, start);
  // The next values of a loop and the results of a conditional are written at the end of their
  // blocks.
  if (auto loop = dyn_cast_or_null<scf::ForOp>(fragment.getParentBlock()->getParentOp()); loop && !definition)
    entry.live.emplace_back(points.lookup(loop.getBody()->getTerminator()).second, points.lookup(loop).second);
  if (definition && !isa<scf::ForOp>(definition))
    for (Region &region : definition->getRegions())
      for (Block &block : region) {
        Operation *last = block.empty() ? nullptr : &block.back();
        if (last && last->hasTrait<OpTrait::IsTerminator>())
          entry.live.emplace_back(points.lookup(last).second, points.lookup(last).second);
      }
  if (auto contract = dyn_cast_or_null<device::ContractOp>(definition))
    entry.isReserved = !contract.getC();
  classOf[fragment] = classes.size();
  classes.push_back(std::move(entry));
}

void FragmentStorage::unite(Value x, Value y, bool isRequired) {
  if (!isFragment(x) || x.getType() != y.getType())
    return;
  unsigned a = classOf.lookup(x), b = classOf.lookup(y);
  if (a == b)
    return;
  Class &to = classes[a], &from = classes[b];
  bool overlap = llvm::any_of(to.live, [&](Interval p) {
    return llvm::any_of(from.live, [&](Interval q) { return p.first <= q.second && q.first <= p.second; });
  });
  if (!isRequired && (overlap || to.isReserved || from.isReserved))
    return;
  for (Value member : from.members)
    classOf[member] = a;
  llvm::append_range(to.members, from.members);
  llvm::append_range(to.live, from.live);
  to.isReserved |= from.isReserved;
  from = Class();
}

/// Unites arrays that the tensor cores accumulate into, and those that a loop carries.
void FragmentStorage::joinRequired(Operation *op) {
  if (auto await = dyn_cast<device::AwaitOp>(op))
    unite(await.getFragment(), await.getResult(), /*isRequired=*/true);
  if (auto contract = dyn_cast<device::ContractOp>(op))
    if (contract.getC() && contract.getC().getDefiningOp<device::ContractOp>())
      unite(contract.getC(), contract.getResult(), /*isRequired=*/true);
  if (auto loop = dyn_cast<scf::ForOp>(op))
    for (auto [argument, result] : llvm::zip(loop.getRegionIterArgs(), loop.getResults()))
      unite(argument, result, /*isRequired=*/true);
}

void FragmentStorage::joinNext(Operation *op) {
  if (auto contract = dyn_cast<device::ContractOp>(op); contract && contract.getC())
    unite(contract.getC(), contract.getResult());
  if (auto contract = dyn_cast<device::ContractFragmentsOp>(op); contract && contract.getC())
    unite(contract.getC(), contract.getResult());
  if (auto loop = dyn_cast<scf::ForOp>(op))
    for (auto [argument, next] : llvm::zip(loop.getRegionIterArgs(), loop.getBody()->getTerminator()->getOperands()))
      unite(argument, next);
}

void FragmentStorage::joinFirst(Operation *op) {
  if (auto loop = dyn_cast<scf::ForOp>(op))
    for (auto [argument, first] : llvm::zip(loop.getRegionIterArgs(), loop.getInitArgs()))
      unite(argument, first);
}

void FragmentStorage::joinBranch(Operation *op) {
  if (isa<scf::ForOp>(op))
    return;
  if (auto branch = dyn_cast<device::IfAnyOp>(op))
    for (auto [result, other] : llvm::zip(branch.getResults(), branch.getOtherwise())) {
      unite(result, other);
      // The results exist before the region starts. Inside, only the other values that they are
      // copied from may still be read.
      unsigned start = points.lookup(branch).first + 1;
      classes[classOf.lookup(result)].live.emplace_back(start, start);
    }
  for (Region &region : op->getRegions())
    for (Block &block : region)
      if (!block.empty() && block.back().getNumOperands() == op->getNumResults())
        for (auto [result, source] : llvm::zip(op->getResults(), block.back().getOperands()))
          unite(result, source);
}

/// Values of rows keep arrays of their own, because they have few registers.
void FragmentStorage::joinMap(Operation *op) {
  if (auto map = dyn_cast<device::MapOp>(op); map && map.getLayout().getRank() > 1)
    for (Value result : map.getResults())
      for (Value input : map.getInputs())
        unite(input, result);
}

Value FragmentStorage::of(Value fragment) const { return classes[classOf.lookup(fragment)].members.front(); }

bool FragmentStorage::isCopiedConstant(device::FillOp op) const {
  return op.getValue().getDefiningOp<arith::ConstantOp>() &&
         classes[classOf.lookup(op.getResult())].members.size() == 1 && llvm::all_of(op->getUses(), [](OpOperand &use) {
           Operation *user = use.getOwner();
           return isa<scf::ForOp, scf::YieldOp, device::YieldOp>(user) ||
                  (isa<device::IfAnyOp>(user) && use.getOperandNumber() != 0);
         });
}

std::string FragmentStorage::nameOf(Value fragment) const {
  // A state's own name precedes that of its values.
  std::string name;
  for (Value member : classes[classOf.lookup(fragment)].members)
    if (std::string own = getNameInProgram(member);
        !own.empty() && (name.empty() || member.getDefiningOp<device::FillOp>()))
      name = own;
  return name;
}

} // namespace moa::cuda
