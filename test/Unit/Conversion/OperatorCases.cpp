//===- OperatorCases.cpp - kernels that hold every operator ---------------===//
#include "Cases.h"

namespace moa::test {

using Fn = ScalarFn;
using K = KernelBuilder;

static const std::vector<Sizes> kVector = {{{"N", 0}}, {{"N", 1}}, {{"N", 7}}, {{"N", 64}}};
static const std::vector<Sizes> kMatrix = {
    {{"N", 0}, {"M", 3}}, {{"N", 3}, {"M", 0}}, {{"N", 1}, {"M", 1}}, {{"N", 5}, {"M", 7}}, {{"N", 8}, {"M", 3}}};

static void addPointwise(std::vector<Case> &cases) {
  cases.push_back({"FloatFunctions",
                   {"N"},
                   [](K &b) {
                     Value x = b.input("x", {"N"});
                     b.range(-3, 3);
                     for (Fn fn : {Fn::id, Fn::neg, Fn::abs, Fn::exp, Fn::exp2, Fn::tanh, Fn::sin, Fn::cos, Fn::erf,
                                   Fn::floor, Fn::ceil})
                       b.output(b.map(fn, {x}));
                     // Negative arguments give NaN at every level.
                     for (Fn fn : {Fn::log, Fn::log2, Fn::sqrt, Fn::rsqrt})
                       b.output(b.map(fn, {x}));
                   },
                   kVector,
                   true});
  cases.push_back({"FloatPairs",
                   {"N", "M"},
                   [](K &b) {
                     Value x = b.input("x", {"N", "M"});
                     b.range(-3, 3);
                     Value y = b.input("y", {"M"});
                     b.range(-3, 3);
                     for (Fn fn :
                          {Fn::add, Fn::sub, Fn::mul, Fn::div, Fn::mod, Fn::min, Fn::max, Fn::pow, Fn::fmod, Fn::atan2})
                       b.output(b.map(fn, {x, y}, {{0, 1}, {1}}));
                     for (Fn fn : {Fn::eq, Fn::ne, Fn::lt, Fn::le, Fn::gt, Fn::ge})
                       b.output(b.map(fn, {y, x}, {{1}, {0, 1}}));
                   },
                   kMatrix,
                   true});
  cases.push_back({"Integers",
                   {"N"},
                   [](K &b) {
                     Value a = b.cast(b.input("x", {"N"}, "i32", "40"), "index", true);
                     Value c = b.cast(b.input("y", {"N"}, "i64", "9"), "index", true);
                     Value x = b.map(Fn::sub, {a, b.constant(20, "index")});
                     Value y = b.map(Fn::sub, {b.map(Fn::mul, {c, b.constant(2, "index")}), b.constant(9, "index")});
                     for (Fn fn : {Fn::add, Fn::sub, Fn::mul, Fn::div, Fn::mod, Fn::min, Fn::max, Fn::and_, Fn::or_,
                                   Fn::xor_, Fn::eq, Fn::ne, Fn::lt, Fn::le, Fn::gt, Fn::ge})
                       b.output(b.map(fn, {x, y}));
                     for (Fn fn : {Fn::neg, Fn::abs, Fn::not_, Fn::id})
                       b.output(b.map(fn, {x}));
                     for (Fn fn : {Fn::shl, Fn::shr})
                       b.output(b.map(fn, {x, c}));
                   },
                   kVector,
                   true});
  cases.push_back({"Booleans",
                   {"N", "M"},
                   [](K &b) {
                     Value p = b.input("p", {"N"}, "i1"), q = b.input("q", {"M"}, "i1");
                     for (Fn fn : {Fn::and_, Fn::or_, Fn::xor_, Fn::eq, Fn::ne})
                       b.output(b.map(fn, {p, q}, {{0}, {1}}));
                     b.output(b.map(Fn::not_, {p}));
                     Value x = b.input("x", {"M"}), y = b.input("y", {"N", "M"});
                     b.output(b.map(Fn::select, {p, x, y}, {{0}, {1}, {0, 1}}));
                   },
                   kMatrix,
                   true});
  cases.push_back({"Casts",
                   {"N"},
                   [](K &b) {
                     Value x = b.input("x", {"N"}), h = b.input("h", {"N"}, "bf16");
                     b.range(-300, 300);
                     Value t = b.input("t", {"N"}, "i32", "1000"), p = b.input("p", {"N"}, "i1");
                     for (const char *type : {"f32", "bf16", "f16", "i1"})
                       b.output(b.cast(x, type));
                     for (const char *type : {"f64", "f32", "f16", "i32", "index"})
                       b.output(b.cast(h, type));
                     b.output(b.cast(h, "f32", true));
                     for (const char *type : {"index", "i64", "i8", "f64", "bf16", "i1"})
                       b.output(b.cast(t, type));
                     for (const char *type : {"f64", "index", "i32"})
                       b.output(b.cast(p, type, true));
                     b.output(b.cast(b.iota("N"), "f64", true));
                     b.output(b.cast(b.iota("N"), "i32"));
                   },
                   kVector,
                   true});
  cases.push_back({"Generators",
                   {"N", "M"},
                   [](K &b) {
                     b.output(b.constant(2.5));
                     b.output(b.constant(-7, "i32"));
                     b.output(b.extent("N*M - N/2 + M%3"));
                     b.output(b.iota("N + 1"));
                     // A table of coordinates: every component is an index expression.
                     Value i = b.iota("N"), j = b.iota("M");
                     b.output(b.map(Fn::add, {b.map(Fn::mul, {i, b.extent("M")}), j}, {{0}, {1}}));
                   },
                   kMatrix,
                   true});
}

static void addReductions(std::vector<Case> &cases) {
  cases.push_back({"ReduceAxes",
                   {"N", "M", "L"},
                   [](K &b) {
                     Value x = b.input("x", {"N", "M", "L"});
                     for (int64_t axis : {0, 1, 2})
                       for (Monoid monoid : {Monoid::add, Monoid::mul, Monoid::max, Monoid::min})
                         b.output(b.reduce(monoid, x, axis));
                     b.output(b.reduce(Monoid::add, b.reduce(Monoid::max, x)));
                     b.output(b.reduce(Monoid::min, b.reduce(Monoid::add, b.reduce(Monoid::max, x)), 0));
                   },
                   {{{"N", 2}, {"M", 3}, {"L", 4}},
                    {{"N", 1}, {"M", 0}, {"L", 2}},
                    {{"N", 0}, {"M", 1}, {"L", 1}},
                    {{"N", 3}, {"M", 1}, {"L", 0}}}});
  cases.push_back({"ReduceBooleansAndIntegers",
                   {"N", "M"},
                   [](K &b) {
                     Value p = b.input("p", {"N", "M"}, "i1");
                     Value t = b.cast(b.input("t", {"N", "M"}, "i32", "20"), "index", true);
                     for (Monoid monoid : {Monoid::and_, Monoid::or_})
                       b.output(b.reduce(monoid, p));
                     for (Monoid monoid : {Monoid::add, Monoid::mul, Monoid::max, Monoid::min})
                       b.output(b.reduce(monoid, t, 0));
                     b.output(b.reduce(Monoid::add, b.cast(p, "index", true)));
                   },
                   {{{"N", 3}, {"M", 4}}, {{"N", 1}, {"M", 0}}, {{"N", 0}, {"M", 2}}},
                   true});
  cases.push_back({"EmptyStaticRange",
                   {"N"},
                   [](K &b) {
                     Value x = b.input("x", {"N", "0"});
                     for (Monoid monoid : {Monoid::add, Monoid::mul, Monoid::max, Monoid::min})
                       b.output(b.reduce(monoid, x));
                     Value y = b.input("y", {"0", "3"});
                     b.output(b.inner(x, y));
                     b.output(x);
                   },
                   kVector,
                   true});
  cases.push_back({"Inner",
                   {"N", "M", "B"},
                   [](K &b) {
                     Value a = b.input("a", {"B", "N", "5"}), c = b.input("c", {"B", "5", "M"});
                     Value w = b.input("w", {"5", "M"}), v = b.input("v", {"5"});
                     b.output(b.inner(a, c, 1));
                     b.output(b.inner(a, w, 1, true, false));
                     b.output(b.inner(w, b.transpose(w, {1, 0})));
                     b.output(b.inner(b.transpose(w, {1, 0}), c, 1, false, true));
                     b.output(b.inner(v, v));
                     b.output(b.inner(a, v, 1, true, false));
                     b.output(b.inner(v, c, 1, false, true));
                     b.output(b.inner(a, c, 1, true, true, Monoid::max, Fn::add));
                     b.output(b.inner(a, w, 0));
                     b.output(b.inner(a, c, 1, true, true, Monoid::or_, Fn::lt));
                   },
                   {{{"N", 3}, {"M", 4}, {"B", 2}},
                    {{"N", 1}, {"M", 1}, {"B", 1}},
                    {{"N", 0}, {"M", 2}, {"B", 2}},
                    {{"N", 2}, {"M", 0}, {"B", 0}}}});
  cases.push_back({"ProductOfThreeMatrices",
                   {"N", "M", "L"},
                   [](K &b) {
                     Value x = b.input("x", {"N", "M"}), y = b.input("y", {"M", "L"});
                     Value z = b.input("z", {"L", "3"});
                     b.output(b.inner(b.inner(x, y), z));
                     b.output(b.inner(x, b.inner(y, z)));
                   },
                   {{{"N", 3}, {"M", 4}, {"L", 5}},
                    {{"N", 1}, {"M", 0}, {"L", 2}},
                    {{"N", 2}, {"M", 3}, {"L", 0}},
                    {{"N", 0}, {"M", 1}, {"L", 1}}}});
  cases.push_back({"PlainProduct",
                   {"N", "M"},
                   [](K &b) { b.output(b.inner(b.input("x", {"N", "M"}), b.input("y", {"M", "16"}))); },
                   kMatrix});
}

static void addViews(std::vector<Case> &cases) {
  cases.push_back({"Views",
                   {"N", "M"},
                   [](K &b) {
                     Value x = b.input("x", {"N", "M", "4"});
                     b.output(b.transpose(x, {2, 0, 1}));
                     b.output(b.reverse(x, 1));
                     b.output(b.reverse(b.reverse(x, 0), 0));
                     b.output(b.rotate(x, "1", 1));
                     b.output(b.rotate(x, "N - 2", 2));
                     b.output(b.rotate(x, "-3", 0));
                     b.output(b.slice(x, 2, "1", "2"));
                     b.output(b.slice(x, 1, "M/2", "M - M/2"));
                     b.output(b.slice(x, 0, "0", "N/2"));
                     b.output(b.rotate(b.transpose(b.reverse(b.slice(x, 2, "1", "3"), 2), {2, 1, 0}), "M", 1));
                   },
                   kMatrix,
                   true});
  cases.push_back({"Reshapes",
                   {"N", "M"},
                   [](K &b) {
                     Value x = b.input("x", {"N", "M", "4"});
                     b.output(b.reshape(x, {"4*N*M"}));
                     b.output(b.reshape(x, {"M", "N", "4"}));
                     b.output(b.reshape(x, {"2", "N*M", "2"}));
                     b.output(b.reshape(x, {"N", "1", "M", "4"}));
                     b.output(b.reshape(b.transpose(x, {1, 0, 2}), {"N", "4*M"}));
                     b.output(b.reshape(b.constant(3), {"1", "1"}));
                     b.output(b.reduce(Monoid::add, b.reshape(x, {"N*M*4"})));
                   },
                   kMatrix});
  cases.push_back({"Psi",
                   {"N", "M", "P"},
                   [](K &b) {
                     Value x = b.input("x", {"N", "M", "3"});
                     Value s = b.cast(b.input("s", {"P"}, "i32", "N"), "index", true);
                     Value t = b.input("t", {"P", "2"}, "index", "M");
                     Value u = b.input("u", {}, "index", "3");
                     b.output(b.psi(x, {s}, {0}, {{0}}, {"P"}));
                     b.output(b.psi(x, {t}, {1}, {{0, 1}}, {"P", "2"}));
                     b.output(b.psi(x, {s, t}, {0, 1}, {{0}, {0, 1}}, {"P", "2"}));
                     b.output(b.psi(x, {s, t, u}, {0, 1, 2}, {{1}, {0, 2}, {}}, {"P", "P", "2"}));
                     b.output(b.psi(x, {u}, {2}, {{}}, {}));
                     // A frame axis that no index covers repeats the selection.
                     b.output(b.psi(x, {u}, {2}, {{}}, {"P"}));
                     b.output(b.psi(x, {s}, {0}, {{1}}, {"4", "P"}));
                     // A selection of a selection, and of a reversal by a computed index.
                     Value g = b.psi(x, {s}, {0}, {{0}}, {"P"});
                     Value i = b.map(Fn::sub, {b.extent("P - 1"), b.iota("P")}, {{}, {0}});
                     b.output(b.psi(b.reverse(g, 1), {i}, {0}, {{0}}, {"P"}));
                   },
                   {{{"N", 3}, {"M", 4}, {"P", 5}},
                    {{"N", 1}, {"M", 1}, {"P", 1}},
                    {{"N", 2}, {"M", 2}, {"P", 0}},
                    {{"N", 7}, {"M", 3}, {"P", 9}}},
                   true});
  cases.push_back({"ViewsOfComputedArrays",
                   {"N", "M"},
                   [](K &b) {
                     Value x = b.input("x", {"N", "M"});
                     Value s = b.map(Fn::exp, {x});
                     Value r = b.reduce(Monoid::add, s);
                     // Shared through views: one let, several uses.
                     b.output(b.map(Fn::add, {b.transpose(s, {1, 0}), b.reverse(r, 0)}, {{0, 1}, {1}}));
                     b.output(b.reduce(Monoid::max, b.rotate(s, "1", 0), 0));
                     b.output(b.map(Fn::mul, {r, r}));
                     b.output(b.slice(s, 1, "0", "M/2"));
                   },
                   kMatrix});
}

/// R6 measures from the first element, whose address divides by N where there is none.
static void addEmptyRotation(std::vector<Case> &cases) {
  cases.push_back({"SquaredDistancesOfARotation",
                   {"N"},
                   [](K &b) {
                     Value x = b.rotate(b.input("x", {"N"}), "N + 1", 0);
                     Value n = b.map(Fn::max, {b.cast(b.extent("N"), "f64", true), b.constant(1)});
                     Value mean = b.map(Fn::div, {b.reduce(Monoid::add, x), n});
                     Value d = b.map(Fn::sub, {x, mean}, {{0}, {}});
                     b.output(b.reduce(Monoid::add, b.map(Fn::mul, {d, d})));
                   },
                   kVector});
}

static void addMasks(std::vector<Case> &cases) {
  cases.push_back({"AbsentOutputs",
                   {"N", "M"},
                   [](K &b) {
                     Value x = b.input("x", {"N", "M"}), p = b.input("p", {"M"}, "i1");
                     Value i = b.iota("N"), j = b.iota("M");
                     Value causal = b.map(Fn::le, {j, i}, {{1}, {0}});
                     Value once = b.mask(causal, x, {0, 1});
                     Value twice = b.mask(p, once, {1});
                     b.output(once);
                     b.output(twice);
                     b.output(b.map(Fn::exp, {twice}));
                     b.output(b.map(Fn::add, {once, twice}));
                     b.output(b.transpose(twice, {1, 0}));
                     b.output(b.mask(b.mask(p, p, {0}), x, {1}));
                     for (Monoid monoid : {Monoid::add, Monoid::mul, Monoid::max, Monoid::min})
                       for (int64_t axis : {0, 1})
                         b.output(b.reduce(monoid, twice, axis));
                   },
                   kMatrix});
  cases.push_back({"AbsentFactors",
                   {"N", "M"},
                   [](K &b) {
                     Value x = b.input("x", {"N", "M"}), y = b.input("y", {"M", "3"});
                     Value p = b.input("p", {"N", "M"}, "i1"), q = b.input("q", {"M"}, "i1");
                     b.output(b.inner(b.mask(p, x, {0, 1}), b.mask(q, y, {0})));
                     b.output(b.inner(x, b.mask(q, y, {0}), 0, true, true, Monoid::max, Fn::add));
                     b.output(b.reduce(Monoid::or_, b.mask(p, p, {0, 1})));
                     b.output(b.reduce(Monoid::and_, b.mask(q, p, {1})));
                   },
                   kMatrix});
  cases.push_back({"AbsentIndicesAndConditions",
                   {"N", "M"},
                   [](K &b) {
                     Value x = b.input("x", {"N"}), p = b.input("p", {"M"}, "i1");
                     Value t = b.input("t", {"M"}, "index", "N");
                     Value some = b.mask(p, t, {0});
                     b.output(b.psi(x, {some}, {0}, {{0}}, {"M"}));
                     b.output(b.reduce(Monoid::add, b.psi(x, {some}, {0}, {{0}}, {"M"})));
                     Value one = b.constant(1), two = b.constant(2);
                     Value c = b.mask(p, b.map(Fn::lt, {t, b.constant(1, "index")}), {0});
                     b.output(b.map(Fn::select, {c, one, two}, {{0}, {}, {}}));
                     b.output(b.mask(c, b.cast(t, "f64", true), {0}));
                   },
                   {{{"N", 3}, {"M", 8}}, {{"N", 1}, {"M", 1}}, {{"N", 4}, {"M", 0}}}});
}

/// Catenations of inputs, of computed and of masked arrays, on every axis.
static void addCatenations(std::vector<Case> &cases) {
  cases.push_back({"Catenations",
                   {"N", "M"},
                   [](K &b) {
                     Value x = b.input("x", {"N", "M"}), y = b.input("y", {"3", "M"});
                     Value z = b.input("z", {"N", "N + 1"}), p = b.input("p", {"N", "M"}, "i1");
                     b.output(b.cat(x, y, 0));
                     b.output(b.cat(x, z, 1));
                     b.output(b.cat(b.cat(x, y, 0), x, 0));
                     b.output(b.reverse(b.cat(b.reverse(z, 1), x, 1), 1));
                     b.output(b.rotate(b.cat(x, b.transpose(b.transpose(z, {1, 0}), {1, 0}), 1), "M - 1", 1));
                     b.output(b.slice(b.cat(x, z, 1), 1, "M", "N + 1"));
                     Value masked = b.mask(p, x, {0, 1});
                     b.output(b.cat(masked, z, 1));
                     b.output(b.cat(x, masked, 0));
                     b.output(b.map(Fn::neg, {b.cat(masked, masked, 1)}));
                     for (Monoid monoid : {Monoid::mul, Monoid::max, Monoid::min})
                       b.output(b.reduce(monoid, b.cat(masked, z, 1)));
                   },
                   kMatrix,
                   true});
  cases.push_back({"SharedCatenations",
                   {"N", "M"},
                   [](K &b) {
                     Value x = b.input("x", {"N", "M"}), y = b.input("y", {"N", "2"});
                     Value p = b.input("p", {"M"}, "i1"), v = b.input("v", {"M + 2", "3"});
                     Value s = b.cat(b.mask(p, b.map(Fn::tanh, {x}), {1}), y, 1);
                     Value m = b.reduce(Monoid::max, s);
                     Value e = b.map(Fn::exp, {b.map(Fn::sub, {s, m}, {{0, 1}, {0}})});
                     b.output(b.inner(e, v));
                     b.output(b.reduce(Monoid::add, e));
                     b.output(b.reduce(Monoid::add, b.cat(s, b.cat(e, x, 1), 1), 0));
                     Value at = b.map(Fn::mod, {b.iota("M + 2"), b.extent("M + 1")}, {{0}, {}});
                     b.output(b.psi(s, {at}, {1}, {{0}}, {"M + 2"}));
                   },
                   kMatrix});
}

static void addUserMonoids(std::vector<Case> &cases) {
  cases.push_back({"UserMonoids",
                   {"N", "M"},
                   [](K &b) {
                     Value t = b.cast(b.input("t", {"N", "M"}, "i32", "64"), "index", true);
                     Value p = b.input("p", {"N", "M"}, "i1"), x = b.input("x", {"N", "M"});
                     b.wholeRange(-9, 9);
                     std::string bits =
                         b.monoid("bits", 0, "index", [&](Value a, Value c) { return b.map(Fn::xor_, {a, c}); });
                     std::string larger = b.monoid("larger", 0, "f64", [&](Value a, Value c) {
                       Value least = b.map(Fn::le, {b.map(Fn::abs, {a}), b.map(Fn::abs, {c})});
                       Value same = b.map(Fn::eq, {b.map(Fn::abs, {a}), b.map(Fn::abs, {c})});
                       Value ofTwo = b.map(Fn::select, {least, c, a});
                       return b.map(Fn::select, {same, b.map(Fn::max, {a, c}), ofTwo});
                     });
                     for (int64_t axis : {0, 1}) {
                       b.output(b.reduce(bits, t, axis));
                       b.output(b.reduce(bits, b.mask(p, t, {0, 1}), axis));
                       b.output(b.reduce(larger, x, axis));
                       b.output(b.reduce(larger, b.cat(b.mask(p, x, {0, 1}), x, axis), axis));
                     }
                     // A result of one beside named monoids, and in the term of another.
                     Value d = b.map(Fn::sub, {x, b.reduce(larger, x, 1)}, {{0, 1}, {0}});
                     b.output(b.reduce(Monoid::max, d));
                     b.output(b.reduce(larger, d, 1));
                   },
                   kMatrix,
                   true});
}

std::vector<Case> operatorCases() {
  std::vector<Case> cases;
  addPointwise(cases);
  addReductions(cases);
  addViews(cases);
  addEmptyRotation(cases);
  addMasks(cases);
  addCatenations(cases);
  addUserMonoids(cases);
  return cases;
}

} // namespace moa::test
