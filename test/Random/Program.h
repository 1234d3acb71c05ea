//===- Program.h - a specification as a typed graph -------------*- C++ -*-===//
//
// A specification that was made at random, kept as a graph, so that it can be
// printed, run and made smaller. Every node is one operator with its operands,
// its type (kind and symbolic shape) and what is known of its values; its text
// names the operands by `$0`, `$1` (in parentheses where they are compound) and
// `#0`, `#1` (as they are).
//
//===----------------------------------------------------------------------===//
#ifndef MOA_TEST_RANDOM_PROGRAM_H
#define MOA_TEST_RANDOM_PROGRAM_H

#include "lib/Support/SymExpr.h"
#include "llvm/ADT/ArrayRef.h"
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace moa::random {

enum class Kind { Float, Int, Bool };
using Shape = std::vector<SymExpr>;
using NodeId = unsigned;

/// What is known of the present elements of a value.
struct Facts {
  /// No absolute value is larger.
  double magnitude = 1;
  /// Floats: integers, whose sums in any order are exact.
  bool integral = false;
  /// Floats: no arithmetic rounds, since there is none: parameters, selections,
  /// signs, larger and smaller ones.
  bool copied = false;
  /// Some element may be absent, or infinite.
  bool absent = false, infinite = false;
  /// A parameter or a selection of one, which a contraction takes as it is.
  bool selection = false;
  /// Made of literals and symbols alone: the compiler computes it.
  bool symbolic = false;
};

/// `value >= low` in every call.
struct Need {
  SymExpr value;
  int64_t low = 0;
};

/// The scope of a function; the kernel's is 0.
using Home = unsigned;

struct Node {
  std::string op; ///< the operator's row in the table
  std::string text;
  std::vector<NodeId> operands;
  Kind kind = Kind::Float;
  Shape shape;
  Facts facts;
  Home home = 0;
  /// Index variables that the text uses and does not bind.
  std::set<NodeId> free;
  /// Index variables that it binds.
  std::vector<NodeId> binds;
  std::vector<Need> needs;
  /// A name or literal; it stands for itself.
  bool leaf = false;
  /// Defined by a name of its own although it may be used once.
  bool named = false;
  /// Calls: the function, by its home.
  Home callee = 0;
};

/// A parameter of the kernel.
struct Parameter {
  NodeId node = 0;
  std::string name, type;
  /// What its values are taken from.
  double magnitude = 1;
  bool integral = false;
  /// Indices: low and the bound above, by `in`.
  bool isIndex = false;
  SymExpr bound;
  /// Booleans: how many of 8 are true.
  unsigned density = 4;
};

struct Function {
  std::string name;
  std::vector<NodeId> parameters; ///< leaves; their shapes are the cells
  NodeId result = 0;
};

struct Output {
  std::string name, type;
  NodeId node = 0;
};

/// A compile-time constant and whether it is set to its value or has it by default.
struct Constant {
  std::string name;
  int64_t value = 0;
  bool set = false;
};

struct Program {
  uint64_t seed = 0;
  std::deque<Node> nodes; ///< references to them stay
  std::vector<Parameter> parameters;
  std::vector<Function> functions; ///< of home k + 1
  std::vector<Output> outputs;
  std::vector<Constant> constants;
  std::map<std::string, int64_t> symbolBounds; ///< largest value of each symbol
  std::string typeName;                        ///< of `T : float`, or empty
  /// The bounds of values hold where floats compute in f64, so some parameter is f64.
  bool wantsDouble = false;
  /// Some computed value is rounded to a type this coarse (its unit roundoff), by a
  /// cast or as operand of a contraction; 0: none.
  double coarseRoundoff = 0;

  /// Nodes that the outputs need, of all homes, operands first.
  std::vector<NodeId> reachable() const;
  /// Positions of the parameters that are printed, in order.
  std::vector<unsigned> usedParameters() const;
  /// The symbols that occur, in order.
  std::vector<std::string> symbols() const;
  /// Symbols that no parameter or result has as an axis; they get a parameter
  /// `size_NAME` behind the others.
  std::vector<std::string> unboundSymbols() const;
  /// What every call must satisfy.
  std::vector<Need> needs() const;
  /// The `.moa` text.
  std::string print() const;
  /// "D=4" for the constants that are set.
  std::vector<std::string> settings() const;
  /// Times each operator stands in the program.
  std::map<std::string, unsigned> counts() const;
};

/// A monoid that a program defines if it reduces with it.
struct OwnMonoid {
  std::string name;
  Kind kind;
  std::string definition;
  /// The named monoid whose results have the same bounds; none of integers, whose bits
  /// it combines.
  std::string like;
  bool onlyReal = false; ///< not in exact programs
};
llvm::ArrayRef<OwnMonoid> getOwnMonoids();

/// "[N, 4]".
std::string printShape(const Shape &shape);

} // namespace moa::random

#endif // MOA_TEST_RANDOM_PROGRAM_H
