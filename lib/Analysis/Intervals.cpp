//===- Intervals.cpp - index intervals of a predicate per tile ------------===//
#include "lib/Analysis/Intervals.h"
#include "mlir/Analysis/Presburger/IntegerRelation.h"
#include "mlir/Analysis/Presburger/Simplex.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace moa;
using presburger::IntegerPolyhedron;
using presburger::PresburgerSpace;

// Dimensions of all expressions below.
enum : unsigned { tileFirst = 0, tileLast = 1, foldIndex = 2, laneIndex = 3, otherFold = 4, numDims = 5 };

static constexpr int64_t conditionScale = int64_t(1) << 48;

namespace {
/// A bound on j by an expression e without j, or a condition e ≥ 0.
struct Bound {
  enum Kind { Lower, Upper, Condition } kind; // j ≥ e, j ≤ e, e ≥ 0
  AffineExpr e;
  bool operator==(const Bound &other) const { return kind == other.kind && e == other.e; }
};
using Bounds = SmallVector<Bound>;

//===----------------------------------------------------------------------===//
// Systems of inequalities
//===----------------------------------------------------------------------===//

/// Linear inequalities over the dimensions, the symbols, and one variable per floored quotient.
class System {
public:
  explicit System(unsigned numSymbols) : numSymbols(numSymbols) {}

  /// Adds e ≥ 0. Returns false, and adds nothing, if e is out of safe range.
  bool add(AffineExpr e) {
    auto row = makeRow(e);
    if (!row)
      return false;
    rows.push_back(std::move(*row));
    return true;
  }

  /// Returns true if no rational point exists, which proves that no integer point does.
  bool isEmpty() const {
    unsigned width = numVars();
    presburger::Simplex simplex(width);
    for (const auto &row : rows)
      simplex.addInequality(presburger::getDynamicAPIntVec(pad(row, width)));
    return simplex.isEmpty();
  }

  unsigned numVars() const { return numDims + numSymbols + quotients.size(); }
  unsigned getNumQuotients() const { return quotients.size(); }

  /// Returns the polyhedron with dimensions, symbols and quotients, in this order, as set
  /// dimensions.
  IntegerPolyhedron polyhedron() const {
    IntegerPolyhedron result(PresburgerSpace::getSetSpace(numVars()));
    for (const auto &row : rows)
      result.addInequality(pad(row, numVars()));
    return result;
  }

private:
  // Columns: dimensions, symbols, quotients. The constant is stored separately because later rows
  // append quotients.
  struct Row {
    SmallVector<int64_t> columns;
    int64_t constant = 0;
  };

  static SmallVector<int64_t> pad(const Row &row, unsigned width) {
    SmallVector<int64_t> result(row.columns.begin(), row.columns.end());
    result.resize(width, 0);
    result.push_back(row.constant);
    return result;
  }

  std::optional<Row> makeRow(AffineExpr e) {
    auto form = linearize(e);
    if (!form)
      return std::nullopt;
    Row row;
    row.constant = form->constant;
    for (auto [atom, coefficient] : form->terms) {
      auto column = columnOf(atom);
      if (!column)
        return std::nullopt;
      if (row.columns.size() <= *column)
        row.columns.resize(*column + 1, 0);
      row.columns[*column] += coefficient;
    }
    return row;
  }

  std::optional<unsigned> columnOf(AffineExpr atom) {
    if (auto dim = dyn_cast<AffineDimExpr>(atom))
      return dim.getPosition();
    if (auto symbol = dyn_cast<AffineSymbolExpr>(atom))
      return numDims + symbol.getPosition();
    auto *it = llvm::find(quotients, atom);
    if (it != quotients.end())
      return numDims + numSymbols + (it - quotients.begin());
    auto division = cast<AffineBinaryOpExpr>(atom);
    int64_t divisor = cast<AffineConstantExpr>(division.getRHS()).getValue();
    auto dividend = makeRow(division.getLHS());
    if (!dividend)
      return std::nullopt;
    unsigned column = numVars();
    quotients.push_back(atom);
    // divisor·q ≤ dividend ≤ divisor·q + divisor − 1
    dividend->columns.resize(column + 1, 0);
    dividend->columns[column] = -divisor;
    rows.push_back(*dividend);
    for (int64_t &c : dividend->columns)
      c = -c;
    dividend->constant = divisor - 1 - dividend->constant;
    rows.push_back(*dividend);
    return column;
  }

  unsigned numSymbols;
  SmallVector<AffineExpr> quotients;
  std::vector<Row> rows;
};

//===----------------------------------------------------------------------===//
// One conjunct
//===----------------------------------------------------------------------===//

enum class Mode { Necessary, Sufficient };

class Projection {
public:
  explicit Projection(const IntervalProblem &problem)
      : problem(problem), context(problem.context), first(getAffineDimExpr(tileFirst, context)),
        last(getAffineDimExpr(tileLast, context)), fold(getAffineDimExpr(foldIndex, context)),
        lane(getAffineDimExpr(laneIndex, context)) {}

  /// Returns the piece of a conjunct, or nothing if it is empty.
  std::optional<Interval> run(const Conjunct &conjunct);
  /// Returns the system 0 ≤ d0 ≤ d1 < lane extent, 0 ≤ j < fold extent, and the facts.
  System contextSystem() const;
  /// Returns the inequality of a bound, with `j` as the fold index.
  static AffineExpr inequality(const Bound &bound, AffineExpr j);
  /// The bounds of the visit interval that `run` found last.
  Bounds visitBounds;

private:
  /// Maps d0 = i, d1 = j of the problem to this file's dimensions.
  AffineExpr import(AffineExpr e) const { return e.replaceDims({lane, fold}); }
  bool endpoints(AffineExpr atom, Mode mode, Bounds &bounds) const;
  std::optional<AffineExpr> extreme(AffineExpr e, bool maximum) const;
  bool solve(AffineExpr e, Mode mode, Bounds &bounds) const;
  bool solveQuotient(AffineExpr quotient, int64_t coefficient, AffineExpr rest, Mode mode, Bounds &bounds) const;
  void shadow(ArrayRef<AffineExpr> atoms, Bounds &bounds) const;
  bool prune(Bounds &bounds) const;
  void emit(const Bounds &bounds, SmallVectorImpl<AffineExpr> &lower, SmallVectorImpl<AffineExpr> &upper) const;

  const IntervalProblem &problem;
  MLIRContext *context;
  AffineExpr first, last, fold, lane;
};
} // namespace

System Projection::contextSystem() const {
  System system(problem.numSymbols);
  system.add(first);
  system.add(last - first);
  if (problem.laneExtent)
    system.add(import(problem.laneExtent) - 1 - last);
  system.add(fold);
  system.add(import(problem.foldExtent) - 1 - fold);
  for (AffineExpr fact : problem.facts)
    system.add(import(fact));
  return system;
}

AffineExpr Projection::inequality(const Bound &bound, AffineExpr j) {
  switch (bound.kind) {
  case Bound::Lower:
    return j - bound.e;
  case Bound::Upper:
    return bound.e - j;
  case Bound::Condition:
    return bound.e;
  }
  return bound.e;
}

/// Returns a bound on e over i ∈ [d0, d1], by interval arithmetic on each occurrence of i: an upper
/// bound if `maximum` is true, else a lower one. The bound is exact if i occurs once or all
/// occurrences are monotone in the same direction.
std::optional<AffineExpr> Projection::extreme(AffineExpr e, bool maximum) const {
  auto form = linearize(e);
  if (!form)
    return std::nullopt;
  AffineExpr result = getAffineConstantExpr(form->constant, context);
  for (auto [atom, coefficient] : form->terms) {
    bool up = maximum == (coefficient > 0);
    AffineExpr value = atom;
    if (atom == lane) {
      value = up ? last : first;
    } else if (atom.getKind() == AffineExprKind::FloorDiv) {
      auto division = cast<AffineBinaryOpExpr>(atom);
      auto dividend = extreme(division.getLHS(), up);
      if (!dividend)
        return std::nullopt;
      value = dividend->floorDiv(division.getRHS());
    }
    result = result + value * coefficient;
  }
  return result;
}

bool Projection::endpoints(AffineExpr atom, Mode mode, Bounds &bounds) const {
  auto e = extreme(atom, mode == Mode::Necessary);
  return e && solve(*e, mode, bounds);
}

/// Adds the bounds on j that follow from (Necessary) or imply (Sufficient) e ≥ 0, for e without i.
/// Returns false if e is out of safe range.
bool Projection::solve(AffineExpr e, Mode mode, Bounds &bounds) const {
  auto form = linearize(e);
  if (!form)
    return false;
  int64_t direct = 0;
  SmallVector<std::pair<AffineExpr, int64_t>> quotients;
  AffineExpr rest = getAffineConstantExpr(form->constant, context);
  for (auto [atom, coefficient] : form->terms) {
    if (atom == fold)
      direct = coefficient;
    else if (atom.isFunctionOfDim(foldIndex))
      quotients.emplace_back(atom, coefficient);
    else
      rest = rest + atom * coefficient;
  }
  if (quotients.empty()) {
    if (direct == 0)
      bounds.push_back({Bound::Condition, rest});
    else if (direct > 0)
      bounds.push_back({Bound::Lower, (-rest).ceilDiv(direct)});
    else
      bounds.push_back({Bound::Upper, rest.floorDiv(-direct)});
    return true;
  }
  auto [quotient, coefficient] = quotients.front();
  if (quotients.size() == 1 && direct == 0)
    return solveQuotient(quotient, coefficient, rest, mode, bounds);
  // (g − c + 1)/c ≤ ⌊g/c⌋ ≤ g/c, multiplied by c.
  auto division = cast<AffineBinaryOpExpr>(quotient);
  int64_t divisor = cast<AffineConstantExpr>(division.getRHS()).getValue();
  bool raise = (mode == Mode::Necessary) == (coefficient > 0);
  AffineExpr relaxed = division.getLHS();
  if (!raise)
    relaxed = relaxed - (divisor - 1);
  return solve((e - quotient * coefficient) * divisor + relaxed * coefficient, mode, bounds);
}

/// Solves coefficient · ⌊g/c⌋ + rest ≥ 0 exactly: ⌊g/c⌋ ≥ t ⇔ g ≥ c·t, and ⌊g/c⌋ ≤ t ⇔ g ≤ c·t + c
/// − 1.
bool Projection::solveQuotient(AffineExpr quotient, int64_t coefficient, AffineExpr rest, Mode mode,
                               Bounds &bounds) const {
  auto division = cast<AffineBinaryOpExpr>(quotient);
  AffineExpr dividend = division.getLHS();
  int64_t divisor = cast<AffineConstantExpr>(division.getRHS()).getValue();
  if (coefficient > 0)
    return solve(dividend - (-rest).ceilDiv(coefficient) * divisor, mode, bounds);
  return solve(rest.floorDiv(-coefficient) * divisor + (divisor - 1) - dividend, mode, bounds);
}

/// Adds the bounds on j that remain when i ∈ [d0, d1] is eliminated from the atoms over the rationals
/// (Fourier–Motzkin).
void Projection::shadow(ArrayRef<AffineExpr> atoms, Bounds &bounds) const {
  System system(problem.numSymbols);
  for (AffineExpr atom : atoms)
    system.add(atom);
  system.add(lane - first);
  system.add(last - lane);
  IntegerPolyhedron shape = system.polyhedron();
  unsigned kept = numDims + problem.numSymbols;
  shape.projectOut(kept, system.getNumQuotients());
  shape.projectOut(laneIndex);
  shape.removeTrivialRedundancy();
  // The columns are now d0, d1, j, the unused second j, and the symbols.
  auto read = [&](ArrayRef<llvm::DynamicAPInt> wide, int64_t sign) {
    // Dropping a bound only widens the interval.
    if (llvm::any_of(wide, [](const llvm::DynamicAPInt &c) { return llvm::abs(c) > (int64_t(1) << 53); }))
      return;
    SmallVector<int64_t, 8> row = presburger::getInt64Vec(wide);
    AffineExpr rest = getAffineConstantExpr(sign * row.back(), context);
    for (unsigned column = 0; column + 1 < row.size(); ++column) {
      if (column == foldIndex || row[column] == 0)
        continue;
      AffineExpr atom =
          column < foldIndex ? getAffineDimExpr(column, context) : getAffineSymbolExpr(column - (numDims - 1), context);
      rest = rest + atom * (sign * row[column]);
    }
    int64_t c = sign * row[foldIndex];
    if (c == 0)
      bounds.push_back({Bound::Condition, rest});
    else if (c > 0)
      bounds.push_back({Bound::Lower, (-rest).ceilDiv(c)});
    else
      bounds.push_back({Bound::Upper, rest.floorDiv(-c)});
  };
  for (unsigned k = 0; k < shape.getNumInequalities(); ++k)
    read(shape.getInequality(k), 1);
  for (unsigned k = 0; k < shape.getNumEqualities(); ++k) {
    read(shape.getEquality(k), 1);
    read(shape.getEquality(k), -1);
  }
}

/// Drops bounds implied by the other bounds and the context. Returns false if the bounds contradict
/// each other.
bool Projection::prune(Bounds &bounds) const {
  Bounds unique;
  for (Bound bound : bounds) {
    bound.e = simplifyAffineExpr(bound.e, numDims, problem.numSymbols);
    if (!llvm::is_contained(unique, bound))
      unique.push_back(bound);
  }
  bounds = std::move(unique);
  System all = contextSystem();
  for (const Bound &bound : bounds)
    all.add(inequality(bound, fold));
  if (all.isEmpty())
    return false;
  for (unsigned k = 0; k < bounds.size();) {
    System system = contextSystem();
    for (unsigned other = 0; other < bounds.size(); ++other)
      if (other != k)
        system.add(inequality(bounds[other], fold));
    if (system.add(-inequality(bounds[k], fold) - 1) && system.isEmpty())
      bounds.erase(bounds.begin() + k);
    else
      ++k;
  }
  return true;
}

void Projection::emit(const Bounds &bounds, SmallVectorImpl<AffineExpr> &lower,
                      SmallVectorImpl<AffineExpr> &upper) const {
  lower.push_back(getAffineConstantExpr(0, context));
  upper.push_back(problem.foldExtent);
  for (const Bound &bound : bounds) {
    if (bound.kind == Bound::Lower)
      lower.push_back(bound.e);
    else if (bound.kind == Bound::Upper)
      upper.push_back(bound.e + 1);
    else
      upper.push_back((bound.e.floorDiv(conditionScale) + 1) * conditionScale);
  }
}

std::optional<Interval> Projection::run(const Conjunct &conjunct) {
  SmallVector<AffineExpr> atoms;
  for (AffineExpr e : conjunct.nonNegative)
    atoms.push_back(import(e));
  System domain = contextSystem();
  domain.add(lane - first);
  domain.add(last - lane);
  for (AffineExpr atom : atoms)
    domain.add(atom);
  if (domain.isEmpty())
    return std::nullopt;

  Interval result;
  visitBounds.clear();
  if (atoms.size() <= 24)
    shadow(atoms, visitBounds);
  for (AffineExpr atom : atoms)
    (void)endpoints(atom, Mode::Necessary, visitBounds);
  if (!prune(visitBounds))
    return std::nullopt;
  emit(visitBounds, result.visitLower, result.visitUpper);

  Bounds fullBounds;
  result.full = conjunct.unknowns.empty() &&
                llvm::all_of(atoms, [&](AffineExpr atom) { return endpoints(atom, Mode::Sufficient, fullBounds); }) &&
                prune(fullBounds);
  if (result.full)
    emit(fullBounds, result.fullLower, result.fullUpper);
  else
    result.fullLower = result.fullUpper = {getAffineConstantExpr(0, context)};
  return result;
}

//===----------------------------------------------------------------------===//
// The disjunction
//===----------------------------------------------------------------------===//

namespace {
struct Piece {
  Conjunct conjunct;
  Interval interval;
  Bounds visit;
};
} // namespace

/// Returns true if the facts and the atoms of b imply every atom of a, and a has no unknowns. Then
/// a ∨ b = a.
static bool implies(const IntervalProblem &problem, const Conjunct &b, const Conjunct &a) {
  if (!a.unknowns.empty())
    return false;
  Projection projection(problem);
  MLIRContext *context = problem.context;
  AffineExpr lane = getAffineDimExpr(laneIndex, context);
  AffineExpr fold = getAffineDimExpr(foldIndex, context);
  auto import = [&](AffineExpr e) { return e.replaceDims({lane, fold}); };
  return llvm::all_of(a.nonNegative, [&](AffineExpr atom) {
    System system = projection.contextSystem();
    system.add(lane - getAffineDimExpr(tileFirst, context));
    system.add(getAffineDimExpr(tileLast, context) - lane);
    for (AffineExpr e : b.nonNegative)
      system.add(import(e));
    return system.add(-import(atom) - 1) && system.isEmpty();
  });
}

/// Returns true if every index of `a` is below every index of `b`, for every tile.
static bool precedes(const IntervalProblem &problem, const Piece &a, const Piece &b) {
  Projection projection(problem);
  AffineExpr j = getAffineDimExpr(foldIndex, problem.context);
  AffineExpr other = getAffineDimExpr(otherFold, problem.context);
  System system = projection.contextSystem();
  for (const Bound &bound : a.visit)
    system.add(Projection::inequality(bound, j));
  for (const Bound &bound : b.visit)
    system.add(Projection::inequality(bound, other));
  system.add(other);
  system.add(j - other);
  return system.isEmpty();
}

static std::vector<Interval> inOrder(const IntervalProblem &problem, std::vector<Piece> pieces) {
  std::vector<Interval> result;
  while (!pieces.empty()) {
    unsigned next = 0;
    for (unsigned k = 0; k < pieces.size(); ++k) {
      bool least = llvm::none_of(llvm::enumerate(pieces), [&](auto it) {
        return it.index() != k && precedes(problem, it.value(), pieces[k]) && !precedes(problem, pieces[k], it.value());
      });
      if (least) {
        next = k;
        break;
      }
    }
    result.push_back(std::move(pieces[next].interval));
    pieces.erase(pieces.begin() + next);
  }
  return result;
}

static llvm::Error refuse(const llvm::Twine &why) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), why);
}

llvm::Expected<std::vector<Interval>> moa::deriveIntervals(const IntervalProblem &problem) {
  auto disjunction = toDisjunction(problem.predicate, 4 * maxPieces);
  if (!disjunction)
    return refuse("the predicate has more than " + llvm::Twine(4 * maxPieces) + " terms");
  std::vector<Piece> pieces;
  for (Conjunct &conjunct : *disjunction) {
    if (llvm::any_of(pieces, [&](const Piece &p) { return implies(problem, conjunct, p.conjunct); }))
      continue;
    Projection projection(problem);
    auto interval = projection.run(conjunct);
    if (!interval)
      continue;
    llvm::erase_if(pieces, [&](const Piece &p) { return implies(problem, p.conjunct, conjunct); });
    pieces.push_back({conjunct, std::move(*interval), projection.visitBounds});
  }
  if (pieces.size() > maxPieces)
    return refuse("the predicate has " + llvm::Twine(pieces.size()) + " pieces, more than " + llvm::Twine(maxPieces));
  bool useless = llvm::any_of(pieces, [](const Piece &p) { return p.visit.empty(); }) &&
                 llvm::none_of(pieces, [](const Piece &p) { return p.interval.full; });
  if (useless)
    return refuse("no part of the predicate bounds it by an affine expression of indices and "
                  "sizes; elements of arrays are not affine");
  return inOrder(problem, std::move(pieces));
}

UpperBounds moa::splitConditions(AffineMap upper) {
  SmallVector<AffineExpr> bounds, conditions;
  for (AffineExpr bound : upper.getResults()) {
    AffineExpr condition;
    bound.walk([&](AffineExpr part) {
      auto quotient = dyn_cast<AffineBinaryOpExpr>(part);
      if (quotient && part.getKind() == AffineExprKind::FloorDiv &&
          quotient.getRHS() == getAffineConstantExpr(conditionScale, upper.getContext()))
        condition = quotient.getLHS();
    });
    bool isCondition = condition && bound == (condition.floorDiv(conditionScale) + 1) * conditionScale;
    (isCondition ? conditions : bounds).push_back(isCondition ? condition : bound);
  }
  auto get = [&](ArrayRef<AffineExpr> results) {
    return AffineMap::get(upper.getNumDims(), upper.getNumSymbols(), results, upper.getContext());
  };
  return {get(bounds), get(conditions)};
}
