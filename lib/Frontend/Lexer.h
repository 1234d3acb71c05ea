//===- Lexer.h - tokens of the specification language -----------*- C++ -*-===//
#ifndef MOA_FRONTEND_LEXER_H
#define MOA_FRONTEND_LEXER_H

#include "lib/Frontend/Reporter.h"

namespace moa::frontend {

struct Token {
  enum Kind { End, Identifier, Integer, Real, Punctuation, Reduction, InnerProduct };
  Kind kind = End;
  llvm::StringRef text;
  SourceLoc loc;
  int64_t integer = 0;
  double real = 0;
  Monoid monoid = Monoid::add; // Reduction, InnerProduct
  ScalarFn fn = ScalarFn::mul; // InnerProduct

  /// Returns true for a keyword or punctuation with this text.
  bool is(llvm::StringRef what) const { return (kind == Punctuation || kind == Identifier) && text == what; }
};

/// Returns the monoid that an operator or name denotes: + * max min and or.
std::optional<Monoid> getNamedMonoid(llvm::StringRef text);
/// Returns the binary scalar function of an operator or name, as in `+.*`.
std::optional<ScalarFn> getBinaryFn(llvm::StringRef text);
/// Returns true for words that cannot name a value, a function or a symbol.
bool isReservedWord(llvm::StringRef text);

/// Splits a text into tokens. The last one has kind End. Fails after an error.
mlir::FailureOr<std::vector<Token>> tokenize(llvm::StringRef text, unsigned file, const Reporter &reporter);

} // namespace moa::frontend

#endif // MOA_FRONTEND_LEXER_H
