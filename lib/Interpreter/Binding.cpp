//===- Binding.cpp - symbols from shapes, and the checks of a call --------===//
#include "dialects/DNF/IR/DNF.h"
#include "dialects/Device/IR/Device.h"
#include "dialects/MoA/IR/Unsigned.h"
#include "dialects/ONF/IR/ONF.h"
#include "lib/Interpreter/Kernel.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>

using namespace mlir;
using namespace moa;
using namespace moa::interp;
using llvm::Error;
using llvm::Expected;

//===----------------------------------------------------------------------===//
// Kernels and texts
//===----------------------------------------------------------------------===//

Error moa::interp::makeError(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

std::string moa::interp::locationText(Location loc) {
  std::string text;
  loc->walk([&](Location inner) {
    auto file = dyn_cast<FileLineColLoc>(inner);
    if (!file)
      return WalkResult::advance();
    text =
        file.getFilename().str() + ":" + std::to_string(file.getLine()) + ":" + std::to_string(file.getColumn()) + ": ";
    return WalkResult::interrupt();
  });
  return text;
}

int64_t moa::interp::countOf(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  return count;
}

std::string moa::interp::indexText(ArrayRef<int64_t> index) {
  std::string text = "[";
  for (auto [k, i] : llvm::enumerate(index))
    text += (k ? ", " : "") + std::to_string(i);
  return text + "]";
}

template <typename OpTy> static Kernel describe(OpTy op) {
  Kernel kernel;
  auto copy = [](ArrayAttr from, std::vector<std::string> &to) {
    for (StringRef text : from.getAsValueRange<StringAttr>())
      to.push_back(text.str());
  };
  copy(op.getSymbols(), kernel.symbols);
  copy(op.getRequires(), kernel.constraints);
  copy(op.getArgNames(), kernel.argNames);
  copy(op.getResultNames(), kernel.resultNames);
  Block &block = op.getBody().front();
  for (unsigned k = 0; k < kernel.argNames.size(); ++k)
    kernel.argTypes.push_back(dyn_cast<ArrayType>(block.getArgument(k).getType()));
  for (Type type : op.getResultTypes().template getAsValueRange<TypeAttr>())
    kernel.resultTypes.push_back(dyn_cast<ArrayType>(type));
  for (const std::string &name : kernel.resultNames)
    kernel.areUnsigned.push_back(isUnsigned(op, name));
  return kernel;
}

Expected<Kernel> Kernel::of(Operation *op) {
  Kernel kernel;
  if (auto moaKernel = dyn_cast<KernelOp>(op))
    kernel = describe(moaKernel);
  else if (auto dnfKernel = dyn_cast<dnf::KernelOp>(op))
    kernel = describe(dnfKernel);
  else if (auto onfKernel = dyn_cast<onf::KernelOp>(op))
    kernel = describe(onfKernel);
  else if (auto program = dyn_cast<device::ProgramOp>(op))
    kernel = describe(program);
  else
    return makeError(locationText(op->getLoc()) +
                     "expected a kernel of moa, dnf or onf, or a device.program, but got '" +
                     op->getName().getStringRef() + "'");
  for (const auto &types : {kernel.argTypes, kernel.resultTypes})
    if (llvm::any_of(types, [](ArrayType type) { return !type; }))
      return makeError("a parameter of the kernel is no array");
  return kernel;
}

void moa::interp::makeUnsigned(const Kernel &kernel, std::vector<Array> &outputs, std::optional<unsigned> output) {
  for (auto [k, array] : llvm::enumerate(outputs)) {
    unsigned number = output.value_or(k);
    if (number >= kernel.resultTypes.size() || !kernel.areUnsigned[number])
      continue;
    double modulus = std::ldexp(1.0, kernel.resultTypes[number].getElementType().getIntOrFloatBitWidth());
    for (double &value : array.data)
      value += value < 0 ? modulus : 0;
  }
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

/// Returns " with N = 3, M = 4" for the names that have values.
static std::string valuesText(const std::set<std::string> &names, const Symbols &symbols) {
  std::string text;
  for (const std::string &name : names)
    if (auto it = symbols.find(name); it != symbols.end())
      text += (text.empty() ? " with " : ", ") + name + " = " + std::to_string(it->second);
  return text;
}

static std::string valuesText(const SymExpr &expr, const Symbols &symbols) {
  std::set<std::string> names;
  expr.collectSymbols(names);
  return valuesText(names, symbols);
}

static std::optional<int64_t> tryEvaluate(const SymExpr &expr, const Symbols &symbols) {
  return expr.evaluate([&](StringRef name) -> std::optional<int64_t> {
    auto it = symbols.find(name.str());
    return it == symbols.end() ? std::nullopt : std::optional<int64_t>(it->second);
  });
}

static std::vector<std::string> unknownSymbols(const SymExpr &expr, const Symbols &symbols) {
  std::set<std::string> names;
  expr.collectSymbols(names);
  std::vector<std::string> unknown;
  for (const std::string &name : names)
    if (!symbols.count(name))
      unknown.push_back(name);
  return unknown;
}

Expected<int64_t> moa::interp::evaluate(const SymExpr &expr, const Symbols &symbols) {
  if (auto value = tryEvaluate(expr, symbols))
    return *value;
  auto unknown = unknownSymbols(expr, symbols);
  if (!unknown.empty())
    return makeError("symbol '" + unknown.front() + "' of '" + expr.str() +
                     "' has no value: no argument's shape determines it, give it");
  return makeError("'" + expr.str() + "' divides by zero" + valuesText(expr, symbols));
}

Expected<int64_t> moa::interp::evaluate(StringRef text, const Symbols &symbols) {
  std::string why;
  auto expr = SymExpr::parse(text, &why);
  if (!expr)
    return makeError("'" + text + "' is no integer expression: " + why);
  return evaluate(*expr, symbols);
}

Expected<std::vector<int64_t>> moa::interp::evaluateShape(ArrayType type, const Symbols &symbols) {
  std::vector<int64_t> shape;
  for (unsigned k = 0; k < type.getRank(); ++k) {
    SymExpr extent = type.getExtent(k);
    auto value = evaluate(extent, symbols);
    if (!value)
      return value.takeError();
    if (*value < 0)
      return makeError("extent '" + extent.str() + "' is " + std::to_string(*value) + valuesText(extent, symbols));
    shape.push_back(*value);
  }
  return shape;
}

//===----------------------------------------------------------------------===//
// Binding
//===----------------------------------------------------------------------===//

/// Solves expr = value for its one unknown symbol x. Needs expr = c·x + rest, with no x in a
/// quotient.
static std::optional<int64_t> solveLinear(const SymExpr &expr, StringRef unknown, int64_t value,
                                          const Symbols &symbols) {
  auto at = [&](int64_t x) {
    Symbols extended = symbols;
    extended[unknown.str()] = x;
    return tryEvaluate(expr, extended);
  };
  for (const auto &[monomial, coefficient] : expr.getTerms())
    for (const auto &[atom, power] : monomial) {
      if (atom->kind == SymExpr::Atom::Kind::Symbol) {
        if (atom->text == unknown && power != 1)
          return std::nullopt;
        continue;
      }
      std::set<std::string> inside;
      atom->lhs.collectSymbols(inside);
      atom->rhs.collectSymbols(inside);
      if (inside.count(unknown.str()))
        return std::nullopt;
    }
  auto rest = at(0), one = at(1);
  if (!rest || !one || *one == *rest || (value - *rest) % (*one - *rest) != 0)
    return std::nullopt;
  return (value - *rest) / (*one - *rest);
}

bool moa::interp::writesNothing(const Kernel &kernel, const Symbols &symbols) {
  return llvm::all_of(kernel.resultTypes, [&](ArrayType type) {
    auto shape = evaluateShape(type, symbols);
    if (shape)
      return countOf(*shape) == 0;
    llvm::consumeError(shape.takeError());
    return false;
  });
}

/// Checks one constraint. One that divides by zero is an error only if an output is not empty.
static Error checkConstraint(const Kernel &kernel, StringRef text, const Symbols &symbols) {
  static const char *const kOperators[] = {"==", "!=", "<=", ">=", "<", ">"};
  for (StringRef op : kOperators) {
    auto [left, right] = text.split(op);
    if (left.size() == text.size())
      continue;
    auto a = evaluate(left, symbols), b = evaluate(right, symbols);
    if (!a || !b) {
      Error error = llvm::joinErrors(a.takeError(), b.takeError());
      if (!writesNothing(kernel, symbols))
        return error;
      llvm::consumeError(std::move(error));
      return Error::success();
    }
    bool holds = op == "=="   ? *a == *b
                 : op == "!=" ? *a != *b
                 : op == "<=" ? *a <= *b
                 : op == ">=" ? *a >= *b
                 : op == "<"  ? *a < *b
                              : *a > *b;
    if (holds)
      return Error::success();
    std::set<std::string> names;
    SymExpr::parse(left)->collectSymbols(names);
    SymExpr::parse(right)->collectSymbols(names);
    return makeError("the constraint '" + text + "' does not hold" + valuesText(names, symbols));
  }
  return makeError("the constraint '" + text + "' holds no comparison");
}

static Error checkConstraints(const Kernel &kernel, const Symbols &symbols) {
  for (const std::string &constraint : kernel.constraints) {
    SmallVector<StringRef> parts;
    StringRef(constraint).split(parts, "&&");
    for (StringRef part : parts)
      if (Error error = checkConstraint(kernel, part.trim(), symbols))
        return error;
  }
  return Error::success();
}

/// Binds the symbols that the extents determine: first symbols that are whole extents, then, to a
/// fixed point, symbols that occur linearly and are the only unknown.
static void solve(const Kernel &kernel, ArrayRef<std::vector<int64_t>> shapes, Symbols &symbols) {
  for (bool plain : {true, false})
    for (bool changed = true; changed;) {
      changed = false;
      for (auto [type, shape] : llvm::zip(kernel.argTypes, shapes))
        for (unsigned k = 0; k < type.getRank(); ++k) {
          SymExpr extent = type.getExtent(k);
          auto unknown = unknownSymbols(extent, symbols);
          if (unknown.size() != 1 || (plain && !extent.getSymbol()))
            continue;
          if (auto value = solveLinear(extent, unknown[0], shape[k], symbols))
            changed = symbols.emplace(unknown[0], *value).second || changed;
        }
    }
}

static Expected<Symbols> bindShapes(const Kernel &kernel, ArrayRef<std::vector<int64_t>> shapes, const Symbols &given) {
  if (shapes.size() != kernel.argNames.size())
    return makeError("the kernel has " + llvm::Twine(kernel.argNames.size()) + " parameters, but got " +
                     llvm::Twine(shapes.size()));
  for (unsigned k = 0; k < shapes.size(); ++k)
    if (shapes[k].size() != kernel.argTypes[k].getRank())
      return makeError("'" + kernel.argNames[k] + "' has rank " + llvm::Twine(kernel.argTypes[k].getRank()) +
                       ", but got an array of shape " + indexText(shapes[k]));
  for (const auto &[name, value] : given)
    if (!llvm::is_contained(kernel.symbols, name))
      return makeError("the kernel has no symbol '" + name + "'");
  Symbols symbols = given;
  solve(kernel, shapes, symbols);
  for (unsigned k = 0; k < shapes.size(); ++k) {
    ArrayType type = kernel.argTypes[k];
    for (unsigned axis = 0; axis < type.getRank(); ++axis) {
      SymExpr extent = type.getExtent(axis);
      auto expected = evaluate(extent, symbols);
      if (!expected)
        return expected.takeError();
      if (*expected == shapes[k][axis])
        continue;
      std::string values = extent.getConstant() ? "" : " is " + std::to_string(*expected);
      if (!extent.getConstant() && !extent.getSymbol())
        values += valuesText(extent, symbols);
      return makeError("axis " + llvm::Twine(axis) + " of '" + kernel.argNames[k] + "' has extent " +
                       llvm::Twine(shapes[k][axis]) + ", but '" + extent.str() + "'" +
                       (values.empty() ? " is declared" : values));
    }
  }
  for (const std::string &name : kernel.symbols)
    if (!symbols.count(name))
      return makeError("symbol '" + name + "' has no value: no argument's shape determines it, give it");
  for (const auto &[name, value] : symbols)
    if (value < 0)
      return makeError("symbol '" + name + "' is negative: " + llvm::Twine(value));
  if (Error error = checkConstraints(kernel, symbols))
    return error;
  return symbols;
}

Expected<Symbols> moa::bindSymbols(Operation *op, ArrayRef<std::vector<int64_t>> shapes, const Symbols &given) {
  auto kernel = Kernel::of(op);
  if (!kernel)
    return kernel.takeError();
  return bindShapes(*kernel, shapes, given);
}

Expected<std::vector<std::vector<int64_t>>> moa::outputShapes(Operation *op, const Symbols &symbols) {
  auto kernel = Kernel::of(op);
  if (!kernel)
    return kernel.takeError();
  std::vector<std::vector<int64_t>> shapes;
  for (ArrayType type : kernel->resultTypes) {
    auto shape = evaluateShape(type, symbols);
    if (!shape)
      return shape.takeError();
    shapes.push_back(std::move(*shape));
  }
  return shapes;
}

static Error checkIntegers(const Kernel &kernel, unsigned k, const Array &array) {
  if (isa<FloatType>(kernel.argTypes[k].getElementType()))
    return Error::success();
  for (double value : array.data)
    if (value != std::floor(value) || std::fabs(value) > 0x1p63)
      return makeError("'" + kernel.argNames[k] + "' holds integers, but got " + llvm::Twine(std::to_string(value)));
  return Error::success();
}

Expected<Symbols> moa::interp::bindInputs(Operation *op, const Kernel &kernel, const KernelInputs &inputs) {
  std::vector<std::vector<int64_t>> shapes;
  for (const Array &array : inputs.arrays)
    shapes.push_back(array.shape);
  auto symbols = bindShapes(kernel, shapes, inputs.symbols);
  if (!symbols)
    return symbols.takeError();
  for (unsigned k = 0; k < inputs.arrays.size(); ++k) {
    const Array &array = inputs.arrays[k];
    if (static_cast<int64_t>(array.data.size()) != countOf(array.shape))
      return makeError("'" + kernel.argNames[k] + "' of shape " + indexText(array.shape) + " needs " +
                       llvm::Twine(countOf(array.shape)) + " elements, but got " + llvm::Twine(array.data.size()));
    if (Error error = checkIntegers(kernel, k, array))
      return error;
  }
  return symbols;
}
