//===- FoldRuleCases.cpp - R0 to R6, docs/Spec.md, section 6 --------------===//
//
// The right sides of R0, R1, R4, R5 and R6 are arrays; those of R2 and R3, which say
// how a fold runs, are folds, written as text. All elements are whole numbers
// and all factors powers of two, so that no side rounds.
//
//===----------------------------------------------------------------------===//
#include "Laws.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

namespace moa::test {

using Fn = ScalarFn;

namespace {

/// An array with a reduced axis; `rows` are the others.
struct Rows {
  explicit Rows(Random &random) : shape(random.shape(1, 4)), axis(random.below(shape.size())) {
    for (size_t k = 0; k < shape.size(); ++k) {
      all.push_back(k);
      if (static_cast<int64_t>(k) != axis) {
        places.push_back(k);
        rows.push_back(shape[k]);
      }
    }
    // A constant range is a fold like any other, but one that is empty
    // disappears.
    if (shape[axis] == "0")
      shape[axis] = "P1";
  }
  /// f(x, y) where y has the rows' axes alone.
  Value byRow(KernelBuilder &b, Fn fn, Value x, Value y) const { return b.map(fn, {x, y}, {all, places}); }
  Shape shape, rows;
  int64_t axis;
  Numbers all, places;
};

/// R0: Σ (F₁ ± F₂) = Σ F₁ ± Σ F₂, here of terms that each read a result over
/// the range.
Equation linearity(Random &random) {
  Rows rows(random);
  Fn fn = random.pick<Fn>({Fn::add, Fn::sub});
  ByArrays s({{"x", rows.shape}, {"y", rows.shape}});
  auto part = [&](KernelBuilder &b, Value x, Monoid monoid) {
    return rows.byRow(b, Fn::mul, x, b.reduce(monoid, x, rows.axis));
  };
  KernelBuilder &l = s.left, &r = s.right;
  l.output(l.reduce(Monoid::add, l.map(fn, {part(l, s.l[0], Monoid::max), part(l, s.l[1], Monoid::min)}), rows.axis));
  r.output(r.map(fn, {r.reduce(Monoid::add, part(r, s.r[0], Monoid::max), rows.axis),
                      r.reduce(Monoid::add, part(r, s.r[1], Monoid::min), rows.axis)}));
  return s.finish();
}

/// R1: max (σ × F) = σ × max F for σ ≥ 0, max (F − σ) = max F − σ, max (σ − F) =
/// σ − min F, and the same of minima, where σ reads a result over the range; over
/// nothing the result is the identity whatever σ is.
Equation extremeOfFactor(Random &random) {
  Rows rows(random);
  Monoid monoid = random.pick<Monoid>({Monoid::max, Monoid::min});
  unsigned kind = random.below(3);
  Monoid other = kind != 2 ? monoid : monoid == Monoid::max ? Monoid::min : Monoid::max;
  Fn fn = kind == 0 ? Fn::mul : Fn::sub;
  ByArrays s({{"f", rows.shape}});
  auto sigma = [&](KernelBuilder &b, Value x) {
    return b.reduce(Monoid::add, kind == 0 ? b.map(Fn::abs, {x}) : x, rows.axis);
  };
  KernelBuilder &l = s.left, &r = s.right;
  Value part = sigma(l, s.l[0]);
  Value terms = kind == 2 ? l.map(fn, {part, s.l[0]}, {rows.places, rows.all}) : rows.byRow(l, fn, s.l[0], part);
  l.output(l.reduce(monoid, terms, rows.axis));

  Numbers axes;
  for (size_t k = 0; k < rows.rows.size(); ++k)
    axes.push_back(k);
  Value extreme = r.reduce(other, s.r[0], rows.axis), right = sigma(r, s.r[0]);
  Value value = kind == 2 ? r.map(fn, {right, extreme}) : r.map(fn, {extreme, right});
  Value any = r.reduce(Monoid::or_, r.map(Fn::eq, {s.r[0], s.r[0]}), rows.axis);
  Value identity = r.constant(monoid == Monoid::max ? -kInf : kInf);
  r.output(r.map(Fn::select, {any, value, identity}, {axes, axes, {}}));
  Equation equation = s.finish();
  equation.equality = Equality::Values; // σ × −0
  return equation;
}

/// R1: Σ (σ × F) = σ × Σ F, Σ (F / σ) = (Σ F) / σ, σ free of the reduced index;
/// over nothing the result is 0 whatever σ is. The range may have a condition.
Equation factor(Random &random) {
  if (random.below(3) == 0)
    return extremeOfFactor(random);
  Rows rows(random);
  bool divides = random.below(2), masked = random.below(2);
  Fn fn = divides ? Fn::div : Fn::mul;
  ByArrays s({{"f", rows.shape}, {"s", rows.rows}, {"p", rows.shape, "i1"}});
  auto sigma = [&](KernelBuilder &b, Value x) { return divides ? b.map(Fn::exp2, {x}) : x; };
  auto terms = [&](KernelBuilder &b, const Values &v) { return masked ? b.mask(v[2], v[0], rows.all) : v[0]; };
  KernelBuilder &l = s.left, &r = s.right;
  l.output(l.reduce(Monoid::add, rows.byRow(l, fn, terms(l, s.l), sigma(l, s.l[1])), rows.axis));
  Value sum = r.reduce(Monoid::add, terms(r, s.r), rows.axis);
  // How many terms there are.
  Value one = r.map(Fn::eq, {s.r[0], s.r[0]});
  Value any = r.reduce(Monoid::or_, masked ? r.mask(s.r[2], one, rows.all) : one, rows.axis);
  Numbers axes;
  for (size_t k = 0; k < rows.rows.size(); ++k)
    axes.push_back(k);
  Value value = r.map(fn, {sum, sigma(r, s.r[1])});
  r.output(r.map(Fn::select, {any, value, r.constant(0)}, {axes, axes, {}}));
  Equation equation = s.finish();
  // A negative σ makes −0 of a sum that is 0.
  equation.equality = Equality::Values;
  // σ of rows without terms may be anything.
  if (!divides && !masked)
    equation.adjust = [](KernelInputs &inputs) {
      if (inputs.arrays[0].data.empty() && !inputs.arrays[1].data.empty())
        inputs.arrays[1].data[0] = kInf;
    };
  return equation;
}

/// "item(0), item(1), …"
template <typename Item> std::string list(size_t n, Item item) {
  std::string text;
  for (size_t k = 0; k < n; ++k)
    text += (k ? ", " : "") + item(k);
  return text;
}

auto numbered(std::string prefix) {
  return [prefix](size_t k) { return prefix + std::to_string(k); };
}

std::string quoted(const std::string &text) { return "\"" + text + "\""; }

std::string quoted(const Shape &extents) {
  return list(extents.size(), [&](size_t k) { return quoted(SymExpr::parse(extents[k])->str()); });
}

/// The text of an onf.kernel with one nest over the rows and one fold.
class FoldText {
public:
  FoldText(const Rows &rows, std::vector<std::string> inputs, size_t results)
      : rows(rows), inputs(std::move(inputs)), results(results), whole("!moa.array<[" + quoted(rows.shape) + "], f64>"),
        row("!moa.array<[" + quoted(rows.rows) + "], f64>") {}

  /// With `body` in the fold, where %e0, %e1, … are the elements of the inputs
  /// and %t0, %t1, … the states, which are the outputs.
  std::string with(const std::string &body) const {
    auto f64 = [](size_t) { return std::string("f64"); };
    size_t n = rows.rows.size();
    std::string text = header() + "onf.for [" + list(n, [](size_t k) { return quoted("i" + std::to_string(k)); }) +
                       "] in [" + quoted(rows.rows) + "] {\n";
    if (n)
      text += "^bb0(" + list(n, [](size_t k) { return "%i" + std::to_string(k) + ": index"; }) + "):\n";
    text += "%s:" + std::to_string(results) + " = onf.fold \"j\" in " + quoted(Shape{rows.shape[rows.axis]}) + " : " +
            list(results, f64) + " {\n^bb0(%j: index):\n" + loads() + body + "onf.yield " +
            list(results, numbered("%t")) + " : " + list(results, f64) + "\n}\n";
    for (size_t k = 0; k < results; ++k)
      text += "onf.store %s#" + std::to_string(k) + ", %o" + std::to_string(k) + "[" + list(n, numbered("%i")) +
              "] : f64, " + row + "\n";
    return text + "}\n}\n";
  }

private:
  std::string header() const {
    std::string text = "onf.kernel @k attributes {symbols = [" +
                       list(lawSymbols().size(), [](size_t k) { return quoted(lawSymbols()[k]); }) +
                       "], requires = [], arg_names = [" +
                       list(inputs.size(), [&](size_t k) { return quoted(inputs[k]); });
    text += "], result_names = [" + list(results, [](size_t k) { return quoted("out" + std::to_string(k)); });
    text += "], result_types = [" + list(results, [&](size_t) { return row; }) + "]} {\n^bb0(";
    text += list(inputs.size(), [&](size_t k) { return "%" + inputs[k] + ": " + whole; }) + ", ";
    return text + list(results, [&](size_t k) { return "%o" + std::to_string(k) + ": " + row; }) + "):\n";
  }
  std::string loads() const {
    std::string text;
    for (size_t k = 0; k < inputs.size(); ++k) {
      size_t next = 0;
      std::string index = list(rows.shape.size(), [&](size_t axis) {
        bool reduced = static_cast<int64_t>(axis) == rows.axis;
        return reduced ? std::string("%j") : "%i" + std::to_string(next++);
      });
      text += "%e" + std::to_string(k) + " = onf.load %" + inputs[k] + "[" + index + "] : " + whole + " -> f64\n";
    }
    return text;
  }

  const Rows &rows;
  std::vector<std::string> inputs;
  size_t results;
  std::string whole, row;
};

Equation withFold(KernelBuilder left, const std::string &text) {
  Equation equation;
  equation.inputs = left.getInputs();
  equation.left = left.finish();
  equation.right = mlir::parseSourceString<mlir::ModuleOp>(text, &getContext());
  EXPECT_TRUE(equation.right) << text;
  return equation;
}

KernelBuilder makeLeft(const Rows &rows, Values &inputs) {
  KernelBuilder left(lawSymbols());
  for (const char *name : {"x", "y"}) {
    inputs.push_back(left.input(name, rows.shape));
    left.wholeRange(-4, 4);
  }
  return left;
}

std::string plainAcc(const std::string &result, const std::string &monoid, const std::string &term) {
  return result + " = onf.acc " + monoid + " \"" + result.substr(1) +
         "\" carries [] in [] refs() mul [] : () -> f64 {\nonf.yield " + term + " : f64\n} repair {\n}\n";
}

/// R2: ⊕ F and ⊛ G over one range are one reduction of a pair.
Equation pairing(Random &random) {
  Rows rows(random);
  static const std::vector<Monoid> kMonoids = {Monoid::add, Monoid::mul, Monoid::max, Monoid::min};
  Monoid first = random.pick(kMonoids), second = random.pick(kMonoids);
  Values inputs;
  KernelBuilder left = makeLeft(rows, inputs);
  left.output(left.reduce(first, inputs[0], rows.axis));
  left.output(left.reduce(second, inputs[1], rows.axis));
  std::string body =
      plainAcc("%t0", stringifyMonoid(first).str(), "%e0") + plainAcc("%t1", stringifyMonoid(second).str(), "%e1");
  return withFold(std::move(left), FoldText(rows, {"x", "y"}, 2).with(body));
}

/// t ← t·2^±(d − d′) + y·2^±(x − d′); the identity while d is one.
std::string scaledAcc(bool isMax) {
  return std::string("%distance = arith.subf ") + (isMax ? "%e0, %t0" : "%t0, %e0") + R"( : f64
    %w = math.exp2 %distance : f64
    %term = arith.mulf %w, %e1 : f64
    %t1 = onf.acc add "t1" carries [] in [] refs(%t0) mul [)" +
         (isMax ? "0xFFF0000000000000" : "0x7FF0000000000000") +
         R"( : f64] : (f64) -> f64 {
      onf.yield %term : f64
    } repair {
    ^bb0(%old: f64, %new: f64):
      %step = arith.subf )" +
         (isMax ? "%old, %new" : "%new, %old") + R"( : f64
      %c = math.exp2 %step : f64
      onf.yield %c : f64
    }
)";
}

/// t ← (d = d′ ? t : 0) + (x = d′ ? y : 0)
std::string attainedAcc() {
  return R"(%zero = arith.constant 0.0 : f64
    %top = arith.cmpf oeq, %e0, %t0 : f64
    %term = arith.select %top, %e1, %zero : f64
    %t1 = onf.acc add "t1" carries [] in [] refs(%t0)
        select [0x7FF8000000000000 : f64] : (f64) -> f64 {
      onf.yield %term : f64
    } repair {
    ^bb0(%old: f64, %new: f64):
      %same = arith.cmpf oeq, %old, %new : f64
      onf.yield %same : i1
    }
)";
}

/// R3: d = ⊛ f(x), t = ⊕ F(x, d) is d′ = d ⊛ f(x), t′ = c(d, d′)(t) ⊕ F(x, d′).
/// Here d is an extreme, and F is y·2^±(x − d), or y where x = d.
Equation repair(Random &random) {
  Rows rows(random);
  bool isMax = random.below(2), attained = random.below(2);
  Values v;
  KernelBuilder left = makeLeft(rows, v);
  Value d = left.reduce(isMax ? Monoid::max : Monoid::min, v[0], rows.axis), term;
  if (attained) {
    Value top = rows.byRow(left, Fn::eq, v[0], d);
    term = left.map(Fn::select, {top, v[1], left.constant(0)}, {rows.all, rows.all, {}});
  } else {
    Value distance = rows.byRow(left, Fn::sub, v[0], d);
    if (!isMax)
      distance = left.map(Fn::neg, {distance});
    term = left.map(Fn::mul, {left.map(Fn::exp2, {distance}), v[1]});
  }
  left.output(d);
  left.output(left.reduce(Monoid::add, term, rows.axis));

  std::string body = plainAcc("%t0", isMax ? "max" : "min", "%e0") + (attained ? attainedAcc() : scaledAcc(isMax));
  return withFold(std::move(left), FoldText(rows, {"x", "y"}, 2).with(body));
}

/// Rows by depth, depth by keys, keys by columns.
std::vector<Parameter> chainShapes(Random &random) {
  std::string rows = random.pick<std::string>({"N0", "P1"}), keys = random.pick<std::string>({"N1", "N0", "P0"});
  std::string depth = random.pick<std::string>({"1", "2", "3", "5"});
  std::string columns = random.pick<std::string>({"1", "2", "4"});
  return {{"a", {rows, depth}}, {"b", {depth, keys}}, {"c", {keys, columns}}};
}

/// The product of three matrices from input `first` on: a·(b·c) on the left, (a·b)·c on the right.
void addChain(ByArrays &s, unsigned first) {
  auto product = [](KernelBuilder &k, Value x, Value y) {
    return k.reduce(Monoid::add, k.map(Fn::mul, {x, y}, {{0, 1}, {1, 2}}), 1);
  };
  s.left.output(product(s.left, s.l[first], product(s.left, s.l[first + 1], s.l[first + 2])));
  s.right.output(product(s.right, product(s.right, s.r[first], s.r[first + 1]), s.r[first + 2]));
}

/// A negative factor makes −0 of a sum that is 0.
Equation withZeros(Equation equation) {
  equation.equality = Equality::Values;
  return equation;
}

/// R4: ⊕ over a range is ⊕ of ⊕ over its parts, here of two parts one behind the other, and of a
/// stored sum over parts that the rule makes.
Equation splitting(Random &random) {
  Rows rows(random);
  Shape first = rows.shape, second = rows.shape;
  second[rows.axis] = random.pick<std::string>({"0", "1", "N1", "P1"});
  Monoid monoid = random.pick<Monoid>({Monoid::add, Monoid::mul, Monoid::max, Monoid::min});
  std::vector<Parameter> inputs = chainShapes(random);
  inputs.insert(inputs.begin(), {Parameter{"x", first}, Parameter{"y", second}});
  ByArrays s(inputs);
  s.left.output(s.left.reduce(monoid, s.left.cat(s.l[0], s.l[1], rows.axis), rows.axis));
  Fn combine = monoid == Monoid::add   ? Fn::add
               : monoid == Monoid::mul ? Fn::mul
               : monoid == Monoid::max ? Fn::max
                                       : Fn::min;
  s.right.output(
      s.right.map(combine, {s.right.reduce(monoid, s.r[0], rows.axis), s.right.reduce(monoid, s.r[1], rows.axis)}));
  addChain(s, 2);
  return withZeros(s.finish());
}

/// R5: Σₖ Aₖ·(Σ_d B_d·C_kd) = Σ_d B_d·(Σₖ Aₖ·C_kd), beside the sums over k of every d.
Equation exchange(Random &random) {
  std::string rows = random.pick<std::string>({"N0", "P1", "1"});
  std::string keys = random.pick<std::string>({"N1", "N0", "P0"});
  std::string depth = random.pick<std::string>({"1", "2", "3", "5"});
  ByArrays s({{"a", {rows, keys}}, {"b", {rows, depth}}, {"c", {keys, depth}}});
  auto carried = [&](KernelBuilder &k, const Values &v) {
    return k.reduce(Monoid::add, k.map(Fn::mul, {v[0], v[2]}, {{0, 1}, {1, 2}}), 1);
  };
  KernelBuilder &l = s.left, &r = s.right;
  l.output(carried(l, s.l));
  Value inner = l.reduce(Monoid::add, l.map(Fn::mul, {s.l[1], s.l[2]}, {{0, 2}, {1, 2}}), 2);
  l.output(l.reduce(Monoid::add, l.map(Fn::mul, {s.l[0], inner}), 1));
  Value sums = carried(r, s.r);
  r.output(sums);
  r.output(r.reduce(Monoid::add, r.map(Fn::mul, {s.r[1], sums}), 1));
  Equation equation = s.finish();
  // A negative B makes −0 of a sum that is 0.
  equation.equality = Equality::Values;
  return equation;
}

/// R7, as association needs it: Σₑ Aₑ·(Σⱼ Bₑⱼ·Cⱼ), whose inner sum rows share, = Σⱼ (Σₑ Aₑ·Bₑⱼ)·Cⱼ.
Equation association(Random &random) {
  ByArrays s(chainShapes(random));
  addChain(s, 0);
  return withZeros(s.finish());
}

/// R6: Σⱼ F(xⱼ, d) = Σᵣ Hᵣ(d) · Σⱼ Gᵣ(xⱼ), here with d = Σ x:
/// Σ (x − d)·y = Σ x·y − d·Σ y and Σ (x − d)² = Σ x² − 2d·Σ x + n·d².
Equation separation(Random &random) {
  Rows rows(random);
  bool square = random.below(2);
  ByArrays s({{"x", rows.shape}, {"y", rows.shape}});
  auto sum = [&](KernelBuilder &b, Value x) { return b.reduce(Monoid::add, x, rows.axis); };
  KernelBuilder &l = s.left, &r = s.right;
  Value distance = rows.byRow(l, Fn::sub, s.l[0], sum(l, s.l[0]));
  l.output(sum(l, l.map(Fn::mul, {distance, square ? distance : s.l[1]})));

  Value x = s.r[0], y = s.r[1], d = sum(r, x);
  auto scale = [&](double c, Value v) {
    Numbers axes;
    for (size_t k = 0; k < rows.rows.size(); ++k)
      axes.push_back(k);
    return r.map(Fn::mul, {r.constant(c), v}, {{}, axes});
  };
  if (square) {
    Value n = r.cast(r.extent(rows.shape[rows.axis]), "f64", true);
    Numbers axes;
    for (size_t k = 0; k < rows.rows.size(); ++k)
      axes.push_back(k);
    Value last = r.map(Fn::mul, {n, r.map(Fn::mul, {d, d})}, {{}, axes});
    Value middle = scale(2, r.map(Fn::mul, {d, d}));
    r.output(r.map(Fn::add, {r.map(Fn::sub, {sum(r, r.map(Fn::mul, {x, x})), middle}), last}));
  } else {
    r.output(r.map(Fn::sub, {sum(r, r.map(Fn::mul, {x, y})), r.map(Fn::mul, {d, sum(r, y)})}));
  }
  return s.finish();
}

} // namespace

std::vector<Law> foldRules() {
  return {{"R0", "R0", linearity},         {"R1", "R1", factor},
          {"R2", "R2", pairing},           {"R3", "R3", repair, {"R2"}},
          {"R4", "R4", splitting, {"R7"}}, {"R5", "R5", exchange, {"R2"}},
          {"R6", "R6", separation},        {"R7", "R7", association}};
}

} // namespace moa::test
