//===- AbsenceLawCases.cpp - A1 to A7, docs/Spec.md, section 4 ------------===//
//
// What is absent shows in two ways: as an output it is 0, in a reduction it is
// nothing. Each equation is observed in one of them, drawn at random.
//
//===----------------------------------------------------------------------===//
#include "Laws.h"

namespace moa::test {

using Fn = ScalarFn;

namespace {

/// An output of the array x, or of a reduction of its last axis.
struct Observation {
  explicit Observation(Random &random, const Shape &shape) : shape(shape) {
    if (!shape.empty() && random.below(3))
      monoid = random.pick<Monoid>({Monoid::add, Monoid::mul, Monoid::max, Monoid::min});
  }
  void of(KernelBuilder &b, Value x) const { b.output(monoid ? b.reduce(*monoid, x) : x); }
  void of(DefinitionBuilder &b, DefinitionBuilder::Element element) const {
    if (!monoid)
      return b.output(shape, element);
    Shape rest(shape.begin(), shape.end() - 1);
    b.output(rest, [&](const Values &q) {
      return b.reduce(*monoid, shape.back(), [&](Value j) {
        Values i = q;
        i.push_back(j);
        return element(i);
      });
    });
  }
  Shape shape;
  std::optional<Monoid> monoid;
};

Numbers allAxes(const Shape &shape) {
  Numbers axes(shape.size());
  for (size_t k = 0; k < axes.size(); ++k)
    axes[k] = k;
  return axes;
}

/// A1: f(a where p, b where q) = f(a, b) where p ∧ q
Equation pointwise(Random &random) {
  Shape shape = random.shape(0, 4);
  Observation observe(random, shape);
  Fn fn = random.pick<Fn>({Fn::add, Fn::sub, Fn::mul, Fn::max, Fn::min});
  ByIndex s({{"p", shape, "i1"}, {"a", shape}, {"q", shape, "i1"}, {"b", shape}});
  Numbers axes = allAxes(shape);
  observe.of(s.left, s.left.map(fn, {s.left.mask(s.l[0], s.l[1], axes), s.left.mask(s.l[2], s.l[3], axes)}));
  DefinitionBuilder &r = s.right;
  observe.of(r, [&](const Values &i) {
    return Term(r.op(fn, {r.psi(s.r[1], i), r.psi(s.r[3], i)}), r.both(r.psi(s.r[0], i), r.psi(s.r[2], i)));
  });
  return s.finish();
}

/// A2: (a where q) where p = a where p ∧ q; a condition that is absent is
/// absence.
Equation where(Random &random) {
  Shape shape = random.shape(0, 4);
  Observation observe(random, shape);
  ByIndex s({{"p", shape, "i1"}, {"q", shape, "i1"}, {"a", shape}});
  Numbers axes = allAxes(shape);
  KernelBuilder &l = s.left;
  observe.of(l, random.below(2) ? l.mask(s.l[0], l.mask(s.l[1], s.l[2], axes), axes)
                                : l.mask(l.mask(s.l[1], s.l[0], axes), s.l[2], axes));
  DefinitionBuilder &r = s.right;
  observe.of(r, [&](const Values &i) { return Term(r.psi(s.r[2], i), r.both(r.psi(s.r[0], i), r.psi(s.r[1], i))); });
  return s.finish();
}

/// A3: ⊕ over j of (a where p) = ⊕ over { j : p } of a
Equation reduction(Random &random) {
  Shape shape = random.shape(1, 4), rest = shape;
  int64_t axis = random.below(shape.size());
  rest.erase(rest.begin() + axis);
  Monoid monoid = random.pick<Monoid>({Monoid::add, Monoid::mul, Monoid::max, Monoid::min, Monoid::and_, Monoid::or_});
  bool logical = monoid == Monoid::and_ || monoid == Monoid::or_;
  ByIndex s({{"p", shape, "i1"}, {"a", shape, logical ? "i1" : "f64"}});
  s.left.output(s.left.reduce(monoid, s.left.mask(s.l[0], s.l[1], allAxes(shape)), axis));
  DefinitionBuilder &r = s.right;
  r.output(rest, [&](const Values &q) {
    return r.reduce(monoid, shape[axis], [&](Value j) {
      Values i = q;
      i.insert(i.begin() + axis, j);
      return Term(r.psi(s.r[1], i), r.psi(s.r[0], i));
    });
  });
  return s.finish();
}

/// A4: an output element `a where p` is a if p, else 0
Equation output(Random &random) {
  Shape shape = random.shape(0, 4);
  std::vector<Parameter> parameters = {{"p", shape, "i1"}, {"a", shape}};
  ByIndex s(parameters);
  s.left.output(s.left.mask(s.l[0], s.l[1], allAxes(shape)));
  s.right.output(shape, [&](const Values &i) {
    return s.right.op(Fn::select, {s.right.psi(s.r[0], i), s.right.psi(s.r[1], i), s.right.number(0)});
  });
  Equation equation = s.finish();
  // The normal form keeps the condition apart: nothing is read where it fails.
  DefinitionBuilder normal;
  Value p = normal.input(parameters[0]), a = normal.input(parameters[1]);
  normal.output(shape, [&](const Values &i) { return Term(normal.psi(a, i), normal.psi(p, i)); });
  equation.normal = normal.finish();
  return equation;
}

/// The right side of A5. Where `unfolded`, p stands for f.present: the normal
/// form has no lets of conditions on inputs.
void writeLets(DefinitionBuilder &b, Value p, Value a, const Shape &shape, bool unfolded) {
  b.let("abs", shape, [&](const Values &i) { return b.op(Fn::abs, {b.psi(a, i)}); });
  if (!unfolded)
    b.let("abs.present", shape, [&](const Values &i) { return b.psi(p, i); });
  auto use = [&](const Values &i) {
    return Term(b.apply("abs", i), unfolded ? b.psi(p, i) : b.apply("abs.present", i, "i1"));
  };
  b.output(shape, use);
  Shape rest(shape.begin(), shape.end() - 1);
  b.output(rest, [&](const Values &q) {
    return b.reduce(Monoid::mul, shape.back(), [&](Value j) {
      Values i = q;
      i.push_back(j);
      return use(i);
    });
  });
}

/// A5: let f(i) = a where p  becomes  let f(i) = a, let f.present(i) = p, and
/// every f(i) becomes f(i) where f.present(i)
Equation let(Random &random) {
  Shape shape = random.shape(1, 4);
  std::vector<Parameter> parameters = {{"p", shape, "i1"}, {"a", shape}};
  ByIndex s(parameters);
  KernelBuilder &l = s.left;
  Value f = l.map(Fn::abs, {l.mask(s.l[0], s.l[1], allAxes(shape))});
  l.output(f);
  l.output(l.reduce(Monoid::mul, f));
  writeLets(s.right, s.r[0], s.r[1], shape, false);
  Equation equation = s.finish();
  DefinitionBuilder normal;
  Value p = normal.input(parameters[0]), a = normal.input(parameters[1]);
  writeLets(normal, p, a, shape, true);
  equation.normal = normal.finish();
  return equation;
}

/// A6: join(c, a where p, b where q) = select(c, a, b) where select(c, p, q).
/// The join is a selection of the language, or a catenation.
Equation join(Random &random) {
  Shape shape = random.shape(1, 4);
  Numbers axes = allAxes(shape);
  int64_t last = shape.size() - 1;
  bool isCat = random.below(2);
  Shape second = shape, result = shape;
  if (isCat) {
    second[last] = "P0";
    result[last] = shape[last] + " + P0";
  }
  Observation observe(random, result);
  ByIndex s({{"c", shape, "i1"}, {"p", shape, "i1"}, {"a", shape}, {"q", second, "i1"}, {"b", second}});
  KernelBuilder &l = s.left;
  Value first = l.mask(s.l[1], s.l[2], axes), other = l.mask(s.l[3], s.l[4], axes);
  observe.of(l, isCat ? l.cat(first, other, last) : l.map(Fn::select, {s.l[0], first, other}));
  DefinitionBuilder &r = s.right;
  observe.of(r, [&](Values i) {
    Value c, n = isCat ? r.extent(shape[last]) : Value();
    c = isCat ? r.op(Fn::lt, {i[last], n}) : r.psi(s.r[0], i);
    Value p = r.psi(s.r[1], i), a = r.psi(s.r[2], i);
    if (isCat)
      i[last] = r.op(Fn::sub, {i[last], n});
    Value q = r.psi(s.r[3], i), b = r.psi(s.r[4], i);
    return Term(r.op(Fn::select, {c, a, b}), r.op(Fn::select, {c, p, q}));
  });
  return s.finish();
}

/// A7: otherwise(a where p, b where q) = select(p, a, b) where select(p, true, q), by A6; of an a
/// that is present everywhere it is a.
Equation otherwise(Random &random) {
  Shape shape = random.shape(1, 4);
  Numbers axes = allAxes(shape);
  bool isMasked = random.below(4), isOther = random.below(2);
  Observation observe(random, shape);
  ByIndex s({{"p", shape, "i1"}, {"a", shape}, {"q", shape, "i1"}, {"b", shape}});
  KernelBuilder &l = s.left;
  Value first = isMasked ? l.mask(s.l[0], s.l[1], axes) : s.l[1];
  Value other = isOther ? l.mask(s.l[2], s.l[3], axes) : s.l[3];
  observe.of(l, l.map(Fn::otherwise, {first, other}));
  DefinitionBuilder &r = s.right;
  observe.of(r, [&](const Values &i) {
    Value p = r.psi(s.r[0], i), a = r.psi(s.r[1], i), b = r.psi(s.r[3], i);
    if (!isMasked)
      return Term(a);
    Value value = r.op(Fn::select, {p, a, b});
    // a is present where p says so, by itself.
    return isOther ? Term(value, r.op(Fn::select, {p, r.number(1, "i1"), r.psi(s.r[2], i)})) : Term(value);
  });
  return s.finish();
}

} // namespace

std::vector<Law> absenceLaws() {
  std::vector<std::string> around = {"psi-mask",      "psi-map",       "psi-reduce",
                                     "absent-output", "absent-reduce", "absent-join"};
  auto with = [&](std::initializer_list<std::string> more) {
    std::vector<std::string> all = around;
    all.insert(all.end(), more);
    return all;
  };
  return {{"A1", "absent-pointwise", pointwise, with({"absent-where"})},
          {"A2", "absent-where", where, around},
          {"A3", "absent-reduce", reduction, around},
          {"A4", "absent-output", output, around},
          {"A5", "absent-let", let, with({"psi-share", "absent-pointwise"})},
          {"A6", "absent-join", join, with({"psi-cat"})},
          {"A7", "absent-otherwise", otherwise, around}};
}

} // namespace moa::test
