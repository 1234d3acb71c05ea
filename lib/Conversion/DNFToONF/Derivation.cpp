//===- Derivation.cpp - R0 and the assignment of passes ------------------===//
#include "lib/Conversion/DNFToONF/Derivation.h"
#include "dialects/MoA/IR/Monoid.h"
#include "dialects/MoA/IR/Subscripts.h"
#include "lib/Conversion/DNFToONF/IndexBounds.h"
#include "lib/Conversion/DNFToONF/Observer.h"
#include "lib/Support/Shorten.h"

using namespace mlir;
using namespace moa;

/// Returns whether a row may carry one accumulator per index of an axis of this extent. The axis
/// must be short and of known length, because the accumulators of a tile of rows must stay in fast
/// memory.
static bool isCarriable(ExprAttr extent) {
  constexpr int64_t longest = 1024;
  auto n = knownExtent(extent);
  return n && *n <= longest;
}

Expr Derivation::makeAny(ExprAttr extent, int64_t index, Expr present) {
  if (present)
    return exprs.reduce(Monoid::or_, extent, index, exprs.boolean(true), present, TypeAttr(), exprs.indexName(index));
  if (auto n = knownExtent(extent))
    return exprs.boolean(*n > 0);
  Type type = IndexType::get(exprs.getContext());
  Expr zero = exprs.constant(IntegerAttr::get(type, 0), type), size = exprs.extent(extent.getValue());
  return exprs.greater(size, zero);
}

Expr Derivation::makeLeftOut(const AccPlan &acc, int64_t index) {
  const Type type = acc.reduce->type;
  Expr term = exprs.constant(getIdentity(acc.reduce->monoid, type), type);
  for (Expr condition : acc.rescale.leftOut)
    term = exprs.op("arith.select", {condition, exprs.floatConstant(0, type), term}, type);
  return exprs.reduce(acc.reduce->monoid, acc.reduce->extent, index, term, acc.present, TypeAttr(),
                      exprs.indexName(index));
}

//===----------------------------------------------------------------------===//
// R0
//===----------------------------------------------------------------------===//

/// R0: ⊕_j (a ± b)·ξ = ⊕_j a·ξ ± ⊕_j b·ξ, if a and b both read results of earlier reductions over
/// the same range. Together they have no common correction factor; apart, each may have one. A
/// computed operand of a contraction is rounded once. Rounding a and b separately would round twice
/// and lose the digits that cancel, so the parts are not rounded at all.
Expr Derivation::distribute(Expr e, int64_t j, Expr body, Expr present) {
  if (!enabled("R0"))
    return nullptr;
  auto readsResult = [&](Expr part) {
    return anyNode(part, [&](Expr node) {
      return node->kind == ExprKind::Reduce && node->extent == e->extent && !node->dependsOn(j) &&
             node->freeIndices.lower_bound(0) == node->freeIndices.begin();
    });
  };
  SmallVector<FoldRules::Factor> factors = rules.factors(body);
  for (unsigned k = 0; k < factors.size(); ++k) {
    Expr sum = factors[k].base;
    if (factors[k].divides || !(sum->isOp("arith.addf") || sum->isOp("arith.subf")) || !sum->dependsOn(j) ||
        !readsResult(sum->operands[0]) || !readsResult(sum->operands[1]))
      continue;
    Expr parts[2];
    for (unsigned side : {0, 1}) {
      Expr term = rules.rebuildProduct(
          body, [&](unsigned number, Expr base) { return number == k ? sum->operands[side] : base; });
      parts[side] = normaliseReduce(exprs.sumOver(e, j, term, present));
      exprs.inheritPlace(e, parts[side]);
    }
    Expr value = exprs.withOperands(sum, {parts[0], parts[1]});
    if (observer)
      observer->rewrote("R0", e, j, body, present, value);
    return value;
  }
  return nullptr;
}

/// Applies R6 if every free index of the body is `j` or an index of a result that the body reads.
/// The sums that R6 makes then add no work per element of another axis.
Expr Derivation::expand(Expr e, int64_t j, Expr body, Expr present) {
  if (!enabled("R6") || present || e->rounds)
    return nullptr;
  std::set<int64_t> known{j};
  for (Expr result : outermostReductions(body))
    if (result->extent == e->extent && !result->dependsOn(j))
      known.insert(result->freeIndices.begin(), result->freeIndices.end());
  if (!llvm::all_of(body->freeIndices, [&](int64_t index) { return known.count(index); }))
    return nullptr;
  Expr value = expandSum(exprs, rules, e, j, body);
  if (!value)
    return nullptr;
  value = normalise(value);
  value = exprs.guarded(makeAny(e->extent, j, nullptr), value, exprs.floatConstant(0, e->type));
  if (observer)
    observer->rewrote("R6", e, j, body, present, value);
  return value;
}

/// ⊕ over { j : p ∧ q } F = ⊕ over { j : p } (q ? F : identity), for conditions q that read results
/// over the same range. The reduction can then share the range p with these results.
std::pair<Expr, Expr> Derivation::conditionInTerm(Expr e, int64_t j, Expr body, Expr present) {
  Expr range = nullptr, inner = nullptr;
  std::function<void(Expr)> sort = [&](Expr part) {
    if (part->isOp("arith.andi")) {
      sort(part->operands[0]);
      sort(part->operands[1]);
      return;
    }
    bool readsResult = llvm::any_of(outermostReductions(part),
                                    [&](Expr result) { return result->extent == e->extent && !result->dependsOn(j); });
    Expr &side = readsResult ? inner : range;
    side = exprs.both(side, part);
  };
  sort(present);
  if (!inner)
    return {body, present};
  Expr identity = exprs.constant(getIdentity(e->monoid, e->type), e->type);
  return {exprs.op("arith.select", {inner, body, identity}, e->type), range};
}

/// If the term reads results over a wider range, turns the conditions that those lack into a select
/// in the term, provided that it separates from them (R3). The reduction can then share their pass. For example, masked
/// weights may be normalised over more keys than the mask admits.
std::pair<Expr, Expr> Derivation::shareRange(Expr e, int64_t j, Expr body, Expr present) {
  StateSet results;
  std::optional<Expr> range;
  for (Expr result : outermostReductions(body)) {
    if (result->extent != e->extent || result->dependsOn(j))
      continue;
    Expr other = exprs.open(result, j).second;
    if (range && *range != other)
      return {body, present};
    range = other;
    results.insert(result);
  }
  if (!range || *range == present || !rules.splitMul(body, results, {j}))
    return {body, present};
  SmallVector<Expr> wanted = conjunctsOf(*range), have = conjunctsOf(present);
  Expr inner = nullptr;
  for (Expr part : have)
    if (!llvm::is_contained(wanted, part))
      inner = exprs.both(inner, part);
  if (!inner || !llvm::all_of(wanted, [&](Expr part) { return llvm::is_contained(have, part); }))
    return {body, present};
  Expr identity = exprs.constant(getIdentity(e->monoid, e->type), e->type);
  return {exprs.op("arith.select", {inner, body, identity}, e->type), *range};
}

Expr Derivation::normaliseReduce(Expr e) {
  int64_t j = openings.indexFor(e);
  auto [body, present] = exprs.open(e, j);
  body = normalise(body);
  if (present)
    present = normalise(present);
  if (present && e->monoid != Monoid::user)
    std::tie(body, present) = conditionInTerm(e, j, body, present);
  if (present && e->monoid == Monoid::add && isa<FloatType>(e->type))
    std::tie(body, present) = shareRange(e, j, body, present);
  if (e->monoid == Monoid::add && isa<FloatType>(e->type)) {
    body = distributePowers(e, j, body, present);
    if (Expr apart = distribute(e, j, body, present))
      return apart;
    if (Expr expanded = expand(e, j, body, present))
      return expanded;
    return hoist(e, j, body, present);
  }
  if (Expr apart = hoistFromExtreme(e, j, body, present))
    return apart;
  return exprs.reduce(e->monoid, e->extent, j, body, present, e->rounds, exprs.boundName(e), e->function);
}

Expr Derivation::normalise(Expr e) {
  if (e->operands.empty())
    return e;
  if (auto it = normalised.find(e); it != normalised.end())
    return it->second;
  Expr result;
  if (e->kind == ExprKind::Reduce) {
    result = normaliseReduce(e);
    exprs.inheritName(e, result);
  } else {
    SmallVector<Expr> operands;
    for (Expr operand : e->operands)
      operands.push_back(normalise(operand));
    result = exprs.withOperands(e, operands);
  }
  return normalised[e] = result;
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// Returns the axis to carry inside the row. The last axis is carried if some reduction does not
/// depend on it. It is also carried if it is short and a sum is a product of factors with and
/// without it, since the factors without it are then shared. Otherwise the last of the other axes
/// that some reduction does not depend on is carried, if any.
std::optional<size_t> Derivation::chooseCarried(Expr value, ArrayRef<int64_t> indices, const Domain &domain) {
  if (indices.size() < 2)
    return std::nullopt;
  size_t axis = indices.size() - 1;
  int64_t last = indices.back();
  SmallVector<Expr> reductions = outermostReductions(value);
  // An emptiness test costs nothing next to a reduction. So ignore emptiness tests:
  // carrying an axis for one saves nothing.
  llvm::erase_if(reductions, [](Expr reduce) {
    return reduce->monoid == Monoid::or_ && reduce->operands[0]->kind == ExprKind::Const;
  });
  bool carriable = isCarriable(domain.back().extent);
  for (Expr reduce : reductions) {
    if (!reduce->dependsOn(last))
      return axis;
    if (!carriable || reduce->monoid != Monoid::add)
      continue;
    int64_t j = exprs.freshIndex("j");
    Expr body = exprs.open(reduce, j).first;
    bool with = false, without = false;
    for (const FoldRules::Factor &factor : rules.factors(body)) {
      if (!factor.base->dependsOn(j))
        continue;
      (factor.base->dependsOn(last) ? with : without) = true;
    }
    if (with && without)
      return axis;
  }
  while (axis-- > 0)
    if (llvm::any_of(reductions, [&](Expr reduce) { return !reduce->dependsOn(indices[axis]); }))
      return axis;
  return std::nullopt;
}

/// Returns the free index of a row axis. There is one per position, so that outputs of one nest
/// share rows.
int64_t Derivation::rowIndex(size_t axis, StringRef name) {
  while (rowIds.size() <= axis)
    rowIds.push_back(exprs.freshIndex(name));
  return rowIds[axis];
}

/// Returns the row indices of a domain, with their extents.
IndexExtents Derivation::rowsOf(const Domain &domain) {
  IndexExtents rows;
  for (auto [k, axis] : llvm::enumerate(domain))
    rows.push_back({rowIds[k], axis.extent.getValue()});
  return rows;
}

/// Adds an output, whose value is given at the row indices of `domain`, to the nest of its rows.
void Derivation::addOutput(std::vector<NestPlan> &nests, OutputPlan output, const Domain &domain, bool carries) {
  size_t rank = domain.size();
  ArrayRef<int64_t> ids = ArrayRef<int64_t>(rowIds).take_front(rank);
  std::optional<size_t> axis;
  if (carries)
    axis = chooseCarried(output.value, ids, domain);
  if (axis) {
    // Row indices are numbered by position: the axes after the carried one move up by one.
    llvm::DenseMap<int64_t, Expr> moved;
    output.carried = *axis + 1 == rank ? ids.back() : exprs.freshIndex(exprs.indexName(ids[*axis]));
    output.carriedAxis = *axis;
    moved[ids[*axis]] = exprs.index(*output.carried);
    for (size_t k = *axis + 1; k < rank; ++k)
      moved[ids[k]] = exprs.index(ids[k - 1]);
    output.value = exprs.renamed(output.value, moved);
  }
  NestPlan plan;
  plan.storesTemporary = output.result >= kernel.getResultTypes().size();
  for (size_t k = 0; k < rank; ++k) {
    if (axis && k == *axis)
      continue;
    plan.rows.push_back(ids[plan.rows.size()]);
    plan.extents.push_back(domain[k].extent);
    plan.names.push_back(domain[k].name);
  }
  // A temporary may be computed from other temporaries, so each keeps a nest of its own.
  auto same = plan.storesTemporary ? nests.end() : llvm::find_if(nests, [&](const NestPlan &nest) {
    return !nest.storesTemporary && nest.extents == plan.extents;
  });
  if (same == nests.end())
    same = nests.insert(nests.end(), std::move(plan));
  if (output.carried) {
    ExprAttr extent = domain[*axis].extent;
    // Carried axes of one nest that differ in extent get different indices.
    int64_t id = *output.carried;
    if (same->carriedExtents.count(id) && same->carriedExtents[id] != extent) {
      int64_t fresh = exprs.freshIndex(exprs.indexName(id));
      output.value = exprs.renamed(output.value, {{id, exprs.index(fresh)}});
      output.carried = id = fresh;
    }
    same->carriedExtents[id] = extent;
  }
  same->outputs.push_back(std::move(output));
}

/// Returns the normalised value of an output at the row indices, 0 where it is absent.
Expr Derivation::valueOf(std::vector<NestPlan> &nests, ExprImporter &importer, dnf::OutputOp op, const Domain &domain) {
  SmallVector<Expr> indices;
  std::map<int64_t, ExprAttr> extents;
  for (auto [k, axis] : llvm::enumerate(domain)) {
    int64_t id = rowIndex(k, axis.name);
    indices.push_back(exprs.index(id));
    extents[id] = axis.extent;
  }
  auto [value, present] = importer.output(op, indices);
  if (present)
    present = guardSelections(exprs, kernel, reads, extents, present);
  value = guardSelections(exprs, kernel, reads, extents, value, present);
  value = exprs.replace(value, [&](Expr e) -> Expr {
    bool isOfRow =
        e->kind == ExprKind::Reduce && llvm::all_of(e->freeIndices, [&](int64_t id) { return extents.count(id); });
    return isOfRow ? moveSumIntoCascade(e) : nullptr;
  });
  if (!present)
    value = storeProducts(nests, value, rowsOf(domain));
  value = normalise(value);
  // A reduction without a let of its own takes the name of the output.
  StringRef result = cast<StringAttr>(kernel.getResultNames()[op.getResult()]).getValue();
  for (Expr reduce : outermostReductions(value))
    if (reduce->monoid != Monoid::or_)
      exprs.reductionNames.try_emplace(reduce, result.str());
  if (!present)
    return value;
  // An absent output element is 0.
  Expr zero = exprs.constant(Builder(exprs.getContext()).getZeroAttr(value->type), value->type);
  return exprs.op("arith.select", {normalise(present), value, zero}, value->type);
}

/// Returns whether an output compares floats that are computed from a maximum or minimum of floats.
/// Uses its own ExprContext, because a derivation orders expressions by their creation.
static bool readsComparedExtreme(dnf::OutputOp op) {
  ExprContext exprs(op.getContext());
  ExprImporter importer(exprs, op->getParentOfType<dnf::KernelOp>());
  SmallVector<Expr> indices;
  for (StringRef name : op.getNames().getAsValueRange<StringAttr>())
    indices.push_back(exprs.index(exprs.freshIndex(name)));
  auto [value, present] = importer.output(op, indices);
  auto isFloatExtreme = [](Expr e) {
    return e->kind == ExprKind::Reduce && isa<FloatType>(e->type) &&
           (e->monoid == Monoid::max || e->monoid == Monoid::min);
  };
  auto compares = [&](Expr e) { return e->isOp("arith.cmpf") && anyNode(e, isFloatExtreme); };
  return anyNode(value, compares) || (present && anyNode(present, compares));
}

std::vector<NestPlan> Derivation::run() {
  ExprImporter importer(exprs, kernel);
  for (StringRef name : kernel.getResultNames().getAsValueRange<StringAttr>())
    exprs.inputNames.push_back(name.str());
  std::vector<NestPlan> nests;
  SmallVector<dnf::OutputOp> outputs(kernel.getBody().front().getOps<dnf::OutputOp>());
  llvm::sort(outputs, [](dnf::OutputOp a, dnf::OutputOp b) { return a.getResult() < b.getResult(); });
  comparesExtremes = llvm::any_of(outputs, readsComparedExtreme);
  for (dnf::OutputOp op : outputs) {
    Domain domain;
    for (auto [name, extent] : llvm::zip_equal(op.getNames(), op.getDomain()))
      domain.push_back({cast<StringAttr>(name).getValue().str(), cast<ExprAttr>(extent)});
    Expr value = valueOf(nests, importer, op, domain);
    IndexExtents rows = rowsOf(domain);
    unknownOfResult = llvm::count_if(rows, [](auto &row) { return !row.second.getConstant(); });
    value = associate(nests, value, rows);
    value = storeSums(nests, value, rows);
    addOutput(nests, {op.getResult(), value, std::nullopt, 0, op.getLoc()}, domain);
  }
  // Nests of temporaries come first: an output that joined an earlier nest may read later
  // temporaries.
  std::stable_partition(nests.begin(), nests.end(), [](const NestPlan &nest) { return nest.storesTemporary; });
  joinNests(nests);
  readStored(nests);
  joinNests(nests);
  orderNests(nests);
  for (NestPlan &nest : nests) {
    carryInside(nest);
    exchangeReductions(nest);
    separateReductions(nest);
    planFolds(nest);
  }
  if (observer)
    observer->planned(kernel, exprs, rules, nests);
  return nests;
}

//===----------------------------------------------------------------------===//
// Passes
//===----------------------------------------------------------------------===//

void Derivation::addReduction(NestPlan &nest, Expr reduce) {
  if (nest.find(reduce))
    return;
  auto acc = std::make_unique<AccPlan>();
  acc->reduce = reduce;
  StringRef monoid = reduce->function ? reduce->function.getValue() : stringifyMonoid(reduce->monoid);
  acc->name = exprs.nameOf(reduce, monoid);
  auto [it, inserted] = nest.foldIndex.try_emplace(reduce->extent, 0);
  if (inserted)
    it->second = exprs.freshIndex(exprs.boundName(reduce));
  std::tie(acc->body, acc->present) = exprs.open(reduce, it->second);
  for (auto &[id, extent] : nest.carriedExtents)
    if (reduce->dependsOn(id))
      acc->carried = id;
  nest.accs.push_back(std::move(acc));
}

/// Returns whether a condition on `index`, at any depth, decides which terms of a reduction over it
/// are needed.
static bool hasConditionsOn(int64_t index, Expr term, Expr present) {
  auto hasCondition = [&](Expr e) {
    bool isLogic = e->type.isInteger(1) && (e->isOp("arith.andi") || e->isOp("arith.ori"));
    Expr condition = e->kind == ExprKind::Reduce          ? e->getPresent()
                     : isLogic || e->isOp("arith.select") ? e->operands[0]
                                                          : nullptr;
    return condition && condition->dependsOn(index);
  };
  return (present && present->dependsOn(index)) || anyNode(term, hasCondition);
}

/// Returns whether the row may keep `sum`, a reduction inside `t`, as a state that carries the axis
/// of `t`. The row then computes it at all indices of the axis. That is safe if `t` evaluates `sum`
/// at every index of its axis, or if no read of `sum` can be out of bounds. For example, in Σ over { e < 8 : e < N }
/// of (Σ_j A_j·B_je)² with B of N columns neither holds.
static bool mayCarry(ExprContext &exprs, Derivation &derivation, const NestPlan &nest, Expr t, int64_t axis, Expr sum) {
  auto [term, present] = exprs.open(t, axis);
  if (!hasConditionsOn(axis, term, present))
    return true;
  IndexExtents indices = nest.rowExtents();
  indices.push_back({axis, t->extent.getValue()});
  return derivation.readsInside(sum, indices);
}

/// Returns the reductions that are states of folds of the row: those that depend on row indices
/// alone, or also on one carriable index. Other reductions are computed where they are used.
SmallVector<Expr> Derivation::rowReductions(const NestPlan &nest) {
  SmallVector<Expr> found;
  auto visit = [&](Expr node) {
    if (node->kind != ExprKind::Reduce || llvm::is_contained(found, node))
      return;
    unsigned carried = 0;
    for (int64_t id : node->freeIndices) {
      if (llvm::is_contained(nest.rows, id))
        continue;
      auto it = nest.carriedExtents.find(id);
      if (it == nest.carriedExtents.end() || !isCarriable(it->second))
        return;
      // The guard of a fold is the same for all elements of the axis.
      if (node->getPresent() && node->getPresent()->dependsOn(id))
        return;
      ++carried;
    }
    if (carried <= 1)
      found.push_back(node);
  };
  for (const OutputPlan &output : nest.outputs)
    walk(output.value, visit);
  for (int64_t id : nest.innerAxes)
    for (size_t k = 0; k < found.size(); ++k)
      if (found[k]->extent == nest.carriedExtents.at(id) && !found[k]->dependsOn(id)) {
        auto visitCarried = [&, t = found[k]](Expr node) {
          if (node->kind != ExprKind::Reduce || !node->dependsOn(id) || mayCarry(exprs, *this, nest, t, id, node))
            visit(node);
        };
        auto [term, present] = exprs.open(found[k], id);
        walk(term, visitCarried);
        if (present)
          walk(present, visitCarried);
      }
  llvm::sort(found, [](Expr a, Expr b) { return a->serial < b->serial; });
  return found;
}

/// Carries the axis of a reduction of the row whose inner sums share work over its indices. The row
/// keeps the inner sums as states, which the reduction then reads. For example, in Σ_e (Σ_j
/// A_j·B_je)² the row carries e.
void Derivation::carryInside(NestPlan &nest) {
  for (Expr t : rowReductions(nest)) {
    auto hasExtent = [&](auto &axis) { return axis.second == t->extent; };
    if (!isCarriable(t->extent) || llvm::any_of(nest.carriedExtents, hasExtent))
      continue;
    int64_t e = exprs.freshIndex(exprs.boundName(t));
    auto isOfRow = [&](int64_t id) { return id == e || llvm::is_contained(nest.rows, id); };
    bool isUsed = llvm::any_of(outermostReductions(exprs.open(t, e).first), [&](Expr sum) {
      if (sum->monoid != Monoid::add || !sum->dependsOn(e) || !llvm::all_of(sum->freeIndices, isOfRow) ||
          (sum->getPresent() && sum->getPresent()->dependsOn(e)) || !mayCarry(exprs, *this, nest, t, e, sum))
        return false;
      // The shared work is a reduction that depends on j, and so is no state of the row, but not on
      // e.
      int64_t j = exprs.freshIndex(exprs.boundName(sum));
      return llvm::any_of(rules.factors(exprs.open(sum, j).first), [&](const FoldRules::Factor &factor) {
        return !factor.base->dependsOn(e) &&
               llvm::any_of(outermostReductions(factor.base), [&](Expr inner) { return inner->dependsOn(j); });
      });
    });
    if (!isUsed)
      continue;
    nest.carriedExtents[e] = t->extent;
    nest.innerAxes.push_back(e);
  }
}

void Derivation::collectReductions(NestPlan &nest) {
  SmallVector<Expr> found = rowReductions(nest);
  // A fold over a carried axis that reads a state of this axis uses the same index.
  for (auto &[id, extent] : nest.carriedExtents) {
    bool isFree = true, isRead = false;
    for (Expr reduce : found) {
      if (reduce->extent != extent)
        continue;
      isFree &= !reduce->dependsOn(id);
      walk(exprs.open(reduce, id).first,
           [&](Expr node) { isRead |= node->dependsOn(id) && llvm::is_contained(found, node); });
    }
    if (isFree && isRead)
      nest.foldIndex.try_emplace(extent, id);
  }
  for (Expr reduce : found)
    addReduction(nest, reduce);
}

/// Returns the place where a state was written, and its name there.
std::pair<Location, std::string> Derivation::placeOf(const AccPlan &acc) {
  Location place = exprs.placeOf(acc.reduce, kernel.getLoc());
  auto named = dyn_cast<NameLoc>(place);
  std::string text = getText(place).str();
  return {place, named ? named.getName().str() : text.empty() ? acc.name : text};
}

void Derivation::remark(const AccPlan &acc) {
  auto [place, name] = placeOf(acc);
  InFlightDiagnostic remark = emitRemark(place);
  remark << "'" << name << "' takes another pass over '" << acc.reduce->extent.getValue().str()
         << "': " << acc.rescale.reason << ", blocked by " << shorten(exprs.strAsWritten(acc.rescale.blocked));
  for (Expr earlier : exprs.writtenReductions(acc.rescale.blocked))
    remark.attachNote(exprs.places.find(earlier)->second) << "'" << exprs.writtenText(earlier) << "' is computed here";
}

/// Remarks that two passes over one extent stay apart only because of the conditions of their
/// terms.
void Derivation::remarkOnRange(const AccPlan &acc, const AccPlan &other) {
  auto rangeOf = [&](const AccPlan &a) {
    return a.present ? "where " + shorten(exprs.strAsWritten(a.present)) : std::string("everywhere");
  };
  auto [place, name] = placeOf(acc);
  emitRemark(place) << "'" << name << "' takes another pass over '" << acc.reduce->extent.getValue().str()
                    << "': its terms are present " << rangeOf(acc) << ", those of '" << placeOf(other).second << "' "
                    << rangeOf(other);
}

/// Assigns the first pass in which `acc` can run: after everything it reads, or together with it if
/// R2 pairs the reductions and R3 rescales `acc`.
void Derivation::assignPass(NestPlan &nest, AccPlan &acc) {
  auto planOf = [&](Expr reduce) -> AccPlan & { return *nest.find(reduce); };
  auto sameRange = [&](const AccPlan &other) {
    return other.reduce->extent == acc.reduce->extent && other.present == acc.present;
  };
  unsigned pass = 0;
  for (Expr dep : acc.deps) {
    AccPlan &other = planOf(dep);
    // Terms that the state leaves out join it only after the fold.
    bool mayShare = enabled("R2") && sameRange(other) && !other.carried && other.rescale.leftOut.empty();
    pass = std::max(pass, other.pass + (mayShare ? 0 : 1));
  }
  acc.pass = pass;
  for (Expr dep : acc.deps)
    if (AccPlan &other = planOf(dep); other.pass == pass)
      acc.states.insert(dep);
  if (acc.states.empty())
    return;
  SmallVector<int64_t> indices{nest.foldIndex[acc.reduce->extent]};
  if (acc.carried)
    indices.push_back(*acc.carried);
  if (acc.present && rules.reads(acc.present, acc.states)) {
    acc.rescale.blocked = acc.present;
    acc.rescale.reason = "its range depends on an earlier result";
  } else {
    acc.rescale =
        rules.rescale(acc.reduce, acc.body, acc.states, indices, [&](Expr state) { return planOf(state).body; });
    if (!acc.rescale.valid() && !acc.carried && rescaleMoments(nest, acc))
      return;
  }
  if (acc.rescale.valid() && enabled("R3"))
    return;
  if (!acc.rescale.valid() && !isTrial)
    remark(acc);
  if (observer)
    observer->refused(acc);
  acc.states.clear();
  acc.rescale = RescaleRule();
  acc.pass = pass + 1;
}

/// Applies R3 to a sum of powers of differences. The sums that the rescale adds become states of the
/// same fold, before `acc`.
bool Derivation::rescaleMoments(NestPlan &nest, AccPlan &acc) {
  if (!enabled("R3"))
    return false;
  int64_t j = nest.foldIndex[acc.reduce->extent];
  RescaleRule rescale = rules.moments(acc.reduce, acc.body, acc.present, makeAny(acc.reduce->extent, j, acc.present),
                                      acc.states, j, [&](Expr state) { return nest.find(state)->body; });
  bool isOfFold = rescale.valid() && llvm::all_of(rescale.others, [&](const RescaleRule::Other &other) {
                    AccPlan *plan = nest.find(other.sum);
                    return !plan || !isAssigned(nest, *plan, acc) ||
                           (plan->pass == acc.pass && plan->present == acc.present && !plan->carried);
                  });
  if (!isOfFold)
    return false;
  if (!isTrial)
    for (const RescaleRule::Other &other : rescale.others)
      exprs.reductionNames.try_emplace(other.sum, acc.name + "_moment" + std::to_string(other.degree));
  acc.rescale = std::move(rescale);
  acc.body = acc.rescale.term;
  return true;
}

/// Returns whether `acc` precedes `other` among the states.
bool Derivation::isAssigned(const NestPlan &nest, const AccPlan &acc, const AccPlan &other) {
  for (auto &plan : nest.accs)
    if (plan.get() == &acc || plan.get() == &other)
      return plan.get() == &acc;
  return false;
}

/// Places the sums that the rescale of state k adds before state k. Returns whether the order
/// changed.
bool Derivation::addOthers(NestPlan &nest, size_t k) {
  bool moved = false;
  AccPlan &acc = *nest.accs[k];
  for (const RescaleRule::Other &other : acc.rescale.others) {
    addReduction(nest, other.sum);
    auto it = llvm::find_if(nest.accs, [&](auto &a) { return a->reduce == other.sum; });
    if (isAssigned(nest, **it, acc))
      continue;
    std::unique_ptr<AccPlan> plan = std::move(*it);
    nest.accs.erase(it);
    nest.accs.insert(nest.accs.begin() + k, std::move(plan));
    moved = true;
  }
  return moved;
}

/// R2: moves a pass to the next later pass over the same range, if nothing up to that pass needs
/// its results.
void Derivation::delayStates(NestPlan &nest) {
  auto isSameRange = [](const AccPlan &a, const AccPlan &b) {
    return a.reduce->extent == b.reduce->extent && a.present == b.present;
  };
  for (auto &first : nest.accs) {
    SmallVector<AccPlan *> group;
    unsigned later = first->pass;
    for (auto &acc : nest.accs)
      if (isSameRange(*acc, *first)) {
        if (acc->pass == first->pass)
          group.push_back(acc.get());
        else if (acc->pass > first->pass)
          later = later == first->pass ? acc->pass : std::min(later, acc->pass);
      }
    bool isNeeded = llvm::any_of(nest.accs, [&](auto &acc) {
      return acc->pass <= later && !llvm::is_contained(group, acc.get()) &&
             llvm::any_of(group, [&](AccPlan *member) { return llvm::is_contained(acc->deps, member->reduce); });
    });
    if (later > first->pass && !isNeeded)
      for (AccPlan *member : group)
        member->pass = later;
  }
}

void Derivation::planFolds(NestPlan &nest) {
  collectReductions(nest);
  llvm::DenseSet<Expr> members;
  for (auto &acc : nest.accs)
    members.insert(acc->reduce);
  for (size_t k = 0; k < nest.accs.size(); ++k) {
    AccPlan &acc = *nest.accs[k];
    llvm::SetVector<Expr> deps;
    llvm::DenseSet<Expr> seen;
    std::function<void(Expr)> visit = [&](Expr node) {
      if (!seen.insert(node).second)
        return;
      if (members.contains(node)) {
        deps.insert(node);
        return;
      }
      for (Expr operand : node->operands)
        visit(operand);
    };
    visit(acc.body);
    if (acc.present)
      visit(acc.present);
    acc.deps.assign(deps.begin(), deps.end());
    assignPass(nest, acc);
    if (addOthers(nest, k)) {
      for (const RescaleRule::Other &other : acc.rescale.others)
        members.insert(other.sum);
      --k;
      continue;
    }
    // A state that may end singular needs to know whether its range is empty.
    if (llvm::any_of(acc.rescale.singular, [](double s) { return s == s; })) {
      Expr any = makeAny(acc.reduce->extent, nest.foldIndex[acc.reduce->extent], acc.present);
      if (any->kind == ExprKind::Reduce && members.insert(any).second)
        addReduction(nest, any);
    }
    // R3 for an extreme: a second state collects the 0 of each term that the state leaves out.
    if (!acc.rescale.leftOut.empty()) {
      Expr left = makeLeftOut(acc, nest.foldIndex[acc.reduce->extent]);
      if (!isTrial)
        exprs.reductionNames.try_emplace(left, acc.name + "_zeros");
      if (members.insert(left).second)
        addReduction(nest, left);
    }
  }
  bool pair = enabled("R2");
  if (pair)
    delayStates(nest);
  for (auto &acc : nest.accs) {
    auto fold = llvm::find_if(nest.folds, [&](const FoldPlan &f) {
      return pair && f.pass == acc->pass && f.extent == acc->reduce->extent && f.present == acc->present;
    });
    bool isNew = fold == nest.folds.end();
    if (isNew && pair && !isTrial && acc->reduce->monoid != Monoid::or_) {
      auto other = llvm::find_if(nest.folds, [&](const FoldPlan &f) {
        return f.pass == acc->pass && f.extent == acc->reduce->extent && f.accs.front()->reduce->monoid != Monoid::or_;
      });
      if (other != nest.folds.end())
        remarkOnRange(*acc, *other->accs.front());
    }
    if (isNew)
      fold = nest.folds.insert(nest.folds.end(),
                               {acc->pass, acc->reduce->extent, acc->present, nest.foldIndex[acc->reduce->extent], {}});
    fold->accs.push_back(acc.get());
  }
  llvm::stable_sort(nest.folds, [](const FoldPlan &a, const FoldPlan &b) { return a.pass < b.pass; });
}
