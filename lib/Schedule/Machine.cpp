//===- Machine.cpp - machine descriptions ---------------------------------===//
#include "lib/Schedule/Machine.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/TargetParser/Host.h"
#include <thread>
#include <unistd.h>

using namespace moa;
namespace json = llvm::json;

static llvm::Error refuse(const llvm::Twine &why) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), "machine description: " + why);
}

std::vector<int64_t> Machine::laneCounts(unsigned bits) const {
  std::vector<int64_t> counts = {1};
  for (int64_t width : vectorBits)
    if (int64_t lanes = width / bits; lanes > counts.back())
      counts.push_back(lanes);
  return counts;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static llvm::Error readStrings(const json::Object &object, llvm::StringRef key, std::vector<std::string> &strings) {
  const json::Array *array = object.getArray(key);
  if (!array)
    return refuse("expects an array of strings '" + key + "'");
  for (const json::Value &value : *array) {
    auto text = value.getAsString();
    if (!text)
      return refuse("expects an array of strings '" + key + "'");
    strings.push_back(text->str());
  }
  return llvm::Error::success();
}

static llvm::Error readSize(const json::Object &object, llvm::StringRef key, int64_t &size) {
  auto value = object.getInteger(key);
  if (!value || *value < 1)
    return refuse("expects a positive integer '" + key + "'");
  size = *value;
  return llvm::Error::success();
}

static llvm::Error readWidths(const json::Object &object, std::vector<int64_t> &widths) {
  const json::Array *array = object.getArray("vector_bits");
  if (!array || array->empty())
    return refuse("expects a non-empty array 'vector_bits'");
  for (const json::Value &value : *array) {
    auto bits = value.getAsInteger();
    if (!bits || *bits < 64 || *bits > 4096 || !llvm::isPowerOf2_64(*bits) ||
        (!widths.empty() && *bits <= widths.back()))
      return refuse("expects ascending powers of two from 64 to 4096 in 'vector_bits'");
    widths.push_back(*bits);
  }
  return llvm::Error::success();
}

llvm::Expected<Machine> moa::parseMachine(llvm::StringRef text) {
  auto value = json::parse(text);
  if (!value)
    return refuse(llvm::toString(value.takeError()));
  const json::Object *object = value->getAsObject();
  if (!object)
    return refuse("expects an object");
  static const llvm::StringRef keys[] = {"name",          "cpus",     "features", "vector_bits",        "registers",
                                         "fma_per_cycle", "l1_bytes", "l2_bytes", "l2_bytes_per_cycle", "cores"};
  for (const auto &entry : *object)
    if (!llvm::is_contained(keys, llvm::StringRef(entry.first)))
      return refuse("unknown key '" + llvm::StringRef(entry.first) + "'");
  Machine machine;
  auto name = object->getString("name");
  if (!name || name->empty())
    return refuse("expects a string 'name'");
  machine.name = name->str();
  if (llvm::Error error = readStrings(*object, "cpus", machine.cpus))
    return error;
  if (llvm::Error error = readStrings(*object, "features", machine.features))
    return error;
  if (llvm::Error error = readWidths(*object, machine.vectorBits))
    return error;
  std::pair<llvm::StringRef, int64_t *> sizes[] = {{"registers", &machine.registers},
                                                   {"fma_per_cycle", &machine.fmaPerCycle},
                                                   {"l1_bytes", &machine.l1Bytes},
                                                   {"l2_bytes", &machine.l2Bytes},
                                                   {"l2_bytes_per_cycle", &machine.l2BytesPerCycle},
                                                   {"cores", &machine.cores}};
  for (auto [key, size] : sizes)
    if (llvm::Error error = readSize(*object, key, *size))
      return error;
  if (machine.registers < 4)
    return refuse("expects at least 4 registers, but got " + llvm::Twine(machine.registers));
  return machine;
}

static std::string quoted(const std::vector<std::string> &strings) {
  std::vector<std::string> parts;
  for (const std::string &text : strings)
    parts.push_back(llvm::formatv("{0}", json::Value(text)).str());
  return "[" + llvm::join(parts, ", ") + "]";
}

std::string moa::printMachine(const Machine &machine) {
  std::vector<std::string> widths;
  for (int64_t bits : machine.vectorBits)
    widths.push_back(std::to_string(bits));
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "{\n  \"name\": " << json::Value(machine.name) << ",\n  \"cpus\": " << quoted(machine.cpus)
     << ",\n  \"features\": " << quoted(machine.features) << ",\n  \"vector_bits\": [" << llvm::join(widths, ", ")
     << "],\n  \"registers\": " << machine.registers << ",\n  \"fma_per_cycle\": " << machine.fmaPerCycle
     << ",\n  \"l1_bytes\": " << machine.l1Bytes << ",\n  \"l2_bytes\": " << machine.l2Bytes
     << ",\n  \"l2_bytes_per_cycle\": " << machine.l2BytesPerCycle << ",\n  \"cores\": " << machine.cores << "\n}\n";
  return text;
}

//===----------------------------------------------------------------------===//
// Choice
//===----------------------------------------------------------------------===//

std::vector<Machine> moa::knownMachines() {
  std::vector<Machine> machines;
  for (const char *text : machineTexts())
    machines.push_back(llvm::cantFail(parseMachine(text)));
  return machines;
}

Machine moa::hostMachine() {
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  std::string cpu = llvm::sys::getHostCPUName().str();
  std::vector<Machine> machines = knownMachines();
  // A virtual machine may hide features of the processor.
  llvm::erase_if(machines, [&](const Machine &machine) {
    return llvm::any_of(machine.features, [&](const std::string &f) { return !features.lookup(f); });
  });
  auto named = llvm::find_if(machines, [&](const Machine &machine) { return llvm::is_contained(machine.cpus, cpu); });
  // The last description requires no feature, so at least one remains.
  Machine host = named != machines.end() ? *named : machines.front();
  host.cores = std::max(1u, std::thread::hardware_concurrency());
#if defined(_SC_LEVEL1_DCACHE_SIZE) && defined(_SC_LEVEL2_CACHE_SIZE)
  if (long size = sysconf(_SC_LEVEL1_DCACHE_SIZE); size > 0)
    host.l1Bytes = size;
  if (long size = sysconf(_SC_LEVEL2_CACHE_SIZE); size > 0)
    host.l2Bytes = size;
#endif
  return host;
}

llvm::Expected<Machine> moa::loadMachine(llvm::StringRef nameOrPath) {
  if (nameOrPath.empty() || nameOrPath == "host")
    return hostMachine();
  std::vector<std::string> names = {"host"};
  for (Machine &machine : knownMachines()) {
    if (machine.name == nameOrPath)
      return machine;
    names.push_back(machine.name);
  }
  auto file = llvm::MemoryBuffer::getFile(nameOrPath, /*IsText=*/true);
  if (!file)
    return llvm::createStringError(file.getError(), "cannot read '" + nameOrPath + "' (" + file.getError().message() +
                                                        "), and no machine has this name; known are " +
                                                        llvm::join(names, ", "));
  return parseMachine((*file)->getBuffer());
}
