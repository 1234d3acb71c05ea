//===- EntryPoints.h - the C interface of an emitted kernel -----*- C++ -*-===//
#ifndef MOA_TARGET_CPU_ENTRYPOINTS_H
#define MOA_TARGET_CPU_ENTRYPOINTS_H

#include "lib/Target/Binding.h"
#include "lib/Target/CPU/Features.h"
#include "lib/Target/Signature.h"
#include "llvm/Support/Error.h"

namespace llvm {
class Module;
} // namespace llvm

namespace moa::cpu {

struct EntryPointOptions {
  Processor processor; ///< the processor that the nests are compiled for
  int64_t numNests = 0;
  int64_t scratchBytes = 0;           ///< per thread
  std::vector<Parameter> temporaries; ///< at the start of the workspace, before the scratch
  std::vector<ShownResult> shown;     ///< tolerances that calls check
  /// Also emit `NAME_packed*`, which take arrays of arguments, for the JIT.
  bool packed = false;
  Binding binding = Binding::None;
};

/// Adds the constant tables and the entry points NAME, NAME_workspace, NAME_check and NAME_prepare
/// to a module, and `__tvm_ffi_NAME` with the binding. The module must have NAME_nest<k> and NAME_tasks<k>, and the
/// run-time code linked in. The caller makes all other functions internal afterwards (see Codegen).
llvm::Error addEntryPoints(llvm::Module &module, const KernelSignature &signature, const EntryPointOptions &options);

/// Returns the C header that declares the entry points of the kernels. The text depends on the
/// arguments only.
std::string printHeader(const std::vector<KernelSignature> &kernels, llvm::StringRef guard, const Processor &processor,
                        Binding binding = Binding::None);

} // namespace moa::cpu

#endif // MOA_TARGET_CPU_ENTRYPOINTS_H
