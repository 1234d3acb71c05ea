//===- ElaborateMonoid.cpp - user-defined monoids -------------------------===//
//
// A user-defined monoid becomes one moa.monoid per element type that it reduces.
//
//===----------------------------------------------------------------------===//
#include "lib/Frontend/Builtins.h"
#include "lib/Frontend/Elaborator.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace moa;
using namespace moa::frontend;

TermOr Elaborator::reduceWith(const Expr &ref, Monoid monoid, SourceLoc loc, Spelling what, const ArrayTerm &term,
                              unsigned axis) {
  if (monoid != Monoid::user)
    return emitter.reduce(loc, monoid, what, term, axis);
  auto function = getMonoidOp(ref, emitter.reducedType(term));
  return failed(function) ? TermOr(failure()) : emitter.reduce(loc, monoid, what, term, axis, *function);
}

/// Returns the identity as a constant of the type: a number, `inf`, `true` or `false`.
FailureOr<TypedAttr> Elaborator::getIdentityAttr(const FunctionDecl &monoid, Type element, SourceLoc use) {
  Scope none;
  Scope *caller = std::exchange(scope, &none);
  auto term = elaborate(*monoid.identity);
  scope = caller;
  if (failed(term))
    return failure();
  std::optional<int64_t> integer;
  if (term->kind == ArrayTerm::Symbolic)
    integer = term->symbolic.getConstant();
  if (auto type = dyn_cast<FloatType>(element)) {
    if (term->kind == ArrayTerm::Literal)
      return TypedAttr(emitter.realConstant(monoid.identity->loc, term->literal, type));
    if (integer)
      return TypedAttr(FloatAttr::get(type, static_cast<double>(*integer)));
  } else if (element.isInteger(1)) {
    auto constant = term->isArray() ? term->array.getDefiningOp<ConstantOp>() : ConstantOp();
    if (constant && constant.getValue().getType() == element)
      return constant.getValue();
  } else if (integer) {
    return TypedAttr(IntegerAttr::get(element, *integer));
  }
  auto error = reporter.error(monoid.identity->loc)
               << "the identity of monoid '" << monoid.name << "' is not a constant of type " << getTypeText(element);
  error.attachNote(reporter.exact(use)) << "it reduces elements of that type here";
  return failure();
}

FailureOr<MonoidOp> Elaborator::getMonoidOp(const Expr &ref, Type element) {
  MonoidOp &op = monoids[{ref.callee, element.getAsOpaquePointer()}];
  if (op)
    return op;
  const FunctionDecl &monoid = program.functions[ref.callee];
  auto identity = getIdentityAttr(monoid, element, ref.loc);
  if (failed(identity))
    return failure();
  MLIRContext *context = reporter.getContext();
  auto module = builder.getBlock()->getParentOp()->getParentOfType<ModuleOp>();
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(module.getBody());
  std::string name = monoid.name;
  for (unsigned k = 1; module.lookupSymbol(name); ++k)
    name = monoid.name + std::to_string(k);
  Location loc = reporter.location(monoid.loc);
  auto made = MonoidOp::create(builder, loc, name, *identity);
  Type scalar = ArrayType::get(context, ArrayRef<SymExpr>(), element);
  Block *block = builder.createBlock(&made.getBody(), {}, {scalar, scalar}, {loc, loc});
  std::vector<ArrayTerm> args;
  for (auto [param, value] : llvm::zip(monoid.params, block->getArguments())) {
    args.push_back(ArrayTerm::ofArray(value));
    args.back().loc = param.loc;
    args.back().name = param.name;
  }
  auto result = applyFunction(monoid.loc, monoid, args);
  if (failed(result))
    return failure();
  auto whole = emitter.materialise(monoid.body.end, *result, {}, /*widen=*/true);
  if (failed(whole))
    return failure();
  if (whole->rank() != 0 || whole->array.getType() != scalar)
    return reporter.error(monoid.body.result->loc)
           << "monoid '" << monoid.name << "' combines two values of type " << getTypeText(element) << " and returns "
           << elementText(*whole) << (whole->rank() ? " of shape " + shapeText(whole->cell) : std::string());
  for (Operation &inner : *block)
    if (!isa<ConstantOp, MapOp, CastOp>(inner)) {
      auto error = mlir::emitError(inner.getLoc())
                   << "a monoid is made of scalar functions, but this works on an array";
      error.attachNote(loc) << "in monoid '" << monoid.name << "'";
      return failure();
    }
  CombinedOp::create(builder, loc, whole->array);
  return op = made;
}
