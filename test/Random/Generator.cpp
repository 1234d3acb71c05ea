//===- Generator.cpp - specifications made at random ----------------------===//
#include "Generator.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>

using namespace moa;
using namespace moa::random;

//===----------------------------------------------------------------------===//
// Types and extents of a program
//===----------------------------------------------------------------------===//

void Generator::chooseTypes() {
  exact = chance(1, 2);
  exactLimit = 0x1p22;
  computeRoundoff = 0x1p-24;
  switch (pick(10)) {
  case 0:
  case 1:
  case 2:
  case 3:
  case 4:
    floatTypes = {"f64"};
    exactLimit = 0x1p50;
    computeRoundoff = 0x1p-53;
    program.wantsDouble = true;
    break;
  case 5:
  case 6:
    floatTypes = {"f32"};
    break;
  case 7:
    floatTypes = {"f32", "f64"};
    break;
  case 8:
    floatTypes = {"bf16", "bf16", "f32", "f16"};
    break;
  default:
    floatTypes = {"f16", "f16", "f32"};
  }
  hasNarrow = llvm::is_contained(floatTypes, "f16");
  bool hasBrain = llvm::is_contained(floatTypes, "bf16");
  narrowLimit = hasBrain ? 0x1p8 : 0x1p11;
  narrowRoundoff = hasBrain ? 0x1p-9 : 0x1p-12;
  if (chance(1, 4)) {
    program.typeName = floatTypes[0];
    floatTypes.push_back("T");
    floatTypes.push_back("T");
  }
  intTypes = {"i64", "i32", "i16", "i8"};
}

void Generator::chooseExtents(Scope &kernel) {
  static const char *const names[] = {"N", "M", "K"};
  unsigned count = 1 + pick(3);
  for (unsigned k = 0; k < count; ++k) {
    program.symbolBounds[names[k]] = 40;
    kernel.extents.insert(kernel.extents.end(), 2, SymExpr::symbol(names[k]));
  }
  unsigned constants = 1 + pick(2);
  for (unsigned k = 0; k < constants; ++k)
    kernel.extents.push_back(SymExpr(between(1, chance(1, 4) ? 9 : 4)));
  if (chance(1, 3)) {
    program.constants.push_back({"D", between(1, 5), chance(1, 2)});
    kernel.extents.push_back(SymExpr(program.constants[0].value));
  }
  SymExpr n = SymExpr::symbol("N"), other = oneOf(kernel.extents);
  switch (pick(9)) {
  case 0:
    kernel.extents.push_back(n + other);
    break;
  case 1:
    kernel.extents.push_back(SymExpr(2) * n);
    break;
  case 2:
    kernel.extents.push_back(n + SymExpr(1));
    break;
  case 3:
    kernel.extents.push_back(SymExpr::floorDiv(n, SymExpr(2)));
    break;
  case 4:
    kernel.extents.push_back(SymExpr::mod(n, SymExpr(3)));
    break;
  case 5:
    kernel.extents.push_back(SymExpr::floorDiv(n + SymExpr(1), SymExpr(2)));
    break;
  default:
    break;
  }
}

double Generator::boundOf(const SymExpr &value) const {
  double sum = 0;
  for (const auto &[monomial, coefficient] : value.getTerms()) {
    double product = coefficient;
    for (const auto &[atom, power] : monomial) {
      double bound = 40;
      if (atom->kind == SymExpr::Atom::Kind::FloorDiv)
        bound = boundOf(atom->lhs);
      else if (atom->kind == SymExpr::Atom::Kind::Mod)
        bound = boundOf(atom->rhs);
      product *= std::pow(bound, power);
    }
    sum += std::max(product, 0.0);
  }
  return sum;
}

double Generator::boundOf(const Shape &shape) const {
  double product = 1;
  for (const SymExpr &extent : shape)
    product *= boundOf(extent);
  return product;
}

bool Generator::isSmall(const Shape &shape) const {
  if (shape.size() > 6)
    return false;
  double size = 1;
  for (const SymExpr &extent : shape) {
    auto value = extent.evaluate([](llvm::StringRef) { return std::optional<int64_t>(2); });
    size *= value ? std::max<int64_t>(*value, 1) : 4;
  }
  return size <= 600;
}

SymExpr Generator::extent(Scope &scope) { return oneOf(scope.extents); }

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

std::optional<NodeId> Generator::add(Scope &scope, Node node) {
  Facts &facts = node.facts;
  if (node.kind == Kind::Float) {
    if (facts.magnitude > exactLimit)
      facts.integral = false;
    if ((exact && !facts.integral) || !(facts.magnitude <= (exact ? exactLimit : 1e6)))
      return std::nullopt;
  }
  for (const Need &need : node.needs)
    if (auto value = need.value.getConstant(); value && *value < need.low)
      return std::nullopt;
  // The compiler computes with these; it limits their size.
  if (facts.symbolic && facts.magnitude > 1e5)
    return std::nullopt;
  if (!isSmall(node.shape) || program.nodes.size() > 600)
    return std::nullopt;
  for (NodeId operand : node.operands)
    node.free.insert(at(operand).free.begin(), at(operand).free.end());
  for (NodeId variable : node.binds)
    node.free.erase(variable);
  node.home = scope.home;
  NodeId id = program.nodes.size();
  program.nodes.push_back(std::move(node));
  scope.pool.push_back(id);
  return id;
}

std::optional<NodeId> Generator::add(Scope &scope, const std::string &op, const std::string &text,
                                     std::vector<NodeId> operands, Kind kind, Shape shape, Facts facts,
                                     std::vector<Need> needs) {
  Node node;
  node.op = op;
  node.text = text;
  node.operands = std::move(operands);
  node.kind = kind;
  node.shape = std::move(shape);
  node.facts = facts;
  node.needs = std::move(needs);
  node.named = chance(1, 3);
  return add(scope, std::move(node));
}

static NodeId addLeaf(Program &program, Scope &scope, Node node) {
  node.leaf = true;
  node.home = scope.home;
  NodeId id = program.nodes.size();
  program.nodes.push_back(std::move(node));
  scope.pool.push_back(id);
  return id;
}

NodeId Generator::literal(Scope &scope, int64_t value, Kind kind) {
  Node node;
  node.op = "literal";
  node.kind = kind;
  node.facts.magnitude = std::abs(double(value));
  node.facts.integral = node.facts.copied = true;
  node.facts.symbolic = kind != Kind::Bool;
  std::string digits = value == 10 && kind == Kind::Int ? "0xA" : std::to_string(std::abs(value));
  if (kind == Kind::Bool)
    node.text = value ? "true" : "false";
  else
    node.text = (value < 0 ? "(-" : "") + digits + (kind == Kind::Float ? ".0" : "") + (value < 0 ? ")" : "");
  return addLeaf(program, scope, std::move(node));
}

NodeId Generator::real(Scope &scope, double value) {
  if (exact)
    return literal(scope, std::llround(value * 2), Kind::Float);
  Node node;
  node.op = "literal";
  node.facts.magnitude = std::fabs(value);
  node.facts.copied = node.facts.symbolic = true;
  char digits[64];
  snprintf(digits, sizeof digits, value < 0 ? "(%.6f)" : "%.6f", value);
  node.text = digits;
  return addLeaf(program, scope, std::move(node));
}

NodeId Generator::symbol(Scope &scope, const SymExpr &value) {
  Node node;
  node.op = "symbol";
  node.kind = Kind::Int;
  node.text = "(" + value.str() + ")";
  node.facts.magnitude = boundOf(value) + boundOf(SymExpr(0) - value);
  node.facts.symbolic = true;
  return addLeaf(program, scope, std::move(node));
}

static Scope &rootOf(Scope &scope) {
  Scope *root = &scope;
  while (root->parent)
    root = root->parent;
  return *root;
}

std::optional<NodeId> Generator::input(Scope &scope, Kind kind, const Shape &shape) {
  if (scope.home != 0 || program.parameters.size() >= 12 || !isSmall(shape))
    return std::nullopt;
  Parameter parameter;
  Node node;
  node.op = shape.empty() ? "scalar parameter" : "parameter";
  node.kind = kind;
  node.shape = shape;
  node.facts.copied = node.facts.selection = kind == Kind::Float;
  static const double floats[] = {1, 2, 3, 5}, ints[] = {1, 3, 9, 100};
  switch (kind) {
  case Kind::Float:
    parameter.type = oneOf(floatTypes);
    parameter.integral = node.facts.integral = exact || chance(1, 3);
    parameter.magnitude = oneOf(floats);
    break;
  case Kind::Int:
    parameter.type = oneOf(intTypes);
    parameter.magnitude = oneOf(ints);
    break;
  case Kind::Bool:
    parameter.type = "bool";
    parameter.density = pick(9);
  }
  node.facts.magnitude = parameter.magnitude;
  parameter.name = node.text = "x" + std::to_string(program.parameters.size());
  parameter.node = addLeaf(program, rootOf(scope), std::move(node));
  program.parameters.push_back(parameter);
  return parameter.node;
}

std::optional<NodeId> Generator::indexInput(Scope &scope, const Shape &shape, const SymExpr &bound) {
  if (bound.getConstant().value_or(1) < 1)
    return std::nullopt;
  // Indices below 100 are of any integer type.
  auto id = input(scope, Kind::Int, shape);
  if (!id)
    return std::nullopt;
  Parameter &parameter = program.parameters.back();
  parameter.isIndex = true;
  parameter.bound = bound;
  program.nodes[*id].needs.push_back({bound, 1});
  parameter.magnitude = program.nodes[*id].facts.magnitude = boundOf(bound);
  return parameter.magnitude < 100 ? id : std::nullopt;
}

NodeId Generator::indexVariable(Scope &scope, const SymExpr &extent) {
  Node node;
  node.op = "index variable";
  node.kind = Kind::Int;
  node.facts.magnitude = boundOf(extent);
  node.text = "i_" + std::to_string(program.nodes.size());
  NodeId id = addLeaf(program, scope, std::move(node));
  program.nodes[id].free.insert(id);
  return id;
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

std::optional<NodeId> Generator::find(Scope &scope, Filter fits) {
  std::vector<NodeId> candidates;
  std::vector<Scope *> chain;
  for (Scope *s = &scope; s; s = s->parent)
    chain.push_back(s);
  for (Scope *s : llvm::reverse(chain))
    for (NodeId id : s->pool)
      if (fits(at(id)))
        candidates.push_back(id);
  if (candidates.empty())
    return std::nullopt;
  size_t n = candidates.size();
  return candidates[std::max(pick(n), pick(n))];
}

std::optional<NodeId> Generator::findArray(Scope &scope, Kind kind, unsigned minRank) {
  auto found = find(scope, [&](const Node &node) {
    return node.kind == kind && node.shape.size() >= minRank && node.op != "literal" && node.op != "symbol";
  });
  if (found && !chance(1, 8))
    return found;
  Shape shape;
  unsigned rank = minRank + pick(3);
  for (unsigned k = 0; k < rank; ++k)
    shape.push_back(extent(scope));
  auto made = input(scope, kind, shape);
  return made ? made : found;
}

/// An index form that spreads what there is over the shape.
static std::optional<NodeId> broadcast(Generator &g, Scope &scope, Kind kind, const Shape &shape) {
  if (shape.empty())
    return std::nullopt;
  Scope inner;
  inner.home = scope.home;
  inner.parent = &scope;
  inner.extents = scope.extents;
  std::vector<NodeId> variables;
  std::string names;
  for (const SymExpr &extent : shape) {
    variables.push_back(g.indexVariable(inner, extent));
    names += (names.empty() ? "" : ", ") + g.at(variables.back()).text + " < " + extent.str();
  }
  Node form;
  form.op = "index form";
  form.binds = variables;
  form.kind = kind;
  form.shape = shape;
  // An array that has some of the axes, in order.
  auto placesIn = [&](const Shape &part) -> std::optional<std::vector<size_t>> {
    std::vector<size_t> places;
    size_t axis = 0;
    for (const SymExpr &extent : part) {
      while (axis < shape.size() && shape[axis] != extent)
        ++axis;
      if (axis == shape.size())
        return std::nullopt;
      places.push_back(axis++);
    }
    return places;
  };
  auto found = g.find(scope, [&](const Node &node) {
    return node.kind == kind && !node.shape.empty() && node.shape.size() < shape.size() && placesIn(node.shape);
  });
  if (found) {
    std::string subscripts;
    std::vector<size_t> places = *placesIn(g.at(*found).shape);
    for (size_t place : places)
      subscripts += (subscripts.empty() ? "" : ", ") + g.at(variables[place]).text;
    form.text = "[" + names + "] $0[" + subscripts + "]";
    form.operands = {*found};
    form.facts = g.at(*found).facts;
    return g.add(scope, form);
  }
  NodeId first = g.oneOf(variables), second = g.oneOf(variables);
  form.operands = {first, second};
  form.facts.magnitude = 2 * g.boundOf(shape) + 4;
  form.facts.integral = form.facts.copied = true;
  std::string sum = g.chance(1, 2) ? "$0 + 2 * $1" : "$0 - $1";
  if (kind == Kind::Bool)
    form.text = "[" + names + "] " + (g.chance(1, 2) ? "$0 <= $1 + 1" : "$0 % 2 == 0");
  else if (kind == Kind::Int)
    form.text = "[" + names + "] " + sum;
  else
    form.text = "[" + names + "] f32(" + sum + ")";
  return g.add(scope, form);
}

std::optional<NodeId> Generator::fit(Scope &scope, Kind kind, const Shape &shape) {
  if (shape.empty())
    return scalar(scope, kind);
  if (!chance(1, 6))
    if (auto found = find(scope, [&](const Node &node) { return node.kind == kind && node.shape == shape; }))
      return found;
  if (chance(1, 2))
    if (auto made = input(scope, kind, shape))
      return made;
  if (auto spread = broadcast(*this, scope, kind, shape))
    return spread;
  return input(scope, kind, shape);
}

std::optional<NodeId> Generator::fitOrScalar(Scope &scope, Kind kind, const Shape &shape) {
  return chance(1, 4) ? scalar(scope, kind) : fit(scope, kind, shape);
}

NodeId Generator::scalar(Scope &scope, Kind kind) {
  if (chance(2, 3))
    if (auto found = find(scope, [&](const Node &node) { return node.kind == kind && node.shape.empty(); }))
      return *found;
  if (chance(1, 4))
    if (auto made = input(scope, kind, {}))
      return *made;
  if (kind == Kind::Float)
    return real(scope, double(between(-16, 16)) / 8);
  if (kind == Kind::Bool)
    return literal(scope, pick(2), Kind::Bool);
  return chance(1, 4) ? symbol(scope, extent(scope)) : literal(scope, between(-4, 10));
}

bool Generator::isComparable(const Node &node) const {
  if (node.kind != Kind::Float)
    return true;
  return !node.facts.infinite && (exact ? node.facts.integral : node.facts.copied);
}

std::optional<NodeId> Generator::findComparable(Scope &scope, const Shape *shape) {
  return find(scope, [&](const Node &node) {
    return node.kind != Kind::Bool && isComparable(node) && (!shape || node.shape == *shape) && node.op != "literal" &&
           node.op != "symbol";
  });
}

//===----------------------------------------------------------------------===//
// The program
//===----------------------------------------------------------------------===//

static std::set<std::string> disabled;

void moa::random::disableOperators(const std::vector<std::string> &names) {
  disabled.insert(names.begin(), names.end());
}

bool Generator::step(Scope &scope) {
  static const std::vector<Operator> table = [] {
    std::vector<Operator> all;
    for (llvm::ArrayRef<Operator> rows : {getPointwiseOperators(), getReductionOperators(), getMovementOperators(),
                                          getFormOperators(), getCascadeOperators()})
      all.insert(all.end(), rows.begin(), rows.end());
    return all;
  }();
  unsigned total = 0;
  for (const Operator &row : table)
    total += row.weight;
  for (unsigned attempt = 0; attempt < 12; ++attempt) {
    unsigned at = pick(total);
    auto row = llvm::find_if(table, [&](const Operator &row) {
      bool here = at < row.weight;
      at -= row.weight;
      return here;
    });
    if (disabled.count(row->name))
      return false;
    if ((row->onlyReal && exact) || (row->onlyKernel && (scope.home != 0 || depth != 0)))
      continue;
    if (row->make(*this, scope))
      return true;
  }
  return false;
}

/// A declared type that holds the values of the node.
std::optional<Output> Generator::makeOutput(NodeId id) {
  const Node &node = at(id);
  Output output;
  output.node = id;
  double magnitude = node.facts.magnitude;
  std::vector<std::string> types;
  switch (node.kind) {
  case Kind::Bool:
    types = {"bool"};
    break;
  case Kind::Int:
    types = {"i32", "i16", "i8"};
    if (magnitude <= 0x1p53)
      types.insert(types.end(), 4, "i64");
    if (magnitude <= exactLimit)
      types.push_back("f64");
    break;
  case Kind::Float:
    types.insert(types.end(), 4, floatTypes[0]);
    types.push_back("f64");
    types.push_back("f32");
    if (hasNarrow)
      types.push_back("f16");
    llvm::erase_if(types, [&](const std::string &type) {
      if (type == "f16")
        return magnitude > (node.facts.integral ? 0x1p11 : 6e4);
      if (type == "bf16")
        return node.facts.integral && magnitude > 0x1p8;
      return type == "f32" && node.facts.integral && magnitude > 0x1p24;
    });
  }
  if (types.empty())
    return std::nullopt;
  output.type = oneOf(types);
  return output;
}

void Generator::chooseOutputs(Scope &kernel) {
  std::set<NodeId> used;
  for (const Node &node : program.nodes)
    used.insert(node.operands.begin(), node.operands.end());
  std::vector<NodeId> sinks;
  for (NodeId id : kernel.pool)
    if (!at(id).leaf && at(id).free.empty() && !used.count(id))
      sinks.push_back(id);
  unsigned count = 1 + pick(3);
  for (unsigned k = 0; k < 2 * count && !sinks.empty() && program.outputs.size() < count; ++k) {
    size_t n = sinks.size(), position = std::max({pick(n), pick(n), pick(n)});
    if (auto output = makeOutput(sinks[position])) {
      output->name = "r" + std::to_string(program.outputs.size());
      program.outputs.push_back(*output);
    }
    sinks.erase(sinks.begin() + position);
  }
}

Generator::Generator(uint64_t seed) : engine(seed * 0x9E3779B97F4A7C15u + 1) {
  program.seed = seed;
  chooseTypes();
  Scope kernel;
  chooseExtents(kernel);
  unsigned inputs = 1 + pick(3);
  for (unsigned k = 0; k < inputs; ++k) {
    Shape shape;
    unsigned rank = 1 + pick(chance(1, 4) ? 5 : 3);
    for (unsigned axis = 0; axis < rank; ++axis)
      shape.push_back(extent(kernel));
    input(kernel, Kind::Float, shape);
  }
  unsigned steps = 5 + pick(chance(1, 4) ? 30 : 12);
  for (unsigned k = 0; k < steps; ++k)
    step(kernel);
  for (unsigned k = 0; k < 50 && program.outputs.empty(); ++k) {
    step(kernel);
    chooseOutputs(kernel);
  }
}

Program moa::random::makeProgram(uint64_t seed) { return Generator(seed).finish(); }
