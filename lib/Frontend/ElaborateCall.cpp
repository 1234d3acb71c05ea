//===- ElaborateCall.cpp - functions of the user and of the language ------===//
#include "lib/Frontend/Builtins.h"
#include "lib/Frontend/Elaborator.h"
#include "lib/Frontend/Lexer.h"
#include "lib/Support/Shorten.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace moa;
using namespace moa::frontend;

//===----------------------------------------------------------------------===//
// User-defined functions
//===----------------------------------------------------------------------===//

/// Binds the symbols of the cell patterns to their extents.
LogicalResult Elaborator::bindCells(SourceLoc loc, const FunctionDecl &function, ArrayRef<ArrayTerm> args,
                                    Scope &inner) {
  for (auto [param, arg] : llvm::zip(function.params, args)) {
    if (!param.cell)
      continue;
    for (auto [extent, axis] : llvm::zip(*param.cell, arg.cell)) {
      if (!axis.extent)
        return reporter.error(arg.loc) << "the shape " << shapeText(arg.cell) << " of this argument of '"
                                       << function.name
                                       << "' is not determined; write the extents, as in "
                                          "'[i < N]'";
      SymExpr expected(extent.value);
      if (!extent.symbol.empty())
        expected = inner.symbols.try_emplace(extent.symbol, *axis.extent).first->second;
      if (expected == *axis.extent)
        continue;
      auto error = reporter.error(arg.loc)
                   << "'" << function.name << "' expects '" << param.name << "' to have extent " << expected.str()
                   << " where this has " << axis.extent->str() << " (its cells are " << shapeText(arg.cell) << ")";
      error.attachNote(reporter.exact(extent.loc)) << "by this pattern";
      return error;
    }
  }
  return success();
}

TermOr Elaborator::applyFunction(SourceLoc loc, const FunctionDecl &function, ArrayRef<ArrayTerm> args) {
  std::vector<ArrayTerm> cells(args);
  SmallVector<int64_t> ranks;
  for (auto [param, arg] : llvm::zip(function.params, args))
    ranks.push_back(param.cell ? param.cell->size() : arg.rank());
  unsigned outside = emitter.frameDepth();
  if (failed(emitter.openFrame(loc, cells, ranks, function.name)))
    return failure();
  Scope inner;
  if (failed(bindCells(loc, function, cells, inner)))
    return failure();
  inner.body = &function.body;
  inner.params.assign(cells.begin(), cells.end());
  inner.definitions.resize(function.body.definitions.size());
  Scope *caller = std::exchange(scope, &inner);
  reporter.enterCall(loc, function.name);
  TermOr result = failure();
  if (succeeded(elaborateDefinitions(function.body.needed)) && succeeded(elaborateDefinitions(function.body.unneeded)))
    result = elaborate(*function.body.result);
  if (succeeded(result) && failed(checkUnused(function.body.unneeded)))
    result = failure();
  reporter.leaveCall();
  scope = caller;
  return failed(result) ? result : emitter.closeFrame(*result, outside);
}

TermOr Elaborator::applyRef(const Expr &ref, ArrayRef<ArrayTerm> args) {
  if (ref.callee >= 0) {
    const FunctionDecl &function = program.functions[ref.callee];
    if (function.params.size() == args.size())
      return applyFunction(ref.loc, function, args);
    return reporter.error(ref.loc) << "'" << ref.name << "' takes " << function.params.size()
                                   << " arguments, but is applied to " << args.size() << " here";
  }
  if (auto fn = getBinaryFn(ref.name); fn && args.size() == 2)
    return emitter.map(ref.loc, *fn, ref.name, args);
  const Builtin *builtin = lookupBuiltin(ref.name);
  if (builtin && builtin->minArgs == args.size())
    return emitter.map(ref.loc, builtin->fn, ref.name, args);
  return reporter.error(ref.loc) << "'" << ref.name << "' is not a function of " << args.size() << " scalars";
}

TermOr Elaborator::elaborateCall(const Expr &expr, Context context) {
  const Builtin *builtin = lookupBuiltin(expr.name);
  if (expr.callee < 0 && builtin)
    return elaborateBuiltin(expr, *builtin, context);
  bool isPointwise = isPointwiseCall(expr);
  auto args = elaborateOperands(expr.args, isPointwise ? context : nullptr, isPointwise);
  if (failed(args))
    return failure();
  if (expr.callee < 0) {
    auto type = signature.types.find(expr.name);
    return emitter.cast(expr.loc,
                        type != signature.types.end() ? type->second : getElementType(reporter.getContext(), expr.name),
                        args->front());
  }
  const FunctionDecl &function = program.functions[expr.callee];
  if (!expr.ranks)
    return applyFunction(expr.loc, function, *args);
  unsigned outside = emitter.frameDepth();
  if (failed(emitter.openFrame(expr.loc, *args, *expr.ranks, expr.name)))
    return failure();
  auto result = applyFunction(expr.loc, function, *args);
  return failed(result) ? result : emitter.closeFrame(*result, outside);
}

//===----------------------------------------------------------------------===//
// Builtin functions
//===----------------------------------------------------------------------===//

TermOr Elaborator::elaborateBuiltin(const Expr &expr, const Builtin &builtin, Context context) {
  switch (builtin.kind) {
  case Builtin::Pointwise:
  case Builtin::Mask: {
    auto args = elaborateOperands(expr.args, expr.ranks ? nullptr : context,
                                  /*combine=*/!expr.ranks);
    if (failed(args))
      return failure();
    if (builtin.kind == Builtin::Mask)
      return emitter.mask(expr.loc, (*args)[0], (*args)[1]);
    unsigned outside = emitter.frameDepth();
    if (expr.ranks && failed(emitter.openFrame(expr.loc, *args, *expr.ranks, expr.name)))
      return failure();
    auto result = emitter.map(expr.loc, builtin.fn, expr.name, *args);
    return failed(result) ? result : emitter.closeFrame(*result, outside);
  }
  case Builtin::Iota: {
    auto extent = elaborateSymbolic(expr.arg(0), "the extent of 'iota'");
    if (failed(extent) ||
        failed(requireNonNegative(expr.loc, *extent, "'iota' of a negative extent, " + extent->str())))
      return failure();
    return emitter.iota(expr.loc, *extent);
  }
  case Builtin::Psi:
    return elaboratePsi(expr);
  case Builtin::Cat:
    return elaborateCat(expr);
  case Builtin::Outer:
    return elaborateOuter(expr);
  case Builtin::Inner:
    return elaborateFullInner(expr);
  case Builtin::Reduce:
    return elaborateFullReduce(expr);
  default:
    break;
  }
  auto term = elaborate(expr.arg(0));
  if (failed(term))
    return failure();
  if (builtin.kind == Builtin::Transpose)
    return elaborateTranspose(expr, *term);
  if (builtin.kind == Builtin::Take || builtin.kind == Builtin::Drop)
    return elaborateTakeDrop(expr, builtin.kind == Builtin::Take, *term);
  if (builtin.kind == Builtin::Reverse || builtin.kind == Builtin::Rotate)
    return elaborateReverseRotate(expr, builtin, *term);
  return elaborateReshape(expr, *term);
}

FailureOr<unsigned> Elaborator::elaborateAxis(const Expr &expr, const ArrayTerm &term, StringRef what) {
  auto axis = elaborateSymbolic(expr, "an axis");
  if (failed(axis))
    return failure();
  auto value = axis->getConstant();
  int64_t rank = term.rank();
  if (value && *value < 0)
    *value += rank;
  if (value && *value >= 0 && *value < rank)
    return *value;
  return reporter.error(expr.loc) << "'" << what << "' on an array of shape " << shapeText(term.cell)
                                  << " expects an axis from " << -rank << " to " << rank - 1 << ", but got "
                                  << axis->str();
}

/// Elaborates the argument at `position`, an axis of the term. It is axis 0 if there is no such argument.
FailureOr<unsigned> Elaborator::elaborateOptionalAxis(const Expr &expr, unsigned position, const ArrayTerm &term) {
  if (term.rank() == 0)
    return reporter.error(expr.loc) << "'" << expr.name << "' needs an axis, but this is a scalar";
  if (expr.args.size() <= position)
    return 0u;
  return elaborateAxis(expr.arg(position), term, expr.name);
}

TermOr Elaborator::elaborateTranspose(const Expr &expr, const ArrayTerm &term) {
  int64_t rank = term.rank();
  SmallVector<int64_t> perm = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  if (expr.args.size() == 1) {
    if (rank < 2)
      return reporter.error(expr.loc) << "'transpose' exchanges the last two axes, but this has shape "
                                      << shapeText(term.cell);
    std::swap(perm[rank - 1], perm[rank - 2]);
    return emitter.transpose(expr.loc, term, perm);
  }
  const Expr &list = expr.arg(1);
  if (list.kind != ExprKind::List || static_cast<int64_t>(list.args.size()) != rank) {
    auto error = reporter.error(list.loc)
                 << "'transpose' of an array of shape " << shapeText(term.cell) << " takes a list of its " << rank
                 << (rank == 1 ? " axis, [0]" : " axes, as in [");
    // For example the last two axes swapped, which is also the default.
    if (rank > 1) {
      std::swap(perm[rank - 1], perm[rank - 2]);
      llvm::interleaveComma(perm, error);
      error << "]";
    }
    return failure();
  }
  SmallVector<bool> seen(rank, false);
  for (auto [k, arg] : llvm::enumerate(list.args)) {
    auto axis = elaborateAxis(*arg, term, "transpose");
    if (failed(axis))
      return failure();
    if (std::exchange(seen[*axis], true))
      return reporter.error(arg->loc) << "axis " << *axis << " stands twice in the permutation";
    perm[k] = *axis;
  }
  return emitter.transpose(expr.loc, term, perm);
}

LogicalResult Elaborator::requireNonNegative(SourceLoc loc, const SymExpr &e, StringRef what) {
  if (auto value = e.getConstant(); value && *value < 0)
    return reporter.error(loc) << what;
  // Extents are not negative, so neither is a sum of products of them.
  bool mayBeNegative = llvm::any_of(e.getTerms(), [](const auto &t) { return t.second < 0; });
  std::string text = e.str() + " >= 0";
  if (mayBeNegative && !llvm::is_contained(signature.constraints, text))
    signature.constraints.push_back(text);
  return success();
}

/// Takes or drops cells. A negative count counts from the end.
TermOr Elaborator::takeDrop(SourceLoc loc, bool isTake, const ArrayTerm &term, unsigned axis, const SymExpr &count) {
  const auto &extent = term.cell[axis].extent;
  if (!extent)
    return reporter.error(loc) << "the extent of axis " << axis << " is not determined";
  bool fromEnd = !count.isZero() && llvm::all_of(count.getTerms(), [](const auto &t) { return t.second < 0; });
  SymExpr size = fromEnd ? -count : count, rest = *extent - size;
  std::string what = std::string(isTake ? "'take'" : "'drop'") + " of " + size.str() +
                     " elements from an axis of extent " + extent->str();
  if (failed(requireNonNegative(loc, size, what)) || failed(requireNonNegative(loc, rest, what)))
    return failure();
  if (isTake)
    return emitter.slice(loc, term, axis, fromEnd ? rest : SymExpr(0), size);
  return emitter.slice(loc, term, axis, fromEnd ? SymExpr(0) : size, rest);
}

/// Returns the mask that replaces a count known only from array elements: `mask([i, _] i < n, x)`.
static std::string maskInstead(const Expr &expr, const Expr &count, bool isTake, const ArrayTerm &term, unsigned axis) {
  std::string list;
  for (unsigned k = 0; k < term.rank(); ++k)
    list += (k ? ", " : "") + std::string(k == axis ? "i" : "_");
  std::string bound = count.text.empty() ? "n" : shorten(count.text, 60);
  std::string array = expr.arg(0).text.empty() ? "x" : shorten(expr.arg(0).text, 60);
  return "; keep the axis whole and leave out the rest: 'mask([" + list + "] i " + (isTake ? "< " : ">= ") + bound +
         ", " + array + ")'";
}

TermOr Elaborator::elaborateTakeDrop(const Expr &expr, bool isTake, ArrayTerm term) {
  const Expr &count = expr.arg(1);
  SmallVector<std::pair<unsigned, const Expr *>> counts;
  if (count.kind == ExprKind::List) {
    if (expr.args.size() > 2 || count.args.size() > term.rank())
      return reporter.error(count.loc) << "a list of counts is for the leading axes of " << shapeText(term.cell)
                                       << ", in order, without an axis after it";
    for (auto [k, arg] : llvm::enumerate(count.args))
      counts.emplace_back(k, arg.get());
  } else {
    auto axis = elaborateOptionalAxis(expr, 2, term);
    if (failed(axis))
      return failure();
    counts.emplace_back(*axis, &count);
  }
  for (auto [axis, arg] : counts) {
    auto value = elaborateSymbolic(*arg, "a count", maskInstead(expr, *arg, isTake, term, axis));
    if (failed(value))
      return failure();
    auto next = takeDrop(expr.loc, isTake, term, axis, *value);
    if (failed(next))
      return failure();
    term = std::move(*next);
  }
  return term;
}

TermOr Elaborator::elaborateReverseRotate(const Expr &expr, const Builtin &builtin, const ArrayTerm &term) {
  bool isRotate = builtin.kind == Builtin::Rotate;
  auto axis = elaborateOptionalAxis(expr, isRotate ? 2 : 1, term);
  if (failed(axis))
    return failure();
  if (!isRotate)
    return emitter.reverse(expr.loc, term, *axis);
  auto by = elaborateSymbolic(expr.arg(1), "the distance of 'rotate'");
  return failed(by) ? TermOr(failure()) : emitter.rotate(expr.loc, term, *by, *axis);
}

TermOr Elaborator::elaborateReshape(const Expr &expr, const ArrayTerm &term) {
  SmallVector<SymExpr> shape;
  if (expr.args.size() == 1) {
    SymExpr size(1);
    for (const Axis &axis : term.cell)
      size = size * axis.extent.value_or(SymExpr(1));
    shape.push_back(size);
    return emitter.reshape(expr.loc, term, shape);
  }
  if (expr.arg(1).kind != ExprKind::List)
    return reporter.error(expr.arg(1).loc) << "'reshape' takes a shape, as in 'reshape(x, [m, n])'";
  for (const ExprPtr &arg : expr.arg(1).args) {
    auto extent = elaborateSymbolic(*arg, "an extent");
    if (failed(extent) ||
        failed(requireNonNegative(arg->loc, *extent, "an extent cannot be negative, but this is " + extent->str())))
      return failure();
    shape.push_back(*extent);
  }
  return emitter.reshape(expr.loc, term, shape);
}

TermOr Elaborator::elaboratePsi(const Expr &expr) {
  std::vector<std::optional<ArrayTerm>> subscripts;
  const Expr &index = expr.arg(0);
  SmallVector<const Expr *> parts;
  if (index.kind == ExprKind::List)
    for (const ExprPtr &arg : index.args)
      parts.push_back(arg.get());
  else
    parts.push_back(&index);
  for (const Expr *part : parts) {
    auto subscript = elaborate(*part);
    if (failed(subscript))
      return failure();
    subscripts.push_back(std::move(*subscript));
  }
  auto term = elaborate(expr.arg(1));
  return failed(term) ? term : emitter.index(expr.loc, *term, subscripts);
}

//===----------------------------------------------------------------------===//
// Operators that take functions
//===----------------------------------------------------------------------===//

FailureOr<Monoid> Elaborator::getMonoid(const Expr &ref) {
  if (auto monoid = getNamedMonoid(ref.name))
    return *monoid;
  if (ref.callee >= 0 && program.functions[ref.callee].isMonoid())
    return Monoid::user;
  auto error = reporter.error(ref.loc) << "'" << ref.name
                                       << "' is not a monoid; there are + * max min and or, and those that "
                                          "'monoid f(x, y) identity e { return … }' defines";
  if (ref.callee >= 0)
    error.attachNote(reporter.exact(program.functions[ref.callee].loc)) << "this function has no identity";
  return failure();
}

TermOr Elaborator::elaborateFullReduce(const Expr &expr) {
  auto monoid = getMonoid(expr.arg(0));
  if (failed(monoid))
    return failure();
  auto term = elaborate(expr.arg(1));
  if (failed(term))
    return failure();
  auto axis = elaborateAxis(expr.arg(2), *term, "reduce");
  if (failed(axis))
    return failure();
  return reduceWith(expr.arg(0), *monoid, expr.loc, "reduce", *term, *axis);
}

TermOr Elaborator::elaborateCat(const Expr &expr) {
  auto a = elaborate(expr.arg(0));
  if (failed(a))
    return failure();
  auto b = elaborate(expr.arg(1));
  if (failed(b))
    return failure();
  for (const ArrayTerm *term : {&*a, &*b})
    if (term->rank() == 0)
      return reporter.error(term->loc) << "'cat' needs an axis, but this is a scalar";
  auto axis = elaborateOptionalAxis(expr, 2, *a);
  return failed(axis) ? TermOr(failure()) : emitter.cat(expr.loc, *a, *b, *axis);
}

TermOr Elaborator::elaborateOuter(const Expr &expr) {
  auto a = elaborate(expr.arg(1));
  if (failed(a))
    return failure();
  auto b = elaborate(expr.arg(2));
  if (failed(b))
    return failure();
  unsigned outside = emitter.frameDepth();
  if (failed(emitter.openFrame(expr.loc, *a, ArrayRef<int64_t>({0}), "outer")) ||
      failed(emitter.openFrame(expr.loc, *b, ArrayRef<int64_t>({0}), "outer")))
    return failure();
  auto result = applyRef(expr.arg(0), {*a, *b});
  return failed(result) ? result : emitter.closeFrame(*result, outside);
}

/// inner(g, f, a, b): contracts the last axis of whole array a with the first of b.
TermOr Elaborator::elaborateFullInner(const Expr &expr) {
  auto monoid = getMonoid(expr.arg(0));
  if (failed(monoid))
    return failure();
  auto a = elaborate(expr.arg(2));
  if (failed(a))
    return failure();
  auto b = elaborate(expr.arg(3));
  if (failed(b))
    return failure();
  const Expr &ref = expr.arg(1);
  auto fn = ref.callee < 0 ? getBinaryFn(ref.name) : std::nullopt;
  bool isComparison = fn && *fn >= ScalarFn::eq && *fn <= ScalarFn::ge;
  if (fn && !isComparison && *monoid != Monoid::user)
    return emitter.inner(expr.loc, *monoid, *fn, "inner", *a, *b);
  if (a->rank() == 0 || b->rank() == 0)
    return reporter.error(expr.loc) << "'inner' contracts an axis, but this is a scalar";
  // Any other scalar function: reduce over the mapped terms.
  SmallVector<int64_t> perm = llvm::to_vector(llvm::seq<int64_t>(1, b->rank()));
  perm.push_back(0);
  auto last = emitter.transpose(expr.loc, *b, perm);
  unsigned outside = emitter.frameDepth();
  if (failed(last) || failed(emitter.openFrame(expr.loc, *a, ArrayRef<int64_t>({1}), "inner")) ||
      failed(emitter.openFrame(expr.loc, *last, ArrayRef<int64_t>({1}), "inner")))
    return failure();
  unsigned contracted = emitter.frameDepth();
  std::vector<ArrayTerm> terms = {*a, *last};
  if (failed(emitter.openFrame(expr.loc, terms, {0, 0}, "inner")))
    return failure();
  auto result = applyRef(ref, terms);
  if (failed(result))
    return failure();
  auto sum = reduceWith(expr.arg(0), *monoid, expr.loc, "inner", emitter.closeFrame(*result, contracted), 0);
  return failed(sum) ? sum : emitter.closeFrame(*sum, outside);
}
