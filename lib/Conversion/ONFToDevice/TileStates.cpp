//===- TileStates.cpp - states of a fold over one tile --------------------===//
#include "lib/Conversion/ONFToDevice/TileKernel.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/SaveAndRestore.h"
#include <cmath>

using namespace mlir;
using namespace moa;
using namespace moa::onf;

namespace moa::tiles {

/// Returns whether all references have values for which the state is defined; null: always.
Value TileKernel::regular(ScalarCode &code, AccOp acc, ArrayRef<Value> refs) {
  Value ok;
  for (auto [ref, singular] : llvm::zip_equal(refs, acc.getSingular())) {
    auto value = dyn_cast<FloatAttr>(singular);
    if (value && !value.getValue().isNaN() && value.getType() == ref.getType())
      ok = code.both(ok, code.differs(ref, code.constant(value)));
  }
  return ok;
}

/// Returns whether a row's pivot may include an element: the pivot differs from its infinite
/// identity. For example, a maximum of −∞ includes no element, and its correction factor has no
/// meaning. Null if the identity is finite.
Value TileKernel::hasElements(ScalarCode &code, AccOp reference, Value value) {
  auto start = dyn_cast<FloatAttr>(getIdentity(reference.getMonoid(), value.getType()));
  return start && start.getValue().isInfinity() ? code.differs(value, code.constant(start)) : Value();
}

/// Returns the value of an expression in which some leaves are known; nullopt if it depends on
/// others.
static std::optional<double> valueWhere(Value value, llvm::DenseMap<Value, double> &known) {
  auto found = known.find(value);
  if (found != known.end())
    return found->second;
  Operation *op = value.getDefiningOp();
  if (!op)
    return std::nullopt;
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto number = dyn_cast<FloatAttr>(constant.getValue());
    return number ? std::optional(number.getValue().convertToDouble()) : std::nullopt;
  }
  if (isa<arith::TruncFOp, arith::ExtFOp>(op)) {
    auto number = valueWhere(op->getOperand(0), known);
    if (!number)
      return std::nullopt;
    llvm::APFloat rounded(*number);
    bool isExact;
    rounded.convert(cast<FloatType>(op->getResult(0).getType()).getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven,
                    &isExact);
    return rounded.convertToDouble();
  }
  if (auto piecewise = dyn_cast<PiecewiseExp2Op>(op)) {
    auto number = valueWhere(piecewise.getOperand(), known);
    double times = piecewise.getTimes().convertToDouble(), plus = piecewise.getPlus().convertToDouble();
    return number ? std::optional(PiecewiseExp2Op::evaluate(times * *number + plus)) : std::nullopt;
  }
  SmallVector<double, 2> operands(2, 0.0);
  if (!isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::NegFOp, math::ExpOp, math::Exp2Op>(op))
    return std::nullopt;
  for (auto [k, operand] : llvm::enumerate(op->getOperands())) {
    auto number = valueWhere(operand, known);
    if (!number)
      return std::nullopt;
    operands[k] = *number;
  }
  if (isa<arith::AddFOp>(op))
    return operands[0] + operands[1];
  if (isa<arith::SubFOp>(op))
    return operands[0] - operands[1];
  if (isa<arith::MulFOp>(op))
    return operands[0] * operands[1];
  if (isa<arith::NegFOp>(op))
    return -operands[0];
  return isa<math::ExpOp>(op) ? std::exp(operands[0]) : std::exp2(operands[0]);
}

/// Binds the references of a state's term. Returns where the term counts; null: everywhere. A
/// maximum that is still −∞ includes only terms x = −∞. If the term is the identity for x = −∞ and
/// any finite reference, 0 replaces the maximum, and no term must be left out. For example, exp(x −
/// m) becomes exp(−∞ − 0) = 0. The same holds for minima and +∞, and for terms with a bound.
Value TileKernel::bindReferences(ScalarCode &code, AccOp acc, ArrayRef<Value> refs, ArrayRef<Value> factors) {
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
  known[termsOf(extreme).value] = singular.getValue().convertToDouble();
  known[acc.getRefs()[0]] = 0;
  auto term = valueWhere(factors[0], known);
  if (!term || *term != 0)
    return keep;
  Value zero = code.constant(FloatAttr::get(singular.getType(), 0.0));
  code.bind(acc.getRefs()[0], arith::SelectOp::create(b, code.loc, keep, refs[0], zero));
  return Value();
}

//===----------------------------------------------------------------------===//
// Loop-carried values
//===----------------------------------------------------------------------===//

/// Returns whether a reference records by itself that it has been regular. A maximum or minimum
/// does, if its identity is the value for which its users are undefined: it never goes back there.
static bool remembers(AccOp acc, unsigned ref) {
  auto extreme = acc.getRefs()[ref].getDefiningOp<AccOp>();
  Monoid monoid = extreme.getMonoid();
  return (monoid == Monoid::max || monoid == Monoid::min) &&
         acc.getSingular()[ref] == getIdentity(monoid, extreme.getResult().getType());
}

static bool haveSameRescale(AccOp x, AccOp y) {
  return llvm::equal(x.getRefs(), y.getRefs()) && llvm::equal(x.getOthers(), y.getOthers()) &&
         x.getSingular() == y.getSingular() && x.getCombine() == y.getCombine() &&
         OperationEquivalence::isRegionEquivalentTo(&x.getRepair(), &y.getRepair(),
                                                    OperationEquivalence::IgnoreLocations);
}

/// Finds the distinct rescalings and the references, and whether rescaling can be conditional.
void TileKernel::planRescales() {
  auto add = [&](AccOp acc) -> int {
    if (acc.getRefs().empty())
      return -1;
    for (auto [k, rescale] : llvm::enumerate(rescales))
      if (haveSameRescale(rescale.acc, acc))
        return k;
    Rescale rescale{acc, {}, 0, false};
    for (auto [k, ref] : llvm::enumerate(acc.getRefs())) {
      unsigned number = numberOf(ref);
      rescale.refs.push_back(number);
      rescale.pass = std::max(rescale.pass, plan.folded.scalars[number].pass);
      rescale.needsStarted |= !remembers(acc, k);
    }
    rescales.push_back(rescale);
    return rescales.size() - 1;
  };
  for (const rows::Scalar &scalar : plan.folded.scalars)
    rescaleOfScalar.push_back(add(scalar.acc));
  for (const Accumulator &accumulator : plan.folded.accumulators)
    rescaleOfAccumulator.push_back(add(accumulator.acc));
  isReference.assign(plan.folded.scalars.size(), false);
  for (const Rescale &rescale : rescales)
    for (unsigned ref : rescale.refs)
      isReference[ref] = true;
  lazy = plan.shape.rescaleBound > 0 && canRescaleLazily(plan);
}

/// Returns names for the loop index and the carried values.
SmallVector<std::string> TileKernel::namesOf(const Running &running) {
  SmallVector<std::string> names{nameOfPosition()};
  for (auto [k, scalar] : llvm::enumerate(running.scalars)) {
    AccOp acc = plan.folded.scalars[k].acc;
    if (isReference[k])
      names.push_back(nameOfReference(acc));
    names.push_back(nameOfPartial(acc));
  }
  for (Value started : running.started)
    if (started)
      names.push_back("started");
  for (auto [k, sum] : llvm::enumerate(running.sums)) {
    std::string name = AccOp(plan.folded.accumulators[k].acc).getName().str();
    names.push_back(name);
    for (Value weights : sum.weights)
      if (weights)
        names.push_back(nameOfWeights(k));
  }
  return names;
}

TileKernel::Running TileKernel::initialise(ScalarCode &code) {
  Running running;
  auto fill = [&](Value value, FragmentType type, const Twine &name) -> Value {
    return device::FillOp::create(b, code.named(name.str()), type, value, b.getStringAttr(name.str()));
  };
  for (auto [k, scalar] : llvm::enumerate(plan.folded.scalars)) {
    AccOp acc = scalar.acc;
    Type type = acc.getResult().getType();
    Value start = identity(code, acc.getMonoid(), type);
    Running::Scalar state;
    if (isReference[k])
      state.reference = fill(start, typeOver(Over::rows(), type), nameOfReference(acc));
    state.partial = starts[k] ? starts[k] : fill(start, typeOver(Over::parts(), type), nameOfPartial(acc));
    running.scalars.push_back(state);
  }
  for (const Rescale &rescale : rescales) {
    Value none;
    if (rescale.needsStarted)
      none = fill(code.constant(b.getBoolAttr(false)), typeOver(Over::rows(), b.getI1Type()), "started");
    running.started.push_back(none);
  }
  for (const Accumulator &accumulator : plan.folded.accumulators)
    running.sums.push_back(
        {fill(identity(code, Monoid::add, accumulator.type),
              typeOver(Over::tile(padded(accumulator.extents[0])), accumulator.type), AccOp(accumulator.acc).getName()),
         {},
         Value()});
  return running;
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

/// Returns whether a value is computed from loads with one address per block and constants.
bool TileKernel::isReadOnce(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto load = dyn_cast_or_null<LoadOp>(op))
    return load.getArray().getType().getRank() == 0 || llvm::is_contained(readOnce, load);
  return op && !isa<FoldOp>(op) && llvm::all_of(op->getOperands(), [&](Value operand) { return isReadOnce(operand); });
}

/// Returns the terms of a state as tiles reduce them. A bound is separate if it can be evaluated
/// once per row, also for rows that see no key.
rows::SplitTerm TileKernel::termsOf(AccOp acc) {
  rows::SplitTerm terms = rows::splitTerm(acc, plan.keyIndex());
  if (terms.bound && canClamp(terms.bound))
    return terms;
  return {rows::getYielded(acc.getValue()), Value()};
}

Values TileKernel::mapNearestRows(ScalarCode &code, StringRef name, ValueRange inputs, Over over,
                                  ArrayRef<Type> elements, llvm::function_ref<Values(ValueRange)> body) {
  llvm::SaveAndRestore clamps(code.clampsLoads), eager(code.eager);
  return map(code, name, inputs, over, elements, [&](ValueRange in, ValueRange at) {
    BlockArgument row = plan.rowIndex();
    Value one = code.index(1), rows = code.symbol(extent(row.getArgNumber()));
    Value last = arith::SubIOp::create(b, code.loc, rows, one);
    code.bind(row, arith::MinSIOp::create(b, code.loc, arith::AddIOp::create(b, code.loc, rowBase, at[0]), last));
    clampLoads(code);
    code.eager = true;
    return body(in);
  });
}

/// Evaluates the bounds of terms before all tiles, with clamped loads. If it is known which rows
/// see any key, their states start at the bound. Otherwise every tile's terms are combined with it.
void TileKernel::findBounds(ScalarCode &code) {
  termBounds.assign(plan.folded.scalars.size(), Value());
  starts = termBounds;
  for (auto [k, scalar] : llvm::enumerate(plan.folded.scalars)) {
    Value bound = termsOf(scalar.acc).bound;
    if (!bound)
      continue;
    Value ofRows = mapNearestRows(code, "bound", {}, Over::rows(), {bound.getType()},
                                  [&](ValueRange) { return Values{code.eval(bound)}; })[0];
    bool isKnown = true;
    Value start = map(
        code, nameOfPartial(scalar.acc), ofRows, Over::parts(), {bound.getType()}, [&](ValueRange in, ValueRange at) {
          bindElement(code, at[0], Value());
          Value sees = seesSome(code), none = identity(code, AccOp(scalar.acc).getMonoid(), bound.getType());
          isKnown = sees != nullptr;
          return Values{isKnown ? arith::SelectOp::create(b, code.loc, sees, in[0], none).getResult() : none};
        })[0];
    (isKnown ? starts : termBounds)[k] = isKnown ? start : ofRows;
    if (!isKnown)
      start.getDefiningOp()->erase();
  }
}

/// Returns the loads that the fold needs only for bounds of terms. The epilogue loads them again.
llvm::DenseSet<Operation *> TileKernel::findLoadsOfBounds() {
  // Maxima and minima of two operands that are only used as terms of states with this bound.
  llvm::DenseMap<Operation *, Value> boundOf;
  for (const rows::Scalar &scalar : plan.folded.scalars) {
    Value bound = termsOf(scalar.acc).bound;
    Operation *terms = bound ? rows::getYielded(AccOp(scalar.acc).getValue()).getDefiningOp() : nullptr;
    if (terms && llvm::all_of(terms->getUsers(), [&](Operation *user) {
          auto acc = isa<YieldOp>(user) ? dyn_cast<AccOp>(user->getParentOp()) : AccOp();
          return acc && termsOf(acc).bound == bound;
        }))
      boundOf[terms] = bound;
  }
  llvm::DenseMap<Operation *, bool> known;
  std::function<bool(Operation *)> isOfBounds = [&](Operation *op) {
    if (auto found = known.find(op); found != known.end())
      return found->second;
    bool isInside = plan.fold->isAncestor(op),
         all = op->getNumRegions() == 0 && (!isInside || op->getNumResults() == 1);
    for (Operation *user : op->getUsers())
      all = all && (boundOf.lookup(user) == op->getResult(0) || isOfBounds(user));
    return known[op] = all;
  };
  llvm::DenseSet<Operation *> loads;
  if (!boundOf.empty())
    plan.nest.walk([&](LoadOp load) {
      if (isOfBounds(load))
        loads.insert(load);
    });
  return loads;
}

/// Finds scores s whose only use is a product s·u with u uniform in the block. The product must be
/// reduced by a maximum or minimum, or be used in exponents only. For integer scores u may be
/// loaded from memory, as quantization steps are.
void TileKernel::findScaledScores(ScalarCode &code) {
  Value row = plan.rowIndex();
  Value key = plan.keyIndex();
  rows::Dependence deps;
  for (const rows::Score &score : plan.folded.scores) {
    ScaledScore scaled = {};
    Value value = score.value;
    auto op = value.hasOneUse() ? dyn_cast<arith::MulFOp>(*value.getUsers().begin()) : arith::MulFOp();
    bool reduced = op && llvm::any_of(plan.folded.scalars, [&](const rows::Scalar &scalar) {
                     AccOp acc = scalar.acc;
                     return (acc.getMonoid() == Monoid::max || acc.getMonoid() == Monoid::min) &&
                            acc.getRefs().empty() && termsOf(acc).value == op.getResult();
                   });
    if (op && (reduced || isOfExponents(op.getResult())) && op.getType().isF32()) {
      Value other = op.getLhs() == value ? op.getRhs() : op.getLhs();
      bool isKnown = !code.isCostly(other) || (score.type.isIndex() && isReadOnce(other));
      if (!deps.on(other, row) && !deps.on(other, key) && isKnown)
        scaled = {op.getResult(), other};
    }
    scaledScores.push_back(scaled);
  }
}

/// Returns whether 0 < u < 2¹²⁷, so that u·log₂e is finite.
Value TileKernel::keepsOrder(ScalarCode &code, Value u) {
  Value zero = code.constant(b.getF32FloatAttr(0)), limit = code.constant(b.getF32FloatAttr(0x1p127f));
  auto less = [&](Value x, Value y) -> Value {
    return arith::CmpFOp::create(b, code.loc, arith::CmpFPredicate::OLT, x, y);
  };
  Value isFinite = less(u, limit);
  return b.createOrFold<arith::AndIOp>(code.named("keeps_order"), less(zero, u), isFinite);
}

/// Returns an element of a score as a float. This is exact for sums of integers.
Value TileKernel::asFloat(ScalarCode &code, Value element) {
  return element.getType().isInteger(32) ? arith::SIToFPOp::create(b, code.loc, b.getF32Type(), element).getResult()
                                         : element;
}

/// Adds the scores to a tile, with their factors u kept apart. For 0 < u < ∞ rounding keeps the
/// order, so that max_j (s_j·u) is exactly (max_j s_j)·u. For any other u the scores are multiplied
/// at once, and the remaining factor is 1.
void TileKernel::addScores(ScalarCode &code, ValueRange scores, Tile &tile) {
  for (auto [k, planned, product, sums] : llvm::enumerate(plan.folded.scores, scaledScores, scores)) {
    std::string name = nameOfScores(k);
    // A float can mark masked-out elements. If nothing is masked, the factor is known to keep the
    // order.
    Value fragment = sums;
    bool isInteger = planned.type.isIndex();
    if (isInteger && !tile.presence && !predicate) {
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
    if (readsMemory)
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

Values TileKernel::fragmentsOf(const Tile &tile) {
  Values fragments;
  for (const Element &element : tile.elements)
    fragments.push_back(element.fragment);
  return fragments;
}

void TileKernel::bindTile(ScalarCode &code, const Tile &tile, ValueRange in, ValueRange at) {
  bindElement(code, at, tile.first);
  for (auto [element, value] : llvm::zip(tile.elements, in))
    if (element.rest)
      code.bindProduct(element.value, asFloat(code, value), element.rest);
    else
      code.bind(element.value, asFloat(code, value));
}

/// Returns whether values are `none` for masked-out elements by themselves, because of the elements
/// that the tile holds there.
bool TileKernel::isNoneWhereAbsent(const Tile &tile, AccOp acc, ValueRange values, double none) {
  llvm::DenseMap<Value, double> known;
  for (const Element &element : tile.elements)
    if (element.absent)
      known[element.value] = *element.absent;
  for (Value ref : acc.getRefs())
    known[ref] = 0; // any finite value: see bindReferences
  return llvm::all_of(values, [&](Value value) { return valueWhere(value, known) == none; });
}

/// Returns the product of factors over divisors for each row and key, and `none` where masked out.
Value TileKernel::valuesOf(ScalarCode &code, AccOp acc, ValueRange factors, ValueRange divisors, TypedAttr none,
                           const Tile &tile, const Running &news) {
  Values inputs = fragmentsOf(tile);
  unsigned fragments = inputs.size();
  for (Value ref : acc.getRefs()) {
    Value pivot = tile.pivots.lookup(ref);
    inputs.push_back(pivot ? pivot : news.scalars[numberOf(ref)].reference);
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
        bindTile(code, tile, in, at);
        for (auto [k, pivot] : llvm::enumerate(ofRows))
          code.bind(pivot.first, in[count + k]);
        Values reads(factors);
        Value keep = bindReferences(code, acc, Values(in.slice(fragments, count - fragments)),
                                    divisors.empty() ? reads : Values());
        llvm::append_range(reads, divisors);
        bool isNone = !keep && divisors.empty() && factors.size() == 1 && number &&
                      isNoneWhereAbsent(tile, acc, factors, number.getValueAsDouble());
        Value present;
        if (tile.presence && !isNone)
          present = isPresent(code, *tile.presence, in.drop_front(known), at[1]);
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
void TileKernel::maskElement(ScalarCode &code, Element &element, FloatAttr none, const Tile &tile) {
  Values inputs{element.fragment};
  llvm::append_range(inputs, tile.presence->bounds);
  element.fragment =
      map(code, "scores", inputs, Over::tile(plan.shape.keys), {none.getType()}, [&](ValueRange in, ValueRange at) {
        bindElement(code, at, tile.first);
        Value present = isPresent(code, *tile.presence, in.drop_front(), at[1]);
        return Values{guarded(code, present, Value(), code.constant(none), {}, [&] { return in[0]; })};
      })[0];
  element.absent = none.getValueAsDouble();
}

/// Reduces the terms of a tile over each thread's keys. For later states, the operand of a maximum
/// or minimum replaces the values that it was computed from.
Value TileKernel::reduceTerms(ScalarCode &code, AccOp acc, Value term, Tile &tile, Running &news, unsigned k) {
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
      maskElement(code, element, number, tile);
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
  Value terms = valuesOf(code, acc, term, {}, none, tile, news);
  news.scalars[k].terms = terms;
  if (keeps && !term.hasOneUse())
    tile.elements.push_back(
        {term, Value(), terms, tile.presence ? std::optional(number.getValueAsDouble()) : std::nullopt});
  return reduce(terms, nameInTile(acc));
}

/// The same, combined with the terms' bound if a thread holds any term.
Value TileKernel::reduceTile(ScalarCode &code, AccOp acc, Tile &tile, Running &news, unsigned k) {
  Value reduced = reduceTerms(code, acc, termsOf(acc).value, tile, news, k);
  if (!termBounds[k])
    return reduced;
  Values inputs{reduced, termBounds[k]};
  if (tile.presence) {
    Value present = maskOf(code, *tile.presence, tile.first);
    inputs.push_back(device::ReduceOp::create(b, code.named("tile_has_keys"), typeOver(Over::parts(), b.getI1Type()),
                                              Monoid::or_, present));
  }
  return map(code, nameInTile(acc), inputs, Over::parts(), {elementOf(reduced)}, [&](ValueRange in, ValueRange) {
    Value all = code.combine(acc.getMonoid(), in[0], in[1]);
    return Values{in.size() == 2 ? all : arith::SelectOp::create(b, code.loc, in[2], all, in[0]).getResult()};
  })[0];
}

/// Binds the arguments of a rescaling to the references before and after. Returns whether one has
/// changed.
Value TileKernel::bindRescale(ScalarCode &code, const Rescale &rescale, ValueRange before, ValueRange after) {
  Value changed;
  AccOp acc = rescale.acc;
  for (unsigned k = 0; k != rescale.refs.size(); ++k) {
    code.bind(acc.getRepair().getArgument(2 * k), before[k]);
    code.bind(acc.getRepair().getArgument(2 * k + 1), after[k]);
    Value moved = code.differs(before[k], after[k]);
    changed = code.either(changed, moved);
  }
  return changed;
}

/// Returns the correction factor c(d, d′) if the state has started and a reference has changed,
/// else the identity of ⊗. The coefficients of the `others` follow; they are 0 if the factor is the
/// identity.
Values TileKernel::factor(ScalarCode &code, unsigned number, const Running &olds, const Running &news, StringRef name) {
  const Rescale &rescale = rescales[number];
  AccOp acc = rescale.acc;
  Values inputs;
  for (const Running *running : {&olds, &news})
    for (unsigned ref : rescale.refs)
      inputs.push_back(running->scalars[ref].reference);
  if (olds.started[number])
    inputs.push_back(olds.started[number]);
  OperandRange yielded = acc.getRepair().front().getTerminator()->getOperands();
  SmallVector<Type> types(yielded.getTypes());
  unsigned count = rescale.refs.size();
  return mapNearestRows(code, name, inputs, Over::rows(), types, [&](ValueRange in) {
    ValueRange before = in.take_front(count), after = in.slice(count, count);
    Value apply = bindRescale(code, rescale, before, after);
    apply = code.both(apply, olds.started[number] ? in.back() : regular(code, acc, Values(before)));
    if (olds.started[number])
      apply = code.both(apply, regular(code, acc, Values(after)));
    Monoid combine = acc.getCombine() == ScalarFn::mul ? Monoid::mul : Monoid::add;
    Values values;
    for (auto [k, value] : llvm::enumerate(yielded)) {
      Value otherwise = identity(code, k ? Monoid::add : combine, value.getType());
      values.push_back(arith::SelectOp::create(b, code.loc, apply, code.eval(value), otherwise));
    }
    return values;
  });
}

/// Returns whether the correction factor, for the bound arguments, is within the schedule's bound
/// of 1. Exponentials are compared by their exponents.
Value TileKernel::isNearOne(ScalarCode &code, AccOp acc) {
  Value factor = rows::getYielded(acc.getRepair());
  Operation *op = factor.getDefiningOp();
  auto compare = [&](arith::CmpFPredicate relation, Value x, double limit) -> Value {
    Value constant = code.constant(b.getF32FloatAttr(static_cast<float>(limit)));
    return arith::CmpFOp::create(b, code.named("is_near"), relation, x, constant);
  };
  double bound = plan.shape.rescaleBound;
  if (isa_and_nonnull<math::ExpOp, math::Exp2Op>(op)) {
    Value exponent = math::AbsFOp::create(b, code.loc, code.eval(op->getOperand(0)));
    return compare(arith::CmpFPredicate::OLE, exponent, isa<math::ExpOp>(op) ? bound * std::log(2.0) : bound);
  }
  Value value = code.eval(factor);
  Value isAtMost = compare(arith::CmpFPredicate::OLE, value, std::exp2(bound));
  return code.both(compare(arith::CmpFPredicate::OGE, value, std::exp2(-bound)), isAtMost);
}

/// Returns whether a rescaling from singular references is never near 1: its factor is 0, infinite
/// or NaN.
bool TileKernel::isFarFromSingular(const Rescale &rescale) {
  AccOp acc = rescale.acc;
  llvm::DenseMap<Value, double> known;
  for (auto [k, singular] : llvm::enumerate(acc.getSingular())) {
    auto value = dyn_cast<FloatAttr>(singular);
    if (!value)
      return false;
    known[acc.getRepair().getArgument(2 * k)] = value.getValueAsDouble();
    known[acc.getRepair().getArgument(2 * k + 1)] = 0;
  }
  auto factor = rescale.refs.size() == 1 ? valueWhere(rows::getYielded(acc.getRepair()), known) : std::nullopt;
  return factor && (*factor == 0 || !std::isfinite(*factor));
}

/// Returns whether references must move: some state, relative to the current references, may be off
/// by more than the bound. Within it, no terms are lost or overflow. Rescaling is exact in the
/// fold's meaning, whenever it happens. Piecewise linear powers of 2 have an error of their own,
/// which depends on the reference.
Value TileKernel::mustRescale(ScalarCode &code, const Running &olds, const Running &news, ArrayRef<Pivot> pivots) {
  Value must;
  for (const Rescale &rescale : rescales) {
    Values inputs;
    for (unsigned ref : rescale.refs)
      inputs.push_back(olds.scalars[ref].reference);
    for (unsigned ref : rescale.refs)
      inputs.push_back(news.scalars[ref].partial);
    if (must)
      inputs.push_back(must);
    must = mapNearestRows(code, "must_rescale", inputs, Over::parts(), {b.getI1Type()}, [&](ValueRange in) {
      unsigned count = rescale.refs.size();
      Values before(in.take_front(count)), after;
      for (auto [k, ref] : llvm::enumerate(rescale.refs)) {
        Monoid monoid = AccOp(plan.folded.scalars[ref].acc).getMonoid();
        // A row with a large pivot moves in every tile, like a row without elements so far. nvcc
        // emits no branch for a select, but a slow one for a further `or`.
        if (llvm::any_of(pivots, [&, ref = ref](const Pivot &pivot) { return numberOf(pivot.value) == ref; })) {
          Value none = identity(code, monoid, before[k].getType()), moves = isLarge(code, before[k], false);
          before[k] = arith::SelectOp::create(b, code.named("old_pivot"), moves, none, before[k]);
        }
        after.push_back(buildMonoid(b, code.named("tile_pivot"), monoid, before[k], in[count + k]));
      }
      Value changed = bindRescale(code, rescale, before, after);
      Value near = isNearOne(code, rescale.acc);
      if (!isFarFromSingular(rescale)) {
        near = code.both(near, regular(code, rescale.acc, before));
        // A row without elements so far has not started: no terms may be added to its states.
        for (auto [ref, value] : llvm::zip(rescale.refs, before))
          near = code.both(near, hasElements(code, plan.folded.scalars[ref].acc, value));
      }
      Value far = arith::XOrIOp::create(b, code.loc, near, code.constant(b.getBoolAttr(true)));
      Value result = code.both(changed, far);
      if (in.size() > 2 * count)
        result = arith::OrIOp::create(b, code.loc, result, in.back());
      return Values{result};
    })[0];
  }
  return must;
}

/// Updates the references of a pass from the partials of a row's lanes.
void TileKernel::updateReferences(ScalarCode &code, unsigned pass, Running &news, StringRef name) {
  for (auto [k, scalar] : llvm::enumerate(plan.folded.scalars))
    if (isReference[k] && scalar.pass == pass)
      news.scalars[k].reference = joinLanes(code, scalar.acc, news.scalars[k].partial, name);
}

Value TileKernel::joinLanes(ScalarCode &code, AccOp acc, Value partial, StringRef name) {
  Type type = acc.getResult().getType();
  return device::ReduceOp::create(b, code.named(name.empty() ? nameOfRow(acc) : name.str()),
                                  typeOver(Over::rows(), type), acc.getMonoid(), partial);
}

/// Returns a state rescaled by a factor.
Value TileKernel::rescaled(ScalarCode &code, AccOp acc, Value state, Value factor, Over over) {
  Monoid combine = acc.getCombine() == ScalarFn::mul ? Monoid::mul : Monoid::add;
  std::string name = over.kind == Over::Tile ? acc.getName().str() : nameOfPartial(acc);
  return map(code, name, {state, factor}, over, {elementOf(state)},
             [&](ValueRange in, ValueRange) { return Values{code.combine(combine, in[0], in[1])}; })[0];
}

/// Returns (state ⊗ factor) ⊕ part, with one rounding if ⊗ and ⊕ are those of floats.
Value TileKernel::merged(ScalarCode &code, AccOp acc, Value state, Value factor, Value part) {
  bool multiplies = factor && acc.getCombine() == ScalarFn::mul;
  bool fuses = multiplies && acc.getMonoid() == Monoid::add && isa<FloatType>(elementOf(state));
  if (factor && !fuses)
    state = rescaled(code, acc, state, factor, Over::parts());
  Values inputs{state, part};
  if (fuses)
    inputs.push_back(factor);
  return map(code, nameOfPartial(acc), inputs, Over::parts(), {elementOf(state)}, [&](ValueRange in, ValueRange) {
    if (fuses)
      return Values{math::FmaOp::create(b, code.loc, in[0], in[2], in[1])};
    return Values{code.combine(acc.getMonoid(), in[0], in[1])};
  })[0];
}

/// Adds Σ cₖ·uₖ, which moves a sum of powers of differences to another center, as for a variance.
/// The update is linear, so that each lane adds its own partials of the uₖ.
void TileKernel::addOthers(ScalarCode &code, AccOp acc, ValueRange coefficients, const Running &olds, Value &partial) {
  for (auto [other, coefficient] : llvm::zip(acc.getOthers(), coefficients))
    partial = map(code, nameOfPartial(acc), {partial, coefficient, olds.scalars[numberOf(other)].partial},
                  Over::parts(), {elementOf(partial)}, [&](ValueRange in, ValueRange) {
                    return Values{math::FmaOp::create(b, code.loc, in[1], in[2], in[0])};
                  })[0];
}

/// Returns the state without axes that sums the weights of this accumulator, whose terms can be
/// reused; nullopt if there is none. For example, the row sum of softmax.
std::optional<unsigned> TileKernel::findTerms(AccOp acc, const rows::Factors &factors, const Running &news) {
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
Value TileKernel::weights(ScalarCode &code, const Accumulator &accumulator, const rows::Factors &factors,
                          const Tile &tile, const Running &news) {
  if (auto k = findTerms(accumulator.acc, factors, news))
    return news.scalars[*k].terms;
  return valuesOf(code, accumulator.acc, factors.values, factors.divisors,
                  cast<TypedAttr>(getIdentity(Monoid::add, accumulator.type)), tile, news);
}

/// Returns whether a value depends on `of` alone, and is 0 if that is 0.
bool TileKernel::isNoneWhereNone(Value value, Value of) {
  llvm::DenseMap<Value, double> known{{of, 0.0}};
  auto at = valueWhere(value, known);
  return at && *at == 0;
}

/// Returns the states of a pass. Those that depend on the mask alone come first, so that code that
/// differs between masked and full tiles is contiguous.
SmallVector<unsigned> TileKernel::statesOf(unsigned pass, const Tile &tile) {
  SmallVector<unsigned> states;
  for (auto [k, scalar] : llvm::enumerate(plan.folded.scalars))
    if (scalar.pass == pass)
      states.push_back(k);
  std::stable_partition(states.begin(), states.end(), [&](unsigned k) {
    AccOp acc = plan.folded.scalars[k].acc;
    Value term = termsOf(acc).value;
    SetVector<Operation *> slice;
    (void)getBackwardSlice(term, &slice);
    return acc.getRefs().empty() && llvm::none_of(tile.elements, [&](const Element &element) {
             return element.value == term || slice.contains(element.value.getDefiningOp());
           });
  });
  return states;
}

/// Returns whether a state's terms are a constant t with t ⊕ x = t.
static bool isAbsorbing(AccOp acc) {
  auto constant = rows::getYielded(acc.getValue()).getDefiningOp<arith::ConstantOp>();
  auto truth = constant ? dyn_cast<BoolAttr>(constant.getValue()) : BoolAttr();
  return truth && acc.getRefs().empty() && acc.getMonoid() == (truth.getValue() ? Monoid::or_ : Monoid::and_);
}

/// Computes the states after a tile and the weights of the accumulators. The sums of the
/// accumulators are not rescaled here, but by `rescaleSums`.
TileKernel::Step TileKernel::passes(ScalarCode &code, Tile &tile, const Running &olds) {
  Step step{olds, Values(rescales.size()), SmallVector<Values>(rescales.size()), Value(), Value()};
  Running &news = step.next;
  code.smallOperands.clear();
  shiftByRows(code, tile);
  for (unsigned pass = 0; pass != plan.folded.passes; ++pass) {
    for (unsigned k : statesOf(pass, tile)) {
      AccOp acc = plan.folded.scalars[k].acc;
      if (!tile.presence && isAbsorbing(acc)) {
        news.scalars[k].partial =
            device::FillOp::create(b, code.named(nameOfPartial(acc)), olds.scalars[k].partial.getType(),
                                   code.eval(rows::getYielded(acc.getValue())));
        continue;
      }
      Value ofTile = reduceTile(code, acc, tile, news, k);
      int rescale = rescaleOfScalar[k];
      news.scalars[k].partial =
          merged(code, acc, olds.scalars[k].partial, rescale < 0 ? Value() : step.factors[rescale], ofTile);
      if (rescale >= 0)
        addOthers(code, acc, step.coefficients[rescale], olds, news.scalars[k].partial);
    }
    if (lazy && pass == 0)
      rescaleWhereNeeded(code, olds, step, tile);
    else if (!lazy)
      moveReferences(code, pass, news, tile);
    for (auto [k, rescale] : llvm::enumerate(rescales)) {
      if (rescale.pass != pass)
        continue;
      if (!lazy) {
        Values values = factor(code, k, olds, news);
        step.factors[k] = values.front();
        step.coefficients[k].assign(values.begin() + 1, values.end());
      }
      if (olds.started[k]) {
        Values inputs{olds.started[k]};
        for (unsigned ref : rescale.refs)
          inputs.push_back(news.scalars[ref].reference);
        news.started[k] = map(code, "started", inputs, Over::rows(), {b.getI1Type()}, [&](ValueRange in, ValueRange) {
          Value ok = regular(code, rescale.acc, Values(in.drop_front()));
          for (auto [ref, value] : llvm::zip(rescale.refs, in.drop_front()))
            ok = code.both(ok, hasElements(code, plan.folded.scalars[ref].acc, value));
          return Values{ok ? b.createOrFold<arith::OrIOp>(code.loc, in[0], ok) : code.constant(b.getBoolAttr(true))};
        })[0];
      }
    }
  }
  for (auto [k, accumulator] : llvm::enumerate(plan.folded.accumulators)) {
    Values &all = news.sums[k].weights;
    const auto &factors = plan.weights[k];
    all.assign({weights(code, accumulator, factors[0], tile, news)});
    bool isOne = factors[0].values.size() == 1 && factors[0].divisors.empty();
    for (const rows::Factors &other : ArrayRef(factors).drop_front())
      all.push_back(isOne && isNoneWhereNone(other.values[0], factors[0].values[0])
                        ? Value()
                        : weights(code, accumulator, other, tile, news));
  }
  if (step.mustMove)
    step.mustRescaleSums = withStates(code, step);
  return step;
}

/// Emits conditional rescaling: new references and correction factors for the warps that must move,
/// the identity of ⊗ for the others. Elements of rows with large references are shifted.
void TileKernel::rescaleWhereNeeded(ScalarCode &code, const Running &olds, Step &step, Tile &tile) {
  SmallVector<Pivot> pivots = findReferences(tile, 0);
  step.mustMove = device::AnyOp::create(b, code.named("rescale"), mustRescale(code, olds, step.next, pivots));
  Values otherwise;
  for (auto [k, scalar] : llvm::enumerate(olds.scalars))
    if (isReference[k])
      otherwise.push_back(scalar.reference);
  for (const Rescale &rescale : rescales) {
    Type type = rows::getYielded(AccOp(rescale.acc).getRepair()).getType();
    otherwise.push_back(device::FillOp::create(b, code.named("correction"), typeOver(Over::rows(), type),
                                               identity(code, Monoid::mul, type)));
  }
  auto refer = [&](const Running &running) {
    for (Pivot &pivot : pivots)
      pivot.reference = running.scalars[numberOf(pivot.value)].reference;
  };
  refer(olds);
  otherwise.append(valuesOf(pivots, tile));
  Values results = ifAny(code, step.mustMove, otherwise, [&] {
    Running moved = step.next;
    updateReferences(code, 0, moved, "new_pivot");
    Values values;
    for (auto [k, scalar] : llvm::enumerate(moved.scalars))
      if (isReference[k])
        values.push_back(scalar.reference);
    for (unsigned k = 0; k != rescales.size(); ++k)
      values.push_back(factor(code, k, olds, moved).front());
    refer(moved);
    if (!pivots.empty())
      values.append(shiftLarge(code, tile, pivots));
    return values;
  });
  unsigned next = 0;
  for (auto [k, scalar] : llvm::enumerate(step.next.scalars))
    if (isReference[k])
      scalar.reference = results[next++];
  for (Value &factor : step.factors)
    factor = results[next++];
  takeShifted(code, tile, pivots, ValueRange(results).drop_front(next));
}

/// Returns the vote of warps that must move or have a state that is NaN. A warp with NaN has the
/// factor 1, which changes nothing. A vote that needs the states keeps their sums before it.
/// Without it ptxas moves the sums after the wait for the products, where nothing overlaps with
/// them.
Value TileKernel::withStates(ScalarCode &code, const Step &step) {
  Values inputs{step.mustMove};
  for (auto [k, scalar] : llvm::enumerate(step.next.scalars))
    if (rescaleOfScalar[k] >= 0 && isa<FloatType>(elementOf(scalar.partial)))
      inputs.push_back(scalar.partial);
  if (inputs.size() == 1)
    return step.mustMove;
  Value either = map(code, "must_rescale_sums", inputs, Over::parts(), {b.getI1Type()}, [&](ValueRange in, ValueRange) {
    Value any = in[0];
    for (Value state : in.drop_front())
      any = arith::OrIOp::create(b, code.loc, any,
                                 arith::CmpFOp::create(b, code.loc, arith::CmpFPredicate::UNO, state, state));
    return Values{any};
  })[0];
  return device::AnyOp::create(b, code.named("rescale_sums"), either);
}

/// Rescales the sums of the accumulators to the references of the step.
void TileKernel::rescaleSums(ScalarCode &code, Step &step) {
  Values sums;
  SmallVector<unsigned> which;
  for (auto [k, rescale] : llvm::enumerate(rescaleOfAccumulator))
    if (rescale >= 0) {
      which.push_back(k);
      sums.push_back(step.next.sums[k].sum);
    }
  auto move = [&] {
    Values moved;
    for (auto [sum, k] : llvm::zip(sums, which))
      moved.push_back(rescaled(code, plan.folded.accumulators[k].acc, sum, step.factors[rescaleOfAccumulator[k]],
                               Over::tile(padded(plan.folded.accumulators[k].extents[0]))));
    return moved;
  };
  Values moved = step.mustRescaleSums && !sums.empty() ? ifAny(code, step.mustRescaleSums, sums, move) : move();
  for (auto [sum, k] : llvm::zip(moved, which))
    step.next.sums[k].sum = sum;
}

/// Returns the fold's results: states without axes, a value per row, then the accumulators' sums.
Values TileKernel::conclude(ScalarCode &code, const Running &olds) {
  Step step{olds, Values(rescales.size()), SmallVector<Values>(rescales.size()), Value(), Value()};
  if (lazy) {
    updateReferences(code, 0, step.next);
    for (unsigned k = 0; k != rescales.size(); ++k)
      step.factors[k] = factor(code, k, olds, step.next, "last_correction").front();
    rescaleSums(code, step);
  }
  Values results;
  for (auto [k, scalar] : llvm::enumerate(plan.folded.scalars)) {
    Value partial = step.next.scalars[k].partial;
    if (int rescale = rescaleOfScalar[k]; lazy && rescale >= 0)
      partial = rescaled(code, scalar.acc, partial, step.factors[rescale], Over::parts());
    results.push_back(isReference[k] ? step.next.scalars[k].reference : joinLanes(code, scalar.acc, partial));
  }
  for (const Running::Sum &sum : step.next.sums)
    results.push_back(sum.sum);
  return results;
}

} // namespace moa::tiles
