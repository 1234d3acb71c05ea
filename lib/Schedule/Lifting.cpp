//===- Lifting.cpp - digits, and the proof of the bijection ---------------===//
#include "lib/Schedule/Lifting.h"
#include "lib/Schedule/Schedule.h"
#include "mlir/Analysis/Presburger/IntegerRelation.h"

using namespace mlir;
using namespace moa;
using presburger::IntegerPolyhedron;
using presburger::PresburgerSpace;

SmallVector<int64_t> moa::liftedDigits(ArrayRef<int64_t> innerSizes, int64_t index) {
  SmallVector<int64_t> digits(innerSizes.size() + 1);
  for (size_t k = innerSizes.size(); k > 0; --k) {
    digits[k] = index % innerSizes[k - 1];
    index /= innerSizes[k - 1];
  }
  digits[0] = index;
  return digits;
}

int64_t moa::liftedIndex(ArrayRef<int64_t> innerSizes, ArrayRef<int64_t> digits) {
  int64_t index = digits.front();
  for (auto [size, digit] : llvm::zip(innerSizes, digits.drop_front()))
    index = index * size + digit;
  return index;
}

int64_t moa::liftedQuotient(ArrayRef<int64_t> innerSizes, int64_t extent) {
  int64_t tile = 1;
  for (int64_t size : innerSizes)
    tile *= size;
  return (extent + tile - 1) / tile;
}

SmallVector<int64_t> moa::liftedShape(ArrayRef<int64_t> shape, ArrayRef<int64_t> factors) {
  SmallVector<int64_t> result;
  for (auto [extent, factor] : llvm::zip(shape, factors))
    result.push_back(liftedQuotient({factor}, extent));
  return result;
}

//===----------------------------------------------------------------------===//
// The proof
//===----------------------------------------------------------------------===//

namespace {
/// Integer sets over (n, digits of one point, digits of another point, …).
class DigitSystem {
public:
  DigitSystem(ArrayRef<int64_t> innerSizes, unsigned points, unsigned extra = 0)
      : sizes(innerSizes.begin(), innerSizes.end()), digits(innerSizes.size() + 1), width(1 + points * digits + extra),
        set(PresburgerSpace::getSetSpace(width)) {}

  SmallVector<int64_t> row() const { return SmallVector<int64_t>(width + 1, 0); }
  unsigned column(unsigned point, unsigned digit) const { return 1 + point * digits + digit; }

  void addIndex(SmallVectorImpl<int64_t> &row, unsigned point, int64_t sign) const {
    int64_t weight = sign;
    for (unsigned k = digits; k > 0; --k) {
      row[column(point, k - 1)] += weight;
      if (k > 1)
        weight *= sizes[k - 2];
    }
  }

  /// Adds the ranges of the digits and the guard: c ≥ 0, 0 ≤ d < s, index < n. The guard implies c
  /// < ⌈n / tile⌉, which is c·tile ≤ n − 1.
  void addDomain(unsigned point) {
    for (unsigned k = 0; k < digits; ++k) {
      SmallVector<int64_t> low = row();
      low[column(point, k)] = 1;
      set.addInequality(low);
      if (k == 0)
        continue;
      SmallVector<int64_t> high = row();
      high[column(point, k)] = -1;
      high[width] = sizes[k - 1] - 1;
      set.addInequality(high);
    }
    SmallVector<int64_t> guard = row();
    guard[0] = 1;
    guard[width] = -1;
    addIndex(guard, point, -1);
    set.addInequality(guard);
  }

  SmallVector<int64_t> sizes;
  unsigned digits, width;
  IntegerPolyhedron set;
};
} // namespace

/// Proves that no index has two digit vectors that differ in digit k. Their difference e would have
/// |e_m| < s_m for all inner digits, e_k ≥ 1, and index 0.
static bool isInjective(ArrayRef<int64_t> sizes) {
  unsigned digits = sizes.size() + 1;
  for (unsigned k = 0; k < digits; ++k) {
    IntegerPolyhedron set(PresburgerSpace::getSetSpace(digits));
    SmallVector<int64_t> same(digits + 1, 0);
    int64_t weight = 1;
    for (unsigned l = digits; l > 0; --l) {
      same[l - 1] = weight;
      if (l == 1)
        break;
      int64_t size = sizes[l - 2];
      weight *= size;
      for (int64_t sign : {1, -1}) {
        SmallVector<int64_t> inside(digits + 1, 0);
        inside[l - 1] = sign;
        inside.back() = size - 1;
        set.addInequality(inside);
      }
    }
    set.addEquality(same);
    SmallVector<int64_t> differs(digits + 1, 0);
    differs[k] = 1;
    differs.back() = -1;
    set.addInequality(differs);
    if (!set.isIntegerEmpty())
      return false;
  }
  return true;
}

/// Returns the indices 0 ≤ i < n, in the last column, with the digits of point 0 defined by
/// division. From the innermost: q_{k−1} = ⌊q_k / s_k⌋ and d_k = q_k − s_k·q_{k−1}.
static DigitSystem dividedIndex(ArrayRef<int64_t> sizes) {
  DigitSystem system(sizes, 1, 1);
  unsigned index = system.width - 1;
  SmallVector<int64_t> low = system.row(), high = system.row();
  low[index] = 1;
  high[0] = 1, high[index] = -1, high[system.width] = -1;
  system.set.addInequality(low);
  system.set.addInequality(high);
  SmallVector<int64_t> rest = system.row();
  rest[index] = 1;
  for (unsigned k = system.digits - 1; k > 0; --k) {
    unsigned quotient = system.set.addLocalFloorDiv(rest, sizes[k - 1]);
    SmallVector<int64_t> digit = rest;
    digit.insert(digit.end() - 1, 0); // the new quotient's column
    digit[system.column(0, k)] -= 1;
    digit[quotient] -= sizes[k - 1];
    system.set.addEquality(digit);
    rest.assign(system.set.getNumCols(), 0);
    rest[quotient] = 1;
  }
  rest[system.column(0, 0)] -= 1;
  system.set.addEquality(rest);
  return system;
}

/// Proves that every index has digits in range that map back to it: violating any condition leaves
/// an empty set.
static bool isSurjective(ArrayRef<int64_t> sizes) {
  DigitSystem divided = dividedIndex(sizes);
  unsigned index = divided.width - 1;
  int64_t tile = 1;
  for (int64_t size : sizes)
    tile *= size;
  // Returns true if Σ coefficient · column + constant ≥ 0 holds nowhere.
  auto excludes = [&](ArrayRef<std::pair<unsigned, int64_t>> terms, int64_t constant) {
    IntegerPolyhedron set = divided.set;
    SmallVector<int64_t> row(set.getNumCols(), 0);
    for (auto [column, coefficient] : terms)
      row[column] += coefficient;
    row.back() = constant;
    set.addInequality(row);
    return set.isIntegerEmpty();
  };
  // An empty set of digits would prove anything.
  bool holds = !divided.set.isIntegerEmpty();
  // c·tile ≥ n
  holds &= excludes({{divided.column(0, 0), tile}, {0, -1}}, 0);
  for (unsigned k = 0; k < divided.digits; ++k) {
    unsigned digit = divided.column(0, k);
    holds &= excludes({{digit, -1}}, -1);
    if (k > 0)
      holds &= excludes({{digit, 1}}, -sizes[k - 1]);
  }
  for (int64_t sign : {1, -1}) {
    SmallVector<int64_t> sum = divided.row();
    divided.addIndex(sum, 0, sign);
    SmallVector<std::pair<unsigned, int64_t>> terms = {{index, -sign}};
    for (unsigned k = 0; k < divided.digits; ++k)
      terms.emplace_back(divided.column(0, k), sum[divided.column(0, k)]);
    holds &= excludes(terms, -1);
  }
  return holds;
}

llvm::Error moa::verifyBijection(onf::AxisAttr axis) {
  // A digit of size 1 is always 0.
  SmallVector<int64_t> sizes(axis.getSizes().drop_front());
  llvm::erase(sizes, 1);
  if (sizes.empty())
    return llvm::Error::success();
  if (!isInjective(sizes))
    return llvm::createStringError(llvm::inconvertibleErrorCode(), "two digit vectors give one index");
  if (!isSurjective(sizes))
    return llvm::createStringError(llvm::inconvertibleErrorCode(), "an index has no digits");
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Writing the attributes
//===----------------------------------------------------------------------===//

onf::AxisAttr moa::axisAttr(MLIRContext *context, const AxisSchedule &axis) {
  SmallVector<int64_t> resources, sizes;
  for (auto [resource, size] : axis.factors) {
    resources.push_back(static_cast<int64_t>(resource));
    sizes.push_back(size);
  }
  return onf::AxisAttr::get(context, resources, sizes);
}

LogicalResult moa::lift(onf::KernelOp kernel, const Schedule &schedule) {
  MLIRContext *context = kernel.getContext();
  auto nests = llvm::to_vector(kernel.getBody().getOps<onf::ForOp>());
  if (nests.size() != schedule.nests.size())
    return kernel.emitOpError("expects a schedule of ") << nests.size() << " nests, but got " << schedule.nests.size();
  for (auto [nest, lifted] : llvm::zip(nests, schedule.nests)) {
    auto folds = llvm::to_vector(nest.getBody().getOps<onf::FoldOp>());
    if (lifted.axes.size() != nest.getExtents().size() || lifted.folds.size() != folds.size())
      return nest.emitOpError("expects a schedule of ")
             << nest.getExtents().size() << " axes and " << folds.size() << " folds, but got " << lifted.axes.size()
             << " and " << lifted.folds.size();
    SmallVector<Attribute> axes;
    for (const AxisSchedule &axis : lifted.axes)
      axes.push_back(axisAttr(context, axis));
    nest.setLiftAttr(ArrayAttr::get(context, axes));
    if (const auto &p = lifted.pipeline)
      nest.setPipelineAttr(onf::PipelineAttr::get(context, p->consumerRegisters, p->producerRegisters, p->overlap,
                                                  p->descending, p->groupBytes, p->rescaleBound, p->holdsRows,
                                                  p->takesTurns, p->shares));
    for (auto [fold, axis] : llvm::zip(folds, lifted.folds))
      fold.setLiftAttr(axisAttr(context, axis));
  }
  return success();
}
