//===- Launch.cpp - launch parameters of a device kernel ------------------===//
#include "lib/Target/GPU/Launch.h"
#include "dialects/Device/Transforms/Accesses.h"
#include "dialects/Device/Transforms/Launches.h"
#include "dialects/ONF/IR/Hints.h"
#include "lib/Schedule/GpuMachine.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include <set>
#include <tuple>

using namespace mlir;

namespace moa::gpu {

static unsigned getNumber(Value array) { return cast<BlockArgument>(array).getArgNumber(); }

bool isWord(Value index) {
  auto cast = index.getDefiningOp<arith::IndexCastOp>();
  return cast && cast.getIn().getDefiningOp<arith::ExtUIOp>();
}

const TensorMap &Launch::getMap(Value array, unsigned rowAxis, int64_t rows, const SymExpr &step) const {
  auto found = llvm::find_if(parameters.maps, [&](const TensorMap &map) {
    return map.array == getNumber(array) && map.rowAxis == rowAxis && map.rows == rows && map.step == step;
  });
  assert(found != parameters.maps.end() && "no tiles of this array");
  return *found;
}

const TensorMap &Launch::getMap(device::CopyOp copy) const {
  return getMap(copy.getArray(), copy.getRowAxis(), copy.getTileRows(), copy.getStep());
}

namespace {
class Collector {
public:
  explicit Collector(device::KernelOp kernel)
      : kernel(kernel), program(cast<device::ProgramOp>(kernel->getParentOp())) {}
  Launch run();

private:
  void visit(Operation *op);
  void allocate(Operation *op);
  void findNextBlock();
  void addMap(Value array, unsigned rowAxis, int64_t rows, const SymExpr &step = SymExpr(1)) {
    maps.try_emplace({getNumber(array), rowAxis, rows, step.str()}, step);
  }

  device::KernelOp kernel;
  device::ProgramOp program;
  Launch launch;
  std::set<unsigned> arrays, scalars;
  std::set<std::string> symbols;
  std::map<std::tuple<unsigned, unsigned, int64_t, std::string>, SymExpr> maps; // by the step's text
  bool clears = false, collects = false;
};
} // namespace

void Collector::allocate(Operation *op) {
  Value memory = op->getResult(0);
  auto ring = dyn_cast<device::RingType>(memory.getType());
  if (ring)
    launch.sharedBytes = llvm::alignTo(launch.sharedBytes, 1024);
  launch.offsets[memory] = launch.sharedBytes;
  launch.sharedBytes +=
      ring ? ring.getStages() * ring.getStageBytes() : 8 * cast<device::BarriersType>(memory.getType()).getStages();
}

void Collector::visit(Operation *op) {
  llvm::TypeSwitch<Operation *>(op)
      .Case<device::LoadOp, device::StoreOp, device::LoadRunOp, device::StoreRunOp, device::SignalOp, device::SignalsOp,
            device::RaiseOp, device::NextBlockOp, device::StagesOp, device::CopyRowsOp>(
          [&](auto access) { arrays.insert(getNumber(access.getArray())); })
      .Case<device::ScalarOp>([&](auto scalar) { scalars.insert(getNumber(scalar.getArray())); })
      .Case<device::SymbolOp>([&](auto symbol) { symbol.getExpr().collectSymbols(symbols); })
      .Case<device::SharedOp, device::BarriersOp>([&](auto memory) { allocate(memory); })
      .Case<device::CopyOp>(
          [&](auto copy) { addMap(copy.getArray(), copy.getRowAxis(), copy.getTileRows(), copy.getStep()); })
      .Case<device::StoreTileOp>([&](auto store) { addMap(store.getArray(), store.getRowAxis(), 64); })
      .Case<device::KeptOp>([&](auto kept) {
        if (!llvm::is_contained(launch.kept, kept.getOperand()))
          launch.kept.push_back(kept.getOperand());
      })
      .Case<device::CollectOp>([&](device::CollectOp collect) {
        collects = true;
        for (Value list : collect.getLists()) {
          launch.offsets[list] = launch.sharedBytes;
          launch.sharedBytes += cast<device::MembersType>(list.getType()).getBytes();
        }
        launch.sharedBytes = llvm::alignTo(launch.sharedBytes, 8);
      })
      .Case<device::SpecializeOp>([&](device::SpecializeOp roles) {
        // Threads start with an equal share of the roles' registers, in units of 8.
        static const int64_t all = llvm::cantFail(loadGpuMachine("sm_90a")).registers;
        int64_t groups = roles.getWarpgroups() + 1;
        int64_t sum = roles.getWarpgroups() * roles.getConsumerRegisters() + roles.getProducerRegisters();
        int64_t each = llvm::alignTo(llvm::divideCeil(sum, groups), 8);
        launch.residents = std::max<int64_t>(all / (128 * groups * each), 1);
      })
      .Case<device::ClearUnseenOp>([&](auto) { clears = true; });
}

/// Collects the ops that depend on a fetched tile number, and their values that consumers read.
void Collector::findNextBlock() {
  for (auto next : kernel.getBody().front().getOps<device::NextBlockOp>())
    launch.nextBlock = next;
  if (!launch.nextBlock)
    return;
  device::SpecializeOp roles;
  llvm::SmallPtrSet<Operation *, 32> known;
  for (Operation &op : kernel.getBody().front()) {
    if ((roles = dyn_cast<device::SpecializeOp>(op)))
      break;
    bool depends = &op == launch.nextBlock;
    op.walk([&](Operation *inner) {
      depends |= llvm::any_of(inner->getOperands(), [&](Value v) { return known.contains(v.getDefiningOp()); });
    });
    if (depends) {
      known.insert(&op);
      launch.perBlockOps.push_back(&op);
    }
  }
  // Consumers read kept numbers at their uses.
  roles.getConsumer().walk([&](Operation *op) {
    if (isa<device::KeptOp>(op))
      return;
    for (Value v : op->getOperands())
      if (known.contains(v.getDefiningOp()) && !llvm::is_contained(launch.perBlockValues, v))
        launch.perBlockValues.push_back(v);
  });
  for (Value v : launch.perBlockValues)
    if (!llvm::is_contained(launch.kept, v))
      launch.kept.push_back(v);
}

/// Returns whether the block count of another kernel has a higher degree in the sizes.
static bool hasFewBlocks(device::KernelOp kernel) {
  unsigned own = kernel.getBlocks().getDegree();
  return llvm::any_of(kernel->getParentOfType<device::ProgramOp>().getBody().getOps<device::KernelOp>(),
                      [&](auto other) { return other.getBlocks().getDegree() > own; });
}

Launch Collector::run() {
  launch.name = kernel.getSymName().str();
  launch.blocks = kernel.getBlocks();
  launch.threads = kernel.getThreads();
  for (auto [x, y] : onf::getLaunchConditions(kernel))
    launch.condition.push_back({x.getValue(), y.getValue()});
  auto kernels = program.getBody().getOps<device::KernelOp>();
  launch.number = llvm::count_if(kernels, [&](device::KernelOp other) { return other->isBeforeInBlock(kernel); });
  launch.isReportOnly = device::findReportOnly(program).contains(kernel);
  launch.follows = launch.number != 0;
  launch.overlapsPrevious = kernel->hasAttr(device::kOverlapAttr);
  if (launch.overlapsPrevious)
    launch.blocks = launch.blocks + SymExpr(1);
  if (Value flag = device::getSkipFlag(kernel)) {
    device::KernelOp waiting = device::findWaiting(flag, kernel);
    auto before = [&](device::KernelOp other) { return waiting && other->isBeforeInBlock(waiting); };
    launch.idle = cast<BlockArgument>(flag).getArgNumber();
    launch.idleAfter = llvm::count_if(kernels, before);
    arrays.insert(*launch.idle);
  }
  if (auto blocks = launch.blocks.getConstant(); !launch.overlapsPrevious && (!blocks || *blocks <= 0))
    for (auto other : kernels)
      if (Value flag = device::getSkipFlag(other))
        launch.isReliedOn |= device::findWaiting(flag, other) == kernel;
  auto next = dyn_cast_or_null<device::KernelOp>(kernel->getNextNode());
  launch.letsNextStart = next && next->hasAttr(device::kOverlapAttr);
  kernel.walk<WalkOrder::PreOrder>([&](Operation *op) { visit(op); });
  for (BlockArgument array : program.getBody().getArguments()) {
    auto isUsedBy = [&](auto isOne) {
      return llvm::any_of(array.getUsers(), [&](Operation *user) { return isOne(user) && kernel->isAncestor(user); });
    };
    bool isWritten = isUsedBy([](Operation *user) {
      return isa<device::StoreOp, device::StoreRunOp, device::SignalOp, device::RaiseOp, device::NextBlockOp,
                 device::StagesOp>(user);
    });
    if (launch.follows && !isWritten && !program.isInput(array))
      launch.awaited.push_back(array.getArgNumber());
    if (isWritten)
      launch.written.push_back(array.getArgNumber());
    if (isWritten &&
        isUsedBy([](Operation *user) { return isa<device::LoadOp, device::LoadRunOp, device::SignalsOp>(user); }))
      launch.exchanged.push_back(array.getArgNumber());
  }
  if (clears) {
    launch.clearWords = llvm::alignTo(launch.sharedBytes, 16);
    launch.sharedBytes = launch.clearWords + 16;
  }
  if (collects) {
    launch.collectWords = llvm::alignTo(launch.sharedBytes, 4);
    launch.sharedBytes = launch.collectWords + 32 * 4;
  }
  findNextBlock();
  for (auto stages : kernel.getBody().front().getOps<device::StagesOp>())
    launch.stages = stages;
  if (launch.stages)
    launch.mostBlocks = launch.stages.getResidents() + launch.overlapsPrevious;
  else if (launch.nextBlock)
    launch.mostBlocks = launch.nextBlock.getResidents() + launch.overlapsPrevious;
  if (!launch.kept.empty()) {
    launch.firstKept = llvm::alignTo(launch.sharedBytes, 8);
    launch.sharedBytes = launch.firstKept + 8 * launch.kept.size();
  }
  if (launch.nextBlock) {
    launch.givenBarrier = llvm::alignTo(launch.sharedBytes, 8);
    launch.leftBarrier = launch.givenBarrier + 8;
    launch.hasBlockOffset = launch.leftBarrier + 8;
    launch.sharedBytes = launch.hasBlockOffset + 8;
  }
  launch.letsNextStart |= next && launch.sharedBytes == 0 && hasFewBlocks(kernel);
  launch.parameters.arrays.assign(arrays.begin(), arrays.end());
  launch.parameters.scalars.assign(scalars.begin(), scalars.end());
  launch.parameters.symbols.assign(symbols.begin(), symbols.end());
  std::set<std::string> used;
  SmallVector<StringRef> names = program.getAllNames();
  for (const auto &[key, step] : maps) {
    auto [array, rowAxis, rows, text] = key;
    std::string wish = names[array].str() + "_tiles", name = wish;
    for (unsigned k = 2; !used.insert(name).second; ++k)
      name = wish + "_" + std::to_string(k);
    launch.parameters.maps.push_back({name, array, rowAxis, rows, step});
  }
  return std::move(launch);
}

/// Returns the condition x > y of all kernels that use an array, if it is their only one.
static std::optional<std::pair<SymExpr, SymExpr>> findCondition(BlockArgument array) {
  std::optional<std::pair<SymExpr, SymExpr>> found;
  for (Operation *user : array.getUsers()) {
    auto conditions = onf::getLaunchConditions(user->getParentOfType<device::KernelOp>());
    if (conditions.size() != 1)
      return std::nullopt;
    std::pair<SymExpr, SymExpr> own(conditions[0].first.getValue(), conditions[0].second.getValue());
    if (found && *found != own)
      return std::nullopt;
    found = own;
  }
  return found;
}

/// Returns 1 if x > y, else 0, for x and y that are not negative: q = ⌊x / (y + 1)⌋ is 0 unless x > y,
/// and at most x.
static SymExpr isAbove(const SymExpr &x, const SymExpr &y) {
  SymExpr q = SymExpr::floorDiv(x, y + SymExpr(1));
  return SymExpr::floorDiv(q + x, x + SymExpr(1));
}

std::vector<WorkspaceArray> getWorkspace(device::ProgramOp program) {
  std::vector<WorkspaceArray> list;
  SymExpr offset;
  SmallVector<StringRef> names = program.getAllNames();
  SmallVector<BlockArgument> arrays(llvm::make_filter_range(
      program.getBody().getArguments(), [&](BlockArgument array) { return program.isWorkspace(array); }));
  auto widthOf = [](BlockArgument array) {
    return cast<ArrayType>(array.getType()).getElementType().getIntOrFloatBitWidth();
  };
  llvm::stable_sort(arrays, [&](BlockArgument x, BlockArgument y) { return widthOf(x) > widthOf(y); });
  // Tiles, aligned runs and stored pairs need aligned starts. Arrays that are read without a wait
  // must not share a cache line with arrays being written.
  bool needsAlignment = false, overlaps = false;
  program.walk([&](Operation *op) {
    llvm::TypeSwitch<Operation *>(op)
        .Case<device::CopyOp, device::CopyRowsOp>(
            [&](auto copy) { needsAlignment |= program.isWorkspace(copy.getArray()); })
        .Case<device::StoreOp>([&](auto store) { needsAlignment |= store.getPairs(); })
        .Case<device::LoadRunOp, device::StoreRunOp>([&](auto access) { needsAlignment |= access.getAligned(); })
        .Case<device::KernelOp>([&](auto kernel) {
          overlaps |= kernel->hasAttr(device::kSkipFlagAttr) || kernel->hasAttr(device::kOverlapAttr);
        });
  });
  for (BlockArgument array : arrays) {
    auto type = cast<ArrayType>(array.getType());
    WorkspaceArray &placed = list.emplace_back();
    placed.number = array.getArgNumber();
    placed.name = names[placed.number].str();
    placed.type = *getElementType(type.getElementType());
    placed.bytes = SymExpr(int64_t(widthOf(array) / 8));
    for (unsigned axis = 0; axis < type.getRank(); ++axis) {
      placed.extents.push_back(type.getExtent(axis));
      placed.bytes = placed.bytes * placed.extents.back();
    }
    if (auto condition = findCondition(array))
      placed.bytes = placed.bytes * isAbove(condition->first, condition->second);
    // The workspace starts at a multiple of 64 bytes, so 64 bytes more between arrays keep their
    // 128-byte lines apart.
    placed.unit = overlaps ? 128 : needsAlignment ? 64 : 1;
    placed.slack = overlaps ? 128 + 63 : placed.unit - 1;
    if (placed.unit > 1)
      offset = SymExpr::floorDiv(offset + SymExpr(placed.slack), SymExpr(placed.unit)) * SymExpr(placed.unit);
    placed.offset = offset;
    offset = offset + placed.bytes;
  }
  return list;
}

const WorkspaceArray &getArray(llvm::ArrayRef<WorkspaceArray> workspace, llvm::StringRef name) {
  return *llvm::find_if(workspace, [&](const WorkspaceArray &array) { return array.name == name; });
}

SymExpr getWorkspaceBytes(llvm::ArrayRef<WorkspaceArray> arrays) {
  return arrays.empty() ? SymExpr() : arrays.back().offset + arrays.back().bytes;
}

std::string HostLaunch::printGrid(const std::string &count) const {
  std::string most = mostBlocks ? std::to_string(*mostBlocks) : "";
  return mostBlocks ? count + " < " + most + " ? " + count + " : " + most : count;
}

Launch getLaunch(device::KernelOp kernel) { return Collector(kernel).run(); }

} // namespace moa::gpu
