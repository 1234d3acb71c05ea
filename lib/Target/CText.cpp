//===- CText.cpp - text of C that all targets emit --------------*- C++ -*-===//

#include "lib/Target/CText.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"

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

std::string quote(llvm::StringRef text) {
  std::string result;
  llvm::raw_string_ostream os(result);
  os << '"';
  llvm::printEscapedString(text, os);
  os << '"';
  return result;
}

std::string declareParameter(const Parameter &parameter, llvm::StringRef name) {
  std::string type = parameter.isScalar() ? getScalarCType(parameter.type).str() + " " : "const DLTensor *";
  return type + name.str();
}

std::string printDeclaration(llvm::StringRef head, llvm::ArrayRef<std::string> parameters, llvm::StringRef end,
                             size_t columns) {
  std::string text, line = head.str() + "(";
  size_t indent = line.size();
  for (auto [k, parameter] : llvm::enumerate(parameters)) {
    std::string item = parameter + (k + 1 == parameters.size() ? ")" + end.str() : ",");
    if (line.size() + item.size() + 1 > columns && line.size() > indent) {
      text += line + "\n";
      line = std::string(indent, ' ');
    } else if (line.size() > indent) {
      line += " ";
    }
    line += item;
  }
  return text + line;
}

} // namespace moa
