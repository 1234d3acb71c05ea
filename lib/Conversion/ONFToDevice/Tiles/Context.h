//===- Context.h - names that all parts of a tile kernel use ----*- C++ -*-===//
//
// A tile kernel is built from parts, one class each. A part gets other parts as constructor
// arguments, and its constructor emits the code that finds its values. For example, the constructor
// of a `TileOrder` emits the range of tiles that a block visits. Kernel.cpp puts the parts together.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_CONVERSION_ONFTODEVICE_TILES_CONTEXT_H
#define MOA_CONVERSION_ONFTODEVICE_TILES_CONTEXT_H

#include "dialects/MoA/IR/Monoid.h"
#include "lib/Analysis/TilePredicate.h"
#include "lib/Conversion/ONFToDevice/Tiles.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace moa::tiles {

using rows::Accumulator;
using rows::Score;
using Values = ScalarCode::Values;
using device::BarriersType;
using device::FragmentType;
using device::LayoutAttr;
using device::RingType;

//===--- Sizes and axes ---------------------------------------------------===//

/// Rounds columns up to whole pieces of 128 bytes, as in rings. Accumulators use the default of 2
/// bytes.
inline int64_t padded(int64_t columns, int64_t bytes = 2) { return paddedColumns(columns, bytes); }
/// Returns ⌈extent / size⌉.
SymExpr tilesOf(const SymExpr &extent, int64_t size);
/// Returns the axes of a nest, except the last, that any of the values depends on.
llvm::SmallVector<unsigned> axesOf(llvm::ArrayRef<mlir::Value> values, onf::ForOp nest);

//===--- Fragments --------------------------------------------------------===//

/// The index space of a fragment: rows, rows and lanes (partials), or rows and columns.
struct Over {
  enum Kind { Rows, Parts, Tile } kind;
  int64_t columns = 0;
  static Over rows() { return {Rows}; }
  static Over parts() { return {Parts}; }
  static Over tile(int64_t columns) { return {Tile, columns}; }
};
FragmentType typeOver(Over over, mlir::Type element);
inline mlir::Type elementOf(mlir::Value fragment) {
  return llvm::cast<FragmentType>(fragment.getType()).getElementType();
}

//===--- Scalars ----------------------------------------------------------===//

inline mlir::Value identity(ScalarCode &code, Monoid monoid, mlir::Type type) {
  return code.constant(llvm::cast<mlir::TypedAttr>(getIdentity(monoid, type)));
}
/// Returns an element of a score as a float. This is exact for sums of integers.
mlir::Value asFloat(ScalarCode &code, mlir::Value element);
/// Names a computed value that has no name.
void nameValue(ScalarCode &code, mlir::Value value, llvm::StringRef name);
/// Makes loads of the guard read the nearest element where its other conditions exclude them. This
/// can only widen a range.
void clampLoads(ScalarCode &code, const TilePlan &plan);
/// Returns whether clamped loads allow the evaluation of a condition that the guard does not need,
/// or of an epilogue value for rows that do not exist.
bool canClamp(const TilePlan &plan, mlir::Value condition);
/// Returns whether a value is the same for all rows and keys of a block.
bool isUniform(const TilePlan &plan, mlir::Value value);

//===--- The context ------------------------------------------------------===//

/// The subject of a kernel. Nothing in it changes while the kernel is emitted.
struct TileContext {
  TileContext(const TilePlan &plan, device::ProgramOp program, unsigned number, mlir::OpBuilder &b);
  const SymExpr &extent(unsigned axis) const { return getSymExpr(plan.nest.getExtents()[axis]); }
  /// Returns the extent of the rows.
  const SymExpr &rowExtent() const { return extent(plan.nest.getExtents().size() - 1); }
  /// Returns the number of tiles of rows and of keys.
  SymExpr rowTiles() const { return tilesOf(rowExtent(), plan.shape.rows()); }
  SymExpr keyTiles() const { return tilesOf(plan.fold.getExtent(), plan.shape.keys); }
  /// Returns a name for an array of the workspace that no other array has.
  std::string freshName(llvm::StringRef wish) const;

  const TilePlan &plan;
  mutable device::ProgramOp program;
  const unsigned number; // of the kernel in the program
  mlir::OpBuilder &b;
  const mlir::Value choice; // onf predicate of a versioned nest; null: it always runs
  /// The guard over tiles; nullopt if intervals tell which tiles a block visits.
  const std::optional<TilePredicate> predicate;
};

/// A part of a kernel, with short names for the members of the context.
class TilePart {
protected:
  explicit TilePart(const TileContext &context)
      : context(context), plan(context.plan), program(context.program), b(context.b) {}

  const TileContext &context;
  const TilePlan &plan;
  device::ProgramOp program;
  mlir::OpBuilder &b;
};

/// A part of the code of a block.
class BlockPart : protected TilePart {
protected:
  BlockPart(const TileContext &context, ScalarCode &code) : TilePart(context), code(code) {}

  ScalarCode &code;
};

/// The rows of a block. The last one exists.
struct BlockRows {
  mlir::Value first, last;
};

/// The rows of a consumer warpgroup: its number, and its first row in the block and in all.
struct WarpgroupRows {
  mlir::Value number, offset, base;
};

/// A part of the code of a consumer warpgroup.
class WarpgroupPart : protected BlockPart {
protected:
  WarpgroupPart(const TileContext &context, ScalarCode &code, const WarpgroupRows &rows)
      : BlockPart(context, code), rows(rows) {}
  /// Binds the row of an element of a fragment and, with two indices, its key in the tile from
  /// `first` on.
  void bindElement(mlir::ValueRange at, mlir::Value first);
  /// Emits a map over rows or partials. `body` may load elements of the row, which is clamped to the
  /// last one.
  Values mapNearestRows(llvm::StringRef name, mlir::ValueRange inputs, Over over, llvm::ArrayRef<mlir::Type> elements,
                        llvm::function_ref<Values(mlir::ValueRange)> body);

  const WarpgroupRows &rows;
};

} // namespace moa::tiles

#endif // MOA_CONVERSION_ONFTODEVICE_TILES_CONTEXT_H
