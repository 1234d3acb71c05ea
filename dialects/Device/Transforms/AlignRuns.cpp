//===- AlignRuns.cpp - mark aligned runs for wide accesses ----------------===//
//
// A run is read by wide accesses if its first element is aligned, and else element by element.
// Without this pass a thread tests the alignment, and the kernel contains the element-by-element
// code of every run, which a device fetches before it branches around it. Arrays of the workspace
// are aligned, and an offset is often a multiple of the access for all sizes. Inputs and outputs
// with tiles are aligned too, because hosts launch nothing if the copy engine cannot take them.
//
//===----------------------------------------------------------------------===//
#include "dialects/Device/IR/LayoutMaps.h"
#include "dialects/Device/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace moa::device {
#define GEN_PASS_DEF_DEVICEALIGNRUNS
#include "dialects/Device/Transforms/DevicePasses.h.inc"

namespace {
/// The largest divisor that a run needs.
constexpr int64_t kMost = 64;

/// Returns the largest power of two, up to kMost, that divides a number.
int64_t powerOf(int64_t number) { return number == 0 ? kMost : std::min(kMost, number & -number); }

/// Returns a power of two that divides an expression for all values of its symbols.
int64_t powerOf(const SymExpr &expr) {
  int64_t power = kMost;
  for (const auto &[monomial, coefficient] : expr.getTerms())
    power = std::min(power, powerOf(coefficient));
  return power;
}

/// Facts that hosts check about strides of arrays with tiles: the last axis has stride 1, the other
/// strides are multiples of 16 bytes.
class Strides {
public:
  explicit Strides(ProgramOp program) {
    SmallVector<StringRef> names = program.getAllNames();
    for (BlockArgument array : program.getBody().getArguments()) {
      auto type = cast<ArrayType>(array.getType());
      int64_t last = static_cast<int64_t>(type.getRank()) - 1;
      auto size = last < 0 ? std::nullopt : type.getExtent(last).getConstant();
      // An axis of one index has no stride.
      if (!program.hasTiles(array) || !size || *size < 2)
        continue;
      for (int64_t axis = 0; axis <= last; ++axis) {
        std::string name = (names[array.getArgNumber()] + ".s" + Twine(axis)).str();
        int64_t unit = 16 / std::max<int64_t>(type.getElementType().getIntOrFloatBitWidth() / 8, 1);
        known[name] = axis == last ? SymExpr(1) : SymExpr(unit) * SymExpr::symbol(name);
      }
    }
  }
  /// Replaces strides in an expression by the multiples that they are known to be.
  SymExpr over(const SymExpr &expr) const {
    return expr.substitute([&](StringRef name) -> std::optional<SymExpr> {
      auto found = known.find(name);
      return found == known.end() ? std::nullopt : std::optional(found->second);
    });
  }
  bool areKnown() const { return !known.empty(); }

private:
  llvm::StringMap<SymExpr> known;
};

class Divisors {
public:
  explicit Divisors(const Strides &strides) : strides(strides) {}
  /// Returns a power of two that divides an index; 1 if nothing is known.
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

  /// Divisor of x & y: the low bits that one operand lacks are 0. The result is 0 if a constant
  /// mask has only bits that the other operand lacks.
  int64_t ofBits(Value x, Value y) {
    APInt mask;
    if (matchPattern(x, m_ConstantInt(&mask)))
      std::swap(x, y);
    int64_t power = of(x);
    if (matchPattern(y, m_ConstantInt(&mask)) && !mask.isNegative() && mask.ult(power))
      return kMost;
    return std::max(power, of(y));
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
        // A truncation keeps the low bits, so it keeps the divisor (up to kMost).
        .Case<arith::AddIOp, arith::SubIOp, arith::MinSIOp, arith::MaxSIOp, arith::RemUIOp, arith::RemSIOp,
              arith::IndexCastOp, arith::ExtUIOp, arith::ExtSIOp, arith::TruncIOp>(
            [&](auto) { return least(op->getOperands()); })
        .Case<arith::AndIOp>([&](auto both) { return ofBits(both.getLhs(), both.getRhs()); })
        // A division by a power of two divides the divisor by it.
        .Case<arith::DivUIOp, arith::DivSIOp>([&](auto quotient) {
          APInt divisor;
          bool isKnown = matchPattern(quotient.getRhs(), m_ConstantInt(&divisor)) && divisor.isPowerOf2();
          return isKnown ? std::max<int64_t>(of(quotient.getLhs()) / divisor.getSExtValue(), 1) : 1;
        })
        .Case<arith::SelectOp>([&](auto select) { return least({select.getTrueValue(), select.getFalseValue()}); })
        .Case<SymbolOp>([&](auto symbol) { return powerOf(strides.over(symbol.getExpr())); })
        .Case<KeptOp>([&](auto kept) { return of(kept.getOperand()); })
        .Default(int64_t(1));
  }

  const Strides &strides;
  llvm::DenseMap<Value, int64_t> known;
};

/// Removes factors that are strides known to be 1.
void dropOnes(ProgramOp program, const Strides &strides) {
  SmallVector<SymbolOp> ones;
  program.walk([&](SymbolOp symbol) {
    const SymExpr &expr = symbol.getExpr();
    if (!expr.getConstant() && strides.over(expr).getConstant() == 1)
      ones.push_back(symbol);
  });
  for (SymbolOp symbol : ones) {
    llvm::SmallSetVector<Operation *, 8> users(symbol->getUsers().begin(), symbol->getUsers().end());
    for (Operation *user : users)
      if (auto product = dyn_cast<arith::MulIOp>(user)) {
        product.replaceAllUsesWith(product.getLhs() == symbol ? product.getRhs() : product.getLhs());
        product.erase();
      }
    OpBuilder b(symbol);
    symbol.replaceAllUsesWith(arith::ConstantIndexOp::create(b, symbol.getLoc(), 1).getResult());
    symbol.erase();
  }
}

struct DeviceAlignRuns final : impl::DeviceAlignRunsBase<DeviceAlignRuns> {
  using Base::Base;

  void runOnOperation() override {
    getOperation()->walk([&](ProgramOp program) {
      Strides strides(program);
      if (strides.areKnown())
        dropOnes(program, strides);
      Divisors divisors(strides);
      auto align = [&](auto run) {
        if ((program.isWorkspace(run.getArray()) || program.hasTiles(run.getArray())) &&
            matchPattern(run.getStride(), m_One()) &&
            divisors.of(run.getOffset()) % countAligned(cast<MemRefType>(run.getBuffer().getType())) == 0)
          run.setAligned(true);
      };
      program.walk([&](Operation *op) {
        if (auto load = dyn_cast<LoadRunOp>(op)) // steps are multiples of one access (C7)
          align(load);
        else if (auto store = dyn_cast<StoreRunOp>(op))
          align(store);
      });
    });
  }
};
} // namespace
} // namespace moa::device
