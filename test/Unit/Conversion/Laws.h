//===- Laws.h - the laws of docs/Spec.md, both sides written down -*- C++
//-*-===//
//
// A law is an equation between two kernels over the same parameters. Its left
// side is written with operators of moa; its right side says what docs/Spec.md
// puts in their place, index by index in dnf, or in moa or onf where the law is
// stated there. No side is made from the other.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_TEST_UNIT_CONVERSION_LAWS_H
#define MOA_TEST_UNIT_CONVERSION_LAWS_H

#include "KernelBuilder.h"
#include <functional>
#include <ostream>
#include <random>

namespace moa::test {

/// Extents as expressions over the symbols.
using Shape = std::vector<std::string>;
using Numbers = std::vector<int64_t>;
using Values = std::vector<Value>;

/// What equations are drawn from.
class Random {
public:
  explicit Random(unsigned seed) : engine(seed) {}
  int64_t below(int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(engine); }
  template <typename T> T pick(const std::vector<T> &list) { return list[below(list.size())]; }
  /// Between `least` and `most` extents: symbols, or one of 0, 1, 2, 3 and 5.
  Shape shape(int64_t least, int64_t most);
  Numbers permutation(int64_t n);
  /// Some of 0 … n−1 in increasing order.
  Numbers subset(int64_t n);
  unsigned seed() { return engine(); }

private:
  std::mt19937 engine;
};

/// The symbols that extents are drawn from.
const std::vector<std::string> &lawSymbols();
std::string times(const Shape &extents);

/// A parameter of both sides: f64 elements are whole numbers in −4 … 4.
struct Parameter {
  std::string name;
  Shape shape;
  std::string type = "f64";
  /// Integers lie in 0 ≤ i < bound.
  std::string bound = "8";
  /// Reals in −2 … 2 instead, where an equation holds up to rounding alone.
  bool real = false;
};

/// A scalar that is absent unless `present` holds, if it is given.
struct Term {
  Term(Value value, Value present = Value()) : value(value), present(present) {}
  Value value, present;
};

/// Builds a dnf.kernel, definition by definition.
class DefinitionBuilder {
public:
  using Element = llvm::function_ref<Term(const Values &)>;

  DefinitionBuilder();
  Value input(const Parameter &parameter);
  /// The element of the next output at an index.
  void output(const Shape &extents, Element element);
  /// A let; apply() is its value at an index.
  void let(llvm::StringRef name, const Shape &extents, Element element);
  Value apply(llvm::StringRef let, const Values &index, llvm::StringRef type = "f64");

  Value psi(Value array, const Values &index);
  Value reduce(Monoid monoid, llvm::StringRef extent, llvm::function_ref<Term(Value)> term,
               llvm::StringRef function = "");
  void monoid(llvm::StringRef name, int64_t identity, llvm::function_ref<Value(Value, Value)> combine);
  Value number(double value, llvm::StringRef type = "f64");
  Value index(int64_t value);
  Value extent(llvm::StringRef expr);
  /// One of the operations of arith and math.
  Value op(ScalarFn fn, const Values &operands);
  Value cast(Value x, llvm::StringRef type, bool round = false);
  Value both(Value p, Value q);
  /// γ(i; s) and γ′(k; s).
  Value ravel(const Values &index, const Shape &shape);
  Values unravel(Value position, const Shape &shape);
  mlir::OwningOpRef<mlir::ModuleOp> finish();

private:
  mlir::Block *body(const Shape &extents, Element element, mlir::Type &type);
  template <typename Op> Op create(const Values &operands);
  mlir::ArrayAttr exprs(const Shape &extents);
  static std::string indexName(llvm::StringRef extent);

  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::OpBuilder b;
  mlir::Location loc;
  dnf::KernelOp kernel;
  std::vector<std::string> argNames;
  mlir::SmallVector<mlir::Attribute> resultTypes;
};

/// In which sense the sides are equal.
enum class Equality {
  Bits,   // NaN in every form is one
  Values, // up to the sign of zeros
  Close   // to a relative error of 1e-12: the law holds in real arithmetic
};

/// One instance of a law: two kernels and what their arguments are drawn from.
struct Equation {
  mlir::OwningOpRef<mlir::ModuleOp> left, right;
  /// What the left side becomes where no other law applies than those it needs;
  /// where null, the right side.
  mlir::OwningOpRef<mlir::ModuleOp> normal;
  std::vector<Input> inputs;
  /// The symbols are at least this.
  int64_t least = 0;
  /// Changes the arguments: special values.
  std::function<void(KernelInputs &)> adjust;
  Equality equality = Equality::Bits;
};

/// A left side in moa and a right side in moa or dnf.
template <typename Right> struct Sides {
  explicit Sides(const std::vector<Parameter> &parameters) : left(lawSymbols()) {
    for (const Parameter &parameter : parameters) {
      l.push_back(left.input(parameter.name, parameter.shape, parameter.type, parameter.bound));
      if (parameter.real)
        left.range(-2, 2);
      else
        left.wholeRange(-4, 4);
      r.push_back(declare(right, parameter));
    }
  }
  Equation finish() {
    Equation equation;
    equation.inputs = left.getInputs();
    equation.left = left.finish();
    equation.right = right.finish();
    return equation;
  }
  KernelBuilder left;
  Right right = make();
  Values l, r;

private:
  static Right make() {
    if constexpr (std::is_same_v<Right, KernelBuilder>)
      return KernelBuilder(lawSymbols());
    else
      return Right();
  }
  static Value declare(DefinitionBuilder &b, const Parameter &p) { return b.input(p); }
  static Value declare(KernelBuilder &b, const Parameter &p) { return b.input(p.name, p.shape, p.type, p.bound); }
};
using ByIndex = Sides<DefinitionBuilder>;
using ByArrays = Sides<KernelBuilder>;

struct Law {
  /// The number in docs/Spec.md: "P10", "Lemma 3".
  std::string number;
  /// The name of the passes' option `disable`; none of a lemma, which is no
  /// rewrite.
  std::string name;
  std::function<Equation(Random &)> make;
  /// Laws that the left side needs besides this one.
  std::vector<std::string> with = {};
};
inline void PrintTo(const Law &law, std::ostream *os) { *os << law.number; }

std::vector<Law> psiLaws();
std::vector<Law> absenceLaws();
std::vector<Law> foldRules();
std::vector<Law> lemmas();

} // namespace moa::test

#endif // MOA_TEST_UNIT_CONVERSION_LAWS_H
