//===- Reporter.cpp - locations and errors of the front end ---------------===//
#include "lib/Frontend/Reporter.h"

using namespace mlir;
using namespace moa;
using namespace moa::frontend;

Reporter::Reporter(MLIRContext *context, StringRef userFile)
    : context(context), files{StringAttr::get(context, userFile), StringAttr::get(context, "prelude.moa")} {}

Location Reporter::exact(SourceLoc loc) const { return FileLineColLoc::get(files[loc.file], loc.line, loc.column); }

SourceLoc Reporter::userPosition(SourceLoc loc) const {
  for (auto call = calls.rbegin(); loc.file != SourceLoc::User && call != calls.rend(); ++call)
    loc = call->loc;
  return loc;
}

Location Reporter::location(SourceLoc loc) const { return exact(userPosition(loc)); }

std::optional<Location> Reporter::getCall() const {
  if (calls.empty() || calls.back().loc.file != SourceLoc::User)
    return std::nullopt;
  return exact(calls.back().loc);
}

InFlightDiagnostic Reporter::error(SourceLoc loc) const {
  SourceLoc shown = userPosition(loc);
  InFlightDiagnostic diagnostic = emitError(exact(shown));
  if (loc.file != shown.file)
    diagnostic.attachNote(exact(loc)) << "at this place of the prelude";
  constexpr unsigned maxNotes = 5;
  unsigned notes = 0;
  for (auto call = calls.rbegin(); call != calls.rend() && notes < maxNotes; ++call) {
    if (call->loc.file != SourceLoc::User)
      continue;
    diagnostic.attachNote(exact(call->loc)) << "in the call of '" << call->callee << "' here";
    ++notes;
  }
  return diagnostic;
}

InFlightDiagnostic Reporter::warning(SourceLoc loc) const { return emitWarning(location(loc)); }

std::optional<std::string> frontend::suggest(StringRef name, ArrayRef<std::string> candidates) {
  unsigned best = name.size() <= 2 ? 2 : 2 + name.size() / 4;
  size_t beginning = 0; // length of the common prefix, which breaks ties
  std::optional<std::string> result;
  for (const std::string &candidate : candidates) {
    if (candidate == name || (name.size() == 1 && candidate.size() == 1 && !name.equals_insensitive(candidate)))
      continue;
    unsigned distance = StringRef(candidate).equals_insensitive(name) ? 0 : name.edit_distance(candidate, true, best);
    auto end = std::mismatch(name.begin(), name.end(), candidate.begin(), candidate.end()).first;
    size_t common = end - name.begin();
    if (distance < best || (result && distance == best && common > beginning)) {
      best = distance;
      beginning = common;
      result = candidate;
    }
  }
  return result;
}

std::string frontend::didYouMean(StringRef name, ArrayRef<std::string> candidates) {
  auto candidate = suggest(name, candidates);
  return candidate ? "; did you mean '" + *candidate + "'?" : std::string();
}
