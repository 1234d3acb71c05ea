//===- Signature.cpp - a kernel's header under the settings ---------------===//
#include "lib/Frontend/Signature.h"
#include "lib/Frontend/Assumption.h"
#include "lib/Frontend/Builtins.h"
#include "lib/Support/ToleranceLimit.h"
#include "mlir/Analysis/Presburger/IntegerRelation.h"
#include "mlir/Analysis/Presburger/Simplex.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include <cmath>

using namespace mlir;
using namespace moa;
using namespace moa::frontend;

namespace {
/// A superset of the sizes that satisfy the constraints. Every product of symbols is a variable of
/// its own, and so is every quotient or remainder.
class SizeSet {
public:
  /// Adds `a` fn `b`. Returns false if the set becomes empty.
  bool restrict(ScalarFn fn, const SymExpr &a, const SymExpr &b);

private:
  void addVariable(const SymExpr::Monomial &monomial);

  presburger::IntegerPolyhedron set{presburger::PresburgerSpace::getSetSpace(0)};
  std::map<SymExpr::Monomial, unsigned, SymExpr::MonomialLess> variables;
};

class SignatureBuilder {
public:
  SignatureBuilder(const KernelDecl &kernel, const Settings &settings, const std::set<std::string> &replaced,
                   const Reporter &reporter)
      : kernel(kernel), settings(settings), replaced(replaced), reporter(reporter) {}
  FailureOr<Signature> run();

private:
  const std::string *getSetting(const SymbolDecl &symbol) const;
  LogicalResult resolveType(const SymbolDecl &symbol);
  LogicalResult resolveConstant(const SymbolDecl &symbol);
  FailureOr<int64_t> parseSize(const SymbolDecl &symbol, StringRef text);
  LogicalResult setConstant(const SymbolDecl &symbol, StringRef setting, bool isReal);
  FailureOr<Type> lookupType(const TypeName &name);
  FailureOr<Signature::Array> resolveArray(const ArrayDecl &array);
  LogicalResult resolveRange(const ArrayDecl &decl, Signature::Array &array);
  LogicalResult resolveRealRange(const ArrayDecl &decl, Signature::Array &array);
  LogicalResult resolveTolerance(const ArrayDecl &decl, Signature::Array &array);
  LogicalResult addConstraint(const Expr &expr);
  std::string valuesText(const Expr &expr) const;
  LogicalResult addAssumption(const Expr &expr);
  LogicalResult checkBinding();

  const KernelDecl &kernel;
  const Settings &settings;
  const std::set<std::string> &replaced;
  const Reporter &reporter;
  Signature result;
  SizeSet sizes; // that satisfy the constraints
};
} // namespace

/// Adds a variable. Sizes are at least 0; a remainder by a number is also less than it.
void SizeSet::addVariable(const SymExpr::Monomial &monomial) {
  using presburger::BoundType;
  if (monomial.empty() || !variables.try_emplace(monomial, variables.size()).second)
    return;
  unsigned position = set.appendVar(presburger::VarKind::SetDim);
  if (llvm::all_of(monomial, [](const auto &factor) { return factor.first->kind == SymExpr::Atom::Kind::Symbol; }))
    set.addBound(BoundType::LB, position, 0);
  const SymExpr::Atom &first = *monomial.front().first;
  if (monomial.size() > 1 || monomial.front().second > 1 || first.kind != SymExpr::Atom::Kind::Mod)
    return;
  if (auto divisor = first.rhs.getConstant(); divisor && *divisor > 0) {
    set.addBound(BoundType::LB, position, 0);
    set.addBound(BoundType::UB, position, *divisor - 1);
  }
}

bool SizeSet::restrict(ScalarFn fn, const SymExpr &a, const SymExpr &b) {
  if (fn == ScalarFn::ne)
    return true;
  for (const SymExpr *side : {&a, &b})
    for (const auto &[monomial, coefficient] : side->getTerms())
      addVariable(monomial);
  // Each comparison bounds the sign of a − b, for example b − a − 1 ≥ 0 for <.
  bool isLess = fn == ScalarFn::lt || fn == ScalarFn::le;
  SmallVector<llvm::DynamicAPInt> row(variables.size() + 1, llvm::DynamicAPInt(0));
  for (auto [side, isAdded] : {std::pair(&a, !isLess), std::pair(&b, isLess)})
    for (const auto &[monomial, coefficient] : side->getTerms()) {
      unsigned position = monomial.empty() ? variables.size() : variables.at(monomial);
      row[position] += isAdded ? llvm::DynamicAPInt(coefficient) : -llvm::DynamicAPInt(coefficient);
    }
  if (fn == ScalarFn::lt || fn == ScalarFn::gt)
    row.back() -= llvm::DynamicAPInt(1);
  if (fn == ScalarFn::eq)
    set.addEquality(row);
  else
    set.addInequality(row);
  return !set.isEmptyByGCDTest() && !presburger::Simplex(set).isEmpty();
}

Type Signature::Array::getStorage() const {
  if (!elementType.isUnsignedInteger())
    return elementType;
  return IntegerType::get(elementType.getContext(), elementType.getIntOrFloatBitWidth());
}

FailureOr<Signature> frontend::resolveSignature(const KernelDecl &kernel, const Settings &settings,
                                                const std::set<std::string> &replaced, const Reporter &reporter) {
  return SignatureBuilder(kernel, settings, replaced, reporter).run();
}

FailureOr<Signature> SignatureBuilder::run() {
  for (const SymbolDecl &symbol : kernel.symbols) {
    bool isType = symbol.kind == SymbolDecl::ElementType;
    if (failed(isType ? resolveType(symbol) : resolveConstant(symbol)))
      return failure();
  }
  result.computeType = Float32Type::get(reporter.getContext());
  for (const ArrayDecl &decl : kernel.params) {
    auto array = resolveArray(decl);
    if (failed(array))
      return failure();
    if (array->elementType.isF64())
      result.computeType = array->elementType;
    result.params.push_back(std::move(*array));
  }
  for (const ArrayDecl &decl : kernel.results) {
    auto array = resolveArray(decl);
    if (failed(array))
      return failure();
    result.results.push_back(std::move(*array));
  }
  for (const ExprPtr &constraint : kernel.constraints)
    if (failed(addConstraint(*constraint)))
      return failure();
  for (const ExprPtr &assumption : kernel.assumptions)
    if (failed(addAssumption(*assumption)))
      return failure();
  if (failed(checkBinding()))
    return failure();
  return std::move(result);
}

//===----------------------------------------------------------------------===//
// Symbols
//===----------------------------------------------------------------------===//

const std::string *SignatureBuilder::getSetting(const SymbolDecl &symbol) const {
  auto setting = settings.find(symbol.name);
  return setting == settings.end() ? nullptr : &setting->second;
}

LogicalResult SignatureBuilder::resolveType(const SymbolDecl &symbol) {
  const std::string *setting = getSetting(symbol);
  if (!setting && symbol.defaultType.name.empty())
    return reporter.error(symbol.loc) << "element type '" << symbol.name
                                      << "' has no default; set it, for example --set " << symbol.name << "=f32";
  StringRef name = setting ? StringRef(*setting) : StringRef(symbol.defaultType.name);
  Type type = getElementType(reporter.getContext(), name);
  bool fits =
      type && (symbol.typeClass == "float" ? isa<FloatType>(type) : isa<IntegerType>(type) && !type.isInteger(1));
  if (!fits)
    return reporter.error(setting ? symbol.loc : symbol.defaultType.loc)
           << "element type '" << symbol.name << "' is to be one of "
           << (symbol.typeClass == "float" ? "f64, f32, bf16, f16" : "i8, i16, i32, i64, u8, u16, u32") << ", but "
           << (setting ? "the setting is '" : "the default is '") << name << "'";
  result.types[symbol.name] = type;
  return success();
}

static std::optional<double> parseReal(StringRef text) {
  double value = 0;
  StringRef digits = text;
  digits.consume_front("-");
  if (digits == "inf")
    return text == digits ? INFINITY : -INFINITY;
  bool isNumber = !digits.empty() && (llvm::isDigit(digits.front()) || digits.front() == '.');
  if (!isNumber || text.getAsDouble(value) || !std::isfinite(value))
    return std::nullopt;
  return value;
}

FailureOr<int64_t> SignatureBuilder::parseSize(const SymbolDecl &symbol, StringRef text) {
  int64_t value = 0;
  if (text.getAsInteger(10, value) || value < 0) {
    auto error = reporter.error(symbol.loc) << "the setting of '" << symbol.name
                                            << "' is to be an integer from 0 to 2^63 - 1, but is '" << text << "'";
    bool isInteger = !text.getAsInteger(10, value);
    if (symbol.kind == SymbolDecl::Constant && !isInteger && parseReal(text))
      error << "; a real constant has a real default, as in '" << symbol.name << " = 1.0'";
    return failure();
  }
  return value;
}

LogicalResult SignatureBuilder::setConstant(const SymbolDecl &symbol, StringRef setting, bool isReal) {
  if (!isReal) {
    auto value = parseSize(symbol, setting);
    if (failed(value))
      return failure();
    result.symbols[symbol.name] = SymExpr(*value);
    return success();
  }
  auto value = parseReal(setting);
  if (!value)
    return reporter.error(symbol.loc) << "the setting of '" << symbol.name << "' is to be a real number, but is '"
                                      << setting << "'; set it as in --set " << symbol.name << "=1e-6";
  result.symbols.reals[symbol.name] = *value;
  return success();
}

LogicalResult SignatureBuilder::resolveConstant(const SymbolDecl &symbol) {
  const std::string *setting = getSetting(symbol);
  if (symbol.kind == SymbolDecl::Runtime) {
    if (setting)
      return setConstant(symbol, *setting, /*isReal=*/false);
    result.symbols[symbol.name] = SymExpr::symbol(symbol.name);
    result.runtimeSymbols.push_back(symbol.name);
    return success();
  }
  if (!symbol.value) {
    if (!setting)
      return reporter.error(symbol.loc) << "compile-time constant '" << symbol.name
                                        << "' has no default; set it, for example --set " << symbol.name << "=64";
    int64_t integer = 0;
    bool isSize = !StringRef(*setting).getAsInteger(10, integer) && integer >= 0;
    return setConstant(symbol, *setting, !isSize && parseReal(*setting));
  }
  auto value = evaluateNumber(*symbol.value, result.symbols, reporter);
  if (failed(value))
    return failure();
  if (setting)
    return setConstant(symbol, *setting, !value->integer);
  if (!value->integer) {
    if (std::isnan(value->real))
      return reporter.error(symbol.value->loc)
             << "the default of compile-time constant '" << symbol.name << "' is not a number";
    result.symbols.reals[symbol.name] = value->real;
    return success();
  }
  auto constant = value->integer->getConstant();
  if (!constant || *constant < 0) {
    auto error = reporter.error(symbol.value->loc)
                 << "the default of compile-time constant '" << symbol.name
                 << "' is to be a number that is not negative, but is " << value->integer->str();
    if (constant)
      error << "; a real one may be, as in '" << symbol.name << " = " << *constant << ".0'";
    return error;
  }
  result.symbols[symbol.name] = *value->integer;
  return success();
}

//===----------------------------------------------------------------------===//
// Arrays
//===----------------------------------------------------------------------===//

FailureOr<Type> SignatureBuilder::lookupType(const TypeName &name) {
  auto symbol = result.types.find(name.name);
  if (symbol != result.types.end())
    return symbol->second;
  Type type = getElementType(reporter.getContext(), name.name);
  if (type && !isa<IndexType>(type))
    return type;
  std::vector<std::string> parameters;
  for (const auto &entry : result.types)
    parameters.push_back(entry.first);
  return reporter.error(name.loc) << "unknown element type '" << name.name << "'" << getTypeHint(name.name, parameters);
}

FailureOr<Signature::Array> SignatureBuilder::resolveArray(const ArrayDecl &decl) {
  Signature::Array array;
  auto type = lookupType(decl.type);
  if (failed(type))
    return failure();
  array.elementType = *type;
  for (const ExprPtr &expr : decl.shape) {
    auto extent = evaluateSymbolic(*expr, result.symbols, reporter);
    if (failed(extent))
      return failure();
    if (auto value = extent->getConstant(); value && *value < 0)
      return reporter.error(expr->loc) << "an extent cannot be negative, but this is " << *value;
    array.shape.push_back(*extent);
  }
  if (failed(resolveRange(decl, array)) || failed(resolveTolerance(decl, array)))
    return failure();
  return array;
}

LogicalResult SignatureBuilder::resolveRange(const ArrayDecl &decl, Signature::Array &array) {
  if (!decl.low)
    return success();
  if (array.elementType.isInteger(1))
    return reporter.error(decl.low->loc) << "a range is declared for numbers, but '" << decl.name << "' is of type "
                                         << getTypeText(array.elementType);
  if (isa<FloatType>(array.elementType))
    return resolveRealRange(decl, array);
  auto low = evaluateSymbolic(*decl.low, result.symbols, reporter);
  if (failed(low))
    return failure();
  auto high = evaluateSymbolic(*decl.high, result.symbols, reporter);
  if (failed(high))
    return failure();
  auto from = low->getConstant(), to = high->getConstant();
  if (from && to && *from > *to)
    return reporter.error(decl.low->loc) << "the range " << *from << ".." << *to << " of '" << decl.name
                                         << "' is empty; the smaller end comes first, and the other is not in it";
  array.range = low->str() + ".." + high->str();
  return success();
}

/// Returns the number with enough digits to read it back exactly.
static std::string exactText(double value) {
  for (int digits = 6;; digits += 11) {
    std::string text;
    llvm::raw_string_ostream(text) << llvm::format("%.*g", digits, value);
    double read = 0;
    if (digits == 17 || (!StringRef(text).getAsDouble(read) && read == value))
      return text;
  }
}

/// Evaluates a range of floats. Its ends are numbers and belong to the range.
LogicalResult SignatureBuilder::resolveRealRange(const ArrayDecl &decl, Signature::Array &array) {
  std::string texts[2];
  std::optional<double> ends[2];
  for (unsigned k : {0, 1}) {
    const Expr *expr = k ? decl.high.get() : decl.low.get();
    auto end = evaluateNumber(*expr, result.symbols, reporter);
    if (failed(end))
      return failure();
    ends[k] = end->getReal();
    texts[k] = end->integer ? end->integer->str() : exactText(end->real);
    if (ends[k] && !std::isfinite(*ends[k]))
      return reporter.error(expr->loc) << "the ends of a range are finite numbers; without a range '" << decl.name
                                       << "' may be anything";
  }
  if (ends[0] && ends[1] && *ends[0] > *ends[1])
    return reporter.error(decl.low->loc) << "the range " << texts[0] << ".." << texts[1] << " of '" << decl.name
                                         << "' is empty; the smaller end comes first";
  array.realRange = texts[0] + ".." + texts[1];
  return success();
}

LogicalResult SignatureBuilder::resolveTolerance(const ArrayDecl &decl, Signature::Array &array) {
  if (!decl.within)
    return success();
  if (!isa<FloatType>(array.elementType))
    return reporter.error(decl.within->loc) << "'within' bounds the error of floats, but '" << decl.name
                                            << "' is of type " << getTypeText(array.elementType) << ", which is exact";
  if (replaced.count(decl.name))
    return success();
  auto type = cast<FloatType>(array.elementType);
  if (auto why = whyNotKept(decl.within->value, type.getFPMantissaWidth(), getTypeText(type)))
    return reporter.error(decl.within->loc) << *why;
  array.within = decl.within->value;
  return success();
}

static bool uses(const ExprPtr &expr, StringRef name) {
  if (!expr)
    return false;
  return (expr->kind == ExprKind::Name && expr->name == name) ||
         llvm::any_of(expr->args, [&](const ExprPtr &arg) { return uses(arg, name); });
}

/// Returns true if the symbol occurs in place of a size, where a scalar cannot: in the bound of an
/// index, a count, or an entry of a shape.
static bool usesAsSize(const Expr &expr, StringRef name) {
  bool isSized =
      expr.kind == ExprKind::Call && llvm::is_contained({"take", "drop", "rotate", "reshape", "iota"}, expr.name);
  for (auto [k, arg] : llvm::enumerate(expr.args))
    if (usesAsSize(*arg, name) || (isSized && (k > 0 || expr.name == "iota") && uses(arg, name)))
      return true;
  return llvm::any_of(expr.vars, [&](const IndexVar &var) { return uses(var.bound, name); });
}

static bool isSizeIn(const KernelDecl &kernel, StringRef name) {
  auto isUsed = [&](const ExprPtr &expr) { return uses(expr, name); };
  for (const std::vector<ArrayDecl> *arrays : {&kernel.params, &kernel.results})
    for (const ArrayDecl &array : *arrays)
      if (llvm::any_of(array.shape, isUsed) || isUsed(array.low) || isUsed(array.high))
        return true;
  return llvm::any_of(kernel.constraints, isUsed) ||
         llvm::any_of(kernel.body.definitions,
                      [&](const Definition &definition) { return usesAsSize(*definition.value, name); });
}

/// Checks that each run-time symbol is the whole extent of some axis, which gives its value.
LogicalResult SignatureBuilder::checkBinding() {
  for (const SymbolDecl &symbol : kernel.symbols) {
    if (!llvm::is_contained(result.runtimeSymbols, symbol.name))
      continue;
    auto binds = [&](const Signature::Array &array) {
      return llvm::any_of(array.shape, [&](const SymExpr &extent) {
        return extent.getSymbol() == std::optional<std::string>(symbol.name);
      });
    };
    if (llvm::any_of(result.params, binds) || llvm::any_of(result.results, binds))
      continue;
    auto error = reporter.error(symbol.loc) << "no array has '" << symbol.name
                                            << "' as an extent, so nothing gives it a value at run time; make it a "
                                               "compile-time constant";
    if (isSizeIn(kernel, symbol.name))
      return error << " after the ';', as in '; " << symbol.name << " = 64'";
    return error << " or a scalar parameter";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Constraints
//===----------------------------------------------------------------------===//

static bool holds(ScalarFn fn, int64_t a, int64_t b) {
  switch (fn) {
  case ScalarFn::eq:
    return a == b;
  case ScalarFn::ne:
    return a != b;
  case ScalarFn::lt:
    return a < b;
  case ScalarFn::le:
    return a <= b;
  case ScalarFn::gt:
    return a > b;
  default:
    return a >= b;
  }
}

/// Returns the values of the names in an expression: " with D = 3, G = 2".
std::string SignatureBuilder::valuesText(const Expr &expr) const {
  std::map<std::string, std::string> values;
  std::function<void(const Expr &)> collect = [&](const Expr &part) {
    auto symbol = result.symbols.find(part.name);
    if (part.kind == ExprKind::Name && symbol != result.symbols.end())
      values[part.name] = symbol->second.str();
    for (const ExprPtr &arg : part.args)
      collect(*arg);
  };
  collect(expr);
  std::string text;
  for (const auto &[name, value] : values)
    text += (text.empty() ? " with " : ", ") + name + " = " + value;
  return text;
}

LogicalResult SignatureBuilder::addConstraint(const Expr &expr) {
  if (expr.kind == ExprKind::Binary && expr.fn == ScalarFn::and_) {
    if (failed(addConstraint(expr.arg(0))))
      return failure();
    return addConstraint(expr.arg(1));
  }
  if (expr.kind != ExprKind::Binary || expr.fn < ScalarFn::eq || expr.fn > ScalarFn::ge)
    return reporter.error(expr.loc) << "a constraint compares integer "
                                       "expressions over the symbols, as in "
                                       "'require H % G == 0'";
  auto a = evaluateSymbolic(expr.arg(0), result.symbols, reporter);
  if (failed(a))
    return failure();
  auto b = evaluateSymbolic(expr.arg(1), result.symbols, reporter);
  if (failed(b))
    return failure();
  std::string text = a->str() + " " + expr.name + " " + b->str();
  auto ca = a->getConstant(), cb = b->getConstant();
  if (ca && cb && !holds(expr.fn, *ca, *cb))
    return reporter.error(expr.loc) << "the constraint does not hold: " << text << valuesText(expr);
  if (ca && cb)
    return success();
  auto earlier = llvm::join(result.constraints, ", ");
  result.constraints.push_back(text);
  if (sizes.restrict(expr.fn, *a, *b))
    return success();
  auto error = reporter.error(expr.loc) << "no sizes satisfy the constraint " << text;
  if (!earlier.empty())
    error << " together with " << earlier;
  return error << "; sizes are integers from 0 on";
}

LogicalResult SignatureBuilder::addAssumption(const Expr &expr) {
  auto text = assumptionText(expr, result, reporter);
  if (failed(text))
    return failure();
  result.assumptions.push_back(std::move(*text));
  return success();
}

//===----------------------------------------------------------------------===//
// Settings
//===----------------------------------------------------------------------===//

LogicalResult frontend::checkSettings(const Program &program, const Settings &settings, const Reporter &reporter) {
  std::vector<std::string> names;
  for (const KernelDecl &kernel : program.kernels)
    for (const SymbolDecl &symbol : kernel.symbols)
      if (!llvm::is_contained(names, symbol.name))
        names.push_back(symbol.name);
  for (const auto &setting : settings) {
    if (llvm::is_contained(names, setting.first))
      continue;
    auto error = reporter.error(program.kernels.front().loc)
                 << "unknown setting '" << setting.first << "'" << didYouMean(setting.first, names);
    if (names.empty())
      return error << "; there is nothing to set in this file";
    return error << "; set one of " << llvm::join(names, ", ");
  }
  return success();
}
