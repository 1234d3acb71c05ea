//===- Check.cpp - results against the reference interpreter --------------===//

#include "Check.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSwitch.h"
#include <cmath>
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
/// Adds up differences.
class Comparison {
public:
  void add(double found, double expected) {
    if (!std::isfinite(found) || !std::isfinite(expected)) {
      bool same = std::isnan(expected) ? std::isnan(found) : found == expected;
      mismatch |= !same;
      return;
    }
    double difference = std::fabs(found - expected);
    maximum = std::max(maximum, difference);
    differences += difference * difference;
    norm += expected * expected;
  }
  void finish(OutputError &error) const {
    error.maximum = maximum;
    error.mismatch = mismatch;
    error.relative = differences == 0 ? 0 : std::sqrt(differences / norm);
  }

private:
  double maximum = 0, differences = 0, norm = 0;
  bool mismatch = false;
};
} // namespace

/// The relative L2 distance of two lists where both are finite.
static double getDistance(llvm::ArrayRef<double> found, llvm::ArrayRef<double> expected) {
  Comparison comparison;
  for (auto [x, y] : llvm::zip_equal(found, expected))
    if (std::isfinite(x) && std::isfinite(y))
      comparison.add(x, y);
  OutputError error;
  comparison.finish(error);
  return error.relative;
}

/// The unit roundoff of what scores and statistics are computed in: f64 if an
/// input is f64, else f32.
static double getRoundoff(const KernelInfo &info) {
  for (const ParameterInfo &parameter : info.parameters)
    if (!parameter.isOutput && parameter.elementType == "f64")
      return 0x1p-53;
  return 0x1p-24;
}

/// The rows to compare, ascending.
static std::vector<int64_t> chooseRows(int64_t allRows, int64_t rows,
                                       std::mt19937_64 &generator) {
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

/// The elements of a row to compare: all of a short row, some of a long one,
/// whose elements are likely to cost a whole reduction each.
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

/// The multi-indices of elements of one row.
static std::vector<std::vector<int64_t>>
getIndices(const std::vector<int64_t> &shape, int64_t row,
           llvm::ArrayRef<int64_t> columns) {
  std::vector<int64_t> index(shape.size(), 0);
  for (int64_t axis = int64_t(shape.size()) - 2; axis >= 0; --axis) {
    index[axis] = row % shape[axis];
    row /= shape[axis];
  }
  std::vector<std::vector<int64_t>> indices;
  for (int64_t k : columns) {
    if (!shape.empty())
      index.back() = k;
    indices.push_back(index);
  }
  return indices;
}

static std::optional<OutputError>
checkRows(Compilation &unit, const KernelInfo &info,
          const std::vector<ReferenceArray> &inputs, const SymbolValues &symbols,
          const Value &output, unsigned position, int64_t rows,
          std::mt19937_64 &generator) {
  OutputError error;
  error.name = output.getInfo().name;
  error.tolerance = getTolerance(info, output.getInfo());
  const std::vector<int64_t> &shape = output.getShape();
  int64_t width = shape.empty() ? 1 : shape.back();
  error.allRows = width ? output.getNumElements() / width : 0;
  std::vector<int64_t> chosen = chooseRows(error.allRows, rows, generator);
  std::vector<int64_t> columns = chooseColumns(width);
  // Every call of the interpreter takes the inputs anew, so rows go in batches.
  auto evaluate = [&](double roundoff, llvm::StringRef what)
      -> std::optional<std::vector<double>> {
    Progress progress(what.str() + error.name);
    std::vector<double> values;
    int64_t done = 0;
    for (llvm::ArrayRef<int64_t> rest = chosen; !rest.empty();) {
      llvm::ArrayRef<int64_t> batch = rest.take_front(16);
      rest = rest.drop_front(batch.size());
      std::vector<std::vector<int64_t>> indices;
      for (int64_t row : batch)
        llvm::append_range(indices, getIndices(shape, row, columns));
      auto some = unit.evaluateElements(info.name, Level::DNF, inputs, position,
                                        indices, roundoff, symbols);
      if (!some)
        return std::nullopt;
      llvm::append_range(values, *some);
      done += int64_t(batch.size());
      progress.advance(done, int64_t(chosen.size()));
    }
    return values;
  };
  auto expected = evaluate(0, "checking ");
  if (!expected)
    return std::nullopt;
  error.rows = int64_t(chosen.size());
  Comparison comparison;
  for (size_t k = 0; k < expected->size(); ++k)
    comparison.add(output.get(chosen[k / columns.size()] * width +
                              columns[k % columns.size()]),
                   (*expected)[k]);
  comparison.finish(error);
  if (error.relative > error.tolerance && error.tolerance > 0) {
    auto moved = evaluate(getRoundoff(info), "conditioning of ");
    if (!moved)
      return std::nullopt;
    error.conditioning = getDistance(*moved, *expected);
  }
  return error;
}

/// Every element, on the moa level.
static std::optional<std::vector<OutputError>>
checkAll(Compilation &unit, const KernelInfo &info,
         const std::vector<ReferenceArray> &inputs, const SymbolValues &symbols,
         const std::vector<Value> &outputs) {
  Progress progress("running the interpreter");
  auto expected = unit.evaluate(info.name, Level::MoA, inputs, 0, symbols);
  if (!expected)
    return std::nullopt;
  std::vector<OutputError> errors;
  for (size_t k = 0; k < outputs.size(); ++k) {
    OutputError error;
    error.name = outputs[k].getInfo().name;
    error.tolerance = getTolerance(info, outputs[k].getInfo());
    const std::vector<int64_t> &shape = outputs[k].getShape();
    int64_t width = shape.empty() ? 1 : shape.back();
    error.rows = error.allRows =
        width ? outputs[k].getNumElements() / width : 0;
    Comparison comparison;
    for (int64_t i = 0; i < outputs[k].getNumElements(); ++i)
      comparison.add(outputs[k].get(i), (*expected)[k].data[i]);
    comparison.finish(error);
    errors.push_back(error);
  }
  if (llvm::all_of(errors, [](const OutputError &error) {
        return error.relative <= error.tolerance || error.tolerance == 0;
      }))
    return errors;
  auto moved = unit.evaluate(info.name, Level::DNF, inputs, getRoundoff(info), symbols);
  if (!moved)
    return std::nullopt;
  for (auto [k, error] : llvm::enumerate(errors))
    if (error.relative > error.tolerance && error.tolerance > 0)
      error.conditioning = getDistance((*moved)[k].data, (*expected)[k].data);
  return errors;
}

std::optional<std::vector<OutputError>>
checkOutputs(Compilation &unit, const KernelInfo &info,
             const std::vector<ReferenceArray> &inputs, const SymbolValues &symbols,
             const std::vector<Value> &outputs, int64_t rows, uint64_t seed) {
  if (rows == 0)
    return checkAll(unit, info, inputs, symbols, outputs);
  std::mt19937_64 generator(seed);
  std::vector<OutputError> errors;
  for (size_t k = 0; k < outputs.size(); ++k) {
    auto error = checkRows(unit, info, inputs, symbols, outputs[k], k, rows, generator);
    if (!error)
      return std::nullopt;
    errors.push_back(*error);
  }
  return errors;
}

} // namespace moa
