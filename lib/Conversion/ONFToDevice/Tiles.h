//===- Tiles.h - a nest as a kernel of warpgroups ---------------*- C++ -*-===//
#ifndef MOA_CONVERSION_ONFTODEVICE_TILES_H
#define MOA_CONVERSION_ONFTODEVICE_TILES_H

#include "dialects/Device/IR/Device.h"
#include "dialects/ONF/IR/ONF.h"
#include "lib/Conversion/ONFToDevice/ScalarCode.h"
#include "lib/Conversion/ONFToVector/FoldPlan.h"
#include "lib/Schedule/GpuSchedule.h"
#include "lib/Support/SymExpr.h"
#include "llvm/ADT/MapVector.h"

namespace moa {

/// constant + Σ factor · value, where sums and products with symbols are taken apart.
struct LinearIndex {
  SymExpr constant;
  llvm::MapVector<mlir::Value, SymExpr> terms;
  bool operator==(const LinearIndex &other) const;
};

/// An operand that is copied by tiles: an element X[…, r, …, k] with r the row or
/// the key along `rowAxis` and k along the last axis.
struct TileOperand {
  mutable onf::LoadOp load;
  unsigned rowAxis = 0;
  SymExpr step =
      SymExpr(1); ///< of neighbours along `rowAxis`, in indices: the element is X[…, step·r, …, k]
  int64_t columns = 0; ///< of the last axis
  /// Whether the fold's index runs along the last axis, and `columns` along `rowAxis`.
  bool isTransposed = false;
  /// Of an operand of a `TileProduct`: its subscripts, and the index that runs along `rowAxis`.
  std::vector<LinearIndex> subscripts;
  mlir::Value moving;
  int64_t getBytes() const { return load.getResult().getType().getIntOrFloatBitWidth() / 8; }
};

/// A fold over a known range that sums up products of elements of arrays, x(i, j) · y(j, d), i the
/// row and d the axis of its one state. Of x tiles of rows are copied or, where it is transposed,
/// of indices of the fold with the rows along their columns.
struct TileProduct {
  mutable onf::FoldOp fold;
  mutable onf::AccOp acc;
  TileOperand left, right;
  int64_t length = 0;
  /// Whether the fold's guard keeps out elements that both arrays have, whose rows in tiles are
  /// cleared. Otherwise what it keeps out is outside of both, where tiles have zeros.
  bool isMasked = false;
  /// Of a fold in front of tiles whose sums are only added to those of a carrier: that sum, and the
  /// condition under which they are (null: always). The carrier's sums start with them.
  mlir::Value joined, condition;
  unsigned carrier = 0;
};

/// A product of tiles: numbers of operands. That of the rows is one of the plan's, or of a
/// carrier's weights.
struct ProductTerm {
  unsigned row = 0, key = 0;
};

/// What a nest must be for a kernel of tiles, and its operands, each once.
struct TilePlan {
  mutable onf::ForOp nest;
  mutable onf::FoldOp fold;
  rows::FoldPlan folded;
  llvm::SmallVector<TileOperand> rowOperands, keyOperands; // of the scores
  llvm::SmallVector<TileOperand> carried;                  // of the carriers
  /// The products that each score, and each carrier, sums up, and the different weights of each
  /// carrier.
  llvm::SmallVector<llvm::SmallVector<ProductTerm, 1>> scoreTerms, carrierTerms;
  llvm::SmallVector<llvm::SmallVector<rows::Factors, 1>> weights;
  std::optional<TileProduct>
      product; // the fold, where it is one; its weights are elements of an array
  /// Folds in front, of the rows that the scores have, over the whole of what they read.
  std::vector<TileProduct> priors;
  TileShape shape;
};

/// A number or an expression over the symbols.
std::optional<SymExpr> getSymbolic(mlir::Value value);
/// A value and how often a term is it: a product with numbers or expressions over the symbols is
/// taken apart.
std::pair<mlir::Value, SymExpr> takeApart(mlir::Value term);
/// The nest at the top of a kernel that an operation stands in.
onf::ForOp getNest(mlir::Operation *op);
/// Removes an array that nothing uses.
void eraseTemporary(onf::KernelOp kernel, unsigned array);
/// Whether two loads read the same element.
bool isSameElement(onf::LoadOp x, onf::LoadOp y);
/// Reads a fold of a nest as a product of tiles, or says why it is none.
std::optional<TileProduct> findTileProduct(onf::FoldOp fold, std::string &why);
/// Whether a value is the same for all of 64 rows from a multiple of 64 on.
bool isSameForRows(mlir::Value value, mlir::Value row);
/// Whether x, of a product, is the same tile as y, `xInner` and `yInner` being the indices of their
/// columns.
bool isSameTile(const TileOperand &x, const TileOperand &y, mlir::Value xInner, mlir::Value yInner);
/// What a nest would be as a kernel of tiles, without a shape, or why it is none.
std::optional<TilePlan> findTiles(onf::ForOp nest, std::string &why);
/// The temporaries of a kernel whose last axis is interleaved in memory (`getInterleaved` of
/// device.contract), by the numbers of their arguments: carried operands of 8 bits.
llvm::SmallVector<int64_t> findInterleaved(onf::KernelOp kernel);
/// The attribute of a kernel, while it is lowered, that says which these are.
inline constexpr llvm::StringLiteral kInterleavedAttr = "moa.interleaved";
/// Whether it says so of an array.
bool isInterleaved(mlir::Value array);
/// Whether a nest sums up products of floats of 16 bits or integers of 8, which tensor
/// cores are for.
bool contractsNarrow(onf::ForOp nest);
/// Whether a nest is lifted to warpgroups.
bool isLiftedToTiles(onf::ForOp nest);
/// The plan of a nest that is lifted to warpgroups, in the shape that its
/// attributes say, or why it has none.
std::optional<TilePlan> planTiles(onf::ForOp nest, std::string &why);
/// The type of 16 bits of outputs over the axis of a state that tiles of rows do not have;
/// null if there is none. Its tiles pass through a ring of their own, of so many columns.
mlir::Type getResultElement(const TilePlan &plan);
int64_t getResultColumns(const TilePlan &plan);
/// Bytes of shared memory that lists of tiles take, where a kernel has some.
int64_t tileListBytes(const TilePlan &plan);
/// Writes the kernel.
mlir::LogicalResult lowerTiles(const TilePlan &plan, device::ProgramOp program, unsigned number);

} // namespace moa

#endif // MOA_CONVERSION_ONFTODEVICE_TILES_H
