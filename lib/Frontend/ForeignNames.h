//===- ForeignNames.h - functions of other systems --------------*- C++ -*-===//
#ifndef MOA_FRONTEND_FOREIGNNAMES_H
#define MOA_FRONTEND_FOREIGNNAMES_H

#include "llvm/ADT/StringRef.h"

namespace moa::frontend {

/// How the language writes what NumPy, PyTorch and the like have a function for, as the end
/// of "write …"; "" for other names. For example `where` is "'select(p, x, y)'".
llvm::StringRef getOwnSpelling(llvm::StringRef name);

} // namespace moa::frontend

#endif // MOA_FRONTEND_FOREIGNNAMES_H
