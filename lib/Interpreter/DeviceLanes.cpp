//===- DeviceLanes.cpp - scalars of many threads at once ------------------===//
//
// Floats of every type are kept in float64 cells, rounded to their type. For + - * / and square
// roots of f32, one operation in float64 and one rounding give the result of the operation in f32
// (Figueroa 1995). A fused multiply-add has its own code.
//
//===----------------------------------------------------------------------===//
#include "lib/Interpreter/DeviceLanes.h"
#include "lib/Support/HalfFloat.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemAlloc.h"
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>

using namespace mlir;
using namespace moa;
using namespace moa::interp;

//===----------------------------------------------------------------------===//
// Memory of cells
//===----------------------------------------------------------------------===//

namespace moa::interp {

/// Free lists of blocks, by the logarithm of their size.
struct FreeBlocks {
  static constexpr unsigned kOrders = 17; // larger blocks are freed at once
  Cells::Block *first[kOrders] = {};
  ~FreeBlocks() {
    for (Cells::Block *block : first)
      while (block)
        std::free(std::exchange(block, block->next));
  }
};

} // namespace moa::interp

static thread_local FreeBlocks freeBlocks;

Cells::Block *Cells::allocate(size_t count) {
  unsigned order = llvm::Log2_64_Ceil(std::max<size_t>(count, 1));
  Block *block = order < FreeBlocks::kOrders ? freeBlocks.first[order] : nullptr;
  if (block)
    freeBlocks.first[order] = block->next;
  else
    block = static_cast<Block *>(llvm::safe_malloc(sizeof(Block) + (sizeof(Cell) << order)));
  block->count = count;
  block->users = 1;
  block->order = order;
  return block;
}

void Cells::free(Block *block) {
  if (block->order >= FreeBlocks::kOrders)
    return std::free(block);
  block->next = std::exchange(freeBlocks.first[block->order], block);
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

Mask::Mask(size_t width, std::vector<uint8_t> list) : width(width) {
  if (llvm::is_contained(list, 0))
    bits = std::make_shared<const std::vector<uint8_t>>(std::move(list));
}

bool Mask::any() const { return !bits || llvm::is_contained(*bits, 1); }

size_t Mask::count() const { return bits ? llvm::count(*bits, 1) : width; }

Mask Mask::where(const Lanes &condition, bool value) const {
  std::vector<uint8_t> list(width);
  for (size_t k = 0; k < width; ++k)
    list[k] = (condition[k].i != 0) == value;
  for (size_t k = 0; bits && k < width; ++k)
    list[k] &= (*bits)[k];
  return Mask(width, std::move(list));
}

Lanes moa::interp::merge(const Mask &mask, const Lanes &yes, const Lanes &no) {
  if (mask.isAll())
    return yes;
  Cells list = Cells::some(mask.size());
  for (size_t k = 0, count = mask.size(); k < count; ++k)
    list[k] = mask[k] ? yes[k] : no[k];
  return Lanes(std::move(list));
}

Lanes moa::interp::repeat(const Lanes &lanes, size_t times) {
  if (lanes.isUniform() || times == 1)
    return lanes;
  Cells list = Cells::some(lanes.size() * times);
  Cell *to = list.data();
  for (size_t k = 0; k < lanes.size(); ++k)
    to = std::fill_n(to, times, lanes[k]);
  return Lanes(std::move(list));
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

namespace {

/// Applies f to every pair of elements of two operands.
template <typename F> Lanes over(const Lanes &x, const Lanes &y, size_t count, F f) {
  Cells out = Cells::some(count);
  Cell *to = out.data();
  const Cell *a = x.data(), *b = y.data();
  if (x.isUniform())
    for (size_t k = 0; k < count; ++k)
      to[k] = f(a[0], b[count == 1 ? 0 : k]);
  else if (y.isUniform())
    for (size_t k = 0; k < count; ++k)
      to[k] = f(a[k], b[0]);
  else
    for (size_t k = 0; k < count; ++k)
      to[k] = f(a[k], b[k]);
  return Lanes(std::move(out));
}

/// Applies f to every element.
template <typename F> Lanes over(const Lanes &x, size_t count, F f) {
  Cells out = Cells::some(count);
  std::transform(x.data(), x.data() + count, out.data(), f);
  return Lanes(std::move(out));
}

/// Applies f in f32, for the float operations that make up most of a kernel.
template <typename F> Lanes overSingle(const Lanes &x, const Lanes &y, size_t count, F f) {
  return over(x, y, count,
              [&](Cell a, Cell b) { return ofFloat(f(static_cast<float>(a.f), static_cast<float>(b.f))); });
}

/// Applies f in float64 and rounds the results.
template <typename F> Lanes overRounded(const Rounding &rounded, const Lanes &x, const Lanes &y, size_t count, F f) {
  return over(x, y, count, [&](Cell a, Cell b) { return ofFloat(rounded(f(a.f, b.f))); });
}

/// Computes a·b + c of f32, with the processor's fma instruction if it has one.
#if defined(__x86_64__) && defined(__GLIBC__)
__attribute__((target_clones("fma", "default")))
#endif
void multiplyAdd(const Cell *a, bool oneA, const Cell *b, bool oneB, const Cell *c, bool oneC, Cell *to, size_t count) {
  if (!oneA && !oneB && !oneC)
    for (size_t k = 0; k < count; ++k)
      to[k].f = __builtin_fmaf(a[k].f, b[k].f, c[k].f);
  else if (oneA && !oneB && !oneC)
    for (size_t k = 0; k < count; ++k)
      to[k].f = __builtin_fmaf(a[0].f, b[k].f, c[k].f);
  else
    for (size_t k = 0; k < count; ++k)
      to[k].f = __builtin_fmaf(a[oneA ? 0 : k].f, b[oneB ? 0 : k].f, c[oneC ? 0 : k].f);
}

std::optional<Lanes> computeSingle(Code code, ArrayRef<Lanes> in, size_t n) {
  switch (code) {
  case Code::AddF:
    return overSingle(in[0], in[1], n, [](float a, float b) { return a + b; });
  case Code::SubF:
    return overSingle(in[0], in[1], n, [](float a, float b) { return a - b; });
  case Code::MulF:
    return overSingle(in[0], in[1], n, [](float a, float b) { return a * b; });
  case Code::DivF:
    return overSingle(in[0], in[1], n, [](float a, float b) { return a / b; });
  case Code::Fma: {
    Cells out = Cells::some(n);
    multiplyAdd(in[0].data(), in[0].isUniform(), in[1].data(), in[1].isUniform(), in[2].data(), in[2].isUniform(),
                out.data(), n);
    return Lanes(std::move(out));
  }
  default:
    return std::nullopt;
  }
}

/// Computes operations that give floats and have no special cases.
std::optional<Lanes> computeFloat(const Instr &instr, const Rounding &rounded, ArrayRef<Lanes> in, size_t n) {
  switch (instr.code) {
  case Code::AddF:
    return overRounded(rounded, in[0], in[1], n, std::plus<double>());
  case Code::SubF:
    return overRounded(rounded, in[0], in[1], n, std::minus<double>());
  case Code::MulF:
    return overRounded(rounded, in[0], in[1], n, std::multiplies<double>());
  case Code::DivF:
    return overRounded(rounded, in[0], in[1], n, std::divides<double>());
  case Code::MaximumF:
    return overRounded(rounded, in[0], in[1], n, maximum);
  case Code::MinimumF:
    return overRounded(rounded, in[0], in[1], n, minimum);
  case Code::NegF:
    return over(in[0], n, [&](Cell x) { return ofFloat(rounded(-x.f)); });
  case Code::RoundF: // `round`, if set, is the type of the result
    return over(in[0], n, [&](Cell x) { return ofFloat(rounded(x.f)); });
  default:
    return std::nullopt;
  }
}

/// Compares floats, or returns nothing for the rarer predicates.
std::optional<Lanes> compareFloats(int predicate, const Lanes &x, const Lanes &y, size_t n) {
  auto with = [&](auto holds) { return over(x, y, n, [&](Cell a, Cell b) { return ofInt(holds(a.f, b.f)); }); };
  switch (static_cast<arith::CmpFPredicate>(predicate)) {
  case arith::CmpFPredicate::OEQ:
    return with(std::equal_to<double>());
  case arith::CmpFPredicate::UNE:
    return with(std::not_equal_to<double>());
  case arith::CmpFPredicate::OLT:
    return with(std::less<double>());
  case arith::CmpFPredicate::OLE:
    return with(std::less_equal<double>());
  case arith::CmpFPredicate::OGT:
    return with(std::greater<double>());
  case arith::CmpFPredicate::OGE:
    return with(std::greater_equal<double>());
  default:
    return std::nullopt;
  }
}

/// Compares integers of more than one bit, which are kept sign-extended, as signed.
std::optional<Lanes> compare(int predicate, const Lanes &x, const Lanes &y, size_t n) {
  auto with = [&](auto holds) { return over(x, y, n, [&](Cell a, Cell b) { return ofInt(holds(a.i, b.i)); }); };
  switch (static_cast<arith::CmpIPredicate>(predicate)) {
  case arith::CmpIPredicate::eq:
    return with(std::equal_to<int64_t>());
  case arith::CmpIPredicate::ne:
    return with(std::not_equal_to<int64_t>());
  case arith::CmpIPredicate::slt:
    return with(std::less<int64_t>());
  case arith::CmpIPredicate::sle:
    return with(std::less_equal<int64_t>());
  case arith::CmpIPredicate::sgt:
    return with(std::greater<int64_t>());
  case arith::CmpIPredicate::sge:
    return with(std::greater_equal<int64_t>());
  default:
    return std::nullopt;
  }
}

/// Computes operations that give integers and have no special cases.
std::optional<Lanes> computeInteger(const Instr &instr, ArrayRef<Lanes> in, size_t n) {
  if (instr.code == Code::CmpF)
    return compareFloats(instr.predicate, in[0], in[1], n);
  if (instr.width == 0)
    return std::nullopt;
  auto with = [&](auto f) { return over(in[0], in[1], n, [&](Cell a, Cell b) { return ofInt(f(a.i, b.i)); }); };
  auto wrapped = [&](auto f) {
    return over(in[0], in[1], n, [&](Cell a, Cell b) {
      return ofInt(llvm::SignExtend64(f(uint64_t(a.i), uint64_t(b.i)), instr.width));
    });
  };
  switch (instr.code) {
  case Code::AndI:
    return with(std::bit_and<int64_t>());
  case Code::OrI:
    return with(std::bit_or<int64_t>());
  case Code::XorI:
    return with(std::bit_xor<int64_t>());
  default:
    break;
  }
  if (instr.width == 1)
    return std::nullopt;
  switch (instr.code) {
  case Code::CmpI:
    return compare(instr.predicate, in[0], in[1], n);
  case Code::MinSI:
    return with([](int64_t a, int64_t b) { return std::min(a, b); });
  case Code::MaxSI:
    return with([](int64_t a, int64_t b) { return std::max(a, b); });
  case Code::AddI:
    return wrapped(std::plus<uint64_t>());
  case Code::SubI:
    return wrapped(std::minus<uint64_t>());
  case Code::MulI:
    return wrapped(std::multiplies<uint64_t>());
  default:
    return std::nullopt;
  }
}

/// Returns true if the result is defined as 0 here, but is an error in the interpreter of the
/// levels above.
bool isSpeculative(const Instr &instr, const Cell *v) {
  switch (instr.code) {
  case Code::DivSI:
  case Code::FloorDivSI:
  case Code::CeilDivSI:
  case Code::RemSI:
    return v[1].i == 0;
  case Code::ShlI:
  case Code::ShrSI:
  case Code::ShrUI:
    return v[1].i < 0 || v[1].i >= static_cast<int64_t>(instr.width);
  default:
    return false;
  }
}

} // namespace

const char *moa::interp::compute(const Instr &instr, Type type, ArrayRef<Lanes> operands, const Mask &mask,
                                 Lanes &result) {
  bool uniform = llvm::all_of(operands, [](const Lanes &x) { return x.isUniform(); });
  size_t count = uniform ? 1 : mask.size();
  bool rounds = isa<FloatType>(type);
  Rounding rounded(type);
  auto quick = type.isF32() ? computeSingle(instr.code, operands, count) : std::nullopt;
  if (!quick)
    quick = rounds ? computeFloat(instr, rounded, operands, count) : computeInteger(instr, operands, count);
  if (quick) {
    result = std::move(*quick);
    return nullptr;
  }
  Cells out(count);
  Cell v[3];
  for (size_t k = 0; k < count; ++k) {
    if (!uniform && !mask[k])
      continue;
    for (size_t m = 0; m < operands.size(); ++m)
      v[m] = operands[m][k];
    if (isSpeculative(instr, v))
      out[k] = ofInt(0);
    else if (const char *why = perform(instr, v, out[k]))
      return why;
    if (rounds)
      out[k].f = rounded(out[k].f);
  }
  result = Lanes(std::move(out));
  return nullptr;
}

static float flush(float x) { return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x; }

double moa::interp::approximateExp2(double x) { return flush(std::exp2(x)); }

double moa::interp::approximateReciprocal(double x) { return flush(1.0f / flush(static_cast<float>(x))); }

double moa::interp::roundedReciprocal(double x) { return 1.0f / static_cast<float>(x); }

double moa::interp::halfFromBits(double x) {
  if (std::isnan(x))
    return x;
  double bits = 16 * std::nearbyint(std::clamp(x * 0x1p24, 0.0, 2047.0));
  return fromFloat16(static_cast<uint16_t>(bits));
}
