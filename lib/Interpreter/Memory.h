//===- Memory.h - arrays with strides ---------------------------*- C++ -*-===//
#ifndef MOA_INTERPRETER_MEMORY_H
#define MOA_INTERPRETER_MEMORY_H

#include "lib/Interpreter/Kernel.h"
#include "lib/Interpreter/Scalar.h"

namespace moa::interp {

/// An array addressed as in onf: flat, with its own strides. The strides leave gaps on every axis.
/// A wrong address, for example one computed from extents instead of strides, hits a gap and is
/// detected.
class Memory {
public:
  /// Without gaps the array is row-major, as in a workspace. With a unit (a number of elements),
  /// elements along the last axis are contiguous, and all other strides are multiples of the unit,
  /// with gaps.
  Memory(llvm::StringRef name, llvm::ArrayRef<int64_t> shape, Form form, bool hasGaps = true, int64_t unit = 0);

  /// Sets `<name>.s<axis>` in the symbols.
  void bindStrides(Symbols &symbols) const;
  /// Copies the elements in.
  void fill(const Array &array);

  bool isElement(int64_t address) const {
    return address >= 0 && address < static_cast<int64_t>(marks.size()) && marks[address] != kGap;
  }
  Cell load(int64_t address) const { return cells[address]; }
  /// Writes an element and returns how many times it has been written.
  unsigned store(int64_t address, Cell cell) {
    cells[address] = cell;
    return ++marks[address];
  }
  /// Changes an element that is already written.
  void set(int64_t address, Cell cell) { cells[address] = cell; }
  /// Returns the index of the element at a valid address.
  std::vector<int64_t> indexOf(int64_t address) const;
  int64_t addressOf(llvm::ArrayRef<int64_t> index) const;
  /// Adjacent indices on the last axis, of which those from `begin` to `end` are elements.
  struct Row {
    bool contains(int64_t k) const { return k >= begin && k < end; }
    int64_t addressOf(int64_t k) const { return address + k * stride; }
    int64_t begin = 0, end = 0, address = 0, stride = 0;
  };
  /// Returns `count` indices from this one on.
  Row getRow(llvm::ArrayRef<int64_t> first, int64_t count) const;
  bool isWritten(int64_t address) const { return marks[address] != 0; }
  double read(int64_t address) const { return toStored(cells[address], form, element); }
  /// Returns the elements in row-major order. `missing` receives the index of the first element
  /// never written, if any.
  Array gather(std::vector<int64_t> *missing) const;

  const std::string &getName() const { return name; }
  const std::vector<int64_t> &getShape() const { return shape; }
  /// Sets the form of the stored values. Outputs keep it until they are read.
  void setForm(Form stored) { form = stored; }
  /// True if the copy engine reads the array.
  bool isCopied = false;

private:
  template <typename F> void overAddresses(F f) const;

  static constexpr uint8_t kGap = 255;

  std::string name;
  std::vector<int64_t> shape, strides;
  Form form, element; // of the cells, and of the array's elements
  std::vector<Cell> cells;
  std::vector<uint8_t> marks; // kGap, or the number of writes
};

} // namespace moa::interp

#endif // MOA_INTERPRETER_MEMORY_H
