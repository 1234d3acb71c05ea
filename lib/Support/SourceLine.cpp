//===- SourceLine.cpp - a line of a text with a caret under it ------------===//
#include "lib/Support/SourceLine.h"
#include "llvm/Support/ConvertUTF.h"
#include <algorithm>

using namespace llvm;

/// Bytes shown before and after the caret.
static constexpr size_t maxBefore = 100, maxAfter = 100;

/// Returns the bytes of the first character of the text; 0 if it is not printable.
static unsigned getPrintableLength(StringRef text) {
  unsigned char c = text.front();
  if (c < 0x80)
    return c >= 0x20 && c != 0x7F;
  unsigned length = getNumBytesForUTF8(c);
  const auto *begin = reinterpret_cast<const UTF8 *>(text.begin());
  return length <= text.size() && isLegalUTF8Sequence(begin, begin + length) ? length : 0;
}

std::string moa::renderSourceLine(StringRef text, unsigned line, unsigned column) {
  for (unsigned k = 1; k < line; ++k) {
    size_t end = text.find('\n');
    if (end == StringRef::npos)
      return "";
    text = text.drop_front(end + 1);
  }
  text = text.take_until([](char c) { return c == '\n'; }).rtrim('\r');
  size_t caret = std::min<size_t>(column ? column - 1 : 0, text.size());
  auto continues = [&](size_t k) { return k < text.size() && (text[k] & 0xC0) == 0x80; };
  size_t begin = caret > maxBefore ? caret - maxBefore : 0;
  size_t end = std::min(text.size(), caret + maxAfter);
  while (begin > 0 && continues(begin))
    --begin;
  while (continues(end))
    ++end;
  std::string shown = begin > 0 ? "  ..." : "  ";
  std::string indent(shown.size(), ' ');
  for (size_t k = begin; k < end;) {
    unsigned length = getPrintableLength(text.slice(k, end));
    if (length == 0)
      shown += text[k] == '\t' ? ' ' : '?';
    else
      shown += text.substr(k, length);
    if (k < caret)
      indent += ' ';
    k += std::max(1u, length);
  }
  return shown + (end < text.size() ? "...\n" : "\n") + indent + "^\n";
}
