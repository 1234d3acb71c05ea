//===- Association.cpp - R5 and R4 where they lead to sums that rows share ===//
//
// R5 and R1 bring a sum of products of sums into the form that R7 stores (Temporaries.cpp), which is
// the associativity of the inner product:
//
//   Σ_j (Σ_e A_ie · B_ej) · C_jd = Σ_e A_ie · (Σ_j B_ej · C_jd).
//
//===----------------------------------------------------------------------===//
#include "lib/Conversion/DNFToONF/Derivation.h"
#include "lib/Conversion/DNFToONF/Distance.h"
#include "lib/Conversion/DNFToONF/LinearForm.h"
#include "lib/Conversion/DNFToONF/Observer.h"
#include <cmath>

using namespace mlir;
using namespace moa;

/// The fewest and most indices of a part of a range that ends at another index for every row.
static constexpr int64_t kLeastBlock = 64, kMostBlock = 1024;
/// Rows that begin with the same part of it.
static constexpr int64_t kRowBlock = 64;
/// Multiply-adds that take as long as what becomes of one element that is stored for a part: it is written,
/// read and written again where parts are added up, and read by the rows.
static constexpr int64_t kPerStored = 1024;
/// Multiply-adds of sums over scores that take as long as one with a stored sum, which reads more for each and has
/// launches of its own: what is measured where lengths are known, from 1,024 of operands of 64 on.
static constexpr int64_t kPerStoredSum = 16;
/// A known range below this is none that is worth it.
static constexpr int64_t kLeastKnown = 1024;

/// Multiply-adds for the elements over these free indices, `each` of them for one.
static SymExpr countOver(const std::set<int64_t> &indices, const IndexExtents &extents,
                         const SymExpr &each) {
  SymExpr count = each;
  for (auto &[id, extent] : extents)
    if (indices.count(id))
      count = count * extent;
  return count;
}

/// The conditions that `condition` is the conjunction of.
static SmallVector<Expr> partsOf(Expr condition) {
  if (!condition)
    return {};
  if (!condition->isOp("arith.andi"))
    return {condition};
  SmallVector<Expr> parts = partsOf(condition->operands[0]);
  llvm::append_range(parts, partsOf(condition->operands[1]));
  return parts;
}

/// The last index that j ≤ x, j < x and the same the other way round or with terms on the other side admit; null
/// for others.
static Expr lastOf(ExprContext &exprs, Expr part, Expr j) {
  if (!part->isOp("arith.cmpi"))
    return nullptr;
  enum Predicate { slt = 2, sle, sgt, sge };
  auto predicate = cast<IntegerAttr>(part->attributes.get("predicate")).getInt();
  bool isBelow = predicate == slt || predicate == sle, isStrict = predicate == slt || predicate == sgt;
  if (!isBelow && predicate != sgt && predicate != sge)
    return nullptr;
  Expr index = part->operands[isBelow ? 0 : 1], bound = part->operands[isBelow ? 1 : 0];
  if (index != j || bound->dependsOn(j->id)) {
    // 0 ≤ bound − index, which is the last index − j.
    LinearForm rest;
    rest.add(bound, SymExpr(1));
    rest.add(index, SymExpr(-1));
    rest.add(j, SymExpr(1));
    bound = rest.build(exprs);
    if (bound->dependsOn(j->id))
      return nullptr;
  }
  return isStrict ? exprs.op("arith.subi", {bound, exprs.extent(SymExpr(1))}, bound->type) : bound;
}

/// Whether x grows with an index, one by one.
static bool growsWith(Expr x, int64_t index) {
  if (x->kind == ExprKind::Index)
    return x->id == index;
  bool isSum = x->isOp("arith.addi");
  if (!isSum && !x->isOp("arith.subi"))
    return false;
  Expr a = x->operands[0], b = x->operands[1];
  if (!b->dependsOn(index))
    return growsWith(a, index);
  return isSum && !a->dependsOn(index) && growsWith(b, index);
}

/// Whether every element that `e` reads is one of its array for all values of these indices. What
/// was proved of an index under a condition may not hold where an array is computed as a whole.
bool Derivation::readsInside(Expr e, IndexExtents indices) {
  llvm::DenseSet<Expr> seen;
  std::function<bool(Expr)> visit = [&](Expr node) {
    if (!seen.insert(node).second)
      return true;
    if (node->kind == ExprKind::Reduce) {
      int64_t id = openings.indexFor(node);
      auto [body, present] = exprs.open(node, id);
      indices.push_back({id, *SymExpr::parse(node->extent)});
      return visit(body) && (!present || visit(present));
    }
    if (node->kind == ExprKind::Psi && node->id < int64_t(kernel.getArgNames().size())) {
      auto type = cast<ArrayType>(kernel.getBody().getArgument(node->id).getType());
      for (auto [axis, index] : llvm::enumerate(node->operands))
        if (!isInside(index, type.getExtent(axis), indices))
          return false;
      return true;
    }
    return llvm::all_of(node->operands, visit);
  };
  return visit(e);
}

/// Whether 0 ≤ index < size: an index with this extent, a number, or a quotient of heads by their
/// groups.
bool Derivation::isInside(Expr index, const SymExpr &size, const IndexExtents &indices) {
  auto extentOf = [&](Expr e) -> std::optional<SymExpr> {
    if (e->kind == ExprKind::Index)
      for (auto &[id, extent] : indices)
        if (id == e->id)
          return extent;
    return std::nullopt;
  };
  if (auto extent = extentOf(index))
    return *extent == size;
  if (index->kind == ExprKind::Extent) {
    auto place = SymExpr::parse(index->text)->getConstant(), known = size.getConstant();
    return place && known && *place >= 0 && *place < *known;
  }
  if (!index->isOp("arith.floordivsi") || index->operands[1]->kind != ExprKind::Extent)
    return false;
  auto whole = extentOf(index->operands[0]);
  if (!whole || SymExpr::floorDiv(*whole, size) != *SymExpr::parse(index->operands[1]->text))
    return false;
  std::string divides = (SymExpr::mod(*whole, size).str() + " == 0");
  return llvm::is_contained(kernel.getRequires().getAsValueRange<StringAttr>(), divides);
}

/// The last index of a range that ends with one of the rows, and that row.
std::pair<Expr, int64_t> Derivation::endOfRange(const Association &a, const IndexExtents &rows) {
  for (Expr part : partsOf(a.present))
    if (Expr last = lastOf(exprs, part, exprs.index(a.j)))
      for (auto &[id, extent] : rows)
        if (a.left->dependsOn(id) && growsWith(last, id))
          return {last, id};
  return {nullptr, 0};
}

/// Whether an element that `e` reads depends on an index.
static bool readsWith(Expr e, int64_t index) {
  bool found = false;
  walk(e, [&](Expr node) { found |= node->kind == ExprKind::Psi && node->dependsOn(index); });
  return found;
}

/// Finds the other side of the law for the sum `t` of a row. `isAlways`: nothing decides whether it is needed.
std::optional<Derivation::Association> Derivation::findAssociation(Expr t, const IndexExtents &rows,
                                                                   bool isAlways) {
  Association found;
  found.sum = t;
  found.j = exprs.freshIndex(exprs.boundName(t));
  std::tie(found.body, found.present) = exprs.open(t, found.j);
  isAlways &= !found.present;
  SmallVector<FoldRules::Factor> factors = rules.factors(found.body);
  for (auto [n, factor] : llvm::enumerate(factors)) {
    Expr inner = found.inner = factor.base;
    if (factor.divides || !isFloatSum(inner) || inner->getPresent() || !inner->dependsOn(found.j) ||
        knownExtent(inner).value_or(0) <= 0)
      continue;
    found.axis = exprs.freshIndex(exprs.boundName(inner));
    Expr innerBody = exprs.open(inner, found.axis).first;
    auto part = [&](bool dependent) {
      return rules.rebuildProduct(innerBody, [&](unsigned, Expr base) {
        return base->dependsOn(found.j) == dependent ? base : nullptr;
      });
    };
    Expr right = found.right = part(true);
    found.factor = n;
    found.left = part(false);
    if (!right || !found.left)
      continue;
    // Where the range ends with a row, weights of the distance from there come apart at the ends of parts.
    found.weights.clear();
    auto [end, row] = endOfRange(found, rows);
    found.term = rules.rebuildProduct(found.body, [&](unsigned m, Expr base) -> Expr {
      if (m == n)
        return right;
      if (!end || factors[m].divides || !base->dependsOn(row) || !base->dependsOn(found.j) ||
          !isDistanceWeight(exprs, rules, base, row, found.j, end))
        return base;
      found.weights.push_back(base);
      return nullptr;
    });
    // What is summed up inside must not know the rows that it is to be shared by, ...
    SmallVector<int64_t> shared;
    for (auto &[id, extent] : rows)
      if (found.left->dependsOn(id) && !found.term->dependsOn(id))
        shared.push_back(id);
    found.range = found.last = nullptr;
    bool isSplit = !shared.empty();
    for (Expr part : partsOf(found.present)) {
      bool knows = llvm::any_of(shared, [&](int64_t id) { return part->dependsOn(id); });
      if (!knows) {
        found.range = found.range ? exprs.op("arith.andi", {found.range, part}, part->type) : part;
        continue;
      }
      // ... but for where it ends.
      isSplit &= !found.last;
      found.last = lastOf(exprs, part, exprs.index(found.j));
      isSplit &= bool(found.last);
    }
    // Parts of such a range hold elements if nothing else restricts it.
    if (found.last && !found.range && shared.size() == 1 && growsWith(found.last, shared[0]))
      found.row = shared[0];
    else
      isSplit &= !found.last;
    isSplit &= found.weights.empty() || found.last;
    IndexExtents indices = rows;
    indices.push_back({found.j, *SymExpr::parse(t->extent)});
    indices.push_back({found.axis, *SymExpr::parse(inner->extent)});
    auto isInArrays = [&](Expr e) { return readsInside(e, indices); };
    if (isSplit && (isAlways || (isInArrays(found.term) && llvm::all_of(found.weights, isInArrays))))
      return found;
  }
  return std::nullopt;
}

/// The indices of a part: with x·y elements stored for it, and x + y multiply-adds for each index that rows sum
/// up as it stands, half a part on average, x·y·w/L + (x + y)·L/2 is least at L = √(2·w·x·y/(x + y)). It is the same
/// for all sums of a row, so that their last blocks are one fold.
void Derivation::chooseBlocks(MutableArrayRef<Association> found) {
  double best = 0;
  for (const Association &a : found) {
    auto columns = a.rows.back().second.getConstant();
    double x = knownExtent(a.inner).value_or(1);
    double y = columns && a.sum->dependsOn(a.rows.back().first) ? double(std::max<int64_t>(*columns, 1)) : 1;
    best = std::max(best, std::sqrt(2 * kPerStored * x * y / (x + y)));
  }
  for (Association &a : found)
    a.block = std::clamp<int64_t>(llvm::PowerOf2Ceil(uint64_t(best)), kLeastBlock, kMostBlock);
}

void Derivation::addCosts(const Association &a, IndexExtents extents, AssociationCosts &costs) {
  SymExpr range = *SymExpr::parse(a.sum->extent), length = *SymExpr::parse(a.inner->extent);
  costs.before = costs.before + countOver(a.sum->freeIndices, extents, range);
  bool isNew = costs.scores.insert(a.inner).second;
  auto scores = [&](const SymExpr &keys) {
    std::set<int64_t> rows = a.inner->freeIndices;
    rows.erase(a.j);
    return countOver(rows, extents, keys * length);
  };
  if (isNew)
    costs.before = costs.before + scores(range);
  std::set<int64_t> stored = a.term->freeIndices;
  stored.erase(a.j);
  extents.push_back({a.axis, length});
  SymExpr rate(knownExtent(a.sum) ? kPerStoredSum : 1);
  costs.after = costs.after + rate * (countOver(stored, extents, range) + countOver(a.sum->freeIndices, extents, length));
  if (!a.last)
    return;
  // Of a range that ends with the row, the last block is summed up as it stands.
  SymExpr block(a.block / 2);
  costs.after = costs.after + countOver(a.sum->freeIndices, extents, block);
  if (isNew)
    costs.after = costs.after + scores(block);
}

/// Σ over the axis of the left operand times `stored`.
Expr Derivation::outerSum(const Association &a, Expr stored, Expr present) {
  Expr product = exprs.op("arith.mulf", {a.left, stored}, a.sum->type);
  Expr value = exprs.reduce(Monoid::add, a.inner->extent, a.axis, product, present,
                            roundingOf(a.left, a.inner, a.sum), exprs.boundName(a.inner));
  exprs.inheritPlace(a.sum, value);
  return value;
}

Expr Derivation::associated(std::vector<NestPlan> &nests, const Association &a,
                            const IndexExtents &rows) {
  if (a.last)
    return associatedBefore(nests, a, rows);
  Expr stored = exprs.reduce(Monoid::add, a.sum->extent, a.j, a.term, a.range, a.sum->rounds,
                             exprs.boundName(a.sum));
  exprs.inheritName(a.sum, stored);
  Expr value = normalise(outerSum(a, stored));
  exprs.inheritPlace(a.sum, value);
  // Over nothing the sum is 0 whatever the left operand is.
  Expr any = makeAny(a.sum->extent, a.j, a.range);
  return any == exprs.boolean(true)
             ? value
             : exprs.op("arith.select", {any, value, exprs.floatConstant(0, a.sum->type)}, a.sum->type);
}

/// The term of a sum over a part at `whole`, the index `place` of the part, with its weights of the distance to the part's
/// last index. These are the same for all parts and stored, and so is what a contraction rounds of the operand that
/// they are multiplied with.
Expr Derivation::weighedTerm(std::vector<NestPlan> &nests, const Association &a, const IndexExtents &rows, Expr place,
                             Expr whole) {
  if (a.weights.empty())
    return exprs.renamed(a.term, {{a.j, whole}});
  auto [loc, name] = placeAndName(a.sum);
  SymExpr length(a.block);
  int64_t k = exprs.freshIndex(exprs.boundName(a.sum));
  Expr distance = exprs.op("arith.subi", {exprs.index(k), exprs.extent(SymExpr(a.block - 1))}, place->type);
  Expr weight = nullptr;
  for (Expr each : a.weights) {
    Expr part = weightOver(exprs, each, a.j, distance);
    weight = weight ? exprs.op("arith.mulf", {weight, part}, weight->type) : part;
  }
  IndexExtents all = rows;
  all.push_back({k, length});
  weight = store(nests, weight, indicesOf(weight, all, rows.back().first), weight->type, name + "_weights", loc,
                 /*carries=*/false);
  auto times = [&](Expr x, Expr at) { return exprs.op("arith.mulf", {x, exprs.renamed(weight, {{k, at}})}, x->type); };
  if (!a.sum->rounds)
    return times(exprs.renamed(a.term, {{a.j, whole}}), place);
  Expr first = exprs.op("arith.muli", {exprs.op("arith.floordivsi", {exprs.index(a.j), exprs.extent(length)}, place->type),
                                       exprs.extent(length)}, place->type);
  Expr operand = times(a.right, exprs.op("arith.subi", {exprs.index(a.j), first}, place->type));
  all.back() = {a.j, *SymExpr::parse(a.sum->extent)};
  all.push_back({a.axis, *SymExpr::parse(a.inner->extent)});
  operand = store(nests, operand, indicesOf(operand, all, rows.back().first), a.sum->rounds.getValue(), name + "_weighed",
                  loc, /*carries=*/false);
  Expr term = rules.rebuildProduct(a.body, [&](unsigned n, Expr base) {
    return n == a.factor ? operand : llvm::is_contained(a.weights, base) ? nullptr : base;
  });
  return exprs.renamed(term, {{a.j, whole}});
}

/// R4 for a range that ends at an index x(i) which grows with the row i: with c = ⌊x(i₀) / L⌋, i₀ the
/// first row of its block of rows,
///   Σ over j ≤ x = Σ_e A_e · (Σ over the parts p < c of the sums of part p) + Σ over L·c ≤ j ≤ x.
/// Terms may have weights w(i, j) of the distance, w(i, j) = w(i, L·c − 1) · w(L·c − 1, L·p + L − 1) ·
/// w(L·p + L − 1, j) for the j of part p. The sums of parts, those up to each part, and what rows make of them are stored.
Expr Derivation::associatedBefore(std::vector<NestPlan> &nests, const Association &a,
                                  const IndexExtents &rows) {
  int64_t part = exprs.freshIndex("part"), place = exprs.freshIndex(exprs.boundName(a.sum));
  int64_t before = exprs.freshIndex("before");
  Type index = exprs.index(a.j)->type, type = a.sum->type;
  SymExpr range = *SymExpr::parse(a.sum->extent), length(a.block);
  SymExpr parts = SymExpr::floorDiv(range + SymExpr(a.block - 1), length);
  auto op = [&](StringRef name, Expr x, Expr y) { return exprs.op(name, {x, y}, index); };
  auto [loc, name] = placeAndName(a.sum);
  // The sums of parts.
  Expr whole = op("arith.addi", op("arith.muli", exprs.index(part), exprs.extent(length)), exprs.index(place));
  llvm::DenseMap<int64_t, Expr> split{{a.j, whole}};
  Expr inside = exprs.greater(exprs.extent(range), whole);
  // Weights come apart at the last index of each part: those of its indices, ...
  auto weighed = [&](Expr value, Expr distance) {
    for (Expr weight : a.weights)
      value = exprs.op("arith.mulf", {value, weightOver(exprs, weight, a.j, distance)}, value->type);
    return value;
  };
  Expr ofIndex = weighedTerm(nests, a, rows, exprs.index(place), whole);
  Expr ofPart = exprs.reduce(Monoid::add, length.str(), place, ofIndex, inside,
                             a.sum->rounds, exprs.boundName(a.sum));
  exprs.inheritName(a.sum, ofPart);
  IndexExtents all = rows;
  all.push_back({a.axis, *SymExpr::parse(a.inner->extent)});
  IndexExtents own = indicesOf(ofPart, all, rows.back().first);
  size_t outer = llvm::count_if(own, [&](auto &entry) {
    return entry.first != a.axis && entry.first != rows.back().first;
  });
  auto with = [&](int64_t id, const SymExpr &extent) {
    IndexExtents indices = own;
    indices.insert(indices.begin() + outer, {id, extent});
    return indices;
  };
  Expr stored = store(nests, ofPart, with(part, parts), type, name + "_parts", loc);
  // The sums of all parts before one.
  // ... from the end of a part to that of the last one before, ...
  Expr partsOn = op("arith.subi", op("arith.addi", exprs.index(part), exprs.extent(SymExpr(1))), exprs.index(before));
  Expr upTo = exprs.reduce(Monoid::add, parts.str(), part, weighed(stored, op("arith.muli", partsOn, exprs.extent(length))),
                           exprs.greater(exprs.index(before), exprs.index(part)), TypeAttr(), "part");
  exprs.inheritName(a.sum, upTo);
  TypeAttr rounds = roundingOf(a.left, a.inner, a.sum);
  Expr prefix = store(nests, upTo, with(before, parts + SymExpr(1)), rounds ? rounds.getValue() : type,
                      name + "_before", loc, /*carries=*/false);
  // What the rows make of them, in blocks that begin with the same part.
  int64_t blockOfRows = exprs.freshIndex("block"), inBlock = exprs.freshIndex(exprs.indexName(a.row));
  SymExpr size(kRowBlock), numRows = llvm::find_if(rows, [&](auto &r) { return r.first == a.row; })->second;
  Expr firstRow = op("arith.muli", exprs.index(blockOfRows), exprs.extent(size));
  Expr row = op("arith.addi", firstRow, exprs.index(inBlock));
  Expr zero = exprs.extent(SymExpr(0));
  auto partOf = [&](Expr first) {
    return op("arith.floordivsi", exprs.renamed(a.last, {{a.row, first}}), exprs.extent(length));
  };
  Expr clamped = op("arith.minsi", op("arith.maxsi", partOf(firstRow), zero), exprs.extent(parts));
  Expr value = outerSum(a, exprs.renamed(prefix, {{before, clamped}}), exprs.greater(exprs.extent(numRows), exprs.index(a.row)));
  // ... and from there to the row.
  Expr end = op("arith.subi", op("arith.muli", clamped, exprs.extent(length)), exprs.extent(SymExpr(1)));
  for (Expr weight : a.weights)
    value = exprs.op("arith.mulf", {value, exprs.renamed(weight, {{a.j, end}})}, type);
  Expr isNeeded = exprs.greater(partOf(firstRow), zero);
  // The last block has rows that are none: a weight may read what only others have.
  if (llvm::any_of(a.weights, [&](Expr weight) { return readsWith(weight, a.row); }))
    isNeeded = exprs.op("arith.andi", {isNeeded, exprs.greater(exprs.extent(numRows), exprs.index(a.row))}, isNeeded->type);
  value = exprs.op("arith.select", {isNeeded, value, exprs.floatConstant(0, type)}, type);
  value = exprs.renamed(value, {{a.row, row}});
  IndexExtents blocked;
  for (auto &entry : rows) {
    if (entry.first != a.row) {
      blocked.push_back(entry);
      continue;
    }
    blocked.push_back({blockOfRows, SymExpr::floorDiv(numRows + SymExpr(kRowBlock - 1), size)});
    blocked.push_back({inBlock, size});
  }
  Expr shared = store(nests, value, indicesOf(value, blocked, rows.back().first), type, name + "_shared", loc,
                      /*carries=*/value->dependsOn(rows.back().first));
  Expr block = op("arith.floordivsi", exprs.index(a.row), exprs.extent(size));
  Expr start = op("arith.muli", block, exprs.extent(size));
  shared = exprs.renamed(shared, {{blockOfRows, block}, {inBlock, op("arith.subi", exprs.index(a.row), start)}});
  // What is left of the range.
  Expr first = op("arith.muli", partOf(start), exprs.extent(length));
  Expr rest = exprs.reduce(Monoid::add, a.sum->extent, a.j, a.body,
                           exprs.op("arith.andi", {exprs.notBelow(exprs.index(a.j), first), a.present},
                                    a.present->type),
                           a.sum->rounds, exprs.boundName(a.sum));
  exprs.inheritName(a.sum, rest);
  return exprs.op("arith.addf", {shared, rest}, type);
}

/// What the operands of the outer contraction are rounded to: as a computed operand is, to the
/// type of the other one. Sums over a whole range leave the range of f16 where their terms do
/// not, and are kept as they are.
TypeAttr Derivation::roundingOf(Expr left, Expr inner, Expr sum) {
  if (!sum->rounds)
    return {};
  TypeAttr rounds = inner->rounds;
  if (!rounds && left->isOp("arith.extf") && left->operands[0]->kind == ExprKind::Psi)
    rounds = TypeAttr::get(left->operands[0]->type);
  return rounds && !rounds.getValue().isF16() ? rounds : TypeAttr();
}

/// Finds the sums of a value that have another side, and those inside of its other reductions, over whose indices they are
/// as they are over rows: of O_d / √(Σ_e O_e²) both.
void Derivation::findAssociations(Expr value, IndexExtents rows, bool isAlways, llvm::DenseSet<Expr> &seen,
                                  SmallVectorImpl<Association> &found) {
  isAlways &= !hasConditions(value);
  for (Expr t : outermostReductions(value)) {
    if (!seen.insert(t).second)
      continue;
    bool isLong = isFloatSum(t) && knownExtent(t).value_or(kLeastKnown) >= kLeastKnown;
    auto association = isLong ? findAssociation(t, rows, isAlways) : std::nullopt;
    if (association && (!association->last || enabled("R4"))) {
      association->rows = rows;
      found.push_back(std::move(*association));
      continue;
    }
    // What is stored for parts has all indices: not one of a range of any length more.
    if (!knownExtent(t))
      continue;
    int64_t e = openings.indexFor(t);
    auto [body, present] = exprs.open(t, e);
    IndexExtents inside = rows;
    inside.push_back({e, *SymExpr::parse(t->extent)});
    findAssociations(body, inside, isAlways && !present, seen, found);
  }
}

/// The other sides in place of sums, at every depth.
Expr Derivation::replaceSums(Expr value, llvm::DenseMap<Expr, Expr> &after) {
  return exprs.replace(value, [&](Expr e) -> Expr {
    if (Expr other = after.lookup(e))
      return other;
    if (Expr any = anyOf(e))
      return any;
    if (e->kind != ExprKind::Reduce || !knownExtent(e))
      return nullptr;
    after[e] = e;
    int64_t index = openings.indexFor(e);
    auto [body, present] = exprs.open(e, index);
    Expr other = replaceSums(body, after), where = present ? replaceSums(present, after) : nullptr;
    if (other == body && where == present)
      return e;
    return after[e] = exprs.withBody(e, index, other, where);
  });
}

Expr Derivation::associate(std::vector<NestPlan> &nests, Expr value, const IndexExtents &rows) {
  if (!enabled("R5") || !enabled("R7"))
    return value;
  AssociationCosts costs;
  SmallVector<Association> found;
  llvm::DenseSet<Expr> seen;
  findAssociations(value, rows, /*isAlways=*/true, seen, found);
  chooseBlocks(found);
  // The columns of a product count once, whoever reads them.
  llvm::DenseSet<Expr> counted;
  for (const Association &a : found)
    if (counted.insert(exprs.renamed(a.sum, {{a.rows.back().first, exprs.index(rows.back().first)}})).second)
      addCosts(a, a.rows, costs);
  if (found.empty() || !isLess(costs.after, costs.before))
    return value;
  llvm::DenseMap<Expr, Expr> after;
  int64_t last = rows.back().first;
  bool hasAxis = llvm::any_of(found, [&](const Association &a) { return a.sum->dependsOn(last); });
  for (const Association &a : found) {
    Expr sum = associated(nests, a, a.rows);
    // Beside a product of matrices, what rows have for all of its columns is found before.
    if (hasAxis && a.rows.size() == rows.size() && !a.sum->dependsOn(last) && !a.last) {
      auto [loc, name] = placeAndName(a.sum);
      sum = store(nests, sum, indicesOf(sum, rows, last), sum->type, name + "_rows", loc, /*carries=*/false);
    }
    after[a.sum] = sum;
    if (observer)
      observer->rewrote("R5", a.sum, a.j, a.body, a.present, after[a.sum]);
  }
  return replaceSums(value, after);
}

/// Whether a range that ends at an index holds an element, without a pass over it.
Expr Derivation::anyOf(Expr e) {
  if (e->kind != ExprKind::Reduce || e->monoid != Monoid::or_ || e->operands[0] != exprs.boolean(true))
    return nullptr;
  int64_t j = openings.indexFor(e);
  Expr present = exprs.open(e, j).second;
  Expr last = present ? lastOf(exprs, present, exprs.index(j)) : nullptr;
  if (!last)
    return nullptr;
  Expr any = exprs.notBelow(last, exprs.extent(SymExpr(0)));
  Expr has = makeAny(e->extent, j, nullptr);
  return has == exprs.boolean(true) ? any : exprs.op("arith.andi", {has, any}, any->type);
}
