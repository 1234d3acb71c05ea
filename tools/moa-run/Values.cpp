//===- Values.cpp - arguments and results of a kernel ---------------------===//

#include "Values.h"
#include "lib/Support/HalfFloat.h"
#include "lib/Support/Npy.h"
#include "lib/Support/SplitMix64.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <unistd.h>

using namespace llvm;

namespace moa {

namespace {
/// The representation of an element type in memory and in files.
struct Storage {
  int64_t size;
  const char *npy;
  uint8_t code; // DLPack's type code
};
} // namespace

static Storage getStorage(StringRef type) {
  return StringSwitch<Storage>(type)
      .Case("f64", {8, "f8", 2})
      .Case("f32", {4, "f4", 2})
      .Case("bf16", {2, "V2", 4})
      .Case("f16", {2, "f2", 2})
      .Case("bool", {1, "b1", 6})
      .Case("i8", {1, "i1", 0})
      .Case("i16", {2, "i2", 0})
      .Case("i32", {4, "i4", 0})
      .Case("u8", {1, "u1", 1})
      .Case("u16", {2, "u2", 1})
      .Case("u32", {4, "u4", 1})
      .Default({8, "i8", 0});
}

template <typename T> static T load(const char *from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <typename T> static void store(char *to, T value) { std::memcpy(to, &value, sizeof value); }

/// Reads the element at `from`; `npy` is NumPy's name of the type.
static double loadElement(StringRef npy, const char *from) {
  if (npy == "f8")
    return load<double>(from);
  if (npy == "f4")
    return load<float>(from);
  if (npy == "f2")
    return fromFloat16(load<uint16_t>(from));
  if (npy == "V2")
    return fromBFloat16(load<uint16_t>(from));
  if (npy == "b1")
    return *from != 0;
  if (npy == "i1")
    return load<int8_t>(from);
  if (npy == "i2")
    return load<int16_t>(from);
  if (npy == "i4")
    return load<int32_t>(from);
  if (npy == "u1")
    return load<uint8_t>(from);
  if (npy == "u2")
    return load<uint16_t>(from);
  if (npy == "u4")
    return load<uint32_t>(from);
  return double(load<int64_t>(from));
}

/// Truncates a number and saturates it to an integer type.
template <typename T> static T saturate(double value) {
  // One more than the largest number; exact in double.
  constexpr double limit = 2 * (double(std::numeric_limits<T>::max() / 2) + 1);
  if (std::isnan(value))
    return 0;
  if (value >= limit)
    return std::numeric_limits<T>::max();
  constexpr T least = std::numeric_limits<T>::min();
  return value <= double(least) ? least : T(value);
}

static void storeElement(StringRef npy, char *to, double value) {
  if (npy == "f8")
    return store(to, value);
  if (npy == "f4")
    return store(to, float(value));
  if (npy == "f2")
    return store(to, toFloat16(value));
  if (npy == "V2")
    return store(to, toBFloat16(value));
  if (npy == "b1")
    return store(to, char(value != 0));
  if (npy == "i1")
    return store(to, saturate<int8_t>(value));
  if (npy == "i2")
    return store(to, saturate<int16_t>(value));
  if (npy == "i4")
    return store(to, saturate<int32_t>(value));
  if (npy == "u1")
    return store(to, saturate<uint8_t>(value));
  if (npy == "u2")
    return store(to, saturate<uint16_t>(value));
  if (npy == "u4")
    return store(to, saturate<uint32_t>(value));
  store(to, saturate<int64_t>(value));
}

std::string getTypeText(const ParameterInfo &info) {
  return info.elementType + (info.extents.empty() ? "" : "[" + join(info.extents, ", ") + "]");
}

std::string formatBytes(double bytes) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  unsigned unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(units); ++unit)
    bytes /= 1024;
  std::string text;
  raw_string_ostream(text) << format(unit ? "%.1f " : "%.0f ", bytes) << units[unit];
  return text;
}

//===----------------------------------------------------------------------===//
// HostArray
//===----------------------------------------------------------------------===//

void HostArray::Free::operator()(char *memory) const { std::free(memory); }

static double getPhysicalMemory() { return double(sysconf(_SC_PHYS_PAGES)) * double(sysconf(_SC_PAGESIZE)); }

Expected<HostArray> HostArray::make(const ParameterInfo &info, std::vector<int64_t> shape) {
  double bytes = double(getStorage(info.elementType).size);
  for (int64_t extent : shape)
    bytes *= double(extent);
  HostArray value;
  value.info = info;
  value.shape = std::move(shape);
  if (bytes < getPhysicalMemory()) {
    value.numElements = int64_t(bytes) / getStorage(info.elementType).size;
    size_t size = alignTo(std::max<int64_t>(int64_t(bytes), 1), 64);
    value.data.reset(static_cast<char *>(std::aligned_alloc(64, size)));
    if (value.data)
      std::memset(value.data.get(), 0xff, size);
  }
  if (value.data)
    return value;
  std::vector<std::string> extents;
  for (int64_t extent : value.shape)
    extents.push_back(std::to_string(extent));
  return createStringError(info.name + " : " + getTypeText(info) + ": an array of shape [" + join(extents, ", ") +
                           "] takes " + formatBytes(bytes) + ", which this machine's memory cannot hold");
}

int64_t HostArray::getNumBytes() const { return numElements * getStorage(info.elementType).size; }

double HostArray::get(int64_t index) const {
  Storage storage = getStorage(info.elementType);
  return loadElement(storage.npy, data.get() + index * storage.size);
}

void HostArray::set(int64_t index, double value) {
  Storage storage = getStorage(info.elementType);
  storeElement(storage.npy, data.get() + index * storage.size, value);
}

double HostArray::getRounded(double value) const {
  Storage storage = getStorage(info.elementType);
  char memory[sizeof(double)];
  storeElement(storage.npy, memory, value);
  return loadElement(storage.npy, memory);
}

std::vector<int64_t> HostArray::getIndex(int64_t element) const {
  std::vector<int64_t> index(shape.size());
  for (size_t axis = shape.size(); axis-- > 0;) {
    index[axis] = element % shape[axis];
    element /= shape[axis];
  }
  return index;
}

DLTensor HostArray::getTensor() {
  Storage storage = getStorage(info.elementType);
  DLTensor tensor = {};
  tensor.data = data.get();
  tensor.device.device_type = static_cast<decltype(DLDevice::device_type)>(1);
  tensor.ndim = int32_t(shape.size());
  tensor.dtype = {storage.code, uint8_t(8 * storage.size), 1};
  tensor.shape = shape.data();
  return tensor;
}

ReferenceArray HostArray::getReference() const {
  ReferenceArray array{shape, std::vector<double>(numElements)};
  for (int64_t k = 0; k < numElements; ++k)
    array.data[k] = get(k);
  return array;
}

std::string HostArray::getNpy() const {
  return writeNpy(getStorage(info.elementType).npy, shape, ArrayRef(data.get(), getNumBytes()));
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// Returns the NumPy type to read the file's elements as, or nothing if they do not fit the
/// parameter.
static std::optional<StringRef> getReadType(StringRef element, StringRef file) {
  StringRef own = getStorage(element).npy;
  if (file == own || (element == "bool" && file == "u1"))
    return own;
  if (element == "bf16" && file == "u2")
    return own;
  if ((element == "bf16" || element == "f16") && (file == "f4" || file == "f8"))
    return file;
  return std::nullopt;
}

/// Returns NumPy's name of the type to save a parameter's elements as.
static StringRef getDType(StringRef element) {
  return StringSwitch<StringRef>(element)
      .Case("f64", "numpy.float64")
      .Cases({"f32", "bf16"}, "numpy.float32")
      .Case("f16", "numpy.float16")
      .Case("bool", "numpy.bool_")
      .Case("i8", "numpy.int8")
      .Case("i16", "numpy.int16")
      .Case("i32", "numpy.int32")
      .Case("u8", "numpy.uint8")
      .Case("u16", "numpy.uint16")
      .Case("u32", "numpy.uint32")
      .Default("numpy.int64");
}

/// Returns NumPy's name of a file's element type: float32, int64, bool.
static std::string getTypeName(StringRef code) {
  if (code == "b1")
    return "bool";
  if (code == "V2")
    return "V2, two opaque bytes";
  std::string kind = code[0] == 'f' ? "float" : code[0] == 'u' ? "uint" : "int";
  return kind + std::to_string(8 * (code.back() - '0'));
}

Expected<HostArray> readArray(const ParameterInfo &info, StringRef path) {
  auto file = readNpy(path);
  if (!file)
    return createStringError(info.name + ": " + toString(file.takeError()));
  auto refuse = [&](const Twine &why) {
    return createStringError(info.name + ": " + path + ": expects " + getTypeText(info) + ", but " + why);
  };
  if (file->shape.size() != info.extents.size())
    return refuse("the array has rank " + Twine(file->shape.size()));
  std::optional<StringRef> type = getReadType(info.elementType, file->type);
  if (!type)
    return refuse("the elements are of type " + getTypeName(file->type) + "; save x.astype(" +
                  getDType(info.elementType) + ")");
  auto made = HostArray::make(info, file->shape);
  if (!made)
    return made.takeError();
  HostArray value = std::move(*made);
  if (*type == getStorage(info.elementType).npy) {
    std::memcpy(value.getData(), file->bytes.data(), file->bytes.size());
    return value;
  }
  int64_t size = type->back() - '0';
  for (int64_t k = 0; k < value.getNumElements(); ++k)
    value.set(k, loadElement(*type, file->bytes.data() + k * size));
  return value;
}

//===----------------------------------------------------------------------===//
// Random elements
//===----------------------------------------------------------------------===//

bool isInteger(StringRef type) { return type.starts_with("i") || type.starts_with("u"); }

void fillUniform(HostArray &value, uint64_t seed, double low, double high) {
  SplitMix64 generator{seed};
  generator.next();
  int64_t count = value.getNumElements();
  for (int64_t k = 0; k < count; ++k) {
    double share = generator.uniform();
    value.set(k, low * (1 - share) + high * share);
  }
}

void fillRandom(HostArray &value, uint64_t seed, int64_t low, int64_t high) {
  SplitMix64 generator{seed};
  generator.next();
  StringRef type = value.getInfo().elementType;
  int64_t count = value.getNumElements();
  if (type == "bool") {
    for (int64_t k = 0; k < count; ++k)
      value.set(k, double(generator.next() >> 63));
    return;
  }
  if (isInteger(type)) {
    uint64_t size = uint64_t(high) - uint64_t(low);
    for (int64_t k = 0; k < count; ++k)
      value.set(k, double(low + int64_t((unsigned __int128)(generator.next()) * size >> 64)));
    return;
  }
  // The Box–Muller transform yields two numbers at a time.
  for (int64_t k = 0; k < count; k += 2) {
    double radius = std::sqrt(-2 * std::log(generator.uniform()));
    double angle = 2 * M_PI * generator.uniform();
    value.set(k, radius * std::cos(angle));
    if (k + 1 < count)
      value.set(k + 1, radius * std::sin(angle));
  }
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

Expected<Scalar> parseScalar(const ParameterInfo &info, StringRef text) {
  auto refuse = [&] {
    return createStringError(info.name + " : " + info.elementType + ": '" + text + "' is not a value of this type");
  };
  if (info.elementType == "bool") {
    if (text == "true" || text == "1")
      return Scalar(true);
    if (text == "false" || text == "0")
      return Scalar(false);
    return refuse();
  }
  if (isInteger(info.elementType)) {
    int64_t value = 0;
    unsigned bits = 8 * getStorage(info.elementType).size;
    bool isSigned = StringRef(info.elementType).starts_with("i");
    if (text.getAsInteger(10, value) || !(isSigned ? isIntN(bits, value) : value >= 0 && isUIntN(bits, value)))
      return refuse();
    return Scalar(value);
  }
  std::string copy = text.str();
  char *end = nullptr;
  double value = std::strtod(copy.c_str(), &end);
  if (copy.empty() || *end)
    return refuse();
  bool isNumber = llvm::any_of(text, [](char c) { return isDigit(c); });
  if (isNumber && std::isinf(cantFail(HostArray::make(info, {})).getRounded(value)))
    return createStringError(info.name + " : " + info.elementType + ": " + text +
                             " is beyond the range of this type; an infinity is 'inf'");
  return Scalar(value);
}

double getRounded(const ParameterInfo &info, const Scalar &scalar) {
  HostArray value = cantFail(HostArray::make(info, {}));
  value.set(0, scalar.asDouble());
  return value.get(0);
}

} // namespace moa
