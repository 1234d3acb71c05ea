//===- Memory.cpp - arrays behind flat addresses --------------------------===//
#include "lib/Interpreter/Memory.h"

using namespace mlir;
using namespace moa;
using namespace moa::interp;

Memory::Memory(StringRef name, ArrayRef<int64_t> extents, Form form, bool hasGaps)
    : name(name.str()), shape(extents), strides(extents.size()), form(form),
      element(form) {
  int64_t size = 1;
  for (size_t k = shape.size(); k-- > 0;) {
    size += hasGaps;
    strides[k] = size;
    size *= std::max<int64_t>(shape[k], 1);
  }
  cells.assign(size, ofInt(0));
  marks.assign(size, kGap);
  std::vector<int64_t> index(shape.size(), 0);
  if (countOf(shape) == 0)
    return;
  do
    marks[addressOf(index)] = 0;
  while (nextIndex(index, shape));
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

std::vector<int64_t> Memory::indexOf(int64_t address) const {
  std::vector<int64_t> index;
  for (int64_t stride : strides) {
    index.push_back(address / stride);
    address %= stride;
  }
  return index;
}

void Memory::fill(const Array &array) {
  std::vector<int64_t> index(shape.size(), 0);
  for (double value : array.data) {
    cells[addressOf(index)] = fromDouble(value, form);
    nextIndex(index, shape);
  }
}

Array Memory::gather(std::vector<int64_t> *missing) const {
  Array array;
  array.shape = shape;
  int64_t count = countOf(shape);
  array.data.reserve(count);
  std::vector<int64_t> index(shape.size(), 0);
  for (int64_t k = 0; k < count; ++k) {
    int64_t address = addressOf(index);
    if (missing && missing->empty() && !isWritten(address)) {
      *missing = index;
      if (index.empty())
        missing->push_back(0);
    }
    array.data.push_back(read(address));
    nextIndex(index, shape);
  }
  return array;
}
