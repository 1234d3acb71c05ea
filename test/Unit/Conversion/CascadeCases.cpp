//===- CascadeCases.cpp - kernels of cascaded reductions ------------------===//
#include "Cases.h"

namespace moa::test {

using Fn = ScalarFn;
using K = KernelBuilder;

static const std::vector<Sizes> kRows = {
    {{"N", 0}, {"M", 3}}, {{"N", 3}, {"M", 0}}, {{"N", 1}, {"M", 1}}, {{"N", 5}, {"M", 7}}, {{"N", 4}, {"M", 33}}};

/// e^(x − max x) and its sum over the last axis.
static std::pair<Value, Value> exponentials(K &b, Value x, Monoid extreme = Monoid::max) {
  Value m = b.reduce(extreme, x);
  Value e =
      b.map(Fn::exp, {extreme == Monoid::max ? b.map(Fn::sub, {x, m}) : b.map(Fn::neg, {b.map(Fn::sub, {x, m})})});
  return {e, b.reduce(Monoid::add, e)};
}

static Value weights(K &b, Value x) {
  auto [e, l] = exponentials(b, x);
  return b.map(Fn::div, {e, l});
}

static Value logSum(K &b, Value x) {
  Value m = b.reduce(Monoid::max, x);
  Value e = b.map(Fn::exp, {b.map(Fn::sub, {x, m})});
  return b.map(Fn::add, {m, b.map(Fn::log, {b.reduce(Monoid::add, e)})});
}

static void addWeighted(std::vector<Case> &cases) {
  cases.push_back({"Weights", {"N", "M"}, [](K &b) { b.output(weights(b, b.input("x", {"N", "M"}))); }, kRows});
  cases.push_back({"WeightedSum",
                   {"N", "M"},
                   [](K &b) {
                     Value x = b.input("x", {"N", "M"}), v = b.input("v", {"M", "4"});
                     b.output(b.inner(weights(b, x), v));
                     b.output(logSum(b, x));
                   },
                   kRows});
  cases.push_back({"WeightedSumOverALongAxis",
                   {"N", "M", "D"},
                   [](K &b) {
                     Value x = b.input("x", {"N", "M"}), v = b.input("v", {"M", "D"});
                     b.output(b.inner(weights(b, x), v));
                   },
                   {{{"N", 3}, {"M", 5}, {"D", 4}}, {{"N", 1}, {"M", 0}, {"D", 2}}, {{"N", 2}, {"M", 1}, {"D", 0}}}});
  cases.push_back({"GroupedHeads",
                   {"B", "H", "G", "N", "M"},
                   [](K &b) {
                     Value q = b.input("q", {"B", "H", "N", "4"}), k = b.input("k", {"B", "G", "M", "4"});
                     Value v = b.input("v", {"B", "G", "M", "4"}), scale = b.input("scale", {});
                     Value heads = b.iota("H"), batches = b.iota("B");
                     Value group = b.map(Fn::div, {heads, b.extent("H/G")}, {{0}, {}});
                     auto select = [&](Value x) { return b.psi(x, {batches, group}, {0, 1}, {{0}, {1}}, {"B", "H"}); };
                     Value s = b.inner(q, b.transpose(select(k), {0, 1, 3, 2}), 2);
                     s = b.map(Fn::mul, {s, scale});
                     Value limit = b.map(Fn::add, {b.iota("N"), b.extent("M - N")});
                     Value seen = b.map(Fn::le, {b.iota("M"), limit}, {{1}, {0}});
                     s = b.mask(seen, s, {2, 3});
                     b.output(b.inner(weights(b, s), select(v), 2));
                     b.output(logSum(b, s));
                   },
                   {{{"B", 1}, {"H", 4}, {"G", 2}, {"N", 3}, {"M", 5}},
                    {{"B", 2}, {"H", 2}, {"G", 1}, {"N", 5}, {"M", 3}},
                    {{"B", 1}, {"H", 1}, {"G", 1}, {"N", 1}, {"M", 0}},
                    {{"B", 0}, {"H", 2}, {"G", 2}, {"N", 2}, {"M", 2}}}});
  cases.push_back({"MaskArray",
                   {"N", "M"},
                   [](K &b) {
                     Value x = b.input("x", {"N", "M"}), p = b.input("p", {"N", "M"}, "i1");
                     Value v = b.input("v", {"M", "3"});
                     Value s = b.mask(p, x, {0, 1});
                     b.output(b.inner(weights(b, s), v));
                     b.output(logSum(b, s));
                     b.output(weights(b, s));
                   },
                   kRows});
  cases.push_back({"Window",
                   {"N", "M"},
                   [](K &b) {
                     Value x = b.input("x", {"N", "M"}), v = b.input("v", {"M", "3"});
                     Value w = b.cast(b.input("w", {}, "i32", "4"), "index", true);
                     Value i = b.iota("N"), j = b.iota("M");
                     Value near = b.map(Fn::gt, {j, b.map(Fn::sub, {i, w}, {{0}, {}})}, {{1}, {0}});
                     Value seen = b.map(Fn::and_, {b.map(Fn::le, {j, i}, {{1}, {0}}), near});
                     b.output(b.inner(weights(b, b.mask(seen, x, {0, 1})), v));
                   },
                   kRows});
  cases.push_back({"BoundedScores",
                   {"N", "M"},
                   [](K &b) {
                     Value x = b.input("x", {"N", "M"}), v = b.input("v", {"M", "3"});
                     Value cap = b.constant(2);
                     Value s = b.map(Fn::mul, {b.map(Fn::tanh, {b.map(Fn::div, {x, cap})}), cap});
                     b.output(b.inner(weights(b, s), v));
                   },
                   kRows});
  cases.push_back({"Gate",
                   {"N", "M"},
                   [](K &b) {
                     Value x = b.input("x", {"N", "M"}), v = b.input("v", {"M", "3"});
                     Value one = b.constant(1);
                     Value g = b.map(Fn::div, {one, b.map(Fn::add, {b.map(Fn::exp, {b.map(Fn::neg, {x})}), one})},
                                     {{}, {0, 1}});
                     b.output(b.inner(g, v));
                   },
                   kRows});
  cases.push_back({"DifferenceOfWeights",
                   {"N", "M"},
                   [](K &b) {
                     Value x = b.input("x", {"N", "M"}), y = b.input("y", {"N", "M"});
                     Value v = b.input("v", {"M", "4"}), lambda = b.input("lambda", {});
                     Value d = b.map(Fn::sub, {weights(b, x), b.map(Fn::mul, {weights(b, y), lambda})});
                     b.output(b.inner(d, v));
                   },
                   kRows});
  cases.push_back({"WeightsByTheMinimum",
                   {"N", "M"},
                   [](K &b) {
                     Value x = b.input("x", {"N", "M"}), v = b.input("v", {"M", "4"});
                     auto [e, l] = exponentials(b, x, Monoid::min);
                     b.output(b.inner(b.map(Fn::div, {e, l}), v));
                     b.output(l);
                   },
                   kRows});
  cases.push_back({"WeightsInBaseTwo",
                   {"N", "M"},
                   [](K &b) {
                     Value x = b.input("x", {"N", "M"}), v = b.input("v", {"M", "4"});
                     Value m = b.reduce(Monoid::max, x);
                     Value e = b.map(Fn::exp2, {b.map(Fn::sub, {x, m})});
                     b.output(b.inner(b.map(Fn::div, {e, b.reduce(Monoid::add, e)}), v));
                   },
                   kRows});
  cases.push_back({"WeightsWithASink",
                   {"N", "M"},
                   [](K &b) {
                     Value x = b.input("x", {"N", "M"}), v = b.input("v", {"M", "4"});
                     Value sink = b.input("sink", {"N"});
                     Value m = b.map(Fn::max, {b.reduce(Monoid::max, x), sink});
                     Value e = b.map(Fn::exp, {b.map(Fn::sub, {x, m})});
                     Value l = b.map(Fn::add, {b.reduce(Monoid::add, e), b.map(Fn::exp, {b.map(Fn::sub, {sink, m})})});
                     b.output(b.inner(b.map(Fn::div, {e, l}), v));
                   },
                   kRows});
  cases.push_back({"WeightsOfWeights",
                   {"N", "M"},
                   [](K &b) { b.output(weights(b, weights(b, b.input("x", {"N", "M"})))); },
                   kRows});
  cases.push_back({"WeightsAlongTheFirstAxis",
                   {"N", "M"},
                   [](K &b) {
                     Value x = b.input("x", {"N", "M"});
                     Value m = b.reduce(Monoid::max, x, 0);
                     Value e = b.map(Fn::exp, {b.map(Fn::sub, {x, m}, {{0, 1}, {1}})});
                     b.output(b.map(Fn::div, {e, b.reduce(Monoid::add, e, 0)}, {{0, 1}, {1}}));
                   },
                   kRows});
}

static void addStatistics(std::vector<Case> &cases) {
  cases.push_back({"ScaledNorm",
                   {"N", "M"},
                   [](K &b) {
                     Value x = b.input("x", {"N", "M"});
                     Value m = b.reduce(Monoid::max, b.map(Fn::abs, {x}));
                     Value q = b.map(Fn::div, {x, m});
                     Value s = b.reduce(Monoid::add, b.map(Fn::mul, {q, q}));
                     b.output(b.map(Fn::mul, {m, b.map(Fn::sqrt, {s})}));
                   },
                   kRows});
  cases.push_back({"ScaledNormByPower",
                   {"N", "M"},
                   [](K &b) {
                     Value x = b.input("x", {"N", "M"});
                     Value m = b.reduce(Monoid::max, b.map(Fn::abs, {x}));
                     Value s = b.reduce(Monoid::add, b.map(Fn::pow, {b.map(Fn::div, {x, m}), b.constant(2)}));
                     b.output(b.map(Fn::mul, {m, b.map(Fn::sqrt, {s})}));
                   },
                   kRows});
  cases.push_back({"RootMeanSquareThenProduct",
                   {"N", "M"},
                   [](K &b) {
                     Value x = b.input("x", {"N", "M"}), w = b.input("w", {"M", "3"});
                     Value n = b.cast(b.extent("M"), "f64", true);
                     Value s = b.reduce(Monoid::add, b.map(Fn::mul, {x, x}));
                     Value r = b.map(Fn::rsqrt, {b.map(Fn::add, {b.map(Fn::div, {s, n}), b.constant(1e-5)})});
                     b.output(b.inner(b.map(Fn::mul, {x, r}), w));
                   },
                   {{{"N", 1}, {"M", 1}}, {{"N", 5}, {"M", 7}}, {{"N", 0}, {"M", 2}}}});
  cases.push_back({"CentredThenProduct",
                   {"N", "M"},
                   [](K &b) {
                     Value x = b.input("x", {"N", "M"}), w = b.input("w", {"M", "3"});
                     Value n = b.cast(b.extent("M"), "f64", true);
                     Value mean = b.map(Fn::div, {b.reduce(Monoid::add, x), n});
                     Value c = b.map(Fn::sub, {x, mean});
                     Value var = b.map(Fn::div, {b.reduce(Monoid::add, b.map(Fn::mul, {c, c})), n});
                     Value r = b.map(Fn::sqrt, {b.map(Fn::add, {var, b.constant(1e-5)})});
                     b.output(b.inner(b.map(Fn::div, {c, r}), w));
                   },
                   {{{"N", 1}, {"M", 1}}, {{"N", 5}, {"M", 7}}, {{"N", 0}, {"M", 2}}}});
  cases.push_back({"MeanDeviation",
                   {"N", "M"},
                   [](K &b) {
                     Value x = b.input("x", {"N", "M"});
                     Value mean = b.map(Fn::div, {b.reduce(Monoid::add, x), b.cast(b.extent("M"), "f64", true)});
                     b.output(b.reduce(Monoid::add, b.map(Fn::abs, {b.map(Fn::sub, {x, mean})})));
                   },
                   {{{"N", 1}, {"M", 1}}, {{"N", 5}, {"M", 7}}, {{"N", 0}, {"M", 2}}}});
  cases.push_back({"HoistedFactors",
                   {"N", "M"},
                   [](K &b) {
                     Value x = b.input("x", {"N", "M"}), f = b.input("f", {"N"}), g = b.input("g", {});
                     Value p = b.input("p", {"N", "M"}, "i1");
                     Value t = b.map(Fn::mul, {b.map(Fn::div, {x, f}), g});
                     b.output(b.reduce(Monoid::add, t));
                     b.output(b.reduce(Monoid::add, b.mask(p, t, {0, 1})));
                     // Not a sum: nothing may leave.
                     b.output(b.reduce(Monoid::max, t));
                     // A constant leaves a sum without a guard.
                     b.output(b.reduce(Monoid::add, b.map(Fn::mul, {x, b.constant(3)})));
                     b.output(b.reduce(Monoid::add, b.map(Fn::div, {f, b.map(Fn::exp, {x})}, {{0}, {0, 1}})));
                   },
                   kRows});
  cases.push_back({"GrowingSum",
                   {"N", "M"},
                   [](K &b) {
                     // The earlier result is a sum of positive terms; dividing by it is bounded.
                     Value x = b.map(Fn::exp, {b.input("x", {"N", "M"})});
                     Value s = b.reduce(Monoid::add, x);
                     Value y = b.input("y", {"N", "M"});
                     b.output(b.reduce(Monoid::add, b.map(Fn::div, {y, s})));
                     b.output(b.reduce(Monoid::add, b.map(Fn::mul, {y, s})));
                     b.output(b.reduce(Monoid::max, b.map(Fn::div, {y, s})));
                   },
                   kRows});
  cases.push_back({"PredicateFactors",
                   {"N", "M"},
                   [](K &b) {
                     // A selection with a predicate free of earlier results splits by parts.
                     Value x = b.input("x", {"N", "M"}), p = b.input("p", {"N", "M"}, "i1");
                     Value m = b.reduce(Monoid::max, x);
                     Value e = b.map(Fn::exp, {b.map(Fn::sub, {x, m})});
                     b.output(b.reduce(Monoid::add, b.map(Fn::select, {p, e, b.constant(0)}, {{0, 1}, {0, 1}, {}})));
                     // One that reads them does not.
                     Value far = b.map(Fn::lt, {b.map(Fn::sub, {x, m}), b.constant(-0.5)});
                     b.output(b.reduce(Monoid::add, b.map(Fn::select, {far, e, b.constant(0)}, {{0, 1}, {0, 1}, {}})));
                   },
                   kRows});
  cases.push_back({"RangeByAnEarlierResult",
                   {"N", "M"},
                   [](K &b) {
                     Value x = b.input("x", {"N", "M"});
                     Value m = b.reduce(Monoid::max, x);
                     Value p = b.map(Fn::ge, {x, b.map(Fn::sub, {m, b.constant(0.7)})});
                     Value top = b.mask(p, x, {0, 1});
                     b.output(b.reduce(Monoid::add, top));
                     b.output(weights(b, top));
                   },
                   kRows});
  cases.push_back(
      {"Arguments",
       {"N", "M"},
       [](K &b) {
         // The first position of the maximum.
         Value x = b.input("x", {"N", "M"});
         Value m = b.reduce(Monoid::max, x);
         Value p = b.map(Fn::eq, {x, m});
         Value at =
             b.mask(p, b.map(Fn::add, {b.map(Fn::mul, {b.iota("N"), b.constant(0, "index")}), b.iota("M")}, {{0}, {1}}),
                    {0, 1});
         b.output(b.reduce(Monoid::min, at));
       },
       {{{"N", 2}, {"M", 5}}, {{"N", 1}, {"M", 1}}, {{"N", 0}, {"M", 3}}}});
  cases.push_back({"ProductsAndExtremes",
                   {"N", "M"},
                   [](K &b) {
                     Value x = b.input("x", {"N", "M"});
                     Value m = b.reduce(Monoid::max, x), e = b.map(Fn::exp, {b.map(Fn::sub, {x, m})});
                     for (Monoid monoid : {Monoid::mul, Monoid::max, Monoid::min})
                       b.output(b.reduce(monoid, e));
                     b.output(b.reduce(Monoid::max, b.map(Fn::sub, {x, m})));
                   },
                   kRows});
  cases.push_back({"RangesOfTwoExtents",
                   {"N", "M", "L"},
                   [](K &b) {
                     Value x = b.input("x", {"N", "M"}), y = b.input("y", {"N", "L"});
                     Value m = b.reduce(Monoid::max, x);
                     Value e = b.map(Fn::exp, {b.map(Fn::sub, {y, m})});
                     b.output(b.reduce(Monoid::add, e));
                     b.output(b.map(Fn::add, {m, b.reduce(Monoid::add, e)}));
                   },
                   {{{"N", 2}, {"M", 3}, {"L", 4}},
                    {{"N", 2}, {"M", 3}, {"L", 3}},
                    {{"N", 1}, {"M", 0}, {"L", 2}},
                    {{"N", 1}, {"M", 2}, {"L", 0}}}});
  cases.push_back({"ScalarOutputs",
                   {"M"},
                   [](K &b) {
                     Value x = b.input("x", {"M"});
                     b.output(logSum(b, x));
                     auto [e, l] = exponentials(b, x);
                     b.output(l);
                     b.output(b.inner(b.map(Fn::div, {e, l}), x));
                   },
                   {{{"M", 0}}, {{"M", 1}}, {{"M", 9}}}});
  cases.push_back({"SeveralNests",
                   {"N", "M", "L"},
                   [](K &b) {
                     Value x = b.input("x", {"N", "M"}), y = b.input("y", {"L", "M"});
                     b.output(weights(b, x));
                     b.output(logSum(b, y));
                     b.output(b.inner(weights(b, x), b.transpose(y, {1, 0})));
                     b.output(b.reduce(Monoid::max, b.reduce(Monoid::add, x)));
                   },
                   {{{"N", 2}, {"M", 3}, {"L", 4}}, {{"N", 1}, {"M", 0}, {"L", 2}}, {{"N", 0}, {"M", 3}, {"L", 1}}}});
  cases.push_back({"CarriedAxesOfTwoLengths",
                   {"N", "M"},
                   [](K &b) {
                     Value x = b.input("x", {"N", "M"});
                     Value w = weights(b, x);
                     b.output(b.inner(w, b.input("v", {"M", "4"})));
                     b.output(b.inner(w, b.input("u", {"M", "3"})));
                     b.output(b.inner(w, b.input("t", {"M", "4"})));
                   },
                   kRows});
}

std::vector<Case> cascadeCases() {
  std::vector<Case> cases;
  addWeighted(cases);
  addStatistics(cases);
  return cases;
}

} // namespace moa::test
