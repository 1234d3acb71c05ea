//===- Emitter.cpp - scopes, loops and branches ---------------------------===//
#include "lib/Conversion/ONFToVector/Emitter.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace moa;

namespace moa::rows {
using namespace moa::onf;

void Emitter::scoped(llvm::function_ref<void(Scope &)> body) {
  Scope scope;
  scope.builder = top().builder;
  stack.push_back(&scope);
  body(scope);
  stack.pop_back();
}

void Emitter::outside(unsigned depth, llvm::function_ref<void()> body) {
  std::vector<Scope *> inner(stack.begin() + depth + 1, stack.end());
  stack.resize(depth + 1);
  body();
  stack.insert(stack.end(), inner.begin(), inner.end());
}

/// Opens `block` for code. Code added meanwhile to the enclosing scopes is placed before `op`.
static Emitter::Values inBlock(Emitter &emitter, Operation *op, Block *block,
                               llvm::function_ref<Emitter::Values(ValueRange)> body) {
  OpBuilder &outer = *emitter.top().builder;
  outer.setInsertionPoint(op);
  OpBuilder inner = OpBuilder::atBlockEnd(block);
  if (!block->empty() && block->back().hasTrait<OpTrait::IsTerminator>())
    block->back().erase();
  Scope scope;
  scope.builder = &inner;
  emitter.stack.push_back(&scope);
  inner.setInsertionPointToEnd(block);
  Emitter::Values results = body(block->getArguments());
  scf::YieldOp::create(inner, emitter.loc, results);
  emitter.stack.pop_back();
  outer.setInsertionPointAfter(op);
  return results;
}

Emitter::Values Emitter::loop(Value lower, Value upper, int64_t step, ValueRange inits, LoopBody body) {
  Build b = here();
  auto op = scf::ForOp::create(b.b, loc, lower, upper, b.index(step), inits);
  inBlock(*this, op, op.getBody(), [&](ValueRange args) { return body(args.front(), args.drop_front()); });
  return Values(op.getResults());
}

void Emitter::loop(Value lower, Value upper, int64_t step, llvm::function_ref<void(Value)> body) {
  loop(lower, upper, step, {}, [&](Value iv, ValueRange) {
    body(iv);
    return Values();
  });
}

Emitter::Values Emitter::branch(Value condition, TypeRange types, llvm::function_ref<Values()> yes,
                                llvm::function_ref<Values()> no) {
  auto op = scf::IfOp::create(here().b, loc, types, condition,
                              /*withElseRegion=*/static_cast<bool>(no));
  inBlock(*this, op, op.thenBlock(), [&](ValueRange) { return yes(); });
  if (no)
    inBlock(*this, op, op.elseBlock(), [&](ValueRange) { return no(); });
  return Values(op.getResults());
}

void Emitter::when(Value condition, llvm::function_ref<void()> yes, llvm::function_ref<void()> no) {
  auto run = [](llvm::function_ref<void()> body) {
    body();
    return Values();
  };
  if (no)
    branch(condition, {}, [&] { return run(yes); }, [&] { return run(no); });
  else
    branch(condition, {}, [&] { return run(yes); }, nullptr);
}

} // namespace moa::rows
