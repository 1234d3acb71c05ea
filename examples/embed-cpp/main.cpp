//===- main.cpp - a program that embeds the compiler ----------------------===//
//
// Uses the compiler as a library, no tool is started:
//
//   embed [FILE.cu]
//
// compiles a specification, runs the kernel on data in memory, shows what a
// mistake in a specification comes back as, and writes the kernel as CUDA C++.
//
//===----------------------------------------------------------------------===//

#include "moa/Compiler.h"
#include <cstdio>
#include <fstream>

static const char *const specification = R"(
kernel weights[N, M; T : float = f32](x : T[N, M], scale : f32) -> y : T[N, M] {
  y = softmax(scale * x)
}
)";

/// The same with a mistake: the axes of the sum do not agree.
static const char *const mistaken = R"(
kernel weights[N, M; T : float = f32](x : T[N, M], bias : T[M, N]) -> y : T[N, M] {
  y = softmax(x + bias)
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

/// Runs the compiled kernel on two rows of three.
static bool run(const moa::Kernel &kernel) {
  std::printf("%s\n", kernel.info().text.c_str());
  std::vector<float> x = {0, 1, 2, 2, 1, 0}, y(6);
  std::vector<int64_t> shape = {2, 3};
  DLTensor in = describe(x.data(), shape), out = describe(y.data(), shape);
  std::string message;
  if (kernel({&in, &out}, {2.0}, &message)) {
    std::fprintf(stderr, "%s\n", message.c_str());
    return false;
  }
  for (int row = 0; row < 2; ++row)
    std::printf("%.4f %.4f %.4f\n", y[3 * row], y[3 * row + 1], y[3 * row + 2]);
  return true;
}

/// Diagnostics are data; renderDiagnostics() makes the text of them that the
/// tools print.
static void showMistake() {
  moa::Compilation unit = moa::Compiler().compileText(mistaken, "mistaken.moa");
  for (const moa::Diagnostic &diagnostic : unit.diagnostics())
    if (diagnostic.severity == moa::Severity::Error)
      std::printf("line %u, column %u: %s\n", diagnostic.line, diagnostic.column, diagnostic.message.c_str());
}

/// The kernels of the unit as a CUDA C++ file.
static bool writeCuda(moa::Compilation &unit, const char *path) {
  std::optional<std::string> text = unit.cuda();
  if (!text)
    return false;
  std::ofstream file(path);
  file << *text;
  file.close();
  if (!file) {
    std::fprintf(stderr, "cannot write %s\n", path);
    return false;
  }
  std::printf("wrote %s\n", path);
  return true;
}

int main(int argc, char **argv) {
  moa::Compilation unit = moa::Compiler().compileText(specification, "weights.moa");
  std::optional<moa::Kernel> kernel = unit.load();
  bool right = kernel && run(*kernel);
  showMistake();
  right = right && writeCuda(unit, argc > 1 ? argv[1] : "weights.cu");
  std::fputs(unit.renderDiagnostics().c_str(), stderr); // warnings, and why it failed
  return right ? 0 : 1;
}
