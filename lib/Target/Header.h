//===- Header.h - the C header of emitted kernels ---------------*- C++ -*-===//
#ifndef MOA_TARGET_HEADER_H
#define MOA_TARGET_HEADER_H

#include "lib/Target/Signature.h"
#include "llvm/ADT/ArrayRef.h"

namespace moa {

/// The C header that declares the entry points of kernels for `machines`; `notes` are
/// the lines of its comment, each beginning with " *", on what is particular to these. Its
/// text depends on the arguments only.
std::string printHeader(llvm::ArrayRef<KernelSignature> kernels, llvm::StringRef guard,
                        llvm::StringRef machines, llvm::StringRef notes);

} // namespace moa

#endif // MOA_TARGET_HEADER_H
