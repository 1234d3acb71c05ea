//===- Accesses.cpp - use relations of the normal form --------------------===//
#include "lib/Validation/Accesses.h"
#include "lib/Validation/Readers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace moa;
using namespace moa::validation;

Term Variables::get(unsigned depth, Term extent, StringRef name) {
  Term &entry = made[{depth, extent}];
  if (!entry) {
    entry = terms.freshIndex(name);
    extents[entry] = extent;
  }
  return entry;
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

Term validation::restrictTo(TermContext &terms, Term condition,
                            const llvm::SetVector<Term> &indices) {
  Term kept = terms.truth(true);
  ArrayRef<Term> parts =
      condition->is(TermKind::And) ? condition->operands : ArrayRef<Term>(condition);
  for (Term part : parts) {
    llvm::SetVector<Term> mentioned;
    collectIndices(part, mentioned);
    if (llvm::all_of(mentioned, [&](Term index) { return indices.contains(index); }))
      kept = terms.both(kept, part);
  }
  return kept;
}

bool validation::visitChoice(TermContext &terms, Operation *op, Term condition,
                             llvm::function_ref<void(Value, Term)> visit,
                             llvm::function_ref<Term(Value)> termOf) {
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

DNFAccesses::DNFAccesses(TermContext &terms, Variables &variables, dnf::KernelOp kernel)
    : terms(terms), variables(variables), kernel(kernel) {
  for (auto let : kernel.getBody().getOps<dnf::LetOp>())
    lets[let.getSymName()] = let;
}

std::vector<Access> DNFAccesses::of(dnf::OutputOp output) {
  std::vector<Access> result;
  accesses = &result;
  visited.clear();
  Env &env = *outputs.emplace_back(std::make_unique<Env>());
  for (auto [k, argument] : llvm::enumerate(output.getBody().getArguments())) {
    Term extent = terms.extent(cast<StringAttr>(output.getDomain()[k]).getValue());
    StringRef name = cast<StringAttr>(output.getNames()[k]).getValue();
    env.values[argument] = variables.get(k, extent, name);
  }
  env.depth = output.getDomain().size();
  // An output without elements reads none.
  for (BlockArgument argument : output.getBody().getArguments())
    if (variables.isEmpty(env.values[argument]))
      return result;
  visitYield(output.getBody().front(), env, terms.truth(true));
  return result;
}

void DNFAccesses::visitYield(Block &block, Env &env, Term condition) {
  auto yield = cast<dnf::YieldOp>(block.getTerminator());
  if (Value present = yield.getPresent()) {
    visit(present, env, condition);
    condition = terms.both(condition, termOf(present, env));
  }
  visit(yield.getValue(), env, condition);
}

void DNFAccesses::enter(dnf::ReduceOp op, Env &env) {
  BlockArgument index = op.getBody().getArgument(0);
  if (env.values.contains(index))
    return;
  unsigned depth = env.depth;
  for (Operation *around = op->getParentOp(); isa<dnf::ReduceOp>(around);
       around = around->getParentOp())
    ++depth;
  env.values[index] = variables.get(depth, terms.extent(op.getExtent()), op.getName());
}

void DNFAccesses::visit(Value value, Env &env, Term condition) {
  if (!visited.insert({value.getAsOpaquePointer(), &env, condition}).second)
    return;
  Operation *op = value.getDefiningOp();
  if (!op) {
    // The index of a let is computed where the let is applied.
    auto argument = cast<BlockArgument>(value);
    if (env.outer && isa<dnf::LetOp>(argument.getOwner()->getParentOp()))
      visit(env.call.getIndices()[argument.getArgNumber()], *env.outer, condition);
    return;
  }
  if (visitChoice(
          terms, op, condition, [&](Value part, Term where) { visit(part, env, where); },
          [&](Value part) { return termOf(part, env); }))
    return;
  if (auto reduce = dyn_cast<dnf::ReduceOp>(op)) {
    // Nothing is read over an empty range.
    Term extent = terms.extent(reduce.getExtent());
    if (extent->is(TermKind::Number) && extent->value <= 0)
      condition = terms.truth(false);
    enter(reduce, env);
    return visitYield(reduce.getBody().front(), env, condition);
  }
  if (auto apply = dyn_cast<dnf::ApplyOp>(op))
    return visitApply(apply, env, condition);
  for (Value operand : op->getOperands())
    if (!isa<ArrayType>(operand.getType()))
      visit(operand, env, condition);
  if (auto psi = dyn_cast<dnf::PsiOp>(op)) {
    SmallVector<Term> index;
    for (Value entry : psi.getIndices())
      index.push_back(termOf(entry, env));
    accesses->push_back({cast<BlockArgument>(psi.getArray()).getArgNumber(), index, condition,
                         psi.getLoc()});
  }
}

DNFAccesses::Env &DNFAccesses::applied(dnf::LetOp let, const Arguments &arguments,
                                       unsigned depth) {
  std::unique_ptr<Env> &env = envs[{let, arguments, depth}];
  if (!env) {
    env = std::make_unique<Env>();
    env->depth = depth;
    for (auto [argument, term] : llvm::zip_equal(let.getBody().getArguments(), arguments))
      env->values[argument] = term;
  }
  return *env;
}

static unsigned depthAt(Operation *op) {
  unsigned depth = 0;
  for (Operation *around = op->getParentOp(); isa<dnf::ReduceOp>(around);
       around = around->getParentOp())
    ++depth;
  return depth;
}

/// What a let reads at these indices, under the conditions on them.
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
  visitYield(let.getBody().front(), inner, restrictTo(terms, condition, mentioned));
}

Term DNFAccesses::termOfReduce(dnf::ReduceOp op, Env &env) {
  enter(op, env);
  auto yield = cast<dnf::YieldOp>(op.getBody().front().getTerminator());
  Term present = yield.getPresent() ? termOf(yield.getPresent(), env) : terms.truth(true);
  return terms.reduce(
      reductionName(op.getMonoid(), op.getFunctionAttr(), op.getOperandTypeAttr()),
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
      result = terms.load(cast<BlockArgument>(psi.getArray()).getArgNumber(), operands,
                          value.getType());
    } else if (auto extent = dyn_cast<dnf::ExtentOp>(op)) {
      result = terms.extent(extent.getExpr());
    } else if (auto apply = dyn_cast<dnf::ApplyOp>(op)) {
      dnf::LetOp let = lets.lookup(apply.getLet());
      Env &inner = applied(let, Arguments(operands.begin(), operands.end()),
                           env.depth + depthAt(op));
      result = termOf(cast<dnf::YieldOp>(let.getBody().front().getTerminator()).getValue(), inner);
    } else {
      result = readScalar(terms, op, operands);
    }
  }
  if (!result)
    result = terms.scalar(op->getName().getStringRef(), value.getType(), {});
  return env.values[value] = result;
}
