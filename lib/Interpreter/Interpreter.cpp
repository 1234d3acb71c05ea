//===- Interpreter.cpp - one entry for the three levels -------------------===//
#include "lib/Interpreter/Interpreter.h"
#include "dialects/DNF/IR/DNF.h"
#include "dialects/ONF/IR/ONF.h"
#include "lib/Interpreter/Kernel.h"

using namespace mlir;
using namespace moa;
using namespace moa::interp;
using llvm::Error;
using llvm::Expected;

static Expected<std::vector<Array>> run(Operation *op, const KernelInputs &inputs, const InterpretOptions &options,
                                        const Sample *sample) {
  auto kernel = Kernel::of(op);
  if (!kernel)
    return kernel.takeError();
  auto symbols = bindInputs(op, *kernel, inputs);
  if (!symbols)
    return symbols.takeError();
  if (writesNothing(*kernel, *symbols)) {
    std::vector<Array> outputs;
    for (ArrayType type : kernel->resultTypes)
      outputs.push_back({llvm::cantFail(evaluateShape(type, *symbols)), {}});
    return outputs;
  }
  // Of a sample, dnf and onf return only the elements, of one output.
  bool isAlone = sample && !isa<KernelOp>(op);
  auto give = [&](Expected<std::vector<Array>> outputs) {
    if (outputs)
      makeUnsigned(*kernel, *outputs, isAlone ? std::optional(sample->output) : std::nullopt);
    return outputs;
  };
  if (isa<KernelOp>(op))
    return give(interpretMoA(op, *kernel, *symbols, inputs, options));
  if (isa<dnf::KernelOp>(op))
    return give(interpretDNF(op, *kernel, *symbols, inputs, options, sample));
  if (isa<onf::KernelOp>(op))
    return give(interpretONF(op, *kernel, *symbols, inputs, options, sample));
  return makeError(locationText(op->getLoc()) + "a device.program runs as a whole, in its own types: use runDevice");
}

Expected<std::vector<Array>> moa::interpret(Operation *kernel, const KernelInputs &inputs,
                                            const InterpretOptions &options) {
  return run(kernel, inputs, options, nullptr);
}

static Error checkIndices(Operation *op, const Kernel &kernel, const KernelInputs &inputs, const Sample &sample) {
  if (sample.output >= kernel.resultTypes.size())
    return makeError("the kernel has " + Twine(kernel.resultTypes.size()) + " outputs, but got number " +
                     Twine(sample.output));
  auto symbols = bindInputs(op, kernel, inputs);
  if (!symbols)
    return symbols.takeError();
  auto shape = evaluateShape(kernel.resultTypes[sample.output], *symbols);
  if (!shape)
    return shape.takeError();
  for (const std::vector<int64_t> &index : sample.indices) {
    bool inside = index.size() == shape->size();
    for (size_t k = 0; inside && k < index.size(); ++k)
      inside = index[k] >= 0 && index[k] < (*shape)[k];
    if (!inside)
      return makeError("index " + indexText(index) + " is outside output '" + kernel.resultNames[sample.output] +
                       "' of shape " + indexText(*shape));
  }
  return Error::success();
}

Expected<std::vector<double>> moa::interpretElements(Operation *op, const KernelInputs &inputs, unsigned output,
                                                     ArrayRef<std::vector<int64_t>> indices,
                                                     const InterpretOptions &options) {
  auto kernel = Kernel::of(op);
  if (!kernel)
    return kernel.takeError();
  Sample sample{output, indices};
  if (Error error = checkIndices(op, *kernel, inputs, sample))
    return error;
  auto outputs = run(op, inputs, options, &sample);
  if (!outputs)
    return outputs.takeError();
  // Of a sample, dnf and onf return only the elements, in order.
  if (!isa<KernelOp>(op))
    return std::move(outputs->front().data);
  const Array &whole = (*outputs)[output];
  std::vector<double> elements;
  for (const std::vector<int64_t> &index : indices) {
    int64_t offset = 0;
    for (size_t k = 0; k < index.size(); ++k)
      offset = offset * whole.shape[k] + index[k];
    elements.push_back(whole.data[offset]);
  }
  return elements;
}
