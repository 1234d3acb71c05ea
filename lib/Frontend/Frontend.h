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
  /// Values of symbols by name: sizes (a run-time symbol becomes a compile-time constant) and
  /// element types.
  std::map<std::string, std::string> settings;
  /// The functions of lib/Frontend/prelude.moa can be called.
  bool usePrelude = true;
  /// Results whose tolerances the caller replaces. Their declared tolerances are not checked
  /// against their element types.
  std::set<std::string> replacedTolerances;
  /// If set, receives for each kernel, parameter or result, and axis the name of the compile-time
  /// constant that the extent is, or "". In the module these extents are numbers.
  std::map<std::string, std::vector<std::vector<std::string>>> *constants = nullptr;
};

/// Parses, checks and elaborates a specification into one `moa.kernel` per kernel. Errors go to the
/// context's diagnostics with file, line and column of the text; the result is then null.
mlir::OwningOpRef<mlir::ModuleOp> parseMoA(llvm::StringRef text, llvm::StringRef filename,
                                           const FrontendOptions &options, mlir::MLIRContext *context);

/// Returns the text of the prelude. Locations in it name the file `prelude.moa`.
llvm::StringRef getPreludeText();

/// While it lives, diagnostics and notes that point into `text` or the prelude are printed as
/// `file:line:col: error: message` with the line and a caret. Other diagnostics are printed without
/// a source line.
class SourceDiagnosticHandler {
public:
  SourceDiagnosticHandler(llvm::StringRef text, llvm::StringRef filename, mlir::MLIRContext *context,
                          llvm::raw_ostream &os);

private:
  void print(const mlir::Diagnostic &diagnostic, llvm::raw_ostream &os) const;
  std::map<std::string, std::string> sources;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace moa

#endif // MOA_FRONTEND_FRONTEND_H
