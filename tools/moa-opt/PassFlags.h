//===- PassFlags.h - checks of passes and their options ---------*- C++ -*-===//
#ifndef MOA_TOOLS_MOA_OPT_PASSFLAGS_H
#define MOA_TOOLS_MOA_OPT_PASSFLAGS_H

#include <optional>
#include <string>

namespace moa {

/// Returns the first error in a pass or a pass option given as --PASS=OPTIONS or in
/// --pass-pipeline, with the valid options and the nearest name.
std::optional<std::string> findWrongPass(int argc, char **argv);

} // namespace moa

#endif // MOA_TOOLS_MOA_OPT_PASSFLAGS_H
