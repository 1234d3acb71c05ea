//===- Term.cpp - nodes, truth values and terms of any type ---------------===//
#include "lib/Validation/Term.h"
#include "llvm/ADT/SmallVector.h"
#include <cmath>

using namespace mlir;
using namespace moa;
using namespace moa::validation;

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

static void profile(llvm::FoldingSetNodeID &key, TermKind kind, int64_t value, Type type, StringRef name,
                    Attribute attribute, ArrayRef<Term> operands, ArrayRef<int64_t> coefficients) {
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

Term TermContext::unique(TermKind kind, int64_t value, Type type, StringRef name, Attribute attribute,
                         ArrayRef<Term> operands, ArrayRef<int64_t> coefficients) {
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
// Truth values
//===----------------------------------------------------------------------===//

Term TermContext::truth(bool value) { return unique(TermKind::Truth, value, bool_, "", {}, {}); }

/// Matches c·select(p, x, y) + d with numbers x and y. Returns p and the two values.
static std::optional<std::tuple<Term, int64_t, int64_t>> choiceOfNumbers(Term a) {
  int64_t factor = 1, constant = 0;
  if (a->is(TermKind::Sum) && a->operands.size() == 1) {
    factor = a->coefficients[0], constant = a->value;
    a = a->operands[0];
  }
  if (!a->is(TermKind::Select) || !a->operands[1]->is(TermKind::Number) || !a->operands[2]->is(TermKind::Number))
    return std::nullopt;
  auto value = [&](Term x) { return wrapAdd(wrapMul(factor, x->value), constant); };
  return std::make_tuple(a->operands[0], value(a->operands[1]), value(a->operands[2]));
}

Term TermContext::notNegative(Term a) {
  // A selection of numbers is kept: an inequality of it bounds the selection.
  if (a->is(TermKind::Number))
    return truth(a->value >= 0);
  return unique(TermKind::NotNegative, 0, bool_, "", {}, {a});
}

Term TermContext::isZero(Term a) {
  if (a->is(TermKind::Number))
    return truth(a->value == 0);
  // For example the integer that a truth value is cast to.
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

Term TermContext::valueOf(Term load) {
  if (!unsignedInputs.count(load->value))
    return load;
  int64_t mask = (int64_t(1) << load->type.getIntOrFloatBitWidth()) - 1;
  return integer("and", load, number(mask));
}

Term TermContext::constant(Attribute value, Type type) {
  if (auto integer = dyn_cast<IntegerAttr>(value))
    return type.isInteger(1) ? truth(!integer.getValue().isZero()) : number(integer.getValue().getSExtValue());
  return unique(TermKind::Constant, 0, type, "", value, {});
}

Term TermContext::real(double value, Type type) { return constant(FloatAttr::get(type, value), type); }

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
  // If the condition says that both are equal, either one will do.
  if (condition->is(TermKind::Zero) && a->type == index_ && b->type == index_ && condition == equal(a, b))
    return b;
  return unique(TermKind::Select, 0, a->type, "", {}, {condition, a, b});
}

/// Returns true if a term is the identity of a named monoid.
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

Term TermContext::reduce(StringRef monoid, Type type, Term index, Term extent, Term body, Term presence) {
  // If one side of a selection is the identity, its condition becomes part of the presence.
  if (body->is(TermKind::Select) && isIdentity(monoid, body->operands[2])) {
    presence = both(presence, body->operands[0]);
    body = body->operands[1];
  } else if (body->is(TermKind::Select) && isIdentity(monoid, body->operands[1])) {
    presence = both(presence, negate(body->operands[0]));
    body = body->operands[2];
  }
  // A reduction of truth values without a present element is its identity.
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
