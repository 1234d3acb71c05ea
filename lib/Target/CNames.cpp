//===- CNames.cpp - reserved words of C and C++ -----------------*- C++ -*-===//

#include "lib/Target/CNames.h"
#include "llvm/ADT/StringSet.h"

namespace moa {

bool isReservedWord(llvm::StringRef name) {
  static const llvm::StringSet<> words = {
      "alignas",  "alignof",  "and",     "and_eq",   "asm",       "auto",      "bitand",   "bitor",    "bool",
      "break",    "case",     "catch",   "char",     "class",     "compl",     "concept",  "const",    "constexpr",
      "continue", "decltype", "default", "delete",   "do",        "double",    "else",     "enum",     "explicit",
      "export",   "extern",   "false",   "float",    "for",       "friend",    "goto",     "if",       "inline",
      "int",      "long",     "main",    "mutable",  "namespace", "new",       "noexcept", "not",      "not_eq",
      "nullptr",  "operator", "or",      "or_eq",    "private",   "protected", "public",   "register", "requires",
      "restrict", "return",   "short",   "signed",   "sizeof",    "static",    "struct",   "switch",   "template",
      "this",     "throw",    "true",    "try",      "typedef",   "typeid",    "typename", "union",    "unsigned",
      "using",    "virtual",  "void",    "volatile", "wchar_t",   "while",     "xor",      "xor_eq",   "NULL"};
  return words.contains(name);
}

} // namespace moa
