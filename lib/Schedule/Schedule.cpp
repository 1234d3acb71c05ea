//===- Schedule.cpp - schedules as data -----------------------------------===//
#include "lib/Schedule/Schedule.h"
#include "lib/Schedule/NestShape.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace moa;
namespace json = llvm::json;

int64_t AxisSchedule::getSize(onf::Resource resource) const {
  int64_t size = 1;
  for (auto [bound, factor] : ArrayRef(factors).drop_front(factors.empty() ? 0 : 1))
    if (bound == resource)
      size *= factor;
  return size;
}

int64_t NestSchedule::getRows() const {
  int64_t rows = 1;
  if (!axes.empty())
    for (auto [resource, size] : ArrayRef(axes.back().factors).drop_front())
      rows *= size;
  return rows;
}

bool NestSchedule::isGpu() const {
  return pipeline || llvm::any_of(axes, [](const AxisSchedule &axis) {
           return !axis.factors.empty() && axis.factors.front().first == onf::Resource::block;
         });
}

static llvm::Error refuse(const llvm::Twine &why) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), "schedule: " + why);
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

// The order of factors, independent of the order of the keys.
static constexpr onf::Resource nestOrder[] = {onf::Resource::core, onf::Resource::register_, onf::Resource::lane};
static constexpr onf::Resource laneNestOrder[] = {onf::Resource::block, onf::Resource::sequential, onf::Resource::lane,
                                                  onf::Resource::register_};
static constexpr onf::Resource laneFoldOrder[] = {onf::Resource::sequential, onf::Resource::lane,
                                                  onf::Resource::register_};
static constexpr onf::Resource foldOrder[] = {onf::Resource::sequential, onf::Resource::cache};
static constexpr onf::Resource splitOrder[] = {onf::Resource::core, onf::Resource::sequential, onf::Resource::cache};
static constexpr onf::Resource gpuNestOrder[] = {
    onf::Resource::block,     onf::Resource::sequential, onf::Resource::warpgroup, onf::Resource::warp,
    onf::Resource::register_, onf::Resource::lane,       onf::Resource::thread};
static constexpr onf::Resource gpuFoldOrder[] = {onf::Resource::sequential, onf::Resource::stage,
                                                 onf::Resource::shared};
static constexpr int64_t maxFactor = int64_t(1) << 24, maxGroup = int64_t(1) << 40;

static llvm::Error checkKeys(const json::Object &object, ArrayRef<StringRef> known, const llvm::Twine &where) {
  for (const auto &entry : object)
    if (!llvm::is_contained(known, StringRef(entry.first)))
      return refuse("unknown key '" + StringRef(entry.first) + "' in " + where + "; known are " +
                    llvm::join(known, ", "));
  return llvm::Error::success();
}

static llvm::Expected<AxisSchedule> parseAxis(const json::Value &value, ArrayRef<onf::Resource> order, StringRef what) {
  const json::Object *object = value.getAsObject();
  auto name = object ? object->getString("name") : std::nullopt;
  if (!name)
    return refuse("expects " + what + " as an object with a string 'name'");
  AxisSchedule axis;
  axis.name = name->str();
  std::string where = (what + " '" + *name + "'").str();
  SmallVector<StringRef> known = {"name"};
  for (onf::Resource resource : order)
    known.push_back(onf::stringifyResource(resource));
  if (llvm::Error error = checkKeys(*object, known, where))
    return error;
  for (onf::Resource resource : order) {
    StringRef key = onf::stringifyResource(resource);
    const json::Value *entry = object->get(key);
    bool outer = resource == order.front();
    if (!entry && outer)
      return refuse("expects '" + key + "': 0, the outermost factor, in " + where);
    if (!entry)
      continue;
    auto size = entry->getAsInteger();
    if (outer && (!size || *size != 0))
      return refuse("expects 0, the rest, for the outermost factor '" + key + "' in " + where + ", but got " +
                    llvm::formatv("{0}", *entry).str());
    if (!outer && (!size || *size < 1 || *size > maxFactor))
      return refuse("expects a size from 1 to " + llvm::Twine(maxFactor) + " for '" + key + "' in " + where +
                    ", but got " + llvm::formatv("{0}", *entry).str());
    axis.factors.emplace_back(resource, *size);
  }
  return axis;
}

static llvm::Error parseAxes(const json::Object &object, StringRef key, ArrayRef<onf::Resource> order, StringRef what,
                             std::vector<AxisSchedule> &axes, ArrayRef<onf::Resource> orderOfSplits,
                             onf::Resource splits, std::optional<onf::Resource> unless = std::nullopt) {
  const json::Array *array = object.getArray(key);
  if (!array)
    return refuse("expects an array '" + key + "' in every nest");
  for (const json::Value &value : *array) {
    const json::Object *axisObject = value.getAsObject();
    auto has = [&](onf::Resource resource) { return axisObject && axisObject->get(onf::stringifyResource(resource)); };
    bool isSplit = has(splits) && !(unless && has(*unless));
    auto axis = parseAxis(value, isSplit ? orderOfSplits : order, what);
    if (!axis)
      return axis.takeError();
    axes.push_back(std::move(*axis));
  }
  return llvm::Error::success();
}

static llvm::Expected<PipelineSchedule> parsePipeline(const json::Value &value) {
  const json::Object *object = value.getAsObject();
  if (!object)
    return refuse("expects an object 'pipeline'");
  if (llvm::Error error =
          checkKeys(*object, {"consumer", "producer", "overlap", "order", "group", "lazy", "held", "turns", "shares"},
                    "'pipeline'"))
    return error;
  PipelineSchedule pipeline;
  struct Count {
    StringRef key;
    int64_t least, most, *value;
  };
  for (auto [key, least, most, count] :
       {Count{"consumer", 1, maxFactor, &pipeline.consumerRegisters},
        Count{"producer", 1, maxFactor, &pipeline.producerRegisters}, Count{"group", 0, maxGroup, &pipeline.groupBytes},
        Count{"lazy", 0, maxFactor, &pipeline.rescaleBound}}) {
    auto entry = object->getInteger(key);
    if (!entry || *entry < least || *entry > most)
      return refuse("expects an integer from " + llvm::Twine(least) + " to " + llvm::Twine(most) + " for '" + key +
                    "' in 'pipeline'" + (entry ? ", but got " + std::to_string(*entry) : std::string()));
    *count = *entry;
  }
  auto overlap = object->getBoolean("overlap");
  if (!overlap)
    return refuse("expects true or false for 'overlap' in 'pipeline'");
  pipeline.overlap = *overlap;
  // Optional: printed only if true.
  auto held = object->getBoolean("held");
  if (!held && object->get("held"))
    return refuse("expects true or false for 'held' in 'pipeline'");
  pipeline.holdsRows = held.value_or(false);
  auto turns = object->getBoolean("turns");
  if (!turns && object->get("turns"))
    return refuse("expects true or false for 'turns' in 'pipeline'");
  pipeline.takesTurns = turns.value_or(false);
  auto shares = object->getInteger("shares");
  if (object->get("shares") && (!shares || *shares < 1 || *shares > maxFactor))
    return refuse("expects an integer from 1 to " + llvm::Twine(maxFactor) + " for 'shares' in 'pipeline'" +
                  (shares ? ", but got " + std::to_string(*shares) : std::string()));
  pipeline.shares = shares.value_or(0);
  auto order = object->getString("order");
  if (!order || (*order != "ascending" && *order != "descending"))
    return refuse("expects \"ascending\" or \"descending\" for 'order' in 'pipeline'");
  pipeline.descending = *order == "descending";
  return pipeline;
}

static llvm::Expected<NestSchedule> parseNest(const json::Object &nest) {
  if (llvm::Error error = checkKeys(nest, {"axes", "folds", "pipeline"}, "a nest"))
    return error;
  // A nest is for a GPU if it has a resource that only GPUs have.
  auto names = [](const json::Array *array, StringRef key) {
    return array && llvm::any_of(*array, [&](const json::Value &value) {
             const json::Object *object = value.getAsObject();
             return object && object->get(key);
           });
  };
  const json::Array *axes = nest.getArray("axes"), *folds = nest.getArray("folds");
  const json::Value *pipeline = nest.get("pipeline");
  bool gpu = pipeline || names(axes, "block") || names(folds, "stage") || names(folds, "shared");
  NestSchedule result;
  // Lanes that share rows have their columns along an axis or a fold.
  if (llvm::Error error =
          parseAxes(nest, "axes", gpu ? ArrayRef(gpuNestOrder) : nestOrder, "axis", result.axes,
                    gpu ? ArrayRef(laneNestOrder) : nestOrder, onf::Resource::lane, onf::Resource::warp))
    return error;
  if (llvm::Error error =
          parseAxes(nest, "folds", gpu ? ArrayRef(gpuFoldOrder) : foldOrder, "fold", result.folds,
                    gpu ? ArrayRef(laneFoldOrder) : splitOrder, gpu ? onf::Resource::lane : splitOrder[0]))
    return error;
  if (!pipeline)
    return result;
  auto parsed = parsePipeline(*pipeline);
  if (!parsed)
    return parsed.takeError();
  result.pipeline = *parsed;
  return result;
}

llvm::Expected<Schedule> moa::parseSchedule(StringRef text) {
  auto value = json::parse(text);
  if (!value)
    return refuse(llvm::toString(value.takeError()));
  const json::Object *object = value->getAsObject();
  if (!object)
    return refuse("expects an object");
  if (llvm::Error error = checkKeys(*object, {"kernel", "machine", "nests"}, "the schedule"))
    return error;
  Schedule schedule;
  auto kernel = object->getString("kernel"), machine = object->getString("machine");
  const json::Array *nests = object->getArray("nests");
  if (!kernel || !machine || !nests)
    return refuse("expects strings 'kernel' and 'machine' and an array 'nests'");
  schedule.kernel = kernel->str();
  schedule.machine = machine->str();
  for (const json::Value &entry : *nests) {
    const json::Object *nest = entry.getAsObject();
    if (!nest)
      return refuse("expects an object per nest");
    auto result = parseNest(*nest);
    if (!result)
      return result.takeError();
    schedule.nests.push_back(std::move(*result));
  }
  return schedule;
}

llvm::Expected<Schedule> moa::loadSchedule(StringRef path) {
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!file)
    return llvm::createStringError(file.getError(),
                                   "cannot read schedule '" + path + "': " + file.getError().message());
  return parseSchedule((*file)->getBuffer());
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

static void printAxes(llvm::raw_ostream &os, StringRef key, ArrayRef<AxisSchedule> axes) {
  os << "      \"" << key << "\": [";
  StringRef separator = "\n";
  for (const AxisSchedule &axis : axes) {
    os << separator << "        { \"name\": " << json::Value(axis.name);
    for (auto [resource, size] : axis.factors)
      os << ", \"" << onf::stringifyResource(resource) << "\": " << size;
    os << " }";
    separator = ",\n";
  }
  os << (axes.empty() ? "]" : "\n      ]");
}

static void printPipeline(llvm::raw_ostream &os, const PipelineSchedule &pipeline) {
  os << ",\n      \"pipeline\": { \"consumer\": " << pipeline.consumerRegisters
     << ", \"producer\": " << pipeline.producerRegisters << ", \"overlap\": " << (pipeline.overlap ? "true" : "false")
     << ", \"order\": \"" << (pipeline.descending ? "descending" : "ascending")
     << "\", \"group\": " << pipeline.groupBytes << ", \"lazy\": " << pipeline.rescaleBound
     << (pipeline.holdsRows ? ", \"held\": true" : "") << (pipeline.takesTurns ? ", \"turns\": true" : "");
  if (pipeline.shares)
    os << ", \"shares\": " << pipeline.shares;
  os << " }";
}

std::string moa::printSchedule(const Schedule &schedule) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "{\n  \"kernel\": " << json::Value(schedule.kernel) << ",\n  \"machine\": " << json::Value(schedule.machine)
     << ",\n  \"nests\": [";
  StringRef separator = "\n";
  for (const NestSchedule &nest : schedule.nests) {
    os << separator << "    {\n";
    printAxes(os, "axes", nest.axes);
    os << ",\n";
    printAxes(os, "folds", nest.folds);
    if (nest.pipeline)
      printPipeline(os, *nest.pipeline);
    os << "\n    }";
    separator = ",\n";
  }
  os << (schedule.nests.empty() ? "]" : "\n  ]") << "\n}\n";
  return text;
}

//===----------------------------------------------------------------------===//
// Checking
//===----------------------------------------------------------------------===//

llvm::Error moa::checkNames(ArrayRef<AxisSchedule> axes, ArrayRef<std::string> names, const llvm::Twine &kind) {
  std::vector<std::string> found;
  for (const AxisSchedule &axis : axes)
    found.push_back(axis.name);
  if (ArrayRef(found) == names)
    return llvm::Error::success();
  return refuse("expects the " + kind + " <" + llvm::join(names, " ") + ">, but got <" + llvm::join(found, " ") + ">");
}

static llvm::Error checkNest(const NestShape &shape, const NestSchedule &nest, const Machine &machine,
                             const llvm::Twine &where) {
  if (llvm::Error error = checkNames(nest.axes, shape.names, "axes of " + where))
    return error;
  std::vector<std::string> folds;
  for (const FoldShape &fold : shape.folds)
    folds.push_back(fold.name);
  if (llvm::Error error = checkNames(nest.folds, folds, "folds of " + where))
    return error;
  if (nest.isGpu())
    return refuse(where + " is for a GPU, but machine '" + machine.name + "' is none");
  std::vector<int64_t> counts = machine.laneCounts(shape.bits);
  for (const AxisSchedule &axis : nest.axes) {
    int64_t lanes = axis.getSize(onf::Resource::lane);
    bool last = &axis == &nest.axes.back();
    if (!last && axis.factors.size() > 1)
      return refuse("expects only the factor 'core' on axis '" + axis.name + "', which is not the last of " + where);
    if (!llvm::is_contained(counts, lanes)) {
      std::vector<std::string> known;
      for (int64_t count : counts)
        known.push_back(std::to_string(count));
      return refuse("axis '" + axis.name + "' asks for " + llvm::Twine(lanes) + " lanes of " + llvm::Twine(shape.bits) +
                    " bits, but machine '" + machine.name + "' has " + llvm::join(known, ", "));
    }
  }
  for (const AxisSchedule &axis : llvm::drop_begin(nest.folds, nest.folds.empty() ? 0 : 1))
    if (!axis.factors.empty() && axis.factors.front().first == onf::Resource::core)
      return refuse("expects only the first fold of " + where + " in parts over cores, but got fold '" + axis.name +
                    "'");
  for (auto [fold, axis] : llvm::zip(shape.folds, nest.folds)) {
    int64_t lanes = nest.axes.empty() ? 1 : nest.axes.back().getSize(onf::Resource::lane);
    WorkingSet set =
        workingSet(shape, fold, machine, nest.getRows() / lanes, lanes, axis.getSize(onf::Resource::cache));
    if (set.total() > machine.l2Bytes / 2)
      return refuse("fold '" + fold.name + "' of " + where + " needs " + llvm::Twine(set.total()) +
                    " bytes per core (" + llvm::Twine(set.staged) + " staged, " + llvm::Twine(set.values) +
                    " of one block's values, " + llvm::Twine(set.states) +
                    " of states and rows), more than half of the " + llvm::Twine(machine.l2Bytes) +
                    " bytes of the second-level cache");
  }
  return llvm::Error::success();
}

llvm::Error moa::checkSchedule(onf::KernelOp kernel, const Schedule &schedule, const Machine &machine) {
  if (schedule.kernel != kernel.getSymName())
    return refuse("is for kernel '" + schedule.kernel + "', not '" + kernel.getSymName() + "'");
  std::vector<NestShape> shapes = nestShapes(kernel);
  if (shapes.size() != schedule.nests.size())
    return refuse("has " + llvm::Twine(schedule.nests.size()) + " nests, but kernel '" + kernel.getSymName() +
                  "' has " + llvm::Twine(shapes.size()));
  for (unsigned k = 0; k < shapes.size(); ++k)
    if (llvm::Error error = checkNest(shapes[k], schedule.nests[k], machine, "nest " + llvm::Twine(k)))
      return error;
  return llvm::Error::success();
}

void moa::joinRanges(Schedule &schedule) {
  for (NestSchedule &nest : schedule.nests)
    for (AxisSchedule &axis : nest.folds)
      if (axis.factors.size() > 1 && axis.factors[0].first == onf::Resource::core) {
        axis.factors.erase(axis.factors.begin());
        if (axis.factors[0].first == onf::Resource::sequential)
          axis.factors[0].second = 0;
        else
          axis.factors.insert(axis.factors.begin(), {onf::Resource::sequential, 0});
      }
}
