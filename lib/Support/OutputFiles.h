//===- OutputFiles.h - files that appear all or not at all ------*- C++ -*-===//
#ifndef MOA_SUPPORT_OUTPUTFILES_H
#define MOA_SUPPORT_OUTPUTFILES_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include <string>
#include <vector>

namespace moa {

/// Collects the outputs of a tool. No two go to one file, and none to a file
/// that the tool reads. Every file is written under a temporary name
/// beside its own; `commit` renames them. What is not committed is removed. A
/// link is followed; what exists and is no regular file (a device, a pipe) is
/// written by `commit`, and so is "-", standard output.
class OutputFiles {
public:
  OutputFiles() = default;
  OutputFiles(const OutputFiles &) = delete;
  ~OutputFiles();

  /// Names a file the tool reads; "-" and what does not exist are ignored.
  void protect(llvm::StringRef path) { inputs.push_back(path.str()); }
  llvm::Error add(llvm::StringRef path, llvm::StringRef contents);
  llvm::Error commit();

private:
  struct Entry {
    std::string name, path; // as given, and with links followed
    llvm::sys::fs::TempFile file;
  };
  std::vector<Entry> entries;
  std::vector<std::string> inputs;
  /// Paths that are written in place, and their contents; "-" among them.
  std::vector<std::pair<std::string, std::string>> streams;
};

} // namespace moa

#endif // MOA_SUPPORT_OUTPUTFILES_H
