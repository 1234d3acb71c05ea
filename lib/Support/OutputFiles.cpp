//===- OutputFiles.cpp - atomic output of several files -------------------===//

#include "lib/Support/OutputFiles.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Path.h"
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

static Error write(raw_fd_ostream &stream, StringRef path, StringRef contents) {
  stream << contents;
  stream.flush();
  if (!stream.has_error())
    return Error::success();
  std::string reason = stream.error().message();
  stream.clear_error();
  return fail(path, reason);
}

/// Returns true if two paths name the same file, which may not exist yet.
static bool isSameFile(StringRef a, StringRef b) {
  bool same = false;
  if (!sys::fs::equivalent(a, b, same))
    return same;
  // The directory exists; otherwise nothing can be written there.
  auto resolve = [](StringRef path) {
    StringRef directory = sys::path::parent_path(path);
    SmallString<128> place;
    if (sys::fs::real_path(directory.empty() ? "." : directory, place))
      place = directory;
    sys::path::append(place, sys::path::filename(path));
    return place;
  };
  return resolve(a) == resolve(b);
}

Error OutputFiles::add(StringRef path, StringRef contents) {
  sys::fs::file_status status;
  bool exists = path != "-" && !sys::fs::status(path, status);
  if (path == "-" || (exists && !sys::fs::is_directory(status) && !sys::fs::is_regular_file(status))) {
    streams.push_back({path.str(), contents.str()});
    return Error::success();
  }
  if (exists && sys::fs::is_directory(status))
    return fail(path, "this is a directory");
  for (const std::string &input : inputs)
    if (input != "-" && isSameFile(input, path))
      return fail(path, "this file is an input");
  for (const Entry &entry : entries)
    if (isSameFile(entry.name, path))
      return fail(path, "two outputs go to this file");
  SmallString<128> place(path);
  if (exists && sys::fs::is_symlink_file(path))
    if (std::error_code error = sys::fs::real_path(path, place))
      return fail(path, error.message());
  auto file = sys::fs::TempFile::create(place + ".temp-%%%%%%%%");
  if (!file)
    return fail(path, toString(file.takeError()));
  {
    raw_fd_ostream stream(file->FD, /*shouldClose=*/false);
    if (Error error = write(stream, path, contents)) {
      consumeError(file->discard());
      return error;
    }
  }
  entries.push_back({path.str(), place.str().str(), std::move(*file)});
  return Error::success();
}

/// Writes to an existing path that cannot be replaced.
static Error writeInPlace(StringRef path, StringRef contents) {
  std::error_code error;
  raw_fd_ostream stream(path, error, sys::fs::CD_CreateAlways);
  if (error)
    return fail(path, error.message());
  return write(stream, path == "-" ? "standard output" : path, contents);
}

Error OutputFiles::commit() {
  for (Entry &entry : entries)
    if (Error error = entry.file.keep(entry.path))
      return fail(entry.path, toString(std::move(error)));
  entries.clear();
  outs().flush();
  for (const auto &[path, contents] : streams)
    if (Error error = writeInPlace(path, contents))
      return error;
  streams.clear();
  return Error::success();
}

} // namespace moa
