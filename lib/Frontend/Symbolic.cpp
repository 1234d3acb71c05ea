//===- Symbolic.cpp - integer expressions over symbols --------------------===//
#include "lib/Frontend/Symbolic.h"
#include "lib/Support/MathTerm.h"

using namespace mlir;
using namespace moa;
using namespace moa::frontend;

/// Limits that keep the arithmetic of SymExpr within 64 bits and its text short.
static constexpr double maxCoefficient = 4e18;
static constexpr size_t maxTerms = 256, maxText = 2048;
static constexpr unsigned maxDegree = 32;

static double magnitude(const SymExpr &e) {
  double largest = 0;
  for (const auto &[monomial, coefficient] : e.getTerms())
    largest = std::max(largest, std::abs(static_cast<double>(coefficient)));
  return largest;
}

static unsigned degree(const SymExpr &e) {
  unsigned largest = 0;
  for (const auto &[monomial, coefficient] : e.getTerms()) {
    unsigned sum = 0;
    for (const auto &[atom, power] : monomial)
      sum += power;
    largest = std::max(largest, sum);
  }
  return largest;
}

/// Combines integers with all 64 bits. Returns nothing for other functions.
static std::optional<int64_t> combineIntegers(ScalarFn fn, int64_t a, int64_t b, bool &overflow) {
  int64_t result = 0;
  overflow = false;
  if (fn == ScalarFn::add)
    overflow = __builtin_add_overflow(a, b, &result);
  else if (fn == ScalarFn::sub)
    overflow = __builtin_sub_overflow(a, b, &result);
  else if (fn == ScalarFn::mul)
    overflow = __builtin_mul_overflow(a, b, &result);
  else if (fn == ScalarFn::neg)
    overflow = __builtin_sub_overflow(int64_t(0), a, &result);
  else
    return std::nullopt;
  return result;
}

static SymExpr apply(ScalarFn fn, const SymExpr &a, const SymExpr &b) {
  switch (fn) {
  case ScalarFn::add:
    return a + b;
  case ScalarFn::sub:
    return a - b;
  case ScalarFn::mul:
    return a * b;
  case ScalarFn::div:
    return SymExpr::floorDiv(a, b);
  case ScalarFn::mod:
    return SymExpr::mod(a, b);
  default:
    return -a;
  }
}

std::optional<SymExpr> frontend::combineSymbolic(ScalarFn fn, const SymExpr &a, const SymExpr &b, std::string &why) {
  bool divides = fn == ScalarFn::div || fn == ScalarFn::mod;
  if (!divides && fn != ScalarFn::add && fn != ScalarFn::sub && fn != ScalarFn::mul && fn != ScalarFn::neg)
    return std::nullopt;
  if (divides && b.isZero()) {
    why = "division by zero";
    return std::nullopt;
  }
  auto ca = a.getConstant(), cb = b.getConstant();
  bool overflow = false;
  if (ca && cb) {
    if (auto value = combineIntegers(fn, *ca, *cb, overflow); value && !overflow)
      return SymExpr(*value);
    overflow |= divides && *ca == INT64_MIN && *cb == -1;
  } else {
    double size = fn == ScalarFn::mul ? magnitude(a) * magnitude(b) * std::min(a.getTerms().size(), b.getTerms().size())
                                      : magnitude(a) + magnitude(b);
    overflow = size > maxCoefficient;
  }
  if (overflow) {
    why = "the integer expression does not fit in 64 bits";
    return std::nullopt;
  }
  bool large = fn == ScalarFn::mul &&
               (a.getTerms().size() * b.getTerms().size() > maxTerms || degree(a) + degree(b) > maxDegree);
  if (!large) {
    SymExpr result = apply(fn, a, b);
    if (result.getTerms().size() <= maxTerms && result.str().size() <= maxText)
      return result;
  }
  why = "the integer expression is too large";
  return std::nullopt;
}

std::optional<double> Number::getReal() const {
  if (!integer)
    return real;
  auto value = integer->getConstant();
  return value ? std::optional<double>(double(*value)) : std::nullopt;
}

std::optional<double> frontend::combineReals(ScalarFn fn, double a, double b) {
  switch (fn) {
  case ScalarFn::neg:
    return -a;
  case ScalarFn::add:
    return a + b;
  case ScalarFn::sub:
    return a - b;
  case ScalarFn::mul:
    return a * b;
  case ScalarFn::div:
    return a / b;
  default:
    return std::nullopt;
  }
}

std::string frontend::realText(double value) { return "the real number " + formatNumber(value); }

static InFlightDiagnostic notSymbolic(const Expr &expr, const Reporter &reporter) {
  return reporter.error(expr.loc) << "expected an integer expression over the "
                                     "symbols: + - * / % of names and integers";
}

FailureOr<SymExpr> frontend::evaluateSymbolic(const Expr &expr, const SymbolTable &symbols, const Reporter &reporter) {
  if (expr.kind == ExprKind::Integer)
    return SymExpr(expr.integer);
  if (expr.kind == ExprKind::Name) {
    auto symbol = symbols.find(expr.name);
    if (symbol != symbols.end())
      return symbol->second;
    auto real = symbols.reals.find(expr.name);
    if (real == symbols.reals.end())
      return notSymbolic(expr, reporter);
    return reporter.error(expr.loc) << "'" << expr.name << "' is " << realText(real->second)
                                    << ", but sizes are integers; declare it as one, as in '" << expr.name << " = 64'";
  }
  bool isUnary = expr.kind == ExprKind::Unary && expr.fn == ScalarFn::neg;
  if ((!isUnary && expr.kind != ExprKind::Binary) || expr.ranks)
    return notSymbolic(expr, reporter);
  auto a = evaluateSymbolic(expr.arg(0), symbols, reporter);
  if (failed(a))
    return failure();
  auto b = isUnary ? a : evaluateSymbolic(expr.arg(1), symbols, reporter);
  if (failed(b))
    return failure();
  std::string why;
  if (auto result = combineSymbolic(expr.fn, *a, *b, why))
    return *result;
  if (why.empty())
    return notSymbolic(expr, reporter);
  return reporter.error(expr.loc) << why;
}

static bool isReal(const Expr &expr, const frontend::SymbolTable &symbols) {
  return expr.kind == ExprKind::Real || (expr.kind == ExprKind::Name && symbols.reals.count(expr.name)) ||
         llvm::any_of(expr.args, [&](const ExprPtr &arg) { return isReal(*arg, symbols); });
}

FailureOr<Number> frontend::evaluateNumber(const Expr &expr, const SymbolTable &symbols, const Reporter &reporter) {
  if (!isReal(expr, symbols)) {
    auto integer = evaluateSymbolic(expr, symbols, reporter);
    if (failed(integer))
      return failure();
    return Number{*integer};
  }
  if (expr.kind == ExprKind::Real)
    return Number{std::nullopt, expr.real};
  if (expr.kind == ExprKind::Name)
    return Number{std::nullopt, symbols.reals.at(expr.name)};
  auto refuse = [&] {
    reporter.error(expr.loc) << "expected a number: + - * / of real numbers, integers and "
                                "compile-time constants";
    return failure();
  };
  bool isUnary = expr.kind == ExprKind::Unary;
  if ((!isUnary && expr.kind != ExprKind::Binary) || expr.ranks)
    return refuse();
  auto a = evaluateNumber(expr.arg(0), symbols, reporter);
  if (failed(a))
    return failure();
  auto b = isUnary ? a : evaluateNumber(expr.arg(1), symbols, reporter);
  if (failed(b))
    return failure();
  auto x = a->getReal(), y = b->getReal();
  auto value = x && y ? combineReals(expr.fn, *x, *y) : std::nullopt;
  if (!value)
    return refuse();
  return Number{std::nullopt, *value};
}
