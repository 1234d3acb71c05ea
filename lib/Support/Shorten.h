//===- Shorten.h - long texts in messages -----------------------*- C++ -*-===//
#ifndef MOA_SUPPORT_SHORTEN_H
#define MOA_SUPPORT_SHORTEN_H

#include "llvm/ADT/Twine.h"
#include <string>

namespace moa {

/// Shortens a UTF-8 text to about `limit` bytes: it keeps the beginning and, with a quarter of the
/// length, the end. Names in a level's text may contain any bytes.
inline std::string shorten(llvm::StringRef text, size_t limit = 160) {
  if (text.size() <= limit)
    return text.str();
  auto isInside = [&](size_t at) { return (text[at] & 0xC0) == 0x80; };
  size_t head = limit - limit / 4, tail = text.size() - limit / 4;
  while (head > 0 && isInside(head))
    --head;
  while (tail < text.size() && isInside(tail))
    ++tail;
  return (text.take_front(head) + " … " + text.drop_front(tail)).str();
}

} // namespace moa

#endif // MOA_SUPPORT_SHORTEN_H
