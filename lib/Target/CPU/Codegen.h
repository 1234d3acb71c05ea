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

/// The machine to compile for: an LLVM processor name, or empty for this one.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createTargetMachine(llvm::StringRef processor);

/// Translates a module in the llvm dialect, links the run-time code in and adds
/// the entry points of its one kernel.
llvm::Expected<std::unique_ptr<llvm::Module>>
translate(mlir::ModuleOp module, llvm::LLVMContext &context,
          llvm::TargetMachine &machine, const KernelSignature &signature,
          bool packed);

/// LLVM's -O3 pipeline for the machine.
void optimise(llvm::Module &module, llvm::TargetMachine &machine);

/// An object file's bytes.
llvm::Expected<llvm::SmallVector<char, 0>>
emitObject(llvm::Module &module, llvm::TargetMachine &machine);

/// Code of one object file, loaded into this process.
class LoadedObject {
public:
  static llvm::Expected<std::unique_ptr<LoadedObject>>
  load(llvm::ArrayRef<char> object);
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
