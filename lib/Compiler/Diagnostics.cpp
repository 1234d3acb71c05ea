//===- Diagnostics.cpp - messages, collected and rendered -----------------===//

#include "lib/Compiler/Diagnostics.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace moa {

void DiagnosticLog::addSource(StringRef file, StringRef text) { sources[file.str()] = text.str(); }

/// Collects the files that a location names, the user's first: a call comes before the place inside
/// the inlined function.
static void collectPlaces(mlir::Location location, SmallVectorImpl<mlir::FileLineColLoc> &places) {
  if (auto place = dyn_cast<mlir::FileLineColLoc>(location))
    return places.push_back(place);
  if (auto name = dyn_cast<mlir::NameLoc>(location))
    return collectPlaces(name.getChildLoc(), places);
  if (auto call = dyn_cast<mlir::CallSiteLoc>(location)) {
    collectPlaces(call.getCaller(), places);
    return collectPlaces(call.getCallee(), places);
  }
  if (auto fused = dyn_cast<mlir::FusedLoc>(location))
    if (!fused.getLocations().empty())
      collectPlaces(fused.getLocations().front(), places);
}

static Severity getSeverity(mlir::DiagnosticSeverity severity) {
  switch (severity) {
  case mlir::DiagnosticSeverity::Error:
    return Severity::Error;
  case mlir::DiagnosticSeverity::Warning:
    return Severity::Warning;
  case mlir::DiagnosticSeverity::Remark:
    return Severity::Remark;
  case mlir::DiagnosticSeverity::Note:
    return Severity::Note;
  }
  return Severity::Error;
}

static void setPlace(Diagnostic &diagnostic, mlir::FileLineColLoc place) {
  diagnostic.file = place.getFilename().str();
  diagnostic.line = place.getLine();
  diagnostic.column = place.getColumn();
}

static Diagnostic convert(mlir::Diagnostic &source) {
  Diagnostic result;
  result.severity = getSeverity(source.getSeverity());
  result.message = source.str();
  SmallVector<mlir::FileLineColLoc> places;
  collectPlaces(source.getLocation(), places);
  if (!places.empty())
    setPlace(result, places.front());
  for (mlir::FileLineColLoc place : ArrayRef(places).drop_front(!places.empty())) {
    Diagnostic note;
    note.severity = Severity::Note;
    note.message = "in the function called here";
    setPlace(note, place);
    result.notes.push_back(note);
  }
  for (mlir::Diagnostic &note : source.getNotes())
    result.notes.push_back(convert(note));
  return result;
}

void DiagnosticLog::add(mlir::Diagnostic &diagnostic) {
  Diagnostic added = convert(diagnostic);
  auto isSame = [&](const Diagnostic &other) {
    auto key = [](const Diagnostic &d) { return std::tie(d.severity, d.file, d.line, d.column, d.message); };
    return key(other) == key(added);
  };
  // Several levels, or passes that run again, may emit the same message. Keep only one.
  if (added.severity != Severity::Error && llvm::any_of(list, isSame))
    return;
  errors += added.severity == Severity::Error;
  list.push_back(std::move(added));
}

void DiagnosticLog::addQueryError(const Twine &message) {
  Diagnostic diagnostic;
  diagnostic.message = message.str();
  list.push_back(std::move(diagnostic));
}

void DiagnosticLog::addError(const Twine &message) {
  addQueryError(message);
  ++errors;
}

static const char *getLabel(Severity severity) {
  switch (severity) {
  case Severity::Error:
    return "error: ";
  case Severity::Warning:
    return "warning: ";
  case Severity::Remark:
    return "remark: ";
  case Severity::Note:
    return "note: ";
  }
  return "";
}

/// Returns line `number` of a text, counted from 1, or nothing.
static std::optional<StringRef> getLine(StringRef text, unsigned number) {
  for (unsigned k = 1; !text.empty(); ++k) {
    auto [line, rest] = text.split('\n');
    if (k == number)
      return line.rtrim('\r');
    text = rest;
  }
  return std::nullopt;
}

static bool isContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

/// Returns a source line and a caret under a column, which counts bytes from 1. A long line is cut
/// to the part around the column.
static std::string showLine(StringRef line, unsigned column) {
  constexpr size_t kAround = 80;
  size_t caret = std::min<size_t>(column ? column - 1 : 0, line.size());
  size_t begin = caret > kAround ? caret - kAround : 0;
  size_t end = std::min(line.size(), caret + kAround);
  while (begin < caret && isContinuation(line[begin]))
    ++begin;
  while (end < line.size() && isContinuation(line[end]))
    ++end;
  std::string text = begin ? "  …" : "  ", indent = begin ? "   " : "  ";
  for (char c : line.slice(begin, caret))
    if (!isContinuation(c))
      indent += c == '\t' ? '\t' : ' ';
  text += line.slice(begin, end);
  return text + (end < line.size() ? "…\n" : "\n") + indent + "^\n";
}

void DiagnosticLog::render(std::string &text, const Diagnostic &diagnostic, StringRef program) const {
  if (diagnostic.line)
    text += diagnostic.file + ":" + utostr(diagnostic.line) + ":" + utostr(diagnostic.column) + ": ";
  else if (!program.empty())
    text += program.str() + ": ";
  text += getLabel(diagnostic.severity) + diagnostic.message + "\n";
  auto source = sources.find(diagnostic.file);
  if (diagnostic.line && source != sources.end())
    if (std::optional<StringRef> line = getLine(source->second, diagnostic.line))
      text += showLine(*line, diagnostic.column);
  for (const Diagnostic &note : diagnostic.notes)
    render(text, note, program);
}

std::string DiagnosticLog::render(bool remarks, StringRef program) const {
  std::string text;
  for (const Diagnostic &diagnostic : list)
    if (remarks || diagnostic.severity != Severity::Remark)
      render(text, diagnostic, program);
  return text;
}

} // namespace moa
