//===- Binding.h - entry points for other calling conventions ---*- C++ -*-===//
//
// tvm-ffi (apache-tvm-ffi 0.1) calls a function by a C symbol `__tvm_ffi_NAME` that takes tagged
// values. These functions check the kinds of their arguments and call the C entry points.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_TARGET_BINDING_H
#define MOA_TARGET_BINDING_H

#include "lib/Target/Signature.h"

namespace moa {

enum class Binding { None, TVMFFI };

/// Returns the binding with a name on the command line, and None for an empty name.
std::optional<Binding> parseBinding(llvm::StringRef name);

/// A parameter as BindingCalls.c describes it. The numbers of kinds are those of that file.
struct BindingParameter {
  enum Kind { Tensor, Bool, Int, F64, F32, F16, BF16 };
  std::string name;
  Kind kind = Tensor;
  int64_t low = 0, high = 0; ///< the range of an integer
};

/// Returns the parameters in the order of the entry points.
std::vector<BindingParameter> getBindingParameters(const KernelSignature &signature);

/// Returns C, which is also C++, of the functions `__tvm_ffi_NAME` of kernels for a GPU. The entry
/// points must be declared before.
std::string printBinding(llvm::ArrayRef<KernelSignature> kernels);

/// Returns whether that text declares or reserves the name.
bool isBindingName(llvm::StringRef name);

} // namespace moa

#endif // MOA_TARGET_BINDING_H
