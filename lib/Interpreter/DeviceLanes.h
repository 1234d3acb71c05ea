//===- DeviceLanes.h - scalars of many threads at once ----------*- C++ -*-===//
#ifndef MOA_INTERPRETER_DEVICELANES_H
#define MOA_INTERPRETER_DEVICELANES_H

#include "lib/Interpreter/Scalar.h"
#include "llvm/ADT/ArrayRef.h"
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace moa::interp {

/// Scalars in one piece of memory, which is used again: most live as long as one operation takes.
class Cells {
public:
  Cells() = default;
  /// So many, of any value.
  static Cells some(size_t count) {
    Cells cells;
    cells.block = allocate(count);
    return cells;
  }
  explicit Cells(size_t count, Cell cell = ofInt(0)) : block(allocate(count)) {
    std::fill_n(block->cells(), count, cell);
  }
  Cells(const Cell *first, const Cell *end) : block(allocate(end - first)) {
    std::copy(first, end, block->cells());
  }
  Cells(const Cells &other) : Cells(other.begin(), other.end()) {}
  Cells(Cells &&other) : block(std::exchange(other.block, nullptr)) {}
  Cells &operator=(Cells other) {
    std::swap(block, other.block);
    return *this;
  }
  ~Cells() { release(block); }

  size_t size() const { return block ? block->count : 0; }
  const Cell *begin() const { return block ? block->cells() : nullptr; }
  const Cell *end() const { return begin() + size(); }
  Cell *data() { return block->cells(); }
  Cell &operator[](size_t k) { return block->cells()[k]; }
  Cell operator[](size_t k) const { return block->cells()[k]; }

private:
  friend class Lanes;
  friend struct FreeBlocks;
  /// In front of the cells; `next` while nobody has it.
  struct Block {
    Cell *cells() { return reinterpret_cast<Cell *>(this + 1); }
    const Cell *cells() const { return reinterpret_cast<const Cell *>(this + 1); }
    union {
      size_t count;
      Block *next;
    };
    unsigned users, order; // there is room for 2^order cells
  };
  static Block *allocate(size_t count);
  static void release(Block *block) {
    if (block && --block->users == 0)
      free(block);
  }
  static void free(Block *block);

  Block *block = nullptr;
};

/// One scalar per thread (in a map: per element a thread holds); a single cell
/// where all threads have the same one. Those of one interpreter are one host thread's.
class Lanes {
public:
  Lanes() = default;
  explicit Lanes(Cell cell) : Lanes(Cells(1, cell)) {}
  explicit Lanes(Cells &&cells) : block(std::exchange(cells.block, nullptr)) {}
  Lanes(const Lanes &other) : block(other.block) {
    if (block)
      ++block->users;
  }
  Lanes(Lanes &&other) : block(std::exchange(other.block, nullptr)) {}
  Lanes &operator=(Lanes other) {
    std::swap(block, other.block);
    return *this;
  }
  ~Lanes() { Cells::release(block); }

  explicit operator bool() const { return block; }
  size_t size() const { return block->count; }
  bool isUniform() const { return block->count == 1; }
  const Cell *data() const { return block->cells(); }
  Cell operator[](size_t k) const { return block->cells()[isUniform() ? 0 : k]; }

private:
  Cells::Block *block = nullptr;
};

/// The threads that execute something.
class Mask {
public:
  /// All of `width` threads.
  explicit Mask(size_t width) : width(width) {}
  Mask(size_t width, std::vector<uint8_t> list)
      : width(width), bits(std::make_shared<const std::vector<uint8_t>>(std::move(list))) {}

  size_t size() const { return width; }
  bool operator[](size_t k) const { return !bits || (*bits)[k]; }
  bool isAll() const { return !bits; }
  bool any() const;
  size_t count() const;
  /// Those of them for which a condition has this value.
  Mask where(const Lanes &condition, bool value) const;

private:
  size_t width;
  std::shared_ptr<const std::vector<uint8_t>> bits; // null: all
};

/// `yes` where the mask holds, `no` elsewhere.
Lanes merge(const Mask &mask, const Lanes &yes, const Lanes &no);

/// What an operation of one result computes in its own type: floats are rounded
/// to nearest even after every operation, once; a signed quotient by zero and a
/// shift by the width or more, which code may compute and not use, are 0. A map
/// that divides unsigned by zero, which only coordinates do, is wrong: the text
/// says so. Threads outside of the mask get any value.
const char *compute(const Instr &instr, mlir::Type type, llvm::ArrayRef<Lanes> operands,
                    const Mask &mask, Lanes &result);

/// 2^x in f32 as ex2.approx.ftz.f32 gives it up to its error of 2^-22: the nearest
/// float, subnormal results 0.
double approximateExp2(double x);

/// 1/x in f32 as rcp.approx.ftz.f32 gives it up to its last place: the nearest float,
/// subnormal arguments and results 0 of their sign.
double approximateReciprocal(double x);
/// The same as rcp.approx.f32 gives it: subnormal numbers are kept.
double roundedReciprocal(double x);

/// The f16 whose bits are 16·x, x the nearest integer to 2²⁴ times the operand, 0 if that is
/// negative (cvt.rn.relu.f16x2.f32 and a shift).
double halfFromBits(double x);

/// x ⊕ y rounded to the type.
Cell combineIn(Monoid monoid, mlir::Type type, Cell x, Cell y);

} // namespace moa::interp

#endif // MOA_INTERPRETER_DEVICELANES_H
