//===- AlignRuns.cpp - runs that begin where wide accesses may -------------===//
//
// A run is read by wide accesses if its first element is aligned to them, which a thread asks, and else element by element:
// code that stands in a kernel for every run, and that a device fetches before it has seen that it jumps over it. Arrays of
// the workspace are aligned, and often an offset is a multiple of the access whatever sizes are.
//
//===----------------------------------------------------------------------===//
#include "dialects/Device/IR/LayoutMaps.h"
#include "dialects/Device/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace moa::device {
#define GEN_PASS_DEF_DEVICEALIGNRUNS
#include "dialects/Device/Transforms/DevicePasses.h.inc"

namespace {
/// No run asks for more.
constexpr int64_t kMost = 64;

/// The largest power of two, up to kMost, that divides a number.
int64_t powerOf(int64_t number) {
  return number == 0 ? kMost : std::min(kMost, number & -number);
}

/// The same of what an expression is for all values of its symbols.
int64_t powerOf(const SymExpr &expr) {
  int64_t power = kMost;
  for (const auto &[monomial, coefficient] : expr.getTerms())
    power = std::min(power, powerOf(coefficient));
  return power;
}

class Divisors {
public:
  /// A power of two that divides an index; 1 where nothing is known.
  int64_t of(Value value) {
    if (auto found = known.find(value); found != known.end())
      return found->second;
    known[value] = 1;
    return known[value] = find(value);
  }

private:
  int64_t least(ValueRange values) {
    int64_t power = kMost;
    for (Value value : values)
      power = std::min(power, of(value));
    return power;
  }

  int64_t find(Value value) {
    APInt constant;
    if (matchPattern(value, m_ConstantInt(&constant)))
      return powerOf(constant.getSExtValue());
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
      bool isIndex = loop && argument == loop.getInductionVar();
      return isIndex ? std::min(of(loop.getLowerBound()), of(loop.getStep())) : 1;
    }
    Operation *op = value.getDefiningOp();
    return llvm::TypeSwitch<Operation *, int64_t>(op)
        .Case<arith::MulIOp>([&](auto product) { return std::min(kMost, of(product.getLhs()) * of(product.getRhs())); })
        // Of a number of fewer bits the low ones are left, which tell.
        .Case<arith::AddIOp, arith::SubIOp, arith::MinSIOp, arith::MaxSIOp, arith::RemUIOp, arith::RemSIOp, arith::IndexCastOp,
              arith::ExtUIOp, arith::ExtSIOp, arith::TruncIOp>([&](auto) { return least(op->getOperands()); })
        .Case<arith::SelectOp>([&](auto select) { return least({select.getTrueValue(), select.getFalseValue()}); })
        .Case<SymbolOp>([&](auto symbol) { return powerOf(*SymExpr::parse(symbol.getExpr())); })
        .Case<KeptOp>([&](auto kept) { return of(kept.getOperand()); })
        .Default(int64_t(1));
  }

  llvm::DenseMap<Value, int64_t> known;
};

struct DeviceAlignRuns final : impl::DeviceAlignRunsBase<DeviceAlignRuns> {
  using Base::Base;

  void runOnOperation() override {
    getOperation()->walk([&](ProgramOp program) {
      Divisors divisors;
      auto align = [&](auto run) {
        if (program.isWorkspace(run.getArray()) && matchPattern(run.getStride(), m_One()) &&
            divisors.of(run.getOffset()) % countAligned(cast<MemRefType>(run.getBuffer().getType())) == 0)
          run.setAligned(true);
      };
      program.walk([&](Operation *op) {
        if (auto load = dyn_cast<LoadRunOp>(op); load && !load.getStep())
          align(load);
        else if (auto store = dyn_cast<StoreRunOp>(op))
          align(store);
      });
    });
  }
};
} // namespace
} // namespace moa::device
