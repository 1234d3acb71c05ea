//===- MovementOperators.cpp - selections and new orders of elements ------===//
#include "Generator.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>
#include <numeric>

using namespace moa;
using namespace moa::random;

static Kind pickKind(Generator &g) {
  unsigned k = g.pick(10);
  return k < 7 ? Kind::Float : k < 9 ? Kind::Int : Kind::Bool;
}

static std::optional<NodeId> findAny(Generator &g, Scope &scope, unsigned rank) {
  return g.findArray(scope, pickKind(g), rank);
}

static Facts moved(const Node &node) {
  Facts facts = node.facts;
  facts.symbolic = false;
  return facts;
}

static bool makeTranspose(Generator &g, Scope &scope) {
  auto x = findAny(g, scope, 2);
  if (!x)
    return false;
  const Node &node = g.at(*x);
  size_t rank = node.shape.size();
  std::vector<size_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  std::string text = "transpose(#0)";
  if (g.chance(1, 2)) {
    for (size_t k = rank; k > 1; --k)
      std::swap(order[k - 1], order[g.pick(k)]);
    text = "transpose(#0, [";
    for (auto [k, axis] : llvm::enumerate(order))
      text += (k ? ", " : "") + std::to_string(axis);
    text += "])";
  } else {
    std::swap(order[rank - 1], order[rank - 2]);
  }
  Shape shape;
  for (size_t axis : order)
    shape.push_back(node.shape[axis]);
  return bool(g.add(scope, "transpose", text, {*x}, node.kind, shape, moved(node)));
}

/// A count from 0 to the extent, with what a call must satisfy.
static SymExpr pickCount(Generator &g, Scope &scope, const SymExpr &extent, std::vector<Need> &needs) {
  if (auto constant = extent.getConstant())
    return SymExpr(g.between(0, *constant));
  SymExpr count = g.chance(1, 3)   ? g.extent(scope)
                  : g.chance(1, 3) ? SymExpr::floorDiv(extent, SymExpr(2))
                                   : SymExpr(g.between(0, 3));
  needs.push_back({extent - count, 0});
  return count;
}

static std::string axisText(Generator &g, size_t axis, size_t rank) {
  if (axis == 0 && g.chance(1, 2))
    return "";
  return ", " + std::to_string(g.chance(1, 3) ? int64_t(axis) - int64_t(rank) : int64_t(axis));
}

static bool makeTakeOrDrop(Generator &g, Scope &scope) {
  auto x = findAny(g, scope, 1);
  if (!x)
    return false;
  const Node &node = g.at(*x);
  size_t rank = node.shape.size();
  bool takes = g.chance(1, 2);
  std::string op = takes ? "take" : "drop";
  Shape shape = node.shape;
  std::vector<Need> needs;
  auto cut = [&](size_t axis) {
    SymExpr count = pickCount(g, scope, shape[axis], needs);
    shape[axis] = takes ? count : shape[axis] - count;
    // The last ones; a negative 0 is 0, which takes nothing and drops nothing.
    bool back = count.getConstant() && *count.getConstant() > 0 && g.chance(1, 2);
    return (back ? "-" : "") + ("(" + count.str() + ")");
  };
  std::string text = op + "(#0, ";
  if (rank > 1 && g.chance(1, 4)) {
    size_t axes = 1 + g.pick(rank);
    for (size_t axis = 0; axis < axes; ++axis)
      text += (axis ? ", " : "[") + cut(axis);
    text += "])";
  } else {
    size_t axis = g.pick(rank);
    text += cut(axis);
    text += axisText(g, axis, rank) + ")";
  }
  return bool(g.add(scope, op, text, {*x}, node.kind, shape, moved(node), needs));
}

static bool makeReverse(Generator &g, Scope &scope) {
  auto x = findAny(g, scope, 1);
  if (!x)
    return false;
  const Node &node = g.at(*x);
  size_t axis = g.pick(node.shape.size());
  return bool(g.add(scope, "reverse", "reverse(#0" + axisText(g, axis, node.shape.size()) + ")", {*x}, node.kind,
                    node.shape, moved(node)));
}

static bool makeRotate(Generator &g, Scope &scope) {
  auto x = findAny(g, scope, 1);
  if (!x)
    return false;
  const Node &node = g.at(*x);
  size_t axis = g.pick(node.shape.size());
  std::string by = g.chance(1, 3) ? "(" + g.extent(scope).str() + ")" : std::to_string(g.between(-5, 12));
  return bool(g.add(scope, "rotate", "rotate(#0, " + by + axisText(g, axis, node.shape.size()) + ")", {*x}, node.kind,
                    node.shape, moved(node)));
}

/// Of two arrays that differ on one axis at most, or of an array and itself.
static bool makeCat(Generator &g, Scope &scope) {
  auto x = findAny(g, scope, 1);
  if (!x)
    return false;
  const Node node = g.at(*x);
  size_t rank = node.shape.size(), axis = g.pick(rank);
  std::vector<NodeId> fitting{*x};
  for (NodeId id : scope.pool) {
    const Node &other = g.at(id);
    bool fits = other.kind == node.kind && other.shape.size() == rank;
    for (size_t k = 0; fits && k < rank; ++k)
      fits = k == axis || other.shape[k] == node.shape[k];
    if (fits)
      fitting.push_back(id);
  }
  NodeId y = g.oneOf(fitting);
  const Node &other = g.at(y);
  Facts facts = moved(node);
  facts.magnitude = std::max(facts.magnitude, other.facts.magnitude);
  facts.integral &= other.facts.integral;
  facts.copied &= other.facts.copied;
  facts.absent |= other.facts.absent;
  facts.infinite |= other.facts.infinite;
  facts.selection &= other.facts.selection;
  Shape shape = node.shape;
  shape[axis] = shape[axis] + other.shape[axis];
  return bool(g.add(scope, "cat", "cat(#0, #1" + axisText(g, axis, rank) + ")", {*x, y}, node.kind, shape, facts));
}

static bool makeReshape(Generator &g, Scope &scope) {
  auto x = findAny(g, scope, 1);
  if (!x)
    return false;
  const Node &node = g.at(*x);
  SymExpr size(1);
  for (const SymExpr &extent : node.shape)
    size = size * extent;
  if (g.chance(1, 2))
    return bool(g.add(scope, "rav", "rav(#0)", {*x}, node.kind, {size}, moved(node)));
  // The factors of the extents in another order, some of them merged or split.
  Shape shape;
  for (const SymExpr &extent : node.shape) {
    auto value = extent.getConstant();
    int64_t divisor = value && *value > 3 ? g.between(2, 3) : 0;
    if (divisor && *value % divisor == 0) {
      shape.push_back(SymExpr(divisor));
      shape.push_back(SymExpr(*value / divisor));
    } else {
      shape.push_back(extent);
    }
  }
  for (size_t k = shape.size(); k > 1; --k)
    std::swap(shape[k - 1], shape[g.pick(k)]);
  if (shape.size() > 1 && g.chance(1, 2)) {
    SymExpr last = shape.back();
    shape.pop_back();
    shape.back() = shape.back() * last;
  }
  if (g.chance(1, 6))
    shape.insert(shape.begin() + g.pick(shape.size() + 1), SymExpr(1));
  std::string list;
  for (const SymExpr &extent : shape)
    list += (list.empty() ? "" : ", ") + extent.str();
  return bool(g.add(scope, "reshape", "reshape(#0, [" + list + "])", {*x}, node.kind, shape, moved(node)));
}

static bool makeIota(Generator &g, Scope &scope) {
  SymExpr extent = g.extent(scope);
  Facts facts;
  facts.magnitude = g.boundOf(extent);
  return bool(g.add(scope, "iota", "iota(" + extent.str() + ")", {}, Kind::Int, {extent}, facts));
}

//===----------------------------------------------------------------------===//
// Subscripts
//===----------------------------------------------------------------------===//

/// An integer value that is an index of an axis of the extent wherever it is needed.
static std::optional<NodeId> indexValue(Generator &g, Scope &scope, const SymExpr &extent, const Shape &shape) {
  if (g.chance(1, 2) || shape.empty()) {
    auto known = g.find(scope, [&](const Node &node) {
      return node.kind == Kind::Int && node.shape == shape && !node.facts.symbolic && !node.facts.absent;
    });
    if (known) {
      std::vector<Need> needs = {{extent, 1}};
      Facts facts;
      facts.magnitude = g.boundOf(extent);
      if (g.chance(1, 2))
        return g.add(scope, "%", "$0 % (" + extent.str() + ")", {*known}, Kind::Int, shape, facts, needs);
      return g.add(scope, "clip", "max(min(#0, " + extent.str() + " - 1), 0)", {*known}, Kind::Int, shape, facts,
                   needs);
    }
  }
  if (shape.empty())
    return std::nullopt;
  for (unsigned k = 0; k < g.program.parameters.size(); ++k) {
    const Parameter &p = g.program.parameters[k];
    if (p.isIndex && p.bound == extent && g.at(p.node).shape == shape && g.chance(1, 2) && scope.home == 0)
      return p.node;
  }
  return g.indexInput(scope, shape, extent);
}

/// `x[t, _, u]`, `psi([t], x)`: arrays of indices, numbers and whole axes.
static bool makeGather(Generator &g, Scope &scope) {
  auto x = findAny(g, scope, 1);
  if (!x)
    return false;
  const Node node = g.at(*x);
  size_t rank = node.shape.size(), subscripts = 1 + g.pick(std::min<size_t>(rank, 3));
  Shape frame;
  for (unsigned k = g.pick(3); k > 0; --k)
    frame.push_back(g.extent(scope));
  std::vector<Need> needs;
  std::vector<NodeId> operands = {*x};
  std::string list;
  Shape rest;
  bool any = false;
  for (size_t axis = 0; axis < subscripts; ++axis) {
    std::string subscript;
    if (axis + 1 < subscripts && g.chance(1, 4)) {
      subscript = "_";
      rest.push_back(node.shape[axis]);
    } else if (g.chance(1, 4)) {
      auto extent = node.shape[axis].getConstant();
      int64_t at = extent ? g.between(0, *extent - 1) : g.between(0, 2);
      if (extent && *extent == 0)
        return false;
      subscript = std::to_string(at);
      if (!extent && g.chance(1, 2)) {
        subscript = node.shape[axis].str() + " - " + std::to_string(at + 1);
      }
      needs.push_back({node.shape[axis], at + 1});
    } else {
      auto index = indexValue(g, scope, node.shape[axis], g.chance(1, 5) ? Shape() : frame);
      if (!index)
        return false;
      any |= !g.at(*index).shape.empty();
      subscript = "#" + std::to_string(operands.size());
      operands.push_back(*index);
    }
    list += (axis ? ", " : "") + subscript;
  }
  Shape shape = any ? frame : Shape();
  shape.insert(shape.end(), rest.begin(), rest.end());
  shape.insert(shape.end(), node.shape.begin() + subscripts, node.shape.end());
  bool whole = list.find('_') == std::string::npos && !any && g.chance(1, 2);
  return bool(g.add(scope, any ? "gather" : "psi", whole ? "psi([" + list + "], #0)" : "$0[" + list + "]", operands,
                    node.kind, shape, moved(node), needs));
}

llvm::ArrayRef<Operator> moa::random::getMovementOperators() {
  static const Operator table[] = {{"transpose", 10, makeTranspose},
                                   {"take or drop", 10, makeTakeOrDrop},
                                   {"reverse", 5, makeReverse},
                                   {"rotate", 5, makeRotate},
                                   {"cat", 10, makeCat},
                                   {"reshape", 8, makeReshape},
                                   {"iota", 3, makeIota},
                                   {"gather", 10, makeGather}};
  return table;
}
