//===- PTX.h - PTX of a device program, and its launcher --------*- C++ -*-===//
#ifndef MOA_TARGET_PTX_PTX_H
#define MOA_TARGET_PTX_PTX_H

#include "lib/Target/Binding.h"
#include "lib/Target/Host/HostTable.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm

namespace moa::ptx {

/// Returns optimised LLVM IR for sm_90a of kernels in the llvm and nvvm dialects, with the
/// libdevice functions they call. Fails if libdevice is needed but not found.
llvm::Expected<std::unique_ptr<llvm::Module>> translate(mlir::ModuleOp source, llvm::LLVMContext &context,
                                                        llvm::StringRef name);

llvm::Expected<std::string> emit(llvm::Module &module);

/// Links the libdevice functions that the module calls, in the same way as nvcc (Libdevice.cpp).
llvm::Error linkLibdevice(llvm::Module &module);

/// Assembles PTX text to machine code for sm_90a by ptxas.
llvm::Expected<std::vector<char>> assemble(llvm::StringRef ptx);

/// Finds a file of the CUDA toolkit by its path below the toolkit's root. Searches $CUDA_HOME and
/// $CUDA_PATH or, if neither is set, the toolkit of ptxas or nvcc in PATH and /usr/local/cuda.
std::optional<std::string> findInToolkit(llvm::StringRef path);

/// Returns a C file that holds the PTX and launches it through the driver, with `notes` in its opening
/// comment. It has the same entry points as other targets.
llvm::Expected<std::string> printLauncher(llvm::ArrayRef<gpu::HostTable> programs, llvm::StringRef notes,
                                          llvm::StringRef ptx, Binding binding = Binding::None);

/// Returns a JSON description of kernels, grids, blocks, shared memory, parameters in order, tensor
/// maps, symbols, constraints and shapes.
std::string printManifest(llvm::ArrayRef<gpu::HostTable> programs);

} // namespace moa::ptx

#endif // MOA_TARGET_PTX_PTX_H
