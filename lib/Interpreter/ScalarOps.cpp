//===- ScalarOps.cpp - from functions and ops to scalar operations --------===//
#include "dialects/ONF/IR/ONF.h"
#include "lib/Interpreter/Scalar.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace moa;
using namespace moa::interp;

//===----------------------------------------------------------------------===//
// Point-wise functions and casts of the moa level
//===----------------------------------------------------------------------===//

static std::optional<Code> floatCode(ScalarFn fn) {
  switch (fn) {
  case ScalarFn::id:
    return Code::Id;
  case ScalarFn::neg:
    return Code::NegF;
  case ScalarFn::abs:
    return Code::AbsF;
  case ScalarFn::exp:
    return Code::Exp;
  case ScalarFn::exp2:
    return Code::Exp2;
  case ScalarFn::log:
    return Code::Log;
  case ScalarFn::log2:
    return Code::Log2;
  case ScalarFn::sqrt:
    return Code::Sqrt;
  case ScalarFn::rsqrt:
    return Code::RSqrt;
  case ScalarFn::tanh:
    return Code::Tanh;
  case ScalarFn::sin:
    return Code::Sin;
  case ScalarFn::cos:
    return Code::Cos;
  case ScalarFn::erf:
    return Code::Erf;
  case ScalarFn::floor:
    return Code::Floor;
  case ScalarFn::ceil:
    return Code::Ceil;
  case ScalarFn::add:
    return Code::AddF;
  case ScalarFn::sub:
    return Code::SubF;
  case ScalarFn::mul:
    return Code::MulF;
  case ScalarFn::div:
    return Code::DivF;
  case ScalarFn::mod:
    return Code::ModF;
  case ScalarFn::min:
    return Code::MinimumF;
  case ScalarFn::max:
    return Code::MaximumF;
  case ScalarFn::pow:
    return Code::PowF;
  case ScalarFn::fmod:
    return Code::RemF;
  case ScalarFn::atan2:
    return Code::Atan2;
  default:
    return std::nullopt;
  }
}

static std::optional<Code> integerCode(ScalarFn fn) {
  switch (fn) {
  case ScalarFn::id:
    return Code::Id;
  case ScalarFn::neg:
    return Code::NegI;
  case ScalarFn::abs:
    return Code::AbsI;
  case ScalarFn::not_:
    return Code::NotI;
  case ScalarFn::add:
    return Code::AddI;
  case ScalarFn::sub:
    return Code::SubI;
  case ScalarFn::mul:
    return Code::MulI;
  case ScalarFn::div:
    return Code::FloorDivSI;
  case ScalarFn::mod:
    return Code::ModI;
  case ScalarFn::min:
    return Code::MinSI;
  case ScalarFn::max:
    return Code::MaxSI;
  case ScalarFn::and_:
    return Code::AndI;
  case ScalarFn::or_:
    return Code::OrI;
  case ScalarFn::xor_:
    return Code::XorI;
  case ScalarFn::shl:
    return Code::ShlI;
  case ScalarFn::shr:
    return Code::ShrSI;
  default:
    return std::nullopt;
  }
}

static int predicateOf(ScalarFn fn, bool isFloat) {
  using F = arith::CmpFPredicate;
  using I = arith::CmpIPredicate;
  auto pick = [&](F f, I i) { return isFloat ? static_cast<int>(f) : static_cast<int>(i); };
  switch (fn) {
  case ScalarFn::eq:
    return pick(F::OEQ, I::eq);
  case ScalarFn::ne:
    return pick(F::UNE, I::ne);
  case ScalarFn::lt:
    return pick(F::OLT, I::slt);
  case ScalarFn::le:
    return pick(F::OLE, I::sle);
  case ScalarFn::gt:
    return pick(F::OGT, I::sgt);
  default:
    return pick(F::OGE, I::sge);
  }
}

std::optional<Instr> moa::interp::instrOf(ScalarFn fn, Type element) {
  Form form = Form::of(element);
  Instr instr;
  instr.width = instr.resultWidth = form.width;
  if (fn >= ScalarFn::eq && fn <= ScalarFn::ge) {
    instr.code = form.isFloat() ? Code::CmpF : Code::CmpI;
    instr.predicate = predicateOf(fn, form.isFloat());
    instr.resultWidth = 1;
    return instr;
  }
  auto code = form.isFloat() ? floatCode(fn) : integerCode(fn);
  if (!code)
    return std::nullopt;
  instr.code = *code;
  return instr;
}

Instr moa::interp::castOf(Type from, Type to, bool exact) {
  Form source = Form::of(from), target = Form::of(to);
  Instr instr;
  instr.width = source.width;
  instr.resultWidth = target.width;
  if (target.isFloat() && !exact && from != to)
    instr.round = to;
  if (source.isFloat())
    instr.code = target.isFloat() ? Code::RoundF : target.width == 1 ? Code::FToBool : Code::FToSI;
  else if (target.isFloat())
    instr.code = source.width == 1 ? Code::UIToF : Code::SIToF;
  else if (target.width == 1)
    instr.code = Code::IToBool;
  else
    instr.code = source.width == 1 ? Code::UnsignedToI : Code::SignedToI;
  return instr;
}

//===----------------------------------------------------------------------===//
// arith and math
//===----------------------------------------------------------------------===//

static const llvm::StringMap<Code> &opCodes() {
  static const llvm::StringMap<Code> table = {{"arith.negf", Code::NegF},
                                              {"arith.addf", Code::AddF},
                                              {"arith.subf", Code::SubF},
                                              {"arith.mulf", Code::MulF},
                                              {"arith.divf", Code::DivF},
                                              {"arith.remf", Code::RemF},
                                              {"arith.maximumf", Code::MaximumF},
                                              {"arith.minimumf", Code::MinimumF},
                                              {"arith.maxnumf", Code::MaxNumF},
                                              {"arith.minnumf", Code::MinNumF},
                                              {"arith.cmpf", Code::CmpF},
                                              {"arith.cmpi", Code::CmpI},
                                              {"arith.addi", Code::AddI},
                                              {"arith.subi", Code::SubI},
                                              {"arith.muli", Code::MulI},
                                              {"arith.divsi", Code::DivSI},
                                              {"arith.divui", Code::DivUI},
                                              {"arith.floordivsi", Code::FloorDivSI},
                                              {"arith.ceildivsi", Code::CeilDivSI},
                                              {"arith.ceildivui", Code::CeilDivUI},
                                              {"arith.remsi", Code::RemSI},
                                              {"arith.remui", Code::RemUI},
                                              {"arith.andi", Code::AndI},
                                              {"arith.ori", Code::OrI},
                                              {"arith.xori", Code::XorI},
                                              {"arith.shli", Code::ShlI},
                                              {"arith.shrsi", Code::ShrSI},
                                              {"arith.shrui", Code::ShrUI},
                                              {"arith.maxsi", Code::MaxSI},
                                              {"arith.minsi", Code::MinSI},
                                              {"arith.maxui", Code::MaxUI},
                                              {"arith.minui", Code::MinUI},
                                              {"arith.extf", Code::RoundF},
                                              {"arith.truncf", Code::RoundF},
                                              {"arith.sitofp", Code::SIToF},
                                              {"arith.uitofp", Code::UIToF},
                                              {"arith.fptosi", Code::FToSI},
                                              {"arith.fptoui", Code::FToUI},
                                              {"arith.extsi", Code::SignedToI},
                                              {"arith.extui", Code::UnsignedToI},
                                              {"arith.trunci", Code::SignedToI},
                                              {"arith.index_cast", Code::SignedToI},
                                              {"arith.index_castui", Code::UnsignedToI},
                                              {"math.absf", Code::AbsF},
                                              {"math.absi", Code::AbsI},
                                              {"math.exp", Code::Exp},
                                              {"math.exp2", Code::Exp2},
                                              {"math.expm1", Code::ExpM1},
                                              {"math.log", Code::Log},
                                              {"math.log2", Code::Log2},
                                              {"math.log10", Code::Log10},
                                              {"math.log1p", Code::Log1p},
                                              {"math.sqrt", Code::Sqrt},
                                              {"math.rsqrt", Code::RSqrt},
                                              {"math.cbrt", Code::Cbrt},
                                              {"math.tanh", Code::Tanh},
                                              {"math.sinh", Code::Sinh},
                                              {"math.cosh", Code::Cosh},
                                              {"math.sin", Code::Sin},
                                              {"math.cos", Code::Cos},
                                              {"math.tan", Code::Tan},
                                              {"math.atan", Code::Atan},
                                              {"math.atan2", Code::Atan2},
                                              {"math.erf", Code::Erf},
                                              {"math.erfc", Code::Erfc},
                                              {"math.floor", Code::Floor},
                                              {"math.ceil", Code::Ceil},
                                              {"math.round", Code::Round},
                                              {"math.roundeven", Code::RoundEven},
                                              {"math.trunc", Code::TruncF},
                                              {"math.powf", Code::PowF},
                                              {"math.copysign", Code::CopySign},
                                              {"math.fma", Code::Fma},
                                              {"onf.piecewise_exp2", Code::PiecewiseExp2}};
  return table;
}

std::optional<Instr> moa::interp::instrOf(Operation *op) {
  auto it = opCodes().find(op->getName().getStringRef());
  if (it == opCodes().end() || op->getNumResults() != 1 || op->getNumOperands() == 0)
    return std::nullopt;
  Type operand = op->getOperand(0).getType(), result = op->getResult(0).getType();
  if (!isa<FloatType, IntegerType, IndexType>(operand) || !isa<FloatType, IntegerType, IndexType>(result))
    return std::nullopt;
  Instr instr;
  instr.code = it->second;
  instr.width = Form::of(operand).width;
  instr.resultWidth = Form::of(result).width;
  if (auto compare = dyn_cast<arith::CmpFOp>(op))
    instr.predicate = static_cast<int>(compare.getPredicate());
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    instr.predicate = static_cast<int>(compare.getPredicate());
  if (auto piecewise = dyn_cast<onf::PiecewiseExp2Op>(op)) {
    instr.times = piecewise.getTimes().convertToDouble();
    instr.plus = piecewise.getPlus().convertToDouble();
  }
  // Implicit conversions are exact; the user's casts round.
  if (isa<FloatType>(result) && op->hasAttr("moa.round"))
    instr.round = result;
  return instr;
}
