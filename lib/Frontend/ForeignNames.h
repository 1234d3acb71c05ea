//===- ForeignNames.h - functions of other systems --------------*- C++ -*-===//
#ifndef MOA_FRONTEND_FOREIGNNAMES_H
#define MOA_FRONTEND_FOREIGNNAMES_H

#include "llvm/ADT/StringRef.h"

namespace moa::frontend {

/// Returns how the language writes a function of NumPy, PyTorch and the like, as the end of "write
/// …". For example `where` gives "'select(p, x, y)'". Returns "" for other names.
llvm::StringRef getOwnSpelling(llvm::StringRef name);

} // namespace moa::frontend

#endif // MOA_FRONTEND_FOREIGNNAMES_H
