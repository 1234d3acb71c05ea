//===- SourceLine.h - a line of a text with a caret under it ----*- C++ -*-===//
#ifndef MOA_SUPPORT_SOURCELINE_H
#define MOA_SUPPORT_SOURCELINE_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace moa {

/// Line `line` of the text (from 1) and below it a caret at byte `column` (from
/// 1), each indented by two blanks and ended by a newline; nothing if the text
/// has no such line. Long lines are cut to the surroundings of the caret, and
/// bytes that do not print become `?`.
std::string renderSourceLine(llvm::StringRef text, unsigned line, unsigned column);

} // namespace moa

#endif // MOA_SUPPORT_SOURCELINE_H
