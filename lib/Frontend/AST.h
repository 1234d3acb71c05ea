//===- AST.h - syntax of the specification language -------------*- C++ -*-===//
//
// One node type for all expressions, distinguished by `kind`. The comment at each kind lists the
// fields it uses. The resolver resolves names in place, so that elaboration looks up no name by
// text.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_FRONTEND_AST_H
#define MOA_FRONTEND_AST_H

#include "dialects/MoA/IR/MoA.h"
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace moa::frontend {

/// A position in one of the two source texts: the user's, or the prelude.
struct SourceLoc {
  enum File : unsigned { User = 0, Prelude = 1 };
  unsigned file = User, line = 1, column = 1;
};

/// The deepest nesting that the parser accepts. It bounds the recursion of all later walks.
inline constexpr unsigned maxNesting = 200;

enum class ExprKind {
  Integer,     // integer
  Real,        // real
  Boolean,     // integer 0 or 1
  Name,        // name, ref
  Wildcard,    // `_`, only among subscripts
  Unary,       // fn, name (spelling), args[0]
  Binary,      // fn, name (spelling), args[0..1], ranks
  Reduce,      // monoid, name (spelling), args[0], ranks
  Inner,       // monoid, fn, name (spelling), args[0..1], ranks
  Call,        // name, args, ranks
  FunctionRef, // name: an operator or function passed to outer, inner, reduce
  Index,       // args[0] is the array, args[1..] the subscripts
  IndexForm,   // vars, args[0] is the body
  List         // args, only as a shape or a permutation
};

/// The meaning of a name, set by the resolver.
struct Reference {
  enum Kind { None, IndexVariable, Definition, Parameter, Symbol };
  Kind kind = None;
  unsigned index = 0; // of the variable, definition or parameter
};

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

/// One entry of an index form's list; the name `_` passes an axis through.
struct IndexVar {
  std::string name;
  SourceLoc loc;
  ExprPtr bound; // null if the extent follows from use or context
  unsigned id = 0;
  bool isWildcard() const { return name == "_"; }
};

struct Expr {
  ExprKind kind;
  SourceLoc loc;
  std::string name;
  int64_t integer = 0;
  double real = 0;
  ScalarFn fn = ScalarFn::id;
  Monoid monoid = Monoid::add;
  std::vector<ExprPtr> args;
  std::vector<IndexVar> vars;
  std::optional<std::vector<int64_t>> ranks; // f @ (2,1)
  Reference ref;                             // Name
  int callee = -1;                           // Call, FunctionRef: index of a defined function
  unsigned depth = 1;
  llvm::StringRef text; // source text of a whole expression or a reduction
  SourceLoc start;      // where the text begins

  Expr(ExprKind kind, SourceLoc loc) : kind(kind), loc(loc) {}
  const Expr &arg(unsigned k) const { return *args[k]; }
};

/// `name = value`.
struct Definition {
  std::string name;
  SourceLoc loc;
  ExprPtr value;
};

/// Definitions and, in a function, the returned expression.
struct Body {
  std::vector<Definition> definitions;
  ExprPtr result;
  SourceLoc end;
  /// Set by the resolver: the definitions that the results need, each after the definitions it
  /// uses; then all other definitions, in the same order.
  std::vector<unsigned> needed, unneeded;
};

/// A parameter of a function: `x : [m, n]`, or `x` for the whole array.
struct FunctionParam {
  std::string name;
  SourceLoc loc;
  struct Extent {
    std::string symbol; // empty for a number
    int64_t value = 0;
    SourceLoc loc;
  };
  std::optional<std::vector<Extent>> cell;
};

/// `def f(x) { … }`, or `monoid f(x, y) identity e { … }`.
struct FunctionDecl {
  std::string name;
  SourceLoc loc;
  std::vector<FunctionParam> params;
  ExprPtr identity; // of a monoid, else null
  Body body;
  bool isMonoid() const { return identity != nullptr; }
  /// Returns true if every parameter is a scalar cell: the function is point-wise.
  bool isPointwise() const {
    return llvm::all_of(params, [](const FunctionParam &p) { return p.cell && p.cell->empty(); });
  }
};

/// The name of an element type, or of a symbol that stands for one.
struct TypeName {
  std::string name;
  SourceLoc loc;
};

struct SymbolDecl {
  enum Kind { Runtime, Constant, ElementType };
  Kind kind = Runtime;
  std::string name;
  SourceLoc loc;
  std::string typeClass; // ElementType: `float` or `int`
  TypeName defaultType;  // ElementType: empty name without a default
  ExprPtr value;         // Constant: null without a default
};

/// `within 3e-2 relative sampled` after the type of a result.
struct ToleranceDecl {
  SourceLoc loc;
  Tolerance value;
};

/// A parameter or a result of a kernel.
struct ArrayDecl {
  std::string name;
  SourceLoc loc;
  TypeName type;
  std::vector<ExprPtr> shape;
  ExprPtr low, high;                   // `in low..high`, both or neither
  std::optional<ToleranceDecl> within; // of a result
};

struct KernelDecl {
  std::string name;
  SourceLoc loc;
  std::vector<SymbolDecl> symbols;
  std::vector<ArrayDecl> params, results;
  std::vector<ExprPtr> constraints, assumptions;
  Body body;
};

struct Program {
  std::vector<FunctionDecl> functions;
  std::vector<KernelDecl> kernels;
};

} // namespace moa::frontend

#endif // MOA_FRONTEND_AST_H
