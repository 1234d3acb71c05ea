//===- GpuMachine.cpp - descriptions of GPUs ------------------------------===//
#include "lib/Schedule/GpuMachine.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace moa;
namespace json = llvm::json;

namespace {
struct Quantity {
  const char *key, *unit;
  int64_t GpuMachine::*value;
};
} // namespace

static constexpr Quantity quantities[] = {
    {"multiprocessors", "SM", &GpuMachine::multiprocessors},
    {"clock", "MHz", &GpuMachine::clock},
    {"sustained_clock", "MHz", &GpuMachine::sustainedClock},
    {"threads", "threads/SM", &GpuMachine::threads},
    {"threads_per_block", "threads/block", &GpuMachine::threadsPerBlock},
    {"blocks", "blocks/SM", &GpuMachine::blocks},
    {"registers", "registers/SM", &GpuMachine::registers},
    {"registers_per_thread", "registers/thread", &GpuMachine::registersPerThread},
    {"register_unit", "registers/thread", &GpuMachine::registerUnit},
    {"least_registers", "registers/thread", &GpuMachine::leastRegisters},
    {"most_registers", "registers/thread", &GpuMachine::mostRegisters},
    {"shared_per_block", "bytes/block", &GpuMachine::sharedPerBlock},
    {"shared", "bytes/SM", &GpuMachine::shared},
    {"shared_bandwidth", "bytes/cycle/SM", &GpuMachine::sharedBandwidth},
    {"l2_bytes", "bytes", &GpuMachine::l2Bytes},
    {"l2_bandwidth", "bytes/cycle", &GpuMachine::l2Bandwidth},
    {"memory_bandwidth", "GB/s", &GpuMachine::memoryBandwidth},
    {"copy_latency", "cycles", &GpuMachine::copyLatency},
    {"copy_rows", "rows", &GpuMachine::copyRows},
    {"tensor_rows", "rows/warpgroup", &GpuMachine::tensorRows},
    {"tensor_columns", "columns", &GpuMachine::tensorColumns},
    {"tensor_depth", "indices", &GpuMachine::tensorDepth},
    {"tensor_8", "flop/cycle/SM", &GpuMachine::tensor8},
    {"tensor_16", "flop/cycle/SM", &GpuMachine::tensor16},
    {"tensor_tf32", "flop/cycle/SM", &GpuMachine::tensorTF32},
    {"tensor_f64", "flop/cycle/SM", &GpuMachine::tensorF64},
    {"issue", "lanes/cycle/SM", &GpuMachine::issue},
    {"f32", "operations/cycle/SM", &GpuMachine::f32},
    {"f64", "operations/cycle/SM", &GpuMachine::f64},
    {"integer", "operations/cycle/SM", &GpuMachine::integer},
    {"special", "operations/cycle/SM", &GpuMachine::special},
    {"work_per_byte_8", "multiply-adds/byte", &GpuMachine::workPerByte8},
    {"work_per_byte_16", "multiply-adds/byte", &GpuMachine::workPerByte16},
    {"work_per_byte_split", "multiply-adds/byte", &GpuMachine::workPerByteSplit},
};

static llvm::Error refuse(const llvm::Twine &why) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), "machine description: " + why);
}

int64_t GpuMachine::getLaunchRegisters(int64_t blockThreads) const {
  return std::min(registers / blockThreads / registerUnit * registerUnit, mostRegisters);
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static llvm::Error readQuantity(const json::Object &all, const Quantity &quantity, GpuMachine &machine) {
  llvm::StringRef key = quantity.key;
  const json::Object *object = all.getObject(key);
  if (!object)
    return refuse("expects a quantity '" + key + "' with a value, a unit and a source");
  for (const auto &entry : *object)
    if (!llvm::is_contained({"value", "unit", "source"}, llvm::StringRef(entry.first)))
      return refuse("unknown key '" + llvm::StringRef(entry.first) + "' in '" + key + "'");
  auto value = object->getInteger("value");
  if (!value || *value < 1)
    return refuse("expects a positive integer as the value of '" + key + "'");
  auto unit = object->getString("unit");
  if (!unit || *unit != quantity.unit)
    return refuse("expects '" + key + "' in " + quantity.unit + ", but got " +
                  (unit ? *unit : llvm::StringRef("no unit")));
  auto source = object->getString("source");
  if (!source || source->trim().empty())
    return refuse("expects a source for '" + key + "'");
  machine.*quantity.value = *value;
  machine.sources[key.str()] = source->str();
  return llvm::Error::success();
}

static llvm::Error checkSense(const GpuMachine &m) {
  if (m.threadsPerBlock > m.threads)
    return refuse("expects no more threads per block than per SM, but got " + llvm::Twine(m.threadsPerBlock) + " > " +
                  llvm::Twine(m.threads));
  if (m.sharedPerBlock > m.shared)
    return refuse("expects no more shared memory per block than per SM, but got " + llvm::Twine(m.sharedPerBlock) +
                  " > " + llvm::Twine(m.shared));
  if (m.sustainedClock > m.clock)
    return refuse("expects no sustained clock above the clock, but got " + llvm::Twine(m.sustainedClock) + " > " +
                  llvm::Twine(m.clock));
  if (m.leastRegisters > m.mostRegisters)
    return refuse("expects least_registers up to most_registers, but got " + llvm::Twine(m.leastRegisters) + " > " +
                  llvm::Twine(m.mostRegisters));
  // 4 warps × 2 registers × 8 lanes: the layout of an accumulator's rows.
  if (m.tensorRows != 64)
    return refuse("expects contractions of 64 rows per warpgroup, but got " + llvm::Twine(m.tensorRows));
  return llvm::Error::success();
}

llvm::Expected<GpuMachine> moa::parseGpuMachine(llvm::StringRef text) {
  auto value = json::parse(text);
  if (!value)
    return refuse(llvm::toString(value.takeError()));
  const json::Object *object = value->getAsObject();
  if (!object)
    return refuse("expects an object");
  for (const auto &entry : *object)
    if (!llvm::is_contained({"name", "architecture", "quantities"}, llvm::StringRef(entry.first)))
      return refuse("unknown key '" + llvm::StringRef(entry.first) + "'");
  auto name = object->getString("name"), architecture = object->getString("architecture");
  if (!name || name->empty() || !architecture || architecture->empty())
    return refuse("expects strings 'name' and 'architecture'");
  const json::Object *all = object->getObject("quantities");
  if (!all)
    return refuse("expects an object 'quantities'");
  for (const auto &entry : *all)
    if (llvm::none_of(quantities,
                      [&](const Quantity &quantity) { return llvm::StringRef(entry.first) == quantity.key; }))
      return refuse("unknown quantity '" + llvm::StringRef(entry.first) + "'");
  GpuMachine machine;
  machine.name = name->str();
  machine.architecture = architecture->str();
  for (const Quantity &quantity : quantities)
    if (llvm::Error error = readQuantity(*all, quantity, machine))
      return error;
  if (llvm::Error error = checkSense(machine))
    return error;
  return machine;
}

std::string moa::printGpuMachine(const GpuMachine &machine) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "{\n  \"name\": " << json::Value(machine.name) << ",\n  \"architecture\": " << json::Value(machine.architecture)
     << ",\n  \"quantities\": {";
  llvm::StringRef separator = "\n";
  for (const Quantity &quantity : quantities) {
    os << separator << "    \"" << quantity.key << "\": { \"value\": " << machine.*quantity.value
       << ", \"unit\": " << json::Value(quantity.unit)
       << ",\n      \"source\": " << json::Value(machine.sources.at(quantity.key)) << " }";
    separator = ",\n";
  }
  os << "\n  }\n}\n";
  return text;
}

//===----------------------------------------------------------------------===//
// Choice
//===----------------------------------------------------------------------===//

std::vector<GpuMachine> moa::knownGpuMachines() {
  std::vector<GpuMachine> machines;
  for (const char *text : gpuMachineTexts())
    machines.push_back(llvm::cantFail(parseGpuMachine(text)));
  return machines;
}

llvm::Expected<GpuMachine> moa::loadGpuMachine(llvm::StringRef nameOrPath) {
  std::vector<std::string> names;
  for (GpuMachine &machine : knownGpuMachines()) {
    if (machine.name == nameOrPath || machine.architecture == nameOrPath)
      return machine;
    names.push_back(machine.name + " (" + machine.architecture + ")");
  }
  auto file = llvm::MemoryBuffer::getFile(nameOrPath, /*IsText=*/true);
  if (!file)
    return llvm::createStringError(file.getError(), "cannot read '" + nameOrPath + "' (" + file.getError().message() +
                                                        "), and no GPU has this name; known are " +
                                                        llvm::join(names, ", "));
  return parseGpuMachine((*file)->getBuffer());
}
