//===- PsiLawCases.cpp - P1 to P16, docs/Spec.md, section 3 ---------------===//
#include "Laws.h"

namespace moa::test {

using Fn = ScalarFn;

namespace {

Values pick(const Values &values, const Numbers &positions) {
  Values result;
  for (int64_t position : positions)
    result.push_back(values[position]);
  return result;
}

Shape pick(const Shape &shape, const Numbers &axes) {
  Shape result;
  for (int64_t axis : axes)
    result.push_back(shape[axis]);
  return result;
}

Shape without(Shape shape, int64_t axis) {
  shape.erase(shape.begin() + axis);
  return shape;
}

Values with(Values index, int64_t axis, Value entry) {
  index.insert(index.begin() + axis, entry);
  return index;
}

Numbers allAxes(const Shape &shape) {
  Numbers axes(shape.size());
  for (size_t k = 0; k < axes.size(); ++k)
    axes[k] = k;
  return axes;
}

/// P1: <> ψ c = c
Equation ofConstant(Random &random) {
  ByIndex s({});
  std::string type = random.pick<std::string>({"f64", "f32", "index", "i32"});
  double value = random.below(200) - 100;
  s.left.output(s.left.constant(value, type));
  s.right.output({}, [&](const Values &) { return s.right.number(value, type); });
  return s.finish();
}

/// P2: <> ψ e = e, with e computed operation by operation on the right.
Equation ofExtent(Random &random) {
  ByIndex s({});
  DefinitionBuilder &r = s.right;
  DefinitionBuilder normal;
  for (int k = 0; k < 4; ++k) {
    std::string x = random.pick(lawSymbols()), y = random.pick(lawSymbols());
    int64_t c = 1 + random.below(5);
    std::string text = "(" + x + "*" + y + " - " + std::to_string(c) + "*" + x + ")/" + std::to_string(c + 1) + " + " +
                       y + "%" + std::to_string(c);
    s.left.output(s.left.extent(text));
    r.output({}, [&](const Values &) {
      Value a = r.extent(x), d = r.extent(y), n = r.index(c), m = r.index(c + 1);
      Value difference = r.op(Fn::sub, {r.op(Fn::mul, {a, d}), r.op(Fn::mul, {n, a})});
      Value whole = r.op(Fn::mul, {r.op(Fn::div, {d, n}), n});
      return r.op(Fn::add, {r.op(Fn::div, {difference, m}), r.op(Fn::sub, {d, whole})});
    });
    normal.output({}, [&](const Values &) { return normal.extent(text); });
  }
  Equation equation = s.finish();
  equation.normal = normal.finish();
  return equation;
}

/// P3: <i> ψ ι n = i
Equation ofIota(Random &random) {
  ByIndex s({});
  Shape shape = random.shape(1, 1);
  s.left.output(s.left.iota(shape[0]));
  s.right.output(shape, [](const Values &i) { return i[0]; });
  return s.finish();
}

/// P4: i ψ f(A, B, …) = f(i[axes A] ψ A, i[axes B] ψ B, …)
Equation ofMap(Random &random) {
  static const std::vector<Fn> kUnary = {Fn::neg, Fn::abs, Fn::exp};
  static const std::vector<Fn> kFloat = {Fn::add, Fn::sub, Fn::mul, Fn::div, Fn::min, Fn::max, Fn::lt};
  static const std::vector<Fn> kInteger = {Fn::add,  Fn::sub, Fn::mul,  Fn::min, Fn::max,
                                           Fn::and_, Fn::or_, Fn::xor_, Fn::lt};
  Shape shape = random.shape(0, 4);
  int64_t kind = random.below(4);
  Fn fns[] = {random.pick(kUnary), random.pick(kFloat), random.pick(kInteger), Fn::select};
  Fn fn = fns[kind];
  // One operand has all axes, the others some of them.
  std::vector<Parameter> parameters;
  std::vector<Numbers> axes;
  int64_t arity = kind == 0 ? 1 : kind == 3 ? 3 : 2, whole = random.below(arity);
  for (int64_t k = 0; k < arity; ++k) {
    axes.push_back(k == whole ? allAxes(shape) : random.subset(shape.size()));
    std::string type = kind == 2 ? "index" : kind == 3 && k == 0 ? "i1" : "f64";
    parameters.push_back({std::string(1, "ABC"[k]), pick(shape, axes[k]), type});
  }
  ByIndex s(parameters);
  s.left.output(s.left.map(fn, s.l, axes));
  s.right.output(shape, [&](const Values &i) {
    Values operands;
    for (int64_t k = 0; k < arity; ++k)
      operands.push_back(s.right.psi(s.r[k], pick(i, axes[k])));
    return s.right.op(fn, operands);
  });
  return s.finish();
}

/// P5: i ψ cast(A) = cast(i ψ A)
Equation ofCast(Random &random) {
  struct Conversion {
    const char *from, *to;
    bool implicit;
  };
  static const std::vector<Conversion> kConversions = {
      {"f64", "f32", false},  {"f32", "f64", false}, {"f64", "bf16", false},
      {"bf16", "f32", true},  {"f64", "i32", false}, {"i32", "index", true},
      {"index", "f64", true}, {"i1", "f64", true},   {"i32", "f32", false}};
  Conversion c = random.pick(kConversions);
  Shape shape = random.shape(0, 4);
  ByIndex s({{"A", shape, c.from, "1000", std::string(c.from) == "f64"}});
  s.left.output(s.left.cast(s.l[0], c.to, c.implicit));
  s.right.output(shape, [&](const Values &i) { return s.right.cast(s.right.psi(s.r[0], i), c.to, !c.implicit); });
  return s.finish();
}

/// P6: i ψ mask(p, A) = (i ψ A) where (i[axes p] ψ p)
Equation ofMask(Random &random) {
  Shape shape = random.shape(0, 4);
  Numbers axes = random.subset(shape.size());
  ByIndex s({{"p", pick(shape, axes), "i1"}, {"A", shape}});
  s.left.output(s.left.mask(s.l[0], s.l[1], axes));
  s.right.output(shape,
                 [&](const Values &i) { return Term(s.right.psi(s.r[1], i), s.right.psi(s.r[0], pick(i, axes))); });
  return s.finish();
}

/// P7: q ψ (⊕/ A) = ⊕ over j of (q with j at the axis) ψ A
Equation ofReduce(Random &random) {
  Monoid monoid = random.pick<Monoid>(
      {Monoid::add, Monoid::mul, Monoid::max, Monoid::min, Monoid::and_, Monoid::or_, Monoid::user});
  Shape shape = random.shape(1, 4);
  int64_t axis = random.below(shape.size());
  bool logical = monoid == Monoid::and_ || monoid == Monoid::or_, user = monoid == Monoid::user;
  ByIndex s({{"A", shape, logical ? "i1" : user ? "index" : "f64"}});
  std::string name = user ? "bits" : "";
  if (user) {
    s.left.monoid(name, 0, "index", [&](Value x, Value y) { return s.left.map(Fn::xor_, {x, y}); });
    s.right.monoid(name, 0, [&](Value x, Value y) { return s.right.op(Fn::xor_, {x, y}); });
  }
  s.left.output(user ? s.left.reduce(name, s.l[0], axis) : s.left.reduce(monoid, s.l[0], axis));
  s.right.output(without(shape, axis), [&](const Values &q) {
    return s.right.reduce(monoid, shape[axis], [&](Value j) { return s.right.psi(s.r[0], with(q, axis, j)); }, name);
  });
  return s.finish();
}

/// P8: (p⧺i⧺j) ψ (A g.f B) = g over l of ((p⧺i⧺<l>) ψ A) f ((p⧺<l>⧺j) ψ B)
Equation ofInner(Random &random) {
  int64_t frame = random.below(3), rows = random.below(2), columns = random.below(2);
  bool lhs = !frame || random.below(3), rhs = !frame || !lhs || random.below(3);
  Shape p = random.shape(frame, frame), left, right;
  std::string l = random.pick<std::string>({"N3", "0", "1", "3"}), b = "P0";
  if (lhs)
    left = p;
  if (rhs)
    right = p;
  left.insert(left.end(), rows, "N2");
  left.push_back(l);
  right.push_back(l);
  right.insert(right.end(), columns, b);
  Monoid monoid = random.pick<Monoid>({Monoid::add, Monoid::max, Monoid::min, Monoid::mul});
  Fn fn = random.pick<Fn>({Fn::mul, Fn::add, Fn::max, Fn::sub});
  ByIndex s({{"A", left}, {"B", right}});
  s.left.output(s.left.inner(s.l[0], s.l[1], frame, lhs, rhs, monoid, fn));
  Shape result = p;
  result.insert(result.end(), rows, "N2");
  result.insert(result.end(), columns, b);
  s.right.output(result, [&](const Values &index) {
    Values head(index.begin(), index.begin() + frame);
    Values i(index.begin() + frame, index.begin() + frame + rows);
    Values j(index.begin() + frame + rows, index.end());
    return s.right.reduce(monoid, l, [&](Value at) {
      Values first = lhs ? head : Values(), second = rhs ? head : Values();
      first.insert(first.end(), i.begin(), i.end());
      first.push_back(at);
      second.push_back(at);
      second.insert(second.end(), j.begin(), j.end());
      return s.right.op(fn, {s.right.psi(s.r[0], first), s.right.psi(s.r[1], second)});
    });
  });
  return s.finish();
}

/// P9: (p⧺q) ψ (psi A I₀ …) = r ψ A, r[dₖ] = p[axesₖ] ψ Iₖ, the rest q
Equation ofPsi(Random &random) {
  Shape shape = random.shape(1, 4), frame;
  Numbers dims = random.subset(shape.size());
  int64_t frameAxes = random.below(3);
  for (int64_t k = 0; k < frameAxes; ++k)
    frame.push_back("P" + std::to_string(k));
  std::vector<Parameter> parameters = {{"A", shape}};
  std::vector<Numbers> axes;
  for (int64_t d : dims) {
    shape[d] = random.pick<std::string>({"1", "2", "3", "5"});
    axes.push_back(random.subset(frameAxes));
    parameters.push_back({"I" + std::to_string(d), pick(frame, axes.back()), "index", shape[d]});
  }
  parameters[0].shape = shape;
  Shape rest, result = frame;
  for (size_t k = 0; k < shape.size(); ++k)
    if (!llvm::is_contained(dims, static_cast<int64_t>(k)))
      result.push_back(shape[k]);
  ByIndex s(parameters);
  s.left.output(s.left.psi(s.l[0], Values(s.l.begin() + 1, s.l.end()), dims, axes, frame));
  s.right.output(result, [&](const Values &index) {
    Values p(index.begin(), index.begin() + frameAxes), r(shape.size());
    for (size_t k = 0; k < dims.size(); ++k)
      r[dims[k]] = s.right.psi(s.r[k + 1], pick(p, axes[k]));
    size_t next = frameAxes;
    for (Value &entry : r)
      if (!entry)
        entry = index[next++];
    return s.right.psi(s.r[0], r);
  });
  return s.finish();
}

/// P10: i ψ transpose(A) = i′ ψ A, i′[perm k] = i[k]
Equation ofTranspose(Random &random) {
  Shape shape = random.shape(1, 4);
  Numbers perm = random.permutation(shape.size());
  ByIndex s({{"A", shape}});
  s.left.output(s.left.transpose(s.l[0], perm));
  s.right.output(pick(shape, perm), [&](const Values &i) {
    Values moved(i.size());
    for (size_t k = 0; k < i.size(); ++k)
      moved[perm[k]] = i[k];
    return s.right.psi(s.r[0], moved);
  });
  return s.finish();
}

/// P11: i ψ (v ρ A) = γ′(γ(i; v); ρA) ψ A. The shapes have no number of
/// elements in common before the last axis; groups of axes are Lemma 11.
Equation ofReshape(Random &random) {
  static const std::vector<std::pair<Shape, Shape>> kShapes = {
      {{"N0", "N1"}, {"N1", "N0"}},
      {{"N0", "N1", "N2"}, {times({"N0", "N1", "N2"})}},
      {{times({"N0", "N1", "N2", "2"})}, {"N0", "2", "N1", "N2"}},
      {{"2", "N0", "N1", "3"}, {"3", "N1", times({"2", "N0"})}},
      {{times({"2", "N0"}), "N2"}, {"2", times({"N0", "N2"})}},
      {{"5", "N0"}, {"N0", "5"}}};
  const auto &[from, to] = kShapes[random.below(kShapes.size())];
  ByIndex s({{"A", from}});
  s.left.output(s.left.reshape(s.l[0], to));
  s.right.output(to, [&, &from = from, &to = to](const Values &i) {
    return s.right.psi(s.r[0], s.right.unravel(s.right.ravel(i, to), from));
  });
  return s.finish();
}

/// P12: i ψ slice(A) = (i + start) ψ A on the axis
Equation ofSlice(Random &random) {
  Shape shape = random.shape(1, 4);
  int64_t axis = random.below(shape.size());
  std::string n = shape[axis], half = "(" + n + ")/2", rest = n + " - " + half;
  auto [start, count] =
      random.pick<std::pair<std::string, std::string>>({{"0", half}, {half, rest}, {rest, half}, {n, "0"}, {"0", n}});
  ByIndex s({{"A", shape}});
  s.left.output(s.left.slice(s.l[0], axis, start, count));
  Shape result = shape;
  result[axis] = count;
  s.right.output(result, [&, start = start](Values i) {
    i[axis] = s.right.op(Fn::add, {i[axis], s.right.extent(start)});
    return s.right.psi(s.r[0], i);
  });
  return s.finish();
}

/// P13: i ψ reverse(A) = (n − 1 − i) ψ A on the axis
Equation ofReverse(Random &random) {
  Shape shape = random.shape(1, 4);
  int64_t axis = random.below(shape.size());
  ByIndex s({{"A", shape}});
  s.left.output(s.left.reverse(s.l[0], axis));
  s.right.output(shape, [&](Values i) {
    i[axis] = s.right.op(Fn::sub, {s.right.extent(shape[axis] + " - 1"), i[axis]});
    return s.right.psi(s.r[0], i);
  });
  return s.finish();
}

/// P14: i ψ rotate(A) = ((i + k) mod n) ψ A on the axis
Equation ofRotate(Random &random) {
  Shape shape = random.shape(1, 4);
  int64_t axis = random.below(shape.size());
  std::string by = random.pick<std::string>({"1", "-1", "-7", "12", "P0", "N0 - 2"});
  ByIndex s({{"A", shape}});
  s.left.output(s.left.rotate(s.l[0], by, axis));
  s.right.output(shape, [&](Values i) {
    Value n = s.right.extent(shape[axis]);
    Value sum = s.right.op(Fn::add, {i[axis], s.right.extent(by)});
    Value whole = s.right.op(Fn::mul, {n, s.right.op(Fn::div, {sum, n})});
    i[axis] = s.right.op(Fn::sub, {sum, whole});
    return s.right.psi(s.r[0], i);
  });
  return s.finish();
}

/// P15: i ψ A = f(i) where `let f(i) = i ψ A` is made once, for an array used
/// more than once
Equation ofShared(Random &random) {
  Shape shape = random.shape(1, 4);
  int64_t axis = random.below(shape.size());
  ByIndex s({{"A", shape}});
  Value e = s.left.map(Fn::abs, {s.l[0]});
  s.left.output(e);
  s.left.output(s.left.reverse(e, axis));
  s.right.let("abs", shape, [&](const Values &i) { return s.right.op(Fn::abs, {s.right.psi(s.r[0], i)}); });
  s.right.output(shape, [&](const Values &i) { return s.right.apply("abs", i); });
  s.right.output(shape, [&](Values i) {
    i[axis] = s.right.op(Fn::sub, {s.right.extent(shape[axis] + " - 1"), i[axis]});
    return s.right.apply("abs", i);
  });
  return s.finish();
}

/// P16: i ψ (A ⧺ B) = i ψ A if i < n on the axis, else (i − n) ψ B
Equation ofCat(Random &random) {
  Shape first = random.shape(1, 4), second = first, result = first;
  int64_t axis = random.below(first.size());
  second[axis] = random.pick<std::string>({"P0", "0", "1", "3"});
  result[axis] = first[axis] + " + " + second[axis];
  ByIndex s({{"A", first}, {"B", second}});
  s.left.output(s.left.cat(s.l[0], s.l[1], axis));
  s.right.output(result, [&](Values i) {
    Value n = s.right.extent(first[axis]);
    Value inFirst = s.right.op(Fn::lt, {i[axis], n});
    Value a = s.right.psi(s.r[0], i);
    i[axis] = s.right.op(Fn::sub, {i[axis], n});
    return s.right.op(Fn::select, {inFirst, a, s.right.psi(s.r[1], i)});
  });
  return s.finish();
}

} // namespace

std::vector<Law> psiLaws() {
  return {{"P1", "psi-constant", ofConstant},
          {"P2", "psi-extent", ofExtent},
          {"P3", "psi-iota", ofIota},
          {"P4", "psi-map", ofMap, {"absent-join"}},
          {"P5", "psi-cast", ofCast},
          {"P6", "psi-mask", ofMask, {"absent-output"}},
          {"P7", "psi-reduce", ofReduce},
          {"P8", "psi-inner", ofInner},
          {"P9", "psi-psi", ofPsi},
          {"P10", "psi-transpose", ofTranspose},
          {"P11", "psi-reshape", ofReshape},
          {"P12", "psi-slice", ofSlice},
          {"P13", "psi-reverse", ofReverse},
          {"P14", "psi-rotate", ofRotate},
          {"P15", "psi-share", ofShared, {"psi-map", "psi-reverse"}},
          {"P16", "psi-cat", ofCat, {"absent-join"}}};
}

} // namespace moa::test
