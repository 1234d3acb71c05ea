//===- DeviceInterpreter.cpp - launches, blocks, roles --------------------===//
#include "lib/Interpreter/DeviceInterpreter.h"
#include "dialects/Device/Transforms/Launches.h"
#include "dialects/ONF/IR/Hints.h"
#include "lib/Interpreter/DeviceAgent.h"
#include <random>

using namespace mlir;
using namespace moa;
using namespace moa::interp;
using llvm::Error;
using llvm::Expected;

namespace {

class ProgramRunner {
public:
  ProgramRunner(device::ProgramOp program, const Kernel &kernel, Symbols symbols, const DeviceOptions &options)
      : program(program), kernel(kernel), options(options) {
    launch.symbols = std::move(symbols);
  }
  Expected<std::vector<Array>> run(const KernelInputs &inputs);

private:
  Error makeMemories(const KernelInputs &inputs);
  Expected<int64_t> countBlocks(device::KernelOp op);
  Error runKernels(ArrayRef<device::KernelOp> kernels);
  void runCluster(device::KernelOp op, int64_t first);
  void runBlock(device::KernelOp op, int64_t number);
  void runRoles(device::SpecializeOp roles, const Registers &known, BlockState &block, int64_t threads);
  void drive(ArrayRef<Agent *> agents, BlockState &block, Operation *op);
  void reportDeadlock(ArrayRef<Agent *> agents);

  device::ProgramOp program;
  const Kernel &kernel;
  const DeviceOptions &options;
  Launch launch;
  LayoutTables layouts;
  llvm::DenseMap<Operation *, int64_t> counts;               // of blocks
  llvm::DenseMap<Operation *, device::SpecializeOp> rolesOf; // warpgroups of a kernel, if it has some
};

Error ProgramRunner::makeMemories(const KernelInputs &inputs) {
  size_t count = kernel.argNames.size();
  SmallVector<StringRef> names = program.getAllNames();
  launch.firstWorkspace = count + kernel.resultNames.size();
  for (BlockArgument arg : program.getBody().getArguments()) {
    auto type = cast<ArrayType>(arg.getType());
    auto shape = evaluateShape(type, launch.symbols);
    if (!shape)
      return shape.takeError();
    unsigned k = arg.getArgNumber();
    Type element = type.getElementType();
    // Arrays with tiles have the alignment that the copy engine needs, as hosts must provide it.
    int64_t unit = program.hasTiles(arg) ? 16 / std::max<int64_t>(element.getIntOrFloatBitWidth() / 8, 1) : 0;
    auto memory = std::make_unique<Memory>(names[k], *shape, Form::of(element),
                                           /*hasGaps=*/k < launch.firstWorkspace, unit);
    memory->bindStrides(launch.symbols);
    memory->isCopied = llvm::any_of(arg.getUsers(), llvm::IsaPred<device::CopyOp, device::CopyRowsOp>);
    if (k < count) {
      Array array = inputs.arrays[k];
      llvm::transform(array.data, array.data.begin(), Rounding(element));
      memory->fill(array);
    }
    launch.memories.push_back(std::move(memory));
  }
  return Error::success();
}

Expected<std::vector<Array>> ProgramRunner::run(const KernelInputs &inputs) {
  if (Error error = makeMemories(inputs))
    return error;
  SmallVector<device::KernelOp> kernels;
  for (auto op : program.getBody().getOps<device::KernelOp>()) {
    kernels.push_back(op);
    auto next = dyn_cast_or_null<device::KernelOp>(op->getNextNode());
    if (next && next->hasAttr(device::kOverlapAttr))
      continue;
    if (Error error = runKernels(kernels))
      return error;
    kernels.clear();
  }
  if (options.counts)
    *options.counts = {launch.copied, launch.cleared};
  for (size_t k = launch.firstWorkspace; options.workspace && k < launch.memories.size(); ++k)
    if (auto found = options.workspace->find(launch.memories[k]->getName()); found != options.workspace->end()) {
      std::vector<int64_t> missing;
      found->second = launch.memories[k]->gather(&missing);
      if (!missing.empty())
        return makeError(locationText(program.getLoc()) + "element " + indexText(missing) + " of '" + found->first +
                         "' in the workspace is never written");
    }
  std::vector<Array> outputs;
  for (size_t k = kernel.argNames.size(); k < launch.firstWorkspace; ++k) {
    std::vector<int64_t> missing;
    outputs.push_back(launch.memories[k]->gather(&missing));
    if (!missing.empty())
      return makeError(locationText(program.getLoc()) + "element " + indexText(missing) + " of output '" +
                       launch.memories[k]->getName() + "' is never written");
  }
  return outputs;
}

/// Returns the number of blocks of a kernel: 0 if a host does not launch it, or if its skip flag is
/// 0. Values read after it are available nevertheless.
Expected<int64_t> ProgramRunner::countBlocks(device::KernelOp op) {
  auto blocks = evaluate(op.getBlocks(), launch.symbols);
  if (!blocks)
    return blocks.takeError();
  for (auto [larger, smaller] : onf::getLaunchConditions(op)) {
    auto x = evaluate(larger.getValue(), launch.symbols), y = evaluate(smaller.getValue(), launch.symbols);
    if (!x || !y)
      return joinErrors(x.takeError(), y.takeError());
    if (*x <= *y)
      return 0;
  }
  // The blocks of such a launch end at once.
  if (Value flag = device::getSkipFlag(op))
    if (launch.memories[cast<BlockArgument>(flag).getArgNumber()]->read(0) == 0)
      return 0;
  if (*blocks < 0 || *blocks > INT32_MAX)
    return makeError(locationText(op.getLoc()) + "a grid of " + Twine(*blocks) + " blocks, the value of '" +
                     op.getBlocks().str() + "'");
  return *blocks;
}

/// Runs kernels with overlapping launches. All their blocks may run in any order.
Error ProgramRunner::runKernels(ArrayRef<device::KernelOp> kernels) {
  std::vector<std::pair<device::KernelOp, int64_t>> order;
  std::mt19937_64 random(options.interleaving);
  for (device::KernelOp op : kernels) {
    auto blocks = countBlocks(op);
    if (!blocks)
      return blocks.takeError();
    counts[op] = *blocks;
    int64_t cluster = op.getCluster().value_or(1);
    if (*blocks % cluster != 0)
      return makeError(locationText(op.getLoc()) + "a grid of " + Twine(*blocks) + " blocks in clusters of " +
                       Twine(cluster));
    for (int64_t k = 0; k < *blocks && !launch.error; k += cluster)
      options.interleaving != 0 ? order.push_back({op, k}) : runCluster(op, k);
  }
  for (size_t k = order.size(); k > 1; --k)
    std::swap(order[k - 1], order[random() % k]);
  for (size_t k = 0; k < order.size() && !launch.error; ++k)
    runCluster(order[k].first, order[k].second);
  launch.stored.clear();
  return launch.error ? makeError(*launch.error) : Error::success();
}

/// Returns the part of a per-thread value that a range of threads holds.
static Lanes slice(const Lanes &lanes, int64_t first, int64_t count) {
  return Lanes(Cells(lanes.data() + first, lanes.data() + first + count));
}

/// Runs the blocks of a cluster from this one on. Only the first one reads fragments of others
/// (device.load_peer), so it runs last.
void ProgramRunner::runCluster(device::KernelOp op, int64_t first) {
  launch.cluster = op.getCluster().value_or(1);
  launch.published.clear();
  launch.syncs.clear();
  for (int64_t rank = launch.cluster; rank-- > 0 && !launch.error;)
    runBlock(op, first + rank);
  for (const auto &[place, count] : launch.syncs)
    if (!launch.error && count != launch.syncs.begin()->second)
      launch.fail(op->getLoc(), "blocks of a cluster pass different numbers of barriers: " + Twine(count) + " and " +
                                    Twine(launch.syncs.begin()->second));
}

void ProgramRunner::runBlock(device::KernelOp op, int64_t number) {
  launch.block = number;
  launch.blocks = counts.lookup(op);
  auto [entry, isNew] = rolesOf.try_emplace(op);
  if (isNew)
    op.walk([&](device::SpecializeOp found) { entry->second = found; });
  device::SpecializeOp roles = entry->second;
  int64_t threads = op.getThreads();
  SmallVector<unsigned> warps; // of the agents
  if (roles) {
    warps.assign(roles.getWarpgroups(), kWarpgroupThreads / kWarpThreads);
    warps.push_back(roles.getTogether() ? kWarpgroupThreads / kWarpThreads : 1);
  } else {
    warps.push_back(llvm::divideCeil(threads, kWarpThreads));
  }
  BlockState block(launch, layouts, warps, options.sharedBytes);
  Registers registers;
  Agent whole(launch, registers, threads, "block " + std::to_string(launch.block), block, 0, 0);
  whole.runRoles = [&](device::SpecializeOp found) { runRoles(found, registers, block, threads); };
  whole.start(op.getBody().front(), Mask(threads));
  Agent *list[] = {&whole};
  drive(list, block, op);
  if (!launch.error)
    block.shared.checkEnd(op);
}

void ProgramRunner::runRoles(device::SpecializeOp roles, const Registers &known, BlockState &block, int64_t threads) {
  unsigned consumers = roles.getWarpgroups();
  std::vector<std::unique_ptr<Registers>> registers;
  std::vector<std::unique_ptr<Agent>> agents;
  std::vector<Agent *> list;
  for (unsigned number = 0; number <= consumers; ++number) {
    bool isProducer = number == consumers;
    int64_t first = kWarpgroupThreads * number, count = isProducer && !roles.getTogether() ? 1 : kWarpgroupThreads;
    registers.push_back(std::make_unique<Registers>(known));
    for (auto &entry : *registers.back())
      if (static_cast<int64_t>(entry.second.lanes.size()) == threads)
        entry.second.lanes = slice(entry.second.lanes, first, count);
    agents.push_back(std::make_unique<Agent>(
        launch, *registers.back(), count,
        "block " + std::to_string(launch.block) + ", " + block.shared.agentName(number), block, number, first));
    Region &region = isProducer ? roles.getProducer() : roles.getConsumer();
    agents.back()->start(region.front(), Mask(count));
    list.push_back(agents.back().get());
  }
  drive(list, block, roles);
}

void ProgramRunner::drive(ArrayRef<Agent *> agents, BlockState &block, Operation *op) {
  struct State {
    bool isDone = false, isWaiting = false;
    uint64_t seen = 0; // progress when it began to wait
  };
  std::vector<State> states(agents.size());
  Shared &shared = block.shared;
  std::mt19937_64 random(options.interleaving + 977 * launch.block);
  while (!launch.error) {
    SmallVector<size_t> choices;
    for (auto [k, state] : llvm::enumerate(states))
      if (!state.isDone && (!state.isWaiting || state.seen != shared.progress))
        choices.push_back(k);
    bool isFixed = options.interleaving == 0;
    for (size_t k = 0; k < shared.countCopies() && !(isFixed && !choices.empty()); ++k)
      choices.push_back(agents.size() + k);
    if (choices.empty())
      break;
    size_t choice = choices[isFixed ? 0 : random() % choices.size()];
    if (choice >= agents.size()) {
      shared.completeCopy(choice - agents.size());
      continue;
    }
    State &state = states[choice];
    state.seen = shared.progress;
    state.isDone = agents[choice]->run(isFixed ? ~0u : 1 + random() % 8);
    state.isWaiting = !state.isDone && agents[choice]->getWaiting();
    if (state.isDone && !launch.error)
      agents[choice]->checkEnd();
  }
  SmallVector<Agent *> stuck;
  for (auto [agent, state] : llvm::zip(agents, states))
    if (!state.isDone)
      stuck.push_back(agent);
  if (!launch.error && !stuck.empty())
    reportDeadlock(stuck);
}

void ProgramRunner::reportDeadlock(ArrayRef<Agent *> stuck) {
  std::string text;
  for (Agent *agent : stuck)
    text += (text.empty() ? "" : "; ") + agent->describeWait();
  launch.fail(stuck.front()->getWaiting()->getLoc(), "block " + Twine(launch.block) + " never ends: " + text);
}

} // namespace

Expected<std::vector<Array>> moa::runDevice(Operation *op, const KernelInputs &inputs, const DeviceOptions &options) {
  auto program = dyn_cast<device::ProgramOp>(op);
  if (!program)
    return makeError(locationText(op->getLoc()) + "expected a device.program, but got '" +
                     op->getName().getStringRef() + "'");
  auto kernel = Kernel::of(op);
  if (!kernel)
    return kernel.takeError();
  auto symbols = bindInputs(op, *kernel, inputs);
  if (!symbols)
    return symbols.takeError();
  if (writesNothing(*kernel, *symbols)) {
    std::vector<Array> outputs;
    for (ArrayType type : kernel->resultTypes)
      outputs.push_back({llvm::cantFail(evaluateShape(type, *symbols)), {}});
    return outputs;
  }
  auto outputs = ProgramRunner(program, *kernel, std::move(*symbols), options).run(inputs);
  if (outputs)
    makeUnsigned(*kernel, *outputs);
  return outputs;
}
