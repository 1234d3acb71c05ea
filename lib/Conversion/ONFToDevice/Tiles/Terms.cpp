//===- Terms.cpp - terms of states, and weights, of one tile --------------===//
#include "lib/Conversion/ONFToDevice/Tiles/Terms.h"
#include "lib/Conversion/ONFToDevice/Tiles/Maps.h"
#include "lib/Conversion/ONFToDevice/Tiles/Names.h"
#include "lib/Conversion/ONFToDevice/Tiles/Rescaling.h"

using namespace mlir;
using namespace moa;
using namespace moa::onf;

namespace moa::tiles {

/// Binds the references of a state's term. Returns where the term counts; null: everywhere. A
/// maximum that is still −∞ includes only terms x = −∞. If the term is the identity for x = −∞ and
/// any finite reference, 0 replaces the maximum, and no term must be left out. For example, exp(x −
/// m) becomes exp(−∞ − 0) = 0. The same holds for minima and +∞, and for terms with a bound.
Value Terms::bindReferences(AccOp acc, ArrayRef<Value> refs, ArrayRef<Value> factors) {
  Value keep = regular(code, acc, refs);
  for (auto [ref, value] : llvm::zip_equal(acc.getRefs(), refs))
    code.bind(ref, value);
  if (acc.getRefs().size() != 1 || factors.size() != 1 || !keep || acc.getMonoid() != Monoid::add)
    return keep;
  AccOp extreme = acc.getRefs()[0].getDefiningOp<AccOp>();
  auto singular = cast<FloatAttr>(acc.getSingular()[0]);
  bool isExtreme = extreme.getMonoid() == Monoid::max || extreme.getMonoid() == Monoid::min;
  if (!isExtreme || singular != getIdentity(extreme.getMonoid(), singular.getType()))
    return keep;
  llvm::DenseMap<Value, double> known;
  known[facts.termsOf(extreme).value] = singular.getValue().convertToDouble();
  known[acc.getRefs()[0]] = 0;
  auto term = valueWhere(factors[0], known);
  if (!term || *term != 0)
    return keep;
  Value zero = code.constant(FloatAttr::get(singular.getType(), 0.0));
  code.bind(acc.getRefs()[0], arith::SelectOp::create(b, code.loc, keep, refs[0], zero));
  return Value();
}

/// Adds the scores to a tile, with their factors u kept apart. For 0 < u < ∞ rounding keeps the
/// order, so that max_j (s_j·u) is exactly (max_j s_j)·u. For any other u the scores are multiplied
/// at once, and the remaining factor is 1.
void Terms::addScores(ValueRange scores, Tile &tile) {
  for (auto [k, planned, product, sums] : llvm::enumerate(plan.folded.scores, facts.scaledScores, scores)) {
    std::string name = nameOfScores(context, k);
    // A float can mark masked-out elements. If nothing is masked, the factor is known to keep the
    // order.
    Value fragment = sums;
    bool isInteger = planned.type.isIndex();
    if (isInteger && !tile.presence && !context.predicate) {
      tile.elements.push_back({product.value ? product.value : planned.value,
                               product.value ? code.eval(product.factor) : Value(), sums, std::nullopt});
      continue;
    }
    if (isInteger)
      fragment = map(code, name, sums, Over::tile(plan.shape.keys), {b.getF32Type()},
                     [&](ValueRange in, ValueRange) { return Values{asFloat(code, in[0])}; })[0];
    if (!product.value) {
      tile.elements.push_back({planned.value, Value(), fragment, std::nullopt});
      continue;
    }
    Value u = code.eval(product.factor);
    // If elements also load memory, registers are too few for conditions that are the same for all
    // tiles.
    if (facts.readsMemory)
      u = device::OpaqueOp::create(b, code.named("multiplier"), u);
    Value positive = keepsOrder(code, u), one = code.constant(b.getF32FloatAttr(1));
    Value rest = arith::SelectOp::create(b, code.named("score_scale"), positive, u, one);
    Value scaled = code.branch(
        positive, {fragment.getType()}, [&] { return Values{fragment}; },
        [&] {
          return map(code, name, fragment, Over::tile(plan.shape.keys), {elementOf(fragment)},
                     [&](ValueRange in, ValueRange) { return Values{code.combine(Monoid::mul, in[0], u)}; });
        })[0];
    tile.elements.push_back({product.value, rest, scaled, std::nullopt});
  }
}

static Values fragmentsOf(const Tile &tile) {
  Values fragments;
  for (const Element &element : tile.elements)
    fragments.push_back(element.fragment);
  return fragments;
}

void Terms::bindTile(const Tile &tile, ValueRange in, ValueRange at) {
  bindElement(at, tile.first);
  for (auto [element, value] : llvm::zip(tile.elements, in))
    if (element.rest)
      code.bindProduct(element.value, asFloat(code, value), element.rest);
    else
      code.bind(element.value, asFloat(code, value));
}

/// Returns whether values are `none` for masked-out elements by themselves, because of the elements
/// that the tile holds there.
static bool isNoneWhereAbsent(const Tile &tile, AccOp acc, ValueRange values, double none) {
  llvm::DenseMap<Value, double> known;
  for (const Element &element : tile.elements)
    if (element.absent)
      known[element.value] = *element.absent;
  for (Value ref : acc.getRefs())
    known[ref] = 0; // any finite value: see bindReferences
  return llvm::all_of(values, [&](Value value) { return valueWhere(value, known) == none; });
}

/// Returns `value` where the element is present and `keep` holds, else `none`. Null conditions are
/// true. If `reads` loads memory, `value` is evaluated in a branch.
static Value guarded(ScalarCode &code, Value present, Value keep, Value none, ValueRange reads,
                     llvm::function_ref<Value()> value) {
  bool reading = present && llvm::any_of(reads, [&](Value v) { return code.isCostly(v); });
  keep = code.both(present, keep);
  if (reading)
    return code.branch(keep, {none.getType()}, [&] { return Values{value()}; }, [&] { return Values{none}; })[0];
  Value result = value();
  if (!keep)
    return result;
  return arith::SelectOp::create(code.b, code.loc, keep, result, none);
}

/// Returns the product of factors over divisors for each row and key, and `none` where masked out.
Value Terms::valuesOf(AccOp acc, ValueRange factors, ValueRange divisors, TypedAttr none, const Tile &tile,
                      const Running &news) {
  Values inputs = fragmentsOf(tile);
  unsigned fragments = inputs.size();
  for (Value ref : acc.getRefs()) {
    Value pivot = tile.pivots.lookup(ref);
    inputs.push_back(pivot ? pivot : news.scalars[facts.numberOf(ref)].reference);
  }
  unsigned count = inputs.size();
  SmallVector<std::pair<Value, Value>> ofRows; // pivots that are not references
  for (auto [value, pivot] : tile.pivots)
    if (!value.getDefiningOp<AccOp>())
      ofRows.push_back({value, pivot});
  for (auto [value, pivot] : ofRows)
    inputs.push_back(pivot);
  unsigned known = inputs.size();
  if (tile.presence)
    llvm::append_range(inputs, tile.presence->bounds);
  auto number = dyn_cast<FloatAttr>(none);
  // Piecewise linear powers of 2 stay f16, two per register. The bits of 0 are 0.
  auto piecewise =
      factors.size() == 1 && divisors.empty() ? factors[0].getDefiningOp<PiecewiseExp2Op>() : PiecewiseExp2Op();
  if (!number || !number.getValue().isZero())
    piecewise = nullptr;
  Over over = Over::tile(plan.shape.keys);
  bool isExtreme = acc.getMonoid() == Monoid::max || acc.getMonoid() == Monoid::min;
  std::string name = none.getType().isInteger(1)          ? "mask"
                     : isExtreme && acc.getRefs().empty() ? "scores"
                                                          : "terms_of_" + nameOfRow(acc);
  Value terms =
      map(code, piecewise ? "exponents" : name, inputs, over, {none.getType()}, [&](ValueRange in, ValueRange at) {
        bindTile(tile, in, at);
        for (auto [k, pivot] : llvm::enumerate(ofRows))
          code.bind(pivot.first, in[count + k]);
        Values reads(factors);
        Value keep =
            bindReferences(acc, Values(in.slice(fragments, count - fragments)), divisors.empty() ? reads : Values());
        llvm::append_range(reads, divisors);
        bool isNone = !keep && divisors.empty() && factors.size() == 1 && number &&
                      isNoneWhereAbsent(tile, acc, factors, number.getValueAsDouble());
        Value present;
        if (tile.presence && !isNone)
          present = masks.isPresent(*tile.presence, in.drop_front(known), at[1]);
        return Values{guarded(code, present, keep, code.constant(none), reads, [&] {
          if (piecewise)
            return code.bitsOf(piecewise);
          Value product;
          for (Value factor : factors) {
            Value value = code.eval(factor);
            product = product ? code.combine(Monoid::mul, product, value) : value;
          }
          if (!product)
            product = code.constant(cast<TypedAttr>(FloatAttr::get(none.getType(), 1.0)));
          for (Value divisor : divisors)
            product = arith::DivFOp::create(b, code.loc, product, code.eval(divisor));
          return product;
        })};
      })[0];
  if (!piecewise)
    return terms;
  return map(code, name, terms, over, {b.getF16Type()}, [&](ValueRange in, ValueRange) {
    return Values{device::HalfFromBitsOp::create(b, code.loc, b.getF16Type(), in[0])};
  })[0];
}

/// Replaces masked-out elements of a fragment with `none`.
void Terms::maskElement(Element &element, FloatAttr none, const Tile &tile) {
  Values inputs{element.fragment};
  llvm::append_range(inputs, tile.presence->bounds);
  element.fragment =
      map(code, "scores", inputs, Over::tile(plan.shape.keys), {none.getType()}, [&](ValueRange in, ValueRange at) {
        bindElement(at, tile.first);
        Value present = masks.isPresent(*tile.presence, in.drop_front(), at[1]);
        return Values{guarded(code, present, Value(), code.constant(none), {}, [&] { return in[0]; })};
      })[0];
  element.absent = none.getValueAsDouble();
}

/// Reduces the terms of a tile over each thread's keys. For later states, the operand of a maximum
/// or minimum replaces the values that it was computed from.
Value Terms::reduce(AccOp acc, Value term, Tile &tile, Running &news, unsigned k) {
  Type type = acc.getResult().getType();
  auto reduce = [&](Value terms, const std::string &name) -> Value {
    Type element = elementOf(terms);
    if (element.isF16()) // summed in f32, except for a thread's own pairs
      element = type;
    return device::ReduceOp::create(b, code.named(name), typeOver(Over::parts(), element), acc.getMonoid(), terms);
  };
  auto none = cast<TypedAttr>(getIdentity(acc.getMonoid(), type));
  auto number = dyn_cast<FloatAttr>(none);
  bool isExtreme = acc.getMonoid() == Monoid::max || acc.getMonoid() == Monoid::min;
  bool keeps = isExtreme && acc.getRefs().empty() && number;
  for (Element &element : tile.elements) {
    if (!keeps || term != element.value || element.absent)
      continue;
    if (tile.presence)
      maskElement(element, number, tile);
    // Conversion to a float keeps the order of integers, so that only their extreme is converted.
    bool isWhole = !element.rest && elementOf(element.fragment) == type;
    Value reduced = reduce(element.fragment, isWhole ? nameInTile(acc) : "unscaled_" + nameInTile(acc));
    if (isWhole)
      return reduced;
    return map(code, nameInTile(acc), reduced, Over::parts(), {type}, [&](ValueRange in, ValueRange) {
      Value all = asFloat(code, in[0]);
      return Values{element.rest ? code.combine(Monoid::mul, all, element.rest) : all};
    })[0];
  }
  Value terms = valuesOf(acc, term, {}, none, tile, news);
  news.scalars[k].terms = terms;
  if (keeps && !term.hasOneUse())
    tile.elements.push_back(
        {term, Value(), terms, tile.presence ? std::optional(number.getValueAsDouble()) : std::nullopt});
  return reduce(terms, nameInTile(acc));
}

/// Returns the state without axes that sums the weights of this accumulator, whose terms can be
/// reused; nullopt if there is none. For example, the row sum of softmax.
std::optional<unsigned> Terms::findTerms(AccOp acc, const rows::Factors &factors, const Running &news) {
  if (factors.values.size() != 1 || !factors.divisors.empty())
    return std::nullopt;
  for (auto [k, scalar] : llvm::enumerate(plan.folded.scalars)) {
    AccOp other = scalar.acc;
    if (news.scalars[k].terms && other.getMonoid() == Monoid::add &&
        rows::getYielded(other.getValue()) == factors.values[0] && llvm::equal(other.getRefs(), acc.getRefs()) &&
        other.getSingular() == acc.getSingular())
      return k;
  }
  return std::nullopt;
}

/// Returns a row operand P of an accumulator before rounding; 0 where masked out.
Value Terms::weights(const Accumulator &accumulator, const rows::Factors &factors, const Tile &tile,
                     const Running &news) {
  if (auto k = findTerms(accumulator.acc, factors, news))
    return news.scalars[*k].terms;
  return valuesOf(accumulator.acc, factors.values, factors.divisors,
                  cast<TypedAttr>(getIdentity(Monoid::add, accumulator.type)), tile, news);
}

/// Returns whether a value depends on `of` alone, and is 0 if that is 0.
static bool isNoneWhereNone(Value value, Value of) {
  llvm::DenseMap<Value, double> known{{of, 0.0}};
  auto at = valueWhere(value, known);
  return at && *at == 0;
}

void Terms::findWeights(const Tile &tile, Running &news) {
  for (auto [k, accumulator] : llvm::enumerate(plan.folded.accumulators)) {
    Values &all = news.sums[k].weights;
    const auto &factors = plan.weights[k];
    all.assign({weights(accumulator, factors[0], tile, news)});
    bool isOne = factors[0].values.size() == 1 && factors[0].divisors.empty();
    for (const rows::Factors &other : ArrayRef(factors).drop_front())
      all.push_back(isOne && isNoneWhereNone(other.values[0], factors[0].values[0])
                        ? Value()
                        : weights(accumulator, other, tile, news));
  }
}

} // namespace moa::tiles
