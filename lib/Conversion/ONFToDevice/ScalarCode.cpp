//===- ScalarCode.cpp - scalars of onf as code of one thread --------------===//
#include "lib/Conversion/ONFToDevice/ScalarCode.h"
#include "dialects/MoA/IR/Monoid.h"
#include "lib/Analysis/OnDemand.h"
#include "lib/Conversion/Limits.h"
#include "lib/Conversion/ONFToDevice/RowLanes.h"
#include "lib/Conversion/ONFToDevice/Tiles.h"
#include "lib/Support/IndexCast.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace moa;

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

Value ScalarCode::index(int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }

Value ScalarCode::symbol(const SymExpr &expr) {
  if (auto value = expr.getConstant())
    return index(*value);
  return device::SymbolOp::create(b, loc, b.getIndexType(), expr);
}

device::KernelOp moa::beginKernel(OpBuilder &b, onf::ForOp nest, device::ProgramOp program, const Twine &suffix,
                                  const SymExpr &blocks, int64_t threads) {
  std::string name = (program.getSymName() + "_" + suffix).str();
  auto kernel = device::KernelOp::create(b, nest.getLoc(), name, blocks, threads);
  b.setInsertionPointToStart(&kernel.getBody().emplaceBlock());
  return kernel;
}

IRMapping moa::mapArrays(onf::ForOp nest, device::ProgramOp program) {
  IRMapping arrays;
  auto kernel = nest->getParentOfType<onf::KernelOp>();
  arrays.map(kernel.getBody().getArguments(), program.getBody().getArguments());
  return arrays;
}

Location moa::withoutName(Location loc) {
  while (auto named = dyn_cast<NameLoc>(loc))
    loc = named.getChildLoc();
  return loc;
}

Location ScalarCode::named(StringRef name) { return NameLoc::get(b.getStringAttr(name), loc); }

ScalarCode::Values ScalarCode::loop(Value lower, Value upper, ValueRange inits, ArrayRef<std::string> names,
                                    LoopBody body) {
  auto loop =
      scf::ForOp::create(b, loc, lower, upper, index(1), inits, [&](OpBuilder &, Location, Value iv, ValueRange args) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToEnd(iv.getParentBlock());
        scopes.emplace_back();
        Values next = body(iv, args);
        scf::YieldOp::create(b, loc, next);
        scopes.pop_back();
      });
  for (auto [arg, name] : llvm::zip(loop.getBody()->getArguments(), names))
    arg.setLoc(named(name));
  return Values(loop.getResults());
}

void ScalarCode::loop(Value lower, Value upper, StringRef name, llvm::function_ref<void(Value)> body) {
  loop(lower, upper, {}, {name.str()}, [&](Value iv, ValueRange) {
    body(iv);
    return Values();
  });
}

ScalarCode::Values ScalarCode::loop(int64_t lower, int64_t upper, ValueRange inits, ArrayRef<std::string> names,
                                    LoopBody body) {
  Value first = index(lower), end = index(upper);
  return loop(first, end, inits, names, body);
}

void ScalarCode::loop(int64_t lower, int64_t upper, StringRef name, llvm::function_ref<void(Value)> body) {
  Value first = index(lower), end = index(upper);
  loop(first, end, name, body);
}

ScalarCode::Values ScalarCode::branch(Value condition, TypeRange types, llvm::function_ref<Values()> yes,
                                      llvm::function_ref<Values()> no) {
  auto op = scf::IfOp::create(b, loc, types, condition, /*withElse=*/bool(no));
  auto fill = [&](Block *block, llvm::function_ref<Values()> body) {
    OpBuilder::InsertionGuard guard(b);
    if (!block->empty() && block->back().hasTrait<OpTrait::IsTerminator>())
      block->back().erase();
    b.setInsertionPointToEnd(block);
    scopes.emplace_back();
    Values values = body();
    scf::YieldOp::create(b, loc, values);
    scopes.pop_back();
  };
  fill(op.thenBlock(), yes);
  if (no)
    fill(op.elseBlock(), no);
  return Values(op.getResults());
}

void ScalarCode::when(Value condition, llvm::function_ref<void()> body) {
  branch(condition, {}, [&] { return body(), Values(); }, nullptr);
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Value ScalarCode::constant(TypedAttr value) { return arith::ConstantOp::create(b, loc, value); }

Value ScalarCode::both(Value x, Value y) {
  if (!x || !y)
    return x ? x : y;
  return b.createOrFold<arith::AndIOp>(loc, x, y);
}

Value ScalarCode::either(Value x, Value y) {
  if (!x || !y)
    return x ? x : y;
  return b.createOrFold<arith::OrIOp>(loc, x, y);
}

Value ScalarCode::differs(Value x, Value y) {
  if (isa<FloatType>(x.getType()))
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, x, y);
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, x, y);
}

Value ScalarCode::zeroUnless(AffineMap conditions, ValueRange operands, Value bound) {
  auto values = affine::expandAffineMap(b, loc, conditions, operands);
  if (!values)
    return bound;
  for (Value value : *values) {
    Value holds = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, value, index(0));
    bound = arith::SelectOp::create(b, loc, holds, bound, index(0));
  }
  return bound;
}

Value ScalarCode::narrow(Value number) {
  if (getConstantIntValue(number))
    return number;
  Value word = arith::IndexCastOp::create(b, loc, b.getI32Type(), number);
  Value wide = arith::ExtUIOp::create(b, loc, b.getI64Type(), word);
  return arith::IndexCastOp::create(b, number.getLoc(), b.getIndexType(), wide);
}

Value ScalarCode::takeDigit(Value &rest, Value radix, StringRef name, StringRef restName) {
  Value digit = arith::RemUIOp::create(b, named(name), rest, radix);
  rest = arith::DivUIOp::create(b, restName.empty() ? loc : named(restName), rest, radix);
  return digit;
}

Value ScalarCode::combine(Monoid monoid, Value x, Value y) { return buildMonoid(b, loc, monoid, x, y); }

Value ScalarCode::convert(Value value, Type type) {
  Type from = value.getType();
  if (from == type)
    return value;
  auto narrowInteger = [](Type t) { return isa<IntegerType>(t); };
  if (isa<FloatType>(from) && isa<FloatType>(type)) {
    unsigned have = from.getIntOrFloatBitWidth(), want = type.getIntOrFloatBitWidth();
    if (have < want)
      return arith::ExtFOp::create(b, loc, type, value);
    if (have == want || (have == 64 && want == 16))
      return convert(convert(value, b.getF32Type()), type);
    return arith::TruncFOp::create(b, loc, type, value);
  }
  if (from.isIndex() || type.isIndex())
    return castIndex(b, loc, value, type);
  if (narrowInteger(from) && narrowInteger(type)) {
    if (from.getIntOrFloatBitWidth() > type.getIntOrFloatBitWidth())
      return arith::TruncIOp::create(b, loc, type, value);
    if (from.isInteger(1))
      return arith::ExtUIOp::create(b, loc, type, value);
    return arith::ExtSIOp::create(b, loc, type, value);
  }
  mlir::emitError(loc) << "cannot convert " << from << " to " << type << " in code for a GPU";
  failed = true;
  return value;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Value ScalarCode::lookup(Value value) {
  for (auto &scope : llvm::reverse(scopes)) {
    auto found = scope.values.find(value);
    if (found != scope.values.end())
      return found->second;
  }
  return Value();
}

std::optional<std::pair<Value, Value>> ScalarCode::lookupProduct(Value value) {
  for (auto &scope : llvm::reverse(scopes))
    if (auto found = scope.products.find(value); found != scope.products.end())
      return found->second;
  return std::nullopt;
}

Value ScalarCode::eval(Value value) {
  if (Value known = lookup(value))
    return known;
  Operation *op = value.getDefiningOp();
  assert(op && "loop indices are bound by their loops");
  // Code that is too large is refused where its value is stored.
  if (++written > kMostWritten)
    if (TypedAttr zero = b.getZeroAttr(value.getType()))
      return constant(zero);
  Location outer = loc;
  loc = op->getLoc();
  if (auto fold = dyn_cast<onf::FoldOp>(op)) {
    emitFold(*this, fold);
    loc = outer;
    return lookup(value);
  }
  Value result = evalOp(op);
  bind(value, result);
  loc = outer;
  return result;
}

bool ScalarCode::isCostly(Value value) {
  llvm::DenseSet<Value> seen;
  std::function<bool(Value)> visit = [&](Value part) {
    if (!seen.insert(part).second || lookup(part))
      return false;
    Operation *op = part.getDefiningOp();
    if (!op)
      return false;
    if (auto load = dyn_cast<onf::LoadOp>(op))
      return load.getArray().getType().getRank() != 0;
    return isa<onf::FoldOp>(op) || llvm::any_of(op->getOperands(), visit);
  };
  return visit(value);
}

Value ScalarCode::choose(Value condition, Value yes, Value no) {
  Value c = eval(condition);
  if (eager || (!isCostly(yes) && !isCostly(no))) {
    Value x = eval(yes), y = eval(no);
    return arith::SelectOp::create(b, loc, c, x, y);
  }
  return branch(c, {yes.getType()}, [&] { return Values{eval(yes)}; }, [&] { return Values{eval(no)}; })[0];
}

static bool isSquare(Operation *op) {
  llvm::APFloat exponent(0.0);
  return isa<math::PowFOp>(op) && matchPattern(op->getOperand(1), m_ConstantFloat(&exponent)) &&
         exponent.convertToDouble() == 2;
}

/// Returns whether the operation has floats of 16 bits, which are computed in f32.
static bool isNarrow(Operation *op) {
  if (isa<arith::ConstantOp, arith::ExtFOp, arith::TruncFOp, arith::SelectOp, arith::BitcastOp>(op))
    return false;
  auto narrow = [](Type type) { return isa<FloatType>(type) && type.getIntOrFloatBitWidth() == 16; };
  return llvm::any_of(op->getOperandTypes(), narrow) || llvm::any_of(op->getResultTypes(), narrow);
}

/// Returns the number of a small operand of a difference, which an exponent can then fuse to a
/// multiply-add; nullopt if there is none.
std::optional<unsigned> ScalarCode::findSmallOperand(arith::SubFOp difference) {
  if (auto found = smallOperands.find(difference); found != smallOperands.end())
    return found->second;
  for (unsigned side : {1, 0}) {
    llvm::APFloat number(0.0);
    if (matchPattern(difference->getOperand(side), m_ConstantFloat(&number)) &&
        std::fabs(number.convertToDouble()) <= 1024)
      return side;
  }
  return std::nullopt;
}

/// Emits (x − m)·times + plus as x·times − (m·times − plus), and (m − x)·times + plus likewise. A
/// product x = y·z is not multiplied out, but becomes y·(z·times).
Value ScalarCode::fusedDifference(arith::SubFOp difference, unsigned small, float times, float plus) {
  Value element = difference->getOperand(1 - small);
  Value factor = constant(b.getF32FloatAttr(small == 1 ? times : -times));
  auto scaled = [&](Value x) -> Value { return arith::MulFOp::create(b, loc, x, factor); };
  // m·(±times), with the sign that the element's factor has.
  Value rest = scaled(eval(difference->getOperand(small)));
  rest = plus != 0 ? arith::SubFOp::create(b, loc, constant(b.getF32FloatAttr(plus)), rest).getResult()
                   : arith::NegFOp::create(b, loc, rest).getResult();
  if (auto bound = lookupProduct(element)) {
    auto [x, y] = *bound;
    return math::FmaOp::create(b, loc, x, scaled(y), rest);
  }
  auto product = element.getDefiningOp<arith::MulFOp>();
  if (product && !lookup(element)) {
    Value x = eval(product.getLhs()), y = scaled(eval(product.getRhs()));
    return math::FmaOp::create(b, loc, x, y, rest);
  }
  return math::FmaOp::create(b, loc, eval(element), factor, rest);
}

/// Emits a·times + plus. A difference is rounded before it is scaled, unless one operand is known
/// to be small. The scaled terms may be large, and so may the error of their difference.
Value ScalarCode::scaledBy(Value argument, float times, float plus) {
  auto difference = argument.getDefiningOp<arith::SubFOp>();
  if (difference && !lookup(argument))
    if (std::optional<unsigned> small = findSmallOperand(difference))
      return fusedDifference(difference, *small, times, plus);
  Value factor = constant(b.getF32FloatAttr(times)), exponent = eval(argument);
  return plus != 0 ? math::FmaOp::create(b, loc, exponent, factor, constant(b.getF32FloatAttr(plus))).getResult()
                   : arith::MulFOp::create(b, loc, exponent, factor).getResult();
}

/// Emits e^a · 2^shift as 2^(a · log2 e + shift).
Value ScalarCode::approximateExp(Value argument, int64_t shift) {
  return device::Exp2Op::create(b, loc, scaledBy(argument, 1.44269504088896341f, float(shift)));
}

/// Returns the operand of the device's piecewise linear 2^y, which is 2⁻²⁴·64·(y + 15).
Value ScalarCode::bitsOf(onf::PiecewiseExp2Op op) {
  constexpr double kUnit = 0x1p-18;
  return scaledBy(op.getOperand(), float(op.getTimes().convertToDouble() * kUnit),
                  float((op.getPlus().convertToDouble() + 15) * kUnit));
}

/// Emits tanh x = sign(x)·(1 − e)/(1 + e) with e = 2^(−2·|x|·log2 e). Below 1/8, where 1 − e loses
/// digits, emits its series x − x³/3 + 2x⁵/15. The next term is 17x⁷/315, there 2·10⁻⁷ of x. The
/// relative error is below 4·10⁻⁶ everywhere.
Value ScalarCode::approximateTanh(Value argument) {
  auto number = [&](float value) { return constant(b.getF32FloatAttr(value)); };
  Value x = eval(argument), size = math::AbsFOp::create(b, loc, x), one = number(1.0f);
  Value e = device::Exp2Op::create(b, loc, arith::MulFOp::create(b, loc, size, number(-2.88539008177792681f)));
  Value inverse = device::ReciprocalOp::create(b, loc, arith::AddFOp::create(b, loc, one, e));
  Value quotient = arith::MulFOp::create(b, loc, arith::SubFOp::create(b, loc, one, e), inverse);
  Value square = arith::MulFOp::create(b, loc, x, x);
  Value third = number(-1.0f / 3);
  Value series = math::FmaOp::create(b, loc, square, number(2.0f / 15), third);
  series = math::FmaOp::create(b, loc, square, series, one);
  series = arith::MulFOp::create(b, loc, x, series);
  Value isSmall = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, size, number(0.125f));
  return arith::SelectOp::create(b, loc, isSmall, series, math::CopySignOp::create(b, loc, quotient, x));
}

/// Emits b^n = ±2^(n · log2 |b|) for a whole number n. The relative error is 2⁻²²·|n · log2 |b||,
/// which is below 2·10⁻⁵ if the result is neither 0 nor infinite. The logarithm is the same for all
/// n of a base, and as exact as log2.
Value ScalarCode::approximatePower(math::PowFOp op) {
  auto number = [&](float value) { return constant(b.getF32FloatAttr(value)); };
  Value whole = eval(op.getRhs().getDefiningOp<arith::SIToFPOp>().getIn());
  Value base = eval(op.getLhs()), exponent = eval(op.getRhs());
  Value log = math::Log2Op::create(b, loc, math::AbsFOp::create(b, loc, base));
  // b^0 is 1 also for b = 0 and ∞.
  Value least = number(-1e30f);
  log = arith::MaximumFOp::create(b, loc, arith::MinimumFOp::create(b, loc, log, number(1e30f)), least);
  Value power = device::Exp2Op::create(b, loc, arith::MulFOp::create(b, loc, exponent, log));
  Value isNegative = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, base, number(0));
  Value one = constant(b.getIntegerAttr(whole.getType(), 1));
  Value isOdd = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, arith::AndIOp::create(b, loc, whole, one), one);
  Value negative = arith::NegFOp::create(b, loc, power);
  return arith::SelectOp::create(b, loc, both(isNegative, isOdd), negative, power);
}

/// Returns whether the exponent is a variable whole number.
static bool isWholePower(math::PowFOp op) {
  auto cast = op.getRhs().getDefiningOp<arith::SIToFPOp>();
  return cast && op.getType().isF32() && !matchPattern(cast.getIn(), m_Constant());
}

Value ScalarCode::evalOp(Operation *op) {
  if (auto power = dyn_cast<math::PowFOp>(op); power && approximate && isWholePower(power))
    return approximatePower(power);
  if (auto tanh = dyn_cast<math::TanhOp>(op); tanh && approximate && tanh.getType().isF32())
    return approximateTanh(tanh.getOperand());
  if (auto bound = op->getNumResults() == 1 ? lookupProduct(op->getResult(0)) : std::nullopt)
    return arith::MulFOp::create(b, loc, bound->first, bound->second);
  if (auto exp = dyn_cast<math::ExpOp>(op); exp && approximate && exp.getType().isF32())
    return approximateExp(exp.getOperand());
  if (auto piecewise = dyn_cast<onf::PiecewiseExp2Op>(op))
    return convert(device::HalfFromBitsOp::create(b, loc, b.getF16Type(), bitsOf(piecewise)), b.getF32Type());
  // 2^k·exp(x) is one power of 2.
  if (auto product = dyn_cast<arith::MulFOp>(op); product && approximate && product.getType().isF32()) {
    auto exp = product.getLhs().getDefiningOp<math::ExpOp>();
    auto factor = product.getRhs().getDefiningOp<arith::ConstantOp>();
    auto number = factor ? dyn_cast<FloatAttr>(factor.getValue()) : FloatAttr();
    int k = number && number.getValueAsDouble() > 0 ? number.getValue().getExactLog2Abs() : INT_MIN;
    if (exp && !lookup(exp) && k != INT_MIN && std::abs(k) < 64)
      return approximateExp(exp.getOperand(), k);
  }
  if (auto quotient = dyn_cast<arith::DivFOp>(op);
      quotient && quotient.getType().isF32() &&
      (reciprocals || (approximate && isUniform && isUniform(quotient.getRhs())) ||
       (takesReciprocal && takesReciprocal(quotient)))) {
    Value x = eval(quotient.getLhs()), y = eval(quotient.getRhs());
    Value one = constant(b.getF32FloatAttr(1.0f));
    if (scalesDivisors) {
      Value up = constant(b.getF32FloatAttr(0x1p64f)), down = constant(b.getF32FloatAttr(0x1p-64f));
      Value size = math::AbsFOp::create(b, loc, y);
      Value isSmall = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, size, down);
      Value isLarge = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, size, up);
      Value rest = arith::SelectOp::create(b, loc, isLarge, down, one);
      Value scale = arith::SelectOp::create(b, loc, isSmall, up, rest);
      y = arith::MulFOp::create(b, loc, y, scale);
      x = arith::MulFOp::create(b, loc, x, scale);
    }
    Value reciprocal = reciprocals ? device::ReciprocalOp::create(b, loc, y, /*subnormals=*/true).getResult()
                                   : arith::DivFOp::create(b, loc, one, y).getResult();
    return arith::MulFOp::create(b, loc, x, reciprocal);
  }
  if (auto load = dyn_cast<onf::LoadOp>(op))
    return evalLoad(load);
  if (auto at = dyn_cast<onf::AtOp>(op))
    return evalAt(at);
  if (auto extent = dyn_cast<onf::ExtentOp>(op))
    return symbol(extent.getExpr());
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return choose(select.getCondition(), select.getTrueValue(), select.getFalseValue());
  if (isa<arith::AndIOp, arith::OrIOp>(op) && op->getResult(0).getType().isInteger(1) && !eager &&
      isCostly(op->getOperand(1))) {
    bool isAnd = isa<arith::AndIOp>(op);
    Value left = eval(op->getOperand(0));
    auto right = [&] { return Values{eval(op->getOperand(1))}; };
    auto known = [&] { return Values{constant(b.getBoolAttr(!isAnd))}; };
    return isAnd ? branch(left, {b.getI1Type()}, right, known)[0] : branch(left, {b.getI1Type()}, known, right)[0];
  }
  if (!isMemoryEffectFree(op) || op->getNumRegions() != 0 || op->getNumResults() != 1) {
    op->emitError("cannot be lowered to code for a GPU");
    failed = true;
    return b.createOrFold<arith::ConstantOp>(loc, b.getZeroAttr(op->getResult(0).getType()));
  }
  bool narrow = isNarrow(op);
  Values operands;
  for (Value operand : op->getOperands()) {
    Value value = eval(operand);
    bool widen = narrow && isa<FloatType>(value.getType()) && value.getType().getIntOrFloatBitWidth() == 16;
    operands.push_back(widen ? convert(value, b.getF32Type()) : value);
  }
  if (isa<arith::TruncFOp, arith::ExtFOp, arith::IndexCastOp>(op))
    return convert(operands[0], op->getResult(0).getType());
  Value result;
  if (isSquare(op)) { // one rounding, where the function takes a hundred operations
    result = arith::MulFOp::create(b, loc, operands[0], operands[0]);
  } else {
    Operation *clone = b.clone(*op);
    clone->setOperands(operands);
    result = clone->getResult(0);
  }
  if (!narrow || !isa<FloatType>(result.getType()))
    return result;
  Type type = result.getType();
  result.setType(b.getF32Type());
  return convert(result, type);
}

/// Returns the place of an index on an interleaved axis: its last four bits b₃ b₂ b₁ b₀ become b₂
/// b₁ b₃ b₀.
Value ScalarCode::interleave(Value place) {
  auto bits = [&](int64_t mask) { return arith::AndIOp::create(b, loc, place, index(mask)).getResult(); };
  Value two = index(2), middle = arith::MulIOp::create(b, loc, bits(6), two);
  Value four = index(4), high = arith::DivUIOp::create(b, loc, bits(8), four);
  Value rest = arith::SubIOp::create(b, loc, place, bits(14));
  return arith::AddIOp::create(b, loc, arith::AddIOp::create(b, loc, rest, middle), high);
}

/// Returns a coefficient of an address. Strides of temporaries follow from their extents, those of
/// other arrays are the caller's.
Value ScalarCode::coefficient(onf::AccessOpInterface op, const SymExpr &expr) {
  return symbol(op->getParentOfType<onf::KernelOp>().withoutTemporaryStrides(expr));
}

Value ScalarCode::addressOf(onf::AccessOpInterface op) {
  onf::FlatAddress address = op.getAddress();
  bool isSwapped = isInterleaved(op.getArray());
  Value sum, last;
  auto add = [&](Value &to, Value part) { to = to ? b.createOrFold<arith::AddIOp>(loc, to, part) : part; };
  for (auto [number, term] : llvm::enumerate(op.getTerms())) {
    Value index = eval(term);
    Value part = b.createOrFold<arith::MulIOp>(loc, index, coefficient(op, address.coefficients[number]));
    // The stride of an interleaved axis, the last one, is 1.
    add(isSwapped && op.getSubscripts().getAxes().back().factors.count(number) ? last : sum, part);
  }
  if (last)
    add(sum, interleave(last));
  if (isSwapped && !address.constant.isZero()) {
    op->emitError("has an offset in an interleaved array");
    failed = true;
  }
  if (!address.constant.isZero() || !sum)
    add(sum, coefficient(op, address.constant));
  return sum;
}

Value ScalarCode::coefficientOf(onf::AccessOpInterface op, unsigned term) {
  return coefficient(op, op.getAddress().coefficients[term]);
}

/// Returns the place of an operation in the specification, with the name of another location.
static Location placeOf(Operation *op, Location named) {
  Location place = named;
  op->getLoc()->walk([&](Location inner) {
    if (!isa<FileLineColLoc>(inner))
      return WalkResult::advance();
    place = inner;
    return WalkResult::interrupt();
  });
  auto name = dyn_cast<NameLoc>(named);
  return name && place != named ? Location(NameLoc::get(name.getName(), place)) : place;
}

Value ScalarCode::evalLoad(onf::LoadOp load) {
  Value array = arrays.lookup(load.getArray());
  Type type = load.getResult().getType();
  auto kernel = load->getParentOfType<onf::KernelOp>();
  if (load.getArray().getType().getRank() == 0 && kernel.isInput(cast<BlockArgument>(load.getArray()).getArgNumber()))
    return device::ScalarOp::create(b, loc, type, array);
  if (clampsLoads)
    return evalNearest(load);
  Value where = addressOf(load);
  return device::LoadOp::create(b, placeOf(load, loc), type, array, where);
}

Value ScalarCode::evalNearest(onf::LoadOp load) {
  ArrayType shape = load.getArray().getType();
  Type type = load.getResult().getType();
  auto kernel = load->getParentOfType<onf::KernelOp>();
  StringRef name = kernel.getArrayName(cast<BlockArgument>(load.getArray()).getArgNumber());
  Value offset, isThere;
  for (unsigned axis = 0; axis < shape.getRank(); ++axis) {
    LinearIndex subscript = load.getIndex(axis);
    Value place = subscript.constant.isZero() ? Value() : symbol(subscript.constant);
    for (auto &[term, factor] : subscript.terms) {
      Value times = symbol(factor);
      Value part = b.createOrFold<arith::MulIOp>(loc, eval(term), times);
      place = place ? b.createOrFold<arith::AddIOp>(loc, place, part) : part;
    }
    const SymExpr &extent = shape.getExtent(axis);
    Value value = subscript.getValue();
    bool isIndex = value && indices.lookup(value) == extent;
    if (!place) {
      place = index(0);
    } else if (!isIndex) {
      Value zero = index(0), last = symbol(extent - SymExpr(1));
      place = b.createOrFold<arith::MaxSIOp>(loc, b.createOrFold<arith::MinSIOp>(loc, place, last), zero);
    }
    place = b.createOrFold<arith::MulIOp>(loc, place, coefficient(load, onf::getStride(name, axis)));
    offset = offset ? b.createOrFold<arith::AddIOp>(loc, offset, place) : place;
    bool isPositive = isNonNegative(extent - SymExpr(1)) ||
                      llvm::any_of(indices, [&](const auto &index) { return index.second == extent; });
    if (!isPositive) {
      Value zero = index(0);
      isThere = both(isThere, arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, symbol(extent), zero));
    }
  }
  if (!offset) // of an array without axes
    offset = index(0);
  auto read = [&]() -> Value {
    return device::LoadOp::create(b, placeOf(load, loc), type, arrays.lookup(load.getArray()), offset);
  };
  if (!isThere)
    return read();
  return branch(
      isThere, {type}, [&] { return Values{read()}; },
      [&] { return Values{constant(cast<TypedAttr>(b.getZeroAttr(type)))}; })[0];
}

Value ScalarCode::evalAt(onf::AtOp at) {
  // In a map over the state's elements, the state is bound to the element.
  Value state = eval(at.getState());
  if (!isa<MemRefType>(state.getType()))
    return state;
  if (lanes) // each lane has its columns
    return memref::LoadOp::create(b, loc, state, lanes->getPlace());
  Values place;
  for (Value index : at.getIndices())
    place.push_back(eval(index));
  return memref::LoadOp::create(b, loc, state, place);
}

Value ScalarCode::stored(onf::StoreOp op) {
  Location outer = loc;
  loc = withoutName(op.getLoc());
  Value value = convert(eval(op.getValue()), op.getArray().getType().getElementType());
  if (written > kMostWritten && !failed) {
    mlir::emitError(loc) << "an element of this result takes more than " << kMostWritten
                         << " operations on a GPU: nested selections repeat shared operands on every side and "
                            "level; compute an inner definition in a kernel of its own, and pass its result as a "
                            "parameter";
    failed = true;
  }
  loc = outer;
  return value;
}

void ScalarCode::store(onf::StoreOp op, bool inPairs) {
  Location outer = loc;
  loc = withoutName(op.getLoc());
  Value value = stored(op);
  Value where = addressOf(op);
  device::StoreOp::create(b, loc, value, arrays.lookup(op.getArray()), where).setPairs(inPairs);
  loc = outer;
}
