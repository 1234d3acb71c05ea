//===- TextFile.h - reading texts that must not be empty --------*- C++ -*-===//
#ifndef MOA_TOOLS_TEXTFILE_H
#define MOA_TOOLS_TEXTFILE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

namespace moa {

/// Reads a file. The library treats an empty text as missing, so an empty file is an error here, which
/// ends in `remedy`.
inline llvm::Expected<std::string> readText(llvm::StringRef path, llvm::StringRef remedy) {
  auto text = llvm::MemoryBuffer::getFile(path);
  if (!text)
    return llvm::createStringError(path + ": " + text.getError().message());
  if ((*text)->getBuffer().trim().empty())
    return llvm::createStringError(path + ": the file is empty; " + remedy);
  return (*text)->getBuffer().str();
}

} // namespace moa

#endif // MOA_TOOLS_TEXTFILE_H
