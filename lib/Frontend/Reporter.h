//===- Reporter.h - locations and errors of the front end -------*- C++ -*-===//
#ifndef MOA_FRONTEND_REPORTER_H
#define MOA_FRONTEND_REPORTER_H

#include "lib/Frontend/AST.h"
#include "mlir/IR/Diagnostics.h"

namespace moa::frontend {

/// Turns source positions into MLIR locations and reports errors. While a function of the prelude
/// is elaborated, both point to the call in the user's text; a note shows the line of the prelude.
class Reporter {
public:
  Reporter(mlir::MLIRContext *context, llvm::StringRef userFile);

  mlir::MLIRContext *getContext() const { return context; }
  /// Returns the location that operations get.
  mlir::Location location(SourceLoc loc) const;
  /// Returns the position itself, for notes.
  mlir::Location exact(SourceLoc loc) const;
  mlir::InFlightDiagnostic error(SourceLoc loc) const;
  mlir::InFlightDiagnostic warning(SourceLoc loc) const;

  /// Returns the call of the user's function that is being elaborated, if any.
  std::optional<mlir::Location> getCall() const;

  void enterCall(SourceLoc loc, llvm::StringRef callee) { calls.push_back({loc, callee.str()}); }
  void leaveCall() { calls.pop_back(); }

private:
  struct Call {
    SourceLoc loc;
    std::string callee;
  };
  SourceLoc userPosition(SourceLoc loc) const;
  mlir::MLIRContext *context;
  mlir::StringAttr files[2];
  std::vector<Call> calls;
};

/// Returns the candidate closest to `name` if it is close enough for a typing error.
std::optional<std::string> suggest(llvm::StringRef name, llvm::ArrayRef<std::string> candidates);
/// Returns "; did you mean 'x'?" or "".
std::string didYouMean(llvm::StringRef name, llvm::ArrayRef<std::string> candidates);

} // namespace moa::frontend

#endif // MOA_FRONTEND_REPORTER_H
