//===- FunctionsToLLVM.cpp - scalar code and control flow in llvm ---------===//
//
// The functions of convert-device-to-nvvm are long and simple: an op per register, with types that
// LLVM has. MLIR's conversions to the llvm dialect take five passes of patterns, which are slower
// than all earlier passes. One walk suffices: an op of arith or math becomes one op of llvm, and a
// branch or a loop becomes its blocks.
//
//===----------------------------------------------------------------------===//
#include "lib/Conversion/DeviceToNVVM/DeviceToNVVM.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/BasicPtxBuilderInterface.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace moa {

#define GEN_PASS_DEF_CONVERTGPUFUNCTIONSTOLLVM
#include "lib/Conversion/ConversionPasses.h.inc"

namespace {

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

using Rewrite = Operation *(*)(OpBuilder &, Operation *);
using Table = llvm::DenseMap<TypeID, Rewrite>;

/// Makes the op of llvm with the same operands and results. Flags are dropped, which is safe as
/// they only permit more: the device level rounds every operation once.
template <typename To> Operation *same(OpBuilder &b, Operation *op) {
  return To::create(b, op->getLoc(), op->getResultTypes(), op->getOperands());
}

template <typename From, typename To> void add(Table &table) { table[TypeID::get<From>()] = same<To>; }

/// The predicates of arith have the same numbers in llvm.
template <typename From, typename To, typename Predicate> void addComparison(Table &table) {
  table[TypeID::get<From>()] = [](OpBuilder &b, Operation *op) -> Operation * {
    auto comparison = cast<From>(op);
    return To::create(b, op->getLoc(), op->getResult(0).getType(), static_cast<Predicate>(comparison.getPredicate()),
                      comparison.getLhs(), comparison.getRhs());
  };
}

Table makeTable() {
  Table table;
  add<arith::AddIOp, LLVM::AddOp>(table);
  add<arith::SubIOp, LLVM::SubOp>(table);
  add<arith::MulIOp, LLVM::MulOp>(table);
  add<arith::DivSIOp, LLVM::SDivOp>(table);
  add<arith::DivUIOp, LLVM::UDivOp>(table);
  add<arith::RemSIOp, LLVM::SRemOp>(table);
  add<arith::RemUIOp, LLVM::URemOp>(table);
  add<arith::AndIOp, LLVM::AndOp>(table);
  add<arith::OrIOp, LLVM::OrOp>(table);
  add<arith::XOrIOp, LLVM::XOrOp>(table);
  add<arith::ShLIOp, LLVM::ShlOp>(table);
  add<arith::ShRSIOp, LLVM::AShrOp>(table);
  add<arith::ShRUIOp, LLVM::LShrOp>(table);
  add<arith::MaxSIOp, LLVM::SMaxOp>(table);
  add<arith::MinSIOp, LLVM::SMinOp>(table);
  add<arith::MaxUIOp, LLVM::UMaxOp>(table);
  add<arith::MinUIOp, LLVM::UMinOp>(table);
  add<arith::AddFOp, LLVM::FAddOp>(table);
  add<arith::SubFOp, LLVM::FSubOp>(table);
  add<arith::MulFOp, LLVM::FMulOp>(table);
  add<arith::DivFOp, LLVM::FDivOp>(table);
  add<arith::NegFOp, LLVM::FNegOp>(table);
  add<arith::MaximumFOp, LLVM::MaximumOp>(table);
  add<arith::MinimumFOp, LLVM::MinimumOp>(table);
  add<arith::MaxNumFOp, LLVM::MaxNumOp>(table);
  add<arith::MinNumFOp, LLVM::MinNumOp>(table);
  add<arith::ExtSIOp, LLVM::SExtOp>(table);
  add<arith::ExtUIOp, LLVM::ZExtOp>(table);
  add<arith::TruncIOp, LLVM::TruncOp>(table);
  add<arith::ExtFOp, LLVM::FPExtOp>(table);
  add<arith::SIToFPOp, LLVM::SIToFPOp>(table);
  add<arith::UIToFPOp, LLVM::UIToFPOp>(table);
  add<arith::FPToSIOp, LLVM::FPToSIOp>(table);
  add<arith::FPToUIOp, LLVM::FPToUIOp>(table);
  add<arith::BitcastOp, LLVM::BitcastOp>(table);
  add<arith::SelectOp, LLVM::SelectOp>(table);
  add<math::AbsFOp, LLVM::FAbsOp>(table);
  add<math::CeilOp, LLVM::FCeilOp>(table);
  add<math::CopySignOp, LLVM::CopySignOp>(table);
  add<math::FloorOp, LLVM::FFloorOp>(table);
  add<math::FmaOp, LLVM::FMAOp>(table);
  add<math::RoundEvenOp, LLVM::RoundEvenOp>(table);
  add<math::SqrtOp, LLVM::SqrtOp>(table);
  add<math::TruncOp, LLVM::FTruncOp>(table);
  addComparison<arith::CmpIOp, LLVM::ICmpOp, LLVM::ICmpPredicate>(table);
  addComparison<arith::CmpFOp, LLVM::FCmpOp, LLVM::FCmpPredicate>(table);
  table[TypeID::get<arith::ConstantOp>()] = [](OpBuilder &b, Operation *op) -> Operation * {
    return LLVM::ConstantOp::create(b, op->getLoc(), op->getResult(0).getType(),
                                    cast<arith::ConstantOp>(op).getValue());
  };
  table[TypeID::get<arith::TruncFOp>()] = [](OpBuilder &b, Operation *op) -> Operation * {
    if (cast<arith::TruncFOp>(op).getRoundingmode())
      return nullptr;
    return same<LLVM::FPTruncOp>(b, op);
  };
  return table;
}

bool isScalar(Type type) { return type.isIntOrFloat(); }

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

/// Ends the block of a region with a jump that passes `first` and then the values that it yields.
void jump(OpBuilder &b, Block &from, Block *to, ValueRange first = {}) {
  Operation *yield = from.getTerminator();
  SmallVector<Value> values(first);
  llvm::append_range(values, yield->getOperands());
  b.setInsertionPoint(yield);
  LLVM::BrOp::create(b, yield->getLoc(), values, to);
  yield->erase();
}

/// Replaces the results of an op by `values` of its blocks, and erases the op.
void replace(Operation *op, ValueRange values) {
  op->replaceAllUsesWith(values);
  op->erase();
}

/// Moves the only block of a region before another block.
Block *move(Region &region, Block *before) {
  Block *block = &region.front();
  block->moveBefore(before);
  return block;
}

/// Splits the block after an op. The new block gets an argument for each result.
std::pair<Block *, SmallVector<Value>> splitAfter(Operation *op) {
  Block *after = op->getBlock()->splitBlock(std::next(op->getIterator()));
  SmallVector<Value> results;
  for (Type type : op->getResultTypes())
    results.push_back(after->addArgument(type, op->getLoc()));
  return {after, std::move(results)};
}

void lower(OpBuilder &b, scf::IfOp op) {
  Location loc = op.getLoc();
  auto [after, results] = splitAfter(op);
  Block *yes = move(op.getThenRegion(), after);
  jump(b, *yes, after);
  Block *no = after;
  if (!op.getElseRegion().empty()) {
    no = move(op.getElseRegion(), after);
    jump(b, *no, after);
  }
  b.setInsertionPoint(op);
  LLVM::CondBrOp::create(b, loc, op.getCondition(), yes, no);
  replace(op, results);
}

/// The condition gets its own block, whose arguments are the index and the state.
void lower(OpBuilder &b, scf::ForOp op) {
  Location loc = op.getLoc();
  Block *from = op->getBlock();
  Block *after = from->splitBlock(std::next(op->getIterator()));
  Block *body = &op.getRegion().front();
  auto *head = new Block();
  head->insertBefore(after);
  for (BlockArgument argument : body->getArguments())
    argument.replaceAllUsesWith(head->addArgument(argument.getType(), argument.getLoc()));
  body->eraseArguments(0, body->getNumArguments());
  body->moveBefore(after);
  Value index = head->getArgument(0);
  b.setInsertionPoint(body->getTerminator());
  Value next = LLVM::AddOp::create(b, loc, index, op.getStep());
  jump(b, *body, head, next);
  b.setInsertionPointToEnd(head);
  auto order = op.getUnsignedCmp() ? LLVM::ICmpPredicate::ult : LLVM::ICmpPredicate::slt;
  Value continues = LLVM::ICmpOp::create(b, loc, order, index, op.getUpperBound());
  auto branch = LLVM::CondBrOp::create(b, loc, continues, body, after);
  if (auto annotation = op->getAttrOfType<LLVM::LoopAnnotationAttr>("loop_annotation"))
    branch.setLoopAnnotationAttr(annotation);
  b.setInsertionPoint(op);
  SmallVector<Value> first{op.getLowerBound()};
  llvm::append_range(first, op.getInitArgs());
  LLVM::BrOp::create(b, loc, first, head);
  replace(op, head->getArguments().drop_front());
}

/// The condition's block passes the same values to the body and to the block after the loop.
void lower(OpBuilder &b, scf::WhileOp op) {
  Location loc = op.getLoc();
  auto [after, results] = splitAfter(op);
  Block *head = move(op.getBefore(), after), *body = move(op.getAfter(), after);
  jump(b, *body, head);
  auto condition = cast<scf::ConditionOp>(head->getTerminator());
  b.setInsertionPoint(condition);
  LLVM::CondBrOp::create(b, loc, condition.getCondition(), body, condition.getArgs(), after, condition.getArgs());
  condition.erase();
  b.setInsertionPoint(op);
  LLVM::BrOp::create(b, loc, op.getInits(), head);
  replace(op, results);
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

struct ConvertGPUFunctionsToLLVM final : impl::ConvertGPUFunctionsToLLVMBase<ConvertGPUFunctionsToLLVM> {
  void runOnOperation() final {
    static const Table table = makeTable();
    OpBuilder b(&getContext());
    SmallVector<Operation *> structures;
    getOperation().walk([&](Operation *op) {
      if (isa<scf::IfOp, scf::ForOp, scf::WhileOp>(op))
        return structures.push_back(op);
      auto found = table.find(op->getName().getTypeID());
      if (found == table.end() || !llvm::all_of(op->getOperandTypes(), isScalar) ||
          !llvm::all_of(op->getResultTypes(), isScalar))
        return;
      b.setInsertionPoint(op);
      if (Operation *made = found->second(b, op)) {
        op->replaceAllUsesWith(made);
        op->erase();
      }
    });
    // Lower outer ops first, while their regions have one block each. From the last op backwards,
    // the code after an op moves only once.
    for (Operation *op : llvm::reverse(structures)) {
      if (auto branch = dyn_cast<scf::IfOp>(op))
        lower(b, branch);
      else if (auto loop = dyn_cast<scf::WhileOp>(op))
        lower(b, loop);
      else
        lower(b, cast<scf::ForOp>(op));
    }
    if (failed(convertRest()))
      signalPassFailure();
  }

  /// Runs MLIR's conversions for operations without a single op in llvm.
  LogicalResult convertRest() {
    auto isLeft = [](Operation *op) {
      return isa<NVVM::BasicPtxBuilderInterface>(op) ||
             isa_and_nonnull<arith::ArithDialect, math::MathDialect, scf::SCFDialect>(op->getDialect());
    };
    WalkResult found = getOperation().walk(
        [&](Operation *op) { return isLeft(op) ? WalkResult::interrupt() : WalkResult::advance(); });
    if (!found.wasInterrupted())
      return success();
    OpPassManager manager(ModuleOp::getOperationName());
    manager.addPass(createSCFToControlFlowPass());
    manager.addPass(createConvertMathToLLVMPass());
    manager.addPass(createArithToLLVMConversionPass());
    manager.addPass(createConvertNVVMToLLVMPass());
    manager.addPass(createConvertControlFlowToLLVMPass());
    manager.addPass(createReconcileUnrealizedCastsPass());
    return runPipeline(manager, getOperation());
  }
};

} // namespace

std::unique_ptr<Pass> createConvertGPUFunctionsToLLVMPass() { return std::make_unique<ConvertGPUFunctionsToLLVM>(); }

} // namespace moa
