//===- MoADialect.cpp - dialect, types and monoids of moa -----------------===//
#include "dialects/MoA/IR/MoA.h"
#include "dialects/MoA/IR/Monoid.h"
#include "mlir/IR/BuiltinOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>
#include <limits>

using namespace mlir;
using namespace moa;

#include "dialects/MoA/IR/MoADialect.cpp.inc"
#include "dialects/MoA/IR/MoAEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/MoA/IR/MoAAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/MoA/IR/MoATypes.cpp.inc"

void MoADialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/MoA/IR/MoAAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/MoA/IR/MoATypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/MoA/IR/MoAOps.cpp.inc"
      >();
}

unsigned moa::getArity(ScalarFn fn) {
  if (fn == ScalarFn::select)
    return 3;
  return static_cast<int>(fn) >= static_cast<int>(ScalarFn::add) ? 2 : 1;
}

//===----------------------------------------------------------------------===//
// #moa.expr
//===----------------------------------------------------------------------===//

static ParseResult parseText(AsmParser &parser, SMLoc loc, StringRef text, ExprAttr &attr) {
  std::string why;
  auto expr = SymExpr::parse(text, &why);
  if (!expr)
    return parser.emitError(loc) << "expects an integer expression, but got '" << text << "': " << why;
  attr = ExprAttr::get(parser.getContext(), *expr);
  return success();
}

ParseResult moa::parseExpr(AsmParser &parser, ExprAttr &expr) {
  SMLoc loc = parser.getCurrentLocation();
  std::string text;
  return failure(parser.parseString(&text) || parseText(parser, loc, text, expr));
}

ParseResult moa::parseExprs(AsmParser &parser, ArrayAttr &exprs) {
  SmallVector<Attribute> list;
  auto parseOne = [&] {
    ExprAttr expr;
    ParseResult result = parseExpr(parser, expr);
    list.push_back(expr);
    return result;
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseOne))
    return failure();
  exprs = ArrayAttr::get(parser.getContext(), list);
  return success();
}

void moa::printExpr(AsmPrinter &printer, Operation *, ExprAttr expr) { printer << '"' << expr.getValue().str() << '"'; }

void moa::printExprs(AsmPrinter &printer, Operation *op, ArrayAttr exprs) {
  printer << '[';
  llvm::interleaveComma(exprs.getAsRange<ExprAttr>(), printer, [&](ExprAttr expr) { printExpr(printer, op, expr); });
  printer << ']';
}

ParseResult moa::parsePairs(AsmParser &parser, ArrayAttr &exprs) {
  SmallVector<Attribute> list;
  auto parseOne = [&] {
    ExprAttr x, y;
    ParseResult result = failure(parseExpr(parser, x) || parser.parseGreater() || parseExpr(parser, y));
    list.append({x, y});
    return result;
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseOne))
    return failure();
  exprs = ArrayAttr::get(parser.getContext(), list);
  return success();
}

void moa::printPairs(AsmPrinter &printer, Operation *op, ArrayAttr exprs) {
  auto list = llvm::to_vector(exprs.getAsRange<ExprAttr>());
  printer << '[';
  llvm::interleaveComma(llvm::seq<size_t>(0, list.size() / 2), printer, [&](size_t k) {
    printExpr(printer, op, list[2 * k]);
    printer << " > ";
    printExpr(printer, op, list[2 * k + 1]);
  });
  printer << ']';
}

Attribute ExprAttr::parse(AsmParser &parser, Type) {
  ExprAttr expr;
  return parser.parseLess() || parseExpr(parser, expr) || parser.parseGreater() ? ExprAttr() : expr;
}

void ExprAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printExpr(printer, nullptr, *this);
  printer << '>';
}

//===----------------------------------------------------------------------===//
// !moa.array
//===----------------------------------------------------------------------===//

static bool isPlainExtent(StringRef text) {
  if (llvm::all_of(text, llvm::isDigit))
    return !text.empty();
  return !text.empty() && !llvm::isDigit(text.front()) &&
         llvm::all_of(text, [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

static ParseResult parseExtent(AsmParser &parser, SmallVectorImpl<ExprAttr> &shape) {
  SMLoc loc = parser.getCurrentLocation();
  std::string text;
  int64_t number = 0;
  OptionalParseResult integer = parser.parseOptionalInteger(number);
  if (integer.has_value()) {
    if (failed(*integer))
      return failure();
    text = std::to_string(number);
  } else if (failed(parser.parseOptionalString(&text)) && failed(parser.parseKeywordOrString(&text))) {
    return failure();
  }
  return parseText(parser, loc, text, shape.emplace_back());
}

Type ArrayType::parse(AsmParser &parser) {
  SmallVector<ExprAttr> shape;
  Type elementType;
  if (parser.parseLess() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] { return parseExtent(parser, shape); }) ||
      parser.parseComma() || parser.parseType(elementType) || parser.parseGreater())
    return Type();
  return parser.getChecked<ArrayType>(parser.getContext(), shape, elementType);
}

void ArrayType::print(AsmPrinter &printer) const {
  printer << "<[";
  llvm::interleaveComma(getShape(), printer, [&](ExprAttr extent) {
    std::string text = extent.getValue().str();
    if (isPlainExtent(text))
      printer << text;
    else
      printer << '"' << text << '"';
  });
  printer << "], " << getElementType() << '>';
}

LogicalResult ArrayType::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<ExprAttr> shape,
                                Type elementType) {
  for (ExprAttr extent : shape)
    if (auto value = extent.getValue().getConstant(); value && *value < 0)
      return emitError() << "expects extents that are not negative (C2), but got " << *value;
  if (!isa<FloatType, IntegerType, IndexType>(elementType))
    return emitError() << "expects a float, integer or index element type "
                          "(C3), but got "
                       << elementType;
  return success();
}

ArrayType ArrayType::get(MLIRContext *context, ArrayRef<SymExpr> extents, Type elementType) {
  return get(context, llvm::map_to_vector(extents, [&](auto &e) { return ExprAttr::get(context, e); }), elementType);
}

ArrayType ArrayType::withElementType(Type type) const { return get(getContext(), getShape(), type); }

//===----------------------------------------------------------------------===//
// Monoids
//===----------------------------------------------------------------------===//

double moa::getIdentityValue(Monoid monoid) {
  switch (monoid) {
  case Monoid::add:
  case Monoid::or_:
    return 0;
  case Monoid::mul:
  case Monoid::and_:
    return 1;
  case Monoid::max:
    return -std::numeric_limits<double>::infinity();
  case Monoid::min:
    return std::numeric_limits<double>::infinity();
  case Monoid::user:
    break;
  }
  llvm_unreachable("not a named monoid");
}

TypedAttr moa::getIdentity(Monoid monoid, Type type) {
  double value = getIdentityValue(monoid);
  if (auto floatType = dyn_cast<FloatType>(type))
    return FloatAttr::get(floatType, value);
  if (std::isinf(value)) {
    unsigned width = isa<IndexType>(type) ? 64 : type.getIntOrFloatBitWidth();
    APInt extreme = monoid == Monoid::max ? APInt::getSignedMinValue(width) : APInt::getSignedMaxValue(width);
    return IntegerAttr::get(type, extreme);
  }
  return IntegerAttr::get(type, static_cast<int64_t>(value));
}

double moa::applyMonoid(Monoid monoid, double x, double y) {
  switch (monoid) {
  case Monoid::add:
    return x + y;
  case Monoid::mul:
    return x * y;
  case Monoid::max:
    return std::isnan(x) || std::isnan(y) ? std::nan("") : std::max(x, y);
  case Monoid::min:
    return std::isnan(x) || std::isnan(y) ? std::nan("") : std::min(x, y);
  case Monoid::and_:
    return x != 0 && y != 0;
  case Monoid::or_:
    return x != 0 || y != 0;
  case Monoid::user:
    break;
  }
  llvm_unreachable("not a named monoid");
}

Value moa::buildMonoid(OpBuilder &b, Location loc, Monoid monoid, Value x, Value y) {
  bool isFloat = isa<FloatType>(getElementTypeOrSelf(x.getType()));
  switch (monoid) {
  case Monoid::add:
    return isFloat ? arith::AddFOp::create(b, loc, x, y).getResult() : arith::AddIOp::create(b, loc, x, y).getResult();
  case Monoid::mul:
    return isFloat ? arith::MulFOp::create(b, loc, x, y).getResult() : arith::MulIOp::create(b, loc, x, y).getResult();
  case Monoid::max:
    return isFloat ? arith::MaximumFOp::create(b, loc, x, y).getResult()
                   : arith::MaxSIOp::create(b, loc, x, y).getResult();
  case Monoid::min:
    return isFloat ? arith::MinimumFOp::create(b, loc, x, y).getResult()
                   : arith::MinSIOp::create(b, loc, x, y).getResult();
  case Monoid::and_:
    return arith::AndIOp::create(b, loc, x, y);
  case Monoid::or_:
    return arith::OrIOp::create(b, loc, x, y);
  case Monoid::user:
    break;
  }
  llvm_unreachable("not a named monoid");
}

bool moa::isDefinedOn(Monoid monoid, Type type) {
  return (monoid == Monoid::user || isLogical(monoid) == type.isInteger(1)) &&
         isa<FloatType, IntegerType, IndexType>(type);
}

MonoidOp moa::lookupMonoid(Operation *op) {
  auto name = op->getAttrOfType<FlatSymbolRefAttr>("function");
  auto module = op->getParentOfType<ModuleOp>();
  return name && module ? module.lookupSymbol<MonoidOp>(name) : MonoidOp();
}

LogicalResult moa::verifyMonoidUse(Operation *op, Monoid monoid, FlatSymbolRefAttr function, Type element,
                                   StringRef rule, SymbolTableCollection &symbols) {
  if ((monoid == Monoid::user) != bool(function))
    return op->emitOpError("expects a function exactly for the monoid 'user' (")
           << rule << "), but got '" << stringifyMonoid(monoid) << "' " << (function ? "with one" : "without one");
  if (!function)
    return success();
  auto module = op->getParentOfType<ModuleOp>();
  auto found = module ? symbols.lookupSymbolIn<MonoidOp>(module, function) : MonoidOp();
  if (!found)
    return op->emitOpError("expects a moa.monoid (") << rule << "), but got " << function;
  if (found.getElementType() == element)
    return success();
  InFlightDiagnostic error = op->emitOpError("expects a monoid on ") << element << " (" << rule << "), but got "
                                                                     << function << " on " << found.getElementType();
  error.attachNote(found.getLoc()) << "the monoid is this one";
  return error;
}

TypedAttr moa::getIdentityOf(Operation *op, Monoid monoid, Type type) {
  return monoid == Monoid::user ? lookupMonoid(op).getIdentity() : getIdentity(monoid, type);
}

bool moa::mulDistributesOver(Monoid monoid) { return monoid == Monoid::add; }

bool moa::nonNegativeMulDistributesOver(Monoid monoid) {
  return monoid == Monoid::add || monoid == Monoid::max || monoid == Monoid::min;
}

bool moa::addDistributesOver(Monoid monoid) { return monoid == Monoid::max || monoid == Monoid::min; }
