//===- ReadStored.cpp - reads values that are stored anyway --------------===//
//
// R7 decides separately for each place whether a reduction is stored (Temporaries.cpp). An element
// that is stored for one place serves the others too:
//
//  1. A nest that has the states of a temporary anyway stores it. For example, the nest of
//     attention has the maximum of each row, which a sum over the rows reads.
//  2. Other nests load it. For example, with U = V + A·V stored, U + A·U also reads U_id where it
//     stands alone.
//
//===----------------------------------------------------------------------===//
#include "lib/Conversion/DNFToONF/Derivation.h"

using namespace mlir;
using namespace moa;

//===----------------------------------------------------------------------===//
// Elements of temporaries
//===----------------------------------------------------------------------===//

/// Returns the element of temporary `number` at these indices, as a value of the type of `value`.
Expr Derivation::elementOf(unsigned number, Expr value, ArrayRef<Expr> at) {
  Type type = temporaries[number].type.getElementType();
  Expr element = exprs.psi(firstTemporary() + number, at, type);
  return type == value->type ? element : exprs.op("arith.extf", {element}, value->type);
}

/// Returns whether two values may be equal up to the names of their indices; a cheap filter.
static bool isLike(Expr a, Expr b) {
  return a->kind == b->kind && a->type == b->type && a->height == b->height && a->extent == b->extent &&
         a->monoid == b->monoid && a->rounds == b->rounds && a->op == b->op &&
         a->operands.size() == b->operands.size() && a->freeIndices.size() == b->freeIndices.size();
}

/// Returns the element of a temporary of this type that holds `value`; null if there is none.
/// `value` depends on no index but `indices`. The axes of the temporary may be in another order.
Expr Derivation::findStored(Expr value, const IndexExtents &indices, Type type) {
  constexpr size_t most = 5;
  for (auto [number, temporary] : llvm::enumerate(temporaries)) {
    ArrayType array = temporary.type;
    if (!(isLike(temporary.source, value) || isLike(temporary.loaded, value)) || array.getElementType() != type ||
        array.getRank() != int64_t(indices.size()))
      continue;
    SmallVector<unsigned> order = llvm::to_vector(llvm::seq<unsigned>(indices.size()));
    do {
      llvm::DenseMap<int64_t, Expr> toRows;
      SmallVector<Expr> at;
      bool isSame = true;
      for (auto [axis, place] : llvm::enumerate(order)) {
        auto &[id, extent] = indices[place];
        isSame &= array.getExtent(axis) == extent;
        toRows[id] = exprs.index(rowIndex(axis, exprs.indexName(id)));
        at.push_back(exprs.index(id));
      }
      Expr atRows = isSame ? exprs.renamed(value, toRows) : nullptr;
      if (isSame && (atRows == temporary.source || atRows == temporary.loaded))
        return elementOf(number, value, at);
    } while (order.size() <= most && std::next_permutation(order.begin(), order.end()));
  }
  return nullptr;
}

/// Records that the temporary of `element` holds `source`, its value before anything in it is
/// stored, and `loaded`, the same with loads in it.
void Derivation::setSource(Expr element, Expr source, Expr loaded) {
  if (element->isOp("arith.extf"))
    element = element->operands[0];
  Temporary &temporary = temporaries[element->id - firstTemporary()];
  llvm::DenseMap<int64_t, Expr> toRows;
  for (auto [axis, at] : llvm::enumerate(element->operands))
    toRows[at->id] = exprs.index(rowIndex(axis, exprs.indexName(at->id)));
  temporary.source = exprs.renamed(source, toRows);
  temporary.loaded = exprs.renamed(loaded, toRows);
}

//===----------------------------------------------------------------------===//
// Which nests read which
//===----------------------------------------------------------------------===//

/// Returns for each nest the nests that store its operands, directly or indirectly.
Derivation::NestOrder Derivation::sourcesOf(ArrayRef<NestPlan> nests) {
  const int64_t first = kernel.getArgNames().size();
  llvm::DenseMap<int64_t, size_t> storedBy;
  for (auto [n, nest] : llvm::enumerate(nests))
    for (const OutputPlan &output : nest.outputs)
      storedBy[first + output.result] = n;
  NestOrder direct(nests.size()), all(nests.size());
  for (auto [n, nest] : llvm::enumerate(nests))
    for (const OutputPlan &output : nest.outputs)
      walk(output.value, [&, n = n](Expr node) {
        if (node->kind != ExprKind::Psi || node->id < first)
          return;
        auto source = storedBy.find(node->id);
        if (source != storedBy.end() && source->second != n && !llvm::is_contained(direct[n], source->second))
          direct[n].push_back(source->second);
      });
  for (size_t n = 0; n < nests.size(); ++n) {
    SmallVector<size_t, 4> open(direct[n]);
    while (!open.empty()) {
      size_t source = open.pop_back_val();
      if (llvm::is_contained(all[n], source))
        continue;
      all[n].push_back(source);
      llvm::append_range(open, direct[source]);
    }
  }
  return all;
}

/// Moves nests before the nests that read their results; keeps the order otherwise.
void Derivation::orderNests(std::vector<NestPlan> &nests) {
  NestOrder sources = sourcesOf(nests);
  std::vector<NestPlan> ordered;
  SmallVector<bool> isDone(nests.size(), false);
  std::function<void(size_t)> take = [&](size_t n) {
    if (std::exchange(isDone[n], true))
      return;
    SmallVector<size_t, 4> before(sources[n]);
    llvm::sort(before);
    llvm::for_each(before, take);
    ordered.push_back(std::move(nests[n]));
  };
  for (size_t n = 0; n < nests.size(); ++n)
    take(n);
  nests = std::move(ordered);
}

//===----------------------------------------------------------------------===//
// 1. Nests that have the states
//===----------------------------------------------------------------------===//

/// Returns whether a nest computes all reductions of another nest's outputs over the same rows.
static bool computesAllOf(const NestPlan &nest, const NestPlan &other) {
  llvm::DenseSet<Expr> has;
  for (const OutputPlan &output : nest.outputs)
    walk(output.value, [&](Expr node) {
      if (node->kind == ExprKind::Reduce)
        has.insert(node);
    });
  return llvm::all_of(other.outputs, [&](const OutputPlan &output) {
    SmallVector<Expr> reductions = outermostReductions(output.value);
    return !output.carried && !reductions.empty() && llvm::all_of(reductions, [&](Expr e) { return has.contains(e); });
  });
}

/// Merges the nest of a temporary into another nest over the same rows that computes its reductions
/// anyway.
void Derivation::joinNests(std::vector<NestPlan> &nests) {
  for (size_t n = 0; n < nests.size();) {
    if (!nests[n].storesTemporary) {
      ++n;
      continue;
    }
    NestOrder sources = sourcesOf(nests);
    auto into = llvm::find_if(nests, [&](const NestPlan &other) {
      size_t k = &other - nests.data();
      return k != n && other.extents == nests[n].extents && other.rows == nests[n].rows &&
             !llvm::is_contained(sources[k], n) && !llvm::is_contained(sources[n], k) && computesAllOf(other, nests[n]);
    });
    if (into == nests.end()) {
      ++n;
      continue;
    }
    for (OutputPlan &output : nests[n].outputs)
      into->outputs.push_back(std::move(output));
    nests.erase(nests.begin() + n);
  }
}

//===----------------------------------------------------------------------===//
// 2. Nests that load
//===----------------------------------------------------------------------===//

/// Replaces values that temporaries hold by loads. `mayRead` says whether a temporary may be
/// loaded, inside or outside of a reduction.
Expr Derivation::readStored(Expr value, const IndexExtents &indices, bool isInside,
                            llvm::function_ref<bool(unsigned, bool)> mayRead,
                            std::map<std::pair<Expr, bool>, Expr> &known) {
  if (value->operands.empty() || value->height == 0)
    return value;
  auto key = std::make_pair(value, isInside);
  if (auto found = known.find(key); found != known.end())
    return found->second;
  auto find = [&](Expr e, const IndexExtents &all, Type type, bool inReduction) -> Expr {
    IndexExtents its = indicesOf(e, all);
    Expr element = its.size() == e->freeIndices.size() ? findStored(e, its, type) : nullptr;
    Expr load = element && element->isOp("arith.extf") ? element->operands[0] : element;
    bool mayLoad = load && mayRead(load->id - firstTemporary(), inReduction);
    return mayLoad ? element : nullptr;
  };
  IndexExtents own = indicesOf(value, indices);
  if (Expr element = find(value, own, value->type, isInside))
    return known[key] = element;
  Expr result = value;
  if (value->kind == ExprKind::Reduce) {
    int64_t e = openings.indexFor(value);
    auto [written, present] = exprs.open(value, e);
    Expr body = written;
    IndexExtents all = own;
    all.push_back({e, value->extent.getValue()});
    // An operand that the product rounds may be stored rounded.
    if (value->rounds)
      for (const FoldRules::Factor &factor : rules.factors(written))
        if (Expr element = factor.divides || outermostReductions(factor.base).empty()
                               ? nullptr
                               : find(factor.base, all, value->rounds.getValue(), /*inReduction=*/true))
          body = exprs.replace(body, [&](Expr node) { return node == factor.base ? element : Expr(); });
    Expr newBody = readStored(body, all, true, mayRead, known);
    Expr newPresent = present ? readStored(present, all, true, mayRead, known) : nullptr;
    if (newBody != written || newPresent != present)
      result = exprs.withBody(value, e, newBody, newPresent);
  } else {
    SmallVector<Expr> operands;
    for (Expr operand : value->operands)
      operands.push_back(readStored(operand, own, isInside, mayRead, known));
    if (!llvm::equal(operands, value->operands))
      result = exprs.withOperands(value, operands);
  }
  return known[key] = result;
}

/// Reads temporaries wherever their values are recomputed. Outside of reductions, a row computes
/// the value itself, because its reductions then share passes. The row loads the temporary only if
/// it waits for it anyway.
void Derivation::readStored(std::vector<NestPlan> &nests) {
  if (temporaries.empty())
    return;
  const size_t results = kernel.getResultTypes().size();
  for (size_t n = 0; n < nests.size(); ++n) {
    NestOrder sources = sourcesOf(nests);
    auto nestOf = [&](unsigned number) {
      return llvm::find_if(nests,
                           [&](const NestPlan &nest) {
                             return llvm::any_of(nest.outputs, [&](const OutputPlan &output) {
                               return output.result == results + number;
                             });
                           }) -
             nests.begin();
    };
    auto mayRead = [&](unsigned number, bool isInside) {
      size_t source = nestOf(number);
      return source != n && source < nests.size() && !llvm::is_contained(sources[source], n) &&
             (isInside || llvm::is_contained(sources[n], source));
    };
    IndexExtents rows = nests[n].rowExtents();
    for (auto &[id, extent] : nests[n].carriedExtents)
      rows.push_back({id, extent.getValue()});
    std::map<std::pair<Expr, bool>, Expr> known;
    for (OutputPlan &output : nests[n].outputs) {
      output.value = readStored(output.value, rows, false, mayRead, known);
      // Later nests search for this value with the loads in it.
      if (output.result >= results) {
        Expr &loaded = temporaries[output.result - results].loaded;
        loaded = readStored(loaded, rows, false, mayRead, known);
      }
    }
  }
}
