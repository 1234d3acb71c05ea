//===- FormOperators.cpp - index forms and functions ----------------------===//
#include "Generator.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>

using namespace moa;
using namespace moa::random;

//===----------------------------------------------------------------------===//
// Index forms
//===----------------------------------------------------------------------===//

/// A subscript of an axis made of an index variable; nothing if it does not fit.
static std::optional<std::string> subscriptText(Generator &g, const Node &variable, const SymExpr &range,
                                                const SymExpr &axis, std::vector<Need> &needs) {
  std::string i = variable.text, extent = "(" + axis.str() + ")";
  if (range == axis)
    switch (g.pick(6)) {
    case 0:
      return extent + " - 1 - " + i;
    case 1:
      return "(" + i + " + " + std::to_string(g.between(1, 3)) + ") % " + extent;
    case 2:
      return i + " / 2";
    default:
      return i;
    }
  if (auto value = axis.getConstant(); value && *value > 0 && g.chance(1, 2))
    return i + " % " + std::to_string(*value);
  switch (g.pick(4)) {
  case 0:
    needs.push_back({axis - range, 0});
    return i;
  case 1:
    needs.push_back({axis, 1});
    return "min(" + i + ", " + extent + " - 1)";
  case 2: // one axis of the array for groups of this one
    needs.push_back({axis, 1});
    return i + " * " + extent + " / max(" + range.str() + ", 1)";
  default:
    needs.push_back({axis, 1});
    return i + " % " + extent;
  }
}

/// Elements of arrays around the form, at its variables.
static void addElements(Generator &g, Scope &inner, const std::vector<NodeId> &variables, const Shape &ranges) {
  for (unsigned k = 1 + g.pick(3); k > 0; --k) {
    Kind kind = g.chance(3, 4) ? Kind::Float : g.chance(1, 2) ? Kind::Int : Kind::Bool;
    auto x = g.findArray(*inner.parent, kind, 1);
    if (!x)
      continue;
    const Node &node = g.at(*x);
    unsigned rank = node.shape.size();
    unsigned whole = rank > 1 && g.chance(1, 4) ? 1 : 0; // axes left over
    std::vector<Need> needs;
    std::vector<NodeId> operands = {*x};
    std::string list;
    Shape rest(node.shape.end() - whole, node.shape.end());
    // Which axis stays whole: the last, or a `_` elsewhere.
    unsigned open = whole && g.chance(1, 2) ? g.pick(rank) : rank;
    if (open < rank) {
      rest = {node.shape[open]};
    }
    bool fits = true;
    for (unsigned axis = 0; axis < rank - (open < rank ? 0 : whole); ++axis) {
      list += list.empty() ? "" : ", ";
      if (axis == open) {
        list += "_";
        continue;
      }
      // The variable with the axis' own range, if there is one.
      unsigned at = g.pick(variables.size());
      for (unsigned v = 0; v < variables.size(); ++v)
        if (ranges[v] == node.shape[axis] && g.chance(3, 4))
          at = v;
      auto text = subscriptText(g, g.at(variables[at]), ranges[at], node.shape[axis], needs);
      if (!text) {
        fits = false;
        break;
      }
      list += *text;
      operands.push_back(variables[at]);
    }
    if (fits)
      g.add(inner, "psi", "$0[" + list + "]", operands, node.kind, rest, node.facts, needs);
  }
}

static bool makeIndexForm(Generator &g, Scope &scope) {
  if (g.depth >= 2)
    return false;
  Scope inner;
  inner.home = scope.home;
  inner.parent = &scope;
  inner.extents = scope.extents;
  Shape ranges;
  std::vector<NodeId> variables;
  std::string names;
  std::vector<Need> needs;
  for (unsigned k = 1 + g.pick(3); k > 0; --k) {
    ranges.push_back(g.extent(scope));
    variables.push_back(g.indexVariable(inner, ranges.back()));
    names += (names.empty() ? "" : ", ") + g.at(variables.back()).text + " < " + ranges.back().str();
  }
  ++g.depth;
  addElements(g, inner, variables, ranges);
  for (unsigned k = g.pick(5); k > 0; --k)
    g.step(inner);
  --g.depth;
  auto isBody = [&](NodeId id) {
    const Node &node = g.at(id);
    return !node.leaf && llvm::any_of(variables, [&](NodeId v) { return node.free.count(v); });
  };
  for (NodeId body : llvm::reverse(inner.pool)) {
    if (!isBody(body))
      continue;
    Node form;
    form.op = "index form";
    form.text = "[" + names + "] #0";
    form.operands = {body};
    form.binds = variables;
    form.kind = g.at(body).kind;
    form.shape = ranges;
    form.shape.insert(form.shape.end(), g.at(body).shape.begin(), g.at(body).shape.end());
    form.facts = g.at(body).facts;
    form.facts.symbolic = false;
    form.named = true;
    return bool(g.add(scope, form));
  }
  return false;
}

/// `[j < M, _] x[_, j]`: a transposition in index style.
static bool makePassThrough(Generator &g, Scope &scope) {
  auto x = g.findArray(scope, Kind::Float, 2);
  if (!x)
    return false;
  const Node &node = g.at(*x);
  unsigned rank = node.shape.size(), axis = g.pick(rank), place = g.pick(rank);
  std::string list, names, i = "j" + std::to_string(g.program.nodes.size());
  Shape shape = node.shape;
  shape.erase(shape.begin() + axis);
  shape.insert(shape.begin() + place, node.shape[axis]);
  for (unsigned k = 0; k < rank; ++k) {
    list += (k ? ", " : "") + (k == axis ? i : std::string("_"));
    names += (k ? ", " : "") + (k != place ? "_" : g.chance(1, 2) ? i : i + " < " + shape[k].str());
  }
  return bool(g.add(scope, "pass through", "[" + names + "] $0[" + list + "]", {*x}, node.kind, shape, node.facts));
}

/// `mask([_, i, j] p, x)` and `x + [_, i] …` with bounds from the context.
static bool makeOpenForm(Generator &g, Scope &scope) {
  auto x = g.findArray(scope, Kind::Float, 1);
  if (!x)
    return false;
  const Node node = g.at(*x);
  std::string id = std::to_string(g.program.nodes.size());
  std::vector<unsigned> axes;
  std::string names;
  for (unsigned k = 0; k < node.shape.size(); ++k) {
    bool open = node.shape.size() > 1 && g.chance(1, 3);
    if (!open)
      axes.push_back(k);
    names += (k ? ", " : "") + (open ? std::string("_") : "k" + id + "_" + std::to_string(k));
  }
  if (axes.empty())
    return false;
  auto name = [&](unsigned axis) { return "k" + id + "_" + std::to_string(axis); };
  std::string i = name(g.oneOf(axes)), j = name(g.oneOf(axes));
  Facts facts = node.facts;
  // An array that knows one of the axes.
  unsigned axis = g.oneOf(axes);
  std::vector<NodeId> operands = {*x};
  std::string offset = std::to_string(g.between(-2, 4));
  if (g.chance(1, 3))
    offset = "(" + g.extent(scope).str() + ") - (" + g.extent(scope).str() + ")";
  if (auto w = g.find(scope,
                      [&](const Node &other) {
                        return other.kind == Kind::Int && other.shape == Shape{node.shape[axis]} && !other.facts.absent;
                      });
      w && g.chance(1, 2)) {
    offset = "$1[" + name(axis) + "]";
    operands.push_back(*w);
  }
  if (g.chance(2, 3)) {
    facts.absent = true;
    static const char *const operators[] = {"<=", "<", ">", ">=", "!="};
    std::string predicate;
    switch (g.pick(4)) {
    case 0:
      predicate = "abs(" + i + " - " + j + ") <= " + offset;
      break;
    case 1:
      predicate = j + " <= " + i + " + " + offset + " and " + i + " - " + j + " < " + std::to_string(g.between(1, 4));
      break;
    case 2:
      predicate = i + " / 2 == " + j + " / 2 or " + j + " < " + offset;
      break;
    default:
      predicate = j + " " + g.oneOf(operators) + " " + i + " + " + offset;
    }
    return bool(
        g.add(scope, "mask", "mask([" + names + "] " + predicate + ", #0)", operands, node.kind, node.shape, facts));
  }
  Node number;
  number.kind = Kind::Int;
  number.facts.magnitude = 250;
  if (operands.size() > 1)
    number.facts.magnitude += g.at(operands[1]).facts.magnitude;
  if (number.facts.magnitude > g.exactLimit)
    return false;
  return bool(g.add(scope, "open form", "$0 + ([" + names + "] " + j + " - " + i + " + " + offset + ")", operands,
                    node.kind, node.shape, g.arithmetic("+", node, number)));
}

/// Two arrays joined by a choice whose other operand is outside its array.
static bool makeJoin(Generator &g, Scope &scope) {
  auto x = g.findArray(scope, Kind::Float, 1);
  if (!x)
    return false;
  const Node a = g.at(*x);
  auto y = g.find(scope, [&](const Node &node) {
    return node.kind == a.kind && node.shape.size() == a.shape.size() &&
           Shape(node.shape.begin() + 1, node.shape.end()) == Shape(a.shape.begin() + 1, a.shape.end());
  });
  if (!y)
    return false;
  const Node b = g.at(*y);
  std::string i = "j" + std::to_string(g.program.nodes.size());
  SymExpr first = a.shape[0], sum = first + b.shape[0];
  std::string size = "(" + first.str() + ")", rest, names;
  Shape shape = a.shape;
  shape[0] = sum;
  for (unsigned k = 1; k < shape.size(); ++k) {
    std::string name = i + "_" + std::to_string(k);
    names += ", " + name + " < " + shape[k].str();
    rest += ", " + name;
  }
  Facts facts = a.facts;
  facts.magnitude = std::max(facts.magnitude, b.facts.magnitude);
  facts.integral &= b.facts.integral;
  facts.copied &= b.facts.copied;
  facts.absent |= b.facts.absent;
  facts.infinite |= b.facts.infinite;
  facts.selection = facts.symbolic = false;
  return bool(g.add(scope, "join",
                    "[" + i + " < " + sum.str() + names + "] select(" + i + " < " + size + ", $0[" + i + rest +
                        "], $1[" + i + " - " + size + rest + "])",
                    {*x, *y}, a.kind, shape, facts));
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

std::optional<Home> Generator::makeFunction() {
  if (program.functions.size() >= 3)
    return std::nullopt;
  Home home = program.functions.size() + 1;
  Scope scope;
  scope.home = home;
  Function function;
  function.name = "f" + std::to_string(home);
  static const char *const names[] = {"n", "m"};
  std::set<std::string> used;
  for (unsigned k = 1 + pick(3); k > 0; --k) {
    Node cell;
    cell.op = "cell";
    cell.text = "c" + std::to_string(function.parameters.size());
    cell.home = home;
    cell.leaf = true;
    cell.facts.magnitude = 4;
    cell.facts.integral = exact;
    cell.facts.absent = true;
    for (unsigned axis = pick(3); axis > 0; --axis) {
      std::string name = oneOf(names);
      used.insert(name);
      cell.shape.push_back(SymExpr::symbol(name));
    }
    NodeId id = program.nodes.size();
    program.nodes.push_back(cell);
    scope.pool.push_back(id);
    function.parameters.push_back(id);
  }
  for (const std::string &name : used)
    scope.extents.push_back(SymExpr::symbol(name));
  scope.extents.push_back(SymExpr(2));
  // Its place is taken now; calls find it when it is whole.
  program.functions.push_back(function);
  for (unsigned k = 2 + pick(5); k > 0; --k)
    step(scope);
  for (NodeId id : llvm::reverse(scope.pool))
    if (!at(id).leaf && at(id).free.empty() && at(id).kind == Kind::Float) {
      program.functions[home - 1].result = id;
      return home;
    }
  return std::nullopt;
}

/// What the nodes of a function need of its extents.
static std::vector<Need> collectNeeds(const Program &program, Home home, NodeId result) {
  std::vector<Need> needs;
  std::set<NodeId> seen;
  std::vector<NodeId> work = {result};
  while (!work.empty()) {
    NodeId id = work.back();
    work.pop_back();
    if (!seen.insert(id).second)
      continue;
    const Node &node = program.nodes[id];
    needs.insert(needs.end(), node.needs.begin(), node.needs.end());
    for (const SymExpr &extent : node.shape)
      needs.push_back({extent, 0});
    work.insert(work.end(), node.operands.begin(), node.operands.end());
    work.insert(work.end(), node.binds.begin(), node.binds.end());
  }
  return needs;
}

static bool makeCall(Generator &g, Scope &scope) {
  std::optional<Home> home;
  if (scope.home == 0 && g.depth == 0 && (g.program.functions.empty() || g.chance(1, 3)))
    home = g.makeFunction();
  else if (!g.program.functions.empty())
    home = 1 + g.pick(g.program.functions.size());
  // A function calls those before it only, so that there is no recursion.
  if (!home || g.program.functions[*home - 1].result == 0 || (scope.home && *home >= scope.home))
    return false;
  const Function &function = g.program.functions[*home - 1];
  std::map<std::string, SymExpr> extents;
  auto substitute = [&](const SymExpr &expr) {
    return expr.substitute([&](llvm::StringRef name) -> std::optional<SymExpr> {
      auto found = extents.find(name.str());
      return found == extents.end() ? std::nullopt : std::optional<SymExpr>(found->second);
    });
  };
  std::optional<Shape> frame;
  std::vector<NodeId> operands;
  for (NodeId parameter : function.parameters) {
    const Shape &cell = g.at(parameter).shape;
    Shape wanted;
    bool known = true;
    for (const SymExpr &extent : cell)
      known &= extents.count(*extent.getSymbol()) > 0;
    std::optional<NodeId> x;
    if (!frame && !cell.empty() && !known) {
      x = g.find(scope, [&](const Node &node) {
        if (node.kind != Kind::Float || node.shape.size() < cell.size())
          return false;
        std::map<std::string, SymExpr> trial = extents;
        for (size_t k = 0; k < cell.size(); ++k) {
          const SymExpr &extent = node.shape[node.shape.size() - cell.size() + k];
          auto [it, inserted] = trial.emplace(*cell[k].getSymbol(), extent);
          if (!inserted && it->second != extent)
            return false;
        }
        return true;
      });
    }
    if (!x) {
      for (const SymExpr &extent : cell)
        extents.emplace(*extent.getSymbol(), g.extent(scope));
      wanted = frame && g.chance(2, 3) ? *frame : Shape();
      for (const SymExpr &extent : cell)
        wanted.push_back(substitute(extent));
      x = g.fit(scope, Kind::Float, wanted);
      if (!x)
        return false;
    }
    auto small = g.bounded(scope, *x, 4);
    if (!small || g.at(*small).facts.symbolic || (g.exact && !g.at(*small).facts.integral) ||
        g.at(*small).facts.infinite)
      return false;
    const Shape &shape = g.at(*small).shape;
    size_t leading = shape.size() - cell.size();
    for (size_t k = 0; k < cell.size(); ++k)
      extents.emplace(*cell[k].getSymbol(), shape[leading + k]);
    if (leading > 0)
      frame = Shape(shape.begin(), shape.begin() + leading);
    operands.push_back(*small);
  }
  const Node &result = g.at(function.result);
  Shape shape = frame.value_or(Shape());
  for (const SymExpr &extent : result.shape)
    shape.push_back(substitute(extent));
  std::vector<Need> needs;
  for (const Need &need : collectNeeds(g.program, *home, function.result))
    needs.push_back({substitute(need.value), need.low});
  Node call;
  call.op = "call";
  call.text = function.name;
  if (g.chance(1, 3)) {
    call.text += " @ (";
    for (auto [k, parameter] : llvm::enumerate(function.parameters))
      call.text += (k ? "," : "") + std::to_string(g.rank(parameter));
    call.text += ") ";
  }
  for (size_t k = 0; k < operands.size(); ++k)
    call.text += (k ? ", #" : "(#") + std::to_string(k);
  call.text += ")";
  call.operands = operands;
  call.shape = shape;
  call.facts = result.facts;
  call.facts.copied = call.facts.selection = false;
  call.needs = needs;
  call.callee = *home;
  call.named = true;
  return bool(g.add(scope, call));
}

llvm::ArrayRef<Operator> moa::random::getFormOperators() {
  static const Operator table[] = {{"index form", 14, makeIndexForm},
                                   {"pass through", 4, makePassThrough},
                                   {"open form", 14, makeOpenForm},
                                   {"join", 4, makeJoin},
                                   {"call", 8, makeCall}};
  return table;
}
