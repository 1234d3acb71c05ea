//===- Tiles.cpp - the work of warpgroups on tiles ------------------------===//
#include "dialects/MoA/IR/Monoid.h"
#include "lib/Conversion/DeviceToNVVM/KernelEmitter.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;

namespace moa::nvvm {

using device::FragmentType;
using device::LayoutAttr;
using device::Place;
using device::RingType;

void KernelEmitter::emitTile(Operation *op) {
  llvm::TypeSwitch<Operation *>(op)
      .Case<device::SharedOp, device::BarriersOp>([&](auto memory) {
        scalars.map(memory.getResult(), sharedAddress(launch.getOffset(memory.getResult())));
        if (!hasRoles() && device::isLastBarriers(op)) {
          initBarriers();
          to.synchronize();
        }
      })
      .Case<device::SpecializeOp>([&](auto roles) { emitSpecialize(roles); })
      .Case<device::WarpgroupOp>([&](device::WarpgroupOp number) {
        bool again = hasRoles() && number.getAgain();
        scalars.map(number.getResult(), again ? to.widen(to.broadcast(to.div(to.thread(), 128))) : warpgroup);
      })
      .Case<device::AwaitConsumersOp>([&](auto) { giveBlock(); })
      .Case<device::KeptOp>([&](device::KeptOp kept) {
        if (inProducer) // which has computed it
          return scalars.map(kept.getResult(), value(kept.getOperand()));
        scalars.map(kept.getResult(), loadKept(kept.getOperand()));
      })
      .Case<device::CollectOp>([&](auto collect) { emitCollect(collect); })
      .Case<device::MemberOp>([&](auto member) { emitMember(member); })
      .Case<device::CopyOp>([&](auto copy) { emitCopy(copy); })
      .Case<device::CopyRowsOp>([&](auto copy) { emitCopyRows(copy); })
      .Case<device::WaitOp>([&](auto wait) {
        Value parity = to.narrow(value(wait.getParity()));
        if (blockParity && wait.getBarriers().template getDefiningOp<device::BarriersOp>().getOdd())
          parity = to.make<arith::XOrIOp>(parity, blockParity);
        to.wait(slot(wait.getBarriers(), wait.getSlot()), parity);
        if (device::isFilledByThreads(wait.getBarriers()))
          to.publishShared();
      })
      .Case<device::ArriveOp>([&](auto arrive) { to.arrive(slot(arrive.getBarriers(), arrive.getSlot()), lane); })
      .Case<device::FillOp>([&](auto fill) { emitFill(fill); })
      .Case<device::ContractOp>([&](auto contract) { emitContract(contract); })
      .Case<device::AwaitOp>([&](auto await) {
        bind(await.getResult(), to.awaitProducts(registers(Value(await.getFragment())), await.getPending()));
      })
      .Case<device::StoreTileOp>([&](auto store) { emitStoreTile(store); })
      .Case<device::AwaitStoresOp>([&](auto) { // unless the last store waits
        if (!isa_and_nonnull<device::StoreTileOp>(op->getPrevNode()))
          when(to.equals(to.rem(to.thread(), 128), 0), [&] { to.awaitStores(); });
      })
      .Case<device::PublishOp>([&](auto published) { emitPublish(published); })
      .Case<device::LoadPeerOp>([&](auto load) { emitLoadPeer(load); })
      .Case<device::SyncClusterOp>([&](auto) { to.syncCluster(); })
      .Case<device::SyncWarpgroupOp>([&](auto) { to.synchronize(to.add(to.div(to.thread(), 128), 2), 128); })
      .Case<device::ClearUnseenOp>([&](auto clear) { emitClear(clear); })
      .Case<device::MapOp>([&](auto map) { emitMap(map); })
      .Case<device::AnyOp>([&](auto any) {
        auto type = any.getResult().getType();
        fragments[any.getResult()] = Values(countRegisters(type), to.vote(registers(Value(any.getCondition()))));
      })
      .Case<device::IfAnyOp>([&](auto branch) { emitIfAny(branch); })
      .Case<device::ReduceOp>([&](auto reduce) { emitReduce(reduce); })
      .Case<device::ContractFragmentsOp>([&](auto product) { emitContractFragments(product); })
      .Case<device::LoadFragmentOp>([&](auto load) { emitLoadFragment(load); })
      .Case<device::ConvertLayoutOp>([&](auto convert) { emitConvertLayout(convert); });
}

//===----------------------------------------------------------------------===//
// Roles and shared memory
//===----------------------------------------------------------------------===//

bool KernelEmitter::hasRoles() { return !kernel.getBody().getOps<device::SpecializeOp>().empty(); }

void KernelEmitter::bindThread() {
  Value thread = to.thread();
  warpgroup = to.widen(to.div(thread, 128));
  warp = to.rem(to.div(thread, 32), 4);
  lane = to.rem(thread, 32);
}

void KernelEmitter::initBarriers() {
  when(to.equals(to.thread(), 0), [&] {
    kernel.walk<WalkOrder::PreOrder>([&](device::BarriersOp barriers) {
      auto type = cast<device::BarriersType>(barriers.getResult().getType());
      for (int64_t k = 0; k != type.getStages(); ++k)
        to.initBarrier(to.add(value(barriers.getResult()), 8 * k), type.getArrivals());
    });
    if (launch.nextBlock) {
      to.initBarrier(sharedAddress(launch.givenBarrier), 1);
      to.initBarrier(sharedAddress(launch.leftBarrier), launch.threads - 128);
    }
    to.publishBarriers();
    if (launch.nextBlock) // each block has its own numbers
      return;
    for (Value number : launch.kept)
      LLVM::StoreOp::create(b, to.loc, value(number), to.sharedPointer(sharedAddress(launch.getKeptOffset(number))));
  });
}

/// Initialises the barriers and splits the block into roles (warp specialisation).
void KernelEmitter::emitSpecialize(device::SpecializeOp op) {
  initBarriers();
  auto goOn = [&] {
    to.synchronize();
    emitRoles(op);
  };
  // The condition is computed in the meantime.
  if (Value condition = op.getCondition(); condition && !launch.isPerBlock(condition.getDefiningOp()))
    return when(value(condition), goOn);
  goOn();
}

void KernelEmitter::emitRoles(device::SpecializeOp op) {
  Value thread = to.thread();
  // Equal in all lanes, so that addresses computed from it are uniform.
  Value number = to.broadcast(to.div(thread, 128));
  warpgroup = to.widen(number);
  warp = to.rem(to.div(thread, 32), 4);
  lane = to.rem(thread, 32);
  auto roles = scf::IfOp::create(b, to.loc, to.equals(number, op.getWarpgroups()),
                                 /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(roles.thenBlock());
  to.setRegisters(op.getProducerRegisters(), /*more=*/false);
  auto produce = [&] { launch.nextBlock ? emitProducerBlocks(op) : emitBlock(op.getProducer().front()); };
  if (op.getTogether())
    produce();
  else
    when(to.equals(to.rem(thread, 128), 0), produce);
  b.setInsertionPointToStart(roles.elseBlock());
  to.loc = op.getLoc();
  to.setRegisters(op.getConsumerRegisters(), /*more=*/true);
  launch.nextBlock ? emitConsumerBlocks(op) : emitBlock(op.getConsumer().front());
}

/// The producer of a persistent kernel: takes blocks from a counter, one after the other (dynamic
/// tile scheduler).
void KernelEmitter::emitProducerBlocks(device::SpecializeOp op) {
  device::NextBlockOp next = launch.nextBlock;
  Values starts{to.widen(to.block()), to.i32(0)};
  SmallVector<Type> types{b.getI64Type(), b.getI32Type()};
  auto loop = scf::WhileOp::create(
      b, to.loc, types, starts,
      [&](OpBuilder &, Location loc, ValueRange args) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToEnd(args[0].getParentBlock());
        Value isBlock = to.make<arith::CmpIOp>(arith::CmpIPredicate::slt, args[0], value(next.getBlocks()));
        scf::ConditionOp::create(b, loc, isBlock, args);
      },
      [&](OpBuilder &, Location loc, ValueRange args) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToEnd(args[0].getParentBlock());
        blockParity = args[1];
        scalars.map(next.getResult(), args[0]);
        for (Operation *ofBlock : launch.perBlockOps)
          if (ofBlock != next && !failed)
            emit(ofBlock);
        auto produce = [&] {
          inProducer = true;
          emitBlock(op.getProducer().front());
          inProducer = false;
        };
        Value other = to.make<arith::XOrIOp>(blockParity, to.i32(1));
        if (Value condition = op.getCondition(); condition && launch.isPerBlock(condition.getDefiningOp())) {
          auto branch = scf::IfOp::create(b, loc, TypeRange(b.getI32Type()), value(condition),
                                          /*withElseRegion=*/true);
          {
            OpBuilder::InsertionGuard inner(b);
            b.setInsertionPointToStart(branch.thenBlock());
            produce();
            scf::YieldOp::create(b, loc, other);
            b.setInsertionPointToStart(branch.elseBlock());
            scf::YieldOp::create(b, loc, blockParity);
          }
          other = branch.getResult(0);
        } else {
          produce();
        }
        to.loc = loc;
        Value count = to.fetchAndAdd(address(next.getArray(), next.getOffset()));
        Value residents = to.i64(next.getResidents()), number = to.add(to.widen(count), residents);
        scf::YieldOp::create(b, loc, ValueRange{number, other});
      });
  awaitLeft(loop.getResult(1));
  tellBlock(/*isMore=*/false);
  blockParity = Value();
}

/// The consumers of a persistent kernel: process the blocks that the producer announces.
void KernelEmitter::emitConsumerBlocks(device::SpecializeOp op) {
  Values starts{to.i32(0)};
  SmallVector<Type> types{b.getI32Type()};
  scf::WhileOp::create(
      b, to.loc, types, starts,
      [&](OpBuilder &, Location loc, ValueRange args) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToEnd(args[0].getParentBlock());
        to.wait(sharedAddress(launch.givenBarrier), args[0]);
        Value isMore =
            LLVM::LoadOp::create(b, loc, b.getI64Type(), to.sharedPointer(sharedAddress(launch.hasBlockOffset)),
                                 /*alignment=*/8, /*isVolatile=*/true);
        scf::ConditionOp::create(b, loc, to.make<arith::CmpIOp>(arith::CmpIPredicate::ne, isMore, to.i64(0)), args);
      },
      [&](OpBuilder &, Location loc, ValueRange args) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToEnd(args[0].getParentBlock());
        blockParity = args[0];
        for (Value given : launch.perBlockValues)
          scalars.map(given, loadKept(given));
        emitBlock(op.getConsumer().front());
        to.loc = loc;
        to.arriveAll(sharedAddress(launch.leftBarrier));
        scf::YieldOp::create(b, loc, ValueRange{to.make<arith::XOrIOp>(blockParity, to.i32(1))});
      });
  blockParity = Value();
}

/// Loads a number of the block from shared memory. In a persistent kernel a 32-bit number is
/// broadcast from lane 0, so that it is known to be equal in all lanes.
Value KernelEmitter::loadKept(Value number) {
  Value from = to.sharedPointer(sharedAddress(launch.getKeptOffset(number)));
  Value bits = LLVM::LoadOp::create(b, to.loc, b.getI64Type(), from, /*alignment=*/8, /*isVolatile=*/true);
  if (launch.nextBlock && gpu::isWord(number))
    bits = to.widen(to.broadcast(to.narrow(bits)));
  Type type = scalarType(number.getType());
  if (type.getIntOrFloatBitWidth() != 64)
    bits = to.make<arith::TruncIOp>(b.getIntegerType(type.getIntOrFloatBitWidth()), bits);
  return type.isInteger() ? bits : to.make<arith::BitcastOp>(type, bits);
}

/// Waits until consumers have left the block before the one of this parity.
void KernelEmitter::awaitLeft(Value parity) {
  Value other = to.make<arith::XOrIOp>(parity, to.i32(1));
  to.wait(sharedAddress(launch.leftBarrier), other);
}

void KernelEmitter::tellBlock(bool isMore) {
  Value where = to.sharedPointer(sharedAddress(launch.hasBlockOffset));
  LLVM::StoreOp::create(b, to.loc, to.i64(isMore), where);
  to.arrive(sharedAddress(launch.givenBarrier), lane);
}

/// Announces the numbers of a block once consumers have left the one before.
void KernelEmitter::giveBlock() {
  awaitLeft(blockParity);
  for (Value number : launch.kept) {
    Value bits = value(number);
    if (!bits.getType().isInteger())
      bits = to.make<arith::BitcastOp>(b.getIntegerType(bits.getType().getIntOrFloatBitWidth()), bits);
    if (!bits.getType().isInteger(64))
      bits = to.make<arith::ExtUIOp>(b.getI64Type(), bits);
    LLVM::StoreOp::create(b, to.loc, bits, to.sharedPointer(sharedAddress(launch.getKeptOffset(number))));
  }
  tellBlock(/*isMore=*/true);
}

Value KernelEmitter::stage(Value ring, Value number) {
  int64_t bytes = cast<RingType>(ring.getType()).getStageBytes();
  return to.add(value(ring), to.mul(to.narrow(value(number)), bytes));
}

Value KernelEmitter::slot(Value barriers, Value number) {
  return to.add(value(barriers), to.mul(to.narrow(value(number)), 8));
}

Values KernelEmitter::boxAt(int64_t column, ValueRange coordinates, Value from) {
  Values at{from ? to.add(to.narrow(value(from)), column) : to.i32(column)};
  for (Value coordinate : llvm::reverse(coordinates))
    at.push_back(to.narrow(value(coordinate)));
  return at;
}

/// Runs rounds of one index per thread. The members of each round are appended in order.
void KernelEmitter::emitCollect(device::CollectOp op) {
  auto yield = cast<device::YieldOp>(op.getBody().front().getTerminator());
  Value lower = value(op.getLower()), upper = value(op.getUpper());
  for (Value list : op.getLists())
    scalars.map(list, sharedAddress(launch.getOffset(list)));
  Values zeros(op.getCounts().size(), to.i32(0));
  auto rounds =
      scf::ForOp::create(b, to.loc, lower, upper, to.i64(launch.threads), zeros,
                         [&](OpBuilder &, Location loc, Value base, ValueRange counts) {
                           OpBuilder::InsertionGuard guard(b);
                           b.setInsertionPointToEnd(base.getParentBlock());
                           Value t = to.add(base, to.widen(to.thread()));
                           scalars.map(op.getBody().getArgument(0), t);
                           Value inside = to.make<arith::CmpIOp>(arith::CmpIPredicate::slt, t, upper);
                           SmallVector<Type> types(counts.size(), b.getI1Type());
                           auto branch = scf::IfOp::create(b, loc, types, inside, /*withElseRegion=*/true);
                           {
                             OpBuilder::InsertionGuard inBranches(b);
                             b.setInsertionPointToStart(branch.thenBlock());
                             emitBlock(op.getBody().front());
                             Values flags;
                             for (Value flag : yield.getValues())
                               flags.push_back(value(flag));
                             scf::YieldOp::create(b, loc, flags);
                             b.setInsertionPointToStart(branch.elseBlock());
                             scf::YieldOp::create(b, loc, Values(counts.size(), to.i1(false)));
                           }
                           to.loc = loc;
                           Value number = to.make<arith::SubIOp>(t, lower);
                           Values next;
                           for (auto [list, count, in] : llvm::zip(op.getLists(), counts, branch.getResults()))
                             next.push_back(appendMembers(value(list), count, in, number));
                           scf::YieldOp::create(b, loc, next);
                         });
  for (auto [count, result] : llvm::zip(op.getCounts(), rounds.getResults()))
    scalars.map(count, to.widen(result));
}

/// Appends the numbers of the threads where `in` holds to a list of `count` entries, in order.
/// Returns the new count.
Value KernelEmitter::appendMembers(Value list, Value count, Value in, Value number) {
  Value thread = to.thread(), laneNumber = to.rem(thread, 32), warpNumber = to.div(thread, 32);
  Value words = sharedAddress(launch.collectWords);
  Value bits = NVVM::VoteSyncOp::create(b, to.loc, b.getI32Type(), to.i32(-1), in, NVVM::VoteSyncKind::ballot);
  auto ones = [&](Value x) { return to.call("llvm.ctpop.i32", b.getI32Type(), x); };
  when(to.equals(laneNumber, 0), [&] {
    Value where = to.sharedPointer(to.add(words, to.mul(warpNumber, 4)));
    LLVM::StoreOp::create(b, to.loc, ones(bits), where);
  });
  to.synchronize();
  Value below = to.make<arith::ShLIOp>(to.i32(1), laneNumber);
  below = to.make<arith::AndIOp>(bits, to.add(below, -1));
  Value position = to.add(count, ones(below));
  for (int64_t k = 0; k != launch.threads / 32; ++k) {
    Value members = LLVM::LoadOp::create(b, to.loc, b.getI32Type(), to.sharedPointer(to.add(words, 4 * k)));
    count = to.add(count, members);
    Value isBefore = to.make<arith::CmpIOp>(arith::CmpIPredicate::sgt, warpNumber, to.i32(k));
    position = to.add(position, to.make<arith::SelectOp>(isBefore, members, to.i32(0)));
  }
  when(in, [&] {
    Value half = to.make<arith::TruncIOp>(b.getI16Type(), number);
    LLVM::StoreOp::create(b, to.loc, half, to.sharedPointer(to.add(list, to.mul(position, 2))));
  });
  to.synchronize();
  return count;
}

void KernelEmitter::emitMember(device::MemberOp op) {
  auto collect = op.getList().getDefiningOp<device::CollectOp>();
  Value entry = to.add(value(op.getList()), to.mul(to.narrow(value(op.getPlace())), 2));
  Value number = LLVM::LoadOp::create(b, to.loc, b.getI16Type(), to.sharedPointer(entry));
  number = to.make<arith::ExtUIOp>(b.getI64Type(), number);
  scalars.map(op.getResult(), to.add(value(collect.getLower()), number));
}

void KernelEmitter::emitCopy(device::CopyOp op) {
  RingType ring = op.getRing().getType();
  Value tile = stage(op.getRing(), op.getStage());
  if (op.getFirst())
    tile = to.add(tile, to.mul(to.narrow(value(op.getFirst())), 128));
  Value barrier = slot(op.getBarriers(), op.getSlot());
  Value map = maps[launch.getMap(op).name];
  auto copy = [&] {
    to.expectBytes(barrier, op.getBytes());
    for (int64_t piece = 0; piece != ring.getPieces(); ++piece) {
      Values box = boxAt(ring.getPieceColumns() * piece, op.getCoordinates(), op.getColumn());
      to.copyBox(to.add(tile, piece * ring.getRows() * 128), map, barrier, box);
    }
  };
  auto roles = op->getParentOfType<device::SpecializeOp>();
  if (roles && roles.getTogether())
    when(to.equals(to.rem(to.thread(), 128), 0), copy);
  else
    copy();
}

/// The threads of the producer copy a tile in units of 16 bytes.
void KernelEmitter::emitCopyRows(device::CopyRowsOp op) {
  RingType ring = op.getRing().getType();
  int64_t perUnit = 16 / ring.getElementBytes(), units = ring.getColumns() / perUnit;
  Value tile = stage(op.getRing(), op.getStage());
  Value start = to.widen(to.rem(to.thread(), op.kThreads)), end = to.i64(ring.getRows() * units);
  auto loop = scf::ForOp::create(b, to.loc, start, end, to.i64(op.kThreads));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value number = to.narrow(loop.getInductionVar());
    Value row = to.div(number, units), unit = to.rem(number, units);
    scalars.map(op.getBody().getArgument(0), to.widen(row));
    emitBlock(op.getBody().front());
    to.loc = op.getLoc();
    device::YieldOp yield = op.getYield();
    Value present = value(yield.getValues()[1]);
    if (static_cast<int64_t>(op.getColumns()) < ring.getColumns()) {
      Value inside = to.make<arith::CmpIOp>(arith::CmpIPredicate::slt, unit, to.i32(op.getColumns() / perUnit));
      present = to.make<arith::AndIOp>(present, inside);
    }
    Value from = address(op.getArray(), yield.getValues()[0]);
    from = LLVM::GEPOp::create(b, to.loc, from.getType(), b.getI8Type(), from, ValueRange(to.mul(unit, 16)));
    Value swizzled = to.make<arith::XOrIOp>(to.rem(unit, 8), to.rem(row, 8));
    Value line = to.add(to.mul(to.div(unit, 8), ring.getRows()), row);
    Value target = to.add(to.add(tile, to.mul(line, 128)), to.mul(swizzled, 16));
    to.copyUnit(target, from, to.make<arith::SelectOp>(present, to.i32(16), to.i32(0)));
  }
  to.arriveCopied(slot(op.getBarriers(), op.getSlot()));
}

/// Stores a warpgroup's fragment of packed pairs to 64 rows of a swizzled tile.
void KernelEmitter::putFragment(Value tile, int64_t rows, ValueRange packed) {
  Value inWarp = to.div(lane, 4), first = to.add(to.mul(warp, 16), inWarp);
  Value column = to.mul(to.rem(lane, 4), 4);
  for (int64_t r = 0; r != 2; ++r) {
    Value row = to.add(first, 8 * r);
    Value start = to.add(to.add(tile, to.mul(row, 128)), column);
    Value swizzle = to.rem(row, 8);
    for (int64_t c = 0; c != static_cast<int64_t>(packed.size()) / 2; ++c) {
      Value unit = to.make<arith::XOrIOp>(swizzle, to.i32(c % 8));
      Value where = to.add(to.add(start, to.mul(unit, 16)), c / 8 * rows * 128);
      LLVM::StoreOp::create(b, to.loc, packed[2 * c + r], to.sharedPointer(where));
    }
  }
  to.publishShared();
  to.synchronize(to.add(to.div(to.thread(), 128), 2), 128);
}

void KernelEmitter::emitStoreTile(device::StoreTileOp op) {
  RingType ring = op.getRing().getType();
  Value offset = to.mul(to.narrow(value(op.getRow())), 128);
  Value tile = to.add(stage(op.getRing(), op.getStage()), offset);
  putFragment(tile, ring.getRows(), registers(Value(op.getFragment())));
  Value map = maps[launch.getMap(op.getArray(), op.getRowAxis(), 64).name];
  when(to.equals(to.rem(to.thread(), 128), 0), [&] {
    for (int64_t half = 0; half != op.getFragment().getType().getShape()[1] / 64; ++half) {
      Values box = boxAt(64 * half, op.getCoordinates());
      to.storeBox(to.add(tile, half * ring.getRows() * 128), map, box);
    }
    to.commitStores(/*andWait=*/device::findWait(op) != nullptr);
  });
}

/// Returns the address of a word of a published fragment: `words` registers of each thread stand
/// together.
Value KernelEmitter::publishedAt(device::PublishOp op, int64_t words, int64_t number) {
  int64_t threads = 128 * op->getParentOfType<device::SpecializeOp>().getWarpgroups();
  Value own = to.add(value(op.getRing()), static_cast<int64_t>(op.getAt()) + number * threads * words * 4);
  return to.add(own, to.mul(to.thread(), words * 4));
}

static int64_t countPublished(int64_t registers) { return registers % 4 == 0 ? 4 : registers % 2 == 0 ? 2 : 1; }

void KernelEmitter::emitPublish(device::PublishOp op) {
  Values list = registers(Value(op.getFragment()));
  int64_t words = countPublished(list.size());
  for (auto [r, x] : llvm::enumerate(list)) {
    Value target = to.add(publishedAt(op, words, r / words), static_cast<int64_t>(r % words) * 4);
    LLVM::StoreOp::create(b, to.loc, x, to.sharedPointer(target));
  }
}

void KernelEmitter::emitLoadPeer(device::LoadPeerOp op) {
  auto published = op.getPublished().getDefiningOp<device::PublishOp>();
  FragmentType type = op.getResult().getType();
  int64_t count = countRegisters(type), words = countPublished(count);
  Value rank = to.narrow(value(op.getRank()));
  Values list;
  for (int64_t r = 0; r != count; ++r) {
    Value target = to.add(publishedAt(published, words, r / words), r % words * 4);
    list.push_back(to.loadPeer(target, rank, scalarType(type.getElementType())));
  }
  fragments[op.getResult()] = list;
}

/// Returns a mask of the tile's rows that some row of this warp sees. Bit 2c + e stands for row 8c
/// + 2·(lane mod 4) + e.
Value KernelEmitter::unseenBits(ValueRange seen) {
  Value bits = to.i32(0);
  for (size_t c = 0; c != seen.size() / 4; ++c)
    for (size_t e = 0; e != 2; ++e) {
      Value either = to.make<arith::OrIOp>(seen[4 * c + e], seen[4 * c + 2 + e]);
      Value bit = to.make<arith::ExtUIOp>(b.getI32Type(), either);
      bit = to.make<arith::ShLIOp>(bit, to.i32(2 * c + e));
      bits = to.make<arith::OrIOp>(bits, bit);
    }
  for (int64_t lanes = 4; lanes < 32; lanes *= 2)
    bits = to.make<arith::OrIOp>(bits, to.shuffle(bits, lanes));
  return bits;
}

/// Clears masked-out parts of interleaved columns. Byte i of 32-bit word q of the 16 bytes of
/// columns 16·g and on is bit 4·g + i of word q. Each thread clears some of them.
void KernelEmitter::clearColumns(Value tile, int64_t rows, int64_t threads, llvm::function_ref<Value(Value)> wordOf) {
  Value step = to.i64(threads), end = to.i64(rows * 32), start = to.widen(to.thread());
  auto loop = scf::ForOp::create(b, to.loc, start, end, step);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value number = to.narrow(loop.getInductionVar());
  Value q = to.rem(number, 4), g = to.rem(to.div(number, 4), 8), row = to.div(number, 32);
  Value seen = LLVM::LoadOp::create(b, to.loc, b.getI32Type(), wordOf(q), 0, true);
  Value lowBits = to.i32(15);
  Value four = to.make<arith::AndIOp>(to.make<arith::ShRUIOp>(seen, to.mul(g, 4)), lowBits);
  // Spread bits 0 to 3 to the lowest bits of bytes 0 to 3.
  Value lowestBits = to.i32(0x01010101), bytes = to.make<arith::AndIOp>(to.mul(four, 0x00204081), lowestBits);
  Value unit = to.make<arith::XOrIOp>(g, to.rem(row, 8));
  Value inUnit = to.mul(q, 4), inRow = to.add(to.mul(unit, 16), inUnit);
  Value where = to.sharedPointer(to.add(to.add(tile, to.mul(row, 128)), inRow));
  Value held = LLVM::LoadOp::create(b, to.loc, b.getI32Type(), where, 0, true);
  LLVM::StoreOp::create(b, to.loc, to.make<arith::AndIOp>(held, to.mul(bytes, 255)), where, 0, true);
}

void KernelEmitter::emitClear(device::ClearUnseenOp op) {
  RingType ring = op.getRing().getType();
  int64_t rows = ring.getRows();
  int64_t threads = 128 * op->getParentOfType<device::SpecializeOp>().getWarpgroups();
  Value tile = stage(op.getRing(), op.getStage());
  Value bits = unseenBits(registers(Value(op.getSeen())));
  Value words = sharedAddress(launch.clearWords), thread = to.thread();
  auto wordOf = [&](Value number) { return to.sharedPointer(to.add(words, to.mul(number, 4))); };
  auto below = [&](Value x, int64_t limit) -> Value {
    return to.make<arith::CmpIOp>(arith::CmpIPredicate::ult, x, to.i32(limit));
  };
  auto together = [&] { to.synchronize(to.i32(1), threads); };
  when(below(thread, 4), [&] {
    Value word = wordOf(thread);
    LLVM::StoreOp::create(b, to.loc, to.i32(0), word, 0, /*isVolatile=*/true);
  });
  together();
  when(below(lane, 4), [&] {
    LLVM::AtomicRMWOp::create(b, to.loc, LLVM::AtomicBinOp::_or, wordOf(lane), bits, LLVM::AtomicOrdering::monotonic);
  });
  together();
  if (op.getInterleaved()) {
    clearColumns(tile, rows, threads, wordOf);
    to.publishShared();
    return together();
  }
  // One thread per row: there are at least as many threads.
  when(below(thread, rows), [&] {
    Value word = LLVM::LoadOp::create(b, to.loc, b.getI32Type(), wordOf(to.div(to.rem(thread, 8), 2)), 0, true);
    Value inPair = to.rem(thread, 2), number = to.add(to.mul(to.div(thread, 8), 2), inPair);
    Value one = to.i32(1), bit = to.make<arith::AndIOp>(to.make<arith::ShRUIOp>(word, number), one);
    when(to.equals(bit, 0), [&] {
      Value start = to.add(tile, to.mul(thread, 128));
      for (int64_t unit = 0; unit != ring.getColumns() / 8; ++unit)
        to.assembly("st.shared.v4.b32 [$0], {$1, $1, $1, $1};", "r,r,~{memory}",
                    {to.add(start, unit / 8 * rows * 128 + unit % 8 * 16), to.i32(0)}, {});
    });
  });
  to.publishShared();
  together();
}

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

void KernelEmitter::emitFill(device::FillOp op) {
  auto type = op.getResult().getType();
  Value one = value(op.getValue());
  if (countPacked(type) == 4) {
    one = to.mul(to.make<arith::ExtUIOp>(b.getI32Type(), one), 0x01010101);
  } else if (isNarrow(type)) {
    Value bits = to.make<arith::BitcastOp>(b.getI16Type(), one);
    bits = to.widen(to.make<arith::ExtUIOp>(b.getI32Type(), bits));
    bits = to.narrow(bits);
    Value high = to.make<arith::ShLIOp>(bits, to.i32(16));
    one = to.make<arith::OrIOp>(bits, high);
  }
  fragments[op.getResult()] = Values(countRegisters(type), one);
}

void KernelEmitter::emitContract(device::ContractOp op) {
  RingType ring = op.getB().getType();
  ContractionShape shape;
  shape.columns = op.getResult().getType().getShape()[1];
  shape.element = ring.getElementType();
  shape.bRows = ring.getRows();
  shape.byColumns = !op.getTransposed();
  shape.steps = op.getSteps();
  Value bTile = to.descriptor(stage(op.getB(), op.getBStage()), shape.byColumns ? shape.bRows : 0);
  Values sum, a;
  if (op.getC())
    sum = registers(Value(op.getC()));
  if (auto rows = dyn_cast<RingType>(op.getA().getType())) {
    shape.aRows = rows.getRows();
    Value row = to.mul(to.narrow(value(op.getARow())), 128);
    a.push_back(to.descriptor(to.add(value(op.getA()), row), 0));
  } else {
    a = registers(Value(op.getA()));
  }
  fragments[op.getResult()] = to.contract(shape, sum, a, bTile);
}

/// Returns this thread's part of an index, in 32 bits: the digits bound to warps and lanes.
Value KernelEmitter::threadPart(LayoutAttr layout, unsigned axis) {
  Value sum = to.i32(0);
  for (const LayoutAttr::Digit &digit : layout.getDigits(axis)) {
    if (digit.place == Place::register_)
      continue;
    Value number = to.div(digit.place == Place::warp ? warp : lane, digit.stride);
    sum = to.add(sum, to.mul(to.rem(number, digit.size), digit.weight));
  }
  return sum;
}

/// Returns whether this thread is the first of those that hold the same element.
Value KernelEmitter::firstReplica(LayoutAttr layout) {
  Value first = to.i1(true);
  for (const LayoutAttr::Digit &digit : layout.getDigits(layout.getRank())) {
    if (digit.place == Place::register_)
      continue;
    Value number = to.div(digit.place == Place::warp ? warp : lane, digit.stride);
    first = to.make<arith::AndIOp>(first, to.equals(to.rem(number, digit.size), 0));
  }
  return first;
}

/// Emits a map that only rounds to 16 or 8 bits, or makes 16-bit floats of their bits. Returns
/// false for other maps.
bool KernelEmitter::emitRounding(device::MapOp op) {
  Block &block = op.getBody().front();
  if (op.getNumResults() != 1 || op.getInputs().size() != 1 || !isNarrow(op.getResult(0).getType()))
    return false;
  auto yield = cast<device::YieldOp>(block.getTerminator());
  Operation *rounded = yield.getValues()[0].getDefiningOp();
  if (!isa_and_nonnull<arith::TruncFOp, device::HalfFromBitsOp>(rounded) ||
      rounded->getOperand(0) != block.getArgument(0))
    return false;
  Type given = block.getArgument(0).getType();
  bool isOfHalves = given.isF16() && countPacked(op.getResult(0).getType()) == 4;
  if (!given.isF32() && !isOfHalves)
    return false;
  Values from = registers(op.getInputs()[0]), packed;
  if (isOfHalves) {
    for (size_t word = 0; word != from.size() / 2; ++word) {
      size_t first = word / 2 * 4 + word % 2;
      packed.push_back(to.packPairs(from[first], from[first + 2]));
    }
  } else if (isa<device::HalfFromBitsOp>(rounded)) {
    for (size_t k = 0; k + 1 < from.size(); k += 2)
      packed.push_back(to.halvesFromBits(from[k], from[k + 1]));
  } else if (countPacked(op.getResult(0).getType()) == 4) {
    // Word 2g + r: rows r of columns 16·g + …, whose registers are 8·g + 4·b + 2·r + e.
    for (size_t word = 0; word != from.size() / 4; ++word) {
      size_t first = word / 2 * 8 + word % 2 * 2;
      packed.push_back(to.packFour({from[first], from[first + 1], from[first + 4], from[first + 5]}));
    }
  } else {
    for (size_t k = 0; k + 1 < from.size(); k += 2)
      packed.push_back(to.pack(from[k], from[k + 1], yield.getValues()[0].getType().isBF16()));
  }
  fragments[op.getResult(0)] = packed;
  return true;
}

/// Emits the body for one register. A pure op whose operands equal those in an earlier register is
/// not emitted again.
void KernelEmitter::emitElement(device::MapOp op, const RegisterPlace &registerPlace, ValueRange threadParts,
                                SmallVectorImpl<Values> &results) {
  Block &block = op.getBody().front();
  LayoutAttr layout = op.getLayout();
  llvm::SaveAndRestore at(place, &registerPlace);
  for (auto [input, argument] : llvm::zip(op.getInputs(), block.getArguments())) {
    bool isRow = cast<FragmentType>(input.getType()).getLayout() != layout;
    scalars.map(argument, fragments[input][isRow ? registerPlace.row : registerPlace.number]);
  }
  auto isIndex = [](Operation *user) { return !isa<device::ThreadOffsetOp>(user); };
  for (auto [axis, argument] : llvm::enumerate(block.getArguments().drop_front(op.getInputs().size())))
    if (llvm::any_of(argument.getUsers(), isIndex))
      scalars.map(argument, to.add(threadParts[axis], registerPlace.indices[axis]));
  for (Operation &inner : block.without_terminator()) {
    if (auto offset = dyn_cast<device::ThreadOffsetOp>(inner)) {
      unsigned axis = cast<BlockArgument>(offset.getIndex()).getArgNumber() - op.getInputs().size();
      scalars.map(offset.getResult(), to.i64(registerPlace.indices[axis]));
      continue;
    }
    bool isPure = inner.getNumResults() == 1 && inner.getNumRegions() == 0 && isMemoryEffectFree(&inner);
    if (!isPure) {
      emit(&inner);
      continue;
    }
    Values in;
    for (Value operand : inner.getOperands())
      in.push_back(value(operand));
    Known &before = known[&inner];
    auto same = llvm::find_if(before, [&](const auto &entry) { return entry.first == in; });
    if (same == before.end()) {
      emit(&inner);
      before.emplace_back(in, value(inner.getResult(0)));
    } else {
      scalars.map(inner.getResult(0), same->second);
    }
  }
  auto yield = cast<device::YieldOp>(block.getTerminator());
  for (auto [k, result] : llvm::enumerate(yield.getValues()))
    results[k][registerPlace.number] = value(result);
}

void KernelEmitter::emitPair(device::StoreOp store) {
  auto argument = cast<BlockArgument>(store.getValue());
  Value input = cast<device::MapOp>(argument.getOwner()->getParentOp()).getInputs()[argument.getArgNumber()];
  Value pair = LLVM::PoisonOp::create(b, to.loc, VectorType::get(2, b.getF32Type()));
  for (int64_t k = 0; k < 2; ++k)
    pair = LLVM::InsertElementOp::create(b, to.loc, pair, fragments[input][place->number + k],
                                         to.constant(b.getI32IntegerAttr(k)));
  LLVM::StoreOp::create(b, to.loc, pair, address(store.getArray(), store.getOffset()),
                        /*alignment=*/8);
}

void KernelEmitter::emitMap(device::MapOp op) {
  if (emitRounding(op))
    return;
  for (Type type :
       llvm::concat<const Type>(SmallVector<Type>(op.getInputs().getTypes()), SmallVector<Type>(op.getResultTypes())))
    if (isNarrow(type))
      return fail(op, "a map of fragments of 16 or 8 bits that does more than round them");
  LayoutAttr layout = op.getLayout();
  // Opaque, so that an index stays a thread's part plus a constant. If LLVM knew bits of both, it
  // would make `or` of the sums and keep a number per element before the loop.
  Values threadParts;
  for (unsigned axis = 0; axis != layout.getRank(); ++axis)
    threadParts.push_back(to.widen(to.opaque(threadPart(layout, axis))));
  SmallVector<Values> results;
  for (Type type : op.getResultTypes())
    results.emplace_back(countRegisters(cast<FragmentType>(type)));
  known.clear();
  auto all = [&] {
    for (const RegisterPlace &registerPlace : getPlaces(layout))
      emitElement(op, registerPlace, threadParts, results);
  };
  // A map without results runs for its effects, once per element.
  if (op.getNumResults() == 0 && layout.getRank() == 1)
    when(firstReplica(layout), all);
  else
    all();
  known.clear();
  for (auto [result, list] : llvm::zip(op.getResults(), results))
    fragments[result] = list;
}

/// Emits a branch that either all lanes of a warp take, or none.
void KernelEmitter::emitIfAny(device::IfAnyOp op) {
  Values conditions = registers(Value(op.getCondition()));
  bool isKnown = op.getCondition().getDefiningOp<device::AnyOp>() != nullptr;
  Value any = isKnown ? conditions[0] : to.vote(conditions);
  auto branch = scf::IfOp::create(b, to.loc, registerTypes(op.getResultTypes()), any,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(branch.thenBlock());
  Block &block = op.getBody().front();
  emitBlock(block);
  scf::YieldOp::create(b, op.getLoc(), registers(block.getTerminator()->getOperands()));
  b.setInsertionPointToEnd(branch.elseBlock());
  scf::YieldOp::create(b, op.getLoc(), registers(ValueRange(op.getOtherwise())));
  bindAll(op.getResults(), branch.getResults());
}

Value KernelEmitter::combine(Monoid monoid, Value x, Value y) {
  if (x.getType().isF64() && (monoid == Monoid::max || monoid == Monoid::min)) {
    Value result = buildMonoid(b, to.loc, monoid, x, y);
    Operation *op = result.getDefiningOp();
    Value expanded = compute(op, {x, y});
    op->erase();
    return expanded;
  }
  return buildMonoid(b, to.loc, monoid, x, y);
}

/// Sums rows whose neighbours share a register, with even and odd pairs in separate chains.
Values KernelEmitter::addPairs(ArrayRef<RegisterPlace> places, int64_t rows, ValueRange from) {
  SmallVector<Values> pairs(rows);
  for (const RegisterPlace &registerPlace : places)
    if (registerPlace.number % 2 == 0)
      pairs[registerPlace.row].push_back(from[registerPlace.number / 2]);
  Values sums;
  for (const Values &row : pairs) {
    Value chains[2];
    for (auto [k, pair] : llvm::enumerate(row))
      chains[k % 2] = chains[k % 2] ? to.addHalves(chains[k % 2], pair) : pair;
    sums.push_back(to.sumOfHalves(chains[1] ? to.addHalves(chains[0], chains[1]) : chains[0]));
  }
  return sums;
}

void KernelEmitter::emitReduce(device::ReduceOp op) {
  LayoutAttr layout = op.getFragment().getType().getLayout();
  Type type = op.getFragment().getType().getElementType();
  if (type.isIndex())
    type = b.getI64Type();
  std::vector<RegisterPlace> places = getPlaces(layout);
  int64_t rows = op.getResult().getType().getLayout().getNumRegisters();
  if (type.isF16() && op.getResult().getType().getElementType().isF32()) {
    fragments[op.getResult()] = addPairs(places, rows, registers(Value(op.getFragment())));
    return;
  }
  Value identity = to.constant(getIdentity(op.getMonoid(), type));
  Values from = registers(Value(op.getFragment()));
  // Without a shuffle, the results are per-lane partials of a row.
  bool joins = op.getResult().getType().getLayout() == layout.getSlice(0);
  // Two chains of half the length, for even and odd registers.
  bool isPaired = hasNeighbours(layout);
  Values even(rows, identity), odd(rows, identity);
  for (const RegisterPlace &registerPlace : places) {
    Values &chain = isPaired && registerPlace.number % 2 ? odd : even;
    chain[registerPlace.row] = combine(op.getMonoid(), chain[registerPlace.row], from[registerPlace.number]);
  }
  for (int64_t row = 0; row != rows; ++row) {
    if (isPaired)
      even[row] = combine(op.getMonoid(), even[row], odd[row]);
    for (unsigned axis = 1; joins && axis < layout.getRank(); ++axis) {
      SmallVector<LayoutAttr::Digit> digits = layout.getDigits(axis);
      for (const LayoutAttr::Digit &digit : llvm::reverse(digits))
        for (int64_t bit = 1; digit.place == Place::lane && bit < digit.size; bit *= 2)
          even[row] = combine(op.getMonoid(), even[row], to.shuffle(even[row], bit * digit.stride));
    }
  }
  fragments[op.getResult()] = even;
}

} // namespace moa::nvvm
