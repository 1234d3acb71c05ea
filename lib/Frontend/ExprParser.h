//===- ExprParser.h - syntax of expressions ---------------------*- C++ -*-===//
#ifndef MOA_FRONTEND_EXPRPARSER_H
#define MOA_FRONTEND_EXPRPARSER_H

#include "lib/Frontend/Lexer.h"

namespace moa::frontend {

/// Token stream and expressions. All `parse…` members return null or failure
/// after an error that has been reported.
class ExprParser {
public:
  ExprParser(llvm::ArrayRef<Token> tokens, const Reporter &reporter)
      : tokens(tokens), reporter(reporter) {}

protected:
  const Token &peek(unsigned ahead = 0) const {
    return tokens[std::min(pos + ahead, tokens.size() - 1)];
  }
  const Token &next();
  /// Whether the token that was read last is this word.
  bool behind(llvm::StringRef text) const { return pos > 0 && tokens[pos - 1].is(text); }
  bool eat(llvm::StringRef text);
  mlir::InFlightDiagnostic error(const Token &token) const { return reporter.error(token.loc); }
  /// "'x'", "the number 3", "the end of the file".
  static std::string describe(const Token &token);
  mlir::LogicalResult expect(llvm::StringRef text, llvm::StringRef where, Token *found = nullptr);
  /// Expects the bracket that closes `open`, with a note there.
  mlir::LogicalResult close(llvm::StringRef text, const Token &open);
  mlir::LogicalResult parseName(std::string &name, llvm::StringRef what);

  ExprPtr parseExpr();
  /// An expression without comparison and logic, as in the bounds of a range.
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
  /// The form behind the list that begins at token `begin`.
  ExprPtr makeIndexForm(ExprPtr list, size_t begin);
  /// Refuses an operand of `op` that ends in an index form of two readings.
  mlir::LogicalResult checkReach(const Token &op, unsigned precedence, bool isPrefix);
  void noteForm(const Expr &form, size_t begin, size_t body);
  mlir::LogicalResult refuseSlice(const Token &colon);
  mlir::LogicalResult parseSubscripts(Expr &index);
  mlir::LogicalResult parseRanks(Expr &expr);
  mlir::LogicalResult refuseProduct(const Token &at);
  mlir::LogicalResult checkComparison(const Expr &left, const Token &op);
  void setText(Expr &expr, const Token &first) const;
  /// Computes the depth; null with an error when it is beyond the limit.
  ExprPtr finish(ExprPtr expr);
  bool startsExpr(const Token &token) const;

  llvm::ArrayRef<Token> tokens;
  const Reporter &reporter;
  size_t pos = 0;
  unsigned nesting = 0;
  /// The loosest operator of what parseBinary has read last, if it is not in parentheses.
  const Token *topOperator = nullptr;
  /// The last index form whose body is an operation that is not in parentheses: tokens of
  /// the form and of its body, the operator, and whether what is behind that has an index
  /// of the form, so that it can only belong to the body.
  struct {
    size_t begin = 0, body = 0, end = 0;
    const Token *operation = nullptr;
    bool hasIndex = false;
  } openForm;
};

} // namespace moa::frontend

#endif // MOA_FRONTEND_EXPRPARSER_H
