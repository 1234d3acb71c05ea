//===- MoAReader.cpp - components at a symbolic multi-index ---------------===//
#include "lib/Validation/Readers.h"

using namespace mlir;
using namespace moa;
using namespace moa::validation;

Term validation::boundIndex(TermContext &terms, unsigned depth) { return terms.index((int64_t(1) << 20) + depth); }

std::string validation::reductionName(Monoid monoid, FlatSymbolRefAttr function, TypeAttr rounds) {
  std::string name = stringifyMonoid(monoid).str();
  if (function)
    name += " " + function.getValue().str();
  if (rounds) {
    llvm::raw_string_ostream os(name);
    os << " rounds " << rounds.getValue();
  }
  return name;
}

void MoAReader::bind(Value array, int64_t value, int64_t presence) { bindings[array] = {value, presence}; }

static SmallVector<Term> pick(ArrayRef<Term> index, ArrayRef<int64_t> positions) {
  SmallVector<Term> result;
  for (int64_t position : positions)
    result.push_back(index[position]);
  return result;
}

static ArrayRef<int64_t> axesOf(ArrayAttr axes, unsigned k) { return cast<DenseI64ArrayAttr>(axes[k]).asArrayRef(); }

Element MoAReader::generic(Value array) {
  SmallVector<Term> index;
  for (unsigned k = 0; k < cast<ArrayType>(array.getType()).getRank(); ++k)
    index.push_back(terms.index(k));
  return compute(array.getDefiningOp(), index, 0);
}

Element MoAReader::at(Value array, ArrayRef<Term> index, unsigned depth) {
  if (auto argument = dyn_cast<BlockArgument>(array)) {
    if (Term scalar = scalars.lookup(array))
      return {scalar, terms.truth(true)};
    Type element = cast<ArrayType>(array.getType()).getElementType();
    return {terms.load(argument.getArgNumber(), index, element), terms.truth(true)};
  }
  std::vector<Term> key(index.begin(), index.end());
  key.push_back(terms.number(depth));
  auto entry = std::make_pair(array.getAsOpaquePointer(), std::move(key));
  if (auto it = memo.find(entry); it != memo.end())
    return it->second;
  Element result;
  if (auto it = bindings.find(array); it != bindings.end()) {
    Type type = cast<ArrayType>(array.getType()).getElementType();
    result.value = terms.apply(it->second.value, type, index);
    result.presence = it->second.presence >= 0 ? terms.apply(it->second.presence, terms.boolType(), index)
                                               : compute(array.getDefiningOp(), index, depth).presence;
  } else {
    result = compute(array.getDefiningOp(), index, depth);
  }
  memo[std::move(entry)] = result;
  return result;
}

/// Reads one operator by its definition in docs/Spec.md.
Element MoAReader::compute(Operation *op, ArrayRef<Term> i, unsigned depth) {
  Term always = terms.truth(true);
  if (auto constant = dyn_cast<ConstantOp>(op))
    return {terms.constant(constant.getValue(), constant.getValue().getType()), always};
  if (auto extent = dyn_cast<ExtentOp>(op))
    return {terms.extent(extent.getExpr()), always};
  if (isa<IotaOp>(op)) // Def 3
    return {i[0], always};
  if (auto map = dyn_cast<MapOp>(op))
    return this->map(map, i, depth);
  if (auto cast = dyn_cast<CastOp>(op)) {
    Element x = at(cast.getInput(), i, depth);
    return {terms.cast(x.value, cast.getResult().getType().getElementType()), x.presence};
  }
  if (auto mask = dyn_cast<MaskOp>(op)) { // Def 9
    Element p = at(mask.getPredicate(), pick(i, mask.getAxes()), depth);
    Element x = at(mask.getInput(), i, depth);
    return {x.value, terms.both(terms.both(p.presence, p.value), x.presence)};
  }
  if (auto reduce = dyn_cast<ReduceOp>(op))
    return this->reduce(reduce, i, depth);
  if (auto inner = dyn_cast<InnerOp>(op))
    return this->inner(inner, i, depth);
  if (auto psi = dyn_cast<PsiOp>(op))
    return gather(psi, i, depth);
  if (auto reshape = dyn_cast<ReshapeOp>(op))
    return this->reshape(reshape, i, depth);
  if (auto cat = dyn_cast<CatOp>(op))
    return catenate(cat, i, depth);
  SmallVector<Term> index(i);
  if (auto transpose = dyn_cast<TransposeOp>(op)) { // Def 7: i'[perm k] = i[k]
    for (auto [k, axis] : llvm::enumerate(transpose.getPerm()))
      index[axis] = i[k];
  } else if (auto slice = dyn_cast<SliceOp>(op)) { // Def 6
    Term &entry = index[slice.getAxis()];
    entry = terms.sum(entry, terms.extent(slice.getStart()));
  } else if (auto reverse = dyn_cast<ReverseOp>(op)) { // n − 1 − i
    Term n = terms.extent(reverse.getInput().getType().getExtent(reverse.getAxis()));
    Term &entry = index[reverse.getAxis()];
    entry = terms.difference(terms.difference(n, terms.number(1)), entry);
  } else if (auto rotate = dyn_cast<RotateOp>(op)) { // (i + k) mod n
    Term n = terms.extent(rotate.getInput().getType().getExtent(rotate.getAxis()));
    Term &entry = index[rotate.getAxis()];
    entry = terms.remainder(terms.sum(entry, terms.extent(rotate.getBy())), n);
  }
  return at(op->getOperand(0), index, depth);
}

/// Def 8. A selection needs only the operand it picks; otherwise(a, b) needs a only where a is
/// present (Def 9).
Element MoAReader::map(MapOp op, ArrayRef<Term> i, unsigned depth) {
  SmallVector<Term> values;
  SmallVector<Term> present;
  for (auto [k, input] : llvm::enumerate(op.getInputs())) {
    Element x = at(input, pick(i, axesOf(op.getAxes(), k)), depth);
    values.push_back(x.value);
    present.push_back(x.presence);
  }
  if (op.getFn() == ScalarFn::select)
    return {terms.select(values[0], values[1], values[2]),
            terms.both(present[0], terms.select(values[0], present[1], present[2]))};
  if (op.getFn() == ScalarFn::otherwise)
    return {terms.select(present[0], values[0], values[1]), terms.either(present[0], present[1])};
  Term all = present.front();
  for (Term p : llvm::drop_begin(present))
    all = terms.both(all, p);
  Type type = op.getInputs().back().getType();
  return {function(op.getFn(), values, cast<ArrayType>(type).getElementType()), all};
}

/// Def 10
Element MoAReader::reduce(ReduceOp op, ArrayRef<Term> i, unsigned depth) {
  ArrayType type = op.getInput().getType();
  Term j = boundIndex(terms, depth);
  SmallVector<Term> index(i);
  index.insert(index.begin() + op.getAxis(), j);
  Element x = at(op.getInput(), index, depth + 1);
  return {terms.reduce(reductionName(op.getMonoid(), op.getFunctionAttr(), {}),
                       op.getResult().getType().getElementType(), j, terms.extent(type.getExtent(op.getAxis())),
                       x.value, x.presence),
          terms.truth(true)};
}

/// Def 11
Element MoAReader::inner(InnerOp op, ArrayRef<Term> i, unsigned depth) {
  ArrayType left = op.getLhs().getType();
  unsigned frame = op.getFrame();
  ArrayRef<Term> p = i.take_front(frame), rest = i.drop_front(frame);
  unsigned cell = left.getRank() - (op.getLhsFramed() ? frame : 0) - 1;
  Term l = boundIndex(terms, depth);
  SmallVector<Term> x(op.getLhsFramed() ? p : ArrayRef<Term>());
  llvm::append_range(x, rest.take_front(cell));
  x.push_back(l);
  SmallVector<Term> y(op.getRhsFramed() ? p : ArrayRef<Term>());
  y.push_back(l);
  llvm::append_range(y, rest.drop_front(cell));
  Element a = at(op.getLhs(), x, depth + 1), b = at(op.getRhs(), y, depth + 1);
  Term value = function(op.getFn(), {a.value, b.value}, left.getElementType());
  return {terms.reduce(reductionName(op.getMonoid(), {}, op.getOperandTypeAttr()),
                       op.getResult().getType().getElementType(), l, terms.extent(left.getShape().back().getValue()),
                       value, terms.both(a.presence, b.presence)),
          terms.truth(true)};
}

/// Def 2: r[dims k] = i[axes k] ψ Ik, the rest of i in order.
Element MoAReader::gather(PsiOp op, ArrayRef<Term> i, unsigned depth) {
  SmallVector<Term> index(op.getInput().getType().getRank(), nullptr);
  Term present = terms.truth(true);
  for (auto [k, indices] : llvm::enumerate(op.getIndices())) {
    Element entry = at(indices, pick(i, axesOf(op.getAxes(), k)), depth);
    index[op.getDims()[k]] = entry.value;
    present = terms.both(present, entry.presence);
  }
  ArrayRef<Term> rest = i.drop_front(op.getFrame());
  for (Term &entry : index)
    if (!entry) {
      entry = rest.front();
      rest = rest.drop_front();
    }
  Element x = at(op.getInput(), index, depth);
  return {x.value, terms.both(present, x.presence)};
}

/// Def 5, for each group of axes with equal element counts separately (Lemma 11).
Element MoAReader::reshape(ReshapeOp op, ArrayRef<Term> i, unsigned depth) {
  ArrayType to = op.getResult().getType(), from = op.getInput().getType();
  auto extentsOf = [&](ArrayType type) {
    SmallVector<Term> extents;
    for (ExprAttr extent : type.getShape())
      extents.push_back(terms.extent(extent.getValue()));
    return extents;
  };
  SmallVector<Term> v = extentsOf(to), s = extentsOf(from), index;
  size_t a = 0, b = 0;
  while (a < v.size() || b < s.size()) {
    // Finds the shortest prefix of v with as many elements as a prefix of s.
    size_t endA = v.size(), endB = s.size();
    Term count = terms.number(1);
    bool found = false;
    for (size_t x = a; x < v.size() && !found; ++x) {
      count = terms.product(count, v[x]);
      Term other = terms.number(1);
      for (size_t y = b; y < s.size() && !found; ++y) {
        other = terms.product(other, s[y]);
        if ((found = count == other))
          endA = x + 1, endB = y + 1;
      }
    }
    Term flat = terms.number(0);
    for (; a < endA; ++a)
      flat = terms.sum(terms.product(flat, v[a]), i[a]);
    SmallVector<Term> digits;
    for (size_t y = endB; y-- > b;) {
      bool outermost = y == b;
      digits.push_back(outermost ? flat : terms.remainder(flat, s[y]));
      if (!outermost)
        flat = terms.quotient(flat, s[y]);
    }
    index.append(digits.rbegin(), digits.rend());
    b = endB;
  }
  return at(op.getInput(), index, depth);
}

/// Def 21
Element MoAReader::catenate(CatOp op, ArrayRef<Term> i, unsigned depth) {
  unsigned axis = op.getAxis();
  Term n = terms.extent(op.getLhs().getType().getExtent(axis));
  SmallVector<Term> behind(i);
  behind[axis] = terms.difference(i[axis], n);
  Term first = terms.below(i[axis], n);
  Element a = at(op.getLhs(), i, depth), b = at(op.getRhs(), behind, depth);
  return {terms.select(first, a.value, b.value), terms.select(first, a.presence, b.presence)};
}

Term MoAReader::function(ScalarFn fn, ArrayRef<Term> x, Type type) {
  bool isFloat = isa<FloatType>(type), isBool = type.isInteger(1);
  auto real = [&](StringRef name) { return terms.scalar(name, type, x); };
  auto compare = [&](StringRef name, Term a, Term b) { return terms.scalar(name, terms.boolType(), {a, b}); };
  switch (fn) {
  case ScalarFn::id:
    return x[0];
  case ScalarFn::neg:
    return isFloat ? real("negf") : terms.scaled(x[0], -1);
  case ScalarFn::abs:
    return isFloat ? real("absf") : terms.integer("max", x[0], terms.scaled(x[0], -1));
  case ScalarFn::exp:
    return real("exp");
  case ScalarFn::exp2:
    return real("exp2");
  case ScalarFn::log:
    return real("log");
  case ScalarFn::log2:
    return real("log2");
  case ScalarFn::sqrt:
    return real("sqrt");
  case ScalarFn::rsqrt:
    return real("rsqrt");
  case ScalarFn::tanh:
    return real("tanh");
  case ScalarFn::sin:
    return real("sin");
  case ScalarFn::cos:
    return real("cos");
  case ScalarFn::erf:
    return real("erf");
  case ScalarFn::floor:
    return real("floor");
  case ScalarFn::ceil:
    return real("ceil");
  case ScalarFn::not_:
    return isBool ? terms.negate(x[0]) : terms.integer("xor", x[0], terms.number(-1));
  case ScalarFn::add:
    return isFloat ? real("addf") : terms.sum(x[0], x[1]);
  case ScalarFn::sub:
    return isFloat ? real("subf") : terms.difference(x[0], x[1]);
  case ScalarFn::mul:
    return isFloat ? real("mulf") : terms.product(x[0], x[1]);
  case ScalarFn::div:
    return isFloat ? real("divf") : terms.quotient(x[0], x[1]);
  case ScalarFn::mod: {
    if (!isFloat)
      return terms.remainder(x[0], x[1]);
    Term rest = real("remf"), zero = terms.real(0, type);
    Term opposite = terms.negate(terms.same(compare("ltf", x[1], zero), compare("ltf", rest, zero)));
    Term corrects = terms.both(terms.negate(compare("eqf", rest, zero)), opposite);
    return terms.select(corrects, terms.scalar("addf", type, {rest, x[1]}), rest);
  }
  case ScalarFn::fmod:
    return real("remf");
  case ScalarFn::atan2:
    return real("atan2");
  case ScalarFn::min:
    return isFloat ? real("minf") : terms.integer("min", x[0], x[1]);
  case ScalarFn::max:
    return isFloat ? real("maxf") : terms.integer("max", x[0], x[1]);
  case ScalarFn::pow:
    return real("pow");
  case ScalarFn::eq:
    return isFloat ? compare("eqf", x[0], x[1]) : isBool ? terms.same(x[0], x[1]) : terms.equal(x[0], x[1]);
  case ScalarFn::ne:
    return terms.negate(function(ScalarFn::eq, x, type));
  case ScalarFn::lt:
    return isFloat ? compare("ltf", x[0], x[1]) : terms.below(x[0], x[1]);
  case ScalarFn::le:
    return isFloat ? compare("lef", x[0], x[1]) : terms.atMost(x[0], x[1]);
  case ScalarFn::gt:
    return isFloat ? compare("ltf", x[1], x[0]) : terms.below(x[1], x[0]);
  case ScalarFn::ge:
    return isFloat ? compare("lef", x[1], x[0]) : terms.atMost(x[1], x[0]);
  case ScalarFn::and_:
    return isBool ? terms.both(x[0], x[1]) : terms.integer("and", x[0], x[1]);
  case ScalarFn::or_:
    return isBool ? terms.either(x[0], x[1]) : terms.integer("or", x[0], x[1]);
  case ScalarFn::xor_:
    return isBool ? terms.negate(terms.same(x[0], x[1])) : terms.integer("xor", x[0], x[1]);
  case ScalarFn::shl:
    return terms.integer("shl", x[0], x[1]);
  case ScalarFn::shr:
    return terms.integer("shr", x[0], x[1]);
  case ScalarFn::select:
    return terms.select(x[0], x[1], x[2]);
  case ScalarFn::otherwise:
    break;
  }
  llvm_unreachable("unknown function");
}
