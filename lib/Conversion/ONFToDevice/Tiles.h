//===- Tiles.h - plans of warp-specialized tile kernels ---------*- C++ -*-===//
#ifndef MOA_CONVERSION_ONFTODEVICE_TILES_H
#define MOA_CONVERSION_ONFTODEVICE_TILES_H

#include "dialects/Device/IR/Device.h"
#include "dialects/ONF/IR/ONF.h"
#include "lib/Conversion/ONFToDevice/Forms.h"
#include "lib/Conversion/ONFToDevice/ScalarCode.h"
#include "lib/Conversion/ONFToVector/FoldPlan.h"
#include "lib/Schedule/GpuSchedule.h"
#include "lib/Support/SymExpr.h"

namespace moa {

/// An operand that TMA copies tile by tile: X[…, r, …, k]. r is the row or the key along `rowAxis`,
/// k the index along the last axis.
struct TileOperand {
  mutable onf::LoadOp load;
  unsigned rowAxis = 0;
  SymExpr step = SymExpr(1); ///< stride along `rowAxis`: X[…, step·r, …, k]
  LinearIndex offset;        ///< of row 0, the same for a whole block: X[…, offset + r, …, k]
  /// Rows of a page, if keys are found by pages: X[f(⌊r / page⌋), …, r mod page, …, k]. Other axes may
  /// depend on the page.
  std::optional<int64_t> page;
  int64_t columns = 0; ///< length of the last axis
  /// For an operand of an accumulator: the fold's index runs along the last axis, and `columns`
  /// counts indices along `rowAxis`. For the left operand of a `TileProduct`: the rows run along
  /// the last axis.
  bool isTransposed = false;
  /// Only for operands of a `TileProduct`: the subscripts, in which sums and products with symbolic
  /// factors are flattened, and the index that runs along `rowAxis`.
  std::vector<LinearIndex> subscripts;
  mlir::Value moving;
  /// Returns the index along the last axis.
  mlir::Value getInner() const { return load.getIndex(load.getArray().getType().getRank() - 1).getValue(); }
  int64_t getBytes() const { return load.getResult().getType().getIntOrFloatBitWidth() / 8; }
};

/// A fold of known range that sums products of array elements, x(i, j) · y(j, d): a matrix product.
/// i is the row and d the axis of its single state. Tiles of x hold rows i. If x is transposed,
/// they hold indices j, with the rows i along their columns.
struct TileProduct {
  mutable onf::FoldOp fold;
  mutable onf::AccOp acc;
  TileOperand left, right;
  int64_t length = 0;
  /// True if the guard excludes elements that exist in both arrays; their rows are then cleared in
  /// the tiles. Otherwise the guard excludes only elements outside of both arrays, for which TMA
  /// fills in zeros.
  bool isMasked = false;
  /// For a prologue contraction whose sums are only added to those of one accumulator: the result of
  /// the addition, and its condition (null: always). The accumulator then starts with the
  /// contraction's sums.
  mlir::Value joined, condition;
  unsigned accumulator = 0;
};

/// A product of two tiles, by operand numbers. `row` is one of the plan's row operands, or one of
/// the accumulator's weights.
struct ProductTerm {
  unsigned row = 0, key = 0;
};

/// A nest in the form that a tile kernel needs. Each operand is listed once.
struct TilePlan {
  mutable onf::ForOp nest;
  mutable onf::FoldOp fold;
  rows::FoldPlan folded;
  llvm::SmallVector<TileOperand> rowOperands, keyOperands; // of the scores
  llvm::SmallVector<TileOperand> valueOperands;            // of the accumulators
  /// The products that each score and each accumulator sums, and the distinct weights of each
  /// accumulator.
  llvm::SmallVector<llvm::SmallVector<ProductTerm, 1>> scoreTerms, accumulatorTerms;
  llvm::SmallVector<llvm::SmallVector<rows::Factors, 1>> weights;
  std::optional<TileProduct> product; // set if the fold is a plain product of arrays
  /// Prologue contractions: folds before the main one that contract the scores' rows over their
  /// full length.
  std::vector<TileProduct> prologue;
  TileShape shape;
  mlir::BlockArgument rowIndex() const { return nest.getBody().getArguments().back(); }
  mlir::BlockArgument keyIndex() const { return fold.getBody().getArgument(0); }
};

/// Returns the value if it is a constant or an expression over the symbols.
std::optional<SymExpr> getSymbolic(mlir::Value value);
/// Splits a term into a value and a factor. Products with constants and symbolic expressions are
/// flattened.
std::pair<mlir::Value, SymExpr> takeApart(mlir::Value term);
/// Returns whether `find` returns true for an operation that the values are computed from. It
/// returns nullopt for operations whose operands do not count.
bool anySource(mlir::ValueRange values, llvm::function_ref<std::optional<bool>(mlir::Operation *)> find);
/// Returns the top-level nest of the kernel that contains `op`.
onf::ForOp getNest(mlir::Operation *op);
/// Returns the axes of a stored array along which single indices run, by index.
llvm::DenseMap<mlir::Value, unsigned> findAxes(onf::StoreOp store);
/// Removes a temporary array that has no uses.
void eraseTemporary(onf::KernelOp kernel, unsigned array);
bool isSameElement(onf::LoadOp x, onf::LoadOp y);
/// Returns the fold as a product of tiles.
Match<TileProduct> findTileProduct(onf::FoldOp fold);
/// Returns whether a value is the same for all rows of each aligned group of 64.
bool isSameForRows(mlir::Value value, mlir::Value row);
/// Returns whether `x`, an operand of a product, is the same tile as `y`. `xInner` and `yInner` are
/// the indices of their columns.
bool isSameTile(const TileOperand &x, const TileOperand &y, mlir::Value xInner, mlir::Value yInner);
/// Returns the tile plan of a nest, without a shape.
Match<TilePlan> findTiles(onf::ForOp nest);
/// Lists on a lifted kernel the argument numbers of the temporaries whose last axis is interleaved in
/// memory (`getInterleaved` of device.contract). These are the 8-bit operands of accumulators.
inline constexpr llvm::StringLiteral kInterleavedAttr = "moa.interleaved";
/// Returns whether the attribute lists `array`.
bool isInterleaved(mlir::Value array);
/// Returns whether a nest sums products of 16-bit floats or 8-bit integers, which tensor cores
/// support.
bool contractsNarrow(onf::ForOp nest);
/// Returns whether rescaling can be conditional: references are maxima or minima, so that merging a
/// partial twice changes nothing, and corrections are factors.
bool canRescaleLazily(const TilePlan &plan);
/// Returns the 16-bit element type of outputs over an accumulator's axis, if no ring of rows has
/// this type; else null. Tiles of these outputs are staged in a ring of their own, with
/// `getResultColumns` columns.
mlir::Type getResultElement(const TilePlan &plan);
int64_t getResultColumns(const TilePlan &plan);
/// Returns the bytes of shared memory for tile lists; 0 if the kernel needs none.
int64_t tileListBytes(const TilePlan &plan);
mlir::LogicalResult lowerTiles(const TilePlan &plan, device::ProgramOp program, unsigned number);

} // namespace moa

#endif // MOA_CONVERSION_ONFTODEVICE_TILES_H
