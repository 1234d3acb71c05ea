//===- Codegen.h - LLVM modules, objects and running code -------*- C++ -*-===//
//
// The last stretch of the CPU target: a module in the llvm dialect becomes an
// LLVM module with entry points, is optimised for one machine, and becomes an
// object file or code in this process.
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

/// The machine to compile for: an LLVM processor name, or empty for this one; and
/// how hard its code generator works, not at all with 0.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>> createTargetMachine(llvm::StringRef processor,
                                                                         unsigned optimization = 1);

/// Translates a module in the llvm dialect, links the run-time code in and adds
/// the entry points of its one kernel.
llvm::Expected<std::unique_ptr<llvm::Module>>
translate(mlir::ModuleOp module, llvm::LLVMContext &context, llvm::TargetMachine &machine,
          const KernelSignature &signature, bool packed);

/// LLVM's pipeline for the machine, -O0, -O2 or -O3. Level 1 is -O2 without what lowering has done,
/// unrolling loops, but those of short nests, and packing scalars into vectors: that brings nothing
/// on average but code that is a third larger (benchmarks/cpu/NOTES.md, "What LLVM adds").
void optimise(llvm::Module &module, llvm::TargetMachine &machine, unsigned optimization = 1);

/// An object file's bytes.
llvm::Expected<llvm::SmallVector<char, 0>> emitObject(llvm::Module &module,
                                                      llvm::TargetMachine &machine);

/// Code of one object file, loaded into this process.
class LoadedObject {
public:
  static llvm::Expected<std::unique_ptr<LoadedObject>> load(llvm::ArrayRef<char> object);
  ~LoadedObject();
  /// The address of a function; an error when there is none.
  llvm::Expected<void *> lookup(llvm::StringRef name);

private:
  struct Impl;
  explicit LoadedObject(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace moa::cpu

#endif // MOA_TARGET_CPU_CODEGEN_H
