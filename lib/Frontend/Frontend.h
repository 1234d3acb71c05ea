//===- Frontend.h - from a specification to the moa dialect -----*- C++ -*-===//
//
// docs/Language.md defines the language.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_FRONTEND_FRONTEND_H
#define MOA_FRONTEND_FRONTEND_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include <map>
#include <set>
#include <string>
#include <vector>

namespace moa {

struct FrontendOptions {
  /// Values of symbols by name: sizes (a run-time symbol becomes a compile-time
  /// one) and element types.
  std::map<std::string, std::string> settings;
  /// Whether the functions of lib/Frontend/prelude.moa can be called.
  bool usePrelude = true;
  /// Results whose tolerances are given elsewhere, so that those of the text need not be kept by
  /// their types.
  std::set<std::string> replacedTolerances;
  /// If set: receives, by kernel, for each parameter and result the name of the compile-time
  /// constant that each extent is, "" for others. Extents of the module are numbers there.
  std::map<std::string, std::vector<std::vector<std::string>>> *constants = nullptr;
};

/// Parses, checks and elaborates a specification: one `moa.kernel` per kernel.
/// Errors go to the context's diagnostics at file, line and column of the text;
/// the result is null after one.
mlir::OwningOpRef<mlir::ModuleOp> parseMoA(llvm::StringRef text, llvm::StringRef filename,
                                           const FrontendOptions &options,
                                           mlir::MLIRContext *context);

/// The text of the prelude; locations in it name the file `prelude.moa`.
llvm::StringRef getPreludeText();

/// While it lives, diagnostics that point into `text` or into the prelude are
/// printed as `file:line:col: error: message` with the line and a caret, notes
/// included. Diagnostics of other places are printed without a line.
class SourceDiagnosticHandler {
public:
  SourceDiagnosticHandler(llvm::StringRef text, llvm::StringRef filename,
                          mlir::MLIRContext *context, llvm::raw_ostream &os);

private:
  void print(const mlir::Diagnostic &diagnostic, llvm::raw_ostream &os) const;
  std::map<std::string, std::string> sources;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace moa

#endif // MOA_FRONTEND_FRONTEND_H
