//===- Assemble.cpp - machine code by ptxas -------------------------------===//
#include "lib/Target/PTX/PTX.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace moa::ptx {

static Expected<std::string> makeFile(StringRef suffix, StringRef text) {
  SmallString<128> path;
  int descriptor = 0;
  if (std::error_code code = sys::fs::createTemporaryFile("moa", suffix, descriptor, path))
    return createStringError("cannot make a temporary file: " + code.message());
  raw_fd_ostream stream(descriptor, /*shouldClose=*/true);
  stream << text;
  stream.close();
  if (stream.has_error())
    return createStringError("cannot write " + path.str().str() + ": " + stream.error().message());
  return path.str().str();
}

Expected<std::vector<char>> assemble(StringRef ptx) {
  auto program = findInToolkit("bin/ptxas");
  if (!program)
    return createStringError("machine code needs ptxas, which is not in $CUDA_HOME or $CUDA_PATH (if neither is set: "
                             "PATH, /usr/local/cuda); install the CUDA toolkit, set CUDA_HOME to its root, or use "
                             "--target=ptx");
  std::vector<std::string> paths;
  scope_exit clean([&] {
    for (const std::string &path : paths)
      sys::fs::remove(path);
  });
  for (auto [suffix, text] : {std::pair("ptx", ptx), {"cubin", ""}, {"log", ""}}) {
    auto path = makeFile(suffix, text);
    if (!path)
      return path.takeError();
    paths.push_back(*path);
  }
  std::vector<StringRef> words = {*program, "-arch=sm_90a", paths[0], "-o", paths[1]};
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(paths[2]), StringRef(paths[2])};
  std::string error;
  int code = sys::ExecuteAndWait(*program, words, std::nullopt, redirects, 0, 0, &error);
  auto log = MemoryBuffer::getFile(paths[2]);
  if (code != 0)
    return createStringError(*program +
                             " failed: " + (error.empty() && log ? (*log)->getBuffer().trim().str() : error));
  auto bytes = MemoryBuffer::getFile(paths[1]);
  if (!bytes)
    return createStringError("cannot read " + paths[1] + ": " + bytes.getError().message());
  return std::vector<char>((*bytes)->getBufferStart(), (*bytes)->getBufferEnd());
}

} // namespace moa::ptx
