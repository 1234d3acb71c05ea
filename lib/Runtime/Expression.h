//===- Expression.h - integer expressions of a manifest ---------*- C++ -*-===//
#ifndef MOA_RUNTIME_EXPRESSION_H
#define MOA_RUNTIME_EXPRESSION_H

#include "lib/Runtime/Checked.h"
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace moa::runtime {

/// A polynomial over symbols, floored quotients and remainders, in the compiler's canonical form
/// (lib/Support/SymExpr.h). Evaluation in the order of its terms overflows where that of an emitted
/// launcher does.
class Polynomial {
public:
  struct Atom;
  using AtomPtr = std::shared_ptr<const Atom>;
  using Monomial = std::vector<std::pair<AtomPtr, unsigned>>;
  struct Less {
    bool operator()(const Monomial &a, const Monomial &b) const;
  };
  using Terms = std::map<Monomial, int64_t, Less>;

  Polynomial() = default;
  explicit Polynomial(int64_t value) { addTerm({}, value); }
  static Polynomial symbol(const std::string &name);
  static Polynomial divide(bool isRemainder, const Polynomial &a, const Polynomial &b);
  /// Returns nothing for malformed text.
  static std::optional<Polynomial> parse(const std::string &text);

  Polynomial plus(const Polynomial &other, int64_t sign = 1) const;
  Polynomial times(const Polynomial &other) const;
  std::string str() const;
  bool mentions(const std::string &name) const;
  /// Returns the value if no symbol occurs.
  std::optional<int64_t> constant() const;
  /// Solves `this = value` for a symbol that occurs in one term only, alone and with a constant
  /// factor.
  std::optional<Polynomial> solve(const std::string &name, const Polynomial &value) const;
  /// Calls a function for every symbol.
  void forEachSymbol(const std::function<void(const std::string &)> &visit) const;

  Terms terms;

private:
  void addTerm(const Monomial &monomial, int64_t coefficient);
};

struct Polynomial::Atom {
  enum Kind { Symbol, Quotient, Remainder } kind = Symbol;
  std::string text;
  Polynomial lhs, rhs;
};

/// A value of a call: a symbol, or an extent or a stride of an array.
struct Place {
  enum Kind : uint8_t { Symbol, Extent, Stride } kind = Symbol;
  uint8_t axis = 0;
  uint16_t number = 0; ///< of the symbol or the array
};

struct Frame;
int64_t read(const Frame &frame, Place place);

/// An expression as instructions for a stack.
class Expression {
public:
  /// The places of names; nothing for an unknown one.
  using Resolver = std::function<std::optional<Place>(const std::string &)>;

  /// Returns why the expression cannot be compiled, or an empty text.
  std::string compile(const Polynomial &source, const Resolver &resolve);
  /// Compiles a manifest's text, which it keeps for messages.
  std::string compile(const std::string &source, const Resolver &resolve);

  Checked evaluate(const Frame &frame) const;
  const char *text() const { return spelling.c_str(); }
  /// Returns the value if it does not depend on the call.
  std::optional<int64_t> constant() const;

private:
  static constexpr size_t kDepth = 32;
  struct Op {
    enum Kind : uint8_t { Number, Value, Add, Multiply, Divide, Modulo } kind;
    Place place;
    int64_t number;
  };
  std::string append(const Polynomial &source, const Resolver &resolve, size_t depth);
  std::vector<Op> ops;
  std::string spelling;
};

} // namespace moa::runtime

#endif // MOA_RUNTIME_EXPRESSION_H
