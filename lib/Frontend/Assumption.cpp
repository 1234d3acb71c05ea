//===- Assumption.cpp - the clause 'assume' -------------------------------===//
#include "lib/Frontend/Assumption.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace moa;
using namespace moa::frontend;

namespace {
class AssumptionWriter {
public:
  AssumptionWriter(const Signature &signature, const Reporter &reporter) : signature(signature), reporter(reporter) {}

  FailureOr<std::string> run(const Expr &expr) {
    if (expr.kind != ExprKind::IndexForm)
      return write(expr);
    std::vector<std::string> names;
    for (const IndexVar &var : expr.vars) {
      if (var.isWildcard() || var.bound)
        return reporter.error(var.loc) << "an index of an assumption has a name and no bound: it stands "
                                          "for every index of the axis that it is a subscript of";
      names.push_back(var.name);
    }
    auto body = write(expr.arg(0));
    if (failed(body))
      return failure();
    for (const IndexVar &var : expr.vars)
      if (!subscripts.count(var.name))
        return reporter.error(var.loc) << "'" << var.name << "' is no subscript of its own in the "
                                       << "assumption, so its range is unknown; use it as a whole subscript";
    return "[" + llvm::join(names, ", ") + "] " + *body;
  }

private:
  FailureOr<std::string> refuse(const Expr &expr) {
    return reporter.error(expr.loc) << "an assumption compares integers: symbols, scalar parameters and "
                                       "elements of parameters, as in 'assume [b, p] table[b, p] < P'";
  }

  /// Precedences. Text with a lower precedence than `least` gets parentheses.
  enum Strength { Any, Or, And, Not, Compare, Sum, Product, Unary };
  static Strength strengthOf(const Expr &expr) {
    if (expr.kind == ExprKind::Unary)
      return expr.name == "not" ? Not : Unary;
    if (expr.kind != ExprKind::Binary)
      return Unary;
    if (expr.name == "or" || expr.name == "and")
      return expr.name == "or" ? Or : And;
    if (expr.fn >= ScalarFn::eq && expr.fn <= ScalarFn::ge)
      return Compare;
    return expr.name == "+" || expr.name == "-" ? Sum : Product;
  }

  FailureOr<std::string> write(const Expr &expr, unsigned least = Any) {
    auto text = writeAlone(expr);
    if (succeeded(text) && strengthOf(expr) < least)
      return "(" + *text + ")";
    return text;
  }

  FailureOr<std::string> writeAlone(const Expr &expr) {
    switch (expr.kind) {
    case ExprKind::Integer:
      return std::to_string(expr.integer);
    case ExprKind::Name:
      return name(expr);
    case ExprKind::Index:
      return element(expr);
    case ExprKind::Unary: {
      bool isNot = expr.name == "not";
      if (!isNot && expr.fn != ScalarFn::neg)
        return refuse(expr);
      auto a = write(expr.arg(0), isNot ? Not : Unary);
      return failed(a) ? a : FailureOr<std::string>((isNot ? "not " : "-") + *a);
    }
    case ExprKind::Binary:
      return binary(expr);
    default:
      return refuse(expr);
    }
  }

  FailureOr<std::string> binary(const Expr &expr) {
    static constexpr StringRef operators[] = {"+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "and", "or"};
    if (!llvm::is_contained(operators, expr.name) || expr.ranks)
      return refuse(expr);
    unsigned strength = strengthOf(expr);
    // Operators associate to the left; comparisons do not chain.
    auto a = write(expr.arg(0), strength == Compare ? unsigned(Sum) : strength);
    if (failed(a))
      return failure();
    auto b = write(expr.arg(1), strength + 1);
    if (failed(b))
      return failure();
    return *a + " " + expr.name + " " + *b;
  }

  FailureOr<std::string> name(const Expr &expr) {
    if (expr.ref.kind == Reference::IndexVariable)
      return expr.name;
    if (expr.ref.kind == Reference::Parameter)
      return parameter(expr, 0) ? FailureOr<std::string>(expr.name) : FailureOr<std::string>(failure());
    auto symbol = signature.symbols.find(expr.name);
    if (symbol == signature.symbols.end())
      return refuse(expr);
    std::string text = symbol->second.str();
    return symbol->second.getConstant() || symbol->second.getSymbol() ? text : "(" + text + ")";
  }

  /// Returns true for an integer or boolean parameter of rank `rank`. Else reports an error.
  bool parameter(const Expr &expr, size_t rank) {
    if (expr.kind != ExprKind::Name || expr.ref.kind != Reference::Parameter)
      return succeeded(refuse(expr));
    const Signature::Array &array = signature.params[expr.ref.index];
    if (!isa<IntegerType>(array.elementType))
      return succeeded(refuse(expr));
    if (array.shape.size() == rank)
      return true;
    std::string names;
    for (size_t k = 0; k < array.shape.size(); ++k)
      names += (k ? ", i" : "i") + std::to_string(k);
    auto error = reporter.error(expr.loc)
                 << "'" << expr.name << "' has " << array.shape.size() << (array.shape.size() == 1 ? " axis" : " axes")
                 << ", but " << rank << (rank == 1 ? " subscript" : " subscripts") << " in the assumption";
    if (names.empty())
      error << "; it is a scalar";
    else
      error << "; of every element write '[" << names << "] " << expr.name << "[" << names << "]'";
    return false;
  }

  FailureOr<std::string> element(const Expr &expr) {
    size_t count = expr.args.size() - 1;
    if (!parameter(expr.arg(0), count))
      return failure();
    std::vector<std::string> texts;
    for (size_t k = 1; k <= count; ++k) {
      const Expr &subscript = expr.arg(k);
      auto text = write(subscript);
      if (failed(text))
        return failure();
      if (subscript.kind == ExprKind::Name && subscript.ref.kind == Reference::IndexVariable)
        subscripts.insert(subscript.name);
      texts.push_back(std::move(*text));
    }
    return expr.arg(0).name + "[" + llvm::join(texts, ", ") + "]";
  }

  const Signature &signature;
  const Reporter &reporter;
  std::set<std::string> subscripts;
};
} // namespace

FailureOr<std::string> frontend::assumptionText(const Expr &expr, const Signature &signature,
                                                const Reporter &reporter) {
  return AssumptionWriter(signature, reporter).run(expr);
}
