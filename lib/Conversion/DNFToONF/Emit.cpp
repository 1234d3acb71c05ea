//===- Emit.cpp - emits plans as onf --------------------------------------===//
#include "dialects/MoA/IR/Monoid.h"
#include "lib/Conversion/DNFToONF/AffineForm.h"
#include "lib/Conversion/DNFToONF/Derivation.h"
#include "lib/Conversion/Limits.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <cmath>

using namespace mlir;
using namespace moa;

namespace {

/// A region under construction: the values that are bound and computed in it.
struct OpenRegion {
  explicit OpenRegion(OpBuilder builder) : builder(builder) {}
  OpBuilder builder;
  llvm::DenseMap<Expr, Value> values;
  /// For a fold that is computed where it is used: the expressions that its body reads.
  SmallVector<Expr> roots;
  /// For a fold: it may have no element.
  bool mayBeEmpty = false;
};

class ONFEmitter {
public:
  ONFEmitter(ExprContext &exprs, Derivation &derivation, dnf::KernelOp source, size_t most)
      : exprs(exprs), rules(derivation.getRules()), derivation(derivation), source(source), loc(source.getLoc()),
        place(source.getLoc()) {
    size_t ops = 0;
    source.walk([&](Operation *) { ++ops; });
    mostWritten = mostOps(ops, most);
  }

  /// Returns null, with an error, if a nest exceeds its limit.
  onf::KernelOp run(std::vector<NestPlan> &nests);

private:
  // Scalar code. Every expression is computed once, in the outermost region that binds its operands.
  // An element that is known to be in bounds only if a fold has elements stays in this fold.
  Value emit(Expr e);
  unsigned levelOf(Expr e);
  bool mayLeaveFolds(Expr load);
  Value emitOp(Expr e, OpBuilder &b, ArrayRef<Value> operands);
  Value emitLoad(Expr e);
  Value emitInnerReduce(Expr e, unsigned level);
  SmallVector<Expr> reductionsInSameFold(Expr e, unsigned level);
  Value find(Expr e);

  // Structure.
  LogicalResult emitNest(NestPlan &nest);
  LogicalResult checkSize(NestPlan &nest);
  void emitFold(NestPlan &nest, FoldPlan &fold);
  Value emitAcc(NestPlan &nest, AccPlan &acc);
  void emitRescale(AccPlan &acc, onf::AccOp op);
  void settle(NestPlan &nest, FoldPlan &fold, onf::FoldOp op);
  void emitOutput(NestPlan &nest, OutputPlan &output);
  void emitStore(NestPlan &nest, OutputPlan &output);

  /// Emits the terms of one index per axis, and returns the indices over them.
  onf::SubscriptsAttr emitTerms(ArrayRef<Expr> indices, SmallVectorImpl<Value> &terms);
  /// Returns where a reduction was written.
  Location placeOf(Expr reduce) { return exprs.placeOf(reduce, loc); }
  /// Returns a placeholder, whose value the caller binds.
  Expr placeholder(Type type) { return exprs.psi(-1 - nextPlaceholder++, {}, type); }
  StringAttr str(const Twine &text) { return StringAttr::get(exprs.getContext(), text); }
  ArrayAttr strings(ArrayRef<std::string> list) {
    SmallVector<Attribute> attrs;
    for (const std::string &text : list)
      attrs.push_back(str(text));
    return ArrayAttr::get(exprs.getContext(), attrs);
  }
  OpenRegion &push(OpBuilder builder) {
    levels.clear();
    regions.push_back(std::make_unique<OpenRegion>(builder));
    return *regions.back();
  }
  void pop() {
    levels.clear();
    regions.pop_back();
  }

  ExprContext &exprs;
  FoldRules &rules;
  Derivation &derivation;
  dnf::KernelOp source;
  Location loc;
  Location place; // of the result that is being computed
  onf::KernelOp target;
  std::vector<std::unique_ptr<OpenRegion>> regions;
  llvm::DenseMap<Expr, unsigned> levels;
  /// Row indices of the nest, with their extents.
  IndexExtents rows;
  /// A state that carries an axis, after its fold: the array and, if it may have ended singular,
  /// the condition under which it did and its value then.
  struct FinalAccumulator {
    Value state, singular, limit;
    int64_t index;
    Expr leftOut; // joins each element (RescaleRule::leftOut), or null
  };
  llvm::DenseMap<Expr, FinalAccumulator> accumulators;
  int64_t nextPlaceholder = 0;
  /// Reductions whose folds are being emitted.
  llvm::DenseSet<Expr> open;
  /// Operations that the nest has and may have, and folds per source location. A nest with more
  /// operations is left unfinished.
  size_t written = 0, mostWritten;
  llvm::MapVector<Location, size_t> copies;
};

} // namespace

//===----------------------------------------------------------------------===//
// Scalar code
//===----------------------------------------------------------------------===//

Value ONFEmitter::find(Expr e) {
  for (auto &region : regions)
    if (Value value = region->values.lookup(e))
      return value;
  return Value();
}

unsigned ONFEmitter::levelOf(Expr e) {
  for (auto [k, region] : llvm::enumerate(regions))
    if (region->values.count(e))
      return k;
  if (auto it = levels.find(e); it != levels.end())
    return it->second;
  unsigned level = 0;
  if (auto it = accumulators.find(e); it != accumulators.end())
    level = levelOf(exprs.index(it->second.index));
  else
    for (Expr operand : e->operands)
      level = std::max(level, levelOf(operand));
  if (e->kind == ExprKind::Psi)
    for (unsigned k = level + 1; k < regions.size(); ++k)
      if (regions[k]->mayBeEmpty && !mayLeaveFolds(e))
        level = k;
  return levels[e] = level;
}

/// Returns whether a load may leave folds that may be empty. A constant index, as in g[0], must be
/// known to be in bounds, because its axis may be empty.
bool ONFEmitter::mayLeaveFolds(Expr load) {
  bool isAtNumber = llvm::any_of(load->operands, [](Expr index) { return index->freeIndices.empty(); });
  return !isAtNumber || derivation.readsInside(load, rows);
}

Value ONFEmitter::emitOp(Expr e, OpBuilder &b, ArrayRef<Value> operands) {
  OperationState state(loc, *e->op, operands, e->type, e->attributes.getValue());
  return b.create(state)->getResult(0);
}

Value ONFEmitter::emit(Expr e) {
  if (Value value = find(e))
    return value;
  unsigned level = levelOf(e);
  OpBuilder &b = regions[level]->builder;
  Value result;
  switch (e->kind) {
  case ExprKind::Index:
    llvm_unreachable("an index is bound by a region");
  case ExprKind::Extent:
    result = onf::ExtentOp::create(b, loc, e->extent);
    break;
  case ExprKind::Const:
    result = arith::ConstantOp::create(b, loc, cast<TypedAttr>(e->value));
    break;
  case ExprKind::Psi:
    result = emitLoad(e);
    break;
  case ExprKind::Op: {
    SmallVector<Value> operands;
    for (Expr operand : e->operands)
      operands.push_back(emit(operand));
    result = emitOp(e, b, operands);
    break;
  }
  case ExprKind::Reduce:
    if (auto it = accumulators.find(e); it != accumulators.end()) {
      const FinalAccumulator &c = it->second;
      result = onf::AtOp::create(b, loc, e->type, c.state, emit(exprs.index(c.index)));
      if (c.leftOut)
        result = buildMonoid(b, loc, e->monoid, result, emit(c.leftOut));
      if (c.singular)
        result = arith::SelectOp::create(b, loc, c.singular, c.limit, result);
      break;
    }
    result = emitInnerReduce(e, level);
    break;
  }
  ++written;
  regions[level]->values[e] = result;
  return result;
}

/// Returns the reductions over the range of `e` that the same body reads and that do not read each
/// other (R2 inside a fold that is computed where it is used). They become states of one fold. In
/// separate folds each would repeat all its operands, at every level of a chain of definitions.
SmallVector<Expr> ONFEmitter::reductionsInSameFold(Expr e, unsigned level) {
  if (regions[level]->roots.empty())
    return {e};
  int64_t j = exprs.freshIndex(exprs.boundName(e));
  Expr present = exprs.open(e, j).second;
  auto isBound = [](Expr node) { return llvm::any_of(node->freeIndices, [](int64_t id) { return id < 0; }); };
  llvm::SetVector<Expr> candidates;
  for (Expr root : regions[level]->roots)
    walk(root, [&](Expr node) {
      if (node->kind == ExprKind::Reduce && !isBound(node) && node->extent == e->extent && node != e &&
          !open.contains(node) && !accumulators.contains(node) && !find(node) && levelOf(node) == level &&
          exprs.open(node, j).second == present)
        candidates.insert(node);
    });
  // Reductions that `e` reads come before it. Of the others, lower ones go first.
  walk(e, [&](Expr node) { candidates.remove(node); });
  SmallVector<Expr> sorted = candidates.takeVector(), group = {e};
  llvm::stable_sort(sorted, [](Expr a, Expr b) { return a->height < b->height; });
  for (Expr candidate : sorted) {
    bool isApart = true;
    walk(candidate,
         [&](Expr node) { isApart &= node == candidate || !(open.contains(node) || llvm::is_contained(group, node)); });
    if (isApart)
      group.push_back(candidate);
  }
  return group;
}

/// Emits a reduction that is no state of the row, as a fold where it is used.
Value ONFEmitter::emitInnerReduce(Expr e, unsigned level) {
  if (written > mostWritten) {
    OpBuilder &b = regions[level]->builder;
    return arith::ConstantOp::create(b, loc, b.getZeroAttr(e->type));
  }
  // Set aside the regions inside `level`, which do not matter to it.
  std::deque<std::unique_ptr<OpenRegion>> inner;
  while (regions.size() > level + 1) {
    inner.push_front(std::move(regions.back()));
    pop();
  }
  SmallVector<Expr> group = reductionsInSameFold(e, level);
  open.insert(group.begin(), group.end());
  OpBuilder &b = regions[level]->builder;
  std::string name = exprs.boundName(e).str();
  SmallVector<Type> types;
  for (Expr reduce : group)
    types.push_back(reduce->type);
  auto fold =
      onf::FoldOp::create(b, placeOf(e), types, str(name), e->extent, onf::AxisAttr(), ArrayAttr(), ValueRange{});
  b.setInsertionPoint(fold);
  int64_t j = exprs.freshIndex(name);
  OpBuilder nested(b);
  Block *block = nested.createBlock(&fold.getBody(), {}, b.getIndexType(), loc);
  OpenRegion &region = push(nested);
  region.values[exprs.index(j)] = block->getArgument(0);
  region.mayBeEmpty = knownExtent(e).value_or(0) <= 0 || e->getPresent();
  SmallVector<Expr> bodies;
  for (Expr reduce : group)
    bodies.push_back(exprs.open(reduce, j).first);
  region.roots = bodies;
  if (Expr present = exprs.open(e, j).second) {
    region.roots.push_back(present);
    onf::GuardOp::create(regions.back()->builder, loc, emit(present));
  }
  SmallVector<Value> states;
  for (auto [reduce, body] : llvm::zip_equal(group, bodies)) {
    AccPlan acc;
    acc.reduce = reduce;
    acc.name = exprs.nameOf(reduce, stringifyMonoid(reduce->monoid));
    acc.body = body;
    NestPlan none;
    states.push_back(emitAcc(none, acc));
  }
  onf::YieldOp::create(regions.back()->builder, loc, states);
  pop();
  b.setInsertionPointAfter(fold);
  for (auto [reduce, result] : llvm::zip_equal(group, fold.getResults())) {
    regions[level]->values[reduce] = result;
    open.erase(reduce);
  }
  for (std::unique_ptr<OpenRegion> &innerRegion : inner)
    regions.push_back(std::move(innerRegion));
  levels.clear();
  return fold.getResult(0);
}

//===----------------------------------------------------------------------===//
// Indices
//===----------------------------------------------------------------------===//

onf::SubscriptsAttr ONFEmitter::emitTerms(ArrayRef<Expr> indices, SmallVectorImpl<Value> &terms) {
  SmallVector<AffineForm> forms(indices.size());
  std::vector<onf::Subscript> axes(indices.size());
  llvm::SetVector<Expr> used; // in order of first use
  for (auto [form, axis, index] : llvm::zip_equal(forms, axes, indices)) {
    form.add(index, SymExpr(1));
    axis.constant = form.constant;
    used.insert_range(llvm::make_first_range(form.terms));
  }
  for (Expr term : used) {
    bool isKept = false;
    for (auto [form, axis] : llvm::zip_equal(forms, axes))
      if (SymExpr factor = form.terms.lookup(term); !factor.isZero()) {
        axis.factors[terms.size()] = factor;
        isKept = true;
      }
    if (isKept)
      terms.push_back(emit(term));
  }
  return onf::SubscriptsAttr::get(exprs.getContext(), std::move(axes));
}

Value ONFEmitter::emitLoad(Expr e) {
  unsigned level = levelOf(e);
  SmallVector<Value> terms;
  onf::SubscriptsAttr subscripts = emitTerms(e->operands, terms);
  return onf::LoadOp::create(regions[level]->builder, place, e->type, target.getBody().getArgument(e->id), terms,
                             subscripts);
}

//===----------------------------------------------------------------------===//
// Folds
//===----------------------------------------------------------------------===//

Value ONFEmitter::emitAcc(NestPlan &nest, AccPlan &acc) {
  Expr e = acc.reduce;
  ++copies[placeOf(e)];
  SmallVector<std::string> names;
  SmallVector<Attribute> extents;
  Type type = e->type;
  MLIRContext *context = exprs.getContext();
  if (acc.carried) {
    names.push_back(exprs.indexName(*acc.carried).str());
    extents.push_back(nest.carriedExtents[*acc.carried]);
    type = ArrayType::get(context, {cast<ExprAttr>(extents[0])}, e->type);
  }
  // Values that do not depend on a carried index belong to the fold's region.
  Value scalar = acc.carried ? Value() : emit(acc.body);
  SmallVector<Value> refs, others;
  for (const RescaleRule::Other &other : acc.rescale.others)
    others.push_back(emit(other.sum));
  SmallVector<Attribute> singular;
  for (auto [ref, value] : llvm::zip(acc.rescale.refs, acc.rescale.singular)) {
    refs.push_back(emit(ref));
    singular.push_back(FloatAttr::get(isa<FloatType>(ref->type) ? ref->type : Float64Type::get(context), value));
  }
  OpBuilder &b = regions.back()->builder;
  auto op = onf::AccOp::create(b, placeOf(e), type, e->monoid, str(acc.name), strings(names), b.getArrayAttr(extents),
                               refs, others, acc.rescale.resets ? ScalarFn::select : ScalarFn::mul,
                               b.getArrayAttr(singular), e->rounds, e->function);
  b.setInsertionPoint(op);
  OpBuilder nested(b);
  Block *block = nested.createBlock(&op.getValue(), {}, SmallVector<Type>(names.size(), b.getIndexType()),
                                    SmallVector<Location>(names.size(), loc));
  OpenRegion &region = push(nested);
  if (acc.carried)
    region.values[exprs.index(*acc.carried)] = block->getArgument(0);
  Value value = scalar ? scalar : emit(acc.body);
  onf::YieldOp::create(regions.back()->builder, loc, value);
  pop();
  if (!refs.empty())
    emitRescale(acc, op);
  b.setInsertionPointAfter(op);
  return op.getResult();
}

void ONFEmitter::emitRescale(AccPlan &acc, onf::AccOp op) {
  SmallVector<Type> types;
  for (Expr ref : acc.rescale.refs)
    types.append(2, ref->type);
  OpBuilder nested(op);
  Block *block = nested.createBlock(&op.getRepair(), {}, types, SmallVector<Location>(types.size(), loc));
  OpenRegion &region = push(nested);
  llvm::DenseMap<Expr, Expr> olds, news;
  StateSet states;
  for (auto [k, ref] : llvm::enumerate(acc.rescale.refs)) {
    states.insert(ref);
    olds[ref] = placeholder(ref->type);
    news[ref] = placeholder(ref->type);
    region.values[olds[ref]] = block->getArgument(2 * k);
    region.values[news[ref]] = block->getArgument(2 * k + 1);
  }
  auto oldOf = [&](Expr e) { return olds.lookup(e); };
  auto newOf = [&](Expr e) { return news.lookup(e); };
  Expr factor = acc.rescale.resets ? rules.unchanged(states, oldOf, newOf)
                                   : rules.correctionFactor(acc.rescale.h, states, oldOf, newOf);
  SmallVector<Value> values{emit(factor)};
  SmallVector<Expr> by;
  for (Expr h : acc.rescale.from)
    by.push_back(rules.difference(h, states, oldOf, newOf));
  for (const RescaleRule::Other &other : acc.rescale.others)
    values.push_back(emit(exprs.op("arith.mulf", {factor, rules.coefficient(other, by)})));
  onf::YieldOp::create(regions.back()->builder, loc, values);
  pop();
}

/// Binds the final values of a fold's states. While a ref is singular, every term is 0 · H and the
/// state stays at the identity. If a ref is still singular at the end of a non-empty range, the
/// value is 0 · H, as in the unmodified expression (NaN if H is ∞). Extremes are also joined with
/// the 0 of terms at which a ref would have been singular.
void ONFEmitter::settle(NestPlan &nest, FoldPlan &fold, onf::FoldOp op) {
  OpenRegion &row = *regions.back();
  OpBuilder &b = row.builder;
  for (auto [acc, result] : llvm::zip(fold.accs, op.getResults()))
    if (!acc->carried && acc->rescale.refs.empty())
      row.values[acc->reduce] = result;
  levels.clear();
  for (auto [acc, result] : llvm::zip(fold.accs, op.getResults())) {
    Value ended;
    for (auto [ref, value] : llvm::zip(acc->rescale.refs, acc->rescale.singular)) {
      if (std::isnan(value))
        continue;
      Value point = arith::ConstantOp::create(b, loc, FloatAttr::get(ref->type, value));
      Value at = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, emit(ref), point);
      ended = ended ? arith::OrIOp::create(b, loc, ended, at).getResult() : at;
    }
    Value limit;
    if (ended) {
      Value any = emit(derivation.makeAny(fold.extent, fold.index, fold.present));
      ended = arith::AndIOp::create(b, loc, any, ended);
      Expr zero = exprs.floatConstant(0, acc->reduce->type);
      Expr value = exprs.op("arith.mulf", {zero, acc->rescale.h});
      for (Expr h : acc->rescale.from)
        value = exprs.op("arith.mulf", {value, h});
      limit = emit(value);
    }
    Expr leftOut = acc->rescale.leftOut.empty() ? nullptr : derivation.makeLeftOut(*acc, fold.index);
    if (acc->carried) {
      accumulators[acc->reduce] = {result, ended, limit, *acc->carried, leftOut};
      continue;
    }
    Value value = leftOut ? buildMonoid(b, loc, acc->reduce->monoid, result, emit(leftOut)) : result;
    if (ended)
      value = arith::SelectOp::create(b, loc, ended, limit, value);
    row.values[acc->reduce] = value;
  }
  levels.clear();
}

void ONFEmitter::emitFold(NestPlan &nest, FoldPlan &fold) {
  SmallVector<Type> types;
  for (AccPlan *acc : fold.accs)
    types.push_back(acc->carried
                        ? ArrayType::get(exprs.getContext(), {nest.carriedExtents[*acc->carried]}, acc->reduce->type)
                        : acc->reduce->type);
  OpBuilder &b = regions.back()->builder;
  auto op = onf::FoldOp::create(b, placeOf(fold.accs.front()->reduce), types, str(exprs.indexName(fold.index)),
                                fold.extent, onf::AxisAttr(), ArrayAttr(), ValueRange{});
  b.setInsertionPoint(op);
  OpBuilder nested(b);
  Block *block = nested.createBlock(&op.getBody(), {}, b.getIndexType(), loc);
  OpenRegion &region = push(nested);
  region.values[exprs.index(fold.index)] = block->getArgument(0);
  region.mayBeEmpty = knownExtent(fold.extent).value_or(0) <= 0 || fold.present;
  if (fold.present) {
    Value condition = emit(fold.present);
    onf::GuardOp::create(regions.back()->builder, loc, condition);
  }
  SmallVector<Value> states;
  for (AccPlan *acc : fold.accs) {
    states.push_back(emitAcc(nest, *acc));
    if (!acc->carried)
      regions.back()->values[acc->reduce] = states.back();
    levels.clear();
  }
  onf::YieldOp::create(regions.back()->builder, loc, states);
  pop();
  b.setInsertionPointAfter(op);
  settle(nest, fold, op);
}

//===----------------------------------------------------------------------===//
// Nests and the kernel
//===----------------------------------------------------------------------===//

void ONFEmitter::emitStore(NestPlan &nest, OutputPlan &output) {
  Value value = emit(output.value);
  SmallVector<Expr> indices;
  for (int64_t row : nest.rows)
    indices.push_back(exprs.index(row));
  if (output.carried)
    indices.insert(indices.begin() + output.carriedAxis, exprs.index(*output.carried));
  unsigned array = target.getNumInputs() + output.result;
  SmallVector<Value> terms;
  onf::SubscriptsAttr subscripts = emitTerms(indices, terms);
  onf::StoreOp::create(regions.back()->builder, output.loc, value, target.getBody().getArgument(array), terms,
                       subscripts);
}

/// Strips the names from a location, because code would take them for its variables.
static Location withoutName(Location loc) {
  while (auto name = dyn_cast<NameLoc>(loc))
    loc = name.getChildLoc();
  return loc;
}

void ONFEmitter::emitOutput(NestPlan &nest, OutputPlan &output) {
  place = withoutName(output.loc);
  if (!output.carried)
    return emitStore(nest, output);
  OpBuilder &b = regions.back()->builder;
  Attribute extent = nest.carriedExtents[*output.carried];
  auto loop =
      onf::ForOp::create(b, output.loc, strings({exprs.indexName(*output.carried).str()}), b.getArrayAttr(extent));
  b.setInsertionPoint(loop);
  OpBuilder nested(b);
  Block *block = nested.createBlock(&loop.getBody(), {}, b.getIndexType(), output.loc);
  push(nested).values[exprs.index(*output.carried)] = block->getArgument(0);
  emitStore(nest, output);
  pop();
  b.setInsertionPointAfter(loop);
}

/// Reports a nest that exceeds its limit. In a chain of cascades each level is repeated at every
/// index, and in every pass, of the next level.
LogicalResult ONFEmitter::checkSize(NestPlan &nest) {
  if (written <= mostWritten)
    return success();
  auto *most = llvm::max_element(copies, [](auto &a, auto &b) { return a.second < b.second; });
  StringRef name = target.getArrayName(target.getNumInputs() + nest.outputs.front().result);
  return emitError(most->first)
         << "the loops of '" << name << "' take more than " << mostWritten
         << " operations, because they repeat this reduction at least " << most->second
         << " times, in every pass and for every index that reads it; make it, or a value on the "
            "way to '"
         << name << "', a result of another kernel";
}

LogicalResult ONFEmitter::emitNest(NestPlan &nest) {
  written = 0;
  copies.clear();
  OpBuilder b = OpBuilder::atBlockEnd(&target.getBody().front());
  auto loop = onf::ForOp::create(b, loc, strings(nest.names), b.getArrayAttr(nest.extents));
  size_t rank = nest.rows.size();
  Block *block =
      b.createBlock(&loop.getBody(), {}, SmallVector<Type>(rank, b.getIndexType()), SmallVector<Location>(rank, loc));
  accumulators.clear();
  OpenRegion &row = push(OpBuilder::atBlockEnd(block));
  rows = nest.rowExtents();
  for (auto [id, arg] : llvm::zip_equal(nest.rows, block->getArguments()))
    row.values[exprs.index(id)] = arg;
  place = withoutName(nest.outputs.front().loc);
  for (FoldPlan &fold : nest.folds)
    emitFold(nest, fold);
  for (OutputPlan &output : nest.outputs)
    emitOutput(nest, output);
  pop();
  return checkSize(nest);
}

onf::KernelOp ONFEmitter::run(std::vector<NestPlan> &nests) {
  OpBuilder b(source);
  target = onf::KernelOp::create(b, loc, source.getSymNameAttr(), source.getSymbols(), source.getRequires(),
                                 source.getArgNames(), source.getResultNames(), source.getResultTypes(),
                                 /*temporary_names=*/nullptr, /*temporary_types=*/nullptr, source.getWithinAttr());
  target->setDiscardableAttrs(source->getDiscardableAttrDictionary());
  SmallVector<Type> types(source.getBody().getArgumentTypes());
  for (Type type : source.getResultTypes().getAsValueRange<TypeAttr>())
    types.push_back(type);
  SmallVector<Attribute> stored;
  SmallVector<std::string> names;
  for (const Temporary &temporary : derivation.getTemporaries()) {
    names.push_back(temporary.name);
    types.push_back(temporary.type);
    stored.push_back(TypeAttr::get(temporary.type));
  }
  if (!names.empty()) {
    target.setTemporaryNamesAttr(strings(names));
    target.setTemporaryTypesAttr(b.getArrayAttr(stored));
  }
  b.createBlock(&target.getBody(), {}, types, SmallVector<Location>(types.size(), loc));
  for (NestPlan &nest : nests)
    if (failed(emitNest(nest))) {
      target.erase();
      return nullptr;
    }
  return target;
}

onf::KernelOp moa::emitONF(ExprContext &exprs, Derivation &derivation, dnf::KernelOp kernel,
                           std::vector<NestPlan> &nests, size_t most) {
  return ONFEmitter(exprs, derivation, kernel, most).run(nests);
}
