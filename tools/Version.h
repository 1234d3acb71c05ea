//===- Version.h - output of --version --------------------------*- C++ -*-===//
#ifndef MOA_TOOLS_VERSION_H
#define MOA_TOOLS_VERSION_H

#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

namespace moa {

/// Makes --version print the versions of the project and of LLVM. Must be called before the command
/// line is parsed.
inline void setVersionPrinter() {
  llvm::cl::SetVersionPrinter(
      [](llvm::raw_ostream &os) { os << "MoA " MOA_VERSION ", LLVM " LLVM_VERSION_STRING "\n"; });
}

} // namespace moa

#endif // MOA_TOOLS_VERSION_H
