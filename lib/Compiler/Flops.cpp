//===- Flops.cpp - floating-point operations of a run ---------------------===//
//
// What a GFLOP/s figure is the numerator of: two operations, a multiplication
// and an addition, for every present term of every sum of products. Terms that
// the intervals of the lifted level exclude do not count; a mask that bounds no
// interval counts as if nothing were absent. A kernel without a sum of products
// counts one operation per term of every reduction.
//
//===----------------------------------------------------------------------===//

#include "dialects/ONF/IR/ONF.h"
#include "lib/Compiler/CompilationImpl.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace moa {

namespace {
class FlopCounter {
public:
  FlopCounter(onf::KernelOp kernel,
              const std::map<std::string, int64_t> &symbols,
              const std::vector<Scalar> &scalars)
      : kernel(kernel), symbols(symbols) {
    unsigned scalar = 0;
    for (unsigned k = 0; k < kernel.getArgNames().size(); ++k) {
      BlockArgument argument = kernel.getBody().getArgument(k);
      if (cast<ArrayType>(argument.getType()).getRank() == 0 &&
          scalar < scalars.size())
        values[argument] = scalars[scalar++].asInteger();
    }
  }

  double count() {
    double products = countNests();
    if (products > 0)
      return products;
    productsOnly = false;
    return countNests();
  }

private:
  double countNests() {
    double total = 0;
    for (onf::ForOp nest : kernel.getBody().getOps<onf::ForOp>())
      for (onf::FoldOp fold : nest.getBody().getOps<onf::FoldOp>())
        total += getTermFlops(fold) * countTerms(nest, fold);
    return total;
  }

  //===--------------------------------------------------------------------===//
  // One term
  //===--------------------------------------------------------------------===//

  int64_t getExtent(StringRef text) const {
    std::optional<SymExpr> expr = SymExpr::parse(text);
    auto value = [&](StringRef name) -> std::optional<int64_t> {
      auto found = symbols.find(name.str());
      return found == symbols.end() ? std::nullopt
                                    : std::optional<int64_t>(found->second);
    };
    std::optional<int64_t> result = expr ? expr->evaluate(value) : std::nullopt;
    return result ? std::max<int64_t>(*result, 0) : 0;
  }

  static bool isProduct(onf::AccOp acc) {
    if (acc.getMonoid() != Monoid::add)
      return false;
    auto yield = cast<onf::YieldOp>(acc.getValue().front().back());
    return bool(yield.getValues()[0].getDefiningOp<arith::MulFOp>());
  }

  /// Operations per index of a fold: of its accs and of the folds inside.
  double getTermFlops(onf::FoldOp fold) const {
    double total = 0;
    for (Operation &op : fold.getBody().front()) {
      if (auto inner = dyn_cast<onf::FoldOp>(op))
        total += getTermFlops(inner) * getExtent(inner.getExtent());
      auto acc = dyn_cast<onf::AccOp>(op);
      if (!acc)
        continue;
      double each = productsOnly ? (isProduct(acc) ? 2 : 0) : 1;
      for (onf::FoldOp inner : acc.getValue().getOps<onf::FoldOp>())
        each += getTermFlops(inner) * getExtent(inner.getExtent());
      for (auto extent : acc.getExtents().getAsValueRange<StringAttr>())
        each *= getExtent(extent);
      total += each;
    }
    return total;
  }

  //===--------------------------------------------------------------------===//
  // Present terms
  //===--------------------------------------------------------------------===//

  /// An integer from symbols, constants and scalars; nothing if it depends on
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
      return getExtentValue(extent.getExpr());
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

  std::optional<int64_t> getExtentValue(StringRef text) const {
    std::optional<SymExpr> expr = SymExpr::parse(text);
    if (!expr)
      return std::nullopt;
    return expr->evaluate([&](StringRef name) -> std::optional<int64_t> {
      auto found = symbols.find(name.str());
      return found == symbols.end() ? std::nullopt
                                    : std::optional<int64_t>(found->second);
    });
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

  /// Value of one side of a piece for the row `row`, or nothing.
  static std::optional<int64_t> bound(AffineMap map, int64_t row,
                                      ArrayRef<int64_t> operands, bool lower) {
    SmallVector<Attribute> inputs;
    Builder builder(map.getContext());
    for (int64_t value : {row, row})
      inputs.push_back(builder.getIndexAttr(value));
    for (int64_t value : operands)
      inputs.push_back(builder.getIndexAttr(value));
    SmallVector<Attribute> results;
    if (failed(map.constantFold(inputs, results)) || results.empty())
      return std::nullopt;
    int64_t best = cast<IntegerAttr>(results[0]).getInt();
    for (Attribute result : ArrayRef(results).drop_front()) {
      int64_t value = cast<IntegerAttr>(result).getInt();
      best = lower ? std::max(best, value) : std::min(best, value);
    }
    return best;
  }

  /// Indices of the fold that one row needs: the union of its pieces.
  int64_t countRow(onf::FoldOp fold, int64_t row, ArrayRef<int64_t> operands,
                   int64_t extent) const {
    SmallVector<std::pair<int64_t, int64_t>> intervals;
    for (auto piece : fold.getPiecesAttr().getAsRange<onf::PieceAttr>()) {
      auto lower = bound(piece.getVisitLower(), row, operands, true);
      auto upper = bound(piece.getVisitUpper(), row, operands, false);
      if (!lower || !upper)
        return extent;
      int64_t begin = std::max<int64_t>(*lower, 0);
      int64_t end = std::min(*upper, extent);
      if (begin < end)
        intervals.push_back({begin, end});
    }
    llvm::sort(intervals);
    int64_t count = 0, reached = 0;
    for (auto [begin, end] : intervals) {
      count += std::max<int64_t>(end - std::max(begin, reached), 0);
      reached = std::max(reached, end);
    }
    return count;
  }

  /// Present terms of a fold over all rows of its nest.
  double countTerms(onf::ForOp nest, onf::FoldOp fold) const {
    double others = 1;
    ArrayAttr extents = nest.getExtents();
    for (auto extent : extents.getAsValueRange<StringAttr>())
      others *= getExtent(extent);
    int64_t extent = getExtent(fold.getExtent());
    SmallVector<int64_t> operands;
    for (Value operand : fold.getBounds())
      if (std::optional<int64_t> value = evaluate(operand))
        operands.push_back(*value);
    if (!fold.getPiecesAttr() || extents.empty() || others == 0 ||
        operands.size() != fold.getBounds().size())
      return others * extent;
    int64_t rows = getExtent(cast<StringAttr>(extents[extents.size() - 1]));
    double terms = 0;
    for (int64_t row = 0; row < rows; ++row)
      terms += countRow(fold, row, operands, extent);
    return others / rows * terms;
  }

  onf::KernelOp kernel;
  const std::map<std::string, int64_t> &symbols;
  llvm::DenseMap<Value, int64_t> values;
  bool productsOnly = true;
};
} // namespace

std::optional<double>
Compilation::flops(const std::string &kernel,
                   const std::map<std::string, int64_t> &symbols,
                   const std::vector<Scalar> &scalars) {
  Operation *op =
      impl->isOpen() ? impl->getKernelOp(kernel, Level::Lifted) : nullptr;
  if (!op)
    return std::nullopt;
  return FlopCounter(cast<onf::KernelOp>(op), symbols, scalars).count();
}

} // namespace moa
