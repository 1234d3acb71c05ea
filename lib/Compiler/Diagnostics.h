//===- Diagnostics.h - messages, collected and rendered ---------*- C++ -*-===//
#ifndef MOA_COMPILER_DIAGNOSTICS_H
#define MOA_COMPILER_DIAGNOSTICS_H

#include "moa/Compiler.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include <map>

namespace mlir {
class Diagnostic;
} // namespace mlir

namespace moa {

class DiagnosticLog {
public:
  /// Registers a file, so that messages in it show the source line.
  void addSource(llvm::StringRef file, llvm::StringRef text);
  void add(mlir::Diagnostic &diagnostic);
  /// Adds an error that ends the compilation.
  void addError(const llvm::Twine &message);
  /// Adds an error of a query. The compilation continues.
  void addQueryError(const llvm::Twine &message);
  /// Returns true if the compilation has failed.
  bool hasErrors() const { return errors > 0; }
  const std::vector<Diagnostic> &get() const { return list; }
  std::string render(bool remarks, llvm::StringRef program) const;

private:
  void render(std::string &text, const Diagnostic &diagnostic, llvm::StringRef program) const;
  std::vector<Diagnostic> list;
  std::map<std::string, std::string> sources;
  unsigned errors = 0;
};

} // namespace moa

#endif // MOA_COMPILER_DIAGNOSTICS_H
