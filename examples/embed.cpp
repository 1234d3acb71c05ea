//===- embed.cpp - a program that compiles and calls a kernel -------------===//
//
// Uses the compiler as a library: no file is written, no tool is started. In
// CMake, with the sources in the directory moa:
//
//   add_subdirectory(moa)
//   add_executable(embed embed.cpp)
//   target_link_libraries(embed PRIVATE MoA::Compiler)
//
//===----------------------------------------------------------------------===//

#include "moa/Compiler.h"
#include <cstdio>

static const char *const specification = R"(
kernel weights[N, M; T : float = f32](x : T[N, M], scale : f32) -> y : T[N, M] {
  y = softmax(scale * x)
}
)";

/// A row-major array of f32 in memory of this CPU.
static DLTensor describe(float *data, std::vector<int64_t> &shape) {
  DLTensor tensor = {};
  tensor.data = data;
  tensor.device.device_type = 1; // kDLCPU
  tensor.ndim = int32_t(shape.size());
  tensor.dtype = {2, 32, 1}; // kDLFloat, bits, lanes
  tensor.shape = shape.data();
  return tensor;
}

int main() {
  moa::Compilation unit =
      moa::Compiler().compileText(specification, "weights.moa");
  std::optional<moa::Kernel> kernel = unit.load();
  if (!kernel) {
    std::fputs(unit.renderDiagnostics().c_str(), stderr);
    return 1;
  }
  std::printf("%s\n", kernel->info().text.c_str());

  std::vector<float> x = {0, 1, 2, 2, 1, 0}, y(6);
  std::vector<int64_t> shape = {2, 3};
  DLTensor in = describe(x.data(), shape), out = describe(y.data(), shape);
  std::string message;
  if ((*kernel)({&in, &out}, {2.0}, &message)) {
    std::fprintf(stderr, "%s\n", message.c_str());
    return 1;
  }
  for (int row = 0; row < 2; ++row)
    std::printf("%.4f %.4f %.4f\n", y[3 * row], y[3 * row + 1], y[3 * row + 2]);
  return 0;
}
