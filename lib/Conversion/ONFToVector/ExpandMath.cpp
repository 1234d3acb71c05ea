//===- ExpandMath.cpp - exp, exp2 and tanh by polynomial ---------------------===//
//
//   e^x = 2^n · e^r,   n = round(x · log2 e),   |r| ≤ ½ ln 2
//
// with r = x − n·h − n·l, where h + l = ln 2 and n·h is exact (Cody and Waite). Then
// e^r = 1 + (r + r²·q(r)), where q approximates (e^r − 1 − r) / r². For f32, q has the least
// maximal relative error of e^r (degree 4, 3.1e-9). For f64, q interpolates at Chebyshev points
// (degree 10, 2.3e-19). Arguments are clamped so that the result is a normal number or ∞. NaN
// passes through.
//
// Results below the least normal number are flushed to 0. The weights of a softmax may all be
// subnormal, and multiplying subnormals is about a hundred times slower on most CPUs. 512-bit
// vectors apply 2^n by one instruction (vscalef), others by a product with two powers of two.
//
//===----------------------------------------------------------------------===//
#include "dialects/ONF/IR/ONF.h"
#include "lib/Conversion/ONFToVector/ONFToVector.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace moa {
#define GEN_PASS_DEF_EXPANDMATH
#include "lib/Conversion/ConversionPasses.h.inc"
} // namespace moa

using namespace mlir;

namespace {

struct ExpFormat {
  double log2e, ln2High, ln2Low; // ln2High has trailing zeros: n·ln2High is exact
  double low, high;              // results are 0 below low and ∞ above high
  double lowExp2, highExp2;
  unsigned bits, mantissa, bias;
  llvm::SmallVector<double> q;
};

const ExpFormat &getFormat(bool isDouble) {
  static const ExpFormat single{
      0x1.715476p+0,
      0x1.62e400p-1,
      0x1.7f7d1cf79abcap-20,
      -0x1.5d589ep+6,
      89.0,
      -126.0,
      129.0,
      32,
      23,
      127,
      {0x1.fffffb9a56ad7p-2, 0x1.555491541b80cp-3, 0x1.5558f17e0bae8p-5, 0x1.1239e2a6e6aeep-7, 0x1.6a24339cbccc2p-10}};
  static const ExpFormat twice{0x1.71547652b82fep+0,
                               0x1.62e42fefa0000p-1,
                               0x1.cf79abc9e3b39p-40,
                               -0x1.6232bdd7abcd2p+9,
                               710.0,
                               -1022.0,
                               1025.0,
                               64,
                               52,
                               1023,
                               {0.5, 0x1.5555555555557p-3, 0x1.5555555555556p-5, 0x1.11111111100dcp-7,
                                0x1.6c16c16c162d4p-10, 0x1.a01a01abe7fe1p-13, 0x1.a01a01a6d889cp-16,
                                0x1.71de0231960ebp-19, 0x1.27e4db646b17ep-22, 0x1.af4de97ca4194p-26,
                                0x1.1f730349868cep-29}};
  return isDouble ? twice : single;
}

struct ExpBuilder {
  PatternRewriter &b;
  Location loc;
  Type type;
  const ExpFormat &format;

  Value constant(double value) const {
    Type element = getElementTypeOrSelf(type);
    Attribute attr = FloatAttr::get(element, value);
    if (auto vector = dyn_cast<VectorType>(type))
      return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(vector, attr));
    return arith::ConstantOp::create(b, loc, cast<TypedAttr>(attr));
  }
  Type integerType() const {
    Type element = b.getIntegerType(format.bits);
    if (auto vector = dyn_cast<VectorType>(type))
      return vector.clone(element);
    return element;
  }
  Value integer(int64_t value) const {
    Type target = integerType();
    auto attr = IntegerAttr::get(b.getIntegerType(format.bits), value);
    if (auto vector = dyn_cast<VectorType>(target))
      return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(vector, Attribute(attr)));
    return arith::ConstantOp::create(b, loc, attr);
  }
  Value fma(Value x, Value y, Value z) const { return math::FmaOp::create(b, loc, x, y, z); }
  /// Clamps x to [low, high]; NaN passes through.
  Value clamp(Value x, double low, double high) const {
    Value lower = constant(low), upper = constant(high);
    Value below = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, x, lower);
    x = arith::SelectOp::create(b, loc, below, lower, x);
    Value above = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, x, upper);
    return arith::SelectOp::create(b, loc, above, upper, x);
  }
  /// Returns `result`, or 0 if x is below `low`.
  Value orZero(Value x, double low, Value result) const {
    Value below = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, x, constant(low));
    return arith::SelectOp::create(b, loc, below, constant(0), result);
  }
  /// Emits e^r for small r.
  Value polynomial(Value r) const {
    Value q = constant(format.q.back());
    for (double c : llvm::reverse(ArrayRef<double>(format.q).drop_back()))
      q = fma(q, r, constant(c));
    Value square = arith::MulFOp::create(b, loc, r, r);
    Value one = constant(1.0);
    return arith::AddFOp::create(b, loc, fma(q, square, r), one);
  }
  /// Emits 2^n for −bias < n ≤ bias + 1.
  Value power(Value n) const {
    Value biased = arith::AddIOp::create(b, loc, n, integer(format.bias));
    Value bits = arith::ShLIOp::create(b, loc, biased, integer(format.mantissa));
    return arith::BitcastOp::create(b, loc, type, bits);
  }
  /// Emits p · 2^n for an integral float n.
  Value scale(Value p, Value n) const {
    auto vector = dyn_cast<VectorType>(type);
    if (vector && vector.getNumElements() * format.bits == 512) {
      // Only AVX-512 has such vectors. Use all lanes and the current rounding mode.
      auto name = format.bits == 64 ? "llvm.x86.avx512.mask.scalef.pd.512" : "llvm.x86.avx512.mask.scalef.ps.512";
      Type maskType = b.getIntegerType(vector.getNumElements());
      Value mask = LLVM::ConstantOp::create(b, loc, maskType, b.getIntegerAttr(maskType, -1));
      Value mode = LLVM::ConstantOp::create(b, loc, b.getI32Type(), b.getI32IntegerAttr(4));
      return LLVM::CallIntrinsicOp::create(b, loc, type, b.getStringAttr(name), ValueRange{p, n, p, mask, mode})
          .getResult(0);
    }
    Value exponent = arith::FPToSIOp::create(b, loc, integerType(), n);
    Value half = arith::ShRSIOp::create(b, loc, exponent, integer(1));
    Value rest = arith::SubIOp::create(b, loc, exponent, half);
    p = arith::MulFOp::create(b, loc, p, power(half));
    return arith::MulFOp::create(b, loc, p, power(rest));
  }
  Value nearest(Value x) const { return math::RoundEvenOp::create(b, loc, x); }

  Value exp(Value argument) const {
    Value x = clamp(argument, format.low, format.high);
    Value n = nearest(arith::MulFOp::create(b, loc, x, constant(format.log2e)));
    Value r = fma(n, constant(-format.ln2High), x);
    r = fma(n, constant(-format.ln2Low), r);
    return orZero(argument, format.low, scale(polynomial(r), n));
  }
  Value exp2(Value argument) const {
    Value x = clamp(argument, format.lowExp2, format.highExp2);
    Value n = nearest(x);
    Value f = arith::SubFOp::create(b, loc, x, n);
    // The small part first: the FMA then rounds f·ln 2 once.
    Value r = arith::MulFOp::create(b, loc, f, constant(format.ln2Low));
    r = fma(f, constant(format.ln2High), r);
    return orZero(argument, format.lowExp2, scale(polynomial(r), n));
  }
};

/// Expands tanh of f32. For |x| < 0.63: x + x³·p(x²), with p of degree 5 and relative error
/// 6.6e-10. Otherwise: 1 − 2 / (e^{2|x|} + 1) with the sign of x.
struct ExpandTanh : OpRewritePattern<math::TanhOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::TanhOp op, PatternRewriter &rewriter) const final {
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return rewriter.notifyMatchFailure(op, "only f32 has a polynomial");
    Location loc = op.getLoc();
    ExpBuilder builder{rewriter, loc, op.getType(), getFormat(false)};
    Value x = op.getOperand();
    Value magnitude = math::AbsFOp::create(rewriter, loc, x);
    Value twice = arith::AddFOp::create(rewriter, loc, magnitude, magnitude);
    Value one = builder.constant(1.0);
    Value above = arith::AddFOp::create(rewriter, loc, builder.exp(twice), one);
    Value part = arith::DivFOp::create(rewriter, loc, builder.constant(2.0), above);
    Value large = math::CopySignOp::create(rewriter, loc, arith::SubFOp::create(rewriter, loc, one, part), x);
    Value z = arith::MulFOp::create(rewriter, loc, x, x);
    Value p = builder.constant(0x1.2a78a31a66bbdp-9);
    for (double c : {-0x1.10f5bf823e1b9p-7, 0x1.64978e22f6d8fp-6, -0x1.ba07a8f4213eap-5, 0x1.1110e61453c78p-3,
                     -0x1.5555553711b2dp-2})
      p = builder.fma(p, z, builder.constant(c));
    Value small = builder.fma(arith::MulFOp::create(rewriter, loc, p, z), x, x);
    Value near = arith::CmpFOp::create(rewriter, loc, arith::CmpFPredicate::OLT, magnitude, builder.constant(0.63));
    rewriter.replaceOpWithNewOp<arith::SelectOp>(op, near, small, large);
    return success();
  }
};

/// Scales subnormal arguments of f32 logarithms by 2^23: MLIR's polynomial treats them as the least
/// normal number.
template <typename OpTy> struct ScaleSubnormal : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpTy op, PatternRewriter &rewriter) const final {
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return rewriter.notifyMatchFailure(op, "only f32 has a polynomial");
    if (op->hasAttr("moa.scaled"))
      return rewriter.notifyMatchFailure(op, "the argument is scaled");
    Location loc = op.getLoc();
    ExpBuilder builder{rewriter, loc, op.getType(), getFormat(false)};
    double logOfScale = std::is_same_v<OpTy, math::Log2Op> ? 23.0 : 0x1.fe2804p+3;
    Value x = op.getOperand();
    Value small = arith::CmpFOp::create(rewriter, loc, arith::CmpFPredicate::OLT, x, builder.constant(0x1p-126));
    Value large = arith::MulFOp::create(rewriter, loc, x, builder.constant(0x1p23));
    auto scaled = OpTy::create(rewriter, loc, arith::SelectOp::create(rewriter, loc, small, large, x));
    scaled->setAttr("moa.scaled", rewriter.getUnitAttr());
    Value zero = builder.constant(0.0), scaledShift = builder.constant(logOfScale);
    Value shift = arith::SelectOp::create(rewriter, loc, small, scaledShift, zero);
    rewriter.replaceOpWithNewOp<arith::SubFOp>(op, scaled.getResult(), shift);
    return success();
  }
};

template <typename OpTy> struct ExpandExponential : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpTy op, PatternRewriter &rewriter) const final {
    Type element = getElementTypeOrSelf(op.getType());
    if (!element.isF32() && !element.isF64())
      return rewriter.notifyMatchFailure(op, "only f32 and f64 have polynomials");
    ExpBuilder builder{rewriter, op.getLoc(), op.getType(), getFormat(element.isF64())};
    rewriter.replaceOp(op, std::is_same_v<OpTy, math::ExpOp> ? builder.exp(op.getOperand())
                                                             : builder.exp2(op.getOperand()));
    return success();
  }
};

/// Computes i = 64·(y + 15), rounded, and returns the f16 with the bits 16·i as f32. For i ≥ 64 it
/// is a normal f16: its exponent and fraction are shifted into place and the exponent is rebiased.
/// Below 64 it is i·2⁻²⁰.
struct ExpandPiecewiseExp2 : OpRewritePattern<moa::onf::PiecewiseExp2Op> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(moa::onf::PiecewiseExp2Op op, PatternRewriter &rewriter) const final {
    Location loc = op.getLoc();
    ExpBuilder builder{rewriter, loc, op.getType(), getFormat(false)};
    double times = op.getTimes().convertToDouble() * 64, plus = (op.getPlus().convertToDouble() + 15) * 64;
    Value offset = builder.constant(plus), factor = builder.constant(times);
    Value x = op.getOperand(), y = builder.fma(x, factor, offset);
    Value isNaN = arith::CmpFOp::create(rewriter, loc, arith::CmpFPredicate::UNO, y, y);
    Value known = arith::SelectOp::create(rewriter, loc, isNaN, builder.constant(0), y);
    Value number = builder.nearest(builder.clamp(known, 0, 31 * 64));
    Value integer = arith::FPToSIOp::create(rewriter, loc, builder.integerType(), number);
    Value bits = arith::ShLIOp::create(rewriter, loc, integer, builder.integer(17));
    bits = arith::AddIOp::create(rewriter, loc, bits, builder.integer(112 << 23));
    Value normal = arith::BitcastOp::create(rewriter, loc, op.getType(), bits);
    Value small = arith::MulFOp::create(rewriter, loc, number, builder.constant(0x1p-20));
    Value isSmall = arith::CmpFOp::create(rewriter, loc, arith::CmpFPredicate::OLT, number, builder.constant(64));
    Value power = arith::SelectOp::create(rewriter, loc, isSmall, small, normal);
    rewriter.replaceOpWithNewOp<arith::SelectOp>(op, isNaN, y, power);
    return success();
  }
};

struct ExpandMath final : moa::impl::ExpandMathBase<ExpandMath> {
  void runOnOperation() final {
    RewritePatternSet patterns(&getContext());
    moa::populateExpandMathPatterns(patterns);
    populateMathF32ExpansionPatterns(patterns, [](StringRef) { return true; });
    populateMathPolynomialApproximationPatterns(patterns, [](StringRef name) {
      return name == math::LogOp::getOperationName() || name == math::Log2Op::getOperationName();
    });
    arith::populateCeilFloorDivExpandOpsPatterns(patterns);
    arith::populateExpandBFloat16Patterns(patterns);
    moa::populateExpandFloat8Patterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace

void moa::populateExpandMathPatterns(RewritePatternSet &patterns) {
  patterns.add<ExpandExponential<math::ExpOp>, ExpandExponential<math::Exp2Op>, ScaleSubnormal<math::LogOp>,
               ScaleSubnormal<math::Log2Op>, ExpandTanh, ExpandPiecewiseExp2>(patterns.getContext(), /*benefit=*/2);
}

std::unique_ptr<Pass> moa::createExpandMathPass() { return std::make_unique<ExpandMath>(); }
