//===- JoinBlocks.cpp - thread coarsening: one block for four neighbours --===//
//
// In a matrix product f_ij = Σ_k a_ik·b_kj with one element per thread, a thread reads two numbers
// for every product. If a block has one row i, neighbouring blocks read the same elements of b. So
// a block that does the work of several rows reads them once (register tiling), and reads the
// elements of each row of a, which are adjacent along k, by runs.
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
/// The number of blocks that become one, and the number of elements of a run.
constexpr int64_t kBlocks = 4, kRun = 4;

std::optional<int64_t> constantOf(Value value) {
  APInt number;
  return matchPattern(value, m_ConstantInt(&number)) ? std::optional(number.getSExtValue()) : std::nullopt;
}

/// Returns true if the terms of an expression show that it is a multiple of a number for all sizes.
bool isMultipleOf(const SymExpr &expr, int64_t number) {
  return SymExpr::floorDiv(expr, SymExpr(number)) * SymExpr(number) == expr;
}

/// Returns true if a kernel's blocks only compute, read, and store arrays of the workspace that
/// they do not read. The order of several blocks is then irrelevant. An output must keep its single
/// store (D4).
bool isIndependent(KernelOp kernel) {
  Accesses accesses(kernel);
  auto program = kernel->getParentOfType<ProgramOp>();
  return isPlain(kernel) &&
         llvm::all_of(accesses.written,
                      [&](Value array) { return program.isWorkspace(array) && !accesses.read.contains(array); }) &&
         !kernel
              .walk([](Operation *op) {
                bool isKnown = isMemoryEffectFree(op) || isa<KernelOp, scf::ForOp, scf::IfOp, LoadOp, StoreOp>(op);
                bool isInside = isa<BlockOp>(op) && !isa<KernelOp>(op->getParentOp()); // same for all blocks
                return isKnown && !isInside && !isa<ExchangeOp>(op) ? WalkResult::advance() : WalkResult::interrupt();
              })
              .wasInterrupted();
}

/// Emits the work of several blocks as that of one.
class Joiner {
public:
  Joiner(OpBuilder &b, KernelOp kernel) : b(b), blocks(kernel.getBlocks()), maps(kBlocks), loc(kernel.getLoc()) {}

  void join(Block &from) {
    for (Operation &op : from)
      if (!op.hasTrait<OpTrait::IsTerminator>())
        join(op);
  }
  /// Loops that read something once for all blocks, inner loops first.
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
  Value following(Value first, int64_t k) { return k ? arith::AddIOp::create(b, loc, first, index(k)) : first; }

  void join(Operation &op) {
    loc = op.getLoc();
    if (apart != 1 && op.getNumOperands() > 0 && op.getOperand(0).getDefiningOp<BlockOp>())
      return; // numberBlocks has set its values
    if (auto block = dyn_cast<BlockOp>(op))
      return numberBlocks(block);
    if (auto loop = dyn_cast<scf::ForOp>(op);
        loop && llvm::all_of(ValueRange{loop.getLowerBound(), loop.getUpperBound(), loop.getStep()},
                             [&](Value bound) { return isShared(bound); }))
      return join(loop);
    if (auto branch = dyn_cast<scf::IfOp>(op); branch && isShared(branch.getCondition()))
      return join(branch);
    if (isa<arith::RemUIOp, arith::DivUIOp>(op) && firstOf.contains(op.getOperand(0)))
      if (auto divisor = constantOf(op.getOperand(1)); divisor && *divisor > 0 && *divisor % kBlocks == 0)
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

  /// Numbers the joined blocks consecutively, or `apart` from each other. The latter is used if all
  /// uses of the number are quotients and remainders by one constant, that is if blocks form rows.
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
      bool isPart = isa<arith::RemUIOp, arith::DivUIOp>(user) && user->getOperand(0) == block.getResult();
      auto divisor = isPart ? constantOf(user->getOperand(1)) : std::nullopt;
      if (!divisor || *divisor <= 1 || *divisor % kBlocks == 0 || (distance && *distance != *divisor))
        return 1;
      distance = divisor;
    }
    return distance && isMultipleOf(blocks, kBlocks * *distance) ? *distance
                                                                 : 1; // otherwise the last rows would be incomplete
  }

  /// The first number is a multiple of kBlocks, as the divisor is. So all numbers have the same
  /// quotient, and their remainders are consecutive.
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
  /// Maps `values` of block k to the k-th part of `list`.
  void setAll(ValueRange values, ValueRange list) {
    for (auto [number, value] : llvm::enumerate(values))
      set(value, [&, number = number](int64_t k) { return list[k * values.size() + number]; });
  }

  void join(scf::ForOp from) {
    auto made = scf::ForOp::create(b, loc, valueOf(from.getLowerBound(), 0), valueOf(from.getUpperBound(), 0),
                                   valueOf(from.getStep(), 0), valuesOf(from.getInits()));
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
    if (from.getNumResults() > 0) // the builder has created the terminator otherwise
      scf::YieldOp::create(b, from.getLoc(), valuesOf(from.getBody()->getTerminator()->getOperands()));
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
  llvm::DenseMap<Value, Value> firstOf; ///< first of the numbers that replace a block number
  int64_t apart = 1;                    ///< distance of these numbers
  bool shares = false;                  ///< the current loop reads something once for all blocks
};

/// Returns the offset of a load without the loop's index, if the loop reads adjacent elements
/// there. Returns null otherwise.
Value baseOf(LoadOp load, scf::ForOp loop) {
  auto sum = load.getOffset().getDefiningOp<arith::AddIOp>();
  if (!sum || load->getBlock() != loop.getBody())
    return {};
  Value index = loop.getInductionVar();
  Value base = sum.getLhs() == index ? sum.getRhs() : sum.getRhs() == index ? sum.getLhs() : Value();
  return base && loop.isDefinedOutsideOfLoop(base) ? base : Value();
}

/// Strip-mines a loop by kRun and reads the elements that are adjacent along it by runs.
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
  auto index = [&](int64_t value) -> Value { return arith::ConstantIndexOp::create(b, loc, value); };
  Value zero = index(0), one = index(1), run = index(kRun);
  auto outer = scf::ForOp::create(b, loc, zero, index(*most / kRun), one, loop.getInits());
  b.setInsertionPointToStart(outer.getBody());
  Value first = arith::MulIOp::create(b, loc, outer.getInductionVar(), run);
  SmallVector<Value> buffers;
  for (auto [load, base] : loads) {
    Value buffer = memref::AllocaOp::create(b, load.getLoc(), MemRefType::get({kRun}, load.getResult().getType()));
    Value place = arith::AddIOp::create(b, load.getLoc(), base, first);
    LoadRunOp::create(b, load.getLoc(), load.getArray(), place, one, run, buffer, ValueRange(), IntegerAttr(),
                      UnitAttr());
    buffers.push_back(buffer);
  }
  auto inner = scf::ForOp::create(b, loc, zero, run, one, outer.getRegionIterArgs());
  if (loop.getNumResults() > 0) {
    b.setInsertionPointAfter(inner);
    scf::YieldOp::create(b, loc, inner.getResults());
  }
  b.setInsertionPointToStart(inner.getBody());
  IRMapping map;
  map.map(loop.getInductionVar(), arith::AddIOp::create(b, loc, first, inner.getInductionVar()).getResult());
  map.map(loop.getRegionIterArgs(), inner.getRegionIterArgs());
  for (auto [load, buffer] : llvm::zip_equal(llvm::make_first_range(loads), buffers)) {
    LoadOp own = load;
    map.map(own.getResult(), memref::LoadOp::create(b, own.getLoc(), buffer, inner.getInductionVar()).getResult());
  }
  for (auto [old, next, last] :
       llvm::zip_equal(loop.getRegionIterArgs(), outer.getRegionIterArgs(), inner.getRegionIterArgs())) {
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

void eraseDead(KernelOp kernel) {
  SmallVector<Operation *> list;
  kernel.walk([&](Operation *op) { list.push_back(op); });
  for (Operation *op : llvm::reverse(list)) // users come later
    if (op->getNumRegions() == 0 && isOpTriviallyDead(op))
      op->erase();
}

/// Replaces a kernel by one whose blocks do the work of several. Keeps the kernel if no loop would
/// read anything once for all blocks.
void joinBlocks(KernelOp kernel) {
  const SymExpr &blocks = kernel.getBlocks();
  SymExpr fewer = SymExpr::floorDiv(blocks, SymExpr(kBlocks));
  if (!isMultipleOf(blocks, kBlocks) || blocks.getConstant() || !isIndependent(kernel))
    return;
  OpBuilder b(kernel);
  auto made = KernelOp::create(b, kernel.getLoc(), kernel.getSymName(), fewer, kernel.getThreads());
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
