//===- Reporter.h - locations and errors of the front end -------*- C++ -*-===//
#ifndef MOA_FRONTEND_REPORTER_H
#define MOA_FRONTEND_REPORTER_H

#include "lib/Frontend/AST.h"
#include "mlir/IR/Diagnostics.h"

namespace moa::frontend {

/// Turns source positions into MLIR locations and reports errors. While a
/// function of the prelude is being elaborated, locations and errors are those
/// of the call in the user's text; a note shows the line of the prelude.
class Reporter {
public:
  Reporter(mlir::MLIRContext *context, llvm::StringRef userFile);

  mlir::MLIRContext *getContext() const { return context; }
  /// The location that operations get.
  mlir::Location location(SourceLoc loc) const;
  /// The position itself, for notes.
  mlir::Location exact(SourceLoc loc) const;
  mlir::InFlightDiagnostic error(SourceLoc loc) const;
  mlir::InFlightDiagnostic warning(SourceLoc loc) const;

  /// The call of the user's function that is being elaborated, if any.
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

/// The candidate closest to `name` if it is close enough to be a slip.
std::optional<std::string> suggest(llvm::StringRef name, llvm::ArrayRef<std::string> candidates);
/// "; did you mean 'x'?" or nothing.
std::string didYouMean(llvm::StringRef name, llvm::ArrayRef<std::string> candidates);

} // namespace moa::frontend

#endif // MOA_FRONTEND_REPORTER_H
