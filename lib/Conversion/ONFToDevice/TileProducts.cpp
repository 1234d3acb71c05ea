//===- TileProducts.cpp - products of two arrays, by tiles ----------------===//
//
// A fold Σ_j x(i, j) · y(j, d) over elements of arrays. If its guard excludes only elements outside
// of both arrays, tiles have zeros there, and no product needs the guard. Otherwise the guard must
// depend on the fold's index alone. It is then evaluated in tiles that it may cut, and clears the
// rows that it excludes.
//
//===----------------------------------------------------------------------===//
#include "lib/Conversion/ONFToDevice/Tiles.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include <numeric>

using namespace mlir;
using namespace moa;
using namespace moa::onf;

/// Terms that are summed without compensation.
static constexpr int64_t kMostTerms = 1024;
/// Columns whose sums fit into a thread's registers.
static constexpr int64_t kMostColumns = 256;
/// Rows of a block.
static constexpr int64_t kRows = 64;

std::optional<SymExpr> moa::getSymbolic(Value value) {
  APInt number;
  if (matchPattern(value, m_ConstantInt(&number)))
    return SymExpr(number.getSExtValue());
  if (auto extent = value.getDefiningOp<onf::ExtentOp>())
    return extent.getExpr();
  return std::nullopt;
}

/// Adds factor · value to an index.
static void add(LinearIndex &to, Value value, const SymExpr &factor) {
  if (auto number = getSymbolic(value)) {
    to.constant = to.constant + *number * factor;
    return;
  }
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op)) {
    add(to, op->getOperand(0), factor);
    return add(to, op->getOperand(1), isa<arith::AddIOp>(op) ? factor : -factor);
  }
  if (isa_and_nonnull<arith::MulIOp>(op))
    for (unsigned side : {0, 1})
      if (auto number = getSymbolic(op->getOperand(side)))
        return add(to, op->getOperand(1 - side), factor * *number);
  to.add(value, factor);
}

/// Returns the index along each axis.
static std::vector<LinearIndex> flattenIndices(LoadOp load) {
  std::vector<LinearIndex> indices(load.getArray().getType().getRank());
  for (auto [axis, index] : llvm::enumerate(indices)) {
    LinearIndex place = load.getIndex(axis);
    index.constant = place.constant;
    for (auto &[term, factor] : place.terms)
      add(index, term, factor);
  }
  return indices;
}

/// Returns how many consecutive rows have the same value, in aligned groups; 0: all.
static int64_t rowsTogether(Value value, Value row) {
  if (value == row)
    return 1;
  Operation *op = value.getDefiningOp();
  if (!op)
    return 0;
  if (op->getNumRegions() != 0)
    return 1;
  APInt divisor;
  if (isa<arith::FloorDivSIOp>(op) && op->getOperand(0) == row &&
      matchPattern(op->getOperand(1), m_ConstantInt(&divisor)))
    return divisor.getSExtValue();
  int64_t rows = 0;
  for (Value operand : op->getOperands())
    rows = std::gcd(rows, rowsTogether(operand, row));
  return rows;
}

bool moa::isSameForRows(Value value, Value row) { return rowsTogether(value, row) % kRows == 0; }

namespace {
class ProductFinder {
public:
  explicit ProductFinder(FoldOp fold) : nest(fold->getParentOfType<ForOp>()) { product.fold = fold; }
  Match<TileProduct> run();

private:
  bool refuse(const Twine &reason) {
    why = reason.str();
    return false;
  }
  bool findState();
  bool findFactors();
  bool place(TileOperand &operand, Value along, Value columns);
  bool placeLeft();
  bool isZeroOutside(const TileOperand &operand, const LinearIndex &index, const SymExpr &end);
  bool isEnd(Value condition);
  bool isOfIndexAlone(Value condition);
  bool checkGuard();

  TileProduct product;
  ForOp nest;
  std::string why;
  Value row, key, column;
};
} // namespace

bool ProductFinder::findState() {
  auto accs = rows::getAccs(product.fold);
  auto length = product.fold.getExtent().getConstant();
  if (nest.getBody().getNumArguments() == 0 || accs.size() != 1 || !length || *length < 1 || *length > kMostTerms)
    return refuse("it has no axes, several states or a range that is not known or long");
  AccOp acc = product.acc = accs[0];
  if (acc.getMonoid() != Monoid::add || !acc.getRefs().empty() || acc.getExtents().size() != 1)
    return refuse("its state is not a sum with one axis");
  auto columns = getSymExpr(acc.getExtents()[0]).getConstant();
  if (!columns || *columns < 8 || *columns % 8 != 0 || *columns > kMostColumns)
    return refuse("the axis of its state is no multiple of 8 up to " + Twine(kMostColumns));
  product.length = *length;
  product.right.columns = *columns;
  row = nest.getBody().getArguments().back();
  key = product.fold.getBody().getArgument(0);
  column = acc.getValue().getArgument(0);
  return true;
}

bool ProductFinder::findFactors() {
  auto times = rows::getYielded(product.acc.getValue()).getDefiningOp<arith::MulFOp>();
  LoadOp x = times && times.getType().isF32() ? rows::getReadElement(times.getLhs()) : LoadOp();
  LoadOp y = x ? rows::getReadElement(times.getRhs()) : LoadOp();
  if (!x || !y)
    return refuse("it sums up no products of elements of arrays");
  rows::Dependence deps;
  if (deps.on(x.getResult(), column))
    std::swap(x, y);
  Type type = x.getResult().getType();
  if (type != y.getResult().getType() || !(type.isBF16() || type.isF16()))
    return refuse("its operands are not both of one type of 16 bits");
  product.left.load = x;
  product.right.load = y;
  for (TileOperand *operand : {&product.left, &product.right}) {
    ArrayType array = operand->load.getArray().getType();
    auto last = array.getRank() ? array.getExtent(array.getRank() - 1).getConstant() : std::nullopt;
    if (!last || *last % 8 != 0)
      return refuse("an operand's last axis is no multiple of 8, which the copy engine needs");
    if (array.getRank() < 2 || array.getRank() > 5)
      return refuse("an operand has too few axes or too many, or is no array with strides");
    operand->subscripts = flattenIndices(operand->load);
  }
  return true;
}

/// Places an operand: its last axis runs along `columns`, one other along `along`. All other terms
/// must be the same for a block.
bool ProductFinder::place(TileOperand &operand, Value along, Value columns) {
  unsigned rank = operand.subscripts.size(), found = 0;
  if (operand.subscripts.back().getValue() != columns)
    return refuse("an operand's last axis is not that of a tile's columns");
  rows::Dependence deps;
  for (auto [axis, subscript] : llvm::enumerate(ArrayRef(operand.subscripts).drop_back()))
    for (auto &[term, factor] : subscript.terms) {
      if (term == along && factor == SymExpr(1)) {
        operand.rowAxis = axis;
        ++found;
        continue;
      }
      if (deps.on(term, key) || deps.on(term, column) || !isSameForRows(term, row))
        return refuse("an operand's address depends on more than its row");
    }
  operand.moving = along;
  return (found == 1 && operand.rowAxis + 1 < rank) || refuse("an operand has no axis of rows");
}

bool ProductFinder::placeLeft() {
  TileOperand &left = product.left;
  left.isTransposed = left.subscripts.back().getValue() == row;
  left.columns = left.isTransposed ? kRows : product.length;
  return left.isTransposed ? place(left, key, row) : place(left, row, key);
}

/// Returns whether an axis with the subscript `index` ends at `end`, like the index itself.
bool ProductFinder::isZeroOutside(const TileOperand &operand, const LinearIndex &index, const SymExpr &end) {
  ArrayType type = onf::LoadOp(operand.load).getArray().getType();
  for (auto [axis, subscript] : llvm::enumerate(operand.subscripts))
    if (subscript == index && type.getExtent(axis) == end)
      return true;
  return false;
}

/// Returns whether a condition excludes only elements outside of both arrays, or of the nest.
bool ProductFinder::isEnd(Value condition) {
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  bool isBelow = compare && compare.getPredicate() == arith::CmpIPredicate::slt;
  if (!isBelow && !(compare && compare.getPredicate() == arith::CmpIPredicate::sgt))
    return false;
  auto end = getSymbolic(compare->getOperand(isBelow ? 1 : 0));
  LinearIndex index;
  add(index, compare->getOperand(isBelow ? 0 : 1), SymExpr(1));
  const SymExpr &extent = getSymExpr(nest.getExtents()[nest.getExtents().size() - 1]);
  if (end && index.getValue() == row && extent == *end)
    return true;
  return end && isZeroOutside(product.left, index, *end) && isZeroOutside(product.right, index, *end);
}

/// Returns whether a condition depends on the fold's index, not on the row, and neither loads
/// elements at that index nor folds.
bool ProductFinder::isOfIndexAlone(Value condition) {
  rows::Dependence deps;
  if (deps.on(condition, row))
    return false;
  return !anySource(condition, [&](Operation *op) -> std::optional<bool> {
    if (!nest->isProperAncestor(op))
      return std::nullopt;
    return (isa<LoadOp>(op) && deps.on(op->getResult(0), key)) || op->getNumRegions() != 0;
  });
}

/// Finds the conditions that must be evaluated in tiles.
bool ProductFinder::checkGuard() {
  GuardOp guard = rows::getGuard(product.fold);
  SmallVector<Value> open;
  if (guard)
    open.push_back(guard.getCondition());
  while (!open.empty()) {
    Value part = open.pop_back_val();
    if (auto both = part.getDefiningOp<arith::AndIOp>()) {
      open.push_back(both.getLhs());
      open.push_back(both.getRhs());
      continue;
    }
    if (isEnd(part))
      continue;
    if (!isOfIndexAlone(part))
      return refuse("its guard is no end of both arrays and knows more than the fold's index");
    if (!product.left.isTransposed)
      return refuse("its guard is no end of both arrays and tiles of one have the fold's index "
                    "along their columns");
    product.isMasked = true;
  }
  return true;
}

Match<TileProduct> ProductFinder::run() {
  if (!findState() || !findFactors() || !placeLeft() || !place(product.right, key, column) || !checkGuard())
    return Reason(why);
  // Tiles that reach beyond the range must find zeros there.
  LinearIndex index;
  add(index, key, SymExpr(1));
  SymExpr end(product.length);
  bool isWhole = product.length % kRows == 0 ||
                 (isZeroOutside(product.left, index, end) && isZeroOutside(product.right, index, end));
  if (!isWhole)
    return Reason("its range is no multiple of " + Twine(kRows) + " and not the whole of its operands' axes");
  return product;
}

bool moa::isSameTile(const TileOperand &x, const TileOperand &y, Value xInner, Value yInner) {
  std::vector<LinearIndex> of = flattenIndices(y.load);
  if (LoadOp(x.load).getArray() != LoadOp(y.load).getArray() || of.size() != x.subscripts.size())
    return false;
  return ArrayRef(of).drop_back() == ArrayRef(x.subscripts).drop_back() && x.subscripts.back().getValue() == xInner &&
         of.back().getValue() == yInner;
}

Match<TileProduct> moa::findTileProduct(FoldOp fold) { return ProductFinder(fold).run(); }
