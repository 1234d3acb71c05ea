/*===- Binding.c - calls of an emitted object from tvm-ffi ----------------===*\
 *
 * Linked into a module whose kernels have a binding. The table of a kernel
 * leads from the arguments to the functions of Runtime.c.
 *
\*===----------------------------------------------------------------------===*/
#include "Runtime.h"

#include "../../BindingCalls.c"

int32_t moaLaunch(const MoaKernel *kernel, const DLTensor *const *tensors, const int64_t *scalars, int64_t *block,
                  void *workspace, size_t bytes);
int64_t moaWorkspace(const MoaKernel *kernel, const DLTensor *const *tensors, const int64_t *scalars, int64_t *block);
int32_t moaCheck(const MoaKernel *kernel, const DLTensor *const *tensors, char *text, size_t size);
int32_t moaShown(const MoaKernel *kernel, const DLTensor *const *tensors, const int64_t *scalars, int64_t *block,
                 void *workspace, size_t bytes, char *text, size_t size);
int64_t moaRoundBf16(float value);
int64_t moaRoundF16(float value);

/* Returns the 64 bits of a scalar in the argument block. Integers are sign-extended from their width, unsigned ones
 * too. */
static int64_t scalarBits(const moa_ffi_parameter *parameter, const TVMFFIAny *argument) {
  int64_t bits = 0;
  double real = 0;
  float rounded = 0;
  if (parameter->kind == MOA_FFI_BOOL || parameter->kind == MOA_FFI_INT) {
    bits = moa_ffi_int(argument);
    return parameter->kind == MOA_FFI_INT && parameter->low == 0 && bits > parameter->high / 2
               ? bits - parameter->high - 1
               : bits;
  }
  real = moa_ffi_real(argument);
  rounded = (float)real;
  switch (parameter->kind) {
  case MOA_FFI_BF16:
    return moaRoundBf16(rounded);
  case MOA_FFI_F16:
    return moaRoundF16(rounded);
  case MOA_FFI_F32:
    memcpy(&bits, &rounded, sizeof rounded);
    return bits;
  default:
    memcpy(&bits, &real, sizeof real);
    return bits;
  }
}

/* Calls an entry point of a kernel with checked kinds of arguments. */
int64_t moaFfiEnter(moa_ffi_call *call, int entry) {
  const MoaKernel *kernel = (const MoaKernel *)call->kernel->table;
  const DLTensor *tensors[kMaxArrays];
  int64_t scalars[kernel->numScalars + 1], block[kernel->numSlots];
  int64_t numTensors = 0, numScalars = 0;
  for (int64_t k = 0; k < call->kernel->count; ++k) {
    const moa_ffi_parameter *parameter = &call->kernel->parameters[k];
    if (parameter->kind == MOA_FFI_TENSOR)
      tensors[numTensors++] = moa_ffi_tensor(&call->args[k]);
    else
      scalars[numScalars++] = scalarBits(parameter, &call->args[k]);
  }
  switch (entry) {
  case MOA_FFI_WORKSPACE:
    return moaWorkspace(kernel, tensors, scalars, block);
  case MOA_FFI_CHECK:
    return moaCheck(kernel, tensors, call->text, MOA_FFI_TEXT);
  case MOA_FFI_SHOWN:
    return moaShown(kernel, tensors, scalars, block, call->workspace, (size_t)call->bytes, call->text, MOA_FFI_TEXT);
  default:
    return moaLaunch(kernel, tensors, scalars, block, call->workspace, (size_t)call->bytes);
  }
}

/* __tvm_ffi_NAME, __tvm_ffi_NAME_workspace and __tvm_ffi_NAME_shown */
int moaFfiRun(const moa_ffi_kernel *kernel, const TVMFFIAny *args, int32_t numArgs, TVMFFIAny *result) {
  return moa_ffi_run(kernel, args, numArgs, result);
}
int moaFfiSize(const moa_ffi_kernel *kernel, const TVMFFIAny *args, int32_t numArgs, TVMFFIAny *result) {
  return moa_ffi_size(kernel, args, numArgs, result);
}
int moaFfiShow(const moa_ffi_kernel *kernel, const TVMFFIAny *args, int32_t numArgs, TVMFFIAny *result) {
  return moa_ffi_show(kernel, args, numArgs, result);
}
