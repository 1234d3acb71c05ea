//===- DeviceDialect.cpp - the device dialect -----------------------------===//
#include "dialects/Device/IR/Device.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FoldInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace moa::device;

#include "dialects/Device/IR/DeviceDialect.cpp.inc"
#include "dialects/Device/IR/DeviceEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Device/IR/DeviceAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/Device/IR/DeviceTypes.cpp.inc"

namespace {
/// Keeps constants that folding creates inside a kernel: a program's body may not hold any.
struct KeepConstantsInside : DialectFoldInterface {
  using DialectFoldInterface::DialectFoldInterface;
  bool shouldMaterializeInto(Region *region) const final { return isa<KernelOp>(region->getParentOp()); }
};
} // namespace

void DeviceDialect::initialize() {
  addInterfaces<KeepConstantsInside>();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Device/IR/DeviceAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Device/IR/DeviceTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Device/IR/DeviceOps.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

Attribute LayoutAttr::parse(AsmParser &parser, Type) {
  SmallVector<int64_t> ranks, places, sizes, strides;
  auto digit = [&]() -> ParseResult {
    std::string word;
    int64_t size = 0, stride = 0;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeywordOrString(&word) || parser.parseColon() || parser.parseInteger(size) ||
        parser.parseKeyword("by") || parser.parseInteger(stride))
      return failure();
    auto place = symbolizePlace(word);
    if (!place)
      return parser.emitError(loc) << "expects warp, lane or register, but got '" << word << "'";
    places.push_back(static_cast<int64_t>(*place));
    sizes.push_back(size);
    strides.push_back(stride);
    ++ranks.back();
    return success();
  };
  auto axis = [&]() -> ParseResult {
    ranks.push_back(0);
    return parser.parseCommaSeparatedList(AsmParser::Delimiter::OptionalSquare, digit);
  };
  if (parser.parseLess() || axis())
    return Attribute();
  while (succeeded(parser.parseOptionalComma()))
    if (axis())
      return Attribute();
  if (succeeded(parser.parseOptionalKeyword("replicas"))) {
    if (axis())
      return Attribute();
  } else {
    ranks.push_back(0);
  }
  if (parser.parseGreater())
    return Attribute();
  return parser.getChecked<LayoutAttr>(parser.getContext(), ranks, places, sizes, strides);
}

void LayoutAttr::print(AsmPrinter &printer) const {
  auto list = [&](unsigned axis) {
    printer << '[';
    llvm::interleaveComma(getDigits(axis), printer, [&](const Digit &digit) {
      printer << stringifyPlace(digit.place) << ": " << digit.size << " by " << digit.stride;
    });
    printer << ']';
  };
  printer << '<';
  for (unsigned axis = 0; axis < getRank(); ++axis) {
    if (axis)
      printer << ", ";
    list(axis);
  }
  if (getRanks().back()) {
    printer << " replicas ";
    list(getRank());
  }
  printer << '>';
}

SmallVector<LayoutAttr::Digit> LayoutAttr::getDigits(unsigned axis) const {
  int64_t first = 0;
  for (unsigned k = 0; k < axis; ++k)
    first += getRanks()[k];
  SmallVector<Digit> digits;
  int64_t weight = 1;
  for (int64_t k = first + getRanks()[axis] - 1; k >= first; --k) {
    digits.insert(digits.begin(), {static_cast<Place>(getPlaces()[k]), getSizes()[k], getStrides()[k], weight});
    weight *= getSizes()[k];
  }
  return digits;
}

int64_t LayoutAttr::getExtent(unsigned axis) const {
  int64_t extent = 1;
  for (const Digit &digit : getDigits(axis))
    extent *= digit.size;
  return extent;
}

int64_t LayoutAttr::getNumRegisters() const {
  int64_t count = 1;
  for (auto [place, size] : llvm::zip(getPlaces(), getSizes()))
    if (static_cast<Place>(place) == Place::register_)
      count *= size;
  return count;
}

LogicalResult LayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> ranks,
                                 ArrayRef<int64_t> places, ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides) {
  for (Place place : {Place::warp, Place::lane, Place::register_}) {
    SmallVector<std::pair<int64_t, int64_t>> digits;
    for (auto [p, size, stride] : llvm::zip_equal(places, sizes, strides))
      if (static_cast<Place>(p) == place && size != 1)
        digits.emplace_back(stride, size);
    llvm::sort(digits);
    int64_t count = 1;
    for (auto [stride, size] : digits) {
      if (size < 1 || stride != count)
        return emitError() << "expects the digits of " << stringifyPlace(place)
                           << " to count without a gap (C1), but got stride " << stride << " where " << count
                           << " numbers stand below it";
      count *= size;
    }
    int64_t expected = place == Place::warp ? 4 : 32;
    if (place != Place::register_ && count != expected)
      return emitError() << "expects " << expected << " values of " << stringifyPlace(place) << " (C2), but got "
                         << count;
  }
  return success();
}

LayoutAttr LayoutAttr::getSlice(unsigned axis) const {
  SmallVector<int64_t> ranks, places, sizes, strides;
  // Renumber the registers in their order.
  SmallVector<Digit> kept = getDigits(axis), rest;
  auto renumbered = [&](const Digit &digit) {
    if (digit.place != Place::register_)
      return digit.stride;
    int64_t stride = 1;
    for (const Digit &other : kept)
      if (other.place == Place::register_ && other.stride < digit.stride)
        stride *= other.size;
    return stride;
  };
  auto add = [&](const Digit &digit, int64_t stride) {
    places.push_back(static_cast<int64_t>(digit.place));
    sizes.push_back(digit.size);
    strides.push_back(stride);
    ++ranks.back();
  };
  ranks.push_back(0);
  for (const Digit &digit : kept)
    add(digit, renumbered(digit));
  ranks.push_back(0);
  for (unsigned other = 0; other <= getRank(); ++other)
    for (const Digit &digit : getDigits(other))
      if (other != axis && digit.place != Place::register_)
        add(digit, digit.stride);
  return LayoutAttr::get(getContext(), ranks, places, sizes, strides);
}

LayoutAttr LayoutAttr::getThreadPart(unsigned axis) const {
  SmallVector<int64_t> ranks, places, sizes, strides;
  // Renumber the remaining registers in their order.
  auto stays = [&](unsigned of, const Digit &digit) { return of != axis || digit.place != Place::register_; };
  auto renumbered = [&](const Digit &digit) {
    int64_t stride = 1;
    for (unsigned of = 0; of <= getRank(); ++of)
      for (const Digit &other : getDigits(of))
        if (stays(of, other) && other.place == Place::register_ && other.stride < digit.stride)
          stride *= other.size;
    return stride;
  };
  for (unsigned of = 0; of <= getRank(); ++of) {
    ranks.push_back(0);
    for (const Digit &digit : getDigits(of)) {
      if (!stays(of, digit))
        continue;
      places.push_back(static_cast<int64_t>(digit.place));
      sizes.push_back(digit.size);
      strides.push_back(digit.place == Place::register_ ? renumbered(digit) : digit.stride);
      ++ranks.back();
    }
  }
  return LayoutAttr::get(getContext(), ranks, places, sizes, strides);
}

LayoutAttr LayoutAttr::getAccumulator(MLIRContext *context, int64_t columns) {
  auto place = [](Place p) { return static_cast<int64_t>(p); };
  int64_t warp = place(Place::warp), lane = place(Place::lane), reg = place(Place::register_);
  return LayoutAttr::get(context, {3, 3, 0}, {warp, reg, lane, reg, lane, reg}, {4, 2, 8, columns / 8, 4, 2},
                         {1, 2, 4, 4, 1, 1});
}

LogicalResult FragmentType::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> shape,
                                   Type elementType, LayoutAttr layout) {
  bool same = layout.getRank() == shape.size();
  for (unsigned axis = 0; same && axis < shape.size(); ++axis)
    same = layout.getExtent(axis) == shape[axis];
  if (!same)
    return emitError() << "expects a layout of the tile's axes and extents (C1)";
  return success();
}

LogicalResult MembersType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t capacity) {
  if (capacity < 1 || capacity > 65536)
    return emitError() << "expects room for 1 to 65536 indices (C1), but got " << capacity;
  return success();
}

LogicalResult RingType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t stages, ArrayRef<int64_t> shape,
                               Type elementType) {
  bool isHalf = elementType.isIntOrFloat() && elementType.getIntOrFloatBitWidth() == 16;
  if (!isHalf && !elementType.isInteger(8) && !isa<Float8E4M3FNType>(elementType))
    return emitError() << "expects elements of 16 bits, i8 or f8E4M3FN (C3), but got " << elementType;
  int64_t piece = isHalf ? 64 : 128;
  if (shape.size() != 2 || shape[1] % piece != 0 || shape[1] < piece)
    return emitError() << "expects rows and a multiple of " << piece << " columns (C1)";
  if (shape[0] % 8 != 0 || shape[0] < 8 || stages < 1)
    return emitError() << "expects a multiple of 8 rows and a stage (C2), but got " << shape[0] << " and " << stages;
  return success();
}
