//===- Shorten.h - long texts in messages -----------------------*- C++ -*-===//
#ifndef MOA_SUPPORT_SHORTEN_H
#define MOA_SUPPORT_SHORTEN_H

#include "llvm/ADT/Twine.h"
#include <string>

namespace moa {

/// A UTF-8 text of at most about `limit` bytes: of a longer one the beginning and, for a
/// quarter of the length, the end. Names of a level's text may hold any bytes.
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
