//===- Arguments.cpp - arguments from the command line --------------------===//

#include "Arguments.h"
#include "lib/Support/MathTerm.h"
#include "lib/Support/SymExpr.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>
#include <set>

using namespace llvm;

namespace moa {

std::vector<const DLTensor *> Arguments::getTensors() {
  tensors.clear();
  for (std::vector<HostArray> *values : {&arrays, &outputs})
    for (HostArray &value : *values)
      tensors.push_back(value.getTensor());
  std::vector<const DLTensor *> pointers;
  for (const DLTensor &tensor : tensors)
    pointers.push_back(&tensor);
  return pointers;
}

std::vector<ReferenceArray> Arguments::getReferences(const KernelInfo &info) const {
  std::vector<ReferenceArray> references;
  size_t array = 0, scalar = 0;
  for (const ParameterInfo &parameter : info.parameters) {
    if (parameter.isOutput)
      continue;
    if (parameter.isScalar())
      references.push_back({{}, {getRounded(parameter, scalars[scalar++])}});
    else
      references.push_back(arrays[array++].getReference());
  }
  return references;
}

Error Arguments::checkForInterpreters(const KernelInfo &info) const {
  std::vector<ReferenceArray> references = getReferences(info);
  size_t next = 0;
  for (const ParameterInfo &parameter : info.parameters) {
    if (parameter.isOutput)
      continue;
    const ReferenceArray &array = references[next++];
    if (parameter.elementType == "i64" && llvm::any_of(array.data, [](double x) { return std::fabs(x) >= 0x1p53; }))
      return createStringError(parameter.name + " holds an integer of 2^53 or more in size, which " +
                               "the interpreters, whose numbers are float64, do not have; run it " +
                               "for the CPU without --check");
  }
  return Error::success();
}

static int64_t getBytes(const std::vector<HostArray> &values) {
  int64_t bytes = 0;
  for (const HostArray &value : values)
    bytes += value.getNumBytes();
  return bytes;
}
int64_t Arguments::getInputBytes() const { return getBytes(arrays); }
int64_t Arguments::getOutputBytes() const { return getBytes(outputs); }

Expected<Words> splitWords(const std::vector<std::string> &words, const Twine &expectation) {
  Words result;
  for (const std::string &word : words) {
    auto [name, value] = StringRef(word).split('=');
    if (name.empty() || value.empty())
      return createStringError(expectation + ", but got '" + word + "'");
    if (!result.emplace(name.str(), value.str()).second)
      return createStringError("'" + name + "' is given twice");
  }
  return result;
}

namespace {
class ArgumentReader {
public:
  ArgumentReader(Compilation &compilation, const KernelInfo &info, const Words &words, std::optional<uint64_t> seed)
      : compilation(compilation), info(info), words(words), seed(seed) {}

  Expected<Arguments> read() {
    if (Error error = checkNames())
      return error;
    if (Error error = readSymbols())
      return error;
    if (Error error = readGiven())
      return error;
    if (Error error = refuseMissing())
      return error;
    if (Error error = checkExtents())
      return error;
    if (!missing.empty())
      if (Error error = makeMissing())
        return error;
    return bind();
  }

private:
  using Symbols = std::map<std::string, int64_t>;
  /// A parameter or symbol without a value, and the word that sets it.
  struct Missing {
    std::string what, remedy;
  };

  Error fromCompilation() { return createStringError(""); }

  /// Suggests --set, as a number or a word may be meant for a compile-time parameter.
  static std::string hintAtSetting(StringRef name, StringRef value) {
    if (!all_of(value, [](char c) { return isAlnum(c); }))
      return "";
    return ("; a compile-time constant or an element type is set by --set " + name + "=" + value).str();
  }

  Error checkNames() {
    for (const auto &[name, value] : words) {
      bool known = is_contained(info.symbols, name);
      for (const ParameterInfo &parameter : info.parameters)
        known |= parameter.name == name && !parameter.isOutput;
      if (!known)
        return createStringError("kernel '" + info.name + "' has no input or run-time symbol '" + name +
                                 "': " + info.text + hintAtSetting(name, value));
    }
    return Error::success();
  }

  Error readSymbols() {
    for (const std::string &symbol : info.symbols) {
      auto word = words.find(symbol);
      if (word == words.end())
        continue;
      int64_t value = 0;
      if (StringRef(word->second).getAsInteger(10, value) || value < 0)
        return createStringError("'" + word->second + "' is no value of the symbol " + symbol +
                                 "; a size is an integer from 0 to 2^63 - 1");
      given[symbol] = value;
      origins[symbol] = "as given";
    }
    return Error::success();
  }

  /// Reads scalars and the arrays given as files. Other arrays are null in `inputs`.
  Error readGiven() {
    for (const ParameterInfo &parameter : info.parameters) {
      if (parameter.isOutput)
        continue;
      auto word = words.find(parameter.name);
      inputs.push_back(nullptr);
      if (word == words.end()) {
        if (!parameter.isScalar())
          missing.push_back(inputs.size() - 1);
        if (parameter.isScalar() || !seed)
          lacks.push_back({parameter.name + " : " + getTypeText(parameter),
                           parameter.name + (parameter.isScalar() ? "=VALUE" : "=FILE.npy")});
      } else if (parameter.isScalar()) {
        auto scalar = parseScalar(parameter, word->second);
        if (!scalar)
          return scalar.takeError();
        result.scalars.push_back(*scalar);
        result.scalarInfos.push_back(parameter);
      } else {
        auto value = readArray(parameter, word->second);
        if (!value)
          return value.takeError();
        addExtents(*value, word->second);
        inputs.back() = std::make_unique<HostArray>(std::move(*value));
      }
    }
    return Error::success();
  }

  /// Sets the symbols that are the whole extent of an axis of a given array.
  void addExtents(const HostArray &value, const std::string &file) {
    const std::vector<std::string> &extents = value.getInfo().extents;
    for (size_t axis = 0; axis < extents.size(); ++axis)
      if (is_contained(info.symbols, extents[axis]) && given.emplace(extents[axis], value.getShape()[axis]).second)
        origins[extents[axis]] = "as " + value.getInfo().name + " of " + file + " has it";
  }

  /// Reports everything without a value in one message.
  Error refuseMissing() {
    bool needsFiles = !missing.empty() && !seed;
    if (!missing.empty() && seed)
      for (const std::string &symbol : info.symbols)
        if (!given.count(symbol))
          lacks.push_back({"the symbol " + symbol, symbol + "=SIZE"});
    if (lacks.empty())
      return Error::success();
    constexpr size_t shown = 8;
    auto list = [&](auto part, const char *separator) {
      std::vector<std::string> texts;
      for (const Missing &lack : ArrayRef(lacks).take_front(shown))
        texts.push_back(lack.*part);
      std::string rest = std::to_string(lacks.size() - texts.size());
      return join(texts, separator) + (lacks.size() > shown ? " and " + rest + " more" : "");
    };
    return createStringError(list(&Missing::what, ", ") +
                             (lacks.size() == 1 ? " has no value; give " : " have no value; give ") +
                             list(&Missing::remedy, " ") + (needsFiles ? ", or --random SEED for arrays" : ""));
  }

  /// Checks that extents of arrays from files agree with the known symbols and the declared
  /// numbers.
  Error checkExtents() {
    for (const std::unique_ptr<HostArray> &input : inputs) {
      if (!input)
        continue;
      const ParameterInfo &parameter = input->getInfo();
      for (size_t axis = 0; axis < parameter.extents.size(); ++axis) {
        const std::string &extent = parameter.extents[axis];
        auto expected = evaluate(extent, given);
        if (!expected || *expected == input->getShape()[axis])
          continue;
        std::string message = parameter.name + ": " + words.at(parameter.name) + ": axis " + std::to_string(axis) +
                              " of '" + parameter.name + "' has extent " + std::to_string(input->getShape()[axis]) +
                              ", but '" + extent + "' ";
        if (is_contained(info.symbols, extent))
          return createStringError(message + "is " + std::to_string(*expected) + ", " + origins[extent]);
        if (StringRef(extent).getAsInteger(10, *expected))
          return createStringError(message + "is " + std::to_string(*expected) + getOrigins(extent));
        const std::string constant = axis < parameter.constants.size() ? parameter.constants[axis] : "";
        if (constant.empty())
          return createStringError(message + "is declared");
        return createStringError(message + "is declared by the constant " + constant + "; set it, --set " + constant +
                                 "=" + std::to_string(input->getShape()[axis]));
      }
    }
    return Error::success();
  }

  /// Prints the origins of the symbols of an extent, for example " with N = 3, as given".
  std::string getOrigins(const std::string &extent) {
    std::set<std::string> names;
    SymExpr::parse(extent)->collectSymbols(names);
    std::string text;
    for (const std::string &name : names)
      text += (text.empty() ? " with " : "; ") + name + " = " + std::to_string(given[name]) + ", " + origins[name];
    return text;
  }

  Error makeMissing() {
    auto shapes = compilation.shapes(info.name, given);
    if (!shapes)
      return fromCompilation();
    for (size_t position : missing) {
      auto value = HostArray::make(info.parameters[position], (*shapes)[position]);
      if (!value)
        return value.takeError();
      if (value->getNumElements() == 0) {
        inputs[position] = std::make_unique<HostArray>(std::move(*value));
        continue;
      }
      const ParameterInfo &parameter = info.parameters[position];
      uint64_t own = *seed * 1000003 + position;
      auto range = elementRange(parameter);
      if (!range)
        return range.takeError();
      inputs[position] = std::make_unique<HostArray>(std::move(*value));
      if (parameter.range.empty() || isInteger(parameter.elementType))
        fillRandom(*inputs[position], own, int64_t(range->first),
                   int64_t(std::min(range->second, 0x1.fffffffffffffp62)));
      else
        fillUniform(*inputs[position], own, range->first, range->second);
    }
    return Error::success();
  }

  /// Evaluates an expression over the symbols; returns nothing if one has no value.
  static std::optional<int64_t> evaluate(StringRef text, const Symbols &symbols) {
    auto expression = SymExpr::parse(text);
    return expression ? expression->evaluate(symbols) : std::nullopt;
  }

  /// The bounds of a declared range. Integers are exact below 2^53, as are the elements.
  struct Range {
    double first, second;
    bool isOfIntegers;
    bool isEmpty() const { return isOfIntegers ? first >= second : first > second; }
    bool has(double element) const { return element >= first && (isOfIntegers ? element < second : element <= second); }
  };

  /// Evaluates one bound: an expression over the symbols, or a real number.
  static std::optional<double> endOf(StringRef text, const Symbols &symbols) {
    double real = 0;
    if (auto value = evaluate(text, symbols))
      return double(*value);
    return text.getAsDouble(real) ? std::nullopt : std::optional<double>(real);
  }

  /// Returns a parameter's declared range, or nothing if a symbol has no value.
  static std::optional<Range> rangeOf(const ParameterInfo &parameter, const Symbols &symbols) {
    auto [low, high] = StringRef(parameter.range).split("..");
    auto first = endOf(low, symbols), end = endOf(high, symbols);
    if (!first || !end)
      return std::nullopt;
    bool isOfIntegers = isInteger(parameter.elementType);
    // Round the bounds to the element type, as elements are.
    if (!isOfIntegers)
      for (double *limit : {&*first, &*end})
        *limit = getRounded(parameter, Scalar(*limit));
    return Range{*first, *end, isOfIntegers};
  }

  /// Returns the range of random elements: the declared one, or 0 ≤ element < 8 for integers
  /// without.
  Expected<Range> elementRange(const ParameterInfo &parameter) {
    if (parameter.range.empty())
      return Range{0, 8, true};
    auto range = rangeOf(parameter, given);
    if (!range || range->isEmpty())
      return createStringError(parameter.name + " : " + getTypeText(parameter) + " in " + parameter.range +
                               ": the range is empty at these sizes, give " + parameter.name + "=FILE.npy");
    return *range;
  }

  /// Checks that elements are in their declared range. Code relies on ranges of integers; an
  /// element outside would cause reads outside of arrays.
  Error checkRange(const HostArray &value, const Symbols &symbols) {
    const ParameterInfo &parameter = value.getInfo();
    auto range = parameter.range.empty() ? std::nullopt : rangeOf(parameter, symbols);
    for (int64_t k = 0; range && k < value.getNumElements(); ++k) {
      double element = value.get(k);
      if (range->has(element))
        continue;
      std::string index;
      for (int64_t i : value.getIndex(k))
        index += (index.empty() ? "" : ", ") + std::to_string(i);
      return outside(parameter, (index.empty() ? "" : "[" + index + "]"), element, *range);
    }
    return Error::success();
  }

  static Error outside(const ParameterInfo &parameter, const std::string &index, double element, const Range &range) {
    auto text = [&](double number) {
      return range.isOfIntegers ? std::to_string(int64_t(number)) : formatNumber(number);
    };
    std::string ends = text(range.first) + ".." + text(range.second);
    return createStringError(parameter.name + index + " is " + text(element) + ", outside of its declared range " +
                             parameter.range + (ends == parameter.range ? "" : ", which is " + ends + " here"));
  }

  Error checkScalars(const Symbols &symbols) {
    size_t next = 0;
    for (const ParameterInfo &parameter : info.parameters) {
      if (!parameter.isScalar())
        continue;
      double value = getRounded(parameter, result.scalars[next++]);
      auto range = parameter.range.empty() ? std::nullopt : rangeOf(parameter, symbols);
      if (range && !range->has(value))
        return outside(parameter, "", value, *range);
    }
    return Error::success();
  }

  Expected<Arguments> bind() {
    std::vector<std::vector<int64_t>> shapes;
    for (std::unique_ptr<HostArray> &input : inputs)
      shapes.push_back(input ? input->getShape() : std::vector<int64_t>());
    auto symbols = compilation.bindSymbols(info.name, shapes, given);
    if (!symbols)
      return fromCompilation();
    if (Error error = checkScalars(*symbols))
      return error;
    for (std::unique_ptr<HostArray> &input : inputs) {
      if (!input)
        continue;
      if (Error error = checkRange(*input, *symbols))
        return error;
      result.arrays.push_back(std::move(*input));
    }
    result.symbols = *symbols;
    auto all = compilation.shapes(info.name, *symbols);
    if (!all)
      return fromCompilation();
    for (size_t k = 0; k < info.parameters.size(); ++k)
      if (info.parameters[k].isOutput) {
        auto output = HostArray::make(info.parameters[k], (*all)[k]);
        if (!output)
          return output.takeError();
        result.outputs.push_back(std::move(*output));
      }
    return std::move(result);
  }

  Compilation &compilation;
  const KernelInfo &info;
  const Words &words;
  std::optional<uint64_t> seed;
  std::map<std::string, int64_t> given;
  std::vector<std::unique_ptr<HostArray>> inputs;
  std::vector<size_t> missing;
  std::vector<Missing> lacks;
  std::map<std::string, std::string> origins; // of the symbols' values
  Arguments result;
};
} // namespace

Expected<Arguments> makeArguments(Compilation &compilation, const KernelInfo &info, const Words &words,
                                  std::optional<uint64_t> seed) {
  return ArgumentReader(compilation, info, words, seed).read();
}

} // namespace moa
