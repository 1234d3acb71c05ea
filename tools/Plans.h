//===- Plans.h - what a tool is told of spent accuracy ----------*- C++ -*-===//
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

/// From how many rows and keys on few keys may stand for many; an empty text is where it pays on a GPU.
inline llvm::Error readLowRank(llvm::StringRef text, CompilerOptions &options) {
  options.lowRankFrom = CompilerOptions::kLowRankFrom;
  if (!text.empty() && (text.getAsInteger(10, options.lowRankFrom) || options.lowRankFrom < 256))
    return llvm::createStringError("--low-rank expects a number of keys from 256 on, but got '" + text + "'");
  return llvm::Error::success();
}

} // namespace moa

#endif // MOA_TOOLS_PLANS_H
