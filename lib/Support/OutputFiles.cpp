//===- OutputFiles.cpp - files that appear all or not at all --------------===//

#include "lib/Support/OutputFiles.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace moa {

OutputFiles::~OutputFiles() {
  for (Entry &entry : entries)
    consumeError(entry.file.discard());
}

static Error fail(StringRef path, const Twine &reason) {
  return createStringError("cannot write " + path + ": " + reason);
}

Error OutputFiles::add(StringRef path, StringRef contents) {
  if (path == "-") {
    standardOutput += contents;
    return Error::success();
  }
  if (sys::fs::is_directory(path))
    return fail(path, "this is a directory");
  auto file = sys::fs::TempFile::create(path + ".temp-%%%%%%%%");
  if (!file)
    return fail(path, toString(file.takeError()));
  {
    raw_fd_ostream stream(file->FD, /*shouldClose=*/false);
    stream << contents;
    stream.flush();
    if (stream.has_error()) {
      std::string reason = stream.error().message();
      stream.clear_error();
      consumeError(file->discard());
      return fail(path, reason);
    }
  }
  entries.push_back({path.str(), std::move(*file)});
  return Error::success();
}

Error OutputFiles::commit() {
  for (Entry &entry : entries)
    if (Error error = entry.file.keep(entry.path))
      return fail(entry.path, toString(std::move(error)));
  entries.clear();
  if (!standardOutput.empty())
    outs() << standardOutput;
  outs().flush();
  if (outs().has_error()) {
    outs().clear_error();
    return fail("standard output", "the stream is closed");
  }
  standardOutput.clear();
  return Error::success();
}

} // namespace moa
