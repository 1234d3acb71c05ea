//===- DeviceLanes.h - scalars of many threads at once ----------*- C++ -*-===//
#ifndef MOA_INTERPRETER_DEVICELANES_H
#define MOA_INTERPRETER_DEVICELANES_H

#include "lib/Interpreter/Scalar.h"
#include "llvm/ADT/ArrayRef.h"
#include <memory>
#include <vector>

namespace moa::interp {

using Cells = std::vector<Cell>;

/// One scalar per thread (in a map: per element a thread holds); a single cell
/// where all threads have the same one.
class Lanes {
public:
  Lanes() = default;
  explicit Lanes(Cell cell) : cells(std::make_shared<const Cells>(1, cell)) {}
  explicit Lanes(Cells list) : cells(std::make_shared<const Cells>(std::move(list))) {}

  explicit operator bool() const { return bool(cells); }
  size_t size() const { return cells->size(); }
  bool isUniform() const { return cells->size() == 1; }
  const Cell *data() const { return cells->data(); }
  Cell operator[](size_t k) const { return (*cells)[isUniform() ? 0 : k]; }

private:
  std::shared_ptr<const Cells> cells;
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

/// The f16 whose bits are 16·x, x the nearest integer to 2²⁴ times the operand, 0 if that is negative (cvt.rn.relu.f16x2.f32
/// and a shift).
double halfFromBits(double x);

/// x ⊕ y rounded to the type.
Cell combineIn(Monoid monoid, mlir::Type type, Cell x, Cell y);

} // namespace moa::interp

#endif // MOA_INTERPRETER_DEVICELANES_H
