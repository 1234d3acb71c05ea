//===- Header.h - the C header of emitted kernels ---------------*- C++ -*-===//
#ifndef MOA_TARGET_HEADER_H
#define MOA_TARGET_HEADER_H

#include "lib/Target/Binding.h"
#include "lib/Target/Signature.h"
#include "llvm/ADT/ArrayRef.h"

namespace moa {

/// Returns the C header that declares the entry points of kernels for `machines`. `notes` are
/// comment lines on this kind of machine, each starting with " *". The text depends on the
/// arguments only.
std::string printHeader(llvm::ArrayRef<KernelSignature> kernels, llvm::StringRef guard, llvm::StringRef machines,
                        llvm::StringRef notes, Binding binding = Binding::None);

} // namespace moa

#endif // MOA_TARGET_HEADER_H
