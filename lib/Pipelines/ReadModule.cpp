//===- ReadModule.cpp - reads the text of a level -------------------------===//
#include "lib/Pipelines/ReadModule.h"
#include "lib/Support/LevelWords.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace moa {

/// Returns the operation with the nearest name, if it is near enough to be meant.
static StringRef nearest(StringRef name, MLIRContext *context) {
  unsigned best = 1 + name.size() / 3;
  StringRef found;
  for (RegisteredOperationName operation : context->getRegisteredOperations()) {
    StringRef other = operation.getStringRef();
    unsigned distance = name.edit_distance(other, true, best);
    if (distance < best || (distance == best && found.empty())) {
      best = distance;
      found = other;
    }
  }
  return found;
}

/// Returns the page of docs/Dialects for the level of an operation.
static StringRef getPage(StringRef operation) {
  return llvm::StringSwitch<StringRef>(operation.split('.').first)
      .Case("moa", "MoA.md")
      .Case("dnf", "DNF.md")
      .Case("onf", "ONF.md")
      .Case("device", "Device.md")
      .Default("");
}

static std::string getRemedy(StringRef message, StringRef file) {
  StringRef operation = getNamedOperation(message);
  StringRef page = getPage(operation);
  if (!page.empty() && isUnknownOperation(message))
    return ("docs/Dialects/" + page + " lists the operations of this level").str();
  if (!page.empty())
    return ("the form of '" + operation + "' is in docs/Dialects/" + page).str();
  return (file + " is read as a module of kernels of the levels moa, dnf, onf or device; a "
                 "specification is a file NAME.moa")
      .str();
}

/// Rewords a diagnostic, without the notes that show MLIR's own state.
static void reword(Diagnostic &diagnostic, std::string (*translate)(StringRef)) {
  Diagnostic words(diagnostic.getLocation(), diagnostic.getSeverity());
  words << translate(diagnostic.str());
  for (Diagnostic &note : diagnostic.getNotes()) {
    std::string text = note.str();
    if (!StringRef(text).starts_with("see current operation") && !StringRef(text).starts_with("Available dialects"))
      words.attachNote(note.getLocation()) << translate(text);
  }
  diagnostic = std::move(words);
}

void addRewording(MLIRContext &context) {
  context.getDiagEngine().registerHandler([](Diagnostic &diagnostic) {
    reword(diagnostic, rewordCheck);
    return failure(); // the handlers registered before print it
  });
}

OwningOpRef<ModuleOp> readModule(StringRef text, StringRef name, MLIRContext *context) {
  // Only operations of loaded dialects can be proposed.
  context->loadAllAvailableDialects();
  bool hasError = false;
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
    reword(diagnostic, rewordMessage);
    if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
      return failure();
    // Later errors follow from the first one.
    if (hasError)
      return success();
    hasError = true;
    std::string message = diagnostic.str();
    if (isUnknownOperation(message)) {
      StringRef meant = nearest(getNamedOperation(message), context);
      if (!meant.empty())
        diagnostic << "; did you mean '" << meant << "'?";
    }
    diagnostic.attachNote(UnknownLoc::get(context)) << getRemedy(message, name);
    return failure();
  });
  return parseSourceString<ModuleOp>(text, ParserConfig(context), name);
}

} // namespace moa
