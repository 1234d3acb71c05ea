//===- DefinitionBuilder.cpp - right sides of laws ------------------------===//
#include "Laws.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Verifier.h"
#include "gtest/gtest.h"
#include <numeric>

using namespace mlir;

namespace moa::test {

const std::vector<std::string> &lawSymbols() {
  static const std::vector<std::string> symbols = {"N0", "N1", "N2", "N3", "P0", "P1"};
  return symbols;
}

std::string times(const Shape &extents) {
  SymExpr product(1);
  for (const std::string &extent : extents)
    product = product * *SymExpr::parse(extent);
  return product.str();
}

//===----------------------------------------------------------------------===//
// Random
//===----------------------------------------------------------------------===//

Shape Random::shape(int64_t least, int64_t most) {
  Shape result(least + below(most - least + 1));
  for (size_t k = 0; k < result.size(); ++k)
    result[k] = below(4) ? "N" + std::to_string(k) : pick(std::vector<std::string>{"0", "1", "2", "3", "5"});
  return result;
}

Numbers Random::permutation(int64_t n) {
  Numbers result(n);
  std::iota(result.begin(), result.end(), 0);
  std::shuffle(result.begin(), result.end(), engine);
  return result;
}

Numbers Random::subset(int64_t n) {
  Numbers result;
  for (int64_t k = 0; k < n; ++k)
    if (below(2))
      result.push_back(k);
  return result;
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

static ExprAttr exprOf(StringRef text) { return ExprAttr::get(&getContext(), *SymExpr::parse(text)); }

ArrayAttr DefinitionBuilder::exprs(const Shape &extents) {
  SmallVector<Attribute> list;
  for (const std::string &extent : extents)
    list.push_back(exprOf(extent));
  return b.getArrayAttr(list);
}

DefinitionBuilder::DefinitionBuilder() : b(&getContext()), loc(b.getUnknownLoc()) {
  module = ModuleOp::create(loc);
  b.setInsertionPointToEnd(module->getBody());
  ArrayAttr none = b.getArrayAttr({});
  SmallVector<Attribute> symbols;
  for (const std::string &name : lawSymbols())
    symbols.push_back(b.getStringAttr(name));
  kernel = dnf::KernelOp::create(b, loc, b.getStringAttr("k"), b.getArrayAttr(symbols), none, none, none, none,
                                 /*within=*/nullptr);
  b.createBlock(&kernel.getBody());
}

Value DefinitionBuilder::input(const Parameter &parameter) {
  argNames.push_back(parameter.name);
  SmallVector<ExprAttr> shape;
  for (const std::string &extent : parameter.shape)
    shape.push_back(exprOf(extent));
  auto type = ArrayType::get(&getContext(), shape, typeNamed(parameter.type));
  return kernel.getBody().front().addArgument(type, loc);
}

std::string DefinitionBuilder::indexName(StringRef extent) {
  return llvm::isAlpha(extent.front()) ? extent.take_front(1).lower() : "k";
}

Block *DefinitionBuilder::body(const Shape &extents, Element element, Type &type) {
  auto *block = new Block;
  Values index;
  for (size_t k = 0; k < extents.size(); ++k)
    index.push_back(block->addArgument(b.getIndexType(), loc));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(block);
  Term term = element(index);
  type = term.value.getType();
  dnf::YieldOp::create(b, loc, term.value, term.present);
  return block;
}

void DefinitionBuilder::output(const Shape &extents, Element element) {
  Type type;
  Block *block = body(extents, element, type);
  Shape names;
  for (const std::string &extent : extents)
    names.push_back(indexName(exprOf(extent).getValue().str()));
  auto op = dnf::OutputOp::create(b, loc, b.getI64IntegerAttr(resultTypes.size()), exprs(extents), b.getArrayAttr({}),
                                  TypeAttr::get(type));
  SmallVector<Attribute> list;
  for (const std::string &name : names)
    list.push_back(b.getStringAttr(name));
  op.setNamesAttr(b.getArrayAttr(list));
  op.getBody().push_back(block);
  SmallVector<ExprAttr> shape(exprs(extents).getAsRange<ExprAttr>());
  resultTypes.push_back(TypeAttr::get(ArrayType::get(&getContext(), shape, type)));
}

void DefinitionBuilder::let(StringRef name, const Shape &extents, Element element) {
  Type type;
  Block *block = body(extents, element, type);
  SmallVector<Attribute> names;
  for (const std::string &extent : extents)
    names.push_back(b.getStringAttr(indexName(exprOf(extent).getValue().str())));
  auto op =
      dnf::LetOp::create(b, loc, b.getStringAttr(name), exprs(extents), b.getArrayAttr(names), TypeAttr::get(type));
  op.getBody().push_back(block);
}

OwningOpRef<ModuleOp> DefinitionBuilder::finish() {
  SmallVector<Attribute> args, results;
  for (const std::string &name : argNames)
    args.push_back(b.getStringAttr(name));
  for (size_t k = 0; k < resultTypes.size(); ++k)
    results.push_back(b.getStringAttr("out" + std::to_string(k)));
  kernel.setArgNamesAttr(b.getArrayAttr(args));
  kernel.setResultNamesAttr(b.getArrayAttr(results));
  kernel.setResultTypesAttr(b.getArrayAttr(resultTypes));
  EXPECT_TRUE(succeeded(verify(*module)));
  return std::move(module);
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

Value DefinitionBuilder::apply(StringRef let, const Values &index, StringRef type) {
  return dnf::ApplyOp::create(b, loc, typeNamed(type), FlatSymbolRefAttr::get(b.getStringAttr(let)), index);
}

Value DefinitionBuilder::psi(Value array, const Values &index) {
  return dnf::PsiOp::create(b, loc, mlir::cast<ArrayType>(array.getType()).getElementType(), array, index);
}

Value DefinitionBuilder::reduce(Monoid monoid, StringRef extent, llvm::function_ref<Term(Value)> term,
                                StringRef function) {
  Type type;
  Block *block = body({extent.str()}, [&](const Values &index) { return term(index[0]); }, type);
  const SymExpr &range = exprOf(extent).getValue();
  auto name = function.empty() ? FlatSymbolRefAttr() : FlatSymbolRefAttr::get(b.getStringAttr(function));
  auto op =
      dnf::ReduceOp::create(b, loc, type, monoid, range, b.getStringAttr(indexName(range.str())), TypeAttr(), name);
  op.getBody().push_back(block);
  return op.getResult();
}

void DefinitionBuilder::monoid(StringRef name, int64_t identity, llvm::function_ref<Value(Value, Value)> combine) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(kernel);
  Type type = b.getIndexType();
  auto op = MonoidOp::create(b, loc, name, TypedAttr(b.getIndexAttr(identity)));
  Block *block = b.createBlock(&op.getBody(), {}, {type, type}, {loc, loc});
  CombinedOp::create(b, loc, combine(block->getArgument(0), block->getArgument(1)));
}

Value DefinitionBuilder::number(double value, StringRef type) {
  Type element = typeNamed(type);
  if (isa<FloatType>(element))
    return arith::ConstantOp::create(b, loc, FloatAttr::get(element, value));
  return arith::ConstantOp::create(b, loc, IntegerAttr::get(element, static_cast<int64_t>(value)));
}

Value DefinitionBuilder::index(int64_t value) { return number(value, "index"); }

Value DefinitionBuilder::extent(StringRef expr) {
  ExprAttr attr = exprOf(expr);
  if (auto value = attr.getValue().getConstant())
    return index(*value);
  return dnf::ExtentOp::create(b, loc, attr);
}

template <typename Op> Op DefinitionBuilder::create(const Values &operands) {
  Type type = operands[0].getType();
  return Op::create(b, loc, TypeRange(ArrayRef<Type>(type)), ValueRange(operands));
}

Value DefinitionBuilder::op(ScalarFn fn, const Values &v) {
  bool isFloat = isa<FloatType>(v.back().getType());
  switch (fn) {
  case ScalarFn::neg:
    return create<arith::NegFOp>(v);
  case ScalarFn::abs:
    return create<math::AbsFOp>(v);
  case ScalarFn::exp:
    return create<math::ExpOp>(v);
  case ScalarFn::exp2:
    return create<math::Exp2Op>(v);
  case ScalarFn::add:
    return isFloat ? create<arith::AddFOp>(v) : Value(create<arith::AddIOp>(v));
  case ScalarFn::sub:
    return isFloat ? create<arith::SubFOp>(v) : Value(create<arith::SubIOp>(v));
  case ScalarFn::mul:
    return isFloat ? create<arith::MulFOp>(v) : Value(create<arith::MulIOp>(v));
  case ScalarFn::div:
    return isFloat ? create<arith::DivFOp>(v) : Value(create<arith::FloorDivSIOp>(v));
  case ScalarFn::min:
    return isFloat ? create<arith::MinimumFOp>(v) : Value(create<arith::MinSIOp>(v));
  case ScalarFn::max:
    return isFloat ? create<arith::MaximumFOp>(v) : Value(create<arith::MaxSIOp>(v));
  case ScalarFn::and_:
    return create<arith::AndIOp>(v);
  case ScalarFn::or_:
    return create<arith::OrIOp>(v);
  case ScalarFn::xor_:
    return create<arith::XOrIOp>(v);
  case ScalarFn::select:
    return arith::SelectOp::create(b, loc, v[0], v[1], v[2]);
  case ScalarFn::lt:
    if (isFloat)
      return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, v[0], v[1]);
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, v[0], v[1]);
  case ScalarFn::le:
    if (isFloat)
      return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLE, v[0], v[1]);
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle, v[0], v[1]);
  case ScalarFn::eq:
    if (isFloat)
      return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, v[0], v[1]);
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, v[0], v[1]);
  default:
    break;
  }
  ADD_FAILURE() << "no scalar op for '" << stringifyScalarFn(fn).str() << "'";
  return v[0];
}

/// The conversions that P5 is tried on.
Value DefinitionBuilder::cast(Value x, StringRef to, bool round) {
  Type from = x.getType(), type = typeNamed(to);
  Value result;
  if (isa<FloatType>(from) && isa<FloatType>(type)) {
    bool widens = from.getIntOrFloatBitWidth() < type.getIntOrFloatBitWidth();
    result = widens ? Value(arith::ExtFOp::create(b, loc, type, x)) : Value(arith::TruncFOp::create(b, loc, type, x));
  } else if (isa<FloatType>(from)) {
    result = arith::FPToSIOp::create(b, loc, type, x);
  } else if (type.isIndex()) {
    return arith::IndexCastOp::create(b, loc, type, x);
  } else if (from.isInteger(1)) {
    result = arith::UIToFPOp::create(b, loc, type, x);
  } else {
    if (from.isIndex())
      x = arith::IndexCastOp::create(b, loc, b.getI64Type(), x);
    result = arith::SIToFPOp::create(b, loc, type, x);
  }
  if (round && !result.getDefiningOp<arith::ExtFOp>())
    result.getDefiningOp()->setAttr("moa.round", b.getUnitAttr());
  return result;
}

Value DefinitionBuilder::both(Value p, Value q) { return op(ScalarFn::and_, {p, q}); }

/// Horner's scheme, axis by axis.
Value DefinitionBuilder::ravel(const Values &at, const Shape &shape) {
  if (at.empty())
    return index(0);
  Value position = at[0];
  for (size_t k = 1; k < at.size(); ++k)
    position = op(ScalarFn::add, {op(ScalarFn::mul, {position, extent(shape[k])}), at[k]});
  return position;
}

Values DefinitionBuilder::unravel(Value position, const Shape &shape) {
  Values digits(shape.size());
  for (size_t k = shape.size(); k-- > 1;) {
    Value n = extent(shape[k]), quotient = op(ScalarFn::div, {position, n});
    digits[k] = op(ScalarFn::sub, {position, op(ScalarFn::mul, {quotient, n})});
    position = quotient;
  }
  if (!digits.empty())
    digits[0] = position;
  return digits;
}

} // namespace moa::test
