//===- Elaborator.cpp - kernels and expressions ---------------------------===//
#include "lib/Frontend/Elaborator.h"
#include "dialects/MoA/IR/Unsigned.h"
#include "lib/Frontend/Builtins.h"
#include "lib/Frontend/Quotients.h"
#include "llvm/ADT/ScopeExit.h"

using namespace mlir;
using namespace moa;
using namespace moa::frontend;

/// Limits on nested expressions, through all inlined calls, and on the operators of one kernel. A
/// program beyond them is treated as a mistake.
static constexpr unsigned maxDepth = 1000, maxOps = 100000;

Elaborator::Elaborator(const Program &program, const KernelDecl &kernel, Signature signature, Reporter &reporter,
                       OpBuilder &builder)
    : program(program), kernel(kernel), signature(std::move(signature)), reporter(reporter), builder(builder),
      emitter(reporter, builder, this->signature.computeType) {}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

KernelOp Elaborator::createKernel() {
  MLIRContext *context = reporter.getContext();
  auto strings = [&](auto &&range) {
    SmallVector<Attribute> attributes;
    for (const auto &text : range)
      attributes.push_back(builder.getStringAttr(text));
    return builder.getArrayAttr(attributes);
  };
  auto names = [&](const std::vector<ArrayDecl> &decls) {
    return strings(llvm::map_range(decls, [](const ArrayDecl &d) { return StringRef(d.name); }));
  };
  SmallVector<Attribute> resultTypes;
  for (const Signature::Array &array : signature.results)
    resultTypes.push_back(TypeAttr::get(ArrayType::get(context, array.shape, array.getStorage())));
  SmallVector<Attribute> within;
  for (const Signature::Array &array : signature.results)
    within.push_back(array.within ? Attribute(WithinAttr::get(context, *array.within)) : builder.getUnitAttr());
  bool hasTolerance = llvm::any_of(within, llvm::IsaPred<WithinAttr>);
  auto op =
      KernelOp::create(builder, reporter.location(kernel.loc), kernel.name, strings(signature.runtimeSymbols),
                       strings(signature.constraints), names(kernel.params), names(kernel.results),
                       builder.getArrayAttr(resultTypes), hasTolerance ? builder.getArrayAttr(within) : ArrayAttr());
  auto setRanges = [&](StringRef name, std::string Signature::Array::*range) {
    if (llvm::any_of(signature.params, [&](const auto &p) { return !(p.*range).empty(); }))
      op->setAttr(name, strings(llvm::map_range(signature.params, [&](const auto &p) { return StringRef(p.*range); })));
  };
  setRanges("moa.ranges", &Signature::Array::range);
  setRanges("moa.real_ranges", &Signature::Array::realRange);
  setUnsigned(op);
  if (!signature.assumptions.empty())
    op->setAttr("moa.assumes", strings(llvm::map_range(signature.assumptions,
                                                       [](const std::string &text) { return StringRef(text); })));
  Block &block = op.getBody().emplaceBlock();
  for (auto [decl, array] : llvm::zip(kernel.params, signature.params)) {
    auto type = ArrayType::get(context, array.shape, array.getStorage());
    ArrayTerm term = ArrayTerm::ofArray(block.addArgument(type, reporter.location(decl.loc)));
    if (!array.shape.empty()) {
      term.reads = floatBit(array.elementType);
      term.source = term.reads ? array.elementType : Type();
    }
    scope->params.push_back(std::move(term));
  }
  return op;
}

/// Names the unsigned parameters and results in the kernel's attributes.
void Elaborator::setUnsigned(KernelOp op) {
  SmallVector<StringRef> names;
  for (auto [decls, arrays] :
       {std::pair(&kernel.params, &signature.params), std::pair(&kernel.results, &signature.results)})
    for (auto [decl, array] : llvm::zip(*decls, *arrays))
      if (array.elementType.isUnsignedInteger())
        names.push_back(decl.name);
  if (!names.empty())
    op->setAttr(kUnsignedAttr, builder.getStrArrayAttr(names));
}

/// Binds the names of unsigned parameters to their values: the low w bits of an element, as an
/// integer. For example x : u8[N] is the sign-extended load & 255.
LogicalResult Elaborator::readUnsigned() {
  for (auto [decl, array, term] : llvm::zip(kernel.params, signature.params, scope->params)) {
    if (!array.elementType.isUnsignedInteger())
      continue;
    TermOr value = emitter.lowBits(decl.loc, term, array.elementType);
    if (failed(value))
      return failure();
    term = std::move(*value);
  }
  return success();
}

LogicalResult Elaborator::run() {
  Scope kernelScope;
  kernelScope.body = &kernel.body;
  kernelScope.symbols = signature.symbols;
  kernelScope.definitions.resize(kernel.body.definitions.size());
  scope = &kernelScope;
  KernelOp op = createKernel();
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&op.getBody().front());
  SmallVector<Value> values;
  if (failed(readUnsigned()) || failed(elaborateNeeded()) || failed(elaborateResults(values)) ||
      failed(checkUnneeded(op.getBody().front())) || emitter.lostConstants())
    return failure();
  ReturnOp::create(builder, reporter.location(kernel.body.end), values);
  if (failed(refuseZeroDivisors(op)))
    return failure();
  requireQuotients(op, signature.constraints);
  // Slices and quotients have added constraints.
  SmallVector<StringRef> constraints(signature.constraints.begin(), signature.constraints.end());
  op.setRequiresAttr(builder.getStrArrayAttr(constraints));
  return success();
}

LogicalResult Elaborator::elaborateDefinition(unsigned k, Context context) {
  const Definition &definition = scope->body->definitions[k];
  auto term = elaborate(*definition.value, context);
  if (failed(term))
    return failure();
  // The operator that computes a definition gets the user's name for it.
  if (term->isArray())
    if (Operation *op = term->array.getDefiningOp(); op && !isa<NameLoc>(op->getLoc()))
      op->setLoc(NameLoc::get(builder.getStringAttr(definition.name), op->getLoc()));
  scope->definitions[k] = std::move(*term);
  return success();
}

LogicalResult Elaborator::elaborateDefinitions(ArrayRef<unsigned> order) {
  for (unsigned k : order) {
    auto isReady = isDetermined(*scope->body->definitions[k].value);
    if (failed(isReady) || (*isReady && failed(elaborateDefinition(k, nullptr))))
      return failure();
  }
  return success();
}

/// Elaborates definitions that nothing used, without a context.
LogicalResult Elaborator::checkUnused(ArrayRef<unsigned> order) {
  for (unsigned k : order)
    if (!scope->definitions[k] && failed(elaborateDefinition(k, nullptr)))
      return failure();
  return success();
}

/// Returns the position of the last definition of a result's name.
static unsigned findDefinition(const Body &body, StringRef name) {
  unsigned last = 0;
  for (auto [k, definition] : llvm::enumerate(body.definitions))
    if (definition.name == name)
      last = k;
  return last;
}

static Cell cellOf(const Signature::Array &array) {
  Cell cell;
  for (const SymExpr &extent : array.shape)
    cell.push_back(Axis::of(extent));
  return cell;
}

LogicalResult Elaborator::elaborateNeeded() {
  const Body &body = kernel.body;
  std::map<unsigned, Cell> contexts;
  for (auto [decl, declared] : llvm::zip(kernel.results, signature.results))
    contexts[findDefinition(body, decl.name)] = cellOf(declared);
  for (unsigned k : body.needed) {
    auto context = contexts.find(k);
    if (failed(context == contexts.end() ? elaborateDefinitions(k) : elaborateDefinition(k, &context->second)))
      return failure();
  }
  return success();
}

LogicalResult Elaborator::elaborateResults(SmallVectorImpl<Value> &values) {
  for (auto [decl, declared] : llvm::zip(kernel.results, signature.results)) {
    auto value = elaborateResult(decl, declared);
    if (failed(value))
      return failure();
    values.push_back(*value);
  }
  return success();
}

FailureOr<Value> Elaborator::elaborateResult(const ArrayDecl &decl, const Signature::Array &declared) {
  unsigned last = findDefinition(kernel.body, decl.name);
  SourceLoc loc = kernel.body.definitions[last].loc;
  ArrayTerm term = *scope->definitions[last];
  bool fits = term.rank() == declared.shape.size();
  for (unsigned k = 0; fits && k < term.rank(); ++k) {
    Axis &axis = term.cell[k];
    fits = !axis.extent || *axis.extent == declared.shape[k];
    axis.extent = declared.shape[k];
  }
  if (!fits) {
    auto error = reporter.error(loc) << "result '" << decl.name << "' is declared with shape "
                                     << shapeText(declared.shape) << ", but this definition has shape "
                                     << shapeText(scope->definitions[last]->cell);
    const Cell &cell = scope->definitions[last]->cell;
    for (unsigned k = 0; k < cell.size() && cell.size() == declared.shape.size(); ++k)
      error << originText(cell[k], declared.shape[k]);
    if (term.rank() == 0)
      error << "; fill an array with an index form such as '[i < N] x'";
    error.attachNote(reporter.exact(decl.loc)) << "declared here";
    return failure();
  }
  bool wantsBool = declared.elementType.isInteger(1);
  bool wantsInteger = !wantsBool && isa<IntegerType>(declared.elementType);
  if (wantsBool != term.isBoolean() || (wantsInteger && !term.isInteger())) {
    std::string type = getTypeText(declared.elementType);
    auto error = reporter.error(loc) << "result '" << decl.name << "' is declared as " << type
                                     << ", but this definition is " << elementText(term);
    error << (wantsBool          ? "; compare, as in 'x != 0'"
              : term.isBoolean() ? "; make a number of it with select(p, 1, 0)"
                                 : "; convert it, as in '" + type + "(x)'");
    error.attachNote(reporter.exact(decl.loc)) << "declared here";
    return failure();
  }
  if (!wantsInteger && !wantsBool && (term.isInteger() || !term.isArray()))
    term = emitter.toFloat(loc, term, declared.elementType);
  // An f64 result keeps a cast to f64, even if the kernel computes in a narrower type.
  bool isWide = term.isArray() && term.elementType().isF64() && declared.elementType.isF64();
  auto full = emitter.materialise(loc, term, {}, /*widen=*/!isWide);
  if (failed(full))
    return failure();
  return full->array;
}

/// Checks the definitions that no result needs, and drops their operators.
LogicalResult Elaborator::checkUnneeded(Block &block) {
  size_t needed = std::distance(block.begin(), block.end());
  if (failed(elaborateDefinitions(kernel.body.unneeded)) || failed(checkUnused(kernel.body.unneeded)))
    return failure();
  for (size_t n = std::distance(block.begin(), block.end()); n > needed; --n)
    block.back().erase();
  return success();
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

TermOr Elaborator::elaborate(const Expr &expr, Context context) {
  if (depth >= maxDepth)
    return reporter.error(expr.loc) << "functions and expressions are nested deeper than " << maxDepth
                                    << " levels here";
  if (emitter.getOpCount() > maxOps)
    return reporter.error(expr.loc) << "the kernel has grown beyond " << maxOps
                                    << " operators; a function that calls another twice doubles it";
  auto hoisted = scope->hoisted.find(&expr);
  if (hoisted != scope->hoisted.end())
    return hoisted->second;
  ++depth;
  llvm::scope_exit leave([&] { --depth; });
  auto term = dispatch(expr, context);
  if (failed(term))
    return failure();
  term->loc = expr.loc;
  term->name = expr.kind == ExprKind::Name ? expr.name : std::string();
  term->text = expr.text;
  term->start = expr.start;
  return term;
}

TermOr Elaborator::dispatch(const Expr &expr, Context context) {
  switch (expr.kind) {
  case ExprKind::Integer:
    return ArrayTerm::ofSymbolic(SymExpr(expr.integer));
  case ExprKind::Real:
    return ArrayTerm::ofLiteral(expr.real);
  case ExprKind::Boolean:
    return emitter.constant(expr.loc, builder.getBoolAttr(expr.integer));
  case ExprKind::Name:
    return elaborateName(expr, context);
  case ExprKind::Unary: {
    auto operand = elaborate(expr.arg(0), context);
    return failed(operand) ? operand : emitter.map(expr.loc, expr.fn, expr.name, *operand);
  }
  case ExprKind::Binary:
    return elaborateBinary(expr, context);
  case ExprKind::Reduce:
    return elaborateReduce(expr);
  case ExprKind::Inner:
    return elaborateInner(expr);
  case ExprKind::Call:
    return elaborateCall(expr, context);
  case ExprKind::Index:
    return elaborateIndex(expr);
  case ExprKind::IndexForm:
    return elaborateIndexForm(expr, context);
  case ExprKind::Wildcard:
  case ExprKind::FunctionRef:
  case ExprKind::List:
    break;
  }
  return reporter.error(expr.loc) << "expected an array expression";
}

TermOr Elaborator::elaborateName(const Expr &expr, Context context) {
  switch (expr.ref.kind) {
  case Reference::IndexVariable:
    return emitter.frameIndex(expr.loc, scope->indexVars.at(expr.ref.index));
  case Reference::Definition:
    if (!scope->definitions[expr.ref.index] && failed(elaborateDefinition(expr.ref.index, context)))
      return failure();
    return *scope->definitions[expr.ref.index];
  case Reference::Parameter:
    return scope->params[expr.ref.index];
  default:
    break;
  }
  auto symbol = scope->symbols.find(expr.name);
  if (symbol != scope->symbols.end())
    return ArrayTerm::ofSymbolic(symbol->second);
  return ArrayTerm::ofLiteral(scope->symbols.reals.at(expr.name));
}

bool Elaborator::isPointwiseCall(const Expr &expr) const {
  if (expr.kind != ExprKind::Call || expr.ranks)
    return false;
  if (expr.callee >= 0)
    return program.functions[expr.callee].isPointwise();
  const Builtin *builtin = lookupBuiltin(expr.name);
  return !builtin || builtin->kind == Builtin::Pointwise || builtin->kind == Builtin::Mask;
}

/// Returns true if the extents of `expr` may depend on its context. Point-wise operators then lead
/// to an index form without an extent, or to a definition that is not elaborated yet.
bool Elaborator::needsContext(const Expr &expr) const {
  if (expr.kind == ExprKind::Name)
    return expr.ref.kind == Reference::Definition && !scope->definitions[expr.ref.index];
  if (expr.kind == ExprKind::IndexForm)
    return llvm::any_of(expr.vars, [](const IndexVar &var) { return !var.bound; });
  if (expr.kind != ExprKind::Unary && (expr.kind != ExprKind::Binary || expr.ranks) && !isPointwiseCall(expr))
    return false;
  return llvm::any_of(expr.args, [&](const ExprPtr &arg) { return needsContext(*arg); });
}

FailureOr<bool> Elaborator::isDetermined(const Expr &expr) {
  if (!needsContext(expr))
    return true;
  if (expr.kind == ExprKind::Name)
    return false;
  if (expr.kind == ExprKind::IndexForm) {
    for (const IndexVar &var : expr.vars) {
      std::optional<SymExpr> extent;
      SourceLoc where;
      if (var.isWildcard() || var.bound)
        continue;
      if (failed(findUses(expr.arg(0), var, extent, where)))
        return failure();
      if (!extent)
        return false;
    }
    return true;
  }
  Cell shape;
  if (failed(findContext(expr, shape)))
    return failure();
  for (const ExprPtr &arg : expr.args) {
    if (!shape.empty())
      return true;
    auto determined = isDetermined(*arg);
    if (failed(determined) || !*determined)
      return determined;
  }
  return true;
}

FailureOr<const ArrayTerm *> Elaborator::hoist(const Expr &expr) {
  auto term = elaborate(expr);
  if (failed(term))
    return failure();
  return &scope->hoisted.insert_or_assign(&expr, std::move(*term)).first->second;
}

/// Finds the shape of an index form whose extents follow from its own uses. Sibling forms take this
/// shape. A form with an open axis has none.
LogicalResult Elaborator::findContextOfForm(const Expr &form, Cell &shape) {
  auto determined = isDetermined(form);
  if (failed(determined) || !*determined)
    return determined;
  auto term = hoist(form);
  if (failed(term))
    return failure();
  if (llvm::all_of((*term)->cell, [](const Axis &axis) { return axis.extent.has_value(); }))
    shape = (*term)->cell;
  return success();
}

LogicalResult Elaborator::findContext(const Expr &expr, Cell &shape) {
  if (!needsContext(expr)) {
    auto term = hoist(expr);
    if (failed(term))
      return failure();
    shape = (*term)->cell;
    return success();
  }
  if (expr.kind == ExprKind::Name)
    return success();
  if (expr.kind == ExprKind::IndexForm)
    return findContextOfForm(expr, shape);
  for (const ExprPtr &arg : expr.args)
    if (shape.empty() && failed(findContext(*arg, shape)))
      return failure();
  return success();
}

FailureOr<std::vector<ArrayTerm>> Elaborator::elaborateOperands(ArrayRef<ExprPtr> args, Context context, bool combine) {
  std::vector<ArrayTerm> terms(args.size());
  SmallVector<bool> waits;
  Cell shape;
  for (auto [k, arg] : llvm::enumerate(args)) {
    waits.push_back(needsContext(*arg));
    if (waits.back())
      continue;
    auto term = elaborate(*arg);
    if (failed(term))
      return failure();
    terms[k] = std::move(*term);
    if (shape.empty())
      shape = terms[k].cell;
  }
  for (auto [k, arg] : llvm::enumerate(args))
    if (!context && shape.empty() && waits[k] && failed(findContext(*arg, shape)))
      return failure();
  if (!context && !shape.empty())
    context = &shape;
  for (auto [k, arg] : llvm::enumerate(args)) {
    if (!waits[k])
      continue;
    Cell own;
    if (!combine && failed(findContext(*arg, own)))
      return failure();
    auto term = elaborate(*arg, own.empty() ? context : nullptr);
    if (failed(term))
      return failure();
    terms[k] = std::move(*term);
  }
  return terms;
}

static bool hasNames(const Expr &expr) {
  return expr.kind == ExprKind::Name || llvm::any_of(expr.args, [](const ExprPtr &arg) { return hasNames(*arg); });
}

/// Reports an integer divided by a literal 0. A divisor that is a name with the value 0 may be
/// guarded by a condition, so it is checked at the end of the kernel.
LogicalResult Elaborator::checkDivisor(const Expr &expr, ArrayRef<ArrayTerm> terms) {
  bool divides = expr.fn == ScalarFn::div || expr.fn == ScalarFn::mod;
  if (!divides || !llvm::all_of(terms, [](const ArrayTerm &t) { return t.isInteger(); }) ||
      terms[1].kind != ArrayTerm::Symbolic || !terms[1].symbolic.isZero())
    return success();
  if (hasNames(expr.arg(1))) {
    zeroDivisors.try_emplace(LocationAttr(reporter.location(expr.loc)), &expr);
    return success();
  }
  auto error = reporter.error(terms[1].loc) << "'" << expr.name << "' on integers has no value for the divisor 0";
  if (expr.fn == ScalarFn::div)
    error << "; write 0.0 for a real quotient";
  return error;
}

static bool isEmpty(ArrayType type) {
  for (unsigned axis = 0; axis < type.getRank(); ++axis)
    if (type.getExtent(axis).isZero())
      return true;
  return false;
}

LogicalResult Elaborator::refuseZeroDivisors(KernelOp checked) {
  if (zeroDivisors.empty())
    return success();
  for (Operation *op : findNeeded(checked)) {
    auto named = dyn_cast<NameLoc>(op->getLoc());
    auto found = zeroDivisors.find(LocationAttr(named ? named.getChildLoc() : op->getLoc()));
    if (!isa<MapOp>(op) || found == zeroDivisors.end() || isEmpty(cast<MapOp>(op).getType()))
      continue;
    const Expr &expr = *found->second, &divisor = expr.arg(1);
    bool isName = divisor.kind == ExprKind::Name;
    std::string name = isName ? divisor.name : "n";
    return emitError(op->getLoc()) << "'" << expr.name << "' divides by "
                                   << (isName ? "'" + name + "', which" : "a size that")
                                   << " is 0 here; set it to at least 1, or let a condition keep the quotient from "
                                      "being needed, as in 'select("
                                   << name << " > 0, i " << expr.name << " " << name << ", 0)'";
  }
  return success();
}

TermOr Elaborator::elaborateBinary(const Expr &expr, Context context) {
  auto terms = elaborateOperands(expr.args, expr.ranks ? nullptr : context,
                                 /*combine=*/!expr.ranks);
  if (failed(terms) || failed(checkDivisor(expr, *terms)))
    return failure();
  if (!expr.ranks)
    return emitter.map(expr.loc, expr.fn, expr.name, *terms);
  unsigned outside = emitter.frameDepth();
  if (failed(emitter.openFrame(expr.loc, *terms, *expr.ranks, expr.name)))
    return failure();
  auto result = emitter.map(expr.loc, expr.fn, expr.name, *terms);
  return failed(result) ? result : emitter.closeFrame(*result, outside);
}

TermOr Elaborator::elaborateReduce(const Expr &expr) {
  auto term = elaborate(expr.arg(0));
  if (failed(term))
    return failure();
  int64_t rank = expr.ranks ? expr.ranks->front() : 1;
  if (term->rank() == 0 || rank == 0)
    return reporter.error(expr.loc) << "'" << expr.name << "' reduces the last axis, but "
                                    << (term->rank() ? "cells of rank 0 have none" : "this is a scalar");
  unsigned outside = emitter.frameDepth();
  if (failed(emitter.openFrame(expr.loc, *term, rank, expr.name)))
    return failure();
  auto result = emitter.reduce(expr.loc, expr.monoid, expr.name, *term, term->rank() - 1);
  if (succeeded(result))
    emitter.noteText(*result, expr);
  return failed(result) ? result : emitter.closeFrame(*result, outside);
}

TermOr Elaborator::elaborateInner(const Expr &expr) {
  std::vector<ArrayTerm> terms;
  SmallVector<int64_t> ranks;
  for (const ExprPtr &arg : expr.args) {
    auto term = elaborate(*arg);
    if (failed(term))
      return failure();
    ranks.push_back(expr.ranks ? (*expr.ranks)[terms.size()] : std::min(2u, term->rank()));
    terms.push_back(std::move(*term));
  }
  unsigned outside = emitter.frameDepth();
  if (failed(emitter.openFrame(expr.loc, terms, ranks, expr.name)))
    return failure();
  auto result = emitter.inner(expr.loc, expr.monoid, expr.fn, expr.name, terms[0], terms[1]);
  if (succeeded(result))
    emitter.noteText(*result, expr);
  return failed(result) ? result : emitter.closeFrame(*result, outside);
}

FailureOr<SymExpr> Elaborator::elaborateSymbolic(const Expr &expr, StringRef what, StringRef remedy) {
  auto term = elaborate(expr);
  if (failed(term))
    return failure();
  if (term->kind == ArrayTerm::Symbolic && term->rank() == 0)
    return term->symbolic;
  return reporter.error(expr.loc) << what << " is an integer expression over the symbols, but this is "
                                  << (term->rank()                       ? "an array"
                                      : term->kind == ArrayTerm::Literal ? realText(term->literal)
                                                                         : "a value known only at run time")
                                  << remedy;
}
