//===- Expressions.cpp - scalar operations as C++ -------------------------===//
#include "lib/Target/CUDA/Expressions.h"
#include "lib/Target/CUDA/Cuda.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace mlir;

namespace moa::cuda {

static std::string printFloat(const llvm::APFloat &value, Type type) {
  double number = value.convertToDouble();
  bool isDouble = type.isF64();
  if (std::isnan(number))
    return isDouble ? "double(NAN)" : "NAN";
  if (std::isinf(number))
    return std::string(number < 0 ? "-" : "") + (isDouble ? "double(INFINITY)" : "INFINITY");
  std::string text;
  for (int digits : {6, 9, 17}) {
    text.clear();
    llvm::raw_string_ostream os(text);
    os << llvm::format("%.*g", digits, number);
    double back = std::strtod(text.c_str(), nullptr);
    if (isDouble ? back == number : float(back) == float(number))
      break;
  }
  if (text.find_first_of(".e") == std::string::npos)
    text += ".0";
  return text + (isDouble ? "" : "f");
}

std::string printConstant(Attribute value) {
  if (auto number = dyn_cast<FloatAttr>(value)) {
    Type type = number.getType();
    std::string text = printFloat(number.getValue(), type);
    if (type.isBF16())
      return "__float2bfloat16_rn(" + text + ")";
    if (type.isF16())
      return "__float2half_rn(" + text + ")";
    if (isa<Float8E4M3FNType>(type))
      return std::to_string(number.getValue().bitcastToAPInt().getZExtValue());
    return text;
  }
  auto integer = cast<IntegerAttr>(value);
  if (integer.getType().isInteger(1))
    return integer.getValue().isZero() ? "false" : "true";
  int64_t number = integer.getInt();
  if (number == INT64_MIN)
    return "INT64_MIN";
  if (integer.getType().isInteger(32) && number == INT32_MIN)
    return "INT32_MIN";
  bool large = number > INT32_MAX || number < INT32_MIN;
  return std::to_string(number) + (large ? "ll" : "");
}

std::string printDigit(const std::string &name, int64_t count, int64_t stride, int64_t size, int64_t weight) {
  std::string text = name;
  if (stride != 1)
    text += " / " + std::to_string(stride);
  if (stride * size != count)
    text += " % " + std::to_string(size);
  return weight == 1 ? text : text + " * " + std::to_string(weight);
}

namespace {
struct OperationPrinter {
  Operation *op;
  llvm::ArrayRef<Expr> in;
  std::set<std::string> &helpers;

  Type type() const { return op->getResult(0).getType(); }
  bool isDouble() const { return type().isF64(); }

  Expr call(const std::string &function) const {
    std::string text = function + "(";
    for (auto [k, operand] : llvm::enumerate(in))
      text += (k ? ", " : "") + operand.text;
    return {text + ")"};
  }
  Expr help(const std::string &helper) const {
    helpers.insert(helper);
    return call(helper);
  }
  /// Calls a helper named after the type, for example `max_nan` or `max_nan_double`.
  Expr helpFloat(const std::string &helper) const { return help(helper + (isDouble() ? "_double" : "")); }
  /// Calls a helper for 64-bit integers, or its template for other integer types.
  Expr helpInteger(const std::string &helper) const {
    if (getValueType(type()) == "int64_t")
      return help(helper);
    helpers.insert(helper + "<>");
    return call(helper + "<" + getValueType(type()).str() + ">");
  }
  Expr infix(const char *sign, int level) const {
    std::string text = in[0].at(level) + " " + sign + " " + in[1].at(level + 1);
    return {text, level};
  }
  /// Prints wrapping arithmetic for the user's integers, and plain arithmetic for indices.
  Expr integer(const char *sign, int level) const {
    if (type().isIndex() && *sign == '+' && matchPattern(op->getOperand(1), m_Constant()) &&
        llvm::StringRef(in[1].text).starts_with("-"))
      return {in[0].at(level) + " - " + in[1].text.substr(1), level};
    if (type().isIndex() && *sign == '+')
      return {in[0].at(level) + " + " + in[1].at(level), level};
    if (type().isIndex())
      return infix(sign, level);
    std::string name = getValueType(type()).str(), text;
    unsigned bits = type().getIntOrFloatBitWidth();
    std::string wide = bits == 64 ? "uint64_t" : "uint32_t";
    text = name + "(" + wide + "(" + in[0].text + ") " + sign + " " + wide + "(" + in[1].text + "))";
    return {text};
  }
  /// Calls a function of CUDA's library, for example `expf` or `exp`.
  Expr library(const std::string &name) const { return call(isDouble() ? name : name + "f"); }
  Expr compareFloat() const;
  Expr compareInteger() const;
  Expr rounded(const char *operation) const;
  Expr multiply() const;
  Expr cast() const { return call(getValueType(type()).str()); }
  Expr extend() const;
  Expr truncate() const;
  std::optional<Expr> print() const;
  std::optional<Expr> printMath() const;
};
} // namespace

Expr OperationPrinter::compareFloat() const {
  using P = arith::CmpFPredicate;
  auto predicate = mlir::cast<arith::CmpFOp>(op).getPredicate();
  auto negated = [&](const char *sign, int level) { return Expr{"!(" + infix(sign, level).text + ")", Expr::unary}; };
  switch (predicate) {
  case P::OEQ:
    return infix("==", Expr::equality);
  case P::UNE:
    return infix("!=", Expr::equality);
  case P::OLT:
    return infix("<", Expr::relation);
  case P::OLE:
    return infix("<=", Expr::relation);
  case P::OGT:
    return infix(">", Expr::relation);
  case P::OGE:
    return infix(">=", Expr::relation);
  case P::ULT:
    return negated(">=", Expr::relation);
  case P::ULE:
    return negated(">", Expr::relation);
  case P::UGT:
    return negated("<=", Expr::relation);
  case P::UGE:
    return negated("<", Expr::relation);
  case P::ONE:
    return help("differ_ordered");
  case P::UEQ: {
    Expr differ = help("differ_ordered");
    return {"!" + differ.text, Expr::unary};
  }
  case P::ORD:
  case P::UNO: {
    bool isOrdered = predicate == P::ORD;
    if (in[0].text == in[1].text) // x == x unless x is NaN
      return infix(isOrdered ? "==" : "!=", Expr::equality);
    Expr both = help("both_numbers");
    return isOrdered ? both : Expr{"!" + both.text, Expr::unary};
  }
  case P::AlwaysTrue:
    return {"true"};
  default:
    return {"false"};
  }
}

Expr OperationPrinter::compareInteger() const {
  using P = arith::CmpIPredicate;
  switch (mlir::cast<arith::CmpIOp>(op).getPredicate()) {
  case P::eq:
    return infix("==", Expr::equality);
  case P::ne:
    return infix("!=", Expr::equality);
  case P::slt:
    return infix("<", Expr::relation);
  case P::sle:
    return infix("<=", Expr::relation);
  case P::sgt:
    return infix(">", Expr::relation);
  case P::sge:
    return infix(">=", Expr::relation);
  default:
    break;
  }
  std::string a = "uint64_t(" + in[0].text + ")", b = "uint64_t(" + in[1].text + ")";
  switch (mlir::cast<arith::CmpIOp>(op).getPredicate()) {
  case P::ult:
    return {a + " < " + b, Expr::relation};
  case P::ule:
    return {a + " <= " + b, Expr::relation};
  case P::ugt:
    return {a + " > " + b, Expr::relation};
  default:
    return {a + " >= " + b, Expr::relation};
  }
}

/// Prints an operation with one rounding, which nvcc does not fuse with another.
Expr OperationPrinter::rounded(const char *operation) const {
  return call((isDouble() ? "__d" : "__f") + std::string(operation) + "_rn");
}

static bool entersLibrary(Value value, llvm::DenseSet<Value> &seen) {
  if (!seen.insert(value).second)
    return false;
  auto enters = [&](Value next) { return entersLibrary(next, seen); };
  return llvm::any_of(value.getUses(), [&](OpOperand &use) {
    unsigned number = use.getOperandNumber();
    Operation *user = use.getOwner(), *parent = user->getParentOp();
    return llvm::TypeSwitch<Operation *, bool>(user)
        .Case<arith::RemFOp, memref::StoreOp>([](auto) { return true; })
        .Case<arith::NegFOp, arith::SelectOp>([&](auto op) { return enters(op.getResult()); })
        .Case<device::MapOp>([&](auto map) { return enters(map.getBody().getArgument(number)); })
        .Case<device::IfAnyOp>([&](auto branch) { return number != 0 && enters(branch.getResults()[number - 1]); })
        .Case<device::YieldOp>([&](auto) { return enters(parent->getResult(number)); })
        .Case<scf::ForOp>([&](auto loop) { return enters(loop.getTiedLoopRegionIterArg(&use)); })
        .Case<scf::YieldOp>([&](auto) {
          auto loop = dyn_cast<scf::ForOp>(parent);
          return enters(parent->getResult(number)) || (loop && enters(loop.getRegionIterArg(number)));
        })
        .Default([](Operation *op) { return op->getName().getDialectNamespace() == "math" && !isa<math::FmaOp>(op); });
  });
}

bool entersLibrary(Value value) {
  llvm::DenseSet<Value> seen;
  return entersLibrary(value, seen);
}

/// The emitted sums are never fused with a product, but those inside CUDA's library functions would
/// be. So round products that reach these explicitly.
Expr OperationPrinter::multiply() const {
  return entersLibrary(op->getResult(0)) ? rounded("mul") : infix("*", Expr::product);
}

Expr OperationPrinter::extend() const {
  Type from = op->getOperand(0).getType();
  std::string text = in[0].text;
  if (from.isBF16())
    text = "__bfloat162float(" + text + ")";
  else if (from.isF16())
    text = "__half2float(" + text + ")";
  else if (isa<Float8E4M3FNType>(from)) {
    helpers.insert("from_e4m3");
    text = "from_e4m3(" + text + ")";
  }
  return {isDouble() ? "double(" + text + ")" : text};
}

Expr OperationPrinter::truncate() const {
  if (type().isBF16())
    return call("__float2bfloat16_rn");
  if (type().isF16())
    return call("__float2half_rn");
  if (isa<Float8E4M3FNType>(type())) {
    helpers.insert("to_e4m3");
    return call("to_e4m3");
  }
  return call("__double2float_rn");
}

std::optional<Expr> OperationPrinter::printMath() const {
  static const llvm::StringMap<const char *> functions = {
      {"math.exp", "exp"},     {"math.exp2", "exp2"},      {"math.expm1", "expm1"},       {"math.log", "log"},
      {"math.log2", "log2"},   {"math.log10", "log10"},    {"math.log1p", "log1p"},       {"math.sqrt", "sqrt"},
      {"math.cbrt", "cbrt"},   {"math.tanh", "tanh"},      {"math.sinh", "sinh"},         {"math.cosh", "cosh"},
      {"math.sin", "sin"},     {"math.cos", "cos"},        {"math.tan", "tan"},           {"math.atan", "atan"},
      {"math.erf", "erf"},     {"math.erfc", "erfc"},      {"math.floor", "floor"},       {"math.ceil", "ceil"},
      {"math.round", "round"}, {"math.roundeven", "rint"}, {"math.trunc", "trunc"},       {"math.absf", "fabs"},
      {"math.powf", "pow"},    {"math.atan2", "atan2"},    {"math.copysign", "copysign"}, {"math.fma", "fma"}};
  auto found = functions.find(op->getName().getStringRef());
  if (found != functions.end())
    return library(found->second);
  if (isa<math::RsqrtOp>(op))
    return call(isDouble() ? "rsqrt" : "__frsqrt_rn");
  if (isa<math::AbsIOp>(op))
    return Expr{in[0].at(Expr::relation + 1) + " < 0 ? -" + in[0].at(Expr::unary) + " : " + in[0].text, Expr::choice};
  return std::nullopt;
}

std::optional<Expr> OperationPrinter::print() const {
  bool truth = type().isInteger(1);
  return llvm::TypeSwitch<Operation *, std::optional<Expr>>(op)
      .Case<arith::AddFOp>([&](auto) { return rounded("add"); })
      .Case<arith::SubFOp>([&](auto) { return rounded("sub"); })
      .Case<arith::MulFOp>([&](auto) { return multiply(); })
      .Case<arith::DivFOp>([&](auto) { return infix("/", Expr::product); })
      .Case<arith::RemFOp>([&](auto) { return library("fmod"); })
      .Case<arith::NegFOp>([&](auto) { return Expr{"-" + in[0].at(Expr::unary + 1), Expr::unary}; })
      .Case<arith::MaximumFOp>([&](auto) { return helpFloat("max_nan"); })
      .Case<arith::MinimumFOp>([&](auto) { return helpFloat("min_nan"); })
      .Case<arith::MaxNumFOp>([&](auto) { return library("fmax"); })
      .Case<arith::MinNumFOp>([&](auto) { return library("fmin"); })
      .Case<arith::CmpFOp>([&](auto) { return compareFloat(); })
      .Case<arith::CmpIOp>([&](auto) { return compareInteger(); })
      .Case<arith::SelectOp>([&](auto) {
        return Expr{in[0].at(Expr::choice + 1) + " ? " + in[1].at(Expr::choice + 1) + " : " + in[2].at(Expr::choice),
                    Expr::choice};
      })
      .Case<arith::AddIOp>([&](auto) { return integer("+", Expr::sum); })
      .Case<arith::SubIOp>([&](auto) { return integer("-", Expr::sum); })
      .Case<arith::MulIOp>([&](auto) { return integer("*", Expr::product); })
      .Case<arith::DivUIOp>([&](auto) { return infix("/", Expr::product); })
      .Case<arith::RemUIOp>([&](auto) { return infix("%", Expr::product); })
      .Case<arith::FloorDivSIOp>([&](auto) { return helpInteger("floor_div"); })
      .Case<arith::CeilDivSIOp>([&](auto) { return helpInteger("ceil_div"); })
      .Case<arith::DivSIOp>([&](auto) { return helpInteger("trunc_div"); })
      .Case<arith::RemSIOp>([&](auto) { return helpInteger("trunc_mod"); })
      .Case<arith::AndIOp>([&](auto) { return truth ? infix("&&", Expr::conjunction) : infix("&", Expr::bitAnd); })
      .Case<arith::OrIOp>([&](auto) { return truth ? infix("||", Expr::disjunction) : infix("|", Expr::bitOr); })
      .Case<arith::XOrIOp>([&](auto) {
        if (truth && matchPattern(op->getOperand(1), m_One()))
          return Expr{"!" + in[0].at(Expr::unary), Expr::unary};
        return truth ? infix("!=", Expr::equality) : infix("^", Expr::bitXor);
      })
      .Case<arith::ShLIOp>([&](auto) { return helpInteger("shift_left"); })
      .Case<arith::ShRSIOp>([&](auto) { return helpInteger("shift_right"); })
      .Case<arith::MaxSIOp>([&](auto) { return helpInteger("max_int"); })
      .Case<arith::MinSIOp>([&](auto) { return helpInteger("min_int"); })
      .Case<arith::ExtFOp>([&](auto) { return extend(); })
      .Case<arith::TruncFOp>([&](auto) { return truncate(); })
      .Case<arith::SIToFPOp, arith::UIToFPOp>([&](auto) { return cast(); })
      .Case<arith::FPToSIOp>([&](auto) {
        bool isByte = type().isInteger(8) && op->getOperand(0).getType().isF32();
        std::string name = isByte ? "to_byte" : "to_int<" + getValueType(type()).str() + ">";
        helpers.insert(isByte ? "to_byte" : "to_int");
        return call(name);
      })
      .Case<arith::IndexCastOp>([&](auto) {
        // Functions of a register's number have type int.
        bool isInt = op->getOperand(0).getDefiningOp<device::ThreadOffsetOp>() && type().isInteger(32);
        bool isSame = getValueType(type()) == getValueType(op->getOperand(0).getType());
        return isInt || isSame ? in[0] : cast();
      })
      .Case<arith::IndexCastUIOp>([&](auto) { return cast(); }) // only booleans
      .Case<arith::ExtUIOp>([&](auto) {
        // Integers other than booleans are printed as signed types.
        unsigned width = op->getOperand(0).getType().getIntOrFloatBitWidth();
        if (width == 1)
          return cast();
        std::string bits = "uint" + std::to_string(width) + "_t";
        // Omit a cast to the signed type before the cast to the unsigned type.
        llvm::StringRef inner = in[0].text;
        bool isCast = op->getOperand(0).getDefiningOp<arith::IndexCastOp>() && inner.consume_front(bits.substr(1)) &&
                      inner.starts_with("(");
        std::string operand = isCast ? inner.str() : "(" + in[0].text + ")";
        if (width == 32 && type().isInteger(64)) {
          helpers.insert("low_word");
          return Expr{"low_word" + operand};
        }
        return Expr{getValueType(type()).str() + "(" + bits + operand + ")"};
      })
      .Case<arith::ExtSIOp, arith::TruncIOp>([&](auto) { return cast(); })
      .Default([&](Operation *) { return printMath(); });
}

std::optional<Expr> printOperation(Operation *op, llvm::ArrayRef<Expr> operands, std::set<std::string> &helpers) {
  return OperationPrinter{op, operands, helpers}.print();
}

} // namespace moa::cuda
