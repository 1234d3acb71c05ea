//===- Magnitude.cpp - magnitudes of sums, for error bounds ---------------===//
//
// The magnitude of a definition [Def 24] is a definition too. It is added to a copy of the kernel,
// and interpreted like any other.
//
//===----------------------------------------------------------------------===//
#include "lib/Interpreter/Magnitude.h"
#include "dialects/DNF/IR/DNF.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace moa;

namespace {

class MagnitudeBuilder {
public:
  explicit MagnitudeBuilder(dnf::KernelOp kernel) : kernel(kernel), b(kernel.getContext()) {}

  /// Rewrites the output to yield the magnitude of its value.
  void rewrite(dnf::OutputOp output) { rewriteYield(output.getBody(), Part::Context); }

private:
  /// The position of a value: outside the outermost sums, or as a term of one.
  enum class Part { Context, Term };

  bool holdsSum(Value value);
  bool isSumOfTerms(Value value);
  Value magnitude(Value value, Part part);
  Value build(Value value, Part part);
  Value buildSum(dnf::ReduceOp reduce);
  Value buildApply(dnf::ApplyOp apply, Part part);
  dnf::LetOp magnitudeOf(dnf::LetOp let, Part part);
  void rewriteYield(Region &body, Part part);
  Value yieldOf(dnf::ApplyOp apply);
  Value absolute(Value value) { return math::AbsFOp::create(b, value.getLoc(), value).getResult(); }

  dnf::KernelOp kernel;
  OpBuilder b;
  llvm::DenseMap<Value, bool> sums, sumsOfTerms;
  llvm::DenseMap<std::pair<Value, int>, Value> magnitudes;
};

} // namespace

static bool isSum(dnf::ReduceOp reduce) {
  return reduce.getMonoid() == Monoid::add && isa<FloatType>(reduce.getResult().getType());
}

Value MagnitudeBuilder::yieldOf(dnf::ApplyOp apply) {
  auto let = kernel.lookupSymbol<dnf::LetOp>(apply.getLet());
  return cast<dnf::YieldOp>(let.getBody().front().getTerminator()).getValue();
}

/// Returns true if a value is linear in a sum (a reduction or an addition). It is a sum itself, or
/// such a value is a factor, a numerator or a selected operand in it.
bool MagnitudeBuilder::holdsSum(Value value) {
  if (auto known = sums.find(value); known != sums.end())
    return known->second;
  Operation *op = value.getDefiningOp();
  auto any = [&](ValueRange operands) {
    return llvm::any_of(operands, [&](Value operand) { return holdsSum(operand); });
  };
  bool result =
      op && llvm::TypeSwitch<Operation *, bool>(op)
                .Case([](dnf::ReduceOp reduce) { return isSum(reduce); })
                .Case<arith::AddFOp, arith::SubFOp>([](Operation *) { return true; })
                .Case<arith::MulFOp, arith::NegFOp, arith::ExtFOp, arith::TruncFOp>(
                    [&](Operation *linear) { return any(linear->getOperands()); })
                .Case([&](arith::DivFOp quotient) { return holdsSum(quotient.getLhs()); })
                .Case([&](arith::SelectOp select) {
                  return isa<FloatType>(select.getType()) && any({select.getTrueValue(), select.getFalseValue()});
                })
                .Case([&](dnf::ApplyOp apply) { return holdsSum(yieldOf(apply)); })
                .Default([](Operation *) { return false; });
  return sums[value] = result;
}

/// Returns true if a term is itself a sum, or selects one: then each of its summands is a term.
bool MagnitudeBuilder::isSumOfTerms(Value value) {
  if (auto known = sumsOfTerms.find(value); known != sumsOfTerms.end())
    return known->second;
  Operation *op = value.getDefiningOp();
  bool result = op && llvm::TypeSwitch<Operation *, bool>(op)
                          .Case([](dnf::ReduceOp reduce) { return isSum(reduce); })
                          .Case<arith::AddFOp, arith::SubFOp>([](Operation *) { return true; })
                          .Case<arith::NegFOp, arith::ExtFOp, arith::TruncFOp>(
                              [&](Operation *cast) { return isSumOfTerms(cast->getOperand(0)); })
                          .Case([&](arith::SelectOp select) {
                            return isa<FloatType>(select.getType()) &&
                                   (isSumOfTerms(select.getTrueValue()) || isSumOfTerms(select.getFalseValue()));
                          })
                          .Case([&](dnf::ApplyOp apply) { return isSumOfTerms(yieldOf(apply)); })
                          .Default([](Operation *) { return false; });
  return sumsOfTerms[value] = result;
}

Value MagnitudeBuilder::magnitude(Value value, Part part) {
  auto key = std::make_pair(value, int(part));
  if (Value known = magnitudes.lookup(key))
    return known;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfterValue(value);
  bool isWhole = part == Part::Context ? !holdsSum(value) : !isSumOfTerms(value);
  Value result = isWhole ? absolute(value) : build(value, part);
  magnitudes[key] = result;
  return result;
}

/// Builds the magnitude of a value that is a sum or contains one.
Value MagnitudeBuilder::build(Value value, Part part) {
  Operation *op = value.getDefiningOp();
  Location loc = value.getLoc();
  if (auto reduce = dyn_cast<dnf::ReduceOp>(op))
    return buildSum(reduce);
  if (auto apply = dyn_cast<dnf::ApplyOp>(op))
    return buildApply(apply, part);
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    Value first = magnitude(select.getTrueValue(), part);
    Value second = magnitude(select.getFalseValue(), part);
    return arith::SelectOp::create(b, loc, select.getCondition(), first, second);
  }
  Value first = magnitude(op->getOperand(0), part);
  if (isa<arith::NegFOp>(op))
    return first;
  if (isa<arith::ExtFOp, arith::TruncFOp>(op)) {
    IRMapping operand;
    operand.map(op->getOperand(0), first);
    return b.clone(*op, operand)->getResult(0);
  }
  if (isa<arith::DivFOp>(op))
    return arith::DivFOp::create(b, loc, first, absolute(op->getOperand(1)));
  Value second = magnitude(op->getOperand(1), part);
  if (isa<arith::MulFOp>(op))
    return arith::MulFOp::create(b, loc, first, second);
  return arith::AddFOp::create(b, loc, first, second);
}

/// Builds the magnitude of Σ t: the sum of the magnitudes of the terms over the same range.
Value MagnitudeBuilder::buildSum(dnf::ReduceOp reduce) {
  auto copy = cast<dnf::ReduceOp>(b.clone(*reduce));
  rewriteYield(copy.getBody(), Part::Term);
  return copy.getResult();
}

Value MagnitudeBuilder::buildApply(dnf::ApplyOp apply, Part part) {
  dnf::LetOp let = magnitudeOf(kernel.lookupSymbol<dnf::LetOp>(apply.getLet()), part);
  auto copy = cast<dnf::ApplyOp>(b.clone(*apply));
  copy.setLet(let.getSymName());
  return copy.getResult();
}

/// Returns the copy of `let` that yields the magnitude of its value.
dnf::LetOp MagnitudeBuilder::magnitudeOf(dnf::LetOp let, Part part) {
  std::string name = (let.getSymName() + (part == Part::Term ? ".terms" : ".magnitude")).str();
  if (auto known = kernel.lookupSymbol<dnf::LetOp>(name))
    return known;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfter(let);
  auto copy = cast<dnf::LetOp>(b.clone(*let));
  copy.setSymName(name);
  rewriteYield(copy.getBody(), part);
  return copy;
}

void MagnitudeBuilder::rewriteYield(Region &body, Part part) {
  auto yield = cast<dnf::YieldOp>(body.front().getTerminator());
  yield.getValueMutable().assign(magnitude(yield.getValue(), part));
}

llvm::Expected<std::vector<double>> moa::interpretMagnitudes(Operation *op, const KernelInputs &inputs, unsigned output,
                                                             ArrayRef<std::vector<int64_t>> indices) {
  auto kernel = cast<dnf::KernelOp>(op);
  // Clone the module: the kernel may use user-defined monoids in it.
  OwningOpRef<ModuleOp> module = kernel->getParentOfType<ModuleOp>().clone();
  auto copy = module->lookupSymbol<dnf::KernelOp>(kernel.getSymName());
  MagnitudeBuilder builder(copy);
  for (auto definition : copy.getBody().getOps<dnf::OutputOp>())
    if (definition.getResult() == output)
      builder.rewrite(definition);
  return interpretElements(copy, inputs, output, indices);
}
