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
  mlir::InFlightDiagnostic error(const Token &token) const {
    return reporter.error(token.loc);
  }
  /// "'x'", "the number 3", "the end of the file".
  static std::string describe(const Token &token);
  mlir::LogicalResult expect(llvm::StringRef text, llvm::StringRef where,
                             Token *found = nullptr);
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
  ExprPtr parseBracket();
  ExprPtr makeIndexForm(ExprPtr list);
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
};

} // namespace moa::frontend

#endif // MOA_FRONTEND_EXPRPARSER_H
