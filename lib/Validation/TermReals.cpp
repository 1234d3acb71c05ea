//===- TermReals.cpp - arithmetic of floats, and casts --------------------===//
#include "lib/Validation/Term.h"
#include "llvm/ADT/APSInt.h"
#include "llvm/ADT/SmallVector.h"
#include <cmath>

using namespace mlir;
using namespace moa;
using namespace moa::validation;

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

static std::optional<double> realOf(Term term) {
  if (!term->is(TermKind::Constant))
    return std::nullopt;
  return llvm::cast<FloatAttr>(term->attribute).getValueAsDouble();
}

static bool isReal(Term term, double value) {
  auto have = realOf(term);
  return have && *have == value && std::signbit(*have) == std::signbit(value);
}

/// Evaluates an operation on numbers of type T. Returns nothing if the operation is unknown.
template <typename T> static std::optional<T> evaluate(StringRef name, T a, T b) {
  using std::isnan;
  if (name == "addf")
    return a + b;
  if (name == "subf")
    return a - b;
  if (name == "mulf")
    return a * b;
  if (name == "divf")
    return a / b;
  if (name == "remf")
    return std::fmod(a, b);
  if (name == "negf")
    return -a;
  if (name == "absf")
    return std::fabs(a);
  if (name == "minf" || name == "maxf") {
    if (isnan(a) || isnan(b))
      return isnan(a) ? a : b;
    if (a == b)
      return std::signbit(a) == (name == "minf") ? a : b;
    return (a < b) == (name == "minf") ? a : b;
  }
  if (name == "exp")
    return std::exp(a);
  if (name == "exp2")
    return std::exp2(a);
  if (name == "log")
    return a < 0 ? std::optional<T>() : std::log(a);
  if (name == "log2")
    return a < 0 ? std::optional<T>() : std::log2(a);
  if (name == "sqrt")
    return a < 0 ? std::optional<T>() : std::sqrt(a);
  if (name == "tanh")
    return std::tanh(a);
  if (name == "sin")
    return std::sin(a);
  if (name == "cos")
    return std::cos(a);
  if (name == "erf")
    return std::erf(a);
  if (name == "floor")
    return std::floor(a);
  if (name == "ceil")
    return std::ceil(a);
  if (name == "pow")
    return std::pow(a, b);
  if (name == "atan2")
    return std::atan2(a, b);
  return std::nullopt;
}

Term TermContext::foldReal(StringRef name, Type type, ArrayRef<Term> operands) {
  SmallVector<double> values;
  for (Term operand : operands)
    if (auto value = realOf(operand))
      values.push_back(*value);
  if (operands.size() == 2 && type != bool_) {
    Term a = operands[0], b = operands[1];
    if ((name == "mulf" || name == "divf") && isReal(b, 1))
      return a;
    if (name == "mulf" && isReal(a, 1))
      return b;
    if ((name == "addf" && isReal(b, -0.0)) || (name == "subf" && isReal(b, 0.0)))
      return a;
    if (name == "addf" && isReal(a, -0.0))
      return b;
    if ((name == "minf" || name == "maxf") && a == b)
      return a;
    for (unsigned k : {0, 1})
      if (isReal(operands[k], name == "minf" ? INFINITY : -INFINITY) && (name == "minf" || name == "maxf"))
        return operands[1 - k];
  }
  if (name == "negf" && operands[0]->is(TermKind::Scalar) && operands[0]->name == "negf")
    return operands[0]->operands[0];
  if (values.size() != operands.size() || values.empty() || values.size() > 2)
    return nullptr;
  if (type == bool_) {
    double a = values.front(), b = values.back();
    if (name == "eqf")
      return truth(a == b);
    if (name == "ltf")
      return truth(a < b);
    return name == "lef" ? truth(a <= b) : nullptr;
  }
  std::optional<double> result;
  if (type.isF64()) {
    result = evaluate<double>(name, values.front(), values.back());
  } else if (type.isF32()) {
    if (auto narrow = evaluate<float>(name, values.front(), values.back()))
      result = *narrow;
  }
  return result ? real(*result, type) : nullptr;
}

Term TermContext::scalar(StringRef name, Type type, ArrayRef<Term> operands) {
  type = canonical(type);
  if (!operands.empty() && (isa<FloatType>(type) || type == bool_))
    if (Term folded = foldReal(name, type, operands))
      return folded;
  SmallVector<Term> sorted(operands);
  bool commutes = llvm::is_contained({"addf", "mulf", "minf", "maxf", "eqf"}, name);
  if (commutes && sorted[1]->id < sorted[0]->id)
    std::swap(sorted[0], sorted[1]);
  return unique(TermKind::Scalar, 0, type, name, {}, sorted);
}

//===----------------------------------------------------------------------===//
// Casts
//===----------------------------------------------------------------------===//

static unsigned widthOf(Type type) { return type.isIndex() ? 64 : type.getIntOrFloatBitWidth(); }

/// Returns true if one type has more bits than another.
static bool isWider(Type type, Type than) { return widthOf(type) > widthOf(than); }

Term TermContext::castReal(Term a, Type type) {
  if (type == bool_)
    return negate(scalar("eqf", bool_, {a, real(0, a->type)}));
  if (!isa<FloatType>(type)) {
    if (a->is(TermKind::Constant)) {
      llvm::APSInt value(widthOf(type), /*isUnsigned=*/false);
      bool exact;
      if (llvm::cast<FloatAttr>(a->attribute).getValue().convertToInteger(value, APFloat::rmTowardZero, &exact) !=
          APFloat::opInvalidOp)
        return number(value.getSExtValue());
    }
    return scalar("fptosi", type, {a});
  }
  while (a->is(TermKind::Scalar) && a->name == "cast" && isWider(a->type, a->operands[0]->type))
    a = a->operands[0];
  if (a->type == type)
    return a;
  if (a->is(TermKind::Constant)) {
    APFloat value = llvm::cast<FloatAttr>(a->attribute).getValue();
    bool lost;
    value.convert(llvm::cast<FloatType>(type).getFloatSemantics(), APFloat::rmNearestTiesToEven, &lost);
    return constant(FloatAttr::get(type, value), type);
  }
  return unique(TermKind::Scalar, 0, type, "cast", {}, {a});
}

Term TermContext::castInteger(Term a, Type type) {
  if (isa<FloatType>(type)) {
    if (a->type == bool_)
      a = select(a, number(1), number(0));
    if (!a->is(TermKind::Number))
      return scalar("sitofp", type, {a});
    APFloat value(llvm::cast<FloatType>(type).getFloatSemantics());
    value.convertFromAPInt(APInt(64, a->value, true), true, APFloat::rmNearestTiesToEven);
    return constant(FloatAttr::get(type, value), type);
  }
  if (a->type == bool_)
    return select(a, number(1), number(0));
  if (type == bool_)
    return negate(isZero(a));
  if (widthOf(type) >= widthOf(a->type))
    return a;
  if (a->is(TermKind::Number))
    return number(APInt(64, a->value, true).trunc(widthOf(type)).getSExtValue());
  // The narrower of two nested truncations decides the result.
  while (a->is(TermKind::Scalar) && a->name == "wrap" && widthOf(a->type) >= widthOf(type))
    a = a->operands[0];
  return scalar("wrap", type, {a});
}

Term TermContext::cast(Term a, Type type) {
  type = canonical(type);
  if (a->type == type)
    return a;
  return isa<FloatType>(a->type) ? castReal(a, type) : castInteger(a, type);
}
