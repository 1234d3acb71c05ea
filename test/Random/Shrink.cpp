//===- Shrink.cpp - smaller programs that fail the same way ---------------===//
#include "Shrink.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace moa;
using namespace moa::random;

namespace {

class Shrinker {
public:
  using Fails = llvm::function_ref<bool(const Program &, const Sizes &)>;
  Shrinker(Program program, Sizes &sizes, Fails fails) : program(std::move(program)), sizes(sizes), fails(fails) {}

  Program run() {
    for (bool changed = true; changed;) {
      changed = dropOutputs();
      changed |= replaceNodes();
      changed |= unname();
      changed |= shrinkSizes();
    }
    return std::move(program);
  }

private:
  /// Keeps the candidate if it fails as the program does.
  bool accept(Program candidate, const Sizes &values) {
    Sizes restricted;
    for (const std::string &name : candidate.symbols())
      restricted[name] = values.count(name) ? values.at(name) : 1;
    if (!fails(candidate, restricted))
      return false;
    program = std::move(candidate);
    sizes = restricted;
    return true;
  }

  bool dropOutputs() {
    bool changed = false;
    for (size_t k = 0; k < program.outputs.size() && program.outputs.size() > 1;) {
      Program candidate = program;
      candidate.outputs.erase(candidate.outputs.begin() + k);
      if (accept(candidate, sizes))
        changed = true;
      else
        ++k;
    }
    return changed;
  }

  /// Uses of `from` become uses of `to`.
  static Program substitute(const Program &program, NodeId from, NodeId to) {
    Program candidate = program;
    for (NodeId id = 0; id < candidate.nodes.size(); ++id)
      if (id != to)
        for (NodeId &operand : candidate.nodes[id].operands)
          if (operand == from)
            operand = to;
    for (Output &output : candidate.outputs)
      if (output.node == from)
        output.node = to;
    for (Function &function : candidate.functions)
      if (function.result == from)
        function.result = to;
    return candidate;
  }

  bool replaceByOperand(NodeId id) {
    const Node &node = program.nodes[id];
    for (NodeId operand : node.operands) {
      const Node &other = program.nodes[operand];
      bool visible = llvm::all_of(other.free, [&](NodeId v) { return node.free.count(v); });
      if (other.kind == node.kind && other.shape == node.shape && visible &&
          accept(substitute(program, id, operand), sizes))
        return true;
    }
    return false;
  }

  /// By a parameter of the node's type, or a literal where there can be none.
  bool replaceByLeaf(NodeId id) {
    const Node &node = program.nodes[id];
    Program candidate = program;
    Node leaf;
    leaf.kind = node.kind;
    leaf.facts = node.facts;
    leaf.facts.magnitude = std::min(node.facts.magnitude, 3.0);
    leaf.facts.absent = false;
    leaf.leaf = true;
    leaf.home = node.home;
    NodeId to = candidate.nodes.size();
    if (node.home == 0 && !node.shape.empty()) {
      leaf.op = "parameter";
      leaf.shape = node.shape;
      leaf.text = "y" + std::to_string(to);
      Parameter parameter;
      parameter.node = to;
      parameter.name = leaf.text;
      parameter.integral = node.facts.integral;
      parameter.magnitude = leaf.facts.magnitude;
      parameter.type = node.kind == Kind::Float ? floatType() : node.kind == Kind::Int ? "i64" : "bool";
      candidate.parameters.push_back(parameter);
    } else if (node.shape.empty()) {
      leaf.op = "literal";
      leaf.text = node.kind == Kind::Bool ? "true" : node.kind == Kind::Int ? "1" : "1.0";
    } else {
      return false;
    }
    candidate.nodes.push_back(leaf);
    return accept(substitute(candidate, id, to), sizes);
  }
  std::string floatType() const {
    for (const Parameter &parameter : program.parameters)
      if (program.nodes[parameter.node].kind == Kind::Float && parameter.type != "T")
        return parameter.type;
    return program.wantsDouble ? "f64" : "f32";
  }

  bool replaceNodes() {
    bool changed = false;
    // From the outputs down, so that much falls away at once.
    std::vector<NodeId> nodes = program.reachable();
    for (NodeId id : llvm::reverse(nodes)) {
      if (program.nodes[id].leaf || !llvm::is_contained(program.reachable(), id))
        continue;
      changed |= replaceByOperand(id) || replaceByLeaf(id);
    }
    return changed;
  }

  /// Definitions used once become parts of what uses them.
  bool unname() {
    Program candidate = program;
    bool some = false;
    for (NodeId id : program.reachable()) {
      some |= candidate.nodes[id].named;
      candidate.nodes[id].named = false;
    }
    return some && accept(candidate, sizes);
  }

  bool shrinkSizes() {
    bool changed = false;
    for (const std::string &name : program.symbols())
      for (int64_t value : {int64_t(0), int64_t(1), int64_t(2), sizes[name] / 2, sizes[name] - 1}) {
        Sizes values = sizes;
        if (value < 0 || value >= sizes[name])
          continue;
        values[name] = value;
        bool meets = llvm::all_of(program.needs(), [&](const Need &need) {
          auto known =
              need.value.evaluate([&](llvm::StringRef symbol) { return std::optional<int64_t>(values[symbol.str()]); });
          return known && *known >= need.low;
        });
        if (meets && accept(program, values)) {
          changed = true;
          break;
        }
      }
    return changed;
  }

  Program program;
  Sizes &sizes;
  Fails fails;
};

} // namespace

Program moa::random::shrink(Program program, Sizes &sizes,
                            llvm::function_ref<bool(const Program &, const Sizes &)> fails) {
  return Shrinker(std::move(program), sizes, fails).run();
}
