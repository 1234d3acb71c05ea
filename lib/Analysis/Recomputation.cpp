//===- Recomputation.cpp - reductions computed more than once -------------===//
#include "lib/Analysis/Recomputation.h"
#include "dialects/MoA/IR/Subscripts.h"
#include "lib/Analysis/Passes.h"
#include "lib/Support/Nominal.h"
#include "lib/Support/Shorten.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace moa {
#define GEN_PASS_DEF_REMARKRECOMPUTATIONPASS
#include "lib/Analysis/AnalysisPasses.h.inc"
} // namespace moa

using namespace mlir;
using namespace moa;

//===----------------------------------------------------------------------===//
// States, wherever they stand
//===----------------------------------------------------------------------===//

const SymExpr &moa::getExtentOf(BlockArgument index) {
  Operation *owner = index.getOwner()->getParentOp();
  unsigned number = index.getArgNumber();
  if (auto fold = dyn_cast<onf::FoldOp>(owner))
    return fold.getExtent();
  ArrayAttr extents =
      isa<onf::ForOp>(owner) ? cast<onf::ForOp>(owner).getExtents() : cast<onf::AccOp>(owner).getExtents();
  return getSymExpr(extents[number]);
}

static bool isIndex(BlockArgument argument) {
  return isa<onf::ForOp, onf::FoldOp>(argument.getOwner()->getParentOp()) ||
         (isa<onf::AccOp>(argument.getOwner()->getParentOp()) && argument.getType().isIndex());
}

/// Returns the values that determine the terms of a state: the yielded term and the guard.
static SmallVector<Value> getRoots(onf::AccOp acc) {
  SmallVector<Value> roots{cast<onf::YieldOp>(acc.getValue().front().back()).getValues()[0]};
  for (Operation &op : *acc->getBlock())
    if (auto guard = dyn_cast<onf::GuardOp>(op))
      roots.push_back(guard.getCondition());
  return roots;
}

llvm::SetVector<BlockArgument> moa::getTermIndices(onf::AccOp acc) {
  llvm::SetVector<BlockArgument> indices;
  DenseSet<Operation *> seen;
  SmallVector<Value> work = getRoots(acc);
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (isIndex(argument))
        indices.insert(argument);
      continue;
    }
    Operation *op = value.getDefiningOp();
    if (seen.insert(op).second)
      op->walk([&](Operation *inner) {
        seen.insert(inner);
        work.append(inner->operand_begin(), inner->operand_end());
      });
  }
  // Indices of the folds visited above are bound there.
  indices.remove_if([&](BlockArgument index) { return seen.contains(index.getOwner()->getParentOp()); });
  indices.insert(cast<onf::FoldOp>(acc->getParentOp()).getBody().getArgument(0));
  for (BlockArgument argument : acc.getValue().getArguments())
    indices.insert(argument);
  return indices;
}

namespace {
/// Builds the key of describeTerms. Values are numbered in the order of a walk from the term.
class Identity {
public:
  std::string of(onf::AccOp acc) {
    os << stringifyMonoid(acc.getMonoid()) << acc.getFunction().value_or("");
    for (Value root : getRoots(acc))
      value(root);
    value(cast<onf::FoldOp>(acc->getParentOp()).getBody().getArgument(0));
    for (BlockArgument argument : acc.getValue().getArguments())
      value(argument);
    return text;
  }

private:
  void value(Value v) {
    auto [it, fresh] = numbers.try_emplace(v, numbers.size());
    os << " " << it->second;
    if (!fresh)
      return;
    if (auto argument = dyn_cast<BlockArgument>(v)) {
      if (isIndex(argument))
        os << "<" << getExtentOf(argument).str();
      else
        os << "=" << argument.getArgNumber();
      return;
    }
    os << "=(";
    operation(v.getDefiningOp());
    os << " #" << cast<OpResult>(v).getResultNumber() << ")";
  }

  void operation(Operation *op) {
    if (auto acc = dyn_cast<onf::AccOp>(op)) {
      os << "acc " << stringifyMonoid(acc.getMonoid()) << acc.getFunction().value_or("");
      for (Value root : getRoots(acc))
        value(root);
      return;
    }
    if (auto fold = dyn_cast<onf::FoldOp>(op)) {
      os << "fold " << fold.getExtent().str();
      for (Value state : fold.getBody().front().getTerminator()->getOperands())
        value(state);
      return;
    }
    os << op->getName() << op->getAttrDictionary();
    for (Value operand : op->getOperands())
      value(operand);
  }

  std::string text;
  llvm::raw_string_ostream os{text};
  llvm::DenseMap<Value, unsigned> numbers;
};
} // namespace

std::string moa::describeTerms(onf::AccOp acc) { return Identity().of(acc); }

//===----------------------------------------------------------------------===//
// How often
//===----------------------------------------------------------------------===//

/// Returns the indices of loops, folds and axes around the state's fold in which the state is
/// invariant, outermost first. Returns none for a constant term: counting costs no more than the
/// loop.
static SmallVector<BlockArgument> getRepeats(onf::AccOp acc) {
  Value term = acc.getValue().front().getTerminator()->getOperand(0);
  if (term.getDefiningOp<arith::ConstantOp>())
    return {};
  llvm::SetVector<BlockArgument> needed = getTermIndices(acc);
  SmallVector<BlockArgument> repeats;
  Operation *child = acc->getParentOp();
  for (Operation *op = child->getParentOp(); op && !isa<onf::KernelOp>(op); op = op->getParentOp())
    for (BlockArgument index : llvm::reverse(op->getRegion(0).getArguments()))
      if (!needed.contains(index))
        repeats.push_back(index);
  std::reverse(repeats.begin(), repeats.end());
  return repeats;
}

static StringRef getIndexName(BlockArgument index) {
  Operation *owner = index.getOwner()->getParentOp();
  if (auto fold = dyn_cast<onf::FoldOp>(owner))
    return fold.getName();
  ArrayAttr names = isa<onf::ForOp>(owner) ? cast<onf::ForOp>(owner).getNames() : cast<onf::AccOp>(owner).getNames();
  return cast<StringAttr>(names[index.getArgNumber()]).getValue();
}

/// Returns the user's name of the definition that a state computes. Without one, returns the text
/// of the reduction, or the state's name.
static StringRef getDefinition(onf::AccOp acc) {
  if (auto named = dyn_cast<NameLoc>(acc.getLoc()))
    return named.getName().getValue();
  StringRef text = getText(acc.getLoc());
  return text.empty() ? acc.getName() : text;
}

/// Lists the indices by name; a repeated name of a nested loop gets a number.
static std::string describePlace(ArrayRef<BlockArgument> repeats) {
  std::string text;
  llvm::StringMap<unsigned> counts;
  for (BlockArgument index : repeats) {
    std::string name = getIndexName(index).str();
    if (unsigned count = ++counts[name]; count > 1)
      name += std::to_string(count);
    text += ((text.empty() ? "for every " : ", ") + Twine(name) + " < " + getExtentOf(index).str()).str();
  }
  return text;
}

/// The least number of evaluations per element for a warning.
static constexpr double kLeastTimes = 16;
/// The least ratio, for a warning, of the work to that of all reductions computed once each.
static constexpr double kLeastOfAll = 16;

/// Returns the total number of terms that a state evaluates.
static double workOf(onf::AccOp acc) {
  double work = 1;
  for (const SymExpr &extent : acc.getExtents().getAsValueRange<ExprAttr>())
    work *= nominal(extent);
  for (Operation *op = acc->getParentOp(); !isa<onf::KernelOp>(op); op = op->getParentOp())
    for (BlockArgument index : op->getRegion(0).getArguments())
      work *= nominal(getExtentOf(index));
  return work;
}

std::vector<Recomputed> moa::findRecomputed(onf::KernelOp kernel) {
  llvm::MapVector<StringRef, SmallVector<onf::AccOp>> sites;
  llvm::StringSet<> identities;
  kernel.walk<WalkOrder::PreOrder>([&](onf::AccOp acc) {
    // `or` tests whether a range is empty, which is not worth a remark.
    if (acc.getMonoid() != Monoid::or_)
      sites[identities.insert(describeTerms(acc)).first->getKey()].push_back(acc);
  });
  std::vector<Recomputed> result;
  double once = 0; // the work if each element were computed once
  for (auto &[identity, accs] : sites) {
    Recomputed found{accs.front().getLoc(), shorten(getDefinition(accs.front())), SymExpr(0), ""};
    llvm::StringSet<> places;
    for (onf::AccOp acc : accs) {
      SymExpr times(1);
      SmallVector<BlockArgument> repeats = getRepeats(acc);
      for (BlockArgument index : repeats)
        times = times * getExtentOf(index);
      found.times = found.times + times;
      found.work += workOf(acc);
      std::string place = describePlace(repeats);
      if (!place.empty() && places.insert(place).second)
        found.where += (found.where.empty() ? "" : ", and ") + place;
    }
    if (accs.size() > 1)
      found.where = "at " + std::to_string(accs.size()) + " places" + (found.where.empty() ? "" : ", " + found.where);
    once += found.work / std::max(1.0, nominal(found.times));
    if (found.times != SymExpr(1))
      result.push_back(std::move(found));
  }
  for (Recomputed &found : result)
    found.explodes = nominal(found.times) >= kLeastTimes && found.work >= kLeastOfAll * once;
  return result;
}

namespace {
struct RemarkRecomputationPass final : moa::impl::RemarkRecomputationPassBase<RemarkRecomputationPass> {
  using Base::Base;

  void runOnOperation() override {
    getOperation()->walk([](onf::KernelOp kernel) {
      for (const Recomputed &found : findRecomputed(kernel))
        if (found.explodes)
          mlir::emitWarning(found.loc) << "'" << found.name << "' is computed " << shorten(found.times.str())
                                       << " times for each element, " << shorten(found.where)
                                       << "; make it a result of a kernel of its own, and pass that";
        else
          mlir::emitRemark(found.loc) << "'" << found.name << "' is recomputed: each element "
                                      << shorten(found.times.str()) << " times, " << shorten(found.where);
    });
    markAllAnalysesPreserved();
  }
};
} // namespace
