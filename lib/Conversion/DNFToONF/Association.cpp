//===- Association.cpp - R5 and R4 for sums that rows share -------------===//
//
// R5 and R1 bring a sum of products of sums into the form that R7 stores (Temporaries.cpp). This is
// the associativity of the inner product:
//
//   Σ_j (Σ_e A_ie · B_ej) · C_jd = Σ_e A_ie · (Σ_j B_ej · C_jd).
//
// For example, (Q·Kᵀ)·V becomes Q·(Kᵀ·V), which gives linear attention.
//===----------------------------------------------------------------------===//
#include "lib/Conversion/DNFToONF/Derivation.h"
#include "lib/Conversion/DNFToONF/Distance.h"
#include "lib/Conversion/DNFToONF/IndexBounds.h"
#include "lib/Conversion/DNFToONF/Observer.h"
#include "lib/Support/Shorten.h"
#include <cmath>

using namespace mlir;
using namespace moa;

/// Least and greatest length of a part, for a range that ends at another index for every row.
static constexpr int64_t kLeastBlock = 64, kMostBlock = 1024;
/// Cost of storing one element of a part, in multiply-adds: it is written, read and written again
/// when parts are added up, and read by the rows.
static constexpr int64_t kPerStored = 1024;
/// Cost of a multiply-add with a stored sum relative to one over scores, because it reads more and
/// needs extra launches. Measured for known lengths: with operands of 64, storing pays from length
/// 1,024 on.
static constexpr int64_t kPerStoredSum = 16;
/// Most terms that a product is multiplied out to.
static constexpr unsigned kMostTerms = 8;
/// Most addends of a factor that are considered.
static constexpr size_t kMostAddends = 32;
/// Least known extent of a range for which association is considered.
static constexpr int64_t kLeastKnown = 1024;
/// Most indices by which a range may grow per row: if it grows faster, few rows share a part.
static constexpr double kMostGrowth = 4;

/// Returns the multiply-adds for all elements over these free indices, `each` being those of one.
static SymExpr countOver(const std::set<int64_t> &indices, const IndexExtents &extents, const SymExpr &each) {
  SymExpr count = each;
  for (auto &[id, extent] : extents)
    if (indices.count(id))
      count = count * extent;
  return count;
}

/// Returns the type of a parameter or temporary by its number among the arrays of the kernel.
static ArrayType typeOfArray(dnf::KernelOp kernel, ArrayRef<Temporary> temporaries, size_t number) {
  size_t inputs = kernel.getArgNames().size(), stored = inputs + kernel.getResultTypes().size();
  if (number < inputs)
    return cast<ArrayType>(kernel.getBody().getArgument(number).getType());
  assert(number >= stored && "results are not read");
  return temporaries[number - stored].type;
}

bool Derivation::readsInside(Expr e, IndexExtents indices) {
  llvm::DenseSet<Expr> seen;
  std::function<bool(Expr)> visit = [&](Expr node) {
    if (!seen.insert(node).second)
      return true;
    if (node->kind == ExprKind::Reduce) {
      int64_t id = openings.indexFor(node);
      auto [body, present] = exprs.open(node, id);
      indices.push_back({id, node->extent.getValue()});
      return visit(body) && (!present || visit(present));
    }
    if (node->kind == ExprKind::Psi && node->id >= 0) {
      ArrayType type = typeOfArray(kernel, temporaries, node->id);
      for (auto [axis, index] : llvm::enumerate(node->operands))
        if (!reads.isInside(index, type.getExtent(axis), [&](int64_t id) {
              auto known = llvm::find_if(indices, [&](const auto &entry) { return entry.first == id; });
              return known != indices.end() ? &known->second : nullptr;
            }))
          return false;
      return llvm::all_of(node->operands, visit);
    }
    // Quotients and shifts are undefined for some second operands.
    bool isPartial = node->isOp("arith.floordivsi") || node->isOp("arith.shli") || node->isOp("arith.shrsi");
    if (isPartial && node->operands[1]->kind != ExprKind::Const && node->operands[1]->kind != ExprKind::Extent)
      return false;
    return llvm::all_of(node->operands, visit);
  };
  return visit(e);
}

/// Sorts the conditions of a range into those independent of j, those that bound it by a row index,
/// and the rest. Returns false if rows bound it from both sides, because such a range is short, or
/// if it grows too fast with the row.
bool Derivation::findRange(Association &a, const IndexExtents &rows) {
  struct Other {
    Expr part, bound;
    bool isFirst;
  };
  Expr j = exprs.index(a.j);
  auto meet = [&](Expr x, Expr y) { return exprs.op(a.isFirst ? "arith.maxsi" : "arith.minsi", {x, y}); };
  SmallVector<Other> others;
  for (Expr part : conjunctsOf(a.present)) {
    if (!part->dependsOn(a.j)) {
      a.ofRow = exprs.both(a.ofRow, part);
      continue;
    }
    Expr last = lastOf(exprs, part, j), first = last ? nullptr : firstOf(exprs, part, j), bound = last ? last : first;
    auto row = llvm::find_if(rows, [&](auto &entry) {
      return bound && growthWith(bound, entry.first).value_or(0) > 0 && (!a.bound || a.row == entry.first);
    });
    if (row == rows.end()) {
      others.push_back({part, bound, bool(first)});
      continue;
    }
    if (a.bound && a.isFirst != bool(first))
      return false;
    a.isFirst = bool(first);
    a.row = row->first;
    a.bound = a.bound ? meet(a.bound, bound) : bound;
    if (!a.isFirst)
      a.ends.push_back(bound);
  }
  // A bound in the same direction that does not depend on the row is merged into the row's.
  for (const Other &other : others) {
    bool isMet = a.bound && other.bound && other.isFirst == a.isFirst && !other.bound->dependsOn(a.row);
    if (isMet)
      a.bound = meet(a.bound, other.bound);
    else
      a.range = exprs.both(a.range, other.part);
  }
  return !a.bound || *growthWith(a.bound, a.row) <= kMostGrowth;
}

/// Remarks that rows do not share a sum of products, and why.
void Derivation::remarkOnRows(const Association &a, int64_t row, const Twine &why) {
  if (isTrial || !remarked.insert(a.sum).second)
    return;
  auto [place, name] = placeAndName(a.sum);
  emitRemark(place) << "'" << name << "' is summed over '" << a.sum->extent.getValue().str() << "' for each '"
                    << exprs.indexName(row) << "', because " << why << " '" << exprs.indexName(row)
                    << "' and the index of '" << a.sum->extent.getValue().str()
                    << "': rows cannot share the sums of products in it";
}

/// Returns whether a factor is a sum over a constant range that depends on j; see takeApart().
static bool isInnerSum(Expr e, int64_t j) {
  return isFloatSum(e) && !e->getPresent() && e->dependsOn(j) && knownExtent(e).value_or(0) > 0;
}

static bool isAdded(Expr e) { return e->isOp("arith.addf") || e->isOp("arith.subf") || e->isOp("arith.negf"); }

/// Collects the addends of `e`, and whether each is subtracted. Shared subterms may make them
/// exponentially many, so sums beyond kMostAddends entries stay whole.
static void addendsOf(Expr e, bool isNegative, SmallVectorImpl<std::pair<Expr, bool>> &found) {
  if (!isAdded(e) || found.size() >= kMostAddends) {
    found.push_back({e, isNegative});
    return;
  }
  bool isFirstNegative = isNegative != e->isOp("arith.negf");
  addendsOf(e->operands[0], isFirstNegative, found);
  if (e->operands.size() > 1)
    addendsOf(e->operands[1], isNegative != e->isOp("arith.subf"), found);
}

/// Returns whether a product, or an addend in it, has an inner sum as a factor. `known` memoizes
/// shared parts.
static bool hasInnerSum(FoldRules &rules, Expr e, int64_t j, llvm::DenseMap<Expr, bool> &known) {
  if (auto [entry, isNew] = known.try_emplace(e, false); !isNew)
    return entry->second;
  bool found = isInnerSum(e, j);
  if (!found && isAdded(e))
    found = llvm::any_of(e->operands, [&](Expr part) { return hasInnerSum(rules, part, j, known); });
  else if (!found && (e->isOp("arith.mulf") || e->isOp("arith.divf")))
    found = llvm::any_of(rules.factors(e), [&](const FoldRules::Factor &factor) {
      return !factor.divides && factor.base != e && factor.base->dependsOn(j) &&
             hasInnerSum(rules, factor.base, j, known);
    });
  return known[e] = found;
}

static bool hasInnerSum(FoldRules &rules, Expr e, int64_t j) {
  llvm::DenseMap<Expr, bool> known;
  return hasInnerSum(rules, e, j, known);
}

/// Returns whether a value reads a maximum, or another reduction of the row that is no sum. Such a
/// value must not be multiplied out: x − max x is exact if x is.
static bool readsExtreme(Expr e, int64_t j) {
  return anyNode(e, [&](Expr node) {
    return node->kind == ExprKind::Reduce && node->monoid != Monoid::add && !node->dependsOn(j);
  });
}

/// Multiplies out (Σ ± aₖ)·b = Σ ± aₖ·b for factors that add up sums of products. Addends without
/// such sums stay together, so that they cancel as in the unmodified term. Their sum is at most
/// twice the factor or the other addends.
bool Derivation::multiplyOut(Expr product, bool isNegative, int64_t j, SmallVectorImpl<SharedTerm> &terms) {
  SmallVector<FoldRules::Factor> factors = rules.factors(product);
  for (auto [n, factor] : llvm::enumerate(factors)) {
    if (factor.divides || !isAdded(factor.base) || !hasInnerSum(rules, factor.base, j))
      continue;
    auto with = [&](Expr other) {
      return rules.rebuildProduct(product, [&](unsigned k, Expr base) { return k == n ? other : base; });
    };
    SmallVector<std::pair<Expr, bool>> addends;
    addendsOf(factor.base, false, addends);
    Expr rest = nullptr;
    for (auto [addend, isSubtracted] : addends) {
      if (hasInnerSum(rules, addend, j)) {
        if (!multiplyOut(with(addend), isNegative != isSubtracted, j, terms))
          return false;
        continue;
      }
      StringRef op = !rest ? "arith.negf" : isSubtracted ? "arith.subf" : "arith.addf";
      if (rest)
        rest = exprs.op(op, {rest, addend}, addend->type);
      else
        rest = isSubtracted ? exprs.op(op, {addend}, addend->type) : addend;
    }
    if (rest && readsExtreme(rest, j))
      return false;
    return !rest || multiplyOut(with(rest), isNegative, j, terms);
  }
  SharedTerm term;
  term.body = product;
  term.isNegative = isNegative;
  terms.push_back(std::move(term));
  return terms.size() <= kMostTerms;
}

/// Splits a product at its factor `number`, a sum of products, into an operand of the rows (`left`)
/// and one that depends on j (`right`). Without `number` the product has no inner sum.
bool Derivation::takeApart(SharedTerm &term, const Association &a, std::optional<unsigned> number) {
  int64_t j = a.j;
  SmallVector<FoldRules::Factor> factors = rules.factors(term.body);
  term.inner = nullptr;
  if (number) {
    term.inner = factors[*number].base;
    term.factor = *number;
    term.axis = exprs.freshIndex(exprs.boundName(term.inner));
    Expr innerBody = exprs.open(term.inner, term.axis).first;
    term.right = rules.factorsOn(innerBody, j);
    term.left = rules.factorsOn(innerBody, j, /*depend=*/false);
    if (!term.right || !term.left)
      return false;
  }
  term.weights.clear();
  term.scale = nullptr;
  term.term = rules.rebuildProduct(term.body, [&](unsigned n, Expr base) -> Expr {
    if (number && n == *number)
      return term.right;
    // If the range ends with a row, weights by the distance from there are split at the ends of
    // parts (Distance.h).
    if (factors[n].divides || !base->dependsOn(a.row) || !base->dependsOn(j) ||
        llvm::none_of(a.ends, [&](Expr end) { return isDistanceWeight(exprs, rules, base, a.row, j, end); }))
      return base;
    term.weights.push_back(base);
    return nullptr;
  });
  if (!term.term)
    term.term = exprs.floatConstant(1, term.body->type);
  return true;
}

/// Moves the factors of a term that do not depend on j to `scale`.
void Derivation::takeScaleOut(SharedTerm &term, int64_t j) {
  term.scale = rules.factorsOn(term.term, j, /*depend=*/false);
  if (term.scale)
    term.term = rules.factorsOn(term.term, j);
  if (!term.term)
    term.term = exprs.floatConstant(1, term.body->type);
}

/// Returns whether a factor of a term depends on both j and the row, so that rows cannot share the
/// sum.
static bool mixesRow(FoldRules &rules, const Expr term, int64_t j, int64_t row) {
  return llvm::any_of(rules.factors(term), [&](const FoldRules::Factor &factor) {
    return factor.base->dependsOn(j) && factor.base->dependsOn(row);
  });
}

/// Finds the associated form of the sum `t` of a row. `isAlways`: no condition decides whether `t`
/// is needed.
std::optional<Derivation::Association> Derivation::findAssociation(Expr t, const IndexExtents &rows, bool isAlways) {
  Association found;
  found.sum = t;
  int64_t j = found.j = exprs.freshIndex(exprs.boundName(t));
  std::tie(found.body, found.present) = exprs.open(t, j);
  isAlways &= !found.present;
  if (!findRange(found, rows) || !multiplyOut(found.body, false, j, found.terms))
    return std::nullopt;
  // If both axes have the same name, the index of the sum is renamed in the text.
  auto textOf = [&](Expr e, int64_t row) {
    if (exprs.indexName(row) == exprs.indexName(j))
      e = exprs.renamed(e, {{j, exprs.index(exprs.freshIndex((exprs.indexName(j) + "2").str()))}});
    return shorten(exprs.strAsWritten(e));
  };
  // In each product, split an inner sum if its right operand does not depend on a row that its left
  // operand depends on.
  bool isProduct = false;
  for (SharedTerm &term : found.terms) {
    bool isApart = false;
    SmallVector<FoldRules::Factor> factors = rules.factors(term.body);
    for (auto [n, factor] : llvm::enumerate(factors)) {
      if (factor.divides || !isInnerSum(factor.base, j) || !takeApart(term, found, n))
        continue;
      for (auto &[id, extent] : rows) {
        if (!term.left->dependsOn(id) || term.right->dependsOn(id))
          continue;
        isApart |= !mixesRow(rules, term.term, j, id);
        // Remark only on weights of indices and elements, which the user may be able to split.
        auto blocking = llvm::find_if(factors, [&, n = n, id = id](const FoldRules::Factor &other) {
          return other.base != factors[n].base && other.base->dependsOn(j) && other.base->dependsOn(id) &&
                 outermostReductions(other.base).empty() && !llvm::is_contained(term.weights, other.base);
        });
        if (!isApart && blocking != factors.end())
          remarkOnRows(found, id, textOf(blocking->base, id) + " depends on both");
      }
      if (isApart)
        break;
    }
    if (!isApart)
      takeApart(term, found, std::nullopt);
    isProduct |= isApart;
  }
  // The summand must not depend on the rows that share it, ...
  SmallVector<int64_t> shared;
  for (auto &[id, extent] : rows)
    if (t->dependsOn(id) &&
        llvm::none_of(found.terms, [&](const SharedTerm &term) { return mixesRow(rules, term.term, j, id); }))
      shared.push_back(id);
  if (shared.empty())
    return std::nullopt;
  // ... except through the bound of its range. Whether a part of the range has elements must be
  // known without a pass over it.
  auto knows = [&](Expr part) { return llvm::any_of(shared, [&](int64_t id) { return part->dependsOn(id); }); };
  bool hasWeights = llvm::any_of(found.terms, [](const SharedTerm &term) { return !term.weights.empty(); });
  if (found.bound ? shared.size() != 1 || found.row != shared[0] : !isProduct || hasWeights)
    return std::nullopt;
  auto elementWithin = [&] {
    Expr index = exprs.index(j), size = exprs.extent(t->extent.getValue());
    return anyWithin(exprs, size, conjunctsOf(found.range), index);
  };
  if (found.range && (knows(found.range) || (found.bound && !elementWithin()))) {
    if (isProduct)
      for (Expr part : conjunctsOf(found.range))
        if (knows(part) || (!lastOf(exprs, part, exprs.index(j)) && !firstOf(exprs, part, exprs.index(j))))
          remarkOnRows(found, shared[0], "the condition " + textOf(found.present, shared[0]) + " depends on both");
    return std::nullopt;
  }
  for (SharedTerm &term : found.terms) {
    takeScaleOut(term, j);
    if (isAlways)
      continue;
    IndexExtents indices = rows;
    indices.push_back({j, t->extent.getValue()});
    if (term.inner)
      indices.push_back({term.axis, term.inner->extent.getValue()});
    auto isInArrays = [&](Expr e) { return !e || readsInside(e, indices); };
    // Conditions must stay in bounds too: their guards do not apply when a whole part is computed.
    if (!llvm::all_of(ArrayRef<Expr>{term.term, term.scale, found.range, found.bound, found.ofRow}, isInArrays) ||
        !llvm::all_of(term.weights, isInArrays))
      return std::nullopt;
  }
  return found;
}

/// Chooses the length L of a part. A part stores x·y elements, and each row sums up half a part on
/// average, at x + y multiply-adds per index. The cost x·y·w/L + (x + y)·L/2 is least at L =
/// √(2·w·x·y/(x + y)). All sums of a row use one length, so that their last blocks form one fold.
void Derivation::chooseBlocks(MutableArrayRef<Association> found) {
  double best = 0;
  for (const Association &a : found) {
    auto numColumns = a.rows.back().second.getConstant();
    double y = numColumns && a.sum->dependsOn(a.rows.back().first) ? double(std::max<int64_t>(*numColumns, 1)) : 1;
    for (const SharedTerm &term : a.terms) {
      double x = term.inner ? double(knownExtent(term.inner).value_or(1)) : 1;
      best = std::max(best, std::sqrt(2 * kPerStored * x * y / (x + y)));
    }
  }
  for (Association &a : found)
    a.block = std::clamp<int64_t>(llvm::PowerOf2Ceil(uint64_t(best)), kLeastBlock, kMostBlock);
}

void Derivation::addCosts(const Association &a, const IndexExtents &extents, AssociationCosts &costs) {
  const SymExpr &range = a.sum->extent.getValue();
  // If the range ends with the row, the row sums up its last block directly.
  SymExpr block(a.block / 2);
  costs.before = costs.before + countOver(a.sum->freeIndices, extents, range);
  if (a.bound)
    costs.after = costs.after + countOver(a.sum->freeIndices, extents, block);
  SymExpr rate(knownExtent(a.sum) ? kPerStoredSum : 1);
  for (const SharedTerm &term : a.terms) {
    SymExpr length = term.inner ? term.inner->extent.getValue() : SymExpr(1);
    if (term.inner && costs.scores.insert(term.inner).second) {
      std::set<int64_t> rows = term.inner->freeIndices;
      rows.erase(a.j);
      costs.before = costs.before + countOver(rows, extents, range * length);
      if (a.bound)
        costs.after = costs.after + countOver(rows, extents, block * length);
    }
    std::set<int64_t> stored = term.term->freeIndices;
    stored.erase(a.j);
    IndexExtents all = extents;
    if (term.inner)
      all.push_back({term.axis, length});
    costs.after = costs.after + rate * (countOver(stored, all, range) + countOver(a.sum->freeIndices, extents, length));
  }
}

/// Returns Σ over the axis of the left operand times `stored`; `stored` if there is no inner sum.
Expr Derivation::contractWithRow(const Association &a, const SharedTerm &term, Expr stored, Expr present) {
  Expr value = stored;
  if (term.inner) {
    Expr product = exprs.op("arith.mulf", {term.left, stored});
    value = exprs.reduce(Monoid::add, term.inner->extent, term.axis, product, present,
                         roundingOf(term.left, term.inner, a.sum), exprs.boundName(term.inner));
    exprs.inheritPlace(a.sum, value);
  }
  return value;
}

/// Returns a ± b, or ±b without a.
Expr Derivation::addTerm(Expr a, const SharedTerm &term, Expr b) {
  if (!a)
    return term.isNegative ? exprs.op("arith.negf", {b}) : b;
  return exprs.op(term.isNegative ? "arith.subf" : "arith.addf", {a, b});
}

Expr Derivation::buildAssociated(std::vector<NestPlan> &nests, const Association &a, const IndexExtents &rows) {
  if (a.bound)
    return buildAssociatedByParts(nests, a, rows);
  Expr value = nullptr;
  for (const SharedTerm &term : a.terms) {
    Expr stored = exprs.sumOver(a.sum, a.j, term.term, a.range, term.inner ? a.sum->rounds : TypeAttr());
    exprs.inheritName(a.sum, stored);
    // R7 stores only reductions inside other ones, and this sum is in none: store it here.
    if (!term.inner) {
      auto [loc, name] = placeAndName(a.sum);
      stored = normalise(stored);
      IndexExtents indices = indicesOf(stored, rows, rows.back().first);
      stored = isFloatSum(stored) ? storeSum(nests, stored, indices, stored->type, name, loc)
                                  : store(nests, stored, indices, stored->type, name, loc);
    }
    Expr share = contractWithRow(a, term, stored);
    if (term.scale)
      share = exprs.op("arith.mulf", {term.scale, share});
    value = addTerm(value, term, share);
  }
  value = normalise(value);
  exprs.inheritPlace(a.sum, value);
  // Over an empty range the sum is 0 for every left operand.
  Expr any = makeAny(a.sum->extent, a.j, a.range);
  if (Expr bounds = anyOf(any))
    any = bounds;
  return exprs.guarded(exprs.both(any, a.ofRow), value, exprs.floatConstant(0, a.sum->type));
}

/// Returns the type that operands of the outer contraction are rounded to: as for any computed
/// operand, the type of the other operand. It is none for f16, since sums over a whole range may
/// overflow f16 even if their terms do not.
TypeAttr Derivation::roundingOf(Expr left, Expr inner, Expr sum) {
  if (!sum->rounds)
    return {};
  TypeAttr rounds = inner->rounds;
  if (!rounds && left->isOp("arith.extf") && left->operands[0]->kind == ExprKind::Psi)
    rounds = TypeAttr::get(left->operands[0]->type);
  return rounds && !rounds.getValue().isF16() ? rounds : TypeAttr();
}

/// Finds the sums of a value that can be associated, and those inside its other reductions, whose
/// indices then count as rows. For example, O_d / √(Σ_e O_e²) has both.
void Derivation::findAssociations(Expr value, IndexExtents rows, bool isAlways, llvm::DenseSet<Expr> &seen,
                                  SmallVectorImpl<Association> &found) {
  isAlways &= !hasConditions(value);
  for (Expr t : outermostReductions(value)) {
    if (!seen.insert(t).second)
      continue;
    bool isLong = isFloatSum(t) && knownExtent(t).value_or(kLeastKnown) >= kLeastKnown;
    auto association = isLong ? findAssociation(t, rows, isAlways) : std::nullopt;
    if (association && (!association->bound || enabled("R4"))) {
      association->rows = rows;
      found.push_back(std::move(*association));
      continue;
    }
    // Parts are stored for all indices around them, so ranges of unknown length are not entered.
    if (!knownExtent(t))
      continue;
    int64_t e = openings.indexFor(t);
    auto [body, present] = exprs.open(t, e);
    IndexExtents inside = rows;
    inside.push_back({e, t->extent.getValue()});
    findAssociations(body, inside, isAlways && !present, seen, found);
  }
}

/// Replaces sums by their associated forms, at every depth.
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
  // A product counts once, however many columns are read.
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
    Expr sum = buildAssociated(nests, a, a.rows);
    // Next to a product of matrices, a value that all columns of a row share is stored in advance.
    if (hasAxis && a.rows.size() == rows.size() && !a.sum->dependsOn(last) && !a.bound) {
      auto [loc, name] = placeAndName(a.sum);
      sum = store(nests, sum, indicesOf(sum, rows, last), sum->type, name + "_rows", loc,
                  /*carries=*/false);
    }
    after[a.sum] = sum;
    if (observer)
      observer->rewrote("R5", a.sum, a.j, a.body, a.present, after[a.sum]);
  }
  return replaceSums(value, after);
}

/// Returns whether a range that bounds restrict has an element, without a pass over it; null if `e`
/// is no such test.
Expr Derivation::anyOf(Expr e) {
  if (e->kind != ExprKind::Reduce || e->monoid != Monoid::or_ || e->operands[0] != exprs.boolean(true) ||
      !e->getPresent())
    return nullptr;
  int64_t j = openings.indexFor(e);
  Expr present = exprs.open(e, j).second;
  Expr index = exprs.index(j), size = exprs.extent(e->extent.getValue());
  return anyWithin(exprs, size, conjunctsOf(present), index);
}
