//===- RandomKernels.h - kernels of random operators ------------*- C++ -*-===//
#ifndef MOA_TEST_UNIT_CONVERSION_RANDOMKERNELS_H
#define MOA_TEST_UNIT_CONVERSION_RANDOMKERNELS_H

#include "KernelBuilder.h"

namespace moa::test {

/// A kernel over the symbols N and M and what its arguments are drawn from.
struct RandomKernel {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<Input> inputs;
};

/// A dozen random operators over three axes, with masks, cascades and views.
RandomKernel makeRandomKernel(unsigned seed);

/// The environment variable as a number, or `otherwise`.
unsigned getVariable(const char *name, unsigned otherwise);

} // namespace moa::test

#endif // MOA_TEST_UNIT_CONVERSION_RANDOMKERNELS_H
