//===- Checked.h - integers and messages of a call --------------*- C++ -*-===//
//
// The same arithmetic and refusals as in emitted launchers (lib/Target/PTX/LauncherText.h).
//
//===----------------------------------------------------------------------===//
#ifndef MOA_RUNTIME_CHECKED_H
#define MOA_RUNTIME_CHECKED_H

#include "moa-c/runtime.h"

namespace moa::runtime {

/// The caller's buffer for the reason of a refusal; text may be null.
struct Message {
  char *text = nullptr;
  size_t size = 0;
  void clear() const {
    if (text && size)
      text[0] = 0;
  }
};

/// Writes the reason and returns the code.
__attribute__((format(printf, 3, 4))) int32_t refuse(Message m, int32_t code, const char *format, ...);

/// An integer that remembers overflow and division by zero.
struct Checked {
  int64_t value = 0;
  int32_t code = MOA_OK;
};

inline Checked make(bool overflow, int64_t value, Checked a, Checked b) {
  return {value, a.code ? a.code : b.code ? b.code : overflow ? int32_t(MOA_OVERFLOW) : int32_t(MOA_OK)};
}
inline Checked add(Checked a, Checked b) {
  int64_t r = 0;
  bool overflow = __builtin_add_overflow(a.value, b.value, &r);
  return make(overflow, r, a, b);
}
inline Checked subtract(Checked a, Checked b) {
  int64_t r = 0;
  bool overflow = __builtin_sub_overflow(a.value, b.value, &r);
  return make(overflow, r, a, b);
}
inline Checked multiply(Checked a, Checked b) {
  int64_t r = 0;
  bool overflow = __builtin_mul_overflow(a.value, b.value, &r);
  return make(overflow, r, a, b);
}
inline Checked floorDiv(Checked a, Checked b) {
  if (b.value == 0)
    return {0, a.code ? a.code : b.code ? b.code : int32_t(MOA_CONSTRAINT)};
  if (b.value == -1)
    return subtract(make(false, 0, b, b), a);
  int64_t q = a.value / b.value;
  return make(false, q - (q * b.value != a.value && (a.value < 0) != (b.value < 0)), a, b);
}
inline Checked floorMod(Checked a, Checked b) {
  if (b.value == -1)
    return make(false, 0, a, b);
  return subtract(a, multiply(floorDiv(a, b), b));
}

int32_t refuseValue(Message m, Checked v, const char *text);

} // namespace moa::runtime

#endif // MOA_RUNTIME_CHECKED_H
