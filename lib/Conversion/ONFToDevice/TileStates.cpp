//===- TileStates.cpp - the states of a fold over one tile -----------------===//
#include "lib/Conversion/ONFToDevice/TileKernel.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>

using namespace mlir;
using namespace moa;
using namespace moa::onf;

namespace moa::tiles {

//===----------------------------------------------------------------------===//
// Maps
//===----------------------------------------------------------------------===//

Values TileKernel::map(ScalarCode &code, ValueRange inputs, int64_t columns,
                       ArrayRef<Type> elements,
                       llvm::function_ref<Values(ValueRange, ValueRange)> body) {
  FragmentType whole = columns ? tileType(columns, b.getF32Type()) : rowType(b.getF32Type());
  SmallVector<Type> results;
  for (Type element : elements)
    results.push_back(columns ? tileType(columns, element) : rowType(element));
  auto op = device::MapOp::create(b, code.loc, results, inputs, whole.getLayout());
  OpBuilder::InsertionGuard guard(b);
  Block &block = op.getBody().emplaceBlock();
  for (Value input : inputs)
    block.addArgument(elementOf(input), input.getLoc());
  for (unsigned axis = 0; axis < whole.getShape().size(); ++axis)
    block.addArgument(b.getIndexType(), code.loc);
  b.setInsertionPointToEnd(&block);
  code.open();
  ValueRange arguments = block.getArguments();
  Values values = body(arguments.take_front(inputs.size()),
                       arguments.drop_front(inputs.size()));
  device::YieldOp::create(b, code.loc, values);
  code.close();
  return Values(op.getResults());
}

void TileKernel::bindElement(ScalarCode &code, ValueRange at, Value first) {
  code.bind(plan.nest.getBody().getArguments().back(),
            arith::AddIOp::create(b, code.loc, rowBase, at[0]));
  if (at.size() > 1)
    code.bind(plan.fold.getBody().getArgument(0),
              arith::AddIOp::create(b, code.loc, first, at[1]));
}

Value TileKernel::guarded(ScalarCode &code, bool masked, ValueRange at, Value keep,
                          Value none, ValueRange reads,
                          llvm::function_ref<Value()> value) {
  Value present = masked ? isPresent(code) : Value();
  bool reading = masked && llvm::any_of(reads, [&](Value v) { return code.isCostly(v); });
  keep = code.both(present, keep);
  if (reading)
    return code.branch(keep, {none.getType()}, [&] { return Values{value()}; },
                       [&] { return Values{none}; })[0];
  Value result = value();
  if (!keep)
    return result;
  return arith::SelectOp::create(b, code.loc, keep, result, none);
}

/// Whether the key is one of the fold's and the row sees it.
Value TileKernel::isPresent(ScalarCode &code) {
  auto below = [&](Value index, StringRef end) {
    return arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::slt, code.eval(index),
                                 code.symbol(end))
        .getResult();
  };
  unsigned last = plan.nest.getExtents().size() - 1;
  Value present = below(plan.fold.getBody().getArgument(0), plan.fold.getExtent());
  if (readsMemory)
    present = code.both(present, below(plan.nest.getBody().getArgument(last), extent(last)));
  auto guards = plan.fold.getBody().front().getOps<GuardOp>();
  if (guards.empty())
    return present;
  Value condition = (*guards.begin()).getCondition();
  if (!code.isCostly(condition))
    return code.both(present, code.eval(condition));
  return code.branch(present, {b.getI1Type()}, [&] { return Values{code.eval(condition)}; },
                     [&] { return Values{code.constant(b.getBoolAttr(false))}; })[0];
}

Value TileKernel::regular(ScalarCode &code, AccOp acc, ArrayRef<Value> refs) {
  Value ok;
  for (auto [ref, singular] : llvm::zip_equal(refs, acc.getSingular())) {
    auto value = dyn_cast<FloatAttr>(singular);
    if (value && !value.getValue().isNaN() && value.getType() == ref.getType())
      ok = code.both(ok, code.differs(ref, code.constant(value)));
  }
  return ok;
}

/// The value of an expression where some leaves are known; nothing if it depends on
/// the others.
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
  SmallVector<double, 2> operands(2, 0.0);
  if (!isa<arith::AddFOp, arith::SubFOp, arith::NegFOp, math::ExpOp, math::Exp2Op>(op))
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
  if (isa<arith::NegFOp>(op))
    return -operands[0];
  return isa<math::ExpOp>(op) ? std::exp(operands[0]) : std::exp2(operands[0]);
}

/// Binds the references of a state's term and returns where the term counts, null
/// for everywhere. A maximum that is still −∞ is one of terms x that are all −∞. If
/// the term is the identity for x = −∞ and any finite reference in place of the
/// maximum, then 0 takes its place and nothing has to be left out: for exp(x − m),
/// exp(−∞ − 0) = 0. The same holds for minima and +∞.
Value TileKernel::bindReferences(ScalarCode &code, AccOp acc, ArrayRef<Value> refs,
                                 ArrayRef<Value> factors) {
  Value keep = regular(code, acc, refs);
  for (auto [ref, value] : llvm::zip_equal(acc.getRefs(), refs))
    code.bind(ref, value);
  if (acc.getRefs().size() != 1 || factors.size() != 1 || !keep ||
      acc.getMonoid() != Monoid::add)
    return keep;
  AccOp extreme = acc.getRefs()[0].getDefiningOp<AccOp>();
  auto singular = cast<FloatAttr>(acc.getSingular()[0]);
  bool isExtreme = extreme.getMonoid() == Monoid::max || extreme.getMonoid() == Monoid::min;
  if (!isExtreme || singular != getIdentity(extreme.getMonoid(), singular.getType()))
    return keep;
  llvm::DenseMap<Value, double> known;
  known[rows::getYielded(extreme.getValue())] = singular.getValue().convertToDouble();
  known[acc.getRefs()[0]] = 0;
  auto term = valueWhere(factors[0], known);
  if (!term || *term != 0)
    return keep;
  Value zero = code.constant(FloatAttr::get(singular.getType(), 0.0));
  code.bind(acc.getRefs()[0],
            arith::SelectOp::create(b, code.loc, keep, refs[0], zero));
  return Value();
}

//===----------------------------------------------------------------------===//
// A consumer
//===----------------------------------------------------------------------===//

// Loop arguments: per scalar its value, then per scalar with references whether
// it has started, per carrier its fragment, per carrier with references whether it
// has started.
Values TileKernel::initialise(ScalarCode &code) {
  Values inits;
  auto fill = [&](Value value, FragmentType type, const Twine &name) {
    inits.push_back(device::FillOp::create(b, code.named(name.str()), type, value));
  };
  Value none = code.constant(b.getBoolAttr(false));
  for (const rows::Scalar &scalar : plan.folded.scalars) {
    AccOp acc = scalar.acc;
    Type type = acc.getResult().getType();
    fill(identity(code, acc.getMonoid(), type), rowType(type), acc.getName());
  }
  for (const rows::Scalar &scalar : plan.folded.scalars)
    if (AccOp acc = scalar.acc; !acc.getRefs().empty())
      fill(none, rowType(b.getI1Type()), acc.getName() + "_started");
  for (const Carrier &carrier : plan.folded.carriers)
    fill(identity(code, Monoid::add, carrier.type),
         tileType(padded(carrier.extents[0]), carrier.type), AccOp(carrier.acc).getName());
  for (const Carrier &carrier : plan.folded.carriers)
    if (AccOp acc = carrier.acc; !acc.getRefs().empty())
      fill(none, rowType(b.getI1Type()), acc.getName() + "_started");
  return inits;
}

/// One state without axes: the tile's keys combined, then merged.
Values TileKernel::scalarStep(ScalarCode &code, const rows::Scalar &scalar, unsigned k,
                              ValueRange scores, ArrayRef<State> olds,
                              SmallVectorImpl<State> &news, Value first, bool masked) {
  AccOp acc = scalar.acc;
  Type type = acc.getResult().getType();
  Values inputs(scores);
  for (Value ref : acc.getRefs())
    inputs.push_back(news[numberOf(ref)].value);
  Value terms = map(code, inputs, plan.shape.keys, {type}, [&](ValueRange in, ValueRange at) {
    bindElement(code, at, first);
    for (auto [score, value] : llvm::zip(plan.folded.scores, in))
      code.bind(FoldOp(score.fold).getResult(0), value);
    Values refs(in.drop_front(scores.size()));
    Value keep = bindReferences(code, acc, refs, {rows::getYielded(acc.getValue())});
    Value term = rows::getYielded(acc.getValue());
    return Values{guarded(code, masked, at, keep,
                          identity(code, acc.getMonoid(), type), {term},
                          [&] { return code.eval(term); })};
  })[0];
  Value partial = device::ReduceOp::create(
      b, code.loc, rowType(type),
      MonoidAttr::get(b.getContext(), acc.getMonoid()), terms);
  news[k].terms = terms;
  Values merged{olds[k].value, partial};
  for (Value ref : acc.getRefs()) {
    merged.push_back(olds[numberOf(ref)].value);
    merged.push_back(news[numberOf(ref)].value);
  }
  if (acc.getRefs().empty())
    return map(code, merged, 0, {type}, [&](ValueRange in, ValueRange) {
      return Values{code.combine(acc.getMonoid(), in[0], in[1])};
    });
  Value factor = factors(code, acc, olds, news, olds[k].started);
  Values inputsOf{olds[k].value, partial, factor, olds[k].started};
  for (Value ref : acc.getRefs())
    inputsOf.push_back(news[numberOf(ref)].value);
  return map(code, inputsOf, 0, {type, b.getI1Type()}, [&](ValueRange in, ValueRange) {
    Monoid combine = acc.getCombine() == ScalarFn::mul ? Monoid::mul : Monoid::add;
    Value moved = code.combine(combine, in[0], in[2]);
    Value ok = regular(code, acc, Values(in.drop_front(4)));
    Value started = ok ? b.createOrFold<arith::OrIOp>(code.loc, in[3], ok)
                       : code.constant(b.getBoolAttr(true));
    return Values{code.combine(acc.getMonoid(), moved, in[1]), started};
  });
}

/// c(d, d′) where the state has started and a reference has changed, else the
/// identity of ⊗.
Value TileKernel::factors(ScalarCode &code, AccOp acc, ArrayRef<State> olds,
                          ArrayRef<State> news, Value started) {
  Values inputs{started};
  for (Value ref : acc.getRefs()) {
    inputs.push_back(olds[numberOf(ref)].value);
    inputs.push_back(news[numberOf(ref)].value);
  }
  Type type = rows::getYielded(acc.getRepair()).getType();
  return map(code, inputs, 0, {type}, [&](ValueRange in, ValueRange) {
    Value apply = in[0], changed;
    Values refs;
    for (unsigned k = 0; k != acc.getRefs().size(); ++k) {
      Value old = in[1 + 2 * k], now = in[2 + 2 * k];
      code.bind(acc.getRepair().getArgument(2 * k), old);
      code.bind(acc.getRepair().getArgument(2 * k + 1), now);
      Value moved = code.differs(old, now);
      changed = changed ? b.createOrFold<arith::OrIOp>(code.loc, changed, moved) : moved;
      refs.push_back(now);
    }
    apply = code.both(code.both(apply, changed), regular(code, acc, refs));
    Monoid combine = acc.getCombine() == ScalarFn::mul ? Monoid::mul : Monoid::add;
    Value factor = code.eval(rows::getYielded(acc.getRepair()));
    return Values{arith::SelectOp::create(b, code.loc, apply, factor,
                                          identity(code, combine, type))};
  })[0];
}

/// A state without axes that adds what this carrier multiplies with.
std::optional<unsigned> TileKernel::findTerms(const Carrier &carrier, ArrayRef<State> news) {
  AccOp acc = carrier.acc;
  if (carrier.row.values.size() != 1 || !carrier.row.divisors.empty())
    return std::nullopt;
  for (auto [k, scalar] : llvm::enumerate(plan.folded.scalars)) {
    AccOp other = scalar.acc;
    if (news[k].terms && other.getMonoid() == Monoid::add &&
        rows::getYielded(other.getValue()) == carrier.row.values[0] &&
        llvm::equal(other.getRefs(), acc.getRefs()) &&
        other.getSingular() == acc.getSingular())
      return k;
  }
  return std::nullopt;
}

/// The row operand P of a carrier before it is rounded; 0 where absent.
Value TileKernel::weights(ScalarCode &code, const Carrier &carrier, ValueRange scores,
                          ArrayRef<State> news, Value first, bool masked) {
  AccOp acc = carrier.acc;
  Values inputs(scores);
  for (Value ref : acc.getRefs())
    inputs.push_back(news[numberOf(ref)].value);
  if (auto k = findTerms(carrier, news))
    return news[*k].terms;
  return map(code, inputs, plan.shape.keys, {carrier.type}, [&](ValueRange in, ValueRange at) {
    bindElement(code, at, first);
    for (auto [score, value] : llvm::zip(plan.folded.scores, in))
      code.bind(FoldOp(score.fold).getResult(0), value);
    Values refs(in.drop_front(scores.size()));
    Values reads(carrier.row.values.begin(), carrier.row.values.end());
    Value keep = bindReferences(code, acc, refs,
                                carrier.row.divisors.empty() ? reads : Values());
    llvm::append_range(reads, carrier.row.divisors);
    Value none = identity(code, Monoid::add, carrier.type);
    Value weight = guarded(code, masked, at, keep, none, reads, [&] {
      Value product;
      for (Value factor : carrier.row.values) {
        Value value = code.eval(factor);
        product = product ? code.combine(Monoid::mul, product, value) : value;
      }
      if (!product)
        product = code.constant(cast<TypedAttr>(FloatAttr::get(carrier.type, 1.0)));
      for (Value divisor : carrier.row.divisors)
        product = arith::DivFOp::create(b, code.loc, product, code.eval(divisor));
      return product;
    });
    return Values{weight};
  })[0];
}

/// The states behind one tile, and the weights of the carriers: [scalars, started
/// of scalars, factors and started of carriers with references, weights].
Values TileKernel::passes(ScalarCode &code, ValueRange scores, ValueRange args, Value first,
                          bool masked) {
  unsigned count = plan.folded.scalars.size(), next = count;
  SmallVector<State> olds(count), news(count);
  for (auto [k, scalar] : llvm::enumerate(plan.folded.scalars)) {
    AccOp acc = scalar.acc;
    olds[k].value = args[k];
    if (!acc.getRefs().empty())
      olds[k].started = args[next++];
  }
  news = olds;
  next += plan.folded.carriers.size();
  Values ofCarriers, weightsOf;
  SmallVector<Value> started;
  for (const Carrier &carrier : plan.folded.carriers)
    started.push_back(AccOp(carrier.acc).getRefs().empty() ? Value() : args[next++]);
  for (unsigned pass = 0; pass != plan.folded.passes; ++pass) {
    for (auto [k, scalar] : llvm::enumerate(plan.folded.scalars)) {
      if (scalar.pass != pass)
        continue;
      Values step = scalarStep(code, scalar, k, scores, olds, news, first, masked);
      news[k].value = step[0];
      news[k].started = step.size() > 1 ? step[1] : Value();
    }
  }
  for (auto [k, carrier] : llvm::enumerate(plan.folded.carriers)) {
    weightsOf.push_back(weights(code, carrier, scores, news, first, masked));
    AccOp acc = carrier.acc;
    if (acc.getRefs().empty())
      continue;
    ofCarriers.push_back(factors(code, acc, olds, news, started[k]));
    Values inputs{started[k]};
    for (Value ref : acc.getRefs())
      inputs.push_back(news[numberOf(ref)].value);
    ofCarriers.push_back(map(code, inputs, 0, {b.getI1Type()}, [&](ValueRange in, ValueRange) {
      Value ok = regular(code, acc, Values(in.drop_front()));
      return Values{ok ? b.createOrFold<arith::OrIOp>(code.loc, in[0], ok)
                       : code.constant(b.getBoolAttr(true))};
    })[0]);
  }
  Values results;
  for (const State &state : news)
    results.push_back(state.value);
  for (const State &state : news)
    if (state.started)
      results.push_back(state.started);
  results.append(ofCarriers);
  results.append(weightsOf);
  return results;
}

} // namespace moa::tiles
