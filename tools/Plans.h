//===- Plans.h - decisions that a tool is given -----------------*- C++ -*-===//
#ifndef MOA_TOOLS_PLANS_H
#define MOA_TOOLS_PLANS_H

#include "moa/Compiler.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

namespace moa {

/// Takes the decisions from a file. To the library an empty text is that there are none; an
/// empty file is a mistake.
inline llvm::Error readPlans(llvm::StringRef path, CompilerOptions &options) {
  auto text = llvm::MemoryBuffer::getFile(path);
  if (!text)
    return llvm::createStringError(path + ": " + text.getError().message());
  if ((*text)->getBuffer().trim().empty())
    return llvm::createStringError(path + ": the file is empty; moa-run --calibrate writes plans");
  options.plans = (*text)->getBuffer().str();
  options.plansFile = path.str();
  return llvm::Error::success();
}

} // namespace moa

#endif // MOA_TOOLS_PLANS_H
