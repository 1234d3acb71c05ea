//===- Npy.cpp - NumPy's .npy files ---------------------------------------===//
//
// Layout: the magic number, a version, the length of the header, the header (a Python dictionary
// literal with the keys descr, fortran_order and shape), the elements.
//
//===----------------------------------------------------------------------===//

#include "lib/Support/Npy.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace moa {

static const StringRef kMagic("\x93NUMPY", 6);

int64_t NpyArray::getNumElements() const {
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  return count;
}

namespace {
class HeaderParser {
public:
  explicit HeaderParser(StringRef text) : rest(text) {}

  /// Returns false on malformed text and sets `reason` to the missing part.
  bool parse() {
    if (!take('{'))
      return fail("a dictionary");
    while (!take('}')) {
      std::string key;
      if (!parseString(key))
        return fail("a key");
      if (!take(':') || !parseValue(key))
        return fail("a value of '" + key + "'");
      if (!take(',') && !rest.ltrim().starts_with("}"))
        return fail("a comma");
    }
    if (!hasType || !hasOrder || !hasShape)
      return fail("descr, fortran_order and shape");
    return true;
  }

  std::string type, reason;
  bool fortranOrder = false;
  std::vector<int64_t> shape;

private:
  bool fail(const Twine &what) {
    reason = ("expects " + what + " in the header").str();
    return false;
  }
  bool take(char c) {
    rest = rest.ltrim();
    return rest.consume_front(StringRef(&c, 1));
  }
  bool parseString(std::string &value) {
    rest = rest.ltrim();
    if (rest.empty() || (rest[0] != '\'' && rest[0] != '"'))
      return false;
    size_t end = rest.find(rest[0], 1);
    if (end == StringRef::npos)
      return false;
    value = rest.slice(1, end).str();
    rest = rest.drop_front(end + 1);
    return true;
  }
  bool parseShape() {
    if (!take('('))
      return false;
    while (!take(')')) {
      rest = rest.ltrim();
      int64_t extent = 0;
      if (rest.consumeInteger(10, extent))
        return false;
      shape.push_back(extent);
      if (!take(',') && !rest.ltrim().starts_with(")"))
        return false;
    }
    return true;
  }
  bool parseValue(StringRef key) {
    if (key == "descr")
      return hasType = parseString(type);
    if (key == "shape")
      return hasShape = parseShape();
    if (key != "fortran_order")
      return false;
    rest = rest.ltrim();
    fortranOrder = rest.consume_front("True");
    return hasOrder = fortranOrder || rest.consume_front("False");
  }

  StringRef rest;
  bool hasType = false, hasOrder = false, hasShape = false;
};
} // namespace

/// Returns the header's dictionary and the offset of the elements, or nothing if the file is not a
/// complete .npy file.
static std::optional<std::pair<StringRef, size_t>> findHeader(StringRef file) {
  if (file.size() < 10)
    return std::nullopt;
  unsigned version = file[6];
  size_t start = version == 1 ? 10 : 12;
  if (version < 1 || version > 3 || file.size() < start)
    return std::nullopt;
  size_t length =
      version == 1 ? support::endian::read16le(file.data() + 8) : support::endian::read32le(file.data() + 8);
  if (length > file.size() - start)
    return std::nullopt;
  return std::make_pair(file.substr(start, length), start + length);
}

/// Returns the bytes of all elements, or nothing if the shape is invalid.
static std::optional<int64_t> getSize(ArrayRef<int64_t> shape, int64_t elementSize) {
  int64_t size = elementSize;
  bool empty = is_contained(shape, 0);
  for (int64_t extent : shape)
    if (extent < 0 || (!empty && MulOverflow(size, extent, size)))
      return std::nullopt;
  return empty ? 0 : size;
}

static Error checkType(StringRef type) {
  static const char *const known[] = {"f2", "f4", "f8", "b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "V2"};
  if (type.size() == 3 && type[0] == '>')
    return createStringError("the elements are big-endian ('" + type + "'); save x.astype('<" + type.drop_front() +
                             "')");
  if (type.size() != 3 || !is_contained({'<', '|', '='}, type[0]) || !is_contained(known, type.drop_front()))
    return createStringError("elements of type '" + type + "' cannot be read; there are " +
                             join(ArrayRef(known), ", "));
  return Error::success();
}

static Expected<NpyArray> parse(std::shared_ptr<MemoryBuffer> buffer) {
  StringRef file = buffer->getBuffer();
  if (!file.starts_with(kMagic))
    return createStringError(kMagic.starts_with(file) ? "the file is truncated" : "this is not a .npy file");
  auto header = findHeader(file);
  if (!header)
    return createStringError("the file is truncated or of an unknown version");
  HeaderParser parser(header->first);
  if (!parser.parse())
    return createStringError(parser.reason);
  if (Error error = checkType(parser.type))
    return error;
  if (parser.fortranOrder && parser.shape.size() > 1)
    return createStringError("the array is in Fortran order; save "
                             "numpy.ascontiguousarray of it");
  NpyArray array;
  array.type = parser.type.substr(1);
  array.shape = std::move(parser.shape);
  std::optional<int64_t> size = getSize(array.shape, parser.type.back() - '0');
  size_t found = file.size() - header->second;
  if (!size)
    return createStringError("the shape in the header is senseless: (" +
                             join(map_range(array.shape, [](int64_t extent) { return std::to_string(extent); }), ", ") +
                             ")");
  if (found != size_t(*size))
    return createStringError("the file is " + Twine(found < size_t(*size) ? "truncated" : "too long") + ": " +
                             Twine(*size) + " bytes of elements expected, " + Twine(found) + " found");
  array.bytes = ArrayRef(file.data() + header->second, found);
  array.buffer = std::move(buffer);
  return array;
}

Expected<NpyArray> readNpy(StringRef path) {
  if (sys::fs::is_directory(path))
    return createStringError(path + ": this is a directory");
  auto buffer = MemoryBuffer::getFile(path, /*IsText=*/false,
                                      /*RequiresNullTerminator=*/false);
  if (!buffer)
    return createStringError(path + ": " + buffer.getError().message());
  auto array = parse(std::move(*buffer));
  if (!array)
    return createStringError(path + ": " + toString(array.takeError()));
  return array;
}

std::string writeNpy(StringRef type, ArrayRef<int64_t> shape, ArrayRef<char> bytes) {
  bool oneByte = type.back() == '1';
  std::string header =
      "{'descr': '" + std::string(oneByte ? "|" : "<") + type.str() + "', 'fortran_order': False, 'shape': (";
  for (int64_t extent : shape)
    header += std::to_string(extent) + (shape.size() == 1 ? "," : ", ");
  if (shape.size() > 1)
    header.resize(header.size() - 2);
  header += "), }";
  // The elements begin at a multiple of 64 bytes.
  header.append(63 - (header.size() + 10) % 64, ' ');
  header += '\n';
  std::string file = kMagic.str() + '\x01' + '\0';
  file += char(header.size() & 0xff);
  file += char(header.size() >> 8);
  file += header;
  file.append(bytes.data(), bytes.size());
  return file;
}

} // namespace moa
