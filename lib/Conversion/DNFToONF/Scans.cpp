//===- Scans.cpp - running reductions (prefix scans) ----------------------===//
//
// If the range of a reduction ends or begins at a surrounding index, the next end adds or removes
// one term. One nest stores the reductions for all ends as a prefix scan, with one step per end
// (R7):
//
//   ⊕ over k ≤ b(j) of F(k) = R[b(j) + 1],   R[t] = ⊕ over k < t of F(k),
//   ⊕ over k ≥ b(j) of F(k) = R[b(j)],       R[t] = ⊕ over k ≥ t of F(k).
//
// For example, the product of all 1 − x_ik with k > j is R[i, j + 1]. Other conditions of the range
// must not depend on j; they select the identity in the term. The lowerings run t in order
// (lib/Conversion/ONFToVector/Running.h), so that the work is linear in the range, not quadratic.
//
//===----------------------------------------------------------------------===//
#include "dialects/MoA/IR/Monoid.h"
#include "lib/Conversion/DNFToONF/Derivation.h"
#include "lib/Conversion/DNFToONF/IndexBounds.h"

using namespace mlir;
using namespace moa;

/// Least length of a range that is scanned; shorter ones are reduced again for each index.
static constexpr double kLeastScan = 64;

/// Returns e − index if it is a number; nothing otherwise.
static std::optional<int64_t> distanceFrom(Expr e, int64_t index) {
  if (e->kind == ExprKind::Index)
    return e->id == index ? std::optional<int64_t>(0) : std::nullopt;
  if (!e->isOp("arith.addi") && !e->isOp("arith.subi"))
    return std::nullopt;
  Expr left = e->operands[0], right = e->operands[1];
  if (e->isOp("arith.addi") && left->kind == ExprKind::Const)
    std::swap(left, right);
  auto rest = distanceFrom(left, index);
  if (!rest || right->kind != ExprKind::Const)
    return std::nullopt;
  int64_t number = cast<IntegerAttr>(right->value).getInt();
  return *rest + (e->isOp("arith.addi") ? number : -number);
}

/// Returns whether a value reads elements of arrays.
static bool readsArrays(Expr value) {
  return anyNode(value, [](Expr node) { return node->kind == ExprKind::Psi; });
}

/// Finds the condition by which the range of a reduction ends or begins at surrounding indices that
/// nothing else in the reduction depends on.
std::optional<Derivation::Scan> Derivation::findScan(Expr e, const IndexExtents &all) {
  if (e->kind != ExprKind::Reduce || !e->getPresent() || e->function || !isa<FloatType>(e->type) ||
      nominal(e->extent.getValue()) < kLeastScan)
    return std::nullopt;
  Scan scan;
  scan.k = openings.indexFor(e);
  std::tie(scan.term, scan.present) = exprs.open(e, scan.k);
  Expr k = exprs.index(scan.k);
  SmallVector<Expr> conditions = conjunctsOf(scan.present);
  for (Expr end : conditions) {
    Expr last = lastOf(exprs, end, k);
    scan.bound = last ? last : firstOf(exprs, end, k);
    scan.descends = !last;
    // An element of an array may be the largest integer, to which 1 cannot be added.
    if (scan.descends && scan.bound && scan.bound->isOp("arith.addi") && readsArrays(scan.bound))
      continue;
    scan.others = nullptr;
    for (Expr condition : conditions)
      if (condition != end)
        scan.others = exprs.both(scan.others, condition);
    double ends = 1; // ends that would be reduced separately
    for (auto &[j, extent] : all)
      if (scan.bound && scan.bound->dependsOn(j) && !scan.term->dependsOn(j) &&
          !(scan.others && scan.others->dependsOn(j)))
        ends *= nominal(extent);
    if (ends >= kLeastScan)
      return scan;
  }
  return std::nullopt;
}

/// Stores a reduction for all ends of its range, and returns its element. Returns null if it is no
/// scan, if the scan would take too much memory, or if it might read out of bounds.
Expr Derivation::storeScan(std::vector<NestPlan> &nests, Expr e, const IndexExtents &all) {
  auto scan = findScan(e, all);
  if (!scan)
    return nullptr;
  Expr term = scan->term;
  if (scan->others)
    term = exprs.op("arith.select", {scan->others, term, exprs.constant(getIdentity(e->monoid, e->type), e->type)},
                    e->type);
  IndexExtents indices;
  const SymExpr &range = e->extent.getValue();
  SmallVector<SymExpr> extents{range};
  for (auto &index : all)
    if (term->dependsOn(index.first)) {
      indices.push_back(index);
      extents.push_back(index.second);
    }
  IndexExtents inside = indices;
  inside.push_back({scan->k, range});
  bool isKnown = llvm::all_of(term->freeIndices, [&](int64_t id) {
    return llvm::any_of(inside, [&](auto &index) { return index.first == id; });
  });
  if (!isKnown || !isAffordable(extents, /*isPower=*/true) || !readsInside(term, inside) ||
      !readsInside(scan->bound, all))
    return nullptr;
  // A scan runs along the axis before the last one, so there must be a last one.
  if (indices.empty())
    indices.push_back({exprs.freshIndex("one"), SymExpr(1)});
  int64_t t = exprs.freshIndex(exprs.boundName(e));
  indices.insert(indices.end() - 1, {t, range + SymExpr(1)});
  Expr k = exprs.index(scan->k), bound = exprs.index(t);
  Expr within = scan->descends ? exprs.notBelow(k, bound) : exprs.greater(bound, k);
  Expr running = exprs.reduce(e->monoid, e->extent, scan->k, term, within, e->rounds, exprs.boundName(e));
  exprs.inheritName(e, running);
  llvm::DenseMap<int64_t, Expr> toRows;
  for (auto [axis, index] : llvm::enumerate(indices))
    toRows[index.first] = exprs.index(rowIndex(axis, exprs.indexName(index.first)));
  runningValues.insert(exprs.renamed(running, toRows));
  auto [loc, name] = placeAndName(e);
  Expr element = store(nests, running, indices, e->type, name + "_running", loc, /*carries=*/false);
  llvm::DenseMap<int64_t, Expr> at{{t, scanIndex(*scan, all, range)}};
  if (indices.back().second == SymExpr(1))
    at[indices.back().first] = exprs.extent(SymExpr(0));
  return exprs.renamed(element, at);
}

/// Returns the index into the stored scan for an end of a range.
Expr Derivation::scanIndex(const Scan &scan, const IndexExtents &all, const SymExpr &range) {
  Expr one = exprs.extent(SymExpr(1)), bound = scan.bound;
  if (!scan.descends)
    bound = exprs.op("arith.addi", {bound, one});
  // For an index j of the same range, j and j + 1 are in bounds without a clamp.
  for (auto &[j, extent] : all)
    if (auto distance = distanceFrom(bound, j); distance && extent == range && (*distance == 0 || *distance == 1))
      return *distance == 0 ? exprs.index(j) : exprs.op("arith.addi", {exprs.index(j), one});
  // Clamp before adding 1: an element of an array may be the largest integer.
  SymExpr before(scan.descends ? 0 : 1);
  bound = exprs.op("arith.minsi", {scan.bound, exprs.extent(range - before)});
  bound = exprs.op("arith.maxsi", {bound, exprs.extent(SymExpr(0) - before)});
  return scan.descends ? bound : exprs.op("arith.addi", {bound, one});
}
