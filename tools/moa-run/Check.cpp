//===- Check.cpp - results against the reference interpreter --------------===//

#include "Check.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <limits>
#include <random>
#include <set>

namespace moa {

double getTolerance(const KernelInfo &info, const ParameterInfo &output) {
  auto bound = [](llvm::StringRef type) {
    return llvm::StringSwitch<double>(type)
        .Case("f64", 1e-14)
        .Case("f32", 2e-6)
        .Case("f16", 4e-4)
        .Case("bf16", 3e-3)
        .Default(0);
  };
  double result = bound(output.elementType);
  if (result == 0)
    return 0;
  for (const ParameterInfo &parameter : info.parameters)
    if (!parameter.isOutput && !parameter.isScalar())
      result = std::max(result, bound(parameter.elementType));
  return result;
}

namespace {
/// Accumulates differences of finite numbers.
class Distance {
public:
  void add(double found, double expected) {
    double difference = std::fabs(found - expected);
    maximum = std::max(maximum, difference);
    differences += difference * difference;
    norm += expected * expected;
  }
  double getMaximum() const { return maximum; }
  double getRelative() const { return differences == 0 ? 0 : std::sqrt(differences / norm); }

private:
  double maximum = 0, differences = 0, norm = 0;
};
} // namespace

/// Returns the relative L2 distance of two lists, over elements that are finite in both.
static double getDistance(llvm::ArrayRef<double> found, llvm::ArrayRef<double> expected) {
  Distance distance;
  for (auto [x, y] : llvm::zip_equal(found, expected))
    if (std::isfinite(x) && std::isfinite(y))
      distance.add(x, y);
  return distance.getRelative();
}

static constexpr double kSingle = 0x1p-24;

/// Returns the unit roundoff of scores and statistics: that of f64 if an input is f64, else of f32.
static double getRoundoff(const KernelInfo &info) {
  for (const ParameterInfo &parameter : info.parameters)
    if (!parameter.isOutput && parameter.elementType == "f64")
      return 0x1p-53;
  return kSingle;
}

static std::vector<int64_t> chooseRows(int64_t allRows, int64_t rows, std::mt19937_64 &generator) {
  std::set<int64_t> chosen;
  if (rows >= allRows) {
    for (int64_t row = 0; row < allRows; ++row)
      chosen.insert(row);
  } else {
    chosen = {0, allRows - 1};
    while (int64_t(chosen.size()) < rows)
      chosen.insert(int64_t(generator() % uint64_t(allRows)));
  }
  return {chosen.begin(), chosen.end()};
}

/// Chooses rows from arrays of `each` rows. It takes several rows of few arrays, so that the error
/// of each array is known.
static std::vector<int64_t> chooseRowsOfArrays(int64_t allRows, int64_t each, int64_t rows,
                                               std::mt19937_64 &generator) {
  if (allRows == 0 || rows >= allRows)
    return chooseRows(allRows, rows, generator);
  constexpr int64_t wanted = 8; // rows of one array
  int64_t count = std::max<int64_t>(1, rows / std::min(each, wanted));
  std::vector<int64_t> arrays = chooseRows(allRows / each, count, generator), chosen;
  for (int64_t array : arrays)
    for (int64_t row : chooseRows(each, std::max<int64_t>(1, rows / int64_t(arrays.size())), generator))
      chosen.push_back(array * each + row);
  return chosen;
}

/// Returns the elements of a row to compare: all of a short row, a few of a long one, each of which
/// is likely to need a whole reduction.
static std::vector<int64_t> chooseColumns(int64_t width) {
  constexpr int64_t wholeRow = 256, samples = 8;
  std::vector<int64_t> columns;
  if (width <= wholeRow)
    for (int64_t k = 0; k < width; ++k)
      columns.push_back(k);
  else
    for (int64_t k = 0; k < samples; ++k)
      columns.push_back(k * (width - 1) / (samples - 1));
  return columns;
}

namespace {
/// The comparison of one output: the compared elements, the interpreter's values, and the reasons
/// for differences.
class OutputCheck {
public:
  OutputCheck(Compilation &compilation, const KernelInfo &info, const std::vector<ReferenceArray> &inputs,
              const SymbolValues &symbols, const HostArray &output, unsigned position)
      : compilation(compilation), info(info), inputs(inputs), symbols(symbols), output(output), position(position) {
    const std::vector<int64_t> &shape = output.getShape();
    width = shape.empty() ? 1 : shape.back();
    error.name = output.getInfo().name;
    error.tolerance = getTolerance(info, output.getInfo());
    error.allRows = width ? output.getNumElements() / width : 0;
    error.allowed = output.getInfo().within;
    isSpent = error.allowed && !compilation.spent(info.name, error.name).empty();
    if (isSpent && error.allowed->isRelative)
      error.spendable = error.allowed->epsilon;
  }

  /// Compares `rows` rows, or all if it is 0. Returns nothing after an error of the interpreter.
  std::optional<OutputError> run(int64_t rows, std::mt19937_64 &generator);

private:
  std::optional<std::vector<double>> evaluate(Level level, const Roundings &roundings, llvm::StringRef what) const;
  /// Evaluates the onf level with computed operands rounded, as the language defines.
  std::optional<std::vector<double>> evaluateRounded(uint64_t seed, llvm::StringRef what) const;
  void choose(int64_t rows, std::mt19937_64 &generator);
  void compare();
  bool measureOperands();
  bool measureConditioning();
  bool findTies();
  bool explainMismatch();
  bool measureDelivered();
  double getFound(size_t k) const { return output.get(elements[k]); }
  double getRoundoff() const { return moa::getRoundoff(info); }

  Compilation &compilation;
  const KernelInfo &info;
  const std::vector<ReferenceArray> &inputs;
  const SymbolValues &symbols;
  const HostArray &output;
  unsigned position;
  int64_t width;
  bool isWhole = false, isSpent = false;
  std::vector<int64_t> elements; // compared elements, by their position in the array
  std::vector<double> expected;
  std::vector<bool> isTie; // per element; empty if not searched for
  OutputError error;
};
} // namespace

void OutputCheck::choose(int64_t rows, std::mt19937_64 &generator) {
  isWhole = rows == 0;
  std::vector<int64_t> columns;
  if (isWhole)
    for (int64_t k = 0; k < width; ++k)
      columns.push_back(k);
  else
    columns = chooseColumns(width);
  const std::vector<int64_t> &shape = output.getShape();
  int64_t each =
      error.allowed && error.allowed->isRelative && shape.size() > 2 ? shape[shape.size() - 2] : error.allRows;
  std::vector<int64_t> chosen = chooseRowsOfArrays(error.allRows, each, isWhole ? error.allRows : rows, generator);
  error.rows = int64_t(chosen.size());
  for (int64_t row : chosen)
    for (int64_t column : columns)
      elements.push_back(row * width + column);
}

/// Returns the interpreter's values of the elements; nothing after an error.
std::optional<std::vector<double>> OutputCheck::evaluate(Level level, const Roundings &roundings,
                                                         llvm::StringRef what) const {
  Progress progress(what.str() + error.name);
  if (isWhole) {
    auto outputs = compilation.evaluate(info.name, level, inputs, roundings, symbols);
    if (!outputs)
      return std::nullopt;
    return std::move((*outputs)[position].data);
  }
  // Batches rows, because every call of the interpreter copies the inputs.
  std::vector<double> values;
  size_t batch = 16 * std::max<size_t>(1, error.rows ? elements.size() / error.rows : 1);
  for (llvm::ArrayRef<int64_t> rest = elements; !rest.empty();) {
    llvm::ArrayRef<int64_t> some = rest.take_front(batch);
    rest = rest.drop_front(some.size());
    std::vector<std::vector<int64_t>> indices;
    for (int64_t element : some)
      indices.push_back(output.getIndex(element));
    auto got = compilation.evaluateElements(info.name, level, inputs, position, indices, roundings, symbols);
    if (!got)
      return std::nullopt;
    llvm::append_range(values, *got);
    progress.advance(int64_t(values.size()), int64_t(elements.size()));
  }
  return values;
}

std::optional<std::vector<double>> OutputCheck::evaluateRounded(uint64_t seed, llvm::StringRef what) const {
  Roundings roundings(0, seed);
  roundings.operands = true;
  return evaluate(Level::ONF, roundings, what);
}

void OutputCheck::compare() {
  Distance distance;
  error.mismatch = false;
  for (size_t k = 0; k < elements.size(); ++k) {
    double found = getFound(k);
    if (!isTie.empty() && isTie[k])
      continue;
    if (std::isfinite(found) && std::isfinite(expected[k]))
      distance.add(found, expected[k]);
    else if (!(std::isnan(expected[k]) ? std::isnan(found) : found == expected[k]))
      error.mismatch = true;
  }
  error.maximum = distance.getMaximum();
  error.relative = distance.getRelative();
}

/// Measures the change of the result by the operand roundings of the language. Both values are of
/// the onf level, with and without roundings, so that a wrong onf form does not widen the bound.
bool OutputCheck::measureOperands() {
  constexpr uint64_t samples = 4; // to nearest, and at random
  auto exact = evaluate(Level::ONF, {}, "operands of ");
  if (!exact)
    return false;
  for (uint64_t seed = 0; seed < samples; ++seed) {
    auto rounded = evaluateRounded(seed, "operands of ");
    if (!rounded)
      return false;
    double distance = getDistance(*rounded, *exact);
    if (distance == 0)
      break; // nothing is rounded
    error.operands = std::max(error.operands, distance);
  }
  return true;
}

bool OutputCheck::measureConditioning() {
  auto moved = evaluate(Level::DNF, Roundings(getRoundoff()), "conditioning of ");
  if (moved)
    error.conditioning = getDistance(*moved, expected);
  return moved.has_value();
}

/// Finds integers and booleans that differ because of a rounding: the found value is between the
/// extremes of the normal forms under random roundings.
bool OutputCheck::findTies() {
  constexpr uint64_t samples = 16;
  std::vector<double> low = expected, high = expected;
  auto widen = [&](const std::vector<double> &values, llvm::ArrayRef<double> exact) {
    for (size_t k = 0; k < values.size(); ++k)
      if (exact[k] == expected[k]) {
        low[k] = std::min(low[k], values[k]);
        high[k] = std::max(high[k], values[k]);
      }
  };
  for (uint64_t seed = 0; seed < samples; ++seed) {
    auto moved = evaluate(Level::DNF, Roundings(kRoundings * getRoundoff(), seed), "ties of ");
    if (!moved)
      return false;
    widen(*moved, expected);
  }
  auto exact = evaluate(Level::ONF, {}, "ties of ");
  if (!exact)
    return false;
  for (uint64_t seed = 0; seed < samples; ++seed) {
    auto rounded = evaluateRounded(seed, "ties of ");
    if (!rounded)
      return false;
    if (*rounded == *exact)
      break; // nothing is rounded
    widen(*rounded, *exact);
  }
  isTie.assign(elements.size(), false);
  for (size_t k = 0; k < elements.size(); ++k)
    isTie[k] = getFound(k) != expected[k] && low[k] <= getFound(k) && getFound(k) <= high[k];
  error.ties = llvm::count(isTie, true);
  compare();
  return true;
}

static std::string getText(double value) {
  if (std::isnan(value))
    return "NaN";
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.4g", value);
  return text;
}

/// Finds the first NaN or infinity that only one side has, and tests if values outside of the range
/// of f32 explain all of them.
bool OutputCheck::explainMismatch() {
  Roundings roundings;
  roundings.singleRange = getRoundoff() == kSingle;
  auto limited = evaluate(Level::ONF, roundings, "range of ");
  auto exact = limited ? evaluate(Level::ONF, {}, "range of ") : std::nullopt;
  if (!exact)
    return false;
  bool leavesRange = roundings.singleRange;
  for (size_t k = 0; k < elements.size(); ++k) {
    double found = getFound(k);
    if (found == expected[k] || (std::isfinite(found) && std::isfinite(expected[k])) ||
        (std::isnan(found) && std::isnan(expected[k])))
      continue;
    leavesRange &= !std::isfinite((*limited)[k]) && std::isfinite((*exact)[k]) && std::isfinite(expected[k]);
    if (!error.note.empty())
      continue;
    std::string index;
    for (int64_t i : output.getIndex(elements[k]))
      index += (index.empty() ? "[" : ", ") + std::to_string(i);
    error.note = error.name + index + (index.empty() ? "" : "]") + " is " + getText(found) + ", and " +
                 getText(expected[k]) + " in the reference";
  }
  if (leavesRange)
    error.note += "; a value on the way there leaves the range of f32, 1.2e-38 to 3.4e+38";
  return true;
}

bool OutputCheck::measureDelivered() {
  if (!error.allowed)
    return true;
  ComparedElements compared;
  compared.expected = expected;
  for (size_t k = 0; k < elements.size(); ++k) {
    compared.found.push_back(getFound(k));
    compared.indices.push_back(output.getIndex(elements[k]));
  }
  // With mixed precision, underflow is a separate, absolute error [Def 25].
  double least = getLeastPositive(output.getInfo().elementType);
  if (isSpent)
    least = std::max(least, 0x1p-80);
  if (error.allowed->isRelative) {
    error.delivered = getRelativeError(compared, least);
    return true;
  }
  Progress progress("magnitudes of " + error.name);
  auto magnitudes = compilation.evaluateMagnitudes(info.name, inputs, position, compared.indices, symbols);
  if (!magnitudes)
    return false;
  error.delivered = getComponentwiseError(compared, *magnitudes, least);
  if (!isSpent)
    return true;
  // The relative error that corresponds to ε·|P|·|V| in every element.
  double largest = 0, size = 0;
  for (auto [magnitude, value] : llvm::zip_equal(*magnitudes, expected))
    if (std::isfinite(magnitude) && std::isfinite(value)) {
      largest = std::hypot(largest, magnitude);
      size = std::hypot(size, value);
    }
  if (size > 0)
    error.spendable = error.allowed->epsilon * largest / size;
  return true;
}

std::optional<OutputError> OutputCheck::run(int64_t rows, std::mt19937_64 &generator) {
  choose(rows, generator);
  auto values = evaluate(isWhole ? Level::MoA : Level::DNF, {}, isWhole ? "running the interpreter for " : "checking ");
  if (!values)
    return std::nullopt;
  expected = std::move(*values);
  // Results are rounded once; a value beyond the range of their type becomes an infinity.
  if (error.tolerance > 0)
    for (double &value : expected)
      if (std::isfinite(value) && !std::isfinite(output.getRounded(value)))
        value = output.getRounded(value);
  compare();
  if (!measureDelivered() || (error.mismatch && !explainMismatch()))
    return std::nullopt;
  if (error.relative <= std::max(error.tolerance, error.spendable))
    return error;
  if (error.tolerance == 0 ? !findTies() : !measureOperands())
    return std::nullopt;
  if (error.tolerance > 0 && error.relative > error.getBound() && !measureConditioning())
    return std::nullopt;
  return error;
}

std::optional<std::vector<OutputError>> checkOutputs(Compilation &compilation, const KernelInfo &info,
                                                     const std::vector<ReferenceArray> &inputs,
                                                     const SymbolValues &symbols, const std::vector<HostArray> &outputs,
                                                     int64_t rows, uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::vector<OutputError> errors;
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (!outputs[k].getInfo().decisionOf.empty())
      continue; // the reference has no such outputs
    auto error = OutputCheck(compilation, info, inputs, symbols, outputs[k], k).run(rows, generator);
    if (!error)
      return std::nullopt;
    errors.push_back(*error);
  }
  return errors;
}

} // namespace moa
