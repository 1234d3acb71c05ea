//===- Evaluate.cpp - interface to the reference interpreter --------------===//

#include "lib/Compiler/CompilationImpl.h"
#include "lib/Interpreter/DeviceInterpreter.h"
#include "lib/Interpreter/Interpreter.h"
#include "lib/Interpreter/Magnitude.h"
#include "lib/Target/GPU/Launch.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

namespace moa {

static KernelInputs makeInputs(const std::vector<ReferenceArray> &arrays,
                               const std::map<std::string, int64_t> &symbols) {
  KernelInputs inputs;
  inputs.symbols = symbols;
  for (const ReferenceArray &array : arrays)
    inputs.arrays.push_back({array.shape, array.data});
  return inputs;
}

static InterpretOptions makeOptions(const Roundings &roundings) {
  InterpretOptions options;
  options.roundoff = roundings.relative;
  options.roundoffSeed = roundings.seed;
  options.roundsOperands = roundings.operands;
  options.hasSingleRange = roundings.singleRange;
  return options;
}

/// Returns the op from which symbols are read: that of the highest level.
static mlir::Operation *getTopOp(Compilation::Impl &impl, const std::string &kernel) {
  return impl.getKernelOp(kernel, impl.getEntryLevel());
}

static std::vector<ReferenceArray> makeResults(std::vector<Array> arrays) {
  std::vector<ReferenceArray> result;
  for (Array &array : arrays)
    result.push_back({std::move(array.shape), std::move(array.data)});
  return result;
}

std::optional<std::map<std::string, int64_t>> Compilation::bindSymbols(const std::string &kernel,
                                                                       const std::vector<std::vector<int64_t>> &shapes,
                                                                       const std::map<std::string, int64_t> &given) {
  mlir::Operation *op = impl->isOpen() ? getTopOp(*impl, kernel) : nullptr;
  if (!op)
    return std::nullopt;
  return impl->answer(moa::bindSymbols(op, shapes, given));
}

std::optional<std::vector<std::vector<int64_t>>> Compilation::shapes(const std::string &kernel,
                                                                     const std::map<std::string, int64_t> &symbols) {
  std::optional<unsigned> index = impl->isOpen() ? impl->findKernel(kernel) : std::nullopt;
  if (!index)
    return std::nullopt;
  std::vector<std::vector<int64_t>> result;
  for (const Parameter &parameter : impl->signatures[*index].parameters) {
    std::vector<int64_t> shape;
    for (const SymExpr &extent : parameter.extents) {
      std::optional<int64_t> size = extent.evaluate(symbols);
      if (!size || *size < 0) {
        impl->log.addQueryError(parameter.name + " : " + parameter.getTypeText() +
                                (size ? ": the extent " + extent.str() + " = " + std::to_string(*size) + " is negative"
                                      : ": the extent " + extent.str() + " has no value"));
        return std::nullopt;
      }
      shape.push_back(*size);
    }
    result.push_back(std::move(shape));
  }
  return result;
}

std::optional<std::vector<ReferenceArray>> Compilation::evaluate(const std::string &kernel, Level level,
                                                                 const std::vector<ReferenceArray> &inputs,
                                                                 const Roundings &roundings,
                                                                 const std::map<std::string, int64_t> &symbols) {
  mlir::Operation *op = impl->isOpen() ? impl->getKernelOp(kernel, level) : nullptr;
  auto arrays = op ? impl->answer(interpret(op, makeInputs(inputs, symbols), makeOptions(roundings))) : std::nullopt;
  if (!arrays)
    return std::nullopt;
  return makeResults(std::move(*arrays));
}

/// Returns the message of a call and of NAME_shown, in the words of entry points.
static std::string describeNotShown(device::ProgramOp program, const KernelSignature &signature,
                                    const std::vector<Array> &outputs, const std::map<std::string, Array> &bounds) {
  std::vector<gpu::WorkspaceArray> workspace = gpu::getWorkspace(program);
  std::vector<std::string> texts;
  unsigned inputs =
      llvm::count_if(signature.parameters, [](const Parameter &parameter) { return !parameter.isOutput; });
  for (const ShownLater &shown : signature.shownLater) {
    const Parameter &result = signature.parameters[shown.parameter];
    std::string opening = result.name + " is not shown to be within " + shown.within.str() + ": ";
    if (outputs[shown.parameter - inputs].data.empty())
      continue;
    if (shown.bounds.empty()) {
      texts.push_back(opening + shown.why);
      continue;
    }
    const Array &array = bounds.at(shown.bounds);
    auto isBeyond = [&](double bound) { return !(bound <= shown.within.epsilon); };
    auto first = llvm::find_if(array.data, isBeyond);
    if (first == array.data.end())
      continue;
    std::string text;
    llvm::raw_string_ostream os(text);
    os << opening;
    if (*first <= 3.4e38)
      os << "the bound on its errors is " << llvm::format("%.2e", *first);
    else
      os << "no bound on its errors holds for these inputs: they are too large or too small for "
            "the types, "
            "not finite, or have sums that may cancel";
    const char *before = " at [";
    int64_t size = array.data.size(), rest = first - array.data.begin();
    for (int64_t extent : array.shape) {
      size /= extent;
      os << std::exchange(before, ", ") << rest / size;
      rest %= size;
    }
    if (!array.shape.empty())
      os << "], and too large at " << llvm::count_if(array.data, isBeyond) << " of " << array.data.size()
         << " indices of [" << gpu::getArray(workspace, shown.bounds).getAxes() << "]";
    texts.push_back(std::move(text));
  }
  return llvm::join(texts, "; ");
}

std::optional<std::vector<ReferenceArray>> Compilation::runDevice(const std::string &kernel,
                                                                  const std::vector<ReferenceArray> &inputs,
                                                                  const std::map<std::string, int64_t> &symbols,
                                                                  uint64_t interleaving, TileCounts *counts,
                                                                  std::string *notShown) {
  mlir::Operation *op = impl->isOpen() ? impl->getKernelOp(kernel, Level::Device) : nullptr;
  DeviceOptions options;
  options.interleaving = interleaving;
  std::map<std::string, Array> bounds;
  std::optional<unsigned> index = op && notShown ? impl->findKernel(kernel) : std::nullopt;
  if (index) {
    for (const ShownLater &shown : impl->signatures[*index].shownLater)
      if (!shown.bounds.empty())
        bounds[shown.bounds];
    options.workspace = &bounds;
  }
  DeviceCounts counted;
  options.counts = &counted;
  auto arrays = op ? impl->answer(moa::runDevice(op, makeInputs(inputs, symbols), options)) : std::nullopt;
  if (!arrays)
    return std::nullopt;
  if (counts)
    *counts = {std::move(counted.copied), counted.masked};
  if (index)
    *notShown = describeNotShown(mlir::cast<device::ProgramOp>(op), impl->signatures[*index], *arrays, bounds);
  return makeResults(std::move(*arrays));
}

std::optional<std::vector<double>>
Compilation::evaluateElements(const std::string &kernel, Level level, const std::vector<ReferenceArray> &inputs,
                              unsigned output, const std::vector<std::vector<int64_t>> &indices,
                              const Roundings &roundings, const std::map<std::string, int64_t> &symbols) {
  mlir::Operation *op = impl->isOpen() ? impl->getKernelOp(kernel, level) : nullptr;
  if (!op)
    return std::nullopt;
  return impl->answer(interpretElements(op, makeInputs(inputs, symbols), output, indices, makeOptions(roundings)));
}

std::optional<std::vector<double>> Compilation::evaluateMagnitudes(const std::string &kernel,
                                                                   const std::vector<ReferenceArray> &inputs,
                                                                   unsigned output,
                                                                   const std::vector<std::vector<int64_t>> &indices,
                                                                   const std::map<std::string, int64_t> &symbols) {
  mlir::Operation *op = impl->isOpen() ? impl->getKernelOp(kernel, Level::DNF) : nullptr;
  if (!op)
    return std::nullopt;
  return impl->answer(interpretMagnitudes(op, makeInputs(inputs, symbols), output, indices));
}

} // namespace moa
