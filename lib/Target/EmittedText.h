//===- EmittedText.h - files in C that are emitted as text ------*- C++ -*-===//
#ifndef MOA_TARGET_EMITTEDTEXT_H
#define MOA_TARGET_EMITTEDTEXT_H

#include "llvm/ADT/StringRef.h"

/// The embedded files.
extern const unsigned char kBindingCalls[], kLauncher[], kDLPack[];
extern const unsigned long kBindingCallsSize, kLauncherSize, kDLPackSize;

namespace moa {

/// Returns the calls from tvm-ffi (BindingCalls.c).
llvm::StringRef getBindingCalls();
/// Returns the declarations of DLPack's descriptor and of the codes (include/moa/DLPack.h).
llvm::StringRef getEntryDeclarations();
/// Returns a part of Host/Launcher.c by its name, for example "CHECKS".
llvm::StringRef getLauncherPart(llvm::StringRef name);

} // namespace moa

#endif // MOA_TARGET_EMITTEDTEXT_H
