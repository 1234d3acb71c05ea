//===- Lexer.cpp - tokens of the specification language -------------------===//
#include "lib/Frontend/Lexer.h"
#include "lib/Support/Shorten.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/ConvertUTF.h"
#include <cmath>

using namespace mlir;
using namespace moa;
using namespace moa::frontend;

std::optional<Monoid> frontend::getNamedMonoid(StringRef text) {
  return llvm::StringSwitch<std::optional<Monoid>>(text)
      .Case("+", Monoid::add)
      .Case("*", Monoid::mul)
      .Case("max", Monoid::max)
      .Case("min", Monoid::min)
      .Case("and", Monoid::and_)
      .Case("or", Monoid::or_)
      .Default(std::nullopt);
}

std::optional<ScalarFn> frontend::getBinaryFn(StringRef text) {
  return llvm::StringSwitch<std::optional<ScalarFn>>(text)
      .Case("+", ScalarFn::add)
      .Case("-", ScalarFn::sub)
      .Case("*", ScalarFn::mul)
      .Case("/", ScalarFn::div)
      .Case("%", ScalarFn::mod)
      .Case("min", ScalarFn::min)
      .Case("max", ScalarFn::max)
      .Case("pow", ScalarFn::pow)
      .Case("==", ScalarFn::eq)
      .Case("!=", ScalarFn::ne)
      .Case("<", ScalarFn::lt)
      .Case("<=", ScalarFn::le)
      .Case(">", ScalarFn::gt)
      .Case(">=", ScalarFn::ge)
      .Cases({"and", "&"}, ScalarFn::and_)
      .Cases({"or", "|"}, ScalarFn::or_)
      .Case("^", ScalarFn::xor_)
      .Case("<<", ScalarFn::shl)
      .Case(">>", ScalarFn::shr)
      .Default(std::nullopt);
}

bool frontend::isReservedWord(StringRef text) {
  return llvm::StringSwitch<bool>(text)
      .Cases({"kernel", "def", "require", "return", "in", "and", "or", "not"}, true)
      .Cases({"true", "false", "inf", "max", "min", "within", "assume", "monoid"}, true)
      .Cases({"_", "float", "int", "bool", "index"}, true)
      .Cases({"f64", "f32", "bf16", "f16", "i8", "i16", "i32", "i64"}, true)
      .Cases({"u8", "u16", "u32"}, true)
      .Default(false);
}

namespace {
class Lexer {
public:
  Lexer(StringRef text, unsigned file, const Reporter &reporter) : text(text), reporter(reporter) { here.file = file; }
  FailureOr<std::vector<Token>> run();

private:
  char at(size_t k) const { return pos + k < text.size() ? text[pos + k] : '\0'; }
  void advance(size_t n);
  LogicalResult checkText();
  void skipBlanks();
  LogicalResult checkComment();
  LogicalResult lexOne();
  LogicalResult lexNumber();
  LogicalResult lexWord();
  LogicalResult lexPunctuation();
  bool lexMonoidToken(size_t length);
  void push(Token::Kind kind, size_t length);

  StringRef text;
  const Reporter &reporter;
  size_t pos = 0;
  SourceLoc here;
  std::vector<Token> tokens;
};
} // namespace

static bool isWordStart(char c) { return llvm::isAlpha(c) || c == '_'; }
static bool isWordPart(char c) { return llvm::isAlnum(c) || c == '_'; }

void Lexer::advance(size_t n) {
  for (; n > 0 && pos < text.size(); --n, ++pos) {
    if (text[pos] == '\n') {
      ++here.line;
      here.column = 1;
    } else {
      ++here.column;
    }
  }
}

void Lexer::push(Token::Kind kind, size_t length) {
  Token token;
  token.kind = kind;
  token.text = text.substr(pos, length);
  token.loc = here;
  tokens.push_back(token);
  advance(length);
}

/// Checks that the text is UTF-8 without NUL. Otherwise it is no specification file.
LogicalResult Lexer::checkText() {
  const auto *begin = reinterpret_cast<const llvm::UTF8 *>(text.begin());
  const auto *end = reinterpret_cast<const llvm::UTF8 *>(text.end());
  const llvm::UTF8 *bad = begin;
  bool legal = llvm::isLegalUTF8String(&bad, end);
  size_t nul = text.find('\0');
  if (legal && nul == StringRef::npos) {
    if (text.starts_with("\xEF\xBB\xBF"))
      pos = 3;
    return success();
  }
  size_t where = legal ? nul : std::min<size_t>(nul, bad - begin);
  advance(where);
  if (where == nul)
    return reporter.error(here) << "a NUL byte in the text; a specification is UTF-8 text";
  return reporter.error(here) << "the text is not valid UTF-8 here";
}

void Lexer::skipBlanks() {
  while (pos < text.size()) {
    if (StringRef(" \t\r\n\f\v").contains(text[pos]))
      advance(1);
    else if (at(0) == '/' && at(1) == '/')
      advance(text.substr(pos).take_until([](char c) { return c == '\n'; }).size());
    else
      return;
  }
}

LogicalResult Lexer::checkComment() {
  if (at(0) == '/' && at(1) == '*')
    return reporter.error(here) << "there is no '/*'; a comment starts with '//' and ends with the line";
  return success();
}

FailureOr<std::vector<Token>> Lexer::run() {
  if (failed(checkText()))
    return failure();
  for (skipBlanks(); pos < text.size(); skipBlanks())
    if (failed(checkComment()) || failed(lexOne()))
      return failure();
  push(Token::End, 0);
  return std::move(tokens);
}

LogicalResult Lexer::lexOne() {
  char c = at(0);
  if (llvm::isDigit(c) || (c == '.' && llvm::isDigit(at(1))))
    return lexNumber();
  if (isWordStart(c))
    return lexWord();
  return lexPunctuation();
}

LogicalResult Lexer::lexNumber() {
  StringRef rest = text.substr(pos);
  size_t n = 0;
  bool isReal = false, isHex = rest.starts_with_insensitive("0x");
  auto digits = [&] {
    while (n < rest.size() && llvm::isDigit(rest[n]))
      ++n;
  };
  if (isHex) {
    n = 2 + rest.drop_front(2).take_while(llvm::isHexDigit).size();
  } else {
    digits();
    // `0..N` is a range, not a number with two decimal points.
    if (at(n) == '.' && at(n + 1) != '.') {
      isReal = true;
      ++n;
      digits();
    }
    size_t sign = at(n + 1) == '+' || at(n + 1) == '-';
    if ((at(n) == 'e' || at(n) == 'E') && llvm::isDigit(at(n + 1 + sign))) {
      isReal = true;
      n += 1 + sign;
      digits();
    }
  }
  StringRef number = rest.take_front(n);
  if (isWordPart(at(n)) || (isHex && n == 2))
    return reporter.error(here) << "malformed number '" << rest.take_while(isWordPart)
                                << "'; a name cannot start with a digit";
  Token value;
  if (isReal) {
    if (number.getAsDouble(value.real) || std::isinf(value.real))
      return reporter.error(here) << "the number " << number << " is out of range; write 'inf' for infinity";
  } else {
    uint64_t integer = 0;
    if ((isHex ? number.drop_front(2) : number).getAsInteger(isHex ? 16 : 10, integer) ||
        integer > static_cast<uint64_t>(INT64_MAX))
      return reporter.error(here) << "the integer " << shorten(number, 40) << " does not fit in 64 bits";
    value.integer = static_cast<int64_t>(integer);
  }
  push(isReal ? Token::Real : Token::Integer, n);
  tokens.back().integer = value.integer;
  tokens.back().real = value.real;
  return success();
}

/// Lexes a reduction or an inner product as one token: a monoid of `length` characters, then a
/// slash, or a point and a scalar function. For example `+/`, `max/`, `+.*`, `max.+`.
bool Lexer::lexMonoidToken(size_t length) {
  auto monoid = getNamedMonoid(text.substr(pos, length));
  if (!monoid)
    return false;
  if (at(length) == '/' && at(length + 1) != '/') {
    push(Token::Reduction, length + 1);
    tokens.back().monoid = *monoid;
    return true;
  }
  if (at(length) != '.')
    return false;
  StringRef rest = text.substr(pos + length + 1);
  StringRef word = rest.take_while(isWordPart);
  if (word.empty())
    word = rest.take_front(1);
  auto fn = getBinaryFn(word);
  if (!fn || (*fn >= ScalarFn::eq && *fn <= ScalarFn::ge) || llvm::isDigit(word[0]))
    return false;
  push(Token::InnerProduct, length + 1 + word.size());
  tokens.back().monoid = *monoid;
  tokens.back().fn = *fn;
  return true;
}

LogicalResult Lexer::lexWord() {
  size_t n = text.substr(pos).take_while(isWordPart).size();
  if (!lexMonoidToken(n))
    push(Token::Identifier, n);
  return success();
}

/// Returns the language's spelling of a mathematical sign, or "".
static StringRef ownSpelling(StringRef sign) {
  return llvm::StringSwitch<StringRef>(sign)
      .Cases({"−", "–", "—"}, "-")
      .Cases({"×", "·", "⋅", "∗"}, "*")
      .Case("÷", "/")
      .Case("≤", "<=")
      .Case("≥", ">=")
      .Case("≠", "!=")
      .Cases({"∧", "⋀"}, "and")
      .Cases({"∨", "⋁"}, "or")
      .Case("¬", "not")
      .Cases({"→", "⟶"}, "->")
      .Case("∞", "inf")
      .Case("Σ", "+/")
      .Case("∑", "+/")
      .Case("²", "x * x")
      .Default("");
}

/// Returns the remedy for `x.T`, `x.sum()` and `x.shape` of other languages.
static std::string memberHint(StringRef rest) {
  StringRef name = rest.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
  if (name.empty() || llvm::isDigit(name[0]))
    return "an inner product is one token such as '+.*'";
  if (name == "T" || name == "mT")
    return "a transposition is 'transpose(x)'";
  if (name == "shape" || name == "size")
    return "use the symbol that the header declares for the extent";
  if (rest.drop_front(name.size()).starts_with("("))
    return "write a function before its arguments, as in '" + shorten(name, 40) + "(x)'";
  return "an inner product is one token such as '+.*', and values have no members";
}

LogicalResult Lexer::lexPunctuation() {
  if (lexMonoidToken(1))
    return success();
  static constexpr StringLiteral two[] = {"->", "..", "==", "!=", "<=", ">=", "<<", ">>"};
  for (StringRef symbol : two)
    if (text.substr(pos).starts_with(symbol)) {
      push(Token::Punctuation, 2);
      return success();
    }
  if (StringRef("()[]{},;:=+-*/%<>&|^~@").contains(at(0))) {
    push(Token::Punctuation, 1);
    return success();
  }
  size_t length = 1;
  while (pos + length < text.size() && (text[pos + length] & 0xC0) == 0x80)
    ++length;
  StringRef bad = text.substr(pos, length);
  auto error = reporter.error(here);
  if (bad == ".")
    return error << "unexpected '.'; " << memberHint(text.drop_front(pos + 1));
  if (bad == "?")
    return error << "unexpected '?'; a choice is 'select(p, x, y)'";
  if (bad == "#")
    return error << "unexpected '#'; a comment starts with '//'";
  if (bad == "'")
    return error << "unexpected " << bad
                 << "; there are no texts, and a transposition is "
                    "'transpose(x)'";
  if (bad == "\"")
    return error << "unexpected " << bad << "; there are no texts in the language";
  if (bad == "!")
    return error << "unexpected '!'; negation is 'not'";
  error << "unexpected character '" << (llvm::isPrint(bad[0]) || length > 1 ? bad : StringRef("?")) << "'";
  if (StringRef own = ownSpelling(bad); !own.empty())
    error << "; write '" << own << "'";
  return error;
}

FailureOr<std::vector<Token>> frontend::tokenize(StringRef text, unsigned file, const Reporter &reporter) {
  return Lexer(text, file, reporter).run();
}
