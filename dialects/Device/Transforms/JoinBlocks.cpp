//===- JoinBlocks.cpp - blocks beside each other as one -------------------===//
//
// Threads of a matrix product f_ij = Σ_k a_ik·b_kj that have one element each read two numbers for
// every product. Where a block has a row i, what it reads of b is what the next block reads: a
// block that does the work of several rows reads it once, and what it reads of each row is adjacent
// along k.
//
//===----------------------------------------------------------------------===//
#include "dialects/Device/Transforms/Accesses.h"
#include "dialects/Device/Transforms/KernelRewrites.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace moa::device {
#define GEN_PASS_DEF_DEVICEJOINBLOCKS
#include "dialects/Device/Transforms/DevicePasses.h.inc"

namespace {
/// Blocks that become one, and elements of a row that are read at once.
constexpr int64_t kBlocks = 4, kRun = 4;

std::optional<int64_t> constantOf(Value value) {
  APInt number;
  return matchPattern(value, m_ConstantInt(&number)) ? std::optional(number.getSExtValue())
                                                     : std::nullopt;
}

/// Whether an expression is a multiple of a number whatever the sizes are, as far as its terms show
/// it.
bool isMultipleOf(const SymExpr &expr, int64_t number) {
  return SymExpr::floorDiv(expr, SymExpr(number)) * SymExpr(number) == expr;
}

/// Whether a kernel's blocks do nothing but to compute and to store in the workspace, so that it
/// makes no difference in which order several do it. Of an output there is one store (D4).
bool isIndependent(KernelOp kernel) {
  Accesses accesses(kernel);
  auto program = kernel->getParentOfType<ProgramOp>();
  return isPlain(kernel) &&
         llvm::all_of(accesses.written,
                      [&](Value array) {
                        return program.isWorkspace(array) && !accesses.read.contains(array);
                      }) &&
         !kernel
              .walk([](Operation *op) {
                bool isKnown = isMemoryEffectFree(op) ||
                               isa<KernelOp, scf::ForOp, scf::IfOp, LoadOp, StoreOp>(op);
                bool isInside = isa<BlockOp>(op) &&
                                !isa<KernelOp>(op->getParentOp()); // for which all would be one
                return isKnown && !isInside && !isa<ExchangeOp>(op) ? WalkResult::advance()
                                                                    : WalkResult::interrupt();
              })
              .wasInterrupted();
}

/// Writes what several blocks do as the work of one.
class Joiner {
public:
  Joiner(OpBuilder &b, KernelOp kernel)
      : b(b), blocks(*SymExpr::parse(kernel.getBlocks())), maps(kBlocks), loc(kernel.getLoc()) {}

  /// All operations of a block but the last one, if that ends it.
  void join(Block &from) {
    for (Operation &op : from)
      if (!op.hasTrait<OpTrait::IsTerminator>())
        join(op);
  }
  /// Loops in which something is read once for all, those inside of others first.
  SmallVector<scf::ForOp> sharing;

private:
  Value valueOf(Value value, int64_t k) { return maps[k].lookupOrDefault(value); }
  bool isShared(Value value) {
    for (int64_t k = 1; k < kBlocks; ++k)
      if (valueOf(value, k) != valueOf(value, 0))
        return false;
    return true;
  }
  void set(Value value, llvm::function_ref<Value(int64_t)> of) {
    for (int64_t k = 0; k < kBlocks; ++k)
      maps[k].map(value, of(k));
  }
  Value index(int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }
  /// The k-th of numbers that follow each other.
  Value following(Value first, int64_t k) {
    return k ? arith::AddIOp::create(b, loc, first, index(k)) : first;
  }

  void join(Operation &op) {
    loc = op.getLoc();
    if (apart != 1 && op.getNumOperands() > 0 && op.getOperand(0).getDefiningOp<BlockOp>())
      return; // it has its values already
    if (auto block = dyn_cast<BlockOp>(op))
      return numberBlocks(block);
    if (auto loop = dyn_cast<scf::ForOp>(op);
        loop && llvm::all_of(ValueRange{loop.getLowerBound(), loop.getUpperBound(), loop.getStep()},
                             [&](Value bound) { return isShared(bound); }))
      return join(loop);
    if (auto branch = dyn_cast<scf::IfOp>(op); branch && isShared(branch.getCondition()))
      return join(branch);
    if (isa<arith::RemUIOp, arith::DivUIOp>(op) && firstOf.contains(op.getOperand(0)))
      if (auto divisor = constantOf(op.getOperand(1));
          divisor && *divisor > 0 && *divisor % kBlocks == 0)
        return divide(op, *divisor);
    bool isOne = op.getNumRegions() == 0 && !isa<StoreOp>(op) &&
                 llvm::all_of(op.getOperands(), [&](Value v) { return isShared(v); });
    if (isOne) {
      Operation *made = b.clone(op, maps[0]);
      for (auto [result, value] : llvm::zip_equal(op.getResults(), made->getResults()))
        set(result, [&, value = value](int64_t) { return value; });
      shares |= isa<LoadOp>(op);
      return;
    }
    for (int64_t k = 0; k < kBlocks; ++k)
      b.clone(op, maps[k]);
  }

  /// Those that follow each other, or each so many behind the other, where the number is asked for
  /// by its quotient and remainder by that alone, as that of a row of blocks.
  void numberBlocks(BlockOp block) {
    Value number = BlockOp::create(b, loc);
    apart = findDistance(block);
    if (apart == 1)
      return setFollowing(block, arith::MulIOp::create(b, loc, number, index(kBlocks)));
    Value by = index(apart), row = arith::DivUIOp::create(b, loc, number, by),
          place = arith::RemUIOp::create(b, loc, number, by);
    Value first = arith::MulIOp::create(b, loc, row, index(kBlocks));
    for (Operation *user : block->getUsers())
      isa<arith::RemUIOp>(user) ? set(user->getResult(0), [&](int64_t) { return place; })
                                : setFollowing(user->getResult(0), first);
  }
  void setFollowing(Value numbers, Value first) {
    firstOf[numbers] = first;
    set(numbers, [&](int64_t k) { return following(first, k); });
  }

  int64_t findDistance(BlockOp block) {
    std::optional<int64_t> distance;
    for (Operation *user : block->getUsers()) {
      bool isPart =
          isa<arith::RemUIOp, arith::DivUIOp>(user) && user->getOperand(0) == block.getResult();
      auto divisor = isPart ? constantOf(user->getOperand(1)) : std::nullopt;
      if (!divisor || *divisor <= 1 || *divisor % kBlocks == 0 ||
          (distance && *distance != *divisor))
        return 1;
      distance = divisor;
    }
    return distance && isMultipleOf(blocks, kBlocks * *distance)
               ? *distance
               : 1; // else the last rows would be fewer
  }

  /// What the first is a multiple of, all of them have the same quotient by, and remainders that
  /// follow each other.
  void divide(Operation &op, int64_t divisor) {
    Value first = firstOf.lookup(op.getOperand(0)), by = index(divisor);
    if (isa<arith::DivUIOp>(op)) {
      Value quotient = arith::DivUIOp::create(b, loc, first, by);
      return set(op.getResult(0), [&](int64_t) { return quotient; });
    }
    Value rest = arith::RemUIOp::create(b, loc, first, by);
    set(op.getResult(0), [&](int64_t k) { return following(rest, k); });
  }

  SmallVector<Value> valuesOf(ValueRange values) {
    SmallVector<Value> list;
    for (int64_t k = 0; k < kBlocks; ++k)
      for (Value value : values)
        list.push_back(valueOf(value, k));
    return list;
  }
  /// As many of each block, one block's behind another's.
  void setAll(ValueRange values, ValueRange list) {
    for (auto [number, value] : llvm::enumerate(values))
      set(value, [&, number = number](int64_t k) { return list[k * values.size() + number]; });
  }

  void join(scf::ForOp from) {
    auto made = scf::ForOp::create(b, loc, valueOf(from.getLowerBound(), 0),
                                   valueOf(from.getUpperBound(), 0), valueOf(from.getStep(), 0),
                                   valuesOf(from.getInits()));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(made.getBody());
    set(from.getInductionVar(), [&](int64_t) { return made.getInductionVar(); });
    setAll(from.getRegionIterArgs(), made.getRegionIterArgs());
    made.getInductionVar().setLoc(from.getInductionVar().getLoc());
    for (auto [number, argument] : llvm::enumerate(made.getRegionIterArgs()))
      argument.setLoc(from.getRegionIterArg(number % from.getNumResults()).getLoc());
    bool around = std::exchange(shares, false);
    join(*from.getBody());
    if (shares)
      sharing.push_back(made);
    shares = around;
    if (from.getNumResults() > 0) // else it has its end already
      scf::YieldOp::create(b, from.getLoc(),
                           valuesOf(from.getBody()->getTerminator()->getOperands()));
    setAll(from.getResults(), made.getResults());
  }

  void join(scf::IfOp from) {
    SmallVector<Type> types;
    for (int64_t k = 0; k < kBlocks; ++k)
      llvm::append_range(types, from.getResultTypes());
    bool hasElse = from.elseBlock();
    auto made = scf::IfOp::create(b, loc, types, valueOf(from.getCondition(), 0), hasElse);
    auto side = [&](Block *block, Block *into) {
      OpBuilder::InsertionGuard guard(b);
      if (!into->empty())
        into->back().erase();
      b.setInsertionPointToEnd(into);
      join(*block);
      scf::YieldOp::create(b, from.getLoc(), valuesOf(block->getTerminator()->getOperands()));
    };
    side(from.thenBlock(), made.thenBlock());
    if (hasElse)
      side(from.elseBlock(), made.elseBlock());
    setAll(from.getResults(), made.getResults());
  }

  OpBuilder &b;
  SymExpr blocks;
  SmallVector<IRMapping> maps;
  Location loc;
  llvm::DenseMap<Value, Value> firstOf; ///< of a block's number in the kernel as it was
  int64_t apart = 1;                    ///< how far these numbers are from each other
  bool shares = false; ///< whether the loop around what is written reads something once for all
};

/// The number in front of a loop's index in the place of a load, if what the loop reads there is
/// adjacent.
Value baseOf(LoadOp load, scf::ForOp loop) {
  auto sum = load.getOffset().getDefiningOp<arith::AddIOp>();
  if (!sum || load->getBlock() != loop.getBody())
    return {};
  Value index = loop.getInductionVar();
  Value base = sum.getLhs() == index   ? sum.getRhs()
               : sum.getRhs() == index ? sum.getLhs()
                                       : Value();
  return base && loop.isDefinedOutsideOfLoop(base) ? base : Value();
}

/// Reads what is adjacent along a loop by runs, each for as many of its steps.
void readRuns(scf::ForOp loop) {
  auto least = constantOf(loop.getLowerBound()), most = constantOf(loop.getUpperBound()),
       step = constantOf(loop.getStep());
  SmallVector<std::pair<LoadOp, Value>> loads;
  for (auto load : loop.getBody()->getOps<LoadOp>())
    if (Value base = baseOf(load, loop); base && load.getResult().getType().isF32())
      loads.push_back({load, base});
  if (least != 0 || step != 1 || !most || *most % kRun != 0 || loads.empty())
    return;
  OpBuilder b(loop);
  Location loc = loop.getLoc();
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  Value zero = index(0), one = index(1), run = index(kRun);
  auto outer = scf::ForOp::create(b, loc, zero, index(*most / kRun), one, loop.getInits());
  b.setInsertionPointToStart(outer.getBody());
  Value first = arith::MulIOp::create(b, loc, outer.getInductionVar(), run);
  SmallVector<Value> buffers;
  for (auto [load, base] : loads) {
    Value buffer = memref::AllocaOp::create(b, load.getLoc(),
                                            MemRefType::get({kRun}, load.getResult().getType()));
    Value place = arith::AddIOp::create(b, load.getLoc(), base, first);
    LoadRunOp::create(b, load.getLoc(), load.getArray(), place, one, run, buffer, ValueRange(),
                      IntegerAttr(), UnitAttr());
    buffers.push_back(buffer);
  }
  auto inner = scf::ForOp::create(b, loc, zero, run, one, outer.getRegionIterArgs());
  if (loop.getNumResults() > 0) {
    b.setInsertionPointAfter(inner);
    scf::YieldOp::create(b, loc, inner.getResults());
  }
  b.setInsertionPointToStart(inner.getBody());
  IRMapping map;
  map.map(loop.getInductionVar(),
          arith::AddIOp::create(b, loc, first, inner.getInductionVar()).getResult());
  map.map(loop.getRegionIterArgs(), inner.getRegionIterArgs());
  for (auto [load, buffer] : llvm::zip_equal(llvm::make_first_range(loads), buffers)) {
    LoadOp own = load;
    map.map(own.getResult(),
            memref::LoadOp::create(b, own.getLoc(), buffer, inner.getInductionVar()).getResult());
  }
  for (auto [old, next, last] : llvm::zip_equal(loop.getRegionIterArgs(), outer.getRegionIterArgs(),
                                                inner.getRegionIterArgs())) {
    next.setLoc(old.getLoc());
    last.setLoc(old.getLoc());
  }
  for (Operation &op : *loop.getBody()) {
    bool isRead = llvm::is_contained(llvm::make_first_range(loads), dyn_cast<LoadOp>(op));
    if (!isRead && !(op.hasTrait<OpTrait::IsTerminator>() && loop.getNumResults() == 0))
      b.clone(op, map);
  }
  loop.replaceAllUsesWith(outer.getResults());
  loop.erase();
}

/// Numbers that nobody reads any more.
void eraseDead(KernelOp kernel) {
  SmallVector<Operation *> list;
  kernel.walk([&](Operation *op) { list.push_back(op); });
  for (Operation *op : llvm::reverse(list)) // users stand behind
    if (op->getNumRegions() == 0 && isOpTriviallyDead(op))
      op->erase();
}

/// A kernel whose blocks do the work of several each, in the place of one; the kernel itself where
/// that reads nothing once for all.
void joinBlocks(KernelOp kernel) {
  SymExpr blocks = *SymExpr::parse(kernel.getBlocks());
  SymExpr fewer = SymExpr::floorDiv(blocks, SymExpr(kBlocks));
  if (!isMultipleOf(blocks, kBlocks) || blocks.getConstant() || !isIndependent(kernel))
    return;
  OpBuilder b(kernel);
  auto made =
      KernelOp::create(b, kernel.getLoc(), kernel.getSymName(), fewer.str(), kernel.getThreads());
  made->setDiscardableAttrs(kernel->getDiscardableAttrDictionary());
  b.setInsertionPointToStart(&made.getBody().emplaceBlock());
  Joiner joiner(b, kernel);
  joiner.join(kernel.getBody().front());
  if (joiner.sharing.empty()) {
    made.erase();
    return;
  }
  kernel.erase();
  for (scf::ForOp loop : joiner.sharing)
    readRuns(loop);
  eraseDead(made);
}

struct DeviceJoinBlocks final : impl::DeviceJoinBlocksBase<DeviceJoinBlocks> {
  using Base::Base;

  void runOnOperation() override {
    getOperation()->walk([](ProgramOp program) {
      for (auto kernel : llvm::to_vector(program.getBody().getOps<KernelOp>()))
        joinBlocks(kernel);
    });
  }
};
} // namespace
} // namespace moa::device
