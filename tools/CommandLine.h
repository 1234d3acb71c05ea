//===- CommandLine.h - checks of the command line ---------------*- C++ -*-===//
#ifndef MOA_TOOLS_COMMANDLINE_H
#define MOA_TOOLS_COMMANDLINE_H

#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>

namespace moa {

/// Returns the first error in the flags of a command line, before they are parsed. Errors are
/// unknown flags (with the nearest known one), missing or invalid values, and flags given twice.
std::optional<std::string> findWrongFlag(int argc, char **argv);

/// Prints the error of findWrongFlag to standard error, prefixed by the tool; returns false without
/// one.
bool refuseWrongFlag(int argc, char **argv, llvm::StringRef tool);

} // namespace moa

#endif // MOA_TOOLS_COMMANDLINE_H
