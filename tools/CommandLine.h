//===- CommandLine.h - the words of a command line, checked -----*- C++ -*-===//
#ifndef MOA_TOOLS_COMMANDLINE_H
#define MOA_TOOLS_COMMANDLINE_H

#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>

namespace moa {

/// What is wrong with the flags among the words of a command line, before they are
/// parsed: a flag that there is not, with the nearest one that there is; one without its
/// value, with a value that it does not take, or given twice.
std::optional<std::string> findWrongFlag(int argc, char **argv);

/// findWrongFlag, written to standard error in the name of the tool.
bool refuseWrongFlag(int argc, char **argv, llvm::StringRef tool);

} // namespace moa

#endif // MOA_TOOLS_COMMANDLINE_H
