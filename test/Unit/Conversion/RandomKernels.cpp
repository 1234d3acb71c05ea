//===- RandomKernels.cpp - kernels of random operators --------------------===//
#include "RandomKernels.h"
#include <cstdlib>
#include <random>

using namespace moa;
using namespace moa::test;
using Fn = ScalarFn;
using K = KernelBuilder;

namespace {

/// A value whose axes are a subset of the three axes, in increasing order.
struct Term {
  Value value;
  std::vector<int64_t> axes;
};

class Generator {
public:
  explicit Generator(unsigned seed) : engine(seed), b({"N", "M"}) {
    floats.push_back({b.input("x", {"N", "M"}), {0, 1}});
    floats.push_back({b.input("y", {"M", "3"}), {1, 2}});
    floats.push_back({b.input("z", {"N"}), {0}});
    floats.push_back({b.input("s", {}), {}});
    booleans.push_back({b.input("p", {"N", "M"}, "i1"), {0, 1}});
    booleans.push_back({b.input("q", {"M"}, "i1"), {1}});
    booleans.push_back({b.map(Fn::le, {b.iota("M"), b.iota("N")}, {{1}, {0}}), {0, 1}});
    gathers[0] = b.cast(b.input("t", {"N"}, "i64", "3"), "index", true);
    gathers[1] = b.cast(b.input("u", {"M"}, "i64", "3"), "index", true);
    // The value farther from zero; of two as far, the larger one.
    farther = b.monoid("farther", 0, "f64", [&](Value x, Value y) {
      Value u = b.map(Fn::abs, {x}), v = b.map(Fn::abs, {y});
      Value other = b.map(Fn::select, {b.map(Fn::lt, {u, v}), y, x});
      return b.map(Fn::select, {b.map(Fn::eq, {u, v}), b.map(Fn::max, {x, y}), other});
    });
    unsigned steps = 6 + pick(7);
    for (unsigned k = 0; k < steps; ++k)
      step();
    unsigned outputs = 1 + pick(3);
    for (unsigned k = 0; k < outputs; ++k)
      b.output(floats[floats.size() - 1 - k].value);
  }
  mlir::OwningOpRef<mlir::ModuleOp> finish() { return b.finish(); }
  const std::vector<Input> &getInputs() const { return b.getInputs(); }

private:
  unsigned pick(unsigned n) { return std::uniform_int_distribution<unsigned>(0, n - 1)(engine); }
  /// Later terms are likelier, so that operators build on each other.
  Term any() {
    unsigned n = floats.size();
    return floats[std::max(pick(n), pick(n))];
  }
  Term predicate() { return booleans[pick(booleans.size())]; }

  Term join(Fn fn, std::vector<Term> terms) {
    std::vector<int64_t> all;
    for (int64_t axis : {0, 1, 2})
      for (const Term &term : terms)
        if (llvm::is_contained(term.axes, axis) && !llvm::is_contained(all, axis))
          all.push_back(axis);
    Axes places;
    std::vector<Value> operands;
    for (const Term &term : terms) {
      operands.push_back(term.value);
      places.emplace_back();
      for (int64_t axis : term.axes)
        places.back().push_back(llvm::find(all, axis) - all.begin());
    }
    return {b.map(fn, operands, places), all};
  }
  Term number(double value) { return {b.constant(value), {}}; }
  Term reduce(Monoid monoid, const Term &x, unsigned position) {
    std::vector<int64_t> rest = x.axes;
    rest.erase(rest.begin() + position);
    return {b.reduce(monoid, x.value, position), rest};
  }
  Term withAxis() {
    for (unsigned k = 0; k < 8; ++k)
      if (Term x = any(); !x.axes.empty())
        return x;
    return floats[0];
  }
  Monoid monoid() {
    static const Monoid all[] = {Monoid::add, Monoid::add, Monoid::add, Monoid::max, Monoid::min, Monoid::mul};
    return all[pick(6)];
  }

  /// A cascade: terms scaled by a reduction of their own range.
  Term cascade(Term x, unsigned position) {
    switch (pick(5)) {
    case 0: {
      Term d = join(Fn::sub, {x, reduce(Monoid::max, x, position)});
      return join(pick(2) ? Fn::exp : Fn::exp2, {d});
    }
    case 1: {
      Term d = join(Fn::sub, {reduce(Monoid::min, x, position), x});
      return join(Fn::exp, {d});
    }
    case 2: {
      Term q = join(Fn::div, {x, reduce(Monoid::max, join(Fn::abs, {x}), position)});
      return pick(2) ? q : join(Fn::mul, {q, q});
    }
    case 3: {
      Term e = join(Fn::exp, {x});
      return join(Fn::div, {e, reduce(Monoid::add, e, position)});
    }
    default:
      return join(Fn::sub, {x, reduce(Monoid::add, x, position)});
    }
  }

  void add(Term term) {
    // Magnitudes stay near one.
    if (pick(4) == 0)
      term = join(Fn::tanh, {term});
    floats.push_back(term);
  }

  /// A selection along the static axis by an array of indices: on an axis of
  /// its own, or together with that axis of the operand.
  void gather() {
    Term x = any();
    if (x.axes.empty() || x.axes.back() != 2)
      return;
    int64_t axis = pick(2), last = x.axes.size() - 1;
    std::vector<int64_t> rest(x.axes.begin(), x.axes.end() - 1);
    std::string extent = axis ? "M" : "N";
    auto found = llvm::find(rest, axis);
    if (found != rest.end()) {
      int64_t at = found - rest.begin();
      x.value = b.psi(x.value, {b.iota(extent), gathers[axis]}, {at, last}, {{0}, {0}}, {extent});
      rest.erase(found);
    } else {
      x.value = b.psi(x.value, {gathers[axis]}, {last}, {{0}}, {extent});
    }
    rest.insert(rest.begin(), axis);
    if (rest.size() == 2 && rest[0] > rest[1]) {
      x.value = b.transpose(x.value, {1, 0});
      std::swap(rest[0], rest[1]);
    }
    add({x.value, rest});
  }

  void inner() {
    Term x = withAxis(), y = withAxis();
    if (x.axes.back() != y.axes.front())
      return;
    std::vector<int64_t> axes(x.axes.begin(), x.axes.end() - 1);
    for (int64_t axis : llvm::drop_begin(y.axes)) {
      if (llvm::is_contained(axes, axis))
        return;
      axes.push_back(axis);
    }
    if (llvm::is_sorted(axes))
      add({b.inner(x.value, y.value), axes});
  }

  /// Numbers made of predicates and of indices.
  void count() {
    Term p = predicate();
    if (pick(3) == 0) {
      Value i = b.iota(pick(2) ? "3" : "M");
      int64_t axis = K::typeOf(i).getExtent(0) == SymExpr(3) ? 2 : 1;
      return floats.push_back({b.map(Fn::mul, {b.cast(i, "f64", true), b.constant(0.25)}), {axis}});
    }
    if (pick(2)) {
      unsigned position = pick(p.axes.size() ? p.axes.size() : 1);
      if (!p.axes.empty())
        booleans.push_back(reduce(pick(2) ? Monoid::and_ : Monoid::or_, p, position));
      return;
    }
    floats.push_back({b.cast(p.value, "f64", true), p.axes});
  }

  /// A reduction with the monoid of the user.
  void reduceByUser() {
    Term x = withAxis();
    unsigned position = pick(x.axes.size());
    std::vector<int64_t> rest = x.axes;
    rest.erase(rest.begin() + position);
    add({b.reduce(farther, x.value, position), rest});
  }

  /// Two arrays on the same axes one behind the other: a reduction of both, or the last
  /// elements of the two.
  void cat() {
    Term x = withAxis();
    std::vector<Term> alike;
    for (const Term &term : floats)
      if (term.axes == x.axes)
        alike.push_back(term);
    Term y = alike[pick(alike.size())];
    unsigned position = pick(x.axes.size());
    std::string extent = K::typeOf(x.value).getExtent(position).str();
    Term both = {b.cat(x.value, y.value, position), x.axes};
    if (pick(2))
      return add(reduce(monoid(), both, position));
    std::string half = "(" + extent + ")/2";
    both.value = b.slice(both.value, position, half, extent);
    add(both);
  }

  void step() {
    switch (pick(17)) {
    case 15:
      return cat();
    case 16:
      return reduceByUser();
    case 12:
      return gather();
    case 13:
      return inner();
    case 14:
      return count();
    case 0: {
      static const Fn fns[] = {Fn::add, Fn::sub, Fn::mul, Fn::max, Fn::min};
      return add(join(fns[pick(5)], {any(), any()}));
    }
    case 1: {
      Term below = join(Fn::add, {join(Fn::abs, {any()}), number(0.5)});
      return add(join(Fn::div, {any(), below}));
    }
    case 2: {
      static const Fn fns[] = {Fn::neg, Fn::abs, Fn::tanh, Fn::sin};
      return add(join(fns[pick(4)], {any()}));
    }
    case 3: {
      Term x = withAxis();
      return add(reduce(monoid(), x, pick(x.axes.size())));
    }
    case 4:
    case 5: {
      Term x = withAxis();
      return add(cascade(x, pick(x.axes.size())));
    }
    case 6: {
      // A product contracted over one axis.
      Term x = withAxis(), y = any();
      Term product = join(Fn::mul, {x, y});
      return add(reduce(Monoid::add, product, pick(product.axes.size())));
    }
    case 7:
      return add(join(Fn::select, {predicate(), any(), pick(2) ? any() : number(0)}));
    case 8:
    case 9: {
      Term p = predicate(), x = any();
      for (int64_t axis : p.axes)
        if (!llvm::is_contained(x.axes, axis))
          return;
      std::vector<int64_t> places;
      for (int64_t axis : p.axes)
        places.push_back(llvm::find(x.axes, axis) - x.axes.begin());
      return add({b.mask(p.value, x.value, places), x.axes});
    }
    case 10: {
      Term p = join(pick(2) ? Fn::lt : Fn::ge, {any(), any()});
      booleans.push_back(pick(2) ? join(Fn::and_, {p, predicate()}) : p);
      return;
    }
    default: {
      Term x = withAxis();
      int64_t position = pick(x.axes.size());
      x.value = pick(2) ? b.reverse(x.value, position) : b.rotate(x.value, "N + 1", position);
      return add(x);
    }
    }
  }

  std::mt19937 engine;
  KernelBuilder b;
  std::vector<Term> floats, booleans;
  Value gathers[2];
  std::string farther;
};

} // namespace

RandomKernel moa::test::makeRandomKernel(unsigned seed) {
  Generator generator(seed);
  return {generator.finish(), generator.getInputs()};
}

unsigned moa::test::getVariable(const char *name, unsigned otherwise) {
  const char *text = std::getenv(name);
  return text ? std::strtoul(text, nullptr, 10) : otherwise;
}
