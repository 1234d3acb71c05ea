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

static llvm::Error refuse(const llvm::Twine &why) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), "schedule: " + why);
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

// Factors stand in this order, whatever the order of the keys.
static constexpr onf::Resource nestOrder[] = {onf::Resource::core, onf::Resource::register_,
                                              onf::Resource::lane};
static constexpr onf::Resource foldOrder[] = {onf::Resource::sequential,
                                              onf::Resource::cache};
static constexpr int64_t maxFactor = int64_t(1) << 24;

static llvm::Error checkKeys(const json::Object &object, ArrayRef<StringRef> known,
                             const llvm::Twine &where) {
  for (const auto &entry : object)
    if (!llvm::is_contained(known, StringRef(entry.first)))
      return refuse("unknown key '" + StringRef(entry.first) + "' in " + where +
                    "; known are " + llvm::join(known, ", "));
  return llvm::Error::success();
}

static llvm::Expected<AxisSchedule> parseAxis(const json::Value &value,
                                              ArrayRef<onf::Resource> order,
                                              StringRef what) {
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
      return refuse("expects 0, the rest, for the outermost factor '" + key + "' in " +
                    where + ", but got " + llvm::formatv("{0}", *entry).str());
    if (!outer && (!size || *size < 1 || *size > maxFactor))
      return refuse("expects a size from 1 to " + llvm::Twine(maxFactor) + " for '" + key +
                    "' in " + where + ", but got " + llvm::formatv("{0}", *entry).str());
    axis.factors.emplace_back(resource, *size);
  }
  return axis;
}

static llvm::Error parseAxes(const json::Object &object, StringRef key,
                             ArrayRef<onf::Resource> order, StringRef what,
                             std::vector<AxisSchedule> &axes) {
  const json::Array *array = object.getArray(key);
  if (!array)
    return refuse("expects an array '" + key + "' in every nest");
  for (const json::Value &value : *array) {
    auto axis = parseAxis(value, order, what);
    if (!axis)
      return axis.takeError();
    axes.push_back(std::move(*axis));
  }
  return llvm::Error::success();
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
    if (llvm::Error error = checkKeys(*nest, {"axes", "folds"}, "a nest"))
      return error;
    NestSchedule result;
    if (llvm::Error error = parseAxes(*nest, "axes", nestOrder, "axis", result.axes))
      return error;
    if (llvm::Error error = parseAxes(*nest, "folds", foldOrder, "fold", result.folds))
      return error;
    schedule.nests.push_back(std::move(result));
  }
  return schedule;
}

llvm::Expected<Schedule> moa::loadSchedule(StringRef path) {
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!file)
    return llvm::createStringError(file.getError(), "cannot read schedule '" + path +
                                                        "': " + file.getError().message());
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

std::string moa::printSchedule(const Schedule &schedule) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "{\n  \"kernel\": " << json::Value(schedule.kernel)
     << ",\n  \"machine\": " << json::Value(schedule.machine) << ",\n  \"nests\": [";
  StringRef separator = "\n";
  for (const NestSchedule &nest : schedule.nests) {
    os << separator << "    {\n";
    printAxes(os, "axes", nest.axes);
    os << ",\n";
    printAxes(os, "folds", nest.folds);
    os << "\n    }";
    separator = ",\n";
  }
  os << (schedule.nests.empty() ? "]" : "\n  ]") << "\n}\n";
  return text;
}

//===----------------------------------------------------------------------===//
// Checking
//===----------------------------------------------------------------------===//

static llvm::Error checkNames(ArrayRef<AxisSchedule> axes, ArrayRef<std::string> names,
                              const llvm::Twine &what) {
  std::vector<std::string> found;
  for (const AxisSchedule &axis : axes)
    found.push_back(axis.name);
  if (ArrayRef(found) == names)
    return llvm::Error::success();
  return refuse("expects the " + what + " <" + llvm::join(names, " ") + ">, but got <" +
                llvm::join(found, " ") + ">");
}

static llvm::Error checkNest(const NestShape &shape, const NestSchedule &nest,
                             const Machine &machine, const llvm::Twine &where) {
  if (llvm::Error error = checkNames(nest.axes, shape.names, "axes of " + where))
    return error;
  std::vector<std::string> folds;
  for (const FoldShape &fold : shape.folds)
    folds.push_back(fold.name);
  if (llvm::Error error = checkNames(nest.folds, folds, "folds of " + where))
    return error;
  std::vector<int64_t> counts = machine.laneCounts(shape.bits);
  for (const AxisSchedule &axis : nest.axes) {
    int64_t lanes = axis.getSize(onf::Resource::lane);
    bool last = &axis == &nest.axes.back();
    if (!last && axis.factors.size() > 1)
      return refuse("expects only the factor 'core' on axis '" + axis.name +
                    "', which is not the last of " + where);
    if (!llvm::is_contained(counts, lanes)) {
      std::vector<std::string> known;
      for (int64_t count : counts)
        known.push_back(std::to_string(count));
      return refuse("axis '" + axis.name + "' asks for " + llvm::Twine(lanes) +
                    " lanes of " + llvm::Twine(shape.bits) + " bits, but machine '" +
                    machine.name + "' has " + llvm::join(known, ", "));
    }
  }
  for (auto [fold, axis] : llvm::zip(shape.folds, nest.folds)) {
    int64_t lanes = nest.axes.empty() ? 1 : nest.axes.back().getSize(onf::Resource::lane);
    WorkingSet set = workingSet(shape, fold, machine, nest.getRows() / lanes, lanes,
                                axis.getSize(onf::Resource::cache));
    if (set.total() > machine.l2Bytes / 2)
      return refuse("fold '" + fold.name + "' of " + where + " needs " +
                    llvm::Twine(set.total()) + " bytes per core (" +
                    llvm::Twine(set.staged) + " staged, " + llvm::Twine(set.values) +
                    " of one block's values, " + llvm::Twine(set.states) +
                    " of states and rows), more than half of the " +
                    llvm::Twine(machine.l2Bytes) + " bytes of the second-level cache");
  }
  return llvm::Error::success();
}

llvm::Error moa::checkSchedule(onf::KernelOp kernel, const Schedule &schedule,
                               const Machine &machine) {
  if (schedule.kernel != kernel.getSymName())
    return refuse("is for kernel '" + schedule.kernel + "', not '" + kernel.getSymName() +
                  "'");
  std::vector<NestShape> shapes = nestShapes(kernel);
  if (shapes.size() != schedule.nests.size())
    return refuse("has " + llvm::Twine(schedule.nests.size()) + " nests, but kernel '" +
                  kernel.getSymName() + "' has " + llvm::Twine(shapes.size()));
  for (unsigned k = 0; k < shapes.size(); ++k)
    if (llvm::Error error =
            checkNest(shapes[k], schedule.nests[k], machine, "nest " + llvm::Twine(k)))
      return error;
  return llvm::Error::success();
}
