//===- ONFAccesses.cpp - multi-indices read back from addresses -----------===//
#include "dialects/ONF/IR/Hints.h"
#include "lib/Validation/Accesses.h"
#include "lib/Validation/Readers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace moa;
using namespace moa::validation;

ONFAccesses::ONFAccesses(TermContext &terms, Variables &variables, onf::KernelOp kernel)
    : terms(terms), variables(variables), kernel(kernel), agenda(terms, kernel) {
  forget();
}

void ONFAccesses::forget() {
  elements.clear();
  envs.clear();
  makeEnv({}, nullptr);
}

ONFAccesses::Env &ONFAccesses::makeEnv(onf::AccOp acc, Env *outer) {
  Env &env = *envs.emplace_back(std::make_unique<Env>());
  env.number = envs.size() - 1;
  env.acc = acc;
  env.outer = outer;
  env.level = outer ? outer->level : 0;
  return env;
}

/// Returns the environment of values in a region: that of the innermost enclosing state.
ONFAccesses::Env &ONFAccesses::homeOf(Region *region, Env &env) {
  Env *home = &env;
  while (home->outer && !home->acc.getValue().isAncestor(region))
    home = home->outer;
  return *home;
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

/// Counts the indices of the loops and folds around an operation.
unsigned ONFAccesses::depthOf(Operation *loop) {
  unsigned depth = 0;
  for (Operation *op = loop->getParentOp(); op != kernel.getOperation(); op = op->getParentOp())
    depth += op->getNumRegions() ? op->getRegion(0).getNumArguments() : 0;
  return depth;
}

/// Returns the term of an index of a loop, a fold or a state that carries axes.
Term ONFAccesses::termOfArgument(BlockArgument argument, unsigned level) {
  Operation *loop = argument.getOwner()->getParentOp();
  unsigned number = argument.getArgNumber(), depth = depthOf(loop) + number + (level << 8);
  Term extent;
  StringRef name;
  if (auto nest = dyn_cast<onf::ForOp>(loop)) {
    extent = terms.extent(getSymExpr(nest.getExtents()[number]));
    name = cast<StringAttr>(nest.getNames()[number]).getValue();
  } else if (auto fold = dyn_cast<onf::FoldOp>(loop)) {
    extent = terms.extent(fold.getExtent());
    name = fold.getName();
  } else if (auto acc = dyn_cast<onf::AccOp>(loop); acc && argument.getOwner()->getParent() == &acc.getValue()) {
    extent = terms.extent(getSymExpr(acc.getExtents()[number]));
    name = cast<StringAttr>(acc.getNames()[number]).getValue();
  } else {
    // The values of a state before and after a step.
    return terms.scalar("state" + std::to_string(argument.getArgNumber()), argument.getType(), {});
  }
  // These variables differ from those of the normal form, with which they are compared. Loops and
  // folds have separate spaces, since the same depth and extent may occur in both.
  unsigned space = isa<onf::ForOp>(loop) ? 1u << 16 : 1u << 17;
  Term index = variables.get(space + depth, extent, name);
  Term row = rows.lookup(index);
  return row ? row : index;
}

/// Returns one index per axis.
SmallVector<Term> ONFAccesses::multiIndex(onf::AccessOpInterface op, Env &env) {
  SmallVector<Term> index;
  for (unsigned axis = 0; axis < op.getArray().getType().getRank(); ++axis) {
    LinearIndex form = op.getIndex(axis);
    Term sum = terms.extent(form.constant.str());
    for (const auto &[value, factor] : form.terms)
      sum = terms.sum(sum, terms.product(termOf(value, env), terms.extent(factor.str())));
    index.push_back(sum);
  }
  return index;
}

//===----------------------------------------------------------------------===//
// Writes and reads
//===----------------------------------------------------------------------===//

/// Returns the loop of an index, or null.
static onf::ForOp loopOf(Value index) {
  auto argument = dyn_cast<BlockArgument>(index);
  return argument ? dyn_cast<onf::ForOp>(argument.getOwner()->getParentOp()) : onf::ForOp();
}

std::vector<Write> ONFAccesses::writes() {
  std::vector<Write> result;
  kernel.getBody().walk([&](onf::StoreOp store) {
    unsigned number = cast<BlockArgument>(store.getArray()).getArgNumber();
    Write write{number - kernel.getNumInputs(), multiIndex(store, *envs.front()), {}, store};
    for (Operation *op = store->getParentOp(); op != kernel.getOperation(); op = op->getParentOp())
      for (BlockArgument argument : op->getRegion(0).getArguments())
        write.loops.push_back(termOfArgument(argument, 0));
    for (auto [axis, extent] : llvm::enumerate(store.getArray().getType().getShape()))
      if (auto parts = onf::getParts(store.getIndex(axis)))
        if (onf::ForOp groups = loopOf(parts->group), members = loopOf(parts->member); groups && members) {
          auto extentOf = [](onf::ForOp loop, Value index) {
            return getSymExpr(loop.getExtents()[cast<BlockArgument>(index).getArgNumber()]);
          };
          if (extentOf(members, parts->member) == parts->size &&
              onf::isProduct(kernel, extent.getValue(), extentOf(groups, parts->group), parts->size))
            write.parts.push_back({unsigned(axis), termOf(parts->group, *envs.front()),
                                   termOf(parts->member, *envs.front()), terms.extent(parts->size)});
        }
    result.push_back(std::move(write));
  });
  return result;
}

std::vector<Access> ONFAccesses::of(const Write &write, const DenseMap<Term, Term> &names) {
  if (names != rows) {
    rows = names;
    forget();
  }
  agenda.clear();
  accesses.clear();
  temporaries.clear();
  ownLoops.clear();
  for (Term loop : write.loops)
    ownLoops.insert(names.contains(loop) ? names.lookup(loop) : loop);
  // A store in an empty loop reads nothing.
  if (llvm::any_of(write.loops, [&](Term loop) { return variables.isEmpty(loop); }))
    return {};
  need(cast<onf::StoreOp>(write.op).getValue(), *envs.front(), isComputed ? whereRun(write.op) : terms.truth(true));
  while (!agenda.isEmpty()) {
    Agenda::Item item = agenda.next();
    for (Term condition : item.conditions)
      visit(item.value, *envs[item.env], condition);
  }
  for (auto &[place, access] : accesses)
    join(access);
  return inOrder(accesses);
}

std::vector<Access> ONFAccesses::ofComputed(const Write &write, const DenseMap<Term, Term> &names) {
  isComputed = true;
  std::vector<Access> result = of(write, names);
  isComputed = false;
  return result;
}

/// Returns the condition on sizes under which the nest of a store is launched.
Term ONFAccesses::whereRun(Operation *store) {
  Term condition = terms.truth(true);
  for (Operation *op = store->getParentOp(); op != kernel.getOperation(); op = op->getParentOp())
    for (auto [x, y] : onf::getLaunchConditions(op))
      condition = terms.both(condition, terms.below(terms.extent(y.getValue()), terms.extent(x.getValue())));
  return condition;
}

bool ONFAccesses::computesArrays() {
  return kernel.getNumTemporaries() > 0 ||
         kernel.walk([](onf::AtOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

/// Returns whether a size is at least `least`, which is 0 or 1: a sum of products of symbols and of
/// quotients of such sizes.
static bool isSizeFrom(Term term, int64_t least) {
  SmallVector<std::pair<Term, int64_t>> parts;
  int64_t constant = 0;
  splitSum(term, parts, constant);
  auto isFactor = [](Term x) {
    return x->is(TermKind::Symbol) ||
           (x->is(TermKind::Quotient) && isSizeFrom(x->operands[0], 0) && isSizeFrom(x->operands[1], 1));
  };
  return constant >= least && llvm::all_of(parts, [&](const auto &part) {
           ArrayRef<Term> factors =
               part.first->is(TermKind::Product) ? part.first->operands : ArrayRef<Term>(part.first);
           return part.second >= 0 && llvm::all_of(factors, isFactor);
         });
}

/// Drops the two conditions of R4, L·p ≤ j < L·(p + 1) with p < ⌈M/L⌉. Exactly one p satisfies them
/// for every j < M, so they may go if p has no other use.
void ONFAccesses::dropParts(Access &access) {
  ArrayRef<Term> conditions =
      access.condition->is(TermKind::And) ? access.condition->operands : ArrayRef<Term>(access.condition);
  llvm::SetVector<Term> indices;
  collectIndices(access.condition, indices);
  for (Term part : indices) {
    Term count = variables.extentOf(part);
    if (!count || !count->is(TermKind::Quotient) || !isSizeFrom(count->operands[1], 1))
      continue;
    Term length = count->operands[1], first = terms.product(length, part);
    for (Term j : indices) {
      Term range = variables.extentOf(j), last = terms.difference(length, terms.number(1));
      if (j == part || !range || count != terms.quotient(terms.sum(range, last), length))
        continue;
      // The bounds: j − L·p ≥ 0 and L·p + L − 1 − j ≥ 0.
      Term lower = terms.notNegative(terms.difference(j, first)),
           upper = terms.notNegative(terms.sum(terms.difference(first, j), last));
      if (!llvm::is_contained(conditions, lower) || !llvm::is_contained(conditions, upper))
        continue;
      Term rest = terms.truth(true);
      for (Term kept : conditions)
        if (kept != lower && kept != upper)
          rest = terms.both(rest, kept);
      auto knows = [&](Term term) { return terms.substitute(term, {{part, terms.number(0)}}) != term; };
      if (knows(rest) || llvm::any_of(access.index, knows))
        continue;
      access.condition = rest;
      return dropParts(access);
    }
  }
}

/// Replaces the parts of R4 by one index. R4 reads element L·p + q of a range M if it is below M,
/// for every p < ⌈M/L⌉ and q < L. This reads each element of the range once, so L·p + q becomes one
/// index below M. The parts may also be read in reverse order. Indices of the store's loops are
/// kept: block sums as Σ_q x[16·p + q] for each p read one part.
void ONFAccesses::joinParts(Access &access) {
  ArrayRef<Term> conditions =
      access.condition->is(TermKind::And) ? access.condition->operands : ArrayRef<Term>(access.condition);
  for (Term condition : conditions) {
    if (!condition->is(TermKind::NotNegative))
      continue;
    SmallVector<std::pair<Term, int64_t>> parts;
    int64_t constant = 0;
    splitSum(condition->operands[0], parts, constant);
    for (auto [place, one] : parts)
      for (auto [part, factor] : parts) {
        if (ownLoops.contains(place) || ownLoops.contains(part))
          continue;
        Term size = variables.extentOf(place), count = variables.extentOf(part);
        if (one == -1 && place != part && size && count && factor > 1 && size == terms.number(factor)) {
          DenseMap<Term, Term> mirrored{{part, terms.difference(terms.sum(count, terms.number(-1)), part)}};
          Term range = terms.sum(terms.sum(terms.substitute(condition->operands[0], mirrored), terms.number(1)),
                                 terms.sum(place, terms.scaled(part, factor)));
          if (count != terms.quotient(terms.sum(range, terms.number(factor - 1)), size))
            continue;
          for (Term &index : access.index)
            index = terms.substitute(index, mirrored);
          access.condition = terms.substitute(access.condition, mirrored);
          return joinParts(access);
        }
        if (one != -1 || place == part || !size || !count || size != terms.number(-factor))
          continue;
        Term whole = terms.sum(place, terms.scaled(part, -factor));
        Term range = terms.sum(terms.sum(condition->operands[0], terms.number(1)), whole);
        if (count != terms.quotient(terms.sum(range, terms.number(-factor - 1)), size))
          continue;
        Term joined = variables.get((1u << 18) + place->id, range, terms.nameOf(place));
        DenseMap<Term, Term> with{{place, terms.sum(joined, terms.scaled(part, factor))}};
        for (Term &index : access.index)
          index = terms.substitute(index, with);
        access.condition = terms.under(terms.substitute(access.condition, with), terms.below(joined, range));
        return joinParts(access);
      }
  }
}

onf::StoreOp ONFAccesses::storeOf(onf::LoadOp load) {
  unsigned number = cast<BlockArgument>(load.getArray()).getArgNumber();
  return kernel.isTemporary(number) ? kernel.getStore(number) : onf::StoreOp();
}

/// Returns the environment of the nest that stores the element of a temporary at these indices.
ONFAccesses::Env &ONFAccesses::stored(onf::StoreOp store, Env &reader, ArrayRef<Term> indices) {
  std::vector<Term> key(indices.begin(), indices.end());
  key.push_back(terms.number(reader.level));
  Env *&entry = elements[{store, nullptr, std::move(key)}];
  if (entry)
    return *entry;
  entry = &makeEnv({}, nullptr);
  entry->level = reader.level + 1;
  // onf-verify has checked that the index on an axis is that of a loop, or 0.
  for (auto [axis, index] : llvm::enumerate(indices))
    if (Value loop = store.getIndex(axis).getValue())
      entry->values[loop] = index;
  return *entry;
}

static onf::AccOp accOf(onf::FoldOp fold, unsigned number) {
  return fold.getBody().front().getTerminator()->getOperand(number).getDefiningOp<onf::AccOp>();
}

/// Returns the conjuncts of a condition that mention none of these indices.
static Term without(TermContext &terms, Term condition, const llvm::SetVector<Term> &indices) {
  Term kept = terms.truth(true);
  for (Term part : condition->is(TermKind::And) ? condition->operands : ArrayRef<Term>(condition)) {
    llvm::SetVector<Term> mentioned;
    collectIndices(part, mentioned);
    if (llvm::none_of(mentioned, [&](Term index) { return indices.contains(index); }))
      kept = terms.both(kept, part);
  }
  return kept;
}

void ONFAccesses::need(Value value, Env &env, Term condition) {
  if (value.getDefiningOp() && !condition->isFalse())
    agenda.add(value, homeOf(value.getParentRegion(), env).number, condition);
}

void ONFAccesses::visit(Value value, Env &env, Term condition) {
  Operation *op = value.getDefiningOp();
  if (visitChoice(
          terms, op, condition, [&](Value part, Term where) { need(part, env, where); },
          [&](Value part) { return termOf(part, env); }))
    return;
  if (auto fold = dyn_cast<onf::FoldOp>(op))
    return visitState(fold, cast<OpResult>(value).getResultNumber(), env, condition);
  if (auto acc = dyn_cast<onf::AccOp>(op))
    return visitAcc(acc, env, condition);
  if (auto at = dyn_cast<onf::AtOp>(op))
    return visitAt(at, env, condition);
  for (Value operand : op->getOperands())
    if (!isa<ArrayType>(operand.getType()))
      need(operand, env, condition);
  if (auto load = dyn_cast<onf::LoadOp>(op)) {
    SmallVector<Term> index = multiIndex(load, env);
    Access access{cast<BlockArgument>(load.getArray()).getArgNumber(), index, condition, load.getLoc()};
    if (onf::StoreOp store = storeOf(load)) {
      if (!isComputed)
        need(store.getValue(), stored(store, env, index), condition);
      temporaries.push_back(std::move(access));
      return;
    }
    accesses.push_back({agenda.placeOf(value, env.number), std::move(access)});
  }
}

/// Visits an element of a state that carries axes. If arrays are computed as a whole, this means
/// every element: the index read is replaced by any index of the axis, and conditions on it are
/// dropped.
void ONFAccesses::visitAt(onf::AtOp at, Env &env, Term condition) {
  auto fold = at.getState().getDefiningOp<onf::FoldOp>();
  unsigned number = cast<OpResult>(at.getState()).getResultNumber();
  onf::AccOp acc = accOf(fold, number);
  SmallVector<Term> indices;
  llvm::SetVector<Term> known;
  for (Value index : at.getIndices()) {
    need(index, env, condition);
    indices.push_back(termOf(index, env));
    collectIndices(indices.back(), known);
  }
  if (isComputed) {
    condition = without(terms, condition, known);
    for (auto [axis, extent] : llvm::enumerate(acc.getExtents().getAsValueRange<ExprAttr>()))
      indices[axis] = variables.get((1u << 19) + depthOf(acc) + axis + (env.level << 8), terms.extent(extent),
                                    cast<StringAttr>(acc.getNames()[axis]).getValue());
  }
  visitState(fold, number, carried(acc, env, indices), condition);
}

/// Returns the environment in which the carried axes of a state have these indices.
ONFAccesses::Env &ONFAccesses::carried(onf::AccOp acc, Env &env, ArrayRef<Term> indices) {
  Env &outer = homeOf(acc->getParentRegion(), env);
  Env *&entry = elements[{acc, &outer, std::vector<Term>(indices.begin(), indices.end())}];
  if (!entry) {
    entry = &makeEnv(acc, &outer);
    for (auto [argument, index] : llvm::zip_equal(acc.getValue().getArguments(), indices))
      entry->values[argument] = index;
  }
  return *entry;
}

void ONFAccesses::visitState(onf::FoldOp fold, unsigned number, Env &env, Term condition) {
  Term extent = terms.extent(fold.getExtent());
  if (extent->is(TermKind::Number) && extent->value <= 0)
    return;
  for (auto guard : fold.getBody().getOps<onf::GuardOp>()) {
    need(guard.getCondition(), env, condition);
    condition = terms.both(condition, termOf(guard.getCondition(), env));
  }
  // The state belongs to this environment, although its operation stands outside its elements.
  if (!condition->isFalse())
    agenda.add(accOf(fold, number).getResult(), env.number, condition);
}

void ONFAccesses::visitAcc(onf::AccOp acc, Env &env, Term condition) {
  for (ValueRange states : {acc.getRefs(), acc.getOthers()})
    for (Value state : states)
      need(state, env, condition);
  for (Region *region : {&acc.getValue(), &acc.getRepair()})
    if (!region->empty())
      for (Value value : region->front().getTerminator()->getOperands())
        need(value, env, condition);
}

//===----------------------------------------------------------------------===//
// Terms
//===----------------------------------------------------------------------===//

/// Returns the state at the end of its fold as a reduction. If its terms refer to other states,
/// these have their final values. This is the meaning of rescaling by R3, and of terms that start
/// again.
Term ONFAccesses::termOfState(onf::AccOp acc, Env &env) {
  auto fold = cast<onf::FoldOp>(acc->getParentOp());
  Term present = terms.truth(true);
  for (auto guard : fold.getBody().getOps<onf::GuardOp>())
    present = terms.both(present, termOf(guard.getCondition(), env));
  Value value = acc.getValue().front().getTerminator()->getOperand(0);
  return terms.reduce(reductionName(acc.getMonoid(), acc.getFunctionAttr(), acc.getOperandTypeAttr()), value.getType(),
                      termOfArgument(fold.getBody().getArgument(0), env.level), terms.extent(fold.getExtent()),
                      termOf(value, env), present);
}

Term ONFAccesses::termOf(Value value, Env &env) {
  Env &home = homeOf(value.getParentRegion(), env);
  if (Term known = home.values.lookup(value))
    return known;
  Term result = compute(value, home);
  return home.values[value] = result;
}

Term ONFAccesses::compute(Value value, Env &env) {
  Term result = nullptr;
  Operation *op = value.getDefiningOp();
  if (!op) {
    result = termOfArgument(cast<BlockArgument>(value), env.level);
  } else if (auto fold = dyn_cast<onf::FoldOp>(op)) {
    result = termOfState(accOf(fold, cast<OpResult>(value).getResultNumber()), env);
  } else if (auto at = dyn_cast<onf::AtOp>(op)) {
    SmallVector<Term> indices;
    for (Value index : at.getIndices())
      indices.push_back(termOf(index, env));
    onf::AccOp acc = accOf(at.getState().getDefiningOp<onf::FoldOp>(), cast<OpResult>(at.getState()).getResultNumber());
    result = termOfState(acc, carried(acc, env, indices));
  } else if (auto extent = dyn_cast<onf::ExtentOp>(op)) {
    result = terms.extent(extent.getExpr());
  } else if (auto load = dyn_cast<onf::LoadOp>(op)) {
    SmallVector<Term> index = multiIndex(load, env);
    if (onf::StoreOp store = storeOf(load))
      result = terms.cast(termOf(store.getValue(), stored(store, env, index)), value.getType());
    else
      result = terms.load(cast<BlockArgument>(load.getArray()).getArgNumber(), index, value.getType());
  } else if (auto acc = dyn_cast<onf::AccOp>(op)) {
    if (acc.getExtents().empty())
      result = termOfState(acc, env);
  } else {
    SmallVector<Term> operands;
    for (Value operand : op->getOperands())
      operands.push_back(termOf(operand, env));
    result = readScalar(terms, op, operands);
  }
  // A state that carries axes, as a whole, is an opaque term.
  if (!result) {
    Term &whole = wholes[value];
    if (!whole)
      whole = terms.scalar("state " + std::to_string(terms.size()), value.getType(), {});
    result = whole;
  }
  return result;
}
