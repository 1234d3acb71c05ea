//===- Machine.h - demand-driven evaluation of scalar code ------*- C++ -*-===//
//
// The bodies of dnf and onf become a graph with one node per SSA value. Evaluation is lazy and
// memoised. A node is evaluated only if a present value needs it, and at most once per iteration of
// the innermost scope (loop, reduction, let) it depends on. Every iteration of a scope has a fresh
// number, its epoch, and a node remembers the epoch of its last value. So the untaken branch of a
// select costs nothing and may contain an index outside its array. Loop-invariant values are
// evaluated once.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_INTERPRETER_MACHINE_H
#define MOA_INTERPRETER_MACHINE_H

#include "lib/Interpreter/Kernel.h"
#include "lib/Interpreter/Scalar.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/bit.h"
#include <cmath>
#include <memory>

namespace moa::interp {

struct Scope {
  unsigned depth = 0;
  uint64_t epoch = 1;
};

class Machine;

struct Node {
  explicit Node(Scope *scope, mlir::Location loc) : scope(scope), loc(loc) {}
  virtual ~Node() = default;
  virtual Cell compute(Machine &m) = 0;
  /// Returns true if the value is present. Called only if `mayBeAbsent`.
  virtual bool present(Machine &m) { return true; }

  Cell value = ofInt(0);
  uint64_t stamp = 0;
  Scope *scope;
  bool mayBeAbsent = false;
  uint64_t number = 0; // position among the kernel's nodes
  mlir::Location loc;
};

class Machine {
public:
  Cell get(Node *node) {
    if (node->stamp != node->scope->epoch) {
      node->value = node->compute(*this);
      node->stamp = node->scope->epoch;
    }
    return node->value;
  }
  bool isPresent(Node *node) { return !node->mayBeAbsent || node->present(*this); }
  void enter(Scope &scope) { scope.epoch = ++epochs; }
  void set(Node *node, Cell value) {
    node->value = value;
    node->stamp = node->scope->epoch;
  }
  /// Records the first error; loops check it and stop.
  Cell fail(mlir::Location loc, const llvm::Twine &message) {
    if (!failed)
      error = locationText(loc) + message.str();
    failed = true;
    return ofInt(0);
  }
  llvm::Error takeError() { return makeError(error); }

  bool failed = false;
  /// See InterpretOptions.
  double roundoff = 0;
  uint64_t roundoffSeed = 0;
  bool hasSingleRange = false;
  void setRoundings(const InterpretOptions &options) {
    roundoff = options.roundoff;
    roundoffSeed = options.roundoffSeed;
    hasSingleRange = options.hasSingleRange;
  }
  /// Returns a float that the node just computed, moved by the roundoff. The direction depends on
  /// the node: a value computed at two places is rounded in two ways.
  double moved(double value, const Node &node, uint64_t step = 0) const {
    if (hasSingleRange && std::isfinite(value)) {
      if (std::fabs(value) > std::numeric_limits<float>::max())
        return std::copysign(std::numeric_limits<double>::infinity(), value);
      if (std::fabs(value) < std::numeric_limits<float>::min())
        return std::copysign(0.0, value);
    }
    if (roundoff == 0)
      return value;
    bool up = llvm::hash_combine(node.number, step, llvm::bit_cast<uint64_t>(value), roundoffSeed) & 1;
    return std::fma(value, up ? roundoff : -roundoff, value); // 1 + 2^-53 is 1
  }
  /// Does the same for a step of a sum or product of floats, or of a user-defined monoid.
  Cell movedStep(Monoid monoid, Form form, Cell cell, const Node &node, uint64_t step) const {
    bool rounds = form.isFloat() && (monoid == Monoid::add || monoid == Monoid::mul || monoid == Monoid::user);
    return rounds ? ofFloat(moved(cell.f, node, step)) : cell;
  }

private:
  std::string error;
  uint64_t epochs = 1;
};

/// An index or another value that its scope sets.
struct ArgumentNode final : Node {
  using Node::Node;
  Cell compute(Machine &m) override { return m.fail(loc, "a loop variable is read outside its loop"); }
};

/// Builds the graph of a region's scalar code. Derived builders add their dialect's ops.
class GraphBuilder {
public:
  GraphBuilder(const Kernel &kernel, const Symbols &symbols, Machine &machine)
      : kernel(kernel), symbols(symbols), machine(machine) {}
  virtual ~GraphBuilder() = default;

protected:
  /// Makes the nodes of a dialect's own op. Returns false if the op is not supported.
  virtual llvm::Expected<bool> buildSpecial(mlir::Operation *op) = 0;

  llvm::Error buildOp(mlir::Operation *op);
  Scope *makeScope(unsigned nesting);
  /// Returns the deepest scope of the values; at least the kernel's.
  Scope *scopeOf(mlir::ValueRange values);
  /// Returns the deepest scope among the values that a region captures.
  Scope *captureScope(mlir::Region &region);
  Node *nodeOf(mlir::Value value) { return nodes.lookup(value); }
  std::vector<Node *> nodesOf(mlir::ValueRange values);
  /// Makes the nodes for a block's arguments. Their scope sets their values.
  std::vector<Node *> makeArguments(mlir::Block &block, Scope *scope);
  /// Makes the node of an expression over the symbols. If it has no value, this is an error only if
  /// a present value needs it.
  void makeExtent(mlir::Value value, llvm::Expected<int64_t> number);
  template <typename NodeTy, typename... Args> NodeTy *make(Scope *scope, mlir::Location loc, Args &&...args) {
    auto node = std::make_unique<NodeTy>(scope, loc, std::forward<Args>(args)...);
    node->number = owned.size();
    NodeTy *raw = node.get();
    owned.push_back(std::move(node));
    return raw;
  }
  void define(mlir::Value value, Node *node) { nodes[value] = node; }

  const Kernel &kernel;
  const Symbols &symbols;
  Machine &machine;
  Scope top;
  /// Depth of the scope whose code is being built.
  unsigned depth = 0;

private:
  llvm::DenseMap<mlir::Value, Node *> nodes;
  std::vector<std::unique_ptr<Node>> owned;
  std::vector<std::unique_ptr<Scope>> scopes;
};

} // namespace moa::interp

#endif // MOA_INTERPRETER_MACHINE_H
