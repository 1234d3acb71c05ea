//===- Trial.cpp - the values of two levels at some points -----------------===//
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

/// Work limits in operations: one element of each output in a few hundred microseconds; a kernel
/// with large extents; all points around numbers, with whole temporaries.
static constexpr double kLittleWork = 5e3, kMostWork = 3e5, kMostWholeWork = 3e6;

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
/// Counts the operations for one element of each output, by their enclosing folds.
class Cost {
public:
  /// With `isWhole`, counts all elements of every temporary, as the interpreter computes them.
  explicit Cost(onf::KernelOp kernel, bool isWhole = false) {
    unsigned numCallers = kernel.getArgNames().size() + kernel.getResultNames().size();
    for (auto nest : kernel.getBody().front().getOps<onf::ForOp>()) {
      bool storesTemporary = false;
      nest.walk([&](onf::StoreOp store) {
        storesTemporary |= cast<BlockArgument>(store.getArray()).getArgNumber() >= numCallers;
      });
      SmallVector<SymExpr> around;
      if (isWhole && storesTemporary)
        llvm::append_range(around, nest.getExtents().getAsValueRange<ExprAttr>());
      add(nest.getBody(), around);
    }
  }
  /// Returns true if the range of a fold depends on a symbol.
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
  /// Returns true if a fold reads elements of a state. If only the loop of an output reads them,
  /// one element of the output needs one element of the state.
  static bool isReadInFold(onf::AccOp acc) {
    auto fold = cast<onf::FoldOp>(acc->getParentOp());
    auto yield = cast<onf::YieldOp>(fold.getBody().front().back());
    for (auto [value, result] : llvm::zip(yield.getValues(), fold.getResults()))
      if (value == acc.getResult())
        return llvm::any_of(result.getUsers(), [](Operation *user) { return isa<onf::FoldOp>(user->getParentOp()); });
    return true;
  }
  void add(Region &region, SmallVector<SymExpr> around) {
    double count = 0;
    for (Operation &op : region.getOps()) {
      ++count;
      SmallVector<SymExpr> inside(around);
      auto enter = [&](const SymExpr &extent) {
        inside.push_back(extent);
        inside.back().collectSymbols(folded);
      };
      if (auto fold = dyn_cast<onf::FoldOp>(op))
        enter(fold.getExtent());
      else if (auto acc = dyn_cast<onf::AccOp>(op); acc && isReadInFold(acc))
        llvm::for_each(acc.getExtents().getAsValueRange<ExprAttr>(), enter);
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
/// The extents of all arrays of a kernel, parsed once.
struct Extents {
  explicit Extents(const interp::Kernel &kernel) {
    for (const auto &types : {kernel.argTypes, kernel.resultTypes})
      for (ArrayType type : types) {
        auto &extents = arrays.emplace_back();
        for (unsigned axis = 0; axis < type.getRank(); ++axis)
          extents.push_back(type.getExtent(axis));
      }
  }
  /// Returns the shapes at these sizes, or nothing if an extent has no value. Adds the operations
  /// needed to make the elements to `work`.
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
/// Equalities and numbers in the constraints.
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
  /// Sets each symbol that a constraint equates with an expression to the expression's value.
  void apply(Sizes &chosen) const {
    for (const auto &[name, value] : equal)
      if (auto known = valueOf(value, chosen); known && *known >= 0)
        chosen[name] = *known;
  }

  /// Candidate sizes: powers of two, which divide one another more often than consecutive numbers
  /// do, and numbers near those in constraints.
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

/// Counts the sizes above 1 and the distinct sizes. With high variety, mixing up two axes shows.
static unsigned varietyOf(const Sizes &sizes) {
  std::set<int64_t> values;
  unsigned many = 0;
  for (const auto &[name, size] : sizes) {
    values.insert(size);
    many += size > 1;
  }
  return many + values.size();
}

/// Among random sizes that satisfy the constraints, returns those with the highest variety, then
/// the most work. If all take too much work, returns those with the least. Later attempts are
/// smaller.
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

/// Returns the half-open range of values of an integer parameter.
static std::pair<int64_t, int64_t> rangeOf(Operation *kernel, unsigned number, Type element, const Sizes &sizes) {
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
  int64_t most = 4; // offsets and lengths near the extents
  for (const auto &[name, size] : sizes)
    most = std::max(most, size + 2);
  return {0, most};
}

std::optional<KernelInputs> Trial::pickInputs(uint64_t seed, const Sizes &sizes) {
  auto description = llvm::cantFail(interp::Kernel::of(kernel));
  SplitMix64 random{seed};
  // More functions are defined on positive elements. Scalars are always positive, as scales are.
  bool isPositive = seed % 2 == 1;
  KernelInputs inputs;
  inputs.symbols = sizes;
  for (auto [k, type] : llvm::enumerate(description.argTypes)) {
    Array array;
    array.shape = llvm::cantFail(interp::evaluateShape(type, sizes));
    array.data.resize(interp::countOf(array.shape));
    Type element = type.getElementType();
    bool isFloat = isa<FloatType>(element);
    auto [low, high] = isFloat ? std::pair<int64_t, int64_t>() : rangeOf(kernel, k, element, sizes);
    if (!isFloat && low >= high && !array.data.empty())
      return std::nullopt; // no element has a value
    // Large arrays repeat with a prime period, which divides no common extent.
    constexpr size_t period = 1021;
    for (size_t i = 0; i < array.data.size(); ++i)
      array.data[i] = i >= period                         ? array.data[i - period]
                      : !isFloat                          ? double(low + random.below(uint64_t(high) - uint64_t(low)))
                      : isPositive || array.shape.empty() ? 0.25 + random.uniform()
                                                          : 3 * random.uniform() - 1.5;
    inputs.arrays.push_back(std::move(array));
  }
  return inputs;
}

/// Returns the values of a kernel at a point, per output.
static llvm::Expected<std::vector<std::vector<double>>> valuesAt(Operation *kernel, const Point &point,
                                                                 const InterpretOptions &options = {}) {
  std::vector<std::vector<double>> values;
  for (auto [output, indices] : llvm::enumerate(point.elements)) {
    auto found =
        indices.empty() ? std::vector<double>() : interpretElements(kernel, point.inputs, output, indices, options);
    if (!found)
      return found.takeError();
    values.push_back(std::move(*found));
  }
  return values;
}

/// Returns a point with random elements of each output, or the last ones. Returns nothing if they
/// have no values.
std::optional<Point> Trial::makePoint(uint64_t seed, const Sizes &sizes, bool takesLast) {
  auto inputs = pickInputs(seed, sizes);
  if (!inputs) {
    reason = "no small sizes were found that satisfy the constraints, or they take too long";
    return std::nullopt;
  }
  Point next;
  SplitMix64 random{seed};
  for (const std::vector<int64_t> &shape : llvm::cantFail(outputShapes(kernel, inputs->symbols))) {
    auto &chosen = next.elements.emplace_back();
    if (interp::countOf(shape) == 0)
      continue;
    std::vector<int64_t> index;
    for (int64_t extent : shape)
      index.push_back(takesLast ? extent - 1 : random.below(extent));
    chosen.push_back(std::move(index));
  }
  next.inputs = std::move(*inputs);
  auto values = valuesAt(kernel, next);
  if (!values) {
    // Random elements may index outside of arrays, where the caller's do not.
    reason = llvm::toString(values.takeError());
    return std::nullopt;
  }
  next.values = std::move(*values);
  return next;
}

bool Trial::tryPoint(uint64_t seed) {
  auto sizes = pickSizes(seed);
  if (!sizes) {
    reason = "no small sizes were found that satisfy the constraints, or they take too long";
    return false;
  }
  auto next = makePoint(seed, *sizes, /*takesLast=*/false);
  if (!next)
    return false;
  bool says = llvm::any_of(next->values, [](const std::vector<double> &output) {
    return llvm::any_of(output, [](double value) { return std::isfinite(value) && value != 0; });
  });
  // A point where every value is 0 or not finite says less, but is better than none.
  if (says || !point)
    point = std::move(next);
  return says;
}

Trial::Trial(Operation *kernel, onf::KernelOp loops) : kernel(kernel), loops(loops) {
  constexpr unsigned attempts = 4;
  for (unsigned seed = 0; seed < attempts && !tryPoint(seed); ++seed)
    ;
  if (point)
    tryEdges();
}

static std::string textOf(const Sizes &sizes) {
  std::string text;
  for (const auto &[name, size] : sizes)
    text += (text.empty() ? "" : ", ") + name + " = " + std::to_string(size);
  return text;
}

std::string Trial::getSizes() const { return point ? textOf(point->inputs.symbols) : ""; }

//===----------------------------------------------------------------------===//
// Sizes around numbers
//===----------------------------------------------------------------------===//

/// Returns the numbers in the expressions and constants of a kernel: extents of axes and parts,
/// bounds, constraints.
static std::set<int64_t> numbersOf(onf::KernelOp kernel, ArrayRef<std::string> constraints) {
  constexpr int64_t most = 4096;
  std::set<int64_t> numbers;
  auto add = [&](int64_t number) {
    if (number > 1 && number <= most)
      numbers.insert(number);
  };
  auto addText = [&](StringRef text) {
    while (!text.empty()) {
      // Skip digits in a name.
      StringRef word = text.take_while([](char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; });
      int64_t number;
      if (!word.empty() && !word.getAsInteger(10, number))
        add(number);
      text = text.drop_front(std::max<size_t>(word.size(), 1));
    }
  };
  auto addExpr = [&](const SymExpr &expr) { addText(expr.str()); };
  llvm::for_each(constraints, addText);
  kernel.walk([&](Operation *op) {
    if (auto loop = dyn_cast<onf::ForOp>(op))
      llvm::for_each(loop.getExtents().getAsValueRange<ExprAttr>(), addExpr);
    else if (auto fold = dyn_cast<onf::FoldOp>(op))
      addExpr(fold.getExtent());
    else if (auto acc = dyn_cast<onf::AccOp>(op))
      llvm::for_each(acc.getExtents().getAsValueRange<ExprAttr>(), addExpr);
    else if (auto extent = dyn_cast<onf::ExtentOp>(op))
      addExpr(extent.getExpr());
    else if (auto constant = dyn_cast<arith::ConstantOp>(op))
      if (auto number = dyn_cast<IntegerAttr>(constant.getValue());
          number && number.getValue().getSignificantBits() <= 64)
        add(number.getInt());
  });
  return numbers;
}

/// Adds points with edge sizes: 0, 1, and sizes around the numbers of the kernel. First one symbol
/// at a time takes such a size and the others keep their random size, then all symbols take it.
/// Symbols that are no range of a fold come last. Of each kind the cheapest come first, up to the
/// work of one large point.
void Trial::tryEdges() {
  constexpr size_t most = 24;
  auto description = llvm::cantFail(interp::Kernel::of(kernel));
  std::set<int64_t> sizes{0, 1};
  for (int64_t number : numbersOf(loops, description.constraints))
    sizes.insert({number - 1, number, number + 1});
  Cost cost(loops), wholeCost(loops, /*isWhole=*/true);
  Extents extents(description);
  Hints hints(description);
  std::map<Sizes, std::pair<bool, double>> candidates;
  auto add = [&](Sizes chosen, bool isOfRows) {
    hints.apply(chosen);
    double work = cost.of(chosen);
    auto shapes = extents.at(chosen, work);
    if (!shapes || work > kMostWork || chosen == point->inputs.symbols)
      return;
    shapes->resize(description.argTypes.size());
    if (auto bound = bindSymbols(kernel, *shapes, chosen))
      candidates.try_emplace(chosen, isOfRows, work);
    else
      llvm::consumeError(bound.takeError());
  };
  for (int64_t size : sizes) {
    Sizes all = point->inputs.symbols;
    for (auto &[name, value] : all) {
      Sizes one = point->inputs.symbols;
      one[name] = size;
      add(std::move(one), !cost.isFolded(name));
      value = size;
    }
    add(std::move(all), /*isOfRows=*/false);
  }
  SmallVector<std::pair<std::pair<bool, double>, Sizes>> sorted;
  for (auto &[chosen, order] : candidates)
    sorted.emplace_back(order, chosen);
  llvm::sort(sorted);
  double spent = 0, wholeSpent = 0;
  std::string before = reason;
  for (auto &[order, chosen] : sorted) {
    double whole = wholeCost.of(chosen);
    if (edges.size() >= most || spent + order.second > kMostWork || wholeSpent + whole > kMostWholeWork)
      continue;
    spent += order.second;
    wholeSpent += whole;
    if (auto next = makePoint(/*seed=*/1, chosen, /*takesLast=*/true))
      edges.push_back(std::move(*next));
  }
  reason = before;
}

//===----------------------------------------------------------------------===//
// Comparison
//===----------------------------------------------------------------------===//

/// Returns true if a kernel compares floats for equality. Values that are equal by a rule may be
/// equal on one level and differ by a rounding on the other.
static bool comparesForEquality(Operation *kernel) {
  return kernel
      ->walk([](arith::CmpFOp op) {
        switch (op.getPredicate()) {
        case arith::CmpFPredicate::OEQ:
        case arith::CmpFPredicate::ONE:
        case arith::CmpFPredicate::UEQ:
        case arith::CmpFPredicate::UNE:
          return WalkResult::interrupt();
        default:
          return WalkResult::advance();
        }
      })
      .wasInterrupted();
}

/// Returns true if rounding explains a difference. It does if one of the kernels moves about as far
/// when each operation is rounded at random. This happens in ill-conditioned problems and where the
/// last bit decides a comparison.
bool Trial::isExplained(Operation *other, const Point &at, const Difference &difference) const {
  constexpr unsigned samples = 24;
  constexpr double margin = 16;
  if (comparesForEquality(kernel))
    return true;
  double moved = 0;
  Point one;
  one.inputs = at.inputs;
  one.elements.resize(at.elements.size());
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
      if (std::fabs(difference.found - difference.expected) <= margin * moved)
        return true;
    }
  return false;
}

std::optional<Difference> Trial::compare(Operation *other) const {
  if (!point)
    return std::nullopt;
  if (auto difference = compareAt(other, *point))
    return difference;
  for (const Point &edge : edges)
    if (auto difference = compareAt(other, edge))
      return difference;
  return std::nullopt;
}

std::optional<Difference> Trial::compareAt(Operation *other, const Point &at) const {
  constexpr double tolerance = 1e-11;
  std::string sizes = textOf(at.inputs.symbols);
  auto found = valuesAt(other, at);
  if (!found) {
    // The elements need not satisfy the kernel's assumptions.
    std::string error = llvm::toString(found.takeError());
    if (kernel->hasAttr(kAssumesAttr))
      return std::nullopt;
    return Difference{0, {}, 0, 0, error, sizes};
  }
  for (unsigned output = 0; output < found->size(); ++output)
    for (size_t k = 0; k < (*found)[output].size(); ++k) {
      double want = at.values[output][k], got = (*found)[output][k];
      // The rules guarantee nothing for values that are not finite.
      if (!std::isfinite(want) || !std::isfinite(got) || std::fabs(got - want) <= tolerance * std::fabs(want))
        continue;
      Difference difference{output, at.elements[output][k], want, got, "", sizes};
      if (!isExplained(other, at, difference))
        return difference;
    }
  return std::nullopt;
}
