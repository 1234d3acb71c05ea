//===- RangeParts.cpp - R4 for sums over ranges that end with the row -----===//
//
// For a sum over j ≤ x(i), rows share the sums over whole parts of the range, and each row sums up
// only its last part (chunked causal linear attention). A range j ≥ x(i) works the same from the
// other end. A running sum Σ over j ≤ i of C_j is the case without factors of the rows.
//
//===----------------------------------------------------------------------===//
#include "lib/Conversion/DNFToONF/Derivation.h"
#include "lib/Conversion/DNFToONF/Distance.h"
#include "lib/Conversion/DNFToONF/IndexBounds.h"

using namespace mlir;
using namespace moa;

/// Rows per block. The rows of a block share the same leading parts.
static constexpr int64_t kRowBlock = 64;

/// Returns whether an element that `e` reads depends on an index.
static bool readsWith(Expr e, int64_t index) {
  return anyNode(e, [&](Expr node) { return node->kind == ExprKind::Psi && node->dependsOn(index); });
}

/// Returns the term of a sum over a part, at index `place` of the part and `whole` of the range.
/// The term is multiplied by its weights of the distance to the last index of the part. These
/// weights are stored, because they are the same for all parts. If the contraction rounds the
/// operand that they multiply, the weighted operand is stored too.
Expr Derivation::weighedTerm(std::vector<NestPlan> &nests, const Association &a, const SharedTerm &shared,
                             const IndexExtents &rows, Expr place, Expr whole) {
  if (shared.weights.empty())
    return exprs.renamed(shared.term, {{a.j, whole}});
  auto [loc, name] = placeAndName(a.sum);
  SymExpr length(a.block);
  int64_t k = exprs.freshIndex(exprs.boundName(a.sum));
  Expr distance = exprs.op("arith.subi", {exprs.index(k), exprs.extent(SymExpr(a.block - 1))});
  Expr weight = nullptr;
  for (Expr each : shared.weights) {
    Expr part = weightOver(exprs, each, a.j, distance);
    weight = weight ? exprs.op("arith.mulf", {weight, part}) : part;
  }
  IndexExtents all = rows;
  all.push_back({k, length});
  weight = store(nests, weight, indicesOf(weight, all, rows.back().first), weight->type, name + "_weights", loc,
                 /*carries=*/false);
  auto times = [&](Expr x, Expr at) { return exprs.op("arith.mulf", {x, exprs.renamed(weight, {{k, at}})}); };
  if (!a.sum->rounds || !shared.inner)
    return times(exprs.renamed(shared.term, {{a.j, whole}}), place);
  Expr first = exprs.op("arith.muli",
                        {exprs.op("arith.floordivsi", {exprs.index(a.j), exprs.extent(length)}), exprs.extent(length)});
  Expr operand = times(shared.right, exprs.op("arith.subi", {exprs.index(a.j), first}));
  all.back() = {a.j, a.sum->extent.getValue()};
  all.push_back({shared.axis, shared.inner->extent.getValue()});
  operand = store(nests, operand, indicesOf(operand, all, rows.back().first), a.sum->rounds.getValue(),
                  name + "_weighed", loc, /*carries=*/false);
  // Rebuild the product in its original order, so that it stays a contraction, without factors that
  // are free of j.
  Expr term = rules.rebuildProduct(shared.body, [&](unsigned n, Expr base) -> Expr {
    if (n == shared.factor)
      return operand;
    return !base->dependsOn(a.j) || llvm::is_contained(shared.weights, base) ? nullptr : base;
  });
  return exprs.renamed(term, {{a.j, whole}});
}

/// Stores the sums of parts and their running sums over the first parts (over the last ones if the
/// range begins with the row). Returns the running sum over `before` parts.
Expr Derivation::storePrefix(std::vector<NestPlan> &nests, const Association &a, const SharedTerm &term,
                             const IndexExtents &rows, Expr before) {
  int64_t part = exprs.freshIndex("part"), place = exprs.freshIndex(exprs.boundName(a.sum));
  SymExpr range = a.sum->extent.getValue(), length(a.block);
  SymExpr parts = SymExpr::floorDiv(range + SymExpr(a.block - 1), length);
  auto op = [&](StringRef name, Expr x, Expr y) { return exprs.op(name, {x, y}); };
  auto [loc, name] = placeAndName(a.sum);
  // Sums of parts.
  Expr inPart = exprs.index(place), partLength = exprs.extent(length);
  Expr whole = op("arith.addi", op("arith.muli", exprs.index(part), partLength), inPart);
  Expr inside = exprs.greater(exprs.extent(range), whole);
  if (a.range)
    inside = exprs.both(inside, exprs.renamed(a.range, {{a.j, whole}}));
  Expr ofIndex = weighedTerm(nests, a, term, rows, exprs.index(place), whole);
  Expr ofPart = exprs.reduce(Monoid::add, ExprAttr::get(exprs.getContext(), length), place, ofIndex, inside,
                             term.inner ? a.sum->rounds : TypeAttr(), exprs.boundName(a.sum));
  exprs.inheritName(a.sum, ofPart);
  IndexExtents all = rows;
  if (term.inner)
    all.push_back({term.axis, term.inner->extent.getValue()});
  IndexExtents own = indicesOf(ofPart, all, rows.back().first);
  size_t outer = llvm::count_if(
      own, [&](auto &entry) { return !(term.inner && entry.first == term.axis) && entry.first != rows.back().first; });
  auto with = [&](int64_t id, const SymExpr &extent) {
    IndexExtents indices = own;
    indices.insert(indices.begin() + outer, {id, extent});
    return indices;
  };
  if (term.scale && !term.scale->dependsOn(a.row))
    ofPart = exprs.op("arith.mulf", {term.scale, ofPart});
  Expr stored = store(nests, ofPart, with(part, parts), a.sum->type, name + "_parts", loc);
  // Running sums over parts, with weights from the end of each part to the end of the last one.
  Expr one = exprs.extent(SymExpr(1));
  Expr partsOn = op("arith.subi", op("arith.addi", exprs.index(part), one), before);
  Expr distance = op("arith.muli", partsOn, exprs.extent(length));
  for (Expr weight : term.weights)
    stored = exprs.op("arith.mulf", {stored, weightOver(exprs, weight, a.j, distance)});
  if (a.isFirst) {
    Expr fromEnd = exprs.index(part);
    stored = exprs.renamed(stored, {{part, op("arith.subi", exprs.extent(parts - SymExpr(1)), fromEnd)}});
  }
  Expr upTo = exprs.reduce(Monoid::add, ExprAttr::get(exprs.getContext(), parts), part, stored,
                           exprs.greater(before, exprs.index(part)), TypeAttr(), "part");
  exprs.inheritName(a.sum, upTo);
  TypeAttr rounds = term.inner ? roundingOf(term.left, term.inner, a.sum) : TypeAttr();
  return store(nests, upTo, with(before->id, parts + SymExpr(1)), rounds ? rounds.getValue() : a.sum->type,
               name + (a.isFirst ? "_after" : "_before"), loc, /*carries=*/false);
}

/// R4 for a range that ends at an index x(i), which never falls as the row i grows. Let L be the
/// length of parts and c = ⌊x(i₀) / L⌋, with i₀ the first row of the block of rows of i.
///   Σ over j ≤ x = Σ_e A_e · (Σ over the parts p < c of the sums of part p) + Σ over L·c ≤ j ≤ x.
/// If the range begins at x(i) instead, let c = ⌈x(i₁) / L⌉, with i₁ the last row of the block.
///   Σ over j ≥ x = Σ_e A_e · (Σ over the parts p ≥ c of the sums of part p) + Σ over x ≤ j < L·c.
/// Terms may have weights of the distance. For the j of part p these split:
///   w(i, j) = w(i, L·c − 1) · w(L·c − 1, L·p + L − 1) · w(L·p + L − 1, j).
/// The sums of parts, their running sums, and the products of rows with these are stored.
Expr Derivation::buildAssociatedByParts(std::vector<NestPlan> &nests, const Association &a, const IndexExtents &rows) {
  Type type = a.sum->type;
  SymExpr range = a.sum->extent.getValue(), length(a.block), size(kRowBlock);
  SymExpr parts = SymExpr::floorDiv(range + SymExpr(a.block - 1), length);
  SymExpr numRows = llvm::find_if(rows, [&](auto &r) { return r.first == a.row; })->second;
  auto op = [&](StringRef name, Expr x, Expr y) { return exprs.op(name, {x, y}); };
  auto [loc, name] = placeAndName(a.sum);
  // Blocks of rows that share their leading parts.
  int64_t blockOfRows = exprs.freshIndex("block"), inBlock = exprs.freshIndex(exprs.indexName(a.row));
  Expr rowsPerBlock = exprs.extent(size), firstRow = op("arith.muli", exprs.index(blockOfRows), rowsPerBlock);
  Expr zero = exprs.extent(SymExpr(0));
  // The first part that rows sum up themselves, the same for all rows of a block.
  auto partOf = [&](Expr first) {
    Expr row = a.isFirst ? op("arith.addi", first, exprs.extent(SymExpr(kRowBlock - 1))) : first;
    Expr x = exprs.renamed(a.bound, {{a.row, row}});
    if (a.isFirst)
      x = op("arith.addi", x, exprs.extent(SymExpr(a.block - 1)));
    return op("arith.floordivsi", x, exprs.extent(length));
  };
  Expr allParts = exprs.extent(parts);
  Expr clamped = op("arith.minsi", op("arith.maxsi", partOf(firstRow), zero), allParts);
  Expr numParts = a.isFirst ? op("arith.subi", allParts, clamped) : clamped;
  // The last block may extend beyond the rows.
  Expr row = exprs.index(a.row), isRow = exprs.greater(exprs.extent(numRows), row);
  Expr j = exprs.index(a.j);
  Expr keys = op("arith.muli", clamped, exprs.extent(length)), end = op("arith.subi", keys, exprs.extent(SymExpr(1)));
  Expr firstPart = partOf(firstRow);
  Expr isNeeded = a.isFirst ? exprs.greater(allParts, firstPart) : exprs.greater(firstPart, zero);
  if (a.range) {
    SmallVector<Expr> bounds = conjunctsOf(a.range);
    bounds.push_back(a.isFirst ? exprs.notBelow(j, keys) : exprs.greater(keys, j));
    isNeeded = exprs.both(isNeeded, anyWithin(exprs, exprs.extent(range), bounds, j));
  }
  isNeeded = exprs.both(a.ofRow, isNeeded);
  Expr value = nullptr, always = nullptr;
  bool isProduct = false, readsRow = a.ofRow && readsWith(a.ofRow, a.row);
  for (const SharedTerm &term : a.terms) {
    int64_t before = exprs.freshIndex("before");
    Expr prefix = storePrefix(nests, a, term, rows, exprs.index(before));
    Expr share = contractWithRow(a, term, exprs.renamed(prefix, {{before, numParts}}), isRow);
    // ... times the weights from the last index of these parts to the row.
    SmallVector<Expr> factors;
    for (Expr weight : term.weights)
      factors.push_back(exprs.renamed(weight, {{a.j, end}}));
    if (term.scale && term.scale->dependsOn(a.row))
      factors.push_back(term.scale);
    for (Expr factor : factors) {
      readsRow |= readsWith(factor, a.row);
      share = exprs.op("arith.mulf", {share, factor});
    }
    // A stored sum over no parts is 0 anyway, unless a row multiplies it.
    bool isAlways = !term.inner && factors.empty() && !a.range && !a.ofRow;
    (isAlways ? always : value) = addTerm(isAlways ? always : value, term, share);
    isProduct |= bool(term.inner);
  }
  // If rows only read the shared sums, there is nothing more to store.
  Expr block = op("arith.floordivsi", row, rowsPerBlock);
  Expr start = op("arith.muli", block, exprs.extent(size));
  auto whereNeeded = [&](Expr condition) {
    return exprs.op("arith.select", {condition, value, exprs.floatConstant(0, type)}, type);
  };
  Expr shared = nullptr;
  if (always)
    always = exprs.renamed(always, {{blockOfRows, block}});
  if (!isProduct && value) {
    shared = exprs.renamed(whereNeeded(isNeeded), {{blockOfRows, block}});
  } else if (value) {
    value = whereNeeded(readsRow ? exprs.both(isRow, isNeeded) : isNeeded);
    value = exprs.renamed(value, {{a.row, op("arith.addi", firstRow, exprs.index(inBlock))}});
    IndexExtents blocked;
    for (auto &entry : rows) {
      if (entry.first != a.row) {
        blocked.push_back(entry);
        continue;
      }
      blocked.push_back({blockOfRows, SymExpr::floorDiv(numRows + SymExpr(kRowBlock - 1), size)});
      blocked.push_back({inBlock, size});
    }
    shared = store(nests, value, indicesOf(value, blocked, rows.back().first), type, name + "_shared", loc,
                   /*carries=*/value->dependsOn(rows.back().first));
    shared = exprs.renamed(shared, {{blockOfRows, block}, {inBlock, op("arith.subi", exprs.index(a.row), start)}});
  }
  // The rest of the range.
  Expr partLength = exprs.extent(length), first = op("arith.muli", partOf(start), partLength);
  Expr isLeft = a.isFirst ? exprs.greater(first, j) : exprs.notBelow(j, first);
  Expr rest = exprs.reduce(Monoid::add, a.sum->extent, a.j, a.body, exprs.both(isLeft, a.present), a.sum->rounds,
                           exprs.boundName(a.sum));
  exprs.inheritName(a.sum, rest);
  for (Expr part : {shared, always})
    if (part)
      rest = exprs.op("arith.addf", {part, rest});
  return rest;
}
