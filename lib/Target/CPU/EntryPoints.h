//===- EntryPoints.h - the C interface of an emitted kernel -----*- C++ -*-===//
#ifndef MOA_TARGET_CPU_ENTRYPOINTS_H
#define MOA_TARGET_CPU_ENTRYPOINTS_H

#include "lib/Target/CPU/Features.h"
#include "lib/Target/Signature.h"
#include "llvm/Support/Error.h"

namespace llvm {
class Module;
} // namespace llvm

namespace moa::cpu {

struct EntryPointOptions {
  Processor processor; ///< the nests are compiled for
  int64_t numNests = 0;
  int64_t scratchBytes = 0;           ///< of one thread
  std::vector<Parameter>
      temporaries; ///< at the start of the workspace, in front of the threads' scratch
  std::vector<ShownResult> shown; ///< what calls say of tolerances
  /// Also emit `NAME_packed*`, which take arrays of arguments; the JIT calls
  /// these.
  bool packed = false;
};

/// Adds the constant tables and the entry points NAME, NAME_workspace,
/// NAME_check and NAME_prepare to a module that holds NAME_nest<k> and
/// NAME_tasks<k> and into which the run-time code has been linked. All other
/// functions become internal afterwards (see Codegen).
llvm::Error addEntryPoints(llvm::Module &module, const KernelSignature &signature,
                           const EntryPointOptions &options);

/// The C header that declares the entry points of the kernels. Its text
/// depends on the arguments only.
std::string printHeader(const std::vector<KernelSignature> &kernels, llvm::StringRef guard,
                        const Processor &processor);

} // namespace moa::cpu

#endif // MOA_TARGET_CPU_ENTRYPOINTS_H
