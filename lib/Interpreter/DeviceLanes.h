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

/// Scalars in one block of memory. Blocks are recycled through free lists, since most live only for
/// one operation.
class Cells {
public:
  Cells() = default;
  /// Makes `count` uninitialised cells.
  static Cells some(size_t count) {
    Cells cells;
    cells.block = allocate(count);
    return cells;
  }
  explicit Cells(size_t count, Cell cell = ofInt(0)) : block(allocate(count)) {
    std::fill_n(block->cells(), count, cell);
  }
  Cells(const Cell *first, const Cell *end) : block(allocate(end - first)) { std::copy(first, end, block->cells()); }
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
  const Cell *data() const { return block->cells(); }
  Cell &operator[](size_t k) { return block->cells()[k]; }
  Cell operator[](size_t k) const { return block->cells()[k]; }

private:
  friend class Lanes;
  friend struct FreeBlocks;
  /// Header before the cells; `next` links free blocks.
  struct Block {
    Cell *cells() { return reinterpret_cast<Cell *>(this + 1); }
    const Cell *cells() const { return reinterpret_cast<const Cell *>(this + 1); }
    union {
      size_t count;
      Block *next;
    };
    unsigned users, order; // capacity: 2^order cells
  };
  static Block *allocate(size_t count);
  static void release(Block *block) {
    if (block && --block->users == 0)
      free(block);
  }
  static void free(Block *block);

  Block *block = nullptr;
};

/// One scalar per thread, or in a map one per element that a thread holds. A single cell means that
/// all threads have the same value. Not thread-safe: all Lanes of an interpreter belong to one host
/// thread.
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

/// The set of active threads.
class Mask {
public:
  /// Makes the mask of all `width` threads.
  explicit Mask(size_t width) : width(width) {}
  Mask(size_t width, std::vector<uint8_t> list);

  size_t size() const { return width; }
  bool operator[](size_t k) const { return !bits || (*bits)[k]; }
  bool isAll() const { return !bits; }
  bool any() const;
  size_t count() const;
  /// Returns the subset of threads for which a condition has this value.
  Mask where(const Lanes &condition, bool value) const;

private:
  size_t width;
  std::shared_ptr<const std::vector<uint8_t>> bits; // null: all
};

/// Returns `yes` where the mask is set, `no` elsewhere.
Lanes merge(const Mask &mask, const Lanes &yes, const Lanes &no);
/// Returns each cell `times` times; a uniform value stays one cell.
Lanes repeat(const Lanes &lanes, size_t times);

/// Computes an operation with one result in its own type. Floats are rounded once after every
/// operation, to nearest even. A signed quotient by zero, and a shift by the width or more, are 0:
/// code may compute and not use them. An unsigned division by zero, which only coordinates contain,
/// is an error, which is returned. Threads outside the mask get arbitrary values.
const char *compute(const Instr &instr, mlir::Type type, llvm::ArrayRef<Lanes> operands, const Mask &mask,
                    Lanes &result);

/// Returns 2^x in f32 as ex2.approx.ftz.f32 does up to its error of 2^-22: the nearest float, with
/// subnormal results flushed to 0.
double approximateExp2(double x);

/// Returns 1/x in f32 as rcp.approx.ftz.f32 does up to its last place: the nearest float, with
/// subnormal arguments and results flushed to zero of the same sign.
double approximateReciprocal(double x);
/// Does the same as rcp.approx.f32: subnormal numbers are kept.
double roundedReciprocal(double x);

/// Returns the f16 with the bits 16·n, where n is the nearest integer to 2²⁴·x, or 0 if that is
/// negative (cvt.rn.relu.f16x2.f32 and a shift).
double halfFromBits(double x);

/// Computes x ⊕ y, rounded to a type.
class RoundedMonoid {
public:
  RoundedMonoid(Monoid monoid, mlir::Type type) : monoid(monoid), form(Form::of(type)), rounded(type) {}
  Cell operator()(Cell x, Cell y) const {
    Cell result = combine(monoid, form, x, y);
    return form.isFloat() ? ofFloat(rounded(result.f)) : result;
  }

private:
  Monoid monoid;
  Form form;
  Rounding rounded;
};

} // namespace moa::interp

#endif // MOA_INTERPRETER_DEVICELANES_H
