//===- ExpandFloat8.cpp - 8-bit floats by integers and f32 ----------------===//
//
// LLVM has no instructions for f8E4M3FN (P. Micikevicius et al., FP8 formats for deep learning,
// 2022). The format has 4 exponent bits with bias 7, 3 fraction bits, no infinities, and 448 as its
// largest number. A byte without its sign, shifted left by 20, has its exponent and fraction in
// place for f32 and is 2^-120 times its value there. So rounding to f8 is rounding at bit 20 of
// f32.
//
//===----------------------------------------------------------------------===//
#include "lib/Conversion/ONFToVector/ONFToVector.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace {

bool isFloat8(Type type) { return isa<Float8E4M3FNType>(getElementTypeOrSelf(type)); }

/// Returns a type with the shape of one type and the elements of another.
Type like(Type shape, Type element) {
  auto vector = dyn_cast<VectorType>(shape);
  return vector ? Type(vector.clone(element)) : element;
}

struct Code {
  PatternRewriter &b;
  Location loc;
  Type shape;

  Type i8() { return like(shape, b.getI8Type()); }
  Type i32() { return like(shape, b.getI32Type()); }
  Type f32() { return like(shape, b.getF32Type()); }
  template <typename Op, typename... Args> Value make(Args &&...args) {
    return Op::create(b, loc, std::forward<Args>(args)...);
  }
  Value constant(TypedAttr value) {
    auto vector = dyn_cast<VectorType>(like(shape, value.getType()));
    return make<arith::ConstantOp>(vector ? DenseElementsAttr::get(vector, Attribute(value)) : value);
  }
  Value bits(uint32_t x) { return constant(b.getI32IntegerAttr(static_cast<int32_t>(x))); }
  Value number(float x) { return constant(b.getF32FloatAttr(x)); }
  Value below(Value x, uint32_t limit) { return make<arith::CmpIOp>(arith::CmpIPredicate::ult, x, bits(limit)); }
};

/// Rounds to nearest, ties to even. Saturates at 448 and maps NaN to NaN.
struct ExpandTruncation final : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::TruncFOp op, PatternRewriter &rewriter) const final {
    if (!isFloat8(op.getType()) || !getElementTypeOrSelf(op.getIn().getType()).isF32())
      return failure();
    Code c{rewriter, op.getLoc(), op.getType()};
    constexpr uint32_t kSign = 0x80000000u, kInfinity = 0x7f800000u, kLargest = 0x43e00000u /* 448 */,
                       kLeastNormal = 0x3c800000u /* 2^-6 */, kHalf = 0x7ffffu, kBias = 120u << 3;
    Value all = c.make<arith::BitcastOp>(c.i32(), op.getIn());
    Value magnitude = c.make<arith::AndIOp>(all, c.bits(~kSign));
    Value cut = c.make<arith::MinUIOp>(magnitude, c.bits(kLargest));
    // Normal numbers: round off the last 20 fraction bits; a carry goes into the exponent.
    Value lastBit = c.bits(1), odd = c.make<arith::AndIOp>(c.make<arith::ShRUIOp>(cut, c.bits(20)), lastBit);
    Value up = c.make<arith::AddIOp>(c.make<arith::AddIOp>(cut, c.bits(kHalf)), odd);
    Value bias = c.bits(kBias), normal = c.make<arith::SubIOp>(c.make<arith::ShRUIOp>(up, c.bits(20)), bias);
    // Subnormals are multiples of 2^-9, the last place of floats from 2^14 on.
    Value base = c.number(0x1p14f), sum = c.make<arith::AddFOp>(c.make<arith::BitcastOp>(c.f32(), cut), base);
    Value baseBits = c.bits(0x46800000u /* 2^14 */);
    Value subnormal = c.make<arith::SubIOp>(c.make<arith::BitcastOp>(c.i32(), sum), baseBits);
    Value rounded = c.make<arith::SelectOp>(c.below(cut, kLeastNormal), subnormal, normal);
    Value nan = c.bits(0x7f);
    rounded = c.make<arith::SelectOp>(c.below(magnitude, kInfinity + 1), rounded, nan);
    Value signBit = c.bits(0x80), sign = c.make<arith::AndIOp>(c.make<arith::ShRUIOp>(all, c.bits(24)), signBit);
    Value byte = c.make<arith::TruncIOp>(c.i8(), c.make<arith::OrIOp>(rounded, sign));
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, op.getType(), byte);
    return success();
  }
};

struct ExpandExtension final : OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::ExtFOp op, PatternRewriter &rewriter) const final {
    if (!isFloat8(op.getIn().getType()))
      return failure();
    Code c{rewriter, op.getLoc(), op.getType()};
    Value byte = c.make<arith::BitcastOp>(c.i8(), op.getIn());
    Value all = c.make<arith::ExtUIOp>(c.i32(), byte);
    Value magnitude = c.make<arith::AndIOp>(all, c.bits(0x7f));
    Value distance = c.bits(24), sign = c.make<arith::ShLIOp>(c.make<arith::AndIOp>(all, c.bits(0x80)), distance);
    Value small = c.make<arith::OrIOp>(c.make<arith::ShLIOp>(magnitude, c.bits(20)), sign);
    Value factor = c.number(0x1p120f);
    Value number = c.make<arith::MulFOp>(c.make<arith::BitcastOp>(c.f32(), small), factor);
    Value nan = c.number(std::numeric_limits<float>::quiet_NaN());
    Value result = c.make<arith::SelectOp>(c.below(magnitude, 0x7f), number, nan);
    if (getElementTypeOrSelf(op.getType()).isF64())
      result = c.make<arith::ExtFOp>(op.getType(), result);
    rewriter.replaceOp(op, result);
    return success();
  }
};

} // namespace

void moa::populateExpandFloat8Patterns(RewritePatternSet &patterns) {
  patterns.add<ExpandTruncation, ExpandExtension>(patterns.getContext());
}
