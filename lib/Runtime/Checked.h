//===- Checked.h - integers, messages and arrays of a call ------*- C++ -*-===//
//
// The arithmetic and the refusals are the text of emitted launchers.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_RUNTIME_CHECKED_H
#define MOA_RUNTIME_CHECKED_H

#include "moa-c/runtime.h"
#include <cstdarg>
#include <cstdio>
#include <cstring>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wextra" // the text is C: enumerators are integers there
namespace moa::runtime {
#define MOA_PART_CHECKS
#include "lib/Target/Host/Launcher.c"
#undef MOA_PART_CHECKS

using Message = moa_message;
using Checked = moa_checked;
using Array = moa_array;

inline void clear(Message m) {
  if (m.text && m.size)
    m.text[0] = 0;
}

} // namespace moa::runtime
#pragma GCC diagnostic pop

#endif // MOA_RUNTIME_CHECKED_H
