//===- Kernel.cpp - puts a tile kernel together ---------------------------===//
//
// A producer warpgroup copies tiles of the key operands by TMA into rings of stages. Each consumer
// warpgroup computes, for its 64 rows and each tile of keys,
//
//   scores        S = rows · keysᵀ                              contract
//   passes        states without axes: ⊕ over the tile's keys   map, reduce
//   accumulators  O = c · O + P · G                             map, contract
//
// The states of a tile are merged into the running ones with correction factors c. For softmax this
// gives the online softmax. The code for a tile exists twice: without a mask, for tiles that all
// rows of the block see in full, and with the guard evaluated per element.
//
//===----------------------------------------------------------------------===//
#include "lib/Conversion/ONFToDevice/Tiles/Consumer.h"
#include "lib/Conversion/ONFToDevice/Tiles/Epilogue.h"
#include "lib/Conversion/ONFToDevice/Tiles/Producer.h"

using namespace mlir;
using namespace moa;
using namespace moa::onf;

namespace moa::tiles {

/// Makes the code of a block, in which exponentials may be approximate.
static ScalarCode makeCode(const TileContext &context, IRMapping arrays) {
  ScalarCode code(context.b, std::move(arrays), context.plan.nest.getLoc());
  code.approximate = true;
  code.isUniform = [&plan = context.plan](Value value) { return isUniform(plan, value); };
  return code;
}

/// Fills the region of a role. `chosen` tells whether the nest is selected; null: always.
static void fillRole(ScalarCode &code, Region &region, Value chosen, llvm::function_ref<void()> body) {
  OpBuilder::InsertionGuard guard(code.b);
  code.b.setInsertionPointToStart(&region.emplaceBlock());
  code.open();
  chosen ? code.when(chosen, body) : body();
  code.close();
}

static LogicalResult lower(const TilePlan &plan, device::ProgramOp program, unsigned number) {
  OpBuilder b(program.getContext());
  b.setInsertionPointToEnd(&program.getBody().front());
  TileContext context(plan, program, number, b);
  IRMapping arrays = mapArrays(plan.nest, program);

  // Kernels that run before: tiles that the guard allows, and counters of a split.
  std::optional<GuardTiles> guard;
  if (context.predicate)
    guard.emplace(context, arrays);
  FoldFacts facts(plan);
  StreamK streamK(context, facts);
  streamK.emitClear(arrays);

  // The block: its shared memory, its rows, and its tiles.
  beginKernel(b, plan.nest, program, Twine(number), streamK.countGrid(), plan.shape.threads());
  ScalarCode code = makeCode(context, arrays);
  Rings rings(context, code, streamK.isPersistent());
  SmallVector<TileResult> results = planResults(code, context, rings);
  BlockNumber blockNumber = streamK.findBlock(code);
  BlockRows block = bindBlock(code, context, blockNumber.number);
  Value chosen = context.choice ? code.eval(context.choice) : Value();
  std::unique_ptr<TileOrder> order = orderTiles(context, code, facts, block, chosen, guard);
  FoldPart part = streamK.findPart(code, blockNumber, order->numTiles);

  // A block whose nest is not selected ends before it copies anything. Ping-pong kernels are an
  // exception: ptxas would order the code between two barriers in another way, which is slower.
  bool ends = chosen && !plan.shape.takesTurns;
  auto [consumer, producer] = streamK.registersOfRoles();
  auto roles =
      device::SpecializeOp::create(b, code.loc, plan.shape.warpgroups, consumer, producer, ends ? chosen : Value());
  Value condition = ends ? Value() : chosen;
  fillRole(code, roles.getConsumer(), condition, [&] {
    Consumer(context, code, facts, rings, *order, block, streamK, part).run([&](ValueRange finals) {
      Epilogue(context, code, block, results).run(finals);
    });
  });
  fillRole(code, roles.getProducer(), condition, [&] {
    TmaCopies copies(context, code, block);
    Producer(context, code, rings, copies, *order, block, part, streamK.isPersistent()).run();
  });
  rings.eraseUnused();
  return failure(code.failed);
}

} // namespace moa::tiles

LogicalResult moa::lowerTiles(const TilePlan &plan, device::ProgramOp program, unsigned number) {
  return tiles::lower(plan, program, number);
}
