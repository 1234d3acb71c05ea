//===- Temporaries.cpp - R7, and R5 and R4 where they lead to it -----------===//
//
// A reduction inside of another one that does not depend on all rows would be computed again
// for each of them. R7 stores it once, in a nest of its own:
//
//   Σ_e A_ie · (Σ_j B_ej · C_jd) = Σ_e A_ie · T_ed,   T_ed = Σ_j B_ej · C_jd.
//
// R5 and R1 bring a sum into this form, which is the associativity of the inner product:
//
//   Σ_j (Σ_e A_ie · B_ej) · C_jd = Σ_e A_ie · (Σ_j B_ej · C_jd).
//
// R4 splits the range of a stored sum into parts that are stored first, so that there is
// something to do for a whole machine where there are few elements.
//
//===----------------------------------------------------------------------===//
#include "lib/Conversion/DNFToONF/Derivation.h"
#include "lib/Conversion/DNFToONF/Observer.h"
#include <cmath>

using namespace mlir;
using namespace moa;

/// Indices of a part of a stored sum, and the fewest and most of one of a range that ends at another index for
/// every row.
static constexpr int64_t kPart = 256, kLeastBlock = 64, kMostBlock = 1024;
/// Rows that begin with the same part of it.
static constexpr int64_t kRowBlock = 64;
/// Multiply-adds that take as long as what becomes of one element that is stored for a part: it is written,
/// read and written again where parts are added up, and read by the rows.
static constexpr int64_t kPerStored = 1024;
/// A size that is not known when the choice is made.
static constexpr int64_t kNominal = 4096;
/// Elements that known extents alone may give a temporary.
static constexpr int64_t kMostKnown = int64_t(1) << 20;
/// Terms of a sum that is worth storing.
static constexpr int64_t kLeastTerms = 16;

static double nominal(const SymExpr &count) {
  auto value = count.evaluate([](StringRef) { return std::optional<int64_t>(kNominal); });
  return value ? double(*value) : 0;
}

static bool isFloatSum(Expr e) {
  return e->kind == ExprKind::Reduce && e->monoid == Monoid::add && isa<FloatType>(e->type);
}

static std::optional<int64_t> knownExtent(Expr reduce) {
  auto size = SymExpr::parse(reduce->extent);
  return size ? size->getConstant() : std::nullopt;
}

/// The indices of `all` that a value depends on, in the order of its array: the rows but for
/// the last axis of the result, what it is inside of, and that axis.
static IndexExtents indicesOf(Expr value, const IndexExtents &all, int64_t last) {
  IndexExtents indices;
  for (bool isLast : {false, true})
    for (auto &index : all)
      if (value->dependsOn(index.first) && (index.first == last) == isLast)
        indices.push_back(index);
  return indices;
}

//===----------------------------------------------------------------------===//
// Association
//===----------------------------------------------------------------------===//

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

/// The last index that j ≤ x, j < x and the same the other way round admit; null for others.
static Expr lastOf(ExprContext &exprs, Expr part, Expr j) {
  if (!part->isOp("arith.cmpi"))
    return nullptr;
  enum Predicate { slt = 2, sle, sgt, sge };
  auto predicate = cast<IntegerAttr>(part->attributes.get("predicate")).getInt();
  bool isBelow = predicate == slt || predicate == sle, isStrict = predicate == slt || predicate == sgt;
  if (!isBelow && predicate != sgt && predicate != sge)
    return nullptr;
  Expr index = part->operands[isBelow ? 0 : 1], bound = part->operands[isBelow ? 1 : 0];
  if (index != j || bound->dependsOn(j->id))
    return nullptr;
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

/// Whether selections decide what is needed of a value, outside of reductions.
static bool hasConditions(Expr value) {
  llvm::DenseSet<Expr> seen;
  std::function<bool(Expr)> visit = [&](Expr e) {
    return seen.insert(e).second && e->kind != ExprKind::Reduce &&
           (e->isOp("arith.select") || llvm::any_of(e->operands, visit));
  };
  return visit(value);
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
    Expr right = part(true);
    found.left = part(false);
    if (!right || !found.left)
      continue;
    found.term = rules.rebuildProduct(
        found.body, [&](unsigned m, Expr base) { return m == n ? right : base; });
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
    IndexExtents indices = rows;
    indices.push_back({found.j, *SymExpr::parse(t->extent)});
    indices.push_back({found.axis, *SymExpr::parse(inner->extent)});
    if (isSplit && (isAlways || readsInside(found.term, indices)))
      return found;
  }
  return std::nullopt;
}

/// The indices of a part: with x·y elements stored for it, and x + y multiply-adds for each index that rows sum
/// up as it stands, half a part on average, x·y·w/L + (x + y)·L/2 is least at L = √(2·w·x·y/(x + y)). It is the same
/// for all sums of a row, so that their last blocks are one fold.
void Derivation::chooseBlocks(MutableArrayRef<Association> found, const IndexExtents &rows) {
  double best = 0;
  auto columns = rows.back().second.getConstant();
  for (const Association &a : found) {
    double x = knownExtent(a.inner).value_or(1);
    double y = columns && a.sum->dependsOn(rows.back().first) ? double(std::max<int64_t>(*columns, 1)) : 1;
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
  costs.after = costs.after + countOver(stored, extents, range) +
                countOver(a.sum->freeIndices, extents, length);
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

/// R4 for a range that ends at an index x(i) which grows with the row i: with c = ⌊x(i₀) / L⌋, i₀ the
/// first row of its block of rows,
///   Σ over j ≤ x = Σ_e A_e · (Σ over the parts p < c of the sums of part p) + Σ over L·c ≤ j ≤ x.
/// The sums of parts, those up to each part, and what rows make of them are stored.
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
  Expr ofPart = exprs.reduce(Monoid::add, length.str(), place, exprs.renamed(a.term, split), inside,
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
  Expr upTo = exprs.reduce(Monoid::add, parts.str(), part, stored,
                           exprs.greater(exprs.index(before), exprs.index(part)), TypeAttr(), "part");
  exprs.inheritName(a.sum, upTo);
  TypeAttr rounds = roundingOf(a.left, a.inner, a.sum);
  Expr prefix = store(nests, upTo, with(before, parts + SymExpr(1)), rounds ? rounds.getValue() : type,
                      name + "_before", loc);
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
  value = exprs.op("arith.select", {exprs.greater(partOf(firstRow), zero), value, exprs.floatConstant(0, type)}, type);
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

Expr Derivation::associate(std::vector<NestPlan> &nests, Expr value, const IndexExtents &rows) {
  if (!enabled("R5") || !enabled("R7"))
    return value;
  AssociationCosts costs;
  SmallVector<Association> found;
  bool isAlways = !hasConditions(value);
  for (Expr t : outermostReductions(value)) {
    auto association =
        isFloatSum(t) && !knownExtent(t) ? findAssociation(t, rows, isAlways) : std::nullopt;
    if (!association || (association->last && !enabled("R4")))
      continue;
    found.push_back(std::move(*association));
  }
  chooseBlocks(found, rows);
  for (const Association &a : found)
    addCosts(a, rows, costs);
  if (found.empty() || nominal(costs.after) >= nominal(costs.before))
    return value;
  llvm::DenseMap<Expr, Expr> after;
  int64_t last = rows.back().first;
  bool hasAxis = llvm::any_of(found, [&](const Association &a) { return a.sum->dependsOn(last); });
  for (const Association &a : found) {
    Expr sum = associated(nests, a, rows);
    // Beside a product of matrices, what rows have for all of its columns is found before.
    if (hasAxis && !a.sum->dependsOn(last) && !a.last) {
      auto [loc, name] = placeAndName(a.sum);
      sum = store(nests, sum, indicesOf(sum, rows, last), sum->type, name + "_rows", loc, /*carries=*/false);
    }
    after[a.sum] = sum;
    if (observer)
      observer->rewrote("R5", a.sum, a.j, a.body, a.present, after[a.sum]);
  }
  return exprs.replace(value, [&](Expr e) {
    Expr other = after.lookup(e);
    return other ? other : anyOf(e);
  });
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

//===----------------------------------------------------------------------===//
// Storing
//===----------------------------------------------------------------------===//

/// Whether an array of these extents is no larger than the kernel's own arrays, up to a factor:
/// a workspace never grows as the product of two ranges that no array has.
bool Derivation::isAffordable(ArrayRef<SymExpr> extents) {
  int64_t known = 1;
  SmallVector<std::string> unknown;
  for (const SymExpr &extent : extents)
    if (auto size = extent.getConstant())
      known *= std::max<int64_t>(*size, 1);
    else
      unknown.push_back(extent.str());
  if (known > kMostKnown)
    return false;
  auto holdsAll = [&](Type type) {
    SmallVector<std::string> have;
    for (StringAttr extent : cast<ArrayType>(type).getShape())
      have.push_back(extent.str());
    return llvm::all_of(unknown, [&](const std::string &text) {
      auto it = llvm::find(have, text);
      if (it == have.end())
        return false;
      have.erase(it);
      return true;
    });
  };
  return llvm::any_of(kernel.getBody().getArgumentTypes(), holdsAll) ||
         llvm::any_of(kernel.getResultTypes().getAsValueRange<TypeAttr>(), holdsAll);
}

/// Where a sum was written, and what arrays are named after it.
std::pair<Location, std::string> Derivation::placeAndName(Expr sum) {
  auto place = exprs.places.find(sum);
  auto name = exprs.reductionNames.find(sum);
  return {place != exprs.places.end() ? place->second : kernel.getLoc(),
          name != exprs.reductionNames.end() ? name->second : std::string("sum")};
}

/// A name that no symbol, array or temporary has.
std::string Derivation::temporaryName(StringRef base) {
  auto isTaken = [&](const std::string &name) {
    for (ArrayAttr list : {kernel.getSymbols(), kernel.getArgNames(), kernel.getResultNames()})
      if (llvm::is_contained(list.getAsValueRange<StringAttr>(), name))
        return true;
    return llvm::any_of(temporaries, [&](const Temporary &other) { return other.name == name; });
  };
  std::string name = base.str();
  for (unsigned k = 2; isTaken(name); ++k)
    name = (base + Twine(k)).str();
  return name;
}

/// Adds the nest that stores `value` over these indices, and gives the element at them.
Expr Derivation::store(std::vector<NestPlan> &nests, Expr value, const IndexExtents &indices,
                       Type type, StringRef name, Location loc, bool carries) {
  AxisList domain;
  SmallVector<SymExpr> extents;
  IndexExtents rows;
  llvm::DenseMap<int64_t, Expr> toRows;
  SmallVector<Expr> at;
  for (auto [k, index] : llvm::enumerate(indices)) {
    auto &[id, extent] = index;
    domain.push_back({exprs.indexName(id).str(), extent.str()});
    extents.push_back(extent);
    rows.push_back({rowIndex(k, exprs.indexName(id)), extent});
    toRows[id] = exprs.index(rows.back().first);
    at.push_back(exprs.index(id));
  }
  value = exprs.renamed(value, toRows);
  auto arrayType = ArrayType::get(exprs.getContext(), extents, type);
  auto isSame = [&](const Temporary &other) { return other.value == value && other.type == arrayType; };
  unsigned number = llvm::find_if(temporaries, isSame) - temporaries.begin();
  if (number == temporaries.size()) {
    // What the value itself reads is stored in front of it.
    Expr stored = storeSums(nests, value, rows);
    number = temporaries.size();
    temporaries.push_back({temporaryName(name), arrayType, value});
    exprs.inputNames.push_back(temporaries.back().name);
    addOutput(nests, {kernel.getResultTypes().size() + number, stored, std::nullopt, 0, loc}, domain,
              carries);
  }
  unsigned result = kernel.getResultTypes().size() + number;
  Expr element = exprs.psi(kernel.getArgNames().size() + result, at, type);
  return type == value->type ? element : exprs.op("arith.extf", {element}, value->type);
}

/// Whether the terms of a sum read another reduction over a range of any length, which each part
/// would compute again.
static bool isCascade(ExprContext &exprs, Expr sum) {
  int64_t j = exprs.freshIndex(exprs.boundName(sum));
  auto [body, present] = exprs.open(sum, j);
  bool found = false;
  for (Expr part : {body, present})
    if (part)
      walk(part, [&](Expr node) {
        found |= node->kind == ExprKind::Reduce && !node->dependsOn(j) && !knownExtent(node);
      });
  return found;
}

/// R4: Σ over j < M = Σ over the parts of Σ over the j of a part, which are stored.
Expr Derivation::storeParts(std::vector<NestPlan> &nests, Expr sum, const IndexExtents &indices,
                            StringRef name, Location loc) {
  int64_t part = exprs.freshIndex("part"), place = exprs.freshIndex(exprs.boundName(sum));
  int64_t j = exprs.freshIndex(exprs.boundName(sum));
  Type index = exprs.index(j)->type;
  SymExpr range = *SymExpr::parse(sum->extent), length(kPart);
  auto [body, present] = exprs.open(sum, j);
  Expr whole = exprs.op("arith.addi",
                        {exprs.op("arith.muli", {exprs.index(part), exprs.extent(length)}, index),
                         exprs.index(place)},
                        index);
  llvm::DenseMap<int64_t, Expr> split{{j, whole}};
  Expr inside = exprs.greater(exprs.extent(range), whole);
  if (present)
    inside = exprs.op("arith.andi", {inside, exprs.renamed(present, split)}, inside->type);
  Expr ofPart = exprs.reduce(Monoid::add, length.str(), place, exprs.renamed(body, split), inside,
                             sum->rounds, exprs.boundName(sum));
  exprs.inheritName(sum, ofPart);
  SymExpr parts = SymExpr::floorDiv(range + SymExpr(kPart - 1), length);
  // Parts stand behind the rows and in front of the axes that sums have of their own.
  IndexExtents of = indices;
  size_t rows = llvm::count_if(indices, [&](auto &index) { return llvm::is_contained(rowIds, index.first); });
  bool isLastRow = rows && llvm::is_contained(rowIds, indices.back().first);
  of.insert(of.begin() + (rows - isLastRow), {part, parts});
  Expr element = store(nests, ofPart, of, sum->type, (name + "_parts").str(), loc);
  Expr result = exprs.reduce(Monoid::add, parts.str(), part, element, nullptr, TypeAttr(), "part");
  exprs.inheritName(sum, result);
  if (observer)
    observer->rewrote("R4", sum, j, body, present, result);
  return result;
}

/// Whether a reduction inside of others is stored: it depends on the index of one around it, not
/// on all rows, and is more work than to load its value. The axis that a row carries takes no
/// part: what does not depend on it is shared by the row.
bool Derivation::isWorthStoring(Expr sum, const IndexExtents &all, size_t rows,
                                std::optional<size_t> carried, bool isAlways) {
  if (!isFloatSum(sum) || knownExtent(sum).value_or(kNominal) < kLeastTerms)
    return false;
  SymExpr lost(1);
  bool isInside = false;
  size_t unknown = 0;
  SmallVector<SymExpr> extents;
  for (auto [k, index] : llvm::enumerate(all)) {
    bool isUnknown = !index.second.getConstant();
    unknown += k < rows && isUnknown;
    if (sum->dependsOn(index.first)) {
      isInside |= k >= rows;
      extents.push_back(index.second);
    } else if (k < rows && k != carried) {
      lost = lost * index.second;
    }
  }
  // Beside a result that grows with a range, nothing that grows with its square.
  size_t grows = llvm::count_if(extents, [](const SymExpr &extent) { return !extent.getConstant(); });
  if (grows > unknown)
    return false;
  // A sum over an index that is none of these is inside of something that is not known here.
  bool isKnown = llvm::all_of(sum->freeIndices, [&](int64_t id) {
    return llvm::any_of(all, [&](auto &index) { return index.first == id; });
  });
  return isInside && isKnown && nominal(lost) >= 2 && isAffordable(extents) &&
         (isAlways || readsInside(sum, all));
}

/// `outer` with the reductions in it that are stored as elements of temporaries.
Expr Derivation::storeInside(std::vector<NestPlan> &nests, Expr outer, IndexExtents all,
                             size_t rows, std::optional<size_t> carried, bool isAlways) {
  // What is stored in it depends on its own indices alone, wherever it stands.
  if (auto known = withStored.find(outer); known != withStored.end())
    return known->second;
  withStored[outer] = outer;
  int64_t e = openings.indexFor(outer);
  auto [body, present] = exprs.open(outer, e);
  all.push_back({e, *SymExpr::parse(outer->extent)});
  isAlways &= !present && !hasConditions(body);
  llvm::DenseMap<Expr, Expr> stored;
  auto visit = [&](Expr root) {
    for (Expr inner : outermostReductions(root)) {
      if (stored.contains(inner))
        continue;
      if (!isWorthStoring(inner, all, rows, carried, isAlways)) {
        if (Expr after = storeInside(nests, inner, all, rows, carried, isAlways); after != inner)
          stored[inner] = after;
        continue;
      }
      bool isOperand = llvm::any_of(rules.factors(root), [&](const FoldRules::Factor &factor) {
        return factor.base == inner && !factor.divides;
      });
      Type type = isOperand && outer->rounds ? outer->rounds.getValue() : inner->type;
      auto [loc, name] = placeAndName(inner);
      IndexExtents indices = indicesOf(inner, all, rows ? all[rows - 1].first : -1);
      Expr sum = inner;
      if (!knownExtent(inner) && enabled("R4") && !isCascade(exprs, inner))
        sum = storeParts(nests, inner, indices, name, loc);
      stored[inner] = store(nests, sum, indices, type, name, loc);
      if (observer) {
        int64_t j = exprs.freshIndex(exprs.boundName(inner));
        auto [term, where] = exprs.open(inner, j);
        observer->rewrote("R7", inner, j, term, where, stored[inner]);
      }
    }
  };
  visit(body);
  if (present)
    visit(present);
  if (stored.empty())
    return outer;
  auto after = [&](Expr e) { return exprs.replace(e, [&](Expr node) { return stored.lookup(node); }); };
  Expr result = exprs.reduce(outer->monoid, outer->extent, e, after(body), present ? after(present) : nullptr,
                             outer->rounds, exprs.boundName(outer), outer->function);
  exprs.inheritName(outer, result);
  return withStored[outer] = result;
}

Expr Derivation::storeSums(std::vector<NestPlan> &nests, Expr value, const IndexExtents &rows) {
  if (!enabled("R7"))
    return value;
  llvm::DenseMap<Expr, Expr> after;
  SmallVector<int64_t> indices;
  AxisList domain;
  for (auto &[id, extent] : rows) {
    indices.push_back(id);
    domain.push_back({exprs.indexName(id).str(), extent.str()});
  }
  std::optional<size_t> carried = chooseCarried(value, indices, domain);
  auto outside = std::exchange(withStored, llvm::DenseMap<Expr, Expr>());
  for (Expr outer : outermostReductions(value))
    after[outer] = storeInside(nests, outer, rows, rows.size(), carried, !hasConditions(value));
  withStored = std::move(outside);
  return exprs.replace(value, [&](Expr e) { return after.lookup(e); });
}
