//===- Memory.cpp - arrays with strides -----------------------------------===//
#include "lib/Interpreter/Memory.h"

using namespace mlir;
using namespace moa;
using namespace moa::interp;

template <typename F> void Memory::overAddresses(F f) const {
  if (countOf(shape) == 0)
    return;
  ArrayRef<int64_t> outer = shape;
  int64_t count = 1, stride = 0;
  if (!shape.empty()) {
    outer = outer.drop_back();
    count = shape.back();
    stride = strides.back();
  }
  std::vector<int64_t> index(outer.size(), 0);
  do {
    int64_t address = addressOf(index);
    for (int64_t i = 0; i < count; ++i)
      f(address + i * stride);
  } while (nextIndex(index, outer));
}

Memory::Memory(StringRef name, ArrayRef<int64_t> extents, Form form, bool hasGaps, int64_t unit)
    : name(name.str()), shape(extents), strides(extents.size()), form(form), element(form) {
  int64_t size = 1;
  for (size_t k = shape.size(); k-- > 0;) {
    if (!unit)
      size += hasGaps;
    else if (k + 1 != shape.size())
      size = llvm::alignTo(size, unit) + unit;
    strides[k] = size;
    size *= std::max<int64_t>(shape[k], 1);
  }
  cells.assign(size, ofInt(0));
  marks.assign(size, kGap);
  overAddresses([&](int64_t address) { marks[address] = 0; });
}

void Memory::bindStrides(Symbols &symbols) const {
  for (auto [axis, stride] : llvm::enumerate(strides))
    symbols[name + ".s" + std::to_string(axis)] = stride;
}

int64_t Memory::addressOf(ArrayRef<int64_t> index) const {
  int64_t address = 0;
  for (auto [i, stride] : llvm::zip(index, strides))
    address += i * stride;
  return address;
}

Memory::Row Memory::getRow(ArrayRef<int64_t> first, int64_t count) const {
  for (auto [i, extent] : llvm::zip(first.drop_back(), shape))
    if (i < 0 || i >= extent)
      return {};
  int64_t begin = std::max<int64_t>(-first.back(), 0), end = std::min(count, shape.back() - first.back());
  return {begin, end, addressOf(first), strides.back()};
}

std::vector<int64_t> Memory::indexOf(int64_t address) const {
  std::vector<int64_t> index;
  for (int64_t stride : strides) {
    index.push_back(address / stride);
    address %= stride;
  }
  return index;
}

void Memory::fill(const Array &array) {
  const double *value = array.data.data();
  overAddresses([&](int64_t address) { cells[address] = fromDouble(*value++, form); });
}

Array Memory::gather(std::vector<int64_t> *missing) const {
  Array array;
  array.shape = shape;
  array.data.reserve(countOf(shape));
  overAddresses([&](int64_t address) {
    if (missing && missing->empty() && !isWritten(address)) {
      *missing = indexOf(address);
      if (missing->empty())
        missing->push_back(0);
    }
    array.data.push_back(read(address));
  });
  return array;
}
