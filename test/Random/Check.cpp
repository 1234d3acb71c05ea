//===- Check.cpp - one specification at every level -----------------------===//
#include "Check.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <chrono>
#include <cmath>

using namespace moa;
using namespace moa::random;

namespace {

/// Times the distance that roundings at random move a value.
constexpr double kMargin = 16;
/// Samples of each normal form. Two roundings cancel in half of them, so that what
/// disagrees with few is tried with more.
constexpr unsigned kSamples[] = {8, 24, 64};

double roundoffOf(const std::string &type) {
  return type == "f64" ? 0x1p-53 : type == "f32" ? 0x1p-24 : type == "f16" ? 0x1p-11 : type == "bf16" ? 0x1p-8 : 0;
}
/// Below it a type's numbers are not relatively exact.
double smallestOf(const std::string &type) { return type == "f64" ? 0x1p-1000 : type == "f16" ? 0x1p-24 : 0x1p-120; }

using Outputs = std::vector<ReferenceArray>;

class Checker {
public:
  Checker(const Program &program, const CheckOptions &options) : program(program), options(options), unit(makeUnit()) {}

  Result run() {
    // A refusal because no sizes fit must be right: none is found for it here either.
    bool isEmpty = !unit.ok() && llvm::StringRef(lastMessage()).starts_with("no sizes satisfy") &&
                   llvm::none_of(options.rounds, [&](unsigned round) { return chooseSizes(program, round); });
    if (isEmpty)
      return result;
    if (!unit.ok()) {
      fail("rejected", unit.renderDiagnostics());
      return result;
    }
    if (options.sizes) {
      checkSizes(options.rounds.empty() ? 0 : options.rounds[0], *options.sizes);
      return result;
    }
    for (unsigned round : options.rounds)
      if (auto sizes = chooseSizes(program, round); sizes && result.failure.empty())
        checkSizes(round, *sizes);
    return result;
  }

private:
  Compilation makeUnit() {
    CompilerOptions compiler;
    compiler.settings = program.settings();
    compiler.optimization = options.optimization;
    compiler.processor = options.processor;
    return Compiler(compiler).compileText(program.print(), "random.moa");
  }

  void fail(const std::string &failure, const std::string &detail) {
    result.failure = failure;
    result.detail = detail;
  }
  std::string lastMessage() const { return unit.diagnostics().empty() ? "" : unit.diagnostics().back().message; }

  void checkSizes(unsigned round, const Sizes &sizes) {
    result.round = round;
    result.sizes = sizes;
    const KernelInfo &info = unit.kernels()[0];
    auto shapes = unit.shapes(info.name, sizes);
    if (!shapes)
      return fail("no shapes", lastMessage());
    inputs = chooseInputs(program, info, *shapes, sizes, round);
    symbols = sizes;
    auto expected = unit.evaluate(info.name, Level::MoA, inputs, 0, symbols);
    if (!expected)
      return fail("moa has no value", lastMessage());
    result.tried = true;
    for (Level level : {Level::DNF, Level::ONF, Level::Lifted}) {
      std::string name = getLevelName(level);
      auto found = unit.evaluate(info.name, level, inputs, 0, symbols);
      // Bounds of an index that are not proved refuse a program; of few, as
      // moa-random counts them.
      if (!found && llvm::StringRef(lastMessage()).contains("could not be shown"))
        return fail(kNoProof, lastMessage());
      if (!found)
        return fail(name + (unit.ok() ? " has no value" : " is not reached"), lastMessage());
      compare(name, *found, *expected, /*isCode=*/false);
      if (!result.failure.empty())
        return;
    }
    if (options.codeEvery && program.seed % options.codeEvery == 0)
      runCode(round, *shapes, *expected);
  }

  /// Runs the code with all arrays and the workspace at the ends of protected pages and right after
  /// such pages.
  void runCode(unsigned round, const std::vector<std::vector<int64_t>> &shapes, const Outputs &expected) {
    const KernelInfo &info = unit.kernels()[0];
    if (!code)
      code = unit.load(info.name);
    if (!code)
      return fail("no code", unit.renderDiagnostics());
    for (Placement placement : {Placement::AtEnd, Placement::AtBegin})
      if (result.failure.empty())
        runCode(round, shapes, expected, placement);
  }

  void runCode(unsigned round, const std::vector<std::vector<int64_t>> &shapes, const Outputs &expected,
               Placement placement) {
    const KernelInfo &info = unit.kernels()[0];
    std::vector<std::unique_ptr<Memory>> memory;
    std::vector<const DLTensor *> arrays;
    std::vector<Scalar> scalars;
    size_t inputArrays = 0;
    for (auto [k, parameter] : llvm::enumerate(info.parameters)) {
      if (parameter.isScalar()) {
        double value = inputs[k].data[0];
        scalars.push_back(parameter.elementType[0] == 'i' ? Scalar(int64_t(value)) : Scalar(value));
        continue;
      }
      unsigned gap = (program.seed + k + round) % 3;
      memory.push_back(std::make_unique<Memory>(shapes[k], parameter.elementType, gap, placement));
      if (!parameter.isOutput) {
        memory.back()->fill(inputs[k].data);
        ++inputArrays;
      }
      arrays.push_back(memory.back()->tensor());
    }
    std::string message;
    // The bound of a tolerance for every input may exceed it: results are compared all the same.
    bool isPromised =
        llvm::any_of(info.parameters, [](const ParameterInfo &p) { return p.within && !p.within->isSampled; });
    if (int32_t why = call(arrays, scalars, placement, message); why && !(isPromised && why == Kernel::kNotShown))
      return fail("the code refuses", std::to_string(why) + ": " + message);
    Outputs found;
    for (auto [k, array] : llvm::enumerate(expected)) {
      const Memory &output = *memory[inputArrays + k];
      if (!output.isIntact())
        return fail("the code writes elsewhere", info.parameters[inputs.size() + k].name);
      found.push_back({array.shape, output.read()});
    }
    compare("code", found, expected, /*isCode=*/true);
  }

  /// Calls the code as Kernel::operator() does, with a workspace at a protected page.
  int32_t call(const std::vector<const DLTensor *> &arrays, const std::vector<Scalar> &scalars, Placement placement,
               std::string &message) {
    if (int32_t why = code->check(arrays, &message))
      return why;
    int64_t bytes = code->workspace(arrays, scalars);
    if (bytes < 0)
      return int32_t(-bytes);
    ProtectedPages workspace(bytes, placement, 0xA5, /*alignment=*/64);
    int32_t why = code->run(arrays, scalars, bytes ? workspace.getData() : nullptr, bytes);
    if (bytes && (!why || why == Kernel::kNotShown))
      why = code->shown(arrays, scalars, workspace.getData(), bytes, &message);
    return why;
  }

  //===--------------------------------------------------------------------===//
  // Comparison
  //===--------------------------------------------------------------------===//

  bool isExact(size_t output) const {
    const Node &node = program.nodes[program.outputs[output].node];
    return node.kind != Kind::Float || node.facts.integral;
  }
  /// The roundoff of what is computed on the way to a value.
  double getRoundoff(bool isCode) const {
    double roundoff = 0x1p-53;
    if (isCode) {
      roundoff = 0x1p-24;
      for (const ParameterInfo &parameter : unit.kernels()[0].parameters)
        if (!parameter.isOutput && parameter.elementType == "f64")
          roundoff = 0x1p-53;
    }
    return std::max(roundoff, program.coarseRoundoff);
  }

  void compare(const std::string &what, Outputs found, const Outputs &expected, bool isCode) {
    if (what == options.spoil)
      for (size_t output = 0; output < found.size(); ++output)
        if (!found[output].data.empty()) {
          double &last = found[output].data.back();
          last = isExact(output) ? !last : last * 1.001 + 1e-6;
        }
    const KernelInfo &info = unit.kernels()[0];
    for (size_t output = 0; output < expected.size(); ++output) {
      const std::string &type = info.parameters[inputs.size() + output].elementType;
      std::vector<double> bounds(expected[output].data.size());
      unsigned samples = 0;
      for (size_t k = 0; k < expected[output].data.size(); ++k) {
        double want = expected[output].data[k], got = found[output].data[k];
        if (!std::isfinite(want)) {
          ++result.infinite;
          continue;
        }
        if (isExact(output)) {
          ++result.equal;
          if (got != want)
            return disagree(what, output, k, got, want, 0);
          continue;
        }
        ++result.bounded;
        // Most values are found without knowing how the problem moves.
        double error = std::fabs(got - want), own = isCode ? roundoffOf(type) : 0;
        double near = 4 * getRoundoff(isCode) * std::fabs(want);
        if (error <= near)
          continue;
        double bound = 0;
        for (unsigned enough : kSamples) {
          for (; samples < enough; ++samples)
            addSample(output, expected[output], isCode, samples, bounds);
          bound = bounds[k] + near + 2 * own * std::fabs(want) + (isCode ? smallestOf(type) : 0x1p-1000);
          if (error <= bound)
            break;
        }
        if (!(error <= bound))
          return disagree(what, output, k, got, want, bound);
      }
    }
  }

  /// Evaluates both normal forms with roundings in one more set of directions.
  void addSample(size_t output, const ReferenceArray &expected, bool isCode, unsigned sample,
                 std::vector<double> &bounds) {
    for (Level level : {Level::DNF, Level::ONF}) {
      auto moved =
          unit.evaluate(unit.kernels()[0].name, level, inputs, Roundings(getRoundoff(isCode), sample + 1), symbols);
      if (!moved)
        continue;
      for (size_t k = 0; k < bounds.size(); ++k) {
        double distance = std::fabs((*moved)[output].data[k] - expected.data[k]);
        bounds[k] = std::max(bounds[k], std::isnan(distance) ? INFINITY : kMargin * distance);
      }
    }
  }

  void disagree(const std::string &what, size_t output, size_t k, double got, double want, double bound) {
    std::vector<int64_t> shape = unit.shapes(unit.kernels()[0].name, symbols).value()[inputs.size() + output];
    std::string index;
    for (size_t axis = shape.size(), rest = k; axis-- > 0; rest /= shape[axis])
      index = std::to_string(rest % shape[axis]) + (index.empty() ? "" : ", ") + index;
    fail(what + " differs", llvm::formatv("{0}[{1}]: {2} for {3}{4}", program.outputs[output].name, index, print(got),
                                          print(want), isExact(output) ? "" : ", bound " + print(bound)));
  }
  static std::string print(double value) {
    char text[40];
    snprintf(text, sizeof text, "%.17g", value);
    return text;
  }

  const Program &program;
  const CheckOptions &options;
  Compilation unit;
  std::optional<Kernel> code;
  Result result;
  std::vector<ReferenceArray> inputs;
  Sizes symbols;
};

} // namespace

Result moa::random::check(const Program &program, const CheckOptions &options) {
  auto start = std::chrono::steady_clock::now();
  Result result = Checker(program, options).run();
  std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  result.seconds = spent.count();
  return result;
}

std::string moa::random::printInputs(const Program &program, unsigned round, const Sizes &sizes) {
  CompilerOptions options;
  options.settings = program.settings();
  Compilation unit = Compiler(options).compileText(program.print(), "random.moa");
  if (!unit.ok())
    return "";
  const KernelInfo &info = unit.kernels()[0];
  auto shapes = unit.shapes(info.name, sizes);
  if (!shapes)
    return "";
  std::string text;
  auto inputs = chooseInputs(program, info, *shapes, sizes, round);
  for (auto [k, array] : llvm::enumerate(inputs)) {
    text += info.parameters[k].name + " = [";
    for (auto [i, value] : llvm::enumerate(array.data)) {
      if (i == 100) {
        text += " …";
        break;
      }
      char digits[40];
      snprintf(digits, sizeof digits, "%s%.9g", i ? " " : "", value);
      text += digits;
    }
    text += "]\n";
  }
  return text;
}
