//===- PTX.h - PTX of a device program, and its launcher --------*- C++ -*-===//
#ifndef MOA_TARGET_PTX_PTX_H
#define MOA_TARGET_PTX_PTX_H

#include "lib/Target/GPU/Launch.h"
#include "lib/Target/Signature.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm

namespace moa::ptx {

/// LLVM IR of kernels in the llvm and nvvm dialects, for sm_90a, with what they call
/// of CUDA's libdevice, optimised. An error when libdevice is needed and not found.
llvm::Expected<std::unique_ptr<llvm::Module>>
translate(mlir::ModuleOp source, llvm::LLVMContext &context, llvm::StringRef name);

/// The PTX text of such a module.
llvm::Expected<std::string> emit(llvm::Module &module);

/// Links what the module calls of libdevice, with the choices nvcc makes for it
/// (Libdevice.cpp).
llvm::Error linkLibdevice(llvm::Module &module);

/// PTX text as machine code for sm_90a, by ptxas.
llvm::Expected<std::vector<char>> assemble(llvm::StringRef ptx);

/// A program of CUDA's toolkit or a file of it, by its path below the toolkit's root:
/// in $CUDA_HOME and $CUDA_PATH or, if none is set, beside ptxas or nvcc of PATH and in
/// /usr/local/cuda.
std::optional<std::string> findInToolkit(llvm::StringRef path);

/// One program, how its kernels are launched, and what is written above it.
struct Program {
  KernelSignature signature;
  std::vector<gpu::Launch> launches;
  std::string notes; ///< lines of the opening comment
  std::vector<gpu::WorkspaceArray> workspace;
};

/// A C file that holds the PTX and launches it through the driver, with the entry
/// points of every target.
llvm::Expected<std::string> printLauncher(llvm::ArrayRef<Program> programs, llvm::StringRef ptx);

/// JSON: kernels, grids, blocks, shared memory, parameters in order, descriptors of
/// tiles, symbols, constraints, shapes.
std::string printManifest(llvm::ArrayRef<Program> programs);

} // namespace moa::ptx

#endif // MOA_TARGET_PTX_PTX_H
