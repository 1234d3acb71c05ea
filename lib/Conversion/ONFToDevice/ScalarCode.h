//===- ScalarCode.h - scalars of onf as code of one thread ------*- C++ -*-===//
//
// Values are emitted at their first use. Hence operands that a select or a short-circuiting `and`
// does not need are not loaded. Scopes follow the regions of the emitted code.
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

  ScalarCode(mlir::OpBuilder &builder, mlir::IRMapping arrays, mlir::Location loc)
      : b(builder), loc(loc), arrays(std::move(arrays)), scopes(1) {}

  /// Returns the value of an onf scalar, emitting it here if it is not yet available.
  mlir::Value eval(mlir::Value value);
  void bind(mlir::Value value, mlir::Value code) { scopes.back().values[value] = code; }
  /// Binds a product to two factors, which are multiplied when it is needed.
  void bindProduct(mlir::Value value, mlir::Value left, mlir::Value right) {
    scopes.back().products[value] = {left, right};
  }
  void store(onf::StoreOp op, bool inPairs = false); // `inPairs` as in device.store
  /// Returns the value to store, in the array's element type.
  mlir::Value stored(onf::StoreOp op);
  /// Return the offset of an element in its array, and the coefficient of one of its terms.
  mlir::Value addressOf(onf::AccessOpInterface op);
  mlir::Value coefficientOf(onf::AccessOpInterface op, unsigned term);
  /// Returns the program's array for an array of the kernel.
  mlir::Value arrayOf(mlir::Value array) { return arrays.lookup(array); }

  //===--- Structure ------------------------------------------------------===//
  mlir::Value index(int64_t value);
  mlir::Value symbol(const SymExpr &expr);
  /// Emits a loop. `names` are those of the index and of the carried values, for readers.
  Values loop(mlir::Value lower, mlir::Value upper, mlir::ValueRange inits, llvm::ArrayRef<std::string> names,
              LoopBody body);
  void loop(mlir::Value lower, mlir::Value upper, llvm::StringRef name, llvm::function_ref<void(mlir::Value)> body);
  Values loop(int64_t lower, int64_t upper, mlir::ValueRange inits, llvm::ArrayRef<std::string> names, LoopBody body);
  void loop(int64_t lower, int64_t upper, llvm::StringRef name, llvm::function_ref<void(mlir::Value)> body);
  mlir::Location named(llvm::StringRef name);
  Values branch(mlir::Value condition, mlir::TypeRange types, llvm::function_ref<Values()> yes,
                llvm::function_ref<Values()> no);
  void when(mlir::Value condition, llvm::function_ref<void()> body);
  /// Opens a scope for values that are bound or emitted until `close`.
  void open() { scopes.emplace_back(); }
  void close() { scopes.pop_back(); }

  //===--- Arithmetic -----------------------------------------------------===//
  /// Converts `value` to another float or integer type, rounded to nearest; f64 to 16 bits by way
  /// of f32.
  mlir::Value convert(mlir::Value value, mlir::Type type);
  mlir::Value combine(Monoid monoid, mlir::Value x, mlir::Value y);
  mlir::Value constant(mlir::TypedAttr value);
  mlir::Value both(mlir::Value x, mlir::Value y);   // null: true
  mlir::Value either(mlir::Value x, mlir::Value y); // null: false
  mlir::Value differs(mlir::Value x, mlir::Value y);
  /// Returns a bound, or 0 unless every condition e of the map has e ≥ 0 (see `splitConditions`).
  mlir::Value zeroUnless(mlir::AffineMap conditions, mlir::ValueRange operands, mlir::Value bound);
  /// Returns an index below 2^32 in a form that shows a compiler its range. Numbers of tiles and
  /// blocks are such indices, because a grid has fewer than 2^32 blocks and an axis of TMA is no
  /// longer. ptxas then knows that the upper 32 bits are 0, so that each number takes one register.
  mlir::Value narrow(mlir::Value number);
  /// Returns the remainder of `rest` by `radix`, with a name for readers. Replaces `rest` with the
  /// quotient, named `restName` if that is given.
  mlir::Value takeDigit(mlir::Value &rest, mlir::Value radix, llvm::StringRef name, llvm::StringRef restName = "");

  mlir::OpBuilder &b;
  mlir::Location loc;
  bool failed = false;
  /// Emit exponentials, hyperbolic tangents and integer powers of f32 by the hardware's
  /// approximations, because their users round to 16 bits.
  bool approximate = false;
  /// Emit quotients of f32 as products with the approximate reciprocal, for the same reason.
  bool reciprocals = false;
  /// If set, returns whether another quotient of f32 is a product with the correctly rounded
  /// reciprocal.
  std::function<bool(mlir::arith::DivFOp)> takesReciprocal;
  /// Scale both sides of such a quotient by a power of 2 if the divisor or its reciprocal is
  /// subnormal, as results in f32 require.
  bool scalesDivisors = false;
  /// If set, returns whether a value is the same for all elements of a loop. Quotients by such
  /// values are products with the reciprocal, too.
  std::function<bool(mlir::Value)> isUniform;
  /// Loads outside of an array read its nearest element, or 0 if it is empty. `indices` lists the
  /// indices that are known to be in bounds, with their extents.
  bool clampsLoads = false;
  /// Evaluate all operands, whether they are needed or not. Requires `clampsLoads`.
  bool eager = false;
  llvm::DenseMap<mlir::Value, SymExpr> indices;
  /// The last index of the nest, which the pieces of folds refer to.
  mlir::Value row;

  /// Differences that exponents may fuse to a multiply-add, with the number of the operand that is
  /// small.
  llvm::DenseMap<mlir::Value, unsigned> smallOperands;

  /// The lanes that share the columns of a row, if any (RowLanes.h).
  LaneCode *lanes = nullptr;

  /// Returns the operand of `device.half_from_bits` for a piecewise linear power of 2.
  mlir::Value bitsOf(onf::PiecewiseExp2Op op);

  /// Returns whether evaluating the value here would read memory or run a fold.
  bool isCostly(mlir::Value value);

private:
  mlir::Value lookup(mlir::Value value);
  std::optional<std::pair<mlir::Value, mlir::Value>> lookupProduct(mlir::Value value);
  mlir::Value evalOp(mlir::Operation *op);
  mlir::Value evalLoad(onf::LoadOp load);
  mlir::Value evalNearest(onf::LoadOp load);
  mlir::Value evalAt(onf::AtOp at);
  std::optional<unsigned> findSmallOperand(mlir::arith::SubFOp difference);
  mlir::Value fusedDifference(mlir::arith::SubFOp difference, unsigned small, float times, float plus);
  mlir::Value scaledBy(mlir::Value argument, float times, float plus);
  mlir::Value approximateExp(mlir::Value argument, int64_t shift = 0); // times 2^shift
  mlir::Value approximateTanh(mlir::Value argument);
  mlir::Value approximatePower(mlir::math::PowFOp op);
  mlir::Value interleave(mlir::Value place);
  mlir::Value coefficient(onf::AccessOpInterface op, const SymExpr &expr);
  mlir::Value choose(mlir::Value condition, mlir::Value yes, mlir::Value no);

  /// The number of emitted operations. Each side of a branch emits its own operands, so that nested
  /// selections grow exponentially.
  size_t written = 0;
  mlir::IRMapping arrays;
  struct Scope {
    llvm::DenseMap<mlir::Value, mlir::Value> values;
    llvm::DenseMap<mlir::Value, std::pair<mlir::Value, mlir::Value>> products;
  };
  std::vector<Scope> scopes;
};

/// Creates a kernel of a nest at the insertion point, which moves to the start of the kernel.
/// `suffix` completes the kernel's name.
device::KernelOp beginKernel(mlir::OpBuilder &b, onf::ForOp nest, device::ProgramOp program, const llvm::Twine &suffix,
                             const SymExpr &blocks, int64_t threads);
/// Maps the arrays of the nest's kernel to those of the program.
mlir::IRMapping mapArrays(onf::ForOp nest, device::ProgramOp program);
/// Returns the location without its name, which is that of a definition's results.
mlir::Location withoutName(mlir::Location loc);
/// Emits a fold and binds its results: scalars to their values, states with axes to private arrays.
void emitFold(ScalarCode &code, onf::FoldOp fold);
/// Returns x + y as rounded, and the exact rounding error, which is 0 if it is not a number
/// (TwoSum: D. E. Knuth, The Art of Computer Programming 2, 4.2.2).
std::pair<mlir::Value, mlir::Value> sumAndRest(ScalarCode &code, mlir::Value x, mlir::Value y);

} // namespace moa

#endif // MOA_CONVERSION_ONFTODEVICE_SCALARCODE_H
