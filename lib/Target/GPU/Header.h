//===- Header.h - the C header of kernels for GPUs --------------*- C++ -*-===//
#ifndef MOA_TARGET_GPU_HEADER_H
#define MOA_TARGET_GPU_HEADER_H

#include "lib/Target/Binding.h"
#include "lib/Target/Signature.h"
#include "llvm/ADT/ArrayRef.h"

namespace moa::gpu {

/// Returns the C header that declares the entry points in CUDA C++ files and PTX launchers. The
/// text depends on the arguments only.
std::string printHeader(llvm::ArrayRef<KernelSignature> kernels, llvm::StringRef guard,
                        Binding binding = Binding::None);

} // namespace moa::gpu

#endif // MOA_TARGET_GPU_HEADER_H
