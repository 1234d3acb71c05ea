//===- OutputFiles.h - atomic output of several files -----------*- C++ -*-===//
#ifndef MOA_SUPPORT_OUTPUTFILES_H
#define MOA_SUPPORT_OUTPUTFILES_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include <string>
#include <vector>

namespace moa {

/// Collects the outputs of a tool, so that all files appear or none. No two outputs may have the
/// same file, and none may be a file that the tool reads. Files are written under a temporary name
/// in the same directory, and `commit` renames them; without `commit` they are removed. Links are
/// followed. An existing path that is no regular file (a device, a pipe), and "-" for standard
/// output, are written by `commit`.
class OutputFiles {
public:
  OutputFiles() = default;
  OutputFiles(const OutputFiles &) = delete;
  ~OutputFiles();

  /// Registers a file that the tool reads; "-" and missing files are ignored.
  void protect(llvm::StringRef path) { inputs.push_back(path.str()); }
  llvm::Error add(llvm::StringRef path, llvm::StringRef contents);
  llvm::Error commit();

private:
  struct Entry {
    std::string name, path; // as given, and with links resolved
    llvm::sys::fs::TempFile file;
  };
  std::vector<Entry> entries;
  std::vector<std::string> inputs;
  /// Paths that are written in place, including "-", and their contents.
  std::vector<std::pair<std::string, std::string>> streams;
};

} // namespace moa

#endif // MOA_SUPPORT_OUTPUTFILES_H
