//===- Parser.cpp - declarations and bodies -------------------------------===//
//
// Recursive descent with one token of lookahead; docs/Language.md holds the
// grammar. Expressions are in ExprParser.cpp.
//
//===----------------------------------------------------------------------===//
#include "lib/Frontend/Parser.h"
#include "lib/Frontend/ExprParser.h"
#include "lib/Support/MathTerm.h"

using namespace mlir;
using namespace moa;
using namespace moa::frontend;

namespace {
class Parser : ExprParser {
public:
  using ExprParser::ExprParser;
  LogicalResult run(Program &program);

private:
  LogicalResult parseFunction(FunctionDecl &function);
  LogicalResult refuseWord();
  LogicalResult parseFunctionParam(FunctionParam &param);
  LogicalResult parseMonoid(FunctionDecl &monoid);
  LogicalResult parseKernel(KernelDecl &kernel);
  LogicalResult parseSymbols(KernelDecl &kernel);
  LogicalResult parseParametricSymbol(KernelDecl &kernel);
  LogicalResult parseArray(ArrayDecl &array, bool isResult);
  LogicalResult parseArrays(std::vector<ArrayDecl> &arrays, bool isResult);
  LogicalResult parseTolerance(ArrayDecl &result);
  LogicalResult parseBody(Body &body, bool isFunction);
};
} // namespace

LogicalResult frontend::parseProgram(StringRef text, unsigned file, const Reporter &reporter, Program &program) {
  auto tokens = tokenize(text, file, reporter);
  if (failed(tokens))
    return failure();
  return Parser(*tokens, reporter).run(program);
}

LogicalResult Parser::run(Program &program) {
  while (peek().kind != Token::End) {
    if (eat("def")) {
      program.functions.emplace_back();
      if (failed(parseFunction(program.functions.back())))
        return failure();
    } else if (eat("kernel")) {
      program.kernels.emplace_back();
      if (failed(parseKernel(program.kernels.back())))
        return failure();
    } else if (eat("monoid")) {
      program.functions.emplace_back();
      if (failed(parseMonoid(program.functions.back())))
        return failure();
    } else {
      return error(peek()) << "expected 'kernel', 'def' or 'monoid', but found " << describe(peek())
                           << didYouMean(peek().text, {"kernel", "def", "monoid"});
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

LogicalResult Parser::parseFunction(FunctionDecl &function) {
  function.loc = peek().loc;
  Token open;
  if (failed(parseName(function.name, "the function")) || failed(expect("(", "before the parameters", &open)))
    return failure();
  if (peek().is(")"))
    return error(peek()) << "a function has at least one parameter";
  do {
    function.params.emplace_back();
    if (failed(parseFunctionParam(function.params.back())))
      return failure();
  } while (eat(","));
  if (failed(close(")", open)))
    return failure();
  return parseBody(function.body, /*isFunction=*/true);
}

/// Parses 'monoid' NAME '(' NAME ',' NAME ')' 'identity' operand body.
LogicalResult Parser::parseMonoid(FunctionDecl &monoid) {
  monoid.loc = peek().loc;
  Token open;
  if (failed(parseName(monoid.name, "the monoid")) || failed(expect("(", "before the two arguments", &open)))
    return failure();
  do {
    monoid.params.emplace_back();
    FunctionParam &param = monoid.params.back();
    param.loc = peek().loc;
    param.cell.emplace();
    if (failed(parseName(param.name, "an argument")))
      return failure();
    if (peek().is(":"))
      return error(peek()) << "the arguments of a monoid are scalars and have no shape";
  } while (eat(","));
  if (monoid.params.size() != 2)
    return error(peek()) << "a monoid combines two values, but '" << monoid.name << "' has " << monoid.params.size()
                         << (monoid.params.size() == 1 ? " argument" : " arguments");
  if (failed(close(")", open)) || failed(expect("identity", "and the value that changes nothing, as in "
                                                            "'monoid gcd(x, y) identity 0 { … }'")))
    return failure();
  monoid.identity = parseOperand();
  if (!monoid.identity)
    return failure();
  return parseBody(monoid.body, /*isFunction=*/true);
}

LogicalResult Parser::parseFunctionParam(FunctionParam &param) {
  param.loc = peek().loc;
  if (failed(parseName(param.name, "the parameter")))
    return failure();
  if (!eat(":"))
    return success();
  Token open;
  if (failed(expect("[", "before the shape of a cell, as in 'x : [n]'", &open)))
    return failure();
  param.cell.emplace();
  while (!peek().is("]")) {
    FunctionParam::Extent extent;
    extent.loc = peek().loc;
    if (peek().kind == Token::Integer)
      extent.value = next().integer;
    else if (failed(parseName(extent.symbol, "an extent of the cell")))
      return failure();
    param.cell->push_back(extent);
    if (!eat(","))
      break;
  }
  return close("]", open);
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

LogicalResult Parser::parseKernel(KernelDecl &kernel) {
  kernel.loc = peek().loc;
  if (failed(parseName(kernel.name, "the kernel")) || failed(parseSymbols(kernel)))
    return failure();
  Token open;
  if (failed(expect("(", "before the parameters", &open)))
    return failure();
  if (!peek().is(")") && failed(parseArrays(kernel.params, false)))
    return failure();
  if (failed(close(")", open)) || failed(expect("->", "before the results")))
    return failure();
  if (peek().is("(")) {
    open = next();
    if (failed(parseArrays(kernel.results, true)) || failed(close(")", open)))
      return failure();
  } else {
    kernel.results.emplace_back();
    if (failed(parseArray(kernel.results.back(), true)))
      return failure();
  }
  while (peek().is("require") || peek().is("assume")) {
    std::vector<ExprPtr> &clauses = next().is("assume") ? kernel.assumptions : kernel.constraints;
    clauses.push_back(parseExpr());
    if (!clauses.back())
      return failure();
    if (peek().is("="))
      return error(peek()) << "'=' defines a value; what is equal is written with '=='";
  }
  return parseBody(kernel.body, /*isFunction=*/false);
}

LogicalResult Parser::parseSymbols(KernelDecl &kernel) {
  if (!peek().is("["))
    return success();
  Token open = next();
  while (!peek().is(";") && !peek().is("]")) {
    SymbolDecl symbol;
    symbol.loc = peek().loc;
    if (failed(parseName(symbol.name, "the symbol")))
      return failure();
    if (peek().is("=") || peek().is(":"))
      return error(peek()) << "'" << symbol.name
                           << "' stands among the run-time symbols; element types and "
                              "compile-time constants follow a ';', as in "
                              "'[B, N; T : float = f32, D = 64]'";
    kernel.symbols.push_back(std::move(symbol));
    if (!eat(","))
      break;
  }
  if (eat(";"))
    do {
      if (failed(parseParametricSymbol(kernel)))
        return failure();
    } while (eat(","));
  return close("]", open);
}

LogicalResult Parser::parseParametricSymbol(KernelDecl &kernel) {
  SymbolDecl symbol;
  symbol.loc = peek().loc;
  symbol.kind = SymbolDecl::Constant;
  if (failed(parseName(symbol.name, "the symbol")))
    return failure();
  if (eat(":")) {
    symbol.kind = SymbolDecl::ElementType;
    if (!peek().is("float") && !peek().is("int"))
      return error(peek()) << "expected the class 'float' or 'int' of the element type '" << symbol.name
                           << "', but found " << describe(peek());
    symbol.typeClass = next().text.str();
    if (eat("=")) {
      symbol.defaultType = {peek().text.str(), peek().loc};
      if (peek().kind != Token::Identifier)
        return error(peek()) << "expected an element type, but found " << describe(peek());
      next();
    }
  } else if (eat("=")) {
    symbol.value = parseExpr();
    if (!symbol.value)
      return failure();
  }
  kernel.symbols.push_back(std::move(symbol));
  return success();
}

LogicalResult Parser::parseArrays(std::vector<ArrayDecl> &arrays, bool isResult) {
  do {
    arrays.emplace_back();
    if (failed(parseArray(arrays.back(), isResult)))
      return failure();
  } while (eat(","));
  return success();
}

/// Parses 'within' NUMBER ['relative'] ['sampled']. The last two are keywords only here.
LogicalResult Parser::parseTolerance(ArrayDecl &result) {
  result.within.emplace();
  result.within->loc = next().loc;
  Tolerance &tolerance = result.within->value;
  const Token &number = peek();
  if (number.kind != Token::Real && number.kind != Token::Integer)
    return error(number) << "expected the error that '" << result.name
                         << "' may have, a number as in 'within 1e-2', but found " << describe(number);
  tolerance.epsilon = number.kind == Token::Real ? number.real : double(number.integer);
  if (!isEpsilon(tolerance.epsilon))
    return error(number) << "a tolerance is positive, but this is " << number.text
                         << "; without 'within' the compiler spends no accuracy";
  next();
  if (peek().is("%"))
    return error(peek()) << "a tolerance is a number, not a percentage; write 'within "
                         << formatNumber(tolerance.epsilon / 100) << "'";
  tolerance.isRelative = eat(kRelativeWord);
  if (!tolerance.isRelative && peek().is(kSampledWord))
    return error(peek()) << kSampledIsRelative;
  tolerance.isSampled = eat(kSampledWord);
  const Token &word = peek();
  if (word.kind != Token::Identifier || word.is("require") || word.is("assume"))
    return success();
  auto diagnostic = error(word);
  if (word.is(kRelativeWord) || word.is(kSampledWord))
    return diagnostic << "write 'relative' and 'sampled' after the number of 'within', in this "
                         "order and each at most once";
  return diagnostic << "only 'relative' and 'sampled' may follow the number of 'within', but found " << describe(word)
                    << didYouMean(word.text, {kRelativeWord.str(), kSampledWord.str()});
}

/// Parses name ':' type ['[' extents ']'] ['in' low '..' high] ['within' …].
LogicalResult Parser::parseArray(ArrayDecl &array, bool isResult) {
  array.loc = peek().loc;
  if (failed(parseName(array.name, isResult ? "the result" : "the parameter")) ||
      failed(expect(":", "and an element type, as in 'x : f32[N]'")))
    return failure();
  array.type = {peek().text.str(), peek().loc};
  if (peek().kind != Token::Identifier)
    return error(peek()) << "expected an element type, but found " << describe(peek());
  next();
  if (peek().is("[")) {
    Token open = next();
    while (!peek().is("]")) {
      array.shape.push_back(parseExpr());
      if (!array.shape.back())
        return failure();
      if (!eat(","))
        break;
    }
    if (failed(close("]", open)))
      return failure();
  }
  if (peek().is("within"))
    return isResult
               ? parseTolerance(array)
               : error(peek()) << "'within' bounds the error of a result, and '" << array.name << "' is a parameter";
  if (!peek().is("in"))
    return success();
  if (isResult)
    return error(peek()) << "a range can be declared for a parameter only";
  next();
  array.low = parseOperand();
  if (!array.low || failed(expect("..", "in a range, as in 'in 0..N'")))
    return failure();
  array.high = parseOperand();
  return success(array.high != nullptr);
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

/// Reports a word that cannot begin a definition, where one may begin.
LogicalResult Parser::refuseWord() {
  const Token &word = peek(), &after = peek(1);
  auto diagnostic = error(word);
  if (word.is("let") || word.is("var") || word.is("const"))
    return diagnostic << "a definition is 'y = …', without '" << word.text << "'";
  if (isAfter("if"))
    return diagnostic << "there is no 'if'; a choice is 'select(p, x, y)'";
  if (word.is("where") || word.is("if") || word.is("for"))
    return diagnostic << "there is no '" << word.text
                      << "'; a choice is 'select(p, x, y)', and 'mask(p, x)' leaves elements out "
                         "of a reduction";
  diagnostic << "expected an operator, a definition '" << word.text << " = …' or '}', but found '" << word.text << "'";
  if (after.is("["))
    diagnostic << "; an array is defined as a whole, by its element at an index, as in '" << word.text << " = [i] …'";
  else if (after.is(":") && peek(2).is("="))
    diagnostic << "; a definition is written with '='";
  else if (peek(2).is("=") && (after.is("+") || after.is("-") || after.is("*") || after.is("/")))
    diagnostic << "; write '" << word.text << " = " << word.text << " " << after.text << " …'";
  return diagnostic;
}

LogicalResult Parser::parseBody(Body &body, bool isFunction) {
  Token open;
  if (failed(expect("{", "before the body", &open)))
    return failure();
  while (!peek().is("}")) {
    if (eat(";"))
      continue;
    if (peek().is("return")) {
      if (!isFunction)
        return error(peek()) << "a kernel has no 'return'; define its results by name";
      next();
      body.result = parseExpr();
      if (!body.result)
        return failure();
      eat(";");
      if (!peek().is("}"))
        return error(peek()) << "expected '}' after 'return', but found " << describe(peek());
      break;
    }
    if (peek().kind == Token::End)
      return close("}", open);
    if (peek().is("assume"))
      return error(peek()) << "'assume' belongs before the body of a kernel, like 'require'";
    if (peek().is("within"))
      return error(peek()) << "'within' belongs after the type of a result, as in '-> y : f32[N] "
                              "within 1e-2'";
    if (peek().kind != Token::Identifier)
      return error(peek()) << "expected an operator, a definition or '}', but found " << describe(peek());
    Definition definition;
    definition.loc = peek().loc;
    bool isTyped = peek(1).is(":") && !peek(2).is("=");
    if (!isReservedWord(peek().text) && !peek(1).is("=") && !isTyped)
      return refuseWord();
    if (failed(parseName(definition.name, "a definition")) || failed(expect("=", "in a definition")))
      return failure();
    definition.value = parseExpr();
    if (!definition.value)
      return failure();
    body.definitions.push_back(std::move(definition));
  }
  body.end = peek().loc;
  if (isFunction && !body.result)
    return error(peek()) << "a function ends with 'return' and its value";
  return close("}", open);
}
