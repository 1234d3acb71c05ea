//===- Codegen.h - LLVM modules, object files and loading -------*- C++ -*-===//
//
// The last step of the CPU target. A module in the llvm dialect becomes an LLVM module with entry
// points, is optimised for one machine, and becomes an object file or code in this process.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_TARGET_CPU_CODEGEN_H
#define MOA_TARGET_CPU_CODEGEN_H

#include "lib/Target/CPU/EntryPoints.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>

namespace llvm {
class LLVMContext;
class Module;
class TargetMachine;
} // namespace llvm

namespace moa::cpu {

/// Returns the machine to compile for. `processor` is an LLVM processor name, or empty for this
/// machine. With `optimization` 0 the code generator does not optimise.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>> createTargetMachine(llvm::StringRef processor,
                                                                         unsigned optimization = 1);

/// Translates a module in the llvm dialect, links the run-time code in and adds the entry points of
/// its one kernel.
llvm::Expected<std::unique_ptr<llvm::Module>> translate(mlir::ModuleOp module, llvm::LLVMContext &context,
                                                        llvm::TargetMachine &machine, const KernelSignature &signature,
                                                        bool packed, Binding binding = Binding::None);

/// Runs LLVM's pipeline for the machine at -O0, -O2, -O2 or -O3. Level 1 omits the SLP vectorizer
/// and, for long nests, loop unrolling: the lowering has done both already, and they only make code
/// larger (benchmarks/cpu/NOTES.md, "What LLVM adds").
void optimise(llvm::Module &module, llvm::TargetMachine &machine, unsigned optimization = 1);

llvm::Expected<llvm::SmallVector<char, 0>> emitObject(llvm::Module &module, llvm::TargetMachine &machine);

/// The code of one object file, loaded into this process.
class LoadedObject {
public:
  static llvm::Expected<std::unique_ptr<LoadedObject>> load(llvm::ArrayRef<char> object);
  ~LoadedObject();
  llvm::Expected<void *> lookup(llvm::StringRef name);

private:
  struct Impl;
  explicit LoadedObject(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace moa::cpu

#endif // MOA_TARGET_CPU_CODEGEN_H
