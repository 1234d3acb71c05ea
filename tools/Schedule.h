//===- Schedule.h - reading a schedule --------------------------*- C++ -*-===//
#ifndef MOA_TOOLS_SCHEDULE_H
#define MOA_TOOLS_SCHEDULE_H

#include "moa/Compiler.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

namespace moa {

/// Reads the schedule from a file. The library takes an empty text for the cost model's schedule,
/// so an empty file is an error here.
inline llvm::Error readSchedule(llvm::StringRef path, CompilerOptions &options) {
  auto text = llvm::MemoryBuffer::getFile(path);
  if (!text)
    return llvm::createStringError(path + ": " + text.getError().message());
  if ((*text)->getBuffer().trim().empty())
    return llvm::createStringError(path + ": the file is empty; "
                                          "--schedule=print of moa-codegen "
                                          "writes a schedule");
  options.schedule = (*text)->getBuffer().str();
  options.scheduleFile = path.str();
  return llvm::Error::success();
}

} // namespace moa

#endif // MOA_TOOLS_SCHEDULE_H
