//===- Distance.cpp - weights that are powers of a distance ---------------===//
#include "lib/Conversion/DNFToONF/Distance.h"
#include "lib/Conversion/DNFToONF/AffineForm.h"

using namespace mlir;
using namespace moa;

static bool isExponential(Expr e) { return e->isOp("math.exp") || e->isOp("math.exp2"); }

/// Returns the index expression that a float is converted from, exact up to rounding; null for
/// others. Narrow integers are excluded, because they wrap around.
static Expr castIndex(Expr e) {
  if (!e->isOp("arith.sitofp"))
    return nullptr;
  Expr from = e->operands[0];
  if (from->type.isInteger() && from->type.getIntOrFloatBitWidth() < 32)
    return nullptr;
  return from->isOp("arith.index_cast") ? from->operands[0] : from;
}

/// Returns x for |x|, written as the maximum of x and −x; null for others.
static Expr magnitudeOf(Expr e) {
  if (!e->isOp("arith.maxsi"))
    return nullptr;
  AffineForm sum;
  sum.add(e->operands[0], SymExpr(1));
  sum.add(e->operands[1], SymExpr(1));
  auto rest = sum.getSymbolic();
  return rest && rest->isZero() ? e->operands[0] : nullptr;
}

/// Returns the coefficient of j in an index expression.
static int64_t timesIndex(ExprContext &exprs, Expr e, int64_t j) {
  AffineForm form;
  form.add(e, SymExpr(1));
  return form.terms.lookup(exprs.index(j)).getConstant().value_or(0);
}

namespace {

/// Reads the exponent of a weight.
class WeightExponent {
public:
  WeightExponent(ExprContext &exprs, int64_t row, int64_t j, Expr last) : exprs(exprs), row(row), j(j), last(last) {}

  /// Returns whether all terms that depend on j are multiples of the distance.
  bool read(Expr e) { return visit(e, nullptr, SymExpr(1)) && areDistances(); }
  /// Returns whether the exponent is an integer.
  bool isWhole() const { return !hasOthers && groups.size() <= 1 && (groups.empty() || !groups.front().first); }

private:
  bool isFree(Expr e) const { return !e->dependsOn(row) && !e->dependsOn(j); }
  bool visit(Expr e, Expr factor, const SymExpr &sign);
  bool addIndex(Expr index, Expr factor, const SymExpr &sign);
  bool areDistances() const;
  /// Returns the rest of a linear form without −k·(x − j), where k is its coefficient of j; null if
  /// the rest is no number.
  std::optional<int64_t> beside(AffineForm form) const;

  ExprContext &exprs;
  int64_t row, j;
  Expr last;
  /// Index expressions by their factor (null: 1).
  llvm::MapVector<Expr, AffineForm> groups;
  bool hasOthers = false; // terms that depend on neither index
};

} // namespace

std::optional<int64_t> WeightExponent::beside(AffineForm form) const {
  Expr index = exprs.index(j);
  SymExpr times = form.terms.lookup(index);
  form.add(last, times);
  form.add(index, -times);
  auto rest = form.getSymbolic();
  return rest ? rest->getConstant() : std::nullopt;
}

/// Adds `sign` · factor · index. A magnitude is its operand or the negated operand, if j ≤ x fixes
/// the sign.
bool WeightExponent::addIndex(Expr index, Expr factor, const SymExpr &sign) {
  SymExpr times = sign;
  Expr inside = magnitudeOf(index);
  if (inside && !inside->dependsOn(j))
    return false;
  if (inside) {
    AffineForm form;
    form.add(inside, SymExpr(1));
    auto rest = beside(form);
    int64_t k = timesIndex(exprs, inside, j);
    if (!rest || k == 0 || (k > 0 ? *rest > 0 : *rest < 0))
      return false;
    index = inside;
    times = k > 0 ? -sign : sign;
  }
  groups[factor].add(index, times);
  return true;
}

bool WeightExponent::visit(Expr e, Expr factor, const SymExpr &sign) {
  if (Expr index = castIndex(e); index && (index->dependsOn(j) || index->dependsOn(row)))
    return addIndex(index, factor, sign);
  if (e->isOp("arith.addf") || e->isOp("arith.subf"))
    return visit(e->operands[0], factor, sign) && visit(e->operands[1], factor, e->isOp("arith.subf") ? -sign : sign);
  if (e->isOp("arith.negf"))
    return visit(e->operands[0], factor, -sign);
  bool over = e->isOp("arith.divf");
  for (unsigned k = 0; k < (over ? 1 : e->isOp("arith.mulf") ? 2 : 0); ++k) {
    Expr other = e->operands[1 - k];
    if (!isFree(other))
      continue;
    Expr one = factor ? factor : exprs.floatConstant(1, e->type);
    return visit(e->operands[k], exprs.withOperands(e, {one, other}), sign);
  }
  // A term of the row alone may leave the range of the type although the whole exponent does not.
  hasOthers = true;
  return isFree(e);
}

bool WeightExponent::areDistances() const {
  unsigned known = 0;
  bool isAny = false;
  for (auto &[factor, form] : groups) {
    auto times = form.terms.lookup(exprs.index(j)).getConstant();
    bool knows =
        llvm::any_of(form.terms, [&](auto &term) { return term.first->dependsOn(j) && !term.second.isZero(); });
    if (!knows && llvm::all_of(form.terms, [&](auto &term) { return isFree(term.first) || term.second.isZero(); }))
      continue;
    auto rest = beside(form);
    if (!rest || !times || (*times < 0 ? *rest < 0 : *rest > 0))
      return false;
    isAny |= *rest != 0;
    ++known;
  }
  // Terms of different signs may cancel; an extra constant next to the distances would not.
  return known == 1 || (known > 1 && !isAny);
}

bool moa::isDistanceWeight(ExprContext &exprs, FoldRules &rules, Expr e, int64_t row, int64_t j, Expr last) {
  bool isPower = e->isOp("math.powf");
  if (!isPower && !isExponential(e))
    return false;
  WeightExponent exponent(exprs, row, j, last);
  if (!exponent.read(e->operands[isPower ? 1 : 0]))
    return false;
  // b^(m + n) = b^m · b^n for integers m and n of one sign, and for all others if b ≥ 0.
  Expr base = e->operands[0];
  return !isPower ||
         (!base->dependsOn(row) && !base->dependsOn(j) && (exponent.isWhole() || rules.isNonNegative(base)));
}

Expr moa::weightOver(ExprContext &exprs, Expr weight, int64_t j, Expr distance) {
  // Returns e(j′) − e(r); null for 0.
  std::function<Expr(Expr)> difference = [&](Expr e) -> Expr {
    if (!e->dependsOn(j))
      return nullptr;
    auto same = [&](ArrayRef<Expr> operands) { return exprs.withOperands(e, operands); };
    if (e->isOp("arith.sitofp") || e->isOp("arith.index_cast"))
      return same({difference(e->operands[0])});
    if (isa<IndexType>(e->type)) {
      Expr inside = magnitudeOf(e);
      int64_t times = timesIndex(exprs, inside ? inside : e, j);
      // x| falls as j grows, since it is a distance.
      times = inside ? -std::abs(times) : times;
      return exprs.op("arith.muli", {distance, exprs.extent(SymExpr(times))});
    }
    Expr a = difference(e->operands[0]), b = e->operands.size() > 1 ? difference(e->operands[1]) : nullptr;
    if (e->isOp("arith.negf"))
      return same({a});
    if (e->isOp("arith.mulf") || e->isOp("arith.divf"))
      return same({a ? a : e->operands[0], b ? b : e->operands[1]});
    if (a && b)
      return same({a, b});
    return a ? a : e->isOp("arith.subf") ? exprs.op("arith.negf", {b}) : b;
  };
  unsigned place = weight->isOp("math.powf") ? 1 : 0;
  auto operands = llvm::to_vector(weight->operands);
  operands[place] = difference(operands[place]);
  return exprs.withOperands(weight, operands);
}
