//===- ExprParser.cpp - syntax of expressions -----------------------------===//
#include "lib/Frontend/ExprParser.h"
#include "lib/Support/Shorten.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace moa;
using namespace moa::frontend;

//===----------------------------------------------------------------------===//
// Tokens
//===----------------------------------------------------------------------===//

const Token &ExprParser::next() {
  const Token &token = peek();
  if (pos + 1 < tokens.size())
    ++pos;
  return token;
}

bool ExprParser::eat(StringRef text) {
  if (!peek().is(text))
    return false;
  next();
  return true;
}

std::string ExprParser::describe(const Token &token) {
  if (token.kind == Token::End)
    return "the end of the file";
  if (token.kind == Token::Integer || token.kind == Token::Real)
    return "the number " + token.text.str();
  return "'" + token.text.str() + "'";
}

LogicalResult ExprParser::expect(StringRef text, StringRef where, Token *found) {
  if (!peek().is(text))
    return error(peek()) << "expected '" << text << "' " << where << ", but found " << describe(peek());
  const Token &token = next();
  if (found)
    *found = token;
  return success();
}

LogicalResult ExprParser::close(StringRef text, const Token &open) {
  if (eat(text))
    return success();
  auto diagnostic = error(peek()) << "expected '" << text << "', but found " << describe(peek());
  diagnostic.attachNote(reporter.exact(open.loc)) << "to close this '" << open.text << "'";
  return diagnostic;
}

LogicalResult ExprParser::parseName(std::string &name, StringRef what) {
  const Token &token = peek();
  if (token.kind != Token::Identifier)
    return error(token) << "expected the name of " << what << ", but found " << describe(token);
  if (isReservedWord(token.text))
    return error(token) << "'" << token.text << "' is a word of the language and cannot name " << what;
  name = next().text.str();
  return success();
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

namespace {
enum Precedence : unsigned { Or = 1, And, Not, Comparison, BitOr, BitXor, BitAnd, Shift, Sum, Product };
} // namespace

static unsigned precedenceOf(const Token &token) {
  if (token.kind == Token::InnerProduct)
    return Product;
  if (token.kind != Token::Punctuation && token.kind != Token::Identifier)
    return 0;
  return llvm::StringSwitch<unsigned>(token.text)
      .Case("or", Or)
      .Case("and", And)
      .Cases({"==", "!=", "<", "<=", ">", ">="}, Comparison)
      .Case("|", BitOr)
      .Case("^", BitXor)
      .Case("&", BitAnd)
      .Cases({"<<", ">>"}, Shift)
      .Cases({"+", "-"}, Sum)
      .Cases({"*", "/", "%"}, Product)
      .Default(0);
}

ExprPtr ExprParser::finish(ExprPtr expr) {
  for (const ExprPtr &arg : expr->args)
    expr->depth = std::max(expr->depth, arg->depth + 1);
  for (const IndexVar &var : expr->vars)
    if (var.bound)
      expr->depth = std::max(expr->depth, var.bound->depth + 1);
  if (expr->depth <= maxNesting)
    return expr;
  reporter.error(expr->loc) << "the expression is nested deeper than " << maxNesting
                            << " levels; give parts of it a name";
  return nullptr;
}

ExprPtr ExprParser::parseExpr() {
  const Token &first = peek();
  ExprPtr expr = parseBinary(Or);
  if (expr)
    setText(*expr, first);
  return expr;
}

/// Sets the text of an expression: from its first token to the last token read.
void ExprParser::setText(Expr &expr, const Token &first) const {
  expr.start = first.loc;
  expr.text = StringRef(first.text.data(), tokens[pos - 1].text.end() - first.text.data());
}

ExprPtr ExprParser::parseOperand() { return parseBinary(BitOr); }

LogicalResult ExprParser::checkComparison(const Expr &left, const Token &op) {
  if (left.kind != ExprKind::Binary || left.fn < ScalarFn::eq || left.fn > ScalarFn::ge)
    return success();
  return error(op) << "comparisons do not chain; write 'a " << left.name << " b and b " << op.text << " c'";
}

ExprPtr ExprParser::parseBinary(unsigned minimum) {
  const Token &first = peek();
  ExprPtr left = parseUnary();
  const Expr *built = nullptr; // the expression built here, outside parentheses
  const Token *operation = nullptr;
  while (left) {
    const Token &op = peek();
    if (op.kind == Token::Reduction) {
      error(op) << "'" << op.text << "' is a reduction; write it before its operand, as in '" << op.text << " x'";
      return nullptr;
    }
    if (op.is("@")) {
      (void)refuseProduct(op);
      return nullptr;
    }
    unsigned precedence = precedenceOf(op);
    if (precedence == 0 || precedence < minimum) {
      topOperator = operation;
      return left;
    }
    if (precedence == Comparison && left.get() == built && failed(checkComparison(*left, op)))
      return nullptr;
    next();
    if (op.is("*") && peek().is("*")) {
      error(op) << "there is no operator '**'; a power is 'pow(x, y)'";
      return nullptr;
    }
    if (op.is("+") && peek().is("+")) {
      error(op) << "there is no operator '++'; arrays are joined by 'cat(x, y)'";
      return nullptr;
    }
    if ((op.is("&") || op.is("|")) && peek().is(op.text)) {
      error(op) << "there is no operator '" << op.text << op.text << "'; logic is '" << (op.is("&") ? "and" : "or")
                << "', and '" << op.text << "' is for bits";
      return nullptr;
    }
    bool isInner = op.kind == Token::InnerProduct;
    auto expr = std::make_unique<Expr>(isInner ? ExprKind::Inner : ExprKind::Binary, op.loc);
    expr->name = op.text.str();
    expr->monoid = op.monoid;
    expr->fn = isInner ? op.fn : *getBinaryFn(op.text);
    if (failed(parseRanks(*expr)))
      return nullptr;
    ExprPtr right = parseBinary(precedence + 1);
    if (!right || failed(checkReach(op, precedence, false)))
      return nullptr;
    operation = &op;
    expr->args.push_back(std::move(left));
    expr->args.push_back(std::move(right));
    if (isInner)
      setText(*expr, first);
    left = finish(std::move(expr));
    built = left.get();
  }
  return left;
}

/// Reports '@' without cell ranks, which users may write for a matrix product.
LogicalResult ExprParser::refuseProduct(const Token &at) {
  return error(at) << "'@' gives the cell ranks of a function or an operator, "
                      "as in 'f @ (2,1)'; a product of matrices is 'a +.* b'";
}

/// Parses '@' '(' integer {',' integer} ')' after an operator or a function.
LogicalResult ExprParser::parseRanks(Expr &expr) {
  const Token &at = peek();
  if (!eat("@"))
    return success();
  Token open;
  if (!peek().is("("))
    return refuseProduct(at);
  open = next();
  expr.ranks.emplace();
  do {
    if (peek().kind != Token::Integer)
      return error(peek()) << "expected a cell rank, but found " << describe(peek());
    expr.ranks->push_back(next().integer);
  } while (eat(","));
  return close(")", open);
}

ExprPtr ExprParser::parseUnary() {
  if (nesting > maxNesting) {
    error(peek()) << "the expression is nested deeper than " << maxNesting << " levels; give parts of it a name";
    return nullptr;
  }
  ++nesting;
  llvm::scope_exit leave([&] { --nesting; });
  const Token &op = peek();
  if (op.kind == Token::Reduction)
    return parseReduction();
  if (!op.is("-") && !op.is("not") && !op.is("~"))
    return parsePostfix();
  next();
  auto expr = std::make_unique<Expr>(ExprKind::Unary, op.loc);
  expr->name = op.text.str();
  expr->fn = op.is("-") ? ScalarFn::neg : ScalarFn::not_;
  ExprPtr operand = op.is("not") ? parseBinary(Comparison) : parseUnary();
  if (!operand || failed(checkReach(op, op.is("not") ? And : Product, true)))
    return nullptr;
  expr->args.push_back(std::move(operand));
  return finish(std::move(expr));
}

/// Reports an ambiguous index form. For example `x * [d] g[d] + 1` may mean x·(g + 1) or x·g + 1.
/// This happens if the body has an operator outside parentheses that binds no tighter than the
/// operator before the form. It is unambiguous if an index of the form occurs after the body's
/// operator.
LogicalResult ExprParser::checkReach(const Token &op, unsigned precedence, bool isPrefix) {
  if (openForm.end != pos || openForm.hasIndex || precedenceOf(*openForm.operation) > precedence)
    return success();
  auto textOf = [&](size_t begin, size_t end) {
    StringRef first = tokens[begin].text, last = tokens[end - 1].text;
    return shorten(StringRef(first.data(), last.end() - first.data()), 40);
  };
  const Token &inner = *openForm.operation;
  size_t at = &inner - &tokens[0];
  std::string list = textOf(openForm.begin, openForm.body), left = textOf(openForm.body, at);
  std::string operand = list + " " + left;
  if (isPrefix)
    operand = (op.text + (op.is("-") || op.is("~") ? "" : " ") + operand).str();
  auto diagnostic = error(inner) << "it is not clear how far the body of '" << list << "' reaches; write '" << list
                                 << " (" << left << " " << inner.text << " y)' or '(" << operand << ") " << inner.text
                                 << " y'";
  diagnostic.attachNote(reporter.exact(op.loc)) << "the index form is an operand of this '" << op.text << "'";
  return diagnostic;
}

ExprPtr ExprParser::parseReduction() {
  const Token &op = next();
  auto expr = std::make_unique<Expr>(ExprKind::Reduce, op.loc);
  expr->name = op.text.str();
  expr->monoid = op.monoid;
  if (failed(parseRanks(*expr)))
    return nullptr;
  ExprPtr operand = parseUnary();
  if (!operand || failed(checkReach(op, Product, true)))
    return nullptr;
  // `+/ a * b` may mean a sum of products or a product with a sum.
  if (precedenceOf(peek()) >= BitOr) {
    error(peek()) << "it is not clear how far '" << op.text << "' reaches; write '(" << op.text << " x) " << peek().text
                  << " y' or '" << op.text << " (x " << peek().text << " y)'";
    return nullptr;
  }
  expr->args.push_back(std::move(operand));
  setText(*expr, op);
  return finish(std::move(expr));
}

//===----------------------------------------------------------------------===//
// Postfix and primary expressions
//===----------------------------------------------------------------------===//

/// Reports ':' among subscripts, which is a range in other languages.
LogicalResult ExprParser::refuseSlice(const Token &colon) {
  return error(colon) << "subscripts are no ranges: '_' takes a whole axis, and elements a to "
                         "b - 1 of an axis are 'drop(take(x, b, axis), a, axis)'";
}

LogicalResult ExprParser::parseSubscripts(Expr &index) {
  Token open = next();
  if (peek().is("]"))
    return error(peek()) << "expected a subscript; '_' takes a whole axis";
  do {
    if (peek().is(":"))
      return refuseSlice(peek());
    if (peek().is("_")) {
      auto whole = std::make_unique<Expr>(ExprKind::Wildcard, next().loc);
      index.args.push_back(std::move(whole));
      continue;
    }
    index.args.push_back(parseExpr());
    if (!index.args.back())
      return failure();
    if (peek().is(":"))
      return refuseSlice(peek());
  } while (eat(","));
  return close("]", open);
}

ExprPtr ExprParser::parsePostfix() {
  ExprPtr expr = parsePrimary();
  while (expr && peek().is("[")) {
    auto index = std::make_unique<Expr>(ExprKind::Index, peek().loc);
    index->args.push_back(std::move(expr));
    if (failed(parseSubscripts(*index)))
      return nullptr;
    expr = finish(std::move(index));
  }
  return expr;
}

bool ExprParser::startsExpr(const Token &token) const {
  switch (token.kind) {
  case Token::Identifier:
    return !token.is("and") && !token.is("or") && !token.is("in") && !token.is("within");
  case Token::Integer:
  case Token::Real:
  case Token::Reduction:
    return true;
  case Token::Punctuation:
    return token.is("(") || token.is("[") || token.is("-") || token.is("~");
  default:
    return false;
  }
}

ExprPtr ExprParser::parseNumber() {
  const Token &token = next();
  bool isReal = token.kind == Token::Real || token.is("inf");
  auto expr = std::make_unique<Expr>(isReal ? ExprKind::Real : ExprKind::Integer, token.loc);
  expr->integer = token.integer;
  expr->real = token.is("inf") ? std::numeric_limits<double>::infinity() : token.real;
  expr->name = token.text.str();
  return expr;
}

ExprPtr ExprParser::parsePrimary() {
  const Token &token = peek();
  if (token.kind == Token::Integer || token.kind == Token::Real || token.is("inf"))
    return parseNumber();
  if (token.is("true") || token.is("false")) {
    auto expr = std::make_unique<Expr>(ExprKind::Boolean, next().loc);
    expr->integer = token.is("true");
    return expr;
  }
  if (token.is("(")) {
    next();
    ExprPtr expr = parseExpr();
    if (!expr || failed(close(")", token)))
      return nullptr;
    return expr;
  }
  if (token.is("["))
    return parseBracket();
  if (token.kind != Token::Identifier) {
    bool isReduction = token.is("/") && (isAfter("-") || isAfter("~"));
    auto diagnostic = error(token) << "expected an expression, but found " << describe(token);
    if (isReduction)
      diagnostic << "; there are the reductions +/ */ max/ min/ and/ or/, and 'reduce(f, x, axis)'";
    return nullptr;
  }
  if (token.is("_")) {
    error(token) << "'_' stands only among subscripts and in the list of an index form";
    return nullptr;
  }
  if (peek(1).is("(") || peek(1).is("@")) {
    next();
    return parseCall(token);
  }
  if ((token.is("max") || token.is("min")) && peek(1).is("/"))
    error(token) << "a reduction is one token: write '" << token.text << "/' without a space";
  else if (isReservedWord(token.text))
    error(token) << "expected an expression, but found the word '" << token.text << "'";
  else {
    auto expr = std::make_unique<Expr>(ExprKind::Name, next().loc);
    expr->name = token.text.str();
    return expr;
  }
  return nullptr;
}

/// Returns how many leading arguments of a function are functions themselves.
static unsigned countFunctionArguments(StringRef name) {
  return llvm::StringSwitch<unsigned>(name).Cases({"reduce", "outer"}, 1).Case("inner", 2).Default(0);
}

ExprPtr ExprParser::parseFunctionRef() {
  const Token &token = peek();
  bool isOperator = token.kind == Token::Punctuation && getBinaryFn(token.text);
  if (!isOperator && token.kind != Token::Identifier) {
    error(token) << "expected an operator or the name of a function, but found " << describe(token);
    return nullptr;
  }
  auto expr = std::make_unique<Expr>(ExprKind::FunctionRef, next().loc);
  expr->name = token.text.str();
  return expr;
}

/// Reports a keyword argument: `f(x, axis=0)`.
LogicalResult ExprParser::refuseKeyword(const Expr &argument) {
  if (argument.kind != ExprKind::Name || !peek().is("="))
    return success();
  auto diagnostic = error(peek()) << "arguments have no names; write their values in the order of "
                                     "the parameters";
  bool isAxis = llvm::is_contained({"axis", "axes", "dim", "dims"}, argument.name);
  if (isAxis)
    diagnostic << ". Functions work on the last axes: 'transpose' brings others there, and "
                  "'reduce(+, x, 0)' names one";
  return diagnostic;
}

ExprPtr ExprParser::parseCall(const Token &name) {
  auto call = std::make_unique<Expr>(ExprKind::Call, name.loc);
  call->name = name.text.str();
  Token open;
  if (failed(parseRanks(*call)) || failed(expect("(", "before the arguments", &open)))
    return nullptr;
  unsigned functions = countFunctionArguments(name.text);
  while (!peek().is(")")) {
    call->args.push_back(call->args.size() < functions ? parseFunctionRef() : parseExpr());
    if (!call->args.back() || failed(refuseKeyword(*call->args.back())))
      return nullptr;
    if (!eat(","))
      break;
  }
  if (failed(close(")", open)))
    return nullptr;
  return finish(std::move(call));
}

//===----------------------------------------------------------------------===//
// Brackets: index forms and lists
//===----------------------------------------------------------------------===//

/// Parses '[' … ']': an index form if an expression follows, a list otherwise.
ExprPtr ExprParser::parseBracket() {
  size_t begin = pos;
  const Token &open = next();
  auto list = std::make_unique<Expr>(ExprKind::List, open.loc);
  while (!peek().is("]")) {
    if (peek().is("_")) {
      list->args.push_back(std::make_unique<Expr>(ExprKind::Wildcard, next().loc));
    } else {
      list->args.push_back(parseExpr());
      if (!list->args.back())
        return nullptr;
    }
    if (!eat(","))
      break;
  }
  if (failed(close("]", open)))
    return nullptr;
  if (startsExpr(peek()))
    return makeIndexForm(std::move(list), begin);
  for (const ExprPtr &arg : list->args)
    if (arg->kind == ExprKind::Wildcard) {
      error(peek()) << "expected the body of the index form, but found " << describe(peek());
      return nullptr;
    }
  return finish(std::move(list));
}

ExprPtr ExprParser::makeIndexForm(ExprPtr list, size_t begin) {
  auto form = std::make_unique<Expr>(ExprKind::IndexForm, list->loc);
  if (list->args.empty()) {
    reporter.error(list->loc) << "an index form names at least one axis, as in '[i < N] x[i]'";
    return nullptr;
  }
  for (ExprPtr &item : list->args) {
    IndexVar var;
    var.loc = item->loc;
    bool isBounded = item->kind == ExprKind::Binary && item->fn == ScalarFn::lt && item->arg(0).kind == ExprKind::Name;
    if (item->kind == ExprKind::Wildcard) {
      var.name = "_";
    } else if (item->kind == ExprKind::Name) {
      var.name = item->name;
    } else if (isBounded) {
      var.name = item->arg(0).name;
      var.loc = item->arg(0).loc;
      var.bound = std::move(item->args[1]);
    } else {
      reporter.error(item->loc) << "expected 'i', 'i < extent' or '_' in an index form";
      return nullptr;
    }
    for (const IndexVar &other : form->vars)
      if (!var.isWildcard() && other.name == var.name) {
        auto diagnostic = reporter.error(var.loc) << "index '" << var.name << "' is named twice in one index form";
        diagnostic.attachNote(reporter.exact(other.loc)) << "first named here";
        return nullptr;
      }
    form->vars.push_back(std::move(var));
  }
  size_t start = pos;
  ExprPtr body = parseExpr();
  if (!body)
    return nullptr;
  noteForm(*form, begin, start);
  form->args.push_back(std::move(body));
  return finish(std::move(form));
}

/// Records a form in openForm. Of nested forms the inner one is kept.
void ExprParser::noteForm(const Expr &form, size_t begin, size_t body) {
  if (topOperator)
    openForm = {begin, body, pos, topOperator, false};
  if (openForm.end != pos)
    return;
  size_t at = openForm.operation - &tokens[0];
  for (const Token &token : tokens.slice(at, pos - at))
    openForm.hasIndex |= token.kind == Token::Identifier && llvm::any_of(form.vars, [&](const IndexVar &var) {
                           return !var.isWildcard() && token.is(var.name);
                         });
}
