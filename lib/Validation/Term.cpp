//===- Term.cpp - the normal form of terms --------------------------------===//
#include "lib/Validation/Term.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>

using namespace mlir;
using namespace moa;
using namespace moa::validation;

/// Products of sums with more parts than this stay products.
static constexpr size_t maxParts = 64;

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

static void profile(llvm::FoldingSetNodeID &key, TermKind kind, int64_t value, Type type,
                    StringRef name, Attribute attribute, ArrayRef<Term> operands,
                    ArrayRef<int64_t> coefficients) {
  key.AddInteger(static_cast<unsigned>(kind));
  key.AddInteger(value);
  key.AddPointer(type.getAsOpaquePointer());
  key.AddPointer(name.data());
  key.AddPointer(attribute.getAsOpaquePointer());
  for (Term operand : operands)
    key.AddPointer(operand);
  for (int64_t coefficient : coefficients)
    key.AddInteger(coefficient);
}

void TermNode::Profile(llvm::FoldingSetNodeID &key) const {
  profile(key, kind, value, type, name, attribute, operands, coefficients);
}

TermContext::TermContext(MLIRContext *context)
    : index_(IndexType::get(context)), bool_(IntegerType::get(context, 1)), names(allocator) {}

Type TermContext::canonical(Type type) const { return type.isInteger(64) ? index_ : type; }

Term TermContext::unique(TermKind kind, int64_t value, Type type, StringRef name,
                         Attribute attribute, ArrayRef<Term> operands,
                         ArrayRef<int64_t> coefficients) {
  if (!name.empty())
    name = names.save(name);
  else
    name = StringRef();
  llvm::FoldingSetNodeID key;
  profile(key, kind, value, type, name, attribute, operands, coefficients);
  void *position = nullptr;
  if (TermNode *found = nodes.FindNodeOrInsertPos(key, position))
    return found;
  auto *node = new (allocator.Allocate<TermNode>()) TermNode();
  node->kind = kind;
  node->id = created++;
  node->height = kind == TermKind::Reduce;
  for (Term operand : operands)
    node->height = std::max(node->height, operand->height + (kind == TermKind::Reduce));
  node->value = value;
  node->type = type;
  node->name = name;
  node->attribute = attribute;
  node->operands = operands.copy(allocator);
  node->coefficients = coefficients.copy(allocator);
  nodes.InsertNode(node, position);
  return node;
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

/// Integers wrap at 64 bits.
static int64_t wrapMul(int64_t a, int64_t b) { return uint64_t(a) * uint64_t(b); }
static int64_t wrapAdd(int64_t a, int64_t b) { return uint64_t(a) + uint64_t(b); }

Term TermContext::number(int64_t value) {
  return unique(TermKind::Number, value, index_, "", {}, {});
}
Term TermContext::symbol(StringRef name) {
  return unique(TermKind::Symbol, 0, index_, name, {}, {});
}
Term TermContext::index(int64_t number) {
  return unique(TermKind::Index, number, index_, "", {}, {});
}
Term TermContext::freshIndex(StringRef name) {
  Term result = index(fresh++);
  nameIndex(result, name);
  return result;
}

void validation::splitSum(Term term, SmallVectorImpl<std::pair<Term, int64_t>> &parts,
                          int64_t &constant) {
  if (term->is(TermKind::Number)) {
    constant = wrapAdd(constant, term->value);
  } else if (term->is(TermKind::Sum)) {
    for (auto [part, coefficient] : llvm::zip_equal(term->operands, term->coefficients))
      parts.push_back({part, coefficient});
    constant = wrapAdd(constant, term->value);
  } else {
    parts.push_back({term, 1});
  }
}

Term TermContext::makeSum(MutableArrayRef<std::pair<Term, int64_t>> parts, int64_t constant) {
  llvm::sort(parts, [](auto &a, auto &b) { return a.first->id < b.first->id; });
  SmallVector<Term> operands;
  SmallVector<int64_t> coefficients;
  for (auto [part, coefficient] : parts) {
    if (!operands.empty() && operands.back() == part)
      coefficients.back() = wrapAdd(coefficients.back(), coefficient);
    else if (operands.empty() || coefficients.back() != 0)
      operands.push_back(part), coefficients.push_back(coefficient);
    else
      operands.back() = part, coefficients.back() = coefficient;
  }
  if (!operands.empty() && coefficients.back() == 0)
    operands.pop_back(), coefficients.pop_back();
  if (operands.empty())
    return number(constant);
  if (operands.size() == 1 && coefficients[0] == 1 && constant == 0)
    return operands[0];
  return unique(TermKind::Sum, constant, index_, "", {}, operands, coefficients);
}

Term TermContext::combine(Term a, Term b, int64_t factor) {
  SmallVector<std::pair<Term, int64_t>> parts, others;
  int64_t constant = 0, other = 0;
  splitSum(a, parts, constant);
  splitSum(b, others, other);
  for (auto [part, coefficient] : others)
    parts.push_back({part, wrapMul(coefficient, factor)});
  return makeSum(parts, wrapAdd(constant, wrapMul(other, factor)));
}

/// The product of two atoms or products.
Term TermContext::times(Term a, Term b) {
  SmallVector<Term> factors;
  for (Term part : {a, b}) {
    if (part->is(TermKind::Product))
      llvm::append_range(factors, part->operands);
    else
      factors.push_back(part);
  }
  llvm::sort(factors, [](Term x, Term y) { return x->id < y->id; });
  return unique(TermKind::Product, 0, index_, "", {}, factors);
}

Term TermContext::product(Term a, Term b) {
  SmallVector<std::pair<Term, int64_t>> left, right, parts;
  int64_t c = 0, d = 0;
  splitSum(a, left, c);
  splitSum(b, right, d);
  if (left.size() * right.size() > maxParts)
    return times(a, b);
  for (auto [x, m] : left) {
    parts.push_back({x, wrapMul(m, d)});
    for (auto [y, n] : right)
      parts.push_back({times(x, y), wrapMul(m, n)});
  }
  for (auto [y, n] : right)
    parts.push_back({y, wrapMul(n, c)});
  return makeSum(parts, wrapMul(c, d));
}

/// e / f where f is a product of atoms that all stand in e, else null.
static bool divideMonomial(Term e, Term f, SmallVectorImpl<Term> &rest) {
  ArrayRef<Term> have = e->is(TermKind::Product) ? e->operands : ArrayRef<Term>(e);
  ArrayRef<Term> need = f->is(TermKind::Product) ? f->operands : ArrayRef<Term>(f);
  rest.assign(have.begin(), have.end());
  for (Term factor : need) {
    auto it = llvm::find(rest, factor);
    if (it == rest.end())
      return false;
    rest.erase(it);
  }
  return true;
}

static int64_t floorDivide(int64_t a, int64_t b) {
  int64_t q = a / b;
  return (a % b != 0 && ((a < 0) != (b < 0))) ? q - 1 : q;
}

Term TermContext::quotient(Term a, Term b) {
  if (b->is(TermKind::Number) && b->value != 0 && b->value != -1) {
    if (b->value == 1)
      return a;
    // ⌊(c·e + f) / c⌋ = e + ⌊f / c⌋
    SmallVector<std::pair<Term, int64_t>> parts, whole, rest;
    int64_t constant = 0;
    splitSum(a, parts, constant);
    for (auto [part, coefficient] : parts) {
      bool divides = coefficient % b->value == 0;
      (divides ? whole : rest).push_back({part, divides ? coefficient / b->value : coefficient});
    }
    int64_t out = floorDivide(constant, b->value);
    if (rest.empty())
      return makeSum(whole, out);
    constant -= out * b->value;
    Term inner = makeSum(rest, constant);
    Term floor = unique(TermKind::Quotient, 0, index_, "", {}, {inner, b});
    whole.push_back({floor, 1});
    return makeSum(whole, out);
  }
  if (a->is(TermKind::Number) && a->value == 0)
    return a;
  // A monomial with a coefficient of 1 that divides every part.
  if (!b->is(TermKind::Number) && !b->is(TermKind::Sum)) {
    SmallVector<std::pair<Term, int64_t>> parts, whole;
    int64_t constant = 0;
    splitSum(a, parts, constant);
    for (auto [part, coefficient] : parts) {
      SmallVector<Term> rest;
      if (!divideMonomial(part, b, rest))
        break;
      Term left = rest.empty() ? number(1) : rest.front();
      for (Term factor : ArrayRef<Term>(rest).drop_front(!rest.empty()))
        left = times(left, factor);
      whole.push_back({left, coefficient});
    }
    if (constant == 0 && whole.size() == parts.size()) {
      Term result = number(0);
      for (auto [part, coefficient] : whole)
        result = combine(result, part, coefficient);
      return result;
    }
  }
  if (a == b)
    return number(1);
  return unique(TermKind::Quotient, 0, index_, "", {}, {a, b});
}

Term TermContext::remainder(Term a, Term b) {
  return difference(a, product(b, quotient(a, b)));
}

/// min, max, shifts and operations on bits.
Term TermContext::integer(StringRef name, Term a, Term b) {
  bool shifts = name == "shl" || name == "shr";
  if (a->is(TermKind::Number) && b->is(TermKind::Number)) {
    int64_t x = a->value, y = b->value;
    if (shifts && y >= 0 && y < 64)
      return number(name == "shl" ? int64_t(uint64_t(x) << y) : x >> y);
    if (!shifts)
      return number(name == "min"    ? std::min(x, y)
                    : name == "max"  ? std::max(x, y)
                    : name == "and"  ? x & y
                    : name == "or"   ? x | y
                                     : x ^ y);
  }
  if (shifts)
    return b->is(TermKind::Number) && b->value == 0 ? a
                                                    : scalar(name, index_, {a, b});
  if (a == b)
    return name == "xor" ? number(0) : a;
  if (a->is(TermKind::Number) || (!b->is(TermKind::Number) && b->id < a->id))
    std::swap(a, b);
  if (b->is(TermKind::Number) && name != "min" && name != "max") {
    if (b->value == 0)
      return name == "and" ? b : a;
    if (b->value == -1 && name != "xor")
      return name == "and" ? a : b;
    // ~~x
    if (name == "xor" && a->is(TermKind::Scalar) && a->name == "xor" &&
        a->operands[1]->is(TermKind::Number))
      return integer("xor", a->operands[0], number(a->operands[1]->value ^ b->value));
  }
  return scalar(name, index_, {a, b});
}

static Term fromAtom(TermContext &terms, const SymExpr::Atom &atom) {
  if (atom.kind == SymExpr::Atom::Kind::Symbol)
    return terms.symbol(atom.text);
  Term a = terms.extent(atom.lhs), b = terms.extent(atom.rhs);
  return atom.kind == SymExpr::Atom::Kind::FloorDiv ? terms.quotient(a, b)
                                                    : terms.remainder(a, b);
}

Term TermContext::extent(const SymExpr &expr) {
  Term result = number(0);
  for (const auto &[monomial, coefficient] : expr.getTerms()) {
    Term part = number(coefficient);
    for (const auto &[atom, power] : monomial)
      for (unsigned k = 0; k < power; ++k)
        part = product(part, fromAtom(*this, *atom));
    result = sum(result, part);
  }
  return result;
}

Term TermContext::extent(StringRef text) {
  Term &entry = extents[text];
  if (!entry) {
    int64_t value;
    if (!text.getAsInteger(10, value))
      entry = number(value);
    else if (llvm::all_of(text, [](char c) { return llvm::isAlnum(c) || c == '_'; }))
      entry = symbol(text);
    else if (auto expr = SymExpr::parse(text))
      entry = extent(*expr);
    else
      entry = symbol(text);
  }
  return entry;
}

//===----------------------------------------------------------------------===//
// Truth values
//===----------------------------------------------------------------------===//

Term TermContext::truth(bool value) {
  return unique(TermKind::Truth, value, bool_, "", {}, {});
}

/// c·select(p, x, y) + d of numbers x and y: p, and the two values.
static std::optional<std::tuple<Term, int64_t, int64_t>> choiceOfNumbers(Term a) {
  int64_t factor = 1, constant = 0;
  if (a->is(TermKind::Sum) && a->operands.size() == 1) {
    factor = a->coefficients[0], constant = a->value;
    a = a->operands[0];
  }
  if (!a->is(TermKind::Select) || !a->operands[1]->is(TermKind::Number) ||
      !a->operands[2]->is(TermKind::Number))
    return std::nullopt;
  auto value = [&](Term x) { return wrapAdd(wrapMul(factor, x->value), constant); };
  return std::make_tuple(a->operands[0], value(a->operands[1]), value(a->operands[2]));
}

Term TermContext::notNegative(Term a) {
  // A selection of numbers stays: an inequality of it says what it is.
  if (a->is(TermKind::Number))
    return truth(a->value >= 0);
  return unique(TermKind::NotNegative, 0, bool_, "", {}, {a});
}

Term TermContext::isZero(Term a) {
  if (a->is(TermKind::Number))
    return truth(a->value == 0);
  // The integer that a truth value is, among others.
  if (auto choice = choiceOfNumbers(a)) {
    auto [p, x, y] = *choice;
    return select(p, truth(x == 0), truth(y == 0));
  }
  if (a->is(TermKind::Sum) && a->coefficients[0] < 0)
    a = scaled(a, -1);
  return unique(TermKind::Zero, 0, bool_, "", {}, {a});
}

Term TermContext::negate(Term p) {
  if (p->is(TermKind::Truth))
    return truth(!p->value);
  if (p->is(TermKind::Not))
    return p->operands[0];
  // ¬(a ≥ 0) is −a − 1 ≥ 0
  if (p->is(TermKind::NotNegative))
    return notNegative(difference(number(-1), p->operands[0]));
  return unique(TermKind::Not, 0, bool_, "", {}, {p});
}

Term TermContext::connect(TermKind kind, Term p, Term q) {
  bool isAnd = kind == TermKind::And;
  SmallVector<Term> parts;
  for (Term part : {p, q}) {
    if (part->is(kind))
      llvm::append_range(parts, part->operands);
    else
      parts.push_back(part);
  }
  llvm::sort(parts, [](Term a, Term b) { return a->id < b->id; });
  parts.erase(llvm::unique(parts), parts.end());
  SmallVector<Term> kept;
  for (Term part : parts) {
    if (part->is(TermKind::Truth)) {
      if ((part->value == 0) == isAnd)
        return part;
      continue;
    }
    if (llvm::is_contained(parts, negate(part)))
      return truth(!isAnd);
    kept.push_back(part);
  }
  if (kept.empty())
    return truth(isAnd);
  if (kept.size() == 1)
    return kept[0];
  return unique(kind, 0, bool_, "", {}, kept);
}

Term TermContext::same(Term p, Term q) {
  if (p == q)
    return truth(true);
  if (q->is(TermKind::Truth))
    std::swap(p, q);
  if (p->is(TermKind::Truth))
    return p->value ? q : negate(q);
  // ¬p ⇔ q is ¬(p ⇔ q)
  if (p->is(TermKind::Not))
    return negate(same(p->operands[0], q));
  if (q->is(TermKind::Not))
    return negate(same(p, q->operands[0]));
  if (q->id < p->id)
    std::swap(p, q);
  return scalar("same", bool_, {p, q});
}

//===----------------------------------------------------------------------===//
// Anything
//===----------------------------------------------------------------------===//

Term TermContext::load(int64_t input, ArrayRef<Term> indices, Type element) {
  return unique(TermKind::Load, input, canonical(element), "", {}, indices);
}

Term TermContext::constant(Attribute value, Type type) {
  if (auto integer = dyn_cast<IntegerAttr>(value))
    return type.isInteger(1) ? truth(!integer.getValue().isZero())
                             : number(integer.getValue().getSExtValue());
  return unique(TermKind::Constant, 0, type, "", value, {});
}

Term TermContext::real(double value, Type type) {
  return constant(FloatAttr::get(type, value), type);
}

Term TermContext::select(Term condition, Term a, Term b) {
  if (condition->is(TermKind::Truth))
    return condition->value ? a : b;
  if (a == b)
    return a;
  if (condition->is(TermKind::Not))
    return select(condition->operands[0], b, a);
  if (a->type == bool_) {
    if (a->is(TermKind::Truth))
      return a->value ? either(condition, b) : both(negate(condition), b);
    if (b->is(TermKind::Truth))
      return b->value ? either(negate(condition), a) : both(condition, a);
  }
  // Where they are equal, either one.
  if (condition->is(TermKind::Zero) && a->type == index_ && b->type == index_ &&
      condition == equal(a, b))
    return b;
  return unique(TermKind::Select, 0, a->type, "", {}, {condition, a, b});
}

/// Whether a term is the identity of a named monoid.
static bool isIdentity(StringRef monoid, Term term) {
  double real = 0;
  int64_t whole = 0;
  if (monoid == "mul") {
    real = whole = 1;
  } else if (monoid == "max" || monoid == "min") {
    real = monoid == "max" ? -INFINITY : INFINITY;
    whole = monoid == "max" ? INT64_MIN : INT64_MAX;
  } else if (monoid != "add") {
    return false;
  }
  if (term->is(TermKind::Constant))
    return llvm::cast<FloatAttr>(term->attribute).getValueAsDouble() == real;
  return term->is(TermKind::Number) && term->value == whole;
}

Term TermContext::reduce(StringRef monoid, Type type, Term index, Term extent, Term body,
                         Term presence) {
  // Where a term is the identity otherwise, its condition is one of the range.
  if (body->is(TermKind::Select) && isIdentity(monoid, body->operands[2])) {
    presence = both(presence, body->operands[0]);
    body = body->operands[1];
  } else if (body->is(TermKind::Select) && isIdentity(monoid, body->operands[1])) {
    presence = both(presence, negate(body->operands[0]));
    body = body->operands[2];
  }
  // Whether there is any element, of none.
  if (presence->isFalse() && (monoid == "or" || monoid == "and"))
    return truth(monoid == "and");
  unsigned height = std::max(body->height, presence->height) + 1;
  Term bound = this->index(-int64_t(height));
  if (index != bound) {
    DenseMap<Term, Term> with = {{index, bound}};
    Substitution binding(*this, with);
    body = binding.of(body);
    presence = binding.of(presence);
  }
  return unique(TermKind::Reduce, 0, canonical(type), monoid, {}, {bound, extent, body, presence});
}

Term TermContext::apply(int64_t definition, Type type, ArrayRef<Term> indices) {
  return unique(TermKind::Apply, definition, canonical(type), "", {}, indices);
}

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

/// An operation on numbers of type T, or nothing.
template <typename T>
static std::optional<T> evaluate(StringRef name, T a, T b) {
  using std::isnan;
  if (name == "addf")
    return a + b;
  if (name == "subf")
    return a - b;
  if (name == "mulf")
    return a * b;
  if (name == "divf")
    return a / b;
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
      if (isReal(operands[k], name == "minf" ? INFINITY : -INFINITY) &&
          (name == "minf" || name == "maxf"))
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

static unsigned widthOf(Type type) {
  return type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
}

/// Whether every value of a float type is one of another.
static bool isWider(Type type, Type than) {
  return widthOf(type) > widthOf(than);
}

Term TermContext::castReal(Term a, Type type) {
  if (type == bool_)
    return negate(scalar("eqf", bool_, {a, real(0, a->type)}));
  if (!isa<FloatType>(type)) {
    if (a->is(TermKind::Constant)) {
      llvm::APSInt value(widthOf(type), /*isUnsigned=*/false);
      bool exact;
      if (llvm::cast<FloatAttr>(a->attribute)
              .getValue()
              .convertToInteger(value, APFloat::rmTowardZero, &exact) != APFloat::opInvalidOp)
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
    value.convert(llvm::cast<FloatType>(type).getFloatSemantics(), APFloat::rmNearestTiesToEven,
                  &lost);
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
  // What the wider of two truncations keeps, the narrower one sees.
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

//===----------------------------------------------------------------------===//
// Substitution
//===----------------------------------------------------------------------===//

Substitution::Substitution(TermContext &terms, const DenseMap<Term, Term> &with)
    : terms(&terms), memo(with), isIdentity(with.empty()),
      grows(llvm::any_of(with, [](auto &entry) { return entry.second->height > entry.first->height; })) {}

Term Substitution::of(Term term) {
  if (isIdentity)
    return term;
  if (auto it = memo.find(term); it != memo.end())
    return it->second;
  if (term->operands.empty())
    return term;
  if (grows && term->is(TermKind::Reduce))
    return memo[term] = ofReduce(term);
  SmallVector<Term> operands;
  bool same = true;
  for (Term operand : term->operands) {
    operands.push_back(of(operand));
    same &= operands.back() == operand;
  }
  Term result = same ? term : rebuild(term, operands);
  memo[term] = result;
  return result;
}

/// Whether anything of a term is replaced.
bool Substitution::touches(Term term) {
  if (auto it = memo.find(term); it != memo.end())
    return it->second != term;
  auto [it, isNew] = touched.try_emplace(term, false);
  if (!isNew)
    return it->second;
  bool found = llvm::any_of(term->operands, [&](Term part) { return touches(part); });
  return touched[term] = found;
}

/// What comes in may hold reductions as high as this one, whose bound indices have its
/// number: its own index is free meanwhile, by a name that no reduction inside has.
Term Substitution::ofReduce(Term term) {
  if (!touches(term))
    return term;
  Term free = terms->index((int64_t(1) << 40) + term->height);
  DenseMap<Term, Term> open = {{term->operands[0], free}};
  Substitution opening(*terms, open);
  Term body = of(opening.of(term->operands[2])), presence = of(opening.of(term->operands[3]));
  return terms->reduce(term->name, term->type, free, of(term->operands[1]), body, presence);
}

Term Substitution::rebuild(Term term, ArrayRef<Term> x) {
  switch (term->kind) {
  case TermKind::Sum: {
    Term result = terms->number(term->value);
    for (auto [part, coefficient] : llvm::zip_equal(x, term->coefficients))
      result = terms->sum(result, terms->scaled(part, coefficient));
    return result;
  }
  case TermKind::Product: {
    Term result = terms->number(1);
    for (Term factor : x)
      result = terms->product(result, factor);
    return result;
  }
  case TermKind::Quotient: return terms->quotient(x[0], x[1]);
  case TermKind::Load: return terms->load(term->value, x, term->type);
  case TermKind::NotNegative: return terms->notNegative(x[0]);
  case TermKind::Zero: return terms->isZero(x[0]);
  case TermKind::Not: return terms->negate(x[0]);
  case TermKind::And:
  case TermKind::Or: {
    Term result = x[0];
    for (Term part : x.drop_front())
      result = term->is(TermKind::And) ? terms->both(result, part) : terms->either(result, part);
    return result;
  }
  case TermKind::Select: return terms->select(x[0], x[1], x[2]);
  case TermKind::Scalar:
    if (term->name == "cast")
      return terms->cast(x[0], term->type);
    if (term->type.isIndex() && x.size() == 2)
      return terms->integer(term->name, x[0], x[1]);
    return terms->scalar(term->name, term->type, x);
  // No reduction inside has become as high as this one, so that its index may stay bound.
  case TermKind::Reduce: return terms->reduce(term->name, term->type, x[0], x[1], x[2], x[3]);
  case TermKind::Apply: return terms->apply(term->value, term->type, x);
  default: return term;
  }
}

Term TermContext::under(Term term, Term condition) {
  DenseMap<Term, Term> with;
  for (Term part : condition->is(TermKind::And) ? condition->operands : ArrayRef(condition)) {
    with[part] = truth(true);
    with[negate(part)] = truth(false);
  }
  return substitute(term, with);
}

Term TermContext::substitute(Term term, const DenseMap<Term, Term> &with) {
  return with.empty() ? term : Substitution(*this, with).of(term);
}
