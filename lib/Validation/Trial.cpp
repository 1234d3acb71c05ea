//===- Trial.cpp - the values of two levels at a random point --------------===//
#include "lib/Validation/Trial.h"
#include "lib/Interpreter/Kernel.h"
#include "lib/Support/SplitMix64.h"
#include "lib/Validation/Validation.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>
#include <tuple>

using namespace mlir;
using namespace moa;
using namespace moa::validation;

using Sizes = std::map<std::string, int64_t>;

/// Operations for one element of each output that take a few hundred microseconds, and as
/// many as a kernel with large extents may take.
static constexpr double kLittleWork = 5e3, kMostWork = 3e5;

//===----------------------------------------------------------------------===//
// Cost
//===----------------------------------------------------------------------===//

static std::optional<int64_t> valueOf(const SymExpr &expr, const Sizes &sizes) {
  return expr.evaluate([&](StringRef name) -> std::optional<int64_t> {
    auto it = sizes.find(name.str());
    return it == sizes.end() ? std::nullopt : std::optional(it->second);
  });
}

namespace {
/// What one element of each output takes, in operations: their numbers by the folds around.
class Cost {
public:
  explicit Cost(onf::KernelOp kernel) {
    for (auto nest : kernel.getBody().front().getOps<onf::ForOp>())
      add(nest.getBody(), {});
  }
  /// Whether the range of a fold depends on a symbol.
  bool isFolded(const std::string &symbol) const { return folded.count(symbol); }
  double of(const Sizes &sizes) const {
    double total = 0;
    for (const auto &[extents, count] : groups) {
      double steps = count;
      for (const SymExpr &extent : extents)
        steps *= double(valueOf(extent, sizes).value_or(1));
      total += steps;
    }
    return total;
  }

private:
  /// Whether elements of a state are read by a fold. Where only the loop of an output reads
  /// them, one element of the output needs one of the state.
  static bool isReadInFold(onf::AccOp acc) {
    auto fold = cast<onf::FoldOp>(acc->getParentOp());
    auto yield = cast<onf::YieldOp>(fold.getBody().front().back());
    for (auto [value, result] : llvm::zip(yield.getValues(), fold.getResults()))
      if (value == acc.getResult())
        return llvm::any_of(result.getUsers(), [](Operation *user) {
          return isa<onf::FoldOp>(user->getParentOp());
        });
    return true;
  }
  void add(Region &region, SmallVector<SymExpr> around) {
    double count = 0;
    for (Operation &op : region.getOps()) {
      ++count;
      SmallVector<SymExpr> inside(around);
      auto enter = [&](StringRef extent) {
        inside.push_back(SymExpr::parse(extent).value_or(SymExpr(1)));
        inside.back().collectSymbols(folded);
      };
      if (auto fold = dyn_cast<onf::FoldOp>(op))
        enter(fold.getExtent());
      else if (auto acc = dyn_cast<onf::AccOp>(op); acc && isReadInFold(acc))
        llvm::for_each(acc.getExtents().getAsValueRange<StringAttr>(), enter);
      for (Region &inner : op.getRegions())
        if (!inner.empty())
          add(inner, inside);
    }
    groups.emplace_back(around, count);
  }
  std::vector<std::pair<SmallVector<SymExpr>, double>> groups;
  std::set<std::string> folded;
};
} // namespace

//===----------------------------------------------------------------------===//
// Points
//===----------------------------------------------------------------------===//

namespace {
/// The extents of all arrays of a kernel, read once.
struct Extents {
  explicit Extents(const interp::Kernel &kernel) {
    for (const auto &types : {kernel.argTypes, kernel.resultTypes})
      for (ArrayType type : types) {
        auto &extents = arrays.emplace_back();
        for (unsigned axis = 0; axis < type.getRank(); ++axis)
          extents.push_back(type.getExtent(axis));
      }
  }
  /// The shapes at these sizes, or nothing where an extent has no value; adds what it takes
  /// to make the elements to `work`, in operations.
  std::optional<std::vector<std::vector<int64_t>>> at(const Sizes &sizes, double &work) const {
    constexpr double perElement = 0.25;
    std::vector<std::vector<int64_t>> shapes;
    for (const auto &extents : arrays) {
      auto &shape = shapes.emplace_back();
      double count = 1;
      for (const SymExpr &extent : extents) {
        shape.push_back(valueOf(extent, sizes).value_or(-1));
        if (shape.back() < 0)
          return std::nullopt;
        count *= double(shape.back());
      }
      work += perElement * count;
    }
    return shapes;
  }
  std::vector<std::vector<SymExpr>> arrays;
};
} // namespace

namespace {
/// What constraints say of single symbols.
struct Hints {
  explicit Hints(const interp::Kernel &kernel) {
    for (int64_t size : {1, 2, 4, 8, 16, 32})
      sizes.push_back(size);
    for (const std::string &constraint : kernel.constraints) {
      addNumbers(constraint);
      SmallVector<StringRef> parts;
      StringRef(constraint).split(parts, "&&");
      for (StringRef part : parts) {
        auto [left, right] = part.split("==");
        for (auto [name, text] : {std::pair(left.trim(), right.trim()), std::pair(right.trim(), left.trim())})
          if (auto value = SymExpr::parse(text); value && !text.empty() && llvm::is_contained(kernel.symbols, name)) {
            equal.emplace_back(name.str(), *value);
            break;
          }
      }
    }
  }
  /// What is said to be equal to something else becomes it.
  void apply(Sizes &chosen) const {
    for (const auto &[name, value] : equal)
      if (auto known = valueOf(value, chosen); known && *known >= 0)
        chosen[name] = *known;
  }

  /// What divides one another more often than numbers in a row do, and the numbers of the
  /// constraints.
  SmallVector<int64_t> sizes;

private:
  void addNumbers(StringRef text) {
    constexpr int64_t most = 4096;
    while (!text.empty()) {
      text = text.drop_until([](char c) { return llvm::isDigit(c); });
      StringRef digits = text.take_while([](char c) { return llvm::isDigit(c); });
      text = text.drop_front(digits.size());
      if (int64_t number; !digits.getAsInteger(10, number) && number > 1 && number <= most)
        sizes.append({number, number + 1, 2 * number});
    }
  }
  std::vector<std::pair<std::string, SymExpr>> equal;
};
} // namespace

/// How many sizes are no 1, and how many differ: what is said of one axis is then no other's.
static unsigned varietyOf(const Sizes &sizes) {
  std::set<int64_t> values;
  unsigned many = 0;
  for (const auto &[name, size] : sizes) {
    values.insert(size);
    many += size > 1;
  }
  return many + values.size();
}

/// Of some sizes that satisfy the constraints the most various ones, of these those with the
/// most work; of sizes that are much work those with the least. Later attempts are smaller.
std::optional<Sizes> Trial::pickSizes(uint64_t seed) {
  constexpr unsigned attempts = 150, enough = 12;
  auto description = llvm::cantFail(interp::Kernel::of(kernel));
  Cost cost(loops);
  Extents extents(description);
  Hints hints(description);
  SplitMix64 random{seed};
  std::optional<Sizes> best;
  std::tuple<bool, unsigned, double> bestScore;
  for (unsigned attempt = 0; attempt < attempts && !(best && attempt >= enough); ++attempt) {
    Sizes sizes;
    for (const std::string &name : description.symbols) {
      int64_t most = cost.isFolded(name) ? 9 - int64_t(attempt / 20) : 4;
      sizes[name] = attempt % 3 == 2 ? hints.sizes[random.below(hints.sizes.size())] : 1 + random.below(most);
    }
    hints.apply(sizes);
    double work = cost.of(sizes);
    auto shapes = extents.at(sizes, work);
    bool isLittle = work <= kLittleWork;
    std::tuple score(isLittle, isLittle ? varietyOf(sizes) : 0, isLittle ? work : -work);
    if (!shapes || work > kMostWork || (best && score <= bestScore))
      continue;
    shapes->resize(description.argTypes.size());
    auto bound = bindSymbols(kernel, *shapes, sizes);
    if (!bound) {
      llvm::consumeError(bound.takeError());
      continue;
    }
    bestScore = score;
    best = std::move(sizes);
  }
  return best;
}

/// The least and one more than the largest value of an integer parameter.
static std::pair<int64_t, int64_t> rangeOf(Operation *kernel, unsigned number, Type element,
                                           const Sizes &sizes) {
  if (element.isInteger(1))
    return {0, 2};
  auto ranges = kernel->getAttrOfType<ArrayAttr>(kRangesAttr);
  StringRef text = ranges && number < ranges.size() ? cast<StringAttr>(ranges[number]).getValue() : "";
  if (auto [low, high] = text.split(".."); !high.empty()) {
    auto from = interp::evaluate(low, sizes), to = interp::evaluate(high, sizes);
    if (from && to)
      return {*from, *to};
    llvm::consumeError(llvm::joinErrors(from.takeError(), to.takeError()));
  }
  int64_t most = 4; // offsets and lengths about the extents
  for (const auto &[name, size] : sizes)
    most = std::max(most, size + 2);
  return {0, most};
}

std::optional<KernelInputs> Trial::pickInputs(uint64_t seed) {
  auto sizes = pickSizes(seed);
  if (!sizes)
    return std::nullopt;
  auto description = llvm::cantFail(interp::Kernel::of(kernel));
  SplitMix64 random{seed};
  // Of positive elements more functions have values; scalars are scales, bounds and the like.
  bool isPositive = seed % 2 == 1;
  KernelInputs inputs;
  inputs.symbols = *sizes;
  for (auto [k, type] : llvm::enumerate(description.argTypes)) {
    Array array;
    array.shape = llvm::cantFail(interp::evaluateShape(type, *sizes));
    array.data.resize(interp::countOf(array.shape));
    Type element = type.getElementType();
    bool isFloat = isa<FloatType>(element);
    auto [low, high] = isFloat ? std::pair<int64_t, int64_t>() : rangeOf(kernel, k, element, *sizes);
    if (!isFloat && low >= high)
      return std::nullopt; // no element has a value
    // Large arrays repeat themselves, at a distance that divides no extent of interest.
    constexpr size_t period = 1021;
    for (size_t i = 0; i < array.data.size(); ++i)
      array.data[i] = i >= period  ? array.data[i - period]
                      : !isFloat   ? double(low + random.below(uint64_t(high) - uint64_t(low)))
                      : isPositive || array.shape.empty() ? 0.25 + random.uniform()
                                                          : 3 * random.uniform() - 1.5;
    inputs.arrays.push_back(std::move(array));
  }
  return inputs;
}

/// The values of a kernel at a point, per output.
static llvm::Expected<std::vector<std::vector<double>>>
valuesAt(Operation *kernel, const Point &point, const InterpretOptions &options = {}) {
  std::vector<std::vector<double>> values;
  for (auto [output, indices] : llvm::enumerate(point.elements)) {
    auto found = indices.empty() ? std::vector<double>()
                                 : interpretElements(kernel, point.inputs, output, indices, options);
    if (!found)
      return found.takeError();
    values.push_back(std::move(*found));
  }
  return values;
}

bool Trial::tryPoint(uint64_t seed) {
  auto inputs = pickInputs(seed);
  if (!inputs) {
    reason = "no small sizes were found that satisfy the constraints, or they take too long";
    return false;
  }
  Point next;
  SplitMix64 random{seed};
  for (const std::vector<int64_t> &shape : llvm::cantFail(outputShapes(kernel, inputs->symbols))) {
    auto &chosen = next.elements.emplace_back();
    if (interp::countOf(shape) == 0)
      continue;
    std::vector<int64_t> index;
    for (int64_t extent : shape)
      index.push_back(random.below(extent));
    chosen.push_back(std::move(index));
  }
  next.inputs = std::move(*inputs);
  auto values = valuesAt(kernel, next);
  if (!values) {
    // Elements at random may point outside of arrays, where the caller's do not.
    reason = llvm::toString(values.takeError());
    return false;
  }
  next.values = std::move(*values);
  bool says = llvm::any_of(next.values, [](const std::vector<double> &output) {
    return llvm::any_of(output, [](double value) { return std::isfinite(value) && value != 0; });
  });
  // A point where nothing is present says less, but something.
  if (says || !point)
    point = std::move(next);
  return says;
}

Trial::Trial(Operation *kernel, onf::KernelOp loops) : kernel(kernel), loops(loops) {
  constexpr unsigned attempts = 4;
  for (unsigned seed = 0; seed < attempts && !tryPoint(seed); ++seed)
    ;
}

std::string Trial::getSizes() const {
  std::string text;
  if (point)
    for (const auto &[name, size] : point->inputs.symbols)
      text += (text.empty() ? "" : ", ") + name + " = " + std::to_string(size);
  return text;
}

//===----------------------------------------------------------------------===//
// Comparison
//===----------------------------------------------------------------------===//

/// Whether a kernel asks computed floats whether they are equal. Values that are equal by a
/// rule may be so on one level and differ by a rounding on the other.
static bool comparesForEquality(Operation *kernel) {
  return kernel
      ->walk([](arith::CmpFOp op) {
        switch (op.getPredicate()) {
        case arith::CmpFPredicate::OEQ:
        case arith::CmpFPredicate::ONE:
        case arith::CmpFPredicate::UEQ:
        case arith::CmpFPredicate::UNE: return WalkResult::interrupt();
        default: return WalkResult::advance();
        }
      })
      .wasInterrupted();
}

/// Whether rounding explains a difference: one of the two kernels moves about as far when each
/// of its operations is rounded at random, as it does where a problem is badly conditioned or
/// the last bit decides a comparison.
bool Trial::isExplained(Operation *other, const Difference &difference) const {
  constexpr unsigned samples = 24;
  constexpr double margin = 16;
  if (comparesForEquality(kernel))
    return true;
  double moved = 0;
  Point one;
  one.inputs = point->inputs;
  one.elements.resize(point->elements.size());
  one.elements[difference.output] = {difference.index};
  for (unsigned k = 0; k < samples; ++k)
    for (auto [op, value] : {std::pair(kernel, difference.expected), std::pair(other, difference.found)}) {
      InterpretOptions options;
      options.roundoff = 0x1p-40;
      options.roundoffSeed = k + 1;
      auto values = valuesAt(op, one, options);
      if (!values) {
        llvm::consumeError(values.takeError());
        return true;
      }
      double distance = std::fabs((*values)[difference.output][0] - value);
      moved = std::max(moved, std::isfinite(value) && std::isnan(distance) ? INFINITY : distance);
    }
  return std::fabs(difference.found - difference.expected) <= margin * moved;
}

std::optional<Difference> Trial::compare(Operation *other) const {
  constexpr double tolerance = 1e-11;
  if (!point)
    return std::nullopt;
  auto found = valuesAt(other, *point);
  if (!found) {
    // What is assumed of elements need not hold of these.
    if (kernel->hasAttr(kAssumesAttr))
      return std::nullopt;
    Difference difference;
    difference.error = llvm::toString(found.takeError());
    return difference;
  }
  for (unsigned output = 0; output < found->size(); ++output)
    for (size_t k = 0; k < (*found)[output].size(); ++k) {
      double want = point->values[output][k], got = (*found)[output][k];
      // The rules say nothing of terms that are not finite, and assume that none becomes so.
      if (!std::isfinite(want) || !std::isfinite(got) ||
          std::fabs(got - want) <= tolerance * std::fabs(want))
        continue;
      Difference difference{output, point->elements[output][k], want, got, ""};
      if (!isExplained(other, difference))
        return difference;
    }
  return std::nullopt;
}
