//===- Predicate.cpp - disjunctive form and linear form -------------------===//
#include "lib/Analysis/Predicate.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace moa;

//===----------------------------------------------------------------------===//
// Construction
//===----------------------------------------------------------------------===//

static std::shared_ptr<Predicate> node(Predicate::Kind kind) {
  auto result = std::make_shared<Predicate>();
  result->kind = kind;
  return result;
}

static bool isConstant(const PredicateRef &p, bool value) {
  return p->kind == Predicate::Kind::Constant && p->value == value;
}

PredicateRef Predicate::constant(bool value) {
  auto result = node(Kind::Constant);
  result->value = value;
  return result;
}

PredicateRef Predicate::nonNegative(AffineExpr e) {
  if (auto c = dyn_cast<AffineConstantExpr>(e))
    return constant(c.getValue() >= 0);
  auto result = node(Kind::NonNegative);
  result->expression = e;
  return result;
}

PredicateRef Predicate::zero(AffineExpr e) {
  if (auto c = dyn_cast<AffineConstantExpr>(e))
    return constant(c.getValue() == 0);
  auto result = node(Kind::Zero);
  result->expression = e;
  return result;
}

PredicateRef Predicate::makeUnknown(unsigned number) {
  auto result = node(Kind::Unknown);
  result->unknown = number;
  return result;
}

PredicateRef Predicate::conjunction(PredicateRef a, PredicateRef b) {
  if (isConstant(a, true) || isConstant(b, false))
    return b;
  if (isConstant(b, true) || isConstant(a, false))
    return a;
  auto result = node(Kind::And);
  result->operands = {std::move(a), std::move(b)};
  return result;
}

PredicateRef Predicate::disjunction(PredicateRef a, PredicateRef b) {
  if (isConstant(a, false) || isConstant(b, true))
    return b;
  if (isConstant(b, false) || isConstant(a, true))
    return a;
  auto result = node(Kind::Or);
  result->operands = {std::move(a), std::move(b)};
  return result;
}

PredicateRef Predicate::negation(PredicateRef a) {
  if (a->kind == Kind::Constant)
    return constant(!a->value);
  if (a->kind == Kind::Not)
    return a->operands[0];
  auto result = node(Kind::Not);
  result->operands = {std::move(a)};
  return result;
}

PredicateRef Predicate::exclusive(const PredicateRef &a, const PredicateRef &b) {
  return disjunction(conjunction(a, negation(b)), conjunction(negation(a), b));
}

//===----------------------------------------------------------------------===//
// Disjunctive form
//===----------------------------------------------------------------------===//

using Disjunction = std::vector<Conjunct>;

/// Returns the conjunction of two conjuncts, or nothing if they contradict each other.
static std::optional<Conjunct> meet(const Conjunct &a, const Conjunct &b) {
  Conjunct result = a;
  for (AffineExpr e : b.nonNegative) {
    // e ≥ 0 contradicts −e − 1 ≥ 0.
    if (llvm::is_contained(result.nonNegative, -e - 1))
      return std::nullopt;
    if (!llvm::is_contained(result.nonNegative, e))
      result.nonNegative.push_back(e);
  }
  for (auto [number, sign] : b.unknowns) {
    if (llvm::is_contained(result.unknowns, std::make_pair(number, !sign)))
      return std::nullopt;
    if (!llvm::is_contained(result.unknowns, std::make_pair(number, sign)))
      result.unknowns.emplace_back(number, sign);
  }
  return result;
}

/// Returns true if `b` contains every part of `a`, so that b implies a.
static bool absorbs(const Conjunct &a, const Conjunct &b) {
  return llvm::all_of(a.nonNegative, [&](AffineExpr e) { return llvm::is_contained(b.nonNegative, e); }) &&
         llvm::all_of(a.unknowns, [&](auto u) { return llvm::is_contained(b.unknowns, u); });
}

static void addAbsorbing(Disjunction &terms, Conjunct term) {
  if (llvm::any_of(terms, [&](const Conjunct &t) { return absorbs(t, term); }))
    return;
  llvm::erase_if(terms, [&](const Conjunct &t) { return absorbs(term, t); });
  terms.push_back(std::move(term));
}

/// Tightens g·e + k ≥ 0 to e + ⌊k/g⌋ ≥ 0, which is equivalent over the integers.
static AffineExpr tighten(AffineExpr e) {
  auto form = linearize(e);
  if (!form || form->terms.empty())
    return e;
  int64_t divisor = 0;
  for (auto [atom, coefficient] : form->terms)
    divisor = std::gcd(divisor, coefficient);
  if (divisor == 1)
    return e;
  AffineExpr result = getAffineConstantExpr(llvm::divideFloorSigned(form->constant, divisor), e.getContext());
  for (auto [atom, coefficient] : form->terms)
    result = result + atom * (coefficient / divisor);
  return result;
}

static Disjunction atoms(ArrayRef<AffineExpr> alternatives) {
  Disjunction result;
  for (AffineExpr alternative : alternatives) {
    AffineExpr e = tighten(alternative);
    auto constant = dyn_cast<AffineConstantExpr>(e);
    if (constant && constant.getValue() < 0)
      continue;
    Conjunct term;
    if (!constant)
      term.nonNegative.push_back(e);
    addAbsorbing(result, std::move(term));
  }
  return result;
}

namespace {
struct Expansion {
  unsigned limit;

  std::optional<Disjunction> run(const PredicateRef &p, bool sign) {
    switch (p->kind) {
    case Predicate::Kind::Constant:
      return p->value == sign ? Disjunction{Conjunct()} : Disjunction();
    case Predicate::Kind::NonNegative:
      return atoms({sign ? p->expression : -p->expression - 1});
    case Predicate::Kind::Zero:
      return zero(p->expression, sign);
    case Predicate::Kind::Unknown: {
      Conjunct term;
      term.unknowns.emplace_back(p->unknown, sign);
      return Disjunction{term};
    }
    case Predicate::Kind::Not:
      return run(p->operands[0], !sign);
    case Predicate::Kind::And:
    case Predicate::Kind::Or:
      return combine(p, sign, (p->kind == Predicate::Kind::And) == sign);
    }
    return std::nullopt;
  }

  static Disjunction zero(AffineExpr e, bool sign) {
    if (!sign)
      return atoms({e - 1, -e - 1});
    Conjunct term;
    term.nonNegative = {tighten(e), tighten(-e)};
    return {term};
  }

  std::optional<Disjunction> combine(const PredicateRef &p, bool sign, bool both) {
    auto a = run(p->operands[0], sign), b = run(p->operands[1], sign);
    if (!a || !b)
      return std::nullopt;
    Disjunction result;
    if (!both) {
      result = std::move(*a);
      for (Conjunct &term : *b)
        addAbsorbing(result, std::move(term));
    } else {
      for (const Conjunct &left : *a)
        for (const Conjunct &right : *b)
          if (auto term = meet(left, right)) {
            addAbsorbing(result, std::move(*term));
            if (result.size() > limit)
              return std::nullopt;
          }
    }
    if (result.size() > limit)
      return std::nullopt;
    return result;
  }
};
} // namespace

std::optional<Disjunction> moa::toDisjunction(const PredicateRef &predicate, unsigned limit) {
  return Expansion{limit}.run(predicate, true);
}

//===----------------------------------------------------------------------===//
// Linear form
//===----------------------------------------------------------------------===//

// Limits that keep products of a coefficient and an index, and sums of a few such products, far
// from overflow in 64 bits.
static constexpr int64_t maxCoefficient = int64_t(1) << 31;
static constexpr int64_t maxConstant = int64_t(1) << 53;

namespace {
struct Linearizer {
  LinearForm form;

  bool add(AffineExpr atom, int64_t coefficient) {
    for (auto &[known, value] : form.terms)
      if (known == atom) {
        value += coefficient;
        return std::abs(value) <= maxCoefficient;
      }
    form.terms.emplace_back(atom, coefficient);
    return std::abs(coefficient) <= maxCoefficient;
  }

  bool run(AffineExpr e, int64_t factor) {
    if (std::abs(factor) > maxCoefficient)
      return false;
    if (auto constant = dyn_cast<AffineConstantExpr>(e)) {
      int64_t product;
      if (llvm::MulOverflow(factor, constant.getValue(), product) ||
          llvm::AddOverflow(form.constant, product, form.constant))
        return false;
      return std::abs(form.constant) <= maxConstant;
    }
    if (isa<AffineDimExpr, AffineSymbolExpr>(e))
      return add(e, factor);
    auto binary = cast<AffineBinaryOpExpr>(e);
    AffineExpr lhs = binary.getLHS(), rhs = binary.getRHS();
    if (e.getKind() == AffineExprKind::Add)
      return run(lhs, factor) && run(rhs, factor);
    auto constant = dyn_cast<AffineConstantExpr>(rhs);
    if (!constant || std::abs(constant.getValue()) > maxCoefficient)
      return false;
    int64_t c = constant.getValue();
    if (e.getKind() == AffineExprKind::Mul)
      return run(lhs, factor * c);
    if (c <= 0)
      return false;
    switch (e.getKind()) {
    case AffineExprKind::FloorDiv:
      return add(e, factor);
    case AffineExprKind::CeilDiv:
      return addFloor(-lhs, c, -factor);
    case AffineExprKind::Mod:
      return run(lhs, factor) && std::abs(factor) <= maxCoefficient / c && addFloor(lhs, c, -factor * c);
    default:
      return false;
    }
  }

  /// Adds ⌊lhs/c⌋, which may simplify to an expression without a division.
  bool addFloor(AffineExpr lhs, int64_t c, int64_t factor) {
    AffineExpr quotient = lhs.floorDiv(c);
    if (quotient.getKind() == AffineExprKind::FloorDiv)
      return add(quotient, factor);
    return run(quotient, factor);
  }
};
} // namespace

std::optional<LinearForm> moa::linearize(AffineExpr e) {
  Linearizer linearizer;
  if (!linearizer.run(e, 1))
    return std::nullopt;
  llvm::erase_if(linearizer.form.terms, [](auto &term) { return term.second == 0; });
  return linearizer.form;
}
