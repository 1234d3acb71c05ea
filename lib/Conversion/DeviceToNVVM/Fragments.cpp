//===- Fragments.cpp - the registers of a fragment ------------------------===//
#include "lib/Conversion/DeviceToNVVM/Fragments.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace moa::nvvm {

using device::LayoutAttr;

std::vector<RegisterPlace> getPlaces(LayoutAttr layout) {
  // The digits bound to registers, ascending in stride. Their strides have no gaps, so they are the
  // digits of a register's number. The digits of the rows, in the same order, give the number in
  // the slice.
  struct Digit {
    LayoutAttr::Digit digit;
    unsigned axis;
  };
  std::vector<Digit> digits;
  for (unsigned axis = 0; axis < layout.getRank(); ++axis)
    for (const LayoutAttr::Digit &digit : layout.getDigits(axis))
      if (digit.place == device::Place::register_)
        digits.push_back({digit, axis});
  llvm::stable_sort(digits, [](const Digit &x, const Digit &y) { return x.digit.stride < y.digit.stride; });
  std::vector<RegisterPlace> places(layout.getNumRegisters());
  for (auto [number, place] : llvm::enumerate(places)) {
    place.number = static_cast<int64_t>(number);
    place.indices.assign(layout.getRank(), 0);
    int64_t rowWeight = 1;
    for (const auto &[digit, axis] : digits) {
      int64_t which = place.number / digit.stride % digit.size;
      place.indices[axis] += which * digit.weight;
      if (axis != 0)
        continue;
      place.row += which * rowWeight;
      rowWeight *= digit.size;
    }
  }
  return places;
}

bool hasNeighbours(LayoutAttr layout) {
  for (unsigned axis = 1; axis < layout.getRank(); ++axis)
    for (const LayoutAttr::Digit &digit : layout.getDigits(axis))
      if (digit.place == device::Place::register_ && digit.stride == 1 && digit.size == 2)
        return true;
  return false;
}

int64_t countPacked(Type type) {
  auto fragment = dyn_cast<device::FragmentType>(type);
  if (!fragment || !isa<FloatType>(fragment.getElementType()))
    return 1;
  return std::max<int64_t>(32 / fragment.getElementType().getIntOrFloatBitWidth(), 1);
}

bool isNarrow(Type type) { return countPacked(type) != 1; }

int64_t countRegisters(device::FragmentType fragment) {
  int64_t registers = fragment.getLayout().getNumRegisters();
  return registers / countPacked(fragment);
}

Type getRegisterType(device::FragmentType fragment) {
  if (isNarrow(fragment))
    return IntegerType::get(fragment.getContext(), 32);
  Type element = fragment.getElementType();
  return element.isIndex() ? IntegerType::get(fragment.getContext(), 64) : element;
}

} // namespace moa::nvvm
