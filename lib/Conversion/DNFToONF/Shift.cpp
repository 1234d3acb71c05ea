//===- Shift.cpp - R3 for sums of products of distances --------------------===//
//
// A term Wⱼ·Πᵢ (x_ij − Kᵢ), Kᵢ the largest (or smallest) x_i so far, follows Kᵢ → K′ᵢ by what
// the sums of fewer distances say, with δᵢ = Kᵢ − K′ᵢ:
//
//   Σ W·Πᵢ (xᵢ − K′ᵢ) = Σ over A ⊆ {i} of Π_{i∈A} δᵢ · (Σ W·Π_{i∉A} (xᵢ − Kᵢ))
//
// This is the merge of moments about different origins (T. F. Chan, G. H. Golub,
// R. J. LeVeque, The American Statistician 37, 1983). The sums of fewer distances are
// states of the same fold, which come before.
//
//===----------------------------------------------------------------------===//
#include "dialects/MoA/IR/Monoid.h"
#include "lib/Conversion/DNFToONF/Derivation.h"

using namespace mlir;
using namespace moa;

bool moa::isDistance(ExprContext &exprs, Expr e, StringRef extent, int64_t j, Expr present) {
  if (!e->isOp("arith.subf"))
    return false;
  Expr extreme = e->operands[1];
  return extreme->kind == ExprKind::Reduce && extreme->extent == extent && !extreme->rounds &&
         (extreme->monoid == Monoid::max || extreme->monoid == Monoid::min) &&
         !extreme->dependsOn(j) && exprs.open(extreme, j) == std::make_pair(e->operands[0], present);
}

namespace {

/// A product of powers of distances and other factors.
struct Moment {
  llvm::MapVector<Expr, unsigned> powers; // of distances
  SmallVector<std::pair<Expr, bool>> weights; // other factors, and whether they divide

  bool operator==(const Moment &other) const {
    return weights == other.weights && powers.size() == other.powers.size() &&
           llvm::all_of(powers, [&](auto &p) { return other.powers.lookup(p.first) == p.second; });
  }
};

/// One term of the sum above.
struct Part {
  llvm::MapVector<Expr, unsigned> moved; // distances in A
  double count;                          // how many A are this one
  Expr sum;                              // of the others
};

unsigned choose(unsigned n, unsigned k) {
  unsigned result = 1;
  for (unsigned i = 0; i < k; ++i)
    result = result * (n - i) / (i + 1);
  return result;
}

} // namespace

static Moment readMoment(ExprContext &exprs, FoldRules &rules, StringRef extent, int64_t j,
                         Expr body, Expr present) {
  Moment moment;
  for (const FoldRules::Factor &factor : rules.factors(body)) {
    if (!factor.divides && isDistance(exprs, factor.base, extent, j, present))
      ++moment.powers[factor.base];
    else if (factor.base != exprs.floatConstant(1, factor.base->type))
      moment.weights.emplace_back(factor.base, factor.divides);
  }
  llvm::sort(moment.weights, [](const auto &a, const auto &b) {
    return std::make_pair(a.first->serial, a.second) < std::make_pair(b.first->serial, b.second);
  });
  return moment;
}

/// The repair of a sum of products of distances, if the fold has what it takes.
bool Derivation::shift(NestPlan &nest, AccPlan &acc) {
  constexpr unsigned most = 4;
  Expr t = acc.reduce;
  if (t->monoid != Monoid::add || !isa<FloatType>(t->type) || t->rounds || acc.carried)
    return false;
  int64_t j = nest.foldIndex[t->extent];
  auto read = [&](const AccPlan &a) {
    return readMoment(exprs, rules, t->extent, j, a.body, acc.present);
  };
  Moment whole = read(acc);
  unsigned degree = 0;
  StateSet references;
  for (auto &[distance, power] : whole.powers) {
    degree += power;
    references.insert(distance->operands[1]);
    if (rules.reads(distance->operands[0], acc.states))
      return false;
  }
  bool readsMore = llvm::any_of(whole.weights, [&](auto &w) { return rules.reads(w.first, acc.states); });
  if (!degree || degree > most || readsMore)
    return false;
  auto sumOf = [&](const Moment &moment) -> Expr {
    for (auto &other : nest.accs) {
      if (other.get() == &acc)
        break; // those behind come too late
      if (other->reduce->monoid == Monoid::add && other->reduce->type == t->type &&
          other->reduce->extent == t->extent && other->present == acc.present &&
          other->pass == acc.pass && !other->carried && !other->reduce->rounds &&
          read(*other) == moment)
        return other->reduce;
    }
    return nullptr;
  };
  // All ways to move some of the distances, by the numbers of each.
  SmallVector<Part> parts;
  SmallVector<std::pair<Expr, unsigned>> powers(whole.powers.begin(), whole.powers.end());
  std::function<bool(size_t, Part, Moment)> choices = [&](size_t k, Part part, Moment rest) {
    if (k == powers.size()) {
      if (part.moved.empty())
        return true;
      part.sum = sumOf(rest);
      parts.push_back(part);
      return part.sum != nullptr;
    }
    auto [distance, power] = powers[k];
    for (unsigned n = 0; n <= power; ++n) {
      Part next = part;
      Moment left = rest;
      next.count *= choose(power, n);
      if (n)
        next.moved[distance] = n;
      if (n < power)
        left.powers[distance] = power - n;
      if (!choices(k + 1, std::move(next), std::move(left)))
        return false;
    }
    return true;
  };
  Moment none;
  none.weights = whole.weights;
  if (!choices(0, Part{{}, 1, nullptr}, none))
    return false;
  Repair repair;
  StateSet refs(references.begin(), references.end());
  for (const Part &part : parts)
    refs.insert(part.sum);
  repair.refs.assign(refs.begin(), refs.end());
  repair.singular.assign(refs.size(), std::nan(""));
  repair.shift = [this, parts, type = t->type](Repair::State before, Repair::State after) {
    auto op = [&](StringRef name, Expr a, Expr b) { return exprs.op(name, {a, b}, type); };
    // Where the extreme is that of nothing there is nothing to move.
    auto delta = [&](Expr extreme) {
      Expr old = before(extreme), zero = exprs.floatConstant(0, type);
      Expr none = exprs.constant(getIdentity(extreme->monoid, type), type);
      StateSet one;
      one.insert(extreme);
      Expr isNone = rules.unchanged(one, [&](Expr) { return old; }, [&](Expr) { return none; });
      return exprs.op("arith.select", {isNone, zero, op("arith.subf", old, after(extreme))}, type);
    };
    Expr sum = nullptr;
    for (const Part &part : parts) {
      Expr term = before(part.sum);
      if (part.count != 1)
        term = op("arith.mulf", term, exprs.floatConstant(part.count, type));
      for (auto &[distance, power] : part.moved)
        for (unsigned n = 0; n < power; ++n)
          term = op("arith.mulf", term, delta(distance->operands[1]));
      sum = sum ? op("arith.addf", sum, term) : term;
    }
    return sum;
  };
  for (Expr ref : refs)
    if (!llvm::is_contained(acc.deps, ref))
      acc.deps.push_back(ref);
  acc.repair = std::move(repair);
  return true;
}
