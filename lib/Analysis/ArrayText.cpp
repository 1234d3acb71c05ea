//===- ArrayText.cpp - arrays of the moa level as text --------------------===//
#include "lib/Analysis/ArrayText.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/InterleavedRange.h"

using namespace mlir;
using namespace moa;

/// Returns the float operation of arith that stands for a function with an infix sign, and the
/// predicate of a comparison. Returns an empty name for functions in call syntax.
static std::pair<StringRef, int64_t> infixOf(ScalarFn fn) {
  switch (fn) {
  case ScalarFn::add:
    return {"arith.addf", 0};
  case ScalarFn::sub:
    return {"arith.subf", 0};
  case ScalarFn::mul:
    return {"arith.mulf", 0};
  case ScalarFn::div:
    return {"arith.divf", 0};
  case ScalarFn::neg:
    return {"arith.negf", 0};
  case ScalarFn::eq:
    return {"arith.cmpi", 0};
  case ScalarFn::ne:
    return {"arith.cmpi", 1};
  case ScalarFn::lt:
    return {"arith.cmpi", 2};
  case ScalarFn::le:
    return {"arith.cmpi", 3};
  case ScalarFn::gt:
    return {"arith.cmpi", 4};
  case ScalarFn::ge:
    return {"arith.cmpi", 5};
  case ScalarFn::and_:
    return {"arith.andi", 0};
  case ScalarFn::or_:
    return {"arith.ori", 0};
  case ScalarFn::xor_:
    return {"arith.xori", 0};
  default:
    return {"", 0};
  }
}

/// Returns the sign of a function in `+.*` and `+/`.
static StringRef signOf(StringRef function) {
  return llvm::StringSwitch<StringRef>(function)
      .Case("add", "+")
      .Case("mul", "*")
      .Case("sub", "-")
      .Case("div", "/")
      .Default(function);
}

static std::string constantText(Attribute value) {
  if (auto real = dyn_cast<FloatAttr>(value))
    return formatNumber(real.getValueAsDouble());
  auto integer = cast<IntegerAttr>(value);
  if (integer.getType().isInteger(1))
    return integer.getValue().isZero() ? "false" : "true";
  return std::to_string(integer.getInt());
}

static MathTerm extentTerm(const SymExpr &expr) {
  return {expr.str(), expr.getSymbol() || expr.getConstant() ? MathTerm::Atom : MathTerm::Sum};
}

/// Returns ", axis", or nothing for axis 0, the default.
static std::string axisArgument(int64_t axis) { return axis ? ", " + std::to_string(axis) : ""; }

ArrayText::ArrayText(Block &body, ArrayAttr inputs) {
  for (auto [arg, input] : llvm::zip(body.getArguments(), inputs))
    names[arg] = cast<StringAttr>(input).getValue().str();
  llvm::StringMap<unsigned> later;
  for (Operation &op : llvm::reverse(body)) {
    auto named = dyn_cast<NameLoc>(op.getLoc());
    if (!named || op.getNumResults() != 1 || !isa<ArrayType>(op.getResult(0).getType()))
      continue;
    // A conversion inserted by the front end is not a definition of the user's.
    if (auto conversion = dyn_cast<CastOp>(op); conversion && conversion.getImplicit())
      continue;
    std::string name = named.getName().str();
    for (unsigned k = later[name]++; k > 0; --k)
      name += "′";
    names[op.getResult(0)] = name;
  }
}

StringRef ArrayText::name(Value array) const {
  auto it = names.find(array);
  return it == names.end() ? StringRef() : StringRef(it->second);
}

MathTerm ArrayText::of(Value array) const {
  StringRef known = name(array);
  return known.empty() ? definition(array) : MathTerm{known.str()};
}

MathTerm ArrayText::call(StringRef function, ArrayRef<std::string> arguments) const {
  return {function.str() + "(" + llvm::join(arguments, ", ") + ")"};
}

MathTerm ArrayText::map(MapOp op) const {
  if (op.getFn() == ScalarFn::id)
    return of(op.getInputs()[0]);
  auto [operation, predicate] = infixOf(op.getFn());
  SmallVector<MathTerm> operands;
  for (Value input : op.getInputs())
    operands.push_back(of(input));
  Type element = cast<ArrayType>(op.getInputs()[0].getType()).getElementType();
  if (op.getFn() == ScalarFn::div && !isa<FloatType>(element))
    operation = "arith.floordivsi";
  if (!operation.empty())
    return makeMathTerm(operation, operands, op.getResult().getType().getElementType().isInteger(1), "", predicate);
  SmallVector<std::string> arguments;
  for (const MathTerm &operand : operands)
    arguments.push_back(operand.text);
  return call(stringifyScalarFn(op.getFn()), arguments);
}

/// Prints K[I, _, J]. An axis without an index is _; axes after the last index are left out.
MathTerm ArrayText::psi(PsiOp op) const {
  SmallVector<std::string> entries;
  for (auto [axis, index] : llvm::zip(op.getDims(), op.getIndices())) {
    entries.resize(axis, "_");
    entries.push_back(of(index).text);
  }
  return {of(op.getInput()).at(MathTerm::Atom) + "[" + llvm::join(entries, ", ") + "]"};
}

/// Prints take(A, n), drop(A, k), or both, with the axis if it is not the first.
MathTerm ArrayText::slice(SliceOp op) const {
  std::string text = of(op.getInput()).text;
  std::string axis = axisArgument(op.getAxis());
  const SymExpr &extent = op.getInput().getType().getExtent(op.getAxis());
  bool drops = !op.getStart().isZero();
  if (drops)
    text = "drop(" + text + ", " + op.getStart().str() + axis + ")";
  if (!drops || op.getCount() + op.getStart() != extent)
    text = "take(" + text + ", " + op.getCount().str() + axis + ")";
  return {text};
}

MathTerm ArrayText::definition(Value array) const {
  Operation *definition = array.getDefiningOp();
  if (!definition)
    return {name(array).str()};
  auto type = dyn_cast<ArrayType>(array.getType());
  return llvm::TypeSwitch<Operation *, MathTerm>(definition)
      .Case([&](ConstantOp op) { return MathTerm{constantText(op.getValue())}; })
      .Case([&](ExtentOp op) { return extentTerm(op.getExpr()); })
      .Case([&](IotaOp op) { return MathTerm{"ι " + extentTerm(op.getExtent()).at(MathTerm::Atom), MathTerm::Unary}; })
      .Case([&](MapOp op) { return map(op); })
      .Case([&](CastOp op) {
        if (op.getImplicit())
          return of(op.getInput());
        std::string element;
        llvm::raw_string_ostream(element) << type.getElementType();
        return call(element, of(op.getInput()).text);
      })
      .Case([&](MaskOp op) { return call("mask", {of(op.getPredicate()).text, of(op.getInput()).text}); })
      .Case([&](ReduceOp op) {
        StringRef sign = op.getFunction() ? *op.getFunction() : signOf(stringifyMonoid(op.getMonoid()));
        MathTerm input = of(op.getInput());
        if (!op.getFunction() && op.getAxis() + 1 == op.getInput().getType().getRank())
          return MathTerm{(sign + "/ ").str() + input.at(MathTerm::Unary), MathTerm::Sum};
        return call("reduce", {sign.str(), input.text, std::to_string(op.getAxis())});
      })
      .Case([&](InnerOp op) {
        return MathTerm{of(op.getLhs()).at(MathTerm::Product) + " " + signOf(stringifyMonoid(op.getMonoid())).str() +
                            "." + signOf(stringifyScalarFn(op.getFn())).str() + " " +
                            of(op.getRhs()).at(MathTerm::Unary),
                        MathTerm::Sum};
      })
      .Case([&](PsiOp op) { return psi(op); })
      .Case([&](TransposeOp op) {
        auto swap = llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
        if (swap.size() >= 2)
          std::swap(swap[swap.size() - 1], swap[swap.size() - 2]);
        if (op.getPerm() == ArrayRef<int64_t>(swap))
          return call("transpose", of(op.getInput()).text);
        std::string perm;
        llvm::raw_string_ostream(perm) << llvm::interleaved_array(op.getPerm());
        return call("transpose", {of(op.getInput()).text, perm});
      })
      .Case([&](ReshapeOp op) {
        SmallVector<std::string> shape;
        for (ExprAttr extent : type.getShape())
          shape.push_back(extent.getValue().str());
        return call("reshape", {of(op.getInput()).text, "[" + llvm::join(shape, ", ") + "]"});
      })
      .Case([&](CatOp op) {
        return call("cat", {of(op.getLhs()).text, of(op.getRhs()).text + axisArgument(op.getAxis())});
      })
      .Case([&](SliceOp op) { return slice(op); })
      .Case([&](ReverseOp op) { return call("reverse", of(op.getInput()).text + axisArgument(op.getAxis())); })
      .Case([&](RotateOp op) {
        return call("rotate", {of(op.getInput()).text, op.getBy().str() + axisArgument(op.getAxis())});
      })
      .Default([&](Operation *op) {
        SmallVector<std::string> arguments;
        for (Value operand : op->getOperands())
          arguments.push_back(of(operand).text);
        return call(op->getName().stripDialect(), arguments);
      });
}
