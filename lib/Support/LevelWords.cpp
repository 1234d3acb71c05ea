//===- LevelWords.cpp - messages in the words of the levels ---------------===//
#include "lib/Support/LevelWords.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Regex.h"

using namespace llvm;

namespace moa {

namespace {
/// A pattern for a whole message, and its replacement.
struct Wording {
  const char *pattern, *words;
};
} // namespace

static constexpr char kNoOperation[] = "there is no operation '";

// Messages of the parser.
static const Wording kOfText[] = {
    {"custom op '([^']*)' is unknown.*", "there is no operation '\\1'"},
    {"Dialect `[^']*' not found for custom op '([^']*)'.*", "there is no operation '\\1'"},
    {"unregistered operation '([^']*)' found in dialect.*", "there is no operation '\\1'"},
    {"operation being parsed with an unregistered dialect.*", "there is no operation of this name"},
    {"unknown +type `([^`]*)` in dialect `([^`]*)`", "there is no type '!\\2.\\1'"},
    {"unknown +attribute `([^`]*)` in dialect `([^`]*)`", "there is no attribute '#\\2.\\1'"},
    {"(.* )?(attribute|type) created with unregistered dialect.*", "this \\2 is of no level that is known"},
    {"expected operation name in quotes", "expects an operation, as in '%x = moa.iota \"N\"'"},
    {"use of undeclared SSA value name",
     "this value is not defined; a value is the result of an operation or an argument of a block"},
    {"use of value '([^']*)' expects different type than prior uses: '(.*)' vs '(.*)'",
     "the value '\\1' has the type \\2 here, but \\3 elsewhere"},
    {"prior use here", "it is defined or used with the other type here"},
    {"definition of SSA value '([^'#]*)(#[0-9]*)?' has type (.*)",
     "the value '\\1' is defined with the type \\3, but is used with another one"},
    {"previously used here with type (.*)", "it is used here with the type \\1"},
    {"redefinition of SSA value '(.*)'", "the value '\\1' is defined twice"},
    {"redefinition of (block|attribute alias id|type alias id) '(.*)'", "'\\2' is defined twice"},
    {"redefinition of symbol named '(.*)'", "the name '\\1' is given twice"},
    {"see existing symbol definition here", "it is given here first"},
    {"previously (defined|referenced) here", "it is \\1 here before"},
    {"reference to an undefined block", "this block is not defined"},
    {"reference to invalid result number", "the operation has no result of this number"},
    {"operation defines ([0-9]+) results? but was provided ([0-9]+) to bind",
     "results of the operation: \\1; names for them: \\2"},
    {"cannot name an operation with no results", "the operation has no result that could have a name"},
    {"expected (SSA operand|ssa identifier|valid ssa identifier)|invalid SSA name", "expects a value, as in '%x'"},
    {"expected operand", "expects a value, as in '%x'"},
    {"unexpected ssa identifier", "expects no value here"},
    {"expected block name|invalid block name", "expects a block, as in '^bb0'"},
    {"unbalanced '(.)' character in pretty dialect name", "the bracket '\\1' of this type or attribute has no partner"},
    {"unexpected nul or EOF in pretty dialect name", "the text ends inside of a type or an attribute"},
    {"attribute '([^']*)' occurs more than once in the attribute list", "the attribute '\\1' is given twice"},
    {"undefined symbol alias id '(.*)'", "'\\1' is not defined"},
    {"expected non-function type", "expects a type, as in 'f32' or '!moa.array<\\[N\\], f32>'"},
    {"expected attribute value", "expects the value of an attribute"},
    {"expected (valid )?(attribute name|keyword)", "expects a word"},
    {"unexpected character", "this character has no meaning here"},
    {"empty block: expect at least a terminator",
     "the block is empty; its last operation is to be one that ends a block, as 'moa.return'"},
    {"block with no terminator.*", "the block does not end in an operation that ends a block, as 'moa.return'"},
    {"operand #([0-9]+) does not dominate this use", "operand \\1 is a value that is not defined before this use"},
    {"operand defined (here|as a block argument).*", "the value is defined here"},
    {"failed to parse [A-Za-z_]+ parameter '([^']*)' which is to be .*", "the parameter '\\1' cannot be read here"},
    {"expected [A-Za-z:]*::[A-Za-z:]* to be one of: (.*)", "expects one of: \\1"},
    {"expected string or keyword containing one of the following enum values for attribute "
     "'([^']*)' \\[(.*)\\]",
     "expects the attribute '\\1' to be one of: \\2"},
    {"number of operands and types do not match: got ([0-9]+) operands and ([0-9]+) types",
     "operands: \\1; types for them: \\2"},
    {"invalid kind of attribute specified", "expects another kind of attribute here"},
    {"expected valid '@'-identifier for symbol name", "expects a name, as in '@max'"},
    {"expected valid keyword or string", "expects a word or a text in quotes"},
    {"expected integer (value|literal)", "expects an integer"},
    {"expected '}' in attribute dictionary", "expects ',' or '}' in the attributes"},
    {"expected ':' and type for SSA operand", "expects ':' and the type of the value"},
};

// Messages of checks, without the operation's name.
static const Wording kOfOperation[] = {
    {"attribute '([^']*)' failed to satisfy constraint: (.*)", "expects the attribute '\\1' to be: \\2"},
    {"(operand|result) #([0-9]+) must be (.*), but got '(.*)'", "expects \\1 \\2 to be \\3, but got \\4"},
    {"requires attribute '(.*)'", "expects the attribute '\\1', which is missing"},
    {"expected ([0-9]+) (or more )?(operand|result)s?,? but found ([0-9]+)", "expects \\1 \\2\\3s, but got \\4"},
    {"requires (a single|one) (operand|result)", "expects one \\2"},
    {"requires zero (operand|result)s", "expects no \\1s"},
    {"requires (a single|one) region", "expects one body"},
    {"requires zero regions", "expects no body"},
    {"expects parent op (to be )?(one of )?'(.*)'", "may stand directly in '\\3' only"},
    {"operand #([0-9]+) does not dominate this use", "has a value as operand \\1 that is not defined before it"},
    {"must be the last operation in the parent block", "is to be the last operation of its block"},
    {"region #([0-9]+)( \\('.*'\\))? failed to verify constraint: region with ([0-9]+) blocks?",
     "expects its body\\2 to have blocks: \\3"},
    {"failed to verify that (.*)", "expects that \\1"},
    {"inferred type\\(s\\) (.*) are incompatible with return type\\(s\\) of operation (.*)",
     "has results of the types \\1, but \\2 are written"},
};

/// Returns the replacement of the first matching pattern, or nothing.
static std::optional<std::string> translate(StringRef message, ArrayRef<Wording> wordings) {
  for (const Wording &wording : wordings) {
    Regex pattern((Twine("^(") + wording.pattern + ")$").str());
    SmallVector<StringRef> groups;
    if (!pattern.match(message, &groups))
      continue;
    std::string result;
    for (const char *c = wording.words; *c; ++c) {
      if (*c != '\\') {
        result += *c;
        continue;
      }
      ++c;
      // Group 1 is the whole pattern.
      unsigned group = isDigit(*c) ? *c - '0' + 1 : 0;
      result += group ? (group < groups.size() ? groups[group].str() : "") : std::string(1, *c);
    }
    return result;
  }
  return std::nullopt;
}

static StringRef translateWord(StringRef word) {
  return StringSwitch<StringRef>(word)
      .Case("op", "operation")
      .Case("ops", "operations")
      .Case("attr", "attribute")
      .Case("attrs", "attributes")
      .Case("ssa", "value")
      .Case("SSA", "value")
      .Case("dialect", "level")
      .Case("dialects", "levels")
      .Case("Dialect", "level")
      .Case("region", "body")
      .Case("regions", "bodies")
      .Case("successor", "next block")
      .Case("successors", "next blocks")
      .Case("terminator", "last operation")
      .Case("bare", "plain")
      .Case("keyword", "word")
      .Case("EOF", "end of the text")
      .Case("MLIR", "text")
      .Default(word);
}

/// Translates single words outside of quotes.
static std::string translateWords(StringRef message) {
  std::string result;
  char quote = 0;
  for (size_t k = 0; k < message.size();) {
    char c = message[k];
    if (quote || !isAlpha(c)) {
      bool opens = !quote && (c == '\'' || c == '`' || c == '"');
      quote = opens ? c : c == quote ? 0 : quote;
      result += c;
      ++k;
      continue;
    }
    StringRef word = message.drop_front(k).take_while([](char c) { return isAlnum(c) || c == '_'; });
    StringRef translation = translateWord(word);
    // Translates "SSA value" to one word.
    bool repeats = translation != word && message.drop_front(k + word.size()).starts_with((" " + translation).str());
    if (repeats)
      ++k;
    else
      result += translation;
    k += word.size();
  }
  return result;
}

static std::string translateAny(StringRef message, ArrayRef<Wording> wordings) {
  if (std::optional<std::string> words = translate(message, wordings))
    return *words;
  std::string words = translateWords(message);
  if (StringRef rest = words; rest.consume_front("expected "))
    return ("expects " + rest).str();
  return words;
}

/// Removes `before`NAME`after` from the front and returns NAME.
static std::optional<StringRef> takeName(StringRef &message, StringRef before, StringRef after) {
  StringRef rest = message;
  if (!rest.consume_front(before))
    return std::nullopt;
  size_t end = rest.find('\'');
  if (end == StringRef::npos || !rest.drop_front(end).starts_with(after))
    return std::nullopt;
  message = rest.drop_front(end + after.size());
  return rest.take_front(end);
}

std::string rewordCheck(StringRef message) {
  StringRef rest = message;
  if (std::optional<StringRef> name = takeName(rest, "'", "' op "))
    return "'" + name->str() + "' " + translateAny(rest, kOfOperation);
  return message.str();
}

std::string rewordMessage(StringRef message) {
  StringRef rest = message;
  if (std::optional<std::string> words = translate(message, kOfText))
    return *words;
  if (std::optional<StringRef> name = takeName(rest, "custom op '", "' "))
    return rest.starts_with(("'" + *name + "' op ").str()) ? rewordCheck(rest)
                                                           : "'" + name->str() + "' " + translateAny(rest, kOfText);
  if (takeName(rest, "'", "' op "))
    return rewordCheck(message);
  return translateAny(message, kOfText);
}

bool isUnknownOperation(StringRef message) { return message.starts_with(kNoOperation); }

StringRef getNamedOperation(StringRef message) {
  if (!message.consume_front(kNoOperation) && !message.consume_front("'"))
    return "";
  return message.take_front(message.find('\''));
}

} // namespace moa
