//===- LemmaCases.cpp - the lemmas of docs/Spec.md, section 9 -------------===//
//
// A lemma is no rewrite: analyses and lowerings rely on it. Its two sides are
// what it says is equal, or a statement and `true`.
//
//===----------------------------------------------------------------------===//
#include "Laws.h"

namespace moa::test {

using Fn = ScalarFn;

namespace {

/// Lemma 1: γ(·; s) is a bijection from { i : 0 ≤ i < s } to 0 … Πs − 1.
Equation mixedRadix(Random &random) {
  Shape shape = random.shape(1, 4);
  DefinitionBuilder l, r;
  for (size_t k = 0; k < shape.size(); ++k) {
    l.output(shape, [&](const Values &i) { return l.unravel(l.ravel(i, shape), shape)[k]; });
    r.output(shape, [&](const Values &i) { return i[k]; });
  }
  l.output({times(shape)}, [&](const Values &i) { return l.ravel(l.unravel(i[0], shape), shape); });
  r.output({times(shape)}, [&](const Values &i) { return i[0]; });
  Equation equation;
  equation.left = l.finish();
  equation.right = r.finish();
  return equation;
}

/// Whether p holds for all indices; on the right, `true`.
Equation always(const Shape &domain, DefinitionBuilder &l, DefinitionBuilder::Element p) {
  DefinitionBuilder r;
  l.output(domain, p);
  r.output(domain, [&](const Values &) { return r.number(1, "i1"); });
  Equation equation;
  equation.left = l.finish();
  equation.right = r.finish();
  return equation;
}

/// Lemma 2: 0 ≤ e < a·b ⇒ 0 ≤ ⌊e/b⌋ < a, for b ≥ 1
Equation quotientInRange(Random &random) {
  DefinitionBuilder l;
  std::string b = random.pick<std::string>({"N0", "1", "2", "3", "5"});
  Equation equation = always({times({"N1", b})}, l, [&](const Values &e) {
    Value quotient = l.op(Fn::div, {e[0], l.extent(b)});
    return l.both(l.op(Fn::lt, {l.index(-1), quotient}), l.op(Fn::lt, {quotient, l.extent("N1")}));
  });
  return equation;
}

/// Whether u is among f(v) for 0 ≤ v < n, for u over a domain that is larger
/// than all f(v).
void members(DefinitionBuilder &l, const std::string &domain, const std::string &n,
             llvm::function_ref<Value(Value)> f) {
  l.output({domain}, [&](const Values &u) {
    return l.reduce(Monoid::or_, n, [&](Value v) { return l.op(Fn::eq, {f(v), u[0]}); });
  });
}

/// Lemma 3: { ⌊v/c⌋ : 0 ≤ v < n } = { 0, …, ⌈n/c⌉ − 1 } for n ≥ 1 and c ≥ 1
Equation quotientsCover(Random &random) {
  DefinitionBuilder l, r;
  std::string c = random.pick<std::string>({"N1", "1", "2", "3"});
  members(l, "N0 + 2", "N0", [&](Value v) { return l.op(Fn::div, {v, l.extent(c)}); });
  r.output({"N0 + 2"},
           [&](const Values &u) { return r.op(Fn::lt, {u[0], r.extent("(N0 + " + c + " - 1)/(" + c + ")")}); });
  Equation equation;
  equation.left = l.finish();
  equation.right = r.finish();
  equation.least = 1;
  return equation;
}

/// Lemma 4: { (v + k) mod c : 0 ≤ v < n } = { 0, …, c − 1 } if c ≥ 1 divides n
/// ≥ 1, for every k
Equation remaindersCover(Random &random) {
  DefinitionBuilder l, r;
  std::string n = times({"N0", "N1"}), shift = random.pick<std::string>({"0", "P0", "-3", "17"});
  members(l, "N0 + 2", n, [&](Value v) {
    Value sum = l.op(Fn::add, {v, l.extent(shift)}), c = l.extent("N0");
    return l.op(Fn::sub, {sum, l.op(Fn::mul, {l.op(Fn::div, {sum, c}), c})});
  });
  r.output({"N0 + 2"}, [&](const Values &u) { return r.op(Fn::lt, {u[0], r.extent("N0")}); });
  Equation equation;
  equation.left = l.finish();
  equation.right = r.finish();
  equation.least = 1;
  return equation;
}

/// Lemma 5: a polynomial of degree at most 1 in each of several variables over
/// a box is least at a corner. The box is [lₖ, lₖ + nₖ) for three variables.
Equation leastAtCorner(Random &random) {
  DefinitionBuilder l, r;
  int64_t c[8], low[3];
  for (int64_t &value : c)
    value = random.below(9) - 4;
  for (int64_t &value : low)
    value = random.below(7) - 3;
  const Shape box = {"N0", "N1", "N2"};
  auto polynomial = [&](DefinitionBuilder &b, const Values &x) {
    Value sum = b.index(0);
    for (unsigned term = 0; term < 8; ++term) {
      Value product = b.index(c[term]);
      for (unsigned k = 0; k < 3; ++k)
        if (term >> k & 1)
          product = b.op(Fn::mul, {product, x[k]});
      sum = b.op(Fn::add, {sum, product});
    }
    return sum;
  };
  auto least = [&](DefinitionBuilder &b, const Shape &ranges, auto place) {
    b.output({}, [&](const Values &) {
      Values x(3);
      std::function<Value(size_t)> over = [&](size_t k) -> Value {
        if (k == 3)
          return polynomial(b, x);
        return b.reduce(Monoid::min, ranges[k], [&](Value v) {
          x[k] = b.op(Fn::add, {b.index(low[k]), place(v, k)});
          return over(k + 1);
        });
      };
      return over(0);
    });
  };
  least(l, box, [](Value v, size_t) { return v; });
  least(r, {"2", "2", "2"}, [&](Value v, size_t k) { return r.op(Fn::mul, {v, r.extent(box[k] + " - 1")}); });
  Equation equation;
  equation.left = l.finish();
  equation.right = r.finish();
  equation.least = 1;
  return equation;
}

/// (m, l, o) of the rows of x and the values v [Lemma 6].
struct Softmax {
  Value m, l, o;
};

Softmax stateOf(KernelBuilder &b, Value x, Value v) {
  Value m = b.reduce(Monoid::max, x);
  Value e = b.map(Fn::exp, {b.map(Fn::sub, {x, m}, {{0, 1}, {0}})});
  return {m, b.reduce(Monoid::add, e), b.reduce(Monoid::add, b.map(Fn::mul, {e, v}))};
}

/// (m₁,l₁,o₁) ⊕ (m₂,l₂,o₂); (−∞, 0, 0) is an identity by definition.
Softmax merge(KernelBuilder &b, const Softmax &x, const Softmax &y) {
  Value m = b.map(Fn::max, {x.m, y.m}), none = b.constant(-kInf);
  auto choose = [&](Value p, Value first, Value second) { return b.map(Fn::select, {p, first, second}); };
  Value isFirstEmpty = b.map(Fn::eq, {x.m, none}, {{0}, {}});
  Value isSecondEmpty = b.map(Fn::eq, {y.m, none}, {{0}, {}});
  auto part = [&](Value first, Value second) {
    Value a = b.map(Fn::mul, {first, b.map(Fn::exp, {b.map(Fn::sub, {x.m, m})})});
    Value c = b.map(Fn::mul, {second, b.map(Fn::exp, {b.map(Fn::sub, {y.m, m})})});
    return choose(isFirstEmpty, second, choose(isSecondEmpty, first, b.map(Fn::add, {a, c})));
  };
  return {m, part(x.l, y.l), part(x.o, y.o)};
}

/// Lemma 6: the state of a softmax is a monoid: of three blocks of keys, in any
/// of its groupings and orders, the merged states are the state of all keys. In
/// real arithmetic.
Equation softmaxState(Random &random) {
  int64_t order = random.below(4);
  std::vector<Parameter> parameters;
  for (int k = 0; k < 3; ++k)
    for (const char *name : {"x", "v"})
      parameters.push_back({name + std::to_string(k), {"P0", "N" + std::to_string(k)}, "f64", "8", true});
  ByArrays s(parameters);
  KernelBuilder &l = s.left, &r = s.right;
  Softmax all = stateOf(l, l.cat(l.cat(s.l[0], s.l[2], 1), s.l[4], 1), l.cat(l.cat(s.l[1], s.l[3], 1), s.l[5], 1));
  Softmax a = stateOf(r, s.r[0], s.r[1]), b = stateOf(r, s.r[2], s.r[3]), c = stateOf(r, s.r[4], s.r[5]);
  Softmax merged = order == 0   ? merge(r, merge(r, a, b), c)
                   : order == 1 ? merge(r, a, merge(r, b, c))
                   : order == 2 ? merge(r, merge(r, c, a), b)
                                : merge(r, b, merge(r, c, a));
  for (Value value : {all.m, all.l, all.o})
    l.output(value);
  for (Value value : {merged.m, merged.l, merged.o})
    r.output(value);
  Equation equation = s.finish();
  equation.equality = Equality::Close;
  return equation;
}

/// Lemma 7: c ⊗ identity = identity where ⊗ distributes over ⊕ (M1–M3), c > 0
/// for products with extremes.
Equation freeAtIdentity(Random &random) {
  ByArrays s({{"c", {"N0"}}, {"x", {"N0", "0"}}});
  struct Distributes {
    Fn times;
    Monoid plus;
  };
  Distributes d = random.pick<Distributes>({{Fn::mul, Monoid::add},
                                            {Fn::mul, Monoid::max},
                                            {Fn::mul, Monoid::min},
                                            {Fn::add, Monoid::max},
                                            {Fn::add, Monoid::min}});
  Value c = s.left.map(Fn::exp2, {s.l[0]});
  s.left.output(s.left.map(d.times, {c, s.left.reduce(d.plus, s.l[1])}));
  s.right.output(s.right.reduce(d.plus, s.r[1]));
  return s.finish();
}

/// Lemma 8: with m = max x, Σ e^{x − c} with c in place of m where m = −∞ is Σ
/// e^{x − m} where m > −∞ and 0 elsewhere; the same for min and e^{m − x}.
Equation singularExtreme(Random &random) {
  bool isMax = random.below(2);
  int64_t c = random.below(7) - 3;
  ByArrays s({{"x", {"N0", "N1"}}});
  auto sum = [&](KernelBuilder &b, Value x, Value m) {
    Value distance = isMax ? b.map(Fn::sub, {x, m}, {{0, 1}, {0}}) : b.map(Fn::sub, {m, x}, {{0}, {0, 1}});
    return b.reduce(Monoid::add, b.map(Fn::exp, {distance}));
  };
  auto pick = [&](KernelBuilder &b, Value m, double otherwise, Value value) {
    Value isSingular = b.map(Fn::eq, {m, b.constant(isMax ? -kInf : kInf)}, {{0}, {}});
    return b.map(Fn::select, {isSingular, b.constant(otherwise), value}, {{0}, {}, {0}});
  };
  Monoid extreme = isMax ? Monoid::max : Monoid::min;
  Value m = s.left.reduce(extreme, s.l[0]);
  s.left.output(sum(s.left, s.l[0], pick(s.left, m, c, m)));
  Value n = s.right.reduce(extreme, s.r[0]);
  s.right.output(pick(s.right, n, 0, sum(s.right, s.r[0], n)));
  Equation equation = s.finish();
  equation.adjust = [isMax](KernelInputs &inputs) {
    // Rows of present −∞, and one in rows of others.
    Array &x = inputs.arrays[0];
    int64_t columns = x.shape[1];
    for (size_t k = 0; k < x.data.size(); ++k)
      if (k / columns % 2 == 0 || k % 3 == 0)
        x.data[k] = isMax ? -kInf : kInf;
  };
  return equation;
}

/// Lemma 9: max_j (x_j ∘ u) = (max_j x_j) ∘ u, bit for bit, for 0 < u < ∞ and ∘
/// one of × and /; the same for min. NaN, zeros of both signs and infinities
/// among the x.
Equation scaledExtreme(Random &random) {
  Fn fn = random.below(2) ? Fn::mul : Fn::div;
  Monoid monoid = random.below(2) ? Monoid::max : Monoid::min;
  ByArrays s({{"x", {"N0", "N1"}, "f64", "8", true}, {"u", {}, "f64", "8", true}});
  auto factor = [](KernelBuilder &b, Value u) { return b.map(Fn::add, {b.map(Fn::abs, {u}), b.constant(0.0625)}); };
  KernelBuilder &l = s.left, &r = s.right;
  l.output(l.reduce(monoid, l.map(fn, {s.l[0], factor(l, s.l[1])}, {{0, 1}, {}})));
  r.output(r.map(fn, {r.reduce(monoid, s.r[0]), factor(r, s.r[1])}, {{0}, {}}));
  Equation equation = s.finish();
  equation.adjust = [special = random.below(5)](KernelInputs &inputs) {
    const double values[] = {0.0, -0.0, kInf, -kInf, kNaN};
    std::vector<double> &x = inputs.arrays[0].data;
    for (size_t k = 0; k < x.size(); k += 3)
      x[k] = values[(special + k / 3) % 5];
    for (size_t k = 1; k < x.size(); k += 4)
      x[k] = k % 8 == 1 ? 0.0 : -0.0;
  };
  return equation;
}

/// Lemma 10: (⊕_j F(x_j, d)) ⊗ c(d, d′) = ⊕_j F(x_j, d′), and c(d, d′) ⊗ c(d′,
/// d″) = c(d, d″), with F = y·2^{x − d} and c(d, d′) = 2^{d − d′}: powers of
/// two, so nothing rounds.
Equation laggingReference(Random &random) {
  bool composed = random.below(2);
  ByArrays s({{"x", {"N0"}}, {"y", {"N0"}}, {"d0", {}}, {"d1", {}}, {"d2", {}}});
  auto state = [](KernelBuilder &b, const Values &v, Value d) {
    Value e = b.map(Fn::exp2, {b.map(Fn::sub, {v[0], d}, {{0}, {}})});
    return b.reduce(Monoid::add, b.map(Fn::mul, {e, v[1]}));
  };
  auto step = [](KernelBuilder &b, Value from, Value to) { return b.map(Fn::exp2, {b.map(Fn::sub, {from, to})}); };
  KernelBuilder &l = s.left, &r = s.right;
  Value value = l.map(Fn::mul, {state(l, s.l, s.l[2]), step(l, s.l[2], s.l[3])});
  if (composed)
    value = l.map(Fn::mul, {value, step(l, s.l[3], s.l[4])});
  l.output(value);
  r.output(state(r, s.r, composed ? s.r[4] : s.r[3]));
  return s.finish();
}

/// Lemma 19: s·u − m = s'·u − 0 with s' = (s·u − m)·(1/u), and (s − n)·u − (m − n·u), so
/// that Σ y·2^(s·u − m) is the same sum of either. u is a power of two, so that
/// nothing rounds.
Equation shiftedReference(Random &random) {
  bool whole = random.below(2);
  ByArrays s({{"s", {"N0"}}, {"y", {"N0"}}, {"u", {}}, {"m", {}}, {"n", {}}});
  auto sum = [](KernelBuilder &b, const Values &v, Value exponent) {
    return b.reduce(Monoid::add, b.map(Fn::mul, {b.map(Fn::exp2, {exponent}), v[1]}));
  };
  auto unit = [](KernelBuilder &b, const Values &v) { return b.map(Fn::exp2, {v[2]}); };
  auto each = [](KernelBuilder &b, Fn fn, Value of, Value scalar) { return b.map(fn, {of, scalar}, {{0}, {}}); };
  KernelBuilder &l = s.left, &r = s.right;
  Value u = unit(l, s.l);
  l.output(sum(l, s.l, each(l, Fn::sub, each(l, Fn::mul, s.l[0], u), s.l[3])));
  u = unit(r, s.r);
  Value shifted, rest;
  if (whole) {
    shifted = each(r, Fn::sub, s.r[0], s.r[4]);
    rest = r.map(Fn::sub, {s.r[3], r.map(Fn::mul, {s.r[4], u})});
  } else {
    Value difference = each(r, Fn::sub, each(r, Fn::mul, s.r[0], u), s.r[3]);
    shifted = each(r, Fn::mul, difference, r.map(Fn::div, {r.constant(1), u}));
    rest = r.constant(0);
  }
  r.output(sum(r, s.r, each(r, Fn::sub, each(r, Fn::mul, shifted, u), rest)));
  return s.finish();
}

/// Lemma 11: γ′(γ(i₁ ⧺ i₂; v); ρA) = γ′(γ(i₁; v₁); s₁) ⧺ γ′(γ(i₂; v₂); s₂) if
/// the parts have equally many elements.
Equation reshapeByGroups(Random &random) {
  static const std::vector<std::pair<Shape, Shape>> kGroups = {{{"N0", "N1"}, {times({"N0", "N1"})}},
                                                               {{times({"N0", "N1"})}, {"N1", "N0"}},
                                                               {{"N0", "N1"}, {"N1", "N0"}},
                                                               {{"3", "N2"}, {"N2", "3"}},
                                                               {{"N2"}, {"N2"}},
                                                               {{"N0", "2"}, {"2", "N0"}}};
  auto [v1, s1] = random.pick(kGroups);
  auto [v2, s2] = random.pick(kGroups);
  Shape v = v1, s = s1;
  v.insert(v.end(), v2.begin(), v2.end());
  s.insert(s.end(), s2.begin(), s2.end());
  DefinitionBuilder l, r;
  for (size_t k = 0; k < s.size(); ++k) {
    l.output(v, [&](const Values &i) { return l.unravel(l.ravel(i, v), s)[k]; });
    r.output(v, [&, &v1 = v1, &s1 = s1, &v2 = v2, &s2 = s2](const Values &i) {
      bool first = k < s1.size();
      Values part = first ? Values(i.begin(), i.begin() + v1.size()) : Values(i.begin() + v1.size(), i.end());
      Values digits = first ? r.unravel(r.ravel(part, v1), s1) : r.unravel(r.ravel(part, v2), s2);
      return digits[first ? k : k - s1.size()];
    });
  }
  Equation equation;
  equation.left = l.finish();
  equation.right = r.finish();
  return equation;
}

/// Lemma 12: 0 ≤ x ≤ n − 1 and r ≥ 0 ⇒ 0 ≤ r·x ≤ r·(n − 1)
Equation products(Random &random) {
  DefinitionBuilder l;
  std::string n = random.pick<std::string>({"N0", "1", "5"});
  return always({n, "N1"}, l, [&](const Values &i) {
    Value product = l.op(Fn::mul, {i[1], i[0]});
    Value most = l.op(Fn::mul, {i[1], l.extent(n + " - 1")});
    return l.both(l.op(Fn::lt, {l.index(-1), product}), l.op(Fn::le, {product, most}));
  });
}

/// Lemma 13: the values of a non-decreasing function lie between those at the ends, and
/// so do their truncations; here 2^(x/8) − 1 of 0 ≤ x ≤ n − 1
Equation intervalsOfReals(Random &random) {
  DefinitionBuilder l;
  std::string n = random.pick<std::string>({"N0", "1", "5"});
  auto f = [&](Value x) {
    Value scaled = l.op(Fn::mul, {l.cast(x, "f64"), l.number(0.125)});
    return l.op(Fn::sub, {l.op(Fn::exp2, {scaled}), l.number(1)});
  };
  return always({n}, l, [&](const Values &i) {
    Value low = f(l.index(0)), value = f(i[0]), high = f(l.extent(n + " - 1"));
    auto between = [&](Value a, Value x, Value b) { return l.both(l.op(Fn::le, {a, x}), l.op(Fn::le, {x, b})); };
    auto whole = [&](Value x) { return l.cast(x, "i64"); };
    return l.both(between(low, value, high), between(whole(low), whole(value), whole(high)));
  });
}

/// Lemma 14: ⌊⌊e/a⌋/b⌋ = ⌊e/(a·b)⌋ for a ≥ 1 and b ≥ 1, e of either sign
Equation nestedQuotients(Random &random) {
  DefinitionBuilder l, r;
  std::string a = random.pick<std::string>({"N1", "2", "3"}), b = random.pick<std::string>({"N2", "1", "5"});
  auto number = [](DefinitionBuilder &d, Value i) { return d.op(Fn::sub, {i, d.extent("8*N0")}); };
  l.output({"17*N0"}, [&](const Values &i) {
    return l.op(Fn::div, {l.op(Fn::div, {number(l, i[0]), l.extent(a)}), l.extent(b)});
  });
  r.output({"17*N0"}, [&](const Values &i) { return r.op(Fn::div, {number(r, i[0]), r.extent(times({a, b}))}); });
  Equation equation;
  equation.left = l.finish();
  equation.right = r.finish();
  equation.least = 1;
  return equation;
}

/// Lemma 15: t ≤ ⌊e/b⌋ ⇔ b·t ≤ e, ⌊e/b⌋ ≤ t ⇔ e ≤ b·t + b − 1, and c·(e − b + 1) ≤
/// b·c·⌊e/b⌋ ≤ c·e for b ≥ 1 and c ≥ 0, e and t of either sign
Equation withoutQuotients(Random &random) {
  DefinitionBuilder l;
  std::string size = random.pick<std::string>({"N1", "1", "3"}), factor = random.pick<std::string>({"N2", "0", "2"});
  Equation equation = always({"17*N0", "9*N0"}, l, [&](const Values &i) {
    Value e = l.op(Fn::sub, {i[0], l.extent("8*N0")}), t = l.op(Fn::sub, {i[1], l.extent("4*N0")});
    Value b = l.extent(size), c = l.extent(factor), quotient = l.op(Fn::div, {e, b});
    Value product = l.op(Fn::mul, {b, t}), below = l.op(Fn::sub, {b, l.index(1)});
    // w ≤ x ⇔ y ≤ z
    auto same = [&](Value w, Value x, Value y, Value z) {
      return l.op(Fn::or_, {l.both(l.op(Fn::le, {w, x}), l.op(Fn::le, {y, z})),
                            l.both(l.op(Fn::lt, {x, w}), l.op(Fn::lt, {z, y}))});
    };
    Value least = same(t, quotient, product, e), most = same(quotient, t, e, l.op(Fn::add, {product, below}));
    Value scaled = l.op(Fn::mul, {l.op(Fn::mul, {b, c}), quotient});
    Value from = l.op(Fn::mul, {c, l.op(Fn::sub, {e, below})}), to = l.op(Fn::mul, {c, e});
    return l.both(l.both(least, most), l.both(l.op(Fn::le, {from, scaled}), l.op(Fn::le, {scaled, to})));
  });
  equation.least = 1;
  return equation;
}

/// Lemma 16: a statement for all x < a·b is one for all digits b·q + r, with q for ⌊x/b⌋; and
/// where 0 ≤ t < a, what holds for every v < a holds for t
Equation partsAsIndices(Random &random) {
  DefinitionBuilder l, r;
  std::string b = random.pick<std::string>({"N1", "1", "3"}), n = times({"N0", b});
  int64_t scale = random.below(9) - 4;
  auto value = [&](DefinitionBuilder &d, Value x, Value q) {
    Value square = d.op(Fn::mul, {d.index(scale), d.op(Fn::mul, {q, q})});
    return d.op(Fn::add, {x, square});
  };
  l.output({}, [&](const Values &) {
    return l.reduce(Monoid::min, n, [&](Value x) { return value(l, x, l.op(Fn::div, {x, l.extent(b)})); });
  });
  r.output({}, [&](const Values &) {
    return r.reduce(Monoid::min, "N0", [&](Value q) {
      return r.reduce(Monoid::min, b, [&](Value rest) {
        Value x = r.op(Fn::add, {r.op(Fn::mul, {r.extent(b), q}), rest});
        return value(r, x, q);
      });
    });
  });
  // The part t = ⌊N0·i / N2⌋ of i < N2 is below N0.
  auto of = [&](Value v) { return l.op(Fn::mul, {l.index(scale), l.op(Fn::mul, {v, v})}); };
  l.output({"N2"}, [&](const Values &i) {
    Value part = l.op(Fn::div, {l.op(Fn::mul, {l.extent("N0"), i[0]}), l.extent("N2")});
    Value least = l.reduce(Monoid::min, "N0", [&](Value v) { return of(v); });
    return l.op(Fn::le, {least, of(part)});
  });
  r.output({"N2"}, [&](const Values &) { return r.number(1, "i1"); });
  Equation equation;
  equation.left = l.finish();
  equation.right = r.finish();
  equation.least = 1;
  return equation;
}

/// Lemma 17: no present term is larger than the maximum, which is one of them or −2⁶³; a sum of
/// terms in 0 … c lies in 0 … c·n
Equation integersReduced(Random &random) {
  DefinitionBuilder l;
  std::string n = random.pick<std::string>({"N0", "1", "0", "7"});
  int64_t modulus = 2 + random.below(9), apart = 2 + random.below(3);
  auto rest = [&](Value x, int64_t m) {
    Value quotient = l.op(Fn::div, {x, l.index(m)});
    return l.op(Fn::sub, {x, l.op(Fn::mul, {l.index(m), quotient})});
  };
  return always({"N1"}, l, [&](const Values &i) {
    auto over = [&](Monoid monoid, llvm::function_ref<Value(Value)> of) {
      return l.reduce(monoid, n, [&](Value j) -> Term {
        Value f = rest(l.op(Fn::add, {l.op(Fn::mul, {l.index(7), j}), i[0]}), modulus);
        Value even = l.op(Fn::eq, {rest(l.op(Fn::add, {j, i[0]}), apart), l.index(0)});
        return {of(f), even};
      });
    };
    Value most = over(Monoid::max, [](Value f) { return f; });
    Value any = over(Monoid::or_, [&](Value f) { return l.op(Fn::eq, {f, f}); });
    Value attained = over(Monoid::or_, [&](Value f) { return l.op(Fn::eq, {f, most}); });
    Value above = over(Monoid::and_, [&](Value f) { return l.op(Fn::le, {f, most}); });
    Value isLeast = l.op(Fn::eq, {most, l.index(INT64_MIN)});
    Value sum = over(Monoid::add, [](Value f) { return f; });
    Value bound = l.op(Fn::mul, {l.index(modulus - 1), l.extent(n)});
    Value between = l.both(l.op(Fn::le, {l.index(0), sum}), l.op(Fn::le, {sum, bound}));
    Value one = l.op(Fn::or_, {l.both(any, attained), isLeast});
    return l.both(l.both(above, between), l.both(one, l.op(Fn::eq, {any, attained})));
  });
}

/// Lemma 18: a statement for all N < c·n is one for all Q < n with each remainder; and
/// c·Q + r ≥ a ⇔ Q ≥ ⌈(a − r)/c⌉, a of either sign
Equation remaindersByCases(Random &random) {
  DefinitionBuilder l, r;
  int64_t c = 1 + random.below(4), scale = random.below(9) - 4;
  std::string n = "N0", whole = times({"N0", std::to_string(c)});
  auto value = [&](DefinitionBuilder &d, Value x, Value q) {
    return d.op(Fn::add, {d.op(Fn::mul, {d.index(scale), d.op(Fn::mul, {x, q})}), x});
  };
  l.output({}, [&](const Values &) {
    return l.reduce(Monoid::min, whole, [&](Value x) { return value(l, x, l.op(Fn::div, {x, l.index(c)})); });
  });
  r.output({}, [&](const Values &) {
    Value least;
    for (int64_t rest = 0; rest < c; ++rest) {
      Value one = r.reduce(Monoid::min, n, [&](Value q) {
        Value x = r.op(Fn::add, {r.op(Fn::mul, {r.index(c), q}), r.index(rest)});
        return value(r, x, q);
      });
      least = least ? r.op(Fn::min, {least, one}) : one;
    }
    return least;
  });
  int64_t rest = random.below(c);
  l.output({"9*N0", "9*N1"}, [&](const Values &i) {
    Value q = l.op(Fn::sub, {i[0], l.extent("4*N0")}), a = l.op(Fn::sub, {i[1], l.extent("4*N1")});
    Value number = l.op(Fn::add, {l.op(Fn::mul, {l.index(c), q}), l.index(rest)});
    return l.op(Fn::le, {a, number});
  });
  r.output({"9*N0", "9*N1"}, [&](const Values &i) {
    Value q = r.op(Fn::sub, {i[0], r.extent("4*N0")}), a = r.op(Fn::sub, {i[1], r.extent("4*N1")});
    Value above = r.op(Fn::add, {r.op(Fn::sub, {a, r.index(rest)}), r.index(c - 1)});
    return r.op(Fn::le, {r.op(Fn::div, {above, r.index(c)}), q});
  });
  Equation equation;
  equation.left = l.finish();
  equation.right = r.finish();
  equation.least = 1;
  return equation;
}

} // namespace

std::vector<Law> lemmas() {
  return {{"Lemma 1", "", mixedRadix},        {"Lemma 2", "", quotientInRange},  {"Lemma 3", "", quotientsCover},
          {"Lemma 4", "", remaindersCover},   {"Lemma 5", "", leastAtCorner},    {"Lemma 6", "", softmaxState},
          {"Lemma 7", "", freeAtIdentity},    {"Lemma 8", "", singularExtreme},  {"Lemma 9", "", scaledExtreme},
          {"Lemma 10", "", laggingReference}, {"Lemma 11", "", reshapeByGroups}, {"Lemma 12", "", products},
          {"Lemma 13", "", intervalsOfReals}, {"Lemma 14", "", nestedQuotients}, {"Lemma 15", "", withoutQuotients},
          {"Lemma 16", "", partsAsIndices},   {"Lemma 17", "", integersReduced}, {"Lemma 18", "", remaindersByCases},
          {"Lemma 19", "", shiftedReference}};
}

} // namespace moa::test
