//===- CanonicalForm.cpp - one text per normal form -----------------------===//
//
// ψ-reduction is confluent up to the order of conjunctions and of independent operations. Both get
// a canonical order here, which depends only on the values computed.
//
//===----------------------------------------------------------------------===//
#include "lib/Conversion/MoAToDNF/Laws.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StableHashing.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace moa;

namespace {

/// A hash of the computation of a value: equal for equal code at equal places. Relative to the
/// block `seenFrom` it ignores the order and depth of the surrounding axes, but distinguishes the
/// block's own arguments from others.
class Fingerprint {
public:
  explicit Fingerprint(Block *seenFrom = nullptr) : seenFrom(seenFrom) {}

  uint64_t of(Value value) {
    auto it = memo.find(value);
    if (it != memo.end())
      return it->second;
    uint64_t hash = 0;
    if (auto arg = dyn_cast<BlockArgument>(value)) {
      unsigned depth = 0;
      for (Operation *op = arg.getOwner()->getParentOp(); op; op = op->getParentOp())
        ++depth;
      bool isInside = seenFrom && seenFrom->getParentOp()->isProperAncestor(arg.getOwner()->getParentOp());
      if (!seenFrom || isInside || isa<dnf::KernelOp>(arg.getOwner()->getParentOp()))
        hash = llvm::stable_hash_combine(depth, arg.getArgNumber());
      else
        hash = arg.getOwner() == seenFrom ? llvm::stable_hash_combine(1, arg.getArgNumber()) : 0;
    } else {
      hash = of(value.getDefiningOp());
    }
    return memo[value] = hash;
  }

private:
  uint64_t of(Operation *op) {
    std::string text;
    llvm::raw_string_ostream os(text);
    // The text of an expression counts, as ops print it.
    auto toText = [](ExprAttr expr) { return StringAttr::get(expr.getContext(), expr.getValue().str()); };
    os << op->getName() << op->getAttrDictionary().replace(toText);
    for (Type type : op->getResultTypes())
      os << type;
    SmallVector<uint64_t> parts{llvm::xxh3_64bits(text)};
    for (Value operand : op->getOperands())
      parts.push_back(of(operand));
    for (Region &region : op->getRegions())
      parts.push_back(of(region.front().getTerminator()));
    return llvm::stable_hash_combine(parts);
  }

  Block *seenFrom;
  llvm::DenseMap<Value, uint64_t> memo;
};

/// Calls `visit` once on every value that `root` is computed from. Operands of a value are visited
/// only if it returns true for the value.
void walkOperands(Value root, llvm::function_ref<bool(Value)> visit) {
  llvm::SetVector<Value> seen;
  seen.insert(root);
  for (size_t k = 0; k < seen.size(); ++k)
    if (visit(seen[k]) && seen[k].getDefiningOp())
      seen.insert_range(seen[k].getDefiningOp()->getOperands());
}

/// Returns whether a value is computed from indices and symbols alone.
bool isIndexOnly(Value value) {
  bool result = true;
  walkOperands(value, [&](Value part) {
    result &= !isa_and_nonnull<dnf::PsiOp, dnf::ApplyOp, dnf::ReduceOp>(part.getDefiningOp());
    return result;
  });
  return result;
}

/// How deeply reads are nested in the addresses of other reads: 0 for indices, 1 for x[i], 2 for
/// y[x[i]]. A divisor counts as an address.
class ReadDepth {
public:
  unsigned of(Value value) {
    auto it = memo.find(value);
    if (it != memo.end())
      return it->second;
    Operation *op = value.getDefiningOp();
    unsigned depth = op ? of(op) : 0;
    return memo[value] = depth;
  }

private:
  unsigned of(Operation *op) {
    unsigned depth = 0;
    for (Value operand : op->getOperands())
      depth = std::max(depth, of(operand));
    for (Region &region : op->getRegions())
      depth = std::max(depth, ofBody(region));
    if (isa<dnf::PsiOp>(op))
      return depth + 1;
    if (auto apply = dyn_cast<dnf::ApplyOp>(op))
      if (auto let = SymbolTable::lookupNearestSymbolFrom<dnf::LetOp>(op, apply.getLetAttr()))
        return depth + ofBody(let.getBody());
    if (isa<arith::FloorDivSIOp>(op))
      return std::max(depth, of(op->getOperand(1)) + 1);
    return depth;
  }
  unsigned ofBody(Region &region) {
    unsigned depth = 0;
    for (Value operand : region.front().getTerminator()->getOperands())
      depth = std::max(depth, of(operand));
    return depth;
  }

  llvm::DenseMap<Value, unsigned> memo;
};

/// Rebuilds a yield's condition as a chain of distinct conditions. Conditions on indices come
/// first, because they bound the range. Conditions with nested reads come after those that may
/// prove their addresses in bounds.
void orderConditions(dnf::YieldOp yield) {
  Value present = yield.getPresent();
  if (!present || !present.getDefiningOp<arith::AndIOp>())
    return;
  SmallVector<Value> sorted;
  walkOperands(present, [&](Value part) {
    bool isBoth = part.getDefiningOp<arith::AndIOp>();
    if (!isBoth)
      sorted.push_back(part);
    return isBoth;
  });
  // The same conditions get the same order everywhere: results may have their axes in another order
  // than their operands.
  Fingerprint seen(yield->getBlock()), fingerprint;
  ReadDepth reads;
  auto key = [&](Value part) {
    return std::tuple(!isIndexOnly(part), reads.of(part), seen.of(part), fingerprint.of(part));
  };
  llvm::stable_sort(sorted, [&](Value a, Value b) { return key(a) < key(b); });
  OpBuilder builder(yield);
  Value all = sorted.front();
  for (Value part : llvm::drop_begin(sorted))
    all = arith::AndIOp::create(builder, yield.getLoc(), all, part);
  yield.getPresentMutable().assign(all);
}

/// Puts operations into the order in which the terminator needs them, and erases unused ones.
void orderOperations(Block &block) {
  Operation *end = block.getTerminator();
  llvm::DenseSet<Operation *> placed;
  std::function<void(Operation *)> place = [&](Operation *op) {
    if (op->getBlock() != &block || !placed.insert(op).second)
      return;
    // A region needs the values of this block that its operations read.
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (Operation *definition = operand.getDefiningOp())
          place(definition);
    });
    if (op != end)
      op->moveBefore(end);
  };
  for (Operation &op : block)
    for (Region &region : op.getRegions())
      orderOperations(region.front());
  place(end);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (!placed.contains(&op))
      op.erase();
}

} // namespace

void moa::detail::canonicalise(dnf::KernelOp kernel) {
  kernel.walk([](dnf::YieldOp yield) { orderConditions(yield); });
  for (Operation &definition : kernel.getBody().front())
    orderOperations(definition.getRegion(0).front());
}
