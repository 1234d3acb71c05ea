//===- SourceLine.h - a line of a text with a caret under it ----*- C++ -*-===//
#ifndef MOA_SUPPORT_SOURCELINE_H
#define MOA_SUPPORT_SOURCELINE_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace moa {

/// Returns line `line` of the text (from 1), and below it a caret at byte `column` (from 1). Both
/// are indented by two blanks and end in a newline. Returns an empty string if the text has no such
/// line. Long lines are cut around the caret, and unprintable bytes become `?`.
std::string renderSourceLine(llvm::StringRef text, unsigned line, unsigned column);

} // namespace moa

#endif // MOA_SUPPORT_SOURCELINE_H
