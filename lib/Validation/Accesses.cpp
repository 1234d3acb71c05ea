//===- Accesses.cpp - use relations of the normal form --------------------===//
#include "lib/Validation/Accesses.h"
#include "dialects/MoA/IR/Subscripts.h"
#include "lib/Validation/Readers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace moa;
using namespace moa::validation;

/// Above this number of conditions of one value only their common conjuncts are kept.
static constexpr size_t maxConditions = 16;

Term Variables::get(unsigned depth, Term extent, StringRef name) {
  Term &entry = made[{depth, extent}];
  if (!entry) {
    entry = terms.freshIndex(name);
    extents[entry] = extent;
  }
  return entry;
}

void Variables::setName(Term variable, StringRef name) {
  if (!name.empty() && named.insert(variable).second)
    terms.nameIndex(variable, name);
}

void Variables::setName(Term variable, BlockArgument index) {
  auto name = dyn_cast<NameLoc>(index.getLoc());
  if (name && variable->is(TermKind::Index))
    setName(variable, name.getName());
}

static void collect(Term term, llvm::SetVector<Term> &indices, DenseSet<Term> &seen) {
  if (!seen.insert(term).second)
    return;
  if (term->is(TermKind::Index) && term->value >= 0)
    indices.insert(term);
  for (Term operand : term->operands)
    collect(operand, indices, seen);
}

void validation::collectIndices(Term term, llvm::SetVector<Term> &indices) {
  DenseSet<Term> seen;
  collect(term, indices, seen);
}

Term validation::restrictTo(TermContext &terms, Term condition, const llvm::SetVector<Term> &indices) {
  Term kept = terms.truth(true);
  ArrayRef<Term> parts = condition->is(TermKind::And) ? condition->operands : ArrayRef<Term>(condition);
  for (Term part : parts) {
    llvm::SetVector<Term> mentioned;
    collectIndices(part, mentioned);
    if (llvm::all_of(mentioned, [&](Term index) { return indices.contains(index); }))
      kept = terms.both(kept, part);
  }
  return kept;
}

bool validation::visitChoice(TermContext &terms, Operation *op, Term condition,
                             llvm::function_ref<void(Value, Term)> visit, llvm::function_ref<Term(Value)> termOf) {
  bool isSelect = isa<arith::SelectOp>(op);
  bool isTruth = isa<arith::AndIOp, arith::OrIOp>(op) && op->getResult(0).getType().isInteger(1);
  if (!isSelect && !isTruth)
    return false;
  visit(op->getOperand(0), condition);
  Term first = termOf(op->getOperand(0)), otherwise = terms.negate(first);
  if (isSelect) {
    visit(op->getOperand(1), terms.both(condition, first));
    visit(op->getOperand(2), terms.both(condition, otherwise));
  } else {
    visit(op->getOperand(1), terms.both(condition, isa<arith::AndIOp>(op) ? first : otherwise));
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Values to visit
//===----------------------------------------------------------------------===//

Agenda::Agenda(TermContext &terms, Operation *kernel) : terms(terms) {
  kernel->walk([&](Operation *op) { positions.try_emplace(op, positions.size()); });
}

Agenda::Place Agenda::placeOf(Value value, unsigned env) const {
  auto result = cast<OpResult>(value);
  return {positions.lookup(result.getOwner()), env, result.getResultNumber()};
}

static ArrayRef<Term> partsOf(const Term &condition) {
  if (condition->isTrue())
    return {};
  return condition->is(TermKind::And) ? condition->operands : ArrayRef<Term>(condition);
}

static bool isBefore(Term a, Term b) { return a->id < b->id; }

/// Returns true if the conjuncts of `other` are a subset of those of `condition`, or `condition` is
/// false.
static bool implies(Term condition, Term other) {
  ArrayRef<Term> have = partsOf(condition), want = partsOf(other);
  return condition->isFalse() || std::includes(have.begin(), have.end(), want.begin(), want.end(), isBefore);
}

static Term inCommon(TermContext &terms, Term a, Term b) {
  Term result = terms.truth(true);
  for (Term part : partsOf(a))
    if (implies(b, part))
      result = terms.both(result, part);
  return result;
}

/// p ∧ q ∨ p ∧ ¬q = p
static bool resolve(TermContext &terms, Term a, Term b, Term &both) {
  ArrayRef<Term> x = partsOf(a), y = partsOf(b);
  if (x.size() != y.size())
    return false;
  SmallVector<Term> mine, other;
  std::set_difference(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(mine), isBefore);
  std::set_difference(y.begin(), y.end(), x.begin(), x.end(), std::back_inserter(other), isBefore);
  if (mine.size() != 1 || terms.negate(mine[0]) != other[0])
    return false;
  both = inCommon(terms, a, b);
  return true;
}

/// Adds `condition` to a disjunction. Returns false if `condition` implies a member and so adds
/// nothing. For example, a ∧ b adds nothing to {a}.
bool Agenda::merge(SmallVectorImpl<Term> &conditions, Term &condition) {
  for (size_t k = 0; k < conditions.size();) {
    Term other = conditions[k], both;
    if (implies(condition, other))
      return false;
    bool joins = resolve(terms, condition, other, both);
    if (!joins && !implies(other, condition)) {
      ++k;
      continue;
    }
    conditions.erase(conditions.begin() + k);
    if (joins) {
      condition = both;
      k = 0;
    }
  }
  return true;
}

void Agenda::add(Value value, unsigned env, Term condition) {
  Place place = placeOf(value, env);
  Entry &entry = entries[place];
  entry.value = value;
  if (llvm::any_of(entry.done, [&](Term done) { return implies(condition, done); }) ||
      !merge(entry.conditions, condition))
    return;
  if (entry.conditions.size() == maxConditions) {
    for (Term other : entry.conditions)
      condition = inCommon(terms, condition, other);
    entry.conditions.clear();
  }
  entry.conditions.push_back(condition);
  waiting.insert(place);
}

Agenda::Item Agenda::next() {
  Place place = *waiting.rbegin();
  waiting.erase(place);
  Entry &entry = entries[place];
  Item item{entry.value, std::get<1>(place), std::move(entry.conditions)};
  entry.done.append(item.conditions.begin(), item.conditions.end());
  entry.conditions.clear();
  return item;
}

std::vector<Access> validation::inOrder(std::vector<std::pair<Agenda::Place, Access>> &accesses) {
  llvm::stable_sort(accesses, [](auto &a, auto &b) { return a.first < b.first; });
  std::vector<Access> result;
  for (auto &[place, access] : accesses)
    result.push_back(std::move(access));
  accesses.clear();
  return result;
}

//===----------------------------------------------------------------------===//
// The normal form
//===----------------------------------------------------------------------===//

DNFAccesses::DNFAccesses(TermContext &terms, Variables &variables, dnf::KernelOp kernel)
    : terms(terms), variables(variables), kernel(kernel), agenda(terms, kernel) {
  for (auto let : kernel.getBody().getOps<dnf::LetOp>())
    lets[let.getSymName()] = let;
}

DNFAccesses::Env &DNFAccesses::makeEnv() {
  Env &env = *envs.emplace_back(std::make_unique<Env>());
  env.number = envs.size() - 1;
  return env;
}

std::vector<Access> DNFAccesses::of(dnf::OutputOp output) {
  agenda.clear();
  Env &env = makeEnv();
  for (auto [k, argument] : llvm::enumerate(output.getBody().getArguments())) {
    Term extent = terms.extent(getSymExpr(output.getDomain()[k]));
    StringRef name = cast<StringAttr>(output.getNames()[k]).getValue();
    env.values[argument] = variables.get(k, extent, name);
    variables.setName(env.values[argument], argument);
  }
  env.depth = output.getDomain().size();
  // An output without elements reads none.
  for (BlockArgument argument : output.getBody().getArguments())
    if (variables.isEmpty(env.values[argument]))
      return {};
  needYield(output.getBody().front(), env, terms.truth(true));
  while (!agenda.isEmpty()) {
    Agenda::Item item = agenda.next();
    for (Term condition : item.conditions)
      visit(item.value, *envs[item.env], condition);
  }
  return inOrder(accesses);
}

void DNFAccesses::needYield(Block &block, Env &env, Term condition) {
  auto yield = cast<dnf::YieldOp>(block.getTerminator());
  if (Value present = yield.getPresent()) {
    need(present, env, condition);
    condition = terms.both(condition, termOf(present, env));
  }
  need(yield.getValue(), env, condition);
}

void DNFAccesses::enter(dnf::ReduceOp op, Env &env) {
  BlockArgument index = op.getBody().getArgument(0);
  if (env.values.contains(index))
    return;
  unsigned depth = env.depth;
  for (Operation *around = op->getParentOp(); isa<dnf::ReduceOp>(around); around = around->getParentOp())
    ++depth;
  env.values[index] = variables.get(depth, terms.extent(op.getExtent()), op.getName());
  variables.setName(env.values[index], index);
}

void DNFAccesses::need(Value value, Env &env, Term condition) {
  if (value.getDefiningOp())
    return agenda.add(value, env.number, condition);
  // The index of a let is computed where the let is applied.
  auto argument = cast<BlockArgument>(value);
  if (env.outer && isa<dnf::LetOp>(argument.getOwner()->getParentOp()))
    need(env.call.getIndices()[argument.getArgNumber()], *env.outer, condition);
}

void DNFAccesses::visit(Value value, Env &env, Term condition) {
  Operation *op = value.getDefiningOp();
  if (visitChoice(
          terms, op, condition, [&](Value part, Term where) { need(part, env, where); },
          [&](Value part) { return termOf(part, env); }))
    return;
  if (auto reduce = dyn_cast<dnf::ReduceOp>(op)) {
    // Nothing is read over an empty range.
    Term extent = terms.extent(reduce.getExtent());
    if (extent->is(TermKind::Number) && extent->value <= 0)
      condition = terms.truth(false);
    enter(reduce, env);
    return needYield(reduce.getBody().front(), env, condition);
  }
  if (auto apply = dyn_cast<dnf::ApplyOp>(op))
    return visitApply(apply, env, condition);
  for (Value operand : op->getOperands())
    if (!isa<ArrayType>(operand.getType()))
      need(operand, env, condition);
  if (auto psi = dyn_cast<dnf::PsiOp>(op)) {
    SmallVector<Term> index;
    SmallVector<LocationAttr> written;
    ArrayRef<ExprAttr> shape = cast<ArrayType>(psi.getArray().getType()).getShape();
    for (auto [axis, entry] : llvm::enumerate(psi.getIndices())) {
      index.push_back(termOf(entry, env));
      written.push_back(writtenAs(psi, axis, env, shape[axis]));
    }
    accesses.push_back({agenda.placeOf(value, env.number),
                        {cast<BlockArgument>(psi.getArray()).getArgNumber(), index, condition, psi.getLoc(), written}});
  }
}

/// Returns the first index of a let that `value` is computed from, or null. Searches `depth`
/// operations.
static BlockArgument indexOfLet(Value value, unsigned depth) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return isa<dnf::LetOp>(argument.getOwner()->getParentOp()) ? argument : BlockArgument();
  if (depth > 0)
    for (Value operand : value.getDefiningOp()->getOperands())
      if (BlockArgument found = indexOfLet(operand, depth - 1))
        return found;
  return {};
}

/// Returns the source text of an index of a ψ or of the application of a let. The index of a let
/// itself has the text of the index that the let is applied to, if both have the same extent.
LocationAttr DNFAccesses::writtenAs(Operation *reader, unsigned index, Env &env, ExprAttr extent) {
  SmallVector<LocationAttr> texts = getSubscripts(reader->getLoc());
  LocationAttr text = index < texts.size() ? texts[index] : LocationAttr();
  auto psi = dyn_cast<dnf::PsiOp>(reader);
  Value value = psi ? psi.getIndices()[index] : cast<dnf::ApplyOp>(reader).getIndices()[index];
  BlockArgument argument = indexOfLet(value, 8);
  if (!argument || !env.outer)
    return text;
  auto let = cast<dnf::LetOp>(argument.getOwner()->getParentOp());
  auto own = cast<ExprAttr>(let.getDomain()[argument.getArgNumber()]);
  LocationAttr from = writtenAs(env.call, argument.getArgNumber(), *env.outer, own);
  bool passes = argument == value && own == extent;
  return !from ? text : !text || passes ? from : reachedFrom(text, from);
}

DNFAccesses::Env &DNFAccesses::applied(dnf::LetOp let, const Arguments &arguments, unsigned depth) {
  Env *&env = applications[{let, arguments, depth}];
  if (!env) {
    env = &makeEnv();
    env->depth = depth;
    for (auto [argument, term] : llvm::zip_equal(let.getBody().getArguments(), arguments)) {
      env->values[argument] = term;
      variables.setName(term, argument);
    }
  }
  return *env;
}

static unsigned depthAt(Operation *op) {
  unsigned depth = 0;
  for (Operation *around = op->getParentOp(); isa<dnf::ReduceOp>(around); around = around->getParentOp())
    ++depth;
  return depth;
}

/// Visits the body of a let at these indices. Of the condition only the conjuncts about these
/// indices are kept.
void DNFAccesses::visitApply(dnf::ApplyOp op, Env &env, Term condition) {
  Arguments arguments;
  llvm::SetVector<Term> mentioned;
  for (Value index : op.getIndices()) {
    arguments.push_back(termOf(index, env));
    collectIndices(arguments.back(), mentioned);
  }
  dnf::LetOp let = lets.lookup(op.getLet());
  Env &inner = applied(let, arguments, env.depth + depthAt(op));
  if (!inner.outer) {
    inner.outer = &env;
    inner.call = op;
  }
  needYield(let.getBody().front(), inner, restrictTo(terms, condition, mentioned));
}

Term DNFAccesses::termOfReduce(dnf::ReduceOp op, Env &env) {
  enter(op, env);
  auto yield = cast<dnf::YieldOp>(op.getBody().front().getTerminator());
  Term present = yield.getPresent() ? termOf(yield.getPresent(), env) : terms.truth(true);
  return terms.reduce(reductionName(op.getMonoid(), op.getFunctionAttr(), op.getOperandTypeAttr()),
                      op.getResult().getType(), env.values.lookup(op.getBody().getArgument(0)),
                      terms.extent(op.getExtent()), termOf(yield.getValue(), env), present);
}

Term DNFAccesses::termOf(Value value, Env &env) {
  if (Term known = env.values.lookup(value))
    return known;
  Operation *op = value.getDefiningOp();
  Term result = nullptr;
  if (auto reduce = dyn_cast<dnf::ReduceOp>(op)) {
    result = termOfReduce(reduce, env);
  } else {
    SmallVector<Term> operands;
    for (Value operand : op->getOperands())
      if (!isa<ArrayType>(operand.getType()))
        operands.push_back(termOf(operand, env));
    if (auto psi = dyn_cast<dnf::PsiOp>(op)) {
      result = terms.load(cast<BlockArgument>(psi.getArray()).getArgNumber(), operands, value.getType());
    } else if (auto extent = dyn_cast<dnf::ExtentOp>(op)) {
      result = terms.extent(extent.getExpr());
    } else if (auto apply = dyn_cast<dnf::ApplyOp>(op)) {
      dnf::LetOp let = lets.lookup(apply.getLet());
      Env &inner = applied(let, Arguments(operands.begin(), operands.end()), env.depth + depthAt(op));
      result = termOf(cast<dnf::YieldOp>(let.getBody().front().getTerminator()).getValue(), inner);
    } else {
      result = readScalar(terms, op, operands);
    }
  }
  if (!result)
    result = terms.scalar(op->getName().getStringRef(), value.getType(), {});
  return env.values[value] = result;
}
