//===- OutlinePrinter.cpp - repeated steps as functions -------------------===//
#include "lib/Target/CUDA/KernelPrinter.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace moa::cuda {

std::optional<KernelPrinter::Call> KernelPrinter::findCall(Operation *op) {
  for (size_t number = function ? *function + 1 : 0; number < outlines.size(); ++number)
    for (auto [occurrence, steps] : llvm::enumerate(outlines[number].occurrences))
      if (steps.front() == op)
        return Call{&outlines[number], occurrence};
  return std::nullopt;
}

bool KernelPrinter::isStepOfFunction(Operation *op) const {
  return function && outlines[*function].occurrences.front().front()->getBlock() == op->getBlock();
}

Operation *KernelPrinter::getNext(Operation *op) const {
  if (!isStepOfFunction(op))
    return op->getNextNode();
  ArrayRef<Operation *> steps = outlines[*function].occurrences.front();
  auto next = std::next(llvm::find(steps, op));
  return next == steps.end() ? nullptr : *next;
}

/// Returns a name after the states that the function updates, or else after its outputs. For
/// example, `update_max_add`.
std::string KernelPrinter::wishForFunction(const Outline &outline) const {
  std::vector<std::string> words;
  auto add = [&](const std::string &name) {
    std::string word = StringRef(name).rtrim('_').str();
    bool isKnown = llvm::any_of(words, [&](StringRef known) { return StringRef(word).contains(known); });
    if (!word.empty() && words.size() < 3 && !isKnown)
      words.push_back(word);
  };
  auto isTaken = [&](Value output) {
    return llvm::any_of(outline.inputs,
                        [&](Value input) { return isFragment(input) && storage.of(input) == storage.of(output); });
  };
  for (Value output : llvm::make_filter_range(outline.outputs, isTaken))
    add(storage.nameOf(output));
  std::string name = words.empty() ? "make" : "update";
  if (words.empty())
    for (Value output : outline.outputs)
      add(wishFor(output, "value"));
  for (const std::string &word : words)
    name += "_" + word;
  return getIdentifier(name);
}

std::string KernelPrinter::freshParameter(llvm::StringRef wish) {
  std::string name = fresh(wish);
  scopes.back().names.pop_back(); // stays taken
  return name;
}

/// Declares the parameters for values: written arrays, other arrays, then scalars.
void KernelPrinter::declareParameters() {
  Outline &outline = outlines[*function];
  llvm::DenseSet<Value> results; // of the function's steps
  for (Operation *step : outline.occurrences.front())
    step->walk([&](Operation *op) {
      for (Value result : llvm::make_filter_range(op->getResults(), isFragment))
        results.insert(storage.of(result));
    });
  auto declare = [&](Value value, bool isWritten) {
    std::string &name = fragmentArrays[storage.of(value)];
    if (name.empty()) {
      std::string wish = storage.nameOf(value);
      bool isProduct = isa_and_nonnull<device::ContractOp, device::AwaitOp>(value.getDefiningOp());
      name = freshParameter(wish.empty() ? wishFor(value, isProduct ? "product" : "state") : wish);
      auto [type, count] = getRegisters(value);
      outline.parameters.push_back(
          {value, "", name, (isWritten ? "" : "const ") + type + " (&" + name + ")[" + count + "]"});
    }
    values[value] = {name};
  };
  for (bool isWritten : {true, false}) {
    for (Value input : llvm::make_filter_range(outline.inputs, isFragment))
      if (results.contains(storage.of(input)) == isWritten)
        declare(input, isWritten);
    for (Value output : outline.outputs)
      if (isWritten)
        declare(output, true);
  }
  for (Value input : outline.inputs)
    if (!isFragment(input)) {
      std::string name = freshParameter(wishFor(input, "value"));
      outline.parameters.push_back({input, "", name, getValueType(input.getType()).str() + " " + name});
      values[input] = {name};
    }
}

void KernelPrinter::addParameter(const Outline::Parameter &parameter) {
  if (!function)
    return;
  auto &list = outlines[*function].parameters;
  if (llvm::none_of(list, [&](const auto &known) { return known.name == parameter.name; }))
    list.push_back(parameter);
}

std::string KernelPrinter::threadPlace(const std::string &part, const std::string &wish) {
  std::string &name = threadPlaces[part];
  if (name.empty() && function) {
    name = freshParameter(wish);
    addParameter({{}, part, name, "int64_t " + name});
  }
  return name;
}

llvm::Expected<std::string> KernelPrinter::printFunction() {
  Outline &outline = outlines[*function];
  depth = 1;
  pushScope();
  scopes.back().start = 0;
  for (const Outline &other : outlines)
    used.insert(other.name);
  declareParameters();
  printFrom(outline.occurrences.front().front());
  writeArrays(scopes.back());
  std::vector<std::string> list;
  for (const Outline::Parameter &parameter : outline.parameters)
    list.push_back(parameter.declaration);
  if (!error.empty())
    return llvm::createStringError(error);
  std::string wish = wishForFunction(outline);
  outline.name = wish;
  for (unsigned k = 2; names.isTaken(outline.name) || !helpers.names.insert(outline.name).second; ++k)
    outline.name = wish + "_" + std::to_string(k);
  return "// Steps that occur in " + std::to_string(outline.occurrences.size()) + " places of " + launch.name + ".\n" +
         wrapLine("DEVICE void " + outline.name + "(" + llvm::join(list, ", ") + ") {", 4) + "\n" + body + "}\n";
}

Operation *KernelPrinter::printCall(Call call) {
  auto [outline, occurrence] = call;
  const std::vector<Operation *> &steps = outline->occurrences[occurrence];
  // Scalars between the steps do not depend on them. A function takes them as parameters.
  for (Operation *op = steps.front(); op != steps.back() && !isStepOfFunction(op); op = op->getNextNode())
    if (!llvm::is_contained(steps, op) && !isWrittenInPlace(*op, storage))
      printStatement(*op);
  std::vector<std::string> arguments;
  auto inOccurrence = [&](Value value) { return outline->values[occurrence].lookup(value); };
  for (const Outline::Parameter &parameter : outline->parameters) {
    if (!parameter.part.empty()) {
      arguments.push_back(threadPlace(parameter.part, parameter.name));
    } else if (!parameter.value) {
      addParameter(parameter);
      arguments.push_back(parameter.name);
    } else if (isFragment(parameter.value)) {
      arguments.push_back(declareFragment(inOccurrence(parameter.value), "value"));
    } else {
      arguments.push_back(value(inOccurrence(parameter.value)).text);
    }
  }
  for (Value output : outline->outputs)
    declareFragment(inOccurrence(output), "value");
  write(outline->name + "(" + llvm::join(arguments, ", ") + ");");
  return steps.back();
}

} // namespace moa::cuda
