//===- ONFNodes.cpp - execution of folds and states -----------------------===//
#include "lib/Interpreter/ONFNodes.h"
#include "lib/Interpreter/UserMonoid.h"
#include <cmath>

using namespace mlir;
using namespace moa;
using namespace moa::interp;

int64_t Element::compute(Machine &m, Location loc, const Memory &memory) const {
  if (!fault.empty()) {
    m.fail(loc, fault);
    return 0;
  }
  SmallVector<int64_t, 6> place;
  bool isInside = true;
  for (auto [index, extent] : llvm::zip_equal(indices, memory.getShape())) {
    int64_t i = index.constant;
    for (auto [term, factor] : index.terms)
      i += factor * m.get(term).i;
    isInside &= i >= 0 && i < extent;
    place.push_back(i);
  }
  if (!m.failed && !isInside)
    m.fail(loc, "index " + indexText(place) + " is no element of '" + memory.getName() + "' of shape " +
                    indexText(memory.getShape()));
  return m.failed ? 0 : memory.addressOf(place);
}

Cell LoadNode::compute(Machine &m) {
  int64_t flat = element.compute(m, loc, memory);
  if (m.failed)
    return ofInt(0);
  if (isStored && !memory.isWritten(flat))
    return m.fail(loc, "element " + indexText(memory.indexOf(flat)) + " of '" + memory.getName() +
                           "' is loaded before it is stored");
  return memory.load(flat);
}

Cell AtNode::compute(Machine &m) {
  m.get(result);
  const AccState &acc = *result->fold.accs[result->position];
  int64_t linear = 0;
  for (size_t k = 0; k < indices.size(); ++k) {
    int64_t i = m.get(indices[k]).i;
    if (m.failed)
      return ofInt(0);
    if (i < 0 || i >= acc.extents[k])
      return m.fail(loc, "index " + Twine(i) + " is outside axis " + Twine(k) + " of state '" + acc.name +
                             "' with extents " + indexText(acc.extents));
    linear = linear * acc.extents[k] + i;
  }
  return acc.state[linear];
}

Cell RoundedProduct::compute(Machine &m) {
  auto round = [&](const Factor &factor, double value) {
    if (!factor.type)
      return value;
    if (m.roundoffSeed == 0)
      return roundTo(value, factor.type);
    return roundAtRandom(value, factor.type,
                         llvm::hash_combine(factor.node->number, llvm::bit_cast<uint64_t>(value), m.roundoffSeed));
  };
  double left = m.get(x.node).f, right = m.get(y.node).f;
  return ofFloat(m.moved(round(x, left) * round(y, divides ? 1 / right : right), *this));
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

void AccState::start() {
  touched = false;
  state.assign(countOf(extents), identity);
  old = identity;
}

/// Rescales the state: c(d, d') ⊗ state, plus Σ cₖ·uₖ, for the old and new values of the
/// references.
void AccState::rescale(Machine &m) {
  m.enter(*rescaleScope);
  for (auto [k, ref] : llvm::enumerate(refs)) {
    m.set(oldAndNew[2 * k], ref->old);
    m.set(oldAndNew[2 * k + 1], ref->state[0]);
  }
  Cell c = m.get(factor);
  auto apply = [&](Cell &cell) {
    if (combine == ScalarFn::select)
      cell = c.i ? cell : identity;
    else
      cell = interp::combine(combine == ScalarFn::add ? Monoid::add : Monoid::mul, form, c, cell);
  };
  if (!others.empty()) {
    apply(state[0]);
    for (auto [other, coefficient] : llvm::zip_equal(others, coefficients)) {
      Cell term = interp::combine(Monoid::mul, form, m.get(coefficient), other->old);
      state[0] = interp::combine(Monoid::add, form, state[0], term);
    }
  } else if (!needed)
    llvm::for_each(state, apply);
  else
    for (int64_t i : *needed)
      apply(state[i]);
}

void AccState::add(Machine &m, Cell &cell, ArrayRef<int64_t> at) {
  m.enter(*valueScope);
  for (size_t k = 0; k < at.size(); ++k)
    m.set(indices[k], ofInt(at[k]));
  Cell term = m.get(value), next = cell;
  if (!user)
    next = interp::combine(monoid, form, cell, term);
  else if (const char *why = user->apply(cell, term, next))
    m.fail(loc, why);
  cell = m.movedStep(monoid, form, next, *this, 0);
}

void AccState::step(Machine &m) {
  bool isScalar = extents.empty();
  if (isScalar)
    old = state[0];
  bool isSingular = false, changed = false;
  for (auto [k, ref] : llvm::enumerate(refs)) {
    double now = toDouble(ref->state[0], ref->form);
    isSingular |= now == singular[k]; // never true for NaN
    changed |= !(now == toDouble(ref->old, ref->form));
  }
  if (isSingular && touched) {
    m.fail(loc, "state '" + Twine(name) + "' is not the identity while a state it refers to is singular");
    return;
  }
  if (!isSingular) {
    if (changed && touched)
      rescale(m);
    if (needed) {
      for (int64_t i : *needed)
        add(m, state[i], {i});
    } else {
      std::vector<int64_t> at(extents.size(), 0);
      for (Cell &cell : state) {
        add(m, cell, at);
        nextIndex(at, extents);
        if (m.failed)
          return;
      }
    }
    touched = true;
  }
  if (isScalar)
    m.set(this, state[0]);
}

//===----------------------------------------------------------------------===//
// Folds
//===----------------------------------------------------------------------===//

void Fold::run(Machine &m) {
  if (stamp == scope->epoch)
    return;
  for (AccState *acc : accs)
    acc->start();
  if (hasPieces)
    evaluatePieces(m);
  for (int64_t j : order) {
    if (m.failed)
      return;
    m.enter(*bodyScope);
    m.set(index, ofInt(j));
    bool present = !guard || m.get(guard).i;
    if (hasPieces)
      checkPieces(m, j, present);
    if (!present)
      continue;
    for (AccState *acc : accs)
      if (!m.failed)
        acc->step(m);
  }
  stamp = scope->epoch;
}

static int64_t evaluate(AffineExpr expr, ArrayRef<int64_t> dims, ArrayRef<int64_t> operands) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return dims[dim.getPosition()];
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return operands[symbol.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(expr);
  int64_t a = evaluate(binary.getLHS(), dims, operands);
  int64_t b = evaluate(binary.getRHS(), dims, operands);
  if (expr.getKind() == AffineExprKind::Add)
    return a + b;
  if (expr.getKind() == AffineExprKind::Mul)
    return a * b;
  if (b == 0)
    return 0;
  int64_t remainder = (a % b + b) % b, quotient = (a - remainder) / b;
  if (expr.getKind() == AffineExprKind::Mod)
    return remainder;
  if (expr.getKind() == AffineExprKind::FloorDiv)
    return quotient;
  return quotient + (remainder != 0);
}

/// Returns [max lower, min upper). A map without results gives no bound.
static std::pair<int64_t, int64_t> interval(AffineMap lower, AffineMap upper, const Tile &tile,
                                            ArrayRef<int64_t> operands) {
  int64_t low = std::numeric_limits<int64_t>::min();
  int64_t high = std::numeric_limits<int64_t>::max();
  for (AffineExpr expr : lower.getResults())
    low = std::max(low, evaluate(expr, {tile.first, tile.last}, operands));
  for (AffineExpr expr : upper.getResults())
    high = std::min(high, evaluate(expr, {tile.first, tile.last}, operands));
  return {low, high};
}

void Fold::evaluatePieces(Machine &m) {
  std::vector<int64_t> operands;
  for (Node *bound : bounds)
    operands.push_back(m.get(bound).i);
  visited.clear();
  full.clear();
  for (const PieceCheck &piece : pieces) {
    auto [lower, upper] = interval(piece.visitLower, piece.visitUpper, *tile, operands);
    visited.push_back({lower, upper});
    if (!piece.full)
      continue;
    auto [first, last] = interval(piece.fullLower, piece.fullUpper, *tile, operands);
    full.push_back({first, last});
    if (first < last && (first < 0 || last > extent))
      m.fail(loc, "fold '" + Twine(name) + "': the full interval [" + Twine(first) + ", " + Twine(last) +
                      ") leaves the range of " + Twine(extent));
  }
}

void Fold::checkPieces(Machine &m, int64_t j, bool present) {
  auto holds = [&](const Interval &interval) { return interval.holds(j); };
  auto where = [&] {
    return "fold '" + name + "', index " + std::to_string(j) + ", tile [" + std::to_string(tile->first) + ", " +
           std::to_string(tile->last) + "]: ";
  };
  if (present && llvm::none_of(visited, holds))
    m.fail(loc, where() + "the index is present but in no visited interval");
  if (!present && llvm::any_of(full, holds))
    m.fail(loc, where() + "the index is absent but in a full interval");
}

std::vector<int64_t> moa::interp::liftedOrder(int64_t extent, onf::AxisAttr lift) {
  std::vector<int64_t> order;
  if (!lift) {
    for (int64_t i = 0; i < extent; ++i)
      order.push_back(i);
    return order;
  }
  std::vector<int64_t> sizes(lift.getSizes());
  int64_t tile = lift.getTile();
  sizes[0] = (extent + tile - 1) / tile;
  std::vector<int64_t> digits(sizes.size(), 0);
  if (sizes[0] > 0)
    do {
      int64_t i = 0;
      for (size_t k = 0; k < sizes.size(); ++k)
        i = i * sizes[k] + digits[k];
      if (i < extent) // the guard
        order.push_back(i);
    } while (nextIndex(digits, sizes));
  return order;
}
