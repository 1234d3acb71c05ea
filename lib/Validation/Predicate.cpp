//===- Predicate.cpp - constraints and assumptions as terms ---------------===//
#include "lib/Validation/Predicate.h"
#include "dialects/MoA/IR/MoA.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace moa;
using namespace moa::validation;

namespace {
/// A recursive-descent parser. Operators by increasing precedence: or, and, not, comparisons, + −,
/// * / %, unary −.
class Parser {
public:
  Parser(TermContext &terms, StringRef text, ArrayRef<Type> types) : terms(terms), rest(text), types(types) {}

  llvm::Expected<Term> run(StringRef text) {
    if (eat("[")) {
      do {
        StringRef name = word();
        variables[name] = terms.freshIndex(name);
      } while (eat(","));
      need("]");
    }
    Term result = disjunction();
    skip();
    if (message.empty() && !rest.empty())
      fail("unexpected '" + rest + "'");
    if (message.empty() && result->type != terms.boolType())
      fail("it is no predicate");
    if (message.empty())
      return result;
    return llvm::createStringError("'" + text + "' cannot be read: " + message);
  }

  /// Parses an integer that may use these index variables. Returns null on any other text.
  Term runInteger(const llvm::StringMap<Term> &names) {
    variables = names;
    Term result = sum();
    skip();
    bool isWhole = message.empty() && rest.empty() && result->type == terms.indexType();
    return isWhole ? result : nullptr;
  }

private:
  void skip() { rest = rest.ltrim(); }
  bool eat(StringRef token) {
    skip();
    bool isWord = llvm::isAlpha(token.front());
    if (!rest.starts_with(token) || (isWord && rest.size() > token.size() && llvm::isAlnum(rest[token.size()])))
      return false;
    rest = rest.drop_front(token.size());
    return true;
  }
  void need(StringRef token) {
    if (!eat(token))
      fail("expected '" + token + "'");
  }
  void fail(const Twine &why) {
    if (message.empty())
      message = why.str();
    rest = "";
  }
  StringRef word() {
    skip();
    StringRef name = rest.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
    rest = rest.drop_front(name.size());
    if (name.empty())
      fail("expected a name");
    return name;
  }
  bool areTruths(Term p, Term q) {
    bool good = p->type == terms.boolType() && q->type == terms.boolType();
    if (!good)
      fail("'and' and 'or' combine comparisons");
    return good;
  }

  Term disjunction() {
    Term p = conjunction();
    while (message.empty() && eat("or")) {
      Term q = conjunction();
      p = areTruths(p, q) ? terms.either(p, q) : p;
    }
    return p;
  }
  Term conjunction() {
    Term p = negation();
    while (message.empty() && eat("and")) {
      Term q = negation();
      p = areTruths(p, q) ? terms.both(p, q) : p;
    }
    return p;
  }
  Term negation() {
    if (!eat("not"))
      return comparison();
    Term p = negation();
    return areTruths(p, p) ? terms.negate(p) : p;
  }
  Term comparison() {
    Term a = sum();
    for (StringRef op : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (!eat(op))
        continue;
      Term b = sum();
      if (op == "==")
        return terms.equal(a, b);
      if (op == "!=")
        return terms.negate(terms.equal(a, b));
      if (op == "<=")
        return terms.atMost(a, b);
      if (op == ">=")
        return terms.atMost(b, a);
      return op == "<" ? terms.below(a, b) : terms.below(b, a);
    }
    return a;
  }
  Term sum() {
    Term a = product();
    while (message.empty()) {
      if (eat("+"))
        a = terms.sum(a, product());
      else if (eat("-"))
        a = terms.difference(a, product());
      else
        break;
    }
    return a;
  }
  Term product() {
    Term a = unary();
    while (message.empty()) {
      if (eat("*"))
        a = terms.product(a, unary());
      else if (eat("/"))
        a = terms.quotient(a, unary());
      else if (eat("%"))
        a = terms.remainder(a, unary());
      else
        break;
    }
    return a;
  }
  Term unary() {
    if (++depth > 200) {
      fail("it is nested too deeply");
      return terms.number(0);
    }
    Term result = eat("-") ? terms.scaled(unary(), -1) : primary();
    --depth;
    return result;
  }
  Term primary() {
    if (eat("(")) {
      Term inner = disjunction();
      need(")");
      return inner;
    }
    skip();
    int64_t value = 0;
    if (!rest.empty() && llvm::isDigit(rest.front())) {
      if (rest.consumeInteger(10, value))
        fail("an integer is too large");
      return terms.number(value);
    }
    StringRef name = word();
    if (Term variable = variables.lookup(name))
      return variable;
    auto input = llvm::find(terms.inputNames, name);
    return input == terms.inputNames.end() ? terms.symbol(name) : element(input - terms.inputNames.begin());
  }
  Term element(unsigned input) {
    SmallVector<Term> index;
    if (eat("[")) {
      do
        index.push_back(sum());
      while (eat(","));
      need("]");
    }
    auto type = cast<ArrayType>(types[input]);
    if (index.size() != type.getRank()) {
      fail("'" + terms.inputNames[input] + "' has " + Twine(type.getRank()) + " axes");
      return terms.number(0);
    }
    return terms.valueOf(terms.load(input, index, type.getElementType()));
  }

  TermContext &terms;
  StringRef rest;
  ArrayRef<Type> types;
  llvm::StringMap<Term> variables;
  std::string message;
  unsigned depth = 0;
};
} // namespace

Term validation::parseInteger(TermContext &terms, StringRef text, ArrayRef<Type> inputTypes,
                              const llvm::StringMap<Term> &variables) {
  return Parser(terms, text, inputTypes).runInteger(variables);
}

llvm::Expected<Term> validation::parsePredicate(TermContext &terms, StringRef text, ArrayRef<Type> inputTypes) {
  return Parser(terms, text, inputTypes).run(text);
}
