//===- LinearSystem.cpp - feasibility of a linear system ------------------===//
#include "lib/Validation/Search.h"
#include "mlir/Analysis/Presburger/Simplex.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace moa;
using namespace moa::validation;
using presburger::IntegerPolyhedron;
using presburger::PresburgerSpace;

/// Largest number of unknowns for which integer points are searched if rational points exist.
static constexpr unsigned maxSampled = 24;

void Prover::System::add(Term sum, bool isEquality) {
  if (!(isEquality ? zeros : sums).insert(sum).second)
    return;
  Row row;
  row.isEquality = isEquality;
  splitSum(sum, row.parts, row.constant);
  for (auto [part, coefficient] : row.parts)
    unknowns.insert(part);
  rows.push_back(std::move(row));
}

Prover::System::Points Prover::System::find(bool integers) const {
  IntegerPolyhedron set = polyhedron();
  presburger::Simplex simplex(set);
  if (simplex.isEmpty())
    return Points::None;
  if (!integers)
    return Points::Unknown;
  if (set.isEmptyByGCDTest())
    return Points::NoIntegers;
  if (simplex.getSamplePointIfIntegral())
    return Points::Some;
  if (unknowns.size() > maxSampled)
    return Points::Unknown;
  return set.isIntegerEmpty() ? Points::NoIntegers : Points::Some;
}

IntegerPolyhedron Prover::System::polyhedron() const {
  DenseMap<Term, unsigned> columns;
  for (auto [k, unknown] : llvm::enumerate(unknowns))
    columns[unknown] = k;
  IntegerPolyhedron set(PresburgerSpace::getSetSpace(unknowns.size()));
  for (const Row &row : rows) {
    SmallVector<int64_t> values(unknowns.size() + 1, 0);
    for (auto [part, coefficient] : row.parts)
      values[columns[part]] = coefficient;
    values.back() = row.constant;
    if (row.isEquality) {
      set.addEquality(values);
      continue;
    }
    // c·e + d ≥ 0 becomes e + ⌊d / c⌋ ≥ 0.
    int64_t common = 0;
    for (int64_t value : ArrayRef<int64_t>(values).drop_back())
      common = std::gcd(common, value);
    if (common > 1) {
      for (int64_t &value : MutableArrayRef<int64_t>(values).drop_back())
        value /= common;
      values.back() = llvm::divideFloorSigned(values.back(), common);
    }
    set.addInequality(values);
  }
  return set;
}
