//===- ExprParser.h - syntax of expressions ---------------------*- C++ -*-===//
#ifndef MOA_FRONTEND_EXPRPARSER_H
#define MOA_FRONTEND_EXPRPARSER_H

#include "lib/Frontend/Lexer.h"

namespace moa::frontend {

/// Token stream and expressions. The `parse…` members report an error and then return null or
/// failure.
class ExprParser {
public:
  ExprParser(llvm::ArrayRef<Token> tokens, const Reporter &reporter) : tokens(tokens), reporter(reporter) {}

protected:
  const Token &peek(unsigned ahead = 0) const { return tokens[std::min(pos + ahead, tokens.size() - 1)]; }
  const Token &next();
  /// Returns true if the last token read is this word.
  bool isAfter(llvm::StringRef text) const { return pos > 0 && tokens[pos - 1].is(text); }
  bool eat(llvm::StringRef text);
  mlir::InFlightDiagnostic error(const Token &token) const { return reporter.error(token.loc); }
  /// Returns for example "'x'", "the number 3", "the end of the file".
  static std::string describe(const Token &token);
  mlir::LogicalResult expect(llvm::StringRef text, llvm::StringRef where, Token *found = nullptr);
  /// Expects the bracket that closes `open`. Otherwise reports an error with a note at `open`.
  mlir::LogicalResult close(llvm::StringRef text, const Token &open);
  mlir::LogicalResult parseName(std::string &name, llvm::StringRef what);

  ExprPtr parseExpr();
  /// Parses an expression without comparisons and logic, as in the bounds of a range.
  ExprPtr parseOperand();

private:
  ExprPtr parseBinary(unsigned minimum);
  ExprPtr parseUnary();
  ExprPtr parseReduction();
  ExprPtr parsePostfix();
  ExprPtr parsePrimary();
  ExprPtr parseNumber();
  ExprPtr parseCall(const Token &name);
  ExprPtr parseFunctionRef();
  mlir::LogicalResult refuseKeyword(const Expr &argument);
  ExprPtr parseBracket();
  /// Parses the body of an index form whose list begins at token `begin`.
  ExprPtr makeIndexForm(ExprPtr list, size_t begin);
  /// Reports an error for an operand of `op` that ends in an ambiguous index form.
  mlir::LogicalResult checkReach(const Token &op, unsigned precedence, bool isPrefix);
  void noteForm(const Expr &form, size_t begin, size_t body);
  mlir::LogicalResult refuseSlice(const Token &colon);
  mlir::LogicalResult parseSubscripts(Expr &index);
  mlir::LogicalResult parseRanks(Expr &expr);
  mlir::LogicalResult refuseProduct(const Token &at);
  mlir::LogicalResult checkComparison(const Expr &left, const Token &op);
  void setText(Expr &expr, const Token &first) const;
  /// Computes the depth. Reports an error and returns null beyond the limit.
  ExprPtr finish(ExprPtr expr);
  bool startsExpr(const Token &token) const;

  llvm::ArrayRef<Token> tokens;
  const Reporter &reporter;
  size_t pos = 0;
  unsigned nesting = 0;
  /// The loosest operator outside parentheses in the last expression of parseBinary.
  const Token *topOperator = nullptr;
  /// The last index form whose body has an operator outside parentheses: first tokens of the form
  /// and of its body, and the end. `hasIndex` is true if an index of the form occurs after the
  /// operator, so that this part must belong to the body.
  struct {
    size_t begin = 0, body = 0, end = 0;
    const Token *operation = nullptr;
    bool hasIndex = false;
  } openForm;
};

} // namespace moa::frontend

#endif // MOA_FRONTEND_EXPRPARSER_H
