//===- Bounds.cpp - error bounds evaluated by a kernel --------------------===//
#include "lib/Accuracy/Bounds/Bounds.h"
#include "dialects/ONF/IR/Hints.h"
#include "lib/Accuracy/Bounds/RoundingErrorBounds.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>
#include <set>

using namespace mlir;

namespace moa::accuracy {

/// Relative margin for a value after a few hundred roundings in f32.
static constexpr double kSlack = 0x1p-9;
/// Lower limit of products, which covers underflow.
static constexpr double kLeast = 0x1p-120;
static constexpr int64_t kPart = 128;

//===----------------------------------------------------------------------===//
// The attribute
//===----------------------------------------------------------------------===//

std::optional<Bounds> Bounds::read(onf::KernelOp kernel) {
  auto text = kernel->getAttrOfType<StringAttr>(kBoundsAttr);
  auto value = llvm::json::parse(text ? text.getValue() : StringRef());
  if (!value) {
    llvm::consumeError(value.takeError());
    return std::nullopt;
  }
  llvm::json::Object *object = value->getAsObject();
  bool isWhole = object && object->getArray("results") && object->getArray("atoms");
  return isWhole ? std::optional(Bounds(std::move(*object))) : std::nullopt;
}

const llvm::json::Object *Bounds::findResult(StringRef name) const {
  for (const llvm::json::Value &result : *whole.getArray("results"))
    if (const auto *object = result.getAsObject(); object && object->getString("result") == name)
      return object;
  return nullptr;
}

bool Bounds::hasBound(StringRef result, StringRef formats) const {
  const llvm::json::Object *object = findResult(result);
  return object && object->getObject(formats);
}

bool Bounds::isOf(StringRef list, StringRef input) const {
  const llvm::json::Array *names = whole.getArray(list);
  return names && llvm::any_of(*names, [&](const llvm::json::Value &name) { return name.getAsString() == input; });
}

const llvm::json::Object *Bounds::findAtom(int64_t number) const {
  for (const llvm::json::Value &atom : *whole.getArray("atoms"))
    if (const auto *object = atom.getAsObject(); object && object->getInteger("atom") == number)
      return object;
  return nullptr;
}

void Bounds::collect(const llvm::json::Object &sum, llvm::function_ref<void(const llvm::json::Object &)> visit) const {
  std::set<int64_t> seen;
  std::function<void(const llvm::json::Object &)> walk = [&](const llvm::json::Object &e) {
    for (const llvm::json::Value &term : *e.getArray("terms"))
      for (const llvm::json::Value &factor : *term.getAsObject()->getArray("factors")) {
        int64_t number = *factor.getAsObject()->getInteger("atom");
        const llvm::json::Object *atom = findAtom(number);
        if (!atom || !seen.insert(number).second)
          continue;
        visit(*atom);
        if (const llvm::json::Array *operands = atom->getArray("operands"))
          for (const llvm::json::Value &operand : *operands)
            walk(*operand.getAsObject());
      }
  };
  walk(sum);
}

std::string whyNoBounds(onf::KernelOp kernel) {
  return usesF64(kernel) ? "bounds are known of arithmetic in f32, and this kernel has f64: say "
                           "'relative sampled', or take f32"
                         : "bounds are found from definitions at the level dnf: compile the "
                           "specification, or say 'relative sampled'";
}

double getLeast(Type element) {
  return std::max(kUnderflow,
                  llvm::APFloat::getSmallest(cast<FloatType>(element).getFloatSemantics()).convertToDouble());
}

std::optional<std::string> Bounds::whyInfinite(StringRef result, StringRef formats, double least) const {
  const llvm::json::Object &bound = *findResult(result)->getObject(formats);
  std::optional<std::string> why;
  for (StringRef part : {"relative", "absolute"})
    collect(*bound.getObject(part), [&](const llvm::json::Object &atom) {
      if (atom.getString("kind") == "unknown" && !why)
        why = atom.getString("reason").value_or("").str();
    });
  // Extents and exponentials of nonnegative values are at least 1.
  auto isAtLeastOne = [&](const llvm::json::Value &factor) {
    StringRef kind = *findAtom(*factor.getAsObject()->getInteger("atom"))->getString("kind");
    return (kind == "extent" || kind == "exp") && *factor.getAsObject()->getInteger("power") > 0;
  };
  for (const llvm::json::Value &term : *bound.getObject("absolute")->getArray("terms"))
    if (*term.getAsObject()->getNumber("coefficient") > least &&
        llvm::all_of(*term.getAsObject()->getArray("factors"), isAtLeastOne) && !why)
      why = "it has an error that is not relative to its magnitude, as after cancellation";
  if (auto text = bound.getString("assumes"); text && !why)
    why = ("it is assumed and not checked that " + *text).str();
  return why;
}

SmallVector<std::optional<unsigned>> findHeadAxes(onf::ForOp nest, onf::StoreOp store) {
  SmallVector<std::optional<unsigned>> axes(store.getArray().getType().getRank());
  for (unsigned axis = 0; axis < axes.size(); ++axis) {
    auto argument = dyn_cast_or_null<BlockArgument>(store.getIndex(axis).getValue());
    if (argument && argument.getOwner() == &nest.getBody().front() &&
        argument.getArgNumber() + 1 < nest.getExtents().size())
      axes[axis] = argument.getArgNumber();
  }
  return axes;
}

BoundNests::BoundNests(KernelEditor &editor, const Bounds &bounds, StringRef result,
                       ArrayRef<std::optional<unsigned>> axes, ArrayRef<Attribute> headExtents)
    : editor(editor), bounds(bounds), result(bounds.findResult(result)), axes(axes), headExtents(headExtents) {
  Value array = editor.kernel.getBody().getArgument(*editor.kernel.findArray(result));
  least = getLeast(cast<ArrayType>(array.getType()).getElementType());
}

//===----------------------------------------------------------------------===//
// Statistics
//===----------------------------------------------------------------------===//

/// Reads a statistic and maps its axes to those of the head. Over other axes it takes the extreme,
/// which is a weaker bound.
std::optional<BoundNests::Statistic> BoundNests::readStatistic(const Json &atom) const {
  int number = editor.kernel.findArray(*atom.getString("array")).value_or(-1);
  if (number < 0)
    return std::nullopt;
  Statistic statistic{editor.kernel.getBody().getArgument(number), atom.getString("statistic")->str(), {}};
  auto type = cast<ArrayType>(statistic.array.getType());
  if (!isa<FloatType>(type.getElementType()) || type.getElementType().getIntOrFloatBitWidth() > 32)
    return std::nullopt;
  const llvm::json::Array &names = *result->getArray("indices");
  for (const llvm::json::Value &entry : *atom.getArray("axes")) {
    StringRef text = *entry.getAsString();
    int axis = text == "norm" ? kNorm : kExtreme;
    if (text.consume_front("index "))
      for (auto [k, name] : llvm::enumerate(names))
        if (name.getAsString() == text && axes[k])
          axis = *axes[k];
    // An array that is shorter than the axis, being read under a condition, has no element for
    // other indices.
    if (axis >= 0 && type.getExtent(statistic.axes.size()) != getSymExpr(headExtents[axis]))
      axis = kExtreme;
    statistic.axes.push_back(axis);
  }
  return statistic;
}

static std::string keyOf(Value array, StringRef kind, ArrayRef<int> axes) {
  std::string key = (Twine(cast<BlockArgument>(array).getArgNumber()) + " " + kind).str();
  for (int axis : axes)
    key += " " + std::to_string(axis);
  return key;
}

/// Adds the extremes of an array along one axis, in two steps.
Value BoundNests::reduce(Value array, unsigned axis, bool isMax) {
  auto type = cast<ArrayType>(array.getType());
  std::string name = editor.nameOf(array).str();
  auto [names, extents] = editor.axesOf(array, axis);
  Monoid monoid = isMax ? Monoid::max : Monoid::min;
  Type f32 = editor.f32();
  SymExpr count = type.getExtent(axis), parts = SymExpr::floorDiv(count + SymExpr(kPart - 1), SymExpr(kPart));
  SmallVector<Attribute> partNames(names), partExtents(extents);
  partNames.push_back(editor.text("p"));
  partExtents.push_back(editor.expr(parts));
  Value inParts = editor.addTemporary(name + "_parts", partExtents, f32);
  auto add = [&](ArrayRef<Attribute> names, ArrayRef<Attribute> extents,
                 llvm::function_ref<void(Code &, ValueRange)> body) {
    nests.push_back(editor.addShortNest(names, extents, nullptr, body));
  };
  add(partNames, partExtents, [&](Code &code, ValueRange indices) {
    Value first = code.mul(indices.back(), code.index(kPart));
    Value last = code.extent(count - SymExpr(1));
    Value most = code.fold("t", SymExpr(kPart), [&](Code &at, Value t, Value &) {
      SmallVector<Value> place(indices.drop_back());
      // The last part repeats its last row.
      Value row = at.min(at.add(first, t), last);
      place.insert(place.begin() + axis, row);
      return SmallVector<Code::State>{{monoid, "extreme", at.load(array, place)}};
    })[0];
    code.store(most, inParts, indices);
  });
  Value whole = editor.addTemporary(name + "_all", extents, f32);
  add(names, extents, [&](Code &code, ValueRange indices) {
    Value most = code.fold("p", parts, [&](Code &at, Value p, Value &) {
      return SmallVector<Code::State>{{monoid, "extreme", at.load(inParts, placed(indices, {p}))}};
    })[0];
    code.store(most, whole, indices);
  });
  return whole;
}

static bool isLeast(StringRef kind) { return kind.starts_with("min"); }

/// Adds the array of a statistic over the remaining axes; for L2 it has squared norms.
Value BoundNests::addStatistic(Statistic statistic) {
  auto type = cast<ArrayType>(statistic.array.getType());
  unsigned rank = type.getRank();
  bool isMax = !isLeast(statistic.kind);
  // The last axis is reduced first, by a fold.
  SmallVector<int> left(rank);
  for (unsigned k = 0; k < rank; ++k)
    left[k] = k;
  auto known = [&]() -> Value & { return arrays[keyOf(statistic.array, statistic.kind, left)]; };
  if (statistic.axes[rank - 1] < 0)
    left[rank - 1] = statistic.axes[rank - 1];
  Value current = known();
  std::string name = editor.nameOf(statistic.array).str() + "_" + statistic.kind;
  bool isLastLeft = statistic.axes[rank - 1] >= 0;
  if (!current) {
    SmallVector<Attribute> names, extents;
    for (unsigned k = 0; k + !isLastLeft < rank; ++k) {
      names.push_back(editor.text("i" + Twine(k)));
      extents.push_back(type.getShape()[k]);
    }
    current = editor.addTemporary(name, extents, editor.f32());
    nests.push_back(editor.addNest(names, extents, nullptr, [&](Code &code, ValueRange indices) {
      auto sizeAt = [&](Code &at, ValueRange place) { return at.absolute(at.loadFloat(statistic.array, place)); };
      if (isLastLeft)
        return code.store(sizeAt(code, indices), current, indices);
      Value value = code.fold("k", type.getExtent(rank - 1), [&](Code &at, Value k, Value &) {
        Value size = sizeAt(at, placed(indices, {k}));
        if (StringRef(statistic.kind).ends_with("L2"))
          size = at.mul(size, size);
        Monoid monoid = left[rank - 1] == kNorm ? Monoid::add : isMax ? Monoid::max : Monoid::min;
        return SmallVector<Code::State>{{monoid, "magnitude", size}};
      })[0];
      code.store(value, current, indices);
    }));
    if (!isLastLeft)
      known() = current;
  }
  for (unsigned k = rank - !isLastLeft; k-- > 0;) {
    if (statistic.axes[k] >= 0)
      continue;
    left[k] = kExtreme;
    Value &next = known();
    if (!next)
      next = reduce(current, k, isMax);
    current = next;
  }
  return current;
}

void BoundNests::addStatistics(StringRef formats) {
  auto visit = [&](const Json &atom) {
    if (atom.getString("kind") != "statistic" || atom.getArray("axes")->empty())
      return;
    auto statistic = readStatistic(atom);
    if (!statistic)
      return;
    // A norm along another axis is bounded by the extreme element.
    bool isElsewhere = llvm::is_contained(ArrayRef(statistic->axes).drop_back(), kNorm);
    if (isElsewhere) {
      statistic->kind = isLeast(statistic->kind) ? "minabs" : "maxabs";
      llvm::replace(statistic->axes, kNorm, kExtreme);
    }
    Value &array = arrays["of " + std::to_string(*atom.getInteger("atom"))];
    if (!array)
      array = addStatistic(*statistic);
  };
  const Json &bound = *result->getObject(formats);
  for (StringRef part : {"relative", "absolute"})
    bounds.collect(*bound.getObject(part), visit);
  for (const llvm::json::Value &fact : *bound.getArray("facts"))
    bounds.collect(*fact.getAsObject()->getObject("value"), visit);
}

/// Returns an upper bound of a statistic or, for minima, a lower one.
Value BoundNests::statistic(Code &code, ValueRange head, const Json &atom, bool isUpper) {
  bool isBelow = isLeast(*atom.getString("statistic"));
  auto statistic = readStatistic(atom);
  if (statistic && statistic->axes.empty()) // a scalar: exact
    return code.absolute(code.loadFloat(statistic->array, {}));
  if (!statistic || isBelow == isUpper)
    return code.real(isUpper ? INFINITY : 0);
  Value array = arrays.at("of " + std::to_string(*atom.getInteger("atom")));
  SmallVector<Value> indices;
  SymExpr length(1);
  auto type = cast<ArrayType>(statistic->array.getType());
  bool isElsewhere = false;
  for (auto [k, axis] : llvm::enumerate(statistic->axes)) {
    if (axis >= 0)
      indices.push_back(head[axis]);
    if (axis == kNorm) {
      length = type.getExtent(k);
      isElsewhere = k + 1 < statistic->axes.size();
    }
  }
  Value value = code.load(array, indices);
  bool isSquare = StringRef(statistic->kind).ends_with("L2"), isSum = statistic->kind == "maxL1";
  // Each of n sums is rounded, and each square may underflow.
  Value n = isSquare || isSum ? code.toReal(code.extent(length)) : Value();
  Value roundings;
  if (n) {
    Value unit = code.real(0x1p-23);
    roundings = code.mul(code.add(n, code.real(8)), unit);
  }
  if (isBelow && (!isSquare || isElsewhere))
    return value;
  if (isBelow) {
    // An overflowed sum of squares is at least 2^127.
    value = code.min(value, code.real(0x1p127));
    Value none = code.real(0);
    Value kept = code.max(code.sub(code.real(1), roundings), none);
    return code.make<math::SqrtOp>(code.mul(value, kept));
  }
  value = code.max(value, code.real(0));
  if (!isSquare && !isSum)
    return value;
  if (isElsewhere)
    return code.mul(value, isSum ? n : code.make<math::SqrtOp>(n));
  value = code.mul(value, code.add(roundings, code.real(1)));
  value = code.add(value, code.mul(n, code.real(kLeast)));
  return isSquare ? code.make<math::SqrtOp>(value) : value;
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

/// Returns `value` in f32, rounded up or down.
static Value constant(Code &code, double value, bool isUpper) {
  float nearest = static_cast<float>(value);
  if (isUpper && nearest < value)
    nearest = std::nextafter(nearest, INFINITY);
  if (!isUpper && nearest > value)
    nearest = std::nextafter(nearest, 0.0f);
  return code.real(isUpper && nearest > 0 ? std::max(nearest, float(kLeast)) : nearest);
}

/// Adds or subtracts the margin for roundings.
static Value slackened(Code &code, Value value, bool isUpper) {
  return code.mul(value, code.real(isUpper ? 1 + kSlack : 1 - kSlack));
}

Value BoundNests::sum(Code &code, ValueRange head, const Json &sum, bool isUpper, AtomValues &known) {
  Value total;
  for (const llvm::json::Value &term : *sum.getArray("terms")) {
    const Json &entry = *term.getAsObject();
    Value product = constant(code, *entry.getNumber("coefficient"), isUpper);
    for (const llvm::json::Value &factor : *entry.getArray("factors")) {
      int64_t number = *factor.getAsObject()->getInteger("atom"), power = *factor.getAsObject()->getInteger("power");
      bool isDivisor = power < 0;
      Value base = atom(code, head, number, isUpper != isDivisor, known);
      for (int64_t k = 0; k < std::abs(power); ++k) {
        product = isDivisor ? code.div(product, base) : code.mul(product, base);
        if (isUpper)
          product = code.max(product, code.real(kLeast));
      }
    }
    total = total ? code.add(total, product) : product;
  }
  return total ? total : code.real(0);
}

Value BoundNests::atom(Code &code, ValueRange head, int64_t number, bool isUpper, AtomValues &known) {
  auto &values = isUpper ? known.upper : known.lower;
  if (auto it = values.find(number); it != values.end())
    return it->second;
  Value value = function(code, head, *bounds.findAtom(number), isUpper, known);
  values[number] = value;
  return value;
}

Value BoundNests::function(Code &code, ValueRange head, const Json &atom, bool isUpper, AtomValues &known) {
  StringRef kind = *atom.getString("kind");
  auto operand = [&](unsigned k, bool upper) {
    return sum(code, head, *(*atom.getArray("operands"))[k].getAsObject(), upper, known);
  };
  if (kind == "statistic")
    return statistic(code, head, atom, isUpper);
  if (kind == "extent") {
    Value size = code.toReal(code.extent(*SymExpr::parse(*atom.getString("expression"))));
    return slackened(code, code.absolute(size), isUpper);
  }
  if (kind == "tiny")
    return code.real(isUpper ? kLeast : 0);
  if (kind == "exp")
    return slackened(code, code.make<math::ExpOp>(operand(0, isUpper)), isUpper);
  if (kind == "expm1") {
    // x ≤ e^x − 1 ≤ x + x²·e^x / 2.
    Value x = operand(0, isUpper);
    if (!isUpper)
      return x;
    Value power = code.make<math::ExpOp>(x);
    Value square = code.mul(code.mul(x, x), power);
    Value sum = code.add(x, code.mul(square, code.real(0.5)));
    return slackened(code, sum, isUpper);
  }
  if (kind == "sqrt")
    return slackened(code, code.make<math::SqrtOp>(operand(0, isUpper)), isUpper);
  if (kind == "recip") {
    Value divisor = operand(0, !isUpper);
    return slackened(code, code.div(code.real(1), divisor), isUpper);
  }
  if (kind == "max" || kind == "min") {
    Value x = operand(0, isUpper), y = operand(1, isUpper);
    return kind == "max" ? code.max(x, y) : code.min(x, y);
  }
  if (kind == "group")
    return operand(0, isUpper);
  return code.real(isUpper ? INFINITY : 0); // unknown
}

/// If |δ| ≤ E·m + a and a < η, then |δ| ≤ max(ε·m, η) for ε = E/(1 − a/η) and every m: the
/// difference of both sides is smallest at ε·m = η (law B5).
Value BoundNests::write(Code &code, ValueRange head, StringRef formats) {
  const Json &bound = *result->getObject(formats);
  if (bound.getString("assumes"))
    return code.real(INFINITY);
  AtomValues known;
  Value isGood;
  auto upper = [&](const Json &e) {
    return slackened(code, sum(code, head, e, /*isUpper=*/true, known), /*isUpper=*/true);
  };
  auto require = [&](Value value, double limit) {
    Value holds = code.compare(arith::CmpFPredicate::OLE, value, constant(code, limit, /*isUpper=*/false));
    isGood = isGood ? code.both(isGood, holds) : holds;
  };
  for (const llvm::json::Value &fact : *bound.getArray("facts"))
    require(upper(*fact.getAsObject()->getObject("value")), *fact.getAsObject()->getNumber("limit"));
  Value factor = code.real(1 / least);
  Value part = code.mul(upper(*bound.getObject("absolute")), factor);
  require(part, 1);
  Value rest = code.sub(code.real(1), part);
  Value relative = code.div(upper(*bound.getObject("relative")), rest);
  return code.select(isGood, relative, code.real(INFINITY));
}

} // namespace moa::accuracy
