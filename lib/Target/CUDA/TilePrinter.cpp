//===- TilePrinter.cpp - operations of warpgroups as CUDA C++ ---*- C++ -*-===//
#include "dialects/Device/IR/LayoutMaps.h"
#include "lib/Target/CUDA/KernelPrinter.h"

using namespace mlir;

namespace moa::cuda {

using device::RingType;

/// The shuffle makes the value uniform, so that addresses made from it are not per thread.
static constexpr const char *kWarpgroup = "__shfl_sync(0xffffffff, threadIdx.x / 128, 0)";

/// The barrier of a warpgroup. Barrier 1 is that of all consumers.
static constexpr const char *kSyncWarpgroup =
    "asm volatile(\"bar.sync %0, 128;\" ::\"r\"(2 + threadIdx.x / 128) : \"memory\");";

bool KernelPrinter::printTile(Operation *op) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<device::SharedOp, device::BarriersOp>([&](auto) { return printShared(op), true; })
      .Case<device::SpecializeOp>([&](auto roles) { return printSpecialize(roles), true; })
      .Case<device::WarpgroupOp>([&](device::WarpgroupOp number) {
        // Without roles, the block is one warpgroup, which has all fragments.
        if (!hasRoles() || !number.getAgain())
          return values[op->getResult(0)] = Expr{hasRoles() ? "warpgroup" : "0"}, true;
        return define(*op, {kWarpgroup}, /*mayInline=*/false), true;
      })
      .Case<device::AwaitConsumersOp>([&](auto) { return giveBlock(), true; })
      .Case<device::KeptOp>([&](device::KeptOp kept) {
        if (inProducer) // the producer has computed it
          return values[op->getResult(0)] = value(kept.getOperand()), true;
        std::string text = launch.nextBlock ? ofAllLanes(kept.getOperand()) : keptNumber(kept.getOperand());
        return define(*op, {text}, /*mayInline=*/false), true;
      })
      .Case<device::CollectOp>([&](auto collect) { return printCollect(collect), true; })
      .Case<device::MemberOp>([&](device::MemberOp member) {
        auto collect = member.getList().getDefiningOp<device::CollectOp>();
        std::string place = value(member.getList()).text + "[" + value(member.getPlace()).text + "]";
        std::optional<int64_t> first = getConstantIntValue(collect.getLower());
        if (first && *first == 0)
          return define(*op, {"int64_t(" + place + ")"}), true;
        return define(*op, {value(collect.getLower()).at(Expr::sum) + " + " + place, Expr::sum}), true;
      })
      .Case<device::CopyOp>([&](auto copy) { return printCopy(copy), true; })
      .Case<device::CopyRowsOp>([&](auto copy) { return printCopyRows(copy), true; })
      .Case<device::WaitOp>([&](auto wait) {
        helpers.insert("wait");
        std::string parity = value(wait.getParity()).text;
        auto own = wait.getBarriers().template getDefiningOp<device::BarriersOp>();
        if (getNameInProgram(own.getResult()) == "turns")
          writeComment("Ping-pong: the warpgroups start their products of scores one after the other.");
        if (launch.nextBlock && own.getOdd())
          parity = parity == "0" ? blockParity : value(wait.getParity()).at(Expr::sum) + " ^ " + blockParity;
        write("wait(" + slot(wait.getBarriers(), wait.getSlot()) + ", " + parity + ");");
        if (device::isFilledByThreads(wait.getBarriers()))
          writeWithNote("asm volatile(\"fence.proxy.async.shared::cta;\" ::: \"memory\");",
                        "threads have copied: shows wgmma their writes");
        return true;
      })
      .Case<device::ArriveOp>([&](auto arrive) {
        helpers.insert("arrive");
        bool isEmpty = StringRef(getNameInProgram(arrive.getBarriers())).ends_with("_empty");
        writeWithNote("arrive(" + slot(arrive.getBarriers(), arrive.getSlot()) + ");",
                      isEmpty ? "the producer may fill this stage again" : "the next warpgroup may start");
        return true;
      })
      .Case<device::ThreadOffsetOp>([](auto) { return true; }) // printed by the enclosing map
      .Case<device::AnyOp>([&](auto any) { return printAny(any), true; })
      .Case<device::IfAnyOp>([&](auto branch) { return printIfAny(branch), true; })
      .Case<device::FillOp>([&](auto fill) { return printFill(fill), true; })
      .Case<device::ContractOp>([&](auto contract) { return printContract(contract), true; })
      .Case<device::ContractFragmentsOp>([&](auto product) { return printContractFragments(product), true; })
      .Case<device::LoadFragmentOp>([&](auto load) { return printLoadFragment(load), true; })
      .Case<device::ConvertLayoutOp>([&](auto convert) { return printConvertLayout(convert), true; })
      .Case<device::StoreTileOp>([&](auto store) { return printStoreTile(store), true; })
      .Case<device::AwaitStoresOp>([&](device::AwaitStoresOp wait) { return printAwaitStores(wait), true; })
      .Case<device::PublishOp>([&](auto published) { return printPublish(published), true; })
      .Case<device::LoadPeerOp>([&](auto load) { return printLoadPeer(load), true; })
      .Case<device::SyncClusterOp>([&](auto) {
        helpers.insert("sync_cluster");
        write("sync_cluster();");
        return true;
      })
      .Case<device::SyncWarpgroupOp>([&](auto barrier) {
        if (!isa_and_nonnull<device::StoreTileOp>(barrier->getNextNode())) // prints it next to its reason
          write(kSyncWarpgroup);
        return true;
      })
      .Case<device::ClearUnseenOp>([&](auto clear) { return printClear(clear), true; })
      .Case<device::AwaitOp>([&](auto await) { return printAwait(await), true; })
      .Default(false);
}

std::string KernelPrinter::slot(Value array, Value index) {
  return "&" + value(array).text + "[" + value(index).text + "]";
}

std::string KernelPrinter::stage(Value ring, Value number) {
  if (std::optional<int64_t> constant = getConstantIntValue(number); constant && *constant == 0)
    return value(ring).text;
  auto bytes = llvm::find_if(stageBytes, [&](const auto &entry) { return entry.first == ring; });
  return value(ring).text + " + " + value(number).at(Expr::product) + " * " + bytes->second;
}

//===----------------------------------------------------------------------===//
// Shared memory and roles
//===----------------------------------------------------------------------===//

/// Prints rounds with one index per thread. The members of each round are appended in order.
void KernelPrinter::printCollect(device::CollectOp op) {
  declareShared();
  helpers.insert("append_members");
  auto yield = cast<device::YieldOp>(op.getBody().front().getTerminator());
  std::vector<std::string> lists, counts, flags;
  for (auto [k, list] : llvm::enumerate(op.getLists())) {
    lists.push_back(value(list).text);
    counts.push_back(fresh("num_" + getListName(op, k)));
    write("int64_t " + counts.back() + " = 0;");
  }
  const std::string lower = value(op.getLower()).at(Expr::sum + 1);
  const std::string upper = value(op.getUpper()).at(Expr::relation + 1);
  pushScope();
  std::string base = fresh("base");
  open("for (int64_t " + base + " = " + value(op.getLower()).text + "; " + base + " < " + upper + "; " + base +
           " += " + std::to_string(launch.threads) + ") {",
       /*hasScope=*/true);
  std::string t = fresh(wishFor(op.getBody().getArgument(0), "t"));
  write("const int64_t " + t + " = " + base + " + threadIdx.x;");
  values[op.getBody().getArgument(0)] = {t};
  for (size_t k = 0; k < lists.size(); ++k) {
    flags.push_back(fresh("is_" + llvm::StringRef(getListName(op, k)).rtrim('s').str()));
    write("bool " + flags.back() + " = false;");
  }
  open("if (" + t + " < " + upper + ") {");
  printBlock(op.getBody().front());
  for (auto [flag, result] : llvm::zip(flags, yield.getValues()))
    write(flag + " = " + value(result).text + ";");
  close();
  for (auto [list, count, flag] : llvm::zip(lists, counts, flags))
    write(count + " = append_members(" + list + ", " + count + ", " + flag + ", " + t + " - " + lower + ", shared." +
          collectWords + ");");
  close();
  for (size_t k = 0; k < lists.size(); ++k)
    values[op.getCounts()[k]] = {counts[k]};
}

/// Returns a name for a list of a collection.
std::string KernelPrinter::getListName(device::CollectOp op, size_t k) {
  auto wishes = op->getAttrOfType<ArrayAttr>("names");
  bool isNamed = wishes && k < wishes.size() && isa<StringAttr>(wishes[k]);
  return isNamed ? cast<StringAttr>(wishes[k]).str() : "members";
}

/// Rings and barriers are fields of the block's shared memory. Without roles, initialises all
/// barriers after the last.
void KernelPrinter::printShared(Operation *op) {
  declareShared();
  auto type = dyn_cast<device::BarriersType>(op->getResult(0).getType());
  if (!type)
    return;
  barriers.emplace_back(value(op->getResult(0)).text, cast<TypedValue<device::BarriersType>>(op->getResult(0)));
  if (!hasRoles() && device::isLastBarriers(op))
    initBarriers();
}

bool KernelPrinter::hasRoles() { return !kernel.getBody().getOps<device::SpecializeOp>().empty(); }

/// Returns the field of a block's number in shared memory.
std::string KernelPrinter::keptNumber(Value number) {
  return "shared." + keptFields[llvm::find(launch.kept, number) - launch.kept.begin()];
}

/// Says who arrives on barriers.
static const char *noteOfArrivals(TypedValue<device::BarriersType> barriers) {
  if (device::isFilledByThreads(barriers))
    return "each thread of the producer arrives";
  if (barriers.getType().getArrivals() == 1)
    return "the producer arrives";
  bool isCopied = llvm::any_of(barriers.getUsers(), llvm::IsaPred<device::CopyOp>);
  return isCopied ? "the producer arrives for each part of a tile" : "each consumer warp arrives";
}

/// Prints the initialisation of the barriers by the first thread, before the others pass
/// __syncthreads. Computes meanwhile whether the block has work (`hasWork`).
void KernelPrinter::initBarriers(Value hasWork) {
  helpers.insert("init_barriers");
  open("if (threadIdx.x == 0) {");
  for (const auto &[name, own] : barriers) {
    device::BarriersType type = own.getType();
    writeWithNote("init_barriers(" + name + ", " + std::to_string(type.getStages()) + ", " +
                      std::to_string(type.getArrivals()) + ");",
                  noteOfArrivals(own));
  }
  if (launch.nextBlock) {
    write("init_barriers(" + givenBarrier + ", 1, 1);");
    write("init_barriers(" + leftBarrier + ", 1, " + std::to_string(launch.threads - 128) + ");");
  }
  write("publish_barriers();");
  if (!launch.nextBlock) // else once per tile
    for (Value number : launch.kept)
      write(keptNumber(number) + " = " + value(number).text + ";");
  close();
  if (hasWork)
    write("if (!" + value(hasWork).at(Expr::unary) + ") return;");
  write("__syncthreads();");
}

/// Initialises the barriers and splits the block into roles.
void KernelPrinter::printSpecialize(device::SpecializeOp op) {
  bool isPerBlock = op.getCondition() && launch.isPerBlock(op.getCondition().getDefiningOp());
  initBarriers(isPerBlock ? Value() : op.getCondition());
  write("const int64_t warpgroup = " + std::string(kWarpgroup) + ";");
  printRoles(op);
}

/// Says how the ring protocol starts, in which order the producer takes tiles, and which arrays it
/// copies into two rings.
void KernelPrinter::writeProducerNotes(Region &producer) {
  bool ordersTiles = false;
  llvm::DenseMap<Value, llvm::SmallDenseSet<Value>> rings; // by array
  std::vector<std::string> twice;
  producer.walk([&](Operation *op) {
    ordersTiles |= isa<arith::SelectOp>(op) && getNameInProgram(op->getResult(0)) == "tile";
    auto copy = dyn_cast<device::CopyOp>(op);
    if (!copy || !op->getParentOfType<scf::ForOp>())
      return;
    auto &found = rings[copy.getArray()];
    if (found.insert(copy.getRing()).second && found.size() == 2)
      twice.push_back(names.of(copy.getArray()));
  });
  writeComment("A fresh barrier passes a wait for parity 1: the first round does not wait." +
               std::string(ordersTiles ? " Tiles that need the mask come first." : ""));
  if (!twice.empty())
    writeComment("It copies " + llvm::join(twice, " and ") +
                 " twice per tile, because scores release a stage earlier than sums do.");
}

void KernelPrinter::printRoles(device::SpecializeOp op) {
  writeComment(
      "Producer warpgroup: " + std::string(op.getTogether() ? "copies tiles" : "one thread copies tiles by TMA") +
      " into free stages. Consumer warpgroups: 64 rows each.");
  open("if (warpgroup == " + std::to_string(op.getWarpgroups()) + ") {");
  writeWithNote("asm volatile(\"setmaxnreg.dec.sync.aligned.u32 " + std::to_string(op.getProducerRegisters()) + ";\");",
                "leaves its registers to the consumers");
  if (!op.getTogether())
    open("if (threadIdx.x % 128 == 0) {");
  bool hasRings = op.getProducer().walk([](device::WaitOp) { return WalkResult::interrupt(); }).wasInterrupted();
  if (hasRings) {
    writeComment(
        "Full barriers complete when the bytes of a tile have arrived, empty ones when all consumer warps have.");
    writeProducerNotes(op.getProducer());
  }
  launch.nextBlock ? printProducerBlocks(op) : printBlock(op.getProducer().front());
  if (!op.getTogether())
    close();
  close("} else {");
  open("");
  write("asm volatile(\"setmaxnreg.inc.sync.aligned.u32 " + std::to_string(op.getConsumerRegisters()) + ";\");");
  printThreadPlaces(op.getConsumer());
  launch.nextBlock ? printConsumerBlocks(op) : printBlock(op.getConsumer().front());
  close();
}

/// Prints the producer of a persistent kernel, which takes tile numbers from a counter.
void KernelPrinter::printProducerBlocks(device::SpecializeOp op) {
  helpers.insert({"wait", "arrive", "next_block"});
  device::NextBlockOp next = launch.nextBlock;
  blockParity = fresh("turn");
  writeComment("Persistent kernel: takes block numbers from a counter and hands them to the consumers.");
  write("int " + blockParity + " = 0;");
  pushScope();
  std::string block = fresh(wishFor(next.getResult(), "block"));
  open("for (int64_t " + block + " = int64_t(blockIdx.x); " + block + " < " +
           value(next.getBlocks()).at(Expr::relation + 1) + "; " + block + " = next_block(" +
           names.of(next.getArray()) + " + " + value(next.getOffset()).at(Expr::sum + 1) + ", " +
           std::to_string(next.getResidents()) + ")) {",
       /*hasScope=*/true);
  values[next.getResult()] = {block};
  for (Operation *perBlock : launch.perBlockOps)
    if (perBlock != next)
      printStatement(*perBlock);
  if (op.getCondition() && launch.isPerBlock(op.getCondition().getDefiningOp()))
    write("if (!" + value(op.getCondition()).at(Expr::unary) + ") continue;");
  inProducer = true;
  printBlock(op.getProducer().front());
  inProducer = false;
  write(blockParity + " ^= 1;");
  close();
  write("wait(" + leftBarrier + ", 1 - " + blockParity + ");");
  write(hasBlock + " = 0;");
  write("arrive(" + givenBarrier + ");");
  blockParity.clear();
}

/// Prints the consumers of a persistent kernel, which process tiles in the order of the producer.
void KernelPrinter::printConsumerBlocks(device::SpecializeOp op) {
  helpers.insert("arrive_all");
  pushScope();
  blockParity = fresh("turn");
  open("for (int " + blockParity + " = 0;; " + blockParity + " ^= 1) {", /*hasScope=*/true);
  write("wait(" + givenBarrier + ", " + blockParity + ");");
  write("if (" + hasBlock + " == 0) break;");
  for (Value given : launch.perBlockValues) {
    std::string name = fresh(wishFor(given, "value")), type = getValueType(given.getType()).str();
    writeConstant(type, name + " = " + ofAllLanes(given));
    values[given] = {name};
  }
  printBlock(op.getConsumer().front());
  write("arrive_all(" + leftBarrier + ");");
  close();
  blockParity.clear();
}

/// Returns a number that the producer stored. 32-bit numbers are broadcast from lane 0. ptxas then
/// knows them to be uniform and schedules the tile operations better.
std::string KernelPrinter::ofAllLanes(Value number) {
  Type type = number.getType();
  std::string kept = keptNumber(number), word = "__shfl_sync(0xffffffff, int(" + kept + "), 0)";
  if (gpu::isWord(number)) {
    helpers.insert("low_word");
    return "low_word(" + word + ")";
  }
  if (type.isF64())
    return "__longlong_as_double(" + kept + ")";
  if (type.isF16() || type.isBF16())
    return std::string(type.isF16() ? "__ushort_as_half" : "__ushort_as_bfloat16") + "(uint16_t(" + word + "))";
  if (type.isF32())
    return "__int_as_float(" + word + ")";
  return type.isIndex() || type.isInteger(64) ? kept : type.isInteger(1) ? word + " != 0" : word;
}

/// Returns the bits of a number to store.
std::string KernelPrinter::bitsOf(Value number) {
  Type type = number.getType();
  std::string text = value(number).text;
  const char *bits = type.isF64()    ? "__double_as_longlong("
                     : type.isF32()  ? "__float_as_int("
                     : type.isF16()  ? "__half_as_ushort("
                     : type.isBF16() ? "__bfloat16_as_ushort("
                                     : nullptr;
  return bits ? bits + text + ")" : text;
}

/// Prints the stores of a block's scalars to shared memory, after the consumers have finished the
/// previous block.
void KernelPrinter::giveBlock() {
  write("wait(" + leftBarrier + ", 1 - " + blockParity + ");");
  for (Value number : launch.kept)
    write(keptNumber(number) + " = " + bitsOf(number) + ";");
  write(hasBlock + " = 1;");
  write("arrive(" + givenBarrier + ");");
}

void KernelPrinter::printStoreTile(device::StoreTileOp op) {
  RingType ring = op.getRing().getType();
  const std::string &map = launch.getMap(op.getArray(), op.getRowAxis(), 64).name;
  unsigned rank = op.getArray().getType().getRank();
  std::string helper = (device::findWait(op) ? "store_tile_" : "store_tile_async_") + std::to_string(rank) + "d";
  helpers.insert(helper);
  helpers.insert("put_fragment");
  std::string coordinates;
  for (Value coordinate : op.getCoordinates())
    coordinates += ", " + value(coordinate).text;
  std::string sizes =
      "<" + std::to_string(ring.getRows()) + ", " + std::to_string(op.getFragment().getType().getShape()[1]) + ">(";
  std::string tile = fresh("staged");
  write("unsigned char *const " + tile + " = " + stage(op.getRing(), op.getStage()) + " + " +
        value(op.getRow()).at(Expr::product) + " * 128;");
  if (isa_and_nonnull<device::SyncWarpgroupOp>(op->getPrevNode()))
    write(std::string(kSyncWarpgroup) + " // the other warps have read the tile");
  write("put_fragment<" + std::to_string(ring.getRows()) + ">(" + tile + ", " + value(op.getFragment()).text + ");");
  write(helper + sizes + tile + ", &" + map + coordinates + ");");
}

/// Prints the wait of the thread that started stores, unless the last store includes it.
void KernelPrinter::printAwaitStores(device::AwaitStoresOp op) {
  if (isa_and_nonnull<device::StoreTileOp>(op->getPrevNode()))
    return;
  helpers.insert("await_stores");
  write("await_stores();");
}

void KernelPrinter::printCopy(device::CopyOp op) {
  RingType ring = op.getRing().getType();
  const std::string &map = launch.getMap(op).name;
  unsigned rank = op.getArray().getType().getRank();
  std::string helper = std::string(ring.getElementBytes() == 1 ? "copy_byte_" : "copy_") +
                       (op.getFirst() ? "part_" : "tile_") + (op.getColumn() ? "from_" : "") + std::to_string(rank) +
                       "d";
  helpers.insert(helper);
  std::string coordinates;
  for (Value coordinate : op.getCoordinates())
    coordinates += ", " + value(coordinate).text;
  if (op.getColumn())
    coordinates += ", " + value(op.getColumn()).text;
  std::string to = stage(op.getRing(), op.getStage()), sizes = std::to_string(ring.getRows());
  if (op.getFirst()) {
    to += " + " + value(op.getFirst()).at(Expr::product) + " * 128";
    sizes += ", " + std::to_string(op.getTileRows());
  }
  auto roles = op->getParentOfType<device::SpecializeOp>();
  write(std::string(roles && roles.getTogether() ? "if (threadIdx.x % 128 == 0) " : "") + helper + "<" + sizes + ", " +
        std::to_string(ring.getColumns()) + ">(" + to + ", &" + map + ", " + slot(op.getBarriers(), op.getSlot()) +
        coordinates + ");");
}

/// Prints a loop over the 16-byte units of a tile, which the threads of the producer share.
void KernelPrinter::printCopyRows(device::CopyRowsOp op) {
  helpers.insert({"copy_unit", "arrive_copied"});
  RingType ring = op.getRing().getType();
  int64_t perUnit = 16 / ring.getElementBytes(), units = ring.getColumns() / perUnit;
  std::string tile = fresh("tile");
  write("unsigned char *const " + tile + " = " + stage(op.getRing(), op.getStage()) + ";");
  pushScope();
  std::string unit = fresh("unit");
  open("_Pragma(\"unroll 4\") for (int " + unit + " = threadIdx.x % 128; " + unit + " < " +
           std::to_string(ring.getRows() * units) + "; " + unit + " += 128) {",
       /*hasScope=*/true);
  std::string row = fresh(wishFor(op.getBody().getArgument(0), "row")), column = fresh("column");
  write("const int64_t " + row + " = " + unit + " / " + std::to_string(units) + ", " + column + " = " + unit + " % " +
        std::to_string(units) + ";");
  values[op.getBody().getArgument(0)] = {row};
  printBlock(op.getBody().front());
  device::YieldOp yield = op.getYield();
  std::string present = value(yield.getValues()[1]).text;
  if (op.getColumns() < static_cast<uint64_t>(ring.getColumns()))
    present = value(yield.getValues()[1]).at(Expr::conjunction) + " && " + column + " < " +
              std::to_string(op.getColumns() / perUnit);
  write("copy_unit<" + std::to_string(ring.getRows()) + ">(" + tile + ", int(" + row + "), int(" + column + "), " +
        names.of(op.getArray()) + " + " + value(yield.getValues()[0]).at(Expr::sum + 1) + " + " + column + " * " +
        std::to_string(perUnit) + ", " + present + ");");
  close();
  write("arrive_copied(" + slot(op.getBarriers(), op.getSlot()) + ");");
}

/// Returns the shared memory of a published fragment, and the threads of all consumers.
std::pair<std::string, std::string> KernelPrinter::publishedAt(device::PublishOp op) {
  int64_t threads = 128 * op->getParentOfType<device::SpecializeOp>().getWarpgroups();
  std::string at = value(op.getRing()).at(Expr::sum);
  return {op.getAt() ? at + " + " + std::to_string(op.getAt()) : at, "<" + std::to_string(threads) + ">("};
}

void KernelPrinter::printPublish(device::PublishOp op) {
  helpers.insert({"published_words", "publish"});
  auto [at, threads] = publishedAt(op);
  write("publish" + threads + at + ", " + value(op.getFragment()).text + ");");
}

void KernelPrinter::printLoadPeer(device::LoadPeerOp op) {
  helpers.insert({"published_words", "load_peer"});
  auto [at, threads] = publishedAt(op.getPublished().getDefiningOp<device::PublishOp>());
  std::string name = declareFragment(op.getResult(), "peer");
  write("load_peer" + threads + name + ", " + at + ", int(" + value(op.getRank()).text + "));");
}

void KernelPrinter::printClear(device::ClearUnseenOp op) {
  RingType ring = op.getRing().getType();
  auto roles = op->getParentOfType<device::SpecializeOp>();
  std::string helper = op.getInterleaved() ? "clear_masked_columns" : "clear_masked_rows";
  helpers.insert(helper);
  write(helper + "<" + std::to_string(op.getInterleaved() ? ring.getRows() : ring.getColumns()) + ", " +
        std::to_string(roles.getWarpgroups()) + ">(" + stage(op.getRing(), op.getStage()) + ", shared." + clearWords +
        ", " + value(op.getSeen()).text + ");");
}

} // namespace moa::cuda
