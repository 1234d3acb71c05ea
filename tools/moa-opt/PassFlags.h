//===- PassFlags.h - passes and their options on the command line -*- C++ -*-===//
#ifndef MOA_TOOLS_MOA_OPT_PASSFLAGS_H
#define MOA_TOOLS_MOA_OPT_PASSFLAGS_H

#include <optional>
#include <string>

namespace moa {

/// What is wrong with a pass, or an option of one, that the command line names as
/// --PASS=OPTIONS or in --pass-pipeline; what the pass takes, and what was meant.
std::optional<std::string> findWrongPass(int argc, char **argv);

} // namespace moa

#endif // MOA_TOOLS_MOA_OPT_PASSFLAGS_H
