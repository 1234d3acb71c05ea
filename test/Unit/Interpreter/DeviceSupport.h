//===- DeviceSupport.h - compiled programs for the device tests -*- C++ -*-===//
#ifndef MOA_TEST_UNIT_INTERPRETER_DEVICESUPPORT_H
#define MOA_TEST_UNIT_INTERPRETER_DEVICESUPPORT_H

#include "dialects/Device/IR/Device.h"
#include "lib/Interpreter/DeviceInterpreter.h"
#include "lib/Pipelines/Registration.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "moa/Compiler.h"
#include "gtest/gtest.h"
#include <cmath>
#include <random>

namespace moa::test {

/// Grouped queries, causal at the bottom right, values of another width than keys.
inline std::string attendText(const std::string &guard) {
  return R"(
kernel attend[B, H, G, N, M; T : float = bf16, D = 64, E = 64](
    Q : T[B, H, N, D], K : T[B, G, M, D], V : T[B, G, M, E], scale : f32)
    -> (O : T[B, H, N, E], lse : f32[B, H, N])
  require H % G == 0
{
  Kh  = [b < B, h < H] K[b, h / (H/G)]
  Vh  = [b < B, h < H] V[b, h / (H/G)]
  S   = (Q +.* transpose(Kh)) * scale
  S   = mask([_, _, i, j] )" +
         guard + R"(, S)
  O   = softmax(S) +.* Vh
  lse = logsumexp(S)
}
)";
}
inline const std::string kAttend = attendText("j <= i + (M - N)");
/// Queries see the keys from the first to their own number: with fewer queries than
/// keys nobody sees the last ones.
inline const std::string kTopLeft = attendText("j <= i");

inline ReferenceArray randomArray(std::vector<int64_t> shape, unsigned seed, mlir::Type type) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal;
  ReferenceArray array{shape, {}};
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  for (int64_t k = 0; k < count; ++k)
    array.data.push_back(roundTo(normal(engine), type));
  return array;
}

struct AttendSizes {
  int64_t batch = 1, heads = 2, groups = 1, queries = 66, keys = 80, depth = 64, width = 64;
};

inline std::vector<ReferenceArray> attendInputs(const AttendSizes &s, mlir::Type type) {
  return {randomArray({s.batch, s.heads, s.queries, s.depth}, 1, type),
          randomArray({s.batch, s.groups, s.keys, s.depth}, 2, type),
          randomArray({s.batch, s.groups, s.keys, s.width}, 3, type),
          {{}, {1 / std::sqrt(static_cast<double>(s.depth))}}};
}

inline Compilation compileAttend(const AttendSizes &s, const std::string &type, const std::string &text = kAttend,
                                 const std::vector<std::string> &disabled = {}) {
  CompilerOptions options;
  options.disabledRules = disabled;
  options.settings = {"T=" + type, "D=" + std::to_string(s.depth), "E=" + std::to_string(s.width)};
  return Compiler(options).compileText(text, "attend.moa");
}

/// ‖x − y‖ / ‖y‖ over finite y; infinite where the others differ.
inline double relativeError(const std::vector<double> &x, const std::vector<double> &y) {
  double difference = 0, norm = 0;
  for (size_t k = 0; k < y.size(); ++k) {
    if (!std::isfinite(y[k]) || !std::isfinite(x[k])) {
      if (!(x[k] == y[k] || (std::isnan(x[k]) && std::isnan(y[k]))))
        return INFINITY;
      continue;
    }
    difference += (x[k] - y[k]) * (x[k] - y[k]);
    norm += y[k] * y[k];
  }
  return difference == 0 ? 0 : std::sqrt(difference / norm);
}

inline bool sameBits(double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); }

/// A program of the device level that a test may change.
class DeviceProgram {
public:
  explicit DeviceProgram(const std::string &text) : context(registry()) {
    context.loadAllAvailableDialects();
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    EXPECT_TRUE(module);
  }
  mlir::ModuleOp get() { return *module; }
  static device::ProgramOp programOf(mlir::ModuleOp module) { return *module.getOps<device::ProgramOp>().begin(); }

private:
  static mlir::DialectRegistry registry() {
    mlir::DialectRegistry result;
    registerDialects(result);
    return result;
  }
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

inline KernelInputs toInputs(const std::vector<ReferenceArray> &arrays) {
  KernelInputs inputs;
  for (const ReferenceArray &array : arrays)
    inputs.arrays.push_back({array.shape, array.data});
  return inputs;
}

} // namespace moa::test

#endif // MOA_TEST_UNIT_INTERPRETER_DEVICESUPPORT_H
