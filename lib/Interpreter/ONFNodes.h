//===- ONFNodes.h - folds, states and statements of onf ---------*- C++ -*-===//
#ifndef MOA_INTERPRETER_ONFNODES_H
#define MOA_INTERPRETER_ONFNODES_H

#include "dialects/ONF/IR/ONF.h"
#include "lib/Interpreter/Machine.h"
#include "lib/Interpreter/Memory.h"
#include <optional>

namespace moa::interp {

/// An element of an array: one index per axis, constant + Σ factor · term. If a factor divides by
/// zero for these symbols, `fault` is set; this is an error only if the element is needed.
struct Element {
  struct Index {
    int64_t constant = 0;
    std::vector<std::pair<Node *, int64_t>> terms;
  };
  std::vector<Index> indices;
  std::string fault;

  /// Returns the address of the element. Fails if an index is out of bounds.
  int64_t compute(Machine &m, mlir::Location loc, const Memory &memory) const;
};

struct LoadNode final : Node {
  LoadNode(Scope *scope, mlir::Location loc, const Memory &memory, Element element, bool isStored)
      : Node(scope, loc), memory(memory), element(std::move(element)), isStored(isStored) {}
  Cell compute(Machine &m) override;
  const Memory &memory;
  Element element;
  bool isStored; // by a nest, not by the caller
};

/// The product x · y or x · (1 / y). A factor with a type is rounded to it.
struct RoundedProduct final : Node {
  struct Factor {
    Node *node;
    mlir::FloatType type;
  };
  RoundedProduct(Scope *scope, mlir::Location loc, Factor x, Factor y, bool divides)
      : Node(scope, loc), x(x), y(y), divides(divides) {}
  Cell compute(Machine &m) override;
  Factor x, y;
  bool divides;
};

/// The state of one acc, with the current value while its fold runs. As a node it is the value of a
/// scalar state, including the current index.
struct AccState final : Node {
  AccState(Scope *scope, mlir::Location loc) : Node(scope, loc) {}
  Cell compute(Machine &m) override { return m.fail(loc, "a state is read before its step"); }
  void start();
  /// Performs one step of the fold, for a present index.
  void step(Machine &m);
  void rescale(Machine &m);
  /// Adds the current term to the element at these indices.
  void add(Machine &m, Cell &cell, llvm::ArrayRef<int64_t> at);

  std::string name;
  Monoid monoid = Monoid::add;
  std::shared_ptr<const UserMonoid> user;
  Form form;
  Cell identity = ofInt(0);
  std::vector<int64_t> extents;
  std::vector<Cell> state;
  std::optional<std::vector<int64_t>> needed; // indices of the one axis; all if unset
  Cell old = ofInt(0);                        // of a scalar state, before the current index
  bool touched = false;
  // The term of the fold.
  Scope *valueScope = nullptr;
  std::vector<Node *> indices;
  Node *value = nullptr;
  // Rescaling (R3): the correction factor from the old and new values of the referenced states.
  std::vector<AccState *> refs;
  std::vector<double> singular;
  Scope *rescaleScope = nullptr;
  std::vector<Node *> oldAndNew;
  Node *factor = nullptr;
  ScalarFn combine = ScalarFn::mul; // combines the factor with the state
  std::vector<AccState *> others;   // states added with these coefficients
  std::vector<Node *> coefficients;
};

/// Interval claims of a fold, evaluated for the tile of a row.
struct PieceCheck {
  mlir::AffineMap visitLower, visitUpper, fullLower, fullUpper;
  bool full = false;
};

/// The tile of the nest's last axis that contains the current row.
struct Tile {
  int64_t first = 0, last = 0;
};

struct Fold {
  explicit Fold(mlir::Location loc) : loc(loc) {}
  /// Runs the fold unless its results are up to date.
  void run(Machine &m);

  mlir::Location loc;
  std::string name;
  Scope *scope = nullptr; // scope of the fold's value
  uint64_t stamp = 0;
  Scope *bodyScope = nullptr;
  Node *index = nullptr, *guard = nullptr;
  int64_t extent = 0;
  std::vector<int64_t> order; // indices in the order of the lifted digits
  std::vector<AccState *> accs;
  /// True if the fold has `pieces`. With no pieces in the list, they claim that nothing is present.
  bool hasPieces = false;
  std::vector<PieceCheck> pieces;
  std::vector<Node *> bounds;
  const Tile *tile = nullptr;

private:
  struct Interval {
    int64_t lower, upper;
    bool holds(int64_t j) const { return lower <= j && j < upper; }
  };
  void evaluatePieces(Machine &m);
  void checkPieces(Machine &m, int64_t j, bool present);
  std::vector<Interval> visited, full;
};

/// A result of a fold. For a scalar state it is also the final value.
struct FoldResult final : Node {
  FoldResult(Scope *scope, mlir::Location loc, Fold &fold, unsigned position)
      : Node(scope, loc), fold(fold), position(position) {}
  Cell compute(Machine &m) override {
    fold.run(m);
    return fold.accs[position]->state.empty() ? ofInt(0) : fold.accs[position]->state[0];
  }
  Fold &fold;
  unsigned position;
};

/// An element of a state that carries axes.
struct AtNode final : Node {
  AtNode(Scope *scope, mlir::Location loc, FoldResult *result, std::vector<Node *> indices)
      : Node(scope, loc), result(result), indices(std::move(indices)) {}
  Cell compute(Machine &m) override;
  FoldResult *result;
  std::vector<Node *> indices;
};

/// Returns the indices of a lifted axis in the order of its digits, guarded by the extent.
std::vector<int64_t> liftedOrder(int64_t extent, onf::AxisAttr lift);

} // namespace moa::interp

#endif // MOA_INTERPRETER_ONFNODES_H
