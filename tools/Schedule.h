//===- Schedule.h - reading a schedule --------------------------*- C++ -*-===//
#ifndef MOA_TOOLS_SCHEDULE_H
#define MOA_TOOLS_SCHEDULE_H

#include "moa/Compiler.h"
#include "tools/TextFile.h"

namespace moa {

/// Reads the schedule from a file.
inline llvm::Error readSchedule(llvm::StringRef path, CompilerOptions &options) {
  auto text = readText(path, "--schedule=print of moa-codegen writes a schedule");
  if (!text)
    return text.takeError();
  options.schedule = std::move(*text);
  options.scheduleFile = path.str();
  return llvm::Error::success();
}

} // namespace moa

#endif // MOA_TOOLS_SCHEDULE_H
