//===- Generator.h - specifications made at random --------------*- C++ -*-===//
//
// A program grows operator by operator: a row of the operator table takes what it
// needs from the values there are, makes what is missing (a parameter, a literal,
// an index form), and adds its result. Types, symbolic shapes and bounds of values
// are known at every step, so that every program is well-typed and its numbers are
// of moderate size. A program is either exact (all its floats are integers that
// every order of summation keeps) or it has the elementary functions too.
//
// A new operator is a function `bool make(Generator &, Scope &)` and a row in the
// table of its file.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_TEST_RANDOM_GENERATOR_H
#define MOA_TEST_RANDOM_GENERATOR_H

#include "Program.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <optional>
#include <random>

namespace moa::random {

/// Where nodes are made: the kernel, a function, or the body of an index form, which
/// sees what is around it.
struct Scope {
  Home home = 0;
  Scope *parent = nullptr;
  std::vector<NodeId> pool;
  std::vector<SymExpr> extents; ///< that index forms and iota may have
};

class Generator {
public:
  explicit Generator(uint64_t seed);
  Program finish() { return std::move(program); }

  //===--------------------------------------------------------------------===//
  // Chance
  //===--------------------------------------------------------------------===//

  uint64_t pick(uint64_t n) { return n ? engine() % n : 0; }
  bool chance(unsigned num, unsigned den) { return pick(den) < num; }
  template <typename T> const T &oneOf(const std::vector<T> &list) { return list[pick(list.size())]; }
  template <typename T, size_t n> const T &oneOf(const T (&list)[n]) { return list[pick(n)]; }
  int64_t between(int64_t low, int64_t high) { return low + int64_t(pick(high - low + 1)); }

  //===--------------------------------------------------------------------===//
  // Nodes
  //===--------------------------------------------------------------------===//

  const Node &at(NodeId id) const { return program.nodes[id]; }
  unsigned rank(NodeId id) const { return at(id).shape.size(); }

  /// Adds a node if its values are of a size that the program may have, which is
  /// settled here: `facts` bounds them as real numbers.
  std::optional<NodeId> add(Scope &scope, Node node);
  std::optional<NodeId> add(Scope &scope, const std::string &op, const std::string &text, std::vector<NodeId> operands,
                            Kind kind, Shape shape, Facts facts, std::vector<Need> needs = {});

  NodeId literal(Scope &scope, int64_t value, Kind kind = Kind::Int);
  NodeId real(Scope &scope, double value);
  /// A symbolic extent as an integer.
  NodeId symbol(Scope &scope, const SymExpr &value);
  /// A new parameter of the kernel; nothing inside a function.
  std::optional<NodeId> input(Scope &scope, Kind kind, const Shape &shape);
  /// A new parameter that holds indices below the bound.
  std::optional<NodeId> indexInput(Scope &scope, const Shape &shape, const SymExpr &bound);
  /// A variable of an index form, 0 ≤ i < extent.
  NodeId indexVariable(Scope &scope, const SymExpr &extent);

  //===--------------------------------------------------------------------===//
  // Operands
  //===--------------------------------------------------------------------===//

  using Filter = llvm::function_ref<bool(const Node &)>;
  /// One of the values in reach that fit, later ones likelier.
  std::optional<NodeId> find(Scope &scope, Filter fits);
  std::optional<NodeId> findArray(Scope &scope, Kind kind, unsigned minRank = 0);
  /// A value of this kind with this very shape: found or made.
  std::optional<NodeId> fit(Scope &scope, Kind kind, const Shape &shape);
  /// The same or, often, a scalar.
  std::optional<NodeId> fitOrScalar(Scope &scope, Kind kind, const Shape &shape);
  NodeId scalar(Scope &scope, Kind kind);
  /// Numbers that a comparison may tell apart: no rounding decides it.
  bool isComparable(const Node &node) const;
  std::optional<NodeId> findComparable(Scope &scope, const Shape *shape);

  /// An extent of the scope.
  SymExpr extent(Scope &scope);
  /// No call gives the expression a larger value.
  double boundOf(const SymExpr &value) const;
  double boundOf(const Shape &shape) const;
  /// Whether arrays of this shape are small enough.
  bool isSmall(const Shape &shape) const;

  //===--------------------------------------------------------------------===//
  // Operators that other rows are made of
  //===--------------------------------------------------------------------===//

  /// x op y of equal shapes or with a scalar: arithmetic, min and max.
  std::optional<NodeId> binary(Scope &scope, const std::string &op, NodeId x, NodeId y);
  /// x op y where y's shape is x's without the last axis.
  std::optional<NodeId> rowwise(Scope &scope, const std::string &op, NodeId x, NodeId y);
  std::optional<NodeId> reduceLast(Scope &scope, const std::string &monoid, NodeId x);
  std::optional<NodeId> unary(Scope &scope, const std::string &fn, NodeId x);
  /// x as float with bounds at most `magnitude`, scaled or clipped where needed.
  std::optional<NodeId> bounded(Scope &scope, NodeId x, double magnitude);
  /// x +.* y and its kin on cells of two axes or one.
  std::optional<NodeId> contract(Scope &scope, const std::string &monoid, const std::string &fn, NodeId x, NodeId y);
  std::optional<NodeId> predicate(Scope &scope, const Shape &shape);

  Facts arithmetic(const std::string &op, const Node &x, const Node &y) const;
  /// Facts of a sum (product, maximum, …) of `terms` values.
  Facts reduced(const std::string &monoid, Kind kind, Facts term, double terms) const;
  /// Notes that a computed float is rounded to a type this coarse.
  void noteRounding(double roundoff) { program.coarseRoundoff = std::max(program.coarseRoundoff, roundoff); }

  /// Makes one operator of the table in the scope; whether it did.
  bool step(Scope &scope);
  /// A function that can be called; nothing if none can be made here.
  std::optional<Home> makeFunction();

  bool exact = false;        ///< all floats are integers
  double exactLimit = 0;     ///< integers below it are exact in the compute type
  bool hasNarrow = false;    ///< some parameter has 16 bits
  double narrowLimit = 0;    ///< integers below it are exact in the narrowest type
  double narrowRoundoff = 0; ///< of the narrowest type
  double computeRoundoff = 0;
  std::vector<std::string> floatTypes, intTypes;
  Program program;
  unsigned depth = 0; ///< of index forms around

private:
  void chooseTypes();
  void chooseExtents(Scope &kernel);
  void chooseOutputs(Scope &kernel);
  std::optional<Output> makeOutput(NodeId id);
  std::mt19937_64 engine;
};

/// One row of the operator table.
struct Operator {
  const char *name;
  unsigned weight;
  bool (*make)(Generator &, Scope &);
  /// Not in exact programs, or not inside functions and index forms.
  bool onlyReal = false, onlyKernel = false;
};

llvm::ArrayRef<Operator> getPointwiseOperators();
llvm::ArrayRef<Operator> getReductionOperators();
llvm::ArrayRef<Operator> getMovementOperators();
llvm::ArrayRef<Operator> getFormOperators();
llvm::ArrayRef<Operator> getCascadeOperators();

Program makeProgram(uint64_t seed);

/// Rows of the table that no program has; for the search behind a known fault.
void disableOperators(const std::vector<std::string> &names);

} // namespace moa::random

#endif // MOA_TEST_RANDOM_GENERATOR_H
