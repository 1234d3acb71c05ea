//===- Temporaries.cpp - R7: stores sums that rows share ------------------===//
//
// A reduction inside another one would be recomputed for each row that it does not depend on. R7
// stores it once, in a nest of its own:
//
//   Σ_e A_ie · (Σ_j B_ej · C_jd) = Σ_e A_ie · T_ed,   T_ed = Σ_j B_ej · C_jd.
//
// The same holds for every monoid. For example, the maximum and the sum of a row are stored if a
// sum over the rows reads them. Counts of terms decide whether it pays (Work.cpp).
//
// R4 splits the range of a stored sum into parts that are stored first (split-K), so that sums of
// few elements occupy a whole machine.
//
//===----------------------------------------------------------------------===//
#include "lib/Conversion/DNFToONF/Derivation.h"
#include "lib/Conversion/DNFToONF/Observer.h"

using namespace mlir;
using namespace moa;

/// Indices per part of a stored sum.
static constexpr int64_t kPart = 256;
/// Sums over at least this many indices are split.
static constexpr int64_t kLeastInParts = 4 * kPart;
/// Most elements that known extents alone may give a temporary.
static constexpr int64_t kMostKnown = int64_t(1) << 20;
/// Least terms of a reduction that is worth storing.
static constexpr int64_t kLeastTerms = 16;
/// Least recomputations for which a temporary may have one axis more than any other array.
static constexpr double kLeastPower = 1024;
/// Least ratio of the work of a shared reduction to all other work of its row.
static constexpr double kLargerThanRow = 4;

bool moa::isLess(const SymExpr &x, const SymExpr &y) {
  // Tries smaller sizes if a count exceeds 63 bits.
  for (int64_t size = kNominalSize; size > 1; size /= 16) {
    auto sized = [&](const SymExpr &count) {
      return count.evaluate([&](StringRef) { return std::optional<int64_t>(size); });
    };
    if (auto a = sized(x), b = sized(y); a && b)
      return *a < *b;
  }
  return false;
}

bool moa::isFloatSum(Expr e) {
  return e->kind == ExprKind::Reduce && e->monoid == Monoid::add && isa<FloatType>(e->type);
}

std::optional<int64_t> moa::knownExtent(ExprAttr extent) { return extent.getValue().getConstant(); }

std::optional<int64_t> moa::knownExtent(Expr reduce) { return knownExtent(reduce->extent); }

IndexExtents moa::indicesOf(Expr value, const IndexExtents &all, int64_t last) {
  IndexExtents indices;
  for (bool isLast : {false, true})
    for (auto &index : all)
      if (value->dependsOn(index.first) && (index.first == last) == isLast)
        indices.push_back(index);
  return indices;
}

/// Returns whether the first operand of an operation decides which other operands are needed.
static bool isConditional(Expr e) {
  return e->isOp("arith.select") || (e->type.isInteger(1) && (e->isOp("arith.andi") || e->isOp("arith.ori")));
}

bool moa::hasConditions(Expr value) {
  llvm::DenseSet<Expr> seen;
  std::function<bool(Expr)> visit = [&](Expr e) {
    return seen.insert(e).second && e->kind != ExprKind::Reduce &&
           (isConditional(e) || llvm::any_of(e->operands, visit));
  };
  return visit(value);
}

namespace {
/// By how many axes (one at most) and by how many indices an array exceeds another one.
struct Excess {
  unsigned axes = 0;
  double indices = 1;
};
} // namespace

/// Returns Y and X of an extent ⌊Y/X⌋, and nothing for any other extent. ⌊(Y + c)/k⌋ with numbers 0
/// ≤ c < k is at most Y, so that it counts as ⌊Y/k⌋.
static std::optional<std::pair<SymExpr, SymExpr>> asPart(const SymExpr &extent) {
  const SymExpr::Terms &terms = extent.getTerms();
  if (terms.size() != 1 || terms.begin()->second != 1)
    return std::nullopt;
  const SymExpr::Monomial &factors = terms.begin()->first;
  if (factors.size() != 1 || factors[0].second != 1 || factors[0].first->kind != SymExpr::Atom::Kind::FloorDiv)
    return std::nullopt;
  SymExpr whole = factors[0].first->lhs;
  const SymExpr &part = factors[0].first->rhs;
  if (auto k = part.getConstant())
    for (const auto &[monomial, number] : factors[0].first->lhs.getTerms())
      if (monomial.empty() && number > 0 && number < *k)
        whole = whole - SymExpr(number);
  return std::make_pair(whole, part);
}

/// Joins axes that split one: X indices and ⌊Y/X⌋ indices count as Y, since X·⌊Y/X⌋ ≤ Y. For
/// example, G groups of ⌊H/G⌋ heads are H heads. ⌊Y/k⌋ with a number k counts as Y.
static SmallVector<SymExpr> joinParts(ArrayRef<SymExpr> extents) {
  SmallVector<SymExpr> joined(extents);
  for (size_t k = 0; k < joined.size(); ++k) {
    auto part = asPart(joined[k]);
    if (!part)
      continue;
    auto other = llvm::find(joined, part->second);
    if (other == joined.end() && !part->second.getConstant())
      continue;
    joined[k] = part->first;
    if (other != joined.end()) {
      if (size_t(other - joined.begin()) < k)
        --k;
      joined.erase(other);
    }
  }
  return joined;
}

/// Returns by how much an array of these extents exceeds an array of this type; nothing if by more
/// than one axis.
static std::optional<Excess> excessOver(ArrayRef<SymExpr> extents, Type type) {
  SmallVector<SymExpr> shape;
  for (ExprAttr extent : cast<ArrayType>(type).getShape())
    shape.push_back(extent.getValue());
  SmallVector<SymExpr> have = joinParts(shape);
  Excess excess;
  for (const SymExpr &extent : extents) {
    auto it = llvm::find(have, extent);
    if (it != have.end()) {
      have.erase(it);
      continue;
    }
    ++excess.axes;
    excess.indices *= nominal(extent);
  }
  return excess.axes > 1 ? std::nullopt : std::optional(excess);
}

/// Returns whether an array of these extents is no larger than the kernel's own arrays, up to a
/// factor. So a workspace never grows as the product of two ranges that no array has. If elements
/// would be recomputed for each index of a long range (`isPower`), the array may have one more axis
/// than another one.
bool Derivation::isAffordable(ArrayRef<SymExpr> extents, bool isPower) {
  int64_t known = 1;
  SmallVector<SymExpr> unknown, joined = joinParts(extents);
  for (const SymExpr &extent : joined)
    if (auto size = extent.getConstant())
      known *= std::max<int64_t>(*size, 1);
    else
      unknown.push_back(extent);
  auto anyArray = [&](llvm::function_ref<bool(Type)> holds) {
    return llvm::any_of(kernel.getBody().getArgumentTypes(), holds) ||
           llvm::any_of(kernel.getResultTypes().getAsValueRange<TypeAttr>(), holds);
  };
  auto holdsAll = [&](Type type) {
    auto excess = excessOver(unknown, type);
    return excess && !excess->axes;
  };
  // A second temporary of the size of another one only adds a factor.
  if (known <= kMostKnown &&
      (anyArray(holdsAll) || llvm::any_of(temporaries, [&](const Temporary &other) { return holdsAll(other.type); })))
    return true;
  return isPower && anyArray([&](Type type) {
           auto excess = excessOver(joined, type);
           return excess && excess->indices <= 2 * kNominalSize;
         });
}

/// Returns where a sum was written, and the base of the names of arrays that store it.
std::pair<Location, std::string> Derivation::placeAndName(Expr sum) {
  return {exprs.placeOf(sum, kernel.getLoc()), exprs.nameOf(sum, "sum")};
}

/// Returns a name that no symbol, array or temporary has.
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

/// Adds a nest that stores `value` over these indices, unless one does. Returns the element at
/// them.
Expr Derivation::store(std::vector<NestPlan> &nests, Expr value, const IndexExtents &indices, Type type, StringRef name,
                       Location loc, bool carries, bool isWritten) {
  Domain domain;
  SmallVector<SymExpr> extents;
  IndexExtents rows;
  llvm::DenseMap<int64_t, Expr> toRows;
  SmallVector<Expr> at;
  for (auto [k, index] : llvm::enumerate(indices)) {
    auto &[id, extent] = index;
    domain.push_back({exprs.indexName(id).str(), ExprAttr::get(exprs.getContext(), extent)});
    extents.push_back(extent);
    rows.push_back({rowIndex(k, exprs.indexName(id)), extent});
    toRows[id] = exprs.index(rows.back().first);
    at.push_back(exprs.index(id));
  }
  if (Expr element = findStored(value, indices, type))
    return element;
  value = exprs.renamed(value, toRows);
  auto arrayType = ArrayType::get(exprs.getContext(), extents, type);
  auto isSame = [&](const Temporary &other) { return other.value == value && other.type == arrayType; };
  unsigned number = llvm::find_if(temporaries, isSame) - temporaries.begin();
  if (number == temporaries.size()) {
    // Reductions that the value itself reads are stored before it.
    Expr stored = storeSums(nests, isWritten ? associate(nests, normalise(value), rows) : value, rows);
    number = temporaries.size();
    temporaries.push_back({temporaryName(name), arrayType, value, value, stored});
    exprs.inputNames.push_back(temporaries.back().name);
    addOutput(nests, {kernel.getResultTypes().size() + number, stored, std::nullopt, 0, loc}, domain, carries);
  }
  return elementOf(number, value, at);
}

/// Returns whether the terms of a sum read another reduction over a range of unknown length, which
/// each part would recompute.
static bool isCascade(ExprContext &exprs, Expr sum) {
  int64_t j = exprs.freshIndex(exprs.boundName(sum));
  auto [body, present] = exprs.open(sum, j);
  auto isOuter = [&](Expr node) { return node->kind == ExprKind::Reduce && !node->dependsOn(j) && !knownExtent(node); };
  return anyNode(body, isOuter) || (present && anyNode(present, isOuter));
}

/// Splits a sum over j by R4 into a sum over parts of sums over the j of a part, and stores the
/// sums of the parts.
Expr Derivation::storeParts(std::vector<NestPlan> &nests, Expr sum, const IndexExtents &indices, StringRef name,
                            Location loc) {
  int64_t part = exprs.freshIndex("part"), place = exprs.freshIndex(exprs.boundName(sum));
  int64_t j = exprs.freshIndex(exprs.boundName(sum));
  SymExpr range = sum->extent.getValue(), length(kPart);
  auto [body, present] = exprs.open(sum, j);
  Expr whole =
      exprs.op("arith.addi", {exprs.op("arith.muli", {exprs.index(part), exprs.extent(length)}), exprs.index(place)});
  llvm::DenseMap<int64_t, Expr> split{{j, whole}};
  Expr inside = exprs.greater(exprs.extent(range), whole);
  if (present)
    inside = exprs.both(inside, exprs.renamed(present, split));
  Expr ofPart = exprs.reduce(Monoid::add, ExprAttr::get(exprs.getContext(), length), place, exprs.renamed(body, split),
                             inside, sum->rounds, exprs.boundName(sum));
  exprs.inheritName(sum, ofPart);
  SymExpr parts = SymExpr::floorDiv(range + SymExpr(kPart - 1), length);
  // The axis of parts comes after the leading rows and before the last axis.
  IndexExtents of = indices;
  size_t rows = llvm::count_if(indices, [&](auto &index) { return llvm::is_contained(rowIds, index.first); });
  bool isLastRow = rows && llvm::is_contained(rowIds, indices.back().first);
  of.insert(of.begin() + (rows - isLastRow), {part, parts});
  Expr element = store(nests, ofPart, of, sum->type, (name + "_parts").str(), loc);
  Expr result =
      exprs.reduce(Monoid::add, ExprAttr::get(exprs.getContext(), parts), part, element, nullptr, TypeAttr(), "part");
  exprs.inheritName(sum, result);
  if (observer)
    observer->rewrote("R4", sum, j, body, present, result);
  return result;
}

/// Returns whether a temporary can hold the result of a reduction.
static bool isStorable(Expr e) {
  auto integer = dyn_cast<IntegerType>(e->type);
  return e->kind == ExprKind::Reduce && (isa<FloatType>(e->type) || (integer && integer.getWidth() >= 32));
}

/// Returns whether to store a reduction that stands inside others. It must depend on the index of a
/// surrounding reduction, be independent of another surrounding index, and take more work than a
/// load. The carried axis does not count, because the row shares the value. A long reduction that
/// nothing recomputes is stored too, if few rows would otherwise share a long range (threads).
bool Derivation::isWorthStoring(Expr sum, const IndexExtents &all, size_t rows, std::optional<size_t> carried,
                                bool isAlways, std::optional<int64_t> left) {
  if (!isStorable(sum) || workOf(sum) < kLeastTerms)
    return false;
  size_t innermost = 0, ofRows = 0;
  bool isInside = false;
  SmallVector<SymExpr> extents;
  double longest = 1; // of the surrounding reductions that it depends on
  for (auto [k, index] : llvm::enumerate(all)) {
    ofRows += k < rows && !index.second.getConstant();
    if (!sum->dependsOn(index.first))
      continue;
    innermost = k;
    isInside |= k >= rows;
    extents.push_back(index.second);
    if (k >= rows)
      longest = std::max(longest, nominal(index.second));
  }
  // How often it is recomputed, and how often for indices other than the columns of a row.
  double lost = 1, beyond = 1;
  for (auto [k, index] : llvm::enumerate(all)) {
    if (sum->dependsOn(index.first) || k == carried || (k >= rows && k > innermost) || index.first == left)
      continue;
    lost *= nominal(index.second);
    if (k + 1 != rows)
      beyond *= nominal(index.second);
  }
  // A sum over any other index stands inside a reduction that is not known here.
  bool isKnown = llvm::all_of(
      sum->freeIndices, [&](int64_t id) { return llvm::any_of(all, [&](auto &index) { return index.first == id; }); });
  if (!isInside || !isKnown)
    return false;
  // A row with columns has enough threads.
  bool forThreads = !carried && longest >= kLeastPower && workOf(sum) >= kLeastPower && orderAsRead(sum, all);
  if (lost < 2 && !forThreads)
    return false;
  // A temporary has no more unknown extents than the result, unless the reduction would be
  // recomputed `kLeastPower` times or is stored for threads.
  size_t grows = llvm::count_if(joinParts(extents), [](const SymExpr &extent) { return !extent.getConstant(); });
  bool isPower = beyond >= kLeastPower;
  if (grows > std::max(ofRows, unknownOfResult) && !isPower && !forThreads)
    return false;
  return isAffordable(extents, isPower) && (isAlways || readsInside(sum, all));
}

/// Returns the indices of a value in the order of the axes of an array that it reads and that has
/// more axes. Returns nothing if there is no such array.
std::optional<IndexExtents> Derivation::orderAsRead(Expr value, const IndexExtents &all) {
  IndexExtents own = indicesOf(value, all);
  std::optional<IndexExtents> found;
  walk(value, [&](Expr node) {
    if (found || node->kind != ExprKind::Psi || node->id >= int64_t(kernel.getArgNames().size()))
      return;
    auto type = cast<ArrayType>(kernel.getBody().getArgument(node->id).getType());
    IndexExtents left = own, ordered;
    for (ExprAttr extent : type.getShape()) {
      auto it = llvm::find_if(left, [&](auto &index) { return index.second == extent.getValue(); });
      if (it == left.end())
        continue;
      ordered.push_back(*it);
      left.erase(it);
    }
    if (left.empty() && type.getRank() > int64_t(own.size()))
      found = std::move(ordered);
  });
  return found;
}

/// Replaces each row index that a reduction reads only through a group by the index of the group.
/// For example, the key head of query head h is h / (H/G). `all` then has the groups, and `at` the
/// group of each row.
Expr Derivation::indexByGroup(Expr sum, IndexExtents &all, llvm::DenseMap<int64_t, Expr> &at) {
  for (auto &[id, extent] : all) {
    Expr group = nullptr, row = exprs.index(id);
    SymExpr groups;
    if (sum->dependsOn(id))
      walk(sum, [&](Expr node) {
        if (node->kind != ExprKind::Psi || node->id >= int64_t(kernel.getArgNames().size()))
          return;
        auto type = cast<ArrayType>(kernel.getBody().getArgument(node->id).getType());
        for (auto [axis, operand] : llvm::enumerate(node->operands))
          if (operand->isOp("arith.floordivsi") && operand->operands[0] == row &&
              !operand->operands[1]->dependsOn(id)) {
            group = operand;
            groups = type.getExtent(axis);
          }
      });
    if (!group)
      continue;
    int64_t index = exprs.freshIndex(exprs.indexName(id));
    Expr grouped = exprs.replace(sum, [&](Expr node) { return node == group ? exprs.index(index) : nullptr; });
    if (grouped->dependsOn(id))
      continue;
    exprs.inheritName(sum, grouped);
    sum = grouped;
    at[index] = group;
    id = index;
    extent = groups;
  }
  return sum;
}

/// Stores a reduction over its rows, or over the groups of rows that it reads, and returns its
/// element. A long reduction that is stored for threads has the axis order of the array that it
/// reads, because the nest of a result may have the same order.
Expr Derivation::storeForRows(std::vector<NestPlan> &nests, Expr sum, IndexExtents all, int64_t last, bool isOfThreads,
                              Type type) {
  llvm::DenseMap<int64_t, Expr> at;
  auto [loc, name] = placeAndName(sum);
  Expr ofGroups = indexByGroup(sum, all, at);
  IndexExtents indices = indicesOf(ofGroups, all, last);
  if (isOfThreads && workOf(sum) >= kLeastPower)
    indices = orderAsRead(ofGroups, all).value_or(indices);
  return exprs.renamed(storeSum(nests, ofGroups, indices, type, name, loc), at);
}

/// Stores a reduction; a long sum is stored after the sums of its parts. Reductions in its terms
/// are stored before the split, because no other array has the axis of parts.
Expr Derivation::storeSum(std::vector<NestPlan> &nests, Expr sum, const IndexExtents &indices, Type type,
                          StringRef name, Location loc) {
  if (Expr element = findStored(sum, indices, type))
    return element;
  Expr value = associate(nests, sum, indices), loaded = sum;
  if (value == sum) {
    loaded = value = storeSums(nests, sum, indices);
    bool isLong = knownExtent(sum).value_or(kNominalSize) >= kLeastInParts;
    if (isFloatSum(sum) && isLong && enabled("R4") && !isCascade(exprs, value)) {
      // The parts have other indices, at which no stored element would be found.
      std::map<std::pair<Expr, bool>, Expr> known;
      loaded = value =
          readStored(value, indices, /*isInside=*/false, [](unsigned, bool isInside) { return isInside; }, known);
      value = storeParts(nests, value, indices, name, loc);
    }
  }
  Expr element = store(nests, value, indices, type, name, loc);
  setSource(element, sum, loaded);
  return element;
}

/// Returns the element of a sum that is stored for the row's columns, if a reduction over the same
/// extent reads it. Returns null otherwise.
Expr Derivation::findColumns(Expr sum, const IndexExtents &all, size_t rows) {
  if (!rows || sum->dependsOn(all[rows - 1].first))
    return nullptr;
  auto &[column, extent] = all[rows - 1];
  for (auto &index : ArrayRef(all).drop_front(rows))
    if (sum->dependsOn(index.first) && index.second == extent)
      if (Expr element = columns.lookup(exprs.renamed(sum, {{index.first, exprs.index(column)}})))
        return exprs.renamed(element, {{column, exprs.index(index.first)}});
  return nullptr;
}

/// Notifies the observer that a sum is read from a temporary.
void Derivation::notifyStored(Expr sum, Expr element) {
  if (!observer)
    return;
  int64_t j = exprs.freshIndex(exprs.boundName(sum));
  auto [term, where] = exprs.open(sum, j);
  observer->rewrote("R7", sum, j, term, where, element);
}

/// Returns the largest values in `root`, outside of reductions, that combine several reductions
/// without further indices. For example, Σ p·v / Σ p.
static SmallVector<Expr> valuesOfSums(Expr root) {
  SmallVector<Expr> found;
  llvm::DenseSet<Expr> seen;
  std::function<void(Expr)> visit = [&](Expr e) {
    if (e->kind != ExprKind::Op || !seen.insert(e).second)
      return;
    SmallVector<Expr> sums = outermostReductions(e);
    bool isValue = isa<FloatType>(e->type) && sums.size() > 1 &&
                   llvm::any_of(sums, [&](Expr sum) { return sum->freeIndices == e->freeIndices; });
    if (isValue)
      found.push_back(e);
    else if (!sums.empty())
      llvm::for_each(e->operands, visit);
  };
  visit(root);
  return found;
}

/// Returns `outer` with its stored reductions replaced by elements of temporaries.
Expr Derivation::storeInside(std::vector<NestPlan> &nests, Expr outer, IndexExtents all, size_t rows,
                             std::optional<size_t> carried, bool isAlways) {
  // `outer` is computed at the innermost index that it depends on; indices further in do not
  // recompute it.
  while (all.size() > rows && !outer->dependsOn(all.back().first))
    all.pop_back();
  // The reductions to store depend on the indices of `outer` and on how often it is recomputed.
  double again = 1;
  for (auto [k, index] : llvm::enumerate(all))
    if (!outer->dependsOn(index.first) && k != carried)
      again *= nominal(index.second);
  // R5 makes Σ_k x_k·Σ_m y_m·v_mk of Σ_m y_m·Σ_k x_k·v_mk, so that x is not recomputed for each m
  // of a longer range.
  std::optional<int64_t> exchanged = std::exchange(exchangedWith, std::nullopt);
  auto key = std::make_tuple(outer, again, isAlways, exchanged.has_value());
  if (auto known = withStored.find(key); known != withStored.end())
    return known->second;
  withStored[key] = outer;
  int64_t e = openings.indexFor(outer);
  auto [body, present] = exprs.open(outer, e);
  all.push_back({e, outer->extent.getValue()});
  isAlways &= !present && !hasConditions(body);
  // Values of several reductions, and the reductions that remain once these values are loaded.
  llvm::DenseMap<Expr, Expr> values, stored;
  auto withValues = [&](Expr e) { return exprs.replace(e, [&](Expr node) { return values.lookup(node); }); };
  auto isOperandOf = [&](Expr root, Expr e) {
    return llvm::any_of(rules.factors(root),
                        [&](const FoldRules::Factor &factor) { return factor.base == e && !factor.divides; });
  };
  // Returns the index of the exchanged sum, if the factor with `value` leaves that sum by R5.
  auto leftBy = [&](Expr root, Expr value) {
    bool leaves =
        exchanged && llvm::any_of(rules.factors(root), [&](const FoldRules::Factor &factor) {
          return !factor.base->dependsOn(*exchanged) && anyNode(factor.base, [&](Expr node) { return node == value; });
        });
    return leaves ? exchanged : std::nullopt;
  };
  auto isExchangeable = [&](Expr root, Expr inner) {
    return enabled("R5") && root == body && isFloatSum(outer) && isFloatSum(inner) && knownExtent(inner) &&
           !knownExtent(outer) && isOperandOf(root, inner);
  };
  auto visit = [&](Expr root) {
    for (Expr value : valuesOfSums(root)) {
      Expr sum = outermostReductions(value).front();
      if (!llvm::any_of(outermostReductions(value),
                        [&](Expr inner) {
                          return inner->freeIndices == value->freeIndices &&
                                 isWorthStoring(inner, all, rows, carried, isAlways, leftBy(root, inner));
                        }) ||
          !(isAlways || readsInside(value, all)))
        continue;
      Type type = isOperandOf(root, value) && outer->rounds ? outer->rounds.getValue() : value->type;
      auto [loc, name] = placeAndName(sum);
      values[value] = store(nests, value, indicesOf(value, all, rows ? all[rows - 1].first : -1), type, name, loc,
                            /*carries=*/true, /*isWritten=*/true);
    }
    for (Expr inner : outermostReductions(withValues(root))) {
      if (stored.contains(inner))
        continue;
      if (Expr element = storeScan(nests, inner, all)) {
        notifyStored(inner, stored[inner] = element);
        continue;
      }
      auto left = leftBy(root, inner);
      if (!isWorthStoring(inner, all, rows, carried, isAlways, left)) {
        if (left)
          continue;
        if (isExchangeable(root, inner))
          exchangedWith = e;
        if (Expr after = storeInside(nests, inner, all, rows, carried, isAlways); after != inner)
          stored[inner] = after;
        continue;
      }
      if (Expr element = findColumns(inner, all, rows)) {
        notifyStored(inner, stored[inner] = element);
        continue;
      }
      Type type = isOperandOf(root, inner) && outer->rounds ? outer->rounds.getValue() : inner->type;
      columns[inner] = stored[inner] = storeForRows(nests, inner, all, rows ? all[rows - 1].first : -1, !carried, type);
      notifyStored(inner, stored[inner]);
    }
  };
  visit(body);
  if (present)
    visit(present);
  if (values.empty() && stored.empty())
    return outer;
  auto after = [&](Expr e) { return exprs.replace(withValues(e), [&](Expr node) { return stored.lookup(node); }); };
  Expr newPresent = present ? after(present) : nullptr, newBody = after(body);
  return withStored[key] = exprs.withBody(outer, e, newBody, newPresent);
}

/// Stores reductions that rows share, if each row would spend most of its work on them. For
/// example, the maximum of a column in x_ij − max_k x_kj.
void Derivation::storeShared(std::vector<NestPlan> &nests, Expr value, const IndexExtents &rows,
                             std::optional<size_t> carried, llvm::DenseMap<Expr, Expr> &after) {
  SmallVector<Expr> all = outermostReductions(value);
  double numColumns = carried ? nominal(rows[*carried].second) : 1, total = numColumns;
  auto workOfRow = [&](Expr e) { return workOf(e) * (carried && e->dependsOn(rows[*carried].first) ? numColumns : 1); };
  for (Expr e : all)
    total += workOfRow(e);
  bool isAlways = !hasConditions(value);
  for (Expr e : all) {
    SmallVector<SymExpr> extents;
    double lost = 1;
    for (auto [k, index] : llvm::enumerate(rows))
      if (e->dependsOn(index.first))
        extents.push_back(index.second);
      else if (k != carried)
        lost *= nominal(index.second);
    bool isOfRows = extents.size() == e->freeIndices.size();
    if (after.contains(e) || !isStorable(e) || !isOfRows || lost < kLeastTerms || workOf(e) < kLeastTerms ||
        workOfRow(e) < kLargerThanRow * (total - workOfRow(e)) || !isAffordable(extents, /*isPower=*/false) ||
        !(isAlways || readsInside(e, rows)))
      continue;
    after[e] = storeForRows(nests, e, rows, rows.back().first, /*isOfThreads=*/false, e->type);
    notifyStored(e, after[e]);
  }
}

Expr Derivation::storeSums(std::vector<NestPlan> &nests, Expr value, const IndexExtents &rows) {
  if (!enabled("R7"))
    return value;
  llvm::DenseMap<Expr, Expr> after;
  SmallVector<int64_t> indices;
  Domain domain;
  for (auto &[id, extent] : rows) {
    indices.push_back(id);
    domain.push_back({exprs.indexName(id).str(), ExprAttr::get(exprs.getContext(), extent)});
  }
  std::optional<size_t> carried = chooseCarried(value, indices, domain);
  auto outside = std::exchange(withStored, {});
  auto columnsOutside = std::exchange(columns, llvm::DenseMap<Expr, Expr>());
  // Running sums of floats over the row's own index are left to association (R5).
  for (Expr outer : outermostReductions(value))
    if (Expr element = isFloatSum(outer) || runningValues.contains(outer) ? nullptr : storeScan(nests, outer, rows))
      notifyStored(outer, after[outer] = element);
  storeShared(nests, value, rows, carried, after);
  for (Expr outer : outermostReductions(value))
    if (!after.contains(outer))
      after[outer] = storeInside(nests, outer, rows, rows.size(), carried, !hasConditions(value));
  withStored = std::move(outside);
  columns = std::move(columnsOutside);
  return exprs.replace(value, [&](Expr e) { return after.lookup(e); });
}

/// Returns whether each term of a sum takes a reduction of its own.
static bool isOfReductions(ExprContext &exprs, Expr sum) {
  int64_t j = exprs.freshIndex(exprs.boundName(sum));
  return llvm::any_of(outermostReductions(exprs.open(sum, j).first), [&](Expr inner) { return inner->dependsOn(j); });
}

/// Stores sums of reductions inside a reduction over an axis of constant length, unmodified, if
/// some row index does not change them. For example, in O_ic = Σ_h Σ_d (Σ_j P_hij·V_hjd)·W_hdc, a
/// nest of rows i that carry d computes the inner sum once, not for every c. Sums that the row
/// computes for its own columns are not stored.
Expr Derivation::storeProducts(std::vector<NestPlan> &nests, Expr value, const IndexExtents &rows) {
  if (!enabled("R7"))
    return value;
  auto outside = std::exchange(withProducts, llvm::DenseMap<Expr, Expr>());
  Expr result = storeProducts(nests, value, rows, {}, outermostReductions(value), /*isAlways=*/true);
  withProducts = std::move(outside);
  return result;
}

Expr Derivation::storeProducts(std::vector<NestPlan> &nests, Expr value, const IndexExtents &rows,
                               const IndexExtents &inside, ArrayRef<Expr> own, bool isAlways) {
  isAlways &= !hasConditions(value);
  for (Expr t : outermostReductions(value)) {
    // The reductions to store depend on the indices of `t` alone, wherever it stands.
    if (!withProducts.try_emplace(t, t).second)
      continue;
    int64_t e = openings.indexFor(t);
    auto [body, present] = exprs.open(t, e);
    IndexExtents outer = inside;
    outer.push_back({e, t->extent.getValue()});
    // As in a result, the rows come last among the axes before the last one.
    IndexExtents all = inside;
    llvm::append_range(all, rows);
    all.push_back(outer.back());
    llvm::DenseMap<Expr, Expr> stored;
    for (Expr u : outermostReductions(body)) {
      bool isLost = llvm::any_of(rows, [&](auto &row) { return !u->dependsOn(row.first) && nominal(row.second) >= 2; });
      bool isOwn = !rows.empty() && llvm::is_contained(own, exprs.renamed(u, {{e, exprs.index(rows.back().first)}}));
      IndexExtents indices = indicesOf(u, all, e);
      SmallVector<SymExpr> extents;
      for (auto &index : indices)
        extents.push_back(index.second);
      if (!knownExtent(t) || !isFloatSum(u) || !u->dependsOn(e) || !isLost || isOwn || !isOfReductions(exprs, u) ||
          u->freeIndices.size() != indices.size() || !isAffordable(extents) ||
          !((isAlways && !present) || readsInside(u, all)))
        continue;
      bool isOperand = llvm::any_of(
          rules.factors(body), [&](const FoldRules::Factor &factor) { return factor.base == u && !factor.divides; });
      auto [loc, name] = placeAndName(u);
      stored[u] =
          store(nests, u, indices, isOperand && t->rounds ? t->rounds.getValue() : u->type, name, loc, /*carries=*/true,
                /*isWritten=*/true);
      notifyStored(u, stored[u]);
    }
    auto with = [&](Expr x) {
      x = exprs.replace(x, [&](Expr node) { return stored.lookup(node); });
      return storeProducts(nests, x, rows, outer, own, isAlways && !present);
    };
    Expr newBody = with(body), newPresent = present ? with(present) : nullptr;
    if (newBody == body && newPresent == present)
      continue;
    withProducts[t] = exprs.withBody(t, e, newBody, newPresent);
  }
  return exprs.replace(value, [&](Expr node) { return withProducts.lookup(node); });
}
