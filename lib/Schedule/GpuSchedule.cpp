//===- GpuSchedule.cpp - resources of GPU schedules, checks and text ------===//
#include "lib/Schedule/GpuSchedule.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <numeric>

using namespace mlir;
using namespace moa;

static llvm::Error refuse(const llvm::Twine &why) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), "schedule: " + why);
}

//===----------------------------------------------------------------------===//
// Needs
//===----------------------------------------------------------------------===//

/// Returns the bytes of a row of all operands; `count` selects the number of each.
static int64_t paddedBytes(ArrayRef<TileColumns> operands, int64_t TileColumns::*count) {
  return std::accumulate(operands.begin(), operands.end(), int64_t(0),
                         [&](int64_t sum, const TileColumns &c) { return sum + c.*count * c.paddedBytes(); });
}

static int64_t countOperands(ArrayRef<TileColumns> operands, int64_t TileColumns::*count) {
  return std::accumulate(operands.begin(), operands.end(), int64_t(0),
                         [&](int64_t sum, const TileColumns &c) { return sum + c.*count; });
}

/// Estimates registers; nothing else does. An accumulator of 64 rows has columns / 2 registers in
/// each of its 128 threads. A tile of weights has columns / 4 registers for 16 bits and columns / 8
/// for 8 bits. Every state adds the values of two rows, and there are addresses and counters.
static void addRegisters(TileNeeds &needs, const TileFold &fold, const TileShape &shape) {
  constexpr int64_t addresses = 24, perState = 2, perPosition = 4, perLoad = 16, shortExpression = 24;
  for (const TileColumns &width : fold.widths) {
    needs.sums += width.padded() / 2;
    needs.apart += width.isSummedPerTile() ? width.padded() / 2 : 0;
  }
  needs.sums += fold.prologueSums;
  needs.multipliesAtOnce = !shape.overlap && !fold.isProduct;
  needs.scores = static_cast<int64_t>(fold.depths.size()) * shape.keys / 2;
  int64_t weightBytes = 0; // of the widest operand
  for (const TileColumns &width : fold.widths)
    weightBytes = std::max(weightBytes, width.bytes);
  // A product of arrays reads the weights of a tile before the contraction of the previous tile.
  needs.weights = (fold.isProduct ? 2 : fold.weights) * shape.keys * weightBytes / 8;
  if (shape.holdsRows)
    needs.rows = paddedBytes(fold.depths, &TileColumns::rowOperands) / 8;
  // Terms computed from indices keep positions live. So do guards of more than one comparison
  // (which counts 4), for their bounds.
  int64_t positions = std::max<int64_t>(fold.counts.integer, fold.guardCounts.integer - 4);
  // An address takes two registers, and several are live so that loads overlap. Long expressions
  // are computed for several elements at once.
  bool reads = fold.counts.loads + fold.guardCounts.loads > 0;
  // Fitted to the registers that ptxas allocates (benchmarks/gpu/NOTES.md): it needs fewer next to
  // scores for 8-bit sums and for products directly after the states.
  constexpr int64_t sparedOfBytes = 8, sparedOfScores = 2, ofProducts = 10;
  bool areBytes = !fold.widths.empty() && llvm::all_of(fold.widths, [](const TileColumns &w) { return w.bytes == 1; });
  int64_t spared = needs.multipliesAtOnce ? sparedOfScores : areBytes ? sparedOfBytes : 0;
  needs.others = addresses - spared + perState * fold.states + perPosition * std::clamp<int64_t>(positions, 0, 3) +
                 (reads ? perLoad : 0) + std::clamp<int64_t>((fold.counts.f32 - shortExpression) / 2, 0, 24) +
                 fold.terms * shape.keys / 4 +
                 (fold.counts.loads > 0 ? shape.keys / 2 : 0); // terms in addition to the scores
  needs.kept = ofProducts + perState * fold.states;
  // While the last weight is computed from its scores, all other weights are live.
  if (needs.multipliesAtOnce)
    needs.others += needs.weights - needs.weights / std::max<int64_t>(fold.weights, 1);
}

TileNeeds moa::tileNeeds(const TileFold &fold, const TileShape &shape) {
  TileNeeds needs;
  int64_t rows = paddedBytes(fold.depths, &TileColumns::rowOperands);
  int64_t keys =
      paddedBytes(fold.depths, &TileColumns::keyOperands) + paddedBytes(fold.widths, &TileColumns::keyOperands);
  needs.rowBytes = shape.rows() * (rows + fold.resultBytes) + fold.prologueBytes;
  needs.stageBytes = shape.keys * keys + (fold.isProduct ? 2 * shape.rows() * shape.keys : 0);
  needs.stages = shape.stages;
  // Rings start at multiples of 1024 bytes and are followed by their barriers. The last ring is
  // also followed by 16 bytes of bits and the numbers kept by the block, one per axis.
  int64_t rings = countOperands(fold.depths, &TileColumns::rowOperands) +
                  countOperands(fold.depths, &TileColumns::keyOperands) +
                  countOperands(fold.widths, &TileColumns::keyOperands) + fold.isProduct + (fold.prologueBytes > 0) +
                  (fold.resultBytes > 0);
  needs.otherBytes = rings * llvm::alignTo(16 * shape.stages + 32, 1024) + fold.listBytes;
  addRegisters(needs, fold, shape);
  return needs;
}

int64_t moa::residentBlocks(const TileShape &shape, const GpuMachine &machine) {
  int64_t asked = shape.warpgroups * shape.consumerRegisters + shape.producerRegisters;
  for (int64_t residents = machine.blocks; residents > 1; --residents)
    if (machine.getLaunchRegisters(shape.threads() * residents) * (shape.warpgroups + 1) >= asked)
      return residents;
  return 1;
}

void moa::assignRegisters(TileShape &shape, const TileFold &fold, const GpuMachine &machine, int64_t residents) {
  // The producer, which counts tiles and starts copies, needs at most 40, and more for the places of
  // pages.
  constexpr int64_t ofCopies = 40, ofPages = 56;
  int64_t least = fold.page ? ofPages : machine.leastRegisters, most = fold.page ? ofPages : ofCopies;
  int64_t launch = machine.getLaunchRegisters(shape.threads() * residents);
  int64_t all = launch * (shape.warpgroups + 1), unit = machine.registerUnit;
  auto share = [&](int64_t registers) { return std::min(registers / unit * unit, machine.mostRegisters); };
  shape.consumerRegisters = share((all - least) / shape.warpgroups);
  shape.producerRegisters =
      std::min({launch, share(all - shape.consumerRegisters * shape.warpgroups), int64_t(llvm::alignTo(most, unit))});
}

//===----------------------------------------------------------------------===//
// Checking
//===----------------------------------------------------------------------===//

static llvm::Error checkBlock(const TileShape &shape, const GpuMachine &machine, const llvm::Twine &where) {
  if (shape.warpgroups < 1 || shape.rows() > machine.copyRows)
    return refuse(where + " asks for " + llvm::Twine(shape.warpgroups) + " consumer warpgroups, " +
                  llvm::Twine(shape.rows()) + " rows, but one copy of '" + machine.name + "' has at most " +
                  llvm::Twine(machine.copyRows) + " rows");
  if (shape.takesTurns && shape.warpgroups < 2)
    return refuse(where + " asks for turns, but it has one warpgroup: ask for at least 2");
  if (shape.threads() > machine.threadsPerBlock)
    return refuse(where + " asks for a block of " + llvm::Twine(shape.threads()) + " threads, but '" + machine.name +
                  "' has at most " + llvm::Twine(machine.threadsPerBlock));
  int64_t most = std::min(machine.tensorColumns, machine.copyRows);
  if (shape.keys < machine.tensorDepth || shape.keys % machine.tensorDepth != 0 || shape.keys > most)
    return refuse(where + " asks for tiles of " + llvm::Twine(shape.keys) + " indices, but contractions of '" +
                  machine.name + "' take multiples of " + llvm::Twine(machine.tensorDepth) + " up to " +
                  llvm::Twine(most));
  return llvm::Error::success();
}

/// Returns the number of stages that a consumer holds at once. It is two if the consumer waits for
/// a tile while the products of the previous tile still read their stage. This happens with
/// overlap, or in a product of arrays of more than one tile.
static int64_t heldStages(const TileFold &fold, const TileShape &shape) {
  bool isOne = fold.extent && *fold.extent <= shape.keys;
  return shape.overlap || (fold.isProduct && !isOne) ? 2 : 1;
}

static llvm::Error checkStages(const TileFold &fold, const TileShape &shape, const llvm::Twine &where) {
  if (shape.stages >= heldStages(fold, shape))
    return llvm::Error::success();
  std::string asked = std::to_string(shape.stages) + (shape.stages == 1 ? " stage" : " stages");
  if (shape.stages < 1)
    return refuse(where + " asks for " + asked + ", but it takes at least 1");
  if (fold.isProduct)
    return refuse(where + " asks for " + asked +
                  ", but a product waits for each tile before it frees the stage of the previous "
                  "one: ask for at least 2");
  return refuse(where + " asks for " + asked + ", but to overlap it takes at least 2 (or \"overlap\": false)");
}

/// Checks the registers. Warpgroups exchange the registers that a block is launched with. A
/// contraction with its operands and addresses must fit the number at launch, for which ptxas
/// compiles.
static llvm::Error checkRegisters(const TileFold &fold, const TileNeeds &needs, const TileShape &shape,
                                  const GpuMachine &machine, const llvm::Twine &where) {
  int64_t launch = machine.getLaunchRegisters(shape.threads() * residentBlocks(shape, machine));
  for (int64_t count : {shape.consumerRegisters, shape.producerRegisters})
    if (count % machine.registerUnit != 0 || count < machine.leastRegisters || count > machine.mostRegisters)
      return refuse(where + " asks for " + llvm::Twine(count) + " registers per thread, but '" + machine.name +
                    "' has multiples of " + llvm::Twine(machine.registerUnit) + " from " +
                    llvm::Twine(machine.leastRegisters) + " to " + llvm::Twine(machine.mostRegisters));
  if (shape.consumerRegisters < launch || shape.producerRegisters > launch)
    return refuse(where + " asks for " + llvm::Twine(shape.consumerRegisters) + " registers of a consumer and " +
                  llvm::Twine(shape.producerRegisters) + " of the producer, but a block of " +
                  llvm::Twine(shape.threads()) + " threads starts with " + llvm::Twine(launch) +
                  ", which consumers can only raise and the producer only lower");
  int64_t asked = shape.warpgroups * shape.consumerRegisters + shape.producerRegisters;
  int64_t available = launch * (shape.warpgroups + 1);
  if (asked > available)
    return refuse(where + " asks for " + llvm::Twine(asked) + " registers over its warpgroups (" +
                  llvm::Twine(shape.warpgroups) + " x " + llvm::Twine(shape.consumerRegisters) + " and " +
                  llvm::Twine(shape.producerRegisters) + "), but a block of " + llvm::Twine(shape.threads()) +
                  " threads has " + llvm::Twine(available));
  int64_t limit = std::min(shape.consumerRegisters, machine.registersPerThread);
  if (needs.registers() > limit) {
    auto number = [](int64_t count, const char *of) { return std::to_string(count) + of; };
    std::string rows = needs.rows ? number(needs.rows, " of rows, ") : std::string();
    std::string parts =
        needs.multipliesAtOnce
            ? number(needs.sums, " of sums, ") + rows + "plus first " +
                  number(needs.scores + needs.others, " of scores, states and addresses, then ") +
                  number(needs.apart + needs.weights + needs.kept, " of weights, a tile's sums, states and addresses")
            : number(needs.sums + needs.apart, " of sums, ") + number(needs.scores, " of scores, ") +
                  number(needs.weights, " of weights, ") + rows + number(needs.others, " of states and addresses");
    return refuse(where + " needs about " + llvm::Twine(needs.registers()) +
                  " registers in each thread of a consumer (" + parts + "), but it has " + llvm::Twine(limit));
  }
  int64_t columns = fold.isProduct ? 0 : shape.keys;
  for (const TileColumns &width : fold.widths)
    columns = std::max(columns, width.padded());
  if (columns / 2 + 32 > launch)
    return refuse(where + " has contractions of " + llvm::Twine(columns) + " columns, which take about " +
                  llvm::Twine(columns / 2 + 32) + " registers in each thread, but a block of " +
                  llvm::Twine(shape.threads()) + " threads starts with " + llvm::Twine(launch));
  return llvm::Error::success();
}

llvm::Error moa::checkTileShape(const TileFold &fold, const TileShape &shape, const GpuMachine &machine,
                                const llvm::Twine &where) {
  std::string place = where.str();
  if (llvm::Error error = checkBlock(shape, machine, place))
    return error;
  if (llvm::Error error = checkStages(fold, shape, place))
    return error;
  TileNeeds needs = tileNeeds(fold, shape);
  if (needs.bytes() > machine.sharedPerBlock)
    return refuse(place + " needs " + llvm::Twine(needs.bytes()) + " bytes of shared memory (" +
                  llvm::Twine(needs.rowBytes) + " of rows, " + llvm::Twine(needs.stages) + " x " +
                  llvm::Twine(needs.stageBytes) + " of stages, " + llvm::Twine(needs.otherBytes) +
                  " of barriers, lists and alignment), but a block of '" + machine.name + "' has " +
                  llvm::Twine(machine.sharedPerBlock));
  if (llvm::Error error = checkRegisters(fold, needs, shape, machine, place))
    return error;
  if ((fold.isProduct || fold.prologueBytes) && shape.warpgroups != 1)
    return refuse(place + " asks for " + llvm::Twine(shape.warpgroups) +
                  " consumer warpgroups, but products of tiles have one of 64 rows");
  if (fold.isProduct &&
      (shape.keys < 64 || shape.keys % 64 != 0 || (*fold.extent % shape.keys != 0 && *fold.extent > 64)))
    return refuse(place + " has tiles of " + llvm::Twine(shape.keys) + " indices, but a product over " +
                  llvm::Twine(*fold.extent) + " takes multiples of 64 that divide it");
  if (shape.holdsRows && llvm::any_of(fold.depths, [](const TileColumns &c) { return c.bytes == 1; }))
    return refuse(place + " asks to hold rows in registers, but operands of 8 bits are read from "
                          "shared memory");
  bool isTransposed = llvm::any_of(fold.widths, [](const TileColumns &c) { return c.isTransposed; });
  if (isTransposed && shape.keys % 128 != 0)
    return refuse(place + " has tiles of " + llvm::Twine(shape.keys) +
                  " keys, but an 8-bit operand of a state takes multiples of 128");
  if (fold.guarded && shape.keys > 128)
    return refuse(place + " has tiles of " + llvm::Twine(shape.keys) +
                  " keys, but a fold with a guard masks tiles of up to 128 keys");
  constexpr int64_t mostPages = 8; // more numbers take more registers than a producer has
  if (int64_t pages = fold.page ? shape.keys / std::gcd(fold.page, shape.keys) : 1; pages > mostPages)
    return refuse(place + " has tiles of " + llvm::Twine(shape.keys) + " keys in " + llvm::Twine(pages) +
                  " pages, but a producer copies at most " + llvm::Twine(mostPages) + " pages per tile");
  if (shape.groupBytes > 0 && !fold.canGroup)
    return refuse(place + " asks for groups of " + llvm::Twine(shape.groupBytes) +
                  " bytes, but it has one axis, with nothing to group");
  if (shape.shares > 0 && !fold.canShare)
    return refuse(place + " asks for shares, but its blocks visit different indices, its fold is a "
                          "product of arrays or follows "
                          "one, or a state is neither f32 nor bool");
  if (shape.shares > 0 && fold.extent && *fold.extent < leastSplitTiles * shape.keys)
    return refuse(place + " asks for shares of a fold over " + llvm::Twine(*fold.extent) + " indices, but " +
                  llvm::Twine(leastSplitTiles) + " tiles of " + llvm::Twine(shape.keys) + " are the minimum");
  if (shape.rescaleBound > fold.mostRescaleBound)
    return refuse(place + " asks to delay rescaling up to a factor of 2^" + llvm::Twine(shape.rescaleBound) +
                  ", but this fold allows exponents up to " + llvm::Twine(fold.mostRescaleBound));
  return llvm::Error::success();
}

static llvm::Error checkRows(const GpuNest &nest, const NestSchedule &schedule, const GpuMachine &machine,
                             const std::string &where) {
  if (schedule.pipeline)
    return refuse(where + " has a pipeline but no 'warpgroup' on its last axis");
  for (const AxisSchedule &fold : schedule.folds)
    if (fold.factors.size() > 1)
      return refuse("expects only the factor 'sequential' on fold '" + fold.name + "' of " + where +
                    ", which runs with one thread per row");
  if (schedule.axes.empty())
    return llvm::Error::success();
  if (schedule.axes.back().getSize(onf::Resource::sequential) != 1)
    return refuse("axis '" + schedule.axes.back().name + "' of " + where +
                  " has the factor 'sequential', but blocks take several rows in turn only if "
                  "lanes share rows");
  int64_t threads = threadsOf(schedule);
  if (threads % 32 != 0 || threads > machine.threadsPerBlock || schedule.axes.back().factors.size() != 2)
    return refuse("axis '" + schedule.axes.back().name + "' of " + where + " asks for " + llvm::Twine(threads) +
                  " threads per block, but '" + machine.name + "' has multiples of 32 up to " +
                  llvm::Twine(machine.threadsPerBlock) +
                  (nest.fold ? ", and 'warpgroup', 'warp', 'register' and 'lane' stand for tiles" : ""));
  return llvm::Error::success();
}

static llvm::Error checkTiles(const GpuNest &nest, const NestSchedule &schedule, const TileShape &shape,
                              const GpuMachine &machine, const std::string &where) {
  if (!nest.fold)
    return refuse(where + " asks for warpgroups, but it runs with one thread per row: " + nest.why);
  if (!schedule.pipeline)
    return refuse(where + " has warpgroups and needs a 'pipeline'");
  const AxisSchedule &rows = schedule.axes.back(), &keys = schedule.folds.back();
  auto expected = makeTileSchedule(nest, shape);
  if (!(rows == expected.axes.back()))
    return refuse("axis '" + rows.name + "' of " + where +
                  " has warpgroups, whose rows are \"warp\": 4, \"register\": 2, \"lane\": 8 and "
                  "nothing else");
  if (schedule.folds != expected.folds)
    return refuse("fold '" + keys.name + "' of " + where +
                  " needs its stages and the indices of a tile, \"stage\" and \"shared\"");
  return checkTileShape(*nest.fold, shape, machine, where);
}

static std::string printFactors(const AxisSchedule &axis) {
  std::string text;
  for (auto [resource, size] : axis.factors)
    text += (text.empty() ? "\"" : ", \"") + stringifyResource(resource).str() + "\": " + std::to_string(size);
  return text;
}

static bool hasFactor(const AxisSchedule &axis, onf::Resource resource) {
  return llvm::any_of(axis.factors, [&](const auto &f) { return f.first == resource; });
}

/// Refuses a schedule that has some factors of a form, but is not that of the nest. `shown` names the
/// form in the message.
static llvm::Error refuseFixed(const GpuNest &nest, StringRef name, StringRef shown, const NestSchedule &schedule,
                               const std::string &where) {
  auto form = llvm::find_if(nest.others, [&](const FixedForm &other) { return other.name == name; });
  if (form == nest.others.end() || !form->schedule)
    return refuse(where + " asks for " + shown + ", but " +
                  (form == nest.others.end() ? "it has no such form" : form->why));
  if (schedule.pipeline)
    return refuse(where + " has a pipeline but no 'warpgroup' on its last axis");
  auto check = [&](ArrayRef<AxisSchedule> got, ArrayRef<AxisSchedule> wanted) -> llvm::Error {
    for (auto [axis, other] : llvm::zip_equal(got, wanted))
      if (!(axis == other))
        return refuse("'" + axis.name + "' of " + where + ", which has " + shown + ", needs the factors " +
                      printFactors(other));
    return llvm::Error::success();
  };
  if (llvm::Error error = check(schedule.axes, form->schedule->axes))
    return error;
  return check(schedule.folds, form->schedule->folds);
}

/// Returns the form to which a schedule's factors belong: its names in attributes and in messages.
/// Empty: they are those of tiles or of one thread per row.
static std::pair<StringRef, StringRef> guessFixed(const NestSchedule &nest) {
  using onf::Resource;
  auto isOfLanes = [](const AxisSchedule &axis) {
    return hasFactor(axis, Resource::warp) && !hasFactor(axis, Resource::register_) &&
           !hasFactor(axis, Resource::warpgroup);
  };
  if (llvm::any_of(nest.axes, isOfLanes))
    return {"lanes", "lanes along its rows"};
  if (nest.axes.empty() || !hasFactor(nest.axes.back(), Resource::warp))
    return {};
  if (hasFactor(nest.axes.back(), Resource::register_) && !hasFactor(nest.axes.back(), Resource::lane))
    return {"columns", "runs of columns"};
  return hasFactor(nest.axes.back(), Resource::warpgroup) ? std::pair<StringRef, StringRef>()
                                                          : std::pair("warps", "warps");
}

static llvm::Error checkNest(const GpuNest &nest, const NestSchedule &schedule, const GpuMachine &machine,
                             const std::string &where) {
  if (llvm::Error error = checkNames(schedule.axes, nest.axes, "axes of " + where))
    return error;
  if (llvm::Error error = checkNames(schedule.folds, nest.folds, "folds of " + where))
    return error;
  if (!schedule.axes.empty() && !schedule.isGpu())
    return refuse(where + " is not bound to 'block', but '" + machine.name + "' is a GPU");
  if (findFixed(nest, schedule))
    return llvm::Error::success();
  if (auto [name, shown] = guessFixed(schedule); !name.empty())
    return refuseFixed(nest, name, shown, schedule, where);
  for (const AxisSchedule &axis : ArrayRef(schedule.axes).drop_back(!schedule.axes.empty()))
    if (axis.factors.size() > 1)
      return refuse("expects only the factor 'block' on axis '" + axis.name + "', which is not the last of " + where);
  if (auto shape = tileShapeOf(schedule))
    return checkTiles(nest, schedule, *shape, machine, where);
  return checkRows(nest, schedule, machine, where);
}

llvm::Error moa::checkGpuSchedule(StringRef kernel, ArrayRef<GpuNest> nests, const Schedule &schedule,
                                  const GpuMachine &machine) {
  if (schedule.kernel != kernel)
    return refuse("is for kernel '" + schedule.kernel + "', not '" + kernel + "'");
  if (schedule.machine != machine.name)
    return refuse("it is for the machine '" + schedule.machine + "', but this is '" + machine.name +
                  "'; print one for this machine, or change the name");
  if (nests.size() != schedule.nests.size())
    return refuse("has " + llvm::Twine(schedule.nests.size()) + " nests, but kernel '" + kernel + "' has " +
                  llvm::Twine(nests.size()));
  for (auto [k, nest] : llvm::enumerate(nests))
    if (llvm::Error error = checkNest(nest, schedule.nests[k], machine, "nest " + std::to_string(k)))
      return error;
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Schedules and shapes
//===----------------------------------------------------------------------===//

std::optional<TileShape> moa::tileShapeOf(const NestSchedule &nest) {
  if (nest.axes.empty() || !hasFactor(nest.axes.back(), onf::Resource::warpgroup) || nest.folds.empty())
    return std::nullopt;
  TileShape shape;
  static_cast<PipelineSchedule &>(shape) = nest.pipeline.value_or(PipelineSchedule());
  shape.warpgroups = nest.axes.back().getSize(onf::Resource::warpgroup);
  shape.stages = nest.folds.back().getSize(onf::Resource::stage);
  shape.keys = nest.folds.back().getSize(onf::Resource::shared);
  return shape;
}

int64_t moa::threadsOf(const NestSchedule &nest) {
  // A nest without axes has one element.
  return nest.axes.empty() ? 128 : nest.axes.back().getSize(onf::Resource::thread);
}

NestSchedule moa::outerFactors(ArrayRef<std::string> axes, ArrayRef<std::string> folds) {
  NestSchedule schedule;
  for (const std::string &name : axes)
    schedule.axes.push_back({name, {{onf::Resource::block, 0}}});
  for (const std::string &name : folds)
    schedule.folds.push_back({name, {{onf::Resource::sequential, 0}}});
  return schedule;
}

NestSchedule moa::makeTileSchedule(const GpuNest &nest, const TileShape &shape) {
  NestSchedule schedule = outerFactors(nest.axes, nest.folds);
  auto &rows = schedule.axes.back().factors;
  rows.emplace_back(onf::Resource::warpgroup, shape.warpgroups);
  rows.emplace_back(onf::Resource::warp, 4);
  rows.emplace_back(onf::Resource::register_, 2);
  rows.emplace_back(onf::Resource::lane, 8);
  auto &keys = schedule.folds.back().factors; // earlier folds are prologue products of one tile
  keys.emplace_back(onf::Resource::stage, shape.stages);
  keys.emplace_back(onf::Resource::shared, shape.keys);
  schedule.pipeline = shape;
  return schedule;
}

NestSchedule moa::makeRowSchedule(const GpuNest &nest, int64_t threads) {
  NestSchedule schedule = outerFactors(nest.axes, nest.folds);
  if (!schedule.axes.empty())
    schedule.axes.back().factors.emplace_back(onf::Resource::thread, threads);
  return schedule;
}

const FixedForm *GpuNest::getFixed() const {
  auto found = llvm::find_if(others, [](const FixedForm &form) { return form.schedule.has_value(); });
  return found != others.end() ? &*found : nullptr;
}

const FixedForm *moa::findFixed(const GpuNest &nest, const NestSchedule &schedule) {
  auto found = llvm::find_if(nest.others, [&](const FixedForm &form) {
    return form.schedule && form.schedule->axes == schedule.axes && form.schedule->folds == schedule.folds &&
           !schedule.pipeline;
  });
  return found != nest.others.end() ? &*found : nullptr;
}

Schedule moa::chooseGpuSchedule(StringRef kernel, ArrayRef<GpuNest> nests, const GpuMachine &machine) {
  Schedule schedule;
  schedule.kernel = kernel.str();
  schedule.machine = machine.name;
  for (const GpuNest &nest : nests) {
    auto shapes = rankTileShapes(nest, machine);
    const FixedForm *fixed = nest.getFixed();
    schedule.nests.push_back(!shapes.empty() ? makeTileSchedule(nest, shapes.front().first)
                             : fixed         ? *fixed->schedule
                                             : makeRowSchedule(nest, chooseThreads(nest, machine)));
  }
  return schedule;
}
