//===- Program.cpp - the text of a random specification -------------------===//
#include "Program.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <functional>

using namespace moa;
using namespace moa::random;

std::string moa::random::printShape(const Shape &shape) {
  std::string text;
  for (const SymExpr &extent : shape)
    text += (text.empty() ? "" : ", ") + extent.str();
  return "[" + text + "]";
}

std::vector<NodeId> Program::reachable() const {
  std::vector<NodeId> order;
  std::vector<bool> seen(nodes.size());
  std::function<void(NodeId)> visit = [&](NodeId id) {
    if (seen[id])
      return;
    seen[id] = true;
    const Node &node = nodes[id];
    if (node.callee)
      visit(functions[node.callee - 1].result);
    for (NodeId bound : node.binds)
      visit(bound);
    for (NodeId operand : node.operands)
      visit(operand);
    order.push_back(id);
  };
  for (const Output &output : outputs)
    visit(output.node);
  return order;
}

std::vector<unsigned> Program::usedParameters() const {
  std::vector<NodeId> needed = reachable();
  std::vector<unsigned> used;
  for (unsigned k = 0; k < parameters.size(); ++k)
    if (llvm::is_contained(needed, parameters[k].node))
      used.push_back(k);
  return used;
}

/// The names in a text; those of symbols are among them.
static void collectWords(llvm::StringRef text, std::set<std::string> &names) {
  while (!text.empty()) {
    llvm::StringRef word = text.take_while([](char c) { return isalnum(c) || c == '_'; });
    if (!word.empty())
      names.insert(word.str());
    text = text.drop_front(std::max<size_t>(word.size(), 1));
  }
}

std::vector<std::string> Program::symbols() const {
  std::set<std::string> names;
  for (NodeId id : reachable()) {
    const Node &node = nodes[id];
    if (node.home != 0)
      continue;
    for (const SymExpr &extent : node.shape)
      extent.collectSymbols(names);
    for (const Need &need : node.needs)
      need.value.collectSymbols(names);
    collectWords(node.text, names);
  }
  for (unsigned k : usedParameters())
    parameters[k].bound.collectSymbols(names);
  std::vector<std::string> found;
  for (const auto &[name, bound] : symbolBounds)
    if (names.count(name))
      found.push_back(name);
  return found;
}

std::vector<std::string> Program::unboundSymbols() const {
  std::set<std::string> bound;
  auto bind = [&](const Shape &shape) {
    for (const SymExpr &extent : shape)
      if (auto name = extent.getSymbol())
        bound.insert(*name);
  };
  for (unsigned k : usedParameters())
    bind(nodes[parameters[k].node].shape);
  std::vector<std::string> missing;
  for (const std::string &name : symbols())
    if (!bound.count(name))
      missing.push_back(name);
  return missing;
}

std::vector<Need> Program::needs() const {
  std::vector<Need> all;
  auto add = [&](const Need &need) {
    bool positive = llvm::all_of(need.value.getTerms(), [](const auto &term) { return term.second > 0; });
    if (need.value.getConstant() || (positive && need.low <= 0))
      return;
    for (Need &other : all)
      if (other.value == need.value) {
        other.low = std::max(other.low, need.low);
        return;
      }
    all.push_back(need);
  };
  for (NodeId id : reachable()) {
    if (nodes[id].home != 0)
      continue; // the calls have them
    for (const Need &need : nodes[id].needs)
      add(need);
    for (const SymExpr &extent : nodes[id].shape)
      if (!extent.getSymbol())
        add({extent, 0});
  }
  return all;
}

std::vector<std::string> Program::settings() const {
  std::vector<std::string> result;
  for (const Constant &constant : constants)
    if (constant.set)
      result.push_back(constant.name + "=" + std::to_string(constant.value));
  return result;
}

std::map<std::string, unsigned> Program::counts() const {
  std::map<std::string, unsigned> result;
  for (NodeId id : reachable())
    ++result[nodes[id].op];
  return result;
}

namespace {

/// Prints definitions, operands first.
class BodyPrinter {
public:
  explicit BodyPrinter(const Program &program) : program(program) {}

  void define(NodeId id, const std::string &result) {
    visit(id);
    std::string text = expression(id, /*whole=*/true);
    if (names.count(id))
      text = names[id];
    else if (!program.nodes[id].leaf)
      names[id] = result;
    lines += "  " + result + " = " + text + "\n";
  }
  /// Counts uses of the nodes by one another and as results.
  void count(NodeId id) {
    if (++uses[id] > 1)
      return;
    for (NodeId operand : program.nodes[id].operands)
      count(operand);
  }
  std::string expression(NodeId id, bool whole) {
    const Node &node = program.nodes[id];
    if (names.count(id))
      return names[id];
    std::string text;
    for (size_t k = 0; k < node.text.size(); ++k) {
      char c = node.text[k];
      if ((c == '$' || c == '#') && k + 1 < node.text.size() && isdigit(node.text[k + 1])) {
        text += expression(node.operands[node.text[++k] - '0'], c == '#');
        continue;
      }
      text += c;
    }
    return whole || node.leaf ? text : "(" + text + ")";
  }
  void visit(NodeId id) {
    const Node &node = program.nodes[id];
    if (!visited.insert(id).second)
      return;
    for (NodeId operand : node.operands)
      visit(operand);
    if (node.leaf || !node.free.empty() || !(node.named || uses[id] > 1))
      return;
    std::string text = expression(id, true);
    // A value that only this one needs may give its name to it: a version.
    std::string name = "v" + std::to_string(id);
    if (node.operands.size() && id % 3 == 0) {
      NodeId first = node.operands[0];
      if (names.count(first) && uses[first] == 1 && program.nodes[first].op != "parameter")
        name = names[first];
    }
    names[id] = name;
    lines += "  " + name + " = " + text + "\n";
  }

  std::string lines;

private:
  const Program &program;
  std::map<NodeId, unsigned> uses;
  std::map<NodeId, std::string> names;
  std::set<NodeId> visited;
};

} // namespace

static std::string printFunction(const Program &program, Home home) {
  const Function &function = program.functions[home - 1];
  std::string text = "def " + function.name + "(";
  for (auto [k, id] : llvm::enumerate(function.parameters))
    text += (k ? ", " : "") + program.nodes[id].text + " : " + printShape(program.nodes[id].shape);
  BodyPrinter body(program);
  body.count(function.result);
  body.visit(function.result);
  return text + ") {\n" + body.lines + "  return " + body.expression(function.result, true) + "\n}\n\n";
}

llvm::ArrayRef<OwnMonoid> moa::random::getOwnMonoids() {
  static const OwnMonoid table[] = {{"total", Kind::Float, "(x, y) identity 0 { return x + y }", "+"},
                                    {"larger", Kind::Float, "(x, y) identity -inf { return max(y, x) }", "max"},
                                    {"logadd", Kind::Float,
                                     "(x, y) identity -inf {\n  m = max(x, y)\n"
                                     "  return select(m == -inf, m, m + log(exp(x - m) + exp(y - m)))\n}",
                                     "+", true},
                                    {"either", Kind::Int, "(x, y) identity 0 { return x | y }", ""},
                                    {"both", Kind::Int, "(x, y) identity -1 { return x & y }", ""},
                                    {"parity", Kind::Int, "(x, y) identity 0 { return x ^ y }", ""},
                                    {"odd", Kind::Bool, "(x, y) identity false { return x != y }", "or"},
                                    {"alike", Kind::Bool, "(x, y) identity true { return x == y }", "and"}};
  return table;
}

/// Of one result of floats in four, a tolerance, which changes no value at any level.
static std::string printTolerance(const Output &output, uint64_t number) {
  bool isFloat = output.type == "T" || output.type.find('f') != std::string::npos;
  if (!isFloat || number % 4 != 0)
    return "";
  return std::string(" within 1.5e-1") + (number % 12 ? " relative sampled" : number % 8 ? " relative" : "");
}

std::string Program::print() const {
  std::string text;
  for (const OwnMonoid &monoid : getOwnMonoids())
    if (llvm::any_of(reachable(),
                     [&](NodeId id) { return llvm::StringRef(nodes[id].text).contains("(" + monoid.name + ", "); }))
      text += "monoid " + monoid.name + monoid.definition + "\n";
  std::set<Home> called;
  for (NodeId id : reachable())
    if (nodes[id].callee)
      called.insert(nodes[id].callee);
  for (Home home : called)
    text += printFunction(*this, home);
  std::vector<std::string> names = symbols(), tail;
  std::vector<unsigned> used = usedParameters();
  if (!typeName.empty())
    tail.push_back("T : float = " + typeName);
  for (const Constant &constant : constants)
    tail.push_back(constant.name + (constant.set ? "" : " = " + std::to_string(constant.value)));
  text += "kernel k";
  if (!names.empty() || !tail.empty())
    text += "[" + llvm::join(names, ", ") + (tail.empty() ? "" : "; " + llvm::join(tail, ", ")) + "]";
  std::vector<std::string> arrays;
  auto array = [](const std::string &name, const std::string &type, const Shape &shape) {
    return name + " : " + type + (shape.empty() ? "" : printShape(shape));
  };
  for (unsigned k : used) {
    const Parameter &p = parameters[k];
    arrays.push_back(array(p.name, p.type, nodes[p.node].shape) + (p.isIndex ? " in 0.." + p.bound.str() : ""));
  }
  for (const std::string &name : unboundSymbols())
    arrays.push_back("size_" + name + " : bool[" + name + "]");
  auto isDouble = [&](unsigned k) {
    const std::string &type = parameters[k].type;
    return type == "f64" || (type == "T" && typeName == "f64");
  };
  if (wantsDouble && llvm::none_of(used, isDouble))
    arrays.push_back("unit : f64");
  text += "(" + llvm::join(arrays, ", ") + ")\n    -> (";
  arrays.clear();
  for (const Output &output : outputs)
    arrays.push_back(array(output.name, output.type, nodes[output.node].shape) +
                     printTolerance(output, seed + arrays.size()));
  text += llvm::join(arrays, ", ") + ")\n";
  for (const Need &need : needs())
    text += "  require " + need.value.str() + " >= " + std::to_string(need.low) + "\n";
  BodyPrinter body(*this);
  for (const Output &output : outputs)
    body.count(output.node);
  for (const Output &output : outputs)
    body.define(output.node, output.name);
  return text + "{\n" + body.lines + "}\n";
}
