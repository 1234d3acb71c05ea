//===- ScalarCode.h - onf's scalars as one thread computes them -*- C++ -*-===//
//
// Values are written where they are first needed, so that what a select or a
// short-circuiting `and` does not need is not read. Scopes follow the regions of
// the code being written.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_CONVERSION_ONFTODEVICE_SCALARCODE_H
#define MOA_CONVERSION_ONFTODEVICE_SCALARCODE_H

#include "dialects/Device/IR/Device.h"
#include "dialects/ONF/IR/ONF.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include <functional>

namespace moa {

class LaneCode;

class ScalarCode {
public:
  using Values = llvm::SmallVector<mlir::Value>;
  using LoopBody = llvm::function_ref<Values(mlir::Value, mlir::ValueRange)>;

  ScalarCode(mlir::OpBuilder &builder, mlir::IRMapping arrays)
      : b(builder), arrays(std::move(arrays)), scopes(1) {}

  /// The value of an onf scalar at the current place.
  mlir::Value eval(mlir::Value value);
  void bind(mlir::Value value, mlir::Value code) { scopes.back().values[value] = code; }
  /// Binds a product to two factors, which are multiplied where it is needed.
  void bindProduct(mlir::Value value, mlir::Value left, mlir::Value right) {
    scopes.back().products[value] = {left, right};
  }
  void store(onf::StoreOp op, bool inPairs = false); // of device.store
  /// The value that is stored, in the array's element type.
  mlir::Value stored(onf::StoreOp op);
  /// Where an element stands in its array, and what one of its terms is multiplied with.
  mlir::Value addressOf(onf::LoadOp op);
  mlir::Value addressOf(onf::StoreOp op);
  mlir::Value coefficientOf(mlir::Operation *op, unsigned term);
  /// The array of the program that stands for one of the kernel.
  mlir::Value arrayOf(mlir::Value array) { return arrays.lookup(array); }

  //===--- Structure ------------------------------------------------------===//
  mlir::Value index(int64_t value);
  mlir::Value symbol(llvm::StringRef expr);
  /// `names` are those of the index and of the values carried, for readers.
  Values loop(mlir::Value lower, mlir::Value upper, mlir::ValueRange inits,
              llvm::ArrayRef<std::string> names, LoopBody body);
  void loop(mlir::Value lower, mlir::Value upper, llvm::StringRef name,
            llvm::function_ref<void(mlir::Value)> body);
  mlir::Location named(llvm::StringRef name);
  Values branch(mlir::Value condition, mlir::TypeRange types, llvm::function_ref<Values()> yes,
                llvm::function_ref<Values()> no);
  void when(mlir::Value condition, llvm::function_ref<void()> body);
  /// A further scope for values bound and written until it is closed.
  void open() { scopes.emplace_back(); }
  void close() { scopes.pop_back(); }

  //===--- Arithmetic -----------------------------------------------------===//
  /// `value` in another float or integer type, rounded once to nearest.
  mlir::Value convert(mlir::Value value, mlir::Type type);
  mlir::Value combine(Monoid monoid, mlir::Value x, mlir::Value y);
  mlir::Value constant(mlir::TypedAttr value);
  mlir::Value both(mlir::Value x, mlir::Value y); // null: true
  mlir::Value differs(mlir::Value x, mlir::Value y);
  /// An index below 2^32, so that a compiler sees that it is one.
  mlir::Value narrow(mlir::Value number);

  mlir::OpBuilder &b;
  mlir::Location loc = mlir::UnknownLoc::get(b.getContext());
  bool failed = false;
  /// Exponentials, hyperbolic tangents and powers by whole numbers of f32 by the hardware's
  /// approximations: what they are made for is rounded to 16 bits.
  bool approximate = false;
  /// Quotients of f32 by a product with the divisor's reciprocal, for the same
  /// reason.
  bool reciprocals = false;
  /// If set, whether another quotient of f32 is a product with the divisor's correctly rounded
  /// reciprocal.
  std::function<bool(mlir::arith::DivFOp)> takesReciprocal;
  /// As exactly where a divisor or its reciprocal is subnormal: both sides are scaled by a power of
  /// 2 then, as results of f32 need.
  bool scalesDivisors = false;
  /// If set, whether a value is the same for all that a loop over elements computes:
  /// quotients by such values are products with the reciprocal as well.
  std::function<bool(mlir::Value)> isUniform;
  /// Loads outside of their arrays read the nearest element, and 0 where an array has
  /// none. These indices are not negative and below their extents.
  bool clampsLoads = false;
  /// Operands are evaluated whether they are needed or not; loads must be clamped.
  bool eager = false;
  llvm::DenseMap<mlir::Value, SymExpr> indices;
  /// The last index of the nest, along which the pieces of folds are stated.
  mlir::Value row;

  /// Differences that exponents may take as a fused multiply-add, as what is subtracted is small;
  /// true if that is the second operand, else the first one is, of which the second is subtracted.
  llvm::DenseMap<mlir::Value, bool> fused;

  /// What shares the columns of a row, if they are shared (RowLanes.h).
  LaneCode *lanes = nullptr;

  /// The operand of `device.half_from_bits` for a power of 2 by lines.
  mlir::Value bitsOf(onf::PiecewiseExp2Op op);

  /// Whether evaluating the value here would read memory or run a fold.
  bool isCostly(mlir::Value value);

private:
  mlir::Value lookup(mlir::Value value);
  std::optional<std::pair<mlir::Value, mlir::Value>> lookupProduct(mlir::Value value);
  mlir::Value evalOp(mlir::Operation *op);
  mlir::Value evalLoad(onf::LoadOp load);
  mlir::Value evalNearest(onf::LoadOp load);
  mlir::Value evalAt(onf::AtOp at);
  std::optional<bool> isFused(mlir::arith::SubFOp difference);
  mlir::Value fusedDifference(mlir::arith::SubFOp difference, bool isSecond, float times,
                              float plus);
  mlir::Value scaledBy(mlir::Value argument, float times, float plus);
  mlir::Value approximateExp(mlir::Value argument, int64_t shift = 0); // times 2^shift
  mlir::Value approximateTanh(mlir::Value argument);
  mlir::Value approximatePower(mlir::math::PowFOp op);
  mlir::Value interleave(mlir::Value place);
  template <typename OpT> mlir::Value offset(OpT op);
  mlir::Value choose(mlir::Value condition, mlir::Value yes, mlir::Value no);

  /// Operations that were written; what a side of a branch needs is written in it, so that
  /// chains of selections grow with the power of their length.
  size_t written = 0;
  mlir::IRMapping arrays;
  struct Scope {
    llvm::DenseMap<mlir::Value, mlir::Value> values;
    llvm::DenseMap<mlir::Value, std::pair<mlir::Value, mlir::Value>> products;
  };
  std::vector<Scope> scopes;
};

/// Writes a fold and binds its results: scalars to their values, states with
/// axes to private arrays.
void emitFold(ScalarCode &code, onf::FoldOp fold);
/// x + y as it is rounded, and what rounding took, exactly; what is not finite loses nothing
/// (D. E. Knuth, The Art of Computer Programming 2, 4.2.2).
std::pair<mlir::Value, mlir::Value> sumAndRest(ScalarCode &code, mlir::Value x, mlir::Value y);

} // namespace moa

#endif // MOA_CONVERSION_ONFTODEVICE_SCALARCODE_H
