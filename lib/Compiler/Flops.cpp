//===- Flops.cpp - floating-point operations of a run ---------------------===//
//
// Counts the numerator of a GFLOP/s figure: a multiplication and an addition for every present term
// of every sum of products. A sum of products counts once for each combination of the indices it
// depends on, even if the loops recompute it. The figure is thus useful work per time.
//
// Terms outside the intervals of the lifted level do not count. A mask that bounds no interval
// counts as if nothing were masked out. Only the baseline nests count, not mixed-precision or
// low-rank variants, nor the nests that decide between them. A kernel without a sum of products
// counts one operation per term of every reduction.
//
//===----------------------------------------------------------------------===//

#include "dialects/ONF/IR/ONF.h"
#include "lib/Accuracy/Passes.h"
#include "lib/Analysis/Passes.h"
#include "lib/Analysis/Recomputation.h"
#include "lib/Compiler/CompilationImpl.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace moa {

namespace {
class FlopCounter {
public:
  FlopCounter(onf::KernelOp kernel, const std::map<std::string, int64_t> &symbols, const std::vector<Scalar> &scalars)
      : kernel(kernel), symbols(symbols) {
    unsigned scalar = 0;
    for (unsigned k = 0; k < kernel.getArgNames().size(); ++k) {
      BlockArgument argument = kernel.getBody().getArgument(k);
      if (cast<ArrayType>(argument.getType()).getRank() == 0 && scalar < scalars.size())
        values[argument] = scalars[scalar++].asInteger();
    }
    findWritten();
  }

  double count() {
    double products = countNests();
    if (products > 0)
      return products;
    productsOnly = false;
    return countNests();
  }

private:
  /// Finds the baseline nests that results need: no mixed-precision variants, and no nests that
  /// only decisions need.
  void findWritten() {
    auto decisions = kernel->getAttrOfType<ArrayAttr>(kDecisionsAttr);
    unsigned outputs = kernel.getNumOutputs() - (decisions ? decisions.size() : 0);
    llvm::SetVector<Value> needed;
    for (unsigned k = 0; k < outputs; ++k)
      needed.insert(kernel.getBody().getArgument(kernel.getNumInputs() + k));
    // Nests read arrays that earlier nests store.
    for (Operation &op : llvm::reverse(kernel.getBody().front())) {
      auto nest = dyn_cast<onf::ForOp>(op);
      if (!nest || (nest.getChoices() && nest.getChoice() != 0))
        continue;
      bool isNeeded = nest.walk([&](onf::StoreOp store) {
                            return needed.contains(store.getArray()) ? WalkResult::interrupt() : WalkResult::advance();
                          })
                          .wasInterrupted();
      if (!isNeeded)
        continue;
      nests.push_back(nest);
      nest.walk([&](onf::LoadOp load) { needed.insert(load.getArray()); });
    }
  }

  double countNests() {
    std::map<std::string, double> sums;
    for (onf::ForOp nest : nests)
      nest.walk([&](onf::AccOp acc) {
        if (productsOnly && !isProduct(acc))
          return;
        double &most = sums[describeTerms(acc)];
        most = std::max(most, countTerms(acc));
      });
    double total = 0;
    for (auto &[identity, terms] : sums)
      total += (productsOnly ? 2 : 1) * terms;
    return total;
  }

  int64_t getExtent(const SymExpr &extent) const { return std::max<int64_t>(extent.evaluate(symbols).value_or(0), 0); }

  static bool isProduct(onf::AccOp acc) {
    if (acc.getMonoid() != Monoid::add)
      return false;
    auto yield = cast<onf::YieldOp>(acc.getValue().front().back());
    return bool(yield.getValues()[0].getDefiningOp<arith::MulFOp>());
  }

  //===--------------------------------------------------------------------===//
  // Present terms
  //===--------------------------------------------------------------------===//

  /// Evaluates an integer of symbols, constants and scalars. Returns nothing if it depends on
  /// anything else.
  std::optional<int64_t> evaluate(Value value) const {
    auto known = values.find(value);
    if (known != values.end())
      return known->second;
    Operation *op = value.getDefiningOp();
    if (!op)
      return std::nullopt;
    APInt constant;
    if (matchPattern(value, m_ConstantInt(&constant)))
      return constant.getSExtValue();
    if (auto extent = dyn_cast<onf::ExtentOp>(op))
      return extent.getExpr().evaluate(symbols);
    if (auto load = dyn_cast<onf::LoadOp>(op))
      return load.getTerms().empty() ? evaluate(load.getArray()) : std::nullopt;
    SmallVector<int64_t> operands;
    for (Value operand : op->getOperands()) {
      std::optional<int64_t> number = evaluate(operand);
      if (!number)
        return std::nullopt;
      operands.push_back(*number);
    }
    return apply(op, operands);
  }

  static std::optional<int64_t> apply(Operation *op, ArrayRef<int64_t> v) {
    using Result = std::optional<int64_t>;
    return llvm::TypeSwitch<Operation *, Result>(op)
        .Case([&](arith::AddIOp) { return v[0] + v[1]; })
        .Case([&](arith::SubIOp) { return v[0] - v[1]; })
        .Case([&](arith::MulIOp) { return v[0] * v[1]; })
        .Case([&](arith::MinSIOp) { return std::min(v[0], v[1]); })
        .Case([&](arith::MaxSIOp) { return std::max(v[0], v[1]); })
        .Case([&](arith::FloorDivSIOp) -> Result {
          if (v[1] == 0)
            return std::nullopt;
          return llvm::divideFloorSigned(v[0], v[1]);
        })
        .Case<arith::IndexCastOp, arith::ExtSIOp>([&](auto) { return v[0]; })
        .Default([](Operation *) { return std::nullopt; });
  }

  /// Counts the present terms of a fold in `nest` over the rows of the nest's last axis. Returns
  /// nothing if they are unknown.
  std::optional<double> countPieces(onf::ForOp nest, onf::FoldOp fold) const {
    SmallVector<int64_t> operands;
    for (Value operand : fold.getBounds())
      if (std::optional<int64_t> value = evaluate(operand))
        operands.push_back(*value);
    if (!fold.getPiecesAttr() || nest.getExtents().empty() || operands.size() != fold.getBounds().size())
      return std::nullopt;
    int64_t extent = getExtent(fold.getExtent());
    int64_t rows = getExtent(getSymExpr(nest.getExtents().getValue().back()));
    double terms = 0;
    for (int64_t row = 0; row < rows; ++row)
      terms += countVisited(fold, row, operands, extent).value_or(extent);
    return terms;
  }

  /// Counts the indices of the pieces over one further axis of the nest, if the bounds of the
  /// pieces depend on that axis. `index` receives the index of the axis.
  std::optional<double> countPieces(onf::ForOp nest, onf::FoldOp fold, BlockArgument &index) {
    SetVector<Operation *> slice;
    BackwardSliceOptions options;
    options.omitBlockArguments = true;
    llvm::SetVector<Value> read(fold.getBounds().begin(), fold.getBounds().end());
    for (Value bound : fold.getBounds())
      (void)getBackwardSlice(bound, &slice, options);
    for (Operation *op : slice)
      read.insert(op->operand_begin(), op->operand_end());
    for (BlockArgument argument : nest.getBody().getArguments().drop_back())
      if (read.contains(argument)) {
        if (index)
          return std::nullopt;
        index = argument;
      }
    if (!index)
      return countPieces(nest, fold);
    double terms = 0;
    int64_t extent = getExtent(getExtentOf(index));
    for (int64_t value = 0; value < extent; ++value) {
      values[index] = value;
      std::optional<double> some = countPieces(nest, fold);
      values.erase(index);
      if (!some)
        return std::nullopt;
      terms += *some;
    }
    return terms;
  }

  /// Counts the terms of a state: the combinations of the indices that it depends on, its own and
  /// those of enclosing loops and folds.
  double countTerms(onf::AccOp acc) {
    llvm::SetVector<BlockArgument> indices = getTermIndices(acc);
    double terms = 1;
    onf::FoldOp outermost;
    for (Operation *op = acc; !isa<onf::ForOp>(op); op = op->getParentOp())
      if (auto fold = dyn_cast<onf::FoldOp>(op))
        outermost = fold;
    auto nest = outermost->getParentOfType<onf::ForOp>();
    BlockArgument key = outermost.getBody().getArgument(0);
    if (!nest.getExtents().empty()) {
      BlockArgument row = nest.getBody().getArguments().back();
      BlockArgument further;
      std::optional<double> present = countPieces(nest, outermost, further);
      if (present && indices.contains(key) && indices.contains(row) && (!further || indices.contains(further))) {
        terms = *present;
        indices.remove(key);
        indices.remove(row);
        if (further)
          indices.remove(further);
      }
    }
    for (BlockArgument index : indices)
      terms *= getExtent(getExtentOf(index));
    return terms;
  }

  onf::KernelOp kernel;
  const std::map<std::string, int64_t> &symbols;
  llvm::DenseMap<Value, int64_t> values;
  SmallVector<onf::ForOp> nests;
  bool productsOnly = true;
};
} // namespace

std::optional<double> Compilation::flops(const std::string &kernel, const std::map<std::string, int64_t> &symbols,
                                         const std::vector<Scalar> &scalars) {
  Operation *op = impl->isOpen() ? impl->getKernelOp(kernel, Level::Lifted) : nullptr;
  if (!op)
    return std::nullopt;
  return FlopCounter(cast<onf::KernelOp>(op), symbols, scalars).count();
}

} // namespace moa
