//===- moa-opt.cpp - the passes, on .mlir and .moa ------------------------===//
//
// A registration of the project's dialects and passes around MLIR's optimiser
// driver. A file whose name ends in `.moa` is a specification: it goes through
// the front end first, and the passes run on the module that comes out.
//
//===----------------------------------------------------------------------===//

#include "lib/Pipelines/Registration.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/InitLLVM.h"

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  mlir::DialectRegistry registry;
  moa::registerDialects(registry);
  moa::registerPasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "MoA optimiser driver\n", registry));
}
