//===- ElaborateIndex.cpp - subscripts and index forms --------------------===//
#include "lib/Frontend/Elaborator.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace moa;
using namespace moa::frontend;

TermOr Elaborator::elaborateIndex(const Expr &expr) {
  auto array = elaborate(expr.arg(0));
  if (failed(array))
    return failure();
  std::vector<std::optional<ArrayTerm>> subscripts;
  for (const ExprPtr &arg : llvm::drop_begin(expr.args)) {
    if (arg->kind == ExprKind::Wildcard) {
      subscripts.push_back(std::nullopt);
      continue;
    }
    auto subscript = elaborate(*arg);
    if (failed(subscript))
      return failure();
    subscripts.push_back(std::move(*subscript));
  }
  return emitter.index(expr.loc, *array, subscripts);
}

bool Elaborator::isClosed(const Expr &expr, ArrayRef<unsigned> inside) const {
  if (expr.kind == ExprKind::Name && expr.ref.kind == Reference::IndexVariable)
    return llvm::is_contained(inside, expr.ref.index) || scope->indexVars.count(expr.ref.index);
  SmallVector<unsigned> own(inside);
  for (const IndexVar &var : expr.vars)
    if (!var.isWildcard())
      own.push_back(var.id);
  return llvm::all_of(expr.args, [&](const ExprPtr &arg) { return isClosed(*arg, own); }) &&
         llvm::all_of(expr.vars, [&](const IndexVar &var) { return !var.bound || isClosed(*var.bound, inside); });
}

/// Looks for `x[…, i, …]`, where i ranges over an axis of x.
LogicalResult Elaborator::findUses(const Expr &expr, const IndexVar &var, std::optional<SymExpr> &extent,
                                   SourceLoc &where) {
  for (const ExprPtr &arg : expr.args)
    if (failed(findUses(*arg, var, extent, where)))
      return failure();
  if (expr.kind != ExprKind::Index || !isClosed(expr.arg(0)))
    return success();
  for (unsigned k = 1; k < expr.args.size(); ++k) {
    const Expr &subscript = expr.arg(k);
    if (subscript.kind != ExprKind::Name || subscript.ref.kind != Reference::IndexVariable ||
        subscript.ref.index != var.id)
      continue;
    auto array = hoist(expr.arg(0));
    if (failed(array))
      return failure();
    const Cell &cell = (*array)->cell;
    if (k > cell.size() || !cell[k - 1].extent)
      continue;
    if (extent && *extent != *cell[k - 1].extent) {
      auto error = reporter.error(subscript.loc)
                   << "index '" << var.name << "' ranges over " << cell[k - 1].extent->str() << " here and over "
                   << extent->str() << " elsewhere; write its extent, as in '" << var.name << " < " << extent->str()
                   << "'";
      error.attachNote(reporter.exact(where)) << "the other use is here";
      return error;
    }
    extent = cell[k - 1].extent;
    where = subscript.loc;
  }
  return success();
}

FailureOr<SymExpr> Elaborator::findExtent(const Expr &form, unsigned position, Context context) {
  const IndexVar &var = form.vars[position];
  if (var.bound) {
    std::string list;
    for (const auto &[k, other] : llvm::enumerate(form.vars))
      list += (k ? ", " : "") + (k == position ? var.name : "_");
    std::string limit = var.bound->kind == ExprKind::Name ? var.bound->name : "n";
    auto bound = elaborateSymbolic(*var.bound, "the extent of an index",
                                   "; let it run over a whole axis and leave out the rest, as in 'mask([" + list +
                                       "] " + var.name + " < " + limit + ", x)'");
    if (failed(bound))
      return failure();
    if (auto value = bound->getConstant(); value && *value < 0)
      return reporter.error(var.bound->loc) << "an extent cannot be negative, but this is " << *value;
    return bound;
  }
  std::optional<SymExpr> extent;
  SourceLoc where;
  if (failed(findUses(form.arg(0), var, extent, where)))
    return failure();
  if (!extent && context && context->size() == form.vars.size())
    extent = (*context)[position].extent;
  if (extent)
    return *extent;
  if (context && context->size() > form.vars.size()) {
    std::string list;
    for (size_t k = form.vars.size(); k < context->size(); ++k)
      list += "_, ";
    for (const auto &[k, other] : llvm::enumerate(form.vars))
      list += (k ? ", " : "") + other.name;
    return reporter.error(var.loc) << "the index form names " << form.vars.size() << " of the " << context->size()
                                   << " axes of " << shapeText(*context)
                                   << "; write '_' for each of the others, as in '[" << list
                                   << "] ...', or the extent, as in '" << var.name << " < ...'";
  }
  return reporter.error(var.loc) << "the extent of index '" << var.name
                                 << "' does not follow from use or context; write it, as in '" << var.name << " < N'";
}

/// Puts the axes of the body at the places of `_`. If the body has no axes, these stay virtual with
/// an unknown extent that the context decides.
TermOr Elaborator::placeWildcards(const Expr &form, ArrayTerm body, unsigned variables) {
  unsigned wildcards = form.vars.size() - variables;
  if (wildcards == 0)
    return body;
  unsigned own = body.rank() - variables;
  if (own == 0) {
    Cell cell;
    unsigned next = 0;
    for (const IndexVar &var : form.vars)
      cell.push_back(var.isWildcard() ? Axis::virtualOf(std::nullopt) : body.cell[next++]);
    body.cell = std::move(cell);
    return body;
  }
  if (own != wildcards)
    return reporter.error(form.loc) << "the body of this index form has " << own << (own == 1 ? " axis" : " axes")
                                    << ", but " << wildcards
                                    << " '_' stand for them; a body without axes may leave them open";
  SmallVector<int64_t> perm;
  unsigned variable = 0, rest = variables;
  for (const IndexVar &var : form.vars)
    perm.push_back(var.isWildcard() ? rest++ : variable++);
  return emitter.transpose(form.loc, body, perm);
}

/// Returns the name of the array that the index is a whole subscript of, or "".
static StringRef findSubscripted(const Expr &expr, const IndexVar &var) {
  if (expr.kind == ExprKind::Index && expr.arg(0).kind == ExprKind::Name)
    for (const ExprPtr &arg : llvm::drop_begin(expr.args))
      if (arg->kind == ExprKind::Name && arg->ref.kind == Reference::IndexVariable && arg->ref.index == var.id)
        return expr.arg(0).name;
  for (const ExprPtr &arg : expr.args)
    if (StringRef name = findSubscripted(*arg, var); !name.empty())
      return name;
  return "";
}

/// Records the array from which each index without a bound has its extent.
void Elaborator::noteOrigins(const Expr &form, Cell &cell) {
  unsigned next = 0;
  for (const IndexVar &var : form.vars) {
    if (var.isWildcard())
      continue;
    Axis &axis = cell[next++];
    StringRef name = var.bound ? StringRef() : findSubscripted(form.arg(0), var);
    if (name.empty())
      continue;
    axis.index = var.name;
    axis.from = name.str();
  }
}

TermOr Elaborator::elaborateIndexForm(const Expr &form, Context context) {
  SmallVector<SymExpr> extents;
  for (auto [k, var] : llvm::enumerate(form.vars)) {
    if (var.isWildcard())
      continue;
    auto extent = findExtent(form, k, context);
    if (failed(extent))
      return failure();
    extents.push_back(*extent);
  }
  unsigned outside = emitter.frameDepth(), variables = 0;
  for (const IndexVar &var : form.vars)
    if (!var.isWildcard())
      scope->indexVars[var.id] = emitter.pushFrame(extents[variables++], var.name);
  auto body = elaborate(form.arg(0));
  if (failed(body))
    return failure();
  for (const IndexVar &var : form.vars)
    scope->indexVars.erase(var.id);
  ArrayTerm term = emitter.closeFrame(*body, outside);
  noteOrigins(form, term.cell);
  return placeWildcards(form, std::move(term), variables);
}
